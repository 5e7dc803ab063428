//! `mithras evaluate classification`: predicted classes against true ones (S4, K4).

use super::survival::output::{print_columns, say};
use anyhow::{Context, Result, bail};
use outcome::Table;
use serde_json::{Map, Value, json};
use stats::metrics::{ConfusionMatrix, f1_threshold, macro_roc_auc, roc_auc, summarize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

/// Classification metrics of a table of predictions, equal to scikit-learn's
///
/// The table has one row per crop: the true class, the predicted class and, optionally, p_<class>
/// columns, as `mithras classify` and the training protocols write them. Undefined scores are zero;
/// ROC-AUC is absent where one class is missing.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// CSV, TSV or Parquet with one row per item
    #[arg(long, value_name = "FILE")]
    predictions: PathBuf,
    /// Further tables of the same items: the mean of all p_<class> is judged (an ensemble); joined by --key
    #[arg(long, value_name = "FILE", num_args = 1..)]
    mean_with: Vec<PathBuf>,
    /// Table with the true classes, if they are not in the predictions; joined by --key
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Column that joins predictions and labels
    #[arg(long, value_name = "COLUMN", default_value = "file")]
    key: String,
    /// Column of true classes (default: truth, label, target, true_class or y_true)
    #[arg(long, value_name = "COLUMN")]
    truth: Option<String>,
    /// Column of predicted classes (default: class, predicted, prediction, pred or y_pred; else the
    /// largest p_<class>)
    #[arg(long, value_name = "COLUMN")]
    predicted: Option<String>,
    /// The positive class of precision, recall and F1
    #[arg(long, value_name = "CLASS")]
    positive: Option<String>,
    /// Call the positive class from this probability on, instead of the predicted class (two classes)
    #[arg(long, value_name = "P", value_parser = probability)]
    threshold: Option<f64>,
    /// Column of folds: mean and sample SD over them as well
    #[arg(long, value_name = "COLUMN")]
    fold: Option<String>,
    /// Column of domains: one row of figures for each
    #[arg(long, value_name = "COLUMN")]
    domain: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(p) if p > 0.0 && p < 1.0 => Ok(p),
        _ => Err("not a probability inside (0, 1)".into()),
    }
}

const TRUTH: &[&str] = &["truth", "label", "target", "true_class", "y_true", "true"];
const PREDICTED: &[&str] = &["class", "predicted", "prediction", "pred", "y_pred"];
const POSITIVE: &[&str] = &["atypical", "mitotic", "positive", "1", "true", "yes"];

/// Items coded by class.
struct Items {
    classes: Vec<String>,
    truth: Vec<usize>,
    predicted: Vec<usize>,
    /// Row-major items x classes.
    scores: Option<Vec<f64>>,
    positive: Option<usize>,
}

/// The figures of a file of predictions, with folds and domains named by their columns; with a
/// threshold, the positive class is called from that probability on.
#[cfg(feature = "train")]
pub fn report(
    predictions: &std::path::Path,
    fold: Option<&str>,
    domain: Option<&str>,
    threshold: Option<f64>,
) -> Result<Map<String, Value>> {
    let args = Args {
        predictions: predictions.to_path_buf(),
        mean_with: Vec::new(),
        labels: None,
        key: "file".into(),
        truth: None,
        predicted: None,
        positive: None,
        threshold,
        fold: fold.map(str::to_owned),
        domain: domain.map(str::to_owned),
        json: true,
    };
    evaluate(&args).map(|(_, out)| out)
}

pub fn run(args: &Args) -> Result<()> {
    let (items, out) = evaluate(args)?;
    if let Some(notes) = out.get("notes").and_then(Value::as_array) {
        say("note", &notes.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>());
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&Value::Object(out))?);
    } else {
        print(&items, &out);
    }
    Ok(())
}

fn evaluate(args: &Args) -> Result<(Items, Map<String, Value>)> {
    let table = Table::read(&args.predictions, &[])?;
    let mut notes = Vec::new();
    let mut items = read(args, &table, &mut notes)?;
    join(args, &table, &mut items)?;
    call(args.threshold, &mut items)?;
    let all: Vec<usize> = (0..items.truth.len()).collect();
    let mut out = figures(&items, &all)?;
    if let Some(found) = largest_f1(&items)? {
        out.insert("largest_f1".into(), found);
    }
    if let Some(threshold) = args.threshold {
        out.insert("threshold".into(), json!(threshold));
    }
    let split = |name: &Option<String>| -> Result<Vec<(String, Value)>> {
        let Some(name) = name else { return Ok(Vec::new()) };
        let column = table.column(name)?;
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for row in 0..table.len() {
            let group = table
                .cell(row, column)
                .with_context(|| format!("{}: is missing", table.place(row, column)))?;
            groups.entry(group.to_owned()).or_default().push(row);
        }
        groups
            .into_iter()
            .map(|(name, rows)| Ok((name, Value::Object(figures(&items, &rows)?))))
            .collect()
    };
    let folds = split(&args.fold)?;
    let domains = split(&args.domain)?;
    if !folds.is_empty() {
        out.insert("over_folds".into(), over_folds(&folds)?);
        out.insert("folds".into(), Value::Object(folds.into_iter().collect()));
    }
    if !domains.is_empty() {
        out.insert("domains".into(), Value::Object(domains.into_iter().collect()));
    }
    out.insert("notes".into(), json!(notes));
    Ok((items, out))
}

