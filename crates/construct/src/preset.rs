//! Presets of corpus construction: everything that changes a crop.

use super::error::ConstructError;
use base::file::ReadError;
use base::preset::{Fault, Preset as _};
use mitosis::pseudo_label::PseudoLabelRule;
use mitosis::{Mpp, Score};
use serde::{Deserialize, Serialize};
use std::path::Path;

const BUNDLED: &[(&str, &str)] = &[
    ("tcga-mf-pseudo", include_str!("../../../presets/corpus/tcga-mf-pseudo.toml")),
    ("tcga-unlabeled", include_str!("../../../presets/corpus/tcga-unlabeled.toml")),
    ("tumour-tiles", include_str!("../../../presets/corpus/tumour-tiles.toml")),
];

/// What is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Pseudo-labelled crops.
    PseudoLabels,
    /// Patches at several resolutions.
    Unlabeled,
    /// Tissue tiles by which of two filters keeps them.
    TumourTiles,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PseudoLabels => "pseudo-labels",
            Self::Unlabeled => "unlabeled",
            Self::TumourTiles => "tumour-tiles",
        })
    }
}

/// How a corpus is built from slides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    schema: u32,
    /// Name, recorded in the manifest.
    pub name: String,
    /// What is built.
    pub kind: Kind,
    /// Cohorts never read.
    #[serde(default)]
    pub exclude_cohorts: Vec<String>,
    /// Cohorts that the corpus is made of; slides of others are refused. Any where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cohorts: Vec<String>,
    /// Tissue tiles and tumour filter.
    pub tiles: Option<Tiles>,
    /// Pseudo-label rule.
    pub rule: Option<PseudoLabelRule>,
    /// How candidates are taken; the detector's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Candidates>,
    /// Crops.
    pub crops: Option<Crops>,
    /// Patches.
    pub patches: Option<Patches>,
    /// Which tiles two filters see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

/// How the detector selects candidates for pseudo-labels, in place of its card's threshold: that one
/// is chosen for detection, and the pseudo-label rule may need lower scores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidates {
    /// Foreground threshold, at most the rule's limits of `s_seg`.
    pub threshold: Score,
}

/// Tiles drawn for two filters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Tiles per slide; 0 takes all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_slide: Option<usize>,
    /// Or tiles per cohort, shared evenly by its slides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_cohort: Option<usize>,
    /// Seed of the draw.
    pub seed: u64,
    /// JPEG quality; absent means PNG.
    pub jpeg_quality: Option<u8>,
}

/// Tissue tiles and their filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiles {
    /// um/px.
    pub mpp: Mpp,
    /// Side in pixels; a whole number of sub-patches.
    pub side: u32,
    /// Side of a sub-patch; every one must be tumour.
    pub sub: u32,
    /// The filter's class that counts as tumour.
    pub tumour_class: String,
}

/// Pseudo-labelled crops around candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crops {
    /// um/px.
    pub mpp: Mpp,
    /// Side in pixels.
    pub side: u32,
    /// Side of the pseudo box at the centre, pixels.
    #[serde(rename = "box")]
    pub box_side: u32,
    /// JPEG quality; absent means PNG.
    pub jpeg_quality: Option<u8>,
}

/// Patches at several resolutions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patches {
    /// um/px, one set of patches each.
    pub mpp: Vec<Mpp>,
    /// Side in pixels.
    pub side: u32,
    /// Patches per slide, of every resolution or of each in the order of `mpp`; 0 takes all.
    pub per_slide: PerSlide,
    /// Seed of the draw.
    pub seed: u64,
    /// JPEG quality; absent means PNG.
    pub jpeg_quality: Option<u8>,
}

/// A number of patches for all resolutions, or one for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerSlide {
    /// Of every resolution.
    All(usize),
    /// Of each, in the order of `mpp`.
    Each(Vec<usize>),
}

impl PerSlide {
    /// Of the resolution at place `i`.
    pub(super) fn at(&self, i: usize) -> usize {
        match self {
            Self::All(n) => *n,
            Self::Each(list) => list.get(i).copied().unwrap_or(0),
        }
    }
}

impl Preset {
    /// A bundled preset by name, or a file.
    ///
    /// # Errors
    /// [`ConstructError::NoPreset`], [`ConstructError::Preset`], or the file cannot be read.
    pub fn find(name: &str) -> Result<Self, ConstructError> {
        let bundled = BUNDLED.iter().find(|(n, _)| *n == name).map(|(_, text)| (*text).to_owned());
        let text = match bundled {
            Some(text) => text,
            None if Path::new(name).is_file() => base::file::read_string(name)
                .map_err(|source| ReadError { path: name.into(), source })?,
            None => {
                let known: Vec<&str> = BUNDLED.iter().map(|(n, _)| *n).collect();
                let (name, known) = (name.to_owned(), known.join(", "));
                return Err(ConstructError::NoPreset { name, known });
            }
        };
        let wrong = |reason: String| ConstructError::Preset { name: name.to_owned(), reason };
        Self::parse(&text, &[]).map_err(wrong)
    }
}

