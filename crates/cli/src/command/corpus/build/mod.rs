//! `mithras corpus build` (C1-C5): from slides to a corpus, resumable at any point.
//!
//! Every slide gets a folder under `OUT/.build` with its crops and `state.json`. When all are done
//! the parts are joined in the order of slide names, so the corpus is the same whatever the number
//! of workers and however often the build was killed.

mod exclude;
mod one;
mod preset;

use crate::command::detect::EngineArgs;
use anyhow::{Context, bail, ensure};
use artifact::digest::sha256;
use artifact::file::{self, Lock};
use corpus::manifest::MANIFEST;
use corpus::{Columns, Corpus, CorpusWriter, Header, Layout};
use exclude::{Exclusions, Origin, Table};
use infer::{EngineOptions, ModelPackage};
use mithras::job::state::InputDigest;
use mithras::job::{self, Input, Stages};
use mitosis::Mpp;
use one::{Funnel, Seconds, Worker};
use preset::{Kind, Preset};
use serde::{Deserialize, Serialize};
use slide::{OpenOptions, Slide};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

/// Builds a corpus from slides: tissue tiles, tumour filter, detector, pseudo-labels, crops.
///
/// Run the same command again to go on after a kill, a failure, or with more slides.
#[derive(clap::Args)]
pub struct Args {
    /// Slides, folders or patterns.
    #[arg(required = true)]
    slides: Vec<PathBuf>,
    /// Bundled preset (tcga-mf-pseudo, tcga-unlabeled) or a preset file.
    #[arg(long)]
    preset: String,
    /// Corpus folder.
    #[arg(long)]
    out: PathBuf,
    /// CSV with the columns slide, cohort, patient.
    #[arg(long, value_name = "CSV")]
    table: Option<PathBuf>,
    /// Cohort of slides that the table does not name.
    #[arg(long)]
    cohort: Option<String>,
    /// List of `cohort|patient|slide,NAME` lines to keep out. Repeat for several.
    #[arg(long, value_name = "FILE")]
    exclude: Vec<PathBuf>,
    /// Evaluation corpus whose slides and patients are kept out. Repeat for several.
    #[arg(long, value_name = "DIR")]
    evaluation: Vec<PathBuf>,
    /// Model package of the tumour filter.
    #[arg(long, value_name = "DIR", conflicts_with = "no_tumour_filter")]
    tumour_filter: Option<PathBuf>,
    /// The filter's class that counts as tumour, against the preset.
    #[arg(long, value_name = "CLASS", requires = "tumour_filter")]
    tumour_class: Option<String>,
    /// Keeps every tissue tile; the manifest says so.
    #[arg(long)]
    no_tumour_filter: bool,
    /// um/px of slides that do not state theirs.
    #[arg(long, value_name = "UM_PER_PX")]
    mpp: Option<f64>,
    /// CSV with the columns slide, mpp.
    #[arg(long, value_name = "CSV")]
    mpp_table: Option<PathBuf>,
    /// Slides at once; each worker loads the models.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    #[command(flatten)]
    engine: EngineArgs,
    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Done,
    Failed,
    Excluded,
}

/// `state.json` of a slide.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    slide: String,
    identity: String,
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    cohort: String,
    funnel: Funnel,
    seconds: Seconds,
}

/// `build.json` and `--json`.
#[derive(Serialize)]
struct Report<'a> {
    corpus: &'a Path,
    digest: &'a str,
    crops: u64,
    slides: usize,
    excluded: usize,
    failed: Vec<&'a State>,
    funnel: BTreeMap<&'static str, u64>,
    cohorts: BTreeMap<&'a str, BTreeMap<&'static str, u64>>,
    seconds: Seconds,
    /// Share of each stage in the time spent on slides.
    shares: BTreeMap<&'static str, f64>,
    /// Tiles on tissue per second spent on slides.
    tiles_per_second: f64,
    /// Crops per second spent on slides.
    crops_per_second: f64,
    wall_seconds: f64,
    resumed: usize,
}

