//! Subtypes of accepted figures (K5): probability of being atypical, and of eight morphologies.

use crate::export::DetectionRow;
use corpus::task::{ATYPIA, MORPHOLOGY};
use infer::{EngineError, EngineOptions, ModelPackage, PackageError};
use mitosis::{Classifier, Mpp, PortError, RgbTile};
use serde::{Deserialize, Serialize};
use slide::{Slide, SlideError};
use std::collections::BTreeMap;

/// Bundled packages that `--subtypes` runs.
pub const BUNDLED: [&str; 2] = ["mithras-atypical", "mithras-morphology"];

/// Names of the added columns, in order.
pub const COLUMNS: [&str; 9] = [
    "p_atypical",
    "p_prometaphase",
    "p_metaphase",
    "p_ring_shape",
    "p_anaphase_telophase",
    "p_bipolar_asymmetric",
    "p_multipolar",
    "p_segregation",
    "p_other",
];

/// Subtype probabilities of one figure, in the order of [`COLUMNS`], each in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subtypes(pub [f32; 9]);

impl Subtypes {
    /// Probability of being atypical.
    #[must_use]
    pub fn atypical(&self) -> f32 {
        self.0[0]
    }

    /// The likeliest morphology; the first of equals.
    #[must_use]
    pub fn morphology(&self) -> &'static str {
        let p = &self.0[1..];
        let mut best = 0;
        (1..p.len()).for_each(|i| best = if p[i] > p[best] { i } else { best });
        MORPHOLOGY[best]
    }
}

/// Which subtype weights ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtypeModel {
    /// Package name.
    pub name: String,
    /// SHA-256 of its network.
    pub sha256: String,
    /// Licence of the weights.
    pub license: String,
}

/// Subtypes of a slide's accepted figures, as in `counts.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtypeCounts {
    /// Figures with `p_atypical` of at least one half.
    pub atypical: usize,
    /// The other figures.
    pub typical: usize,
    /// Figures whose crop could not be read.
    pub unclassified: usize,
    /// Figures by likeliest morphology.
    pub morphology: BTreeMap<String, usize>,
    /// The weights.
    pub models: Vec<SubtypeModel>,
}

impl SubtypeCounts {
    /// Counts the accepted rows.
    #[must_use]
    pub fn of<'a>(rows: impl Iterator<Item = &'a DetectionRow>, models: &[SubtypeModel]) -> Self {
        let mut out = Self {
            atypical: 0,
            typical: 0,
            unclassified: 0,
            morphology: MORPHOLOGY.iter().map(|m| ((*m).to_owned(), 0)).collect(),
            models: models.to_vec(),
        };
        for row in rows {
            match row.subtypes {
                None => out.unclassified += 1,
                Some(s) => {
                    let side =
                        if s.atypical() >= 0.5 { &mut out.atypical } else { &mut out.typical };
                    *side += 1;
                    *out.morphology.entry(s.morphology().into()).or_default() += 1;
                }
            }
        }
        out
    }
}

