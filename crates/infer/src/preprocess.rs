//! Pixels to network input.
//!
//! Training and inference must see the same pixels. [`resize_rgb`] is the one way a crop becomes a
//! network input; where a slide is at hand, [`sampling`] says at which resolution to read, so that
//! the crop has the network's size already.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use mitosis::Mpp;

/// `(v / 255 - mean) / std` per channel, tabulated: the same f32 result as the formula, for each
/// of the 256 grey values.
#[derive(Clone, Debug)]
pub struct Normalisation {
    table: Box<[[f32; 256]; 3]>,
}

impl Normalisation {
    /// Tabulates mean and standard deviation of R, G, B in [0, 1].
    #[must_use]
    pub fn new(mean: [f32; 3], std: [f32; 3]) -> Self {
        let mut table = Box::new([[0.0; 256]; 3]);
        for (c, row) in table.iter_mut().enumerate() {
            for (v, out) in row.iter_mut().enumerate() {
                *out = (v as f32 / 255.0 - mean[c]) / std[c];
            }
        }
        Self { table }
    }

    /// Interleaved RGB to three planes.
    ///
    /// # Shapes
    /// `rgb` is `H*W*3`, `planes` is `3*H*W`.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn planes(&self, rgb: &[u8], planes: &mut [f32]) {
        assert_eq!(rgb.len(), planes.len(), "RGB bytes and plane values differ in number");
        let n = planes.len() / 3;
        let (r, gb) = planes.split_at_mut(n);
        let (g, b) = gb.split_at_mut(n);
        let [tr, tg, tb] = &*self.table;
        for (((px, r), g), b) in rgb.chunks_exact(3).zip(r).zip(g).zip(b) {
            *r = tr[px[0] as usize];
            *g = tg[px[1] as usize];
            *b = tb[px[2] as usize];
        }
    }
}

/// At which resolution and side a crop of `side` px at `mpp` is read for a network that takes
/// `input` px: at the network's own where that is finer, so that pixels are interpolated once. A
/// slide of 0.2456 um/px would otherwise be resampled to 0.25 and then enlarged, which blurs twice.
#[must_use]
pub fn sampling(mpp: Mpp, side: usize, input: usize) -> (Mpp, usize) {
    match Mpp::new(mpp.get() * side as f64 / input as f64) {
        Ok(fine) if input > side => (fine, input),
        _ => (mpp, side),
    }
}

/// Resizes interleaved 8-bit RGB to `side x side`: bilinear convolution on u8 with pixel centres
/// at .5, widened when shrinking (Pillow's `BILINEAR`). A crop that has the size already is
/// copied.
///
/// For training code: call this and nothing else before normalisation, or the classifier meets
/// other pixels at inference than it learnt from.
///
/// # Shapes
/// `rgb` is `height*width*3`; the result is `side*side*3`.
///
/// # Panics
/// When `rgb` has another length, or a size is zero.
#[must_use]
pub fn resize_rgb(rgb: &[u8], width: usize, height: usize, side: usize) -> Vec<u8> {
    assert_eq!(rgb.len(), 3 * width * height, "RGB bytes of a {width}x{height} crop");
    assert!(width > 0 && height > 0 && side > 0, "cannot resize {width}x{height} to {side}");
    if width == side && height == side {
        return rgb.to_vec();
    }
    let px = |n: usize| u32::try_from(n).expect("a crop is smaller than 2^32 px");
    let source =
        ImageRef::new(px(width), px(height), rgb, PixelType::U8x3).expect("length checked");
    let mut target = Image::new(px(side), px(side), PixelType::U8x3);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
    Resizer::new().resize(&source, &mut target, &options).expect("source and target are both U8x3");
    target.into_vec()
}
