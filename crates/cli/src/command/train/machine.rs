//! What a training runs on, as flags.

use crate::progress::LogArgs;
use mithras::progress::Reporter;

/// Device, threads, and how progress is reported.
#[derive(clap::Args, Clone, Debug)]
pub struct Machine {
    /// auto, cpu, cuda, cuda:N
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Threads of libtorch; 0 = all cores
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    #[command(flatten)]
    log: LogArgs,
}

impl Machine {
    /// Sets the process up, and names the device.
    pub fn set_up(&self) -> String {
        train::set_up(self.threads);
        self.device.clone()
    }

    /// A line for people; `--quiet` and `--log json` leave it out.
    pub fn print(&self, line: &str) {
        self.log.listener(false).report(line);
    }

    /// Receives the progress.
    pub fn reporter(&self) -> Reporter {
        self.log.reporter()
    }
}
