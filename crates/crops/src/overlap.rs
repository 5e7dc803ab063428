//! Whether two corpora share a slide, a patient or an image.

use crate::error::{CorpusError, Result};
use crate::reader::Corpus;
use crate::shard::Columns;
use crate::slide_name::bare;
use base::digest::hex;
use std::collections::BTreeSet;

/// Refuses two corpora that share a slide, a patient or an image (nothing of an evaluation set
/// may be trained on).
///
/// # Errors
/// [`CorpusError::Invalid`] naming up to ten of each.
pub fn refuse_overlap(train: &Corpus, evaluation: &Corpus) -> Result<()> {
    // Importers write the name of a slide with the suffix of its file or without.
    type Keys = (BTreeSet<String>, BTreeSet<String>, BTreeSet<String>);
    let keys = |c: &Corpus| -> Result<Keys> {
        let mut out = Keys::default();
        for crop in c.crops(Columns::Meta)? {
            let m = crop?.meta;
            out.0.insert(bare(&m.slide).to_owned());
            out.1.extend(m.patient);
            out.2.extend(m.pixels.map(|h| hex(&h)));
        }
        Ok(out)
    };
    let (a, b) = (keys(train)?, keys(evaluation)?);
    let shared = |x: &BTreeSet<String>, y: &BTreeSet<String>| -> Vec<String> {
        x.intersection(y).cloned().collect()
    };
    let mut parts = Vec::new();
    let pairs = [("slides", &a.0, &b.0), ("patients", &a.1, &b.1), ("images", &a.2, &b.2)];
    for (what, x, y) in pairs {
        let both = shared(x, y);
        if !both.is_empty() {
            let shown = both.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
            parts.push(format!("{} {what} ({shown})", both.len()));
        }
    }
    if parts.is_empty() {
        return Ok(());
    }
    Err(CorpusError::Invalid(format!(
        "{} and {} share {}",
        train.dir().display(),
        evaluation.dir().display(),
        parts.join(", ")
    )))
}
