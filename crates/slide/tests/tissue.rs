//! Tissue and window plan: scikit-image's thresholds, coverage, areas, outlines, several threads.

use mitosis::{Mpp, Point};
use slide::{OpenOptions, Rect, Slide, TissueMask, TissueRule, WindowPlan, otsu};
use std::path::Path;

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[test]
fn otsu_equals_scikit_image() {
    let cases: serde_json::Value =
        serde_json::from_slice(&std::fs::read(golden("otsu.json")).unwrap()).unwrap();
    let cases = cases.as_array().unwrap();
    assert!(cases.len() > 25);
    for case in cases {
        let mut histogram = [0u64; 256];
        for pair in case["histogram"].as_array().unwrap() {
            histogram[pair[0].as_u64().unwrap() as usize] = pair[1].as_u64().unwrap();
        }
        let got = otsu::threshold(&histogram).unwrap();
        assert_eq!(u64::from(got), case["threshold"].as_u64().unwrap(), "{}", case["name"]);
    }
}

/// A 1600 x 1200 slide at 0.25 um/px with a tissue block, as PNG.
fn drawn(dir: &Path, tissue: bool) -> Slide {
    framed(dir, tissue, [242; 3])
}

/// The same; its left quarter has the colour of a frame.
fn framed(dir: &Path, tissue: bool, frame: [u8; 3]) -> Slide {
    let (w, h) = (1600u32, 1200u32);
    let mut data = vec![242u8; (3 * w * h) as usize];
    for line in data.chunks_exact_mut(3 * w as usize) {
        line[..3 * 400].as_chunks_mut::<3>().0.fill(frame);
    }
    if tissue {
        for y in 333..901 {
            for x in 500..1377 {
                let i = (3 * (y * w + x)) as usize;
                data[i..i + 3].copy_from_slice(&[190, 110, 170]);
            }
        }
    }
    let path = dir.join("drawn.png");
    image::save_buffer(&path, &data, w, h, image::ExtendedColorType::Rgb8).unwrap();
    let options = OpenOptions { mpp: Some(Mpp::PAPER), ..OpenOptions::default() };
    Slide::open_with(path, &options).unwrap()
}

#[test]
fn a_drawn_block_is_found_with_its_area() {
    let dir = tempfile::tempdir().unwrap();
    let slide = drawn(dir.path(), true);
    let mask = TissueMask::find(&slide).unwrap();
    assert_eq!(mask.rule, TissueRule::Otsu);
    let truth = (1377.0 - 500.0) * (901.0 - 333.0) * 0.25 * 0.25 * 1e-6;
    assert!((mask.area_mm2() / truth - 1.0).abs() < 0.01, "{} {truth}", mask.area_mm2());
    let left = mask.area_mm2_where(|p| p.x < 900.0);
    let right = mask.area_mm2_where(|p| p.x >= 900.0);
    assert!((left + right - mask.area_mm2()).abs() < 1e-12);
    assert!(mask.contains(Point::new(600.0, 400.0)) && !mask.contains(Point::new(100.0, 400.0)));

    let polygons = mask.polygons();
    assert_eq!((polygons.len(), polygons[0].holes.len()), (1, 0));
    for [x, y] in &polygons[0].outer {
        assert!((x - 500.0).abs() < 6.0 || (x - 1377.0).abs() < 6.0, "{x}");
        assert!((y - 333.0).abs() < 6.0 || (y - 901.0).abs() < 6.0, "{y}");
    }
    let json = serde_json::to_value(mask.geojson((10, 20))).unwrap();
    let first = &json["features"][0]["geometry"]["coordinates"][0][0];
    assert_eq!(first[0].as_f64().unwrap(), polygons[0].outer[0][0] - 10.0);
    assert_eq!(json["features"][0]["properties"]["objectType"], "annotation");
    let png = image::load_from_memory(&mask.png().unwrap()).unwrap().into_luma8();
    let white = png.pixels().filter(|p| p.0[0] == 255).count();
    assert_eq!(white, mask.mask.iter().filter(|t| **t).count());
}

/// Black and dark grey surroundings, of a camera or a conversion, change nothing of the tissue; a stain does.
#[test]
fn a_dark_frame_hides_no_tissue_and_is_not_tissue() {
    let dir = tempfile::tempdir().unwrap();
    let plain = TissueMask::find(&drawn(dir.path(), true)).unwrap();
    assert_eq!(plain.not_scanned, 0);
    for frame in [[0; 3], [12; 3], [13; 3], [35, 33, 40], [70, 66, 74]] {
        let slide = framed(dir.path(), true, frame);
        let mask = TissueMask::find(&slide).unwrap();
        assert_eq!((mask.threshold, mask.rule), (plain.threshold, TissueRule::Otsu), "{frame:?}");
        assert_eq!(mask.mask, plain.mask, "{frame:?}");
        assert!(mask.not_scanned * 4 >= mask.mask.len(), "{frame:?}");
        let reason = slide::outdated(Ok(slide), 2).expect("other tissue than before");
        assert!(reason.contains("black or a dark frame"), "{reason}");
        assert!(TissueMask::find(&framed(dir.path(), false, frame)).unwrap().is_empty());
    }
    let stained = TissueMask::find(&framed(dir.path(), true, [74, 40, 70])).unwrap();
    assert!(stained.not_scanned == 0 && stained.area_mm2() > plain.area_mm2() * 0.9);
    assert_eq!(slide::outdated(Ok(drawn(dir.path(), true)), 2), None);
}

