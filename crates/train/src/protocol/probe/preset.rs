//! Presets of probes.

use std::collections::BTreeMap;

use net::encoder::EncoderConfig;
use net::probe::{Logistic, Neighbours};
use regions::task::Task;
use serde::{Deserialize, Serialize};

use super::super::preset::{Checked, Described, ProtocolData, common, copies};
use crate::preset::{Fault, Init, Preset, of_net};

/// `mithras train probe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbePreset {
    /// What is classified.
    pub task: Task,
    /// The positive class, for tasks that have none of their own (`folder`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<String>,
    /// The frozen encoder's weights.
    pub init: Init,
    /// Weak augmentation: symmetric copies of an image that are learnt from, 1 (none), 4 (flips) or 8 (flips
    /// and turns). An epoch of the linear probe sees one of them, the other probes see all.
    pub augment: u8,
    /// Symmetric copies whose probabilities are averaged when predicting: 1, 4 or 8.
    pub average: u8,
    /// Settings of the network.
    pub model: EncoderConfig,
    /// Crops and folds.
    pub data: ProtocolData,
    /// A linear probe in the run's own folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<ProbeEpochs>,
    /// Or any number of probes, each a run in a folder of its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub probes: BTreeMap<String, ProbeKind>,
}

/// What learns from the features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ProbeKind {
    /// Affine-free batch norm and a linear layer, by LARS.
    Linear(ProbeEpochs),
    /// Nearest neighbours by cosine.
    Knn(Neighbours),
    /// Logistic regression.
    Logistic(Logistic),
}

impl ProbeKind {
    /// Its word in presets.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Linear(_) => "linear",
            Self::Knn(_) => super::super::about::KNN,
            Self::Logistic(_) => "logistic",
        }
    }

    fn check(&self) -> Checked {
        match self {
            Self::Linear(t) => t.check(),
            Self::Knn(n) => of_net(n.check()),
            Self::Logistic(l) => of_net(l.check()),
        }
    }
}

/// Length and rate of a linear probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeEpochs {
    /// Seed of the order and of the copies drawn.
    pub seed: u64,
    /// Samples per step.
    pub batch: usize,
    /// Epochs.
    pub epochs: usize,
    /// Epochs of linear warm-up.
    pub warmup_epochs: f64,
    /// Peak rate per 256 samples.
    pub base_lr: f64,
    /// LARS' weight decay.
    pub weight_decay: f64,
    /// Standard deviation of the normal that the head's weights start from, cut at 2. MAE's recipe, which
    /// the paper follows, has 0.01. From 0 (weights of zero) LARS does not leave the start.
    #[serde(default = "mae_start")]
    pub head_std: f64,
}

fn mae_start() -> f64 {
    0.01
}

impl ProbeEpochs {
    fn check(&self) -> Checked {
        if !(0.0..=1.0).contains(&self.head_std) {
            return Err(Fault::new("head_std", format!("{} is not in [0, 1]", self.head_std)));
        }
        for (key, there) in [
            ("batch", self.batch > 0),
            ("epochs", self.epochs > 0),
            ("base_lr", self.base_lr > 0.0 && self.base_lr.is_finite()),
        ] {
            if !there {
                return Err(Fault::new(key, "must be positive"));
            }
        }
        if !(self.weight_decay >= 0.0 && self.weight_decay.is_finite()) {
            let reason = format!("{} is not a finite number from 0 up", self.weight_decay);
            return Err(Fault::new("weight_decay", reason));
        }
        Ok(())
    }
}

/// One probe of a preset.
pub(super) struct One {
    /// Its folder in the run, and its keys' table.
    pub name: Option<String>,
    pub kind: ProbeKind,
    /// The preset with this probe alone: what its run is made with.
    pub preset: ProbePreset,
}

impl One {
    /// The path of one of its keys.
    pub fn key(&self, key: &str) -> String {
        match &self.name {
            Some(name) => format!("probes.{name}.{key}"),
            None => format!("train.{key}"),
        }
    }
}

impl ProbePreset {
    pub(super) fn each(&self) -> Vec<One> {
        let own = self.train.iter().map(|t| One {
            name: None,
            kind: ProbeKind::Linear(t.clone()),
            preset: self.clone(),
        });
        let named = self.probes.iter().map(|(name, kind)| One {
            name: Some(name.clone()),
            kind: kind.clone(),
            preset: Self { probes: [(name.clone(), kind.clone())].into(), ..self.clone() },
        });
        own.chain(named).collect()
    }

    /// Seed of an encoder that starts from nothing: the linear probe's.
    pub(super) fn seed(&self) -> u64 {
        let seed = |one: One| match one.kind {
            ProbeKind::Linear(t) => Some(t.seed),
            _ => None,
        };
        self.each().into_iter().find_map(seed).unwrap_or(0)
    }
}

impl Preset for ProbePreset {
    fn check(&self) -> Checked {
        common(&self.data, &self.model)?;
        copies("augment", self.augment)?;
        copies("average", self.average)?;
        match (&self.train, self.probes.is_empty()) {
            (None, true) => {
                let why =
                    "are missing: `[train]` is a linear probe, `[probes.NAME]` one of several";
                return Err(Fault::new("probes", why));
            }
            (Some(_), false) => {
                let why = "cannot be used with `[probes]`; call it `[probes.linear]`";
                return Err(Fault::new("train", why));
            }
            _ => {}
        }
        for name in self.probes.keys() {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let taken = name.starts_with("fold-") || ["features", "test"].contains(&name.as_str());
            if name.is_empty() || taken || !name.chars().all(plain) {
                let why = "is not a valid folder name of letters, digits, `-` and `_`";
                return Err(Fault::new(format!("probes.{name}"), why));
            }
        }
        self.each()
            .iter()
            .try_for_each(|one| one.kind.check().map_err(|f| Fault::new(one.key(&f.key), f.reason)))
    }
}

impl Described for ProbePreset {
    const VERB: &'static str = "probe";

    fn parts(&self) -> (&ProtocolData, u8, Option<&str>) {
        (&self.data, self.average, self.positive.as_deref())
    }
}
