//! A blinded sample straight from a run: what is in the package, who may move a slide, the review in a
//! browser, the score.

use super::made::{DOTS, Made, dotted, made, start};
use super::page::in_a_browser;
use crops::audit::{Key, Package};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn mithras(args: &[&str], paths: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(crate::program());
    command.args(args);
    for (flag, path) in paths {
        command.args(Some(flag).filter(|f| !f.is_empty())).arg(path);
    }
    command.output().unwrap()
}

/// Six accepted candidates of 15, four rejected ones of 18; the dirt outside the tissue is neither.
fn sample(made: &Made, out: &Path, more: &[(&str, &Path)]) -> Output {
    let args = ["audit", "sample", "--per", "accepted=6", "--per", "rejected=4", "--seed", "5"];
    mithras(&args, &[&[("", made.run.as_path()), ("--out", out)], more].concat())
}

fn done(out: &Output) -> String {
    let printed = [&out.stdout[..], &out.stderr].concat();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&printed));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn drawn() -> (Made, PathBuf) {
    let made = made();
    let out = made.folder.path().join("audit");
    assert!(done(&sample(&made, &out, &[])).contains("10 pictures"));
    (made, out)
}

#[test]
fn candidates_of_a_run_are_drawn_and_cut_from_its_slides() {
    let (made, out) = drawn();
    let key = Key::read(&out.join("key.json")).unwrap();
    let strata: Vec<_> = key.strata.iter().map(|s| (s.stratum.as_str(), s.pool, s.drawn)).collect();
    assert_eq!(strata, [("accepted", 15, 6), ("rejected", 18, 4)]);
    let package = Package::read(&out.join("package")).unwrap();
    assert!(package.items.iter().all(|i| (i.mpp, i.close) == (Some(0.25), Some(128))));
    let shown = std::fs::read_to_string(out.join("package/audit.json")).unwrap();
    for secret in ["accepted", "rejected", "s_cls", "dots", "drawn", "run", "0.9"] {
        assert!(!shown.contains(secret), "{secret} is in the package");
    }
    for item in &key.items {
        let picture = out.join("package/images").join(format!("{}.png", item.id));
        let picture = image::open(picture).unwrap().into_rgb8();
        assert_eq!(picture.dimensions(), (384, 384));
        assert_eq!(item.stratum == "accepted", item.meta.s_cls.is_some_and(|s| s.get() >= 0.7));
        if item.meta.slide == "dots" {
            let at = item.meta.centroid.unwrap();
            assert!(DOTS.contains(&[at.x, at.y]));
            // Ten black px around the middle, white beyond.
            let dark = |x: u32, y: u32| picture.get_pixel(x, y).0 == [0; 3];
            assert!(dark(188, 188) && dark(195, 195) && !dark(198, 192) && !dark(192, 185));
        }
    }

    // A slide that was moved is an error with a remedy, and nothing is written.
    let (slides, moved) = (made.folder.path().join("slides"), made.folder.path().join("moved"));
    std::fs::rename(&slides, &moved).unwrap();
    let other = made.folder.path().join("other");
    let refused = sample(&made, &other, &[]);
    let answer = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{answer}");
    assert!(answer.contains("its file is not at") && answer.contains("--slides"), "{answer}");
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 0);
    // Found again, it is the same sample.
    done(&sample(&made, &other, &[("--slides", moved.as_path())]));
    assert_eq!(Key::read(&other.join("key.json")).unwrap(), key);
    // Another slide under its name is refused.
    std::fs::copy(moved.join("dots.png"), moved.join("drawn.tiff")).unwrap();
    let third = made.folder.path().join("third");
    let refused = sample(&made, &third, &[("--slides", moved.as_path())]);
    let answer = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && answer.contains("is not the one of the run"), "{answer}");
    // A run knows nothing of tissue.
    let tumour = ["audit", "sample", "--question", "tumour"];
    let refused = mithras(&tumour, &[("", &made.run), ("--out", &third)]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("takes a corpus"));
}

