//! Annotations as users reported them: sizes that contradict the image, objects of every QuPath release.

use mitosis::Mpp;
use regions::Given;
use regions::annotations::{Annotations, Class, ImportOptions, Mapping, importer};
use regions::cut::{CutOptions, cut};
use regions::import::{Options, annotated};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;

fn read(format: &str, path: &Path, mapping: &[&str]) -> Result<Annotations, String> {
    let mapping = Mapping::parse(mapping).unwrap();
    let options = ImportOptions { mapping, ..ImportOptions::default() };
    (importer(format).unwrap().read)(path, &options).map_err(|e| e.to_string())
}

fn drawn(features: &Value) -> Annotations {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("case.geojson");
    fs::write(&path, features.to_string()).unwrap();
    read("geojson", &path, &[]).unwrap()
}

fn kinds(all: &Annotations) -> [usize; 3] {
    [Class::MitoticFigure, Class::Mimicker, Class::Unresolved]
        .map(|c| all.annotations.iter().filter(|a| a.class == c).count())
}

fn square(x: f64, y: f64, side: f64) -> Value {
    let (a, b) = (x + side, y + side);
    json!({"type": "Polygon", "coordinates": [[[x, y], [a, y], [a, b], [x, b], [x, y]]]})
}

/// A figure of 20 px.
fn figure(x: f64, y: f64) -> Value {
    json!({
        "type": "Feature",
        "geometry": square(x, y, 20.0),
        "properties": {"objectType": "annotation", "classification": {"name": "Mitotic figure"}}
    })
}

#[test]
fn sizes_that_contradict_the_image_are_refused_with_both() {
    let dir = tempfile::tempdir().unwrap();
    let picture = image::RgbImage::from_pixel(400, 300, image::Rgb([200, 150, 190]));
    picture.save(dir.path().join("a.png")).unwrap();
    let options = |lenient| Options {
        name: "sizes".into(),
        program: "test".into(),
        given: Given { all: Some(Mpp::PAPER), ..Given::default() },
        lenient,
        ..Options::default()
    };
    let coco = |w: u32, h: u32| {
        let file = dir.path().join("labels.json");
        let text = json!({
            "images": [{"id": 1, "file_name": "a.png", "width": w, "height": h}],
            "categories": [{"id": 1, "name": "Mitotic figure"}],
            "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [60, 100, 40, 40]}]
        });
        fs::write(&file, text.to_string()).unwrap();
        read("coco", &file, &[]).unwrap()
    };
    assert!(annotated(&coco(400, 300), dir.path(), &options(false)).is_ok());
    for ((w, h), likely) in
        [((800, 600), "another copy"), ((300, 400), "turned"), ((200, 150), "copy")]
    {
        let all = coco(w, h);
        let text = annotated(&all, dir.path(), &options(false)).unwrap_err().to_string();
        for word in [&format!("{w} x {h}"), "400 x 300", likely] {
            assert!(text.contains(word), "{word}: {text}");
        }
        // Nothing is left of it when it is left out.
        assert!(annotated(&all, dir.path(), &options(true)).is_err());
    }
}

