//! `mithras data` and `mithras experiment`, whole.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn mithras(args: &[&str]) -> Output {
    let trains = args.contains(&"--shrink") && !args.contains(&"--dry-run");
    let program = if trains { crate::training_program() } else { crate::program() };
    // Engines of an environment would check each of a hundred packages once more; tests of `infer` and `training` do.
    Command::new(program)
        .args(args)
        .env_remove("VIRTUAL_ENV")
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap()
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
fn wrong_names_are_reported_with_those_that_there_are() {
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

/// The results of an experiment's report.
#[cfg(feature = "train")]
fn report(dir: &Path, id: &str) -> Value {
    json(&dir.join("report").join(id).join("results.json"))
}

/// Our number in a cell of a report.
#[cfg(feature = "train")]
fn ours<'a>(report: &'a Value, table: &str, row: &str, column: usize) -> &'a Value {
    let by_id = |all: &'a Value, id: &str| {
        let found = all.as_array().unwrap().iter().find(|t| t["id"] == id);
        found.unwrap_or_else(|| panic!("{id}: {all}"))
    };
    &by_id(&by_id(&report["tables"], table)["rows"], row)["cells"][column]["ours"]
}

#[cfg(feature = "train")]
fn estimate(report: &Value, table: &str, row: &str, column: usize) -> f64 {
    let cell = ours(report, table, row, column);
    cell["estimate"].as_f64().unwrap_or_else(|| panic!("{table}, {row}, {column}: {cell}"))
}

/// A table as columns by name.
#[cfg(feature = "train")]
fn columns(file: &Path) -> std::collections::BTreeMap<String, Vec<String>> {
    let mut table =
        csv::Reader::from_path(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let names = table.headers().unwrap().clone();
    let rows: Vec<_> = table.records().map(Result::unwrap).collect();
    let column = |k: usize| rows.iter().map(|r| r[k].to_owned()).collect();
    names.iter().enumerate().map(|(k, n)| (n.to_owned(), column(k))).collect()
}

/// Every step ended but those of another program.
#[cfg(feature = "train")]
fn all_steps_ended(ended: &Value, printed: &str) {
    for step in ended["steps"].as_array().unwrap() {
        let (name, end) = (step[0].as_str().unwrap(), &step[1]);
        if name.contains("yolov10") {
            assert!(end["reason"].as_str().unwrap().contains("another program"), "{step}");
        } else {
            assert_eq!(end["end"], "done", "{step}\n{printed}");
        }
    }
}

/// One first stage and two second stages on drawn slides; F1 of the report is computed again from the counts, and
/// seconds from those of each frame.
#[cfg(feature = "train")]
#[test]
fn detection_on_public_data_runs_whole_on_drawn_slides() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let ids = ["detection-public", "timing-public"];
    let how = ["--shrink", "--device", "cpu", "--threads", "1", "--jobs", "1"];
    let (_, ended, printed) = run(dir, &[&ids[..], &how].concat());
    all_steps_ended(&ended, &printed);
    let found = report(dir, "detection-public");
    for (row, stage, table) in [
        ("scratch-tiny", "two stages", "f1"),
        ("own-mithras", "two stages", "f1"),
        ("scratch-tiny", "segmentation only", "alone"),
    ] {
        let at = format!("steps/public/detector/{row}/calibration/calibration.json");
        let rows = &json(&dir.join(at))["stages"][stage]["at_others"]["rows"];
        let count = |k: usize, key: &str| rows[k][key].as_f64().unwrap();
        let f1 = |k| {
            let all = 2.0 * count(k, "tp") + count(k, "fp") + count(k, "fn");
            if all > 0.0 { 2.0 * count(k, "tp") / all } else { 0.0 }
        };
        let mean = (f1(0) + f1(1) + f1(2)) / 3.0;
        assert!((estimate(&found, table, row, 0) - mean).abs() < 1e-9, "{row}, {stage}: {mean}");
    }
    let timing = report(dir, "timing-public");
    let frame = |row| estimate(&timing, "seconds", row, 1);
    let seconds = seconds_of_second_stages(&dir.join("steps/public/detect/own-mithras"));
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    assert!((frame("own-mithras") - mean).abs() < 1e-9, "{seconds:?}");
    let relative = estimate(&timing, "seconds", "own-mithras", 2);
    assert!((relative - frame("own-mithras") / frame("scratch-tiny")).abs() < 1e-9);
}

