//! What is the same for every slide of a run: weights, recipe, thresholds, engine.

use crate::export::ModelEntry;
use crate::subtypes::{SubtypeModel, SubtypeNetwork};
use artifact::digest::sha256;
use detect::{CandidateRule, CropRecipe, DetectError, Grid, Recipe, TISSUE_MARGIN_UM, Workers};
use infer::card::{CandidateMethod, ResolutionCard};
use infer::{CardError, EngineError, EngineOptions, EngineReport, ModelPackage};
use mitosis::{Classifier, OperatingPoint, Score, Segmenter};
use serde::Serialize;
use slide::{Limits, TissueOptions};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How many stages run (D4, D7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stages {
    /// Segmentation alone; `s_cls` stays empty.
    One,
    /// Segmentation, then classification.
    Two,
}

/// Models, and everything that changes a number.
pub struct Setup {
    /// First stage.
    pub segmenter: Box<dyn Segmenter>,
    /// Second stage, unless segmentation runs alone.
    pub classifier: Option<Box<dyn Classifier>>,
    /// What runs them.
    pub engine: EngineReport,
    /// Everything that changes a number.
    pub config: Config,
    /// Threads and batches; they change none.
    pub workers: Workers,
    /// What a slide may ask for, its share of memory among them.
    pub limits: Limits,
    /// An OpenSlide library to use instead of the one found.
    pub openslide: Option<PathBuf>,
    /// Take an input's um/px even where the slide states another.
    pub force_mpp: bool,
    /// Run on slides of any resolution, whatever the model is made for.
    pub any_mpp: bool,
    /// The network that tells the subtypes of accepted figures, if asked for.
    pub subtypes: Option<SubtypeNetwork>,
}

/// Everything that changes a number, as written to `run.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Config {
    /// Version of mithras.
    pub version: &'static str,
    /// The weights.
    pub model: ModelEntry,
    /// Windows, candidates, crops.
    pub recipe: Recipe,
    /// The frozen threshold pair (D5).
    pub thresholds: OperatingPoint,
    /// How tissue is found.
    pub tissue: TissueOptions,
    /// How far outside the tissue a candidate may lie and be accepted, um.
    pub tissue_margin_um: f64,
    /// Resolutions of slides that the model is made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<ResolutionCard>,
    /// Engine, provider and precision: they move scores in the last digits.
    pub arithmetic: String,
    /// Weights that tell subtypes, after `--subtypes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtypes: Option<Vec<SubtypeModel>>,
}

impl Config {
    /// Every setting by its dotted name, in words, for telling a difference.
    #[must_use]
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        flatten("", &serde_json::to_value(self).unwrap_or_default(), &mut all);
        all
    }

    /// SHA-256 of the configuration.
    #[must_use]
    pub fn digest(&self) -> String {
        let text = serde_json::to_vec(self).expect("plain data becomes JSON");
        sha256(text)
    }
}

fn flatten(name: &str, value: &serde_json::Value, all: &mut BTreeMap<String, String>) {
    let within = |key: &str| match name {
        "" => key.to_owned(),
        name => format!("{name}.{key}"),
    };
    match value {
        serde_json::Value::Object(map) => {
            map.iter().for_each(|(key, value)| flatten(&within(key), value, all));
        }
        serde_json::Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, v)| flatten(&within(&i.to_string()), v, all));
        }
        serde_json::Value::String(text) => drop(all.insert(name.into(), text.clone())),
        // Scores are f32: written as they were given, not as the f64 they become.
        serde_json::Value::Number(n) if n.is_f64() => {
            let v = n.as_f64().unwrap_or(f64::NAN);
            let short = v as f32;
            let text = if f64::from(short) == v { short.to_string() } else { v.to_string() };
            all.insert(name.into(), text);
        }
        other => drop(all.insert(name.into(), other.to_string())),
    }
}

/// Why nothing can run.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The package is not a detector.
    #[error(transparent)]
    Card(#[from] CardError),
    /// No engine runs it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The card's numbers cannot be carried out.
    #[error("model `{name}`: {source}")]
    Recipe {
        /// The package.
        name: String,
        /// What is wrong.
        source: DetectError,
    },
    /// Two stages were asked for, the package has one.
    #[error("model `{0}` has no classifier; run the first stage alone with --stages 1")]
    OneStage(String),
}

