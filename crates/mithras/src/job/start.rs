//! Whether a run may start, and which slides it can use.

use super::task::{SlideFailure, Work, key};
use crate::batch::Existing;
use crate::batch::state::{self, Status, differ_in_one, differences};
use crate::detector::{Detector, ENGINE_SETTING, RunError};
use crate::input::{Input, InputDigest};
use base::text::Shown;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type State = state::State<Work>;

/// Why a run does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing can be written there.
    #[error("cannot write into {}: {source}", Shown(path))]
    Out {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Results are there, and nobody said what to do about them.
    #[error(
        "{} already holds results of {count} of these slides, and it was not said whether to go on \
         with them or to do them anew",
        Shown(path)
    )]
    Exists {
        /// The folder.
        path: PathBuf,
        /// How many.
        count: usize,
    },
    /// The stored results were made otherwise.
    #[error(
        "cannot resume in {}: slide `{slide}` was done with another configuration: {differs}",
        Shown(path)
    )]
    Config {
        /// The folder.
        path: PathBuf,
        /// The slide.
        slide: String,
        /// Which settings differ, with both values.
        differs: String,
    },
    /// The stored results were made by another engine, and by nothing else that differs.
    #[error(
        "cannot resume in {}: slide `{slide}` was done by {before}, and this run would go on by \
         {now}; {}",
        Shown(path),
        how_far(before, now)
    )]
    Engine {
        /// The folder.
        path: PathBuf,
        /// The slide.
        slide: String,
        /// Engine, provider, precisions of both stages.
        before: String,
        /// The same of this run.
        now: String,
    },
    /// The slide is another one.
    #[error("cannot resume in {}: the file of slide `{slide}` has changed since", Shown(path))]
    Input {
        /// The folder.
        path: PathBuf,
        /// The slide.
        slide: String,
    },
}

/// How far the results of two engines may lie apart: what the tests of engines allow in f32, and what
/// was measured on real frames in bf16 (`docs/results/speed.md`).
fn how_far(before: &str, now: &str) -> &'static str {
    if [before, now].iter().any(|engine| engine.contains("bf16")) {
        "between f32 and bf16 the scores of figures moved by up to 0.005 on real frames, those of \
         rejected candidates by up to 0.14, so that candidates beside a threshold may change sides"
    } else {
        "between engines in f32 scores move by up to 0.001, so that a candidate which lies so close to \
         a threshold may change sides"
    }
}

/// Looks at every input and at what is already in `out`, before any work: which slides cannot be
/// used (with the reason), and whether the run may start at all.
///
/// # Errors
/// [`StartError`].
pub fn preflight(
    inputs: &[Input],
    detector: &Detector,
    out: &Path,
    existing: Existing,
) -> Result<Vec<Result<(), SlideFailure>>, StartError> {
    let refuse = |source| StartError::Out { path: out.to_owned(), source };
    std::fs::create_dir_all(out).map_err(refuse)?;
    tempfile::Builder::new().prefix(".writing-").tempfile_in(out).map_err(refuse)?;
    let stored: Vec<(&Input, State)> =
        inputs.iter().filter_map(|i| State::load(&out.join(&i.name)).map(|s| (i, s))).collect();
    match existing {
        Existing::Refuse if !stored.is_empty() => {
            return Err(StartError::Exists { path: out.to_owned(), count: stored.len() });
        }
        Existing::Resume => {
            for (input, state) in stored.iter().filter(|(_, s)| s.status != Status::Failed) {
                let (path, slide) = (out.to_owned(), input.name.clone());
                let now = key(detector, input);
                if !now.fits(state) {
                    if differ_in_one(&state.settings, &now.settings, ENGINE_SETTING) {
                        let engine = |s: &BTreeMap<String, String>| s[ENGINE_SETTING].clone();
                        let (before, now) = (engine(&state.settings), engine(&now.settings));
                        return Err(StartError::Engine { path, slide, before, now });
                    }
                    let differs = differences(&state.settings, &now.settings);
                    return Err(StartError::Config { path, slide, differs });
                }
                // A file that cannot be read now is that slide's own failure.
                if InputDigest::of(&input.path).is_ok_and(|d| !d.same(&state.input)) {
                    return Err(StartError::Input { path, slide });
                }
            }
        }
        _ => {}
    }
    let opener = detector.opener();
    Ok(inputs
        .par_iter()
        .map(|input| {
            let slide = opener.open(input)?;
            opener.fitting(&slide)?;
            let digest = InputDigest::of(&input.path)
                .map_err(|source| RunError::Io { path: input.path.clone(), source })?;
            if let Some(regions) = &input.regions {
                regions.on(&slide, &input.name, &digest.sha256)?;
            }
            Ok(())
        })
        .collect())
}
