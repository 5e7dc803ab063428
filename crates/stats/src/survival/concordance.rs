//! Harrell's C: how often the row at higher risk has the earlier event.
//!
//! # Pair rules
//! With `t` the time, two rows i and j of the same stratum are compared like this:
//!
//! | times | events | the pair is |
//! |---|---|---|
//! | t_i < t_j | i is an event | comparable |
//! | t_i < t_j | i is censored | not comparable (who failed first is unknown) |
//! | t_i = t_j | i event, j censored | comparable, i first (j was still at risk at t) |
//! | t_i = t_j | both events | tied in time: `tied_time`, or `tied_both` if the risks tie too; not in C |
//! | t_i = t_j | both censored | not comparable |
//!
//! A comparable pair is concordant if the earlier row has the higher risk, discordant if the
//! lower, and `tied_risk` if the risks are equal:
//! C = (concordant + tied_risk / 2) / (concordant + discordant + tied_risk).
//! With weights a pair counts w_i w_j. All five counts equal R's
//! `concordance(Surv(time, event) ~ risk, reverse = TRUE)`.
//!
//! References: Harrell et al., JAMA 247 (1982) 2543-2546; Therneau and Watson, The concordance
//! statistic and the Cox model, Mayo Clinic technical report 85 (2015).

use super::data::{Survival, SurvivalError, check_length, check_weights, order_key};
use super::ranks::Ranks;
use crate::bootstrap::{Bootstrap, Plan, bootstrap_counts};

/// Pair counts and the C-index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concordance {
    /// Comparable pairs in the order of the risk.
    pub concordant: f64,
    /// Comparable pairs ordered against it.
    pub discordant: f64,
    /// Comparable pairs with equal risk; each counts half.
    pub tied_risk: f64,
    /// Pairs of events at one time with different risks; not in C.
    pub tied_time: f64,
    /// Pairs of events at one time with equal risk; not in C.
    pub tied_both: f64,
    /// In [0, 1]; 0.5 for a risk without information.
    pub c_index: f64,
    /// Its infinitesimal-jackknife standard error, by cluster where clusters were given; absent
    /// in replicates.
    pub std_error: Option<f64>,
}

/// Harrell's C of `risk` (higher = earlier event) without weights or strata.
///
/// # Errors
/// When lengths differ, a risk is not finite, or no pair is comparable.
pub fn concordance(survival: &Survival, risk: &[f64]) -> Result<Concordance, SurvivalError> {
    Pairs::new(survival, risk, None, None)?.concordance(None)
}

#[derive(Debug, Clone, Copy)]
struct Row {
    rank: u32,
    index: u32,
    event: bool,
}

/// Rows sorted once so that the counts under any resampling weights take one sweep.
///
/// ```
/// # use stats::survival::{Survival, concordance::Pairs};
/// # use stats::bootstrap::Plan;
/// let outcome = Survival::new(&[1.0, 2.0, 3.0, 4.0], &[true, false, true, true]).unwrap();
/// let pairs = Pairs::new(&outcome, &[4.0, 3.0, 2.0, 1.0], None, None).unwrap();
/// assert_eq!(pairs.concordance(None).unwrap().c_index, 1.0);
/// let rows = pairs.bootstrap(Plan::default()).unwrap();
/// assert_eq!(rows.interval.lower, 1.0);
/// ```
#[derive(Debug, Clone)]
pub struct Pairs {
    /// By stratum, then time descending, then events after censored rows, then rank.
    rows: Vec<Row>,
    /// Ends of the runs of equal stratum and time in `rows`; the flag marks a stratum's last run.
    groups: Vec<(usize, bool)>,
    ranks: usize,
    weights: Option<Vec<f64>>,
}

/// Scratch space of one sweep.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    tree: Ranks,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    concordant: f64,
    discordant: f64,
    tied_risk: f64,
    tied_time: f64,
    tied_both: f64,
}

impl Counts {
    fn pairs(&self) -> f64 {
        self.concordant + self.discordant + self.tied_risk
    }

    fn c_index(&self) -> Option<f64> {
        let pairs = self.pairs();
        // Half the tied pairs first: exact for counts below 2^52.
        (pairs > 0.0).then(|| (self.concordant + self.tied_risk / 2.0) / pairs)
    }
}

