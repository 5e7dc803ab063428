//! The loop on a drawn corpus: presets, resuming, guards; cutting a batch changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crops::Encoding;
use crops::{CorpusWriter, CropBox, CropMeta, Header, Label, Layout, Split};
use mitosis::{Mpp, RgbTile};
use net::dist::Launch;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use super::*;
use crate::error::TrainError;

/// Crops of 48 px with a disc; every second one is a figure with a darker disc.
fn corpus(dir: &Path, n: usize) {
    // Tests share the cores; libtorch's threads would wait for each other.
    tch::set_num_threads(1);
    let mut w = CorpusWriter::create(dir, Header::default(), Layout::default()).unwrap();
    for i in 0..n {
        let mitotic = i % 2 == 0;
        let mut tile = RgbTile::filled(48, 48, [200, 160, 190]);
        for (k, px) in tile.data.chunks_exact_mut(3).enumerate() {
            let (x, y) = ((k % 48) as f64, (k / 48) as f64);
            let v = ((k * 7 + i * 31) % 23) as u8;
            if (x - 24.0).hypot(y - 24.0) < 8.0 {
                px.copy_from_slice(&[if mitotic { 40 } else { 120 } + v, 60, 110]);
            } else {
                px[0] -= v;
            }
        }
        let meta = CropMeta {
            bbox: Some(CropBox::centred(48, 20)),
            cohort: "drawn".into(),
            source: "drawn".into(),
            split: Split::Train,
            ..CropMeta::new(
                format!("{i}.png"),
                if mitotic { Label::MitoticFigure } else { Label::Mimicker },
                format!("s{i}"),
                Mpp::PAPER,
                (48, 48),
            )
        };
        w.push(meta, Encoding::Png.encode(&tile).unwrap()).unwrap();
    }
    w.finish().unwrap();
}

fn presets() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(testkit::workspace().join("presets"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("pretrain-"))
        .collect();
    all.sort();
    all
}

fn preset(name: &str, set: &[&str]) -> PretrainPreset {
    let path = testkit::workspace().join("presets").join(format!("{name}.toml"));
    let set: Vec<String> = set.iter().map(|s| (*s).to_string()).collect();
    PretrainPreset::load(&path, &set).unwrap_or_else(|e| panic!("{e}"))
}

/// Any preset, small enough for seconds.
const SHRINK: [&str; 17] = [
    "model.size=tiny",
    "model.depth=2",
    "model.image=48",
    "model.decoder_dim=32",
    "model.decoder_depth=1",
    "model.decoder_heads=2",
    "model.projection=16",
    "views.first.blur_kernel=5",
    "views.second.blur_kernel=5",
    "train.batch=8",
    "train.micro_batch=4",
    "train.epochs=2",
    "train.warmup_epochs=1",
    "train.precision=f32",
    "train.log_every=1",
    "train.save_every=2",
    "train.lr=1e-3",
];

fn options(out: &Path, stop_after: usize) -> RunOptions {
    RunOptions {
        out: out.to_path_buf(),
        resume: true,
        device: "cpu".into(),
        init: None,
        allow_partial: false,
        stop_after,
        reporter: Default::default(),
    }
}

#[test]
fn every_preset_runs_shrunken_and_states_how_it_is_run() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("corpus");
    corpus(&data, 16);
    let all = presets();
    assert!(all.len() >= 19, "{} presets", all.len());
    for path in all {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let first = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_string();
        let command = format!("# mithras train pretrain --preset presets/{name}.toml ");
        assert!(first.starts_with(&command), "{first}");
        let p = preset(&name, &[&SHRINK[..], &["train.save_every=100"]].concat());
        let out = dir.path().join(&name);
        run(&p, &data, 1, &options(&out, 0)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let terms = fs::read_to_string(out.join("terms.csv")).unwrap();
        let rows: Vec<Vec<f64>> = terms
            .lines()
            .skip(1)
            .map(|l| l.split(',').map(|v| v.parse().unwrap()).collect())
            .collect();
        assert_eq!(rows.len(), 4, "{name}: {terms}");
        assert!(rows.iter().flatten().all(|v| v.is_finite()), "{name}: {terms}");
        // The encoder loads where classifiers are built, exactly.
        let config = EncoderConfig { image: 48, ..EncoderConfig::new("vit_tiny_patch16_224", 0) };
        let file = checkpoint::read_tensors(&out.join(ENCODER)).unwrap();
        assert_eq!(file.spec.unwrap().config, serde_json::to_value(&config).unwrap());
        assert!(file.tensors.contains_key("blocks.1.attn.qkv.weight"));
        assert!(!file.tensors.keys().any(|n| n.contains("decoder") || n.contains("target")));
        let figure = out.join("figures/epoch-0002.png").exists();
        assert_eq!(figure, terms.lines().next().unwrap().contains("mim"), "{name}");
    }
}

