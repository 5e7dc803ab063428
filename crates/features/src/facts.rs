//! What is known of an encoder: how it is fed, and what its vector is.

use base::text::Shown;
use infer::ModelCard;
use infer::card::{EncoderCard, Interpolation};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// How an encoder is fed, and what its vector is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// Per-channel mean of the input in [0, 1].
    pub mean: [f32; 3],
    /// Per-channel standard deviation.
    pub std: [f32; 3],
    /// What an image's shorter side becomes before its middle is cut out, px.
    pub resize: usize,
    /// By which filter.
    pub interpolation: Interpolation,
    /// What the vector is, as text.
    pub pooling: String,
    /// How the tensors of files may be named that it is made of; of a package none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<String>,
}

impl Facts {
    pub(crate) fn fmt(&self, f: &mut fmt::Formatter<'_>, input: usize) -> fmt::Result {
        let Self { mean, std, resize, interpolation, .. } = self;
        write!(f, "resized     {interpolation}, the shorter side to {resize} px")?;
        if *resize != input {
            write!(f, ", the middle {input} px of it")?;
        }
        writeln!(f, "; a square of {input} px as it is")?;
        writeln!(f, "normalised  mean {mean:?}, deviation {std:?}")
    }

    pub(crate) fn from_card(card: &EncoderCard) -> Self {
        let (fit, pooling) = (card.fit(), card.pooling.clone());
        let (mean, std, layouts) = (card.mean, card.std, vec![]);
        Self { mean, std, resize: fit.resize, interpolation: fit.by, pooling, layouts }
    }
}

/// An encoder in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its folder; `None` for one that needs a file of weights.
    #[serde(serialize_with = "base::json::lossy")]
    pub folder: Option<PathBuf>,
    /// Architecture.
    pub architecture: String,
    /// Numbers per vector.
    pub width: usize,
    /// Side of the input, px.
    pub input: usize,
    /// um/px that it was trained at.
    pub mpp: Option<f64>,
    /// Licence of the weights; `None` where they are missing.
    pub license: Option<String>,
    /// How it is fed.
    #[serde(flatten)]
    pub facts: Facts,
}

impl Listed {
    pub(crate) fn from_card(card: &ModelCard, folder: &Path) -> Option<Self> {
        let e = card.encoder.as_ref()?;
        Some(Self {
            name: card.name.clone(),
            folder: Some(folder.to_owned()),
            architecture: e.architecture.clone(),
            width: e.width,
            input: e.input,
            mpp: e.mpp.map(mitosis::Mpp::get),
            license: Some(card.license.clone()),
            facts: Facts::from_card(e),
        })
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<28} {:>5} numbers, {} px", self.name, self.width, self.input)?;
        if let Some(mpp) = self.mpp {
            write!(f, " at {mpp} um/px")?;
        }
        match &self.folder {
            Some(folder) => writeln!(f, ", {}, {}", self.architecture, Shown(folder)),
            None => writeln!(f, ", from a file of weights"),
        }
    }
}

/// An encoder that needs a file of weights, in full.
#[derive(Clone, Debug, Serialize)]
pub struct Known {
    /// Version of this format.
    pub schema: &'static str,
    /// What is known of it.
    #[serde(flatten)]
    pub encoder: Listed,
}

impl Known {
    /// What is known of it.
    #[must_use]
    pub fn new(encoder: &Listed) -> Self {
        Self { schema: "mithras.encoder-known/1", encoder: encoder.clone() }
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listed { name, input, width, mpp, facts, .. } = &self.encoder;
        writeln!(f, "{name}: {width} numbers, {}, from a file of weights", facts.pooling)?;
        let mpp = mpp.map_or_else(|| "no resolution stated".into(), |m| format!("{m} um/px"));
        writeln!(f, "input       {input} px, {mpp}")?;
        facts.fmt(f, *input)?;
        writeln!(f, "layouts     {}", facts.layouts.join(", "))
    }
}
