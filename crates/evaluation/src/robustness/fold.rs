//! What was measured on the images that a fold left out.

use std::collections::BTreeMap;

use super::{Robustness, RobustnessError, ScoredCandidate};

/// One fold's measurements: the labelled images it left out, and foreign tissue it never saw.
pub struct FoldRun {
    /// Name of the fold.
    pub name: String,
    /// Labelled images.
    pub labelled: Robustness,
    /// Tissue without figures.
    pub foreign: Option<Robustness>,
    /// Tissue without figures that no model trained on, the same for every fold: it settles the scale of the fold's
    /// model.
    pub tissue: Option<Robustness>,
}

/// Candidates per mm2 of tissue without figures whose least sure one has the logit that models are brought together at.
/// Fewer would rest on a handful of nuclei, of which one or the other may be a figure that nobody labelled.
pub const TISSUE_RATE: f64 = 20.0;

impl Robustness {
    /// The logit that [`TISSUE_RATE`] clean candidates per mm2 reach: how high this model rates other objects.
    ///
    /// # Errors
    /// No second stage, or fewer candidates than that.
    pub fn tissue_logit(&self) -> Result<f64, RobustnessError> {
        let found = self.rows.iter().take(1).flat_map(|r| &r.images).flat_map(|l| &l.found);
        let all: Option<Vec<f64>> = found.map(|f| Some(logit(f64::from(f.s_cls?)))).collect();
        let mut all = all.ok_or_else(|| {
            RobustnessError::Nothing(
                "tissue sets the scale of a second stage, but the detector has only one".into(),
            )
        })?;
        all.sort_by(|a, b| b.total_cmp(a));
        let rank = (TISSUE_RATE * self.mm2).round().max(1.0) as usize;
        all.get(rank - 1).copied().ok_or_else(|| {
            RobustnessError::Nothing(format!(
                "{} candidates on {:.2} mm2 of tissue, and {rank} are needed to set a scale by: \
                 measure more tissue if you have it, or candidates from a lower threshold",
                all.len(),
                self.mm2
            ))
        })
    }

    /// Names of its images, in order.
    #[must_use]
    pub fn images(&self) -> Vec<String> {
        self.rows.first().into_iter().flat_map(|r| &r.images).map(|l| l.image.clone()).collect()
    }
}

/// Why the measurements of folds cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FoldRunError {
    /// Not `NAME=DIR`.
    #[error("`{0}` is not NAME=DIR")]
    Form(String),
    /// Tissue of a fold that has no labelled images.
    #[error("there is {1} tissue of the fold {0}, and no fold of that name")]
    Unknown(String, &'static str),
    /// A folder's `robustness.json` is missing or of another schema.
    #[error(transparent)]
    Read(#[from] base::json::JsonError),
}

fn logit(p: f64) -> f64 {
    let p = p.clamp(1e-6, 1.0 - 1e-6);
    (p / (1.0 - p)).ln()
}

impl FoldRun {
    /// Reads the folders of folds, each written NAME=DIR, those of their foreign tissue, and of the tissue that sets
    /// the scale of each.
    ///
    /// # Errors
    /// [`FoldRunError`].
    pub fn read(
        folds: &[String],
        foreign: &[String],
        tissue: &[String],
    ) -> Result<Vec<Self>, FoldRunError> {
        let named = |text: &String| {
            let split = text.split_once('=').ok_or_else(|| FoldRunError::Form(text.clone()))?;
            Ok::<_, FoldRunError>((split.0.to_owned(), Robustness::open(split.1.as_ref())?))
        };
        let by_name = |all: &[String]| {
            all.iter().map(named).collect::<Result<BTreeMap<_, _>, FoldRunError>>()
        };
        let (mut foreign, mut tissue) = (by_name(foreign)?, by_name(tissue)?);
        let mut all = Vec::new();
        for fold in folds {
            let (name, labelled) = named(fold)?;
            let (foreign, tissue) = (foreign.remove(&name), tissue.remove(&name));
            all.push(Self { name, labelled, foreign, tissue });
        }
        let foreign = foreign.into_keys().map(|name| (name, "foreign"));
        match foreign.chain(tissue.into_keys().map(|name| (name, "calibration"))).next() {
            Some((name, what)) => Err(FoldRunError::Unknown(name, what)),
            None => Ok(all),
        }
    }

    /// The logit of the last stage as its model gives it.
    pub(super) fn raw(found: &ScoredCandidate) -> f64 {
        logit(f64::from(found.s_cls.unwrap_or(found.s_seg)))
    }

    pub(super) fn has_second_stage(&self) -> bool {
        let mut found = self.labelled.rows.iter().flat_map(|r| &r.images).flat_map(|l| &l.found);
        found.any(|f| f.s_cls.is_some())
    }
}
