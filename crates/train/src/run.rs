//! The run directory: preset, state for resuming, metrics, curves, progress.
//!
//! ```text
//! RUN/preset.toml      the resolved preset
//! RUN/run.json         versions, seed, data digest, fold, device, command
//! RUN/metrics.csv      step,kind,loss,metric,lr,images_per_s
//! RUN/loss.svg         both curves
//! RUN/state.safetensors    everything --resume needs (weights, optimiser until the last step, average, step)
//! RUN/model.safetensors    what the run hands on (train.keep)
//! ```

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use base::file::Lock;
use base::progress::{Event, Listener as _, Pace, Reporter};
use net::NetError;
use net::checkpoint::{self, Spec};
use net::device::{self, Precision};
use net::dist::Group;
use net::ema::Ema;
use net::lora::Lora;
use net::optim::{AdamW, AdamWConfig, ParamGroup};
use serde::Serialize;
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};

use crate::error::{Result, TrainError};
use crate::plot;
use crate::preset::{Keep, Loop};
use crate::ranks;
use crate::start::StartingWeights;
use crate::text::write_text;

/// The loss of a step.
pub(crate) enum Loss {
    /// Not differentiated yet.
    Open(Tensor),
    /// Its value; its gradients on this rank are in the variables.
    Differentiated(f64),
}

/// Where a run writes and how it starts: nothing here changes a number.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The run directory.
    pub out: PathBuf,
    /// Continue from the state file, if it exists.
    pub resume: bool,
    /// `auto`, `cpu`, `cuda`, `cuda:1`.
    pub device: String,
    /// File of starting weights, for presets whose `init` asks for one. In a run over folds every fold has its own
    /// where the path contains [`FOLD`].
    pub init: Option<PathBuf>,
    /// Load the weights of that file that match, and initialise the rest at random.
    pub allow_partial: bool,
    /// Stop after this many steps of this call (for tests of resuming); 0 = never.
    pub stop_after: usize,
    /// Receives the run's progress.
    pub reporter: Reporter,
}

/// What a path of starting weights has in place of the fold that is left out.
pub const FOLD: &str = "{fold}";

impl RunOptions {
    /// Whether every fold has starting weights of its own.
    pub(crate) fn by_fold(&self) -> bool {
        self.init.as_ref().is_some_and(|file| file.to_string_lossy().contains(FOLD))
    }

    /// With the starting weights of one fold.
    #[must_use]
    pub fn in_fold(mut self, fold: &str) -> Self {
        if self.by_fold() {
            let own = |file: PathBuf| file.to_string_lossy().replace(FOLD, fold).into();
            self.init = self.init.map(own);
        }
        self
    }

    /// The file of starting weights.
    pub(crate) fn weights(&self) -> StartingWeights<'_> {
        StartingWeights { file: self.init.as_deref(), partial: self.allow_partial }
    }

    /// Reports properties that separate the classes without the cells.
    pub(crate) fn report_shortcuts(&self, shortcuts: &[String]) {
        for warning in shortcuts {
            self.reporter.note(&format!("shortcut: {warning}"));
        }
    }
}

/// One validation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Validation {
    /// Mean loss.
    pub loss: f64,
    /// The loop's own figure (Dice, ROC-AUC); NaN where it is undefined.
    pub metric: f64,
}

/// A running training: model, optimiser, average, files.
pub(crate) struct Session {
    pub vs: VarStore,
    optimiser: AdamW,
    ema: Option<Ema>,
    settings: Loop,
    spec: Spec,
    options: RunOptions,
    /// First step to do.
    pub start: usize,
    best: f64,
    rows: Vec<plot::Row>,
    reporter: Reporter,
    stage: &'static str,
    pace: Pace,
    clock: Instant,
    done_here: usize,
    loss_sum: f64,
    loss_n: usize,
    /// Held by the rank that writes; the others have none.
    lock: Option<Lock>,
    random_at_start: Vec<String>,
    held_out_digest: Option<String>,
    init_sha256: Option<String>,
    lora: Option<Lora>,
    ranks: Rc<Group>,
}

const STATE: &str = "state.safetensors";
/// The weights a run hands on, in its directory.
pub const MODEL: &str = "model.safetensors";
/// In a model's notes: the weights outside the head that no file gave, where a part was allowed.
pub const RANDOM: &str = "random_at_start";

