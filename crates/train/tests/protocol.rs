//! The protocols on drawn images: folds, resuming, probing, the test part, guards.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{drawn, options};
use image::{Rgb, RgbImage};
use net::checkpoint;
use net::encoder::{self, EncoderConfig};
use net::onnx::{self, ExportOptions};
use regions::task::{Task, TestSet, TrainingSet};
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};
use train::TrainError;
use train::preset::Preset as _;
use train::protocol::{self, About, CropsPreset, Part, ProbePreset, fold_dir, read_task};
use train::run::{MODEL, RunOptions};

/// Folders of two classes have to name the positive one; tasks of their own state theirs.
fn positive(set: &[&str]) -> &'static [&'static str] {
    if set.iter().any(|s| s.starts_with("task=")) { &[] } else { &["positive=\"marked\""] }
}

pub fn preset(name: &str, set: &[&str]) -> CropsPreset {
    let set: Vec<String> = [
        "task=\"folder\"",
        "model.name=\"vit_tiny_patch16_224\"",
        "model.classes=2",
        "model.image=32",
        "init=\"scratch\"",
        "data.crop=32",
        "train.epochs=2",
        "train.warmup_epochs=1.0",
        "train.batch=6",
        "train.precision=\"f32\"",
        "symmetries=4",
    ]
    .iter()
    .chain(positive(set))
    .chain(set)
    .map(|s| (*s).to_string())
    .collect();
    CropsPreset::load(&testkit::workspace().join("presets").join(name), &set).unwrap()
}

pub const VIT: &str = "finetune-ami-br-vit-tiny.toml";

#[test]
fn a_killed_fold_continues_to_the_same_bytes_and_is_scored() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data);
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let p = preset(VIT, &["balance=1.0"]);
    let (whole, cut) = (dir.path().join("whole"), dir.path().join("cut"));
    for k in 0..3 {
        protocol::finetune(&p, &set, k, &options(whole.clone(), false, 0)).unwrap();
    }
    // Killed after step 5 of 8; the state was written after step 4.
    protocol::finetune(&p, &set, 0, &options(cut.clone(), false, 5)).unwrap();
    protocol::finetune(&p, &set, 0, &options(cut.clone(), true, 0)).unwrap();
    for file in [MODEL, "predictions.csv"] {
        let read = |run: &Path| fs::read(fold_dir(run, 0).join(file)).unwrap();
        assert!(read(&whole) == read(&cut), "{file} differs");
    }
    let text = fs::read_to_string(fold_dir(&whole, 1).join("predictions.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap(), "file,source,domain,fold,truth,class,p_marked,p_plain");
    assert_eq!(lines.clone().count(), 12);
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let sum: f64 = cells[6..].iter().map(|c| c.parse::<f64>().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{line}");
        assert_eq!(cells[3], "1");
    }

    let test = TestSet::open(Task::Folder, &data).unwrap();
    let lists = protocol::test(&whole, &test, "cpu").unwrap();
    assert_eq!(lists.iter().map(Vec::len).collect::<Vec<_>>(), [6, 6, 6, 6]);
    let mean: f64 = lists[..3].iter().map(|l| l[2].probabilities[0]).sum::<f64>() / 3.0;
    assert!((lists[3][2].probabilities[0] - mean).abs() < 1e-12);
    assert_eq!(lists[3][0].fold, "ensemble");
    let unfinished = protocol::test(&cut, &test, "cpu").unwrap_err().to_string();
    assert!(unfinished.contains("not trained yet"), "{unfinished}");

    let other = preset(VIT, &["train.warmup_epochs=0.0"]);
    let mixed = protocol::finetune(&other, &set, 1, &options(cut, true, 0)).unwrap_err();
    assert!(mixed.to_string().contains("another preset"), "{mixed}");
}

#[test]
fn a_file_of_folds_takes_the_place_of_the_preset_s() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data);
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let p = preset(VIT, &["train.epochs=1", "data.folds=2", "data.split_seed=9"]);
    let given = dir.path().join("given");
    protocol::finetune(&p, &set, 0, &options(given.clone(), false, 1)).unwrap();
    let folds = given.join("folds.json");
    let file = dir.path().join("preset.toml");
    fs::write(&file, p.to_toml()).unwrap();
    let named = ["data.folds=3".to_owned(), "data.folds_file=\"none.json\"".to_owned()];
    let p: CropsPreset = protocol::load(&file, &named, Some(&folds)).unwrap();
    assert_eq!(protocol::fold_count(&p.data).unwrap(), 2);
    let out = dir.path().join("run");
    protocol::finetune(&p, &set, 1, &options(out.clone(), false, 1)).unwrap();
    assert_eq!(fs::read(&folds).unwrap(), fs::read(out.join("folds.json")).unwrap());
    let nowhere: CropsPreset = protocol::load(&file, &[], Some(Path::new("none.json"))).unwrap();
    let refused = protocol::fold_count(&nowhere.data).unwrap_err().to_string();
    assert!(refused.contains("none.json"), "{refused}");
}

