//! What a file may ask for, what is reported of formats that are not read, and of pixels that are not
//! there or not sound.

use base::remedy::{Remedied as _, Remedy};
use mitosis::Mpp;
use slide::{Limits, MppRule, OpenOptions, Rect, Slide, SlideError, TissueMask};
use std::path::{Path, PathBuf};

fn options(settings: &str) -> OpenOptions {
    let mut limits = Limits::default();
    limits.set_all(settings).unwrap();
    let mpp = Some(Mpp::PAPER);
    let openslide = Some("/no/such/library".into());
    OpenOptions { limits, mpp, mpp_rule: MppRule::Fill, openslide, ..OpenOptions::default() }
}

fn open(path: &Path, settings: &str) -> Result<Slide, SlideError> {
    Slide::open_with(path, &options(settings))
}

fn hostile(name: &str) -> Option<PathBuf> {
    testkit::data(&format!("hostile/{name}"))
}

/// A little-endian TIFF with one directory: `fields` are (tag, type, values), `data` is at byte 8.
fn tiff(fields: &[(u16, u16, &[u32])], data: &[u8]) -> Vec<u8> {
    let mut out = b"II*\0\0\0\0\0".to_vec();
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(2), 0);
    let mut places = Vec::new();
    for (_, kind, values) in fields {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|v| v.to_le_bytes()[..if *kind == 3 { 2 } else { 4 }].to_vec())
            .collect();
        let mut place = [0; 4];
        if bytes.len() <= 4 {
            place[..bytes.len()].copy_from_slice(&bytes);
        } else {
            place = (out.len() as u32).to_le_bytes();
            out.extend_from_slice(&bytes);
        }
        places.push(place);
    }
    let start = out.len() as u32;
    out[4..8].copy_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&(fields.len() as u16).to_le_bytes());
    for ((tag, kind, values), place) in fields.iter().zip(places) {
        out.extend_from_slice(&tag.to_le_bytes());
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&(values.len() as u32).to_le_bytes());
        out.extend_from_slice(&place);
    }
    out.extend_from_slice(&[0; 4]);
    out
}

/// A 4 x 2 picture in one strip of `samples` 8-bit samples, with more fields.
fn picture(samples: u32, data: &[u8], more: &[(u16, u16, &[u32])]) -> Vec<u8> {
    let bits = vec![8; samples as usize];
    let n = [data.len() as u32];
    let has = |t: u16| more.iter().any(|(m, _, _)| *m == t);
    let photometric = [if samples < 3 { 1 } else { 2 }];
    let common: [(u16, u16, &[u32]); 9] = [
        (256, 4, &[4]),
        (257, 4, &[2]),
        (258, 3, &bits),
        (259, 3, &[1]),
        (262, 3, &photometric),
        (273, 4, &[8]),
        (277, 3, &[samples]),
        (278, 4, &[2]),
        (279, 4, &n),
    ];
    let mut fields: Vec<_> = common.into_iter().filter(|(t, _, _)| !has(*t)).collect();
    fields.extend(more);
    fields.sort_by_key(|f| f.0);
    tiff(&fields, data)
}

