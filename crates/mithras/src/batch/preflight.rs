//! Whether a run may start, and which slides it can use.

use super::detection::{DetectionState as State, SlideFailure, key};
use super::run::Existing;
use super::state::{
    self, OWN_SETTINGS, StateError, Status, differ_in_one, differences, has_results,
};
use crate::detector::{Detector, ENGINE_SETTING, RunError};
use crate::input::{Input, InputDigest};
use base::remedy::{Remedied, Remedy};
use base::text::Shown;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Why a run does not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum StartError {
    /// Nothing can be written there.
    #[error("cannot write into {}: {source}", Shown(path))]
    Out {
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// There are results already, and neither resuming nor overwriting was requested.
    #[error(
        "{} already holds results of {count} of these slides; choose whether to resume or to overwrite them",
        Shown(path)
    )]
    Exists { path: PathBuf, count: usize },
    /// The stored results were made otherwise.
    #[error(
        "cannot resume in {}: slide `{slide}` was done with another configuration: {differs}",
        Shown(path)
    )]
    Config {
        path: PathBuf,
        /// Name of the slide.
        slide: String,
        /// Which settings differ, with both values.
        differs: String,
    },
    /// The stored results were made by another engine, and by nothing else that differs.
    #[error(
        "cannot resume in {}: slide `{slide}` was done with {before}, and this run would use \
         {now}; {}",
        Shown(path),
        how_far(before, now)
    )]
    Engine {
        path: PathBuf,
        /// Name of the slide.
        slide: String,
        /// Engine, provider, precisions of both stages.
        before: String,
        /// The same of this run.
        now: String,
    },
    /// A slide was done by a later version, or what was done to it cannot be read.
    #[error("cannot resume in {}: slide `{slide}`: {source}", Shown(path))]
    State {
        path: PathBuf,
        /// Name of the slide.
        slide: String,
        /// Why its state cannot be used.
        source: StateError,
    },
    /// Slides of another configuration are in the folder, which are not among the slides to do: one
    /// folder holds one run, else its table would mix both or leave one out.
    #[error(
        "{} holds slide `{slide}`, done with another configuration: {differs}; one folder holds the \
         slides of one configuration",
        Shown(path)
    )]
    Mixed {
        path: PathBuf,
        /// Name of the slide.
        slide: String,
        /// Which settings differ, with both values.
        differs: String,
    },
    /// The slide is another one.
    #[error("cannot resume in {}: the file of slide `{slide}` has changed since", Shown(path))]
    Input {
        path: PathBuf,
        /// Name of the slide.
        slide: String,
    },
    /// Two slides would share a folder, where upper and lower case are the same.
    #[error(
        "{} does not distinguish upper and lower case, and `{first}` and `{second}` would be one folder there; \
         rename one of the slides, or run them into different folders",
        Shown(path)
    )]
    Case {
        path: PathBuf,
        /// Name of a slide.
        first: String,
        /// Name of the other.
        second: String,
    },
}

/// How far the results of two engines may differ: the tolerance of the engines' tests in f32, and
/// the measured difference on real frames in bf16 (`docs/results/speed.md`).
fn how_far(before: &str, now: &str) -> &'static str {
    if [before, now].iter().any(|engine| engine.contains("bf16")) {
        "between f32 and bf16 the scores of figures moved by up to 0.005 on real frames, those of \
         rejected candidates by up to 0.14, so candidates near a threshold may change sides"
    } else {
        "between engines in f32 scores move by up to 0.001, so a candidate this close to \
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
    let probe = crate::file::new_temporary(&out.join("run.json")).map_err(|e| refuse(e.source))?;
    // Another name of the same file, where case does not count.
    let name = probe.path().file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    let other_case = probe.path().with_file_name(name);
    refuse_alike(inputs, out, other_case.exists())?;
    if let Some(kept) = &detector.models.kept {
        let refuse = |source| StartError::Out { path: kept.folder.clone(), source };
        std::fs::create_dir_all(&kept.folder).map_err(refuse)?;
    }
    let (mut stored, mut damaged) = (Vec::new(), 0);
    for input in inputs {
        let folder = out.join(&input.name);
        match State::read(&folder) {
            Ok(None) if !has_results(&folder) => {}
            Ok(Some(s)) if s.check(&folder, |_| false).is_ok() => stored.push((input, s)),
            Err(source) if !source.is_mended() && existing != Existing::Overwrite => {
                let (path, slide) = (out.to_owned(), input.name.clone());
                return Err(StartError::State { path, slide, source });
            }
            // Done again, as those of another slide are.
            _ => damaged += 1,
        }
    }
    match existing {
        Existing::Refuse if stored.len() + damaged > 0 => {
            let count = stored.len() + damaged;
            return Err(StartError::Exists { path: out.to_owned(), count });
        }
        Existing::Resume => {
            let look = |(input, _): &(&Input, State)| InputDigest::from_file(&input.path).ok();
            let files: Vec<Option<InputDigest>> = stored.par_iter().map(look).collect();
            for ((input, state), file) in stored.iter().zip(files) {
                if state.status == Status::Failed {
                    continue;
                }
                let (path, slide) = (out.to_owned(), input.name.clone());
                let now = key(detector, input);
                if !now.fits(state) && !now.is_former(state) {
                    if differ_in_one(&state.settings, &now.settings, ENGINE_SETTING) {
                        let engine = |s: &BTreeMap<String, String>| s[ENGINE_SETTING].clone();
                        let (before, now) = (engine(&state.settings), engine(&now.settings));
                        return Err(StartError::Engine { path, slide, before, now });
                    }
                    let differs = differences(&state.settings, &now.settings);
                    return Err(StartError::Config { path, slide, differs });
                }
                // A file that cannot be read now leaves what is done; a slide that is not done is begun again.
                if state.is_done() && file.is_some_and(|f| !f.same(&state.input)) {
                    return Err(StartError::Input { path, slide });
                }
            }
        }
        _ => {}
    }
    mixed(inputs, detector, out)?;
    let opener = &detector.opener;
    Ok(inputs
        .par_iter()
        .map(|input| {
            let slide = opener.open(input)?;
            opener.fitting(&slide)?;
            let digest = InputDigest::from_file(&input.path)
                .map_err(|source| RunError::Io { path: input.path.clone(), source })?;
            if let Some(regions) = &input.regions {
                regions.read_slide_regions(&slide, &input.name, &digest.sha256)?;
            }
            Ok(())
        })
        .collect())
}

