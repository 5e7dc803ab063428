//! What a row of a table of counts states twice.

use crate::error::Result;
use crate::table::Table;

/// Least analysed area whose rounding in a table does not change a density, mm2.
const LEAST_MM2: f64 = 1e-4;

/// Compares what the program's own columns state twice: figures of the slide and of its hotspot, and the density.
pub(crate) fn check_counts(table: &Table, row: usize) -> Result<()> {
    let number = |column| table.number_if_any(row, column).ok().flatten();
    let mm2 = number(table.first_column(&["analysed_mm2"])).filter(|mm2| *mm2 > LEAST_MM2);
    for by in ["", "reviewed_"] {
        let column = |name: &str| table.first_column(&[&format!("{by}{name}")]);
        let Some(figures) = number(column("figures")) else { continue };
        let (hotspot, density) = (column("hotspot_count"), column("density_per_20_mm2"));
        if let (Some(column), Some(n)) = (hotspot, number(hotspot).filter(|n| *n > figures)) {
            let reason = format!("{n} figures in the hotspot, but {figures} on the slide");
            return Err(table.wrong(row, column, reason));
        }
        let Some(mm2) = mm2 else { continue };
        let right = 20.0 * figures / mm2;
        let is_other = |d: &f64| (d - right).abs() > 0.01 * right + 1e-3;
        if let (Some(column), Some(d)) = (density, number(density).filter(is_other)) {
            let reason = format!("{d}, but {figures} figures on {mm2} mm2 are {right:.3}");
            return Err(table.wrong(row, column, reason));
        }
    }
    Ok(())
}
