//! Detection within regions, and a run at another operating point: whole runs on drawn slides.

use crate::common::{draw, input, results, setup};
use detect::{CancelToken, Workers};
use mithras::Detector;
use mithras::Thresholds;
use mithras::batch::find;
use mithras::batch::{self, DetectionOutcome, Existing, Input, OutFolder};
use mithras::progress::Silent;
use mithras::regions::Classes;
use mithras::report::{self, AtPoint, PointError, ReportError, at_point, counts};
use mitosis::{OperatingPoint, Score};
use std::collections::BTreeMap;
use std::path::Path;

fn run(
    inputs: Vec<Input>,
    out: &Path,
    setup: &mut Detector,
    existing: Existing,
) -> Vec<DetectionOutcome> {
    let checked = batch::preflight(&inputs, setup, out, existing).unwrap();
    batch::detect(
        inputs,
        checked,
        std::slice::from_mut(setup),
        OutFolder { path: out, existing },
        &mut Silent,
        &CancelToken::new(),
    )
}

fn detector() -> Detector {
    setup(true, usize::MAX, Workers { readers: 2, ..Workers::default() })
}

fn command() -> Vec<String> {
    ["mithras", "detect"].map(String::from).to_vec()
}

/// A GeoJSON file of named squares.
fn squares(path: &Path, all: &[(&str, &str, [f64; 4])]) {
    let one = |(name, class, [x0, y0, x1, y1]): &(&str, &str, [f64; 4])| {
        format!(
            r#"{{"type": "Feature", "properties": {{"objectType": "annotation", "name": "{name}", "classification": {{"name": "{class}"}}}},
            "geometry": {{"type": "Polygon", "coordinates": [[[{x0}, {y0}], [{x1}, {y0}], [{x1}, {y1}], [{x0}, {y1}], [{x0}, {y0}]]]}}}}"#
        )
    };
    let list: Vec<String> = all.iter().map(one).collect();
    std::fs::write(
        path,
        format!(r#"{{"type": "FeatureCollection", "features": [{}]}}"#, list.join(",")),
    )
    .unwrap();
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn only_what_is_in_regions_is_read_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("s.tiff");
    draw(&slide, 3200, 2400, 3, 14);
    let (whole, part) = (dir.path().join("whole"), dir.path().join("part"));
    run(vec![input(&slide)], &whole, &mut detector(), Existing::Refuse);
    let all = counts(&whole.join("s")).unwrap();

    // Two regions that overlap, and a hole in both.
    let file = dir.path().join("drawn.geojson");
    squares(
        &file,
        &[
            ("left", "Tumour", [200.0, 200.0, 1500.0, 1400.0]),
            ("right", "Tumour", [1100.0, 400.0, 2000.0, 1600.0]),
            ("hole", "Necrosis", [1000.0, 600.0, 1300.0, 1000.0]),
        ],
    );
    let mut inputs = find(std::slice::from_ref(&slide), None, &BTreeMap::new()).unwrap();
    let classes = Classes { include: vec![], exclude: vec!["necrosis".into()] };
    inputs.restrict(&file, &[], &classes, None).unwrap();
    let mut searched = detector();
    let outcomes = run(inputs.slides.clone(), &part, &mut searched, Existing::Refuse);
    report::write(&part, &outcomes, &searched, &command()).unwrap();
    let some = counts(&part.join("s")).unwrap();
    assert!(some.windows * 2 < all.windows, "{} of {} windows", some.windows, all.windows);

    // The drawn slide is tissue throughout: what is analysed is the regions themselves.
    let regions = some.regions.as_ref().unwrap();
    let px2 = [1300.0 * 1200.0 - 300.0 * 400.0, 900.0 * 1200.0 - 200.0 * 400.0];
    let union = 1300.0 * 1200.0 + 900.0 * 1200.0 - 400.0 * 1000.0 - 300.0 * 400.0;
    let mm2 = |px2: f64| px2 * 0.0625e-6;
    let near =
        |got: f64, expected: f64| assert!((got - expected).abs() < 2e-6, "{got} is not {expected}");
    near(regions.area_mm2, mm2(union));
    near(regions.excluded_mm2, mm2(300.0 * 400.0));
    let names: Vec<_> = regions.list.iter().map(|r| (r.name.as_str(), r.class.as_str())).collect();
    assert_eq!(names, [("left", "Tumour"), ("right", "Tumour")]);
    for (r, px2) in regions.list.iter().zip(px2) {
        near(r.area_mm2, mm2(px2));
        assert!(r.analysed_mm2 <= r.area_mm2 + 1e-6 && r.unread_mm2 == 0.0);
    }
    if all.tissue_mm2 > 3200.0 * 2400.0 * 0.0625e-6 - 1e-6 {
        near(some.analysed_mm2, mm2(union));
    }

    // The hotspots' squares are larger than the regions: what was searched of them is the regions.
    assert!(some.hotspot.unwrap().on_slide_mm2.unwrap() > mm2(union));
    near(some.hotspot_mm2().unwrap(), mm2(union));
    for (r, px2) in regions.list.iter().zip(px2) {
        near(r.hotspot_mm2.unwrap(), mm2(px2));
    }
    let mut earlier = some.clone();
    let lost = earlier.regions.as_mut().unwrap();
    lost.hotspot_mm2 = None;
    lost.list.iter_mut().for_each(|r| r.hotspot_mm2 = None);
    earlier.measure_hotspots(&part.join("s")).unwrap();
    assert_eq!(earlier, some);

    // What both have is named in the output, the table and the text; what is left out is not part of it.
    let shared = mm2(400.0 * 1000.0 - 200.0 * 400.0);
    let note = format!(
        "regions `left` (Tumour) and `right` (Tumour) overlap in {shared:.4} mm2: figures there count in both, and \
         once in all together"
    );
    assert_eq!(regions.notes, std::slice::from_ref(&note));
    let printed = report::gather(std::slice::from_ref(&part), None).unwrap().to_string();
    assert!(printed.contains(&format!("s: {note}")), "{printed}");
    for table in ["counts.csv", "regions.csv"] {
        let text = std::fs::read_to_string(part.join(table)).unwrap();
        assert!(text.contains(&note), "{table}: {text}");
    }

    // Counts are those of the whole run inside the regions.
    let within = |x: f64, y: f64| {
        let (left, right) = (
            (200.0..1500.0).contains(&x) && (200.0..1400.0).contains(&y),
            (1100.0..2000.0).contains(&x) && (400.0..1600.0).contains(&y),
        );
        let hole = (1000.0..1300.0).contains(&x) && (600.0..1000.0).contains(&y);
        (left && !hole, right && !hole)
    };
    let rows =
        |run: &Path| mithras::export::read_detections(&run.join("s/detections.csv")).unwrap();
    let expected: Vec<_> = rows(&whole)
        .into_iter()
        .filter(|r| {
            let (l, r) = within(r.x_px, r.y_px);
            l || r
        })
        .collect();
    let found = rows(&part);
    // A candidate on a seam of windows that were not read may score a little otherwise; its place is the same.
    let places = |rows: &[mithras::record::DetectionRow]| -> Vec<(i64, i64)> {
        rows.iter().map(|r| (r.x_px.round() as i64, r.y_px.round() as i64)).collect()
    };
    assert_eq!(places(&found), places(&expected));
    assert!(!found.is_empty() && found.len() < rows(&whole).len());
    let figures = |f: &dyn Fn(f64, f64) -> bool| {
        found.iter().filter(|r| r.accepted && f(r.x_px, r.y_px)).count()
    };
    assert_eq!(some.figures, figures(&|_, _| true));
    assert_eq!(regions.list[0].figures, figures(&|x, y| within(x, y).0));
    assert_eq!(regions.list[1].figures, figures(&|x, y| within(x, y).1));
    // Hotspot and density of each by hand: the square of 2 mm2 is 5657 px wide, wider than a region, and so holds all
    // of it; a density is the region's figures over its own tissue.
    for r in &regions.list {
        assert_eq!(r.hotspot_count, r.figures, "{}", r.name);
        let density = 20.0 * r.figures as f64 / r.analysed_mm2;
        let got = r.density_per_20_mm2.unwrap();
        assert!((got - density).abs() < 1e-3 * density, "{}: {got} is not {density}", r.name);
        let centre = r.hotspot.unwrap().centre_px;
        let (left, right) = within(centre[0], centre[1]);
        assert!(if r.name == "left" { left } else { right }, "{}: {centre:?}", r.name);
    }
    assert!(regions.list.iter().all(|r| r.figures > 0), "{regions:?}");

    // The tables have them, and the outlines can be searched again.
    let table = std::fs::read_to_string(part.join("regions.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines.len() == 4
            && lines[1].starts_with("s,left,Tumour,")
            && lines[3].starts_with("s,(all),"),
        "{table}"
    );
    let csv = std::fs::read_to_string(part.join("counts.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains(",regions,regions_mm2,excluded_mm2"), "{csv}");
    let again = dir.path().join("again");
    inputs.restrict(&part.join("s/regions.geojson"), &[], &Classes::default(), None).unwrap();
    run(inputs.slides.clone(), &again, &mut detector(), Existing::Refuse);
    let same = counts(&again.join("s")).unwrap();
    assert_eq!((same.figures, same.analysed_mm2), (some.figures, some.analysed_mm2));

    // Other regions are another configuration: nothing is mixed.
    squares(&file, &[("other", "", [200.0, 200.0, 900.0, 900.0])]);
    inputs.restrict(&file, &[], &Classes::default(), None).unwrap();
    let refused = batch::preflight(&inputs.slides, &detector(), &part, Existing::Resume)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("regions was"), "{refused}");
    // Those of a larger slide are refused before any work.
    squares(&file, &[("far", "", [3000.0, 2000.0, 6000.0, 4000.0])]);
    inputs.restrict(&file, &[], &Classes::default(), None).unwrap();
    let checked =
        batch::preflight(&inputs.slides, &detector(), &dir.path().join("far"), Existing::Refuse)
            .unwrap();
    let answer = checked[0].as_ref().unwrap_err().to_string();
    assert!(answer.contains("region `far` is off the slide"), "{answer}");
}

#[test]
fn another_operating_point_gives_the_bytes_of_another_detection() {
    let dir = tempfile::tempdir().unwrap();
    let slides = ["a", "b"].map(|n| dir.path().join(n).with_extension("tiff"));
    slides.iter().zip([5, 6]).for_each(|(s, seed)| drop(draw(s, 1800, 1400, seed, 8)));
    let blank = dir.path().join("blank.png");
    image::RgbImage::from_pixel(900, 700, image::Rgb([243, 242, 244])).save(&blank).unwrap();
    let inputs = || {
        let mut all: Vec<Input> = slides.iter().map(|s| input(s)).collect();
        all[0].columns = vec![("case".into(), "one".into()), ("age".into(), "61".into())];
        all[1].columns = vec![("case".into(), "one".into()), ("age".into(), "61".into())];
        all.push(Input {
            mpp: Some(mitosis::Mpp::PAPER),
            columns: vec![("case".into(), "two".into())],
            ..input(&blank)
        });
        all
    };
    let (first, moved, direct) =
        (dir.path().join("first"), dir.path().join("moved"), dir.path().join("direct"));
    let mut at = detector();
    let outcomes = run(inputs(), &first, &mut at, Existing::Refuse);
    report::write(&first, &outcomes, &at, &command()).unwrap();
    let score = |v| Score::new(v).unwrap();
    let point = OperatingPoint {
        seg: score(0.45),
        cls: score(0.2),
        provenance: "given by hand: 0.45,0.2".into(),
    };
    let thresholds = Thresholds::Given(point.clone());
    let of = AtPoint {
        run: &first,
        into: &moved,
        thresholds: &thresholds,
        package: None,
        slides: None,
        command: &command(),
    };
    at_point(&of).unwrap();
    assert!(at_point(&of).unwrap_err().to_string().contains("already holds results"));

    let mut other = detector();
    other.config.thresholds = point;
    other.config.operating_point = "given".into();
    let outcomes = run(inputs(), &direct, &mut other, Existing::Refuse);
    report::write(&direct, &outcomes, &other, &command()).unwrap();
    let mut differ = 0;
    for slide in ["a", "b", "blank"] {
        let (a, b) = (results(&moved.join(slide)), results(&direct.join(slide)));
        assert_eq!(
            a.iter().map(|f| &f.0).collect::<Vec<_>>(),
            b.iter().map(|f| &f.0).collect::<Vec<_>>()
        );
        for ((name, x), (_, y)) in a.iter().zip(&b) {
            assert!(
                x == y,
                "{slide}/{} differs:\n{}\n{}",
                name.display(),
                String::from_utf8_lossy(x),
                String::from_utf8_lossy(y)
            );
        }
        let before = results(&first.join(slide));
        differ += usize::from(before.iter().zip(&b).any(|(x, y)| x.1 != y.1));
    }
    assert!(differ > 0, "the points give the same figures");
    let text = |run: &Path, file: &str| std::fs::read_to_string(run.join(file)).unwrap();
    for file in ["counts.csv", "cases.csv"] {
        assert_eq!(text(&moved, file), text(&direct, file), "{file}");
    }
    let value =
        |run: &Path| -> serde_json::Value { serde_json::from_str(&text(run, "run.json")).unwrap() };
    let (m, d) = (value(&moved), value(&direct));
    assert_eq!((&m["config"], &m["config_sha256"]), (&d["config"], &d["config_sha256"]));
    // What was moved is a run like any other: detection resumes it.
    assert!(batch::preflight(&inputs(), &other, &moved, Existing::Resume).is_ok());

    let cases = text(&moved, "cases.csv");
    let lines: Vec<&str> = cases.lines().collect();
    assert!(
        lines[0].ends_with(",age") && lines[1].starts_with("one,2,0,") && lines[1].ends_with(",61"),
        "{cases}"
    );
    assert!(lines[2].starts_with("two,1,0,0,0,,"), "{cases}");
}

#[test]
fn a_second_threshold_for_a_run_of_one_stage_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (slide, out, into) =
        (dir.path().join("a.tiff"), dir.path().join("out"), dir.path().join("into"));
    draw(&slide, 900, 700, 5, 3);
    let mut at = setup(false, usize::MAX, Workers { readers: 1, ..Workers::default() });
    let outcomes = run(vec![input(&slide)], &out, &mut at, Existing::Refuse);
    report::write(&out, &outcomes, &at, &command()).unwrap();
    let moved = |cls: f32| {
        let [seg, cls] = [0.45, cls].map(|v| Score::new(v).unwrap());
        let point = OperatingPoint { seg, cls, provenance: "given by hand".into() };
        let (thresholds, command) = (Thresholds::Given(point), command());
        let (run, into, thresholds, command) = (&*out, &*into, &thresholds, &*command);
        at_point(&AtPoint { run, into, thresholds, package: None, slides: None, command })
    };
    let refused = moved(0.25).unwrap_err();
    assert!(matches!(refused, PointError::SecondThreshold(cls) if cls == 0.25), "{refused}");
    assert!(refused.to_string().contains("second threshold is 0, not 0.25"), "{refused}");
    assert!(!into.exists());
    assert_eq!(moved(0.0).unwrap().done, 1);
}

#[test]
fn a_run_at_another_point_is_there_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    let slides = ["a", "b"].map(|n| at(n).with_extension("tiff"));
    slides.iter().zip([5, 6]).for_each(|(s, seed)| drop(draw(s, 1800, 1400, seed, 8)));
    let (out, mut detector) = (at("out"), detector());
    let inputs = slides.iter().map(|s| input(s)).collect();
    let outcomes = run(inputs, &out, &mut detector, Existing::Refuse);
    report::write(&out, &outcomes, &detector, &command()).unwrap();
    let cls = Score::new(0.0).unwrap();
    let thresholds = Thresholds::Given(OperatingPoint { cls, ..detector.config.thresholds });
    let moved = |into: &Path, slides: &Path| {
        let (run, thresholds, command) = (&*out, &thresholds, &*command());
        at_point(&AtPoint { run, into, thresholds, package: None, slides: Some(slides), command })
    };
    // It ends at the second slide.
    std::fs::create_dir(at("some")).unwrap();
    std::fs::copy(&slides[0], at("some/a.tiff")).unwrap();
    let into = at("into");
    let refused = moved(&into, &at("some")).unwrap_err();
    assert!(matches!(&refused, PointError::Slide { slide, .. } if slide == "b"), "{refused}");
    let gathered = report::gather(std::slice::from_ref(&into), None);
    assert!(matches!(gathered, Err(ReportError::Nothing { .. })), "{gathered:?}");
    // As a process leaves it that is killed.
    std::fs::create_dir_all(into.join(".writing-x/run/a")).unwrap();
    assert_eq!(moved(&into, dir.path()).unwrap().done, 2);
    assert!(!into.join(".writing-x").exists());
    // What is in a folder is known once nobody else writes there.
    let held = mithras::file::Lock::take(&into).unwrap();
    assert!(matches!(moved(&into, dir.path()), Err(PointError::Lock(_))));
    drop(held);
    assert!(matches!(moved(&into, dir.path()), Err(PointError::Exists { .. })));
    let raced = at("raced");
    let both = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| moved(&raced, dir.path())));
        both.map(|t| t.join().unwrap().is_ok())
    });
    assert_eq!(both.iter().filter(|done| **done).count(), 1, "{both:?}");
}
