//! Optimisers, parameter groups and schedules against torch, timm and the MAE reference.

use crate::common;
use std::collections::BTreeMap;

use crate::common::{Sample, golden, signed, to_vec, values};
use net::ema::Ema;
use net::encoder::{self, EncoderConfig};
use net::optim::{self, AdamW, AdamWConfig, Lars, ParamGroup};
use net::probe::Probe;
use net::schedule::{BaseLr, WarmupCosine};
use serde::Deserialize;
use tch::nn::{Init, VarStore};
use tch::{Device, Tensor};

const SHAPES: [(&str, &[i64]); 3] = [("w", &[5, 7]), ("b", &[5]), ("conv", &[4, 3, 3, 3])];

fn store() -> VarStore {
    let vs = VarStore::new(Device::Cpu);
    for (name, shape) in SHAPES {
        let mut t = vs.root().var(name, shape, Init::Const(0.0));
        tch::no_grad(|| t.copy_(&values(name, shape)));
    }
    vs
}

/// Puts `grad.{step}.{name}` on every variable.
fn set_grads(vs: &VarStore, step: usize) {
    for (name, p) in vs.variables() {
        let g = signed(&format!("grad.{step}.{name}"), &p.size(), 1.0);
        (&p * g).sum(tch::Kind::Float).backward();
    }
}

fn groups() -> Vec<ParamGroup> {
    let names = |n: &[&str]| n.iter().map(|s| (*s).to_string()).collect();
    vec![
        ParamGroup { names: names(&["w", "conv"]), lr_scale: 1.0, weight_decay: 0.05 },
        ParamGroup { names: names(&["b"]), lr_scale: 0.5, weight_decay: 0.0 },
    ]
}

fn adamw(vs: &VarStore) -> AdamW {
    let config = AdamWConfig { beta2: 0.95, ..AdamWConfig::default() };
    AdamW::new(vs, groups(), config).expect("known names")
}

fn adamw_step(vs: &VarStore, opt: &mut AdamW, step: usize) -> f64 {
    opt.zero_grad();
    set_grads(vs, step);
    let norm = opt.clip_grad_norm(3.0).expect("finite");
    opt.step(0.01 * (step + 1) as f64).expect("a step");
    norm
}

#[test]
fn adamw_equals_torch() {
    #[derive(Deserialize)]
    struct Golden {
        norms: Vec<f64>,
        params: BTreeMap<String, Sample>,
    }
    let golden: Golden = golden("adamw");
    let vs = store();
    let mut opt = adamw(&vs);
    for (step, want) in golden.norms.iter().enumerate() {
        let norm = adamw_step(&vs, &mut opt, step);
        assert!((norm - want).abs() < 1e-5 * want, "{norm} {want}");
    }
    for (name, want) in &golden.params {
        want.check(name, &vs.variables()[name], 1e-6);
    }
}

#[test]
fn adamw_continues_exactly_from_a_saved_state() {
    let (straight, resumed) = (store(), store());
    let mut opt = adamw(&straight);
    for step in 0..5 {
        adamw_step(&straight, &mut opt, step);
    }
    let mut opt = adamw(&resumed);
    for step in 0..2 {
        adamw_step(&resumed, &mut opt, step);
    }
    let mut saved: BTreeMap<String, Tensor> =
        opt.state().into_iter().map(|(n, t)| (n, t.copy())).collect();
    let mut fresh = store();
    fresh.copy(&resumed).expect("the same variables");
    let mut opt = adamw(&fresh);
    opt.load_state(&saved).expect("the same model");
    for step in 2..5 {
        adamw_step(&fresh, &mut opt, step);
    }
    for (name, t) in straight.variables() {
        assert_eq!(to_vec(&t), to_vec(&fresh.variables()[&name]), "{name}");
    }
    assert!(saved.remove("step").is_some());
    let wrong = opt.load_state(&saved).expect_err("a part is missing").to_string();
    assert!(wrong.contains("step"), "{wrong}");
}

#[test]
fn a_group_that_names_no_variable_is_refused() {
    let group = ParamGroup { names: vec!["ghost".into()], lr_scale: 1.0, weight_decay: 0.0 };
    let why = AdamW::new(&store(), vec![group], AdamWConfig::default()).expect_err("refused");
    assert!(why.to_string().contains("ghost"));
}

#[test]
fn a_norm_that_is_not_finite_leaves_the_gradients_alone() {
    let vs = store();
    let mut opt = adamw(&vs);
    set_grads(&vs, 0);
    let w = vs.variables()["b"].shallow_clone();
    (&w * f64::NAN).sum(tch::Kind::Float).backward();
    let before = to_vec(&vs.variables()["w"].grad());
    assert!(opt.clip_grad_norm(1e-3).expect("no error").is_nan());
    assert_eq!(before, to_vec(&vs.variables()["w"].grad()));
}

