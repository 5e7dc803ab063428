//! Every parser on damaged files: an answer or a typed error, never a panic.
//!
//! A target takes the fuzzer's bytes as orders to damage a small sound file, so that random bytes
//! reach deep. Here each runs for a second; with `cargo bolero test -p mithras --test all fuzz::NAME`
//! (nightly, libFuzzer) the same target is guided by coverage.

use crate::damage::{attack, damaged};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

fn slides(suffixes: &[&str]) -> Vec<PathBuf> {
    let folder = testkit::workspace().join("crates/slide/tests/golden/slides");
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| suffixes.iter().any(|s| p.to_str().unwrap().ends_with(s)))
        .collect();
    all.sort();
    all
}

fn open_and_look(path: &Path) {
    let options = slide::OpenOptions {
        openslide: Some("/no/such/library".into()),
        cache_bytes: 8 << 20,
        ..slide::OpenOptions::default()
    };
    if let Ok(slide) = slide::Slide::open_with(path, &options) {
        let _ = slide.resolution();
        let _ = slide.thumbnail(64);
    }
}

#[test]
fn tiff() {
    attack(&slides(&[".tif", ".svs"]), open_and_look);
}

#[test]
fn jpeg_and_png() {
    attack(&slides(&[".jpg", ".png"]), open_and_look);
}

#[test]
fn tables() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    std::fs::write(&csv, "slide;x,\"y\"\n\"a\"\"b\";1,5;2\n=1;\t3;-4e5\n").unwrap();
    attack(&[csv], |path| {
        let _ = base::table::Table::read(path, &base::table::Format::default());
        let _ = outcome::Table::read(path, &[]);
    });
}

/// A Parquet table through the record reader, which is not ours: its panics are caught.
#[test]
fn parquet() {
    use parquet::data_type::DoubleType;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = "message t { required double t; }";
    let schema = parquet::schema::parser::parse_message_type(schema).unwrap().into();
    let file = std::fs::File::create(&path).unwrap();
    let mut w =
        parquet::file::writer::SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let mut group = w.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[1.0, 2.0], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    w.close().unwrap();
    // Found by chance: a negative length of a column, which the reader panics at.
    let orders = [
        0xf7, 0x1c, 0x17, 0x21, 0x60, 0x12, 0xcc, 0xde, 0xcb, 0x5b, 0xea, 0x94, 0x89, 0x10, 0xab,
        0x94, 0x61, 0xc7, 0x5a, 0x7e, 0xd4, 0x41, 0x5e, 0x8a,
    ];
    let bad = folder.path().join("bad.parquet");
    std::fs::write(&bad, damaged(&std::fs::read(&path).unwrap(), &orders)).unwrap();
    let refused = outcome::Table::read(&bad, &[]).unwrap_err();
    assert!(refused.to_string().contains("damaged"), "{refused}");
    attack(&[path], |path| {
        let _ = outcome::Table::read(path, &[]);
    });
}

#[test]
fn annotations() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let coco = r#"{"images":[{"id":1,"file_name":"a.tiff","width":900,"height":800}],
        "categories":[{"id":1,"name":"mitotic figure"},{"id":2,"name":"hard negative"}],
        "annotations":[{"id":1,"image_id":1,"category_id":1,"bbox":[10,20,60,70],"labels":[]}]}"#;
    let geojson = r#"{"type":"FeatureCollection","features":[{"type":"Feature",
        "geometry":{"type":"Polygon","coordinates":[[[1,2],[30,2],[30,40],[1,2]]]},
        "properties":{"objectType":"annotation","classification":{"name":"mf"}}}]}"#;
    let asap = r#"<?xml version="1.0"?><ASAP_Annotations><Annotations><Annotation Name="a" Type="Dot" PartOfGroup="mf">
        <Coordinates><Coordinate Order="0" X="5.5" Y="6"/></Coordinates></Annotation></Annotations>
        <AnnotationGroups><Group Name="mf" PartOfGroup="None"/></AnnotationGroups></ASAP_Annotations>"#;
    let seeds = [
        write("a.json", coco),
        write("a.geojson", geojson),
        write("a.xml", asap),
        write("a.csv", "image,x,y,label\na.tiff,5,6,mf\na.tiff,7,8,mimicker\n"),
    ];
    let options = regions::annotations::ImportOptions::default();
    let readers: Vec<_> = ["midog-json", "coco", "geojson", "asap", "csv", "sliderunner"]
        .map(|name| regions::annotations::importer(name).unwrap().read)
        .into();
    attack(&seeds, |path| {
        for read in &readers {
            let _ = read(path, &options);
        }
    });
}

#[test]
fn review_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("reviews/ab.jsonl");
    let mut first = crops::audit::ReviewLog::open(folder.path(), "digest", "ab").unwrap();
    let entry = crops::audit::Entry {
        verdict: crops::audit::Verdict::Confirmed,
        size: None,
        elsewhere: false,
    };
    first.set("item-1", Some(entry)).unwrap();
    first.set("item-2", Some(entry)).unwrap();
    drop(first);
    let sound = std::fs::read(&log).unwrap();
    bolero::check!()
        .with_test_time(Duration::from_secs(1))
        .with_shrink_time(Duration::ZERO)
        .for_each(|orders: &[u8]| {
            std::fs::write(&log, damaged(&sound, orders)).unwrap();
            let _ = crops::audit::ReviewLog::open(folder.path(), "digest", "ab");
        });
}

#[test]
fn model_packages() {
    static QUIET: Once = Once::new();
    // Panics inside the engine are caught and become errors; their messages would fill the log.
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.location().is_some_and(|l| l.file().contains("crates/")) {
                loud(info);
            }
        }));
    });
    let golden = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let folder = tempfile::tempdir().unwrap();
    let card = std::fs::read_to_string(golden.join("card.toml")).unwrap();
    let seeds = ["segmenter.onnx", "classifier.onnx"].map(|n| golden.join(n));
    attack(&seeds, |damaged| {
        let at = folder.path();
        let mut text = card.clone();
        for seed in &seeds {
            let name = seed.file_name().unwrap();
            let of = if damaged.file_name() == Some(name) { damaged } else { seed.as_path() };
            let (old, new) = (std::fs::read(seed).unwrap(), std::fs::read(of).unwrap());
            text = text.replace(&base::digest::sha256(&old), &base::digest::sha256(&new));
            std::fs::write(at.join(name), new).unwrap();
        }
        std::fs::write(at.join("card.toml"), text).unwrap();
        let options = infer::EngineOptions {
            engine: infer::EngineChoice::Rten,
            ..infer::EngineOptions::default()
        };
        if let Ok(package) = infer::ModelPackage::open(at) {
            let _ = infer::open(&package, &options);
        }
    });
}

#[test]
fn model_cards() {
    let golden = testkit::workspace().join("crates/infer/tests/golden/tiny/card.toml");
    attack(&[golden], |path| {
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        let _ = infer::ModelCard::parse(&text);
    });
}
