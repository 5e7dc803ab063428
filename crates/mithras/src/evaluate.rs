//! Detections against ground truth (D6): per case, pooled, per tumour type.

use crate::export::{CountsFile, DetectionRow, read_detections};
use crate::job::stem;
use crate::report;
use mitosis::matching::{Rule, Tally, match_points};
use mitosis::text::Shown;
use mitosis::{Level0, Microns, Physical, Point};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why nothing was evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// The truth is not as documented.
    #[error("{}: {reason}", Shown(path))]
    Truth {
        /// The file.
        path: PathBuf,
        /// Row and reason.
        reason: String,
    },
    /// The predictions cannot be read.
    #[error(transparent)]
    Detections(#[from] crate::export::ReadError),
    /// The predictions cannot be read.
    #[error(transparent)]
    Counts(#[from] report::ReportError),
    /// The truth names slides without predictions.
    #[error(
        "no predictions in {} for {count} of {total} slides of the truth, the first: {first}; \
         every slide of the truth must have been run",
        Shown(dir)
    )]
    Missing {
        /// The folder of predictions.
        dir: PathBuf,
        /// How many.
        count: usize,
        /// Of how many.
        total: usize,
        /// One of them.
        first: String,
    },
    /// The radius is none, or a point is no number.
    #[error(transparent)]
    Match(#[from] mitosis::matching::MatchError),
    /// A stored resolution is none.
    #[error("{slide}: {source}")]
    Resolution {
        /// The slide.
        slide: String,
        /// What is wrong.
        source: mitosis::MppError,
    },
}

/// A coordinate as the truth gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Level0(f64, f64),
    Physical(f64, f64),
}

/// Ground truth of one slide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TruthCase {
    points: Vec<Place>,
    tumour: Option<String>,
}

/// Ground truth by slide name.
pub type Truth = BTreeMap<String, TruthCase>;

/// Reads ground truth: CSV with a column that names the slide (`slide`, `file`, `filename`, `case`
/// or `image`; matched by file name without suffix) and a position: `x_um`, `y_um`, or level-0
/// pixels as `x_px`/`x`/`cx` and `y_px`/`y`/`cy`. Optional: `kind` (rows other than `mitotic` or
/// `mitotic figure` are left out) and `tumour` (or `tumor`, `tumour_type`, `tumor_type`). A row with
/// empty positions says that the slide was looked at.
///
/// # Errors
/// [`EvaluateError::Truth`] for a missing column or a position that is no number.
pub fn read_truth(path: &Path) -> Result<Truth, EvaluateError> {
    let fail = |reason: String| EvaluateError::Truth { path: path.to_owned(), reason };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(path)
        .map_err(|e| fail(e.to_string()))?;
    let header = reader.headers().map_err(|e| fail(e.to_string()))?.clone();
    let column = |names: &[&str]| {
        names.iter().find_map(|n| header.iter().position(|h| h.eq_ignore_ascii_case(n)))
    };
    let has: Vec<&str> = header.iter().collect();
    let slide = column(&["slide", "file", "filename", "case", "image"]).ok_or_else(|| {
        fail(format!("no column slide, file, filename, case or image; it has {}", has.join(", ")))
    })?;
    let um = column(&["x_um"]).zip(column(&["y_um"]));
    let px = column(&["x_px", "x", "cx"]).zip(column(&["y_px", "y", "cy"]));
    let (x, y) = px.or(um).ok_or_else(|| {
        fail(format!(
            "no columns x_px, y_px (or x, y; cx, cy; x_um, y_um); it has {}",
            has.join(", ")
        ))
    })?;
    let kind = column(&["kind"]);
    let tumour = column(&["tumour", "tumor", "tumour_type", "tumor_type"]);
    let mut truth = Truth::new();
    for (i, row) in reader.records().enumerate() {
        let row = row.map_err(|e| fail(e.to_string()))?;
        let cell = |c: usize| row.get(c).unwrap_or("");
        if cell(slide).is_empty() {
            return Err(fail(format!("row {}: names no slide", i + 1)));
        }
        let case = truth.entry(stem(Path::new(cell(slide)))).or_default();
        if let Some(t) = tumour.map(cell).filter(|t| !t.is_empty()) {
            if case.tumour.as_deref().is_some_and(|known| known != t) {
                return Err(fail(format!("row {}: a slide with two tumour types", i + 1)));
            }
            case.tumour = Some(t.to_owned());
        }
        let wanted = kind.map(cell).is_none_or(|k| matches!(k, "mitotic" | "mitotic figure"));
        if !wanted || (cell(x).is_empty() && cell(y).is_empty()) {
            continue;
        }
        let number = |c: usize| {
            cell(c)
                .parse::<f64>()
                .ok()
                .filter(|v| v.is_finite())
                .ok_or_else(|| fail(format!("row {}: `{}` is no position", i + 1, cell(c))))
        };
        let (vx, vy) = (number(x)?, number(y)?);
        case.points.push(if px.is_some() {
            Place::Level0(vx, vy)
        } else {
            Place::Physical(vx, vy)
        });
    }
    if truth.is_empty() { Err(fail("has no rows".into())) } else { Ok(truth) }
}

/// What one evaluation found.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// `mithras.evaluation/1`.
    pub schema: &'static str,
    /// Matching radius, um.
    pub radius_um: f64,
    /// Slides evaluated.
    pub slides: usize,
    /// Figures of the truth.
    pub truth: usize,
    /// Slides with predictions that the truth does not name; left out.
    pub without_truth: Vec<String>,
    /// One per rule.
    pub rules: Vec<RuleResult>,
}

