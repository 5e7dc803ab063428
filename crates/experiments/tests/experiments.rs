//! Data sets: every file keeps its form, and folders are counted. Experiments: the order of steps, what a step's
//! process is given, estimates.

use experiments::dataset::{State, all, check, find};
use experiments::graph::Graph;
use experiments::run::{Options, Record, RunNote, StepState};
use experiments::{Chosen, spec};
use std::path::Path;

/// A key that is misspelt would be left out in silence: nothing may be lost between file and types.
#[test]
fn every_key_of_every_file_is_known() {
    for entry in std::fs::read_dir(testkit::workspace().join("datasets")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let name = table["name"].as_str().unwrap();
        let set = toml::Table::try_from(find(name).unwrap()).unwrap();
        lost(&path, "", &table.into(), &set.into());
    }
    assert!(all().unwrap().len() >= 15);
}

fn lost(path: &Path, at: &str, written: &toml::Value, kept: &toml::Value) {
    match (written, kept) {
        (toml::Value::Table(w), toml::Value::Table(k)) => {
            for (key, value) in w {
                let found =
                    k.get(key).unwrap_or_else(|| panic!("{}: {at}.{key} is lost", path.display()));
                lost(path, &format!("{at}.{key}"), value, found);
            }
        }
        (toml::Value::Array(w), toml::Value::Array(k)) => {
            assert_eq!(w.len(), k.len(), "{at}");
            w.iter().zip(k).for_each(|(w, k)| lost(path, at, w, k));
        }
        (w, k) => assert_eq!(w, k, "{}: {at}", path.display()),
    }
}

/// Parts of MIDOG++ in the paper's two sets: no tumour type is in both, and together they are all.
#[test]
fn midog22_and_midogpp_divide_the_collection() {
    let (train, test, all) =
        (find("midog22").unwrap(), find("MIDOGpp").unwrap(), find("MIDOG++").unwrap());
    assert!(train.types().iter().all(|t| !test.types().contains(t)));
    let mut both: Vec<&String> = train.types().iter().chain(test.types()).collect();
    let mut parts: Vec<&String> = all.parts.iter().map(|p| &p.name).collect();
    both.sort();
    parts.sort();
    assert_eq!(both, parts);
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_folder_is_counted_by_tumour_type_and_missing_images_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let set = find("MIDOGpp").unwrap();
    let checked = check(&set, dir.path());
    assert_eq!(checked.state, State::Missing);
    assert!(checked.remedy.unwrap().contains("figshare"));
    write(
        &dir.path().join("midog++/MIDOG++.json"),
        r#"{"images": [
            {"id": 1, "file_name": "001.tiff", "width": 900, "height": 900, "tumor_type": "human melanoma"},
            {"id": 2, "file_name": "002.tiff", "width": 900, "height": 900, "tumor_type": "human melanoma"},
            {"id": 3, "file_name": "003.tiff", "width": 900, "height": 900, "tumor_type": "canine lymphosarcoma"}],
        "categories": [{"id": 1, "name": "mitotic figure"}, {"id": 2, "name": "not mitotic figure"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 60, 60]},
            {"id": 2, "image_id": 2, "category_id": 2, "bbox": [110, 210, 160, 260]},
            {"id": 3, "image_id": 3, "category_id": 1, "bbox": [300, 310, 350, 360]}]}"#,
    );
    write(&dir.path().join("midog++/images/001.tiff"), "");
    write(&dir.path().join("midog++/images/2.tiff"), "");
    let checked = check(&set, dir.path());
    assert_eq!(checked.state, State::Partial);
    let labels = &checked.pieces[0];
    let counts: Vec<(&str, u64, Option<u64>)> =
        labels.counts.iter().map(|c| (c.name.as_str(), c.found, c.paper)).collect();
    let expected =
        [("images", 2, Some(149)), ("figures", 1, Some(2436)), ("mimickers", 1, Some(3300))];
    assert_eq!(counts, expected);
    let problem = &checked.pieces[1].problems[0];
    for words in ["1 images are missing: 002.tiff", "'2.tiff'", "would match without leading zeros"]
    {
        assert!(problem.contains(words), "{words}: {problem}");
    }
    // A file that cannot be read is a problem of its piece, not of the check.
    write(&dir.path().join("midog++/MIDOG++.json"), "{}");
    let checked = check(&set, dir.path());
    assert!(checked.pieces[0].problems[0].contains("images"), "{checked}");
}

