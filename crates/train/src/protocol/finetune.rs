//! Fine-tuning of one fold.

use std::ops::Range;

use mitosis::RgbTile;
use net::encoder::{self, Encoder};
use net::loss::{CrossEntropy, cross_entropy};
use net::optim::AdamWConfig;
use pixels::geometry::{Erased, centred};
use pixels::input::Normalisation;
use pixels::sample_rng;
use rand::Rng;
use rand::seq::SliceRandom;
use regions::fold::Fold;
use regions::task::{Folds, Task, TrainingSet};
use serde::Serialize;
use stats::metrics::ConfusionMatrix;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use super::preset::{CropsPreset, Targets};
use super::shared::{self, Sides, describe_model, reset_head};
use super::teacher::Teacher;
use crate::batch::{normalised, samples};
use crate::error::Result;
use crate::preset::{Loop, Preset as _};
use crate::ranks;
use crate::run::Loss;
use crate::run::{RunOptions, RunSetup, Session, Validation};
use crate::stage::Stage;
use crate::start::{Samples, Target, initialise, is_exported, unfold_trunk};

/// Salt of the order, so that it does not repeat the augmentation's draws.
const ORDER: u64 = 0x0_0dde_5eed;

/// Of `run.json`.
#[derive(Serialize)]
struct About<'a> {
    stage: &'a str,
    task: Task,
    init: &'a str,
    train_items: usize,
    validation_items: usize,
    folds_sha256: &'a str,
    /// The tables of predictions that the targets lean on.
    #[serde(skip_serializing_if = "Option::is_none")]
    teacher: Option<&'a str>,
    /// Per class, the shortcuts that separate it from the rest.
    shortcuts: Vec<String>,
}

/// A training image with its targets and the rectangle to erase.
struct Sample {
    image: RgbTile,
    /// One probability per class.
    target: Vec<f32>,
    /// One probability per class of the coarser task, or none.
    coarse: Vec<f32>,
    erased: Option<Erased>,
}

/// The items of every epoch, `per_epoch` each. With `balance` 0 each epoch is a permutation of the
/// items; otherwise classes are drawn with weights `n^-balance` per item, with replacement.
fn order(
    set: &TrainingSet,
    train: &[usize],
    (epochs, per_epoch): (usize, usize),
    balance: f64,
    seed: u64,
) -> Vec<usize> {
    let mut counts = vec![0.0_f64; set.classes().len()];
    train.iter().for_each(|&i| counts[set.items()[i].class] += 1.0);
    let mut edges = Vec::with_capacity(train.len());
    let mut sum = 0.0;
    for &i in train {
        sum += counts[set.items()[i].class].powf(-balance);
        edges.push(sum);
    }
    let mut all = Vec::with_capacity(epochs * per_epoch);
    for epoch in 0..epochs {
        let mut rng = sample_rng(seed ^ ORDER, epoch as u64);
        if balance == 0.0 {
            let mut items = train.to_vec();
            items.shuffle(&mut rng);
            all.extend(items.iter().cycle().take(per_epoch));
        } else {
            all.extend((0..per_epoch).map(|_| {
                let at = rng.random::<f64>() * sum;
                train[edges.partition_point(|&e| e <= at).min(train.len() - 1)]
            }));
        }
    }
    all
}

/// The votes' shares, of which `smoothing` is spread evenly over all classes.
fn soft(votes: &[usize], classes: usize, smoothing: f64) -> Vec<f32> {
    let mut p = vec![smoothing / classes as f64; classes];
    votes.iter().for_each(|&v| p[v] += (1.0 - smoothing) / votes.len() as f64);
    p.into_iter().map(|v| v as f32).collect()
}

/// Classes put together into those of a coarser task.
struct Groups {
    members: Vec<Vec<i64>>,
}

impl Groups {
    /// From the group of each class.
    fn new(of: &[usize]) -> Self {
        let count = of.iter().max().map_or(0, |m| m + 1);
        let members = (0..count)
            .map(|g| (0..of.len()).filter(|&c| of[c] == g).map(|c| c as i64).collect())
            .collect();
        Self { members }
    }

    /// `[N, classes]` to `[N, groups]`: their softmax is the sum of the members' softmax.
    fn logits(&self, logits: &Tensor) -> Tensor {
        let summed = |members: &Vec<i64>| {
            let index = Tensor::from_slice(members).to_device(logits.device());
            logits.index_select(1, &index).to_kind(Kind::Float).logsumexp([1i64], false)
        };
        Tensor::stack(&self.members.iter().map(summed).collect::<Vec<_>>(), 1)
    }
}

