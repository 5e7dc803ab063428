//! Small symmetric positive systems: LDL' with detection of dependent columns.

/// A symmetric non-negative matrix as L D L', with pivots that vanish marked dependent.
#[derive(Debug, Clone)]
pub(crate) struct Ldl {
    n: usize,
    /// Unit lower triangle below the diagonal, pivots on it (zero where dependent).
    m: Vec<f64>,
}

impl Ldl {
    /// Factors the lower triangle of `a` (row-major n x n). A pivot at most `tolerance` times its
    /// own diagonal is taken for zero: that column depends on those before it.
    pub(crate) fn new(a: &[f64], n: usize, tolerance: f64) -> Self {
        let limits: Vec<f64> = (0..n).map(|i| tolerance * a[i * n + i]).collect();
        Self::with_limits(a, n, &limits)
    }

    /// As [`Ldl::new`], with the largest vanishing pivot given per column.
    pub(crate) fn with_limits(a: &[f64], n: usize, limits: &[f64]) -> Self {
        let mut m = a.to_vec();
        for i in 0..n {
            let mut pivot = a[i * n + i];
            for j in 0..i {
                // m[i][j] holds the partly reduced entry, which is L_ij D_j.
                let mut value = m[i * n + j];
                for k in 0..j {
                    value -= m[i * n + k] * m[j * n + k] * m[k * n + k];
                }
                let d = m[j * n + j];
                m[i * n + j] = if d > 0.0 { value / d } else { 0.0 };
                pivot -= m[i * n + j] * m[i * n + j] * d;
            }
            m[i * n + i] = if pivot > limits[i] { pivot } else { 0.0 };
        }
        Self { n, m }
    }

    /// Whether column `i` depends on those before it.
    pub(crate) fn dependent(&self, i: usize) -> bool {
        self.m[i * self.n + i] <= 0.0
    }

    /// Number of independent columns.
    pub(crate) fn rank(&self) -> usize {
        (0..self.n).filter(|&i| !self.dependent(i)).count()
    }

    /// Solves for `b`, with zeros for dependent columns.
    pub(crate) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let (n, m) = (self.n, &self.m);
        let mut x = b.to_vec();
        for i in 0..n {
            for j in 0..i {
                x[i] -= m[i * n + j] * x[j];
            }
        }
        for i in (0..n).rev() {
            let d = m[i * n + i];
            x[i] = if d > 0.0 { x[i] / d } else { 0.0 };
            if d > 0.0 {
                for j in i + 1..n {
                    x[i] -= m[j * n + i] * x[j];
                }
            }
        }
        x
    }

    /// The inverse, row-major, with zero rows and columns for dependent columns.
    pub(crate) fn inverse(&self) -> Vec<f64> {
        let n = self.n;
        let mut inverse = vec![0.0; n * n];
        let mut unit = vec![0.0; n];
        for j in 0..n {
            if self.dependent(j) {
                continue;
            }
            unit[j] = 1.0;
            let column = self.solve(&unit);
            unit[j] = 0.0;
            for i in 0..n {
                inverse[i * n + j] = column[i];
            }
        }
        inverse
    }
}

/// b' A^-1 b for a symmetric positive A; `None` where A is singular.
pub(crate) fn quadratic(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = b.len();
    let factor = Ldl::new(a, n, 1e-14);
    (factor.rank() == n).then(|| factor.solve(b).iter().zip(b).map(|(x, b)| x * b).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_and_inverts() {
        let a = [4.0, 1.0, 0.5, 1.0, 3.0, 0.2, 0.5, 0.2, 2.0];
        let f = Ldl::new(&a, 3, 1e-12);
        let x = f.solve(&[1.0, 2.0, 3.0]);
        for i in 0..3 {
            let b: f64 = (0..3).map(|j| a[i * 3 + j] * x[j]).sum();
            assert!((b - (i + 1) as f64).abs() < 1e-14);
        }
        let inverse = f.inverse();
        for i in 0..3 {
            for j in 0..3 {
                let v: f64 = (0..3).map(|k| a[i * 3 + k] * inverse[k * 3 + j]).sum();
                assert!((v - f64::from(u8::from(i == j))).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn finds_the_dependent_column() {
        // Column 2 = column 0 + column 1.
        let a = [2.0, 1.0, 3.0, 1.0, 5.0, 6.0, 3.0, 6.0, 9.0];
        let f = Ldl::new(&a, 3, 1e-12);
        assert_eq!((0..3).map(|i| f.dependent(i)).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(f.rank(), 2);
        assert_eq!(f.solve(&[1.0, 1.0, 2.0])[2], 0.0);
        assert_eq!(quadratic(&a, &[1.0, 1.0, 2.0]), None);
    }
}
