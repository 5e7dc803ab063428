//! What a signature covers: digests of a slide's results, of its regions, and of all that was written about it.

use super::drawn::drawn_file;
use super::review::ReviewError;
use base::chain;
use base::digest::{sha256, sha256_file};
use base::log::LogError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

/// The log of hotspots, which all reviewers share.
pub(super) const HOTSPOTS: &str = "hotspots.log";
/// The log of decisions, which all reviewers share.
pub(super) const SETTLED: &str = "settled.log";
/// The log of signatures, which a signature does not cover.
pub(super) const SIGNATURES: &str = "signed.log";
/// Suffixes of logs.
const LOGS: [&str; 2] = ["jsonl", "log"];

/// The slide that a line is about, whatever weights found its candidates.
#[derive(Clone, Copy, Debug)]
pub struct SlideFile<'a> {
    /// Its name in the run.
    pub name: &'a str,
    /// Digest of its file.
    pub digest: &'a str,
}

/// The lines of a log about one slide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedLines {
    /// SHA-256 of them.
    pub sha256: String,
    /// How many.
    pub lines: usize,
}

/// SHA-256 of the files of a slide's results; empty where a file does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultDigests {
    /// Of `counts.json`.
    pub counts: String,
    /// Of `detections.csv`.
    pub detections: String,
}

impl ResultDigests {
    /// As they are on disk; `results` is the folder of the slide in its run, if it has one.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub fn read(results: Option<&Path>) -> Result<Self, ReviewError> {
        let Some(folder) = results else { return Ok(Self::default()) };
        let (counts, detections) = (folder.join("counts.json"), folder.join("detections.csv"));
        Ok(Self { counts: digest(&counts)?, detections: digest(&detections)? })
    }
}

/// What a signature covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedContent {
    /// SHA-256 of `counts.json`; empty without a run.
    pub counts_sha256: String,
    /// SHA-256 of `detections.csv`; empty without a run.
    pub detections_sha256: String,
    /// SHA-256 of the file of drawn regions; empty where nobody drew any.
    pub regions_sha256: String,
    /// The lines about the slide in every log that has any, by the name of its file: verdicts, hotspots, decisions,
    /// regions.
    pub logs: BTreeMap<String, SignedLines>,
}

impl SignedContent {
    /// As it is on disk. `reviews` is the folder of the logs, `results` that of the slide in its run.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub fn read(
        reviews: &Path,
        results: Option<&Path>,
        slide: SlideFile<'_>,
    ) -> Result<Self, ReviewError> {
        let ResultDigests { counts, detections } = ResultDigests::read(results)?;
        Ok(Self {
            counts_sha256: counts,
            detections_sha256: detections,
            regions_sha256: digest(&drawn_file(reviews, slide.name))?,
            logs: logs(reviews, slide)?,
        })
    }

    /// The files that differ, by name.
    #[must_use]
    pub fn differences(&self, other: &Self, slide: &str) -> Vec<String> {
        let files = [
            (&self.counts_sha256, &other.counts_sha256, "counts.json".to_owned()),
            (&self.detections_sha256, &other.detections_sha256, "detections.csv".to_owned()),
            (&self.regions_sha256, &other.regions_sha256, format!("regions/{slide}.geojson")),
        ];
        let files = files.into_iter().filter(|(a, b, _)| a != b).map(|(.., name)| name);
        let names: BTreeSet<&String> = self.logs.keys().chain(other.logs.keys()).collect();
        let logs = names.into_iter().filter(|n| self.logs.get(*n) != other.logs.get(*n)).cloned();
        files.chain(logs).collect()
    }
}

/// SHA-256 of a file; empty where it does not exist.
fn digest(path: &Path) -> Result<String, ReviewError> {
    match sha256_file(path) {
        Ok((_, digest)) => Ok(digest),
        Err(e) if e.source.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(LogError::Io { path: e.path, source: e.source }.into()),
    }
}

/// The lines about a slide in the logs of a folder.
fn logs(
    reviews: &Path,
    slide: SlideFile<'_>,
) -> Result<BTreeMap<String, SignedLines>, ReviewError> {
    let texts = LogTexts::read(reviews, |name| name != SIGNATURES)?;
    let lines = texts.0.iter().map(|(name, text)| (name.clone(), about(text, slide, &[])));
    let some = lines.filter(|(_, own)| !own.is_empty());
    let signed = some.map(|(name, own)| {
        (name, SignedLines { sha256: sha256(own.join("\n")), lines: own.len() })
    });
    Ok(signed.collect())
}

/// The lines of a log about a slide, if they name a reviewer of one of `reviewers`, where there are any.
fn about<'a>(text: &'a str, slide: SlideFile<'_>, reviewers: &[&str]) -> Vec<&'a str> {
    /// The part of a line that names its slide.
    #[derive(Deserialize)]
    struct About {
        slide: String,
        slide_digest: String,
        #[serde(default)]
        reviewer: String,
    }
    let own = |line: &&str| {
        serde_json::from_str::<About>(line).is_ok_and(|a| {
            let by = reviewers.is_empty() || reviewers.contains(&a.reviewer.as_str());
            by && a.slide == slide.name && a.slide_digest == slide.digest
        })
    };
    text.lines().filter(own).collect()
}

/// Logs of a folder by name, as they are at one time.
#[derive(Clone, Debug, Default)]
pub struct LogTexts(BTreeMap<String, String>);

impl LogTexts {
    /// Reads those of a folder that are wanted by their names; none where it does not exist.
    ///
    /// # Errors
    /// [`ReviewError`].
    pub fn read(reviews: &Path, wanted: impl Fn(&str) -> bool) -> Result<Self, ReviewError> {
        let listed = match std::fs::read_dir(reviews) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            other => {
                other.map_err(|source| ReviewError::Folder { path: reviews.to_owned(), source })?
            }
        };
        let mut all = BTreeMap::new();
        for path in listed.filter_map(|e| Some(e.ok()?.path())) {
            let is_log = path.extension().is_some_and(|e| LOGS.iter().any(|l| e == *l));
            let Some(name) = path.file_name().and_then(|n| n.to_str()) else { continue };
            // `._anna.jsonl` is what macOS writes next to a log.
            if is_log && !name.starts_with('.') && wanted(name) {
                all.insert(name.to_owned(), chain::read(&path)?);
            }
        }
        Ok(Self(all))
    }

    /// SHA-256 of the lines about a slide in each of these logs, whether or not there are any. Of the hotspots only
    /// those of the reviewers whose logs are among them, if any are.
    #[must_use]
    pub fn digests<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
        slide: SlideFile<'_>,
    ) -> BTreeMap<String, String> {
        let names: Vec<&str> = names.into_iter().collect();
        let reviewers: Vec<&str> = names.iter().filter_map(|n| n.strip_suffix(".jsonl")).collect();
        let digest = |name: &&str| {
            let text = self.0.get(*name).map_or("", String::as_str);
            let whose = if *name == HOTSPOTS { &reviewers[..] } else { &[] };
            ((*name).to_owned(), sha256(about(text, slide, whose).join("\n")))
        };
        names.iter().map(digest).collect()
    }
}