/// Refuses two slides whose names differ in upper and lower case alone, where that is one folder.
fn refuse_alike(inputs: &[Input], out: &Path, is_one_folder: bool) -> Result<(), StartError> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut names = inputs.iter().filter(|_| is_one_folder).map(|i| i.name.as_str());
    let alike = names.find_map(|name| Some((seen.insert(name.to_lowercase(), name)?, name)));
    let Some((first, second)) = alike else { return Ok(()) };
    Err(StartError::Case { path: out.into(), first: first.into(), second: second.into() })
}

/// Refuses a folder that holds finished slides of another configuration, other than the `inputs`.
fn mixed(inputs: &[Input], detector: &Detector, out: &Path) -> Result<(), StartError> {
    let names: BTreeSet<&str> = inputs.iter().map(|i| i.name.as_str()).collect();
    let (settings, any_engine) = (detector.config.settings(), detector.models.accept_engine);
    let Ok(entries) = std::fs::read_dir(out) else { return Ok(()) };
    let others: Vec<PathBuf> = entries
        .flatten()
        .filter(|e| {
            e.file_name().to_str().is_some_and(|n| !names.contains(n) && !n.starts_with('.'))
        })
        .map(|e| e.path())
        .collect();
    let first = others.into_par_iter().find_map_first(|folder| {
        let mut state = State::load(&folder).filter(|s| s.is_done() && !s.settings.is_empty())?;
        OWN_SETTINGS.iter().for_each(|own| drop(state.settings.remove(*own)));
        let engine = any_engine && differ_in_one(&state.settings, &settings, ENGINE_SETTING);
        let alike = engine || state::alike(&state.settings, &settings);
        (!alike).then_some((folder, state))
    });
    let Some((folder, state)) = first else { return Ok(()) };
    let slide = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let differs = differences(&state.settings, &settings);
    Err(StartError::Mixed { path: out.to_owned(), slide, differs })
}

impl Remedied for StartError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Exists { .. } => Some(Remedy::ContinueOrReplace),
            Self::Engine { .. } => Some(Remedy::KeepEngine),
            Self::Config { .. } => Some(Remedy::OtherFolderOrReplace),
            Self::Mixed { .. } => Some(Remedy::OtherFolder),
            Self::State { source: StateError::Schema { .. }, .. } => Some(Remedy::RedoSlide),
            Self::Input { .. } => Some(Remedy::Replace),
            Self::Case { .. } => Some(Remedy::FolderPerRun),
            Self::State { .. } | Self::Out { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As on a disk of macOS or Windows.
    #[test]
    fn names_that_are_one_folder_are_refused_until_one_is_renamed_or_runs_elsewhere() {
        let check = |names: &[&str], is_one_folder| {
            let inputs: Vec<Input> = names.iter().map(|n| Input::new(Path::new(n))).collect();
            refuse_alike(&inputs, Path::new("out"), is_one_folder).map_err(|e| e.to_string())
        };
        let refused = check(&["a.svs", "b.svs", "A.svs"], true).unwrap_err();
        assert!(refused.contains("`a` and `A` would be one folder there"), "{refused}");
        let advice = "rename one of the slides, or run them into different folders";
        assert!(refused.contains(advice), "{refused}");
        assert_eq!(check(&["a.svs", "b.svs", "A2.svs"], true), Ok(()));
        assert_eq!(check(&["a.svs", "b.svs"], true), Ok(()));
        assert_eq!(check(&["A.svs"], true), Ok(()));
        assert_eq!(check(&["a.svs", "A.svs"], false), Ok(()));
    }
}
