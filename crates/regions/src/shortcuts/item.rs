//! A labelled crop as it is stored.

use mitosis::RgbTile;

/// One labelled crop.
#[derive(Clone, Debug)]
pub struct ShortcutItem {
    /// Its pixels as stored, not resampled.
    pub tile: RgbTile,
    /// Whether a figure is at its centre.
    pub figure: bool,
    /// Where it comes from: sources are judged each by itself.
    pub source: String,
    /// Slide, on one side of every fold.
    pub slide: String,
    /// Centre on its image, as shares of width and height.
    pub place: Option<(f64, f64)>,
    /// Size as stored.
    pub bytes: Option<u64>,
}
