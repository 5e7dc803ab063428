//! The linear probe.

use std::path::Path;

use net::encoder::EncoderConfig;
use net::loss::CrossEntropy;
use net::optim::Lars;
use net::probe::Probe;
use net::schedule::{BaseLr, WarmupCosine};
use pixels::rng_of;
use rand::Rng;
use rand::seq::SliceRandom;
use regions::fold::Fold;
use regions::task::TrainingSet;
use tch::nn::VarStore;
use tch::{Device, Tensor};

use super::preset::ProbeEpochs;
use crate::error::{Result, TrainError};
use crate::text::write_text;

/// Trains the head on the items of a fold's training side, `features [copies, N, D]`; the course goes
/// into `DIR/metrics.csv`.
pub(super) fn train(
    t: &ProbeEpochs,
    model: &EncoderConfig,
    (set, fold): (&TrainingSet, &Fold),
    features: &Tensor,
    dir: &Path,
) -> Result<Probe> {
    let vs = VarStore::new(Device::Cpu);
    let dim = features.size()[2];
    let head = Probe::new(&vs.root(), dim, model.classes, model.head_bias);
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
                    let s = rng.random_range(0..features.size()[0]);
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
