//! Analysed and unread tissue, in mm2.

use crate::error::ReadError;
use crate::grid::{Grid, WindowAt};
use crate::source::{TileSource, WorkingFrame};
use mitosis::{Level0, Mm2, Mpp, Point};
use std::collections::BTreeSet;

/// Tissue as a set of level-0 points with an area.
pub trait Tissue: Sync {
    /// Tissue area in mm2 of the parts whose centre is wanted.
    fn area_mm2_where(&self, wanted: &mut dyn FnMut(Point<Level0>) -> bool) -> f64;

    /// Whether a point is on tissue or at most `um` micrometres next to it.
    fn near(&self, p: Point<Level0>, um: f64) -> bool {
        let _ = (p, um);
        true
    }
}

/// A candidate further than this from all tissue, in micrometres, is not a figure, whatever its scores
/// state: dirt on glass. The tissue's outline is known to a pixel of its overview, 8 um.
pub const TISSUE_MARGIN_UM: f64 = 20.0;

impl Tissue for slide::TissueMask {
    fn area_mm2_where(&self, wanted: &mut dyn FnMut(Point<Level0>) -> bool) -> f64 {
        slide::TissueMask::area_mm2_where(self, wanted)
    }

    fn near(&self, p: Point<Level0>, um: f64) -> bool {
        slide::TissueMask::near(self, p, um)
    }
}

/// Area of a tissue inside the union of windows that were read, as the analysed area of a run is measured.
///
/// # Errors
/// When the slide has no resolution.
pub fn analysed_area(
    source: &dyn TileSource,
    mpp: Mpp,
    grid: Grid,
    read: &BTreeSet<WindowAt>,
    tissue: &dyn Tissue,
) -> Result<Mm2, ReadError> {
    let frame = WorkingFrame::at_resolution(source, mpp)?;
    Ok(area(read, grid, &frame, Some(tissue)))
}

/// Area of the tissue inside the union of `windows`.
///
/// With tissue: its mask pixels whose centre is in a window. Without one all of the slide is tissue
/// and the union is measured exactly, clipped to the slide.
pub(crate) fn area(
    windows: &BTreeSet<WindowAt>,
    grid: Grid,
    at: &WorkingFrame,
    tissue: Option<&dyn Tissue>,
) -> Mm2 {
    match tissue {
        Some(tissue) => masked(windows, grid, at, tissue),
        None => union(windows, grid, at),
    }
}

fn masked(windows: &BTreeSet<WindowAt>, grid: Grid, at: &WorkingFrame, tissue: &dyn Tissue) -> Mm2 {
    let (stride, overlap) = (f64::from(grid.stride()), f64::from(grid.overlap()));
    // Windows that reach working coordinate v along one axis: its own, and the one before it.
    let reaching = |v: f64| {
        let own = (v / stride) as u32;
        let before = own.checked_sub(1).filter(|_| v - f64::from(own) * stride < overlap);
        [Some(own), before]
    };
    Mm2(tissue.area_mm2_where(&mut |p| {
        let (rows, cols) = (reaching(p.y / at.scale.1), reaching(p.x / at.scale.0));
        rows.iter()
            .flatten()
            .any(|&row| cols.iter().flatten().any(|&col| windows.contains(&WindowAt { row, col })))
    }))
}

