//! Whether an earlier version of the numbers read a slide as this one does.

use crate::{Slide, SlideError};
use base::text::Many;

impl Slide {
    /// Why version 1 of the numbers (`results_version` of the runs) may have read other pixels of this slide:
    /// it took the first image of a file for the slide, left tiles and parts of tiles white that a finer level
    /// holds, used levels that contradict finer ones, and took pixels of undeclared opacity for black. Empty
    /// where both read the same.
    ///
    /// # Errors
    /// [`SlideError::Io`] or [`SlideError::Remote`] where the file cannot be read.
    pub fn read_otherwise_by_version_1(&self) -> Result<Vec<String>, SlideError> {
        let mut why = self.opened.source.later_rules();
        for level in 1..self.levels().len() {
            let filled = self.filled_tiles(level);
            if filled > 0 {
                let tiles = Many(filled, "tile");
                why.push(format!("level {level} leaves out {tiles}, filled from a finer level"));
            }
        }
        why.extend(self.disagreements()?.iter().map(ToString::to_string));
        self.look_for_patches()?;
        why.extend(self.patch_notes());
        Ok(why)
    }
}
