//! The part of a corpus that one slide becomes, as it is written.

use super::error::ConstructError;
use super::exclude::Origin;
use base::digest::{Digest, Sha256};
use crops::schema::pixel_hash;
use crops::{CorpusWriter, CropBox, CropMeta, Label};
use crops::{EncodeError, Encoding};
use mitosis::{Detection, Level0, Mpp, Point, RgbTile};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use slide::{PlannedWindow, Slide};

pub(super) struct Out<'a> {
    pub(super) writer: CorpusWriter,
    pub(super) slide: &'a Slide,
    pub(super) name: &'a str,
    pub(super) origin: &'a Origin,
    pub(super) source: String,
}

/// A crop's record, without its pixels.
pub(super) struct CropRecord<'d> {
    pub(super) label: Label,
    pub(super) subtype: Option<String>,
    pub(super) detection: Option<&'d Detection>,
    pub(super) centre: Point<Level0>,
    pub(super) bbox: Option<CropBox>,
    pub(super) mpp: Mpp,
    pub(super) path: String,
}

impl Out<'_> {
    pub(super) fn push(
        &mut self,
        tile: &RgbTile,
        encoding: Encoding,
        crop: CropRecord<'_>,
    ) -> Result<(), ConstructError> {
        let bytes = encoding.encode(tile)?;
        // What a reader will decode, not what was encoded.
        let stored = match encoding {
            Encoding::Png => pixel_hash(tile),
            Encoding::Jpeg(_) => {
                let image = image::load_from_memory(&bytes).map_err(EncodeError::from)?.into_rgb8();
                pixel_hash(&RgbTile::new(tile.width, tile.height, image.into_raw()))
            }
        };
        let meta = CropMeta {
            subtype: crop.subtype,
            s_seg: crop.detection.map(|d| d.candidate.s_seg),
            s_cls: crop.detection.and_then(|d| d.s_cls),
            bbox: crop.bbox,
            centroid: Some(crop.centre),
            patient: self.origin.patient.clone(),
            cohort: self.origin.cohort.clone(),
            source: self.source.clone(),
            pixels: Some(stored),
            ..CropMeta::new(
                crop.path,
                crop.label,
                self.name.to_owned(),
                crop.mpp,
                (tile.width as u32, tile.height as u32),
            )
        };
        Ok(self.writer.push(meta, bytes)?)
    }
}

pub(super) fn encoding(quality: Option<u8>) -> Encoding {
    quality.map_or(Encoding::Png, Encoding::Jpeg)
}

/// Leaves `most` of them, drawn by `seed`; all without a limit.
pub(super) fn draw(tiles: &mut Vec<PlannedWindow>, most: Option<usize>, seed: &str) {
    if let Some(most) = most.filter(|most| tiles.len() > *most) {
        let seed: [u8; 32] = Sha256::digest(seed).into();
        tiles.shuffle(&mut rand_chacha::ChaCha8Rng::from_seed(seed));
        tiles.truncate(most);
        tiles.sort();
    }
}
