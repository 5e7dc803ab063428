//! Probing: the encoder sees every item once, and any number of probes learn from its cached features.

mod cache;
mod linear;
mod preset;

use std::path::{Path, PathBuf};

use base::file::Lock;
use net::checkpoint::{self, Spec};
use net::encoder::{self, Encoder};
use regions::fold::Fold;
use regions::task::{Folds, TrainingSet};
use serde::Serialize;
use tch::nn::VarStore;
use tch::{Kind as Dtype, Tensor};

use self::cache::{Cache, Source};
use self::preset::One;
use super::about::{About, Part, put_notes};
use super::preset::Described as _;
use super::shared::{self, begin, describe_model};
use super::{PREDICTIONS, fold_dir, predict};
use crate::error::{Result, TrainError};
use crate::preset::Preset as _;
use crate::run::{FOLD, MODEL, RunOptions};
use crate::start::{Start, Target, initialise};
use crate::text::write_text;

pub use self::preset::{ProbeEpochs, ProbeKind, ProbePreset};

/// Where a run stores features by default.
const FEATURES: &str = "features";

/// A run of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// Its folder.
    pub run: PathBuf,
    /// Regressions that ended above their tolerance, as text.
    pub warnings: Vec<String>,
    /// Per class, the shortcuts that separate it from the rest; the same for every probe of a run.
    pub shortcuts: Vec<String>,
}

/// `shortcuts.json`.
#[derive(Serialize)]
struct Shortcuts<'a> {
    schema: &'a str,
    warnings: &'a [String],
}

/// Version of `shortcuts.json`.
const SHORTCUTS: &str = "mithras.shortcuts/1";

/// Notes of the frozen encoder.
#[derive(Serialize)]
struct Notes<'a> {
    init: &'a str,
    features_sha256: &'a str,
    probe: &'a str,
    augment: u8,
    average: u8,
    crop: usize,
    fold: usize,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    random_at_start: &'a [String],
}

/// The encoder with the head that the task needs.
struct Model {
    vs: VarStore,
    net: Box<dyn Encoder>,
    spec: Spec,
    start: Start,
}

/// The frozen encoder.
fn frozen(preset: &ProbePreset, spec: Spec, options: &RunOptions) -> Result<Model> {
    let device = net::device::pick(&options.device)?;
    tch::manual_seed(preset.seed() as i64);
    let vs = VarStore::new(device);
    let net = encoder::build(&vs.root(), &preset.model)?;
    let start = initialise(&vs, preset.init, options.weights(), &Target::Encoder(net.as_ref()))?;
    shared::reset_head(&vs, net.as_ref(), preset.model.head_bias);
    Ok(Model { vs, net, spec, start })
}

/// Features `[N, D]` to probabilities `[N, classes]` in f64.
type Probabilities = dyn Fn(&Tensor) -> Result<Tensor>;

/// A probe that has learnt.
struct Learnt {
    probabilities: Box<Probabilities>,
    /// Weight and bias of the linear layer that it amounts to, if it does.
    head: Option<(Tensor, Tensor)>,
    /// A warning for the user.
    warning: Option<String>,
}

/// The features of some items, copy after copy, `[copies * items, D]`, and their classes.
fn rows(set: &TrainingSet, items: &[usize], features: &Tensor) -> (Tensor, Vec<i64>) {
    let at: Vec<i64> = items.iter().map(|&i| i as i64).collect();
    let some = features.index_select(1, &Tensor::from_slice(&at)).flatten(0, 1);
    let classes: Vec<i64> = items.iter().map(|&i| set.items()[i].class as i64).collect();
    (some, classes.repeat(features.size()[0] as usize))
}

