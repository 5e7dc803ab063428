//! The masked autoencoder and the losses of pretraining against a PyTorch reference, loops
//! in f64, and finite differences.

use std::collections::BTreeMap;

use crate::common::{Sample, fill, golden, signed, to_vec, values};
use net::loss::mim::{normalised_pixels, tiles, untile};
use net::loss::scl::{attach, scl_with_grad};
use net::loss::{CrossEntropy, Objective, Scl, Term, mim, scl, scl_image, scl_token};
use net::mae::{ClassHead, Mae, MaeConfig, Masking, sincos_positions};
use net::vit::{Size, Vit, VitConfig};
use serde::Deserialize;
use tch::{Device, Kind, Tensor, nn::VarStore};

fn scalar(t: &Tensor) -> f64 {
    f64::try_from(t).expect("a scalar")
}

fn small() -> MaeConfig {
    MaeConfig {
        dim: 48,
        depth: 2,
        heads: 3,
        patch: 16,
        image: 64,
        decoder_dim: 32,
        decoder_depth: 2,
        decoder_heads: 4,
        projection: 24,
        mask_ratio: 0.75,
    }
}

fn mae(config: &MaeConfig) -> (VarStore, Mae) {
    let vs = VarStore::new(Device::Cpu);
    let net = Mae::new(&vs.root(), config).expect("valid");
    fill(&vs);
    tch::no_grad(|| {
        for (name, dim) in [("pos_embed", config.dim), ("decoder_pos_embed", config.decoder_dim)] {
            let table = sincos_positions(dim, config.grid(), true);
            vs.variables()[name].shallow_clone().copy_(&table);
        }
    });
    (vs, net)
}

#[test]
fn the_whole_objective_equals_the_pytorch_reference() {
    #[derive(Deserialize)]
    struct Golden {
        positions: Sample,
        latent: Sample,
        prediction: Sample,
        mim: f64,
        image: f64,
        token: f64,
        total: f64,
        grads: BTreeMap<String, Sample>,
    }
    let golden: Golden = golden("mae");
    let (vs, net) = mae(&small());
    golden.positions.check("positions", &vs.variables()["pos_embed"], 1e-7);
    let x = signed("input", &[8, 3, 64, 64], 1.5);
    let noise = (signed("noise", &[8, 16], 1.0) + 1.0) / 2.0;
    let masking = Masking::from_noise(&noise, small().visible());
    let labels = Tensor::from_slice(&[0i64, 1, 1, 0, 0, 1, 1, 0]);
    let cells = signed("cells", &[8, 16], 1.0).gt(0.2).to_kind(Kind::Int64) * labels.unsqueeze(1);

    let latent = net.encode(&x, &masking, true);
    let prediction = net.decode(&latent, &masking, true);
    golden.latent.check("latent", &latent, 1e-5);
    golden.prediction.check("prediction", &prediction, 1e-5);
    let (total, parts) = Objective::mithras(0.75).total(|term| match term {
        Term::Mim => mim(&prediction, &normalised_pixels(&x, 16), &masking.mask),
        Term::Image => scl_image(&net.project_image(&latent), &labels, &Scl::default()),
        Term::Token => {
            let z = net.project_tokens(&latent);
            scl_token(&z, &masking.select_visible(&cells), &Scl::default())
        }
    });
    for ((term, value), want) in parts.iter().zip([golden.mim, golden.image, golden.token]) {
        assert!((scalar(value) - want).abs() <= 1e-5 * want, "{term:?}: {value:?} {want}");
    }
    assert!((scalar(&total) - golden.total).abs() <= 1e-5 * golden.total);
    total.backward();
    for (name, want) in &golden.grads {
        want.check(name, &vs.variables()[name].grad(), 1e-5);
    }
    assert!(!vs.variables()["pos_embed"].requires_grad());
}

