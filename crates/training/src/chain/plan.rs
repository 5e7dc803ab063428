//! The steps of a chain, their sizes, and how long they may take.

use super::super::Result;
use super::super::folds::WORKING;
use super::super::frames::WINDOW;
use super::{Chain, Second};
use base::text::Many;
use regions::Image;
use regions::folds::{bytes_in_memory, is_frame};
use serde::Serialize;
use std::fmt;

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Writes the folds.
    Folds,
    /// Trains a first stage.
    Segment,
    /// Looks for its false candidates on its training images.
    Mine,
    /// Trains a second stage.
    Finetune,
    /// Chooses the operating point.
    Calibrate,
    /// Exports, checks and packages.
    Package,
}

impl StepKind {
    /// Whether another chain's first stage has it, too.
    pub(super) fn is_of_the_first_stage(self) -> bool {
        matches!(self, Self::Segment | Self::Mine)
    }

    /// Whether it makes the models of one fold, or the final ones.
    pub(super) fn is_of_a_fold(self) -> bool {
        matches!(self, Self::Segment | Self::Mine | Self::Finetune)
    }
}

/// A step of the chain with what it will take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedStep {
    /// Its name, also of its done-mark.
    pub name: String,
    /// What it does.
    pub kind: StepKind,
    /// The fold it belongs to; none for what all folds share and for the final models.
    pub fold: Option<usize>,
    /// What it does, as text.
    pub what: String,
    /// Images it reads.
    pub images: usize,
    /// Labelled figures in them.
    pub figures: usize,
    /// Optimiser steps.
    pub optimiser_steps: usize,
    /// Pixels of its images that are in memory at once, bytes.
    pub memory: u64,
    /// Estimated seconds.
    pub seconds: f64,
}

/// All steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// In order.
    pub steps: Vec<PlannedStep>,
    /// Estimated seconds of all.
    pub seconds: f64,
    /// The most bytes of pixels in memory at once.
    pub memory: u64,
}

/// Minutes or hours, for people.
#[must_use]
pub fn span(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["", "step", "images", "figures", "steps", "about"];
        let [no, what, images, figures, steps, about] = heads;
        writeln!(f, "{no:>3}  {what:<44}{images:>8}{figures:>9}{steps:>8}{about:>10}")?;
        for (i, s) in self.steps.iter().enumerate() {
            let (what, time) = (&s.what, span(s.seconds));
            let (images, figures, steps) = (s.images, s.figures, s.optimiser_steps);
            writeln!(f, "{:>3}  {what:<44}{images:>8}{figures:>9}{steps:>8}{time:>10}", i + 1)?;
        }
        let (all, memory) = (span(self.seconds), self.memory as f64 / 1e9);
        writeln!(f, "in all about {all}; {memory:.1} GB of images in memory")
    }
}

/// Folder of a fold's models; `final` leaves nothing out.
pub(super) fn folder_name(fold: Option<usize>) -> String {
    fold.map_or_else(|| "final".into(), |k| format!("fold-{k}"))
}

fn step(kind: StepKind, fold: Option<usize>, what: String) -> PlannedStep {
    let name = match kind {
        StepKind::Folds => "folds".to_owned(),
        StepKind::Calibrate => "calibrate".to_owned(),
        StepKind::Package => "package".to_owned(),
        StepKind::Segment => format!("segment-{}", folder_name(fold)),
        StepKind::Mine => format!("mine-{}", folder_name(fold)),
        StepKind::Finetune => format!("finetune-{}", folder_name(fold)),
    };
    PlannedStep {
        name,
        kind,
        fold,
        what,
        images: 0,
        figures: 0,
        optimiser_steps: 0,
        memory: 0,
        seconds: 0.0,
    }
}

/// How many times as long as they were planned steps take, by those that are done.
pub(super) fn pace(spent: f64, planned: f64) -> f64 {
    // Seconds for which a plan is believed: a step of two seconds that takes thirty shows little of one of an hour.
    const BELIEVED: f64 = 300.0;
    (BELIEVED + spent) / (BELIEVED + planned)
}

