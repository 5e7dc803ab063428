//! RandAugment's operations with Pillow's arithmetic on 8-bit RGB.

use mitosis::RgbTile;

use crate::view;

/// timm's fill: ImageNet's mean in 8 bits.
pub const FILL: [u8; 3] = [124, 116, 104];

/// One operation with its parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RandOp {
    /// Each channel stretched to 0..=255.
    AutoContrast,
    /// Each channel's histogram made even.
    Equalize,
    /// 255 - v.
    Invert,
    /// Degrees, counterclockwise, about the centre.
    Rotate(f64),
    /// Bits kept, 0 to 8.
    Posterize(u8),
    /// Levels from this on are inverted.
    Solarize(u16),
    /// Added to levels below 128.
    SolarizeAdd(u8),
    /// Blend with the grey image.
    Color(f32),
    /// Blend with the mean grey level.
    Contrast(f32),
    /// Blend with black.
    Brightness(f32),
    /// Blend with the smoothed image.
    Sharpness(f32),
    /// Source x grows by this much per row.
    ShearX(f64),
    /// Source y grows by this much per column.
    ShearY(f64),
    /// Share of the width.
    TranslateX(f64),
    /// Share of the height.
    TranslateY(f64),
}

impl RandOp {
    /// The changed image.
    #[must_use]
    pub fn apply(self, tile: &RgbTile) -> RgbTile {
        let (w, h) = (tile.width as f64, tile.height as f64);
        let point = |op: view::Op| {
            let mut out = tile.clone();
            op.apply(&mut out);
            out
        };
        match self {
            Self::AutoContrast => per_channel(tile, stretch),
            Self::Equalize => per_channel(tile, even),
            Self::Invert => table(tile, |v| 255 - v),
            Self::Posterize(bits) if bits >= 8 => tile.clone(),
            Self::Posterize(bits) => table(tile, |v| v & !((1_u16 << (8 - bits)) - 1) as u8),
            Self::Solarize(from) => table(tile, |v| if u16::from(v) < from { v } else { 255 - v }),
            Self::SolarizeAdd(add) => {
                table(tile, |v| if v < 128 { v.saturating_add(add) } else { v })
            }
            Self::Color(f) => point(view::Op::Saturation(f)),
            Self::Contrast(f) => point(view::Op::Contrast(f)),
            Self::Brightness(f) => point(view::Op::Brightness(f)),
            Self::Sharpness(f) => {
                let mut out = smooth(tile);
                for (a, b) in out.data.iter_mut().zip(&tile.data) {
                    let (x, y) = (f32::from(*a), f32::from(*b));
                    *a = (x + f * (y - x)) as u8;
                }
                out
            }
            Self::Rotate(degrees) => {
                // Pillow rounds the matrix to 15 digits.
                let digits = |v: f64| (v * 1e15).round() / 1e15;
                let angle = -degrees.to_radians();
                let (cos, sin) = (digits(angle.cos()), digits(angle.sin()));
                let (cx, cy) = (w / 2.0, h / 2.0);
                let tx = cos * -cx + sin * -cy + cx;
                let ty = -sin * -cx + cos * -cy + cy;
                affine(tile, [cos, sin, tx, -sin, cos, ty])
            }
            Self::ShearX(f) => affine(tile, [1.0, f, 0.0, 0.0, 1.0, 0.0]),
            Self::ShearY(f) => affine(tile, [1.0, 0.0, 0.0, f, 1.0, 0.0]),
            Self::TranslateX(f) => affine(tile, [1.0, 0.0, f * w, 0.0, 1.0, 0.0]),
            Self::TranslateY(f) => affine(tile, [1.0, 0.0, 0.0, 0.0, 1.0, f * h]),
        }
    }
}

fn table(tile: &RgbTile, f: impl Fn(u8) -> u8) -> RgbTile {
    let lut: [u8; 256] = std::array::from_fn(|v| f(v as u8));
    let data = tile.data.iter().map(|&v| lut[v as usize]).collect();
    RgbTile::new(tile.width, tile.height, data)
}

fn per_channel(tile: &RgbTile, lut: impl Fn(&[u64; 256]) -> [u8; 256]) -> RgbTile {
    let mut out = tile.clone();
    for c in 0..3 {
        let mut counts = [0_u64; 256];
        tile.data.iter().skip(c).step_by(3).for_each(|&v| counts[v as usize] += 1);
        let lut = lut(&counts);
        out.data.iter_mut().skip(c).step_by(3).for_each(|v| *v = lut[*v as usize]);
    }
    out
}

