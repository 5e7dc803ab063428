//! Detectors of boxes: networks in the shapes of YOLOv10's and YOLOv8's exports (`golden/boxes.py`), by hand.

use infer::boxes::{BoxesDraft, convert};
use infer::card::BoxLayout;
use infer::convert::ConvertError;
use infer::{EngineChoice, EngineOptions, ModelPackage, open};
use mitosis::{Mpp, OperatingPoint, RgbTile, Score};

const SIDE: usize = 64;

fn read(name: &str) -> Vec<u8> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::fs::read(folder.join(name)).unwrap()
}

fn file() -> Vec<u8> {
    read("boxes.onnx")
}

fn draft() -> BoxesDraft {
    BoxesDraft {
        name: "boxes".into(),
        license: "none".into(),
        architecture: "cells".into(),
        mpp: Mpp::PAPER,
        classes: vec![],
        positive: None,
        window: None,
        stride: None,
        output: None,
        threshold: 0.05,
        distance_um: 7.5,
        operating_point: OperatingPoint {
            seg: Score::literal(0.5),
            cls: Score::ZERO,
            provenance: "a test".into(),
        },
        operating_points: Default::default(),
        results: None,
        training: Default::default(),
    }
}

/// A grey window with a square of 8 px of this colour at a place.
fn spot(x: usize, y: usize, rgb: [u8; 3]) -> RgbTile {
    let mut tile = RgbTile::filled(SIDE, SIDE, [255, 255, 255]);
    for row in y..y + 8 {
        for column in x..x + 8 {
            let at = 3 * (row * SIDE + column);
            tile.data[at..at + 3].copy_from_slice(&rgb);
        }
    }
    tile
}

#[test]
fn boxes_become_their_centres_with_their_scores() {
    let made = convert(&file(), &draft(), &EngineOptions::default()).unwrap();
    let card = made.card.segmenter.as_ref().unwrap();
    assert_eq!(
        (card.window, card.stride),
        (64, 32),
        "20 um do not fit next to each other in 64 px"
    );
    let boxes = card.boxes.as_ref().unwrap();
    assert_eq!((boxes.layout, boxes.count), (BoxLayout::Rows, 16));
    assert_eq!(boxes.positive, "mitotic figure");
    assert_eq!(boxes.classes, ["mitotic figure", "look-alike"]);
    // Of neighbours the highest counts, by their distance and one after the other.
    let candidates = made.card.candidates.as_ref().unwrap();
    assert_eq!((candidates.min_distance_px, candidates.min_separation_um), (Some(1), Some(7.5)));

    let package = ModelPackage::of_one(&made.card, made.onnx).unwrap();
    let options = EngineOptions { engine: EngineChoice::Rten, ..EngineOptions::default() };
    let mut models = open(&package, &options).unwrap();
    let segmenter = models.segmenter.as_mut().unwrap();
    // Violet is class 0, and four cells are wholly dark; green is another class and counts nothing.
    let windows = [spot(16, 40, [51, 0, 102]), spot(16, 40, [51, 102, 0])];
    let maps = segmenter.probabilities(&windows).unwrap();
    let of = |map: &mitosis::ProbMap| -> Vec<(usize, usize, f32)> {
        let seen = map.data.iter().enumerate().filter(|(_, p)| **p > 0.1);
        seen.map(|(i, p)| (i % SIDE, i / SIDE, *p)).collect()
    };
    let found = of(&maps[0]);
    let places: Vec<(usize, usize)> = found.iter().map(|f| (f.0, f.1)).collect();
    assert_eq!(places, [(18, 42), (22, 42), (18, 46), (22, 46)]);
    assert!(found.iter().all(|f| (f.2 - 0.8).abs() < 1e-5), "{found:?}");
    assert!(of(&maps[1]).is_empty());
}

