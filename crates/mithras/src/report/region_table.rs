//! `regions.csv`: one line per region of every slide that was searched in regions.

use super::slide_line::SlideLine;
use crate::file::WriteError;
use base::table::Writer;
use std::path::Path;

/// Its columns.
pub(super) const COLUMNS: [&str; 15] = [
    "slide",
    "region",
    "class",
    "area_mm2",
    "tissue_mm2",
    "analysed_mm2",
    "unread_mm2",
    "figures",
    "hotspot_count",
    "hotspot_x_px",
    "hotspot_y_px",
    "hotspot_mm2",
    "density_per_20_mm2",
    "file",
    "notes",
];

/// Writes it where any slide has regions, and returns whether one has; the row `(all)` of a slide is of its regions
/// together.
pub(super) fn write(path: &Path, slides: &[SlideLine]) -> Result<bool, WriteError> {
    let with = slides.iter().filter_map(|s| Some((s, s.counts.as_ref()?)));
    let with: Vec<_> = with.filter_map(|(s, c)| Some((s, c, c.regions.as_ref()?))).collect();
    if with.is_empty() {
        return Ok(false);
    }
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    let mut table = Writer::new(COLUMNS);
    for (slide, counts, regions) in with {
        for r in &regions.list {
            table.push([
                slide.name.clone(),
                r.name.clone(),
                r.class.clone(),
                r.area_mm2.to_string(),
                r.tissue_mm2.to_string(),
                r.analysed_mm2.to_string(),
                r.unread_mm2.to_string(),
                r.figures.to_string(),
                r.hotspot_count.to_string(),
                number(r.hotspot.map(|h| h.centre_px[0])),
                number(r.hotspot.map(|h| h.centre_px[1])),
                number(r.hotspot_mm2.or_else(|| {
                    let h = r.hotspot?;
                    h.on_slide_mm2.or_else(|| counts.square_on_slide_mm2(h.centre_px))
                })),
                number(r.density_per_20_mm2),
                regions.source.file.clone(),
                String::new(),
            ]);
        }
        table.push([
            slide.name.clone(),
            "(all)".to_owned(),
            String::new(),
            regions.area_mm2.to_string(),
            counts.tissue_mm2.to_string(),
            counts.analysed_mm2.to_string(),
            counts.unread_mm2.to_string(),
            counts.figures.to_string(),
            counts.hotspot_count.to_string(),
            number(counts.hotspot.map(|h| h.centre_px[0])),
            number(counts.hotspot.map(|h| h.centre_px[1])),
            number(counts.hotspot_mm2()),
            number(counts.density_per_20_mm2),
            regions.source.file.clone(),
            regions.notes.join("; "),
        ]);
    }
    table.write(path)?;
    Ok(true)
}
