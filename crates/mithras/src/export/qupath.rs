//! `qupath.geojson`: every candidate as a detection, accepted or not by its class, and the hotspot as
//! an annotation; also of a finished run on disk, with scripts for a project.

use super::counts::CountsFile;
use super::kind::{Export, ExportError};
use super::region_counts::RegionCount;
use crate::record::{COLUMNS, DetectionRow, SlideRecord};
use crate::regions::RegionOutline;
use mitosis::{Level0, Point, Score};
use serde::Serialize;
use serde_json::Map;
use uuid::Uuid;

pub(super) const EXPORT: Export = Export {
    file: "qupath.geojson",
    about: "candidates, accepted or not by their class, and the hotspot, for QuPath (drag it onto the slide)",
    bytes,
};

/// Class of accepted candidates.
pub const ACCEPTED: &str = "Mitotic figure";
/// Class of the others.
pub const REJECTED: &str = "Non-mitotic figure";

/// Class of regions that were searched.
const REGION: &str = "Region";

/// Namespace of the identifiers, so that the same figure has the same identifier every time.
const NAMESPACE: Uuid = Uuid::from_u128(0x6d69_7468_7261_7300_8000_7175_7061_7468);
/// Corners of the polygon drawn around a figure.
const CORNERS: usize = 12;
/// Its radius, um: the matching radius of the paper.
const RADIUS_UM: f64 = mitosis::matching::PAPER_RADIUS.0;

/// What accepted the figures.
#[derive(Serialize)]
struct Used<'a> {
    operating_point: &'a str,
    threshold_seg: Score,
    threshold_cls: Score,
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
    coordinates: Vec<Vec<[f64; 2]>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    object_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
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
    fn new(id: String, rings: Vec<Vec<[f64; 2]>>, properties: Properties) -> Self {
        let geometry = Polygon { r#type: "Polygon", coordinates: rings };
        Self { r#type: "Feature", id, geometry, properties }
    }
}

/// Identifier of a thing on the slide of this digest.
fn id(digest: &str, what: &str) -> String {
    Uuid::new_v5(&NAMESPACE, format!("{digest}/{what}").as_bytes()).to_string()
}

/// Identifier of a candidate: of the slide's content and the place, so the same every time.
#[must_use]
pub fn candidate_id(digest: &str, row: &DetectionRow) -> String {
    id(digest, &format!("{},{}", row.x_px, row.y_px))
}

/// A level-0 point as QuPath counts it: from the slide's bounds.
fn from_bounds(counts: &CountsFile, p: Point<Level0>) -> [f64; 2] {
    let offset = counts.slide.bounds_offset.map(|o| o as f64);
    [p.x - offset[0], p.y - offset[1]].map(|v| (v * 100.0).round() / 100.0)
}

/// JSON without bytes that need an encoding: QuPath reads with that of its machine.
fn ascii(json: &str) -> String {
    let mut units = [0; 2];
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        match c.is_ascii() {
            true => out.push(c),
            false => c.encode_utf16(&mut units).iter().for_each(|u| out += &format!("\\u{u:04x}")),
        }
        out
    })
}

/// What was counted in a region.
fn region_measurements(region: &RegionCount) -> Map<String, serde_json::Value> {
    let mut all = Map::new();
    all.insert("Mitotic figures".into(), (region.figures as f64).into());
    all.insert("Hotspot 2 mm²".into(), (region.hotspot_count as f64).into());
    all.insert("Analysed mm²".into(), region.analysed_mm2.into());
    region.density_per_20_mm2.map(|d| all.insert("Per 20 mm²".into(), d.into()));
    all
}

/// The outlines of what was searched, with the numbers of each region; of one in several parts the first has them.
fn region_features(counts: &CountsFile, regions: &[RegionOutline]) -> Vec<Feature> {
    let list = counts.regions.as_ref().map_or(&[][..], |r| &r.list);
    let mut all = Vec::new();
    for (i, RegionOutline { name, area }) in regions.iter().enumerate() {
        let mut measurements = list.get(i).map(region_measurements).unwrap_or_default();
        for (k, polygon) in area.closed().into_iter().enumerate() {
            let shift = |ring: roi::Ring| {
                ring.into_iter().map(|[x, y]| from_bounds(counts, Point::new(x, y))).collect()
            };
            let properties = Properties {
                object_type: "annotation",
                name: Some(name.clone()),
                is_locked: Some(true),
                classification: Class { name: REGION, color: [124, 58, 237] },
                measurements: std::mem::take(&mut measurements),
            };
            let rings = polygon.into_iter().map(shift).collect();
            let id = id(&counts.slide.digest, &format!("region/{name}/{k}"));
            all.push(Feature::new(id, rings, properties));
        }
    }
    all
}

