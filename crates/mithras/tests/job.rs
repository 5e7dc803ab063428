//! Whole runs on drawn slides, with models that know no more than darkness.

use crate::common;
use crate::common::{draw, input, results, setup};
use detect::{CancelToken, Workers};
use evaluation::evaluate::{evaluate, read_truth};
use mithras::Detector;
use mithras::batch::state::Status;
use mithras::batch::{self, DetectionOutcome, DetectionState, Existing, OutFolder, StartError};
use mithras::progress::Silent;
use mithras::report;
use mitosis::Microns;
use mitosis::matching::Rule;
use std::path::Path;

fn run(
    slides: &[&Path],
    out: &Path,
    setup: &mut Detector,
    existing: Existing,
) -> Vec<DetectionOutcome> {
    let inputs: Vec<_> = slides.iter().map(|p| input(p)).collect();
    let checked = batch::preflight(&inputs, setup, out, existing).unwrap();
    batch::detect(
        inputs,
        checked,
        std::slice::from_mut(setup),
        OutFolder { path: out, existing },
        &mut Silent,
        &CancelToken::new(),
    )
}

fn workers(unit: usize) -> Workers {
    Workers { readers: 2, unit_windows: unit, ..Workers::default() }
}

#[test]
fn a_run_writes_everything_and_one_bad_slide_stops_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (good, bad, blank) =
        (dir.path().join("good.tiff"), dir.path().join("bad.svs"), dir.path().join("blank.png"));
    let layout = draw(&good, 1600, 1300, 3, 6);
    std::fs::write(&bad, b"II*\0 this is not a slide").unwrap();
    let white = image::RgbImage::from_pixel(900, 700, image::Rgb([243, 242, 244]));
    white.save(&blank).unwrap();
    let out = dir.path().join("out");

    let mut setup = setup(true, usize::MAX, workers(256));
    let mut inputs = vec![input(&good), input(&bad), input(&blank)];
    inputs[2].mpp = Some(mitosis::Mpp::PAPER);
    let checked = batch::preflight(&inputs, &setup, &out, Existing::Refuse).unwrap();
    assert_eq!(checked.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    let cancel = CancelToken::new();
    let outcomes = batch::detect(
        inputs,
        checked,
        std::slice::from_mut(&mut setup),
        OutFolder { path: &out, existing: Existing::Refuse },
        &mut Silent,
        &cancel,
    );
    let status: Vec<_> = outcomes.iter().map(|o| o.state.status).collect();
    assert_eq!(status, [Status::Finished, Status::Failed, Status::NoTissue]);

    let command = ["mithras", "detect"].map(String::from);
    let run = report::write(&out, &outcomes, &setup, &command).unwrap();
    assert_eq!((run.done, run.failed, run.without_tissue), (2, 1, 1));
    for export in mithras::export::EXPORTS {
        assert!(out.join("good").join(export.file).is_file(), "{}", export.file);
        assert!(out.join("blank").join(export.file).is_file(), "{}", export.file);
    }
    let html = std::fs::read_to_string(out.join("summary.html")).unwrap();
    assert!(html.contains("1 of 3 slides failed") && html.contains("1 of 3 slides without tissue"));
    assert!(!html.contains("http"), "the summary loads nothing");
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(json["schema"], "mithras.run/1");
    assert_eq!(json["slides"][0]["status"], "failed", "sorted by name");
    let counts = report::counts(&out.join("good")).unwrap();
    assert!(counts.figures > 0 && counts.analysed_mm2 > 0.02);
    assert_eq!(counts.resolution.x, 0.25);
    assert_eq!(report::counts(&out.join("blank")).unwrap().density_per_20_mm2, None);

    // Darkness finds figures and mimickers alike: the truth separates them.
    let truth = out.join("truth.csv");
    let rows: String = layout
        .truth()
        .iter()
        .map(|t| {
            format!(
                "good.tiff,{},{},{}\n",
                t.x_px,
                t.y_px,
                serde_json::json!(t.kind).as_str().unwrap()
            )
        })
        .collect();
    std::fs::write(&truth, format!("file,x,y,kind\n{rows}")).unwrap();
    let truth = read_truth(&truth, &evaluation::evaluate::TruthOptions::default()).unwrap();
    let result = evaluate(&out, &truth, Microns(7.5), &Rule::ALL).unwrap();
    assert_eq!((result.slides, result.truth), (1, 6));
    assert_eq!(result.without_truth, ["blank"]);
    let pooled = result.rules[1].pooled;
    assert!(pooled.recall.unwrap() >= 0.6, "{pooled:?}");
    assert_eq!(pooled.tally.tp + pooled.tally.fp, counts.figures);
    assert_eq!(pooled.tally.tp + pooled.tally.fn_, 6);
}

