//! The loops on a drawn data folder: resuming, guards, presets.

use std::fs;
use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use net::checkpoint;
use net::encoder::{self, EncoderConfig};
use regions::folds::{FoldManifest, Scheme};
use regions::import::{Options, icpr};
use tch::{Device, nn::VarStore};
use train::TrainError;
use train::data::Source;
use train::preset::{FinetunePreset, Mining, Preset as _, SegmentPreset};
use train::run::{MODEL, RunOptions};
use train::{finetune, segment};

/// Frames of three slides with a dark disc at (100, 120), in the layout of the real data.
pub fn drawn_data(dir: &Path) {
    let icpr = dir.join("icpr2012");
    for folder in ["frames", "partial", "negatives"] {
        fs::create_dir_all(icpr.join(folder)).unwrap();
    }
    let mut marks = String::from("file,cx,cy,xmin,ymin,xmax,ymax,pixels\n");
    let mut negatives = String::from("patch,frame,scanner,x,y,area_px,mean_gray,icpr_split\n");
    for slide in 0..3_u32 {
        let image = RgbImage::from_fn(300, 280, |x, y| {
            let near = |cx: f64, cy: f64| (f64::from(x) - cx).hypot(f64::from(y) - cy) < 12.0;
            let v = ((x * 7 + y * 13 + slide * 31) % 40) as u8;
            if near(100.0, 120.0) || near(200.0, 60.0) {
                Rgb([60 + v, 30, 90])
            } else {
                Rgb([200 + v, 150 + v, 190])
            }
        });
        let name = format!("A0{slide}_00");
        image.save(icpr.join("frames").join(format!("{name}.jpg"))).unwrap();
        marks.push_str(&format!("{name}.jpg,100,120,88,108,112,132,450\n"));
        let patch = format!("H0{slide}_00_1.png");
        RgbImage::from_pixel(80, 80, Rgb([210, 160, 200]))
            .save(icpr.join("negatives").join(&patch))
            .unwrap();
        negatives.push_str(&format!("{patch},H0{slide}_00,Hamamatsu,40,40,300,50,train\n"));
    }
    fs::write(icpr.join("mitoses.csv"), marks).unwrap();
    let header = "file,cx,cy,xmin,ymin,xmax,ymax,pixels,status\n";
    fs::write(icpr.join("partial_mitoses.csv"), header).unwrap();
    fs::write(icpr.join("negatives.csv"), negatives).unwrap();
}

fn preset_file(name: &str) -> PathBuf {
    testkit::workspace().join("presets").join(name)
}

/// The drawn frames as a dataset with one fold per slide, made once per folder.
pub fn source(data: &Path) -> Source {
    let (set, file) = (data.join("set"), data.join("folds.json"));
    if !set.exists() {
        let named = Options { name: "frames".into(), ..Options::default() };
        let made = icpr(&data.join("icpr2012"), &named).unwrap().dataset.write(&set).unwrap();
        FoldManifest::of_regions(&made, Scheme::LeaveOneOut, 0).unwrap().write(&file).unwrap();
    }
    Source::open(&set, &file).unwrap()
}

fn options(out: PathBuf, stop_after: usize) -> RunOptions {
    RunOptions {
        out,
        resume: stop_after != 1_000,
        device: "cpu".into(),
        init: None,
        allow_partial: false,
        stop_after,
        reporter: Default::default(),
    }
}

/// Weights of the network of finetune-smoke as drawn.
fn drawn_weights(path: &Path) {
    let vs = VarStore::new(Device::Cpu);
    let config = EncoderConfig { image: 32, ..EncoderConfig::new("vit_tiny_patch16_224", 0) };
    encoder::build(&vs.root(), &config).unwrap();
    let all = vs.variables().into_iter().collect();
    checkpoint::save_tensors(path, &all, Default::default()).unwrap();
}

fn words(set: &[&str]) -> Vec<String> {
    set.iter().map(|s| (*s).to_string()).collect()
}

pub fn segment_preset(set: &[&str]) -> SegmentPreset {
    SegmentPreset::load(&preset_file("segment-smoke.toml"), &words(set)).unwrap()
}

pub fn finetune_preset(set: &[&str]) -> FinetunePreset {
    FinetunePreset::load(&preset_file("finetune-smoke.toml"), &words(set)).unwrap()
}

