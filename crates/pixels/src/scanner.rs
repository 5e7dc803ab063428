//! What other laboratories and scanners do to the same tissue: stain, optics, resolution, colour,
//! sensor noise and coding, in this order. Each change has its own strength in the preset.

use mitosis::RgbTile;
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::change::{self, Chroma};

/// Strengths. A range `[lo, hi]` of factors is drawn in the logarithm; probabilities are in [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scanner {
    /// Haematoxylin is scaled by a factor in this range ([1, 1]: never).
    pub haematoxylin: [f32; 2],
    /// Eosin, likewise.
    pub eosin: [f32; 2],
    /// Probability that the stains are scaled at all.
    pub stain: f32,
    /// Each channel is scaled by 1 +- this.
    pub gain: f32,
    /// Off-diagonal entries of the scanner's colour matrix, +- this; every row sums to one.
    pub matrix: f32,
    /// Exponent of the tone curve.
    pub gamma: [f32; 2],
    /// All channels are scaled by 1 +- this.
    pub brightness: f32,
    /// Contrast around the mean changes by 1 +- this.
    pub contrast: f32,
    /// Probability of defocus: a disc or a Gaussian, each half of the times.
    pub defocus: f32,
    /// Largest radius of the disc, and 1.6 times the largest deviation of the Gaussian, px.
    pub defocus_radius: f32,
    /// Probability of motion blur.
    pub motion: f32,
    /// Largest length of the motion, px.
    pub motion_length: f32,
    /// Probability of a coarser scan.
    pub coarse: f32,
    /// Smallest factor of its resolution, in (0, 1] (0.5: a 20x scan).
    pub coarse_factor: f32,
    /// Probability of sharpening.
    pub sharpen: f32,
    /// Largest amount.
    pub sharpen_amount: f32,
    /// Probability of sensor noise.
    pub noise: f32,
    /// Largest standard deviation, grey levels.
    pub noise_sd: f32,
    /// Probability of JPEG recompression off the grid, 4:2:0 or 4:4:4.
    pub jpeg: f32,
    /// Range of its quality.
    pub jpeg_quality: [u8; 2],
}

fn factor([lo, hi]: [f32; 2], rng: &mut impl Rng) -> f32 {
    if lo >= hi { lo } else { rng.random_range(lo.ln()..=hi.ln()).exp() }
}

fn around_one(width: f32, rng: &mut impl Rng) -> f32 {
    1.0 + width * rng.random_range(-1.0..=1.0_f32)
}

