//! A table for slides that were searched already: their cases and whatever else is known of them.

use super::ReportError;
use super::cases::written_columns;
use super::gather::{all_records, alone};
use super::slide_folder::slides;
use crate::batch::state::Status;
use crate::batch::{DetectionState, InputError, ResultsError, lists, read_list};
use crate::input::Input;
use base::remedy::{Remedied, Remedy};
use base::table::Unmatched;
use base::text::{Many, Shown};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Why a table does not give cases.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum AssignError {
    /// The table.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The run.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// It is about other slides.
    #[error(
        "{}: names no slide of {}; slides are found by the name of their file{}",
        Shown(list),
        Shown(out),
        join.as_ref().map_or_else(String::new, |join| format!("; {join}"))
    )]
    NoSlide {
        /// Path of the table.
        list: PathBuf,
        /// Folder of the run.
        out: PathBuf,
        join: Option<Box<Unmatched>>,
    },
}

/// Gives the slides of runs, those that are not begun included, the columns of a list of [`read_list`], in place of
/// those that they had; slides are found by the names of their files. The tables follow with [`super::gather`]. Gives
/// notes on what does not meet.
///
/// # Errors
/// [`AssignError`]; nothing is changed for a table that cannot be read or names no slide of the runs.
pub fn assign(outs: &[PathBuf], list: &Path) -> Result<Vec<String>, AssignError> {
    let listed = read_list(list, None, &written_columns())?.slides;
    let mut by_name: BTreeMap<&str, &Input> = listed.iter().map(|i| (i.name.as_str(), i)).collect();
    let first = outs.first().map(PathBuf::as_path).unwrap_or(Path::new("."));
    // A folder that is not there must not come into being by its lock.
    std::fs::read_dir(first)
        .map_err(|e| ReportError::Read { path: first.to_owned(), reason: e.to_string() })?;
    let _alone = alone(first)?;
    let found = slides(outs, &all_records(outs)?)?;
    let mut recorded = lists(outs).map_err(ReportError::List)?;
    let named = recorded.iter().flat_map(|(_, list)| list.slides.iter().map(|s| s.name.clone()));
    let names: BTreeSet<String> = found.keys().cloned().chain(named).collect();
    let sides = ("the run", "the table");
    let join = Unmatched::between(sides, names.iter().map(String::as_str), by_name.keys().copied());
    let lacking = names.iter().filter(|name| !by_name.contains_key(name.as_str())).count();
    if lacking == names.len() {
        let join = join.map(Box::new);
        return Err(AssignError::NoSlide { list: list.to_owned(), out: first.to_owned(), join });
    }
    for (path, list) in &mut recorded {
        for slide in &mut list.slides {
            by_name.get(&*slide.name).inspect(|i| slide.columns.clone_from(&i.columns));
        }
        base::json::write(path, list).map_err(ReportError::from)?;
    }
    let (mut busy, mut unsound) = (0, Vec::new());
    for (name, slide) in found {
        let Some(input) = by_name.get(name.as_str()) else { continue };
        // As it is on disk: what was found may have a reason of its own for this run's tables. Another process writes
        // that of a slide that is under way.
        let mut state = match DetectionState::read(&slide.folder) {
            Ok(Some(state)) if state.status != Status::Running => state,
            Ok(_) => {
                busy += 1;
                continue;
            }
            Err(e) => {
                unsound.push(ResultsError::with_state(&slide.folder, &e).to_string());
                continue;
            }
        };
        state.columns.clone_from(&input.columns);
        state.save(&slide.folder).map_err(ReportError::from)?;
    }
    by_name.retain(|name, _| !names.contains(*name));
    let note = |n: usize, what: &str| (n > 0).then(|| format!("{} {what}", Many(n, "slide")));
    let notes = [
        note(lacking, "of the run not in the table, with the columns that they had"),
        note(busy, "under way or interrupted, with the columns that they had"),
        note(by_name.len(), "of the table not in the run"),
        join.map(|join| join.to_string()),
    ];
    Ok(notes.into_iter().flatten().chain(unsound).collect())
}

impl Remedied for AssignError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Input(e) => e.remedy(),
            Self::Report(e) => e.remedy(),
            Self::NoSlide { .. } => None,
        }
    }
}
