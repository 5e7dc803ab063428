//! `mithras survival` and `mithras evaluate classification` as a user meets them.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn mithras(args: &[&str]) -> (bool, String, String) {
    let output = Command::new(crate::program()).args(args).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[track_caller]
fn json(args: &[&str]) -> Value {
    let (ok, out, err) = mithras(args);
    assert!(ok, "{err}");
    serde_json::from_str(&out).expect(&out)
}

/// The table of the golden values by R, which take rows as they are: its `patient` is called `unit`, because rows of
/// one patient are refused.
fn synthetic(folder: &Path) -> String {
    let path = testkit::workspace().join("crates/stats/tests/golden/survival_synthetic.csv");
    let text = std::fs::read_to_string(path).unwrap();
    write(folder, "synthetic.csv", &text.replacen("patient", "unit", 1))
}

/// Case `index` of the golden values by R.
fn golden(kind: &str, index: usize) -> Value {
    let path = testkit::workspace().join("crates/stats/tests/golden/survival.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[kind][index].clone()
}

#[track_caller]
fn close(got: &Value, want: &Value) {
    let (got, want) = (got.as_f64().expect("number"), want.as_f64().expect("number"));
    assert!((got - want).abs() <= 1e-6 * want.abs() + 1e-12, "{got} against {want}");
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn cox_json_equals_r() {
    let folder = tempfile::tempdir().unwrap();
    let table = synthetic(folder.path());
    let base = ["survival", "cox", "--table", &table, "--time", "time", "--event", "event"];
    let got = json(&[&base[..], &["--covariates", "a,b,c", "--json"]].concat());
    let want = golden("cox", 0);
    for j in 0..3 {
        let c = &got["coefficients"][j];
        assert_eq!(c["name"], want["names"][j]);
        for (key, r) in [("beta", "beta"), ("se", "se"), ("z", "z"), ("p", "p")] {
            close(&c[key], &want[r][j]);
        }
    }
    close(&got["loglik_null"], &want["loglik"][0]);
    close(&got["loglik"], &want["loglik"][1]);
    for (key, k) in [("chi2", 0), ("df", 1), ("p", 2)] {
        close(&got["lrt"][key], &want["lrt"][k]);
    }
    close(&got["c_index"], &want["c_index"]);
    assert_eq!(got["n"], want["n"]);
    assert_eq!(got["events"], want["events"]);
    close(&got["proportional_hazards"]["global"]["p"], &want["zph"]["km"]["p"][3]);
    // The last Efron case: fractional weights, strata, clusters.
    let more = ["--covariates", "a,b,c", "--strata", "site", "--cluster", "unit"];
    let got = json(&[&base[..], &more, &["--weights", "weight", "--json"]].concat());
    let want = golden("cox", 11);
    for j in 0..3 {
        close(&got["coefficients"][j]["se"], &want["se"][j]);
        close(&got["coefficients"][j]["se_naive"], &want["se_naive"][j]);
    }
    close(&got["robust_score"]["chi2"], &want["robust_score"]);
}

#[test]
fn other_commands_equal_r() {
    let folder = tempfile::tempdir().unwrap();
    let table = synthetic(folder.path());
    let with = |verb: &'static str, more: &[&str]| {
        let base = ["survival", verb, "--table", &table, "--time", "time", "--event", "event"];
        json(&[&base[..], more, &["--json"]].concat())
    };
    let want = golden("logrank", 1);
    let got = with("logrank", &["--covariates", "site"]);
    close(&got["chi2"], &want["chi2"]);
    close(&got["p"], &want["p"]);
    close(&got["groups"][2]["expected"], &want["expected"][2]);
    let want = golden("concordance", 0);
    let got = with("cindex", &["--covariates", "a", "--bootstrap", "200", "--cluster", "unit"]);
    close(&got["c_index"], &want["c_index"]);
    close(&got["concordant"], &want["counts"][0]);
    assert!(got["bootstrap"]["clusters"]["upper"].as_f64() > got["c_index"].as_f64());
    let want = golden("km", 1);
    let got = with("km", &["--covariates", "site", "--interval", "plain"]);
    close(&got["groups"][0]["median"], &want["curves"][0]["plain"]["median"][0]);
    assert_eq!(
        got["groups"][0]["points"].as_array().unwrap().len() as u64,
        want["curves"][0]["points"].as_u64().unwrap()
    );
    let full = with("cox", &["--covariates", "a,b,c"]);
    let small = with("cox", &["--covariates", "a,b"]);
    let got = with("lrt", &["--covariates", "a,b", "--add", "c"]);
    let chi2 = 2.0 * (full["loglik"].as_f64().unwrap() - small["loglik"].as_f64().unwrap());
    assert!((got["lrt"]["chi2"].as_f64().unwrap() - chi2).abs() < 1e-9);
    assert_eq!(got["lrt"]["df"], 1);
    assert_eq!(with("lrt", &["--base", "a,b", "--covariates", "c"])["p"], got["p"]);
    close(&with("lrt", &["--covariates", "a,b,c"])["chi2"], &full["lrt"]["chi2"]);
}

#[test]
fn factors_missing_and_event_values() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "t;dead;sex;x\n5;alive;F;1\n3;dead;M;2.5\n4;dead;F;NA\n2;dead;M;0.5\n6;alive;F;2\n1;dead;F;3\n7;dead;M;1.5\n";
    let table = write(folder.path(), "t.csv", rows);
    let base = ["survival", "cox", "--table", &table, "--time", "t", "--event", "dead"];
    let got =
        json(&[&base[..], &["--event-value", "dead", "--covariates", "sex,x", "--json"]].concat());
    assert_eq!(got["n"], 6);
    assert_eq!(got["rows_dropped"], 1);
    assert_eq!(got["missing"]["x"], 1);
    assert_eq!(got["coefficients"][0]["name"], "sexM");
    assert!(got["notes"].to_string().contains("reference 'F'"));
    assert!(got["warnings"].to_string().contains("few events"));
    // Known words need no flag; others do.
    let known = json(&[&base[..], &["--covariates", "sex,x", "--json"]].concat());
    assert_eq!(known["coefficients"], got["coefficients"]);
    let table = write(folder.path(), "u.csv", &rows.replace("alive", "a").replace("5;dead", "5;b"));
    let other = ["survival", "cox", "--table", &table, "--time", "t", "--event", "dead"];
    let (ok, _, err) = mithras(&[&other[..], &["--covariates", "x"]].concat());
    assert!(!ok);
    for word in ["u.csv", "'dead'", "row 1 (line 2)", "--event-value"] {
        assert!(err.contains(word), "{err}");
    }
}

