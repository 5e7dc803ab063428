use super::*;
use proptest::prelude::*;

/// A probability that depends on window and pixel, so that every contribution is distinguished.
fn value(at: WindowAt, x: u32, y: u32) -> f32 {
    let h = (at.row * 7919 + at.col * 104_729 + x * 31 + y * 1009).wrapping_mul(2_654_435_761);
    (h >> 8) as f32 / (1u32 << 24) as f32
}

fn map(at: WindowAt, side: u32) -> ProbMap {
    let data = (0..side).flat_map(|y| (0..side).map(move |x| value(at, x, y))).collect();
    ProbMap { width: side as usize, height: side as usize, data }
}

/// The definition: for every pixel, all windows that cover it in row-major order.
fn slow((grid, overlap): (Grid, Overlap), frame: Frame, windows: &[WindowAt]) -> ProbMap {
    let mut data = Vec::new();
    for y in 0..frame.height {
        for x in 0..frame.width {
            let (mut sum, mut n, mut most) = (0.0f32, 0, 0.0f32);
            for &at in windows {
                let (ox, oy) = (at.col * grid.stride(), at.row * grid.stride());
                let inside = |v: u32, o: u32| v >= o && v < o + grid.window();
                if inside(x, ox) && inside(y, oy) {
                    sum += value(at, x - ox, y - oy);
                    most = most.max(value(at, x - ox, y - oy));
                    n += 1;
                }
            }
            data.push(match overlap {
                Overlap::Mean if n > 0 => sum / n as f32,
                Overlap::Mean => 0.0,
                Overlap::Highest => most,
            });
        }
    }
    ProbMap { width: frame.width as usize, height: frame.height as usize, data }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn equals_the_definition(
        stride in 1u32..9, extra in 0u32..9, width in 1u32..50, height in 1u32..50,
        keep in prop::collection::vec(any::<bool>(), 64), highest in any::<bool>(),
    ) {
        let overlap = if highest { Overlap::Highest } else { Overlap::Mean };
        let grid = Grid::new(stride + extra.min(stride), stride).unwrap();
        let frame = Frame { width, height };
        let windows: Vec<_> = grid
            .cover(frame)
            .into_iter()
            .zip(keep.iter().cycle())
            .filter(|(_, k)| **k)
            .map(|(w, _)| w)
            .collect();
        let all = windows.iter().map(|&w| (w, map(w, grid.window())));
        let by = (grid, overlap);
        let (got, want) = (stitch(by.0, by.1, frame, all), slow(by, frame, &windows));
        prop_assert!(got.data.iter().zip(&want.data).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

#[test]
fn a_cover_reaches_both_edges_and_no_further() {
    let grid = Grid::new(512, 400).unwrap();
    let count = |width, height| grid.cover(Frame { width, height }).len();
    assert_eq!(count(1, 1), 1);
    assert_eq!(count(512, 512), 1);
    assert_eq!(count(513, 512), 2);
    assert_eq!(count(912, 912), 4);
    assert_eq!(count(2084, 2084), 25);
    assert_eq!(count(0, 100), 0);
}

#[test]
fn refuses_gaps_and_far_overlaps() {
    for (window, stride) in [(512, 0), (512, 513), (512, 255)] {
        assert!(Grid::new(window, stride).is_err(), "{window} at {stride}");
    }
    assert!(Grid::new(512, 256).is_ok() && Grid::new(512, 512).is_ok());
}
