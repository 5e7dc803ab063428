//! Jobs of challenges in the platform's folders, on drawn slides.

use crate::common;
use assert_cmd::Command;
use mithras::demo::Kind;
use mithras::demo::Rect;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tiff::encoder::{TiffEncoder, colortype::RGB8};

/// um/px that drawn slides state.
const MPP: f64 = 0.25;

fn run(args: &[&str], folders: &[(&str, &Path)]) -> (bool, String) {
    let mut command = Command::new(crate::program());
    command.args(args).args(["--engine", "native", "--threads", "2"]);
    for (flag, folder) in folders {
        command.arg(flag).arg(folder);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.success(), text)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The platform's list of inputs.
fn list(input: &Path, slug: &str, path: &str) {
    let text = format!(
        r#"[{{"file":null,"image":{{"name":"007.tiff"}},"value":null,"interface":{{"slug":"{slug}","kind":"Image","super_kind":"Image","relative_path":"{path}","example_value":null}}}}]"#
    );
    fs::write(input.join("inputs.json"), text).unwrap();
}

fn folder(input: &Path, path: &str) -> PathBuf {
    let folder = input.join(path);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn track_1_gives_points_in_millimetres() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("input"), dir.path().join("output"));
    let image = folder(&input, "images/histopathology-roi-cropout").join("007.tiff");
    let layout = common::draw(&image, 900, 800, 7, 4);
    list(&input, "histopathology-region-of-interest-cropout", "images/histopathology-roi-cropout");
    let at = [("--input", &*input), ("--output", &*output)];
    let (ok, printed) = run(&["challenge", "midog25-t1"], &at);
    assert!(ok, "{printed}");

    let found = json(&output.join("mitotic-figures.json"));
    assert_eq!(found["type"], "Multiple points");
    assert_eq!((&found["version"]["major"], &found["version"]["minor"]), (&1.into(), &0.into()));
    let points = found["points"].as_array().unwrap();
    let figures: Vec<_> = points.iter().filter(|p| p["name"] == "mitotic figure").collect();
    for p in points {
        assert!(p["name"] == "mitotic figure" || p["name"] == "non-mitotic figure", "{p}");
        let at = p["point"].as_array().unwrap();
        assert_eq!((at.len(), at[2].as_f64()), (3, Some(0.0)));
        let within = |v: &Value, px: f64| (0.0..=px * MPP / 1000.0).contains(&v.as_f64().unwrap());
        assert!(within(&at[0], 900.0) && within(&at[1], 800.0), "{p}");
        assert!((0.0..=1.0).contains(&p["probability"].as_f64().unwrap()), "{p}");
    }
    // The challenge counts a figure as found within 7.5 um.
    let truth: Vec<_> = layout.truth().iter().filter(|t| t.kind == Kind::Mitotic).collect();
    let near = |p: &Value| {
        truth.iter().any(|t| {
            let mm = [0, 1].map(|i| p["point"][i].as_f64().unwrap());
            let px = [t.x_px, t.y_px].map(|v| v * MPP / 1000.0);
            (mm[0] - px[0]).hypot(mm[1] - px[1]) <= 0.0075
        })
    };
    assert!(!figures.is_empty() && figures.iter().any(|p| near(p)), "{printed}");

    // What `detect` exports for the platform is the same file; without the list the folder is known.
    fs::remove_file(input.join("inputs.json")).unwrap();
    let again = dir.path().join("again");
    assert!(run(&["challenge", "midog25-t1"], &[("--input", &input), ("--output", &again)]).0);
    let out = dir.path().join("out");
    let (ok, printed) = run(&["detect", image.to_str().unwrap()], &[("--out", &out)]);
    assert!(ok, "{printed}");
    let bytes = fs::read(out.join("007/grand-challenge.json")).unwrap();
    for folder in [&output, &again] {
        assert!(bytes == fs::read(folder.join("mitotic-figures.json")).unwrap());
    }
}

