//! The start page: slides are picked on this computer, searched, and looked at, all in a browser: `docs/start.md`.
//!
//! Detection runs in this process, through the library: a run can be cancelled between two windows, every file is
//! written whole, and what was found so far is kept in the slide's folder, so that a child process would end nothing
//! more cleanly. It would cost a second copy of the networks and a protocol of its own.
//!
//! | module | what |
//! |---|---|
//! | `server` | answers the page's requests; viewers of runs below `view/N/` |
//! | `places` | drives, folders and files of this computer |
//! | `look` | what a slide is, before anything runs |
//! | `work` | one run at a time, and how far it is |
//! | `results` | what a run gave |
//! | `error` | why a request is refused |

#![forbid(unsafe_code)]

mod error;
mod look;
mod places;
mod results;
mod server;
mod work;

pub use error::{ListError, PageError};
pub use server::{Settings, Start};
pub use work::{Phase, Progress, SlideState};