impl Pairs {
    /// Sorts rows by stratum and time and ranks the risks.
    ///
    /// # Errors
    /// When lengths differ, a risk is not finite, or a weight is not positive.
    pub fn new(
        survival: &Survival,
        risk: &[f64],
        weights: Option<&[f64]>,
        strata: Option<&[usize]>,
    ) -> Result<Self, SurvivalError> {
        let n = survival.len();
        check_length("risk", n, risk.len())?;
        if let Some((row, &value)) = risk.iter().enumerate().find(|(_, r)| !r.is_finite()) {
            return Err(SurvivalError::Covariate { row, column: 0, value });
        }
        if let Some(weights) = weights {
            check_weights(weights, n)?;
        }
        if let Some(strata) = strata {
            check_length("strata", n, strata.len())?;
        }
        // -0.0 and 0.0 are one risk: adding 0.0 makes them so.
        let mut by_risk: Vec<(u64, u32)> =
            risk.iter().zip(0..).map(|(r, i)| (order_key(r + 0.0), i)).collect();
        by_risk.sort_unstable();
        let (mut rank, mut ranks) = (vec![0_u32; n], 0_u32);
        for tied in by_risk.chunk_by(|a, b| a.0 == b.0) {
            for &(_, i) in tied {
                rank[i as usize] = ranks;
            }
            ranks += 1;
        }
        let (time, event) = (survival.time(), survival.event());
        let stratum = |i: usize| strata.map_or(0, |s| s[i]);
        let mut keys: Vec<(usize, u64, bool, u32, u32)> = (0..n)
            .map(|i| (stratum(i), !order_key(time[i]), event[i], rank[i], i as u32))
            .collect();
        keys.sort_unstable();
        let rows: Vec<Row> =
            keys.into_iter().map(|(_, _, event, rank, index)| Row { rank, index, event }).collect();
        let mut groups = Vec::new();
        for i in 0..n {
            let this = rows[i].index as usize;
            let next = rows.get(i + 1).map(|r| r.index as usize);
            let new_stratum = next.is_none_or(|j| stratum(j) != stratum(this));
            if new_stratum || next.is_some_and(|j| time[j] != time[this]) {
                groups.push((i + 1, new_stratum));
            }
        }
        Ok(Self { rows, groups, ranks: ranks as usize, weights: weights.map(<[f64]>::to_vec) })
    }

