//! What came of an embedding.

use base::text::{Many, Shown, plain};
use features::{FeatureError, Frozen};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::batch::Failure;

/// How one piece ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmbedStatus {
    /// Its file is written.
    Done,
    /// An earlier run wrote its file.
    Kept,
    /// Its file is written, without rows.
    NoTissue,
    /// It has no file.
    Failed,
}

/// One slide, one dataset, or one image that could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Name of the slide, dataset or image.
    pub name: String,
    /// How it ended.
    pub status: EmbedStatus,
    /// File of its features; none where it failed.
    #[serde(serialize_with = "base::json::lossy")]
    pub file: Option<PathBuf>,
    /// Vectors in the file.
    pub rows: u64,
    /// Seconds from opening it to its file.
    pub seconds: f64,
    /// Vectors per second.
    pub per_second: f64,
    /// Message of the error where it failed.
    pub reason: Option<String>,
}

impl Line {
    pub(super) fn done(name: String, file: &Path, rows: u64, took: Duration) -> Self {
        let (file, seconds) = (Some(file.to_owned()), took.as_secs_f64());
        let per_second = rows as f64 / seconds.max(1e-9);
        Self { name, status: EmbedStatus::Done, file, rows, seconds, per_second, reason: None }
    }

    pub(super) fn failed(reason: String) -> Self {
        let name = reason.split(": ").next().unwrap_or_default().to_owned();
        let status = EmbedStatus::Failed;
        let none = Self::done(name, Path::new(""), 0, Duration::ZERO);
        Self { status, file: None, reason: Some(reason), ..none }
    }
}

/// What came of an embedding.
#[derive(Debug, Serialize)]
pub struct EmbedReport {
    /// Version of this format.
    pub schema: &'static str,
    /// Name of the encoder's package.
    pub encoder: String,
    /// SHA-256 of its network or weights.
    pub encoder_sha256: String,
    /// Numbers per vector.
    pub width: usize,
    /// Engine that ran it, with its version.
    pub engine: String,
    /// File or folder of the features.
    #[serde(serialize_with = "base::json::lossy")]
    pub out: PathBuf,
    /// Every slide or dataset.
    pub items: Vec<Line>,
    /// Pieces without a file, or with a missing row.
    pub failed: usize,
    /// Vectors made by this run.
    pub rows: u64,
    /// Seconds, all in all.
    pub seconds: f64,
    /// Vectors per second.
    pub per_second: f64,
    /// The typed errors of the slides that failed.
    #[serde(skip)]
    pub failures: Vec<Failure<FeatureError>>,
}

impl EmbedReport {
    pub(super) fn new(encoder: &Frozen, out: &Path, items: Vec<Line>, took: Duration) -> Self {
        let made =
            items.iter().filter(|l| matches!(l.status, EmbedStatus::Done | EmbedStatus::NoTissue));
        let (rows, seconds) = (made.map(|l| l.rows).sum::<u64>(), took.as_secs_f64());
        Self {
            schema: "mithras.embed/1",
            encoder: encoder.about.encoder.clone(),
            encoder_sha256: encoder.about.sha256.clone(),
            width: encoder.about.width,
            engine: encoder.engine.to_string(),
            out: out.to_owned(),
            failed: items.iter().filter(|l| l.status == EmbedStatus::Failed).count(),
            items,
            rows,
            seconds,
            per_second: rows as f64 / seconds.max(1e-9),
            failures: vec![],
        }
    }
}

impl fmt::Display for EmbedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for l in &self.items {
            match l.status {
                EmbedStatus::Failed => {
                    let reason = l.reason.as_deref().unwrap_or_default();
                    writeln!(f, "{}: FAILED: {}", plain(&l.name), plain(reason))?;
                }
                EmbedStatus::Kept => {
                    writeln!(f, "{}: done before, {}", plain(&l.name), Many(l.rows, "row"))?;
                }
                _ => {
                    let rows = Many(l.rows, "row");
                    writeln!(f, "{}: {rows}, {:.1}/s", plain(&l.name), l.per_second)?;
                }
            }
        }
        let Self { rows, width, encoder, per_second, .. } = self;
        writeln!(f, "{rows} x {width} features by {encoder}, {per_second:.1}/s; {}", self.engine)?;
        writeln!(f, "written to {}", Shown(&self.out))
    }
}
