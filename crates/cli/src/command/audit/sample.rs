//! `mithras audit sample`.

use anyhow::Context;
use corpus::Corpus;
use corpus::audit::{Question, SampleOptions, StratumBy, sample};
use std::collections::BTreeMap;
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
    let mut per_cohort = BTreeMap::new();
    for pair in &a.per {
        let (name, count) = pair.rsplit_once('=').context("--per wants NAME=COUNT")?;
        let count = count.parse().with_context(|| format!("--per {pair}"))?;
        per_cohort.insert(name.to_owned(), count);
    }
    if per_cohort.is_empty() {
        anyhow::ensure!(by == StratumBy::Label, "--by subtype needs --per NAME=COUNT");
        per_cohort.insert("mitotic_figure".into(), 30);
        per_cohort.insert("mimicker".into(), 20);
    }
    let question = if a.question == "tumour" { Question::Tumour } else { Question::MitoticFigure };
    let options =
        SampleOptions { question, by, per_cohort, seed: a.seed, allow_short: a.allow_short };
    let key = sample(&corpus, &a.out, &options)?;
    for s in &key.strata {
        println!("{:<28} {:<16} {:>5} of {}", s.cohort, s.stratum, s.drawn, s.pool);
    }
    println!("{} pictures in {}", key.items.len(), a.out.join("package").display());
    println!("review: mithras audit serve {}", a.out.join("package").display());
    println!("keep {} from the reviewer", a.out.join("key.json").display());
    Ok(())
}
