//! Changes of colour and sharpness that leave every pixel in its place.

use mitosis::RgbTile;
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::change::{self, Chroma};
use crate::scanner::Scanner;

/// Strengths; zero switches a change off. Every probability is in [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Photometric {
    /// Haematoxylin, eosin and residual are scaled by 1 +- this, each by itself.
    pub stain_scale: f32,
    /// And shifted by +- this (optical density).
    pub stain_shift: f32,
    /// Brightness, contrast and saturation change by a factor 1 +- this.
    pub colour: f32,
    /// Probability of exchanging the stain with grey (image without colour).
    pub grey: f32,
    /// Probability of a Gaussian blur, sigma in [0.3, `blur_sigma`] px.
    pub blur: f32,
    /// Largest sigma, pixels.
    pub blur_sigma: f32,
    /// Probability of JPEG recompression.
    pub jpeg: f32,
    /// Lowest JPEG quality (highest is 95).
    pub jpeg_quality: u8,
    /// Probability of erasing a rectangle of 2 to 15 % of the area (classifier only).
    pub erase: f32,
    /// Strong changes as between scanners and laboratories, after all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scanner: Option<Scanner>,
}

fn around_one(rng: &mut impl Rng, width: f32) -> f32 {
    1.0 + width * rng.random_range(-1.0..=1.0_f32)
}

impl Photometric {
    /// Changes an image at random.
    #[must_use]
    pub fn apply(&self, tile: &RgbTile, rng: &mut impl Rng) -> RgbTile {
        let mut out = tile.clone();
        if self.stain_scale > 0.0 || self.stain_shift > 0.0 {
            self.stain(&mut out, rng);
        }
        if self.colour > 0.0 || self.grey > 0.0 {
            self.colour(&mut out, rng);
        }
        if rng.random::<f32>() < self.blur {
            out = change::gaussian(&out, rng.random_range(0.3..=self.blur_sigma.max(0.3)));
        }
        if rng.random::<f32>() < self.jpeg {
            let quality = rng.random_range(self.jpeg_quality.min(95)..=95);
            out = change::jpeg(&out, quality, Chroma::Half);
        }
        if rng.random::<f32>() < self.erase {
            erase(&mut out, rng);
        }
        match &self.scanner {
            Some(scanner) => scanner.apply(&out, rng),
            None => out,
        }
    }

    fn stain(&self, tile: &mut RgbTile, rng: &mut impl Rng) {
        let scale = std::array::from_fn(|_| around_one(rng, self.stain_scale));
        let shift = std::array::from_fn(|_| self.stain_shift * rng.random_range(-1.0..=1.0_f32));
        change::stain(tile, scale, shift);
    }

    fn colour(&self, tile: &mut RgbTile, rng: &mut impl Rng) {
        let brightness = around_one(rng, self.colour);
        let contrast = around_one(rng, self.colour);
        let mut saturation = around_one(rng, self.colour);
        if rng.random::<f32>() < self.grey {
            saturation = 0.0;
        }
        let sum: u64 = tile.data.iter().map(|&v| u64::from(v)).sum();
        let mean = sum as f32 / tile.data.len().max(1) as f32;
        for px in tile.data.chunks_exact_mut(3) {
            let v = [f32::from(px[0]), f32::from(px[1]), f32::from(px[2])];
            let luma = 0.299 * v[0] + 0.587 * v[1] + 0.114 * v[2];
            for j in 0..3 {
                let c = luma + saturation * (v[j] - luma);
                let c = brightness * (mean + contrast * (c - mean));
                px[j] = c.round().clamp(0.0, 255.0) as u8;
            }
        }
    }
}

fn erase(tile: &mut RgbTile, rng: &mut impl Rng) {
    let (w, h) = (tile.width, tile.height);
    let area = rng.random_range(0.02..0.15_f32) * (w * h) as f32;
    let aspect = rng.random_range(0.4..2.5_f32);
    let bw = ((area * aspect).sqrt() as usize).clamp(1, w);
    let bh = ((area / aspect).sqrt() as usize).clamp(1, h);
    let (x0, y0) = (rng.random_range(0..=w - bw), rng.random_range(0..=h - bh));
    let colour: [u8; 3] = rng.random();
    for y in y0..y0 + bh {
        for x in x0..x0 + bw {
            tile.data[3 * (y * w + x)..][..3].copy_from_slice(&colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_rng;

    fn none() -> Photometric {
        Photometric {
            stain_scale: 0.0,
            stain_shift: 0.0,
            colour: 0.0,
            grey: 0.0,
            blur: 0.0,
            blur_sigma: 1.0,
            jpeg: 0.0,
            jpeg_quality: 60,
            erase: 0.0,
            scanner: None,
        }
    }

    fn picture() -> RgbTile {
        let data = (0..32 * 32).flat_map(|i| [(i % 251) as u8, (i / 5 % 200) as u8, 120]).collect();
        RgbTile::new(32, 32, data)
    }

    #[test]
    fn nothing_asked_nothing_done() {
        assert_eq!(none().apply(&picture(), &mut sample_rng(1, 2)), picture());
    }

    #[test]
    fn an_identity_stain_change_keeps_the_image() {
        let tiny = Photometric { stain_scale: 1e-7, ..none() };
        let (a, b) = (picture(), tiny.apply(&picture(), &mut sample_rng(1, 2)));
        let worst = a.data.iter().zip(&b.data).map(|(x, y)| x.abs_diff(*y)).max();
        assert!(worst <= Some(1), "{worst:?}");
    }

    #[test]
    fn deterministic_and_effective() {
        let strong = Photometric {
            stain_scale: 0.2,
            stain_shift: 0.1,
            colour: 0.2,
            blur: 1.0,
            jpeg: 1.0,
            erase: 1.0,
            ..none()
        };
        let a = strong.apply(&picture(), &mut sample_rng(3, 4));
        assert_eq!(a, strong.apply(&picture(), &mut sample_rng(3, 4)));
        assert_ne!(a, strong.apply(&picture(), &mut sample_rng(3, 5)));
        assert_ne!(a, picture());
    }

    #[test]
    fn grey_has_equal_channels() {
        let grey = Photometric { grey: 1.0, ..none() };
        let out = grey.apply(&picture(), &mut sample_rng(1, 1));
        assert!(out.data.chunks_exact(3).all(|p| p[0] == p[1] && p[1] == p[2]));
    }
}
