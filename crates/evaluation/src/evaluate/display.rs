//! An evaluation as text and plots.

use super::{Evaluation, Figures, curve};
use base::file::{WriteError, write};
use base::text::Many;
use std::fmt;
use std::path::{Path, PathBuf};

impl Evaluation {
    /// Writes each rule's curve over all thresholds as `STEM.csv` and `STEM.svg`; of several rules as
    /// `STEM-RULE.csv` and so on.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_curves(&self, stem: &Path) -> Result<(), WriteError> {
        for rule in &self.rules {
            let mut name = stem.as_os_str().to_owned();
            if self.rules.len() > 1 {
                name.push(format!("-{}", rule.rule));
            }
            let file = |ending: &str| {
                let mut name = name.clone();
                name.push(ending);
                PathBuf::from(name)
            };
            write(&file(".csv"), &curve::csv(&rule.curve))?;
            let picture = curve::svg(&rule.curve, &rule.pooled.tally, self.analysed_mm2);
            write(&file(".svg"), picture.as_bytes())?;
        }
        Ok(())
    }
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = self;
        writeln!(
            f,
            "{} on {}, radius {} um",
            Many(result.truth, "figure"),
            Many(result.slides, "slide"),
            result.radius_um
        )?;
        for rule in &result.rules {
            let names = rule.cases.keys().chain(rule.tumours.keys());
            let width = names.map(|n| n.chars().count()).max().unwrap_or(0).clamp(10, 48);
            writeln!(f)?;
            writeln!(
                f,
                "{:<width$}  {:>5}  {:>5}  {:>5}  {:>9}  {:>6}  {:>6}",
                format!("rule {}", rule.rule),
                "TP",
                "FP",
                "FN",
                "precision",
                "recall",
                "F1"
            )?;
            let line = |to: &mut fmt::Formatter<'_>, name: &str, f: &Figures| {
                let share = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.3}"));
                writeln!(
                    to,
                    "{name:<width$}  {:>5}  {:>5}  {:>5}  {:>9}  {:>6}  {:>6}",
                    f.tally.tp,
                    f.tally.fp,
                    f.tally.fn_,
                    share(f.precision),
                    share(f.recall),
                    share(f.f1)
                )
            };
            if rule.cases.len() > 1 {
                for (n, figures) in &rule.cases {
                    line(f, n, figures)?;
                }
            }
            for (n, figures) in &rule.tumours {
                line(f, n, figures)?;
            }
            line(f, "pooled", &rule.pooled)?;
            if let Some(i) = &rule.intervals {
                let range = |v: Option<[f64; 2]>| {
                    v.map_or_else(|| "-".into(), |[a, b]| format!("{a:.3} to {b:.3}"))
                };
                writeln!(
                    f,
                    "95 % intervals, slides resampled: precision {}, recall {}, F1 {}",
                    range(i.precision),
                    range(i.recall),
                    range(i.f1)
                )?;
            }
            let best = rule.sweep.iter().filter(|p| p.figures.f1.is_some()).max_by(|a, b| {
                a.figures.f1.partial_cmp(&b.figures.f1).expect("shares are never NaN")
            });
            if let Some(best) = best {
                writeln!(
                    f,
                    "for information: the best F1 on this very truth would be {:.3}, at threshold {:.2}",
                    best.figures.f1.unwrap_or(0.0),
                    best.threshold
                )?;
            }
        }
        result.write_notes(f)
    }
}

impl Evaluation {
    fn write_notes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.notes.is_empty() {
            writeln!(f)?;
            self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))?;
        }
        if !self.without_truth.is_empty() {
            writeln!(f)?;
            let left_out = self.without_truth.join(", ");
            writeln!(f, "not evaluated, the truth does not name them: {left_out}")?;
        }
        Ok(())
    }
}
