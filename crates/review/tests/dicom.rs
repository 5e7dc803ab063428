//! A run as DICOM annotations: read back by highdicom, on which image, and whose.

use mithras::batch::DetectionState;
use mithras::batch::state::Status;
use mithras::export::{CountsFile, read_detections, write_all};
use mithras::input::InputDigest;
use mithras::record::{ModelEntry, NamedPoint, SlideEntry, SlideRecord, SubtypeModel, Subtypes};
use mithras::regions::{Searched, SearchedRegion};
use mitosis::{
    Candidate, Detection, Mm2, Mpp, OperatingPoint, Point, Resolution, ResolutionSource, Score,
};
use review::view::{Written, write_dicom, write_project};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A run of one slide `case` of this size, its candidates placed in hundredths of a pixel: two
/// figures at the left edge, so that the hotspot hangs over it, and two that do not count.
pub(crate) fn run(root: &Path, file: &str, (width, height): (u64, u64), digest: &str) -> PathBuf {
    let score = |p| Score::new(p).unwrap();
    let at = |x, y, seg, cls: Option<f32>| Detection {
        candidate: Candidate { centroid: Point::new(x, y), s_seg: score(seg) },
        s_cls: cls.map(score),
    };
    let (w, h) = (width as f64, height as f64);
    let result = detect::SlideResult {
        candidates: vec![
            at(0.05 * w + 0.01, 0.5 * h + 0.99, 0.75, Some(0.9)),
            at(w - 0.07, h - 0.13, 0.5, Some(0.1)),
            at(0.07 * w, 0.52 * h, 0.625, Some(0.7)),
            at(0.9 * w, 0.1 * h, 0.3, None),
        ]
        .into_iter()
        .map(|detection| detect::SlideCandidate { detection, outside_tissue: false, flaw: None })
        .collect(),
        flawed: detect::Flawed::default(),
        unclassified: Vec::new(),
        unread: Vec::new(),
        analysed: Mm2(4.0),
        unread_area: Mm2(0.0),
        windows: 12,
        resumed_windows: 0,
        stages: Vec::new(),
        wall: Duration::from_secs(1),
    };
    let mpp = |v| Mpp::new(v).unwrap();
    let mut record = SlideRecord::new(
        SlideEntry {
            name: "case".into(),
            file: file.into(),
            vendor: "dicom".into(),
            width,
            height,
            bounds_offset: [0, 0],
            digest: digest.into(),
        },
        Resolution { x: mpp(0.25), y: mpp(0.25), source: ResolutionSource::Vendor("a".into()) },
        ModelEntry {
            name: "a-model".into(),
            segmenter_sha256: "00".into(),
            classifier_sha256: Some("11".into()),
            classifier_scale: None,
            classifier_symmetries_from: None,
            screen: None,
            networks_sha256: None,
            license: "none".into(),
        },
        NamedPoint {
            name: "balanced".into(),
            point: OperatingPoint { seg: score(0.5), cls: score(0.5), provenance: "a test".into() },
        },
        Mm2(5.0),
        &result,
    );
    record.subtypes = Some(vec![SubtypeModel {
        name: "s".into(),
        sha256: "22".into(),
        license: "none".into(),
        atypical_from: 0.5,
    }]);
    record.rows[0].subtypes =
        Some(Subtypes::from_morphology(&[0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05]));
    let folder = root.join("run/case");
    fs::create_dir_all(&folder).unwrap();
    write_all(&record, &folder).unwrap();
    root.join("run")
}

fn golden() -> PathBuf {
    testkit::workspace().join("crates/dicom/tests/golden")
}

fn write(root: &Path, out: &str, slides: &Path, patient: bool) -> (Written, Option<Vec<u8>>) {
    let out = root.join(out);
    let written = write_dicom(&root.join("run"), &out, Some(slides), patient).unwrap();
    let bytes = written.slides[0].file.as_ref().map(|f| fs::read(out.join(f)).unwrap());
    (written, bytes)
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}

