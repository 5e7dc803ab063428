//! `grand-challenge.json`: a "Multiple points" annotation in millimetres. Points under the
//! threshold are kept, named otherwise, with their probabilities.

use super::kind::{Export, ExportError, json};
use crate::record::{DetectionRow, SlideRecord};
use serde::Serialize;

pub(super) const EXPORT: Export = Export {
    file: "grand-challenge.json",
    about: "all candidates as Grand Challenge \"Multiple points\", mm",
    bytes,
};

#[derive(Serialize)]
struct Document {
    name: String,
    r#type: &'static str,
    points: Vec<Point>,
    version: Version,
}

#[derive(Serialize)]
struct Point {
    name: &'static str,
    point: [f64; 3],
    probability: f64,
}

#[derive(Serialize)]
struct Version {
    major: u32,
    minor: u32,
}

impl Point {
    fn from_row(r: &DetectionRow) -> Self {
        Self {
            name: if r.accepted { "mitotic figure" } else { "non-mitotic figure" },
            point: [mm(r.x_um), mm(r.y_um), 0.0],
            probability: f64::from(r.score()),
        }
    }
}

fn bytes(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    let document = Document {
        // The format has no place for more than a name.
        name: format!(
            "mitotic figures, {}: s_seg >= {}, s_cls >= {}",
            record.point_name,
            record.point.seg.get(),
            record.point.cls.get()
        ),
        r#type: "Multiple points",
        points: record.rows.iter().map(Point::from_row).collect(),
        version: Version { major: 1, minor: 0 },
    };
    json(EXPORT.file, &document)
}

fn mm(um: f64) -> f64 {
    (um * 1000.0).round() / 1e6
}