#[test]
fn a_killed_run_continues_to_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("s.tiff");
    draw(&slide, 1500, 1700, 5, 6);
    let (whole, cut) = (dir.path().join("whole"), dir.path().join("cut"));
    run(&[&slide], &whole, &mut setup(true, usize::MAX, workers(256)), Existing::Refuse);

    let killed = run(&[&slide], &cut, &mut setup(true, 9, workers(3)), Existing::Refuse);
    assert_eq!(killed[0].state.status, Status::Failed);
    assert!(killed[0].state.reason.as_ref().unwrap().contains("killed"));
    // While another process is at work on it, the slide is left alone, its state too.
    let held = base::file::Lock::take(&cut.join("s")).unwrap();
    let busy = run(&[&slide], &cut, &mut setup(true, 9, workers(3)), Existing::Resume);
    assert!(busy[0].state.reason.as_ref().unwrap().contains("another process"));
    let stored = DetectionState::load(&cut.join("s")).unwrap();
    assert!(stored.reason.unwrap().contains("killed"));
    drop(held);
    let on = run(&[&slide], &cut, &mut setup(true, usize::MAX, workers(3)), Existing::Resume);
    assert_eq!(on[0].state.status, Status::Finished);
    assert!(on[0].state.work.resumed_windows > 0, "nothing was taken over");
    let (a, b) = (results(&whole.join("s")), results(&cut.join("s")));
    assert_eq!(a.len(), b.len());
    for ((name, x), (_, y)) in a.iter().zip(&b) {
        assert!(x == y, "{} differs", name.display());
    }

    // Finished: kept, and not one window is computed again.
    let kept = run(&[&slide], &cut, &mut setup(true, 0, workers(3)), Existing::Resume);
    assert!(kept[0].kept && kept[0].is_done());
}

#[test]
fn resume_refuses_what_has_changed() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("s.tiff");
    draw(&slide, 1024, 1024, 5, 3);
    let out = dir.path().join("out");
    let go = |setup: &Detector, existing| batch::preflight(&[input(&slide)], setup, &out, existing);
    let mut first = setup(false, usize::MAX, workers(256));
    run(&[&slide], &out, &mut first, Existing::Refuse);
    assert!(matches!(go(&first, Existing::Refuse), Err(StartError::Exists { count: 1, .. })));
    assert!(go(&first, Existing::Resume).is_ok());
    let mut other = setup(false, usize::MAX, workers(256));
    other.config.thresholds.seg = mitosis::Score::new(0.9).unwrap();
    let refused = go(&other, Existing::Resume).unwrap_err();
    assert!(matches!(refused, StartError::Config { .. }));
    let text = refused.to_string();
    assert!(text.contains("thresholds.seg was `0.35`") && text.contains("is `0.9`"), "{text}");
    assert!(!text.contains("thresholds.cls"), "what is the same is not named: {text}");
    assert!(go(&other, Existing::Overwrite).is_ok());
    draw(&slide, 1024, 1024, 6, 3);
    assert!(matches!(go(&first, Existing::Resume), Err(StartError::Input { .. })));
    run(&[&slide], &out, &mut other, Existing::Overwrite);
    assert_eq!(DetectionState::load(&out.join("s")).unwrap().status, Status::Finished);
}