/// What highdicom makes of what was written; none where it is missing. Where the environment of the tests is set up
/// (scripts/setup.sh), it is there.
fn highdicom(run: &Path, written: &Path, slides: &Path) -> Option<Result<(), String>> {
    let script = testkit::workspace().join("crates/review/tests/read_annotations.py");
    let set_up = std::env::var_os("VIRTUAL_ENV");
    let python = set_up
        .as_ref()
        .map_or_else(|| PathBuf::from("python3"), |v| PathBuf::from(v).join("bin/python"));
    let missing = |what: &str| {
        assert!(set_up.is_none(), "{what}: run scripts/setup.sh, or unset VIRTUAL_ENV");
        eprintln!("SKIPPED: {what} (scripts/setup.sh)");
    };
    for entry in fs::read_dir(run).unwrap().map(|e| e.unwrap().path()) {
        let counts = mithras::report::counts(&entry).unwrap();
        fs::write(entry.join("notes.json"), serde_json::to_vec(&counts.notes()).unwrap()).unwrap();
    }
    let mut reads = std::process::Command::new(&python);
    let Ok(done) = reads.arg(script).args([run, written, slides]).output() else {
        missing(&format!("no {}", python.display()));
        return None;
    };
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    if err.contains("No module named") {
        missing("no highdicom");
        return None;
    }
    let read = done.status.success() && out.trim_end().ends_with("read");
    Some(if read { Ok(()) } else { Err(out + &err) })
}

/// Lets highdicom read and compare.
fn read_back(run: &Path, written: &Path, slides: &Path) {
    if let Some(read) = highdicom(run, written, slides) {
        read.unwrap();
    }
}

#[test]
fn highdicom_reads_what_was_found_on_a_converted_slide() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let run = run(root, "case.svs", (20_000, 10_000), "ab");
    fs::write(root.join("case.svs"), "no DICOM").unwrap();
    let (written, bytes) = write(root, "out", &golden(), false);
    let row = &written.slides[0];
    assert_eq!((row.figures, row.candidates, written.failed()), (2, 4, 0), "{row:?}");
    let bytes = bytes.unwrap();
    // The level of the slide's size, not the label before it.
    assert!(holds(&bytes, "1.2.826.0.1.3680043.8.498.3.1") && !holds(&bytes, "8.498.3.3"));
    read_back(&run, &root.join("out"), &golden());
    // Once more, to the same bytes; another result is another object.
    assert_eq!(write(root, "again", &golden(), false).1.unwrap(), bytes);
    let table = run.join("case/detections.csv");
    let text = fs::read_to_string(&table).unwrap();
    fs::write(&table, text.replacen("0.75", "0.76", 1)).unwrap();
    let other = write(root, "other", &golden(), false).1.unwrap();
    let uid = |b: &[u8]| b[300..420].to_vec();
    assert_ne!(uid(&other), uid(&bytes), "the identifier in the file's head stays");
}

/// The report of the slide `case` and the annotations of one called `case.sr` are two files.
#[test]
fn no_slides_file_replaces_another_slides_report() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let run = run(root, "case.svs", (20_000, 10_000), "ab");
    fs::create_dir(run.join("case.sr")).unwrap();
    for file in fs::read_dir(run.join("case")).unwrap().map(|e| e.unwrap().path()) {
        fs::copy(&file, run.join("case.sr").join(file.file_name().unwrap())).unwrap();
    }
    let slides = root.join("slides");
    fs::create_dir(&slides).unwrap();
    for name in ["case", "case.sr"] {
        let source = fs::read_dir(golden().join("case")).unwrap().map(|e| e.unwrap().path());
        let to = slides.join(name);
        fs::create_dir(&to).unwrap();
        source
            .filter(|p| p.is_file())
            .for_each(|p| drop(fs::copy(&p, to.join(p.file_name().unwrap()))));
    }
    let (written, _) = write(root, "out", &slides, false);
    assert_eq!(written.failed(), 0, "{written:?}");
    let files: std::collections::BTreeSet<_> =
        written.slides.iter().flat_map(|s| [s.file.clone(), s.report.clone()]).flatten().collect();
    assert_eq!(files.len(), 4, "{files:?}");
    assert_eq!(fs::read_dir(root.join("out")).unwrap().count(), 4);
}

