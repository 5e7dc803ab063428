//! Who is told how far a piece of work is. The library itself never prints.

mod event;
mod json;
mod listener;

pub use event::{Event, SCHEMA, SlideStatus};
pub use json::JsonLog;
pub use listener::{Listener, Piece, Silent};
