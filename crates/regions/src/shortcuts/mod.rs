//! Features that cannot see morphology, and whether they separate the classes nevertheless.
//!
//! A network learns the cheapest cue. Where sharpness of chroma, the phase of a JPEG grid or the
//! colour of a crop's border separates figures from nuclei, the labels depend on a cue of the source and
//! not on the figure. Each feature is judged alone, and all together by a cross-validated linear
//! model whose folds are whole slides, per source.

mod features;
mod linear;
mod load;

use base::text::Many;
use crops::slide_name::bare;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

pub use features::{Feature, LIMIT, LIMIT_SEEN, NAMES, Sees};
pub use load::{ShortcutError, ShortcutItem, of_corpus, of_regions, of_task};

/// Fewest items of either class that a source is judged by.
pub const FEWEST: usize = 20;
/// The linear model over the features that see nothing.
pub const TOGETHER: &str = "together";
/// The linear model over every feature. It is shown and never warns: features that see the nucleus may separate
/// the classes for good reasons.
pub const ALL_TOGETHER: &str = "together, all";
/// Folds of the linear model.
const FOLDS: usize = 5;

/// A feature's verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The feature; [`TOGETHER`] for the linear model over those that see nothing, [`ALL_TOGETHER`] for
    /// that over every one.
    pub feature: String,
    /// ROC-AUC, of whichever direction is above one half (the linear model's has one direction).
    pub auc: f64,
    /// It sees the nucleus (fine detail of luma) or its surroundings (colour of the border, place),
    /// which may differ between the classes for good reasons.
    pub context: bool,
    /// The AUC from which on it warns: at least what chance reaches.
    pub limit: f64,
    /// Beyond the limit by more than its standard error.
    pub warns: bool,
}

/// What each feature separates in one source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceReport {
    /// The source, or `all`.
    pub source: String,
    /// Crops with a figure.
    pub figures: usize,
    /// Crops without.
    pub others: usize,
    /// Three standard errors of an AUC of one half.
    pub chance: f64,
    /// Highest first.
    pub verdicts: Vec<Verdict>,
}

/// What each feature separates, source by source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Per source, then all together where there are several.
    pub sources: Vec<SourceReport>,
    /// Sources with too few crops of a class.
    pub too_few: Vec<String>,
}

impl Report {
    /// A line per warning.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings_about("figures")
    }

    /// A line per warning, where not figures were judged but this.
    #[must_use]
    pub fn warnings_about(&self, what: &str) -> Vec<String> {
        let mut all = vec![];
        for s in &self.sources {
            for v in s.verdicts.iter().filter(|v| v.warns) {
                let kind = if v.context { " (context)" } else { "" };
                all.push(format!(
                    "{}: {}{kind} separates {what} from the others with AUC {:.2} ({} and {} crops)",
                    s.source, v.feature, v.auc, s.figures, s.others
                ));
            }
        }
        all
    }
}

/// Sources with too few crops that are named.
const LISTED: usize = 5;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for s in &self.sources {
            let chance = 0.5 + s.chance;
            let (name, figures, others) = (&s.source, s.figures, s.others);
            let (figures, others) = (Many(figures, "figure"), Many(others, "other"));
            writeln!(f, "{name}: {figures}, {others}; chance reaches {chance:.2}")?;
            for v in &s.verdicts {
                let mark = if v.warns { "!" } else { " " };
                let kind = if v.context { "context" } else { "" };
                writeln!(f, "  {mark} {:.3}  {:<34} {kind}", v.auc, v.feature)?;
            }
        }
        // Where each crop is a source of its own there are as many lines as crops.
        let few = |source| writeln!(f, "{source}: too few crops of a class to judge");
        self.too_few.iter().take(LISTED).try_for_each(few)?;
        if self.too_few.len() > LISTED {
            let others = Many(self.too_few.len() - LISTED, "other source");
            writeln!(f, "{others}: too few crops of a class to judge, too")?;
        }
        if self.sources.is_empty() {
            writeln!(
                f,
                "no verdict: {FEWEST} crops of each class are needed, of one source or of all together"
            )?;
        }
        Ok(())
    }
}

/// Judges every source with enough crops of both classes, and all of them together.
#[must_use]
pub fn check(items: &[ShortcutItem]) -> Report {
    let figure: Vec<bool> = items.iter().map(|i| i.figure).collect();
    report(items, &figure, &measured(items))
}

/// What is found about one class against the rest.
#[derive(Clone, Debug)]
pub struct ClassReport {
    /// Name of the class.
    pub class: String,
    /// Whether its crops are separated by what cannot see morphology.
    pub report: Report,
}

