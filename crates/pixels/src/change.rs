//! Single changes of an image that leave every pixel in its place. At strength zero each is the
//! identity.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use mitosis::RgbTile;
use rand::Rng;
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;

use crate::mirror;
use crate::resize::resize;

/// Chroma sampling of a JPEG file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Chroma {
    /// 4:2:0, chroma at half the resolution.
    #[serde(rename = "4:2:0")]
    Half,
    /// 4:4:4.
    #[serde(rename = "4:4:4")]
    Full,
}

/// JPEG there and back at `quality` in 1..=100.
///
/// # Panics
/// When a side is zero or above 65535 px.
#[must_use]
pub fn jpeg(tile: &RgbTile, quality: u8, chroma: Chroma) -> RgbTile {
    let mut bytes = vec![];
    let mut encoder = Encoder::new(&mut bytes, quality.clamp(1, 100));
    encoder.set_sampling_factor(match chroma {
        Chroma::Half => SamplingFactor::F_2_2,
        Chroma::Full => SamplingFactor::F_1_1,
    });
    let side = |n: usize| u16::try_from(n).expect("a JPEG side fits 16 bits");
    encoder
        .encode(&tile.data, side(tile.width), side(tile.height), ColorType::Rgb)
        .expect("encoding into memory");
    let data = JpegDecoder::new(ZCursor::new(&bytes)).decode();
    RgbTile::new(tile.width, tile.height, data.expect("decoding what was just encoded"))
}

/// [`jpeg`] with its block grid shifted by (`dx`, `dy`) in 0..16 px, so that it need not fall on
/// the grid the image was coded with before.
///
/// # Panics
/// As [`jpeg`].
#[must_use]
pub fn jpeg_shifted(
    tile: &RgbTile,
    quality: u8,
    chroma: Chroma,
    (dx, dy): (usize, usize),
) -> RgbTile {
    if (dx, dy) == (0, 0) {
        return jpeg(tile, quality, chroma);
    }
    let (w, h) = (tile.width + dx, tile.height + dy);
    let mut data = Vec::with_capacity(3 * w * h);
    for y in 0..h {
        let sy = mirror(y as i64 - dy as i64, tile.height);
        for x in 0..dx {
            data.extend(tile.pixel(mirror(x as i64 - dx as i64, tile.width), sy));
        }
        data.extend_from_slice(&tile.data[3 * sy * tile.width..][..3 * tile.width]);
    }
    let coded = jpeg(&RgbTile::new(w, h, data), quality, chroma);
    let rows = coded.data.chunks_exact(3 * w).skip(dy);
    RgbTile::new(tile.width, tile.height, rows.flat_map(|r| &r[3 * dx..]).copied().collect())
}

fn level(v: f32) -> u8 {
    // A cast from float cuts at 0 and 255 by itself.
    (v + 0.5) as u8
}

/// A neighbour of a pixel.
struct Tap {
    /// To the right, px.
    dx: i64,
    /// Below, px.
    dy: i64,
    weight: f32,
}

/// Correlates with taps whose weights sum to one, mirrored at the edge. Tap by tap over whole rows, which the
/// compiler turns into vectors.
fn correlate(tile: &RgbTile, taps: &[Tap]) -> RgbTile {
    let (w, h) = (tile.width, tile.height);
    let reach = taps.iter().map(|t| t.dx.unsigned_abs()).max().unwrap_or(0) as i64;
    let columns: Vec<usize> = (-reach..w as i64 + reach).map(|x| 3 * mirror(x, w)).collect();
    let mut wide = Vec::with_capacity(3 * columns.len() * h);
    for row in tile.data.chunks_exact((3 * w).max(1)) {
        columns.iter().for_each(|&at| wide.extend_from_slice(&row[at..at + 3]));
    }
    let mut data = Vec::with_capacity(tile.data.len());
    let mut sum = vec![0.0_f32; 3 * w];
    for y in 0..h as i64 {
        sum.fill(0.0);
        for &Tap { dx, dy, weight } in taps {
            let at = 3 * (mirror(y + dy, h) * columns.len() + (reach + dx) as usize);
            for (s, v) in sum.iter_mut().zip(&wide[at..at + 3 * w]) {
                *s += weight * f32::from(*v);
            }
        }
        data.extend(sum.iter().map(|&v| level(v)));
    }
    RgbTile::new(w, h, data)
}

