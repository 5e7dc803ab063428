//! One threshold pair over the held-out folds, and what it reaches.

use super::Result;
use super::frames::Candidates;
use base::file;
use infer::card::CandidateMethod;
use mitosis::matching::{Case, Fold, Rule, Scored, Tally, calibrate};
use mitosis::{Detection, Microns, OperatingPoint, Physical, Point, Resolution};
use regions::Area;
use serde::{Serialize, Serializer};
use std::fmt::Write as _;
use std::path::Path;

/// Matching radius: 30 px at 0.25 um/px.
pub const RADIUS: Microns = Microns(7.5);

/// Name of the stage that is the first stage alone.
pub const FIRST: &str = "segmentation only";

/// A held-out image: what is there, and what was found.
#[derive(Clone, Debug)]
pub struct ImageCase {
    /// Its name.
    pub name: String,
    /// The labelled figures, um.
    pub truth: Vec<Point<Physical>>,
    /// Level-0 resolution.
    pub resolution: Resolution,
    /// Every candidate, level-0 pixels.
    pub found: Vec<Detection>,
}

impl ImageCase {
    /// Leaves out what was found, and what is there, in areas that are not scored (level-0 pixels).
    #[must_use]
    pub fn without(mut self, ignore: &[Area]) -> Self {
        let scored = |x: f64, y: f64| !ignore.iter().any(|a| a.contains(x, y));
        self.found.retain(|d| scored(d.candidate.centroid.x, d.candidate.centroid.y));
        let (x, y) = (self.resolution.x.get(), self.resolution.y.get());
        self.truth.retain(|t| scored(t.x / x, t.y / y));
        self
    }

    fn case(&self, second: bool) -> Case {
        let scored = |d: &Detection| Scored {
            at: self.resolution.to_physical(d.candidate.centroid),
            s_seg: d.candidate.s_seg,
            s_cls: d.s_cls.filter(|_| second),
        };
        Case {
            name: self.name.clone(),
            truth: self.truth.clone(),
            candidates: self.found.iter().map(scored).collect(),
        }
    }
}

/// One way to detect (the first stage alone, or with a second stage) on all folds.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Its name in the results.
    pub name: String,
    /// Whether scores of a second stage count.
    pub second: bool,
    /// Held-out images of each fold.
    pub folds: Vec<Named<Vec<ImageCase>>>,
}

/// What else the results state.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From probabilities to candidates.
    pub candidates: Candidates,
    /// Side of the second stage's crops, px at 0.25 um/px.
    pub crop: u32,
    /// Symmetric copies of a crop whose probabilities are averaged.
    pub symmetries: u8,
    /// The rule that thresholds are chosen by.
    pub rule: Rule,
}

/// `calibration.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    candidates: Method,
    crop: u32,
    symmetries: u8,
    rule: String,
    radius_um: f64,
    /// Weights that may have seen what a fold holds out, where that was allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
    /// By name of the stage, in order.
    #[serde(serialize_with = "as_map")]
    pub stages: Vec<Named<StageResult>>,
}

#[derive(Clone, Debug, Serialize)]
struct Method {
    method: CandidateMethod,
    /// Of peaks alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_distance_px: Option<u32>,
    threshold: f64,
    opening_radius: u32,
    min_area_px: u32,
    /// Null where all are kept.
    min_separation_um: Option<f64>,
}

/// What one stage reaches.
#[derive(Clone, Debug, Serialize)]
pub struct StageResult {
    /// The chosen thresholds.
    pub operating_point: OperatingPoint,
    /// By matching rule.
    #[serde(serialize_with = "as_map")]
    pub rules: Vec<Named<RuleResult>>,
    /// Each fold at the thresholds of the others; `None` with one fold, or where the others choose none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_others: Option<AtOthers>,
}

