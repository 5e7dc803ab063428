//! What a reviewer decides about a slide as a whole: the hotspot, the regions, and that a case is finished.
//!
//! Stored next to the logs of verdicts: `hotspots.log` and `signed.log`, appended to and chained, and
//! `regions/SLIDE.geojson`.

use super::review::{ReviewError, SlideKey, VerdictLog};
use base::chain::{self, Chained};
use base::digest::sha256;
use base::file::{self, WriteError};
use base::log::check_name;
use mitosis::hotspots::HotspotRule;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Schema of a line about a hotspot.
const HOTSPOT: &str = "mithras.hotspot/1";
/// Schema of a line about a finished case.
const SIGNED: &str = "mithras.signed/1";

/// A hotspot that a reviewer placed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedHotspot {
    /// `mithras.hotspot/1`.
    pub schema: String,
    /// Seconds since 1970, UTC.
    pub time: f64,
    /// Who placed it.
    pub reviewer: String,
    /// On which slide.
    #[serde(flatten)]
    pub of: SlideKey,
    /// Name of the rule: `paper`, `breast`, `own` ...
    pub preset: String,
    /// The rule.
    #[serde(flatten)]
    pub rule: HotspotRule,
    /// Its centre, or those of its fields, level-0 px; empty where the reviewer took it back.
    pub centres_px: Vec<[f64; 2]>,
}

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
    /// Lines of it.
    pub log_lines: usize,
    /// Version of the program.
    pub program: String,
}

/// Seconds since 1970 to a millisecond.
pub(super) fn now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |d| (d.as_secs_f64() * 1000.0).round() / 1000.0)
}

pub(super) fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, ReviewError> {
    let text = chain::read(path)?;
    let parse = |(i, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| ReviewError::Line {
            path: path.to_owned(),
            line: i + 1,
            reason: e.to_string(),
        })
    };
    text.lines().enumerate().map(parse).collect()
}

pub(super) fn append(path: &Path, line: &impl Serialize) -> Result<(), ReviewError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|source| ReviewError::Folder { path: folder.to_owned(), source })?;
    }
    Ok(Chained::open(path)?.0.append(line)?)
}

/// The current hotspot of each slide: the last that anybody placed, or that `reviewer` placed.
///
/// # Errors
/// [`ReviewError`].
pub fn hotspots(
    folder: &Path,
    reviewer: Option<&str>,
) -> Result<BTreeMap<SlideKey, PlacedHotspot>, ReviewError> {
    let mut current = BTreeMap::new();
    for line in lines::<PlacedHotspot>(&folder.join("hotspots.log"))? {
        if reviewer.is_none_or(|r| r == line.reviewer) {
            current.insert(line.of.clone(), line);
        }
    }
    current.retain(|_, h| !h.centres_px.is_empty());
    Ok(current)
}

/// Keeps a hotspot; on disk before this returns.
///
/// # Errors
/// [`ReviewError`].
pub fn place(
    folder: &Path,
    reviewer: &str,
    of: &SlideKey,
    preset: &str,
    rule: HotspotRule,
    centres_px: Vec<[f64; 2]>,
) -> Result<PlacedHotspot, ReviewError> {
    check_name(reviewer).map_err(ReviewError::Name)?;
    let line = PlacedHotspot {
        schema: HOTSPOT.into(),
        time: now(),
        reviewer: reviewer.to_owned(),
        of: of.clone(),
        preset: preset.to_owned(),
        rule,
        centres_px,
    };
    append(&folder.join("hotspots.log"), &line)?;
    Ok(line)
}

/// Every time that a slide's case was finished or opened again, first to last.
///
/// # Errors
/// [`ReviewError`]; [`ReviewError::Signed`] where the last one was given to other lines than the log begins with now.
pub fn signatures(folder: &Path, of: &SlideKey) -> Result<Vec<Signed>, ReviewError> {
    let mut all = lines::<Signed>(&folder.join("signed.log"))?;
    all.retain(|s| s.of == *of);
    all.last().map_or(Ok(()), |last| check(folder, last))?;
    Ok(all)
}

/// Compares the lines that were signed with those that the signer's log begins with.
fn check(folder: &Path, signed: &Signed) -> Result<(), ReviewError> {
    let path = VerdictLog::path(folder, &signed.reviewer)?;
    let text = chain::read(&path)?;
    let lines: String = text.split_inclusive('\n').take(signed.log_lines).collect();
    if signed.log_sha256 == digest_of(&lines) {
        return Ok(());
    }
    let (reviewer, version) = (signed.reviewer.clone(), signed.version);
    Err(ReviewError::Signed { path, reviewer, version, slide: signed.of.slide.clone() })
}

/// The digest of a log as it is signed; empty for an empty one.
fn digest_of(text: &str) -> String {
    if text.is_empty() { String::new() } else { sha256(text) }
}

/// The current signature of a slide of this name and content, whatever weights found its candidates.
///
/// # Errors
/// [`ReviewError`].
pub fn signed_slide(
    folder: &Path,
    slide: &str,
    digest: &str,
) -> Result<Option<Signed>, ReviewError> {
    let mut all = lines::<Signed>(&folder.join("signed.log"))?;
    all.retain(|s| s.of.slide == slide && s.of.slide_digest == digest);
    let last = all.pop().filter(|s| s.signed);
    last.as_ref().map_or(Ok(()), |last| check(folder, last))?;
    Ok(last)
}

