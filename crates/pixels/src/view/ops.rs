//! Photometric operations with the arithmetic of Pillow and torchvision on 8-bit RGB.

use mitosis::RgbTile;

use crate::mirror;

/// One operation with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// `adjust_brightness`: blend with black; the factor, not negative.
    Brightness(f32),
    /// `adjust_contrast`: blend with the mean grey level.
    Contrast(f32),
    /// `adjust_saturation`: blend with the grey image.
    Saturation(f32),
    /// `adjust_hue`: turns in [-0.5, 0.5].
    Hue(f64),
    /// `rgb_to_grayscale` with three channels.
    Grey,
    /// `gaussian_blur`: kernel side (odd, at most twice the image's side) and deviation, pixels.
    Blur {
        /// Side of the kernel.
        kernel: usize,
        /// Deviation.
        sigma: f64,
    },
    /// `solarize`: levels from this on are inverted.
    Solarise(u8),
}

impl Op {
    /// Changes the image in place.
    pub fn apply(self, tile: &mut RgbTile) {
        match self {
            Self::Brightness(f) => through(tile, |v| blend(0, v, f)),
            Self::Contrast(f) => {
                let n = (tile.width * tile.height) as f64;
                let sum: u64 = tile.data.chunks_exact(3).map(|p| u64::from(luma(p))).sum();
                let mean = (sum as f64 / n + 0.5) as u8;
                through(tile, |v| blend(mean, v, f));
            }
            Self::Saturation(f) => {
                for p in tile.data.chunks_exact_mut(3) {
                    let grey = luma(p);
                    for v in p {
                        *v = blend(grey, *v, f);
                    }
                }
            }
            Self::Hue(turns) => {
                // numpy's `np.int32(hue * 255).astype(np.uint8)`, added with wrap-around.
                let shift = ((turns * 255.0) as i32).rem_euclid(256) as u8;
                for p in tile.data.chunks_exact_mut(3) {
                    let [h, s, v] = to_hsv([p[0], p[1], p[2]]);
                    p.copy_from_slice(&to_rgb([h.wrapping_add(shift), s, v]));
                }
            }
            Self::Grey => {
                for p in tile.data.chunks_exact_mut(3) {
                    let grey = luma(p);
                    p.fill(grey);
                }
            }
            Self::Blur { kernel, sigma } => blur(tile, kernel, sigma),
            Self::Solarise(from) => through(tile, |v| if v >= from { 255 - v } else { v }),
        }
    }
}

fn through(tile: &mut RgbTile, f: impl Fn(u8) -> u8) {
    let table: [u8; 256] = std::array::from_fn(|v| f(v as u8));
    for v in &mut tile.data {
        *v = table[*v as usize];
    }
}