#[test]
fn supmaes_head_equals_the_pytorch_reference() {
    #[derive(Deserialize)]
    struct Golden {
        logits: Sample,
        entropy: f64,
        mim: f64,
        grads: BTreeMap<String, Sample>,
        buffers: BTreeMap<String, Sample>,
    }
    let golden: Golden = golden("supmae");
    let (vs, net) = mae(&small());
    let head = ClassHead::new(&(vs.root() / "classifier"), small().dim, 2);
    tch::no_grad(|| {
        let added = vs.variables().into_iter().filter(|(n, _)| n.starts_with("classifier."));
        added.for_each(|(n, mut t)| t.copy_(&values(&n, &t.size())));
    });
    let x = signed("input", &[8, 3, 64, 64], 1.5);
    let noise = (signed("noise", &[8, 16], 1.0) + 1.0) / 2.0;
    let masking = Masking::from_noise(&noise, small().visible());
    let latent = net.encode(&x, &masking, true);
    let logits = head.forward(&latent, true);
    golden.logits.check("logits", &logits, 1e-5);
    let labels = Tensor::from_slice(&[0i64, 1, 1, 0, 0, 1, 1, 0]);
    let entropy = CrossEntropy::default().forward(&logits, &labels);
    let prediction = net.decode(&latent, &masking, true);
    let reconstruction = mim(&prediction, &normalised_pixels(&x, 16), &masking.mask);
    for (have, want) in [(&entropy, golden.entropy), (&reconstruction, golden.mim)] {
        assert!((scalar(have) - want).abs() <= 1e-5 * want, "{have:?} {want}");
    }
    (reconstruction + entropy * 0.01).backward();
    let all = vs.variables();
    for (name, want) in &golden.grads {
        want.check(name, &all[name].grad(), 1e-5);
    }
    for (name, want) in &golden.buffers {
        want.check(name, &all[name], 1e-5);
    }
}

#[test]
fn a_pretrained_encoder_loads_into_the_classifier_and_gives_the_same_tokens() {
    let config = small();
    let (vs, net) = mae(&config);
    let classifier = VarStore::new(Device::Cpu);
    let vit = Vit::new(
        &classifier.root(),
        &VitConfig {
            dim: config.dim,
            depth: config.depth,
            heads: config.heads,
            image: config.image,
            ..VitConfig::new(Size::Tiny, 2)
        },
    )
    .expect("valid");
    let source: BTreeMap<_, _> = vs.variables().into_iter().collect();
    let report = net::checkpoint::load_matching(&source, &classifier, |n| Some(n.into()));
    assert_eq!(report.missing, ["head.bias", "head.weight"]);
    let x = signed("input", &[2, 3, 64, 64], 1.0);
    // Everything visible, in order.
    let order = Tensor::arange(16, (Kind::Float, Device::Cpu)).expand([2, 16], false);
    let masking = Masking::from_noise(&order, 16);
    let (a, b) =
        tch::no_grad(|| (net.encode(&x, &masking, false), vit.forward_features(&x, false)));
    assert!(scalar(&(a - b).abs().max()) < 1e-5);
}

#[test]
fn masking_keeps_the_smallest_noise_and_restores() {
    let config = MaeConfig::new(Size::Tiny);
    assert_eq!((config.tiles(), config.visible()), (196, 49));
    let noise = signed("noise", &[3, 196], 1.0);
    let m = Masking::from_noise(&noise, 49);
    assert_eq!(to_vec(&m.mask).iter().sum::<f64>(), 3.0 * 147.0);
    let seen = to_vec(&m.select_visible(&noise));
    for (row, seen) in to_vec(&noise).chunks(196).zip(seen.chunks(49)) {
        let mut sorted = row.to_vec();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(seen, &sorted[..49]);
    }
    // Visible tiles carry mask 0.
    assert_eq!(scalar(&m.select_visible(&m.mask).sum(Kind::Float)), 0.0);
    for bad in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(MaeConfig { mask_ratio: bad, ..config.clone() }.check().is_err(), "{bad}");
    }
}

#[test]
fn tiles_are_undone_and_targets_are_normal() {
    let x = signed("input", &[2, 3, 32, 32], 2.0);
    assert_eq!(untile(&tiles(&x, 16), 16), x);
    // Second tile, first pixel: channels innermost.
    let t = tiles(&x, 16);
    for c in 0..3 {
        assert_eq!(t.double_value(&[1, 1, c]), x.double_value(&[1, c, 0, 16]));
    }
    let n = normalised_pixels(&x, 16);
    let variance = to_vec(&n.var_dim([-1i64].as_slice(), true, false));
    assert!(variance.iter().all(|v| (v - 1.0).abs() < 1e-4));
    // A flat tile gives zeros, not NaN.
    let flat = Tensor::ones([1, 3, 16, 16], tch::kind::FLOAT_CPU);
    assert_eq!(scalar(&normalised_pixels(&flat, 16).abs().max()), 0.0);
}

