//! A cohort as a table and as a page.

use super::{Cohort, page};
use base::file::WriteError;
use base::table::Writer;
use std::path::Path;

/// Writes `quality.csv` and `quality.html` into a folder, made where it is missing.
///
/// # Errors
/// [`WriteError`].
pub fn write(cohort: &Cohort, out: &Path) -> Result<(), WriteError> {
    std::fs::create_dir_all(out).map_err(|source| WriteError { path: out.to_owned(), source })?;
    table(cohort).write(&out.join("quality.csv"))?;
    base::file::write(&out.join("quality.html"), page::html(cohort).as_bytes())
}

pub(super) fn table(cohort: &Cohort) -> Writer {
    let mut header = vec!["slide", "file", "flags", "distance", "mpp_x", "mpp_y", "vendor"];
    header.extend([
        "scanner",
        "width",
        "height",
        "levels",
        "tissue_mm2",
        "out_of_focus",
        "pen",
        "dirt",
    ]);
    header.extend(["folds", "haematoxylin_r", "haematoxylin_g", "haematoxylin_b", "eosin_r"]);
    header.extend(["eosin_g", "eosin_b", "stain_from_cohort", "stain_from_training"]);
    header.extend(["missing_tiles", "label", "personal", "seconds", "unread_places"]);
    let empty = header.len() - 4;
    let mut table = Writer::new(&header);
    let number = |v: f64| ((v * 1e6).round() / 1e6).to_string();
    let maybe = |v: Option<f64>| v.map_or_else(String::new, number);
    for s in &cohort.slides {
        let mut cells = vec![s.name.clone(), s.file.display().to_string()];
        cells.extend([s.flags.join("; "), number(s.distance)]);
        match &s.measured {
            None => cells.extend(std::iter::repeat_n(String::new(), empty)),
            Some(m) => {
                cells.extend((0..2).map(|k| maybe(m.mpp.map(|m| m[k]))));
                cells.extend([m.vendor.clone(), m.scanner.unwrap_or_default().to_owned()]);
                cells.extend(m.size.map(|v| v.to_string()));
                cells.extend([m.levels.to_string(), maybe(m.tissue_mm2), maybe(m.out_of_focus)]);
                cells.extend([number(m.pen), number(m.dirt), maybe(m.folds)]);
                let stains = m.stains.map(|[h, e]| [h[0], h[1], h[2], e[0], e[1], e[2]]);
                cells.extend((0..6).map(|k| maybe(stains.map(|s| s[k]))));
                cells.extend([s.stain_from_cohort, s.stain_from_training].map(maybe));
                cells.extend([m.missing_tiles.to_string(), m.label.to_string()]);
                cells.extend([m.personal.to_string(), format!("{:.2}", m.seconds)]);
                cells.push(m.unread_places.to_string());
            }
        }
        table.push(cells);
    }
    table
}