/// What one rule gives.
#[derive(Clone, Debug, Serialize)]
pub struct RuleResult {
    /// `midog` or `optimal`.
    pub rule: Rule,
    /// Over all slides, at the recorded threshold pair.
    pub pooled: Figures,
    /// Per tumour type, where the truth names it.
    pub tumours: BTreeMap<String, Figures>,
    /// Per slide.
    pub cases: BTreeMap<String, Figures>,
    /// How the pooled figures move with the last threshold. For information: a threshold chosen here
    /// is chosen on the test set.
    pub sweep: Vec<SweepPoint>,
}

/// Counts with the three figures made of them; none where undefined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Counts.
    #[serde(flatten)]
    pub tally: Tally,
    /// TP / (TP + FP).
    pub precision: Option<f64>,
    /// TP / (TP + FN).
    pub recall: Option<f64>,
    /// 2 TP / (2 TP + FP + FN).
    pub f1: Option<f64>,
}

impl From<Tally> for Figures {
    fn from(tally: Tally) -> Self {
        Self { tally, precision: tally.precision(), recall: tally.recall(), f1: tally.f1() }
    }
}

/// Pooled figures at another threshold on the last stage's score.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SweepPoint {
    /// Threshold on `s_cls`, or on `s_seg` when segmentation ran alone.
    pub threshold: f32,
    /// Figures there.
    #[serde(flatten)]
    pub figures: Figures,
}

struct Case {
    name: String,
    tumour: Option<String>,
    truth: Vec<Point<Physical>>,
    rows: Vec<DetectionRow>,
    seg: f32,
}

fn physical(rows: impl Iterator<Item = DetectionRow>) -> Vec<Point<Physical>> {
    rows.map(|r| Point::new(r.x_um, r.y_um)).collect()
}

/// Evaluates the slides below `dir` (a run's folder, or one slide's) against `truth`.
///
/// # Errors
/// [`EvaluateError`].
pub fn evaluate(
    dir: &Path,
    truth: &Truth,
    radius: Microns,
    rules: &[Rule],
) -> Result<Evaluation, EvaluateError> {
    let folder = |name: &str| {
        let own = dir.join(name);
        let is_self =
            dir.file_name().is_some_and(|f| f == name) && dir.join("counts.json").is_file();
        if is_self { dir.to_owned() } else { own }
    };
    let lacking: Vec<&String> =
        truth.keys().filter(|n| !folder(n).join("counts.json").is_file()).collect();
    if let Some(first) = lacking.first() {
        return Err(EvaluateError::Missing {
            dir: dir.to_owned(),
            count: lacking.len(),
            total: truth.len(),
            first: (*first).clone(),
        });
    }
    let mut cases = Vec::new();
    for (name, case) in truth {
        let folder = folder(name);
        let counts: CountsFile = report::counts(&folder)?;
        let resolution = counts
            .resolution()
            .map_err(|source| EvaluateError::Resolution { slide: name.clone(), source })?;
        let points = case.points.iter().map(|p| match *p {
            Place::Level0(x, y) => resolution.to_physical(Point::<Level0>::new(x, y)),
            Place::Physical(x, y) => Point::new(x, y),
        });
        cases.push(Case {
            name: name.clone(),
            tumour: case.tumour.clone(),
            truth: points.collect(),
            rows: read_detections(&folder.join("detections.csv"))?,
            seg: counts.thresholds.seg.get(),
        });
    }
    let rules = rules
        .iter()
        .map(|&rule| one_rule(&cases, radius, rule))
        .collect::<Result<_, EvaluateError>>()?;
    Ok(Evaluation {
        schema: "mithras.evaluation/1",
        radius_um: radius.0,
        slides: cases.len(),
        truth: cases.iter().map(|c| c.truth.len()).sum(),
        without_truth: without_truth(dir, truth),
        rules,
    })
}

fn one_rule(cases: &[Case], radius: Microns, rule: Rule) -> Result<RuleResult, EvaluateError> {
    let mut pooled = Tally::default();
    let mut tumours: BTreeMap<String, Tally> = BTreeMap::new();
    let mut own = BTreeMap::new();
    for case in cases {
        let accepted = physical(case.rows.iter().copied().filter(|r| r.accepted));
        let tally = match_points(&case.truth, &accepted, radius, rule)?.tally;
        pooled += tally;
        if let Some(t) = &case.tumour {
            *tumours.entry(t.clone()).or_default() += tally;
        }
        own.insert(case.name.clone(), Figures::from(tally));
    }
    let mut sweep = Vec::new();
    for step in 1..20u8 {
        let threshold = f32::from(step) / 20.0;
        let mut tally = Tally::default();
        for case in cases {
            let kept = case.rows.iter().copied().filter(|r| match r.s_cls {
                Some(s) => r.s_seg >= case.seg && s >= threshold,
                None => r.s_seg >= threshold,
            });
            tally += match_points(&case.truth, &physical(kept), radius, rule)?.tally;
        }
        sweep.push(SweepPoint { threshold, figures: tally.into() });
    }
    Ok(RuleResult {
        rule,
        pooled: pooled.into(),
        tumours: tumours.into_iter().map(|(k, v)| (k, v.into())).collect(),
        cases: own,
        sweep,
    })
}

fn without_truth(dir: &Path, truth: &Truth) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|e| e.path().join("counts.json").is_file())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|n| !truth.contains_key(n))
        .collect();
    names.sort();
    names
}
