//! Slides on a server: the same pixels, few requests, and no tile is blamed for a server.

#![cfg(feature = "remote")]

use mitosis::RgbTile;
use slide::{OpenOptions, Rect, Slide, SlideError};
use std::path::Path;
use testkit::server::{Faults, Server};

fn jpeg(w: u32, h: u32) -> Vec<u8> {
    let rgb: Vec<u8> = (0..w * h * 3).map(|i| (i * 7 % 251 + i / 999 % 5) as u8).collect();
    let mut out = Vec::new();
    let (w, h) = (w as u16, h as u16);
    jpeg_encoder::Encoder::new(&mut out, 90)
        .encode(&rgb, w, h, jpeg_encoder::ColorType::Rgb)
        .unwrap();
    out
}

fn png(w: u32, h: u32) -> Vec<u8> {
    let rgb = (0..w * h * 3).map(|i| (i * 7 % 251 + i / 999 % 5) as u8).collect();
    let mut out = std::io::Cursor::new(Vec::new());
    image::RgbImage::from_raw(w, h, rgb)
        .unwrap()
        .write_to(&mut out, image::ImageFormat::Png)
        .unwrap();
    out.into_inner()
}

/// A TIFF of one tile of `side` pixels, uncompressed, its directory behind the pixels.
fn tiff(side: u32) -> Vec<u8> {
    let pixels: Vec<u8> = (0..side * side * 3).map(|i| (i / 3 % 251) as u8).collect();
    let mut out = b"II*\0".to_vec();
    let at = 16 + pixels.len() as u32;
    out.extend(at.to_le_bytes());
    out.extend([8u16, 8, 8, 0].iter().flat_map(|v| v.to_le_bytes()));
    out.extend(&pixels);
    let fields: [(u16, u16, u32, u32); 10] = [
        (256, 4, 1, side),
        (257, 4, 1, side),
        (258, 3, 3, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (277, 3, 1, 3),
        (322, 4, 1, side),
        (323, 4, 1, side),
        (324, 4, 1, 16),
        (325, 4, 1, pixels.len() as u32),
    ];
    out.extend((fields.len() as u16).to_le_bytes());
    for (tag, kind, count, value) in fields {
        out.extend(tag.to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend(count.to_le_bytes());
        out.extend(value.to_le_bytes());
    }
    out.extend(0u32.to_le_bytes());
    out
}

/// Every level whole, and the associated images.
fn everything(slide: &Slide) -> Result<Vec<RgbTile>, SlideError> {
    let level = |(i, l): (usize, &slide::Level)| {
        slide.read_level(i, Rect::new(0, 0, l.width as usize, l.height as usize))
    };
    let levels = slide.levels().iter().enumerate().map(level);
    let named = slide.associated_images().iter().map(|a| slide.associated_image(&a.name));
    levels.chain(named).collect()
}

#[test]
fn pixels_and_words_are_those_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = [("a.jpg", jpeg(300, 200)), ("b.png", png(300, 200)), ("c.tiff", tiff(512))];
    let mut files: Vec<_> = drawn
        .into_iter()
        .map(|(name, bytes)| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        })
        .collect();
    files.extend(testkit::data("slides/CMU-1-Small-Region.svs"));
    let dicom = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dicom");
    files.extend(["jpeg_422", "sparse", "frames_none_1"].map(|n| dicom.join(n).join("a.dcm")));
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let server = Server::start();
        let bytes = std::fs::read(&file).unwrap();
        let url = server.put(&format!("/{name}"), bytes.clone());
        let (here, there) = (Slide::open(&file).unwrap(), Slide::open(&url).unwrap());
        assert_eq!(there.path(), Path::new(&url));
        assert_eq!((here.levels(), here.properties()), (there.levels(), there.properties()));
        assert!(everything(&here).unwrap() == everything(&there).unwrap(), "{name}");
        let (asked, sent) = (server.requests().len(), server.sent());
        assert!(sent <= bytes.len() as u64, "{name}: {sent} bytes of {}", bytes.len());
        assert!(asked <= 2 + bytes.len() / (256 << 10), "{name}: {asked} requests");
    }
}

#[test]
fn a_server_that_fails_fails_the_slide_and_no_tile() {
    let server = Server::start();
    let url = server.put("/a.tiff", tiff(1024));
    let slide = Slide::open(format!("{url}?sig=hush")).unwrap();
    server.faults(Faults { status: Some(403), ..Faults::default() });
    for _ in 0..2 {
        let e = slide.read_level(0, Rect::new(500, 500, 9, 9)).unwrap_err();
        assert!(!e.is_tile() && matches!(e, SlideError::Remote { .. }), "{e:?}");
        let text = format!("{e} {e:?} {slide:?}");
        assert!(text.contains(&url) && text.contains("403") && !text.contains("hush"), "{text}");
    }
    server.faults(Faults::default());
    let slide = Slide::open(&url).unwrap();
    let _ = server.put("/a.tiff", tiff(1000));
    let e = slide.read_level(0, Rect::new(700, 700, 9, 9)).unwrap_err();
    assert!(e.to_string().contains("changed on the server"), "{e}");
}

#[test]
fn what_is_not_read_from_afar_states_what_to_do() {
    let server = Server::start();
    let open = |url: &str| Slide::open(url).unwrap_err().to_string();
    let other = server.put("/x.czi", b"ZISRAWFILE\0\0\0\0\0\0 and more".to_vec());
    assert!(open(&other).contains("download the slide first"), "{}", open(&other));
    // What is next to a file on a server is not looked for.
    let dicom = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dicom/series/c.dcm");
    let label = server.put("/c.dcm", std::fs::read(dicom).unwrap());
    assert!(open(&label).contains("no picture of the slide itself"), "{}", open(&label));
    let options = OpenOptions { force_openslide: true, ..OpenOptions::default() };
    let url = server.put("/a.tiff", tiff(64));
    let forced = Slide::open_with(&url, &options).unwrap_err().to_string();
    assert!(forced.contains("download the slide first"), "{forced}");
    assert!(open(&server.put("/e.svs", vec![])).contains("empty"));
    assert!(open(&format!("{}/none.svs", server.address())).contains("404"));
    assert!(open("ftp://h/a.svs").contains("https://"));
    let cut = server.put("/cut.tiff", tiff(64)[..5000].to_vec());
    assert!(open(&cut).contains("damaged file"), "{}", open(&cut));
}
