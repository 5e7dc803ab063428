//! `mithras data` and `mithras experiment`, whole.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn mithras(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mithras")).args(args).output().unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn run(out: &Path, more: &[&str]) -> (bool, Value, String) {
    let out = out.to_str().unwrap();
    let o = mithras(&[&["experiment", "run"], more, &["--out", out, "--json"]].concat());
    let stderr = String::from_utf8_lossy(&o.stderr).into_owned();
    (o.status.success(), serde_json::from_slice(&o.stdout).unwrap_or_default(), stderr)
}

/// Every number of the paper's two review tables, from its counts, to the last digit that it prints.
#[test]
fn the_review_tables_agree_with_the_paper() {
    let dir = tempfile::tempdir().unwrap();
    let (ok, _, stderr) = run(dir.path(), &["pseudo-label-review", "tumour-review"]);
    assert!(ok, "{stderr}");
    let mut cells = 0;
    for (id, tables) in [("pseudo-label-review", 2), ("tumour-review", 1)] {
        let results = json(&dir.path().join("report").join(id).join("results.json"));
        assert_eq!(results["tables"].as_array().unwrap().len(), tables);
        for table in results["tables"].as_array().unwrap() {
            for row in table["rows"].as_array().unwrap() {
                for (k, cell) in row["cells"].as_array().unwrap().iter().enumerate() {
                    let Some(difference) = cell["difference"].as_f64() else { continue };
                    // Digits that the paper prints.
                    let digits = match (table["id"].as_str(), k) {
                        (Some("precision"), 0) if id == "pseudo-label-review" => 0,
                        (Some("precision"), _) => 2,
                        _ => 3,
                    };
                    let near = 0.5001 * 10_f64.powi(-digits);
                    assert!(difference.abs() < near, "{id} {}: {cell}", row["id"]);
                    cells += 1;
                }
            }
        }
    }
    assert!(cells > 90, "{cells}");
    let page = dir.path().join("report/pseudo-label-review/index.html");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("0.93-0.97") && page.contains("paper"), "{page}");
    // A step of one name serves both; nothing is done twice, and what changed is done again.
    let (_, again, _) = run(dir.path(), &["tumour-review"]);
    assert_eq!(again["steps"][0][1]["end"], "before");
    std::fs::write(dir.path().join("steps/review/score/score.json"), "{}").unwrap();
    let (_, changed, _) = run(dir.path(), &["tumour-review"]);
    assert_eq!(changed["steps"][0][1]["end"], "done");
}

#[test]
fn own_counts_come_first_and_bad_ones_fail_with_their_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (data, out) = (dir.path().join("data"), dir.path().join("out"));
    std::fs::create_dir_all(data.join("reviews")).unwrap();
    let counts = data.join("reviews/counts.csv");
    let text = "cohort,stratum,pool,confirmed,not_confirmed,unsure\nOV,mitotic_figure,10,3,1,0\n";
    std::fs::write(&counts, text).unwrap();
    let more = ["pseudo-label-review", "--data", data.to_str().unwrap()];
    let (ok, _, stderr) = run(&out, &more);
    assert!(ok, "{stderr}");
    let results = json(&out.join("report/pseudo-label-review/results.json"));
    let rows = results["tables"][0]["rows"].as_array().unwrap();
    let row = |id: &str| rows.iter().find(|r| r["id"] == id).unwrap()["cells"][1].clone();
    assert_eq!(row("OV")["ours"]["ends"], serde_json::from_str::<Value>("[0.75, 0.75]").unwrap());
    // A cell without data names what is missing.
    assert!(row("BRCA")["missing"].as_str().unwrap().contains("no number"), "{}", row("BRCA"));
    std::fs::write(&counts, "cohort,stratum,confirmed\nOV,x,many\n").unwrap();
    let (ok, failed, stderr) = run(&out, &more);
    assert!(!ok && stderr.contains("failed: review/score"), "{stderr}");
    assert!(failed["steps"][0][1]["reason"].as_str().unwrap().contains("counts.csv"), "{failed}");
    let results = json(&out.join("report/pseudo-label-review/results.json"));
    let cell = &results["tables"][0]["rows"][0]["cells"][0];
    assert!(cell["missing"].as_str().unwrap().contains("counts.csv"), "{cell}");
}

#[test]
fn wrong_names_are_told_with_those_that_there_are() {
    for (args, word) in [
        (&["experiment", "show", "tables"][..], "known: "),
        (&["experiment", "run", "tumour-review", "--out", "x", "--only", "train"], "review/score"),
        (&["data", "show", "midog"], "MIDOG22"),
        (&["data", "check", "/no/such/folder"], "is not a folder"),
        (&["experiment", "report", "/no/such/folder"], "is not the folder of a run"),
    ] {
        let o = mithras(args);
        let stderr = String::from_utf8_lossy(&o.stderr);
        assert!(!o.status.success() && stderr.contains(word), "{args:?}: {stderr}");
    }
}

