//! The model card: what a network was trained for, and at which physical resolution.
//!
//! `card.toml`, schema 1 (see `docs/ARCHITECTURE.md`). Every key that changes a number is
//! required, unknown keys are errors, and nothing has a default.

mod check;
mod encoder;
mod identity;

pub use check::{CardError, SCHEMA};
pub use encoder::{EncoderCard, FileCard, Fit, Interpolation, ParityCard, RanOn, SourceCard};

use check::{ensure, network};
use mitosis::{Mpp, OperatingPoint, Score};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// A model card. A detector has `segmenter`, `candidates` and `operating_point` (and, for the
/// two-stage job, `classifier`); a tumour filter or a subtype model has `classifier` alone, an encoder
/// `encoder`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCard {
    /// Format version, [`SCHEMA`].
    pub schema: u32,
    /// Package name, e.g. `mithras-standard`.
    pub name: String,
    /// Licence of the weights.
    pub license: String,
    /// First stage of a detector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segmenter: Option<SegmenterCard>,
    /// How candidates are taken from the probability map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<CandidateCard>,
    /// Second stage, tumour filter or subtype model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classifier: Option<ClassifierCard>,
    /// A small network in front of the second stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<ScreenCard>,
    /// A frozen encoder: images in, feature vectors out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<EncoderCard>,
    /// The frozen threshold pair.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "operating_point"
    )]
    pub operating_point: Option<OperatingPoint>,
    /// The threshold of the first stage alone (`cls` is 0), chosen on its own: that of a pair is too low
    /// without the second stage. Of packages with a classifier; one without has [`Self::operating_point`].
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "operating_point"
    )]
    pub segmentation_point: Option<OperatingPoint>,
    /// Further threshold pairs by name, the frozen one among them (`balanced`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operating_points: BTreeMap<String, NamedPoint>,
    /// Resolutions of slides that the package may be run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<ResolutionCard>,
    /// Free table: preset, digests, data with their licences, folds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<toml::Table>,
    /// Free table: measured figures and their commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<toml::Table>,
}

/// The segmentation network: input `image` f32 `[N,3,window,window]`, output `probability`
/// f32 `[N,1,window,window]` in [0, 1]. A detector of boxes gives `boxes` instead ([`BoxesCard`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmenterCard {
    /// File name inside the package.
    pub file: String,
    /// SHA-256 of that file, 64 lower-case hex digits.
    pub sha256: String,
    /// Architecture, e.g. `efficient-unet-b0`.
    pub architecture: String,
    /// Resolution of the windows, um/px.
    pub mpp: Mpp,
    /// Side of a window, px (512).
    pub window: usize,
    /// Distance of neighbouring windows, px (400); between half the window and the window.
    pub stride: usize,
    /// Per-channel mean of the input in [0, 1] (R, G, B).
    pub mean: [f32; 3],
    /// Per-channel standard deviation, > 0.
    pub std: [f32; 3],
    /// Of a detector of boxes, as YOLOv10: how they are read; absent: a probability per pixel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boxes: Option<BoxesCard>,
}

/// Boxes in place of probabilities, in px of the window. A box becomes its centre; a figure that two
/// windows see keeps the higher score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoxesCard {
    /// How they are in the output.
    pub layout: BoxLayout,
    /// Boxes per window, most of them with a score near 0.
    pub count: usize,
    /// Class names in the network's order.
    pub classes: Vec<String>,
    /// The class that counts; one of `classes`.
    pub positive: String,
}

/// How boxes are in the output of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoxLayout {
    /// `[N,count,6]`: x0 y0 x1 y1 score class, one box per figure.
    Rows,
    /// `[N,4+classes,count]`: centre, width and height, a score per class, of which the highest is the
    /// box's; neighbours are not suppressed yet.
    Columns,
}

impl BoxesCard {
    /// Numbers per box of [`BoxLayout::Rows`].
    pub const ROW: usize = 6;
    /// Numbers of a box before its scores, in [`BoxLayout::Columns`].
    pub const PLACE: usize = 4;