/// The current signature; none where a slide's case was never finished or is open again.
///
/// # Errors
/// [`ReviewError`].
pub fn signed(folder: &Path, of: &SlideKey) -> Result<Option<Signed>, ReviewError> {
    Ok(signatures(folder, of)?.pop().filter(|s| s.signed))
}

/// Finishes a slide's case, or with a reason opens it again.
///
/// # Errors
/// [`ReviewError`].
pub fn sign(
    folder: &Path,
    reviewer: &str,
    of: &SlideKey,
    reopened: Option<&str>,
) -> Result<Signed, ReviewError> {
    check_name(reviewer).map_err(ReviewError::Name)?;
    let before = signatures(folder, of)?;
    let text = chain::read(&folder.join(format!("{reviewer}.jsonl")))?;
    let line = Signed {
        schema: SIGNED.into(),
        time: now(),
        reviewer: reviewer.to_owned(),
        of: of.clone(),
        version: before.last().map_or(0, |s| s.version) + usize::from(reopened.is_none()),
        signed: reopened.is_none(),
        reason: reopened.map(str::to_owned),
        log_sha256: digest_of(&text),
        log_lines: text.lines().count(),
        program: mithras::program(),
    };
    append(&folder.join("signed.log"), &line)?;
    Ok(line)
}

/// Regions as the page draws them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawnRegion {
    /// Its name; may be empty.
    pub name: String,
    /// Its class; may be empty.
    pub class: String,
    /// Whether it is to be left out.
    pub exclude: bool,
    /// Its corners, level-0 px; the first is not repeated.
    pub ring: Vec<[f64; 2]>,
}

/// Class of regions that are drawn to be left out.
pub const EXCLUDE: &str = "Exclude";

#[derive(Serialize, Deserialize)]
struct DrawnFile {
    r#type: String,
    mithras: Drawn,
    features: Vec<Feature>,
}

/// Who drew the regions of which slide, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// Digest of the slide's file.
    pub slide_digest: String,
    /// Who drew them.
    pub reviewer: String,
    /// Seconds since 1970, UTC.
    pub time: f64,
}

#[derive(Serialize, Deserialize)]
struct Feature {
    r#type: String,
    geometry: Geometry,
    properties: Properties,
}

#[derive(Serialize, Deserialize)]
struct Geometry {
    r#type: String,
    coordinates: Vec<Vec<[f64; 2]>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    object_type: String,
    #[serde(default)]
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    classification: Option<Class>,
}

#[derive(Serialize, Deserialize)]
struct Class {
    name: String,
}

/// The file of a slide's drawn regions.
#[must_use]
pub fn drawn_file(folder: &Path, slide: &str) -> PathBuf {
    folder.join("regions").join(format!("{slide}.geojson"))
}

/// Regions drawn on a slide, with who drew them; none where nobody did.
///
/// # Errors
/// [`ReviewError::Line`] for a file that is damaged.
pub fn drawn(
    folder: &Path,
    slide: &str,
    offset: [i64; 2],
) -> Result<Option<(Drawn, Vec<DrawnRegion>)>, ReviewError> {
    let path = drawn_file(folder, slide);
    if !path.is_file() {
        return Ok(None);
    }
    let file: DrawnFile = base::json::read(&path).map_err(|e| ReviewError::Line {
        path: path.clone(),
        line: 1,
        reason: e.to_string(),
    })?;
    let one = |f: Feature| {
        let class = f.properties.classification.map_or_else(String::new, |c| c.name);
        let exclude = class == EXCLUDE;
        let mut ring: Vec<[f64; 2]> = f.geometry.coordinates.into_iter().next().unwrap_or_default();
        ring.pop();
        for p in &mut ring {
            *p = [p[0] + offset[0] as f64, p[1] + offset[1] as f64];
        }
        DrawnRegion {
            name: f.properties.name,
            class: if exclude { String::new() } else { class },
            exclude,
            ring,
        }
    };
    Ok(Some((file.mithras, file.features.into_iter().map(one).collect())))
}

/// Writes the regions of a slide, in place of earlier ones, as detection and QuPath read them.
///
/// # Errors
/// [`WriteError`].
pub fn draw(
    folder: &Path,
    slide: &str,
    by: Drawn,
    offset: [i64; 2],
    regions: &[DrawnRegion],
) -> Result<(), WriteError> {
    let path = drawn_file(folder, slide);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|source| WriteError { path: folder.to_owned(), source })?;
    }
    let back = |p: &[f64; 2]| [p[0] - offset[0] as f64, p[1] - offset[1] as f64];
    let one = |r: &DrawnRegion| {
        let class = if r.exclude { EXCLUDE } else { r.class.as_str() };
        Feature {
            r#type: "Feature".into(),
            geometry: Geometry {
                r#type: "Polygon".into(),
                coordinates: vec![r.ring.iter().chain(r.ring.first()).map(back).collect()],
            },
            properties: Properties {
                object_type: "annotation".into(),
                name: r.name.clone(),
                classification: (!class.is_empty()).then(|| Class { name: class.to_owned() }),
            },
        }
    };
    let file = DrawnFile {
        r#type: "FeatureCollection".into(),
        mithras: by,
        features: regions.iter().map(one).collect(),
    };
    file::write_with(&path, &base::json::pretty(&file), file::Access::Private)
}
