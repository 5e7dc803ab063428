//! The resolutions of slides that a detector's training covered, for its card.

use super::{Result, TrainingError};
use base::digest;
use infer::card::ResolutionCard;
use mitosis::Mpp;
use net::checkpoint;
use serde::Deserialize;
use std::path::Path;

/// Finest slide, um/px. Finer ones are averaged down to what was trained on; this one is of about 80x.
const FINEST: f64 = 0.12;
/// Scanners of one magnification differ by so much (20x: 0.45 to 0.55 um/px).
const SCATTER: f64 = 1.2;

/// The resolutions that a network saw by its training's preset, as factors of 0.25 um/px.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    /// By zooming: all detail of the image is there.
    zoomed: f64,
    /// By reducing and enlarging: detail is lost, as in a coarser slide.
    coarsest: f64,
}

/// Of a stage on pools, or of a classifier on crops, whose changes are under `augment`.
#[derive(Deserialize)]
struct Preset {
    spatial: Option<Zoom>,
    photometric: Option<Changes>,
    augment: Option<Augment>,
}

#[derive(Deserialize)]
struct Augment {
    placement: Placement,
    photometric: Option<Changes>,
}

#[derive(Deserialize)]
struct Placement {
    zoom: f64,
}

#[derive(Deserialize)]
struct Zoom {
    scale: f64,
}

#[derive(Deserialize)]
struct Changes {
    scanner: Option<Coarse>,
}

#[derive(Deserialize)]
struct Coarse {
    coarse: f64,
    coarse_factor: f64,
}

/// The range of the networks whose weights are at these paths in their run directories. One without a
/// preset next to it is assumed to know only 0.25 um/px.
///
/// # Errors
/// Weights or a preset that cannot be read.
pub(super) fn covered(stages: &[&Path]) -> Result<ResolutionCard> {
    let mut least = Seen { zoomed: f64::INFINITY, coarsest: f64::INFINITY };
    for stage in stages {
        let seen = seen(stage)?;
        least.zoomed = least.zoomed.min(seen.zoomed);
        least.coarsest = least.coarsest.min(seen.coarsest);
    }
    let own = Mpp::PAPER.get();
    let mpp = |v: f64| {
        Mpp::new((v * 1e3).round() / 1e3).map_err(|e| TrainingError::Invalid(e.to_string()))
    };
    let max = own * least.coarsest.max(least.zoomed) * SCATTER;
    let warn = own * least.zoomed * SCATTER;
    let warn_above = (warn < max).then(|| mpp(warn)).transpose()?;
    Ok(ResolutionCard { min: mpp(FINEST)?, max: mpp(max)?, warn_above })
}

fn seen(model: &Path) -> Result<Seen> {
    let file = model.with_file_name("preset.toml");
    let hash = checkpoint::description(model)?.map(|spec| spec.preset_hash);
    let text = match base::file::read_string(&file) {
        Ok(text) if Some(digest::sha256(&text)) == hash => text,
        _ => return Ok(Seen { zoomed: 1.0, coarsest: 1.0 }),
    };
    let preset: Preset = toml::from_str(&text).map_err(|e| TrainingError::file(&file, e))?;
    let (zoom, changes) = match (preset.spatial, preset.augment) {
        (Some(spatial), _) => (spatial.scale, preset.photometric),
        (None, Some(augment)) => (augment.placement.zoom, augment.photometric),
        (None, None) => (0.0, preset.photometric),
    };
    let coarse = changes.and_then(|c| c.scanner).filter(|s| s.coarse > 0.0);
    Ok(Seen { zoomed: 1.0 + zoom, coarsest: coarse.map_or(1.0, |s| 1.0 / s.coarse_factor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The range after a training with `changes` and a zoom of so much in either stage.
    fn range(zooms: [f64; 2], changes: [&str; 2], keep: bool) -> ResolutionCard {
        let dir = tempfile::tempdir().unwrap();
        let stage = |k: usize| {
            // Networks that are averaged differ in their seed.
            let (zoom, changes) = (zooms[k], changes[k]);
            let text = format!("seed = {k}\n[spatial]\nscale = {zoom}\n[photometric]\n{changes}");
            let folder = dir.path().join(k.to_string());
            std::fs::create_dir(&folder).unwrap();
            if keep {
                std::fs::write(folder.join("preset.toml"), &text).unwrap();
            }
            let mut spec = checkpoint::Spec::new("drawn", &(), 64).unwrap();
            spec.preset_hash = digest::sha256(&text);
            let file = folder.join("model.safetensors");
            checkpoint::save_described(&file, &std::collections::BTreeMap::new(), &spec).unwrap();
            file
        };
        covered(&[&stage(0), &stage(1)]).unwrap()
    }

    #[test]
    fn the_stage_that_saw_less_decides() {
        let scanner = "[photometric.scanner]\ncoarse = 0.25\ncoarse_factor = 0.5";
        let near = |a: Option<Mpp>, b: f64| (a.unwrap().get() - b).abs() < 1e-9;
        // 20x simulated in both: slides of 20x are run, with a warning.
        let both = range([0.25, 0.2], [scanner, scanner], true);
        assert!(near(Some(both.max), 0.6) && near(both.warn_above, 0.36), "{both:?}");
        // In one alone: a stage that never saw such slides.
        let one = range([0.25, 0.2], [scanner, ""], true);
        assert!(near(Some(one.max), 0.36) && one.warn_above.is_none(), "{one:?}");
        // A classifier on crops writes the same otherwise.
        let crops = "[augment.placement]\nzoom = 0.2\n[augment.photometric.scanner]\ncoarse = 0.25\ncoarse_factor = 0.5";
        let parsed: Preset = toml::from_str(crops).unwrap();
        assert_eq!(parsed.augment.unwrap().placement.zoom, 0.2);
        // Nobody knows what it saw.
        let unknown = range([0.25, 0.2], [scanner, scanner], false);
        assert!(near(Some(unknown.max), 0.3) && unknown.warn_above.is_none(), "{unknown:?}");
    }
}
