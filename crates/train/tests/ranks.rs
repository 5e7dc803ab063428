//! Several processes of one fine-tuning: the curve of one process, and what a dead or silent one
//! leaves. Every rank is this test's own program, started with a launcher's variables.

use corpus::task::{Task, TrainingSet};
use image::{Rgb, RgbImage};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use train::preset::Preset as _;
use train::protocol::{self, FinetunePreset};
use train::run::RunOptions;

/// The folder of a rank's run, for the processes that this test starts.
const RUN: &str = "MITHRAS_TEST_RUN";

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

fn preset(epochs: usize) -> FinetunePreset {
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
    FinetunePreset::load(&path, &set.map(str::to_owned)).unwrap()
}

fn finetune(root: &Path, run: &str, epochs: usize) -> train::Result<()> {
    tch::set_num_threads(1);
    let set = TrainingSet::open(Task::Folder, &root.join("data")).unwrap();
    let options = RunOptions {
        out: root.join(run),
        resume: true,
        device: "cpu".into(),
        init: None,
        allow_partial: false,
        stop_after: 0,
        progress: false,
    };
    protocol::finetune(&preset(epochs), &set, 0, &options)
}

/// What a started rank does: `RUN:EPOCHS` below a root.
fn as_rank() -> bool {
    let Ok(task) = std::env::var(RUN) else { return false };
    let (path, epochs) = task.rsplit_once(':').unwrap();
    let path = Path::new(path);
    let run = path.file_name().unwrap().to_str().unwrap();
    let ended = finetune(path.parent().unwrap(), run, epochs.parse().unwrap());
    if let Err(e) = ended {
        println!("{e}");
        std::process::exit(1);
    }
    true
}

fn start(test: &str, run: &Path, epochs: usize, world: usize) -> Vec<Child> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let here = module_path!().split_once("::").expect("a module of the test binary").1;
    let test = format!("{here}::{test}");
    let rank = |rank: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args([&test, "--exact", "--nocapture"])
            .env(RUN, format!("{}:{epochs}", run.display()))
            .env("OMP_NUM_THREADS", "1")
            .env("MITHRAS_RANK_SILENCE", "2")
            .envs([("WORLD_SIZE", world.to_string()), ("RANK", rank.to_string())])
            .envs([("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port.to_string())])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    (0..world).map(rank).collect()
}

fn said(rank: Child) -> (bool, String) {
    let out = rank.wait_with_output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Step, kind, loss, metric and rate of every row.
fn curve(run: &Path) -> Vec<(String, Vec<f64>)> {
    let text = fs::read_to_string(run.join("fold-0/metrics.csv")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let kind = format!("{} {}", cells[0], cells[1]);
        (kind, cells[2..5].iter().map(|c| c.parse().unwrap_or(f64::NAN)).collect())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn four_processes_have_the_curve_of_one() {
    if as_rank() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    drawn(&root.join("data"));
    let ranks = start("four_processes_have_the_curve_of_one", &root.join("four"), 4, 4);
    finetune(root, "one", 4).unwrap();
    for rank in ranks {
        let (ok, text) = said(rank);
        assert!(ok, "{text}");
    }
    let (one, four) = (curve(&root.join("one")), curve(&root.join("four")));
    assert!(one.len() >= 6 && one.len() == four.len(), "{one:?} {four:?}");
    assert!(one[0].1[0] - one[one.len() - 2].1[0] > 0.02, "nothing is learnt: {one:?}");
    for (a, b) in one.iter().zip(&four) {
        assert_eq!(a.0, b.0);
        for (x, y) in a.1.iter().zip(&b.1).filter(|(x, _)| x.is_finite()) {
            assert!((x - y).abs() < 1e-4 * x.abs().max(1.0), "{a:?} {b:?}");
        }
    }
    assert!(root.join("four/fold-0/predictions.csv").is_file());
}

fn signal(rank: &Child, name: &str) {
    let done = Command::new("kill").args([name, &rank.id().to_string()]).status().unwrap();
    assert!(done.success());
}

/// Two processes; one gets a signal once they train. Gives what the other says, and after how long.
fn interrupted(root: &Path, test: &str, run: &str, name: &str) -> (String, Duration) {
    let mut ranks = start(test, &root.join(run), 5_000, 2);
    let begun = Instant::now();
    // Rows are written at the ends of epochs.
    while !root.join(run).join("fold-0/metrics.csv").is_file() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no epoch ended");
        std::thread::sleep(Duration::from_millis(50));
    }
    let (first, second) = (ranks.remove(0), ranks.remove(0));
    signal(&second, name);
    let sent = Instant::now();
    let (ok, text) = said(first);
    let took = sent.elapsed();
    assert!(!ok, "{text}");
    signal(&second, "-KILL");
    let _ = said(second);
    (text, took)
}

fn state(root: &Path, run: &str) -> PathBuf {
    root.join(run).join("fold-0/state.safetensors")
}

#[test]
fn a_killed_process_ends_the_other_with_its_steps_kept() {
    const ME: &str = "a_killed_process_ends_the_other_with_its_steps_kept";
    if as_rank() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    drawn(&root.join("data"));
    let (text, took) = interrupted(root, ME, "run", "-KILL");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let words = text.split(" steps are whole, and their state is kept").next().unwrap();
    let done: usize =
        words.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{text}"));
    // `save_every` is far away: the state is of the last whole step.
    let file = net::checkpoint::read_tensors(&state(root, "run")).unwrap();
    assert_eq!(file.spec.unwrap().notes["step"], done);
}

#[test]
fn a_silent_process_ends_the_other() {
    const ME: &str = "a_silent_process_ends_the_other";
    if as_rank() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    drawn(&root.join("data"));
    let (text, took) = interrupted(root, ME, "run", "-STOP");
    // Two seconds of silence; by default it is twenty.
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(text.contains("rank 1 was not heard of"), "{text}");
    assert!(state(root, "run").is_file());
}
