//! An encoder that is ready to run.

use crate::error::FeatureError;
use crate::row::About;
use infer::card::{EncoderCard, Fit};
use infer::{EngineOptions, EngineReport, ModelPackage, Precision};
use mitosis::{Encoder, Mpp};
use std::path::Path;

/// An encoder that is ready to run.
pub struct Frozen {
    /// What answers.
    pub network: Box<dyn Encoder>,
    /// What features of it carry.
    pub about: About,
    /// How an image becomes its input.
    pub fit: Fit,
    /// Resolution that it was trained at, where it is stated.
    pub mpp: Option<Mpp>,
    /// What runs it.
    pub engine: EngineReport,
    /// Whether it is of a file of weights, and not of a package.
    pub by_weights: bool,
}

impl Frozen {
    /// Opens an encoder's package on the engine asked for. The digest of each of its files must be the
    /// card's, and its shapes those of the card; it runs once before anything is embedded.
    ///
    /// # Errors
    /// [`FeatureError`].
    pub fn open(package: &Path, options: &EngineOptions) -> Result<Self, FeatureError> {
        Self::start(&ModelPackage::open(package)?, options)
    }

    pub(crate) fn start(
        package: &ModelPackage,
        options: &EngineOptions,
    ) -> Result<Self, FeatureError> {
        let card = package.card.encoder()?;
        let models = infer::open(package, options)?;
        let about = About {
            encoder: package.card.name.clone(),
            width: card.width,
            sha256: package.encoder_sha256().unwrap_or_default(),
            random: String::new(),
            input: fed(card),
            bf16: models.report.classifier_precision == Precision::Bf16.word(),
        };
        let network = models.encoder.expect("a card with an encoder opens one");
        let (fit, mpp) = (card.fit(), card.mpp);
        Ok(Self { network, about, fit, mpp, engine: models.report, by_weights: false })
    }
}

/// How an image becomes the input of an encoder.
fn fed(card: &EncoderCard) -> String {
    let (Fit { input, resize, by }, EncoderCard { mean, std, .. }) = (card.fit(), card);
    format!("{resize} to {input} px, {by}, mean {mean:?}, deviation {std:?}")
}

/// How crops and tiles are cut out of larger images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// um/px.
    pub mpp: Mpp,
    /// Side, px at `mpp`.
    pub side: usize,
}

impl Grid {
    /// At the resolution and side given, or else at the encoder's own.
    ///
    /// # Errors
    /// [`FeatureError::Resolution`] where neither states um/px.
    pub fn choose(
        encoder: &Frozen,
        mpp: Option<Mpp>,
        side: Option<usize>,
    ) -> Result<Self, FeatureError> {
        let none = || FeatureError::Resolution(encoder.about.encoder.clone());
        let mpp = mpp.or(encoder.mpp).ok_or_else(none)?;
        Ok(Self { mpp, side: side.unwrap_or(encoder.fit.input) })
    }
}
