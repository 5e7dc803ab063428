//! `counts.json`: the mitotic count of one slide with everything needed to judge it.

use super::hotspot::{HotspotEntry, square_on_slide_mm2};
use super::kind::{Export, ExportError, json};
use super::region_counts::RegionCounts;
use crate::record::{MEANINGLESS, ModelEntry, SlideEntry, SlideRecord};
use crate::regions::outlines;
use crate::subtypes::SubtypeCounts;
use base::json::{JsonError, ValueError};
use detect::Flaw;
use mitosis::Resolution;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub(super) const EXPORT: Export = Export {
    file: "counts.json",
    about: "hotspot, density, areas, thresholds, resolution and its source",
    bytes,
};

/// The only schema this build reads.
pub const SCHEMA: &str = "mithras.counts/1";

/// Share of the analysed tissue out of focus from which on a slide carries a note.
pub const OUT_OF_FOCUS_SHARE: f64 = 0.1;

/// Why a `counts.json` cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum CountsError {
    /// It is not JSON, or a field is missing or of another kind.
    #[error(transparent)]
    Json(#[from] ValueError),
    /// It is of another schema.
    #[error("schema {0:?}, this build reads {SCHEMA}")]
    Schema(Option<String>),
}

/// Content of `counts.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountsFile {
    /// Version of this format.
    pub schema: String,
    /// Name, size and digest of the slide's file.
    pub slide: SlideEntry,
    /// Level-0 resolution.
    pub resolution: ResolutionEntry,
    /// Package, digests and licence of the weights.
    pub model: ModelEntry,
    /// The threshold pair and where it came from.
    pub thresholds: mitosis::OperatingPoint,
    /// Its name: one of the package's card, `package` or `given`; empty in older files.
    #[serde(default)]
    pub operating_point: String,
    /// Whether there was any tissue to look at.
    pub has_tissue: bool,
    /// Candidates of the first stage, accepted or not.
    pub candidates: usize,
    /// Candidates that were accepted as figures.
    pub figures: usize,
    /// Figures in the densest 2 mm2.
    pub hotspot_count: usize,
    /// Where that is; none without figures.
    pub hotspot: Option<HotspotEntry>,
    /// Figures per 20 mm2 of analysed tissue; none without analysed tissue.
    pub density_per_20_mm2: Option<f64>,
    /// Tissue found, mm2.
    pub tissue_mm2: f64,
    /// Tissue read, mm2.
    pub analysed_mm2: f64,
    /// Tissue that could not be read, mm2; left out of the density.
    pub unread_mm2: f64,
    /// Windows on tissue, those left out included.
    pub windows: usize,
    /// Windows left out, with reasons.
    pub unread_windows: Vec<UnreadEntry>,
    /// Candidates whose crop could not be read; they are not detections.
    pub unclassified: usize,
    /// Candidates too far outside the tissue to be accepted.
    #[serde(default)]
    pub outside_tissue: usize,
    /// Figures in areas that cannot be trusted; they count.
    #[serde(default)]
    pub flawed_figures: usize,
    /// The slide, or its regions, without tissue, mm2.
    #[serde(default)]
    pub glass_mm2: f64,
    /// Tissue out of focus, mm2.
    #[serde(default)]
    pub out_of_focus_mm2: f64,
    /// Area under pen of what was read, mm2, on tissue and off it.
    #[serde(default)]
    pub pen_mm2: f64,
    /// Area under dirt of what was read, mm2, on tissue and off it.
    #[serde(default)]
    pub dirt_mm2: f64,
    /// Area of the tiles that the file marks as missing, mm2; they are read as white.
    #[serde(default)]
    pub absent_mm2: f64,
    /// Area of the tiles that were decoded though their data are in doubt, mm2.
    #[serde(default)]
    pub suspect_mm2: f64,
    /// What is wrong with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspect_reasons: Vec<String>,
    /// Why the counts are to be taken with care at this resolution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution_note: Option<String>,
    /// Maker of the scanner, where the file states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scanner: Option<String>,
    /// Why the counts are to be taken with care on slides of this scanner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scanner_note: Option<String>,
    /// That the slide has one channel of grey, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour_note: Option<String>,
    /// Levels of the slide that contradict finer ones or cannot be decoded, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub level_notes: Vec<String>,
    /// Subtypes of the accepted figures, after `--subtypes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtypes: Option<SubtypeCounts>,
    /// The regions that were searched; absent where that was the whole slide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regions: Option<RegionCounts>,
}

