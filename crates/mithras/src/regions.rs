//! Detection within regions that people drew: what is read, what counts, and how large it is.

use base::json::JsonError;
use base::remedy::{Remedied, Remedy};
use detect::Tissue;
use mitosis::{Level0, Point};
use roi::{Area, Coverage, DrawnFile, Inside, Regions, SlideFrame};
pub use roi::{Classes, RegionError};
use serde::Serialize;
use serde_json::Value;
use slide::{Slide, SlideError, TissueMask};
use std::path::Path;
use std::sync::Arc;

/// File of a slide's regions in its folder, for QuPath and for another run.
pub const FILE: &str = "regions.geojson";

/// Which regions of which file a slide is to be searched in.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionSource {
    /// The drawn regions.
    pub file: Arc<DrawnFile>,
    /// The classes that count.
    pub classes: Classes,
}

/// Why a slide's regions cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SlideRegionError {
    /// The slide has no resolution.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// The regions.
    #[error(transparent)]
    Region(#[from] RegionError),
}

impl RegionSource {
    /// The regions on a slide of this name and content.
    ///
    /// # Errors
    /// [`SlideRegionError`].
    pub fn read_for(
        &self,
        slide: &Slide,
        name: &str,
        digest: &str,
    ) -> Result<Regions, SlideRegionError> {
        let r = slide.resolution()?;
        let (width, height) = slide.dimensions();
        let frame = SlideFrame {
            name: name.to_owned(),
            width,
            height,
            bounds_offset: slide.bounds().map_or([0, 0], |b| [b.x, b.y]),
            mpp: [r.x.get(), r.y.get()],
            digest: digest.to_owned(),
        };
        Ok(Regions::for_slide(&self.file, &self.classes, &frame)?)
    }

    /// The settings that change a number, as text.
    #[must_use]
    pub fn setting(&self) -> String {
        let list =
            |names: &[String]| if names.is_empty() { "-".to_owned() } else { names.join("|") };
        let Classes { include, exclude } = &self.classes;
        format!("{} include {} exclude {}", self.file.sha256, list(include), list(exclude))
    }
}

/// A place as tables have it, to 0.01 px: what counts can be counted again from them.
#[must_use]
pub fn rounded(p: Point<Level0>) -> Point<Level0> {
    let round = |v: f64| (v * 100.0).round() / 100.0;
    Point::new(round(p.x), round(p.y))
}

/// The tissue of a slide inside an area.
pub struct TissueWithin<'a> {
    tissue: &'a TissueMask,
    coverage: Coverage,
    inside: Inside,
    /// Size of the slide in mask pixels, which need not be whole.
    extent: (f64, f64),
}

impl<'a> TissueWithin<'a> {
    /// Of a slide of this level-0 size.
    #[must_use]
    pub fn new(tissue: &'a TissueMask, area: &Area, (width, height): (u64, u64)) -> Self {
        let scale = tissue.scale();
        let coverage = Coverage::new(area, scale, (tissue.width, tissue.height));
        let extent = (width as f64 / scale.0, height as f64 / scale.1);
        Self { tissue, coverage, inside: area.index(), extent }
    }

    /// The share inside the area of that part of a mask pixel that is on the slide.
    fn share(&self, (column, row): (usize, usize)) -> f64 {
        let part = |extent: f64, at: usize| (extent - at as f64).clamp(0.0, 1.0);
        let on_slide = part(self.extent.0, column) * part(self.extent.1, row);
        if on_slide > 0.0 { (self.coverage.at(column, row) / on_slide).min(1.0) } else { 0.0 }
    }

    /// Its size, mm2.
    #[must_use]
    pub fn mm2(&self) -> f64 {
        self.tissue.area_mm2_weighted(|at, _| self.share(at))
    }

    /// The mask pixels that the area touches: windows that touch none of them are not read.
    #[must_use]
    pub fn mask(&self) -> TissueMask {
        self.tissue.restricted(|column, row| self.coverage.at(column, row) > 0.0)
    }

    /// Whether a place, as tables have it, is inside the area.
    #[must_use]
    pub fn holds(&self, p: Point<Level0>) -> bool {
        self.inside.contains(rounded(p))
    }
}

impl Tissue for TissueWithin<'_> {
    fn area_mm2_where(&self, wanted: &mut dyn FnMut(Point<Level0>) -> bool) -> f64 {
        self.tissue.area_mm2_weighted(|at, p| if wanted(p) { self.share(at) } else { 0.0 })
    }

    fn near(&self, p: Point<Level0>, um: f64) -> bool {
        self.holds(p) && self.tissue.near(p, um)
    }
}

