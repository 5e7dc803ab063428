//! What a reviewer decides about a slide as a whole: the hotspot, the regions, and that a case is finished.
//!
//! Stored next to the logs of verdicts: `hotspots.log`, `regions.log` and `signed.log`, appended to and chained, and
//! `regions/SLIDE.geojson`, which is made of the log.

use super::content::HOTSPOTS;
use super::logs::{append, lines, now};
use super::review::{ReviewError, SlideKey};
use super::settle::TOGETHER;
use base::log::check_name;
use mitosis::hotspots::HotspotRule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use super::content::{LogTexts, ResultDigests, SignedContent, SignedLines, SlideFile};
pub use super::drawn::{Drawn, DrawnRegion, EXCLUDE, draw, drawn, drawn_file};
pub use super::signature::{
    Signature, Signed, SlideSignatures, sign, signatures, signed, signed_slide,
};

/// Schema of a line about a hotspot.
const HOTSPOT: &str = "mithras.hotspot/1";

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
    /// um/px at which it was seen, across and down; none in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpp: Option<[f64; 2]>,
}

/// Where a reviewer places a hotspot.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// Name of the rule.
    pub preset: String,
    /// The rule.
    pub rule: HotspotRule,
    /// Its centre, or those of its fields, level-0 px; empty to take it back.
    pub centres_px: Vec<[f64; 2]>,
    /// um/px of the slide, across and down, where that is known.
    pub mpp: Option<[f64; 2]>,
}

/// The log of hotspots in a folder of reviews.
#[must_use]
pub fn hotspots_file(folder: &Path) -> PathBuf {
    folder.join(HOTSPOTS)
}

/// The current hotspot of each slide: the last that anybody placed.
///
/// # Errors
/// [`ReviewError`].
pub fn hotspots(folder: &Path) -> Result<BTreeMap<SlideKey, PlacedHotspot>, ReviewError> {
    let mut current = BTreeMap::new();
    for line in lines::<PlacedHotspot>(&hotspots_file(folder))? {
        current.insert(line.of.clone(), line);
    }
    current.retain(|_, h| !h.centres_px.is_empty());
    Ok(current)
}

/// The hotspot of a slide, whatever weights found its candidates: the last that anybody placed, or that one of
/// `reviewers` (`anna`, `anna+bert`) placed; none where it was taken back.
///
/// # Errors
/// [`ReviewError`].
pub fn reviewers_hotspot(
    folder: &Path,
    reviewers: Option<&str>,
    slide: SlideFile<'_>,
) -> Result<Option<PlacedHotspot>, ReviewError> {
    last_placed(folder, reviewers, |of| of.slide == slide.name && of.slide_digest == slide.digest)
}

/// The same on another file of this name, whose places are not those of this one.
///
/// # Errors
/// [`ReviewError`].
pub fn hotspot_on_another_file(
    folder: &Path,
    reviewers: Option<&str>,
    slide: SlideFile<'_>,
) -> Result<Option<PlacedHotspot>, ReviewError> {
    last_placed(folder, reviewers, |of| of.slide == slide.name && of.slide_digest != slide.digest)
}

fn last_placed(
    folder: &Path,
    reviewers: Option<&str>,
    wanted: impl Fn(&SlideKey) -> bool,
) -> Result<Option<PlacedHotspot>, ReviewError> {
    let mut all = lines::<PlacedHotspot>(&hotspots_file(folder))?;
    all.retain(|h| {
        let by = reviewers.is_none_or(|r| r.split(TOGETHER).any(|name| name == h.reviewer));
        by && wanted(&h.of)
    });
    Ok(all.pop().filter(|h| !h.centres_px.is_empty()))
}

/// Keeps a hotspot; on disk before this returns.
///
/// # Errors
/// [`ReviewError`].
pub fn place(
    folder: &Path,
    reviewer: &str,
    of: &SlideKey,
    Placement { preset, rule, centres_px, mpp }: Placement,
) -> Result<PlacedHotspot, ReviewError> {
    check_name(reviewer).map_err(ReviewError::Name)?;
    let line = PlacedHotspot {
        schema: HOTSPOT.into(),
        time: now(),
        reviewer: reviewer.to_owned(),
        of: of.clone(),
        preset,
        rule,
        centres_px,
        mpp,
    };
    append(&hotspots_file(folder), &line)?;
    Ok(line)
}
