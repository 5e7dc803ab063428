//! The command line as a user meets it: help, bad input, exit codes.

use crate::common;
use assert_cmd::Command;
use std::fs;
use std::path::{Path, PathBuf};

fn mithras() -> Command {
    Command::new(crate::program())
}

/// A two-stage package with seeded weights, small enough to run anywhere.
fn tiny() -> PathBuf {
    testkit::workspace().join("crates/infer/tests/golden/tiny")
}

fn detect(inputs: &[&Path], out: &Path, more: &[&str]) -> (bool, String, String) {
    let mut command = match more.contains(&"torch") {
        true => Command::new(crate::training_program()),
        false => mithras(),
    };
    command.arg("detect").args(inputs).arg("--out").arg(out).arg("--model").arg(tiny());
    if !more.contains(&"--engine") {
        command.args(["--engine", "rten"]);
    }
    let output = command.args(more).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn white(path: &Path) {
    image::RgbImage::from_pixel(600, 500, image::Rgb([244, 243, 244])).save(path).unwrap();
}

fn snapshot(args: &[&str]) -> String {
    // Of the training build, which has all verbs, wrapped to one width; the other starts in a tenth of the time.
    let mut command = Command::new(match args {
        [] | ["train" | "detect" | "demo" | "evaluate", ..] => crate::training_program(),
        _ => crate::program(),
    });
    let output = command.env("COLUMNS", "100").args(args).arg("--help").output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_of_the_main_verbs() {
    insta::assert_snapshot!("help_demo", snapshot(&["demo"]));
    insta::assert_snapshot!("help_detect", snapshot(&["detect"]));
    insta::assert_snapshot!("help_evaluate_detections", snapshot(&["evaluate", "detections"]));
}

#[test]
fn every_verb_has_help_with_one_line_about_it() {
    let all = snapshot(&[]);
    let verbs: Vec<&str> = all
        .lines()
        .skip_while(|l| !l.starts_with("Commands:"))
        .skip(1)
        .take_while(|l| !l.trim().is_empty())
        .filter_map(|l| l.split_whitespace().next())
        .filter(|v| *v != "help")
        .collect();
    assert!(verbs.len() >= 5, "{verbs:?}");
    for verb in verbs {
        let help = snapshot(&[verb]);
        assert!(help.lines().next().is_some_and(|l| l.len() > 10), "{verb}: {help}");
        assert!(help.contains("Usage: mithras"), "{verb}");
    }
}

#[test]
fn inputs_that_cannot_be_read_are_named_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    fs::write(at("empty.svs"), b"").unwrap();
    fs::write(at("text.svs"), b"this is not a slide at all").unwrap();
    white(&at("plain.png"));
    let missing = at("missing.svs");
    let inputs = [missing, at("empty.svs"), at("text.svs"), at("plain.png")];
    let refs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let out = at("out");
    let (ok, stdout, stderr) = detect(&refs, &out, &[]);
    assert!(!ok);
    assert!(stdout.contains("4 of 4 slides failed"), "{stdout}{stderr}");
    let csv = fs::read_to_string(out.join("counts.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.contains("have to be given"), "a missing resolution is asked for: {csv}");
    assert!(stderr.contains("hint: see --mpp"), "and the flag is named: {stderr}");
    assert!(csv.contains("empty"), "{csv}");
    let html = fs::read_to_string(out.join("summary.html")).unwrap();
    assert!(html.contains("4 of 4 slides failed"));
}

#[test]
fn a_folder_is_searched_by_content() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("slides/deep");
    fs::create_dir_all(&folder).unwrap();
    // A PNG under a slide's suffix, and a text file.
    white(&folder.join("a.png"));
    fs::rename(folder.join("a.png"), folder.join("a.svs")).unwrap();
    fs::write(folder.join("note.txt"), "hello").unwrap();
    let out = dir.path().join("out");
    let (ok, stdout, stderr) = detect(&[&dir.path().join("slides")], &out, &["--mpp", "0.25"]);
    assert!(ok, "{stderr}");
    assert!(stderr.contains("not slides and skipped: 1 file in the folders"), "{stderr}");
    assert!(stdout.contains("1 of 1 slide without tissue"), "{stdout}");

    let nothing = dir.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    let (ok, _, stderr) = detect(&[&nothing], &out, &[]);
    assert!(!ok && stderr.contains("no slide in this folder"), "{stderr}");
}

#[test]
fn wrong_flags_are_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("a.png");
    white(&slide);
    let out = dir.path().join("out");
    for (flags, word) in [
        (&["--mpp", "NaN"][..], "not a finite number"),
        (&["--mpp", "-0.25"], "implausible"),
        (&["--mpp", "25400"], "implausible"),
        (&["--mpp", "wide"], "not a number"),
        (&["--provider", "magic"], "possible values"),
        (&["--stages", "3"], "1..=2"),
        (&["--max-unread", "2"], "not between 0 and 1"),
        (&["--resume", "--overwrite"], "cannot be used with"),
        (&["--limit", "pixel=1"], "directories"),
        (&["--limit", "pixels"], "NAME=VALUE"),
        (&["--memory", "none"], "not a number"),
        (&["--mpp-table", "/nowhere.csv"], "/nowhere.csv"),
    ] {
        let (ok, _, stderr) = detect(&[&slide], &out, flags);
        assert!(!ok && stderr.contains(word), "{flags:?}: {stderr}");
        assert!(!out.exists(), "{flags:?} wrote something");
    }
}

#[test]
fn limits_of_the_environment_hold_without_the_flag() {
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    fs::create_dir(&images).unwrap();
    white(&images.join("a.png"));
    let s = |p: &Path| p.to_str().unwrap().to_owned();
    let (slide, folder, out) = (s(&images.join("a.png")), s(&images), s(&dir.path().join("out")));
    let (tiny, mpp) = (s(&tiny()), "--mpp=0.25");
    let robustness = ["evaluate", "robustness", "--images", &folder, "--no-figures", mpp];
    let build = ["corpus", "build", &slide, "--preset", "tcga-mf-pseudo", "--cohort", "OV", mpp];
    let more = ["--engine", "rten", "--model", &tiny, "--out", &out];
    for words in [
        &["slide", "info", &slide][..],
        &["slide", "tissue", &slide, mpp, "--out", &out],
        &[&robustness[..], &more].concat(),
        &[&build[..], &["--no-tumour-filter"], &more].concat(),
        &[&["detect", &slide, mpp], &more[..]].concat(),
    ] {
        let refused = |limits: &str| {
            let output = mithras().args(words).env("MITHRAS_LIMITS", limits).output().unwrap();
            let printed = [output.stderr, output.stdout].concat();
            (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
        };
        let (ok, printed) = refused("pixels=100");
        assert!(
            !ok && printed.contains("pixels") && printed.contains("100"),
            "{words:?}: {printed}"
        );
        let (ok, printed) = refused("pixel=100");
        assert!(!ok && printed.contains("MITHRAS_LIMITS"), "{words:?}: {printed}");
    }
}

#[test]
fn a_model_that_does_not_match_its_card_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("a.png");
    white(&slide);
    let model = dir.path().join("model");
    fs::create_dir(&model).unwrap();
    for file in ["card.toml", "segmenter.onnx", "classifier.onnx"] {
        fs::copy(tiny().join(file), model.join(file)).unwrap();
    }
    let mut bytes = fs::read(model.join("segmenter.onnx")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(model.join("segmenter.onnx"), bytes).unwrap();
    let run = |model: &Path| {
        let out = dir.path().join("out");
        let mut command = mithras();
        command.arg("detect").arg(&slide).arg("--out").arg(out).arg("--model").arg(model);
        let output = command.output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run(&model).contains("SHA-256"), "a flipped bit is found");
    fs::remove_file(model.join("card.toml")).unwrap();
    assert!(run(&model).contains("card.toml"));
    assert!(run(Path::new("no-such-model")).contains("no-such-model"));
}

#[test]
fn results_that_cannot_be_written_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("a.png");
    white(&slide);
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let (ok, _, stderr) = detect(&[&slide], &file.join("out"), &["--mpp", "0.25"]);
    assert!(!ok && stderr.contains("cannot write into"), "{stderr}");
    // procfs takes no folders, from root either.
    if Path::new("/proc/self").exists() {
        let (ok, _, stderr) = detect(&[&slide], Path::new("/proc/mithras"), &["--mpp", "0.25"]);
        assert!(!ok && stderr.contains("/proc/mithras"), "{stderr}");
    }
}

#[test]
fn a_full_disk_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("drawn.tiff");
    common::draw(&slide, 900, 800, 2, 2);
    let out = dir.path().join("small");
    fs::create_dir(&out).unwrap();
    // A disk of 48 KiB in a name space of its own.
    let script = r#"mount -t tmpfs -o size=48k none "$1" || exit 77
        exec "$2" detect "$3" --out "$1" --model "$4" --engine rten --stages 1 --operating-point 0.3,0"#;
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh"]).arg(&out);
    command.arg(crate::program()).arg(&slide).arg(tiny());
    let Ok(output) = command.output() else {
        eprintln!("SKIPPED: no unshare here");
        return;
    };
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.code() == Some(77) || printed.contains("unshare:") {
        eprintln!("SKIPPED: no small disk can be made here: {printed}");
        return;
    }
    assert!(!output.status.success());
    assert!(printed.contains("No space left"), "{printed}");
}