#[test]
fn a_killed_run_resumes_to_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn_data(&data);
    let fold = "A01";
    type Run<'a> = Box<dyn Fn(&RunOptions) -> train::Result<()> + 'a>;
    let seg = segment_preset(&[]);
    let start = dir.path().join("start.safetensors");
    drawn_weights(&start);
    let lora = ["model.drop_path=0.1", "init=\"checkpoint\"", "lora.rank=2", "lora.alpha=4.0"];
    let lora = finetune_preset(&[&lora[..], &["lora.targets=[\"qkv\", \"mlp\"]"]].concat());
    let from = |o: &RunOptions| RunOptions { init: Some(start.clone()), ..o.clone() };
    // Rounds before steps 1 and 3, either side of the state that the run resumes from.
    let (first, every, scored, keep) = (1, 2, 60, 5);
    let (share, doubtful, doubtful_labelled) = (0.5, 0.4, 0.4);
    let mining = Mining { first, every, scored, keep, share, doubtful, doubtful_labelled };
    let hard = FinetunePreset { mining: Some(mining), ..finetune_preset(&[]) };
    let runs: [(&str, Run<'_>); 3] = [
        ("segment", Box::new(|o| segment::run(&seg, &source(&data), fold, o))),
        ("lora", Box::new(|o| finetune::run(&lora, &source(&data), fold, &[], &from(o)))),
        ("hard", Box::new(|o| finetune::run(&hard, &source(&data), fold, &[], o))),
    ];
    for (name, run) in &runs {
        let whole = dir.path().join(format!("{name}-whole"));
        let cut = dir.path().join(format!("{name}-cut"));
        // A round of a run that ended before its first state.
        fs::create_dir_all(&cut).unwrap();
        let stale = r#"{"schema": "mithras.hard/1", "hard": [[0, 0, 9.0, 9.0]], "aside": []}"#;
        fs::write(cut.join("hard-1.json"), stale).unwrap();
        run(&options(whole.clone(), 0)).unwrap();
        // Killed after step 3; the state was written after step 2.
        run(&options(cut.clone(), 3)).unwrap();
        assert!(!cut.join(MODEL).exists(), "{name} was not cut");
        let half = checkpoint::read_tensors(&cut.join("state.safetensors")).unwrap().tensors;
        assert!(half.keys().any(|k| k.starts_with("optim.")), "{name}");
        run(&options(cut.clone(), 0)).unwrap();
        let read = |d: &Path, f: &str| fs::read(d.join(f)).unwrap();
        // The optimiser is kept while there are steps left, and a finished run stays as it is.
        let holds = |d: &Path| {
            let state = checkpoint::read_tensors(&d.join("state.safetensors")).unwrap().tensors;
            ["model.", "optim."].map(|part| state.keys().any(|k| k.starts_with(part)))
        };
        assert_eq!(holds(&whole), [true, false], "{name}");
        let before = read(&whole, "state.safetensors");
        run(&options(whole.clone(), 0)).unwrap();
        assert!(before == read(&whole, "state.safetensors"), "{name}");
        assert!(read(&whole, MODEL) == read(&cut, MODEL), "{name}: weights differ");
        let losses = |d: &Path| -> Vec<String> {
            let text = String::from_utf8(read(d, "metrics.csv")).unwrap();
            text.lines().map(|l| l.rsplit_once(',').unwrap().0.to_string()).collect()
        };
        assert_eq!(losses(&whole), losses(&cut), "{name}");
        assert!(whole.join("loss.svg").is_file() && whole.join("run.json").is_file());
    }
    // Adapters of the second stage end in plain weights: the norm of the mean has moved, others not.
    let (before, after) = (&start, dir.path().join("lora-whole").join(MODEL));
    let [before, after] = [before, &after].map(|p| checkpoint::read_tensors(p).unwrap().tensors);
    assert!(after.keys().all(|n| !n.contains("lora")), "{:?}", after.keys());
    let moved = |name: &str| after[name] != before[name];
    assert!(moved("blocks.3.attn.qkv.weight") && moved("blocks.0.mlp.fc2.weight"));
    assert!(!moved("blocks.3.attn.proj.weight") && !moved("patch_embed.proj.weight"));
    assert!(after["fc_norm.bias"].abs().max().double_value(&[]) > 0.0);
    // What a round sets aside comes up in no later one.
    let round = |n: usize| -> serde_json::Value {
        let text = fs::read(dir.path().join(format!("hard-whole/hard-{n}.json"))).unwrap();
        assert_eq!(text, fs::read(dir.path().join(format!("hard-cut/hard-{n}.json"))).unwrap());
        serde_json::from_slice(&text).unwrap()
    };
    let (one, two) = (round(1), round(2));
    let aside = one["aside"].as_array().unwrap();
    assert!(!aside.is_empty() && one["hard"].as_array().is_some_and(|h| !h.is_empty()), "{one}");
    for list in ["hard", "aside"] {
        let later = two[list].as_array().unwrap();
        assert!(later.iter().all(|p| !aside.contains(p)), "{list}");
    }
    // The port gives probabilities for what the loop wrote.
    use mitosis::{RgbTile, Segmenter as _};
    let weights = dir.path().join("segment-whole").join(MODEL);
    let mut port = train::port::TorchSegmenter::open(&weights, "cpu").unwrap();
    let maps = port.probabilities(&[RgbTile::filled(64, 96, [200, 150, 190])]).unwrap();
    assert_eq!((maps[0].width, maps[0].height, maps[0].data.len()), (64, 96, 64 * 96));
}

