//! A detector from a regions dataset, in one go: folds, first stage, hard negatives, second stage,
//! joint calibration, export, parity check, package.
//!
//! ```text
//! RUN/preset.toml                  the resolved preset
//! RUN/folds.json                   which slides each fold leaves out
//! RUN/start/                       both networks of the package that it starts from, if any
//! RUN/fold-0/segment/              the first stage of a fold; `final` leaves nothing out
//! RUN/fold-0/mined.csv             where it is wrong on its own training images
//! RUN/fold-0/finetune/             the second stage; of several seeds the mean, each training in seed-N
//! RUN/classifier/                  in place of both, with [crops]: a run over the same folds on crops around labels
//! RUN/calibration/                 one operating point over all folds, and what it reaches; with
//!                                  `calibrate.grid` points.json, chosen under perturbations
//! RUN/package/                     the detector
//! RUN/steps/<step>.json            done-marks: what a step was made from and what it left
//! ```
//!
//! A step whose mark and results are there is skipped, so a killed run resumes where it stopped; a
//! training step resumes at its last saved state.

mod first;
mod inputs;
mod mark;
mod plan;
mod points;
mod preset;
pub mod start;
mod steps;

use super::{Result, TrainingError};
use base::digest;
use base::file::{self, Lock};
use base::progress::{Event, Listener};
use regions::Dataset;
use regions::folds::{FoldManifest, RegionFold};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use inputs::{CLASSIFIER, part};
pub use inputs::{Chain, ChainOptions, ModelsOf};
use mark::{MARK, Mark};
pub use plan::{Plan, PlannedStep, StepKind, span};
use train::data::Source;
use train::preset::Preset as _;
use train::run::MODEL;

pub use preset::{CalibratePreset, DetectorPreset, FoldsPreset, PackagePreset, Second};

impl<'a> Chain<'a> {
    /// Prepares a chain: makes or reads the folds, reads nothing else and writes nothing.
    ///
    /// # Errors
    /// A dataset that cannot be split as the preset asks, starting weights that are not there, a package
    /// of another kind than the preset's; no folds and no package whose operating point could stay; another chain's
    /// first stage that does not fit.
    pub fn new(
        preset: &'a DetectorPreset,
        set: Dataset,
        options: &'a ChainOptions,
    ) -> Result<Self> {
        let source = match &options.folds {
            Some(file) => Source::read_folds(set, file)?,
            None => {
                let made =
                    FoldManifest::of_regions(&set, preset.folds.scheme(), preset.folds.seed)?;
                Source { set, folds: made }
            }
        };
        let (set, folds) = (&source.set, &source.folds);
        let mut parts = vec![preset.digest(), set.digest().to_owned(), folds.digest.clone()];
        for weights in [&options.segment_init, &options.finetune_init].into_iter().flatten() {
            let (_, sha256) =
                digest::sha256_file(weights).map_err(|e| TrainingError::file(weights, e.source))?;
            parts.push(sha256);
        }
        match &options.package {
            Some(package) => parts.extend(start::digests(package, preset)?),
            None if folds.folds.is_empty() => return Err(start::no_point()),
            None => {}
        }
        let wanted = options.only.iter().flatten().flatten();
        if let Some(&fold) = wanted.max().filter(|k| **k >= folds.folds.len()) {
            return Err(TrainingError::NoFold { fold, folds: folds.folds.len() });
        }
        let mut chain = Self { preset, source, options, made_from: String::new() };
        if let Some(run) = &options.first_stage {
            parts.extend(first::digests(run, &chain)?);
        }
        chain.made_from = digest::sha256(parts.join("\n"));
        Ok(chain)
    }

    /// The folds.
    #[must_use]
    pub fn folds(&self) -> &FoldManifest {
        &self.source.folds
    }

    /// Every step with its size and an estimate of its time.
    ///
    /// # Errors
    /// Networks that cannot be built for the estimate.
    pub fn plan(&self) -> Result<Plan> {
        plan::plan(self)
    }

