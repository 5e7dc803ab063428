//! `mithras corpus split`, `overlap`, `merge`, `interchange`.

use anyhow::Context;
use base::text::Many;
use crops::transform;
use crops::{Corpus, Header};
use regions::folds::{FoldManifest, Scheme, Splittable};
use regions::overlap::refuse_overlap;
use regions::{self, Dataset};
use std::path::PathBuf;

/// Makes the folds that every trainer reads: whole patients and slides, with equal shares of figures
///
/// Folds belong to slides and patients by name. Name all datasets of the same slides at once (regions for a
/// segmenter, crops for a classifier), and one manifest serves all trainings and the calibration.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  mithras corpus split sets/midog22 --out folds.json\n  \
    mithras corpus split sets/midog22 sets/midog22-crops --splits published.csv --out folds.json")]
pub struct Split {
    /// Datasets of crops or regions.
    #[arg(required = true, value_name = "DATASET")]
    datasets: Vec<PathBuf>,
    /// Number of folds.
    #[arg(long, default_value_t = 3)]
    folds: usize,
    /// One fold per slide instead (with all else of its patient).
    #[arg(long, conflicts_with = "folds")]
    leave_one_out: bool,
    /// Takes the folds from a table instead: a column `image` (slide or patient) and a column `fold` with the
    /// fold that holds it out, or `train` or `test`.
    #[arg(long, value_name = "CSV", conflicts_with_all = ["folds", "leave_one_out", "seed"])]
    splits: Option<PathBuf>,
    /// Seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Manifest to write; an existing one is checked instead and must be equal.
    #[arg(long)]
    out: PathBuf,
}

/// Refuses two datasets, of crops or of regions, that share a slide, a patient or an image.
#[derive(clap::Args)]
pub struct Overlap {
    /// Dataset for training.
    train: PathBuf,
    /// Datasets for evaluation.
    #[arg(required = true)]
    evaluation: Vec<PathBuf>,
}

/// Joins datasets of one kind, crops or regions, into a new one.
#[derive(clap::Args)]
pub struct Merge {
    /// Dataset folders, in order.
    #[arg(required = true, num_args = 1..)]
    corpora: Vec<PathBuf>,
    /// Folder of the new dataset.
    #[arg(long)]
    out: PathBuf,
    /// Name of the new dataset.
    #[arg(long, default_value = "merged")]
    name: String,
}

/// Interchanges the least certain pseudo-labels for the noise study.
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
    /// Scores in place of the corpus's s_cls: predictions of held-out crops (RUN/predictions.csv of `train finetune`)
    #[arg(long, value_name = "CSV")]
    scores: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub fn split(a: &Split) -> anyhow::Result<()> {
    let scheme = if a.leave_one_out { Scheme::LeaveOneOut } else { Scheme::Stratified(a.folds) };
    let sets = a.datasets.iter().map(|d| Splittable::open(d)).collect::<Result<Vec<_>, _>>()?;
    let made = match &a.splits {
        Some(table) => FoldManifest::given(&sets, table)?,
        None => FoldManifest::of_all(&sets, scheme, a.seed)?,
    };
    made.write_once(&a.out)?;
    crate::show::text(&made.to_string());
    Ok(())
}

pub fn overlap(a: &Overlap) -> anyhow::Result<()> {
    for dir in &a.evaluation {
        refuse_overlap(&a.train, dir)?;
        outln!("{} and {} share nothing", a.train.display(), dir.display());
    }
    Ok(())
}

pub fn merge(a: &Merge) -> anyhow::Result<()> {
    if a.corpora.iter().any(|d| Dataset::is_dataset(d)) {
        let parts = a.corpora.iter().map(Dataset::open).collect::<Result<Vec<_>, _>>()?;
        let set = regions::merge(&parts, &a.out, &a.name, &mithras::program())?;
        crate::show::text(&set.to_string());
        return Ok(());
    }
    let parts = a.corpora.iter().map(Corpus::open).collect::<Result<Vec<_>, _>>()?;
    let header = Header { name: a.name.clone(), builder: mithras::program(), ..Header::default() };
    let m = transform::merge(&parts, &a.out, header)?;
    let (crops, slides) = (Many(m.counts.crops, "crop"), Many(m.counts.slides, "slide"));
    outln!("{crops} of {slides}, digest {}", m.digest);
    Ok(())
}

pub fn interchange(a: &Interchange) -> anyhow::Result<()> {
    let corpus = Corpus::open(&a.corpus)?;
    let what = transform::Interchange { above: a.above, up_to: a.up_to, count: a.count };
    let scores = a.scores.as_ref().map(|p| transform::Scores::read(p, &corpus)).transpose()?;
    let r = transform::interchange(&corpus, &a.out, what, scores.as_ref())?;
    let json = serde_json::to_string_pretty(&r).context("report")?;
    base::file::write(&a.out.join("interchange.json"), json.as_bytes())?;
    crate::show::result(a.json, &r)
}
