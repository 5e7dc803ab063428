//! Candidates that an earlier run kept give what a new run gives, without its first stage.

use crate::common::{Drawn, Failure, Mean, Restarts, Shade, bits, recipe, run, score, workers};
use detect::{
    CandidateRule, Control, CropRecipe, Job, KeptCandidates, Recipe, SlideResult, WindowAt,
};
use std::path::Path;

struct Outcome {
    result: SlideResult,
    notes: Vec<String>,
    /// Calls of the first stage.
    segmented: usize,
}

fn go(source: &Drawn, job: &Job<'_>, recipe: &Recipe, kept: Option<(&Path, &str)>) -> Outcome {
    let (mut shade, mut mean) = (Shade::default(), Mean::default());
    let mut notes = Restarts::default();
    let kept = kept.map(|(folder, identity)| KeptCandidates {
        folder: folder.to_owned(),
        identity: identity.to_owned(),
    });
    let control = Control::reporting(&mut notes).keeping(kept);
    let second = recipe.crops.is_some().then_some(&mut mean as &mut dyn mitosis::Classifier);
    let result = run(source, job, (&mut shade, second), recipe, workers(), control).unwrap();
    Outcome { result, notes: notes.0, segmented: shade.batches.len() }
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(folder).map_or(vec![], |d| d.map(|f| f.unwrap().path()).collect())
}

#[test]
fn another_second_stage_begins_with_what_the_first_gave() {
    let (source, recipe) = (Drawn::new(200, 150, 8), recipe(32, 25, 1));
    let job = Job::whole(&source, &recipe).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let first = go(&source, &job, &recipe, Some((&kept, "a")));
    assert!(first.segmented > 0 && first.result.resumed_windows == 0);
    assert!(!first.result.candidates.is_empty() && files(&kept).len() == 1);

    // Another size of crop, another distance, one stage: each as a run of its own, with no window segmented.
    let crops = Some(CropRecipe { side: 16, ..recipe.crops.clone().unwrap() });
    for other in [
        Recipe { crops, ..recipe.clone() },
        Recipe { min_separation_um: Some(3.0), ..recipe.clone() },
        Recipe { crops: None, ..recipe.clone() },
        recipe.clone(),
    ] {
        let fresh = go(&source, &job, &other, None).result;
        let from = go(&source, &job, &other, Some((&kept, "a")));
        assert_eq!(bits(&from.result), bits(&fresh));
        assert_eq!(from.result.candidates, fresh.candidates);
        assert_eq!((from.result.analysed, &from.result.flawed), (fresh.analysed, &fresh.flawed));
        assert_eq!((from.segmented, from.notes.len()), (0, 0));
        assert_eq!(from.result.resumed_windows, job.windows.len());
    }
    assert_eq!(files(&kept).len(), 1);

    // What the first stage depends on is computed again.
    let mut fewer = job.clone();
    fewer.windows.pop();
    let candidates =
        CandidateRule::Regions { threshold: score(0.4), opening_radius: 1, min_area_px: 2 };
    for (job, recipe, identity) in [
        (&job, &recipe, "b"),
        (&fewer, &recipe, "a"),
        (&job, &Recipe { candidates, ..recipe.clone() }, "a"),
    ] {
        let before = files(&kept).len();
        let again = go(&source, job, recipe, Some((&kept, identity)));
        assert_eq!(bits(&again.result), bits(&go(&source, job, recipe, None).result));
        assert!(again.segmented > 0 && files(&kept).len() == before + 1);
    }
}

#[test]
fn what_is_damaged_runs_again_and_what_is_incomplete_is_not_kept() {
    let (mut source, recipe) = (Drawn::new(200, 150, 8), recipe(32, 25, 1));
    let job = Job::whole(&source, &recipe).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let whole = go(&source, &job, &recipe, Some((dir.path(), "a"))).result;
    let file = files(dir.path()).remove(0);
    let text = std::fs::read(&file).unwrap();
    let other = dir.path().join("other");
    go(&source, &job, &recipe, Some((&other, "b")));
    let foreign = std::fs::read(files(&other).remove(0)).unwrap();
    let half = &text[..text.len() / 2];
    for (bytes, word) in [(half, "checksum"), (&[], "checksum"), (&foreign, "another slide")] {
        std::fs::write(&file, bytes).unwrap();
        let again = go(&source, &job, &recipe, Some((dir.path(), "a")));
        assert_eq!(bits(&again.result), bits(&whole));
        assert!(again.notes[0].contains(word) && again.notes.len() == 1, "{:?}", again.notes);
        assert_eq!(std::fs::read(&file).unwrap(), text);
    }
    // No folder can be made: the slide is done all the same.
    let nowhere = go(&source, &job, &recipe, Some((&file.join("no"), "a")));
    assert!(nowhere.notes.iter().any(|n| n.contains("not kept")), "{:?}", nowhere.notes);
    assert_eq!(bits(&nowhere.result), bits(&whole));

    source.broken.insert((100, 75, 32));
    let partly = dir.path().join("partly");
    let result = go(&source, &job, &recipe, Some((&partly, "a"))).result;
    assert_eq!(result.unread[0].at, WindowAt { row: 3, col: 4 });
    assert!(files(&partly).is_empty());
}

/// Only what a whole run gave is kept.
#[test]
fn a_failed_run_keeps_nothing() {
    let (source, recipe) = (Drawn::new(200, 150, 8), recipe(32, 25, 1));
    let job = Job::whole(&source, &recipe).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut mean = Mean { fail_at: Some((1, Failure::Error)), ..Mean::default() };
    let kept = KeptCandidates { folder: dir.path().into(), identity: "a".into() };
    let control = Control::default().keeping(Some(kept));
    let models = (&mut Shade::default() as _, Some(&mut mean as _));
    assert!(run(&source, &job, models, &recipe, workers(), control).is_err());
    assert!(files(dir.path()).is_empty());
}
