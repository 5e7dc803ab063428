//! Ridge logistic regression, cross-validated.

/// Penalty on standardised weights, per item.
const RIDGE: f64 = 0.02;

/// Scores of every item from the model of the other folds; columns are features.
pub(super) fn cross_validated(
    columns: &[Vec<f64>],
    positive: &[bool],
    fold: &[usize],
    folds: usize,
) -> Vec<f64> {
    let n = positive.len();
    let mut scores = vec![0.0; n];
    for out in 0..folds {
        let train: Vec<usize> = (0..n).filter(|&i| fold[i] != out).collect();
        let test: Vec<usize> = (0..n).filter(|&i| fold[i] == out).collect();
        let both = |want: bool| train.iter().any(|&i| positive[i] == want);
        if test.is_empty() || !both(true) || !both(false) {
            continue;
        }
        let scaled: Vec<(f64, f64)> = columns.iter().map(|c| moments(c, &train)).collect();
        let row = |i: usize| -> Vec<f64> {
            let one = columns.iter().zip(&scaled).map(|(c, (m, s))| (c[i] - m) / s);
            std::iter::once(1.0).chain(one).collect()
        };
        let x: Vec<Vec<f64>> = train.iter().map(|&i| row(i)).collect();
        let y: Vec<bool> = train.iter().map(|&i| positive[i]).collect();
        let w = fit(&x, &y);
        for i in test {
            scores[i] = row(i).iter().zip(&w).map(|(a, b)| a * b).sum();
        }
    }
    scores
}

fn moments(column: &[f64], of: &[usize]) -> (f64, f64) {
    let n = of.len() as f64;
    let mean = of.iter().map(|&i| column[i]).sum::<f64>() / n;
    let var = of.iter().map(|&i| (column[i] - mean).powi(2)).sum::<f64>() / n;
    (mean, var.sqrt().max(1e-9))
}

/// Newton's method with classes of equal weight; the first weight is the intercept.
fn fit(x: &[Vec<f64>], y: &[bool]) -> Vec<f64> {
    let (n, d) = (x.len() as f64, x[0].len());
    let figures = y.iter().filter(|&&p| p).count() as f64;
    let mut w = vec![0.0; d];
    for _ in 0..12 {
        let mut gradient = vec![0.0; d];
        let mut hessian = vec![vec![0.0; d]; d];
        for (row, &p) in x.iter().zip(y) {
            let weight = n / 2.0 / if p { figures } else { n - figures };
            let z: f64 = row.iter().zip(&w).map(|(a, b)| a * b).sum();
            let s = 1.0 / (1.0 + (-z).exp());
            let e = weight * (s - f64::from(u8::from(p)));
            let curve = weight * (s * (1.0 - s)).max(1e-6);
            for i in 0..d {
                gradient[i] += e * row[i];
                for j in 0..=i {
                    hessian[i][j] += curve * row[i] * row[j];
                }
            }
        }
        for i in 0..d {
            if i > 0 {
                gradient[i] += RIDGE * n * w[i];
            }
            hessian[i][i] += RIDGE * n;
        }
        let step = solve(hessian, gradient);
        let size: f64 = step.iter().map(|s| s * s).sum();
        w.iter_mut().zip(&step).for_each(|(w, s)| *w -= s);
        if size < 1e-12 {
            break;
        }
    }
    w
}

/// Cholesky on the lower triangle of a positive definite matrix.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let d = b.len();
    for i in 0..d {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| a[i][k] * a[j][k]).sum();
            let v = a[i][j] - sum;
            a[i][j] = if i == j { v.max(1e-12).sqrt() } else { v / a[j][j] };
        }
    }
    for i in 0..d {
        let sum: f64 = (0..i).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
    for i in (0..d).rev() {
        let sum: f64 = (i + 1..d).map(|k| a[k][i] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i][i];
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_cue_is_found_and_noise_is_not() {
        let n = 200;
        let noise = |i: usize| ((i * 7919 + 13) % 101) as f64 / 101.0;
        let positive: Vec<bool> = (0..n).map(|i| i % 2 == 0).collect();
        let fold: Vec<usize> = (0..n).map(|i| i / 2 % 5).collect();
        let cue: Vec<f64> =
            (0..n).map(|i| noise(i) + if positive[i] { 0.8 } else { 0.0 }).collect();
        let flat: Vec<f64> = (0..n).map(|i| noise(3 * i + 1)).collect();
        let auc = |columns: &[Vec<f64>]| {
            let scores = cross_validated(columns, &positive, &fold, 5);
            stats::metrics::roc_auc(&scores, &positive).unwrap().unwrap()
        };
        assert!(auc(&[cue.clone(), flat.clone()]) > 0.9);
        assert!(auc(&[flat]) < 0.65);
    }

    #[test]
    fn solves_a_system() {
        let a = vec![vec![4.0, 0.0], vec![2.0, 3.0]];
        let x = solve(a, vec![8.0, 10.0]);
        // [4 2; 2 3] x = (8, 10).
        assert!((x[0] - 0.5).abs() < 1e-12 && (x[1] - 3.0).abs() < 1e-12, "{x:?}");
    }
}
