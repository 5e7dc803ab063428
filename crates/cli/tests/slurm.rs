//! `mithras slurm` against imitations of Slurm's programs, and the log that scripts read. On a real
//! Slurm: `deploy/slurm/try.sh`.

#![cfg(unix)]

use crate::common;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs every task of the array at once; the task `$KILL` of the first job is killed before it begins.
/// With `$KILL` being `all` the job stays in the queue.
const SBATCH: &str = r#"#!/bin/bash
here=$(dirname "$0")
job=$(( $(cat "$here/last" 2>/dev/null || echo 100) + 1 )); echo $job > "$here/last"
echo "$@" >> "$here/calls"
file=${@: -1}; tasks=$(sed -n 's/^#SBATCH --array=1-\([0-9]*\).*/\1/p' "$file"); tasks=$(seq $tasks)
for a in "$@"; do case $a in --array=*) tasks=$(echo "${a#--array=}" | sed 's/%.*//' | tr , ' ');; esac; done
log=$(sed -n 's/^#SBATCH "*--output=\([^"]*\)"*/\1/p' "$file")
for k in $tasks; do
    [ "$KILL" != all ] || continue
    to=${log/\%A/$job}; to=${to/\%a/$k}
    if [ $job = 101 ] && [ $k = "$KILL" ]; then echo "slurmstepd: error: Killed" >> "$to"; continue; fi
    SLURM_ARRAY_TASK_ID=$k SLURM_CPUS_PER_TASK=1 bash "$file" >> "$to" 2>&1
done
echo "$job;here"
"#;
/// Busy at the first look at a job, gone at the next; and busy for `busy` looks.
const SQUEUE: &str = r#"#!/bin/bash
here=$(dirname "$0")
busy=$(cat "$here/busy" 2>/dev/null || echo 0)
if [ $busy -gt 0 ]; then echo $((busy - 1)) > "$here/busy"; echo RUNNING; exit; fi
if [ ! -e "$here/looked" ]; then touch "$here/looked"; echo RUNNING; exit; fi
echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1
"#;

struct Study {
    dir: tempfile::TempDir,
}

impl Study {
    fn new(rows: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for (name, text) in [("sbatch", SBATCH), ("squeue", SQUEUE)] {
            fs::write(bin.join(name), text).unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        for (k, row) in rows.iter().enumerate().filter(|(_, r)| !r.starts_with("missing")) {
            common::draw(&dir.path().join(row), 700, 600, k as u64 + 1, 2);
        }
        fs::write(dir.path().join("slides.csv"), format!("slide\n{}\n", rows.join("\n"))).unwrap();
        Self { dir }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Exit code and standard error.
    fn mithras(&self, verb: &str, out: &str, more: &[&str], kill: &str) -> (i32, String) {
        let output = self.command(verb, out, more, kill).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn command(&self, verb: &str, out: &str, more: &[&str], kill: &str) -> Command {
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(crate::program());
        command
            .args([verb, "--log", "json", "--list"])
            .arg(self.at("slides.csv"))
            .arg("--out")
            .arg(self.at(out))
            .args(more)
            .args(if verb == "slurm" { &["--"][..] } else { &[] })
            .args(["--engine", "rten", "--model"])
            .arg(testkit::workspace().join("crates/infer/tests/golden/tiny"))
            .env("PATH", path)
            .env("KILL", kill);
        command
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_default()
    }
}

fn events(log: &str) -> Vec<Value> {
    let parsed =
        log.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")));
    let events: Vec<Value> = parsed.collect();
    assert!(events.iter().all(|e| e["schema"] == "mithras.log/1"), "{log}");
    assert_eq!(events[0]["event"], "started", "{log}");
    assert_eq!(events.last().unwrap()["event"], "ended", "{log}");
    events
}

fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|e| e["event"] == kind).collect()
}

const ROWS: [&str; 5] = ["a.tiff", "b.tiff", "c.tiff", "d.tiff", "e.tiff"];

#[test]
fn a_killed_shard_runs_once_more_and_the_table_is_that_of_one_process() {
    let study = Study::new(&ROWS);
    let (code, log) = study.mithras("detect", "one", &[], "");
    assert_eq!(code, 0, "{log}");
    let one = study.text("one/counts.csv");
    assert_eq!(one.lines().count(), 6);
    // By the shards that Python gives for five: `a` is in 1, `b` in 2.
    let (code, log) = study.mithras("slurm", "out", &["--shards", "5"], "2");
    assert_eq!(code, 0, "{log}");
    assert_eq!(study.text("out/counts.csv"), one);
    let calls = study.text("bin/calls");
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(calls[0].starts_with("--parsable /") && calls[1].starts_with("--parsable --array=2 "));
    let events = events(&log);
    let notes = of(&events, "message");
    let note = notes[1]["text"].as_str().unwrap();
    assert!(note.contains("shard 2/5") && note.contains("slurmstepd: error: Killed"), "{note}");
    assert_eq!(of(&events, "progress").last().unwrap()["unit"], "shards");

    // Once more: nothing is left to do, and nothing changes.
    assert_eq!(study.mithras("slurm", "out", &["--shards", "5"], "").0, 0);
    assert_eq!(study.text("out/counts.csv"), one);
}

#[test]
fn with_a_folder_for_each_shard_the_table_is_the_same() {
    let study = Study::new(&ROWS);
    let (code, log) = study.mithras("detect", "one", &[], "");
    assert_eq!(code, 0, "{log}");
    let split = ["--shards", "5", "--split"];
    let (code, log) = study.mithras("slurm", "out", &split, "2");
    assert_eq!(code, 0, "{log}");
    assert_eq!(study.text("out/counts.csv"), study.text("one/counts.csv"));
    // The folder itself contains only tables, parts and what Slurm needs.
    let listed = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(study.at(folder)).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|n| !n.starts_with('.')).collect();
        names.sort();
        names
    };
    let parts = listed("out").into_iter().filter(|n| n.starts_with("part-")).count();
    assert_eq!(listed("out").len(), parts + 3, "{:?}", listed("out"));
    // By Python's digests: `a` in part 1, `b` in part 2, which was killed at first.
    for (part, slide) in [(1, "a"), (2, "b")] {
        assert!(listed(&format!("out/part-{part}")).contains(&slide.to_owned()));
        for file in ["detections.csv", "counts.json"] {
            let there = study.text(&format!("out/part-{part}/{slide}/{file}"));
            assert_eq!(there, study.text(&format!("one/{slide}/{file}")));
        }
    }
    // The page over all holds the pictures of the parts.
    assert!(study.text("out/summary.html").contains("data:image/jpeg;base64"));
    let calls = study.text("bin/calls");
    assert!(calls.lines().nth(1).unwrap().starts_with("--parsable --array=2 "), "{calls}");
    // Nothing is left to do, and other flags find the same folders.
    assert_eq!(study.mithras("slurm", "out", &[&split[..], &["--at-once", "1"]].concat(), "").0, 0);
    assert_eq!(study.text("out/counts.csv"), study.text("one/counts.csv"));
}

