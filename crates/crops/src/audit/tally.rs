//! Verdicts against the key: one row of counts per stratum.

use super::package::Key;
use super::review::{BoxSize, Entry, Verdict};
use crate::error::{CorpusError, Result};
use base::table::Unmatched;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// ReviewCounts of verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewCounts {
    /// Confirmed.
    pub confirmed: u64,
    /// Not confirmed.
    pub not_confirmed: u64,
    /// Unsure.
    pub unsure: u64,
    /// Confirmed figures by smallest enclosing box: 25, 50, 75, larger.
    pub boxes: [u64; 4],
    /// Not confirmed crops with a figure elsewhere.
    pub elsewhere: u64,
    /// Not confirmed crops for which that was asked.
    pub elsewhere_asked: u64,
}

/// A stratum and its counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Cohort.
    pub cohort: String,
    /// Label or subtype.
    pub stratum: String,
    /// Size of the stratum in the corpus; `None` when unknown.
    pub pool: Option<u64>,
    /// ReviewCounts.
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
            Verdict::NotConfirmed => {
                c.not_confirmed += 1;
                c.elsewhere_asked += 1;
                c.elsewhere += u64::from(entry.elsewhere);
            }
            Verdict::Unsure => c.unsure += 1,
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
