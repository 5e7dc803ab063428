//! The first stage of another chain: paper, Section "Mitotic figure detection": one first stage, every second stage.

use super::super::{Result, TrainingError};
use super::mark::{MARK, Mark};
use super::plan::{StepKind, steps};
use super::{Chain, DetectorPreset, plan};
use base::file;
use regions::folds::FoldManifest;
use std::path::{Path, PathBuf};
use train::preset::Preset as _;
use train::run::MODEL;

/// What describes a trained first stage, next to its weights.
const ABOUT: [&str; 3] = ["preset.toml", "run.json", "metrics.csv"];

/// Digests of the first stages of a finished chain, one of each fold and the final one.
///
/// # Errors
/// A chain of other folds, of another first stage or other candidates, or one whose first stages are not all
/// trained and unchanged.
pub(super) fn digests(run: &Path, chain: &Chain<'_>) -> Result<Vec<String>> {
    let differs = |what: &str| TrainingError::FirstStage {
        path: run.to_owned(),
        why: format!("it has {what} than this training"),
    };
    let theirs = DetectorPreset::load(&run.join("preset.toml"), &[])
        .map_err(|e| TrainingError::FirstStage { path: run.to_owned(), why: e.to_string() })?;
    let ours = chain.preset;
    if FoldManifest::read(&run.join("folds.json"))?.digest != chain.source.folds.digest {
        return Err(differs("other folds"));
    }
    if theirs.segment != ours.segment {
        return Err(differs("another [segment]"));
    }
    if theirs.candidates != ours.candidates {
        return Err(differs("other [candidates]"));
    }
    let mut all = vec![];
    for step in steps(chain).iter().filter(|s| s.kind.is_of_the_first_stage()) {
        let path = run.join("steps").join(format!("{}.json", step.name));
        if step.kind == StepKind::Mine && !path.is_file() {
            // Its second stage needed none: they are mined here.
            continue;
        }
        let mark: Mark = base::json::read(&path).map_err(|e| TrainingError::FirstStage {
            path: run.to_owned(),
            why: format!("`{}` is not done there: {e}", step.name),
        })?;
        if mark.schema != MARK || !mark.is_unchanged(run) {
            let why = format!("what `{}` left there has changed", step.name);
            return Err(TrainingError::FirstStage { path: run.to_owned(), why });
        }
        all.extend(mark.left.into_values());
    }
    Ok(all)
}

/// Copies the weights of a fold's first stage, and what describes them; gives the weights.
pub(super) fn copy_network(run: &Path, chain: &Chain<'_>, fold: Option<usize>) -> Result<PathBuf> {
    let from = run.join(plan::folder_name(fold)).join("segment");
    let to = chain.folder(fold).join("segment");
    std::fs::create_dir_all(&to).map_err(TrainingError::io(&to))?;
    for name in ABOUT.into_iter().filter(|name| from.join(name).is_file()) {
        copy(&from.join(name), &to.join(name))?;
    }
    copy(&from.join(MODEL), &to.join(MODEL))?;
    Ok(to.join(MODEL))
}

/// Copies the hard negatives of a fold's first stage; none where its chain mined none.
pub(super) fn copy_mined(run: &Path, to: &Path, fold: Option<usize>) -> Result<bool> {
    let from = run.join(plan::folder_name(fold)).join("mined.csv");
    let is_there = from.is_file();
    if is_there {
        copy(&from, to)?;
    }
    Ok(is_there)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = std::fs::read(from).map_err(|e| TrainingError::file(from, e))?;
    Ok(file::write(to, &bytes)?)
}