#[test]
fn another_engine_continues_only_where_it_was_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let slides = ["a", "b"].map(|n| dir.path().join(n).with_extension("tiff"));
    slides.iter().zip([5, 6]).for_each(|(s, seed)| drop(draw(s, 1024, 1024, seed, 3)));
    let out = dir.path().join("out");
    let both: Vec<_> = slides.iter().map(|p| input(p)).collect();
    let by = |engine: &str, accept: bool| {
        let mut detector = setup(false, usize::MAX, workers(256));
        detector.config.arithmetic = format!("{engine}/cpu/f32/f32");
        detector.models.accept_engine = accept;
        detector
    };
    let command = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut first = by("one", false);
    let outcomes = run(&[&slides[0]], &out, &mut first, Existing::Refuse);
    report::write(&out, &outcomes, &first, &command(&["a"])).unwrap();
    let before = results(&out.join("a"));

    let refused = batch::preflight(&both, &by("two", false), &out, Existing::Resume).unwrap_err();
    assert!(matches!(refused, StartError::Engine { .. }), "{refused}");
    let text = refused.to_string();
    for word in ["one/cpu/f32/f32", "two/cpu/f32/f32", "up to 0.001", "slide `a`"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let mut half = by("two", false);
    half.config.arithmetic = "two/cpu/bf16/f32".into();
    let text = batch::preflight(&both, &half, &out, Existing::Resume).unwrap_err().to_string();
    assert!(text.contains("up to 0.14"), "bf16 moves results farther: {text}");

    // What else differs is not accepted along with it.
    let mut other = by("two", true);
    other.config.thresholds.seg = mitosis::Score::new(0.9).unwrap();
    let refused = batch::preflight(&both, &other, &out, Existing::Resume).unwrap_err();
    assert!(matches!(refused, StartError::Config { .. }), "{refused}");

    let mut second = by("two", true);
    let outcomes = run(&[&slides[0], &slides[1]], &out, &mut second, Existing::Resume);
    assert_eq!(outcomes.iter().map(|o| o.kept).collect::<Vec<_>>(), [true, false]);
    assert!(outcomes.iter().all(DetectionOutcome::is_done));
    assert!(before == results(&out.join("a")), "what another engine did is kept as it is");
    let table = report::write(&out, &outcomes, &second, &command(&["b"])).unwrap();
    assert_eq!((table.done, table.left_out.len()), (2, 0));
    let engines: Vec<_> = table.engines.iter().map(|(e, n)| (e.as_str(), *n)).collect();
    assert_eq!(engines, [("one/cpu/f32/f32", 1), ("two/cpu/f32/f32", 1)]);
    assert!(table.to_string().contains("several engines: 1 by one/cpu/f32/f32, 1 by two"));
    let lines: Vec<_> = table.slides.iter().map(|s| s.engine.as_deref().unwrap()).collect();
    assert_eq!(lines, ["one/cpu/f32/f32", "two/cpu/f32/f32"]);

    // The folder remembers that it was accepted; one where it never was refuses.
    let counts = std::fs::read(out.join("counts.csv")).unwrap();
    assert_eq!(report::gather(std::slice::from_ref(&out), None).unwrap().done, 2);
    assert!(counts == std::fs::read(out.join("counts.csv")).unwrap());
    let apart = ["one", "two"].map(|n| dir.path().join(n));
    for ((slide, engine), out) in slides.iter().zip(["one", "two"]).zip(&apart) {
        let mut detector = by(engine, false);
        let outcomes = run(&[slide], out, &mut detector, Existing::Refuse);
        report::write(out, &outcomes, &detector, &command(&["c"])).unwrap();
    }
    assert!(matches!(report::gather(&apart, None), Err(report::ReportError::Config { .. })));
}

