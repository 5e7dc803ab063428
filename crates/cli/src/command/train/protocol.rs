//! `mithras train finetune` on a task, `mithras train probe`, `mithras train test`.

use super::super::evaluate_classification::report;
use super::learn::Common;
use anyhow::{Context, Result, bail};
use artifact::file::Lock;
use corpus::task::{TestSet, TrainingSet};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use train::protocol::{
    self, About, FinetunePreset, PREDICTIONS, Prediction, ProbePreset, fold_dir, tables,
};

/// Linear probing: a linear head on the frozen encoder, over folds of whole slides
///
/// The encoder sees every image once (per symmetric copy); its features are kept in the run. Test
/// parts are never read.
#[derive(clap::Args, Debug)]
pub struct ProbeArgs {
    #[command(flatten)]
    common: Common,
}

/// Score the fold models of a run on the task's test part, once
///
/// Writes predictions.csv (every item by every fold's model), metrics.json (per fold, mean and
/// sample SD, per domain), ensemble.csv and ensemble.json (mean probabilities); a run of ami-morph
/// is scored on ami-br as well, by summed probabilities (*-ami-br.*). Of two classes the figures at
/// the operating point, which is chosen on the held-out items, stand beside those of the likelier
/// class. A second scoring of the same run is refused unless --again is given, because whoever chooses by test figures has no
/// test set left.
#[derive(clap::Args, Debug)]
pub struct TestArgs {
    /// Run of `mithras train finetune` or `probe`, all folds trained
    #[arg(long, value_name = "RUN")]
    run: PathBuf,
    /// Folder with ami_br/, or with test/<class>/
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Folder for the results [default: RUN/test]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Score a run that was scored before
    #[arg(long)]
    again: bool,
    /// auto, cpu, cuda, cuda:N
    #[arg(long, default_value = "auto")]
    device: String,
    /// Threads of libtorch; 0 = all cores
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

fn folds_of(text: &str, folds: usize) -> Result<Vec<usize>> {
    if text == "all" {
        return Ok((0..folds).collect());
    }
    match text.parse() {
        Ok(k) if k < folds => Ok(vec![k]),
        _ => bail!("--fold {text}: give `all` or a number from 0 to {}", folds - 1),
    }
}

pub fn finetune(c: &Common) -> Result<()> {
    train::set_up(c.threads);
    let preset = FinetunePreset::load(&c.preset, &c.set)?;
    let set = TrainingSet::open(preset.task, &c.data)?;
    let options = c.options(&c.out);
    for k in folds_of(&c.fold, preset.data.folds)? {
        eprintln!("fold {k}: run directory {}", fold_dir(&c.out, k).display());
        protocol::finetune(&preset, &set, k, &options).with_context(|| format!("fold {k}"))?;
    }
    finish(&c.out)
}

pub fn probe(args: ProbeArgs) -> Result<()> {
    let c = &args.common;
    train::set_up(c.threads);
    let preset = ProbePreset::load(&c.preset, &c.set)?;
    let set = TrainingSet::open(preset.task, &c.data)?;
    let only = match c.fold.as_str() {
        "all" => None,
        one => folds_of(one, preset.data.folds)?.first().copied(),
    };
    protocol::probe(&preset, &set, only, &c.options(&c.out))?;
    finish(&c.out)
}

/// Metrics of the folds that are there; over all of them once they are complete.
fn finish(run: &Path) -> Result<()> {
    let about = About::read(run)?;
    for name in tables(about.task, PREDICTIONS) {
        let mut rows = String::new();
        let mut there = 0;
        for k in 0..about.folds {
            let dir = fold_dir(run, k);
            let path = dir.join(&name).with_extension("csv");
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let metrics = report(&path, None, Some("domain"), None)?;
            put(&dir, &name, &about, metrics, "held-out items of the fold")?;
            let body = if rows.is_empty() { 0 } else { text.find('\n').map_or(0, |n| n + 1) };
            rows.push_str(&text[body..]);
            there += 1;
        }
        if there < about.folds {
            eprintln!("{name}: {there} of {} folds are done", about.folds);
            continue;
        }
        let path = run.join(&name).with_extension("csv");
        artifact::file::write(&path, rows.as_bytes())?;
        let metrics = report(&path, Some("fold"), Some("domain"), None)?;
        say(&name, &about, &metrics);
        put(run, &name, &about, metrics, "held-out items of all folds")?;
    }
    Ok(())
}

/// Writes the metrics of the table `name`: `metrics.json` beside `predictions.csv`, and so on.
fn put(
    dir: &Path,
    name: &str,
    about: &About,
    metrics: Map<String, Value>,
    what: &str,
) -> Result<()> {
    let path = dir.join(name.replace(PREDICTIONS, "metrics")).with_extension("json");
    let mut out = Map::new();
    out.insert("schema".into(), json!("mithras.classification/1"));
    out.insert("items".into(), json!(what));
    out.insert("run".into(), json!(about));
    out.extend(metrics);
    let text = serde_json::to_string_pretty(&Value::Object(out))?;
    artifact::file::write(&path, text.as_bytes())?;
    Ok(())
}

fn say(name: &str, about: &About, metrics: &Map<String, Value>) {
    let keys = ["f1", "macro_f1", "balanced_accuracy", "accuracy", "roc_auc"];
    for key in keys {
        let over = metrics.get("over_folds").and_then(|o| o.get(key));
        if let (Some(mean), Some(sd)) =
            (over.and_then(|o| o["mean"].as_f64()), over.and_then(|o| o["sd"].as_f64()))
        {
            println!("{name}: {key} {mean:.3} +- {sd:.3} over {} folds", about.folds);
        }
    }
}

/// Of two classes: the positive one and the probability from which on it has the largest F1, pooled
/// over the held-out sides of all folds.
pub fn operating_point(run: &Path, table: &str) -> Result<Option<(String, f64)>> {
    let path = run.join(table).with_extension("csv");
    if !path.is_file() {
        return Ok(None);
    }
    let metrics = report(&path, None, None, None)?;
    let threshold = metrics.get("largest_f1").and_then(|l| l["threshold"].as_f64());
    let positive = metrics.get("positive").and_then(Value::as_str);
    Ok(positive.map(str::to_owned).zip(threshold))
}

pub fn test(args: TestArgs) -> Result<()> {
    train::set_up(args.threads);
    let about = About::read(&args.run)?;
    let _lock = Lock::take(&args.run)?;
    let out = args.out.clone().unwrap_or_else(|| args.run.join("test"));
    let marker = args.run.join("tested.json");
    if marker.exists() && !args.again {
        bail!(
            "{}: this run was scored on its test part before ({}); a test part is for one scoring \
             at the end (--again does it anyway)",
            args.run.display(),
            std::fs::read_to_string(&marker)?.trim()
        );
    }
    let set = TestSet::open(about.task, &args.data)?;
    let mut lists = protocol::test(&args.run, &set, &args.device)?;
    std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let ensemble = lists.pop().unwrap_or_default();
    let rows: Vec<Prediction> = lists.into_iter().flatten().collect();
    for (stem, rows, fold, what) in [
        (PREDICTIONS, &rows, Some("fold"), "test part, every fold's model"),
        ("ensemble", &ensemble, None, "test part, mean probabilities of the folds"),
    ] {
        protocol::write_predictions(&out, stem, &set, rows)?;
        for name in tables(about.task, stem) {
            let path = out.join(&name).with_extension("csv");
            let mut metrics = report(&path, fold, Some("domain"), None)?;
            say(&name, &about, &metrics);
            // A threshold that fits the test items best is nobody's business.
            metrics.remove("largest_f1");
            let held_out = name.replacen(stem, PREDICTIONS, 1);
            if let Some((_, threshold)) = operating_point(&args.run, &held_out)? {
                let mut at = report(&path, fold, Some("domain"), Some(threshold))?;
                say(&format!("{name} from {threshold:.3} on"), &about, &at);
                at.remove("largest_f1");
                metrics.insert("at_operating_point".into(), Value::Object(at));
            }
            put(&out, &name, &about, metrics, what)?;
        }
    }
    let note = json!({ "test_set_sha256": set.digest(), "items": set.items().len() });
    artifact::file::write(&marker, note.to_string().as_bytes())?;
    println!("written to {}", out.display());
    Ok(())
}