/// Gaussian blur of standard deviation `sigma` px.
#[must_use]
pub fn gaussian(tile: &RgbTile, sigma: f32) -> RgbTile {
    if sigma <= 0.0 {
        return tile.clone();
    }
    let radius = (3.0 * sigma).ceil() as i32;
    let gauss = |i: i32| (-(i as f32).powi(2) / (2.0 * sigma * sigma)).exp();
    let sum: f32 = (-radius..=radius).map(gauss).sum();
    let along = |(x, y): (i64, i64)| -> Vec<Tap> {
        let tap = |i: i32| {
            let (dx, dy) = (i64::from(i) * x, i64::from(i) * y);
            Tap { dx, dy, weight: gauss(i) / sum }
        };
        (-radius..=radius).map(tap).collect()
    };
    correlate(&correlate(tile, &along((1, 0))), &along((0, 1)))
}

/// Taps from samples of their support: the share of 5 x 5 points of each pixel that `inside` accepts,
/// normalised.
fn sampled(radius: f32, inside: impl Fn(f32, f32) -> bool) -> Vec<Tap> {
    let half = radius.ceil() as i32;
    let mut taps = vec![];
    let parts = [-0.4_f32, -0.2, 0.0, 0.2, 0.4];
    for y in -half..=half {
        for x in -half..=half {
            let hits = parts.iter().flat_map(|u| parts.iter().map(move |v| (u, v)));
            let hits = hits.filter(|(u, v)| inside(x as f32 + *u, y as f32 + *v));
            let weight = hits.count() as f32;
            taps.push(Tap { dx: i64::from(x), dy: i64::from(y), weight });
        }
    }
    let sum: f32 = taps.iter().map(|t| t.weight).sum();
    taps.retain(|t| t.weight > 0.0);
    taps.iter_mut().for_each(|t| t.weight /= sum);
    taps
}

/// Defocus: a disc of `radius` px.
#[must_use]
pub fn defocus(tile: &RgbTile, radius: f32) -> RgbTile {
    if radius <= 0.0 {
        return tile.clone();
    }
    correlate(tile, &sampled(radius + 0.5, |x, y| x * x + y * y <= (radius + 0.3).powi(2)))
}

/// Motion: a line of `length` px in the direction `angle` (radians).
#[must_use]
pub fn motion(tile: &RgbTile, length: f32, angle: f32) -> RgbTile {
    if length <= 0.0 {
        return tile.clone();
    }
    let (s, c) = angle.sin_cos();
    let taps = sampled(length / 2.0 + 0.5, |x, y| {
        (x * c + y * s).abs() <= length / 2.0 + 0.3 && (y * c - x * s).abs() <= 0.5
    });
    correlate(tile, &taps)
}

/// Unsharp masking: adds `amount` times what a Gaussian of 1 px takes away.
#[must_use]
pub fn sharpen(tile: &RgbTile, amount: f32) -> RgbTile {
    if amount <= 0.0 {
        return tile.clone();
    }
    let soft = gaussian(tile, 1.0);
    let add = |(v, s): (&u8, &u8)| level(f32::from(*v) + amount * (f32::from(*v) - f32::from(*s)));
    let data = tile.data.iter().zip(&soft.data).map(add).collect();
    RgbTile::new(tile.width, tile.height, data)
}

/// Independent normal noise of standard deviation `sd` grey levels.
pub fn noise(tile: &mut RgbTile, sd: f32, rng: &mut impl Rng) {
    if sd <= 0.0 {
        return;
    }
    let normal = Normal::new(0.0, sd).expect("a finite deviation");
    for v in &mut tile.data {
        *v = level(f32::from(*v) + normal.sample(rng));
    }
}

/// Shrinks by `factor` in (0, 1] and enlarges again: a scan of coarser resolution.
#[must_use]
pub fn coarser(tile: &RgbTile, factor: f32) -> RgbTile {
    let side = |n: usize| ((n as f32 * factor).round() as usize).clamp(1, n);
    let small = resize(tile, side(tile.width), side(tile.height));
    resize(&small, tile.width, tile.height)
}