/// Level-0 resolution with its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolutionEntry {
    /// um/px, horizontally.
    pub x: f64,
    /// um/px, vertically.
    pub y: f64,
    /// The field it was read from, as text.
    pub source: String,
}

/// A window left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnreadEntry {
    /// Upper left corner, level-0 px.
    pub min_px: [f64; 2],
    /// Lower right corner, level-0 px.
    pub max_px: [f64; 2],
    /// Message of the reader's error.
    pub reason: String,
}

impl CountsFile {
    /// The content of `counts.json` for one slide's record.
    #[must_use]
    pub fn from_record(record: &SlideRecord) -> Self {
        let count = record.count.as_ref();
        let r = &record.resolution;
        let round = |v: f64, steps: f64| (v * steps).round() / steps;
        let side = |px: u64, mpp: mitosis::Mpp| px as f64 * mpp.get() / 1000.0;
        let slide_mm2 = side(record.slide.width, r.x) * side(record.slide.height, r.y);
        let searched_mm2 = record.regions.as_ref().map_or(slide_mm2, |s| s.area_mm2);
        let px = |p: mitosis::Point<mitosis::Level0>| [round(p.x, 100.0), round(p.y, 100.0)];
        let hotspot =
            count.and_then(|c| c.hotspot).map(|h| HotspotEntry::new(&h, &record.slide, r));
        Self {
            schema: SCHEMA.into(),
            slide: record.slide.clone(),
            resolution: ResolutionEntry {
                x: r.x.get(),
                y: r.y.get(),
                source: r.source.to_string(),
            },
            model: record.model.clone(),
            thresholds: record.point.clone(),
            operating_point: record.point_name.clone(),
            has_tissue: record.windows > 0,
            candidates: record.rows.len(),
            figures: record.figures().count(),
            hotspot_count: count.map_or(0, mitosis::Count::hotspot_count),
            hotspot,
            density_per_20_mm2: count.map(|c| c.density_per_20_mm2),
            tissue_mm2: round(record.tissue.0, 1e6),
            analysed_mm2: round(count.map_or(0.0, |c| c.analysed.0), 1e6),
            unread_mm2: round(count.map_or(0.0, |c| c.unread.0), 1e6),
            windows: record.windows,
            unread_windows: record
                .unread
                .iter()
                .map(|u| UnreadEntry {
                    min_px: px(u.min),
                    max_px: px(u.max),
                    reason: u.reason.clone(),
                })
                .collect(),
            unclassified: record.unclassified,
            outside_tissue: record.rows.iter().filter(|r| r.outside_tissue).count(),
            flawed_figures: record.figures().filter(|r| r.flaw.is_some()).count(),
            glass_mm2: round((searched_mm2 - record.tissue.0).max(0.0), 1e6),
            out_of_focus_mm2: round(record.flawed.out_of_focus.0, 1e6),
            pen_mm2: round(record.flawed.area(Flaw::Pen).0, 1e6),
            dirt_mm2: round(record.flawed.area(Flaw::Dirt).0, 1e6),
            absent_mm2: round(record.condition.absent_mm2, 1e6),
            suspect_mm2: round(record.condition.suspect_mm2, 1e6),
            suspect_reasons: record.condition.suspect_reasons.clone(),
            resolution_note: record.condition.resolution_note.clone(),
            scanner: record.condition.scanner.clone(),
            scanner_note: record.condition.scanner_note.clone(),
            colour_note: record.condition.colour_note.clone(),
            level_notes: record.condition.level_notes.clone(),
            subtypes: record.subtypes.as_ref().map(|m| SubtypeCounts::count(record.figures(), m)),
            regions: record.regions.as_ref().map(|s| {
                let places: Vec<_> = record.places().collect();
                let mut counts = RegionCounts::new(s, &places, &record.slide, r);
                let areas: Vec<_> = s.list.iter().map(|r| &r.area).collect();
                counts.measure(hotspot, &areas, &record.slide, r);
                counts
            }),
        }
    }

