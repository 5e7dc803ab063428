//! The whole chain on drawn images: MIDOG-shaped annotations to a package that detects.

use base::progress::{Event, Listener, Silent};
use mitosis::Mpp;
use mitosis::matching::Rule;
use mitosis::pseudo_label::PseudoLabelRule;
use net::checkpoint;
use regions::annotations::{ImportOptions, importer};
use regions::augment::PlaceKind;
use regions::folds::{DataKind, FoldManifest, Scheme, Unit};
use regions::import::{Options, annotated, folder_importer};
use regions::{Dataset, Given, merge};
use std::fs;
use std::path::{Path, PathBuf};
use train::data::{Data, Pseudo, Source};
use train::preset::{Init, Preset as _};
use training::Named;
use training::TrainingError;
use training::chain::{Chain, ChainOptions, DetectorPreset, StepKind};
use training::export::{self, Choice, Package};
use training::folds::{Calibrate, calibrate};
use training::pseudo;

use crate::drawn::{SIDE, drawn, places};

/// Six images of six slides, imported from boxes with corners as MIDOG writes them.
fn dataset(dir: &Path) -> Dataset {
    let (mut images, mut boxes) = (vec![], vec![]);
    for n in 0..6 {
        drawn(n, 1).save(dir.join(format!("{n}.tiff"))).unwrap();
        images.push(format!(r#"{{"id": {n}, "file_name": "{n}.tiff", "tumor_type": "drawn"}}"#));
        for (x, y, figure) in places(n) {
            let category = if figure { 1 } else { 2 };
            boxes.push(format!(
                r#"{{"id": {}, "image_id": {n}, "category_id": {category}, "bbox": [{}, {}, {}, {}]}}"#,
                boxes.len(),
                x as i64 - 25,
                y as i64 - 25,
                x + 25,
                y + 25
            ));
        }
    }
    let json = format!(
        r#"{{"images": [{}], "annotations": [{}], "categories": [
           {{"id": 1, "name": "mitotic figure"}}, {{"id": 2, "name": "hard negative"}}]}}"#,
        images.join(","),
        boxes.join(",")
    );
    let file = dir.join("labels.json");
    fs::write(&file, json).unwrap();
    let read = (importer("midog-json").unwrap().read)(&file, &ImportOptions::default()).unwrap();
    let options = Options {
        name: "drawn".into(),
        program: "test".into(),
        given: Given { all: Some(Mpp::PAPER), ..Given::default() },
        positive: Some("mitosis".into()),
        ..Options::default()
    };
    let labelled =
        annotated(&read, dir, &options).unwrap().dataset.write(&dir.join("set")).unwrap();
    // Tissue that no model trains on, which sets the scale of scores.
    let tissue = dir.join("tissue");
    fs::create_dir_all(&tissue).unwrap();
    drawn(6, 1).save(tissue.join("kept.tiff")).unwrap();
    let kept = Options { calibration: vec!["kept".into()], ..options };
    let read = folder_importer("he-folder").unwrap().read;
    let tissue = read(&tissue, &kept).unwrap().dataset.write(&dir.join("kept")).unwrap();
    merge(&[labelled, tissue], &dir.join("all"), "drawn", "test").unwrap()
}

