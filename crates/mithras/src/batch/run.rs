//! The loop over slides.

use super::state::{State, Status, alike, differ_in_one, raised};
use crate::file::{Lock, LockError, WriteError};
use crate::input::{Input, InputDigest, Stamp};
use crate::progress::{Event, Listener, Piece, Shared, SlidePace, SlideStatus};
use base::remedy::{Remedied, Remedy};
use base::sealed::Sealed;
use base::text::{Many, Shown, plain};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What to do about results that are already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// An error where there are results.
    Refuse,
    /// Keep finished slides, continue interrupted ones, try failed ones again.
    Resume,
    /// Process every slide again.
    Overwrite,
}

impl Existing {
    /// By two wishes that exclude each other.
    #[must_use]
    pub fn from_flags(resume: bool, overwrite: bool) -> Self {
        match (resume, overwrite) {
            (true, _) => Self::Resume,
            (_, true) => Self::Overwrite,
            _ => Self::Refuse,
        }
    }
}

/// Where results are written, and what happens to those that are there.
#[derive(Clone, Copy, Debug)]
pub struct OutFolder<'a> {
    /// Has one folder per slide; made if missing.
    pub path: &'a Path,
    /// What happens to results that are there.
    pub existing: Existing,
}

/// What decides whether stored results are of the very work that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Digest of everything that changes a number on this slide.
    pub digest: String,
    /// The settings behind the digest, by name: errors name those that differ.
    pub settings: BTreeMap<String, String>,
    /// The digests that the same work had by the version of the numbers before.
    pub former: Vec<String>,
    /// The one setting in which stored results may differ and be kept all the same.
    pub may_differ: Option<&'static str>,
}

impl Key {
    /// Whether stored results are of this work, or differ from it in what they may.
    #[must_use]
    pub fn fits<W>(&self, stored: &State<W>) -> bool {
        let differ = |name| differ_in_one(&stored.settings, &self.settings, name);
        let same = || !self.settings.is_empty() && alike(&stored.settings, &self.settings);
        stored.config == self.digest || same() || self.may_differ.is_some_and(differ)
    }

    /// Whether stored results are of this work by the version of the numbers before: [`Task::outdated`] decides
    /// whether they are kept.
    #[must_use]
    pub fn is_former<W>(&self, stored: &State<W>) -> bool {
        let same = |raised: &BTreeMap<String, String>| {
            let differ = |name| differ_in_one(raised, &self.settings, name);
            alike(raised, &self.settings) || self.may_differ.is_some_and(differ)
        };
        self.former.contains(&stored.config) || raised(&stored.settings).as_ref().is_some_and(same)
    }
}

/// One kind of work on slides. Each worker has its own.
pub trait Task: Send {
    /// What it adds to a slide's state.
    type Work: Default + Clone + Serialize + DeserializeOwned + Send;
    /// Why a slide fails.
    type Error: std::error::Error + Send + Sync + 'static;

    /// What the results of a slide depend on.
    fn key(&self, input: &Input) -> Key;

    /// Whether finished results are still good, and the slide need not be done again.
    fn keeps(&self, input: &Input, folder: &Path, state: &State<Self::Work>) -> bool;

    /// Why finished results of the version of the numbers before ([`Key::is_former`]) may be other than those
    /// of this one; none where they are the same and are kept.
    fn outdated(&self, input: &Input, folder: &Path, state: &State<Self::Work>) -> Option<String> {
        let _ = (input, folder, state);
        Some("this version may give other numbers".into())
    }

    /// Does one slide into its folder, which exists. It may contain results of an interrupted run.
    ///
    /// # Errors
    /// The slide fails; the others continue.
    fn work(
        &mut self,
        input: &Input,
        folder: &Path,
        state: &mut State<Self::Work>,
        piece: &mut Piece<'_>,
    ) -> Result<Status, Self::Error>;

    /// The files that it writes into a slide's folder and that make up its results.
    fn files(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Removes everything that this work writes into a slide's folder, and nothing else.
    ///
    /// # Errors
    /// The file that would not go, and why.
    fn clear(&self, folder: &Path) -> Result<(), (PathBuf, std::io::Error)>;

    /// Takes back results outside the slide's folder, which no state guards, where the slide cannot be read at its end.
    fn withdraw(&self, folder: &Path) {
        let _ = folder;
    }

    /// Removes what is of no use once the slide is finished.
    fn tidy(&self, folder: &Path) {
        let _ = folder;
    }

    /// Whether the work is to end now: the current slide stays interrupted, no other is begun.
    fn stopped(&self) -> bool {
        false
    }

    /// What a piece of this work is counted in.
    fn unit(&self) -> &'static str;

    /// What came of a slide, in one line.
    fn line(&self, name: &str, state: &State<Self::Work>) -> String;
}

/// How one slide ended.
#[derive(Debug)]
pub struct Outcome<W, E: std::error::Error + 'static> {
    /// The slide, with what was given for it.
    pub input: Input,
    /// Folder with its results.
    pub folder: PathBuf,
    /// Its final state, with the reason if it failed.
    pub state: State<W>,
    /// Finished by an earlier run and kept.
    pub kept: bool,
    /// Why finished results of an earlier version of the numbers were not kept.
    pub outdated: Option<String>,
    /// The typed error where it failed.
    pub failure: Option<Failure<E>>,
}

