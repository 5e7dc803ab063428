//! Linear probing: the encoder sees every item once, the head trains on cached features.

use std::path::Path;

use corpus::augment::geometry::centred;
use corpus::augment::rng_of;
use corpus::file::Lock;
use corpus::fold::Fold;
use corpus::task::{Folds, TrainingSet};
use mitosis::RgbTile;
use net::checkpoint::{self, Spec};
use net::encoder::{self, Encoder};
use net::loss::CrossEntropy;
use net::optim::Lars;
use net::probe::Probe;
use net::schedule::{BaseLr, WarmupCosine};
use rand::Rng;
use rand::seq::SliceRandom;
use serde::Serialize;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use super::preset::ProbePreset;
use super::{PREDICTIONS, fold_dir, predict, spec_of};
use crate::batch::images;
use crate::error::{Result, TrainError};
use crate::preset::Preset as _;
use crate::run::{MODEL, RunOptions};
use crate::start::{Target, initialise};
use crate::text::write_text;

const FEATURES: &str = "features.safetensors";

/// Notes of the frozen encoder.
#[derive(Serialize)]
struct Notes<'a> {
    init: &'a str,
    weights: &'a str,
    symmetries: u8,
    crop: usize,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    random_at_start: &'a [String],
}

/// The encoder with the head that the task needs.
struct Model {
    vs: VarStore,
    net: Box<dyn Encoder>,
    spec: Spec,
}

/// `[symmetries, N, D]` of all items, read back where an earlier call left them.
fn features(preset: &ProbePreset, set: &TrainingSet, model: &Model, path: &Path) -> Result<Tensor> {
    if path.is_file() {
        let file = checkpoint::read_tensors(path)?;
        let same = file.spec.as_ref() == Some(&model.spec);
        return match file.tensors.get("features") {
            Some(t) if same => Ok(t.shallow_clone()),
            _ => Err(TrainError::run(path, "belongs to other weights or data; remove it")),
        };
    }
    let side = preset.model.image as usize;
    let device = model.vs.device();
    let mut copies = vec![];
    for s in 0..preset.symmetries {
        let mut parts = vec![];
        for part in set.images().chunks(32) {
            let tiles: Vec<RgbTile> =
                part.iter().map(|i| centred(i, preset.data.crop, side).symmetric(s)).collect();
            parts.push(tch::no_grad(|| {
                let x = images(&tiles, device).contiguous();
                model.net.embed(&x, false).to_kind(Kind::Float).to_device(Device::Cpu)
            }));
        }
        copies.push(Tensor::cat(&parts, 0));
    }
    let all = Tensor::stack(&copies, 0);
    let named = [("features".to_string(), all.shallow_clone())];
    checkpoint::save_described(path, &named, &model.spec)?;
    Ok(all)
}

/// The frozen encoder. Its description carries a digest of the weights.
fn frozen(preset: &ProbePreset, spec: Spec, options: &RunOptions) -> Result<Model> {
    let device = net::device::pick(&options.device)?;
    tch::manual_seed(preset.train.seed as i64);
    let vs = VarStore::new(device);
    let net = encoder::build(&vs.root(), &preset.model)?;
    let start = initialise(&vs, preset.init, options.weights(), &Target::Encoder(net.as_ref()))?;
    super::reset_head(&vs, net.as_ref(), preset.model.head_bias);
    let mut sums: Vec<(String, f64)> = vs
        .variables()
        .into_iter()
        .map(|(n, t)| (n, t.detach().abs().sum(Kind::Double).double_value(&[])))
        .collect();
    sums.sort_by(|a, b| a.0.cmp(&b.0));
    let weights = artifact::digest::sha256(format!("{sums:?}"));
    let notes = crate::run::value(&Notes {
        init: &start.text,
        weights: &weights,
        symmetries: preset.symmetries,
        crop: preset.data.crop,
        random_at_start: &start.random,
    });
    Ok(Model { vs, net, spec: Spec { notes, ..spec } })
}