#[test]
fn a_run_is_not_overwritten_and_not_mixed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn_data(&data);
    let out = dir.path().join("run");
    let fold = "A00";
    segment::run(&segment_preset(&[]), &source(&data), fold, &options(out.clone(), 2)).unwrap();
    let held = base::file::Lock::take(&out).unwrap();
    let busy = segment::run(&segment_preset(&[]), &source(&data), fold, &options(out.clone(), 0));
    assert!(busy.unwrap_err().to_string().contains("another process is at work"));
    drop(held);
    let again = RunOptions { resume: false, ..options(out.clone(), 0) };
    let refused = segment::run(&segment_preset(&[]), &source(&data), fold, &again);
    assert!(matches!(refused, Err(TrainError::There { .. })));
    let other = segment_preset(&["train.lr=0.5"]);
    let refused = segment::run(&other, &source(&data), fold, &options(out, 0));
    assert!(refused.unwrap_err().to_string().contains("another preset"));
}

/// Fold and run of each stage on drawn data.
type StageRun<'a> = Box<dyn Fn(&Source, &str, &RunOptions) -> train::Result<()> + 'a>;

fn stages<'a>(seg: &'a SegmentPreset, fine: &'a FinetunePreset) -> [(&'a str, StageRun<'a>); 2] {
    [
        ("segment", Box::new(|s, fold, o| segment::run(seg, s, fold, o))),
        ("finetune", Box::new(|s, fold, o| finetune::run(fine, s, fold, &[], o))),
    ]
}

#[test]
fn a_run_is_not_resumed_under_other_labels_of_the_held_out_slide() {
    let dir = tempfile::tempdir().unwrap();
    let (data, other) = (dir.path().join("data"), dir.path().join("other"));
    drawn_data(&data);
    drawn_data(&other);
    let labels = other.join("icpr2012/mitoses.csv");
    let text = fs::read_to_string(&labels).unwrap();
    let moved =
        text.replace("A00_00.jpg,100,120,88,108,112,132", "A00_00.jpg,200,60,188,48,212,72");
    assert_ne!(text, moved);
    fs::write(&labels, moved).unwrap();
    let (data, other) = (source(&data), source(&other));
    let (seg, fine) = (segment_preset(&[]), finetune_preset(&[]));
    for (name, run) in stages(&seg, &fine) {
        let out = dir.path().join(name);
        run(&data, "A00", &options(out.clone(), 2)).unwrap();
        let refused = run(&other, "A00", &options(out.clone(), 2)).unwrap_err().to_string();
        assert!(
            refused.contains("was made with another preset or other data"),
            "{name}: {refused}"
        );
        // A state of an older version has no digest to compare.
        let state = out.join("state.safetensors");
        let file = checkpoint::read_tensors(&state).unwrap();
        let mut spec = file.spec.unwrap();
        let notes = spec.notes.as_object_mut().unwrap();
        assert!(notes.remove("held_out_digest").is_some(), "{name}");
        checkpoint::save_described(&state, &file.tensors, &spec).unwrap();
        run(&other, "A00", &options(out, 1)).unwrap();
    }
}