/// Learns from the training side of a fold, `features [copies, N, D]`.
fn learn(
    one: &One,
    set: &TrainingSet,
    fold: &Fold,
    features: &Tensor,
    dir: &Path,
) -> Result<Learnt> {
    let classes = one.preset.model.classes;
    match &one.kind {
        ProbeKind::Linear(t) => {
            let found = linear::train(t, &one.preset.model, set, fold, features, dir)?;
            let (head, short) = (found.head, found.warning);
            let folded = head.folded();
            let softmax = move |x: &Tensor| Ok(head.forward(x, false).softmax(-1, Dtype::Double));
            let warning = short.map(|w| format!("{}: {w}", dir.display()));
            Ok(Learnt { probabilities: Box::new(softmax), head: Some(folded), warning })
        }
        ProbeKind::Knn(votes) => {
            let (x, labels) = rows(set, &fold.train, features);
            let votes = *votes;
            let near = move |q: &Tensor| Ok(votes.probabilities(&x, &labels, q, classes)?);
            Ok(Learnt { probabilities: Box::new(near), head: None, warning: None })
        }
        ProbeKind::Logistic(settings) => {
            let (x, labels) = rows(set, &fold.train, features);
            let fit = settings.fit(&x, &labels, classes, features.size()[0] as usize)?;
            let warning = (!fit.converged).then(|| {
                let (steps, left) = (fit.iterations, fit.gradient);
                let allowed = one.key("tolerance");
                format!("{}: {left:.1e} after {steps} steps, above {allowed}", dir.display())
            });
            let text = format!(
                "iterations,objective,gradient,converged\n{},{},{:e},{}\n",
                fit.iterations, fit.objective, fit.gradient, fit.converged
            );
            write_text(&dir.join("metrics.csv"), &text)?;
            let float = |t: &Tensor| t.to_kind(Dtype::Float);
            let head = Some((float(&fit.weight), float(&fit.bias)));
            let softmax = move |q: &Tensor| Ok(fit.probabilities(q));
            Ok(Learnt { probabilities: Box::new(softmax), head, warning })
        }
    }
}

/// What the run of a probe is about.
fn about(one: &One, set: &TrainingSet, folds: &Folds, cache: &Cache) -> Result<About> {
    Ok(About {
        probe: Some(one.kind.word().into()),
        features_sha256: Some(cache.sha256.clone()),
        ..one.preset.about(set, folds)?
    })
}

/// A fold with its number.
struct NumberedFold {
    k: usize,
    fold: Fold,
}

/// More neighbours than a fold has to learn from are refused before any work.
fn check_neighbours(one: &One, folds: &[NumberedFold]) -> Result<()> {
    let ProbeKind::Knn(votes) = &one.kind else { return Ok(()) };
    let fewest = folds.iter().map(|f| f.fold.train.len()).min().unwrap_or(0);
    let there = fewest * usize::from(one.preset.augment);
    if votes.k as usize > there {
        let reason = format!("{} neighbours, and a fold has {there} images", votes.k);
        return Err(TrainError::Preset { path: one.key("k").into(), reason });
    }
    Ok(())
}

/// Probes the folds; features are stored in `cache`, or in the run.
pub(super) fn run(
    preset: &ProbePreset,
    set: &TrainingSet,
    manifest: &Folds,
    only: Option<usize>,
    cache: Option<&Path>,
    options: &RunOptions,
) -> Result<Vec<Probed>> {
    if !options.by_fold() {
        return probe(preset, set, manifest, only, cache, options);
    }
    // Each fold has an encoder of its own, and features.
    let mut all: Vec<Probed> = vec![];
    for k in (0..manifest.count()).filter(|k| only.is_none_or(|o| o == *k)) {
        for one in probe(preset, set, manifest, Some(k), cache, options)? {
            match all.iter_mut().find(|known| known.run == one.run) {
                Some(known) => known.warnings.extend(one.warnings),
                None => all.push(one),
            }
        }
    }
    Ok(all)
}

/// Probes with one encoder.
fn probe(
    preset: &ProbePreset,
    set: &TrainingSet,
    manifest: &Folds,
    only: Option<usize>,
    cache: Option<&Path>,
    options: &RunOptions,
) -> Result<Vec<Probed>> {
    let by_fold = options.by_fold();
    let options = &options.clone().in_fold(&only.unwrap_or_default().to_string());
    let _lock = Lock::take(&options.out)?;
    let wanted = (0..manifest.count()).filter(|k| only.is_none_or(|o| o == *k));
    let folds: Vec<NumberedFold> =
        wanted.map(|k| Ok(NumberedFold { k, fold: manifest.fold(k)? })).collect::<Result<_>>()?;
    let model = frozen(preset, describe_model(&preset.model, set, manifest)?, options)?;
    let notes = folds.iter().flat_map(|f| overlap_notes(&model, set, f.k, &f.fold));
    notes.for_each(|note| options.reporter.note(&note));
    let source = Source {
        net: model.net.as_ref(),
        model: &preset.model,
        vs: &model.vs,
        set,
        crop: preset.data.crop,
    };
    let own = options.out.join(FEATURES);
    let cache = Cache::new(cache.unwrap_or(&own), &source)?;
    let placed = |one: One| {
        let run = one.name.as_ref().map_or_else(|| options.out.clone(), |n| options.out.join(n));
        (one, run)
    };
    let runs: Vec<(One, PathBuf)> = preset.each().into_iter().map(placed).collect();
    for (one, run) in &runs {
        check_neighbours(one, &folds)?;
        let there = folds.iter().map(|f| fold_dir(run, f.k)).find(|dir| done(dir));
        if let (false, Some(path)) = (options.resume, there) {
            return Err(TrainError::There { path });
        }
    }
    for (one, run) in &runs {
        std::fs::create_dir_all(run).map_err(|e| TrainError::run(run, e))?;
        let mut about = about(one, set, manifest, &cache)?;
        if by_fold {
            (about.features_sha256, about.init_sha256) = (None, Some(FOLD.into()));
        }
        begin(run, &about, set)?;
        write_text(&run.join("preset.toml"), &one.preset.to_toml())?;
    }
    write_text(&options.out.join("preset.toml"), &preset.to_toml())?;
    let seen: Vec<usize> = (0..set.items().len()).collect();
    let shortcuts = shared::shortcuts(set, &seen);
    let found = Shortcuts { schema: SHORTCUTS, warnings: &shortcuts };
    let text = serde_json::to_string_pretty(&found).expect("plain data");
    write_text(&options.out.join("shortcuts.json"), &text)?;
    let features = cache.features(&source, preset.augment.max(preset.average))?;
    let extracted = Extracted { model: &model, cache: &cache, features };
    let mut probed = vec![];
    for (one, run) in runs {
        let mut warnings = vec![];
        for fold in folds.iter().filter(|f| !done(&fold_dir(&run, f.k))) {
            warnings.extend(predict_fold(&one, &run, set, fold, &extracted)?);
        }
        probed.push(Probed { run, warnings, shortcuts: shortcuts.clone() });
    }
    Ok(probed)
}

