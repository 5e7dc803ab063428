//! DICOM slides: pixels against those that were drawn, libjpeg and OpenSlide; which files make a slide;
//! what is refused, and in which words.

use mitosis::RgbTile;
use slide::privacy::{self, Personal};
use slide::{DicomPart, OpenOptions, Rect, Slide, SlideError, dicom_part};
use std::path::{Path, PathBuf};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn drawn(name: &str) -> PathBuf {
    golden().join("dicom").join(name)
}

fn figures() -> serde_json::Map<String, serde_json::Value> {
    serde_json::from_slice(&std::fs::read(golden().join("dicom.json")).unwrap()).unwrap()
}

/// Without OpenSlide: what is read here needs none.
fn open(path: &Path) -> Result<Slide, SlideError> {
    let options =
        OpenOptions { openslide: Some("/no/such/library".into()), ..OpenOptions::default() };
    Slide::open_with(path, &options)
}

fn through_openslide(path: &Path) -> Option<Slide> {
    let options = OpenOptions { force_openslide: true, ..OpenOptions::default() };
    let opened = Slide::open_with(path, &options);
    opened.map_err(|e| eprintln!("SKIPPED: not through OpenSlide: {e}")).ok()
}

fn whole(slide: &Slide, level: usize) -> RgbTile {
    let l = &slide.levels()[level];
    slide.read_level(level, Rect::new(0, 0, l.width as usize, l.height as usize)).unwrap()
}

fn check(tile: &RgbTile, want: &serde_json::Value, what: &str) {
    let mut crc = flate2::Crc::new();
    crc.update(&tile.data);
    let size = |key: &str| want[key].as_u64().unwrap() as usize;
    assert_eq!((tile.width, tile.height), (size("width"), size("height")), "{what}");
    assert_eq!(u64::from(crc.sum()), want["crc32"].as_u64().unwrap(), "{what}");
}

fn worst(a: &RgbTile, b: &RgbTile) -> u8 {
    assert_eq!((a.width, a.height), (b.width, b.height));
    a.data.iter().zip(&b.data).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn every_drawn_slide_equals_its_figures() {
    for (name, own) in figures() {
        let slide = open(&drawn(&name)).unwrap();
        assert_eq!((slide.format(), slide.vendor()), ("dicom", "dicom"), "{name}");
        assert_eq!(slide.resolution().unwrap().x.get(), 0.25, "{name}");
        assert_eq!(slide.dimensions(), (100, 70));
        if let Some(picture) = own["picture"].as_str() {
            let picture = Slide::open(drawn(picture)).unwrap();
            assert!(worst(&whole(&slide, 0), &whole(&picture, 0)) <= 1, "{name}");
            continue;
        }
        let levels = own["levels"].as_array().unwrap();
        assert_eq!(slide.levels().len(), levels.len(), "{name}");
        for (i, want) in levels.iter().enumerate() {
            check(&whole(&slide, i), want, &format!("{name} level {i}"));
        }
        let images = own["associated"].as_array().cloned().unwrap_or_default();
        assert_eq!(slide.associated_images().len(), images.len(), "{name}");
        for want in images {
            let image = want["name"].as_str().unwrap();
            check(&slide.associated_image(image).unwrap(), &want, image);
        }
        let absent: Vec<_> =
            slide.absent_tiles(0).iter().map(|t| serde_json::json!([t.column, t.row])).collect();
        assert_eq!(absent, own["left_out"].as_array().cloned().unwrap_or_default(), "{name}");
        // Markers that contradict the header cast doubt on every frame.
        let doubted = slide.suspect_tiles();
        assert_eq!(doubted.is_empty(), name != "jpeg_marked/a.dcm", "{name}: {doubted:?}");
    }
}

/// The organization of frames and the places that each of them states are compared.
#[test]
fn frames_out_of_the_order_that_is_stated_are_refused() {
    let (_dir, path) = changed("sparse/a.dcm", b"TILED_SPARSE", b"TILED_FULL  ");
    let e = open(&path).unwrap_err().to_string();
    assert!(e.contains("11 frames of 12"), "{e}");
    let slide = open(&drawn("shuffled/a.dcm")).unwrap();
    assert_eq!(slide.levels().len(), 1);
    let (_dir, path) = changed("shuffled/a.dcm", b"TILED_SPARSE", b"TILED_FULL  ");
    let e = open(&path).unwrap_err().to_string();
    assert!(e.contains("frame 0 states column 97 and row 65"), "{e}");
}

/// All that both give; `most` is how far pixels may be apart.
fn compare(path: &Path, most: u8) {
    let Some(theirs) = through_openslide(path) else { return };
    let (own, name) = (open(path).unwrap(), path.display());
    let sizes = |s: &Slide| -> Vec<_> { s.levels().iter().map(|l| (l.width, l.height)).collect() };
    assert_eq!(sizes(&own), sizes(&theirs), "{name}");
    for (i, (a, b)) in own.levels().iter().zip(theirs.levels()).enumerate() {
        assert!((a.downsample_x / b.downsample_x - 1.0).abs() < 0.02, "{name} level {i}");
        assert!(worst(&whole(&own, i), &whole(&theirs, i)) <= most, "{name} level {i}");
    }
    let (w, h) = own.dimensions();
    for (x, y) in [(-3, -5), (w as i64 / 2 - 20, h as i64 / 2 - 9), (w as i64 - 11, h as i64 - 7)] {
        let read = |s: &Slide| s.read_region(0, Rect::new(x, y, 37, 23)).unwrap();
        assert!(worst(&read(&own), &read(&theirs)) <= most, "{name} at ({x}, {y})");
    }
    let names = |s: &Slide| -> Vec<_> {
        s.associated_images().iter().map(|a| (a.name.clone(), a.width, a.height)).collect()
    };
    assert_eq!(names(&own), names(&theirs), "{name}");
    for (image, ..) in names(&own) {
        let read = |s: &Slide| s.associated_image(&image).unwrap();
        assert!(worst(&read(&own), &read(&theirs)) <= most, "{name} {image}");
    }
    let (a, b) = (own.resolution().unwrap(), theirs.resolution().unwrap());
    assert_eq!((a.x, a.y), (b.x, b.y), "{name}");
    eprintln!("{name} equals OpenSlide");
}

#[test]
fn drawn_slides_equal_openslide() {
    for (name, own) in figures() {
        if own["openslide"] != serde_json::json!(false) {
            compare(&drawn(&name), u8::from(name.starts_with("jp2k_lossy")));
        }
    }
}

#[test]
fn real_slides_equal_openslide() {
    for name in
        ["boxes_0", "boxes_1", "sm_image", "sm_image_control", "sm_image_dots", "sm_image_numbers"]
    {
        let Some(path) = testkit::data(&format!("slides/{name}.dcm")) else { continue };
        assert_eq!(open(&path).unwrap().resolution().unwrap().x.get(), 0.499, "{name}");
        compare(&path, 0);
    }
}

#[test]
fn any_file_of_a_series_is_the_slide() {
    let sizes = |name: &str| {
        let slide = open(&drawn(name)).unwrap();
        let levels: Vec<_> = slide.levels().iter().map(|l| (l.width, l.downsample_x)).collect();
        let images: Vec<_> = slide.associated_images().iter().map(|a| a.name.clone()).collect();
        (levels, images)
    };
    let all = (vec![(100, 1.0), (50, 2.0)], vec!["label".to_owned()]);
    for file in ["a", "b", "c"] {
        assert_eq!(sizes(&format!("series/{file}.dcm")), all, "{file}");
    }
    // A file alone is what it is; a copy next to it, another series and a file that is not DICOM change nothing.
    let dir = tempfile::tempdir().unwrap();
    let to = |name: &str| dir.path().join(name);
    let copy =
        |from: &str, name: &str| std::fs::copy(drawn(from), to(name)).map(|_| to(name)).unwrap();
    let path = copy("series/b.dcm", "1.dcm");
    copy("series/b.dcm", "2.dcm");
    copy("rle/a.dcm", "3.dcm");
    std::fs::write(to("4.dcm"), [3; 300]).unwrap();
    let slide = open(&path).unwrap();
    assert_eq!((slide.levels().len(), slide.associated_images().len()), (1, 0));
    let label = copy("series/c.dcm", "5.dcm");
    assert_eq!(open(&label).unwrap().levels().len(), 1, "the level next to the label");
    std::fs::remove_file(to("3.dcm")).unwrap();
    // Cut anywhere: before it names its series, behind that, in its frames.
    let bytes = std::fs::read(drawn("series/a.dcm")).unwrap();
    for cut in (0..700).step_by(7).chain([1500, 4000]) {
        std::fs::write(to("6.dcm"), &bytes[..cut]).unwrap();
        let e = open(&path).expect_err(&format!("cut at {cut}")).to_string();
        assert!(e.contains("6.dcm") && e.contains("1.dcm"), "{cut}: {e}");
    }
    std::fs::write(to("6.dcm"), [&[0; 128][..], b"DICM", &[7; 300]].concat()).unwrap();
    assert!(open(&path).unwrap_err().to_string().contains("6.dcm, next to it"));
    // Among slides of other series it stops none, and each has a note.
    copy("rle/a.dcm", "3.dcm");
    let notes = open(&path).unwrap().level_notes();
    assert!(notes.len() == 1 && notes[0].starts_with("6.dcm, next to it"), "{notes:?}");
    std::fs::remove_file(to("6.dcm")).unwrap();
    assert!(open(&path).unwrap().level_notes().is_empty());
}

/// Nobody knows which of two pictures is the slide: both files are named, with what helps.
#[test]
fn two_pictures_of_one_size_and_several_scenes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, from: &str, old: &[u8], new: &[u8]| {
        let mut bytes = std::fs::read(drawn(from)).unwrap();
        let places: Vec<usize> =
            (0..bytes.len()).filter(|i| bytes[*i..].starts_with(old)).collect();
        assert!(!places.is_empty(), "{name}");
        places.iter().for_each(|at| bytes[*at..at + old.len()].copy_from_slice(new));
        std::fs::write(dir.path().join(name), bytes).unwrap();
    };
    let refused = |advice: &str, words: [&str; 3]| {
        let e = open(&dir.path().join("1.dcm")).unwrap_err();
        assert!(matches!(&e, SlideError::Unsupported { remedy, .. } if *remedy == advice), "{e:?}");
        words.iter().for_each(|w| assert!(e.to_string().contains(w), "{w}: {e}"));
        // Of one scene, or with one of the two, the folder is read.
        std::fs::remove_file(dir.path().join("2.dcm")).unwrap();
        open(&dir.path().join("1.dcm")).unwrap();
    };
    put("1.dcm", "series/a.dcm", b"VOLUME", b"VOLUME");
    put("2.dcm", "series/a.dcm", b"498.7.1.2", b"498.7.1.9");
    refused(
        "leave one of them in the folder",
        ["two pictures of 50 x 35 pixels", "1.dcm", "2.dcm"],
    );
    let rows = |n: u32| [&[0x48, 0, 7, 0][..], b"UL", &[4, 0], &n.to_le_bytes()].concat();
    put("1.dcm", "series/b.dcm", b"VOLUME", b"VOLUME");
    put("2.dcm", "series/a.dcm", &rows(35), &rows(48));
    refused(
        "leave the files of one scene in the folder",
        ["several scenes", "1.dcm of 100 x 70 px", "2.dcm of 50 x 48 px"],
    );
}

