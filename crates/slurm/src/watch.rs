//! Submitting, watching, once more, gathering.

use super::error::SlurmError;
use super::queue;
use super::script::{Plan, Written, written};
use super::shards::{Log, Part, failed, left, refused};
use base::digest::sha256;
use base::text::Many;
use detect::CancelToken;
use mithras::progress::{Listener, Piece};
use mithras::report::{self, RunFile};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The schema of what was submitted.
const SCHEMA: &str = "mithras.slurm/1";
/// Its file.
const FILE: &str = "jobs.json";
/// Time between two looks at the queue, of a job that is older than some minutes.
const POLL: Duration = Duration::from_secs(15);
/// How long the queue may be silent on end before watching ends.
const SILENCE: Duration = Duration::from_secs(900);

/// What was submitted for one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Jobs {
    schema: String,
    /// SHA-256 of the job file.
    file: String,
    /// The first submission, and the second one of what failed.
    rounds: Vec<Round>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Round {
    job: String,
    shards: Vec<u32>,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// The tables' content.
    pub run: RunFile,
    /// Slides of the list.
    pub slides: usize,
    /// Of them, those that are not done, or are in a shard whose task refused to work.
    pub left: usize,
}

/// Writes the job file, submits it, watches it, submits the shards that failed once more, and gathers.
/// If a job of the same file is running, it is watched instead. When `cancel` is set, watching
/// ends and the job continues.
///
/// # Errors
/// [`SlurmError`]. The result lists the slides that are not done in the end.
pub fn run(
    plan: &Plan,
    listener: &mut dyn Listener,
    cancel: &CancelToken,
) -> Result<Ended, SlurmError> {
    let Written { file, slides, shards: of } = written(plan)?;
    let mut jobs = under_way(plan, &file)?;
    if let Some(round) = jobs.rounds.last() {
        listener.note(&format!("job {} is under way, and watched", round.job));
    } else {
        submit(plan, &file, &mut jobs, (1..=of.get()).collect(), listener)?;
    }
    loop {
        let Some(round) = jobs.rounds.last().cloned() else { unreachable!("one was submitted") };
        wait(&round, listener, cancel)?;
        let parts = Part::all(&slides, plan, of);
        let log = |k| Log::read(&plan.out, &round.job, k);
        let again = failed(&round.shards, &left(&parts), log);
        for &k in &again {
            listener.note(&why(&plan.out, &round.job, (k, of.get())));
        }
        if again.is_empty() || jobs.rounds.len() > 1 {
            let refused = refused(&round.shards, &parts, log);
            let left = parts.iter().filter(|p| !p.is_done() || refused.contains(&p.shard)).count();
            if let Some(&k) = refused.first().filter(|_| left == slides.len()) {
                return Err(SlurmError::Tasks { first: why(&plan.out, &round.job, (k, of.get())) });
            }
            let run = report::gather(&outs(plan, of), Some(&plan.out));
            let run = run.map_err(SlurmError::Gather)?;
            return Ok(Ended { run, slides: slides.len(), left });
        }
        submit(plan, &file, &mut jobs, again, listener)?;
    }
}

/// The folders with results: of the shards that have any, where each has its own.
fn outs(plan: &Plan, of: NonZeroU32) -> Vec<PathBuf> {
    let shards = if plan.split { of.get() } else { 1 };
    let parts: Vec<PathBuf> =
        (1..=shards).map(|k| plan.results(k)).filter(|p| p.is_dir()).collect();
    if parts.is_empty() { vec![plan.out.clone()] } else { parts }
}

/// The jobs that were submitted with this very file and have not ended; without any, a value without a round.
fn under_way(plan: &Plan, file: &Path) -> Result<Jobs, SlurmError> {
    let text = base::file::read_whole(file)
        .map_err(|source| SlurmError::Io { path: file.to_owned(), source })?;
    let none = Jobs { schema: SCHEMA.into(), file: sha256(text), rounds: Vec::new() };
    let path = plan.folder().join(FILE);
    if !path.exists() {
        return Ok(none);
    }
    let jobs: Jobs = base::json::read_schema(&path, SCHEMA)?;
    let Some(round) = jobs.rounds.last().filter(|_| jobs.file == none.file) else {
        return Ok(none);
    };
    Ok(if queue::waiting(&round.job)? == Some(0) { none } else { jobs })
}

fn submit(
    plan: &Plan,
    file: &Path,
    jobs: &mut Jobs,
    shards: Vec<u32>,
    listener: &mut dyn Listener,
) -> Result<(), SlurmError> {
    let some = (!jobs.rounds.is_empty()).then(|| {
        let numbers: Vec<String> = shards.iter().map(ToString::to_string).collect();
        plan.array(&numbers.join(","))
    });
    let job = queue::submit(file, some.as_deref())?;
    listener.note(&format!("job {job} submitted, {}", Many(shards.len(), "shard")));
    jobs.rounds.push(Round { job, shards });
    // Only needed to watch it again; a disk that is full just now must not end this.
    if let Err(e) = base::json::write(&plan.folder().join(FILE), jobs) {
        listener.note(&format!("the job's number is not kept: {e}"));
    }
    Ok(())
}

/// Until no task of it waits or runs.
fn wait(
    round: &Round,
    listener: &mut dyn Listener,
    cancel: &CancelToken,
) -> Result<(), SlurmError> {
    let total = round.shards.len() as u64;
    let mut piece = Piece::begin(listener, "shards", "slurm", "shards");
    let start = Instant::now();
    let mut heard = start;
    loop {
        match queue::waiting(&round.job)? {
            Some(0) => break,
            Some(n) => {
                heard = Instant::now();
                piece.update(total.saturating_sub(n as u64), total);
            }
            None if heard.elapsed() > SILENCE => {
                let reason = format!("no answer for {} s", SILENCE.as_secs());
                return Err(SlurmError::Refused { program: "squeue", reason });
            }
            None => {}
        }
        // Often at first, so that short jobs and wrong ones are seen soon.
        let (look, poll) = (Instant::now(), (start.elapsed() / 20).clamp(POLL / 30, POLL));
        while look.elapsed() < poll {
            if cancel.is_cancelled() {
                return Err(SlurmError::Stopped { job: round.job.clone() });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    piece.update(total, total);
    piece.finish();
    Ok(())
}

/// Why a shard is not done, as text.
fn why(out: &Path, job: &str, (k, of): (u32, u32)) -> String {
    let log = Log::read(out, job, k);
    let code = log.code.map_or_else(|| "no exit code".to_owned(), |c| format!("exit code {c}"));
    let state = queue::state(job, k).map_or_else(String::new, |s| format!(", {s}"));
    let why = log.why.map_or_else(String::new, |w| format!(": {w}"));
    format!("shard {k}/{of} is not done ({code}{state}){why}")
}