    /// The output's sides per image.
    #[must_use]
    pub fn sides(&self) -> [usize; 2] {
        match self.layout {
            BoxLayout::Rows => [self.count, Self::ROW],
            BoxLayout::Columns => [Self::PLACE + self.classes.len(), self.count],
        }
    }

    /// Centre and score of every box of the positive class in one image's output.
    pub(crate) fn centres(&self, output: &[f32]) -> Vec<(f32, f32, f32)> {
        let positive = self.positive_index();
        match self.layout {
            BoxLayout::Rows => {
                let rows = output.as_chunks::<{ Self::ROW }>().0.iter();
                let ours = rows.filter(|r| r[5].round() == positive as f32);
                ours.map(|r| ((r[0] + r[2]) / 2.0, (r[1] + r[3]) / 2.0, r[4])).collect()
            }
            BoxLayout::Columns => {
                let value = |line: usize, i: usize| output[line * self.count + i];
                let score = |class: usize, i: usize| value(Self::PLACE + class, i);
                let others = |i: usize| (0..self.classes.len()).map(move |k| score(k, i));
                (0..self.count)
                    .filter(|&i| others(i).all(|s| s <= score(positive, i)))
                    .map(|i| (value(0, i), value(1, i), score(positive, i)))
                    .collect()
            }
        }
    }

    /// Index of the positive class.
    ///
    /// # Panics
    /// Never for a card from [`ModelCard::parse`], which checks it.
    #[must_use]
    pub fn positive_index(&self) -> usize {
        self.classes.iter().position(|c| *c == self.positive).expect("checked when parsed")
    }
}

/// A threshold pair of `[operating_points]`, and what may be expected of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedPoint {
    /// Threshold on `s_seg`.
    pub seg: Score,
    /// Threshold on `s_cls`.
    pub cls: Score,
    /// Expected share of accepted candidates that are figures.
    pub precision: f64,
    /// Expected share of figures that are accepted.
    pub recall: f64,
    /// On what the expectation rests.
    pub provenance: String,
}

/// Level-0 resolutions of slides that a package is made for, um/px.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolutionCard {
    /// The finest; a finer slide is refused.
    pub min: Mpp,
    /// The coarsest; a coarser slide is refused.
    pub max: Mpp,
    /// From here on counts carry a warning; absent: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_above: Option<Mpp>,
}

/// How candidates are taken from a probability map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CandidateMethod {
    /// Threshold, opening, connected regions (the paper's methods section).
    Regions,
    /// Local peaks (the paper's dataset section).
    Peaks,
}

/// How candidates are taken from the first stage's probabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateCard {
    /// Decides which of the other fields are used.
    pub method: CandidateMethod,
    /// Probability threshold, strictly inside (0, 1).
    pub threshold: f32,
    /// Regions: radius of the morphological opening, px at the model's resolution; 0 for none.
    #[serde(default)]
    pub opening_radius: u32,
    /// Regions: smallest one kept, px at the model's resolution.
    #[serde(default)]
    pub min_area_px: u32,
    /// Peaks, which must state it: distance within which only the highest counts, px at the
    /// model's resolution, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_distance_px: Option<u32>,
    /// Of candidates closer than this, um, only the likeliest is kept, as the halves of a division are one
    /// figure; without it all are kept. Earlier cards call it `apart_um`.
    #[serde(alias = "apart_um", default, skip_serializing_if = "Option::is_none")]
    pub min_separation_um: Option<f64>,
}

