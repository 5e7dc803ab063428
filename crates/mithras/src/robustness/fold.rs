//! What was measured on the images that a fold left out.

use std::collections::BTreeMap;

use super::Robustness;

/// One fold's measurements: the labelled images it left out, and foreign tissue it never saw.
pub struct FoldRun {
    /// Name.
    pub name: String,
    /// Labelled images.
    pub labelled: Robustness,
    /// Tissue without figures.
    pub foreign: Option<Robustness>,
}

/// Why the measurements of folds cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FoldRunError {
    /// Not `NAME=DIR`.
    #[error("`{0}`: write NAME=DIR")]
    Form(String),
    /// Tissue of a fold that has no labelled images.
    #[error("there is foreign tissue of the fold {0}, and no fold of that name")]
    Unknown(String),
    /// A folder's `robustness.json` is missing or of another schema.
    #[error(transparent)]
    Read(#[from] artifact::json::JsonError),
}

impl FoldRun {
    /// Reads the folders of folds, each written NAME=DIR, and those of their foreign tissue.
    ///
    /// # Errors
    /// [`FoldRunError`].
    pub fn read(folds: &[String], foreign: &[String]) -> Result<Vec<Self>, FoldRunError> {
        let named = |text: &String| {
            let split = text.split_once('=').ok_or_else(|| FoldRunError::Form(text.clone()))?;
            Ok::<_, FoldRunError>((split.0.to_owned(), Robustness::open(split.1.as_ref())?))
        };
        let mut foreign: BTreeMap<_, _> = foreign.iter().map(named).collect::<Result<_, _>>()?;
        let mut all = Vec::new();
        for fold in folds {
            let (name, labelled) = named(fold)?;
            let foreign = foreign.remove(&name);
            all.push(Self { name, labelled, foreign });
        }
        match foreign.into_keys().next() {
            Some(name) => Err(FoldRunError::Unknown(name)),
            None => Ok(all),
        }
    }

    pub(super) fn has_second_stage(&self) -> bool {
        let mut found = self.labelled.rows.iter().flat_map(|r| &r.images).flat_map(|l| &l.found);
        found.any(|f| f.s_cls.is_some())
    }
}
