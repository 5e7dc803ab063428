//! Areas that cannot be trusted: found where they were made, not found on real tissue.

use crate::common;
use crate::common::{input, results, setup};
use detect::{CancelToken, Flaw, SlideResult, Workers};
use mithras::batch::{self, Existing, Input, OutFolder};
use mithras::export::{CountsFile, read_detections};
use mithras::progress::Silent;
use mithras::report;
use mitosis::{Mpp, RgbTile};
use pixels::change;
use slide::{OpenOptions, Rect, Slide, TissueMask};
use std::path::{Path, PathBuf};

fn save(path: &Path, tile: &RgbTile) {
    let (w, h) = (tile.width as u32, tile.height as u32);
    image::RgbImage::from_raw(w, h, tile.data.clone()).unwrap().save(path).unwrap();
}

/// A drawn slide as pixels at 0.25 um/px.
fn drawn(folder: &Path, side: u32) -> RgbTile {
    let path = folder.join("drawn.tiff");
    common::draw(&path, side, side, 9, 6);
    let slide = Slide::open(&path).unwrap();
    slide.read_at(Mpp::PAPER, Rect::new(0, 0, side as usize, side as usize)).unwrap()
}

/// Copies columns `x` of `from`.
fn columns(to: &mut RgbTile, from: &RgbTile, x: std::ops::Range<usize>) {
    for y in 0..to.height {
        let line = 3 * (y * to.width + x.start)..3 * (y * to.width + x.end);
        to.data[line.clone()].copy_from_slice(&from.data[line]);
    }
}

fn band(to: &mut RgbTile, x: std::ops::Range<usize>, y: std::ops::Range<usize>, rgb: [u8; 3]) {
    for y in y {
        for x in x.clone() {
            let at = 3 * (y * to.width + x);
            to.data[at..at + 3].copy_from_slice(&rgb);
        }
    }
}

fn go(slide: &Path, out: &Path, windows: usize, existing: Existing) -> bool {
    let workers = Workers { readers: 2, unit_windows: 5, ..Workers::default() };
    let mut detector = setup(true, windows, workers);
    let inputs = vec![Input { mpp: Some(Mpp::PAPER), ..input(slide) }];
    let checked = batch::preflight(&inputs, &detector, out, existing).unwrap();
    let cancel = CancelToken::new();
    let all = batch::detect(
        inputs,
        checked,
        std::slice::from_mut(&mut detector),
        OutFolder { path: out, existing },
        &mut Silent,
        &cancel,
    );
    let words = ["mithras", "detect"].map(String::from);
    report::write(out, &all, &detector, &words).unwrap();
    all[0].is_done()
}

