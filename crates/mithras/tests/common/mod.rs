//! A drawn slide, and models that know no more than darkness: fast, exact, the same everywhere.
#![allow(dead_code, reason = "each test file uses its part")]

use detect::{CandidateRule, CropRecipe, Grid, Recipe, Workers};
use infer::EngineReport;
use mithras::Detector;
use mithras::batch::Input;
use mithras::demo::{Container, Layout, Spec, write};
use mithras::detector::{Config, Networks, Opener};
use mithras::record::ModelEntry;
use mitosis::{
    ClassProbs, Classifier, Mpp, OperatingPoint, PortError, ProbMap, RgbTile, Score, Segmenter,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Draws a slide with its truth. Each test is a process, and many want the same slide: this build of the tests draws it
/// once and copies it.
pub fn draw(path: &Path, width: u32, height: u32, seed: u64, figures: usize) -> Layout {
    let layout = Layout::new(Spec::new(width, height, seed, figures).unwrap()).unwrap();
    let kept = drawings().join(format!("{width}x{height}-{seed}-{figures}.tiff"));
    if std::fs::copy(&kept, path).is_err() {
        write(&layout, &kept, Container::Auto, &mut mithras::progress::Silent).unwrap();
        std::fs::copy(&kept, path).unwrap();
    }
    layout
}

/// Where this build of the tests keeps what it drew; drawings of earlier builds are removed.
fn drawings() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = std::fs::metadata(&tests).unwrap().modified().unwrap();
    let built = built.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos().to_string();
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drawn").join(env!("CARGO_PKG_NAME"));
    let own = all.join(&built);
    if !own.is_dir() {
        for older in std::fs::read_dir(&all).into_iter().flatten().flatten() {
            if older.file_name() != *built {
                let _ = std::fs::remove_dir_all(older.path());
            }
        }
        std::fs::create_dir_all(&own).unwrap();
    }
    own
}

fn dark(p: &[u8]) -> f32 {
    let grey = 0.299 * f32::from(p[0]) + 0.587 * f32::from(p[1]) + 0.114 * f32::from(p[2]);
    ((130.0 - grey) / 90.0).clamp(0.0, 1.0)
}

/// Probability by darkness; can panic after so many windows, like a kill.
pub struct Dark {
    pub left: Arc<AtomicUsize>,
}

impl Segmenter for Dark {
    fn probabilities(&mut self, windows: &[RgbTile]) -> Result<Vec<ProbMap>, PortError> {
        for _ in windows {
            let more =
                self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
            if more.is_err() {
                // What was handed on before the kill reaches the store first.
                std::thread::sleep(std::time::Duration::from_millis(500));
                return Err(PortError::Engine { engine: "dark".into(), message: "killed".into() });
            }
        }
        Ok(windows
            .iter()
            .map(|w| ProbMap {
                width: w.width,
                height: w.height,
                data: w.data.chunks_exact(3).map(dark).collect(),
            })
            .collect())
    }
}

/// How much of the middle is dark.
pub struct Middle {
    names: Vec<String>,
}

impl Classifier for Middle {
    fn class_names(&self) -> &[String] {
        &self.names
    }

    fn classes(&mut self, crops: &[RgbTile]) -> Result<Vec<ClassProbs>, PortError> {
        Ok(crops
            .iter()
            .map(|c| {
                let mid = (c.width / 2 - 16)..(c.width / 2 + 16);
                let sum: f32 = mid
                    .clone()
                    .flat_map(|y| mid.clone().map(move |x| (x, y)))
                    .map(|(x, y)| dark(&c.pixel(x, y)))
                    .sum();
                let p = (sum / 200.0).min(1.0);
                ClassProbs(vec![1.0 - p, p])
            })
            .collect())
    }
}

pub fn setup(two: bool, left: usize, workers: Workers) -> Detector {
    let score = |p| Score::new(p).unwrap();
    let recipe = Recipe {
        overlap: detect::Overlap::Mean,
        mpp: Mpp::PAPER,
        grid: Grid::new(512, 400).unwrap(),
        candidates: CandidateRule::Regions {
            threshold: score(0.3),
            opening_radius: 1,
            min_area_px: 30,
        },
        min_separation_um: None,
        crops: two.then(|| CropRecipe { mpp: Mpp::PAPER, side: 128, positive: "mitotic".into() }),
        max_unread_share: Recipe::MAX_UNREAD_SHARE,
    };
    let engine = EngineReport {
        engine: "fake".into(),
        provider: "cpu".into(),
        library: None,
        plugin: None,
        version: "1".into(),
        segmenter_precision: "f32".into(),
        classifier_precision: "f32".into(),
        threads: 1,
        segmenter_batch: 1,
        classifier_batch: 1,
        fallback_reason: None,
    };
    let model = ModelEntry {
        name: "dark".into(),
        segmenter_sha256: "00".into(),
        classifier_sha256: two.then(|| "11".into()),
        classifier_scale: None,
        classifier_symmetries_from: None,
        screen: None,
        networks_sha256: None,
        license: "none".into(),
    };
    let point = OperatingPoint { seg: score(0.35), cls: score(0.5), provenance: "a test".into() };
    let names = vec!["non_mitotic".into(), "mitotic".into()];
    let networks = Networks::new(
        Box::new(Dark { left: Arc::new(AtomicUsize::new(left)) }),
        two.then(|| Box::new(Middle { names }) as Box<dyn Classifier>),
        engine,
    );
    let config = Config::new(recipe, point, model, &networks.engine);
    Detector::new(networks, config, workers, Opener::default())
}

pub fn input(path: &Path) -> Input {
    Input::new(path)
}

/// Every file below a folder that holds results, without the lock and what holds times.
pub fn results(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| !p.ends_with("state.json") && !p.ends_with(".lock"))
        .map(|p| (p.file_name().unwrap().into(), std::fs::read(&p).unwrap()))
        .collect();
    files.sort();
    files
}
