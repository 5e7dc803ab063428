//! How fast the networks of a package run (`mithras doctor`).

use crate::card::ModelCard;
use crate::engine::{EngineError, EngineOptions, EngineReport, open};
use crate::package::ModelPackage;
use base::remedy::{Remedied, Remedy};
use mitosis::{PortError, RgbTile};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Times on this machine, everything from 8-bit pixels to probabilities included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// What ran.
    pub report: EngineReport,
    /// Seconds from package bytes to networks that have run once.
    pub load_s: f64,
    /// Median seconds per window of the segmenter.
    pub window_s: Option<f64>,
    /// Median seconds of one pass of the classifier, per crop; flips and turns are further passes.
    pub crop_s: Option<f64>,
    /// Median seconds of the screen in front of the classifier, per crop, where the package has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen_s: Option<f64>,
}

/// Why nothing could be timed.
#[derive(Debug, thiserror::Error)]
pub enum TimingError {
    /// No engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine stopped.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Runs each network `runs` times over its batch and takes the median.
///
/// # Errors
/// [`TimingError`] when the engine does not open or does not run.
pub fn time(
    package: &ModelPackage,
    options: &EngineOptions,
    runs: usize,
) -> Result<Timing, TimingError> {
    // One pass of every crop: the time must not depend on what the network makes of the pixels below.
    let mut package = package.clone();
    if let Some(c) = &mut package.card.classifier {
        (c.symmetries, c.symmetries_from) = (1, None);
    }
    let screen_s = screen(&package, options, runs)?;
    package.card.screen = None;
    let start = Instant::now();
    let mut models = open(&package, options)?;
    let load_s = start.elapsed().as_secs_f64();
    let window_s = match (&package.card.segmenter, &mut models.segmenter) {
        (Some(card), Some(s)) => {
            let tiles = speckle(card.window, models.report.segmenter_batch);
            Some(median(runs, tiles.len(), || s.probabilities(&tiles).map(drop))?)
        }
        _ => None,
    };
    let crop_s = match (&package.card.classifier, &mut models.classifier) {
        (Some(card), Some(c)) => {
            let tiles = speckle(card.crop, models.report.classifier_batch);
            Some(median(runs, tiles.len(), || c.classes(&tiles).map(drop))?)
        }
        _ => None,
    };
    Ok(Timing { report: models.report, load_s, window_s, crop_s, screen_s })
}

/// Seconds of the screen per crop: nothing passes it.
fn screen(
    package: &ModelPackage,
    options: &EngineOptions,
    runs: usize,
) -> Result<Option<f64>, TimingError> {
    let (Some(screen), Some(second)) = (&package.card.screen, &package.card.classifier) else {
        return Ok(None);
    };
    let card = ModelCard {
        segmenter: None,
        candidates: None,
        classifier: Some(screen.as_classifier(second)),
        screen: None,
        ..package.card.clone()
    };
    let bytes = package.screen().unwrap_or_default().to_vec();
    let Ok(alone) = ModelPackage::of_one(&card, bytes) else { return Ok(None) };
    let mut models = open(&alone, options)?;
    let Some(c) = &mut models.classifier else { return Ok(None) };
    let tiles = speckle(second.crop, models.report.classifier_batch);
    Ok(Some(median(runs, tiles.len(), || c.classes(&tiles).map(drop))?))
}

/// Pixels that are not all the same, so that no kernel meets an easy case.
fn speckle(side: usize, n: usize) -> Vec<RgbTile> {
    let data: Vec<u8> =
        (0..3 * side * side).map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 7) as u8).collect();
    vec![RgbTile::new(side, side, data); n]
}

fn median(
    runs: usize,
    images: usize,
    mut run: impl FnMut() -> Result<(), PortError>,
) -> Result<f64, PortError> {
    let mut seconds = Vec::with_capacity(runs.max(1));
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        run()?;
        seconds.push(start.elapsed().as_secs_f64() / images as f64);
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}

impl Remedied for TimingError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Engine(e) => e.remedy(),
            _ => None,
        }
    }
}
