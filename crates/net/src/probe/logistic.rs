//! Logistic regression with an L2 penalty: scikit-learn's `LogisticRegression(solver="lbfgs")`.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::error::{NetError, Result};

/// Steps whose curvature is remembered.
const MEMORY: usize = 10;

/// Settings. What is minimised is the mean cross-entropy plus `|W|^2 / (2 c n)` over `n` items; the
/// intercept goes free. Two classes have one row of weights, more have one each, as there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logistic {
    /// Inverse strength of the penalty.
    pub c: f64,
    /// Done when no element of the gradient is larger.
    pub tolerance: f64,
    /// Most steps.
    pub iterations: usize,
}

/// What a regression found.
#[derive(Debug)]
pub struct LogisticFit {
    /// `[classes, D]`, f64; of two classes the first row is zero.
    pub weight: Tensor,
    /// `[classes]`, f64.
    pub bias: Tensor,
    /// Value of the objective.
    pub objective: f64,
    /// Largest element of the gradient there.
    pub gradient: f64,
    /// Steps done.
    pub iterations: usize,
    /// Whether the gradient is within the tolerance.
    pub converged: bool,
}

impl LogisticFit {
    /// Features `[N, D]` to probabilities `[N, classes]` in f64.
    pub fn probabilities(&self, features: &Tensor) -> Tensor {
        let x = features.to_kind(Kind::Double);
        x.linear(&self.weight, Some(&self.bias)).softmax(-1, Kind::Double)
    }
}

/// The objective over one vector: a row of weights per output, then the intercepts.
struct Objective {
    /// `[N, D]`, f64.
    x: Tensor,
    /// `[N, outputs]`, ones at the item's class; of two classes one column, of the second.
    aims: Tensor,
    /// Weight of `|W|^2 / 2`.
    penalty: f64,
}

impl Objective {
    fn outputs(&self) -> i64 {
        self.aims.size()[1]
    }

    /// Weights `[outputs, D]` and intercepts `[outputs]` of a vector.
    fn parts(&self, at: &Tensor) -> (Tensor, Tensor) {
        let (k, d) = (self.outputs(), self.x.size()[1]);
        (at.narrow(0, 0, k * d).view([k, d]), at.narrow(0, k * d, k))
    }

    /// Value and gradient.
    fn at(&self, vector: &Tensor) -> (f64, Tensor) {
        let (weight, bias) = self.parts(vector);
        let n = self.x.size()[0] as f64;
        let z = self.x.linear(&weight, Some(&bias));
        let (entropy, p) = if self.outputs() == 1 {
            // log(1 + exp(z)) - y z
            ((z.softplus() - &self.aims * &z).sum(Kind::Double), z.sigmoid())
        } else {
            let log = z.log_softmax(-1, Kind::Double);
            (-(&self.aims * &log).sum(Kind::Double), log.exp())
        };
        let residual = (p - &self.aims) / n;
        let slope = residual.transpose(0, 1).matmul(&self.x) + &weight * self.penalty;
        let gradient = Tensor::cat(
            &[slope.view(-1), residual.sum_dim_intlist([0i64].as_slice(), false, Kind::Double)],
            0,
        );
        let squared = weight.square().sum(Kind::Double).double_value(&[]);
        (entropy.double_value(&[]) / n + 0.5 * self.penalty * squared, gradient)
    }
}

fn dot(a: &Tensor, b: &Tensor) -> f64 {
    a.dot(b).double_value(&[])
}

fn largest(t: &Tensor) -> f64 {
    t.abs().max().double_value(&[])
}

/// The last steps of L-BFGS: change of the vector, of the gradient, and one over their product.
#[derive(Default)]
struct Curvature(VecDeque<(Tensor, Tensor, f64)>);

impl Curvature {
    fn remember(&mut self, step: Tensor, change: Tensor) {
        let product = dot(&step, &change);
        if product > 0.0 {
            self.0.push_back((step, change, 1.0 / product));
            if self.0.len() > MEMORY {
                self.0.pop_front();
            }
        }
    }

    /// The way down from a gradient (Nocedal and Wright, algorithm 7.4).
    fn direction(&self, gradient: &Tensor) -> Tensor {
        let mut q = -gradient;
        let mut factors = vec![];
        for (step, change, inverse) in self.0.iter().rev() {
            let factor = inverse * dot(step, &q);
            q -= change * factor;
            factors.push(factor);
        }
        if let Some((_, change, inverse)) = self.0.back() {
            q *= 1.0 / (inverse * dot(change, change));
        }
        for ((step, change, inverse), factor) in self.0.iter().zip(factors.into_iter().rev()) {
            let back = inverse * dot(change, &q);
            q += step * (factor - back);
        }
        q
    }
}