/// The bundled detector's labels of an unlabelled drawn image train both stages.
#[test]
fn pseudo_labels_of_a_detector_mark_what_was_not_labelled() {
    let dir = tempfile::tempdir().unwrap();
    let loose = dir.path().join("loose");
    fs::create_dir_all(&loose).unwrap();
    let spec = mithras::demo::Spec::new(900, 800, 5, 4).unwrap();
    let tile = mithras::demo::draw(
        &mithras::demo::Layout::new(spec).unwrap(),
        mithras::demo::Rect::new(0, 0, 900, 800),
    );
    let image = image::RgbImage::from_raw(900, 800, tile.data).unwrap();
    image.save(loose.join("loose.png")).unwrap();
    let given = Given { all: Some(Mpp::PAPER), ..Given::default() };
    let options = Options {
        name: "loose".into(),
        program: "test".into(),
        given,
        positive: Some("mitosis".into()),
        ..Options::default()
    };
    let read = folder_importer("he-folder").unwrap().read;
    let loose = read(&loose, &options).unwrap().dataset.write(&dir.path().join("l")).unwrap();
    let set =
        merge(&[dataset(dir.path()), loose], &dir.path().join("both"), "both", "test").unwrap();
    let folds = FoldManifest::of_regions(&set, Scheme::Stratified(2), 1).unwrap();
    let source = Source { set, folds };
    let fold = source.fold("none").unwrap();

    let package = testkit::workspace().join("models/mithras-standard");
    let mut detector = mithras::Detector::open(&package).unwrap();
    let out = dir.path().join("pseudo.csv");
    let mut seen = Updates::default();
    let rule = PseudoLabelRule::PAPER;
    let refused = pseudo::label(&source, &fold, &mut detector, &rule, &out, &mut Silent);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("takes candidates from a probability"), "{refused}");
    let candidates = &mut detector.config.recipe.candidates;
    *candidates = candidates.from_threshold(mitosis::Score::literal(0.1));
    let counts = pseudo::label(&source, &fold, &mut detector, &rule, &out, &mut seen).unwrap();
    assert_eq!((counts.images, seen.0), (1, vec![(0, 1), (1, 1)]));
    assert!(counts.figures > 0 && counts.mimickers > 0, "{counts:?}");
    let labels = pseudo::read(&out).unwrap();
    let figures = labels.iter().filter(|l| l.mitotic).count();
    assert_eq!((figures, labels.len()), (counts.figures, counts.figures + counts.mimickers));

    let (plain, mut data) = (source.data("none").unwrap(), source.data("none").unwrap());
    data.mark(&labels).unwrap();
    assert_eq!(data.scenes.unlabelled[0].scenes[0].marks.len(), figures);
    assert_eq!(data.mimickers.len(), counts.mimickers);
    assert_ne!(data.scenes.digest, plain.scenes.digest, "a run on other labels is another run");
    let of =
        |d: &Data| d.domains().iter().map(|d| d.places(PlaceKind::Figure).len()).sum::<usize>();
    assert!(of(&data) > of(&plain));
    // A labelled image is not one of these.
    let other = Pseudo { frame: "0.tiff".into(), ..labels[0].clone() };
    let e = data.mark(&[other]).unwrap_err().to_string();
    assert!(e.contains("0.tiff is not an unlabelled one"), "{e}");
    assert!(e.contains("only in the unlabelled images"), "{e}");
}

#[derive(Default)]
struct Seen(Vec<(String, bool)>);

impl Listener for Seen {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, _: u64, _: u64) {}
    fn finish(&mut self) {}
    fn report(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
    fn event(&mut self, event: &Event<'_>) {
        let &Event::Step { name, total, done_before, eta_seconds, .. } = event else { return };
        assert!(total >= 4 && eta_seconds.is_finite() && eta_seconds >= 0.0, "{event:?}");
        self.0.push((name.to_owned(), done_before));
    }
}

/// Keeps how far the work was.
#[derive(Default)]
struct Updates(Vec<(u64, u64)>);

impl Listener for Updates {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, done: u64, total: u64) {
        self.0.push((done, total));
    }
    fn finish(&mut self) {}
    fn report(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
}

/// The smoke test's preset, with fewer steps, and without the candidates of a few pixels that these would leave.
pub fn preset(set: &[&str]) -> DetectorPreset {
    let file = testkit::workspace().join("presets/detector-smoke.toml");
    let short = [
        "segment.train.steps=24",
        "segment.train.warmup=4",
        "segment.train.epoch=12",
        "segment.train.save_every=12",
        "segment.train.ema=0.0",
        "candidates.min_area_px=100",
    ];
    let set: Vec<String> = short.iter().chain(set).map(|s| (*s).to_string()).collect();
    DetectorPreset::load(&file, &set).unwrap()
}