#[test]
fn blur_pen_and_dirt_are_found_shown_and_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let sharp = drawn(dir.path(), 2000);
    let mut tile = sharp.clone();
    columns(&mut tile, &change::gaussian(&sharp, 8.0), 0..800);
    band(&mut tile, 1200..1400, 0..2000, [20, 110, 60]);
    band(&mut tile, 1600..1800, 1000..1200, [25, 22, 24]);
    let path = dir.path().join("case.png");
    save(&path, &tile);
    let (whole, cut) = (dir.path().join("whole"), dir.path().join("cut"));
    assert!(go(&path, &whole, usize::MAX, Existing::Refuse));
    let counts = report::counts(&whole.join("case")).unwrap();
    let mm2 = |w: f64, h: f64| w * h * 0.25e-3 * 0.25e-3;
    let near = |found: f64, made: f64| (found - made).abs() < 0.2 * made;
    let open = OpenOptions { mpp: Some(Mpp::PAPER), ..OpenOptions::default() };
    let mask = TissueMask::find(&Slide::open_with(&path, &open).unwrap()).unwrap();
    let blurred = mask.area_mm2_where(|p| p.x < 800.0);
    // Drawn stroma has little contrast left, and is not detected.
    let found = counts.out_of_focus_mm2;
    assert!(found > 0.65 * blurred && found <= blurred, "{blurred} {counts:?}");
    assert!(near(counts.pen_mm2, mm2(200.0, 2000.0)), "{counts:?}");
    assert!(near(counts.dirt_mm2, mm2(200.0, 200.0)), "{counts:?}");
    let notes = counts.notes().join("; ");
    assert!(notes.contains("out of focus, where figures are missed"), "{notes}");

    // Candidates are marked by their place, and count as before.
    let rows = read_detections(&whole.join("case/detections.csv")).unwrap();
    let flawed = |r: &&mithras::record::DetectionRow| r.accepted && r.flaw.is_some();
    assert_eq!(rows.iter().filter(flawed).count(), counts.flawed_figures);
    let of = |from: f64, to: f64| rows.iter().filter(move |r| r.x_px > from && r.x_px < to);
    let blurred = of(0.0, 590.0).filter(|r| r.flaw == Some(Flaw::OutOfFocus)).count();
    assert!(10 * blurred >= 8 * of(0.0, 590.0).count(), "{rows:?}");
    assert!(of(1010.0, 1190.0).count() > 0 && of(1010.0, 1190.0).all(|r| r.flaw.is_none()));
    let text = |folder: &Path, file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let layers: serde_json::Value =
        serde_json::from_str(&text(&whole, "case/flaws.geojson")).unwrap();
    let names: Vec<&str> = layers["features"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["properties"]["classification"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Out of focus", "Pen", "Dirt"]);
    let html = text(&whole, "summary.html");
    assert!(html.contains("class=\"flaw\"") && html.contains("mm² under pen"), "not shown");
    let mut table = csv::Reader::from_path(whole.join("counts.csv")).unwrap();
    let head = table.headers().unwrap().clone();
    let line = table.records().next().unwrap().unwrap();
    let cell = |name: &str| &line[head.iter().position(|h| h == name).unwrap()];
    assert_eq!(cell("out_of_focus_mm2"), counts.out_of_focus_mm2.to_string());
    assert_eq!(cell("dirt_mm2"), counts.dirt_mm2.to_string());
    assert!(cell("notes").contains("out of focus"));

    // Killed in the middle and resumed: the same bytes, the rows before the kill too.
    assert!(!go(&path, &cut, 13, Existing::Refuse));
    assert!(cut.join("case/checkpoint.state").is_file());
    assert!(go(&path, &cut, usize::MAX, Existing::Resume));
    assert!(results(&whole.join("case")) == results(&cut.join("case")));
    assert_eq!(text(&whole, "counts.csv"), text(&cut, "counts.csv"));

    // A sound slide has none of it.
    let (path, out) = (dir.path().join("sound.png"), dir.path().join("sound"));
    save(&path, &sharp);
    assert!(go(&path, &out, usize::MAX, Existing::Refuse));
    let counts = report::counts(&out.join("sound")).unwrap();
    assert!(!counts.is_flawed(), "{counts:?}");
    let notes = counts.notes();
    assert!(notes.len() == 1 && notes[0].contains("less than the 2 mm2 of a hotspot"), "{notes:?}");
    assert!(!text(&out, "summary.html").contains("class=\"flaw\""));
    assert!(counts == CountsFile::parse(&text(&out, "sound/counts.json")).unwrap());
}

/// What the squares of an image are called.
fn looked(path: &Path, mpp: Option<f64>) -> SlideResult {
    let mpp = mpp.map(|v| Mpp::new(v).unwrap());
    let open = OpenOptions { mpp, ..OpenOptions::default() };
    let slide = Slide::open_with(path, &open).unwrap();
    let mut detector = setup(false, usize::MAX, Workers::default());
    let job = detect::Job::whole(&slide, &detector.config.recipe).unwrap();
    detector.windows(&slide, &job, detect::Control::default()).unwrap()
}

fn files(folder: &Path, every: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<PathBuf> =
        entries.filter(|p| p.extension().is_some_and(|x| x == "jpg" || x == "tif")).collect();
    all.sort();
    all.into_iter().step_by(every).collect()
}

fn tile(file: &Path) -> RgbTile {
    let image = image::open(file).unwrap().into_rgb8();
    RgbTile::new(image.width() as usize, image.height() as usize, image.into_raw())
}

/// Lowest, 0.5 %, median and 99 % of the sharpness of squares, printed with the limit.
#[test]
fn sharpness_separates_real_frames_from_blurred_ones() {
    let sets = [
        ("icpr2012/frames", 0.2456, 8),
        ("extra_he/monuseg_1000", 0.25, 8),
        ("tissue_classes", 0.5, 1),
    ];
    let mut all = vec![];
    for (folder, mpp, every) in sets {
        let Some(found) = testkit::data(folder) else { return };
        let tiles = files(&found, every).iter().map(|f| tile(f)).collect::<Vec<_>>();
        all.push((folder, mpp, tiles));
    }
    let Some(path) = testkit::data("slides/CMU-1-Small-Region.svs") else { return };
    let slide = Slide::open(&path).unwrap();
    let middle = slide.read_at(Mpp::PAPER, Rect::new(1000, 1500, 2400, 2400)).unwrap();
    all.push(("CMU-1 read at 0.25 um/px", 0.25, vec![middle]));
    for (name, mpp, tiles) in &all {
        for sigma_um in [0.0, 1.5] {
            let blurred = tiles.iter().map(|t| change::gaussian(t, (sigma_um / mpp) as f32));
            let mut found: Vec<f64> = blurred
                .flat_map(|t| detect::sharpness(&t, Mpp::new(*mpp).unwrap()).unwrap())
                .collect();
            found.sort_by(f64::total_cmp);
            let at = |share: f64| found[((found.len() - 1) as f64 * share).round() as usize];
            let [low, some, half, most] = [0.0, 0.005, 0.5, 0.99].map(at);
            let answer = found.len();
            println!(
                "{name:<26} {sigma_um:.2} um {answer:>5} {low:.4} {some:.4} {half:.4} {most:.4}"
            );
            let below = found.iter().filter(|s| **s < detect::FLAW_LIMITS.sharpness).count();
            let share = below as f64 / answer as f64;
            if sigma_um == 0.0 {
                assert!(share < 0.01, "{name}: {share}");
            } else {
                assert!(share > 0.9, "{name}: {share}");
            }
        }
    }
}

/// Frames of two sources, sharp and blurred by known amounts, as windows of a slide.
#[test]
fn real_frames_are_in_focus_and_blurred_ones_are_not() {
    let Some(frames) = testkit::data("icpr2012/frames") else { return };
    let Some(organs) = testkit::data("extra_he/monuseg_1000") else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image.png");
    let mut all: Vec<(PathBuf, f64)> = files(&frames, 8).into_iter().map(|p| (p, 0.2456)).collect();
    all.extend(files(&organs, 15).into_iter().map(|p| (p, 0.25)));
    for (sigma_um, least, most) in [(0.0, 0.0, 0.0), (1.0, 0.2, 1.0), (1.5, 0.97, 1.0)] {
        let (mut mm2, mut blurred, mut other) = (0.0, 0.0, 0.0);
        for (file, mpp) in &all {
            save(&path, &change::gaussian(&tile(file), (sigma_um / mpp) as f32));
            let result = looked(&path, Some(*mpp));
            mm2 += result.analysed.0;
            blurred += result.flawed.area(Flaw::OutOfFocus).0;
            other += result.flawed.area(Flaw::Pen).0 + result.flawed.area(Flaw::Dirt).0;
        }
        let share = blurred / mm2;
        println!("blur {sigma_um:.2} um: {:5.1} % of {mm2:.3} mm2 out of focus", 100.0 * share);
        assert!(share >= least && share <= most + 1e-9, "{sigma_um}: {share}");
        assert_eq!(other, 0.0);
    }
}

/// A 20x slide on which nothing is wrong but specks on its glass.
#[test]
fn a_real_slide_is_neither_out_of_focus_nor_marked() {
    let Some(path) = testkit::data("slides/CMU-1-Small-Region.svs") else { return };
    let result = looked(&path, None);
    let share = result.flawed.area(Flaw::OutOfFocus).0 / result.analysed.0;
    println!("{:.2} % of {:.3} mm2 out of focus", 100.0 * share, result.analysed.0);
    // Squares with nothing but a soft edge in them, here and there.
    assert!(share < 0.01, "{:?}", result.flawed.squares);
    for flaw in [Flaw::Pen, Flaw::Dirt] {
        assert_eq!(result.flawed.area(flaw).0, 0.0, "{:?}", result.flawed.squares);
    }
}