#[test]
fn morphologies_are_also_classified_as_typical_or_atypical() {
    let dir = tempfile::tempdir().unwrap();
    testkit::ami::drawn(dir.path());
    let set = TrainingSet::open(Task::AmiMorph, dir.path()).unwrap();
    let p = preset(VIT, &["task=\"ami-morph\"", "model.classes=8", "coarse=1.0"]);
    let out = dir.path().join("run");
    for k in 0..3 {
        protocol::finetune(&p, &set, k, &options(out.clone(), false, 0)).unwrap();
    }
    let rows = |name: &str| -> Vec<Vec<String>> {
        let text = fs::read_to_string(fold_dir(&out, 0).join(name)).unwrap();
        text.lines().skip(1).map(|l| l.split(',').map(String::from).collect()).collect()
    };
    let (fine, coarse) = (rows("predictions.csv"), rows("predictions-ami-br.csv"));
    assert_eq!((fine.len(), coarse.len()), (16, 16));
    for (f, c) in fine.iter().zip(&coarse) {
        assert_eq!(f[0], c[0]);
        assert_eq!(c[4] == "atypical", f[0].starts_with("Atypical/"), "{c:?}");
        let sum: f64 = f[10..].iter().map(|p| p.parse::<f64>().unwrap()).sum();
        assert!((sum - c[7].parse::<f64>().unwrap()).abs() < 1e-5, "{f:?} {c:?}");
    }
    let test = TestSet::open(Task::AmiMorph, dir.path()).unwrap();
    let lists = protocol::test(&out, &test, "cpu").unwrap();
    protocol::write_predictions(dir.path(), "ensemble", &test, &lists[3]).unwrap();
    for name in protocol::tables(Task::AmiMorph, "ensemble") {
        let text = fs::read_to_string(dir.path().join(name).with_extension("csv")).unwrap();
        assert_eq!(text.lines().count(), 9);
    }
    // The third expert's word alone weighs on the sum: without it another network comes out.
    let plain = preset(VIT, &["task=\"ami-morph\"", "model.classes=8"]);
    let other = dir.path().join("plain");
    protocol::finetune(&plain, &set, 0, &options(other.clone(), false, 0)).unwrap();
    let model = |run: &Path| fs::read(fold_dir(run, 0).join(MODEL)).unwrap();
    assert!(model(&other) != model(&out));
    let file = testkit::workspace().join("presets").join(VIT);
    let refused = CropsPreset::load(&file, &["coarse=1.0".into()]).unwrap_err().to_string();
    assert!(refused.contains("no coarser one; leave the key out"), "{refused}");
    CropsPreset::load(&file, &[]).unwrap();
    let set = |more: &[&str]| {
        let resnet = ["init=\"checkpoint\"", "model.name=\"resnet50\"", "model.drop_path=0.0"];
        let all = resnet.iter().chain(more).map(|s| (*s).to_owned()).collect::<Vec<_>>();
        CropsPreset::load(&file, &all).map(drop).map_err(|e| e.to_string())
    };
    let adapters = ["lora.rank=4", "lora.alpha=8.0", "lora.targets=[\"qkv\"]"];
    let refused = set(&adapters).unwrap_err();
    assert!(refused.contains("has no attention to adapt; leave the table out"), "{refused}");
    assert_eq!(set(&[]), Ok(()));
}

