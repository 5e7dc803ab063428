//! A package on a laboratory's own labels: a scale of the second stage's scores and operating points,
//! fitted to candidates that somebody judged.
//!
//! A network's scores mean odds on the slides it was tuned on. On another scanner or stain their order
//! holds better than their size. The scale is `sigmoid(slope * logit + offset)` of `s_cls`, the maximum
//! a posteriori under a prior around the identity ([`Platt::fit_near_identity`]), so that few labels
//! move it little. It is kept only if it lowers the log loss on labels that it was not fitted to.
//! A point is the threshold with the greatest expected F-beta over all candidates, judged or not: a
//! judged one counts as what it is, another one by its scaled score.

use base::remedy::{Remedied, Remedy};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use base::file;
use infer::ModelPackage;
use infer::card::{CardError, NamedPoint, ScaleCard};
use mitosis::{OperatingPoint, Score};
use serde::Serialize;
use stats::platt::{Platt, PlattPrior, ece};

use crate::boxes::ImportError;
use crate::robustness::Robustness;
use crate::too_few::TooFew;

/// Parts of the cross-validation.
const PARTS: usize = 5;
/// How far labels may move the scale: a factor of 1.35 of the slope and 1.5 of the offset at one standard deviation.
const PRIOR: PlattPrior = PlattPrior { log_slope_sd: 0.3, offset_sd: 1.5 };
/// The names of points and how many times recall weighs as much as precision.
const AIMS: [(&str, f64); 3] = [("balanced", 1.0), ("sensitive", 2.0), ("specific", 0.5)];

/// Why a package is not calibrated.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum CalibrateError {
    /// No second stage, or no operating point.
    #[error("{package}: it has no {part}, and both stages with a point are calibrated together")]
    Part {
        /// Name of the package.
        package: String,
        part: &'static str,
    },
    /// A slide that was detected with one stage.
    #[error(
        "{slide}: its candidates have no second score; detect it with both stages if the package has two"
    )]
    OneStage {
        /// Name of the slide.
        slide: String,
    },
    /// The candidates are another network's.
    #[error(
        "{slide}: made by {found}, whose weights, scale or operating point are not those of {package}"
    )]
    OtherWeights {
        /// Name of the slide.
        slide: String,
        /// Package that made them.
        found: String,
        /// Package to be calibrated.
        package: String,
    },
    /// A slide that comes twice: its labels would count twice, and be left out and learnt from at once.
    #[error("{slide}: is the same slide as {other}; leave one of them out")]
    Twice {
        /// Name of the slide.
        slide: String,
        /// Name of the earlier one.
        other: String,
    },
    /// Too little was judged.
    #[error(transparent)]
    TooFew(#[from] TooFew),
    /// The fit.
    #[error(transparent)]
    Stats(#[from] stats::StatsError),
    /// Reading or writing a package, a folder that is taken.
    #[error(transparent)]
    Package(#[from] ImportError),
}

impl Remedied for CalibrateError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Package(e) => e.remedy(),
            _ => None,
        }
    }
}

/// A candidate of the laboratory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// First stage.
    pub s_seg: f32,
    /// Second stage, as the package gives it.
    pub s_cls: f32,
    /// Whether it is a figure, where somebody judged it.
    pub figure: Option<bool>,
}

/// One slide or image with all its candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Slide {
    /// Its name.
    pub name: String,
    /// Digest of its file; none of an image that was measured without one.
    pub digest: Option<String>,
    /// All its candidates, judged or not.
    pub candidates: Vec<Candidate>,
}