#[test]
fn two_stages_end_to_end_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("drawn.tiff");
    common::draw(&slide, 900, 800, 2, 2);
    let out = dir.path().join("out");
    let (ok, stdout, stderr) = detect(&[&slide], &out, &["--json", "--threads", "2"]);
    assert!(ok, "{stderr}");
    let run: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(run["done"], 1);
    assert_eq!(run["engine"]["engine"], "rten");
    assert_eq!(run["slides"][0]["counts"]["resolution"]["x"], 0.25);
    assert!(run["slides"][0]["counts"]["tissue_mm2"].as_f64().unwrap() > 0.0);
    let first = common::results(&out.join("drawn"));
    assert_eq!(first.len(), 9, "{:?}", first.iter().map(|f| &f.0).collect::<Vec<_>>());

    let (ok, _, stderr) = detect(&[&slide], &out, &[]);
    assert!(!ok && stderr.contains("--resume"), "{stderr}");
    let (ok, stdout, _) = detect(&[&slide], &out, &["--resume"]);
    assert!(ok && stdout.contains("kept"), "{stdout}");
    let (ok, _, _) = detect(&[&slide], &out, &["--overwrite"]);
    assert!(ok);
    assert!(first == common::results(&out.join("drawn")), "the same run gives the same bytes");
    let (ok, _, stderr) =
        detect(&[&slide], &out, &["--resume", "--stages", "1", "--operating-point", "0.3,0"]);
    assert!(!ok && stderr.contains("another configuration"), "{stderr}");

    // As if another engine had done it.
    let state = out.join("drawn/state.json");
    let mut other: serde_json::Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    other["config"] = "0".repeat(64).into();
    other["settings"]["arithmetic"] = "other/cpu/f32/f32".into();
    fs::write(&state, serde_json::to_vec(&other).unwrap()).unwrap();
    let (ok, _, stderr) = detect(&[&slide], &out, &["--resume"]);
    assert!(!ok && stderr.contains("was done with other/cpu/f32/f32"), "{stderr}");
    assert!(stderr.contains("up to 0.001") && stderr.contains("see --accept-engine"), "{stderr}");
    let (ok, stdout, stderr) = detect(&[&slide], &out, &["--resume", "--accept-engine"]);
    assert!(ok && stdout.contains("kept"), "{stdout}{stderr}");
    assert!(fs::read_to_string(out.join("counts.csv")).unwrap().contains("drawn,finished"));
    for more in [&["--accept-engine"][..], &["--overwrite", "--accept-engine"]] {
        let (ok, _, stderr) = detect(&[&slide], &out, more);
        assert!(!ok && stderr.contains("Usage:"), "it is a word about resuming: {stderr}");
    }
}

