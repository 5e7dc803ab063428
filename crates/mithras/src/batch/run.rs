//! The loop over slides.

use super::state::{State, Status};
use crate::file::{Lock, LockError, WriteError};
use crate::input::{Input, InputDigest, Stamp};
use crate::progress::Listener;
use mitosis::text::{Shown, plain};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What to do about results that are already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse.
    Refuse,
    /// Keep finished slides, go on with interrupted ones, try failed ones again.
    Resume,
    /// Do every slide anew.
    Overwrite,
}

/// What decides whether stored results are of the very work that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Digest of everything that changes a number on this slide.
    pub digest: String,
    /// What it is made of, by name, so that a difference can be told.
    pub settings: BTreeMap<String, String>,
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

    /// Does one slide into its folder, which exists. Results of an interrupted run may lie there.
    ///
    /// # Errors
    /// The slide fails; the others go on.
    fn work(
        &mut self,
        input: &Input,
        folder: &Path,
        state: &mut State<Self::Work>,
        listener: &mut dyn Listener,
    ) -> Result<Status, Self::Error>;

    /// Removes everything that this work writes into a slide's folder, and nothing else.
    ///
    /// # Errors
    /// The file that would not go, and why.
    fn clear(&self, folder: &Path) -> Result<(), (PathBuf, std::io::Error)>;

    /// Removes what is of no use once the slide is finished.
    fn tidy(&self, folder: &Path) {
        let _ = folder;
    }

    /// What a piece of this work is counted in.
    fn unit(&self) -> &'static str;

    /// What came of a slide, in one line.
    fn line(&self, name: &str, state: &State<Self::Work>) -> String;
}

/// How one slide ended.
#[derive(Debug)]
pub struct Outcome<W, E: std::error::Error + 'static> {
    /// The slide.
    pub input: Input,
    /// Its folder.
    pub folder: PathBuf,
    /// Its final state, with the reason if it failed.
    pub state: State<W>,
    /// Finished by an earlier run and kept.
    pub kept: bool,
    /// Why it failed.
    pub failure: Option<Failure<E>>,
}

/// How one slide of a [`Task`] ended.
pub type Ended<T> = Outcome<<T as Task>::Work, <T as Task>::Error>;

impl<W, E: std::error::Error + 'static> Outcome<W, E> {
    /// Whether all its files are written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state.status, Status::Finished | Status::NoTissue)
    }
}

/// Why one slide failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure<E: std::error::Error + 'static> {
    /// The file was written to while it was read.
    #[error(
        "{}: {what} changed while it was read, so the results would be of two files; copy it whole \
         first, then run it again",
        Shown(path)
    )]
    Changed {
        /// The slide.
        path: PathBuf,
        /// What is another than before.
        what: &'static str,
    },
    /// A file or folder cannot be read, made or removed.
    #[error("{}: {source}", Shown(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Another process is at work on it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Its state cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The work, or the check before it, failed.
    #[error(transparent)]
    Work(E),
}