impl base::preset::Preset for Preset {
    fn check(&self) -> Result<(), Fault> {
        let need = |holds: bool, key: &str, reason: &str| {
            holds.then_some(()).ok_or_else(|| Fault::new(key, reason))
        };
        need(self.schema == 1, "schema", &format!("{}; this program reads 1", self.schema))?;
        match self.kind {
            Kind::PseudoLabels => {
                let missing = |key: &str| Fault::new(key, "is missing");
                self.tiles.as_ref().ok_or_else(|| missing("tiles"))?.check()?;
                let rule = self.rule.as_ref().ok_or_else(|| missing("rule"))?;
                if let Some(c) = &self.candidates {
                    let reached = rule.reachable(c.threshold);
                    reached.map_err(|e| Fault::new("candidates.threshold", e.to_string()))?;
                }
                let c = self.crops.as_ref().ok_or_else(|| missing("crops"))?;
                need(
                    (1..=2048).contains(&c.side) && (1..=c.side).contains(&c.box_side),
                    "crops",
                    "side from 1 to 2048 px, and box no larger",
                )?;
                quality("crops", c.jpeg_quality)
            }
            Kind::TumourTiles => {
                let missing = |key: &str| Fault::new(key, "is missing");
                self.tiles.as_ref().ok_or_else(|| missing("tiles"))?.check()?;
                let s = self.sample.as_ref().ok_or_else(|| missing("sample"))?;
                need(
                    s.per_slide.is_some() != s.per_cohort.is_some(),
                    "sample",
                    "states per_slide or per_cohort, one of the two",
                )?;
                need(s.per_cohort != Some(0), "sample.per_cohort", "must be positive")?;
                quality("sample", s.jpeg_quality)
            }
            Kind::Unlabeled => {
                let missing = || Fault::new("patches", "is missing");
                let p = self.patches.as_ref().ok_or_else(missing)?;
                need(
                    !p.mpp.is_empty() && (1..=8192).contains(&p.side),
                    "patches",
                    "at least one mpp, and side from 1 to 8192 px",
                )?;
                if let PerSlide::Each(list) = &p.per_slide {
                    need(
                        list.len() == p.mpp.len(),
                        "patches.per_slide",
                        "one number for each mpp, or one for all",
                    )?;
                }
                quality("patches", p.jpeg_quality)
            }
        }
    }
}

impl Tiles {
    fn check(&self) -> Result<(), Fault> {
        let Self { side, sub, .. } = *self;
        if sub > 0 && side > 0 && side.is_multiple_of(sub) && side <= 8192 {
            return Ok(());
        }
        let reason =
            format!("{side} px is not a whole number of sub-patches of {sub} px, or is over 8192");
        Err(Fault::new("tiles.side", reason))
    }
}

fn quality(table: &str, q: Option<u8>) -> Result<(), Fault> {
    match q {
        Some(q) if !(1..=100).contains(&q) => {
            Err(Fault::new("jpeg_quality", "must be between 1 and 100").below(table))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_presets_hold_the_papers_numbers() {
        let p = Preset::find("tcga-mf-pseudo").unwrap();
        assert_eq!(p.rule, Some(PseudoLabelRule::PAPER));
        assert_eq!(p.candidates.unwrap().threshold.get(), 0.1);
        let high =
            Preset { candidates: Some(Candidates { threshold: Score::literal(0.3) }), ..p.clone() };
        let refused = high.check().unwrap_err().to_string();
        assert!(refused.contains("from 0.1 on"), "{refused}");
        assert_eq!(p.exclude_cohorts, ["GBM", "SARC", "DLBC", "THCA", "LGG"]);
        assert!(p.cohorts.iter().all(|c| !p.exclude_cohorts.contains(c)));
        let t = p.tiles.clone().unwrap();
        assert_eq!((t.mpp, t.side, t.sub), (Mpp::PAPER, 896, 224));
        assert_eq!(p.cohorts.len(), 14);
        let u = Preset::find("tcga-unlabeled").unwrap();
        assert_eq!(u.cohorts, p.cohorts);
        let u = u.patches.unwrap();
        // 3.0, 2.7, 1.2 and 1.1 million of the paper's 6,041 slides.
        let millions = [0, 1, 2, 3].map(|i| u.per_slide.at(i) as f64 * 6041.0 / 1e6);
        let paper = [3.0, 2.7, 1.2, 1.1];
        assert!(millions.iter().zip(paper).all(|(m, p)| (m - p).abs() < 0.01), "{millions:?}");
        let tiles = Preset::find("tumour-tiles").unwrap();
        assert_eq!(
            (tiles.sample.unwrap().per_cohort, tiles.cohorts),
            (Some(10_000), p.cohorts.clone())
        );
        assert_eq!(u.mpp.iter().map(|m| m.get()).collect::<Vec<_>>(), [0.25, 0.5, 1.0, 2.0]);
        assert!(Preset::find("none-of-them").is_err());
    }
}
