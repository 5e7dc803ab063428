//! A package at work on slides.

use super::config::Config;
use super::error::RunError;
use super::opener::Opener;
use crate::export::pictures;
use crate::input::{Input, InputDigest, file_name};
use crate::record::{Condition, NamedPoint, SlideEntry, SlideRecord};
use crate::regions::{Searched, SearchedRegion, TissueWithin};
use crate::subtypes::SubtypeNetwork;
use detect::{Control, Job, KeptCandidates, Models, Recipe, SlideResult, WindowAt, Workers};
use infer::EngineReport;
use mitosis::{Classifier, Mm2, Resolution, Segmenter};
use roi::Regions;
use slide::{Kept, Slide, SlideError, TissueMask};
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

/// The networks of a detector and what runs them.
pub struct Networks {
    /// First stage: a probability per pixel.
    pub segmenter: Box<dyn Segmenter>,
    /// Second stage; none where the first runs alone.
    pub classifier: Option<Box<dyn Classifier>>,
    /// Classifies the subtypes of accepted figures, if requested.
    pub subtypes: Option<SubtypeNetwork>,
    /// Engine, provider and precision that run them.
    pub engine: EngineReport,
    /// Keep results that another engine made, and add to them.
    pub accept_engine: bool,
    /// Where candidates of the first stage are kept, with what names this first stage.
    pub kept: Option<KeptCandidates>,
    /// Memory for the windows that wait for them.
    queue: Option<Kept>,
}

impl Networks {
    /// Both stages, or the first alone. Results of other engines are refused, and no candidates are kept.
    #[must_use]
    pub fn new(
        segmenter: Box<dyn Segmenter>,
        classifier: Option<Box<dyn Classifier>>,
        engine: EngineReport,
    ) -> Self {
        let (subtypes, kept, queue) = (None, None, None);
        Self { segmenter, classifier, subtypes, engine, accept_engine: false, kept, queue }
    }
}

/// A package at work: its networks in an engine, and everything that changes a number.
///
/// The example at the crate's root shows its use; [`Builder`](super::Builder) opens one with other settings.
pub struct Detector {
    /// The networks, and what runs them.
    pub models: Networks,
    /// Everything that changes a number.
    pub config: Config,
    /// Threads and batches; they change none.
    pub workers: Workers,
    /// How slides are read, and which are taken.
    pub opener: Opener,
}

/// Which slide is detected on, and where.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Name of its folder.
    pub name: &'a str,
    /// SHA-256 that names its content.
    pub digest: &'a str,
    /// What else a stored state must agree with: the configuration.
    pub identity: &'a str,
    /// The regions to search; none for the whole slide.
    pub regions: Option<&'a Regions>,
}

/// What one slide gave, with what it rests on.
#[derive(Debug)]
pub struct Examined {
    /// Figures, count and areas: what the exports are made of.
    pub record: SlideRecord,
    /// The tissue that was searched.
    pub tissue: TissueMask,
    /// The slide, small: a JPEG.
    pub thumbnail: Vec<u8>,
    /// The windows' way; `None` without tissue.
    pub result: Option<SlideResult>,
}

impl Detector {
    /// A detector with these networks; without limits of its own on memory.
    #[must_use]
    pub fn new(models: Networks, config: Config, workers: Workers, opener: Opener) -> Self {
        Self { models, config, workers, opener }
    }

    /// Opens a slide as this detector reads it: within its limits, with its OpenSlide library.
    ///
    /// # Errors
    /// [`SlideError`].
    pub fn slide(&self, path: impl AsRef<Path>) -> Result<Slide, SlideError> {
        self.opener.open(&Input::new(path.as_ref()))
    }

