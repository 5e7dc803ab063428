//! Two views of a crop for pretraining: bounding-box-aware random resized crop and flips, then
//! colour jitter, grey, blur and solarisation on the image alone; and the labels of the view's
//! patch cells.
//!
//! Drawing parameters ([`Views::draw`]) and applying them ([`Placement::apply`], [`Op::apply`]) are
//! apart: given the parameters each operation gives torchvision's pixels (on Pillow images).

mod ops;

use mitosis::RgbTile;
use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::CropBox;
pub use ops::Op;

/// Photometric changes of one view; probabilities in [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Photometry {
    /// Probability of colour jitter.
    pub jitter: f64,
    /// Brightness factor in 1 +- this.
    pub brightness: f64,
    /// Contrast factor in 1 +- this.
    pub contrast: f64,
    /// Saturation factor in 1 +- this.
    pub saturation: f64,
    /// Hue shift in +- this, in turns, at most 0.5.
    pub hue: f64,
    /// Probability of grey.
    pub grey: f64,
    /// Probability of Gaussian blur.
    pub blur: f64,
    /// Range of the blur's deviation, pixels.
    pub blur_sigma: [f64; 2],
    /// Side of the blur's kernel, odd, pixels.
    pub blur_kernel: usize,
    /// Probability of solarisation (at level 128).
    pub solarise: f64,
}

/// How the second view is placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pairing {
    /// Drawn on its own.
    #[default]
    Independent,
    /// The first view's place and flips, shifted by up to this many pixels of the view per axis
    /// (CMAE's pixel shift).
    Shifted(u32),
}

/// What two views are drawn from; the paper's silence is filled with preset fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Views {
    /// Range of the cropped area's share.
    pub area: [f64; 2],
    /// Range of width over height, drawn in the logarithm.
    pub ratio: [f64; 2],
    /// Probability of a horizontal and of a vertical flip.
    pub flip: [f64; 2],
    /// How the second view is placed.
    #[serde(default)]
    pub pairing: Pairing,
    /// Photometric changes of the first view.
    pub first: Photometry,
    /// Photometric changes of the second view.
    pub second: Photometry,
}

/// The spatial stage of a view: whole source pixels, then flips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Left edge in the source, pixels.
    pub x: usize,
    /// Top edge.
    pub y: usize,
    /// Width, at least 1.
    pub w: usize,
    /// Height, at least 1.
    pub h: usize,
    /// Mirrored left to right.
    pub flip_x: bool,
    /// Mirrored top to bottom.
    pub flip_y: bool,
}

/// Parameters of one view.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Its place.
    pub placement: Placement,
    /// What is done to its pixels, in order.
    pub ops: Vec<Op>,
}

impl Photometry {
    /// `(key, reason)` of the first value out of range.
    fn check(&self, view: &str) -> Result<(), (String, String)> {
        let key = |k: &str| format!("views.{view}.{k}");
        for (k, p) in [
            ("jitter", self.jitter),
            ("grey", self.grey),
            ("blur", self.blur),
            ("solarise", self.solarise),
        ] {
            if !(0.0..=1.0).contains(&p) {
                return Err((key(k), format!("{p} is not a probability")));
            }
        }
        let widths = [("brightness", self.brightness), ("contrast", self.contrast)];
        for (k, v) in widths.into_iter().chain([("saturation", self.saturation)]) {
            if !(0.0..=10.0).contains(&v) {
                return Err((key(k), format!("{v} is not in [0, 10]")));
            }
        }
        if !(0.0..=0.5).contains(&self.hue) {
            return Err((key("hue"), format!("{} is not in [0, 0.5]", self.hue)));
        }
        let [lo, hi] = self.blur_sigma;
        if self.blur > 0.0 && !(lo > 0.0 && lo <= hi && hi.is_finite()) {
            return Err((key("blur_sigma"), format!("[{lo}, {hi}] is not a range of deviations")));
        }
        if self.blur > 0.0 && self.blur_kernel.is_multiple_of(2) {
            return Err((key("blur_kernel"), format!("{} is not odd", self.blur_kernel)));
        }
        Ok(())
    }

