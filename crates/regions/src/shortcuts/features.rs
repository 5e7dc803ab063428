//! What can be measured without seeing the object in a crop.

use mitosis::RgbTile;

use super::ShortcutItem;

/// Above this AUC, by more than its standard error, a feature warns that sees neither the nucleus nor its surroundings.
pub const LIMIT: f64 = 0.65;
/// AUC above which a feature warns if it may also separate the classes for good reasons.
pub const LIMIT_SEEN: f64 = 0.80;

/// A feature.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// What it can see for good reasons.
    pub sees: Sees,
}

/// What a feature can see besides a shortcut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// Neither the nucleus nor its place: separating the classes is a shortcut.
    Nothing,
    /// The nucleus and its clear zone: clumped chromatin has more fine detail than smooth chromatin.
    Nucleus,
    /// The surroundings, which may differ between the classes.
    Surroundings,
}

impl Sees {
    /// The AUC from which the feature warns: a legitimate feature may separate the classes a little.
    #[must_use]
    pub const fn limit(self) -> f64 {
        match self {
            Self::Nothing => LIMIT,
            Self::Nucleus | Self::Surroundings => LIMIT_SEEN,
        }
    }
}

const fn blind(name: &'static str) -> Feature {
    Feature { name, sees: Sees::Nothing }
}

const fn nucleus(name: &'static str) -> Feature {
    Feature { name, sees: Sees::Nucleus }
}

const fn context(name: &'static str) -> Feature {
    Feature { name, sees: Sees::Surroundings }
}

/// Every feature, in the order of `of`.
pub const NAMES: [Feature; 21] = [
    nucleus("fine detail of Y"),
    nucleus("noise level"),
    blind("fine detail of Cb"),
    blind("fine detail of Cr"),
    nucleus("chroma bandwidth of Cb"),
    nucleus("chroma bandwidth of Cr"),
    blind("JPEG blockiness"),
    blind("JPEG grid phase, x, cosine"),
    blind("JPEG grid phase, x, sine"),
    blind("JPEG grid phase, y, cosine"),
    blind("JPEG grid phase, y, sine"),
    blind("bytes"),
    context("border red"),
    context("border green"),
    context("border blue"),
    context("border red deviation"),
    context("border green deviation"),
    context("border blue deviation"),
    context("place, x"),
    context("place, y"),
    context("distance from the image's edge"),
];

struct Plane {
    w: usize,
    h: usize,
    v: Vec<f64>,
}

impl Plane {
    fn at(&self, x: usize, y: usize) -> f64 {
        self.v[y * self.w + x]
    }

    /// Mean absolute value of the second difference along both axes at a step of `d` px.
    fn detail(&self, d: usize) -> f64 {
        let (mut sum, mut n) = (0.0, 0.0);
        for y in d..self.h - d {
            for x in d..self.w - d {
                let row = |y: usize| self.at(x - d, y) - 2.0 * self.at(x, y) + self.at(x + d, y);
                sum += (row(y - d) - 2.0 * row(y) + row(y + d)).abs();
                n += 1.0;
            }
        }
        if n > 0.0 { sum / n } else { 0.0 }
    }

    /// Mean absolute step over each column phase of an 8 px grid.
    fn steps(&self) -> [f64; 8] {
        let (mut sum, mut n) = ([0.0; 8], [0.0; 8]);
        for y in 0..self.h {
            for x in 1..self.w - 2 {
                // A step that its neighbours do not share.
                let step = (self.at(x + 1, y) - self.at(x, y)).abs();
                let around = ((self.at(x, y) - self.at(x - 1, y)).abs()
                    + (self.at(x + 2, y) - self.at(x + 1, y)).abs())
                    / 2.0;
                sum[(x + 1) % 8] += step - around;
                n[(x + 1) % 8] += 1.0;
            }
        }
        std::array::from_fn(|k| if n[k] > 0.0 { sum[k] / n[k] } else { 0.0 })
    }

    fn turned(&self) -> Self {
        let v = (0..self.w * self.h).map(|i| self.at(i / self.h, i % self.h)).collect();
        Self { w: self.h, h: self.w, v }
    }

