//! `mithras corpus split`, `overlap`, `merge`, `interchange`.

use anyhow::Context;
use corpus::split::{GroupBy, SplitManifest, refuse_overlap};
use corpus::transform;
use corpus::{Corpus, Header};
use std::path::PathBuf;
use std::process::ExitCode;

/// Folds of whole patients or slides, stratified by cohort and label, fixed by a seed (K4).
#[derive(clap::Args)]
pub struct Split {
    /// Corpus folder.
    corpus: PathBuf,
    /// Number of folds.
    #[arg(long, default_value_t = 3)]
    folds: usize,
    /// What stays together: patient (slide where no patient is known) or slide.
    #[arg(long, default_value = "patient", value_parser = ["patient", "slide"])]
    group_by: String,
    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Split manifest to write; an existing one is checked instead and must be equal.
    #[arg(long)]
    out: PathBuf,
}

/// Refuses two corpora that share a slide, a patient or an image (C5).
#[derive(clap::Args)]
pub struct Overlap {
    /// Corpus for training.
    train: PathBuf,
    /// Corpora for evaluation.
    #[arg(required = true)]
    evaluation: Vec<PathBuf>,
}

/// Joins corpora into a new one.
#[derive(clap::Args)]
pub struct Merge {
    /// Corpus folders, in order.
    #[arg(required = true, num_args = 1..)]
    corpora: Vec<PathBuf>,
    /// New corpus folder.
    #[arg(long)]
    out: PathBuf,
    /// Name of the new corpus.
    #[arg(long, default_value = "merged")]
    name: String,
}

/// Interchanges the least certain pseudo-labels for the noise study (C6).
#[derive(clap::Args)]
pub struct Interchange {
    /// Corpus folder.
    corpus: PathBuf,
    /// New corpus folder.
    #[arg(long)]
    out: PathBuf,
    /// Labels of each kind to swap; all pseudo-figures in the range by default.
    #[arg(long)]
    count: Option<usize>,
    /// Pseudo-figures need s_cls above this.
    #[arg(long, default_value_t = 0.5)]
    above: f32,
    /// Pseudo-figures need s_cls up to this.
    #[arg(long, default_value_t = 0.6)]
    up_to: f32,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `corpus split`.
pub fn split(a: &Split) -> anyhow::Result<ExitCode> {
    let corpus = Corpus::open(&a.corpus)?;
    let by = if a.group_by == "slide" { GroupBy::Slide } else { GroupBy::Patient };
    let made = corpus::split::split(&corpus, a.folds, by, a.seed)?;
    if a.out.exists() {
        let old = SplitManifest::read(&a.out, &corpus)?;
        anyhow::ensure!(
            old == made,
            "{} holds another split ({}); name another file",
            a.out.display(),
            old.digest
        );
    } else {
        made.write(&a.out)?;
    }
    for (i, (names, counts)) in made.folds.iter().zip(&made.counts).enumerate() {
        let counts: Vec<String> = counts.iter().map(|(l, n)| format!("{n} {l}")).collect();
        println!("fold {i}: {} groups, {}", names.len(), counts.join(", "));
    }
    if !made.test.is_empty() {
        println!("test data, in no fold: {} groups", made.test.len());
    }
    println!("digest {}", made.digest);
    Ok(ExitCode::SUCCESS)
}

/// Runs `corpus overlap`.
pub fn overlap(a: &Overlap) -> anyhow::Result<ExitCode> {
    let train = Corpus::open(&a.train)?;
    for dir in &a.evaluation {
        refuse_overlap(&train, &Corpus::open(dir)?)?;
        println!("{} and {} share nothing", a.train.display(), dir.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `corpus merge`.
pub fn merge(a: &Merge) -> anyhow::Result<ExitCode> {
    let parts = a.corpora.iter().map(Corpus::open).collect::<Result<Vec<_>, _>>()?;
    let header = Header { name: a.name.clone(), builder: super::builder(), ..Header::default() };
    let m = transform::merge(&parts, &a.out, header)?;
    println!("{} crops of {} slides, digest {}", m.counts.crops, m.counts.slides, m.digest);
    Ok(ExitCode::SUCCESS)
}

/// Runs `corpus interchange`.
pub fn interchange(a: &Interchange) -> anyhow::Result<ExitCode> {
    let corpus = Corpus::open(&a.corpus)?;
    let what = transform::Interchange { above: a.above, up_to: a.up_to, count: a.count };
    let r = transform::interchange(&corpus, &a.out, what)?;
    let json = serde_json::to_string_pretty(&r).context("report")?;
    artifact::file::write(&a.out.join("interchange.json"), json.as_bytes())?;
    if a.json {
        println!("{json}");
        return Ok(ExitCode::SUCCESS);
    }
    let n = r.figures_swapped + r.mimickers_swapped;
    println!("{n} of {} labels interchanged ({:.3} %)", r.crops, r.percent);
    for (what, range) in [("figures", r.figure_scores), ("mimickers", r.mimicker_scores)] {
        if let Some([lo, hi]) = range {
            println!("{what}: s_cls {lo:.4} to {hi:.4}");
        }
    }
    for (cohort, [f, m]) in &r.cohorts {
        println!("{cohort}: {f} figures, {m} mimickers");
    }
    println!("digest {}", r.digest);
    Ok(ExitCode::SUCCESS)
}