/// A classification network: input `image` f32 `[N,3,input,input]`, output `probability`
/// f32 `[N,C]`, softmax inside; C is the number of `outputs`, or of `classes` where absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassifierCard {
    /// File name inside the package.
    pub file: String,
    /// SHA-256 of that file, 64 lower-case hex digits.
    pub sha256: String,
    /// Architecture, e.g. `vit_tiny_patch16_224`.
    pub architecture: String,
    /// Resolution of the crop, um/px.
    pub mpp: Mpp,
    /// Side of a crop, px (128).
    pub crop: usize,
    /// Side of the network's input, px (224); whole crops are resized to it.
    pub input: usize,
    /// By which filter; absent: bilinear, as in training here.
    #[serde(default, skip_serializing_if = "is_bilinear")]
    pub interpolation: Interpolation,
    /// Per-channel mean of the input in [0, 1] (R, G, B).
    pub mean: [f32; 3],
    /// Per-channel standard deviation, > 0.
    pub std: [f32; 3],
    /// Class names in output order.
    pub classes: Vec<String>,
    /// Of a network that distinguishes finer classes: the one of `classes` that each of its outputs counts
    /// for, in their order; a class is the sum of its outputs. Absent: output `i` is class `i`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// The class whose probability is `s_cls`; one of `classes`.
    pub positive: String,
    /// Flips and quarter turns of a crop whose probabilities are averaged, 1 to 8; absent: 1.
    #[serde(default = "default_symmetries", skip_serializing_if = "is_one")]
    pub symmetries: u8,
    /// Further symmetries are asked for only where the first gives `positive` this probability (before `scale`) or
    /// more, inside (0, 1); absent: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symmetries_from: Option<f32>,
    /// Whether it computes in bf16 where that precision is asked for: measured to move the probabilities of this
    /// network little; absent: in f32 always.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bf16: bool,
    /// Of two classes: how the probabilities that the network gives are moved, after a calibration on
    /// a laboratory's own labels; absent: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScaleCard>,
    /// Of a mean of several classifiers: the names of the members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folds: Vec<String>,
    /// Of two classes: the positive one is called from this probability on, inside (0, 1); absent:
    /// the likelier class is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f32>,
}

/// A small network in front of the second stage (`[screen]`): it is shown the crops of the classifier and knows its
/// classes. A crop to which it gives the positive class less than `passes_from` keeps that answer; only the others are
/// asked of the classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScreenCard {
    /// File name inside the package.
    pub file: String,
    /// SHA-256 of that file, 64 lower-case hex digits.
    pub sha256: String,
    /// Architecture, e.g. `efficientnet_lite0`.
    pub architecture: String,
    /// Side of the network's input, px; whole crops are resized to it, bilinearly.
    pub input: usize,
    /// Per-channel mean of the input in [0, 1] (R, G, B).
    pub mean: [f32; 3],
    /// Per-channel standard deviation, > 0.
    pub std: [f32; 3],
    /// Probability of the positive class from which on a crop is asked of the classifier, inside (0, 1).
    pub passes_from: f32,
}

impl ScreenCard {
    /// The screen as a classifier of the crops of `second`.
    #[must_use]
    pub fn as_classifier(&self, second: &ClassifierCard) -> ClassifierCard {
        ClassifierCard {
            file: self.file.clone(),
            sha256: self.sha256.clone(),
            architecture: self.architecture.clone(),
            mpp: second.mpp,
            crop: second.crop,
            input: self.input,
            interpolation: Interpolation::Bilinear,
            mean: self.mean,
            std: self.std,
            classes: second.classes.clone(),
            outputs: vec![],
            positive: second.positive.clone(),
            symmetries: 1,
            symmetries_from: None,
            bf16: false,
            scale: None,
            folds: vec![],
            threshold: None,
        }
    }
}

/// Platt scaling of a classifier's output: the logit of the positive class becomes
/// `slope * logit + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleCard {
    /// Factor of the logit, above 0.
    pub slope: f64,
    /// Added to the scaled logit.
    pub offset: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_bilinear(by: &Interpolation) -> bool {
    *by == Interpolation::Bilinear
}

fn default_symmetries() -> u8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_one(n: &u8) -> bool {
    *n == 1
}

impl ClassifierCard {
    /// How a crop becomes the input.
    #[must_use]
    pub fn fit(&self) -> Fit {
        Fit::whole(self.input, self.interpolation)
    }

    /// Index of the positive class in `classes`.
    ///
    /// # Panics
    /// Never for a card from [`ModelCard::parse`], which checks it.
    #[must_use]
    pub fn positive_index(&self) -> usize {
        self.classes.iter().position(|c| *c == self.positive).expect("checked when parsed")
    }