    /// The part on the slide of the square around a place, mm2; none where the resolution is not valid.
    #[must_use]
    pub fn square_on_slide_mm2(&self, [x, y]: [f64; 2]) -> Option<f64> {
        let resolution = self.resolution().ok()?;
        Some(square_on_slide_mm2(mitosis::Point::new(x, y), &self.slide, &resolution))
    }

    /// Measures the part of the hotspots that was searched, where a file of an earlier version with regions lacks it.
    ///
    /// # Errors
    /// [`JsonError`] where the outlines in the slide's folder cannot be read.
    pub fn measure_hotspots(&mut self, folder: &Path) -> Result<(), JsonError> {
        let resolution = self.resolution();
        let (Some(regions), Ok(resolution)) = (&mut self.regions, resolution) else {
            return Ok(());
        };
        if regions.hotspot_mm2.is_none() && self.hotspot.is_some() {
            let outlines = outlines(folder, self.slide.bounds_offset)?;
            let areas: Vec<_> = outlines.iter().map(|o| &o.area).collect();
            // Outlines that are lost measure nothing.
            if areas.len() == regions.list.len() {
                regions.measure(self.hotspot, &areas, &self.slide, &resolution);
            }
        }
        Ok(())
    }

    /// The part of the hotspot that was searched, mm2: that on the slide, with regions that in them. None without
    /// figures. Of files of earlier versions, too, but for regions ([`Self::measure_hotspots`]).
    #[must_use]
    pub fn hotspot_mm2(&self) -> Option<f64> {
        let hotspot = self.hotspot?;
        let searched = self.regions.as_ref().and_then(|r| r.hotspot_mm2);
        searched.or(hotspot.on_slide_mm2).or_else(|| self.square_on_slide_mm2(hotspot.centre_px))
    }

    /// Whether any area cannot be trusted.
    #[must_use]
    pub fn is_flawed(&self) -> bool {
        [self.out_of_focus_mm2, self.pen_mm2, self.dirt_mm2].iter().any(|v| *v > 0.0)
    }

    /// Whether the slide's resolution is outside the model's range, so that its counts mean nothing.
    #[must_use]
    pub fn is_outside_range(&self) -> bool {
        self.resolution_note.as_ref().is_some_and(|n| n.contains(MEANINGLESS))
    }

    /// What a reader of the numbers must know, in sentences; empty for a sound slide.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.caveats().into_iter().map(|c| c.text).collect()
    }

    /// Reads one back.
    ///
    /// # Errors
    /// [`CountsError`].
    pub fn parse(text: &str) -> Result<Self, CountsError> {
        let value: serde_json::Value = base::json::parse(text.as_bytes())?;
        match value.get("schema").and_then(|s| s.as_str()) {
            Some(SCHEMA) => Ok(serde_json::from_value(value).map_err(ValueError::Content)?),
            other => Err(CountsError::Schema(other.map(str::to_owned))),
        }
    }

    /// The resolution as a typed value, its source being this file.
    ///
    /// # Errors
    /// When the numbers are not a resolution.
    pub fn resolution(&self) -> Result<Resolution, mitosis::MppError> {
        Ok(Resolution {
            x: mitosis::Mpp::new(self.resolution.x)?,
            y: mitosis::Mpp::new(self.resolution.y)?,
            source: mitosis::ResolutionSource::Vendor(self.resolution.source.clone()),
        })
    }
}

fn bytes(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    json(EXPORT.file, &CountsFile::from_record(record))
}
