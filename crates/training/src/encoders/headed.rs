//! Classifiers from published files of weights, held against libtorch.

use super::weights::WeightsError;
use features::headed::Headed;
use features::package;
use infer::EngineOptions;
use infer::convert::{Reference, probes};
use std::path::Path;

pub use features::headed::{Draft, Head, Made};

/// Makes a classifier package as [`features::headed::classifier`] does, and holds it against the same tensors on
/// libtorch, too.
///
/// # Errors
/// [`WeightsError`]; nothing is written then.
pub fn classifier(
    weights: &Path,
    encoder: &str,
    head: &Head,
    out: &Path,
    draft: &Draft,
    options: &EngineOptions,
) -> Result<Made, WeightsError> {
    package::free(out)?;
    let read = Headed::read(weights, encoder, head, draft, options)?;
    let classes = read.network.classes() as usize;
    let image = draft.image as i64;
    let net = train::headed::Headed::load(weights, &read.tensors, encoder, image, classes)?;
    // At the input's own size: how a crop is resized is not the weights' affair.
    let features = net.probabilities(&probes(read.image));
    drop(net);
    let reference = Some(Reference { by: "libtorch on the weights", features: &features });
    Ok(read.write(out, draft, reference, options)?)
}
