//! `counts.csv`: one line per slide.

use super::reviewed::Reviewed;
use super::run_file::SlideLine;
use crate::export::CountsFile;
use crate::file::WriteError;
use artifact::table::Writer;
use std::path::Path;

/// The columns of `counts.csv`; those of a list stand behind them.
pub const COLUMNS: [&str; 27] = [
    "slide",
    "status",
    "figures",
    "hotspot_count",
    "hotspot_x_px",
    "hotspot_y_px",
    "density_per_20_mm2",
    "analysed_mm2",
    "unread_mm2",
    "absent_mm2",
    "suspect_mm2",
    "tissue_mm2",
    "candidates",
    "outside_tissue",
    "flawed_figures",
    "glass_mm2",
    "out_of_focus_mm2",
    "pen_mm2",
    "dirt_mm2",
    "operating_point",
    "threshold_seg",
    "threshold_cls",
    "mpp_x",
    "mpp_y",
    "mpp_source",
    "notes",
    "reason",
];

/// What stands behind them where a slide of the run was recounted.
const REVIEWED: [&str; 6] = [
    "reviewed_by",
    "reviewed_figures",
    "reviewed_hotspot_count",
    "reviewed_density_per_20_mm2",
    "model_grade",
    "reviewed_grade",
];

fn reviewed(r: &Reviewed) -> [String; 6] {
    let grade = |g: &Option<String>| g.clone().unwrap_or_default();
    [
        r.reviewer.clone(),
        r.figures.to_string(),
        r.hotspot_count.to_string(),
        r.density_per_20_mm2.map_or_else(String::new, |v| v.to_string()),
        grade(&r.model_grade),
        grade(&r.grade),
    ]
}

pub(super) fn write(path: &Path, slides: &[SlideLine]) -> Result<(), WriteError> {
    let further = further(slides);
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    let recounted: &[&str] = match slides.iter().any(|s| s.reviewed.is_some()) {
        true => &REVIEWED,
        false => &[],
    };
    let header = [&COLUMNS, recounted, &further].concat();
    let mut table = Writer::new(header);
    for s in slides {
        let c = s.counts.as_ref();
        let count = |f: fn(&CountsFile) -> usize| c.map_or_else(String::new, |c| f(c).to_string());
        let hotspot = c.and_then(|c| c.hotspot);
        let own = [
            s.name.clone(),
            s.status.clone(),
            count(|c| c.figures),
            count(|c| c.hotspot_count),
            number(hotspot.map(|h| h.centre_px[0])),
            number(hotspot.map(|h| h.centre_px[1])),
            number(c.and_then(|c| c.density_per_20_mm2)),
            number(c.map(|c| c.analysed_mm2)),
            number(c.map(|c| c.unread_mm2)),
            number(c.map(|c| c.absent_mm2)),
            number(c.map(|c| c.suspect_mm2)),
            number(c.map(|c| c.tissue_mm2)),
            count(|c| c.candidates),
            count(|c| c.outside_tissue),
            count(|c| c.flawed_figures),
            number(c.map(|c| c.glass_mm2)),
            number(c.map(|c| c.out_of_focus_mm2)),
            number(c.map(|c| c.pen_mm2)),
            number(c.map(|c| c.dirt_mm2)),
            c.map_or_else(String::new, |c| c.operating_point.clone()),
            c.map_or_else(String::new, |c| c.thresholds.seg.get().to_string()),
            c.map_or_else(String::new, |c| c.thresholds.cls.get().to_string()),
            number(c.map(|c| c.resolution.x)),
            number(c.map(|c| c.resolution.y)),
            c.map_or_else(String::new, |c| c.resolution.source.clone()),
            c.map_or_else(String::new, |c| c.notes().join("; ")),
            s.reason.clone().unwrap_or_default(),
        ];
        let cell = |name: &&str| {
            let found = s.columns.iter().find(|(n, _)| n == name);
            found.map_or_else(String::new, |(_, cell)| cell.clone())
        };
        let reviewed = s.reviewed.as_ref().map_or_else(Default::default, reviewed);
        let reviewed = reviewed.into_iter().take(recounted.len());
        table.push(own.into_iter().chain(reviewed).chain(further.iter().map(cell)));
    }
    table.write(path)
}

/// The columns of the lists that named these slides, in the order in which they first occur.
fn further(slides: &[SlideLine]) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for (name, _) in slides.iter().flat_map(|s| &s.columns) {
        if !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    all
}
