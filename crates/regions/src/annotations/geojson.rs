//! QuPath GeoJSON: a FeatureCollection, a list of features, or one feature.
//!
//! The image's name is the file's (of `detect`'s `<slide>/qupath.geojson`, the folder's), unless a
//! feature's properties name one. In a folder, other JSON is skipped: `detect` writes `run.json`
//! and more next to its features. A folder of such folders is read as well. Shapes become their
//! enclosing box; of a cell with a nucleus, the nucleus counts. Objects without a classification go
//! by their name if that is a known word, and stay unresolved otherwise. The hierarchy's root, tiles and
//! cores of tissue microarrays without a classification, and unclassified outlines that are larger than
//! a cell or hold other objects, are counted as ignored. Children in `properties.childObjects` are read
//! like every other object. Coordinates count from the bounds of a slide that has some. What a person labels are
//! annotations: a detection or cell that is called a figure or a look-alike is refused, and others are ignored.

use super::collect::{Category, Collector, LARGEST_CELL_PX, Place, Raw};
use super::files::{annotated_image, broken, list_files, read_json};
use super::{Annotations, Class, ImageEntry, ImportError, ImportOptions};
use base::file::ReadError;
use roi::read::qupath::{Kind, Object, is_frame, kind as kind_of, object_type, objects};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    let mut c = Collector::new("geojson", path, options);
    let files = files(path)?;
    c.ignore_below(path, &["geojson"])?;
    let several = path.is_dir();
    let mut read = 0;
    for file in &files {
        let root = read_json(file)?;
        if several && is_json(file) && !holds_features(&root) {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            c.ignore(format!("{name} (no GeoJSON)"));
            continue;
        }
        read += 1;
        let features = features(file, &root)?;
        let default = annotated_image(file);
        // An image without figures is an image, too. If every feature names its image, the file's name is not one.
        if features.is_empty() {
            c.image_named(&default, || ImageEntry {
                name: default.clone(),
                ..ImageEntry::default()
            });
        }
        let all = objects(features, |i, reason| c.problem(format!("feature {i}"), reason));
        if let Some(why) = several_planes(&all) {
            return Err(broken(file, why));
        }
        for object in all {
            take(&mut c, object, &default, options);
        }
    }
    if read == 0 {
        return Err(broken(path, "the folder holds no GeoJSON features"));
    }
    Ok(Annotations { from_bounds: true, ..c.finish()? })
}

/// Takes an object of the image that it names, or of the file's.
fn take(c: &mut Collector<'_>, object: Object<'_>, image: &str, options: &ImportOptions) {
    let (i, f) = (object.feature, object.value);
    let record = match f["id"].as_str().filter(|id| !id.is_empty()) {
        Some(id) => format!("feature {id}"),
        None => format!("feature {i}"),
    };
    let p = &f["properties"];
    let mut stated = ["image", "image_name", "filename"].iter().filter_map(|k| p[*k].as_str());
    let name = stated.find(|n| !n.trim().is_empty()).unwrap_or(image).to_owned();
    let image = c.image_named(&name, || ImageEntry { name: name.clone(), ..ImageEntry::default() });
    if let Some([first, other]) = c.opposed(&class_words(p)) {
        return c
            .problem(record, format!("it is called `{first}` and `{other}`; correct one of them"));
    }
    let (category, kind) = (category(c, p), object_type(f));
    if is_frame(&kind) && matches!(category, Category::Fixed(..)) {
        return c.ignore(kind);
    }
    let nucleus = &f["nucleusGeometry"];
    let geometry = if nucleus.is_object() { nucleus } else { &f["geometry"] };
    let is_labelled = matches!(&category, Category::Named(name) if c.is_figure(name).is_some());
    if is_found(f, options) {
        return match is_labelled {
            true => c.problem(format!("{name}, {record}"), NOT_A_LABEL),
            false => c.ignore(kind),
        };
    }
    match places(geometry) {
        Err(reason) => c.problem(record, reason),
        Ok(list) if is_labelled && are_several(geometry, &list) => {
            c.problem(
                record,
                "its parts are too far from each other for one cell: they are several objects",
            );
        }
        Ok(list) => {
            for place in list {
                c.take(Raw::new(image, record.clone(), category.clone(), place));
            }
        }
    }
}

/// Why a detection is not a label.
pub const NOT_A_LABEL: &str = "a program found it (it is a detection of QuPath), and labels are a person's; if a \
                               person has reviewed it, make it an annotation in QuPath";

/// Whether a program found an object: QuPath calls it a detection, a cell or a tile. Those of this program have
/// its score.
fn is_found(feature: &Value, options: &ImportOptions) -> bool {
    let measurements = &feature["properties"]["measurements"];
    let is_own = || match measurements {
        Value::Array(list) => list.iter().any(|m| m["name"] == SCORE),
        _ => measurements.get(SCORE).is_some(),
    };
    let found = [Kind::Detection, Kind::Cell, Kind::Tile].map(Some);
    found.contains(&kind_of(&object_type(feature))) && !(options.own_detections && is_own())
}

/// The measurement that every candidate of this program has.
const SCORE: &str = "s_seg";

/// Why the labels of a file are not of one picture: they are on two focal planes, time points or channels.
fn several_planes(all: &[Object<'_>]) -> Option<String> {
    let stated = |o: &Object<'_>, axis: &str| {
        let plane = &o.value["geometry"]["plane"];
        // Of all channels.
        plane[axis].as_i64().filter(|n| *n >= 0)
    };
    ["z", "t", "c"].iter().find_map(|axis| {
        let mut known = all.iter().filter_map(|o| Some((o.feature, stated(o, axis)?)));
        let (first, n) = known.next()?;
        let (other, m) = known.find(|(_, m)| *m != n)?;
        Some(format!(
            "the objects are of several planes of an image: feature {first} has {axis} = {n} and feature {other} has \
             {axis} = {m}, and one plane is read"
        ))
    })
}

