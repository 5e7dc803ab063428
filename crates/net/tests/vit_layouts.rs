//! Files of vision transformers in the names they are published in: each loads whole and gives the
//! reference's vectors, or is refused.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Sample, fill, golden, to_vec, values};
use crate::vit::{Shapes, TOLERANCE, Tensors, drawn, image, load, model};
use encoders::EncoderError;
use net::encoder;
use net::foreign::Layout;
use net::vit::{Projection, VitConfig};
use net::{NetError, checkpoint, read_weights};
use serde::Deserialize;
use tch::{Kind, Tensor};

#[derive(Deserialize)]
pub struct Case {
    /// Rows that are one in small.
    pub rows: Vec<String>,
    pub layout: String,
    config: VitConfig,
    prefix: String,
    zeros: Vec<String>,
    tensors: Shapes,
    embed: Sample,
}

impl Case {
    fn name(&self) -> String {
        format!("{} in {}", self.rows.join(", "), self.layout)
    }

    fn file(&self) -> Tensors {
        drawn(&self.tensors, &self.zeros, &self.prefix)
    }
}

pub fn layouts() -> Vec<Case> {
    golden("vit_layouts")
}

fn case_of<'a>(all: &'a [Case], row: &str, layout: &str) -> &'a Case {
    let found = all.iter().find(|c| c.rows.iter().any(|r| r == row) && c.layout == layout);
    found.unwrap_or_else(|| panic!("no case of {row} in {layout}"))
}

/// The row's network, as small as `small`: all but sizes is the row's.
fn in_small(row: &str, small: &VitConfig) -> VitConfig {
    let published = encoder::published(row).unwrap_or_else(|| panic!("{row} is not a row"));
    let encoder::Architecture::Vit(own) = published.architecture else { panic!("{row}: no ViT") };
    let (pool, projection) = (small.attention, small.projection);
    VitConfig {
        dim: small.dim,
        depth: small.depth,
        heads: small.heads,
        image: small.image,
        attention: own.attention.and(pool),
        projection: own.projection.zip(projection).map(|(o, s)| Projection { dim: s.dim, ..o }),
        ..own
    }
}

/// As it is written.
pub fn word(layout: Layout) -> String {
    let json = serde_json::to_value(layout).expect("written");
    json.as_str().expect("a word").to_owned()
}

/// What a reader makes of the tensors as a file.
fn written(dir: &Path, tensors: &Tensors) -> Tensors {
    let path = dir.join("model.safetensors");
    checkpoint::save_tensors(&path, tensors, BTreeMap::new()).expect("written");
    read_weights(&path, None).expect("read")
}

#[test]
fn every_published_layout_loads_whole_and_gives_the_references_vectors() {
    let dir = tempfile::tempdir().expect("folder");
    for case in layouts() {
        let what = &case.name();
        for row in &case.rows {
            assert_eq!(in_small(row, &case.config), case.config, "{row}");
        }
        let (vs, net) = model(&case.config);
        let file = written(dir.path(), &case.file());
        let found = load(&file, &vs, false).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(found.random.is_empty() && found.report.is_exact(), "{what}: {}", found.report);
        let y = tch::no_grad(|| net.embed(&image(case.config.image), false));
        case.embed.check(what, &y, TOLERANCE);
        assert_eq!(word(found.layout.expect("known")), case.layout, "{what}");
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
            let what = format!("{}: {what}", case.name());
            let why = load(tensors, &vs, false).expect_err(&what);
            let NetError::Encoder(EncoderError::Weights { problems, .. }) = &why else {
                panic!("{what}: {why}")
            };
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
        assert!(needed.len() > 4, "{}: {needed:?}", case.name());
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
fn f16_converts_and_other_floats_are_refused_in_every_layout() {
    for case in layouts() {
        let of = |kind| case.file().into_iter().map(|(n, t)| (n, t.to_kind(kind))).collect();
        let (vs, net) = model(&case.config);
        for kind in [Kind::Double, Kind::BFloat16] {
            let why = load(&of(kind), &vs, false).expect_err("refused").to_string();
            assert!(why.contains("not f32 or f16"), "{} {kind:?}: {why}", case.name());
        }
        load(&of(Kind::Half), &vs, false).unwrap_or_else(|e| panic!("{}: {e}", case.name()));
        assert!(vs.variables().values().all(|t| t.kind() == Kind::Float));
        let y = tch::no_grad(|| net.embed(&image(case.config.image), false));
        case.embed.check(&case.name(), &y, 0.1);
    }
}

#[test]
fn a_file_of_another_network_of_the_family_is_refused() {
    let all = layouts();
    let of = |row, layout| case_of(&all, row, layout);
    for (have, want) in [
        (of("uni_v1", "timm"), of("lunit-vits16", "timm")),
        (of("lunit-vits16", "timm"), of("uni_v1", "timm")),
        (of("lunit-vits16", "timm"), of("lunit-vits8", "timm")),
        (of("virchow", "timm"), of("virchow2", "timm")),
        (of("virchow2", "timm"), of("hoptimus0", "timm")),
        (of("uni_v1", "timm"), of("gigapath", "timm")),
        (of("plip", "hf_clip"), of("phikon", "hf_vit")),
        (of("conch_v1", "conch"), of("lunit-vits16", "timm")),
        (of("dinov2-vitb14-reg4", "dino_v2"), of("dinov2-vitb14", "dino_v2")),
        (of("phikon_v2", "hf_dino_v2"), of("hibou_l", "hf_dino_v2")),
    ] {
        for partial in [false, true] {
            let (vs, _) = model(&want.config);
            let found = load(&have.file(), &vs, partial);
            let (have, want) = (have.name(), want.name());
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
    // timm's head represents it where its bias is zero.
    let clip = case_of(&all, "clip-vitb32", "timm");
    let (vs, _) = model(&clip.config);
    let mut biased = clip.file();
    biased.insert("head.bias".into(), values("head.bias", &[24]));
    let why = load(&biased, &vs, true).expect_err("refused").to_string();
    assert!(why.contains("projection has a bias"), "{why}");
    // In a file of no such layout it is one tensor too many.
    let plain = case_of(&all, "lunit-vits8", "timm");
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
    let cases = layouts();
    let case = case_of(&cases, "midnight12k", "hf_dino_v2");
    let all: Vec<(String, Tensor)> = case.file().into_iter().collect();
    let (first, second) = all.split_at(all.len() / 2);
    let name = |i: usize| format!("model-0000{i}-of-00002.safetensors");
    let save = |i: usize, part: &[(String, Tensor)]| {
        let part = part.iter().map(|(n, t)| (n.clone(), t.shallow_clone())).collect();
        checkpoint::save_tensors(&dir.path().join(name(i)), &part, BTreeMap::new())
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
    refused("the index states otherwise");
    for outside in ["../model.safetensors", "/etc/passwd", "a/b.safetensors"] {
        let mut away = map.clone();
        away.insert("novel".into(), outside.into());
        write(&away);
        refused("which is not a file next to it");
    }
    std::fs::write(&index, "{\"weight_map\": 3}").expect("written");
    refused("no readable index");
    write(&map);
    std::fs::remove_file(dir.path().join(name(2))).expect("removed");
    assert!(matches!(read_weights(&index, None), Err(NetError::Encoder(EncoderError::Io { .. }))));
}
