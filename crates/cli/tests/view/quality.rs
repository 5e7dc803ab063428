//! `mithras quality`: a cohort's faults in a table and on a page that sorts.

use super::page::in_a_browser;
use super::regions::scanned;
use mithras::demo::Rect;
use mithras::demo::{Layout, Spec};
use std::path::Path;
use std::process::Command;

/// Sound slides, one that is blurred, one with pen, one with dirt and one with a fold on it, and one that cannot be
/// read; gives the share of the tissue that is folded.
fn slides(folder: &Path) -> f64 {
    let mut folds = f64::NAN;
    for (name, seed) in [("a", 3), ("b", 4), ("blurred", 5), ("penned", 6)] {
        let path = folder.join(format!("{name}.tiff"));
        crate::common::draw(&path, 1400, 1200, seed, 4);
        if name.len() == 1 {
            continue;
        }
        let slide = slide::Slide::open(&path).unwrap();
        let tile = slide.read_region(0, Rect::new(0, 0, 1400, 1200)).unwrap();
        let mut image = image::RgbImage::from_raw(1400, 1200, tile.data).unwrap();
        let save = |image: &image::RgbImage, name: &str| {
            image.save(folder.join(format!("{name}.png"))).unwrap();
        };
        std::fs::remove_file(&path).unwrap();
        if name == "blurred" {
            save(&image::imageops::blur(&image, 8.0), name);
            continue;
        }
        let [mut dirty, mut folded] = [image.clone(), image.clone()];
        for (x, y) in (300..700).flat_map(|x| (200..320).map(move |y| (x, y))) {
            image.put_pixel(x, y, image::Rgb([20, 160, 60]));
            dirty.put_pixel(x, y, image::Rgb([25, 22, 20]));
        }
        let tissue: Vec<u32> = image
            .enumerate_pixels()
            .filter(|(_, _, p)| p.0.iter().any(|v| *v < 215))
            .map(|(x, ..)| x)
            .collect();
        let band = 500..800;
        folds = tissue.iter().filter(|x| band.contains(*x)).count() as f64 / tissue.len() as f64;
        // Three layers of the tissue over a band of 75 um.
        for pixel in folded.enumerate_pixels_mut().filter(|p| band.contains(&p.0)) {
            pixel.2.0 = pixel.2.0.map(|v| (240.0 * (f64::from(v.min(240)) / 240.0).powi(3)) as u8);
        }
        save(&image, name);
        save(&dirty, "dirty");
        save(&folded, "folded");
    }
    std::fs::write(folder.join("broken.svs"), b"II*\0not a slide").unwrap();
    folds
}

#[test]
fn what_is_wrong_with_a_cohort_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let folded = slides(dir.path());
    let out = dir.path().join("quality");
    let made = Command::new(crate::program())
        .arg("quality")
        .arg(dir.path())
        .arg("--out")
        .arg(&out)
        .args(["--mpp", "0.25", "--json"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&made.stderr);
    assert_eq!(made.status.code(), Some(3), "one slide cannot be read: {printed}");
    assert!(printed.contains("7 of 7: "), "{printed}");
    let answer: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let all = answer["slides"].as_array().unwrap();
    let names: Vec<&str> = all.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names[0], "broken");
    let of = |name: &str| all.iter().find(|s| s["name"] == name).unwrap();
    let flags = |name: &str| of(name)["flags"].to_string();
    assert!(flags("blurred").contains("out of focus"), "{answer}");
    assert!(flags("penned").contains("under pen"), "{answer}");
    let measured = |name: &str, what: &str| of(name)["measured"][what].as_f64().unwrap();
    // As drawn: 400 x 120 of 1400 x 1200 px are black; squares at the border of a fold are not counted.
    assert!(flags("dirty").contains("dirt"), "{answer}");
    let (dirt, drawn) = (measured("dirty", "dirt"), 400.0 * 120.0 / (1400.0 * 1200.0));
    assert!((dirt - drawn).abs() < 0.05 * drawn, "{dirt} of {drawn}");
    assert!(flags("folded").contains("as dense as folds"), "{answer}");
    let folds = measured("folded", "folds");
    assert!((0.8 * folded..1.1 * folded).contains(&folds), "{folds} of {folded}");
    for name in ["a", "b"] {
        assert!(measured(name, "dirt") < 0.002 && measured(name, "folds") < 0.05, "{answer}");
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
    assert_eq!(rows.len(), 7);
    assert_eq!(
        (cell(&rows[0], "slide").as_str(), cell(&rows[0], "mpp_x").as_str()),
        ("broken", "")
    );
    assert!(rows[1..].iter().all(|r| cell(r, "mpp_x") == "0.25" && cell(r, "label") == "false"));
    // The vendor of a format is not a scanner.
    assert!(
        rows[1..].iter().all(|r| cell(r, "scanner").is_empty() && !cell(r, "vendor").is_empty())
    );
    let url = format!("file://{}", out.join("quality.html").display());
    let shot = std::env::var_os("MITHRAS_SCREENSHOT");
    let shot = shot.map(|s| Path::new(&s).with_file_name("quality.png"));
    in_a_browser("quality.mjs", &url, &[], shot.as_deref().map(Path::as_os_str));
}