/// Pillow's RGB to L.
fn luma(p: &[u8]) -> u8 {
    let [r, g, b] = [p[0], p[1], p[2]].map(u32::from);
    ((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16) as u8
}

/// Pillow's `Image.blend`: truncated, and cut at the ends where it extrapolates.
fn blend(a: u8, b: u8, factor: f32) -> u8 {
    // A cast from float cuts at 0 and 255 by itself.
    (f32::from(a) + factor * (f32::from(b) - f32::from(a))) as u8
}

/// Pillow's RGB to HSV, all in 0..=255.
fn to_hsv([r, g, b]: [u8; 3]) -> [u8; 3] {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    if most == least {
        return [0, 0, most];
    }
    let range = f32::from(most - least);
    let s = range / f32::from(most);
    let part = |v: u8| f32::from(most - v) / range;
    let (rc, gc, bc) = (part(r), part(g), part(b));
    let h = if r == most {
        bc - gc
    } else if g == most {
        (2.0 + f64::from(rc) - f64::from(bc)) as f32
    } else {
        (4.0 + f64::from(gc) - f64::from(rc)) as f32
    };
    let h = ((f64::from(h) / 6.0 + 1.0) % 1.0) as f32;
    [(f64::from(h) * 255.0) as u8, (f64::from(s) * 255.0) as u8, most]
}

/// Pillow's HSV to RGB.
fn to_rgb([h, s, v]: [u8; 3]) -> [u8; 3] {
    if s == 0 {
        return [v; 3];
    }
    let at = f32::from(h) * 6.0 / 255.0;
    let sector = at.floor();
    let f = f64::from(at - sector);
    let (fs, fv) = (f64::from(f32::from(s) / 255.0), f64::from(v));
    let level = |x: f64| (fv * x).round() as u8;
    let (p, q, t) = (level(1.0 - fs), level(1.0 - fs * f), level(1.0 - fs * (1.0 - f)));
    match sector as u8 % 6 {
        0 => [v, t, p],
        1 => [q, v, p],
        2 => [p, v, t],
        3 => [p, q, v],
        4 => [t, p, v],
        _ => [v, p, q],
    }
}

/// Gaussian blur with mirrored edges, as two passes in f32.
fn blur(tile: &mut RgbTile, kernel: usize, sigma: f64) {
    let radius = kernel / 2;
    let pdf: Vec<f32> =
        (0..=radius).map(|i| (-0.5 * (i as f64 / sigma).powi(2)).exp() as f32).collect();
    let norm = pdf[0] + 2.0 * pdf[1..].iter().sum::<f32>();
    // A tap below 1e-8 moves no level.
    let taps: Vec<f32> = pdf.iter().map(|w| w / norm).take_while(|w| *w > 1e-8).collect();
    if taps.len() < 2 {
        return;
    }
    let reach = taps.len() - 1;
    let (w, h) = (tile.width, tile.height);
    let row = 3 * w;
    let mut wide = vec![0f32; row + 6 * reach];
    let mut once = vec![0f32; row * h];
    for (y, line) in tile.data.chunks_exact(row).enumerate() {
        for (i, px) in wide.chunks_exact_mut(3).enumerate() {
            let from = 3 * mirror(i as i64 - reach as i64, w);
            for c in 0..3 {
                px[c] = f32::from(line[from + c]);
            }
        }
        let out = &mut once[y * row..][..row];
        for (o, v) in out.iter_mut().zip(&wide[3 * reach..]) {
            *o = taps[0] * v;
        }
        for (k, t) in taps.iter().enumerate().skip(1) {
            let (left, right) = (&wide[3 * (reach - k)..], &wide[3 * (reach + k)..]);
            for ((o, a), b) in out.iter_mut().zip(left).zip(right) {
                *o += t * (a + b);
            }
        }
    }
    let mut sum = vec![0f32; row];
    for y in 0..h {
        let line = |i: i64| &once[mirror(i, h) * row..][..row];
        let at = y as i64;
        for (o, v) in sum.iter_mut().zip(line(at)) {
            *o = taps[0] * v;
        }
        for (k, t) in taps.iter().enumerate().skip(1) {
            let (above, below) = (line(at - k as i64), line(at + k as i64));
            for ((o, a), b) in sum.iter_mut().zip(above).zip(below) {
                *o += t * (a + b);
            }
        }
        for (o, v) in tile.data[y * row..][..row].iter_mut().zip(&sum) {
            *o = v.round_ties_even() as u8;
        }
    }
}

/// What one output place is made of.
struct Taps {
    /// First source place.
    start: usize,
    /// 22-bit weights of it and the places after it.
    weights: Vec<i32>,
}

const BITS: u32 = 22;

/// Pillow's bilinear weights with antialiasing.
fn taps(from: usize, to: usize) -> Vec<Taps> {
    let scale = from as f64 / to as f64;
    let support = scale.max(1.0);
    (0..to)
        .map(|i| {
            let centre = (i as f64 + 0.5) * scale;
            let lo = (centre - support + 0.5).max(0.0) as usize;
            let hi = ((centre + support + 0.5) as usize).min(from);
            let weight = |x: usize| (1.0 - ((x as f64 - centre + 0.5) / support).abs()).max(0.0);
            let sum: f64 = (lo..hi).map(weight).sum();
            let fixed = |x| (weight(x) * (1.0 / sum) * f64::from(1 << BITS) + 0.5) as i32;
            Taps { start: lo, weights: (lo..hi).map(fixed).collect() }
        })
        .collect()
}

/// Resizes as Pillow's `resize(BILINEAR)` does, to the bit: columns first, then rows, each rounded.
///
/// # Panics
/// When a side of either image is zero.
pub(super) fn resize(tile: &RgbTile, width: usize, height: usize) -> RgbTile {
    const HALF: i32 = 1 << (BITS - 1);
    let level = |sum: i32| (sum >> BITS).clamp(0, 255) as u8;
    let mut wide = vec![0u8; 3 * width * tile.height];
    let columns = taps(tile.width, width);
    for (line, out) in tile.data.chunks_exact(3 * tile.width).zip(wide.chunks_exact_mut(3 * width))
    {
        for (px, Taps { start, weights }) in out.chunks_exact_mut(3).zip(&columns) {
            let mut sum = [HALF; 3];
            for (from, w) in line[3 * start..].chunks_exact(3).zip(weights) {
                for c in 0..3 {
                    sum[c] += i32::from(from[c]) * w;
                }
            }
            for c in 0..3 {
                px[c] = level(sum[c]);
            }
        }
    }
    let mut data = vec![0u8; 3 * width * height];
    let mut sums = vec![HALF; 3 * width];
    for (out, row) in data.chunks_exact_mut(3 * width).zip(taps(tile.height, height)) {
        sums.fill(HALF);
        for (line, w) in wide[3 * width * row.start..].chunks_exact(3 * width).zip(row.weights) {
            for (s, v) in sums.iter_mut().zip(line) {
                *s += i32::from(*v) * w;
            }
        }
        for (o, s) in out.iter_mut().zip(&sums) {
            *o = level(*s);
        }
    }
    RgbTile::new(width, height, data)
}
