//! From the arguments of the command line to a list of slides, with their runs.

use super::content::ResultDigests;
use super::tiles::open_slide;
use base::remedy::{Remedied, Remedy};
use base::text::{Many, Shown, plain};
use mithras::batch::DetectionState;
use mithras::batch::{InputError, find, folders_to_begin, state};
use mithras::export::{Caveat, CountsFile};
use mithras::input::{InputDigest, stem};
use mithras::report::{
    ReportError, ResultsError, case_name, check_alike, counts, gathered_runs, is_bound,
};
use mitosis::Mpp;
use rayon::prelude::*;
use slide::{MppRule, OpenOptions, Slide, SlideError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum OpenError {
    /// An argument is neither a run nor a slide.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Nothing is there.
    #[error("{}: no such file or folder", Shown(path))]
    Missing { path: PathBuf },
    /// A folder of a run cannot be listed.
    #[error("{}: cannot be listed: {source}", Shown(path))]
    List {
        /// Folder that cannot be listed.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// No run.
    #[error("{}: no slide's results are in this folder{}", Shown(path), gathered_runs(path))]
    NoRun { path: PathBuf },
    /// A folder for files of an export that is a slide's own: slides called as its files would replace them.
    #[error(
        "{}: holds the results of a slide, which an export must not be mixed with; choose another folder",
        Shown(path)
    )]
    SlideFolder { path: PathBuf },
    /// Slides that were not made alike.
    #[error(transparent)]
    Mixed(#[from] ReportError),
    /// Nothing is left to show.
    #[error("there is no slide to show")]
    Nothing,
}

/// One slide of the list.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its name: that of its folder in the run, or the file name without its suffix.
    pub name: String,
    /// Its folder in a run.
    pub folder: Option<PathBuf>,
    /// Why its results cannot be used, where they are damaged or another slide's.
    pub unsound: Option<String>,
    /// Its count in that run; `None` where detection failed or never ran.
    pub counts: Option<CountsFile>,
    /// Its file, where it can be read.
    pub file: Option<PathBuf>,
    /// Why its file cannot be opened.
    pub unopened: Option<String>,
    /// Level-0 width and height, px; 0 without a file.
    pub size: (u64, u64),
    /// Its note in the list.
    pub note: String,
    /// What a reader of its counts must know.
    pub caveats: Vec<Caveat>,
    /// Its case, where the run's list names one.
    pub case: Option<String>,
    /// Folder of its review logs; none for a slide without a run, unless one was given.
    pub reviews: Option<PathBuf>,
    /// The files of its results as they were read; of files that cannot be read, empty.
    pub results: ResultDigests,
}

impl Item {
    /// Digest of its file, as the run has it; of a slide without a run, as it is now.
    #[must_use]
    pub fn digest(&self) -> String {
        match &self.counts {
            Some(c) => c.slide.digest.clone(),
            None => {
                let file = self.file.as_deref().map(InputDigest::from_file);
                file.and_then(Result::ok).map_or_else(String::new, |d| d.sha256)
            }
        }
    }
}

/// Everything to show.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// The slides, in the order of the arguments, those of a run by name.
    pub items: Vec<Item>,
    /// The folder in which slides of runs were looked for first.
    pub slides: Option<PathBuf>,
}

/// Opens runs (folders that `mithras detect` wrote), single folders of a run, and slides. A slide of a
/// run is looked for in `slides`, where given, and then where the run read it; a missing or
/// changed one has a note.
///
/// # Errors
/// [`OpenError`]: above all slides of a run that were done with different configurations.
pub fn open(
    arguments: &[PathBuf],
    slides: Option<&Path>,
    reviews: Option<&Path>,
) -> Result<Opened, OpenError> {
    let mut items = Vec::new();
    for argument in arguments {
        if !argument.exists() {
            return Err(OpenError::Missing { path: argument.clone() });
        }
        let folders = run_folders(argument)?;
        if folders.is_empty() {
            if !gathered_runs(argument).is_empty() {
                return Err(OpenError::NoRun { path: argument.clone() });
            }
            let found = find(std::slice::from_ref(argument), None, &BTreeMap::new())?;
            items.extend(found.slides.iter().map(|i| bare(&i.path, reviews)));
        } else {
            check_alike(argument, &folders)?;
            let of_run: Vec<Item> =
                folders.par_iter().map(|f| of_run(f, slides, reviews)).collect();
            items.extend(of_run);
        }
    }
    if items.is_empty() {
        return Err(OpenError::Nothing);
    }
    Ok(Opened { items, slides: slides.map(Path::to_owned) })
}

