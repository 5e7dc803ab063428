//! Subtypes of one figure.

use regions::task::{MORPHOLOGY, Task};
use serde::{Deserialize, Serialize};

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
    /// From the probabilities of [`MORPHOLOGY`]: a figure is atypical as likely as it is one of the
    /// four atypical morphologies.
    #[must_use]
    pub fn from_morphology(morphology: &[f32; 8]) -> Self {
        let mut all = [0.0; 9];
        all[1..].copy_from_slice(morphology);
        let coarser = Task::AmiMorph.coarser().expect("morphologies are typical or atypical");
        for (&class, p) in coarser.of.iter().zip(morphology) {
            all[0] += if class == 1 { *p } else { 0.0 };
        }
        all[0] = all[0].min(1.0);
        Self(all)
    }

    /// Probability of being atypical.
    #[must_use]
    pub fn atypical(&self) -> f32 {
        self.0[0]
    }

    /// The likeliest morphology; the first of equals.
    #[must_use]
    pub fn morphology(&self) -> &'static str {
        MORPHOLOGY[mitosis::likeliest(&self.0[1..])]
    }
}

/// Which subtype weights ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubtypeModel {
    /// Package name.
    pub name: String,
    /// SHA-256 of its network.
    pub sha256: String,
    /// Licence of the weights.
    pub license: String,
    /// `p_atypical` from which on a figure counts as atypical.
    pub atypical_from: f32,
}
