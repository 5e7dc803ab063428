//! Whether the likelihood has a maximum at all, by the data alone.
//!
//! The partial likelihood (Breslow's and Efron's alike) does not fall along a direction d exactly when
//! every row that dies has the largest x'd of its risk set. If some row at risk has less, it rises for
//! ever: no estimate is finite (monotone likelihood; Bryson and Johnson, Technometrics 23 (1981)
//! 381-383; Heinze and Schemper, Biometrics 57 (2001) 114-119). Largest values pass on from one death
//! to the next, so one inequality z'd <= 0 per row suffices, not one per pair.
//!
//! Such a d exists unless positive multiples of all z add up to zero (Stiemke's theorem). Non-negative
//! least squares (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23) finds either
//! those multiples or, as its residual, d. What d leaves equal is asked again, until only rows remain
//! that no direction separates; a coefficient has a finite value if these rows determine it (Geyer,
//! Electron. J. Stat. 3 (2009) 259-289).

use super::risk::Sorted;
use crate::survival::linear::Ldl;

/// Below this a cosine is zero: rounding of values that were centred and scaled.
const ZERO: f64 = 1e-8;

/// Which columns of `sorted` have no finite estimate.
pub(super) fn unbounded(sorted: &Sorted) -> Vec<bool> {
    let q = sorted.p;
    let mut rows = inequalities(sorted);
    let mut found = false;
    while let Some(d) = direction(&rows, q) {
        let before = rows.len();
        rows.retain(|z| dot(z, &d).abs() <= ZERO);
        found = true;
        if rows.len() == before {
            break;
        }
    }
    if !found {
        return vec![false; q];
    }
    // An orthonormal basis of what the remaining rows span.
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for z in rows {
        if basis.len() == q {
            break;
        }
        let mut rest = z;
        // Twice, so that rounding of the first pass is taken away, too.
        for _ in 0..2 {
            for b in &basis {
                let share = dot(&rest, b);
                rest.iter_mut().zip(b).for_each(|(r, b)| *r -= share * b);
            }
        }
        let length = dot(&rest, &rest).sqrt();
        if length > ZERO.sqrt() {
            basis.push(rest.into_iter().map(|r| r / length).collect());
        }
    }
    (0..q).map(|j| basis.iter().map(|b| b[j] * b[j]).sum::<f64>() < 1.0 - ZERO.sqrt()).collect()
}

/// The rows z, of length 1, whose z'd must not be positive; rows of zeros are left out.
fn inequalities(sorted: &Sorted) -> Vec<Vec<f64>> {
    let mut out = Vec::new();
    let mut push = |less: usize, more: usize| {
        let z: Vec<f64> =
            sorted.row(less).iter().zip(sorted.row(more)).map(|(a, b)| a - b).collect();
        let length = dot(&z, &z).sqrt();
        if length > 0.0 {
            out.push(z.into_iter().map(|v| v / length).collect());
        }
    };
    // Rows at risk that no death has bounded yet; times descend.
    let mut open: Vec<usize> = Vec::new();
    for group in &sorted.groups {
        if group.first {
            open.clear();
        }
        let rows = group.start..group.end;
        let Some(dies) = rows.clone().find(|&k| sorted.event[k]) else {
            open.extend(rows);
            continue;
        };
        open.drain(..).chain(rows.clone().filter(|&k| k != dies)).for_each(|k| push(k, dies));
        rows.filter(|&k| k != dies && sorted.event[k]).for_each(|k| push(dies, k));
        open.push(dies);
    }
    out
}

/// A direction of length 1 with z'd <= 0 for all rows and z'd < 0 for some, if there is one.
fn direction(rows: &[Vec<f64>], q: usize) -> Option<Vec<f64>> {
    let mut b = vec![0.0; q];
    for z in rows {
        b.iter_mut().zip(z).for_each(|(b, z)| *b -= z);
    }
    let size = dot(&b, &b).sqrt();
    if size == 0.0 {
        return None;
    }
    let rest = residual(rows, &b, q, size)?;
    let length = dot(&rest, &rest).sqrt();
    if length <= ZERO * size.max(1.0) {
        return None;
    }
    let d: Vec<f64> = rest.into_iter().map(|r| r / length).collect();
    // The certificate: only what all rows confirm is claimed.
    let along = || rows.iter().map(|z| dot(z, &d));
    (along().all(|v| v <= ZERO) && along().any(|v| v < -ZERO)).then_some(d)
}

/// b less its nearest non-negative combination of the rows; `None` if the steps run out.
fn residual(rows: &[Vec<f64>], b: &[f64], q: usize, size: f64) -> Option<Vec<f64>> {
    let (mut used, mut share): (Vec<usize>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut rest = b.to_vec();
    for _ in 0..200 + 20 * q {
        let next = (0..rows.len())
            .filter(|j| !used.contains(j))
            .map(|j| (j, dot(&rows[j], &rest)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|(_, gain)| *gain > 1e-12 * size);
        let Some((next, _)) = next else { return Some(rest) };
        used.push(next);
        share.push(0.0);
        loop {
            let wanted = least_squares(rows, &used, b);
            let ratio = |(s, w): (&f64, &f64)| if *w > 0.0 { 1.0 } else { s / (s - w) };
            let part = share.iter().zip(&wanted).map(ratio).fold(1.0, f64::min);
            let part = if part.is_finite() { part } else { 0.0 };
            share.iter_mut().zip(&wanted).for_each(|(s, w)| *s += part * (w - *s));
            if part >= 1.0 {
                break;
            }
            let mut kept = share.iter().map(|s| *s > 1e-14);
            used.retain(|_| kept.next() == Some(true));
            share.retain(|s| *s > 1e-14);
            if used.is_empty() {
                break;
            }
        }
        rest = b.to_vec();
        for (&j, s) in used.iter().zip(&share) {
            rest.iter_mut().zip(&rows[j]).for_each(|(r, z)| *r -= s * z);
        }
        if dot(&rest, &rest).sqrt() <= 1e-13 * size {
            return Some(rest);
        }
    }
    None
}

/// The shares of the rows `used` whose sum is nearest to `b`.
fn least_squares(rows: &[Vec<f64>], used: &[usize], b: &[f64]) -> Vec<f64> {
    let n = used.len();
    let gram: Vec<f64> =
        used.iter().flat_map(|&i| used.iter().map(move |&j| dot(&rows[i], &rows[j]))).collect();
    let right: Vec<f64> = used.iter().map(|&i| dot(&rows[i], b)).collect();
    Ldl::new(&gram, n, 1e-14).solve(&right)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
