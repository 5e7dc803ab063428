//! Progress on standard error: a bar on a terminal, a plain line now and then elsewhere.

#![expect(clippy::disallowed_methods, reason = "escapes what it prints")]
use base::text::{plain, plain_lines};
use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
#[cfg(feature = "train")]
use mithras::progress::Reporter;
use mithras::progress::{Event, JsonLog, Listener};
use std::io::{IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Where events go when a process writes them as JSON.
static JSON: OnceLock<JsonLog> = OnceLock::new();

/// How progress is shown.
#[derive(clap::Args, Clone, Debug)]
pub struct LogArgs {
    /// No progress
    #[arg(long, short, conflicts_with = "log")]
    quiet: bool,
    /// text, or json: what happens as lines of JSON on standard error (docs/artifacts.md)
    #[arg(long, value_name = "FORM", value_parser = ["text", "json"])]
    log: Option<String>,
}

impl LogArgs {
    /// The listener; `meters` are for work on one piece at a time.
    pub fn listener(&self, meters: bool) -> Box<dyn Listener> {
        match JSON.get() {
            Some(log) => Box::new(log.clone()),
            None => Box::new(Terminal { quiet: self.quiet, meters, meter: None }),
        }
    }

    /// The same, to be shared.
    #[cfg(feature = "train")]
    pub fn reporter(&self) -> Reporter {
        Reporter::from(self.listener(true))
    }
}

/// The words of the command line as text; what is not UTF-8 in them is written with replacement characters.
pub fn typed_words() -> Vec<String> {
    std::env::args_os().map(|w| w.to_string_lossy().into_owned()).collect()
}

/// Begins a log where the verb that was typed is to write one.
pub fn begin(mut typed: &ArgMatches) {
    while let Some((_, verb)) = typed.subcommand() {
        typed = verb;
    }
    if matches!(typed.try_get_one::<String>("log"), Ok(Some(form)) if form == "json") {
        let (program, process) = (&*mithras::program(), std::process::id());
        let command = &*typed_words().iter().map(|w| mithras::without_query(w)).collect::<Vec<_>>();
        let log = JSON.get_or_init(|| JsonLog::new(stderr()));
        log.write(&Event::Started { program, command, process });
    }
}

/// Ends it, and the process, without what runs at its end: libtorch takes itself apart for as long as it took to start.
pub fn end(code: ExitCode) -> ! {
    let number = (0..=u8::MAX).find(|n| ExitCode::from(*n) == code).unwrap_or(u8::MAX);
    JSON.get().inspect(|log| log.end(number));
    let _ = stdout().flush();
    signal_hook::low_level::exit(i32::from(number))
}

/// Prints a `note`, `warning`, `error` or `hint` on standard error.
pub fn print_message(kind: &str, text: &str) {
    match JSON.get() {
        Some(log) => log.write(&Event::Message { kind, text }),
        None => print_progress(&format!("{kind}: {text}")),
    }
}

/// Prints a line on standard error, escaped. Where that is full or closed, work continues: a log costs no result.
pub fn print_progress(line: &str) {
    let _ = writeln!(stderr(), "{}", plain_lines(line));
}

/// How often a plain line is written.
const EVERY: Duration = Duration::from_secs(10);

/// How far one piece of work is.
struct Meter {
    label: String,
    unit: &'static str,
    /// Text in place of the rate, if any.
    status: Option<String>,
    bar: Option<ProgressBar>,
    started: Instant,
    printed: Instant,
    quiet: bool,
}

impl Meter {
    /// A meter for `label`, counting `unit`s. `quiet` shows nothing at all.
    fn new(label: impl Into<String>, unit: &'static str, quiet: bool) -> Self {
        let label = label.into();
        let bar = (!quiet && stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(8));
            let style = ProgressStyle::with_template(
                "{prefix:24!} {bar:32.cyan/blue} {pos:>6}/{len:6} {msg} {eta:>5} left",
            )
            .expect("a template that parses")
            .progress_chars("━╸─");
            bar.set_style(style);
            bar.set_prefix(plain(&label).into_owned());
            bar
        });
        let now = Instant::now();
        Self { label, unit, status: None, bar, started: now, printed: now, quiet }
    }

    /// `done` of `total` units.
    fn update(&mut self, done: u64, total: u64) {
        let rate = done as f64 / self.started.elapsed().as_secs_f64().max(1e-3);
        let status = self.status.clone().unwrap_or_else(|| format!("{rate:.1}/s"));
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
            bar.set_message(format!("{} {}", self.unit, plain(&status)));
        } else if !self.quiet && self.printed.elapsed() >= EVERY {
            self.printed = Instant::now();
            print_progress(&format!("{}: {done}/{total} {}, {status}", self.label, self.unit));
        }
    }

    /// Prints above the bar.
    fn suspend(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Clears the bar.
    fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Progress of a run on the terminal: one meter per slide, one line for what came of it. Quiet shows notes alone.
struct Terminal {
    quiet: bool,
    meters: bool,
    meter: Option<Meter>,
}

impl Terminal {
    fn above(&self, print: impl FnOnce()) {
        match &self.meter {
            Some(meter) => meter.suspend(print),
            None => print(),
        }
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

    fn status(&mut self, text: &str) {
        if let Some(meter) = &mut self.meter {
            meter.status = Some(text.to_owned());
        }
    }

    fn finish(&mut self) {
        if let Some(meter) = self.meter.take() {
            meter.finish();
        }
    }

    fn report(&mut self, line: &str) {
        if !self.quiet {
            self.above(|| print_progress(line));
        }
    }

    fn note(&mut self, text: &str) {
        self.above(|| print_message("note", text));
    }
}