pub(super) fn run(
    preset: &ProbePreset,
    set: &TrainingSet,
    manifest: &Folds,
    only: Option<usize>,
    options: &RunOptions,
) -> Result<()> {
    let mut spec = spec_of(&preset.model, set, manifest)?;
    spec.preset_hash = preset.digest();
    let mut model = frozen(preset, spec, options)?;
    let _lock = Lock::take(&options.out)?;
    write_text(&options.out.join("preset.toml"), &preset.to_toml())?;
    let features = features(preset, set, &model, &options.out.join(FEATURES))?;
    for k in (0..manifest.count()).filter(|k| only.is_none_or(|o| o == *k)) {
        let dir = fold_dir(&options.out, k);
        let done = dir.join(format!("{PREDICTIONS}.csv"));
        if done.is_file() {
            if options.resume {
                continue;
            }
            return Err(TrainError::There { path: dir });
        }
        std::fs::create_dir_all(&dir).map_err(|e| TrainError::run(&dir, e))?;
        let fold = manifest.fold(k)?;
        let head = train(preset, set, &fold, &features, &dir)?;
        let mut rows = vec![];
        let p = tch::no_grad(|| {
            let copies: Vec<Tensor> = (0..i64::from(preset.symmetries))
                .map(|s| head.forward(&features.get(s), false).softmax(-1, Kind::Double))
                .collect();
            Tensor::stack(&copies, 0).mean_dim([0_i64].as_slice(), false, Kind::Double)
        });
        for &i in &fold.validation {
            rows.push(predict::of(set, i, k, Vec::<f64>::try_from(p.get(i as i64))?)?);
        }
        // Encoder and probe as one classifier, for the test part and for export.
        let (weight, bias) = head.folded();
        tch::no_grad(|| {
            for (name, mut t) in model.vs.variables() {
                match name.strip_prefix(model.net.head()) {
                    Some("weight") => t.copy_(&weight),
                    Some("bias") => t.copy_(&bias),
                    _ => {}
                }
            }
        });
        model.spec.notes["fold"] = k.into();
        checkpoint::save(&dir.join(MODEL), &model.vs, &model.spec)?;
        predict::write(&dir, PREDICTIONS, set, &rows)?;
    }
    Ok(())
}

fn train(
    preset: &ProbePreset,
    set: &TrainingSet,
    fold: &Fold,
    features: &Tensor,
    dir: &Path,
) -> Result<Probe> {
    let t = &preset.train;
    let vs = VarStore::new(Device::Cpu);
    let dim = features.size()[2];
    let head = Probe::new(&vs.root(), dim, preset.model.classes, preset.model.head_bias);
    let mut lars = Lars::new(&vs, t.weight_decay);
    let rate = WarmupCosine {
        lr: BaseLr(t.base_lr).scaled(t.batch),
        min_lr: 0.0,
        warmup_epochs: t.warmup_epochs,
        epochs: t.epochs as f64,
    };
    rate.check()?;
    let loss = CrossEntropy { smoothing: 0.0, class_weights: vec![] };
    let class = |i: &usize| set.items()[*i].class as i64;
    let mut text = String::from("epoch,loss,lr\n");
    for epoch in 0..t.epochs {
        let mut rng = rng_of(t.seed, epoch as u64);
        let mut items = fold.train.clone();
        items.shuffle(&mut rng);
        let batches: Vec<&[usize]> = items.chunks_exact(t.batch.min(items.len())).collect();
        let (n, mut sum) = (batches.len(), 0.0);
        for (b, part) in batches.into_iter().enumerate() {
            let rows: Vec<Tensor> = part
                .iter()
                .map(|&i| {
                    let s = rng.random_range(0..i64::from(preset.symmetries));
                    features.get(s).get(i as i64)
                })
                .collect();
            let target: Vec<i64> = part.iter().map(class).collect();
            let y = head.forward(&Tensor::stack(&rows, 0), true);
            let value = loss.forward(&y, &Tensor::from_slice(&target));
            let number = value.double_value(&[]);
            if !number.is_finite() {
                return Err(TrainError::NotFinite { step: epoch * n + b, value: number });
            }
            lars.zero_grad();
            value.backward();
            lars.step(rate.at(epoch as f64 + b as f64 / n as f64));
            sum += number;
        }
        text.push_str(&format!("{},{},{}\n", epoch + 1, sum / n as f64, rate.at(epoch as f64)));
    }
    write_text(&dir.join("metrics.csv"), &text)?;
    Ok(head)
}
