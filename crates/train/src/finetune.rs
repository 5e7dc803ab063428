//! `mithras train finetune`: the second stage (D4, K1, K2).

use std::path::Path;

use corpus::augment::{ClassifierPool, CropSample, rng_of};
use corpus::fold::LeftOut;
use corpus::resample::resize;
use mitosis::RgbTile;
use net::checkpoint::Spec;
use net::encoder::{self, Encoder};
use net::loss::CrossEntropy;
use serde_json::json;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::batch::{for_each_step, images};
use crate::data::Data;
use crate::error::{Result, TrainError};
use crate::preset::FinetunePreset;
use crate::run::{RunOptions, Session, Validation};
use crate::segment::{PHOTOMETRIC, initialise};

/// Class names of the second stage, in output order.
pub const CLASSES: [&str; 2] = ["non_mitotic", "mitotic"];

/// A mined place on a training frame, working pixels (0.25 um/px).
#[derive(Clone, Debug, PartialEq)]
pub struct Mined {
    /// Name of the frame.
    pub frame: String,
    /// Rightwards.
    pub x: f32,
    /// Downwards.
    pub y: f32,
}

/// Reads `frame,x,y[,...]` lines below a header.
///
/// # Errors
/// [`TrainError::Run`] naming the malformed line.
pub fn read_mined(path: &Path) -> Result<Vec<Mined>> {
    let text = std::fs::read_to_string(path).map_err(|e| TrainError::run(path, e))?;
    text.lines()
        .skip(1)
        .map(|line| {
            let mut f = line.split(',');
            let mut next = || f.next().unwrap_or_default();
            let (frame, x, y) = (next().to_string(), next().parse(), next().parse());
            match (x, y) {
                (Ok(x), Ok(y)) => Ok(Mined { frame, x, y }),
                _ => Err(TrainError::run(path, format!("malformed line `{line}`"))),
            }
        })
        .collect()
}

/// The description of a checkpoint made with a preset.
///
/// # Errors
/// Never in practice: the configuration is plain data.
pub fn spec(preset: &FinetunePreset) -> Result<Spec> {
    let mut spec = Spec::new(&preset.model.name, &preset.model, preset.model.image as u32)?;
    spec.classes = CLASSES.map(str::to_string).to_vec();
    Ok(spec)
}

fn labels(samples: &[CropSample], device: Device) -> Tensor {
    let all: Vec<i64> = samples.iter().map(|s| i64::from(s.mitotic)).collect();
    Tensor::from_slice(&all).to_device(device)
}

fn tiles(samples: &[CropSample]) -> Vec<RgbTile> {
    samples.iter().map(|s| s.image.clone()).collect()
}

/// Share of (figure, other) pairs in the right order; ties count half. NaN without both classes.
fn auc(scores: &[(f64, bool)]) -> f64 {
    let of = |mitotic: bool| -> Vec<f64> {
        scores.iter().filter(|s| s.1 == mitotic).map(|s| s.0).collect()
    };
    let (pos, neg) = (of(true), of(false));
    let pair = |p: f64, n: f64| if p > n { 1.0 } else { f64::from(u8::from(p == n)) / 2.0 };
    let wins: f64 = pos.iter().flat_map(|&p| neg.iter().map(move |&n| pair(p, n))).sum();
    wins / (pos.len() * neg.len()) as f64
}

fn validate(
    net: &dyn Encoder,
    loss: &CrossEntropy,
    samples: &[CropSample],
    batch: usize,
    device: Device,
) -> Option<Validation> {
    let (mut sum, mut scores) = (0.0, vec![]);
    for part in samples.chunks(batch) {
        let logits = net.forward(&images(&tiles(part), device), false).to_kind(Kind::Float);
        let l = loss.forward(&logits, &labels(part, device));
        sum += l.double_value(&[]) * part.len() as f64;
        let p = logits.softmax(-1, Kind::Float).select(1, 1);
        for (i, s) in part.iter().enumerate() {
            scores.push((p.double_value(&[i as i64]), s.mitotic));
        }
    }
    let n = samples.len() as f64;
    (n > 0.0).then(|| Validation { loss: sum / n, metric: auc(&scores) })
}

