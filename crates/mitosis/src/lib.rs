//! The words of mitotic-figure (MF) analysis, as types.
//!
//! Everything here is pure: no file, no engine, no sibling crate. Units live in types
//! ([`Mpp`], [`Microns`], [`Point`]), scores cannot be NaN ([`Score`]), and a detection
//! is accepted only through an [`OperatingPoint`] that knows where it came from.
//!
//! | module | of the paper |
//! |---|---|
//! | [`resolution`] | "40x" is 0.25 um/px |
//! | [`space`] | slide, window and physical coordinates, which never mix |
//! | [`detection`] | mitotic figure detection model |
//! | [`port`] | what a network is to the pipeline |
//! | [`suppression`] | one division, one figure |
//! | [`matching`] | matching within 30 px; threshold pair over three folds |
//! | [`count`] | mitotic hotspot (2 mm2), mitotic density (20 mm2) |
//! | [`hotspots`] | hotspots by other rules: circles, fields, other areas |
//! | [`pseudo_label`] | pseudo-label dataset construction |

#![forbid(unsafe_code)]

pub mod count;
pub mod detection;
pub mod hotspots;
mod index;
pub mod matching;
mod neighbours;
pub mod port;
pub mod pseudo_label;
pub mod resolution;
pub mod score;
pub mod space;
pub mod suppression;

pub use count::{Count, Hotspot, Mm2};
pub use detection::{Candidate, Detection, OperatingPoint};
pub use port::{
    ClassProbs, Classifier, Encoder, PortError, ProbMap, RgbTile, Scaled, Screened, Segmenter,
    Symmetric, likeliest,
};
pub use resolution::{Mpp, MppError, Resolution, ResolutionSource};
pub use score::{Score, ScoreError};
pub use space::{Level0, Microns, Physical, Point, Rect, Window};