#[test]
fn pretraining_sees_the_same_numbers_as_every_other_loop() {
    let value = |i: usize| ((i * 2_654_435_761) >> 9) as u8;
    let tiles: Vec<RgbTile> = (0..3)
        .map(|t| RgbTile::new(48, 48, (0..3 * 48 * 48).map(|i| value(i + 7000 * t)).collect()))
        .collect();
    let bytes: Vec<u8> = tiles.iter().flat_map(|t| t.data.iter().copied()).collect();
    let here = normalise(&bytes, 48, Device::Cpu);
    let there = crate::batch::images(&tiles, Device::Cpu);
    assert!(here.equal(&there.contiguous()), "differs from the table of grey values");
}

#[test]
fn every_row_of_the_ablation_table_has_its_objective() {
    let weights = |name: &str| {
        let o = preset(name, &[]).objective.unwrap();
        (o.mim, o.image, o.token)
    };
    for (name, want) in [
        ("pretrain-mim-vit-base", (1.0, 0.0, 0.0)),
        ("pretrain-image-vit-base", (0.0, 1.0, 0.0)),
        ("pretrain-image-token-vit-base", (0.0, 0.75, 0.25)),
        ("pretrain-beta000-vit-base", (1.0, 0.0, 1.0)),
        ("pretrain-beta025-vit-base", (1.0, 0.25, 0.75)),
        ("pretrain-beta050-vit-base", (1.0, 0.5, 0.5)),
        ("pretrain-mithras-vit-base", (1.0, 0.75, 0.25)),
        ("pretrain-beta100-vit-base", (1.0, 1.0, 0.0)),
        ("pretrain-mithras-vit-tiny", (1.0, 0.75, 0.25)),
        ("pretrain-beta100-vit-tiny", (1.0, 1.0, 0.0)),
    ] {
        assert_eq!(weights(name), want, "{name}");
    }
    // The recipe.
    let main = preset("pretrain-mithras-vit-base", &[]);
    let t = &main.train;
    assert_eq!((t.batch, t.lr, t.epochs, t.warmup_epochs), (512, 3e-4, 200, 10.0));
    assert_eq!((t.betas, t.weight_decay), ([0.9, 0.95], 0.05));
    assert_eq!((main.model.decoder_depth, main.model.decoder_dim), (8, 512));
    let no_mim = preset("pretrain-image-token-vit-base", &[]).train;
    assert_eq!((no_mim.batch, no_mim.lr), (768, 4.5e-4));
}

#[test]
fn a_killed_run_resumes_to_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("corpus");
    corpus(&data, 24);
    let random = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    for (name, set) in
        [("pretrain-smoke", &["train.ema=0.9"][..]), ("pretrain-cmae-vit-base", &SHRINK[..])]
    {
        let p = preset(name, set);
        let whole = dir.path().join(format!("{name}-whole"));
        let cut = dir.path().join(format!("{name}-cut"));
        run(&p, &data, 2, &options(&whole, 0)).unwrap();
        // Killed after any step from the third on; the state is of the last even one.
        let killed = 3 + random.subsec_nanos() as usize % 3;
        run(&p, &data, 1, &options(&cut, killed)).unwrap();
        run(&p, &data, 3, &options(&cut, 0)).unwrap();
        for file in ["state.safetensors", ENCODER] {
            let read = |d: &Path| checkpoint::read_tensors(&d.join(file)).unwrap().tensors;
            let (a, b) = (read(&whole), read(&cut));
            assert_eq!(a.len(), b.len());
            for (n, t) in &a {
                assert!(t.equal(&b[n]), "{name} killed after {killed}: {file}: {n} differs");
            }
        }
        let losses = |d: &Path| -> Vec<String> {
            let text = fs::read_to_string(d.join("terms.csv")).unwrap();
            let keep = |l: &str| {
                let f: Vec<&str> = l.split(',').collect();
                [&f[..3], &f[5..]].concat().join(",")
            };
            text.lines().map(keep).collect()
        };
        assert_eq!(losses(&whole), losses(&cut), "{name}");
    }
}

