//! Identical images with different labels, found by content.

use crate::error::Result;
use crate::reader::Corpus;
use crate::schema::{CropMeta, Hash, Label};
use crate::shard::Columns;
use base::digest::hex;
use std::collections::BTreeMap;

/// One image that occurs more than once.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SameImage {
    /// SHA-256 of its pixels.
    pub pixels: String,
    /// Path, label and subtype of every occurrence, in corpus order.
    pub crops: Vec<(String, Label, Option<String>)>,
    /// Whether labels or subtypes differ.
    pub contradicts: bool,
}

/// Every image that occurs more than once, by decoded pixels, whatever the encoding.
///
/// # Errors
/// When a shard cannot be read.
pub fn repeated_images(corpus: &Corpus) -> Result<Vec<SameImage>> {
    let mut seen: BTreeMap<Hash, Vec<CropMeta>> = BTreeMap::new();
    for crop in corpus.crops(Columns::Meta)? {
        let meta = crop?.meta;
        if let Some(h) = meta.pixels {
            seen.entry(h).or_default().push(meta);
        }
    }
    let repeated = seen.into_iter().filter(|(_, crops)| crops.len() > 1);
    Ok(repeated
        .map(|(h, crops)| {
            let first = (crops[0].label, crops[0].subtype.clone());
            SameImage {
                pixels: hex(&h),
                contradicts: crops.iter().any(|c| (c.label, c.subtype.clone()) != first),
                crops: crops.into_iter().map(|c| (c.path, c.label, c.subtype)).collect(),
            }
        })
        .collect())
}
