//! Everything that changes a number, in one place that is written down and compared.

use crate::record::{ModelEntry, OWN_POINT, RESULTS_VERSION, SubtypeModel};
use base::renamed;
use detect::{FLAW_LIMITS, FlawLimits, Recipe, TISSUE_MARGIN_UM};
use infer::EngineReport;
use infer::card::ResolutionCard;
use mitosis::OperatingPoint;
use serde::Serialize;
use slide::TissueOptions;
use std::collections::BTreeMap;

/// The name of the engine's setting among [`Config::settings`].
pub(crate) const ENGINE_SETTING: &str = "arithmetic";

/// Everything that changes a number, as written to `run.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Config {
    /// Version of the numbers: [`RESULTS_VERSION`].
    pub results_version: u32,
    /// Package, digests and licence of the weights.
    pub model: ModelEntry,
    /// Windows, candidates, crops.
    pub recipe: Recipe,
    /// The frozen threshold pair.
    pub thresholds: OperatingPoint,
    /// Its name: one of the package's card, `package` or `given`.
    pub operating_point: String,
    /// How tissue is found.
    pub tissue: TissueOptions,
    /// How far outside the tissue a candidate may be and still be accepted, um.
    pub tissue_margin_um: f64,
    /// How areas that cannot be trusted are found.
    pub flaws: FlawLimits,
    /// Resolutions of slides that the model is made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<ResolutionCard>,
    /// Engine, provider and precisions, as in the settings of the engine: they move scores in the last digits.
    pub arithmetic: String,
    /// Weights of the subtype classifier, with `--subtypes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtypes: Option<Vec<SubtypeModel>>,
}

impl Config {
    /// The defaults around what a package gives, run by this engine.
    #[must_use]
    pub fn new(
        recipe: Recipe,
        thresholds: OperatingPoint,
        model: ModelEntry,
        engine: &EngineReport,
    ) -> Self {
        let arithmetic = [
            engine.engine.as_str(),
            &engine.provider,
            &engine.segmenter_precision,
            &engine.classifier_precision,
        ]
        .join("/");
        Self {
            results_version: RESULTS_VERSION,
            model,
            recipe,
            thresholds,
            operating_point: OWN_POINT.into(),
            tissue: TissueOptions::default(),
            tissue_margin_um: TISSUE_MARGIN_UM,
            flaws: FLAW_LIMITS,
            resolution: None,
            arithmetic,
            subtypes: None,
        }
    }

    /// Every setting as text by its dotted name, to report differences.
    #[must_use]
    pub fn settings(&self) -> BTreeMap<String, String> {
        settings(&serde_json::to_value(self).unwrap_or_default())
    }

    /// SHA-256 of the configuration.
    #[must_use]
    pub fn digest(&self) -> String {
        renamed::json_digest(self)
    }
}

/// [`Config::settings`] of one that was written down.
pub(crate) fn settings(config: &serde_json::Value) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    flatten("", config, &mut all);
    all
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