#[test]
fn libtorch_runs_the_shipped_file_where_the_build_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("drawn.tiff");
    common::draw(&slide, 900, 800, 2, 2);
    let run = |engine: &str| {
        let out = dir.path().join(engine);
        let (ok, stdout, stderr) = detect(&[&slide], &out, &["--json", "--engine", engine]);
        let csv = fs::read_to_string(out.join("drawn/detections.csv")).unwrap_or_default();
        (ok, stdout, stderr, csv)
    };
    let (ok, stdout, stderr, csv) = run("torch");
    if !cfg!(feature = "train") {
        assert!(!ok && stderr.contains("this build has no libtorch"), "{stderr}");
        return;
    }
    assert!(ok, "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["engine"]["engine"], "torch");
    let embedded = run("rten").3;
    assert_eq!(csv.lines().count(), embedded.lines().count());
    for (a, b) in csv.lines().zip(embedded.lines()).skip(1) {
        let row = |l: &str| l.split(',').map(str::to_owned).collect::<Vec<_>>();
        let (a, b) = (row(a), row(b));
        assert_eq!(a.last(), b.last(), "accepted alike");
        for (x, y) in a
            .iter()
            .zip(&b)
            .filter_map(|(x, y)| Some((x.parse::<f64>().ok()?, y.parse::<f64>().ok()?)))
        {
            assert!((x - y).abs() <= 1e-3, "{x} against {y}");
        }
    }
}