fn read(args: &Args, table: &Table, notes: &mut Vec<String>) -> Result<Items> {
    let text = |table: &Table, row: usize, column: usize| -> Result<String> {
        let cell = table.cell(row, column);
        cell.map(str::to_owned)
            .with_context(|| format!("{}: the class is missing", table.place(row, column)))
    };
    let pick = |table: &Table, named: &Option<String>, usual: &[&str]| match named {
        Some(name) => table.column(name).map(Some),
        None => Ok(table.first_of(usual)),
    };
    let rows = 0..table.len();
    let truth: Vec<String> = if let Some(path) = &args.labels {
        let labels = Table::read(path, &[])?;
        let column =
            pick(&labels, &args.truth, TRUTH)?.or(labels.first_of(&["class"])).with_context(
                || format!("{}: none of the columns {}", path.display(), TRUTH.join(", ")),
            )?;
        let key = table.column(&args.key)?;
        let known = rows_by(&labels, &args.key)?;
        rows.clone()
            .map(|row| {
                let at = *known.get(table.raw(row, key)).with_context(|| {
                    format!("{}: has no label in {}", table.place(row, key), path.display())
                })?;
                text(&labels, at, column)
            })
            .collect::<Result<_>>()?
    } else {
        let column = pick(table, &args.truth, TRUTH)?.with_context(|| {
            format!(
                "{}: no column of true classes ({}); name it with --truth, or give --labels",
                args.predictions.display(),
                TRUTH.join(", ")
            )
        })?;
        rows.clone().map(|row| text(table, row, column)).collect::<Result<_>>()?
    };
    let probabilities: Vec<(String, usize)> = table
        .names()
        .iter()
        .enumerate()
        .filter_map(|(j, n)| n.strip_prefix("p_").map(|class| (class.to_owned(), j)))
        .collect();
    let predicted: Vec<String> = match pick(table, &args.predicted, PREDICTED)? {
        Some(column) => rows.clone().map(|row| text(table, row, column)).collect::<Result<_>>()?,
        None if probabilities.len() > 1 => rows
            .clone()
            .map(|row| {
                let p = probabilities.iter().map(|(_, j)| table.number(row, *j));
                let p = p.collect::<outcome::Result<Vec<_>>>()?;
                Ok(probabilities[mitosis::likeliest(&p)].0.clone())
            })
            .collect::<Result<_>>()?,
        None => bail!(
            "{}: no column of predicted classes ({}) and no p_<class> columns; name it with \
             --predicted",
            args.predictions.display(),
            PREDICTED.join(", ")
        ),
    };
    let mut set: BTreeSet<String> = truth.iter().chain(&predicted).cloned().collect();
    set.extend(probabilities.iter().map(|(class, _)| class.clone()));
    let classes: Vec<String> = set.into_iter().collect();
    let code = |values: &[String]| -> Vec<usize> {
        values.iter().map(|v| classes.partition_point(|c| c < v)).collect()
    };
    let scores = match probabilities.len() {
        k if k == classes.len() => {
            let columns: HashMap<&str, usize> =
                probabilities.iter().map(|(c, j)| (c.as_str(), *j)).collect();
            let cell = |row: usize, class: &String| table.number(row, columns[class.as_str()]);
            let all = rows.flat_map(|row| classes.iter().map(move |c| (row, c)));
            Some(all.map(|(row, c)| cell(row, c)).collect::<outcome::Result<Vec<f64>>>()?)
        }
        1 if classes.len() == 2 => {
            let (class, j) = &probabilities[0];
            let mut all = Vec::new();
            for row in rows {
                let p = table.number(row, *j)?;
                all.extend(classes.iter().map(|c| if c == class { p } else { 1.0 - p }));
            }
            Some(all)
        }
        0 => None,
        k => {
            notes.push(format!("{k} p_<class> columns for {} classes: no ROC-AUC", classes.len()));
            None
        }
    };
    let positive = match &args.positive {
        Some(name) => Some(classes.iter().position(|c| c == name).with_context(|| {
            format!("--positive {name}: the classes are {}", classes.join(", "))
        })?),
        None if classes.len() == 2 => {
            let usual = POSITIVE.iter().find_map(|p| classes.iter().position(|c| c == p));
            let found = usual.unwrap_or(1);
            notes.push(format!("positive class: {}", classes[found]));
            Some(found)
        }
        None => None,
    };
    let (truth, predicted) = (code(&truth), code(&predicted));
    Ok(Items { classes, truth, predicted, scores, positive })
}