/// The features of a file.
fn features<'v>(file: &Path, root: &'v Value) -> Result<Vec<&'v Value>, ImportError> {
    match (root, root["type"].as_str()) {
        (Value::Array(list), _) => Ok(list.iter().collect()),
        (_, Some("FeatureCollection")) => {
            let found = || root.as_object().map(|o| o.keys().cloned().collect());
            let list = root["features"].as_array().ok_or_else(|| ImportError::Missing {
                file: file.into(),
                missing: vec!["the list `features`".into()],
                found: found().unwrap_or_default(),
            })?;
            Ok(list.iter().collect())
        }
        (_, Some("Feature")) => Ok(vec![root]),
        _ => Err(broken(file, "no GeoJSON features (QuPath: File > Export objects)")),
    }
}

/// The file, the folder's files or, in a folder without one, those of `detect` one level below.
fn files(path: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let mut below = vec![];
    if path.is_dir() {
        let io = |e: ReadError| ImportError::Io { file: e.path, reason: e.source };
        for entry in base::walk::entries(path).map_err(io)? {
            let file = entry.join("qupath.geojson");
            below.extend(file.is_file().then_some(file));
        }
    }
    match list_files(path, &["geojson", "json"]) {
        Err(_) if !below.is_empty() => Ok(below),
        // In a slide's folder of a run, outlines of the tissue are not annotations; elsewhere a slide has that name.
        Ok(mut own) => {
            let is_run = ["counts.json", "qupath.geojson"].iter().any(|n| path.join(n).is_file());
            own.retain(|f| !is_run || f.file_name() != Some("tissue.geojson".as_ref()));
            own.extend(below);
            Ok(own)
        }
        Err(e) => Err(e),
    }
}

fn is_json(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    name.trim_end_matches(".gz").ends_with(".json")
}

/// Whether JSON is GeoJSON by its first level.
fn holds_features(root: &Value) -> bool {
    let feature = |v: &Value| v["type"] == "Feature";
    root["type"] == "FeatureCollection"
        || feature(root)
        || root.as_array().is_some_and(|l| l.first().is_some_and(feature))
}

/// All words for what an object is.
fn class_words(properties: &Value) -> Vec<&str> {
    let c = &properties["classification"];
    let all = [&c["name"], c, &properties["label"], &properties["class"], &properties["name"]];
    all.into_iter().filter_map(Value::as_str).collect()
}

/// Whether the parts of a shape are several objects: together they are longer than a cell, and none of them is.
fn are_several(geometry: &Value, together: &[Place]) -> bool {
    let side = |place: &Place| {
        let [x0, y0, x1, y1] = place.corners();
        (x1 - x0).max(y1 - y0)
    };
    let part = |coordinates: &Value| {
        let mut points = Vec::new();
        flatten(coordinates, &mut points).ok()?;
        Some(side(&Place::around(&points)))
    };
    let Some(parts) = geometry["coordinates"]
        .as_array()
        .filter(|_| geometry["type"].as_str().is_some_and(|kind| kind.starts_with("Multi")))
    else {
        return false;
    };
    together.iter().any(|all| side(all) > LARGEST_CELL_PX)
        && parts.iter().filter_map(part).all(|side| side <= LARGEST_CELL_PX)
}

fn category(collector: &mut Collector<'_>, properties: &Value) -> Category {
    let c = &properties["classification"];
    let names = || {
        let list = c["names"].as_array()?;
        Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(": "))
    };
    let name = c["name"]
        .as_str()
        .or(c.as_str())
        .map(str::to_owned)
        .or_else(names)
        .or_else(|| properties["label"].as_str().map(str::to_owned))
        .or_else(|| properties["class"].as_str().map(str::to_owned));
    let own = properties["name"].as_str().filter(|n| collector.meaning(n).is_some());
    match name.filter(|n| !n.is_empty()).or_else(|| own.map(str::to_owned)) {
        Some(name) => Category::Named(name),
        None => Category::Fixed(Class::Unresolved, "(unclassified)".into()),
    }
}

fn places(geometry: &Value) -> Result<Vec<Place>, String> {
    let kind = geometry["type"].as_str().ok_or("no geometry")?;
    let coordinates = &geometry["coordinates"];
    let mut points = Vec::new();
    flatten(coordinates, &mut points)?;
    if points.is_empty() {
        return Err(format!("an empty {kind}"));
    }
    match kind {
        "Point" | "MultiPoint" => Ok(points.iter().map(|&(x, y)| Place::Point(x, y)).collect()),
        "Polygon" | "MultiPolygon" | "LineString" | "MultiLineString" => {
            Ok(vec![Place::around(&points)])
        }
        other => Err(format!("geometry `{other}` is not supported")),
    }
}

fn flatten(v: &Value, out: &mut Vec<(f64, f64)>) -> Result<(), String> {
    let list = v.as_array().ok_or("coordinates are not a list")?;
    if let [x, y, ..] = list.as_slice()
        && !x.is_array()
    {
        match (x.as_f64(), y.as_f64()) {
            (Some(x), Some(y)) => out.push((x, y)),
            _ => return Err(format!("coordinates [{x}, {y}] are not finite numbers")),
        }
        return Ok(());
    }
    if list.iter().any(|v| !v.is_array()) {
        return Err(format!("coordinates {v} are not points"));
    }
    list.iter().try_for_each(|v| flatten(v, out))
}