/// Writes to the slide when it sees its first window.
struct Touch(common::Dark, std::path::PathBuf, &'static [u8]);

impl mitosis::Segmenter for Touch {
    fn probabilities(
        &mut self,
        windows: &[mitosis::RgbTile],
    ) -> Result<Vec<mitosis::ProbMap>, mitosis::PortError> {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().append(true).open(&self.1).unwrap();
        file.write_all(self.2).unwrap();
        if self.2.is_empty() {
            file.set_modified(std::time::SystemTime::now()).unwrap();
        }
        self.0.probabilities(windows)
    }
}

#[test]
fn a_slide_that_changes_while_it_is_read_fails() {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes, what) in [("a", &b"more"[..], "its size"), ("b", b"", "time of change")] {
        let slide = dir.path().join(format!("{name}.tiff"));
        draw(&slide, 1024, 1024, 5, 3);
        let out = dir.path().join("out");
        let mut setup = setup(false, usize::MAX, workers(256));
        let left = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(usize::MAX));
        setup.models.segmenter = Box::new(Touch(common::Dark { left }, slide.clone(), bytes));
        let outcome = &run(&[&slide], &out, &mut setup, Existing::Refuse)[0];
        assert_eq!(outcome.state.status, Status::Failed);
        let reason = outcome.state.reason.as_ref().unwrap();
        assert!(reason.contains(what) && reason.contains("changed while it was read"), "{reason}");
        assert!(!outcome.folder.join("counts.json").exists(), "results of two files stay");
        assert!(!outcome.folder.join("checkpoint.state").exists());
    }
}

/// What a run of this release left, as an earlier version of the numbers named it.
fn as_version(version: &str, folder: &Path) {
    let path = folder.join("state.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let now = format!("\"results_version\": \"{}\"", mithras::record::RESULTS_VERSION);
    assert!(text.contains(&now), "{text}");
    let mut state: serde_json::Value = serde_json::from_str(&text).unwrap();
    state["settings"]["results_version"] = version.into();
    state["config"] = "that of another version".into();
    // States of version 1 recorded no digests of files.
    state.as_object_mut().unwrap().remove("results");
    std::fs::write(&path, serde_json::to_vec(&state).unwrap()).unwrap();
}

/// A run from before a setting had its name is of the same work: by its digest, and by its settings.
#[test]
fn a_run_with_the_earlier_name_of_a_setting_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("s.tiff");
    draw(&slide, 1500, 1300, 5, 4);
    let out = dir.path().join("out");
    let detector = || {
        let mut detector = setup(true, usize::MAX, workers(256));
        detector.config.recipe.min_separation_um = Some(12.0);
        detector
    };
    let config = detector().config;
    let text = serde_json::to_string(&config).unwrap();
    let earlier = text.replace("\"min_separation_um\":", "\"apart_um\":");
    assert_ne!(text, earlier);
    assert_eq!(config.digest(), base::digest::sha256(earlier), "as it was then");
    run(&[&slide], &out, &mut detector(), Existing::Refuse);
    let path = out.join("s/state.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let [now, earlier] = ["min_separation_um", "apart_um"].map(|key| format!("\"recipe.{key}\""));
    assert!(text.contains(&now), "{text}");
    let before: serde_json::Value = serde_json::from_str(&text.replace(&now, &earlier)).unwrap();
    let [mut by_digest, mut by_settings] = [before.clone(), before.clone()];
    by_digest["settings"] = serde_json::Map::new().into();
    by_settings["config"] = "that of another digest".into();
    for state in [before, by_digest, by_settings] {
        std::fs::write(&path, serde_json::to_vec(&state).unwrap()).unwrap();
        let resumed = run(&[&slide], &out, &mut detector(), Existing::Resume);
        assert!(resumed[0].kept, "{state}");
        let table = report::write(&out, &resumed, &detector(), &["mithras".to_owned()]).unwrap();
        assert_eq!((table.done, table.left_out.len()), (1, 0));
    }
}

/// Lines of a run.
#[derive(Default)]
struct Lines(Vec<String>);

impl mithras::progress::Listener for Lines {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, _: u64, _: u64) {}
    fn finish(&mut self) {}
    fn report(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }
    fn note(&mut self, text: &str) {
        self.0.push(format!("note: {text}"));
    }
}

