//! What a detector is opened with.

use super::card::from_card;
use super::config::Config;
use super::error::DetectorError;
use super::opener::Opener;
use super::options::{Stages, Thresholds};
use super::run::{Detector, Networks};
use crate::record::{GIVEN_POINT, OWN_POINT, RESULTS_VERSION};
use crate::subtypes::SubtypeNetwork;
use base::digest::sha256;
use detect::{KeptCandidates, Recipe, Workers};
use infer::{CardError, EngineChoice, EngineOptions, ModelCard, ModelPackage};
use slide::{Limits, OpenOptions};
use std::path::{Path, PathBuf};

/// What a detector is opened with; every setting has a default.
///
/// ```no_run
/// use mithras::{Builder, EngineChoice, Thresholds};
///
/// let detector = Builder::default()
///     .engine(EngineChoice::OnnxRuntime)
///     .thresholds(Thresholds::Named("sensitive".into()))
///     .bundled()?;
/// println!("{}", detector.models.engine);
/// # Ok::<(), mithras::DetectorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    engine: EngineOptions,
    stages: Stages,
    thresholds: Thresholds,
    workers: Workers,
    max_unread_share: f64,
    limits: Limits,
    openslide: Option<PathBuf>,
    force_mpp: bool,
    any_mpp: bool,
    accept_engine: bool,
    keep_candidates: Option<PathBuf>,
    subtypes: bool,
    /// Detectors opened together.
    together: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            engine: EngineOptions::default(),
            stages: Stages::default(),
            thresholds: Thresholds::default(),
            workers: Workers::default(),
            max_unread_share: Recipe::MAX_UNREAD_SHARE,
            limits: Limits::default(),
            openslide: None,
            force_mpp: false,
            any_mpp: false,
            accept_engine: false,
            keep_candidates: None,
            subtypes: false,
            together: 1,
        }
    }
}

impl Builder {
    /// What runs the networks; by default the first of [`EngineChoice::Auto`]'s order that runs.
    #[must_use]
    pub fn engine(mut self, engine: EngineChoice) -> Self {
        self.engine.engine = engine;
        self
    }

    /// Engine, device, precision, threads and batch.
    #[must_use]
    pub fn engine_options(mut self, options: EngineOptions) -> Self {
        self.engine = options;
        self
    }

    /// As [`Self::engine_options`], with threads that read and windows in flight to suit them.
    #[must_use]
    pub fn run_with(mut self, options: EngineOptions) -> Self {
        let (threads, batch) = (options.threads, options.segmenter_batch);
        if threads > 0 {
            self.workers.readers = self.workers.readers.min(threads);
        }
        if batch > 0 {
            self.workers.segment_batch = batch;
            self.workers.in_flight = self.workers.in_flight.max(2 * batch);
        }
        self.engine_options(options)
    }

    /// One stage or two (the default).
    #[must_use]
    pub fn stages(mut self, stages: Stages) -> Self {
        self.stages = stages;
        self
    }

    /// The threshold pair; by default the package's own.
    #[must_use]
    pub fn thresholds(mut self, thresholds: Thresholds) -> Self {
        self.thresholds = thresholds;
        self
    }

    /// Threads and batches; they change no number.
    #[must_use]
    pub fn workers(mut self, workers: Workers) -> Self {
        self.workers = workers;
        self
    }

    /// Largest share of windows that may be unreadable before a slide fails, 0 to 1.
    #[must_use]
    pub fn max_unread_share(mut self, share: f64) -> Self {
        self.max_unread_share = share;
        self
    }

    /// What a slide may ask for, its share of memory among them.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// An OpenSlide library to use instead of the one found.
    #[must_use]
    pub fn openslide(mut self, library: Option<PathBuf>) -> Self {
        self.openslide = library;
        self
    }

    /// Takes a given um/px even where the slide states another.
    #[must_use]
    pub fn force_mpp(mut self, force: bool) -> Self {
        self.force_mpp = force;
        self
    }

    /// Runs on slides of any resolution, whatever the model is made for.
    #[must_use]
    pub fn any_mpp(mut self, any: bool) -> Self {
        self.any_mpp = any;
        self
    }

    /// Keeps results of an earlier run that another engine made, and adds to them.
    #[must_use]
    pub fn accept_engine(mut self, accept: bool) -> Self {
        self.accept_engine = accept;
        self
    }

    /// Keeps what the first stage finds in a folder, and takes it from there where it is kept: a slide that was done
    /// with the same first stage begins with the second.
    #[must_use]
    pub fn keep_candidates(mut self, folder: Option<PathBuf>) -> Self {
        self.keep_candidates = folder;
        self
    }

    /// Also classifies the subtypes of accepted figures.
    #[must_use]
    pub fn subtypes(mut self, subtypes: bool) -> Self {
        self.subtypes = subtypes;
        self
    }

