//! Starting weights of a run.

use std::path::Path;

use net::encoder::Encoder;
use net::foreign::{self, Allowed, Loaded};
use tch::nn::VarStore;

use crate::error::{Result, TrainError};
use crate::preset::Init;

/// Where the weights of a run came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// In words.
    pub text: String,
    /// Names outside the head that stayed as drawn, where a part was allowed.
    pub random: Vec<String>,
}

/// Where a file's names go.
pub(crate) enum Target<'a> {
    /// An encoder with a head of its own.
    Encoder(&'a dyn Encoder),
    /// A segmenter: a trunk of timm's names under `encoder.`, or one of this project whole.
    Segmenter,
}

/// The file's name of a head in timm's EfficientNets, above the trunk.
fn above_the_trunk(name: &str) -> bool {
    ["classifier.", "conv_head", "bn2."].iter().any(|p| name.starts_with(p))
}

/// Copies starting weights into a model. All but the head must be in the file and fit; a Lite0 file
/// may also lack squeeze and excitation, which that network does without, and of a segmenter it is
/// the trunk alone. With `partial` what fits is taken.
///
/// # Errors
/// A preset that asks for a file where none is given, and what [`foreign::load`] refuses.
pub(crate) fn initialise(
    vs: &VarStore,
    init: Init,
    (file, partial): (Option<&Path>, bool),
    place: &Target<'_>,
) -> Result<Start> {
    if init == Init::Scratch {
        return Ok(Start { text: "drawn from the seed".into(), random: vec![] });
    }
    let file = file.ok_or_else(|| TrainError::Preset {
        path: "init".into(),
        reason: "this preset starts from a file of weights, and none is given".into(),
    })?;
    let found = net::read_weights(file, None)?;
    let lite = init == Init::Lite0;
    // A model that pools the mean has a norm of its own after it, in place of the class token's.
    let names = vs.variables();
    let pools = names.contains_key("fc_norm.weight") && !names.contains_key("norm.weight");
    let rename = |n: &str| match place {
        Target::Encoder(_) if pools && n.starts_with("norm.") => None,
        Target::Segmenter if lite => (!above_the_trunk(n)).then(|| format!("encoder.{n}")),
        Target::Encoder(_) if lite && n.starts_with("classifier.") => None,
        _ => Some(n.to_string()),
    };
    let free = |n: &str| {
        let without = lite && n.contains(".se.");
        without
            || match place {
                Target::Encoder(net) => {
                    n.starts_with(net.head()) || pools && n.starts_with("fc_norm.")
                }
                Target::Segmenter => lite && !n.starts_with("encoder."),
            }
    };
    let allowed = Allowed { free: &free, partial };
    let Loaded { report, random, .. } = match place {
        Target::Encoder(net) => {
            foreign::load_encoder(file, &found, vs, net.architecture(), rename, &allowed)
        }
        Target::Segmenter => foreign::load(file, &found, vs, rename, &allowed),
    }?;
    Ok(Start { text: report.to_string(), random })
}
