//! Resizing by the one filter that training and inference share.
//!
//! Bilinear convolution on 8-bit RGB with pixel centres at .5 (support grows with the reduction, as
//! Pillow's `BILINEAR`), through `fast_image_resize`. Encoders of others may ask for `BICUBIC`.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use mitosis::{Mpp, RgbTile};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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

impl std::fmt::Display for Interpolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bilinear => "bilinear",
            Self::Bicubic => "bicubic",
        })
    }
}

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
    resize_filtered(tile, width, height, Interpolation::Bilinear)
}

/// [`resize`] by a filter of choice.
///
/// # Panics
/// When a side of either image is zero.
#[must_use]
pub fn resize_filtered(tile: &RgbTile, width: usize, height: usize, by: Interpolation) -> RgbTile {
    if (tile.width, tile.height) == (width, height) {
        return tile.clone();
    }
    convolve(tile, (width, height), (tile.width as f64, tile.height as f64), by)
}

/// How an image of any size becomes the input of a network, as torchvision's `Resize` and `CenterCrop`
/// (and timm's evaluation transform): its shorter side becomes `resize`, the central square of `input`
/// continues.
///
/// A square of `input` pixels stays as it is, although `Resize` would enlarge it first and cut its edge
/// off again. It was cut from a slide at the network's own size and resolution, and that is what the
/// middle of a larger picture has after `Resize`, too; enlarged, it would be blurred and at another scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Side of the input, px.
    pub input: usize,
    /// What the shorter side becomes, px; at least `input`.
    pub resize: usize,
    /// By which filter.
    pub by: Interpolation,
}

impl Fit {
    /// Without an edge that is cut off: squares whole.
    #[must_use]
    pub fn whole(input: usize, by: Interpolation) -> Self {
        Self { input, resize: input, by }
    }

    /// A square of `input` pixels.
    ///
    /// # Panics
    /// When a side is zero, or `resize` is less than `input`.
    #[must_use]
    pub fn apply<'a>(&self, tile: &'a RgbTile) -> Cow<'a, RgbTile> {
        let Self { input, resize, by } = *self;
        let (w, h) = (tile.width, tile.height);
        if (w, h) == (input, input) {
            return Cow::Borrowed(tile);
        }
        let short = w.min(h);
        let (wide, high) = (resize * w / short, resize * h / short);
        let sized = resize_filtered(tile, wide, high, by);
        if (wide, high) == (input, input) {
            return Cow::Owned(sized);
        }
        let (x, y) = (margin(wide, input), margin(high, input));
        let row = |r: usize| &sized.data[3 * (r * wide + x)..][..3 * input];
        let data = (y..y + input).flat_map(row).copied().collect();
        Cow::Owned(RgbTile::new(input, input, data))
    }
}

/// Where the central `of` of `all` pixels begin; half a pixel goes to the even side, as Python rounds.
fn margin(all: usize, of: usize) -> usize {
    let (whole, odd) = ((all - of) / 2, (all - of) % 2);
    whole + odd * (whole % 2)
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
    fn the_middle_of_a_picture_continues() {
        assert_eq!([margin(5, 5), margin(6, 5), margin(7, 5), margin(8, 5)], [0, 0, 1, 2]);
        let fit = Fit { input: 16, resize: 20, by: Interpolation::Bicubic };
        let own = ramp(16);
        assert!(matches!(fit.apply(&own), Cow::Borrowed(same) if same == &own));
        // As large as `resize`: cut, not resampled.
        let larger = ramp(20);
        let cut = fit.apply(&larger);
        assert_eq!((cut.width, cut.height, cut.pixel(0, 3)), (16, 16, [2, 5, 7]));
        let whole = Fit::whole(10, Interpolation::Bicubic);
        let square = resize_filtered(&ramp(20), 10, 10, Interpolation::Bicubic);
        assert_eq!(whole.apply(&ramp(20)).into_owned(), square);
        let wide = RgbTile::filled(40, 20, [1, 2, 3]);
        assert_eq!(*fit.apply(&wide), RgbTile::filled(16, 16, [1, 2, 3]));
    }

    #[test]
    fn same_size_is_a_copy() {
        let t = ramp(16);
        assert_eq!(resize(&t, 16, 16), t);
        assert_eq!(to_resolution(&t, Mpp::PAPER, Mpp::PAPER), t);
        assert_eq!(resize(&t, 28, 28).width, 28);
    }
}
