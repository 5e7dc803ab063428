//! `mithras classify` as a user meets it.

use assert_cmd::Command;
use std::fs;
use std::path::{Path, PathBuf};

/// A package with seeded weights: crops of 32 px at 0.25 um/px, classes a, b, c.
fn tiny() -> PathBuf {
    testkit::workspace().join("crates/infer/tests/golden/tiny")
}

fn classify(inputs: &[&Path], out: &Path, more: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(crate::program());
    command.arg("classify").args(inputs).arg("--out").arg(out).args(["--engine", "rten"]);
    if !more.contains(&"--model") {
        command.arg("--model").arg(tiny());
    }
    let output = command.args(more).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn picture(path: &Path, side: u32, shift: u32) {
    let at = |x: u32, y: u32| image::Rgb([(x * 5 + shift) as u8, (y * 3) as u8, 120]);
    image::RgbImage::from_fn(side, side, |x, y| at(x + 200 - side / 2, y + 200 - side / 2))
        .save(path)
        .unwrap();
}

#[test]
fn any_size_at_any_resolution_gives_one_row() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("crops/deep");
    fs::create_dir_all(&folder).unwrap();
    for (name, side) in [("small", 20), ("exact", 32), ("large", 128), ("wide", 301)] {
        picture(&folder.join(format!("{name}.png")), side, 0);
    }
    fs::write(folder.join("note.txt"), "no image").unwrap();
    let out = dir.path().join("out.csv");
    let (ok, stdout, stderr) = classify(&[&dir.path().join("crops")], &out, &["--json"]);
    assert!(ok, "{stderr}");
    let printed: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&printed["images"], &printed["mpp"]), (&4.into(), &0.25.into()));
    assert_eq!(printed["mpp_source"], "the model's own");
    let text = fs::read_to_string(&out).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(rows[0], ["file", "class", "p_a", "p_b", "p_c"]);
    assert_eq!(rows.len(), 5);
    for row in &rows[1..] {
        let p: Vec<f64> = row[2..].iter().map(|v| v.parse().unwrap()).collect();
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{row:?}");
        let best = p.iter().copied().fold(0.0, f64::max);
        let index = p.iter().position(|v| *v == best).unwrap();
        assert_eq!(row[1], ["a", "b", "c"][index]);
    }
    // The middle of an image decides, whatever surrounds it.
    let p = |name: &str| rows.iter().find(|r| r[0].contains(name)).unwrap()[2..].to_vec();
    assert_eq!(p("exact"), p("large"));

    // At another resolution other pixels are seen.
    let (ok, stdout, stderr) = classify(&[&folder.join("large.png")], &out, &["--mpp", "0.5"]);
    assert!(ok && stdout.contains("0.5 um/px"), "{stdout}{stderr}");
    let again = fs::read_to_string(&out).unwrap();
    assert_ne!(again.lines().nth(1).unwrap().split(',').nth(2).unwrap(), p("large")[0]);
    assert_eq!(again.lines().count(), 2);
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    picture(&at("good.png"), 40, 3);
    fs::write(at("broken.png"), b"no image at all").unwrap();
    image::RgbImage::new(4, 4).save(at("dot.png")).unwrap();
    let out = at("out.csv");
    let inputs = [at("good.png"), at("broken.png"), at("dot.png")];
    let refs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let (ok, stdout, stderr) = classify(&refs, &out, &[]);
    assert!(!ok && stdout.contains("1 image at"), "{stdout}");
    let code = |inputs: &[&Path]| {
        let mut verb = std::process::Command::new(crate::program());
        verb.arg("classify").args(inputs).arg("--out").arg(at("o.csv")).arg("--model").arg(tiny());
        verb.args(["--engine", "rten"]).output().unwrap().status.code()
    };
    assert_eq!((code(&refs), code(&refs[1..])), (Some(3), Some(1)));
    assert!(stderr.contains("broken.png") && stderr.contains("less than 8 px"), "{stderr}");
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count(), 2);

    fs::create_dir(at("empty")).unwrap();
    for (inputs, more, word) in [
        (at("empty"), &[][..], "no image in this folder"),
        (at("missing"), &[], "no such file or folder"),
        (at("good.png"), &["--model", "nobody"], "no model `nobody`"),
        (at("good.png"), &["--mpp", "NaN"], "not a finite number"),
    ] {
        let (ok, _, stderr) = classify(&[&inputs], &out, more);
        assert!(!ok && stderr.contains(word), "{word}: {stderr}");
    }
}