    fn draw(&self, rng: &mut impl Rng) -> Vec<Op> {
        let mut ops = vec![];
        if rng.random::<f64>() < self.jitter {
            let around = |rng: &mut dyn rand::RngCore, width: f64| {
                rng.random_range((1.0 - width).max(0.0)..=1.0 + width) as f32
            };
            let mut jitter = vec![];
            if self.brightness > 0.0 {
                jitter.push(Op::Brightness(around(rng, self.brightness)));
            }
            if self.contrast > 0.0 {
                jitter.push(Op::Contrast(around(rng, self.contrast)));
            }
            if self.saturation > 0.0 {
                jitter.push(Op::Saturation(around(rng, self.saturation)));
            }
            if self.hue > 0.0 {
                jitter.push(Op::Hue(rng.random_range(-self.hue..=self.hue)));
            }
            jitter.shuffle(rng);
            ops.extend(jitter);
        }
        if rng.random::<f64>() < self.grey {
            ops.push(Op::Grey);
        }
        if rng.random::<f64>() < self.blur {
            let [lo, hi] = self.blur_sigma;
            ops.push(Op::Blur { kernel: self.blur_kernel, sigma: rng.random_range(lo..=hi) });
        }
        if rng.random::<f64>() < self.solarise {
            ops.push(Op::Solarise(128));
        }
        ops
    }
}

impl Views {
    /// Checks ranges.
    ///
    /// # Errors
    /// `(key, reason)` of the first value out of range.
    pub fn check(&self) -> Result<(), (String, String)> {
        let range = |[lo, hi]: [f64; 2], most: f64| lo > 0.0 && lo <= hi && hi <= most;
        if !range(self.area, 1.0) {
            return Err(("views.area".into(), format!("{:?} is not a range in (0, 1]", self.area)));
        }
        if !range(self.ratio, 100.0) {
            return Err(("views.ratio".into(), format!("{:?} is not a range", self.ratio)));
        }
        if !self.flip.iter().all(|p| (0.0..=1.0).contains(p)) {
            return Err(("views.flip".into(), format!("{:?} are not probabilities", self.flip)));
        }
        self.first.check("first")?;
        self.second.check("second")
    }

    /// Parameters of both views of a `width` x `height` crop, for views of side `size`.
    pub fn draw(&self, width: usize, height: usize, size: usize, rng: &mut impl Rng) -> [View; 2] {
        let first = self.place(width, height, rng);
        let second = match self.pairing {
            Pairing::Independent => self.place(width, height, rng),
            Pairing::Shifted(most) => {
                let most = f64::from(most) / size as f64;
                let mut shifted = |at: usize, side: usize, all: usize| {
                    let by = rng.random_range(-1.0..=1.0) * most * side as f64;
                    (at as f64 + by).round().clamp(0.0, (all - side) as f64) as usize
                };
                let x = shifted(first.x, first.w, width);
                Placement { x, y: shifted(first.y, first.h, height), ..first }
            }
        };
        [
            View { placement: first, ops: self.first.draw(rng) },
            View { placement: second, ops: self.second.draw(rng) },
        ]
    }

    /// torchvision's `RandomResizedCrop.get_params`, and flips.
    fn place(&self, width: usize, height: usize, rng: &mut impl Rng) -> Placement {
        let [lo, hi] = self.ratio.map(f64::ln);
        let all = (width * height) as f64;
        let found = (0..10).find_map(|_| {
            let area = all * rng.random_range(self.area[0]..=self.area[1]);
            let ratio = rng.random_range(lo..=hi).exp();
            let w = (area * ratio).sqrt().round_ties_even() as usize;
            let h = (area / ratio).sqrt().round_ties_even() as usize;
            let fits = (1..=width).contains(&w) && (1..=height).contains(&h);
            fits.then(|| (rng.random_range(0..=width - w), rng.random_range(0..=height - h), w, h))
        });
        let (x, y, w, h) = found.unwrap_or_else(|| {
            // The largest centred crop whose shape is allowed.
            let shape = width as f64 / height as f64;
            let (w, h) = if shape < self.ratio[0] {
                (width, ((width as f64 / self.ratio[0]).round_ties_even() as usize).min(height))
            } else if shape > self.ratio[1] {
                (((height as f64 * self.ratio[1]).round_ties_even() as usize).min(width), height)
            } else {
                (width, height)
            };
            ((width - w) / 2, (height - h) / 2, w, h)
        });
        let mut flip = |p: f64| rng.random::<f64>() < p;
        Placement { x, y, w, h, flip_x: flip(self.flip[0]), flip_y: flip(self.flip[1]) }
    }
}

