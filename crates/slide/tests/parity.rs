//! Pixels against other decoders: CRC-32 of lossless and libjpeg decodings (`golden/slides.json`),
//! and OpenSlide itself where its library is found.

use mitosis::RgbTile;
use slide::{OpenOptions, Rect, Slide, SlideError};
use std::path::{Path, PathBuf};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn figures() -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(golden().join("slides.json")).unwrap()).unwrap()
}

fn crc32(data: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(data);
    crc.sum()
}

fn whole(slide: &Slide, level: usize) -> Result<RgbTile, SlideError> {
    let l = &slide.levels()[level];
    slide.read_level(level, Rect::new(0, 0, l.width as usize, l.height as usize))
}

fn through_openslide(path: &Path) -> Option<Slide> {
    let options = OpenOptions { force_openslide: true, ..OpenOptions::default() };
    match Slide::open_with(path, &options) {
        Ok(s) => Some(s),
        Err(e) if e.to_string().contains("was not found") => {
            eprintln!("SKIPPED: {e}");
            None
        }
        Err(e) => {
            eprintln!("not read by OpenSlide: {e}");
            None
        }
    }
}

#[test]
fn every_drawn_slide_equals_its_figures() {
    for (name, own) in figures().as_object().unwrap() {
        let slide = Slide::open(golden().join("slides").join(name)).unwrap();
        let Some(levels) = own["levels"].as_array() else { continue };
        assert_eq!(slide.levels().len(), levels.len(), "{name}");
        for (i, want) in levels.iter().enumerate() {
            let tile = whole(&slide, i).unwrap();
            assert_eq!(
                (tile.width as u64, tile.height as u64),
                (want["width"].as_u64().unwrap(), want["height"].as_u64().unwrap()),
                "{name} level {i}"
            );
            assert_eq!(
                u64::from(crc32(&tile.data)),
                want["crc32"].as_u64().unwrap(),
                "{name} level {i}"
            );
        }
    }
}

/// Compares all that both give: levels, associated images, resolution, odd rectangles.
fn compare(path: &Path) -> bool {
    let own = Slide::open(path).unwrap();
    let Some(theirs) = through_openslide(path) else { return false };
    assert_ne!(own.format(), "openslide");
    let name = path.display();
    assert_eq!(own.dimensions(), theirs.dimensions(), "{name}");
    for (i, (a, b)) in own.levels().iter().zip(theirs.levels()).enumerate() {
        assert_eq!((a.width, a.height), (b.width, b.height), "{name} level {i}");
        let (a, b) = (whole(&own, i).unwrap(), whole(&theirs, i).unwrap());
        // OpenSlide blends level pixels where its fractional downsample misses the grid; whole tiles
        // are asked from the level's origin, so only the first is free of that on lower levels.
        let clean = if i == 0 { a.data.len() } else { 0 };
        let worst = a.data[..clean].iter().zip(&b.data).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(worst.unwrap_or(0) <= 1, "{name} level {i}: {worst:?}");
        let side = 32.min(own.levels()[i].width as usize).min(own.levels()[i].height as usize);
        let (a, b) = (
            own.read_level(i, Rect::new(0, 0, side, side)).unwrap(),
            theirs.read_level(i, Rect::new(0, 0, side, side)).unwrap(),
        );
        let worst = a.data.iter().zip(&b.data).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(worst.unwrap() <= 1, "{name} corner of level {i}: {worst:?}");
    }
    let (w, h) = own.dimensions();
    for (x, y) in [(-3, -5), (w as i64 / 2 - 20, h as i64 / 2 - 9), (w as i64 - 11, h as i64 - 7)] {
        let (a, b) = (
            own.read_region(0, Rect::new(x, y, 37, 23)).unwrap(),
            theirs.read_region(0, Rect::new(x, y, 37, 23)).unwrap(),
        );
        let worst = a.data.iter().zip(&b.data).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(worst.unwrap() <= 1, "{name} at ({x}, {y}): {worst:?}");
    }
    for a in theirs.associated_images() {
        let (x, y) =
            (own.associated_image(&a.name).unwrap(), theirs.associated_image(&a.name).unwrap());
        let worst = x.data.iter().zip(&y.data).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(worst.unwrap() <= 1, "{name} {}: {worst:?}", a.name);
    }
    match (own.resolution(), theirs.resolution()) {
        (Ok(a), Ok(b)) => assert!((a.x.get() / b.x.get() - 1.0).abs() < 1e-9, "{name}"),
        // OpenSlide states any density as um/px; here it must be plausible.
        (Err(_), _) => {}
        // OpenSlide reads OME-TIFF as a plain TIFF.
        (Ok(_), Err(_)) if own.vendor() == "ome-tiff" => {}
        (Ok(a), Err(b)) => panic!("{name}: {a:?} against {b}"),
    }
    true
}

#[test]
fn drawn_slides_equal_openslide() {
    let mut compared = 0;
    for (name, _) in figures().as_object().unwrap() {
        compared += usize::from(compare(&golden().join("slides").join(name)));
    }
    eprintln!("{compared} drawn slides compared with OpenSlide");
}

#[test]
fn real_slides_equal_openslide() {
    for name in [
        "CMU-1-Small-Region.svs",
        "tcga-cr-7395-01a-01-ts1.svs",
        "boxes.tiff",
        "small.svs",
        "hs2p-test-mask.tif",
    ] {
        let Some(path) = testkit::data(&format!("slides/{name}")) else { continue };
        compare(&path);
    }
}

#[test]
fn a_bad_tile_does_not_poison_openslide() {
    // `unreadable.svs` opens and fails at its only tile, every time with the same error.
    let Some(path) = testkit::data("slides/unreadable.svs") else { return };
    for force in [false, true] {
        let options = OpenOptions { force_openslide: force, ..OpenOptions::default() };
        let slide = match Slide::open_with(&path, &options) {
            Ok(s) => s,
            Err(e) => {
                eprintln!("{e}");
                assert!(force || e.to_string().contains("damaged"), "{e}");
                continue;
            }
        };
        for _ in 0..2 {
            let e = slide.read_region(0, Rect::new(0, 0, 16, 16)).unwrap_err();
            assert!(e.is_tile(), "{e}");
        }
    }
}
