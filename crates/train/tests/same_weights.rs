//! One seed, one network: each trainer's weights are the same bytes when it runs again, and when a
//! run is cut and resumed; another seed gives others.

use std::fs;
use std::path::Path;

use crate::common::options;
use crate::{common, loops, pretrain_ranks, protocol};
use base::digest::sha256;
use regions::task::{Task, TrainingSet};
use train::pretrain::{self, ENCODER};
use train::run::{MODEL, RunOptions};
use train::{finetune, segment};

/// SHA-256 of the tensors that a run hands on, in order of their names.
fn digest(file: &Path) -> String {
    let read = net::checkpoint::read_tensors(file).unwrap();
    let mut all = Vec::new();
    for (name, tensor) in &read.tensors {
        all.extend(name.bytes());
        let values = Vec::<f32>::try_from(tensor.reshape([-1])).unwrap();
        all.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    }
    sha256(all)
}

/// Runs whole, again whole, cut after three steps and resumed; and with another seed.
fn check(name: &str, dir: &Path, model: &str, run: &dyn Fn(u64, &RunOptions) -> train::Result<()>) {
    tch::set_num_threads(1);
    let made = |out: &str, seed: u64, cuts: &[usize]| {
        let out = dir.join(name).join(out);
        for (i, stop) in cuts.iter().enumerate() {
            run(seed, &options(out.clone(), i > 0, *stop)).unwrap();
        }
        digest(&out.join(model))
    };
    let whole = made("whole", 1, &[0]);
    println!("{name}: {whole}");
    assert_eq!(made("again", 1, &[0]), whole, "{name} again");
    assert_eq!(made("cut", 1, &[3, 0]), whole, "{name} resumed");
    assert_ne!(made("other", 2, &[0]), whole, "{name} with another seed");
}

fn seeded(seed: u64) -> String {
    format!("train.seed={seed}")
}

#[test]
fn stages_of_a_detector_repeat_their_weights() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    loops::drawn_data(&data);
    let source = loops::source(&data);
    check("segment", dir.path(), MODEL, &|seed, o| {
        segment::run(&loops::segment_preset(&[&seeded(seed)]), &source, "A01", o)
    });
    check("finetune", dir.path(), MODEL, &|seed, o| {
        let preset = loops::finetune_preset(&[&seeded(seed)]);
        let mined = [finetune::Mined { frame: "A00_00".into(), x: 200.0, y: 60.0 }];
        finetune::run(&preset, &source, "A01", &mined, o)
    });
}

#[test]
fn a_task_repeats_its_weights() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    common::drawn(&data);
    let set = TrainingSet::open(Task::Folder, &data).unwrap();
    check("task", dir.path(), &format!("fold-0/{MODEL}"), &|seed, o| {
        let keys = [&seeded(seed)[..], "balance=1.0", "train.ema=0.9"];
        train::protocol::finetune(&protocol::preset(protocol::VIT, &keys), &set, 0, o)
    });
}

#[test]
fn pretraining_repeats_its_weights() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = dir.path().join("corpus");
    fs::create_dir_all(&corpus).unwrap();
    pretrain_ranks::drawn(&corpus);
    check("pretrain", dir.path(), ENCODER, &|seed, o| {
        let mut preset = pretrain_ranks::preset(2);
        preset.train.seed = seed;
        pretrain::run(&preset, &corpus, 1, o)
    });
}