#[test]
fn parts_show_what_a_file_belongs_to() {
    let part = |name: &str| dicom_part(&drawn(name));
    let Some(DicomPart::Slide { series, level, width, first_frame }) = part("parts/a.dcm") else {
        panic!("a part of a slide");
    };
    assert_eq!((level, width, first_frame), (true, 100, 6));
    assert!(matches!(part("parts/b.dcm"), Some(DicomPart::Slide { series: s, .. }) if s == series));
    assert!(matches!(part("series/c.dcm"), Some(DicomPart::Slide { level: false, .. })));
    assert_eq!(part("jp2k_lossy.png"), None);
    assert_eq!(dicom_part(Path::new("no such file")), None);
}

/// A copy of a drawn file with some of its bytes replaced, once.
fn changed(name: &str, old: &[u8], new: &[u8]) -> (tempfile::TempDir, PathBuf) {
    assert_eq!(old.len(), new.len());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("changed.dcm");
    let mut bytes = std::fs::read(drawn(name)).unwrap();
    let at = bytes.windows(old.len()).position(|w| w == old).unwrap();
    bytes[at..at + old.len()].copy_from_slice(new);
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

#[test]
fn what_is_not_read_is_reported() {
    let us = |tag: [u8; 4], value: u16| {
        let [low, high] = value.to_le_bytes();
        [&tag[..], b"US", &[2, 0, low, high]].concat()
    };
    let ul = |tag: [u8; 4], value: u32| [&tag[..], b"UL", &[4, 0], &value.to_le_bytes()].concat();
    let (bits, samples) = ([0x28, 0, 0, 1], [0x28, 0, 2, 0]);
    let (planes, paths, rows) = ([0x48, 0, 3, 3], [0x48, 0, 2, 3], [0x48, 0, 7, 0]);
    let jpeg = b"1.2.840.10008.1.2.4.50\0\0";
    let cases: [(&str, Vec<u8>, Vec<u8>, &str); 13] = [
        ("rle", us(bits, 8), us(bits, 16), "samples of 8 bits in 16"),
        ("rle", us(samples, 3), us(samples, 1), "1 samples per pixel"),
        ("rle", ul(planes, 1), ul(planes, 5), "5 focal planes"),
        ("rle", ul(paths, 1), ul(paths, 3), "3 optical paths"),
        ("rle", b"RGB ".to_vec(), b"HSV ".to_vec(), "HSV"),
        ("rle", ul(rows, 70), ul(rows, 700), "12 frames of 88"),
        ("rle", ul(rows, 70), ul(rows, 20), "12 frames for 4 places"),
        ("rle", ul(rows, 70), ul(rows, 0), "Total Pixel Matrix Rows is missing or 0"),
        ("rle", ul(rows, 70), ul(rows, u32::MAX), "Total Pixel Matrix Rows is 4294967295"),
        ("jpeg_422", jpeg[..22].to_vec(), b"1.2.840.10008.1.2.4.80".to_vec(), "JPEG-LS"),
        ("jpeg_422", jpeg[..22].to_vec(), b"1.2.840.10008.1.2.4.57".to_vec(), "lossless JPEG"),
        ("rle", b"1.77.1.6".to_vec(), b"1.77.1.5".to_vec(), "not a whole-slide image"),
        ("rle", b"VOLUME".to_vec(), b"LABEL ".to_vec(), "no picture of the slide itself"),
    ];
    for (name, old, new, words) in cases {
        let file = format!("{name}/a.dcm");
        let (_dir, path) = if words == "not a whole-slide image" {
            // The class is in the first group, too.
            let (dir, path) = changed(&file, &old, &old);
            let mut bytes = std::fs::read(&path).unwrap();
            while let Some(at) = bytes.windows(8).position(|w| w == old) {
                bytes[at..at + 8].copy_from_slice(&new);
            }
            std::fs::write(&path, bytes).unwrap();
            (dir, path)
        } else {
            changed(&file, &old, &new)
        };
        let e = open(&path).unwrap_err().to_string();
        assert!(e.contains("changed.dcm") && e.contains(words), "{words}: {e}");
    }
    for (name, words) in [
        ("sm_image_jpegls", "1.2.840.10008.1.2.4.80 (JPEG-LS)"),
        ("sm_image_grayscale", "samples of 16 bits"),
    ] {
        let Some(path) = testkit::data(&format!("slides/{name}.dcm")) else { continue };
        let e = open(&path).unwrap_err();
        assert!(matches!(&e, SlideError::Unsupported { remedy, .. } if remedy.contains("convert")));
        assert!(e.to_string().contains(words), "{e}");
    }
}

#[test]
fn a_resolution_is_not_guessed() {
    let spacing = b"0.00025\\0.00025";
    for (new, words) in [
        (&b"0.00000\\0.00025"[..], "implausible"),
        (b"0.00050\\0.00025", "contradicting"),
        (b"hello w\\orld 25", "implausible"),
        (b"0.00200\\0.00200", "contradicting"),
        (b"0,00025\\0,00025", "dicom.PixelSpacing = `0,00025\\0,00025`"),
        (b"0.00025\\0.0002x", "dicom.PixelSpacing = `0.00025\\0.0002x`"),
    ] {
        let (_dir, path) = changed("rle/a.dcm", spacing, new);
        let slide = open(&path).unwrap();
        let e = slide.resolution().unwrap_err().to_string();
        assert!(e.contains(words) && !e.contains("NaN"), "{words}: {e}");
    }
    // Another attribute in its place.
    let measures = [0x28, 0, 0x10, 0x91];
    let (_dir, path) = changed("rle/a.dcm", &measures, &[0x28, 0, 0x11, 0x91]);
    let e = open(&path).unwrap().resolution().unwrap_err();
    assert!(matches!(e, SlideError::MissingResolution { .. }), "{e}");
}

/// A copy of a drawn file in a folder, with attributes put before the sizes of the whole.
fn put(dir: &Path, name: &str, from: &str, attributes: &[&[u8]]) -> PathBuf {
    let mut bytes = std::fs::read(drawn(from)).unwrap();
    let at = bytes.windows(6).position(|w| w == [0x48, 0, 6, 0, b'U', b'L']).unwrap();
    bytes.splice(at..at, attributes.concat());
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Millimetres that the whole covers, across and down.
fn volume(width: f32, height: f32) -> Vec<u8> {
    let element =
        |tag: u8, mm: f32| [&[0x48, 0, tag, 0][..], b"FL", &[4, 0], &mm.to_le_bytes()].concat();
    [element(1, width), element(2, height)].concat()
}

/// 100 x 70 px of 0.25 um are 0.025 x 0.0175 mm; some writers exchange the two where the slide is turned.
#[test]
fn a_size_in_millimetres_that_contradicts_the_spacing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let resolution = |width: f32, height: f32| {
        let path = put(dir.path(), "a.dcm", "rle/a.dcm", &[&volume(width, height)]);
        open(&path).unwrap().resolution().map(|r| r.x.get()).map_err(|e| e.to_string())
    };
    for sound in [(0.025, 0.0175), (0.0175, 0.025), (0.0255, 0.0175), (0.0, 0.0), (-1.0, 2.0)] {
        assert_eq!(resolution(sound.0, sound.1).unwrap(), 0.25, "{sound:?}");
    }
    for alone in [(0.025, 0.0), (0.0, 0.0175), (0.0, 0.025)] {
        assert_eq!(resolution(alone.0, alone.1).unwrap(), 0.25, "{alone:?}");
    }
    // Of the second the area is right; the last states one side.
    for ((width, height), um) in
        [((0.05, 0.035), "0.5"), ((0.05, 0.00875), "0.5 x 0.125"), ((0.05, 0.0), "0.5")]
    {
        let e = resolution(width, height).unwrap_err();
        for words in
            ["contradicting", "PixelSpacing = 0.25", &format!("ImagedVolumeWidth = {um} um/px")]
        {
            assert!(e.contains(words), "{words}: {e}");
        }
    }
}

/// A sequence of one item, and in it what it is given.
fn sequence(tag: [u8; 4], inner: &[u8]) -> Vec<u8> {
    let item = [&[0xFE, 0xFF, 0x00, 0xE0][..], &(inner.len() as u32).to_le_bytes(), inner].concat();
    [&tag[..], b"SQ", &[0, 0], &(item.len() as u32).to_le_bytes(), &item].concat()
}

/// um/px that the data set, all frames, and each frame state are compared.
#[test]
fn two_spacings_of_one_image_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let measured = |um: &[u8]| {
        let spacing = attribute([0x28, 0, 0x30, 0], b"DS", um);
        let measures = sequence([0x28, 0, 0x10, 0x91], &spacing);
        (spacing, sequence([0x00, 0x52, 0x30, 0x92], &measures))
    };
    let resolution = |attributes: &[u8]| {
        let path = put(dir.path(), "a.dcm", "rle/a.dcm", &[attributes]);
        open(&path).unwrap().resolution().map(|r| r.x.get()).map_err(|e| e.to_string())
    };
    let (alike, of_frame) = measured(b"0.00025\\.00025 ");
    assert_eq!((resolution(&alike), resolution(&of_frame)), (Ok(0.25), Ok(0.25)));
    let (other, of_frame) = measured(b"0.0005\\0.0005 ");
    for e in [resolution(&other), resolution(&of_frame)] {
        let e = e.unwrap_err();
        for words in ["contradicting", "= 0.5 um/px", "= 0.25 um/px", "PixelSpacing of all frames"]
        {
            assert!(e.contains(words), "{words}: {e}");
        }
    }
}