    fn weight(&self, row: &Row) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| w[row.index as usize])
    }

    /// The counts, C, and its standard error: clusters, if given, are the independent units.
    ///
    /// # Errors
    /// When no pair is comparable, or the clusters' length is wrong.
    pub fn concordance(&self, cluster: Option<&[usize]>) -> Result<Concordance, SurvivalError> {
        let counts = self.sweep(&mut Scratch::default(), |row| self.weight(row));
        let c_index = counts.c_index().ok_or(SurvivalError::NoPairs)?;
        let influence = self.influence(&counts);
        let variance: f64 = match cluster {
            None => influence.iter().map(|d| d * d).sum(),
            Some(cluster) => {
                check_length("cluster", self.rows.len(), cluster.len())?;
                let mut sums = std::collections::HashMap::new();
                for (d, c) in influence.iter().zip(cluster) {
                    *sums.entry(*c).or_insert(0.0) += d;
                }
                let mut squares: Vec<f64> = sums.into_values().map(|d| d * d).collect();
                squares.sort_unstable_by(f64::total_cmp);
                squares.iter().sum()
            }
        };
        Ok(Concordance {
            concordant: counts.concordant,
            discordant: counts.discordant,
            tied_risk: counts.tied_risk,
            tied_time: counts.tied_time,
            tied_both: counts.tied_both,
            c_index,
            std_error: Some(variance.sqrt()),
        })
    }

    /// C when row i counts `counts[i]` times; `None` without comparable pairs. Copies of one row
    /// never form a pair with each other that enters C.
    ///
    /// # Panics
    /// When `counts` is shorter than the table.
    pub fn resampled(&self, scratch: &mut Scratch, counts: &[u32]) -> Option<f64> {
        self.sweep(scratch, |row| f64::from(counts[row.index as usize]) * self.weight(row))
            .c_index()
    }

    /// The paper's interval: rows (slides) are drawn with replacement, risks held fixed.
    ///
    /// # Errors
    /// When C does not exist on the data or in every replicate.
    #[doc(alias = "S1")]
    pub fn bootstrap(&self, plan: Plan) -> Result<Bootstrap, SurvivalError> {
        let estimate = self.estimate()?;
        Ok(bootstrap_counts(self.rows.len(), plan, estimate, Scratch::default, |s, counts| {
            self.resampled(s, counts)
        })?)
    }

    /// As [`Pairs::bootstrap`], drawing whole clusters (patients): all rows of a drawn cluster
    /// enter together.
    ///
    /// # Errors
    /// As [`Pairs::bootstrap`], and when the clusters' length is wrong.
    pub fn bootstrap_clusters(
        &self,
        cluster: &[usize],
        plan: Plan,
    ) -> Result<Bootstrap, SurvivalError> {
        check_length("cluster", self.rows.len(), cluster.len())?;
        let mut distinct = cluster.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let unit: Vec<usize> =
            cluster.iter().map(|c| distinct.partition_point(|d| d < c)).collect();
        let estimate = self.estimate()?;
        Ok(bootstrap_counts(distinct.len(), plan, estimate, Scratch::default, |s, counts| {
            self.sweep(s, |row| f64::from(counts[unit[row.index as usize]]) * self.weight(row))
                .c_index()
        })?)
    }

    fn estimate(&self) -> Result<f64, SurvivalError> {
        self.sweep(&mut Scratch::default(), |row| self.weight(row))
            .c_index()
            .ok_or(SurvivalError::NoPairs)
    }

    fn sweep(&self, scratch: &mut Scratch, weight: impl Fn(&Row) -> f64) -> Counts {
        let mut counts = Counts::default();
        let tree = &mut scratch.tree;
        tree.reset(self.ranks);
        let mut start = 0;
        for &(end, last) in &self.groups {
            let group = &self.rows[start..end];
            let events = group.partition_point(|r| !r.event);
            for row in &group[..events] {
                let w = weight(row);
                if w > 0.0 {
                    tree.add(row.rank as usize, w);
                }
            }
            let deaths = &group[events..];
            for row in deaths {
                let w = weight(row);
                if w > 0.0 {
                    let (below, at, above) = tree.around(row.rank as usize);
                    counts.concordant += w * below;
                    counts.tied_risk += w * at;
                    counts.discordant += w * above;
                }
            }
            if deaths.len() > 1 {
                let pairs = |rows: &[Row]| {
                    let (sum, squares) = rows.iter().fold((0.0, 0.0), |(s, q), r| {
                        let w = weight(r);
                        (s + w, q + w * w)
                    });
                    (sum * sum - squares) / 2.0
                };
                let same: f64 = deaths.chunk_by(|a, b| a.rank == b.rank).map(pairs).sum();
                counts.tied_both += same;
                counts.tied_time += pairs(deaths) - same;
            }
            for row in deaths {
                let w = weight(row);
                if w > 0.0 {
                    tree.add(row.rank as usize, w);
                }
            }
            if last {
                tree.reset(self.ranks);
            }
            start = end;
        }
        counts
    }

    /// dC/dw_i times w_i for every row, in table order.
    fn influence(&self, counts: &Counts) -> Vec<f64> {
        let n = self.rows.len();
        // Per row: the weight of concordant, discordant and all comparable partners.
        let mut partners = vec![(0.0, 0.0, 0.0); n];
        let mut note = |row: &Row, c: f64, d: f64, t: f64| {
            let p = &mut partners[row.index as usize];
            *p = (p.0 + c, p.1 + d, p.2 + c + d + t);
        };
        let mut tree = Ranks::default();
        let mut strata_start = 0;
        let mut first_group = 0;
        for (g, &(_, last)) in self.groups.iter().enumerate() {
            if !last {
                continue;
            }
            // Later rows as partners of each event (times descending) ...
            tree.reset(self.ranks);
            let mut start = strata_start;
            for &(end, _) in &self.groups[first_group..=g] {
                let group = &self.rows[start..end];
                let events = group.partition_point(|r| !r.event);
                for row in &group[..events] {
                    tree.add(row.rank as usize, self.weight(row));
                }
                for row in &group[events..] {
                    let (below, at, above) = tree.around(row.rank as usize);
                    note(row, below, above, at);
                }
                for row in &group[events..] {
                    tree.add(row.rank as usize, self.weight(row));
                }
                start = end;
            }
            // ... and earlier events as partners of each row (times ascending).
            tree.reset(self.ranks);
            let mut end = start;
            for h in (first_group..=g).rev() {
                let begin = if h == first_group { strata_start } else { self.groups[h - 1].0 };
                let group = &self.rows[begin..end];
                let events = group.partition_point(|r| !r.event);
                for row in &group[events..] {
                    let (below, at, above) = tree.around(row.rank as usize);
                    note(row, above, below, at);
                }
                for row in &group[events..] {
                    tree.add(row.rank as usize, self.weight(row));
                }
                for row in &group[..events] {
                    let (below, at, above) = tree.around(row.rank as usize);
                    note(row, above, below, at);
                }
                end = begin;
            }
            strata_start = start;
            first_group = g + 1;
        }
        let pairs = counts.pairs();
        let somers = (counts.concordant - counts.discordant) / pairs;
        let mut influence = vec![0.0; n];
        for row in &self.rows {
            let (c, d, all) = partners[row.index as usize];
            influence[row.index as usize] =
                self.weight(row) * ((c - d) / pairs - somers / pairs * all) / 2.0;
        }
        influence
    }
}
