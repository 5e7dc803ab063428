//! Weights that others trained: taken whole, or refused with the list of what does not fit.
//!
//! A file that fits in part gives features that look like features, so a part is taken only where
//! the caller says so, and the names that stay as drawn come back to be recorded.

use std::collections::BTreeMap;
use std::path::Path;

use tch::Tensor;
use tch::nn::VarStore;

use crate::checkpoint::{self, LoadReport};
use crate::encoder::Encoder;
use crate::error::{NetError, Result};

/// What a foreign file may lack.
pub struct Allowed<'a> {
    /// Names of the model that need not be in the file, nor fit: the head, and what the file's
    /// architecture is known not to have.
    pub free: &'a dyn Fn(&str) -> bool,
    /// Take what fits and leave the rest as drawn.
    pub partial: bool,
}

impl std::fmt::Debug for Allowed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Allowed").field("partial", &self.partial).finish_non_exhaustive()
    }
}

/// What was taken, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Name by name.
    pub report: LoadReport,
    /// Names of the model outside the free ones that stay as drawn; empty unless a part was allowed.
    pub random: Vec<String>,
}

/// What a file of other architectures is recognised by: any of these in a tensor's name.
const FAMILIES: [(&str, &[&str]); 15] = [
    ("a Swin transformer", &["attn.relative_position_bias_table", "attn.relative_position_index"]),
    ("a BEiT transformer", &[".relative_position_bias.", "attn.q_bias", "rel_pos_bias"]),
    ("CLIP's names", &["visual.transformer.resblocks", "visual.trunk.", "vision_model.encoder."]),
    ("Hugging Face's names", &[".attention.attention.query.", "embeddings.patch_embeddings."]),
    ("a ConvNeXt network", &["downsample_layers.", "stages.0.downsample.", ".dwconv."]),
    ("a ResNet", &["layer1.0.conv1.", "layer1.0.bn1."]),
    ("torchvision's EfficientNet names", &["features.0.0.weight", "features.1.0.block."]),
    ("EfficientNet-PyTorch's names", &["_blocks.0._se_reduce.", "_blocks.0._se_expand."]),
    ("DINO's backbone beside its head", &["backbone.", "student.backbone.", "teacher.backbone."]),
    ("a convolutional patch embedding", &["patch_embed.proj.1.", "patch_embed.backbone."]),
    ("register tokens", &["reg_token", "register_tokens"]),
    ("LayerScale", &[".ls1.gamma", ".ls1.scale", ".gamma_1", ".layer_scale1."]),
    ("SwiGLU", &[".mlp.w12.", ".mlp.w3.", ".mlp.fc1_g.", ".mlp.norm."]),
    ("normalised queries and keys", &["attn.q_norm.", "attn.k_norm."]),
    ("rotary positions", &["rope.", "rope_embed."]),
];

/// What a file has that the encoders here have not, in words; empty when nothing is recognised.
#[must_use]
pub fn recognise(tensors: &BTreeMap<String, Tensor>) -> Vec<&'static str> {
    let has = |marks: &[&str]| tensors.keys().any(|n| marks.iter().any(|m| n.contains(m)));
    let found = FAMILIES.iter().filter(|(_, marks)| has(marks));
    let mut found: Vec<&'static str> = found.map(|(name, _)| *name).collect();
    // timm's packed form has plain names: gate and value in one layer, twice as wide.
    let packed = tensors.iter().any(|(name, fc1)| {
        let second = name.strip_suffix(".mlp.fc1.weight").map(|b| format!("{b}.mlp.fc2.weight"));
        let second = second.and_then(|n| tensors.get(&n));
        second.is_some_and(|fc2| {
            fc1.dim() == 2 && fc2.dim() == 2 && fc1.size()[0] == 2 * fc2.size()[1]
        })
    });
    if packed && !found.contains(&"SwiGLU") {
        found.push("SwiGLU");
    }
    found
}

/// TensorFlow's ports in timm have the same names and shapes as timm's own networks, but another
/// epsilon and padding: only the file's path can tell.
fn is_tensorflow_port(path: &Path) -> bool {
    path.components().any(|c| c.as_os_str().to_string_lossy().starts_with("tf_efficientnet"))
}