impl Slide {
    /// The images of a measurement with known figures, as they are; every candidate is judged by them.
    ///
    /// # Errors
    /// [`CalibrateError::OneStage`].
    pub fn measured(result: &Robustness) -> Result<Vec<Self>, CalibrateError> {
        let clean = result.rows.first().into_iter().flat_map(|r| &r.images);
        let slide = |image: &crate::robustness::Looked| {
            let near = image.near_figures(result.radius_um);
            let candidates = image.found.iter().zip(near).map(|(f, figure)| {
                let s_cls = f
                    .s_cls
                    .ok_or_else(|| CalibrateError::OneStage { slide: image.image.clone() })?;
                Ok(Candidate { s_seg: f.s_seg, s_cls, figure: Some(figure) })
            });
            let candidates = candidates.collect::<Result<_, CalibrateError>>()?;
            Ok(Self { name: image.image.clone(), digest: None, candidates })
        };
        clean.map(slide).collect()
    }
}

/// How well the scores fit the labels, before and after the scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Mean log loss of the judged candidates.
    pub log_loss: f64,
    /// Their calibration error over ten bins.
    pub ece: f64,
}

/// A scale with points, and what they rest on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The package it is for.
    pub model: String,
    /// Judged figures.
    pub figures: usize,
    /// Judged others.
    pub others: usize,
    /// Candidates that were not judged; they count by their score.
    pub unjudged: usize,
    /// Slides with a judged candidate.
    pub slides: usize,
    /// What the cross-validation leaves out at a time: `slides`, or `candidates` where there are fewer than five
    /// slides.
    pub left_out: &'static str,
    /// Slope of the logit of `s_cls`; 1 where the scale was not kept.
    pub slope: f64,
    /// Its offset; 0 where the scale was not kept.
    pub offset: f64,
    /// Whether the scale is kept: it lowers the log loss on labels it was not fitted to.
    pub kept: bool,
    /// The scores as the package gives them.
    pub before: Fit,
    /// Each part scaled by the fit to the other parts.
    pub after: Fit,
    /// F1 over the judged candidates at the package's own point.
    pub f1_before: f64,
    /// F1 over the judged candidates, each part at the point of the other parts.
    pub f1_after: f64,
    /// Points by name.
    pub points: BTreeMap<String, Point>,
}

/// A threshold pair and what is expected of it over the laboratory's candidates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Threshold on `s_seg`, the package's own.
    pub seg: f32,
    /// Threshold on the scaled `s_cls`.
    pub cls: f32,
    /// Expected share of accepted candidates that are figures.
    pub precision: f64,
    /// Expected share of the figures among the candidates that are accepted; figures that the first stage misses are in
    /// no candidate.
    pub recall: f64,
}

/// A candidate with the logit of its second score.
#[derive(Clone, Copy)]
struct Item {
    part: usize,
    seg: f32,
    logit: f64,
    figure: Option<bool>,
}

impl Item {
    /// How much of a figure it is: 0 or 1 where it was judged, else its scaled score.
    fn share(&self, scale: Platt) -> f64 {
        self.figure.map_or_else(|| scale.score(&[self.logit]), |f| f64::from(u8::from(f)))
    }
}

fn logit(p: f32) -> f64 {
    let p = f64::from(p).clamp(1e-6, 1.0 - 1e-6);
    (p / (1.0 - p)).ln()
}

/// The package's threshold pair of a name, its own point where it has none of that name.
fn first_threshold(package: &ModelPackage, name: &str, own: &OperatingPoint) -> Score {
    package.card.operating_points.get(name).map_or(own.seg, |p| p.seg)
}

