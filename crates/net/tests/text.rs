//! The text tower against torch's layers, and files without a tower.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Sample, golden, values};
use net::text::TextTower;
use serde::Deserialize;
use tch::Tensor;

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

#[test]
fn texts_have_the_vectors_of_the_reference() {
    let golden: Golden = golden("text");
    let tower = TextTower::open(Path::new("conch.bin"), &file(&golden)).expect("fits");
    assert_eq!((tower.context(), tower.vocabulary()), (11, 40));
    let texts: Vec<Tensor> = golden.texts.iter().map(|t| Tensor::from_slice(t)).collect();
    golden.embed.check("vectors", &tower.embed(&Tensor::stack(&texts, 0)), 1e-5);
    // A text has its vector whatever is next to it.
    let alone = tower.embed(&texts[1].unsqueeze(0));
    let in_batch = tower.embed(&Tensor::stack(&texts, 0)).slice(0, 1, 2, 1);
    assert!(f64::try_from((alone - in_batch).abs().max()).unwrap() < 1e-6);
}

#[test]
fn a_tower_that_is_not_whole_is_refused_by_name() {
    let golden: Golden = golden("text");
    let refused = |change: &dyn Fn(&mut BTreeMap<String, Tensor>), words: &str| {
        let mut file = file(&golden);
        change(&mut file);
        let why = TextTower::open(Path::new("conch.bin"), &file).expect_err("refused").to_string();
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
}
