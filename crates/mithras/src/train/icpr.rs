//! The single verbs on the ICPR 2012 frames: hard negatives of a fold, and the operating point over
//! the left-out slides. [`super::chain`] does the same on any regions dataset.

use super::calibrate::{FIRST, ImageCase, RADIUS, Report, Settings, Stage, report};
use super::frames::{self, Candidates, Remembering, WINDOW};
use super::{DetectorError, Result};
use ::detect::{Grid, Recipe};
use artifact::file::{self, Lock};
use corpus::crops::{CropError, MarkKind, Scene};
use corpus::fold::LeftOut;
use corpus::icpr::{APERIO_MPP, Icpr};
use mitosis::matching::Rule;
use mitosis::{Classifier, Detection, Mpp, Point, Resolution, Segmenter, Symmetric};
use slide::{OpenOptions, Slide};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use train::data::ICPR_SLIDES;
use train::port::{TorchClassifier, TorchSegmenter};

fn data(e: CropError) -> DetectorError {
    train::TrainError::from(e).into()
}

fn open(folder: &Path) -> Result<Icpr> {
    Icpr::open(&folder.join("icpr2012"), Mpp::PAPER).map_err(data)
}

/// The frames' resolution, as the data states it.
fn resolution() -> Resolution {
    Resolution::user(Mpp::new(APERIO_MPP).expect("a plausible constant"))
}

/// All candidates of one frame, accepted or not.
fn detect(
    folder: &Path,
    scene: &Scene,
    recipe: &Recipe,
    segmenter: &mut dyn Segmenter,
    classifier: Option<&mut dyn Classifier>,
) -> Result<Vec<Detection>> {
    let kind = if scene.partial { "partial" } else { "frames" };
    let path = folder.join("icpr2012").join(kind).join(format!("{}.jpg", scene.name));
    let options = OpenOptions { mpp: Some(resolution().x), ..OpenOptions::default() };
    let slide = Slide::open_with(&path, &options).map_err(|e| DetectorError::file(&path, e))?;
    frames::detect(&slide, recipe, segmenter, classifier)
}

/// Where a fold's segmenter is wrong on its own training frames.
#[derive(Clone, Debug)]
pub struct Mine {
    /// Weights of the segmenter.
    pub segmenter: PathBuf,
    /// Folder with `icpr2012/`.
    pub data: PathBuf,
    /// The slide that the segmenter left out; its frames are not touched.
    pub left_out: LeftOut,
    /// How candidates are taken.
    pub candidates: Candidates,
    /// `auto`, `cpu`, `cuda`, `cuda:1`.
    pub device: String,
}

/// Writes `frame,x,y,s_seg` (pixels at 0.25 um/px) of every candidate further than the matching
/// radius from all marks; gives their number and that of the frames.
///
/// # Errors
/// Data or weights that cannot be read, a full disk.
pub fn mine(m: &Mine, out: &Path) -> Result<(usize, usize)> {
    let fold = open(&m.data)?.fold(&m.left_out).map_err(data)?;
    let mut segmenter = TorchSegmenter::open(&m.segmenter, &m.device)?;
    // No overlap: half the windows; what a seam cuts near a mark is left out anyway.
    let mut recipe = m.candidates.recipe(&segmenter.spec, None)?;
    recipe.grid = Grid::new(WINDOW, WINDOW)?;
    let to_working = APERIO_MPP / Mpp::PAPER.get();
    let radius = (RADIUS.0 / Mpp::PAPER.get()) as f32;
    let mut text = String::from("frame,x,y,s_seg\n");
    let mut n = 0;
    for scene in &fold.train.scenes {
        for d in detect(&m.data, scene, &recipe, &mut segmenter, None)? {
            let c = d.candidate.centroid;
            let (x, y) = ((c.x * to_working) as f32, (c.y * to_working) as f32);
            if scene.nearest_mark(x, y) > radius * radius {
                let _ = writeln!(text, "{},{x:.1},{y:.1},{}", scene.name, d.candidate.s_seg.get());
                n += 1;
            }
        }
    }
    file::write(out, text.as_bytes())?;
    Ok((n, fold.train.scenes.len()))
}

