//! Many slides: a check of all of them first, then one after the other, each on its own.

mod inputs;
mod one;
mod setup;
pub mod state;

pub use inputs::{Input, InputError, Inputs, find, read_mpp_table, stem};
pub use one::{SlideFailure, TISSUE, clear, detect, open};
pub use setup::{Config, Setup, SetupError, Stages};

use crate::file::Lock;
use crate::progress::Listener;
use ::detect::CancelToken;
use artifact::digest::{Digest, Sha256, hex};
use rayon::prelude::*;
use state::{InputDigest, State, Status};
use std::path::{Path, PathBuf};

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

/// Why a run does not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nothing can be written there.
    #[error("cannot write into {}: {source}", path.display())]
    Out {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Results are there, and nobody said what to do about them.
    #[error(
        "{} already holds results of {count} of these slides; --resume keeps finished ones and goes \
         on, --overwrite does them anew", path.display()
    )]
    Exists {
        /// The folder.
        path: PathBuf,
        /// How many.
        count: usize,
    },
    /// The stored results were made otherwise.
    #[error(
        "cannot resume in {}: slide `{slide}` was done with another configuration (model, \
         thresholds, engine, resolution or version of mithras); use another --out, or --overwrite",
        path.display()
    )]
    Config {
        /// The folder.
        path: PathBuf,
        /// The slide.
        slide: String,
    },
    /// The slide is another one.
    #[error(
        "cannot resume in {}: the file of slide `{slide}` has changed since; use --overwrite",
        path.display()
    )]
    Input {
        /// The folder.
        path: PathBuf,
        /// The slide.
        slide: String,
    },
}

/// How one slide ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The slide.
    pub input: Input,
    /// Its folder.
    pub folder: PathBuf,
    /// Its final state, with the reason if it failed.
    pub state: State,
    /// Finished by an earlier run and kept.
    pub kept: bool,
}

impl Outcome {
    /// Whether all its files are written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state.status, Status::Finished | Status::NoTissue)
    }
}

/// Digest of what changes a number on this slide.
#[must_use]
pub fn config_digest(setup: &Setup, input: &Input) -> String {
    let mut hash = Sha256::new();
    hash.update(setup.config.digest());
    hash.update(input.mpp.map_or_else(String::new, |m| m.get().to_string()));
    hex(&hash.finalize())
}

/// Looks at every input and at what is already in `out`, before any work: which slides cannot be
/// used (with the reason), and whether the run may start at all.
///
/// # Errors
/// [`RunError`].
pub fn preflight(
    inputs: &[Input],
    setup: &Setup,
    out: &Path,
    existing: Existing,
) -> Result<Vec<Result<(), String>>, RunError> {
    let refuse = |source| RunError::Out { path: out.to_owned(), source };
    std::fs::create_dir_all(out).map_err(refuse)?;
    tempfile::Builder::new().prefix(".check-").tempfile_in(out).map_err(refuse)?;
    let stored: Vec<(&Input, State)> =
        inputs.iter().filter_map(|i| State::load(&out.join(&i.name)).map(|s| (i, s))).collect();
    match existing {
        Existing::Refuse if !stored.is_empty() => {
            return Err(RunError::Exists { path: out.to_owned(), count: stored.len() });
        }
        Existing::Resume => {
            for (input, state) in stored.iter().filter(|(_, s)| s.status != Status::Failed) {
                let (path, slide) = (out.to_owned(), input.name.clone());
                if state.config != config_digest(setup, input) {
                    return Err(RunError::Config { path, slide });
                }
                // A file that cannot be read now is that slide's own failure.
                if InputDigest::of(&input.path).is_ok_and(|d| !d.same(&state.input)) {
                    return Err(RunError::Input { path, slide });
                }
            }
        }
        _ => {}
    }
    let settings = slide::OpenOptions {
        cache_bytes: 0,
        openslide: setup.openslide.clone(),
        override_mpp: setup.override_mpp,
        ..slide::OpenOptions::default()
    };
    Ok(inputs
        .par_iter()
        .map(|input| {
            let options = slide::OpenOptions { mpp: input.mpp, ..settings.clone() };
            let slide =
                slide::Slide::open_with(&input.path, &options).map_err(|e| e.to_string())?;
            slide.resolution().map_err(|e| e.to_string())?;
            InputDigest::of(&input.path).map_err(|e| format!("{}: {e}", input.path.display()))?;
            Ok(())
        })
        .collect())
}

/// Does every slide, one after the other; a failing slide stops no other. `checked` comes from
/// [`preflight`].
pub fn run(
    inputs: Vec<Input>,
    checked: Vec<Result<(), String>>,
    setup: &mut Setup,
    out: &Path,
    existing: Existing,
    listener: &mut dyn Listener,
    cancel: &CancelToken,
) -> Vec<Outcome> {
    let total = inputs.len();
    let mut outcomes = Vec::with_capacity(total);
    for (k, (input, checked)) in inputs.into_iter().zip(checked).enumerate() {
        let folder = out.join(&input.name);
        let config = config_digest(setup, &input);
        let stored = State::load(&folder).filter(|_| existing == Existing::Resume);
        if let Some(state) = stored
            && matches!(state.status, Status::Finished | Status::NoTissue)
            && checked.is_ok()
        {
            outcomes.push(Outcome { input, folder, state, kept: true });
            continue;
        }
        let lock = Lock::take(&folder).map_err(|e| e.to_string());
        let result = checked.and(lock.as_ref().map_err(String::clone)).and_then(|_| {
            if existing == Existing::Overwrite {
                clear(&folder).map_err(|e| e.to_string())?;
            }
            let label = if total > 1 {
                format!("[{}/{total}] {}", k + 1, input.name)
            } else {
                input.name.clone()
            };
            listener.begin(&label, "windows");
            let done = detect(&input, setup, &config, &folder, listener, cancel);
            listener.finish();
            done.map_err(|e| e.to_string())
        });
        let state = result.unwrap_or_else(|reason| {
            let digest = InputDigest::of(&input.path).unwrap_or_else(|_| InputDigest {
                path: input.path.display().to_string(),
                size: 0,
                modified: 0,
                sha256: String::new(),
            });
            let mut state = State::running(&config, digest);
            state.status = Status::Failed;
            state.reason = Some(reason);
            // The failure itself is reported anyway; a full disk must not hide it. Where another
            // process is at work, its state stays.
            if lock.is_ok() {
                let _ = state.save(&folder);
            }
            state
        });
        listener.say(&line(&input.name, &state));
        outcomes.push(Outcome { input, folder, state, kept: false });
    }
    outcomes
}

fn line(name: &str, state: &State) -> String {
    match state.status {
        Status::Failed => {
            format!("{name}: FAILED: {}", state.reason.as_deref().unwrap_or("unknown"))
        }
        Status::NoTissue => format!("{name}: no tissue found"),
        _ => {
            let windows = state.stages.first().map_or(0, |s| s.items);
            format!("{name}: {windows} windows in {:.1} s", state.seconds)
        }
    }
}
