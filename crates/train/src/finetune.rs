//! `mithras train finetune`: the second stage.

use base::table::Unmatched;
use std::ops::Range;
use std::path::{Path, PathBuf};

use mitosis::RgbTile;
use net::checkpoint::Spec;
use net::dist::Group;
use net::encoder::{self, Encoder};
use net::loss::CrossEntropy;
use net::optim::AdamWConfig;
use pixels::input::Normalisation;
use regions::augment::{
    CropPool, CropRecipe, CropSample, Domain, DomainPlace, NamedPlace, SampledPlace,
};
use serde::{Deserialize, Serialize};
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::batch::{normalised, samples};
use crate::data::{Data, Source};
use crate::error::{Result, TrainError};
use crate::preset::{FinetunePreset, Loop, Mining, Preset};
use crate::ranks;
use crate::run::Loss;
use crate::run::{RunOptions, RunSetup, Session, Validation};
use crate::stage::Stage;
use crate::start::{Exported, Samples, Target, describe, initialise, is_exported, unfold};
use crate::text::write_text;

/// Of `run.json`.
#[derive(Serialize)]
struct About<'a> {
    stage: &'a str,
    left_out: &'a str,
    init: &'a str,
    places: Vec<String>,
    shortcuts: Vec<String>,
    mined: usize,
    validation_crops: usize,
}

/// Place of the figure among the classes.
const FIGURE: i64 = 1;

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

/// The description of a checkpoint made with a preset.
///
/// # Errors
/// Never in practice: the configuration is plain data.
pub fn spec(preset: &FinetunePreset, classes: &[String; 2]) -> Result<Spec> {
    let mut spec = describe(&preset.model)?;
    spec.classes = classes.to_vec();
    Ok(spec)
}

fn labels(samples: &[CropSample], device: Device) -> Tensor {
    let all: Vec<i64> = samples.iter().map(|s| i64::from(s.mitotic)).collect();
    Tensor::from_slice(&all).to_device(device)
}

fn tiles(samples: &[CropSample]) -> Vec<RgbTile> {
    samples.iter().map(|s| s.image.clone()).collect()
}

/// NaN without both classes.
fn auc(scores: &[f64], figure: &[bool]) -> f64 {
    stats::metrics::roc_auc(scores, figure).ok().flatten().unwrap_or(f64::NAN)
}

/// Training of the second stage.
struct Classification<'a> {
    settings: &'a Loop,
    pool: CropPool,
    held: Vec<CropSample>,
    net: Box<dyn Encoder>,
    norm: Normalisation,
    loss: CrossEntropy,
    /// This rank's share of a batch.
    part: Range<usize>,
    device: Device,
}

impl Stage for Classification<'_> {
    type Batch = Vec<CropSample>;

    fn draw(&self) -> impl Fn(usize) -> Self::Batch + Sync {
        let (pool, seed) = (&self.pool, self.settings.seed);
        samples(self.settings.batch, self.part.clone(), move |i| pool.sample(seed, i))
    }

    fn loss(&self, batch: Self::Batch) -> Result<Loss> {
        let (p, device) = (self.settings, self.device);
        let x = normalised(&tiles(&batch), &self.norm, device).contiguous();
        let x = p.memory_format.image(&x);
        let target = labels(&batch, device);
        let logits = p.precision.run(device, || self.net.forward(&x, true));
        Ok(Loss::Open(self.loss.forward(&logits, &target)))
    }

    fn validate(&self, _: usize) -> Option<Validation> {
        let (mut sum, mut scores) = (0.0, vec![]);
        for part in self.held.chunks(self.settings.batch) {
            let x = normalised(&tiles(part), &self.norm, self.device);
            let logits = self.net.forward(&x, false).to_kind(Kind::Float);
            let l = self.loss.forward(&logits, &labels(part, self.device));
            sum += l.double_value(&[]) * part.len() as f64;
            let p = logits.softmax(-1, Kind::Float).select(1, FIGURE);
            for (i, s) in part.iter().enumerate() {
                scores.push((p.double_value(&[i as i64]), s.mitotic));
            }
        }
        let n = self.held.len() as f64;
        let (p, figure): (Vec<f64>, Vec<bool>) = scores.into_iter().unzip();
        (n > 0.0).then(|| Validation { loss: sum / n, metric: auc(&p, &figure) })
    }
}

/// Version of `hard-N.json`.
const HARD: &str = "mithras.hard/1";

/// What a round of hard negatives decides, and its file in the run directory.
#[derive(Serialize, Deserialize)]
struct Round {
    schema: String,
    /// The places that the network is surest of.
    hard: Vec<HardPlace>,
    /// The few above them, which may be figures without a label.
    aside: Vec<HardPlace>,
}

