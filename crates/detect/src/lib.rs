//! Two-stage detection: segment, stitch, extract, classify, accept.
//!
//! [`Detector`] holds the two models behind their ports and a [`Recipe`]; [`Detector::run`] takes a slide
//! ([`TileSource`]) and a [`Job`] (which windows, which tissue), and gives a [`SlideResult`]. [`extract`] and
//! [`stitch()`] do the same on one probability map in memory, with the same bits. The flow and what
//! holds in it are reported in `docs/detect.md`.
//!
//! | item | what |
//! |---|---|
//! | [`Grid`], [`stitch()`] | windows of 512 at stride 400, averaged |
//! | [`CandidateRule`], [`extract`] | regions or peaks |
//! | [`CropRecipe`] | crops of 128 px, both scores kept |
//! | [`SlideResult::count`] | hotspot and density |
//! | [`Flaw`], [`FlawedSquare`] | areas out of focus, under pen, under dirt |
//! | [`Recipe::max_unread_share`], [`UnreadWindow`] | unread area |

#![forbid(unsafe_code)]

mod area;
pub mod candidates;
mod checkpoint;
mod control;
mod detector;
mod error;
mod flaw;
mod grid;
mod kept;
mod pipeline;
mod recipe;
mod result;
mod source;
mod stitch;

pub use area::{TISSUE_MARGIN_UM, Tissue, analysed_area};
pub use candidates::{CandidateRule, RawCandidate, extract};
pub use checkpoint::Checkpoint;
pub use control::{CancelToken, Control, StateFile, Store};
pub use detector::{Detector, Models};
pub use error::{DetectError, ReadError, StoreError};
pub use flaw::{FLAW_LIMITS, Flaw, FlawLimits, Flawed, FlawedSquare, pen_and_dirt, sharpness};
pub use grid::{Frame, Grid, WindowAt};
pub use kept::KeptCandidates;
pub use recipe::{CropRecipe, Job, Overlap, Recipe, Workers};
pub use result::{SlideCandidate, SlideResult, StageReport, Unclassified, UnreadWindow};
pub use source::TileSource;
pub use stitch::stitch;
