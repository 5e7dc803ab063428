//! Sums over the risk set and the walk over event times that everything else is made of.

use super::CoxData;
use crate::survival::data::order_key;

/// How tied events enter the likelihood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// Efron's approximation (R's default).
    #[default]
    Efron,
    /// Breslow's approximation.
    Breslow,
}

crate::spelling::spelled!(Ties { Efron = "efron", Breslow = "breslow" });

/// Weighted sums over the rows at risk (`s`) and over the rows dying at this time (`d`):
/// of exp(lp), of x exp(lp), and of x x' exp(lp) (lower triangle, row-major p x p).
#[derive(Debug, Clone)]
pub(crate) struct RiskSums {
    pub(crate) p: usize,
    pub(crate) s0: f64,
    pub(crate) s1: Vec<f64>,
    pub(crate) s2: Vec<f64>,
    pub(crate) d0: f64,
    pub(crate) d1: Vec<f64>,
    pub(crate) d2: Vec<f64>,
    /// Rows dying, and their weight.
    pub(crate) deaths: usize,
    pub(crate) death_weight: f64,
}

impl RiskSums {
    pub(crate) fn new(p: usize) -> Self {
        let (v, m) = (vec![0.0; p], vec![0.0; p * p]);
        Self {
            p,
            s0: 0.0,
            s1: v.clone(),
            s2: m.clone(),
            d0: 0.0,
            d1: v,
            d2: m,
            deaths: 0,
            death_weight: 0.0,
        }
    }

    pub(crate) fn clear_risk(&mut self) {
        self.s0 = 0.0;
        self.s1.fill(0.0);
        self.s2.fill(0.0);
    }

    pub(crate) fn clear_deaths(&mut self) {
        self.d0 = 0.0;
        self.d1.fill(0.0);
        self.d2.fill(0.0);
        self.deaths = 0;
        self.death_weight = 0.0;
    }

    #[inline]
    pub(crate) fn enter(&mut self, x: &[f64], r: f64) {
        self.s0 += r;
        accumulate(&mut self.s1, &mut self.s2, x, r);
    }

    #[inline]
    pub(crate) fn die(&mut self, x: &[f64], r: f64, tied: bool) {
        if tied {
            self.d0 += r;
            accumulate(&mut self.d1, &mut self.d2, x, r);
        }
    }

    /// How many likelihood terms this event time has, and the weight of each.
    pub(crate) fn terms(&self, ties: Ties) -> (usize, f64) {
        match ties {
            Ties::Efron if self.deaths > 1 => (self.deaths, self.death_weight / self.deaths as f64),
            _ => (1, self.death_weight),
        }
    }

    /// Term k of `terms`: the denominator; `mean` becomes the weighted mean of x.
    #[inline]
    pub(crate) fn term(&self, k: usize, terms: usize, mean: &mut [f64]) -> f64 {
        let share = k as f64 / terms as f64;
        let denominator = self.s0 - share * self.d0;
        for ((m, s), d) in mean.iter_mut().zip(&self.s1).zip(&self.d1) {
            *m = (s - share * d) / denominator;
        }
        denominator
    }

    /// Adds `scale` times the variance of x in term k of `terms` to the lower triangle of `out`; `share` is k / terms.
    #[inline]
    pub(crate) fn add_variance(
        &self,
        share: f64,
        denominator: f64,
        mean: &[f64],
        scale: f64,
        out: &mut [f64],
    ) {
        let p = self.p;
        let inverse = scale / denominator;
        for i in 0..p {
            let row = i * p..i * p + i + 1;
            let scaled = scale * mean[i];
            let (s, o) = (&self.s2[row.clone()], &mut out[row.clone()]);
            if share == 0.0 {
                for ((o, s), m) in o.iter_mut().zip(s).zip(mean) {
                    *o += inverse * s - scaled * m;
                }
            } else {
                for (((o, s), d), m) in o.iter_mut().zip(s).zip(&self.d2[row]).zip(mean) {
                    *o += inverse * (s - share * d) - scaled * m;
                }
            }
        }
    }
}

#[inline]
fn accumulate(first: &mut [f64], second: &mut [f64], x: &[f64], r: f64) {
    let p = x.len();
    for (i, &xi) in x.iter().enumerate() {
        let rx = r * xi;
        first[i] += rx;
        for (s, &xj) in second[i * p..=i * p + i].iter_mut().zip(x) {
            *s += rx * xj;
        }
    }
}

/// Rows in fitting order (stratum, then time descending), with centred and scaled covariates laid
/// out contiguously.
#[derive(Debug, Clone)]
pub(crate) struct Sorted {
    pub(crate) p: usize,
    /// Position -> row of the table.
    pub(crate) order: Vec<usize>,
    /// Position -> covariates, row-major, padded with zeros to `stride`.
    x: Vec<f64>,
    /// `p`, made even.
    stride: usize,
    pub(crate) weight: Vec<f64>,
    pub(crate) event: Vec<bool>,
    /// Runs of equal stratum and time.
    pub(crate) groups: Vec<Group>,
}

