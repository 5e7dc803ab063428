//! What goes wrong ends in a typed error or is recorded; nothing hangs.

use crate::common::{
    Drawn, Failure, Keep, Mean, Restarts, Shade, bits, in_memory, recipe, run, workers,
};
use base::progress::Listener;
use detect::{
    CancelToken, CandidateRule, Checkpoint, Control, DetectError, Job, ReadError, Recipe,
    SlideResult, StateFile, Store, StoreError, TileSource, Tissue, WindowAt,
};
use mitosis::{Level0, Mm2, Mpp, OperatingPoint, Point, Rect, Resolution, RgbTile, Score};

fn go(
    source: &dyn TileSource,
    job: &Job<'_>,
    recipe: &Recipe,
    shade: &mut Shade,
    mean: &mut Mean,
) -> Result<SlideResult, DetectError> {
    run(source, job, (shade, Some(mean)), recipe, workers(), Control::default())
}

fn small() -> (Drawn, Recipe) {
    (Drawn::new(200, 150, 8), recipe(32, 25, 1))
}

#[test]
fn a_failing_model_is_named() {
    let (source, recipe) = small();
    let job = Job::whole(&source, &recipe).unwrap();
    for call in [0, 3] {
        for failure in Failure::ALL {
            let mut shade = Shade { fail_at: Some((call, failure)), ..Shade::default() };
            let first = go(&source, &job, &recipe, &mut shade, &mut Mean::default()).unwrap_err();
            let mut mean = Mean { fail_at: Some((call, failure)), ..Mean::default() };
            let second = go(&source, &job, &recipe, &mut Shade::default(), &mut mean).unwrap_err();
            for (error, stage) in [(first, "segment"), (second, "classify")] {
                let text = error.to_string();
                assert!(text.contains(stage), "{failure:?}: {text}");
                match failure {
                    Failure::Error => assert!(matches!(error, DetectError::Model { .. })),
                    Failure::Panic => assert!(matches!(error, DetectError::Panicked { .. })),
                    _ => assert!(matches!(error, DetectError::Answer { .. }), "{text}"),
                }
            }
        }
    }
}

#[test]
fn more_candidates_than_allowed_end_the_slide() {
    let (source, recipe) = small();
    let job = Job::whole(&source, &recipe).unwrap();
    let found = go(&source, &job, &recipe, &mut Shade::default(), &mut Mean::default()).unwrap();
    let n = found.candidates.len();
    assert!(n > 2);
    let with = |candidates: usize| {
        let workers = detect::Workers { candidates, ..workers() };
        let (shade, mean) = (&mut Shade::default(), &mut Mean::default());
        run(&source, &job, (shade, Some(mean)), &recipe, workers, Control::default())
    };
    let error = with(n - 1).unwrap_err();
    assert!(matches!(error, DetectError::Candidates(most) if most == n - 1), "{error}");
    assert!(error.to_string().contains("look at the slide, or raise the limit"), "{error}");
    assert_eq!(with(n).unwrap().candidates.len(), n);
}

/// Panics on one window.
struct Trap(Drawn);

impl TileSource for Trap {
    fn dimensions(&self) -> (u64, u64) {
        self.0.dimensions()
    }
    fn resolution(&self) -> Result<Resolution, ReadError> {
        self.0.resolution()
    }
    fn read_at(&self, m: Mpp, rect: Rect) -> Result<RgbTile, ReadError> {
        assert!((rect.x, rect.y) != (75, 50), "reader bug");
        self.0.read_at(m, rect)
    }
}

#[test]
fn a_panicking_reader_is_named() {
    let (source, recipe) = small();
    let source = Trap(source);
    let job = Job::whole(&source, &recipe).unwrap();
    let error =
        go(&source, &job, &recipe, &mut Shade::default(), &mut Mean::default()).unwrap_err();
    let DetectError::Panicked { stage, message } = error else { panic!("{error}") };
    assert_eq!((stage, &message[..]), ("decode", "reader bug"));
}