/// What a run begins with.
pub(crate) struct RunSetup<A> {
    /// Name of the stage.
    pub stage: &'static str,
    /// Weights by decay and rate.
    pub groups: Vec<ParamGroup>,
    pub adam: AdamWConfig,
    pub settings: Loop,
    /// The resolved preset.
    pub preset: String,
    pub spec: Spec,
    /// The entry of `run.json` on the data and the initial weights.
    pub about: A,
    /// Weights outside the head that no file gave.
    pub random: Vec<String>,
    /// Digest of the held-out images and their labels, where the preset and the corpus digest do not fix them.
    pub held_out_digest: Option<String>,
    /// SHA-256 of the file of starting weights.
    pub init_sha256: Option<String>,
    /// For the reader of the run, on its held-out results.
    pub notes: Vec<String>,
    /// Adapters in the network, merged into the weights that the run hands on.
    pub lora: Option<Lora>,
    /// The processes of the run; the first writes its files.
    pub ranks: Rc<Group>,
}

/// How many numbers the optimiser changes, of how many there are (adapters among them).
#[derive(Serialize)]
struct Parameters {
    trained: usize,
    total: usize,
}

/// `run.json`.
#[derive(Serialize)]
struct RunFile<'a, A> {
    version: &'a str,
    libtorch: &'a str,
    seed: u64,
    preset_sha256: &'a str,
    corpus_digest: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_digest: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    init_sha256: Option<&'a str>,
    device: String,
    threads: i32,
    started_at_step: usize,
    parameters: Parameters,
    about: &'a A,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    random_at_start: &'a [String],
}

/// Notes of a model that a run hands on.
#[derive(Serialize)]
struct ModelNotes<'a> {
    step: usize,
    validation_loss: Option<f64>,
    validation_metric: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    random_at_start: &'a [String],
}

/// Notes of a state.
#[derive(Serialize)]
struct StateNotes<'a> {
    step: usize,
    best: Option<f64>,
    loss_sum: f64,
    loss_n: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_digest: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    init_sha256: Option<&'a str>,
}

/// Plain data as a JSON value.
pub(crate) fn value(data: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(data).expect("plain data")
}

fn parameters(vs: &VarStore, groups: &[ParamGroup]) -> Parameters {
    let all = vs.variables();
    let names = groups.iter().flat_map(|g| &g.names);
    Parameters {
        trained: names.filter_map(|n| Some(all.get(n)?.numel())).sum(),
        total: vs.trainable_variables().iter().map(Tensor::numel).sum(),
    }
}

/// A warning for a precision that is slower here than f32.
fn slow(precision: Precision, device: Device, cpu_has_bf16: bool) -> Option<&'static str> {
    let software = precision == Precision::Bf16 && device == Device::Cpu && !cpu_has_bf16;
    software.then_some(
        "this processor has no bf16 units, f32 may be ten times as fast here: start again with \
         train.precision=\"f32\" if time matters (the same seed gives other weights then)",
    )
}