/// `ImageOps.autocontrast`.
fn stretch(counts: &[u64; 256]) -> [u8; 256] {
    let lo = counts.iter().position(|&n| n > 0).unwrap_or(0);
    let hi = counts.iter().rposition(|&n| n > 0).unwrap_or(0);
    if hi <= lo {
        return std::array::from_fn(|v| v as u8);
    }
    let scale = 255.0 / (hi - lo) as f64;
    let offset = -(lo as f64) * scale;
    std::array::from_fn(|v| (v as f64 * scale + offset) as u8)
}

/// `ImageOps.equalize`.
fn even(counts: &[u64; 256]) -> [u8; 256] {
    let same = std::array::from_fn(|v| v as u8);
    let Some(last) = counts.iter().rposition(|&n| n > 0) else { return same };
    let step = (counts.iter().sum::<u64>() - counts[last]) / 255;
    if counts.iter().filter(|&&n| n > 0).count() <= 1 || step == 0 {
        return same;
    }
    let mut sum = step / 2;
    std::array::from_fn(|v| {
        let level = (sum / step).min(255) as u8;
        sum += counts[v];
        level
    })
}

/// `ImageFilter.SMOOTH`; the outermost pixels stay.
fn smooth(tile: &RgbTile) -> RgbTile {
    let (w, h) = (tile.width, tile.height);
    let mut out = tile.clone();
    let kernel = [1.0, 1.0, 1.0, 1.0, 5.0, 1.0, 1.0, 1.0, 1.0].map(|k: f32| k / 13.0);
    let row = 3 * w;
    for y in 1..h.saturating_sub(1) {
        for x in 3..row.saturating_sub(3) {
            // Pillow adds the rows from the lower one upwards.
            let mut sum = 0.5_f32;
            for (k, r) in [y + 1, y, y - 1].into_iter().enumerate() {
                let at = r * row + x;
                let line = [tile.data[at - 3], tile.data[at], tile.data[at + 3]].map(f32::from);
                sum += line[0] * kernel[3 * k]
                    + line[1] * kernel[3 * k + 1]
                    + line[2] * kernel[3 * k + 2];
            }
            out.data[y * row + x] = sum as u8;
        }
    }
    out
}

/// Pillow's bicubic kernel (a = -1) through four values.
fn cubic(v: [f64; 4], d: f64) -> f64 {
    let p2 = -v[0] + v[2];
    let p3 = 2.0 * (v[0] - v[1]) + v[2] - v[3];
    let p4 = -v[0] + v[1] - v[2] + v[3];
    v[1] + d * (p2 + d * (p3 + d * p4))
}

/// `Image.transform(AFFINE, BICUBIC)` with the same size and [`FILL`] outside: output pixel (x, y)
/// is read at `(a x + b y + c, d x + e y + f)`.
fn affine(tile: &RgbTile, m: [f64; 6]) -> RgbTile {
    let (w, h) = (tile.width as i64, tile.height as i64);
    let mut out = RgbTile::filled(tile.width, tile.height, FILL);
    for (i, px) in out.data.chunks_exact_mut(3).enumerate() {
        let (x, y) = ((i % tile.width) as f64 + 0.5, (i / tile.width) as f64 + 0.5);
        let (sx, sy) = (m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]);
        if sx < 0.0 || sx >= w as f64 || sy < 0.0 || sy >= h as f64 {
            continue;
        }
        let (sx, sy) = (sx - 0.5, sy - 0.5);
        let (fx, fy) = (sx.floor(), sy.floor());
        let (dx, dy) = (sx - fx, sy - fy);
        let columns: [usize; 4] =
            std::array::from_fn(|k| 3 * (fx as i64 - 1 + k as i64).clamp(0, w - 1) as usize);
        let rows: [usize; 4] = std::array::from_fn(|k| {
            3 * tile.width * (fy as i64 - 1 + k as i64).clamp(0, h - 1) as usize
        });
        for (c, v) in px.iter_mut().enumerate() {
            let lines = rows.map(|r| cubic(columns.map(|x| f64::from(tile.data[r + x + c])), dx));
            *v = cubic(lines, dy) as u8;
        }
    }
    out
}
