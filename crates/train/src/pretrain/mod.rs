//! `mithras train pretrain`: objective presets and baselines on one loop.

mod events;
mod figure;
mod log;
pub mod method;
mod micro;
pub mod preset;
pub mod step;
mod tensors;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crops::pairs::{CropSet, PairBatch, PairLoader};
use net::checkpoint::{self, Spec, TrainedOn};
use net::dist::Group;
use net::encoder::EncoderConfig;
use net::mae::Mae;
use net::optim::{AdamWConfig, groups_weight_decay};
use serde::Serialize;
use tch::nn::VarStore;
use tch::{Device, Tensor};

use crate::error::Result;
use crate::preset::Loop;
use crate::ranks;
use crate::run::Loss;
use crate::run::{RunOptions, RunSetup, Session, Validation, value};
use crate::stage::{Stage, Updated};
pub use method::{Pretraining, encoder_tensors};
pub use micro::Micro;
use preset::Preset as _;
use preset::Share;
pub use preset::{MethodKind, PretrainPreset};
pub(crate) use tensors::{micros, normalise};

/// The encoder a run hands on, in its directory.
pub const ENCODER: &str = "encoder.safetensors";

/// Of `run.json`.
#[derive(Serialize)]
struct About<'a> {
    stage: &'a str,
    method: &'a str,
    crops: usize,
    figures: usize,
    others: usize,
    ranks: usize,
    ranks_by: &'a str,
    micro_batch: usize,
    steps_per_epoch: usize,
    steps: usize,
}

/// Notes of the encoder that a run hands on.
#[derive(Serialize)]
struct Handed<'a> {
    pretraining: &'a str,
    objective: Option<net::loss::Objective>,
}

/// Keeps the step that went wrong.
fn save_batch(path: &Path, micros: &[Micro], step: usize) -> Result<()> {
    let join =
        |f: &dyn Fn(&Micro) -> Tensor| Tensor::cat(&micros.iter().map(f).collect::<Vec<_>>(), 0);
    let tensors = BTreeMap::from([
        ("views".to_string(), join(&|m| m.views.shallow_clone())),
        ("labels".to_string(), join(&|m| m.labels.shallow_clone())),
        ("cells".to_string(), join(&|m| m.cells.shallow_clone())),
        ("noise".to_string(), join(&|m| m.noise.shallow_clone())),
    ]);
    let metadata = [("step".to_string(), step.to_string())].into_iter().collect();
    Ok(checkpoint::save_tensors(path, &tensors, metadata)?)
}

/// Writes the encoder alone, as [`net::encoder::build`] with no head takes it.
fn save_encoder(path: &Path, vs: &BTreeMap<String, Tensor>, spec: &Spec) -> Result<()> {
    Ok(checkpoint::save_described(path, &encoder_tensors(vs), spec)?)
}

/// Pretraining, whichever the method.
struct Pretrainer<'a> {
    preset: &'a PretrainPreset,
    settings: &'a Loop,
    options: &'a RunOptions,
    loader: &'a PairLoader,
    method: Box<dyn Pretraining>,
    group: &'a Group,
    share: Share,
    device: Device,
    /// All weights.
    variables: BTreeMap<String, Tensor>,
    handed: Spec,
    /// Crops that the figures show, `[n, S, S, 3]`.
    shown: Vec<u8>,
    terms: RefCell<log::TermLog>,
    /// The step under way.
    current: RefCell<(Vec<Micro>, Option<step::StepResult>)>,
}

impl Pretrainer<'_> {
    fn sides(&self) -> (usize, usize) {
        sides(self.preset)
    }
}

/// Pixels of a view and of a patch, along one side.
fn sides(preset: &PretrainPreset) -> (usize, usize) {
    (preset.model.image as usize, preset.model.size.shape().3 as usize)
}

