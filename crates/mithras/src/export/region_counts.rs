//! Regions in `counts.json`: what was counted in each, and what was searched, read back.

use super::hotspot::HotspotEntry;
use crate::record::SlideEntry;
use crate::regions::{RegionOutline, Searched, SearchedRegion, outlines};
use base::json::JsonError;
use mitosis::count::density_per_20_mm2;
use mitosis::hotspots::HotspotRule;
use mitosis::{Level0, Mm2, Point, Resolution};
use roi::{Area, hotspot_mm2};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Counts of the regions that were searched, in `counts.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionCounts {
    /// The file that they came from.
    pub source: roi::regions::Source,
    /// All of them together, mm2: what overlaps counts once, what is excluded does not.
    pub area_mm2: f64,
    /// What was drawn to be left out, mm2.
    pub excluded_mm2: f64,
    /// The part of the hotspot that was searched, mm2; none without figures, and in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hotspot_mm2: Option<f64>,
    /// Each by itself; a figure where two overlap counts in both.
    pub list: Vec<RegionCount>,
    /// What is to be known of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Figures and areas of one region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionCount {
    /// Name in the file of regions.
    pub name: String,
    /// Its class; empty without one.
    pub class: String,
    /// Its size, mm2.
    pub area_mm2: f64,
    /// Tissue in it, mm2.
    pub tissue_mm2: f64,
    /// Tissue in it that was read, mm2.
    pub analysed_mm2: f64,
    /// Tissue in it that could not be read, mm2.
    pub unread_mm2: f64,
    /// Accepted figures in it.
    pub figures: usize,
    /// Those of them in the densest 2 mm2.
    pub hotspot_count: usize,
    /// Where that is; none without figures.
    pub hotspot: Option<HotspotEntry>,
    /// The part of it in the region, mm2; none without figures, and in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hotspot_mm2: Option<f64>,
    /// Figures per 20 mm2 of its analysed tissue; none without any.
    pub density_per_20_mm2: Option<f64>,
}

impl RegionCounts {
    /// Of figures at these places of a slide.
    #[must_use]
    pub fn new(
        searched: &Searched,
        figures: &[Point<Level0>],
        slide: &SlideEntry,
        resolution: &Resolution,
    ) -> Self {
        let counted = |r: &SearchedRegion| {
            let inside = r.area.index();
            let here: Vec<Point<Level0>> =
                figures.iter().copied().filter(|p| inside.contains(*p)).collect();
            let spot = mitosis::count::hotspot(&here, resolution).ok().flatten();
            RegionCount {
                name: r.name.clone(),
                class: r.class.clone(),
                area_mm2: r.area_mm2,
                tissue_mm2: r.tissue_mm2,
                analysed_mm2: r.analysed_mm2,
                unread_mm2: r.unread_mm2,
                figures: here.len(),
                hotspot_count: spot.map_or(0, |s| s.count),
                hotspot: spot.map(|s| HotspotEntry::new(&s, slide, resolution)),
                hotspot_mm2: None,
                density_per_20_mm2: density_per_20_mm2(here.len() as f64, Mm2(r.analysed_mm2)),
            }
        };
        Self {
            source: searched.source.clone(),
            area_mm2: searched.area_mm2,
            excluded_mm2: searched.excluded_mm2,
            hotspot_mm2: None,
            list: searched.list.iter().map(counted).collect(),
            notes: searched.notes.clone(),
        }
    }

    /// States how much of the hotspots was searched: of that of all regions, `all`, and of that of each.
    pub(super) fn measure(
        &mut self,
        all: Option<HotspotEntry>,
        areas: &[&Area],
        slide: &SlideEntry,
        resolution: &Resolution,
    ) {
        let size = [slide.width as f64, slide.height as f64];
        let mm2 = |spot: Option<HotspotEntry>, areas: &[&Area]| {
            let [x, y] = spot?.centre_px;
            let (rule, centre) = (&HotspotRule::PAPER, [Point::new(x, y)]);
            Some(hotspot_mm2(rule, &centre, size, areas.iter().copied(), resolution))
        };
        for (region, area) in self.list.iter_mut().zip(areas) {
            region.hotspot_mm2 = mm2(region.hotspot, &[area]);
        }
        self.hotspot_mm2 = mm2(all, areas);
    }

    /// The regions as they were searched, from a slide's folder.
    ///
    /// # Errors
    /// [`JsonError`] where the outlines cannot be read.
    pub fn searched(&self, folder: &Path, offset: [i64; 2]) -> Result<Searched, JsonError> {
        let areas = outlines(folder, offset)?;
        let region =
            |(c, RegionOutline { area, .. }): (&RegionCount, RegionOutline)| SearchedRegion {
                name: c.name.clone(),
                class: c.class.clone(),
                area,
                area_mm2: c.area_mm2,
                tissue_mm2: c.tissue_mm2,
                analysed_mm2: c.analysed_mm2,
                unread_mm2: c.unread_mm2,
            };
        Ok(Searched {
            source: self.source.clone(),
            area_mm2: self.area_mm2,
            excluded_mm2: self.excluded_mm2,
            list: self.list.iter().zip(areas).map(region).collect(),
            notes: self.notes.clone(),
        })
    }
}