#[test]
fn a_loss_that_is_not_a_number_stops_with_its_batch_kept() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("corpus");
    corpus(&data, 16);
    let p =
        preset("pretrain-smoke", &["train.lr=1e38", "train.warmup_epochs=0", "train.clip=1e38"]);
    let out = dir.path().join("run");
    let stopped = run(&p, &data, 1, &options(&out, 0));
    assert!(matches!(stopped, Err(TrainError::NotFinite { .. })), "{stopped:?}");
    let kept = checkpoint::read_tensors(&out.join("bad-batch.safetensors")).unwrap();
    assert_eq!(kept.tensors["views"].size(), [16, 3, 48, 48]);
    assert_eq!(kept.tensors["noise"].size(), [16, 9]);
    assert!(kept.metadata["step"].parse::<usize>().unwrap() < 4);
}

#[test]
fn presets_out_of_range_are_refused_with_a_reason() {
    let refuse = |name: &str, set: &str| {
        let path = testkit::workspace().join("presets").join(format!("{name}.toml"));
        PretrainPreset::load(&path, &[set.to_string()]).unwrap_err().to_string()
    };
    let smoke = |set: &str| refuse("pretrain-smoke", set);
    assert!(smoke("views.area=[0.0,1.0]").contains("views.area"));
    assert!(smoke("train.warmup=3").contains("did you mean"));
    assert!(smoke("model.image=50").contains("multiple"));
    assert!(smoke("objective.token=-1").contains("token"));
    assert!(smoke("method=supervised").contains("objective"));
    assert!(refuse("pretrain-cmae-vit-base", "method=mithras").contains("objective"));
    let p = preset("pretrain-smoke", &["train.batch=10"]);
    assert!(p.share(4).unwrap_err().to_string().contains("4 ranks"));
    assert!(p.share(1).unwrap_err().to_string().contains("micro_batch"));
}

/// 32 samples' gradients, cut into micro-batches of `micro` on this rank; ranks share them.
fn shared_gradients(
    name: &str,
    micro: usize,
    group: &Group,
) -> (BTreeMap<String, Tensor>, step::StepResult) {
    let mut set = SHRINK.to_vec();
    set.extend(["train.batch=32", "model.depth=1"]);
    let p = preset(name, &set);
    let dir = tempfile::tempdir().unwrap();
    corpus(dir.path(), 40);
    let crops = CropSet::training(dir.path(), true).unwrap();
    let loader = PairLoader::new(crops, p.views.clone(), (48, 16), 5, 32, 1).unwrap();
    tch::manual_seed(11);
    let vs = VarStore::new(Device::Cpu);
    let method = method::build(&vs, &p).unwrap();
    let each = 32 / group.world();
    let batch = loader.draw(0, group.rank() * each..(group.rank() + 1) * each).unwrap();
    let pieces = micros(&batch, 48, micro, Device::Cpu);
    let found = step::gradients(&*method, &pieces, p.train.precision, group).unwrap();
    ranks::sum_gradients(&vs, group, &[]).unwrap();
    let grads = vs.variables().into_iter().filter(|(_, t)| t.requires_grad());
    let grads = grads.map(|(n, t)| (n, t.grad())).filter(|g| g.1.defined());
    (grads.collect(), found)
}