/// The file of a slide with these candidates and the regions that were searched, by name. One feature a line.
///
/// # Errors
/// [`ExportError::Encode`].
pub fn features(
    counts: &CountsFile,
    rows: &[DetectionRow],
    regions: &[RegionOutline],
) -> Result<Vec<u8>, ExportError> {
    let digest = &counts.slide.digest;
    let (rx, ry) = (RADIUS_UM / counts.resolution.x, RADIUS_UM / counts.resolution.y);
    let mut lines: Vec<String> = Vec::with_capacity(rows.len() + 1);
    let mut push = |feature: &Feature| {
        let line = serde_json::to_string(feature)
            .map_err(|e| ExportError::Encode { file: EXPORT.file, reason: e.to_string() })?;
        lines.push(ascii(&line));
        Ok::<_, ExportError>(())
    };
    for row in rows {
        // Counterclockwise as GeoJSON wants it, the first corner repeated.
        let ring = (0..=CORNERS).map(|k| {
            let angle = std::f64::consts::TAU * (k % CORNERS) as f64 / CORNERS as f64;
            let at = Point::new(row.x_px + rx * angle.cos(), row.y_px + ry * angle.sin());
            from_bounds(counts, at)
        });
        let mut measurements = Map::new();
        let mut insert = |name: &str, p: f32| measurements.insert(name.into(), f64::from(p).into());
        insert("s_seg", row.s_seg);
        row.s_cls.map(|s| insert("s_cls", s));
        for (name, p) in row.subtypes.iter().flat_map(|s| COLUMNS.iter().zip(s.0)) {
            insert(name, p);
        }
        let classification = match row.accepted {
            true => Class { name: ACCEPTED, color: [214, 39, 40] },
            false => Class { name: REJECTED, color: [0, 158, 115] },
        };
        let properties = Properties {
            object_type: "detection",
            name: None,
            is_locked: None,
            classification,
            measurements,
        };
        push(&Feature::new(candidate_id(digest, row), vec![ring.collect()], properties))?;
    }
    if let Some(hotspot) = counts.hotspot {
        // What QuPath measures is the part on the slide.
        let most = [counts.slide.width as f64, counts.slide.height as f64];
        let on_slide = |[x, y]: [f64; 2]| Point::new(x.clamp(0.0, most[0]), y.clamp(0.0, most[1]));
        let [a, b] =
            [hotspot.min_px, hotspot.max_px].map(|corner| from_bounds(counts, on_slide(corner)));
        let ring = vec![a, [b[0], a[1]], b, [a[0], b[1]], a];
        let count = ("Mitotic figures".to_owned(), (counts.hotspot_count as f64).into());
        let properties = Properties {
            object_type: "annotation",
            name: Some("Hotspot 2 mm²".to_owned()),
            is_locked: Some(true),
            classification: Class { name: "Hotspot", color: [31, 119, 180] },
            measurements: Map::from_iter([count]),
        };
        push(&Feature::new(id(digest, "hotspot"), vec![ring], properties))?;
    }
    for region in region_features(counts, regions) {
        push(&region)?;
    }
    // A member that GeoJSON leaves to the writer.
    let point = Used {
        operating_point: &counts.operating_point,
        threshold_seg: counts.thresholds.seg,
        threshold_cls: counts.thresholds.cls,
    };
    let point = serde_json::to_string(&point)
        .map_err(|e| ExportError::Encode { file: EXPORT.file, reason: e.to_string() })?;
    let (point, all) = (ascii(&point), lines.join(",\n"));
    let head = format!("{{\"type\":\"FeatureCollection\",\"mithras\":{point},\"features\":[");
    Ok(format!("{head}\n{all}\n]}}\n").into_bytes())
}

fn bytes(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    let list = record.regions.iter().flat_map(|s| &s.list);
    let regions: Vec<_> =
        list.map(|r| RegionOutline { name: r.name.clone(), area: r.area.clone() }).collect();
    features(&CountsFile::from_record(record), &record.rows, &regions)
}
