//! `mithras audit sample`.

use anyhow::Context;
use corpus::Corpus;
use corpus::audit::{Question, SampleOptions, StratumBy, sample};
use mitosis::text::Many;
use std::path::PathBuf;

/// Draws a blinded, seeded, stratified sample.
///
/// By default 30 mitotic figures and 20 mimickers per cohort. For tissue tiles whose subtype says
/// which filter kept them: `--question tumour --by subtype --per both=25 --per a-only=25 --per
/// b-only=25`.
#[derive(clap::Args)]
pub struct Args {
    /// Corpus folder.
    corpus: PathBuf,
    /// Writes `package/` for the reviewer and `key.json` for scoring.
    #[arg(long)]
    out: PathBuf,
    /// What the reviewer is asked.
    #[arg(long, default_value = "figure", value_parser = ["figure", "tumour"])]
    question: String,
    /// What makes a stratum besides the cohort.
    #[arg(long, default_value = "label", value_parser = ["label", "subtype"])]
    by: String,
    /// Crops per cohort of a stratum: NAME=COUNT. Repeat for several.
    #[arg(long, value_name = "NAME=COUNT")]
    per: Vec<String>,
    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Takes what there is where a stratum holds too few.
    #[arg(long)]
    allow_short: bool,
}

/// Runs `audit sample`.
pub fn run(a: &Args) -> anyhow::Result<()> {
    let corpus = Corpus::open(&a.corpus)?;
    let by = if a.by == "subtype" { StratumBy::Subtype } else { StratumBy::Label };
    let per_cohort = by.counts(&a.per).context("--per")?;
    let question = if a.question == "tumour" { Question::Tumour } else { Question::MitoticFigure };
    let options =
        SampleOptions { question, by, per_cohort, seed: a.seed, allow_short: a.allow_short };
    let key = sample(&corpus, &a.out, &options)?;
    key.strata.iter().for_each(|s| println!("{s}"));
    println!("{} in {}", Many(key.items.len(), "picture"), a.out.join("package").display());
    println!("review: mithras audit serve {}", a.out.join("package").display());
    println!("keep {} from the reviewer", a.out.join("key.json").display());
    Ok(())
}
