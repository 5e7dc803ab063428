//! Predictions against ground truth: detections per case, pooled and per tumour type, here;
//! classes in [`classification`].

mod boxes;
pub mod classification;
pub mod curve;
mod display;
mod doubt;
mod error;
mod label;
mod position;
mod seen;
mod truth;

pub use error::EvaluateError;
pub use regions::units::Conflict;
pub use seen::{Listed, seen_in_training, slides_seen_in_training};
pub use truth::{Truth, TruthCase, TruthOptions, read_truth};

use base::table::Unmatched;
use base::text::{Many, Shown};
use curve::CurvePoint;
use doubt::Marks;
use mithras::export::{CaveatKind, CountsFile};
use mithras::record::{DetectionRow, SlideEntry};
use mithras::regions::{outlines, rounded};
use mithras::report::{self, Results};
use mitosis::matching::{Rule, Tally, match_points};
use mitosis::{Microns, Physical, Point, Resolution};
use serde::Serialize;
use stats::bootstrap::{Plan, bootstrap_indices};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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
    /// What a reader of the numbers must know, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Analysed tissue of all slides, mm2.
    #[serde(skip)]
    pub analysed_mm2: f64,
    /// Digests of the slides' files, by name.
    #[serde(skip)]
    pub digests: BTreeMap<String, String>,
    /// Name of the model that made the predictions.
    #[serde(skip)]
    pub model: Option<String>,
    /// One per rule.
    pub rules: Vec<RuleResult>,
}

/// 95 % percentile intervals of the pooled figures, slides resampled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Intervals {
    /// Lower and upper end, in [0, 1].
    pub precision: Option<[f64; 2]>,
    /// Lower and upper end, in [0, 1].
    pub recall: Option<[f64; 2]>,
    /// Lower and upper end, in [0, 1].
    pub f1: Option<[f64; 2]>,
    /// Resamples.
    pub replicates: usize,
    /// Resamples in which each figure is defined, by name: the others are left out.
    pub defined: BTreeMap<&'static str, usize>,
    /// Their seed.
    pub seed: u64,
}

impl Intervals {
    /// Resamples of the slides and their seed.
    const PLAN: Plan = Plan { replicates: 1000, seed: 0, level: 0.95 };

    /// `None` with fewer than two slides, which cannot be resampled.
    fn compute(slides: &[Tally]) -> Option<Self> {
        if slides.len() < 2 {
            return None;
        }
        let sum = |drawn: &[usize]| {
            drawn.iter().fold(Tally::default(), |mut all, &i| {
                all += slides[i];
                all
            })
        };
        let all: Vec<usize> = (0..slides.len()).collect();
        let mut defined = BTreeMap::new();
        let mut interval = |name, figure: fn(&Tally) -> Option<f64>| {
            let estimate = figure(&sum(&all))?;
            let drawn = bootstrap_indices(slides.len(), Self::PLAN, estimate, |d| figure(&sum(d)));
            let drawn = drawn.ok()?;
            defined.insert(name, drawn.defined);
            Some([drawn.interval.lower, drawn.interval.upper])
        };
        Some(Self {
            precision: interval("precision", Tally::precision),
            recall: interval("recall", Tally::recall),
            f1: interval("f1", Tally::f1),
            replicates: Self::PLAN.replicates,
            defined,
            seed: Self::PLAN.seed,
        })
    }
}

/// What one rule gives.
#[derive(Clone, Debug, Serialize)]
pub struct RuleResult {
    /// `midog` or `optimal`.
    pub rule: Rule,
    /// Over all slides, at the recorded threshold pair.
    pub pooled: Figures,
    /// How sure the pooled figures are; none with fewer than two slides.
    pub intervals: Option<Intervals>,
    /// Per tumour type, where the truth names it.
    pub tumours: BTreeMap<String, Figures>,
    /// Per slide.
    pub cases: BTreeMap<String, Figures>,
    /// How the pooled figures move with the last threshold. For information: a threshold chosen here
    /// is chosen on the test set.
    pub sweep: Vec<SweepPoint>,
    /// The same at every threshold that the scores give (at most [`CURVE_POINTS`]), highest first.
    #[serde(skip)]
    pub curve: Vec<CurvePoint>,
}