    /// Numbers that the network gives per crop.
    #[must_use]
    pub fn width(&self) -> usize {
        if self.outputs.is_empty() { self.classes.len() } else { self.outputs.len() }
    }

    /// Probability of each class from what the network gave for a crop, [`Self::width`] numbers.
    #[must_use]
    pub fn summed(&self, given: &[f32]) -> Vec<f32> {
        if self.outputs.is_empty() {
            return given.to_vec();
        }
        let share = |class: &String| {
            let ours = self.outputs.iter().zip(given).filter(|(name, _)| *name == class);
            ours.map(|(_, p)| p).sum::<f32>().min(1.0)
        };
        self.classes.iter().map(share).collect()
    }

    /// Index of the class that probabilities in the order of `classes` call; of equal ones the first.
    #[must_use]
    pub fn called(&self, p: &[f32]) -> usize {
        let positive = self.positive_index();
        if let (Some(threshold), 2) = (self.threshold, p.len()) {
            return if p[positive] >= threshold { positive } else { 1 - positive };
        }
        mitosis::likeliest(p)
    }
}

/// What a detection run needs from a card.
#[derive(Clone, Copy, Debug)]
pub struct DetectorCard<'a> {
    /// Network, windows and resolution of the first stage.
    pub segmenter: &'a SegmenterCard,
    /// How candidates are taken from its probabilities.
    pub candidates: &'a CandidateCard,
    /// Second stage; `None` runs segmentation alone.
    pub classifier: Option<&'a ClassifierCard>,
    /// The card's default threshold pair.
    pub operating_point: &'a OperatingPoint,
}

