//! The linear probe.

use std::path::Path;

use net::encoder::EncoderConfig;
use net::loss::CrossEntropy;
use net::optim::Lars;
use net::probe::Probe;
use net::schedule::{BaseLr, WarmupCosine};
use pixels::sample_rng;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_distr::{Distribution as _, Normal};
use regions::fold::Fold;
use regions::task::TrainingSet;
use tch::nn::VarStore;
use tch::{Device, Tensor};

use super::preset::ProbeEpochs;
use crate::error::{Result, TrainError};
use crate::text::write_text;

/// Stream of the head's starting weights, apart from those of the epochs.
const START: u64 = u64::MAX;
/// MAE's `trunc_normal_` draws again beyond this.
const CUT: f64 = 2.0;
/// Below this the recipe cannot turn the head away from where it starts.
const REACH: f64 = 1.0;

/// A head that was trained.
pub(super) struct Trained {
    pub head: Probe,
    /// `epoch,loss,lr`, one line per epoch.
    pub course: String,
    /// That the recipe is too short for the head to learn, if it is.
    pub warning: Option<String>,
}

/// Trains the head on the items of a fold's training side, `features [copies, N, D]`; writes
/// `DIR/metrics.csv`.
pub(super) fn train(
    t: &ProbeEpochs,
    model: &EncoderConfig,
    set: &TrainingSet,
    fold: &Fold,
    features: &Tensor,
    dir: &Path,
) -> Result<Trained> {
    let classes: Vec<i64> = set.items().iter().map(|i| i.class as i64).collect();
    let trained = fit(t, model, &classes, &fold.train, features)?;
    write_text(&dir.join("metrics.csv"), &trained.course)?;
    Ok(trained)
}

/// Weights that the head starts from, `[classes, dim]`.
fn start(t: &ProbeEpochs, classes: i64, dim: i64) -> Tensor {
    let mut rng = sample_rng(t.seed, START);
    let normal = Normal::new(0.0, t.head_std).expect("checked with the preset");
    let mut draw =
        || std::iter::repeat_with(|| normal.sample(&mut rng)).find(|v: &f64| v.abs() <= CUT);
    let all: Vec<f32> = (0..classes * dim).filter_map(|_| draw()).map(|v| v as f32).collect();
    Tensor::from_slice(&all).view([classes, dim])
}

/// The loop over cached `features [copies, N, D]`: of each item one copy per epoch is seen.
fn fit(
    t: &ProbeEpochs,
    model: &EncoderConfig,
    classes: &[i64],
    train: &[usize],
    features: &Tensor,
) -> Result<Trained> {
    let vs = VarStore::new(Device::Cpu);
    let (copies, n, dim) = features.size3()?;
    let head = Probe::new(&vs.root(), &start(t, model.classes, dim), model.head_bias);
    let mut lars = Lars::new(&vs, t.weight_decay);
    let rate = WarmupCosine {
        lr: BaseLr(t.base_lr).scaled(t.batch),
        min_lr: 0.0,
        warmup_epochs: t.warmup_epochs,
        epochs: t.epochs as f64,
    };
    rate.check()?;
    let loss = CrossEntropy { smoothing: 0.0, class_weights: vec![] };
    let flat = features.reshape([copies * n, dim]);
    let batch = t.batch.min(train.len());
    let steps = train.len() / batch.max(1);
    let mut course = String::from("epoch,loss,lr\n");
    for epoch in 0..t.epochs {
        let mut rng = sample_rng(t.seed, epoch as u64);
        let mut items = train.to_vec();
        items.shuffle(&mut rng);
        let mut sum = 0.0;
        for (b, part) in items.chunks_exact(batch).enumerate() {
            let at: Vec<i64> =
                part.iter().map(|&i| rng.random_range(0..copies) * n + i as i64).collect();
            let target: Vec<i64> = part.iter().map(|&i| classes[i]).collect();
            let y = head.forward(&flat.index_select(0, &Tensor::from_slice(&at)), true);
            let value = loss.forward(&y, &Tensor::from_slice(&target));
            let number = value.double_value(&[]);
            if !number.is_finite() {
                return Err(TrainError::NotFinite { step: epoch * steps + b, value: number });
            }
            lars.zero_grad();
            value.backward();
            lars.step(rate.at(epoch as f64 + b as f64 / steps as f64));
            sum += number;
        }
        let (mean, lr) = (sum / steps as f64, rate.at(epoch as f64));
        course.push_str(&format!("{},{mean},{lr}\n", epoch + 1));
    }
    let rates = (0..t.epochs * steps).map(|s| rate.at(s as f64 / steps as f64));
    let warning = short(lars.reach(rates), t, train.len());
    Ok(Trained { head, course, warning })
}