#[test]
fn hard_cases_are_reported_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, text: &str, covariates: &str| {
        let table = write(folder.path(), name, text);
        mithras(&[
            "survival",
            "cox",
            "--table",
            &table,
            "--time",
            "t",
            "--event",
            "e",
            "--covariates",
            covariates,
            "--json",
        ])
    };
    let (ok, _, err) = run("none.csv", "t,e,x\n1,0,1\n2,0,2\n", "x");
    assert!(!ok && err.contains("no events"), "{err}");
    let (ok, _, err) = run("negative.csv", "t,e,x\n1,1,1\n-2,1,2\n", "x");
    assert!(!ok && err.contains("negative") && err.contains("row 2 (line 3)"), "{err}");
    let (ok, _, err) = run("constant.csv", "t,e,x\n1,1,7\n2,1,7\n", "x");
    assert!(!ok && err.contains("constant"), "{err}");
    let (ok, _, err) = run("typo.csv", "t,e,x\n1,1,1\n2,1,1o\n3,1,2\n", "x");
    assert!(!ok && err.contains("'1o'") && err.contains("row 2"), "{err}");
    let (ok, _, err) = run("column.csv", "t,e,x\n1,1,1\n", "y");
    assert!(!ok && err.contains("no column 'y'"), "{err}");
    let separated = "t,e,x\n1,1,1\n2,1,1\n3,1,1\n4,0,1\n5,0,0\n6,0,0\n7,0,0\n";
    let (ok, out, err) = run("separated.csv", separated, "x");
    assert!(ok && err.contains("monotone likelihood"), "{err}");
    let got: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(got["converged"], false);
    assert_eq!(got["coefficients"][0]["infinite"], "+");
    assert!(err.contains("may be infinite"), "{err}");
    // A continuous covariate that orders the events as their times do.
    let ordered: String = (1..=20).map(|i| format!("{},1,{i}\n", 21 - i)).collect();
    let (ok, out, err) = run("ordered.csv", &format!("t,e,x\n{ordered}"), "x");
    assert!(ok && err.contains("may be infinite"), "{err}");
    let got: Value = serde_json::from_str(&out).unwrap();
    let x = &got["coefficients"][0];
    assert_eq!(x["infinite"], "+");
    let lower = x["profile"]["hazard_ratio_lower"].as_f64().unwrap();
    assert!((lower.ln() - 2.33673).abs() < 1e-4, "R's limit by the profile: {x}");
    assert!(x["profile"]["hazard_ratio_upper"].is_null(), "{x}");
    assert!(x["se"].as_f64().unwrap() > 1000.0, "{x}");
    let table = write(folder.path(), "again.csv", &format!("t,e,x\n{ordered}"));
    let (ok, text, _) = mithras(&[
        "survival",
        "cox",
        "--table",
        &table,
        "--time",
        "t",
        "--event",
        "e",
        "--covariates",
        "x",
    ]);
    assert!(ok && text.lines().any(|l| l.starts_with("x ") && l.contains("inf")), "{text}");
    let collinear = "t,e,x,y\n1,1,1,2\n2,1,4,8\n3,0,2,4\n4,1,0,0\n5,1,3,6\n";
    let (ok, out, err) = run("collinear.csv", collinear, "x,y");
    assert!(ok && err.contains("collinear"), "{err}");
    let got: Value = serde_json::from_str(&out).unwrap();
    assert!(got["coefficients"][1]["beta"].is_null());
}

