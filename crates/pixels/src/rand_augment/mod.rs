//! RandAugment with timm's semantics: `rand-m9-mstd0.5-inc1` and its kin.
//!
//! Each of `n` operations is drawn evenly from timm's fifteen "increasing" ones, is applied with
//! probability `p`, and takes a magnitude drawn from `N(m, mstd)`, cut to `[0, 10]`. Empty places are
//! filled with ImageNet's mean colour; geometry is bicubic.

mod ops;

use mitosis::RgbTile;
use rand::Rng;
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};

pub use ops::{FILL, RandOp};

/// The policy, written as timm writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RandAugment {
    text: String,
    magnitude: f64,
    std: f64,
    layers: usize,
    probability: f64,
}

impl TryFrom<String> for RandAugment {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bad = |why: String| format!("`{text}`: {why}; write e.g. rand-m9-mstd0.5-inc1");
        let mut parts = text.split('-');
        if parts.next() != Some("rand") {
            return Err(bad("does not start with `rand`".into()));
        }
        let mut out =
            Self { text: String::new(), magnitude: 10.0, std: 0.0, layers: 2, probability: 0.5 };
        let mut increasing = false;
        for part in parts {
            let at = part.find(|c: char| c.is_ascii_digit()).unwrap_or(part.len());
            let (key, number) = part.split_at(at);
            let value: f64 = number.parse().map_err(|_| bad(format!("`{part}` has no number")))?;
            match key {
                "m" => out.magnitude = value,
                "mstd" => out.std = value,
                "n" => out.layers = value as usize,
                "p" => out.probability = value,
                "inc" => increasing = value != 0.0,
                _ => return Err(bad(format!("`{key}` is not known (m, mstd, n, p, inc)"))),
            }
        }
        if !increasing {
            return Err(bad("only the increasing operations (inc1) are there".into()));
        }
        if !(0.0..=10.0).contains(&out.magnitude) || !(0.0..=1.0).contains(&out.probability) {
            return Err(bad("m is in [0, 10], p in [0, 1]".into()));
        }
        Ok(Self { text, ..out })
    }
}

impl From<RandAugment> for String {
    fn from(r: RandAugment) -> Self {
        r.text
    }
}

/// The operations by number, as timm lists them.
const KINDS: usize = 15;

impl RandAugment {
    /// Changes an image at random.
    #[must_use]
    pub fn apply(&self, tile: &RgbTile, rng: &mut impl Rng) -> RgbTile {
        let mut out = tile.clone();
        for _ in 0..self.layers {
            let kind = rng.random_range(0..KINDS);
            if rng.random::<f64>() > self.probability {
                continue;
            }
            let level = match Normal::new(self.magnitude, self.std) {
                Ok(n) if self.std > 0.0 => n.sample(rng).clamp(0.0, 10.0),
                _ => self.magnitude,
            };
            out = Self::op(kind, level, rng.random::<f64>() > 0.5).apply(&out);
        }
        out
    }

    /// Operation `kind` (0..15, timm's order) at a level in [0, 10]; `negate` turns the direction of
    /// those that have one. timm's `LEVEL_TO_ARG`.
    #[must_use]
    pub fn op(kind: usize, level: f64, negate: bool) -> RandOp {
        let share = level / 10.0;
        let signed = |v: f64| if negate { -v } else { v };
        let enhance = || (1.0 + signed(share * 0.9)).max(0.1) as f32;
        match kind {
            0 => RandOp::AutoContrast,
            1 => RandOp::Equalize,
            2 => RandOp::Invert,
            3 => RandOp::Rotate(signed(share * 30.0)),
            4 => RandOp::Posterize(4 - (share * 4.0) as u8),
            5 => RandOp::Solarize(256 - ((share * 256.0) as u16).min(256)),
            6 => RandOp::SolarizeAdd(((share * 110.0) as u8).min(128)),
            7 => RandOp::Color(enhance()),
            8 => RandOp::Contrast(enhance()),
            9 => RandOp::Brightness(enhance()),
            10 => RandOp::Sharpness(enhance()),
            11 => RandOp::ShearX(signed(share * 0.3)),
            12 => RandOp::ShearY(signed(share * 0.3)),
            13 => RandOp::TranslateX(signed(share * 0.45)),
            _ => RandOp::TranslateY(signed(share * 0.45)),
        }
    }
}

#[cfg(test)]
mod tests;
