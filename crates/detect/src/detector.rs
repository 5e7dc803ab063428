//! The one way through a slide: models, recipe and workers in one hand.

use crate::checkpoint::Checkpoint;
use crate::control::Control;
use crate::error::DetectError;
use crate::pipeline::{self, Run};
use crate::recipe::{Job, Recipe, Workers};
use crate::result::SlideResult;
use crate::source::TileSource;
use mitosis::{Classifier, Segmenter};

/// The networks of both stages, behind their ports.
pub struct Models<'m> {
    /// First stage: a probability per pixel.
    pub segmenter: &'m mut dyn Segmenter,
    /// Second stage; `None` for a segmentation-only run.
    pub classifier: Option<&'m mut dyn Classifier>,
}

/// Two-stage detection with given models, by a given recipe.
pub struct Detector<'m> {
    /// What scores pixels and crops.
    pub models: Models<'m>,
    /// Everything that changes a number.
    pub recipe: &'m Recipe,
    /// How much runs at once; changes no number.
    pub workers: Workers,
}

impl Detector<'_> {
    /// Detects on one slide: the windows of `job` in, every candidate with its scores
    /// out.
    ///
    /// The result is the same, bit for bit, for any [`Workers`], any order of `job.windows`, and any
    /// point at which the run was stopped and resumed, as long as the models answer for each tile
    /// alone. A window that cannot be read is recorded and left out of the analysed area.
    ///
    /// Where `control` has a store, the run continues from the state in it and keeps it up to date; a
    /// state that cannot be used (damaged, or of another slide, recipe or plan) is discarded, and
    /// the slide starts again.
    ///
    /// # Errors
    /// [`DetectError`]; the first one, when several stages fail.
    pub fn run(
        &mut self,
        source: &dyn TileSource,
        job: &Job<'_>,
        mut control: Control<'_>,
    ) -> Result<SlideResult, DetectError> {
        let stored = match control.store.as_mut().map(|s| s.load()).transpose() {
            Ok(stored) => stored.flatten(),
            Err(DetectError::Checkpoint(reason)) => {
                control.restart(&reason);
                None
            }
            Err(other) => return Err(other),
        };
        let resumed = stored.is_some();
        match self.attempt(source, job, stored, &mut control) {
            Err(DetectError::Checkpoint(reason)) if resumed => {
                control.restart(&reason);
                self.attempt(source, job, None, &mut control)
            }
            other => other,
        }
    }

    fn attempt(
        &mut self,
        source: &dyn TileSource,
        job: &Job<'_>,
        resume: Option<Checkpoint>,
        control: &mut Control<'_>,
    ) -> Result<SlideResult, DetectError> {
        let run = Run { source, job, recipe: self.recipe, workers: &self.workers };
        let second = self.models.classifier.as_mut();
        let classifier = second.map(|c| &mut **c as &mut dyn Classifier);
        pipeline::run(&run, &mut *self.models.segmenter, classifier, resume, control)
    }
}
