//! A recount's file in a slide's folder, next to the network's own numbers.

use super::error::ReportError;
use base::digest::{sha256, sha256_file};
use base::json::JsonError;
use mitosis::hotspots::HotspotRule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind::NotFound;
use std::path::Path;

/// The schema written and read.
const SCHEMA: &str = "mithras.recount/1";
const FILE: &str = "recount.json";

/// A hotspot that a reviewer placed, with its count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedCount {
    /// The reviewer who placed it.
    pub reviewer: String,
    /// When, seconds since 1970.
    pub time: f64,
    /// Name of the rule.
    pub preset: String,
    /// Shape, number and area of its fields.
    #[serde(flatten)]
    pub rule: HotspotRule,
    /// The part of it on the slide, mm2, what fields share counted once; all of it in files of earlier versions.
    pub area_mm2: f64,
    /// Its centre, or those of its fields, level-0 px.
    pub centres_px: Vec<[f64; 2]>,
    /// Reviewed figures in it.
    pub figures: usize,
    /// The network's figures in it.
    pub model_figures: usize,
}

impl PlacedCount {
    /// Its area to the third digit, mm2.
    #[must_use]
    pub fn mm2(&self) -> f64 {
        (self.area_mm2 * 1e3).round() / 1e3
    }
}

/// A slide's numbers with a reviewer's verdicts on top.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reviewed {
    /// The reviewer of the verdicts.
    pub reviewer: String,
    /// Figures after the verdicts.
    pub figures: usize,
    /// Figures in the densest 2 mm2.
    pub hotspot_count: usize,
    /// Its centre, level-0 px; none without figures.
    pub hotspot_px: Option<[f64; 2]>,
    /// The part of it on the slide, mm2; none in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hotspot_mm2: Option<f64>,
    /// Figures per 20 mm2 of analysed tissue; none without any.
    pub density_per_20_mm2: Option<f64>,
    /// The scheme that both hotspots were scored by, if one was asked for.
    pub scheme: Option<String>,
    /// What it gives, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gives: Option<String>,
    /// What it gives for the network's hotspot; earlier files call it a grade.
    #[serde(alias = "model_grade")]
    pub model_mitotic_score: Option<String>,
    /// What it gives for this one.
    #[serde(alias = "grade")]
    pub mitotic_score: Option<String>,
    /// The hotspot that the reviewer placed, where it was asked for: the scores are of it, and it counts before the
    /// densest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<PlacedCount>,
    /// SHA-256 of the lines about the slide that the numbers depend on, by the name of their log in the folder
    /// `reviews` of the run; a log from elsewhere is not among them. None in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<BTreeMap<String, String>>,
}

/// Content of the file.
#[derive(Serialize, Deserialize)]
struct Kept {
    schema: String,
    /// SHA-256 of the recounted `counts.json`: the recount is not valid for another one.
    counts_sha256: String,
    reviewed: Reviewed,
    /// SHA-256 of `reviewed`; none in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reviewed_sha256: Option<String>,
}

fn digest_reviewed(reviewed: &Reviewed) -> Option<String> {
    Some(sha256(serde_json::to_vec(reviewed).ok()?))
}

fn digest_of_counts(folder: &Path) -> Result<String, ReportError> {
    Ok(sha256_file(&folder.join("counts.json"))?.1)
}

impl Reviewed {
    /// What the scheme gives, in its own words.
    #[must_use]
    pub fn gives(&self) -> &str {
        self.gives.as_deref().unwrap_or("mitotic score")
    }

    /// Figures in the hotspot that counts: the placed one, else the densest 2 mm2.
    #[must_use]
    pub fn main_count(&self) -> usize {
        self.placed.as_ref().map_or(self.hotspot_count, |p| p.figures)
    }

    /// The same read back from its text, in which the last digit of a number may be another.
    #[must_use]
    pub fn read_back(&self) -> Option<Self> {
        serde_json::from_slice(&serde_json::to_vec(self).ok()?).ok()
    }

    /// Of a slide's folder; none where nothing was recounted, or another count than is there now.
    ///
    /// # Errors
    /// A file that is damaged, changed by hand or of another version.
    pub fn read(folder: &Path) -> Result<Option<Self>, ReportError> {
        let path = folder.join(FILE);
        let kept: Kept = match base::json::read_schema(&path, SCHEMA) {
            Ok(kept) => kept,
            Err(JsonError::Read(e)) if e.source.kind() == NotFound => return Ok(None),
            Err(JsonError::Read(e)) => return Err(e.into()),
            Err(e) => return Err(ReportError::Read { path, reason: e.to_string() }),
        };
        let (written, now) = (&kept.reviewed_sha256, digest_reviewed(&kept.reviewed));
        if let Some((written, now)) = written.as_ref().zip(now).filter(|(a, b)| *a != b) {
            let (path, written) = (path, written.clone());
            return Err(ReportError::Recount { path, written, now });
        }
        Ok((digest_of_counts(folder)? == kept.counts_sha256).then_some(kept.reviewed))
    }

    /// Leaves it in the slide's folder, in place of an earlier one.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(self, folder: &Path) -> Result<(), ReportError> {
        let counts_sha256 = digest_of_counts(folder)?;
        let reviewed_sha256 = self.read_back().as_ref().and_then(digest_reviewed);
        let kept = Kept { schema: SCHEMA.into(), counts_sha256, reviewed: self, reviewed_sha256 };
        let (path, bytes) = (folder.join(FILE), base::json::pretty(&kept));
        Ok(base::file::write_with(&path, &bytes, base::file::Access::Private)?)
    }

    /// Takes it out of the slide's folder.
    ///
    /// # Errors
    /// The file system's.
    pub fn forget(folder: &Path) -> Result<(), ReportError> {
        let path = folder.join(FILE);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != NotFound => {
                Err(ReportError::Read { path, reason: e.to_string() })
            }
            _ => Ok(()),
        }
    }
}