#[test]
fn a_job_that_is_under_way_is_watched_and_not_submitted_again() {
    let study = Study::new(&["a.tiff", "b.tiff"]);
    let busy = |looks: usize| fs::write(study.at("bin/busy"), looks.to_string()).unwrap();
    busy(100_000);
    let mut first = study.command("slurm", "out", &["--shards", "2"], "all");
    let first = first.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !study.at("out/.slurm/jobs.json").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is submitted");
        std::thread::sleep(Duration::from_millis(20));
    }
    let stop = Command::new("kill").args(["-INT", &first.id().to_string()]).status().unwrap();
    assert!(stop.success());
    let ended = first.wait_with_output().unwrap();
    let words = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(1) && words.contains("job 101 continues"), "{words}");

    // The job's tasks run while nobody watches.
    for task in ["1", "2"] {
        let done = Command::new("bash")
            .arg(study.at("out/.slurm/detect.sbatch"))
            .env("SLURM_ARRAY_TASK_ID", task)
            .stderr(Stdio::null())
            .status();
        assert!(done.unwrap().success());
    }
    busy(3);
    let (code, log) = study.mithras("slurm", "out", &["--shards", "2"], "all");
    assert_eq!(code, 0, "{log}");
    let events = events(&log);
    let note = of(&events, "message")[0]["text"].as_str().unwrap();
    assert_eq!(note, "job 101 is under way, and watched");
    assert_eq!(study.text("bin/calls").lines().count(), 1, "submitted once");
    assert_eq!(study.text("out/counts.csv").lines().count(), 3);
    // With other flags it is another job, whatever was submitted before.
    busy(0);
    let (code, log) = study.mithras("slurm", "out", &["--shards", "1"], "");
    assert_eq!(code, 0, "{log}");
    assert_eq!(study.text("bin/calls").lines().count(), 2);
}

#[test]
fn a_slide_that_cannot_be_read_fails_twice_and_is_reported() {
    let study = Study::new(&["a.tiff", "missing.svs"]);
    let (code, log) = study.mithras("slurm", "out", &["--shards", "2", "--at-once", "1"], "");
    assert_eq!(code, 3, "{log}");
    assert_eq!(study.text("bin/calls").lines().count(), 2);
    assert!(study.text("bin/calls").contains("%1 "));
    let events = events(&log);
    assert!(
        of(&events, "message").iter().any(|e| e["text"].as_str().unwrap().contains("missing.svs"))
    );
    assert_eq!(of(&events, "ended")[0]["exit_code"], 3);
    assert!(study.text("out/counts.csv").contains("\nmissing,failed,"));
}

