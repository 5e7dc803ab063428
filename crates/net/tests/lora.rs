//! LoRA equals peft: what is trained, outputs, gradients, and the weights merged.

use std::collections::BTreeMap;

use crate::common::{Sample, fill, golden, signed};
use net::checkpoint::load_matching;
use net::encoder::{self, Encoder, EncoderConfig};
use net::lora::{Lora, Target};
use net::swin::{Stem, Swin, SwinConfig};
use net::vit::{Size, VitConfig};
use serde::Deserialize;
use tch::{Device, Kind, Tensor, nn::VarStore};

/// f32 in another order of operations.
const TOLERANCE: f64 = 1e-5;

fn build(family: &str) -> (VarStore, Box<dyn Encoder>) {
    let vs = VarStore::new(Device::Cpu);
    let net: Box<dyn Encoder> = if family == "swin" {
        let (dim, depths, heads) = (24, vec![2, 2], vec![3, 6]);
        let whole = SwinConfig::tiny(Stem::Patch, 3);
        let config = SwinConfig { dim, depths, heads, window: 4, image: 32, ..whole };
        Box::new(Swin::new(&vs.root(), &config).expect("valid"))
    } else {
        let whole = VitConfig::new(Size::Tiny, 3);
        let config = VitConfig { dim: 48, depth: 2, heads: 3, patch: 8, image: 32, ..whole };
        encoder::vit(&vs.root(), &config).expect("valid")
    };
    (vs, net)
}

fn forward(net: &dyn Encoder) -> Tensor {
    net.forward(&signed("input", &[2, 3, 32, 32], 1.5), false)
}

#[derive(Deserialize)]
struct Case {
    family: String,
    lora: Lora,
    trained: usize,
    total: usize,
    start: BTreeMap<String, (f64, f64)>,
    logits: Sample,
    grads: BTreeMap<String, Sample>,
    merged_logits: Sample,
    merged: BTreeMap<String, Sample>,
}

#[test]
fn adapters_equal_peft() {
    tch::manual_seed(1);
    for case in golden::<Vec<Case>>("lora") {
        let what = &case.family;
        let (vs, mut net) = build(what);
        fill(&vs);
        let before = tch::no_grad(|| forward(&*net));
        let trained = case.lora.adapt(&vs, &mut *net).expect("a transformer");
        assert_eq!(before, tch::no_grad(|| forward(&*net)), "{what}: an adapter starts at nothing");
        assert!(trained.iter().eq(case.grads.keys()), "{what}: {trained:?}");
        let all = vs.variables();
        let count = |names: &[String]| names.iter().map(|n| all[n].numel()).sum::<usize>();
        assert_eq!(count(&trained), case.trained, "{what}: trained");
        let total: usize = vs.trainable_variables().iter().map(Tensor::numel).sum();
        assert_eq!(total, case.total, "{what}: total");
        for (name, (low, high)) in &case.start {
            let near = |have: f64, want: f64| (have - want).abs() <= 0.3 * want.abs();
            let (min, max) = (all[name].min().double_value(&[]), all[name].max().double_value(&[]));
            assert!(near(min, *low) && near(max, *high), "{what}: {name} from {min} to {max}");
        }
        // The optimiser is given nothing else.
        let groups = encoder::layer_decay_groups(&vs, &*net, 0.05, 0.75);
        let mut grouped: Vec<&String> = groups.iter().flat_map(|g| &g.names).collect();
        grouped.sort();
        assert!(grouped.into_iter().eq(&trained), "{what}: groups");

        fill(&vs);
        let logits = forward(&*net);
        // Sums over whole images round otherwise on other processors. Without AVX-512, of the largest value: 1.1e-4 in
        // a logit and 6.4e-4 in a gradient of Swin.
        case.logits.check(&format!("{what}: logits"), &logits, 3e-4);
        (&logits * signed("weights", &[2, 3], 1.0)).sum(Kind::Float).backward();
        for (name, t) in &all {
            match case.grads.get(name) {
                Some(want) => want.check(&format!("{what}: {name}"), &t.grad(), 1.5e-3),
                None => assert!(!t.grad().defined(), "{what}: {name} has a gradient"),
            }
        }

        let merged = case.lora.merged(vs.variables().into_iter().collect()).expect("merged");
        for (name, want) in &case.merged {
            want.check(&format!("{what}: {name} merged"), &merged[name], TOLERANCE);
        }
        let (plain, net) = build(what);
        let report = load_matching(&merged, &plain, |n| Some(n.to_owned()));
        assert!(report.is_exact(), "{what}: {report}");
        let logits = tch::no_grad(|| forward(&*net));
        // peft adds in f32.
        case.merged_logits.check(&format!("{what}: merged"), &logits, 3e-4);
    }
}

#[test]
fn what_cannot_be_adapted_is_named() {
    let good = Lora { rank: 4, alpha: 8.0, targets: vec![Target::Qkv] };
    for (key, bad, encoder) in [
        ("lora.rank", Lora { rank: 0, ..good.clone() }, "uni_v1"),
        ("lora.alpha", Lora { alpha: f64::NAN, ..good.clone() }, "uni_v1"),
        ("lora.targets", Lora { targets: vec![], ..good.clone() }, "uni_v1"),
        ("lora", good.clone(), "resnet50"),
    ] {
        let why = bad.check(encoder).expect_err(key).to_string();
        assert!(why.contains(&format!("`{key}`")), "{why}");
    }
    good.check("ctranspath").expect("Swin has attention");
    let vs = VarStore::new(Device::Cpu);
    let mut net = encoder::build(&vs.root(), &EncoderConfig::new("resnet50", 2)).expect("valid");
    assert!(good.adapt(&vs, &mut *net).is_err());
    assert!(vs.trainable_variables().iter().all(Tensor::requires_grad), "left as it was");
}
