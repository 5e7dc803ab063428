//! Every export, field by field, on one small record.

use detect::{Flaw, Flawed, FlawedSquare, SlideCandidate, SlideResult};
use mithras::export::{CountsFile, EXPORTS, qupath, read_detections, write_all};
use mithras::record::{
    self, ModelEntry, NamedPoint, SlideEntry, SlideRecord, SubtypeModel, Subtypes,
};
use mitosis::{
    Candidate, Detection, Mm2, Mpp, OperatingPoint, Point, Resolution, ResolutionSource, Score,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::time::Duration;

fn square(flaw: Flaw, place: (u32, u32)) -> FlawedSquare {
    let at = |x: u32, y: u32| Point::new(f64::from(x) * 400.0, f64::from(y) * 200.0);
    let (min, max) = (at(place.0, place.1), at(place.0 + 1, place.1 + 1));
    FlawedSquare { flaw, place, min, max, mm2: 0.01 }
}

fn record() -> SlideRecord {
    let score = |p| Score::new(p).unwrap();
    let at = |(x, y), seg, cls, outside_tissue, flaw| SlideCandidate {
        detection: Detection {
            candidate: Candidate { centroid: Point::new(x, y), s_seg: score(seg) },
            s_cls: Some(score(cls)),
        },
        outside_tissue,
        flaw,
    };
    let result = SlideResult {
        candidates: vec![
            at((1000.128, 2000.5), 0.75, 0.9, false, None),
            at((3000.0, 2000.0), 0.5, 0.1, true, None),
            at((1400.0, 2200.0), 0.625, 0.7, false, Some(Flaw::OutOfFocus)),
        ],
        flawed: Flawed {
            squares: vec![
                square(Flaw::OutOfFocus, (3, 2)),
                square(Flaw::OutOfFocus, (4, 2)),
                square(Flaw::Pen, (60, 40)),
            ],
            side_px: (400.0, 200.0),
            out_of_focus: Mm2(0.75),
        },
        unclassified: Vec::new(),
        unread: Vec::new(),
        analysed: Mm2(4.0),
        unread_area: Mm2(0.5),
        windows: 12,
        resumed_windows: 0,
        stages: Vec::new(),
        wall: Duration::from_secs(1),
    };
    let mpp = |v| Mpp::new(v).unwrap();
    SlideRecord::new(
        SlideEntry {
            name: "case".into(),
            file: "case.svs".into(),
            vendor: "aperio".into(),
            width: 20_000,
            height: 10_000,
            bounds_offset: [100, 200],
            digest: "ab".repeat(32),
        },
        Resolution {
            x: mpp(0.25),
            y: mpp(0.5),
            source: ResolutionSource::Vendor("aperio.MPP".into()),
        },
        ModelEntry {
            name: "m".into(),
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
    )
}

fn bytes(file: &str) -> Vec<u8> {
    let export = EXPORTS.iter().find(|e| e.file == file).unwrap();
    (export.bytes)(&record()).unwrap()
}

fn json(file: &str) -> serde_json::Value {
    serde_json::from_slice(&bytes(file)).unwrap()
}

#[test]
fn csv_holds_every_candidate_in_pixels_and_micrometres() {
    let text = String::from_utf8(bytes("detections.csv")).unwrap();
    assert_eq!(
        text,
        "x_px,y_px,x_um,y_um,s_seg,s_cls,accepted,outside_tissue,flaw\n\
         1000.13,2000.5,250.032,1000.25,0.75,0.9,true,false,\n\
         3000.0,2000.0,750.0,1000.0,0.5,0.1,false,true,\n\
         1400.0,2200.0,350.0,1100.0,0.625,0.7,true,false,out_of_focus\n"
    );
    let dir = tempfile::tempdir().unwrap();
    write_all(&record(), dir.path()).unwrap();
    assert_eq!(read_detections(&dir.path().join("detections.csv")).unwrap(), record().rows);
    let broken = dir.path().join("broken.csv");
    std::fs::write(&broken, text.replace("0.625", "NaN")).unwrap();
    assert!(read_detections(&broken).unwrap_err().to_string().contains("row 3"));
    std::fs::write(&broken, text.replace("out_of_focus", "blurry")).unwrap();
    let no = read_detections(&broken).unwrap_err().to_string();
    assert!(no.contains("row 3") && no.contains("'blurry' is not a flaw"), "{no}");
}

#[test]
fn parquet_holds_the_same_rows() {
    let reader =
        SerializedFileReader::new(bytes::Bytes::from(bytes("detections.parquet"))).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let expected = record().rows;
    assert_eq!(rows.len(), expected.len());
    for (row, e) in rows.iter().zip(&expected) {
        assert_eq!(row.get_double(0).unwrap(), e.x_px);
        assert_eq!(row.get_double(3).unwrap(), e.y_um);
        assert_eq!(row.get_float(4).unwrap(), e.s_seg);
        assert_eq!(Some(row.get_float(5).unwrap()), e.s_cls);
        assert_eq!(row.get_bool(6).unwrap(), e.accepted);
        assert_eq!(row.get_bool(7).unwrap(), e.outside_tissue);
        assert_eq!(row.get_string(8).ok().map(String::as_str), e.flaw.map(Flaw::name));
    }
    let about = reader.metadata().file_metadata().key_value_metadata().unwrap();
    for (key, value) in [
        ("mithras.schema", "mithras.detections/1"),
        ("mithras.operating_point", "balanced"),
        ("mithras.threshold_seg", "0.5"),
        ("mithras.threshold_cls", "0.5"),
    ] {
        let found = about.iter().find(|k| k.key == key).and_then(|k| k.value.as_deref());
        assert_eq!(found, Some(value), "{key}");
    }
}

#[test]
fn qupath_counts_from_the_bounds() {
    let document = json("qupath.geojson");
    assert_eq!(document["type"], "FeatureCollection");
    assert_eq!(
        document["mithras"],
        serde_json::json!({ "operating_point": "balanced", "threshold_seg": 0.5, "threshold_cls": 0.5 })
    );
    let features = document["features"].as_array().unwrap();
    assert_eq!(features.len(), 4, "two accepted figures, one that is not, and the hotspot");
    let class = |k: usize| &features[k]["properties"]["classification"]["name"];
    let accepted = record().rows.into_iter().map(|r| r.accepted);
    for (k, accepted) in accepted.enumerate() {
        assert_eq!(class(k), if accepted { qupath::ACCEPTED } else { qupath::REJECTED });
    }
    let first = &features[0];
    assert_eq!(first["properties"]["objectType"], "detection");
    assert_eq!(first["properties"]["measurements"]["s_seg"], 0.75);
    let ring = first["geometry"]["coordinates"][0].as_array().unwrap();
    assert_eq!(ring.first(), ring.last());
    let mean = |k: usize| {
        ring[1..].iter().map(|p| p[k].as_f64().unwrap()).sum::<f64>() / (ring.len() - 1) as f64
    };
    assert!((mean(0) - 900.13).abs() < 0.02 && (mean(1) - 1800.5).abs() < 0.02);
    // 7.5 um are 30 px across and 15 px down on this anisotropic slide.
    assert_eq!(ring[0][0].as_f64().unwrap(), 930.13);
    assert_eq!(ring[3][1].as_f64().unwrap(), 1815.5);
    let hotspot = &features[3];
    assert_eq!(hotspot["properties"]["objectType"], "annotation");
    assert_eq!(hotspot["properties"]["measurements"]["Mitotic figures"], 2.0);
    // It hangs over the left edge of the slide, which is 100 px left of the bounds: QuPath measures what is on it.
    let ring = hotspot["geometry"]["coordinates"][0].as_array().unwrap();
    let left = ring.iter().map(|p| p[0].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
    assert_eq!(left, -100.0);
    let ids: std::collections::BTreeSet<_> =
        features.iter().map(|f| f["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 4);
    for id in &ids {
        assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 5);
    }
    assert_eq!(bytes("qupath.geojson"), bytes("qupath.geojson"), "the same every time");
}

#[test]
fn grand_challenge_keeps_what_is_under_the_threshold() {
    let document = json("grand-challenge.json");
    assert_eq!(document["type"], "Multiple points");
    assert_eq!(document["version"]["major"], 1);
    assert_eq!(document["name"], "mitotic figures, balanced: s_seg >= 0.5, s_cls >= 0.5");
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    assert_eq!(points[1]["name"], "non-mitotic figure");
    assert_eq!(points[0]["name"], "mitotic figure");
    assert_eq!(points[1]["point"], serde_json::json!([0.75, 1.0, 0.0]));
    assert!((points[0]["probability"].as_f64().unwrap() - 0.9).abs() < 1e-6);
}

#[test]
fn counts_state_what_was_measured() {
    let counts = CountsFile::parse(std::str::from_utf8(&bytes("counts.json")).unwrap()).unwrap();
    assert_eq!((counts.candidates, counts.figures, counts.hotspot_count), (3, 2, 2));
    assert_eq!(counts.density_per_20_mm2, Some(10.0));
    assert_eq!((counts.tissue_mm2, counts.analysed_mm2, counts.unread_mm2), (5.0, 4.0, 0.5));
    assert_eq!((counts.operating_point.as_str(), counts.outside_tissue), ("balanced", 1));
    assert_eq!((counts.out_of_focus_mm2, counts.pen_mm2, counts.dirt_mm2), (0.75, 0.01, 0.0));
    assert_eq!((counts.flawed_figures, counts.glass_mm2), (1, 20.0));
    assert_eq!(
        counts.notes(),
        [
            "1.354 of the 2 mm2 of the hotspot are on the slide: its count is at least so many",
            "0.500 mm2 of tissue could not be read",
            "0.750 mm2 of tissue (19 %) are out of focus, where figures are missed",
            "1 figure out of focus, under pen or under dirt (column flaw)"
        ]
    );
    let hotspot = counts.hotspot.unwrap();
    assert_eq!(hotspot.centre_px, [1000.13, 2000.5]);
    assert!((hotspot.max_px[0] - hotspot.min_px[0] - 5656.85).abs() < 0.02);
    assert!((hotspot.max_px[1] - hotspot.min_px[1] - 2828.43).abs() < 0.02);
    // The centre is 250.03 um from the edge: of 1414.214 um so much and half of them are on the slide.
    let on_slide = (250.0325 + 707.106_781) * 1_414.213_562 * 1e-6;
    assert!((hotspot.on_slide_mm2.unwrap() - on_slide).abs() < 2e-6, "{hotspot:?}");
    assert_eq!(counts.hotspot_mm2(), hotspot.on_slide_mm2);
    // Of a file of an earlier version, which does not have it.
    let text = String::from_utf8(bytes("counts.json")).unwrap();
    let line = text.lines().find(|l| l.contains("on_slide_mm2")).unwrap();
    let earlier = text.replace(&format!(",\n{line}"), "");
    let earlier = CountsFile::parse(&earlier).unwrap();
    assert_eq!(earlier.hotspot.unwrap().on_slide_mm2, None);
    assert_eq!(earlier.hotspot_mm2(), counts.hotspot_mm2());
    assert_eq!(earlier.notes(), counts.notes());
    assert_eq!(counts.resolution.source, "aperio.MPP");
    assert_eq!(counts, CountsFile::from_record(&record()));
    let other = String::from_utf8(bytes("counts.json")).unwrap().replace("counts/1", "counts/9");
    assert!(CountsFile::parse(&other).unwrap_err().to_string().contains("counts/9"));
}

#[test]
fn subtypes_are_added_to_accepted_figures_alone() {
    let mut all = [0.0625; 9];
    (all[0], all[7]) = (0.75, 0.5625);
    let mut record = record();
    record.rows[0].subtypes = Some(Subtypes(all));
    let model = SubtypeModel {
        name: "m".into(),
        sha256: "22".into(),
        license: "none".into(),
        atypical_from: 0.5,
    };
    record.subtypes = Some(vec![model]);
    let dir = tempfile::tempdir().unwrap();
    write_all(&record, dir.path()).unwrap();
    let csv = dir.path().join("detections.csv");
    assert_eq!(read_detections(&csv).unwrap(), record.rows);
    let text = std::fs::read_to_string(&csv).unwrap();
    let header = text.lines().next().unwrap();
    assert!(
        header.ends_with(&format!("accepted,outside_tissue,flaw,{}", record::COLUMNS.join(","))),
        "{header}"
    );
    assert!(text.lines().nth(2).unwrap().ends_with(&",".repeat(9)), "{text}");

    let file = std::fs::File::open(dir.path().join("detections.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows[0].len(), 18);
    assert_eq!(rows[0].get_float(9).unwrap(), 0.75);
    assert_eq!(rows[0].get_float(16).unwrap(), 0.5625);
    assert!(rows[1].get_float(9).is_err(), "no subtype");

    let json = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(dir.path().join(name)).unwrap()).unwrap()
    };
    let measured = &json("qupath.geojson")["features"][0]["properties"]["measurements"];
    assert_eq!(
        (&measured["p_atypical"], &measured["p_segregation"]),
        (&0.75.into(), &0.5625.into())
    );
    let counts = &json("counts.json")["subtypes"];
    assert_eq!((&counts["atypical"], &counts["typical"]), (&1.into(), &0.into()));
    assert_eq!(
        (&counts["unclassified"], &counts["morphology"]["segregation"]),
        (&1.into(), &1.into())
    );
    assert_eq!(counts["models"][0]["sha256"], "22");
    // Without --subtypes nothing of it is there.
    assert!(!String::from_utf8(bytes("counts.json")).unwrap().contains("subtypes"));
    assert!(!String::from_utf8(bytes("detections.csv")).unwrap().contains("p_atypical"));
}