#[test]
fn a_column_per_box_gives_what_a_row_does() {
    let rten = EngineOptions { engine: EngineChoice::Rten, ..EngineOptions::default() };
    let maps = |file: &[u8], layout, count| {
        let made = convert(file, &draft(), &EngineOptions::default()).unwrap();
        let boxes = made.card.segmenter.as_ref().unwrap().boxes.as_ref().unwrap();
        assert_eq!((boxes.layout, boxes.count), (layout, count));
        assert_eq!(boxes.classes, ["mitotic figure", "look-alike"]);
        let package = ModelPackage::of_one(&made.card, made.onnx).unwrap();
        let mut models = open(&package, &rten).unwrap();
        let windows = [spot(16, 40, [51, 0, 102]), spot(16, 40, [51, 102, 0])];
        models.segmenter.as_mut().unwrap().probabilities(&windows).unwrap()
    };
    let columns = maps(&read("boxes_columns.onnx"), BoxLayout::Columns, 256);
    let rows = maps(&file(), BoxLayout::Rows, 16);
    for (a, b) in columns.iter().zip(&rows) {
        let far = a.data.iter().zip(&b.data).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(far < 1e-6, "{far}");
    }
    assert_eq!(columns[0].data.iter().filter(|p| **p > 0.1).count(), 4);

    // With another number of classes it is neither form.
    let draft = BoxesDraft { classes: ["a", "b", "c"].map(String::from).to_vec(), ..draft() };
    let why = convert(&read("boxes_columns.onnx"), &draft, &rten).unwrap_err().to_string();
    assert!(why.contains("[N,6,256]") && why.contains("[N,7,boxes]"), "{why}");
}

/// The same sides, other contents: YOLOv5 with one class, corners and centres as shares of the window.
#[test]
fn boxes_of_an_unknown_layout_are_refused_with_those_that_are_known() {
    for (name, classes, why) in [
        ("boxes_yolov5", 1, "not the number of a class"),
        ("boxes_shares", 2, "shares of the window"),
        ("boxes_columns_shares", 2, "shares of the window"),
    ] {
        let classes = ["mitotic figure", "look-alike"][..classes].iter().map(ToString::to_string);
        let draft = BoxesDraft { classes: classes.collect(), ..draft() };
        let file = read(&format!("{name}.onnx"));
        let e = convert(&file, &draft, &EngineOptions::default()).unwrap_err().to_string();
        assert!(e.contains(why) && e.contains("[N,4+classes,boxes]"), "{name}: {e}");
    }
}

#[test]
fn what_is_not_a_detector_of_boxes_is_refused_with_a_reason() {
    let refused =
        |file: &[u8], draft: BoxesDraft| match convert(file, &draft, &EngineOptions::default()) {
            Err(ConvertError::File(reason)) => reason,
            other => panic!("{other:?}"),
        };
    let with = |change: fn(&mut BoxesDraft)| {
        let mut d = draft();
        change(&mut d);
        d
    };
    let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/tiny/classifier.onnx");
    let classifier = std::fs::read(tiny).unwrap();
    let what = refused(&classifier, with(|d| d.window = Some(224)));
    assert!(what.contains("boxes are [N,boxes,6]") || what.contains("not 224"), "{what}");
    let what = refused(&file(), with(|d| d.classes = vec!["one".into(); 3]));
    assert!(what.contains("is repeated"), "{what}");
    let what = refused(&file(), with(|d| d.positive = Some("mitosis".into())));
    assert!(what.contains("`mitosis` is not one of"), "{what}");
    let what = refused(&file(), with(|d| d.window = Some(640)));
    assert!(what.contains("64, not 640"), "{what}");
    let what = refused(&file(), with(|d| d.stride = Some(65)));
    assert!(what.contains("segmenter.stride"), "{what}");
    let what = refused(&file()[..500], draft());
    assert!(what.contains("not an ONNX file"), "{what}");
    let mut nameless = file();
    let at = nameless.windows(5).position(|w| w == b"names").unwrap();
    nameless[at] = b'N';
    assert!(refused(&nameless, draft()).contains("does not name its classes"));
    let given = with(|d| d.classes = vec!["mitosis".into(), "other".into()]);
    assert!(convert(&nameless, &given, &EngineOptions::default()).is_ok());
}
