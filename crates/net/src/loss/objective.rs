//! The objective (Eq. 5): a list of weighted terms.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::error::{NetError, Result};

/// A term of the objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Term {
    /// Masked reconstruction, Eq. 4.
    Mim,
    /// Image-level contrast, Eq. 2.
    Image,
    /// Token-level contrast, Eq. 3.
    Token,
}

impl Term {
    /// The word in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mim => "mim",
            Self::Image => "image",
            Self::Token => "token",
        }
    }
}

/// A term's value: a number, or a scalar that back-propagates.
pub trait Value {
    /// Times a weight.
    #[must_use]
    fn times(&self, weight: f64) -> Self;

    /// Plus another.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

impl Value for Tensor {
    fn times(&self, weight: f64) -> Self {
        self * weight
    }

    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Value for f64 {
    fn times(&self, weight: f64) -> Self {
        self * weight
    }

    fn plus(self, other: Self) -> Self {
        self + other
    }
}

/// Weights of the terms; every row of the ablation table is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// Weight of [`Term::Mim`].
    pub mim: f64,
    /// Weight of [`Term::Image`].
    pub image: f64,
    /// Weight of [`Term::Token`].
    pub token: f64,
}

impl Objective {
    /// Eq. 5: `L_MIM + beta L_img + (1 - beta) L_tok`.
    #[doc(alias = "Eq. 5")]
    #[must_use]
    pub fn mithras(beta: f64) -> Self {
        Self { mim: 1.0, image: beta, token: 1.0 - beta }
    }

    /// Checks that weights are finite, not negative, and one is positive.
    ///
    /// # Errors
    /// [`NetError::Encoder`] with the key.
    pub fn check(&self) -> Result<()> {
        for (key, w) in [("mim", self.mim), ("image", self.image), ("token", self.token)] {
            if !(w.is_finite() && w >= 0.0) {
                return Err(NetError::config(key, format!("{w} is not a weight")));
            }
        }
        if self.mim + self.image + self.token == 0.0 {
            return Err(NetError::config("mim", "every term has weight zero"));
        }
        Ok(())
    }

    /// The terms with a weight, in the order of Eq. 5.
    #[must_use]
    pub fn terms(&self) -> Vec<(Term, f64)> {
        [(Term::Mim, self.mim), (Term::Image, self.image), (Term::Token, self.token)]
            .into_iter()
            .filter(|(_, w)| *w != 0.0)
            .collect()
    }

    /// Whether a term is computed.
    #[must_use]
    pub fn has(&self, term: Term) -> bool {
        self.terms().iter().any(|(t, _)| *t == term)
    }

    /// The weighted sum of what `compute` gives, and every term's own value. A term of weight zero
    /// is not computed.
    ///
    /// # Panics
    /// When every weight is zero; [`Self::check`] first.
    #[doc(alias = "Eq. 5")]
    pub fn total<V: Value>(&self, mut compute: impl FnMut(Term) -> V) -> (V, Vec<(Term, V)>) {
        let mut total: Option<V> = None;
        let mut parts = Vec::new();
        for (term, weight) in self.terms() {
            let value = compute(term);
            let weighted = value.times(weight);
            total = Some(match total {
                Some(t) => t.plus(weighted),
                None => weighted,
            });
            parts.push((term, value));
        }
        (total.expect("at least one term"), parts)
    }
}
