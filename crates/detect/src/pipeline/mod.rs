//! Decode, segment, stitch and extract, crop, classify: five stages that overlap, joined by bounded
//! channels.
//!
//! ```text
//! readers ──tiles──▶ segment ──maps──▶ assemble ──regions──▶ crop ──crops──▶ classify
//!    ▲                  │                  │                                    │
//!    └─────tokens───────┘                  └───────────── events ───────────────┴──▶ caller
//! ```
//!
//! Only readers work out of order; the segment stage puts windows back into row-major order, and
//! everything behind it is sequential. Readers hold a token per window, so a slow window cannot let
//! the others run ahead without bound. A failing stage notes its error, sets `stop` and drops its
//! channels; every other stage then finds its channel closed and ends, so nothing can hang.

mod flow;
mod second;
mod shared;
mod stages;

use crate::area::{self, TISSUE_MARGIN_UM};
use crate::candidates::Extractor;
use crate::checkpoint::{Checkpoint, Scored, Second, VERSION, run_digest};
use crate::control::Control;
use crate::error::DetectError;
use crate::flaw::{FlawMap, Squares, Verdicts};
use crate::grid::WindowAt;
use crate::kept::{FirstStage, FirstStageFile};
use crate::recipe::{Job, Recipe, Workers};
use crate::result::{SlideCandidate, SlideResult, StageReport, Unclassified, UnreadWindow};
use crate::source::{TileSource, WorkingFrame};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded, unbounded};
use flow::{Event, Item};
use mitosis::suppression::{ScoredPoint, suppress_neighbours};
use mitosis::{Candidate, Classifier, Detection, Microns, Mm2, Physical, Point, Score, Segmenter};
use shared::{Meter, Shared, StopOnDrop};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

/// One run over a slide.
pub(crate) struct Run<'a> {
    pub(crate) source: &'a dyn TileSource,
    pub(crate) job: &'a Job<'a>,
    pub(crate) recipe: &'a Recipe,
    pub(crate) workers: &'a Workers,
}