#[test]
fn every_experiment_unfolds_and_is_described() {
    let list = mithras(&["experiment", "list"]);
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.lines().count() >= 2);
    for line in list.lines() {
        let id = line.split_whitespace().next().unwrap();
        let shown = mithras(&["experiment", "show", id]);
        assert!(shown.status.success(), "{id}: {}", String::from_utf8_lossy(&shown.stderr));
        let dry = mithras(&["experiment", "run", id, "--out", "/no/such", "--shrink", "--dry-run"]);
        assert!(dry.status.success(), "{id}: {}", String::from_utf8_lossy(&dry.stderr));
    }
}

#[test]
fn a_workflow_has_a_rule_per_step() {
    let dir = tempfile::tempdir().unwrap();
    let (out, file) = (dir.path().join("run dir"), dir.path().join("w.smk"));
    let [out_word, file_word] = [&out, &file].map(|p| p.to_str().unwrap());
    let args = ["experiment", "export", "--snakemake", "tumour-review"];
    let o = mithras(&[&args[..], &["--out", out_word, "--to", file_word]].concat());
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("rule step_review_score:") && text.contains("--alone review/score"),
        "{text}"
    );
    assert!(text.contains("--threads {threads}"), "{text}");
    // The rule's command does the step, and the report finds it.
    let alone =
        ["experiment", "run", "tumour-review", "--out", out_word, "--alone", "review/score"];
    assert!(mithras(&alone).status.success());
    let report = mithras(&["experiment", "report", out_word]);
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    assert!(out.join("report/tumour-review/precision.csv").is_file());
}

/// A column of the subtypes' table on drawn slides: pseudo-label corpus, pretraining, fine-tuning over
/// three folds, test part. Its F1 is computed here again from the predictions.
#[cfg(feature = "train")]
#[test]
fn subtypes_run_on_drawn_slides_and_the_table_agrees_with_the_predictions() {
    let dir = tempfile::tempdir().unwrap();
    let step = "subtypes/test/ami-br";
    let (ok, ended, printed) =
        run(dir.path(), &["subtypes", "--shrink", "--only", step, "--device", "cpu"]);
    assert!(ok, "{printed}");
    for name in ["corpus/pseudo", "pretrain/mithras", "subtypes/finetune/ami-br/mithras"] {
        let steps = ended["steps"].as_array().unwrap();
        let of = steps.iter().find(|s| s[0] == name).unwrap_or_else(|| panic!("{name}: {ended}"));
        assert_eq!(of[1]["end"], "done", "{name}");
    }
    let results = json(&dir.path().join("report/subtypes/results.json"));
    let tables = results["tables"].as_array().unwrap();
    let rows = tables.iter().find(|t| t["id"] == "f1").unwrap()["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let cell = &row["cells"][0];
        let file = dir
            .path()
            .join("steps")
            .join(step)
            .join(row["id"].as_str().unwrap())
            .join("predictions.csv");
        let (mean, sd) = f1_over_folds(&file);
        let near = |key: &str, v: f64| (cell["ours"][key].as_f64().unwrap() - v).abs() < 1e-9;
        assert!(near("estimate", mean) && near("sd", sd), "{cell}: {mean} {sd}");
        assert_eq!(cell["ours"]["folds"], 3);
        // A step that did not run is named.
        let why = row["cells"][1]["missing"].as_str().unwrap();
        assert!(why.contains("subtypes/test/ami-morph"), "{why}");
    }
}

/// Mean and sample SD over folds of the F1 of atypical figures, from a table of predictions.
#[cfg(feature = "train")]
fn f1_over_folds(file: &Path) -> (f64, f64) {
    let mut table = csv::Reader::from_path(file).unwrap();
    let names = table.headers().unwrap().clone();
    let at = |name: &str| names.iter().position(|n| n == name).unwrap();
    let (fold, truth, class) = (at("fold"), at("truth"), at("class"));
    let mut counts = std::collections::BTreeMap::<String, [f64; 2]>::new();
    for row in table.records() {
        let row = row.unwrap();
        let [is, named] = [&row[truth], &row[class]].map(|w| w == "atypical");
        let [both, either] = counts.entry(row[fold].to_owned()).or_default();
        *both += f64::from(u8::from(is && named)) * 2.0;
        *either += f64::from(u8::from(is)) + f64::from(u8::from(named));
    }
    let f1: Vec<f64> = counts
        .values()
        .map(|[both, either]| if *either > 0.0 { both / either } else { 0.0 })
        .collect();
    let mean = f1.iter().sum::<f64>() / f1.len() as f64;
    let squares: f64 = f1.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (f1.len() - 1) as f64).sqrt())
}
