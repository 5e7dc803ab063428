//! Damaged and forged files: always an answer or a typed error; no panic, no hang, no huge memory.

use mitosis::Mpp;
use slide::{OpenOptions, Rect, Slide, SlideError, TissueMask};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The largest single request since the last reset.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

struct Watching;

// SAFETY: hands everything on to the system allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        LARGEST.fetch_max(l.size(), Ordering::Relaxed);
        // SAFETY: same contract.
        unsafe { System.alloc(l) }
    }
    unsafe fn alloc_zeroed(&self, l: Layout) -> *mut u8 {
        LARGEST.fetch_max(l.size(), Ordering::Relaxed);
        // SAFETY: same contract.
        unsafe { System.alloc_zeroed(l) }
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        // SAFETY: same contract.
        unsafe { System.dealloc(p, l) }
    }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, n: usize) -> *mut u8 {
        LARGEST.fetch_max(n, Ordering::Relaxed);
        // SAFETY: same contract.
        unsafe { System.realloc(p, l, n) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// No single request of the readers may exceed this for the small files here.
const MOST_BYTES: usize = 300 << 20;
const MOST_TIME: Duration = Duration::from_secs(20);

struct Rng(u64);

impl Rng {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below.max(1)
    }
}

fn options() -> OpenOptions {
    // The C library is not what is tested here.
    OpenOptions {
        openslide: Some("/no/such/library".into()),
        cache_bytes: 8 << 20,
        ..OpenOptions::default()
    }
}

/// Everything a caller may ask of a slide.
fn exercise(path: &Path) -> Result<(), SlideError> {
    let slide = Slide::open_with(path, &options())?;
    let (w, h) = slide.dimensions();
    assert!(w > 0 && h > 0);
    let mut first = Ok(());
    let mut note = |r: Result<(), SlideError>| {
        if first.is_ok() {
            first = r;
        }
    };
    for level in 0..slide.levels().len() {
        let l = &slide.levels()[level];
        assert!(l.downsample_x >= 1.0 && l.downsample_y.is_finite());
        let (lx, ly) = (l.width as i64, l.height as i64);
        for (x, y) in [(0, 0), (lx / 2, ly / 2), (lx - 5, ly - 5)] {
            note(
                slide
                    .read_level(level, Rect::new(x, y, 40, 40))
                    .map(|t| assert_eq!(t.data.len(), 4800)),
            );
        }
    }
    note(slide.thumbnail(48).map(drop));
    for a in slide.associated_images() {
        note(slide.associated_image(&a.name).map(drop));
    }
    if slide.resolution().is_ok() {
        note(slide.read_at(Mpp::PAPER, Rect::new(-3, 7, 33, 21)).map(drop));
        let (ww, wh) = slide.working_dimensions(Mpp::new(8.0).unwrap())?;
        if ww * wh < 1 << 22 {
            note(TissueMask::find(&slide).map(drop));
        }
    } else {
        note(slide.resolution().map(drop));
    }
    first
}

/// Writes one variant and reads it under watch; gives whether it was read without any error.
fn variant(path: &Path, bytes: &[u8], what: &dyn Fn() -> String) -> bool {
    // Overwritten, a file is flushed to the disk (ext4); a new one is not.
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
    LARGEST.store(0, Ordering::Relaxed);
    let start = Instant::now();
    let result = std::panic::catch_unwind(|| exercise(path));
    let took = start.elapsed();
    let largest = LARGEST.load(Ordering::Relaxed);
    let result = result.unwrap_or_else(|_| panic!("PANIC on {}", what()));
    assert!(took < MOST_TIME, "{took:?} on {}", what());
    assert!(largest < MOST_BYTES, "{largest} bytes at once on {}", what());
    if let Err(e) = &result {
        let text = e.to_string();
        assert!(text.contains("victim"), "an error that does not name the file: {text}");
    }
    result.is_ok()
}

fn victims() -> Vec<PathBuf> {
    let drawn = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/slides");
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(drawn).unwrap().map(|e| e.unwrap().path()).collect();
    all.extend(dicom());
    for real in
        ["small.svs", "boxes.tiff", "unreadable.svs", "unopenable.tiff", "hs2p-test-mask.tif"]
    {
        all.extend(testkit::data(&format!("slides/{real}")));
    }
    all.sort();
    all
}

/// Drawn DICOM slides; each file is attacked alone.
fn dicom() -> Vec<PathBuf> {
    let drawn = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dicom");
    let inside = |e: std::fs::DirEntry| std::fs::read_dir(e.path()).into_iter().flatten();
    let files = std::fs::read_dir(drawn).unwrap().flat_map(|e| inside(e.unwrap()));
    let mut all: Vec<PathBuf> = files.map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

fn workplace(original: &Path) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    // The suffix means nothing to the reader.
    let path =
        dir.path().join(format!("victim-{}", original.file_name().unwrap().to_string_lossy()));
    (dir, path)
}

#[test]
fn truncations_and_bit_flips() {
    let mut rng = Rng(0x9E37_79B9_7F4A_7C15);
    let (mut cases, mut clean) = (0, 0);
    for original in victims() {
        let (_dir, path) = workplace(&original);
        let bytes = std::fs::read(&original).unwrap();
        for k in 0..40 {
            let end = if k < 20 { k * bytes.len() / 20 } else { rng.next(bytes.len()) };
            let what = || format!("{} cut to {end}", original.display());
            clean += usize::from(variant(&path, &bytes[..end], &what));
            cases += 1;
        }
        for k in 0..120 {
            let mut b = bytes.clone();
            let zone = match k % 3 {
                0 => b.len(),
                1 => b.len().min(600),
                _ => b.len().min(4096),
            };
            let flips = 1 + rng.next(6);
            let at: Vec<usize> = (0..flips)
                .map(|_| {
                    // Some at the end, where tifffile puts nothing and libtiff puts directories.
                    if k % 5 == 4 { bytes.len() - 1 - rng.next(zone) } else { rng.next(zone) }
                })
                .collect();
            for i in &at {
                b[*i] ^= 1 << rng.next(8);
            }
            let what = || format!("{} flipped at {at:?}", original.display());
            clean += usize::from(variant(&path, &b, &what));
            cases += 1;
        }
    }
    eprintln!("{cases} truncated or flipped files, {clean} still fully readable");
    assert!(cases > 3000);
}

/// A TIFF's directories as positions: (start of entries, number of entries, entry size).
struct Layout_ {
    big_endian: bool,
    big: bool,
    directories: Vec<(usize, usize)>,
}

impl Layout_ {
    fn get(&self, b: &[u8], at: usize, n: usize) -> u64 {
        let s = &b[at..at + n];
        let push = |v: u64, x: &u8| v << 8 | u64::from(*x);
        if self.big_endian { s.iter().fold(0, push) } else { s.iter().rev().fold(0, push) }
    }

    fn put(&self, b: &mut [u8], at: usize, n: usize, v: u64) {
        for k in 0..n {
            let shift = if self.big_endian { 8 * (n - 1 - k) } else { 8 * k };
            b[at + k] = (v >> shift) as u8;
        }
    }

    fn read(b: &[u8]) -> Option<Self> {
        if !matches!(b.get(..4)?, b"II*\0" | b"MM\0*" | b"II+\0") {
            return None;
        }
        let mut l = Self { big_endian: b[0] == b'M', big: b[2] == b'+', directories: Vec::new() };
        let (head, entry, word) = l.sizes();
        let mut at = l.get(b, if l.big { 8 } else { 4 }, word) as usize;
        while at != 0 {
            let n = l.get(b, at, head) as usize;
            l.directories.push((at, n));
            at = l.get(b, at + head + n * entry, word) as usize;
        }
        Some(l)
    }

    fn sizes(&self) -> (usize, usize, usize) {
        if self.big { (8, 20, 8) } else { (2, 12, 4) }
    }
}

#[test]
fn fields_of_false_size() {
    let mut cases = 0;
    for original in victims() {
        let bytes = std::fs::read(&original).unwrap();
        let Some(l) = Layout_::read(&bytes) else { continue };
        let (_dir, path) = workplace(&original);
        let (head, entry, word) = l.sizes();
        let most = if l.big { u64::MAX } else { u64::from(u32::MAX) };
        for (d, &(at, n)) in l.directories.iter().enumerate() {
            let mut attempt = |change: &dyn Fn(&mut Vec<u8>), text: &str| {
                let mut b = bytes.clone();
                change(&mut b);
                let what = || format!("{} directory {d}: {text}", original.display());
                variant(&path, &b, &what);
                cases += 1;
            };
            for e in 0..n {
                let field = at + head + e * entry;
                let tag = l.get(&bytes, field, 2);
                for kind in [0u64, 2, 5, 12, 255] {
                    attempt(
                        &|b| l.put(b, field + 2, 2, kind),
                        &format!("tag {tag} of type {kind}"),
                    );
                }
                for count in [0, 1, 2, 1 << 20, most / 2, most] {
                    attempt(
                        &|b| l.put(b, field + 4, word, count),
                        &format!("tag {tag} times {count}"),
                    );
                }
                let own = l.get(&bytes, field + 4 + word, word);
                let values = [
                    0,
                    1,
                    3,
                    7,
                    16,
                    65_535,
                    1 << 20,
                    1 << 31,
                    most,
                    own.wrapping_add(1),
                    own.wrapping_mul(2),
                    at as u64,
                ];
                for value in values {
                    attempt(
                        &|b| l.put(b, field + 4 + word, word, value),
                        &format!("tag {tag} is {value}"),
                    );
                }
                attempt(&|b| l.put(b, field, 2, 65_000), &format!("tag {tag} is gone"));
            }
            for next in [at as u64, l.directories[0].0 as u64, 1, most, bytes.len() as u64] {
                attempt(
                    &|b| l.put(b, at + head + n * entry, word, next),
                    &format!("followed by {next}"),
                );
            }
            for count in [0, 1, 200, 65_535] {
                attempt(&|b| l.put(b, at, head, count), &format!("{count} fields"));
            }
        }
    }
    eprintln!("{cases} forged files");
    assert!(cases > 3000);
}

#[test]
fn elements_of_false_length() {
    let mut rng = Rng(0x0123_4567_89AB_CDEF);
    let (mut cases, mut clean) = (0, 0);
    for original in dicom() {
        let bytes = std::fs::read(&original).unwrap();
        let (_dir, path) = workplace(&original);
        // Elements begin at even places; the pixels are behind the last of them.
        let pixels = bytes.windows(4).rposition(|w| w == [0xE0, 0x7F, 0x10, 0]).unwrap();
        let end = (pixels + 64).min(bytes.len() - 4);
        let words = [
            0,
            1,
            4,
            0xFFFF,
            1 << 16,
            1 << 31,
            u32::MAX - 1,
            u32::MAX,
            // An item, the end of one, and that of a sequence; a sequence; the pixels.
            0xE000_FFFE,
            0xE00D_FFFE,
            0xE0DD_FFFE,
            0x0000_5153,
            0x0010_7FE0,
        ];
        for _ in 0..400 {
            let mut b = bytes.clone();
            let mut changed = Vec::new();
            for _ in 0..1 + rng.next(2) {
                let (at, word) =
                    (132 + 2 * rng.next((end - 132) / 2), words[rng.next(words.len())]);
                b[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
                changed.push((at, word));
            }
            let what = || format!("{} with {changed:x?}", original.display());
            clean += usize::from(variant(&path, &b, &what));
            cases += 1;
        }
    }
    eprintln!("{cases} forged DICOM files, {clean} still fully readable");
    assert!(cases > 6_000);
}

#[test]
fn neighbours_of_false_size() {
    let mut rng = Rng(0xFEDC_BA98_7654_3210);
    let drawn = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dicom");
    for (named, other) in [("series/b.dcm", "series/a.dcm"), ("parts/b.dcm", "parts/a.dcm")] {
        let dir = tempfile::tempdir().unwrap();
        let victim = std::fs::read(drawn.join(named)).unwrap();
        let bytes = std::fs::read(drawn.join(other)).unwrap();
        let mut clean = 0;
        for _ in 0..300 {
            let mut b = bytes.clone();
            for _ in 0..1 + rng.next(3) {
                let at = 132 + rng.next(2600);
                b[at] = [0, 1, 0xFF, b[at] ^ 1, b[at] ^ 0x80][rng.next(5)];
            }
            if rng.next(5) == 0 {
                b.truncate(rng.next(b.len()));
            }
            std::fs::write(dir.path().join("other.dcm"), &b).unwrap();
            let what = || format!("{named} next to a changed {other}");
            clean += usize::from(variant(&dir.path().join("victim.dcm"), &victim, &what));
        }
        assert!(clean > 20, "{named}: {clean}");
    }
}

#[test]
fn deep_and_endless_sequences() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("victim.dcm");
    let head = |syntax: &str| {
        let mut b = [&[0; 128][..], b"DICM"].concat();
        b.extend([2, 0, 0x10, 0, b'U', b'I', syntax.len() as u8, 0]);
        b.extend(syntax.as_bytes());
        b
    };
    let explicit = head("1.2.840.10008.1.2.1\0");
    let implicit = head("1.2.840.10008.1.2\0");
    let sequence = [&[0x40, 0, 0x60, 5, b'S', b'Q', 0, 0][..], &[0xFF; 4]].concat();
    let item = [0xFE, 0xFF, 0, 0xE0, 0xFF, 0xFF, 0xFF, 0xFF];
    let unknown = [0x40, 0, 0x60, 5, 0xFF, 0xFF, 0xFF, 0xFF];
    let item_end = [0xFE, 0xFF, 0x0D, 0xE0, 0, 0, 0, 0];
    for (start, unit) in [
        (&explicit, [&sequence[..], &item].concat()),
        (&implicit, [&unknown[..], &item].concat()),
        // An end without an item, which other readers stumble over.
        (&explicit, [&sequence[..], &item_end, &item].concat()),
        (&explicit, sequence.clone()),
        (&explicit, [&sequence[..], &item, &item_end].concat()),
        (&explicit, item_end.to_vec()),
    ] {
        let b = [&start[..], &unit.repeat(200_000)].concat();
        assert!(!variant(&path, &b, &|| format!("{unit:x?} again and again")));
        assert_eq!(slide::dicom_part(&path), None);
    }
}

#[test]
fn no_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = |n: &str| dir.path().join(n);
    let fails = |p: &Path| Slide::open_with(p, &options()).unwrap_err();

    let e = fails(&at("missing.svs"));
    assert!(matches!(e, SlideError::Io { .. }) && e.to_string().contains("missing.svs"), "{e}");
    assert!(matches!(fails(dir.path()), SlideError::NotAFile { .. }));
    std::fs::write(at("empty.svs"), b"").unwrap();
    assert!(matches!(fails(&at("empty.svs")), SlideError::Empty { .. }));
    for (name, bytes) in [
        ("one.svs", &b"I"[..]),
        ("text.svs", b"hello"),
        ("head.tif", b"II*\0"),
        ("zip.ndpi", b"PK\x03\x04..."),
    ] {
        std::fs::write(at(name), bytes).unwrap();
        let text = fails(&at(name)).to_string();
        assert!(text.contains(name), "{text}");
    }
    std::fs::write(at("other.mrxs"), b"\xFF\xD8\xFF\xE1 not really a MIRAX").unwrap();
    fails(&at("other.mrxs"));
}

