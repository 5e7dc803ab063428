//! Presets of `corpus build`: everything that changes a crop.

use anyhow::{Context, ensure};
use artifact::digest::sha256;
use mitosis::Mpp;
use mitosis::pseudo_label::PseudoLabelRule;
use serde::{Deserialize, Serialize};
use std::path::Path;

const BUNDLED: &[(&str, &str)] = &[
    ("tcga-mf-pseudo", include_str!("../../../../../../presets/corpus/tcga-mf-pseudo.toml")),
    ("tcga-unlabeled", include_str!("../../../../../../presets/corpus/tcga-unlabeled.toml")),
];

/// What is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Pseudo-labelled crops (C1-C3).
    PseudoLabels,
    /// Patches at several resolutions (C4).
    Unlabeled,
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
    /// Cohorts never read (C5).
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
}

/// Tissue tiles (C1) and their filter (C2).
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

/// Crops (C3).
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

/// Patches at several resolutions (C4).
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
    pub fn find(name: &str) -> anyhow::Result<Self> {
        let bundled = BUNDLED.iter().find(|(n, _)| *n == name).map(|(_, text)| (*text).to_owned());
        let text = match bundled {
            Some(text) => text,
            None if Path::new(name).is_file() => {
                std::fs::read_to_string(name).context(name.to_owned())?
            }
            None => {
                let known: Vec<&str> = BUNDLED.iter().map(|(n, _)| *n).collect();
                anyhow::bail!("no preset `{name}`: a file, or one of {}", known.join(", "))
            }
        };
        let preset: Self = toml::from_str(&text).with_context(|| format!("preset {name}"))?;
        preset.check().with_context(|| format!("preset {name}"))?;
        Ok(preset)
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.schema == 1, "schema {}, this program reads 1", self.schema);
        match self.kind {
            Kind::PseudoLabels => {
                let t = self.tiles.as_ref().context("no [tiles]")?;
                ensure!(self.rule.is_some(), "no [rule]");
                let c = self.crops.as_ref().context("no [crops]")?;
                ensure!(
                    t.sub > 0 && t.side > 0 && t.side.is_multiple_of(t.sub) && t.side <= 8192,
                    "tiles of {} px are no whole number of sub-patches of {} px",
                    t.side,
                    t.sub
                );
                ensure!(
                    (1..=2048).contains(&c.side) && (1..=c.side).contains(&c.box_side),
                    "crops.side and crops.box"
                );
                quality(c.jpeg_quality)
            }
            Kind::Unlabeled => {
                let p = self.patches.as_ref().context("no [patches]")?;
                ensure!(
                    !p.mpp.is_empty() && (1..=8192).contains(&p.side),
                    "patches.mpp and patches.side"
                );
                quality(p.jpeg_quality)
            }
        }
    }

    /// SHA-256 of the resolved preset.
    pub fn digest(&self) -> String {
        sha256(serde_json::to_vec(self).unwrap_or_default())
    }
}

fn quality(q: Option<u8>) -> anyhow::Result<()> {
    ensure!(q.is_none_or(|q| (1..=100).contains(&q)), "jpeg_quality lies between 1 and 100");
    Ok(())
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
