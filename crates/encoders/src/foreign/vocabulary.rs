//! The words of CLIP, CONCH and Hugging Face, one after the other, in timm's.

use super::tensors::{Tensors, fold_registers, unique, without_mask};
use crate::array::Array;

/// Words of a vocabulary and timm's, replaced in this order.
type Words = [(&'static str, &'static str)];

fn replaced(name: &str, words: &Words) -> String {
    words.iter().fold(name.to_owned(), |n, (from, to)| n.replace(from, to))
}

/// Names that start with one of these are another tower's.
fn without(tensors: Tensors, others: &[&str]) -> Tensors {
    tensors.into_iter().filter(|(n, _)| !others.iter().any(|o| n.starts_with(o))).collect()
}

/// Joins `<block><part>.weight` and `.bias` of query, key and value, where all three are there.
fn join(tensors: &mut Tensors, parts: [&str; 3]) {
    let first = format!("{}.", parts[0]);
    let found: Vec<(String, String)> = (tensors.keys())
        .filter_map(|n| n.split_once(&first).map(|(b, w)| (b.to_owned(), w.to_owned())))
        .collect();
    for (block, what) in found {
        let names = parts.map(|p| format!("{block}{p}.{what}"));
        let all: Vec<&Array> = names.iter().filter_map(|n| tensors.get(n)).collect();
        // Parts that are not side by side stay, and are found to be unexpected.
        if all.len() != 3 || all.iter().any(|t| t.dims() != all[0].dims()) {
            continue;
        }
        let Some(joined) = Array::joined(&all) else { continue };
        for n in &names {
            tensors.remove(n);
        }
        tensors.insert(format!("{block}attn.qkv.{what}"), joined);
    }
}

/// `[a, b]` to `[b, a]`, where it is a matrix: some write `x W`, others `x W^T`.
fn turned(tensors: &mut Tensors, name: &str) {
    if let Some(t) = tensors.remove(name) {
        tensors.insert(name.into(), t.transposed());
    }
}

fn shaped(tensors: &mut Tensors, name: &str, axes: usize) {
    if let Some(t) = tensors.get(name)
        && t.dims().len() < axes
    {
        let ones = vec![1; axes - t.dims().len()];
        let t = t.reshaped([ones, t.dims().to_vec()].concat());
        tensors.insert(name.into(), t);
    }
}

/// OpenAI's CLIP: the vision tower is below `visual.`.
pub(super) fn openai_clip(tensors: Tensors) -> Result<Tensors, String> {
    const TEXT: &[&str] = &[
        "transformer.",
        "token_embedding.",
        "positional_embedding",
        "ln_final.",
        "text_projection",
        "logit_scale",
        "input_resolution",
        "context_length",
        "vocab_size",
    ];
    const WORDS: &Words = &[
        ("transformer.resblocks.", "blocks."),
        ("class_embedding", "cls_token"),
        ("positional_embedding", "pos_embed"),
        ("conv1.", "patch_embed.proj."),
        ("ln_pre.", "norm_pre."),
        ("ln_post.", "norm."),
        (".ln_1.", ".norm1."),
        (".ln_2.", ".norm2."),
        (".attn.in_proj_", ".attn.qkv."),
        (".attn.out_proj.", ".attn.proj."),
        (".mlp.c_fc.", ".mlp.fc1."),
        (".mlp.c_proj.", ".mlp.fc2."),
    ];
    let renamed =
        without(tensors, TEXT).into_iter().map(|(n, t)| match n.strip_prefix("visual.") {
            Some("proj") => ("projection.weight".into(), t),
            Some(own) => (replaced(own, WORDS), t),
            None => (n, t),
        });
    let mut out = unique(renamed)?;
    turned(&mut out, "projection.weight");
    shaped(&mut out, "cls_token", 3);
    shaped(&mut out, "pos_embed", 3);
    Ok(out)
}

/// Hugging Face's CLIP: the vision tower is below `vision_model.`.
pub(super) fn clip(tensors: Tensors) -> Result<Tensors, String> {
    const TEXT: &[&str] = &[
        "text_model.",
        "text_projection.",
        "logit_scale",
        // A count from 0 on, which some versions store.
        "vision_model.embeddings.position_ids",
    ];
    const WORDS: &Words = &[
        ("encoder.layers.", "blocks."),
        ("embeddings.class_embedding", "cls_token"),
        ("embeddings.position_embedding.weight", "pos_embed"),
        ("embeddings.patch_embedding.", "patch_embed.proj."),
        // Their spelling.
        ("pre_layrnorm.", "norm_pre."),
        ("post_layernorm.", "norm."),
        (".layer_norm1.", ".norm1."),
        (".layer_norm2.", ".norm2."),
        (".self_attn.out_proj.", ".attn.proj."),
    ];
    let renamed = without(tensors, TEXT).into_iter().map(|(n, t)| {
        if n == "visual_projection.weight" {
            return ("projection.weight".into(), t);
        }
        match n.strip_prefix("vision_model.") {
            Some(own) => (replaced(own, WORDS), t),
            None => (n, t),
        }
    });
    let mut out = unique(renamed)?;
    join(&mut out, ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]);
    shaped(&mut out, "cls_token", 3);
    shaped(&mut out, "pos_embed", 3);
    Ok(out)
}

