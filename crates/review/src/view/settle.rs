//! Places on which reviewers differ, and what was decided about them.
//!
//! A decision is in `settled.log` next to the logs of reviewers. It names the verdicts that it was made about, and
//! holds as long as these are those reviewers' verdicts: changing one opens the question again, what others decide does
//! not.

use super::content::{SETTLED as LOG, SlideFile};
use super::logs::{append, lines, now};
use super::places::{Joined, Nearby, join};
use super::review::{Entry, ReviewError, SlideKey, Verdict, Verdicts, entries_on};
use base::log::check_name;
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

/// A place on a slide, whatever model found its candidates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceKey {
    /// Name of the slide.
    pub slide: String,
    /// Digest of its file.
    pub slide_digest: String,
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
        let SlideKey { slide, slide_digest, .. } = line.of.clone();
        all.insert(PlaceKey { slide, slide_digest, key: line.key.clone() }, line);
    }
    all.retain(|_, s| s.verdict.is_some());
    Ok(all)
}

/// The decisions about a slide that hold, by the key of the place: those whose verdicts are still the reviewers'.
pub(super) fn holding(
    settled: &BTreeMap<PlaceKey, Settled>,
    slide: SlideFile<'_>,
    reviewers: &Joined,
) -> BTreeMap<String, Settled> {
    let own = settled
        .iter()
        .filter(|(place, _)| place.slide == slide.name && place.slide_digest == slide.digest);
    let mut own: Vec<&Settled> = own.map(|(_, s)| s).collect();
    own.sort_by(|a, b| a.time.total_cmp(&b.time));
    let mut all = BTreeMap::new();
    for s in own {
        let key = reviewers.keys.get(&s.key).unwrap_or(&s.key);
        let current = |name: &str| reviewers.by.get(name)?.get(key)?.verdict;
        if s.verdicts.iter().all(|(name, verdict)| current(name) == Some(*verdict)) {
            all.insert(key.clone(), s.clone());
        }
    }
    all
}

/// The places on which reviewers differ in whether they count, by key, with the decisions that hold.
pub(super) fn differing(
    reviewers: &Joined,
    decisions: &BTreeMap<String, Settled>,
) -> Vec<Disagreement> {
    let mut all = Vec::new();
    for (key, entries) in reviewers.places() {
        let verdicts: BTreeMap<String, Verdict> =
            entries.iter().filter_map(|(name, e)| Some(((*name).to_owned(), e.verdict?))).collect();
        let counted: BTreeSet<Option<bool>> = verdicts.values().map(|v| v.counts()).collect();
        let Some(Entry { x, y, added, .. }) = entries.into_values().next() else { continue };
        if counted.len() > 1 {
            let (key, settled) = (key.to_owned(), decisions.get(key).cloned());
            all.push(Disagreement { key, x: *x, y: *y, added: *added, verdicts, settled });
        }
    }
    all
}

/// The places of a slide's file on which two or more of these logs differ in whether they count, by key, whichever
/// models found its candidates. Added figures near each other or near one of `candidates` are one place.
pub(super) fn disagreements(
    logs: &BTreeMap<String, Verdicts>,
    of: &SlideKey,
    settled: &BTreeMap<PlaceKey, Settled>,
    candidates: Option<&Nearby>,
) -> Vec<Disagreement> {
    let slide = SlideFile { name: &of.slide, digest: &of.slide_digest };
    let own = |log| {
        entries_on(log, slide.name, slide.digest).into_iter().map(|(_, e)| e.clone()).collect()
    };
    let logs = logs.iter().map(|(name, log)| (name.clone(), own(log))).collect();
    let joined = join(&logs, candidates);
    differing(&joined, &holding(settled, slide, &joined))
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