/// Draws `labels` judged candidates evenly over the likeliest quarter (at least as many as are drawn) of those that the
/// first stage accepts, and forgets the judgement of all others. The draw follows the scores, never the judgement, so
/// it does not bend the scale.
pub fn draw(slides: &mut [Slide], labels: usize, seg: f32) {
    in_order(slides);
    let mut judged: Vec<(usize, usize)> = Vec::new();
    for (s, slide) in slides.iter().enumerate() {
        let own = slide.candidates.iter().enumerate();
        judged
            .extend(own.filter(|(_, c)| c.figure.is_some() && c.s_seg >= seg).map(|(c, _)| (s, c)));
    }
    let score = |at: &(usize, usize)| slides[at.0].candidates[at.1].s_cls;
    judged.sort_by(|a, b| score(b).total_cmp(&score(a)).then(a.cmp(b)));
    judged.truncate(labels.max(judged.len().div_ceil(4)));
    let step = judged.len() as f64 / labels.max(1) as f64;
    let kept: Vec<(usize, usize)> = if step <= 1.0 {
        judged
    } else {
        (0..labels).map(|i| judged[((i as f64 + 0.5) * step) as usize]).collect()
    };
    for (s, slide) in slides.iter_mut().enumerate() {
        for (c, candidate) in slide.candidates.iter_mut().enumerate() {
            if !kept.contains(&(s, c)) {
                candidate.figure = None;
            }
        }
    }
}

/// Sorts slides by what they are: neither the order of folders nor that of files may bend a scale.
fn in_order(slides: &mut [Slide]) {
    slides.sort_by(|a, b| (&a.name, &a.digest).cmp(&(&b.name, &b.digest)));
}

/// # Errors
/// [`CalibrateError::Twice`] for two slides of one file, or two measurements with the same name and candidates.
fn no_slide_twice(slides: &[Slide]) -> Result<(), CalibrateError> {
    for (i, slide) in slides.iter().enumerate() {
        let same = |other: &&Slide| match (&slide.digest, &other.digest) {
            (Some(a), Some(b)) => a == b,
            _ => slide == *other && !slide.candidates.is_empty(),
        };
        if let Some(other) = slides[..i].iter().find(same) {
            let (slide, other) = (slide.name.clone(), other.name.clone());
            return Err(CalibrateError::Twice { slide, other });
        }
    }
    Ok(())
}

/// Fits scale and points of a package to judged candidates.
///
/// The points keep the package's thresholds on `s_seg`.
///
/// # Errors
/// [`CalibrateError`].
pub fn calibrate(package: &ModelPackage, slides: &[Slide]) -> Result<Calibration, CalibrateError> {
    let lacks = |part| CalibrateError::Part { package: package.card.name.clone(), part };
    let own = package.card.operating_point.as_ref().ok_or_else(|| lacks("operating point"))?;
    package.card.classifier.as_ref().ok_or_else(|| lacks("second stage"))?;
    no_slide_twice(slides)?;
    let mut slides = slides.to_vec();
    in_order(&mut slides);

    let judged = |s: &Slide| s.candidates.iter().any(|c| c.figure.is_some());
    let with_labels = slides.iter().filter(|s| judged(s)).count();
    let by_slide = with_labels >= PARTS;
    let mut items = Vec::new();
    let (mut slide_at, mut label_at) = (0, 0);
    for slide in &slides {
        for c in &slide.candidates {
            // By turns along the list, so that every part has candidates of every slide.
            let part = if by_slide { slide_at } else { label_at } % PARTS;
            label_at += usize::from(c.figure.is_some());
            items.push(Item { part, seg: c.s_seg, logit: logit(c.s_cls), figure: c.figure });
        }
        slide_at += usize::from(judged(slide));
    }
    let labelled: Vec<Item> = items.iter().copied().filter(|i| i.figure.is_some()).collect();
    let figures = labelled.iter().filter(|i| i.figure == Some(true)).count();
    let others = labelled.len() - figures;
    TooFew::check(figures, others)?;

    let mut scaled = Vec::with_capacity(labelled.len());
    let (mut plain, mut truth, mut accepted) = (Vec::new(), Vec::new(), [Tally::default(); 2]);
    for part in 0..PARTS {
        let rest: Vec<Item> = labelled.iter().copied().filter(|i| i.part != part).collect();
        let scale = fit(&rest)?;
        // Without the judgements of the part itself.
        let blind: Vec<Item> = items
            .iter()
            .map(|i| Item { figure: i.figure.filter(|_| i.part != part), ..*i })
            .collect();
        let point = best(&blind, scale, own.seg, 1.0);
        for i in labelled.iter().filter(|i| i.part == part) {
            let (before, after) = (Platt::IDENTITY.score(&[i.logit]), scale.score(&[i.logit]));
            let figure = i.figure == Some(true);
            scaled.push(after);
            plain.push(before);
            truth.push(figure);
            let on = i.seg >= own.seg.get();
            accepted[0].add(on && before >= f64::from(own.cls.get()), figure);
            accepted[1].add(on && after >= f64::from(point.cls), figure);
        }
    }
    let (before, after) = (loss(&plain, &truth), loss(&scaled, &truth));
    let kept = after.log_loss < before.log_loss;
    let scale = if kept { fit(&labelled)? } else { Platt::IDENTITY };
    let points = AIMS.map(|(name, beta)| {
        (name.to_owned(), best(&items, scale, first_threshold(package, name, own), beta))
    });
    Ok(Calibration {
        model: package.card.name.clone(),
        figures,
        others,
        unjudged: items.len() - labelled.len(),
        slides: with_labels,
        left_out: if by_slide { "slides" } else { "candidates" },
        slope: scale.slope,
        offset: scale.offset,
        kept,
        before,
        after,
        f1_before: accepted[0].f1(),
        f1_after: accepted[1].f1(),
        points: BTreeMap::from(points),
    })
}