/// Copies a foreign file's tensors into a model. `rename` maps a name of the file to one of the
/// model, or to `None` to pass it over. Values of f64, f16 and bf16 become the model's f32.
///
/// # Errors
/// [`NetError::Weights`] with the whole list when a tensor is missing, unexpected or of another shape
/// (unless [`Allowed::partial`]), is no number somewhere or not of floating point, when nothing fits
/// at all, and when the file is recognised as of another architecture. The model is unchanged then.
pub fn load(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    vs: &VarStore,
    rename: impl Fn(&str) -> Option<String>,
    allowed: &Allowed<'_>,
) -> Result<Loaded> {
    load_as(path, tensors, vs, rename, allowed, false)
}

/// The same for an encoder, which may be one of TensorFlow's own: their files are then not refused
/// for their path.
///
/// # Errors
/// As [`load`].
pub fn load_encoder(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    vs: &VarStore,
    net: &dyn Encoder,
    rename: impl Fn(&str) -> Option<String>,
    allowed: &Allowed<'_>,
) -> Result<Loaded> {
    let tensorflow = net.architecture().starts_with("tf_");
    load_as(path, tensors, vs, rename, allowed, tensorflow)
}

fn load_as(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    vs: &VarStore,
    rename: impl Fn(&str) -> Option<String>,
    allowed: &Allowed<'_>,
    tensorflow: bool,
) -> Result<Loaded> {
    let refused = |reason: String, problems: Vec<String>, fits_in_part: bool| {
        Err(NetError::Weights { path: path.to_path_buf(), reason, problems, fits_in_part })
    };
    let refuse = |reason, problems| refused(reason, problems, false);
    let plan = checkpoint::match_names(tensors, vs, &rename);
    let report = plan.report();
    let model_name = |name: &str| rename(name).unwrap_or_default();
    let target = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    let missing: Vec<&String> = report.missing.iter().filter(|n| !(allowed.free)(n)).collect();
    let reshaped = report.reshaped.iter().filter(|l| !(allowed.free)(&target(l)));
    let reshaped: Vec<&String> = reshaped.collect();
    let unexpected = report.unexpected.iter().filter(|n| !(allowed.free)(&model_name(n)));
    let problems: Vec<String> = (missing.iter().map(|n| format!("missing: {n}")))
        .chain(unexpected.map(|n| format!("unexpected: {n}")))
        .chain(reshaped.iter().map(|l| format!("of another shape (file, model): {l}")))
        .collect();
    let other_padding = !tensorflow && is_tensorflow_port(path);
    if other_padding && vs.variables().keys().any(|n| n.ends_with("conv_stem.weight")) {
        let reason = "holds TensorFlow's EfficientNet, which pads and normalises otherwise";
        return refuse(reason.into(), problems);
    }
    if !problems.is_empty() {
        // What the model has itself is not what is wrong with the file.
        let own = recognise(&vs.variables().into_iter().collect());
        let mut families = recognise(tensors);
        families.retain(|f| !own.contains(f));
        if !families.is_empty() {
            let reason = format!("has {}, which no encoder here has yet", families.join(" and "));
            return refuse(reason, problems);
        }
        if !allowed.partial {
            let some = report.taken.iter().any(|n| !(allowed.free)(n));
            return refused("does not fit the model as a whole".into(), problems, some);
        }
    }
    if report.taken.iter().all(|n| (allowed.free)(n)) {
        return refuse("none of its tensors fits the model".into(), problems);
    }
    let unsound: Vec<String> = plan.pairs().filter_map(|(name, t)| unsound(name, t)).collect();
    if !unsound.is_empty() {
        return refuse("holds values that are no weights".into(), unsound);
    }
    let random = missing.into_iter().cloned().chain(reshaped.into_iter().map(|l| target(l)));
    let random = random.collect();
    Ok(Loaded { report: plan.apply(), random })
}

fn unsound(name: &str, t: &Tensor) -> Option<String> {
    if !t.is_floating_point() {
        return Some(format!("{name}: {:?}, not floating point", t.kind()));
    }
    let sound = t.isfinite().all().int64_value(&[]) == 1;
    (!sound).then(|| format!("{name}: not finite"))
}
