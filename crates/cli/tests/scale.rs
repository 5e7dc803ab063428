//! Many slides on the command line: lists, shards, processes on one folder, gathering, Ctrl-C.

use crate::common;
#[cfg(unix)]
use crate::view::made::huge_tiff;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SLIDES: u64 = 6;

fn mithras(verb: &str) -> Command {
    let mut command = Command::new(crate::program());
    command.arg(verb).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process of `detect` on a list or a folder, with seeded weights of no meaning.
fn detect(list: &Path, out: &Path, more: &[&str]) -> Child {
    let model = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let mut command = mithras("detect");
    command.args((!list.is_dir()).then_some("--list")).arg(list).arg("--out").arg(out);
    command.arg("--model").arg(model);
    command.args(["--engine", "rten", "--threads", "1"]).args(more);
    command.spawn().unwrap()
}

fn ends(process: Child) -> (i32, String) {
    text_of(process.wait_with_output().unwrap())
}

fn text_of(output: Output) -> (i32, String) {
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

fn gather(outs: &[&Path], more: &[&str]) -> (i32, String) {
    text_of(mithras("gather").args(outs).args(more).output().unwrap())
}

fn study(dir: &Path) -> PathBuf {
    let mut rows = String::from("slide,patient,cohort\n");
    for k in 0..SLIDES {
        common::draw(&dir.join(format!("case-{k}.tiff")), 700, 600, k + 1, 2);
        rows += &format!("case-{k}.tiff,P{k},A\n");
    }
    let list = dir.join("slides.csv");
    fs::write(&list, rows).unwrap();
    list
}

fn table(out: &Path) -> String {
    fs::read_to_string(out.join("counts.csv")).unwrap()
}

#[test]
fn shards_and_races_of_processes_give_the_table_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let list = study(dir.path());
    let at = |n: &str| dir.path().join(n);
    let (code, words) = ends(detect(&list, &at("one"), &[]));
    assert_eq!(code, 0, "{words}");
    let one = table(&at("one"));
    assert_eq!(one.lines().count(), SLIDES as usize + 1, "{one}");
    assert!(one.lines().nth(1).unwrap().starts_with("case-0,finished,"), "{one}");
    assert!(one.lines().nth(1).unwrap().ends_with(",P0,A"), "{one}");

    // Three shards at once on one folder, three more into folders of their own.
    let shards = ["1/3", "2/3", "3/3"];
    let own = ["part-1", "part-2", "part-3"].map(at);
    let shared = shards.map(|k| detect(&list, &at("shared"), &["--shard", k]));
    for process in shared {
        let (code, words) = ends(process);
        assert_eq!(code, 0, "{words}");
    }
    let apart: Vec<Child> =
        shards.iter().zip(&own).map(|(k, out)| detect(&list, out, &["--shard", k])).collect();
    for process in apart {
        let (code, words) = ends(process);
        assert_eq!(code, 0, "{words}");
    }
    assert_eq!(table(&at("shared")), one, "the last to end has written everything");
    fs::remove_file(at("shared").join("counts.csv")).unwrap();
    assert_eq!(gather(&[&at("shared")], &[]).0, 0);
    assert_eq!(table(&at("shared")), one);
    let outs = [&*own[0], &*own[1], &*own[2]];
    let into = at("all");
    let (code, words) = gather(&outs, &["--into", into.to_str().unwrap(), "--json"]);
    assert_eq!((code, table(&into)), (0, one.clone()), "{words}");
    let run: serde_json::Value = serde_json::from_str(&words).unwrap();
    assert_eq!((run["done"].as_u64(), run["commands"].as_array().unwrap().len()), (Some(6), 3));

    // Two slides at once in one process.
    let (code, words) = ends(detect(&list, &at("workers"), &["--workers", "2"]));
    assert_eq!((code, table(&at("workers"))), (0, one.clone()), "{words}");

    // Two on the whole list at once.
    let raced = at("raced");
    let both = [(); 2].map(|()| detect(&list, &raced, &["--resume"]));
    for process in both {
        let (code, words) = ends(process);
        assert_eq!(code, 0, "{words}");
    }
    assert_eq!(table(&raced), one);
    for k in 0..SLIDES {
        let name = format!("case-{k}");
        let alone = common::results(&at("one").join(&name));
        assert!(common::results(&raced.join(&name)) == alone, "{name}");
        assert!(common::results(&at("shared").join(&name)) == alone, "{name}");
    }
}

#[test]
fn exit_codes_report_how_many_are_done() {
    let dir = tempfile::tempdir().unwrap();
    common::draw(&dir.path().join("good.tiff"), 700, 600, 1, 2);
    let list = dir.path().join("slides.csv");
    let run = |rows: &str, out: &str, more: &[&str]| {
        fs::write(&list, rows).unwrap();
        ends(detect(&list, &dir.path().join(out), more))
    };
    let some = "slide,patient\ngood.tiff,P1\nmissing.svs,P2\n";
    let (code, words) = run(some, "some", &[]);
    assert_eq!(code, 3, "{words}");
    let csv = table(&dir.path().join("some"));
    assert!(csv.lines().any(|l| l.starts_with("missing,failed,") && l.ends_with(",P2")), "{csv}");
    assert_eq!(gather(&[&dir.path().join("some")], &[]).0, 3);
    let (code, words) = run("slide\nmissing.svs\n", "none", &[]);
    assert_eq!(code, 1, "{words}");
    assert_eq!(gather(&[&dir.path().join("none")], &[]).0, 1);
    assert_eq!(gather(&[&dir.path().join("nowhere")], &[]).0, 1);
    let (code, words) = run("slide,figures\ngood.tiff,3\n", "refused", &[]);
    assert_eq!(code, 1);
    assert!(words.contains("slides.csv") && words.contains("figures"), "{words}");
    assert!(!dir.path().join("refused").exists());
    for (shard, code) in [("0/3", 2), ("4/3", 2), ("half", 2)] {
        let (was, words) = run(some, "refused", &["--shard", shard]);
        assert!(was == code && words.contains("K/N"), "{shard}: {words}");
    }
    // A shard without slides is not a failure.
    let empty = (1..=9).map(|k| run(some, "many", &["--shard", &format!("{k}/9"), "--resume"]));
    assert!(empty.filter(|(code, _)| *code == 0).count() >= 7);
}

/// Until a process works on that slide.
#[cfg(unix)]
fn await_slide(process: &mut Child, folder: &Path) {
    let started = Instant::now();
    while !folder.join("state.json").exists() {
        assert!(process.try_wait().unwrap().is_none(), "ended before {}", folder.display());
        assert!(started.elapsed() < Duration::from_secs(120), "nothing begins");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
fn signal(process: &Child, name: &str) {
    let kill = Command::new("kill").args(["-s", name, &process.id().to_string()]).status();
    assert!(kill.unwrap().success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_and_a_scheduler_s_wish_leave_tables_of_what_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let list = study(dir.path());
    let out = dir.path().join("out");
    // One that takes long, after the first.
    fs::write(dir.path().join("case-1.tiff"), huge_tiff()).unwrap();
    // As `nohup` has it, a terminal that closes ends nothing.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).unwrap_or("1").trim();
    let ignored = u64::from_str_radix(mask, 16).unwrap() & 1 == 1;
    for name in ["INT", "TERM", "HUP"].into_iter().filter(|n| *n != "HUP" || !ignored) {
        // As if the second process were the first to see it.
        let _ = fs::remove_dir_all(out.join("case-1"));
        let mut process = detect(&list, &out, &["--quiet", "--resume"]);
        await_slide(&mut process, &out.join("case-1"));
        signal(&process, name);
        let (code, words) = ends(process);
        assert_eq!(code, 3, "{name}: {words}");
        let csv = table(&out);
        assert!(csv.lines().count() == 2 && csv.contains("\ncase-0,finished,"), "{name}: {csv}");
        assert!(words.contains("under way or interrupted: 1 slide\n"), "{name}: {words}");
        assert!(words.contains("--resume, which keeps finished slides"), "{name}: {words}");
        let state = fs::read_to_string(out.join("case-1/state.json")).unwrap();
        assert!(state.contains("\"running\""), "{name}: {state}");
        assert_eq!(gather(&[&out], &[]).0, 3);
        assert_eq!(table(&out), csv);
    }
}

#[cfg(unix)]
#[test]
fn a_second_ctrl_c_ends_at_once_and_gathering_writes_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let list = study(dir.path());
    let out = dir.path().join("out");
    fs::write(dir.path().join("case-1.tiff"), huge_tiff()).unwrap();
    let mut process = detect(&list, &out, &["--quiet"]);
    await_slide(&mut process, &out.join("case-1"));
    // A process that holds the folder over the run keeps the tables from being written, so that the first wish
    // cannot come to its end.
    let held = base::file::Lock::take(&out).unwrap();
    signal(&process, "INT");
    std::thread::sleep(Duration::from_millis(500));
    assert!(process.try_wait().unwrap().is_none(), "the first ends cleanly, or not yet");
    let sent = Instant::now();
    signal(&process, "INT");
    let (code, words) = ends(process);
    assert!(code == 130 && sent.elapsed() < Duration::from_secs(5), "{code}: {words}");
    assert!(!out.join("counts.csv").exists());
    drop(held);
    assert_eq!(gather(&[&out], &[]).0, 3);
    assert!(table(&out).lines().count() == 2 && table(&out).contains("\ncase-0,finished,"));
    // Nothing is locked or lost: the rest is done from where it was.
    common::draw(&dir.path().join("case-1.tiff"), 700, 600, 2, 2);
    let (code, words) = ends(detect(&list, &out, &["--overwrite"]));
    assert_eq!((code, table(&out).lines().count()), (0, 1 + SLIDES as usize), "{words}");
}

#[cfg(unix)]
#[test]
fn a_run_that_ended_early_is_not_complete_whatever_named_its_slides() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    fs::create_dir(at("slides")).unwrap();
    let list = study(&at("slides"));
    let plain = at("slides/plain.csv");
    let rows = (0..SLIDES).map(|k| format!("case-{k}.tiff\n"));
    fs::write(&plain, format!("slide\n{}", rows.collect::<String>())).unwrap();
    let (out, pages) = (at("out"), at("pages"));
    let report = || text_of(mithras("report").arg(&out).arg("--out").arg(&pages).output().unwrap());
    assert_eq!(ends(detect(&list, &out, &[])).0, 0);
    assert_eq!(report().0, 0);
    // One that takes long, after the first.
    fs::write(at("slides/case-1.tiff"), huge_tiff()).unwrap();
    for (inputs, name) in
        [(at("slides"), "INT"), (at("slides"), "KILL"), (plain, "KILL"), (list.clone(), "KILL")]
    {
        fs::remove_dir_all(&out).unwrap();
        let mut process = detect(&inputs, &out, &["--quiet"]);
        await_slide(&mut process, &out.join("case-1"));
        signal(&process, name);
        let (code, words) = ends(process);
        if name == "INT" {
            assert!(code == 3 && words.contains("not begun here: 4 slides\n"), "{code}: {words}");
        }
        // A slide that was begun is not what makes the run incomplete.
        fs::remove_dir_all(out.join("case-1")).unwrap();
        let (code, words) = gather(&[&out], &[]);
        assert!(code == 3 && words.contains("not begun here: 5 slides\n"), "{code}: {words}");
        let (code, words) = gather(&[&out], &["--list", list.to_str().unwrap()]);
        let case = "case P5: not counted, 1 slide without a result\n";
        assert!(code == 3 && words.contains(case), "{code}: {words}");
        let (code, words) = report();
        assert!(code == 3 && !words.contains("is gone"), "{code}: {words}");
        assert!((0..SLIDES).all(|k| pages.join(format!("P{k}.pdf")).is_file()), "{words}");
    }
    let mut recount = mithras("recount");
    recount.arg(&out).args(["--operating-point", "0.9,0.2", "--into"]).arg(at("moved"));
    let (code, words) = text_of(recount.output().unwrap());
    assert!(code == 3 && words.contains("not begun here: 5 slides\n"), "{code}: {words}");
    assert_eq!(gather(&[&at("moved")], &[]).0, 3);
}
