//! Precision ranges, Wilson intervals, pool-weighted means, kappa between reviewers.

use super::counts::read_counts;
use crate::agreement::{Agreement, Word, agreements};
use base::remedy::{Remedied, Remedy};
use base::table::{TableError, Unread};
use base::text::{Many, Shown};
use crops::CorpusError;
use crops::audit::{self, Entry, Key, Package, ReviewCounts, ReviewLog, Row, Verdict, tally};
use serde::Serialize;
use stats::StatsError;
use stats::interval::{Stratum, pool_weighted, precision_range, wilson};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

const LEVEL: f64 = 0.95;

/// What was confirmed of the crops reviewed.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// Crops reviewed.
    pub reviewed: u64,
    /// Absent without a verdict.
    #[serde(flatten)]
    pub estimate: Option<Estimate>,
}

/// A share with its range and Wilson intervals at both ends.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    /// Unsure verdicts counted as wrong, and as right.
    pub range: [f64; 2],
    /// 95 % Wilson interval with unsure as wrong: the worst case.
    pub wilson_unsure_wrong: [f64; 2],
    /// 95 % Wilson interval with unsure as right.
    pub wilson_unsure_right: [f64; 2],
}

/// One cohort of a stratum.
#[derive(Clone, Debug, Serialize)]
pub struct CohortShare {
    /// As the corpus names it.
    pub cohort: String,
    /// Crops it was drawn from, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<u64>,
    /// What was confirmed.
    #[serde(flatten)]
    pub share: Share,
}

/// The verdicts on one stratum, by cohort and together.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Its name.
    pub stratum: String,
    /// By cohort.
    pub cohorts: Vec<CohortShare>,
    /// All reviewed crops together, each counting once.
    pub pooled: Share,
    /// Means weighted by the size of each cohort's pool; absent without pools and where `not_weighted` has the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_weighted: Option<PoolWeighted>,
    /// Why some pools give no weighted mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_weighted: Option<NotWeighted>,
    /// Crops without a confirmed centre that hold a figure elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Ratio>,
}

/// Means weighted by the pools.
#[derive(Clone, Debug, Serialize)]
pub struct PoolWeighted {
    /// Crops of all pools.
    pub pool: u64,
    /// Unsure verdicts counted as wrong, and as right.
    pub range: [f64; 2],
}

/// Cohorts that are missing in a mean over all pools.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotWeighted {
    /// Cohorts without a verdict.
    pub without_verdict: Vec<String>,
    /// Cohorts whose pool is not known.
    pub without_pool: Vec<String>,
    /// Share of all pools that the cohorts with a verdict are, if all pools are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered: Option<f64>,
}

/// A share with its interval.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// How many.
    pub count: u64,
    /// Of how many.
    pub of: u64,
    /// Their share.
    pub share: f64,
    /// Its 95 % Wilson interval.
    pub wilson: [f64; 2],
}

/// Smallest boxes of confirmed figures.
#[derive(Clone, Debug, Serialize)]
pub struct Boxes {
    /// Confirmed figures with a box.
    pub confirmed: u64,
    /// Shares of 25, 50, 75, larger.
    pub shares: [f64; 4],
    /// Boxes of at most 50 px.
    pub within_50: Ratio,
}

/// A scored review.
#[derive(Clone, Debug, Serialize)]
pub struct Scored {
    /// One after the other.
    pub strata: Vec<Part>,
    /// Smallest boxes of all confirmed figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boxes: Option<Boxes>,
    /// Columns of a table of counts that are not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_columns: Option<Unread>,
}

/// One reviewer's verdicts, scored.
#[derive(Clone, Debug, Serialize)]
pub struct Reviewer {
    /// Who.
    pub name: String,
    /// Crops with a verdict.
    pub reviewed: usize,
    /// Crops of the package.
    pub of: usize,
    /// The score.
    #[serde(flatten)]
    pub scored: Scored,
}

/// All reviews of an audit, scored.
#[derive(Debug, Serialize)]
pub struct AuditScores {
    /// [`crops::audit::Package::audit`]: which draw was reviewed.
    pub audit: String,
    /// One after the other, by name.
    pub reviewers: Vec<Reviewer>,
    /// Every two reviewers of the same pictures.
    pub agreement: Vec<Agreement>,
}

