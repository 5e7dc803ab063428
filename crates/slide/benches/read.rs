//! Reading speed on one core: `cargo bench -p mithras-slide`.
//!
//! Slide: `MITHRAS_BENCH_SLIDE`, else the real Aperio JPEG slide of the test data. Every sample opens
//! the slide and reads all its 512-px tiles once, by the built-in reader and by OpenSlide through the
//! same calls. The Python peer on the same tiles: `python benches/peer/read_tiles.py SLIDE`.

#![expect(clippy::print_stderr, reason = "prints why it skips")]

use divan::Bencher;
use divan::counter::ItemsCount;
use mitosis::Mpp;
use slide::{MppRule, OpenOptions, Rect, Slide};
use std::path::PathBuf;

fn main() {
    divan::main();
}

fn bench_slide() -> Option<PathBuf> {
    match std::env::var_os("MITHRAS_BENCH_SLIDE") {
        Some(p) => Some(p.into()),
        None => testkit::data("slides/CMU-1-Small-Region.svs"),
    }
}

const SIDE: usize = 512;

fn corners(w: u64, h: u64, stride: usize) -> Vec<(i64, i64)> {
    let ys = (0..(h as usize).saturating_sub(SIDE - 1)).step_by(stride);
    ys.flat_map(|y| {
        (0..(w as usize).saturating_sub(SIDE - 1))
            .step_by(stride)
            .map(move |x| (x as i64, y as i64))
    })
    .collect()
}

fn run(
    bencher: Bencher,
    options: &OpenOptions,
    stride: usize,
    read: impl Fn(&Slide, i64, i64) + Sync,
) {
    let Some(path) = bench_slide() else { return };
    let Ok(first) = Slide::open_with(&path, options) else {
        eprintln!("SKIPPED: {} cannot be opened this way", path.display());
        return;
    };
    let (w, h) = first.dimensions();
    let corners = corners(w, h, stride);
    bencher.counter(ItemsCount::new(corners.len())).bench_local(|| {
        let slide = Slide::open_with(&path, options).unwrap();
        for (x, y) in &corners {
            read(&slide, *x, *y);
        }
    });
}

fn plain(slide: &Slide, x: i64, y: i64) {
    divan::black_box(slide.read_region(0, Rect::new(x, y, SIDE, SIDE)).unwrap());
}

/// 512-px tiles side by side, level 0.
#[divan::bench]
fn tiles_mithras(bencher: Bencher) {
    run(bencher, &OpenOptions::default(), SIDE, plain);
}

/// The same through OpenSlide.
#[divan::bench]
fn tiles_openslide(bencher: Bencher) {
    run(bencher, &OpenOptions { force_openslide: true, ..OpenOptions::default() }, SIDE, plain);
}

/// 512-px windows at stride 400, as detection reads them, no resampling.
#[divan::bench]
fn windows_stride_400(bencher: Bencher) {
    run(bencher, &OpenOptions::default(), 400, plain);
}

/// The same count of windows resampled from 0.2456 to 0.25 um/px.
#[divan::bench]
fn windows_resampled(bencher: Bencher) {
    // As if the slide were of that resolution, whatever its file states.
    let mpp = Mpp::new(0.2456).ok();
    let options = OpenOptions { mpp, mpp_rule: MppRule::Force, ..OpenOptions::default() };
    run(bencher, &options, 400, |slide, x, y| {
        divan::black_box(slide.read_at(Mpp::PAPER, Rect::new(x, y, SIDE, SIDE)).unwrap());
    });
}