/// Models of a run on morphologies.
fn morphologies(dir: &Path, out: &str, parts: &[Part], keys: &[&str]) -> PathBuf {
    let set = TrainingSet::open(Task::AmiMorph, dir).unwrap();
    let task = ["task=\"ami-morph\"", "model.classes=8", "coarse=1.0"];
    let (p, out) = (preset(VIT, &[&task, keys].concat()), dir.join(out));
    for &part in parts {
        protocol::finetune(&p, &set, part, &options(out.clone(), false, 0)).unwrap();
    }
    out
}

const FOLDS: [Part; 3] = [Part::Fold(0), Part::Fold(1), Part::Fold(2)];

fn about(run: &Path) -> serde_json::Value {
    let all: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap();
    all["about"].clone()
}

#[test]
fn a_model_of_all_items_is_next_to_the_folds() {
    let dir = tempfile::tempdir().unwrap();
    testkit::ami::drawn(dir.path());
    let keys = ["train.keep=\"metric\"", "train.epochs=1"];
    let out = morphologies(dir.path(), "run", &[&FOLDS[..], &[Part::Final]].concat(), &keys);
    let run = about(&Part::Final.dir(&out));
    let set = TrainingSet::open(Task::AmiMorph, dir.path()).unwrap();
    assert_eq!(run["train_items"], set.items().len());
    assert_eq!(run["validation_items"], 0);
    assert!(!Part::Final.dir(&out).join("predictions.csv").exists());

    let test = TestSet::open(Task::AmiMorph, dir.path()).unwrap();
    let rows = protocol::test_final(&out, &test, "cpu").unwrap().unwrap();
    assert!(rows.len() == test.items().len() && rows.iter().all(|r| r.fold == "none"));
    // It is neither one of the folds' models nor their mean.
    for list in protocol::test(&out, &test, "cpu").unwrap() {
        assert!(list.iter().zip(&rows).any(|(a, b)| a.probabilities != b.probabilities));
    }
    // The mean needs every fold; without any fold no model remains.
    fs::remove_file(fold_dir(&out, 1).join(MODEL)).unwrap();
    assert!(protocol::test(&out, &test, "cpu").is_err());
    for k in [0, 2] {
        fs::remove_file(fold_dir(&out, k).join(MODEL)).unwrap();
    }
    assert!(protocol::test(&out, &test, "cpu").unwrap().is_empty());
    fs::remove_file(Part::Final.dir(&out).join(MODEL)).unwrap();
    assert!(protocol::test_final(&out, &test, "cpu").unwrap().is_none());
    assert!(protocol::test(&out, &test, "cpu").is_err());
}

#[test]
fn targets_lean_on_what_other_models_predict_for_held_out_items() {
    let dir = tempfile::tempdir().unwrap();
    testkit::ami::drawn(dir.path());
    let short = ["train.epochs=1"];
    let out = morphologies(dir.path(), "teacher", &FOLDS, &short);
    // The table of all folds, as the verb writes it.
    let text = |k| fs::read_to_string(fold_dir(&out, k).join("predictions.csv")).unwrap();
    let body = |k| text(k).split_once('\n').unwrap().1.to_owned();
    let whole = text(0) + &body(1) + &body(2);
    let table = dir.path().join("teacher.csv");
    fs::write(&table, &whole).unwrap();
    let from = |share: f64| {
        [format!("teacher.predictions=[\"{}\"]", table.display()), format!("teacher.share={share}")]
    };
    let taught = |name: &str, keys: [String; 2]| {
        let keys = [short[0], &keys[0], &keys[1]];
        morphologies(dir.path(), name, &FOLDS[..1], &keys)
    };
    let model = |run: &Path| fs::read(fold_dir(run, 0).join(MODEL)).unwrap();
    let (none, half) = (taught("none", from(0.0)), taught("half", from(0.5)));
    let weights =
        |run: &Path| checkpoint::read_tensors(&fold_dir(run, 0).join(MODEL)).unwrap().tensors;
    let (plain, same, other) = (weights(&out), weights(&none), weights(&half));
    type Map = std::collections::BTreeMap<String, Tensor>;
    let equal = |a: &Map, b: &Map| a.iter().all(|(n, t)| t.equal(&b[n]));
    assert!(equal(&plain, &same), "a teacher without a share changes nothing");
    assert!(!equal(&plain, &other) && model(&half) != model(&out));
    assert!(about(&fold_dir(&half, 0))["teacher"].as_str().unwrap().contains("teacher.csv"));

    let set = TrainingSet::open(Task::AmiMorph, dir.path()).unwrap();
    // The same path with other contents is another teacher.
    let half_keys = from(0.5);
    let half_preset = preset(
        VIT,
        &[
            "task=\"ami-morph\"",
            "model.classes=8",
            "coarse=1.0",
            short[0],
            &half_keys[0],
            &half_keys[1],
        ],
    );
    fs::write(&table, whole.clone() + "\n").unwrap();
    let resumed = options(half.clone(), true, 0);
    let message = protocol::finetune(&half_preset, &set, 0, &resumed).unwrap_err().to_string();
    assert!(message.contains("run.json") && message.contains("other tables"), "{message}");
    let refused = |text: String, why: &str| {
        fs::write(&table, text).unwrap();
        let keys = from(0.5);
        let keys = ["task=\"ami-morph\"", "model.classes=8", &keys[0], &keys[1]];
        let out = options(dir.path().join("refused"), false, 0);
        let message =
            protocol::finetune(&preset(VIT, &keys), &set, 0, &out).unwrap_err().to_string();
        assert!(message.contains("teacher.csv") && message.contains(why), "{message}");
        assert!(!fold_dir(&dir.path().join("refused"), 0).join("run.json").exists());
    };
    refused(text(0), "does not rate");
    refused(whole.clone() + &body(1), "twice");
    refused(whole.replace("p_ring_shape", "p_ring"), "p_ring_shape");
    refused(whole.replacen(",0.", ",7.", 1), "sum to one");
}