/// The regions that a slide was searched in, with what was measured of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// The file that they came from.
    pub source: roi::regions::Source,
    /// All of them together, mm2.
    pub area_mm2: f64,
    /// What was drawn to be left out, mm2.
    pub excluded_mm2: f64,
    /// Each.
    pub list: Vec<SearchedRegion>,
    /// What is to be known of them.
    pub notes: Vec<String>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchedRegion {
    /// Its name; no two of a slide have the same.
    pub name: String,
    /// Its class; empty without one.
    pub class: String,
    /// Where, level-0 px.
    pub area: Area,
    /// Its size, mm2.
    pub area_mm2: f64,
    /// Tissue in it, mm2.
    pub tissue_mm2: f64,
    /// Tissue in it that was read, mm2.
    pub analysed_mm2: f64,
    /// Tissue in it that could not be read, mm2.
    pub unread_mm2: f64,
}

impl Searched {
    /// `regions.geojson`: annotations from the slide's bounds, as QuPath reads them.
    #[must_use]
    pub fn geojson(&self, slide_digest: &str, offset: [i64; 2]) -> Outlined {
        let back = offset.map(|v| -(v as f64));
        let feature = |r: &SearchedRegion| Feature {
            r#type: "Feature",
            geometry: Geometry { r#type: "MultiPolygon", coordinates: r.area.moved(back).closed() },
            properties: Properties {
                object_type: "annotation",
                name: r.name.clone(),
                is_locked: true,
                classification: (!r.class.is_empty()).then(|| Class { name: r.class.clone() }),
            },
        };
        Outlined {
            r#type: "FeatureCollection",
            mithras: Stated { slide_digest: slide_digest.to_owned() },
            features: self.list.iter().map(feature).collect(),
        }
    }
}

/// A file of regions as it is written.
#[derive(Debug, Serialize)]
pub struct Outlined {
    r#type: &'static str,
    mithras: Stated,
    features: Vec<Feature>,
}

#[derive(Debug, Serialize)]
struct Stated {
    slide_digest: String,
}

#[derive(Debug, Serialize)]
struct Feature {
    r#type: &'static str,
    geometry: Geometry,
    properties: Properties,
}

#[derive(Debug, Serialize)]
struct Geometry {
    r#type: &'static str,
    coordinates: Vec<Vec<Vec<[f64; 2]>>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    object_type: &'static str,
    name: String,
    is_locked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    classification: Option<Class>,
}

#[derive(Debug, Serialize)]
struct Class {
    name: String,
}

/// Where a region is.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionOutline {
    /// The region's name.
    pub name: String,
    /// In level-0 px.
    pub area: Area,
}

/// The regions of a slide's folder; empty without any.
///
/// # Errors
/// [`JsonError`].
pub fn outlines(folder: &Path, offset: [i64; 2]) -> Result<Vec<RegionOutline>, JsonError> {
    let path = folder.join(FILE);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let file: Value = base::json::read(&path)?;
    let offset = offset.map(|v| v as f64);
    let ring = |r: &Value| -> roi::Ring {
        let points = r.as_array().map_or(&[][..], Vec::as_slice);
        let mut ring: roi::Ring =
            points.iter().filter_map(|p| Some([p[0].as_f64()?, p[1].as_f64()?])).collect();
        ring.pop();
        ring
    };
    let features = file["features"].as_array().map_or(&[][..], Vec::as_slice);
    let one = |f: &Value| {
        let polygons = f["geometry"]["coordinates"].as_array().map_or(&[][..], Vec::as_slice);
        let area = polygons.iter().fold(Area::default(), |all, p| {
            let rings: Vec<roi::Ring> =
                p.as_array().map_or(&[][..], Vec::as_slice).iter().map(ring).collect();
            match rings.split_first() {
                Some((outer, holes)) => all.or(&Area::polygon(outer, holes)),
                None => all,
            }
        });
        let name = f["properties"]["name"].as_str().unwrap_or_default().to_owned();
        RegionOutline { name, area: area.moved(offset) }
    };
    Ok(features.iter().map(one).collect())
}

impl Remedied for SlideRegionError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Slide(e) => e.remedy(),
            Self::Region(e) => e.remedy(),
        }
    }
}
