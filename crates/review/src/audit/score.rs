//! Precision ranges, Wilson intervals, pool-weighted means, kappa between reviewers.

use crate::agreement::{Agreement, Word, agreements};
use base::remedy::{Remedied, Remedy};
use base::table::{Format, Table, TableError};
use base::text::{Many, Shown};
use crops::CorpusError;
use crops::audit::{Entry, Key, Package, ReviewCounts, ReviewLog, Row, Verdict, tally};
use serde::Serialize;
use stats::StatsError;
use stats::interval::{Stratum, pool_weighted, precision_range, wilson};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

const LEVEL: f64 = 0.95;

/// A share with its range and Wilson intervals at both ends.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// Crops reviewed.
    pub reviewed: u64,
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
    /// The cohort.
    pub cohort: String,
    /// Crops it was drawn from, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<u64>,
    /// What was confirmed.
    #[serde(flatten)]
    pub share: Share,
}

/// One stratum.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Its name.
    pub stratum: String,
    /// By cohort.
    pub cohorts: Vec<CohortShare>,
    /// All reviewed crops together, each counting once.
    pub pooled: Share,
    /// Means weighted by the size of each cohort's pool; absent without pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_weighted: Option<PoolWeighted>,
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
    /// The audit.
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
/// known pool, box25, box50, box75, box_larger, elsewhere, elsewhere_asked.
///
/// # Errors
/// [`AuditError`].
pub fn score_counts(file: &Path) -> Result<Scored, AuditError> {
    score(&read_counts(file)?)
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
    for (name, entries) in logs.iter().filter(|(_, entries)| !entries.is_empty()) {
        reviewers.push(Reviewer {
            name: name.clone(),
            reviewed: entries.len(),
            of: package.items.len(),
            scored: score(&tally(&key, entries)?)?,
        });
    }
    if reviewers.is_empty() {
        return Err(AuditError::NoVerdict);
    }
    Ok(AuditScores { audit: key.audit, reviewers, agreement: agreement(&logs)? })
}

fn share(c: &ReviewCounts) -> Result<Share, AuditError> {
    let r = precision_range(c.confirmed, c.not_confirmed, c.unsure, LEVEL)?;
    Ok(Share {
        reviewed: c.confirmed + c.not_confirmed + c.unsure,
        range: [r.unsure_wrong.estimate, r.unsure_right.estimate],
        wilson_unsure_wrong: [r.unsure_wrong.lower, r.unsure_wrong.upper],
        wilson_unsure_right: [r.unsure_right.lower, r.unsure_right.upper],
    })
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
    let reviewed = |r: &&Row| r.counts.confirmed + r.counts.not_confirmed + r.counts.unsure > 0;
    let rows: Vec<&Row> = rows.iter().filter(reviewed).collect();
    let mut names = Vec::new();
    for r in &rows {
        if !names.contains(&r.stratum) {
            names.push(r.stratum.clone());
        }
    }
    let mut strata = Vec::new();
    for stratum in names {
        let own: Vec<&Row> = rows.iter().copied().filter(|r| r.stratum == stratum).collect();
        let cohorts = own
            .iter()
            .map(|r| {
                Ok(CohortShare { cohort: r.cohort.clone(), pool: r.pool, share: share(&r.counts)? })
            })
            .collect::<Result<Vec<_>, AuditError>>()?;
        let all = sum(own.iter().copied());
        strata.push(Part {
            pooled: share(&all)?,
            pool_weighted: weighted(&own)?,
            elsewhere: (all.elsewhere_asked > 0)
                .then(|| ratio(all.elsewhere, all.elsewhere_asked))
                .transpose()?,
            cohorts,
            stratum,
        });
    }
    let all = sum(rows.iter().copied());
    let n: u64 = all.boxes.iter().sum();
    let boxes = if n > 0 {
        #[expect(clippy::cast_precision_loss, reason = "counts of reviews")]
        let shares = all.boxes.map(|b| b as f64 / n as f64);
        Some(Boxes { confirmed: n, shares, within_50: ratio(all.boxes[0] + all.boxes[1], n)? })
    } else {
        None
    };
    Ok(Scored { strata, boxes })
}