/// See [`Detector::run`](crate::Detector::run); `resume` is checked, not trusted.
#[expect(clippy::too_many_lines, reason = "the stages and their channels, joined in one place")]
pub(crate) fn run(
    of: &Run<'_>,
    segmenter: &mut dyn Segmenter,
    classifier: Option<&mut dyn Classifier>,
    resume: Option<Checkpoint>,
    watched: &mut Control<'_>,
) -> Result<SlideResult, DetectError> {
    let &Run { source, job, recipe, workers } = of;
    let start = Instant::now();
    recipe.check()?;
    let frame = WorkingFrame::at_resolution(source, recipe.mpp)?;
    let windows = planned(job, recipe, &frame)?;
    let second = second::Second::new(source, recipe, classifier)?;
    let digest = run_digest(recipe, job, &windows, source.dimensions());
    if let Some(state) = &resume {
        state.check(&digest, recipe)?;
        source.mark_suspect(&state.suspect);
    }
    let first = watched.kept.as_ref();
    let first = first.map(|kept| FirstStageFile::new(kept, recipe, &windows, source, &frame));
    let kept = first.as_ref().and_then(|first| kept(first, watched));
    let (mut done, kept) = match kept {
        Some(kept) => (Done::with_first_stage(&windows, kept.flawed), Some(kept.regions)),
        None => (Done::new(windows.len(), resume), None),
    };
    let begun_with_candidates = kept.is_some();
    let items = match begun_with_candidates {
        true => Vec::new(),
        false => items(&windows, &done, workers.unit_windows),
    };
    let first_row = done.next_row;
    let extractor = done.extractor.take().unwrap_or_else(|| Extractor::new(&recipe.candidates));
    let control = Shared::default();
    let readers = workers.readers.max(1);
    let meters = meters(readers);
    let unread_before = done.unread.len();

    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&control);
        let (control, meters, items) = (&control, &meters, &items[..]);
        let in_flight = workers.in_flight.max(1);
        let (token_back, tokens) = bounded(in_flight);
        (0..in_flight).for_each(|_| token_back.send(()).expect("room for all tokens"));
        let (tile_out, tiles) = bounded(in_flight);
        let (map_out, maps) = bounded(2);
        let (region_out, regions) = bounded(1024);
        let (crop_out, crops) = bounded(64);
        let (event_out, events) = unbounded();

        let next = std::sync::Arc::new(AtomicUsize::new(0));
        for _ in 0..readers {
            let (next, tokens, tile_out) = (next.clone(), tokens.clone(), tile_out.clone());
            let stage =
                stages::Read { source, recipe, items, frame: frame.frame, meter: &meters[0] };
            control.spawn(scope, "decode", move || stage.run(&next, &tokens, &tile_out, control));
        }
        drop((tokens, tile_out));
        let stage = stages::Segment {
            items,
            recipe,
            planned: windows.len(),
            unread: unread_before,
            batch: workers.segment_batch.max(1),
            meter: &meters[1],
            events: event_out.clone(),
        };
        control.spawn(scope, "segment", move || {
            stage.run(segmenter, &tiles, &token_back, &map_out, control)
        });
        let stage = stages::Assemble {
            items,
            recipe,
            frame: frame.frame,
            kept,
            meter: &meters[2],
            events: event_out.clone(),
        };
        control.spawn(scope, "stitch", move || {
            stage.run(first_row, extractor, &maps, &region_out, control)
        });
        second.spawn(
            scope,
            control,
            (&meters[3], &meters[4]),
            workers.classify_batch.max(1),
            second::Channels { regions, crop_out, crops_in: crops, events: event_out },
        );
        let run = Watched { source, digest: &digest, control, most: workers.candidates };
        watch(&events, &mut done, run, watched);
    });

    if let Some(error) = control.failure() {
        return Err(error);
    }
    if !done.ended {
        return Err(DetectError::Panicked { stage: "watch", message: "no stage ended".into() });
    }
    if let Some(first) = first.filter(|_| !begun_with_candidates) {
        save_first_stage(&first, &done, source, watched);
    }
    let stages = meters.iter().map(Meter::report).collect();
    Ok(done.result(of, &frame, &windows, stages, start.elapsed()))
}

/// The candidates that are kept of this slide, if they can be used.
fn kept(first: &FirstStageFile, watched: &mut Control<'_>) -> Option<FirstStage> {
    first.load().unwrap_or_else(|reason| {
        watched.note(&format!("{reason}; the first stage runs again"));
        None
    })
}

/// Keeps what the first stage gave where nothing is missing or in doubt: what was once unread may be read another time.
fn save_first_stage(
    first: &FirstStageFile,
    done: &Done,
    source: &dyn TileSource,
    watched: &mut Control<'_>,
) {
    if !done.unread.is_empty() || !source.suspect().is_empty() {
        return;
    }
    if let Err(e) = first.save(&done.scored, &done.flawed) {
        watched.note(&format!("the candidates are not kept: {e}"));
    }
}

/// One for each stage, in the order of the flow.
fn meters(readers: usize) -> [Meter; 5] {
    [
        Meter::new("decode", readers),
        Meter::new("segment", 1),
        Meter::new("stitch", 1),
        Meter::new("crop", 1),
        Meter::new("classify", 1),
    ]
}

/// The windows in row-major order, each once, each inside the frame.
fn planned(
    job: &Job<'_>,
    recipe: &Recipe,
    frame: &WorkingFrame,
) -> Result<Vec<WindowAt>, DetectError> {
    let windows: BTreeSet<WindowAt> = job.windows.iter().copied().collect();
    let stride = u64::from(recipe.grid.stride());
    let outside = |w: &&WindowAt| {
        u64::from(w.col) * stride >= u64::from(frame.frame.width)
            || u64::from(w.row) * stride >= u64::from(frame.frame.height)
    };
    if let Some(w) = windows.iter().find(outside) {
        return Err(DetectError::Recipe(format!(
            "window row {}, column {} is outside the slide, which has {} x {} px at {}",
            w.row, w.col, frame.frame.width, frame.frame.height, recipe.mpp
        )));
    }
    Ok(windows.into_iter().collect())
}

