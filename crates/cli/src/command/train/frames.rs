//! Detection on labelled frames with trained weights, through the same `detect` as on slides.

use anyhow::{Context, Result, anyhow};
use detect::{CancelToken, CandidateRule, CropRecipe, Grid, Job, Recipe, Workers};
use mitosis::{Classifier, Detection, Mpp, Resolution, Score, Segmenter};
use slide::{OpenOptions, Slide};
use std::path::{Path, PathBuf};

/// From probabilities to candidates; written into the package's card.
#[derive(clap::Args, Debug, Clone)]
pub struct CandidateArgs {
    /// Probability threshold of candidate regions (D3)
    #[arg(long, default_value_t = 0.2)]
    pub threshold: f32,
    /// Radius of the morphological opening, px
    #[arg(long, default_value_t = 1)]
    pub opening_radius: u32,
    /// Smallest region, px
    #[arg(long, default_value_t = 20)]
    pub min_area: u32,
}

/// Windows of the first stage (D2).
pub const WINDOW: u32 = 512;
/// Their stride.
pub const STRIDE: u32 = 400;

impl CandidateArgs {
    /// The recipe, with a second stage on crops of `(crop, input)` px where given: side at 0.25
    /// um/px, and of the network's input.
    pub fn recipe(&self, crop: Option<(u32, u32)>) -> Result<Recipe> {
        let crops = crop.map(|(crop, input)| {
            let (mpp, side) =
                infer::preprocess::sampling(Mpp::PAPER, crop as usize, input as usize);
            CropRecipe { mpp, side: side as u32, positive: train::finetune::CLASSES[1].into() }
        });
        Ok(Recipe {
            mpp: Mpp::PAPER,
            grid: Grid::new(WINDOW, STRIDE)?,
            candidates: CandidateRule::Regions {
                threshold: Score::new(self.threshold)?,
                opening_radius: self.opening_radius,
                min_area_px: u64::from(self.min_area),
            },
            crops,
            max_unread_share: 0.0,
        })
    }
}

/// The frame's resolution, as the data states it.
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
    let job = Job::whole(&slide, recipe)?;
    let workers = Workers { readers: 1, ..Workers::default() };
    let found = detect::run(
        &slide,
        &job,
        segmenter,
        classifier,
        recipe,
        &workers,
        None,
        &mut (),
        &CancelToken::new(),
    )
    .with_context(|| path.display().to_string())?;
    match found.unclassified.first() {
        Some(u) => Err(anyhow!("{}: a crop could not be read: {}", path.display(), u.reason)),
        None => Ok(found.detections),
    }
}

/// Where a scene's image lies in the data folder.
pub fn image_of(data: &Path, scene: &corpus::crops::Scene) -> PathBuf {
    let folder = if scene.partial { "partial" } else { "frames" };
    data.join("icpr2012").join(folder).join(format!("{}.jpg", scene.name))
}