/// LARS moves a head by a share of its own norm per step, whatever the loss: over a small set the
/// paper's recipe ends before the head has left its start.
fn short(reach: f64, t: &ProbeEpochs, items: usize) -> Option<String> {
    (reach < REACH).then(|| {
        format!(
            "{} epochs over {items} images at base rate {} move the head's weights by at most {:.0} % \
             of their start, too little to learn; use a probe of kind `logistic`, or a higher \
             base_lr or more epochs, which may learn more",
            t.epochs,
            t.base_lr,
            100.0 * reach
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::Preset as _;
    use crate::protocol::ProbePreset;
    use rand_distr::StandardNormal;

    /// The paper's recipe, as its preset for figures and mimickers has it.
    fn paper() -> ProbeEpochs {
        let file = testkit::workspace().join("presets/probe-crops-paper-vit-base.toml");
        ProbePreset::load(&file, &[]).unwrap().train.unwrap()
    }

    /// Features `[1, N, D]` and classes of figures and mimickers that one plane separates: along
    /// the first `axes` axes every item is on its class's side, at least `gap` deviations from the plane.
    fn parted(figures: usize, mimickers: usize, axes: usize, gap: f64) -> (Tensor, Vec<i64>) {
        let dim = 24;
        let mut rng = sample_rng(7, 0);
        let n = figures + mimickers;
        let classes: Vec<i64> = (0..n).map(|i| i64::from(i < figures)).collect();
        let mut values: Vec<f32> = Vec::with_capacity(n * dim);
        for &class in &classes {
            let side = if class == 1 { 1.0 } else { -1.0 };
            for axis in 0..dim {
                let v: f64 = StandardNormal.sample(&mut rng);
                values.push((if axis < axes { side * (gap + v.abs()) } else { v }) as f32);
            }
        }
        (Tensor::from_slice(&values).view([1, n as i64, dim as i64]), classes)
    }

    /// F1 of class 1 over the items of the third image of every three, which the head did not see.
    fn f1(
        t: &ProbeEpochs,
        (features, classes): &(Tensor, Vec<i64>),
        images: usize,
    ) -> (f64, Trained) {
        let held = |i: &usize| i % images % 3 == 2;
        let (held, train): (Vec<usize>, Vec<usize>) = (0..classes.len()).partition(held);
        let model = EncoderConfig { head_bias: 0.0, ..EncoderConfig::new("drawn", 2) };
        let trained = fit(t, &model, classes, &train, features).unwrap();
        let y = tch::no_grad(|| trained.head.forward(&features.get(0), false)).argmax(-1, false);
        let of = |i: &usize| (classes[*i] == 1, y.int64_value(&[*i as i64]) == 1);
        let count = |want| held.iter().map(of).filter(|pair| *pair == want).count() as f64;
        let (tp, fp, missed) = (count((true, true)), count((false, true)), count((true, false)));
        (2.0 * tp / (2.0 * tp + fp + missed), trained)
    }

    #[test]
    fn the_papers_probe_learns_a_set_of_midog22s_size() {
        let set = parted(9_501, 11_051, 12, 2.0);
        let (found, trained) = f1(&paper(), &set, 239);
        assert!(found > 0.9, "F1 {found}");
        assert_eq!(trained.warning, None);
        // From zero weights the same recipe ends with the larger class for all.
        let (zero, _) = f1(&ProbeEpochs { head_std: 0.0, ..paper() }, &set, 239);
        assert!(zero < 0.1, "F1 {zero}");
    }

    #[test]
    fn the_papers_probe_is_too_short_for_a_fold_of_ami_br_and_reports_it() {
        let set = parted(404, 1_317, 4, 0.5);
        let (paper_f1, trained) = f1(&paper(), &set, 150);
        let warning = trained.warning.unwrap();
        assert!(warning.contains("at most 11 %") && warning.contains("logistic"), "{warning}");
        let longer = ProbeEpochs { base_lr: 10.0, ..paper() };
        let (long_f1, trained) = f1(&longer, &set, 150);
        assert!(long_f1 > 0.9 && paper_f1 < 0.5, "F1 {paper_f1} by the paper's, {long_f1}");
        assert_eq!(trained.warning, None);
    }

    #[test]
    fn the_start_is_drawn_from_the_seed() {
        let t = paper();
        let (a, b) = (start(&t, 2, 4096), start(&t, 2, 4096));
        assert_eq!(a, b);
        let sd = a.std(false).double_value(&[]);
        assert!((sd - 0.01).abs() < 5e-4, "{sd}");
        assert_ne!(a, start(&ProbeEpochs { seed: t.seed + 1, ..t.clone() }, 2, 4096));
        let zero = start(&ProbeEpochs { head_std: 0.0, ..t }, 2, 8);
        assert_eq!(zero.abs().max().double_value(&[]), 0.0);
    }
}