/// One threshold pair over the left-out slides.
#[derive(Clone, Debug)]
pub struct Calibrate {
    /// Weights of the segmenters; `{fold}` stands for the slide left out.
    pub segmenter: String,
    /// Name and weights of each second stage, with `{fold}`.
    pub classifiers: Vec<(String, String)>,
    /// Folder with `icpr2012/`.
    pub data: PathBuf,
    /// Folder that keeps the first stage's maps for a later call.
    pub cache: Option<PathBuf>,
    /// How candidates are taken.
    pub candidates: Candidates,
    /// The rule that thresholds are chosen by.
    pub rule: Rule,
    /// Side of the second stage's crops, px at 0.25 um/px.
    pub crop: u32,
    /// Flips and quarter turns of a crop whose probabilities are averaged.
    pub symmetries: u8,
    /// `auto`, `cpu`, `cuda`, `cuda:1`.
    pub device: String,
}

/// A frame with what was found on it.
fn case(scene: &Scene, found: Vec<Detection>) -> ImageCase {
    // Marks are kept at 0.25 um/px.
    let um = |v: f32| f64::from(v) * Mpp::PAPER.get();
    let figures = scene.marks.iter().filter(|m| m.kind == MarkKind::Figure);
    ImageCase {
        name: scene.name.clone(),
        truth: figures.map(|m| Point::new(um(m.x), um(m.y))).collect(),
        resolution: resolution(),
        found,
    }
}

/// Takes every frame of a slide through the models that never saw it, chooses one threshold pair for
/// all folds together, and writes the report into `out`. `told` hears of every frame.
///
/// # Errors
/// Data or weights that cannot be read, no figure or no candidate near one, a full disk.
pub fn calibrate(c: &Calibrate, out: &Path, told: &mut dyn FnMut(&str, usize)) -> Result<Report> {
    let _lock = Lock::take(out)?;
    if let Some(dir) = &c.cache {
        std::fs::create_dir_all(dir).map_err(DetectorError::io(dir))?;
    }
    let icpr = open(&c.data)?;
    let names = std::iter::once(FIRST.to_string()).chain(c.classifiers.iter().map(|s| s.0.clone()));
    let mut stages: Vec<Stage> =
        names.enumerate().map(|(i, name)| Stage { name, second: i > 0, folds: vec![] }).collect();
    for fold in ICPR_SLIDES {
        let at = |template: &str| PathBuf::from(template.replace("{fold}", fold));
        let split = icpr.fold(&LeftOut::Source(fold.into())).map_err(data)?;
        let weights = at(&c.segmenter);
        let bytes = std::fs::read(&weights).map_err(DetectorError::io(&weights))?;
        let inner = TorchSegmenter::open(&weights, &c.device)?;
        let digest = artifact::digest::sha256(&bytes).into_bytes();
        let first = c.candidates.recipe(&inner.spec, None)?;
        let mut classifiers = c
            .classifiers
            .iter()
            .map(|(_, path)| {
                let net = TorchClassifier::open(&at(path), &c.device)?;
                let recipe = c.candidates.recipe(&inner.spec, Some((c.crop, &net.spec)))?;
                Ok((Symmetric::new(net, c.symmetries), recipe))
            })
            .collect::<Result<Vec<_>>>()?;
        let mut segmenter = Remembering::new(inner, c.cache.clone(), digest);
        let mut cases: Vec<Vec<ImageCase>> = vec![vec![]; stages.len()];
        for scene in &split.validation {
            segmenter.forget();
            let found = detect(&c.data, scene, &first, &mut segmenter, None)?;
            told(&scene.name, found.len());
            cases[0].push(case(scene, found));
            for (i, (net, both)) in classifiers.iter_mut().enumerate() {
                let net: &mut dyn Classifier = net;
                let found = detect(&c.data, scene, both, &mut segmenter, Some(net))?;
                cases[i + 1].push(case(scene, found));
            }
        }
        for (stage, cases) in stages.iter_mut().zip(cases) {
            stage.folds.push((fold.to_string(), cases));
        }
    }
    let settings = Settings {
        candidates: c.candidates,
        crop: c.crop,
        symmetries: c.symmetries,
        rule: c.rule,
        frame_mpp: Some(APERIO_MPP),
    };
    let report = report(&stages, &settings)?;
    report.write(out)?;
    Ok(report)
}