    /// Runs every step that is not done yet; gives the package's folder, or the run's if only some
    /// folds were asked for.
    ///
    /// # Errors
    /// [`TrainingError`]; finished steps stay, and the next call continues after them.
    pub fn run(&self, listener: &mut dyn Listener) -> Result<PathBuf> {
        let (out, only) = (&self.options.out, &self.options.only);
        std::fs::create_dir_all(out).map_err(TrainingError::io(out))?;
        let _lock = only.is_none().then(|| Lock::take(out)).transpose()?;
        file::write(&out.join("preset.toml"), self.preset.to_toml().as_bytes())?;
        if let Some(package) = &self.options.package {
            start::unpack(package, out)?;
        }
        let mut steps = plan::steps(self);
        let mut before = steps.iter().map(|s| self.is_done(s)).collect::<Result<Vec<_>>>()?;
        if before.contains(&false) {
            steps = plan::plan(self)?.steps;
        }
        if let Some(folds) = only {
            let asked = |s: &PlannedStep| s.kind.is_of_a_fold() && folds.contains(&s.fold);
            steps.retain(|s| s.kind == StepKind::Folds || asked(s));
            before = steps.iter().map(|s| self.is_done(s)).collect::<Result<_>>()?;
        }
        let (mut spent, mut planned) = (0.0, 0.0);
        let begun = Instant::now();
        for (i, step) in steps.iter().enumerate() {
            // Check again: a repeated step invalidates those that depend on it.
            before[i] = self.is_done(step)?;
            let ahead = steps.iter().zip(&before).skip(i).filter(|(_, done)| !**done);
            let left = plan::pace(spent, planned) * ahead.map(|(s, _)| s.seconds).sum::<f64>();
            let (number, total, done_before) = (i + 1, steps.len(), before[i]);
            let state = if done_before { " (done before)" } else { "" };
            let (so_far, rest) = (span(begun.elapsed().as_secs_f64()), span(left));
            let what = &step.what;
            listener.report(&format!(
                "step {number} of {total}: {what}{state}; {so_far}, about {rest} left"
            ));
            let (name, eta_seconds) = (step.name.as_str(), left);
            listener.event(&Event::Step { name, number, total, done_before, eta_seconds });
            if !before[i] {
                let started = Instant::now();
                // Other processes may be at work on other folds.
                let fold = step.kind.is_of_a_fold().then(|| self.folder(step.fold));
                let _lock = fold.map(|f| Lock::take(&f)).transpose()?;
                let files = steps::run(self, step, listener)?;
                self.mark(step, &files)?;
                (spent, planned) =
                    (spent + started.elapsed().as_secs_f64(), planned + step.seconds);
            }
        }
        Ok(if only.is_some() { out.clone() } else { out.join("package") })
    }

    /// The images of a fold, or of the final models, which leave nothing out.
    fn fold(&self, fold: Option<usize>) -> Result<RegionFold<'_>> {
        Ok(self.source.fold(fold.map_or("none", |k| &self.source.folds.folds[k]))?)
    }

    /// Folder of a fold's models, by number: names of slides may hold anything.
    fn folder(&self, fold: Option<usize>) -> PathBuf {
        self.options.out.join(plan::folder_name(fold))
    }

    /// Weights of the second stage of a fold, or of the final one.
    fn second_model(&self, fold: Option<usize>) -> PathBuf {
        match self.preset.second() {
            Second::Pools(_) => self.folder(fold).join("finetune").join(MODEL),
            Second::Crops(_) => part(fold).dir(&self.options.out.join(CLASSIFIER)).join(MODEL),
        }
    }

    fn mark_path(&self, step: &PlannedStep) -> PathBuf {
        self.options.out.join("steps").join(format!("{}.json", step.name))
    }

    /// Whether a step is done: its mark is there, and what it left is unchanged.
    fn is_done(&self, step: &PlannedStep) -> Result<bool> {
        let path = self.mark_path(step);
        if !path.is_file() {
            return Ok(false);
        }
        let mark: Mark = base::json::read(&path).map_err(|e| TrainingError::file(&path, e))?;
        if mark.schema != MARK || mark.made_from != self.made_from {
            let (path, step) = (self.options.out.clone(), step.name.clone());
            return Err(TrainingError::OtherRun { path, step });
        }
        Ok(mark.is_unchanged(&self.options.out))
    }

    fn mark(&self, step: &PlannedStep, left: &[PathBuf]) -> Result<()> {
        let path = self.mark_path(step);
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(TrainingError::io(folder))?;
        let mut digests = BTreeMap::new();
        for file in left {
            let (_, sha256) =
                digest::sha256_file(file).map_err(|e| TrainingError::file(file, e.source))?;
            let name = file.strip_prefix(&self.options.out).unwrap_or(file);
            digests.insert(name.to_string_lossy().into_owned(), sha256);
        }
        let (schema, step) = (MARK.to_owned(), step.name.clone());
        let mark = Mark { schema, step, made_from: self.made_from.clone(), left: digests };
        Ok(base::json::write(&path, &mark)?)
    }
}