impl RuleResult {
    /// Notes on the resamples in which a figure is not defined.
    fn undefined(&self) -> Vec<String> {
        let Some(Intervals { defined, replicates, .. }) = &self.intervals else {
            return Vec::new();
        };
        let fewer = defined.iter().filter(|(_, defined)| *defined < replicates);
        let note = |(name, defined): (&&str, &usize)| {
            format!(
                "rule {}: {} of {replicates} resamples of slides have no {name} and are left out of its interval",
                self.rule,
                replicates - defined
            )
        };
        fewer.map(note).collect()
    }
}

/// Points of a curve at most.
pub const CURVE_POINTS: usize = 200;

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
    /// um/px.
    mpp: f64,
    /// Width and height, um.
    size_um: [f64; 2],
}

impl Case {
    fn marks(&self) -> Marks<'_> {
        let found = physical(self.rows.iter().copied().filter(|r| r.accepted));
        let (name, truth, mpp, size_um) = (&*self.name, &*self.truth, self.mpp, self.size_um);
        Marks { name, truth, found, mpp, size_um }
    }
}

fn physical(rows: impl Iterator<Item = DetectionRow>) -> Vec<Point<Physical>> {
    rows.map(|r| Point::new(r.x_um, r.y_um)).collect()
}

/// Whether a detection is right or wrong, and not one of a place to ignore; a figure within the radius comes first.
fn is_counted(
    (x, y): (f64, f64),
    truth: &[Point<Physical>],
    ignored: &[Point<Physical>],
    radius: Microns,
) -> bool {
    let near = |all: &[Point<Physical>]| all.iter().any(|p| (p.x - x).hypot(p.y - y) <= radius.0);
    !near(ignored) || near(truth)
}

/// The candidates that may count at some threshold: on tissue, and not of a place to ignore.
fn counted_rows(
    mut rows: Vec<DetectionRow>,
    truth: &[Point<Physical>],
    ignored: &[Point<Physical>],
    radius: Microns,
) -> Vec<DetectionRow> {
    rows.retain(|r| !r.outside_tissue && is_counted((r.x_um, r.y_um), truth, ignored, radius));
    rows
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
        let is_self = dir.file_name().is_some_and(|f| f == name) && has_count(dir);
        if is_self { dir.to_owned() } else { own }
    };
    let lacking: Vec<&String> = truth.keys().filter(|n| !has_count(&folder(n))).collect();
    if let Some(first) = lacking.first() {
        return Err(EvaluateError::Missing {
            dir: dir.to_owned(),
            count: lacking.len(),
            total: truth.len(),
            first: (*first).clone(),
            join: unmatched(dir, truth).map(Box::new),
        });
    }
    let read: Vec<_> = truth.keys().map(|name| report::results(&folder(name))).collect();
    let bad: Vec<String> =
        read.iter().filter_map(|r| r.as_ref().err()).map(ToString::to_string).collect();
    if !bad.is_empty() {
        return Err(EvaluateError::Unsound { reasons: bad });
    }
    let (mut cases, mut notes, mut made_by) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (mut analysed_mm2, mut digests, mut model) = (0.0, BTreeMap::new(), None);
    notes.extend(truth.unread_columns.as_ref().map(ToString::to_string));
    for ((name, case), found) in truth.iter().zip(read) {
        let Results { counts, rows } = found.map_err(report::ReportError::from)?;
        let resolution = counts
            .resolution()
            .map_err(|source| EvaluateError::Resolution { slide: name.clone(), source })?;
        case.check_units(&resolution)?;
        if let Some(at) = case.outside(&counts.slide, &resolution) {
            let size = (counts.slide.width, counts.slide.height);
            return Err(EvaluateError::Outside { slide: name.clone(), x: at[0], y: at[1], size });
        }
        analysed_mm2 += counts.analysed_mm2;
        digests.insert(name.clone(), counts.slide.digest.clone());
        model = Some(counts.model.name.clone());
        made_by.insert(describe_maker(&counts));
        notes.extend(caveats(name, &counts));
        let (mut truth, mut ignored) = (case.points(&resolution), case.ignored(&resolution));
        let beyond = take_out_unsearched(&folder(name), &counts, &resolution, &mut truth)?;
        if !beyond.is_empty() {
            notes.push(format!(
                "{name}: {} of the truth outside the regions that were searched, left out",
                Many(beyond.len(), "figure")
            ));
        }
        // What is found at the border of the regions, at a figure beyond, is neither right nor wrong.
        ignored.extend(beyond);
        cases.push(Case {
            name: name.clone(),
            tumour: case.tumour.clone(),
            rows: counted_rows(rows, &truth, &ignored, radius),
            truth,
            seg: counts.thresholds.seg.get(),
            mpp: resolution.mean().get(),
            size_um: size_um(&counts.slide, &resolution),
        });
    }
    notes.extend(made_differently(&made_by));
    notes.extend(doubts(&cases, radius));
    let rules: Vec<RuleResult> = rules
        .iter()
        .map(|&rule| one_rule(&cases, radius, rule, analysed_mm2))
        .collect::<Result<_, EvaluateError>>()?;
    notes.extend(rules.iter().flat_map(RuleResult::undefined));
    Ok(Evaluation {
        schema: "mithras.evaluation/1",
        radius_um: radius.0,
        slides: cases.len(),
        truth: cases.iter().map(|c| c.truth.len()).sum(),
        without_truth: without_truth(dir, truth),
        notes,
        analysed_mm2,
        digests,
        model,
        rules,
    })
}

