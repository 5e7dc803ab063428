//! Pixels to network input.
//!
//! Training and inference must see the same pixels: a crop is resized by [`crate::resize`] and
//! normalised by [`Normalisation`], and by nothing else. Where the slide is open, [`sampling`]
//! gives the resolution to read at, so that the crop has the network's size already.

use mitosis::{Mpp, RgbTile};

/// `(v / 255 - mean) / std` per channel, tabulated: the same f32 result as the formula, for each
/// of the 256 grey values.
#[derive(Clone, Debug)]
pub struct Normalisation {
    table: Box<[[f32; 256]; 3]>,
}

/// ImageNet's channel means, as in every model card here.
pub const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
/// ImageNet's channel deviations.
pub const STD: [f32; 3] = [0.229, 0.224, 0.225];

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

    /// Equal tiles as one buffer.
    ///
    /// # Shapes
    /// `tiles` are `N` images of `H x W`; the result is `N*3*H*W`.
    ///
    /// # Panics
    /// When the tiles differ in size, or without tiles.
    #[must_use]
    pub fn batch(&self, tiles: &[RgbTile]) -> Vec<f32> {
        let (w, h) = (tiles[0].width, tiles[0].height);
        let mut all = vec![0.0; tiles.len() * 3 * w * h];
        for (t, planes) in tiles.iter().zip(all.chunks_exact_mut(3 * w * h)) {
            assert_eq!((t.width, t.height), (w, h), "tiles of one batch differ in size");
            self.planes(&t.data, planes);
        }
        all
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