/// Of the slides of a detection run that have candidates.
#[cfg(feature = "train")]
fn seconds_of_second_stages(run: &Path) -> Vec<f64> {
    let record = json(&run.join("run.json"));
    let of_slide = |slide: &Value| {
        let stages = slide["stages"].as_array().unwrap();
        let second = stages.iter().find(|s| s["stage"] == "classify").unwrap();
        (second["items"].as_u64().unwrap() > 0).then(|| second["busy_seconds"].as_f64().unwrap())
    };
    record["slides"].as_array().unwrap().iter().filter_map(of_slide).collect()
}

/// Every experiment of the paper, whole, on drawn slides with tiny networks: pseudo-labels, pretraining, probing and
/// fine-tuning, detectors over three folds, slides, statistics. One number of each report is computed here again.
#[cfg(feature = "train")]
#[test]
fn every_experiment_runs_whole_on_drawn_slides() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let args = ["all", "--shrink", "--device", "cpu", "--threads", "1", "--jobs", "2"];
    let (_, ended, printed) = run(dir, &args);
    all_steps_ended(&ended, &printed);
    // No cell is empty but those of the other program, and of data sets that are not drawn.
    let not_drawn = ["yolov10", "TCGA-MF-Pseudo"];
    for folder in std::fs::read_dir(dir.join("report")).unwrap().map(|f| f.unwrap().path()) {
        if !folder.is_dir() {
            continue;
        }
        for table in json(&folder.join("results.json"))["tables"].as_array().unwrap() {
            for row in table["rows"].as_array().unwrap() {
                for cell in row["cells"].as_array().unwrap() {
                    let known = not_drawn.contains(&row["id"].as_str().unwrap());
                    assert!(known || cell["missing"].is_null(), "{}: {cell}", folder.display());
                }
            }
        }
    }
    let steps = dir.join("steps");
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;

    // Classification and subtypes: F1 over folds, from the tables of predictions.
    for (id, table, step, row, positive) in [
        ("subtypes", "f1", "subtypes/test/ami-br", "mithras", "atypical"),
        ("subtypes", "f1", "subtypes/test/ami-br", "vit-imagenet", "atypical"),
        ("classification", "f1", "test/finetune", "mithras", "mitotic_figure"),
        ("ablation", "f1", "test/finetune", "img", "mitotic_figure"),
        ("noise", "f1", "test/finetune", "noisy", "mitotic_figure"),
        ("timing", "scores", "test/finetune", "vit-imagenet", "mitotic_figure"),
    ] {
        let set = match id {
            "subtypes" => "",
            "timing" => "Canine",
            _ => "MIDOGpp",
        };
        let file = steps.join(step).join(row).join(set).join("predictions.csv");
        let (mean, sd) = f1_over_folds(&file, positive);
        let found = report(dir, id);
        let cell = ours(&found, table, row, 0);
        let same = |key: &str, v: f64| near(cell[key].as_f64().unwrap(), v);
        assert!(same("estimate", mean) && same("sd", sd), "{id}, {row}: {cell}: {mean} {sd}");
        assert_eq!(cell["folds"], 3);
    }
    // Ablation: the mean of its eight evaluations.
    let ablation = report(dir, "ablation");
    let eight: f64 = (0..8).map(|k| estimate(&ablation, "f1", "mithras", k)).sum();
    assert!(near(estimate(&ablation, "f1", "mithras", 8), eight / 8.0));
    // Timing: seconds relative to ViT-base.
    let timing = report(dir, "timing");
    let slide = |row| estimate(&timing, "seconds", row, 2);
    let relative = estimate(&timing, "seconds", "mae-imagenet", 3);
    assert!(near(relative, slide("mae-imagenet") / slide("vit-imagenet")));
    // Data sets and box plots: what was drawn.
    let counted = report(dir, "dataset");
    let cells = |row| [0, 1, 2].map(|k| estimate(&counted, "counts", row, k));
    assert_eq!(cells("MIDOG22"), [6.0, 18.0, 18.0]);
    assert_eq!(cells("Canine"), [2.0, 6.0, 6.0]);
    let boxes = report(dir, "boxes");
    let cells = [0, 1, 2].map(|k| estimate(&boxes, "counts", "TCGA-GBMLGG", k));
    assert_eq!(cells, [10.0, 10.0, 7.0]);

    // Detection: matches within 7.5 um, one to one.
    let f1 = [0, 1, 2].map(|fold| {
        let run = steps.join(format!("detect/mae-imagenet/{fold}/MIDOGpp"));
        f1_of_detections(&run, &steps.join("data/MIDOGpp/crops/annotations.csv"))
    });
    // The first stage of a fold ran once over a slide, whatever came behind it.
    for (image, of) in [("007", "MIDOGpp"), ("40-0", "Canine")] {
        let [alone, both] = ["seg-only", "mae-imagenet"]
            .map(|row| steps.join(format!("detect/{row}/0/{of}/{image}")));
        let windows = [&alone, &both].map(|d| {
            let stages = &json(&d.join("state.json"))["stages"];
            stages[1]["items"].as_u64().unwrap()
        });
        assert!(windows.contains(&0) && windows.iter().any(|n| *n > 0), "{windows:?}");
        let [alone, both] = [alone, both].map(|d| columns(&d.join("detections.csv")));
        for column in ["x_px", "y_px", "s_seg"] {
            assert_eq!(alone[column], both[column]);
        }
    }
    let detection = report(dir, "detection");
    let mean = f1.iter().sum::<f64>() / 3.0;
    assert!(near(estimate(&detection, "f1", "mae-imagenet", 0), mean), "{f1:?}");

    survival_agrees(dir);
    stages_have_the_same_folds(dir);
}

