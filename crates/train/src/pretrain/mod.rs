//! `mithras train pretrain`: objective presets and baselines on one loop.

mod events;
mod figure;
mod log;
pub mod method;
mod micro;
pub mod preset;
pub mod step;

use std::path::Path;

use crops::pairs::{CropSet, PairBatch, PairLoader};
use net::checkpoint::{self, Spec, TrainedOn};
use net::dist::Group;
use net::encoder::EncoderConfig;
use net::mae::Mae;
use net::optim::{AdamWConfig, groups_weight_decay};
use serde::Serialize;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::batch::{MEAN, STD};
use crate::error::{Result, TrainError};
use crate::ranks;
use crate::run::{Opening, RunOptions, Session, value};
pub use method::{Pretraining, encoder_tensors};
pub use micro::Micro;
use preset::Preset as _;
pub use preset::{Kind as MethodKind, PretrainPreset};

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

/// `[n, S, S, 3]` bytes to `[n, 3, S, S]`, normalised, on `device`: bytes travel there, and the
/// arithmetic is [`pixels::input::Normalisation`]'s, to the last bit. Divisors are tensors because
/// a GPU multiplies by the inverse of a plain number.
pub(crate) fn normalise(pixels: &[u8], size: usize, device: Device) -> Tensor {
    let s = size as i64;
    let of = |v: [f32; 3]| Tensor::from_slice(&v).view([1, 3, 1, 1]).to_device(device);
    let x = Tensor::from_slice(pixels).view([-1, s, s, 3]).to_device(device);
    let x = x.permute([0, 3, 1, 2]).to_kind(Kind::Float) / of([255.0; 3]);
    ((x - of(MEAN)) / of(STD)).contiguous()
}

/// A batch cut into micro-batches of `k` samples, on `device`.
pub(crate) fn micros(batch: &PairBatch, size: usize, k: usize, device: Device) -> Vec<Micro> {
    let (pixels, tiles) = (2 * 3 * size * size, batch.cells.len() / batch.n.max(1));
    (0..batch.n)
        .step_by(k)
        .map(|from| {
            let n = k.min(batch.n - from);
            let (a, b) = (from, from + n);
            let per_view = |t: Tensor| t.view([2 * n as i64, -1]).to_device(device);
            Micro {
                views: normalise(&batch.pixels[a * pixels..b * pixels], size, device),
                labels: Tensor::from_slice(&batch.labels[a..b]).to_device(device),
                cells: per_view(Tensor::from_slice(&batch.cells[a * tiles..b * tiles]))
                    .to_kind(Kind::Int64),
                noise: per_view(Tensor::from_slice(&batch.noise[a * tiles..b * tiles])),
            }
        })
        .collect()
}

/// Keeps the step that went wrong.
fn save_batch(path: &Path, micros: &[Micro], step: usize) -> Result<()> {
    let join =
        |f: &dyn Fn(&Micro) -> Tensor| Tensor::cat(&micros.iter().map(f).collect::<Vec<_>>(), 0);
    let tensors = vec![
        ("views".to_string(), join(&|m| m.views.shallow_clone())),
        ("labels".to_string(), join(&|m| m.labels.shallow_clone())),
        ("cells".to_string(), join(&|m| m.cells.shallow_clone())),
        ("noise".to_string(), join(&|m| m.noise.shallow_clone())),
    ];
    let metadata = [("step".to_string(), step.to_string())].into_iter().collect();
    Ok(checkpoint::save_tensors(path, &tensors, metadata)?)
}

/// Writes the encoder alone, as [`net::encoder::build`] with no head takes it.
fn save_encoder(path: &Path, vs: &[(String, Tensor)], spec: &Spec) -> Result<()> {
    Ok(checkpoint::save_described(path, &encoder_tensors(vs), spec)?)
}

/// Pretrains on the training crops of `dir`; the encoder ends in `RUN/encoder.safetensors`.
///
/// # Errors
/// [`TrainError`]: corpus, preset, run directory, ranks, or a loss that is no number (its batch is
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
    let seen = p
        .needs_labels()
        .then(|| TrainedOn { slides: set.slides.clone(), patients: set.patients.clone() });
    let patch = p.model.size.shape().3;
    let sides = (size as usize, patch as usize);
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
    let opening = Opening {
        groups,
        adam: AdamWConfig { beta1: p.train.betas[0], beta2: p.train.betas[1], eps: 1e-8 },
        settings: settings.clone(),
        preset: p.to_toml(),
        spec,
        about,
        random: vec![],
        lora: None,
        ranks: group.clone(),
    };
    let mut session = Session::open(vs, opening, options)?;
    let variables: Vec<_> = session.vs.variables().into_iter().collect();
    let name = p.model.size.name();
    let config = EncoderConfig { image: size, ..EncoderConfig::new(name, 0) };
    let mut handed = Spec::new(name, &config, size as u32)?;
    handed.corpus_digest = digest;
    handed.preset_hash = p.digest();
    handed.trained_on = Some(seen.unwrap_or_default());
    handed.notes = value(&Handed { pretraining: p.method.name(), objective: p.objective });
    let figures = options.out.join("figures");
    let shown = if method.reconstructs() { loader.plain(8)? } else { vec![] };
    let mut terms = log::TermLog::open(&options.out, session.start, writes)?;

    let part = share.part(group.rank());
    loader
        .for_each(session.start..steps, &part, |at, batch, waited| {
            session.seed_step(at);
            let device = session.device();
            let pieces = micros(&batch, sides.0, share.micro, device);
            session.zero_grad();
            let found = step::gradients(&*method, &pieces, p.train.precision, &group)
                .and_then(|found| {
                    ranks::sum_gradients(&session.vs, &group, &[])?;
                    Ok(found)
                })
                .map_err(|e| session.rescue(at, e))?;
            let norm = session.apply(at, found.total).inspect_err(|_| {
                let path = options.out.join("bad-batch.safetensors");
                if save_batch(&path, &pieces, at).is_ok() {
                    eprintln!("the batch is kept in {}", path.display());
                }
            })?;
            method.after_update();
            let epoch = at / settings.epoch;
            let row = log::Measured { step: at + 1, rate: settings.rate(at), norm, waited };
            let note =
                terms.step(&row, &found, (p.train.batch, p.train.log_every), at + 1 == steps)?;
            session.note(note);
            let at_epochs_end = || {
                if writes {
                    let done = save_encoder(&options.out.join(ENCODER), &variables, &handed);
                    let drawn = figure::write(&figures, epoch + 1, &*method, &shown, sides, device);
                    if let Err(e) = done.and(drawn) {
                        eprintln!("warning: {e}");
                    }
                }
                None
            };
            if session.after(at, &at_epochs_end)? { Ok(()) } else { Err(Stop::Early) }
        })
        .or_else(Stop::into_result)
}

/// Why the loop ended before its last step.
enum Stop {
    Early,
    Failed(Box<TrainError>),
}

impl Stop {
    fn into_result(self) -> Result<()> {
        match self {
            Self::Early => Ok(()),
            Self::Failed(e) => Err(*e),
        }
    }
}

impl From<TrainError> for Stop {
    fn from(e: TrainError) -> Self {
        Self::Failed(Box::new(e))
    }
}

impl From<crops::CorpusError> for Stop {
    fn from(e: crops::CorpusError) -> Self {
        TrainError::from(e).into()
    }
}

#[cfg(test)]
mod tests;