/// A share that goes away for one window, or for the crops, and is back at the next try.
struct Refused(Drawn, usize);

impl TileSource for Refused {
    fn dimensions(&self) -> (u64, u64) {
        self.0.dimensions()
    }
    fn resolution(&self) -> Result<Resolution, ReadError> {
        self.0.resolution()
    }
    fn read_at(&self, m: Mpp, rect: Rect) -> Result<RgbTile, ReadError> {
        let (x, y, w) = (rect.x, rect.y, rect.width as usize);
        if w == self.1 && (w == 8 || (x, y) == (75, 50)) {
            return Err(ReadError::File("read error at byte 17".into()));
        }
        self.0.read_at(m, rect)
    }
}

#[test]
fn a_read_that_the_system_refuses_ends_the_slide_and_leaves_nothing_out() {
    for side in [32, 8] {
        let (source, mut recipe) = small();
        recipe.max_unread_share = 1.0;
        let source = Refused(source, side);
        let job = Job::whole(&source, &recipe).unwrap();
        let (mut shade, mut mean) = (Shade::default(), Mean::default());
        let error = go(&source, &job, &recipe, &mut shade, &mut mean).unwrap_err();
        assert!(matches!(error, DetectError::Slide(ReadError::File(_))), "{side}: {error:?}");
        assert!(error.to_string().contains("read error at byte 17"), "{error}");
    }
}

#[test]
fn an_unread_window_is_left_out_and_measured() {
    let (mut source, recipe) = small();
    let job = Job::whole(&source, &recipe).unwrap();
    let intact = go(&source, &job, &recipe, &mut Shade::default(), &mut Mean::default()).unwrap();
    assert!(intact.unread.is_empty());
    assert_eq!(intact.unread_area, Mm2(0.0));
    source.broken.insert((100, 75, 32));
    let result = go(&source, &job, &recipe, &mut Shade::default(), &mut Mean::default()).unwrap();
    assert_eq!(result.unread.len(), 1);
    let unread = &result.unread[0];
    assert_eq!(unread.at, WindowAt { row: 3, col: 4 });
    assert_eq!(
        (unread.min.x, unread.min.y, unread.max.x, unread.max.y),
        (100.0, 75.0, 132.0, 107.0)
    );
    assert!(unread.reason.contains("corrupt"));
    // Of its 32 x 32 px only the 18 x 18 that no neighbour reaches are lost.
    let px = 0.25e-3 * 0.25e-3;
    assert!((result.unread_area.0 - 18.0 * 18.0 * px).abs() < 1e-15, "{:?}", result.unread_area);
    assert!((result.analysed.0 - (200.0 * 150.0 - 324.0) * px).abs() < 1e-12);
    // The same as if the window had never been planned.
    let mut without = job.clone();
    without.windows.retain(|w| *w != unread.at);
    assert_eq!(bits(&result), in_memory(&source, &without, &recipe));
}

#[test]
fn too_many_unread_windows_fail_the_slide() {
    let (mut source, mut recipe) = small();
    let job = Job::whole(&source, &recipe).unwrap();
    assert_eq!(job.windows.len(), 48);
    for x in [0, 25, 50] {
        source.broken.insert((x, 0, 32));
    }
    recipe.max_unread_share = 0.05; // 2.4 windows
    let error =
        go(&source, &job, &recipe, &mut Shade::default(), &mut Mean::default()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, DetectError::Unread { unread: 3, planned: 48, .. }), "{text}");
    assert!(text.contains("max_unread_share") && text.contains("corrupt"));
    recipe.max_unread_share = 0.0625; // exactly 3 of 48
    go(&source, &job, &recipe, &mut Shade::default(), &mut Mean::default()).unwrap();
}