/// Trains the classifier of one fold; the weights end in `RUN/model.safetensors`. `mined` lists
/// false candidates of the fold's own segmenter on its training frames; places on other frames
/// are an error.
///
/// # Errors
/// [`TrainError`]: data, preset, run directory, or a loss that is no number.
pub fn run(
    preset: &FinetunePreset,
    dir: &Path,
    left_out: &LeftOut,
    mined: &[Mined],
    options: &RunOptions,
) -> Result<()> {
    let p = &preset.train;
    let device = net::device::pick(&options.device)?;
    let mut data = Data::open(dir, left_out, preset.data.ami, preset.data.ami_most)?;
    let frames = &data.icpr.train.scenes;
    let mut places = vec![];
    for m in mined {
        let at =
            frames.iter().position(|s| s.name == m.frame).ok_or_else(|| TrainError::Preset {
                path: "--mined".into(),
                reason: format!("frame {} is not on the training side of this fold", m.frame),
            })?;
        places.push((at, m.x, m.y));
        data.digest.push_str(&format!("+{}:{:.1},{:.1}", m.frame, m.x, m.y));
    }
    if !mined.is_empty() {
        use sha2::{Digest, Sha256};
        data.digest = crate::preset::hex(&Sha256::digest(data.digest.as_bytes()));
    }
    let pool = ClassifierPool::new(
        &data.icpr.train,
        data.midog.as_ref(),
        &places,
        &preset.shares,
        preset.spatial.clone(),
        preset.data.crop,
    );
    let side = preset.model.image as usize;
    let sized = |s: CropSample| CropSample { image: resize(&s.image, side, side), ..s };
    let held: Vec<CropSample> = pool
        .validation(&data.icpr.validation, preset.data.validation_ratio)
        .into_iter()
        .map(sized)
        .collect();

    tch::manual_seed(p.seed as i64);
    let vs = VarStore::new(device);
    let net = encoder::build(&vs.root(), &preset.model)?;
    let start = initialise(&vs, preset.init, options.init.as_deref(), "")?;
    let groups = encoder::layer_decay_groups(&vs, net.as_ref(), p.weight_decay, preset.layer_decay);
    let mut spec = spec(preset)?;
    spec.corpus_digest = data.digest.clone();
    let about = json!({
        "stage": "finetune", "left_out": left_out.to_string(), "init": start,
        "places": pool.sizes().map(|(k, n)| format!("{k} {n}")),
        "mined": mined.len(), "validation_crops": held.len(),
    });
    let mut session = Session::open(vs, groups, preset, spec, about, options)?;

    let loss = CrossEntropy { smoothing: preset.smoothing, class_weights: vec![] };
    let draw = |i: u64| {
        let sample = pool.sample(p.seed, i);
        let image = preset.photometric.apply(&sample.image, &mut rng_of(p.seed ^ PHOTOMETRIC, i));
        sized(CropSample { image, ..sample })
    };
    let stopped = for_each_step((session.start, p.steps), p.batch, draw, |step, samples| {
        session.seed_step(step);
        let device = session.device();
        let x = p.memory_format.image(&images(&tiles(&samples), device).contiguous());
        let target = labels(&samples, device);
        let logits = p.precision.run(device, || net.forward(&x, true));
        session.update(step, &loss.forward(&logits, &target)).map_err(Some)?;
        let go_on = session
            .after(step, &|| validate(net.as_ref(), &loss, &held, p.batch, device))
            .map_err(Some)?;
        if go_on { Ok(()) } else { Err(None) }
    });
    stopped.or_else(|e| e.map_or(Ok(()), Err))
}
