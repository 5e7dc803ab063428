//! Detection on labelled frames with trained weights, through the same `detect` as on slides.

use anyhow::{Context, Result, anyhow};
use artifact::digest::{Digest, Sha256};
use detect::{CancelToken, CandidateRule, CropRecipe, Grid, Job, Recipe, Workers};
use mitosis::{
    Classifier, Detection, Mpp, PortError, ProbMap, Resolution, RgbTile, Score, Segmenter,
};
use slide::{OpenOptions, Slide};
use std::collections::HashMap;
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

/// Remembers what the segmenter said about a tile, so that several second stages cost one first;
/// with a folder, over several calls.
pub struct Remembering<S> {
    inner: S,
    seen: HashMap<[u8; 32], ProbMap>,
    folder: Option<PathBuf>,
    weights: Vec<u8>,
}

impl<S> Remembering<S> {
    /// `weights` tells one segmenter's maps from another's.
    pub fn new(inner: S, folder: Option<PathBuf>, weights: Vec<u8>) -> Self {
        Self { inner, seen: HashMap::new(), folder, weights }
    }

    pub fn forget(&mut self) {
        self.seen.clear();
    }
}

impl<S: Segmenter> Remembering<S> {
    fn map(&mut self, w: &RgbTile) -> Result<ProbMap, PortError> {
        let mut hash = Sha256::new_with_prefix(&self.weights);
        hash.update(&w.data);
        let key: [u8; 32] = hash.finalize().into();
        if let Some(map) = self.seen.get(&key) {
            return Ok(map.clone());
        }
        let name = artifact::digest::hex(&key);
        let file = self.folder.as_ref().map(|f| f.join(name));
        let kept = file.as_ref().and_then(|f| std::fs::read(f).ok());
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
                    artifact::file::write(&file, &bytes).map_err(|e| PortError::Engine {
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
