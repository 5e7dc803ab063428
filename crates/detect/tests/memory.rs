//! Memory stays flat however large the slide is (counted by the allocator, not estimated).

mod common;

use common::{mpp, recipe, score};
use detect::{
    CandidateRule, Control, Detector, Job, Models, ReadError, TileSource, WindowAt, Workers,
};
use mitosis::{Mpp, PortError, ProbMap, Rect, Resolution, RgbTile, Segmenter};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `p` came from `alloc` with the same layout.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A blank slide of any size with one dark square per 5,000 px, and a bar across a whole window row.
struct Blank(u64);

impl TileSource for Blank {
    fn dimensions(&self) -> (u64, u64) {
        (self.0, self.0)
    }
    fn resolution(&self) -> Result<Resolution, ReadError> {
        Ok(Resolution::user(mpp(0.25)))
    }
    fn read_at(&self, _: Mpp, rect: Rect) -> Result<RgbTile, ReadError> {
        let (x, y, w, h) = rect.parts();
        let mut data = vec![255; 3 * w * h];
        for j in (0..h as i64).filter(|j| (y + j) % 5_000 < 20) {
            for i in (0..w as i64).filter(|i| (x + i) % 5_000 < 20) {
                data[3 * (j as usize * w + i as usize)] = 0;
            }
        }
        Ok(RgbTile::new(w, h, data))
    }
}

struct Red;

impl Segmenter for Red {
    fn probabilities(&mut self, windows: &[RgbTile]) -> Result<Vec<ProbMap>, PortError> {
        let map = |t: &RgbTile| ProbMap {
            width: t.width,
            height: t.height,
            data: t.data.chunks_exact(3).map(|p| f32::from(255 - p[0]) / 255.0).collect(),
        };
        Ok(windows.iter().map(map).collect())
    }
}

/// Peak bytes while detecting on a band of full-width rows and a sparse rest.
fn peak(side: u64) -> (usize, usize) {
    let source = Blank(side);
    let mut recipe = recipe(512, 400, 1);
    recipe.crops = None;
    recipe.candidates =
        CandidateRule::Regions { threshold: score(0.3), opening_radius: 1, min_area_px: 20 };
    let all = Job::whole(&source, &recipe).unwrap();
    // Two rows of windows across the whole slide, and a diagonal strip through the rest.
    let sparse = |w: &WindowAt| w.row < 2 || w.row.abs_diff(w.col) < 2;
    let windows: Vec<_> = all.windows.into_iter().filter(sparse).collect();
    let job = Job { windows, tissue: None, identity: String::new() };
    let workers = Workers {
        readers: 2,
        in_flight: 16,
        segment_batch: 4,
        classify_batch: 4,
        unit_windows: 256,
        ..Workers::default()
    };
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let models = Models { segmenter: &mut Red, classifier: None };
    let mut detector = Detector { models, recipe: &recipe, workers };
    let result = detector.run(&source, &job, Control::default()).unwrap();
    (PEAK.load(Ordering::Relaxed) - before, result.candidates.len())
}

#[test]
fn peak_memory_is_flat_in_slide_size() {
    let (small, few) = peak(20_000);
    let (large, many) = peak(100_000);
    let mib = |n: usize| n as f64 / f64::from(1 << 20);
    println!(
        "20,000 px: {:.0} MiB, {few} found; 100,000 px: {:.0} MiB, {many} found",
        mib(small),
        mib(large)
    );
    assert!(few >= 4 && many >= 20);
    // Tiles and maps in flight are the same; a row of bottom strips is 0.22 MiB per window.
    assert!(large < 150 << 20, "{:.0} MiB", mib(large));
    let strips = 2 * (100_000 - 20_000) / 400 * 112 * 512 * 4;
    assert!(large < small + strips + (16 << 20), "{:.0} against {:.0} MiB", mib(large), mib(small));
}
