//! `counts.csv`: one line per slide.

use super::reviewed::Reviewed;
use super::slide_line::SlideLine;
use crate::export::CountsFile;
use base::table::Writer;

/// The columns of `counts.csv`; those of a list follow.
pub(super) const COLUMNS: [&str; 28] = [
    "slide",
    "status",
    "figures",
    "hotspot_count",
    "hotspot_x_px",
    "hotspot_y_px",
    "hotspot_mm2",
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

/// The columns that follow if a slide of the run was recounted.
pub(super) const REVIEWED: [&str; 6] = [
    "reviewed_by",
    "reviewed_figures",
    "reviewed_hotspot_count",
    "reviewed_density_per_20_mm2",
    "model_mitotic_score",
    "reviewed_mitotic_score",
];

/// The columns that follow if a reviewer's hotspot was asked for.
pub(super) const PLACED: [&str; 4] = ["placed_by", "placed_rule", "placed_mm2", "placed_figures"];

/// The columns that follow if a slide of the run was searched in regions.
pub(super) const REGIONS: [&str; 3] = ["regions", "regions_mm2", "excluded_mm2"];
/// The columns that follow if subtypes were classified.
pub(super) const SUBTYPES: [&str; 2] = ["atypical", "typical"];

fn regions(c: Option<&CountsFile>) -> [String; 3] {
    c.and_then(|c| c.regions.as_ref()).map_or_else(Default::default, |r| {
        let names: Vec<&str> = r.list.iter().map(|r| r.name.as_str()).collect();
        [names.join("; "), r.area_mm2.to_string(), r.excluded_mm2.to_string()]
    })
}

fn subtypes(c: Option<&CountsFile>) -> [String; 2] {
    let subtypes = c.and_then(|c| c.subtypes.as_ref());
    subtypes.map_or_else(Default::default, |s| [s.atypical, s.typical].map(|n| n.to_string()))
}

fn reviewed(r: &Reviewed) -> [String; 6] {
    let score = |g: &Option<String>| g.clone().unwrap_or_default();
    [
        r.reviewer.clone(),
        r.figures.to_string(),
        r.hotspot_count.to_string(),
        r.density_per_20_mm2.map_or_else(String::new, |v| v.to_string()),
        score(&r.model_mitotic_score),
        score(&r.mitotic_score),
    ]
}

fn placed(r: &Reviewed) -> [String; 4] {
    r.placed.as_ref().map_or_else(Default::default, |p| {
        let (by, rule) = (p.reviewer.clone(), p.preset.clone());
        [by, rule, p.area_mm2.to_string(), p.figures.to_string()]
    })
}

/// `counts.csv`.
pub(super) fn text(slides: &[SlideLine]) -> Vec<u8> {
    let further = further(slides.iter().map(|s| &s.columns));
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    let recounted: &[&str] = match slides.iter().any(|s| s.reviewed.is_some()) {
        true => &REVIEWED,
        false => &[],
    };
    let by_hand = slides.iter().filter_map(|s| s.reviewed.as_ref()).any(|r| r.placed.is_some());
    let by_hand: &[&str] = if by_hand { &PLACED } else { &[] };
    let some =
        |with: fn(&CountsFile) -> bool| slides.iter().filter_map(|s| s.counts.as_ref()).any(with);
    let in_regions: &[&str] = if some(|c| c.regions.is_some()) { &REGIONS } else { &[] };
    let subtyped: &[&str] = if some(|c| c.subtypes.is_some()) { &SUBTYPES } else { &[] };
    let header = [&COLUMNS, in_regions, subtyped, recounted, by_hand, &further].concat();
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
            number(c.and_then(CountsFile::hotspot_mm2)),
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
        let placed = s.reviewed.as_ref().map_or_else(Default::default, placed);
        let placed = placed.into_iter().take(by_hand.len());
        let reviewed = s.reviewed.as_ref().map_or_else(Default::default, reviewed);
        let reviewed = reviewed.into_iter().take(recounted.len());
        let regions = regions(c).into_iter().take(in_regions.len());
        let subtypes = subtypes(c).into_iter().take(subtyped.len());
        let more = regions.chain(subtypes).chain(reviewed).chain(placed);
        table.push(own.into_iter().chain(more).chain(further.iter().map(cell)));
    }
    table.into_bytes()
}

/// The columns of the lists that named slides or cases, in the order in which they first occur.
pub(super) fn further<'a>(cells: impl Iterator<Item = &'a Vec<(String, String)>>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for (name, _) in cells.flatten() {
        if !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subtypes::SubtypeCounts;

    #[test]
    fn subtypes_and_regions_have_columns_where_a_slide_has_them() {
        let text = include_str!("../../../cli/tests/golden/release-0.1.0/run/one/counts.json");
        let plain = CountsFile::parse(text).unwrap();
        let mut subtyped = plain.clone();
        subtyped.subtypes = Some(SubtypeCounts {
            atypical: 3,
            typical: 4,
            unclassified: 0,
            morphology: std::collections::BTreeMap::new(),
            models: Vec::new(),
        });
        let line = |name: &str, counts: &CountsFile| SlideLine {
            name: name.into(),
            folder: None,
            path: String::new(),
            status: "finished".into(),
            reason: None,
            kept: false,
            input_sha256: String::new(),
            input_pieces_sha256: None,
            seconds: 0.0,
            stages: Vec::new(),
            resumed_windows: 0,
            columns: Vec::new(),
            engine: None,
            counts: Some(counts.clone()),
            reviewed: None,
        };
        let written = |slides: &[SlideLine]| String::from_utf8(super::text(slides)).unwrap();
        assert!(!written(&[line("a", &plain)]).contains("atypical"));
        let text = written(&[line("a", &subtyped), line("b", &plain)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(",atypical,typical"), "{text}");
        assert!(lines[1].ends_with(",3,4") && lines[2].ends_with(",,"), "{text}");
    }
}
