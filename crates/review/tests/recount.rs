//! A run counted again: what was searched of the slide, and what was not.

use super::dicom::run;
use mithras::export::{CountsFile, read_detections, restored, write_all};
use mithras::regions::{Searched, SearchedRegion};
use mitosis::hotspots::{HotspotRule, Shape};
use review::view::desk::{self, Placement};
use review::view::{Entry, Grading, Recount, RecountError, SlideKey, Verdict, VerdictLog, recount};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A run of one slide of 20,000 x 10,000 px, which two figures at the left edge are on.
fn whole(root: &Path) -> PathBuf {
    let run = run(root, "case.svs", (20_000, 10_000), "ab");
    fs::write(run.join("case/tissue.geojson"), r#"{"features": []}"#).unwrap();
    run
}

/// The same, of which the left 4,000 px alone were searched.
fn left(root: &Path) -> PathBuf {
    let run = whole(root);
    let folder = run.join("case");
    let rows = read_detections(&folder.join("detections.csv")).unwrap();
    let counts =
        CountsFile::parse(&fs::read_to_string(folder.join("counts.json")).unwrap()).unwrap();
    let source = roi::regions::Source {
        file: "drawn.geojson".into(),
        format: "geojson".into(),
        sha256: "00".into(),
    };
    let region = SearchedRegion {
        name: "left".into(),
        class: String::new(),
        area: roi::Area::rectangle([0.0, 0.0], [4_000.0, 10_000.0]),
        area_mm2: 2.5,
        tissue_mm2: 2.5,
        analysed_mm2: 2.5,
        unread_mm2: 0.0,
    };
    let searched = Searched {
        source,
        area_mm2: 2.5,
        excluded_mm2: 0.0,
        list: vec![region],
        notes: Vec::new(),
    };
    let outlines = serde_json::to_vec(&searched.geojson("ab", [0, 0])).unwrap();
    fs::write(folder.join("regions.geojson"), outlines).unwrap();
    write_all(&restored(&counts, rows, Some(searched)).unwrap(), &folder).unwrap();
    run
}

fn again(run: &Path, reviews: &str) -> Result<Recount, RecountError> {
    recount(run, reviews, Some(Grading::load("who-net", None).unwrap()), true)
}

/// Figures that somebody added in QuPath at these places, to those that the run wrote.
fn drawn(run: &Path, places: &[[f64; 2]]) -> String {
    let text = fs::read_to_string(run.join("case/qupath.geojson")).unwrap();
    let mut all: Value = serde_json::from_str(&text).unwrap();
    for (k, [x, y]) in places.iter().enumerate() {
        let feature = format!(
            r#"{{"type": "Feature", "id": "11111111-1111-4111-8111-11111111111{k}",
                "geometry": {{"type": "Point", "coordinates": [{x}, {y}]}}, "properties":
                {{"objectType": "annotation", "classification": {{"name": "Mitotic figure"}}}}}}"#
        );
        all["features"].as_array_mut().unwrap().push(serde_json::from_str(&feature).unwrap());
    }
    let folder = run.join("corrected");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("case.geojson"), all.to_string()).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn objects_that_are_not_where_was_searched_do_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let places = [[9000.0, 900.0], [-500.0, -500.0], [30_000.0, 30_000.0], [20_001.0, 8.0]];
    let of_run = |run: &Path, added: usize| {
        let row = again(run, &drawn(run, &places)).unwrap().slides.remove(0);
        assert_eq!((row.added, row.reviewed.figures), (added, 2 + added), "{:?}", row.notes);
        row.notes.join("; ")
    };
    let notes = of_run(&whole(dir.path()), 1);
    let off = "2 added figures not on the slide, left out: x 20001, y 8 px; x 30000, y 30000 px";
    assert!(notes.contains(off) && notes.contains("1 objects cannot be placed"), "{notes}");
    assert!(!notes.contains("regions"), "{notes}");
    let notes = of_run(&left(dir.path()), 0);
    let outside =
        "1 added figure outside the regions that were searched, left out: x 9000, y 900 px";
    assert!(notes.contains(off) && notes.contains(outside), "{notes}");
}

