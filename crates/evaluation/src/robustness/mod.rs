//! How a detector's scores hold under changes that must not matter: the same labelled images, as
//! they are and under a grid of named perturbations, at the package's operating point.

mod areas;
mod card;
mod choose;
pub mod crops;
mod display;
mod error;
pub mod fold;
mod labelled;
mod options;
pub mod point;
mod result;
mod weighted_counts;

use base::file::ReadError;
use base::progress::Listener;
use std::path::{Path, PathBuf};

use base::file;
use base::table::Writer;
use detect::{Control, Job};
use mitosis::matching::{Scored, Tally};
use mitosis::{Mpp, OperatingPoint, Score};
use pixels::perturb::Perturbation;
use slide::{OpenOptions, Slide};

use crate::evaluate::Truth;
use mithras::detector::Detector;
use mithras::input::stem;
use result::{score, scored};

pub use areas::{Areas, read_areas};
pub use card::Measured;
pub use choose::choose;
pub use error::RobustnessError;
pub use labelled::Labelled;
pub use options::Options;
pub use result::{Looked, Robustness, Row, SCHEMA, ScoredCandidate, WorstChange};

/// Flat images of a folder whose names are `wanted`, in order of their names, every `every`-th.
///
/// # Errors
/// A folder that cannot be read, or no such image in it.
pub fn images(
    folder: &Path,
    every: usize,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<PathBuf>, RobustnessError> {
    let fail = |e: ReadError| RobustnessError::Image { path: e.path, reason: e.source.to_string() };
    let mut all = vec![];
    for path in base::walk::entries(folder).map_err(fail)? {
        let kind = path.extension().map(|x| x.to_string_lossy().to_lowercase());
        let flat = matches!(kind.as_deref(), Some("jpg" | "jpeg" | "png" | "tif" | "tiff"));
        if flat && wanted(&stem(&path)) {
            all.push(path);
        }
    }
    let all: Vec<PathBuf> = all.into_iter().step_by(every.max(1)).collect();
    if all.is_empty() {
        let what = format!("{} holds no image to measure on", folder.display());
        return Err(RobustnessError::Nothing(what));
    }
    Ok(all)
}

/// With its own scores.
fn plain(f: &ScoredCandidate) -> Scored {
    scored(f, f.s_cls.map(score))
}

/// Measures a detector on `images` under the clean image and every change. Without `truth` the
/// images are assumed to hold no figures, and only the false positives per mm2 are meaningful.
///
/// # Errors
/// [`RobustnessError`].
pub fn run(
    detector: &mut Detector,
    images: &[PathBuf],
    truth: Option<&Truth>,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<Robustness, RobustnessError> {
    let mut load = |i: usize| Labelled::read(&images[i], truth, options);
    over(detector, images.len(), &mut load, options, listener)
}

/// As [`run`], on `count` images that are read one after the other.
///
/// # Errors
/// [`RobustnessError`].
pub fn over(
    detector: &mut Detector,
    count: usize,
    load: &mut dyn FnMut(usize) -> Result<Labelled, RobustnessError>,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<Robustness, RobustnessError> {
    if count == 0 {
        return Err(RobustnessError::Nothing("no images to measure on".into()));
    }
    let folder = tempfile::tempdir().map_err(|e| RobustnessError::Nothing(e.to_string()))?;
    let mut changes = vec![Perturbation::Clean];
    changes.extend(options.changes.iter().filter(|c| **c != Perturbation::Clean));
    let mut looked: Vec<Vec<Looked>> = vec![vec![]; changes.len()];
    let mut mm2 = 0.0;
    for index in 0..count {
        let image = load(index)?;
        mm2 += image.mm2();
        for (change, rows) in changes.iter().zip(&mut looked) {
            let found = look(detector, &image, *change, index as u64, folder.path())?;
            rows.push(Looked {
                image: image.name.clone(),
                truth: image.truth.iter().map(|p| (p.x, p.y)).collect(),
                found,
            });
        }
        listener.report(&format!("{} of {count}: {}", index + 1, image.name));
    }
    let point = detector.config.thresholds.clone();
    let rows = changes
        .iter()
        .zip(looked)
        .map(|(change, images)| row(change.to_string(), images, &point, mm2, options))
        .collect::<Result<Vec<Row>, RobustnessError>>()?;
    let f1: Vec<f64> = rows.iter().filter_map(|r| r.f1).collect();
    let worst = rows
        .iter()
        .filter_map(|r| Some(WorstChange { change: r.perturbation.clone(), f1: r.f1? }))
        .min_by(|a, b| a.f1.total_cmp(&b.f1));
    Ok(Robustness {
        schema: SCHEMA.into(),
        model: detector.config.model.name.clone(),
        operating_point: point,
        radius_um: options.radius.0,
        rule: options.rule,
        mm2,
        figures: rows[0].images.iter().map(|l| l.truth.len()).sum(),
        mean_f1: (!f1.is_empty()).then(|| f1.iter().sum::<f64>() / f1.len() as f64),
        worst,
        rows,
    })
}

fn row(
    perturbation: String,
    images: Vec<Looked>,
    point: &OperatingPoint,
    mm2: f64,
    options: &Options,
) -> Result<Row, RobustnessError> {
    let mut tally = Tally::default();
    let (mut scores, mut figure) = (vec![], vec![]);
    for l in &images {
        tally += l.case(plain).tally(point, options.radius, options.rule)?;
        scores.extend(l.found.iter().map(|f| f64::from(f.s_cls.unwrap_or(f.s_seg))));
        figure.extend(l.near_figures(options.radius.0));
    }
    Ok(Row {
        perturbation,
        f1: tally.f1(),
        precision: tally.precision(),
        recall: tally.recall(),
        auc: stats::metrics::roc_auc(&scores, &figure).ok().flatten(),
        false_per_mm2: tally.fp as f64 / mm2,
        tally,
        images,
    })
}

/// Every candidate of one image under one change, through the same reader and pipeline as a slide.
fn look(
    detector: &mut Detector,
    image: &Labelled,
    change: Perturbation,
    index: u64,
    folder: &Path,
) -> Result<Vec<ScoredCandidate>, RobustnessError> {
    let path = folder.join("image.png");
    let bad = |reason: String| RobustnessError::Image { path: path.clone(), reason };
    let tile = change.apply(&image.tile, index);
    let (w, h) = (tile.width as u32, tile.height as u32);
    let buffer = image::RgbImage::from_raw(w, h, tile.data)
        .ok_or_else(|| bad("a buffer of another size".into()))?;
    buffer.save(&path).map_err(|e| bad(e.to_string()))?;
    let mpp = Mpp::new(image.resolution.x.get() * change.stated());
    let mpp = mpp.map_err(|e| bad(e.to_string()))?;
    let open = OpenOptions { mpp: Some(mpp), ..OpenOptions::default() };
    let slide = Slide::open_with(&path, &open).map_err(|e| bad(e.to_string()))?;
    let fail = |source| RobustnessError::Detect {
        image: image.name.clone(),
        perturbation: change.to_string(),
        source,
    };
    let job = Job::whole(&slide, &detector.config.recipe).map_err(fail)?;
    let result = detector.windows(&slide, &job, Control::default()).map_err(fail)?;
    let counts =
        |d: &&mitosis::Detection| image.counts(d.candidate.centroid.x, d.candidate.centroid.y);
    let found = result.detections().filter(counts).map(|d| {
        // Pixels are where they were: the true resolution places them.
        let at = image.resolution.to_physical(d.candidate.centroid);
        ScoredCandidate {
            x_um: at.x,
            y_um: at.y,
            s_seg: d.candidate.s_seg.get(),
            s_cls: d.s_cls.map(Score::get),
        }
    });
    Ok(found.collect())
}

impl Robustness {
    /// Reads a folder that [`Self::write`] wrote.
    ///
    /// # Errors
    /// The file that is missing or of another schema.
    pub fn open(dir: &Path) -> Result<Self, base::json::JsonError> {
        base::json::read_schema(&dir.join("robustness.json"), SCHEMA)
    }

    /// Writes `robustness.csv`, `robustness.json`, `robustness.svg` and `candidates.csv`.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(&self, dir: &Path) -> Result<(), RobustnessError> {
        let text = |v: Option<f64>| v.map(|v| format!("{v:.4}")).unwrap_or_default();
        let mut table = Writer::new([
            "perturbation",
            "tp",
            "fp",
            "fn",
            "precision",
            "recall",
            "f1",
            "auc",
            "false_per_mm2",
        ]);
        let mut all =
            Writer::new(["perturbation", "image", "x_um", "y_um", "s_seg", "s_cls", "figure"]);
        for r in &self.rows {
            table.push([
                r.perturbation.clone(),
                r.tally.tp.to_string(),
                r.tally.fp.to_string(),
                r.tally.fn_.to_string(),
                text(r.precision),
                text(r.recall),
                text(r.f1),
                text(r.auc),
                format!("{:.3}", r.false_per_mm2),
            ]);
            for l in &r.images {
                for (f, figure) in l.found.iter().zip(l.near_figures(self.radius_um)) {
                    all.push([
                        r.perturbation.clone(),
                        l.image.clone(),
                        format!("{:.2}", f.x_um),
                        format!("{:.2}", f.y_um),
                        f.s_seg.to_string(),
                        f.s_cls.map(|s| s.to_string()).unwrap_or_default(),
                        figure.to_string(),
                    ]);
                }
            }
        }
        table.write(&dir.join("robustness.csv"))?;
        all.write(&dir.join("candidates.csv"))?;
        file::write(&dir.join("robustness.svg"), display::bars(self).as_bytes())?;
        base::json::write(&dir.join("robustness.json"), self)?;
        Ok(())
    }
}