impl Setup {
    /// Loads a package's networks and takes the recipe from its card.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn new(
        package: &ModelPackage,
        engine: &EngineOptions,
        stages: Stages,
        workers: Workers,
    ) -> Result<Self, SetupError> {
        let (recipe, thresholds, model) = from_card(package, stages)?;
        let models = infer::open(package, engine)?;
        let segmenter = models.segmenter.ok_or_else(|| CardError::Missing {
            name: package.card.name.clone(),
            part: "segmenter",
            job: "detection",
        })?;
        let classifier = match stages {
            Stages::One => None,
            Stages::Two => models.classifier,
        };
        let mut setup = Self::with_models(
            segmenter,
            classifier,
            models.report,
            recipe,
            thresholds,
            model,
            workers,
        );
        setup.config.resolution = package.card.resolution;
        Ok(setup)
    }

    /// Tells the subtypes of accepted figures, too.
    #[must_use]
    pub fn with_subtypes(mut self, network: SubtypeNetwork) -> Self {
        self.config.subtypes = Some(vec![network.model.clone()]);
        self.subtypes = Some(network);
        self
    }

    /// Lets no more decoded windows wait than an eighth of the memory holds.
    pub fn fit_memory(&mut self) {
        let side = u64::from(self.config.recipe.grid.window());
        let most = (self.limits.memory / 8 / (3 * side * side)).max(1);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.workers.in_flight = self.workers.in_flight.min(most);
    }

    /// The same with models of any make; tests use fakes.
    #[must_use]
    pub fn with_models(
        segmenter: Box<dyn Segmenter>,
        classifier: Option<Box<dyn Classifier>>,
        engine: EngineReport,
        recipe: Recipe,
        thresholds: OperatingPoint,
        model: ModelEntry,
        workers: Workers,
    ) -> Self {
        let arithmetic = [
            engine.engine.as_str(),
            &engine.provider,
            &engine.segmenter_precision,
            &engine.classifier_precision,
        ]
        .join("/");
        let config = Config {
            version: env!("CARGO_PKG_VERSION"),
            model,
            recipe,
            thresholds,
            tissue: TissueOptions::default(),
            tissue_margin_um: TISSUE_MARGIN_UM,
            resolution: None,
            arithmetic,
            subtypes: None,
        };
        Self {
            segmenter,
            classifier,
            engine,
            config,
            workers,
            limits: Limits::default(),
            openslide: None,
            force_mpp: false,
            any_mpp: false,
            subtypes: None,
        }
    }
}

fn from_card(
    package: &ModelPackage,
    stages: Stages,
) -> Result<(Recipe, OperatingPoint, ModelEntry), SetupError> {
    let card = package.card.detector()?;
    let name = &package.card.name;
    let wrong = |source| SetupError::Recipe { name: name.clone(), source };
    let refuse = |what: String| wrong(DetectError::Recipe(what));
    let side =
        |v: usize, what: &str| u32::try_from(v).map_err(|_| refuse(format!("{what} of {v} px")));
    let grid = Grid::new(
        side(card.segmenter.window, "windows")?,
        side(card.segmenter.stride, "a stride")?,
    )
    .map_err(wrong)?;
    let threshold = Score::new(card.candidates.threshold).map_err(|e| refuse(e.to_string()))?;
    let candidates = match card.candidates.method {
        CandidateMethod::Regions => CandidateRule::Regions {
            threshold,
            opening_radius: card.candidates.opening_radius,
            min_area_px: u64::from(card.candidates.min_area_px),
        },
        CandidateMethod::Peaks => CandidateRule::Peaks {
            threshold,
            min_distance_px: card.candidates.min_distance_px.unwrap_or_default(),
        },
    };
    let second = match (stages, card.classifier) {
        (Stages::One, _) => None,
        (Stages::Two, Some(c)) => Some(c),
        (Stages::Two, None) => return Err(SetupError::OneStage(name.clone())),
    };
    let crops = second
        .map(|c| {
            let (mpp, read) = infer::preprocess::sampling(c.mpp, c.crop, c.input);
            let side = side(read, "crops")?;
            Ok::<_, SetupError>(CropRecipe { mpp, side, positive: c.positive.clone() })
        })
        .transpose()?;
    let recipe = Recipe {
        mpp: card.segmenter.mpp,
        grid,
        candidates,
        crops,
        max_unread_share: Recipe::MAX_UNREAD_SHARE,
    };
    let model = ModelEntry {
        name: name.clone(),
        segmenter_sha256: card.segmenter.sha256.clone(),
        classifier_sha256: second.map(|c| c.sha256.clone()),
        license: package.card.license.clone(),
    };
    Ok((recipe, card.operating_point.clone(), model))
}
