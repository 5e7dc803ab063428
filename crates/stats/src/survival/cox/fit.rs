//! Newton's method on the partial likelihood, and what it found.

use super::super::ChiSquared;
use super::CoxData;
use super::derivatives::Derivatives;
use super::recession::unbounded;
use super::residuals::score_residuals;
use super::risk::Sorted;
use super::risk::Ties;
use super::stable::Stable;
use crate::distribution::{normal_critical, normal_two_sided};
use crate::survival::concordance::{Concordance, Pairs};
use crate::survival::data::SurvivalError;
use crate::survival::linear::{Ldl, quadratic};

/// How the fit runs. The defaults are R's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Tie handling.
    pub ties: Ties,
    /// Stop when the log-likelihood changes relatively by at most this.
    pub tolerance: f64,
    /// Newton steps at most.
    pub max_iterations: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { ties: Ties::Efron, tolerance: 1e-9, max_iterations: 20 }
    }
}

/// What a reader of the fit must know. Columns count from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Diagnosis {
    /// The covariate has one value; it was left out.
    Constant {
        /// Index of the covariate.
        column: usize,
    },
    /// The covariate is a linear combination of those before it; it was left out.
    Collinear {
        /// Index of the covariate.
        column: usize,
    },
    /// The likelihood still rises as this coefficient grows (separation, monotone likelihood), by the
    /// data themselves or by R's rule that the next step is still not small: the estimate may be
    /// infinite, and the one given and its error mean nothing. [`CoxFit::profile`] gives limits.
    Infinite {
        /// Index of the covariate.
        column: usize,
    },
    /// The iterations ran out before the likelihood settled.
    NotConverged {
        /// Steps taken.
        iterations: usize,
    },
}

/// One estimated coefficient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficient {
    /// Log hazard ratio.
    pub beta: f64,
    /// The standard error that z and p use: robust where the fit is robust.
    pub se: f64,
    /// Standard error from the information matrix.
    pub se_naive: f64,
    /// beta / se.
    pub z: f64,
    /// Two-sided p-value of z.
    pub p: f64,
}

impl Coefficient {
    /// exp(beta) with its limits exp(beta -+ z se) at confidence `level`.
    #[must_use]
    pub fn hazard_ratio(&self, level: f64) -> (f64, f64, f64) {
        let half = normal_critical(level) * self.se;
        (self.beta.exp(), (self.beta - half).exp(), (self.beta + half).exp())
    }
}

/// A fitted model. Vectors over covariates have zeros where a covariate was left out.
#[derive(Debug, Clone, PartialEq)]
pub struct CoxFit {
    /// Rows.
    pub n: usize,
    /// Rows with an event.
    pub events: usize,
    /// Tie handling.
    pub ties: Ties,
    /// Coefficients, zero for those left out.
    pub beta: Vec<f64>,
    /// Which covariates were left out.
    pub left_out: Vec<bool>,
    /// Covariance of `beta` in force (robust where `robust`), row-major p x p.
    pub variance: Vec<f64>,
    /// Inverse information.
    pub naive_variance: Vec<f64>,
    /// Whether `variance` is the robust one.
    pub robust: bool,
    /// Log partial likelihood at zero.
    pub loglik_null: f64,
    /// Log partial likelihood at `beta`.
    pub loglik: f64,
    /// Score test at zero.
    pub score: ChiSquared,
    /// Wald test with `variance`; absent where that is singular.
    pub wald: Option<ChiSquared>,
    /// Robust score test; only for robust fits, absent where singular.
    pub robust_score: Option<ChiSquared>,
    /// Newton steps taken.
    pub iterations: usize,
    /// The centre of each covariate: its weighted mean, or 0 if it only takes -1, 0 and 1 (R's
    /// rule).
    pub means: Vec<f64>,
    /// (x - means)'beta per row.
    pub linear_predictor: Vec<f64>,
    /// Warnings about this fit.
    pub diagnoses: Vec<Diagnosis>,
}

impl CoxFit {
    /// Number of estimated coefficients.
    #[must_use]
    pub fn df(&self) -> usize {
        self.left_out.iter().filter(|l| !**l).count()
    }

    /// Whether Newton's method settled on finite coefficients.
    #[must_use]
    pub fn converged(&self) -> bool {
        !self
            .diagnoses
            .iter()
            .any(|d| matches!(d, Diagnosis::Infinite { .. } | Diagnosis::NotConverged { .. }))
    }

