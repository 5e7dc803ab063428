//! Whole runs on drawn slides, with models that know no more than darkness.

mod common;

use common::{draw, input, results, setup};
use detect::{CancelToken, Workers};
use mithras::evaluate::{evaluate, read_truth};
use mithras::job::state::{State, Status};
use mithras::job::{self, Existing, Outcome, RunError, Setup};
use mithras::progress::Silent;
use mithras::report;
use mitosis::Microns;
use mitosis::matching::Rule;
use std::path::Path;

fn run(slides: &[&Path], out: &Path, setup: &mut Setup, existing: Existing) -> Vec<Outcome> {
    let inputs: Vec<_> = slides.iter().map(|p| input(p)).collect();
    let checked = job::preflight(&inputs, setup, out, existing).unwrap();
    job::run(inputs, checked, setup, out, existing, &mut Silent, &CancelToken::new())
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
    std::fs::write(&bad, b"II*\0 this is no slide").unwrap();
    let white = image::RgbImage::from_pixel(900, 700, image::Rgb([243, 242, 244]));
    white.save(&blank).unwrap();
    let out = dir.path().join("out");

    let mut setup = setup(true, usize::MAX, workers(256));
    let mut inputs = vec![input(&good), input(&bad), input(&blank)];
    inputs[2].mpp = Some(mitosis::Mpp::PAPER);
    let checked = job::preflight(&inputs, &setup, &out, Existing::Refuse).unwrap();
    assert_eq!(checked.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    let cancel = CancelToken::new();
    let outcomes =
        job::run(inputs, checked, &mut setup, &out, Existing::Refuse, &mut Silent, &cancel);
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
    assert!(html.contains("1 of 3 slides failed") && html.contains("1 of 3 slides have no tissue"));
    assert!(!html.contains("http"), "the summary loads nothing");
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(json["schema"], "mithras.run/1");
    assert_eq!(json["slides"][1]["status"], "failed");
    let counts = report::counts(&out.join("good")).unwrap();
    assert!(counts.figures > 0 && counts.analysed_mm2 > 0.02);
    assert_eq!(counts.resolution.x, 0.25);
    assert_eq!(report::counts(&out.join("blank")).unwrap().density_per_20_mm2, None);

    // Darkness finds figures and mimickers alike: the truth tells them apart.
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
    let truth = read_truth(&truth, &mithras::evaluate::TruthOptions::default()).unwrap();
    let result = evaluate(&out, &truth, Microns(7.5), &Rule::ALL).unwrap();
    assert_eq!((result.slides, result.truth), (1, 6));
    assert_eq!(result.without_truth, ["blank"]);
    let pooled = result.rules[1].pooled;
    assert!(pooled.recall.unwrap() >= 0.6, "{pooled:?}");
    assert_eq!(pooled.tally.tp + pooled.tally.fp, counts.figures);
    assert_eq!(pooled.tally.tp + pooled.tally.fn_, 6);
}

#[test]
fn a_killed_run_goes_on_to_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let slide = dir.path().join("s.tiff");
    draw(&slide, 1500, 1700, 5, 6);
    let (whole, cut) = (dir.path().join("whole"), dir.path().join("cut"));
    run(&[&slide], &whole, &mut setup(true, usize::MAX, workers(256)), Existing::Refuse);

    let killed = run(&[&slide], &cut, &mut setup(true, 9, workers(3)), Existing::Refuse);
    assert_eq!(killed[0].state.status, Status::Failed);
    assert!(killed[0].state.reason.as_ref().unwrap().contains("killed"));
    // While another process is at work on it, the slide is left alone, its state too.
    let held = mithras::file::Lock::take(&cut.join("s")).unwrap();
    let busy = run(&[&slide], &cut, &mut setup(true, 9, workers(3)), Existing::Resume);
    assert!(busy[0].state.reason.as_ref().unwrap().contains("another process"));
    let stored = State::load(&cut.join("s")).unwrap();
    assert!(stored.reason.unwrap().contains("killed"));
    drop(held);
    let on = run(&[&slide], &cut, &mut setup(true, usize::MAX, workers(3)), Existing::Resume);
    assert_eq!(on[0].state.status, Status::Finished);
    assert!(on[0].state.resumed_windows > 0, "nothing was taken over");
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
    let go = |setup: &Setup, existing| job::preflight(&[input(&slide)], setup, &out, existing);
    let mut first = setup(false, usize::MAX, workers(256));
    run(&[&slide], &out, &mut first, Existing::Refuse);
    assert!(matches!(go(&first, Existing::Refuse), Err(RunError::Exists { count: 1, .. })));
    assert!(go(&first, Existing::Resume).is_ok());
    let mut other = setup(false, usize::MAX, workers(256));
    other.config.thresholds.seg = mitosis::Score::new(0.9).unwrap();
    assert!(matches!(go(&other, Existing::Resume), Err(RunError::Config { .. })));
    assert!(go(&other, Existing::Overwrite).is_ok());
    draw(&slide, 1024, 1024, 6, 3);
    assert!(matches!(go(&first, Existing::Resume), Err(RunError::Input { .. })));
    run(&[&slide], &out, &mut other, Existing::Overwrite);
    assert_eq!(State::load(&out.join("s")).unwrap().status, Status::Finished);
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