#[cfg(unix)]
#[test]
fn no_permission() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("locked.svs");
    std::fs::write(&path, b"II*\0").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let e = Slide::open_with(&path, &options()).unwrap_err();
    // Root reads everything; others get the system's word.
    assert!(e.to_string().contains("locked.svs"), "{e}");
    if std::fs::File::open(&path).is_err() {
        assert!(matches!(e, SlideError::Io { .. }), "{e}");
    }
}

#[test]
fn the_suffix_does_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/slides");
    for (from, to, format) in [
        ("svs_jpeg_420.svs", "a.png", "aperio"),
        ("flat.png", "a.svs", "png"),
        ("flat_420.jpg", "a.tif", "jpeg"),
        ("lzw.tif", "a.mrxs", "generic-tiff"),
        ("pyramid.ome.tif", "noext", "ome-tiff"),
    ] {
        std::fs::copy(drawn.join(from), dir.path().join(to)).unwrap();
        assert_eq!(Slide::open_with(dir.path().join(to), &options()).unwrap().format(), format);
    }
}

#[test]
fn resolutions_that_are_not_valid() {
    let drawn = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/slides");
    let dir = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(drawn.join("svs_jpeg_420.svs")).unwrap();
    let old = b"MPP = 0.25";
    for (new, word) in [
        (&b"MPP = nan."[..], "implausible"),
        (b"MPP = inf ", "implausible"),
        (b"MPP = -1.0", "implausible"),
        (b"MPP = 9999", "implausible"),
        (b"MPP = zero", "implausible"),
        (b"MPP = 0.50", "contradicting"),
        (b"XXX = 0.25", "no micrometres per pixel"),
    ] {
        let mut b = bytes.clone();
        while let Some(i) = b.windows(old.len()).position(|w| w == old) {
            b[i..i + old.len()].copy_from_slice(new);
        }
        let path = dir.path().join("a.svs");
        std::fs::write(&path, &b).unwrap();
        let slide = Slide::open(&path).unwrap();
        let text = slide.resolution().unwrap_err().to_string();
        assert!(text.contains(word) && text.contains("be given"), "{text}");
        let given = OpenOptions { mpp: Some(Mpp::PAPER), ..options() };
        assert!(Slide::open_with(&path, &given).unwrap().resolution().is_ok());
    }
    assert!(Slide::open(drawn.join("flat_72dpi.png")).unwrap().resolution().is_err());
    let fine = Slide::open(drawn.join("flat.png")).unwrap();
    assert!((fine.resolution().unwrap().x.get() - 0.5).abs() < 1e-6);
}
