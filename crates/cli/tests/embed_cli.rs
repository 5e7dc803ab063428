//! `mithras encoders` and `mithras embed` with a tiny encoder: packages, slides, crops, resuming.

use encoders::encoder::EncoderConfig;
use encoders::onnx::outline;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn mithras(args: &[&str]) -> (Option<i32>, String, String) {
    let out = Command::new(crate::program()).args(args).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

fn s(p: &Path) -> &str {
    p.to_str().unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Options of a conversion.
const OPTIONS: [&str; 14] = [
    "--name",
    "tiny",
    "--image",
    "32",
    "--mean",
    "0.7032,0.5361,0.6610",
    "--std",
    "0.2172,0.2608,0.2072",
    "--mpp",
    "0.5",
    "--pooling",
    "mean of patches",
    "--license",
    "none",
];

fn package(dir: &Path) -> PathBuf {
    let onnx = testkit::workspace().join("crates/features/tests/golden/tiny.onnx");
    let out = dir.join("tiny");
    let args = [&["encoders", "convert", "--onnx", s(&onnx), "--out", s(&out)][..], &OPTIONS];
    let (code, _, err) = mithras(&args.concat());
    assert_eq!(code, Some(0), "{err}");
    out
}

/// The program without libtorch makes a package of a file of weights, and embeds with it.
#[test]
fn weights_become_a_package_without_libtorch() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let network = EncoderConfig { image: 32, ..EncoderConfig::new("vit_tiny_patch16_224", 0) };
    let (weights, pictures) = (at("w.safetensors"), at("pictures"));
    testkit::weights::drawn(&weights, &outline(&network.network().unwrap()));
    std::fs::create_dir(&pictures).unwrap();
    draw(&pictures.join("a.png"), 0);
    draw(&pictures.join("b.png"), 9);
    let convert = |encoder: &str, out: &Path| {
        let args = ["encoders", "convert", "--weights", s(&weights), "--encoder", encoder];
        let more =
            ["--out", s(out), "--name", "own", "--license", "none", "--image", "32", "--json"];
        mithras(&[&args[..], &more].concat())
    };
    let own = at("own");
    let (code, made, err) = convert("vit_tiny_patch16_224", &own);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(json(&made)["card"]["encoder"]["width"], 192);
    let table = at("features.parquet");
    let args = ["embed", "--encoder", s(&own), "--crops", s(&pictures), "--out", s(&table)];
    let (code, _, err) = mithras(&args);
    assert_eq!((code, table.is_file()), (Some(0), true), "{err}");
    // Features by another network do not take their place, nor do they take that of another file.
    let other = package(dir.path());
    let again = |encoder: &Path, out: &Path, more: &[&str]| {
        let args = ["embed", "--encoder", s(encoder), "--crops", s(&pictures), "--out", s(out)];
        mithras(&[&args[..], more].concat())
    };
    let before = std::fs::read(&table).unwrap();
    let (code, _, err) = again(&other, &table, &[]);
    assert!(code == Some(1) && err.contains("encoder_sha256 was"), "{err}");
    assert!(err.contains("features.parquet") && err.contains("--overwrite"), "{err}");
    assert_eq!(std::fs::read(&table).unwrap(), before);
    let (code, _, err) = again(&own, &table, &[]);
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) = again(&other, &table, &["--overwrite"]);
    assert!(code == Some(0) && std::fs::read(&table).unwrap() != before, "{err}");
    // Nor do those of other crops, whichever are added, or changed under the same names.
    let (code, _, err) = again(&own, &table, &["--overwrite"]);
    assert_eq!(code, Some(0), "{err}");
    draw(&pictures.join("more.png"), 7);
    let (code, _, err) = again(&own, &table, &[]);
    assert!(code == Some(1) && err.contains("dataset_sha256 was"), "{err}");
    std::fs::remove_file(pictures.join("more.png")).unwrap();
    let (code, _, err) = again(&own, &table, &[]);
    assert_eq!(code, Some(0), "{err}");
    let notes = at("notes.parquet");
    std::fs::write(&notes, "not a table").unwrap();
    let (code, _, err) = again(&own, &notes, &[]);
    assert!(code == Some(1) && err.contains("no earlier run wrote it"), "{err}");

    let (code, _, err) = convert("uni_v1", &at("none"));
    assert!(code == Some(1) && err.contains("w.safetensors") && !at("none").exists(), "{err}");
    assert!(err.contains("does not fit the model as a whole"), "{err}");
}

