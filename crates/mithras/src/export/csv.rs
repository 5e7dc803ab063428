//! `detections.csv`: every candidate with both scores.

#![expect(clippy::disallowed_types, reason = "its cells are numbers and fixed words")]

use super::kind::{Export, ExportError};
use crate::record::{COLUMNS, DetectionRow, SlideRecord, Subtypes};
use base::table::{Format, Table, TableError};
use detect::Flaw;
use std::path::Path;

pub(super) const EXPORT: Export = Export {
    file: "detections.csv",
    about: "every candidate: position, both scores, accepted or not",
    bytes,
};

/// Reads a `detections.csv` back.
///
/// # Errors
/// [`TableError`] when the file is missing or a row is not a [`DetectionRow`].
pub fn read(path: &Path) -> Result<Vec<DetectionRow>, TableError> {
    let table = Table::read(path, &Format { no_rows: true, ..Format::default() })?;
    let position = [table.need(&["x_px"])?, table.need(&["y_px"])?, table.need(&["x_um"])?];
    let (y_um, s_seg, s_cls) =
        (table.need(&["y_um"])?, table.need(&["s_seg"])?, table.need(&["s_cls"])?);
    let accepted = table.need(&["accepted"])?;
    let outside = table.find(&["outside_tissue"]);
    let flaw = table.find(&["flaw"]);
    let flawed = |row: usize, column: usize| match table.cell(row, column) {
        "" => Ok(None),
        cell => match Flaw::from_name(cell) {
            Some(flaw) => Ok(Some(flaw)),
            None => Err(table.wrong(row, column, format!("'{cell}' is not a flaw"))),
        },
    };
    let subtypes = COLUMNS.map(|c| table.find(&[c]));
    let score = |row: usize, column: usize| match table.cell(row, column) {
        "" => Ok(None),
        // Not by way of f64, which would round twice.
        cell => match cell.parse::<f32>() {
            Ok(v) if (0.0..=1.0).contains(&v) => Ok(Some(v)),
            _ => Err(table.wrong(row, column, format!("'{cell}' is not a score in [0, 1]"))),
        },
    };
    let truth = |row: usize, column: usize| match table.cell(row, column) {
        "true" => Ok(true),
        "false" => Ok(false),
        cell => Err(table.wrong(row, column, format!("'{cell}' is neither true nor false"))),
    };
    (0..table.len())
        .map(|row| {
            let all: Option<Vec<f32>> = subtypes
                .iter()
                .map(|column| column.map_or(Ok(None), |c| score(row, c)))
                .collect::<Result<_, _>>()?;
            Ok(DetectionRow {
                x_px: table.number(row, position[0])?,
                y_px: table.number(row, position[1])?,
                x_um: table.number(row, position[2])?,
                y_um: table.number(row, y_um)?,
                s_seg: score(row, s_seg)?.ok_or_else(|| table.wrong(row, s_seg, "is empty"))?,
                s_cls: score(row, s_cls)?,
                accepted: truth(row, accepted)?,
                outside_tissue: outside.map_or(Ok(false), |c| truth(row, c))?,
                flaw: flaw.map_or(Ok(None), |c| flawed(row, c))?,
                subtypes: all.and_then(|v| v.try_into().ok()).map(Subtypes),
            })
        })
        .collect()
}

fn bytes(record: &SlideRecord) -> Result<Vec<u8>, ExportError> {
    let fail = |e: &dyn std::fmt::Display| ExportError::Encode {
        file: EXPORT.file,
        reason: e.to_string(),
    };
    let mut out = ::csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    // Written by hand, so that a slide without candidates has a header too.
    let more = if record.subtypes.is_some() { &COLUMNS[..] } else { &[] };
    let header =
        ["x_px", "y_px", "x_um", "y_um", "s_seg", "s_cls", "accepted", "outside_tissue", "flaw"];
    out.write_record(header.iter().chain(more)).map_err(|e| fail(&e))?;
    for row in &record.rows {
        let cell = |i| row.subtypes.map(|s| s.0[i]);
        let subtypes: Vec<Option<f32>> = (0..more.len()).map(cell).collect();
        out.serialize((row, subtypes)).map_err(|e| fail(&e))?;
    }
    out.into_inner().map_err(|e| fail(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row with these scores.
    fn row(s_seg: &str, s_cls: &str, atypical: &str) -> Result<Vec<DetectionRow>, TableError> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("detections.csv");
        let zeros = vec!["0"; COLUMNS.len() - 1].join(",");
        let text = format!(
            "x_px,y_px,x_um,y_um,s_seg,s_cls,accepted,{}\n1,2,0.25,0.5,{s_seg},{s_cls},true,{atypical},{zeros}\n",
            COLUMNS.join(",")
        );
        std::fs::write(&path, text).expect("a file");
        read(&path)
    }

    #[test]
    fn a_score_outside_of_0_to_1_is_refused_with_its_place() {
        let rows = row("1", "0", "1").unwrap();
        assert_eq!((rows[0].s_seg, rows[0].s_cls), (1.0, Some(0.0)));
        for (cells, column, value) in [
            (["2.0", "0.5", "0"], "s_seg", "2.0"),
            (["0.5", "2.0", "0"], "s_cls", "2.0"),
            (["0.5", "-0.1", "0"], "s_cls", "-0.1"),
            (["nan", "0.5", "0"], "s_seg", "nan"),
            (["0.5", "0.5", "2.0"], COLUMNS[0], "2.0"),
        ] {
            let error = row(cells[0], cells[1], cells[2]).unwrap_err().to_string();
            let reason = format!("'{value}' is not a score in [0, 1]");
            assert!(error.contains(&reason) && error.contains(column), "{error}");
            assert!(error.contains("line 2"), "{error}");
        }
    }
}
