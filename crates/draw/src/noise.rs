//! Seeded value noise: a pure function of the place, so that any rectangle can be drawn alone.

/// Mixes a seed and a lattice place into 64 well-spread bits (SplitMix64's finaliser).
#[must_use]
pub fn hash(seed: u64, x: i64, y: i64) -> u64 {
    let mut z = seed
        ^ (x as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ (y as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(31);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A float in [0, 1) from hashed bits.
#[must_use]
pub fn unit(bits: u64) -> f32 {
    (bits >> 40) as f32 * (1.0 / (1u64 << 24) as f32)
}

/// Smooth noise in [-1, 1] with one feature per unit of `x` and `y`.
#[must_use]
pub fn value(seed: u64, x: f64, y: f64) -> f32 {
    let (fx, fy) = (x.floor(), y.floor());
    let (ix, iy) = (fx as i64, fy as i64);
    let fade = |t: f32| t * t * (3.0 - 2.0 * t);
    let (u, v) = (fade((x - fx) as f32), fade((y - fy) as f32));
    let at = |dx, dy| unit(hash(seed, ix + dx, iy + dy));
    let top = at(0, 0) + (at(1, 0) - at(0, 0)) * u;
    let bottom = at(0, 1) + (at(1, 1) - at(0, 1)) * u;
    (top + (bottom - top) * v) * 2.0 - 1.0
}

/// Two octaves of [`value`], in [-1, 1].
#[must_use]
pub fn fbm(seed: u64, x: f64, y: f64) -> f32 {
    (value(seed, x, y) + 0.5 * value(seed ^ 0xA5A5, x * 2.03 + 17.0, y * 2.03 - 5.0)) / 1.5
}

/// A small generator of its own, so that what is drawn never changes with a dependency.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Seeds it.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        hash(self.0, 0, 0)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f32 {
        unit(self.bits())
    }

    /// Uniform in [low, high).
    pub fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// Near-normal with mean 0 and SD 1 (sum of twelve uniforms).
    pub fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }

    /// An index below `n`.
    ///
    /// # Panics
    /// When `n` is zero.
    pub fn index(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }
}

/// 0 below `a`, 1 above `b`, smooth between.
#[must_use]
pub fn smoothstep(a: f32, b: f32, x: f32) -> f32 {
    let t = ((x - a) / (b - a)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}
