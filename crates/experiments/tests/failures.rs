//! Steps that fail and runs that are killed: what is stopped, what runs, what is done again.

#![cfg(unix)]

use base::file::Lock;
use base::progress::Silent;
use experiments::graph::Graph;
use experiments::run::{Ended, Options, Record, RunNote, StepState, Summary};
use experiments::spec;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Three steps: one to fail, one that needs its result, and one that needs neither.
fn graph() -> Graph {
    let mut experiment = spec::find("tumour-review").unwrap();
    let steps = "
        [[step]]
        name = 'trained'
        run = ['trained', '--out', '{out}']
        makes = ['model']
        resumes = true
        [[step]]
        name = 'tested'
        run = ['tested', '--model', '{step:trained}/model', '--out', '{out}']
        makes = ['scores']
        [[step]]
        name = 'apart'
        run = ['apart', '--out', '{out}']
        makes = ['scores']";
    let mut table: toml::Table = steps.parse().unwrap();
    (experiment.tables, experiment.figures, experiment.compares) = (vec![], vec![], vec![]);
    experiment.steps = table.remove("step").unwrap().try_into().unwrap();
    Graph::build(&[experiment], false).unwrap()
}

/// A program that notes each of its calls, does `trained` by these lines of shell, and makes every other result.
fn program(dir: &Path, trained: &str) -> PathBuf {
    let program = dir.join("program");
    let text = format!(
        "#!/bin/sh\necho $1 >> '{calls}'\nfor out; do :; done\n\
         case $1 in\ntrained) {trained};;\n*) echo whole > \"$out/scores\";;\nesac\n",
        calls = dir.join("calls").display()
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn run(dir: &Path) -> Summary {
    let options = Options {
        out: dir.join("run"),
        data: None,
        encoders: None,
        program: dir.join("program"),
        jobs: 2,
        threads: 1,
        device: "cpu".into(),
        memory: 8.0,
        cancel: Default::default(),
        alone: None,
    };
    let note = RunNote::here(vec!["tumour-review".into()], false, &options);
    experiments::run::run(&graph(), &note, &options, &mut Silent).unwrap()
}

fn ended(summary: &Summary, step: &str) -> Ended {
    summary.steps.iter().find(|s| s.name == step).unwrap().ended.clone()
}

/// The calls since the last look, in order of their names.
fn calls(dir: &Path) -> Vec<String> {
    let file = dir.join("calls");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(file);
    let mut calls: Vec<String> = text.lines().map(str::to_owned).collect();
    calls.sort();
    calls
}

/// As verbs end where a loss is not a number, an encoder refuses its file or a disk is full: with a code and a line; or
/// killed by the system; or with success and without the file.
#[test]
fn a_failed_step_stops_what_needs_it_and_nothing_else() {
    for (trained, words) in [
        ("echo 'error: the loss is not a number at step 3' >&2; exit 1", vec!["not a number"]),
        (
            "echo 'error: uni.pth: no tensor `norm.weight`' >&2; echo 'hint: use --allow-partial' >&2; exit 2",
            vec!["norm.weight", "--allow-partial"],
        ),
        (
            "printf part > \"$out/model.part\"; echo 'No space left on device' >&2; exit 1",
            vec!["No space left", "logs/trained"],
        ),
        ("kill -9 $$", vec!["signal: 9", "no output"]),
        (
            "printf 'error: no libtorch. The training build:\\n  cargo build\\n' >&2; exit 1",
            vec!["The training build: cargo build"],
        ),
        (":", vec!["ended well, but model is not in"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        program(dir, trained);
        let summary = run(dir);
        let Ended::Failed { reason } = ended(&summary, "trained") else { panic!("{summary:?}") };
        assert!(words.iter().all(|w| reason.contains(w)), "{reason}");
        let Ended::Blocked { reason: after } = ended(&summary, "tested") else {
            panic!("{summary:?}")
        };
        assert_eq!(after, format!("trained failed: {reason}"));
        assert!(matches!(ended(&summary, "apart"), Ended::Done { .. }), "{summary:?}");
        assert_eq!(calls(dir), ["apart", "trained"]);
        let record = Record::read(&dir.join("run"), "trained").unwrap();
        assert_eq!(record.state, StepState::Failed { reason: reason.clone() });
        let note: RunNote =
            serde_json::from_slice(&std::fs::read(dir.join("run/run.json")).unwrap()).unwrap();
        assert_eq!(note.blocked["tested"], after);
        // Once the cause is gone, what failed and what waited for it is done, and no more.
        program(dir, "echo whole > \"$out/model\"");
        let summary = run(dir);
        assert_eq!(summary.not_done(), 0, "{summary:?}");
        assert_eq!(ended(&summary, "apart"), Ended::Before);
        assert_eq!(calls(dir), ["tested", "trained"]);
    }
}

#[test]
fn a_killed_run_continues_where_it_was() {
    // The run that is killed is this test in a process of its own.
    if let Some(dir) = std::env::var_os("MITHRAS_RUN_TO_KILL") {
        run(Path::new(&dir));
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // It is half done, and waits until the run is killed; then it ends as well.
    let wait = "echo half > \"$out/checkpoint\"; while [ ! -e \"$0.killed\" ]; do sleep 0.02; done; exit 1";
    let program = program(dir, wait);
    let mut first = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_run_continues_where_it_was"])
        .env("MITHRAS_RUN_TO_KILL", dir)
        .spawn()
        .unwrap();
    let state = |step: &str| Record::read(&dir.join("run"), step).map(|r| r.state);
    let checkpoint = dir.join("run/steps/trained/checkpoint");
    while !(checkpoint.exists() && matches!(state("apart"), Some(StepState::Done { .. }))) {
        assert!(first.try_wait().unwrap().is_none(), "the run ended before it was killed");
        std::thread::sleep(Duration::from_millis(10));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // Its step is still at work, and no other run begins it a second time.
    let refused = Lock::take(&dir.join("run")).unwrap_err().to_string();
    assert!(refused.contains("another process is at work in"), "{refused}");
    std::fs::write(program.with_extension("killed"), "").unwrap();
    while Lock::is_taken(&dir.join("run")) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(calls(dir), ["apart", "trained"]);
    assert!(!matches!(state("trained"), Some(StepState::Done { .. })));
    self::program(dir, "cat \"$out/checkpoint\" > \"$out/model\"");
    let summary = run(dir);
    assert_eq!(summary.not_done(), 0, "{summary:?}");
    assert_eq!(ended(&summary, "apart"), Ended::Before);
    assert_eq!(calls(dir), ["tested", "trained"]);
    let model = std::fs::read_to_string(dir.join("run/steps/trained/model")).unwrap();
    assert_eq!(model, "half\n", "the step began from the start");
}