#[test]
fn thca_equals_the_reference() {
    let Some(table) = testkit::data("survival/TCGA-CDR_THCA.csv") else { return };
    let table = table.to_str().unwrap();
    let age = "age_at_initial_pathologic_diagnosis";
    let covariates = format!("{age},gender");
    let base = ["--table", table, "--time", "OS.time", "--event", "OS", "--json"];
    let got = json(&[&["survival", "cox", "--covariates", &covariates], &base[..]].concat());
    // R_reference_THCA.txt
    for (value, want) in [
        (&got["coefficients"][0]["beta"], 0.113385),
        (&got["coefficients"][1]["beta"], 0.038180),
        (&got["coefficients"][0]["se"], 0.020040),
        (&got["coefficients"][1]["se"], 0.542413),
        (&got["loglik_null"], -84.00145),
        (&got["loglik"], -59.77697),
        (&got["lrt"]["chi2"], 48.44896),
        (&got["c_index"], 0.928628),
    ] {
        assert!((value.as_f64().unwrap() - want).abs() < 1e-5, "{value} against {want}");
    }
    let nested =
        json(&[&["survival", "lrt", "--covariates", age, "--add", "gender"], &base[..]].concat());
    assert!((nested["chi2"].as_f64().unwrap() - 0.00494).abs() < 1e-5);
    let test = json(&[&["survival", "logrank", "--covariates", "gender"], &base[..]].concat());
    assert!((test["chi2"].as_f64().unwrap() - 1.85125).abs() < 1e-5);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run whose later steps need the earlier ones")]
fn a_study_from_counts_to_report() {
    let folder = tempfile::tempdir().unwrap();
    let mut clinical = String::from("id,months,died,age,sex,grade,part\n");
    let mut counts =
        String::from("slide,hotspot_count,density_per_20mm2,analysed_mm2,unread_mm2,accepted\n");
    let mut state = 7_u64;
    let mut draw = |n: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for i in 0..90 {
        let hotspot = draw(30);
        let months = (200 - 5 * hotspot + draw(60)) / 3 + 1;
        let (age, sex) = (40 + draw(40), if draw(2) == 0 { "F" } else { "M" });
        let part = if i % 3 == 0 { "train" } else { "test" };
        clinical +=
            &format!("P-{i:03},{months},{},{age},{sex},G{},{part}\n", draw(2), 1 + hotspot / 10);
        for slide in 0..=u64::from(i % 10 == 0) {
            counts += &format!(
                "P-{i:03}-DX{slide}.svs,{},{},30,0.5,{}\n",
                hotspot + slide,
                hotspot as f64 * 2.5 + 0.1,
                hotspot * 4
            );
        }
    }
    counts += "Q-1.svs,3,4,30,0,9\nP-001-BAD.svs,0,0,0,12,0\n";
    let clinical = write(folder.path(), "clinical.csv", &clinical);
    // The same counts turned round: a fitted risk does not mind, the count as the risk does.
    let mut turned = String::new();
    for (i, line) in counts.lines().enumerate() {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        if let (true, Ok(hotspot)) = (i > 0, cells[1].parse::<u32>()) {
            cells[1] = (1_000 - hotspot).to_string();
        }
        turned.push_str(&(cells.join(",") + "\n"));
    }
    let turned = format!("turned={}", write(folder.path(), "turned.csv", &turned));
    let counts = write(folder.path(), "counts.csv", &counts);
    let out: PathBuf = folder.path().join("report");
    let args = [
        "survival",
        "study",
        "--counts",
        &counts,
        "--clinical",
        &clinical,
        "--join",
        "slide=id",
        "--time",
        "months",
        "--event",
        "died",
        "--covariates",
        "age,sex",
        "--boxes",
        "grade",
        "--train",
        "part=train",
        "--method",
        &turned,
        "--replicates",
        "100",
        "--out",
        out.to_str().unwrap(),
    ];
    let (ok, _, err) = mithras(&args);
    assert!(ok, "{err}");
    assert!(err.contains("without a clinical row: 1 slide ("), "{err}");
    assert!(err.contains("without analysed tissue"), "{err}");
    let results: Value =
        serde_json::from_slice(&std::fs::read(out.join("results.json")).unwrap()).unwrap();
    assert_eq!((&results["slides"], &results["patients"]), (&99.into(), &90.into()));
    let hotspot = &results["features"][0];
    let c = &hotspot["c_index_fitted_risk"];
    assert!(c["rows"]["lower"].as_f64() < c["c"].as_f64());
    assert!(c["patients"]["upper"].as_f64() > c["c"].as_f64());
    let compared = |method: &str| {
        let rows = results["comparison"].as_array().unwrap();
        let row = rows.iter().find(|r| r["method"] == method && r["feature"] == "hotspot").unwrap();
        [&row["c_index"], &row["c_index_count_as_risk"]].map(|c| c["c"].as_f64().unwrap())
    };
    let (own, turned) = (compared("MiTHras"), compared("turned"));
    assert!((own[0] - turned[0]).abs() < 1e-9 && own[0] > 0.5, "{own:?} {turned:?}");
    assert!((own[1] + turned[1] - 1.0).abs() < 1e-9 && turned[1] < 0.5, "{own:?} {turned:?}");
    assert!(hotspot["logrank"]["cut_origin"].as_str().unwrap().contains("part=train"));
    assert_eq!(hotspot["adjusted"]["lrt"]["df"], 1);
    assert_eq!(results["p_values"].as_array().unwrap().len(), 6);
    assert_eq!(results["patient_level"].as_array().unwrap().len(), 6);
    let html = std::fs::read_to_string(out.join("report.html")).unwrap();
    for name in [
        "km_hotspot",
        "km_density",
        "box_grade_hotspot",
        "forest",
        "c_index",
        "c_index_count",
        "calibration",
    ] {
        assert!(html.contains(&format!("id=\"{name}\"")), "{name}");
        let png = image::open(out.join(format!("{name}.png"))).unwrap();
        assert!(png.width() >= 1200, "{name} is fit for print");
        assert!(
            std::fs::read_to_string(out.join(format!("{name}.svg"))).unwrap().contains("</svg>")
        );
    }
    // Whole labels, words for what is marked, and the unit behind the number.
    let picture = |name: &str| std::fs::read_to_string(out.join(format!("{name}.svg"))).unwrap();
    let (boxes, forest) = (picture("box_grade_hotspot"), picture("forest"));
    assert!(boxes.contains(">median ") && boxes.contains(">mean "), "{boxes}");
    assert!(forest.contains(") per\u{a0}SD<") && forest.contains(">Hotspot count (SD\u{a0}"));
    assert!(!html.contains('\u{2026}') && !html.contains('\u{3b7}'), "nothing is cut");
    assert!(html.contains("prefers-color-scheme") && html.contains("@media print"));
    for table in ["cohort_slides.csv", "cohort_patients.csv", "counts_patients.csv"] {
        assert!(out.join(table).is_file());
    }
    // A report without boxes into the same folder leaves none of the older one's.
    let fewer: Vec<&str> =
        args.iter().copied().filter(|a| !["--boxes", "grade"].contains(a)).collect();
    assert!(mithras(&fewer).0);
    assert!(!out.join("box_grade_hotspot.svg").exists() && out.join("forest.png").is_file());
    let graded = json(&["survival", "grade", "--counts", &counts, "--scheme", "who-net", "--json"]);
    // One slide has no tissue.
    assert_eq!(graded["slides"].as_array().unwrap().len(), 100);
    assert!(graded["source"].as_str().unwrap().contains("Rindi"));
}

/// Crops that a bundled network was trained on are recognised by their names.
#[test]
fn items_of_the_training_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let text = "file,truth,class\nAtypical/MIDOG21_6.png,typical,typical\nTUPAC16_4.png,atypical,atypical\n";
    let table = write(folder.path(), "p.csv", text);
    let answer = |more: &[&str]| {
        let args = [&["evaluate", "classification", "--predictions", &table, "--json"], more];
        json(&args.concat())["notes"].to_string()
    };
    let stated = answer(&["--model", "mithras-atypical"]);
    assert!(
        stated.contains("mithras-atypical was trained on 1 of these items")
            && stated.contains("(Atypical/MIDOG21_6.png)"),
        "{stated}"
    );
    let asked = answer(&[]);
    assert!(
        asked.contains("if they are its predictions: ") && asked.contains("mithras-morphology")
    );
    // A table without item names gives no warning.
    let unnamed = write(folder.path(), "q.csv", "truth,class\na,a\nb,b\n");
    let got = json(&["evaluate", "classification", "--predictions", &unnamed, "--json"]);
    assert!(!got["notes"].to_string().contains("trained on"), "{got}");
}