/// The crops that a fold's classifier was judged on are of the slides that the fold's first stage left out, and its
/// models are those in the fold's package.
#[cfg(feature = "train")]
fn stages_have_the_same_folds(dir: &Path) {
    let steps = dir.join("steps");
    let folds = json(&steps.join("folds/folds.json"));
    assert_eq!(json(&steps.join("finetune/mithras/folds.json"))["digest"], folds["digest"]);
    let judged = columns(&steps.join("finetune/mithras/predictions.csv"));
    for group in folds["groups"].as_array().unwrap() {
        let fold = group["place"]["fold"].to_string();
        for slide in group["slides"].as_array().unwrap() {
            let of_slide = |k: &usize| judged["source"][*k] == slide.as_str().unwrap();
            let rows: Vec<usize> = (0..judged["source"].len()).filter(of_slide).collect();
            assert!(!rows.is_empty(), "{slide} was judged by no fold");
            assert!(rows.iter().all(|&k| judged["fold"][k] == fold), "{slide}");
        }
    }
    let card = std::fs::read_to_string(steps.join("detector/mithras/0/card.toml")).unwrap();
    let card: toml::Table = card.parse().unwrap();
    let learnt = card["training"]["slides"].as_array().unwrap();
    let held = folds["groups"].as_array().unwrap().iter().filter(|g| g["place"]["fold"] == 0);
    let held: Vec<&Value> = held.flat_map(|g| g["slides"].as_array().unwrap()).collect();
    assert!(learnt.len() > 2 && held.len() > 1);
    assert!(!held.iter().any(|h| learnt.iter().any(|l| l.as_str() == h.as_str())), "{card}");
}

/// Survival: concordance of the hotspot counts, and the log-rank test at their median.
#[cfg(feature = "train")]
fn survival_agrees(dir: &Path) {
    let steps = dir.join("steps");
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    for (cohort, file, column) in [("TCGA-THCA", "thca", 0), ("TCGA-GBMLGG", "gbmlgg", 2)] {
        let clinical = columns(&dir.join(format!("drawn/tcga/{file}-clinical.csv")));
        let patients = |row: &str| -> Vec<(f64, bool, f64)> {
            let counts = columns(&steps.join(format!("count/{row}/{cohort}/counts.csv")));
            let number = |v: &String| v.parse::<f64>().unwrap();
            (0..10)
                .map(|k| {
                    let name = &clinical["patient"][k];
                    let at = counts["slide"].iter().position(|s| s == name).unwrap();
                    let count = number(&counts["hotspot_count"][at]);
                    (number(&clinical["months"][k]), clinical["dead"][k] == "1", count)
                })
                .collect()
        };
        let c = concordance(&patients("mae-imagenet"));
        let found = estimate(&report(dir, "survival"), "c-index", "mae-imagenet", column);
        // The fitted risk falls with the count where its coefficient is negative; the count itself does not.
        assert!(near(found, c) || near(found, 1.0 - c), "{cohort}: {found}, {c}");
        let own = estimate(&report(dir, "survival"), "c-index-of-count", "mae-imagenet", column);
        assert!(near(own, c), "{cohort}: {own}, {c}");
        let tests = report(dir, "log-rank");
        let cut = estimate(&tests, "tests", cohort, 0);
        let p = log_rank(&patients("mithras"), cut);
        let found = estimate(&tests, "tests", cohort, 1);
        assert!((found - p).abs() < 1e-6, "{cohort}: {found}, {p}");
    }
}