/// Why an audit cannot be scored.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Key, package or reviews cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The table of counts cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A statistic is not defined.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// Key and package are not of one draw.
    #[error("key.json and package/ belong to different draws")]
    Draws,
    /// Nobody has reviewed.
    #[error("no review yet in {}", Shown(package))]
    NoReview {
        /// Folder of the package.
        package: PathBuf,
    },
    /// The reviews are empty.
    #[error("the reviews hold no verdict yet")]
    NoVerdict,
}

/// Scores a table of counts: columns cohort, stratum, confirmed, not_confirmed, unsure, and where
/// known reviewed, pool, box25, box50, box75, box_larger, elsewhere, elsewhere_asked. A cohort without verdicts has
/// zeros. Boxes are of confirmed figures of the row, or of all rows if one row alone has boxes.
///
/// # Errors
/// [`AuditError`].
pub fn score_counts(file: &Path) -> Result<Scored, AuditError> {
    let (rows, unread_columns) = read_counts(file)?;
    Ok(Scored { unread_columns, ..score(&rows)? })
}

/// Scores the reviews of a folder with `key.json` and `package/`.
///
/// # Errors
/// [`AuditError`].
pub fn score_reviews(dir: &Path) -> Result<AuditScores, AuditError> {
    let key = Key::read(&dir.join("key.json"))?;
    let folder = dir.join("package");
    let package = Package::read(&folder)?;
    if key.audit != package.audit {
        return Err(AuditError::Draws);
    }
    let logs = ReviewLog::read_all(&folder, &key.audit)?;
    if logs.is_empty() {
        return Err(AuditError::NoReview { package: folder });
    }
    let mut reviewers = Vec::new();
    // A stratum that no crop was drawn from is not part of the audit.
    let drawn = |r: &Row| {
        let own = |s: &&audit::Stratum| s.cohort == r.cohort && s.stratum == r.stratum;
        key.strata.iter().find(own).is_some_and(|s| s.drawn > 0)
    };
    for (name, entries) in logs.iter().filter(|(_, entries)| !entries.is_empty()) {
        let mut rows = tally(&key, entries)?;
        rows.retain(drawn);
        reviewers.push(Reviewer {
            name: name.clone(),
            reviewed: entries.len(),
            of: package.items.len(),
            scored: score(&rows)?,
        });
    }
    if reviewers.is_empty() {
        return Err(AuditError::NoVerdict);
    }
    Ok(AuditScores { audit: key.audit, reviewers, agreement: agreement(&logs)? })
}

fn reviewed(c: &ReviewCounts) -> u64 {
    c.confirmed + c.not_confirmed + c.unsure
}

fn share(c: &ReviewCounts) -> Result<Share, AuditError> {
    let reviewed = reviewed(c);
    if reviewed == 0 {
        return Ok(Share { reviewed, estimate: None });
    }
    let r = precision_range(c.confirmed, c.not_confirmed, c.unsure, LEVEL)?;
    let estimate = Estimate {
        range: [r.unsure_wrong.estimate, r.unsure_right.estimate],
        wilson_unsure_wrong: [r.unsure_wrong.lower, r.unsure_wrong.upper],
        wilson_unsure_right: [r.unsure_right.lower, r.unsure_right.upper],
    };
    Ok(Share { reviewed, estimate: Some(estimate) })
}

fn ratio(count: u64, of: u64) -> Result<Ratio, AuditError> {
    let i = wilson(count, of, LEVEL)?;
    Ok(Ratio { count, of, share: i.estimate, wilson: [i.lower, i.upper] })
}

fn sum<'r>(rows: impl IntoIterator<Item = &'r Row>) -> ReviewCounts {
    rows.into_iter().fold(ReviewCounts::default(), |mut s, r| {
        s.confirmed += r.counts.confirmed;
        s.not_confirmed += r.counts.not_confirmed;
        s.unsure += r.counts.unsure;
        s.elsewhere += r.counts.elsewhere;
        s.elsewhere_asked += r.counts.elsewhere_asked;
        for (a, b) in s.boxes.iter_mut().zip(r.counts.boxes) {
            *a += b;
        }
        s
    })
}

