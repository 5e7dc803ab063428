//! Many slides: lists, shards, several processes on one folder, gathering, ending early.

use crate::common::{Dark, draw, results, setup};
use detect::{CancelToken, KeptCandidates, Workers};
use mithras::Detector;
use mithras::batch::state::Status;
use mithras::batch::{self, DetectionOutcome, DetectionState, Existing, Input, OutFolder};
use mithras::batch::{Inputs, Shard, find, read_list};
use mithras::demo::{Layout, Spec};
use mithras::progress::{Listener, Silent};
use mithras::report::{self, ReportError, RunFile};
use mitosis::{Mpp, Rect};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

const SLIDES: u64 = 5;

/// Five drawn slides and one file that is not a slide, with their list.
fn study(dir: &Path) -> PathBuf {
    let mut rows = String::from("slide,mpp,patient,cohort,age at diagnosis\n");
    for k in 0..SLIDES {
        draw(&dir.join(format!("s{k}.tiff")), 700, 600, k + 1, 2);
        rows += &format!("s{k}.tiff,,P{},A,{}\n", k / 2, 50 + k);
    }
    fs::write(dir.join("bad.svs"), b"no slide").unwrap();
    rows += "bad.svs,0.25,P9,\"B, or C\",\n";
    let list = dir.join("slides.csv");
    fs::write(&list, rows).unwrap();
    list
}

fn detector() -> Detector {
    setup(true, usize::MAX, Workers { readers: 1, ..Workers::default() })
}

fn inputs(list: &Path) -> Vec<Input> {
    read_list(list, None, &report::written_columns()).unwrap().slides
}

/// What one process does.
fn process(inputs: Vec<Input>, out: &Path, existing: Existing) -> (Vec<DetectionOutcome>, RunFile) {
    process_with(inputs, out, existing, &mut detector(), &mut Silent, &CancelToken::new())
}

fn process_with(
    inputs: Vec<Input>,
    out: &Path,
    existing: Existing,
    detector: &mut Detector,
    listener: &mut dyn Listener,
    cancel: &CancelToken,
) -> (Vec<DetectionOutcome>, RunFile) {
    let checked = batch::preflight(&inputs, detector, out, existing).unwrap();
    let command = ["mithras".to_owned(), "detect".to_owned()];
    report::begin(out, detector, &command).unwrap();
    let outcomes = batch::detect(
        inputs,
        checked,
        std::slice::from_mut(detector),
        OutFolder { path: out, existing },
        listener,
        cancel,
    );
    let run = report::write(out, &outcomes, detector, &command).unwrap();
    (outcomes, run)
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The three tables of a folder with every time taken out of what they are made of.
fn timeless(out: &Path) -> [String; 3] {
    timeless_of(&[out.to_owned()], out)
}

/// The same of several folders, gathered into one.
fn timeless_of(outs: &[PathBuf], out: &Path) -> [String; 3] {
    for entry in outs.iter().flat_map(|out| fs::read_dir(out).unwrap()) {
        let folder = entry.unwrap().path();
        if let Some(mut state) = DetectionState::load(&folder) {
            (state.seconds, state.work.stages, state.input.modified) = (0.0, Vec::new(), 0);
            state.save(&folder).unwrap();
        }
    }
    report::gather(outs, Some(out)).unwrap();
    let run = text(out.join("run.json"));
    // Where the slides are is not what they are.
    let moves = |l: &str| l.contains("finished_unix") || l.contains("\"folder\": \"../");
    let run = run.lines().filter(|l| !moves(l)).collect::<Vec<_>>().join("\n");
    [text(out.join("counts.csv")), run, text(out.join("summary.html"))]
}

#[test]
fn shards_in_any_folders_come_to_the_tables_of_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let list = study(dir.path());
    let at = |n: &str| dir.path().join(n);
    let (outcomes, run) = process(inputs(&list), &at("one"), Existing::Refuse);
    assert_eq!((outcomes.len(), run.done, run.failed), (6, 5, 1));
    let one = text(at("one").join("counts.csv"));

    // The rows the other way round: the same shards.
    let rows = text(list.clone());
    let (header, body) = rows.split_once('\n').unwrap();
    let turned: Vec<&str> = body.lines().rev().collect();
    let other = dir.path().join("turned.csv");
    fs::write(&other, format!("{header}\n{}\n", turned.join("\n"))).unwrap();
    let mut sizes = Vec::new();
    for (k, list) in [(3, &other), (1, &list), (2, &other)] {
        let mut part = Inputs { slides: inputs(list), ..Inputs::default() };
        let shard = format!("{k}/3").parse::<Shard>().unwrap();
        part.slides.retain(|s| shard.holds(&s.name));
        sizes.push(part.slides.len());
        process(part.slides.clone(), &at("shared"), Existing::Refuse);
        process(part.slides, &at(&format!("part-{k}")), Existing::Refuse);
    }
    assert_eq!(sizes.iter().sum::<usize>(), 6, "{sizes:?}");
    assert!(sizes.iter().all(|s| *s < 6), "the test divides nothing: {sizes:?}");

    // On one folder the last to end has written the table; of three it is gathered.
    assert_eq!(text(at("shared").join("counts.csv")), one);
    let parts: Vec<PathBuf> = (1..=3).map(|k| at(&format!("part-{k}"))).collect();
    let run = report::gather(&parts, Some(&at("all"))).unwrap();
    assert_eq!((run.done, run.failed), (5, 1));
    assert_eq!(text(at("all").join("counts.csv")), one);
    for k in 0..SLIDES {
        let name = format!("s{k}");
        assert!(results(&at("one").join(&name)) == results(&at("shared").join(&name)), "{name}");
    }
    let [a, b] = ["one", "shared"].map(|n| timeless(&at(n)));
    for (k, file) in ["counts.csv", "run.json", "summary.html"].iter().enumerate() {
        assert!(a[k] == b[k], "{file} differs");
    }
    assert_eq!(a[0], one, "counts.csv holds no time");

    // Of folders of their own too, but for the way from the page to a slide's folder.
    let mut of_parts = timeless_of(&parts, &at("all"));
    for k in 1..=3 {
        of_parts[2] = of_parts[2].replace(&format!("../part-{k}/"), "./");
    }
    for (k, file) in ["counts.csv", "run.json", "summary.html"].iter().enumerate() {
        assert!(a[k] == of_parts[k], "{file} of several folders differs");
    }

    let header = one.lines().next().unwrap();
    assert!(header.ends_with(",notes,reason,patient,cohort,age at diagnosis"), "{header}");
    let line = |name: &str| one.lines().find(|l| l.starts_with(&format!("{name},"))).unwrap();
    assert!(line("s3").starts_with("s3,finished,") && line("s3").ends_with(",P1,A,53"));
    assert!(line("bad").starts_with("bad,failed,") && line("bad").ends_with(",P9,\"B, or C\","));
}