#[test]
fn subtypes_start_from_the_classifier_of_a_package() {
    let dir = tempfile::tempdir().unwrap();
    testkit::ami::drawn(dir.path());
    let set = TrainingSet::open(Task::AmiMorph, dir.path()).unwrap();
    let name = "model.name=\"efficientnet_lite0\"";
    let rate = ["train.base_lr=1e-9", "train.min_lr=0.0"];
    let still = [&rate[..], &["train.ema=0.0", "train.keep=\"last\"", "train.epochs=1"]].concat();
    let keys = ["task=\"ami-morph\"", "model.classes=8", name, "init=\"checkpoint\""];
    let p = preset(VIT, &[&keys[..], &still[..]].concat());
    let file = |seed| {
        tch::manual_seed(seed);
        let vs = VarStore::new(Device::Cpu);
        let net =
            encoder::build(&vs.root(), &EncoderConfig { classes: 2, ..p.model.clone() }).unwrap();
        let path = dir.path().join(format!("{seed}.onnx"));
        onnx::write(&path, &onnx::classifier(&*net, &vs, 32, &ExportOptions::default()).unwrap())
            .unwrap();
        (vs, path)
    };
    let start = |path: &Path, out: &str| {
        let out = dir.path().join(out);
        let own = RunOptions { init: Some(path.into()), ..options(out.clone(), false, 0) };
        protocol::finetune(&p, &set, 0, &own).map(|()| fold_dir(&out, 0))
    };
    let (vs, path) = file(5);
    let run = start(&path, "five").unwrap();
    let init = about(&run)["init"].as_str().unwrap().to_owned();
    assert!(init.contains("the exported network") && init.contains("5.onnx"), "{init}");
    // The card in its folder lists what the package was trained on.
    assert!(protocol::read_fold_notes(&run).unwrap().is_empty());
    let listed = "[training]\nslides = [\"MIDOG21_*\"]\nslide_digests = []\n";
    fs::write(dir.path().join("card.toml"), listed).unwrap();
    let noted = start(&path, "listed").unwrap();
    let notes = protocol::read_fold_notes(&noted).unwrap().join("\n");
    assert!(notes.contains("were trained on slides that fold `0` holds out"), "{notes}");
    let list = checkpoint::read_trained_on(&noted.join(MODEL)).unwrap().unwrap();
    assert!(list.slides.contains("MIDOG21_*"), "{list:?}");
    fs::remove_file(dir.path().join("card.toml")).unwrap();
    // A kernel is scaled per output channel by the norm that is folded into it: their directions stay.
    let now = checkpoint::read_tensors(&run.join(MODEL)).unwrap().tensors;
    let of = |name: &str, t: &Tensor| {
        let flat = t.to_kind(Kind::Double).reshape([t.size()[0], -1]);
        let norm = flat.norm_scalaropt_dim(2, [1i64].as_slice(), true);
        assert!(norm.min().double_value(&[]) > 0.0, "{name}");
        flat / norm
    };
    let name = "conv_stem.weight";
    let cosine = (of(name, &now[name]) * of(name, &vs.variables()[name])).sum_dim_intlist(
        [1i64].as_slice(),
        false,
        Kind::Double,
    );
    assert!(cosine.min().double_value(&[]) > 0.99, "{cosine:?}");
    // No network of the preset.
    let no = dir.path().join("no.onnx");
    fs::write(&no, b"no network").unwrap();
    let message = start(&no, "no").unwrap_err().to_string();
    assert!(message.contains("no.onnx"), "{message}");
}

