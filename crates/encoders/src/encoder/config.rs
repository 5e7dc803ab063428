//! How an encoder is asked for, and the rows of the table by name.

use pixels::resize::{Fit, Interpolation};
use serde::{Deserialize, Serialize};

use super::row::{EncoderEntry, IMAGENET, Norm, Published};
use super::table::ENCODERS;
use crate::error::{EncoderError, Result};
use crate::vit::Pool;

/// How to build and feed an encoder; the same words for all. Image side, pooling and normalisation are
/// the table's where they are not given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Given", into = "Given")]
pub struct EncoderConfig {
    /// A name of [`ENCODERS`].
    pub name: String,
    /// Classes of the head; 0 leaves it out.
    pub classes: i64,
    /// Image side in pixels (transformers).
    pub image: i64,
    /// Stochastic depth, [0, 1).
    pub drop_path: f64,
    /// Dropout before the head (convolutional networks), [0, 1).
    pub dropout: f64,
    /// Constant bias of the head.
    pub head_bias: f64,
    /// Pooling (transformers).
    pub pool: Pool,
    /// Subtracted from values in [0, 1], per channel.
    pub mean: [f32; 3],
    /// Divides after that.
    pub std: [f32; 3],
}

/// [`EncoderConfig`] as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    name: String,
    classes: i64,
    image: Option<i64>,
    #[serde(default)]
    drop_path: f64,
    #[serde(default)]
    dropout: f64,
    #[serde(default)]
    head_bias: f64,
    pool: Option<Pool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mean: Option<[f32; 3]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    std: Option<[f32; 3]>,
}

impl From<Given> for EncoderConfig {
    fn from(given: Given) -> Self {
        let own = Self::new(&given.name, given.classes);
        Self {
            image: given.image.unwrap_or(own.image),
            drop_path: given.drop_path,
            dropout: given.dropout,
            head_bias: given.head_bias,
            pool: given.pool.unwrap_or(own.pool),
            mean: given.mean.unwrap_or(own.mean),
            std: given.std.unwrap_or(own.std),
            ..own
        }
    }
}

/// A normalisation is written down unless nobody would expect another.
impl From<EncoderConfig> for Given {
    fn from(c: EncoderConfig) -> Self {
        let own = EncoderConfig::new(&c.name, c.classes);
        let plain = |c: &EncoderConfig| Norm { mean: c.mean, std: c.std } == IMAGENET;
        let stated = !(plain(&c) && plain(&own));
        Self {
            name: c.name,
            classes: c.classes,
            image: Some(c.image),
            drop_path: c.drop_path,
            dropout: c.dropout,
            head_bias: c.head_bias,
            pool: Some(c.pool),
            mean: stated.then_some(c.mean),
            std: stated.then_some(c.std),
        }
    }
}

impl EncoderConfig {
    /// No dropout; image side, pooling and normalisation as the table states (224 px, the class token
    /// and ImageNet's for an architecture alone).
    #[must_use]
    pub fn new(name: &str, classes: i64) -> Self {
        let published = published(name);
        let norm = |p: &Published| Norm { mean: p.mean, std: p.std };
        let Norm { mean, std } = published.map_or(IMAGENET, norm);
        Self {
            name: name.into(),
            classes,
            image: published.map_or(224, |p| p.image),
            drop_path: 0.0,
            dropout: 0.0,
            head_bias: 0.0,
            pool: published.map_or(Pool::Cls, |p| p.pool),
            mean,
            std,
        }
    }

    /// Checks the normalisation; [`Self::network`] checks the rest.
    ///
    /// # Errors
    /// [`EncoderError::Config`] with the key.
    pub fn check(&self) -> Result<()> {
        let bad = |key: &str, why: String| Err(EncoderError::config(key, why));
        if !self.mean.iter().all(|v| v.is_finite()) {
            return bad("model.mean", format!("{:?} is not a mean", self.mean));
        }
        if !self.std.iter().all(|v| v.is_finite() && *v > 0.0) {
            return bad("model.std", format!("{:?} divides, and has to be positive", self.std));
        }
        Ok(())
    }
}

/// The row of this name.
#[must_use]
pub fn entry(name: &str) -> Option<&'static EncoderEntry> {
    ENCODERS.iter().find(|e| e.name == name)
}

/// What an encoder that others published wants: its architecture, image side, normalisation and
/// pooling, and the names in its file. `None` for an architecture alone and for unknown names.
#[must_use]
pub fn published(name: &str) -> Option<&'static Published> {
    entry(name)?.published.as_ref()
}

/// How images of any size become the `input` pixels of an encoder: as its makers have it, at another side
/// than theirs in the same proportion; an architecture alone as everything here, whole and bilinear.
#[must_use]
pub fn fit(name: &str, input: usize) -> Fit {
    let Some(p) = published(name) else {
        return Fit::whole(input, Interpolation::Bilinear);
    };
    let by = p.interpolation;
    Fit { input, resize: input * p.resize as usize / p.image as usize, by }
}