#[test]
fn two_processes_on_one_folder_do_every_slide_once() {
    let dir = tempfile::tempdir().unwrap();
    let list = study(dir.path());
    let windows = |detector: &mut Detector| {
        let left = Arc::new(AtomicUsize::new(1_000_000));
        detector.models.segmenter = Box::new(Dark { left: Arc::clone(&left) });
        move || 1_000_000 - left.load(Ordering::SeqCst)
    };
    let one = dir.path().join("one");
    let mut alone = detector();
    let done_alone = windows(&mut alone);
    let cancel = CancelToken::new();
    process_with(inputs(&list), &one, Existing::Refuse, &mut alone, &mut Silent, &cancel);
    assert!(done_alone() >= 5, "{}", done_alone());

    let out = dir.path().join("raced");
    let together = Barrier::new(2);
    let race = || {
        let mut detector = detector();
        let done = windows(&mut detector);
        let inputs = inputs(&list);
        let checked = batch::preflight(&inputs, &detector, &out, Existing::Refuse).unwrap();
        together.wait();
        let cancel = CancelToken::new();
        let outcomes = batch::detect(
            inputs,
            checked,
            std::slice::from_mut(&mut detector),
            OutFolder { path: &out, existing: Existing::Refuse },
            &mut Silent,
            &cancel,
        );
        report::write(&out, &outcomes, &detector, &["mithras".into(), "detect".into()]).unwrap();
        (outcomes, done())
    };
    let [(a, windows_a), (b, windows_b)] = std::thread::scope(|scope| {
        let both = [scope.spawn(race), scope.spawn(race)];
        both.map(|t| t.join().unwrap())
    });
    assert_eq!(windows_a + windows_b, done_alone(), "a slide was done twice");
    for (x, y) in a.iter().zip(&b) {
        let name = &x.input.name;
        let own = |o: &DetectionOutcome| o.is_done() && !o.kept;
        if name == "bad" {
            assert!([x, y].iter().any(|o| o.state.status == Status::Failed && !o.is_elsewhere()));
            continue;
        }
        assert!(own(x) != own(y), "{name} is one's and not the other's");
        for o in [x, y] {
            assert!(own(o) || o.kept || o.is_elsewhere(), "{name}: {:?}", o.state.reason);
        }
        assert!(results(&one.join(name)) == results(&out.join(name)), "{name}");
    }
    assert_eq!(text(out.join("counts.csv")), text(one.join("counts.csv")));
}

/// What `detect --resume` does.
fn whole_run(slides: Vec<Input>, out: &Path, cancel: &CancelToken) -> RunFile {
    let mut detector = detector();
    let plan = mithras::run::RunPlan {
        slides,
        detectors: std::slice::from_mut(&mut detector),
        out: OutFolder { path: out, existing: Existing::Resume },
        command: &["mithras".to_owned()],
    };
    mithras::run::run(plan, &mut Silent, cancel).unwrap().file
}