#[test]
fn reconstruction_averages_over_masked_tiles_only() {
    let (n, t, p) = (2, 5, 12);
    let a = signed("a", &[n, t, p], 1.0).set_requires_grad(true);
    let b = signed("b", &[n, t, p], 1.0);
    let mask = Tensor::from_slice(&[1f32, 0., 1., 1., 0., 0., 1., 0., 0., 1.]).reshape([n, t]);
    let (va, vb, vm) = (to_vec(&a), to_vec(&b), to_vec(&mask));
    let (mut sum, mut count) = (0.0, 0.0);
    for (i, masked) in vm.iter().enumerate() {
        if *masked == 1.0 {
            let tile = i * 12..(i + 1) * 12;
            sum += tile.map(|j| (va[j] - vb[j]).powi(2)).sum::<f64>() / 12.0;
            count += 1.0;
        }
    }
    let loss = mim(&a, &b, &mask);
    assert!((scalar(&loss) - sum / count).abs() < 1e-6);
    loss.backward();
    assert_eq!(to_vec(&a.grad())[12..24], [0.0; 12]);
    assert_eq!(scalar(&mim(&a, &b, &mask.zeros_like())), 0.0);
}

/// Eq. 1 in loops.
fn oracle(z: &[Vec<f64>], y: &[i64], tau: f64, factor: f64) -> f64 {
    let dot = |u: usize, a: usize| z[u].iter().zip(&z[a]).map(|(p, q)| p * q).sum::<f64>() / tau;
    let mut loss = 0.0;
    for u in 0..z.len() {
        let others: Vec<usize> = (0..z.len()).filter(|a| *a != u).collect();
        let positives: Vec<usize> = others.iter().copied().filter(|a| y[*a] == y[u]).collect();
        let log_sum = others.iter().map(|a| dot(u, *a).exp()).sum::<f64>().ln();
        for q in &positives {
            loss -= (dot(u, *q) - log_sum) / positives.len() as f64;
        }
    }
    loss * factor / z.len() as f64
}

fn unit_rows(name: &str, k: i64, d: i64) -> Tensor {
    let z = signed(name, &[k, d], 1.0);
    let norm = z.square().sum_dim_intlist([1i64].as_slice(), true, None).sqrt();
    z / norm
}

fn rows(z: &Tensor) -> Vec<Vec<f64>> {
    to_vec(z).chunks(z.size()[1] as usize).map(<[f64]>::to_vec).collect()
}

/// Blocks that divide K, that do not, and that hold all.
const BLOCKS: [i64; 4] = [1, 4, 5, 64];

