//! Places on which reviewers differ, and what was decided about them.
//!
//! A decision is in `settled.log` next to the logs of reviewers. It names the verdicts that it was made about, and
//! holds as long as these are the reviewers' verdicts: changing one opens the question again.

use super::content::SETTLED as LOG;
use super::logs::{append, lines, now};
use super::review::{Entry, ReviewError, SlideKey, SlideVerdicts, Verdict, VerdictLog, Verdicts};
use base::log::check_name;
use base::text::Many;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Schema of a line.
const SETTLED: &str = "mithras.settled/1";
/// What separates the names of reviewers whose verdicts are put together.
pub const TOGETHER: char = '+';

/// A decision about a place on which reviewers differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// `mithras.settled/1`.
    pub schema: String,
    /// Seconds since 1970, UTC.
    pub time: f64,
    /// Who decided.
    pub reviewer: String,
    /// On which slide.
    #[serde(flatten)]
    pub of: SlideKey,
    /// Key of the place.
    pub key: String,
    /// The decision; null takes an earlier one back.
    pub verdict: Option<Verdict>,
    /// The verdicts of the reviewers that it was made about.
    pub verdicts: BTreeMap<String, Verdict>,
}

/// A place on which reviewers differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Disagreement {
    /// Key of the place.
    pub key: String,
    /// Level-0 px.
    pub x: f64,
    /// Level-0 px.
    pub y: f64,
    /// A figure that the network missed.
    pub added: bool,
    /// The verdict of each who judged it.
    pub verdicts: BTreeMap<String, Verdict>,
    /// The decision that holds.
    pub settled: Option<Settled>,
}

/// A place on a slide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceKey {
    /// Name and digest of the slide.
    pub of: SlideKey,
    /// [`Entry::key`].
    pub key: String,
}

/// The last decision about each place.
///
/// # Errors
/// [`ReviewError`].
pub fn settled(folder: &Path) -> Result<BTreeMap<PlaceKey, Settled>, ReviewError> {
    let mut all = BTreeMap::new();
    for line in lines::<Settled>(&folder.join(LOG))? {
        all.insert(PlaceKey { of: line.of.clone(), key: line.key.clone() }, line);
    }
    all.retain(|_, s| s.verdict.is_some());
    Ok(all)
}

/// The places of a slide on which two or more of these logs differ in whether they count, by key.
#[must_use]
pub fn disagreements(
    logs: &BTreeMap<String, Verdicts>,
    of: &SlideKey,
    settled: &BTreeMap<PlaceKey, Settled>,
) -> Vec<Disagreement> {
    let mut places: BTreeMap<&str, (&Entry, BTreeMap<String, Verdict>)> = BTreeMap::new();
    for (name, log) in logs {
        for entry in log.get(of).iter().flat_map(|s| s.entries.values()) {
            let Some(verdict) = entry.verdict else { continue };
            let place = places.entry(&entry.key).or_insert_with(|| (entry, BTreeMap::new()));
            place.1.insert(name.clone(), verdict);
        }
    }
    let differ = |verdicts: &BTreeMap<String, Verdict>| {
        verdicts.values().map(|v| v.counts()).collect::<BTreeSet<_>>().len() > 1
    };
    let one = |(key, (entry, verdicts)): (&str, (&Entry, BTreeMap<String, Verdict>))| {
        let decision = settled.get(&PlaceKey { of: of.clone(), key: key.to_owned() });
        Disagreement {
            key: key.to_owned(),
            x: entry.x,
            y: entry.y,
            added: entry.added,
            settled: decision.filter(|s| s.verdicts == verdicts).cloned(),
            verdicts,
        }
    };
    places.into_iter().filter(|(_, (_, verdicts))| differ(verdicts)).map(one).collect()
}

/// Keeps a decision about a place, or takes the current one back; on disk before this returns.
///
/// # Errors
/// [`ReviewError`].
pub fn settle(
    folder: &Path,
    reviewer: &str,
    of: &SlideKey,
    about: &Disagreement,
    verdict: Option<Verdict>,
) -> Result<Settled, ReviewError> {
    check_name(reviewer).map_err(ReviewError::Name)?;
    let line = Settled {
        schema: SETTLED.into(),
        time: now(),
        reviewer: reviewer.to_owned(),
        of: of.clone(),
        key: about.key.clone(),
        verdict,
        verdicts: about.verdicts.clone(),
    };
    append(&folder.join(LOG), &line)?;
    Ok(line)
}

/// The verdicts of several reviewers together.
#[derive(Clone, Debug, Default)]
pub struct Together {
    /// Their verdicts: where they differ the decision, else none.
    pub verdicts: Verdicts,
    /// Places on which they differ and nobody decided, by slide.
    pub open: BTreeMap<SlideKey, usize>,
    /// Places on which they differed and somebody decided, by slide.
    pub decided: BTreeMap<SlideKey, usize>,
}