/// Whatever a file is cut at, it is named and has no row: no part of it is taken for grey.
#[test]
fn a_file_that_ends_midway_is_named_and_the_rest_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    let mut inputs = vec![at("whole.png")];
    picture(&inputs[0], 40, 3);
    for ending in ["png", "jpg", "tiff"] {
        let whole = at(&format!("all.{ending}"));
        picture(&whole, 96, 5);
        inputs.push(whole.clone());
        let bytes = fs::read(&whole).unwrap();
        for percent in [30, 60, 97] {
            let cut = at(&format!("cut-{percent}.{ending}"));
            fs::write(&cut, &bytes[..bytes.len() * percent / 100]).unwrap();
            inputs.push(cut);
        }
    }
    let refs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let out = at("out.csv");
    let (ok, stdout, stderr) = classify(&refs, &out, &["--json"]);
    let printed: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert!(!ok && printed["images"] == 4, "{stdout}{stderr}");
    let table = fs::read_to_string(&out).unwrap();
    for input in &inputs {
        let name = input.file_name().unwrap().to_str().unwrap();
        let cut = name.starts_with("cut");
        assert_eq!(table.contains(name), !cut, "{name}: {table}");
        assert_eq!(stderr.contains(name), cut, "{name}: {stderr}");
        assert_eq!(printed["failed"].to_string().contains(name), cut, "{name}: {stdout}");
    }
    assert_eq!(table.lines().count(), 5, "{table}");
}

#[test]
fn the_subtype_models_go_by_short_names_where_they_are_bundled() {
    let bundled: Vec<&str> = infer::ModelPackage::bundled_names().collect();
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("a.png");
    picture(&image, 128, 9);
    let out = dir.path().join("out.csv");
    let mut answers = Vec::new();
    for (model, header) in [
        ("atypical", "file,class,p_typical,p_atypical"),
        (
            "morphology",
            "file,class,p_prometaphase,p_metaphase,p_ring_shape,p_anaphase_telophase,\
             p_bipolar_asymmetric,p_multipolar,p_segregation,p_other",
        ),
    ] {
        let (ok, _, stderr) = classify(&[&image], &out, &["--model", model]);
        if !bundled.contains(&format!("mithras-{model}").as_str()) {
            assert!(!ok && stderr.contains(&format!("no model `{model}`")), "{stderr}");
            continue;
        }
        assert!(ok, "{stderr}");
        let text = fs::read_to_string(&out).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next().unwrap(), header);
        let cells: Vec<String> = lines.next().unwrap().split(',').map(String::from).collect();
        answers.push(cells);
    }
    // One network in two packages: atypical is as likely as the four atypical morphologies.
    let [two, eight] = &answers[..] else { return };
    let numbers = |cells: &[String]| -> Vec<f64> {
        cells.iter().map(|c| c.parse().expect("a probability")).collect()
    };
    let (two, p) = (numbers(&two[2..]), &two[1]);
    assert!((two[1] - numbers(&eight[6..]).iter().sum::<f64>()).abs() < 1e-4);
    let card = infer::ModelPackage::bundled_named("atypical").unwrap().card.classifier.unwrap();
    let threshold = f64::from(card.threshold.expect("the bundled card has an operating point"));
    assert_eq!(p == "atypical", two[1] >= threshold);
}