/// What is left to read: the unfinished rows, and before them the last finished row once more.
fn items(windows: &[WindowAt], done: &Done, unit_windows: usize) -> Vec<Item> {
    let first = windows.partition_point(|w| w.row < done.next_row);
    let unread = |w: &WindowAt| done.unread.iter().any(|(at, _)| at == w);
    let warm = windows[..first]
        .iter()
        .filter(|w| w.row + 1 == done.next_row && !unread(w))
        .map(|&at| Item { at, warm: true, unit_end: false });
    let mut items: Vec<Item> = warm.collect();
    let mut in_unit = 0;
    for (i, &at) in windows.iter().enumerate().skip(first) {
        in_unit += 1;
        let row_end = windows.get(i + 1).is_none_or(|w| w.row != at.row);
        let unit_end = row_end && in_unit >= unit_windows.max(1);
        if unit_end {
            in_unit = 0;
        }
        items.push(Item { at, warm: false, unit_end });
    }
    items
}

/// What the caller's thread watches over.
struct Watched<'a> {
    source: &'a dyn TileSource,
    /// Of the run.
    digest: &'a str,
    control: &'a Shared,
    /// Candidates that a slide may have.
    most: usize,
}

/// The caller's thread: progress, storing, cancelling.
fn watch(
    events: &Receiver<Event>,
    done: &mut Done,
    Watched { source, digest, control, most }: Watched<'_>,
    watched: &mut Control<'_>,
) {
    let total = done.windows_total;
    watched.update(done.windows_done, total);
    loop {
        if watched.cancel.is_cancelled() {
            control.fail(DetectError::Cancelled);
        }
        match events.recv_timeout(Duration::from_millis(50)) {
            Ok(Event::Unread(at, reason)) => {
                done.unread.push((at, reason));
            }
            Ok(Event::Flawed(at, flaws)) => done.flawed.push((at, flaws)),
            Ok(Event::WindowDone) => {
                done.windows_done += 1;
                watched.update(done.windows_done, total);
            }
            Ok(Event::Scored(scored)) => {
                done.scored.push(scored);
                if done.scored.len() > most {
                    control.fail(DetectError::Candidates(most));
                }
                watched.update(done.windows_done, total);
            }
            Ok(Event::UnitEnd(stored)) => {
                let Some(store) = &mut watched.store else { continue };
                // The first stage runs ahead: what it found in later rows is not part of the unit.
                let unread = done.unread.iter().filter(|u| u.0.row < stored.next_row);
                let flawed = done.flawed.iter().filter(|f| f.0.row < stored.next_row);
                let state = Checkpoint {
                    version: VERSION,
                    run: digest.to_owned(),
                    next_row: stored.next_row,
                    extractor: stored.extractor,
                    done: done.scored.clone(),
                    unread: unread.cloned().collect(),
                    flawed: flawed.cloned().collect(),
                    suspect: source.suspect(),
                };
                if let Err(e) = store.save(&state) {
                    control.fail(e.into());
                }
            }
            Ok(Event::End) => done.ended = true,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// What the caller's thread has gathered.
struct Done {
    next_row: u32,
    extractor: Option<Extractor>,
    scored: Vec<Scored>,
    unread: Vec<(WindowAt, String)>,
    flawed: Vec<(WindowAt, Verdicts)>,
    windows_done: u64,
    windows_total: u64,
    resumed: bool,
    ended: bool,
}

impl Done {
    /// Everything but the second stage.
    fn with_first_stage(windows: &[WindowAt], flawed: Vec<(WindowAt, Verdicts)>) -> Self {
        let all = windows.len();
        Self {
            next_row: windows.last().map_or(0, |w| w.row + 1),
            flawed,
            windows_done: all as u64,
            resumed: true,
            ..Self::new(all, None)
        }
    }

    fn new(windows_total: usize, resume: Option<Checkpoint>) -> Self {
        let empty = Self {
            next_row: 0,
            extractor: None,
            scored: Vec::new(),
            unread: Vec::new(),
            flawed: Vec::new(),
            windows_done: 0,
            windows_total: windows_total as u64,
            resumed: false,
            ended: false,
        };
        match resume {
            None => empty,
            Some(state) => Self {
                next_row: state.next_row,
                extractor: Some(state.extractor),
                scored: state.done,
                unread: state.unread,
                flawed: state.flawed,
                resumed: true,
                ..empty
            },
        }
    }

    fn result(
        mut self,
        &Run { source, job, recipe, .. }: &Run<'_>,
        frame: &WorkingFrame,
        windows: &[WindowAt],
        stages: Vec<StageReport>,
        wall: Duration,
    ) -> SlideResult {
        self.scored.sort_by_key(|s| s.region.first);
        self.unread.sort();
        let all: BTreeSet<_> = windows.iter().copied().collect();
        let unread: BTreeSet<_> = self.unread.iter().map(|u| u.0).collect();
        let read = &all - &unread;
        let squares = Squares::new(recipe.grid, recipe.mpp);
        let map = FlawMap::new(squares, recipe.grid, &read, self.flawed);
        let (mut candidates, mut unclassified) = (Vec::new(), Vec::new());
        let mut places = Vec::new();
        for Scored { region, second } in self.scored {
            let raw = region.candidate();
            let candidate = Candidate { centroid: frame.to_level0(raw.at), s_seg: raw.s_seg };
            let s_cls = match second {
                Second::None => None,
                Second::Bits(bits) => Score::new(f32::from_bits(bits)).ok(),
                Second::Unread(reason) => {
                    unclassified.push(Unclassified { candidate, reason });
                    continue;
                }
            };
            candidates.push(SlideCandidate {
                detection: Detection { candidate, s_cls },
                outside_tissue: job
                    .tissue
                    .is_some_and(|t| !t.near(candidate.centroid, TISSUE_MARGIN_UM)),
                flaw: map.at(raw.at.x, raw.at.y),
            });
            places.push(Point::new(raw.at.x * recipe.mpp.get(), raw.at.y * recipe.mpp.get()));
        }
        if let Some(um) = recipe.min_separation_um {
            let mut kept = separated(&candidates, &places, Microns(um)).into_iter();
            candidates.retain(|_| kept.next() == Some(true));
        }
        let flawed = map.list(frame, job.tissue);
        let analysed = area::area(&read, recipe.grid, frame, job.tissue);
        let planned = area::area(&all, recipe.grid, frame, job.tissue);
        let (w, h) = source.dimensions();
        let side = |n: u32, scale: f64| f64::from(n) * f64::from(recipe.grid.stride()) * scale;
        let reach = f64::from(recipe.grid.window());
        let unread = self.unread.into_iter().map(|(at, reason)| {
            let (x, y) = (side(at.col, frame.scale.0), side(at.row, frame.scale.1));
            let right = (x + reach * frame.scale.0).min(w as f64);
            let bottom = (y + reach * frame.scale.1).min(h as f64);
            UnreadWindow { at, min: Point::new(x, y), max: Point::new(right, bottom), reason }
        });
        SlideResult {
            candidates,
            flawed,
            unclassified,
            unread: unread.collect(),
            analysed,
            unread_area: Mm2((planned.0 - analysed.0).max(0.0)),
            windows: windows.len(),
            resumed_windows: windows.partition_point(|w| self.resumed && w.row < self.next_row),
            stages,
            wall,
        }
    }
}

/// Which candidates stay where those near each other are one division; `places` in um. What is outside tissue is never
/// accepted, so it takes nothing away.
fn separated(
    candidates: &[SlideCandidate],
    places: &[Point<Physical>],
    radius: Microns,
) -> Vec<bool> {
    let inside: Vec<usize> =
        (0..candidates.len()).filter(|&i| !candidates[i].outside_tissue).collect();
    let scored = inside.iter().map(|&i| {
        let d = &candidates[i].detection;
        ScoredPoint { at: places[i], score: d.s_cls.unwrap_or(d.candidate.s_seg) }
    });
    let kept = suppress_neighbours(&scored.collect::<Vec<_>>(), radius);
    let mut stays = vec![true; candidates.len()];
    for (i, kept) in inside.into_iter().zip(kept) {
        stays[i] = kept;
    }
    stays
}
