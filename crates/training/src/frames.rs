//! Detection on labelled images with trained weights, through the same `detect` as on slides.

use super::{Result, TrainingError};
use detect::{CandidateRule, Control, CropRecipe, Detector, Grid, Job, Models, Recipe, Workers};
use mitosis::{Classifier, Detection, Mpp, PortError, ProbMap, RgbTile, Score, Segmenter};
use net::checkpoint::Spec;
use serde::{Deserialize, Serialize};
use slide::Slide;
use std::collections::HashMap;
use std::path::PathBuf;

/// From probabilities to candidates; written into the package's card.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidates {
    /// Probability threshold of candidate regions.
    pub threshold: f32,
    /// Radius of the morphological opening, px.
    pub opening_radius: u32,
    /// Smallest region, px.
    pub min_area_px: u32,
    /// Of candidates closer than this, um, only the likeliest is kept; without it all are kept. Earlier presets call
    /// it `apart_um`.
    #[serde(alias = "apart_um", default, skip_serializing_if = "Option::is_none")]
    pub min_separation_um: Option<f64>,
}

/// Windows of the first stage, px.
pub const WINDOW: u32 = 512;
/// Their stride, px.
pub const STRIDE: u32 = 400;

/// A second stage.
#[derive(Clone, Copy, Debug)]
pub struct SecondStage<'a> {
    /// Side of its crops, px at 0.25 um/px.
    pub crop: u32,
    /// Its network.
    pub spec: &'a Spec,
}

impl Candidates {
    /// The recipe of a first stage, with a second where given.
    ///
    /// # Errors
    /// A threshold that is not a score, a resolution that is not valid.
    pub fn recipe(&self, first: &Spec, second: Option<SecondStage<'_>>) -> Result<Recipe> {
        let crops = second.map(|SecondStage { crop, spec: net }| {
            let (crop, input) = (crop as usize, net.input as usize);
            let (mpp, side) = infer::preprocess::sampling(Mpp::PAPER, crop, input);
            let positive = net.classes.last().cloned().unwrap_or_default();
            CropRecipe { mpp, side: side as u32, positive }
        });
        let threshold = Score::new(self.threshold)
            .map_err(|e| TrainingError::Invalid(format!("candidates.threshold: {e}")))?;
        let mpp = Mpp::new(first.mpp).map_err(|e| TrainingError::Invalid(e.to_string()))?;
        Ok(Recipe {
            mpp,
            grid: Grid::new(WINDOW, STRIDE)?,
            overlap: detect::Overlap::Mean,
            candidates: CandidateRule::Regions {
                threshold,
                opening_radius: self.opening_radius,
                min_area_px: u64::from(self.min_area_px),
            },
            min_separation_um: self.min_separation_um,
            crops,
            max_unread_share: 0.0,
        })
    }
}

/// Caches the segmenter's output of each tile: several second stages then need one first stage;
/// with a folder, over several calls.
pub struct Remembering<S> {
    inner: S,
    seen: HashMap<String, ProbMap>,
    folder: Option<PathBuf>,
    weights: Vec<u8>,
}

impl<S> Remembering<S> {
    /// Keeps maps of `inner` in memory and, where given, in a folder; `weights` distinguishes
    /// one segmenter's maps from another's.
    pub fn new(inner: S, folder: Option<PathBuf>, weights: Vec<u8>) -> Self {
        Self { inner, seen: HashMap::new(), folder, weights }
    }

    /// Forgets what is in memory.
    pub fn forget(&mut self) {
        self.seen.clear();
    }
}

impl<S: Segmenter> Remembering<S> {
    fn map(&mut self, w: &RgbTile) -> Result<ProbMap, PortError> {
        let key = base::digest::sha256([&self.weights[..], &w.data].concat());
        if let Some(map) = self.seen.get(&key) {
            return Ok(map.clone());
        }
        let file = self.folder.as_ref().map(|f| f.join(&key));
        let kept = file.as_ref().and_then(|f| base::file::read_whole(f).ok());
        let map = match kept.filter(|b| b.len() == 4 * w.width * w.height) {
            Some(bytes) => {
                let value = |c: &[u8]| f32::from_le_bytes([c[0], c[1], c[2], c[3]]);
                let data = bytes.chunks_exact(4).map(value).collect();
                ProbMap { width: w.width, height: w.height, data }
            }
            None => {
                let map = self.inner.probabilities(std::slice::from_ref(w))?.remove(0);
                if let Some(file) = file {
                    let bytes: Vec<u8> = map.data.iter().flat_map(|v| v.to_le_bytes()).collect();
                    base::file::write(&file, &bytes).map_err(|e| PortError::Engine {
                        engine: "map cache".into(),
                        message: e.to_string(),
                    })?;
                }
                map
            }
        };
        self.seen.insert(key, map.clone());
        Ok(map)
    }
}

impl<S: Segmenter> Segmenter for Remembering<S> {
    fn probabilities(&mut self, windows: &[RgbTile]) -> Result<Vec<ProbMap>, PortError> {
        windows.iter().map(|w| self.map(w)).collect()
    }
}

/// All candidates of one image, accepted or not, in level-0 pixels.
///
/// # Errors
/// [`TrainingError`]: a window or crop that cannot be read, or a model that gives no answer.
pub fn detect(
    slide: &Slide,
    recipe: &Recipe,
    segmenter: &mut dyn Segmenter,
    classifier: Option<&mut dyn Classifier>,
) -> Result<Vec<Detection>> {
    let job = Job::whole(slide, recipe)?;
    let workers = Workers { readers: 1, ..Workers::default() };
    let classifier = classifier.map(|c| c as &mut dyn Classifier);
    let models = Models { segmenter: &mut *segmenter, classifier };
    let found = Detector { models, recipe, workers }.run(slide, &job, Control::default())?;
    match found.unclassified.first() {
        Some(u) => {
            let reason = format!("a crop could not be read: {}", u.reason);
            Err(TrainingError::file(slide.path(), reason))
        }
        None => Ok(found.detections().copied().collect()),
    }
}
