//! What a run does (recipe, job) and how fast (workers).

use crate::area::Tissue;
use crate::candidates::CandidateRule;
use crate::error::{DetectError, ReadError};
use crate::grid::{Frame, Grid, WindowAt};
use crate::source::{TileSource, WorkingFrame};
use mitosis::Mpp;
use serde::Serialize;

/// Everything that changes a number; comes from the model card and the preset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recipe {
    /// Resolution of the first stage; windows, candidates and their distances are in its pixels.
    pub mpp: Mpp,
    /// Windows and stride.
    pub grid: Grid,
    /// What a pixel has that several windows cover.
    #[serde(skip_serializing_if = "Overlap::is_mean")]
    pub overlap: Overlap,
    /// From probabilities to candidates.
    pub candidates: CandidateRule,
    /// Of candidates closer than this, um, only the likeliest is kept; `None` keeps all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_separation_um: Option<f64>,
    /// The second stage; `None` for a segmentation-only run.
    pub crops: Option<CropRecipe>,
    /// Largest share of the planned windows that may be unreadable before the slide fails, in
    /// [0, 1]; [`Recipe::MAX_UNREAD_SHARE`] unless chosen otherwise.
    pub max_unread_share: f64,
}

/// What a pixel has that several windows cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The mean of their probabilities.
    #[default]
    Mean,
    /// The highest: single points, which another window may place a pixel further, would be halved.
    Highest,
}

impl Overlap {
    /// Recipes that were written down before there was a choice have the mean.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    fn is_mean(&self) -> bool {
        *self == Self::Mean
    }
}

/// Crops for the second stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CropRecipe {
    /// Resolution of the crop.
    pub mpp: Mpp,
    /// Side in pixels (128).
    pub side: u32,
    /// The class whose probability is `s_cls`.
    pub positive: String,
}

impl Recipe {
    /// Default of [`Recipe::max_unread_share`].
    pub const MAX_UNREAD_SHARE: f64 = 0.05;

    /// Largest [`Recipe::min_separation_um`]: farther apart than the halves of any division.
    pub const FARTHEST_UM: f64 = 50.0;

    /// The working frame of a slide under this recipe.
    ///
    /// # Errors
    /// When the slide has no resolution or more than 2^31 working pixels on a side.
    pub fn frame(&self, source: &dyn TileSource) -> Result<Frame, DetectError> {
        Ok(WorkingFrame::at_resolution(source, self.mpp)?.frame)
    }

    pub(crate) fn check(&self) -> Result<(), DetectError> {
        let wrong = |what: String| Err(DetectError::Recipe(what));
        if !(0.0..=1.0).contains(&self.max_unread_share) {
            return wrong(format!("max_unread_share {} is not a share", self.max_unread_share));
        }
        if let Some(um) =
            self.min_separation_um.filter(|um| !(*um > 0.0 && *um <= Self::FARTHEST_UM))
        {
            return wrong(format!("candidates {um} um apart"));
        }
        if let Some(side) = self.crops.as_ref().map(|c| c.side).filter(|s| !(1..=8192).contains(s))
        {
            return wrong(format!("crops of {side} px"));
        }
        let reach = match self.candidates {
            CandidateRule::Regions { opening_radius, .. } => opening_radius,
            CandidateRule::Peaks { min_distance_px, .. } => min_distance_px,
        };
        if reach > 1024 {
            return wrong(format!("an opening or a distance of peaks of {reach} px"));
        }
        Ok(())
    }
}

/// One slide's share of the work.
#[derive(Clone)]
pub struct Job<'a> {
    /// The windows to read, in any order; doubled ones count once.
    pub windows: Vec<WindowAt>,
    /// Tissue, for the analysed area; `None` when everything is tissue, as in a cut-out region.
    pub tissue: Option<&'a dyn Tissue>,
    /// Names what else a stored state must agree with: digests of the slide and of the weights.
    pub identity: String,
}

impl<'a> Job<'a> {
    /// The windows of a slide that touch tissue.
    ///
    /// # Errors
    /// When the slide has no resolution.
    pub fn on_tissue(
        slide: &slide::Slide,
        tissue: &'a slide::TissueMask,
        recipe: &Recipe,
    ) -> Result<Self, DetectError> {
        let (window, stride) = (recipe.grid.window() as usize, recipe.grid.stride() as usize);
        let plan = slide::WindowPlan::new(slide, recipe.mpp, window, stride, Some(tissue))
            .map_err(|e| ReadError::File(e.to_string()))?;
        // The plan anchors windows at multiples of the stride, as the grid does.
        let place = |v: i64| (v / stride as i64) as u32;
        let windows = plan.iter().map(|w| WindowAt { row: place(w.y), col: place(w.x) }).collect();
        Ok(Self { windows, tissue: Some(tissue), identity: String::new() })
    }

    /// The windows of a slide that touch a part of its tissue, `mask`; `within` decides which places are in that part.
    ///
    /// # Errors
    /// When the slide has no resolution.
    pub fn within(
        slide: &slide::Slide,
        mask: &slide::TissueMask,
        within: &'a dyn Tissue,
        recipe: &Recipe,
    ) -> Result<Self, DetectError> {
        let Job { windows, .. } = Job::on_tissue(slide, mask, recipe)?;
        Ok(Self { windows, tissue: Some(within), identity: String::new() })
    }

    /// All windows of a slide or region, everything being tissue.
    ///
    /// # Errors
    /// As [`Recipe::frame`].
    pub fn whole(source: &dyn TileSource, recipe: &Recipe) -> Result<Self, DetectError> {
        let windows = recipe.grid.cover(recipe.frame(source)?);
        Ok(Self { windows, tissue: None, identity: String::new() })
    }
}

/// How much runs and is held at once. Nothing here changes a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// Threads that decode windows.
    pub readers: usize,
    /// Decoded windows that wait for the first stage, which bounds memory (0.8 MB each at 512 px).
    pub in_flight: usize,
    /// Windows per call of the first stage. A batch never spans two units.
    pub segment_batch: usize,
    /// Crops per call of the second stage. A batch never spans two units.
    pub classify_batch: usize,
    /// A unit, after which the state can be stored, ends with the row that completes this many
    /// windows.
    pub unit_windows: usize,
    /// Candidates of one slide, which bounds memory; more are an error.
    pub candidates: usize,
}

impl Default for Workers {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            readers: cores.clamp(1, 8),
            in_flight: 32,
            segment_batch: 4,
            classify_batch: 32,
            unit_windows: 256,
            candidates: usize::MAX,
        }
    }
}
