//! Listeners, and the pieces of work that report to them.

use super::event::Event;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Something that shows progress: a bar, a log, nothing.
pub trait Listener: Send {
    /// A piece of work begins.
    fn begin(&mut self, label: &str, unit: &'static str);
    /// `done` of `total` units.
    fn update(&mut self, done: u64, total: u64);
    /// Text on the live line, next to the progress; ignored by a listener without such a line.
    fn status(&mut self, text: &str) {
        let _ = text;
    }
    /// The piece of work ended.
    fn finish(&mut self);
    /// The result of the piece of work, in one line.
    fn report(&mut self, line: &str);
    /// Something that a reader should know even of quiet work.
    fn note(&mut self, text: &str);
    /// The same and more for scripts; ignored by a listener for people.
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
    fn report(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
}

/// The same listener for callers that hold it by reference.
impl<L: Listener + ?Sized> Listener for &mut L {
    fn begin(&mut self, label: &str, unit: &'static str) {
        (**self).begin(label, unit);
    }
    fn update(&mut self, done: u64, total: u64) {
        (**self).update(done, total);
    }
    fn status(&mut self, text: &str) {
        (**self).status(text);
    }
    fn finish(&mut self) {
        (**self).finish();
    }
    fn report(&mut self, line: &str) {
        (**self).report(line);
    }
    fn note(&mut self, text: &str) {
        (**self).note(text);
    }
    fn event(&mut self, event: &Event<'_>) {
        (**self).event(event);
    }
}

/// A listener that several threads, or parts of one work, share; clones report to the same one.
#[derive(Clone)]
pub struct Shared<'a>(Arc<Mutex<Box<dyn Listener + 'a>>>);

/// One that may be kept as long as its owner wants.
pub type Reporter = Shared<'static>;

impl<'a> Shared<'a> {
    /// Reports to `listener`.
    #[must_use]
    pub fn new(listener: impl Listener + 'a) -> Self {
        Self::from(Box::new(listener) as Box<dyn Listener + 'a>)
    }

    /// Something that a reader should know.
    pub fn note(&self, text: &str) {
        self.with(|l| l.note(text));
    }

    fn with(&self, report: impl FnOnce(&mut dyn Listener)) {
        report(&mut **self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl<'a> From<Box<dyn Listener + 'a>> for Shared<'a> {
    fn from(listener: Box<dyn Listener + 'a>) -> Self {
        Self(Arc::new(Mutex::new(listener)))
    }
}

/// Reports to nobody.
impl Default for Shared<'_> {
    fn default() -> Self {
        Self::new(Silent)
    }
}

impl fmt::Debug for Shared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reporter")
    }
}

impl Listener for Shared<'_> {
    fn begin(&mut self, label: &str, unit: &'static str) {
        self.with(|l| l.begin(label, unit));
    }
    fn update(&mut self, done: u64, total: u64) {
        self.with(|l| l.update(done, total));
    }
    fn status(&mut self, text: &str) {
        self.with(|l| l.status(text));
    }
    fn finish(&mut self) {
        self.with(|l| l.finish());
    }
    fn report(&mut self, line: &str) {
        self.with(|l| l.report(line));
    }
    fn note(&mut self, text: &str) {
        self.with(|l| l.note(text));
    }
    fn event(&mut self, event: &Event<'_>) {
        self.with(|l| l.event(event));
    }
}

/// Interval of progress events for scripts.
const EVERY: Duration = Duration::from_secs(1);

/// Speed of a piece of work, and when scripts heard of it last.
#[derive(Clone, Debug)]
pub struct Pace {
    unit: &'static str,
    from: u64,
    start: Instant,
    last_event: Option<Instant>,
    /// The last event was of all units.
    complete: bool,
}

impl Pace {
    /// Work that begins now with `from` units done before.
    #[must_use]
    pub fn new(unit: &'static str, from: u64) -> Self {
        Self { unit, from, start: Instant::now(), last_event: None, complete: false }
    }