#[test]
fn tasks_that_refuse_are_not_done_whatever_is_in_the_folder() {
    let study = Study::new(&["a.tiff", "b.tiff"]);
    let shards = ["--shards", "2"];
    assert_eq!(study.mithras("slurm", "out", &shards, "").0, 0);
    let mut again = study.command("slurm", "out", &shards, "");
    let output = again.args(["--operating-point", "0.2,0.2"]).output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(
        log.contains("the first task that refused: shard 1/2 is not done (exit code 1"),
        "{log}"
    );
    assert!(log.contains("done with another configuration"), "{log}");
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_submitted() {
    let study = Study::new(&["a.tiff"]);
    let (code, log) = study.mithras("slurm", "out", &["--sbatch=--comment=\"x\""], "");
    assert!(code == 1 && log.contains("job file"), "{log}");
    let (code, log) = study.mithras("slurm", "out", &["--dry-run"], "");
    assert_eq!(code, 0, "{log}");
    assert!(study.text("out/.slurm/detect.sbatch").contains("--array=1-1\n"));
    fs::rename(study.at("slides.csv"), study.at("whole.csv")).unwrap();
    fs::write(study.at("slides.csv"), "file\nx\n").unwrap();
    let (code, log) = study.mithras("slurm", "other", &[], "");
    assert!(code == 1 && log.contains("no column 'slide'"), "{log}");
    assert!(!study.at("bin/calls").exists() && !study.at("other").exists());
    // No Slurm here.
    let bare = |more: &[&str]| {
        Command::new(crate::program())
            .args(["slurm", "--out", "out", "--list"])
            .arg(study.at("whole.csv"))
            .args(more)
            .current_dir(study.dir.path())
            .env("PATH", study.at("nothing"))
            .output()
            .unwrap()
    };
    let followed = bare(&["--dry-run"]);
    assert!(followed.status.success(), "{followed:?}");
    let bare = bare(&[]);
    let words = String::from_utf8_lossy(&bare.stderr).into_owned();
    assert!(bare.status.code() == Some(1) && words.contains("sbatch cannot be run"), "{words}");
    assert!(words.contains("see --dry-run"), "{words}");
    // A flag that detect has not.
    let output = Command::new(crate::program())
        .args(["slurm", "--list", "x", "--out", "y", "--", "--stage", "1"])
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && words.contains("--stage"), "{words}");
}

#[test]
fn scripts_read_how_each_slide_ended() {
    let study = Study::new(&["a.tiff", "missing.svs", "c.tiff"]);
    let (code, log) = study.mithras("detect", "out", &[], "");
    assert_eq!(code, 3, "{log}");
    let all = events(&log);
    assert_eq!(of(&all, "slides")[0]["total"], 3);
    let begun: Vec<&Value> = of(&all, "slide-begun").iter().map(|e| &e["slide"]).collect();
    assert_eq!(begun, ["a", "missing", "c"]);
    let ended = of(&all, "slide-ended");
    let printed: Vec<_> = ended
        .iter()
        .map(|e| (e["status"].as_str().unwrap(), e["done"].as_u64().unwrap()))
        .collect();
    assert_eq!(printed, [("finished", 1), ("failed", 2), ("finished", 3)]);
    assert!(ended[1]["reason"].as_str().unwrap().contains("missing.svs"), "{log}");
    assert!(
        ended[0]["eta_seconds"].as_f64() > Some(0.0) && ended[2]["eta_seconds"] == 0.0,
        "{log}"
    );
    let progress = of(&all, "progress");
    assert!(progress.iter().all(|p| p["unit"] == "windows" && p["total"].as_u64() > Some(0)));
    assert!(progress.iter().any(|p| p["of"] == "c" && p["done"] == p["total"]), "{log}");
    let counts = |log: &str| {
        let end = events(log).pop().unwrap();
        ["exit_code", "done", "kept", "failed"].map(|c| end[c].as_u64().unwrap())
    };
    assert_eq!(counts(&log), [3, 2, 0, 1]);
    let (code, log) = study.mithras("detect", "out", &["--resume"], "");
    assert_eq!((code, counts(&log)), (3, [3, 2, 2, 1]));
    // A refusal is a line, too.
    let (code, log) = study.mithras("detect", "out", &[], "");
    let all = events(&log);
    let printed = of(&all, "message");
    assert_eq!(
        (code, &printed[0]["kind"], &printed[1]["kind"]),
        (1, &"error".into(), &"hint".into())
    );
    assert!(printed[0]["text"].as_str().unwrap().contains("already holds results"), "{log}");
    assert!(!Path::new("y").exists());
}