#[test]
fn a_candidate_without_a_crop_is_not_accepted_unseen() {
    let (mut source, recipe) = small();
    let job = Job::whole(&source, &recipe).unwrap();
    let all = go(&source, &job, &recipe, &mut Shade::default(), &mut Mean::default()).unwrap();
    let lost = all.candidates[5].detection;
    let corner = |v: f64| (v - 4.0 + 0.5).floor() as i64;
    let at = lost.candidate.centroid;
    source.broken.insert((corner(at.x), corner(at.y), 8));
    let result = go(&source, &job, &recipe, &mut Shade::default(), &mut Mean::default()).unwrap();
    assert_eq!(result.candidates.len(), all.candidates.len() - 1);
    assert!(!result.detections().any(|d| *d == lost));
    assert_eq!(result.unclassified.len(), 1);
    assert_eq!(result.unclassified[0].candidate, lost.candidate);
}

/// Cancels at the n-th progress report, and checks that progress only grows.
struct CancelAt(usize, CancelToken, u64);

impl Listener for CancelAt {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn finish(&mut self) {}
    fn report(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
    fn update(&mut self, done: u64, total: u64) {
        assert!(done >= self.2);
        assert_eq!(total, 48);
        self.2 = done;
        self.0 -= usize::from(self.0 > 0);
        if self.0 == 0 {
            self.1.cancel();
        }
    }
}

#[test]
fn cancelling_ends_the_run() {
    let (mut source, recipe) = small();
    source.jitter = true;
    let job = Job::whole(&source, &recipe).unwrap();
    for n in [1, 2, 17, 45] {
        let token = CancelToken::new();
        let mut watch = CancelAt(n, token.clone(), 0);
        let (mut shade, mut mean) = (Shade::default(), Mean::default());
        let control = Control::reporting(&mut watch).until(&token);
        let models = (&mut shade as _, Some(&mut mean as _));
        let out = run(&source, &job, models, &recipe, workers(), control);
        assert!(matches!(out, Err(DetectError::Cancelled)), "{n}: {out:?}");
    }
}

/// Keeps the first state alone, as a run that is killed after its first unit leaves it.
struct First(StateFile);

impl Store for First {
    fn load(&mut self) -> Result<Option<Checkpoint>, DetectError> {
        self.0.load()
    }
    fn save(&mut self, state: &Checkpoint) -> Result<(), StoreError> {
        if self.0.0.exists() { Ok(()) } else { self.0.save(state) }
    }
    fn discard(&mut self) {
        self.0.discard();
    }
}

#[test]
fn states_that_do_not_fit_are_not_used() {
    let (source, recipe) = small();
    let job = Job::whole(&source, &recipe).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slide.state");
    assert!(Checkpoint::load(&path).unwrap().is_none());
    let go = |source: &Drawn, job: &Job<'_>, recipe: &Recipe, store: &mut dyn Store| {
        let (mut shade, mut mean) = (Shade::default(), Mean::default());
        let mut restarts = Restarts::default();
        let control = Control::reporting(&mut restarts).stored(store);
        let models = (&mut shade as _, Some(&mut mean as _));
        let out = run(source, job, models, recipe, workers(), control);
        (out, restarts.0)
    };
    let whole = go(&source, &job, &recipe, &mut First(StateFile(path.clone()))).0.unwrap();
    let state = Checkpoint::load(&path).unwrap().unwrap();
    let from = || Keep { from: Some(state.clone()), ..Keep::default() };
    let (again, restarts) = go(&source, &job, &recipe, &mut from());
    let again = again.unwrap();
    assert_eq!(bits(&again), bits(&whole));
    assert_eq!((again.resumed_windows, restarts.len()), (8, 0));

