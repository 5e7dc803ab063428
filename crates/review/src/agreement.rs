//! How far reviewers of the same things agree: of an audit's pictures, of a run's candidates.

use serde::Serialize;
use stats::StatsError;
use stats::metrics::ConfusionMatrix;
use std::collections::BTreeMap;
use std::fmt;

/// A reviewer's verdict, for the agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A figure.
    Yes,
    /// None.
    No,
    /// Undecided.
    Unsure,
}

/// Two reviewers of the same things.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Who.
    pub reviewers: [String; 2],
    /// Things that both have judged.
    pub both: usize,
    /// Things that both have judged alike.
    pub agree: usize,
    /// Cohen's kappa over confirmed, not confirmed, unsure; null where it is undefined.
    pub kappa: Option<f64>,
}

/// Every two of these reviewers who judged something in common; words by reviewer and thing.
///
/// # Errors
/// [`StatsError`].
pub fn agreements<K: Ord>(
    words: &BTreeMap<String, BTreeMap<K, Word>>,
) -> Result<Vec<Agreement>, StatsError> {
    let all: Vec<_> = words.iter().collect();
    let mut out = Vec::new();
    for (i, (a, x)) in all.iter().enumerate() {
        for (b, y) in &all[i + 1..] {
            let both = x.iter().filter_map(|(k, p)| Some((*p as usize, *y.get(k)? as usize)));
            let (p, q): (Vec<usize>, Vec<usize>) = both.unzip();
            if p.is_empty() {
                continue;
            }
            out.push(Agreement {
                reviewers: [(*a).clone(), (*b).clone()],
                both: p.len(),
                agree: p.iter().zip(&q).filter(|(a, b)| a == b).count(),
                kappa: ConfusionMatrix::from_labels(&p, &q, 3)?.cohen_kappa(),
            });
        }
    }
    Ok(out)
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kappa = self.kappa.map_or_else(|| "undefined".into(), |k| format!("{k:.3}"));
        let [a, b] = &self.reviewers;
        write!(f, "{a} and {b}: {} of {} agree, kappa {kappa}", self.agree, self.both)
    }
}
