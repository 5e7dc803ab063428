//! What a slide was searched in, from the drawn file to the file of a slide's results and back.

use crate::area::{Area, Ring};
use crate::error::RegionError;
use crate::read::DrawnFile;
use crate::regions::{Classes, Regions, SlideFrame, Source};
use base::json::JsonError;
use base::remedy::{Remedied, Remedy};
use serde::Serialize;
use serde_json::Value;
use slide::{Slide, SlideError};
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
    pub fn read_slide_regions(
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

/// The regions that a slide was searched in, with what was measured of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// The file that they came from.
    pub source: Source,
    /// All of them together, mm2.
    pub area_mm2: f64,
    /// What was drawn to be left out, mm2.
    pub excluded_mm2: f64,
    /// Each.
    pub list: Vec<SearchedRegion>,
    /// What is to be known of them.
    pub notes: Vec<String>,
}

/// A region, and what of it was searched.
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
    let ring = |r: &Value| -> Ring {
        let points = r.as_array().map_or(&[][..], Vec::as_slice);
        let mut ring: Ring =
            points.iter().filter_map(|p| Some([p[0].as_f64()?, p[1].as_f64()?])).collect();
        ring.pop();
        ring
    };
    let features = file["features"].as_array().map_or(&[][..], Vec::as_slice);
    let outline = |f: &Value| {
        let polygons = f["geometry"]["coordinates"].as_array().map_or(&[][..], Vec::as_slice);
        let area = polygons.iter().fold(Area::default(), |all, p| {
            let rings: Vec<Ring> =
                p.as_array().map_or(&[][..], Vec::as_slice).iter().map(ring).collect();
            match rings.split_first() {
                Some((outer, holes)) => all.or(&Area::polygon(outer, holes)),
                None => all,
            }
        });
        let name = f["properties"]["name"].as_str().unwrap_or_default().to_owned();
        RegionOutline { name, area: area.moved(offset) }
    };
    Ok(features.iter().map(outline).collect())
}

impl Remedied for SlideRegionError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Slide(e) => e.remedy(),
            Self::Region(e) => e.remedy(),
        }
    }
}
