//! One positive class for choosing the epoch, for the figures and for the threshold, whatever the
//! order of the classes.

use base::remedy::{Remedied as _, Remedy};
use image::{Rgb, RgbImage};
use infer::ModelPackage;
use regions::task::{Task, TrainingSet};
use std::fs;
use std::path::Path;
use train::preset::Preset as _;
use train::protocol::{About, CropsPreset, Part, finetune, fold_dir};
use train::run::{MODEL, RunOptions};
use training::TrainingError;
use training::protocol::{PartPackage, Test, finish, operating_point, package, test};

/// Figures and mimickers in folders of these names; three slides, more mimickers than figures.
pub fn drawn(dir: &Path, figure: &str, other: &str) {
    for (class, colour, n) in [(figure, 60_u8, 2_u8), (other, 110, 5)] {
        for s in 0..3_u8 {
            let folder = dir.join(class).join(format!("slide{s}"));
            fs::create_dir_all(&folder).unwrap();
            for k in 0..n {
                RgbImage::from_fn(32, 32, |x, y| {
                    let grain = ((x * 7 + y * 13 + u32::from(k) * 5) % 97) as u8;
                    Rgb([colour + grain, 40 + s, 90 + grain / 2])
                })
                .save(folder.join(format!("{k}.png")))
                .unwrap();
            }
        }
    }
}

fn preset(positive: Option<&str>) -> CropsPreset {
    let file = testkit::workspace().join("presets/finetune-ami-br-vit-tiny.toml");
    let mut set: Vec<String> = [
        "task=\"folder\"",
        "model.image=32",
        "data.crop=32",
        "train.epochs=3",
        "train.batch=4",
        "train.warmup_epochs=1.0",
        "train.base_lr=0.01",
        "train.keep=\"metric\"",
        "train.ema=0.0",
        "train.precision=\"f32\"",
        "symmetries=1",
    ]
    .map(str::to_owned)
    .to_vec();
    set.extend(positive.map(|p| format!("positive=\"{p}\"")));
    CropsPreset::load(&file, &set).unwrap()
}

pub fn options(out: &Path) -> RunOptions {
    RunOptions {
        out: out.to_path_buf(),
        resume: false,
        device: "cpu".into(),
        init: None,
        allow_partial: false,
        stop_after: 0,
        reporter: Default::default(),
    }
}

/// The first fold's classifier as a package.
pub fn packaged(run: &Path, coarse: bool, out: &Path) -> ModelPackage {
    let made = PartPackage {
        run: run.to_path_buf(),
        part: Part::Fold(0),
        coarse,
        positive: None,
        about: toml::Table::new(),
        license: "none".into(),
        name: "drawn".into(),
        weights: net::onnx::WeightKind::F32,
    };
    package(&made, out).unwrap();
    ModelPackage::open(out).unwrap()
}

/// F1 of a class from a table of predictions, counted by hand.
fn f1(table: &Path, class: &str) -> f64 {
    let text = fs::read_to_string(table).unwrap();
    let (mut tp, mut wrong) = (0.0, 0.0);
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        match (cells[4] == class, cells[5] == class) {
            (true, true) => tp += 1.0,
            (false, false) => {}
            _ => wrong += 1.0,
        }
    }
    if tp == 0.0 { 0.0 } else { 2.0 * tp / (2.0 * tp + wrong) }
}