/// The public labels and crops, where they exist.
#[test]
fn the_available_files_have_the_papers_counts() {
    let root = match std::env::var_os("MITHRAS_DATA") {
        Some(root) => root.into(),
        None => testkit::workspace().join("../shared/data"),
    };
    if !root.join("annotations/MIDOG++.json").is_file() {
        eprintln!("SKIPPED: {} has no annotations", root.display());
        return;
    }
    for name in ["MIDOG++", "MIDOG22", "MIDOGpp", "MIDOG21", "MIDOG25"] {
        let checked = check(&find(name).unwrap(), &root);
        assert!(checked.pieces[0].counts.iter().all(|c| c.right()), "{checked}");
        assert_eq!(checked.state, State::Partial, "the images are not here: {checked}");
    }
    for name in ["AMi-Br", "AMi-Morph", "MITOS-ATYPIA-14", "ICPR2012"] {
        let checked = check(&find(name).unwrap(), &root);
        assert_eq!(checked.state, State::Complete, "{checked}");
    }
}

fn options(out: &Path) -> Options {
    Options {
        out: out.to_owned(),
        data: None,
        encoders: None,
        program: "mithras".into(),
        jobs: 1,
        threads: 3,
        device: "cpu".into(),
        memory: 8.0,
        cancel: Default::default(),
        alone: None,
    }
}

/// A run that is stopped early leaves whole rows of its tables, in their order.
#[test]
fn a_table_fills_row_by_row() {
    for id in ["subtypes-public", "classification-public", "subtypes"] {
        let experiment = spec::find(id).unwrap();
        let graph = Graph::build(std::slice::from_ref(&experiment), false).unwrap();
        let spec::Dim::Encoders { encoders } = &experiment.dims["row"] else { panic!("{id}") };
        // What makes the detector of the pseudo-labels.
        let detector = ["finetune", "calibrate/", "detector"];
        let at = |row: &String| {
            let of_row = |name: &str| {
                let before =
                    name.contains("pretrain/") || detector.iter().any(|d| name.starts_with(d));
                name.ends_with(&format!("/{row}")) && !before
            };
            let first = graph.steps().iter().position(|s| of_row(&s.name)).unwrap();
            (first, graph.steps().iter().rposition(|s| of_row(&s.name)).unwrap())
        };
        let ranges: Vec<(usize, usize)> = encoders.iter().map(at).collect();
        assert!(ranges.windows(2).all(|w| w[0].1 < w[1].0), "{id}: {ranges:?}");
    }
}

/// Commands without `--threads` would take all cores, however many jobs there are.
#[cfg(unix)]
#[test]
fn a_step_has_its_threads_and_its_processor_seconds_are_counted() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    let text = "#!/bin/sh\ni=0\nwhile [ $i -lt 300000 ]; do i=$((i+1)); done\n\
                echo \"[$OMP_NUM_THREADS, $RAYON_NUM_THREADS]\"\n";
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let out = dir.path().join("run");
    let options = Options { program, ..options(&out) };
    let graph = Graph::build(&[spec::find("tumour-review").unwrap()], false).unwrap();
    let note = RunNote::here(vec!["tumour-review".into()], false, &options);
    let mut silent = base::progress::Silent;
    let ran = experiments::run::run(&graph, &note, &options, &mut silent).unwrap();
    assert_eq!(ran.not_done(), 0, "{ran:?}");
    let printed = std::fs::read_to_string(out.join("steps/review/score/score.json")).unwrap();
    assert_eq!(printed.trim(), "[3, 3]");
    let record = Record::read(&out, "review/score").unwrap();
    assert!(record.seconds > 0.0, "{record:?}");
    if cfg!(target_os = "linux") {
        let worked = record.processor_seconds.unwrap();
        assert!(worked > 0.0 && worked < record.seconds + 0.1, "{record:?}");
    }
}

