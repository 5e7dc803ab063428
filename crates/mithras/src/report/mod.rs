//! What is written over a whole run: `counts.csv`, `run.json`, `summary.html`.

mod counts;
mod error;
mod run_file;
mod summary;
mod view;
mod words;

pub use counts::counts;
pub use error::ReportError;
pub use run_file::{RunFile, SlideLine};

use crate::detector::Detector;
use crate::export::CountsFile;
use crate::file::{self, Lock, LockError, WriteError};
use crate::job::Outcome;
use artifact::table::Writer;
use std::path::Path;
use std::time::Duration;

/// Writes the three files of a run into `out`.
///
/// # Errors
/// [`ReportError`].
pub fn write(
    out: &Path,
    outcomes: &[Outcome],
    detector: &Detector,
    command: &[String],
) -> Result<RunFile, ReportError> {
    let mut lines = Vec::new();
    for outcome in outcomes {
        let counts = outcome.is_done().then(|| counts(&outcome.folder)).transpose()?;
        lines.push(SlideLine::new(outcome, counts.as_ref()));
    }
    let run = RunFile::new(lines, detector, command);
    let _alone = alone(out)?;
    counts_csv(&out.join("counts.csv"), &run.slides)?;
    artifact::json::write(&out.join("run.json"), &run)?;
    file::write(&out.join("summary.html"), summary::render(&run, outcomes, detector)?.as_bytes())?;
    Ok(run)
}

/// Holds the folder over the run while its files are written; another process does so for a moment
/// only.
fn alone(out: &Path) -> Result<Lock, ReportError> {
    for _ in 0..600 {
        match Lock::take(out) {
            Err(LockError::Busy { .. }) => std::thread::sleep(Duration::from_millis(100)),
            other => return Ok(other?),
        }
    }
    Ok(Lock::take(out)?)
}

fn counts_csv(path: &Path, slides: &[SlideLine]) -> Result<(), WriteError> {
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    let mut table = Writer::new([
        "slide",
        "status",
        "figures",
        "hotspot_count",
        "hotspot_x_px",
        "hotspot_y_px",
        "density_per_20_mm2",
        "analysed_mm2",
        "unread_mm2",
        "absent_mm2",
        "suspect_mm2",
        "tissue_mm2",
        "candidates",
        "mpp_x",
        "mpp_y",
        "mpp_source",
        "notes",
        "reason",
    ]);
    for s in slides {
        let c = s.counts.as_ref();
        let count = |f: fn(&CountsFile) -> usize| c.map_or_else(String::new, |c| f(c).to_string());
        let hotspot = c.and_then(|c| c.hotspot);
        table.push([
            s.name.clone(),
            s.status.clone(),
            count(|c| c.figures),
            count(|c| c.hotspot_count),
            number(hotspot.map(|h| h.centre_px[0])),
            number(hotspot.map(|h| h.centre_px[1])),
            number(c.and_then(|c| c.density_per_20_mm2)),
            number(c.map(|c| c.analysed_mm2)),
            number(c.map(|c| c.unread_mm2)),
            number(c.map(|c| c.absent_mm2)),
            number(c.map(|c| c.suspect_mm2)),
            number(c.map(|c| c.tissue_mm2)),
            count(|c| c.candidates),
            number(c.map(|c| c.resolution.x)),
            number(c.map(|c| c.resolution.y)),
            c.map_or_else(String::new, |c| c.resolution.source.clone()),
            c.map_or_else(String::new, |c| c.notes().join("; ")),
            s.reason.clone().unwrap_or_default(),
        ]);
    }
    table.write(path)
}