/// Levels of one series are of one place, and turned alike.
#[test]
fn levels_that_are_turned_or_elsewhere_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    // The drawn files state how they are turned.
    let opened = |fine: &[u8], coarse: &[u8], is_turned: bool| {
        let path = put(dir.path(), "b.dcm", "series/b.dcm", &[fine]);
        let other = put(dir.path(), "a.dcm", "series/a.dcm", &[coarse]);
        let mut bytes = std::fs::read(&other).unwrap();
        let at = bytes.windows(6).position(|w| w == b"\x48\0\x02\x01DS").unwrap() + 8;
        let len = usize::from(bytes[at - 2]);
        for sign in bytes[at..at + len].iter_mut().filter(|b| is_turned && **b == b'-') {
            *sign = b'+';
        }
        std::fs::write(other, bytes).unwrap();
        open(&path).map(|s| s.levels().len()).map_err(|e| e.to_string())
    };
    let at = |x: &[u8], y: &[u8]| {
        let x = attribute([0x40, 0, 0x2A, 7], b"DS", x);
        let y = attribute([0x40, 0, 0x3A, 7], b"DS", y);
        sequence([0x48, 0, 8, 0], &[x, y].concat())
    };
    // The image covers 0.025 x 0.0175 mm; the first pixel of a coarse level begins elsewhere.
    let (here, near, far) = (at(b"10", b"20"), at(b"10.001 ", b"20"), at(b"10", b"23"));
    assert_eq!((opened(&here, &near, false), opened(&here, &[], false)), (Ok(2), Ok(2)));
    for (e, words) in [
        (opened(&[], &[], true), "ImageOrientationSlide: 0\\-1\\0\\-1\\0\\0 and 0\\1\\0\\1\\0\\0"),
        (opened(&here, &far, false), "YOffsetInSlideCoordinateSystem: 20 and 23"),
    ] {
        let e = e.unwrap_err();
        assert!(e.contains("b.dcm and a.dcm") && e.contains(words), "{words}: {e}");
    }
}