/// Runs the build.
pub fn run(a: &Args) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let mut preset = Preset::find(&a.preset)?;
    if let (Some(class), Some(tiles)) = (&a.tumour_class, &mut preset.tiles) {
        tiles.tumour_class.clone_from(class);
    }
    let pseudo = preset.kind == Kind::PseudoLabels;
    if pseudo && a.tumour_filter.is_none() && !a.no_tumour_filter {
        bail!(
            "name the tumour filter with --tumour-filter DIR, or keep all tissue with --no-tumour-filter"
        );
    }
    let mpp = a.mpp.map(Mpp::new).transpose().context("--mpp")?;
    let mpps = a.mpp_table.as_deref().map(job::read_mpp_table).transpose()?.unwrap_or_default();
    let mut inputs = job::find(&a.slides, mpp, &mpps)?.slides;
    inputs.sort_by(|x, y| x.name.cmp(&y.name));
    let table = a.table.as_deref().map(Table::read).transpose()?.unwrap_or_default();
    let exclusions = Exclusions::new(&preset.exclude_cohorts, &a.exclude, &a.evaluation)?;
    let parts = a.out.join(".build");
    std::fs::create_dir_all(&a.out).with_context(|| a.out.display().to_string())?;
    let _lock = Lock::take(&parts)?;

    let mut workers = vec![worker(a, &preset)?];
    let config = config(&preset, &workers[0], a)?;
    let config_digest = sha256(serde_json::to_vec(&config)?);
    let mut states: Vec<Option<State>> = Vec::new();
    let mut todo = VecDeque::new();
    let mut resumed = 0;
    for (i, input) in inputs.iter().enumerate() {
        let file = input.path.file_name().unwrap_or_default().to_string_lossy();
        let origin = table.origin(&input.name, &file, a.cohort.as_deref())?;
        if let Some(reason) = exclusions.reason(&input.name, &origin) {
            states.push(Some(State {
                slide: input.name.clone(),
                identity: String::new(),
                status: Status::Excluded,
                reason: Some(reason),
                cohort: origin.cohort,
                funnel: Funnel::default(),
                seconds: Seconds::default(),
            }));
            continue;
        }
        let identity = identity(input, &origin, &config_digest);
        let stored = identity.as_ref().ok().and_then(|id| load(&parts, &input.name, id));
        resumed += usize::from(stored.is_some());
        if stored.is_none() {
            todo.push_back((i, origin, identity));
        }
        states.push(stored);
    }
    while workers.len() < a.workers.clamp(1, todo.len().max(1)) {
        workers.push(worker(a, &preset)?);
    }
    let (queue, done) = (Mutex::new(todo), Mutex::new(&mut states));
    std::thread::scope(|scope| {
        for worker in &mut workers {
            let (queue, done, inputs, preset, parts) = (&queue, &done, &inputs, &preset, &parts);
            scope.spawn(move || {
                loop {
                    let next = queue.lock().ok().and_then(|mut q| q.pop_front());
                    let Some((i, origin, identity)) = next else { break };
                    let state = slide(&inputs[i], origin, identity, preset, worker, parts);
                    eprintln!("{}", line(&state));
                    if let Ok(mut states) = done.lock() {
                        states[i] = Some(state);
                    }
                }
            });
        }
    });
    let states: Vec<State> = states.into_iter().flatten().collect();
    ensure!(states.len() == inputs.len(), "a worker ended early; run the command again");
    let digest = join(a, &preset, config, &states, &parts)?;
    let code = report(a, &states, &digest, start, resumed)?;
    Ok(code)
}

fn line(s: &State) -> String {
    match (&s.status, &s.reason) {
        (Status::Done, _) => format!(
            "{}: {} tiles, {} figures, {} mimickers, {} patches",
            s.slide, s.funnel.tumour_tiles, s.funnel.figures, s.funnel.mimickers, s.funnel.patches
        ),
        (_, reason) => format!("{}: FAILED: {}", s.slide, reason.as_deref().unwrap_or("")),
    }
}

fn worker(a: &Args, preset: &Preset) -> anyhow::Result<Worker> {
    if preset.kind == Kind::Unlabeled {
        return Ok(Worker { setup: None, filter: None });
    }
    let mut filter = None;
    if let (Some(dir), Some(tiles)) = (&a.tumour_filter, &preset.tiles) {
        let package = ModelPackage::find(Some(dir))?;
        if let Some(c) = &package.card.classifier {
            ensure!(
                c.crop == tiles.sub as usize,
                "{}: the filter takes crops of {} px, the preset's sub-patches have {} px",
                dir.display(),
                c.crop,
                tiles.sub
            );
        }
        let models = infer::open(&package, &EngineOptions::default())?;
        let classifier = models
            .classifier
            .with_context(|| format!("{}: the package has no classifier", dir.display()))?;
        let names = classifier.class_names();
        let tumour = names.iter().position(|n| *n == tiles.tumour_class).with_context(|| {
            format!(
                "{}: no class `{}` among {}; say which one is tumour with --tumour-class",
                dir.display(),
                tiles.tumour_class,
                names.join(", ")
            )
        })?;
        filter = Some((classifier, tumour));
    }
    Ok(Worker { setup: Some(a.engine.setup(Stages::Two)?), filter })
}

