//! The study's pictures, drawn from computed results alone: no picture computes a statistic.

mod boxes;
mod curves;
mod rows;

pub use boxes::{BoxGroup, boxes};
pub use curves::{CalibrationGroup, PlottedCurve, calibration, kaplan_meier};
pub use rows::{Row, Scale, forest};

use pages::canvas::Canvas;

/// A finished picture.
pub struct Picture {
    /// File name without extension.
    pub name: String,
    /// What it shows, for the report.
    pub caption: String,
    /// The drawing.
    pub canvas: Canvas,
}
