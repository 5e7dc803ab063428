//! One threshold pair over several folds, by maximal pooled F1.

use super::{MatchError, Reach, Rule, Tally};
use crate::{Microns, OperatingPoint, Physical, Point, Score};

/// A candidate with its scores and its place in micrometres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Centroid, um from the level-0 origin.
    pub at: Point<Physical>,
    /// First-stage score.
    pub s_seg: Score,
    /// Second-stage score; `None` in a segmentation-only run.
    pub s_cls: Option<Score>,
}

impl Scored {
    fn accepted(&self, point: &OperatingPoint) -> bool {
        self.s_seg >= point.seg && self.s_cls.is_none_or(|s| s >= point.cls)
    }
}

/// One image: its ground truth and every candidate, accepted or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Image or slide name.
    pub name: String,
    /// Ground-truth figures, in the order the `midog` rule takes them.
    pub truth: Vec<Point<Physical>>,
    /// All candidates above the candidate threshold.
    pub candidates: Vec<Scored>,
}

impl Case {
    /// Matches the candidates that `point` accepts.
    ///
    /// # Errors
    /// [`MatchError`] for a radius or coordinate that is not a finite number.
    pub fn tally(
        &self,
        point: &OperatingPoint,
        radius: Microns,
        rule: Rule,
    ) -> Result<Tally, MatchError> {
        Ok(self.within(radius)?.tally(point, rule))
    }

    /// With the distances measured once, to be counted at many points.
    ///
    /// # Errors
    /// [`MatchError`] for a radius or coordinate that is not a finite number.
    pub fn within(&self, radius: Microns) -> Result<Within<'_>, MatchError> {
        let at: Vec<_> = self.candidates.iter().map(|c| c.at).collect();
        Ok(Within { case: self, reach: Reach::new(&self.truth, &at, radius)? })
    }
}

/// A case whose candidates within the radius of its figures are known: a point costs one pass over them.
pub struct Within<'a> {
    case: &'a Case,
    reach: Reach,
}

impl Within<'_> {
    /// Matches the candidates that `point` accepts.
    #[must_use]
    pub fn tally(&self, point: &OperatingPoint, rule: Rule) -> Tally {
        let accepted: Vec<bool> = self.case.candidates.iter().map(|c| c.accepted(point)).collect();
        let predicted = accepted.iter().filter(|&&a| a).count();
        let tp = self.reach.among(&accepted).pairs(rule, accepted.len()).len();
        Tally { tp, fp: predicted - tp, fn_: self.case.truth.len() - tp }
    }
}

/// The validation images of one fold, with candidates from the model that never saw them.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// Fold name, kept in the provenance.
    pub name: String,
    /// Its images.
    pub cases: Vec<Case>,
}

/// Counts of one fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldTally {
    /// Name of the fold.
    pub name: String,
    /// At the chosen pair.
    pub tally: Tally,
}

/// The chosen pair and what it reaches on the folds it was chosen on.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The threshold pair with its provenance.
    pub point: OperatingPoint,
    /// Counts pooled over all folds.
    pub pooled: Tally,
    /// Each fold at the same pair.
    pub per_fold: Vec<FoldTally>,
    /// How many distinct threshold pairs were compared.
    pub pairs_compared: usize,
}

/// Why no pair was chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum CalibrateError {
    /// See [`MatchError`].
    #[error(transparent)]
    Match(#[from] MatchError),
    /// No ground truth at all: F1 is undefined.
    #[error("the folds hold no ground-truth figure, so no threshold pair can be chosen")]
    NoTruth,
    /// No candidate is within the radius of a figure: every pair has F1 = 0.
    #[error(
        "none of {candidates} candidates is within {radius} um of one of {truths} figures, so \
         every threshold pair has F1 = 0; check coordinates and um/px, which may be wrong, or train further"
    )]
    NothingMatches {
        /// Candidates over all folds.
        candidates: usize,
        /// Figures over all folds.
        truths: usize,
        radius: f64,
    },
    /// Some candidates have a second-stage score and some have none.
    #[error("case `{0}` mixes candidates with and without a second-stage score")]
    Mixed(String),
}