/// The slides' folders of a run, by name; empty if the argument is not a run.
///
/// # Errors
/// [`OpenError::List`].
pub fn run_folders(argument: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let is_slide = |p: &Path| is_counted(p) || state::has_state(p);
    if !argument.is_dir() {
        return Ok(Vec::new());
    }
    if is_slide(argument) {
        return Ok(vec![argument.to_owned()]);
    }
    let mut folders = base::walk::entries(argument)
        .map_err(|e| OpenError::List { path: e.path, source: e.source })?;
    folders.retain(|p| p.is_dir() && is_slide(p));
    Ok(folders)
}

/// Whether a folder has a `counts.json`, of whatever kind: one that is a folder or a pipe is a result that cannot be
/// read, not a slide that was never counted.
pub(crate) fn is_counted(folder: &Path) -> bool {
    folder.join("counts.json").symlink_metadata().is_ok()
}

/// Those of them that hold a count, or are finished and so have lost it; and the others.
///
/// # Errors
/// [`OpenError::NoRun`] where none does.
pub(super) fn counted_folders(run: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), OpenError> {
    let is_done = |f: &Path| DetectionState::load(f).is_some_and(|s| s.is_done());
    let (counted, others): (Vec<_>, Vec<_>) =
        alike_folders(run)?.into_iter().partition(|f| is_counted(f) || is_done(f));
    match counted.is_empty() {
        true => Err(OpenError::NoRun { path: run.to_owned() }),
        false => Ok((counted, others)),
    }
}

/// The slides' folders of a run, those without a count and those that nobody has begun included.
///
/// # Errors
/// [`OpenError::NoRun`] without any.
pub(super) fn every_folder(run: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let folders = alike_folders(run)?;
    if folders.is_empty() {
        return Err(OpenError::NoRun { path: run.to_owned() });
    }
    let open = folders_to_begin(run).map_err(ReportError::List)?;
    let all: BTreeSet<PathBuf> = folders.into_iter().chain(open).collect();
    Ok(all.into_iter().collect())
}

/// Checks that no slide's results are in a folder that an export writes into.
///
/// # Errors
/// [`OpenError::SlideFolder`].
pub(super) fn check_free(out: &Path) -> Result<(), OpenError> {
    match is_counted(out) || state::has_state(out) {
        true => Err(OpenError::SlideFolder { path: out.to_owned() }),
        false => Ok(()),
    }
}

/// The slides' folders of a run, of which one thing is to be made: they were made alike.
fn alike_folders(run: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let folders = run_folders(run)?;
    check_alike(run, &folders)?;
    Ok(folders)
}

/// The slides of one run, to make one thing of them all.
///
/// # Errors
/// [`OpenError`].
pub(crate) fn open_run(run: &Path, slides: Option<&Path>) -> Result<Vec<Item>, OpenError> {
    Ok(open(&[run.to_owned()], slides, None)?.items)
}

/// The run that a slide's folder belongs to.
pub(super) fn run_folder(folder: &Path) -> PathBuf {
    let parent = folder.parent().filter(|p| !p.as_os_str().is_empty());
    match parent {
        Some(p) => p.to_owned(),
        None => folder.join(".."),
    }
}

fn bare(file: &Path, reviews: Option<&Path>) -> Item {
    let mut item = Item {
        name: stem(file),
        folder: None,
        unsound: None,
        counts: None,
        file: Some(file.to_owned()),
        unopened: None,
        size: (0, 0),
        note: "no run".into(),
        caveats: Vec::new(),
        case: None,
        reviews: reviews.map(Path::to_owned),
        results: ResultDigests::default(),
    };
    look(&mut item);
    item
}

/// Where the reviews of a run are written unless somebody names a folder: in the run, wherever that is, and not where a
/// link in it leads.
fn own_reviews(folder: &Path) -> Option<PathBuf> {
    Some(run_folder(folder).join("reviews")).filter(|p| !p.is_symlink())
}