fn options(out: PathBuf) -> ChainOptions {
    ChainOptions {
        out,
        segment_init: None,
        finetune_init: None,
        allow_partial: false,
        package: None,
        first_stage: None,
        folds: None,
        device: "cpu".into(),
        only: None,
    }
}

/// Calibration and package take the candidates of a preset: here peaks.
fn peaks_are_taken_where_a_preset_asks_for_them(source: &Source, own: &Calibrate, dir: &Path) {
    let preset = preset(&[
        "candidates.method=\"peaks\"",
        "candidates.min_distance_px=20",
        "candidates.opening_radius=0",
        "candidates.min_area_px=0",
        "candidates.threshold=0.3",
    ]);
    let (mut what, out) = (own.clone(), dir.join("peaks"));
    preset.apply_to(&mut what).unwrap();
    calibrate(source, &what, &out, &mut Silent).unwrap();
    let package = Package {
        segmenter: what.segmenters[0].clone(),
        classifier: what.classifiers[0].value[0].clone(),
        averaged: vec![],
        segmentation: None,
        choice: Choice::Calibration {
            file: out.join("calibration.json"),
            stage: what.classifiers[0].name.clone(),
            min_separation_um: None,
        },
        training: toml::Table::new(),
        license: "none".into(),
        name: "peaks".into(),
        f32: true,
    };
    export::package(&package, &out.join("package")).unwrap();
    let card = infer::ModelPackage::open(&out.join("package")).unwrap().card.candidates.unwrap();
    let is_peaks = matches!(card.method, infer::card::CandidateMethod::Peaks);
    assert!(is_peaks && card.min_distance_px == Some(20) && card.threshold == 0.3, "{card:?}");
}

#[test]
fn folds_of_a_file_come_in_place_of_those_of_the_preset() {
    let dir = tempfile::tempdir().unwrap();
    let set = dataset(dir.path());
    let (preset, mut options) = (preset(&[]), options(dir.path().join("run")));
    let given = FoldManifest::of_regions(&set, Scheme::Stratified(3), 7).unwrap();
    let own = Chain::new(&preset, set.clone(), &options).unwrap().folds().clone();
    assert_eq!((own.folds.len(), given.folds.len()), (2, 3));
    let file = dir.path().join("folds.json");
    given.write(&file).unwrap();
    options.folds = Some(file.clone());
    assert_eq!(*Chain::new(&preset, set.clone(), &options).unwrap().folds(), given);
    // Of other slides.
    let units = ["xa", "xb"].map(|slide| Unit {
        slide,
        patient: None,
        copy: None,
        pixels: None,
        strata: vec![],
        figures: 1,
        test: false,
        validates: true,
    });
    let other = FoldManifest::new(DataKind::Regions, "other", units, Scheme::Stratified(2), 1);
    other.unwrap().write(&file).unwrap();
    assert!(Chain::new(&preset, set, &options).is_err());
}

/// Presets of runs from before the separation of candidates had its name: a run is resumed, and its first stage taken,
/// where both presets are equal and have one digest.
#[test]
fn a_preset_with_the_earlier_name_of_a_key_is_the_same() {
    let file = testkit::workspace().join("presets/detector-public.toml");
    let text = fs::read_to_string(file).unwrap();
    let earlier = |text: &str| {
        let key = "\nmin_separation_um = ";
        assert!(text.contains(key), "{text}");
        text.replace(key, "\napart_um = ")
    };
    let read = |text: &str, set: &[String]| DetectorPreset::parse(text, set).unwrap();
    let (now, before) = (read(&text, &[]), read(&earlier(&text), &[]));
    assert_eq!((before.candidates.min_separation_um, &before), (Some(12.0), &now));
    assert_eq!(before.digest(), now.digest());
    assert_eq!(now.digest(), base::digest::sha256(earlier(&now.to_toml())), "as it was then");
    for key in ["apart_um", "min_separation_um"] {
        let set = [format!("candidates.{key}=9.0")];
        for text in [&text, &earlier(&text)] {
            assert_eq!(read(text, &set).candidates.min_separation_um, Some(9.0));
        }
    }
}