/// Which row holds which value of the key column; each may occur once.
fn rows_by<'a>(table: &'a Table, key: &str) -> Result<HashMap<&'a str, usize>> {
    let column = table.column(key)?;
    let mut rows = HashMap::new();
    for row in 0..table.len() {
        if rows.insert(table.raw(row, column), row).is_some() {
            bail!("{}: occurs twice", table.place(row, column));
        }
    }
    Ok(rows)
}

/// Averages the probabilities with those of the other tables and calls the likeliest class.
fn join(args: &Args, table: &Table, items: &mut Items) -> Result<()> {
    if args.mean_with.is_empty() {
        return Ok(());
    }
    let key = table.column(&args.key)?;
    let k = items.classes.len();
    let none = |path: &PathBuf| format!("{}: no p_<class> column for each class", path.display());
    let mut sums = items.scores.take().with_context(|| none(&args.predictions))?;
    for path in &args.mean_with {
        let other = Table::read(path, &[])?;
        let named = Args { predictions: path.clone(), ..args.clone() };
        let theirs = read(&named, &other, &mut Vec::new())?;
        if theirs.classes != items.classes {
            let (a, b) = (theirs.classes.join(", "), items.classes.join(", "));
            bail!("{}: its classes are {a}, those of the first table {b}", path.display());
        }
        let scores = theirs.scores.with_context(|| none(path))?;
        let rows = rows_by(&other, &args.key)?;
        if other.len() != table.len() {
            bail!("{}: {} items, the first table has {}", path.display(), other.len(), table.len());
        }
        for (row, sum) in sums.chunks_exact_mut(k).enumerate() {
            let at = *rows.get(table.raw(row, key)).with_context(|| {
                format!("{}: is not in {}", table.place(row, key), path.display())
            })?;
            if theirs.truth[at] != items.truth[row] {
                bail!("{}: has another true class in {}", table.place(row, key), path.display());
            }
            sum.iter_mut().zip(&scores[at * k..(at + 1) * k]).for_each(|(s, p)| *s += p);
        }
    }
    let n = (1 + args.mean_with.len()) as f64;
    sums.iter_mut().for_each(|s| *s /= n);
    items.predicted = sums.chunks_exact(k).map(mitosis::likeliest).collect();
    items.scores = Some(sums);
    Ok(())
}

/// Calls the positive class from the threshold on.
fn call(threshold: Option<f64>, items: &mut Items) -> Result<()> {
    let Some(threshold) = threshold else { return Ok(()) };
    let (Some(scores), Some(positive), 2) = (&items.scores, items.positive, items.classes.len())
    else {
        bail!("--threshold: needs two classes and their p_<class> columns");
    };
    for (called, p) in items.predicted.iter_mut().zip(scores.chunks_exact(2)) {
        *called = if p[positive] >= threshold { positive } else { 1 - positive };
    }
    Ok(())
}

/// Of two classes: from which probability on the positive class has the largest F1 on these very
/// items, so to be asked of held-out items only.
fn largest_f1(items: &Items) -> Result<Option<Value>> {
    let (Some(scores), Some(positive), 2) = (&items.scores, items.positive, items.classes.len())
    else {
        return Ok(None);
    };
    let scores: Vec<f64> = scores.chunks_exact(2).map(|p| p[positive]).collect();
    let truth: Vec<bool> = items.truth.iter().map(|&t| t == positive).collect();
    let found = f1_threshold(&scores, &truth)?;
    Ok(found.map(|(threshold, f1)| json!({ "threshold": threshold, "f1": f1 })))
}

