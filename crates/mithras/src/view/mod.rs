//! Slides, what was found on them and what reviewers say, as a page on this machine: `docs/view.md`.

mod open;
mod recount;
mod review;
mod server;
mod tiles;

pub use open::{Item, OpenError, Opened, open};
pub use recount::{Counted, Recount, RecountError, RecountRow, recount};
pub use review::{Change, Entry, Line, ReviewError, Reviews, Standing, Verdict};
pub use server::Viewer;
pub use tiles::{TILE, TileError, Tiles, max_level};
