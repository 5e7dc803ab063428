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
    place_as(&run.join("reviews"), "anna", digest, at, mpp);
}

fn place_as(reviews: &Path, who: &str, digest: &str, at: [f64; 2], mpp: Option<f64>) {
    let of =
        SlideKey { slide: "case".into(), slide_digest: digest.into(), model_digest: String::new() };
    let rule = HotspotRule { shape: Shape::Circle, fields: 1, field_mm2: 1.0, apart: false };
    let mpp = mpp.map(|v| [v; 2]);
    let placement = Placement { preset: "melanoma".into(), rule, centres_px: vec![at], mpp };
    desk::place(reviews, who, &of, placement).unwrap();
}

fn judge(run: &Path, at: [f64; 2], added: bool) {
    judge_as(&run.join("reviews"), "anna", at, added);
}

fn judge_as(reviews: &Path, who: &str, at: [f64; 2], added: bool) {
    let of =
        SlideKey { slide: "case".into(), slide_digest: "ab".into(), model_digest: String::new() };
    let [x, y] = at;
    let key = format!("{}{}", if added { "+" } else { "" }, Entry::key_of(x, y));
    let (verdict, morphology, comment) = (Some(Verdict::Figure), None, None);
    let entry = Entry { key, x, y, verdict, added, morphology, comment };
    VerdictLog::open(reviews, who).unwrap().record(&of, entry).unwrap();
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

/// Features of QuPath with these classes, or none, at these places.
fn classed(run: &Path, objects: &[(&str, [f64; 2])]) -> String {
    let feature = |(class, [x, y]): &(&str, [f64; 2])| {
        let class = match class.is_empty() {
            true => String::new(),
            false => format!(r#", "classification": {{"name": "{class}"}}"#),
        };
        format!(
            r#"{{"type": "Feature", "geometry": {{"type": "Point", "coordinates": [{x}, {y}]}},
                "properties": {{"objectType": "annotation"{class}}}}}"#
        )
    };
    let own = fs::read_to_string(run.join("case/qupath.geojson")).unwrap();
    let mut all: Value = serde_json::from_str(&own).unwrap();
    let list = all["features"].as_array_mut().unwrap();
    list.extend(objects.iter().map(|o| serde_json::from_str(&feature(o)).unwrap()));
    let folder = run.join("corrected");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("case.geojson"), all.to_string()).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn plain_classes_of_qupath_count_and_others_are_named_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let run = whole(dir.path());
    let figure = read_detections(&run.join("case/detections.csv")).unwrap()[0];
    let at = [figure.x_px, figure.y_px];
    let row = |objects: &[(&str, [f64; 2])]| {
        recount(&run, &classed(&run, objects), None, false).unwrap().slides.remove(0)
    };
    let drawn = row(&[("Apoptosis", at)]);
    assert_eq!((drawn.taken_out, drawn.reviewed.figures), (1, 1), "{:?}", drawn.notes);
    let drawn = row(&[("unsure", at), ("Unsure", [9000.0, 900.0])]);
    assert_eq!((drawn.unsure, drawn.reviewed.figures), (1, 2), "{:?}", drawn.notes);
    // A point that was drawn and not given a class is not lost in silence.
    let drawn = row(&[("", [9000.0, 900.0])]);
    assert_eq!((drawn.added, drawn.reviewed.figures), (0, 2));
    let note = "1 object without a class at no candidate, left out";
    assert!(drawn.notes.iter().any(|n| n.starts_with(note)), "{:?}", drawn.notes);
    // Of one cell twice, one counts.
    let twice = [("Mitotic figure", [9000.0, 900.0]), ("Mitotic figure", [9003.0, 900.0])];
    assert_eq!(row(&twice).added, 1);
    let e = recount(&run, &classed(&run, &[("Foo", at)]), None, false).unwrap_err().to_string();
    assert!(e.contains("`Foo` (1 object)") && e.contains("rename each to one of"), "{e}");
}

