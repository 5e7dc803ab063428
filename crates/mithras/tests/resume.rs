//! What becomes of finished slides when a run is taken up again: where their files are gone, moved or touched, and
//! while they are done again.

use crate::common::{draw, results, setup};
use detect::{CancelToken, KeptCandidates, Workers};
use mithras::Detector;
use mithras::batch::state::{State, Status};
use mithras::batch::{
    self, Checked, DetectionOutcome, DetectionState, Ended, Existing, Input, Key, OutFolder, Task,
};
use mithras::input::InputDigest;
use mithras::progress::{Listener, Piece, Silent};
use mithras::report;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// A detector that dies after so many windows.
fn detector(windows: usize) -> Detector {
    setup(true, windows, Workers { readers: 1, unit_windows: 3, ..Workers::default() })
}

/// What a reader should know.
#[derive(Default)]
struct Notes(Vec<String>);

impl Listener for Notes {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, _: u64, _: u64) {}
    fn finish(&mut self) {}
    fn report(&mut self, _: &str) {}
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

/// A run on slides, with its notes and its table.
fn run(slides: &[PathBuf], out: &Path, detector: &mut Detector, existing: Existing) -> Run {
    let inputs: Vec<_> = slides.iter().map(|s| Input::new(s)).collect();
    let checked = batch::preflight(&inputs, detector, out, existing).unwrap();
    let mut notes = Notes::default();
    let all = std::slice::from_mut(detector);
    let out_folder = OutFolder { path: out, existing };
    let cancel = CancelToken::new();
    let outcomes = batch::detect(inputs, checked, all, out_folder, &mut notes, &cancel);
    report::write(out, &outcomes, detector, &["mithras".to_owned()]).unwrap();
    let table = fs::read_to_string(out.join("counts.csv")).unwrap();
    Run { outcomes, notes: notes.0.join("\n"), table }
}

struct Run {
    outcomes: Vec<DetectionOutcome>,
    notes: String,
    table: String,
}

impl Run {
    fn kept(&self) -> Vec<bool> {
        self.outcomes.iter().map(|o| o.kept).collect()
    }
}

/// Sets the time of change of a file to a day ago.
fn touch(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(86_400)).unwrap();
}

#[test]
fn finished_slides_stay_finished_where_their_files_cannot_be_reached() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    fs::create_dir(at("share")).unwrap();
    let slides = [at("share/a.tiff"), at("share/b.tiff")];
    slides.iter().zip([5, 6]).for_each(|(s, seed)| drop(draw(s, 1024, 1024, seed, 3)));
    let out = at("out");
    let first = run(&slides, &out, &mut detector(usize::MAX), Existing::Refuse);
    let before = results(&out.join("a"));
    fs::rename(at("share"), at("unmounted")).unwrap();
    let second = run(&slides, &out, &mut detector(0), Existing::Resume);
    assert_eq!(second.kept(), [true, true], "{:?}", second.outcomes);
    assert_eq!(second.table, first.table);
    assert!(
        second.notes.contains("a: kept, but its slide could not be checked"),
        "{}",
        second.notes
    );
    let state = |name: &str| DetectionState::load(&out.join(name)).unwrap();
    assert!(state("a").is_done() && before == results(&out.join("a")));
    // One that was not done fails.
    fs::remove_dir_all(out.join("b")).unwrap();
    let third = run(&slides, &out, &mut detector(0), Existing::Resume);
    assert_eq!(third.kept(), [true, false]);
    assert_eq!(state("b").status, Status::Failed);
    // Overwriting was asked for.
    run(&slides[..1], &out, &mut detector(0), Existing::Overwrite);
    assert_eq!(state("a").status, Status::Failed);
}

#[test]
fn slides_that_were_moved_or_touched_are_kept_with_their_present_place() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    fs::create_dir(at("old")).unwrap();
    let slide = at("old/a.tiff");
    draw(&slide, 1024, 1024, 5, 3);
    let out = at("out");
    run(std::slice::from_ref(&slide), &out, &mut detector(usize::MAX), Existing::Refuse);
    touch(&slide);
    // What a killed process leaves.
    fs::write(out.join("a/checkpoint.state"), "").unwrap();
    let touched = run(&[slide], &out, &mut detector(0), Existing::Resume);
    assert_eq!(touched.kept(), [true]);
    assert!(touched.notes.contains("time of change"), "{}", touched.notes);
    assert!(!out.join("a/checkpoint.state").exists());
    fs::rename(at("old"), at("new")).unwrap();
    let slide = at("new/a.tiff");
    let moved = run(std::slice::from_ref(&slide), &out, &mut detector(0), Existing::Resume);
    assert_eq!((moved.kept(), &*moved.notes), (vec![true], ""));
    let stored = DetectionState::load(&out.join("a")).unwrap();
    assert_eq!(stored.input, InputDigest::from_file(&slide).unwrap());
    // The same bytes are proof enough only where all of them were looked at.
    let small = stored.input;
    let large = InputDigest { size: 3 << 20, ..small.clone() };
    let later = |d: &InputDigest| InputDigest { modified: d.modified + 1, ..d.clone() };
    assert!(small.same(&later(&small)) && !large.same(&later(&large)));
    let pieces = InputDigest { pieces_sha256: Some("00".into()), ..large.clone() };
    assert!(pieces.same(&later(&pieces)) && !pieces.same(&later(&large)));
}