impl Session {
    /// Opens the run directory, and continues from its state if requested.
    #[expect(
        clippy::too_many_lines,
        reason = "every check of an earlier run before anything is written"
    )]
    pub fn open(
        vs: VarStore,
        opening: RunSetup<impl Serialize>,
        options: &RunOptions,
    ) -> Result<Self> {
        let RunSetup {
            stage,
            groups,
            adam,
            settings,
            preset,
            mut spec,
            about,
            random,
            held_out_digest,
            init_sha256,
            notes,
            lora,
            ranks,
        } = opening;
        let parameters = parameters(&vs, &groups);
        let writes = ranks.is_first();
        spec.preset_hash = base::digest::sha256(&preset);
        let lock = writes.then(|| Lock::take(&options.out)).transpose()?;
        settings.memory_format.apply(&vs);
        let mut optimiser = AdamW::new(&vs, groups, adam)?;
        let mut ema = (settings.ema > 0.0).then(|| Ema::new(&vs, settings.ema));
        let (mut start, mut best, mut rows) = (0, f64::INFINITY, vec![]);
        let (mut loss_sum, mut loss_n) = (0.0, 0);
        let state = options.out.join(STATE);
        if options.resume && state.is_file() {
            let file = checkpoint::read_tensors(&state)?;
            let saved = file.spec.ok_or_else(|| {
                TrainError::run(&state, "carries no description, so it cannot be continued")
            })?;
            // Older versions did not store them.
            let other = |key: &str, now: &Option<String>| {
                saved.notes[key].as_str().is_some_and(|then| Some(then) != now.as_deref())
            };
            if saved.preset_hash != spec.preset_hash
                || saved.corpus_digest != spec.corpus_digest
                || other("held_out_digest", &held_out_digest)
                || other("init_sha256", &init_sha256)
            {
                return Err(TrainError::run(
                    &state,
                    "was made with another preset or other data, or began with other weights; \
                     give the same ones, or another folder",
                ));
            }
            // The weights that training began with count, whatever the file of starting weights lists now.
            if saved.trained_on.is_some() {
                spec.trained_on.clone_from(&saved.trained_on);
                spec.pretrained_on.clone_from(&saved.pretrained_on);
            }
            let part = |prefix: &str| -> BTreeMap<String, Tensor> {
                let named = |(n, t): (&String, &Tensor)| {
                    Some((n.strip_prefix(prefix)?.to_string(), t.shallow_clone()))
                };
                file.tensors.iter().filter_map(named).collect()
            };
            let model = part("model.");
            let report = checkpoint::load_matching(&model, &vs, |n| Some(n.to_string()));
            if !report.is_exact() {
                return Err(TrainError::run(&state, report));
            }
            start = saved.notes["step"].as_u64().unwrap_or(0) as usize;
            if start < settings.steps {
                optimiser.load_state(&part("optim."))?;
            }
            if let Some(ema) = &mut ema {
                ema.load_state(&part("ema."))?;
            }
            best = saved.notes["best"].as_f64().unwrap_or(f64::INFINITY);
            loss_sum = saved.notes["loss_sum"].as_f64().unwrap_or(0.0);
            loss_n = saved.notes["loss_n"].as_u64().unwrap_or(0) as usize;
            rows = plot::read_rows(&options.out.join("metrics.csv"))?;
            rows.retain(|r| r.step <= start);
        } else if state.is_file() {
            return Err(TrainError::There { path: state });
        }
        ranks.same_step(start)?;
        if writes {
            write_text(&options.out.join("preset.toml"), &preset)?;
        }
        let file = RunFile {
            version: env!("CARGO_PKG_VERSION"),
            libtorch: "2.11",
            seed: settings.seed,
            preset_sha256: &spec.preset_hash,
            corpus_digest: &spec.corpus_digest,
            held_out_digest: held_out_digest.as_deref(),
            init_sha256: init_sha256.as_deref(),
            device: format!("{:?}", vs.device()),
            threads: tch::get_num_threads(),
            started_at_step: start,
            parameters,
            about: &about,
            notes: &notes,
            random_at_start: &random,
        };
        let text = serde_json::to_string_pretty(&file).expect("plain data");
        if writes {
            write_text(&options.out.join("run.json"), &text)?;
        }
        let mut reporter = if writes { options.reporter.clone() } else { Reporter::default() };
        if let Some(note) = slow(settings.precision, vs.device(), device::cpu_has_bf16()) {
            reporter.note(note);
        }
        notes.iter().for_each(|note| reporter.note(note));
        reporter.begin(stage, "steps");
        let pace = Pace::new("steps", start as u64);
        Ok(Self {
            vs,
            optimiser,
            ema,
            settings,
            spec,
            options: options.clone(),
            start,
            best,
            rows,
            reporter,
            stage,
            pace,
            clock: Instant::now(),
            done_here: 0,
            loss_sum,
            loss_n,
            lock,
            random_at_start: random,
            held_out_digest,
            init_sha256,
            lora,
            ranks,
        })
    }

    /// Seeds libtorch for this step, so that dropout does not depend on where a run was resumed;
    /// every rank draws its own.
    pub fn seed_step(&self, step: usize) {
        let own = (self.settings.seed as i64) << 24 | step as i64;
        tch::manual_seed(own ^ (self.ranks.rank() as i64) << 48);
    }

    /// Learning rate of a step.
    pub fn rate(&self, step: usize) -> f64 {
        self.settings.rate(step)
    }

    /// Something that a reader of the run should know.
    pub fn note(&self, text: &str) {
        self.reporter.note(text);
    }

    /// Backward where that is still to do, sum over the ranks, clip, step, average; gives the norm of
    /// the gradients. Stops at a loss that is not a number, and where a rank went away.
    pub fn update(&mut self, step: usize, loss: Loss) -> Result<f64> {
        let (value, more) = match loss {
            Loss::Differentiated(value) => (Some(value), None),
            Loss::Open(loss) => {
                let share = loss / self.ranks.world() as f64;
                let value = share.detach().to_kind(Kind::Float);
                if self.ranks.world() == 1 && !value.double_value(&[]).is_finite() {
                    return Err(TrainError::NotFinite { step, value: value.double_value(&[]) });
                }
                share.backward();
                (None, Some(value))
            }
        };
        ranks::sum_gradients(&self.vs, &self.ranks, more.as_slice())
            .map_err(|e| self.rescue(step, e))?;
        let value = value.or(more.map(|v| v.double_value(&[])));
        self.apply(step, value.unwrap_or(f64::NAN))
    }

    /// When another rank is lost, saves the state of the `done` steps that all of them took, and
    /// reports it.
    pub fn rescue(&self, done: usize, e: TrainError) -> TrainError {
        let TrainError::Net(NetError::Ranks { reason }) = e else { return e };
        let kept = self.lock.is_some() && (done == self.start || self.save(done).is_ok());
        TrainError::Ranks { reason, done, kept }
    }

    /// Forgets all gradients.
    pub fn zero_grad(&mut self) {
        self.optimiser.zero_grad();
    }

    /// Clips the gradients of a loss of this value, takes a step and updates the average; returns their norm.
    ///
    /// # Errors
    /// A loss or a norm that is not finite.
    fn apply(&mut self, step: usize, value: f64) -> Result<f64> {
        if !value.is_finite() {
            return Err(TrainError::NotFinite { step, value });
        }
        let most = if self.settings.clip == 0.0 { f64::INFINITY } else { self.settings.clip };
        let norm = self.optimiser.clip_grad_norm(most)?;
        if !norm.is_finite() {
            return Err(TrainError::NotFinite { step, value: norm });
        }
        self.optimiser.step(self.settings.rate(step))?;
        if let Some(ema) = &mut self.ema {
            ema.update(&self.vs)?;
        }
        self.loss_sum += value;
        self.loss_n += 1;
        Ok(norm)
    }

    /// After step `step`: metrics, validation, files. [`ControlFlow::Break`] at the end of the run.
    pub fn finish_step(
        &mut self,
        step: usize,
        status: &str,
        validate: &dyn Fn() -> Option<Validation>,
    ) -> Result<ControlFlow<()>> {
        let done = step + 1;
        self.done_here += 1;
        let speed =
            (self.done_here * self.settings.batch) as f64 / self.clock.elapsed().as_secs_f64();
        let comma = if status.is_empty() { "" } else { ", " };
        let loss = self.loss_sum / self.loss_n.max(1) as f64;
        self.reporter.status(&format!("loss {loss:.4}, {speed:.1} images/s{comma}{status}"));
        let total = self.settings.steps as u64;
        self.pace.update(&mut self.reporter, self.stage, done as u64, total);
        let last = done == self.settings.steps;
        if done.is_multiple_of(self.settings.epoch) || last {
            let rate = self.settings.rate(step);
            self.rows.push(plot::Row::new(done, "train", loss, f64::NAN, rate, speed));
            (self.loss_sum, self.loss_n) = (0.0, 0);
            if let Some(ema) = &mut self.ema {
                ema.swap(&self.vs);
            }
            // By one, the others wait: what it finds decides on files alone.
            let found = self.ranks.is_first().then(|| tch::no_grad(validate)).flatten();
            if let Some(v) = found {
                self.rows.push(plot::Row::new(done, "validation", v.loss, v.metric, rate, speed));
            }
            // The figure that the kept weights have lowest.
            let figure = found.map(|v| match self.settings.keep {
                Keep::Metric => -v.metric,
                _ => v.loss,
            });
            let better = figure.is_some_and(|f| f < self.best);
            if better {
                self.best = figure.unwrap_or(f64::INFINITY);
            }
            // A run hands on a model even where no validation had a value to choose it by.
            let undefined = last && figure.is_some() && !self.best.is_finite();
            let keep = match (self.settings.keep, found) {
                (Keep::Best | Keep::Metric, Some(_)) => better || undefined,
                _ => last,
            };
            if keep && undefined && self.settings.keep != Keep::Last {
                self.reporter.note(
                    "no validation had a value to choose weights by (the metric needs every class on the held-out \
                     side); the last weights are kept",
                );
            }
            if keep && self.lock.is_some() {
                let mut spec = self.spec.clone();
                spec.notes = value(&ModelNotes {
                    step: done,
                    validation_loss: found.map(|v| v.loss),
                    validation_metric: found.map(|v| v.metric),
                    random_at_start: &self.random_at_start,
                });
                let all = self.vs.variables().into_iter().collect();
                let plain = match &self.lora {
                    Some(lora) => lora.merged(all)?,
                    None => all,
                };
                checkpoint::save_described(&self.options.out.join(MODEL), &plain, &spec)?;
            }
            if let Some(ema) = &mut self.ema {
                ema.swap(&self.vs);
            }
            if self.lock.is_some() {
                plot::write_rows(&self.options.out.join("metrics.csv"), &self.rows)?;
                write_text(&self.options.out.join("loss.svg"), &plot::curves(&self.rows))?;
            }
            self.report_epoch(done, loss, found, speed);
        }
        if self.lock.is_some() && (done.is_multiple_of(self.settings.save_every) || last) {
            self.save(done)?;
        }
        let stop = self.options.stop_after > 0 && self.done_here == self.options.stop_after;
        Ok(if stop || last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn report_epoch(&mut self, step: usize, loss: f64, found: Option<Validation>, speed: f64) {
        let held =
            found.map(|v| format!(", validation loss {:.4}, metric {:.4}", v.loss, v.metric));
        let held = held.unwrap_or_default();
        self.reporter.report(&format!("step {step}: loss {loss:.4}{held}, {speed:.1} images/s"));
        self.reporter.event(&Event::EpochEnded {
            of: self.stage,
            step,
            loss,
            validation_loss: found.map(|v| v.loss),
            validation_metric: found.map(|v| v.metric),
            images_per_second: speed,
        });
    }

    fn save(&self, done: usize) -> Result<()> {
        let mut all: BTreeMap<String, Tensor> = BTreeMap::new();
        let mut put = |prefix: &str, list: BTreeMap<String, Tensor>| {
            all.extend(list.into_iter().map(|(n, t)| (format!("{prefix}.{n}"), t)));
        };
        put("model", self.vs.variables().into_iter().collect());
        // Two thirds of the file, and of no use after the last step.
        if done < self.settings.steps {
            put("optim", self.optimiser.state());
        }
        if let Some(ema) = &self.ema {
            put("ema", ema.state());
        }
        let mut spec = self.spec.clone();
        let best = self.best.is_finite().then_some(self.best);
        let (loss_sum, loss_n) = (self.loss_sum, self.loss_n);
        spec.notes = value(&StateNotes {
            step: done,
            best,
            loss_sum,
            loss_n,
            held_out_digest: self.held_out_digest.as_deref(),
            init_sha256: self.init_sha256.as_deref(),
        });
        Ok(checkpoint::save_described(&self.options.out.join(STATE), &all, &spec)?)
    }
}

/// Clears the live line, also where a run failed.
impl Drop for Session {
    fn drop(&mut self) {
        self.reporter.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::{FinetunePreset, Preset as _};

    #[test]
    fn only_bf16_in_software_gives_a_warning() {
        let warning = slow(Precision::Bf16, Device::Cpu, false).unwrap();
        assert!(warning.contains("train.precision=\"f32\""), "{warning}");
        assert_eq!(slow(Precision::Bf16, Device::Cpu, true), None);
        assert_eq!(slow(Precision::Bf16, Device::Cuda(0), false), None);
        assert_eq!(slow(Precision::F32, Device::Cpu, false), None);
    }
    #[test]
    fn a_run_whose_metric_is_never_defined_hands_on_its_last_weights() {
        let dir = tempfile::tempdir().unwrap();
        let file = testkit::workspace().join("presets/finetune-smoke.toml");
        let preset = FinetunePreset::load(&file, &["train.keep=\"metric\"".to_owned()]).unwrap();
        let settings = Loop { steps: 2, epoch: 1, ..preset.train };
        for (name, metrics, kept) in
            [("never", [f64::NAN, f64::NAN], 2), ("once", [0.5, f64::NAN], 1)]
        {
            let vs = VarStore::new(Device::Cpu);
            let _ = vs.root().zeros("w", &[1]);
            let setup = RunSetup {
                stage: "test",
                groups: vec![],
                adam: AdamWConfig::default(),
                settings: settings.clone(),
                preset: String::new(),
                spec: Spec::new("test", &(), 8).unwrap(),
                about: (),
                random: vec![],
                held_out_digest: None,
                init_sha256: None,
                notes: vec![],
                lora: None,
                ranks: Rc::new(Group::single()),
            };
            let options = RunOptions {
                out: dir.path().join(name),
                resume: false,
                device: "cpu".into(),
                init: None,
                allow_partial: false,
                stop_after: 0,
                reporter: Reporter::default(),
            };
            let mut session = Session::open(vs, setup, &options).unwrap();
            for (step, metric) in metrics.into_iter().enumerate() {
                let found = move || Some(Validation { loss: 1.0, metric });
                let _ = session.finish_step(step, "", &found).unwrap();
            }
            let model = checkpoint::description(&options.out.join(MODEL)).unwrap().unwrap();
            assert_eq!(model.notes["step"], kept, "{name}");
        }
    }
}