/// What to know of slides whose predictions were not all made alike.
fn made_differently(made_by: &BTreeSet<String>) -> Option<String> {
    let all: Vec<&str> = made_by.iter().map(String::as_str).collect();
    (all.len() > 1)
        .then(|| format!("the slides were not all made alike, and are pooled: {}", all.join("; ")))
}

/// Width and height of a slide, um.
fn size_um(slide: &SlideEntry, resolution: &Resolution) -> [f64; 2] {
    [slide.width as f64 * resolution.x.get(), slide.height as f64 * resolution.y.get()]
}

/// Why the truth may be read wrongly.
fn doubts(cases: &[Case], radius: Microns) -> Vec<String> {
    let marks: Vec<Marks<'_>> = cases.iter().map(Case::marks).collect();
    doubt::misread(&marks, radius).into_iter().chain(doubt::doubled(&marks)).collect()
}

/// What made the predictions of a slide.
fn describe_maker(counts: &CountsFile) -> String {
    let (model, t) = (&counts.model, &counts.thresholds);
    let weights: String = model.weights().chars().take(12).collect();
    format!("{} ({weights}) from s_seg {} and s_cls {}", model.name, t.seg.get(), t.cls.get())
}

/// What makes figures of a slide missed ones that the model was not shown.
fn caveats(name: &str, counts: &CountsFile) -> Vec<String> {
    let kinds = [CaveatKind::OutsideRange, CaveatKind::Unread];
    let all = counts.caveats().into_iter().filter(|c| kinds.contains(&c.kind));
    all.map(|c| format!("{name}: {}", c.text)).collect()
}