fn written(dir: &tempfile::TempDir, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join("a.tif");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn what_is_not_read_is_unsupported_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let data = [7u8; 4 * 2 * 3 * 4];
    type Case<'a> = (&'a [(u16, u16, &'a [u32])], &'a str);
    let cases: [Case<'_>; 8] = [
        (&[(258, 3, &[16, 16, 16])], "16 bits"),
        (&[(258, 3, &[32, 32, 32]), (339, 3, &[3, 3, 3])], "32 bits"),
        (&[(258, 3, &[1, 1, 1])], "1 bits"),
        (&[(339, 3, &[2, 2, 2])], "unsigned"),
        (&[(274, 3, &[6])], "orientation 6"),
        (&[(266, 3, &[2])], "FillOrder"),
        (&[(262, 3, &[5])], "photometric"),
        (&[(259, 3, &[34_887])], "compression"),
    ];
    for (fields, word) in cases {
        let e = open(&written(&dir, &picture(3, &data, fields)), "").unwrap_err();
        assert!(matches!(e, SlideError::Unsupported { .. }), "{word}: {e}");
        let help = if word == "orientation 6" { "save it upright" } else { "export" };
        assert!(e.to_string().contains(word) && e.to_string().contains(help), "{word}: {e}");
    }
    for (name, word) in
        [("bits16.tif", "16 bits"), ("orientation6.tif", "orientation"), ("fillorder2.tif", "Fill")]
    {
        let Some(path) = hostile(name) else { continue };
        let e = open(&path, "").unwrap_err();
        assert!(matches!(e, SlideError::Unsupported { .. }) && e.to_string().contains(word), "{e}");
    }
}

#[test]
fn opacity_is_over_white_and_other_extra_samples_are_not_opacity() {
    let dir = tempfile::tempdir().unwrap();
    let pixels: Vec<[u8; 4]> = (0..8u8).map(|i| [10 * i, 100, 30, 36 * i]).collect();
    let read = |samples: u32, data: &[u8], kind: u32| {
        let bytes = picture(samples, data, &[(338, 3, &[kind])]);
        let slide = open(&written(&dir, &bytes), "").unwrap();
        slide.read_level(0, Rect::new(0, 0, 4, 2)).unwrap().data
    };
    let rgba = pixels.concat();
    let expect = |f: &dyn Fn(u8, u8) -> u8| -> Vec<u8> {
        pixels.iter().flat_map(|p| [f(p[0], p[3]), f(p[1], p[3]), f(p[2], p[3])]).collect()
    };
    let over =
        |c: u8, a: u8| (f64::from(c) * f64::from(a) / 255.0 + 255.0 - f64::from(a)).round() as u8;
    assert_eq!(read(4, &rgba, 2), expect(&over));
    assert_eq!(read(4, &rgba, 1), expect(&|c, a| c.saturating_add(255 - a)));
    assert_eq!(read(4, &rgba, 0), expect(&|c, _| c));
    let grey: Vec<u8> = pixels.iter().flat_map(|p| [p[0], p[3]]).collect();
    let want: Vec<u8> = pixels.iter().flat_map(|p| [over(p[0], p[3]); 3]).collect();
    assert_eq!(read(2, &grey, 2), want);
    let Some(path) = hostile("rgba_unassoc.tif") else { return };
    open(&path, "").unwrap().read_level(0, Rect::new(0, 0, 128, 128)).unwrap();
}

#[test]
fn every_limit_is_an_error_with_its_number() {
    let refused = |name: &str, settings: &str, limit: &str| {
        let Some(path) = hostile(name) else { return };
        let e = open(&path, settings)
            .and_then(|s| s.read_level(0, Rect::new(5, 5, 64, 64)))
            .unwrap_err();
        assert!(matches!(e, SlideError::Limit { limit: l, .. } if l == limit), "{name}: {e}");
        let text = e.to_string();
        assert!(text.contains(name) && text.contains(limit) && text.contains("raise"), "{text}");
    };
    refused("amp_4000x100k.tif", "", "fields");
    refused("amp_300x1M.tif", "", "fields");
    refused("amp_4000x100k.tif", "directories=100", "directories");
    refused("bomb_deflate_409600.tif", "", "expansion");
    refused("bomb_deflate_409600.tif", "expansion=1e9", "pixels");
    refused("bomb_strip_1GB.tif", "decoded=512M", "decoded");
    refused("bomb_strip_1GB.tif", "expansion=100", "expansion");
    refused("bomb_planar_strip_1GB.tif", "decoded=512M", "decoded");
    refused("png_bomb_rgba16_20000.png", "decoded=512M", "decoded");
    refused("png_bomb_rgba16_20000.png", "pixels=1e8", "pixels");
    // A JPEG is decoded in memory.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.jpg");
    let drawn = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/slides/flat_420.jpg");
    let mut bytes = std::fs::read(drawn).unwrap();
    let at = bytes.windows(2).position(|w| w[0] == 0xFF && matches!(w[1], 0xC0 | 0xC2)).unwrap();
    bytes[at + 5..at + 9].copy_from_slice(&[0x40, 0, 0x40, 0]);
    std::fs::write(&path, bytes).unwrap();
    let e = open(&path, "memory=256M,expansion=1e9").unwrap_err();
    assert!(matches!(e, SlideError::Limit { limit: "memory", .. }), "{e}");
    assert_eq!(e.remedy(), Some(Remedy::Limit));
}

#[test]
fn one_strip_is_decoded_once_whatever_the_memory() {
    let (Some(strip), Some(tiled)) = (hostile("strip4000.tif"), hostile("tiled4000.tif")) else {
        return;
    };
    let tiled = open(&tiled, "").unwrap();
    let (dir, bytes) = (tempfile::tempdir().unwrap(), std::fs::read(strip).unwrap());
    // 48 MB of pixels: within a quarter of 400 MB; in a file where there are 64 MB.
    for settings in ["memory=400M,decoded=48000000", "memory=64M,decoded=48000000"] {
        let copy = dir.path().join("strip.tif");
        std::fs::write(&copy, &bytes).unwrap();
        let slide = open(&copy, settings).unwrap();
        for i in 0..64i64 {
            let (x, y) = (i % 8 * 500 - 7, i / 8 * 500 - 3);
            let at = |s: &Slide| s.read_level(0, Rect::new(x, y, 300, 200)).unwrap().data;
            assert!(at(&slide) == at(&tiled), "{settings}: {x}, {y}");
            // The strip was decoded; to decode it again is an error.
            std::fs::OpenOptions::new().write(true).open(&copy).unwrap().set_len(8).unwrap();
        }
    }
    let Some(path) = hostile("defl_strip3000.tif") else { return };
    let (memory, file) = (open(&path, "memory=1G").unwrap(), open(&path, "memory=64M").unwrap());
    let all = |s: &Slide| s.read_level(0, Rect::new(0, 0, 3000, 3000)).unwrap().data;
    assert!(all(&memory) == all(&file));
}

#[test]
fn sixteen_bits_and_interlacing_go_through_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.png");
    let image = image::ImageBuffer::from_fn(90, 70, |x, y| {
        image::Rgba([(x * 700) as u16, (y * 900) as u16, 40_000u16, (x * y * 10) as u16])
    });
    image.save(&path).unwrap();
    let slide = open(&path, "").unwrap();
    let read = slide.read_level(0, Rect::new(0, 0, 90, 70)).unwrap().data;
    let eight = image::DynamicImage::ImageRgba16(image).into_rgba8();
    let over = |c: u8, a: u8| {
        ((u32::from(c) * u32::from(a) + 255 * (255 - u32::from(a)) + 127) / 255) as u8
    };
    let want: Vec<u8> =
        eight.pixels().flat_map(|p| [0, 1, 2].map(|k| over(p.0[k], p.0[3]))).collect();
    assert!(read == want);
}