/// Everything that changes a crop; goes into the manifest.
fn config(preset: &Preset, worker: &Worker, a: &Args) -> anyhow::Result<serde_json::Value> {
    let filter = match &a.tumour_filter {
        Some(dir) => {
            let package = ModelPackage::find(Some(dir))?;
            let sha256 = package.classifier().map(sha256);
            let card = package.card.classifier.as_ref();
            let tiles = preset.tiles.as_ref();
            serde_json::json!({
                "name": package.card.name,
                "license": package.card.license,
                "sha256": sha256,
                "classes": card.map(|c| &c.classes),
                "trained_at_mpp": card.map(|c| c.mpp),
                "used_at_mpp": tiles.map(|t| t.mpp),
                "tumour_class": tiles.map(|t| &t.tumour_class),
                "rule": "kept when every sub-patch has the tumour class as its most probable one",
                "sub_patches": tiles.map(|t| (t.side / t.sub).pow(2)),
            })
        }
        None => serde_json::json!("none: every tissue tile was kept"),
    };
    Ok(serde_json::json!({
        "preset": preset,
        "detector": worker.setup.as_ref().map(|s| &s.config),
        "tumour_filter": filter,
    }))
}

fn identity(input: &Input, origin: &Origin, config: &str) -> std::io::Result<String> {
    let file = InputDigest::of(&input.path)?;
    let text = format!(
        "{config} {} {} {:?} {:?} {}",
        file.size,
        file.sha256,
        input.mpp,
        origin,
        env!("CARGO_PKG_VERSION")
    );
    Ok(sha256(text))
}

/// A finished slide of this very build whose part is whole.
fn load(parts: &Path, name: &str, identity: &str) -> Option<State> {
    let text = std::fs::read_to_string(parts.join(name).join("state.json")).ok()?;
    let state: State = serde_json::from_str(&text).ok()?;
    let whole = || Corpus::open(parts.join(name).join("crops")).is_ok();
    (state.identity == identity && state.status == Status::Done && whole()).then_some(state)
}

fn slide(
    input: &Input,
    origin: Origin,
    identity: std::io::Result<String>,
    preset: &Preset,
    worker: &mut Worker,
    parts: &Path,
) -> State {
    let folder = parts.join(&input.name);
    let cohort = origin.cohort.clone();
    let work = || -> anyhow::Result<(String, Funnel, Seconds)> {
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let identity = identity.with_context(|| input.path.display().to_string())?;
        // An old state must not vouch for a new part.
        let _ = std::fs::remove_file(folder.join("state.json"));
        let options = OpenOptions { mpp: input.mpp, ..OpenOptions::default() };
        let opened = Slide::open_with(&input.path, &options)?;
        opened.resolution()?;
        let part = folder.join("crops");
        let (funnel, seconds) =
            one::build(&opened, &input.name, &origin, preset, worker, &part, &identity)?;
        Ok((identity, funnel, seconds))
    };
    let mut state = State {
        slide: input.name.clone(),
        identity: String::new(),
        status: Status::Failed,
        reason: None,
        cohort,
        funnel: Funnel::default(),
        seconds: Seconds::default(),
    };
    match work() {
        Ok((identity, funnel, seconds)) => {
            state = State { identity, funnel, seconds, status: Status::Done, ..state };
        }
        Err(e) => state.reason = Some(format!("{e:#}")),
    }
    let text = serde_json::to_vec_pretty(&state).unwrap_or_default();
    if let Err(e) = file::write(&folder.join("state.json"), &text) {
        state.status = Status::Failed;
        state.reason.get_or_insert(e.to_string());
    }
    state
}