fn fit(items: &[Item]) -> Result<Platt, CalibrateError> {
    let logits: Vec<Vec<f64>> = items.iter().map(|i| vec![i.logit]).collect();
    let figure: Vec<bool> = items.iter().map(|i| i.figure == Some(true)).collect();
    Ok(Platt::fit_near_identity(&logits, &figure, &vec![1.0; items.len()], &PRIOR)?)
}

fn loss(scores: &[f64], truth: &[bool]) -> Fit {
    let loss = |(s, t): (&f64, &bool)| {
        let s = s.clamp(1e-9, 1.0 - 1e-9);
        -(if *t { s } else { 1.0 - s }).ln()
    };
    let n = scores.len().max(1) as f64;
    let log_loss = scores.iter().zip(truth).map(loss).sum::<f64>() / n;
    Fit { log_loss, ece: ece(scores, truth, &vec![1.0; scores.len()], 10) }
}

/// The threshold on the scaled score with the greatest expected F-beta; of equal ones the strictest.
fn best(items: &[Item], scale: Platt, seg: Score, beta: f64) -> Point {
    let all: f64 = items.iter().map(|i| i.share(scale)).sum();
    let mut on: Vec<(f64, f64)> = items
        .iter()
        .filter(|i| i.seg >= seg.get())
        .map(|i| (scale.score(&[i.logit]), i.share(scale)))
        .collect();
    on.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (b2, mut hits) = (beta * beta, 0.0);
    let mut found = (f64::NEG_INFINITY, 0.5, 0.0, 0.0);
    for (k, (score, share)) in on.iter().enumerate() {
        hits += share;
        let next = on.get(k + 1).map_or(0.0, |n| n.0);
        if next == *score {
            continue;
        }
        let accepted = (k + 1) as f64;
        let value = (1.0 + b2) * hits / (accepted + b2 * all).max(f64::MIN_POSITIVE);
        if value > found.0 {
            // Halfway to the next score, so that a rounding of either changes nothing.
            found = (value, f64::midpoint(*score, next), hits / accepted, hits / all);
        }
    }
    let (_, cls, precision, recall) = found;
    Point { seg: seg.get(), cls: (cls as f32).clamp(0.001, 0.999), precision, recall }
}

#[derive(Clone, Copy, Default)]
struct Tally {
    tp: usize,
    fp: usize,
    fn_: usize,
}

impl Tally {
    fn add(&mut self, accepted: bool, figure: bool) {
        match (accepted, figure) {
            (true, true) => self.tp += 1,
            (true, false) => self.fp += 1,
            (false, true) => self.fn_ += 1,
            (false, false) => {}
        }
    }

