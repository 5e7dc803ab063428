//! The vision-transformer family: every switch equals timm's, CONCH's pooler its published layers.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{self, Sample, fill, golden, signed, values};
use encoders::foreign::resample;
use net::Result;
use net::encoder::{self, Encoder};
use net::foreign::{self, Allowed, Loaded};
use net::vit::{Vit, VitConfig};
use serde::Deserialize;
use tch::{Device, Kind, Tensor, nn::VarStore};

pub type Tensors = BTreeMap<String, Tensor>;
pub type Shapes = BTreeMap<String, Vec<i64>>;

/// Relative, as the project asks for.
pub const TOLERANCE: f64 = 1e-4;

/// Gradients are sums over whole images and round otherwise on other processors.
const GRADIENT: f64 = 5e-4;

pub fn image(side: i64) -> Tensor {
    signed("input", &[2, 3, side, side], 1.5)
}

pub fn model(config: &VitConfig) -> (VarStore, Box<dyn Encoder>) {
    let vs = VarStore::new(Device::Cpu);
    let net = encoder::vit(&vs.root(), config).expect("valid");
    (vs, net)
}

pub fn load(tensors: &Tensors, vs: &VarStore, partial: bool) -> Result<Loaded> {
    let allowed = Allowed { free: &|n| n.starts_with("head."), partial };
    foreign::load(
        Path::new("weights"),
        &common::arrays(tensors),
        vs,
        |n| Some(n.to_string()),
        &allowed,
    )
}

#[derive(Deserialize)]
struct Switches {
    name: String,
    config: VitConfig,
    other: i64,
    parameters: usize,
    tensors: Shapes,
    features: Sample,
    embed: Sample,
    embed_other: Sample,
}

/// What timm drew, with a projection's bias of zeros.
pub fn drawn(shapes: &Shapes, zeros: &[String], prefix: &str) -> Tensors {
    let one = |(n, s): (&String, &Vec<i64>)| {
        let t = values(n.strip_prefix(prefix).unwrap_or(n), s);
        (n.clone(), if zeros.contains(n) { t.zeros_like() } else { t })
    };
    shapes.iter().map(one).collect()
}

#[test]
fn every_switch_equals_timm_at_two_image_sizes() {
    for case in golden::<Vec<Switches>>("vit_switches") {
        let zeros = ["head.bias".to_string()];
        let file = drawn(&case.tensors, &zeros, "");
        let what = &case.name;
        let vs = VarStore::new(Device::Cpu);
        let net = Vit::new(&vs.root(), &case.config).expect("valid");
        let report = load(&file, &vs, false).unwrap_or_else(|e| panic!("{what}: {e}")).report;
        assert!(report.is_exact() && report.resized.is_none(), "{what}: {report}");
        let ours: usize = vs.trainable_variables().iter().map(Tensor::numel).sum();
        // timm's projection has a bias, all zero.
        let bias = case.config.projection.map_or(0, |p| p.dim as usize);
        assert_eq!(ours + bias, case.parameters, "{what}");
        let x = image(case.config.image);
        let (features, embed) =
            tch::no_grad(|| (net.forward_features(&x, false), net.embed(&x, false)));
        assert_eq!(embed.size()[1], case.config.width(), "{what}");
        case.features.check(&format!("{what} features"), &features, TOLERANCE);
        case.embed.check(&format!("{what} embed"), &embed, TOLERANCE);

        let other = VitConfig { image: case.other, ..case.config };
        let (vs, net) = model(&other);
        let found = load(&file, &vs, false).unwrap_or_else(|e| panic!("{what}: {e}"));
        let (old, new) = (case.config.grid(), other.grid());
        let note = format!("resized from {old} x {old} to {new} x {new} patches");
        assert!(found.report.to_string().contains(&note), "{what}: {}", found.report);
        let embed = tch::no_grad(|| net.embed(&image(case.other), false));
        case.embed_other.check(&format!("{what} at {} px", case.other), &embed, TOLERANCE);
    }
}