fn union(windows: &BTreeSet<WindowAt>, grid: Grid, at: &WorkingFrame) -> Mm2 {
    let (stride, overlap) = (f64::from(grid.stride()), f64::from(grid.overlap()));
    let cells: BTreeSet<WindowAt> = windows
        .iter()
        .flat_map(|w| [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(r, c)| (w.row + r, w.col + c)))
        .map(|(row, col)| WindowAt { row, col })
        .collect();
    // A cell has four parts: the corner shared by four windows, two seams, and the rest.
    let parts = |n: u32, extent: f64| {
        let clip = |v: f64| v.min(extent);
        let start = f64::from(n) * stride;
        [
            (clip(start + overlap) - clip(start), true),
            (clip(start + stride) - clip(start + overlap), false),
        ]
    };
    let mut pixels = 0.0;
    for &WindowAt { row, col } in &cells {
        for (h, upper) in parts(row, at.extent.1) {
            for (w, left) in parts(col, at.extent.0) {
                let has = |up: bool, before: bool| {
                    let (row, col) = (row.checked_sub(up.into()), col.checked_sub(before.into()));
                    row.zip(col).is_some_and(|(row, col)| windows.contains(&WindowAt { row, col }))
                };
                let covered = has(false, false)
                    || (upper && has(true, false))
                    || (left && has(false, true))
                    || (upper && left && has(true, true));
                if covered {
                    pixels += w * h;
                }
            }
        }
    }
    Mm2(pixels * at.pixel_mm2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Frame;
    use proptest::prelude::*;

    /// Working pixels of 1 mm2, two level-0 pixels wide and half a one high.
    struct Mask(u32, Vec<bool>);

    impl Tissue for Mask {
        fn area_mm2_where(&self, wanted: &mut dyn FnMut(Point<Level0>) -> bool) -> f64 {
            let mut n = 0;
            for i in (0u32..).zip(&self.1).filter(|(_, t)| **t).map(|(i, _)| i) {
                let (x, y) = (f64::from(i % self.0) + 0.5, f64::from(i / self.0) + 0.5);
                n += usize::from(wanted(Point::new(x * 2.0, y * 0.5)));
            }
            n as f64
        }
    }

    proptest! {
        #[test]
        fn union_and_mask_equal_counting_pixels(
            stride in 1u32..9, extra in 0u32..9, width in 1u32..40, height in 1u32..40,
            keep in prop::collection::vec(any::<bool>(), 64),
            tissue in prop::collection::vec(any::<bool>(), 1600),
        ) {
            let grid = Grid::new(stride + extra.min(stride), stride).unwrap();
            let frame = Frame { width, height };
            let at = WorkingFrame {
                frame,
                scale: (2.0, 0.5),
                extent: (f64::from(width), f64::from(height)),
                pixel_mm2: 1.0,
            };
            let windows: BTreeSet<_> = grid
                .cover(frame)
                .into_iter()
                .zip(keep.iter().cycle())
                .filter(|(_, k)| **k)
                .map(|(w, _)| w)
                .collect();
            let covered = |x: u32, y: u32| {
                windows.iter().any(|w| {
                    let inside = |v: u32, n: u32| {
                        (n * stride..n * stride + grid.window()).contains(&v)
                    };
                    inside(x, w.col) && inside(y, w.row)
                })
            };
            let each = || (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
            let all = each().filter(|&(x, y)| covered(x, y)).count();
            prop_assert_eq!(area(&windows, grid, &at, None), Mm2(all as f64));
            // A mask at the working resolution counts the same pixels, where it is set.
            let mask: Vec<bool> =
                tissue.iter().copied().take((width * height) as usize).collect();
            let on = each()
                .filter(|&(x, y)| covered(x, y) && mask[(y * width + x) as usize])
                .count();
            let tissue = Mask(width, mask);
            prop_assert_eq!(area(&windows, grid, &at, Some(&tissue)), Mm2(on as f64));
        }
    }

    #[test]
    fn the_union_ends_where_the_slide_ends() {
        // 500.5 working pixels across: the last working pixel is half outside.
        let at = WorkingFrame {
            frame: Frame { width: 501, height: 10 },
            scale: (1.0, 1.0),
            extent: (500.5, 10.0),
            pixel_mm2: 0.25e-3 * 0.25e-3,
        };
        let grid = Grid::new(512, 400).unwrap();
        let windows = grid.cover(at.frame).into_iter().collect();
        let expected = 500.5 * 10.0 * 0.25e-3 * 0.25e-3;
        assert!((area(&windows, grid, &at, None).0 - expected).abs() < 1e-12);
    }
}
