//! Features of crops, images and slides, by packages of encoders and by weights.
//!
//! The crate [`features`] does one slide or one dataset; here is the work on many slides, with one
//! file per slide in a folder: what is done is skipped, and a bad slide stops no other.

mod report;
mod slides;

pub use features::crops::CropSize;
pub use features::crops::Source;
pub use features::package::{Package, convert};
pub use features::{Facts, FeatureError, Form, Frozen, Grid, Known, Listed, Listing};
pub use features::{headed, weights};
pub use report::{EmbedReport, EmbedStatus, Line};
pub use slides::{Plan, slides};

use crate::progress::{Listener, Piece};
use std::path::PathBuf;
use std::time::Instant;

/// What crops are embedded, and where their features go.
#[derive(Clone, Debug)]
pub struct CropPlan {
    /// The crops.
    pub source: Source,
    /// Their size, of regions.
    pub size: CropSize,
    /// Crops of a run of the network.
    pub batch: usize,
    /// The Parquet file that is written.
    pub out: PathBuf,
    /// Replace a file of other settings.
    pub overwrite: bool,
}

/// Features of crops as one Parquet file. Crops that cannot be read are listed in the report. Features that were
/// made with other settings are not replaced unless the plan states so.
///
/// # Errors
/// [`FeatureError`].
pub fn crops(
    encoder: &mut Frozen,
    plan: &CropPlan,
    listener: &mut dyn Listener,
) -> Result<EmbedReport, FeatureError> {
    let CropPlan { source, size, batch, out, overwrite } = plan;
    let (size, batch) = (*size, *batch);
    match Form::from_path(out) {
        Some(Form::Parquet) => {}
        Some(Form::Hdf5) => return Err(FeatureError::Crops(out.to_owned())),
        None => return Err(FeatureError::Form(out.to_owned())),
    }
    let identity = features::crops::identity(encoder, source, size)?;
    if !overwrite {
        features::check_stored(out, &encoder.about, &identity)?;
    }
    let start = Instant::now();
    let mut piece = Piece::begin(listener, "embed", "embed", "crops");
    let made = features::crops::embed(encoder, source, size, batch, &mut piece);
    piece.finish();
    let mut made = made?;
    made.table.crops = Some(identity);
    made.table.write(out)?;
    let name = source.path().display().to_string();
    let mut items = vec![Line::done(name, out, made.table.len() as u64, start.elapsed())];
    items.extend(made.failed.into_iter().map(Line::failed));
    Ok(EmbedReport::new(encoder, out, items, start.elapsed()))
}
