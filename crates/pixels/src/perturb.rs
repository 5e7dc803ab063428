//! Named, fixed changes that must not matter: what a detector's scores are measured under.
//!
//! A name is complete: the same name gives the same pixels from the same image.

use std::fmt;
use std::str::FromStr;

use mitosis::RgbTile;
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::change::{self, Chroma};
use crate::sample_rng;

/// One named change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Perturbation {
    /// The image as it is.
    Clean,
    /// JPEG at this quality, 4:2:0, off the 8 px grid.
    Jpeg(u8),
    /// Gaussian blur, standard deviation in px.
    Blur(f32),
    /// Sensor noise, standard deviation in grey levels.
    Noise(f32),
    /// The stated um/px is this times the true one.
    Scale(f32),
    /// Scanned at half the resolution.
    Coarse,
    /// All channels times this.
    Brightness(f32),
    /// Haematoxylin times this.
    Haematoxylin(f32),
    /// Eosin times this.
    Eosin(f32),
    /// Stain, brightness, blur, noise and JPEG together, drawn from this seed.
    Combined(u64),
}

use Perturbation as P;

/// Nine changes, one or two of each kind.
pub const SHORT: [Perturbation; 9] = [
    P::Jpeg(30),
    P::Jpeg(70),
    P::Blur(1.0),
    P::Noise(8.0),
    P::Scale(0.9),
    P::Brightness(1.1),
    P::Haematoxylin(0.75),
    P::Haematoxylin(1.25),
    P::Combined(1),
];

/// Twenty-five changes.
pub const FULL: [Perturbation; 25] = [
    P::Jpeg(30),
    P::Jpeg(50),
    P::Jpeg(70),
    P::Jpeg(90),
    P::Blur(0.5),
    P::Blur(1.0),
    P::Blur(1.5),
    P::Noise(4.0),
    P::Noise(8.0),
    P::Scale(0.9),
    P::Scale(0.95),
    P::Scale(1.05),
    P::Scale(1.1),
    P::Coarse,
    P::Brightness(0.9),
    P::Brightness(1.1),
    P::Haematoxylin(0.75),
    P::Haematoxylin(1.25),
    P::Eosin(0.75),
    P::Eosin(1.25),
    P::Combined(1),
    P::Combined(2),
    P::Combined(3),
    P::Combined(4),
    P::Combined(5),
];

/// Which changes are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grid {
    /// [`SHORT`].
    Short,
    /// [`FULL`].
    Full,
}

impl Grid {
    /// The changes, without the clean image.
    #[must_use]
    pub fn changes(self) -> &'static [Perturbation] {
        match self {
            Self::Short => &SHORT,
            Self::Full => &FULL,
        }
    }
}

impl FromStr for Grid {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "short" => Ok(Self::Short),
            "full" => Ok(Self::Full),
            other => Err(format!("unknown grid `{other}` (short or full)")),
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "short",
            Self::Full => "full",
        })
    }
}

impl fmt::Display for Perturbation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            P::Clean => f.write_str("clean"),
            P::Jpeg(q) => write!(f, "jpeg-{q}"),
            P::Blur(s) => write!(f, "blur-{s:.1}"),
            P::Noise(s) => write!(f, "noise-{s:.0}"),
            P::Scale(s) => write!(f, "scale-{s:.2}"),
            P::Coarse => f.write_str("20x"),
            P::Brightness(s) => write!(f, "brightness-{s:.2}"),
            P::Haematoxylin(s) => write!(f, "haematoxylin-{s:.2}"),
            P::Eosin(s) => write!(f, "eosin-{s:.2}"),
            P::Combined(seed) => write!(f, "combined-{seed}"),
        }
    }
}

impl FromStr for Perturbation {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let known = || std::iter::once(P::Clean).chain(FULL);
        known().find(|p| p.to_string() == s).ok_or_else(|| {
            let names: Vec<String> = known().map(|p| p.to_string()).collect();
            format!("unknown change `{s}`; known are {}", names.join(", "))
        })
    }
}

impl Perturbation {
    /// What the stated um/px is multiplied by.
    #[must_use]
    pub fn stated(self) -> f64 {
        match self {
            P::Scale(s) => f64::from(s),
            _ => 1.0,
        }
    }

    /// The changed pixels; `index` numbers the images, so that no two get the same noise.
    #[must_use]
    pub fn apply(self, tile: &RgbTile, index: u64) -> RgbTile {
        let mut out = tile.clone();
        match self {
            P::Clean | P::Scale(_) => {}
            // Three pixels off, so that neither 8 px blocks nor 16 px units coincide.
            P::Jpeg(q) => out = change::jpeg_shifted(tile, q, Chroma::Half, (3, 5)),
            P::Blur(s) => out = change::gaussian(tile, s),
            P::Noise(s) => change::noise(&mut out, s, &mut sample_rng(0x0153, index)),
            P::Coarse => out = change::coarser(tile, 0.5),
            P::Brightness(s) => change::through(&mut out, |v| s * v),
            P::Haematoxylin(s) => change::stain(&mut out, [s, 1.0, 1.0], [0.0; 3]),
            P::Eosin(s) => change::stain(&mut out, [1.0, s, 1.0], [0.0; 3]),
            P::Combined(seed) => out = combined(tile, seed, index),
        }
        out
    }
}

fn combined(tile: &RgbTile, seed: u64, index: u64) -> RgbTile {
    // One scanner and laboratory per seed, its noise per image.
    let lab = &mut sample_rng(seed, u64::MAX);
    let mut out = tile.clone();
    let stains = [lab.random_range(0.75..1.25), lab.random_range(0.75..1.25), 1.0];
    change::stain(&mut out, stains, [0.0; 3]);
    let light: f32 = lab.random_range(0.92..1.08);
    change::through(&mut out, |v| light * v);
    let (blur, noise) = (lab.random_range(0.0..1.0_f32), lab.random_range(0.0..5.0_f32));
    out = change::gaussian(&out, blur);
    let quality = lab.random_range(50..=95);
    let chroma = if lab.random::<bool>() { Chroma::Half } else { Chroma::Full };
    change::noise(&mut out, noise, &mut sample_rng(seed, index));
    change::jpeg_shifted(&out, quality, chroma, (3, 5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn picture() -> RgbTile {
        let data = (0..40 * 40).flat_map(|i| [(i % 251) as u8, (i / 9 % 200) as u8, 140]).collect();
        RgbTile::new(40, 40, data)
    }

    #[test]
    fn names_are_unique_and_read_back() {
        let names: BTreeSet<String> = FULL.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), 25);
        assert!(SHORT.iter().all(|p| FULL.contains(p)));
        assert!(FULL.iter().all(|p| p.to_string().parse() == Ok(*p)));
        assert!("jpeg-31".parse::<Perturbation>().is_err());
        assert_eq!("full".parse::<Grid>().unwrap().changes().len(), 25);
    }

    #[test]
    fn each_changes_pixels_or_the_stated_resolution_and_is_fixed() {
        for p in FULL {
            let out = p.apply(&picture(), 7);
            assert_eq!((out.width, out.height), (40, 40), "{p}");
            assert_eq!(out, p.apply(&picture(), 7), "{p}");
            assert!(out != picture() || p.stated() != 1.0, "{p}");
        }
        assert_eq!(P::Clean.apply(&picture(), 1), picture());
        assert_ne!(P::Noise(8.0).apply(&picture(), 1), P::Noise(8.0).apply(&picture(), 2));
    }
}
