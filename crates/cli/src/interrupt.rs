//! Ctrl-C ends work cleanly; a second one ends at once.

use anyhow::{Context, Result};
use detect::CancelToken;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

/// SIGHUP, a terminal that closes; Windows has no such signal.
const HANGUP: Option<i32> = if cfg!(unix) { Some(1) } else { None };

/// From here on Ctrl-C, a scheduler's wish to end and a terminal that closes set `cancel`.
pub fn cancels(cancel: &CancelToken) -> Result<()> {
    // `nohup` asks that a terminal that closes ends nothing.
    let hangup = HANGUP.filter(|signal| !is_ignored(*signal));
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        register_conditional_shutdown(signal, 128 + signal, cancel.flag())
            .and_then(|_| register(signal, cancel.flag()))
            .context("cannot listen for Ctrl-C")?;
    }
    Ok(())
}

/// Whether this process was started with a signal ignored; assumed where the system does not state it.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}