    /// Whether coefficient `j` was estimated and has a finite value that means something.
    #[must_use]
    pub fn settled(&self, j: usize) -> bool {
        let spoilt = |d: &Diagnosis| match d {
            Diagnosis::Infinite { column } => *column == j,
            Diagnosis::NotConverged { .. } => true,
            Diagnosis::Constant { .. } | Diagnosis::Collinear { .. } => false,
        };
        !self.left_out[j] && !self.diagnoses.iter().any(spoilt)
    }

    /// The sign with which coefficient `j` runs to infinity, 1 or -1; `None` where its estimate is
    /// finite.
    #[must_use]
    pub fn infinite(&self, j: usize) -> Option<f64> {
        let is = |d: &Diagnosis| matches!(d, Diagnosis::Infinite { column } if *column == j);
        self.diagnoses.iter().any(is).then(|| self.beta[j].signum())
    }

    /// Coefficient `j`, or `None` if it was left out.
    ///
    /// # Panics
    /// When `j` is not below the number of covariates.
    #[must_use]
    pub fn coefficient(&self, j: usize) -> Option<Coefficient> {
        let p = self.beta.len();
        let beta = self.beta[j];
        (!self.left_out[j]).then(|| {
            let se = self.variance[j * p + j].sqrt();
            let z = beta / se;
            let se_naive = self.naive_variance[j * p + j].sqrt();
            Coefficient { beta, se, se_naive, z, p: normal_two_sided(z) }
        })
    }

    /// Likelihood-ratio test against the empty model.
    #[must_use]
    pub fn likelihood_ratio(&self) -> ChiSquared {
        ChiSquared::new(2.0 * (self.loglik - self.loglik_null), self.df())
    }

    /// Harrell's C of the linear predictor on the data of the fit (apparent C), within strata.
    ///
    /// # Errors
    /// When no pair is comparable or `data` has other rows.
    pub fn concordance(&self, data: &CoxData) -> Result<Concordance, SurvivalError> {
        Pairs::new(data.survival, &self.linear_predictor, data.weights, data.strata)?
            .concordance(data.cluster)
    }
}

/// R's tolerance for dependent columns, `.Machine$double.eps^0.75`.
const DEPENDENT: f64 = 1.818_989_403_545_856_5e-12;