/// Frames that nothing counts are frames that nobody looked at.
#[test]
fn more_frames_than_are_stated_are_refused() {
    let frames = |n: &[u8; 2]| [&[0x28, 0, 8, 0][..], b"IS", &[2, 0], n].concat();
    let words = "NumberOfFrames is 11, and the pixels are those of 12 frames";
    for name in ["planar", "rle", "jpeg_422"] {
        let (_dir, path) = changed(&format!("{name}/a.dcm"), &frames(b"12"), &frames(b"11"));
        let mut bytes = std::fs::read(&path).unwrap();
        let table = [0xFE, 0xFF, 0x00, 0xE0, 48, 0, 0, 0];
        if let Some(at) = bytes.windows(8).position(|w| w == table) {
            // The table of frames as well.
            bytes[at + 4] = 44;
            bytes.drain(at + 8 + 44..at + 8 + 48);
            std::fs::write(&path, bytes).unwrap();
        } else {
            assert_eq!(name, "planar");
        }
        let e = open(&path).unwrap_err().to_string();
        assert!(e.contains(words), "{name}: {e}");
    }
    let place = |tag: u8| attribute([0x48, 0, tag, 2], b"SL", &1i32.to_le_bytes());
    let position = sequence([0x48, 0, 0x1A, 2], &[place(0x1E), place(0x1F)].concat());
    let dir = tempfile::tempdir().unwrap();
    let of_one = sequence([0x00, 0x52, 0x30, 0x92], &position);
    let path = put(dir.path(), "a.dcm", "rle/a.dcm", &[&of_one]);
    let e = open(&path).unwrap_err().to_string();
    assert!(e.contains("places of 1 frames, 12 frames"), "{e}");
}

/// What the files of one image state of it is compared.
#[test]
fn files_of_one_image_that_contradict_each_other_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let opened = |attributes: &[u8], colour: &[u8; 4]| {
        let path = put(dir.path(), "a.dcm", "parts/a.dcm", &[]);
        let other = put(dir.path(), "b.dcm", "parts/b.dcm", &[attributes]);
        let mut bytes = std::fs::read(&other).unwrap();
        let at = bytes.windows(6).position(|w| w == b"CS\x04\0RG").unwrap();
        bytes[at + 4..at + 8].copy_from_slice(colour);
        std::fs::write(&other, bytes).unwrap();
        open(&path).map(|s| s.levels().len()).map_err(|e| e.to_string())
    };
    assert_eq!(opened(&[], b"RGB "), Ok(1));
    let e = opened(&[], b"HSV ").unwrap_err();
    assert!(
        e.contains("PhotometricInterpretation: ") && e.contains("RGB") && e.contains("HSV"),
        "{e}"
    );
    let dir = tempfile::tempdir().unwrap();
    let name = "parts/a.dcm";
    let path = put(dir.path(), "a.dcm", name, &[]);
    std::fs::copy(drawn("parts/b.dcm"), dir.path().join("b.dcm")).unwrap();
    let two = attribute([0x20, 0, 0x63, 0x91], b"US", &[2, 0]);
    for part in ["a.dcm", "b.dcm"] {
        let path = dir.path().join(part);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(two.len()).position(|w| w == two).unwrap();
        bytes[at + two.len() - 2] = 3;
        std::fs::write(&path, bytes).unwrap();
    }
    let e = open(&path).unwrap_err().to_string();
    assert!(
        e.contains("InConcatenationTotalNumber is 3, and 2 files of the image are there"),
        "{e}"
    );
}

/// A copy of a file is the file; another image under its identifier is not.
#[test]
fn two_images_that_claim_one_instance_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = put(dir.path(), "b.dcm", "series/b.dcm", &[]);
    let copy = put(dir.path(), "copy.dcm", "series/b.dcm", &[&volume(0.0, 0.0)]);
    assert_eq!(open(&path).unwrap().levels().len(), 1);
    let mut bytes = std::fs::read(&copy).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&copy, bytes).unwrap();
    let notes = open(&path).unwrap().level_notes();
    let both =
        "b.dcm (100 x 70 px) and copy.dcm (100 x 70 px) have one SOPInstanceUID and other pixels";
    assert!(notes.iter().any(|n| n.contains(both) && n.ends_with("b.dcm is read")), "{notes:?}");
    // A level under the identifier of another one.
    let [own, of_fine] = ["a", "b"].map(|name| {
        let bytes = std::fs::read(drawn(&format!("series/{name}.dcm"))).unwrap();
        let at = bytes.windows(6).position(|w| w == [8, 0, 0x18, 0, b'U', b'I']).unwrap();
        let len = usize::from(bytes[at + 6]);
        bytes[at + 8..at + 8 + len].to_vec()
    });
    let mut bytes = std::fs::read(drawn("series/a.dcm")).unwrap();
    assert_eq!(own.len(), of_fine.len());
    for at in 0..bytes.len() - own.len() {
        if bytes[at..].starts_with(&own) {
            bytes[at..at + own.len()].copy_from_slice(&of_fine);
        }
    }
    std::fs::write(&copy, bytes).unwrap();
    let e = open(&path).unwrap_err().to_string();
    for words in ["b.dcm (100 x 70 px) and copy.dcm (50 x 35 px)", "one SOPInstanceUID"] {
        assert!(e.contains(words), "{words}: {e}");
    }
}

/// As in a TIFF: a level states the um/px that its size makes of the finest, or that of the finest.
#[test]
fn a_level_whose_spacing_contradicts_its_size_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let fine = put(dir.path(), "b.dcm", "series/b.dcm", &[]);
    let coarse = put(dir.path(), "a.dcm", "series/a.dcm", &[]);
    let whole = std::fs::read(&coarse).unwrap();
    let old = b"0.0005\\0.0005";
    let at = whole.windows(old.len()).position(|w| w == old).unwrap();
    for (new, sound) in [(old, true), (b"0.0025\\0.0025", false), (b"0.0007\\0.0007", false)] {
        let mut bytes = whole.clone();
        bytes[at..at + old.len()].copy_from_slice(new);
        std::fs::write(&coarse, bytes).unwrap();
        match open(&fine) {
            Ok(slide) => assert!(sound && slide.levels().len() == 2),
            Err(e) => {
                let e = e.to_string();
                assert!(!sound && e.contains("a.dcm") && e.contains("0.5000 um/px"), "{e}");
            }
        }
    }
}