/// `embed --weights` gives what the package of the same file gives, and refuses what a package of it would.
#[test]
fn weights_are_embedded_as_by_their_package() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let network = EncoderConfig { image: 32, ..EncoderConfig::new("lunit-vits16", 0) };
    let network = network.network().unwrap();
    let (weights, slides) = (at("w.safetensors"), at("slides"));
    testkit::weights::drawn(&weights, &outline(&network));
    std::fs::create_dir(&slides).unwrap();
    draw(&slides.join("a.png"), 0);
    let made = at("package");
    let convert = ["encoders", "convert", "--weights", s(&weights), "--encoder", "lunit-vits16"];
    let more = ["--image", "32", "--out", s(&made), "--name", "own", "--license", "none"];
    let (code, _, err) = mithras(&[&convert[..], &more].concat());
    assert_eq!(code, Some(0), "{err}");
    let run = |out: &Path, how: &[&str]| {
        let args = ["embed", s(&slides), "--out", s(out), "--mpp", "0.5", "--tile-mpp", "0.5"];
        let quiet = ["--engine", "rten", "--threads", "1", "--json", "--quiet"];
        mithras(&[&args[..], &quiet, how].concat())
    };
    let file = ["--weights", s(&weights), "--encoder", "lunit-vits16", "--image", "32"];
    let features = |out: &str| {
        let file = hdf5_pure::File::open(at(out).join("a.h5")).unwrap();
        file.dataset("features").unwrap().read_f32().unwrap()
    };
    let (code, report, err) = run(&at("own"), &file);
    assert_eq!(code, Some(0), "{err}");
    let report = json(&report);
    assert_eq!(report["encoder_sha256"], features::package::digest(&weights).unwrap());
    assert!(report["engine"].as_str().unwrap().starts_with("rten"), "{report}");
    let (code, _, err) = run(&at("packaged"), &["--encoder", s(&made)]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(features("own"), features("packaged"));
    assert!(features("own").len() > 384 && features("own").iter().all(|v| v.is_finite()));
    // What is done is kept; two workers share one conversion; another side of the input is another encoder.
    let (code, report, err) = run(&at("own"), &[&file[..], &["--workers", "2"]].concat());
    assert_eq!(
        (code, json(&report)["items"][0]["status"].as_str()),
        (Some(0), Some("kept")),
        "{err}"
    );
    let (code, _, err) = run(&at("own"), &[&file[..5], &["48"]].concat());
    assert!(code == Some(1) && err.contains("made with other settings"), "{err}");

    let refused = |how: &[&str], words: &[&str]| {
        let (code, printed, err) = run(&at("none"), how);
        assert!((code, &*printed) == (Some(1), "") && !at("none").exists(), "{printed}{err}");
        assert!(words.iter().all(|w| err.contains(w)), "{words:?}: {err}");
    };
    refused(&file[..2], &["w.safetensors", "give the encoder's name", "see --encoder"]);
    let (code, _, err) =
        run(&at("named"), &[&file[..2], &["--encoder", "lunit-vits16"], &file[4..]].concat());
    assert_eq!(code, Some(0), "{err}");
    refused(&[&file[..3], &["uni_v1"]].concat(), &["w.safetensors", "does not fit the model"]);
    refused(&[&file[..3], &["no-such"]].concat(), &["no-such", "lunit-vits16"]);
    refused(&["--weights", s(&at("w.pth")), "--encoder", "uni_v1"], &["w.pth"]);
    let whole = std::fs::read(&weights).unwrap();
    let cut = at("cut.safetensors");
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    refused(&["--weights", s(&cut), "--encoder", "lunit-vits16"], &["cut.safetensors"]);
    // A segmenter's checkpoint describes no encoder.
    let header = r#"{"__metadata__":{"mithras":"{\"config\":{\"encoder\":1},\"mean\":[0,0,0],\"std\":[1,1,1]}"}}"#;
    let length = (header.len() as u64).to_le_bytes();
    std::fs::write(&cut, [&length[..], header.as_bytes()].concat()).unwrap();
    refused(&["--weights", s(&cut)], &["cut.safetensors", "describes no encoder"]);
}

fn draw(path: &Path, shift: u32) {
    let image = image::RgbImage::from_fn(288, 192, |x, y| {
        if !(64..224).contains(&x) || !(32..128).contains(&y) {
            return image::Rgb([245; 3]);
        }
        image::Rgb([120 + ((x * 3 + y + shift) % 80) as u8, 60, 110 + ((x * y) % 70) as u8])
    });
    image.save(path).unwrap();
}

