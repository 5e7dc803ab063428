//! Processes of one training: every rank is the test's own program, started with a launcher's
//! variables.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a rank does, for the processes that a test starts: `RUN:EPOCHS:STOP`.
const TASK: &str = "MITHRAS_TEST_RUN";

/// A run of so many epochs, which this start leaves after so many steps (0: none).
#[derive(Clone, Debug)]
pub struct Task {
    pub run: PathBuf,
    pub epochs: usize,
    pub stop_after: usize,
}

impl Task {
    pub fn new(run: PathBuf, epochs: usize, stop_after: usize) -> Self {
        Self { run, epochs, stop_after }
    }
}

/// Does what this process was started for, where it is a rank.
pub fn as_rank(run: fn(&Task) -> train::Result<()>) -> bool {
    let Ok(task) = std::env::var(TASK) else { return false };
    let parts: Vec<&str> = task.rsplitn(3, ':').collect();
    let [stop, epochs, path] = parts[..] else { panic!("{task}") };
    let task = Task::new(path.into(), epochs.parse().unwrap(), stop.parse().unwrap());
    if let Err(e) = run(&task) {
        println!("{e}");
        std::process::exit(1);
    }
    true
}

/// Starts the ranks of a test, `name` in the module `module_path!()`.
pub fn start((module, name): (&str, &str), task: &Task, world: usize) -> Vec<Child> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let here = module.split_once("::").expect("a module of the test binary").1;
    let test = format!("{here}::{name}");
    let rank = |rank: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args([&test, "--exact", "--nocapture"])
            .env(TASK, format!("{}:{}:{}", task.run.display(), task.epochs, task.stop_after))
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

/// Whether a rank ended well, and its stderr.
pub fn finish(rank: Child) -> (bool, String) {
    let out = rank.wait_with_output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Until all ranks have ended well.
pub fn all_end_well(ranks: Vec<Child>) {
    for rank in ranks {
        let (ok, text) = finish(rank);
        assert!(ok, "{text}");
    }
}

pub fn signal(rank: &Child, name: &str) {
    let done = Command::new("kill").args([name, &rank.id().to_string()]).status().unwrap();
    assert!(done.success());
}

/// Sends one rank a signal once `file` is there. Returns the stderr of the others, and after how long the
/// last of them ended.
pub fn interrupted(
    mut ranks: Vec<Child>,
    file: &Path,
    (victim, name): (usize, &str),
) -> (Vec<String>, Duration) {
    let begun = Instant::now();
    while !file.is_file() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no step was logged");
        std::thread::sleep(Duration::from_millis(50));
    }
    let victim = ranks.remove(victim);
    signal(&victim, name);
    let sent = Instant::now();
    let texts = ranks.into_iter().map(|rank| {
        let (ok, text) = finish(rank);
        assert!(!ok, "{text}");
        text
    });
    let texts = texts.collect();
    let took = sent.elapsed();
    signal(&victim, "-KILL");
    let _ = finish(victim);
    (texts, took)
}

/// The steps that the first rank reports as saved.
pub fn kept(text: &str) -> usize {
    let words = text.split(" steps are whole, and their state is kept").next().unwrap();
    words.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{text}"))
}

/// The step of a run's stored state.
pub fn step_of(state: &Path) -> usize {
    let file = net::checkpoint::read_tensors(state).unwrap();
    file.spec.unwrap().notes["step"].as_u64().unwrap() as usize
}

/// Rows of a table of figures: the cells that are words, joined, and the columns that are compared.
pub fn rows(path: &Path, words: usize, columns: &[usize]) -> Vec<(String, Vec<f64>)> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let of = |&c: &usize| cells[c].parse().unwrap_or(f64::NAN);
        (cells[..words].join(" "), columns.iter().map(of).collect())
    };
    text.lines().skip(1).map(row).collect()
}

/// Asserts that two tables are equal but for the rounding of sums in another order.
pub fn same(one: &[(String, Vec<f64>)], other: &[(String, Vec<f64>)]) {
    assert_eq!(one.len(), other.len(), "{one:?} {other:?}");
    for (a, b) in one.iter().zip(other) {
        assert_eq!(a.0, b.0);
        for (x, y) in a.1.iter().zip(&b.1).filter(|(x, _)| x.is_finite()) {
            assert!((x - y).abs() < 1e-4 * x.abs().max(1.0), "{a:?} {b:?}");
        }
    }
}
