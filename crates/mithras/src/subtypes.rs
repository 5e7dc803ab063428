//! Subtypes of accepted figures: probability of being atypical, and of eight morphologies.

use crate::record::{DetectionRow, SubtypeModel, Subtypes};
use base::remedy::{Remedied, Remedy};
use infer::{EngineError, EngineOptions, ModelPackage, PackageError};
use mitosis::{Classifier, Mpp, PortError};
use regions::task::MORPHOLOGY;
use serde::{Deserialize, Serialize};
use slide::{Rect, Slide, SlideError};
use std::collections::BTreeMap;

/// The bundled package that `--subtypes` runs.
pub const BUNDLED: &str = "mithras-morphology";

/// The bundled package with the same network's sums, whose card has their operating point.
const SUMS: &str = "mithras-atypical";

/// Subtypes of a slide's accepted figures, as in `counts.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubtypeCounts {
    /// Figures with `p_atypical` of at least the model's `atypical_from`.
    pub atypical: usize,
    /// Accepted figures that are not atypical.
    pub typical: usize,
    /// Figures whose crop could not be read.
    pub unclassified: usize,
    /// Figures by likeliest morphology.
    pub morphology: BTreeMap<String, usize>,
    /// The packages whose weights ran, in their order.
    pub models: Vec<SubtypeModel>,
}

impl SubtypeCounts {
    /// Counts the accepted rows.
    #[must_use]
    pub fn count<'a>(
        rows: impl Iterator<Item = &'a DetectionRow>,
        models: &[SubtypeModel],
    ) -> Self {
        let mut out = Self {
            atypical: 0,
            typical: 0,
            unclassified: 0,
            morphology: MORPHOLOGY.iter().map(|m| ((*m).to_owned(), 0)).collect(),
            models: models.to_vec(),
        };
        let from = models.first().map_or(0.5, |m| m.atypical_from);
        for row in rows {
            match row.subtypes {
                None => out.unclassified += 1,
                Some(s) => {
                    let side =
                        if s.atypical() >= from { &mut out.atypical } else { &mut out.typical };
                    *side += 1;
                    *out.morphology.entry(s.morphology().into()).or_default() += 1;
                }
            }
        }
        out
    }
}

