//! What a reviewer decides about a slide as a whole: the hotspot, the regions, and that a case is finished.
//!
//! Stored next to the logs of verdicts: `hotspots.log`, `regions.log` and `signed.log`, appended to and chained, and
//! `regions/SLIDE.geojson`, which is made of the log.

use super::logs::{append, lines, now};
use super::review::{ReviewError, SlideKey};
use super::settle::TOGETHER;
use base::log::check_name;
use mitosis::hotspots::HotspotRule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

pub use super::content::{SignedContent, SignedLines, SlideFile};
pub use super::drawn::{Drawn, DrawnRegion, EXCLUDE, draw, drawn, drawn_file};
pub use super::signature::{Signature, Signed, changes, sign, signatures, signed, signed_slide};

/// Schema of a line about a hotspot.
const HOTSPOT: &str = "mithras.hotspot/1";
/// The log of hotspots.
const HOTSPOTS: &str = "hotspots.log";

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

/// The current hotspot of each slide: the last that anybody placed.
///
/// # Errors
/// [`ReviewError`].
pub fn hotspots(folder: &Path) -> Result<BTreeMap<SlideKey, PlacedHotspot>, ReviewError> {
    let mut current = BTreeMap::new();
    for line in lines::<PlacedHotspot>(&folder.join(HOTSPOTS))? {
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
pub fn hotspot_on(
    folder: &Path,
    reviewers: Option<&str>,
    slide: SlideFile<'_>,
) -> Result<Option<PlacedHotspot>, ReviewError> {
    let mut all = lines::<PlacedHotspot>(&folder.join(HOTSPOTS))?;
    all.retain(|h| {
        let by = reviewers.is_none_or(|r| r.split(TOGETHER).any(|name| name == h.reviewer));
        by && h.of.slide == slide.name && h.of.slide_digest == slide.digest
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
    append(&folder.join(HOTSPOTS), &line)?;
    Ok(line)
}
