//! One crop, its columns, and the digest that names it. `docs/corpus.md` is the public description.

use crate::error::{CorpusError, Result};
use bytes::Bytes;
use mitosis::{Level0, Mpp, Point, Score};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// Version of the on-disk schema. A reader refuses any other.
pub const SCHEMA_VERSION: u32 = 1;

/// A SHA-256.
pub type Hash = [u8; 32];

/// Image-level label of a crop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The object at the centre resembles a mitotic figure but is not one (0 on disk).
    Mimicker,
    /// A mitotic figure (1 on disk).
    MitoticFigure,
    /// No label (null on disk): patches for general-purpose pretraining, other cells.
    Unlabeled,
}

impl Label {
    /// Every label, in reporting order.
    pub const ALL: [Self; 3] = [Self::MitoticFigure, Self::Mimicker, Self::Unlabeled];

    /// The word used in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MitoticFigure => "mitotic_figure",
            Self::Mimicker => "mimicker",
            Self::Unlabeled => "unlabeled",
        }
    }

    pub(crate) const fn code(self) -> Option<i64> {
        match self {
            Self::Mimicker => Some(0),
            Self::MitoticFigure => Some(1),
            Self::Unlabeled => None,
        }
    }

    pub(crate) fn from_code(code: Option<i64>) -> Option<Self> {
        match code {
            Some(0) => Some(Self::Mimicker),
            Some(1) => Some(Self::MitoticFigure),
            None => Some(Self::Unlabeled),
            Some(_) => None,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which side of an evaluation a crop belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// For training.
    Train,
    /// For model selection and thresholds.
    Validation,
    /// Held out; training code must refuse it.
    Test,
    /// Not decided yet.
    Unassigned,
}

impl Split {
    /// The word on disk.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
            Self::Unassigned => "unassigned",
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Split {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "train" => Ok(Self::Train),
            "validation" | "val" => Ok(Self::Validation),
            "test" => Ok(Self::Test),
            "unassigned" => Ok(Self::Unassigned),
            other => {
                Err(format!("unknown split `{other}` (train, validation, test or unassigned)"))
            }
        }
    }
}

pub use pixels::CropBox;

/// Everything about a crop but its pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CropMeta {
    /// Unique name inside the corpus, with the image's extension; the `path` of the image struct.
    pub path: String,
    /// Image-level label.
    pub label: Label,
    /// Finer class, e.g. `atypical`, as the source calls it.
    pub subtype: Option<String>,
    /// First-stage score.
    pub s_seg: Option<Score>,
    /// Second-stage score.
    pub s_cls: Option<Score>,
    /// The object's box in crop pixels.
    #[serde(rename = "box")]
    pub bbox: Option<CropBox>,
    /// The object's centre in level-0 pixels of `slide`; of a crop that was imported from an image of a slide, in
    /// pixels of that image, which the folder in `path` names.
    pub centroid: Option<Point<Level0>>,
    /// Slide or source image.
    pub slide: String,
    /// Patient, when the source names one.
    pub patient: Option<String>,
    /// Cohort, e.g. `TCGA-BRCA`, `MIDOG21`.
    pub cohort: String,
    /// um/px of the crop's own pixels.
    pub mpp: Mpp,
    /// Crop width in pixels.
    pub width: u32,
    /// Crop height in pixels.
    pub height: u32,
    /// Where the label came from: importer and record, or model and preset.
    pub source: String,
    /// Evaluation side.
    pub split: Split,
    /// Single annotators' verdicts as a JSON object, when the source keeps them.
    pub votes: Option<String>,
    /// SHA-256 of the decoded RGB pixels, so that equal images are found whatever their encoding.
    pub pixels: Option<Hash>,
}

impl CropMeta {
    /// What every crop has; cohort and source are empty, the split is unassigned, all else absent.
    #[must_use]
    pub fn new(
        path: impl Into<String>,
        label: Label,
        slide: impl Into<String>,
        mpp: Mpp,
        (width, height): (u32, u32),
    ) -> Self {
        Self {
            path: path.into(),
            label,
            subtype: None,
            s_seg: None,
            s_cls: None,
            bbox: None,
            centroid: None,
            slide: slide.into(),
            patient: None,
            cohort: String::new(),
            mpp,
            width,
            height,
            source: String::new(),
            split: Split::Unassigned,
            votes: None,
            pixels: None,
        }
    }

