//! Several processes of one pretraining: the curves of one process, and resuming after one of them
//! was killed, even the one that writes.

use crate::common::ranks::{self, Task};
use crops::Encoding;
use crops::{CorpusWriter, CropBox, CropMeta, Header, Label, Layout, Split};
use mitosis::{Mpp, RgbTile};
use std::path::{Path, PathBuf};
use std::time::Duration;
use train::preset::Preset as _;
use train::pretrain::{self, PretrainPreset};

const HERE: &str = module_path!();
/// Epochs of a run that is not to end by itself.
const MANY: usize = 5_000;
/// Steps of an epoch.
const EPOCH: usize = 3;

/// Crops of 48 px with a disc; every second one is a figure with a darker disc.
pub fn drawn(dir: &Path) {
    let mut w = CorpusWriter::create(dir, Header::default(), Layout::default()).unwrap();
    for i in 0..8 * EPOCH {
        let mitotic = i % 2 == 0;
        let mut tile = RgbTile::filled(48, 48, [200, 160, 190]);
        for (k, px) in tile.data.chunks_exact_mut(3).enumerate() {
            let (x, y) = ((k % 48) as f64, (k / 48) as f64);
            let v = ((k * 7 + i * 31) % 23) as u8;
            if (x - 24.0).hypot(y - 24.0) < 8.0 {
                px.copy_from_slice(&[if mitotic { 40 } else { 120 } + v, 60, 110]);
            } else {
                px[0] -= v;
            }
        }
        let label = if mitotic { Label::MitoticFigure } else { Label::Mimicker };
        let meta = CropMeta {
            bbox: Some(CropBox::centred(48, 20)),
            cohort: "drawn".into(),
            source: "drawn".into(),
            split: Split::Train,
            ..CropMeta::new(format!("{i}.png"), label, format!("s{i}"), Mpp::PAPER, (48, 48))
        };
        w.push(meta, Encoding::Png.encode(&tile).unwrap()).unwrap();
    }
    w.finish().unwrap();
}

/// Averaged weights are part of the state.
pub fn preset(epochs: usize) -> PretrainPreset {
    let path = testkit::workspace().join("presets/pretrain-smoke.toml");
    let set = [
        "train.micro_batch=0",
        "train.lr=1e-3",
        "train.ema=0.9",
        "train.save_every=4",
        &format!("train.epochs={epochs}"),
    ];
    PretrainPreset::load(&path, &set.map(str::to_owned)).unwrap()
}

fn pretrain(task: &Task) -> train::Result<()> {
    tch::set_num_threads(1);
    let corpus = task.run.parent().unwrap().join("corpus");
    let options = crate::common::options(task.run.clone(), true, task.stop_after);
    pretrain::run(&preset(task.epochs), &corpus, 1, &options)
}

fn terms(run: &Path) -> PathBuf {
    run.join("terms.csv")
}

fn state(run: &Path) -> PathBuf {
    run.join("state.safetensors")
}

/// Of every step its rate, norm of the gradient, loss and terms; and the rows of `metrics.csv`.
fn curves(run: &Path) -> [Vec<(String, Vec<f64>)>; 2] {
    [
        ranks::rows(&terms(run), 1, &[1, 2, 5, 6, 7, 8]),
        ranks::rows(&run.join("metrics.csv"), 2, &[2, 3, 4]),
    ]
}

/// That the runs have the same rows, up to this step.
fn compare(one: &Path, other: &Path, last: usize) {
    for (one, other) in curves(one).iter().zip(&curves(other)) {
        ranks::same(one, other);
    }
    let rows = curves(one);
    assert_eq!(rows[0].last().unwrap().0, last.to_string());
    assert_eq!(rows[0].len(), last, "each step once");
    assert_eq!(rows[1].len(), last / EPOCH, "each epoch once");
}

#[test]
fn four_processes_have_the_curves_of_one() {
    if ranks::as_rank(pretrain) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (root, me) = (dir.path(), (HERE, "four_processes_have_the_curves_of_one"));
    drawn(&root.join("corpus"));
    let four = ranks::start(me, &Task::new(root.join("four"), 4, 0), 4);
    pretrain(&Task::new(root.join("one"), 4, 0)).unwrap();
    ranks::all_end_well(four);
    compare(&root.join("one"), &root.join("four"), 4 * EPOCH);
    let losses = &curves(&root.join("one"))[1];
    assert!(losses[0].1[0] - losses[3].1[0] > 0.02, "nothing is learnt: {losses:?}");
    let of = |run: &str| {
        let path = root.join(run).join(pretrain::ENCODER);
        net::checkpoint::read_tensors(&path).unwrap().tensors
    };
    let (one, four) = (of("one"), of("four"));
    assert!(one.len() > 20 && one.len() == four.len());
    for (name, t) in &one {
        let apart = (t - &four[name]).abs().max().double_value(&[]);
        assert!(apart < 1e-3, "{name} differs by {apart:e}");
    }
    let about = std::fs::read_to_string(root.join("four/run.json")).unwrap();
    assert!(about.contains("\"ranks\": 4") && about.contains("\"gloo\""), "{about}");
}

#[test]
fn after_one_of_four_is_killed_all_end_and_continue_as_if_it_had_not_been() {
    if ranks::as_rank(pretrain) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let me = (HERE, "after_one_of_four_is_killed_all_end_and_continue_as_if_it_had_not_been");
    drawn(&root.join("corpus"));
    let run = root.join("run");
    let four = ranks::start(me, &Task::new(run.clone(), MANY, 0), 4);
    let (texts, took) = ranks::interrupted(four, &terms(&run), (2, "-KILL"));
    assert!(took < Duration::from_secs(30), "{took:?}");
    let done = ranks::kept(&texts[0]);
    assert_eq!(ranks::step_of(&state(&run)), done);
    let more = 2 * EPOCH;
    let four = ranks::start(me, &Task::new(run.clone(), MANY, more), 4);
    pretrain(&Task::new(root.join("whole"), MANY, done + more)).unwrap();
    ranks::all_end_well(four);
    compare(&root.join("whole"), &run, done + more);
}

#[test]
fn after_the_first_is_killed_all_end_and_continue_from_the_last_stored_state() {
    if ranks::as_rank(pretrain) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let me = (HERE, "after_the_first_is_killed_all_end_and_continue_from_the_last_stored_state");
    drawn(&root.join("corpus"));
    let run = root.join("run");
    let two = ranks::start(me, &Task::new(run.clone(), MANY, 0), 2);
    let (texts, took) = ranks::interrupted(two, &state(&run), (0, "-KILL"));
    assert!(took < Duration::from_secs(30), "{took:?}");
    // The other has no state to keep.
    let words = &texts[0];
    assert!(words.contains("steps are whole") && !words.contains("is kept"), "{words}");
    let done = ranks::step_of(&state(&run));
    assert!(done > 0 && done.is_multiple_of(4), "{done}");
    let more = 2 * EPOCH;
    let two = ranks::start(me, &Task::new(run.clone(), MANY, more), 2);
    pretrain(&Task::new(root.join("whole"), MANY, done + more)).unwrap();
    ranks::all_end_well(two);
    compare(&root.join("whole"), &run, done + more);
}
