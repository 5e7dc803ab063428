//! Candidates from a probability map: threshold, opening, connected regions; or local peaks.
//!
//! Extraction works on rows of foreground runs and never needs the whole map: the streaming
//! pipeline feeds it pixel rows as they become final, [`extract`] feeds it the rows of one map.
//! Both give the same answer because they are the same code, and every sum is kept in whole
//! numbers, so that no order of additions can change a bit.

mod opening;
mod peaks;
mod region;
mod regions;
mod rows;

pub use region::RawCandidate;
pub(crate) use region::Region;
pub(crate) use rows::SparseRow;

use mitosis::{ProbMap, Score};
use opening::Opening;
use peaks::Peaks;
use regions::Regions;
use serde::{Deserialize, Serialize};

/// How candidates are taken from a probability map; every field is part of the model card.
///
/// A pixel is foreground when its probability is `>= threshold` and above zero. Outside the map, and
/// where no window was read, everything is background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum CandidateRule {
    /// The paper's methods section: foreground, morphological opening with a square of side
    /// `2 * opening_radius + 1`, 8-connected regions of at least `min_area_px` pixels after the
    /// opening; position = centroid of the pixel centres, `s_seg` = mean probability.
    Regions {
        /// Probability from which a pixel is foreground, in [0, 1].
        threshold: Score,
        /// Radius of the opening in pixels; 0 leaves the foreground as it is.
        opening_radius: u32,
        /// Smallest region kept, in pixels.
        min_area_px: u64,
    },
    /// The paper's dataset section: a foreground pixel is a peak when no pixel within Chebyshev
    /// distance `min_distance_px` is higher and none of them that comes earlier in reading order
    /// is equal, so that a plateau has one peak and two peaks are always further apart. `s_seg` is
    /// the probability there.
    Peaks {
        /// Probability from which a pixel is foreground, in [0, 1].
        threshold: Score,
        /// Half side of the neighbourhood in pixels; at least 1.
        min_distance_px: u32,
    },
}

impl CandidateRule {
    pub(crate) fn threshold(&self) -> f32 {
        self.lowest().get()
    }

    /// The foreground threshold: no candidate has a lower `s_seg`.
    #[must_use]
    pub fn lowest(&self) -> Score {
        match self {
            Self::Regions { threshold, .. } | Self::Peaks { threshold, .. } => *threshold,
        }
    }

    /// The same with another foreground threshold.
    #[must_use]
    pub fn from_threshold(self, threshold: Score) -> Self {
        match self {
            Self::Regions { opening_radius, min_area_px, .. } => {
                Self::Regions { threshold, opening_radius, min_area_px }
            }
            Self::Peaks { min_distance_px, .. } => Self::Peaks { threshold, min_distance_px },
        }
    }
}

/// Takes the rows of a map in order, one after the other from row 0, and gives regions as soon as
/// no later row can change them. Its state is small and can be stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Extractor {
    Regions { opening: Opening, regions: Regions, min_area: u64 },
    Peaks(Peaks),
}

impl Extractor {
    pub(crate) fn new(rule: &CandidateRule) -> Self {
        match *rule {
            CandidateRule::Regions { opening_radius, min_area_px, .. } => Self::Regions {
                opening: Opening::new(opening_radius),
                regions: Regions::default(),
                min_area: min_area_px,
            },
            CandidateRule::Peaks { min_distance_px, .. } => {
                Self::Peaks(Peaks::new(min_distance_px))
            }
        }
    }

    /// Whether this is an extractor of `rule`.
    pub(crate) fn fits(&self, rule: &CandidateRule) -> bool {
        match (self, rule) {
            (
                Self::Regions { opening, min_area, .. },
                CandidateRule::Regions { opening_radius, min_area_px, .. },
            ) => opening.radius() == *opening_radius && min_area == min_area_px,
            (Self::Peaks(peaks), CandidateRule::Peaks { min_distance_px, .. }) => {
                peaks.distance() == (*min_distance_px).max(1)
            }
            _ => false,
        }
    }

    /// The next row of the map.
    pub(crate) fn push(&mut self, row: SparseRow, done: &mut Vec<Region>) {
        match self {
            Self::Regions { opening, regions, min_area } => {
                let from = done.len();
                if let Some((row, runs)) = opening.push(row) {
                    regions.push(&row, &runs, done);
                }
                drop_small(done, from, *min_area);
            }
            Self::Peaks(peaks) => peaks.push(row, done),
        }
    }

    /// No more rows: everything left is final.
    pub(crate) fn finish(self, done: &mut Vec<Region>) {
        match self {
            Self::Regions { mut opening, mut regions, min_area } => {
                let from = done.len();
                for _ in 0..opening.delay() {
                    if let Some((row, runs)) = opening.push(SparseRow::default()) {
                        regions.push(&row, &runs, done);
                    }
                }
                regions.finish(done);
                drop_small(done, from, min_area);
            }
            Self::Peaks(peaks) => peaks.finish(done),
        }
    }
}

fn drop_small(done: &mut Vec<Region>, from: usize, min_area: u64) {
    let mut at = 0;
    done.retain(|r| {
        at += 1;
        at <= from || r.area >= min_area
    });
}

/// All candidates of one probability map, in reading order of their first pixel.
///
/// Equal to `scipy.ndimage` (threshold, `binary_opening` with a square of ones, `label` with a 3x3
/// of ones, `center_of_mass` + 0.5, `mean`). Values that are NaN are background.
#[must_use]
pub fn extract(map: &ProbMap, rule: &CandidateRule) -> Vec<RawCandidate> {
    let mut extractor = Extractor::new(rule);
    let mut done = Vec::new();
    for values in map.data.chunks(map.width.max(1)) {
        let mut row = SparseRow::default();
        row.push_span(0, values, rule.threshold());
        extractor.push(row, &mut done);
    }
    extractor.finish(&mut done);
    done.sort_unstable_by_key(|r| r.first);
    done.iter().map(Region::candidate).collect()
}

#[cfg(test)]
mod tests;
