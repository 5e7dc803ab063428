//! How published files name their tensors, and the way to the names of the models here.
//!
//! Two tables: [`WRAPPERS`], prefixes that training code puts before every name, and [`ADAPTERS`],
//! the vocabularies. Both pass on what they do not know, so that an unknown tensor is still found
//! to be unexpected.

use crate::encoder::Layout;

use super::convolutional::{old_swin, texture, torchvision};
use super::tensors::{Tensors, fold_registers, unique, without_mask};
use super::vocabulary::{clip, conch, hugging_face, openai_clip};

/// A prefix before every name, and what may be next to it and is not part of an encoder.
struct Wrapper {
    prefix: &'static str,
    siblings: &'static [&'static str],
}

const fn wrapper(prefix: &'static str, siblings: &'static [&'static str]) -> Wrapper {
    Wrapper { prefix, siblings }
}

/// Heads that self-distillation trains next to a backbone.
const HEADS: &[&str] = &["dino_head.", "ibot_head.", "head."];

static WRAPPERS: &[Wrapper] = &[
    wrapper("module.", &[]),
    wrapper("model.", &[]),
    wrapper("state_dict.", &[]),
    wrapper("teacher.", &["student.", "dino_loss.", "ibot_patch_loss."]),
    wrapper("backbone.", HEADS),
    wrapper("vit.", &["classifier."]),
    wrapper("dinov2.", &["classifier."]),
    wrapper("dinov2_with_registers.", &["classifier."]),
];

/// A vocabulary: a word that shows it, and the way to timm's.
struct Adapter {
    layout: Layout,
    mark: fn(&str) -> bool,
    convert: fn(Tensors) -> Result<Tensors, String>,
}

const HF_BLOCKS: &str = "encoder.layer.";

static ADAPTERS: &[Adapter] = &[
    Adapter {
        layout: Layout::Torchvision,
        mark: |n| n == "features.4.0.block.2.fc1.weight",
        convert: torchvision,
    },
    Adapter {
        layout: Layout::OldSwin,
        mark: |n| n == "layers.0.downsample.reduction.weight",
        convert: old_swin,
    },
    Adapter {
        layout: Layout::Texture,
        mark: |n| n == "encoder.layer1.0.conv1.weight",
        convert: texture,
    },
    Adapter { layout: Layout::Conch, mark: |n| n.starts_with("visual.trunk."), convert: conch },
    Adapter {
        layout: Layout::OpenAiClip,
        mark: |n| n.starts_with("visual.transformer.resblocks."),
        convert: openai_clip,
    },
    Adapter { layout: Layout::HfClip, mark: |n| n.starts_with("vision_model."), convert: clip },
    Adapter {
        layout: Layout::HfDinoV2,
        mark: |n| n.starts_with(HF_BLOCKS) && n.contains(".layer_scale1."),
        convert: hugging_face,
    },
    Adapter {
        layout: Layout::HfVit,
        mark: |n| n.starts_with(HF_BLOCKS) && n.contains(".attention.attention."),
        convert: hugging_face,
    },
    Adapter {
        layout: Layout::DinoV2,
        mark: |n| {
            let swiglu = n.ends_with(".mlp.w12.weight");
            swiglu || n == "mask_token" || n == "register_tokens" || unchunked(n).is_some()
        },
        convert: dinov2,
    },
];

/// A file's tensors under timm's names, as far as its layout is known; `has` states whether the model
/// has a tensor of a name.
///
/// # Errors
/// The reason, when a known layout holds what it must not.
pub(super) fn adapt(
    tensors: &Tensors,
    has: &dyn Fn(&str) -> bool,
) -> Result<(Layout, Tensors), String> {
    let mut tensors = tensors.clone();
    // A model whose own names carry a prefix (this project's segmenters) keeps it.
    let fits = |tensors: &Tensors| 2 * tensors.keys().filter(|n| has(n)).count() >= tensors.len();
    while !fits(&tensors) && unwrap(&mut tensors) {}
    let mut layout = Layout::Timm;
    for adapter in ADAPTERS {
        let known = |n: &String| !has(n) && (adapter.mark)(n);
        if tensors.keys().any(known) {
            tensors = (adapter.convert)(tensors)?;
            layout = adapter.layout;
            break;
        }
    }
    projection(&mut tensors, layout, has)?;
    Ok((layout, tensors))
}

/// Takes a prefix off where more than half of the tensors carry it.
fn unwrap(tensors: &mut Tensors) -> bool {
    for Wrapper { prefix, siblings } in WRAPPERS {
        let extra = |n: &str| !n.starts_with(prefix) && siblings.iter().any(|b| n.starts_with(b));
        let counted = tensors.keys().filter(|n| !extra(n)).count();
        let inside = tensors.keys().filter(|n| n.starts_with(prefix)).count();
        if inside > 0 && 2 * inside > counted {
            let all = std::mem::take(tensors).into_iter().filter(|(n, _)| !extra(n));
            *tensors = all
                .map(|(n, t)| (n.strip_prefix(prefix).map_or(n.clone(), str::to_owned), t))
                .collect();
            return true;
        }
    }
    false
}

/// A model without a projection gives the vector before it, so that of a known layout is left out;
/// timm keeps CLIP's as its head, with a bias of zeros.
fn projection(
    tensors: &mut Tensors,
    layout: Layout,
    has: &dyn Fn(&str) -> bool,
) -> Result<(), String> {
    const NAME: &str = "projection.weight";
    let projects = matches!(layout, Layout::HfClip | Layout::OpenAiClip | Layout::Conch);
    if !has(NAME) {
        if projects {
            tensors.remove(NAME);
        }
    } else if !tensors.contains_key(NAME)
        && let Some(weight) = tensors.remove("head.weight")
    {
        tensors.insert(NAME.into(), weight);
        if let Some(bias) = tensors.remove("head.bias")
            && bias.to_f64().iter().any(|v| *v != 0.0)
        {
            return Err("its projection has a bias, and the model's has none".into());
        }
    }
    Ok(())
}

/// `blocks.<chunk>.<block>.<rest>` without the chunk; blocks are counted over all chunks.
fn unchunked(name: &str) -> Option<String> {
    let number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let mut parts = name.strip_prefix("blocks.")?.splitn(3, '.');
    let (chunk, block, rest) = (parts.next()?, parts.next()?, parts.next()?);
    // An EfficientNet counts stages and blocks; only these are parts of a transformer's block.
    let own =
        ["attn.", "mlp.", "norm1.", "norm2.", "ls1.", "ls2."].iter().any(|w| rest.starts_with(w));
    (number(chunk) && number(block) && own).then(|| format!("blocks.{block}.{rest}"))
}

/// DINOv2's own names.
fn dinov2(tensors: Tensors) -> Result<Tensors, String> {
    let renamed = tensors.into_iter().map(|(n, t)| {
        let n = unchunked(&n).unwrap_or(n);
        (n.replace(".mlp.w12.", ".mlp.fc1.").replace(".mlp.w3.", ".mlp.fc2."), t)
    });
    let mut out = unique(renamed)?;
    without_mask(&mut out, "mask_token");
    fold_registers(&mut out, "register_tokens")?;
    Ok(out)
}