#[test]
fn slides_that_were_not_begun_are_missing_whatever_names_them() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    fs::create_dir(at("slides")).unwrap();
    let list = study(&at("slides"));
    let plain = at("slides/plain.csv");
    let rows = text(list.clone());
    let names: Vec<&str> = rows.lines().map(|row| row.split(',').next().unwrap()).collect();
    fs::write(&plain, names.join("\n")).unwrap();
    let missing = |run: &RunFile| -> Vec<String> {
        run.without_result.iter().map(|s| s.name.clone()).collect()
    };
    let [go, ended] = [(); 2].map(|()| CancelToken::new());
    ended.cancel();
    let of_folder = find(&[at("slides")], None, &BTreeMap::new()).unwrap().slides;
    for (out, slides) in [("a", of_folder), ("b", inputs(&plain))] {
        let out = at(out);
        let (own, others): (Vec<_>, Vec<_>) = slides.into_iter().partition(|s| s.name == "s0");
        // As the first of two parts.
        let run = whole_run(own, &out, &go);
        assert_eq!(missing(&run), ["bad", "s1", "s2", "s3", "s4"]);
        assert!(run.to_string().contains("not begun here: 5 slides\n"), "{run}");
        // A table that comes now is about them, too.
        let notes = report::assign(std::slice::from_ref(&out), &list).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        let run = report::gather(std::slice::from_ref(&out), None).unwrap();
        let case = |c: &report::CaseLine| (c.slides.join(" "), c.without_result.join(" "));
        let cases = [("s0", "s1"), ("", "s2 s3"), ("", "s4"), ("", "bad")];
        let cases = cases.map(|(done, open)| (done.to_owned(), open.to_owned()));
        assert_eq!(run.cases.iter().map(case).collect::<Vec<_>>(), cases);
        // A damaged record stops the tables until the same slides are run again.
        let records = fs::read_dir(out.join(".runs")).unwrap().map(|f| f.unwrap().path());
        let is_list = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().starts_with("list-");
        records.filter(is_list).for_each(|list| fs::write(list, "{").unwrap());
        let refused = report::gather(std::slice::from_ref(&out), None).unwrap_err();
        assert!(matches!(refused, ReportError::List(_)), "{refused}");
        let advice = "run detection on the same slides again and resume";
        assert!(refused.to_string().contains(advice), "{refused}");
        let run = whole_run(others, &out, &go);
        assert_eq!((missing(&run), run.done, run.failed), (Vec::new(), 5, 1));
        // Another slide later, by itself.
        draw(&at("late.tiff"), 700, 600, 9, 2);
        let late = || vec![Input::new(&at("late.tiff"))];
        assert_eq!(missing(&whole_run(late(), &out, &ended)), ["late"]);
        let gather = || report::gather(std::slice::from_ref(&out), None).unwrap();
        assert_eq!(missing(&gather()), ["late"]);
        let run = whole_run(late(), &out, &go);
        assert_eq!((missing(&run), run.done), (Vec::new(), 6));
        // What somebody takes away afterwards is not missing.
        fs::remove_dir_all(out.join("late")).unwrap();
        assert_eq!((missing(&gather()), gather().done), (Vec::new(), 5));
    }
}

#[test]
fn a_case_of_which_a_process_does_a_part_is_not_whole_until_all_its_slides_are_done() {
    let dir = tempfile::tempdir().unwrap();
    let list = study(dir.path());
    let out = dir.path().join("out");
    let go = |own: &[&str]| {
        let mut slides = inputs(&list);
        slides.retain(|s| own.contains(&&*s.name));
        whole_run(slides, &out, &CancelToken::new());
        let cases = text(out.join("cases.csv"));
        cases.lines().find(|l| l.starts_with("P0,")).unwrap_or(&cases).to_owned()
    };
    assert!(go(&["s0"]).starts_with("P0,1,1,"), "the list names two slides of it");
    assert!(go(&["s1"]).starts_with("P0,2,0,"));
    let records = fs::read_dir(out.join(".runs")).unwrap().map(|e| e.unwrap().file_name());
    let lists = records.filter(|n| n.to_string_lossy().starts_with("list-")).count();
    assert_eq!(lists, 1, "one list, whichever process writes it down");

    // No column of a list is called as one of the tables, whose own it would double.
    for table in ["counts.csv", "cases.csv"] {
        let header = text(out.join(table)).lines().next().unwrap().to_owned();
        for name in header.split(',').filter(|n| !["case", "slide"].contains(n)) {
            let of_list = ["patient", "cohort", "age at diagnosis"].contains(&name);
            let other = dir.path().join("other.csv");
            fs::write(&other, format!("slide,{name}\ns0.tiff,1\n")).unwrap();
            let read = read_list(&other, None, &report::written_columns());
            assert_eq!(read.is_ok(), of_list, "{name} of {table}");
        }
    }
    for name in ["reviewed_by", "placed_by", "regions", "atypical", "placed_slide"] {
        let other = dir.path().join("other.csv");
        fs::write(&other, format!("slide,{name}\ns0.tiff,1\n")).unwrap();
        assert!(read_list(&other, None, &report::written_columns()).is_err(), "{name}");
    }
}

