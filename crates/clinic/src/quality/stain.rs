//! The two stain vectors of an image by Macenko's method (Macenko et al., ISBI 2009): the plane of the optical
//! densities, and in it the directions at the 1st and 99th percentile of the angles.

/// Light of the empty ground, grey levels.
const GROUND: f64 = 240.0;
/// Pixels below this optical density in any channel are ground.
const LEAST: f64 = 0.15;
/// Percentile of the angles on either side.
const PERCENT: f64 = 1.0;
/// Fewest pixels from which vectors are given.
const FEWEST: usize = 500;

/// Unit vectors of haematoxylin and eosin in optical density, red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stains {
    /// Haematoxylin: the one with the larger share of red.
    pub haematoxylin: [f64; 3],
    /// Optical density of red, green, blue; of length one.
    pub eosin: [f64; 3],
}

/// Optical densities of a pixel.
#[must_use]
pub fn density(pixel: [u8; 3]) -> [f64; 3] {
    pixel.map(|v| -((f64::from(v) + 1.0) / GROUND).ln())
}

/// The middle of sorted numbers; zero of none.
pub(super) fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

impl Stains {
    /// Of pixels; none where too few of them are stained, or all have one colour.
    #[must_use]
    pub fn estimate(pixels: &[[u8; 3]]) -> Option<Self> {
        let all: Vec<[f64; 3]> = pixels.iter().map(|p| density(*p)).collect();
        let all: Vec<[f64; 3]> =
            all.into_iter().filter(|d| d.iter().all(|v| *v >= LEAST)).collect();
        if all.len() < FEWEST {
            return None;
        }
        let [first, second] = plane(&all)?;
        let dot = |a: &[f64; 3], b: &[f64; 3]| (0..3).map(|k| a[k] * b[k]).sum::<f64>();
        let mut angles: Vec<f64> =
            all.iter().map(|d| dot(d, &second).atan2(dot(d, &first))).collect();
        angles.sort_by(f64::total_cmp);
        let at =
            |percent: f64| angles[((angles.len() - 1) as f64 * percent / 100.0).round() as usize];
        let vector = |angle: f64| {
            let v = [0, 1, 2].map(|k| first[k] * angle.cos() + second[k] * angle.sin());
            let length = dot(&v, &v).sqrt();
            v.map(|x| x / length)
        };
        let (a, b) = (vector(at(PERCENT)), vector(at(100.0 - PERCENT)));
        let (haematoxylin, eosin) = if a[0] > b[0] { (a, b) } else { (b, a) };
        Some(Self { haematoxylin, eosin })
    }

    /// The larger of the two angles between the vectors of one and of another, degrees.
    #[must_use]
    pub fn degrees_from(&self, other: &Self) -> f64 {
        let dot = |a: &[f64; 3], b: &[f64; 3]| (0..3).map(|k| a[k] * b[k]).sum::<f64>();
        let angle = |a: &[f64; 3], b: &[f64; 3]| {
            let cos = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
            cos.clamp(-1.0, 1.0).acos().to_degrees()
        };
        angle(&self.haematoxylin, &other.haematoxylin).max(angle(&self.eosin, &other.eosin))
    }

    /// The vectors of the medians, channel by channel; none of none.
    #[must_use]
    pub fn middle(all: &[Self]) -> Option<Self> {
        let channel = |f: &dyn Fn(&Self) -> f64| {
            let mut values: Vec<f64> = all.iter().map(f).collect();
            values.sort_by(f64::total_cmp);
            median(&values)
        };
        let unit = |v: [f64; 3]| {
            let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            v.map(|x| x / length)
        };
        (!all.is_empty()).then(|| Self {
            haematoxylin: unit([0, 1, 2].map(|k| channel(&|s| s.haematoxylin[k]))),
            eosin: unit([0, 1, 2].map(|k| channel(&|s| s.eosin[k]))),
        })
    }
}

/// The two main directions of densities, the first pointing to more of all stains; none where there is one colour
/// alone.
fn plane(all: &[[f64; 3]]) -> Option<[[f64; 3]; 2]> {
    let n = all.len() as f64;
    let mean = [0, 1, 2].map(|k| all.iter().map(|d| d[k]).sum::<f64>() / n);
    let covariance: [[f64; 3]; 3] = std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            all.iter().map(|d| (d[i] - mean[i]) * (d[j] - mean[j])).sum::<f64>() / (n - 1.0)
        })
    });
    let (values, vectors) = eigen(covariance);
    let mut order = [0, 1, 2];
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    let turned = |k: usize| {
        let v = [0, 1, 2].map(|row| vectors[row][k]);
        if v[0] < 0.0 { v.map(|x| -x) } else { v }
    };
    (values[order[1]] > 1e-9).then(|| [turned(order[0]), turned(order[1])])
}

/// Eigenvalues and, in the columns, eigenvectors of a symmetrical matrix, by Jacobi's rotations.
fn eigen(mut a: [[f64; 3]; 3]) -> ([f64; 3], [[f64; 3]; 3]) {
    let mut v = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for _ in 0..30 {
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            if a[p][q].abs() < 1e-15 {
                continue;
            }
            let turn = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
            let (sin, cos) = turn.sin_cos();
            for row in &mut a {
                (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
            }
            let (rp, rq) = (a[p], a[q]);
            for k in 0..3 {
                (a[p][k], a[q][k]) = (cos * rp[k] - sin * rq[k], sin * rp[k] + cos * rq[k]);
            }
            for row in &mut v {
                (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
            }
        }
    }
    ([a[0][0], a[1][1], a[2][2]], v)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(v: [f64; 3]) -> [f64; 3] {
        let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v.map(|x| x / length)
    }

    /// Pixels that are mixed of two known stains give these stains back.
    #[test]
    fn mixed_stains_are_found() {
        let known =
            Stains { haematoxylin: unit([0.65, 0.70, 0.29]), eosin: unit([0.27, 0.85, 0.35]) };
        let mut seed = 7_u64;
        let mut random = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 11) as f64 / (1_u64 << 53) as f64
        };
        let pixels: Vec<[u8; 3]> = (0..20_000)
            .map(|k| {
                let amount = 0.6 + random();
                // A tenth of all is of one stain alone.
                let share = match k % 20 {
                    0 => 0.0,
                    1 => 1.0,
                    _ => random(),
                };
                [0, 1, 2].map(|c| {
                    let d =
                        amount * (share * known.haematoxylin[c] + (1.0 - share) * known.eosin[c]);
                    (GROUND * (-d).exp() - 1.0).round().clamp(0.0, 255.0) as u8
                })
            })
            .collect();
        let found = Stains::estimate(&pixels).unwrap();
        assert!(found.degrees_from(&known) < 2.0, "{found:?}");
        let turned = Stains { haematoxylin: known.eosin, eosin: known.haematoxylin };
        assert!(found.degrees_from(&turned) > 20.0);
        assert_eq!(Stains::estimate(&[[250; 3]; 1000]), None, "ground alone");
        assert_eq!(Stains::estimate(&[[120, 80, 140]; 1000]), None, "one colour");
    }
}
