//! Weights that others trained: taken whole, or refused with the list of what does not fit.
//!
//! A file that fits in part gives features that look like features, so a part is taken only where
//! the caller states it, and the names that stay as drawn come back to be recorded.

//!
//! Files name the same tensors in many ways: prefixes, other words, query, key and value apart.
//! [`Layout`] lists them; a file is read by what its names are, whatever it is called. A position
//! table of another image size is resized as timm does, and the report states it.

mod convolutional;
mod layout;
mod tensors;
mod vocabulary;

use std::collections::BTreeMap;
use std::path::Path;

use tch::nn::VarStore;
use tch::{Kind, Tensor};

pub use self::layout::Layout;

use crate::checkpoint::{self, LoadReport};
use crate::error::{NetError, Result};
use crate::vit::{resample, side};

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
    /// The file's names.
    pub layout: Option<Layout>,
}

/// What a file of other architectures is recognised by: any of these in a tensor's name.
const FAMILIES: [(&str, &[&str]); 14] = [
    ("a Swin transformer", &["attn.relative_position_bias_table", "attn.relative_position_index"]),
    ("a BEiT transformer", &[".relative_position_bias.", "attn.q_bias", "rel_pos_bias"]),
    ("a norm before the blocks", &["norm_pre."]),
    ("a ConvNeXt network", &["downsample_layers.", "stages.0.downsample.", ".dwconv."]),
    ("a ResNet", &["layer1.0.conv1.", "layer1.0.bn1."]),
    ("torchvision's EfficientNet names", &["features.0.0.weight", "features.1.0.block."]),
    ("EfficientNet-PyTorch's names", &["_blocks.0._se_reduce.", "_blocks.0._se_expand."]),
    ("attentional pooling", &["attn_pool."]),
    ("a convolutional patch embedding", &["patch_embed.proj.1.", "patch_embed.backbone."]),
    ("register tokens", &["reg_token", "register_tokens"]),
    ("LayerScale", &[".ls1.gamma", ".ls1.scale", ".gamma_1", ".layer_scale1."]),
    ("SwiGLU", &[".mlp.w12.", ".mlp.w3.", ".mlp.fc1_g.", ".mlp.norm."]),
    ("normalised queries and keys", &["attn.q_norm.", "attn.k_norm."]),
    ("rotary positions", &["rope.", "rope_embed."]),
];

/// What a file has that the model has not, as text; empty when nothing is recognised. Names are
/// timm's, as far as the file's layout is known.
fn recognise(
    tensors: &BTreeMap<String, Tensor>,
    model: &BTreeMap<String, Tensor>,
) -> Vec<&'static str> {
    let has = |names: &BTreeMap<String, Tensor>, marks: &[&str]| {
        names.keys().any(|n| marks.iter().any(|m| n.contains(m)))
    };
    let found = FAMILIES.iter().filter(|(_, marks)| has(tensors, marks) && !has(model, marks));
    let mut found: Vec<&'static str> = found.map(|(name, _)| *name).collect();
    if is_packed(tensors) && !is_packed(model) && !found.contains(&"SwiGLU") {
        found.push("SwiGLU");
    }
    found
}

/// timm's packed SwiGLU has plain names: gate and value in one layer, twice as wide.
fn is_packed(tensors: &BTreeMap<String, Tensor>) -> bool {
    tensors.iter().any(|(name, fc1)| {
        let second = name.strip_suffix(".mlp.fc1.weight").map(|b| format!("{b}.mlp.fc2.weight"));
        let second = second.and_then(|n| tensors.get(&n));
        second.is_some_and(|fc2| {
            fc1.dim() == 2 && fc2.dim() == 2 && fc1.size()[0] == 2 * fc2.size()[1]
        })
    })
}

