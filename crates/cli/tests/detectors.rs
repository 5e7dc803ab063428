//! A detector of boxes from its ONNX file to figures on a slide.

use crate::common;
use assert_cmd::Command;
use image::RgbImage;
use mithras::demo::Rect;
use mithras::demo::{Layout, Spec};
use std::fs;
use std::path::{Path, PathBuf};

/// `infer/tests/golden/boxes.py`: darkness of cells as boxes, in the shape of YOLOv10's exports.
fn onnx() -> PathBuf {
    testkit::workspace().join("crates/infer/tests/golden/boxes.onnx")
}

fn run(args: &[&str], paths: &[(&str, &Path)]) -> (bool, String, String) {
    let mut command = Command::new(crate::program());
    command.args(args);
    paths.iter().for_each(|(flag, path)| {
        if !flag.is_empty() {
            command.arg(flag);
        }
        command.arg(path);
    });
    let output = command.output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn boxes_of_another_program_are_figures_on_a_slide() {
    let dir = tempfile::tempdir().unwrap();
    let (package, slide) = (dir.path().join("package"), dir.path().join("drawn.tiff"));
    let words = ["detectors", "import", "--mpp", "0.25", "--name", "cells", "--license", "none"];
    let made = run(&words, &[("--onnx", &onnx()), ("--out", &package)]);
    assert!(made.0, "{}", made.2);
    let again = run(&words, &[("--onnx", &onnx()), ("--out", &package)]);
    assert!(!again.0 && again.2.contains("holds a package already"), "{}", again.2);

    let layout = common::draw(&slide, 900, 800, 5, 2);
    let out = dir.path().join("out");
    let words = ["detect", "--engine", "rten", "--operating-point", "0.6,0"];
    let found = run(&words, &[("--model", &package), ("--out", &out), ("", &slide)]);
    assert!(found.0, "{}", found.2);
    let text = fs::read_to_string(out.join("drawn/detections.csv")).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column =
        |name: &str| head.iter().position(|h| *h == name).unwrap_or_else(|| panic!("{head:?}"));
    let (x, y, seg, cls) = (column("x_um"), column("y_um"), column("s_seg"), column("s_cls"));
    let places: Vec<(f64, f64, f64)> = lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells[cls], "", "one stage has one score");
            let number = |k: usize| cells[k].parse::<f64>().unwrap();
            (number(x), number(y), number(seg))
        })
        .collect();
    for figure in layout.truth() {
        let near = places.iter().filter(|p| {
            let (dx, dy) = (p.0 - figure.x_px * 0.25, p.1 - figure.y_px * 0.25);
            dx.hypot(dy) < 7.5
        });
        assert!(near.count() >= 1, "{figure:?} in {places:?}");
    }
    // What several windows see is one figure.
    for (i, a) in places.iter().enumerate() {
        let far = |b: &(f64, f64, f64)| (a.0 - b.0).hypot(a.1 - b.1) >= 7.5;
        assert!(places[i + 1..].iter().all(far), "{a:?} twice");
    }
    assert!(
        run(
            &["detect", "--subtypes", "--operating-point", "0.9,0"],
            &[("--model", &package), ("--out", &dir.path().join("s")), ("", &slide)]
        )
        .0
    );
}

