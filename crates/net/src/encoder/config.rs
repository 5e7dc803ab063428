//! How an encoder is asked for, and the rows of the table by name.

use serde::{Deserialize, Serialize};

use super::row::{EncoderEntry, Published};
use super::table::ENCODERS;
use crate::vit::Pool;

/// How to build an encoder; the same words for all. Image side and pooling are the table's where they
/// are not given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Given")]
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
}

/// [`EncoderConfig`] as it is written.
#[derive(Deserialize)]
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
            ..own
        }
    }
}

impl EncoderConfig {
    /// No dropout; image side and pooling as the table says (224 px and the class token for an
    /// architecture alone).
    #[must_use]
    pub fn new(name: &str, classes: i64) -> Self {
        let published = published(name);
        Self {
            name: name.into(),
            classes,
            image: published.map_or(224, |p| p.image),
            drop_path: 0.0,
            dropout: 0.0,
            head_bias: 0.0,
            pool: published.map_or(Pool::Cls, |p| p.pool),
        }
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
