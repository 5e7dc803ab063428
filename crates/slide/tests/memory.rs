//! The memory budget is kept by every reader of ours (not by OpenSlide, which takes memory of its own): live
//! bytes are counted by the allocator.

use mitosis::Mpp;
use slide::{Limits, Memory, OpenOptions, Rect, Slide, SlideError};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
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

/// The least that can be asked for.
const BUDGET: usize = 64 << 20;
/// Threads that read at once.
const THREADS: i64 = 4;

fn open(path: &Path, memory: &Memory) -> Result<Slide, SlideError> {
    let limits = Limits { memory: memory.clone(), ..Limits::default() };
    let openslide = Some("/no/such/library".into());
    let options =
        OpenOptions { limits, mpp: Some(Mpp::PAPER), openslide, ..OpenOptions::default() };
    Slide::open_with(path, &options)
}

/// Most bytes alive at once while four threads read windows all over every level of slides that share
/// one budget.
fn peak(paths: &[&Path]) -> Result<usize, SlideError> {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let memory = Memory::new(BUDGET as u64);
    let slides = paths.iter().map(|p| open(p, &memory)).collect::<Result<Vec<_>, _>>()?;
    let read = |thread: i64| -> Result<(), SlideError> {
        let slide = &slides[thread as usize % slides.len()];
        for (level, size) in slide.levels().iter().enumerate() {
            let (w, h) = (size.width as i64, size.height as i64);
            for i in 0..24 {
                let at = |side: i64, step: i64| (thread * 977 + i * step) % side.max(1);
                slide.read_level(level, Rect::new(at(w, 1_511), at(h, 2_333), 512, 512))?;
            }
        }
        Ok(())
    };
    std::thread::scope(|s| {
        let all: Vec<_> = (0..THREADS).map(|t| s.spawn(move || read(t))).collect();
        all.into_iter().try_for_each(|t| t.join().expect("no panic"))
    })?;
    drop(slides);
    assert_eq!(memory.in_use(), 0);
    Ok(PEAK.load(Ordering::Relaxed) - before)
}

/// Flat images of some size, which are decoded whole.
fn made(dir: &Path) -> Vec<PathBuf> {
    let pixel =
        |x: u32, y: u32| image::Rgb([(x % 251) as u8, (y % 241) as u8, ((x ^ y) % 256) as u8]);
    let (png, jpeg) = (dir.join("flat.png"), dir.join("flat.jpg"));
    image::RgbImage::from_fn(5000, 5000, pixel).save(&png).unwrap();
    image::RgbImage::from_fn(1600, 1400, pixel).save(&jpeg).unwrap();
    let dcm = dir.join("plain.dcm");
    std::fs::write(&dcm, dicom(6000, 1000)).unwrap();
    vec![png, jpeg, dcm]
}

/// A DICOM slide of square frames without compression.
fn dicom(side: u32, frame: u16) -> Vec<u8> {
    let mut out = [&[0; 128][..], b"DICM"].concat();
    let mut put = |group: u16, element: u16, vr: &[u8; 2], value: &[u8]| {
        out.extend(group.to_le_bytes());
        out.extend(element.to_le_bytes());
        out.extend(vr);
        if vr == b"OB" {
            out.extend([0, 0]);
            out.extend((value.len() as u32).to_le_bytes());
        } else {
            out.extend((value.len() as u16).to_le_bytes());
        }
        out.extend(value);
    };
    let count = side.div_ceil(frame.into()).pow(2);
    let pixels: Vec<u8> =
        (0..count * 3 * u32::from(frame).pow(2)).map(|i| (i / 3 % 251) as u8).collect();
    put(2, 0x10, b"UI", b"1.2.840.10008.1.2.1\0");
    put(8, 8, b"CS", b"ORIGINAL\\PRIMARY\\VOLUME\\NONE");
    put(8, 0x16, b"UI", b"1.2.840.10008.5.1.4.1.1.77.1.6");
    put(0x28, 2, b"US", &3u16.to_le_bytes());
    put(0x28, 4, b"CS", b"RGB ");
    put(0x28, 8, b"IS", format!("{count:2}").as_bytes());
    for (element, value) in [(0x10, frame), (0x11, frame), (0x100, 8), (0x101, 8), (0x102, 7)] {
        put(0x28, element, b"US", &value.to_le_bytes());
    }
    put(0x48, 6, b"UL", &side.to_le_bytes());
    put(0x48, 7, b"UL", &side.to_le_bytes());
    put(0x7FE0, 0x10, b"OB", &pixels);
    out
}

#[test]
fn every_reader_keeps_within_the_memory_it_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = made(dir.path());
    let real = [
        "hostile/strip4000.tif",
        "hostile/tiled4000.tif",
        "hostile/defl_strip3000.tif",
        "slides/CMU-1-Small-Region.svs",
        "slides/tcga-cr-7395-01a-01-ts1.svs",
        "slides/boxes.tiff",
    ];
    files.extend(real.iter().filter_map(|name| testkit::data(name)));
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let peak = peak(&[&file]).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: {:.1} MiB", peak as f64 / f64::from(1 << 20));
        assert!(peak <= BUDGET, "{name}: {peak} bytes at once");
    }
}

#[test]
fn slides_that_share_a_budget_keep_within_it_together() {
    let dir = tempfile::tempdir().unwrap();
    let flat: Vec<PathBuf> = (0..5).map(|i| dir.path().join(format!("{i}.png"))).collect();
    for path in &flat {
        image::RgbImage::from_fn(2300, 2300, |x, y| image::Rgb([x as u8, y as u8, 7]))
            .save(path)
            .unwrap();
    }
    let mut sets = vec![flat];
    let real = testkit::data("slides/CMU-1-Small-Region.svs")
        .zip(testkit::data("hostile/strip4000.tif"))
        .map(|(svs, strip)| vec![svs.clone(), strip.clone(), svs, strip]);
    sets.extend(real);
    for set in sets {
        let paths: Vec<&Path> = set.iter().map(PathBuf::as_path).collect();
        let peak = peak(&paths).unwrap();
        println!("{paths:?}: {:.1} MiB", peak as f64 / f64::from(1 << 20));
        assert!(peak <= BUDGET, "{paths:?}: {peak} bytes at once");
    }
}

#[test]
fn what_cannot_be_decoded_within_it_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.jpg");
    image::RgbImage::from_pixel(6000, 4000, image::Rgb([200, 90, 160])).save(&path).unwrap();
    let refused = peak(&[&path]).unwrap_err();
    assert!(matches!(refused, SlideError::Limit { limit: "memory", .. }), "{refused}");
}
