//! Detection within regions that people drew: what is read, what counts, and how large it is.

use detect::Tissue;
use mitosis::{Level0, Point};
pub use roi::searched::{
    FILE, Outlined, RegionOutline, RegionSource, Searched, SearchedRegion, SlideRegionError,
    outlines,
};
use roi::{Area, Coverage, Inside};
pub use roi::{Classes, RegionError};
use slide::TissueMask;

/// A place as tables have it, to 0.01 px: what counts can be counted again from them.
#[must_use]
pub fn rounded(p: Point<Level0>) -> Point<Level0> {
    let round = |v: f64| (v * 100.0).round() / 100.0;
    Point::new(round(p.x), round(p.y))
}

/// The tissue of a slide inside an area.
pub struct TissueWithin<'a> {
    tissue: &'a TissueMask,
    coverage: Coverage,
    inside: Inside,
    /// Size of the slide in mask pixels, which need not be whole.
    extent: (f64, f64),
}

impl<'a> TissueWithin<'a> {
    /// Of a slide of this level-0 size.
    #[must_use]
    pub fn new(tissue: &'a TissueMask, area: &Area, (width, height): (u64, u64)) -> Self {
        let scale = tissue.scale();
        let coverage = Coverage::new(area, scale, (tissue.width, tissue.height));
        let extent = (width as f64 / scale.0, height as f64 / scale.1);
        Self { tissue, coverage, inside: area.index(), extent }
    }

    /// The share inside the area of that part of a mask pixel that is on the slide.
    fn share(&self, (column, row): (usize, usize)) -> f64 {
        let part = |extent: f64, at: usize| (extent - at as f64).clamp(0.0, 1.0);
        let on_slide = part(self.extent.0, column) * part(self.extent.1, row);
        if on_slide > 0.0 { (self.coverage.at(column, row) / on_slide).min(1.0) } else { 0.0 }
    }

    /// Its size, mm2.
    #[must_use]
    pub fn mm2(&self) -> f64 {
        self.tissue.area_mm2_weighted(|at, _| self.share(at))
    }

    /// The mask pixels that the area touches: windows that touch none of them are not read.
    #[must_use]
    pub fn mask(&self) -> TissueMask {
        self.tissue.restricted(|column, row| self.coverage.at(column, row) > 0.0)
    }

    /// Whether a place, as tables have it, is inside the area.
    #[must_use]
    pub fn holds(&self, p: Point<Level0>) -> bool {
        self.inside.contains(rounded(p))
    }
}

impl Tissue for TissueWithin<'_> {
    fn area_mm2_where(&self, wanted: &mut dyn FnMut(Point<Level0>) -> bool) -> f64 {
        self.tissue.area_mm2_weighted(|at, p| if wanted(p) { self.share(at) } else { 0.0 })
    }

    fn near(&self, p: Point<Level0>, um: f64) -> bool {
        self.holds(p) && self.tissue.near(p, um)
    }
}