#[test]
fn a_probe_learns_and_its_folded_head_is_the_same_classifier() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data);
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let from = testkit::workspace().join("presets/probe-ami-br-efficientnet-b0.toml");
    let keys = [
        "task=\"folder\"",
        "positive=\"marked\"",
        "init=\"scratch\"",
        "model.name=\"vit_tiny_patch16_224\"",
        "model.image=32",
        "data.crop=32",
        "train.batch=8",
        // A rate that carries the head away from its start in 50 steps.
        "train.base_lr=4000.0",
    ]
    .map(String::from);
    let p = ProbePreset::load(&from, &keys).unwrap();
    let out = dir.path().join("probe");
    protocol::probe(&p, &set, Some(0), None, &options(out.clone(), false, 0)).unwrap();
    let again = protocol::probe(&p, &set, None, None, &options(out.clone(), false, 0)).unwrap_err();
    assert!(again.to_string().contains("resume it"), "{again}");
    let kept = fs::read(fold_dir(&out, 0).join("predictions.csv")).unwrap();
    protocol::probe(&p, &set, None, None, &options(out.clone(), true, 0)).unwrap();
    assert_eq!(kept, fs::read(fold_dir(&out, 0).join("predictions.csv")).unwrap());
    let loss = fs::read_to_string(fold_dir(&out, 2).join("metrics.csv")).unwrap();
    let losses: Vec<f64> =
        loss.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!(losses[49] < 0.8 * losses[0], "{losses:?}");

    // Encoder with the folded head, as the test part and the export see it, on a training image.
    let test = TestSet::open(Task::Folder, &data).unwrap();
    let lists = protocol::test(&out, &test, "cpu").unwrap();
    let right = lists[3].iter().filter(|p| p.class() == p.truth).count();
    assert!(right >= 5, "{right} of 6");
}

#[test]
fn what_cannot_be_trained_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data);
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let run = |keys: &[&str]| {
        let p = preset(VIT, keys);
        let out = tempfile::tempdir_in(dir.path()).unwrap();
        protocol::finetune(&p, &set, 0, &options(out.path().into(), false, 0)).unwrap_err()
    };
    let nan = run(&["train.base_lr=1e38", "train.warmup_epochs=0.0", "train.clip=1e38"]);
    assert!(matches!(nan, TrainError::NotFinite { .. }), "{nan}");
    let classes = run(&["model.classes=3"]).to_string();
    assert!(classes.contains("has 2 classes"), "{classes}");
    let init = run(&["init=\"checkpoint\""]).to_string();
    assert!(init.contains("starts from a file of weights"), "{init}");
    let file = testkit::workspace().join("presets").join(VIT);
    for (key, word) in [("balance=2.0", "balance"), ("symmetries=3", "symmetries")] {
        let bad = CropsPreset::load(&file, &[key.to_string()]).unwrap_err().to_string();
        assert!(bad.contains(word), "{bad}");
    }
}

#[test]
fn presets_with_a_task_parse_and_state_how_they_are_run() {
    let mut seen = 0;
    for entry in fs::read_dir(testkit::workspace().join("presets")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let verb = match name.split_once('-').map(|(v, _)| v) {
            Some("finetune") if read_task(&path).unwrap().is_some() => {
                CropsPreset::load(&path, &[]).unwrap_or_else(|e| panic!("{e}"));
                "finetune"
            }
            Some("probe") => {
                ProbePreset::load(&path, &[]).unwrap_or_else(|e| panic!("{e}"));
                "probe"
            }
            _ => continue,
        };
        let first = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_string();
        assert!(first.starts_with(&format!("# mithras train {verb} --preset presets/{name} ")));
        seen += 1;
    }
    assert!(seen >= 8, "{seen} presets");
}

