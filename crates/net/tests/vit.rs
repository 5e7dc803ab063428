//! The vision-transformer family: every switch equals timm's, and every published layout loads whole.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Sample, fill, golden, signed, to_vec, values};
use net::encoder::{self, ENCODERS, Encoder};
use net::foreign::{self, Allowed, Layout, Loaded};
use net::vit::{Vit, VitConfig, resample};
use net::{NetError, Result, checkpoint, read_weights};
use serde::Deserialize;
use tch::{Device, Kind, Tensor, nn::VarStore};

type Tensors = BTreeMap<String, Tensor>;
type Shapes = BTreeMap<String, Vec<i64>>;

/// Relative, as the project asks for.
const TOLERANCE: f64 = 1e-4;

fn image(side: i64) -> Tensor {
    signed("input", &[2, 3, side, side], 1.5)
}

fn model(config: &VitConfig) -> (VarStore, Box<dyn Encoder>) {
    let vs = VarStore::new(Device::Cpu);
    let net = encoder::vit(&vs.root(), config).expect("valid");
    (vs, net)
}

fn load(tensors: &Tensors, vs: &VarStore, partial: bool) -> Result<Loaded> {
    let allowed = Allowed { free: &|n| n.starts_with("head."), partial };
    foreign::load(Path::new("weights"), tensors, vs, |n| Some(n.to_string()), &allowed)
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
fn drawn(shapes: &Shapes, zeros: &[String], prefix: &str) -> Tensors {
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
        let said = format!("resized from {old} x {old} to {new} x {new} patches");
        assert!(found.report.to_string().contains(&said), "{what}: {}", found.report);
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
            want.check(&format!("{name} {n}"), &all[n].grad(), 2e-4);
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
    let mut have = BTreeMap::new();
    for g in encoder::layer_decay_groups(&vs, &*net, 0.05, 0.75) {
        for n in g.names {
            have.insert(n, (g.lr_scale, g.weight_decay));
        }
    }
    assert_eq!(have, case.layer_decay);
}

#[derive(Deserialize)]
struct Case {
    name: String,
    config: VitConfig,
    prefix: String,
    zeros: Vec<String>,
    tensors: Shapes,
    embed: Sample,
}

impl Case {
    fn file(&self) -> Tensors {
        drawn(&self.tensors, &self.zeros, &self.prefix)
    }
}

fn layouts() -> Vec<Case> {
    golden("vit_layouts")
}

/// What a reader makes of the tensors as a file.
fn written(dir: &Path, tensors: &Tensors) -> Tensors {
    let path = dir.join("model.safetensors");
    let all: Vec<_> = tensors.iter().map(|(n, t)| (n.clone(), t.shallow_clone())).collect();
    checkpoint::save_tensors(&path, &all, BTreeMap::new()).expect("written");
    read_weights(&path, None).expect("read")
}

#[test]
fn every_published_layout_loads_whole_and_gives_the_references_vectors() {
    let dir = tempfile::tempdir().expect("folder");
    for case in layouts() {
        let what = &case.name;
        let (vs, net) = model(&case.config);
        let file = written(dir.path(), &case.file());
        let found = load(&file, &vs, false).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(found.random.is_empty() && found.report.is_exact(), "{what}: {}", found.report);
        let y = tch::no_grad(|| net.embed(&image(case.config.image), false));
        case.embed.check(what, &y, TOLERANCE);
        let row = encoder::published(what).unwrap_or_else(|| panic!("{what} is no row"));
        let layout = found.layout.expect("known");
        assert!(row.layouts.contains(&layout), "{what}: {layout:?}");
        // The small network has the row's switches.
        let encoder::Architecture::Vit(own) = row.architecture else { panic!("{what}: no ViT") };
        let switches = |c: &VitConfig| {
            let form = (c.mlp, c.pool, c.eps.to_bits(), c.layer_scale.map(f64::to_bits));
            let kinds = (c.attention.is_some(), c.projection.map(|p| p.unit), c.pre_norm);
            (form, kinds, c.registers, c.no_embed_class, c.qkv_bias)
        };
        assert_eq!(switches(&own), switches(&case.config), "{what}");
    }
}

#[test]
fn one_tensor_dropped_renamed_or_reshaped_is_refused_in_every_layout() {
    for case in layouts() {
        let (vs, _) = model(&case.config);
        fill(&vs);
        let before: BTreeMap<_, _> =
            vs.variables().iter().map(|(n, t)| (n.clone(), to_vec(t))).collect();
        let refuse = |tensors: &Tensors, what: &str| {
            let what = format!("{}: {what}", case.name);
            let why = load(tensors, &vs, false).expect_err(&what);
            let NetError::Weights { problems, .. } = &why else { panic!("{what}: {why}") };
            assert!(!problems.is_empty(), "{what}: {why}");
            let same = vs.variables().iter().all(|(n, t)| to_vec(t) == before[n]);
            assert!(same, "{what}: a refused file changed the model");
        };
        let whole = case.file();
        // One of the tensors that the network needs: attention's are renamed, joined or split.
        let needed: Vec<&String> = whole
            .keys()
            .filter(|n| {
                n.contains("1.")
                    && ["attn.", "attention", "mlp", "norm", "ln_"].iter().any(|w| n.contains(w))
            })
            .filter(|n| {
                !["text", "caption", "head.", "ibot", "pooler", "decoder"]
                    .iter()
                    .any(|w| n.contains(w))
            })
            .collect();
        let needed: Vec<&String> =
            needed.into_iter().filter(|n| !n.starts_with("transformer.")).collect();
        assert!(needed.len() > 4, "{}: {needed:?}", case.name);
        for name in needed.iter().step_by(3).copied() {
            let mut dropped = case.file();
            let t = dropped.remove(name).expect("there");
            refuse(&dropped, &format!("without {name}"));
            dropped.insert(format!("{name}_"), t.shallow_clone());
            refuse(&dropped, &format!("{name}_"));
            let mut reshaped = case.file();
            reshaped.insert(name.clone(), Tensor::cat(&[&t, &t], 0));
            refuse(&reshaped, &format!("{name} twice as long"));
            let mut bad = case.file();
            let t = t.copy();
            let _ = t.view([-1]).get(1).fill_(f64::NAN);
            bad.insert(name.clone(), t);
            refuse(&bad, &format!("{name} not a number"));
        }
        let mut more = case.file();
        more.insert("novel.weight".into(), values("novel.weight", &[3]));
        refuse(&more, "one more");
    }
}

#[test]
fn every_float_converts_in_every_layout() {
    for case in layouts() {
        for kind in [Kind::Double, Kind::BFloat16, Kind::Half] {
            let file = case.file().into_iter().map(|(n, t)| (n, t.to_kind(kind))).collect();
            let (vs, net) = model(&case.config);
            load(&file, &vs, false).unwrap_or_else(|e| panic!("{} {kind:?}: {e}", case.name));
            assert!(vs.variables().values().all(|t| t.kind() == Kind::Float));
            let y = tch::no_grad(|| net.embed(&image(case.config.image), false));
            let tolerance = if kind == Kind::Double { TOLERANCE } else { 0.1 };
            case.embed.check(&format!("{} {kind:?}", case.name), &y, tolerance);
        }
    }
}

#[test]
fn a_file_of_another_network_of_the_family_is_refused() {
    let all = layouts();
    for (have, want) in [
        ("uni_v1", "lunit-vits8"),
        ("lunit-vits8", "uni_v1"),
        ("virchow", "virchow2"),
        ("uni_v1", "gigapath"),
        ("plip", "phikon"),
        ("conch_v1", "lunit-vits8"),
        ("dinov2-vitb14-reg4", "dinov2-vitb14"),
        ("phikon_v2", "hibou_l"),
    ] {
        let case = |name: &str| all.iter().find(|c| c.name == name).expect("a case");
        for partial in [false, true] {
            let (vs, _) = model(&case(want).config);
            let found = load(&case(have).file(), &vs, partial);
            // What lacks a part may be taken in part; what has more than the model never is.
            if let Ok(found) = &found {
                assert!(partial && !found.random.is_empty(), "{have} as {want}: {}", found.report);
            }
        }
    }
}

#[test]
fn a_projection_is_the_models_or_known_to_be_left_out() {
    let all = layouts();
    let case = |name: &str| all.iter().find(|c| c.name == name).expect("a case");
    // timm's head stands for it where its bias is zero.
    let clip = case("clip-vitb32");
    let (vs, _) = model(&clip.config);
    let mut biased = clip.file();
    biased.insert("head.bias".into(), values("head.bias", &[24]));
    let why = load(&biased, &vs, true).expect_err("refused").to_string();
    assert!(why.contains("projection has a bias"), "{why}");
    // In a file of no such layout it is one tensor too many.
    let plain = case("lunit-vits8");
    let (vs, _) = model(&plain.config);
    let mut more = plain.file();
    more.insert("projection.weight".into(), values("projection.weight", &[24, 48]));
    let why = load(&more, &vs, false).expect_err("refused").to_string();
    assert!(why.contains("unexpected: projection.weight"), "{why}");
}

#[test]
fn a_teacher_below_its_key_is_read_from_a_pickle() {
    #[derive(Deserialize)]
    struct Case {
        config: VitConfig,
        embed: Sample,
    }
    let case: Case = golden("vit_teacher");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/teacher.pth");
    let file = read_weights(&path, None).expect("read");
    assert!(file.contains_key("backbone.mask_token"));
    let (vs, net) = model(&case.config);
    let found = load(&file, &vs, false).expect("fits");
    assert_eq!(found.layout, Some(Layout::DinoV2));
    let y = tch::no_grad(|| net.embed(&image(case.config.image), false));
    case.embed.check("teacher", &y, TOLERANCE);
}

#[test]
fn shards_are_read_together_or_refused() {
    let dir = tempfile::tempdir().expect("folder");
    let index = dir.path().join("model.safetensors.index.json");
    let case = layouts().into_iter().find(|c| c.name == "midnight12k").expect("a case");
    let all: Vec<(String, Tensor)> = case.file().into_iter().collect();
    let (first, second) = all.split_at(all.len() / 2);
    let name = |i: usize| format!("model-0000{i}-of-00002.safetensors");
    let save = |i: usize, part: &[(String, Tensor)]| {
        checkpoint::save_tensors(&dir.path().join(name(i)), part, BTreeMap::new())
            .expect("written");
    };
    let place = |i: usize, part: &[(String, Tensor)]| -> Vec<(String, String)> {
        part.iter().map(|(n, _)| (n.clone(), name(i))).collect()
    };
    let write = |map: &BTreeMap<String, String>| {
        let text = serde_json::json!({ "metadata": { "total_size": 1 }, "weight_map": map });
        std::fs::write(&index, text.to_string()).expect("written");
    };
    save(1, first);
    save(2, second);
    let map: BTreeMap<String, String> =
        place(1, first).into_iter().chain(place(2, second)).collect();
    write(&map);
    let file = read_weights(&index, None).expect("whole");
    assert_eq!(file.len(), all.len());
    let (vs, net) = model(&case.config);
    load(&file, &vs, false).expect("fits");
    let y = tch::no_grad(|| net.embed(&image(case.config.image), false));
    case.embed.check("shards", &y, TOLERANCE);

    let refused = |word: &str| {
        let why = read_weights(&index, None).expect_err(word).to_string();
        assert!(why.contains(word) && why.contains("index.json"), "{why}");
    };
    let mut more = map.clone();
    more.insert("novel".into(), name(1));
    write(&more);
    refused("`novel` is in none of its files");
    let mut less = map.clone();
    less.remove(&second[0].0);
    write(&less);
    refused("the index says otherwise");
    for outside in ["../model.safetensors", "/etc/passwd", "a/b.safetensors"] {
        let mut away = map.clone();
        away.insert("novel".into(), outside.into());
        write(&away);
        refused("which is no file beside it");
    }
    std::fs::write(&index, "{\"weight_map\": 3}").expect("written");
    refused("no readable index");
    write(&map);
    std::fs::remove_file(dir.path().join(name(2))).expect("removed");
    assert!(matches!(read_weights(&index, None), Err(NetError::Io { .. })));
}

#[test]
fn a_table_that_is_no_square_or_fits_already_is_left_alone() {
    let table = |rows: i64| values("pos_embed", &[1, rows, 8]);
    assert!(resample(&table(17), 1, 4).is_none(), "as it is");
    assert!(resample(&table(18), 1, 4).is_none(), "no square");
    assert!(resample(&values("pos_embed", &[17, 8]), 1, 4).is_none(), "no table");
    let larger = resample(&table(17), 1, 6).expect("resized");
    assert_eq!(larger.size(), [1, 37, 8]);
    assert_eq!(to_vec(&larger.narrow(1, 0, 1)), to_vec(&table(17).narrow(1, 0, 1)));
}

#[test]
fn every_row_of_the_table_says_what_it_needs() {
    let mut names: Vec<&str> = ENCODERS.iter().map(|e| e.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ENCODERS.len(), "a name twice");
    for entry in ENCODERS {
        let encoder::Architecture::Vit(config) = entry.architecture else { continue };
        config.check().unwrap_or_else(|e| panic!("{}: {e}", entry.name));
        assert_eq!(config.width(), entry.dim, "{}", entry.name);
        let Some(row) = &entry.published else { continue };
        assert_eq!(
            (row.name, row.dim, row.architecture),
            (entry.name, entry.dim, entry.architecture)
        );
        assert!(row.resize >= row.image && !row.layouts.is_empty(), "{}", entry.name);
        let given = encoder::EncoderConfig::new(entry.name, 0);
        assert_eq!((given.image, given.pool), (row.image, row.pool), "{}", entry.name);
        let text = format!(r#"{{"name": "{}", "classes": 2, "pool": "mean"}}"#, entry.name);
        let given: encoder::EncoderConfig = serde_json::from_str(&text).expect("read");
        assert_eq!((given.image, given.pool), (row.image, net::vit::Pool::Mean), "{}", entry.name);
        let json = serde_json::to_value(row).expect("written");
        assert_eq!(json["architecture"]["vit"]["dim"], config.dim, "{}", entry.name);
    }
    // SwiGLU's widths as published.
    let hidden = |name: &str| match encoder::entry(name).expect("a row").architecture {
        encoder::Architecture::Vit(c) => c.hidden(),
        encoder::Architecture::EfficientNet(_) => 0,
        _ => 0,
    };
    for (name, fc1) in [
        ("virchow", 6832),
        ("uni_v2", 8192),
        ("gigapath", 8192),
        ("hoptimus0", 8192),
        ("midnight12k", 8192),
        ("h0-mini", 4096),
        ("hibou_l", 5472),
        ("gigapath-flash", 2048),
        ("uni_v1", 4096),
    ] {
        assert_eq!(hidden(name), fc1, "{name}");
    }
}

#[test]
fn rows_have_timms_shapes_and_facts() {
    #[derive(Deserialize)]
    struct Facts {
        image: i64,
        mean: [f32; 3],
        std: [f32; 3],
        interpolation: encoder::Interpolation,
        crop: f64,
    }
    #[derive(Deserialize)]
    struct Row {
        blocks: i64,
        tensors: Shapes,
        facts: Option<Facts>,
    }
    for (name, want) in golden::<BTreeMap<String, Row>>("vit_rows") {
        let row = encoder::published(&name).unwrap_or_else(|| panic!("{name} is no row"));
        let encoder::Architecture::Vit(config) = row.architecture else { panic!("{name}: no ViT") };
        assert_eq!(config.depth, want.blocks, "{name}");
        // One block of the full width stands for all.
        let (vs, _) = model(&VitConfig { depth: 1, ..config });
        let have: Shapes = vs.variables().iter().map(|(n, t)| (n.clone(), t.size())).collect();
        // timm's projection is its head, with a bias of zeros.
        let renamed = |n: &String| n.replace("head.weight", "projection.weight");
        let timm = want.tensors.iter().filter(|(n, _)| *n != "head.bias");
        let timm: Shapes = timm.map(|(n, s)| (renamed(n), s.clone())).collect();
        assert_eq!(have, timm, "{name}");
        let Some(facts) = want.facts else { continue };
        assert_eq!(row.image, facts.image, "{name}");
        assert_eq!((row.mean, row.std), (facts.mean, facts.std), "{name}");
        assert_eq!(row.interpolation, facts.interpolation, "{name}");
        assert_eq!(row.resize, (row.image as f64 / facts.crop) as i64, "{name}");
    }
}