#[test]
fn contrast_equals_the_oracle_and_its_gradient_finite_differences() {
    let cases: [(&str, Vec<i64>); 5] = [
        ("two classes", vec![0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0]),
        ("one class only", vec![7; 12]),
        ("nobody has positives", (0..12).collect()),
        ("one anchor alone", vec![0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, -9]),
        ("three classes", vec![0, 1, 2, 0, 1, 2, 0, 1, 2, 2, 2, 2]),
    ];
    for (what, labels) in cases {
        let z = unit_rows(what, 12, 6);
        let y = Tensor::from_slice(&labels);
        let want = oracle(&rows(&z), &labels, 0.1, 0.1);
        for block in BLOCKS {
            let config = Scl { block, ..Scl::default() };
            let leaf = z.copy().set_requires_grad(true);
            let loss = scl(&leaf, &y, &config);
            assert!((scalar(&loss) - want).abs() <= 2e-6 * want.max(0.1), "{what} {block}: {want}");
            loss.backward();
            let grad = to_vec(&leaf.grad());
            for i in [0usize, 17, 35, 71] {
                let at = |step: f64| {
                    let mut moved = rows(&z);
                    moved[i / 6][i % 6] += step;
                    oracle(&moved, &labels, 0.1, 0.1)
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((grad[i] - slope).abs() < 2e-6, "{what} {block} {i}: {} {slope}", grad[i]);
            }
        }
    }
}

#[test]
fn identical_embeddings_and_tiny_batches_have_their_exact_value() {
    let one = unit_rows("one", 1, 8);
    let y = |v: &[i64]| Tensor::from_slice(v);
    let same = one.expand([20, -1], false);
    let (value, grad) = scl_with_grad(&same, &y(&[0; 20]), &Scl::default());
    assert!((scalar(&value) - 0.1 * 19f64.ln()).abs() < 1e-6);
    assert!(to_vec(&grad).iter().all(|g| g.is_finite()));
    for k in [0i64, 1] {
        let (value, grad) =
            scl_with_grad(&same.narrow(0, 0, k), &y(&vec![0; k as usize]), &Scl::default());
        assert_eq!((scalar(&value), grad.size()), (0.0, vec![k, 8]));
        assert!(to_vec(&grad).iter().all(|g| *g == 0.0));
    }
    // A pair of the same label: log-sum-exp over one other, so nothing to learn.
    let pair = unit_rows("pair", 2, 8);
    assert!(scalar(&scl(&pair, &y(&[3, 3]), &Scl::default())).abs() < 1e-6);
    // Opposite unit vectors span the whole range of exp.
    let opposite = Tensor::cat(&[&one, &-&one, &one, &-&one], 0);
    let labels = [0, 0, 1, 1];
    for tau in [0.1, 0.02] {
        let config = Scl { temperature: tau, ..Scl::default() };
        let want = oracle(&rows(&opposite), &labels, tau, 0.1);
        let have = scalar(&scl(&opposite, &y(&labels), &config));
        assert!((have - want).abs() < 1e-5 * want, "{tau}: {have} {want}");
    }
}

#[test]
fn half_precision_inputs_are_computed_in_f32() {
    let z = unit_rows("half", 32, 16);
    let y = Tensor::from_slice(&(0..32).map(|i| i % 3).collect::<Vec<i64>>());
    for kind in [Kind::Half, Kind::BFloat16] {
        let low = z.to_kind(kind);
        let leaf = low.copy().set_requires_grad(true);
        let loss = scl(&leaf, &y, &Scl::default());
        assert_eq!(loss.kind(), Kind::Float);
        let want = scalar(&scl(&low.to_kind(Kind::Float), &y, &Scl::default()));
        assert_eq!(scalar(&loss), want);
        loss.backward();
        assert_eq!(leaf.grad().kind(), kind);
    }
}

#[test]
fn gathered_contrast_hands_every_part_its_gradient() {
    // Parts, gathered and contrasted together, get the single batch's gradient.
    let z = unit_rows("gathered", 32, 16);
    let y = Tensor::from_slice(&(0..32).map(|i| i % 2).collect::<Vec<i64>>());
    let whole = z.copy().set_requires_grad(true);
    let loss = scl(&whole, &y, &Scl::default());
    loss.backward();
    let parts: Vec<Tensor> =
        z.chunk(4, 0).into_iter().map(|p| p.copy().set_requires_grad(true)).collect();
    let gathered = Tensor::cat(&parts.iter().map(Tensor::detach).collect::<Vec<_>>(), 0);
    let (value, grad) = scl_with_grad(&gathered, &y, &Scl::default());
    assert_eq!(scalar(&value), scalar(&loss));
    for (part, g) in parts.iter().zip(grad.chunk(4, 0)) {
        attach(part, &value, &g).backward();
    }
    let joined = Tensor::cat(&parts.iter().map(Tensor::grad).collect::<Vec<_>>(), 0);
    assert_eq!(to_vec(&joined), to_vec(&whole.grad()));
}

#[test]
fn a_term_of_weight_zero_is_not_computed() {
    let asked = |o: Objective| {
        let mut seen = Vec::new();
        let (total, parts) = o.total(|t| {
            seen.push(t);
            Tensor::from(2.0f32)
        });
        assert_eq!(seen.len(), parts.len());
        (seen, scalar(&total))
    };
    assert_eq!(asked(Objective::mithras(1.0)), (vec![Term::Mim, Term::Image], 4.0));
    assert_eq!(asked(Objective::mithras(0.0)), (vec![Term::Mim, Term::Token], 4.0));
    assert_eq!(asked(Objective { mim: 0.0, image: 0.75, token: 0.25 }).1, 2.0);
    assert_eq!(asked(Objective { mim: 1.0, image: 0.0, token: 0.0 }), (vec![Term::Mim], 2.0));
    assert!(Objective { mim: 0.0, image: 0.0, token: 0.0 }.check().is_err());
    assert!(Objective { mim: f64::NAN, ..Objective::mithras(0.5) }.check().is_err());
}