/// Every level of a slide covers what the finest does: 100 x 70 px of 0.25 um are 0.025 x 0.0175 mm.
#[test]
fn a_level_whose_millimetres_contradict_those_of_the_slide_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let opened = |fine: (f32, f32), coarse: (f32, f32)| {
        let path = put(dir.path(), "b.dcm", "series/b.dcm", &[&volume(fine.0, fine.1)]);
        put(dir.path(), "a.dcm", "series/a.dcm", &[&volume(coarse.0, coarse.1)]);
        open(&path)
    };
    let (whole, none) = ((0.025, 0.0175), (0.0, 0.0));
    for sound in [whole, (0.0175, 0.025), (0.0255, 0.0175), (0.025, 0.0), (-1.0, 2.0), none] {
        for fine in [whole, none] {
            assert_eq!(opened(fine, sound).unwrap().levels().len(), 2, "{fine:?}, {sound:?}");
        }
    }
    // Twice as wide, with the right area, half of all, and one side alone.
    for wrong in [(0.05, 0.0175), (0.05, 0.00875), (0.0125, 0.00875), (0.05, 0.0)] {
        for fine in [whole, none] {
            let e = opened(fine, wrong).unwrap_err();
            assert!(matches!(e, SlideError::ContradictingSize { .. }), "{e}");
            let stated = format!(
                "a.dcm: ImagedVolumeWidth and -Height are {} x {} mm, but 0.025 x 0.0175 mm by the \
                 pixels and PixelSpacing of b.dcm",
                wrong.0, wrong.1
            );
            assert!(e.to_string().contains(&stated), "{stated}: {e}");
        }
    }
    // All levels state the same: that is a question of the slide's um/px, which can be given.
    let slide = opened((0.05, 0.035), (0.05, 0.035)).unwrap();
    assert!(slide.resolution().unwrap_err().to_string().contains("contradicting resolutions"));
}

/// As in a TIFF: of two scans of one shape and one spacing the smaller is a level only where it is declared to be a
/// reduced copy, which means nothing where both are.
#[test]
fn a_smaller_scene_of_one_spacing_is_not_a_level() {
    let dir = tempfile::tempdir().unwrap();
    type Changes<'a> = &'a [(&'static [u8], &'static [u8])];
    let written = |name: &str, changes: Changes<'_>| {
        let path = put(dir.path(), name, &format!("series/{name}"), &[]);
        let mut bytes = std::fs::read(&path).unwrap();
        for (old, new) in changes {
            let at = bytes.windows(old.len()).position(|w| w == *old).unwrap();
            bytes[at..at + old.len()].copy_from_slice(new);
        }
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let opened = |fine: Changes<'_>, coarse: Changes<'_>| {
        let path = written("b.dcm", fine);
        written("a.dcm", coarse);
        open(&path).map(|s| s.levels().len()).map_err(|e| e.to_string())
    };
    let own: (&[u8], &[u8]) = (b"0.0005\\0.0005", b"2.5e-4\\2.5e-4");
    let undeclared: (&[u8], &[u8]) = (b"RESAMPLED", b"NONE     ");
    let declared: (&[u8], &[u8]) =
        (b"ORIGINAL\\PRIMARY\\VOLUME\\NONE", b"O\\PRIMARY\\VOLUME\\RESAMPLED  ");
    assert_eq!(opened(&[], &[own]), Ok(2));
    assert_eq!(opened(&[], &[undeclared]), Ok(2));
    assert_eq!(opened(&[declared], &[]), Ok(2));
    for e in [opened(&[], &[own, undeclared]), opened(&[declared], &[own])] {
        let e = e.unwrap_err();
        for words in ["several scenes: b.dcm of 100 x 70 px and a.dcm of 50 x 35 px", "one scene"] {
            assert!(e.contains(words), "{words}: {e}");
        }
    }
}

/// The slide is sound without its label; a level that is damaged is refused as before.
#[test]
fn a_damaged_label_is_named_and_refuses_no_slide() {
    let dir = tempfile::tempdir().unwrap();
    let [level, slide, label] = ["a", "b", "c"]
        .map(|n| put(dir.path(), &format!("{n}.dcm"), &format!("series/{n}.dcm"), &[]));
    let cut = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() - 50]).unwrap();
    };
    assert!(open(&slide).unwrap().associated_images()[0].unreadable.is_none());
    cut(&label);
    let opened = open(&slide).unwrap();
    assert_eq!(opened.levels().len(), 2);
    assert!(opened.associated_images()[0].unreadable.is_some());
    cut(&level);
    let e = open(&slide).unwrap_err().to_string();
    assert!(e.contains("a.dcm, of the same series"), "{e}");
}

/// A file that states itself that its pixels show the label is found, and no copy of it is called clean.
#[test]
fn pixels_with_writing_are_found() {
    for (tag, keyword) in [
        ([0x28, 0, 1, 3], "dicom.BurnedInAnnotation"),
        ([0x48, 0, 0x10, 0], "dicom.SpecimenLabelInImage"),
    ] {
        for (value, written) in [(b"YES ", true), (b"NO  ", false)] {
            let dir = tempfile::tempdir().unwrap();
            let attribute = [&tag[..], b"CS", &[4, 0], value].concat();
            let path = put(dir.path(), "a.dcm", "rle/a.dcm", &[&attribute]);
            let found = open(&path).unwrap().inventory().unwrap().findings;
            assert_eq!(found.iter().any(|f| f.name == keyword), written, "{keyword}: {found:?}");
            let copy = slide::deidentify::deidentify(
                &path,
                &dir.path().join("copy"),
                &OpenOptions::default(),
            );
            assert_eq!(copy.is_err(), written, "{keyword}");
        }
    }
}

/// An attribute with a short length, written with its kind.
fn attribute(tag: [u8; 4], vr: &[u8; 2], value: &[u8]) -> Vec<u8> {
    [&tag[..], vr, &(value.len() as u16).to_le_bytes(), value].concat()
}

/// What a file of an image in `all` files states of itself: `first` frames are before it.
fn concatenation(first: u32, all: Option<u16>) -> Vec<u8> {
    let all = all.map(|n| attribute([0x20, 0, 0x63, 0x91], b"US", &n.to_le_bytes()));
    let uid = attribute([0x20, 0, 0x61, 0x91], b"UI", b"1.2.3.4.");
    let before = attribute([0x20, 0, 0x28, 0x92], b"UL", &first.to_le_bytes());
    [uid, all.unwrap_or_default(), before].concat()
}

/// The frames of a sparse image leave places out anyway: that a file is missing shows in what the others state.
#[test]
fn a_missing_file_of_a_sparse_image_is_not_read_as_white() {
    let opened = |first: u32, all: Option<u16>| {
        let dir = tempfile::tempdir().unwrap();
        let path = put(dir.path(), "part.dcm", "sparse/a.dcm", &[&concatenation(first, all)]);
        open(&path).map(|s| s.absent_tiles(0).len()).map_err(|e| e.to_string())
    };
    assert_eq!((opened(0, None), opened(0, Some(1))), (Ok(1), Ok(1)));
    let first = opened(5, Some(3)).unwrap_err();
    assert!(first.contains("starts with frame 5 where 0 is due: a file is missing"), "{first}");
    let last = opened(0, Some(3)).unwrap_err();
    assert!(last.contains("in 3 files; only 1 can be read: a file is missing"), "{last}");
}

