//! Whether a run may start, and which slides it can use.

use super::task::{SlideFailure, Work, key};
use crate::batch::Existing;
use crate::batch::state::{self, Status, differences};
use crate::detector::{Detector, RunError};
use crate::input::{Input, InputDigest};
use mitosis::text::Shown;
use rayon::prelude::*;
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
    /// The slide is another one.
    #[error("cannot resume in {}: the file of slide `{slide}` has changed since", Shown(path))]
    Input {
        /// The folder.
        path: PathBuf,
        /// The slide.
        slide: String,
    },
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
                if state.config != key(detector, input).digest {
                    let differs = differences(&state.settings, &key(detector, input).settings);
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
            let digest = InputDigest::of(&input.path);
            digest.map_err(|source| RunError::Io { path: input.path.clone(), source })?;
            Ok(())
        })
        .collect())
}
