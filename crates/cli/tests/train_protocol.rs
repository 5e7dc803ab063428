//! A task from folders of images to a package that classifies, through the command line (training
//! build only).
#![cfg(feature = "train")]

use assert_cmd::Command;
use image::{Rgb, RgbImage};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn mithras(args: &[&str]) -> (bool, String) {
    let output = Command::new(crate::training_program()).args(args).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

fn drawn(dir: &Path) {
    for (part, sources) in [("train", 3_u32), ("test", 1)] {
        for (c, class) in ["plain", "marked"].iter().enumerate() {
            for s in 0..sources {
                let folder = dir.join(part).join(class).join(format!("{part}{s}"));
                fs::create_dir_all(&folder).unwrap();
                for k in 0..2_u32 {
                    // Test images have the pixels of no training image.
                    let k_of_part = if part == "test" { k + 2 } else { k };
                    let colour = [(20 + 150 * c) as u8, (90 + 9 * s) as u8, k_of_part as u8];
                    RgbImage::from_fn(40, 40, |x, y| {
                        let near = (i64::from(x) - 20).pow(2) + (i64::from(y) - 20).pow(2) < 80;
                        if near { Rgb(colour) } else { Rgb([220, 190, 210 - s as u8]) }
                    })
                    .save(folder.join(format!("{k}.png")))
                    .unwrap();
                }
            }
        }
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn folders_to_folds_to_test_to_package() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drawn(&data);
    let preset = testkit::workspace().join("presets/finetune-ami-br-vit-tiny.toml");
    let run = dir.path().join("run");
    let text = |p: &Path| p.to_str().unwrap().to_owned();
    let (preset, data, run_dir) = (text(&preset), text(&data), text(&run));
    let words = |more: &[&str]| {
        let mut args = vec!["train", "finetune", "--preset", &preset, "--data", &data];
        if !more.contains(&"--out") {
            args.extend(["--out", &run_dir]);
        }
        args.extend(["--device", "cpu", "--threads", "1"]);
        for set in [
            "task=\"folder\"",
            "positive=\"marked\"",
            "model.image=32",
            "data.crop=21",
            "train.epochs=2",
            "train.batch=4",
            "train.warmup_epochs=1.0",
            "train.precision=\"f32\"",
            "symmetries=8",
        ] {
            args.extend(["--set", set]);
        }
        args.extend(more);
        args.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let train = |more: &[&str]| {
        let words = words(more);
        mithras(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (ok, printed) = train(&["--fold", "0"]);
    assert!(ok && printed.contains("1 of 3 folds"), "{printed}");
    let (ok, printed) = train(&["--fold", "3"]);
    assert!(!ok && printed.contains("from 0 to 2"), "{printed}");
    let (ok, printed) = train(&["--fold", "0"]);
    assert!(!ok && printed.contains("--resume to continue"), "{printed}");
    assert!(printed.contains("a run is already here; resume it, or choose another folder"));
    let mut open = words(&["--fold", "1"]);
    let at = open.iter().position(|w| w.starts_with("positive=")).unwrap();
    open.drain(at - 1..=at);
    let (ok, printed) = mithras(&open.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!ok && printed.contains("state which class is the positive one"), "{printed}");
    let (ok, printed) = train(&["--fold", "1", "--set", "positive=\"nope\""]);
    assert!(!ok && printed.contains("--set positive=CLASS"), "{printed}");
    let (ok, printed) = train(&["--fold", "1", "--folds", "nowhere.json"]);
    assert!(!ok && printed.contains("nowhere.json"), "{printed}");
    let test = ["train", "test", "--run", &run_dir, "--data", &data, "--device", "cpu"];
    let (ok, printed) = mithras(&test);
    assert!(!ok && printed.contains("not trained yet"), "{printed}");
    let (ok, printed) = train(&["--resume"]);
    assert!(ok && printed.contains("over 3 folds"), "{printed}");
    let (ok, printed) = train(&["--fold", "none"]);
    assert!(ok && run.join("final/model.safetensors").is_file(), "{printed}");
    assert!(!printed.contains("folds are done"), "{printed}");
    let (ok, printed) = train(&["--init", "no-such-package"]);
    assert!(!ok && printed.contains("no such file of weights, and no model `no-such"), "{printed}");
    let metrics = json(&run.join("metrics.json"));
    assert_eq!((&metrics["n"], &metrics["run"]["folds"]), (&12.into(), &3.into()));
    assert!(metrics["over_folds"]["macro_f1"]["sd"].is_number());

    let (ok, printed) = mithras(&test);
    assert!(ok, "{printed}");
    assert_eq!(json(&run.join("test/metrics.json"))["n"], 12);
    assert_eq!(json(&run.join("test/ensemble.json"))["n"], 4);
    assert_eq!(json(&run.join("test/final.json"))["n"], 4);
    let (ok, printed) = mithras(&test);
    assert!(!ok && printed.contains("scored on this test set before"), "{printed}");

    // The training slides as a test set.
    let seen = dir.path().join("seen");
    drawn(&seen);
    fs::remove_dir_all(seen.join("test")).unwrap();
    fs::rename(seen.join("train"), seen.join("test")).unwrap();
    let (out, seen) = (text(&dir.path().join("seen-results")), text(&seen));
    let seen =
        ["train", "test", "--run", &run_dir, "--data", &seen, "--device", "cpu", "--out", &out];
    let (ok, printed) = mithras(&seen);
    assert!(
        !ok && printed.contains("3 of the slides or images of this test set (train0"),
        "{printed}"
    );
    assert!(printed.contains("--allow-seen"), "{printed}");
    let tested = fs::read(run.join("tested.json")).unwrap();
    let (ok, printed) = mithras(&[&seen[..], &["--allow-seen"]].concat());
    assert!(ok && printed.contains("warning: ") && printed.contains("(train0"), "{printed}");
    assert!(json(&Path::new(&out).join("metrics.json"))["notes"].to_string().contains("(train0"));
    fs::write(run.join("tested.json"), tested).unwrap();

    // Another set needs no --again and does not touch the first one's results, but is scored once, too.
    let other = dir.path().join("other/test");
    let mut copied = 0;
    for class in fs::read_dir(Path::new(&data).join("test")).unwrap().map(|c| c.unwrap()) {
        let (from, to) = (class.path().join("test0"), other.join(class.file_name()).join("test0"));
        fs::create_dir_all(&to).unwrap();
        for image in fs::read_dir(from).unwrap().skip(1).map(|i| i.unwrap()) {
            fs::copy(image.path(), to.join(image.file_name())).unwrap();
            copied += 1;
        }
    }
    let second = text(other.parent().unwrap());
    let second = ["train", "test", "--run", &run_dir, "--data", &second, "--device", "cpu"];
    let (ok, printed) = mithras(&second);
    assert!(ok, "{printed}");
    let tested = json(&run.join("tested.json"));
    assert_eq!(
        (&tested["schema"], tested["sets"].as_array().unwrap().len()),
        (&"mithras.tested/2".into(), 2)
    );
    let digest = tested["sets"][1]["test_set_sha256"].as_str().unwrap();
    let numbered = run.join(format!("test-{}", &digest[..8]));
    assert_eq!(json(&numbered.join("ensemble.json"))["n"], copied);
    assert_eq!(json(&run.join("test/ensemble.json"))["n"], 4);
    for again in [&test[..], &second[..]] {
        let (ok, printed) = mithras(again);
        assert!(!ok && printed.contains("scored on this test set before"), "{printed}");
    }
    let (ok, printed) = mithras(&[&test[..], &["--again"]].concat());
    assert!(ok, "{printed}");
    // A full output is an error of these verbs, too.
    #[cfg(target_os = "linux")]
    for line in [
        [&test[..], &["--again"]].concat().iter().map(|w| (*w).to_owned()).collect(),
        words(&["--resume"]),
        [
            "train",
            "package",
            "--run",
            &run_dir,
            "--fold",
            "1",
            "--license",
            "none",
            "--name",
            "n",
            "--out",
            "full",
        ]
        .map(str::to_owned)
        .into(),
    ] {
        let line: Vec<std::ffi::OsString> = line.into_iter().map(Into::into).collect();
        let program = crate::training_program();
        assert_eq!(crate::special::full_in(program, dir.path(), &line), None);
    }
    // Weights to start from, where the preset asks for some.
    let started = text(&dir.path().join("started"));
    let weights = text(&run.join("final/model.safetensors"));
    let more = ["--out", &started, "--fold", "0", "--set", "init=\"checkpoint\""];
    let (ok, printed) = train(&more);
    assert!(!ok && printed.contains("--init FILE"), "{printed}");
    let (ok, printed) = train(&[&more[..], &["--init", &weights]].concat());
    assert!(ok, "{printed}");
    // A note of before there were several.
    let old = &tested["sets"][0];
    let old = serde_json::json!({"test_set_sha256": old["test_set_sha256"], "items": 4});
    fs::write(run.join("tested.json"), old.to_string()).unwrap();
    let (ok, printed) = mithras(&test);
    assert!(!ok && printed.contains("scored on this test set before"), "{printed}");

    let packaged = |fold: &str| {
        let out = dir.path().join(format!("package-{fold}"));
        let (fold, folder) = (["--run", &run_dir, "--fold", fold], text(&out));
        let names = ["--license", "none", "--name", "drawn", "--out", &folder];
        let (ok, printed) = mithras(&[&["train", "package"], &fold[..], &names].concat());
        assert!(ok, "{printed}");
        out
    };
    let card = fs::read_to_string(packaged("none").join("card.toml")).unwrap();
    assert!(card.contains("fold = \"none\""), "{card}");
    let package = text(&packaged("1"));
    let out = text(&dir.path().join("out.csv"));
    let tests = text(&Path::new(&data).join("test"));
    let (ok, printed) =
        mithras(&["classify", &tests, "--model", &package, "--out", &out, "--engine", "rten"]);
    assert!(ok, "{printed}");
    // The exported network gives the same results as the fold's model on the test part.
    let of = |path: &Path, fold: &str| -> Vec<(String, f64)> {
        let text = fs::read_to_string(path).unwrap();
        let rows = text.lines().skip(1).map(|l| l.split(',').collect::<Vec<_>>());
        let kept = rows.filter(|r| r.len() == 4 || r[3] == fold);
        let name = |r: &[&str]| r[0].rsplit("test/").next().unwrap().to_owned();
        let mut all: Vec<_> = kept.map(|r| (name(&r), r[r.len() - 2].parse().unwrap())).collect();
        all.sort_by(|a: &(String, f64), b| a.0.cmp(&b.0));
        all
    };
    let torch = of(&run.join("test/predictions.csv"), "1");
    let onnx = of(Path::new(&out), "1");
    assert_eq!(torch.len(), 4);
    for ((a, p), (b, q)) in torch.iter().zip(&onnx) {
        // Weights are stored as f16.
        assert!(a == b && (p - q).abs() < 2e-4, "{a} {p}, {b} {q}");
    }
}
