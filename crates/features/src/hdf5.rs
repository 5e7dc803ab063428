//! Features of slide tiles as CLAM and TRIDENT read them.
//!
//! At the root: `features` f32 `[n, d]` and `coords` i64 `[n, 2]`, level-0 px of the upper left
//! corners. The attributes of `coords` are TRIDENT's, with its nominal magnifications, and with
//! them the exact um/px (`patch_mpp`, `level0_mpp`). CLAM's `patch_level` is there only where a tile
//! is read from level 0 as it is: CLAM would otherwise read another region.

use crate::error::FeatureError;
use crate::row::{About, Row, Tiles};
use hdf5_pure::{AttrValue, FileBuilder};

/// The bytes of a file.
///
/// # Errors
/// [`FeatureError::Hdf5`].
pub fn encode(
    about: &About,
    rows: &[Row],
    values: &[f32],
    tiles: &Tiles,
) -> Result<Vec<u8>, FeatureError> {
    let n = rows.len() as u64;
    // As h5py writes texts, so that it reads them as texts.
    let text = |t: &str| AttrValue::VarLenString(t.to_owned());
    let mut out = FileBuilder::new();
    let features = out.create_dataset("features");
    features.with_f32_data(values).with_shape(&[n, about.width as u64]);
    features.set_attr("name", text(&tiles.slide));
    features.set_attr("encoder", text(&about.encoder));
    features.set_attr("encoder_sha256", text(&about.sha256));
    features.set_attr("precision", text(about.precision()));
    // An empty attribute would claim that weights stayed random.
    if !about.random.is_empty() {
        features.set_attr("random_at_start", text(&about.random));
    }
    let corners: Vec<i64> = rows.iter().flat_map(|r| [r.x as i64, r.y as i64]).collect();
    let coords = out.create_dataset("coords");
    coords.with_i64_data(&corners).with_shape(&[n, 2]);
    coords.set_attr("name", text(&tiles.slide));
    let numbers = [
        ("patch_size", tiles.side),
        ("patch_size_level0", tiles.level0),
        ("level0_magnification", Tiles::magnification(tiles.level0_mpp)),
        ("target_magnification", Tiles::magnification(tiles.mpp)),
        ("overlap", 0),
        ("level0_width", tiles.extent.0),
        ("level0_height", tiles.extent.1),
    ];
    for (key, value) in numbers {
        coords.set_attr(key, AttrValue::I64(value));
    }
    if tiles.side == tiles.level0 {
        coords.set_attr("patch_level", AttrValue::I64(0));
    }
    coords.set_attr("patch_mpp", AttrValue::F64(tiles.mpp));
    coords.set_attr("level0_mpp", AttrValue::F64(tiles.level0_mpp));
    out.finish().map_err(|e| FeatureError::Hdf5(e.to_string()))
}
