//! `mithras evaluate robustness`: a detector on drawn images, a classifier on drawn crops.

use crate::common;
use assert_cmd::Command;
use mithras::demo::Rect;
use std::fs;
use std::path::Path;

fn mithras(args: &[&str]) -> (bool, String, String) {
    let output = Command::new(crate::program()).args(args).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn s(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn card(package: &Path) -> toml::Table {
    fs::read_to_string(package.join("card.toml")).unwrap().parse().unwrap()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn a_detector_is_measured_and_its_card_records_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let onnx = testkit::workspace().join("crates/infer/tests/golden/boxes.onnx");
    let import = ["detectors", "import", "--mpp", "0.25", "--name", "cells", "--license", "none"];
    let (package, out) = (at("package"), at("out"));
    let made = mithras(&[&import[..], &["--onnx", s(&onnx), "--out", s(&package)]].concat());
    assert!(made.0, "{}", made.2);
    fs::create_dir(at("images")).unwrap();
    let mut truth = String::from("slide,x_px,y_px,label\n");
    for seed in [5, 6] {
        let layout = common::draw(&at("drawn.tiff"), 700, 600, seed, 3);
        let slide = slide::Slide::open(at("drawn.tiff")).unwrap();
        let tile = slide.read_at(mitosis::Mpp::PAPER, Rect::new(0, 0, 700, 600)).unwrap();
        let name = format!("image{seed}.png");
        let image = image::RgbImage::from_raw(700, 600, tile.data).unwrap();
        image.save(at("images").join(&name)).unwrap();
        for t in layout.truth() {
            let kind = serde_json::to_value(t.kind).unwrap();
            truth += &format!("{name},{},{},{}\n", t.x_px, t.y_px, kind.as_str().unwrap());
        }
    }
    fs::write(at("truth.csv"), truth).unwrap();
    let (images, csv) = (at("images"), at("truth.csv"));
    let words = [
        ["evaluate", "robustness", "--images", s(&images), "--truth", s(&csv)],
        ["--model", s(&package), "--out", s(&out), "--mpp", "0.25"],
    ]
    .concat();
    let words = [&words[..], &["--engine", "rten", "--changes", "jpeg-70,blur-1.0,scale-0.90"]];
    let words = [&words.concat()[..], &["--card"]].concat();
    let (ok, text, err) = mithras(&words);
    assert!(ok && text.contains("mean F1"), "{text}{err}");

    let found = json(&out.join("robustness.json"));
    assert_eq!(found["schema"], "mithras.robustness/1");
    let names: Vec<&str> = found["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["perturbation"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["clean", "jpeg-70", "blur-1.0", "scale-0.90"]);
    assert_eq!(found["figures"], 6);
    // Darkness finds the drawn figures, and others with them.
    assert!(found["rows"][0]["recall"].as_f64().unwrap() > 0.5, "{}", found["rows"][0]);
    assert_eq!(fs::read_to_string(out.join("robustness.csv")).unwrap().lines().count(), 5);
    let picture = fs::read_to_string(out.join("robustness.svg")).unwrap();
    assert!(picture.contains("blur-1.0"), "{picture}");
    assert!(out.join("candidates.csv").is_file());

    let card = card(&package);
    let printed = &card["results"]["robustness"];
    let close = |a: &toml::Value, b: &serde_json::Value| {
        (a.as_float().unwrap() - b.as_f64().unwrap()).abs() < 1e-12
    };
    assert!(close(&printed["f1_clean"], &found["rows"][0]["f1"]), "{printed}");
    assert!(close(&printed["f1_mean"], &found["mean_f1"]), "{printed}");
    assert_eq!(printed["worst"].as_str(), found["worst"][0].as_str());
    assert_eq!(
        (printed["items"].as_integer(), printed["changes"].as_integer()),
        (Some(6), Some(3))
    );
    assert!(
        printed["command"].as_str().unwrap().contains("evaluate robustness --images"),
        "{printed}"
    );
    // The left half alone: half the area, and only its figures.
    let half: String = ["image5", "image6"].map(|n| format!("{n}.png,0,0,350,600\n")).concat();
    fs::write(at("half.csv"), format!("slide,x_px,y_px,width_px,height_px\n{half}")).unwrap();
    let clean = |truth: &Path, out: &str, more: &[&str]| {
        let out = at(out);
        let words = [
            ["evaluate", "robustness", "--images", s(&images), "--truth", s(truth)],
            ["--model", s(&package), "--out", s(&out), "--mpp", "0.25"],
        ]
        .concat();
        let (ok, _, err) =
            mithras(&[&words[..], &["--engine", "rten", "--changes", "clean"], more].concat());
        assert!(ok, "{err}");
        json(&out.join("robustness.json"))
    };
    let part = clean(&csv, "part", &["--within", s(&at("half.csv"))]);
    let kept = |of: &serde_json::Value, list: &str, x: &str| {
        let images = of["rows"][0]["images"].as_array().unwrap();
        let all = images.iter().flat_map(|i| i[list].as_array().unwrap());
        let left = all.filter(|f| f[x].as_f64().or_else(|| f[0].as_f64()).unwrap() < 87.5);
        left.cloned().collect::<Vec<_>>()
    };
    for (list, x) in [("truth", "0"), ("found", "x_um")] {
        assert_eq!(kept(&part, list, x), kept(&found, list, x));
        let all: usize = part["rows"][0]["images"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i[list].as_array().unwrap().len())
            .sum();
        assert_eq!(all, kept(&found, list, x).len(), "{list}");
    }
    assert!((part["mm2"].as_f64().unwrap() * 2.0 - found["mm2"].as_f64().unwrap()).abs() < 1e-12);
    // A figure marked `ignore` is neither sought nor false where it is found; all else stays.
    let text = fs::read_to_string(&csv).unwrap();
    let hits = |of: &serde_json::Value, row: &str| {
        let um = |k: usize| row.split(',').nth(k).unwrap().parse::<f64>().unwrap() * 0.25;
        let all = of["rows"][0]["images"][0]["found"].as_array().unwrap();
        // What is ignored is a square.
        let away = |f: &&serde_json::Value| {
            let [dx, dy] = [("x_um", 1), ("y_um", 2)].map(|(c, k)| f[c].as_f64().unwrap() - um(k));
            dx.abs().max(dy.abs())
        };
        all.iter().filter(|f| away(f) < 7.5).count()
    };
    let figure = |l: &&str| l.starts_with("image5") && l.ends_with(",mitotic");
    let row = text.lines().filter(figure).find(|l| hits(&found, l) == 1).unwrap();
    let doubtful = at("doubtful.csv");
    fs::write(&doubtful, text.replace(row, &row.replace(",mitotic", ",ignore"))).unwrap();
    let open = clean(&doubtful, "open", &[]);
    assert_eq!((open["figures"].as_u64(), hits(&open, row)), (Some(5), 0));
    assert_eq!(open["rows"][0]["fp"], found["rows"][0]["fp"]);
    // The package is as good as before, and a second measurement takes the place of the first.
    let again = mithras(&words);
    assert!(again.0, "{}", again.2);
    assert_eq!(self::card(&package)["results"]["robustness"]["f1_mean"], printed["f1_mean"]);
}

/// A class without crops has no AUC; neither has a set of one class alone.
fn classes_may_lack_crops(data: &Path, out: &Path, words: &[&str]) {
    for (missing, crops) in [("c", [4, 4, 0]), ("b", [4, 0, 0])] {
        fs::remove_dir_all(data.join("test").join(missing)).unwrap();
        let (ok, text, err) = mithras(words);
        assert!(ok, "{err}");
        let found = json(&out.join("robustness.json"));
        assert_eq!(found["crops"], serde_json::json!(crops));
        assert_eq!(found["classes"], serde_json::json!(["a", "b", "c"]));
        let alone = crops[1] == 0;
        assert_eq!(found["rows"][0]["auc"].is_null(), alone, "{found}");
        assert_eq!(text.lines().nth(1).unwrap().contains(" -"), alone, "{text}");
    }
}

#[test]
fn a_classifier_is_measured_on_labelled_crops() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (package, data, out) = (at("package"), at("data"), at("out"));
    fs::create_dir(&package).unwrap();
    let golden = testkit::workspace().join("crates/infer/tests/golden/tiny");
    for entry in fs::read_dir(golden).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
    }
    for (class, shift) in [("a", 0), ("b", 60), ("c", 120)] {
        let folder = data.join("test").join(class).join("s");
        fs::create_dir_all(&folder).unwrap();
        for k in 0..4_u32 {
            let at = |x: u32, y: u32| image::Rgb([(x * 5 + shift + k) as u8, (y * 3) as u8, 120]);
            image::RgbImage::from_fn(40, 40, at).save(folder.join(format!("{k}.png"))).unwrap();
        }
    }
    let words = [
        ["evaluate", "robustness", "--crops", s(&data), "--task", "folder", "--part", "test"]
            .as_slice(),
        &["--model", s(&package), "--out", s(&out), "--engine", "rten", "--card"],
        &["--changes", "jpeg-30,noise-8"],
    ]
    .concat();
    let (ok, text, err) = mithras(&words);
    assert!(ok && text.contains("mean F1") && text.contains("12 crops"), "{text}{err}");
    let found = json(&out.join("robustness.json"));
    assert_eq!(found["schema"], "mithras.robustness-crops/1");
    assert_eq!(found["crops"], serde_json::json!([4, 4, 4]));
    assert_eq!(found["positive"], serde_json::Value::Null);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        for key in ["f1", "balanced_accuracy", "auc", "ece"] {
            assert!((0.0..=1.0).contains(&row[key].as_f64().unwrap()), "{key}: {row}");
        }
    }
    let table = fs::read_to_string(out.join("robustness.csv")).unwrap();
    let head = "perturbation,f1,precision,recall,balanced_accuracy,auc,ece";
    assert_eq!(table.lines().next(), Some(head));
    assert!(fs::read_to_string(out.join("robustness.svg")).unwrap().contains("noise-8"));
    let printed = &card(&package)["results"]["robustness"];
    let printed = ["items", "changes"].map(|key| printed[key].as_integer());
    assert_eq!(printed, [Some(12), Some(2)]);

    // The values are those of `classify` and `evaluate classification` on the clean crops.
    let predictions = at("p.csv");
    let classify = ["classify", s(&data), "--model", s(&package), "--out", s(&predictions)];
    assert!(mithras(&[&classify[..], &["--engine", "rten"]].concat()).0);
    let mut labels = String::from("file,truth\n");
    for line in fs::read_to_string(&predictions).unwrap().lines().skip(1) {
        let file = line.split(',').next().unwrap();
        let class = Path::new(file).parent().unwrap().parent().unwrap().file_name().unwrap();
        labels += &format!("{file},{}\n", class.to_str().unwrap());
    }
    fs::write(at("labels.csv"), labels).unwrap();
    let labels = at("labels.csv");
    let judge = ["evaluate", "classification", "--predictions", s(&predictions), "--json"];
    let (ok, text, err) = mithras(&[&judge[..], &["--labels", s(&labels)]].concat());
    assert!(ok, "{err}");
    let judged: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (ours, theirs) in
        [("f1", "macro_f1"), ("balanced_accuracy", "balanced_accuracy"), ("auc", "macro_roc_auc")]
    {
        let (a, b) = (rows[0][ours].as_f64().unwrap(), judged[theirs].as_f64().unwrap());
        assert!((a - b).abs() < 1e-5, "{ours}: {a}, {theirs}: {b}");
    }

    classes_may_lack_crops(&data, &out, &words);

    for (more, word) in [
        (["--task", "ami-br", "--part", "test"], "none"),
        (["--task", "folder", "--part", "training"], "none"),
        (["--task", "nuclei", "--part", "test"], "ami-morph"),
    ] {
        let none = at("none");
        let words = [&["evaluate", "robustness", "--crops", s(&none)][..], &more].concat();
        let words = [&words[..], &["--model", s(&package), "--out", s(&out)]].concat();
        let (ok, _, err) = mithras(&words);
        assert!(!ok && err.contains(word), "{err}");
    }
    let (ok, _, err) = mithras(&["evaluate", "robustness", "--crops", s(&data), "--out", s(&out)]);
    assert!(!ok && err.contains("--task"), "{err}");
}