/// Takes figures of the truth out that are in no region that was searched, and returns them.
fn take_out_unsearched(
    folder: &Path,
    counts: &CountsFile,
    resolution: &Resolution,
    truth: &mut Vec<Point<Physical>>,
) -> Result<Vec<Point<Physical>>, EvaluateError> {
    if counts.regions.is_none() {
        return Ok(Vec::new());
    }
    let regions = outlines(folder, counts.slide.bounds_offset)?;
    if regions.is_empty() {
        let reason =
            format!("{}: was searched in regions, and their outlines are missing", Shown(folder));
        return Err(EvaluateError::Unsound { reasons: vec![reason] });
    }
    let inside: Vec<_> = regions.iter().map(|r| r.area.index()).collect();
    let searched = |p: &Point<Physical>| {
        let at = rounded(resolution.to_level0(*p));
        inside.iter().any(|i| i.contains(at))
    };
    let (kept, beyond) = std::mem::take(truth).into_iter().partition(searched);
    *truth = kept;
    Ok(beyond)
}

fn one_rule(
    cases: &[Case],
    radius: Microns,
    rule: Rule,
    analysed_mm2: f64,
) -> Result<RuleResult, EvaluateError> {
    let mut pooled = Tally::default();
    let mut tumours: BTreeMap<String, Tally> = BTreeMap::new();
    let (mut own, mut slides) = (BTreeMap::new(), Vec::new());
    for case in cases {
        let accepted = physical(case.rows.iter().copied().filter(|r| r.accepted));
        let tally = match_points(&case.truth, &accepted, radius, rule)?.tally;
        pooled += tally;
        slides.push(tally);
        if let Some(t) = &case.tumour {
            *tumours.entry(t.clone()).or_default() += tally;
        }
        own.insert(case.name.clone(), Figures::from(tally));
    }
    let at = |threshold: f32| -> Result<Tally, EvaluateError> {
        let mut tally = Tally::default();
        for case in cases {
            let kept = case.rows.iter().copied().filter(|r| match r.s_cls {
                Some(s) => r.s_seg >= case.seg && s >= threshold,
                None => r.s_seg >= threshold,
            });
            tally += match_points(&case.truth, &physical(kept), radius, rule)?.tally;
        }
        Ok(tally)
    };
    let sweep = (1..20_u8)
        .map(|step| {
            let threshold = f32::from(step) / 20.0;
            Ok(SweepPoint { threshold, figures: at(threshold)?.into() })
        })
        .collect::<Result<_, EvaluateError>>()?;
    let curve = thresholds(cases)
        .into_iter()
        .map(|threshold| {
            let tally = at(threshold)?;
            let fp_per_mm2 = (analysed_mm2 > 0.0).then(|| tally.fp as f64 / analysed_mm2);
            Ok(CurvePoint { threshold, tally, fp_per_mm2 })
        })
        .collect::<Result<_, EvaluateError>>()?;
    Ok(RuleResult {
        rule,
        pooled: pooled.into(),
        intervals: Intervals::compute(&slides),
        tumours: tumours.into_iter().map(|(k, v)| (k, v.into())).collect(),
        cases: own,
        sweep,
        curve,
    })
}

/// Scores that candidates have, highest first, thinned evenly.
fn thresholds(cases: &[Case]) -> Vec<f32> {
    let mut scores: Vec<f32> =
        cases.iter().flat_map(|c| c.rows.iter().map(DetectionRow::score)).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    scores.dedup();
    let n = scores.len();
    if n <= CURVE_POINTS {
        return scores;
    }
    (0..CURVE_POINTS).map(|i| scores[i * (n - 1) / (CURVE_POINTS - 1)]).collect()
}

/// Whether a folder has a count, of whatever kind: one that cannot be read is an error of that slide.
fn has_count(folder: &Path) -> bool {
    folder.join("counts.json").symlink_metadata().is_ok()
}

/// Slides with predictions below a folder.
fn predicted(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|e| has_count(&e.path()))
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn without_truth(dir: &Path, truth: &Truth) -> Vec<String> {
    predicted(dir).into_iter().filter(|n| !truth.contains_key(n)).collect()
}

