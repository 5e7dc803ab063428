//! What decides whether a slide can be used, without the networks.

use super::error::RunError;
use crate::input::Input;
use crate::record::MEANINGLESS;
use infer::card::ResolutionCard;
use mitosis::Resolution;
use slide::{MppRule, OpenOptions, Slide, SlideError};

/// What decides whether a slide can be used, without the networks.
#[derive(Clone, Debug, Default)]
pub struct Opener {
    /// Take an input's um/px even where the slide states another.
    pub force_mpp: bool,
    /// Run on slides of any resolution, whatever the model is made for.
    pub any_mpp: bool,
    /// The resolutions that the model is made for; any where the card names none.
    pub range: Option<ResolutionCard>,
    /// Makers of the scanners of the training data, by the card; slides of others carry a caveat. Empty where it names
    /// none.
    pub scanners: Vec<String>,
    /// What a slide may ask for, its share of memory among them, and the OpenSlide library.
    pub options: OpenOptions,
}

impl Opener {
    /// Opens a slide.
    ///
    /// # Errors
    /// [`SlideError`].
    pub fn open(&self, input: &Input) -> Result<Slide, SlideError> {
        let mpp_rule = match (self.force_mpp, input.own_mpp) {
            (true, _) => MppRule::Force,
            (false, true) => MppRule::Agree,
            (false, false) => MppRule::Fill,
        };
        let options = OpenOptions { mpp: input.mpp, mpp_rule, ..self.options.clone() };
        Slide::open_with(&input.path, &options)
    }

    /// Why the counts of a slide are to be taken with care: its file names a scanner of a maker that the training
    /// data have none of.
    #[must_use]
    pub fn scanner_note(&self, slide: &Slide) -> Option<String> {
        let maker = slide.scanner()?;
        let seen = |s: &String| s.eq_ignore_ascii_case(maker);
        if self.scanners.is_empty() || self.scanners.iter().any(seen) {
            return None;
        }
        Some(format!(
            "a scanner of {maker}, of which the model saw no slide in training (it saw {}): more figures may be missed or wrong than \
             its card says",
            self.scanners.join(", ")
        ))
    }

    /// The resolution at which to use a slide, and a note for the user.
    ///
    /// # Errors
    /// [`RunError::Resolution`], or the slide has none.
    pub fn fitting(&self, slide: &Slide) -> Result<(Resolution, Option<String>), RunError> {
        let resolution = slide.resolution()?.clone();
        let Some(range) = self.range else { return Ok((resolution, None)) };
        let (x, y) = (resolution.x.get(), resolution.y.get());
        let (fine, coarse) = (x.min(y), x.max(y));
        let (min, max) = (range.min.get(), range.max.get());
        if fine < min || coarse > max {
            let found = if coarse > max { coarse } else { fine };
            if !self.any_mpp {
                return Err(RunError::Resolution { path: slide.path().into(), found, min, max });
            }
            let note = format!(
                "{found} um/px is outside the model's range ({min} to {max} um/px): {MEANINGLESS}"
            );
            return Ok((resolution, Some(note)));
        }
        let warn = range.warn_above.filter(|w| coarse > w.get()).map(|w| {
            format!(
                "{coarse} um/px is coarser than {} um/px, beyond which the model misses figures",
                w.get()
            )
        });
        Ok((resolution, warn))
    }
}