#[test]
fn classification_metrics_of_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let text = "file,truth,class,p_typical,p_atypical,fold\n\
        a,typical,typical,0.9,0.1,0\nb,atypical,atypical,0.2,0.8,0\n\
        c,typical,atypical,0.4,0.6,1\nd,atypical,typical,0.7,0.3,1\ne,typical,typical,0.8,0.2,1\n";
    let table = write(folder.path(), "p.csv", text);
    let got =
        json(&["evaluate", "classification", "--predictions", &table, "--fold", "fold", "--json"]);
    for (key, want) in [
        ("accuracy", 0.6),
        ("f1", 0.5),
        ("balanced_accuracy", 7.0 / 12.0),
        ("specificity", 2.0 / 3.0),
        ("roc_auc", 5.0 / 6.0),
    ] {
        close(&got[key], &want.into());
    }
    assert_eq!(got["positive"], "atypical");
    assert_eq!(got["confusion"], serde_json::json!([[1, 1], [1, 2]]));
    assert_eq!(got["over_folds"]["accuracy"]["folds"], 2);
    close(&got["largest_f1"]["f1"], &0.8.into());
    close(&got["largest_f1"]["threshold"], &0.25.into());
    let at = |p: &str| {
        let given = ["evaluate", "classification", "--predictions", &table, "--threshold", p];
        mithras(&[&given[..], &["--json"]].concat())
    };
    let point: Value = serde_json::from_str(&at("0.25").1).unwrap();
    close(&point["f1"], &0.8.into());
    assert!(!at("1.5").0 && at("1.5").2.contains("inside (0, 1)"));

    // The mean with a second table, whose rows are in another order: e alone is called wrongly.
    let second = "file,truth,class,p_typical,p_atypical\n\
        e,typical,atypical,0.1,0.9\nd,atypical,atypical,0.2,0.8\nc,typical,typical,0.7,0.3\n\
        b,atypical,atypical,0.3,0.7\na,typical,typical,0.9,0.1\n";
    let mean = |text: &str| {
        let other = write(folder.path(), "q.csv", text);
        let given = ["evaluate", "classification", "--predictions", &table, "--mean-with", &other];
        mithras(&[&given[..], &["--json"]].concat())
    };
    let both: Value = serde_json::from_str(&mean(second).1).unwrap();
    assert_eq!(both["confusion"], serde_json::json!([[2, 0], [1, 2]]));
    close(&both["roc_auc"], &(5.5 / 6.0).into());
    for (from, to, printed) in [
        ("a,typical,typical", "x,typical,typical", "is not in"),
        ("a,typical,typical", "a,atypical,typical", "another true class"),
        ("a,typical,typical,0.9,0.1\n", "", "4 items"),
    ] {
        let (ok, _, err) = mean(&second.replace(from, to));
        assert!(!ok && err.contains(printed), "{err}");
    }
    let (ok, _, err) =
        mithras(&["evaluate", "classification", "--predictions", &table, "--truth", "x"]);
    assert!(!ok && err.contains("no column 'x'"), "{err}");
}