#[test]
fn a_blank_slide_has_no_tissue() {
    let dir = tempfile::tempdir().unwrap();
    let slide = drawn(dir.path(), false);
    let mask = TissueMask::find(&slide).unwrap();
    assert!(mask.is_empty() && mask.rule == TissueRule::Blank && mask.area_mm2() == 0.0);
    let plan = WindowPlan::new(&slide, Mpp::PAPER, 512, 400, Some(&mask)).unwrap();
    assert_eq!(plan.count(), 0);
    assert!(mask.polygons().is_empty());
}

#[test]
fn windows_cover_all_tissue_in_raster_order() {
    let dir = tempfile::tempdir().unwrap();
    let slide = drawn(dir.path(), true);
    let mask = TissueMask::find(&slide).unwrap();
    for (mpp, window, stride) in
        [(0.25, 512, 400), (0.25, 64, 64), (0.31, 100, 77), (1.0, 512, 400)]
    {
        let mpp = Mpp::new(mpp).unwrap();
        let plan = WindowPlan::new(&slide, mpp, window, stride, Some(&mask)).unwrap();
        let all: Vec<_> = plan.iter().collect();
        assert!(all.windows(2).all(|w| (w[0].y, w[0].x) < (w[1].y, w[1].x)));
        assert!(all.iter().all(|w| w.x % stride as i64 == 0 && w.y % stride as i64 == 0));
        let (ww, wh) = slide.working_dimensions(mpp).unwrap();
        let (sx, sy) = slide.working_scale(mpp).unwrap();
        let inside = |v: i64, a: i64| v >= a && v < a + window as i64;
        for y in (0..wh as i64).step_by(7).chain([wh as i64 - 1]) {
            for x in (0..ww as i64).step_by(7).chain([ww as i64 - 1]) {
                let tissue =
                    mask.contains(Point::new((x as f64 + 0.5) * sx, (y as f64 + 0.5) * sy));
                let covered = all.iter().any(|w| inside(x, w.x) && inside(y, w.y));
                assert!(covered || !tissue, "({x}, {y}) at {mpp}");
            }
        }
        let full = WindowPlan::new(&slide, mpp, window, stride, None).unwrap();
        let (columns, rows) = full.grid();
        assert_eq!(full.count(), (columns * rows) as u64);
        let last = full.iter().last().unwrap();
        assert!(last.x + window as i64 >= ww as i64 && last.y + window as i64 >= wh as i64);
        assert!(columns == 1 || last.x - (stride as i64) + (window as i64) < ww as i64);
        let r = full.level0(last);
        assert!(r.x + r.width as i64 >= 1600 && r.y + r.height as i64 >= 1200);
    }
    assert!(mask.covers(Rect { x: 0, y: 0, width: 1600, height: 1200 }));
}

#[test]
fn threads_read_what_one_reads() {
    let path = golden("slides/svs_jpeg_420.svs");
    // A cache too small for the slide: tiles come and go.
    let options = OpenOptions { cache_bytes: 16 * 3 * 64 * 64 * 2, ..OpenOptions::default() };
    let slide = Slide::open_with(&path, &options).unwrap();
    let mpp = Mpp::new(0.31).unwrap();
    let whole = slide.read_at(mpp, Rect::new(0, 0, 140, 100)).unwrap();
    std::thread::scope(|s| {
        for t in 0..4i64 {
            let (slide, whole) = (&slide, &whole);
            s.spawn(move || {
                for k in 0..40i64 {
                    let (x, y) = ((k * 37 + t * 11) % 100, (k * 23 + t * 7) % 70);
                    let tile = slide.read_at(mpp, Rect::new(x, y, 40, 30)).unwrap();
                    for r in 0..30 {
                        let from = 3 * ((y as usize + r) * 140 + x as usize);
                        assert!(tile.data[120 * r..120 * (r + 1)] == whole.data[from..from + 120]);
                    }
                }
            });
        }
    });
}

#[test]
fn a_frame_full_of_tissue_is_all_tissue_or_nearly() {
    let Some(frames) = testkit::data("icpr2012/frames") else { return };
    let options = OpenOptions { mpp: Some(Mpp::new(0.2456).unwrap()), ..OpenOptions::default() };
    for entry in std::fs::read_dir(frames).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e == "csv") {
            continue;
        }
        let slide = Slide::open_with(&path, &options).unwrap();
        let mask = TissueMask::find(&slide).unwrap();
        let (w, h) = slide.dimensions();
        let share = mask.area_mm2() / (w as f64 * h as f64 * 0.2456 * 0.2456 * 1e-6);
        eprintln!("{}: {:?}, share {share:.3}", path.display(), mask.rule);
        let plan = WindowPlan::new(&slide, Mpp::PAPER, 512, 400, Some(&mask)).unwrap();
        let full = WindowPlan::new(&slide, Mpp::PAPER, 512, 400, None).unwrap();
        assert!(share > 0.5 && plan.count() == full.count(), "{}: {share}", path.display());
    }
}