/// The steps in order, without sizes.
pub(super) fn steps(chain: &Chain<'_>) -> Vec<PlannedStep> {
    let names = &chain.source.folds.folds;
    let folds = match names.len() {
        0 => "no folds: the operating point stays".to_owned(),
        n => Many(n, "fold").to_string(),
    };
    let mut all = vec![step(StepKind::Folds, None, folds)];
    let models = |fold: Option<usize>| {
        let of = match fold {
            Some(k) => format!("without {}", names[k]),
            None => "on everything".to_owned(),
        };
        let copied = if chain.options.first_stage.is_some() { ", copied" } else { "" };
        let mine = || step(StepKind::Mine, fold, format!("hard negatives {of}{copied}"));
        let first = step(StepKind::Segment, fold, format!("first stage {of}{copied}"));
        let second = step(StepKind::Finetune, fold, format!("second stage {of}"));
        let mined = chain.preset.crops.is_none().then(mine);
        [Some(first), mined, Some(second)].into_iter().flatten().collect::<Vec<_>>()
    };
    for k in 0..names.len() {
        all.extend(models(Some(k)));
    }
    if !names.is_empty() {
        let point = "operating point over the held-out images".to_owned();
        all.push(step(StepKind::Calibrate, None, point));
    }
    all.extend(models(None));
    all.push(step(StepKind::Package, None, "export, parity, package".into()));
    all
}

/// The steps with their sizes and an estimate of their time, from one timed pass of both networks.
pub(super) fn plan(chain: &Chain<'_>) -> Result<Plan> {
    let p = chain.preset;
    let one = train::bench::detector(&p.segment, p.second().model(), &chain.options.device)?;
    // A third of a training pass, on a window instead of a patch.
    let window = f64::from(WINDOW) / p.segment.data.patch as f64;
    let per_px = one.segment / 3.0 * window * window / f64::from(WINDOW).powi(2);
    let look = |images: &[&Image]| -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let px = bytes_in_memory(images.iter().copied(), WORKING) as f64 / 3.0;
        px * per_px
    };
    let mut steps = steps(chain);
    for s in &mut steps {
        let fold = chain.fold(s.fold)?;
        let frames: Vec<&Image> = fold.train.iter().copied().filter(|i| i.exhaustive).collect();
        let loops = |l: &train::preset::Loop, each: f64| (l.steps * l.batch) as f64 * each;
        let count = |s: &mut PlannedStep, images: &[&Image]| {
            s.images = images.len();
            s.figures = images.iter().map(|i| i.figures().count()).sum();
        };
        match s.kind {
            StepKind::Folds | StepKind::Package => {}
            StepKind::Segment | StepKind::Mine if chain.options.first_stage.is_some() => {}
            StepKind::Segment => {
                count(s, &fold.train);
                s.optimiser_steps = p.segment.train.steps;
                s.memory = bytes_in_memory(fold.train.iter().copied(), WORKING);
                s.seconds = loops(&p.segment.train, one.segment);
            }
            StepKind::Mine => {
                count(s, &frames);
                s.seconds = look(&frames);
            }
            StepKind::Finetune => {
                count(s, &fold.train);
                let times = p.seeds().len();
                let plan = match p.second() {
                    Second::Pools(p) => p.train.clone(),
                    Second::Crops(p) => {
                        p.train.plan(fold.train.iter().map(|i| i.labels.len()).sum())
                    }
                };
                s.optimiser_steps = plan.steps * times;
                s.memory = bytes_in_memory(fold.train.iter().copied(), WORKING);
                s.seconds = loops(&plan, one.finetune) * times as f64;
            }
            StepKind::Calibrate => {
                let mut held = vec![];
                for k in 0..chain.source.folds.folds.len() {
                    let frames = chain.fold(Some(k))?.validation.into_iter();
                    held.extend(frames.filter(|i| is_frame(i, WORKING)));
                }
                count(s, &held);
                let changes = p.calibrate.grid.map_or(0, |g| 1 + g.changes().len());
                s.seconds = look(&held) * (1 + changes) as f64;
            }
        }
    }
    let seconds = steps.iter().map(|s| s.seconds).sum();
    let memory = steps.iter().map(|s| s.memory).max().unwrap_or(0);
    Ok(Plan { steps, seconds, memory })
}

#[cfg(test)]
mod tests {
    use super::pace;

    #[test]
    fn a_short_step_moves_the_estimate_little_and_a_long_one_much() {
        assert_eq!(pace(0.0, 0.0), 1.0);
        assert!(pace(30.0, 2.0) < 1.1);
        let slow = pace(7200.0, 3600.0);
        assert!((1.9..2.0).contains(&slow), "{slow}");
        assert!(pace(1800.0, 3600.0) < 0.6);
    }
}