#[test]
fn an_unreadable_tile_counts_as_tissue_that_is_missed() {
    let Some(path) = hostile("one_zero_tile.svs") else { return };
    let slide = open(&path, "").unwrap();
    let (w, h) = slide.dimensions();
    let (_, unread) = slide
        .read_partial(slide.resolution().unwrap().x, Rect::new(0, 0, w as usize, h as usize))
        .unwrap();
    assert_eq!(unread.len(), 1);
    let rect = slide.tile_rect(unread[0]);
    let strict = slide.read_level(0, Rect::new(rect.x, rect.y, 8, 8)).unwrap_err();
    assert!(strict.is_tile(), "{strict}");
    let mask = TissueMask::find(&slide).unwrap();
    let middle = mitosis::Point::new(rect.x as f64 + 20.0, rect.y as f64 + 20.0);
    assert!(mask.contains(middle) && mask.covers(rect));
    assert_eq!(slide.thumbnail_partial(300).unwrap().height, 300);
    assert!(slide.thumbnail(300).is_err());
}

#[test]
fn tiles_left_out_and_tiles_in_doubt_are_counted() {
    if let Some(path) = hostile("third_counts_zero.svs") {
        let slide = open(&path, "").unwrap();
        let absent = slide.absent_tiles(0);
        let (columns, rows) = slide.levels()[0].grid();
        let share = absent.len() as f64 / (columns * rows) as f64;
        assert!((share - 1.0 / 3.0).abs() < 0.02, "{share}");
        let (w, h) = slide.dimensions();
        let r = slide.resolution().unwrap();
        let whole = w as f64 * h as f64 * r.x.get() * r.y.get() * 1e-6;
        let area = slide.tiles_area(absent).unwrap().0;
        assert!((area / whole - 1.0 / 3.0).abs() < 0.03, "{area} of {whole}");
        assert!(slide.suspect_tiles().is_empty());
    }
    if let Some(path) = hostile("silent_tile.svs") {
        let slide = open(&path, "").unwrap();
        slide.thumbnail(500).unwrap();
        let (absent, suspect) = (slide.absent_tiles(0), slide.suspect_tiles());
        assert_eq!(absent.len() + suspect.len(), 1, "{absent:?} {suspect:?}");
    }
}