#[test]
fn a_slide_that_was_touched_before_it_was_done_is_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("a.tiff");
    draw(&slide, 1500, 1300, 5, 4);
    let resumed = |touched: bool| {
        let out = dir.path().join(format!("out-{touched}"));
        run(std::slice::from_ref(&slide), &out, &mut detector(4), Existing::Refuse);
        if touched {
            touch(&slide);
        }
        let outcome =
            run(std::slice::from_ref(&slide), &out, &mut detector(usize::MAX), Existing::Resume);
        assert!(outcome.outcomes[0].is_done());
        outcome.outcomes[0].state.work.resumed_windows
    };
    assert!(resumed(false) > 0);
    assert_eq!(resumed(true), 0);
}

#[test]
fn kept_candidates_are_those_of_a_copy_too() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    fs::create_dir(at("copy")).unwrap();
    let slides = [at("a.tiff"), at("copy/b.tiff")];
    draw(&slides[0], 1024, 1024, 5, 3);
    fs::copy(&slides[0], &slides[1]).unwrap();
    touch(&slides[1]);
    let keeping = |windows| {
        let mut detector = detector(windows);
        detector.models.kept = Some(KeptCandidates { folder: at("kept"), identity: "dark".into() });
        detector
    };
    run(&slides[..1], &at("out"), &mut keeping(usize::MAX), Existing::Refuse);
    let copy = run(&slides[1..], &at("out"), &mut keeping(0), Existing::Refuse);
    assert!(copy.outcomes[0].is_done(), "{:?}", copy.outcomes[0].state.reason);
}

/// A step, and the state of the slide's folder.
type Step = (&'static str, Option<Status>);

/// Work that notes its steps.
#[derive(Clone, Default)]
struct Watched {
    steps: Arc<Mutex<Vec<Step>>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Nothing {}

#[derive(Debug, thiserror::Error)]
#[error("it cannot")]
struct Cannot;

impl Watched {
    fn step(&self, name: &'static str, folder: &Path) {
        let status = State::<Nothing>::load(folder).map(|s| s.status);
        self.steps.lock().unwrap().push((name, status));
    }

    fn go(&self, slide: &Path, out: &Path, existing: Existing) -> Ended<Self> {
        self.steps.lock().unwrap().clear();
        let slides = vec![Checked { input: Input::new(slide), check: Ok(()) }];
        batch::run(slides, &mut [self.clone()], out, existing, &mut Silent).remove(0)
    }
}

impl Task for Watched {
    type Work = Nothing;
    type Error = Cannot;

    fn key(&self, _: &Input) -> Key {
        Key { digest: "one".into(), ..Key::default() }
    }
    fn keeps(&self, _: &Input, _: &Path, _: &State<Nothing>) -> bool {
        true
    }
    fn work(
        &mut self,
        _: &Input,
        folder: &Path,
        _: &mut State<Nothing>,
        _: &mut Piece<'_>,
    ) -> Result<Status, Cannot> {
        self.step("work", folder);
        Ok(Status::Finished)
    }
    fn clear(&self, folder: &Path) -> Result<(), (PathBuf, std::io::Error)> {
        self.step("clear", folder);
        let path = folder.join("state.json");
        fs::remove_file(&path).map_err(|e| (path, e))
    }
    fn unit(&self) -> &'static str {
        "steps"
    }
    fn line(&self, _: &str, _: &State<Nothing>) -> String {
        String::new()
    }
}

#[test]
fn no_slide_counts_as_finished_while_its_files_are_removed_and_written() {
    let dir = tempfile::tempdir().unwrap();
    let (slide, out) = (dir.path().join("a.svs"), dir.path().join("out"));
    fs::write(&slide, "a slide").unwrap();
    let task = Watched::default();
    assert!(task.go(&slide, &out, Existing::Refuse).is_done());
    assert!(task.go(&slide, &out, Existing::Overwrite).is_done());
    let running = Some(Status::Running);
    assert_eq!(*task.steps.lock().unwrap(), [("clear", running), ("work", running)]);
}

#[test]
fn another_file_of_a_series_that_changed_makes_another_slide() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = testkit::workspace().join("crates/slide/tests/golden/dicom/series");
    for file in ["a.dcm", "b.dcm", "c.dcm"] {
        fs::copy(drawn.join(file), dir.path().join(file)).unwrap();
    }
    let (slide, out) = (dir.path().join("b.dcm"), dir.path().join("out"));
    let before = InputDigest::from_file(&slide).unwrap();
    let task = Watched::default();
    assert!(!task.go(&slide, &out, Existing::Refuse).kept);
    assert!(task.go(&slide, &out, Existing::Resume).kept);
    let other = dir.path().join("c.dcm");
    let mut bytes = fs::read(&other).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&other, bytes).unwrap();
    let now = InputDigest::from_file(&slide).unwrap();
    assert!(now.same_content(&before) && !now.same_slide(&before) && !now.same(&before));
    assert_ne!(now.identity(), before.identity());
    assert!(!task.go(&slide, &out, Existing::Resume).kept);
    // Runs of earlier versions did not look at them.
    let earlier = InputDigest { series_sha256: None, ..before };
    assert!(now.same(&earlier));
    fs::remove_file(other).unwrap();
    assert!(!InputDigest::from_file(&slide).unwrap().same(&now));
}

/// Names that differ in case alone share a folder only where the file system makes them one.
#[test]
fn names_that_differ_in_case_alone_have_folders_of_their_own_here() {
    let dir = tempfile::tempdir().unwrap();
    let slides = ["case.tiff", "CASE.tiff"].map(|n| dir.path().join(n));
    slides.iter().zip([5, 6]).for_each(|(s, seed)| drop(draw(s, 700, 600, seed, 2)));
    let inputs = slides.map(|s| Input::new(&s));
    let out = dir.path().join("out");
    let checked = batch::preflight(&inputs, &detector(0), &out, Existing::Refuse);
    let folds = dir.path().join("OUT").exists();
    assert_eq!(checked.is_err(), folds, "{checked:?}");
}