/// One run of positions with equal stratum and time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) deaths: usize,
    /// The first run of its stratum.
    pub(crate) first: bool,
}

impl Sorted {
    /// Columns `keep` of the data, each less `centre` and times `scale` (indexed like `keep`).
    pub(crate) fn new(data: &CoxData, keep: &[usize], centre: &[f64], scale: &[f64]) -> Self {
        let n = data.survival.len();
        let (time, event) = (data.survival.time(), data.survival.event());
        let mut keys: Vec<(usize, u64, usize)> =
            (0..n).map(|i| (data.stratum(i), !order_key(time[i]), i)).collect();
        keys.sort_unstable();
        let order: Vec<usize> = keys.into_iter().map(|k| k.2).collect();
        let stride = keep.len().next_multiple_of(2);
        let mut x = Vec::with_capacity(n * stride);
        for &i in &order {
            let row = data.row(i);
            x.extend(keep.iter().zip(centre).zip(scale).map(|((&j, c), s)| (row[j] - c) * s));
            x.resize(x.len().next_multiple_of(stride.max(1)), 0.0);
        }
        let mut groups: Vec<Group> = Vec::new();
        for start in 0..n {
            let i = order[start];
            let previous = start.checked_sub(1).map(|k| order[k]);
            let first = previous.is_none_or(|j| data.stratum(j) != data.stratum(i));
            if first || previous.is_some_and(|j| time[j] != time[i]) {
                groups.push(Group { start, end: start, deaths: 0, first });
            }
            if let Some(group) = groups.last_mut() {
                group.end = start + 1;
                group.deaths += usize::from(event[i]);
            }
        }
        Self {
            p: keep.len(),
            weight: order.iter().map(|&i| data.weight(i)).collect(),
            event: order.iter().map(|&i| event[i]).collect(),
            order,
            x,
            stride,
            groups,
        }
    }

    pub(crate) fn row(&self, k: usize) -> &[f64] {
        &self.x[k * self.stride..k * self.stride + self.p]
    }

    /// The sum over positions of `weight` x x': the lower triangle, row-major p x p.
    pub(crate) fn gram(&self, weight: &[f64]) -> Vec<f64> {
        let (p, stride) = (self.p, self.stride);
        let mut out = vec![0.0; p * stride];
        if p == 0 {
            return out;
        }
        let mut rows = self.x.chunks_exact(4 * stride);
        let mut weights = weight.chunks_exact(4);
        for (x, w) in rows.by_ref().zip(weights.by_ref()) {
            let (x0, x) = x.split_at(stride);
            let (x1, x) = x.split_at(stride);
            let (x2, x3) = x.split_at(stride);
            for (i, out) in out.chunks_exact_mut(stride).enumerate() {
                let a = [w[0] * x0[i], w[1] * x1[i], w[2] * x2[i], w[3] * x3[i]];
                // Two lanes at a time; the pad may hold the entry above the diagonal.
                let end = (i + 1).next_multiple_of(2);
                let lanes = out[..end]
                    .chunks_exact_mut(2)
                    .zip(x0[..end].chunks_exact(2))
                    .zip(x1[..end].chunks_exact(2))
                    .zip(x2[..end].chunks_exact(2))
                    .zip(x3[..end].chunks_exact(2));
                for ((((o, x0), x1), x2), x3) in lanes {
                    o[0] += a[0] * x0[0] + a[1] * x1[0] + (a[2] * x2[0] + a[3] * x3[0]);
                    o[1] += a[0] * x0[1] + a[1] * x1[1] + (a[2] * x2[1] + a[3] * x3[1]);
                }
            }
        }
        for (x, w) in rows.remainder().chunks_exact(stride).zip(weights.remainder()) {
            for (i, out) in out.chunks_exact_mut(stride).enumerate() {
                let a = w * x[i];
                out[..=i].iter_mut().zip(x).for_each(|(o, x)| *o += a * x);
            }
        }
        out.chunks_exact(stride)
            .enumerate()
            .flat_map(|(i, row)| (0..p).map(move |j| if j <= i { row[j] } else { 0.0 }))
            .collect()
    }

    /// Walks the groups (times descending within strata) with the risk sets' sums, calling `at`
    /// at every group that has deaths. `score[k]` is exp(lp) at position k.
    pub(crate) fn walk(&self, ties: Ties, score: &[f64], mut at: impl FnMut(&Group, &RiskSums)) {
        let mut sums = RiskSums::new(self.p);
        for group in &self.groups {
            if group.first {
                sums.clear_risk();
            }
            let tied = ties == Ties::Efron && group.deaths > 1;
            if group.deaths > 0 {
                sums.clear_deaths();
            }
            for (k, &e) in score.iter().enumerate().take(group.end).skip(group.start) {
                let x = self.row(k);
                let r = self.weight[k] * e;
                sums.enter(x, r);
                if self.event[k] {
                    sums.die(x, r, tied);
                    sums.deaths += 1;
                    sums.death_weight += self.weight[k];
                }
            }
            if group.deaths > 0 {
                at(group, &sums);
            }
        }
    }
}
