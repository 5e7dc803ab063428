//! AMi-Br patches: 128 x 128 px at 0.25 um/px with a mitotic figure in the middle.
//!
//! The MIDOG21 part may train models; the TUPAC16 part is a test set and cannot enter a
//! [`TrainingSet`]: the type has no way in for it. Patches of a regions dataset come from its training
//! part.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::crops::{CropError, Mark, MarkKind, Scene, fill_black_edges, read_rgb};

/// Which collection the patches were cut from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// 1,721 figures; may be trained on.
    #[serde(rename = "MIDOG21")]
    Midog21,
    /// 1,999 figures; a test set.
    #[serde(rename = "TUPAC16")]
    Tupac16,
}

/// Patches of the MIDOG21 part, and of nothing else.
#[derive(Clone, Debug)]
pub struct TrainingSet {
    scenes: Vec<Scene>,
}

#[derive(Deserialize)]
struct Row {
    slide: String,
    dataset: Part,
    uid: u64,
    x: f32,
    y: f32,
    majority_atypical: String,
}

impl TrainingSet {
    /// Reads a part of the folder `ami_br` for training.
    ///
    /// Every other figure of the same slide that falls into a patch is marked as well, so pixels
    /// away from all marks are no figure (the part is labelled exhaustively).
    ///
    /// # Errors
    /// [`CropError::TestSetInTraining`] for TUPAC16, before any file is opened;
    /// [`CropError::Read`] for missing or malformed files.
    pub fn open(dir: &Path, part: Part) -> Result<Self, CropError> {
        if part != Part::Midog21 {
            return Err(CropError::TestSetInTraining { part: format!("AMi-Br {part:?}") });
        }
        let path = dir.join("labels.csv");
        let mut reader = csv::Reader::from_path(&path).map_err(|e| CropError::read(&path, e))?;
        let rows: Vec<Row> = reader
            .deserialize()
            .collect::<Result<_, _>>()
            .map_err(|e| CropError::read(&path, e))?;
        let mut slides: BTreeMap<&str, Vec<(f32, f32)>> = BTreeMap::new();
        let kept: Vec<&Row> = rows.iter().filter(|r| r.dataset == Part::Midog21).collect();
        for row in &kept {
            slides.entry(&row.slide).or_default().push((row.x, row.y));
        }
        let scenes = kept
            .par_iter()
            .map(|row| {
                let folder = if row.majority_atypical == "True" { "Atypical" } else { "Normal" };
                let name = format!("MIDOG21_{}", row.uid);
                let file = dir.join(folder).join(format!("{name}.png"));
                let mut image = read_rgb(&file)?;
                if (image.width, image.height) != (128, 128) {
                    let size = format!("{}x{} px, expected 128x128", image.width, image.height);
                    return Err(CropError::read(&file, size));
                }
                fill_black_edges(&mut image);
                let marks = slides[row.slide.as_str()]
                    .iter()
                    .map(|&(x, y)| (x - row.x + 64.0, y - row.y + 64.0))
                    .filter(|&(x, y)| (-32.0..160.0).contains(&x) && (-32.0..160.0).contains(&y))
                    .map(|(x, y)| Mark { x, y, half: 25.0, kind: MarkKind::Figure })
                    .collect();
                Ok(Scene {
                    name,
                    source: format!("MIDOG21/{}", row.slide),
                    image,
                    marks,
                    partial: false,
                })
            })
            .collect::<Result<Vec<_>, CropError>>()?;
        Ok(Self { scenes })
    }

    /// Patches with a figure in their middle, from a training part.
    pub(crate) fn of(scenes: Vec<Scene>) -> Self {
        Self { scenes }
    }

    /// The patches, in file order.
    #[must_use]
    pub fn scenes(&self) -> &[Scene] {
        &self.scenes
    }

    /// At most `n` patches, evenly spread over the file (for shrunken runs).
    #[must_use]
    pub fn thinned(mut self, n: usize) -> Self {
        let all = self.scenes.len();
        if n < all {
            let mut i = 0;
            self.scenes.retain(|_| {
                i += 1;
                (i * n) / all != ((i - 1) * n) / all
            });
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_part_has_no_way_in() {
        let refused = TrainingSet::open(Path::new("/nowhere"), Part::Tupac16);
        assert!(matches!(refused, Err(CropError::TestSetInTraining { .. })));
    }

    #[test]
    fn reads_the_training_part() {
        let Some(dir) = testkit::data("ami_br") else { return };
        let set = TrainingSet::open(&dir, Part::Midog21).unwrap();
        assert_eq!(set.scenes().len(), 1721);
        assert!(set.scenes().iter().all(|s| s.name.starts_with("MIDOG21_")));
        assert!(set.scenes().iter().all(|s| s.nearest_mark(64.0, 64.0) == 0.0));
        let black_edge = |s: &Scene| (0..128).all(|i| s.image.pixel(0, i) == [0; 3]);
        assert!(!set.scenes().iter().any(black_edge));
        assert_eq!(set.thinned(100).scenes().len(), 100);
    }

}
