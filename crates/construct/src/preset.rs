//! Presets of corpus construction: everything that changes a crop.

use super::error::ConstructError;
use base::file::ReadError;
use base::preset::{Fault, Preset as _};
use mitosis::Mpp;
use mitosis::pseudo_label::PseudoLabelRule;
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

/// A preset file.
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
    /// Tissue tiles and tumour filter.
    pub tiles: Option<Tiles>,
    /// Pseudo-label rule.
    pub rule: Option<PseudoLabelRule>,
    /// Crops.
    pub crops: Option<Crops>,
    /// Patches.
    pub patches: Option<Patches>,
    /// Which tiles two filters see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

/// Tiles drawn for two filters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Tiles per slide; 0 takes all.
    pub per_slide: usize,
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

/// Crops.
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
    /// Patches per slide and resolution; 0 takes all.
    pub per_slide: usize,
    /// Seed of the draw.
    pub seed: u64,
    /// JPEG quality; absent means PNG.
    pub jpeg_quality: Option<u8>,
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
            None if Path::new(name).is_file() => std::fs::read_to_string(name)
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
                need(self.rule.is_some(), "rule", "is missing")?;
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
            format!("{side} px are no whole number of sub-patches of {sub} px, or over 8192");
        Err(Fault::new("tiles.side", reason))
    }
}

fn quality(table: &str, q: Option<u8>) -> Result<(), Fault> {
    match q {
        Some(q) if !(1..=100).contains(&q) => {
            Err(Fault::new("jpeg_quality", "lies between 1 and 100").below(table))
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
        assert_eq!(p.exclude_cohorts, ["GBM", "SARC", "DLBC", "THCA", "LGG"]);
        let t = p.tiles.unwrap();
        assert_eq!((t.mpp, t.side, t.sub), (Mpp::PAPER, 896, 224));
        let u = Preset::find("tcga-unlabeled").unwrap().patches.unwrap();
        assert_eq!(u.mpp.iter().map(|m| m.get()).collect::<Vec<_>>(), [0.25, 0.5, 1.0, 2.0]);
        assert!(Preset::find("none-of-them").is_err());
    }
}