#[test]
fn a_slide_done_meanwhile_with_another_configuration_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path());
    let out = dir.path().join("out");
    let inputs = || vec![Input::new(&dir.path().join("s0.tiff"))];
    let mut late = detector();
    late.config.thresholds.seg = mitosis::Score::new(0.9).unwrap();
    let checked = batch::preflight(&inputs(), &late, &out, Existing::Resume).unwrap();
    process(inputs(), &out, Existing::Refuse);
    let before = results(&out.join("s0"));
    let cancel = CancelToken::new();
    let outcome = batch::detect(
        inputs(),
        checked,
        std::slice::from_mut(&mut late),
        OutFolder { path: &out, existing: Existing::Resume },
        &mut Silent,
        &cancel,
    )
    .remove(0);
    let advice = "another configuration meanwhile; choose another folder for one of them";
    assert!(outcome.state.reason.unwrap().contains(advice));
    assert!(results(&out.join("s0")) == before);
    let other = dir.path().join("other");
    process_with(inputs(), &other, Existing::Refuse, &mut late, &mut Silent, &cancel);
    assert_eq!(DetectionState::load(&other.join("s0")).unwrap().status, Status::Finished);
    assert_eq!(DetectionState::load(&out.join("s0")).unwrap().status, Status::Finished);
}

#[test]
fn a_corrected_list_changes_the_cells_of_kept_slides() {
    let dir = tempfile::tempdir().unwrap();
    let list = study(dir.path());
    let out = dir.path().join("out");
    process(inputs(&list), &out, Existing::Refuse);
    fs::write(&list, text(list.clone()).replace(",A,53", ",Z,53")).unwrap();
    let (outcomes, _) = process(inputs(&list), &out, Existing::Resume);
    assert_eq!(outcomes.iter().filter(|o| o.kept).count(), 5);
    let csv = text(out.join("counts.csv"));
    assert!(csv.contains(",P1,Z,53\n") && !csv.contains(",A,53"), "{csv}");
    // Slides named without a list keep the cells that they have.
    let bare = (0..SLIDES).map(|k| Input::new(&dir.path().join(format!("s{k}.tiff")))).collect();
    process(bare, &out, Existing::Resume);
    assert_eq!(text(out.join("counts.csv")), csv);
    // A table that comes after the search gives cases, too; slides are found by the names of their files.
    let later = dir.path().join("later.csv");
    fs::write(
        &later,
        "slide,case,age\ns0,C1,50\nelsewhere/s1.tiff,C1,50\ns2.tiff,C2,61\ns9.tiff,C3,40\n",
    )
    .unwrap();
    let notes = report::assign(std::slice::from_ref(&out), &later).unwrap();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(
        notes[0].starts_with("3 slides of the run not in")
            && notes[1].starts_with("1 slide of the table")
            && notes[2].contains("'s3'")
            && notes[2].contains("'s9'"),
        "{notes:?}"
    );
    let run = report::gather(std::slice::from_ref(&out), None).unwrap();
    let cases: Vec<_> = run.cases.iter().map(|c| (c.case.as_str(), c.slides.len())).collect();
    // The others keep their patients.
    assert_eq!(cases, [("C1", 2), ("C2", 1), ("P1", 1), ("P2", 1), ("P9", 0)]);
    let table = text(out.join("cases.csv"));
    assert!(
        table.lines().next().unwrap().contains("hotspot_rule") && table.contains("\nC1,2,0,"),
        "{table}"
    );
    fs::write(&later, "slide,case\nother.tiff,C1\n").unwrap();
    let refused = report::assign(std::slice::from_ref(&out), &later).unwrap_err().to_string();
    assert!(refused.contains("later.csv: names no slide of"), "{refused}");
    assert_eq!(text(out.join("cases.csv")), table);
}

/// Wishes to end at the first window of the third slide.
struct Ends<'a>(&'a CancelToken, usize, Vec<String>);

impl Listener for Ends<'_> {
    fn begin(&mut self, _: &str, _: &'static str) {
        self.1 += 1;
    }
    fn update(&mut self, _: u64, _: u64) {
        if self.1 == 3 {
            self.0.cancel();
        }
    }
    fn finish(&mut self) {}
    fn report(&mut self, line: &str) {
        self.2.push(line.to_owned());
    }
    fn note(&mut self, _: &str) {}
}

