//! `mithras audit score`.

use crate::show::result;
use review::audit::{score_counts, score_reviews};
use std::path::PathBuf;

/// Precision ranges, Wilson intervals, pool-weighted means, kappa between reviewers.
#[derive(clap::Args)]
pub struct Args {
    /// Folder of `audit sample` with `key.json` and `package/`.
    #[arg(required_unless_present = "counts", conflicts_with = "counts")]
    audit: Option<PathBuf>,
    /// Scores a table of counts instead: columns cohort, stratum, confirmed, not_confirmed,
    /// unsure, and where known pool, box25, box50, box75, box_larger, elsewhere, elsewhere_asked.
    #[arg(long, value_name = "CSV")]
    counts: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(a: &Args) -> anyhow::Result<()> {
    match (&a.counts, &a.audit) {
        (Some(file), _) => result(a.json, &score_counts(file)?)?,
        (None, Some(dir)) => result(a.json, &score_reviews(dir)?)?,
        (None, None) => anyhow::bail!("no audit folder"),
    }
    Ok(())
}
