//! Whether results of the version of the numbers before are those of this one: asked of the slide, opened again.

use super::finished;
use crate::detector::{Detector, RunError};
use crate::input::Input;
use slide::TissueMask;
use std::path::Path;

/// Equal resolutions differ by no more, as a share: files hold them in decimals.
const SAME: f64 = 1e-9;

/// Why detections of a version of the numbers may be other than those of this version; empty where both give the same.
/// Their files state size, resolution and tissue: those are compared, too.
pub(super) fn changes(
    detector: &Detector,
    input: &Input,
    folder: &Path,
    version: u32,
) -> Result<Vec<String>, RunError> {
    let slide = detector.opener.open(input)?;
    let mut why = slide.differences_since(version)?;
    let (resolution, _) = detector.opener.fitting(&slide)?;
    let tissue = TissueMask::find_with(&slide, &detector.config.tissue)?;
    // A level of which tiles cannot be decoded is passed over since version 2.
    let notes = if version > 1 { Vec::new() } else { slide.level_notes() };
    let new = notes.into_iter().filter(|note| !why.contains(note)).collect::<Vec<_>>();
    why.extend(new);
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
    let area = (tissue.area_mm2() * 1e6).round() / 1e6;
    match &counts.regions {
        // The counts are of a part of the tissue.
        Some(regions) => {
            why.extend(tissue.found_otherwise());
            let below = regions.source.format == "geojson";
            why.extend(below.then(|| "regions below other objects were left out".to_owned()));
        }
        None if (counts.tissue_mm2 - area).abs() > 1e-6 => {
            why.push(format!("tissue was {} mm2 and is {area} mm2", counts.tissue_mm2));
        }
        None => {}
    }
    Ok(why)
}
