//! Per-term figures of a pretraining run: `terms.csv`, `terms.svg`, TensorBoard events, the live line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::events::{Events, Scalar};
use super::step::{StepResult, TermValue};
use crate::error::{Result, TrainError};
use crate::plot::lines;
use crate::text::write_text;
use base::table::{Format, Table};
use pages::charts::Series;

/// What the loop measured at one step.
pub(super) struct Measured {
    /// Steps done.
    pub step: usize,
    /// Learning rate.
    pub rate: f64,
    /// Gradient norm before clipping.
    pub norm: f64,
    /// Time spent waiting for the loader.
    pub waited: Duration,
}

/// The logs of one run.
pub(super) struct TermLog {
    dir: PathBuf,
    writes: bool,
    names: Vec<String>,
    rows: Vec<Vec<f64>>,
    events: Option<Events>,
    clock: Instant,
    waited: Duration,
    steps: usize,
    done: usize,
}

const FIXED: [&str; 5] = ["step", "lr", "grad_norm", "images_per_s", "wait_share"];

impl TermLog {
    /// Opens the logs; rows after step `start` (of a run that was killed) are dropped.
    pub fn open(dir: &Path, start: usize, writes: bool) -> Result<Self> {
        let path = dir.join("terms.csv");
        let (mut names, mut rows) = (vec![], vec![]);
        if writes && start > 0 && path.is_file() {
            let format = Format { no_rows: true, ..Format::default() };
            let table = Table::read(&path, &format);
            let table = table.map_err(|e| TrainError::run(&path, e.to_string()))?;
            names = table.names().iter().skip(FIXED.len()).cloned().collect();
            for line in 0..table.len() {
                let cells = (0..table.names().len()).map(|column| table.cell(line, column));
                let row: std::result::Result<Vec<f64>, _> = cells.map(str::parse).collect();
                let malformed = || format!("malformed line {}", table.line(line));
                let row = row.map_err(|_| TrainError::run(&path, malformed()))?;
                if row[0] <= start as f64 {
                    rows.push(row);
                }
            }
        }
        let events = writes.then(|| Events::create(dir)).transpose()?;
        Ok(Self {
            dir: dir.to_path_buf(),
            writes,
            names,
            rows,
            events,
            clock: Instant::now(),
            waited: Duration::ZERO,
            steps: 0,
            done: 0,
        })
    }

    /// Takes one step in; every `log_every` steps and at the last a row is written. Gives the live
    /// line's tail.
    pub fn step(
        &mut self,
        m: &Measured,
        found: &StepResult,
        (batch, log_every): (usize, usize),
        last: bool,
    ) -> Result<String> {
        self.waited += m.waited;
        self.steps += 1;
        self.done += 1;
        let seconds = self.clock.elapsed().as_secs_f64().max(1e-9);
        let share = self.waited.as_secs_f64() / seconds;
        let speed = (self.steps * batch) as f64 / seconds;
        let mut note = String::new();
        for TermValue { name, value } in &found.terms {
            let _ = write!(note, "{name} {value:.4}, ");
        }
        let _ = write!(note, "loader wait {:.0} %", 100.0 * share);
        if self.writes && (m.step.is_multiple_of(log_every) || last) {
            if self.names.is_empty() {
                self.names = std::iter::once("total")
                    .chain(found.terms.iter().map(|t| t.name))
                    .map(str::to_string)
                    .collect();
            }
            let mut row = vec![m.step as f64, m.rate, m.norm, speed, share, found.total];
            row.extend(found.terms.iter().map(|t| t.value));
            let tags: Vec<String> = FIXED[1..]
                .iter()
                .map(|n| format!("run/{n}"))
                .chain(self.names.iter().map(|n| format!("loss/{n}")))
                .collect();
            let values: Vec<Scalar<'_>> =
                tags.iter().zip(&row[1..]).map(|(tag, &value)| Scalar { tag, value }).collect();
            if let Some(events) = &mut self.events {
                events.scalars(m.step, &values)?;
            }
            self.rows.push(row);
            self.write()?;
            self.clock = Instant::now();
            (self.waited, self.steps) = (Duration::ZERO, 0);
        }
        Ok(note)
    }

    fn write(&self) -> Result<()> {
        let head: Vec<&str> =
            FIXED.iter().copied().chain(self.names.iter().map(String::as_str)).collect();
        let mut text = head.join(",");
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(f64::to_string).collect();
            let _ = write!(text, "\n{}", cells.join(","));
        }
        text.push('\n');
        write_text(&self.dir.join("terms.csv"), &text)?;
        let points = |i| self.rows.iter().map(move |r| (r[0], r[FIXED.len() + i]));
        let series = self.names.iter().enumerate().map(|(i, name)| Series {
            name: name.clone(),
            points: points(i).filter(|p| p.1.is_finite()).collect(),
        });
        write_text(&self.dir.join("terms.svg"), &lines(series.collect()))
    }
}
