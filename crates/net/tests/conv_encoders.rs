//! ResNet, Swin and the EfficientNets: equal to timm, torchvision and the script of ResNet-50 v2's
//! weights; published files load whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::{self, Sample, fill, golden, signed, values};
use encoders::EncoderError;
use net::encoder::{self, Architecture, ENCODERS, Encoder, EncoderConfig};
use net::foreign::{self, Allowed, Layout, Loaded};
use net::resnet::{ResNetConfig, ResNetV2};
use net::swin::{Stem, Swin, SwinConfig};
use net::{NetError, checkpoint, read_weights};
use serde::Deserialize;
use tch::{Device, Kind, Tensor, nn::VarStore};

/// f32 in another order of operations, which on other processors is yet another.
const FORWARD: f64 = 5e-5;
/// f64 next to nine digits.
const STEP: f64 = 1e-7;

fn build(name: &str, image: i64, classes: i64) -> (VarStore, Box<dyn Encoder>) {
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image, ..EncoderConfig::new(name, classes) };
    let net = encoder::build(&vs.root(), &config).expect("valid");
    (vs, net)
}

fn parameters(vs: &VarStore) -> usize {
    vs.trainable_variables().iter().map(Tensor::numel).sum()
}

#[derive(Deserialize)]
struct Case {
    name: String,
    image: i64,
    parameters: usize,
    embed: Sample,
    logits: Sample,
}

#[test]
fn encoders_equal_their_references() {
    let mut last: Option<(String, VarStore, Box<dyn Encoder>)> = None;
    for case in golden::<Vec<Case>>("conv_encoders") {
        let what = format!("{} at {}", case.name, case.image);
        // A network that takes any size is built once.
        let again = |l: &(String, _, Box<dyn Encoder>)| l.0 == case.name && l.2.image().is_none();
        if !last.as_ref().is_some_and(again) {
            let (vs, net) = build(&case.name, case.image, 10);
            fill(&vs);
            last = Some((case.name.clone(), vs, net));
        }
        let (_, vs, net) = last.as_ref().expect("just built");
        assert_eq!(parameters(vs), case.parameters, "{what}: parameters");
        assert_eq!(Some(net.dim()), encoder::entry(&case.name).map(|e| e.dim), "{what}: width");
        let x = signed("input", &[1, 3, case.image, case.image], 1.5);
        let (embed, logits) = tch::no_grad(|| (net.embed(&x, false), net.forward(&x, false)));
        case.embed.check(&format!("{what}: embed"), &embed, FORWARD);
        case.logits.check(&format!("{what}: logits"), &logits, FORWARD);
    }
}

/// At 224 px, as all of them are fed here, and at another size.
#[test]
fn every_convolutional_architecture_is_compared_at_two_sizes() {
    let mut sizes: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    let mut add = |name: &str, image| {
        sizes.entry(name.into()).or_default().insert(image);
    };
    golden::<Vec<Case>>("conv_encoders").iter().for_each(|c| add(&c.name, c.image));
    let v2 = golden::<ResNetV2Golden>("resnet50v2");
    v2.seeded.iter().for_each(|s| add(encoders::resnet::V2_NAME, s.image));
    for file in layouts() {
        let own = encoder::published(&file.rows[0]).expect("a row").architecture;
        let plain = ENCODERS.iter().find(|e| e.published.is_none() && e.architecture == own);
        file.vectors.iter().for_each(|v| add(plain.expect("a row").name, v.image));
    }
    for entry in ENCODERS {
        if matches!(entry.architecture, Architecture::Vit(_)) || entry.published.is_some() {
            continue;
        }
        let found = sizes.get(entry.name).cloned().unwrap_or_default();
        assert!(found.contains(&224) && found.len() > 1, "{}: {found:?}", entry.name);
    }
}

#[test]
fn training_steps_equal_their_references() {
    #[derive(Deserialize)]
    struct Step {
        name: String,
        image: i64,
        logits: Sample,
        grads: BTreeMap<String, Sample>,
        buffers: BTreeMap<String, Sample>,
    }
    for step in golden::<Vec<Step>>("conv_steps") {
        let (mut vs, net) = build(&step.name, step.image, 10);
        fill(&vs);
        // In f32 rounding decides which side of a ReLU a value falls on, and gradients jump.
        vs.double();
        let x = signed("input", &[2, 3, step.image, step.image], 1.5).to_kind(Kind::Double);
        let out = net.forward(&x, true);
        (&out * signed("weights", &[2, 10], 1.0)).sum(Kind::Double).backward();
        let all = vs.variables();
        let what = &step.name;
        step.logits.check(&format!("{what}: logits"), &out, STEP);
        for (name, want) in &step.grads {
            want.check(&format!("{what}: {name}"), &all[name].grad(), STEP);
        }
        for (name, want) in &step.buffers {
            want.check(&format!("{what}: {name}"), &all[name], STEP);
        }
    }
}

