//! Every row of the table states what it needs, and is held against a reference.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::golden;
use crate::vit::{Shapes, load, model};
use crate::{conv_encoders, vit_layouts};
use encoders::encoder::{NetworkConfig, NetworkShape};
use net::encoder::{self, Architecture, ENCODERS, EncoderConfig, Published};
use net::foreign::Layout;
use net::vit::{Pool, VitConfig};
use pixels::resize::Interpolation;
use serde::Deserialize;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

fn published() -> impl Iterator<Item = &'static Published> {
    ENCODERS.iter().filter_map(|e| e.published.as_ref())
}

#[test]
fn every_row_of_the_table_states_what_it_needs() {
    let mut names: Vec<&str> = ENCODERS.iter().map(|e| e.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ENCODERS.len(), "a name twice");
    for entry in ENCODERS {
        let name = entry.name;
        // As wide as its network: a convolutional one's is measured where it is compared.
        if let Architecture::Vit(config) = entry.architecture {
            config.check().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(config.width(), entry.dim, "{name}");
        } else {
            let same = |e: &&encoder::EncoderEntry| e.architecture == entry.architecture;
            let plain = ENCODERS.iter().filter(same).find(|e| e.published.is_none());
            assert_eq!(plain.map(|e| e.dim), Some(entry.dim), "{name}");
        }
        let own = EncoderConfig::new(name, 0);
        let Some(row) = &entry.published else {
            assert_eq!((own.image, own.pool), (224, Pool::Cls), "{name}");
            continue;
        };
        assert_eq!((row.name, row.dim, row.architecture), (name, entry.dim, entry.architecture));
        assert!(row.resize >= row.image && !row.layouts.is_empty(), "{name}");
        assert!(row.mean.iter().chain(&row.std).all(|v| (0.1..0.9).contains(v)), "{name}");
        assert_eq!((own.image, own.pool), (row.image, row.pool), "{name}");
        assert_eq!((own.mean, own.std), (row.mean, row.std), "{name}");
        let text = format!(r#"{{"name": "{name}", "classes": 2, "pool": "mean"}}"#);
        let given: EncoderConfig = serde_json::from_str(&text).expect("read");
        assert_eq!((given.image, given.pool), (row.image, Pool::Mean), "{name}");
        let json = serde_json::to_value(row).expect("written");
        assert_eq!(json["architecture"], serde_json::to_value(row.architecture).expect("written"));
        assert_eq!((&json["name"], &json["dim"]), (&name.into(), &row.dim.into()));
    }
}

#[test]
fn convolutional_rows_are_fed_as_their_authors_do() {
    let convolutional = published().filter(|p| !matches!(p.architecture, Architecture::Vit(_)));
    let facts: BTreeMap<&str, (&str, i64)> = convolutional
        .map(|p| {
            // All alike but for the network: 224 px, ImageNet's colours, the mean over places.
            assert_eq!(
                (p.image, p.resize, p.pool, p.mpp),
                (224, 224, Pool::Mean, None),
                "{}",
                p.name
            );
            assert_eq!(p.interpolation, Interpolation::Bicubic, "{}", p.name);
            let imagenet = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
            assert_eq!((p.mean, p.std), imagenet, "{}", p.name);
            let plain = |e: &&encoder::EncoderEntry| {
                e.published.is_none() && e.architecture == p.architecture
            };
            (p.name, (ENCODERS.iter().find(plain).expect("a row").name, p.dim))
        })
        .collect();
    let want = BTreeMap::from([
        ("ctranspath", ("swin_tiny_convstem_window7_224", 768)),
        ("chief", ("swin_tiny_convstem_window7_224", 768)),
        ("impash", ("resnet50", 2048)),
        ("bertram-v2s", ("efficientnet_v2_s", 1280)),
        ("mdfs-b7", ("efficientnet_b7", 2560)),
    ]);
    assert_eq!(facts, want);
}

/// What a row claims to read is read in a test: a new row, or a new layout of one, has a case.
#[test]
fn every_layout_of_every_published_row_has_a_case() {
    let claimed: BTreeSet<(String, String)> = published()
        .flat_map(|p| p.layouts.iter().map(|l| (p.name.to_owned(), vit_layouts::word(*l))))
        .collect();
    let of = |rows: Vec<String>, layout: String| {
        rows.into_iter().map(move |r| (r, layout.clone())).collect::<Vec<_>>()
    };
    let vit = vit_layouts::layouts().into_iter().map(|c| of(c.rows, c.layout));
    let convolutional = conv_encoders::layouts().into_iter().map(|c| of(c.rows, c.layout));
    let tested: BTreeSet<(String, String)> = vit.chain(convolutional).flatten().collect();
    let without: Vec<_> = claimed.difference(&tested).collect();
    assert!(without.is_empty(), "no case: {without:?}");
    let extra: Vec<_> = tested.difference(&claimed).collect();
    assert!(extra.is_empty(), "no row reads: {extra:?}");
}

/// A network is written into a file by the names of its tensors: those of libtorch's, and no others.
#[test]
fn a_networks_tensors_are_libtorchs() {
    let mut seen = BTreeSet::new();
    for row in ENCODERS {
        let own = EncoderConfig::new(row.name, 2);
        let network = own.network().expect(row.name);
        // One block represents all.
        let network = match network.shape {
            NetworkShape::Vit(c) => {
                NetworkConfig::vit(network.architecture, VitConfig { depth: 1, ..c })
            }
            _ => network,
        };
        let want = encoders::onnx::outline(&network);
        if !seen.insert(want.clone()) {
            continue;
        }
        let vs = match network.shape {
            NetworkShape::Vit(c) => model(&c).0,
            _ => {
                let vs = VarStore::new(Device::Cpu);
                drop(encoder::build(&vs.root(), &own).expect(row.name));
                vs
            }
        };
        let have: Shapes = vs.variables().iter().map(|(n, t)| (n.clone(), t.size())).collect();
        assert_eq!(want, have, "{}", row.name);
    }
}

#[test]
fn widths_of_swiglu_are_the_published_ones() {
    let hidden = |name: &str| match encoder::entry(name).expect("a row").architecture {
        Architecture::Vit(c) => c.hidden(),
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
        interpolation: Interpolation,
        crop: f64,
    }
    #[derive(Deserialize)]
    struct Row {
        blocks: i64,
        tensors: Shapes,
        facts: Option<Facts>,
    }
    let all = golden::<BTreeMap<String, Row>>("vit_rows");
    let transformers = published().filter(|p| matches!(p.architecture, Architecture::Vit(_)));
    let names: BTreeSet<&str> = transformers.map(|p| p.name).collect();
    assert_eq!(all.keys().map(String::as_str).collect::<BTreeSet<_>>(), names);
    let mut alike: Vec<(VitConfig, Shapes)> = vec![];
    for (name, want) in all {
        let row = encoder::published(&name).unwrap_or_else(|| panic!("{name} is not a row"));
        let Architecture::Vit(config) = row.architecture else { panic!("{name}: no ViT") };
        assert_eq!(config.depth, want.blocks, "{name}");
        if let Some(facts) = want.facts {
            assert_eq!(row.image, facts.image, "{name}");
            assert_eq!((row.mean, row.std), (facts.mean, facts.std), "{name}");
            assert_eq!(row.interpolation, facts.interpolation, "{name}");
            assert_eq!(row.resize, (row.image as f64 / facts.crop) as i64, "{name}");
        }
        // One block of the full width represents all, and one row for those that are alike.
        if alike.iter().any(|(c, shapes)| *c == config && *shapes == want.tensors) {
            continue;
        }
        let (vs, _) = model(&VitConfig { depth: 1, ..config });
        if row.layouts == [Layout::Conch] {
            // Its own names: a file of these shapes is taken whole.
            let zeros = |s: &Vec<i64>| Tensor::zeros(s.as_slice(), (Kind::Float, Device::Cpu));
            let file = want.tensors.iter().map(|(n, s)| (n.clone(), zeros(s))).collect();
            let found = load(&file, &vs, false).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(found.random.is_empty() && found.report.is_exact(), "{name}: {}", found.report);
            continue;
        }
        let have: Shapes = vs.variables().iter().map(|(n, t)| (n.clone(), t.size())).collect();
        // timm's projection is its head, with a bias of zeros.
        let renamed = |n: &String| n.replace("head.weight", "projection.weight");
        let timm = want.tensors.iter().filter(|(n, _)| *n != "head.bias");
        let timm: Shapes = timm.map(|(n, s)| (renamed(n), s.clone())).collect();
        assert_eq!(have, timm, "{name}");
        alike.push((config, want.tensors));
    }
}