/// Numbers of version 1 are kept on a slide that both versions read alike, and made again on one whose tiles
/// version 1 took for white.
#[test]
fn results_of_the_version_before_are_kept_only_where_the_slide_gives_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let slides = ["plain", "holes"].map(|n| dir.path().join(n).with_extension("tiff"));
    slides.iter().for_each(|s| drop(draw(s, 1500, 1300, 5, 4)));
    testkit::leave_out_a_tile(&slides[1]);
    let out = dir.path().join("out");
    let mut detector = setup(true, usize::MAX, workers(256));
    let both = [&*slides[0], &*slides[1]];
    let first = run(&both, &out, &mut detector, Existing::Refuse);
    assert!(first.iter().all(DetectionOutcome::is_done), "{first:?}");
    // Version 2 filled left-out tiles as this one does.
    ["plain", "holes"].iter().for_each(|n| as_version("2", &out.join(n)));
    let kept = run(&both, &out, &mut setup(true, 0, workers(256)), Existing::Resume);
    assert!(kept.iter().all(|o| o.kept), "{kept:?}");
    ["plain", "holes"].iter().for_each(|n| as_version("1", &out.join(n)));
    let inputs: Vec<_> = both.iter().map(|p| input(p)).collect();
    let checked = batch::preflight(&inputs, &detector, &out, Existing::Resume).unwrap();
    let mut lines = Lines::default();
    let resumed = batch::detect(
        inputs,
        checked,
        std::slice::from_mut(&mut detector),
        OutFolder { path: &out, existing: Existing::Resume },
        &mut lines,
        &CancelToken::new(),
    );
    let ended: Vec<_> = resumed.iter().map(|o| (o.kept, o.state.status)).collect();
    assert_eq!(ended, [(true, Status::Finished), (false, Status::Finished)], "{:?}", lines.0);
    let line = lines.0.iter().find(|l| l.contains("earlier version")).expect("a line");
    assert!(line.starts_with("holes: ") && line.contains("level 1 leaves out"), "{line}");
    // Quiet runs, too, name how many and why, in one line.
    let notes: Vec<&String> = lines.0.iter().filter(|l| l.starts_with("note: ")).collect();
    let note =
        "note: 1 slide of an earlier version of the numbers done again (1: level 1 leaves out";
    assert!(notes.len() == 1 && notes[0].starts_with(note), "{notes:?}");
    // Both are of this version now: one table holds them, and no slide is opened again.
    let settings = |n: &str| DetectionState::load(&out.join(n)).unwrap().settings;
    assert_eq!(settings("plain"), settings("holes"));
    let table = report::write(&out, &resumed, &detector, &["mithras".to_owned()]).unwrap();
    assert_eq!((table.done, table.left_out.len()), (2, 0));
    let again = run(&both, &out, &mut setup(true, 0, workers(256)), Existing::Resume);
    assert!(again.iter().all(|o| o.kept), "{again:?}");
    // Where the stored numbers are not those of the slide, they are not kept either.
    for version in ["1", "2"] {
        as_version(version, &out.join("plain"));
        let counts = std::fs::read_to_string(out.join("plain/counts.json")).unwrap();
        let mut other: serde_json::Value = serde_json::from_str(&counts).unwrap();
        other["tissue_mm2"] = 0.5.into();
        std::fs::write(out.join("plain/counts.json"), serde_json::to_vec(&other).unwrap()).unwrap();
        let redone = run(&both, &out, &mut detector, Existing::Resume);
        assert_eq!(redone.iter().map(|o| o.kept).collect::<Vec<_>>(), [false, true], "{version}");
    }
}

/// The detections of two drawn slides are those of this version of the numbers.
#[test]
fn numbers_change_only_with_their_version() {
    let dir = tempfile::tempdir().unwrap();
    let slides = ["plain", "holes"].map(|n| dir.path().join(n).with_extension("tiff"));
    slides.iter().for_each(|s| drop(draw(s, 1500, 1300, 5, 4)));
    testkit::leave_out_a_tile(&slides[1]);
    let out = dir.path().join("out");
    let mut detector = setup(true, usize::MAX, workers(256));
    run(&[&slides[0], &slides[1]], &out, &mut detector, Existing::Refuse);
    let mut all = Vec::new();
    for name in ["plain", "holes"] {
        let folder = out.join(name);
        let counts = report::counts(&folder).unwrap();
        assert!(counts.candidates > 0 && counts.tissue_mm2 > 0.0, "{counts:?}");
        all.extend(std::fs::read(folder.join("detections.csv")).unwrap());
        all.extend(format!("{} {}\n", counts.tissue_mm2, counts.analysed_mm2).bytes());
    }
    let found = (mithras::record::RESULTS_VERSION, base::digest::sha256(&all));
    let (version, golden) = mithras::record::RESULTS_GOLDEN;
    assert_eq!(
        found,
        (version, golden.to_owned()),
        "numbers changed: raise RESULTS_VERSION, then replace the digest"
    );
}