/// Hugging Face's ViT and DINOv2.
pub(super) fn hugging_face(tensors: Tensors) -> Result<Tensors, String> {
    const WORDS: &Words = &[
        ("encoder.layer.", "blocks."),
        ("embeddings.cls_token", "cls_token"),
        ("embeddings.mask_token", "mask_token"),
        ("embeddings.register_tokens", "register_tokens"),
        ("embeddings.position_embeddings", "pos_embed"),
        ("embeddings.patch_embeddings.projection.", "patch_embed.proj."),
        (".layernorm_before.", ".norm1."),
        (".layernorm_after.", ".norm2."),
        (".layer_scale1.lambda1", ".ls1.gamma"),
        (".layer_scale2.lambda1", ".ls2.gamma"),
        (".attention.output.dense.", ".attn.proj."),
        (".intermediate.dense.", ".mlp.fc1."),
        (".output.dense.", ".mlp.fc2."),
        (".mlp.weights_in.", ".mlp.fc1."),
        (".mlp.weights_out.", ".mlp.fc2."),
    ];
    // The pooler is a layer that the class token alone goes through after all.
    let renamed = without(tensors, &["pooler."]).into_iter().map(|(n, t)| {
        let n = replaced(&n, WORDS);
        match (n.strip_prefix("layernorm."), n.strip_prefix("classifier.")) {
            (Some(rest), _) => (format!("norm.{rest}"), t),
            (_, Some(rest)) => (format!("head.{rest}"), t),
            _ => (n, t),
        }
    });
    let mut out = unique(renamed)?;
    let parts = ["query", "key", "value"].map(|p| format!("attention.attention.{p}"));
    join(&mut out, [&parts[0], &parts[1], &parts[2]]);
    without_mask(&mut out, "mask_token");
    fold_registers(&mut out, "register_tokens")?;
    Ok(out)
}

/// CONCH's: a timm trunk below `visual.trunk.`, the pooler of the contrast next to it. The same for
/// OpenCLIP's files with a timm trunk and a linear projection.
pub(super) fn conch(tensors: Tensors) -> Result<Tensors, String> {
    const OTHERS: &[&str] = &[
        "text.",
        "text_decoder.",
        "logit_scale",
        "logit_bias",
        // The pooler of captions.
        "visual.attn_pool_caption.",
        "visual.ln_caption.",
    ];
    const WORDS: &Words = &[
        ("trunk.", ""),
        ("attn_pool_contrast.attn.out_proj.", "attn_pool.proj."),
        ("attn_pool_contrast.ln_q.", "attn_pool.norm_q."),
        ("attn_pool_contrast.ln_k.", "attn_pool.norm_k."),
        ("attn_pool_contrast.attn.q_proj_weight", "attn_pool.q.weight"),
        ("attn_pool_contrast.attn.k_proj_weight", "attn_pool.k.weight"),
        ("attn_pool_contrast.attn.v_proj_weight", "attn_pool.v.weight"),
        ("attn_pool_contrast.attn.in_proj_bias", "attn_pool.bias"),
        ("attn_pool_contrast.query", "attn_pool.query"),
        ("ln_contrast.", "attn_pool.norm."),
        ("proj_contrast", "projection.weight"),
        ("head.proj.weight", "projection.weight"),
    ];
    let turn = tensors.contains_key("visual.proj_contrast");
    let renamed =
        without(tensors, OTHERS).into_iter().map(|(n, t)| match n.strip_prefix("visual.") {
            Some(own) => (replaced(own, WORDS), t),
            None => (n, t),
        });
    let mut out = unique(renamed)?;
    if turn {
        turned(&mut out, "projection.weight");
    }
    if let Some(bias) = out.get("attn_pool.bias")
        && bias.dims().len() == 1
        && bias.dims()[0] % 3 == 0
    {
        let (third, bias) = (bias.dims()[0] / 3, bias.clone());
        out.remove("attn_pool.bias");
        for (i, part) in (0..).zip(["q", "k", "v"]) {
            out.insert(format!("attn_pool.{part}.bias"), bias.rows(0, i * third, third));
        }
    }
    Ok(out)
}