/// The way of `docs/training.md`: a detector of one stage is measured on left-out slides, and its final package
/// accepts from the threshold that was chosen there.
#[test]
fn the_threshold_of_one_stage_is_chosen_on_left_out_slides() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let import = |out: &Path, points: Option<&Path>| {
        let words =
            ["detectors", "import", "--mpp", "0.25", "--name", "cells", "--license", "none"];
        let file = onnx();
        let mut paths: Vec<(&str, &Path)> = vec![("--onnx", &file), ("--out", out)];
        paths.extend(points.map(|p| ("--points", p)));
        let made = run(&words, &paths);
        assert!(made.0, "{}", made.2);
        infer::ModelPackage::open(out).unwrap().card
    };
    let draft = import(&at("pkg"), None);
    let not_chosen = draft.operating_point.unwrap();
    assert!(not_chosen.provenance.contains("not chosen on slides"), "{not_chosen:?}");

    let points = at("points.json");
    let mut choose = vec!["evaluate".to_owned(), "operating-point".to_owned()];
    for (fold, seed) in [("0", 5), ("1", 6)] {
        let images = at(&format!("images{fold}"));
        fs::create_dir(&images).unwrap();
        let layout = Layout::new(Spec::new(900, 800, seed, 4).unwrap()).unwrap();
        let tile = mithras::demo::draw(&layout, Rect::new(0, 0, 900, 800));
        RgbImage::from_raw(900, 800, tile.data).unwrap().save(images.join("drawn.png")).unwrap();
        let truth = at(&format!("truth{fold}.csv"));
        mithras::demo::write_truth(&layout, "drawn", &truth).unwrap();
        let out = at(&format!("rob{fold}"));
        let words = ["evaluate", "robustness", "--engine", "rten", "--mpp", "0.25"];
        let words = [&words[..], &["--changes", "clean,jpeg-50"]].concat();
        let paths =
            [("--images", &*images), ("--truth", &truth), ("--model", &at("pkg")), ("--out", &out)];
        let measured = run(&words, &paths);
        assert!(measured.0, "{}", measured.2);
        choose.extend(["--fold".into(), format!("{fold}={}", out.display())]);
    }
    let words: Vec<&str> = choose.iter().map(String::as_str).collect();
    let chosen = run(&words, &[("--out", &points)]);
    assert!(chosen.0, "{}", chosen.2);
    // Tissue sets the scale of a second stage, and of folds that are there.
    let tissue = |fold: &str| format!("{fold}={}", at("rob0").display());
    let refused = |folds: &[&str]| {
        let mut words = words.clone();
        let tissue: Vec<String> = folds.iter().map(|f| tissue(f)).collect();
        words.extend(tissue.iter().flat_map(|t| ["--tissue", t]));
        let (ok, _, printed) = run(&words, &[("--out", &at("none.json"))]);
        assert!(!ok && !at("none.json").exists(), "{printed}");
        printed
    };
    assert!(refused(&["0", "1"]).contains("sets the scale of a second stage"));
    assert!(refused(&["0"]).contains("the fold 1 was not measured on the tissue that 0 was"));
    assert!(refused(&["9"]).contains("calibration tissue of the fold 9"));
    let text = fs::read_to_string(&points).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let threshold = json["points"]["balanced"]["seg"].as_f64().unwrap();

    let card = import(&at("final"), Some(&points));
    let point = card.operating_point.unwrap();
    assert!((f64::from(point.seg.get()) - threshold).abs() < 1e-6, "{point:?}, not {threshold}");
    assert!(point.seg != not_chosen.seg, "{point:?} is what nobody chose");
    assert!(point.provenance.contains("left-out slides 0, 1"), "{point:?}");
    assert_eq!(card.operating_points["balanced"].seg, point.seg);
    assert!(card.results.unwrap().contains_key("left_out_slides"));

    // It accepts from there on.
    let words = ["detect", "--engine", "rten", "--mpp", "0.25"];
    let slide = at("images0").join("drawn.png");
    let found = run(&words, &[("--model", &at("final")), ("--out", &at("found")), ("", &slide)]);
    assert!(found.0, "{}", found.2);
    let record = fs::read_to_string(at("found/run.json")).unwrap();
    assert!(record.contains("left-out slides 0, 1"), "{record}");
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "packages of one pair of networks, compared with one run"
)]
fn a_classifier_becomes_the_second_stage_of_a_detector() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let made = |first: &Path, second: &Path, out: &Path, more: &[&str]| {
        let words = [&["detectors", "combine", "--name", "both"], more].concat();
        run(&words, &[("--first", first), ("--second", second), ("--out", out)])
    };
    let models = testkit::workspace().join("models");
    let (first, subtypes) = (models.join("mithras-standard"), models.join("mithras-atypical"));
    // Its own second stage again, at its own point: the same detections.
    let own = infer::ModelPackage::open(&first).unwrap().card.operating_point.unwrap();
    let own = format!("{},{}", own.seg.get(), own.cls.get());
    let ok = made(&first, &first, &at("same"), &["--operating-point", &own]);
    assert!(ok.0, "{}", ok.2);
    let slide = at("drawn.tiff");
    common::draw(&slide, 900, 800, 5, 2);
    let scores = |package: &Path, out: &Path| {
        let words = ["detect", "--engine", "native"];
        let found = run(&words, &[("--model", package), ("--out", out), ("", &slide)]);
        assert!(found.0, "{}", found.2);
        fs::read_to_string(out.join("drawn/detections.csv")).unwrap()
    };
    let plain = scores(&first, &at("run-first"));
    assert!(plain.lines().count() > 2, "too little to compare: {plain}");
    assert_eq!(scores(&at("same"), &at("run-same")), plain);

    // Another one: its classes, its crops, both licences, and thresholds that nobody chose.
    let ok = made(&first, &subtypes, &at("other"), &[]);
    assert!(ok.0, "{}", ok.2);
    let card = fs::read_to_string(at("other/card.toml")).unwrap();
    for words in [
        "name = \"both\"",
        "\"typical\"",
        "not chosen",
        "[training.second_stage",
        "; second stage: ",
    ] {
        assert!(card.contains(words), "`{words}` is not in {card}");
    }
    assert!(!card.contains("[operating_points"), "{card}");
    assert_ne!(scores(&at("other"), &at("run-other")), plain);

    // Several second stages: the mean of one with itself is itself, and what is not alike has none.
    let two = |second: &Path, out: &Path| {
        let words = ["detectors", "combine", "--name", "mean", "--operating-point", &own];
        let paths =
            [("--first", &*first), ("--second", &*first), ("--second", second), ("--out", out)];
        run(&words, &paths)
    };
    let ok = two(&first, &at("mean"));
    assert!(ok.0, "{}", ok.2);
    let card = fs::read_to_string(at("mean/card.toml")).unwrap();
    assert!(card.contains("folds = [\"mithras-standard\", \"mithras-standard\"]"), "{card}");
    assert_eq!(scores(&at("mean"), &at("run-mean")), plain);
    let unlike = two(&subtypes, &at("unlike"));
    assert!(!unlike.0 && unlike.2.contains("differ in their classes"), "{}", unlike.2);

    // A screen that passes all on changes nothing; one that answers other classes is refused.
    let (screen, strict) = (first.to_str().unwrap(), subtypes.to_str().unwrap());
    let with = |screen: &str, from: &str, out: &Path| {
        made(
            &first,
            &first,
            out,
            &["--operating-point", &own, "--screen", screen, "--passes-from", from],
        )
    };
    let ok = with(screen, "1e-30", &at("open"));
    assert!(ok.0, "{}", ok.2);
    assert_eq!(scores(&at("open"), &at("run-open")), plain);
    let record = fs::read_to_string(at("run-open/drawn/counts.json")).unwrap();
    assert!(record.contains("\"passes_from\""), "the screen is part of the record: {record}");
    let unlike = with(strict, "0.1", &at("strict"));
    assert!(!unlike.0 && unlike.2.contains("differs from the second stage in its"), "{}", unlike.2);
    assert!(!at("strict").exists());
    // A second stage brings the screen that its scale was fitted with; a mean of several has none.
    let fast = models.join("mithras-fast");
    let ok = made(&first, &fast, &at("kept"), &[]);
    assert!(ok.0, "{}", ok.2);
    let kept = infer::ModelPackage::open(&at("kept")).unwrap();
    assert_eq!(kept.card.screen, infer::ModelPackage::open(&fast).unwrap().card.screen);
    let mean = run(
        &["detectors", "combine", "--name", "mean"],
        &[("--first", &*first), ("--second", &*fast), ("--second", &*fast), ("--out", &at("none"))],
    );
    assert!(!mean.0 && mean.2.contains("differ in their screen"), "{}", mean.2);

    let again = made(&first, &first, &at("same"), &[]);
    assert!(!again.0 && again.2.contains("holds a package already"), "{}", again.2);
    let none = made(&subtypes, &first, &at("none"), &[]);
    assert!(!none.0 && none.2.contains("has no first stage"), "{}", none.2);
    assert!(!at("none").exists());
}