/// A place as the file has it: domain, image, x, y.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct HardPlace(usize, usize, f32, f32);

impl HardPlace {
    fn new(DomainPlace { domain, place: p }: DomainPlace) -> Self {
        Self(domain, p.scene, p.x, p.y)
    }

    fn place(self) -> DomainPlace {
        let Self(domain, scene, x, y) = self;
        DomainPlace { domain, place: SampledPlace { scene, x, y } }
    }
}

fn places(listed: &[HardPlace]) -> Vec<DomainPlace> {
    listed.iter().map(|p| p.place()).collect()
}

/// The first rank's round, on every rank.
fn of_first(round: Option<Round>, group: &Group) -> Result<Round> {
    let text = round.map(|r| serde_json::to_vec(&r).expect("plain data")).unwrap_or_default();
    let text = group.first_bytes(&text)?;
    serde_json::from_slice(&text).map_err(|e| TrainError::run(Path::new("hard negatives"), e))
}

/// A round of hard negatives, from its file where a resumed run has made it before.
fn mine(stage: &Classification<'_>, how: &Mining, seed: u64, file: &Path) -> Result<Round> {
    let pool = &stage.pool;
    if let Ok(text) = base::file::read_string(file) {
        let round: Round =
            base::json::parse(text.as_bytes()).map_err(|e| TrainError::run(file, e))?;
        let known = round.schema == HARD;
        return known.then_some(round).ok_or_else(|| TrainError::run(file, "of another version"));
    }
    let places = pool.candidates(seed, how.scored);
    let mut scored: Vec<(f64, DomainPlace)> = vec![];
    for part in places.chunks(stage.settings.batch) {
        let crops: Vec<RgbTile> = part.iter().map(|p| pool.plain(*p)).collect();
        let p = tch::no_grad(|| {
            let x = normalised(&crops, &stage.norm, stage.device);
            let logits = stage.net.forward(&x, false).to_kind(Kind::Float);
            logits.softmax(-1, Kind::Float).select(1, FIGURE)
        });
        scored.extend(part.iter().enumerate().map(|(i, c)| (p.double_value(&[i as i64]), *c)));
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let labelled = scored.iter().filter(|s| pool.labelled(s.1.domain)).count();
    let passed = |n: usize, share: f32| (n as f32 * share).round() as usize;
    let mut left =
        [passed(scored.len() - labelled, how.doubtful), passed(labelled, how.doubtful_labelled)];
    let mut round = Round { schema: HARD.into(), hard: vec![], aside: vec![] };
    for (_, at) in scored {
        let place = HardPlace::new(at);
        let left = &mut left[usize::from(pool.labelled(at.domain))];
        if *left > 0 {
            *left -= 1;
            round.aside.push(place);
        } else if round.hard.len() < how.keep {
            round.hard.push(place);
        }
    }
    write_text(file, &serde_json::to_string(&round).expect("plain data"))?;
    Ok(round)
}

/// The file of a round.
fn round_file(run: &Path, round: usize) -> PathBuf {
    run.join(format!("hard-{round}.json"))
}

/// Removes rounds of a run that ended before its first state: a fresh one makes its own.
fn forget_rounds(run: &Path, rounds: usize) -> Result<()> {
    for file in (1..rounds).map(|n| round_file(run, n)).filter(|f| f.is_file()) {
        std::fs::remove_file(&file).map_err(|e| TrainError::run(&file, e))?;
    }
    Ok(())
}

/// The steps at which rounds of hard negatives begin, and the end of the run.
fn rounds(mining: Option<&Mining>, steps: usize) -> Vec<usize> {
    let mut at: Vec<usize> = match mining {
        Some(m) => (m.first..steps).step_by(m.every).collect(),
        None => vec![],
    };
    at.push(steps);
    at
}

/// Trains the classifier of one fold; the weights end in `RUN/model.safetensors`. `mined` lists
/// false candidates of the fold's own segmenter on its training frames; places on other frames
/// are an error.
///
/// # Errors
/// [`TrainError`]: data, preset, run directory, or a loss that is not a number.
pub fn run(
    preset: &FinetunePreset,
    source: &Source,
    fold: &str,
    mined: &[Mined],
    options: &RunOptions,
) -> Result<()> {
    train_on(preset, &source.data(fold)?, mined, options)
}

/// Trains the classifier on images that were read before.
///
/// # Errors
/// As [`run`].
#[expect(
    clippy::too_many_lines,
    reason = "the training from its data to its files; the loop itself is in `run`"
)]
pub fn train_on(
    preset: &FinetunePreset,
    data: &Data,
    mined: &[Mined],
    options: &RunOptions,
) -> Result<()> {
    let p = &preset.train;
    let (ranks, device) = ranks::join(&options.device)?;
    let part = ranks::part(p.batch, &ranks)?;
    let mut digest = data.scenes.digest.clone();
    let mut domains = data.domains();
    let mined_at = mined.iter().map(|m| NamedPlace { image: m.frame.clone(), x: m.x, y: m.y });
    let listed: Vec<_> = mined_at.chain(data.mimickers.iter().cloned()).collect();
    let images: Vec<String> =
        domains.iter().flat_map(|d| &d.scenes).map(|s| s.name.clone()).collect();
    let join = || {
        let listed = listed.iter().map(|place| place.image.as_str());
        let there = images.iter().map(String::as_str);
        Unmatched::between(("the places", "the training side"), listed, there)
            .map_or_else(String::new, |join| format!(": {join}"))
    };
    Domain::list(&mut domains, &listed).map_err(|no| TrainError::Preset {
        path: "mined places".into(),
        reason: format!("image {} is not on the training side of this fold{}", no.0, join()),
    })?;
    for m in mined {
        digest.push_str(&format!("+{}:{:.1},{:.1}", m.frame, m.x, m.y));
    }
    if !mined.is_empty() {
        digest = base::digest::sha256(digest);
    }
    let recipe = CropRecipe {
        crop: preset.data.crop,
        input: preset.model.image as usize,
        spatial: preset.spatial.clone(),
        photometric: preset.photometric.clone(),
    };
    let pool = CropPool::new(domains, &preset.pools, recipe)
        .map_err(|reason| TrainError::Preset { path: "pools".into(), reason })?;
    let shortcuts = regions::shortcuts::check(&pool.items(300));
    if ranks.is_first() {
        options.report_shortcuts(&shortcuts.warnings());
    }
    let lookalikes: &[_] = match preset.data.validate_on_lookalikes {
        true => &data.scenes.validation_lookalikes,
        false => &[],
    };
    let ratio = preset.data.validation_ratio;
    let held = pool.validation(&data.scenes.validation, lookalikes, ratio);

    tch::manual_seed(p.seed as i64);
    let vs = VarStore::new(device);
    let mut net = encoder::build(&vs.root(), &preset.model)?;
    ranks::fits(&vs, &ranks)?;
    let start = match is_exported(options.init.as_deref()) {
        Some(file) => {
            let stage = Exported::Classifier(net.as_ref(), &preset.model);
            let draw = |i| pool.sample(p.seed, i).image;
            unfold(&vs, preset.init, file, &stage, Samples { batch: p.batch, draw })?
        }
        None => initialise(&vs, preset.init, options.weights(), &Target::Encoder(net.as_ref()))?,
    };
    if let Some(lora) = &preset.lora {
        lora.adapt(&vs, net.as_mut())?;
    }
    let groups = encoder::layer_decay_groups(&vs, net.as_ref(), p.weight_decay, preset.layer_decay);
    let mut spec = spec(preset, &data.classes)?;
    spec.corpus_digest = digest;
    start.note(&mut spec, data.trained_on.clone());
    let about = About {
        stage: "finetune",
        left_out: &data.left_out,
        init: &start.text,
        places: pool.sizes(),
        shortcuts: shortcuts.warnings(),
        mined: mined.len(),
        validation_crops: held.len(),
    };
    let opening = RunSetup {
        stage: "finetune",
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
        lora: preset.lora.clone(),
        ranks: ranks.clone(),
    };
    let mut session = Session::open(vs, opening, options)?;

    let mut stage = Classification {
        settings: p,
        pool,
        held,
        net,
        norm: Normalisation::new(preset.model.mean, preset.model.std),
        loss: CrossEntropy { smoothing: preset.smoothing, class_weights: vec![] },
        part,
        device,
    };
    let start = session.start;
    let mut from = start;
    let ends = rounds(preset.mining.as_ref(), p.steps);
    if start == 0 && ranks.is_first() {
        forget_rounds(&options.out, ends.len())?;
    }
    for (round, &end) in ends.iter().enumerate() {
        if let (Some(how), true) = (&preset.mining, round > 0) {
            let file = round_file(&options.out, round);
            // Scored by one, because the last digits of a score decide on what all train.
            let found = match ranks.is_first() {
                true => Some(mine(&stage, how, p.seed + round as u64, &file)?),
                false => None,
            };
            let found = of_first(found, &ranks).map_err(|e| session.rescue(from, e))?;
            stage.pool.set_aside(&places(&found.aside));
            stage.pool.set_hard(places(&found.hard), how.share);
        }
        if end <= start {
            continue; // of a resumed run: what its rounds set aside stays so
        }
        if session.train(&stage, from..end)?.is_break() {
            break;
        }
        from = end;
    }
    Ok(())
}