/// Replaces each grey level.
pub fn through(tile: &mut RgbTile, f: impl Fn(f32) -> f32) {
    let table: [u8; 256] = std::array::from_fn(|v| level(f(v as f32)));
    for v in &mut tile.data {
        *v = table[*v as usize];
    }
}

/// A colour matrix on R, G, B.
pub fn colours(tile: &mut RgbTile, m: &[[f32; 3]; 3]) {
    for px in tile.data.chunks_exact_mut(3) {
        let v = [f32::from(px[0]), f32::from(px[1]), f32::from(px[2])];
        for (out, row) in px.iter_mut().zip(m) {
            *out = level(row[0] * v[0] + row[1] * v[1] + row[2] * v[2]);
        }
    }
}

/// Ruifrok and Johnston: optical densities of haematoxylin, eosin and the residual.
const STAIN: [[f32; 3]; 3] = [
    [0.650_031, 0.704_031, 0.286_013],
    [0.092_805, 0.954_106, 0.283_106],
    [0.636_214, -0.002_085, 0.771_509],
];

fn inverse(m: [[f32; 3]; 3]) -> [[f32; 3]; 3] {
    let cofactor = |r: usize, c: usize| {
        let (a, b) = ((r + 1) % 3, (r + 2) % 3);
        let (d, e) = ((c + 1) % 3, (c + 2) % 3);
        m[a][d] * m[b][e] - m[a][e] * m[b][d]
    };
    let det: f32 = (0..3).map(|c| m[0][c] * cofactor(0, c)).sum();
    std::array::from_fn(|i| std::array::from_fn(|j| cofactor(j, i) / det))
}

