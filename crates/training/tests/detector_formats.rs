//! Datasets of other formats than MIDOG's through the chain to a package: QuPath GeoJSON and plain tables, with
//! classes named by the user, TIFF and PNG images, two resolutions in one dataset and two folds.

use crate::detector_chain::preset;
use crate::drawn::{drawn, places};
use mitosis::Mpp;
use regions::annotations::{ImportOptions, Mapping, importer};
use regions::import::{Options, annotated};
use regions::{Dataset, Given};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use training::chain::{Chain, ChainOptions};

const IMAGES: u32 = 4;

/// Every second image is at 0.5 um/px.
fn coarse(number: u32) -> u32 {
    1 + number % 2
}

fn name(number: u32) -> String {
    format!("case{number}.{}", if number < 2 { "tiff" } else { "png" })
}

fn images(dir: &Path) {
    for n in 0..IMAGES {
        drawn(n, coarse(n)).save(dir.join(name(n))).unwrap();
    }
}

/// One GeoJSON per image, as QuPath exports objects: a polygon with a classification.
fn geojson(dir: &Path, figure: &str, other: &str) {
    for n in 0..IMAGES {
        let (mut features, k) = (vec![], coarse(n));
        for (x, y, is_figure) in places(n) {
            let (x, y, r) = (x / k, y / k, 25 / k);
            let class = if is_figure { figure } else { other };
            let (x0, y0, x1, y1) = (x - r, y - r, x + r, y + r);
            features.push(format!(
                r#"{{"type": "Feature", "geometry": {{"type": "Polygon", "coordinates":
                [[[{x0}, {y0}], [{x1}, {y0}], [{x1}, {y1}], [{x0}, {y1}], [{x0}, {y0}]]]}},
                "properties": {{"objectType": "annotation", "image": "{}",
                "classification": {{"name": "{class}"}}}}}}"#,
                name(n)
            ));
        }
        let text =
            format!(r#"{{"type": "FeatureCollection", "features": [{}]}}"#, features.join(","));
        fs::write(dir.join(format!("case{n}.geojson")), text).unwrap();
    }
}

fn table(path: &Path, figure: &str, other: &str) {
    let mut text = String::from("image,cx,cy,label\n");
    for n in 0..IMAGES {
        for (x, y, is_figure) in places(n) {
            let class = if is_figure { figure } else { other };
            let (x, y) = (x / coarse(n), y / coarse(n));
            let _ = writeln!(text, "{},{x},{y},{class}", name(n));
        }
    }
    fs::write(path, text).unwrap();
}

fn dataset(format: &str, dir: &Path, (figure, other): (&str, &str)) -> Dataset {
    let pictures = dir.join("images");
    fs::create_dir_all(&pictures).unwrap();
    images(&pictures);
    let labels = dir.join(format!("labels-{format}"));
    let file = if format == "geojson" {
        fs::create_dir_all(&labels).unwrap();
        geojson(&labels, figure, other);
        labels
    } else {
        let file = labels.with_extension("csv");
        table(&file, figure, other);
        file
    };
    let mapping = [format!("{figure}=mf"), format!("{other}=mimicker")];
    let how = ImportOptions { mapping: Mapping::parse(mapping).unwrap(), ..Default::default() };
    let read = (importer(format).unwrap().read)(&file, &how).unwrap();
    let half = Mpp::new(0.5).unwrap();
    let table: HashMap<String, Mpp> =
        (0..IMAGES).filter(|n| coarse(*n) == 2).map(|n| (name(n), half)).collect();
    let options = Options {
        name: "drawn".into(),
        program: "test".into(),
        given: Given { all: Some(Mpp::PAPER), table, ..Given::default() },
        positive: Some(figure.into()),
        ..Options::default()
    };
    annotated(&read, &pictures, &options).unwrap().dataset.write(&dir.join("set")).unwrap()
}

/// The dataset is as labelled, and the whole chain on it ends in a package.
fn to_the_end(format: &str, words: (&str, &str)) {
    // Tests share the cores; libtorch's threads would wait for each other.
    train::set_up(1);
    let dir = tempfile::tempdir().unwrap();
    let set = dataset(format, dir.path(), words);
    let resolutions: BTreeSet<String> =
        set.images().iter().map(|i| format!("{:.2}", i.mpp.x.get())).collect();
    assert_eq!(resolutions, BTreeSet::from(["0.25".into(), "0.50".into()]));
    assert_eq!(set.positive(), words.0);
    assert!(set.images().iter().all(|i| i.figures().count() == 8));
    assert_eq!(set.images().len(), IMAGES as usize);

    let preset = preset(&["candidates.threshold=0.3"]);
    let options = ChainOptions {
        out: dir.path().join("run"),
        segment_init: None,
        finetune_init: None,
        allow_partial: false,
        package: None,
        first_stage: None,
        folds: None,
        device: "cpu".into(),
        only: None,
    };
    let chain = Chain::new(&preset, set.clone(), &options).unwrap();
    assert_eq!(chain.folds().folds.len(), 2);
    let package = chain.run(&mut base::progress::Silent).unwrap();
    let opened = infer::ModelPackage::open(&package).unwrap();
    let training = opened.card.training.as_ref().unwrap();
    assert_eq!(training["dataset_sha256"].as_str(), Some(set.digest()));
    assert_eq!(training["positive_class"].as_str(), Some(words.0));
    let second = opened.card.classifier.as_ref().unwrap();
    assert_eq!(
        (&second.classes, second.positive.as_str()),
        (&vec!["other".into(), words.0.into()], words.0)
    );
}

#[test]
fn geojson_with_classes_of_the_users_words_becomes_a_package() {
    to_the_end("geojson", ("Mitose", "Doppelgaenger"));
}

/// What [`to_the_end`] trains on: a table of the same marks gives the same places, without their boxes.
#[test]
fn a_table_with_classes_of_the_users_words_is_the_same_dataset() {
    let places = |format: &str, words: (&str, &str)| {
        let dir = tempfile::tempdir().unwrap();
        let set = dataset(format, dir.path(), words);
        let of = |i: &regions::Image| {
            let labels = i.labels.iter().map(|l| (l.class.clone(), l.kind, l.x, l.y));
            (i.name.clone(), i.mpp.clone(), labels.collect::<Vec<_>>())
        };
        set.images().iter().map(of).collect::<Vec<_>>()
    };
    let words = ("MF", "look alike");
    let (geojson, table) = (places("geojson", words), places("csv", words));
    assert_eq!(geojson, table);
    assert_ne!(places("csv", (words.1, words.0)), table);
}
