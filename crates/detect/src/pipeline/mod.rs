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

mod done;
mod flow;
mod second;
mod shared;
mod stages;

use done::Done;

use crate::candidates::Extractor;
use crate::checkpoint::{Checkpoint, VERSION, run_digest};
use crate::control::Control;
use crate::error::DetectError;
use crate::grid::WindowAt;
use crate::kept::{FirstStage, FirstStageFile};
use crate::recipe::{Job, Recipe};
use crate::result::SlideResult;
use crate::source::{TileSource, WorkingFrame};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded, unbounded};
pub(crate) use flow::Run;
use flow::{Event, Item};
use mitosis::{Classifier, Segmenter};
use shared::{Meter, Shared, StopOnDrop};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

/// See [`Detector::run`](crate::Detector::run); `resume` is checked, not trusted.
#[expect(clippy::too_many_lines, reason = "the stages and their channels, joined in one place")]
pub(crate) fn run(
    run: &Run<'_>,
    segmenter: &mut dyn Segmenter,
    classifier: Option<&mut dyn Classifier>,
    resume: Option<Checkpoint>,
    watched: &mut Control<'_>,
) -> Result<SlideResult, DetectError> {
    let &Run { source, job, recipe, workers } = run;
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
        let run = Watched { source, digest: &digest, control, max_candidates: workers.candidates };
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
    Ok(done.result(run, &frame, &windows, stages, start.elapsed()))
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
    let unread = |w: &WindowAt| done.unread.iter().any(|u| u.at == *w);
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
    max_candidates: usize,
}

/// The caller's thread: progress, storing, cancelling.
fn watch(
    events: &Receiver<Event>,
    done: &mut Done,
    Watched { source, digest, control, max_candidates }: Watched<'_>,
    watched: &mut Control<'_>,
) {
    let total = done.windows_total;
    watched.update(done.windows_done, total);
    loop {
        if watched.cancel.is_cancelled() {
            control.fail(DetectError::Cancelled);
        }
        match events.recv_timeout(Duration::from_millis(50)) {
            Ok(Event::Unread(window)) => done.unread.push(window),
            Ok(Event::Flawed(window)) => done.flawed.push(window),
            Ok(Event::WindowDone) => {
                done.windows_done += 1;
                watched.update(done.windows_done, total);
            }
            Ok(Event::Scored(scored)) => {
                done.scored.push(scored);
                if done.scored.len() > max_candidates {
                    control.fail(DetectError::Candidates(max_candidates));
                }
                watched.update(done.windows_done, total);
            }
            Ok(Event::UnitEnd(stored)) => {
                let Some(store) = &mut watched.store else { continue };
                // The first stage runs ahead: what it found in later rows is not part of the unit.
                let unread = done.unread.iter().filter(|u| u.at.row < stored.next_row);
                let flawed = done.flawed.iter().filter(|f| f.at.row < stored.next_row);
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