impl ModelCard {
    /// A card without networks, to which at least one is added.
    #[must_use]
    pub fn new(name: impl Into<String>, license: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA,
            name: name.into(),
            license: license.into(),
            segmenter: None,
            candidates: None,
            classifier: None,
            screen: None,
            encoder: None,
            operating_point: None,
            segmentation_point: None,
            operating_points: BTreeMap::new(),
            resolution: None,
            training: None,
            results: None,
        }
    }

    /// Reads and checks a card.
    ///
    /// # Errors
    /// [`CardError`] for anything that is not a complete, consistent card.
    pub fn parse(text: &str) -> Result<Self, CardError> {
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let parse = |e: toml::de::Error| CardError::Parse(e.to_string());
        // First, so that a card of a later schema is not reported as a misspelt key.
        let Version { schema } = toml::from_str(text).map_err(parse)?;
        if schema != SCHEMA {
            return Err(CardError::Schema { found: schema });
        }
        let card: Self = toml::from_str(text).map_err(parse)?;
        card.check()?;
        Ok(card)
    }

    /// Makers of the scanners of the slides that the figures of the training data are on (`scanners` in
    /// `[training]`); empty where the card names none.
    #[must_use]
    pub fn scanners(&self) -> Vec<String> {
        let list = self.training.as_ref().and_then(|t| t.get("scanners")?.as_array());
        list.into_iter().flatten().filter_map(|v| v.as_str()).map(str::to_owned).collect()
    }

    /// The card as TOML, in the order of the schema.
    ///
    /// # Errors
    /// [`CardError::Parse`] when a free table cannot be written.
    pub fn to_toml(&self) -> Result<String, CardError> {
        toml::to_string(self).map_err(|e| CardError::Parse(e.to_string()))
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`CardError`] with the dotted key of the first bad value.
    #[expect(clippy::too_many_lines, reason = "one rule after the other")]
    pub fn check(&self) -> Result<(), CardError> {
        if self.schema != SCHEMA {
            return Err(CardError::Schema { found: self.schema });
        }
        ensure(!self.name.trim().is_empty(), "name", || "is empty".into())?;
        ensure(!self.license.trim().is_empty(), "license", || "is empty".into())?;
        if self.segmenter.is_none() && self.classifier.is_none() && self.encoder.is_none() {
            return Err(CardError::Missing {
                name: self.name.clone(),
                part: "segmenter], [classifier] or [encoder",
                job: "any job",
            });
        }
        if let Some(e) = &self.encoder {
            e.check()?;
        }
        if let Some(s) = &self.segmenter {
            network("segmenter", &s.file, &s.sha256, s.mean, s.std)?;
            ensure((32..=8192).contains(&s.window), "segmenter.window", || {
                format!("{} px is outside 32 to 8192", s.window)
            })?;
            ensure(
                (s.window.div_ceil(2)..=s.window).contains(&s.stride),
                "segmenter.stride",
                || {
                    format!(
                        "{} px is outside half to whole the window of {} px",
                        s.stride, s.window
                    )
                },
            )?;
            if let Some(b) = &s.boxes {
                ensure((1..=1_000_000).contains(&b.count), "segmenter.boxes.count", || {
                    format!("{} is outside 1 to 1,000,000", b.count)
                })?;
                for (i, name) in b.classes.iter().enumerate() {
                    ensure(!b.classes[..i].contains(name), "segmenter.boxes.classes", || {
                        format!("`{name}` is repeated")
                    })?;
                }
                ensure(b.classes.contains(&b.positive), "segmenter.boxes.positive", || {
                    format!("`{}` is not one of {:?}", b.positive, b.classes)
                })?;
                let peaks = |c: &CandidateCard| c.method == CandidateMethod::Peaks;
                ensure(self.candidates.as_ref().is_some_and(peaks), "candidates.method", || {
                    "must be `peaks` for boxes, which are single points".into()
                })?;
            }
            self.detector()?;
        }
        if let Some(r) = &self.resolution {
            let (min, max) = (r.min.get(), r.max.get());
            ensure(min < max, "resolution.max", || format!("{max} um/px is not above {min}"))?;
            let inside = |m: Mpp| m.get() > min && m.get() < max;
            ensure(r.warn_above.is_none_or(inside), "resolution.warn_above", || {
                format!("is not between {min} and {max} um/px")
            })?;
        }
        if let Some(c) = &self.candidates {
            ensure(c.threshold > 0.0 && c.threshold < 1.0, "candidates.threshold", || {
                format!("{} is not inside (0, 1)", c.threshold)
            })?;
            let fits = match c.method {
                CandidateMethod::Regions => c.min_distance_px.is_none(),
                CandidateMethod::Peaks => c.min_distance_px.is_some_and(|d| d > 0),
            };
            ensure(fits, "candidates.min_distance_px", || {
                "belongs to the method `peaks`, which needs 1 px or more".into()
            })?;
            let far = c.min_separation_um.unwrap_or(1.0);
            ensure(far > 0.0 && far <= 50.0, "candidates.min_separation_um", || {
                format!("{far} um is not above 0 and at most 50")
            })?;
        }
        if let Some(c) = &self.classifier {
            network("classifier", &c.file, &c.sha256, c.mean, c.std)?;
            if !(1..=8).contains(&c.symmetries) {
                let reason = format!("{} is not in 1 to 8", c.symmetries);
                return Err(CardError::Value { key: "classifier.symmetries".into(), reason });
            }
            let fits = |least: f32| c.symmetries > 1 && least > 0.0 && least < 1.0;
            ensure(c.symmetries_from.is_none_or(fits), "classifier.symmetries_from", || {
                "belongs to two symmetries or more and is inside (0, 1)".into()
            })?;
            for (key, px) in [("classifier.crop", c.crop), ("classifier.input", c.input)] {
                ensure((8..=4096).contains(&px), key, || format!("{px} px is outside 8 to 4096"))?;
            }
            ensure(c.classes.len() >= 2, "classifier.classes", || "needs two or more".into())?;
            for (i, name) in c.classes.iter().enumerate() {
                ensure(!c.classes[..i].contains(name), "classifier.classes", || {
                    format!("`{name}` is repeated")
                })?;
            }
            let of_class = |o: &String| c.classes.contains(o);
            let has_one = |class: &String| c.outputs.is_empty() || c.outputs.contains(class);
            let fits = c.outputs.iter().all(of_class) && c.classes.iter().all(has_one);
            ensure(fits, "classifier.outputs", || {
                format!("{:?} are not {:?}, each once or more", c.outputs, c.classes)
            })?;
            ensure(c.classes.contains(&c.positive), "classifier.positive", || {
                format!("`{}` is not one of {:?}", c.positive, c.classes)
            })?;
            let fits = |t: f32| c.classes.len() == 2 && t > 0.0 && t < 1.0;
            ensure(c.threshold.is_none_or(fits), "classifier.threshold", || {
                "belongs to two classes and is inside (0, 1)".into()
            })?;
            let fits = |s: ScaleCard| {
                let finite = s.slope.is_finite() && s.offset.is_finite();
                c.classes.len() == 2 && finite && s.slope > 0.0
            };
            ensure(c.scale.is_none_or(fits), "classifier.scale", || {
                "belongs to two classes and needs a slope above 0 and a finite offset".into()
            })?;
        }
        if let Some(s) = &self.screen {
            network("screen", &s.file, &s.sha256, s.mean, s.std)?;
            ensure(self.classifier.is_some(), "screen", || "belongs to a [classifier]".into())?;
            ensure((8..=4096).contains(&s.input), "screen.input", || {
                format!("{} px is outside 8 to 4096", s.input)
            })?;
            ensure(s.passes_from > 0.0 && s.passes_from < 1.0, "screen.passes_from", || {
                format!("{} is not inside (0, 1)", s.passes_from)
            })?;
        }
        Ok(())
    }

    /// The threshold pair of a name in `[operating_points]`.
    ///
    /// # Errors
    /// [`CardError::NoPoint`] with the names that are there.
    pub fn point(&self, name: &str) -> Result<OperatingPoint, CardError> {
        let known = || self.operating_points.keys().cloned().collect::<Vec<_>>().join(", ");
        let found = self.operating_points.get(name).ok_or_else(|| CardError::NoPoint {
            name: self.name.clone(),
            asked: name.into(),
            known: known(),
        })?;
        let provenance = format!(
            "operating point `{name}` of {}: expected precision {:.2}, recall {:.2}; {}",
            self.name, found.precision, found.recall, found.provenance
        );
        Ok(OperatingPoint { seg: found.seg, cls: found.cls, provenance })
    }

    /// The threshold of the first stage where it runs alone.
    #[must_use]
    pub fn first_stage_point(&self) -> Option<&OperatingPoint> {
        let own = self.operating_point.as_ref().filter(|_| self.classifier.is_none());
        self.segmentation_point.as_ref().or(own)
    }

    /// What embedding needs.
    ///
    /// # Errors
    /// [`CardError::Missing`] when the package is not an encoder.
    pub fn encoder(&self) -> Result<&EncoderCard, CardError> {
        self.encoder.as_ref().ok_or_else(|| CardError::Missing {
            name: self.name.clone(),
            part: "encoder",
            job: "embedding",
        })
    }

    /// The parts a detection run needs.
    ///
    /// # Errors
    /// [`CardError::Missing`] when the package is not a detector.
    pub fn detector(&self) -> Result<DetectorCard<'_>, CardError> {
        let missing = |part| CardError::Missing { name: self.name.clone(), part, job: "detection" };
        Ok(DetectorCard {
            segmenter: self.segmenter.as_ref().ok_or_else(|| missing("segmenter"))?,
            candidates: self.candidates.as_ref().ok_or_else(|| missing("candidates"))?,
            classifier: self.classifier.as_ref(),
            operating_point: self
                .operating_point
                .as_ref()
                .ok_or_else(|| missing("operating_point"))?,
        })
    }
}

// `mitosis::OperatingPoint` also travels inside other files; only the card is strict about keys.
fn operating_point<'de, D: Deserializer<'de>>(d: D) -> Result<Option<OperatingPoint>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        seg: Score,
        cls: Score,
        provenance: String,
    }
    let Strict { seg, cls, provenance } = Strict::deserialize(d)?;
    Ok(Some(OperatingPoint { seg, cls, provenance }))
}
