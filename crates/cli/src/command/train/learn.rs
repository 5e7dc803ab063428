//! `mithras train segment` and `mithras train finetune`.

use super::machine::Machine;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use train::data::{Data, Source};
use train::preset::{FinetunePreset, Preset, SegmentPreset};
use train::run::RunOptions;
use train::{finetune, segment};
use training::folds::read_mined;
use training::pseudo::read as read_pseudo;

#[derive(clap::Args, Debug)]
pub struct Common {
    /// The experiment (TOML); its first line is the command
    #[arg(long, value_name = "FILE")]
    pub(super) preset: PathBuf,
    /// Regions dataset; for presets with a `task` its data
    #[arg(long, value_name = "DIR")]
    pub(super) data: PathBuf,
    /// Folds, as `mithras corpus split` writes them; with a `task` they replace the preset's data.folds_file
    #[arg(long, value_name = "FILE")]
    pub(super) folds: Option<PathBuf>,
    /// Run directory; with --fold all one folder per fold inside it
    #[arg(long, value_name = "RUN")]
    pub(super) out: PathBuf,
    /// What validates: a fold by its name, all in turn, or none (final model, trained on everything)
    #[arg(long, value_name = "FOLD", default_value = "all")]
    pub(super) fold: String,
    /// File of starting weights, for presets whose `init` asks for one; {fold} is replaced by the
    /// fold left out. With a `task` also a package (its classifier), as mithras-standard
    #[arg(long, value_name = "FILE")]
    init: Option<PathBuf>,
    /// Load the weights that match and initialise the rest at random; the names of the rest are in
    /// run.json and in the package's card
    #[arg(long)]
    allow_partial: bool,
    /// Continue a run that was killed
    #[arg(long)]
    resume: bool,
    /// Change a key of the preset, e.g. train.steps=100
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    #[command(flatten)]
    pub(super) machine: Machine,
}

/// Train the first stage (Efficient-UNet) on exhaustively labelled frames
#[derive(clap::Args, Debug)]
pub struct SegmentArgs {
    #[command(flatten)]
    common: Common,
    /// Labels of `mithras train pseudo-label`, of its figures; {fold} is replaced by the fold left out
    #[arg(long, value_name = "CSV")]
    pseudo: Option<String>,
}

/// Train classifiers: the second stage, or a task over folds
///
/// A preset without `task` trains the detector's second stage. One with `task` (ami-br, ami-morph, folder) fine-tunes
/// over folds of whole slides and writes predictions and metrics of the held-out items; test parts are never read.
#[derive(clap::Args, Debug)]
pub struct FinetuneArgs {
    #[command(flatten)]
    pub common: Common,
    /// Hard negatives of `mithras train mine`; {fold} is replaced by the fold left out
    #[arg(long, value_name = "CSV")]
    pub mined: Option<String>,
    /// Labels of `mithras train pseudo-label`; a pool `unlabelled` of the kind `figure` sets how often its
    /// figures are drawn. {fold} is replaced by the fold left out
    #[arg(long, value_name = "CSV")]
    pub pseudo: Option<String>,
}

/// The images of a fold, with pseudo-labels where there are any.
fn marked(source: &Source, fold: &str, pseudo: Option<&str>) -> Result<Data> {
    let mut data = source.data(fold)?;
    if let Some(path) = pseudo {
        data.mark(&read_pseudo(Path::new(&path.replace("{fold}", fold)))?)?;
    }
    Ok(data)
}

impl Common {
    fn each_fold(&self, source: &Source) -> Result<Vec<(String, PathBuf)>> {
        let own = |fold: &String| Ok((fold.clone(), source.folds.folder(&self.out, fold)?));
        match self.fold.as_str() {
            "all" => source.folds.folds.iter().map(own).collect(),
            one => Ok(vec![(one.to_string(), self.out.clone())]),
        }
    }

    pub(super) fn options(&self, out: &Path, device: String) -> RunOptions {
        RunOptions {
            out: out.to_path_buf(),
            resume: self.resume,
            device,
            init: self.init.clone(),
            allow_partial: self.allow_partial,
            stop_after: 0,
            reporter: self.machine.reporter(),
        }
    }

    fn each<P: Preset>(
        &self,
        mut one: impl FnMut(&P, &Source, &str, &RunOptions) -> Result<()>,
    ) -> Result<()> {
        let device = self.machine.set_up();
        let preset: P = P::load(&self.preset, &self.set)?;
        let folds = self.folds.as_deref().context("--folds: `mithras corpus split` makes them")?;
        let source = Source::open(&self.data, folds)?;
        for (fold, out) in self.each_fold(&source)? {
            self.machine.print(&format!("left out: {fold}, in {}", out.display()));
            let options = self.options(&out, device.clone()).in_fold(&fold);
            one(&preset, &source, &fold, &options).with_context(|| format!("fold {fold}"))?;
        }
        Ok(())
    }
}

pub fn segment(args: SegmentArgs) -> Result<()> {
    let c = &args.common;
    c.each(|preset: &SegmentPreset, source, fold, options| {
        let data = marked(source, fold, args.pseudo.as_deref())?;
        Ok(segment::train_on(preset, &data, options)?)
    })
}

pub fn finetune(args: FinetuneArgs) -> Result<()> {
    let c = &args.common;
    c.each(|preset: &FinetunePreset, source, fold, options| {
        let mined = match &args.mined {
            Some(path) => read_mined(Path::new(&path.replace("{fold}", fold)))?,
            None => vec![],
        };
        let data = marked(source, fold, args.pseudo.as_deref())?;
        Ok(finetune::train_on(preset, &data, &mined, options)?)
    })
}