/// Hotspots of 1 mm2, which are 4,514 px across.
fn place(run: &Path, digest: &str, at: [f64; 2], mpp: Option<f64>) {
    let of =
        SlideKey { slide: "case".into(), slide_digest: digest.into(), model_digest: String::new() };
    let rule = HotspotRule { shape: Shape::Circle, fields: 1, field_mm2: 1.0, apart: false };
    let mpp = mpp.map(|v| [v; 2]);
    let placement = Placement { preset: "melanoma".into(), rule, centres_px: vec![at], mpp };
    desk::place(&run.join("reviews"), "anna", &of, placement).unwrap();
}

fn judge(run: &Path, at: [f64; 2], added: bool) {
    let of =
        SlideKey { slide: "case".into(), slide_digest: "ab".into(), model_digest: String::new() };
    let [x, y] = at;
    let key = format!("{}{}", if added { "+" } else { "" }, Entry::key_of(x, y));
    let (verdict, morphology, comment) = (Some(Verdict::Figure), None, None);
    let entry = Entry { key, x, y, verdict, added, morphology, comment };
    VerdictLog::open(&run.join("reviews"), "anna").unwrap().record(&of, entry).unwrap();
}

#[test]
fn only_the_searched_part_of_a_placed_hotspot_is_its_area() {
    let dir = tempfile::tempdir().unwrap();
    let run = left(dir.path());
    judge(&run, [2000.0, 5000.0], true);
    judge(&run, [20_001.0, 5000.0], true);
    let row = || again(&run, "anna").unwrap().slides.remove(0);
    for (x, mm2) in [(1800.0, 0.9), (4000.0, 0.5), (0.0, 0.5)] {
        place(&run, "ab", [x, 5000.0], None);
        let row = row();
        let placed = row.placed_hotspot.unwrap();
        let score = row.reviewed.mitotic_score.unwrap();
        assert!(
            (placed.area_mm2 - mm2).abs() < 0.05 && score.starts_with("at least "),
            "{placed:?}"
        );
        let off = "1 added figure not on the slide, left out: x 20001, y 5000 px";
        assert!(row.notes.iter().any(|n| n == off), "{:?}", row.notes);
    }
    // Of another file of this name, after which the last on this one counts still.
    place(&run, "cd", [1800.0, 5000.0], None);
    assert_eq!(row().placed_hotspot.unwrap().centres_px, [[0.0, 5000.0]]);
    // Lines of earlier versions may be anywhere.
    for (at, outside) in [
        ([9000.0, 5000.0], "outside the regions that were searched"),
        ([30_000.0, 5000.0], "not on the slide"),
    ] {
        place(&run, "ab", at, Some(0.25));
        let e = again(&run, "anna").unwrap_err();
        assert!(matches!(e, RecountError::HotspotOutside { .. }), "{e}");
        let place = format!("hotspots.log: the hotspot that anna placed on case (x {},", at[0]);
        assert!(e.to_string().contains(&place) && e.to_string().contains(outside), "{e}");
        // The densest square needs no hotspot of a reviewer.
        assert!(recount(&run, "anna", None, false).is_ok());
    }
    // Seen at another resolution it covered another part of the slide.
    place(&run, "ab", [1800.0, 5000.0], Some(0.5));
    let e = again(&run, "anna").unwrap_err();
    assert!(matches!(e, RecountError::HotspotScale { .. }), "{e}");
    assert!(e.to_string().contains("at 0.5 um/px, and this run has 0.25 um/px"), "{e}");
    place(&run, "ab", [1800.0, 5000.0], Some(0.25));
    assert!(row().placed_hotspot.is_some());
    // Without its outlines a run would seem to have searched the whole slide.
    fs::remove_file(run.join("case/regions.geojson")).unwrap();
    let e = again(&run, "anna").unwrap_err().to_string();
    assert!(e.contains("regions.geojson: has 0 outlines and counts.json 1 region"), "{e}");
}

#[test]
fn a_hotspot_on_another_file_of_the_name_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let run = whole(dir.path());
    judge(&run, [2000.0, 5000.0], true);
    place(&run, "cd", [1800.0, 5000.0], None);
    let row = again(&run, "anna").unwrap().slides.remove(0);
    let note = "no hotspot was placed by anna (one on another file of this name is left out): it is the densest";
    assert!(row.notes.iter().any(|n| n.starts_with(note)), "{:?}", row.notes);
    assert_eq!(row.placed_hotspot, None);
}