/// `[N, 3, S, S]`, normalised, with the rectangles filled.
fn batch(samples: &[Sample], norm: &Normalisation, device: Device) -> Tensor {
    let tiles: Vec<RgbTile> = samples.iter().map(|s| s.image.clone()).collect();
    let x = normalised(&tiles, norm, device);
    for (i, e) in samples.iter().enumerate().filter_map(|(i, s)| Some((i, s.erased.as_ref()?))) {
        let (h, w) = (e.height as i64, e.width as i64);
        let mut at = x.get(i as i64).narrow(1, e.top as i64, h).narrow(2, e.left as i64, w);
        at.copy_(&Tensor::from_slice(&e.values).view([3, h, w]).to_device(device));
    }
    x
}

/// How the samples of a fold are drawn.
struct Draws<'a> {
    preset: &'a CropsPreset,
    set: &'a TrainingSet,
    seed: u64,
    /// The items of every epoch, one after the other.
    items: Vec<usize>,
    teacher: Option<Teacher>,
    coarser: Option<Groups>,
}

impl Draws<'_> {
    /// Image `i` of the run, changed, and the rectangle to erase in it.
    fn image(&self, i: u64) -> (RgbTile, Option<Erased>) {
        let (p, side) = (self.preset, self.preset.model.image as usize);
        let rng = &mut sample_rng(self.seed, i);
        let image = &self.set.images()[self.items[i as usize]];
        let mut image = p.augment.placement.apply(image, p.data.crop, side, rng);
        if let Some(p) = &p.augment.photometric {
            image = p.apply(&image, rng);
        }
        if let Some(r) = &p.augment.rand_augment {
            image = r.apply(&image, rng);
        }
        (image, Erased::draw(p.augment.erase, side, rng))
    }

    /// One probability per class of an item.
    fn target(&self, item: usize) -> Vec<f32> {
        let of = &self.set.items()[item];
        let votes: &[usize] = match self.preset.targets {
            Targets::Votes => &of.votes,
            Targets::Label => std::slice::from_ref(&of.class),
        };
        let mut target = soft(votes, self.set.classes().len(), self.preset.smoothing);
        self.teacher.iter().for_each(|t| t.lean(item, &mut target));
        target
    }

    /// One probability per class of the coarser task, or none.
    fn coarse(&self, item: usize) -> Vec<f32> {
        match (&self.coarser, &self.set.items()[item].coarse) {
            (Some(g), Some(c)) => {
                let mut target = soft(&c.votes, g.members.len(), self.preset.smoothing);
                self.teacher.iter().for_each(|t| t.lean_groups(item, &g.members, &mut target));
                target
            }
            _ => vec![],
        }
    }

    fn sample(&self, i: u64) -> Sample {
        let item = self.items[i as usize];
        let (image, erased) = self.image(i);
        Sample { image, target: self.target(item), coarse: self.coarse(item), erased }
    }
}

/// The held-out side of a fold.
struct Held {
    images: Vec<RgbTile>,
    truth: Vec<usize>,
    classes: usize,
    /// The class whose F1 is the metric; of more than two classes the macro F1 is.
    positive: Option<usize>,
}

impl Held {
    fn new(preset: &CropsPreset, set: &TrainingSet, positive: Option<&str>, fold: &Fold) -> Self {
        let side = preset.model.image as usize;
        let cropped = |&i: &usize| centred(&set.images()[i], preset.data.crop, side);
        Self {
            images: fold.validation.iter().map(cropped).collect(),
            truth: fold.validation.iter().map(|&i| set.items()[i].class).collect(),
            classes: set.classes().len(),
            positive: positive.and_then(|p| set.classes().iter().position(|c| c == p)),
        }
    }
}

/// Fine-tuning of one fold.
struct Finetuning<'a> {
    settings: &'a Loop,
    draws: Draws<'a>,
    held: Held,
    net: Box<dyn Encoder>,
    norm: Normalisation,
    /// This rank's share of a batch.
    part: Range<usize>,
    device: Device,
}