/// A slide without a result has no file, and is named.
#[test]
fn slides_that_failed_or_are_under_way_are_named_by_every_export() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), "case.svs", (20_000, 10_000), "ab");
    let file = dir.path().join("slide");
    fs::write(&file, "bytes").unwrap();
    for (name, status) in [("failed", Status::Failed), ("open", Status::Running)] {
        let mut state = DetectionState::running("", InputDigest::from_file(&file).unwrap());
        state.status = status;
        fs::create_dir(run.join(name)).unwrap();
        state.save(&run.join(name)).unwrap();
    }
    let made = write_project(&run, &dir.path().join("qupath")).unwrap();
    let reasons: Vec<&str> = made.failed.values().map(String::as_str).collect();
    assert_eq!(
        (made.slides.len(), made.failed.keys().map(String::as_str).collect()),
        (1, vec!["failed", "open"])
    );
    assert!(
        reasons[0].contains("detection failed") && reasons[1].contains("has not ended"),
        "{reasons:?}"
    );
    let made = write_dicom(&run, &dir.path().join("dicom"), None, false).unwrap();
    let named = |name: &str| made.slides.iter().any(|s| s.name == name && s.error.is_some());
    assert!(named("failed") && named("open"), "{made:?}");
}

/// Two regions that were searched: a group of measurements each, the counts of both together, and their outlines as
/// annotations.
#[test]
fn highdicom_reads_what_was_found_in_regions() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let run = run(root, "case.svs", (20_000, 10_000), "ab");
    let folder = run.join("case");
    let rows = read_detections(&folder.join("detections.csv")).unwrap();
    let counts =
        CountsFile::parse(&fs::read_to_string(folder.join("counts.json")).unwrap()).unwrap();
    let region = |name: &str, class: &str, min: [f64; 2], max: [f64; 2]| SearchedRegion {
        name: name.into(),
        class: class.into(),
        area: roi::Area::rectangle(min, max),
        area_mm2: 2.0,
        tissue_mm2: 1.5,
        analysed_mm2: 1.25,
        unread_mm2: 0.0,
    };
    let searched = Searched {
        source: roi::regions::Source {
            file: "drawn.geojson".into(),
            format: "geojson".into(),
            sha256: "00".into(),
        },
        area_mm2: 3.75,
        excluded_mm2: 0.25,
        // The first holds both figures, the second one of them.
        list: vec![
            region("front", "Tumour", [0.0, 0.0], [4_000.0, 9_000.0]),
            region("front", "", [0.0, 5_100.0], [9_000.0, 9_900.0]),
        ],
        notes: vec!["a note on the regions".into()],
    };
    let outlines = serde_json::to_vec(&searched.geojson(&counts.slide.digest, [0, 0])).unwrap();
    fs::write(folder.join("regions.geojson"), outlines).unwrap();
    let record = mithras::export::restored(&counts, rows, Some(searched)).unwrap();
    write_all(&record, &folder).unwrap();
    fs::write(root.join("case.svs"), "no DICOM").unwrap();
    let (written, _) = write(root, "out", &golden(), false);
    assert_eq!(written.failed(), 0, "{written}");
    let counts =
        CountsFile::parse(&fs::read_to_string(folder.join("counts.json")).unwrap()).unwrap();
    let list = &counts.regions.as_ref().unwrap().list;
    assert_eq!((list[0].figures, list[1].figures), (2, 1));
    read_back(&run, &root.join("out"), &golden());
}