#[test]
fn layer_groups_equal_timm() {
    #[derive(Deserialize)]
    struct Group {
        scale: f64,
        decay: f64,
        names: BTreeSet<String>,
    }
    for (name, want) in golden::<BTreeMap<String, Vec<Group>>>("conv_groups") {
        let (vs, net) = build(&name, 224, 2);
        let have = encoder::layer_decay_groups(&vs, &*net, 0.05, 0.75);
        assert_eq!(have.len(), want.len(), "{name}: groups");
        for group in want {
            let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
            let same = have
                .iter()
                .find(|g| close(g.lr_scale, group.scale) && close(g.weight_decay, group.decay));
            let same = same.unwrap_or_else(|| panic!("{name}: no group of {}", group.scale));
            let names: BTreeSet<String> = same.names.iter().cloned().collect();
            assert_eq!(names, group.names, "{name}: {} {}", group.scale, group.decay);
        }
    }
}

#[derive(Deserialize)]
struct ResNetV2Golden {
    parameters: usize,
    seeded: Vec<Seeded>,
    real: Real,
}

#[derive(Deserialize)]
struct Seeded {
    image: i64,
    features: Sample,
}

#[derive(Deserialize)]
struct Real {
    features: Sample,
    mean: f64,
    max: f64,
}

#[test]
fn resnet_50_v2_equals_its_script() {
    let golden: ResNetV2Golden = golden("resnet50v2");
    let vs = VarStore::new(Device::Cpu);
    let net = ResNetV2::new(&vs.root(), &ResNetConfig::new(0)).expect("valid");
    fill(&vs);
    assert_eq!(parameters(&vs), golden.parameters);
    for case in golden.seeded {
        let x = signed("input", &[1, 3, case.image, case.image], 1.5);
        let y = tch::no_grad(|| net.forward_features(&x, false));
        case.features.check(&format!("at {}", case.image), &y, FORWARD);
    }
}

/// A file of the data folder, or `None` (reported) where absent.
fn data(path: &str) -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("MITHRAS_DATA").map_or(shared, PathBuf::from);
    let file = folder.join(path);
    if file.exists() {
        return Some(file);
    }
    eprintln!("SKIPPED: no {} (set MITHRAS_DATA)", file.display());
    None
}

#[test]
fn resnet_50_v2_with_its_weights_equals_its_script() {
    let Some(path) = data("weights/resnet50v2_imagenet_stage3.safetensors") else { return };
    let real = golden::<ResNetV2Golden>("resnet50v2").real;
    let tensors = read_weights(&path, None).expect("readable");
    assert_eq!(tensors["conv.weight"].kind(), Kind::Half);
    let vs = VarStore::new(Device::Cpu);
    let net = ResNetV2::new(&vs.root(), &ResNetConfig::new(0)).expect("valid");
    let whole = Allowed { free: &|_| false, partial: false };
    foreign::load(&path, &common::arrays(&tensors), &vs, |n| Some(n.to_owned()), &whole)
        .expect("loads whole");
    let x = (Tensor::arange(3 * 64 * 64, (Kind::Float, Device::Cpu)) * 0.01).sin();
    let y = tch::no_grad(|| net.forward_features(&x.reshape([1, 3, 64, 64]), false));
    real.features.check("features", &y, 1e-4);
    let scalar = |t: Tensor| f64::try_from(t).expect("a scalar");
    assert!((scalar(y.mean(Kind::Double)) - real.mean).abs() < 1e-6);
    assert!((scalar(y.max()) - real.max).abs() < 1e-5);
}

type Tensors = BTreeMap<String, Tensor>;

#[derive(Deserialize)]
pub struct Published {
    /// Rows of one network.
    pub rows: Vec<String>,
    pub layout: String,
    names: BTreeMap<String, Vec<i64>>,
    classes: i64,
    /// A tensor to do harm to.
    victim: String,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    image: i64,
    #[serde(default)]
    embed: Option<Sample>,
    #[serde(default)]
    logits: Option<Sample>,
}