#[test]
fn encoders_are_timed() {
    use train::bench::{Bench, Measured, encoder, known};
    let bench = Bench {
        image: Some(70),
        batch: 2,
        runs: 3,
        device: "cpu".into(),
        precision: net::device::Precision::F32,
        candidates: [42, 2305],
        measured: Default::default(),
    };
    let name = *known().iter().find(|n| **n == "vit_tiny_patch16_224").unwrap();
    let timed = encoder(name, &bench).unwrap();
    assert_eq!(timed.image, 64, "the nearest multiple of the patch");
    assert!(timed.seconds > 0.0 && timed.seconds < 5.0, "{timed:?}");
    // Patch embedding, twelve blocks of projections, two products of attention, and the fully
    // connected pair: 17 tokens of 192.
    let (n, d) = (17u64, 192u64);
    let by_hand = 16 * 768 * d + 12 * (12 * n * d * d + 2 * n * n * d);
    assert_eq!(timed.macs, Some(by_hand));
    // A side that is asked for holds for published encoders, too; their own is the default.
    let lunit = *known().iter().find(|n| **n == "lunit-vits16").unwrap();
    assert_eq!(encoder(lunit, &bench).unwrap().image, 64);
    let own = Bench { image: None, batch: 1, runs: 1, ..bench.clone() };
    assert_eq!(encoder(lunit, &own).unwrap().image, 224);
    assert!(encoder(name, &Bench { device: "abacus".into(), ..bench.clone() }).is_err());
    // What a run has measured comes before the time of so many crops.
    let of = |count: usize, seconds: f64| [(name.to_owned(), Measured { seconds, count })].into();
    let runs = Bench { measured: [of(3, 7.0), of(2, 99.0)], batch: 1, runs: 1, ..bench };
    let found = train::bench::run(&[name.to_owned()], &runs, &mut base::progress::Silent).unwrap();
    let csv = String::from_utf8(found.csv()).unwrap();
    let row = csv.lines().find(|l| l.starts_with(name)).unwrap();
    assert!(row.contains(",7,3,99,2,"), "{csv}");
    assert!(found.to_string().contains("7.000*"), "{found}");
}