/// The reader would notice: a number, a code and a reference that are not those of the run and its image.
#[test]
fn highdicom_notices_what_is_not_the_runs() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let run = run(root, "case.svs", (20_000, 10_000), "ab");
    fs::write(root.join("case.svs"), "no DICOM").unwrap();
    write(root, "out", &golden(), false);
    let (out, slides) = (root.join("out"), golden());
    match highdicom(&run, &out, &slides) {
        Some(read) => read.unwrap(),
        None => return,
    }
    let refused = |what: &str| {
        let read = highdicom(&run, &out, &slides).unwrap();
        assert!(read.as_ref().is_err_and(|e| e.contains("Error")), "{what}: {read:?}");
    };
    let report = out.join("case.sr.dcm");
    let whole = fs::read(&report).unwrap();
    for (from, to) in [
        ("FIGURE-COUNT", "FIGURE-COUNX"),
        ("99MITHRAS", "99MITHRAX"),
        ("mm2", "mmX"),
        ("1410", "1411"),
        ("1.2.826.0.1.3680043.8.498.3.1", "1.2.826.0.1.3680043.8.498.3.2"),
        ("Research use", "Clinical use"),
    ] {
        assert!(holds(&whole, from), "{from}");
        let mut other = whole.clone();
        let places =
            (0..=whole.len() - from.len()).filter(|i| whole[*i..].starts_with(from.as_bytes()));
        for at in places.collect::<Vec<_>>() {
            other[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
        fs::write(&report, other).unwrap();
        refused(from);
    }
    fs::write(&report, &whole).unwrap();
    let counts = run.join("case/counts.json");
    let text = fs::read_to_string(&counts).unwrap();
    for (from, to) in [
        ("\"hotspot_count\": 2", "\"hotspot_count\": 1"),
        ("\"analysed_mm2\": 4.0", "\"analysed_mm2\": 4.5"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        fs::write(&counts, text.replace(from, to)).unwrap();
        refused(from);
    }
}

#[test]
fn patient_data_are_written_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "case.svs", (20_000, 10_000), "ab");
    let silent = write(dir.path(), "silent", &golden(), false).1.unwrap();
    let printed = write(dir.path(), "with-patient", &golden(), true).1.unwrap();
    for text in ["Müller^Jane", "P-17", "19500607", "20200102", "030405", "A-99", "Ärztin"] {
        assert!(!holds(&silent, text), "{text} was written");
        assert!(holds(&printed, text), "{text} is lost");
    }
    // What archives sort by is there in both.
    assert!(holds(&silent, "1.2.826.0.1.3680043.8.498.2"));
}

#[test]
fn a_slide_without_its_image_has_a_reason_and_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    run(root, "case.svs", (20_001, 10_000), "ab");
    let reason = |slides: &Path| {
        let (written, bytes) = write(root, "out", slides, false);
        assert!(bytes.is_none() && written.failed() == 1);
        assert!(fs::read_dir(root.join("out")).unwrap().next().is_none());
        written.slides[0].error.clone().unwrap()
    };
    let other = reason(&golden());
    assert!(other.contains("20001 x 10000 px; there are 5000 x 2500, 20000 x 10000"), "{other}");
    assert!(reason(root).contains("case.svs"));
    fs::write(root.join("case.svs"), "no DICOM").unwrap();
    let none = reason(root);
    assert!(none.contains("is not a DICOM file") && none.contains("case.dcm"), "{none}");
    fs::write(root.join("case.dcm"), [&[0; 128][..], b"DICM", &[1; 40]].concat()).unwrap();
    assert!(reason(root).contains("case.dcm"));
    fs::write(root.join("case.svs"), fs::read(golden().join("case/c-level0.dcm")).unwrap())
        .unwrap();
    assert!(reason(root).contains("not the file of the run"));
}

#[test]
fn highdicom_reads_what_was_found_on_a_dicom_slide() {
    let Some(slides) = testkit::data("slides") else { return };
    let dir = tempfile::tempdir().unwrap();
    let digest = InputDigest::from_file(&slides.join("sm_image.dcm")).unwrap().sha256;
    let run = run(dir.path(), "sm_image.dcm", (50, 50), &digest);
    let (written, _) = write(dir.path(), "out", &slides, false);
    assert_eq!(written.failed(), 0, "{written}");
    read_back(&run, &dir.path().join("out"), &slides);
    let counts = fs::read_to_string(run.join("case/counts.json")).unwrap();
    let hotspot = CountsFile::parse(&counts).unwrap().hotspot.unwrap();
    assert!(hotspot.min_px[0] < 0.0, "it hangs over the slide's edge");
    assert_eq!(read_detections(&run.join("case/detections.csv")).unwrap().len(), 4);
}