#[test]
fn starting_weights_that_saw_the_held_out_slide_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn_data(&data);
    let source = source(&data);
    let (seg, fine) = (segment_preset(&[]), finetune_preset(&[]));
    let from = ["init=\"checkpoint\""];
    let (seg_on, fine_on) = (segment_preset(&from), finetune_preset(&from));
    for ((name, run), (_, next)) in stages(&seg, &fine).into_iter().zip(stages(&seg_on, &fine_on)) {
        let first = dir.path().join(format!("{name}-A00"));
        run(&source, "A00", &options(first.clone(), 0)).unwrap();
        let notes = |fold: &str| {
            let out = dir.path().join(format!("{name}-{fold}-next"));
            let options = RunOptions { init: Some(first.join(MODEL)), ..options(out.clone(), 1) };
            next(&source, fold, &options).unwrap();
            let run = fs::read(out.join("run.json")).unwrap();
            serde_json::from_slice::<serde_json::Value>(&run).unwrap()["notes"].clone()
        };
        // Of A00 they have seen nothing; with nothing held out there is nothing to note.
        assert_eq!([notes("A00"), notes("none")], [const { serde_json::Value::Null }; 2], "{name}");
        let found = notes("A01").to_string();
        assert!(found.contains("slides that fold `A01` holds out: 1 of 1 (A01)"), "{found}");
    }
}

#[test]
fn the_single_verbs_read_the_folds_of_a_regions_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn_data(&data);
    let source = source(&data);
    let none = Source::open(&data, &data.join("folds.json")).unwrap_err().to_string();
    assert!(none.contains("regions.json"), "{none}");
    assert_eq!(source.folds.folds, ["A00", "A01", "A02"]);
    let out = options(dir.path().join("seg"), 2);
    let refused = segment::run(&segment_preset(&[]), &source, "another", &out);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("A00, A01, A02 and none"), "{refused}");
    segment::run(&segment_preset(&[]), &source, "A01", &out).unwrap();
    let about = fs::read_to_string(out.out.join("run.json")).unwrap();
    assert!(about.contains("\"left_out\": \"A01\""), "{about}");
    let fold = source.fold("A01").unwrap();
    assert!(fold.validation.iter().all(|i| i.slide == "A01") && !fold.train.is_empty());
}

#[test]
fn a_first_stage_at_half_the_resolution_records_it() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn_data(&data);
    let preset = segment_preset(&["data.mpp=0.5"]);
    let out = options(dir.path().join("seg"), 0);
    segment::run(&preset, &source(&data), "A00", &out).unwrap();
    let port = train::port::TorchSegmenter::open(&out.out.join(MODEL), "cpu").unwrap();
    assert_eq!(port.spec.mpp, 0.5);
    let odd = SegmentPreset::load(&preset_file("segment-smoke.toml"), &words(&["data.mpp=0.4"]));
    assert!(odd.unwrap_err().to_string().contains("data.mpp"));
}

#[test]
fn a_loss_that_is_not_a_number_stops_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn_data(&data);
    let preset = segment_preset(&["train.lr=1e38", "train.warmup=0", "train.clip=1e38"]);
    let out = options(dir.path().join("run"), 0);
    let stopped = segment::run(&preset, &source(&data), "none", &out);
    assert!(matches!(stopped, Err(TrainError::NotFinite { .. })), "{stopped:?}");
}

#[test]
fn mined_places_of_the_left_out_slide_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn_data(&data);
    let mined = [finetune::Mined { frame: "A02_00".into(), x: 50.0, y: 50.0 }];
    let out = options(dir.path().join("run"), 0);
    let fold = "A02";
    let refused = finetune::run(&finetune_preset(&[]), &source(&data), fold, &mined, &out);
    let refused = refused.unwrap_err().to_string();
    for words in ["not on the training side", "'A02_00'", "only in the training side"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
}

#[test]
fn the_test_part_cannot_be_trained_on() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn_data(&data);
    let test = Options { part: regions::Part::Test, ..Options::default() };
    let set = icpr(&data.join("icpr2012"), &test).unwrap().dataset;
    let set = set.write(&data.join("tests")).unwrap();
    assert!(FoldManifest::of_regions(&set, Scheme::LeaveOneOut, 0).is_err());
    assert!(set.training().images().is_empty());
}

