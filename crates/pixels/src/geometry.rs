//! Which square of a labelled crop is shown, and erased rectangles: weak augmentation.

use mitosis::RgbTile;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::mirror;
use crate::resize::resize;

/// Random placement of the square that the network sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomPlacement {
    /// The square's side is the crop's times 1 +- this.
    pub zoom: f32,
    /// Its centre moves by up to this many pixels from the image's centre, on each axis.
    pub jitter: f32,
    /// Horizontal and vertical flips.
    pub flips: bool,
    /// Quarter turns.
    pub turns: bool,
}

/// The centred `crop` px square, resized to `side` px; mirrored at the edge of smaller images.
#[must_use]
pub fn centred(tile: &RgbTile, crop: usize, side: usize) -> RgbTile {
    let at = |n: usize| (n as i64 - crop as i64).div_euclid(2);
    cut(tile, at(tile.width), at(tile.height), crop, side)
}

fn cut(tile: &RgbTile, x0: i64, y0: i64, crop: usize, side: usize) -> RgbTile {
    let mut data = Vec::with_capacity(3 * crop * crop);
    for y in 0..crop as i64 {
        let sy = mirror(y0 + y, tile.height);
        for x in 0..crop as i64 {
            data.extend(tile.pixel(mirror(x0 + x, tile.width), sy));
        }
    }
    resize(&RgbTile::new(crop, crop, data), side, side)
}

impl RandomPlacement {
    /// A `side` px square of about `crop` px round the image's centre.
    #[must_use]
    pub fn apply(&self, tile: &RgbTile, crop: usize, side: usize, rng: &mut impl Rng) -> RgbTile {
        let mut within = |limit: f32| limit * rng.random_range(-1.0..=1.0_f32);
        let own = ((crop as f32 * (1.0 + within(self.zoom))).round() as usize).max(1);
        let (dx, dy) = (within(self.jitter).round() as i64, within(self.jitter).round() as i64);
        let at = |n: usize, d: i64| (n as i64 - own as i64).div_euclid(2) + d;
        let out = cut(tile, at(tile.width, dx), at(tile.height, dy), own, side);
        let (mut symmetry, turns) = (rng.random_range(0..4_u8), rng.random::<bool>());
        if !self.flips {
            symmetry = 0;
        }
        if self.turns && turns {
            symmetry |= 4;
        }
        out.symmetric(symmetry)
    }
}

/// Random erasing with timm's rule (area 2 % to a third, aspect 0.3 to 1/0.3, ten tries, a normal
/// value per pixel and channel of the normalised image).
#[derive(Clone, Debug, PartialEq)]
pub struct Erased {
    /// Rows from the top.
    pub top: usize,
    /// Columns from the left.
    pub left: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// `3 x height x width` values of the normalised image.
    pub values: Vec<f32>,
}

impl Erased {
    /// Draws a rectangle of a `side` px image with probability `p`.
    #[must_use]
    pub fn draw(p: f32, side: usize, rng: &mut impl Rng) -> Option<Self> {
        if rng.random::<f32>() >= p {
            return None;
        }
        for _ in 0..10 {
            let area = rng.random_range(0.02..=1.0 / 3.0_f64);
            let log = 0.3_f64.ln();
            let aspect = rng.random_range(log..=-log).exp();
            let Some((height, width)) = Self::sides(side, area, aspect) else { continue };
            let top = rng.random_range(0..=side - height);
            let left = rng.random_range(0..=side - width);
            let normal = StandardNormal;
            let values = (0..3 * height * width).map(|_| normal.sample(rng)).collect();
            return Some(Self { top, left, height, width, values });
        }
        None
    }

    /// Height and width for a share of the area and an aspect ratio, if they fit inside.
    #[must_use]
    pub fn sides(side: usize, area: f64, aspect: f64) -> Option<(usize, usize)> {
        let area = area * (side * side) as f64;
        let round = |v: f64| v.sqrt().round_ties_even() as usize;
        let (h, w) = (round(area * aspect), round(area / aspect));
        (h < side && w < side).then_some((h, w))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_rng;

    fn ramp(n: usize) -> RgbTile {
        let data = (0..n * n).flat_map(|i| [(i % n) as u8, (i / n) as u8, 7]).collect();
        RgbTile::new(n, n, data)
    }

    #[test]
    fn the_centre_stays_in_the_centre() {
        let t = ramp(20);
        let c = centred(&t, 8, 8);
        assert_eq!((c.pixel(0, 0), c.pixel(7, 7)), ([6, 6, 7], [13, 13, 7]));
        // Larger than the image: mirrored.
        assert_eq!(centred(&t, 24, 24).pixel(0, 2), [2, 0, 7]);
        let still = RandomPlacement { zoom: 0.0, jitter: 0.0, flips: false, turns: false };
        assert_eq!(still.apply(&t, 8, 8, &mut sample_rng(1, 1)), c);
        let moving = RandomPlacement { zoom: 0.2, jitter: 3.0, flips: true, turns: true };
        assert_ne!(
            moving.apply(&t, 8, 8, &mut sample_rng(1, 1)),
            moving.apply(&t, 8, 8, &mut sample_rng(1, 2))
        );
    }

    /// Sides by timm's formula, `int(round(math.sqrt(area * side^2 * aspect)))`, from Python.
    #[test]
    fn erased_rectangles_have_timms_sides() {
        assert_eq!(Erased::sides(224, 0.1, 1.0), Some((71, 71)));
        assert_eq!(Erased::sides(224, 0.3, 0.5), Some((87, 174)));
        assert_eq!(Erased::sides(96, 1.0 / 3.0, 3.3), None);
        let rng = &mut sample_rng(1, 0);
        let drawn: Vec<_> = (0..2000).filter_map(|_| Erased::draw(0.25, 96, rng)).collect();
        assert!((420..580).contains(&drawn.len()), "{}", drawn.len());
        assert!(drawn.iter().all(|e| e.top + e.height <= 96 && e.left + e.width <= 96));
        assert!(drawn.iter().all(|e| e.values.len() == 3 * e.height * e.width));
    }
}