    /// What every crop must satisfy before it is written, and after it is read.
    ///
    /// # Errors
    /// [`CorpusError::Crop`] naming the crop and the field.
    pub fn check(&self) -> Result<()> {
        let fail = |reason: String| Err(CorpusError::Crop { crop: self.path.clone(), reason });
        if self.path.is_empty() || self.slide.is_empty() {
            return fail("path and slide must not be empty".into());
        }
        if self.width == 0 || self.height == 0 {
            return fail(format!("{}x{} pixels", self.width, self.height));
        }
        if let Some(b) = self.bbox {
            let ok = [b.x0, b.y0, b.x1, b.y1].iter().all(|v| v.is_finite())
                && b.x0 < b.x1
                && b.y0 < b.y1;
            if !ok {
                return fail(format!("box ({}, {}, {}, {}) is empty", b.x0, b.y0, b.x1, b.y1));
            }
        }
        if let Some(c) = self.centroid
            && !(c.x.is_finite() && c.y.is_finite())
        {
            return fail(format!("centroid {c:?} is not finite"));
        }
        Ok(())
    }
}

/// A crop: its description and its encoded image (PNG or JPEG).
#[derive(Clone, Debug, PartialEq)]
pub struct Crop {
    /// Description.
    pub meta: CropMeta,
    /// Encoded image.
    pub image: Bytes,
}

impl Crop {
    /// Decodes the image to interleaved RGB.
    ///
    /// # Errors
    /// [`CorpusError::Crop`] when the bytes are not an image of the recorded size.
    pub fn decode(&self) -> Result<mitosis::RgbTile> {
        let fail = |reason: String| CorpusError::Crop { crop: self.meta.path.clone(), reason };
        let tile = slide::read_picture(&self.image).map_err(|e| fail(e.to_string()))?;
        if (tile.width, tile.height) != (self.meta.width as usize, self.meta.height as usize) {
            return Err(fail(format!(
                "the image is {}x{}, but {}x{} in its record",
                tile.width, tile.height, self.meta.width, self.meta.height
            )));
        }
        Ok(tile)
    }

    /// SHA-256 over every field and the image bytes; the corpus digest chains these in order.
    #[must_use]
    pub fn digest(&self) -> Hash {
        let mut h = Sha256::new();
        let mut put = |b: &[u8]| {
            h.update((b.len() as u64).to_le_bytes());
            h.update(b);
        };
        let m = &self.meta;
        put(&self.image);
        put(m.path.as_bytes());
        put(m.label.name().as_bytes());
        for s in [&m.subtype, &m.patient, &m.votes] {
            match s {
                Some(s) => put(s.as_bytes()),
                None => put(b"\0none"),
            }
        }
        for s in [m.s_seg, m.s_cls] {
            match s {
                Some(s) => put(&s.get().to_bits().to_le_bytes()),
                None => put(b"\0none"),
            }
        }
        match m.bbox {
            Some(b) => [b.x0, b.y0, b.x1, b.y1].map(|v| put(&v.to_bits().to_le_bytes())),
            None => [(); 4].map(|()| put(b"\0none")),
        };
        match m.centroid {
            Some(c) => [c.x, c.y].map(|v| put(&v.to_bits().to_le_bytes())),
            None => [(); 2].map(|()| put(b"\0none")),
        };
        for s in [&m.slide, &m.cohort, &m.source] {
            put(s.as_bytes());
        }
        put(&m.mpp.get().to_bits().to_le_bytes());
        put(&m.width.to_le_bytes());
        put(&m.height.to_le_bytes());
        put(m.split.name().as_bytes());
        h.finalize().into()
    }
}

/// SHA-256 of decoded pixels with their size.
#[must_use]
pub fn pixel_hash(tile: &mitosis::RgbTile) -> Hash {
    let mut h = Sha256::new();
    h.update((tile.width as u64).to_le_bytes());
    h.update((tile.height as u64).to_le_bytes());
    h.update(&tile.data);
    h.finalize().into()
}

