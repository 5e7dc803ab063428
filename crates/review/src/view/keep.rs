//! The thresholds that a viewer shows, kept as a run of its own.

use mithras::Thresholds;
use mithras::report::{AtPoint, PointError, at_point};
use std::path::{Path, PathBuf};

/// Why thresholds were not kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeepError {
    /// No thresholds.
    #[error("{0}")]
    Thresholds(String),
    /// The run cannot be written.
    #[error(transparent)]
    Point(#[from] PointError),
    /// The folder of the run is not found.
    #[error("{}: {source}", path.display())]
    Run { path: PathBuf, source: std::io::Error },
}

/// Writes a run at another operating point into a new folder next to it, as `mithras recount --operating-point` does,
/// and gives the folder.
pub(super) fn keep_point(
    run: &Path,
    point: &str,
    slides: Option<&Path>,
) -> Result<PathBuf, KeepError> {
    let thresholds: Thresholds =
        point.parse::<Thresholds>().map_err(|e| KeepError::Thresholds(e.to_string()))?;
    let into = free_folder(run, point)?;
    let text = |path: &Path| path.display().to_string();
    let command =
        ["mithras", "recount", &text(run), "--operating-point", point, "--into", &text(&into)]
            .map(str::to_owned);
    let of = AtPoint {
        run,
        into: &into,
        thresholds: &thresholds,
        package: None,
        slides,
        command: &command,
    };
    match at_point(&of) {
        Ok(_) => Ok(into),
        Err(e) => {
            // It was not there before: what is in it is half a run, unless another process made one meanwhile.
            if !matches!(e, PointError::Exists { .. } | PointError::Lock(_)) {
                let _ = std::fs::remove_dir_all(&into);
            }
            Err(e.into())
        }
    }
}

/// A folder next to a run that does not exist.
fn free_folder(run: &Path, point: &str) -> Result<PathBuf, KeepError> {
    let run = match run.file_name() {
        Some(_) => run.to_owned(),
        None => {
            run.canonicalize().map_err(|source| KeepError::Run { path: run.to_owned(), source })?
        }
    };
    let name = run.file_name().unwrap_or_default().to_string_lossy();
    let safe = |c: char| if c.is_alphanumeric() || ".,-_".contains(c) { c } else { '_' };
    let name = format!("{name} at {}", point.chars().map(safe).collect::<String>());
    let numbered = (2..).map(|k| format!("{name} {k}"));
    let free = |name: &String| run.with_file_name(name).symlink_metadata().is_err();
    let name = std::iter::once(name.clone()).chain(numbered).find(free).unwrap_or(name);
    Ok(run.with_file_name(name))
}
