//! Score residuals: each row's share of the score, the stuff of robust errors.

use super::CoxData;
use super::risk::Sorted;
use super::risk::Ties;

/// Row-major n x p score residuals at linear predictors `lp`, unweighted, in table order.
///
/// For row i: delta_i (x_i - xbar(t_i)) - e_i sum over t <= t_i of (x_i - xbar(t)) dH(t); with
/// Efron's ties a row dying among d enters term k of its own time with weight 1 - k/d, and its
/// event part averages xbar over the terms.
pub(crate) fn score_residuals(data: &CoxData, ties: Ties, lp: &[f64], centre: &[f64]) -> Vec<f64> {
    let p = data.columns;
    let all: Vec<usize> = (0..p).collect();
    let sorted = Sorted::new(data, &all, centre, &vec![1.0; p]);
    let score: Vec<f64> = sorted.order.iter().map(|&i| lp[i].exp()).collect();

    // Per event group: the hazard step and x-bar times it, for survivors and for the dying, and
    // the mean of x-bar over the terms.
    struct Step {
        hazard: f64,
        moment: Vec<f64>,
        dying_hazard: f64,
        dying_moment: Vec<f64>,
        mean: Vec<f64>,
    }
    let mut steps: Vec<Option<Step>> = Vec::new();
    steps.resize_with(sorted.groups.len(), || None);
    let index = |start: usize| sorted.groups.partition_point(|g| g.start < start);
    let mut mean = vec![0.0; p];
    sorted.walk(ties, &score, |group, sums| {
        let (terms, weight) = sums.terms(ties);
        let mut step = Step {
            hazard: 0.0,
            moment: vec![0.0; p],
            dying_hazard: 0.0,
            dying_moment: vec![0.0; p],
            mean: vec![0.0; p],
        };
        for k in 0..terms {
            let hazard = weight / sums.term(k, terms, &mut mean);
            let part = if ties == Ties::Efron { 1.0 - k as f64 / terms as f64 } else { 1.0 };
            step.hazard += hazard;
            step.dying_hazard += part * hazard;
            for (j, m) in mean.iter().enumerate() {
                step.moment[j] += hazard * m;
                step.dying_moment[j] += part * hazard * m;
                step.mean[j] += m / terms as f64;
            }
        }
        steps[index(group.start)] = Some(step);
    });

    let mut out = vec![0.0; data.survival.len() * p];
    let (mut hazard, mut moment) = (0.0, vec![0.0; p]);
    // Backwards, so that times ascend; a stratum ends at its first group.
    for (group, step) in sorted.groups.iter().zip(&steps).rev() {
        let (before, before_moment) = (hazard, moment.clone());
        if let Some(step) = step {
            hazard += step.hazard;
            moment.iter_mut().zip(&step.moment).for_each(|(m, s)| *m += s);
        }
        for (k, &e) in score.iter().enumerate().take(group.end).skip(group.start) {
            let x = sorted.row(k);
            let i = sorted.order[k];
            let residual = &mut out[i * p..(i + 1) * p];
            match step {
                Some(step) if sorted.event[k] => {
                    for j in 0..p {
                        let h = before + step.dying_hazard;
                        let m = before_moment[j] + step.dying_moment[j];
                        residual[j] = x[j] - step.mean[j] - e * (x[j] * h - m);
                    }
                }
                _ => {
                    for j in 0..p {
                        residual[j] = -e * (x[j] * hazard - moment[j]);
                    }
                }
            }
        }
        if group.first {
            hazard = 0.0;
            moment.fill(0.0);
        }
    }
    out
}