/// The Parquet schema. Leaves are numbered by [`leaf`]. `image` is never null; it is optional
/// because Hugging Face tools take it for a picture only in that form.
pub(crate) const MESSAGE: &str = "message crop {
  optional group image { optional binary bytes; optional binary path (UTF8); }
  optional int64 label;
  optional binary subtype (UTF8);
  optional float s_seg;
  optional float s_cls;
  optional group box { required float x0; required float y0; required float x1; required float y1; }
  optional double x;
  optional double y;
  required binary slide (UTF8);
  optional binary patient (UTF8);
  required binary cohort (UTF8);
  required double mpp;
  required int32 width;
  required int32 height;
  required binary source (UTF8);
  required binary split (UTF8);
  optional binary votes (UTF8);
  optional binary pixels_sha256;
  required binary digest;
}";

/// Leaf column numbers of [`MESSAGE`].
pub(crate) mod leaf {
    pub const BYTES: usize = 0;
    pub const PATH: usize = 1;
    pub const LABEL: usize = 2;
    pub const SUBTYPE: usize = 3;
    pub const S_SEG: usize = 4;
    pub const S_CLS: usize = 5;
    pub const BOX: usize = 6;
    pub const X: usize = 10;
    pub const Y: usize = 11;
    pub const SLIDE: usize = 12;
    pub const PATIENT: usize = 13;
    pub const COHORT: usize = 14;
    pub const MPP: usize = 15;
    pub const WIDTH: usize = 16;
    pub const HEIGHT: usize = 17;
    pub const SOURCE: usize = 18;
    pub const SPLIT: usize = 19;
    pub const VOTES: usize = 20;
    pub const PIXELS: usize = 21;
    pub const DIGEST: usize = 22;
}

/// What Hugging Face `datasets` reads from the file's metadata: `image` decodes to pictures and
/// `label` has names.
pub(crate) const HUGGINGFACE: &str = r#"{"info":{"features":{
"image":{"_type":"Image"},
"label":{"names":["mimicker","mitotic_figure"],"_type":"ClassLabel"},
"subtype":{"dtype":"string","_type":"Value"},
"s_seg":{"dtype":"float32","_type":"Value"},"s_cls":{"dtype":"float32","_type":"Value"},
"box":{"x0":{"dtype":"float32","_type":"Value"},"y0":{"dtype":"float32","_type":"Value"},"x1":{"dtype":"float32","_type":"Value"},"y1":{"dtype":"float32","_type":"Value"}},
"x":{"dtype":"float64","_type":"Value"},"y":{"dtype":"float64","_type":"Value"},
"slide":{"dtype":"string","_type":"Value"},"patient":{"dtype":"string","_type":"Value"},
"cohort":{"dtype":"string","_type":"Value"},"mpp":{"dtype":"float64","_type":"Value"},
"width":{"dtype":"int32","_type":"Value"},"height":{"dtype":"int32","_type":"Value"},
"source":{"dtype":"string","_type":"Value"},"split":{"dtype":"string","_type":"Value"},
"votes":{"dtype":"string","_type":"Value"},
"pixels_sha256":{"dtype":"binary","_type":"Value"},"digest":{"dtype":"binary","_type":"Value"}}}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pseudo_box_is_centred() {
        let b = CropBox::centred(128, 50);
        assert_eq!((b.x0, b.y0, b.x1, b.y1), (39.0, 39.0, 89.0, 89.0));
    }

    #[test]
    fn the_features_note_is_json_and_names_every_top_level_column() {
        let v: serde_json::Value = serde_json::from_str(HUGGINGFACE).unwrap();
        let features = v["info"]["features"].as_object().unwrap();
        let schema = parquet::schema::parser::parse_message_type(MESSAGE).unwrap();
        let columns: Vec<&str> = schema.get_fields().iter().map(|f| f.name()).collect();
        assert_eq!(columns, features.keys().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn a_crop_that_is_not_opaque_is_on_white() {
        let mut png = std::io::Cursor::new(Vec::new());
        image::RgbaImage::new(2, 1).write_to(&mut png, image::ImageFormat::Png).unwrap();
        let meta = CropMeta::new("a.png", Label::Mimicker, "a", Mpp::PAPER, (2, 1));
        let crop = Crop { meta, image: png.into_inner().into() };
        assert_eq!(crop.decode().unwrap().data, [255; 6]);
    }
}
