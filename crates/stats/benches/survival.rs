//! Times of the C-index bootstrap and of a Cox fit on tables that `benches/peer/survival.py` wrote.
//!
//! cargo bench -p mithras-stats --bench survival -- FOLDER
//!
//! One thread; processor time, so that a busy machine does not change the figures. Prints JSON.

#![expect(
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "prints times, reads tables of the peer"
)]

use rayon::ThreadPoolBuilder;
use stats::bootstrap::Plan;
use stats::survival::Survival;
use stats::survival::concordance::Pairs;
use stats::survival::cox::{CoxData, Options, Ties, fit};
use std::path::Path;
use std::time::Instant;

/// Seconds of processor time of this process (wall time where the system has none).
fn seconds(start: Instant) -> f64 {
    std::fs::read_to_string("/proc/self/schedstat")
        .ok()
        .and_then(|s| s.split_whitespace().next()?.parse::<f64>().ok())
        .map_or_else(|| start.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> (f64, T) {
    let start = Instant::now();
    let mut timed = || {
        let before = seconds(start);
        let out = work();
        (seconds(start) - before, out)
    };
    let mut fastest = timed();
    for _ in 1..runs {
        let next = timed();
        if next.0 < fastest.0 {
            fastest = next;
        }
    }
    fastest
}

fn read(path: &Path) -> Vec<Vec<f64>> {
    let mut reader = csv::Reader::from_path(path).expect("table of benches/peer/survival.py");
    reader
        .records()
        .map(|r| r.expect("row").iter().map(|v| v.parse().expect("number")).collect())
        .collect()
}

fn main() {
    let Some(folder) = std::env::args().skip(1).find(|a| !a.starts_with("--")) else {
        eprintln!("SKIPPED: give the folder that benches/peer/survival.py wrote");
        return;
    };
    // Everything runs on the main thread: schedstat counts it alone.
    let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().expect("pool");
    pool.install(|| run(Path::new(&folder)));
}

fn run(folder: &Path) {
    let rows = read(&folder.join("concordance.csv"));
    let column = |rows: &[Vec<f64>], j: usize| rows.iter().map(|r| r[j]).collect::<Vec<_>>();
    let events = |rows: &[Vec<f64>]| rows.iter().map(|r| r[1] == 1.0).collect::<Vec<_>>();
    let outcome = Survival::new(&column(&rows, 0), &events(&rows)).expect("outcome");
    let mut c = Vec::new();
    for (name, risk) in [("continuous", 2), ("counts", 3)] {
        let risk = column(&rows, risk);
        let (time, boot) = best(3, || {
            let pairs = Pairs::new(&outcome, &risk, None, None).expect("pairs");
            pairs.bootstrap(Plan::default()).expect("bootstrap")
        });
        c.push(format!(
            "\"{name}\":{{\"seconds_per_1000\":{time},\"c\":{}}}",
            boot.interval.estimate
        ));
    }
    let rows = read(&folder.join("cox.csv"));
    let (time, event) = (column(&rows, 0), events(&rows));
    let x: Vec<f64> = rows.iter().flat_map(|r| r[2..].to_vec()).collect();
    let mut cox = Vec::new();
    for (name, ties) in [("efron", Ties::Efron), ("breslow", Ties::Breslow)] {
        let options = Options { ties, ..Options::default() };
        let work = || {
            let outcome = Survival::new(&time, &event).expect("outcome");
            let data = CoxData::new(&outcome, &x, 10).expect("data");
            let fitted = fit(&data, &options).expect("fit");
            (fitted.loglik, fitted.concordance(&data).expect("pairs").c_index)
        };
        let (seconds, (loglik, c)) = best(5, work);
        let (alone, _) = best(5, || {
            let outcome = Survival::new(&time, &event).expect("outcome");
            fit(&CoxData::new(&outcome, &x, 10).expect("data"), &options).expect("fit")
        });
        cox.push(format!(
            "\"{name}\":{{\"seconds\":{seconds},\"seconds_fit_alone\":{alone},\
             \"loglik\":{loglik},\"c\":{c}}}"
        ));
    }
    println!("{{\"concordance\":{{{}}},\"cox\":{{{}}}}}", c.join(","), cox.join(","));
}