#[test]
fn two_reviewers_of_a_run_in_a_real_browser() {
    let (_made, out) = drawn();
    let mut serve = Command::new(crate::program());
    let serve = serve.args(["audit", "serve", "--port", "0"]).arg(out.join("package"));
    let server = start(serve).expect("an address");
    let shots = std::env::var_os("MITHRAS_SCREENSHOTS");
    if !in_a_browser("review.mjs", &server.url, &[], shots.as_deref()) {
        return;
    }
    drop(server);
    let scored = done(&mithras(&["audit", "score", "--json"], &[("", &out)]));
    let scored: Value = serde_json::from_str(&scored).unwrap();
    let who = |name: &str| {
        let list = scored["reviewers"].as_array().unwrap();
        list.iter().find(|r| r["name"] == name).unwrap()
    };
    assert_eq!((&who("anna")["reviewed"], &who("anna")["of"]), (&3.into(), &10.into()));
    assert_eq!(who("anna")["boxes"]["shares"][1], 1.0);
    assert_eq!(who("bert")["reviewed"], 10);
    assert_eq!(who("bert")["boxes"]["shares"][2], 1.0);
    assert_eq!(who("bert")["strata"][0]["cohorts"][0]["pool"], 15);
    let a = &scored["agreement"][0];
    // anna: yes, no, unsure; bert: yes, unsure, unsure.
    assert_eq!((&a["both"], &a["agree"]), (&3.into(), &2.into()));
    let kappa = a["kappa"].as_f64().unwrap();
    assert!((kappa - 0.5).abs() < 1e-9, "{kappa}");
}

#[test]
fn the_table_of_many_slides_in_a_real_browser() {
    let made = dotted();
    // Fourteen copies of one slide's results, each with a count of its own.
    let dots = made.run.join("dots");
    let gallery = image::RgbImage::from_pixel(256, 128, image::Rgb([225, 170, 205]));
    for picture in ["figures.jpg", "thumbnail.jpg"] {
        gallery.save(dots.join(picture)).unwrap();
    }
    for k in 0..14 {
        let copy = made.run.join(format!("copy-{k}"));
        std::fs::create_dir(&copy).unwrap();
        for file in std::fs::read_dir(&dots).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
        let counts = copy.join("counts.json");
        let text = std::fs::read_to_string(&counts).unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        let figures = (k * 7) % 15;
        (value["figures"], value["candidates"]) = (figures.into(), figures.into());
        let table = std::fs::read_to_string(dots.join("detections.csv")).unwrap();
        let mut rows = table.lines();
        let (head, row) = (rows.next().unwrap(), rows.next().unwrap());
        let rows = vec![row; figures].join("\n");
        std::fs::write(copy.join("detections.csv"), format!("{head}\n{rows}\n")).unwrap();
        value["slide"]["name"] = format!("copy-{k}").into();
        std::fs::write(&counts, value.to_string()).unwrap();
        let thumbnail = image::RgbImage::from_pixel(600, 400, image::Rgb([225, 170, 205]));
        thumbnail.save(copy.join("thumbnail.jpg")).unwrap();
    }
    let record = json!({
        "version": "0", "command": ["mithras", "detect"], "config": {}, "config_sha256": "made",
        "engine": {
            "engine": "rten", "provider": "cpu", "library": null, "plugin": null, "version": "0",
            "segmenter_precision": "f32", "classifier_precision": "f32", "threads": 1,
            "segmenter_batch": 1, "classifier_batch": 1, "fallback_reason": null
        },
        "workers": {
            "readers": 1, "in_flight": 1, "segment_batch": 1, "classify_batch": 1, "processors": 1
        }
    });
    std::fs::create_dir(made.run.join(".runs")).unwrap();
    std::fs::write(made.run.join(".runs/a.json"), record.to_string()).unwrap();
    done(&mithras(&["gather"], &[("", &made.run)]));
    let shot = std::env::var_os("MITHRAS_SCREENSHOT_SUMMARY");
    let summary = made.run.join("summary.html");
    in_a_browser("summary.mjs", summary.to_str().unwrap(), &[], shot.as_deref());
}
