//! The files over a run, made of the slides' folders.

use super::cases::{self, Unfinished, cases as cases_of};
use super::error::ReportError;
use super::record::{RunRecord, begin, records};
use super::run_file::RunFile;
use super::slide_folder::{Like, SlideFolder, run_settings, slides};
use super::slide_line::SlideLine;
use super::{region_table, summary, table};
use crate::batch::state::{self, Status, differences};
use crate::batch::{DetectionOutcome, DetectionState, lists};
use crate::detector::Detector;
use crate::file::{self, Access, Lock, LockError};
use base::text::plain;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Rebuilds `counts.csv`, `run.json` and `summary.html` of the slides in the folders `outs`
/// of runs, and writes them into `into`, or into the first folder. Slides may still be in progress there:
/// those have no row, and [`RunFile::unfinished`] names them. A slide in several folders
/// counts once.
///
/// # Errors
/// [`ReportError`]: above all a folder without slides, and finished slides of different configurations
/// or, under one name, of different files.
pub fn gather(outs: &[PathBuf], into: Option<&Path>) -> Result<RunFile, ReportError> {
    let Some(first) = outs.first() else { return Err(ReportError::Nothing { outs: Vec::new() }) };
    // A folder that is not there must not come into being by its lock.
    for out in outs {
        std::fs::read_dir(out)
            .map_err(|e| ReportError::Read { path: out.clone(), reason: e.to_string() })?;
    }
    let into = into.unwrap_or(first);
    check_place(into, outs)?;
    let _alone = alone(into)?;
    let records = all_records(outs)?;
    let found = slides(outs, &records)?;
    let states: Vec<_> = found.values().map(|f| (f.folder.as_path(), &f.state)).collect();
    let Some(run) = shared(&states, &records)? else {
        return Err(ReportError::Nothing { outs: outs.to_vec() });
    };
    files(into, outs, run, records, found)
}

/// Checks that tables of these runs replace none of another run: that of slides in the folder itself.
fn check_place(into: &Path, outs: &[PathBuf]) -> Result<(), ReportError> {
    let place = |path: &Path| path.canonicalize().ok();
    if outs.iter().any(|out| place(out) == place(into)) {
        return Ok(());
    }
    let folders = base::walk::entries(into).unwrap_or_default();
    match folders.into_iter().find(|folder| state::has_state(folder)) {
        Some(slide) => Err(ReportError::Taken { into: into.to_owned(), slide }),
        None => Ok(()),
    }
}

/// The settings that all finished slides were done with; none without slides.
fn shared(
    slides: &[(&Path, &DetectionState)],
    records: &[RunRecord],
) -> Result<Option<Like>, ReportError> {
    let done = || slides.iter().filter(|(_, s)| s.is_done() && !s.settings.is_empty());
    let Some((first, state)) = done().next().or(slides.first()) else { return Ok(None) };
    let settings = run_settings(state);
    let run = Like::new(settings.clone(), records);
    let Some((second, other)) = done().find(|(_, s)| run.excludes(s)) else { return Ok(Some(run)) };
    let (first, second) = (first.to_path_buf(), second.to_path_buf());
    let differs = differences(&settings, &run_settings(other));
    Err(ReportError::Config { first, second, differs })
}

/// Checks that the finished slides of a run, in these folders, were done with one configuration, before one
/// thing is made of all of them. What is wrong with the results of a single slide is [`super::results`]'.
///
/// # Errors
/// [`ReportError::Config`] for the first that was not.
pub fn check_alike(run: &Path, folders: &[PathBuf]) -> Result<(), ReportError> {
    let state = |folder: &PathBuf| Some((folder.clone(), DetectionState::load(folder)?));
    let states: Vec<_> = folders.iter().filter_map(state).collect();
    let read: Vec<_> = states.iter().map(|(f, s)| (f.as_path(), s)).collect();
    shared(&read, &records(run)?).map(drop)
}

/// What the processes ran with that worked on these folders.
pub(super) fn all_records(outs: &[PathBuf]) -> Result<Vec<RunRecord>, ReportError> {
    Ok(outs.iter().map(|out| records(out)).collect::<Result<Vec<_>, _>>()?.concat())
}

/// Writes the three files of a run into `out`: of all slides of its configuration there, those
/// of other processes included, and with the reasons of `outcomes` that could not be written there.
///
/// # Errors
/// [`ReportError`].
pub fn write(
    out: &Path,
    outcomes: &[DetectionOutcome],
    detector: &Detector,
    command: &[String],
) -> Result<RunFile, ReportError> {
    begin(out, detector, command)?;
    let _alone = alone(out)?;
    let outs = [out.to_owned()];
    let records = all_records(&outs)?;
    let mut found = slides(&outs, &records)?;
    for outcome in outcomes.iter().filter(|o| !o.is_elsewhere() && !o.is_stopped()) {
        let name = &outcome.input.name;
        match found.get_mut(name) {
            Some(there) => there.kept = outcome.kept,
            None => {
                let (folder, state) = (outcome.folder.clone(), outcome.state.clone());
                let line = SlideFolder::new(name.clone(), folder, state, outcome.kept);
                found.insert(name.clone(), line);
            }
        }
    }
    let run = Like::new(detector.config.settings(), &records);
    files(out, &outs, run, records, found)
}