/// Why subtypes cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum SubtypeError {
    /// A package is not there or damaged.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// No engine runs it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A package for something else.
    #[error("model `{name}` has the classes {have:?}; --subtypes needs {want:?}")]
    Classes {
        /// The package.
        name: String,
        /// Its classes.
        have: Vec<String>,
        /// What is needed.
        want: Vec<&'static str>,
    },
    /// The network stopped.
    #[error("subtypes: {0}")]
    Port(#[from] PortError),
    /// The slide's resolution.
    #[error(transparent)]
    Slide(#[from] SlideError),
}

/// One network with the crop that it takes.
pub struct SubtypeStage {
    /// The network.
    pub classifier: Box<dyn Classifier>,
    /// Resolution of its crops.
    pub mpp: Mpp,
    /// Side of its crops, px.
    pub crop: usize,
    /// Which output is which of the wanted classes.
    order: Vec<usize>,
}

impl SubtypeStage {
    /// Finds the wanted classes among the network's.
    ///
    /// # Errors
    /// [`SubtypeError::Classes`].
    pub fn new(
        name: &str,
        classifier: Box<dyn Classifier>,
        (mpp, crop): (Mpp, usize),
        want: &[&'static str],
    ) -> Result<Self, SubtypeError> {
        let have = classifier.class_names().to_vec();
        let order: Option<Vec<usize>> =
            want.iter().map(|w| have.iter().position(|h| h == w)).collect();
        match order {
            Some(order) if have.len() == want.len() => Ok(Self { classifier, mpp, crop, order }),
            _ => Err(SubtypeError::Classes { name: name.into(), have, want: want.to_vec() }),
        }
    }

    /// Probabilities per row in the wanted order; none where the crop cannot be read.
    fn ask(
        &mut self,
        slide: &Slide,
        rows: &[&DetectionRow],
    ) -> Result<Vec<Option<Vec<f32>>>, SubtypeError> {
        let scale = slide.working_scale(self.mpp)?;
        let side = self.crop;
        let mut out = Vec::with_capacity(rows.len());
        for part in rows.chunks(32) {
            let crops: Vec<Option<RgbTile>> = part
                .iter()
                .map(|r| {
                    let corner = |v: f64, s: f64| (v / s - side as f64 / 2.0 + 0.5).floor() as i64;
                    let (x, y) = (corner(r.x_px, scale.0), corner(r.y_px, scale.1));
                    slide.read_at(self.mpp, x, y, side, side).ok()
                })
                .collect();
            let there: Vec<RgbTile> = crops.iter().flatten().cloned().collect();
            let mut answers = self.classifier.classes(&there)?.into_iter();
            out.extend(crops.iter().map(|c| {
                let p = c.as_ref().and_then(|_| answers.next())?.0;
                self.order.iter().map(|&i| p.get(i).copied()).collect()
            }));
        }
        Ok(out)
    }
}

/// Both networks.
pub struct SubtypeModels {
    atypia: SubtypeStage,
    morphology: SubtypeStage,
    /// The weights, for `run.json` and `counts.json`.
    pub entries: Vec<SubtypeModel>,
}

impl SubtypeModels {
    /// Opens the bundled packages.
    ///
    /// # Errors
    /// [`SubtypeError`].
    pub fn bundled(options: &EngineOptions) -> Result<Self, SubtypeError> {
        let mut stages = Vec::new();
        let mut entries = Vec::new();
        for (name, want) in BUNDLED.into_iter().zip([&ATYPIA[..], &MORPHOLOGY[..]]) {
            let package = ModelPackage::bundled_named(name)?;
            let none = || SubtypeError::Classes {
                name: name.into(),
                have: Vec::new(),
                want: want.to_vec(),
            };
            let card = package.card.classifier.as_ref().ok_or_else(none)?;
            let network = infer::open(&package, options)?.classifier.ok_or_else(none)?;
            stages.push(SubtypeStage::new(
                name,
                network,
                infer::preprocess::sampling(card.mpp, card.crop, card.input),
                want,
            )?);
            entries.push(SubtypeModel {
                name: name.into(),
                sha256: card.sha256.clone(),
                license: package.card.license.clone(),
            });
        }
        let mut stages = stages.into_iter();
        match (stages.next(), stages.next()) {
            (Some(atypia), Some(morphology)) => Ok(Self { atypia, morphology, entries }),
            _ => unreachable!("two packages were opened"),
        }
    }

    /// From networks of any make; tests use fakes.
    #[must_use]
    pub fn new(atypia: SubtypeStage, morphology: SubtypeStage, entries: Vec<SubtypeModel>) -> Self {
        Self { atypia, morphology, entries }
    }

    /// Fills in the accepted rows.
    ///
    /// # Errors
    /// When a network stops; an unreadable crop leaves its row empty.
    pub fn fill(&mut self, slide: &Slide, rows: &mut [DetectionRow]) -> Result<(), SubtypeError> {
        let at: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].accepted).collect();
        let accepted: Vec<&DetectionRow> = at.iter().map(|&i| &rows[i]).collect();
        let atypia = self.atypia.ask(slide, &accepted)?;
        let morphology = self.morphology.ask(slide, &accepted)?;
        for ((i, a), m) in at.into_iter().zip(atypia).zip(morphology) {
            let (Some(a), Some(m)) = (a, m) else { continue };
            let mut all = [0.0; 9];
            all[0] = a[1];
            all[1..].copy_from_slice(&m);
            rows[i].subtypes = Some(Subtypes(all));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_classes() {
        let names: Vec<String> = MORPHOLOGY.iter().map(|m| format!("p_{m}")).collect();
        assert_eq!(COLUMNS[0], format!("p_{}", ATYPIA[1]));
        assert_eq!(&COLUMNS[1..], &names[..]);
    }

    #[test]
    fn the_likeliest_morphology_is_named() {
        let mut p = [0.05; 9];
        (p[0], p[6]) = (0.9, 0.65);
        let s = Subtypes(p);
        assert_eq!((s.atypical(), s.morphology()), (0.9, "multipolar"));
    }
}
