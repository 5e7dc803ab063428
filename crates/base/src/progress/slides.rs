//! How fast many slides go.

use std::time::Instant;

/// How far all slides are, and how long the others will take.
#[derive(Clone, Copy, Debug)]
pub struct SlidePace {
    start: Instant,
    /// All slides.
    pub total: usize,
    /// Slides that are behind us.
    pub past: usize,
    /// Those of them that took time.
    worked: usize,
}

impl SlidePace {
    /// Of so many slides, from now on.
    #[must_use]
    pub fn new(total: usize) -> Self {
        Self { start: Instant::now(), total, past: 0, worked: 0 }
    }

    /// Counts a slide that is behind us, `worked` where it took its time.
    pub fn next(&mut self, worked: bool) -> Self {
        self.past += 1;
        self.worked += usize::from(worked);
        *self
    }

    /// Slides per second; none before one was worked on.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let seconds = self.start.elapsed().as_secs_f64().max(1e-3);
        (self.worked > 0).then(|| self.worked as f64 / seconds)
    }

    /// Seconds that the others will take.
    #[must_use]
    pub fn left(&self) -> Option<f64> {
        self.rate().map(|rate| (self.total - self.past) as f64 / rate)
    }

    /// Slides done and time left, after `; `; empty for a single slide.
    #[must_use]
    pub fn suffix(&self) -> String {
        match (self.total, self.left()) {
            (1, _) => String::new(),
            (total, Some(left)) if self.past < total => {
                format!("; {} of {total} slides, about {} left", self.past, duration(left))
            }
            (total, _) => format!("; {} of {total} slides", self.past),
        }
    }
}

/// Seconds in the two units that matter.
fn duration(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min", s.div_ceil(60)),
        3600..86_400 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::{SlidePace, duration};

    #[test]
    fn kept_slides_take_no_time() {
        let mut pace = SlidePace::new(4);
        assert_eq!(pace.next(false).left(), None);
        let start = pace.start;
        pace.start = start.checked_sub(std::time::Duration::from_secs(60)).unwrap();
        let far = pace.next(true);
        let left = far.left().unwrap();
        assert!((120.0..130.0).contains(&left), "{left}");
        assert_eq!(far.suffix(), "; 2 of 4 slides, about 2 min left");
        pace.next(true);
        assert_eq!(pace.next(true).suffix(), "; 4 of 4 slides");
        assert_eq!(SlidePace::new(1).next(true).suffix(), "");
    }

    #[test]
    fn durations_as_text() {
        let texts = [0.4, 59.4, 61.0, 3600.0, 5400.0, 100_000.0].map(duration);
        assert_eq!(texts, ["0 s", "59 s", "2 min", "1 h 0 min", "1 h 30 min", "1 d 3 h"]);
    }
}
