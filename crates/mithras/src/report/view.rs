//! What the summary shows of one slide, drawn from the files in its folder.

use super::reviewed::Reviewed;
use super::slide_folder::SlideFolder;
use crate::batch::{ResultsError, StageTime};
use crate::export::RegionCount;
use crate::export::{Caveat, CountsFile, HOTSPOT_MM2, labels, pictures as assets, read_detections};
use crate::record::DetectionRow;
use base::file::{MOST_BYTES, ReadError};
use base::json::JsonError;
use base::walk::relative;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mitosis::matching::PAPER_RADIUS;
use std::fmt::Write as _;
use std::path::Path;

/// One slide's line in the table.
pub(super) struct Row<'a> {
    pub slide: &'a SlideFolder,
    pub counts: &'a CountsFile,
    pub seconds: String,
    /// Its folder as an address relative to the page; none where no such path is.
    pub at: Option<String>,
}

impl<'a> Row<'a> {
    /// None for a slide that failed. `into` is the page's folder.
    pub(super) fn new(slide: &'a SlideFolder, into: &Path) -> Option<Self> {
        let counts = slide.counts.as_ref()?;
        let at = address(&slide.folder, into);
        Some(Self { slide, counts, seconds: seconds(slide.state.seconds), at })
    }

    pub(super) fn density(&self) -> String {
        per_20_mm2(self.counts.density_per_20_mm2)
    }

    /// Its caveats in few words; empty without any.
    pub(super) fn labels(&self) -> String {
        labels(&self.counts.caveats())
    }

    pub(super) fn mpp(&self) -> String {
        let r = &self.counts.resolution;
        let short =
            |v: f64| format!("{:.4}", v).trim_end_matches('0').trim_end_matches('.').to_owned();
        if r.x == r.y { short(r.x) } else { format!("{} × {}", short(r.x), short(r.y)) }
    }
}

fn per_20_mm2(density: Option<f64>) -> String {
    density.map_or_else(|| "–".into(), |d| format!("{d:.1}"))
}

/// One slide with its pictures.
pub(super) struct SlideView<'a> {
    pub name: &'a str,
    pub counts: &'a CountsFile,
    pub reviewed: Option<&'a Reviewed>,
    pub kept: bool,
    pub resumed_windows: usize,
    pub seconds: &'a str,
    pub density: String,
    pub mpp: String,
    pub stages: Vec<StageView>,
    pub thumbnail: String,
    pub overlay: String,
    pub figures: Option<String>,
    pub tiles: Vec<Tile>,
}

/// A bar of the stage chart.
pub(super) struct StageView {
    pub name: String,
    pub items: u64,
    pub threads: usize,
    pub seconds: String,
    pub percent: u32,
}

/// One of the top figures: its place in the picture and its scores.
pub(super) struct Tile {
    pub left: usize,
    pub top: usize,
    pub title: String,
    pub score: String,
}

impl<'a> SlideView<'a> {
    pub(super) fn new(row: &'a Row) -> Result<Self, ResultsError> {
        let Row { slide, counts, seconds, at: _ } = row;
        let (folder, state) = (&slide.folder, &slide.state);
        let rows = read_detections(&folder.join("detections.csv"));
        let rows = rows.map_err(|e| ResultsError::because(folder, &e))?;
        let best = assets::top(&rows);
        let tiles = best
            .iter()
            .enumerate()
            .map(|(k, r)| Tile {
                left: k % assets::COLUMNS * assets::SIDE,
                top: k / assets::COLUMNS * assets::SIDE,
                title: format!(
                    "x {:.0}, y {:.0} px; s_seg {:.3}{}{}",
                    r.x_px,
                    r.y_px,
                    r.s_seg,
                    r.s_cls.map_or_else(String::new, |s| format!(", s_cls {s:.3}")),
                    r.subtypes.map_or_else(String::new, |s| format!(
                        "; p_atypical {:.3}, {}",
                        s.atypical(),
                        s.morphology().replace('_', " ")
                    ))
                ),
                score: format!("{:.2}", r.score()),
            })
            .collect::<Vec<_>>();
        let picture =
            |name| base64(&folder.join(name)).map_err(|e| ResultsError::because(folder, &e));
        let figures = if tiles.is_empty() { None } else { Some(picture(assets::FIGURES)?) };
        Ok(Self {
            name: &slide.name,
            counts,
            reviewed: slide.reviewed.as_ref(),
            kept: slide.kept,
            resumed_windows: state.work.resumed_windows,
            seconds,
            density: row.density(),
            mpp: row.mpp(),
            stages: state.work.stages.iter().map(StageView::new).collect(),
            thumbnail: picture(assets::THUMBNAIL)?,
            overlay: overlay(counts, &rows, folder)
                .map_err(|e| ResultsError::because(folder, &e))?,
            figures,
            tiles,
        })
    }

    /// Caveats for a reader of the numbers.
    pub(super) fn caveats(&self) -> Vec<Caveat> {
        self.counts.caveats()
    }

    /// Figures per 20 mm2 of a region.
    pub(super) fn density_text(&self, region: &RegionCount) -> String {
        per_20_mm2(region.density_per_20_mm2)
    }

    /// Figures per 20 mm2 after a review.
    pub(super) fn reviewed_density(&self) -> String {
        per_20_mm2(self.reviewed.and_then(|r| r.density_per_20_mm2))
    }

    /// What the density may be when figures fall as they like (exact Poisson interval); nothing without
    /// a density.
    pub(super) fn interval(&self) -> String {
        let area = self.counts.analysed_mm2;
        let figures = stats::interval::poisson(self.counts.figures as u64, 0.95).ok();
        figures.filter(|_| area > 0.0).map_or_else(String::new, |i| {
            let [low, high] = [i.lower, i.upper].map(|v| 20.0 * v / area);
            format!(" (95 %: {low:.1}\u{a0}–\u{a0}{high:.1})")
        })
    }

