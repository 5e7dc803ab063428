//! Sign-off: that a reviewer has finished a slide's case, and whether all is still as it was signed.

use super::content::{SIGNATURES, SignedContent, SlideFile};
use super::logs::{append, lines, now};
use super::review::{ReviewError, SlideKey, VerdictLog};
use base::chain;
use base::digest::sha256;
use base::log::check_name;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Schema of a line about a finished case.
const SIGNED: &str = "mithras.signed/1";

/// That a reviewer has finished a case, or opened it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signed {
    /// `mithras.signed/1`.
    pub schema: String,
    /// Seconds since 1970, UTC.
    pub time: f64,
    /// Who signed.
    pub reviewer: String,
    /// On which slide.
    #[serde(flatten)]
    pub of: SlideKey,
    /// 1 for the first time, one more each time.
    pub version: usize,
    /// False where the case was opened again.
    pub signed: bool,
    /// Why it was opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// SHA-256 of the reviewer's log as it was; empty for an empty log.
    pub log_sha256: String,
    /// Lines of the reviewer's log.
    pub log_lines: usize,
    /// What else was signed; none in lines of earlier versions, which hold only the reviewer's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<SignedContent>,
    /// Version of the program.
    pub program: String,
}

/// The current signature of a slide.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// Its line in the log.
    pub line: Signed,
    /// Files that are not as they were signed, by name; empty where all are.
    pub changed: Vec<String>,
}

/// Every time that a slide's case was finished or opened again, first to last, whatever weights found its candidates.
///
/// # Errors
/// [`ReviewError`].
fn listed(folder: &Path, slide: SlideFile<'_>) -> Result<Vec<Signed>, ReviewError> {
    let mut all = lines::<Signed>(&folder.join(SIGNATURES))?;
    all.retain(|s| s.of.slide == slide.name && s.of.slide_digest == slide.digest);
    Ok(all)
}

/// What is known of a slide's signatures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlideSignatures {
    /// Every time that its case was finished or opened again, first to last.
    pub all: Vec<Signed>,
    /// Files that are not as they were signed, by name.
    pub changed: Vec<String>,
    /// The slide was signed with candidates of other weights.
    pub other_weights: bool,
    /// Why this cannot be compared: a damaged log of a reviewer, by its path.
    pub notes: Vec<String>,
}

/// A slide's signatures, compared with what is on disk. `results` is the folder of the slide in its run.
///
/// # Errors
/// [`ReviewError`]; [`ReviewError::Signed`] where the last one was given to other lines than the log begins with now.
pub fn signatures(
    folder: &Path,
    results: Option<&Path>,
    of: &SlideKey,
) -> Result<SlideSignatures, ReviewError> {
    let slide = SlideFile { name: &of.slide, digest: &of.slide_digest };
    let all = listed(folder, slide)?;
    let Some(last) = all.last() else { return Ok(SlideSignatures::default()) };
    let other_weights = last.signed && last.of.model_digest != of.model_digest;
    let compared = check(folder, last).and_then(|()| match last.signed {
        true => changes(folder, results, last),
        false => Ok(Vec::new()),
    });
    let (changed, notes) = match compared {
        Ok(changed) => (changed, Vec::new()),
        // Damage in one reviewer's log is not to hide from the others what was signed.
        Err(e @ ReviewError::Chain(_)) => (Vec::new(), vec![e.to_string()]),
        Err(e) => return Err(e),
    };
    Ok(SlideSignatures { all, changed, other_weights, notes })
}

/// Compares the lines that were signed with those that the signer's log begins with.
fn check(folder: &Path, signed: &Signed) -> Result<(), ReviewError> {
    let path = VerdictLog::path(folder, &signed.reviewer)?;
    let text = chain::read(&path)?;
    let lines: String = text.split_inclusive('\n').take(signed.log_lines).collect();
    if signed.log_sha256 == digest_to_sign(&lines) {
        return Ok(());
    }
    let (reviewer, version) = (signed.reviewer.clone(), signed.version);
    Err(ReviewError::Signed { path, reviewer, version, slide: signed.of.slide.clone() })
}

/// The digest of a log as it is signed; empty for an empty one.
fn digest_to_sign(text: &str) -> String {
    if text.is_empty() { String::new() } else { sha256(text) }
}

/// The files that are not as they were signed, by name. `results` is the folder of the slide in its run.
///
/// # Errors
/// [`ReviewError`].
fn changes(
    folder: &Path,
    results: Option<&Path>,
    signed: &Signed,
) -> Result<Vec<String>, ReviewError> {
    let Some(content) = &signed.content else { return Ok(Vec::new()) };
    let slide = SlideFile { name: &signed.of.slide, digest: &signed.of.slide_digest };
    Ok(content.differences(&SignedContent::read(folder, results, slide)?, slide.name))
}

/// The current signature of a slide of this name and content, whatever weights found its candidates.
///
/// # Errors
/// [`ReviewError`].
pub fn signed_slide(
    folder: &Path,
    results: Option<&Path>,
    slide: SlideFile<'_>,
) -> Result<Option<Signature>, ReviewError> {
    let Some(line) = listed(folder, slide)?.pop().filter(|s| s.signed) else { return Ok(None) };
    check(folder, &line)?;
    let changed = changes(folder, results, &line)?;
    Ok(Some(Signature { line, changed }))
}