/// Every fold at the thresholds that the other folds choose, by the rule that chooses: no label of a fold has a part
/// in its own score.
#[derive(Clone, Debug, Serialize)]
pub struct AtOthers {
    /// F1 over the folds.
    pub f1: OverFolds,
    /// Precision over the folds.
    pub precision: OverFolds,
    /// Recall over the folds.
    pub recall: OverFolds,
    /// Every fold, then `pooled`.
    pub rows: Vec<Row>,
}

/// Mean and sample SD over folds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OverFolds {
    /// Over the folds.
    pub mean: f64,
    /// The sample SD.
    pub sd: f64,
    /// How many folds.
    pub folds: usize,
}

/// Figures under one matching rule.
#[derive(Clone, Debug, Serialize)]
pub struct RuleResult {
    /// Every fold, then `pooled`.
    pub folds: Vec<Row>,
    f1_mean: f64,
    f1_sd: f64,
    precision_mean: f64,
    precision_sd: f64,
    recall_mean: f64,
    recall_sd: f64,
}

/// One fold's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The fold's name, or `pooled`.
    pub left_out: String,
    /// Figures found.
    pub tp: usize,
    /// False positives.
    pub fp: usize,
    /// Figures missed.
    #[serde(rename = "fn")]
    pub fn_: usize,
    /// F1, 0 where it is undefined.
    pub f1: f64,
    /// Precision, 0 where it is undefined.
    pub precision: f64,
    /// Recall, 0 where it is undefined.
    pub recall: f64,
}

/// A value with the name that it has in the results.
#[derive(Clone, Debug)]
pub struct Named<T> {
    /// Key in the results' JSON, where they are a map.
    pub name: String,
    /// What is listed under it.
    pub value: T,
}

fn as_map<S: Serializer, V: Serialize>(list: &[Named<V>], s: S) -> Result<S::Ok, S::Error> {
    s.collect_map(list.iter().map(|n| (&n.name, &n.value)))
}

/// The results for programs, for people, and candidate by candidate.
#[derive(Clone, Debug)]
pub struct Report {
    /// `calibration.json`.
    pub calibration: Calibration,
    /// `calibration.md`.
    pub markdown: String,
    /// `candidates.csv`.
    pub candidates_csv: String,
}

impl Report {
    /// Adds notes on weights that may have been trained on what a fold holds out.
    pub fn note(&mut self, notes: Vec<String>) {
        for note in &notes {
            let _ = writeln!(self.markdown, "\nNot held out: {note}.");
        }
        self.calibration.seen.extend(notes);
    }

    /// Writes the three files into a folder.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let json = base::json::pretty(&self.calibration);
        let json = json.strip_suffix(b"\n").unwrap_or(&json);
        file::write(&folder.join("calibration.json"), json)?;
        file::write(&folder.join("calibration.md"), self.markdown.as_bytes())?;
        file::write(&folder.join("candidates.csv"), self.candidates_csv.as_bytes())?;
        Ok(())
    }
}

fn row(left_out: &str, t: &Tally) -> Row {
    let [f1, precision, recall] = [t.f1(), t.precision(), t.recall()].map(|v| v.unwrap_or(0.0));
    Row { left_out: left_out.into(), tp: t.tp, fp: t.fp, fn_: t.fn_, f1, precision, recall }
}

fn mean_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let ss: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, if values.len() > 1 { (ss / (n - 1.0)).sqrt() } else { f64::NAN })
}

/// Counts of one fold at a point.
fn tally(fold: &Fold, point: &OperatingPoint, rule: Rule) -> Result<Tally> {
    let mut sum = Tally::default();
    for case in &fold.cases {
        sum += case.tally(point, RADIUS, rule)?;
    }
    Ok(sum)
}

