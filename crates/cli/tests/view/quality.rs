//! `mithras quality`: a cohort's faults in a table and on a page that sorts.

use super::page::in_a_browser;
use mithras::demo::{Container, Layout, Spec, write};
use std::path::Path;
use std::process::Command;

/// Sound slides, one that is blurred, one with pen on it, and one that cannot be read.
fn slides(folder: &Path) {
    for (name, seed) in [("a", 3), ("b", 4), ("blurred", 5), ("penned", 6)] {
        let path = folder.join(format!("{name}.tiff"));
        let layout = Layout::new(Spec::new(1400, 1200, seed, 4).unwrap()).unwrap();
        write(&layout, &path, Container::Auto, &mut mithras::progress::Silent).unwrap();
        if name.len() == 1 {
            continue;
        }
        let slide = slide::Slide::open(&path).unwrap();
        let tile = slide.read_region(0, 0, 0, 1400, 1200).unwrap();
        let mut image = image::RgbImage::from_raw(1400, 1200, tile.data).unwrap();
        if name == "blurred" {
            image = image::imageops::blur(&image, 8.0);
        } else {
            for (x, y) in (300..700).flat_map(|x| (200..320).map(move |y| (x, y))) {
                image.put_pixel(x, y, image::Rgb([20, 160, 60]));
            }
        }
        std::fs::remove_file(&path).unwrap();
        image.save(folder.join(format!("{name}.png"))).unwrap();
    }
    std::fs::write(folder.join("broken.svs"), b"II*\0not a slide").unwrap();
}

#[test]
fn what_is_wrong_with_a_cohort_is_said() {
    let dir = tempfile::tempdir().unwrap();
    slides(dir.path());
    let out = dir.path().join("quality");
    let made = Command::new(env!("CARGO_BIN_EXE_mithras"))
        .arg("quality")
        .arg(dir.path())
        .arg("--out")
        .arg(&out)
        .args(["--mpp", "0.25", "--json"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&made.stderr);
    assert_eq!(made.status.code(), Some(3), "one slide cannot be read: {printed}");
    assert!(printed.contains("5 of 5: "), "{printed}");
    let answer: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let all = answer["slides"].as_array().unwrap();
    let names: Vec<&str> = all.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names[0], "broken");
    let of = |name: &str| all.iter().find(|s| s["name"] == name).unwrap();
    let flags = |name: &str| of(name)["flags"].to_string();
    assert!(flags("blurred").contains("out of focus"), "{answer}");
    assert!(flags("penned").contains("under pen"), "{answer}");
    for name in ["a", "b"] {
        let flags = flags(name);
        assert!(!flags.contains("focus") && !flags.contains("pen"), "{name}: {flags}");
        assert!(flags.contains("of tissue, less than a hotspot"), "{name}: {flags}");
        assert!(of(name)["measured"]["seconds"].as_f64().unwrap() > 0.0);
    }
    let mut table = csv::Reader::from_path(out.join("quality.csv")).unwrap();
    let header = table.headers().unwrap().clone();
    let rows: Vec<_> = table.records().map(Result::unwrap).collect();
    let cell = |row: &csv::StringRecord, name: &str| {
        row[header.iter().position(|h| h == name).unwrap()].to_owned()
    };
    assert_eq!(rows.len(), 5);
    assert_eq!(
        (cell(&rows[0], "slide").as_str(), cell(&rows[0], "mpp_x").as_str()),
        ("broken", "")
    );
    assert!(rows[1..].iter().all(|r| cell(r, "mpp_x") == "0.25" && cell(r, "label") == "false"));
    let url = format!("file://{}", out.join("quality.html").display());
    let shot = std::env::var_os("MITHRAS_SCREENSHOT");
    let shot = shot.map(|s| Path::new(&s).with_file_name("quality.png"));
    in_a_browser("quality.mjs", &url, &[], shot.as_deref().map(Path::as_os_str));
}