/// The um/px of a table's column, and places in um, against those of the image.
#[test]
fn units_that_contradict_the_image_are_refused_with_both() {
    let dir = tempfile::tempdir().unwrap();
    let picture = image::RgbImage::from_pixel(400, 300, image::Rgb([200, 150, 190]));
    picture.save(dir.path().join("a.png")).unwrap();
    let given = Given { all: Some(Mpp::PAPER), ..Given::default() };
    let options = |lenient| Options {
        name: "units".into(),
        program: "test".into(),
        given: given.clone(),
        lenient,
        ..Options::default()
    };
    let cuts = |lenient| CutOptions {
        mpp: Mpp::PAPER,
        side: 64,
        given: given.clone(),
        encoding: crops::Encoding::Png,
        lenient,
        split: crops::Split::Train,
        header: crops::Header::default(),
    };
    let table = |text: &str| {
        let file = dir.path().join("labels.csv");
        fs::write(&file, text).unwrap();
        read("csv", &file, &[])
    };
    let head = "image,x,y,x_um,y_um,mpp,label\n";
    let good = "a.png,60,80,15.0,20,0.25,mf\na.png,160,80,,,,mf\na.png,200,80,50.1,20,0.251,mf\n";
    let all = table(&format!("{head}{good}")).unwrap();
    assert_eq!(annotated(&all, dir.path(), &options(false)).unwrap().dataset.images().len(), 1);
    let out = |name: &str| dir.path().join(name);
    assert_eq!(cut(&all, dir.path(), &out("good"), &cuts(false)).unwrap().crops, 3);
    for (row, words) in [
        ("a.png,240,80,,,0.5,mf", "column 'mpp', row 4 (line 5): 0.5 x 0.5 um/px, but 0.25 x 0.25"),
        (
            "a.png,240,80,120.0,40.0,,mf",
            "column 'x_um', row 4 (line 5): 240, 80 px is 60.00, 20.00 um",
        ),
        ("a.png,240,80,60.0,40.0,,mf", "but the row has 60, 40 um"),
    ] {
        // Two um/px of one image contradict each other whatever the image has.
        let without = "a.png,60,80,,,,mf\na.png,160,80,,,,mf\na.png,200,80,,,,mf\n";
        let all = table(&format!("{head}{without}{row}\n")).unwrap();
        let e = annotated(&all, dir.path(), &options(false)).unwrap_err().to_string();
        assert!(e.contains("labels.csv") && e.contains(words), "{words}: {e}");
        assert!(annotated(&all, dir.path(), &options(true)).is_err(), "no image is left");
        let e = cut(&all, dir.path(), &out("bad"), &cuts(false)).unwrap_err().to_string();
        assert!(e.contains("labels.csv") && e.contains(words), "{words}: {e}");
        let alone = table(&format!("{head}{good}{row}\n")).unwrap_err();
        assert!(alone.contains(words), "{words}: {alone}");
    }
    let file = out("labels.json");
    let text = json!({
        "images": [{"id": 1, "file_name": "a.png", "mpp": 0.5}],
        "categories": [{"id": 1, "name": "Mitotic figure"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [60, 100, 40, 40]}]
    });
    fs::write(&file, text.to_string()).unwrap();
    let all = read("coco", &file, &[]).unwrap();
    let e = annotated(&all, dir.path(), &options(false)).unwrap_err().to_string();
    assert!(e.contains("labels.json: images[0]: 0.5 x 0.5 um/px"), "{e}");
}

#[test]
fn a_published_turned_photograph_is_refused() {
    let Some(folder) = testkit::data("hostile/reports/sizes") else { return };
    let all = read("coco", &folder.join("cvat.json"), &[]).unwrap();
    let options = Options {
        name: "cvat".into(),
        program: "test".into(),
        given: Given { all: Some(Mpp::PAPER), ..Given::default() },
        ..Options::default()
    };
    let text = annotated(&all, &folder.join("img"), &options).unwrap_err().to_string();
    assert!(text.contains("orientation 6") && text.contains("region.jpg"), "{text}");
    for file in ["size_double.json", "size_swapped.json"] {
        let all = read("coco", &folder.join(file), &[]).unwrap();
        let text = annotated(&all, &folder.join("img"), &options).unwrap_err().to_string();
        assert!(text.contains("the annotations state"), "{file}: {text}");
    }
}

#[test]
fn children_of_qupath_objects_count() {
    let parent = |children: Vec<Value>| {
        let p = json!({"objectType": "root", "childObjects": children});
        json!([{"type": "Feature", "id": "root", "geometry": null, "properties": p}])
    };
    assert_eq!(kinds(&drawn(&parent(vec![figure(90.0, 90.0), figure(300.0, 90.0)]))), [2, 0, 0]);
    // An export that lists a child twice holds it once.
    let mut both = parent(vec![figure(90.0, 90.0)]);
    both[0]["properties"]["childObjects"][0]["id"] = "one".into();
    let mut again = figure(90.0, 90.0);
    again["id"] = "one".into();
    both.as_array_mut().unwrap().push(again);
    assert_eq!(kinds(&drawn(&both)), [1, 0, 0]);
    let Some(folder) = testkit::data("hostile/reports/qupath") else { return };
    let all = read("geojson", &folder.join("a15_root_children.geojson"), &[]).unwrap();
    assert_eq!(kinds(&all), [1, 1, 0]);
    let all = read("geojson", &folder.join("a15b_region_children.geojson"), &["Tumor=ignore"]);
    assert_eq!(kinds(&all.unwrap()), [2, 0, 0]);
}

/// One plane of an image is read; -1 means all channels.
#[test]
fn qupath_objects_of_several_planes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.geojson");
    let run = |planes: [Value; 2]| {
        let [mut a, mut b] = [figure(90.0, 90.0), figure(300.0, 90.0)];
        let [first, second] = planes;
        (a["geometry"]["plane"], b["geometry"]["plane"]) = (first, second);
        fs::write(&path, json!([a, b]).to_string()).unwrap();
        read("geojson", &path, &[]).map(|all| kinds(&all)).map_err(|e| e.to_string())
    };
    let plane = |z: i64, t: i64, c: i64| json!({"c": c, "z": z, "t": t});
    for planes in [[plane(3, 0, -1), plane(3, 0, 1)], [plane(0, 0, -1), Value::Null]] {
        assert_eq!(run(planes), Ok([2, 0, 0]));
    }
    for (other, axis) in [(plane(2, 0, 0), 'z'), (plane(0, 2, 0), 't'), (plane(0, 0, 2), 'c')] {
        let e = run([plane(0, 0, 0), other]).unwrap_err();
        let words = format!("feature 0 has {axis} = 0 and feature 1 has {axis} = 2");
        assert!(e.contains("several planes") && e.contains(&words), "{e}");
    }
}

