//! The loops on a drawn data folder: resuming, guards, presets.

use std::fs;
use std::path::{Path, PathBuf};

use corpus::folds::{FoldManifest, Scheme};
use corpus::regions::import::{Options, icpr};
use image::{Rgb, RgbImage};
use train::TrainError;
use train::data::Source;
use train::preset::{FinetunePreset, Preset as _, SegmentPreset};
use train::run::{MODEL, RunOptions};
use train::{finetune, segment};

/// Frames of three slides with a dark disc at (100, 120), in the layout of the real data.
fn drawn_data(dir: &Path) {
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

fn source(data: &Path) -> Source {
    Source::open(data, None).unwrap()
}

fn options(out: PathBuf, stop_after: usize) -> RunOptions {
    RunOptions {
        out,
        resume: stop_after != 1_000,
        device: "cpu".into(),
        init: None,
        allow_partial: false,
        stop_after,
        progress: false,
    }
}

/// The drawn folder has no patches of the other source.
fn without_ami(extra: &[&str]) -> Vec<String> {
    extra.iter().map(|s| (*s).to_string()).collect()
}

fn segment_preset(set: &[&str]) -> SegmentPreset {
    let mut p: SegmentPreset =
        SegmentPreset::load(&preset_file("segment-icpr-smoke.toml"), &without_ami(set)).unwrap();
    p.data.ami = None;
    p
}

fn finetune_preset(set: &[&str]) -> FinetunePreset {
    let mut p: FinetunePreset = FinetunePreset::load(
        &preset_file("finetune-mitosis-vit-tiny-smoke.toml"),
        &without_ami(set),
    )
    .unwrap();
    p.data.ami = None;
    p
}

#[test]
fn a_killed_run_resumes_to_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn_data(&data);
    let fold = "A01";
    type Run<'a> = Box<dyn Fn(&RunOptions) -> train::Result<()> + 'a>;
    let seg = segment_preset(&[]);
    let cls = finetune_preset(&["model.drop_path=0.1"]);
    let runs: [(&str, Run<'_>); 2] = [
        ("segment", Box::new(|o| segment::run(&seg, &source(&data), fold, o))),
        ("finetune", Box::new(|o| finetune::run(&cls, &source(&data), fold, &[], o))),
    ];
    for (name, run) in &runs {
        let whole = dir.path().join(format!("{name}-whole"));
        let cut = dir.path().join(format!("{name}-cut"));
        run(&options(whole.clone(), 0)).unwrap();
        // Killed after step 3; the state was written after step 2.
        run(&options(cut.clone(), 3)).unwrap();
        assert!(!cut.join(MODEL).exists(), "{name} was not cut");
        run(&options(cut.clone(), 0)).unwrap();
        let read = |d: &Path, f: &str| fs::read(d.join(f)).unwrap();
        assert!(read(&whole, MODEL) == read(&cut, MODEL), "{name}: weights differ");
        let losses = |d: &Path| -> Vec<String> {
            let text = String::from_utf8(read(d, "metrics.csv")).unwrap();
            text.lines().map(|l| l.rsplit_once(',').unwrap().0.to_string()).collect()
        };
        assert_eq!(losses(&whole), losses(&cut), "{name}");
        assert!(whole.join("loss.svg").is_file() && whole.join("run.json").is_file());
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
    let held = corpus::file::Lock::take(&out).unwrap();
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

#[test]
fn the_single_verbs_read_the_folds_of_a_regions_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn_data(&data);
    let named = Options { name: "frames".into(), ..Options::default() };
    let set = icpr(&data.join("icpr2012"), &named).unwrap().dataset;
    let (set_dir, file) = (dir.path().join("set"), dir.path().join("folds.json"));
    let set = set.write(&set_dir).unwrap();
    let folds = FoldManifest::of_regions(&set, Scheme::LeaveOneOut, 0).unwrap();
    folds.write(&file).unwrap();
    let said = |r: Result<Source, TrainError>| r.unwrap_err().to_string();
    assert!(said(Source::open(&set_dir, None)).contains("needs its folds"));
    assert!(said(Source::open(&data, Some(&file))).contains("no regions dataset"));

    let source = Source::open(&set_dir, Some(&file)).unwrap();
    assert_eq!(source.folds(), folds.folds);
    let held = &folds.folds[1];
    let out = options(dir.path().join("seg"), 2);
    let own = segment_preset(&["data.ami_most=0"]);
    let refused = segment::run(&own, &source, "another", &out).unwrap_err().to_string();
    assert!(refused.contains(held.as_str()), "{refused}");
    segment::run(&own, &source, held, &out).unwrap();
    let about = fs::read_to_string(out.out.join("run.json")).unwrap();
    assert!(about.contains(&format!("\"left_out\": \"{held}\"")), "{about}");
    let fold = folds.regions(&set.training(), 1).unwrap();
    assert!(fold.validation.iter().all(|i| i.slide == *held) && !fold.train.is_empty());
}

#[test]
fn a_loss_that_is_no_number_stops_the_run() {
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
    assert!(refused.unwrap_err().to_string().contains("not on the training side"));
}

#[test]
fn the_test_set_cannot_be_trained_on() {
    let dir = tempfile::tempdir().unwrap();
    let preset: SegmentPreset = SegmentPreset::load(
        &preset_file("segment-icpr-smoke.toml"),
        &["data.ami=TUPAC16".to_string()],
    )
    .unwrap();
    let out = options(dir.path().join("run"), 0);
    let refused = segment::run(&preset, &source(dir.path()), "none", &out);
    assert!(matches!(
        refused,
        Err(TrainError::Data(corpus::crops::CropError::TestSetInTraining { .. }))
    ));
}

#[test]
fn presets_parse_and_say_how_they_are_run() {
    let mut seen = 0;
    for entry in fs::read_dir(testkit::workspace().join("presets")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let parsed = if name.starts_with("segment-") {
            SegmentPreset::load(&path, &[]).map(|_| ())
        } else if name.starts_with("finetune-mitosis") || name == "finetune-regions.toml" {
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
    let file = preset_file("segment-icpr.toml");
    let load = |set: &str| SegmentPreset::load(&file, &[set.to_string()]);
    let message = load("train.warmups=3").unwrap_err().to_string();
    assert!(message.contains("train") && message.contains("did you mean `warmup`"), "{message}");
    assert!(load("data.patch=250").unwrap_err().to_string().contains("multiple of 32"));
    assert!(load("train.lr").unwrap_err().to_string().contains("key=value"));
    assert_eq!(load("train.steps=77").unwrap().train.steps, 77);
}