impl Stage for Finetuning<'_> {
    type Batch = Vec<Sample>;

    fn draw(&self) -> impl Fn(usize) -> Self::Batch + Sync {
        let draws = &self.draws;
        samples(self.settings.batch, self.part.clone(), move |i| draws.sample(i))
    }

    fn loss(&self, samples: Self::Batch) -> Result<Loss> {
        let (p, device) = (self.settings, self.device);
        let x = p.memory_format.image(&batch(&samples, &self.norm, device).contiguous());
        let aims = |of: fn(&Sample) -> &[f32]| {
            let all: Vec<f32> = samples.iter().flat_map(|s| of(s).iter().copied()).collect();
            Tensor::from_slice(&all).view([samples.len() as i64, -1]).to_device(device)
        };
        let y = p.precision.run(device, || self.net.forward(&x, true));
        let mut loss = cross_entropy(&y, &aims(|s| &s.target));
        if let Some(groups) = &self.draws.coarser {
            let coarse = cross_entropy(&groups.logits(&y), &aims(|s| &s.coarse));
            loss += self.draws.preset.coarse * coarse;
        }
        Ok(Loss::Open(loss))
    }

    fn validate(&self, _: usize) -> Option<Validation> {
        let (p, device, held) = (self.settings, self.device, &self.held);
        if held.images.is_empty() {
            return None;
        }
        let mut parts = vec![];
        for part in held.images.chunks(p.batch) {
            let x = normalised(part, &self.norm, device);
            parts.push(p.precision.run(device, || self.net.forward(&x, false)));
        }
        let all = Tensor::cat(&parts, 0).to_kind(Kind::Float);
        let labels: Vec<i64> = held.truth.iter().map(|&c| c as i64).collect();
        let labels = Tensor::from_slice(&labels).to_device(device);
        let loss = CrossEntropy { smoothing: self.draws.preset.smoothing, class_weights: vec![] };
        let loss = loss.forward(&all, &labels).double_value(&[]);
        let best = Vec::<i64>::try_from(all.argmax(-1, false).to_device(Device::Cpu)).ok()?;
        let found: Vec<usize> = best.into_iter().map(|c| c as usize).collect();
        let matrix = ConfusionMatrix::from_labels(&held.truth, &found, held.classes).ok()?;
        let metric = match held.positive {
            Some(class) if held.classes == 2 => matrix.f1(class),
            _ => matrix.macro_f1(),
        };
        Some(Validation { loss, metric })
    }
}

pub(super) fn fold(
    preset: &CropsPreset,
    set: &TrainingSet,
    positive: Option<&str>,
    manifest: &Folds,
    Sides { part: model, fold }: &Sides,
    options: &RunOptions,
) -> Result<()> {
    let settings = preset.train.plan(fold.train.len());
    let (ranks, device) = ranks::join(&options.device)?;
    let part = ranks::part(settings.batch, &ranks)?;
    tch::manual_seed(settings.seed as i64);
    let vs = VarStore::new(device);
    let mut net = encoder::build(&vs.root(), &preset.model)?;
    ranks::fits(&vs, &ranks)?;
    let teacher = preset.teacher.as_ref().map(|t| Teacher::read(t, set)).transpose()?;
    if let Some(t) = teacher.as_ref().filter(|_| options.resume) {
        t.check_same_tables(&options.out)?;
    }
    let epochs = (preset.train.epochs, settings.epoch * settings.batch);
    let items = order(set, &fold.train, epochs, preset.balance, settings.seed);
    let coarser = preset.task.coarser().filter(|_| preset.coarse > 0.0).map(|c| Groups::new(c.of));
    let draws = Draws { preset, set, seed: settings.seed, items, teacher, coarser };
    let start = match is_exported(options.init.as_deref()) {
        Some(file) => {
            let draw = |i: u64| draws.image(i % draws.items.len() as u64).0;
            let samples = Samples { batch: settings.batch, draw };
            unfold_trunk(&vs, net.as_ref(), preset.init, file, &preset.model, samples)?
        }
        None => initialise(&vs, preset.init, options.weights(), &Target::Encoder(net.as_ref()))?,
    };
    reset_head(&vs, net.as_ref(), preset.model.head_bias);
    if let Some(lora) = &preset.lora {
        lora.adapt(&vs, net.as_mut())?;
    }
    let groups =
        encoder::layer_decay_groups(&vs, net.as_ref(), settings.weight_decay, preset.layer_decay);
    let shortcuts = shared::shortcuts(set, &fold.train);
    if ranks.is_first() {
        options.report_shortcuts(&shortcuts);
    }
    let mut spec = describe_model(&preset.model, set, manifest)?;
    start.note(&mut spec, shared::list_trained_on(set, &fold.train));
    let notes = start.notes(&model.to_string(), &shared::names(set, &fold.validation));
    let opening = RunSetup {
        stage: "finetune",
        groups,
        adam: AdamWConfig::default(),
        settings: settings.clone(),
        preset: preset.to_toml(),
        spec,
        about: About {
            stage: "finetune",
            task: preset.task,
            init: &start.text,
            train_items: fold.train.len(),
            validation_items: fold.validation.len(),
            folds_sha256: manifest.digest(),
            teacher: draws.teacher.as_ref().map(|t| &t.text[..]),
            shortcuts,
        },
        init_sha256: start.sha256,
        random: start.random,
        held_out_digest: None,
        notes: notes.clone(),
        lora: preset.lora.clone(),
        ranks: ranks.clone(),
    };
    let mut session = Session::open(vs, opening, options)?;
    // A resumed fold keeps those of the weights that it started from.
    if ranks.is_first() && session.start == 0 {
        super::about::put_notes(&options.out, &notes)?;
    }
    let stage = Finetuning {
        settings: &settings,
        draws,
        held: Held::new(preset, set, positive, fold),
        net,
        norm: Normalisation::new(preset.model.mean, preset.model.std),
        part,
        device,
    };
    session.train(&stage, session.start..settings.steps).map(|_| ())
}

