//! `qupath.geojson`: accepted figures as detections, the hotspot as an annotation.

use super::{Export, ExportError, SlideRecord, json};
use crate::subtypes::COLUMNS;
use mitosis::Point;
use serde_json::{Value, json};
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

fn bytes(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    let (rx, ry) = (RADIUS_UM / record.resolution.x.get(), RADIUS_UM / record.resolution.y.get());
    let id = |what: &str| {
        Uuid::new_v5(&NAMESPACE, format!("{}/{what}", record.slide.digest).as_bytes()).to_string()
    };
    let mut features: Vec<Value> = Vec::new();
    for row in record.accepted() {
        // Counterclockwise as GeoJSON wants it, the first corner repeated.
        let ring: Vec<[f64; 2]> = (0..=CORNERS)
            .map(|k| {
                let angle = std::f64::consts::TAU * (k % CORNERS) as f64 / CORNERS as f64;
                let at = Point::new(row.x_px + rx * angle.cos(), row.y_px + ry * angle.sin());
                record.qupath(at)
            })
            .collect();
        let mut measurements = json!({ "s_seg": f64::from(row.s_seg) });
        if let Some(s) = row.s_cls {
            measurements["s_cls"] = json!(f64::from(s));
        }
        for (name, p) in row.subtypes.iter().flat_map(|s| COLUMNS.iter().zip(s.0)) {
            measurements[*name] = json!(f64::from(p));
        }
        features.push(json!({
            "type": "Feature",
            "id": id(&format!("{},{}", row.x_px, row.y_px)),
            "geometry": { "type": "Polygon", "coordinates": [ring] },
            "properties": {
                "objectType": "detection",
                "classification": { "name": "Mitotic figure", "color": [214, 39, 40] },
                "measurements": measurements,
            },
        }));
    }
    if let Some(hotspot) = record.count.as_ref().and_then(|c| c.hotspot) {
        let (a, b) = (record.qupath(hotspot.min), record.qupath(hotspot.max));
        let ring = [a, [b[0], a[1]], b, [a[0], b[1]], a];
        features.push(json!({
            "type": "Feature",
            "id": id("hotspot"),
            "geometry": { "type": "Polygon", "coordinates": [ring] },
            "properties": {
                "objectType": "annotation",
                "name": "Hotspot 2 mm²",
                "isLocked": true,
                "classification": { "name": "Hotspot", "color": [31, 119, 180] },
                "measurements": { "Mitotic figures": hotspot.count as f64 },
            },
        }));
    }
    json(EXPORT.file, &json!({ "type": "FeatureCollection", "features": features }))
}
