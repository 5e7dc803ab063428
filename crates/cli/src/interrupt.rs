//! Ctrl-C ends work cleanly; a second one ends at once.

use anyhow::{Context, Result};
use detect::CancelToken;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

/// From here on Ctrl-C and a scheduler's wish to end set `cancel`.
pub fn cancels(cancel: &CancelToken) -> Result<()> {
    for signal in [SIGINT, SIGTERM] {
        register_conditional_shutdown(signal, 128 + signal, cancel.flag())
            .and_then(|_| register(signal, cancel.flag()))
            .context("cannot listen for Ctrl-C")?;
    }
    Ok(())
}