fn table(
    folds: &[Fold],
    point: &OperatingPoint,
    rule: Rule,
    md: &mut String,
) -> Result<RuleResult> {
    let tallies: Vec<Tally> = folds.iter().map(|f| tally(f, point, rule)).collect::<Result<_>>()?;
    let pooled: Tally = tallies.iter().copied().sum();
    let mut rows: Vec<Row> = folds.iter().zip(&tallies).map(|(f, t)| row(&f.name, t)).collect();
    let summary = |pick: fn(&Row) -> f64| mean_sd(&rows.iter().map(pick).collect::<Vec<_>>());
    let (f1, p, r) = (summary(|r| r.f1), summary(|r| r.precision), summary(|r| r.recall));
    rows.push(row("pooled", &pooled));
    let _ = writeln!(md, "\nMatching rule `{rule}`, radius {} um:\n", RADIUS.0);
    let head =
        "| left out | TP | FP | FN | F1 | precision | recall |\n|---|---|---|---|---|---|---|";
    let _ = writeln!(md, "{head}");
    for t in &rows {
        let _ = writeln!(
            md,
            "| {} | {} | {} | {} | {:.3} | {:.3} | {:.3} |",
            t.left_out, t.tp, t.fp, t.fn_, t.f1, t.precision, t.recall
        );
    }
    let _ = writeln!(
        md,
        "| mean (sample SD) | | | | {:.3} ({:.3}) | {:.3} ({:.3}) | {:.3} ({:.3}) |",
        f1.0, f1.1, p.0, p.1, r.0, r.1
    );
    Ok(RuleResult {
        folds: rows,
        f1_mean: f1.0,
        f1_sd: f1.1,
        precision_mean: p.0,
        precision_sd: p.1,
        recall_mean: r.0,
        recall_sd: r.1,
    })
}

/// Each fold at the point that the others choose.
fn at_others(folds: &[Fold], rule: Rule, md: &mut String) -> Result<Option<AtOthers>> {
    if folds.len() < 2 {
        return Ok(None);
    }
    let mut tallies = vec![];
    for (k, fold) in folds.iter().enumerate() {
        let others: Vec<Fold> = [&folds[..k], &folds[k + 1..]].concat();
        // Folds without a figure that a candidate reaches choose nothing.
        let Ok(chosen) = calibrate(&others, RADIUS, rule) else { return Ok(None) };
        tallies.push(tally(fold, &chosen.point, rule)?);
    }
    let mut rows: Vec<Row> = folds.iter().zip(&tallies).map(|(f, t)| row(&f.name, t)).collect();
    let over = |pick: fn(&Row) -> f64| {
        let (mean, sd) = mean_sd(&rows.iter().map(pick).collect::<Vec<_>>());
        OverFolds { mean, sd, folds: rows.len() }
    };
    let [f1, precision, recall] = [over(|r| r.f1), over(|r| r.precision), over(|r| r.recall)];
    let _ = writeln!(
        md,
        "\nEach fold at the thresholds of the others, `{rule}`: F1 {:.3} ({:.3}), precision {:.3} ({:.3}), recall \
         {:.3} ({:.3}).",
        f1.mean, f1.sd, precision.mean, precision.sd, recall.mean, recall.sd
    );
    rows.push(row("pooled", &tallies.iter().copied().sum()));
    Ok(Some(AtOthers { f1, precision, recall, rows }))
}