fn weighted(rows: &[&Row]) -> Result<Option<PoolWeighted>, AuditError> {
    let Some(pools) = rows.iter().map(|r| r.pool).collect::<Option<Vec<u64>>>() else {
        return Ok(None);
    };
    let mean = |right: fn(&ReviewCounts) -> u64| -> Result<f64, AuditError> {
        let strata: Vec<Stratum> = rows
            .iter()
            .zip(&pools)
            .map(|(r, &pool)| {
                let c = &r.counts;
                #[expect(clippy::cast_precision_loss, reason = "counts of crops")]
                let pool = pool as f64;
                let trials = c.confirmed + c.not_confirmed + c.unsure;
                Stratum { successes: right(c), trials, pool }
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

fn read_counts(file: &Path) -> Result<Vec<Row>, AuditError> {
    let table = Table::read(file, &Format { comment: Some(b'#'), ..Format::default() })?;
    let [cohort, stratum, confirmed, not_confirmed, unsure] =
        ["cohort", "stratum", "confirmed", "not_confirmed", "unsure"].map(|n| table.need(&[n]));
    let needed = [confirmed?, not_confirmed?, unsure?];
    let (cohort, stratum) = (cohort?, stratum?);
    let further = ["pool", "box25", "box50", "box75", "box_larger", "elsewhere", "elsewhere_asked"]
        .map(|n| table.find(&[n]));
    let number = |row: usize, column: Option<usize>| -> Result<Option<u64>, TableError> {
        let filled = column.filter(|&c| !table.cell(row, c).is_empty());
        filled.map(|c| table.count(row, c)).transpose()
    };
    (0..table.len())
        .map(|row| {
            let count = |column| number(row, column).map(Option::unwrap_or_default);
            let [pool, b25, b50, b75, larger, elsewhere, asked] = further;
            Ok(Row {
                cohort: table.cell(row, cohort).into(),
                stratum: table.cell(row, stratum).into(),
                pool: number(row, pool)?,
                counts: ReviewCounts {
                    confirmed: count(Some(needed[0]))?,
                    not_confirmed: count(Some(needed[1]))?,
                    unsure: count(Some(needed[2]))?,
                    boxes: [count(b25)?, count(b50)?, count(b75)?, count(larger)?],
                    elsewhere: count(elsewhere)?,
                    elsewhere_asked: count(asked)?,
                },
            })
        })
        .collect()
}

fn range(r: [f64; 2]) -> String {
    if (r[0] - r[1]).abs() < 5e-4 {
        format!("{:.3}", r[0])
    } else {
        format!("{:.3}-{:.3}", r[0], r[1])
    }
}

impl fmt::Display for Scored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self;
        for part in &s.strata {
            writeln!(f, "\n{}", part.stratum)?;
            writeln!(
                f,
                "  {:<28}{:>10}{:>9}  {:<13} 95 % Wilson, worst case",
                "cohort", "pool", "reviewed", "confirmed"
            )?;
            for l in &part.cohorts {
                let pool = l.pool.map(|p| p.to_string()).unwrap_or_default();
                let [lo, hi] = l.share.wilson_unsure_wrong;
                writeln!(
                    f,
                    "  {:<28}{pool:>10}{:>9}  {:<13} {lo:.3}-{hi:.3}",
                    l.cohort,
                    l.share.reviewed,
                    range(l.share.range)
                )?;
            }
            let [lo, hi] = part.pooled.wilson_unsure_wrong;
            writeln!(
                f,
                "  {:<28}{:>10}{:>9}  {:<13} {lo:.3}-{hi:.3}",
                "pooled",
                "",
                part.pooled.reviewed,
                range(part.pooled.range)
            )?;
            if let Some(w) = &part.pool_weighted {
                writeln!(
                    f,
                    "  {:<28}{:>10}{:>9}  {}",
                    "pool-weighted",
                    w.pool,
                    "",
                    range(w.range)
                )?;
            }
            if let Some(e) = &part.elsewhere {
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
        }
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
        Ok(())
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