#[test]
fn one_positive_class_for_choosing_calibrating_and_reporting() {
    // Sorted by name the figures are the first class, then the second.
    for (figure, other) in [("mf", "mimicker"), ("z_mf", "mimicker")] {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        drawn(&data, figure, other);
        let set = TrainingSet::open(Task::Folder, &data).unwrap();
        assert_eq!(
            set.classes().iter().position(|c| c == figure),
            Some(usize::from(figure > other))
        );
        let run = dir.path().join("run");
        let p = preset(Some(figure));
        for k in 0..3 {
            finetune(&p, &set, k, &options(&run)).unwrap();
        }
        let about = About::read(&run).unwrap();
        assert_eq!(about.positive.as_deref(), Some(figure));
        // Choosing: the kept epoch's figure is the F1 of the positive class on the held-out side.
        for k in 0..3 {
            let dir = fold_dir(&run, k);
            let kept = net::checkpoint::read_spec(&dir.join(MODEL)).unwrap();
            let kept = kept.notes["validation_metric"].as_f64().unwrap();
            let counted = f1(&dir.join("predictions.csv"), figure);
            assert!((kept - counted).abs() < 1e-9, "{figure}, fold {k}: {kept} {counted}");
        }
        // Reporting.
        let judged = finish(&run).unwrap().remove(0).figures.unwrap();
        let all = judged.all.positive.unwrap();
        assert_eq!(all.positive, figure);
        assert!((all.f1 - f1(&run.join("predictions.csv"), figure)).abs() < 1e-9);
        assert!(judged.notes.is_empty(), "nothing was guessed: {:?}", judged.notes);
        // Calibration, and the entries of a package.
        let threshold = operating_point(&run, &about, "predictions").unwrap().unwrap();
        let card = packaged(&run, false, &dir.path().join("package")).card.classifier.unwrap();
        assert_eq!((card.positive.as_str(), card.threshold), (figure, Some(threshold as f32)));
    }
}

/// Images of two classes in folders of this slide, or without one, all other than those of other seeds.
fn images(dir: &Path, slide: &str, seed: u8) {
    for (class, colour) in [("mf", 60_u8), ("mimicker", 110)] {
        let folder = dir.join(class).join(slide);
        fs::create_dir_all(&folder).unwrap();
        RgbImage::from_fn(32, 32, |x, y| Rgb([colour, (x * 7 + y * 13) as u8 % 90, seed]))
            .save(folder.join("0.png"))
            .unwrap();
    }
}

#[test]
fn a_test_set_that_was_trained_on_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let data = at("data");
    for s in 0..3_u8 {
        images(&data, &format!("slide{s}"), s);
    }
    images(&data, "", 3);
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let run = at("run");
    finetune(&preset(Some("mf")), &set, Part::Final, &options(&run)).unwrap();
    let scored = |data: &Path, allow_seen: bool| {
        let (run, data, out) = (run.clone(), data.to_path_buf(), Some(data.join("out")));
        let asked = Test { run, data, out, again: true, allow_seen, device: "cpu".into() };
        test(&asked).map_err(Box::new)
    };
    // Other images of a slide, the same image under another name, an image whose name alone is known, another slide.
    for (name, slide, seed, expected) in [
        ("slide", "slide1", 9, Some("1 of the slides or images of this test set (slide1)")),
        ("renamed", "slide7", 2, Some("has the pixels of mf/slide2/0.png")),
        ("alike", "", 9, None),
        ("other", "slide7", 9, None),
    ] {
        images(&at(name).join("test"), slide, seed);
        let found = scored(&at(name), false);
        let Some(words) = expected else {
            assert!(found.unwrap().notes.is_empty(), "{name}");
            continue;
        };
        let refused = found.map(|_| ()).unwrap_err();
        assert!(matches!(*refused, TrainingError::TestSeen { .. }), "{refused}");
        assert!(refused.to_string().contains(words), "{refused}");
        assert_eq!(refused.remedy(), Some(Remedy::AllowSeen));
        assert!(!at(name).join("out").exists() && !run.join("tested.json").exists());
        let allowed = scored(&at(name), true).unwrap();
        let metrics = fs::read_to_string(at(name).join("out/final.json")).unwrap();
        assert!(allowed.notes[0].contains(words) && metrics.contains(words), "{metrics}");
        fs::remove_file(run.join("tested.json")).unwrap();
    }
    // A model of an older version lists nothing.
    let model = run.join("final").join(MODEL);
    let file = net::checkpoint::read_tensors(&model).unwrap();
    let spec = net::checkpoint::Spec { trained_on: None, ..file.spec.unwrap() };
    net::checkpoint::save_described(&model, &file.tensors, &spec).unwrap();
    fs::remove_file(run.join("items.csv")).unwrap();
    let notes = scored(&at("slide"), false).unwrap().notes;
    assert!(notes[0].contains("not checked against the test set"), "{notes:?}");
}

