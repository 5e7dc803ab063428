//! What a dataset holds: counts, score histograms, repeated images, a page with a sample.

mod page;
mod report;
mod verify;

pub use page::page;
pub use report::{CropsReport, RegionsReport};
pub use verify::{Verified, VerifyError, verify};