    let refused = |source: &Drawn, job: &Job<'_>, recipe: &Recipe| {
        let mut store = from();
        let (out, restarts) = go(source, job, recipe, &mut store);
        assert_eq!(restarts.len(), 1, "{restarts:?}");
        assert!(store.from.is_none(), "the state stays");
        if let Ok(out) = &out {
            assert_eq!(out.resumed_windows, 0);
        }
        (out, restarts)
    };
    let mut other = recipe.clone();
    other.max_unread_share = 0.5;
    let (out, restarts) = refused(&source, &job, &other);
    assert_eq!(bits(&out.unwrap()), bits(&whole));
    assert!(restarts[0].contains("another slide, model, recipe"), "{restarts:?}");
    let mut other = job.clone();
    other.identity = "other weights".into();
    assert_eq!(bits(&refused(&source, &other, &recipe).0.unwrap()), bits(&whole));
    let mut other = job.clone();
    other.windows.pop();
    assert_eq!(refused(&source, &other, &recipe).0.unwrap().windows, 47);
    // Read before, unreadable now: never a silently different result.
    let mut broken = Drawn::new(200, 150, 8);
    broken
        .broken
        .extend(job.windows.iter().map(|w| (i64::from(w.col) * 25, i64::from(w.row) * 25, 32)));
    let (out, restarts) = refused(&broken, &job, &recipe);
    assert!(restarts[0].contains("cannot be read now"), "{restarts:?}");
    assert_eq!(out.unwrap().unread.len(), 48);

    let text = std::fs::read(&path).unwrap();
    for damaged in [&text[..text.len() / 2], &text[..10], &b""[..], &[&b" "[..], &text].concat()] {
        std::fs::write(&path, damaged).unwrap();
        let error = Checkpoint::load(&path).unwrap_err();
        assert!(error.to_string().contains("checksum"), "{error}");
        let (out, restarts) = go(&source, &job, &recipe, &mut StateFile(path.clone()));
        assert_eq!(bits(&out.unwrap()), bits(&whole));
        assert!(restarts.len() == 1 && restarts[0].contains("checksum"), "{restarts:?}");
    }
    let mut full = Keep { full: true, ..Keep::default() };
    let error = go(&source, &job, &recipe, &mut full).0.unwrap_err();
    assert!(matches!(error, DetectError::Store(_)) && error.to_string().contains("no space left"));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let (source, recipe) = small();
    let job = Job::whole(&source, &recipe).unwrap();
    let refused = |job: &Job<'_>, recipe: &Recipe, two: bool, word: &str| {
        let (mut shade, mut mean) = (Shade::default(), Mean::default());
        let second = two.then_some(&mut mean as &mut dyn mitosis::Classifier);
        let models = (&mut shade as _, second);
        let out = run(&source, job, models, recipe, workers(), Control::default());
        let error = out.unwrap_err();
        assert!(
            matches!(error, DetectError::Recipe(_)) && error.to_string().contains(word),
            "{error}"
        );
    };
    let outside = Job { windows: vec![WindowAt { row: 0, col: 8 }], ..job.clone() };
    refused(&outside, &recipe, true, "outside");
    refused(&job, &recipe, false, "classifier");
    refused(&job, &Recipe { crops: None, ..recipe.clone() }, true, "classifier");
    refused(&job, &Recipe { max_unread_share: f64::NAN, ..recipe.clone() }, true, "share");
    let candidates = CandidateRule::Peaks { threshold: Score::ONE, min_distance_px: u32::MAX };
    refused(&job, &Recipe { candidates, ..recipe.clone() }, true, "peaks");
    let mut other = recipe.clone();
    other.crops.as_mut().unwrap().positive = "mitosis".into();
    refused(&job, &other, true, "non_mitotic");
}

#[test]
fn a_slide_without_tissue_has_no_density() {
    let (source, recipe) = small();
    let job = Job { windows: vec![], tissue: None, identity: String::new() };
    let result = go(&source, &job, &recipe, &mut Shade::default(), &mut Mean::default()).unwrap();
    assert_eq!((result.windows, result.candidates.len(), result.analysed), (0, 0, Mm2(0.0)));
    let point = OperatingPoint { seg: Score::ZERO, cls: Score::ZERO, provenance: "test".into() };
    let error = result.count(&point, &source.resolution).unwrap_err();
    assert!(error.to_string().contains("no tissue was read"));
}