    /// How a detector of a package with this card would read slides, and which it would take, without opening its
    /// networks.
    #[must_use]
    pub fn opener(&self, card: &ModelCard) -> Opener {
        let (openslide, limits) = (self.openslide.clone(), self.limits.clone());
        Opener {
            force_mpp: self.force_mpp,
            any_mpp: self.any_mpp,
            range: card.resolution,
            scanners: card.scanners(),
            options: OpenOptions { openslide, limits, ..OpenOptions::default() },
        }
    }

    /// Opens the bundled package.
    ///
    /// # Errors
    /// [`DetectorError`].
    pub fn bundled(self) -> Result<Detector, DetectorError> {
        self.open(&ModelPackage::bundled()?)
    }

    /// Opens a package `n` times (one at least), for so many slides at once: the detectors share the
    /// threads and the memory that one would have, and give the same numbers.
    ///
    /// # Errors
    /// [`DetectorError`].
    pub fn open_several(
        mut self,
        package: &ModelPackage,
        n: usize,
    ) -> Result<Vec<Detector>, DetectorError> {
        if n > 1 {
            self.engine = self.engine.shared(n);
            self.workers.readers = self.workers.readers.min(self.engine.threads);
            self.together = n;
        }
        (0..n.max(1)).map(|_| self.clone().open(package)).collect()
    }

    /// Opens a package.
    ///
    /// # Errors
    /// [`DetectorError`].
    pub fn open(self, package: &ModelPackage) -> Result<Detector, DetectorError> {
        if !(0.0..=1.0).contains(&self.max_unread_share) {
            return Err(DetectorError::Share(self.max_unread_share));
        }
        let (mut recipe, own, model) = from_card(package, self.stages)?;
        recipe.max_unread_share = self.max_unread_share;
        let two = recipe.crops.is_some() || package.card.classifier.is_none();
        let (point, thresholds) = match self.thresholds.clone() {
            Thresholds::Package => {
                let name = || package.card.name.clone();
                let own = own.ok_or_else(|| DetectorError::NoFirstStagePoint(name()))?;
                let named = &package.card.operating_points;
                let pair =
                    |p: &infer::card::NamedPoint| two && (p.seg, p.cls) == (own.seg, own.cls);
                let same = named.iter().find(|(_, p)| pair(p));
                (same.map_or(OWN_POINT, |(name, _)| name.as_str()).to_owned(), own)
            }
            Thresholds::Named(point) if !two => {
                return Err(DetectorError::PairForOneStage {
                    name: package.card.name.clone(),
                    point,
                });
            }
            Thresholds::Given(point) if recipe.crops.is_none() && point.cls.get() > 0.0 => {
                return Err(DetectorError::SecondThreshold(point.cls.get()));
            }
            Thresholds::Named(name) => {
                let point = package.card.point(&name)?;
                (name, point)
            }
            Thresholds::Given(point) => (GIVEN_POINT.to_owned(), point),
        };
        let models = infer::open(package, &self.engine)?;
        let segmenter = models.segmenter.ok_or_else(|| CardError::Missing {
            name: package.card.name.clone(),
            part: "segmenter",
            job: "detection",
        })?;
        let classifier = models.classifier.filter(|_| self.stages == Stages::Two);
        let kept = self.keep_candidates.clone().map(|folder| {
            // Everything that the first stage depends on, whatever the second is.
            let report = &models.report;
            let engine = (report.first_engine(), &report.provider, &report.segmenter_precision);
            let whole = serde_json::to_vec(&(&package.card.segmenter, engine, RESULTS_VERSION));
            let identity = sha256(whole.expect("plain data becomes JSON"));
            KeptCandidates { folder, identity }
        });
        let engine = models.report;
        let config = Config {
            operating_point: point,
            resolution: package.card.resolution,
            ..Config::new(recipe, thresholds, model, &engine)
        };
        let mut networks = Networks::new(segmenter, classifier, engine);
        networks.accept_engine = self.accept_engine;
        networks.kept = kept;
        let opener = self.opener(&package.card);
        let mut detector = Detector::new(networks, config, self.workers, opener);
        detector.fit_memory(self.together);
        if self.subtypes {
            detector.set_subtypes(SubtypeNetwork::bundled(&self.engine)?);
        }
        Ok(detector)
    }
}

impl Detector {
    /// The bundled package with the defaults of [`Builder`].
    ///
    /// # Errors
    /// [`DetectorError`].
    pub fn bundled() -> Result<Self, DetectorError> {
        Builder::default().bundled()
    }

    /// A package folder with the defaults of [`Builder`].
    ///
    /// # Errors
    /// [`DetectorError`].
    pub fn open(package: impl AsRef<Path>) -> Result<Self, DetectorError> {
        Builder::default().open(&ModelPackage::open(package.as_ref())?)
    }
}
