//! `mithras train finetune` on a task, `mithras train probe`, `mithras train test`.

use super::learn::Common;
use super::machine::Machine;
use anyhow::{Context, Result, bail};
use corpus::task::TrainingSet;
use mithras::evaluate::classification::Classification;
use mithras::train::protocol;
use std::path::{Path, PathBuf};
use train::preset::Preset as _;
use train::protocol::{About, FinetunePreset, ProbePreset, fold_dir};

/// Linear probing: a linear head on the frozen encoder, over folds of whole slides
///
/// The encoder sees every image once (per symmetric copy); its features are kept in the run. Test
/// parts are never read.
#[derive(clap::Args, Debug)]
pub struct ProbeArgs {
    #[command(flatten)]
    common: Common,
}

/// Score the fold models of a run on the task's test part, once
///
/// Writes predictions.csv (every item by every fold's model), metrics.json (per fold, mean and
/// sample SD, per domain), ensemble.csv and ensemble.json (mean probabilities); a run of ami-morph
/// is scored on ami-br as well, by summed probabilities (*-ami-br.*). Of two classes the figures at
/// the operating point, which is chosen on the held-out items, stand beside those of the likelier
/// class. A second scoring of the same run is refused unless --again is given, because whoever chooses by test figures has no
/// test set left.
#[derive(clap::Args, Debug)]
pub struct TestArgs {
    /// Run of `mithras train finetune` or `probe`, all folds trained
    #[arg(long, value_name = "RUN")]
    run: PathBuf,
    /// Folder with ami_br/, or with test/<class>/
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Folder for the results [default: RUN/test]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Score a run that was scored before
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    machine: Machine,
}

fn folds_of(text: &str, folds: usize) -> Result<Vec<usize>> {
    if text == "all" {
        return Ok((0..folds).collect());
    }
    match text.parse() {
        Ok(k) if k < folds => Ok(vec![k]),
        _ => bail!("--fold {text}: give `all` or a number from 0 to {}", folds - 1),
    }
}

pub fn finetune(c: &Common) -> Result<()> {
    let device = c.machine.set_up();
    let preset = FinetunePreset::load(&c.preset, &c.set)?;
    let set = TrainingSet::open(preset.task, &c.data)?;
    let options = c.options(&c.out, device);
    for k in folds_of(&c.fold, preset.data.folds)? {
        eprintln!("fold {k}: run directory {}", fold_dir(&c.out, k).display());
        train::protocol::finetune(&preset, &set, k, &options)
            .with_context(|| format!("fold {k}"))?;
    }
    finish(&c.out)
}

pub fn probe(args: ProbeArgs) -> Result<()> {
    let c = &args.common;
    let device = c.machine.set_up();
    let preset = ProbePreset::load(&c.preset, &c.set)?;
    let set = TrainingSet::open(preset.task, &c.data)?;
    let only = match c.fold.as_str() {
        "all" => None,
        one => folds_of(one, preset.data.folds)?.first().copied(),
    };
    train::protocol::probe(&preset, &set, only, &c.options(&c.out, device))?;
    finish(&c.out)
}

/// Judges the folds that are there.
fn finish(run: &Path) -> Result<()> {
    let folds = About::read(run)?.folds;
    for judged in protocol::finish(run)? {
        match &judged.figures {
            Some(figures) => say(&judged.name, folds, figures),
            None => eprintln!("{}: {} of {folds} folds are done", judged.name, judged.done),
        }
    }
    Ok(())
}

fn say(name: &str, folds: usize, figures: &Classification) {
    for key in ["f1", "macro_f1", "balanced_accuracy", "accuracy", "roc_auc"] {
        let over = figures.over_folds.as_ref().and_then(|o| o.get(key));
        if let Some((mean, sd)) = over.and_then(|o| Some((o.mean, o.sd?))) {
            println!("{name}: {key} {mean:.3} +- {sd:.3} over {folds} folds");
        }
    }
}

pub fn test(args: TestArgs) -> Result<()> {
    let device = args.machine.set_up();
    let out = args.out.clone().unwrap_or_else(|| args.run.join("test"));
    let folds = About::read(&args.run)?.folds;
    let TestArgs { run, data, again, .. } = args;
    let what = protocol::Test { run, data, out, again, device };
    for (name, figures) in protocol::test(&what)? {
        say(&name, folds, &figures);
    }
    println!("written to {}", what.out.display());
    Ok(())
}