#[cfg(test)]
mod tests {
    use pixels::input::{MEAN, STD};

    use super::*;

    #[test]
    fn epochs_are_permutations_or_balanced_draws() {
        let dir = tempfile::tempdir().unwrap();
        for (class, n) in [("a", 30_u8), ("b", 6)] {
            let folder = dir.path().join(class);
            std::fs::create_dir_all(&folder).unwrap();
            for i in 0..n {
                let at = folder.join(format!("{i}.png"));
                image::RgbImage::from_pixel(8, 8, image::Rgb([i, class.as_bytes()[0], 1]))
                    .save(at)
                    .unwrap();
            }
        }
        let set = TrainingSet::open(Task::Folder, dir.path()).unwrap();
        let train: Vec<usize> = (0..36).collect();
        let plain = order(&set, &train, (2, 36), 0.0, 1);
        let mut first = plain[..36].to_vec();
        first.sort_unstable();
        assert_eq!(first, train);
        assert_ne!(plain[..36], plain[36..]);
        let share = |balance: f64| {
            let drawn = order(&set, &train, (20, 36), balance, 1);
            drawn.iter().filter(|&&i| set.items()[i].class == 1).count() as f64 / 720.0
        };
        assert!((share(1.0) - 0.5).abs() < 0.07, "{}", share(1.0));
        assert!((share(1e-9) - 1.0 / 6.0).abs() < 0.05, "{}", share(1e-9));
    }

    #[test]
    fn one_vote_is_the_smoothed_label_and_votes_share_it() {
        let logits = Tensor::from_slice(&[0.3f32, -1.2, 0.8]).view([1, 3]);
        let aim = Tensor::from_slice(&soft(&[2], 3, 0.1)).view([1, 3]);
        let hard = CrossEntropy { smoothing: 0.1, class_weights: vec![] };
        let label = hard.forward(&logits, &Tensor::from_slice(&[2i64])).double_value(&[]);
        assert!((cross_entropy(&logits, &aim).double_value(&[]) - label).abs() < 1e-6);
        let shared = soft(&[0, 0, 1], 2, 0.0);
        assert!((shared[0] - 2.0 / 3.0).abs() < 1e-6 && (shared[1] - 1.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn a_group_is_as_likely_as_its_members_together() {
        let logits = Tensor::from_slice(&[0.3f32, -1.2, 0.8, 2.0]).view([1, 4]);
        let p = Vec::<f64>::try_from(logits.softmax(-1, Kind::Double).view(-1)).unwrap();
        let q = Groups::new(&[0, 1, 1, 0]).logits(&logits).softmax(-1, Kind::Double);
        let q = Vec::<f64>::try_from(q.view(-1)).unwrap();
        assert!((q[0] - p[0] - p[3]).abs() < 1e-6 && (q[1] - p[1] - p[2]).abs() < 1e-6);
    }

    #[test]
    fn an_erased_rectangle_is_filled_after_normalisation() {
        let erased = Erased { top: 1, left: 2, height: 2, width: 3, values: vec![0.5; 18] };
        let image = RgbTile::filled(8, 8, [255; 3]);
        let target = soft(&[0], 2, 0.0);
        let whole =
            Sample { image: image.clone(), target: target.clone(), coarse: vec![], erased: None };
        let holed = Sample { image, target, coarse: vec![], erased: Some(erased) };
        let x = batch(&[whole, holed], &Normalisation::new(MEAN, STD), Device::Cpu);
        let changed = (x.get(0) - x.get(1)).ne(0.0).sum(Kind::Int64).int64_value(&[]);
        assert_eq!(changed, 3 * 2 * 3);
        assert_eq!(x.double_value(&[1, 2, 2, 4]), 0.5);
    }
}