#[test]
fn the_fast_detector_finds_drawn_figures() {
    let dir = tempfile::tempdir().unwrap();
    let (slide, out) = (dir.path().join("drawn.tiff"), dir.path().join("out"));
    let layout = common::draw(&slide, 900, 800, 5, 2);
    let words = ["detect", "--engine", "native", "--model", "fast"];
    let found = run(&words, &[("--out", &out), ("", &slide)]);
    assert!(found.0, "{}", found.2);
    let text = fs::read_to_string(out.join("drawn/detections.csv")).unwrap();
    let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|h| *h == name).unwrap();
    let (x, y, accepted) = (column("x_um"), column("y_um"), column("accepted"));
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|l| l.split(',').collect()).collect();
    let near = |x_um: f64, y_um: f64| {
        let at = |row: &Vec<&str>, k: usize| row[k].parse::<f64>().unwrap();
        rows.iter().any(|r| r[accepted] == "true" && (at(r, x) - x_um).hypot(at(r, y) - y_um) < 7.5)
    };
    let hit = layout.truth().iter().filter(|f| near(f.x_px * 0.25, f.y_px * 0.25)).count();
    assert!(hit >= 1, "none of the drawn figures: {text}");
    let record = fs::read_to_string(out.join("run.json")).unwrap();
    assert!(record.contains("mithras-fast"), "{record}");
}