impl Together {
    /// What is to be known of a slide's places on which they differ.
    #[must_use]
    pub fn notes(&self, of: &SlideKey) -> Vec<String> {
        let n = |all: &BTreeMap<SlideKey, usize>| all.get(of).copied().unwrap_or(0);
        let mut notes = Vec::new();
        if n(&self.open) > 0 {
            notes.push(format!(
                "the reviewers differ on {}, not settled: the network's verdict counts there",
                Many(n(&self.open), "place")
            ));
        }
        if n(&self.decided) > 0 {
            notes.push(format!("{} on which they differ settled", Many(n(&self.decided), "place")));
        }
        notes
    }
}

/// The verdicts of reviewers named `anna+bert` in a folder of logs: those of the reviewers who judged a place, where
/// they agree; the decision where they differ. None where a log is missing.
///
/// # Errors
/// [`ReviewError`].
pub fn together(folder: &Path, names: &str) -> Result<Option<Together>, ReviewError> {
    let mut logs = BTreeMap::new();
    for name in names.split(TOGETHER) {
        let log = VerdictLog::path(folder, name)?;
        if !log.is_file() {
            return Ok(None);
        }
        logs.insert(name.to_owned(), VerdictLog::read(&log)?);
    }
    let decisions = settled(folder)?;
    let mut all = Together::default();
    let slides: BTreeSet<&SlideKey> = logs.values().flat_map(BTreeMap::keys).collect();
    for of in slides {
        let differ = disagreements(&logs, of, &decisions);
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        for entry in logs.values().filter_map(|s| s.get(of)).flat_map(|s| s.entries.values()) {
            entries.entry(entry.key.clone()).or_insert_with(|| entry.clone());
        }
        let (mut open, mut decided) = (0, 0);
        for d in differ {
            match d.settled {
                Some(s) => {
                    decided += 1;
                    if let Some(entry) = entries.get_mut(&d.key) {
                        (entry.verdict, entry.morphology) = (s.verdict, None);
                    }
                }
                None => {
                    open += 1;
                    entries.remove(&d.key);
                }
            }
        }
        all.open.insert(of.clone(), open);
        all.decided.insert(of.clone(), decided);
        all.verdicts.insert(of.clone(), SlideVerdicts::from_entries(entries.into_values()));
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, verdict: Verdict) -> Entry {
        Entry {
            key: key.into(),
            x: 1.0,
            y: 2.0,
            verdict: Some(verdict),
            added: false,
            morphology: None,
            comment: None,
        }
    }

    #[test]
    fn a_decision_holds_until_a_verdict_changes() {
        let dir = tempfile::tempdir().unwrap();
        let of = SlideKey { slide: "s".into(), slide_digest: "d".into(), model_digest: "m".into() };
        let judge = |who: &str, key: &str, verdict| {
            VerdictLog::open(dir.path(), who).unwrap().record(&of, entry(key, verdict)).unwrap();
        };
        for (key, anna, bert) in [
            ("a", Verdict::Figure, Verdict::Atypical),
            ("b", Verdict::Figure, Verdict::Mimicker),
            ("c", Verdict::Removed, Verdict::Unsure),
        ] {
            judge("anna", key, anna);
            judge("bert", key, bert);
        }
        judge("anna", "alone", Verdict::Figure);
        let counts = |names: &str| {
            let all = together(dir.path(), names).unwrap().unwrap();
            let verdicts: BTreeMap<String, Option<Verdict>> =
                all.verdicts[&of].entries.iter().map(|(k, e)| (k.clone(), e.verdict)).collect();
            (verdicts, all.open[&of], all.decided[&of])
        };
        let (verdicts, open, decided) = counts("anna+bert");
        assert_eq!((open, decided), (2, 0));
        assert_eq!(
            verdicts.keys().collect::<Vec<_>>(),
            ["a", "alone"],
            "what is open is the network's"
        );

        let logs = VerdictLog::read_all(dir.path()).unwrap();
        let differ = disagreements(&logs, &of, &settled(dir.path()).unwrap());
        let keys: Vec<&str> = differ.iter().map(|d| d.key.as_str()).collect();
        assert_eq!(keys, ["b", "c"]);
        settle(dir.path(), "cleo", &of, &differ[0], Some(Verdict::Mimicker)).unwrap();
        let (verdicts, open, decided) = counts("anna+bert");
        assert_eq!((open, decided), (1, 1));
        assert_eq!(verdicts["b"], Some(Verdict::Mimicker));
        // The decision is not a log of a reviewer, and does not outlive the verdicts that it was about.
        assert_eq!(VerdictLog::read_all(dir.path()).unwrap().len(), 2);
        judge("bert", "b", Verdict::Unsure);
        assert_eq!(counts("anna+bert").1, 2);
        judge("bert", "b", Verdict::Mimicker);
        assert_eq!(counts("anna+bert").1, 1, "the same verdicts again, the same decision");
        let logs = VerdictLog::read_all(dir.path()).unwrap();
        let differ = disagreements(&logs, &of, &settled(dir.path()).unwrap());
        settle(dir.path(), "cleo", &of, &differ[0], None).unwrap();
        assert_eq!(counts("anna+bert").1, 2, "taken back");
        assert!(together(dir.path(), "anna+dora").unwrap().is_none());
        assert!(together(dir.path(), "anna+../x").is_err());
    }
}
