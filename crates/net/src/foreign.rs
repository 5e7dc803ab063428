//! Weights that others trained, into a network on libtorch; see [`encoders::foreign`].

use std::path::Path;

use encoders::foreign::{Model, fit};
use encoders::weights::Arrays;
use tch::nn::VarStore;

use crate::error::Result;
use crate::tensors::{from_array, outline};

pub use encoders::encoder::Layout;
pub use encoders::foreign::{Allowed, Loaded};

/// Copies a foreign file's tensors into a model, whatever [`Layout`] and prefix the file has. `rename`
/// maps timm's name to one of the model, or to `None` to pass it over. f16 becomes the model's f32.
///
/// # Errors
/// As [`fit`]. The model is unchanged then.
pub fn load(
    path: &Path,
    tensors: &Arrays,
    vs: &VarStore,
    rename: impl Fn(&str) -> Option<String>,
    allowed: &Allowed<'_>,
) -> Result<Loaded> {
    load_encoder(path, tensors, vs, "", rename, allowed)
}

/// The same for an encoder by its architecture, which may be one of TensorFlow's own: their files are then
/// not refused for their path.
///
/// # Errors
/// As [`load`].
pub fn load_encoder(
    path: &Path,
    tensors: &Arrays,
    vs: &VarStore,
    architecture: &str,
    rename: impl Fn(&str) -> Option<String>,
    allowed: &Allowed<'_>,
) -> Result<Loaded> {
    let model = Model { outline: &outline(vs), architecture };
    let (loaded, taken) = fit(path, tensors, &model, rename, allowed)?;
    let mut variables = vs.variables();
    tch::no_grad(|| {
        for (name, array) in taken {
            if let Some(to) = variables.get_mut(&name) {
                to.f_copy_(&from_array(&array)?)?;
            }
        }
        Ok(loaded)
    })
}
