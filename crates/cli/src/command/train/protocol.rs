//! `mithras train finetune` on a task, `mithras train probe`, `mithras train test`.

use super::learn::Common;
use super::machine::Machine;
use crate::progress::{print_message, print_progress};
use anyhow::{Context, Result};
use regions::task::TrainingSet;
use std::path::{Path, PathBuf};
use train::protocol::{About, CropsPreset, ProbePreset, fold_count, list_folds, load, probed_fold};
use training::chain::start;
use training::protocol::{self, Judged, score_lines};

/// Probe a frozen encoder over folds of whole slides: linear head, nearest neighbours, regression
///
/// The encoder sees every image once (per symmetric copy), and its features are kept. Any number of probes learn from
/// them: a preset with [probes.NAME] makes a run of each, RUN/NAME. Test parts are never read.
#[derive(clap::Args, Debug)]
pub struct ProbeArgs {
    #[command(flatten)]
    common: Common,
    /// Folder of features that runs share, by encoder, weights, crops and images [default: RUN/features]
    #[arg(long, value_name = "DIR")]
    features: Option<PathBuf>,
}

/// Score the fold models of a run on a test set, each set once
///
/// Writes predictions.csv (every item by every fold's model), metrics.json (per fold, mean and sample SD, per domain),
/// ensemble.csv and ensemble.json (mean probabilities). Where a model was trained with none left out, final.csv and
/// final.json are there, too. A run of ami-morph is scored on ami-br as well, by summed probabilities (*-ami-br.*).
/// For two classes the report has values at the operating point, which held-out items chose, and of the likelier class.
///
/// Any number of test sets may be scored, each once. A second scoring on the same set (known by the digest of its
/// crops) is refused unless --again is given. A set that was used for a choice is no longer a test set.
#[derive(clap::Args, Debug)]
pub struct TestArgs {
    /// Run of `mithras train finetune` or `probe`, all folds trained, or the final model alone
    #[arg(long, value_name = "RUN")]
    run: PathBuf,
    /// Folder with ami_br/ or with test/<class>/, or a dataset of crops with test data
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Folder for the results [default: RUN/test, and RUN/test-DIGEST for further sets]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Score a set that was scored before
    #[arg(long)]
    again: bool,
    /// Score a set with slides or images that the models were trained on; the metrics record it
    #[arg(long)]
    allow_seen: bool,
    #[command(flatten)]
    machine: Machine,
}

pub fn finetune(c: &Common) -> Result<()> {
    let device = c.machine.set_up();
    let preset: CropsPreset = load(&c.preset, &c.set, c.folds.as_deref())?;
    let set = TrainingSet::open(preset.task, &c.data)?;
    let mut options = c.options(&c.out, device);
    if let Some(init) = &mut options.init {
        *init = start::classifier(init, &c.out)?;
    }
    for part in list_folds(&c.fold, fold_count(&preset.data)?)? {
        c.machine.print(&format!("left out: {part}, in {}", part.dir(&c.out).display()));
        train::protocol::finetune(&preset, &set, part, &options)
            .with_context(|| format!("fold {part}"))?;
    }
    if c.fold != "none" && train::ranks::is_first()? { finish(&c.out) } else { Ok(()) }
}

pub fn probe(args: ProbeArgs) -> Result<()> {
    let c = &args.common;
    let device = c.machine.set_up();
    let preset: ProbePreset = load(&c.preset, &c.set, c.folds.as_deref())?;
    let set = TrainingSet::open(preset.task, &c.data)?;
    let only = probed_fold(&c.fold, fold_count(&preset.data)?)?;
    let (cache, options) = (args.features.as_deref(), c.options(&c.out, device));
    let all = train::protocol::probe(&preset, &set, only, cache, &options)?;
    let shortcuts = all.first().map_or(&[][..], |p| &p.shortcuts);
    shortcuts.iter().for_each(|w| print_message("note", &format!("shortcut: {w}")));
    for probed in all {
        outln!("{}", probed.run.display());
        probed.warnings.iter().for_each(|w| print_message("warning", w));
        finish(&probed.run)?;
    }
    Ok(())
}

/// Judges the folds that are there.
fn finish(run: &Path) -> Result<()> {
    let folds = About::read(run)?.folds;
    for Judged { name, done, figures } in protocol::finish(run)? {
        match figures {
            Some(figures) => crate::show::text(&score_lines(&name, folds, &figures)),
            None => print_progress(&format!("{name}: {done} of {folds} folds are done")),
        }
    }
    Ok(())
}

pub fn test(args: TestArgs) -> Result<()> {
    let device = args.machine.set_up();
    let folds = About::read(&args.run)?.folds;
    let TestArgs { run, data, again, allow_seen, out, .. } = args;
    let scored = protocol::test(&protocol::Test { run, data, out, again, allow_seen, device })?;
    scored.notes.iter().for_each(|note| print_message("warning", note));
    for judged in scored.figures {
        crate::show::text(&score_lines(&judged.name, folds, &judged.value));
    }
    outln!("written to {}", scored.out.display());
    Ok(())
}