/// The pair `(seg, cls)` with the largest pooled F1 over all folds together.
///
/// Exact: no pair of thresholds does better. Counts only change where a threshold passes a score,
/// and F1 can only grow when a threshold moves up past a candidate that reaches no figure, so the
/// distinct scores of the candidates within the radius of a figure are enough to compare. Equal F1:
/// more true positives win, then the higher `seg`, then the higher `cls`. Each threshold is then
/// put half-way between the lowest score it must accept and the highest score of any candidate
/// below (the same candidates are accepted, and a score that differs in its last bits on another
/// engine still is). Without second-stage scores only `seg` is chosen and `cls` is 0.
///
/// # Errors
/// [`CalibrateError`].
pub fn calibrate(
    folds: &[Fold],
    radius: Microns,
    rule: Rule,
) -> Result<Calibration, CalibrateError> {
    let cases = || folds.iter().flat_map(|f| &f.cases);
    let all = || cases().flat_map(|c| &c.candidates);
    let two_stages = all().any(|c| c.s_cls.is_some());
    if let Some(c) = cases().find(|c| c.candidates.iter().any(|d| d.s_cls.is_some() != two_stages))
    {
        return Err(CalibrateError::Mixed(c.name.clone()));
    }
    let truths: usize = cases().map(|c| c.truth.len()).sum();
    if truths == 0 {
        return Err(CalibrateError::NoTruth);
    }
    let mut sweep = Sweep::new(rule);
    for case in cases() {
        sweep.add_case(case, radius)?;
    }
    let Some(best) = sweep.best(truths) else {
        return Err(CalibrateError::NothingMatches {
            candidates: all().count(),
            truths,
            radius: radius.0,
        });
    };
    let seg = half_way_down(best.seg, all().map(|c| c.s_seg));
    let cls = if two_stages {
        half_way_down(best.cls, all().filter_map(|c| c.s_cls))
    } else {
        Score::ZERO
    };
    let mut point = OperatingPoint { seg, cls, provenance: String::new() };
    let mut per_fold = Vec::new();
    for fold in folds {
        let mut tally = Tally::default();
        for case in &fold.cases {
            tally += case.tally(&point, radius, rule)?;
        }
        per_fold.push(FoldTally { name: fold.name.clone(), tally });
    }
    let pooled: Tally = per_fold.iter().map(|f| f.tally).sum();
    let names: Vec<_> = folds.iter().map(|f| f.name.as_str()).collect();
    point.provenance = format!(
        "largest F1 pooled over validation folds {}: F1 {:.4}, precision {:.4}, recall {:.4} \
         (TP {}, FP {}, FN {}); rule {rule}, radius {} um, {} threshold pairs compared",
        names.join(", "),
        pooled.f1().unwrap_or(0.0),
        pooled.precision().unwrap_or(0.0),
        pooled.recall().unwrap_or(0.0),
        pooled.tp,
        pooled.fp,
        pooled.fn_,
        radius.0,
        best.compared,
    );
    Ok(Calibration { point, pooled, per_fold, pairs_compared: best.compared })
}

/// Half-way from `keep` down to the highest score below it; `keep` itself when none is lower.
fn half_way_down(keep: Score, scores: impl Iterator<Item = Score>) -> Score {
    let Some(below) = scores.filter(|&s| s < keep).max() else { return keep };
    let middle = (f64::from(keep.get()) + f64::from(below.get())) / 2.0;
    // Rounding to f32 may fall back onto `below`, when the two are neighbours.
    Score::new(middle as f32).ok().filter(|&m| m > below).unwrap_or(keep)
}

/// The sweep over both thresholds: `seg` downwards in the outer loop, `cls` downwards in the inner.
struct Sweep {
    rule: Rule,
    candidates: Vec<Swept>,
    groups: Vec<Group>,
}

struct Swept {
    seg: Score,
    cls: Score,
    /// The group it may match in, and its place there.
    group: Option<(usize, usize)>,
}

/// Figures and candidates that can influence each other's pairing: a connected part of the graph.
#[derive(Default)]
struct Group {
    /// Per figure, in ground-truth order: members in reach, nearest first.
    near: Vec<Vec<usize>>,
    /// Scores of the members, in the order of the predictions.
    cls: Vec<Score>,
    active: Vec<bool>,
    /// (rank of cls, true positives gained there), as now counted.
    gains: Vec<(usize, i64)>,
}

struct Best {
    seg: Score,
    cls: Score,
    compared: usize,
}

impl Sweep {
    fn new(rule: Rule) -> Self {
        Self { rule, candidates: Vec::new(), groups: Vec::new() }
    }

    fn add_case(&mut self, case: &Case, radius: Microns) -> Result<(), MatchError> {
        let at: Vec<_> = case.candidates.iter().map(|c| c.at).collect();
        let reach = Reach::new(&case.truth, &at, radius)?;
        // Union of candidates that share a figure.
        let mut parent: Vec<usize> = (0..at.len()).collect();
        let mut touched = vec![false; at.len()];
        for near in &reach.near {
            for &(_, i) in near {
                touched[i] = true;
                let (a, b) = (root(&mut parent, near[0].1), root(&mut parent, i));
                parent[a.max(b)] = a.min(b);
            }
        }
        let mut group_of_root = vec![usize::MAX; at.len()];
        let mut place = vec![usize::MAX; at.len()];
        for (i, c) in case.candidates.iter().enumerate() {
            let cls = c.s_cls.unwrap_or(Score::ONE);
            let group = touched[i].then(|| {
                let r = root(&mut parent, i);
                if group_of_root[r] == usize::MAX {
                    group_of_root[r] = self.groups.len();
                    self.groups.push(Group::default());
                }
                let group = &mut self.groups[group_of_root[r]];
                place[i] = group.cls.len();
                group.cls.push(cls);
                group.active.push(false);
                (group_of_root[r], place[i])
            });
            self.candidates.push(Swept { seg: c.s_seg, cls, group });
        }
        for near in reach.near.iter().filter(|n| !n.is_empty()) {
            let group = group_of_root[root(&mut parent, near[0].1)];
            self.groups[group].near.push(near.iter().map(|&(_, i)| place[i]).collect());
        }
        Ok(())
    }

