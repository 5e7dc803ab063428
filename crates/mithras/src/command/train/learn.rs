//! `mithras train segment` and `mithras train finetune`.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use train::preset::{self, FinetunePreset, Preset, SegmentPreset};
use train::run::RunOptions;
use train::{finetune, segment};

#[derive(clap::Args, Debug)]
pub struct Common {
    /// The experiment (TOML); its first line is the command
    #[arg(long, value_name = "FILE")]
    preset: PathBuf,
    /// Folder with icpr2012/ and ami_br/
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Run directory; with --fold all one folder per slide inside it
    #[arg(long, value_name = "RUN")]
    out: PathBuf,
    /// Slide left out for validation (A00, A01, A02), all three in turn, or none (final model)
    #[arg(long, value_name = "SLIDE", default_value = "all")]
    fold: String,
    /// File of starting weights, for presets whose `init` asks for one
    #[arg(long, value_name = "FILE")]
    init: Option<PathBuf>,
    /// Go on where a killed run stopped
    #[arg(long)]
    resume: bool,
    /// Change a key of the preset, e.g. train.steps=100
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// auto, cpu, cuda, cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// Threads of libtorch; 0 = all cores
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// Train the first stage (Efficient-UNet) on exhaustively labelled frames
#[derive(clap::Args, Debug)]
pub struct SegmentArgs {
    #[command(flatten)]
    common: Common,
}

/// Train the second stage (ViT, EfficientNet) on crops
#[derive(clap::Args, Debug)]
pub struct FinetuneArgs {
    #[command(flatten)]
    common: Common,
    /// Hard negatives of `mithras train mine`; {fold} stands for the slide left out
    #[arg(long, value_name = "CSV")]
    mined: Option<String>,
}

/// The slides of the ICPR frames, each left out once.
pub const FOLDS: [&str; 3] = ["A00", "A01", "A02"];

impl Common {
    fn folds(&self) -> Vec<(String, PathBuf)> {
        match self.fold.as_str() {
            "all" => FOLDS.iter().map(|f| ((*f).to_string(), self.out.join(f))).collect(),
            one => vec![(one.to_string(), self.out.clone())],
        }
    }

    fn options(&self, out: &Path) -> RunOptions {
        RunOptions {
            out: out.to_path_buf(),
            resume: self.resume,
            device: self.device.clone(),
            init: self.init.clone(),
            stop_after: 0,
            progress: true,
        }
    }

    fn each<P: Preset>(
        &self,
        mut one: impl FnMut(&P, &str, &RunOptions) -> Result<()>,
    ) -> Result<()> {
        train::threads(self.threads);
        let preset: P = preset::load(&self.preset, &self.set)?;
        for (fold, out) in self.folds() {
            eprintln!("left out: {fold}; run directory {}", out.display());
            one(&preset, &fold, &self.options(&out)).with_context(|| format!("fold {fold}"))?;
        }
        Ok(())
    }
}

pub fn segment(args: SegmentArgs) -> Result<()> {
    let c = &args.common;
    c.each(|preset: &SegmentPreset, fold, options| {
        Ok(segment::run(preset, &c.data, &fold.parse()?, options)?)
    })
}

pub fn finetune(args: FinetuneArgs) -> Result<()> {
    let c = &args.common;
    c.each(|preset: &FinetunePreset, fold, options| {
        let mined = match &args.mined {
            Some(path) => finetune::read_mined(Path::new(&path.replace("{fold}", fold)))?,
            None => vec![],
        };
        Ok(finetune::run(preset, &c.data, &fold.parse()?, &mined, options)?)
    })
}
