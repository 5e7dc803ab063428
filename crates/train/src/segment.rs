//! `mithras train segment`: the first stage.

use std::rc::Rc;

use mitosis::RgbTile;
use net::checkpoint::Spec;
use net::dist::Group;
use net::optim::{self, AdamWConfig};
use net::unet::EfficientUnet;
use regions::augment::sample::IGNORE;
use regions::augment::{PlaceKind, SegmentPool, SegmentRules, SegmentSample, sample_rng};
use serde::Serialize;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::batch::{images, samples};
use crate::data::{Data, Source};
use crate::error::Result;
use crate::preset::{Loop, Preset, SegmentPreset};
use crate::run::Loss;
use crate::run::{RunOptions, RunSetup, Session, Validation};
use crate::stage::Stage;
use crate::start::{Exported, Samples, Target, initialise, is_exported, unfold};

/// Salt of the photometric draws, so that they do not repeat the spatial ones.
pub(crate) const PHOTOMETRIC: u64 = 0x5eed_c010;

/// Of `run.json`.
#[derive(Serialize)]
struct About<'a> {
    stage: &'a str,
    left_out: &'a str,
    init: &'a str,
    frames: usize,
    patches: usize,
    unlabelled: usize,
    validation_patches: usize,
    shortcuts: Vec<String>,
}

/// Side of the crops by which shortcuts are looked for, and how many of each kind and domain.
const SHORTCUTS: (usize, usize) = (64, 300);

/// Shortcuts that separate figures from the rest, one per line.
fn shortcuts(data: &Data) -> Vec<String> {
    let (side, most) = SHORTCUTS;
    let kinds = [PlaceKind::Figure, PlaceKind::Dark, PlaceKind::Listed];
    let domains = data.domains();
    let items = domains.iter().flat_map(|d| kinds.map(|kind| d.items(kind, side, most)));
    regions::shortcuts::check(&items.flatten().collect::<Vec<_>>()).warnings()
}

/// Target and keep-mask, `[N, 1, H, W]` each.
fn targets(samples: &[SegmentSample], device: Device) -> (Tensor, Tensor) {
    let side = samples[0].image.width as i64;
    let bytes: Vec<u8> = samples.iter().flat_map(|s| s.target.iter().copied()).collect();
    let t = Tensor::from_slice(&bytes).view([-1, 1, side, side]).to_device(device);
    (t.eq(1).to_kind(Kind::Float), t.ne(i64::from(IGNORE)).to_kind(Kind::Float))
}

fn tiles(samples: &[SegmentSample]) -> Vec<RgbTile> {
    samples.iter().map(|s| s.image.clone()).collect()
}

/// The description of a checkpoint made with a preset.
///
/// # Errors
/// Never in practice: the configuration is plain data.
pub fn spec(preset: &SegmentPreset) -> Result<Spec> {
    let spec = Spec::new(preset.model.architecture(), &preset.model, preset.data.patch as u32)?;
    Ok(Spec { mpp: preset.data.mpp.get(), ..spec })
}

/// Training of the first stage.
struct Segmentation<'a> {
    preset: &'a SegmentPreset,
    pool: SegmentPool,
    held: Vec<SegmentSample>,
    net: EfficientUnet,
    device: Device,
}

/// Sample `i`, changed at the images' own resolution, then reduced once, as slides are read.
fn sample(preset: &SegmentPreset, pool: &SegmentPool, i: u64) -> SegmentSample {
    let seed = preset.train.seed;
    let sample = pool.sample(seed, i);
    let image = preset.photometric.apply(&sample.image, &mut sample_rng(seed ^ PHOTOMETRIC, i));
    SegmentSample { image, ..sample }.reduced(preset.data.reduction())
}

impl Segmentation<'_> {
    fn settings(&self) -> &Loop {
        &self.preset.train
    }
}