#[test]
fn what_is_off_the_tissue_is_kept_and_never_accepted() {
    let (source, recipe) = small();
    /// Tissue left of 100 px; a margin of 20 um is 80 px.
    struct Left;
    impl Tissue for Left {
        fn area_mm2_where(&self, _: &mut dyn FnMut(Point<Level0>) -> bool) -> f64 {
            1.0
        }
        fn near(&self, p: Point<Level0>, um: f64) -> bool {
            assert_eq!(um, detect::TISSUE_MARGIN_UM);
            p.x <= 100.0
        }
    }
    let whole = Job::whole(&source, &recipe).unwrap();
    let (mut shade, mut mean) = (Shade::default(), Mean::default());
    let all = go(&source, &whole, &recipe, &mut shade, &mut mean).unwrap();
    let job = Job { tissue: Some(&Left), ..whole };
    let (mut shade, mut mean) = (Shade::default(), Mean::default());
    let result = go(&source, &job, &recipe, &mut shade, &mut mean).unwrap();
    assert!(result.detections().eq(all.detections()), "nothing is dropped");
    let point = OperatingPoint { seg: Score::ZERO, cls: Score::ZERO, provenance: "test".into() };
    let outside = result.candidates.iter().filter(|c| c.outside_tissue).count();
    assert!(outside > 0 && outside < result.candidates.len());
    assert!(result.accepted(&point).all(|d| d.candidate.centroid.x <= 100.0));
    let count = result.count(&point, &source.resolution).unwrap();
    assert_eq!(count.figures, result.candidates.len() - outside);
    assert_eq!(all.count(&point, &source.resolution).unwrap().figures, all.candidates.len());
}

#[test]
fn counts_and_stage_times_come_with_the_result() {
    let (source, recipe) = small();
    // The left half is tissue, in pieces of 10 x 10 px.
    struct Left;
    impl Tissue for Left {
        fn area_mm2_where(&self, wanted: &mut dyn FnMut(Point<Level0>) -> bool) -> f64 {
            let pieces = (0..15).flat_map(|j| (0..10).map(move |i| (i, j)));
            let centre = |(i, j)| Point::new(f64::from(i) * 10.0 + 5.0, f64::from(j) * 10.0 + 5.0);
            pieces.map(centre).filter(|&p| wanted(p)).count() as f64 * 100.0 * 6.25e-8
        }
    }
    let job = Job { tissue: Some(&Left), ..Job::whole(&source, &recipe).unwrap() };
    let result = go(&source, &job, &recipe, &mut Shade::default(), &mut Mean::default()).unwrap();
    assert!((result.analysed.0 - 100.0 * 150.0 * 6.25e-8).abs() < 1e-12);
    let cls = Score::new(0.3).unwrap();
    let point = OperatingPoint { seg: Score::ZERO, cls, provenance: "test".into() };
    let accepted = result.accepted(&point).count();
    assert!(accepted > 0 && accepted < result.candidates.len());
    let count = result.count(&point, &source.resolution).unwrap();
    assert_eq!((count.figures, count.hotspot_count()), (accepted, accepted));
    let names: Vec<_> = result.stages.iter().map(|s| s.stage).collect();
    assert_eq!(names, ["decode", "segment", "stitch", "crop", "classify"]);
    let items: Vec<_> = result.stages.iter().map(|s| s.items).collect();
    let n = result.candidates.len() as u64;
    assert_eq!(items, [48, 48, 48, n, n]);
    for stage in &result.stages {
        assert!(stage.busy.as_nanos() > 0, "{stage:?}");
        assert!((0.0..=1.0).contains(&stage.busy_share(result.wall)));
    }
}