/// A report that is written again, as by the run of another experiment in the same folder.
#[cfg(unix)]
#[test]
fn a_report_calls_a_step_out_of_date_once_its_input_changed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    std::fs::write(&program, "#!/bin/sh\necho '{}'\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (out, data) = (dir.path().join("run"), dir.path().join("data"));
    let own = data.join("reviews/counts.csv");
    write(&own, "one");
    write(&data.join("other"), "one");
    let options = Options { program, data: Some(data.clone()), ..options(&out) };
    let run = |id: &str| {
        let chosen = Chosen { experiments: vec![id.into()], only: vec![], shrink: false };
        let (summary, _) =
            experiments::perform(&chosen, &options, &mut base::progress::Silent).unwrap();
        assert_eq!(summary.not_done(), 0, "{summary:?}");
    };
    let states = |id: &str| -> Vec<String> {
        let text = std::fs::read(out.join("report").join(id).join("results.json")).unwrap();
        let results: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let steps = results["steps"].as_array().unwrap().iter();
        steps.map(|s| s["state"].as_str().unwrap().to_owned()).collect()
    };
    run("dataset");
    assert_eq!(states("dataset"), ["done"]);
    // A data set that nobody can have names the way to one's own, and not a path in a file.
    let table = std::fs::read_to_string(out.join("report/dataset/counts.csv")).unwrap();
    let row = table.lines().find(|l| l.starts_with("TCGA-MF-Pseudo")).unwrap();
    assert!(row.contains("corpus build") && !row.contains("has no number"), "{row}");
    std::fs::remove_file(data.join("other")).unwrap();
    run("tumour-review");
    assert_eq!(
        (states("dataset"), states("tumour-review")),
        (vec!["out of date".into()], vec!["done".into()])
    );
    let page = std::fs::read_to_string(out.join("report/dataset/index.html")).unwrap();
    assert!(page.contains("Steps: 0 of 1 done") && page.contains("does it again"), "{page}");
    run("dataset");
    assert_eq!(states("dataset"), ["done"]);
    // On a machine without the data nothing can be compared.
    std::fs::rename(&data, dir.path().join("elsewhere")).unwrap();
    experiments::report::write(&out).unwrap();
    assert_eq!(
        (states("dataset"), states("tumour-review")),
        (vec!["done".into()], vec!["done".into()])
    );
}

/// A step that continues what was stopped does not continue a result that was whole and was damaged later.
#[cfg(unix)]
#[test]
fn a_damaged_result_is_made_from_the_start() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    std::fs::write(&program, "#!/bin/sh\necho whole\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let out = dir.path().join("run");
    let options = Options { program, ..options(&out) };
    let mut experiment = spec::find("tumour-review").unwrap();
    experiment.steps.iter_mut().for_each(|step| step.resumes = true);
    let graph = Graph::build(&[experiment], false).unwrap();
    let note = RunNote::here(vec!["tumour-review".into()], false, &options);
    let run = || {
        experiments::run::run(&graph, &note, &options, &mut base::progress::Silent).unwrap();
        std::fs::read_to_string(out.join("steps/review/score/score.json")).unwrap()
    };
    assert_eq!(run(), "whole\n");
    let other = out.join("steps/review/score/checkpoint");
    for damaged in ["who", ""] {
        std::fs::write(&other, "of the damaged result").unwrap();
        std::fs::write(out.join("steps/review/score/score.json"), damaged).unwrap();
        assert_eq!(run(), "whole\n");
        assert!(!other.exists(), "what the result was made of is trusted");
    }
}