    /// Detects on a slide.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(&mut self, slide: &Slide) -> Result<SlideRecord, RunError> {
        let digest = InputDigest::from_file(slide.path())
            .map_err(|source| RunError::Io { path: slide.path().into(), source })?;
        let name = crate::input::stem(slide.path());
        Ok(self.examine(slide, &name, &digest.sha256, "", Control::default())?.record)
    }

    /// Opens a slide and detects on it.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run_file(&mut self, path: impl AsRef<Path>) -> Result<SlideRecord, RunError> {
        let slide = self.slide(path)?;
        self.run(&slide)
    }

    /// Detects on a slide, watched, stored and stopped by `control`: what [`Self::run`] does, for
    /// work that can be taken up again. `name` and `digest` go into the record; a stored state holds
    /// for this digest and this `identity` of the configuration alone.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn examine(
        &mut self,
        slide: &Slide,
        name: &str,
        digest: &str,
        identity: &str,
        control: Control<'_>,
    ) -> Result<Examined, RunError> {
        self.examine_within(slide, Subject { name, digest, identity, regions: None }, control)
    }

    /// As [`Self::examine`], but only of the regions of a slide, if it has any: windows without tissue in them are not
    /// read, and candidates outside them are dropped.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn examine_within(
        &mut self,
        slide: &Slide,
        subject: Subject<'_>,
        control: Control<'_>,
    ) -> Result<Examined, RunError> {
        let (resolution, note) = self.opener.fitting(slide)?;
        // The search for tissue keeps one core busy. Tiles that were read for the thumbnail count in the condition.
        let (found, thumbnail) = thread::scope(|scope| {
            let thumbnail = scope.spawn(|| pictures::thumbnail(slide));
            let found = self.find(slide, subject, control, resolution);
            (found, thumbnail.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        let mut found = found?;
        found.thumbnail = thumbnail?;
        found.record.condition = self.condition(slide, note)?;
        Ok(found)
    }

    /// Tissue, windows, figures and their subtypes; no thumbnail and no condition yet.
    fn find(
        &mut self,
        slide: &Slide,
        Subject { name, digest, identity, regions }: Subject<'_>,
        control: Control<'_>,
        resolution: Resolution,
    ) -> Result<Examined, RunError> {
        let whole = TissueMask::find_with(slide, &self.config.tissue)?;
        let within = regions.map(|r| TissueWithin::new(&whole, &r.all, slide.dimensions()));
        let restricted = within.as_ref().map(TissueWithin::mask);
        let tissue = restricted.as_ref().unwrap_or(&whole);
        let entry = SlideEntry {
            name: name.to_owned(),
            file: file_name(slide.path()),
            vendor: slide.vendor().to_owned(),
            width: slide.dimensions().0,
            height: slide.dimensions().1,
            bounds_offset: slide.bounds().map_or([0, 0], |b| [b.x, b.y]),
            digest: digest.to_owned(),
        };
        let model = self.config.model.clone();
        let point = NamedPoint {
            name: self.config.operating_point.clone(),
            point: self.config.thresholds.clone(),
        };
        let result = if tissue.is_empty() {
            None
        } else {
            let kept = match self.models.kept.clone() {
                None => None,
                // A digest that the caller gives may be that of another slide.
                Some(kept) => {
                    let file = InputDigest::from_file(slide.path())
                        .map_err(|source| RunError::Io { path: slide.path().into(), source })?;
                    let identity = format!("{} {}", kept.identity, file.identity());
                    Some(KeptCandidates { identity, ..kept })
                }
            };
            let identity = format!("{identity} {digest}");
            let recipe = &self.config.recipe;
            let job = match &within {
                None => Job::on_tissue(slide, tissue, recipe)?,
                Some(within) => Job::within(slide, tissue, within, recipe)?,
            };
            let job = Job { identity, ..job };
            let mut result = self.windows(slide, &job, control.keeping(kept))?;
            if let Some(within) = &within {
                result.retain(|p| within.holds(p));
            }
            Some((result, job.windows))
        };
        let mut record = match &result {
            None => SlideRecord::blank(entry, resolution, model, point),
            Some((r, _)) => {
                let area =
                    Mm2(within.as_ref().map_or_else(|| tissue.area_mm2(), TissueWithin::mm2));
                SlideRecord::new(entry, resolution, model, point, area, r)
            }
        };
        if let Some(regions) = regions {
            let read = result.as_ref().map(|(r, w)| r.windows_read(w)).unwrap_or_default();
            record.regions = Some(self.searched(slide, regions, &whole, &read)?);
        }
        let result = result.map(|(result, _)| result);
        if let Some(network) = &mut self.models.subtypes {
            network.fill(slide, &mut record.rows)?;
            record.subtypes = Some(vec![network.model.clone()]);
        }
        Ok(Examined { record, tissue: restricted.unwrap_or(whole), thumbnail: vec![], result })
    }

    /// The regions of a slide with what was read of each.
    fn searched(
        &self,
        slide: &Slide,
        regions: &Regions,
        tissue: &TissueMask,
        read: &BTreeSet<WindowAt>,
    ) -> Result<Searched, RunError> {
        let own = slide.resolution().map(|r| [r.x.get(), r.y.get()])?;
        let round = |v: f64| (v * 1e6).round() / 1e6;
        let mut list = Vec::new();
        for r in &regions.list {
            let within = TissueWithin::new(tissue, &r.area, slide.dimensions());
            let all = within.mm2();
            let Recipe { mpp, grid, .. } = self.config.recipe;
            let analysed = detect::analysed_area(slide, mpp, grid, read, &within)
                .map_err(detect::DetectError::from)?;
            list.push(SearchedRegion {
                name: r.name.clone(),
                class: r.class.clone(),
                area: r.area.clone(),
                area_mm2: round(r.area.mm2(own)),
                tissue_mm2: round(all),
                analysed_mm2: round(analysed.0),
                unread_mm2: round((all - analysed.0).max(0.0)),
            });
        }
        Ok(Searched {
            source: regions.source.clone(),
            area_mm2: round(regions.all.mm2(own)),
            excluded_mm2: round(regions.excluded.mm2(own)),
            list,
            notes: regions.notes.clone(),
        })
    }

    /// Every candidate in the windows of `job`, by this detector's networks and recipe.
    ///
    /// # Errors
    /// [`detect::DetectError`].
    pub fn windows(
        &mut self,
        slide: &Slide,
        job: &Job<'_>,
        control: Control<'_>,
    ) -> Result<SlideResult, detect::DetectError> {
        let Networks { segmenter, classifier, .. } = &mut self.models;
        let classifier = classifier.as_mut().map(|c| &mut **c as &mut dyn Classifier);
        let models = Models { segmenter: &mut **segmenter, classifier };
        let mut stages =
            detect::Detector { models, recipe: &self.config.recipe, workers: self.workers };
        stages.run(slide, job, control)
    }

    /// What is known of the pixels of the level that windows are read from.
    fn condition(
        &self,
        slide: &Slide,
        resolution_note: Option<String>,
    ) -> Result<Condition, SlideError> {
        let level = slide.level_for(self.config.recipe.mpp)?;
        let suspect: Vec<_> =
            slide.suspect_tiles().into_iter().filter(|t| t.at.level == level).collect();
        let reasons: BTreeSet<String> = suspect.iter().map(|t| t.reason.clone()).collect();
        Ok(Condition {
            absent_mm2: slide.tiles_area(slide.absent_tiles(level))?.0,
            suspect_mm2: slide.tiles_area(suspect.into_iter().map(|t| t.at))?.0,
            suspect_reasons: reasons.into_iter().collect(),
            resolution_note,
            scanner: slide.scanner().map(str::to_owned),
            scanner_note: self.opener.scanner_note(slide),
            colour_note: slide.colour_note(),
            level_notes: slide.level_notes(),
        })
    }

    /// Classifies the subtypes of accepted figures from now on.
    pub fn set_subtypes(&mut self, network: SubtypeNetwork) {
        self.config.subtypes = Some(vec![network.model.clone()]);
        self.models.subtypes = Some(network);
    }

    /// Holds no more candidates than are allowed, and lets no more decoded windows wait than an eighth of the memory
    /// holds, shared by so many detectors, and takes that memory.
    pub(super) fn fit_memory(&mut self, together: usize) {
        let side = u64::from(self.config.recipe.grid.window());
        let window = 3 * side * side;
        let limits = &self.opener.options.limits;
        let memory = &limits.memory;
        let most = (memory.total() / 8 / together as u64 / window).max(1);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.workers.in_flight = self.workers.in_flight.min(most);
        self.workers.candidates = usize::try_from(limits.candidates).unwrap_or(usize::MAX);
        self.models.queue = memory.reserve(self.workers.in_flight as u64 * window);
    }
}
