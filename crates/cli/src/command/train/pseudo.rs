//! `mithras train pseudo-label`: a detector's labels for unlabelled images.

use super::fold::OneFold;
use crate::command::detect::EngineArgs;
use crate::progress::LogArgs;
use anyhow::{Context, Result};
use base::text::Many;
use mitosis::Score;
use mitosis::pseudo_label::PseudoLabelRule;
use std::path::PathBuf;
use training::pseudo::label;

/// Pseudo-labels for self-training: a detector's own on a fold's training images without labels
///
/// Writes frame,x,y,label,s_seg,s_cls (pixels at 0.25 um/px; mf or mimicker), which `train segment --pseudo` and
/// `train finetune --pseudo` learn from. The detector has to be one that left the fold out; several in one package
/// are an ensemble (`detectors combine`). Images that the fold holds out are not touched.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    of: OneFold,
    /// A figure needs s_seg of at least this
    #[arg(long, value_name = "SCORE", default_value = "0.1", value_parser = score)]
    mitotic_seg: Score,
    /// A mimicker needs s_seg of at least this
    #[arg(long, value_name = "SCORE", default_value = "0.5", value_parser = score)]
    mimicker_seg: Score,
    /// A figure needs s_cls above this, a mimicker below it
    #[arg(long, value_name = "SCORE", default_value = "0.5", value_parser = score)]
    boundary: Score,
    /// Probability that candidates are taken from [default: the package's; at most the limits of s_seg]
    #[arg(long, value_name = "SCORE", value_parser = score)]
    candidates_from: Option<Score>,
    /// CSV to write
    #[arg(long, value_name = "CSV")]
    out: PathBuf,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    log: LogArgs,
}

fn score(text: &str) -> Result<Score, String> {
    let value: f32 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    Score::new(value).map_err(|e| e.to_string())
}

pub fn run(args: &Args) -> Result<()> {
    let rule = PseudoLabelRule {
        mitotic_seg_min: args.mitotic_seg,
        mimicker_seg_min: args.mimicker_seg,
        cls_boundary: args.boundary,
    };
    let source = args.of.source()?;
    let fold = source.fold(&args.of.fold)?;
    let mut detector = args.engine.detector()?;
    if let Some(lowest) = args.candidates_from {
        let rule = &mut detector.config.recipe.candidates;
        *rule = rule.from_threshold(lowest);
    }
    rule.reachable(detector.config.recipe.candidates.lowest()).context(
        "name --candidates-from SCORE no higher than --mitotic-seg and --mimicker-seg, or raise these if they may rise",
    )?;
    let reporter = &mut args.log.reporter();
    let c = label(&source, &fold, &mut detector, &rule, &args.out, reporter)?;
    outln!(
        "{}, {}, {} that are neither, on {}: {}",
        Many(c.figures, "figure"),
        Many(c.mimickers, "mimicker"),
        Many(c.excluded, "candidate"),
        Many(c.images, "image"),
        args.out.display()
    );
    Ok(())
}