/// Cuts the slide short when it sees its first window, as a share that goes away.
struct Cut(common::Dark, std::path::PathBuf);

impl mitosis::Segmenter for Cut {
    fn probabilities(
        &mut self,
        windows: &[mitosis::RgbTile],
    ) -> Result<Vec<mitosis::ProbMap>, mitosis::PortError> {
        std::fs::File::options().write(true).open(&self.1).unwrap().set_len(64).unwrap();
        self.0.probabilities(windows)
    }
}

/// Brings the share back once the last window is behind us, with the time of change that it had.
struct Back {
    path: std::path::PathBuf,
    bytes: Vec<u8>,
    modified: std::time::SystemTime,
}

impl Back {
    fn restore(&self) {
        if std::fs::metadata(&self.path).unwrap().len() == self.bytes.len() as u64 {
            return;
        }
        std::fs::write(&self.path, &self.bytes).unwrap();
        let file = std::fs::File::options().write(true).open(&self.path).unwrap();
        file.set_modified(self.modified).unwrap();
    }
}

impl mithras::progress::Listener for Back {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, done: u64, total: u64) {
        if done == total {
            self.restore();
        }
    }
    fn finish(&mut self) {
        self.restore();
    }
    fn report(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
}

/// What cannot be read for a while is not left out of a slide that is finished: the slide fails, and the next
/// run with --resume does it.
#[test]
fn a_share_that_goes_away_for_a_while_fails_the_slide_and_resuming_does_it() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("s.tiff");
    draw(&slide, 1500, 1700, 5, 6);
    let (whole, out) = (dir.path().join("whole"), dir.path().join("out"));
    let detector = || {
        let workers = Workers { readers: 1, in_flight: 1, segment_batch: 1, ..workers(256) };
        let mut setup = setup(true, usize::MAX, workers);
        setup.config.recipe.max_unread_share = 1.0;
        // Two tiles: every window decodes its own again.
        setup.opener.options.cache_bytes = 400_000;
        setup
    };
    run(&[&slide], &whole, &mut detector(), Existing::Refuse);
    let (bytes, about) = (std::fs::read(&slide).unwrap(), std::fs::metadata(&slide).unwrap());
    let mut back = Back { path: slide.clone(), bytes, modified: about.modified().unwrap() };
    let mut cut = detector();
    let left = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(usize::MAX));
    cut.models.segmenter = Box::new(Cut(common::Dark { left }, slide.clone()));
    let inputs = vec![input(&slide)];
    let checked = batch::preflight(&inputs, &cut, &out, Existing::Refuse).unwrap();
    let outcome = batch::detect(
        inputs,
        checked,
        std::slice::from_mut(&mut cut),
        OutFolder { path: &out, existing: Existing::Refuse },
        &mut back,
        &CancelToken::new(),
    )
    .remove(0);
    assert_eq!(outcome.state.status, Status::Failed, "{:?}", outcome.state);
    let reason = outcome.state.reason.as_ref().unwrap();
    assert!(reason.contains("read error"), "{reason}");
    let resumed = run(&[&slide], &out, &mut detector(), Existing::Resume).remove(0);
    assert!(!resumed.kept && resumed.is_done(), "{:?}", resumed.state);
    assert_eq!(results(&whole.join("s")), results(&out.join("s")));
}

