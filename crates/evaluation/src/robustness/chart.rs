//! Bars per perturbation: F1, recall and precision.

use super::Robustness;
use pages::charts::{self, Bar};

/// The picture as SVG.
pub(super) fn bars(r: &Robustness) -> String {
    let row = |row: &super::Row| Bar {
        name: row.perturbation.clone(),
        value: row.f1,
        marks: [row.precision, row.recall],
    };
    let rows: Vec<Bar> = r.rows.iter().map(row).collect();
    let axis = "F1 (bar), precision (ring), recall (cross)";
    charts::bars("At the operating point", axis, &rows).svg()
}