    fn f1(&self) -> f64 {
        2.0 * self.tp as f64 / (2 * self.tp + self.fp + self.fn_).max(1) as f64
    }
}

impl Calibration {
    /// Writes the package with this scale and these points into a folder of its own: the same networks, another
    /// card. A scale that the package has already is taken into account. `slides` are named in the card.
    ///
    /// # Errors
    /// A folder that holds a package already, or that cannot be written; nothing is written then.
    pub fn write(
        &self,
        package: &ModelPackage,
        name: &str,
        slides: &[Slide],
        out: &Path,
    ) -> Result<PathBuf, CalibrateError> {
        let at = out.join("card.toml");
        if at.exists() {
            return Err(ImportError::Exists(out.to_owned()).into());
        }
        let lacks = |part| CalibrateError::Part { package: package.card.name.clone(), part };
        let mut card = package.card.clone();
        card.name = name.to_owned();
        let classifier = card.classifier.as_mut().ok_or_else(|| lacks("second stage"))?;
        let before = classifier.scale.unwrap_or(ScaleCard { slope: 1.0, offset: 0.0 });
        classifier.scale = Some(ScaleCard {
            slope: self.slope * before.slope,
            offset: self.slope * before.offset + self.offset,
        });
        let provenance = self.provenance();
        let score = |v: f32| Score::new(v).unwrap_or(Score::literal(0.5));
        card.operating_points = self
            .points
            .iter()
            .map(|(name, p)| {
                let (precision, recall, provenance) = (p.precision, p.recall, provenance.clone());
                let (seg, cls) = (score(p.seg), score(p.cls));
                (name.clone(), NamedPoint { seg, cls, precision, recall, provenance })
            })
            .collect();
        card.operating_point = self.points.get("balanced").map(|p| OperatingPoint {
            seg: score(p.seg),
            cls: score(p.cls),
            provenance,
        });
        let training = card.training.get_or_insert_default();
        training.insert("calibrated_from".into(), self.model.clone().into());
        let used = slides.iter().filter(|s| s.candidates.iter().any(|c| c.figure.is_some()));
        let entry = |s: &Slide| {
            let mut entry = toml::Table::from_iter([("name".to_owned(), s.name.clone().into())]);
            if let Some(digest) = &s.digest {
                entry.insert("digest".into(), digest.clone().into());
            }
            toml::Value::Table(entry)
        };
        training.insert("calibration_slides".into(), used.map(entry).collect::<Vec<_>>().into());
        // The measured figures are of the points before.
        let invalid =
            |e: toml::ser::Error| CardError::Value { key: "results".into(), reason: e.to_string() };
        let own = toml::Table::try_from(self).map_err(invalid).map_err(ImportError::from)?;
        card.results = Some(toml::Table::from_iter([("own_labels".to_owned(), own.into())]));
        card.check().map_err(ImportError::from)?;
        let text = card.to_toml().map_err(ImportError::from)?;
        let failed = |source| file::WriteError { path: out.to_owned(), source };
        std::fs::create_dir_all(out).map_err(failed).map_err(ImportError::from)?;
        for (name, bytes) in package.files() {
            file::write(&out.join(name), bytes).map_err(ImportError::from)?;
        }
        // Last: a folder is a package once it has its card.
        file::write(&at, text.as_bytes()).map_err(ImportError::from)?;
        Ok(at)
    }