/// What `quality` prints of slides that can all be read.
fn sound(slides: &[std::path::PathBuf], out: &Path, more: &[&str]) -> serde_json::Value {
    let mut quality = Command::new(crate::program());
    quality.arg("quality").args(slides).arg("--out").arg(out).arg("--json").args(more);
    let made = quality.output().unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
    serde_json::from_slice(&made.stdout).unwrap()
}

/// What a cohort must not hide: one file twice, and tiles that cannot be decoded.
#[test]
fn a_file_twice_and_places_that_cannot_be_decoded_are_flagged() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    crate::common::draw(&at("whole.tiff"), 1400, 1200, 3, 4);
    std::fs::copy(at("whole.tiff"), at("copy.tiff")).unwrap();
    crate::common::draw(&at("damaged.tiff"), 1400, 1200, 5, 4);
    let mut bytes = std::fs::read(at("damaged.tiff")).unwrap();
    // Data of tiles; directories are at either end.
    let (from, to) = (bytes.len() / 5, bytes.len() / 3);
    bytes[from..to].fill(0xFF);
    std::fs::write(at("damaged.tiff"), bytes).unwrap();
    let answer = sound(&[dir.path().to_owned()], &at("quality"), &["--mpp", "0.25"]);
    let all = answer["slides"].as_array().unwrap();
    let of = |name: &str| all.iter().find(|s| s["name"] == name).unwrap();
    for (name, other) in [("whole", "copy"), ("copy", "whole")] {
        let flags = of(name)["flags"].to_string();
        assert!(flags.contains(&format!("the same file as {other}")), "{answer}");
    }
    let unread = of("damaged")["measured"]["unread_places"].as_u64().unwrap();
    let flags = of("damaged")["flags"].to_string();
    assert!(unread > 0 && flags.contains("on tissue not decodable"), "{answer}");
    assert_eq!(of("whole")["measured"]["unread_places"], 0);
    let table = std::fs::read_to_string(at("quality/quality.csv")).unwrap();
    assert!(table.lines().any(|l| l.ends_with(&format!(",{unread}"))), "{table}");
}