/// Of a slide on a server one file is read: one of several would be white where the others are.
#[cfg(feature = "remote")]
#[test]
fn one_of_several_files_of_a_sparse_image_on_a_server_is_refused() {
    let (dir, server) = (tempfile::tempdir().unwrap(), testkit::server::Server::start());
    let opened = |n: usize, attributes: &[u8]| {
        let path = put(dir.path(), "part.dcm", "sparse/a.dcm", &[attributes]);
        let url = server.put(&format!("/{n}.dcm"), std::fs::read(path).unwrap());
        open(Path::new(&url)).map(|s| s.levels().len()).map_err(|e| e.to_string())
    };
    assert_eq!(opened(0, &[]), Ok(1));
    assert_eq!(opened(1, &concatenation(0, Some(1))), Ok(1));
    for (n, all) in [(2, None), (3, Some(3))] {
        let e = opened(n, &concatenation(0, all)).unwrap_err();
        assert!(e.contains("only the named one is read"), "{all:?}: {e}");
    }
}

/// Frames that state where they are may be spread over files, but not over scans.
#[test]
fn frames_of_another_spacing_are_not_of_the_same_image() {
    let dir = tempfile::tempdir().unwrap();
    let path = put(dir.path(), "1.dcm", "sparse/a.dcm", &[]);
    let mut bytes = std::fs::read(&path).unwrap();
    for (old, new) in
        [(&b"498.7.4.1"[..], &b"498.7.4.9"[..]), (b"0.00025\\0.00025", b"0.00050\\0.00050")]
    {
        let places: Vec<usize> =
            (0..bytes.len()).filter(|i| bytes[*i..].starts_with(old)).collect();
        assert!(!places.is_empty());
        places.iter().for_each(|at| bytes[*at..at + old.len()].copy_from_slice(new));
    }
    std::fs::write(dir.path().join("2.dcm"), bytes).unwrap();
    let e = open(&path).unwrap_err().to_string();
    assert!(e.contains("2.dcm") && e.contains("disagree about the spacing"), "{e}");
}

/// Words in a value of bytes, of the meta information, and of a frame behind the first; tables of numbers stay.
#[test]
fn words_in_bytes_and_in_any_frame_are_found_and_gone_from_the_copy() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = |tag: [u8; 4], vr: &[u8; 2], value: &[u8]| {
        [&tag[..], vr, &[0, 0], &(value.len() as u32).to_le_bytes(), value].concat()
    };
    let (undefined, item) = ([0xFF; 4], [0xFE, 0xFF, 0x00, 0xE0]);
    let (item_end, end) =
        ([0xFE, 0xFF, 0x0D, 0xE0, 0, 0, 0, 0], [0xFE, 0xFF, 0xDD, 0xE0, 0, 0, 0, 0]);
    let items = |tag: [u8; 4], all: &[&[u8]]| {
        let all = all.iter().map(|i| [&item, &undefined, *i, &item_end[..]].concat());
        [&tag[..], b"SQ\0\0", &undefined, &all.collect::<Vec<_>>().concat(), &end].concat()
    };
    let comment = attribute([0x20, 0, 0x58, 0x91], b"LT", b"for Jane Doe");
    let content = items([0x20, 0, 0x11, 0x91], &[&comment]);
    let frames = items([0, 0x52, 0x30, 0x92], &[&[], &content, &content]);
    let report = bytes([0x42, 0, 0x11, 0], b"OB", b"Patient Jane Doe");
    let long =
        bytes([0xFC, 0xFF, 0xFC, 0xFF], b"OB", &[[0; 5000].as_slice(), b"Jane Doe"].concat());
    let pad = bytes([0x00, 0x04, 0x04, 0x04], b"OB", &[7; 16]);
    let ramp: Vec<u8> = (0..=255).collect();
    let table = bytes([0x28, 0, 1, 0x12], b"OW", &ramp);
    let all = [&report[..], &frames, &long, &pad, &table];
    let path = put(dir.path(), "a.dcm", "rle/a.dcm", &all);
    let mut file = std::fs::read(&path).unwrap();
    let at = file.windows(6).position(|w| w == b"\x02\0\x12\0UI").unwrap();
    file.splice(at..at, bytes([2, 0, 2, 1], b"OB", b"for Jane Doe"));
    std::fs::write(&path, file).unwrap();
    let found = open(&path).unwrap().inventory().unwrap().findings;
    let frame = "dicom.PerFrameFunctionalGroupsSequence[1].FrameContentSequence[0].FrameComments";
    let names = [
        "dicom.EncapsulatedDocument",
        "dicom.PrivateInformation",
        "dicom.DataSetTrailingPadding",
        frame,
    ];
    for name in names {
        assert!(found.iter().any(|f| f.name == name), "{name}: {found:?}");
    }
    let others = ["Sequence[2]", "MAC", "LookupTable"];
    assert!(!found.iter().any(|f| others.iter().any(|o| f.name.contains(o))), "{found:?}");
    let out = dir.path().join("copy");
    let done = slide::deidentify::deidentify(&path, &out, &OpenOptions::default()).unwrap();
    let copy = std::fs::read(&done.output[0]).unwrap();
    let has = |word: &[u8]| copy.windows(word.len()).any(|w| w == word);
    assert!(!has(b"Jane") && has(&ramp) && has(&[7; 16]));
    assert_eq!(open(&done.output[0]).unwrap().inventory().unwrap().findings, []);
}