/// Chooses one threshold pair per stage over all folds together, by the largest F1.
///
/// # Errors
/// No figure at all, or no candidate near one.
pub fn report(stages: &[Stage], settings: &Settings) -> Result<Report> {
    let mut md = String::new();
    let mut csv =
        base::table::Writer::new(["stage", "left_out", "frame", "x_px", "y_px", "s_seg", "s_cls"]);
    let mut results = vec![];
    for stage in stages {
        let folds: Vec<Fold> = stage
            .folds
            .iter()
            .map(|fold| Fold {
                name: fold.name.clone(),
                cases: fold.value.iter().map(|i| i.case(stage.second)).collect(),
            })
            .collect();
        let chosen = calibrate(&folds, RADIUS, settings.rule)?;
        let _ = writeln!(
            md,
            "\n### {}\n\nThresholds: seg {:.4}, cls {:.4} ({}).",
            stage.name,
            chosen.point.seg.get(),
            chosen.point.cls.get(),
            chosen.point.provenance
        );
        let mut rules = vec![];
        for rule in [Rule::Midog, Rule::Optimal] {
            let value = table(&folds, &chosen.point, rule, &mut md)?;
            rules.push(Named { name: rule.to_string(), value });
        }
        let at_others = at_others(&folds, settings.rule, &mut md)?;
        let value = StageResult { operating_point: chosen.point, rules, at_others };
        results.push(Named { name: stage.name.clone(), value });
        for fold in &stage.folds {
            for image in &fold.value {
                for d in &image.found {
                    let c = d.candidate.centroid;
                    csv.push([
                        stage.name.clone(),
                        fold.name.clone(),
                        image.name.clone(),
                        format!("{:.2}", c.x),
                        format!("{:.2}", c.y),
                        d.candidate.s_seg.get().to_string(),
                        d.s_cls.map(|s| s.get().to_string()).unwrap_or_default(),
                    ]);
                }
            }
        }
    }
    let c = &settings.candidates;
    let calibration = Calibration {
        candidates: Method {
            method: c.method(),
            min_distance_px: c.min_distance_px,
            threshold: f64::from(c.threshold),
            opening_radius: c.opening_radius,
            min_area_px: c.min_area_px,
            min_separation_um: c.min_separation_um,
        },
        crop: settings.crop,
        symmetries: settings.symmetries,
        rule: settings.rule.to_string(),
        radius_um: RADIUS.0,
        seen: vec![],
        stages: results,
    };
    let candidates_csv = String::from_utf8_lossy(&csv.into_bytes()).into_owned();
    Ok(Report { calibration, markdown: md, candidates_csv })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mitosis::Score;

    /// A fold of one image: candidates 100 um apart with their scores, each a figure or not.
    fn fold(name: &str, candidates: &[(f32, bool)]) -> Fold {
        let at = |i: usize| Point::new(100.0 * i as f64, 0.0);
        let scored = |(i, c): (usize, &(f32, bool))| Scored {
            at: at(i),
            s_seg: Score::new(c.0).unwrap(),
            s_cls: None,
        };
        let figures = candidates.iter().enumerate().filter(|(_, c)| c.1);
        let case = Case {
            name: name.into(),
            truth: figures.map(|(i, _)| at(i)).collect(),
            candidates: candidates.iter().enumerate().map(scored).collect(),
        };
        Fold { name: name.into(), cases: vec![case] }
    }

    #[test]
    fn a_fold_has_no_part_in_the_thresholds_of_its_own_score() {
        // The first fold's figures have higher scores than any of the second fold's candidates.
        let high = fold("high", &[(0.9, true), (0.9, true), (0.7, false), (0.7, false)]);
        let low = fold("low", &[(0.5, true), (0.5, true), (0.2, false)]);
        let mut md = String::new();
        let found = at_others(&[high.clone(), low], Rule::Midog, &mut md).unwrap().unwrap();
        // At the threshold of `low` all four of `high` count; at that of `high` none of `low` does.
        let counts: Vec<_> = found.rows.iter().map(|r| (r.tp, r.fp, r.fn_)).collect();
        assert_eq!(counts, [(2, 2, 0), (0, 0, 2), (2, 2, 2)]);
        assert!((found.f1.mean - (2.0 / 3.0 + 0.0) / 2.0).abs() < 1e-12, "{found:?}");
        assert!(md.contains("thresholds of the others"), "{md}");
        // One fold has no others; others without a figure choose nothing.
        assert!(at_others(std::slice::from_ref(&high), Rule::Midog, &mut md).unwrap().is_none());
        let none = fold("none", &[(0.9, false)]);
        assert!(at_others(&[high, none], Rule::Midog, &mut md).unwrap().is_none());
    }
}