/// What a fold's starting weights had seen is in the metrics of the fold and of the run.
#[test]
fn notes_on_a_fold_are_in_its_metrics() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data, "mf", "mimicker");
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let p = preset(Some("mf"));
    let first = dir.path().join("first");
    finetune(&p, &set, 0, &options(&first)).unwrap();
    let run = dir.path().join("run");
    let init = Some(fold_dir(&first, 0).join(MODEL));
    let mut from = p;
    from.init = train::preset::Init::Checkpoint;
    for k in 0..3 {
        finetune(&from, &set, k, &RunOptions { init: init.clone(), ..options(&run) }).unwrap();
    }
    let figures = finish(&run).unwrap().remove(0).figures.unwrap();
    assert_eq!(figures.notes.len(), 2, "{:?}", figures.notes);
    for k in 0..3 {
        let metrics = fs::read_to_string(fold_dir(&run, k).join("metrics.json")).unwrap();
        let words = format!("were trained on slides that fold `{k}` holds out");
        assert_eq!(metrics.contains(&words), k > 0, "{metrics}");
    }
    let metrics = fs::read_to_string(run.join("metrics.json")).unwrap();
    assert!(metrics.contains("fold `1` holds out") && metrics.contains("fold `2` holds out"));
}

#[test]
fn two_classes_without_a_positive_one_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data, "mf", "mimicker");
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    let out = dir.path().join("run");
    let why = finetune(&preset(None), &set, 0, &options(&out)).unwrap_err().to_string();
    assert!(why.contains("positive") && why.contains("mf or mimicker"), "{why}");
    let why = finetune(&preset(Some("mitosis")), &set, 0, &options(&out)).unwrap_err().to_string();
    assert!(why.contains("`mitosis` is not one of the classes mf, mimicker"), "{why}");
    assert!(!fold_dir(&out, 0).exists());
}

/// Typical or atypical out of a network of morphologies: the same file, whose outputs the card puts together.
#[test]
fn the_coarser_task_is_packaged_as_sums() {
    let dir = tempfile::tempdir().unwrap();
    testkit::ami::drawn(dir.path());
    let set = TrainingSet::open(Task::AmiMorph, dir.path()).unwrap();
    let mut p = preset(None);
    p.task = Task::AmiMorph;
    p.model.classes = 8;
    let run = dir.path().join("run");
    for k in 0..3 {
        finetune(&p, &set, k, &options(&run)).unwrap();
    }
    finish(&run).unwrap();
    let packages = [false, true].map(|coarse| {
        packaged(&run, coarse, &dir.path().join(if coarse { "coarse" } else { "fine" }))
    });
    let [fine, coarse] = &packages;
    assert!(fine.classifier() == coarse.classifier());
    let card = coarse.card.classifier.as_ref().unwrap();
    assert_eq!((card.positive.as_str(), card.classes.len()), ("atypical", 2));
    assert_eq!(card.outputs, ["typical", "atypical"].map(|c| vec![c; 4]).concat());
    let crop = [pixels::geometry::centred(&set.images()[0], 32, 32)];
    let [fine, coarse] = packages.map(|package| {
        let mut models = infer::open(&package, &infer::EngineOptions::default()).unwrap();
        models.classifier.as_mut().unwrap().classes(&crop).unwrap().remove(0).0
    });
    assert_eq!((fine.len(), coarse.len()), (8, 2));
    assert!((coarse[1] - fine[4..].iter().sum::<f32>()).abs() < 1e-6, "{fine:?} {coarse:?}");
}