#[test]
fn frames_of_every_qupath_release_are_not_areas_to_be_ignored() {
    let frame = |properties: Value, id: Value| json!({"type": "Feature", "id": id, "geometry": square(50.0, 50.0, 900.0), "properties": properties});
    for frame in [
        frame(json!({"objectType": "tmaCore", "name": "A-1", "isMissing": false}), Value::Null),
        frame(json!({"object_type": "tma_core"}), Value::Null),
        frame(json!({"isLocked": false, "measurements": []}), "TMACoreObject".into()),
        frame(json!({"isLocked": false, "measurements": []}), "PathTileObject".into()),
        frame(json!({"object_type": "tile"}), Value::Null),
        // An unclassified outline, and one of a cell's size that contains a figure.
        frame(json!({"objectType": "annotation"}), Value::Null),
        frame(json!({"isLocked": true}), "PathAnnotationObject".into()),
    ] {
        let all = drawn(&json!([frame, figure(90.0, 90.0), figure(590.0, 590.0)]));
        assert_eq!(kinds(&all), [2, 0, 0], "{frame}");
        assert_eq!(all.ignored.values().sum::<u64>(), 1, "{frame}");
    }
    let small = json!({
        "type": "Feature", "geometry": square(80.0, 80.0, 60.0), "properties": {"objectType": "annotation"}
    });
    assert_eq!(kinds(&drawn(&json!([small, figure(90.0, 90.0)]))), [1, 0, 0]);
    // A cell without a class stays an open question.
    assert_eq!(kinds(&drawn(&json!([small, figure(300.0, 300.0)]))), [1, 0, 1]);
    let Some(folder) = testkit::data("hostile/reports/qupath") else { return };
    let all = read("geojson", &folder.join("g_tma/case.geojson"), &[]).unwrap();
    assert_eq!(kinds(&all), [2, 0, 0]);
    let all = read("geojson", &folder.join("a17b_object_type.geojson"), &[]).unwrap();
    assert_eq!(kinds(&all), [1, 0, 0]);
}

/// The same of formats that do not know QuPath's types.
#[test]
fn unlabelled_outlines_of_every_format_hide_no_figure() {
    let asap = |side: u32, group: &str| {
        format!(
            r#"<Annotation Name="Annotation 0" Type="Polygon" PartOfGroup="{group}"><Coordinates>
            <Coordinate Order="0" X="50" Y="50"/><Coordinate Order="1" X="{side}" Y="50"/>
            <Coordinate Order="2" X="{side}" Y="{side}"/></Coordinates></Annotation>"#
        )
    };
    let xml = |side| {
        let all = [asap(side, "None"), asap(90, "mitosis")].concat();
        format!("<ASAP_Annotations><Annotations>{all}</Annotations></ASAP_Annotations>")
    };
    let csv = |side| {
        format!("image,xmin,ymin,xmax,ymax,label\na,50,50,{side},{side},\na,60,60,90,90,mf\n")
    };
    let dir = tempfile::tempdir().unwrap();
    // One of a few mm, one of a cell's size around the figure, and a cell next to it without a label.
    for (side, open) in [(8000, 0), (120, 0), (70, 1)] {
        for (format, name, text) in [("asap", "case.xml", xml(side)), ("csv", "a.csv", csv(side))] {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            let all = read(format, &path, &[]).unwrap();
            assert_eq!(kinds(&all), [1, 0, open], "{format}, {side}");
            assert_eq!(all.ignored.values().sum::<u64>(), 1 - open as u64, "{format}, {side}");
        }
    }
}

/// A small file that becomes large is refused before memory is.
#[test]
fn packed_files_that_grow_without_bound_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("coco.json.gz");
    // Members of a gzipped file follow each other.
    let member = |text: &[u8]| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gz.write_all(text).unwrap();
        gz.finish().unwrap()
    };
    let refused = |unit: &[u8], mib: usize| {
        let many = member(&unit.repeat((4 << 20) / unit.len())).repeat(mib / 4);
        fs::write(&path, [member(b"["), many, member(b"0]")].concat()).unwrap();
        read("coco", &path, &[]).unwrap_err()
    };
    let long = refused(b" ", 516);
    assert!(long.contains("512 MiB"), "{long}");
    let many = refused(b"{},", 60);
    assert!(many.contains("8 GiB"), "{many}");
}