#[test]
fn a_package_is_made_shown_and_listed() {
    let dir = tempfile::tempdir().unwrap();
    let made = package(dir.path());
    let (code, shown, err) = mithras(&["encoders", "show", s(&made), "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let shown = json(&shown);
    assert_eq!(shown["schema"], "mithras.encoder/1");
    let card = &shown["card"]["encoder"];
    assert_eq!((&card["width"], &card["input"]), (&6.into(), &32.into()));
    assert!(card["parity"]["engines"][0]["engine"].as_str().unwrap().starts_with("rten"));
    let (code, listed, _) = mithras(&["encoders", "list", "--in", s(dir.path()), "--json"]);
    assert_eq!(code, Some(0));
    let listed = json(&listed);
    assert_eq!(listed["packages"][0]["name"], "tiny");
    // Without a folder the current one is looked in.
    let mut here = Command::new(crate::program());
    let here = here.current_dir(dir.path()).args(["encoders", "list", "--json"]).output().unwrap();
    let here = json(&String::from_utf8(here.stdout).unwrap());
    let names = |list: &Value| {
        let all = list["packages"].as_array().unwrap();
        all.iter().map(|p| p["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&here), names(&listed));
    // Every build knows the table.
    let known: Vec<&str> =
        listed["known"].as_array().unwrap().iter().filter_map(|k| k["name"].as_str()).collect();
    for name in ["uni_v1", "virchow2", "conch_v1", "ctranspath", "efficientnet_lite0"] {
        assert!(known.contains(&name), "{known:?}");
    }
    let (code, shown, err) = mithras(&["encoders", "show", "uni_v1"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(shown.contains("uni_v1: 1024 numbers, class token"), "{shown}");
    let first = &listed["packages"][0];
    assert_eq!((&first["resize"], &first["interpolation"]), (&32.into(), &"bilinear".into()));
    assert_eq!(first["pooling"], "mean of patches");
    let (code, words, _) = mithras(&["encoders", "show", s(&made)]);
    assert!(code == Some(0) && words.contains("mean of patches"), "{words}");

    let (code, _, err) = mithras(&["encoders", "show", s(&dir.path().join("none"))]);
    assert!(code == Some(1) && err.contains("card.toml"), "{err}");
    let tokens = testkit::workspace().join("crates/features/tests/golden/tokens.onnx");
    let out = dir.path().join("tokens");
    let args = [&["encoders", "convert", "--onnx", s(&tokens), "--out", s(&out)][..], &OPTIONS];
    let (code, _, err) = mithras(&args.concat());
    assert!(code == Some(1) && err.contains("3 dimensions") && !out.exists(), "{err}");
}

/// Tiles that a coarse level leaves out are tissue where a finer level shows some: none of them loses its features.
#[test]
fn a_slide_with_holes_has_the_features_of_the_whole_slide() {
    let dir = tempfile::tempdir().unwrap();
    let made = package(dir.path());
    let drawn = dir.path().join("demo");
    let size = ["--size", "1600,1300", "--figures", "2", "--seed", "5"];
    let (code, _, err) =
        mithras(&[&["demo", "--draw-only", "--out", s(&drawn)][..], &size].concat());
    assert_eq!(code, Some(0), "{err}");
    let slides = dir.path().join("slides");
    std::fs::create_dir(&slides).unwrap();
    for name in ["whole.tiff", "holes.tiff"] {
        std::fs::copy(drawn.join("drawn.tiff"), slides.join(name)).unwrap();
    }
    testkit::leave_out_a_tile(&slides.join("holes.tiff"));
    // At 1 um/px pixels come from the level with the hole, at 0.5 um/px from the finest, and only the mask does.
    for mpp in ["1", "0.5"] {
        let out = dir.path().join(mpp);
        let args = ["embed", s(&slides), "--encoder", s(&made), "--out", s(&out), "--mpp", mpp];
        let how = ["--engine", "rten", "--threads", "1", "--json", "--quiet"];
        let (code, report, err) = mithras(&[&args[..], &how].concat());
        assert_eq!(code, Some(0), "{err}");
        let report = json(&report);
        let tiles = |i: usize| report["items"][i]["rows"].as_f64().unwrap();
        assert!(tiles(1) > 100.0, "{report}");
        assert!((tiles(0) / tiles(1) - 1.0).abs() < 0.02, "{mpp}: {report}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn slides_are_embedded_resumed_and_a_bad_one_stops_none() {
    let dir = tempfile::tempdir().unwrap();
    let made = package(dir.path());
    let slides = dir.path().join("slides");
    std::fs::create_dir(&slides).unwrap();
    for (name, shift) in [("a.png", 0), ("b.png", 9), ("d.png", 30)] {
        draw(&slides.join(name), shift);
    }
    std::fs::write(slides.join("c.svs"), b"no slide").unwrap();
    let out = dir.path().join("features");
    let embed = |more: &[&str]| {
        let args = ["embed", s(&slides), "--encoder", s(&made), "--out", s(&out), "--mpp", "0.5"];
        let how = ["--engine", "rten", "--threads", "1", "--json", "--quiet"];
        let (code, report, err) = mithras(&[&args[..], &how, more].concat());
        (code, json(&report), err)
    };
    let (code, report, err) = embed(&[]);
    assert_eq!(code, Some(3), "{err}");
    assert_eq!((&report["schema"], &report["failed"]), (&"mithras.embed/1".into(), &1.into()));
    let status = |r: &Value| -> Vec<String> {
        let items = r["items"].as_array().unwrap().iter();
        items.map(|i| i["status"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(status(&report), ["done", "done", "failed", "done"], "{report}");
    assert!(report["items"][2]["reason"].as_str().unwrap().contains("c.svs"), "{report}");
    assert!(report["items"][0]["per_second"].as_f64().unwrap() > 0.0);
    let bytes = |name: &str| std::fs::read(out.join(name)).unwrap();
    let first = ["a.h5", "b.h5", "d.h5"].map(bytes);

    // As if it had been killed before b: what is there stays, the rest gives the same bytes.
    std::fs::remove_file(out.join("b.h5")).unwrap();
    std::fs::write(out.join("d.h5"), b"cut short").unwrap();
    let (_, report, _) = embed(&[]);
    assert_eq!(status(&report), ["kept", "done", "failed", "done"], "{report}");
    assert_eq!(["a.h5", "b.h5", "d.h5"].map(bytes), first);
    let (_, report, _) = embed(&["--overwrite"]);
    assert_eq!(status(&report), ["done", "done", "failed", "done"], "{report}");
    assert_eq!(["a.h5", "b.h5", "d.h5"].map(bytes), first);
    // Several at once give the same bytes in the same order.
    let (_, report, err) = embed(&["--overwrite", "--workers", "3"]);
    assert_eq!(status(&report), ["done", "done", "failed", "done"], "{report}{err}");
    assert_eq!(["a.h5", "b.h5", "d.h5"].map(bytes), first);
    // What is asked for and not to be had is refused, not left out.
    let args = ["embed", s(&slides), "--encoder", s(&made), "--out", s(&out), "--mpp", "0.5"];
    let how = ["--engine", "rten", "--precision", "bf16"];
    let (code, _, err) = mithras(&[&args[..], &how].concat());
    assert!(code == Some(1) && err.contains("take the precision f32"), "{err}");
    let how = [
        "--engine",
        "openvino",
        "--precision",
        "bf16",
        "--threads",
        "1",
        "--json",
        "--quiet",
        "--overwrite",
    ];
    let (code, report, err) = mithras(&[&args[..], &how].concat());
    if code == Some(1) && ["no libopenvino_c", "no bf16"].iter().any(|w| err.contains(w)) {
        eprintln!("SKIPPED: {err}");
    } else {
        // Other arithmetic is other work.
        let report = json(&report);
        assert_eq!(status(&report), ["done", "done", "failed", "done"], "{report}");
        assert!(report["engine"].as_str().unwrap().contains("bf16"), "{report}");
        assert!(["a.h5", "b.h5", "d.h5"].map(bytes) != first);
    }
    // Another grid is other work, which does not replace or join what is there in silence.
    let kept = bytes("a.h5");
    let refused = |slides: &Path, more: &[&str]| {
        let args = ["embed", s(slides), "--encoder", s(&made), "--out", s(&out), "--mpp", "0.5"];
        let how = ["--engine", "rten", "--tile", "64", "--quiet"];
        let (code, _, err) = mithras(&[&args[..], &how, more].concat());
        assert_eq!(code, Some(1), "{err}");
        for words in ["features", "slide `a`", "side was", "`64`", "--out"] {
            assert!(err.contains(words), "{words}: {err}");
        }
        assert_eq!(bytes("a.h5"), kept);
        err
    };
    assert!(refused(&slides, &[]).contains("--overwrite"));
    let fourth = dir.path().join("e.png");
    draw(&fourth, 3);
    refused(&fourth, &[]);
    refused(&fourth, &["--overwrite"]);
    assert!(!out.join("e.h5").exists());
    // A list names the same slides, whose features are there already.
    let list = dir.path().join("list.csv");
    std::fs::write(&list, "slide,mpp\nslides/a.png,0.5\n").unwrap();
    let listed = ["embed", "--list", s(&list), "--encoder", s(&made), "--out"];
    let of_list = dir.path().join("of_list");
    let how = [s(&of_list), "--engine", "rten", "--threads", "1", "--quiet", "--tile", "64"];
    let (code, _, err) = mithras(&[&listed[..], &how].concat());
    assert_eq!(code, Some(0), "{err}");
    assert!(of_list.join("a.h5").exists() && !of_list.join("b.h5").exists());
    // The remedy that it names.
    let (_, report, _) = embed(&["--tile", "64", "--overwrite"]);
    assert_eq!(status(&report)[0], "done", "{report}");

    let file = hdf5_pure::File::open(out.join("a.h5")).unwrap();
    let x = file.dataset("features").unwrap().shape().unwrap();
    assert!(x[0] >= 5 && x[1] == 6, "{x:?}");
}

#[test]
fn crops_go_to_parquet_and_what_does_not_fit_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let made = package(dir.path());
    let images = dir.path().join("images");
    std::fs::create_dir(&images).unwrap();
    draw(&images.join("one.png"), 0);
    draw(&images.join("two.png"), 7);
    let table = dir.path().join("f.parquet");
    let embed = |crops: &Path, out: &Path| {
        let args = ["embed", "--crops", s(crops), "--encoder", s(&made), "--out", s(out)];
        mithras(&[&args[..], &["--engine", "rten", "--json"]].concat())
    };
    let (code, report, err) = embed(&images, &table);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(json(&report)["rows"], 2);
    assert!(table.is_file());
    std::fs::write(images.join("bad.png"), b"no image").unwrap();
    let (code, report, err) = embed(&images, &dir.path().join("g.parquet"));
    assert_eq!((code, &json(&report)["failed"]), (Some(3), &1.into()), "{err}");
    let (code, _, err) = embed(&images, &dir.path().join("f.h5"));
    assert!(code == Some(1) && err.contains("FILE.parquet"), "{err}");
    let (code, _, err) = embed(&images, &dir.path().join("f.txt"));
    assert!(code == Some(1) && err.contains("write to FILE.parquet, or slide tiles to FILE.h5"));
    std::fs::remove_file(images.join("bad.png")).unwrap();
    let (code, _, err) = embed(&images, &dir.path().join("h.parquet"));
    assert_eq!(code, Some(0), "{err}");

    let slide = images.join("one.png");
    let out = dir.path().join("tiles");
    let tiles = ["embed", s(&slide), "--out", s(&out), "--mpp", "0.5", "--tile-mpp", "0.5"];
    let (code, _, err) = mithras(&tiles);
    assert!(code == Some(1) && err.contains("name the package with --encoder"), "{err}");
    let (code, _, err) = mithras(&[&tiles[..], &["--encoder", s(&made)]].concat());
    assert_eq!(code, Some(0), "{err}");
    std::fs::write(made.join("encoder.onnx"), b"other").unwrap();
    let (code, _, err) = embed(&images, &table);
    assert!(code == Some(1) && err.contains("SHA-256"), "{err}");
}

#[test]
fn features_that_no_run_of_ours_wrote_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let made = package(dir.path());
    let (slide, out) = (dir.path().join("a.png"), dir.path().join("features"));
    draw(&slide, 0);
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("a.h5"), b"of another tool").unwrap();
    let args = ["embed", s(&slide), "--encoder", s(&made), "--out", s(&out), "--mpp", "0.5"];
    let args = [&args[..], &["--engine", "rten", "--quiet"]].concat();
    let (code, _, err) = mithras(&args);
    assert!(code == Some(1) && err.contains("no earlier run wrote it"), "{err}");
    assert_eq!(std::fs::read(out.join("a.h5")).unwrap(), b"of another tool");
    let (code, _, err) = mithras(&[&args[..], &["--overwrite"]].concat());
    assert_eq!(code, Some(0), "{err}");
}
