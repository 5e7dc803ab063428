//! Two-stage detection: segment, stitch, extract, classify, accept.
//!
//! [`run`] takes a slide ([`TileSource`]), a [`Job`] (which windows, which tissue), the two models
//! behind their ports and a [`Recipe`], and gives a [`SlideResult`]. [`extract`] and
//! [`stitch()`] do the same on one probability map in memory, with the same bits. The flow and what
//! holds in it are told in `docs/detect.md`.
//!
//! | item | requirement |
//! |---|---|
//! | [`Grid`], [`stitch()`] | D2: windows of 512 at stride 400, averaged |
//! | [`CandidateRule`], [`extract`] | D3: regions or peaks |
//! | [`CropRecipe`] | D4: crops of 128 px, both scores kept |
//! | [`SlideResult::count`] | W2, W3 |
//! | [`Recipe::max_unread_share`], [`UnreadWindow`] | W3, unread area |

#![forbid(unsafe_code)]

mod area;
pub mod candidates;
mod checkpoint;
mod error;
mod grid;
mod pipeline;
mod recipe;
mod result;
mod source;
mod stitch;

pub use area::{TISSUE_MARGIN_UM, Tissue};
pub use candidates::{CandidateRule, RawCandidate, extract};
pub use checkpoint::Checkpoint;
pub use error::{DetectError, ReadError};
pub use grid::{Frame, Grid, WindowAt};
pub use pipeline::run;
pub use recipe::{CancelToken, CropRecipe, Job, Observer, Progress, Recipe, Workers};
pub use result::{SlideResult, StageReport, Unclassified, UnreadWindow};
pub use source::TileSource;
pub use stitch::stitch;
