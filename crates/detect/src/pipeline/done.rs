//! What the caller's thread gathers, and the slide's result of it.

use super::flow::Run;
use crate::area::{self, TISSUE_MARGIN_UM};
use crate::candidates::Extractor;
use crate::checkpoint::{Checkpoint, Scored, Second, Unread};
use crate::flaw::{FlawMap, FlawedWindow, Squares};
use crate::grid::WindowAt;
use crate::result::{SlideCandidate, SlideResult, StageReport, Unclassified, UnreadWindow};
use crate::source::WorkingFrame;
use mitosis::suppression::{ScoredPoint, suppress_neighbours};
use mitosis::{Candidate, Detection, Microns, Mm2, Physical, Point};
use std::collections::BTreeSet;
use std::time::Duration;

/// What the caller's thread has gathered.
pub(super) struct Done {
    pub(super) next_row: u32,
    pub(super) extractor: Option<Extractor>,
    pub(super) scored: Vec<Scored>,
    pub(super) unread: Vec<Unread>,
    pub(super) flawed: Vec<FlawedWindow>,
    pub(super) windows_done: u64,
    pub(super) windows_total: u64,
    pub(super) resumed: bool,
    pub(super) ended: bool,
}

impl Done {
    /// Everything but the second stage.
    pub(super) fn with_first_stage(windows: &[WindowAt], flawed: Vec<FlawedWindow>) -> Self {
        let all = windows.len();
        Self {
            next_row: windows.last().map_or(0, |w| w.row + 1),
            flawed,
            windows_done: all as u64,
            resumed: true,
            ..Self::new(all, None)
        }
    }

    pub(super) fn new(windows_total: usize, resume: Option<Checkpoint>) -> Self {
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

    pub(super) fn result(
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
        let unread: BTreeSet<_> = self.unread.iter().map(|u| u.at).collect();
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
                Second::Score(score) => Some(score),
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
        let unread = self.unread.into_iter().map(|Unread { at, reason }| {
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