    fn provenance(&self) -> String {
        format!(
            "expected F1 over {} candidates of {} slides, {} of them judged ({} figures); log loss on labels left out \
             {:.3} with the scale{}, {:.3} without",
            self.figures + self.others + self.unjudged,
            self.slides,
            self.figures + self.others,
            self.figures,
            self.after.log_loss,
            if self.kept { "" } else { ", which was not kept" },
            self.before.log_loss
        )
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let judged = self.figures + self.others;
        writeln!(
            f,
            "{}: {judged} candidates of {} slides judged, {} figures; {} more were not judged",
            self.model, self.slides, self.figures, self.unjudged
        )?;
        writeln!(f, "cross-validated, {} left out:", self.left_out)?;
        writeln!(
            f,
            "  log loss           {:.3}, was {:.3}",
            self.after.log_loss, self.before.log_loss
        )?;
        writeln!(f, "  calibration error  {:.3}, was {:.3}", self.after.ece, self.before.ece)?;
        writeln!(f, "  F1 of the judged   {:.3}, was {:.3}", self.f1_after, self.f1_before)?;
        match self.kept {
            true => writeln!(f, "scale: slope {:.3}, offset {:+.3}", self.slope, self.offset)?,
            false => writeln!(
                f,
                "scale: unchanged, because the fitted one is no better on labels left out"
            )?,
        }
        for (name, p) in &self.points {
            writeln!(
                f,
                "{name:<9}  s_seg {:.2}, s_cls {:.3}: expected precision {:.2}, recall {:.2}",
                p.seg, p.cls, p.precision, p.recall
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Candidates whose true odds are `slope * logit + offset`, by strata rather than by chance.
    fn laboratory(slope: f64, offset: f64, slides: usize) -> Vec<Slide> {
        let truth = Platt { slope, offset };
        let candidate = |i: usize, k: usize| {
            let z = (i as f64 - 20.0) / 5.0;
            let s_cls = Platt::IDENTITY.score(&[z]) as f32;
            let figure = Some((k as f64 + 0.5) / 10.0 < truth.score(&[z]));
            Candidate { s_seg: 0.9, s_cls, figure }
        };
        let one = |s: usize| Slide {
            name: format!("slide-{s}"),
            digest: None,
            candidates: (0..41)
                .flat_map(|i| (0..10).map(move |k| (i, k)))
                .map(|(i, k)| candidate(i, k))
                .collect(),
        };
        (0..slides).map(one).collect()
    }

    #[test]
    fn a_laboratorys_scale_is_found_and_its_point_moves() {
        let package = ModelPackage::bundled().unwrap();
        let found = calibrate(&package, &laboratory(0.6, -1.0, 6)).unwrap();
        assert!(found.kept && found.left_out == "slides", "{found}");
        assert!((found.slope - 0.6).abs() < 0.03 && (found.offset + 1.0).abs() < 0.1, "{found}");
        assert!(found.after.ece < 0.03 && found.before.ece > 0.1, "{found}");
        assert!(found.f1_after > found.f1_before, "{found}");
        let [b, sensitive, specific] =
            ["balanced", "sensitive", "specific"].map(|n| found.points[n]);
        assert!(sensitive.cls < b.cls && b.cls < specific.cls, "{found}");
        assert!(sensitive.recall > b.recall && specific.precision > b.precision, "{found}");
        // The best threshold is half of the greatest F1, on scores that are odds (Lipton et al. 2014).
        let f1 = 2.0 * b.precision * b.recall / (b.precision + b.recall);
        assert!((f64::from(b.cls) - f1 / 2.0).abs() < 0.06, "{} for {}", b.cls, f1 / 2.0);
    }

    #[test]
    fn a_scale_that_is_not_better_is_not_kept() {
        let package = ModelPackage::bundled().unwrap();
        // Of scores with odds of 0.73 and 0.27 three quarters and one quarter are figures, but a fifth of the labels,
        // left out as one part, contradicts the rest.
        let candidate = |i: usize| {
            let high = (i / PARTS).is_multiple_of(2);
            let figure = if i.is_multiple_of(PARTS) || i == 1 || i == 6 { !high } else { high };
            let s_cls = Platt::IDENTITY.score(&[if high { 1.0 } else { -1.0 }]) as f32;
            Candidate { s_seg: 0.9, s_cls, figure: Some(figure) }
        };
        let candidates = (0..40).map(candidate).collect();
        let slides = [Slide { name: "one".into(), digest: None, candidates }];
        let found = calibrate(&package, &slides).unwrap();
        assert_eq!((found.figures, found.others, found.left_out), (20, 20, "candidates"));
        assert!(!found.kept && found.slope == 1.0 && found.offset == 0.0, "{found}");
        assert!(found.to_string().contains("unchanged"), "{found}");
    }

    #[test]
    fn the_draw_follows_the_scores() {
        let mut slides = laboratory(1.0, 0.0, 3);
        draw(&mut slides, 50, 0.5);
        let all = slides.iter().flat_map(|s| &s.candidates).filter(|c| c.figure.is_some());
        let scores: Vec<f32> = all.map(|c| c.s_cls).collect();
        assert_eq!(scores.len(), 50);
        let least = scores.iter().copied().fold(1.0, f32::min);
        assert!(least > 0.85, "the likeliest quarter: {least}");
        let mut strict = laboratory(1.0, 0.0, 3);
        draw(&mut strict, 50, 0.95);
        let judged = |c: &Candidate| c.figure.is_some();
        assert!(
            !strict.iter().flat_map(|s| &s.candidates).any(judged),
            "none is a candidate there"
        );
    }

    #[test]
    fn too_little_is_refused() {
        let package = ModelPackage::bundled().unwrap();
        let mut slides = laboratory(1.0, 0.0, 1);
        slides[0].candidates.truncate(30);
        let refused = calibrate(&package, &slides).unwrap_err();
        assert!(matches!(refused, CalibrateError::TooFew(_)), "{refused}");
    }

    #[test]
    fn a_slide_that_comes_twice_is_refused() {
        let package = ModelPackage::bundled().unwrap();
        let mut slides = laboratory(0.6, -1.0, 6);
        slides.push(slides[1].clone());
        let refused = calibrate(&package, &slides).unwrap_err();
        assert!(matches!(refused, CalibrateError::Twice { .. }), "{refused}");
        assert!(refused.to_string().contains("leave one of them out"), "{refused}");
        calibrate(&package, &slides[..6]).unwrap();
        // Another file of the same name is another slide.
        slides[6].candidates[0].s_cls = 0.123;
        assert_eq!(slides[6].digest, None);
        calibrate(&package, &slides).unwrap();
    }

    #[test]
    fn the_order_of_slides_changes_nothing() {
        let package = ModelPackage::bundled().unwrap();
        let mut slides = laboratory(0.6, -1.0, 7);
        for (i, slide) in slides.iter_mut().enumerate() {
            slide.candidates.truncate(410 - 30 * i);
        }
        let mut turned = slides.clone();
        turned.reverse();
        turned.swap(1, 4);
        assert_eq!(calibrate(&package, &slides).unwrap(), calibrate(&package, &turned).unwrap());
        draw(&mut slides, 60, 0.5);
        draw(&mut turned, 60, 0.5);
        assert_eq!(slides, turned);
    }

    #[test]
    fn a_scale_comes_on_top_of_the_packages_own() {
        let package = ModelPackage::bundled().unwrap();
        let slides = laboratory(0.6, -1.0, 6);
        let first = calibrate(&package, &slides).unwrap();
        let dir = tempfile::tempdir().unwrap();
        first.write(&package, "first", &slides, &dir.path().join("a")).unwrap();
        let once = ModelPackage::open(&dir.path().join("a")).unwrap();
        first.write(&once, "second", &slides, &dir.path().join("b")).unwrap();
        let twice =
            ModelPackage::open(&dir.path().join("b")).unwrap().card.classifier.unwrap().scale;
        let twice = twice.unwrap();
        assert!((twice.slope - first.slope * first.slope).abs() < 1e-12);
        assert!((twice.offset - (first.slope * first.offset + first.offset)).abs() < 1e-12);
        assert!(first.write(&package, "x", &slides, &dir.path().join("a")).is_err(), "it is taken");
    }
}