#[test]
fn the_estimate_of_hours_follows_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let step = "public/subtypes/finetune/scratch-tiny";
    let id = vec!["subtypes-public".to_owned()];
    let chosen = Chosen { experiments: id, only: vec![step.into()], shrink: false };
    let data = dir.path().join("data");
    std::fs::create_dir_all(data.join("ami_br")).unwrap();
    let options = Options { data: Some(data), ..options(&dir.path().join("run")) };
    let plan = |options: &Options| experiments::plan(&chosen, options).unwrap();
    let assumed = plan(&options);
    assert_eq!(
        (assumed.rate.measured_on, assumed.rate.device.as_str()),
        (0, "processor, 3 threads")
    );
    assert!(assumed.to_string().contains("(assumed)"), "{assumed}");
    let gpu = plan(&Options { device: "cuda:1".into(), ..options.clone() });
    assert!(gpu.rate.device == "GPU" && gpu.hours < assumed.hours / 10.0);
    // The step took ten times as long as assumed, with other data: so will it again.
    let graph = Graph::build(&[spec::find("subtypes-public").unwrap()], false).unwrap();
    let step = graph.step(step).unwrap();
    let state = StepState::Done { result: "x".into() };
    let seconds = assumed.hours * 36_000.0;
    Record { state, seconds, ..Record::begun(step, "another key") }.write(&options.out).unwrap();
    let measured = plan(&options);
    assert_eq!(measured.rate.measured_on, 1);
    assert!((measured.hours - 10.0 * assumed.hours).abs() < 1e-9, "{measured}");
    assert!(measured.to_string().contains("measured on 1 step of this run"), "{measured}");
}

fn words(graph: &Graph, step: &str) -> String {
    graph.step(step).unwrap_or_else(|| panic!("no step {step}")).words.join(" ")
}

/// Paper: all methods use the same folds, one first stage serves all, and the second stages are the classifiers of the
/// classification experiment.
#[test]
fn both_stages_have_one_set_of_folds_and_no_classifier_is_trained_twice() {
    let experiments = ["classification", "detection"].map(|id| spec::find(id).unwrap());
    let graph = Graph::build(&experiments, false).unwrap();
    let splits = graph.steps().iter().filter(|s| s.words.join(" ").starts_with("corpus split"));
    assert_eq!(splits.map(|s| s.name.as_str()).collect::<Vec<_>>(), ["folds"]);
    assert!(words(&graph, "folds").contains("{import:MIDOG22.regions}"));
    let spec::Dim::Encoders { encoders } = &experiments[1].dims["row"] else { panic!("no rows") };
    for row in encoders {
        let models = format!("{{step:finetune/{row}}}/fold-");
        for step in ["segment".into(), format!("finetune/{row}"), format!("probe/{row}")] {
            assert!(words(&graph, &step).contains("--folds {step:folds}/folds.json"), "{step}");
        }
        let point = words(&graph, &format!("calibrate/{row}"));
        assert!(point.contains("{step:folds}/folds.json") && point.contains(&models), "{point}");
        let package = words(&graph, &format!("detector/{row}/2"));
        assert!(package.contains(&format!("{models}2/model.safetensors")), "{package}");
        assert!(package.contains("--segmenter {step:segment}/2/model.safetensors"), "{package}");
    }
    let trainings =
        |verb: &str| graph.steps().iter().filter(|s| s.words.join(" ").starts_with(verb)).count();
    // Two more of the detector of the pseudo-labels, on all of MIDOG22.
    assert_eq!((trainings("train finetune"), trainings("train segment")), (encoders.len() + 1, 2));
    assert_eq!(trainings("train detector"), 0);
    assert!(words(&graph, "corpus/pseudo").contains("--model {step:detector-all/mae-imagenet}"));
    assert!(words(&graph, "segment-all").contains("--fold none"));
    assert!(words(&graph, "finetune-all/mae-imagenet").contains("--fold none"));
}

