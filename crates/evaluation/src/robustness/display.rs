//! Results as text and as a picture.

use super::point::{Chosen, NamedPoint, Reached};
use super::{Robustness, Row, WorstChange};
use pages::charts::{self, Bar};
use std::fmt;

impl fmt::Display for Robustness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<18} {:>4} {:>4} {:>4}  {:>5} {:>5} {:>5}  {:>5}  {:>7}",
            "change", "TP", "FP", "FN", "prec", "rec", "F1", "AUC", "FP/mm2"
        )?;
        self.rows.iter().try_for_each(|r| writeln!(f, "{r}"))?;
        match (self.mean_f1, &self.worst) {
            (Some(mean), Some(WorstChange { change, f1 })) => {
                writeln!(f, "mean F1 {mean:.3}, worst {f1:.3} ({change}), {:.2} mm2", self.mm2)
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.3}"));
        write!(
            f,
            "{:<18} {:>4} {:>4} {:>4}  {:>5} {:>5} {:>5}  {:>5}  {:>7.2}",
            self.perturbation,
            self.tally.tp,
            self.tally.fp,
            self.tally.fn_,
            share(self.precision),
            share(self.recall),
            share(self.f1),
            share(self.auc),
            self.false_per_mm2
        )
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "scale{}: slope {:.3}, offset {:.3}; calibration error {:.4} -> {:.4}; AUC {:.4}",
            if self.scale_given { " (given)" } else { "" },
            self.slope,
            self.offset,
            self.ece_before,
            self.ece_after,
            self.auc_clean
        )?;
        self.points.iter().try_for_each(|(name, p)| writeln!(f, "{name:<10} {p}"))?;
        writeln!(
            f,
            "{:<10} each fold at the point of the others: {}",
            "left out", self.left_out.reached
        )?;
        for (name, p) in &self.left_out.folds {
            writeln!(f, "  {name:<18} seg {:.2} cls {:.2}", p.seg, p.cls)?;
        }
        let share = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.3}"));
        self.changes.iter().try_for_each(|c| {
            let (name, precision, recall) = (&c.perturbation, share(c.precision), share(c.recall));
            writeln!(f, "  {name:<18} precision {precision}, recall {recall}, F1 {:.3}", c.f1)
        })
    }
}

impl fmt::Display for NamedPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seg {:.2} cls {:.2}: {}", self.seg, self.cls, self.reached)
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "F1 clean {:.3}, mean {:.3}, worst {:.3} ({}), precision {:.2}, recall {:.2}, foreign {} per mm2",
            self.f1_clean,
            self.f1_mean,
            self.f1_worst,
            self.worst,
            self.precision,
            self.recall,
            self.foreign_per_mm2.map_or("-".into(), |v| format!("{v:.1}"))
        )
    }
}

/// Bars per perturbation as SVG: F1, recall and precision.
pub(super) fn bars(r: &Robustness) -> String {
    let row = |row: &Row| Bar {
        name: row.perturbation.clone(),
        value: row.f1,
        marks: [row.precision, row.recall],
    };
    let rows: Vec<Bar> = r.rows.iter().map(row).collect();
    let axis = "F1 (bar), precision (ring), recall (cross)";
    charts::bars("At the operating point", axis, &rows).svg()
}