/// Scanners' own files are sound: a doubt would be a false alarm.
#[test]
fn sound_slides_are_in_no_doubt() {
    let mut seen = 0;
    for name in ["CMU-1-Small-Region.svs", "small.svs", "tcga-cr-7395-01a-01-ts1.svs", "boxes.tiff"]
    {
        let Some(path) = testkit::data(&format!("slides/{name}")) else { continue };
        let slide = open(&path, "").unwrap();
        for (level, l) in slide.levels().iter().enumerate() {
            let (w, h) = (l.width.min(3000) as usize, l.height.min(3000) as usize);
            slide.read_level(level, Rect::new(0, 0, w, h)).unwrap();
        }
        assert_eq!(slide.suspect_tiles(), [], "{name}");
        seen += 1;
    }
    eprintln!("{seen} slides");
}

#[test]
fn a_resolution_for_all_serves_those_that_state_none() {
    let drawn = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/slides/svs_jpeg_420.svs");
    let other = Some(Mpp::new(0.5).unwrap());
    let read = |mpp_rule| {
        let options = OpenOptions { mpp: other, mpp_rule, ..OpenOptions::default() };
        Slide::open_with(&drawn, &options).unwrap().resolution().map(|r| r.x.get()).ok()
    };
    assert_eq!(read(MppRule::Fill), Some(0.25));
    assert_eq!(read(MppRule::Force), Some(0.5));
    assert_eq!(read(MppRule::Agree), None);
}

/// Where an associated image of another size is in the file than when it was opened, OpenSlide
/// would write beyond the buffer or leave it half empty.
#[test]
fn a_replaced_file_does_not_reach_openslide_with_old_sizes() {
    let Some(original) = testkit::data("slides/CMU-1-Small-Region.svs") else { return };
    if slide::openslide_version().is_err() {
        eprintln!("SKIPPED: no OpenSlide library here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.svs");
    std::fs::copy(&original, &path).unwrap();
    let options = OpenOptions { force_openslide: true, ..OpenOptions::default() };
    let slide = Slide::open_with(&path, &options).unwrap();
    assert_eq!(slide.associated_image("label").unwrap().width, 387);
    // The same file with a smaller label and a destroyed first tile.
    let mut bytes = std::fs::read(&original).unwrap();
    let word = |b: &[u8], at: usize, n: usize| {
        b[at..at + n].iter().rev().fold(0usize, |v, x| v << 8 | usize::from(*x))
    };
    let mut at = word(&bytes, 4, 4);
    let mut first_tile = None;
    while at != 0 {
        let n = word(&bytes, at, 2);
        for e in (0..n).map(|i| at + 2 + 12 * i) {
            match (word(&bytes, e, 2), word(&bytes, e + 8, 2)) {
                (256, 387) => bytes[e + 8..e + 10].copy_from_slice(&380u16.to_le_bytes()),
                (324, _) if first_tile.is_none() => {
                    first_tile = Some(word(&bytes, word(&bytes, e + 8, 4), 4));
                }
                _ => {}
            }
        }
        at = word(&bytes, at + 2 + 12 * n, 4);
    }
    let tile = first_tile.unwrap();
    bytes[tile..tile + 400].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    assert!(slide.read_level(0, Rect::new(0, 0, 16, 16)).is_err(), "the handle is opened again");
    let e = slide.associated_image("label").unwrap_err();
    assert!(e.to_string().contains("replaced"), "{e}");
}
