//! Identical images with different labels, found by content.

use crate::error::Result;
use crate::reader::Corpus;
use crate::schema::{CropMeta, Hash, Label};
use crate::shard::Columns;
use base::digest::hex;
use std::collections::BTreeMap;

/// One occurrence of such an image; as JSON a list of the three.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(into = "(String, Label, Option<String>)")]
pub struct Occurrence {
    /// Path of the crop in its corpus.
    pub path: String,
    /// Label of the crop.
    pub label: Label,
    /// Its subtype, where it has one.
    pub subtype: Option<String>,
}

impl From<Occurrence> for (String, Label, Option<String>) {
    fn from(o: Occurrence) -> Self {
        (o.path, o.label, o.subtype)
    }
}

/// One image that occurs more than once.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SameImage {
    /// SHA-256 of its pixels.
    pub pixels: String,
    /// Every occurrence, in corpus order.
    pub crops: Vec<Occurrence>,
    /// Whether labels or subtypes differ.
    pub contradicts: bool,
}

impl From<CropMeta> for Occurrence {
    fn from(c: CropMeta) -> Self {
        Self { path: c.path, label: c.label, subtype: c.subtype }
    }
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
                crops: crops.into_iter().map(Occurrence::from).collect(),
            }
        })
        .collect())
}
