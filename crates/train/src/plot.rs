//! Metrics as CSV, and their curves as a small SVG.

use std::fmt::Write as _;
use std::path::Path;

use base::table::{Format, Table, TableError};
use pages::charts::{self, Panel, Series};

use crate::error::{Result, TrainError};
use crate::text::write_text;

/// A line of `metrics.csv`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub step: usize,
    pub kind: String,
    pub loss: f64,
    pub metric: f64,
    pub lr: f64,
    pub speed: f64,
}

const HEADER: &str = "step,kind,loss,metric,lr,images_per_s";

impl Row {
    pub fn new(step: usize, kind: &str, loss: f64, metric: f64, lr: f64, speed: f64) -> Self {
        Self { step, kind: kind.into(), loss, metric, lr, speed }
    }
}

pub(crate) fn write_rows(path: &Path, rows: &[Row]) -> Result<()> {
    let mut text = format!("{HEADER}\n");
    for r in rows {
        let _ =
            writeln!(text, "{},{},{},{},{},{:.1}", r.step, r.kind, r.loss, r.metric, r.lr, r.speed);
    }
    write_text(path, &text)
}

pub(crate) fn read_rows(path: &Path) -> Result<Vec<Row>> {
    if !path.is_file() {
        return Ok(vec![]);
    }
    let wrong = |e: TableError| TrainError::run(path, e.to_string());
    let table = Table::read(path, &Format { no_rows: true, ..Format::default() }).map_err(wrong)?;
    let parse = |row: usize| {
        let cell = |column| table.cell(row, column);
        Some(Row {
            step: cell(0).parse().ok()?,
            kind: cell(1).to_owned(),
            loss: cell(2).parse().ok()?,
            metric: cell(3).parse().ok()?,
            lr: cell(4).parse().ok()?,
            speed: cell(5).parse().ok()?,
        })
    };
    if table.names().join(",") != HEADER {
        return Err(TrainError::run(path, format!("its header is not `{HEADER}`")));
    }
    let line = |row| format!("malformed line {}", table.line(row));
    (0..table.len()).map(|row| parse(row).ok_or_else(|| TrainError::run(path, line(row)))).collect()
}

/// Both loss curves over the steps.
pub(crate) fn curves(rows: &[Row]) -> String {
    let points = |kind: &str| -> Vec<(f64, f64)> {
        let kept = rows.iter().filter(|r| r.kind == kind && r.loss.is_finite());
        kept.map(|r| (r.step as f64, r.loss)).collect()
    };
    let series = |name: &str, kind| Series { name: name.into(), points: points(kind) };
    lines(vec![series("train loss", "train"), series("validation loss", "validation")])
}

/// Curves over the steps, from zero up.
pub(crate) fn lines(series: Vec<Series>) -> String {
    let all = || series.iter().flat_map(|s| &s.points);
    let most = |v: &dyn Fn(&(f64, f64)) -> f64| all().map(v).fold(1e-12, f64::max);
    let most = (most(&|p| p.0), most(&|p| p.1) * 1.05);
    let (x_label, y_label) = ("Step".into(), "Loss".into());
    let panel = Panel { x_label, y_label, most, series, dot: None };
    charts::panels("", &[panel], (570.0, 300.0)).svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.csv");
        let rows = vec![
            Row::new(10, "train", 0.5, 1.0, 1e-3, 12.0),
            Row::new(20, "validation", 0.25, 0.7, 1e-4, 11.5),
        ];
        write_rows(&path, &rows).unwrap();
        assert_eq!(read_rows(&path).unwrap(), rows);
        let svg = curves(&rows);
        assert!(svg.contains("train loss") && svg.matches("<path d=").count() == 2);
        std::fs::write(&path, "step\n1,2\n").unwrap();
        assert!(read_rows(&path).is_err());
    }
}
