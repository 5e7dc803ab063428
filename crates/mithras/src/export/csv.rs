//! `detections.csv`: every candidate with both scores.

use super::{Export, ExportError, SlideRecord};
use crate::subtypes::{COLUMNS, Subtypes};
use mitosis::{Detection, Resolution};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub(super) const EXPORT: Export = Export {
    file: "detections.csv",
    about: "every candidate: position, both scores, accepted or not",
    bytes,
};

/// One row: a candidate, accepted or not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DetectionRow {
    /// Level-0 px, to 0.01.
    pub x_px: f64,
    /// Level-0 px, to 0.01.
    pub y_px: f64,
    /// Micrometres from the level-0 origin, to 0.001.
    pub x_um: f64,
    /// Micrometres from the level-0 origin, to 0.001.
    pub y_um: f64,
    /// First-stage score in [0, 1].
    pub s_seg: f32,
    /// Second-stage score in [0, 1]; empty when segmentation ran alone.
    pub s_cls: Option<f32>,
    /// Whether the threshold pair accepts it.
    pub accepted: bool,
    /// Whether it lies so far outside the tissue that it cannot be accepted.
    #[serde(default)]
    pub outside_tissue: bool,
    /// Subtypes of an accepted figure, after `--subtypes`.
    #[serde(skip)]
    pub subtypes: Option<Subtypes>,
}

impl DetectionRow {
    /// A detection, rounded for print.
    #[must_use]
    pub fn new(d: &Detection, resolution: &Resolution, accepted: bool) -> Self {
        let at = d.candidate.centroid;
        let um = resolution.to_physical(at);
        let round = |v: f64, steps: f64| (v * steps).round() / steps;
        Self {
            x_px: round(at.x, 100.0),
            y_px: round(at.y, 100.0),
            x_um: round(um.x, 1000.0),
            y_um: round(um.y, 1000.0),
            s_seg: d.candidate.s_seg.get(),
            s_cls: d.s_cls.map(mitosis::Score::get),
            accepted,
            outside_tissue: false,
            subtypes: None,
        }
    }

    /// What ranks it: the second score where there is one.
    #[must_use]
    pub fn score(&self) -> f32 {
        self.s_cls.unwrap_or(self.s_seg)
    }
}

/// Why a `detections.csv` cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// Line and reason.
    pub reason: String,
}

/// Reads a `detections.csv` back.
///
/// # Errors
/// [`ReadError`] when the file is missing or a row is not as [`DetectionRow`] says.
pub fn read(path: &Path) -> Result<Vec<DetectionRow>, ReadError> {
    let fail = |e: ::csv::Error| ReadError { path: path.to_owned(), reason: e.to_string() };
    let mut reader = ::csv::Reader::from_path(path).map_err(fail)?;
    let header = reader.headers().map_err(fail)?.clone();
    let at = COLUMNS.map(|c| header.iter().position(|h| h == c));
    let rows = reader
        .records()
        .map(|record| {
            let record = record?;
            let mut row: DetectionRow = record.deserialize(Some(&header))?;
            let cell = |i: &Option<usize>| record.get((*i)?)?.parse::<f32>().ok();
            let all: Option<Vec<f32>> = at.iter().map(cell).collect();
            row.subtypes = all.and_then(|v| v.try_into().ok()).map(Subtypes);
            Ok(row)
        })
        .collect::<Result<Vec<DetectionRow>, _>>()
        .map_err(fail)?;
    let sane = |r: &DetectionRow| {
        [r.x_px, r.y_px, r.x_um, r.y_um].iter().all(|v| v.is_finite())
            && (0.0..=1.0).contains(&r.s_seg)
            && r.s_cls.is_none_or(|s| (0.0..=1.0).contains(&s))
            && r.subtypes.is_none_or(|s| s.0.iter().all(|p| (0.0..=1.0).contains(p)))
    };
    match rows.iter().position(|r| !sane(r)) {
        None => Ok(rows),
        Some(i) => Err(ReadError {
            path: path.to_owned(),
            reason: format!("row {} holds a number that is no position or score", i + 1),
        }),
    }
}

fn bytes(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    let fail = |e: &dyn std::fmt::Display| ExportError::Encode {
        file: EXPORT.file,
        reason: e.to_string(),
    };
    let mut out = ::csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    // Written by hand, so that a slide without candidates has a header too.
    let more = if record.subtypes.is_some() { &COLUMNS[..] } else { &[] };
    let header = ["x_px", "y_px", "x_um", "y_um", "s_seg", "s_cls", "accepted", "outside_tissue"];
    out.write_record(header.iter().chain(more)).map_err(|e| fail(&e))?;
    for row in &record.rows {
        let cell = |i| row.subtypes.map(|s| s.0[i]);
        let subtypes: Vec<Option<f32>> = (0..more.len()).map(cell).collect();
        out.serialize((row, subtypes)).map_err(|e| fail(&e))?;
    }
    out.into_inner().map_err(|e| fail(&e))
}