/// The current signature; none where a slide's case was never finished or is open again.
///
/// # Errors
/// [`ReviewError`]; [`ReviewError::Signed`] where it was given to other lines than the log begins with now.
pub fn signed(folder: &Path, of: &SlideKey) -> Result<Option<Signed>, ReviewError> {
    let slide = SlideFile { name: &of.slide, digest: &of.slide_digest };
    Ok(checked(folder, slide)?.pop().filter(|s| s.signed))
}

/// As [`listed`], where the last one was given to the lines that the signer's log begins with.
fn checked(folder: &Path, slide: SlideFile<'_>) -> Result<Vec<Signed>, ReviewError> {
    let all = listed(folder, slide)?;
    all.last().map_or(Ok(()), |last| check(folder, last))?;
    Ok(all)
}

/// Finishes a slide's case, or with a reason opens it again. `results` is the folder of the slide in its run.
///
/// # Errors
/// [`ReviewError`].
pub fn sign(
    folder: &Path,
    results: Option<&Path>,
    reviewer: &str,
    of: &SlideKey,
    reopened: Option<&str>,
) -> Result<Signed, ReviewError> {
    check_name(reviewer).map_err(ReviewError::Name)?;
    let slide = SlideFile { name: &of.slide, digest: &of.slide_digest };
    let before = checked(folder, slide)?;
    let text = chain::read(&folder.join(format!("{reviewer}.jsonl")))?;
    let content = match reopened {
        None => Some(SignedContent::read(folder, results, slide)?),
        Some(_) => None,
    };
    let line = Signed {
        schema: SIGNED.into(),
        time: now(),
        reviewer: reviewer.to_owned(),
        of: of.clone(),
        version: before.last().map_or(0, |s| s.version) + usize::from(reopened.is_none()),
        signed: reopened.is_none(),
        reason: reopened.map(str::to_owned),
        log_sha256: digest_to_sign(&text),
        log_lines: text.lines().count(),
        content,
        program: mithras::program(),
    };
    append(&folder.join(SIGNATURES), &line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::decisions::{Placement, place, signed_slide};
    use crate::view::{Entry, Verdict};
    use mitosis::hotspots::HotspotRule;

    #[test]
    fn a_signature_covers_results_logs_and_regions() {
        let dir = tempfile::tempdir().unwrap();
        let (reviews, results) = (dir.path().join("reviews"), dir.path().join("s"));
        std::fs::create_dir_all(&results).unwrap();
        for file in ["counts.json", "detections.csv"] {
            std::fs::write(results.join(file), file).unwrap();
        }
        let of = SlideKey { slide: "s".into(), slide_digest: "d".into(), model_digest: "m".into() };
        let other = SlideKey { slide: "t".into(), ..of.clone() };
        let judge = |who: &str, of: &SlideKey| {
            let entry = Entry {
                key: "1.00,2.00".into(),
                x: 1.0,
                y: 2.0,
                verdict: Some(Verdict::Figure),
                added: false,
                morphology: None,
                comment: None,
            };
            VerdictLog::open(&reviews, who).unwrap().record(of, entry).unwrap();
        };
        let hotspot = |of: &SlideKey| {
            let (preset, rule) = ("paper".to_owned(), HotspotRule::PAPER);
            let placed = Placement { preset, rule, centres_px: vec![[1.0, 2.0]], mpp: None };
            place(&reviews, "anna", of, placed).unwrap();
        };
        judge("anna", &of);
        judge("bert", &of);
        hotspot(&of);
        sign(&reviews, Some(&results), "anna", &of, None).unwrap();
        let slide = SlideFile { name: "s", digest: "d" };
        let changed = || signed_slide(&reviews, Some(&results), slide).unwrap().unwrap().changed;
        assert_eq!(changed(), Vec::<String>::new());
        // What is written about another slide is not covered.
        judge("anna", &other);
        hotspot(&other);
        assert_eq!(changed(), Vec::<String>::new());
        let drawn = crate::view::decisions::drawn_file(&reviews, "s");
        std::fs::create_dir_all(drawn.parent().unwrap()).unwrap();
        std::fs::write(&drawn, "{}").unwrap();
        assert_eq!(changed(), ["regions/s.geojson"]);
        std::fs::remove_file(&drawn).unwrap();
        judge("bert", &of);
        assert_eq!(changed(), ["bert.jsonl"]);
        // A log whose last lines are cut is a chain without a fault, but not the one that was signed.
        let log = reviews.join("hotspots.log");
        std::fs::write(&log, "").unwrap();
        assert_eq!(changed(), ["bert.jsonl", "hotspots.log"]);
        std::fs::write(results.join("counts.json"), "other").unwrap();
        assert_eq!(changed(), ["counts.json", "bert.jsonl", "hotspots.log"]);
        // A line of an earlier version holds the signer's log alone.
        let text = std::fs::read_to_string(reviews.join(SIGNATURES)).unwrap();
        let mut line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        line.as_object_mut().unwrap().remove("content").unwrap();
        std::fs::write(reviews.join(SIGNATURES), format!("{line}\n")).unwrap();
        assert_eq!(changed(), Vec::<String>::new());
    }
}