#[test]
fn a_resolution_for_all_fills_gaps_and_one_for_a_slide_must_agree() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("drawn.tiff");
    common::draw(&slide, 900, 800, 2, 2);
    let out = dir.path().join("out");
    let table = dir.path().join("mpp.csv");
    fs::write(&table, "slide,mpp\ndrawn.tiff,0.5\n").unwrap();
    let table = table.to_str().unwrap();
    // One for this slide alone must agree with it.
    let (ok, _, stderr) = detect(&[&slide], &out, &["--mpp-table", table]);
    assert!(!ok && stderr.contains("0.5") && stderr.contains("0.25"), "{stderr}");
    // One for all serves those that state none.
    let mpp = |more: &[&str]| {
        let first = ["--overwrite", "--stages", "1", "--operating-point", "0.3,0", "--json"];
        let more = [&first[..], more].concat();
        let (ok, stdout, stderr) = detect(&[&slide], &out, &more);
        assert!(ok, "{stderr}");
        let run: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        run["slides"][0]["counts"]["resolution"]["x"].as_f64().unwrap()
    };
    assert_eq!(mpp(&["--mpp", "0.5"]), 0.25);
    assert_eq!(mpp(&["--mpp", "0.5", "--force-mpp"]), 0.5);
    assert_eq!(mpp(&["--mpp-table", table, "--force-mpp"]), 0.5);
}