#[test]
fn what_detection_costs_is_held_against_the_peak() {
    let bench = |more: &[&str]| {
        let mut command = Command::new(crate::program());
        let output = command
            .args(["bench", "detect", "--runs", "1", "--model", "fast"])
            .args(more)
            .output()
            .unwrap();
        (
            output.status.success(),
            output.stdout,
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (fine, json, error) =
        bench(&["--engine", "native", "--candidates", "58", "--open-share", "0.5", "--json"]);
    assert!(fine, "{error}");
    let found: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(found["schema"], "mithras.budget/1");
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let [first, screen, second] = [0, 1, 2].map(|i| &found["networks"][i]);
    // A window for each square of 240 um, and 58 crops, of which half pass the screen and are asked twice.
    assert!((number(&first["passes_per_mm2"]) - 1.0 / 0.24_f64.powi(2)).abs() < 1e-9);
    assert!((number(&screen["passes_per_mm2"]) - 58.0).abs() < 1e-9);
    assert!((number(&second["passes_per_mm2"]) - 58.0).abs() < 1e-9);
    let peak = number(&found["machine"]["peak_flops"]);
    for network in [first, screen, second] {
        let least = number(&network["flop"]) * number(&network["passes_per_mm2"]) / peak;
        assert!((number(&network["least_s_per_mm2"]) / least - 1.0).abs() < 1e-9);
    }
    let native = &found["engines"][0];
    assert_eq!(native["engine"], "native");
    let stages = native["stages"].as_array().unwrap();
    let sum: f64 = stages.iter().map(|s| number(&s["s_per_mm2"])).sum();
    assert!(stages.len() == 3 && (number(&native["s_per_mm2"]) - sum).abs() < 1e-9);
    for (wrong, word) in
        [(["--engine", "torch"], "native, openvino"), (["--open-share", "2"], "from 0 to 1")]
    {
        let (fine, _, error) = bench(&wrong);
        assert!(!fine && error.contains(word), "{error}");
    }
}

#[test]
fn timing_encoders_names_the_build_it_needs() {
    let mut command = Command::new(crate::training_program());
    let output = command.args(["bench", "encoders", "--device", "abacus"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    let word = if cfg!(feature = "train") { "abacus" } else { "training build" };
    assert!(printed.contains(word), "{printed}");
}

#[cfg(feature = "train")]
#[test]
fn times_of_encoders_go_into_a_new_folder() {
    let dir = tempfile::tempdir().unwrap();
    let (out, scores) = (dir.path().join("new/bench"), dir.path().join("scores.csv"));
    let rows = ["vit_tiny_patch16_224,0.9,0.8,0.7", "efficientnet_lite0,0.6,,0.5", "uni_v1,1,1,1"];
    fs::write(&scores, format!("encoder,crop,region,slide\n{}\n", rows.join("\n"))).unwrap();
    let bench = |out: &Path| {
        let mut command = Command::new(crate::training_program());
        command.args(["bench", "encoders", "vit_tiny_patch16_224", "efficientnet_lite0"]);
        command.args(["--image", "32", "--runs", "1", "--batch", "1", "--scores"]).arg(&scores);
        let output = command.arg("--out").arg(out).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let timed = bench(&out);
    assert!(timed.0, "{}", timed.1);
    let table = fs::read_to_string(out.join("encoders.csv")).unwrap();
    // The head, both, and ViT-base that all are held against.
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(out.join("encoders.json").is_file());
    // Encoders that were timed and have a score: three marks, and two where the region's is unknown.
    let picture = fs::read_to_string(out.join("encoders.svg")).unwrap();
    for (name, drawn) in
        [("vit_tiny_patch16_224", true), ("efficientnet_lite0", true), ("uni_v1", false)]
    {
        assert_eq!(picture.contains(&format!(">{name}<")), drawn, "{name}: {picture}");
    }
    assert_eq!(picture.matches("stroke-dasharray").count(), 3, "{picture}");

    fs::write(&scores, "encoder,crop,region,slide\nuni_v1,1.5,1,1\n").unwrap();
    let why = bench(&dir.path().join("other"));
    assert!(!why.0 && why.1.contains("1.5 is outside 0 to 1"), "{}", why.1);
    assert!(!dir.path().join("other").exists(), "refused before the minutes that timing takes");
}
