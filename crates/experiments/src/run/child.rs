//! One step as a process.

use super::{Options, Places};
use crate::error::{ExperimentError, Result};
use crate::graph::Step;
use base::file::Lock;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How a process ended.
pub(super) enum End {
    /// With success.
    Well,
    /// With an error, in its own words.
    Badly(String),
    /// Because the run was cancelled.
    Cancelled,
}

/// What a process did.
pub(super) struct Done {
    pub(super) end: End,
    pub(super) peak_mib: Option<u64>,
    pub(super) processor_seconds: Option<f64>,
}

/// Runs a step's command and waits for it. `lock` is the run's, which the process holds as well.
pub(super) fn run(step: &Step, places: &Places, options: &Options, lock: &Lock) -> Result<Done> {
    let words = places.command(step)?;
    let (folder, log) = (places.step(&step.name), places.log(&step.name));
    for dir in [Some(folder.as_path()), log.parent()].into_iter().flatten() {
        std::fs::create_dir_all(dir).map_err(|e| ExperimentError::path(dir, e))?;
    }
    let open = |path: &Path| File::create(path).map_err(|e| ExperimentError::path(path, e));
    let stderr = open(&log)?;
    let out = match &step.stdout {
        Some(name) => open(&folder.join(name))?,
        None => stderr.try_clone().map_err(|e| ExperimentError::path(&log, e))?,
    };
    let mut child = Command::new(&options.program)
        .args(&words)
        // Those of libtorch, and of the workers of commands that have no `--threads`.
        .env("OMP_NUM_THREADS", options.threads.to_string())
        .env("RAYON_NUM_THREADS", options.threads.to_string())
        .stdin(lock.input())
        .stdout(out)
        .stderr(stderr)
        .spawn()
        .map_err(|e| ExperimentError::path(&options.program, e))?;
    let (mut peak_mib, mut processor_seconds) = (None, None);
    let status = loop {
        peak_mib = peak(child.id()).max(peak_mib);
        processor_seconds = self::processor_seconds(child.id()).or(processor_seconds);
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if options.cancel.load(Ordering::Relaxed) => {
                // It may have ended by itself meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(Done { end: End::Cancelled, peak_mib, processor_seconds });
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(e) => return Err(ExperimentError::path(&options.program, e)),
        }
    };
    let end =
        if status.success() { missing(step, &folder) } else { End::Badly(reason(&log, status)) };
    Ok(Done { end, peak_mib, processor_seconds })
}

/// Success, if everything that it should make is there.
fn missing(step: &Step, folder: &Path) -> End {
    match step.makes.iter().find(|m| !folder.join(m).exists()) {
        Some(m) => End::Badly(format!("ended well, but {m} is not in {}", folder.display())),
        None => End::Well,
    }
}

/// The error that a process printed, with the lines that belong to it, or else its last line.
fn reason(log: &Path, status: std::process::ExitStatus) -> String {
    let text = base::file::read_whole(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    // A line of its own begins another part.
    let last = |prefix: &str| {
        let at = lines.iter().rposition(|l| l.starts_with(prefix))?;
        let more = lines[at + 1..].iter().take_while(|l| l.starts_with(' '));
        let whole: Vec<&str> = [lines[at]].into_iter().chain(more.map(|l| l.trim())).collect();
        Some(whole.join(" "))
    };
    let lines: Vec<String> = [last("error:"), last("hint:")].into_iter().flatten().collect();
    if lines.is_empty() {
        let line = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no output");
        format!("{status}: {line} (see {})", log.display())
    } else {
        lines.join("; ")
    }
}

/// Peak memory of a process so far, MiB, where the system reports it.
fn peak(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|l| l.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

/// Seconds that a process has worked on processors so far, where the system reports it (Linux).
fn processor_seconds(pid: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may contain anything. Ticks of user and system time are the 12th and 13th
    // words after it; Linux reports 100 a second. A process that has ended has none.
    let words: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = words.get(11)?.parse::<u64>().ok()? + words.get(12)?.parse::<u64>().ok()?;
    Some(ticks as f64 / 100.0)
}
