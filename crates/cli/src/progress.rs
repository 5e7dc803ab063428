//! Progress on standard error: a bar on a terminal, a plain line now and then elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mithras::progress::Listener;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// How often a plain line is written.
const EVERY: Duration = Duration::from_secs(10);

/// How far one piece of work is.
pub struct Meter {
    label: String,
    unit: &'static str,
    bar: Option<ProgressBar>,
    started: Instant,
    said: Instant,
    quiet: bool,
}

impl Meter {
    /// A meter for `label`, counting `unit`s. `quiet` shows nothing at all.
    pub fn new(label: impl Into<String>, unit: &'static str, quiet: bool) -> Self {
        let label = label.into();
        let bar = (!quiet && stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(8));
            let style = ProgressStyle::with_template(
                "{prefix:24!} {bar:32.cyan/blue} {pos:>6}/{len:6} {msg} {eta:>5} left",
            )
            .expect("a template that parses")
            .progress_chars("━╸─");
            bar.set_style(style);
            bar.set_prefix(label.clone());
            bar
        });
        let now = Instant::now();
        Self { label, unit, bar, started: now, said: now, quiet }
    }

    /// `done` of `total` units.
    pub fn update(&mut self, done: u64, total: u64) {
        let rate = done as f64 / self.started.elapsed().as_secs_f64().max(1e-3);
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
            bar.set_message(format!("{} {rate:.1}/s", self.unit));
        } else if !self.quiet && self.said.elapsed() >= EVERY {
            self.said = Instant::now();
            eprintln!("{}: {done}/{total} {}, {rate:.1}/s", self.label, self.unit);
        }
    }

    /// Clears the bar.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Progress of a run on the terminal: one meter per slide, one line for what came of it.
pub struct Terminal {
    quiet: bool,
    meters: bool,
    meter: Option<Meter>,
}

impl Terminal {
    /// `quiet` shows notes alone; `meters` are for work on one slide at a time.
    pub fn new(quiet: bool, meters: bool) -> Self {
        Self { quiet, meters, meter: None }
    }
}

impl Listener for Terminal {
    fn begin(&mut self, label: &str, unit: &'static str) {
        self.meter = Some(Meter::new(label, unit, self.quiet || !self.meters));
    }

    fn update(&mut self, done: u64, total: u64) {
        if let Some(meter) = &mut self.meter {
            meter.update(done, total);
        }
    }

    fn finish(&mut self) {
        if let Some(meter) = self.meter.take() {
            meter.finish();
        }
    }

    fn say(&mut self, line: &str) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }

    fn note(&mut self, text: &str) {
        eprintln!("note: {text}");
    }
}