#[test]
fn work_that_is_to_end_leaves_tables_of_what_is_done_and_continues() {
    let dir = tempfile::tempdir().unwrap();
    let list = study(dir.path());
    // Several windows, so that there is one to end at.
    draw(&dir.path().join("s2.tiff"), 2200, 900, 3, 2);
    let at = |n: &str| dir.path().join(n);
    process(inputs(&list), &at("one"), Existing::Refuse);

    let cancel = CancelToken::new();
    let mut listener = Ends(&cancel, 0, Vec::new());
    let mut first = detector();
    first.workers.segment_batch = 1;
    let out = at("ended");
    let (outcomes, run) =
        process_with(inputs(&list), &out, Existing::Refuse, &mut first, &mut listener, &cancel);
    let printed = listener.2;
    assert_eq!(outcomes.iter().filter(|o| o.is_done()).count(), 2, "{printed:?}");
    assert_eq!(outcomes.iter().filter(|o| o.is_stopped()).count(), 4, "{printed:?}");
    assert!(
        printed[0].starts_with("s0: ") && printed[0].contains("; 1 of 6 slides, about "),
        "{printed:?}"
    );
    assert_eq!(DetectionState::load(&out.join("s2")).unwrap().status, Status::Running);
    assert!(!out.join("s3").exists(), "what was not begun has no folder");
    assert_eq!((run.done, run.failed, &run.unfinished[..]), (2, 0, &["s2".to_owned()][..]));
    assert_eq!(text(out.join("counts.csv")).lines().count(), 3);
    let again = report::gather(std::slice::from_ref(&out), None).unwrap();
    assert_eq!((again.done, &again.unfinished), (2, &run.unfinished));
    check_cases(&out);

    process(inputs(&list), &out, Existing::Resume);
    assert_eq!(text(out.join("counts.csv")), text(at("one").join("counts.csv")));
    assert!(results(&out.join("s2")) == results(&at("one").join("s2")));
}