fn product(a: [[f32; 3]; 3], b: [[f32; 3]; 3]) -> [[f32; 3]; 3] {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

/// Scales haematoxylin, eosin and the residual, and shifts each (optical density).
pub fn stain(tile: &mut RgbTile, scale: [f32; 3], shift: [f32; 3]) {
    if scale == [1.0; 3] && shift == [0.0; 3] {
        return;
    }
    // Optical density -> stains -> scaled and shifted -> optical density is one affine map.
    let scaled: [[f32; 3]; 3] =
        std::array::from_fn(|i| std::array::from_fn(|j| scale[i] * STAIN[i][j]));
    let map = product(inverse(STAIN), scaled);
    let offset: [f32; 3] = std::array::from_fn(|j| (0..3).map(|k| shift[k] * STAIN[k][j]).sum());
    let density: [f32; 256] = std::array::from_fn(|v| -((v as f32 + 1.0) / 256.0).ln());
    for px in tile.data.chunks_exact_mut(3) {
        let d = [density[px[0] as usize], density[px[1] as usize], density[px[2] as usize]];
        // Unstained glass stays glass: the shift fades with the density.
        let weight = ((d[0] + d[1] + d[2]) / 0.45).min(1.0);
        for j in 0..3 {
            let out = d[0] * map[0][j] + d[1] * map[1][j] + d[2] * map[2][j] + weight * offset[j];
            px[j] = (256.0 * (-out).exp() - 1.0).round().clamp(0.0, 255.0) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_rng;

    fn picture() -> RgbTile {
        let data = (0..48 * 40)
            .flat_map(|i| [(i % 251) as u8, (i / 5 % 200) as u8, (40 + i % 48 * 4) as u8])
            .collect();
        RgbTile::new(48, 40, data)
    }

    /// Mean squared difference of neighbours: what a blur lowers and a sharpening raises.
    fn roughness(t: &RgbTile) -> f64 {
        let d = |a: u8, b: u8| (f64::from(a) - f64::from(b)).powi(2);
        let at = |i: usize| d(t.data[i], t.data[i + 3]);
        (0..t.data.len() - 3).map(at).sum::<f64>() / t.data.len() as f64
    }

    fn mean(t: &RgbTile) -> f64 {
        t.data.iter().map(|&v| f64::from(v)).sum::<f64>() / t.data.len() as f64
    }

    #[test]
    fn strength_zero_is_the_identity() {
        let t = picture();
        assert_eq!(gaussian(&t, 0.0), t);
        assert_eq!(defocus(&t, 0.0), t);
        assert_eq!(motion(&t, 0.0, 1.0), t);
        assert_eq!(sharpen(&t, 0.0), t);
        assert_eq!(coarser(&t, 1.0), t);
        let mut u = t.clone();
        noise(&mut u, 0.0, &mut sample_rng(1, 1));
        through(&mut u, |v| v);
        colours(&mut u, &[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        stain(&mut u, [1.0; 3], [0.0; 3]);
        assert_eq!(u, t);
    }

    #[test]
    fn row_by_row_is_pixel_by_pixel() {
        let t = picture();
        let taps = [(-3, 2, 0.25), (0, 0, 0.125), (2, -5, 0.5), (47, 39, 0.125)];
        let taps = taps.map(|(dx, dy, weight)| Tap { dx, dy, weight });
        let slow: Vec<u8> = (0..40 * 48 * 3)
            .map(|i: i64| {
                let (x, y, c) = (i / 3 % 48, i / 144, i as usize % 3);
                let at = |dx, dy| t.pixel(mirror(x + dx, 48), mirror(y + dy, 40))[c];
                let sum =
                    taps.iter().fold(0.0_f32, |s, t| s + t.weight * f32::from(at(t.dx, t.dy)));
                level(sum)
            })
            .collect();
        assert_eq!(correlate(&t, &taps).data, slow);
    }

    #[test]
    fn blurs_keep_flat_images_and_lower_the_roughness() {
        let flat = RgbTile::filled(20, 20, [90, 120, 200]);
        let t = picture();
        for f in [
            |t: &RgbTile| gaussian(t, 1.5),
            |t: &RgbTile| defocus(t, 1.7),
            |t: &RgbTile| motion(t, 4.0, 0.4),
            |t: &RgbTile| coarser(t, 0.5),
        ] {
            assert_eq!(f(&flat), flat);
            assert!(roughness(&f(&t)) < 0.8 * roughness(&t));
            assert!((mean(&f(&t)) - mean(&t)).abs() < 2.0);
        }
        assert!(roughness(&sharpen(&gaussian(&t, 1.0), 0.8)) > roughness(&gaussian(&t, 1.0)));
    }

    #[test]
    fn a_shifted_jpeg_grid_is_another_coding_of_the_same_picture() {
        let t = picture();
        let (a, b) = (jpeg(&t, 40, Chroma::Half), jpeg_shifted(&t, 40, Chroma::Half, (3, 5)));
        assert_eq!((b.width, b.height), (48, 40));
        assert_ne!(a, b);
        let far = |u: &RgbTile| {
            let d = t.data.iter().zip(&u.data).map(|(x, y)| f64::from(x.abs_diff(*y)));
            d.sum::<f64>() / t.data.len() as f64
        };
        assert!(far(&jpeg(&t, 95, Chroma::Full)) < far(&jpeg(&t, 30, Chroma::Full)));
        assert!(far(&jpeg(&t, 90, Chroma::Full)) < far(&jpeg(&t, 90, Chroma::Half)));
        // The shift is undone: no worse than the unshifted coding by much.
        assert!(far(&b) < 1.5 * far(&a));
    }

    #[test]
    fn noise_has_its_deviation() {
        let mut t = RgbTile::filled(64, 64, [128; 3]);
        noise(&mut t, 6.0, &mut sample_rng(2, 3));
        let ss: f64 = t.data.iter().map(|&v| (f64::from(v) - 128.0).powi(2)).sum();
        let sd = (ss / t.data.len() as f64).sqrt();
        assert!((5.6..6.4).contains(&sd), "{sd}");
    }

    #[test]
    fn more_haematoxylin_is_darker_and_glass_stays_glass() {
        let mut tissue = RgbTile::filled(4, 4, [120, 80, 160]);
        let before = mean(&tissue);
        stain(&mut tissue, [1.3, 1.0, 1.0], [0.0; 3]);
        assert!(mean(&tissue) < before - 5.0);
        let mut glass = RgbTile::filled(4, 4, [255; 3]);
        stain(&mut glass, [1.5, 1.5, 1.0], [0.1; 3]);
        assert_eq!(glass, RgbTile::filled(4, 4, [255; 3]));
    }
}