    /// The best pair among the scores of candidates in reach; `None` when none is.
    fn best(&mut self, truths: usize) -> Option<Best> {
        let in_reach = || self.candidates.iter().filter(|c| c.group.is_some());
        let seg_values = distinct_downwards(in_reach().map(|c| c.seg));
        let cls_values = distinct_downwards(in_reach().map(|c| c.cls));
        // First place in `cls_values` whose threshold accepts `cls`.
        let rank = |cls: Score| cls_values.partition_point(|&v| v > cls);
        let mut order: Vec<usize> = (0..self.candidates.len()).collect();
        order.sort_by(|&a, &b| self.candidates[b].seg.cmp(&self.candidates[a].seg));
        let mut accepted = vec![0i64; cls_values.len() + 1];
        let mut matched = vec![0i64; cls_values.len() + 1];
        let mut next = order.into_iter().peekable();
        let mut best: Option<(u128, u128, Score, Score)> = None;
        for &seg in &seg_values {
            let mut changed = Vec::new();
            while let Some(i) = next.next_if(|&i| self.candidates[i].seg >= seg) {
                let c = &self.candidates[i];
                accepted[rank(c.cls)] += 1;
                if let Some((group, place)) = c.group {
                    self.groups[group].active[place] = true;
                    changed.push(group);
                }
            }
            changed.sort_unstable();
            changed.dedup();
            for group in changed {
                let group = &mut self.groups[group];
                for (at, gain) in group.gains.drain(..) {
                    matched[at] -= gain;
                }
                group.gains = group.count_gains(self.rule, rank);
                for &(at, gain) in &group.gains {
                    matched[at] += gain;
                }
            }
            let (mut tp, mut predicted) = (0i64, 0i64);
            for (at, &cls) in cls_values.iter().enumerate() {
                tp += matched[at];
                predicted += accepted[at];
                // F1 = 2 tp / (predicted + truths), compared as fractions.
                let (num, den) = (tp as u128, predicted as u128 + truths as u128);
                let better = num > 0
                    && best.is_none_or(|(n, d, ..)| {
                        (num * d).cmp(&(n * den)).then(num.cmp(&n)).is_gt()
                    });
                if better {
                    best = Some((num, den, seg, cls));
                }
            }
        }
        let compared = seg_values.len() * cls_values.len();
        best.map(|(_, _, seg, cls)| Best { seg, cls, compared })
    }
}

impl Group {
    /// True positives as the classifier threshold moves down past each active member.
    fn count_gains(&self, rule: Rule, rank: impl Fn(Score) -> usize) -> Vec<(usize, i64)> {
        let mut members: Vec<usize> = (0..self.cls.len()).filter(|&m| self.active[m]).collect();
        members.sort_by(|&a, &b| self.cls[b].cmp(&self.cls[a]));
        let mut open = vec![false; self.cls.len()];
        let (mut before, mut gains) = (0, Vec::new());
        for same in members.chunk_by(|&a, &b| self.cls[a] == self.cls[b]) {
            for &m in same {
                open[m] = true;
            }
            let now = match rule {
                Rule::Midog => self.greedy(&open),
                Rule::Optimal => self.largest(&open),
            };
            gains.push((rank(self.cls[same[0]]), now - before));
            before = now;
        }
        gains
    }

    fn greedy(&self, open: &[bool]) -> i64 {
        let mut free = open.to_vec();
        let taken = self.near.iter().filter(|near| {
            let nearest = near.iter().find(|&&m| free[m]);
            if let Some(&m) = nearest {
                free[m] = false;
            }
            nearest.is_some()
        });
        taken.count() as i64
    }

    /// Size of the largest one-to-one pairing (augmenting paths).
    fn largest(&self, open: &[bool]) -> i64 {
        let mut owner = vec![usize::MAX; open.len()];
        let augmented = (0..self.near.len()).filter(|&figure| {
            let mut seen = vec![false; open.len()];
            // Depth-first with an explicit stack: (figure, next neighbour, member taken from it).
            let mut path = vec![(figure, 0usize)];
            while let Some(&mut (f, ref mut at)) = path.last_mut() {
                let Some(&m) = self.near[f].get(*at) else {
                    path.pop();
                    continue;
                };
                *at += 1;
                if !open[m] || seen[m] {
                    continue;
                }
                seen[m] = true;
                if owner[m] == usize::MAX {
                    for &(f, at) in &path {
                        owner[self.near[f][at - 1]] = f;
                    }
                    return true;
                }
                path.push((owner[m], 0));
            }
            false
        });
        augmented.count() as i64
    }
}

fn root(parent: &mut [usize], mut i: usize) -> usize {
    while parent[i] != i {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    i
}

fn distinct_downwards(scores: impl Iterator<Item = Score>) -> Vec<Score> {
    let mut v: Vec<Score> = scores.collect();
    v.sort_unstable_by(|a, b| b.cmp(a));
    v.dedup();
    v
}