    fn noise(&self) -> f64 {
        let mut all: Vec<f64> = vec![];
        for y in 1..self.h - 1 {
            for x in 1..self.w - 1 {
                let row = |y: usize| self.at(x - 1, y) - 2.0 * self.at(x, y) + self.at(x + 1, y);
                all.push((row(y - 1) - 2.0 * row(y) + row(y + 1)).abs());
            }
        }
        // The flattest quarter: texture is not noise.
        let k = all.len() / 4;
        let (_, v, _) = all.select_nth_unstable_by(k, f64::total_cmp);
        *v / 6.0
    }
}

fn planes(t: &RgbTile) -> [Plane; 3] {
    let plane = |f: &dyn Fn(f64, f64, f64) -> f64| Plane {
        w: t.width,
        h: t.height,
        v: t.data
            .chunks_exact(3)
            .map(|p| f(f64::from(p[0]), f64::from(p[1]), f64::from(p[2])))
            .collect(),
    };
    [
        plane(&|r, g, b| 0.299 * r + 0.587 * g + 0.114 * b),
        plane(&|r, g, b| -0.168_736 * r - 0.331_264 * g + 0.5 * b),
        plane(&|r, g, b| 0.5 * r - 0.418_688 * g - 0.081_312 * b),
    ]
}

/// Excess of the strongest grid line, and the grid's phase as cosine and sine.
fn grid(steps: &[f64; 8]) -> (f64, f64, f64) {
    let mean = steps.iter().sum::<f64>() / 8.0;
    let (mut c, mut s) = (0.0, 0.0);
    for (k, v) in steps.iter().enumerate() {
        let angle = std::f64::consts::TAU * k as f64 / 8.0;
        c += (v - mean) * angle.cos();
        s += (v - mean) * angle.sin();
    }
    let most = steps.iter().copied().fold(f64::MIN, f64::max);
    (most - mean, c, s)
}

/// Mean and deviation per channel of the outer ring: the middle, three quarters of each side, is
/// masked.
fn border(t: &RgbTile) -> [f64; 6] {
    let (mx, my) = (t.width / 8, t.height / 8);
    let (mut sum, mut square, mut n) = ([0.0; 3], [0.0; 3], 0.0_f64);
    for y in 0..t.height {
        for x in 0..t.width {
            let inside = x >= mx && x < t.width - mx && y >= my && y < t.height - my;
            if !inside {
                for (c, v) in t.pixel(x, y).into_iter().enumerate() {
                    sum[c] += f64::from(v);
                    square[c] += f64::from(v) * f64::from(v);
                }
                n += 1.0;
            }
        }
    }
    let mean = sum.map(|s| s / n.max(1.0));
    let sd = |c: usize| (square[c] / n.max(1.0) - mean[c] * mean[c]).max(0.0).sqrt();
    [mean[0], mean[1], mean[2], sd(0), sd(1), sd(2)]
}

/// The features of an item in the order of [`NAMES`]; NaN where the item does not state one.
pub(super) fn measure(item: &ShortcutItem) -> Vec<f64> {
    let t = &item.tile;
    if t.width < 16 || t.height < 16 {
        return vec![f64::NAN; NAMES.len()];
    }
    let [y, cb, cr] = planes(t);
    let log = |v: f64| (v + 0.01).ln();
    // Against the detail at twice the step: how sharp, not how rich in structure.
    let fine = |p: &Plane| log(p.detail(1)) - log(p.detail(2));
    let wide = |p: &Plane| log(p.detail(1)) - log(p.detail(4));
    let (bx, cx, sx) = grid(&y.steps());
    let (by, cy, sy) = grid(&y.turned().steps());
    let mut out = vec![fine(&y), y.noise(), fine(&cb), fine(&cr), wide(&cb), wide(&cr)];
    out.extend([bx + by, cx, sx, cy, sy]);
    out.push(item.bytes.map_or(f64::NAN, |b| b as f64));
    out.extend(border(t));
    let (px, py) = item.place.unwrap_or((f64::NAN, f64::NAN));
    out.extend([px, py, px.min(1.0 - px).min(py).min(1.0 - py)]);
    out
}
