//! Detection on labelled images with trained weights, through the same `detect` as on slides.

use super::{Result, TrainingError};
use detect::{CandidateRule, Control, CropRecipe, Detector, Grid, Job, Models, Recipe, Workers};
use infer::card::CandidateMethod;
use mitosis::{Classifier, Detection, Mpp, PortError, ProbMap, RgbTile, Score, Segmenter};
use net::checkpoint::Spec;
use serde::{Deserialize, Serialize};
use slide::Slide;
use std::collections::HashMap;
use std::path::PathBuf;

/// From probabilities to candidates; written into the package's card.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Candidates {
    /// Distance within which only the highest pixel counts, px, at least 1: candidates are peaks. Without it they are
    /// regions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_distance_px: Option<u32>,
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

/// [`Candidates`] as a preset has them. Each method has keys of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    method: Option<CandidateMethod>,
    threshold: f32,
    opening_radius: Option<u32>,
    min_area_px: Option<u32>,
    min_distance_px: Option<u32>,
    #[serde(alias = "apart_um")]
    min_separation_um: Option<f64>,
}

impl TryFrom<Written> for Candidates {
    type Error = &'static str;

    fn try_from(w: Written) -> Result<Self, Self::Error> {
        use CandidateMethod::{Peaks, Regions};
        let own = if w.min_distance_px.is_some() { Peaks } else { Regions };
        let (radius, area, distance) = (w.opening_radius, w.min_area_px, w.min_distance_px);
        let (opening_radius, min_area_px) = match (w.method.unwrap_or(own), radius, area, distance)
        {
            (Regions, Some(radius), Some(area), None) => (radius, area),
            (Peaks, None | Some(0), None | Some(0), Some(1..)) => (0, 0),
            (Regions, ..) => {
                return Err(
                    "regions have `opening_radius` and `min_area_px`, and no `min_distance_px`",
                );
            }
            (Peaks, ..) => {
                return Err(
                    "peaks have `min_distance_px`, at least 1, and no `opening_radius` or `min_area_px`",
                );
            }
        };
        let (threshold, min_separation_um) = (w.threshold, w.min_separation_um);
        Ok(Self {
            min_distance_px: distance,
            threshold,
            opening_radius,
            min_area_px,
            min_separation_um,
        })
    }
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
    /// Regions or peaks.
    #[must_use]
    pub fn method(&self) -> CandidateMethod {
        match self.min_distance_px {
            Some(_) => CandidateMethod::Peaks,
            None => CandidateMethod::Regions,
        }
    }

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
            candidates: match self.min_distance_px {
                Some(min_distance_px) => CandidateRule::Peaks { threshold, min_distance_px },
                None => CandidateRule::Regions {
                    threshold,
                    opening_radius: self.opening_radius,
                    min_area_px: u64::from(self.min_area_px),
                },
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Candidates, String> {
        toml::from_str(text).map_err(|e| e.to_string())
    }

    #[test]
    fn a_preset_asks_for_regions_or_for_peaks() {
        let regions = read("threshold = 0.2\nopening_radius = 1\nmin_area_px = 20").unwrap();
        let named = "method = \"regions\"\nthreshold = 0.2\nopening_radius = 1\nmin_area_px = 20";
        assert_eq!((regions.method(), read(named).unwrap()), (CandidateMethod::Regions, regions));
        let peaks = read("method = \"peaks\"\nthreshold = 0.2\nmin_distance_px = 20").unwrap();
        assert_eq!((peaks.method(), peaks.min_distance_px), (CandidateMethod::Peaks, Some(20)));
        for kept in [regions, peaks] {
            assert_eq!(read(&toml::to_string(&kept).unwrap()).unwrap(), kept);
        }
        // As every run before there were peaks wrote it.
        let text = toml::to_string(&regions).unwrap();
        assert!(!text.contains("method") && !text.contains("distance"), "{text}");
    }

    #[test]
    fn keys_of_the_other_method_are_refused() {
        for (text, word) in [
            ("threshold = 0.2", "regions have"),
            ("threshold = 0.2\nopening_radius = 1", "regions have"),
            ("method = \"peaks\"\nthreshold = 0.2", "peaks have"),
            ("method = \"peaks\"\nthreshold = 0.2\nmin_distance_px = 0", "peaks have"),
            ("threshold = 0.2\nmin_distance_px = 9\nmin_area_px = 20", "peaks have"),
            (
                "method = \"regions\"\nthreshold = 0.2\nopening_radius = 1\nmin_area_px = 2\nmin_distance_px = 9",
                "regions have",
            ),
            ("method = \"boxes\"\nthreshold = 0.2", "boxes"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(word), "{text}: {refused}");
        }
    }
}