/// Of a run that ended in `s2`, with its list: what has no result is not counted in its case, at another operating
/// point, too.
fn check_cases(out: &Path) {
    let slide =
        |name: &str, case: &str| format!(r#"{{"name":"{name}","columns":[["patient","{case}"]]}}"#);
    let slides = [slide("s1", "P0"), slide("s3", "P1"), slide("s4", "P2")].join(",");
    let list = format!(r#"{{"schema":"mithras.list/1","slides":[{slides}]}}"#);
    fs::write(out.join(".runs/list-0123456789abcdef.json"), list).unwrap();
    let cases = |run: &RunFile| -> Vec<(String, usize, String)> {
        let case =
            |c: &report::CaseLine| (c.case.clone(), c.slides.len(), c.without_result.join(" "));
        run.cases.iter().map(case).collect()
    };
    let expected = [("P0", 2, ""), ("P1", 0, "s2 s3"), ("P2", 0, "s4")]
        .map(|(case, n, open)| (case.to_owned(), n, open.to_owned()));
    let run = report::gather(&[out.to_owned()], None).unwrap();
    assert_eq!((cases(&run), &run.unfinished[..]), (expected.to_vec(), &["s2".to_owned()][..]));
    let printed = run.to_string();
    assert!(printed.contains("case P1: not counted, 2 slides without a result"), "{printed}");
    let into = out.with_file_name("moved");
    let score = |v| mitosis::Score::new(v).unwrap();
    let point = (score(0.9), score(0.2), "by hand".to_owned());
    let point = mitosis::OperatingPoint { seg: point.0, cls: point.1, provenance: point.2 };
    let moved = report::at_point(&report::AtPoint {
        run: out,
        into: &into,
        thresholds: &mithras::Thresholds::Given(point),
        package: None,
        slides: None,
        command: &["mithras".to_owned()],
    });
    let moved = moved.unwrap();
    assert_eq!((cases(&moved), &moved.unfinished), (expected.to_vec(), &run.unfinished));
    // Without what it names, case P2 would not be there, and P0 would look whole.
    let record = out.join(".runs/list-0123456789abcdef.json");
    let sound = fs::read(&record).unwrap();
    for damaged in ["{\"schema\": \"mithras.list/1\", \"sli", "{\"schema\": \"mithras.list/2\"}"] {
        fs::write(&record, damaged).unwrap();
        let refused = report::gather(&[out.to_owned()], None).unwrap_err();
        assert!(matches!(refused, ReportError::List(_)), "{refused}");
        let words = refused.to_string();
        assert!(words.contains("list-0123456789abcdef.json") && words.contains("look whole"));
    }
    // What the error asks for: the file goes, and the run is counted without it.
    fs::remove_file(&record).unwrap();
    report::gather(&[out.to_owned()], None).unwrap();
    fs::write(&record, sound).unwrap();
}

#[test]
fn what_does_not_belong_together_is_not_gathered() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path());
    let at = |n: &str| dir.path().join(n);
    let slide = |n: &str| vec![Input::new(&at(n))];
    process(slide("s0.tiff"), &at("a"), Existing::Refuse);
    let mut other = detector();
    other.config.thresholds.seg = mitosis::Score::new(0.9).unwrap();
    let cancel = CancelToken::new();
    process_with(slide("s1.tiff"), &at("b"), Existing::Refuse, &mut other, &mut Silent, &cancel);
    let gather = |outs: &[&str]| {
        let outs: Vec<_> = outs.iter().map(|n| at(n)).collect();
        report::gather(&outs, Some(&at("all")))
    };
    let refused = gather(&["a", "b"]).unwrap_err();
    assert!(matches!(refused, ReportError::Config { .. }));
    let printed = refused.to_string();
    assert!(printed.contains("thresholds.seg was `0.35` and is `0.9`"), "{printed}");
    // A run into the folder of another is refused before any work.
    for existing in [Existing::Refuse, Existing::Resume, Existing::Overwrite] {
        let refused = batch::preflight(&slide("s1.tiff"), &other, &at("a"), existing).unwrap_err();
        let printed = refused.to_string();
        assert!(printed.contains("slide `s0`, done with another configuration"), "{printed}");
        assert!(!at("a/s1").exists());
    }

    // Another file of the same name.
    process(slide("s2.tiff"), &at("c"), Existing::Refuse);
    fs::create_dir(at("elsewhere")).unwrap();
    draw(&at("elsewhere/s2.tiff"), 700, 600, 77, 2);
    process(slide("elsewhere/s2.tiff"), &at("d"), Existing::Refuse);
    assert!(matches!(gather(&["c", "d"]), Err(ReportError::Twice { name, .. }) if name == "s2"));
    // The same file twice counts once.
    process(slide("s2.tiff"), &at("e"), Existing::Refuse);
    assert_eq!(gather(&["c", "e"]).unwrap().slides.len(), 1);
    // Tables of others do not replace those of a run, unless it is among them.
    let before = text(at("a/run.json"));
    let taken = report::gather(&[at("c"), at("e")], Some(&at("a")));
    assert!(
        matches!(&taken, Err(ReportError::Taken { slide, .. }) if *slide == at("a/s0")),
        "{taken:?}"
    );
    let advice = "write into another folder, or gather this run with the others";
    assert!(taken.unwrap_err().to_string().contains(advice));
    assert_eq!(text(at("a/run.json")), before);
    let all = report::gather(&[at("c"), at("e")], Some(&at("further"))).unwrap();
    assert_eq!(all.slides.len(), 1);
    assert_eq!(report::gather(&[at("c"), at("e")], Some(&at("e"))).unwrap().slides.len(), 1);
    // The tables name the runs, which a folder of nothing but tables leaves to its reader.
    assert!(text(at("all/run.json")).contains("\"folder\": \"../c/s2\""));
    let printed = gather(&["all"]).unwrap_err().to_string();
    assert!(printed.contains("name one: ") && printed.contains("all/../c"), "{printed}");
    // One that failed in one folder and is done in the other is done.
    let mut state = DetectionState::load(&at("c/s2")).unwrap();
    state.status = Status::Failed;
    state.save(&at("c/s2")).unwrap();
    let run = gather(&["c", "e"]).unwrap();
    assert_eq!((run.done, run.failed), (1, 0));

    // One that is begun again just now is under way, whatever is missing of its results.
    process(slide("s4.tiff"), &at("f"), Existing::Refuse);
    process(slide("s3.tiff"), &at("f"), Existing::Refuse);
    let lock = base::file::Lock::take(&at("f/s4")).unwrap();
    fs::remove_file(at("f/s4/detections.csv")).unwrap();
    let run = gather(&["f"]).unwrap();
    assert_eq!((run.done, run.failed, &run.unfinished[..]), (1, 0, &["s4".to_owned()][..]));
    drop(lock);
    assert_eq!(gather(&["f"]).unwrap().failed, 1);

    assert!(matches!(gather(&["elsewhere"]), Err(ReportError::Nothing { .. })));
    assert!(matches!(gather(&["nowhere"]), Err(ReportError::Read { .. })));
    assert!(!at("nowhere").exists());
    // Without what the process wrote down, the tables of an earlier version serve; then nothing does.
    fs::remove_dir_all(at("e/.runs")).unwrap();
    assert_eq!(gather(&["e"]).unwrap().done, 1);
    fs::remove_file(at("e/run.json")).unwrap();
    assert!(matches!(gather(&["e"]), Err(ReportError::NoRecord { .. })));
    // Results that cannot be read back do not keep the others' from their table.
    process(slide("s3.tiff"), &at("e"), Existing::Refuse);
    fs::write(at("e/s2/counts.json"), "{").unwrap();
    let run = gather(&["e"]).unwrap();
    assert_eq!((run.done, run.failed), (1, 1));
    assert!(run.slides[0].reason.as_ref().unwrap().contains("not the file that was written"));
}

/// A slide's results under another name.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    let files = ["counts.json", "detections.csv"];
    for file in files {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
    let mut state = DetectionState::load(from).unwrap();
    let sealed = state.results.as_mut().unwrap();
    sealed.slide = to.file_name().unwrap().to_str().unwrap().into();
    sealed.files.retain(|name, _| files.contains(&name.as_str()));
    fs::write(to.join("state.json"), base::json::pretty(&state)).unwrap();
}

