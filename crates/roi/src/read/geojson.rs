//! QuPath GeoJSON: annotations and TMA cores, also those below others. Cells, detections, points and lines are not
//! areas.

use super::drawn::{broken, is_coordinate};
use super::qupath::{Kind, kind, object_type, objects};
use super::{Drawn, DrawnFile, Frame};
use crate::area::{Area, Ring};
use crate::error::RegionError;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// What a file of this program states of its slide.
#[derive(Deserialize)]
struct Stated {
    slide_digest: Option<String>,
    mpp: Option<f64>,
}

pub(super) fn read(file: &mut DrawnFile, bytes: &[u8]) -> Result<(), RegionError> {
    (file.format, file.frame) = ("geojson", Frame::Bounds);
    let path = file.path.clone();
    let root = base::json::value(bytes).map_err(|e| broken(&path, e.to_string()))?;
    if let Some(stated) = root.get("mithras").and_then(|v| Stated::deserialize(v).ok()) {
        (file.slide_digest, file.mpp) = (stated.slide_digest, stated.mpp);
    }
    let features: Vec<&Value> = match (&root, root["type"].as_str()) {
        (Value::Array(list), _) => list.iter().collect(),
        (_, Some("FeatureCollection")) => {
            let list = root["features"].as_array();
            list.ok_or_else(|| broken(&path, "a FeatureCollection without the list `features`"))?
                .iter()
                .collect()
        }
        (_, Some("Feature")) => vec![&root],
        _ => {
            return Err(broken(&path, "is not GeoJSON (QuPath: File > Export objects as GeoJSON)"));
        }
    };
    let mut wrong = None;
    let all = objects(features, |i, reason| {
        wrong.get_or_insert_with(|| broken(&path, format!("feature {}: {reason}", i + 1)));
    });
    wrong.map_or(Ok(()), Err)?;
    for object in all {
        read_feature(file, &path, object.feature, object.value)?;
    }
    Ok(())
}

fn read_feature(
    file: &mut DrawnFile,
    path: &Path,
    i: usize,
    feature: &Value,
) -> Result<(), RegionError> {
    let p = &feature["properties"];
    let not_drawn = match kind(&object_type(feature)) {
        // It frames the whole image.
        Some(Kind::Root) => return Ok(()),
        Some(Kind::Detection) => Some("detections"),
        Some(Kind::Cell) => Some("cells"),
        Some(Kind::Tile) => Some("tiles"),
        Some(Kind::Core | Kind::Annotation | Kind::Unknown) | None => None,
    };
    if let Some(what) = not_drawn {
        file.pass_over(what);
        return Ok(());
    }
    if p["isMissing"].as_bool() == Some(true) {
        file.pass_over("missing cores");
        return Ok(());
    }
    let geometry = &feature["geometry"];
    let wrong = |reason: String| broken(path, format!("feature {}: {reason}", i + 1));
    let polygons = match geometry["type"].as_str() {
        Some("Polygon") => vec![&geometry["coordinates"]],
        Some("MultiPolygon") => {
            let list = geometry["coordinates"].as_array();
            list.ok_or_else(|| wrong("`coordinates` is not a list".into()))?.iter().collect()
        }
        Some(other) => {
            file.pass_over(match other {
                "Point" | "MultiPoint" => "points",
                "LineString" | "MultiLineString" => "lines",
                _ => "shapes that are not polygons",
            });
            return Ok(());
        }
        None => return Err(wrong("it has no geometry".into())),
    };
    let mut area = Area::default();
    for polygon in polygons {
        let rings = rings(polygon).map_err(&wrong)?;
        let Some((outer, holes)) = rings.split_first() else { continue };
        area = area.or(&Area::polygon(outer, holes));
    }
    let own = |key: &str| p[key].as_str().unwrap_or_default().to_owned();
    let mut stated = ["image", "image_name", "filename"].iter().filter_map(|k| p[*k].as_str());
    let image = stated.find(|name| !name.trim().is_empty()).map(str::to_owned);
    file.take(Drawn { name: own("name"), class: class(p), negative: false, image, area });
    Ok(())
}

fn class(properties: &Value) -> String {
    let c = &properties["classification"];
    let names = || {
        let list = c["names"].as_array()?;
        Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(": "))
    };
    c["name"].as_str().or(c.as_str()).map(str::to_owned).or_else(names).unwrap_or_default()
}

fn rings(polygon: &Value) -> Result<Vec<Ring>, String> {
    let list = polygon.as_array().ok_or("`coordinates` is not a list of rings")?;
    list.iter().map(ring).collect()
}

fn ring(value: &Value) -> Result<Ring, String> {
    let list = value.as_array().ok_or("a ring is not a list")?;
    let mut ring: Ring = list
        .iter()
        .map(|p| match (p[0].as_f64(), p[1].as_f64()) {
            (Some(x), Some(y)) if is_coordinate(x) && is_coordinate(y) => Ok([x, y]),
            (Some(_), Some(_)) => Err(format!("{p} is farther away than any slide is wide")),
            _ => Err(format!("{p} is not a pair of numbers")),
        })
        .collect::<Result<_, _>>()?;
    if ring.len() > 1 && ring.first() == ring.last() {
        ring.pop();
    }
    Ok(ring)
}
