//! The ICPR frames as the single verbs detect on them.

use anyhow::{Context, Result};
use corpus::crops::Scene;
use detect::Recipe;
use mithras::train::frames::{self, Candidates};
use mitosis::{Classifier, Detection, Mpp, Resolution, Segmenter};
use slide::{OpenOptions, Slide};
use std::path::{Path, PathBuf};

/// From probabilities to candidates; written into the package's card.
#[derive(clap::Args, Debug, Clone)]
pub struct CandidateArgs {
    /// Probability threshold of candidate regions
    #[arg(long, default_value_t = 0.2)]
    threshold: f32,
    /// Radius of the morphological opening, px
    #[arg(long, default_value_t = 1)]
    opening_radius: u32,
    /// Smallest region, px
    #[arg(long, default_value_t = 20)]
    min_area: u32,
}

impl CandidateArgs {
    pub fn resolved(&self) -> Candidates {
        Candidates {
            threshold: self.threshold,
            opening_radius: self.opening_radius,
            min_area_px: self.min_area,
        }
    }
}

/// The frames' resolution, as the data states it.
pub fn resolution() -> Resolution {
    Resolution::user(Mpp::new(corpus::icpr::APERIO_MPP).expect("a plausible constant"))
}

/// All candidates of one frame, accepted or not.
pub fn detect(
    path: &Path,
    recipe: &Recipe,
    segmenter: &mut dyn Segmenter,
    classifier: Option<&mut dyn Classifier>,
) -> Result<Vec<Detection>> {
    let options = OpenOptions { mpp: Some(resolution().x), ..OpenOptions::default() };
    let slide = Slide::open_with(path, &options)?;
    frames::detect(&slide, recipe, segmenter, classifier)
        .with_context(|| path.display().to_string())
}

/// Where a scene's image lies in the data folder.
pub fn image_of(data: &Path, scene: &Scene) -> PathBuf {
    let folder = if scene.partial { "partial" } else { "frames" };
    data.join("icpr2012").join(folder).join(format!("{}.jpg", scene.name))
}
