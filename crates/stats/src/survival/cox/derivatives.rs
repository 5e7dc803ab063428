//! The log partial likelihood with its first two derivatives.
//!
//! The information is a sum over event times of the variance of x over the risk set. Its second
//! moments need no sum per time: over all times, a row's x x' is weighted by exp(lp) times the
//! baseline hazard cumulated up to that row's own time. So one walk over the times gives
//! likelihood, score and hazard from first moments alone, and one product X' diag(w) X gives all
//! second moments. A time with d tied events costs O(d + p^2), not O(d p^2).

use super::risk::Sorted;
use super::risk::Ties;

pub(super) struct Derivatives {
    pub(super) loglik: f64,
    pub(super) score: Vec<f64>,
    /// Lower triangle, row-major.
    pub(super) information: Vec<f64>,
    /// Sum over events of the second moments of x: the size that rounding in the diagonal of
    /// `information` is relative to.
    pub(super) moment: Vec<f64>,
}

/// Hazard steps of one event time: for every row at risk, and what rows dying then miss of it
/// (Efron's approximation counts them in part).
#[derive(Clone, Copy, Default)]
struct Step {
    hazard: f64,
    missed: f64,
}

impl Derivatives {
    #[expect(clippy::too_many_lines, reason = "one pass over the risk sets")]
    pub(super) fn at(sorted: &Sorted, ties: Ties, beta: &[f64]) -> Self {
        let p = sorted.p;
        let mut loglik = 0.0;
        let mut score = vec![0.0; p];
        // exp(lp) times the case weight per row; later the row's weight in the second moments.
        let mut share = Vec::with_capacity(sorted.order.len());
        for k in 0..sorted.order.len() {
            let x = sorted.row(k);
            let lp: f64 = x.iter().zip(beta).map(|(x, b)| x * b).sum();
            let w = sorted.weight[k];
            share.push(w * lp.exp());
            if sorted.event[k] {
                loglik += w * lp;
                add(&mut score, x, w);
            }
        }
        // Less the squared means, lower triangle.
        let mut squares = vec![0.0; p * p];
        let mut steps = Vec::with_capacity(sorted.groups.len());
        let (mut s0, mut s1) = (0.0, vec![0.0; p]);
        let (mut d0, mut d1) = (0.0, vec![0.0; p]);
        for group in &sorted.groups {
            if group.first {
                s0 = 0.0;
                s1.fill(0.0);
            }
            let tied = ties == Ties::Efron && group.deaths > 1;
            if tied {
                d0 = 0.0;
                d1.fill(0.0);
            }
            let mut weight = 0.0;
            for (k, &r) in share.iter().enumerate().take(group.end).skip(group.start) {
                s0 += r;
                add(&mut s1, sorted.row(k), r);
                if sorted.event[k] {
                    weight += sorted.weight[k];
                    if tied {
                        d0 += r;
                        add(&mut d1, sorted.row(k), r);
                    }
                }
            }
            let mut step = Step::default();
            if group.deaths > 0 {
                let terms = if tied { group.deaths } else { 1 };
                let w = weight / terms as f64;
                // Sums over the terms of 1/D^2, f/D^2, f^2/D^2, f the part that dying rows miss.
                let (mut a, mut b, mut c) = (0.0, 0.0, 0.0);
                for k in 0..terms {
                    let part = k as f64 / terms as f64;
                    let denominator = s0 - part * d0;
                    loglik -= w * denominator.ln();
                    let h = w / denominator;
                    step.hazard += h;
                    step.missed += part * h;
                    let h = h / denominator;
                    a += h;
                    b += part * h;
                    c += part * part * h;
                }
                add(&mut score, &s1, -step.hazard);
                if tied {
                    add(&mut score, &d1, step.missed);
                    for i in 0..p {
                        let (u, v) = (a * s1[i] - b * d1[i], c * d1[i] - b * s1[i]);
                        let row = &mut squares[i * p..=i * p + i];
                        for ((q, s), d) in row.iter_mut().zip(&s1).zip(&d1) {
                            *q += u * s + v * d;
                        }
                    }
                } else {
                    for i in 0..p {
                        add(&mut squares[i * p..=i * p + i], &s1, a * s1[i]);
                    }
                }
            }
            steps.push(step);
        }
        // Backwards, so that times ascend; a stratum ends at its first group.
        let mut hazard = 0.0;
        for (group, step) in sorted.groups.iter().zip(&steps).rev() {
            hazard += step.hazard;
            let rows = group.start..group.end;
            for (r, &event) in share[rows.clone()].iter_mut().zip(&sorted.event[rows]) {
                *r *= if event { hazard - step.missed } else { hazard };
            }
            if group.first {
                hazard = 0.0;
            }
        }
        let mut information = sorted.gram(&share);
        let moment = (0..p).map(|i| information[i * p + i] + squares[i * p + i]).collect();
        information.iter_mut().zip(&squares).for_each(|(i, q)| *i -= q);
        Self { loglik, score, information, moment }
    }

    pub(super) fn finite(&self) -> bool {
        self.loglik.is_finite() && self.score.iter().chain(&self.information).all(|v| v.is_finite())
    }
}

#[inline]
fn add(to: &mut [f64], x: &[f64], factor: f64) {
    to.iter_mut().zip(x).for_each(|(t, x)| *t += factor * x);
}
