//! The data of a Cox model.

use super::super::data::{Survival, SurvivalError, check_length, check_weights};

/// What a model is fitted to: outcomes, a row-major n x p matrix of covariates, and optionally
/// case weights (> 0), strata (own baseline each) and clusters (independent units).
#[derive(Debug, Clone, Copy)]
pub struct CoxData<'a> {
    pub(crate) survival: &'a Survival,
    pub(crate) x: &'a [f64],
    pub(crate) columns: usize,
    pub(crate) weights: Option<&'a [f64]>,
    pub(crate) strata: Option<&'a [usize]>,
    pub(crate) cluster: Option<&'a [usize]>,
}

impl<'a> CoxData<'a> {
    /// Outcomes with `x[row * columns + column]`.
    ///
    /// # Errors
    /// Without columns, when `x` is not n x columns, or holds a value that is not finite.
    pub fn new(
        survival: &'a Survival,
        x: &'a [f64],
        columns: usize,
    ) -> Result<Self, SurvivalError> {
        if columns == 0 {
            return Err(SurvivalError::NoCovariates);
        }
        check_length("covariates (rows x columns)", survival.len() * columns, x.len())?;
        if let Some((i, &value)) = x.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            let (row, column) = (i / columns, i % columns);
            return Err(SurvivalError::Covariate { row, column, value });
        }
        Ok(Self { survival, x, columns, weights: None, strata: None, cluster: None })
    }

    /// Adds case weights, finite and > 0. A whole-number weight is that many copies of the row.
    ///
    /// # Errors
    /// On a wrong length or a weight that is not allowed.
    pub fn with_weights(mut self, weights: &'a [f64]) -> Result<Self, SurvivalError> {
        check_weights(weights, self.survival.len())?;
        self.weights = Some(weights);
        Ok(self)
    }

    /// Adds strata: rows are compared within a stratum only.
    ///
    /// # Errors
    /// On a wrong length.
    pub fn with_strata(mut self, strata: &'a [usize]) -> Result<Self, SurvivalError> {
        check_length("strata", self.survival.len(), strata.len())?;
        self.strata = Some(strata);
        Ok(self)
    }

    /// Adds clusters (patients with several slides): errors become cluster-robust.
    ///
    /// # Errors
    /// On a wrong length.
    pub fn with_cluster(mut self, cluster: &'a [usize]) -> Result<Self, SurvivalError> {
        check_length("cluster", self.survival.len(), cluster.len())?;
        self.cluster = Some(cluster);
        Ok(self)
    }

    pub(crate) fn row(&self, i: usize) -> &'a [f64] {
        &self.x[i * self.columns..(i + 1) * self.columns]
    }

    pub(crate) fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |w| w[i])
    }

    pub(crate) fn stratum(&self, i: usize) -> usize {
        self.strata.map_or(0, |s| s[i])
    }

    /// Whether errors are robust: clusters were given or a weight is not a whole number (R's rule).
    #[must_use]
    pub fn robust(&self) -> bool {
        self.cluster.is_some() || self.weights.is_some_and(|w| w.iter().any(|w| w.fract() != 0.0))
    }
}