impl Scanner {
    /// `(key, reason)` of the first value out of range.
    ///
    /// # Errors
    /// As above.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        for (key, [lo, hi]) in
            [("haematoxylin", self.haematoxylin), ("eosin", self.eosin), ("gamma", self.gamma)]
        {
            if !(lo > 0.0 && lo <= hi && hi <= 10.0) {
                return Err((key, format!("[{lo}, {hi}] is not a range of factors")));
            }
        }
        for (key, p) in [
            ("stain", self.stain),
            ("defocus", self.defocus),
            ("motion", self.motion),
            ("coarse", self.coarse),
            ("sharpen", self.sharpen),
            ("noise", self.noise),
            ("jpeg", self.jpeg),
        ] {
            if !(0.0..=1.0).contains(&p) {
                return Err((key, format!("{p} is not a probability")));
            }
        }
        if !(self.coarse_factor > 0.0 && self.coarse_factor <= 1.0) {
            return Err(("coarse_factor", format!("{} is not in (0, 1]", self.coarse_factor)));
        }
        let [lo, hi] = self.jpeg_quality;
        if !(1 <= lo && lo <= hi && hi <= 100) {
            return Err(("jpeg_quality", format!("[{lo}, {hi}] is not a range in [1, 100]")));
        }
        Ok(())
    }

    /// Changes an image at random.
    #[must_use]
    pub fn apply(&self, tile: &RgbTile, rng: &mut impl Rng) -> RgbTile {
        let mut out = tile.clone();
        if rng.random::<f32>() < self.stain {
            let scale = [factor(self.haematoxylin, rng), factor(self.eosin, rng), 1.0];
            change::stain(&mut out, scale, [0.0; 3]);
        }
        if rng.random::<f32>() < self.defocus {
            let radius = self.defocus_radius * rng.random::<f32>();
            out = if rng.random::<bool>() {
                change::defocus(&out, radius)
            } else {
                change::gaussian(&out, radius / 1.6)
            };
        }
        if rng.random::<f32>() < self.motion {
            let angle = rng.random_range(0.0..std::f32::consts::PI);
            out = change::motion(&out, self.motion_length * rng.random::<f32>(), angle);
        }
        if rng.random::<f32>() < self.coarse {
            out = change::coarser(&out, rng.random_range(self.coarse_factor..=1.0));
        }
        self.tones(&mut out, rng);
        if rng.random::<f32>() < self.sharpen {
            out = change::sharpen(&out, self.sharpen_amount * rng.random::<f32>());
        }
        if rng.random::<f32>() < self.noise {
            change::noise(&mut out, self.noise_sd * rng.random::<f32>(), rng);
        }
        if rng.random::<f32>() < self.jpeg {
            let [lo, hi] = self.jpeg_quality;
            let quality = rng.random_range(lo..=hi);
            let chroma = if rng.random::<bool>() { Chroma::Half } else { Chroma::Full };
            let shift = (rng.random_range(0..16), rng.random_range(0..16));
            out = change::jpeg_shifted(&out, quality, chroma, shift);
        }
        out
    }

    /// Colour matrix, gains, brightness, contrast and tone curve.
    fn tones(&self, out: &mut RgbTile, rng: &mut impl Rng) {
        if self.matrix > 0.0 || self.gain > 0.0 || self.brightness > 0.0 {
            let light = around_one(self.brightness, rng);
            let mut m = [[0.0; 3]; 3];
            for (i, row) in m.iter_mut().enumerate() {
                let gain = light * around_one(self.gain, rng);
                for (j, v) in row.iter_mut().enumerate() {
                    *v = if i == j { 0.0 } else { self.matrix * rng.random_range(-1.0..=1.0_f32) };
                }
                row[i] = 1.0 - row.iter().sum::<f32>();
                row.iter_mut().for_each(|v| *v *= gain);
            }
            change::colours(out, &m);
        }
        if self.contrast > 0.0 || self.gamma != [1.0; 2] {
            let sum: u64 = out.data.iter().map(|&v| u64::from(v)).sum();
            let mean = sum as f32 / out.data.len().max(1) as f32;
            let (contrast, gamma) = (around_one(self.contrast, rng), factor(self.gamma, rng));
            change::through(out, |v| {
                let v = (mean + contrast * (v - mean)).clamp(0.0, 255.0);
                255.0 * (v / 255.0).powf(gamma)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_rng;

    fn off() -> Scanner {
        Scanner {
            haematoxylin: [1.0; 2],
            eosin: [1.0; 2],
            stain: 0.0,
            gain: 0.0,
            matrix: 0.0,
            gamma: [1.0; 2],
            brightness: 0.0,
            contrast: 0.0,
            defocus: 0.0,
            defocus_radius: 0.0,
            motion: 0.0,
            motion_length: 0.0,
            coarse: 0.0,
            coarse_factor: 1.0,
            sharpen: 0.0,
            sharpen_amount: 0.0,
            noise: 0.0,
            noise_sd: 0.0,
            jpeg: 0.0,
            jpeg_quality: [30, 95],
        }
    }

    fn strong() -> Scanner {
        Scanner {
            haematoxylin: [0.6, 1.5],
            eosin: [0.6, 1.5],
            stain: 1.0,
            gain: 0.1,
            matrix: 0.1,
            gamma: [0.7, 1.4],
            brightness: 0.15,
            contrast: 0.2,
            defocus: 1.0,
            defocus_radius: 2.0,
            motion: 1.0,
            motion_length: 3.0,
            coarse: 1.0,
            coarse_factor: 0.5,
            sharpen: 1.0,
            sharpen_amount: 1.0,
            noise: 1.0,
            noise_sd: 8.0,
            jpeg: 1.0,
            jpeg_quality: [30, 95],
        }
    }

    fn picture() -> RgbTile {
        let data = (0..32 * 32).flat_map(|i| [(i % 251) as u8, (i / 5 % 200) as u8, 120]).collect();
        RgbTile::new(32, 32, data)
    }

    #[test]
    fn nothing_asked_nothing_done() {
        assert_eq!(off().apply(&picture(), &mut sample_rng(1, 2)), picture());
    }

    #[test]
    fn each_strength_alone_changes_the_image() {
        let s = strong();
        let alone: [(&str, Scanner); 10] = [
            ("stain", Scanner { stain: 1.0, haematoxylin: s.haematoxylin, ..off() }),
            ("gain", Scanner { gain: 0.1, ..off() }),
            ("matrix", Scanner { matrix: 0.1, ..off() }),
            ("gamma", Scanner { gamma: s.gamma, ..off() }),
            ("contrast", Scanner { contrast: 0.2, ..off() }),
            ("defocus", Scanner { defocus: 1.0, defocus_radius: 2.0, ..off() }),
            ("motion", Scanner { motion: 1.0, motion_length: 3.0, ..off() }),
            ("coarse", Scanner { coarse: 1.0, coarse_factor: 0.5, ..off() }),
            ("noise", Scanner { noise: 1.0, noise_sd: 8.0, ..off() }),
            ("jpeg", Scanner { jpeg: 1.0, ..off() }),
        ];
        for (name, scanner) in alone {
            scanner.check().unwrap();
            let out = scanner.apply(&picture(), &mut sample_rng(5, 6));
            assert_ne!(out, picture(), "{name}");
            assert_eq!(out, scanner.apply(&picture(), &mut sample_rng(5, 6)), "{name}");
        }
    }

    #[test]
    fn deterministic_and_different_per_sample() {
        let a = strong().apply(&picture(), &mut sample_rng(3, 4));
        assert_eq!(a, strong().apply(&picture(), &mut sample_rng(3, 4)));
        assert_ne!(a, strong().apply(&picture(), &mut sample_rng(3, 5)));
    }

    #[test]
    fn factors_stay_in_their_range() {
        let rng = &mut sample_rng(1, 1);
        let drawn: Vec<f32> = (0..500).map(|_| factor([0.6, 1.5], rng)).collect();
        assert!(drawn.iter().all(|f| (0.599..=1.501).contains(f)));
        assert!(drawn.iter().any(|f| *f < 0.7) && drawn.iter().any(|f| *f > 1.3));
    }

    #[test]
    fn values_out_of_range_are_named() {
        let key = |s: Scanner| s.check().unwrap_err().0;
        assert_eq!(key(Scanner { eosin: [0.0, 1.0], ..off() }), "eosin");
        assert_eq!(key(Scanner { jpeg: 1.5, ..off() }), "jpeg");
        assert_eq!(key(Scanner { jpeg_quality: [90, 30], ..off() }), "jpeg_quality");
        assert_eq!(key(Scanner { coarse_factor: 0.0, ..off() }), "coarse_factor");
    }
}