pub fn layouts() -> Vec<Published> {
    golden("conv_layouts")
}

fn layout_of(row: &str, layout: &str) -> Published {
    let found =
        layouts().into_iter().find(|p| p.layout == layout && p.rows.iter().any(|r| r == row));
    found.unwrap_or_else(|| panic!("no case of {row} in {layout}"))
}

impl Published {
    /// The tensors of such a file, below `part/` where it has parts.
    fn tensors(&self, part: &str) -> Tensors {
        let stored = ["num_batches_tracked", "attn_mask", "relative_position_index"];
        let named = self.names.iter().filter_map(|(n, shape)| {
            let name = n.strip_prefix(part)?;
            // A count, a mask, an index: none of them a weight.
            let t = if stored.iter().any(|s| name.ends_with(s)) {
                Tensor::zeros(shape.as_slice(), (Kind::Int64, Device::Cpu))
            } else {
                values(name, shape)
            };
            Some((name.to_owned(), t))
        });
        named.collect()
    }

    /// A whole file gives the reference's output; dropped, renamed and reshaped tensors are refused.
    fn check(&self, tensors: &Tensors, layout: Layout, victim: &str) {
        let what = format!("{} in {}", self.rows.join(", "), self.layout);
        let side = self.vectors[0].image;
        let (vs, net) = build(&self.rows[0], side, self.classes);
        for row in &self.rows {
            let row = encoder::published(row).expect("a row");
            let first = encoder::published(&self.rows[0]).expect("a row");
            assert_eq!((row.architecture, row.dim), (first.architecture, net.dim()), "{what}");
        }
        let loaded = load(&through_a_file(tensors), &vs).expect("loads whole");
        assert!(loaded.random.is_empty() && loaded.report.is_exact(), "{what}: {}", loaded.report);
        assert_eq!(loaded.layout, Some(layout), "{what}");
        for at in &self.vectors {
            let x = signed("input", &[1, 3, at.image, at.image], 1.5);
            let what = format!("{what} at {}", at.image);
            if let Some(want) = &at.embed {
                want.check(&what, &tch::no_grad(|| net.embed(&x, false)), FORWARD);
            }
            if let Some(want) = &at.logits {
                want.check(&what, &tch::no_grad(|| net.forward(&x, false)), FORWARD);
            }
        }
        let refused = |change: &dyn Fn(&mut Tensors, Tensor)| {
            let mut changed: Tensors =
                tensors.iter().map(|(n, t)| (n.clone(), t.shallow_clone())).collect();
            let t = changed.remove(victim).unwrap_or_else(|| panic!("no {victim}"));
            change(&mut changed, t);
            let error = load(&changed, &vs).expect_err("refused");
            assert!(matches!(error, NetError::Encoder(EncoderError::Weights { .. })), "{error}");
            error.to_string()
        };
        assert!(refused(&|_, _| ()).contains("missing: "), "{what}: dropped");
        let renamed = refused(&|all, t| drop(all.insert(format!("{victim}_too"), t)));
        assert!(renamed.contains("missing: ") && renamed.contains("unexpected: "), "{renamed}");
        let reshaped = refused(&|all, t| drop(all.insert(victim.to_owned(), t.reshape([1, -1]))));
        assert!(reshaped.contains("of another shape"), "{reshaped}");
    }
}

/// Writes the tensors and reads them as any file of others.
fn through_a_file(tensors: &Tensors) -> Tensors {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("weights.safetensors");
    checkpoint::save_tensors(&path, tensors, BTreeMap::new()).expect("written");
    read_weights(&path, None).expect("readable")
}

fn load(tensors: &Tensors, vs: &VarStore) -> Result<Loaded, NetError> {
    let allowed = Allowed { free: &|_| false, partial: false };
    let keep = |n: &str| Some(n.to_owned());
    foreign::load(Path::new("weights.safetensors"), &common::arrays(tensors), vs, keep, &allowed)
}

#[test]
fn torchvisions_efficientnet_v2_s_loads_whole() {
    let file = layout_of("bertram-v2s", "torchvision");
    file.check(&file.tensors(""), Layout::Torchvision, &file.victim);
}