#[test]
fn gradients_equal_timm() {
    #[derive(Deserialize)]
    struct Case {
        config: VitConfig,
        embed: Sample,
        grads: BTreeMap<String, Sample>,
    }
    for (name, case) in golden::<BTreeMap<String, Case>>("vit_gradients") {
        let (vs, net) = model(&case.config);
        fill(&vs);
        let mut all = vs.variables();
        // timm's projection is its head.
        if let Some(projection) = all.remove("projection.weight") {
            let drawn = values("head.weight", &projection.size());
            tch::no_grad(|| projection.shallow_clone().copy_(&drawn));
            all.insert("head.weight".into(), projection);
        }
        let y = net.embed(&image(case.config.image), true);
        case.embed.check(&name, &y, TOLERANCE);
        (&y * signed("weights", &y.size(), 1.0)).sum(Kind::Float).backward();
        for (n, want) in &case.grads {
            want.check(&format!("{name} {n}"), &all[n].grad(), GRADIENT);
        }
    }
}

#[test]
fn layer_decay_groups_equal_timm() {
    #[derive(Deserialize)]
    struct Case {
        config: VitConfig,
        layer_decay: BTreeMap<String, (f64, f64)>,
    }
    let case: Case = golden("vit_groups");
    let (vs, net) = model(&case.config);
    assert_eq!(layer_decay(&vs, &*net), case.layer_decay);
}

/// Rate and weight decay of each parameter.
fn layer_decay(vs: &VarStore, net: &dyn Encoder) -> BTreeMap<String, (f64, f64)> {
    let groups = encoder::layer_decay_groups(vs, net, 0.05, 0.75).into_iter();
    groups
        .flat_map(|g| g.names.into_iter().map(move |n| (n, (g.lr_scale, g.weight_decay))))
        .collect()
}

#[derive(Deserialize)]
struct Conch {
    config: VitConfig,
    tensors: Shapes,
    embed: Sample,
    grads: BTreeMap<String, Sample>,
    layer_decay: BTreeMap<String, (f64, f64)>,
    other: Other,
}

#[derive(Deserialize)]
struct Other {
    image: i64,
    pooled: Sample,
    projected: Sample,
}

#[test]
fn conchs_pooler_has_the_references_gradients_and_timms_groups() {
    let case: Conch = golden("conch");
    let (vs, net) = model(&case.config);
    load(&drawn(&case.tensors, &[], ""), &vs, false).expect("fits");
    let y = net.embed(&image(case.config.image), true);
    case.embed.check("conch", &y, TOLERANCE);
    (&y * signed("weights", &y.size(), 1.0)).sum(Kind::Float).backward();
    let all = vs.variables();
    for (n, want) in &case.grads {
        want.check(n, &all[n].grad(), GRADIENT);
    }
    assert_eq!(layer_decay(&vs, &*net), case.layer_decay);
}

#[test]
fn conchs_pooler_equals_its_layers_at_another_image_size() {
    let case: Conch = golden("conch");
    let file = drawn(&case.tensors, &[], "");
    let unprojected = VitConfig { projection: None, ..case.config };
    for (config, want) in [(unprojected, &case.other.pooled), (case.config, &case.other.projected)]
    {
        let (vs, net) = model(&VitConfig { image: case.other.image, ..config });
        let found = load(&file, &vs, false).expect("fits");
        assert!(
            found.report.to_string().contains("resized from 4 x 4 to 6 x 6"),
            "{}",
            found.report
        );
        let y = tch::no_grad(|| net.embed(&image(case.other.image), false));
        want.check("conch", &y, TOLERANCE);
    }
}

#[test]
fn a_table_that_is_not_square_or_fits_already_is_left_alone() {
    let made = |dims: &[i64]| {
        common::arrays(&[("t".to_owned(), values("pos_embed", dims))].into()).remove("t").unwrap()
    };
    let table = |rows: i64| made(&[1, rows, 8]);
    assert!(resample(&table(17), 1, 4).is_none(), "as it is");
    assert!(resample(&table(18), 1, 4).is_none(), "no square");
    assert!(resample(&made(&[17, 8]), 1, 4).is_none(), "no table");
    let larger = resample(&table(17), 1, 6).expect("resized");
    assert_eq!(larger.dims(), [1, 37, 8]);
    assert_eq!(larger.to_f32()[..8], table(17).to_f32()[..8]);
}
