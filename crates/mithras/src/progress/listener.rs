//! Listeners, and the pieces of work that they are told of.

use super::event::Event;
use std::time::{Duration, Instant};

/// Something that shows progress: a bar, a log, nothing.
pub trait Listener: Send {
    /// A piece of work begins.
    fn begin(&mut self, label: &str, unit: &'static str);
    /// `done` of `total` units.
    fn update(&mut self, done: u64, total: u64);
    /// The piece of work ended.
    fn finish(&mut self);
    /// What came of it, in one line.
    fn say(&mut self, line: &str);
    /// Something that a reader should know even of quiet work.
    fn note(&mut self, text: &str);
    /// The same and more for scripts; a listener for people leaves it.
    fn event(&mut self, event: &Event<'_>) {
        let _ = event;
    }
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Listener for Silent {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, _: u64, _: u64) {}
    fn finish(&mut self) {}
    fn say(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
}

/// How often scripts are told of progress.
const EVERY: Duration = Duration::from_secs(1);

/// A piece of work under way: one slide among several at once, say.
pub struct Piece<'a> {
    listener: &'a mut dyn Listener,
    name: &'a str,
    unit: &'static str,
    start: Instant,
    said: Option<Instant>,
}

impl<'a> Piece<'a> {
    /// Begins a piece, with a `label` for people and a `name` for scripts.
    pub fn begin(
        listener: &'a mut dyn Listener,
        label: &str,
        name: &'a str,
        unit: &'static str,
    ) -> Self {
        listener.begin(label, unit);
        Self { listener, name, unit, start: Instant::now(), said: None }
    }

    /// `done` of `total` units.
    pub fn update(&mut self, done: u64, total: u64) {
        self.listener.update(done, total);
        let now = Instant::now();
        if done < total && self.said.is_some_and(|said| now - said < EVERY) {
            return;
        }
        self.said = Some(now);
        let rate = done as f64 / (now - self.start).as_secs_f64().max(1e-3);
        let left = total.saturating_sub(done) as f64;
        let round = |v: f64| (v * 1e3).round() / 1e3;
        self.listener.event(&Event::Progress {
            of: self.name,
            done,
            total,
            unit: self.unit,
            rate: round(rate),
            eta_seconds: (done > 0).then(|| round(left / rate)),
        });
    }

    /// Something that a reader should know.
    pub fn note(&mut self, text: &str) {
        self.listener.note(text);
    }

    /// The piece ended.
    pub fn finish(self) {
        self.listener.finish();
    }
}
