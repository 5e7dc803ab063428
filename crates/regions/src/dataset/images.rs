//! An image of a dataset with its areas and labels.

use super::Kind;

use crops::slide_name::bare;
use mitosis::{Level0, Mpp, Point};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where an image's resolution comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "from", content = "what")]
pub enum MppSource {
    /// A field of the image file itself, e.g. `aperio.MPP`.
    File(String),
    /// Stated by the publisher of the data, outside the files.
    Publisher(String),
    /// Given by the user for all images.
    User,
    /// Given by the user for this image, slide or scanner.
    Table,
}

/// Level-0 resolution of an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// Horizontal um/px.
    pub x: Mpp,
    /// Vertical um/px.
    pub y: Mpp,
    /// Where it comes from.
    pub source: MppSource,
}

/// Which side of an evaluation an image is fixed to by its publisher or importer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// May train, validate and calibrate.
    #[default]
    Train,
    /// May be scored at the end and nothing else.
    Test,
    /// Tissue without labels that no model trains on: it sets the scale of a detector's scores.
    Calibration,
}

/// An axis-aligned rectangle in level-0 pixels, `x0 < x1` and `y0 < y1`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 4]", into = "[f64; 4]")]
pub struct Area {
    /// Left edge.
    pub x0: f64,
    /// Top edge.
    pub y0: f64,
    /// Right edge.
    pub x1: f64,
    /// Bottom edge.
    pub y1: f64,
}

impl From<[f64; 4]> for Area {
    fn from([x0, y0, x1, y1]: [f64; 4]) -> Self {
        Self { x0, y0, x1, y1 }
    }
}

impl Area {
    /// The square of this side around a point.
    #[must_use]
    pub fn around(x: f64, y: f64, side: f64) -> Self {
        let half = side / 2.0;
        Self { x0: x - half, y0: y - half, x1: x + half, y1: y + half }
    }

    /// Whether a point is inside.
    #[must_use]
    pub fn contains(&self, x: f64, y: f64) -> bool {
        x >= self.x0 && x < self.x1 && y >= self.y0 && y < self.y1
    }

    /// The same rectangle in other pixels, `factor` of them per pixel of now, axis by axis.
    #[must_use]
    pub fn scaled(&self, (fx, fy): (f64, f64)) -> Self {
        Self { x0: self.x0 * fx, y0: self.y0 * fy, x1: self.x1 * fx, y1: self.y1 * fy }
    }
}

/// A labelled object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// Its class, one of the dataset's.
    pub class: String,
    /// The meaning of the class; follows from `class` and is not on disk.
    #[serde(skip)]
    pub kind: Kind,
    /// Centre, level-0 px rightwards.
    pub x: f64,
    /// Centre, level-0 px downwards.
    pub y: f64,
    /// Its box, when the source draws one; may reach over the image's edge.
    #[serde(rename = "box", default, skip_serializing_if = "Option::is_none")]
    pub bbox: Option<Area>,
    /// Finer class, e.g. `atypical`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    /// Single annotators' words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub votes: BTreeMap<String, String>,
}

impl Label {
    /// A label of this class at a place, without a box. Its kind is set by the [`Builder`](super::Builder).
    #[must_use]
    pub fn at(class: impl Into<String>, x: f64, y: f64) -> Self {
        Self {
            class: class.into(),
            kind: Kind::Other,
            x,
            y,
            bbox: None,
            subtype: None,
            votes: BTreeMap::new(),
        }
    }

    /// Its centre in level-0 pixels.
    #[must_use]
    pub fn centre(&self) -> Point<Level0> {
        Point::new(self.x, self.y)
    }
}

/// One image or slide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Unique name in the dataset.
    pub name: String,
    /// The file, absolute or relative to the folder of the manifest.
    pub file: PathBuf,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Level-0 width, px.
    pub width: u32,
    /// Level-0 height, px.
    pub height: u32,
    /// um/px and where it comes from.
    pub mpp: Resolution,
    /// The slide it was cut from.
    pub slide: String,
    /// The patient, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patient: Option<String>,
    /// The scanner, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scanner: Option<String>,
    /// Collection it comes from, e.g. `icpr2012`; figures are reported by it.
    pub source: String,
    /// How the pixels are coded, e.g. `jpeg 4:2:0`, when known. If the coding of a source differs from
    /// the others', a model could recognise the source by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding: Option<String>,
    /// SHA-256 of its decoded pixels, of some parts where it is large: copies in other files have the same. Absent
    /// where they were not looked at or are of one colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pixels: Option<String>,
    /// Training or test.
    pub part: Part,
    /// Whether every figure outside [`Image::ignore`] is labelled: everything else is then negative.
    /// Only such images can be validated or calibrated on.
    pub exhaustive: bool,
    /// Areas that teach nothing and are not scored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<Area>,
    /// Labelled objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
}

impl Image {
    /// The labelled mitotic figures.
    pub fn figures(&self) -> impl Iterator<Item = &Label> {
        self.labels.iter().filter(|l| l.kind == Kind::Figure)
    }

    /// Pixels at `mpp` per level-0 pixel, per axis.
    #[must_use]
    pub fn scale(&self, mpp: Mpp) -> (f64, f64) {
        (self.mpp.x.get() / mpp.get(), self.mpp.y.get() / mpp.get())
    }
}

/// Sums over the images of a dataset or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Images, labelled exhaustively or not.
    pub images: usize,
    /// Images with exhaustive labels.
    pub exhaustive: usize,
    /// Distinct slides.
    pub slides: usize,
    /// Distinct patients, of the images that name one.
    pub patients: usize,
    /// Labels per class.
    pub classes: BTreeMap<String, usize>,
    /// Ignore areas.
    pub ignore: usize,
}

impl Counts {
    /// Sums over these images.
    #[must_use]
    pub fn count<'a>(images: impl IntoIterator<Item = &'a Image>) -> Self {
        let mut c = Self::default();
        let (mut slides, mut patients) = (std::collections::BTreeSet::new(), vec![]);
        for i in images {
            c.images += 1;
            c.exhaustive += usize::from(i.exhaustive);
            c.ignore += i.ignore.len();
            slides.insert(bare(&i.slide));
            patients.extend(i.patient.as_deref());
            for l in &i.labels {
                *c.classes.entry(l.class.clone()).or_default() += 1;
            }
        }
        patients.sort_unstable();
        patients.dedup();
        (c.slides, c.patients) = (slides.len(), patients.len());
        c
    }
}

impl From<Area> for [f64; 4] {
    fn from(a: Area) -> Self {
        [a.x0, a.y0, a.x1, a.y1]
    }
}
