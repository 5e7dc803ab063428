//! What a training runs on, as flags.

/// Device and threads.
#[derive(clap::Args, Clone, Debug)]
pub struct Machine {
    /// auto, cpu, cuda, cuda:N
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Threads of libtorch; 0 = all cores
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

impl Machine {
    /// Sets the process up, and names the device.
    pub fn set_up(&self) -> String {
        train::set_up(self.threads);
        self.device.clone()
    }
}