/// Name of an attribute, the attribute with words in it, and without where it may have a value.
type WordsAt = (&'static str, Vec<u8>, Option<Vec<u8>>);

fn with_words_and_without() -> Vec<WordsAt> {
    let bytes = |tag: [u8; 4], vr: &[u8; 2], value: &[u8]| {
        [&tag[..], vr, &[0, 0], &(value.len() as u32).to_le_bytes(), value].concat()
    };
    let curve = |of: &dyn Fn(u16) -> u16| (0..256).flat_map(|i| of(i).to_le_bytes()).collect();
    let gamma: Vec<u8> = curve(&|i| ((f64::from(i) / 255.0).powf(0.45) * 65535.0) as u16);
    let rising: Vec<u8> = curve(&|i| i * 257);
    let mut written = rising.clone();
    written[300..308].copy_from_slice(b"Jane Doe");
    let wide: Vec<u8> = "Jane Doe".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let long = |value: &[u8]| (value.len() as u16).to_le_bytes();
    let lut = |value: &[u8]| [&[0x28, 0, 0x06, 0x30][..], b"US", &long(value), value].concat();
    let modality = |value: &[u8]| {
        let item = lut(value);
        let items =
            [&[0xFE, 0xFF, 0x00, 0xE0], &(item.len() as u32).to_le_bytes()[..], &item].concat();
        bytes([0x28, 0, 0, 0x30], b"SQ", &items)
    };
    vec![
        // Name, attribute with words, attribute without.
        (
            "RedPaletteColorLookupTableData",
            bytes([0x28, 0, 1, 0x12], b"OW", &written),
            Some(bytes([0x28, 0, 1, 0x12], b"OW", &gamma)),
        ),
        (
            "BluePaletteColorLookupTableData",
            bytes([0x28, 0, 3, 0x12], b"OW", &wide),
            Some(bytes([0x28, 0, 3, 0x12], b"OW", &rising)),
        ),
        ("ModalityLUTSequence[0].LUTData", modality(&written), Some(modality(&rising))),
        (
            "ExtendedOffsetTableLengths",
            bytes([0xE0, 0x7F, 2, 0], b"OV", b"Jane Doe"),
            Some(bytes([0xE0, 0x7F, 2, 0], b"OV", &4711_u64.to_le_bytes())),
        ),
        (
            "SelectorASValue",
            attribute([0x72, 0, 0x5F, 0], b"AS", b"Jane"),
            Some(attribute([0x72, 0, 0x5F, 0], b"AS", b"045Y")),
        ),
        (
            "RecommendedDisplayFrameRate",
            attribute([0x08, 0, 0x44, 0x21], b"IS", b"Jane Doe"),
            Some(attribute([0x08, 0, 0x44, 0x21], b"IS", b"12")),
        ),
        ("PixelPaddingValue", bytes([0x28, 0, 0x20, 1], b"OB", b"for Jane Doe"), None),
        (
            "LossyImageCompressionRatio",
            bytes([0x28, 0, 0x12, 0x21], b"UT", b"Jane Doe"),
            Some(attribute([0x28, 0, 0x12, 0x21], b"DS", b"7.5e0\\10")),
        ),
        ("SmallestImagePixelValue", bytes([0x28, 0, 6, 1], b"UN", b"Jane Doe"), None),
        (
            "DeviceUID",
            attribute([0x18, 0, 0x02, 0x10], b"UI", b"Jane.Doe"),
            Some(attribute([0x18, 0, 0x02, 0x10], b"UI", b"1.2.3")),
        ),
    ]
}

/// Words in tables, in bytes and texts where the standard has numbers, and in an age, an identifier or a number.
/// Curves, ages and numbers stay.
#[test]
fn words_in_tables_and_in_values_of_another_kind_are_found_and_gone_from_the_copy() {
    let wide: Vec<u8> = "Jane".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let dir = tempfile::tempdir().unwrap();
    for (name, with, without) in with_words_and_without() {
        let (with, without) = (Some(with), without);
        for (attribute, has_words) in [(with, true), (without, false)] {
            let Some(attribute) = attribute else { continue };
            let path = put(dir.path(), "a.dcm", "rle/a.dcm", &[&attribute]);
            let slide = open(&path).unwrap();
            let found = slide.inventory().unwrap();
            let is_found = found.findings.iter().any(|f| f.name == format!("dicom.{name}"));
            assert_eq!(is_found, has_words, "{name}: {:?}", found.findings);
            let out = dir.path().join("copy");
            let done = slide::deidentify::deidentify(&path, &out, &OpenOptions::default()).unwrap();
            let copy = std::fs::read(&done.output[0]).unwrap();
            for word in [&b"Jane"[..], &wide] {
                assert!(!copy.windows(word.len()).any(|w| w == word), "{name}");
            }
            let value = &attribute[attribute.len().saturating_sub(12)..];
            let is_kept = copy.windows(value.len()).any(|w| w == value);
            assert!(has_words || name == "DeviceUID" || is_kept, "{name}");
            let clean = open(&done.output[0]).unwrap();
            assert_eq!(clean.inventory().unwrap().findings, [], "{name}");
            let (w, h) = slide.dimensions();
            let all = Rect::new(0, 0, w as usize, h as usize);
            let [before, after] = [&slide, &clean].map(|s| s.read_level(0, all).unwrap());
            assert!(before.data == after.data, "{name}");
            std::fs::remove_dir_all(out).unwrap();
        }
    }
}

/// Segments of the encapsulated frames of JPEG: before the coded pixels, between scans, and what follows the end.
#[test]
fn words_in_coded_frames_are_found_and_gone_from_the_copy() {
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read(drawn("jpeg_422/a.dcm")).unwrap();
    let item = [0xFE, 0xFF, 0x00, 0xE0];
    let start = (0..whole.len()).rfind(|i| whole[*i..].starts_with(b"\xFF\xD8\xFF")).unwrap();
    assert_eq!(whole[start - 8..start - 4], item, "a frame is one fragment");
    let len = u32::from_le_bytes(whole[start - 4..start].try_into().unwrap()) as usize;
    let frame = &whole[start..start + len];
    let end = frame.windows(2).rposition(|w| w == [0xFF, 0xD9]).unwrap();
    let segment = |marker: u8, body: &[u8]| {
        [&[0xFF, marker][..], &(body.len() as u16 + 2).to_be_bytes(), body].concat()
    };
    let with = |at: usize, what: &[u8]| [&frame[..at], what, &frame[at..end + 2]].concat();
    for (name, new) in [
        ("dicom.jpeg.Comment", with(2, &segment(0xFE, b"for Jane Doe"))),
        ("dicom.jpeg.APP9", with(2, &segment(0xE9, b"for Jane Doe"))),
        ("dicom.jpeg.XMP", with(2, &segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0Jane Doe"))),
        ("dicom.jpeg.after the end", with(end + 2, b"for Jane Doe")),
        ("dicom.jpeg.after the end", with(end + 2, &[&[0; 3000][..], b"for Jane Doe"].concat())),
        ("", frame[..end + 2].to_vec()),
    ] {
        let new = if new.len() % 2 == 1 { [&new[..], &[0]].concat() } else { new };
        let mut bytes = whole.clone();
        let head = [&item[..], &(new.len() as u32).to_le_bytes()].concat();
        bytes.splice(start - 8..start + len, [head, new].concat());
        let path = dir.path().join("a.dcm");
        std::fs::write(&path, bytes).unwrap();
        let slide = open(&path).unwrap();
        let found = slide.inventory().unwrap();
        let names: Vec<&str> = found.findings.iter().map(|f| f.name.as_str()).collect();
        let of_frames: Vec<&str> =
            names.iter().copied().filter(|n| n.starts_with("dicom.jpeg")).collect();
        assert_eq!(of_frames.first().copied().unwrap_or_default(), name, "{names:?}");
        let out = dir.path().join("copy");
        let done = slide::deidentify::deidentify(&path, &out, &OpenOptions::default()).unwrap();
        let copy = std::fs::read(&done.output[0]).unwrap();
        assert!(!copy.windows(4).any(|w| w == b"Jane"), "{name}");
        assert_eq!(open(&done.output[0]).unwrap().inventory().unwrap().findings, [], "{name}");
        std::fs::remove_dir_all(out).unwrap();
    }
    // What was looked at is what is named: frames of another coding are not.
    let inventory = |name: &str| open(&drawn(name)).unwrap().inventory().unwrap();
    let (jpeg, plain) = (inventory("jpeg_422/a.dcm"), inventory("rle/a.dcm"));
    let has = |all: &[String], words: &str| all.iter().any(|s| s.contains(words));
    assert!(!has(&jpeg.not_looked_at, "neither JPEG nor JPEG 2000"), "{jpeg:?}");
    assert!(has(&plain.not_looked_at, "frames that are neither JPEG nor JPEG 2000"), "{plain:?}");
    assert!(has(&plain.looked_at, "of 0 JPEG and JPEG 2000 frames"), "{plain:?}");
}

/// A code of a hospital's own list may mean anybody, and a field for words of the standard may hold others.
#[test]
fn words_of_own_codes_and_in_fields_for_other_words_are_found_and_gone_from_the_copy() {
    let code = |tag: [u8; 4], scheme: &[u8], meaning: &[u8]| {
        let own = [
            attribute([8, 0, 0, 1], b"SH", b"4711"),
            attribute([8, 0, 2, 1], b"SH", scheme),
            attribute([8, 0, 4, 1], b"LO", meaning),
        ]
        .concat();
        let len = (own.len() as u32).to_le_bytes();
        let item = [&[0xFE, 0xFF, 0x00, 0xE0], &len[..], &own].concat();
        [&tag[..], b"SQ\0\0", &(item.len() as u32).to_le_bytes(), &item].concat()
    };
    let all = [
        code([0x08, 0, 0x28, 0x22], b"SCT ", b"Breast"),
        code([0x40, 0, 0x18, 0x05], b"99HOSP", b"Jane Doe"),
        code([0x40, 0, 0x01, 0x11], b"SCT ", b"Jane Doe"),
        attribute([0x20, 0, 0x40, 0x10], b"LO", b"Jane Doe"),
        attribute([0x10, 0, 0x10, 0x22], b"CS", b"JANE DOE"),
        attribute([0x28, 0, 0x00, 0x03], b"CS", b"YES\\JANE"),
        attribute([0x08, 0, 0x15, 0x01], b"ST", b"Jane Doe's list "),
    ];
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
    let path = put(dir.path(), "a.dcm", "rle/a.dcm", &all);
    let found = open(&path).unwrap().inventory().unwrap().findings;
    for name in [
        "dicom.ContainerTypeCodeSequence[0].CodingSchemeDesignator",
        "dicom.PersonIdentificationCodeSequence[0].CodeMeaning",
        "dicom.PositionReferenceIndicator",
        "dicom.AnatomicalOrientationType",
        "dicom.QualityControlImage[1]",
        "dicom.CodingSchemeName",
    ] {
        assert!(found.iter().any(|f| f.name == name), "{name}: {found:?}");
    }
    assert!(!found.iter().any(|f| f.name.contains("PrimaryAnatomic")), "{found:?}");
    let out = dir.path().join("copy");
    let done = slide::deidentify::deidentify(&path, &out, &OpenOptions::default()).unwrap();
    let copy = std::fs::read(&done.output[0]).unwrap();
    let has = |word: &[u8]| copy.windows(word.len()).any(|w| w == word);
    assert!(!has(b"Jane") && !has(b"JANE") && !has(b"99HOSP") && has(b"Breast"));
    assert_eq!(open(&done.output[0]).unwrap().inventory().unwrap().findings, []);
}

/// A series is of one slide. The names themselves are not printed.
#[test]
fn levels_of_two_slides_or_patients_are_refused() {
    for (old, new, attribute) in
        [(&b"S20-17"[..], &b"S20-18"[..], "ContainerIdentifier"), (b"P-17", b"P-18", "PatientID")]
    {
        let (dir, path) = changed("series/a.dcm", old, new);
        assert!(open(&path).is_ok(), "alone");
        put(dir.path(), "b.dcm", "series/b.dcm", &[]);
        let e = open(&path).unwrap_err().to_string();
        for words in ["b.dcm and changed.dcm are of one series, but differ in", attribute] {
            assert!(e.contains(words) && !e.contains("S20-1"), "{words}: {e}");
        }
    }
}

#[test]
fn a_part_that_is_missing_is_missed() {
    for (file, words) in [("a", "starts with frame"), ("b", "6 frames of 12")] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("alone.dcm");
        std::fs::copy(drawn(&format!("parts/{file}.dcm")), &path).unwrap();
        let e = open(&path).unwrap_err().to_string();
        assert!(e.contains("missing") && e.contains(words), "{words}: {e}");
    }
}

#[test]
fn a_frame_that_is_broken_is_one_tile() {
    let frame = |b: &[u8], n: usize| {
        let starts: Vec<_> =
            (0..b.len()).filter(|&i| b[i..].starts_with(b"\xFF\xD8\xFF")).collect();
        starts[n]
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("broken.dcm");
    let mut bytes = std::fs::read(drawn("jpeg_422/a.dcm")).unwrap();
    let at = frame(&bytes, 5);
    bytes[at] = 0;
    std::fs::write(&path, bytes).unwrap();
    let slide = open(&path).unwrap();
    assert!(slide.read_level(0, Rect::new(0, 0, 32, 32)).is_ok());
    let e = slide.read_level(0, Rect::new(40, 40, 5, 5)).unwrap_err();
    assert!(matches!(e, SlideError::Tile { column: 1, row: 1, .. }), "{e}");
}

#[test]
fn persons_are_recognised_wherever_they_are_named() {
    let slide = open(&drawn("series/a.dcm")).unwrap();
    let found: Vec<(String, Personal)> =
        slide.properties().iter().flat_map(|(n, v)| privacy::personal_parts(n, v)).collect();
    let kind = |name: &str| found.iter().find(|(n, _)| n == name).map(|(_, k)| *k);
    for (name, want) in [
        ("dicom.PatientName", Personal::Person),
        ("dicom.PatientSex", Personal::Person),
        ("dicom.ReferringPhysicianName", Personal::Person),
        ("dicom.AccessionNumber", Personal::Identifier),
        ("dicom.ContainerIdentifier", Personal::Identifier),
        ("dicom.StudyDate", Personal::Date),
        ("dicom.InstitutionName", Personal::Place),
        // In the file of the label alone.
        ("dicom[2].OperatorsName", Personal::Person),
        ("dicom[2].(0009,1001)", Personal::Text),
    ] {
        assert_eq!(kind(name), Some(want), "{name}: {found:?}");
    }
    let shown: Vec<_> =
        slide.properties().iter().filter(|(n, v)| privacy::is_technical(n, v)).collect();
    for (name, value) in &shown {
        assert!(!value.contains("Doe") && !value.contains("P-17"), "{name} = {value}");
    }
    for (name, value) in [
        ("dicom.PhotometricInterpretation", "RGB"),
        ("dicom.TransferSyntaxUID", "1.2.840.10008.1.2.1"),
        ("dicom.OpticalPathSequence[0].ICCProfile", "64 bytes"),
        ("openslide.objective-power", "40"),
    ] {
        assert!(shown.iter().any(|(n, v)| *n == name && *v == value), "{name}: {shown:?}");
    }
}

#[test]
fn properties_are_named_as_openslide_names_them() {
    let Some(path) = testkit::data("slides/sm_image.dcm") else { return };
    let Some(theirs) = through_openslide(&path) else { return };
    let own = open(&path).unwrap();
    let theirs = theirs.properties().iter().filter(|(n, _)| n.starts_with("dicom."));
    let (mut same, mut other) = (0, Vec::new());
    for (name, value) in theirs {
        match own.properties().get(name) {
            Some(v) if v == value || v.parse::<f64>().ok() == value.parse().ok() => same += 1,
            v => other.push((name, value, v)),
        }
    }
    eprintln!("{same} properties are the same; {other:?}");
    assert!(same > 50 && other.len() < same / 5, "{other:?}");
}