impl Stage for Segmentation<'_> {
    type Batch = Vec<SegmentSample>;

    fn draw(&self) -> impl Fn(usize) -> Self::Batch + Sync {
        let (preset, pool, batch) = (self.preset, &self.pool, self.settings().batch);
        samples(batch, 0..batch, move |i| sample(preset, pool, i))
    }

    fn loss(&self, batch: Self::Batch) -> Result<Loss> {
        let (p, device) = (self.settings(), self.device);
        let x = p.memory_format.image(&images(&tiles(&batch), device));
        let (target, keep) = targets(&batch, device);
        let logits = p.precision.run(device, || self.net.forward(&x, true));
        Ok(Loss::Open(self.preset.loss.forward(&logits, &target, Some(&keep)).total))
    }

    fn validate(&self, _: usize) -> Option<Validation> {
        let (mut sum, mut n, mut overlap, mut size) = (0.0, 0.0, 0.0, 0.0);
        for part in self.held.chunks(self.settings().batch) {
            let (target, keep) = targets(part, self.device);
            let logits = self.net.forward(&images(&tiles(part), self.device), false);
            let terms = self.preset.loss.forward(&logits, &target, Some(&keep));
            sum += terms.total.double_value(&[]) * part.len() as f64;
            n += part.len() as f64;
            let p = logits.sigmoid().gt(0.5).to_kind(Kind::Float) * &keep;
            overlap += 2.0 * (&p * &target).sum(Kind::Float).double_value(&[]);
            size += (p + target).sum(Kind::Float).double_value(&[]);
        }
        (n > 0.0).then(|| Validation { loss: sum / n, metric: overlap / size })
    }
}

/// Trains the segmenter of one fold; the weights end in `RUN/model.safetensors`.
///
/// # Errors
/// [`crate::TrainError`]: data, preset, run directory, or a loss that is not a number.
pub fn run(
    preset: &SegmentPreset,
    source: &Source,
    fold: &str,
    options: &RunOptions,
) -> Result<()> {
    train_on(preset, &source.data(fold)?, options)
}

/// Trains the segmenter on images that were read before.
///
/// # Errors
/// As [`run`].
pub fn train_on(preset: &SegmentPreset, data: &Data, options: &RunOptions) -> Result<()> {
    crate::ranks::alone()?;
    let p = &preset.train;
    let device = net::device::pick(&options.device)?;
    let factor = preset.data.reduction();
    let mut pool = SegmentPool::new(
        &data.scenes.frames,
        &data.scenes.exhaustive_patches,
        data.scenes.unlabelled.iter().flat_map(|f| f.scenes.clone()).collect(),
        SegmentRules {
            shares: &preset.shares,
            cells: &preset.cells,
            spatial: preset.spatial.clone(),
            side: preset.data.patch * factor,
            radius: preset.data.radius,
            ring: preset.data.ring,
        },
    );
    if let Some(most) = preset.data.max_slide_share {
        pool.cap_slides(most);
    }
    let shortcuts = shortcuts(data);
    options.report_shortcuts(&shortcuts);
    let held = pool.validation(&data.scenes.validation, preset.data.validation);
    let held: Vec<_> = held.into_iter().map(|s| s.reduced(factor)).collect();

    tch::manual_seed(p.seed as i64);
    let vs = VarStore::new(device);
    let net = EfficientUnet::new(&vs.root(), &preset.model)?;
    let start = match is_exported(options.init.as_deref()) {
        Some(file) => {
            let stage = Exported::Segmenter(&net);
            let draw = |i| sample(preset, &pool, i).image;
            unfold(&vs, preset.init, file, &stage, Samples { batch: p.batch, draw })?
        }
        None => initialise(&vs, preset.init, options.weights(), &Target::Segmenter)?,
    };
    let groups = optim::groups_scaled(
        &vs,
        p.weight_decay,
        |_| false,
        |name| {
            if name.starts_with("encoder.") { preset.encoder_lr } else { 1.0 }
        },
    );
    let mut spec = spec(preset)?;
    spec.corpus_digest.clone_from(&data.scenes.digest);
    start.note(&mut spec, data.trained_on.clone());
    let about = About {
        stage: "segment",
        left_out: &data.left_out,
        init: &start.text,
        frames: data.scenes.frames.scenes.len(),
        patches: data.scenes.exhaustive_patches.len(),
        unlabelled: data.scenes.unlabelled.iter().map(|f| f.scenes.len()).sum(),
        validation_patches: held.len(),
        shortcuts,
    };
    let opening = RunSetup {
        stage: "segment",
        groups,
        adam: AdamWConfig::default(),
        settings: p.clone(),
        preset: preset.to_toml(),
        spec,
        about,
        notes: start.notes(&data.left_out, &data.held_out),
        held_out_digest: Some(data.held_out_digest.clone()),
        init_sha256: start.sha256,
        random: start.random,
        lora: None,
        ranks: Rc::new(Group::single()),
    };
    let mut session = Session::open(vs, opening, options)?;
    let stage = Segmentation { preset, pool, held, net, device };
    session.train(&stage, session.start..p.steps).map(|_| ())
}
