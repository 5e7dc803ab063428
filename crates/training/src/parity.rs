//! Whether a package gives the same scores as the trained networks.

use super::{Result, TrainingError};
use infer::{EngineChoice, EngineOptions, ModelPackage};
use mitosis::{Classifier, RgbTile, Segmenter, Symmetric};
use serde::Serialize;
use std::path::Path;

/// Largest differences of probabilities over the sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parity {
    /// Of the first stage, per pixel.
    pub segmenter: f32,
    /// Of the second stage, per class.
    pub classifier: f32,
}

/// Largest difference that is allowed: what f16 weights cost, with room.
pub const ALLOWED: f32 = 0.02;

/// Compares a package on the embedded engine with the trained networks, on `windows` (sides that are
/// multiples of 32) and `crops`, each averaged over the flips and turns that the package's card lists.
///
/// # Errors
/// [`TrainingError::Parity`] when they differ by more than [`ALLOWED`]; an engine that does not start.
pub fn check(
    package: &Path,
    segmenter: &mut dyn Segmenter,
    classifier: impl Classifier,
    windows: &[RgbTile],
    crops: &[RgbTile],
) -> Result<Parity> {
    let package = ModelPackage::open(package)?;
    let options = EngineOptions { engine: EngineChoice::Rten, ..EngineOptions::default() };
    let mut models = infer::open(&package, &options)?;
    let missing = || TrainingError::Invalid("the package lacks one of its two stages".into());
    let exported = models.segmenter.as_mut().ok_or_else(missing)?;
    let mut found = Parity { segmenter: 0.0, classifier: 0.0 };
    for w in windows {
        let one = std::slice::from_ref(w);
        let (a, b) = (exported.probabilities(one)?, segmenter.probabilities(one)?);
        for (a, b) in a.iter().zip(&b) {
            found.segmenter = found.segmenter.max(furthest(&a.data, &b.data));
        }
    }
    let exported = models.classifier.as_mut().ok_or_else(missing)?;
    let copies = package.card.classifier.as_ref().map_or(1, |c| c.symmetries);
    let mut classifier = Symmetric::new(classifier, copies);
    let (a, b) = (exported.classes(crops)?, classifier.classes(crops)?);
    for (a, b) in a.iter().zip(&b) {
        found.classifier = found.classifier.max(furthest(&a.0, &b.0));
    }
    for (network, found) in [("segmenter", found.segmenter), ("classifier", found.classifier)] {
        if found.is_nan() || found > ALLOWED {
            return Err(TrainingError::Parity { network, found, allowed: ALLOWED });
        }
    }
    Ok(found)
}

/// Largest difference of two lists; infinite when they are of different length.
fn furthest(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() {
        return f32::INFINITY;
    }
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
