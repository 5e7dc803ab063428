//! Events as lines of JSON.

use super::event::{Event, SCHEMA, SlideStatus};
use super::listener::Listener;
use serde::Serialize;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Writes each event as one line of JSON, at once and whole. Clones write into the same log. A log that
/// cannot be written stops no work.
#[derive(Clone)]
pub struct JsonLog(Arc<Mutex<Inner>>);

struct Inner {
    to: Box<dyn Write + Send>,
    start: Instant,
    ended: Vec<SlideStatus>,
}

#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    /// Seconds since 1970.
    time: f64,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

impl JsonLog {
    /// A log into `to`.
    #[must_use]
    pub fn new(to: impl Write + Send + 'static) -> Self {
        let (to, start, ended) = (Box::new(to), Instant::now(), Vec::new());
        Self(Arc::new(Mutex::new(Inner { to, start, ended })))
    }

    /// Writes an event, and counts slides that end.
    pub fn write(&self, event: &Event<'_>) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Event::SlideEnded { status, .. } = event {
            inner.ended.push(*status);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = (now.as_secs_f64() * 1e3).round() / 1e3;
        if let Ok(mut line) = serde_json::to_vec(&Line { schema: SCHEMA, time, event }) {
            line.push(b'\n');
            let _ = inner.to.write_all(&line).and_then(|()| inner.to.flush());
        }
    }

    /// Writes the last line: the exit code and how all slides ended.
    pub fn end(&self, exit_code: u8) {
        let (ended, start) = {
            let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            (inner.ended.clone(), inner.start)
        };
        let count = |of: &[SlideStatus]| ended.iter().filter(|s| of.contains(s)).count();
        let kept = count(&[SlideStatus::Kept]);
        self.write(&Event::Ended {
            exit_code,
            done: kept + count(&[SlideStatus::Finished, SlideStatus::NoTissue]),
            kept,
            failed: count(&[SlideStatus::Failed]),
            interrupted: count(&[SlideStatus::Interrupted]),
            elsewhere: count(&[SlideStatus::Elsewhere]),
            seconds: (start.elapsed().as_secs_f64() * 1e3).round() / 1e3,
        });
    }
}

/// Scripts get events only; lines for people are not repeated.
impl Listener for JsonLog {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, _: u64, _: u64) {}
    fn finish(&mut self) {}
    fn report(&mut self, _: &str) {}
    fn note(&mut self, text: &str) {
        self.write(&Event::Message { kind: "note", text });
    }
    fn event(&mut self, event: &Event<'_>) {
        self.write(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Piece;
    use serde_json::Value;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_per_event_and_the_counts_at_the_end() {
        let kept = Kept::default();
        let mut log = JsonLog::new(kept.clone());
        log.note("two\nlines \u{1b}[31m");
        let mut piece = Piece::begin(&mut log, "[1/2] a", "a", "windows");
        piece.update(1, 4);
        // Within the same second, so not written.
        piece.update(2, 4);
        piece.update(4, 4);
        piece.update(4, 4);
        piece.finish();
        for status in [SlideStatus::Finished, SlideStatus::Kept, SlideStatus::Failed] {
            let reason = (status == SlideStatus::Failed).then_some("no room");
            let (slide, eta_seconds) = ("a", Some(1.5));
            let (done, total, rate, seconds) = (1, 3, None, 0.25);
            log.event(&Event::SlideEnded {
                slide,
                status,
                reason,
                seconds,
                done,
                total,
                rate,
                eta_seconds,
            });
        }
        log.end(3);
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert!(lines.iter().all(|l| l["schema"] == SCHEMA && l["time"].as_f64() > Some(1.6e9)));
        let events: Vec<&str> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
        let wanted =
            ["message", "progress", "progress", "slide-ended", "slide-ended", "slide-ended"];
        assert_eq!(events[..6], wanted, "{text}");
        assert_eq!(lines[0]["text"], "two\nlines \u{1b}[31m");
        assert_eq!((&lines[1]["of"], &lines[1]["done"]), (&"a".into(), &1.into()));
        assert_eq!((&lines[2]["done"], &lines[2]["eta_seconds"]), (&4.into(), &0.0.into()));
        assert_eq!(
            (&lines[5]["status"], &lines[5]["reason"]),
            (&"failed".into(), &"no room".into())
        );
        let end = &lines[6];
        let counts = ["exit_code", "done", "kept", "failed", "interrupted", "elsewhere"];
        assert_eq!(counts.map(|c| end[c].as_u64().unwrap()), [3, 2, 1, 1, 0, 0]);
    }
}