#[test]
fn presets_parse_and_state_how_they_are_run() {
    let mut seen = 0;
    for entry in fs::read_dir(testkit::workspace().join("presets")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let parsed = if name.starts_with("segment-") {
            SegmentPreset::load(&path, &[]).map(|_| ())
        } else if name.starts_with("finetune-mitosis")
            || ["finetune-regions.toml", "finetune-smoke.toml"].contains(&&*name)
        {
            FinetunePreset::load(&path, &[]).map(|_| ())
        } else {
            continue;
        };
        parsed.unwrap_or_else(|e| panic!("{e}"));
        let first = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_string();
        let command = format!("--preset presets/{name} ");
        assert!(first.starts_with("# mithras train ") && first.contains(&command), "{first}");
        seen += 1;
    }
    assert!(seen >= 5, "{seen} presets");
}

#[test]
fn unknown_keys_name_the_path_and_the_nearest() {
    let file = preset_file("segment-regions.toml");
    let load = |set: &str| SegmentPreset::load(&file, &[set.to_string()]);
    let message = load("train.warmups=3").unwrap_err().to_string();
    assert!(message.contains("train") && message.contains("did you mean `warmup`"), "{message}");
    assert!(load("data.patch=250").unwrap_err().to_string().contains("multiple of 32"));
    assert!(load("train.lr").unwrap_err().to_string().contains("key=value"));
    assert_eq!(load("train.steps=77").unwrap().train.steps, 77);
}

/// Frames of three slides whose figures are on greener ground than the other nuclei.
fn cued_data(dir: &Path) {
    drawn_data(dir);
    let icpr = dir.join("icpr2012");
    let mut marks = String::from("file,cx,cy,xmin,ymin,xmax,ymax,pixels\n");
    for slide in 0..3_u32 {
        let figure = |x: u32, y: u32| (x / 150 + y / 150).is_multiple_of(2);
        let image = RgbImage::from_fn(750, 750, |x, y| {
            let middle = |v: u32| f64::from(v % 150) - 75.0;
            let v = ((x * 7 + y * 13 + slide * 31) % 40) as u8;
            match (middle(x).hypot(middle(y)) < 12.0, figure(x, y)) {
                (true, _) => Rgb([60 + v, 30, 90]),
                (_, true) => Rgb([190 + v, 175 + v, 190]),
                _ => Rgb([200 + v, 150 + v, 190]),
            }
        });
        let name = format!("A0{slide}_00");
        image.save(icpr.join("frames").join(format!("{name}.jpg"))).unwrap();
        let cells = (0..25).map(|k| (75 + 150 * (k % 5), 75 + 150 * (k / 5)));
        for (x, y) in cells.filter(|&(x, y)| figure(x, y)) {
            let [x0, y0, x1, y1] = [x - 12, y - 12, x + 12, y + 12];
            marks.push_str(&format!("{name}.jpg,{x},{y},{x0},{y0},{x1},{y1},450\n"));
        }
    }
    fs::write(icpr.join("mitoses.csv"), marks).unwrap();
}

#[test]
fn both_stages_report_what_identifies_figures_without_seeing_them() {
    let dir = tempfile::tempdir().unwrap();
    let shortcuts_of = |run: &Path| {
        let text = fs::read(run.join("run.json")).unwrap();
        let run: serde_json::Value = serde_json::from_slice(&text).unwrap();
        run["about"]["shortcuts"].as_array().unwrap_or_else(|| panic!("{run}")).clone()
    };
    for (name, draw) in [("plain", drawn_data as fn(&Path)), ("cued", cued_data)] {
        let data = dir.path().join(name);
        draw(&data);
        let (one, two) = (data.join("segment"), data.join("finetune"));
        let source = source(&data);
        segment::run(&segment_preset(&[]), &source, "A01", &options(one.clone(), 1)).unwrap();
        let second = finetune_preset(&[]);
        finetune::run(&second, &source, "A01", &[], &options(two.clone(), 1)).unwrap();
        for run in [one, two] {
            let found = shortcuts_of(&run);
            let green = |w: &serde_json::Value| {
                w.as_str().unwrap().starts_with("frames: border green (context) separates figures")
            };
            assert_eq!(found.iter().any(green), name == "cued", "{}: {found:?}", run.display());
        }
    }
}