#[test]
fn kept_candidates_and_a_table_of_names_change_no_number() {
    let dir = tempfile::tempdir().unwrap();
    let slides = ["a", "b"].map(|name| dir.path().join(format!("{name}.tiff")));
    for (slide, mimickers) in slides.iter().zip([2, 3]) {
        common::draw(slide, 900, 800, 2, mimickers);
    }
    let inputs = slides.each_ref().map(|p| p.as_path());
    let kept = dir.path().join("kept");
    let run = |out: &str, more: &[&str]| {
        let out = dir.path().join(out);
        let (ok, _, stderr) = detect(&inputs, &out, more);
        assert!(ok, "{stderr}");
        (out, stderr)
    };
    let keep = ["--keep-candidates", kept.to_str().unwrap()];
    let table = dir.path().join("labels.csv");
    fs::write(&table, "image,x,y\nb.tiff,1,2\nb.tiff,3,4\n").unwrap();
    let only = ["--only", table.to_str().unwrap()];
    let (first, stderr) = run("first", &[&keep[..], &only].concat());
    assert!(!first.join("a").exists() && first.join("b").is_dir(), "{stderr}");
    let one = ["--stages", "1", "--operating-point", "0.3,0"];
    let (from_kept, _) = run("from-kept", &[&keep[..], &one].concat());
    let (new, _) = run("new", &one);
    let both = ["--stages", "1", "--operating-point", "0.3,0.9"];
    let (ok, _, stderr) = detect(&inputs, &dir.path().join("both"), &both);
    assert!(!ok && stderr.contains("its second threshold is 0, not 0.9"), "{stderr}");
    for file in ["counts.csv", "a/detections.csv", "b/detections.csv", "b/qupath.geojson"] {
        let [kept, new] = [&from_kept, &new].map(|d| fs::read_to_string(d.join(file)).unwrap());
        assert_eq!(kept, new, "{file}");
    }
    let windows = |slide: &str| {
        let text = fs::read_to_string(from_kept.join(slide).join("state.json")).unwrap();
        let state: serde_json::Value = serde_json::from_str(&text).unwrap();
        state["stages"][1]["items"].as_u64().unwrap()
    };
    assert!(windows("a") > 0 && windows("b") == 0);
    // A name that no slide has is reported; a table that names none is refused.
    fs::write(&table, "slide\nb\nc\n").unwrap();
    let (_, stderr) = run("some", &only);
    assert!(stderr.contains("note:") && stderr.contains('c'), "{stderr}");
    fs::write(&table, "slide\nc\n").unwrap();
    let (ok, _, stderr) = detect(&inputs, &dir.path().join("none"), &only);
    assert!(!ok && stderr.contains("labels.csv"), "{stderr}");
    // A folder that cannot be made is reported before any work.
    let file = slides[0].join("kept");
    let no = ["--keep-candidates", file.to_str().unwrap()];
    let (ok, _, stderr) = detect(&inputs, &dir.path().join("refused"), &no);
    assert!(!ok && stderr.contains("cannot write into"), "{stderr}");
}

#[test]
fn evaluate_reports_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let truth = dir.path().join("truth.csv");
    let run = |text: &str, more: &[&str]| {
        fs::write(&truth, text).unwrap();
        let mut command = mithras();
        command.args(["evaluate", "detections", "--predictions"]).arg(dir.path());
        let output = command.arg("--truth").arg(&truth).args(more).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run("a,b\n1,2\n", &[]).contains("no column 'slide'"));
    assert!(run("slide,u,v\ns,1,2\n", &[]).contains("no column 'x_px'"));
    assert!(run("slide,x,y\ns,one,2\n", &[]).contains("'one' is not a finite number"));
    assert!(run("slide,x,y\ns.svs,1,2\n", &[]).contains("no predictions"));
    assert!(run("slide,x,y\n", &[]).contains("no rows"));
    assert!(run("slide,x,y\ns,1,2\n", &["--rule", "best"]).contains("possible values"));
}

#[test]
fn demo_draws_the_same_slide_twice() {
    let dir = tempfile::tempdir().unwrap();
    let draw = |name: &str, seed: &str| {
        let out = dir.path().join(name);
        let mut command = mithras();
        command.args([
            "demo",
            "--draw-only",
            "--size",
            "900,800",
            "--figures",
            "2",
            "--seed",
            seed,
        ]);
        assert!(command.arg("--out").arg(&out).output().unwrap().status.success());
        (fs::read(out.join("drawn.tiff")).unwrap(), fs::read(out.join("truth.csv")).unwrap())
    };
    let (a, b, c) = (draw("a", "4"), draw("b", "4"), draw("c", "5"));
    assert!(a == b && a.0 != c.0 && a.1 != c.1);
    assert_eq!(String::from_utf8(a.1).unwrap().lines().count(), 1 + 2 + 3);
}