/// Fits the model.
///
/// Constant and collinear covariates are left out and reported in [`CoxFit::diagnoses`], as are
/// coefficients that run to infinity.
///
/// # Errors
/// Without events, or when no covariate carries information.
#[doc(alias = "S1")]
#[expect(clippy::too_many_lines, reason = "one iteration with its stopping rules")]
pub fn fit(data: &CoxData, options: &Options) -> Result<CoxFit, SurvivalError> {
    let (n, p) = (data.survival.len(), data.columns);
    if data.survival.events() == 0 {
        return Err(SurvivalError::NoEvents { rows: n });
    }
    let (means, scale, constant) = centre_and_scale(data);
    let mut diagnoses: Vec<Diagnosis> =
        (0..p).filter(|&j| constant[j]).map(|column| Diagnosis::Constant { column }).collect();
    let mut keep: Vec<usize> = (0..p).filter(|&j| !constant[j]).collect();
    if keep.is_empty() {
        return Err(SurvivalError::NoInformation);
    }
    let mut sorted = Sorted::new(data, &keep, &pick(&keep, &means), &pick(&keep, &scale));
    let mut start = Derivatives::at(&sorted, options.ties, &vec![0.0; keep.len()]);
    let limits: Vec<f64> = start.moment.iter().map(|m| DEPENDENT * m).collect();
    let factor = Ldl::with_limits(&start.information, keep.len(), &limits);
    if factor.rank() < keep.len() {
        let dependent: Vec<bool> = (0..keep.len()).map(|i| factor.dependent(i)).collect();
        for (i, &column) in keep.iter().enumerate() {
            if dependent[i] {
                diagnoses.push(Diagnosis::Collinear { column });
            }
        }
        let mut flags = dependent.iter();
        keep.retain(|_| flags.next() == Some(&false));
        if keep.is_empty() {
            return Err(SurvivalError::NoInformation);
        }
        sorted = Sorted::new(data, &keep, &pick(&keep, &means), &pick(&keep, &scale));
        start = Derivatives::at(&sorted, options.ties, &vec![0.0; keep.len()]);
    }
    let q = keep.len();
    let loglik_null = start.loglik;
    let first_step = Ldl::new(&start.information, q, DEPENDENT).solve(&start.score);
    let score_chi2: f64 = first_step.iter().zip(&start.score).map(|(a, b)| a * b).sum();
    let mut end = newton(&sorted, options, start, first_step);
    let mut endless = vec![false; q];
    if end.may_be_endless(&sorted) {
        endless = unbounded(&sorted);
        let Stable { score, information } = Stable::at(&sorted, options.ties, &end.beta);
        (end.derivatives.score, end.derivatives.information) = (score, information);
    }
    if !end.converged {
        diagnoses.push(Diagnosis::NotConverged { iterations: end.iterations });
    }
    let naive = Ldl::new(&end.derivatives.information, q, DEPENDENT).inverse();
    let step = multiply(&naive, &end.derivatives.score, q);
    for (i, &column) in keep.iter().enumerate() {
        let size = step[i].abs();
        // R's rule, on R's scale: the next step is still not small.
        let (size, beta) = (size * scale[column], (end.beta[i] * scale[column]).abs());
        let moving = !size.is_finite()
            || (size > options.tolerance && size > options.tolerance.sqrt() * beta);
        if endless[i] || (moving && (end.converged || naive[i * q + i] <= 0.0)) {
            diagnoses.push(Diagnosis::Infinite { column });
        }
    }
    // Back to the scale of the data, and to all columns.
    let mut beta = vec![0.0; p];
    let mut left_out = vec![true; p];
    let mut naive_variance = vec![0.0; p * p];
    for (a, &i) in keep.iter().enumerate() {
        left_out[i] = false;
        beta[i] = end.beta[a] * scale[i];
        for (b, &j) in keep.iter().enumerate() {
            naive_variance[i * p + j] = naive[a * q + b] * scale[i] * scale[j];
        }
    }
    let linear_predictor: Vec<f64> = (0..n)
        .map(|i| data.row(i).iter().zip(&means).zip(&beta).map(|((x, m), b)| (x - m) * b).sum())
        .collect();
    let mut fit = CoxFit {
        n,
        events: data.survival.events(),
        ties: options.ties,
        beta,
        left_out,
        variance: naive_variance.clone(),
        naive_variance,
        robust: false,
        loglik_null,
        loglik: end.derivatives.loglik,
        score: ChiSquared::new(score_chi2, q),
        wald: None,
        robust_score: None,
        iterations: end.iterations,
        means,
        linear_predictor,
        diagnoses,
    };
    if data.robust() {
        make_robust(&mut fit, data, &keep);
    }
    let in_force: Vec<f64> = keep
        .iter()
        .flat_map(|&i| keep.iter().map(move |&j| (i, j)))
        .map(|(i, j)| fit.variance[i * p + j])
        .collect();
    let betas: Vec<f64> = keep.iter().map(|&j| fit.beta[j]).collect();
    fit.wald = quadratic(&in_force, &betas).map(|chi2| ChiSquared::new(chi2, q));
    Ok(fit)
}

/// The values of `v` at `keep`.
pub(super) fn pick(keep: &[usize], v: &[f64]) -> Vec<f64> {
    keep.iter().map(|&j| v[j]).collect()
}

fn make_robust(fit: &mut CoxFit, data: &CoxData, keep: &[usize]) {
    let p = data.columns;
    let residuals = score_residuals(data, fit.ties, &fit.linear_predictor, &fit.means);
    let dfbeta: Vec<f64> =
        residuals.chunks_exact(p).flat_map(|r| multiply(&fit.naive_variance, r, p)).collect();
    fit.variance = crossproduct(&collapse(data, &dfbeta), p);
    fit.robust = true;
    let at_zero = score_residuals(data, fit.ties, &vec![0.0; fit.n], &fit.means);
    let collapsed = collapse(data, &at_zero);
    let full = crossproduct(&collapsed, p);
    let total: Vec<f64> = keep.iter().map(|&j| collapsed.iter().skip(j).step_by(p).sum()).collect();
    let kept: Vec<f64> = keep
        .iter()
        .flat_map(|&i| keep.iter().map(move |&j| (i, j)))
        .map(|(i, j)| full[i * p + j])
        .collect();
    fit.robust_score = quadratic(&kept, &total).map(|chi2| ChiSquared::new(chi2, keep.len()));
}

/// Weights each row and sums rows of one cluster, clusters in order of their number.
fn collapse(data: &CoxData, rows: &[f64]) -> Vec<f64> {
    let p = data.columns;
    let weighted = |i: usize| {
        let w = data.weight(i);
        rows[i * p..(i + 1) * p].iter().map(move |r| w * r)
    };
    let Some(cluster) = data.cluster else {
        return (0..data.survival.len()).flat_map(weighted).collect();
    };
    let mut order: Vec<usize> = (0..cluster.len()).collect();
    order.sort_by_key(|&i| cluster[i]);
    let mut sums = Vec::new();
    for unit in order.chunk_by(|&a, &b| cluster[a] == cluster[b]) {
        let start = sums.len();
        sums.resize(start + p, 0.0);
        for &i in unit {
            sums[start..].iter_mut().zip(weighted(i)).for_each(|(s, r)| *s += r);
        }
    }
    sums
}