/// Writes the files of the slides of one run.
fn files(
    into: &Path,
    outs: &[PathBuf],
    run: Like,
    mut records: Vec<RunRecord>,
    mut found: BTreeMap<String, SlideFolder>,
) -> Result<RunFile, ReportError> {
    // States of early versions record no settings; then any record is theirs.
    records.retain(|r| run.settings.is_empty() || run.has(&r.settings()));
    records.sort_by(|a, b| a.command.cmp(&b.command));
    records.dedup();
    if records.is_empty() {
        return Err(ReportError::NoRecord { outs: outs.to_vec() });
    }
    let mut listed: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (path, list) in lists(outs).map_err(ReportError::List)? {
        let begun = |name| found.get(name).is_some_and(|f| state::has_state(&f.folder));
        // Once all are begun, one whose folder is removed is not missing.
        if list.slides.iter().all(|s| s.columns.is_empty() && begun(&s.name)) {
            let _ = std::fs::remove_file(path);
        }
        // A command that names no columns takes none away.
        for slide in list.slides {
            let columns = listed.entry(slide.name).or_default();
            if columns.is_empty() {
                *columns = slide.columns;
            }
        }
    }
    for (name, slide) in &mut found {
        let columns = listed.remove(name).unwrap_or_default();
        if !slide.state.is_done() && slide.state.columns.is_empty() {
            slide.state.columns = columns;
        }
    }
    let (run, page) = loop {
        let (left_out, of_run): (Vec<&SlideFolder>, Vec<_>) =
            found.values().partition(|s| run.excludes(&s.state));
        let (under_way, shown): (Vec<_>, Vec<_>) =
            of_run.into_iter().partition(|s| s.state.status == Status::Running);
        let open = under_way.iter().chain(&left_out);
        let without_result: Vec<Unfinished> = (open.map(|s| (&s.name, &s.state.columns)))
            .chain(&listed)
            .map(|(name, columns)| Unfinished { name: name.clone(), columns: columns.clone() })
            .collect();
        let lines: Vec<SlideLine> = shown.iter().map(|s| SlideLine::new(s, into)).collect();
        let (cases, without_case) = cases_of(&lines, &without_result);
        let content = RunFile {
            unfinished: under_way.iter().map(|s| s.name.clone()).collect(),
            left_out: left_out.iter().map(|s| s.name.clone()).collect(),
            without_result,
            cases,
            without_case,
            ..RunFile::new(lines, &records)
        };
        match summary::render(&content, &shown, into, &records[0]) {
            Ok(page) => break (content, page),
            // A slide that a process has begun again meanwhile is under way, and no reason to write nothing.
            Err(e) => {
                let again = found.values_mut().map(SlideFolder::withdraw_if_begun_again);
                if again.fold(false, |any, again| any | again) {
                    continue;
                }
                // A picture or an outline that cannot be read is one slide's failure.
                let ReportError::Unsound(e) = e else { return Err(e) };
                let damaged = |s: &&mut SlideFolder| s.folder == e.folder && s.counts.is_some();
                let Some(slide) = found.values_mut().find(damaged) else { return Err(e.into()) };
                slide.state.reason = Some(plain(&e.to_string()).into_owned());
                (slide.state.status, slide.counts, slide.reviewed) = (Status::Failed, None, None);
            }
        }
    };
    // What a reviewer decided is for the owner alone, even where others may read the network's counts.
    let is_reviewed = run.slides.iter().any(|s| s.reviewed.is_some());
    let access = if is_reviewed { Access::Private } else { Access::Umask };
    let put = |name: &str, bytes: &[u8]| file::write_with(&into.join(name), bytes, access);
    put("counts.csv", &table::text(&run.slides))?;
    // A table of an earlier run is not one of this run.
    if !region_table::write(&into.join("regions.csv"), &run.slides)? {
        take_away(&into.join("regions.csv"), &region_table::COLUMNS)?;
    }
    match run.cases.is_empty() {
        true => take_away(&into.join("cases.csv"), &cases::COLUMNS)?,
        false => put("cases.csv", &cases::text(&run.cases))?,
    }
    put("run.json", &base::json::pretty(&run))?;
    put("summary.html", page.as_bytes())?;
    Ok(run)
}

/// Removes a table over an earlier run, which begins with these columns; a file of another form is somebody else's.
fn take_away(path: &Path, columns: &[&str]) -> Result<(), ReportError> {
    let fail = |source| file::WriteError { path: path.to_owned(), source };
    if !path.is_file() {
        return Ok(());
    }
    let text = file::read_whole(path).map_err(fail)?;
    // The later columns have changed between versions.
    let ours = columns[..5].join(",") + ",";
    if text.starts_with(ours.as_bytes()) {
        std::fs::remove_file(path).map_err(fail)?;
    }
    Ok(())
}

/// Holds the folder over the run while its files are made; another process does so for as long as it
/// takes to read its slides' counts.
pub(super) fn alone(out: &Path) -> Result<Lock, ReportError> {
    for _ in 0..6000 {
        match Lock::take(out) {
            Err(LockError::Busy { .. }) => std::thread::sleep(Duration::from_millis(100)),
            other => return Ok(other?),
        }
    }
    Ok(Lock::take(out)?)
}