fn same(
    what: &str,
    (a, found): &(BTreeMap<String, Tensor>, step::StepResult),
    (b, other): &(BTreeMap<String, Tensor>, step::StepResult),
) {
    assert!(a.len() > 10 && a.len() == b.len(), "{what}");
    assert!((found.total - other.total).abs() < 1e-5 * found.total, "{what}: {found:?} {other:?}");
    for (x, y) in found.terms.iter().zip(&other.terms) {
        assert!(
            x.name == y.name && (x.value - y.value).abs() < 1e-5 * x.value.abs().max(0.1),
            "{what}: {x:?} {y:?}"
        );
    }
    let largest = |t: &Tensor| t.abs().max().double_value(&[]);
    let scale = a.values().map(largest).fold(0.0, f64::max);
    assert!(scale > 1e-4, "{what}: the gradients vanish");
    for ((n, x), (m, y)) in a.iter().zip(b) {
        assert_eq!(n, m);
        let worst = largest(&(x - y));
        assert!(worst < 1e-5 * scale.max(1.0), "{what}: {n} differs by {worst:e} of {scale:e}");
    }
}

/// Without SupMAE, whose head normalises over the part of a batch that it sees.
const CUT: [&str; 4] = [
    "pretrain-mithras-vit-base",
    "pretrain-image-token-vit-base",
    "pretrain-supervised-vit-base",
    "pretrain-cmae-vit-base",
];

#[test]
fn supmae_reconstructs_alike_over_parts_and_classifies_by_the_part() {
    let one = Group::single();
    let [whole, parts] =
        [32, 8].map(|micro| shared_gradients("pretrain-supmae-vit-base", micro, &one).1);
    let term =
        |of: &step::StepResult, name: &str| of.terms.iter().find(|t| t.name == name).unwrap().value;
    let apart = |name: &str| (term(&whole, name) - term(&parts, name)).abs();
    assert!(apart("mim") < 1e-5 * term(&whole, "mim"), "{whole:?} {parts:?}");
    let own = apart("cross_entropy");
    assert!(own > 1e-5 && own < 0.5, "{whole:?} {parts:?}");
}

#[test]
fn one_batch_of_32_equals_four_of_8() {
    for name in CUT {
        let one = Group::single();
        same(name, &shared_gradients(name, 32, &one), &shared_gradients(name, 8, &one));
    }
}

#[test]
fn one_batch_of_32_equals_two_processes_of_16() {
    const PART: &str = "MITHRAS_TEST_PART";
    const ME: &str = "pretrain::tests::one_batch_of_32_equals_two_processes_of_16";
    if let Ok(path) = std::env::var(PART) {
        // A rank: leaves what it found.
        let launch = Launch::from_env().unwrap();
        let group = Group::join(&launch, tch::Device::Cpu).unwrap();
        for (i, name) in CUT.iter().enumerate() {
            let micro = if i == 0 { 8 } else { 16 };
            let (grads, found) = shared_gradients(name, micro, &group);
            let mut kept = grads;
            let values: Vec<f64> =
                found.terms.iter().map(|t| t.value).chain([found.total]).collect();
            kept.insert("found".into(), Tensor::from_slice(&values).to_kind(Kind::Double));
            let path = format!("{path}-{name}-{}", group.rank());
            checkpoint::save_tensors(Path::new(&path), &kept, Default::default()).unwrap();
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("part");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ranks: Vec<_> = (0..2)
        .map(|rank| {
            Command::new(std::env::current_exe().unwrap())
                .args([ME, "--exact"])
                .env(PART, &path)
                .env("OMP_NUM_THREADS", "1")
                .envs([("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1")])
                .envs([("RANK", rank.to_string()), ("MASTER_PORT", port.to_string())])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for rank in ranks {
        let out = rank.wait_with_output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    }
    for name in CUT {
        let one = shared_gradients(name, 32, &Group::single());
        for rank in 0..2 {
            let path = format!("{}-{name}-{rank}", path.display());
            let mut file = checkpoint::read_tensors(Path::new(&path)).unwrap().tensors;
            let values = Vec::<f64>::try_from(file.remove("found").unwrap()).unwrap();
            let names = one.1.terms.iter().map(|t| t.name);
            let total = *values.last().unwrap();
            let found = step::StepResult {
                total,
                terms: names
                    .zip(values)
                    .map(|(name, value)| step::TermValue { name, value })
                    .collect(),
            };
            same(name, &one, &(file.into_iter().collect(), found));
        }
    }
}
