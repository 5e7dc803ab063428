//! Whether the levels of a slide show the same picture.
//!
//! A coarse level is used for the tissue mask, thumbnails and the viewer, level 0 for the count. Where
//! they differ, figures are missed without a trace. So each coarse level is compared with the next
//! finer one at fixed places before it is used, by the mean colour of small squares.

use crate::resample::Axis;
use crate::source::{BACKGROUND, Disagreement};
use crate::{Slide, SlideError};
use base::text::Many;
use mitosis::Rect;
use std::panic::resume_unwind;
use std::sync::PoisonError;
use std::thread::{self, ScopedJoinHandle};

/// Squares per side of the grid of places.
const PLACES: u64 = 6;
/// The same where tiles of the finer level are large, so that few of them are decoded.
const FEW_PLACES: u64 = 3;
/// Pixels of a tile from which on it is large.
const LARGE_TILE: u64 = 1 << 21;
/// Threads that compare at most.
const THREADS: usize = 4;
/// Side of a square, px of the coarse level.
const SIDE: u64 = 16;
/// Mean grey levels by which a channel of one square may differ. Scanners that subsample where others
/// average stay below 10; tissue and glass differ by 60 and more.
const ALLOWED: f64 = 40.0;

impl Slide {
    /// Levels whose pixels contradict those of finer levels at fixed places, coarsest last. The
    /// comparison is made once, when a coarse level is first wanted, and is deterministic.
    ///
    /// # Errors
    /// [`SlideError::Io`] or [`SlideError::Remote`] where the file cannot be read. Tiles that cannot be
    /// decoded are left out of the comparison.
    pub fn disagreements(&self) -> Result<Vec<Disagreement>, SlideError> {
        let mut known = self.agreement.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*known {
            return Ok(found.clone());
        }
        let mut found: Vec<Disagreement> = Vec::new();
        let mut finer = 0;
        for level in 1..self.levels().len() {
            let (differing, compared) = self.compare(level, finer)?;
            if differing > 0 {
                found.push(Disagreement { level, against: finer, differing, compared });
            } else {
                finer = level;
            }
        }
        Ok(known.insert(found).clone())
    }

    /// The level itself, or the next finer one that no finer level contradicts.
    pub(crate) fn trusted(&self, level: usize) -> Result<usize, SlideError> {
        if level == 0 {
            return Ok(0);
        }
        let bad = self.disagreements()?;
        let good = |l: &usize| bad.iter().all(|d| d.level != *l);
        Ok((0..=level).rev().find(good).unwrap_or(0))
    }

    /// Places at which a level differs from a finer one, of those that were compared: on several threads, because
    /// nothing is read before.
    fn compare(&self, level: usize, finer: usize) -> Result<(usize, usize), SlideError> {
        let (own, fine) = (&self.levels()[level], &self.levels()[finer]);
        let large = u64::from(fine.tile_width) * u64::from(fine.tile_height) >= LARGE_TILE;
        let places = if large { FEW_PLACES } else { PLACES };
        let side = |extent: u64| SIDE.min(extent);
        let at = |i: u64, extent: u64| {
            let room = extent - side(extent);
            (room * (2 * i + 1) / (2 * places)) as i64
        };
        let (w, h) = (side(own.width) as usize, side(own.height) as usize);
        let place = |i: u64| Rect::new(at(i % places, own.width), at(i / places, own.height), w, h);
        let all: Vec<Rect> = (0..places * places).map(place).collect();
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        let counted: Vec<_> = thread::scope(|scope| {
            let some = all.chunks(all.len().div_ceil(threads));
            let started: Vec<_> =
                some.map(|some| scope.spawn(|| self.compare_places(level, finer, some))).collect();
            started.into_iter().map(ScopedJoinHandle::join).collect()
        });
        let (mut differing, mut compared) = (0, 0);
        for counted in counted {
            let own = counted.unwrap_or_else(|panic| resume_unwind(panic))?;
            (differing, compared) = (differing + own.0, compared + own.1);
        }
        Ok((differing, compared))
    }

    /// The same at some places.
    fn compare_places(
        &self,
        level: usize,
        finer: usize,
        places: &[Rect],
    ) -> Result<(usize, usize), SlideError> {
        let (own, fine) = (&self.levels()[level], &self.levels()[finer]);
        let ax = Axis::new(fine.downsample_x, own.downsample_x, fine.width);
        let ay = Axis::new(fine.downsample_y, own.downsample_y, fine.height);
        let (mut differing, mut compared) = (0, 0);
        for &rect in places {
            // A tile that is left out is filled from the finer level: there is nothing to compare.
            if self.has_absent(level, rect) {
                continue;
            }
            let mut damaged = false;
            let mut skip = |e: SlideError, _| {
                damaged = true;
                if e.is_tile() { Ok(()) } else { Err(e) }
            };
            let coarse = self.read_pieces(level, rect, &|at| self.stored_piece(at), &mut skip)?;
            let whole = self.read_axes(finer, &ax, &ay, rect, &mut skip)?;
            if damaged {
                continue;
            }
            compared += 1;
            let (a, b) = (mean(&coarse.data), mean(&whole.data));
            differing += usize::from(a.iter().zip(b).any(|(a, b)| (a - b).abs() > ALLOWED));
        }
        Ok((differing, compared))
    }

    /// Whether a rectangle of a level touches a tile that is left out.
    fn has_absent(&self, level: usize, rect: Rect) -> bool {
        let l = &self.levels()[level];
        let (x, y, w, h) = (rect.x as u64, rect.y as u64, rect.width, rect.height);
        let (tw, th) = (u64::from(l.tile_width), u64::from(l.tile_height));
        let columns = x / tw..=(x + w - 1) / tw;
        (y / th..=(y + h - 1) / th)
            .any(|row| columns.clone().any(|column| self.opened.source.absent(level, column, row)))
    }

    /// That it has no colour, in a sentence, where the file has one channel alone.
    #[must_use]
    pub fn colour_note(&self) -> Option<String> {
        let note = "no colour: the file has one channel of grey, and the networks know colour";
        self.opened.source.is_grey().then(|| note.to_owned())
    }

    /// What a reader of the slide's numbers must know of its levels, in sentences.
    #[must_use]
    pub fn level_notes(&self) -> Vec<String> {
        let mut notes = self.opened.source.notes();
        let known = self.agreement.lock().unwrap_or_else(PoisonError::into_inner);
        notes.extend(known.iter().flatten().map(ToString::to_string));
        notes.extend(self.patch_notes());
        let passed = self.passed_over.lock().unwrap_or_else(PoisonError::into_inner);
        notes.extend(passed.iter().map(|(level, tiles)| {
            let tiles = Many(tiles.len(), "tile");
            format!("{tiles} of level {level} cannot be decoded; a finer level was read instead")
        }));
        notes
    }
}

/// Mean of each channel; pixels outside the slide are white on both sides.
fn mean(rgb: &[u8]) -> [f64; 3] {
    let n = (rgb.len() / 3).max(1) as f64;
    let mut sums = [0.0; 3];
    for p in rgb.as_chunks::<3>().0 {
        for (s, v) in sums.iter_mut().zip(p) {
            *s += f64::from(*v);
        }
    }
    if rgb.is_empty() { [f64::from(BACKGROUND); 3] } else { sums.map(|s| s / n) }
}