fn figures(items: &Items, rows: &[usize]) -> Result<Map<String, Value>> {
    let k = items.classes.len();
    let pick = |v: &[usize]| rows.iter().map(|&i| v[i]).collect::<Vec<_>>();
    let (truth, predicted) = (pick(&items.truth), pick(&items.predicted));
    let m = ConfusionMatrix::from_labels(&truth, &predicted, k)?;
    let scores: Option<Vec<f64>> = items
        .scores
        .as_ref()
        .map(|s| rows.iter().flat_map(|&i| s[i * k..(i + 1) * k].to_vec()).collect());
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| {
        out.insert(key.into(), value);
    };
    put("n", json!(m.total()));
    put("classes", json!(items.classes));
    put("accuracy", json!(m.accuracy()));
    put("balanced_accuracy", json!(m.balanced_accuracy()));
    put("macro_f1", json!(m.macro_f1()));
    put("macro_precision", json!(m.macro_precision()));
    put("macro_recall", json!(m.macro_recall()));
    put("kappa", json!(m.cohen_kappa()));
    let column = |class: usize| -> Option<Vec<f64>> {
        scores.as_ref().map(|s| s.iter().skip(class).step_by(k).copied().collect())
    };
    let auc = |class: usize| -> Result<Option<f64>> {
        let Some(s) = column(class) else { return Ok(None) };
        Ok(roc_auc(&s, &truth.iter().map(|&t| t == class).collect::<Vec<_>>())?)
    };
    if let Some(positive) = items.positive {
        put("positive", json!(items.classes[positive]));
        put("precision", json!(m.precision(positive)));
        put("recall", json!(m.recall(positive)));
        put("f1", json!(m.f1(positive)));
        put("sensitivity", json!(m.recall(positive)));
        put("specificity", json!(m.specificity(positive)));
        put("roc_auc", json!(auc(positive)?));
    }
    if let Some(s) = &scores
        && k > 2
    {
        put("macro_roc_auc", json!(macro_roc_auc(s, &truth, k)?));
    }
    let per_class = (0..k)
        .map(|c| {
            Ok(json!({ "class": items.classes[c], "support": m.support(c),
                "predicted": m.predicted(c), "precision": m.precision(c), "recall": m.recall(c),
                "f1": m.f1(c), "specificity": m.specificity(c), "roc_auc": auc(c)? }))
        })
        .collect::<Result<Vec<_>>>()?;
    put("per_class", Value::Array(per_class));
    put("confusion", json!(m.rows().map(<[u64]>::to_vec).collect::<Vec<_>>()));
    Ok(out)
}

/// Mean and sample SD of every figure that all folds have.
fn over_folds(folds: &[(String, Value)]) -> Result<Value> {
    let mut out = Map::new();
    let Some((_, first)) = folds.first() else { return Ok(Value::Null) };
    for key in first.as_object().into_iter().flat_map(Map::keys).filter(|k| *k != "n") {
        let values: Option<Vec<f64>> = folds.iter().map(|(_, f)| f[key].as_f64()).collect();
        if let Some(values) = values {
            let s = summarize(&values)?;
            out.insert(key.clone(), json!({ "mean": s.mean, "sd": s.sd, "folds": s.n }));
        }
    }
    Ok(Value::Object(out))
}

fn print(items: &Items, out: &Map<String, Value>) {
    let number = |v: &Value| v.as_f64().map_or_else(|| "-".to_owned(), |v| format!("{v:.4}"));
    println!("{} items, {} classes", out["n"], items.classes.len());
    let keys = [
        "accuracy",
        "balanced_accuracy",
        "macro_f1",
        "precision",
        "recall",
        "f1",
        "specificity",
        "roc_auc",
        "macro_roc_auc",
        "kappa",
    ];
    let mut rows = Vec::new();
    for key in keys.iter().filter(|k| out.contains_key(**k)) {
        let mut row = vec![(*key).to_owned(), number(&out[*key])];
        if let Some(s) = out.get("over_folds").and_then(|f| f.get(*key)) {
            row.push(format!("folds: {} +- {}", number(&s["mean"]), number(&s["sd"])));
        }
        rows.push(row);
    }
    print_columns(&rows);
    if let Some(l) = out.get("largest_f1") {
        println!(
            "F1 of these items is largest, {}, from {} on",
            number(&l["f1"]),
            number(&l["threshold"])
        );
    }
    println!("\nconfusion matrix (rows: truth)");
    let mut rows = vec![std::iter::once(String::new()).chain(items.classes.clone()).collect()];
    for (class, counts) in
        items.classes.iter().zip(out["confusion"].as_array().into_iter().flatten())
    {
        let cells = counts.as_array().into_iter().flatten().map(ToString::to_string);
        rows.push(std::iter::once(class.clone()).chain(cells).collect::<Vec<_>>());
    }
    print_columns(&rows);
    for (name, figures) in out.get("domains").and_then(Value::as_object).into_iter().flatten() {
        println!(
            "\n{name}: {} items, macro F1 {}, balanced accuracy {}, F1 {}",
            figures["n"],
            number(&figures["macro_f1"]),
            number(&figures["balanced_accuracy"]),
            figures.get("f1").map_or_else(|| "-".into(), number)
        );
    }
}