#[test]
fn fine_tuning_and_probing_report_what_identifies_a_class_without_seeing_it() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    // The colour of the border gives the class, and the middle is the same.
    for (class, green) in [("plain", 150_u8), ("marked", 175)] {
        for s in 0..12_u32 {
            let folder = data.join("train").join(class).join(format!("train{s}"));
            fs::create_dir_all(&folder).unwrap();
            for k in 0..3_u32 {
                let image = RgbImage::from_fn(40, 40, |x, y| {
                    let v = ((x * 7 + y * 13 + s * 31 + k * 3 + u32::from(green)) % 40) as u8;
                    let middle = f64::from(x).max(f64::from(y)) < 30.0 && x.min(y) > 10;
                    Rgb(if middle { [60 + v, 30, 90] } else { [200 + v, green + v, 190] })
                });
                image.save(folder.join(format!("{k}.png"))).unwrap();
            }
        }
    }
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let tuned = dir.path().join("tuned");
    protocol::finetune(&preset(VIT, &[]), &set, 0, &options(tuned.clone(), false, 1)).unwrap();
    let text = fs::read_to_string(fold_dir(&tuned, 0).join("run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&text).unwrap();
    // Of two classes one is judged: they are each other's rest.
    let warned = |warnings: &[String]| {
        assert!(
            warnings.iter().any(|w| w.contains("border green (context) separates `plain`")),
            "{warnings:?}"
        );
        assert!(!warnings.iter().any(|w| w.contains("`marked`")), "{warnings:?}");
    };
    let list = run["about"]["shortcuts"].as_array().unwrap_or_else(|| panic!("{run}"));
    warned(&list.iter().map(|w| w.as_str().unwrap().to_owned()).collect::<Vec<_>>());

    let from = testkit::workspace().join("presets/probe-ami-br-efficientnet-b0.toml");
    let keys = [
        "task=\"folder\"",
        "positive=\"marked\"",
        "init=\"scratch\"",
        "model.name=\"vit_tiny_patch16_224\"",
        "model.image=32",
        "data.crop=32",
        "train.batch=8",
    ];
    let probe = ProbePreset::load(&from, &keys.map(String::from)).unwrap();
    let out = dir.path().join("probed");
    let done = protocol::probe(&probe, &set, Some(0), None, &options(out.clone(), false, 0));
    warned(&done.unwrap()[0].shortcuts);
    let text = fs::read_to_string(out.join("shortcuts.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["schema"], "mithras.shortcuts/1");
    assert!(!file["warnings"].as_array().unwrap().is_empty());
}

#[test]
fn the_folds_of_a_run_begin_with_one_file_of_weights_or_each_with_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data);
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let p = preset(VIT, &["init=\"checkpoint\""]);
    // Other weights for every file, one of which lists what it was trained on.
    let file = |name: &str, seed: i64, slides: &[&str]| {
        tch::manual_seed(seed);
        let vs = VarStore::new(Device::Cpu);
        encoder::build(&vs.root(), &p.model).unwrap();
        let mut spec = checkpoint::Spec::new("drawn", &p.model, 32).unwrap();
        let slides = slides.iter().map(|s| (*s).to_owned()).collect();
        spec.trained_on = Some(checkpoint::TrainedOn { slides, ..Default::default() });
        let path = dir.path().join(name);
        checkpoint::save(&path, &vs, &spec).unwrap();
        path
    };
    let (first, other) = (file("w0", 1, &["elsewhere"]), file("w1", 2, &[]));
    let start = |out: &str, init: &Path, k: usize, again: RunOptions| {
        let own = RunOptions { init: Some(init.into()), out: dir.path().join(out), ..again };
        protocol::finetune(&p, &set, k, &own).map_err(|e| e.to_string())
    };
    let fresh = |stop| options(dir.path().into(), false, stop);
    // Ends after the state of the first epoch.
    start("run", &first, 0, fresh(5)).unwrap();
    let sha256 = base::digest::sha256_file(&first).unwrap().1;
    assert_eq!(About::read(&dir.path().join("run")).unwrap().init_sha256, Some(sha256.clone()));
    let run = fold_dir(&dir.path().join("run"), 0);
    assert!(fs::read_to_string(run.join("run.json")).unwrap().contains(&sha256));
    let mixed = start("run", &other, 1, fresh(1)).unwrap_err();
    assert!(mixed.contains("other weights"), "{mixed}");
    // A run of an older version does not record its file, and a state does.
    let protocol = dir.path().join("run/protocol.json");
    let mut older: serde_json::Value = base::json::read(&protocol).unwrap();
    older.as_object_mut().unwrap().remove("init_sha256").unwrap();
    fs::write(&protocol, older.to_string()).unwrap();
    let resumed = || options(dir.path().into(), true, 1);
    let mixed = start("run", &other, 0, resumed()).unwrap_err();
    assert!(mixed.contains("began with other weights"), "{mixed}");
    start("run", &first, 1, fresh(1)).unwrap();
    // What the weights were trained on stays as the run began, whatever the file lists now.
    let state = run.join("state.safetensors");
    let saved = checkpoint::read_tensors(&state).unwrap();
    let mut spec = saved.spec.unwrap();
    spec.notes.as_object_mut().unwrap().remove("init_sha256").unwrap();
    checkpoint::save_described(&state, &saved.tensors, &spec).unwrap();
    start("run", &other, 0, options(dir.path().into(), true, 0)).unwrap();
    let list = checkpoint::read_trained_on(&run.join(MODEL)).unwrap().unwrap();
    assert!(list.slides.contains("elsewhere"), "{list:?}");

    // A file for each fold: the path names it.
    let by_fold = dir.path().join("w{fold}");
    for k in [0, 1] {
        start("each", &by_fold, k, fresh(1)).unwrap();
    }
    let began = |k: usize| -> serde_json::Value {
        base::json::read(&fold_dir(&dir.path().join("each"), k).join("run.json")).unwrap()
    };
    assert_eq!(began(0)["init_sha256"], sha256.as_str());
    assert_ne!(began(1)["init_sha256"], sha256.as_str());
    let lacking = start("each", &by_fold, 2, fresh(1)).unwrap_err();
    assert!(lacking.contains("w2"), "{lacking}");
    let mixed = start("each", &first, 2, fresh(1)).unwrap_err();
    assert!(mixed.contains("other weights"), "{mixed}");
}
