//! Whether an earlier version of the numbers (`results_version` of the runs) read a slide as this one does.

use crate::{Slide, SlideError, TissueMask};
use base::text::Many;

/// Level-0 pixels per pixel of the levels that masks of tissue are made of.
const COARSE: f64 = 8.0;

impl Slide {
    /// Why a version of the numbers may have read other pixels of this slide. Version 1 took the first image of a file
    /// for the slide, left tiles and parts of tiles white that a finer level holds, used levels that contradict finer
    /// ones, and took pixels of undeclared opacity for black. Empty where both read the same.
    ///
    /// # Errors
    /// [`SlideError::Io`] or [`SlideError::Remote`] where the file cannot be read.
    pub fn differences_since(&self, version: u32) -> Result<Vec<String>, SlideError> {
        if version > 1 {
            return Ok(Vec::new());
        }
        let mut why = self.opened.source.later_rules();
        for level in 1..self.levels().len() {
            let filled = self.filled_tiles(level);
            if filled > 0 {
                let tiles = Many(filled, "tile");
                why.push(format!("level {level} leaves out {tiles}, filled from a finer level"));
            }
        }
        why.extend(self.disagreements()?.iter().map(ToString::to_string));
        // Masks of tissue are made of these.
        self.look_through(|_, level| level.downsample_x >= COARSE)?;
        why.extend(self.patch_notes());
        Ok(why)
    }
}

/// Why results of a version of the numbers on an opened slide may be other than those of this version, where the tissue
/// that was found is not known; none where both give the same. Versions 1 and 2 took black and dark frames for tissue.
#[must_use]
pub fn outdated(slide: Result<Slide, SlideError>, version: u32) -> Option<String> {
    let why = slide.and_then(|slide| {
        let mut why = slide.differences_since(version)?;
        why.extend(TissueMask::find(&slide)?.found_otherwise());
        Ok(why)
    });
    match why {
        Ok(why) => (!why.is_empty()).then(|| why.join("; ")),
        Err(e) => Some(e.to_string()),
    }
}