impl Stage for Pretrainer<'_> {
    type Batch = std::result::Result<PairBatch, crops::CorpusError>;

    fn draw(&self) -> impl Fn(usize) -> Self::Batch + Sync {
        let (loader, part) = (self.loader, self.share.part(self.group.rank()));
        move |step| loader.draw(step, part.clone())
    }

    fn loss(&self, batch: Self::Batch) -> Result<Loss> {
        let pieces = micros(&batch?, self.sides().0, self.share.micro, self.device);
        let precision = self.preset.train.precision;
        let found = step::gradients(&*self.method, &pieces, precision, self.group)?;
        let total = found.total;
        self.current.replace((pieces, Some(found)));
        Ok(Loss::Differentiated(total))
    }

    fn keep_failed(&self, step: usize) -> Option<PathBuf> {
        let path = self.options.out.join("bad-batch.safetensors");
        save_batch(&path, &self.current.borrow().0, step).ok()?;
        Some(path)
    }

    fn updated(&self, now: &Updated) -> Result<String> {
        self.method.after_update();
        let Updated { step, rate, norm, waited } = *now;
        let row = log::Measured { step: step + 1, rate, norm, waited };
        let (pieces, found) = self.current.take();
        drop(pieces);
        let Some(found) = found else { return Ok(String::new()) };
        let every = (self.preset.train.batch, self.preset.train.log_every);
        self.terms.borrow_mut().step(&row, &found, every, step + 1 == self.settings.steps)
    }

    /// Nothing is held out; the encoder and the figures of the epoch are written.
    fn validate(&self, step: usize) -> Option<Validation> {
        let (out, epoch) = (&self.options.out, step / self.settings.epoch + 1);
        let done = save_encoder(&out.join(ENCODER), &self.variables, &self.handed);
        let figures = out.join("figures");
        let drawn =
            figure::write(&figures, epoch, &*self.method, &self.shown, self.sides(), self.device);
        if let Err(e) = done.and(drawn) {
            self.options.reporter.note(&format!("warning: {e}"));
        }
        None
    }
}

/// Pretrains on the training crops of `dir`; the encoder ends in `RUN/encoder.safetensors`.
///
/// # Errors
/// [`crate::TrainError`]: corpus, preset, run directory, ranks, or a loss that is not finite (its batch is
/// kept in `RUN/bad-batch.safetensors`).
pub fn run(
    preset: &PretrainPreset,
    dir: &Path,
    workers: usize,
    options: &RunOptions,
) -> Result<()> {
    let (p, size) = (preset, preset.model.image);
    let (group, device) = ranks::join(&options.device)?;
    let share = p.share(group.world())?;

    let set = CropSet::training(dir, p.needs_labels())?;
    let (digest, crops, classes) = (set.digest.clone(), set.len(), set.classes());
    // Without labels nothing is learnt of them that a threshold could profit from.
    let seen = TrainedOn { slides: set.slides.clone(), patients: set.patients.clone() };
    let (seen, unlabelled) =
        if p.needs_labels() { (seen, None) } else { (TrainedOn::default(), Some(seen)) };
    let sides = sides(p);
    let (seed, batch) = (p.train.seed, p.train.batch);
    let loader = PairLoader::new(set, p.views.clone(), sides, seed, batch, workers)?;
    let settings = p.resolve(loader.steps_per_epoch());
    let steps = settings.steps;

    tch::manual_seed(seed as i64);
    let vs = VarStore::new(device);
    let method = method::build(&vs, p)?;
    let groups = groups_weight_decay(&vs, p.train.weight_decay, Mae::no_decay);
    let mut spec = Spec::new(&format!("pretraining-{}", p.method.name()), p, size as u32)?;
    spec.corpus_digest = digest.clone();
    let about = About {
        stage: "pretrain",
        method: p.method.name(),
        crops,
        figures: classes[0],
        others: classes[1],
        ranks: group.world(),
        ranks_by: Group::backend(device),
        micro_batch: share.micro,
        steps_per_epoch: settings.epoch,
        steps,
    };
    let writes = group.is_first();
    let opening = RunSetup {
        stage: "pretrain",
        groups,
        adam: AdamWConfig { beta1: p.train.betas[0], beta2: p.train.betas[1], eps: 1e-8 },
        settings: settings.clone(),
        preset: p.to_toml(),
        spec,
        about,
        random: vec![],
        held_out_digest: None,
        init_sha256: None,
        notes: vec![],
        lora: None,
        ranks: group.clone(),
    };
    let mut session = Session::open(vs, opening, options)?;
    let name = p.model.size.name();
    let config = EncoderConfig { image: size, ..EncoderConfig::new(name, 0) };
    let mut handed = Spec::new(name, &config, size as u32)?;
    handed.corpus_digest = digest;
    handed.preset_hash = p.digest();
    handed.trained_on = Some(seen);
    handed.pretrained_on = unlabelled;
    handed.notes = value(&Handed { pretraining: p.method.name(), objective: p.objective });
    let stage = Pretrainer {
        preset: p,
        settings: &settings,
        options,
        loader: &loader,
        group: &group,
        share,
        device,
        variables: session.vs.variables().into_iter().collect(),
        handed,
        shown: if method.reconstructs() { loader.plain(8)? } else { vec![] },
        terms: RefCell::new(log::TermLog::open(&options.out, session.start, writes)?),
        current: RefCell::default(),
        method,
    };
    session.train(&stage, session.start..steps).map(|_| ())
}

#[cfg(test)]
mod tests;