/// The predictions are written last.
fn done(fold: &Path) -> bool {
    fold.join(format!("{PREDICTIONS}.csv")).is_file()
}

/// What a frozen network makes of the items.
struct Extracted<'a> {
    model: &'a Model,
    cache: &'a Cache,
    /// `[copies, N, D]`.
    features: Tensor,
}

/// Learns from one side of a fold and predicts the other.
fn predict_fold(
    one: &One,
    run: &Path,
    set: &TrainingSet,
    &NumberedFold { k, ref fold }: &NumberedFold,
    Extracted { model, cache, features }: &Extracted<'_>,
) -> Result<Option<String>> {
    let dir = fold_dir(run, k);
    std::fs::create_dir_all(&dir).map_err(|e| TrainError::run(&dir, e))?;
    let preset = &one.preset;
    let seen = features.narrow(0, 0, preset.augment.into());
    let learnt = learn(one, set, fold, &seen, &dir)?;
    let held: Vec<i64> = fold.validation.iter().map(|&i| i as i64).collect();
    let held = features.index_select(1, &Tensor::from_slice(&held));
    let copies = (0..i64::from(preset.average))
        .map(|s| tch::no_grad(|| (learnt.probabilities)(&held.get(s))))
        .collect::<Result<Vec<_>>>()?;
    let p = Tensor::stack(&copies, 0).mean_dim([0_i64].as_slice(), false, Dtype::Double);
    let mut rows = vec![];
    for (row, &i) in fold.validation.iter().enumerate() {
        rows.push(predict::prediction(
            set,
            i,
            Part::Fold(k),
            Vec::<f64>::try_from(p.get(row as i64))?,
        )?);
    }
    if let Some(head) = learnt.head {
        let notes = crate::run::value(&Notes {
            init: &model.start.text,
            features_sha256: &cache.sha256,
            probe: one.kind.word(),
            augment: preset.augment,
            average: preset.average,
            crop: preset.data.crop,
            fold: k,
            random_at_start: &model.start.random,
        });
        let mut spec = Spec { notes, preset_hash: preset.digest(), ..model.spec.clone() };
        model.start.note(&mut spec, shared::list_trained_on(set, &fold.train));
        save(model, head, &dir.join(MODEL), &spec)?;
    }
    put_notes(&dir, &overlap_notes(model, set, k, fold))?;
    predict::write(&dir, PREDICTIONS, set, &rows)?;
    Ok(learnt.warning)
}

/// Notes on a fold whose held-out slides the encoder was trained on.
fn overlap_notes(model: &Model, set: &TrainingSet, k: usize, fold: &Fold) -> Vec<String> {
    model.start.notes(&k.to_string(), &shared::names(set, &fold.validation))
}

/// Encoder and probe as one classifier, for the test part and for export.
fn save(model: &Model, (weight, bias): (Tensor, Tensor), path: &Path, spec: &Spec) -> Result<()> {
    tch::no_grad(|| {
        for (name, mut t) in model.vs.variables() {
            match name.strip_prefix(model.net.head()) {
                Some("weight") => t.copy_(&weight),
                Some("bias") => t.copy_(&bias),
                _ => {}
            }
        }
    });
    Ok(checkpoint::save(path, &model.vs, spec)?)
}