#[test]
fn one_missed_figure_of_two_reviewers_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    let run = whole(dir.path());
    let reviews = run.join("reviews");
    judge_as(&reviews, "anna", [9000.0, 900.0], true);
    judge_as(&reviews, "bert", [9003.2, 900.0], true);
    let candidates = read_detections(&run.join("case/detections.csv")).unwrap();
    let accepted = candidates.iter().find(|r| r.accepted).unwrap();
    let rejected = candidates.iter().find(|r| !r.accepted).unwrap();
    judge_as(&reviews, "anna", [accepted.x_px + 1.0, accepted.y_px], true);
    judge_as(&reviews, "bert", [rejected.x_px - 1.0, rejected.y_px], true);
    for names in ["anna+bert", "bert+anna"] {
        let all = recount(&run, names, None, false).unwrap();
        let row = &all.slides[0];
        assert_eq!((row.added, row.taken_in, row.reviewed.figures), (1, 1, 4), "{names}");
        let note = "3 added figures within 7.5 um of a candidate or of another added figure";
        assert!(row.notes.iter().any(|n| n.starts_with(note)), "{:?}", row.notes);
        assert_eq!(all.agreement[0].both, 1);
    }
}

#[test]
fn reviews_of_a_folder_count_with_its_hotspots_and_a_hotspot_is_a_review() {
    let dir = tempfile::tempdir().unwrap();
    let run = whole(dir.path());
    let own = dir.path().join("of anna");
    judge_as(&own, "anna", [2000.0, 5000.0], true);
    place_as(&own, "anna", "ab", [1800.0, 5000.0], None);
    // Of bert there is a hotspot alone, of cleo an empty log with one.
    place_as(&own, "bert", "ab", [2000.0, 5000.0], None);
    place_as(&own, "cleo", "ab", [2200.0, 5000.0], None);
    fs::write(own.join("cleo.jsonl"), "").unwrap();
    for (who, x, added) in [("anna", 1800.0, 1), ("bert", 2000.0, 0), ("cleo", 2200.0, 0)] {
        let log = own.join(format!("{who}.jsonl"));
        let all = again(&run, log.to_str().unwrap()).unwrap();
        let row = &all.slides[0];
        assert_eq!((all.reviewer.as_str(), row.added), (who, added));
        assert_eq!(row.placed_hotspot.as_ref().unwrap().centres_px, [[x, 5000.0]], "{who}");
    }
    let both = again(&run, own.join("anna+bert").to_str().unwrap()).unwrap();
    assert_eq!((both.reviewer.as_str(), both.slides[0].added), ("anna+bert", 1));
    // In the run itself, by name.
    place(&run, "ab", [1800.0, 5000.0], None);
    assert!(again(&run, "anna").unwrap().slides[0].placed_hotspot.is_some());
    let e = recount(&run, "anna", None, false).unwrap_err();
    assert!(matches!(e, RecountError::NoVerdicts { .. }), "no hotspot was asked for: {e}");
    assert!(matches!(again(&run, "bert").unwrap_err(), RecountError::Review(_)));
}

#[test]
fn a_reviewers_name_goes_before_a_folder_and_files_of_macos_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let run = whole(dir.path());
    let reviews = run.join("reviews");
    // A folder of this name is where the tests run.
    assert!(Path::new("src").is_dir());
    for name in ["src", "Anna", "anna"] {
        judge_as(&reviews, name, [9000.0, 900.0], true);
    }
    fs::write(reviews.join("._anna.jsonl"), [0, 5, 22, 7]).unwrap();
    let all = recount(&run, "src", None, false).unwrap();
    assert_eq!((all.reviewer.as_str(), all.slides[0].added), ("src", 1));
    assert_eq!(all.notes, ["Anna and anna are different reviewers: their names differ in case"]);
    assert_eq!(recount(&run, "anna+src", None, false).unwrap().slides[0].added, 1);
}