#[test]
fn timms_efficientnet_b7_loads_whole() {
    let file = layout_of("mdfs-b7", "timm");
    file.check(&file.tensors(""), Layout::Timm, &file.victim);
}

#[test]
fn swin_with_a_convolutional_stem_loads_whole_from_older_and_newer_names() {
    let file = layout_of("chief", "old_swin");
    let tensors = file.tensors("");
    assert!(tensors.contains_key("layers.0.blocks.1.attn_mask"));
    file.check(&tensors, Layout::OldSwin, &file.victim);
    let file = layout_of("chief", "timm");
    file.check(&file.tensors(""), Layout::Timm, &file.victim);
}

#[test]
fn a_texture_classifier_and_torchvisions_resnet_load_whole() {
    let file = layout_of("impash", "texture");
    // As read from a PyTorch file: without `module.`, the classifier next to the encoder.
    let bare = |t: Tensors, to: &str| -> Vec<(String, Tensor)> {
        let bare = |n: &str| n.strip_prefix("module.").expect("parallel").to_owned();
        t.into_iter().map(|(n, t)| (format!("{to}{}", bare(&n)), t)).collect()
    };
    let mut tensors: Tensors = bare(file.tensors("model/"), "").into_iter().collect();
    let encoder = tensors.keys().cloned().collect::<Vec<_>>();
    tensors.extend(bare(file.tensors("classifier/"), "classifier."));
    let head = Tensor::zeros([128, 2048], (Kind::Float, Device::Cpu));
    tensors.insert("head.0.weight".into(), head.shallow_clone());
    tensors.insert("head_jig.0.weight".into(), head);
    file.check(&tensors, Layout::Texture, &file.victim);
    // torchvision's names are the network's own.
    let plain = |n: &String| n.strip_prefix("encoder.").map(|to| (to.to_owned(), n.clone()));
    let mut own: Tensors =
        encoder.iter().filter_map(plain).map(|(to, n)| (to, tensors[&n].shallow_clone())).collect();
    own.insert("fc.weight".into(), tensors["classifier.weight"].shallow_clone());
    own.insert("fc.bias".into(), tensors["classifier.bias"].shallow_clone());
    file.check(&own, Layout::Timm, "layer3.2.bn2.running_var");
}

#[test]
fn tensorflows_files_fit_tensorflows_networks_alone() {
    let (vs, _) = build("tf_efficientnet_b0", 224, 2);
    fill(&vs);
    let file: Tensors = vs.variables().into_iter().collect();
    let path = Path::new("tf_efficientnet_b0.ns_jft_in1k/model.safetensors");
    let allowed = Allowed { free: &|_| false, partial: false };
    let keep = |n: &str| Some(n.to_owned());
    let (vs, net) = build("tf_efficientnet_b0", 224, 2);
    foreign::load_encoder(path, &common::arrays(&file), &vs, net.architecture(), keep, &allowed)
        .expect("its own");
    let (vs, net) = build("efficientnet_b0", 224, 2);
    let why = foreign::load_encoder(
        path,
        &common::arrays(&file),
        &vs,
        net.architecture(),
        keep,
        &allowed,
    )
    .expect_err("refused");
    assert!(why.to_string().contains("TensorFlow"), "{why}");
}

#[test]
fn settings_out_of_range_are_named() {
    let vs = VarStore::new(Device::Cpu);
    let good = SwinConfig::tiny(Stem::Conv, 2);
    for (key, bad) in [
        ("image", SwinConfig { image: 225, ..good.clone() }),
        ("window", SwinConfig { window: 1, ..good.clone() }),
        ("heads", SwinConfig { heads: vec![3, 6, 12], ..good.clone() }),
        ("heads", SwinConfig { heads: vec![3, 6, 13, 24], ..good.clone() }),
        ("depths", SwinConfig { depths: vec![2, 0, 6, 2], ..good.clone() }),
        ("drop_path", SwinConfig { drop_path: 1.0, ..good.clone() }),
        ("classes", SwinConfig { classes: -1, ..good.clone() }),
    ] {
        let why = Swin::new(&vs.root(), &bad).expect_err(key).to_string();
        assert!(why.contains(&format!("`{key}`")), "{why}");
    }
    for name in ["resnet50", "efficientnet_b0", encoders::resnet::V2_NAME] {
        let config = EncoderConfig::new(name, -1);
        assert!(encoder::build(&vs.root(), &config).is_err(), "{name}");
    }
}