/// What the names of the truth and of the run do not share; none where the folder has no slides.
fn unmatched(dir: &Path, truth: &Truth) -> Option<Unmatched> {
    let found = predicted(dir);
    let names = ("the truth", "the run");
    let keys = truth.keys().map(String::as_str);
    (!found.is_empty())
        .then(|| Unmatched::between(names, keys, found.iter().map(String::as_str)))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_at_a_place_to_ignore_does_not_count() {
        let (truth, ignored) = ([Point::new(0.0, 0.0)], [Point::new(10.0, 0.0)]);
        let of = |x: f64| is_counted((x, 0.0), &truth, &ignored, Microns(7.5));
        // At the figure, between both, at the ignored place, and away from either.
        assert_eq!([0.0, 5.0, 12.0, 30.0].map(of), [true, true, false, true]);
        assert!(!is_counted((5.0, 0.0), &[], &ignored, Microns(7.5)));
    }

    /// Made-up candidates of a slide around its figures, a third of them outside the tissue; scores in twentieths.
    fn made_up(seed: u64, point: [f32; 2], two_stages: bool) -> Case {
        let mut state = seed;
        let mut next = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let truth: Vec<Point<Physical>> =
            (0..6).map(|i| Point::new(30.0 * f64::from(i), 0.0)).collect();
        let rows = (0..40).map(|_| {
            let score = |n: u64| n as f32 / 20.0;
            let (s_seg, s_cls) = (score(next(21)), two_stages.then_some(score(next(21))));
            let outside_tissue = next(3) == 0;
            let at = [next(200) as f64, next(9) as f64];
            let reached = s_seg >= point[0] && s_cls.is_none_or(|s| s >= point[1]);
            DetectionRow {
                x_um: at[0],
                y_um: at[1],
                s_seg,
                s_cls,
                accepted: reached && !outside_tissue,
                outside_tissue,
                x_px: 0.0,
                y_px: 0.0,
                flaw: None,
                subtypes: None,
            }
        });
        let rows = counted_rows(rows.collect(), &truth, &[Point::new(100.0, 5.0)], Microns(7.5));
        let (name, size_um) = (seed.to_string(), [200.0, 9.0]);
        Case { name, tumour: None, truth, rows, seg: point[0], mpp: 0.25, size_um }
    }

    #[test]
    fn the_sweep_and_the_curve_at_the_runs_own_threshold_are_the_pooled_row() {
        for seed in 0..60 {
            let two_stages = seed % 2 == 0;
            let own = 3 + (seed % 14) as usize;
            let at = own as f32 / 20.0;
            let point = if two_stages { [0.3, at] } else { [at, 0.0] };
            let cases = [seed, seed + 1000].map(|s| made_up(s, point, two_stages));
            for rule in [Rule::Midog, Rule::Optimal] {
                let found = one_rule(&cases, Microns(7.5), rule, 2.0).unwrap();
                let swept = found.sweep[own - 1];
                assert_eq!((swept.threshold, swept.figures), (at, found.pooled), "{seed}");
                // The lowest threshold of the curve that is not below the run's own accepts the same.
                let curve = found.curve.iter().rfind(|p| p.threshold >= at).unwrap();
                assert_eq!(curve.tally, found.pooled.tally, "{seed}");
            }
        }
    }

    #[test]
    fn resamples_without_a_figure_are_counted_and_noted() {
        let slides = [Tally { tp: 1, fp: 0, fn_: 1 }, Tally { tp: 0, fp: 0, fn_: 2 }];
        let intervals = Intervals::compute(&slides).unwrap();
        // A quarter of the resamples has the second slide twice, where nothing is accepted.
        let lost = 1000 - intervals.defined["precision"];
        assert!((200..300).contains(&lost), "{lost}");
        assert_eq!((intervals.defined["recall"], intervals.defined["f1"]), (1000, 1000));
        let mut found = one_rule(&[], Microns(7.5), Rule::Midog, 1.0).unwrap();
        found.intervals = Some(intervals);
        let note = format!(
            "rule midog: {lost} of 1000 resamples of slides have no precision and are left out"
        );
        let notes = found.undefined();
        assert!(notes.len() == 1 && notes[0].starts_with(&note), "{notes:?}");
    }
}
