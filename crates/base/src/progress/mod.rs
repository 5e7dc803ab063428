//! The one way to report progress. No library prints: a [`Listener`] is given to long work, and the
//! face decides whether it becomes a bar, plain lines or lines of JSON.

mod event;
mod json;
mod listener;
mod slides;

pub use event::{Event, SCHEMA, SlideStatus};
pub use json::JsonLog;
pub use listener::{Listener, Pace, Piece, Reporter, Shared, Silent};
pub use slides::SlidePace;