/// Does every slide into `out/NAME`, each worker one at a time; a failing slide stops no other. An
/// input with a reason is not worked on: it fails by that reason.
///
/// # Panics
/// Without a worker, or where one panics.
pub fn run<T: Task>(
    inputs: Vec<(Input, Result<(), T::Error>)>,
    workers: &mut [T],
    out: &Path,
    existing: Existing,
    listener: &mut dyn Listener,
) -> Vec<Ended<T>> {
    assert!(!workers.is_empty(), "a worker for the slides");
    let total = inputs.len();
    let queue: Mutex<VecDeque<_>> = Mutex::new(inputs.into_iter().enumerate().collect());
    let done: Mutex<Vec<Option<Ended<T>>>> = Mutex::new((0..total).map(|_| None).collect());
    let shared = Mutex::new(listener);
    std::thread::scope(|scope| {
        for task in workers {
            let (queue, done, shared) = (&queue, &done, &shared);
            scope.spawn(move || {
                let mut listener = Shared(shared);
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                while let Some((k, (input, checked))) = next() {
                    let label = match total {
                        1 => input.name.clone(),
                        _ => format!("[{}/{total}] {}", k + 1, input.name),
                    };
                    let outcome = one(task, input, checked, out, existing, (&label, &mut listener));
                    if !outcome.kept {
                        listener.say(&plain(&task.line(&outcome.input.name, &outcome.state)));
                    }
                    done.lock().unwrap_or_else(PoisonError::into_inner)[k] = Some(outcome);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_iter().map(|o| o.expect("every slide was taken from the queue")).collect()
}

fn one<T: Task>(
    task: &mut T,
    input: Input,
    checked: Result<(), T::Error>,
    out: &Path,
    existing: Existing,
    listener: (&str, &mut dyn Listener),
) -> Ended<T> {
    let folder = out.join(&input.name);
    let key = task.key(&input);
    if existing == Existing::Resume
        && checked.is_ok()
        && let Some(state) = State::load(&folder)
        && matches!(state.status, Status::Finished | Status::NoTissue)
        && task.keeps(&input, &folder, &state)
    {
        return Outcome { input, folder, state, kept: true, failure: None };
    }
    let (held, busy) = match Lock::take(&folder) {
        Ok(lock) => (Some(lock), None),
        Err(busy) => (None, Some(busy)),
    };
    let result = match (checked, busy) {
        (Err(reason), _) => Err(Failure::Work(reason)),
        (_, Some(busy)) => Err(busy.into()),
        _ => finish(task, &input, &key, &folder, existing, listener),
    };
    let failure = match result {
        Ok(state) => return Outcome { input, folder, state, kept: false, failure: None },
        Err(failure) => failure,
    };
    let digest = InputDigest::of(&input.path).unwrap_or_else(|_| InputDigest {
        path: input.path.display().to_string(),
        size: 0,
        modified: 0,
        sha256: String::new(),
    });
    let mut state = State::running(&key.digest, digest);
    state.settings = key.settings;
    state.status = Status::Failed;
    state.reason = Some(failure.to_string());
    // The failure itself is reported anyway; a full disk must not hide it. Where another process is
    // at work, its state stays.
    if held.is_some() {
        let _ = state.save(&folder);
    }
    Outcome { input, folder, state, kept: false, failure: Some(failure) }
}

/// Does one slide and leaves its final state in its folder.
fn finish<T: Task>(
    task: &mut T,
    input: &Input,
    key: &Key,
    folder: &Path,
    existing: Existing,
    (label, listener): (&str, &mut dyn Listener),
) -> Result<State<T::Work>, Failure<T::Error>> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| Failure::Io { path, source }
    };
    let clear = || task.clear(folder).map_err(|(path, source)| Failure::Io { path, source });
    if existing == Existing::Overwrite {
        clear()?;
    }
    let start = Instant::now();
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    let before = Stamp::of(&input.path).map_err(io(&input.path))?;
    let mut state = State::running(&key.digest, before.digest().clone());
    state.settings = key.settings.clone();
    state.save(folder)?;
    listener.begin(label, task.unit());
    let worked = task.work(input, folder, &mut state, listener);
    listener.finish();
    let status = worked.map_err(Failure::Work)?;
    let now = Stamp::of(&input.path).map_err(io(&input.path))?;
    if let Some(what) = before.differs(&now) {
        // Nothing of this may stay, a stored state least of all.
        task.clear(folder).map_err(|(path, source)| Failure::Io { path, source })?;
        return Err(Failure::Changed { path: input.path.clone(), what });
    }
    state.status = status;
    state.seconds = start.elapsed().as_secs_f64();
    state.save(folder)?;
    task.tidy(folder);
    Ok(state)
}

/// One listener for several workers.
struct Shared<'a, 'b>(&'a Mutex<&'b mut dyn Listener>);

impl Shared<'_, '_> {
    fn with(&mut self, tell: impl FnOnce(&mut dyn Listener)) {
        tell(&mut **self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Listener for Shared<'_, '_> {
    fn begin(&mut self, label: &str, unit: &'static str) {
        self.with(|l| l.begin(label, unit));
    }
    fn update(&mut self, done: u64, total: u64) {
        self.with(|l| l.update(done, total));
    }
    fn finish(&mut self) {
        self.with(|l| l.finish());
    }
    fn say(&mut self, line: &str) {
        self.with(|l| l.say(line));
    }
    fn note(&mut self, text: &str) {
        self.with(|l| l.note(text));
    }
}