/// How one slide of a [`Task`] ended.
pub type Ended<T> = Outcome<<T as Task>::Work, <T as Task>::Error>;

impl<W, E: std::error::Error + 'static> Outcome<W, E> {
    /// Finished by an earlier run.
    fn kept(input: Input, folder: PathBuf, state: State<W>) -> Self {
        Self { input, folder, state, kept: true, outdated: None, failure: None }
    }

    /// Whether all its files are written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state.is_done()
    }

    /// Whether another live process is at work on it; it is that one's to report.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.failure, Some(Failure::Lock(LockError::Busy { .. })))
    }

    /// Whether it took the time that a slide takes.
    fn is_work(&self) -> bool {
        !self.kept && self.failure.is_none()
    }

    /// For scripts, with how far all slides are now.
    fn ended(&self, far: &SlidePace) -> Event<'_> {
        let round = |v: f64, n: f64| (v * n).round() / n;
        Event::SlideEnded {
            slide: &self.input.name,
            status: self.status(),
            reason: self.state.reason.as_deref(),
            seconds: round(self.state.seconds, 1e3),
            done: far.past,
            total: far.total,
            rate: far.rate().map(|r| round(r, 1e6)),
            eta_seconds: far.left().map(|s| round(s, 1e3)),
        }
    }

    /// In one word.
    fn status(&self) -> SlideStatus {
        match self.state.status {
            _ if self.is_stopped() => SlideStatus::Interrupted,
            _ if self.is_elsewhere() => SlideStatus::Elsewhere,
            _ if self.kept => SlideStatus::Kept,
            Status::Finished => SlideStatus::Finished,
            Status::NoTissue => SlideStatus::NoTissue,
            Status::Failed | Status::Running => SlideStatus::Failed,
        }
    }

    /// Whether the work was to end before it, or during it.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.failure, Some(Failure::Stopped))
    }
}

/// Why one slide failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum Failure<E: std::error::Error + 'static> {
    /// The file was written to while it was read.
    #[error(
        "{}: {what} changed while it was read, so the results would be of two files; run it again \
         once nothing writes to it",
        Shown(path)
    )]
    Changed {
        /// Path of the slide.
        path: PathBuf,
        /// What is another than before.
        what: &'static str,
    },
    /// A file or folder cannot be read, made or removed.
    #[error("{}: {source}", Shown(path))]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Another process is at work on it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Another process finished it since this work began, otherwise than this one would have.
    #[error(
        "{}: another process has done this slide with another configuration meanwhile; choose \
         another folder for one of them",
        Shown(path)
    )]
    Otherwise { path: PathBuf },
    /// The work was to end.
    #[error("interrupted")]
    Stopped,
    /// Its state cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The work, or the check before it, failed.
    #[error(transparent)]
    Work(E),
}

/// A slide, and whether it may be worked on.
#[derive(Debug)]
pub struct Checked<E> {
    /// The slide, with what was given for it.
    pub input: Input,
    /// Why it may not.
    pub check: Result<(), E>,
}

