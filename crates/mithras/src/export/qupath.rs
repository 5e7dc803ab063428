//! `qupath.geojson`: accepted figures as detections, the hotspot as an annotation.

use super::kind::{Export, ExportError, json};
use crate::record::{COLUMNS, SlideRecord};
use mitosis::Point;
use serde::Serialize;
use serde_json::Map;
use uuid::Uuid;

pub(super) const EXPORT: Export = Export {
    file: "qupath.geojson",
    about: "accepted figures and the hotspot, for QuPath (drag it onto the slide)",
    bytes,
};

/// Namespace of the identifiers, so that the same figure has the same identifier every time.
const NAMESPACE: Uuid = Uuid::from_u128(0x6d69_7468_7261_7300_8000_7175_7061_7468);
/// Corners of the polygon drawn around a figure.
const CORNERS: usize = 12;
/// Its radius, um: the matching radius of the paper.
const RADIUS_UM: f64 = mitosis::matching::PAPER_RADIUS.0;

#[derive(Serialize)]
struct Collection {
    r#type: &'static str,
    features: Vec<Feature>,
}

#[derive(Serialize)]
struct Feature {
    r#type: &'static str,
    id: String,
    geometry: Polygon,
    properties: Properties,
}

#[derive(Serialize)]
struct Polygon {
    r#type: &'static str,
    coordinates: [Vec<[f64; 2]>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    object_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_locked: Option<bool>,
    classification: Class,
    measurements: Map<String, serde_json::Value>,
}

#[derive(Serialize)]
struct Class {
    name: &'static str,
    color: [u8; 3],
}

impl Feature {
    fn new(id: String, ring: Vec<[f64; 2]>, properties: Properties) -> Self {
        let geometry = Polygon { r#type: "Polygon", coordinates: [ring] };
        Self { r#type: "Feature", id, geometry, properties }
    }
}

fn bytes(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    let (rx, ry) = (RADIUS_UM / record.resolution.x.get(), RADIUS_UM / record.resolution.y.get());
    let id = |what: &str| {
        Uuid::new_v5(&NAMESPACE, format!("{}/{what}", record.slide.digest).as_bytes()).to_string()
    };
    let mut features = Vec::new();
    for row in record.figures() {
        // Counterclockwise as GeoJSON wants it, the first corner repeated.
        let ring = (0..=CORNERS).map(|k| {
            let angle = std::f64::consts::TAU * (k % CORNERS) as f64 / CORNERS as f64;
            let at = Point::new(row.x_px + rx * angle.cos(), row.y_px + ry * angle.sin());
            record.qupath(at)
        });
        let mut measurements = Map::new();
        let mut say = |name: &str, p: f32| measurements.insert(name.into(), f64::from(p).into());
        say("s_seg", row.s_seg);
        row.s_cls.map(|s| say("s_cls", s));
        for (name, p) in row.subtypes.iter().flat_map(|s| COLUMNS.iter().zip(s.0)) {
            say(name, p);
        }
        let properties = Properties {
            object_type: "detection",
            name: None,
            is_locked: None,
            classification: Class { name: "Mitotic figure", color: [214, 39, 40] },
            measurements,
        };
        let id = id(&format!("{},{}", row.x_px, row.y_px));
        features.push(Feature::new(id, ring.collect(), properties));
    }
    if let Some(hotspot) = record.hotspot() {
        let (a, b) = (record.qupath(hotspot.min), record.qupath(hotspot.max));
        let ring = vec![a, [b[0], a[1]], b, [a[0], b[1]], a];
        let count = ("Mitotic figures".to_owned(), (hotspot.count as f64).into());
        let properties = Properties {
            object_type: "annotation",
            name: Some("Hotspot 2 mm²"),
            is_locked: Some(true),
            classification: Class { name: "Hotspot", color: [31, 119, 180] },
            measurements: Map::from_iter([count]),
        };
        features.push(Feature::new(id("hotspot"), ring, properties));
    }
    json(EXPORT.file, &Collection { r#type: "FeatureCollection", features })
}