#[test]
fn an_operating_point_is_asked_for_by_name_and_is_in_every_table() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let words = ["detectors", "import", "--mpp", "0.25", "--name", "cells", "--license", "none"];
    let made = run(&words, &[("--onnx", &onnx()), ("--out", &at("package"))]);
    assert!(made.0, "{}", made.2);
    let card = at("package").join("card.toml");
    let named = |name: &str, seg: f32| {
        format!(
            "\n[operating_points.{name}]\nseg = {seg}\ncls = 0.0\nprecision = 0.5\nrecall = 0.9\n\
             provenance = \"a test\"\n"
        )
    };
    let text = fs::read_to_string(&card).unwrap();
    let text = text + &named("sensitive", 0.125) + &named("balanced", 0.25);
    fs::write(&card, text).unwrap();
    let slide = at("drawn.tiff");
    common::draw(&slide, 900, 800, 5, 2);
    let detect = |out: &str, more: &[&str]| {
        let words = [&["detect", "--engine", "rten"], more].concat();
        run(&words, &[("--model", &at("package")), ("--out", &at(out)), ("", &slide)])
    };
    let mut figures = vec![];
    for (out, more, name, seg) in [
        ("sensitive", &["--operating-point", "sensitive"][..], "sensitive", 0.125),
        // The package's own pair has a name, as the card names the same numbers.
        ("own", &[], "balanced", 0.25),
        ("given", &["--operating-point", "0.9,0"], "given", 0.9),
    ] {
        let found = detect(out, more);
        assert!(found.0, "{}", found.2);
        let mut table = csv::Reader::from_path(at(out).join("counts.csv")).unwrap();
        let head = table.headers().unwrap().clone();
        let line = table.records().next().unwrap().unwrap();
        let cell = |name: &str| &line[head.iter().position(|h| h == name).unwrap()];
        assert_eq!(cell("operating_point"), name);
        assert_eq!(cell("threshold_seg"), seg.to_string());
        assert_eq!(cell("outside_tissue").parse::<usize>().unwrap(), 0);
        figures.push(cell("figures").parse::<usize>().unwrap());
        let counts: serde_json::Value =
            serde_json::from_slice(&fs::read(at(out).join("drawn/counts.json")).unwrap()).unwrap();
        assert_eq!(counts["operating_point"], name);
        let config: serde_json::Value =
            serde_json::from_slice(&fs::read(at(out).join("run.json")).unwrap()).unwrap();
        assert_eq!(config["config"]["operating_point"], name);
        let html = fs::read_to_string(at(out).join("summary.html")).unwrap();
        assert!(html.contains(&format!("<dd>{name}: s_seg")) && html.contains("Outside tissue"));
    }
    assert!(figures[0] >= figures[1] && figures[1] >= figures[2] && figures[0] > figures[2]);
    let none = detect("none", &["--operating-point", "bold"]);
    assert!(!none.0 && none.2.contains("bold") && none.2.contains("sensitive"), "{}", none.2);
}
