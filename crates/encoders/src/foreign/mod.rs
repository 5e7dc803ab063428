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
mod matching;
mod positions;
mod tensors;
mod vocabulary;

use std::path::Path;

pub use self::matching::{LoadReport, Matched, match_names};
pub use self::positions::resample;

use self::positions::side;
use crate::array::{Array, Kind};
use crate::encoder::{Layout, NetworkConfig};
use crate::error::{EncoderError, Result};
use crate::onnx;
use crate::weights::{Arrays, Outline};

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

/// The model that tensors are for.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// Its tensors.
    pub outline: &'a Outline,
    /// Its name: files of TensorFlow's EfficientNets are for these alone.
    pub architecture: &'a str,
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
fn recognise(tensors: &Arrays, model: &Outline) -> Vec<&'static str> {
    fn has<'a>(mut names: impl Iterator<Item = &'a String>, marks: &[&str]) -> bool {
        names.any(|n| marks.iter().any(|m| n.contains(m)))
    }
    let found = FAMILIES.iter().filter(|(_, m)| has(tensors.keys(), m) && !has(model.keys(), m));
    let mut found: Vec<&'static str> = found.map(|(name, _)| *name).collect();
    let file = tensors.iter().map(|(n, t)| (n.clone(), t.dims().to_vec())).collect();
    if is_packed(&file) && !is_packed(model) && !found.contains(&"SwiGLU") {
        found.push("SwiGLU");
    }
    found
}

/// timm's packed SwiGLU has plain names: gate and value in one layer, twice as wide.
fn is_packed(tensors: &Outline) -> bool {
    tensors.iter().any(|(name, fc1)| {
        let second = name.strip_suffix(".mlp.fc1.weight").map(|b| format!("{b}.mlp.fc2.weight"));
        let second = second.and_then(|n| tensors.get(&n));
        matches!((&fc1[..], second.map(Vec::as_slice)), (&[out, _], Some(&[_, back])) if out == 2 * back)
    })
}

/// The file's position table for the model's image size, where that is all that differs; as
/// text what was done.
fn resized(
    table: &Array,
    own: &[i64],
    model: &Outline,
    at: &dyn Fn(&str) -> Option<String>,
) -> Option<(Array, String)> {
    let rows = |dims: &[i64]| match dims {
        &[1, rows, _] => Some(rows),
        _ => None,
    };
    let (theirs, ours) = (rows(table.dims())?, rows(own)?);
    let tokens =
        |name: &str| at(name).and_then(|n| model.get(&n)).and_then(|d| rows(d)).unwrap_or_default();
    let prefix = tokens("cls_token") + tokens("reg_token");
    // The table has rows for the tokens before the patches, or has none.
    let fits = |p: i64| Some((p, side(theirs - p)?, side(ours - p)?));
    let (prefix, old, new) = match (fits(0), fits(prefix)) {
        (Some(found), None) | (None, Some(found)) => found,
        (Some(found), Some(_)) if prefix == 0 => found,
        _ => return None,
    };
    let note = format!("position table resized from {old} x {old} to {new} x {new} patches");
    resample(table, prefix, new).filter(|t| t.dims() == own).map(|t| (t, note))
}

/// TensorFlow's ports in timm have the same names and shapes as timm's own networks, but another
/// epsilon and padding: only the file's path can show.
fn is_tensorflow_port(path: &Path) -> bool {
    path.components().any(|c| c.as_os_str().to_string_lossy().starts_with("tf_efficientnet"))
}

/// A foreign file's tensors under a model's names, whatever [`Layout`] and prefix the file has. `rename`
/// maps timm's name to one of the model, or to `None` to pass it over. The values are f32 or f16.
///
/// # Errors
/// [`EncoderError::Weights`] with the whole list when a tensor is missing, unexpected or of another shape
/// (unless [`Allowed::partial`]), is not a number somewhere or of another kind, when nothing fits at
/// all, and when the file is recognised as of another architecture.
pub fn fit(
    path: &Path,
    tensors: &Arrays,
    model: &Model<'_>,
    rename: impl Fn(&str) -> Option<String>,
    allowed: &Allowed<'_>,
) -> Result<(Loaded, Arrays)> {
    let Model { outline: model, architecture } = *model;
    let refused = |reason: String, problems: Vec<String>, fits_in_part: bool| {
        Err(EncoderError::Weights { path: path.to_path_buf(), reason, problems, fits_in_part })
    };
    let refuse = |reason, problems| refused(reason, problems, false);
    let has = |n: &str| rename(n).is_some_and(|n| model.contains_key(&n));
    let (layout, mut tensors) = match layout::adapt(tensors, &has) {
        Ok(adapted) => adapted,
        Err(reason) => return refuse(reason, vec![]),
    };
    let mut done = None;
    if let Some(table) = tensors.get("pos_embed")
        && let Some(own) = rename("pos_embed").and_then(|n| model.get(&n))
        && table.dims() != &own[..]
        && let Some((table, note)) = resized(table, own, model, &rename)
    {
        tensors.insert("pos_embed".into(), table);
        done = Some(note);
    }
    let dims = tensors.iter().map(|(name, t)| (name.as_str(), t.dims()));
    let Matched { report, pairs } = match_names(dims, model, &rename);
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
    let other_padding = !architecture.starts_with("tf_") && is_tensorflow_port(path);
    if other_padding && model.keys().any(|n| n.ends_with("conv_stem.weight")) {
        let reason = "holds TensorFlow's EfficientNet, which pads and normalises otherwise";
        return refuse(reason.into(), problems);
    }
    if !problems.is_empty() {
        let families = recognise(&tensors, model);
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
    let taken = pairs.iter().map(|(to, from)| (to.clone(), tensors[from].clone()));
    let taken: Arrays = taken.collect();
    let unsound: Vec<String> = taken.iter().filter_map(|(name, t)| unsound(name, t)).collect();
    if !unsound.is_empty() {
        return refuse("holds values that are not weights".into(), unsound);
    }
    let random = missing.into_iter().cloned().chain(reshaped.into_iter().map(|l| target(l)));
    let random = random.collect();
    let report = LoadReport { resized: done, ..report };
    Ok((Loaded { report, random, layout: Some(layout) }, taken))
}

/// A foreign file's tensors as those of a whole network, f32; a head that the network is without is passed over.
///
/// # Errors
/// As [`fit`].
pub fn whole(path: &Path, tensors: &Arrays, network: &NetworkConfig) -> Result<Arrays> {
    let headless = network.classes() == 0;
    let free = |name: &str| headless && name.starts_with(network.head());
    let allowed = Allowed { free: &free, partial: false };
    let keep = |name: &str| Some(name.to_owned());
    let model = Model { outline: &onnx::outline(network), architecture: network.architecture };
    let (_, taken) = fit(path, tensors, &model, keep, &allowed)?;
    Ok(taken.into_iter().map(|(name, t)| (name, t.float())).collect())
}

/// Why a tensor's values cannot be weights.
pub(crate) fn unsound(name: &str, t: &Array) -> Option<String> {
    if !t.kind().is_floating_point() {
        return Some(format!("{name}: {:?}, not floating point", t.kind()));
    }
    // f64 would be rounded without a word, and bf16 is eight bits of what was published with more:
    // a user who wants either saves it as f32.
    if matches!(t.kind(), Kind::Double | Kind::BFloat16) {
        let how = "save it as f32 (in PyTorch `tensor.float()`)";
        return Some(format!("{name}: {:?}, not f32 or f16; {how}", t.kind()));
    }
    (!t.is_finite()).then(|| format!("{name}: not finite"))
}
