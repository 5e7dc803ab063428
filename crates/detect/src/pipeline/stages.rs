//! First stage: read windows, segment them, stitch and extract.

use super::flow::{Event, Item, Pixels, ReadWindow, Segmented, Stored};
use super::shared::{Meter, Shared};
use crate::candidates::{Extractor, Region, SparseRow};
use crate::error::{DetectError, ReadError};
use crate::flaw::Squares;
use crate::grid::Frame;
use crate::recipe::Recipe;
use crate::source::TileSource;
use crate::stitch::{Sink, Stitcher};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use mitosis::{ProbMap, Rect, RgbTile, Segmenter};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Between the assembling stage and the second stage.
pub(super) enum StageOutput {
    Region(Region),
    UnitEnd(Box<Stored>),
    End,
}

/// One of several readers.
#[derive(Clone, Copy)]
pub(super) struct Read<'a> {
    pub(super) source: &'a dyn TileSource,
    pub(super) recipe: &'a Recipe,
    pub(super) items: &'a [Item],
    pub(super) frame: Frame,
    pub(super) meter: &'a Meter,
}

impl Read<'_> {
    pub(super) fn run(
        self,
        next: &AtomicUsize,
        tokens: &Receiver<()>,
        out: &Sender<ReadWindow>,
        control: &Shared,
    ) -> Result<(), DetectError> {
        let grid = self.recipe.grid;
        let (side, stride) = (grid.window() as usize, i64::from(grid.stride()));
        let squares = Squares::new(grid, self.recipe.mpp);
        // The token comes before the window: the reader of the earliest window can continue.
        while tokens.recv().is_ok() && !control.stopped() {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = self.items.get(i) else { break };
            let (x, y) = (i64::from(item.at.col) * stride, i64::from(item.at.row) * stride);
            // What is outside the slide is white and means nothing.
            let left = |end: u32, from: i64| (i64::from(end) - from).max(0) as usize;
            let inside = (left(self.frame.width, x), left(self.frame.height, y));
            let read = self.meter.time(1, || {
                let mpp = self.recipe.mpp;
                let tile = self.source.read_at(mpp, Rect::new(x, y, side, side))?;
                // Later windows begin right of this part or below it.
                self.source.passed(mpp, Rect::new(x, y, stride as usize, stride as usize));
                // A window that is read again was judged before.
                let flaws = if item.warm { None } else { squares.classify(&tile, inside) };
                Ok(Pixels { tile, flaws })
            });
            if out.send(ReadWindow { item: i, read }).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Puts windows in order and asks the model, a batch at a time.
pub(super) struct Segment<'a> {
    pub(super) items: &'a [Item],
    pub(super) recipe: &'a Recipe,
    pub(super) planned: usize,
    /// Unread before this run.
    pub(super) unread: usize,
    pub(super) batch: usize,
    pub(super) meter: &'a Meter,
    pub(super) events: Sender<Event>,
}

impl Segment<'_> {
    pub(super) fn run(
        mut self,
        model: &mut dyn Segmenter,
        tiles: &Receiver<ReadWindow>,
        tokens: &Sender<()>,
        out: &Sender<Segmented>,
        control: &Shared,
    ) -> Result<(), DetectError> {
        let mut early: BTreeMap<usize, _> = BTreeMap::new();
        // The batch under way: windows in order, without the unread ones, and their tiles.
        let (mut held, mut batch): (Vec<(usize, bool)>, Vec<RgbTile>) = (Vec::new(), Vec::new());
        for (i, item) in self.items.iter().enumerate() {
            let tile = loop {
                if let Some(tile) = early.remove(&i) {
                    break tile;
                }
                // A reader that stops may leave this window to nobody, so the wait must end by itself.
                match tiles.recv_timeout(Duration::from_millis(20)) {
                    Ok(ReadWindow { item, read }) => drop(early.insert(item, read)),
                    Err(RecvTimeoutError::Timeout) if !control.stopped() => {}
                    Err(_) => return Ok(()),
                }
            };
            // There is a place for every token, so this cannot block; no reader left is not an error.
            let _ = tokens.send(());
            held.push((i, tile.is_ok()));
            match tile {
                Ok(Pixels { tile, flaws }) => {
                    batch.push(tile);
                    if let Some(flaws) = flaws {
                        let _ = self.events.send(Event::Flawed((item.at, flaws).into()));
                    }
                }
                Err(e @ ReadError::File(_)) => return Err(e.into()),
                Err(e) if item.warm => {
                    return Err(DetectError::Checkpoint(format!(
                        "a window that was read before cannot be read now ({e})"
                    )));
                }
                Err(ReadError::Damaged(reason)) => {
                    let _ = self.events.send(Event::Unread((item.at, reason.clone()).into()));
                    self.unread(reason)?;
                }
            }
            // All windows of a unit are through before its state is stored.
            if batch.len() == self.batch || item.unit_end || i + 1 == self.items.len() {
                if control.stopped() {
                    return Ok(());
                }
                let maps = if batch.is_empty() {
                    Vec::new()
                } else {
                    self.meter.time(batch.len(), || self.predict(model, &batch))?
                };
                batch.clear();
                let mut maps = maps.into_iter();
                for (i, read) in held.drain(..) {
                    let map = if read { maps.next() } else { None };
                    if out.send(Segmented { item: i, map }).is_err() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn unread(&mut self, reason: String) -> Result<(), DetectError> {
        self.unread += 1;
        let allowed = self.recipe.max_unread_share;
        if self.unread as f64 > allowed * self.planned as f64 {
            return Err(DetectError::Unread {
                unread: self.unread,
                planned: self.planned,
                allowed,
                first: reason,
            });
        }
        Ok(())
    }

    fn predict(
        &self,
        model: &mut dyn Segmenter,
        tiles: &[RgbTile],
    ) -> Result<Vec<ProbMap>, DetectError> {
        let stage = "segment";
        let maps =
            model.probabilities(tiles).map_err(|source| DetectError::Model { stage, source })?;
        let wrong = |reason: String| Err(DetectError::Answer { stage, reason });
        if maps.len() != tiles.len() {
            return wrong(format!("{} maps for {} windows", maps.len(), tiles.len()));
        }
        let side = self.recipe.grid.window() as usize;
        for map in &maps {
            if (map.width, map.height, map.data.len()) != (side, side, side * side) {
                return wrong(format!(
                    "a map of {}x{} ({} values) for a window of {side}x{side}",
                    map.width,
                    map.height,
                    map.data.len()
                ));
            }
            if !map.data.iter().fold(true, |all, p| all & (0.0..=1.0).contains(p)) {
                return wrong("a value that is not a probability in [0, 1]".into());
            }
        }
        Ok(maps)
    }
}

/// Stitches maps and extracts regions.
pub(super) struct Assemble<'a> {
    pub(super) items: &'a [Item],
    pub(super) recipe: &'a Recipe,
    pub(super) frame: Frame,
    /// Candidates of an earlier run, where no window is read.
    pub(super) kept: Option<Vec<Region>>,
    pub(super) meter: &'a Meter,
    pub(super) events: Sender<Event>,
}

/// Final pixels on their way into the extractor: the pixel rows of one row of cells.
pub(crate) struct Rows {
    threshold: f32,
    base: u32,
    rows: Vec<SparseRow>,
    extractor: Extractor,
    done: Vec<Region>,
}

impl Rows {
    pub(crate) fn new(recipe: &Recipe, frame: Frame, row: u32, extractor: Extractor) -> Self {
        let stride = recipe.grid.stride();
        Self {
            threshold: recipe.candidates.threshold(),
            base: row.saturating_mul(stride).min(frame.height),
            rows: vec![SparseRow::default(); stride as usize],
            extractor,
            done: Vec::new(),
        }
    }
}

impl Sink for Rows {
    fn span(&mut self, x: u32, y: u32, values: &[f32]) {
        self.rows[(y - self.base) as usize].push_span(x, values, self.threshold);
    }

    fn rows_done(&mut self, from: u32, to: u32) {
        debug_assert_eq!(from, self.base);
        for row in &mut self.rows[..(to - from) as usize] {
            self.extractor.push(std::mem::take(row), &mut self.done);
        }
        self.base = to;
    }
}

impl Assemble<'_> {
    pub(super) fn run(
        self,
        first_row: u32,
        extractor: Extractor,
        maps: &Receiver<Segmented>,
        out: &Sender<StageOutput>,
        control: &Shared,
    ) -> Result<(), DetectError> {
        if let Some(kept) = self.kept {
            let found = kept.into_iter().map(StageOutput::Region).chain([StageOutput::End]);
            let _ = found.map(|f| out.send(f)).take_while(|sent| sent.is_ok()).count();
            return Ok(());
        }
        let mut stitcher =
            Stitcher::new(self.recipe.grid, self.recipe.overlap, self.frame, first_row);
        let mut rows = Rows::new(self.recipe, self.frame, first_row, extractor);
        for (i, item) in self.items.iter().enumerate() {
            let Ok(Segmented { item: at, map }) = maps.recv() else { return Ok(()) };
            assert_eq!(at, i, "windows come in order");
            let read = usize::from(map.is_some());
            self.meter.time(read, || {
                match map {
                    Some(map) if item.warm => stitcher.prime(item.at.col, &map),
                    Some(map) => stitcher.push(item.at, map, &mut rows),
                    None => {}
                }
                if item.unit_end {
                    stitcher.close_rows(item.at.row + 1, &mut rows);
                }
            });
            if !item.warm && self.events.send(Event::WindowDone).is_err() {
                return Ok(());
            }
            let mut found: Vec<StageOutput> =
                rows.done.drain(..).map(StageOutput::Region).collect();
            if item.unit_end {
                let extractor = rows.extractor.clone();
                let next_row = item.at.row + 1;
                found.push(StageOutput::UnitEnd(Box::new(Stored { next_row, extractor })));
            }
            if found.into_iter().any(|f| out.send(f).is_err()) || control.stopped() {
                return Ok(());
            }
        }
        self.meter.time(0, || {
            stitcher.finish(&mut rows);
            let Rows { extractor, done, .. } = &mut rows;
            std::mem::replace(extractor, Extractor::new(&self.recipe.candidates)).finish(done);
        });
        for region in rows.done {
            if out.send(StageOutput::Region(region)).is_err() {
                return Ok(());
            }
        }
        let _ = out.send(StageOutput::End);
        Ok(())
    }
}
