//! Seconds that the second stage really took, from the records of detection runs.

use base::file::ReadError;
use mithras::batch::StageTime;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Name of the second stage among a slide's stages.
const SECOND: &str = "classify";

/// Why a run has no times.
#[derive(Debug, thiserror::Error)]
pub enum TimesError {
    /// The record cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The record is not of a detection run.
    #[error("{}: {reason}", path.display())]
    Record {
        /// Path of the record.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No slide of the run went through the second stage.
    #[error("{}: no finished slide has times of a second stage; run both if the package has two", path.display())]
    Empty {
        /// Path of the record.
        path: PathBuf,
    },
}

/// Means over the slides (or regions, as images) of a run that had candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecondStage {
    /// How many.
    pub slides: usize,
    /// Seconds per slide that the network was at work, summed over its threads' calls.
    pub seconds: f64,
    /// Candidates per slide.
    pub candidates: f64,
}

#[derive(Deserialize)]
struct Record {
    slides: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    status: String,
    #[serde(default)]
    resumed_windows: usize,
    #[serde(default)]
    stages: Vec<StageTime>,
    #[serde(default)]
    counts: Option<Counts>,
}

#[derive(Deserialize)]
struct Counts {
    candidates: u64,
    unclassified: u64,
}

impl Line {
    /// The second stage, where the record has all of it: of a slide whose windows were kept from before, by another
    /// second stage, where it looked at every candidate.
    fn second_stage(&self) -> Option<&StageTime> {
        let second = self.stages.iter().find(|t| t.stage == SECOND && t.items > 0)?;
        let every = |c: &Counts| c.candidates + c.unclassified == second.items;
        (self.resumed_windows == 0 || self.counts.as_ref().is_some_and(every)).then_some(second)
    }
}

/// The second stage's time in a run: `run` is its folder or its `run.json`. Slides that were interrupted and
/// taken up again are left out: their record has the second part alone.
///
/// # Errors
/// [`TimesError`].
pub fn second_stage(run: &Path) -> Result<SecondStage, TimesError> {
    let path = if run.is_dir() { run.join("run.json") } else { run.to_path_buf() };
    let text =
        base::file::read_whole(&path).map_err(|source| ReadError { path: path.clone(), source })?;
    let record: Record = base::json::parse(&text).map_err(|e| TimesError::Record {
        path: path.clone(),
        reason: format!("is not the record of a detection run ({e})"),
    })?;
    let finished = record.slides.iter().filter(|s| s.status == "finished");
    let stages: Vec<&StageTime> = finished.filter_map(Line::second_stage).collect();
    if stages.is_empty() {
        return Err(TimesError::Empty { path });
    }
    #[expect(clippy::cast_precision_loss, reason = "counts")]
    let n = stages.len() as f64;
    #[expect(clippy::cast_precision_loss, reason = "counts")]
    let candidates = stages.iter().map(|t| t.items as f64).sum::<f64>() / n;
    let seconds = stages.iter().map(|t| t.busy_seconds).sum::<f64>() / n;
    Ok(SecondStage { slides: stages.len(), seconds, candidates })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(status: &str, resumed: usize, items: u64, seconds: f64) -> serde_json::Value {
        let stage = |stage: &str, busy_seconds: f64| StageTime {
            stage: stage.into(),
            items,
            threads: 1,
            busy_seconds,
            busy_share: 0.5,
        };
        serde_json::json!({
            "status": status,
            "resumed_windows": resumed,
            "stages": [stage("segment", 100.0), stage(SECOND, seconds)],
        })
    }

    #[test]
    fn whole_slides_with_candidates_are_averaged() {
        let dir = tempfile::tempdir().unwrap();
        let write = |slides: Vec<serde_json::Value>| {
            let text = serde_json::json!({ "slides": slides }).to_string();
            std::fs::write(dir.path().join("run.json"), text).unwrap();
            second_stage(dir.path())
        };
        let found = write(vec![
            line("finished", 0, 10, 1.0),
            line("finished", 0, 30, 2.0),
            line("finished", 9, 30, 0.1),
            line("finished", 0, 0, 0.0),
            line("failed", 0, 5, 7.0),
        ]);
        let found = found.unwrap();
        assert_eq!((found.slides, found.seconds, found.candidates), (2, 1.5, 20.0));
        // Candidates of a first stage that ran before, and all of a second one; the rest of an interrupted one.
        let with = |resumed: usize, candidates: u64| {
            let mut line = line("finished", resumed, 40, 4.0);
            line["counts"] = serde_json::json!({"candidates": candidates, "unclassified": 1});
            line
        };
        let found = write(vec![with(9, 39), with(9, 70)]).unwrap();
        assert_eq!((found.slides, found.seconds, found.candidates), (1, 4.0, 40.0));
        assert!(matches!(write(vec![line("failed", 0, 5, 7.0)]), Err(TimesError::Empty { .. })));
        std::fs::write(dir.path().join("run.json"), "{}").unwrap();
        assert!(matches!(second_stage(dir.path()), Err(TimesError::Record { .. })));
        assert!(matches!(second_stage(&dir.path().join("no")), Err(TimesError::Read(_))));
    }
}