/// Why subtypes cannot be classified.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum SubtypeError {
    /// A package is not there or damaged.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// No engine runs it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A package for something else.
    #[error("model `{name}` has the classes {have:?}; subtypes need {MORPHOLOGY:?}")]
    Classes {
        /// Name of the package.
        name: String,
        have: Vec<String>,
    },
    /// The network stopped.
    #[error("subtypes: {0}")]
    Port(#[from] PortError),
    /// The slide's resolution.
    #[error(transparent)]
    Slide(#[from] SlideError),
}

/// The network with the crop that it takes.
pub struct SubtypeNetwork {
    classifier: Box<dyn Classifier>,
    /// Resolution of its crops.
    mpp: Mpp,
    /// Side of its crops, px.
    crop: usize,
    /// Which output is which of [`MORPHOLOGY`].
    order: [usize; 8],
    /// The weights, for `run.json` and `counts.json`.
    pub model: SubtypeModel,
}

impl SubtypeNetwork {
    /// Opens the bundled package.
    ///
    /// # Errors
    /// [`SubtypeError`].
    pub fn bundled(options: &EngineOptions) -> Result<Self, SubtypeError> {
        let package = ModelPackage::bundled_named(BUNDLED)?;
        let none = || SubtypeError::Classes { name: BUNDLED.into(), have: Vec::new() };
        let card = package.card.classifier.as_ref().ok_or_else(none)?;
        let classifier = infer::open(&package, options)?.classifier.ok_or_else(none)?;
        let sampling = infer::preprocess::sampling(card.mpp, card.crop, card.input);
        let sums = ModelPackage::bundled_named(SUMS)?.card.classifier;
        let model = SubtypeModel {
            atypical_from: sums.and_then(|s| s.threshold).unwrap_or(0.5),
            name: BUNDLED.into(),
            sha256: card.sha256.clone(),
            license: package.card.license.clone(),
        };
        let (mpp, crop) = sampling;
        Self::new(classifier, mpp, crop, model)
    }

    /// From a network of any make, with the resolution and the side of its crops in pixels.
    ///
    /// # Errors
    /// [`SubtypeError::Classes`] when its classes are not [`MORPHOLOGY`], in whatever order.
    pub fn new(
        classifier: Box<dyn Classifier>,
        mpp: Mpp,
        crop: usize,
        model: SubtypeModel,
    ) -> Result<Self, SubtypeError> {
        let have = classifier.class_names().to_vec();
        let found = MORPHOLOGY.map(|m| have.iter().position(|h| h == m));
        if have.len() != MORPHOLOGY.len() || found.contains(&None) {
            return Err(SubtypeError::Classes { name: model.name, have });
        }
        Ok(Self { classifier, mpp, crop, order: found.map(Option::unwrap_or_default), model })
    }

    /// Fills in the accepted rows.
    ///
    /// # Errors
    /// When the network stops or the file cannot be read; a crop that cannot be decoded leaves its row
    /// empty.
    pub fn fill(&mut self, slide: &Slide, rows: &mut [DetectionRow]) -> Result<(), SubtypeError> {
        let scale = slide.working_scale(self.mpp)?;
        let side = self.crop;
        let mut accepted: Vec<&mut DetectionRow> = rows.iter_mut().filter(|r| r.accepted).collect();
        for part in accepted.chunks_mut(32) {
            let (mut there, mut crops) = (Vec::new(), Vec::new());
            for row in part {
                let corner = |v: f64, s: f64| (v / s - side as f64 / 2.0 + 0.5).floor() as i64;
                let (x, y) = (corner(row.x_px, scale.0), corner(row.y_px, scale.1));
                if let Some(crop) = slide.read_whole_at(self.mpp, Rect::new(x, y, side, side))? {
                    there.push(row);
                    crops.push(crop);
                }
            }
            for (row, p) in there.into_iter().zip(self.classifier.classes(&crops)?) {
                row.subtypes = Some(Subtypes::from_morphology(&self.order.map(|i| p.0[i])));
            }
        }
        Ok(())
    }
}

impl Remedied for SubtypeError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Engine(e) => e.remedy(),
            Self::Slide(e) => e.remedy(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::COLUMNS;
    use mitosis::RgbTile;
    use regions::task::ATYPIA;

    #[test]
    fn columns_are_the_classes() {
        let names: Vec<String> = MORPHOLOGY.iter().map(|m| format!("p_{m}")).collect();
        assert_eq!(COLUMNS[0], format!("p_{}", ATYPIA[1]));
        assert_eq!(&COLUMNS[1..], &names[..]);
    }

    #[test]
    fn the_likeliest_morphology_is_named_and_atypical_is_a_sum() {
        let mut p = [0.05; 8];
        p[5] = 0.65;
        let s = Subtypes::from_morphology(&p);
        assert!((s.atypical() - 0.8).abs() < 1e-6);
        assert_eq!(s.morphology(), "multipolar");
    }

    #[test]
    fn a_network_with_other_classes_is_refused() {
        struct Other(Vec<String>);
        impl Classifier for Other {
            fn class_names(&self) -> &[String] {
                &self.0
            }
            fn classes(&mut self, _: &[RgbTile]) -> Result<Vec<mitosis::ClassProbs>, PortError> {
                unreachable!()
            }
        }
        let model = SubtypeModel {
            name: "m".into(),
            sha256: String::new(),
            license: String::new(),
            atypical_from: 0.5,
        };
        let other = Box::new(Other(ATYPIA.map(String::from).to_vec()));
        let refused = SubtypeNetwork::new(other, Mpp::PAPER, 64, model).err().unwrap();
        assert!(refused.to_string().contains("need [\"prometaphase\""), "{refused}");
    }
}