/// Does every slide into `out/NAME`, each worker one at a time; a failing slide stops no other. An
/// input with a reason is not worked on: it fails by that reason. A slide that another live process is
/// at work on is passed over, and one that another finished meanwhile is kept. Gives every slide's
/// outcome, in the order of the inputs, also of those that were not begun before the work was to end.
///
/// # Panics
/// Without a worker, or where one panics.
pub fn run<T: Task>(
    inputs: Vec<Checked<T::Error>>,
    workers: &mut [T],
    out: &Path,
    existing: Existing,
    listener: &mut dyn Listener,
) -> Vec<Ended<T>> {
    assert!(!workers.is_empty(), "a worker for the slides");
    let total = inputs.len();
    listener.event(&Event::Slides { total, workers: workers.len() });
    let queue: Mutex<VecDeque<_>> = Mutex::new(inputs.into_iter().enumerate().collect());
    let done: Mutex<Vec<Option<Ended<T>>>> = Mutex::new((0..total).map(|_| None).collect());
    let shared = Shared::new(listener);
    let pace = Mutex::new(SlidePace::new(total));
    std::thread::scope(|scope| {
        for task in workers {
            let (queue, done, pace) = (&queue, &done, &pace);
            let mut listener = shared.clone();
            scope.spawn(move || {
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                while let Some((k, Checked { input, check })) = next() {
                    let label = match total {
                        1 => input.name.clone(),
                        _ => format!("[{}/{total}] {}", k + 1, input.name),
                    };
                    if task.stopped() {
                        let folder = out.join(&input.name);
                        let outcome = fails(&task.key(&input), input, folder, Failure::Stopped);
                        let far = *pace.lock().unwrap_or_else(PoisonError::into_inner);
                        listener.event(&outcome.ended(&far));
                        done.lock().unwrap_or_else(PoisonError::into_inner)[k] = Some(outcome);
                        continue;
                    }
                    listener.event(&Event::SlideBegun { slide: &input.name });
                    let outcome = process_slide(
                        task,
                        Checked { input, check },
                        out,
                        existing,
                        Labelled { label: &label, listener: &mut listener },
                    );
                    let far =
                        pace.lock().unwrap_or_else(PoisonError::into_inner).next(outcome.is_work());
                    listener.event(&outcome.ended(&far));
                    let name = plain(&outcome.input.name);
                    if outcome.is_stopped() {
                        listener.report(&format!("{name}: interrupted"));
                    } else if outcome.is_elsewhere() {
                        listener.report(&format!("{name}: another process is at work on it"));
                    } else if !outcome.kept {
                        let line = task.line(&outcome.input.name, &outcome.state);
                        listener.report(&plain(&(line + &far.suffix())));
                    }
                    done.lock().unwrap_or_else(PoisonError::into_inner)[k] = Some(outcome);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let done: Vec<Ended<T>> =
        done.into_iter().map(|o| o.expect("every slide was taken from the queue")).collect();
    if let Some(note) = outdated_note(done.iter().filter_map(|o| o.outdated.as_deref())) {
        shared.note(&plain(&note));
    }
    done
}

/// Reasons that a note names.
const REASONS: usize = 3;

/// How many slides of an earlier version of the numbers were done again, and why, in one line.
fn outdated_note<'a>(all: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    all.for_each(|why| *reasons.entry(why).or_default() += 1);
    let total: usize = reasons.values().sum();
    let mut named: Vec<(&str, usize)> = reasons.into_iter().collect();
    named.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let more = named.iter().skip(REASONS).map(|(_, n)| n).sum::<usize>();
    let listed = named.iter().take(REASONS).map(|(why, n)| format!("{n}: {why}"));
    let rest = (more > 0).then(|| format!("{more}: other reasons"));
    let listed: Vec<String> = listed.chain(rest).collect();
    let slides = Many(total, "slide");
    (total > 0).then(|| {
        format!("{slides} of an earlier version of the numbers done again ({})", listed.join("; "))
    })
}

/// Where the progress of one slide goes, and what its bar is called.
struct Labelled<'a> {
    label: &'a str,
    listener: &'a mut dyn Listener,
}

fn process_slide<T: Task>(
    task: &mut T,
    Checked { input, check: checked }: Checked<T::Error>,
    out: &Path,
    existing: Existing,
    progress: Labelled<'_>,
) -> Ended<T> {
    let folder = out.join(&input.name);
    let key = task.key(&input);
    let (mut damage, mut outdated) = (None, None);
    let mut kept = |task: &T| match stored(task, &input, &folder) {
        Ok(state) => state,
        Err(why) => {
            damage = Some(why);
            None
        }
    };
    let refused = checked.as_ref().err().map(ToString::to_string);
    let note = |seen: &Seen, listener: &mut dyn Listener| {
        if let Some(note) = seen.note(refused.as_deref()) {
            listener.note(&plain(&format!("{}: {note}", input.name)));
        }
    };
    let mut stored = if existing == Existing::Resume { kept(task) } else { None };
    // Cells of a later list, and where the slide is now, are written under the lock.
    let same = |s: &State<_>| input.columns.is_empty() || s.columns == input.columns;
    let alike = |s: &State<_>, seen: &Seen| key.fits(s) && same(s) && seen.is_unchanged(&s.input);
    if let Some(Stored { state, seen }) = stored.take_if(|s| alike(&s.state, &s.seen)) {
        note(&seen, progress.listener);
        base::file::remove_leftovers(&folder);
        task.tidy(&folder);
        return Outcome::kept(input, folder, state);
    }
    let (held, busy) = match Lock::take(&folder) {
        Ok(lock) => (Some(lock), None),
        Err(busy) => (None, Some(busy)),
    };
    // Another process may have finished it before the lock was had.
    if existing != Existing::Overwrite && busy.is_none() {
        stored = kept(task);
    }
    let former = |s: &State<_>| !key.fits(s) && key.is_former(s);
    if let Some(Stored { state, .. }) = stored.as_ref().filter(|s| former(&s.state))
        && let Some(why) = task.outdated(&input, &folder, state)
    {
        damage = Some(format!("its numbers are of an earlier version ({why})"));
        outdated = Some(why);
        stored = None;
    }
    // Whatever is in the place of a damaged file is not written over.
    let begin = if damage.is_some() { Existing::Overwrite } else { existing };
    if let Some(damage) = damage.take_if(|_| busy.is_none() && existing != Existing::Overwrite) {
        progress.listener.report(&format!("{}: {damage}; it is done again", plain(&input.name)));
    }
    let result = match (checked, busy, stored) {
        (Err(reason), Some(_), _) | (Err(reason), _, None) => Err(Failure::Work(reason)),
        (_, Some(busy), _) => Err(busy.into()),
        (_, _, Some(Stored { state, seen })) => {
            note(&seen, progress.listener);
            match reuse(state, seen, &key, &input, &folder) {
                Ok(state) => {
                    task.tidy(&folder);
                    return Outcome::kept(input, folder, state);
                }
                Err(failure) => Err(failure),
            }
        }
        _ => finish(task, &input, &key, &folder, begin, progress),
    };
    let failure = match result {
        Ok(state) => return Outcome { input, folder, state, kept: false, outdated, failure: None },
        Err(Failure::Work(_)) if task.stopped() => Failure::Stopped,
        Err(failure) => failure,
    };
    // An interrupted slide stays so, and what another process did or does is its own. Results that are done stay, too,
    // where their slide cannot be read now.
    let done = || State::<T::Work>::load(&folder).is_some_and(|s| s.is_done());
    let theirs = matches!(failure, Failure::Stopped | Failure::Otherwise { .. })
        || existing != Existing::Overwrite && done();
    let outcome = fails(&key, input, folder, failure);
    // The failure itself is reported anyway; a full disk must not hide it.
    if held.is_some() && !theirs {
        let _ = outcome.state.save(&outcome.folder);
    }
    outcome
}

/// Results that are there, with how their slide's file is now.
struct Stored<W> {
    state: State<W>,
    seen: Seen,
}

/// The results of a slide that are there and good, with how its file is now; none without any, and a reason for those
/// that must be made again.
fn stored<T: Task>(
    task: &T,
    input: &Input,
    folder: &Path,
) -> Result<Option<Stored<T::Work>>, String> {
    let state = State::read(folder).map_err(|e| e.cause())?;
    let Some(state) = state.filter(State::is_done) else { return Ok(None) };
    state.check(folder, |_| true).map_err(|e| e.to_string())?;
    let seen = Seen::look(input, &state.input);
    if matches!(seen, Seen::Other) {
        return Err("its slide has changed since".into());
    }
    Ok(task.keeps(input, folder, &state).then_some(Stored { state, seen }))
}

/// The file of a slide that is done, as it is now.
enum Seen {
    /// The one that was read, with its present path and time of change.
    Same { now: InputDigest, touched: bool },
    /// Another one.
    Other,
    /// It cannot be read, for this reason.
    Not(String),
}

impl Seen {
    fn look(input: &Input, before: &InputDigest) -> Self {
        match InputDigest::from_file(&input.path) {
            Err(e) => Self::Not(e.to_string()),
            Ok(now) if !now.same_slide(before) => Self::Other,
            Ok(now) => {
                Self::Same { touched: now.modified != before.modified, now: before.updated(now) }
            }
        }
    }

    /// Whether the state of the slide needs no change.
    fn is_unchanged(&self, before: &InputDigest) -> bool {
        !matches!(self, Self::Same { now, .. } if now != before)
    }

    /// What is to be known of results that are kept; `refused` is why the slide cannot be used now.
    fn note(&self, refused: Option<&str>) -> Option<String> {
        let why = match self {
            Self::Not(why) => refused.unwrap_or(why),
            Self::Same { touched: true, .. } => {
                return Some(
                    "kept: the time of change of its slide differs, the content does not".into(),
                );
            }
            _ => refused?,
        };
        Some(format!("kept, but its slide could not be checked ({why})"))
    }
}

/// The outcome of a slide that is not done.
fn fails<W, E>(key: &Key, input: Input, folder: PathBuf, failure: Failure<E>) -> Outcome<W, E>
where
    W: Default + Serialize + DeserializeOwned,
    E: std::error::Error + 'static,
{
    let stopped = matches!(failure, Failure::Stopped);
    let unseen = || InputDigest::unseen(input.path.display().to_string());
    // Thousands that were not begun are not read now.
    let digest = if stopped { None } else { InputDigest::from_file(&input.path).ok() };
    let mut state = State::running(&key.digest, digest.unwrap_or_else(unseen));
    state.settings.clone_from(&key.settings);
    state.columns.clone_from(&input.columns);
    if !stopped {
        state.status = Status::Failed;
    }
    state.reason = Some(failure.to_string());
    Outcome { input, folder, state, kept: false, outdated: None, failure: Some(failure) }
}

/// Makes results of the version of the numbers before those of this one, which are the same.
fn raise<W>(state: &mut State<W>, key: &Key) {
    if let Some(raised) = raised(&state.settings) {
        state.settings = raised;
    }
    // Of another engine that is accepted, the settings decide.
    if state.settings == key.settings {
        state.config.clone_from(&key.digest);
    }
}

/// Keeps what is done, with the cells of the current list and the place of the slide. The caller holds the folder.
fn reuse<W, E>(
    mut state: State<W>,
    seen: Seen,
    key: &Key,
    input: &Input,
    folder: &Path,
) -> Result<State<W>, Failure<E>>
where
    W: Default + Serialize + DeserializeOwned,
    E: std::error::Error + 'static,
{
    let former = !key.fits(&state) && key.is_former(&state);
    if former {
        raise(&mut state, key);
    }
    if !key.fits(&state) {
        return Err(Failure::Otherwise { path: folder.to_owned() });
    }
    let listed = !input.columns.is_empty() && state.columns != input.columns;
    if listed {
        state.columns.clone_from(&input.columns);
    }
    let moved = !seen.is_unchanged(&state.input);
    if let Seen::Same { now, .. } = seen {
        state.input = now;
    }
    if former || listed || moved {
        state.save(folder)?;
    }
    Ok(state)
}

/// Does one slide and leaves its final state in its folder.
fn finish<T: Task>(
    task: &mut T,
    input: &Input,
    key: &Key,
    folder: &Path,
    existing: Existing,
    Labelled { label, listener }: Labelled<'_>,
) -> Result<State<T::Work>, Failure<T::Error>> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| Failure::Io { path, source }
    };
    let clear =
        |task: &T| task.clear(folder).map_err(|(path, source)| Failure::Io { path, source });
    let start = Instant::now();
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    let before = Stamp::from_file(&input.path).map_err(io(&input.path))?;
    let mut state = State::running(&key.digest, before.digest().clone());
    state.settings.clone_from(&key.settings);
    state.columns.clone_from(&input.columns);
    let begun = State::<T::Work>::load(folder).map(|s| s.input);
    let other = |b: &InputDigest| b.modified != state.input.modified || !b.same_slide(&state.input);
    let other = begun.is_some_and(|b| !b.sha256.is_empty() && other(&b));
    // An empty folder in its place would stop it from being written.
    let _ = std::fs::remove_dir(folder.join(super::state::FILE));
    // Before anything is removed: nobody shall take a slide for finished whose files are gone.
    state.save(folder)?;
    if existing == Existing::Overwrite || other {
        clear(task)?;
        state.save(folder)?;
    }
    let mut piece = Piece::begin(listener, label, &input.name, task.unit());
    let worked = task.work(input, folder, &mut state, &mut piece);
    piece.finish();
    let status = worked.map_err(Failure::Work)?;
    let sealed = Sealed::new(folder, &input.name, &task.files());
    state.results = Some(sealed.map_err(|e| Failure::Io { path: e.path, source: e.source })?);
    let now = Stamp::from_file(&input.path).inspect_err(|_| task.withdraw(folder));
    let now = now.map_err(io(&input.path))?;
    if let Some(what) = before.differs(&now) {
        // Nothing of this may stay, a stored state least of all.
        clear(task)?;
        return Err(Failure::Changed { path: input.path.clone(), what });
    }
    state.status = status;
    state.seconds = start.elapsed().as_secs_f64();
    state.save(folder)?;
    task.tidy(folder);
    Ok(state)
}

impl<E: Remedied> Remedied for Failure<E> {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Work(e) => e.remedy(),
            Self::Stopped => Some(Remedy::Continue),
            _ => None,
        }
    }
}
