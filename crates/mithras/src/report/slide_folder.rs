//! The slides in the folders of runs.

use super::error::ReportError;
use super::record::RunRecord;
use super::reviewed::Reviewed;
use crate::batch::state::{self, StateError, Status, differ_in_one, differences, has_results};
use crate::batch::{DetectionState, Results, ResultsError, finished_results as results};
use crate::detector::ENGINE_SETTING;
use crate::export::CountsFile;
use crate::file::Lock;
use crate::input::InputDigest;
use base::file::read_step;
use base::text::plain;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) use crate::batch::state::OWN_SETTINGS as OWN;

/// Reads a slide's `counts.json`.
///
/// # Errors
/// [`ReportError::Read`].
pub fn counts(folder: &Path) -> Result<CountsFile, ReportError> {
    let path = folder.join("counts.json");
    crate::batch::counts(folder).map_err(|e| {
        let reason = format!("{e}{}", read_step(&*e).unwrap_or_default());
        ReportError::Read { path, reason }
    })
}

/// The settings of a run, which those of its slides are compared with.
#[derive(Clone, Debug)]
pub(super) struct Like {
    pub settings: BTreeMap<String, String>,
    /// Whether a process accepted results of another engine.
    pub any_engine: bool,
}

impl Like {
    /// The settings of a run of which these processes may have been part.
    pub(super) fn new(settings: BTreeMap<String, String>, records: &[RunRecord]) -> Self {
        let any = Self { settings, any_engine: true };
        let any_engine = records.iter().any(|r| r.accepts_engine && any.has(&r.settings()));
        Self { any_engine, ..any }
    }

    pub(super) fn has(&self, settings: &BTreeMap<String, String>) -> bool {
        let alike = || differ_in_one(&self.settings, settings, ENGINE_SETTING);
        state::alike(&self.settings, settings) || (self.any_engine && alike())
    }

    /// Whether a slide was done with other settings; states of early versions do not record them.
    pub(super) fn excludes(&self, state: &DetectionState) -> bool {
        !state.settings.is_empty() && !self.has(&run_settings(state))
    }
}

/// The settings of a slide that are those of its run.
pub(super) fn run_settings(state: &DetectionState) -> BTreeMap<String, String> {
    let mut settings = state.settings.clone();
    OWN.iter().for_each(|own| drop(settings.remove(*own)));
    settings
}

/// A slide's folder, read.
#[derive(Clone, Debug)]
pub(super) struct SlideFolder {
    /// The folder's name.
    pub name: String,
    pub folder: PathBuf,
    pub state: DetectionState,
    /// Finished by an earlier run and kept by the one that writes the tables.
    pub kept: bool,
    /// Its count, where it is done.
    pub counts: Option<CountsFile>,
    /// The same with a reviewer's verdicts on top.
    pub reviewed: Option<Reviewed>,
}

impl SlideFolder {
    /// Of a slide's folder; a finished slide whose results are damaged or another's counts as failed.
    pub(super) fn new(
        name: String,
        folder: PathBuf,
        mut state: DetectionState,
        kept: bool,
    ) -> Self {
        let mut read = None;
        if state.is_done() {
            let measured = results(&folder).and_then(|Results { mut counts, .. }| {
                let measured = counts.measure_hotspots(&folder);
                measured.map(|()| counts).map_err(|e| ResultsError::because(&folder, &e))
            });
            match measured.map_err(|e| plain(&e.to_string()).into_owned()) {
                Ok(counts) => read = Some(counts),
                // Begun again since its state was read.
                Err(_) if is_begun_again(&folder) => state.status = Status::Running,
                Err(reason) => (state.status, state.reason) = (Status::Failed, Some(reason)),
            }
        }
        Self { name, folder, state, kept, counts: read, reviewed: None }
    }

    /// Takes back the results of a slide that was begun again since they were read, and returns whether it was.
    pub(super) fn withdraw_if_begun_again(&mut self) -> bool {
        let again = self.state.is_done() && is_begun_again(&self.folder);
        if again {
            (self.state.status, self.counts) = (Status::Running, None);
        }
        again
    }

    /// A slide whose state cannot be read.
    fn unreadable(name: String, folder: PathBuf, reason: &StateError) -> Self {
        let mut state = DetectionState::running("", InputDigest::unseen(name.clone()));
        (state.status, state.reason) = (Status::Failed, Some(reason.to_string()));
        Self { name, folder, state, kept: false, counts: None, reviewed: None }
    }

    /// What ran the networks.
    pub(super) fn engine(&self) -> Option<&String> {
        self.state.settings.get(ENGINE_SETTING)
    }

    fn rank(&self) -> u8 {
        match self.state.status {
            Status::Finished | Status::NoTissue => 2,
            Status::Failed => 1,
            Status::Running => 0,
        }
    }
}

/// Whether a slide that was finished is not any more, or a process works on it.
fn is_begun_again(folder: &Path) -> bool {
    let undone = |s: Option<DetectionState>| !s.is_some_and(|s| s.is_done());
    Lock::is_taken(folder) || DetectionState::read(folder).is_ok_and(undone)
}

/// The slides of several folders of runs by name, each once. `records`: what processes these are the work of.
pub(super) fn slides(
    outs: &[PathBuf],
    records: &[RunRecord],
) -> Result<BTreeMap<String, SlideFolder>, ReportError> {
    let mut all: BTreeMap<String, SlideFolder> = BTreeMap::new();
    for out in outs {
        for found in folder(out)? {
            let Some(first) = all.get(&found.name) else {
                all.insert(found.name.clone(), found);
                continue;
            };
            if first.state.is_done() && found.state.is_done() {
                check_same(first, &found, records)?;
            }
            if found.rank() > first.rank() {
                all.insert(found.name.clone(), found);
            }
        }
    }
    Ok(all)
}

/// Checks that two results of one name are of the same work: either may be the one that counts.
fn check_same(
    one: &SlideFolder,
    other: &SlideFolder,
    records: &[RunRecord],
) -> Result<(), ReportError> {
    let (first, second) = (one.folder.clone(), other.folder.clone());
    let (a, b) = (&one.state, &other.state);
    if !a.input.same_slide(&b.input) {
        return Err(ReportError::Twice { name: one.name.clone(), first, second });
    }
    let noted = !a.settings.is_empty() && !b.settings.is_empty();
    let own = OWN.iter().all(|k| a.settings.get(*k) == b.settings.get(*k));
    if noted && !(own && Like::new(run_settings(a), records).has(&run_settings(b))) {
        let differs = differences(&a.settings, &b.settings);
        return Err(ReportError::Config { first, second, differs });
    }
    Ok(())
}

/// The slides of one.
fn folder(out: &Path) -> Result<Vec<SlideFolder>, ReportError> {
    let paths = base::walk::entries(out)?.into_par_iter();
    paths
        .filter_map(|folder| {
            // Folders of slides never begin with a dot.
            let name = folder.file_name()?.to_str().filter(|n| !n.starts_with('.'))?.to_owned();
            let found = match DetectionState::read(&folder) {
                Ok(None) if has_results(&folder) => {
                    return Some(Ok(SlideFolder::unreadable(name, folder, &StateError::missing())));
                }
                Ok(state) => SlideFolder::new(name, folder, state?, false),
                Err(reason) => return Some(Ok(SlideFolder::unreadable(name, folder, &reason))),
            };
            let reviewed = found.counts.as_ref().map(|_| Reviewed::read(&found.folder)).transpose();
            Some(reviewed.map(|r| SlideFolder { reviewed: r.flatten(), ..found }))
        })
        .collect()
}