impl Placement {
    /// The whole image, unflipped.
    #[must_use]
    pub fn whole(width: usize, height: usize) -> Self {
        Self { x: 0, y: 0, w: width, h: height, flip_x: false, flip_y: false }
    }

    /// Cuts, resizes to `size` x `size` (bilinear with antialiasing) and flips.
    ///
    /// # Panics
    /// When the place leaves the image.
    #[must_use]
    pub fn apply(&self, tile: &RgbTile, size: usize) -> RgbTile {
        let mut cut = Vec::with_capacity(3 * self.w * self.h);
        for row in self.y..self.y + self.h {
            let at = 3 * (row * tile.width + self.x);
            cut.extend_from_slice(&tile.data[at..at + 3 * self.w]);
        }
        let mut out = ops::resize(&RgbTile::new(self.w, self.h, cut), size, size);
        if self.flip_x {
            for row in out.data.chunks_exact_mut(3 * size) {
                for i in 0..size / 2 {
                    for c in 0..3 {
                        row.swap(3 * i + c, 3 * (size - 1 - i) + c);
                    }
                }
            }
        }
        if self.flip_y {
            let bytes = 3 * size;
            for j in 0..size / 2 {
                let (top, bottom) = out.data.split_at_mut((size - 1 - j) * bytes);
                top[j * bytes..(j + 1) * bytes].swap_with_slice(&mut bottom[..bytes]);
            }
        }
        out
    }

    /// A box of the crop in the view's pixels, cut at its edges; `None` where nothing of it is left.
    #[must_use]
    pub fn map_box(&self, b: CropBox, size: usize) -> Option<CropBox> {
        let side = size as f32;
        let (sx, sy) = (side / self.w as f32, side / self.h as f32);
        let along = |lo: f32, hi: f32, origin: usize, scale: f32, flip: bool| {
            let at = |v: f32| ((v - origin as f32) * scale).clamp(0.0, side);
            if flip { (side - at(hi), side - at(lo)) } else { (at(lo), at(hi)) }
        };
        let (x0, x1) = along(b.x0, b.x1, self.x, sx, self.flip_x);
        let (y0, y1) = along(b.y0, b.y1, self.y, sy, self.flip_y);
        (x0 < x1 && y0 < y1).then_some(CropBox { x0, y0, x1, y1 })
    }
}

impl View {
    /// The view's pixels, `size` x `size`.
    #[must_use]
    pub fn render(&self, tile: &RgbTile, size: usize) -> RgbTile {
        let mut out = self.placement.apply(tile, size);
        for op in &self.ops {
            op.apply(&mut out);
        }
        out
    }
}

/// One per patch cell of a `grid` x `grid` view, row by row: 1 where the cell is inside the box
/// (view pixels) after its edges are rounded to the nearest patch boundary.
#[must_use]
pub fn cells(b: Option<CropBox>, patch: usize, grid: usize) -> Vec<u8> {
    let mut out = vec![0; grid * grid];
    if let Some(b) = b {
        let edge = |v: f32| ((v / patch as f32).round().max(0.0) as usize).min(grid);
        for row in edge(b.y0)..edge(b.y1) {
            out[row * grid..][edge(b.x0)..edge(b.x1)].fill(1);
        }
    }
    out
}

#[cfg(test)]
mod tests;
