//! What a dataset holds: counts, score histograms, repeated images, a page with a sample.

mod page;
mod report;

pub use page::page;
pub use report::{CropsReport, RegionsReport, SourceCounts};
