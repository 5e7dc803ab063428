//! Score and information without differences of large sums.
//!
//! Where the likelihood is nearly flat the information is many orders of magnitude below the second
//! moments that it is the difference of, and [`super::derivatives`] has rounding errors alone. Here the
//! variance over each risk set grows by squares only (West, Comm. ACM 22 (1979) 532-535; Chan, Golub
//! and LeVeque, Am. Stat. 37 (1983) 242-247), at O(p^2) per row and tied death.

use super::risk::Sorted;
use super::risk::Ties;

/// Score, and information (lower triangle, row-major).
pub(super) struct Stable {
    pub(super) score: Vec<f64>,
    pub(super) information: Vec<f64>,
}

/// Total weight, mean and sum of weighted squares about the mean.
#[derive(Clone)]
struct Moments {
    weight: f64,
    mean: Vec<f64>,
    squares: Vec<f64>,
}

impl Moments {
    fn new(p: usize) -> Self {
        Self { weight: 0.0, mean: vec![0.0; p], squares: vec![0.0; p * p] }
    }

    fn clear(&mut self) {
        self.weight = 0.0;
        self.mean.fill(0.0);
        self.squares.fill(0.0);
    }

    fn add(&mut self, x: &[f64], weight: f64) {
        if weight > 0.0 {
            self.shift(x, weight);
        }
    }

    fn merge(&mut self, other: &Self, share: f64) {
        let weight = share * other.weight;
        if weight > 0.0 {
            self.shift(&other.mean, weight);
            self.squares.iter_mut().zip(&other.squares).for_each(|(a, b)| *a += share * b);
        }
    }

    fn shift(&mut self, x: &[f64], weight: f64) {
        let p = x.len();
        let total = self.weight + weight;
        let apart: Vec<f64> = x.iter().zip(&self.mean).map(|(x, m)| x - m).collect();
        let factor = self.weight / total * weight;
        for i in 0..p {
            let scaled = factor * apart[i];
            let row = &mut self.squares[i * p..=i * p + i];
            row.iter_mut().zip(&apart).for_each(|(s, a)| *s += scaled * a);
        }
        self.mean.iter_mut().zip(&apart).for_each(|(m, a)| *m += weight / total * a);
        self.weight = total;
    }
}

impl Stable {
    pub(super) fn at(sorted: &Sorted, ties: Ties, beta: &[f64]) -> Self {
        let p = sorted.p;
        let mut out = Self { score: vec![0.0; p], information: vec![0.0; p * p] };
        let (mut risk, mut dead) = (Moments::new(p), Moments::new(p));
        // The dead with their case weights alone.
        let mut cases = Moments::new(p);
        for group in &sorted.groups {
            if group.first {
                risk.clear();
            }
            dead.clear();
            cases.clear();
            for k in group.start..group.end {
                let x = sorted.row(k);
                let lp: f64 = x.iter().zip(beta).map(|(x, b)| x * b).sum();
                let weight = sorted.weight[k];
                if sorted.event[k] {
                    dead.add(x, weight * lp.exp());
                    cases.add(x, weight);
                } else {
                    risk.add(x, weight * lp.exp());
                }
            }
            if group.deaths > 0 {
                let terms = if ties == Ties::Efron { group.deaths } else { 1 };
                for term in 0..terms {
                    let share = 1.0 - term as f64 / terms as f64;
                    out.term(&risk, &dead, &cases, share, cases.weight / terms as f64);
                }
            }
            risk.merge(&dead, 1.0);
        }
        out
    }

    fn term(&mut self, risk: &Moments, dead: &Moments, cases: &Moments, share: f64, weight: f64) {
        let mut all = risk.clone();
        all.merge(dead, share);
        if all.weight <= 0.0 {
            return;
        }
        let others = risk.weight / all.weight;
        for (i, s) in self.score.iter_mut().enumerate() {
            let apart = (cases.mean[i] - dead.mean[i]) + others * (dead.mean[i] - risk.mean[i]);
            *s += weight * apart;
        }
        let factor = weight / all.weight;
        self.information.iter_mut().zip(&all.squares).for_each(|(i, s)| *i += factor * s);
    }
}
