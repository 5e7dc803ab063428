//! `grand-challenge.json`: a "Multiple points" annotation in millimetres. Points under the
//! threshold are kept, named otherwise, with their probabilities.

use super::{Export, ExportError, SlideRecord, json};
use serde_json::json;

pub(super) const EXPORT: Export = Export {
    file: "grand-challenge.json",
    about: "all candidates as Grand Challenge \"Multiple points\", mm",
    bytes,
};

fn bytes(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    let points: Vec<_> = record
        .rows
        .iter()
        .map(|r| {
            json!({
                "name": if r.accepted { "mitotic figure" } else { "non-mitotic figure" },
                "point": [mm(r.x_um), mm(r.y_um), 0.0],
                "probability": f64::from(r.score()),
            })
        })
        .collect();
    let document = json!({
        "name": "mitotic figures",
        "type": "Multiple points",
        "points": points,
        "version": { "major": 1, "minor": 0 },
    });
    json(EXPORT.file, &document)
}

fn mm(um: f64) -> f64 {
    (um * 1000.0).round() / 1e6
}