/// F1 of accepted detections against labelled figures, each with the nearest free one within 7.5 um.
#[cfg(feature = "train")]
fn f1_of_detections(run: &Path, truth: &Path) -> f64 {
    let truth = columns(truth);
    let number = |v: &String| v.parse::<f64>().unwrap();
    let (mut hits, mut found, mut figures) = (0, 0, 0);
    let mut images = truth["image"].clone();
    images.dedup();
    for image in images {
        let table = columns(&run.join(image.trim_end_matches(".tiff")).join("detections.csv"));
        let mut free: Vec<(f64, f64)> = (0..table["accepted"].len())
            .filter(|&k| table["accepted"][k] == "true")
            .map(|k| (number(&table["x_px"][k]), number(&table["y_px"][k])))
            .collect();
        found += free.len();
        for k in (0..truth["image"].len())
            .filter(|&k| truth["image"][k] == image && truth["label"][k] == "mf")
        {
            let (x, y) = (number(&truth["x"][k]), number(&truth["y"][k]));
            let um = |p: &(f64, f64)| 0.25 * (p.0 - x).hypot(p.1 - y);
            let nearest = (0..free.len()).min_by(|&a, &b| um(&free[a]).total_cmp(&um(&free[b])));
            figures += 1;
            if let Some(at) = nearest.filter(|&at| um(&free[at]) <= 7.5) {
                free.remove(at);
                hits += 1;
            }
        }
    }
    2.0 * f64::from(hits) / (found + figures) as f64
}

/// Harrell's C of (time, event, risk): pairs whose earlier time is an event.
#[cfg(feature = "train")]
fn concordance(patients: &[(f64, bool, f64)]) -> f64 {
    let (mut agree, mut all) = (0.0, 0.0);
    for &(t, dead, risk) in patients {
        for &(other_t, _, other) in patients.iter().filter(|p| dead && p.0 > t) {
            debug_assert!(other_t > t);
            all += 1.0;
            agree += if risk > other { 1.0 } else { 0.5 * f64::from(u8::from(risk == other)) };
        }
    }
    agree / all
}

/// p of the log-rank test between risks above a cut and the others.
#[cfg(feature = "train")]
fn log_rank(patients: &[(f64, bool, f64)], cut: f64) -> f64 {
    let (mut difference, mut variance) = (0.0, 0.0);
    let mut times: Vec<f64> = patients.iter().filter(|p| p.1).map(|p| p.0).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let count =
        |f: &dyn Fn(&(f64, bool, f64)) -> bool| patients.iter().filter(|p| f(p)).count() as f64;
    for t in times {
        let (n, n1) = (count(&|p| p.0 >= t), count(&|p| p.0 >= t && p.2 > cut));
        let (d, d1) = (count(&|p| p.0 == t && p.1), count(&|p| p.0 == t && p.1 && p.2 > cut));
        difference += d1 - d * n1 / n;
        if n > 1.0 {
            variance += d * n1 / n * (1.0 - n1 / n) * (n - d) / (n - 1.0);
        }
    }
    // Twice the normal tail, by Simpson's rule.
    let z = (difference * difference / variance).sqrt();
    let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    let h = z / 2000.0;
    let inner: f64 =
        (1..2000).map(|k| density(k as f64 * h) * if k % 2 == 1 { 4.0 } else { 2.0 }).sum();
    1.0 - 2.0 * h / 3.0 * (density(0.0) + density(z) + inner)
}

/// Mean and sample SD over folds of the F1 of a class, from a table of predictions.
#[cfg(feature = "train")]
fn f1_over_folds(file: &Path, positive: &str) -> (f64, f64) {
    let mut table = csv::Reader::from_path(file).unwrap();
    let names = table.headers().unwrap().clone();
    let at = |name: &str| names.iter().position(|n| n == name).unwrap();
    let (fold, truth, class) = (at("fold"), at("truth"), at("class"));
    let mut counts = std::collections::BTreeMap::<String, [f64; 2]>::new();
    for row in table.records() {
        let row = row.unwrap();
        let [is, named] = [&row[truth], &row[class]].map(|w| w == positive);
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