#[test]
fn a_page_of_hundreds_holds_the_table_alone() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path());
    let out = dir.path().join("out");
    process(vec![Input::new(&dir.path().join("s0.tiff"))], &out, Existing::Refuse);
    assert!(text(out.join("summary.html")).contains("<img"));
    for k in 0..200 {
        copy(&out.join("s0"), &out.join(format!("copy-{k:03}")));
    }
    let run = report::gather(std::slice::from_ref(&out), None).unwrap();
    assert_eq!(run.done, 201);
    let page = text(out.join("summary.html"));
    assert!(!page.contains("<img") && page.contains("copy-199") && page.contains("mithras view"));
}

/// A page of thousands has a row per slide; its pictures stay in their folders.
#[test]
fn the_summary_of_five_thousand_slides_is_small() {
    let dir = tempfile::tempdir().unwrap();
    draw(&dir.path().join("s.tiff"), 700, 600, 1, 2);
    let out = dir.path().join("out");
    let slide = Input::new(&dir.path().join("s.tiff"));
    let (_, run) = process(vec![slide], &out, Existing::Refuse);
    assert_eq!(run.done, 1);
    let one = text(out.join("summary.html"));
    assert!(one.contains("data:image/jpeg;base64") && !one.contains("<script"));
    for k in 1..5000 {
        copy(&out.join("s"), &out.join(format!("a slide with a long name #{k}")));
    }
    let run = report::gather(std::slice::from_ref(&out), None).unwrap();
    assert_eq!(run.done, 5000);
    let page = text(out.join("summary.html"));
    assert!(page.len() < 5 << 20, "{} bytes", page.len());
    assert_eq!(page.matches("data-at=\"").count(), 5000);
    assert!(page.contains("data-at=\"./a%20slide%20with%20a%20long%20name%20%23777/\""));
    assert!(page.contains("<script") && !page.contains("data:image"));
}

/// An image of 1000 px width without compression: drawn tissue between margins of more than 1 MiB.
fn between_margins(path: &Path, seed: u64) {
    let (margin, height) = (360, 600);
    let layout = Layout::new(Spec::new(1000, height, seed, 3).unwrap()).unwrap();
    let tile = mithras::demo::draw(&layout, Rect::new(0, 0, 1000, height as usize));
    let rows = height + 2 * margin;
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    // Tag, type, number of values and value; the three values of the depth are behind the directory.
    let strip = 256;
    let entries = [
        [256, 3, 1, 1000],
        [257, 3, 1, rows],
        [258, 3, 3, 200],
        [259, 3, 1, 1],
        [262, 3, 1, 2],
        [273, 4, 1, strip],
        [277, 3, 1, 3],
        [278, 3, 1, rows],
        [279, 4, 1, rows * 3000],
    ];
    file.extend((entries.len() as u16).to_le_bytes());
    for [tag, kind, count, value] in entries {
        file.extend([tag as u16, kind as u16].iter().flat_map(|v| v.to_le_bytes()));
        file.extend([count, value].iter().flat_map(|v| v.to_le_bytes()));
    }
    file.resize(200, 0);
    file.extend([8, 0, 8, 0, 8, 0]);
    file.resize(strip as usize, 0);
    let glass = vec![255; margin as usize * 3000];
    fs::write(path, [file, glass.clone(), tile.data, glass].concat()).unwrap();
}

#[test]
fn slides_that_differ_between_their_ends_are_different_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    fs::create_dir(at("other")).unwrap();
    between_margins(&at("a.tif"), 5);
    between_margins(&at("b.tif"), 6);
    fs::copy(at("a.tif"), at("other/b.tif")).unwrap();
    let slide = |n: &str| Input { mpp: Some(Mpp::PAPER), ..Input::new(&at(n)) };
    let digest = |n: &str| mithras::input::InputDigest::from_file(&at(n)).unwrap();
    assert_eq!(digest("a.tif").sha256, digest("b.tif").sha256, "the ends are the same");
    let rows = |out: &str, n: &str| text(at(out).join(n).join("detections.csv"));

    // Candidates that were kept of the one are not those of the other.
    process(vec![slide("b.tif")], &at("alone"), Existing::Refuse);
    let mut keeping = detector();
    let folder = at("kept");
    keeping.models.kept = Some(KeptCandidates { folder, identity: "dark".into() });
    let both = vec![slide("a.tif"), slide("b.tif")];
    let cancel = CancelToken::new();
    let (_, run) =
        process_with(both, &at("both"), Existing::Refuse, &mut keeping, &mut Silent, &cancel);
    assert!(rows("alone", "b").lines().count() > 1, "candidates are found");
    assert_eq!(rows("both", "b"), rows("alone", "b"));
    assert_ne!(rows("both", "a"), rows("both", "b"));
    assert!(run.same_files.is_empty(), "{:?}", run.same_files);

    // A slide under the name of the other one.
    process(vec![slide("other/b.tif")], &at("renamed"), Existing::Refuse);
    let gathered = report::gather(&[at("alone"), at("renamed")], Some(&at("all")));
    assert!(matches!(gathered, Err(ReportError::Twice { name, .. }) if name == "b"));
    let point = mithras::Thresholds::Given(mitosis::OperatingPoint {
        cls: mitosis::Score::new(0.0).unwrap(),
        ..detector().config.thresholds
    });
    let into = at("point");
    let of = |slides: &str| {
        let _ = fs::remove_dir_all(&into);
        report::at_point(&report::AtPoint {
            run: &at("alone"),
            into: &into,
            thresholds: &point,
            package: None,
            slides: Some(&at(slides)),
            command: &[],
        })
    };
    let refused = of("other").unwrap_err();
    assert!(matches!(refused, report::PointError::Slide { .. }), "{refused}");
    assert!(of(".").is_ok());

    // States of earlier versions have no such digest, and are compared without.
    for folder in ["alone/b", "renamed/b"] {
        let mut state = DetectionState::load(&at(folder)).unwrap();
        assert!(state.input.pieces_sha256.take().is_some());
        state.save(&at(folder)).unwrap();
    }
    assert!(report::gather(&[at("alone"), at("renamed")], Some(&at("all"))).is_ok());
}

