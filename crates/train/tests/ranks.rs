//! Several processes of one fine-tuning: the curve of one process, and what a dead or silent one
//! leaves.

use crate::common::ranks::{self, Task};
use image::{Rgb, RgbImage};
use regions::task::{Task as Kind, TrainingSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use train::preset::Preset as _;
use train::protocol::{self, CropsPreset};

const HERE: &str = module_path!();
/// Epochs of a run that is not to end by itself.
const MANY: usize = 5_000;

fn drawn(dir: &Path) {
    for (c, class) in ["plain", "marked"].iter().enumerate() {
        for source in 0..4_u32 {
            let folder = dir.join("train").join(class).join(format!("s{source}"));
            fs::create_dir_all(&folder).unwrap();
            for k in 0..3_u32 {
                let colour = [(20 + 150 * c) as u8, (90 + 9 * source) as u8, (20 * k) as u8];
                RgbImage::from_fn(40, 40, |x, y| {
                    let near = (i64::from(x) - 20).pow(2) + (i64::from(y) - 20).pow(2) < 80;
                    if near { Rgb(colour) } else { Rgb([220, 190, 210 - source as u8]) }
                })
                .save(folder.join(format!("{k}.png")))
                .unwrap();
            }
        }
    }
}

fn preset(epochs: usize) -> CropsPreset {
    let path = testkit::workspace().join("presets/finetune-ami-br-vit-tiny.toml");
    let set = [
        "task=\"folder\"",
        "positive=\"marked\"",
        "model.image=32",
        "model.drop_path=0.0",
        "data.crop=21",
        "train.batch=8",
        "train.warmup_epochs=1.0",
        "train.precision=\"f32\"",
        "train.base_lr=0.05",
        "symmetries=1",
        &format!("train.epochs={epochs}"),
    ];
    CropsPreset::load(&path, &set.map(str::to_owned)).unwrap()
}

fn finetune(task: &Task) -> train::Result<()> {
    tch::set_num_threads(1);
    let data = task.run.parent().unwrap().join("data");
    let set = TrainingSet::open(Kind::Folder, &data).unwrap();
    let options = crate::common::options(task.run.clone(), true, task.stop_after);
    protocol::finetune(&preset(task.epochs), &set, 0, &options)
}

fn metrics(run: &Path) -> PathBuf {
    run.join("fold-0/metrics.csv")
}

fn state(run: &Path) -> PathBuf {
    run.join("fold-0/state.safetensors")
}

/// Step and kind; loss, metric and rate.
fn curve(run: &Path) -> Vec<(String, Vec<f64>)> {
    ranks::rows(&metrics(run), 2, &[2, 3, 4])
}

#[test]
fn four_processes_have_the_curve_of_one() {
    if ranks::as_rank(finetune) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (root, me) = (dir.path(), (HERE, "four_processes_have_the_curve_of_one"));
    drawn(&root.join("data"));
    let four = ranks::start(me, &Task::new(root.join("four"), 4, 0), 4);
    finetune(&Task::new(root.join("one"), 4, 0)).unwrap();
    ranks::all_end_well(four);
    let (one, four) = (curve(&root.join("one")), curve(&root.join("four")));
    assert!(one.len() >= 6, "{one:?}");
    assert!(one[0].1[0] - one[one.len() - 2].1[0] > 0.02, "nothing is learnt: {one:?}");
    ranks::same(&one, &four);
    assert!(root.join("four/fold-0/predictions.csv").is_file());
}

#[test]
fn a_killed_process_ends_the_other_and_both_continue_from_its_last_step() {
    if ranks::as_rank(finetune) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let me = (HERE, "a_killed_process_ends_the_other_and_both_continue_from_its_last_step");
    drawn(&root.join("data"));
    let run = root.join("run");
    // Rows are written at the ends of epochs.
    let two = ranks::start(me, &Task::new(run.clone(), MANY, 0), 2);
    let (texts, took) = ranks::interrupted(two, &metrics(&run), (1, "-KILL"));
    assert!(took < Duration::from_secs(10), "{took:?}");
    // The state is of the last whole step, not of the end of the last epoch.
    let done = ranks::kept(&texts[0]);
    assert_eq!(ranks::step_of(&state(&run)), done);
    // Compared with two that are not disturbed: at this rate the rounding of one process's sums would show.
    let more = 9;
    let mut four = ranks::start(me, &Task::new(run.clone(), MANY, more), 2);
    four.extend(ranks::start(me, &Task::new(root.join("whole"), MANY, done + more), 2));
    ranks::all_end_well(four);
    let (whole, run) = (curve(&root.join("whole")), curve(&run));
    assert!(whole.last().unwrap().0.split(' ').next().unwrap().parse::<usize>().unwrap() > done);
    ranks::same(&whole, &run);
}

#[test]
fn a_silent_process_ends_the_other() {
    if ranks::as_rank(finetune) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    drawn(&root.join("data"));
    let run = root.join("run");
    let me = (HERE, "a_silent_process_ends_the_other");
    let two = ranks::start(me, &Task::new(run.clone(), MANY, 0), 2);
    let (texts, took) = ranks::interrupted(two, &metrics(&run), (1, "-STOP"));
    // Two seconds of silence; by default it is twenty.
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(texts[0].contains("rank 1 was not heard of"), "{texts:?}");
    assert!(state(&run).is_file());
}