/// What a preset of one stage and that of the detector have in common is the same.
#[test]
fn the_papers_presets_agree_and_feed_every_encoder_alike() {
    let read = |name: &str| -> toml::Table {
        let file = testkit::workspace().join("presets").join(name);
        std::fs::read_to_string(&file).unwrap().parse().unwrap()
    };
    let detector = read("detector-midog-paper.toml");
    assert_eq!(detector["segment"].as_table().unwrap(), &read("segment-midog-paper.toml"));
    assert_eq!(detector["crops"].as_table().unwrap(), &read("finetune-crops-paper-vit-base.toml"));
    let mut presets = 0;
    for id in ["classification", "subtypes", "ablation", "noise", "detection"] {
        let graph = Graph::build(&[spec::find(id).unwrap()], false).unwrap();
        for step in graph.steps().iter().filter(|s| {
            let verb = s.words.get(..2).map(|v| v.join(" ")).unwrap_or_default();
            verb == "train finetune" || verb == "train probe"
        }) {
            for preset in &step.presets {
                let table = read(preset);
                let task = table["task"].as_str().unwrap();
                assert!(preset.contains(task), "{}: {preset} is of {task}", step.name);
                // Of ImageNet, whatever the encoder's makers took.
                let model = &table["model"];
                let numbers = |key: &str| model.get(key).map(ToString::to_string);
                if preset.starts_with("finetune-") || preset.starts_with("probe-crops") {
                    assert_eq!(numbers("mean").unwrap(), "[0.485, 0.456, 0.406]", "{preset}");
                    assert_eq!(numbers("std").unwrap(), "[0.229, 0.224, 0.225]", "{preset}");
                }
                presets += 1;
            }
        }
    }
    assert!(presets > 100, "{presets}");
}

/// Rows of two lists in one table; a column that one list lacks needs no step of it.
#[test]
fn baselines_have_rows_among_the_encoders() {
    for (id, table, first) in [
        ("detection", "f1", ["seg-only", "yolov10"]),
        ("survival", "c-index", ["seg-only", "mdfs"]),
    ] {
        let experiment = spec::find(id).unwrap();
        let table = experiment.tables.iter().find(|t| t.id == table).unwrap();
        assert!(first.iter().all(|row| table.published.contains_key(*row)), "{id}");
        let dir = tempfile::tempdir().unwrap();
        let chosen = Chosen { experiments: vec![id.into()], only: vec![], shrink: false };
        let mut silent = base::progress::Silent;
        experiments::perform(&chosen, &options(dir.path()), &mut silent).unwrap();
        let file = dir.path().join("report").join(id).join("results.json");
        let results: serde_json::Value =
            serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let tables = results["tables"].as_array().unwrap();
        let rows =
            tables.iter().find(|t| t["id"] == *table.id).unwrap()["rows"].as_array().unwrap();
        assert_eq!([&rows[0]["id"], &rows[1]["id"]], first, "{id}");
        assert_eq!(rows.len(), table.published.len(), "{id}");
        if id == "survival" {
            // Segmentation alone has no second stage that takes time.
            assert!(rows[0]["cells"][4]["missing"].is_null(), "{}", rows[0]);
            assert!(!rows[1]["cells"][4]["missing"].is_null(), "{}", rows[1]);
        }
    }
}

/// The passes of a pretraining are those of its own corpus.
#[test]
fn a_small_corpus_has_a_small_estimate() {
    let graph = Graph::build(&[spec::find("ablation").unwrap()], false).unwrap();
    let gmacs = |step: &str| graph.step(step).unwrap().gmacs;
    let share = gmacs("pretrain/labelled") / gmacs("pretrain/mithras");
    assert!((share - 20_552.0 / 1_794_455.0).abs() < 1e-6, "{share}");
}

/// A step that begins again empties its folder.
#[test]
fn no_step_has_its_folder_in_that_of_another() {
    let graph = Graph::build(&spec::all().unwrap(), false).unwrap();
    let names: Vec<&str> = graph.steps().iter().map(|s| s.name.as_str()).collect();
    for name in &names {
        let inside = names.iter().find(|n| n.starts_with(&format!("{name}/")));
        assert!(inside.is_none(), "{inside:?} is inside of {name}");
    }
}
