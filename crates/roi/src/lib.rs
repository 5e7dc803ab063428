//! Regions of interest that people draw on slides: file formats, exact areas, containment.
//!
//! | module | what |
//! |---|---|
//! | [`area`] | polygons with holes: union, intersection, difference, size, containment |
//! | [`read`] | files: QuPath GeoJSON, ASAP XML, ImageScope XML, masks |
//! | [`regions`] | the regions of one slide, chosen by class |
//! | [`overlap`] | regions that share area |
//! | [`searched`] | what a slide was searched in, and its file |
//! | `hotspot` | how much of a hotspot is inside regions |
//! | `assign` | which file belongs to which slide |
//!
//! ```
//! use roi::read::DrawnFile;
//! use roi::regions::{Classes, Regions, SlideFrame};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("case.geojson");
//! std::fs::write(&path, r#"{"type": "Feature", "properties": {"name": "tumour front"},
//!     "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [4000, 0], [4000, 4000], [0, 4000], [0, 0]]]}}"#)?;
//! let slide = SlideFrame {
//!     name: "case".into(), width: 20_000, height: 10_000, bounds_offset: [0, 0], mpp: [0.25, 0.25], digest: String::new(),
//! };
//! let regions = Regions::for_slide(&DrawnFile::read(&path, None)?, &Classes::default(), &slide)?;
//! // 1 mm x 1 mm.
//! assert!((regions.all.mm2(slide.mpp) - 1.0).abs() < 1e-9);
//! assert_eq!(regions.list[0].name, "tumour front");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod area;
pub mod assign;
mod error;
mod hotspot;
pub mod overlap;
pub mod read;
mod region;
pub mod regions;
pub mod searched;

pub use area::{Area, Coverage, Inside, Ring};
pub use assign::{Assigned, assign};
pub use error::RegionError;
pub use hotspot::hotspot_mm2;
pub use read::DrawnFile;
pub use regions::{Classes, Region, Regions, SlideFrame};