#[test]
fn every_preset_of_a_detector_parses_and_states_how_it_is_run() {
    let mut seen = 0;
    for entry in fs::read_dir(testkit::workspace().join("presets")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("detector-") {
            let preset = DetectorPreset::load(&path, &[]).unwrap_or_else(|e| panic!("{e}"));
            let text = preset.to_toml();
            assert_eq!(toml::from_str::<DetectorPreset>(&text).unwrap(), preset, "{name}");
            let first = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_string();
            let command = "# mithras train detector --data ";
            assert!(first.starts_with(command) && first.contains(&name), "{first}");
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen}");
    let file = testkit::workspace().join("presets/detector-smoke.toml");
    let refused =
        |set: &str| DetectorPreset::load(&file, &[set.to_string()]).unwrap_err().to_string();
    assert!(refused("calibrate.rule=best").contains("calibrate.rule"));
    assert!(refused("segment.train.warmups=3").contains("did you mean `warmup`"));
    assert!(refused("segment.data.patch=250").contains("multiple of 32"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn a_drawn_dataset_becomes_a_package_and_a_killed_run_continues() {
    // Tests share the cores; libtorch's threads would wait for each other.
    train::set_up(1);
    let dir = tempfile::tempdir().unwrap();
    let set = dataset(dir.path());
    // Hardly trained, the first stage has thousands of candidates at its own threshold.
    let named = preset(&["calibrate.grid=\"short\"", "candidates.threshold=0.3"]);
    let (preset, options) = (named, options(dir.path().join("run")));
    let chain = Chain::new(&preset, set.clone(), &options).unwrap();

    let plan = chain.plan().unwrap();
    assert!(!options.out.exists(), "a plan writes nothing");
    let of = |kind| plan.steps.iter().filter(|s| s.kind == kind).collect::<Vec<_>>();
    assert_eq!((of(StepKind::Segment).len(), of(StepKind::Calibrate).len()), (3, 1));
    assert_eq!(of(StepKind::Calibrate)[0].images, 6);
    assert_eq!(of(StepKind::Calibrate)[0].figures, 48);
    assert!(plan.seconds > 0.0 && plan.memory > u64::from(3 * SIDE * SIDE));

    // One fold by itself, as another machine would, while somebody else trains another.
    let one = ChainOptions { only: Some(vec![Some(1)]), ..options.clone() };
    let other = base::file::Lock::take(&options.out.join("fold-0")).unwrap();
    let mut seen = Seen::default();
    let alone = Chain::new(&preset, set.clone(), &one).unwrap().run(&mut seen).unwrap();
    assert_eq!(alone, options.out);
    let names: Vec<&str> = seen.0.iter().map(|s| s.0.as_str()).collect();
    assert_eq!(names, ["folds", "segment-fold-1", "mine-fold-1", "finetune-fold-1"]);
    let busy = chain.run(&mut Silent).unwrap_err();
    assert!(busy.to_string().contains("fold-0"), "{busy}");
    drop(other);
    let missing = ChainOptions { only: Some(vec![None, Some(7)]), ..options.clone() };
    let refused = Chain::new(&preset, set.clone(), &missing).map(|_| ()).unwrap_err();
    assert!(matches!(refused, TrainingError::NoFold { fold: 7, .. }), "{refused}");

    let mut seen = Seen::default();
    let package = chain.run(&mut seen).unwrap();
    let before: Vec<&str> = seen.0.iter().filter(|s| s.1).map(|s| s.0.as_str()).collect();
    assert_eq!(before, names);
    let opened = infer::ModelPackage::open(&package).unwrap();
    let training = opened.card.training.as_ref().unwrap();
    assert_eq!(training["dataset_sha256"].as_str(), Some(set.digest()));
    assert_eq!(training["positive_class"].as_str(), Some("mitosis"));
    // Three points by name over the folds and nine changes of what they left out, one of them the package's own.
    let card = &opened.card;
    let names: Vec<&str> = card.operating_points.keys().map(String::as_str).collect();
    for name in ["balanced", "sensitive", "specific"] {
        assert!(names.contains(&name), "{names:?}");
        assert!(card.point(name).unwrap().provenance.contains("9 perturbations"));
    }
    let (own, balanced) =
        (card.operating_point.as_ref().unwrap(), &card.operating_points["balanced"]);
    assert_eq!((own.seg, own.cls), (balanced.seg, balanced.cls));
    let results = card.results.as_ref().unwrap();
    let ece = results["calibration"]["ece"].as_float().unwrap();
    assert!((0.0..=1.0).contains(&ece), "{ece}");
    assert!(results["left_out_slides"]["f1_mean"].as_float().is_some());
    // Every model was looked at on the same tissue, the final one too, whose own offset is in its card.
    assert_eq!(results["calibration"]["tissue_per_mm2"].as_float(), Some(20.0));
    let at = options.out.join("calibration");
    let chosen: evaluation::robustness::point::Chosen =
        base::json::read(&at.join("points.json")).unwrap();
    assert_eq!(chosen.tissue.as_ref().unwrap().images, ["kept.tiff"]);
    let last = evaluation::robustness::Robustness::open(&at.join("final/tissue")).unwrap();
    let offset = chosen.offset - chosen.slope * last.tissue_logit().unwrap();
    assert_eq!(results["calibration"]["offset"].as_float(), Some(offset));
    for fold in ["fold-0", "fold-1"] {
        let measured = options.out.join("calibration").join(fold).join("labelled");
        let found = evaluation::robustness::Robustness::open(&measured).unwrap();
        assert_eq!((found.rows.len(), found.rows[0].images.len()), (10, 3));
    }
    let table = fs::read_to_string(options.out.join("calibration/candidates.csv")).unwrap();
    assert!(table.lines().count() > 6, "{table}");

    // All is there: nothing is done again.
    let mut again = Seen::default();
    chain.run(&mut again).unwrap();
    assert!(again.0.iter().all(|s| s.1), "{:?}", again.0);

    // Another second stage on the same first stages: these and their hard negatives are copied, not made again.
    let reused = ChainOptions {
        out: dir.path().join("reused"),
        first_stage: Some(options.out.clone()),
        only: Some(vec![Some(0)]),
        ..options.clone()
    };
    let longer = self::preset(&[
        "calibrate.grid=\"short\"",
        "candidates.threshold=0.3",
        "finetune.train.seed=9",
    ]);
    Chain::new(&longer, set.clone(), &reused).unwrap().run(&mut Silent).unwrap();
    let both = |name: &str| {
        [&options.out, &reused.out].map(|run| fs::read(run.join("fold-0").join(name)).unwrap())
    };
    for name in ["segment/model.safetensors", "segment/preset.toml", "mined.csv"] {
        let [theirs, ours] = both(name);
        assert!(theirs == ours, "{name}");
    }
    let [theirs, ours] = both("finetune/model.safetensors");
    assert!(theirs != ours);
    let refused = |preset: &DetectorPreset| {
        Chain::new(preset, set.clone(), &reused).map(|_| ()).unwrap_err().to_string()
    };
    let other = self::preset(&["candidates.threshold=0.3", "segment.train.seed=7"]);
    assert!(refused(&other).contains("another [segment]"));
    assert!(refused(&self::preset(&[])).contains("other [candidates]"));
    let pointless = self::preset(&["folds.count=1"]);
    let without = |package: Option<infer::ModelPackage>| {
        let from =
            ChainOptions { out: dir.path().join("one"), package, ..self::options("".into()) };
        Chain::new(&pointless, set.clone(), &from).map(|_| ()).map_err(|e| e.to_string())
    };
    let pointless_error = without(None).unwrap_err();
    assert!(
        pointless_error.contains("start from a package, whose point is kept, or make two folds")
    );
    assert_eq!(without(Some(infer::ModelPackage::open(&package).unwrap())), Ok(()));
    let folds = self::preset(&["candidates.threshold=0.3", "folds.seed=1", "folds.count=3"]);
    assert!(refused(&folds).contains("other folds"));
    let model = options.out.join("final/segment/model.safetensors");
    let kept = fs::read(&model).unwrap();
    fs::write(&model, b"other").unwrap();
    assert!(refused(&longer).contains("`segment-final` left there has changed"));
    fs::write(&model, kept).unwrap();

    // Two second stages become one network of their mean weights; of a file with itself, the same network.
    let second = |k: usize| options.out.join(format!("fold-{k}/finetune/model.safetensors"));
    let of = |averaged: Vec<PathBuf>, name: &str| {
        let what = Package {
            segmenter: options.out.join("fold-0/segment/model.safetensors"),
            classifier: second(0),
            averaged,
            segmentation: None,
            choice: Choice::Points {
                chosen: None,
                tissue: None,
                candidates: preset.candidates,
                crop: preset.second().crop(),
                symmetries: 2,
            },
            training: toml::Table::new(),
            license: "none".into(),
            name: name.into(),
            f32: true,
        };
        let out = options.out.join(name);
        export::package(&what, &out).unwrap();
        infer::ModelPackage::open(&out).unwrap().card
    };
    let [alone, same, mean] = [(vec![], "a"), (vec![second(0)], "b"), (vec![second(1)], "c")]
        .map(|(averaged, name)| of(averaged, name));
    let network = |card: &infer::card::ModelCard| card.classifier.as_ref().unwrap().sha256.clone();
    assert_eq!(network(&alone), network(&same));
    assert_ne!(network(&alone), network(&mean));
    let digests = mean.training.as_ref().unwrap()["classifier_mean_of_sha256"].as_array().unwrap();
    let own = [0, 1].map(|k| base::digest::sha256_file(&second(k)).unwrap().1);
    assert_eq!(digests.iter().filter_map(|d| d.as_str()).collect::<Vec<_>>(), own);
    assert!(alone.training.unwrap().get("classifier_mean_of_sha256").is_none());

    // `average_seeds` makes the same of trainings of its own, here of one fold, from the weights of a file.
    let mut seeds = self::preset(&["finetune.init=\"checkpoint\"", "average_seeds=[5]"]);
    let ways = ChainOptions {
        out: dir.path().join("seeds"),
        finetune_init: Some(second(0)),
        only: Some(vec![Some(1)]),
        ..options.clone()
    };
    Chain::new(&seeds, set.clone(), &ways).unwrap().run(&mut Silent).unwrap();
    let made = ways.out.join("fold-1/finetune");
    let file = |name: &str| made.join(name).join("model.safetensors");
    let spec = checkpoint::read_spec(&file("")).unwrap();
    let own = ["seed-1", "seed-5"].map(|name| base::digest::sha256_file(&file(name)).unwrap().1);
    assert_eq!(spec.notes["mean_of_sha256"], serde_json::Value::from(own.to_vec()));
    assert_ne!(own[0], own[1]);
    assert!(made.join("preset.toml").is_file());
    seeds.average_seeds = vec![seeds.finetune.as_ref().unwrap().train.seed];
    assert!(seeds.check().unwrap_err().to_string().contains("average_seeds"));
    seeds.average_seeds = vec![5];
    seeds.finetune.as_mut().unwrap().init = Init::Scratch;
    assert!(seeds.check().unwrap_err().to_string().contains("names no weights"));

    // A classifier that was trained on what a fold holds out chooses no threshold there.
    let what = Calibrate {
        segmenters: (0..2)
            .map(|k| options.out.join(format!("fold-{k}/segment/model.safetensors")))
            .collect(),
        classifiers: vec![Named { name: "swapped".into(), value: vec![second(1), second(0)] }],
        cache: None,
        candidates: preset.candidates,
        rule: Rule::Midog,
        crop: preset.second().crop() as u32,
        symmetries: 1,
        device: "cpu".into(),
        allow_seen: false,
    };
    let source = Source { set: set.clone(), folds: chain.folds().clone() };
    let out = dir.path().join("leak");
    let seen = calibrate(&source, &what, &out, &mut Silent).unwrap_err();
    assert!(matches!(&seen, TrainingError::Seen { count: 3, fold, .. } if fold == "0"), "{seen}");
    assert!(seen.to_string().contains("train it with the segmenter's folds"), "{seen}");
    let allowed = Calibrate { allow_seen: true, ..what.clone() };
    let report = calibrate(&source, &allowed, &out, &mut Silent).unwrap();
    assert_eq!(report.markdown.matches("Not held out: ").count(), 2, "{}", report.markdown);
    let mut own = what;
    own.classifiers[0].value.reverse();
    calibrate(&source, &own, &out, &mut Silent).unwrap();
    peaks_are_taken_where_a_preset_asks_for_them(&source, &own, dir.path());
    // Weights without a list, as older versions left them.
    let list = |k: usize| checkpoint::read_trained_on(&second(k)).unwrap().unwrap();
    assert_eq!(
        (list(0).slides.len(), list(0).slides.intersection(&list(1).slides).count()),
        (3, 0)
    );
    let old = dir.path().join("old.safetensors");
    let spec = checkpoint::Spec { trained_on: None, ..checkpoint::read_spec(&second(0)).unwrap() };
    let tensors = checkpoint::read_tensors(&second(0)).unwrap().tensors;
    checkpoint::save_described(&old, &tensors, &spec).unwrap();
    own.classifiers[0].value[0].clone_from(&old);
    let unlisted = calibrate(&source, &own, &out, &mut Silent).unwrap_err();
    assert!(matches!(unlisted, TrainingError::Unlisted { .. }), "{unlisted}");
    assert!(unlisted.to_string().contains("train it again, or allow it"), "{unlisted}");
    calibrate(&source, &Calibrate { allow_seen: true, ..own.clone() }, &out, &mut Silent).unwrap();
    // Cards of packages list starts of names.
    let starts = list(1).slides.iter().map(|slide| format!("{slide}*")).take(1).collect();
    let listed = checkpoint::TrainedOn { slides: starts, ..Default::default() };
    let spec = checkpoint::Spec { trained_on: Some(listed), ..spec };
    checkpoint::save_described(&old, &tensors, &spec).unwrap();
    let seen = calibrate(&source, &own, &out, &mut Silent).unwrap_err();
    assert!(matches!(&seen, TrainingError::Seen { count: 1, fold, .. } if fold == "0"), "{seen}");

    // A run that was killed before its last marks does what is missing, and no more.
    fs::remove_file(options.out.join("steps/package.json")).unwrap();
    fs::remove_file(options.out.join("fold-1/mined.csv")).unwrap();
    let mut rest = Seen::default();
    chain.run(&mut rest).unwrap();
    let done: Vec<&str> = rest.0.iter().filter(|s| !s.1).map(|s| s.0.as_str()).collect();
    assert_eq!(done, ["mine-fold-1", "package"]);

    // Another preset cannot resume in this folder.
    let other = self::preset(&["finetune.train.seed=9"]);
    let refused = Chain::new(&other, set.clone(), &options).unwrap().run(&mut Silent).unwrap_err();
    assert!(matches!(refused, TrainingError::OtherRun { .. }), "{refused}");
}