#[test]
fn a_resolution_that_the_model_is_not_made_for_is_refused_or_marked() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("s.tiff");
    draw(&slide, 1024, 1024, 5, 3);
    let mpp = |v| mitosis::Mpp::new(v).unwrap();
    let range = |min, max, warn: Option<f64>| {
        Some(infer::card::ResolutionCard {
            min: mpp(min),
            max: mpp(max),
            warn_above: warn.map(mpp),
        })
    };
    let go = |name: &str, resolution, any_mpp| {
        let out = dir.path().join(name);
        let mut setup = setup(false, usize::MAX, workers(256));
        setup.config.resolution = resolution;
        setup.opener.range = resolution;
        setup.opener.any_mpp = any_mpp;
        let outcome = run(&[&slide], &out, &mut setup, Existing::Refuse).remove(0);
        let counts = report::counts(&outcome.folder).ok();
        (outcome.state.reason, counts.and_then(|c| c.resolution_note))
    };
    for (name, r) in [("coarse", range(0.1, 0.2, None)), ("fine", range(0.3, 0.6, None))] {
        let reason = go(name, r, false).0.unwrap();
        assert!(reason.contains("0.25 um/px is outside"), "{reason}");
        let (reason, note) = go(&format!("{name}-forced"), r, true);
        assert!(reason.is_none() && note.unwrap().contains("mean nothing"));
    }
    let (reason, note) = go("warned", range(0.1, 0.6, Some(0.22)), false);
    assert!(reason.is_none() && note.unwrap().contains("coarser than 0.22"));
    assert_eq!(go("fits", range(0.1, 0.6, Some(0.35)), false), (None, None));
}

/// A scanner that the model saw no slide of, a coarse resolution and little tissue are in every output, in the same
/// words.
#[test]
fn what_misleads_is_in_every_output() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("s.tiff");
    draw(&slide, 1024, 1024, 5, 3);
    // The program that drew it becomes the maker of a scanner, letter for letter.
    let mut bytes = std::fs::read(&slide).unwrap();
    let at = bytes.windows(8).position(|w| w == b"mithras ").unwrap();
    bytes[at..at + 8].copy_from_slice(b"Philips ");
    std::fs::write(&slide, bytes).unwrap();
    let go = |name: &str, scanners: &[&str], warn: f64| {
        let out = dir.path().join(name);
        let mut setup = setup(false, usize::MAX, workers(256));
        setup.opener.scanners = scanners.iter().map(|s| (*s).to_owned()).collect();
        let mpp = |v| mitosis::Mpp::new(v).unwrap();
        let range = Some(infer::card::ResolutionCard {
            min: mpp(0.1),
            max: mpp(0.6),
            warn_above: Some(mpp(warn)),
        });
        setup.config.resolution = range;
        setup.opener.range = range;
        let outcome = run(&[&slide], &out, &mut setup, Existing::Refuse);
        let words = report::write(&out, &outcome, &setup, &["mithras".to_owned()]).unwrap();
        let kinds: Vec<&str> = report::counts(&out.join("s"))
            .unwrap()
            .caveats()
            .iter()
            .map(|c| c.kind.label())
            .collect();
        let text = |file: &str| std::fs::read_to_string(out.join(file)).unwrap();
        (kinds, words.to_string(), text("counts.csv"), text("summary.html"), text("s/counts.json"))
    };
    let (kinds, words, table, page, counts) = go("other", &["Aperio", "Hamamatsu"], 0.22);
    assert_eq!(kinds, ["coarse", "other scanner", "little tissue"]);
    assert!(words.contains("  coarse, other scanner, little tissue"), "{words}");
    for (output, text) in
        [("words", &words), ("table", &table), ("page", &page), ("counts", &counts)]
    {
        for part in
            ["a scanner of Philips, of which the model saw no slide", "is coarser than 0.22 um/px"]
        {
            assert!(text.contains(part), "{output}: {part}: {text}");
        }
    }
    assert!(page.contains("<b>other scanner:</b>") && counts.contains("\"scanner\": \"Philips\""));
    assert_eq!(go("same", &["philips"], 0.36).0, ["little tissue"]);
    assert_eq!(go("unknown", &[], 0.36).0, ["little tissue"]);
}

