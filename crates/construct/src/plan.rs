//! What is built, from what and where; checked before a slide is read.

use super::error::ConstructError;
use super::exclude::{Exclusions, Origins};
use super::preset::{Kind, Preset};
use super::slide::Worker;
use super::tiles::FilterPlan;
use base::digest::sha256;
use base::table::Unmatched;
use base::text::Many;
use crops::{Columns, Corpus, CorpusError};
use infer::ModelPackage;
use infer::card::ClassifierCard;
use mithras::detector::{Detector, DetectorError};
use mithras::input::Input;
use mitosis::Mpp;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What is built, from what, and where.
pub struct Plan {
    /// Everything that changes a crop.
    pub preset: Preset,
    /// In any order, each once.
    pub slides: Vec<Input>,
    /// Whose they are.
    pub origins: Origins,
    /// Cohort of slides that `origins` does not name.
    pub cohort: Option<String>,
    /// What is kept out.
    pub exclusions: Exclusions,
    /// Tumour filters. Without one every tissue tile is kept; with two, each tile records which of them kept it.
    pub filters: Vec<FilterPlan>,
    /// Slides at once; each worker opens the models.
    pub workers: usize,
    /// The corpus's folder.
    pub out: PathBuf,
}

/// Everything that changes a crop; goes into the manifest.
#[derive(Serialize)]
pub(super) struct Config<'a> {
    pub(super) preset: &'a Preset,
    pub(super) detector: Option<&'a mithras::detector::Config>,
    pub(super) tumour_filter: Filtered<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    second_filter: Option<FilterNote<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Filtered<'a> {
    Some(Box<FilterNote<'a>>),
    None(&'static str),
}

#[derive(Serialize)]
pub(super) struct FilterNote<'a> {
    pub(super) name: &'a str,
    license: &'a str,
    pub(super) sha256: Option<String>,
    pub(super) classes: Option<&'a [String]>,
    trained_at_mpp: Option<Mpp>,
    used_at_mpp: Option<Mpp>,
    pub(super) tumour_class: Option<&'a str>,
    pub(super) rule: &'static str,
    pub(super) sub_patches: Option<u32>,
}

impl Plan {
    /// Rows of the slide table, and names to keep out, that meet no slide but would by another rule, and columns of the
    /// table that are not read, one note each.
    ///
    /// # Errors
    /// [`ConstructError::NoneNamed`] when no row of the table is a slide's: cohorts and patients would come
    /// from elsewhere without a word.
    pub fn notes(&self) -> Result<Vec<String>, ConstructError> {
        let mut all: Vec<Unmatched> = Vec::new();
        match self.origins.unmatched(&self.slides) {
            Some((join, true)) => return Err(ConstructError::NoneNamed { join: Box::new(join) }),
            Some((join, false)) => all.push(join),
            None => {}
        }
        let names: Vec<&str> = self.slides.iter().map(|i| i.name.as_str()).collect();
        let origin = |i: &Input| {
            self.origins.origin(&i.name, &i.file_name(), self.cohort.as_deref()).ok()?.patient
        };
        let patients: BTreeSet<String> = self.slides.iter().filter_map(origin).collect();
        let patients: Vec<&str> = patients.iter().map(String::as_str).collect();
        all.extend(self.exclusions.misspelt(&names, &patients));
        let unread = self.origins.unread_columns.as_ref().map(ToString::to_string);
        Ok(all.iter().map(ToString::to_string).chain(unread).collect())
    }

    /// Refuses fewer slides than the folder's corpus is of.
    pub(super) fn keeps_every_slide(&self) -> Result<(), ConstructError> {
        // Anything else, or a damaged corpus, is replaced.
        let Ok(old) = Corpus::open(&self.out) else { return Ok(()) };
        let given: BTreeSet<&str> = self.slides.iter().map(|i| i.name.as_str()).collect();
        let of_slides = old.crops(Columns::Meta)?.map(|crop| Ok(crop?.meta.slide));
        let slides = of_slides.collect::<Result<BTreeSet<String>, CorpusError>>()?;
        let lost: Vec<&str> =
            slides.iter().map(String::as_str).filter(|s| !given.contains(s)).collect();
        match lost.as_slice() {
            [] => Ok(()),
            [first, ..] => {
                let slides = format!("{} (`{first}`)", Many(lost.len(), "slide"));
                Err(ConstructError::Lost { out: self.out.clone(), slides })
            }
        }
    }

    pub(super) fn worker(
        &self,
        open: &dyn Fn() -> Result<Detector, DetectorError>,
    ) -> Result<Worker, ConstructError> {
        let takes = match self.preset.kind {
            Kind::PseudoLabels if self.filters.len() > 1 => Some("one at most"),
            Kind::TumourTiles if self.filters.len() != 2 => Some("two"),
            Kind::Unlabeled if !self.filters.is_empty() => Some("none"),
            _ => None,
        };
        if let Some(takes) = takes {
            return Err(ConstructError::Filters { kind: self.preset.kind.to_string(), takes });
        }
        let filters = match &self.preset.tiles {
            Some(tiles) => {
                self.filters.iter().map(|f| f.open(tiles)).collect::<Result<Vec<_>, _>>()?
            }
            None => vec![],
        };
        let detector = match self.preset.kind {
            Kind::PseudoLabels => {
                let mut detector = open()?;
                let candidates = &mut detector.config.recipe.candidates;
                if let Some(own) = &self.preset.candidates {
                    *candidates = candidates.from_threshold(own.threshold);
                }
                if let Some(rule) = &self.preset.rule {
                    rule.reachable(candidates.lowest()).map_err(|source| {
                        let name = detector.config.model.name.clone();
                        ConstructError::Unreachable { name, source }
                    })?;
                }
                Some(detector)
            }
            Kind::Unlabeled | Kind::TumourTiles => None,
        };
        Ok(Worker { detector, filters })
    }

    pub(super) fn config<'a>(
        &'a self,
        worker: &'a Worker,
        packages: &'a [ModelPackage],
    ) -> Config<'a> {
        let notes = self.filters.iter().zip(packages).map(|(f, p)| self.note(f, p));
        let mut notes = notes.collect::<Vec<_>>().into_iter();
        let tumour_filter = match notes.next() {
            None => Filtered::None("none: every tissue tile was kept"),
            Some(note) => Filtered::Some(Box::new(note)),
        };
        let detector = worker.detector.as_ref().map(|d| &d.config);
        Config { preset: &self.preset, detector, tumour_filter, second_filter: notes.next() }
    }

    fn note<'a>(&'a self, filter: &'a FilterPlan, package: &'a ModelPackage) -> FilterNote<'a> {
        let tiles = self.preset.tiles.as_ref();
        let card: Option<&ClassifierCard> = package.card.classifier.as_ref();
        FilterNote {
            name: &package.card.name,
            license: &package.card.license,
            sha256: package.classifier().map(sha256),
            classes: card.map(|c| &c.classes[..]),
            trained_at_mpp: card.map(|c| c.mpp),
            used_at_mpp: tiles.map(|t| t.mpp),
            tumour_class: tiles.map(|t| filter.class(t)),
            rule: "kept when every sub-patch has the tumour class as its most probable one",
            sub_patches: tiles.map(|t| (t.side / t.sub).pow(2)),
        }
    }
}