/// Joins the parts in the order of slide names and moves the result into place.
fn join(
    a: &Args,
    preset: &Preset,
    config: serde_json::Value,
    states: &[State],
    parts: &Path,
) -> anyhow::Result<String> {
    let listed = |status| -> serde_json::Value {
        let of: Vec<_> = states.iter().filter(|s| s.status == status).collect();
        of.iter().map(|s| serde_json::json!({"slide": s.slide, "reason": s.reason})).collect()
    };
    let mut funnel = Funnel::default();
    states.iter().for_each(|s| funnel.add(&s.funnel));
    let mut header = Header {
        name: preset.name.clone(),
        builder: super::builder(),
        preset: Some(preset.digest()),
        ..Header::default()
    };
    header.notes.insert("build".into(), config);
    header.notes.insert("funnel".into(), serde_json::to_value(funnel)?);
    header.notes.insert("excluded".into(), listed(Status::Excluded));
    header.notes.insert("failed".into(), listed(Status::Failed));
    let fresh = parts.join("joined");
    if fresh.exists() {
        std::fs::remove_dir_all(&fresh)?;
    }
    let mut writer = CorpusWriter::create(&fresh, header, Layout::default())?;
    for s in states.iter().filter(|s| s.status == Status::Done) {
        for crop in Corpus::open(parts.join(&s.slide).join("crops"))?.crops(Columns::All)? {
            let crop = crop?;
            writer.push(crop.meta, crop.image)?;
        }
    }
    let manifest = writer.finish()?;
    let same = Corpus::open(&a.out).is_ok_and(|old| *old.manifest() == manifest);
    if !same {
        // Without a manifest the folder is no corpus; a kill here is repaired by the next run.
        let old = a.out.join(MANIFEST);
        if old.exists() {
            std::fs::remove_file(&old)?;
        }
        for entry in std::fs::read_dir(&a.out)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("shard-") && name.ends_with(".parquet") {
                std::fs::remove_file(path)?;
            }
        }
        for s in &manifest.shards {
            std::fs::rename(fresh.join(&s.file), a.out.join(&s.file))?;
        }
        std::fs::rename(fresh.join(MANIFEST), old)?;
    }
    std::fs::remove_dir_all(&fresh)?;
    Ok(manifest.digest)
}

fn report(
    a: &Args,
    states: &[State],
    digest: &str,
    start: Instant,
    resumed: usize,
) -> anyhow::Result<ExitCode> {
    let mut total = Funnel::default();
    let mut per_cohort: BTreeMap<&str, Funnel> = BTreeMap::new();
    let mut seconds = Seconds::default();
    for s in states {
        total.add(&s.funnel);
        if s.status == Status::Done {
            per_cohort.entry(&s.cohort).or_default().add(&s.funnel);
        }
        seconds.tissue += s.seconds.tissue;
        seconds.filter += s.seconds.filter;
        seconds.detect += s.seconds.detect;
        seconds.crops += s.seconds.crops;
    }
    let spent = seconds.tissue + seconds.filter + seconds.detect + seconds.crops;
    let share = |s: f64| if spent > 0.0 { s / spent } else { 0.0 };
    let crops = total.figures + total.mimickers + total.patches;
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = |n: u64| if spent > 0.0 { n as f64 / spent } else { 0.0 };
    let failed: Vec<&State> = states.iter().filter(|s| s.status == Status::Failed).collect();
    let r = Report {
        corpus: &a.out,
        digest,
        crops,
        slides: states.len(),
        excluded: states.iter().filter(|s| s.status == Status::Excluded).count(),
        failed,
        funnel: total.rows().into_iter().collect(),
        cohorts: per_cohort.iter().map(|(&c, f)| (c, f.rows().into_iter().collect())).collect(),
        seconds,
        shares: BTreeMap::from([
            ("tissue", share(seconds.tissue)),
            ("filter", share(seconds.filter)),
            ("detect", share(seconds.detect)),
            ("crops", share(seconds.crops)),
        ]),
        tiles_per_second: rate(total.tissue_tiles),
        crops_per_second: rate(crops),
        wall_seconds: start.elapsed().as_secs_f64(),
        resumed,
    };
    let text = serde_json::to_string_pretty(&r)?;
    file::write(&a.out.join("build.json"), text.as_bytes())?;
    if a.json {
        println!("{text}");
    } else {
        print!("{:<34}", "");
        for cohort in per_cohort.keys() {
            print!("{cohort:>14}");
        }
        println!("{:>14}", "all");
        for (k, (name, n)) in total.rows().into_iter().enumerate() {
            print!("{name:<34}");
            for f in per_cohort.values() {
                print!("{:>14}", f.rows()[k].1);
            }
            println!("{n:>14}");
        }
        let shares: Vec<String> =
            r.shares.iter().map(|(n, s)| format!("{n} {:.0} %", 100.0 * s)).collect();
        println!(
            "{:.1} tiles/s, {:.1} crops/s ({})",
            r.tiles_per_second,
            r.crops_per_second,
            shares.join(", ")
        );
        println!(
            "{} slides: {} excluded, {} failed, {} taken over from before",
            r.slides,
            r.excluded,
            r.failed.len(),
            r.resumed
        );
        for s in states.iter().filter(|s| s.status != Status::Done) {
            println!("  {}: {}", s.slide, s.reason.as_deref().unwrap_or(""));
        }
        println!("digest {digest}");
    }
    Ok(if r.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
