//! The text tower against torch's layers, and files without a tower.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Sample, arrays, golden, values};
use encoders::onnx;
use encoders::text::TextTower;
use net::onnx::Program;
use serde::Deserialize;
use tch::{Device, Tensor};

#[derive(Deserialize)]
struct Golden {
    tensors: BTreeMap<String, Vec<i64>>,
    texts: Vec<Vec<i64>>,
    embed: Sample,
}

fn file(golden: &Golden) -> BTreeMap<String, Tensor> {
    let drawn = golden.tensors.iter().map(|(n, shape)| (n.clone(), values(n, shape)));
    // In addition to the tower are others.
    drawn.chain([("visual.trunk.cls_token".into(), values("cls_token", &[1, 1, 8]))]).collect()
}

fn open(file: &BTreeMap<String, Tensor>) -> encoders::Result<TextTower> {
    TextTower::open(Path::new("conch.bin"), &arrays(file))
}

/// The exported network on libtorch.
fn embed(tower: &TextTower, texts: &[Vec<i64>]) -> Tensor {
    let input = tower.input(texts);
    let file = onnx::text(tower, input.tokens).expect("exported");
    let sides = [texts.len(), input.tokens, input.width].map(|n| n as i64);
    let values = Tensor::from_slice(&input.values).view(sides);
    Program::load(&file, Device::Cpu, None).expect("loaded").run(&values).expect("runs")
}

#[test]
fn texts_have_the_vectors_of_the_reference() {
    let golden: Golden = golden("text");
    let tower = open(&file(&golden)).expect("fits");
    assert_eq!((tower.context(), tower.shape().vocabulary), (11, 40));
    let padded: Vec<Vec<i64>> = golden.texts.clone();
    golden.embed.check("vectors", &embed(&tower, &padded), 1e-5);
    // Padding behind a text makes no difference, nor does the text next to it.
    let plain = |t: &Vec<i64>| t.iter().copied().take_while(|id| *id != 0).collect::<Vec<i64>>();
    let texts: Vec<Vec<i64>> = padded.iter().map(plain).collect();
    let together = embed(&tower, &texts);
    golden.embed.check("without padding", &together, 1e-5);
    for (i, text) in (0..).zip(texts) {
        let off = embed(&tower, &[text]) - together.slice(0, i, i + 1, 1);
        assert!(f64::try_from(off.abs().max()).unwrap() < 1e-6);
    }
}

#[test]
fn a_tower_that_is_not_whole_is_refused_by_name() {
    let golden: Golden = golden("text");
    let refused = |change: &dyn Fn(&mut BTreeMap<String, Tensor>), words: &str| {
        let mut file = file(&golden);
        change(&mut file);
        let why = open(&file).expect_err("refused").to_string();
        assert!(why.contains("conch.bin") && why.contains(words), "{why}");
    };
    let gone = |name: &'static str| move |f: &mut BTreeMap<String, Tensor>| drop(f.remove(name));
    refused(&gone("text.token_embedding.weight"), "no text tower");
    refused(
        &gone("text.transformer.resblocks.1.attn.in_proj_bias"),
        "missing: blocks.1.attn.qkv.bias",
    );
    refused(&|f| drop(f.insert("text.more".into(), values("x", &[3]))), "unexpected: text.more");
    refused(&|f| drop(f.insert("text.cls_emb".into(), values("x", &[7]))), "another shape");
    let nan = |f: &mut BTreeMap<String, Tensor>| {
        drop(f.insert("text.cls_emb".into(), Tensor::from_slice(&[f32::NAN; 128])));
    };
    refused(&nan, "not finite");
    let wide = |f: &mut BTreeMap<String, Tensor>| {
        drop(f.insert("text.token_embedding.weight".into(), values("x", &[40, 72])));
    };
    refused(&wide, "72 wide over 12 tokens");
}
