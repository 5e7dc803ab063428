//! Resizing by the one filter that training and inference share.
//!
//! Bilinear convolution on 8-bit RGB with pixel centres at .5 (support grows with the reduction, as
//! Pillow's `BILINEAR`), through `fast_image_resize`. Encoders of others may ask for `BICUBIC`.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use mitosis::{Mpp, RgbTile};
use serde::{Deserialize, Serialize};

/// The filter that an image is resized by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interpolation {
    /// Pillow's `BILINEAR`, as everything of this project.
    #[default]
    Bilinear,
    /// Pillow's `BICUBIC` (Catmull-Rom).
    Bicubic,
}

/// A word that names no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither bilinear nor bicubic")]
pub struct NoFilter(String);

impl std::str::FromStr for Interpolation {
    type Err = NoFilter;
    fn from_str(word: &str) -> Result<Self, NoFilter> {
        match word {
            "bilinear" => Ok(Self::Bilinear),
            "bicubic" => Ok(Self::Bicubic),
            _ => Err(NoFilter(word.to_owned())),
        }
    }
}

// The typed calls build the filter for 8-bit RGB alone: the others would cost minutes of building.
fn convolve(
    tile: &RgbTile,
    (width, height): (usize, usize),
    source: (f64, f64),
    by: Interpolation,
) -> RgbTile {
    let px = |n: usize| u32::try_from(n).expect("an image side fits 32 bits");
    let src = TypedImageRef::<U8x3>::from_buffer(px(tile.width), px(tile.height), &tile.data)
        .expect("an RgbTile's buffer has its size");
    let mut dst = TypedImage::<U8x3>::new(px(width), px(height));
    let filter = match by {
        Interpolation::Bilinear => FilterType::Bilinear,
        Interpolation::Bicubic => FilterType::CatmullRom,
    };
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(filter))
        .crop(0.0, 0.0, source.0, source.1);
    Resizer::new().resize_typed(&src, &mut dst, &options).expect("non-empty sizes");
    let data = dst.pixels().iter().flat_map(|p| p.0).collect();
    RgbTile::new(width, height, data)
}

/// Resizes to `width` x `height` pixels; the same size is a plain copy.
///
/// # Panics
/// When a side of either image is zero.
#[must_use]
pub fn resize(tile: &RgbTile, width: usize, height: usize) -> RgbTile {
    resize_by(tile, width, height, Interpolation::Bilinear)
}

/// [`resize`] by a filter of choice.
///
/// # Panics
/// When a side of either image is zero.
#[must_use]
pub fn resize_by(tile: &RgbTile, width: usize, height: usize, by: Interpolation) -> RgbTile {
    if (tile.width, tile.height) == (width, height) {
        return tile.clone();
    }
    convolve(tile, (width, height), (tile.width as f64, tile.height as f64), by)
}

/// Resamples from one resolution to another, exactly: the output covers as many whole pixels as
/// the input holds, and a strip narrower than one output pixel at the right and bottom is left out
/// instead of stretching the image by a fraction of a pixel.
///
/// # Panics
/// When the input is smaller than one output pixel.
#[must_use]
pub fn to_resolution(tile: &RgbTile, from: Mpp, to: Mpp) -> RgbTile {
    if from == to {
        return tile.clone();
    }
    let step = from.ratio(to);
    let side = |n: usize| ((n as f64 / step) + 1e-9).floor() as usize;
    let (w, h) = (side(tile.width), side(tile.height));
    let span = |out: usize, all: usize| (out as f64 * step).min(all as f64);
    let source = (span(w, tile.width), span(h, tile.height));
    convolve(tile, (w, h), source, Interpolation::Bilinear)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(n: usize) -> RgbTile {
        let data = (0..n * n).flat_map(|i| [(i % n) as u8, (i / n) as u8, 7]).collect();
        RgbTile::new(n, n, data)
    }

    #[test]
    fn keeps_positions_when_resampled() {
        // A ramp stays a ramp: value at output pixel j is its centre's source coordinate.
        let (from, to) = (Mpp::new(0.2456).unwrap(), Mpp::PAPER);
        let out = to_resolution(&ramp(200), from, to);
        assert_eq!((out.width, out.height), (196, 196));
        let step = from.ratio(to);
        for j in [10, 100, 190] {
            let expected = (j as f64 + 0.5) * step - 0.5;
            let got = f64::from(out.pixel(j, 50)[0]);
            assert!((got - expected).abs() <= 0.6, "pixel {j}: {got} against {expected}");
        }
    }

    #[test]
    fn same_size_is_a_copy() {
        let t = ramp(16);
        assert_eq!(resize(&t, 16, 16), t);
        assert_eq!(to_resolution(&t, Mpp::PAPER, Mpp::PAPER), t);
        assert_eq!(resize(&t, 28, 28).width, 28);
    }
}
