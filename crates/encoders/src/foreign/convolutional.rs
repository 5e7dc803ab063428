//! Vocabularies of convolutional and window networks.
//!
//! | layout | from | to |
//! |---|---|---|
//! | torchvision's EfficientNetV2-S | `features.4.0.block.1.0.weight` | `blocks.3.0.conv_dw.weight` |
//! | timm's Swin before 0.9 (CTransPath, CHIEF) | `layers.0.downsample.norm.weight` | `layers.1.downsample.norm.weight` |
//! | a texture classifier on ResNet-50 (IMPaSh) | `encoder.conv1.weight`, `classifier.weight` | `conv1.weight`, `fc.weight` |
//!
//! torchvision's ResNet has timm's names. Names that a layout does not have stay, so that a loader reports
//! them; what the network here does without (stored masks and indices, heads of an earlier training) goes.

use super::tensors::Tensors;

/// Of torchvision's EfficientNetV2-S.
pub(super) fn torchvision(tensors: Tensors) -> Result<Tensors, String> {
    Ok(renamed(tensors, torchvision_v2s))
}

/// Of timm's older Swin.
pub(super) fn old_swin(tensors: Tensors) -> Result<Tensors, String> {
    Ok(renamed(tensors, older_swin))
}

/// Of a texture classifier on ResNet-50.
pub(super) fn texture(tensors: Tensors) -> Result<Tensors, String> {
    Ok(renamed(tensors, texture_classifier))
}

fn renamed(tensors: Tensors, rename: impl Fn(&str) -> Option<String>) -> Tensors {
    tensors.into_iter().filter_map(|(name, t)| Some((rename(&name)?, t))).collect()
}

fn torchvision_v2s(name: &str) -> Option<String> {
    Some(torchvision_v2s_name(name).unwrap_or_else(|| name.to_owned()))
}

fn torchvision_v2s_name(name: &str) -> Option<String> {
    if let Some(leaf) = name.strip_prefix("classifier.1.") {
        return Some(format!("classifier.{leaf}"));
    }
    let (stage, rest) = name.strip_prefix("features.")?.split_once('.')?;
    let (stage, pair) = (stage.parse::<usize>().ok()?, rest.split_once('.')?);
    match (stage, pair) {
        (0, ("0", leaf)) => return Some(format!("conv_stem.{leaf}")),
        (0, ("1", leaf)) => return Some(format!("bn1.{leaf}")),
        (7, ("0", leaf)) => return Some(format!("conv_head.{leaf}")),
        (7, ("1", leaf)) => return Some(format!("bn2.{leaf}")),
        (1..=6, _) => {}
        _ => return None,
    }
    let (block, rest) = pair;
    let (step, rest) = rest.strip_prefix("block.")?.split_once('.')?;
    let (part, leaf) = rest.split_once('.')?;
    let layer = match (stage, step, part) {
        (1, "0", "0") => "conv",
        (2 | 3, "0", "0") => "conv_exp",
        (4..=6, "0", "0") => "conv_pw",
        (_, "0", "1") => "bn1",
        (2 | 3, "1", "0") => "conv_pwl",
        (4..=6, "1", "0") => "conv_dw",
        (2..=6, "1", "1") => "bn2",
        (4..=6, "2", "fc1") => "se.conv_reduce",
        (4..=6, "2", "fc2") => "se.conv_expand",
        (4..=6, "3", "0") => "conv_pwl",
        (4..=6, "3", "1") => "bn3",
        _ => return None,
    };
    Some(format!("blocks.{}.{block}.{layer}.{leaf}", stage - 1))
}

/// Patches used to be merged at the end of a stage, and what follows from the sizes was stored.
fn older_swin(name: &str) -> Option<String> {
    if name.ends_with(".attn_mask") || name.ends_with(".relative_position_index") {
        return None;
    }
    if let Some(leaf) = name.strip_prefix("head.") {
        return Some(format!("head.fc.{leaf}"));
    }
    let moved = name.strip_prefix("layers.").and_then(|rest| {
        let (stage, rest) = rest.split_once('.')?;
        let stage = stage.parse::<usize>().ok()?;
        rest.starts_with("downsample.").then(|| format!("layers.{}.{rest}", stage + 1))
    });
    Some(moved.unwrap_or_else(|| name.to_owned()))
}

/// `encoder.*` next to the heads of its pretraining, and a linear layer.
fn texture_classifier(name: &str) -> Option<String> {
    if name.starts_with("head.") || name.starts_with("head_jig.") {
        return None;
    }
    let name = match name.strip_prefix("classifier.") {
        Some(leaf) => return Some(format!("fc.{leaf}")),
        None => name,
    };
    Some(name.strip_prefix("encoder.").unwrap_or(name).to_owned())
}