    /// Morphologies that occur, most frequent first.
    pub(super) fn morphologies(&self) -> String {
        let counts = self.counts.subtypes.iter().flat_map(|s| &s.morphology);
        let mut all: Vec<_> = counts.filter(|(_, n)| **n > 0).collect();
        all.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let each = all.iter().map(|(name, n)| format!("{} {n}", name.replace('_', " ")));
        each.collect::<Vec<_>>().join(", ")
    }

    /// Area of the hotspot: so much as was searched.
    pub(super) fn hotspot_mm2(&self) -> String {
        match self.counts.hotspot_mm2().filter(|mm2| *mm2 < HOTSPOT_MM2) {
            Some(mm2) => format!("{mm2:.3} of {HOTSPOT_MM2} mm² {}", self.counts.hotspot_place()),
            None => format!("{HOTSPOT_MM2} mm²"),
        }
    }

    pub(super) fn hotspot(&self) -> String {
        self.counts.hotspot.map_or_else(
            || "no figure".into(),
            |h| format!("centred on x {:.0}, y {:.0} px", h.centre_px[0], h.centre_px[1]),
        )
    }
}

impl StageView {
    fn new(s: &StageTime) -> Self {
        Self {
            name: s.stage.clone(),
            items: s.items,
            threads: s.threads,
            seconds: seconds(s.busy_seconds),
            percent: (s.busy_share * 100.0).round() as u32,
        }
    }
}

/// A folder as an address relative to a page in `into`, which may be next to the folder's parent.
fn address(folder: &Path, into: &Path) -> Option<String> {
    let path = relative(folder, into)?;
    let mut at = String::from(if path.starts_with("../") { "" } else { "./" });
    for b in path.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                at.push(b as char)
            }
            _ => write!(at, "%{b:02X}").expect("a string takes text"),
        }
    }
    at.push('/');
    Some(at)
}

pub(super) fn seconds(s: f64) -> String {
    if s < 100.0 {
        format!("{s:.1} s")
    } else {
        format!("{:.0} min {:02.0} s", (s / 60.0).floor(), s % 60.0)
    }
}

fn base64(path: &Path) -> Result<String, ReadError> {
    Ok(BASE64_STANDARD.encode(base::file::read(path, MOST_BYTES)?))
}

/// The rings of a file of outlines as a path in level-0 pixels.
fn outline(counts: &CountsFile, file: &Path) -> Result<String, JsonError> {
    let outline: serde_json::Value = base::json::read(file)?;
    let offset = counts.slide.bounds_offset.map(|v| v as f64);
    let mut path = String::new();
    let features = outline["features"].as_array().map_or(&[][..], Vec::as_slice);
    for ring in features.iter().filter_map(|f| f["geometry"]["coordinates"].as_array()).flatten() {
        let points = ring.as_array().map_or(&[][..], Vec::as_slice);
        for (k, p) in points.iter().enumerate() {
            let (x, y) = (p[0].as_f64().unwrap_or(0.0), p[1].as_f64().unwrap_or(0.0));
            let step = if k == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{step}{:.0} {:.0}", x + offset[0], y + offset[1]);
        }
        path.push('Z');
    }
    Ok(path)
}

/// Outlines of tissue and flaws, figures and hotspot in level-0 pixels.
fn overlay(counts: &CountsFile, rows: &[DetectionRow], folder: &Path) -> Result<String, JsonError> {
    let (w, h) = (counts.slide.width as f64, counts.slide.height as f64);
    let mut svg = edged("tissue", &outline(counts, &folder.join(assets::TISSUE))?);
    if counts.is_flawed() {
        svg += &edged("flaw", &outline(counts, &folder.join(assets::FLAWS))?);
    }
    // A figure is drawn as large as its matching circle, but never too small to see.
    let radius = (PAPER_RADIUS.0 / counts.resolution.x).max(w.max(h) / 220.0);
    if let Some(spot) = counts.hotspot {
        let ([x, y], [right, below]) = (spot.min_px, spot.max_px);
        svg += &edged("hotspot", &format!("M{x:.0} {y:.0}H{right:.0}V{below:.0}H{x:.0}Z"));
    }
    let mut circles = String::new();
    for r in rows.iter().filter(|r| r.accepted) {
        let (x, y, across) = (r.x_px - radius, r.y_px, 2.0 * radius);
        let arc = |by: f64| format!("a{radius:.0} {radius:.0} 0 1 0 {by:.0} 0");
        let _ = write!(circles, "M{x:.0} {y:.0}{}{}", arc(across), arc(-across));
    }
    svg += &edged("figure", &circles);
    Ok(svg)
}

/// A path with a dark and a light edge, so that it shows on pink, purple and white.
fn edged(kind: &str, path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    let drawn = |class| format!("<path class=\"{class}\" d=\"{path}\"/>");
    ["dark", "light", kind].map(drawn).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slide_is_found_from_the_page_wherever_it_is() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let folder = base.path().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            folder
        };
        let slide = at("part 1/slide#1");
        assert_eq!(address(&slide, &at("part 1")).unwrap(), "./slide%231/");
        assert_eq!(address(&slide, &at("all")).unwrap(), "../part%201/slide%231/");
        assert_eq!(address(&slide, &at("all/tables")).unwrap(), "../../part%201/slide%231/");
        assert_eq!(address(&slide, &base.path().join("none")), None);
    }
}
