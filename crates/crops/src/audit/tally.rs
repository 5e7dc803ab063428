//! Verdicts against the key: one row of counts per stratum.

use super::package::Key;
use super::review::{BoxSize, Entry, Verdict};
use crate::error::{CorpusError, Result};
use base::table::Unmatched;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How often each verdict was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewCounts {
    /// Items that the reviewer agreed with.
    pub confirmed: u64,
    /// Items that the reviewer rejected.
    pub not_confirmed: u64,
    /// Items that the reviewer could not decide.
    pub unsure: u64,
    /// Confirmed figures by smallest enclosing box: 25, 50, 75, larger.
    pub boxes: [u64; 4],
    /// Crops that are not confirmed, or unsure, with a figure elsewhere.
    pub elsewhere: u64,
    /// Crops that are not confirmed, or unsure, for which that was asked.
    pub elsewhere_asked: u64,
}

/// A stratum and its counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// As the corpus names it.
    pub cohort: String,
    /// Label or subtype.
    pub stratum: String,
    /// Size of the stratum in the corpus; `None` when unknown.
    pub pool: Option<u64>,
    /// Verdicts on its crops.
    #[serde(flatten)]
    pub counts: ReviewCounts,
}

/// One reviewer's rows, in the key's order of strata. Pictures without a verdict are left out.
///
/// # Errors
/// When a verdict names a picture that the key does not know.
pub fn tally(key: &Key, entries: &BTreeMap<String, Entry>) -> Result<Vec<Row>> {
    let by_id: BTreeMap<&str, (&str, &str)> = key
        .items
        .iter()
        .map(|i| (i.id.as_str(), (i.meta.cohort.as_str(), i.stratum.as_str())))
        .collect();
    let mut rows: Vec<Row> = key
        .strata
        .iter()
        .map(|s| Row {
            cohort: s.cohort.clone(),
            stratum: s.stratum.clone(),
            pool: Some(s.pool),
            counts: ReviewCounts::default(),
        })
        .collect();
    let strange: Vec<&str> =
        entries.keys().map(String::as_str).filter(|id| !by_id.contains_key(id)).collect();
    if !strange.is_empty() {
        let idle: Vec<&str> =
            by_id.keys().copied().filter(|id| !entries.contains_key(*id)).collect();
        let join = Unmatched::from_keys(("the verdicts", "the key"), &strange, &idle)
            .map_or_else(String::new, |join| format!(": {join}"));
        let why = format!("verdicts on pictures that the key does not know{join}");
        return Err(CorpusError::Invalid(why));
    }
    for (id, entry) in entries {
        let unknown =
            || CorpusError::Invalid(format!("the key knows no stratum of picture `{id}`"));
        let &(cohort, stratum) = by_id.get(id.as_str()).ok_or_else(unknown)?;
        let row = rows.iter_mut().find(|r| r.cohort == cohort && r.stratum == stratum);
        let c = &mut row.ok_or_else(unknown)?.counts;
        match entry.verdict {
            Verdict::Confirmed => c.confirmed += 1,
            Verdict::NotConfirmed => c.not_confirmed += 1,
            Verdict::Unsure => c.unsure += 1,
        }
        if entry.verdict != Verdict::Confirmed {
            c.elsewhere_asked += 1;
            c.elsewhere += u64::from(entry.elsewhere);
        }
        if let (Verdict::Confirmed, Some(size)) = (entry.verdict, entry.size) {
            let k = match size {
                BoxSize::Px25 => 0,
                BoxSize::Px50 => 1,
                BoxSize::Px75 => 2,
                BoxSize::Larger => 3,
            };
            c.boxes[k] += 1;
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{KeyItem, Stratum};
    use crate::schema::{CropMeta, Label};
    use mitosis::Mpp;

    #[test]
    fn a_figure_elsewhere_counts_wherever_the_centre_is_not_confirmed() {
        let item = |id: &str| {
            let meta = CropMeta::new(id, Label::MitoticFigure, "s", Mpp::PAPER, (64, 64));
            KeyItem {
                id: id.into(),
                meta: CropMeta { cohort: "A".into(), ..meta },
                stratum: "mf".into(),
            }
        };
        let key = Key {
            format: "mithras-audit-key".into(),
            schema: 1,
            audit: "a1".into(),
            corpus_digest: "00".into(),
            seed: 0,
            strata: vec![Stratum { cohort: "A".into(), stratum: "mf".into(), pool: 9, drawn: 4 }],
            items: ["a", "b", "c", "d"].map(item).into(),
        };
        let entry = |verdict, elsewhere| Entry { verdict, size: None, elsewhere };
        let entries = BTreeMap::from([
            ("a".to_owned(), entry(Verdict::Confirmed, true)),
            ("b".to_owned(), entry(Verdict::NotConfirmed, true)),
            ("c".to_owned(), entry(Verdict::Unsure, true)),
            ("d".to_owned(), entry(Verdict::Unsure, false)),
        ]);
        let counts = tally(&key, &entries).unwrap().remove(0).counts;
        assert_eq!((counts.elsewhere, counts.elsewhere_asked), (2, 3));
    }
}