/// Judges each class against the rest, of two classes the second alone: they are each other's rest.
/// `of` is each item's class.
#[must_use]
pub fn check_classes(items: &[ShortcutItem], of: &[usize], classes: &[String]) -> Vec<ClassReport> {
    let features = measured(items);
    let first = usize::from(classes.len() == 2);
    let judged = classes.iter().enumerate().skip(first).map(|(class, name)| {
        let figure: Vec<bool> = of.iter().map(|c| *c == class).collect();
        ClassReport { class: name.clone(), report: report(items, &figure, &features) }
    });
    judged.collect()
}

/// The warnings of [`check_classes`], a line each.
#[must_use]
pub fn class_warnings(reports: &[ClassReport]) -> Vec<String> {
    reports.iter().flat_map(|r| r.report.warnings_about(&format!("`{}`", r.class))).collect()
}

fn measured(items: &[ShortcutItem]) -> Vec<Vec<f64>> {
    use rayon::prelude::*;
    items.par_iter().map(features::measure).collect()
}

fn report(items: &[ShortcutItem], figure: &[bool], features: &[Vec<f64>]) -> Report {
    let mut by: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        by.entry(&item.source).or_default().push(i);
    }
    let (mut sources, mut too_few) = (vec![], vec![]);
    for (name, members) in &by {
        match measure_source(name, members, items, figure, features) {
            Some(report) => sources.push(report),
            None => too_few.push((*name).to_owned()),
        }
    }
    if by.len() > 1 {
        let all: Vec<usize> = (0..items.len()).collect();
        sources.extend(measure_source("all", &all, items, figure, features));
    }
    Report { sources, too_few }
}

fn auc(scores: &[f64], figure: &[bool]) -> f64 {
    stats::metrics::roc_auc(scores, figure).ok().flatten().unwrap_or(0.5)
}

/// Standard error of an AUC over `a` items of one class and `b` of the other (Hanley and McNeil 1982).
fn error(auc: f64, a: f64, b: f64) -> f64 {
    let (q1, q2) = (auc / (2.0 - auc), 2.0 * auc * auc / (1.0 + auc));
    let square = auc * auc;
    let variance = auc * (1.0 - auc) + (a - 1.0) * (q1 - square) + (b - 1.0) * (q2 - square);
    (variance / (a * b)).max(0.0).sqrt()
}

fn measure_source(
    name: &str,
    members: &[usize],
    items: &[ShortcutItem],
    figure: &[bool],
    features: &[Vec<f64>],
) -> Option<SourceReport> {
    let figure: Vec<bool> = members.iter().map(|&i| figure[i]).collect();
    let figures = figure.iter().filter(|&&f| f).count();
    let others = figure.len() - figures;
    if figures < FEWEST || others < FEWEST {
        return None;
    }
    let (a, b) = (figures as f64, others as f64);
    let chance = 3.0 * ((a + b + 1.0) / (12.0 * a * b)).sqrt();
    let mut verdicts = vec![];
    let (mut blind, mut every) = (vec![], vec![]);
    for (k, f) in NAMES.iter().enumerate() {
        let column: Vec<f64> = members.iter().map(|&i| features[i][k]).collect();
        if column.iter().any(|v| !v.is_finite()) {
            continue;
        }
        let one = auc(&column, &figure);
        let auc = one.max(1.0 - one);
        let limit = f.sees.limit().max(0.5 + chance);
        let (context, warns) = (f.sees != Sees::Nothing, auc - error(auc, a, b) > limit);
        verdicts.push(Verdict { feature: f.name.into(), auc, context, limit, warns });
        if !context {
            blind.push(column.clone());
        }
        every.push(column);
    }
    let slides: BTreeSet<&str> = members.iter().map(|&i| bare(&items[i].slide)).collect();
    let order: Vec<&str> = slides.into_iter().collect();
    let fold: Vec<usize> = members
        .iter()
        .enumerate()
        .map(|(n, &i)| {
            let at = order.binary_search(&bare(&items[i].slide)).unwrap_or(0);
            // Fewer slides than folds: crops are dealt out instead.
            if order.len() >= FOLDS { at % FOLDS } else { n % FOLDS }
        })
        .collect();
    let together = |columns: &[Vec<f64>]| {
        auc(&linear::cross_validated(columns, &figure, &fold, FOLDS), &figure)
    };
    let (found, limit) = (together(&blind), LIMIT.max(0.5 + chance));
    let warns = found - error(found, a, b) > limit;
    let verdict = |feature: &str, auc, context, limit, warns| {
        let feature = feature.to_owned();
        Verdict { feature, auc, context, limit, warns }
    };
    verdicts.push(verdict(TOGETHER, found, false, limit, warns));
    verdicts.push(verdict(ALL_TOGETHER, together(&every), true, 1.0, false));
    verdicts.sort_by(|x, y| y.auc.total_cmp(&x.auc));
    Some(SourceReport { source: name.into(), figures, others, chance, verdicts })
}

#[cfg(test)]
mod tests;