fn score(rows: &[Row]) -> Result<Scored, AuditError> {
    let mut names = Vec::new();
    for r in rows {
        if !names.contains(&r.stratum) {
            names.push(r.stratum.clone());
        }
    }
    let mut strata = Vec::new();
    for stratum in names {
        let own: Vec<&Row> = rows.iter().filter(|r| r.stratum == stratum).collect();
        let cohorts = own
            .iter()
            .map(|r| {
                Ok(CohortShare { cohort: r.cohort.clone(), pool: r.pool, share: share(&r.counts)? })
            })
            .collect::<Result<Vec<_>, AuditError>>()?;
        let all = sum(own.iter().copied());
        let (pool_weighted, not_weighted) = match not_weighted(&own) {
            None => (weighted(&own)?, None),
            reason => (None, reason),
        };
        strata.push(Part {
            pooled: share(&all)?,
            pool_weighted,
            not_weighted,
            elsewhere: (all.elsewhere_asked > 0)
                .then(|| ratio(all.elsewhere, all.elsewhere_asked))
                .transpose()?,
            cohorts,
            stratum,
        });
    }
    let all = sum(rows);
    let n: u64 = all.boxes.iter().sum();
    let boxes = if n > 0 {
        #[expect(clippy::cast_precision_loss, reason = "counts of reviews")]
        let shares = all.boxes.map(|b| b as f64 / n as f64);
        Some(Boxes { confirmed: n, shares, within_50: ratio(all.boxes[0] + all.boxes[1], n)? })
    } else {
        None
    };
    Ok(Scored { strata, boxes, unread_columns: None })
}

/// The cohorts that are missing in a mean over all pools; `None` where it is complete, or without pools.
fn not_weighted(rows: &[&Row]) -> Option<NotWeighted> {
    if rows.iter().all(|r| r.pool.is_none()) {
        return None;
    }
    let names = |lacks: fn(&Row) -> bool| -> Vec<String> {
        rows.iter().filter(|r| lacks(r)).map(|r| r.cohort.clone()).collect()
    };
    // An empty pool has no weight.
    let without_verdict = names(|r| reviewed(&r.counts) == 0 && r.pool != Some(0));
    let without_pool = names(|r| r.pool.is_none());
    if without_verdict.is_empty() && without_pool.is_empty() {
        return None;
    }
    let pools: Option<u64> = rows.iter().map(|r| r.pool).sum();
    let with = rows.iter().filter(|r| reviewed(&r.counts) > 0).filter_map(|r| r.pool).sum::<u64>();
    #[expect(clippy::cast_precision_loss, reason = "counts of crops")]
    let covered = pools.map(|all| with as f64 / all as f64);
    Some(NotWeighted { without_verdict, without_pool, covered })
}

fn weighted(rows: &[&Row]) -> Result<Option<PoolWeighted>, AuditError> {
    let rows: Vec<&Row> = rows.iter().copied().filter(|r| r.pool != Some(0)).collect();
    let Some(pools) = rows.iter().map(|r| r.pool).collect::<Option<Vec<u64>>>() else {
        return Ok(None);
    };
    if pools.is_empty() {
        return Ok(None);
    }
    let mean = |right: fn(&ReviewCounts) -> u64| -> Result<f64, AuditError> {
        let strata: Vec<Stratum> = rows
            .iter()
            .zip(&pools)
            .map(|(r, &pool)| {
                #[expect(clippy::cast_precision_loss, reason = "counts of crops")]
                let pool = pool as f64;
                Stratum { successes: right(&r.counts), trials: reviewed(&r.counts), pool }
            })
            .collect();
        Ok(pool_weighted(&strata, LEVEL)?.estimate)
    };
    Ok(Some(PoolWeighted {
        pool: pools.iter().sum(),
        range: [mean(|c| c.confirmed)?, mean(|c| c.confirmed + c.unsure)?],
    }))
}