fn crossproduct(rows: &[f64], p: usize) -> Vec<f64> {
    let mut out = vec![0.0; p * p];
    for row in rows.chunks_exact(p) {
        for (i, a) in row.iter().enumerate() {
            for (o, b) in out[i * p..(i + 1) * p].iter_mut().zip(row) {
                *o += a * b;
            }
        }
    }
    out
}

fn multiply(matrix: &[f64], v: &[f64], n: usize) -> Vec<f64> {
    matrix.chunks_exact(n).map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum()).collect()
}

/// Means (0 for indicator-like columns), the factor that brings each column's mean absolute
/// deviation to 1, and which columns are constant.
pub(super) fn centre_and_scale(data: &CoxData) -> (Vec<f64>, Vec<f64>, Vec<bool>) {
    let (n, p) = (data.survival.len(), data.columns);
    let total: f64 = (0..n).map(|i| data.weight(i)).sum();
    let (mut means, mut scale) = (vec![0.0; p], vec![1.0; p]);
    let mut indicator = vec![true; p];
    let mut constant = vec![true; p];
    let first = data.row(0);
    for i in 0..n {
        let w = data.weight(i);
        for (j, &x) in data.row(i).iter().enumerate() {
            means[j] += w * x;
            indicator[j] &= x == 0.0 || x.abs() == 1.0;
            constant[j] &= x == first[j];
        }
    }
    for j in 0..p {
        means[j] = if indicator[j] { 0.0 } else { means[j] / total };
    }
    let mut spread = vec![0.0; p];
    for i in 0..n {
        let w = data.weight(i);
        for (j, &x) in data.row(i).iter().enumerate() {
            spread[j] += w * (x - means[j]).abs();
        }
    }
    for j in 0..p {
        if !indicator[j] && spread[j] > 0.0 && (total / spread[j]).is_finite() {
            scale[j] = total / spread[j];
        }
    }
    (means, scale, constant)
}

struct End {
    beta: Vec<f64>,
    derivatives: Derivatives,
    iterations: usize,
    converged: bool,
}

/// Range of x'beta from which on an estimate may be on its way to infinity: R's rule stops the others
/// where hazards still differ by less.
const WIDE: f64 = 8.0;

impl End {
    /// Whether it is worth asking if the estimate is finite. It is asked of the data, so that this
    /// screen costs nothing but time when it is wrong.
    fn may_be_endless(&self, sorted: &Sorted) -> bool {
        let q = sorted.p;
        let singular = || Ldl::new(&self.derivatives.information, q, DEPENDENT).rank() < q;
        let predictor =
            |k: usize| -> f64 { sorted.row(k).iter().zip(&self.beta).map(|(x, b)| x * b).sum() };
        let (low, high) = (0..sorted.order.len())
            .map(predictor)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        !self.converged || high - low > WIDE || singular()
    }
}

/// R's iteration (coxfit6): full steps; a step that loses likelihood is drawn back towards the
/// last good point, harder each time.
fn newton(sorted: &Sorted, options: &Options, start: Derivatives, step: Vec<f64>) -> End {
    let mut good = vec![0.0; step.len()];
    let mut best = start;
    let mut trial = step;
    let mut halving = 0_u32;
    for iteration in 1..=options.max_iterations {
        let here = Derivatives::at(sorted, options.ties, &trial);
        let finite = here.finite();
        let settled = here.loglik == best.loglik
            || (1.0 - best.loglik / here.loglik).abs() <= options.tolerance;
        if finite && halving == 0 && settled {
            return End { beta: trial, derivatives: here, iterations: iteration, converged: true };
        }
        if !finite || here.loglik < best.loglik {
            halving += 1;
            let pull = f64::from(halving);
            for (t, g) in trial.iter_mut().zip(&good) {
                *t = (*t + pull * g) / (pull + 1.0);
            }
        } else {
            halving = 0;
            let step = Ldl::new(&here.information, good.len(), DEPENDENT).solve(&here.score);
            good = trial;
            trial = good.iter().zip(&step).map(|(g, s)| g + s).collect();
            best = here;
        }
    }
    End { beta: good, derivatives: best, iterations: options.max_iterations, converged: false }
}
