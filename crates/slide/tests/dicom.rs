//! DICOM slides: pixels against those that were drawn, libjpeg and OpenSlide; which files make a slide;
//! what is refused, and in which words.

use mitosis::RgbTile;
use slide::privacy::{self, Personal};
use slide::{DicomPart, OpenOptions, Slide, SlideError, dicom_part};
use std::path::{Path, PathBuf};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn drawn(name: &str) -> PathBuf {
    golden().join("dicom").join(name)
}

fn figures() -> serde_json::Map<String, serde_json::Value> {
    serde_json::from_slice(&std::fs::read(golden().join("dicom.json")).unwrap()).unwrap()
}

/// Without OpenSlide: what is read here needs none.
fn open(path: &Path) -> Result<Slide, SlideError> {
    let options =
        OpenOptions { openslide: Some("/no/such/library".into()), ..OpenOptions::default() };
    Slide::open_with(path, &options)
}

fn through_openslide(path: &Path) -> Option<Slide> {
    let options = OpenOptions { force_openslide: true, ..OpenOptions::default() };
    let opened = Slide::open_with(path, &options);
    opened.map_err(|e| eprintln!("not through OpenSlide: {e}")).ok()
}

fn whole(slide: &Slide, level: usize) -> RgbTile {
    let l = &slide.levels()[level];
    slide.read_level(level, 0, 0, l.width as usize, l.height as usize).unwrap()
}

fn check(tile: &RgbTile, want: &serde_json::Value, what: &str) {
    let mut crc = flate2::Crc::new();
    crc.update(&tile.data);
    let size = |key: &str| want[key].as_u64().unwrap() as usize;
    assert_eq!((tile.width, tile.height), (size("width"), size("height")), "{what}");
    assert_eq!(u64::from(crc.sum()), want["crc32"].as_u64().unwrap(), "{what}");
}

fn worst(a: &RgbTile, b: &RgbTile) -> u8 {
    assert_eq!((a.width, a.height), (b.width, b.height));
    a.data.iter().zip(&b.data).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn every_drawn_slide_equals_its_figures() {
    for (name, own) in figures() {
        let slide = open(&drawn(&name)).unwrap();
        assert_eq!((slide.format(), slide.vendor()), ("dicom", "dicom"), "{name}");
        assert_eq!(slide.resolution().unwrap().x.get(), 0.25, "{name}");
        assert_eq!(slide.dimensions(), (100, 70));
        if let Some(picture) = own["picture"].as_str() {
            let picture = Slide::open(drawn(picture)).unwrap();
            assert!(worst(&whole(&slide, 0), &whole(&picture, 0)) <= 1, "{name}");
            continue;
        }
        let levels = own["levels"].as_array().unwrap();
        assert_eq!(slide.levels().len(), levels.len(), "{name}");
        for (i, want) in levels.iter().enumerate() {
            check(&whole(&slide, i), want, &format!("{name} level {i}"));
        }
        let images = own["associated"].as_array().cloned().unwrap_or_default();
        assert_eq!(slide.associated_images().len(), images.len(), "{name}");
        for want in images {
            let image = want["name"].as_str().unwrap();
            check(&slide.associated_image(image).unwrap(), &want, image);
        }
        let absent: Vec<_> =
            slide.absent_tiles(0).iter().map(|t| serde_json::json!([t.column, t.row])).collect();
        assert_eq!(absent, own["left_out"].as_array().cloned().unwrap_or_default(), "{name}");
        assert!(slide.suspect_tiles().is_empty(), "{name}");
    }
}

/// All that both give; `most` is how far pixels may be apart.
fn compare(path: &Path, most: u8) {
    let Some(theirs) = through_openslide(path) else { return };
    let (own, name) = (open(path).unwrap(), path.display());
    let sizes = |s: &Slide| -> Vec<_> { s.levels().iter().map(|l| (l.width, l.height)).collect() };
    assert_eq!(sizes(&own), sizes(&theirs), "{name}");
    for (i, (a, b)) in own.levels().iter().zip(theirs.levels()).enumerate() {
        assert!((a.downsample_x / b.downsample_x - 1.0).abs() < 0.02, "{name} level {i}");
        assert!(worst(&whole(&own, i), &whole(&theirs, i)) <= most, "{name} level {i}");
    }
    let (w, h) = own.dimensions();
    for (x, y) in [(-3, -5), (w as i64 / 2 - 20, h as i64 / 2 - 9), (w as i64 - 11, h as i64 - 7)] {
        let read = |s: &Slide| s.read_region(0, x, y, 37, 23).unwrap();
        assert!(worst(&read(&own), &read(&theirs)) <= most, "{name} at ({x}, {y})");
    }
    let names = |s: &Slide| -> Vec<_> {
        s.associated_images().iter().map(|a| (a.name.clone(), a.width, a.height)).collect()
    };
    assert_eq!(names(&own), names(&theirs), "{name}");
    for (image, ..) in names(&own) {
        let read = |s: &Slide| s.associated_image(&image).unwrap();
        assert!(worst(&read(&own), &read(&theirs)) <= most, "{name} {image}");
    }
    let (a, b) = (own.resolution().unwrap(), theirs.resolution().unwrap());
    assert_eq!((a.x, a.y), (b.x, b.y), "{name}");
    eprintln!("{name} equals OpenSlide");
}

#[test]
fn drawn_slides_equal_openslide() {
    for (name, own) in figures() {
        if own["openslide"] != serde_json::json!(false) {
            compare(&drawn(&name), u8::from(name.starts_with("jp2k_lossy")));
        }
    }
}

#[test]
fn real_slides_equal_openslide() {
    for name in ["boxes_0", "boxes_1", "sm_image", "sm_image_control", "sm_image_dots", "sm_image_numbers"] {
        let Some(path) = testkit::data(&format!("slides/{name}.dcm")) else { continue };
        assert_eq!(open(&path).unwrap().resolution().unwrap().x.get(), 0.499, "{name}");
        compare(&path, 0);
    }
}