#[test]
fn track_1_reports_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("input"), dir.path().join("output"));
    let at = [("--input", &*input), ("--output", &*output)];
    let go = |more: &[&str]| run(&[&["challenge", "midog25-t1"], more].concat(), &at);
    let (ok, printed) = go(&[]);
    assert!(!ok && printed.contains("images/histopathology-roi-cropout"), "{printed}");
    let images = folder(&input, "images/histopathology-roi-cropout");
    let (ok, printed) = go(&[]);
    assert!(!ok && printed.contains("0 images"), "{printed}");
    list(&input, "stacked-histopathology-roi-cropouts", "images/stacked");
    let (ok, printed) = go(&[]);
    assert!(!ok && printed.contains("is this the other track?"), "{printed}");
    fs::remove_file(input.join("inputs.json")).unwrap();
    // An image that states no resolution has no millimetres.
    let white = image::RgbImage::from_pixel(600, 500, image::Rgb([244, 243, 244]));
    white.save(images.join("a.tiff")).unwrap();
    let (ok, printed) = go(&[]);
    assert!(!ok && printed.contains("hint: see --mpp"), "{printed}");
    assert!(!output.join("mitotic-figures.json").exists());
    let (ok, printed) = go(&["--mpp", "0.25"]);
    assert!(ok, "{printed}");
    let found = json(&output.join("mitotic-figures.json"));
    assert_eq!(found["points"].as_array().unwrap().len(), 0, "no tissue, no points");
    white.save(images.join("b.tif")).unwrap();
    let (ok, printed) = go(&["--mpp", "0.25"]);
    assert!(!ok && printed.contains("2 images"), "{printed}");
}

#[test]
fn track_2_classifies_every_page_of_the_stack_in_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("input"), dir.path().join("output"));
    let layout = common::draw(&dir.path().join("drawn.tiff"), 1200, 1000, 3, 6);
    let stack = folder(&input, "images/stacked-histopathology-roi-cropouts").join("stack_5.tiff");
    let crops = folder(dir.path(), "crops");
    let mut pages = TiffEncoder::new(fs::File::create(&stack).unwrap()).unwrap();
    let corner = |v: f64, most: u32| (v as u32).saturating_sub(64).min(most - 128);
    let mut names = Vec::new();
    for (i, t) in layout.truth().iter().enumerate() {
        let (x, y) = (corner(t.x_px, 1200), corner(t.y_px, 1000));
        let crop = mithras::demo::draw(&layout, Rect::new(x.into(), y.into(), 128, 128));
        pages.write_image::<RGB8>(128, 128, &crop.data).unwrap();
        let picture = image::RgbImage::from_raw(128, 128, crop.data).unwrap();
        names.push(format!("{i:02}.png"));
        picture.save(crops.join(&names[i])).unwrap();
    }
    drop(pages);
    list(
        &input,
        "stacked-histopathology-roi-cropouts",
        "images/stacked-histopathology-roi-cropouts",
    );
    let at = [("--input", &*input), ("--output", &*output)];
    let (ok, printed) = run(&["challenge", "midog25-t2"], &at);
    assert!(ok, "{printed}");
    let found = json(&output.join("multiple-mitotic-figure-classification.json"));
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), layout.truth().len());

    let table = dir.path().join("crops.csv");
    let (ok, printed) =
        run(&["classify", crops.to_str().unwrap(), "--model", "atypical"], &[("--out", &table)]);
    assert!(ok, "{printed}");
    let table = fs::read_to_string(table).unwrap();
    let mut rows: Vec<Vec<&str>> = table.lines().skip(1).map(|l| l.split(',').collect()).collect();
    rows.sort();
    for ((one, row), name) in found.iter().zip(&rows).zip(&names) {
        assert!(row[0].ends_with(name.as_str()), "{row:?}");
        let class = if row[1] == "typical" { "normal" } else { row[1] };
        assert_eq!(one["class"], class, "{row:?}");
        assert!(one["confidence"].is_f64());
        let apart = one["confidence"].as_f64().unwrap() - row[3].parse::<f64>().unwrap();
        assert!(apart.abs() < 1e-5, "the probability of atypical, whatever was called: {row:?}");
    }
    let printed: Vec<_> = found.iter().map(|c| c["confidence"].as_f64().unwrap()).collect();
    assert!(printed.windows(2).any(|p| p[0] != p[1]), "crops differ, so do their scores");

    // A detector's second stage knows figures, not subtypes.
    let (ok, printed) = run(&["challenge", "midog25-t2", "--model", "standard"], &at);
    assert!(!ok && printed.contains("positive one `atypical`"), "{printed}");
    let pages = fs::read(&stack).unwrap();
    fs::write(&stack, b"no TIFF").unwrap();
    let (ok, printed) = run(&["challenge", "midog25-t2"], &at);
    assert!(!ok && printed.contains("write the pictures as pages of one TIFF"), "{printed}");
    fs::write(&stack, pages).unwrap();
    let (ok, printed) = run(&["challenge", "midog25-t2"], &at);
    assert!(ok, "{printed}");
}
