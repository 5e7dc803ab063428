//! Slurm's own programs.

use super::error::SlurmError;
use std::path::Path;
use std::process::{Command, Output};

fn call(program: &'static str, words: &[&str]) -> Result<Output, SlurmError> {
    let output = Command::new(program).args(words).output();
    output.map_err(|source| SlurmError::Program { program, source })
}

/// What a program printed, where it went well.
fn capture_stdout(program: &'static str, words: &[&str]) -> Result<String, SlurmError> {
    let output = call(program, words)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(SlurmError::Refused { program, reason })
}

/// Submits the job file, or those tasks of it alone; gives the job's number.
pub(super) fn submit(file: &Path, array: Option<&str>) -> Result<String, SlurmError> {
    let array = array.map(|a| format!("--array={a}"));
    let mut words = vec!["--parsable"];
    words.extend(array.as_deref());
    let file = file.to_string_lossy();
    words.push(&file);
    let text = capture_stdout("sbatch", &words)?;
    // NUMBER, or NUMBER;CLUSTER.
    let job = text.trim().split(';').next().unwrap_or_default();
    if job.is_empty() || !job.bytes().all(|b| b.is_ascii_digit()) {
        let reason = format!("it printed `{}`, which is not a job number", text.trim());
        return Err(SlurmError::Refused { program: "sbatch", reason });
    }
    Ok(job.to_owned())
}

/// How many tasks of a job have not ended; `None` where the queue does not answer just now.
pub(super) fn waiting(job: &str) -> Result<Option<usize>, SlurmError> {
    match capture_stdout("squeue", &["--noheader", "--array", "--jobs", job, "--format=%T"]) {
        Ok(text) => Ok(Some(text.lines().filter(|l| !l.trim().is_empty()).count())),
        // It forgets jobs some minutes after their end.
        Err(SlurmError::Refused { reason, .. }) if reason.contains("Invalid job id") => Ok(Some(0)),
        Err(SlurmError::Refused { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// How Slurm saw a task end, in its word, where one of its programs still knows.
pub(super) fn state(job: &str, task: u32) -> Option<String> {
    let name = format!("{job}_{task}");
    let by_accounts = capture_stdout(
        "sacct",
        &["--noheader", "--allocations", "--parsable2", "--jobs", &name, "--format=State"],
    );
    let word = |text: &str| text.split_whitespace().next().map(str::to_owned);
    by_accounts.ok().and_then(|t| word(&t)).or_else(|| {
        let text = capture_stdout("scontrol", &["--oneliner", "show", "job", &name]).ok()?;
        word(text.split_once("JobState=")?.1)
    })
}