fn agreement(
    logs: &BTreeMap<String, BTreeMap<String, Entry>>,
) -> Result<Vec<Agreement>, AuditError> {
    let class = |e: &Entry| match e.verdict {
        Verdict::Confirmed => Word::Yes,
        Verdict::NotConfirmed => Word::No,
        Verdict::Unsure => Word::Unsure,
    };
    let words = logs.iter().map(|(name, log)| {
        (name.clone(), log.iter().map(|(k, e)| (k.clone(), class(e))).collect())
    });
    Ok(agreements(&words.collect())?)
}

fn range(r: [f64; 2]) -> String {
    if (r[0] - r[1]).abs() < 5e-4 {
        format!("{:.3}", r[0])
    } else {
        format!("{:.3}-{:.3}", r[0], r[1])
    }
}

/// A line of the table: name, pool, and what was confirmed.
fn line(f: &mut fmt::Formatter<'_>, name: &str, pool: Option<u64>, share: &Share) -> fmt::Result {
    let pool = pool.map(|p| p.to_string()).unwrap_or_default();
    write!(f, "  {name:<28}{pool:>10}{:>9}  ", share.reviewed)?;
    match &share.estimate {
        Some(e) => {
            let [lo, hi] = e.wilson_unsure_wrong;
            writeln!(f, "{:<13} {lo:.3}-{hi:.3}", range(e.range))
        }
        None => writeln!(f, "-"),
    }
}

impl fmt::Display for NotWeighted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons = Vec::new();
        if !self.without_verdict.is_empty() {
            reasons.push(format!("no verdict on {}", self.without_verdict.join(", ")));
        }
        if !self.without_pool.is_empty() {
            reasons.push(format!("unknown pool of {}", self.without_pool.join(", ")));
        }
        write!(f, "{}", reasons.join("; "))?;
        match self.covered {
            Some(share) => write!(f, "; the others are {:.1} % of the pools", 100.0 * share),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.stratum)?;
        writeln!(
            f,
            "  {:<28}{:>10}{:>9}  {:<13} 95 % Wilson, worst case",
            "cohort", "pool", "reviewed", "confirmed"
        )?;
        for l in &self.cohorts {
            line(f, &l.cohort, l.pool, &l.share)?;
        }
        line(f, "pooled", None, &self.pooled)?;
        if let Some(w) = &self.pool_weighted {
            writeln!(f, "  {:<28}{:>10}{:>9}  {}", "pool-weighted", w.pool, "", range(w.range))?;
        }
        if let Some(reason) = &self.not_weighted {
            writeln!(f, "  {:<28}{:>10}{:>9}  - ({reason})", "pool-weighted", "", "")?;
        }
        if let Some(e) = &self.elsewhere {
            writeln!(
                f,
                "  figure elsewhere: {} of {} ({:.2} %; 95 % Wilson {:.2}-{:.2} %)",
                e.count,
                e.of,
                100.0 * e.share,
                100.0 * e.wilson[0],
                100.0 * e.wilson[1]
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Scored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self;
        s.strata.iter().try_for_each(|part| write!(f, "{part}"))?;
        if let Some(b) = &s.boxes {
            let p = b.shares.map(|s| 100.0 * s);
            writeln!(
                f,
                "\nsmallest box of {} confirmed figures: 25 px {:.1} %, 50 px {:.1} %, 75 px {:.1} %, larger {:.1} %; {:.1} % within 50 px",
                b.confirmed,
                p[0],
                p[1],
                p[2],
                p[3],
                100.0 * b.within_50.share
            )?;
        }
        s.unread_columns.iter().try_for_each(|unread| writeln!(f, "note: {unread}"))
    }
}

impl fmt::Display for AuditScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for r in &self.reviewers {
            writeln!(f, "{}: {} of {} reviewed", r.name, r.reviewed, Many(r.of, "picture"))?;
            write!(f, "{}", r.scored)?;
        }
        for g in &self.agreement {
            writeln!(f, "{g}")?;
        }
        Ok(())
    }
}

impl Remedied for AuditError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Corpus(e) => e.remedy(),
            Self::NoReview { .. } => Some(Remedy::ReviewAudit),
            _ => None,
        }
    }
}