#[test]
fn one_slide_counted_in_two_ways_is_not_gathered() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path());
    let at = |n: &str| dir.path().join(n);
    let slide = |mpp| vec![Input { mpp, ..Input::new(&at("s0.tiff")) }];
    process(slide(None), &at("a"), Existing::Refuse);
    process(slide(Some(Mpp::PAPER)), &at("b"), Existing::Refuse);
    let refused = |outs: [&str; 2]| {
        let outs = outs.map(at);
        let refused = report::gather(&outs, Some(&at("all"))).unwrap_err();
        assert!(matches!(refused, ReportError::Config { .. }), "{refused}");
        refused.to_string()
    };
    let printed = refused(["a", "b"]);
    assert!(printed.contains("given um/px was") && printed.contains("is `0.25`"), "{printed}");
    assert!(printed.contains("a/s0") && printed.contains("b/s0"), "{printed}");
    let printed = refused(["b", "a"]);
    assert!(printed.contains("given um/px was `0.25`"), "{printed}");
    for (name, value) in [("regions", "of a file"), ("thresholds.seg", "0.9")] {
        let mut state = DetectionState::load(&at("a/s0")).unwrap();
        state.settings.insert(name.into(), value.into());
        process(slide(None), &at(name), Existing::Refuse);
        state.save(&at(name).join("s0")).unwrap();
        let printed = refused(["a", name]);
        assert!(printed.contains(&format!("is `{value}`")), "{printed}");
        refused([name, "a"]);
    }
}

/// A card may change under its networks: other normalisation, other order of classes.
#[test]
fn results_of_another_card_are_refused_and_those_that_state_none_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path());
    let (out, slide) =
        (dir.path().join("run"), |k| vec![Input::new(&dir.path().join(format!("s{k}.tiff")))]);
    let by = |card: &str| {
        let mut detector = detector();
        detector.config.model.networks_sha256 = Some(card.into());
        detector
    };
    let done = |card: &str| {
        let (resume, cancel) = (Existing::Resume, CancelToken::new());
        process_with(slide(0), &out, resume, &mut by(card), &mut Silent, &cancel).0.remove(0).kept
    };
    assert!(!done("one") && done("one"));
    let start = |k| batch::preflight(&slide(k), &by("two"), &out, Existing::Resume);
    for k in [0, 1] {
        let refused = start(k).unwrap_err().to_string();
        assert!(refused.contains("model.networks_sha256 was `one` and is `two`"), "{refused}");
    }
    let mut state = DetectionState::load(&out.join("s0")).unwrap();
    state.settings.remove("model.networks_sha256");
    state.config = "of an earlier version".into();
    state.save(&out.join("s0")).unwrap();
    start(1).unwrap();
    assert!(done("two"));

    let tiny = testkit::workspace().join("crates/infer/tests/golden/tiny");
    let package = mithras::ModelPackage::open(&tiny).unwrap();
    for (stages, other) in [(mithras::Stages::One, false), (mithras::Stages::Two, true)] {
        let mut point = detector().config.thresholds;
        point.cls = [mitosis::Score::ZERO, point.cls][usize::from(other)];
        let point = mithras::Thresholds::Given(point);
        let builder = mithras::Builder::default().engine(mithras::EngineChoice::Rten);
        let opened = builder.stages(stages).thresholds(point).open(&package).unwrap();
        let mut model = opened.config.model;
        let mut card = package.card.clone();
        assert!(model.matches_card(&card));
        card.classifier.as_mut().unwrap().symmetries = 2;
        assert_eq!(model.matches_card(&card), !other, "the second stage is asked of two");
        card.segmenter.as_mut().unwrap().mean = [0.5; 3];
        assert!(!model.matches_card(&card));
        model.networks_sha256 = None;
        assert!(model.matches_card(&card), "entries of earlier versions state none");
    }
}
