//! One slide of `run.json`.

use super::reviewed::Reviewed;
use super::slide_folder::SlideFolder;
use crate::batch::StageTime;
use crate::batch::state::Status;
use crate::export::CountsFile;
use base::walk::relative;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One slide of a run.
#[derive(Clone, Debug, Serialize)]
pub struct SlideLine {
    /// Name of the slide's folder.
    pub name: String,
    /// Its folder relative to that of `run.json`, with `/`; none where that is the one of its name next to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Its file, as given.
    pub path: String,
    /// `finished`, `no-tissue` or `failed`.
    pub status: String,
    /// Message of the error where it failed.
    pub reason: Option<String>,
    /// Finished by an earlier run and kept.
    pub kept: bool,
    /// Digest of the file.
    pub input_sha256: String,
    /// That of pieces of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_pieces_sha256: Option<String>,
    /// Seconds, all in all.
    pub seconds: f64,
    /// Busy time per stage.
    pub stages: Vec<StageTime>,
    /// Windows taken over from an interrupted run.
    pub resumed_windows: usize,
    /// Further columns of the list that named it, with its cells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<(String, String)>,
    /// What ran the networks, where that is not the same for all slides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Its count, also in its own `counts.json`.
    pub counts: Option<CountsFile>,
    /// The same with a reviewer's verdicts on top, where it was recounted (`mithras recount`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<Reviewed>,
}

impl SlideLine {
    /// `into` is the folder of `run.json`.
    pub(super) fn new(slide: &SlideFolder, into: &Path) -> Self {
        let state = &slide.state;
        Self {
            name: slide.name.clone(),
            folder: relative(&slide.folder, into).filter(|f| *f != slide.name),
            path: state.input.path.clone(),
            status: match state.status {
                Status::Running => "running",
                Status::Finished => "finished",
                Status::NoTissue => "no-tissue",
                Status::Failed => "failed",
            }
            .into(),
            reason: state.reason.clone(),
            kept: slide.kept,
            input_sha256: state.input.sha256.clone(),
            input_pieces_sha256: state.input.pieces_sha256.clone(),
            seconds: state.seconds,
            stages: state.work.stages.clone(),
            resumed_windows: state.work.resumed_windows,
            columns: state.columns.clone(),
            engine: slide.engine().cloned(),
            counts: slide.counts.clone(),
            reviewed: slide.reviewed.clone(),
        }
    }
}

/// Words of the note on slides that are one file.
pub(super) const SAME_FILE: &str = "the same file under several names; each counts";

/// The names of slides that are one file, each group sorted.
pub(super) fn same_files<'a>(
    slides: impl Iterator<Item = &'a SlideLine> + Clone,
) -> Vec<Vec<String>> {
    let digest = |s: &'a SlideLine| s.counts.as_ref().map_or("", |c| c.slide.digest.as_str());
    // Next to slides of earlier versions, which have no digest of pieces, the other digest decides.
    let short = slides.clone().filter(|s| s.input_pieces_sha256.is_none()).map(digest);
    let short: BTreeSet<&str> = short.collect();
    let mut of: BTreeMap<(&str, Option<&str>), Vec<String>> = BTreeMap::new();
    for slide in slides {
        let digest = digest(slide);
        if !digest.is_empty() {
            let pieces = slide.input_pieces_sha256.as_deref().filter(|_| !short.contains(digest));
            of.entry((digest, pieces)).or_default().push(slide.name.clone());
        }
    }
    let mut all: Vec<_> = of.into_values().filter(|names| names.len() > 1).collect();
    all.iter_mut().for_each(|names| names.sort_unstable());
    all.sort_unstable();
    all
}