#[test]
fn groups_equal_timm() {
    #[derive(Deserialize)]
    struct Golden {
        layer_decay: BTreeMap<String, (f64, f64)>,
        weight_decay: Vec<String>,
    }
    for (name, want) in golden::<BTreeMap<String, Golden>>("groups") {
        let vs = VarStore::new(Device::Cpu);
        let net = encoder::build(&vs.root(), &EncoderConfig::new(&name, 2)).expect("valid");
        let mut have = BTreeMap::new();
        for g in encoder::layer_decay_groups(&vs, &*net, 0.05, 0.75) {
            for n in g.names {
                have.insert(n, (g.lr_scale, g.weight_decay));
            }
        }
        assert_eq!(have.keys().collect::<Vec<_>>(), want.layer_decay.keys().collect::<Vec<_>>());
        for (n, (scale, decay)) in &want.layer_decay {
            assert!((have[n].0 - scale).abs() < 1e-12, "{n}: {} {scale}", have[n].0);
            assert_eq!(have[n].1, *decay, "{n}");
        }
        let mut decayed: Vec<String> = optim::groups_weight_decay(&vs, 0.05, |n| net.no_decay(n))
            .into_iter()
            .filter(|g| g.weight_decay > 0.0)
            .flat_map(|g| g.names)
            .collect();
        decayed.sort();
        assert_eq!(decayed, want.weight_decay);
    }
}

#[test]
fn the_schedule_warms_up_and_falls_as_a_cosine() {
    let s = WarmupCosine { lr: 3e-4, min_lr: 1e-6, warmup_epochs: 10.0, epochs: 200.0 };
    s.check().expect("valid");
    assert_eq!(s.at(0.0), 0.0);
    assert!((s.at(2.5) - 0.75e-4).abs() < 1e-15);
    assert!((s.at(10.0) - 3e-4).abs() < 1e-15);
    assert!((s.at(105.0) - (1e-6 + (3e-4 - 1e-6) / 2.0)).abs() < 1e-12);
    assert!((s.at(200.0) - 1e-6).abs() < 1e-15 && (s.at(300.0) - 1e-6).abs() < 1e-15);
    assert!(WarmupCosine { warmup_epochs: 300.0, ..s.clone() }.check().is_err());
    assert!(WarmupCosine { lr: f64::NAN, ..s }.check().is_err());
    // 1.5e-4 per 256 at 512 is 3e-4.
    assert_eq!(BaseLr(1.5e-4).scaled(512), 3e-4);
}

#[test]
fn lars_equals_the_mae_reference() {
    let golden: BTreeMap<String, Sample> = golden("lars");
    let vs = store();
    let mut opt = Lars::new(&vs, 0.01);
    for step in 0..5 {
        if step == 2 {
            // A break in between, from the saved state.
            let saved: BTreeMap<_, _> =
                opt.state().into_iter().map(|(n, t)| (n, t.copy())).collect();
            opt = Lars::new(&vs, 0.01);
            opt.load_state(&saved).expect("the same model");
        }
        opt.zero_grad();
        set_grads(&vs, step);
        opt.step(0.3);
    }
    for (name, want) in &golden {
        want.check(name, &vs.variables()[name], 1e-6);
    }
}

#[test]
fn lars_moves_a_head_that_starts_at_zero() {
    let vs = VarStore::new(Device::Cpu);
    let w = vs.root().var("w", &[2, 3], Init::Const(0.0));
    (&w * 2.0).sum(tch::Kind::Float).backward();
    Lars::new(&vs, 0.0).step(0.1);
    assert!(to_vec(&w).iter().all(|v| (v + 0.2).abs() < 1e-7));
}

#[test]
fn the_average_follows_its_formula_and_swaps() {
    let vs = store();
    let w = vs.variables()["w"].shallow_clone();
    let start = to_vec(&w);
    let mut ema = Ema::new(&vs, 0.9);
    let _ = tch::no_grad(|| w.shallow_clone().fill_(1.0));
    ema.update(&vs).expect("an update");
    ema.swap(&vs);
    for (now, before) in to_vec(&w).iter().zip(&start) {
        assert!((now - (0.9 * before + 0.1)).abs() < 1e-6);
    }
    ema.swap(&vs);
    assert!(to_vec(&w).iter().all(|v| *v == 1.0));
    let saved: BTreeMap<_, _> = ema.state().into_iter().map(|(n, t)| (n, t.copy())).collect();
    let mut other = Ema::new(&vs, 0.9);
    other.load_state(&saved).expect("the same model");
    other.swap(&vs);
    assert!((to_vec(&w)[0] - (0.9 * start[0] + 0.1)).abs() < 1e-6);
}

#[test]
fn a_folded_probe_is_one_linear_layer() {
    let vs = VarStore::new(Device::Cpu);
    let probe =
        Probe::new(&vs.root(), &Tensor::zeros([3, 16], (tch::Kind::Float, Device::Cpu)), 0.25);
    let x = signed("features", &[40, 16], 3.0) + 1.0;
    // Nothing but the constant bias where the head starts at zero.
    assert!(to_vec(&probe.forward(&x, true)).iter().all(|v| *v == 0.25));
    common::fill(&vs);
    let (weight, bias) = probe.folded();
    let difference = probe.forward(&x, false) - x.linear(&weight, Some(&bias));
    assert!(f64::try_from(difference.abs().max()).expect("scalar") < 1e-5);
    assert_eq!(vs.trainable_variables().len(), 2);
}