    /// Reports `done` of `total` units of the piece `name`; to scripts at most once a second, and when the last
    /// unit is done.
    pub fn update(&mut self, listener: &mut dyn Listener, name: &str, done: u64, total: u64) {
        listener.update(done, total);
        let now = Instant::now();
        let recent = self.last_event.is_some_and(|last| now - last < EVERY);
        if recent && (done < total || self.complete) {
            return;
        }
        self.complete = done >= total;
        self.last_event = Some(now);
        let new = done.saturating_sub(self.from);
        let rate = new as f64 / (now - self.start).as_secs_f64().max(1e-3);
        let left = total.saturating_sub(done) as f64;
        let round = |v: f64| (v * 1e3).round() / 1e3;
        listener.event(&Event::Progress {
            of: name,
            done,
            total,
            unit: self.unit,
            rate: round(rate),
            eta_seconds: (new > 0).then(|| round(left / rate)),
        });
    }
}

/// A piece of work under way, for example one slide among several at once.
pub struct Piece<'a> {
    listener: &'a mut dyn Listener,
    name: &'a str,
    pace: Pace,
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
        Self { listener, name, pace: Pace::new(unit, 0) }
    }

    /// `done` of `total` units.
    pub fn update(&mut self, done: u64, total: u64) {
        self.pace.update(self.listener, self.name, done, total);
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

/// Parts of the piece report to the piece itself: they neither begin nor end it.
impl Listener for Piece<'_> {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, done: u64, total: u64) {
        Piece::update(self, done, total);
    }
    fn status(&mut self, text: &str) {
        self.listener.status(text);
    }
    fn finish(&mut self) {}
    fn report(&mut self, line: &str) {
        self.listener.report(line);
    }
    fn note(&mut self, text: &str) {
        self.listener.note(text);
    }
    fn event(&mut self, event: &Event<'_>) {
        self.listener.event(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that was heard, as text.
    #[derive(Default)]
    struct Heard(Vec<String>);

    impl Listener for Heard {
        fn begin(&mut self, label: &str, unit: &'static str) {
            self.0.push(format!("begin {label} {unit}"));
        }
        fn update(&mut self, done: u64, total: u64) {
            self.0.push(format!("update {done}/{total}"));
        }
        fn status(&mut self, text: &str) {
            self.0.push(format!("status {text}"));
        }
        fn finish(&mut self) {
            self.0.push("finish".into());
        }
        fn report(&mut self, line: &str) {
            self.0.push(format!("report {line}"));
        }
        fn note(&mut self, text: &str) {
            self.0.push(format!("note {text}"));
        }
        fn event(&mut self, event: &Event<'_>) {
            if let Event::Progress { of, done, total, .. } = event {
                self.0.push(format!("event {of} {done}/{total}"));
            }
        }
    }

    #[test]
    fn a_shared_listener_forwards_every_call() {
        let mut heard = Heard::default();
        {
            let listener: &mut dyn Listener = &mut heard;
            let mut shared = Shared::new(listener);
            let mut other = shared.clone();
            shared.begin("a", "tiles");
            other.update(1, 2);
            other.status("warm");
            shared.report("done");
            other.note("odd");
            shared.finish();
        }
        let wanted = ["begin a tiles", "update 1/2", "status warm", "report done", "note odd"];
        assert_eq!(heard.0[..5], wanted);
        assert_eq!(heard.0[5..], ["finish"]);
    }

    #[test]
    fn a_part_of_a_piece_reports_to_it_and_does_not_end_it() {
        let mut heard = Heard::default();
        let mut piece = Piece::begin(&mut heard, "[1/2] a", "a", "windows");
        let part: &mut dyn Listener = &mut piece;
        part.begin("inner", "tiles");
        part.update(2, 2);
        part.note("odd");
        part.finish();
        piece.finish();
        let wanted = ["begin [1/2] a windows", "update 2/2", "event a 2/2", "note odd", "finish"];
        assert_eq!(heard.0, wanted);
    }
}