#[test]
fn folders_name_what_cannot_be_read_and_pass_over_their_own_results() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("slides");
    std::fs::create_dir_all(folder.join("deep")).unwrap();
    draw(&folder.join("good.tiff"), 1024, 1024, 5, 3);
    let file = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    file("text.svs", b"this is not a slide at all");
    file("deep/empty.ndpi", b"");
    file("note.txt", b"hello");
    file("dicom-without-suffix", &[&[0; 128][..], b"DICM", &[0; 40]].concat());
    let find = || {
        let found =
            batch::find(std::slice::from_ref(&folder), None, &std::collections::BTreeMap::new())
                .unwrap();
        let names: Vec<String> = found.slides.iter().map(|s| s.name.clone()).collect();
        (found.slides, names, found.skipped.len())
    };
    let (slides, names, skipped) = find();
    assert_eq!(names, ["empty", "dicom-without-suffix", "good", "text"]);
    assert_eq!(skipped, 1);
    // The results are inside the folder that is searched.
    let out = folder.join("out");
    let mut setup = setup(false, usize::MAX, workers(256));
    setup.opener.options.openslide = Some("/no/such/library".into());
    let checked = batch::preflight(&slides, &setup, &out, Existing::Refuse).unwrap();
    let cancel = CancelToken::new();
    let outcomes = batch::detect(
        slides,
        checked,
        std::slice::from_mut(&mut setup),
        OutFolder { path: &out, existing: Existing::Refuse },
        &mut Silent,
        &cancel,
    );
    assert_eq!(outcomes.iter().filter(|o| o.is_done()).count(), 1);
    let run = report::write(&out, &outcomes, &setup, &["mithras".to_owned()]).unwrap();
    assert_eq!((run.done, run.failed), (1, 3));
    let csv = std::fs::read_to_string(out.join("counts.csv")).unwrap();
    for name in ["text", "empty", "dicom-without-suffix"] {
        assert!(csv.lines().any(|l| l.starts_with(&format!("{name},failed,"))), "{name}: {csv}");
    }
    let again = find();
    assert_eq!(again.1, names, "the pictures of a run are not slides");
    assert!(batch::preflight(&again.0, &setup, &out, Existing::Resume).is_ok());
}

#[test]
fn absent_and_unreadable_pixels_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    if let Some(path) = testkit::data("hostile/third_counts_zero.svs") {
        let outcome = run(
            &[&path],
            dir.path(),
            &mut setup(false, usize::MAX, workers(256)),
            Existing::Refuse,
        )
        .remove(0);
        assert_eq!(outcome.state.status, Status::Finished, "{:?}", outcome.state.reason);
        let counts = report::counts(&outcome.folder).unwrap();
        // 2220 x 2967 px of 0.499 um are 1.64 mm2.
        assert!((counts.absent_mm2 - 1.64 / 3.0).abs() < 0.05, "{}", counts.absent_mm2);
        assert!(counts.notes().iter().any(|n| n.contains("left out of the file")));
    }
    if let Some(path) = testkit::data("hostile/one_zero_tile.svs") {
        let mut setup = setup(false, usize::MAX, workers(256));
        setup.config.recipe.max_unread_share = 1.0;
        let outcome =
            run(&[&path], &dir.path().join("share"), &mut setup, Existing::Refuse).remove(0);
        assert_eq!(outcome.state.status, Status::Finished, "{:?}", outcome.state.reason);
        let counts = report::counts(&outcome.folder).unwrap();
        assert!(counts.unread_mm2 > 0.0 && !counts.unread_windows.is_empty());
    }
    if let Some(path) = testkit::data("hostile/silent_tile.svs") {
        let outcome = run(
            &[&path],
            dir.path(),
            &mut setup(false, usize::MAX, workers(256)),
            Existing::Refuse,
        )
        .remove(0);
        let counts = report::counts(&outcome.folder).unwrap();
        let printed = counts.suspect_mm2 + counts.absent_mm2;
        assert!(printed > 0.0 && printed < 0.05, "{printed}");
    }
}

#[test]
fn threads_and_batches_change_no_byte() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("s.tiff");
    draw(&slide, 1300, 1200, 8, 4);
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let one = Workers { readers: 1, segment_batch: 1, classify_batch: 1, ..workers(256) };
    let many = Workers { readers: 4, segment_batch: 5, classify_batch: 7, ..workers(2) };
    run(&[&slide], &a, &mut setup(true, usize::MAX, one), Existing::Refuse);
    run(&[&slide], &b, &mut setup(true, usize::MAX, many), Existing::Refuse);
    assert_eq!(results(&a.join("s")), results(&b.join("s")));
}