/// The file's position table for the model's image size, where that is all that differs; as
/// text what was done.
fn resized(
    table: &Tensor,
    own: &Tensor,
    model: &BTreeMap<String, Tensor>,
    at: &dyn Fn(&str) -> Option<String>,
) -> Option<(Tensor, String)> {
    let rows = |t: &Tensor| match t.size().as_slice() {
        &[1, rows, _] => Some(rows),
        _ => None,
    };
    let (theirs, ours) = (rows(table)?, rows(own)?);
    let tokens =
        |name: &str| at(name).and_then(|n| model.get(&n)).and_then(rows).unwrap_or_default();
    let prefix = tokens("cls_token") + tokens("reg_token");
    // The table has rows for the tokens before the patches, or has none.
    let fits = |p: i64| Some((p, side(theirs - p)?, side(ours - p)?));
    let (prefix, old, new) = match (fits(0), fits(prefix)) {
        (Some(found), None) | (None, Some(found)) => found,
        (Some(found), Some(_)) if prefix == 0 => found,
        _ => return None,
    };
    let note = format!("position table resized from {old} x {old} to {new} x {new} patches");
    resample(table, prefix, new).filter(|t| t.size() == own.size()).map(|t| (t, note))
}

/// TensorFlow's ports in timm have the same names and shapes as timm's own networks, but another
/// epsilon and padding: only the file's path can show.
fn is_tensorflow_port(path: &Path) -> bool {
    path.components().any(|c| c.as_os_str().to_string_lossy().starts_with("tf_efficientnet"))
}

/// Copies a foreign file's tensors into a model, whatever [`Layout`] and prefix the file has. `rename`
/// maps timm's name to one of the model, or to `None` to pass it over. Values of f64, f16 and bf16
/// become the model's f32.
///
/// # Errors
/// [`NetError::Weights`] with the whole list when a tensor is missing, unexpected or of another shape
/// (unless [`Allowed::partial`]), is not a number somewhere or not of floating point, when nothing fits
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

/// The same for an encoder by its architecture, which may be one of TensorFlow's own: their files are then
/// not refused for their path.
///
/// # Errors
/// As [`load`].
pub fn load_encoder(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    vs: &VarStore,
    architecture: &str,
    rename: impl Fn(&str) -> Option<String>,
    allowed: &Allowed<'_>,
) -> Result<Loaded> {
    load_as(path, tensors, vs, rename, allowed, architecture.starts_with("tf_"))
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
    let model: BTreeMap<String, Tensor> = vs.variables().into_iter().collect();
    let has = |n: &str| rename(n).is_some_and(|n| model.contains_key(&n));
    let (layout, mut tensors) = match layout::adapt(tensors, &has) {
        Ok(adapted) => adapted,
        Err(reason) => return refuse(reason, vec![]),
    };
    let mut done = None;
    if let Some(table) = tensors.get("pos_embed")
        && let Some(own) = rename("pos_embed").and_then(|n| model.get(&n))
        && table.size() != own.size()
        && let Some((table, note)) = resized(table, own, &model, &rename)
    {
        tensors.insert("pos_embed".into(), table);
        done = Some(note);
    }
    let tensors = &tensors;
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
        let families = recognise(tensors, &model);
        if !families.is_empty() {
            let reason = format!("has {}, which the model has not", families.join(" and "));
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
        return refuse("holds values that are not weights".into(), unsound);
    }
    let random = missing.into_iter().cloned().chain(reshaped.into_iter().map(|l| target(l)));
    let random = random.collect();
    let report = LoadReport { resized: done, ..plan.apply() };
    Ok(Loaded { report, random, layout: Some(layout) })
}

fn unsound(name: &str, t: &Tensor) -> Option<String> {
    if !t.is_floating_point() {
        return Some(format!("{name}: {:?}, not floating point", t.kind()));
    }
    // f64 would be rounded without a word, and bf16 is eight bits of what was published with more:
    // a user who wants either saves it as f32.
    if matches!(t.kind(), Kind::Double | Kind::BFloat16) {
        let how = "save it as f32 (in PyTorch `tensor.float()`)";
        return Some(format!("{name}: {:?}, not f32 or f16; {how}", t.kind()));
    }
    let sound = t.isfinite().all().int64_value(&[]) == 1;
    (!sound).then(|| format!("{name}: not finite"))
}