impl Logistic {
    /// Checks ranges.
    ///
    /// # Errors
    /// [`NetError::Encoder`] with the key.
    pub fn check(&self) -> Result<()> {
        for (key, v) in [("c", self.c), ("tolerance", self.tolerance)] {
            if !(v.is_finite() && v > 0.0) {
                return Err(NetError::config(key, format!("{v} is not positive")));
            }
        }
        if self.iterations == 0 {
            return Err(NetError::config("iterations", "is zero"));
        }
        Ok(())
    }

    /// Fits features `[N, D]` to `labels`, of which `copies` in a row of the same item weigh as one: `n` of
    /// the penalty is `N / copies`. On the CPU, in f64.
    ///
    /// # Errors
    /// [`NetError::Encoder`] for settings out of range, labels that do not fit the features, and fewer
    /// than two classes.
    pub fn fit(
        &self,
        features: &Tensor,
        labels: &[i64],
        classes: i64,
        copies: usize,
    ) -> Result<LogisticFit> {
        self.check()?;
        let (n, d) = features.size2()?;
        if classes < 2 || n != labels.len() as i64 || labels.iter().any(|l| *l >= classes) {
            let why = format!("{n} rows, {} labels, {classes} classes", labels.len());
            return Err(NetError::config("labels", why));
        }
        let hot = Tensor::from_slice(labels).one_hot(classes).to_kind(Kind::Double);
        let aims = if classes == 2 { hot.narrow(1, 1, 1) } else { hot };
        let items = n as f64 / copies.max(1) as f64;
        let penalty = 1.0 / (self.c * items);
        let objective = Objective { x: features.to_kind(Kind::Double), aims, penalty };
        let outputs = objective.outputs();
        let start = Tensor::zeros([outputs * (d + 1)], (Kind::Double, features.device()));
        let found = tch::no_grad(|| self.minimise(&objective, start));
        let (weight, bias) = objective.parts(&found.vector);
        // The first of two classes is the one that the other is compared with.
        let both_rows = |t: Tensor| {
            if classes == 2 { Tensor::cat(&[&t.zeros_like(), &t], 0) } else { t }
        };
        Ok(LogisticFit {
            weight: both_rows(weight),
            bias: both_rows(bias),
            objective: found.value,
            gradient: largest(&found.gradient),
            iterations: found.iterations,
            converged: largest(&found.gradient) <= self.tolerance,
        })
    }

    fn minimise(&self, objective: &Objective, start: Tensor) -> Minimum {
        let (value, gradient) = objective.at(&start);
        let mut now = Minimum { vector: start, value, gradient, iterations: 0 };
        let mut curvature = Curvature::default();
        while now.iterations < self.iterations && largest(&now.gradient) > self.tolerance {
            let direction = curvature.direction(&now.gradient);
            let first = match now.iterations {
                0 => (1.0 / now.gradient.abs().sum(Kind::Double).double_value(&[])).min(1.0),
                _ => 1.0,
            };
            let Some(next) = now.step(objective, &direction, first) else { break };
            curvature.remember(&next.vector - &now.vector, &next.gradient - &now.gradient);
            now = next;
        }
        now
    }
}

/// Where the minimiser is.
struct Minimum {
    vector: Tensor,
    value: f64,
    gradient: Tensor,
    iterations: usize,
}

impl Minimum {
    /// A step along `direction` that goes down enough and not too little (the weak Wolfe conditions, by
    /// bisection); none where rounding leaves no way down.
    fn step(&self, objective: &Objective, direction: &Tensor, first: f64) -> Option<Self> {
        let slope = dot(&self.gradient, direction);
        let (mut low, mut high, mut length) = (0.0, f64::INFINITY, first);
        for _ in 0..60 {
            let vector = &self.vector + direction * length;
            let (value, gradient) = objective.at(&vector);
            if !value.is_finite() || value > self.value + 1e-4 * length * slope {
                high = length;
            } else if dot(&gradient, direction) < 0.9 * slope {
                low = length;
            } else {
                return Some(Self { vector, value, gradient, iterations: self.iterations + 1 });
            }
            length = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * low };
        }
        None
    }
}