fn of_run(folder: &Path, slides: Option<&Path>, reviews: Option<&Path>) -> Item {
    // Before they are read: what changes meanwhile differs later.
    let results = ResultDigests::read(Some(folder)).unwrap_or_default();
    let unsound = |reason: String| ResultsError::new(folder, reason);
    let read = DetectionState::read(folder);
    let checked = match &read {
        // A slide that failed may have files of results all the same.
        Ok(Some(state)) => match state.undone().filter(|_| is_counted(folder)) {
            Some(reason) => Err(unsound(reason)),
            None => state.check(folder, is_bound).map_err(|e| ResultsError::because(folder, &e)),
        },
        Ok(None) => Ok(()),
        Err(e) => Err(ResultsError::with_state(folder, e)),
    };
    let counts = checked.map_err(ReportError::from).and_then(|()| counts(folder));
    let state = read.ok().flatten();
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
    let failed = || {
        let reason = state.as_ref().and_then(|s| s.reason.clone());
        reason.unwrap_or_else(|| "detection has not ended".into())
    };
    let note = match &counts {
        Ok(c) if !c.has_tissue => "no tissue found".into(),
        Ok(c) => format!("{}, hotspot {}", Many(c.figures, "figure"), c.hotspot_count),
        Err(ReportError::Read { reason, .. }) if folder.join("counts.json").exists() => {
            format!("counts.json: {reason}")
        }
        Err(ReportError::Unsound(e)) => plain(&e.reason).into_owned(),
        Err(_) => format!("no result: {}", failed()),
    };
    let unsound = match &counts {
        Err(ReportError::Unsound(e)) => Some(e.to_string()),
        _ => None,
    };
    let mut item = Item {
        name,
        folder: Some(folder.to_owned()),
        unsound,
        caveats: counts.as_ref().map(CountsFile::caveats).unwrap_or_default(),
        case: state.as_ref().and_then(|s| case_name(&s.columns)).map(str::to_owned),
        counts: counts.ok(),
        file: None,
        unopened: None,
        size: (0, 0),
        note,
        reviews: reviews.map(Path::to_owned).or_else(|| own_reviews(folder)),
        results,
    };
    let recorded = state.as_ref().map(|s| PathBuf::from(&s.input.path));
    let file_name = item
        .counts
        .as_ref()
        .map(|c| PathBuf::from(&c.slide.file))
        .or_else(|| recorded.as_ref().and_then(|p| p.file_name()).map(PathBuf::from));
    let given = slides.zip(file_name.as_deref().and_then(Path::file_name)).map(|(d, f)| d.join(f));
    let places: Vec<PathBuf> = given.into_iter().chain(recorded).collect();
    let Some(file) = places.iter().find(|p| p.is_file() || remote::Address::is(p)) else {
        let place = places.first().map_or_else(String::new, |p| Shown(p).to_string());
        return without_file(item, format!("its file is not at {place}"));
    };
    let same = match (&state, &item.counts) {
        (Some(s), _) if unread_same(file, &s.input) => true,
        (s, Some(c)) => InputDigest::from_file(file).is_ok_and(|d| {
            d.sha256 == c.slide.digest && s.as_ref().is_none_or(|s| d.same_slide(&s.input))
        }),
        // Nothing was found on it, so that nothing can be out of place.
        (_, None) => true,
    };
    if !same {
        let reason = format!("its file {} is not the one of the run", Shown(file));
        return without_file(item, reason);
    }
    item.file = Some(file.clone());
    match &item.counts {
        Some(c) => item.size = (c.slide.width, c.slide.height),
        None => look(&mut item),
    }
    item
}

fn without_file(mut item: Item, reason: String) -> Item {
    item.note += &format!("; {reason}");
    item.unopened = Some(reason);
    item
}

/// Whether size and time of change are those that the run saw: then the content need not be read. Those of the slide's
/// other files are not known.
fn unread_same(file: &Path, seen: &InputDigest) -> bool {
    let Ok(about) = std::fs::metadata(file) else { return false };
    let modified = about.modified().ok();
    let seconds = modified.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    let seconds = seconds.map_or(0, |d| d.as_secs());
    let alone = !seen.sha256.is_empty() && seen.series_sha256.is_none();
    alone && (about.len(), seconds) == (seen.size, seen.modified)
}

/// Opens the file for its size.
fn look(item: &mut Item) {
    let Some(file) = &item.file else { return };
    match open_slide(file) {
        Ok(slide) => item.size = slide.dimensions(),
        Err(e) => {
            item.note = plain(&e.to_string()).into_owned();
            item.unopened = Some(item.note.clone());
            item.file = None;
        }
    }
}

/// The slide at the resolution that the run has for it.
///
/// # Errors
/// [`SlideError`].
pub fn opened(file: &Path, counts: &CountsFile) -> Result<Slide, SlideError> {
    let slide = Slide::open_with(file, &OpenOptions::default())?;
    let run = &counts.resolution;
    if slide.resolution().is_ok_and(|r| (r.x.get(), r.y.get()) == (run.x, run.y)) {
        return Ok(slide);
    }
    // Given to the run, where the file states none or another one.
    let (mpp, mpp_rule) = (Mpp::new(run.x).ok(), MppRule::Force);
    Slide::open_with(file, &OpenOptions { mpp, mpp_rule, ..OpenOptions::default() })
}

/// The patient, where the run's list had such a column.
pub(crate) fn patient(folder: &Path) -> Option<String> {
    let columns = DetectionState::load(folder)?.columns;
    let found = columns.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("patient"))?;
    Some(found.1).filter(|p| !p.is_empty())
}

impl Remedied for OpenError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Input(e) => e.remedy(),
            _ => None,
        }
    }
}
