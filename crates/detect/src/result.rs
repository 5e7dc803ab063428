//! What a run gives.

use crate::flaw::{Flaw, Flawed};
use crate::grid::WindowAt;
use mitosis::count::CountError;
use mitosis::{Candidate, Count, Detection, Level0, Mm2, OperatingPoint, Point, Resolution};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// Everything found on one slide.
#[derive(Clone, Debug, PartialEq)]
pub struct SlideResult {
    /// Every candidate with its scores, accepted or not, in reading order of the first pixel
    /// of its region.
    pub candidates: Vec<SlideCandidate>,
    /// Where areas are flawed, and how much.
    pub flawed: Flawed,
    /// Candidates whose crop could not be read, so that they have no second score and are not
    /// detections.
    pub unclassified: Vec<Unclassified>,
    /// Windows that could not be read.
    pub unread: Vec<UnreadWindow>,
    /// Tissue inside windows that were read.
    pub analysed: Mm2,
    /// Tissue inside planned windows, but in none that was read.
    pub unread_area: Mm2,
    /// Windows of the plan.
    pub windows: usize,
    /// Windows taken over from a stored state instead of being computed by this run.
    pub resumed_windows: usize,
    /// Busy time per stage, in the order of the flow.
    pub stages: Vec<StageReport>,
    /// Time from start to end.
    pub wall: Duration,
}

impl SlideResult {
    /// Leaves the candidates at wanted places alone; areas stay as they are.
    pub fn retain(&mut self, mut wanted: impl FnMut(Point<Level0>) -> bool) {
        self.candidates.retain(|c| wanted(c.detection.candidate.centroid));
        self.unclassified.retain(|u| wanted(u.candidate.centroid));
    }

    /// Those of the planned windows that were read.
    #[must_use]
    pub fn windows_read(&self, planned: &[WindowAt]) -> BTreeSet<WindowAt> {
        let unread: BTreeSet<WindowAt> = self.unread.iter().map(|u| u.at).collect();
        planned.iter().copied().filter(|w| !unread.contains(w)).collect()
    }

    /// The scores and places of all candidates.
    pub fn detections(&self) -> impl Iterator<Item = &Detection> {
        self.candidates.iter().map(|c| &c.detection)
    }

    /// The detections on tissue that the threshold pair accepts.
    pub fn accepted(&self, point: &OperatingPoint) -> impl Iterator<Item = &Detection> {
        self.candidates.iter().filter(|c| c.counts(point)).map(|c| &c.detection)
    }

    /// Hotspot and density of the accepted detections.
    ///
    /// # Errors
    /// [`CountError::NoArea`] when no tissue was read.
    pub fn count(
        &self,
        point: &OperatingPoint,
        resolution: &Resolution,
    ) -> Result<Count, CountError> {
        let figures: Vec<_> = self.accepted(point).map(|d| d.candidate.centroid).collect();
        Count::new(&figures, resolution, self.analysed, self.unread_area)
    }
}

/// A candidate with its scores, and what is known of where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlideCandidate {
    /// Its place and scores.
    pub detection: Detection,
    /// It is more than [`TISSUE_MARGIN_UM`](crate::TISSUE_MARGIN_UM) outside the tissue, and never accepted.
    pub outside_tissue: bool,
    /// What is wrong with the area it is in; it counts all the same.
    pub flaw: Option<Flaw>,
}

impl SlideCandidate {
    /// Whether it counts: the threshold pair accepts it, and it is on tissue.
    #[must_use]
    pub fn counts(&self, point: &OperatingPoint) -> bool {
        !self.outside_tissue && point.accepts(&self.detection)
    }
}

/// A candidate without a second score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unclassified {
    /// Centroid and first-stage score.
    pub candidate: Candidate,
    /// Why its crop could not be read.
    pub reason: String,
}

/// A window left out of the analysed area.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnreadWindow {
    /// Its place in the grid.
    pub at: WindowAt,
    /// Upper left corner in level-0 pixels.
    pub min: Point<Level0>,
    /// Lower right corner in level-0 pixels, clipped to the slide.
    pub max: Point<Level0>,
    /// Message of the reader's error.
    pub reason: String,
}

/// How busy a stage was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StageReport {
    /// `decode`, `segment`, `stitch` (with extraction), `crop`, `classify`.
    pub stage: &'static str,
    /// Windows or candidates handled.
    pub items: u64,
    /// Threads that the stage had.
    pub threads: usize,
    /// Time at work, summed over the threads.
    pub busy: Duration,
}

impl StageReport {
    /// Share of the run's time the stage was at work, 0 to 1.
    #[must_use]
    pub fn busy_share(&self, wall: Duration) -> f64 {
        let available = wall.as_secs_f64() * self.threads as f64;
        if available > 0.0 { (self.busy.as_secs_f64() / available).min(1.0) } else { 0.0 }
    }
}