/// A label in the file, tiles that it leaves out, a stain unlike the training data's, and the maker that it states.
#[test]
fn labels_absent_tiles_stains_and_makers_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let Some(labelled) = testkit::data("slides/CMU-1-Small-Region.svs") else { return };
    std::fs::copy(labelled, at("labelled.svs")).unwrap();
    scanned(&at("made.tif"), "Hamamatsu", false);
    // The colours of the drawn tissue the other way round.
    let layout = Layout::new(Spec::new(1400, 1200, 3, 4).unwrap()).unwrap();
    let tile = mithras::demo::draw(&layout, Rect::new(0, 0, 1400, 1200));
    let mut image = image::RgbImage::from_raw(1400, 1200, tile.data).unwrap();
    image.pixels_mut().for_each(|p| p.0 = [p.0[1], p.0[0], p.0[1]]);
    image.save(at("green.png")).unwrap();
    std::fs::write(at("absent.tif"), with_absent_tiles(&layout)).unwrap();
    let answer = sound(&[dir.path().to_owned()], &at("quality"), &["--mpp", "0.25"]);
    let all = answer["slides"].as_array().unwrap();
    let of = |name: &str| all.iter().find(|s| s["name"] == name).unwrap();
    let has = |name: &str, flag: &str| of(name)["flags"].to_string().contains(flag);
    let label = "the label is in the file";
    for (name, expected) in
        [("labelled", true), ("made", false), ("green", false), ("absent", false)]
    {
        assert_eq!(has(name, label), expected, "{name}: {answer}");
        assert_eq!(of(name)["measured"]["label"], expected, "{name}");
        assert_eq!(has(name, "missing"), name == "absent", "{name}: {answer}");
        // That of the scan is another laboratory's.
        let other = ["green", "labelled"].contains(&name);
        assert_eq!(has(name, "from the training data's"), other, "{name}: {answer}");
    }
    assert!(has("absent", "2 tiles missing"), "{answer}");
    assert_eq!(of("absent")["measured"]["missing_tiles"], 2);
    let scanner = |name: &str| of(name)["measured"]["scanner"].clone();
    assert_eq!((scanner("labelled"), scanner("made")), ("Aperio".into(), "Hamamatsu".into()));
    assert!(scanner("green").is_null(), "{answer}");
    let table = std::fs::read_to_string(at("quality/quality.csv")).unwrap();
    assert!(table.contains(",Hamamatsu,"), "{table}");
    let page = std::fs::read_to_string(at("quality/quality.html")).unwrap();
    assert_eq!(page.matches("<img ").count(), 4);

    // What states no um/px is looked at all the same: with what is wrong, a picture, and no mm2.
    let answer = sound(&[at("absent.tif"), at("labelled.svs")], &at("without"), &[]);
    let all = answer["slides"].as_array().unwrap();
    let absent = all.iter().find(|s| s["name"] == "absent").unwrap();
    let flags = absent["flags"].to_string();
    assert!(flags.contains("no um/px") && flags.contains("2 tiles missing"), "{answer}");
    assert!(!flags.contains("mm2"), "{answer}");
    let measured = &absent["measured"];
    assert!(
        ["mpp", "tissue_mm2", "out_of_focus", "folds"].iter().all(|k| measured[*k].is_null()),
        "{answer}"
    );
    let page = std::fs::read_to_string(at("without/quality.html")).unwrap();
    assert_eq!(page.matches("<img ").count(), 2);
}

/// A drawn slide as tiles of 256 px, of which the first and the fourth have no bytes.
fn with_absent_tiles(layout: &Layout) -> Vec<u8> {
    const TILE: usize = 256;
    let (across, down) = (4, 4);
    let mut bytes = b"II*\0\0\0\0\0".to_vec();
    let mut put = |part: &[u8]| {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let at = bytes.len() as u32;
        bytes.extend(part);
        at
    };
    let numbers = |all: &[u32]| all.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let (mut offsets, mut counts) = (Vec::new(), Vec::new());
    for k in 0..across * down {
        let (x, y) = (k % across * TILE, k / across * TILE);
        let tile = mithras::demo::draw(layout, Rect::new(x as i64, y as i64, TILE, TILE)).data;
        let present = k != 0 && k != 3;
        offsets.push(if present { put(&tile) } else { 0 });
        counts.push(if present { tile.len() as u32 } else { 0 });
    }
    let n = offsets.len() as u32;
    let (offsets, counts) = (put(&numbers(&offsets)), put(&numbers(&counts)));
    let bits = put(&numbers(&[8 | 8 << 16, 8]));
    // Tag, type (SHORT 3, LONG 4), count, value or its place.
    let entries = [
        (256, 4, 1, (across * TILE) as u32),
        (257, 4, 1, (down * TILE) as u32),
        (258, 3, 3, bits),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (277, 3, 1, 3),
        (284, 3, 1, 1),
        (322, 4, 1, TILE as u32),
        (323, 4, 1, TILE as u32),
        (324, 4, n, offsets),
        (325, 4, n, counts),
    ];
    let mut directory = (entries.len() as u16).to_le_bytes().to_vec();
    for (tag, kind, count, value) in entries {
        directory.extend([tag as u16, kind as u16].iter().flat_map(|n| n.to_le_bytes()));
        directory.extend([count, value].iter().flat_map(|n: &u32| n.to_le_bytes()));
    }
    directory.extend([0; 4]);
    let at = put(&directory);
    bytes[4..8].copy_from_slice(&at.to_le_bytes());
    bytes
}
