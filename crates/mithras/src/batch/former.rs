//! Whether results of the version of the numbers before are those of this one: asked of the slide, opened again.

use super::finished;
use crate::detector::{Detector, RunError};
use crate::input::Input;
use slide::{Slide, SlideError, TissueMask};
use std::path::Path;

/// Equal resolutions differ by no more, as a share: files hold them in decimals.
const SAME: f64 = 1e-9;

/// Why results of version 1 on an opened slide may be other than those of this version; none where both read
/// the same.
#[must_use]
pub fn outdated_slide(slide: Result<Slide, SlideError>) -> Option<String> {
    sentence(slide.and_then(|s| s.read_otherwise_by_version_1()))
}

/// The same for detections, whose files state size, resolution and tissue: those are compared, too.
pub(super) fn outdated_results(
    detector: &Detector,
    input: &Input,
    folder: &Path,
) -> Option<String> {
    sentence(changes(detector, input, folder))
}

fn sentence<E: std::error::Error>(why: Result<Vec<String>, E>) -> Option<String> {
    match why {
        Ok(why) if why.is_empty() => None,
        Ok(why) => Some(why.join("; ")),
        Err(e) => Some(e.to_string()),
    }
}

fn changes(detector: &Detector, input: &Input, folder: &Path) -> Result<Vec<String>, RunError> {
    let slide = detector.opener.open(input)?;
    let mut why = slide.read_otherwise_by_version_1()?;
    let (resolution, _) = detector.opener.fitting(&slide)?;
    let tissue = TissueMask::find_with(&slide, &detector.config.tissue)?;
    // A level of which tiles cannot be decoded is passed over since.
    let notes: Vec<String> = slide.level_notes();
    notes.into_iter().for_each(|note| {
        if !why.contains(&note) {
            why.push(note);
        }
    });
    let counts = match finished::results(folder) {
        Ok(results) => results.counts,
        Err(e) => {
            why.push(e.to_string());
            return Ok(why);
        }
    };
    if (counts.slide.width, counts.slide.height) != slide.dimensions() {
        why.push("another image of the file was read".into());
    }
    let (x, y) = (resolution.x.get(), resolution.y.get());
    let differs = |a: f64, b: f64| (a / b - 1.0).abs() > SAME;
    if differs(counts.resolution.x, x) || differs(counts.resolution.y, y) {
        why.push(format!("the resolution was {} and is {x} um/px", counts.resolution.x));
    }
    let tissue = (tissue.area_mm2() * 1e6).round() / 1e6;
    if counts.regions.is_none() && (counts.tissue_mm2 - tissue).abs() > 1e-6 {
        why.push(format!("tissue was {} mm2 and is {tissue} mm2", counts.tissue_mm2));
    }
    Ok(why)
}
