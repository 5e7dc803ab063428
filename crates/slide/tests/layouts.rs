//! Layouts that programs write and readers get wrong: which image is the slide, what is next to it,
//! levels with holes or other content, orientation, opacity, texts, and copies without persons.

use mitosis::Mpp;
use slide::deidentify::{DeidentifyError, deidentify};
use slide::info::{SlideInfo, write_tissue};
use slide::privacy::Personal;
use slide::{MppRule, OpenOptions, Rect, Slide, SlideError, TissueMask};
use std::io::Write;
use std::path::{Path, PathBuf};

const ASCII: u16 = 2;
const SHORT: u16 = 3;
const LONG: u16 = 4;
const RATIONAL: u16 = 5;

/// A directory to be drawn: 8-bit samples without compression.
struct Page {
    size: (u32, u32),
    /// Side of tiles; none: strips.
    tile: Option<u32>,
    /// Rows of a strip, of which there are as many as fit; none: one strip.
    rows: Option<u32>,
    samples: u16,
    bits: u16,
    fields: Vec<(u16, u16, Vec<u8>)>,
    /// The samples of a pixel.
    pixel: Box<dyn Fn(u32, u32) -> [u8; 4]>,
    /// Tiles that are left out, by column and row.
    holes: fn(u32, u32) -> bool,
    /// The bytes of every tile, where they are not samples.
    coded: Option<Vec<u8>>,
}

impl Page {
    /// An RGB image that shows the same tissue whatever its size: `factor` level-0 pixels per pixel.
    fn tissue(size: (u32, u32), factor: u32, tile: Option<u32>) -> Self {
        let pixel = Box::new(move |x, y| tissue(x * factor, y * factor));
        let (fields, holes) = (Vec::new(), (|_, _| false) as fn(u32, u32) -> bool);
        Self { size, tile, rows: None, samples: 3, bits: 8, fields, pixel, holes, coded: None }
    }

    fn with(mut self, tag: u16, kind: u16, value: &[u8]) -> Self {
        self.fields.push((tag, kind, value.to_vec()));
        self
    }

    fn text(self, tag: u16, text: &str) -> Self {
        self.with(tag, ASCII, &[text.as_bytes(), b"\0"].concat())
    }

    fn subfile(self, kind: u32) -> Self {
        self.with(254, LONG, &kind.to_le_bytes())
    }

    /// States its resolution, um/px, in pixels per centimetre.
    fn um(self, um: f64) -> Self {
        let density = [(1e6 / um).round() as u32, 100].map(u32::to_le_bytes).concat();
        let this = self.with(282, RATIONAL, &density).with(283, RATIONAL, &density);
        this.with(296, SHORT, &[3, 0])
    }

    fn painted(mut self, colour: [u8; 4]) -> Self {
        self.pixel = Box::new(move |_, _| colour);
        self
    }

    fn tiles(&self) -> Vec<Vec<u8>> {
        let (w, h) = self.size;
        let (tw, th) = self.tile.map_or((w, self.rows.unwrap_or(h)), |t| (t, t));
        let mut all = Vec::new();
        for row in 0..h.div_ceil(th) {
            for column in 0..w.div_ceil(tw) {
                if (self.holes)(column, row) {
                    all.push(Vec::new());
                    continue;
                }
                if let Some(coded) = &self.coded {
                    all.push(coded.clone());
                    continue;
                }
                let mut data = Vec::new();
                for y in row * th..(row + 1) * th {
                    for x in column * tw..(column + 1) * tw {
                        let p = (self.pixel)(x.min(w - 1), y.min(h - 1));
                        for v in &p[..usize::from(self.samples)] {
                            let wide = if self.bits == 16 { vec![*v, *v] } else { vec![*v] };
                            data.extend(wide);
                        }
                    }
                }
                all.push(data);
            }
        }
        all
    }
}

/// Pink ground with violet blobs on glass: a block that is the same at every level.
fn tissue(x: u32, y: u32) -> [u8; 4] {
    let inside = (300..1700).contains(&x) && (200..1500).contains(&y);
    let blob = (x / 96 + y / 96).is_multiple_of(3);
    match (inside, blob) {
        (false, _) => [243, 242, 244, 255],
        (true, true) => [120, 70, 150, 255],
        (true, false) => [215, 150, 195, 255],
    }
}

/// A little-endian classic TIFF. Data of the pages are in their order, each before its directory.
fn tiff(pages: &[Page]) -> Vec<u8> {
    let mut out = b"II*\0\0\0\0\0".to_vec();
    let mut next = 4;
    for page in pages {
        let (mut offsets, mut counts) = (Vec::new(), Vec::new());
        for tile in page.tiles() {
            offsets.push(if tile.is_empty() { 0 } else { out.len() as u32 });
            counts.push(tile.len() as u32);
            out.extend(tile);
        }
        out.resize(out.len().next_multiple_of(2), 0);
        let longs = |v: &[u32]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let shorts = |v: &[u16]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let n = usize::from(page.samples);
        let mut fields = page.fields.clone();
        let photometric = if n < 3 { 1 } else { 2 };
        let mut own = vec![
            (256, LONG, longs(&[page.size.0])),
            (257, LONG, longs(&[page.size.1])),
            (258, SHORT, shorts(&vec![page.bits; n])),
            (259, SHORT, shorts(&[1])),
            (262, SHORT, shorts(&[photometric])),
            (277, SHORT, shorts(&[page.samples])),
        ];
        own.extend(match page.tile {
            Some(side) => vec![
                (322, LONG, longs(&[side])),
                (323, LONG, longs(&[side])),
                (324, LONG, longs(&offsets)),
                (325, LONG, longs(&counts)),
            ],
            None => vec![
                (273, LONG, longs(&offsets)),
                (278, LONG, longs(&[page.rows.unwrap_or(page.size.1)])),
                (279, LONG, longs(&counts)),
            ],
        });
        own.retain(|(t, ..)| fields.iter().all(|f| f.0 != *t));
        fields.extend(own);
        fields.sort_by_key(|f| f.0);
        let mut entries = Vec::new();
        for (tag, kind, value) in &fields {
            let size = match *kind {
                SHORT => 2,
                LONG => 4,
                RATIONAL => 8,
                _ => 1,
            };
            let mut place = value.clone();
            if value.len() > 4 {
                place = (out.len() as u32).to_le_bytes().to_vec();
                out.extend(value);
                out.resize(out.len().next_multiple_of(2), 0);
            }
            place.resize(4, 0);
            let count = (value.len() / size) as u32;
            entries.extend(tag.to_le_bytes());
            entries.extend(kind.to_le_bytes());
            entries.extend(count.to_le_bytes());
            entries.extend(place);
        }
        let start = out.len() as u32;
        out[next..next + 4].copy_from_slice(&start.to_le_bytes());
        out.extend((fields.len() as u16).to_le_bytes());
        out.extend(entries);
        next = out.len();
        out.extend([0; 4]);
    }
    out
}

struct Drawn {
    dir: tempfile::TempDir,
}

impl Drawn {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn tiff(&self, name: &str, pages: &[Page]) -> PathBuf {
        self.file(name, &tiff(pages))
    }
}

fn options() -> OpenOptions {
    OpenOptions {
        mpp: Some(Mpp::PAPER),
        mpp_rule: MppRule::Fill,
        openslide: Some("/no/such/library".into()),
        ..OpenOptions::default()
    }
}

fn open(path: &Path) -> Result<Slide, SlideError> {
    Slide::open_with(path, &options())
}

fn refused(path: &Path, words: &[&str]) {
    let e = open(path).unwrap_err();
    assert!(matches!(e, SlideError::Unsupported { .. }), "{e:?}");
    let text = e.to_string();
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

fn names(slide: &Slide) -> Vec<&str> {
    slide.associated_images().iter().map(|a| a.name.as_str()).collect()
}

/// Aperio's description of an image of another size.
fn described(side: u32) -> String {
    SVS.replace("2048x2048", &format!("{side}x{side}"))
}

const SVS: &str = "Aperio Image Library v11.2.1\r\n2048x2048 [0,0 2048x2048] (256x256) JPEG/RGB \
                   Q=70|AppMag = 40|MPP = 0.25";

/// The levels of a slide of 2048 px: level 0, and level 1 of a quarter.
fn levels() -> [Page; 2] {
    [Page::tissue((2048, 2048), 1, Some(256)), Page::tissue((512, 512), 4, Some(256))]
}

fn area(slide: &Slide) -> f64 {
    TissueMask::find(slide).unwrap().area_mm2()
}

#[test]
fn images_next_to_an_aperio_slide_are_named_as_the_scanner_means_them() {
    let drawn = Drawn::new();
    let [base, level] = levels();
    let path = drawn.tiff(
        "gt450.svs",
        &[
            base.text(270, SVS),
            Page::tissue((128, 128), 16, None).text(270, &format!("{SVS} -> 128x128")),
            level.text(270, SVS),
            Page::tissue((70, 60), 1, None).subfile(1),
            Page::tissue((120, 60), 1, None).subfile(9),
        ],
    );
    let slide = open(&path).unwrap();
    assert_eq!(names(&slide), ["thumbnail", "label", "macro"]);
    assert_eq!(slide.levels().len(), 2);
    let [base, _] = levels();
    let label = Page::tissue((70, 60), 1, None).text(270, "Aperio Image Library\nlabel 70x60");
    let path = drawn.tiff("second.svs", &[base.text(270, SVS), label]);
    assert_eq!(names(&open(&path).unwrap()), ["label"]);
    for (file, want) in [
        ("gt450.svs", &["image label", "image macro"][..]),
        ("described_label_is_second_directory.svs", &["image label"]),
    ] {
        let Some(path) = testkit::data(&format!("hostile/reports/{file}")) else { continue };
        let found = open(&path).unwrap().inventory().unwrap().findings;
        let pictures = found.iter().filter(|f| f.kind == Personal::Picture);
        assert_eq!(pictures.map(|f| f.name.as_str()).collect::<Vec<_>>(), want, "{file}");
    }
}

#[test]
fn tiles_that_a_coarse_level_leaves_out_come_from_the_finer_one() {
    let drawn = Drawn::new();
    let describe = |[base, level]: [Page; 2]| [base.text(270, SVS), level.text(270, SVS)];
    let whole = open(&drawn.tiff("whole.svs", &describe(levels()))).unwrap();
    let want = area(&whole);
    assert!(want > 0.05, "{want}");
    for (name, holes, filled) in
        [("right.svs", (|c, _| c == 1) as fn(u32, u32) -> bool, 2), ("all.svs", |_, _| true, 4)]
    {
        let mut pages = describe(levels());
        pages[1].holes = holes;
        let slide = open(&drawn.tiff(name, &pages)).unwrap();
        assert!((area(&slide) / want - 1.0).abs() < 0.02, "{name}: {} {want}", area(&slide));
        assert_eq!(slide.thumbnail(512).unwrap(), whole.thumbnail(512).unwrap(), "{name}");
        assert_eq!((slide.filled_tiles(1), slide.absent_tiles(1).len()), (filled, 0), "{name}");
        assert_eq!(slide.disagreements().unwrap(), [], "{name}");
        let small = slide.read_reduced(4.0, Rect::new(256, 0, 256, 256)).unwrap();
        assert_eq!(small, whole.read_reduced(4.0, Rect::new(256, 0, 256, 256)).unwrap(), "{name}");
        for um in [1.0, 1.5, 4.0] {
            let read =
                |s: &Slide| s.read_at(Mpp::new(um).unwrap(), Rect::new(-3, 5, 130, 120)).unwrap();
            assert!(read(&slide) == read(&whole), "{name} at {um} um/px");
            let side = (512.0 / um) as usize;
            let all =
                |s: &Slide| s.read_at(Mpp::new(um).unwrap(), Rect::new(0, 0, side, side)).unwrap();
            assert!(all(&slide) == all(&whole), "{name} at {um} um/px");
        }
    }
    // What no level holds stays white and is reported as absent.
    let mut pages = describe(levels());
    pages[0].holes = |c, r| c < 4 && r < 4;
    pages[1].holes = |c, r| c == 0 && r == 0;
    let slide = open(&drawn.tiff("lost.svs", &pages)).unwrap();
    assert_eq!((slide.filled_tiles(1), slide.absent_tiles(1).len()), (0, 1));
    assert_eq!(slide.absent_tiles(0).len(), 16);
    let corner = slide.read_level(1, Rect::new(0, 0, 256, 256)).unwrap();
    assert!(corner.data.iter().all(|v| *v == 255));
}

#[test]
fn a_level_that_shows_something_else_is_noticed_and_not_used() {
    let drawn = Drawn::new();
    let [base, level] = levels();
    let blank = level.painted([244, 244, 244, 255]).subfile(1);
    let path = drawn.tiff("blank.tif", &[base, blank]);
    let slide = open(&path).unwrap();
    let [base, level] = levels();
    let whole = open(&drawn.tiff("whole.tif", &[base, level.subfile(1)])).unwrap();
    assert_eq!(whole.disagreements().unwrap(), []);
    let found = slide.disagreements().unwrap();
    assert_eq!((found.len(), found[0].level, found[0].against), (1, 1, 0));
    assert!(found[0].differing > 5 && found[0].compared == 36, "{found:?}");
    assert!((area(&slide) / area(&whole) - 1.0).abs() < 0.02);
    assert!(slide.level_notes()[0].contains("level 1 shows something else than level 0"));
    assert_eq!(slide.level_for(Mpp::new(1.0).unwrap()).unwrap(), 0);
    assert_eq!(whole.level_for(Mpp::new(1.0).unwrap()).unwrap(), 1);
}

/// GDAL leaves out strips as it does tiles: without a place and a size. What has a place and no size is damaged.
#[test]
fn strips_that_are_left_out_are_filled_or_counted() {
    type Holes = fn(u32, u32) -> bool;
    let drawn = Drawn::new();
    let page = |side, factor, holes: Holes| {
        let page = Page::tissue((side, side), factor, None);
        Page { rows: Some(64), holes, ..page }
    };
    let opened = |name: &str, [fine, coarse]: [Holes; 2]| {
        let level = page(512, 4, coarse).subfile(1);
        open(&drawn.tiff(name, &[page(2048, 1, fine), level])).unwrap()
    };
    let none: Holes = |_, _| false;
    let whole = opened("whole.tif", [none, none]);
    let all = Rect::new(0, 0, 512, 512);
    for (name, coarse) in [("some.tif", (|_, r| r % 2 == 1) as Holes), ("all.tif", |_, _| true)] {
        let slide = opened(name, [none, coarse]);
        assert!(slide.read_level(1, all).unwrap() == whole.read_level(1, all).unwrap(), "{name}");
        assert!(slide.thumbnail(512).unwrap() == whole.thumbnail(512).unwrap(), "{name}");
        assert_eq!(area(&slide), area(&whole), "{name}");
        assert_eq!(slide.filled_tiles(1), if name == "all.tif" { 8 } else { 4 });
        assert_eq!((slide.absent_tiles(1).len(), slide.level_notes().len()), (0, 0), "{name}");
    }
    let slide = opened("base.tif", [|_, r| r < 4, |_, r| r == 0]);
    assert_eq!((slide.absent_tiles(0).len(), slide.absent_tiles(1).len()), (4, 1));
    for (level, rect) in [(0, Rect::new(0, 0, 2048, 256)), (1, Rect::new(0, 0, 512, 64))] {
        assert!(slide.read_level(level, rect).unwrap().data.iter().all(|v| *v == 255));
    }
    let sizeless = Page::tissue((64, 64), 30, None).with(279, LONG, &[0; 4]);
    let slide = open(&drawn.tiff("sizeless.tif", &[sizeless])).unwrap();
    let e = slide.read_level(0, Rect::new(0, 0, 9, 9)).unwrap_err();
    assert!(e.is_tile() && e.to_string().contains("without data"), "{e}");
    // A label without pixels is not a white one.
    let [base, _] = levels();
    let label = Page { holes: |_, _| true, ..Page::tissue((70, 60), 1, None) };
    let slide = open(&drawn.tiff("label.tif", &[base, label.text(270, "label")])).unwrap();
    assert!(slide.associated_image("label").unwrap_err().to_string().contains("without data"));
}

/// As tiles that are left out; what no level gives stays an error of the tile.
#[test]
fn coarse_tiles_that_cannot_be_decoded_come_from_the_finer_level() {
    let drawn = Drawn::new();
    let [base, level] = levels();
    let whole = open(&drawn.tiff("whole.tif", &[base, level.subfile(1)])).unwrap();
    let broken = |page: Page| {
        let page = page.with(259, SHORT, &[8, 0]);
        Page { coded: Some(vec![7; 100]), ..page }
    };
    let all = Rect::new(0, 0, 512, 512);
    let um = Mpp::new(1.0).unwrap();
    for (tile, words) in [(Some(256), "4 tiles of level 1"), (None, "1 tile of level 1")] {
        let [base, mut level] = levels();
        level.tile = tile;
        let pages = [base, broken(level.subfile(1))];
        let path = drawn.tiff("broken.tif", &pages);
        let slide = || open(&path).unwrap();
        assert!(slide().thumbnail(512).unwrap() == whole.thumbnail(512).unwrap(), "{tile:?}");
        assert!(slide().read_at(um, all).unwrap() == whole.read_at(um, all).unwrap(), "{tile:?}");
        let (read, unread) = slide().read_reduced(4.0, all).unwrap();
        assert!(read == whole.read_reduced(4.0, all).unwrap().0 && unread.is_empty(), "{tile:?}");
        let slide = slide();
        assert_eq!(area(&slide), area(&whole), "{tile:?}");
        for _ in 0..2 {
            slide.read_level(1, all).unwrap();
        }
        assert_eq!(slide.disagreements().unwrap(), []);
        let notes = slide.level_notes();
        assert!(notes.len() == 1 && notes[0].starts_with(words), "{tile:?}: {notes:?}");
        assert!(notes[0].contains("a finer level was read instead"), "{notes:?}");
        // Each verb on its own.
        let fresh = || open(&path).unwrap();
        let info = SlideInfo::read(&fresh());
        assert_eq!(info.level_notes, notes, "{tile:?}");
        assert!(info.to_string().contains(&format!("note        {words}")), "{info}");
        let tissue = write_tissue(&fresh(), drawn.dir.path()).unwrap();
        assert_eq!(tissue.level_notes, notes, "{tile:?}");
        assert!(tissue.to_string().contains(&format!("note: {words}")), "{tissue}");
    }
    let [base, level] = levels().map(broken);
    let slide = open(&drawn.tiff("both.tif", &[base, level.subfile(1)])).unwrap();
    for level in [0, 1] {
        let e = slide.read_level(level, Rect::new(0, 0, 9, 9)).unwrap_err();
        assert!(matches!(e, SlideError::Tile { level: own, .. } if own == level), "{e}");
    }
    assert_eq!(slide.read_reduced(4.0, all).unwrap().1.len(), 4);
}

/// Between the places that are compared, a part of a coarse tile that its writer never painted hides tissue from the
/// mask, the thumbnail and whatever else is read from that level.
#[test]
fn a_blank_patch_of_a_coarse_tile_comes_from_the_finer_level() {
    let drawn = Drawn::new();
    let [base, level] = levels();
    let whole = open(&drawn.tiff("whole.tif", &[base, level.subfile(1)])).unwrap();
    let want = area(&whole);
    assert_eq!(whole.level_notes(), [""; 0]);
    for (i, colour) in [[255; 4], [0, 0, 0, 255], [243, 242, 244, 255]].into_iter().enumerate() {
        let [base, mut level] = levels();
        let factor = base.size.0 / level.size.0;
        level.pixel =
            Box::new(move |x, y| match (140..204).contains(&x) && (90..282).contains(&y) {
                true => colour,
                false => tissue(x * factor, y * factor),
            });
        let slide = open(&drawn.tiff(&format!("{i}.tif"), &[base, level.subfile(1)])).unwrap();
        assert_eq!(slide.disagreements().unwrap(), [], "{colour:?}: the places miss it");
        assert_eq!(area(&slide), want, "{colour:?}");
        assert!(slide.thumbnail(512).unwrap() == whole.thumbnail(512).unwrap(), "{colour:?}");
        let all = Rect::new(0, 0, 512, 512);
        assert!(slide.read_reduced(4.0, all).unwrap() == whole.read_reduced(4.0, all).unwrap());
        let notes = slide.level_notes().join("; ");
        assert!(notes.contains("of level 1 with a blank part"), "{colour:?}: {notes}");
        let older = slide.differences_since(1).unwrap();
        assert!(older.iter().all(|w| w.contains("blank part")), "{older:?}");
        assert_eq!(slide.differences_since(2).unwrap(), [""; 0]);
    }
    // Glass is blank in both.
    let [base, level] = levels();
    let pure = |x: u32, y: u32| match tissue(x, y) {
        [243, ..] => [255; 4],
        other => other,
    };
    let (mut base, mut level) = (base, level);
    base.pixel = Box::new(pure);
    level.pixel = Box::new(move |x, y| pure(4 * x, 4 * y));
    let glass = open(&drawn.tiff("glass.tif", &[base, level.subfile(1)])).unwrap();
    area(&glass);
    assert_eq!(glass.level_notes(), [""; 0]);
}

/// In strips, too, and however small and wherever the patch is: 16 px each way are enough.
#[test]
fn blank_patches_of_any_layout_and_place_are_filled() {
    let drawn = Drawn::new();
    let places = [(140..204, 90..282), (143..159, 95..111), (301..320, 222..239)];
    for (i, tiles) in [[Some(256); 2], [Some(256), None], [None; 2]].into_iter().enumerate() {
        for (k, (columns, rows)) in places.iter().cloned().enumerate() {
            let drawn_with = |name: &str, patch: bool| {
                let [mut base, mut level] = levels();
                (base.tile, level.tile) = (tiles[0], tiles[1]);
                let (columns, rows) = (columns.clone(), rows.clone());
                level.pixel = Box::new(move |x, y| {
                    match patch && columns.contains(&x) && rows.contains(&y) {
                        true => [255; 4],
                        false => tissue(4 * x, 4 * y),
                    }
                });
                let name = format!("{name}-{i}-{k}.tif");
                open(&drawn.tiff(&name, &[base, level.subfile(1)])).unwrap()
            };
            let (whole, slide) = (drawn_with("whole", false), drawn_with("patched", true));
            assert_eq!((whole.levels().len(), slide.levels().len()), (2, 2));
            let all = Rect::new(0, 0, 512, 512);
            let read = |slide: &Slide| slide.read_reduced(4.0, all).unwrap();
            assert!(read(&slide) == read(&whole), "{tiles:?}, patch {k}");
            assert_eq!(area(&slide), area(&whole), "{tiles:?}, patch {k}");
            assert_eq!(whole.level_notes(), [""; 0], "{tiles:?}, patch {k}");
            let notes = slide.level_notes().join("; ");
            assert!(notes.contains("of level 1 with a blank part"), "{tiles:?}, {k}: {notes}");
        }
    }
}

fn ome(images: &[(&str, u32, u32, &str)]) -> String {
    let image = |(name, w, h, more): &(&str, u32, u32, &str)| {
        format!(
            r#"<Image Name="{name}"><Pixels SizeX="{w}" SizeY="{h}" SizeC="3" SizeT="1" {more}></Pixels></Image>"#
        )
    };
    let all: Vec<String> = images.iter().map(image).collect();
    format!(r#"<?xml version="1.0"?><OME>{}</OME>"#, all.concat())
}

#[test]
fn the_largest_image_is_the_slide_wherever_it_is() {
    let drawn = Drawn::new();
    let base = || Page::tissue((1024, 1024), 2, Some(256));
    let macro_first = Page::tissue((256, 200), 1, Some(256));
    let size = r#"SizeZ="1" PhysicalSizeX="0.5""#;
    let text =
        ome(&[("", 256, 200, r#"SizeZ="1" PhysicalSizeX="16""#), ("scan", 1024, 1024, size)]);
    let path = drawn.tiff("macro_first.ome.tif", &[macro_first.text(270, &text), base()]);
    let slide = Slide::open(&path).unwrap();
    assert_eq!((slide.dimensions(), slide.format()), ((1024, 1024), "ome-tiff"));
    assert_eq!(slide.resolution().unwrap().x.get(), 0.5);
    assert_eq!(slide.associated_images().len(), 1);

    let path = drawn.tiff("thumbnail_first.tif", &[Page::tissue((128, 128), 16, None), base()]);
    let slide = open(&path).unwrap();
    assert_eq!((slide.dimensions(), names(&slide)), ((1024, 1024), vec!["thumbnail"]));

    let scenes = || [base(), Page::tissue((900, 700), 2, Some(256))];
    refused(&drawn.tiff("scenes.tif", &scenes()), &["several scenes", "1024 x 1024", "900 x 700"]);
    let [one, two] = scenes();
    let text = ome(&[("a", 1024, 1024, size), ("b", 900, 700, size)]);
    let path = drawn.tiff("scenes.ome.tif", &[one.text(270, &text), two]);
    refused(&path, &["several scenes", "1024 x 1024", "900 x 700"]);
    let [one, two] = scenes();
    let path = drawn.tiff("scenes.svs", &[one.text(270, SVS), two.text(270, SVS)]);
    refused(&path, &["several scenes"]);
    // Whatever the layout: strips of the slide's own size are a plane, those of its um/px may be a scene, and a larger
    // photograph in strips does not take the slide's place.
    let strips = |w, h| Page::tissue((w, h), 2, None);
    refused(&drawn.tiff("plane.tif", &[base(), strips(1024, 1024)]), &["2 images of 1024 x 1024"]);
    let photograph = strips(1500, 1000).painted([240, 240, 240, 255]);
    refused(&drawn.tiff("photograph.tif", &[photograph, base().um(0.25)]), &["several scenes"]);
    let path = drawn.tiff("strips.tif", &[base().um(0.25), strips(900, 700).um(0.25)]);
    let notes = open(&path).unwrap().level_notes();
    assert!(notes.iter().any(|n| n.contains("may be another scene")), "{notes:?}");
}

/// Some writers flag the slide as a reduced copy, or the thumbnail as none.
#[test]
fn a_larger_image_that_is_flagged_as_reduced_is_the_slide() {
    let drawn = Drawn::new();
    let page = |side, factor| Page::tissue((side, side), factor, Some(256));
    let slide =
        open(&drawn.tiff("flagged.tif", &[page(512, 4), page(2048, 1).subfile(1)])).unwrap();
    assert_eq!((slide.dimensions(), slide.levels().len()), ((2048, 2048), 2));
    // A photograph in strips does not take the place of tiles, but not in silence.
    let photograph = Page::tissue((1500, 1000), 2, None).subfile(1);
    let slide = open(&drawn.tiff("photograph.tif", &[page(1024, 2), photograph])).unwrap();
    let notes = slide.level_notes();
    assert_eq!(slide.dimensions(), (1024, 1024));
    assert!(notes.iter().any(|n| n.contains("1500 x 1000 px) is larger")), "{notes:?}");
}

/// Where the slide itself is flagged as a reduced copy, the flag states nothing of the other images.
#[test]
fn scenes_that_are_all_flagged_as_reduced_are_seen() {
    let drawn = Drawn::new();
    let page = |size, factor| Page::tissue(size, factor, Some(256)).subfile(1);
    let scenes = [page((1024, 1024), 2), page((900, 700), 2)];
    refused(&drawn.tiff("scenes.tif", &scenes), &["several scenes", "1024 x 1024", "900 x 700"]);
    let one_um = [page((2048, 2048), 1).um(0.25), page((1024, 1024), 2).um(0.25)];
    refused(&drawn.tiff("one_um.tif", &one_um), &["several scenes", "1024 x 1024"]);
    let levels = [page((2048, 2048), 1).um(0.25), page((1024, 1024), 2).um(0.5)];
    for pages in [levels, [page((2048, 2048), 1), page((512, 512), 4)]] {
        let slide = open(&drawn.tiff("levels.tif", &pages)).unwrap();
        assert_eq!((slide.levels().len(), slide.level_notes().len()), (2, 0));
    }
    // A smaller one is not read, and named.
    let small = [page((1024, 1024), 2), page((500, 400), 2)];
    let notes = open(&drawn.tiff("small.tif", &small)).unwrap().level_notes();
    assert!(notes.len() == 1 && notes[0].contains("may be another scene"), "{notes:?}");
}

/// However small a page is that may show tissue of its own, and whether it states um/px or not.
#[test]
fn a_small_second_page_without_a_resolution_is_named() {
    let drawn = Drawn::new();
    for tile in [Some(256), None] {
        let page = |size| Page::tissue(size, 2, tile);
        let path = drawn.tiff("small.tif", &[page((1024, 1024)), page((500, 400))]);
        let notes = open(&path).unwrap().level_notes();
        let named = "image-1 (500 x 400 px) may be another scene of the slide";
        assert!(notes.len() == 1 && notes[0].contains(named), "{tile:?}: {notes:?}");
    }
}

/// The samples of an image are those of its own channels and directory, and not of the file's first.
#[test]
fn scenes_behind_a_grey_label_are_seen() {
    let drawn = Drawn::new();
    let size = r#"SizeZ="1" PhysicalSizeX="0.5""#;
    let images = [("label", 64, 64, size), ("a", 1024, 1024, size), ("b", 900, 700, size)];
    let text = ome(&images).replacen(r#"SizeC="3""#, r#"SizeC="1""#, 1);
    let label = Page { samples: 1, ..Page::tissue((64, 64), 1, None) }.text(270, &text);
    let scenes = || [(1024, 1024), (900, 700)].map(|size| Page::tissue(size, 2, Some(256)));
    let [one, two] = scenes();
    refused(&drawn.tiff("label.ome.tif", &[label, one, two]), &["several scenes", "900 x 700"]);
    // A label that is stored without the colours which its channel states.
    let channels =
        ome(&images).replace("></Pixels>", r#"><Channel SamplesPerPixel="3"/></Pixels>"#);
    let grey = Page { samples: 1, ..Page::tissue((64, 64), 1, None) };
    let label = grey.text(270, &channels);
    let [one, two] = scenes();
    refused(&drawn.tiff("channel.ome.tif", &[label, one, two]), &["several scenes", "900 x 700"]);
}

/// One text describes several files: each image is of the file that its UUID names.
#[test]
fn an_image_of_another_file_does_not_describe_this_one() {
    let drawn = Drawn::new();
    let image = |um: &str, uuid: &str| {
        format!(
            r#"<Image Name="{um}"><Pixels SizeX="512" SizeY="512" SizeC="3" SizeZ="1" SizeT="1"
            PhysicalSizeX="{um}"><TiffData IFD="0"><UUID FileName="x">urn:uuid:{uuid}</UUID></TiffData>
            </Pixels></Image>"#
        )
    };
    let all = [image("0.1", "B"), image("0.5", "A")].concat();
    for (file, um) in [("a", 0.5), ("b", 0.1)] {
        let text = format!(r#"<?xml version="1.0"?><OME UUID="urn:uuid:{file}">{all}</OME>"#);
        let page = Page::tissue((512, 512), 4, Some(256)).text(270, &text);
        let slide = Slide::open(drawn.tiff(&format!("{file}.ome.tif"), &[page])).unwrap();
        assert_eq!(slide.resolution().unwrap().x.get(), um, "{file}");
    }
}

/// A case may be called after a label: what the other images are copies of is the slide.
#[test]
fn a_slide_whose_name_has_the_word_of_a_label_is_the_slide() {
    let drawn = Drawn::new();
    let level = |side, factor| Page::tissue((side, side), factor, Some(256));
    for (tag, text) in [(270, "macro metastasis"), (285, "Block 3 label")] {
        let reduced = [2, 4].map(|f| level(2048 / f, f).um(0.25).subfile(1));
        let [half, quarter] = reduced;
        let pages = [level(2048, 1).um(0.25).text(tag, text), half, quarter];
        let slide = open(&drawn.tiff("named.tif", &pages)).unwrap();
        assert_eq!((slide.dimensions(), slide.levels().len()), ((2048, 2048), 3), "{text}");
        assert_eq!((names(&slide), slide.level_notes().len()), (vec![], 0), "{text}");
        let bare = [level(2048, 1).text(tag, text), level(1024, 2)];
        let slide = open(&drawn.tiff("bare.tif", &bare)).unwrap();
        assert_eq!((slide.dimensions(), slide.levels().len()), ((2048, 2048), 2), "{text}");
    }
    let size = r#"SizeZ="1" PhysicalSizeX="0.5""#;
    let text = ome(&[("12 label 2", 1024, 1024, size), ("Series 2", 300, 200, size)]);
    let first = Page::tissue((1024, 1024), 2, Some(256)).text(270, &text);
    let second = Page::tissue((300, 200), 1, Some(256));
    let slide = open(&drawn.tiff("two.ome.tif", &[first, second])).unwrap();
    let notes = slide.level_notes();
    assert!(notes.iter().any(|n| n.contains("label (1024 x 1024 px) is larger")), "{notes:?}");
}

/// What a directory states of its samples is done, or refused by name.
#[test]
fn every_coding_of_samples_is_read_as_stated_or_refused() {
    let drawn = Drawn::new();
    let page = || Page::tissue((64, 64), 30, Some(64));
    let rationals =
        |v: &[u32]| v.iter().flat_map(|v| [*v, 100]).flat_map(u32::to_le_bytes).collect::<Vec<_>>();
    let ycbcr = || page().with(262, SHORT, &[6, 0]).with(530, SHORT, &[1, 0, 1, 0]);
    let range = |low: u32, high: u32| rationals(&[low, high, 12800, high, 12800, high]);
    open(&drawn.tiff("full.tif", &[ycbcr().with(532, RATIONAL, &range(0, 25500))])).unwrap();
    let studio = ycbcr().with(532, RATIONAL, &range(1600, 23500));
    refused(&drawn.tiff("studio.tif", &[studio]), &["ReferenceBlackWhite", "16.0", "235.0"]);
    let other = ycbcr().with(529, RATIONAL, &rationals(&[21, 72, 7]));
    refused(&drawn.tiff("rec709.tif", &[other]), &["YCbCrCoefficients", "0.21"]);
    let packed = page().with(259, SHORT, &32773u16.to_le_bytes()).with(317, SHORT, &[2, 0]);
    refused(&drawn.tiff("packed.tif", &[packed]), &["predictor 2"]);

    // A second sample of grey is read as opacity where that is stated, and is never passed over.
    for (kind, reads) in [(None, false), (Some(0), false), (Some(2), true), (Some(1), true)] {
        let mut grey = Page { samples: 2, ..page() };
        grey.fields.extend(kind.map(|kind| (338, SHORT, vec![kind, 0])));
        let path = drawn.tiff("two.tif", &[grey]);
        match reads {
            true => drop(open(&path).unwrap()),
            false => refused(&path, &["two channels of grey", "export"]),
        }
    }

    // Grey from black to white under JPEG, as it is and as its negative; a colour map would be of other colours.
    let mut stored = Vec::new();
    let ramp: Vec<u8> = (0..64 * 64u32).map(|i| (i % 64 * 4) as u8).collect();
    let encoder = jpeg_encoder::Encoder::new(&mut stored, 95);
    encoder.encode(&ramp, 64, 64, jpeg_encoder::ColorType::Luma).unwrap();
    let grey = |photometric: u8| {
        let mut page = page().with(259, SHORT, &[7, 0]).with(262, SHORT, &[photometric, 0]);
        (page.samples, page.coded) = (1, Some(stored.clone()));
        page.with(320, SHORT, &[0; 2 * 768])
    };
    let pixels = |photometric: u8| {
        let slide = open(&drawn.tiff("grey.tif", &[grey(photometric)])).unwrap();
        slide.read_level(0, Rect::new(0, 0, 64, 64)).unwrap().data
    };
    let (black, white) = (pixels(1), pixels(0));
    assert!(black[0] < 8 && black[3 * 63] > 244, "{} {}", black[0], black[3 * 63]);
    assert!(black.iter().zip(&white).all(|(b, w)| *w == 255 - *b));
    refused(&drawn.tiff("map.tif", &[grey(3)]), &["colour map under JPEG"]);
}

/// Markers within JPEG data that contradict the directory cast doubt on every tile; streams without markers are as the
/// directory states, and one of another number of components is not read.
#[test]
fn jpeg_tiles_of_other_colours_than_the_directory_states_are_named() {
    let drawn = Drawn::new();
    let encoded = |colour, bytes: &[u8]| {
        let mut out = Vec::new();
        jpeg_encoder::Encoder::new(&mut out, 90).encode(bytes, 64, 64, colour).unwrap();
        out
    };
    let marked = encoded(jpeg_encoder::ColorType::Rgb, &[90; 3 * 64 * 64]);
    // Without the segment of JFIF.
    let bare = [&marked[..2], &marked[20..]].concat();
    let grey = encoded(jpeg_encoder::ColorType::Luma, &[90; 64 * 64]);
    let opened = |photometric: u8, coded: &[u8]| {
        let mut page = Page::tissue((64, 64), 30, Some(64));
        page = page.with(259, SHORT, &[7, 0]).with(262, SHORT, &[photometric, 0]);
        page.coded = Some(coded.to_vec());
        open(&drawn.tiff("colours.tif", &[page])).unwrap()
    };
    let whole = |slide: &Slide| slide.read_level(0, Rect::new(0, 0, 64, 64));
    for (photometric, coded, doubted) in
        [(2, &marked, true), (6, &marked, false), (2, &bare, false), (6, &bare, false)]
    {
        let slide = opened(photometric, coded);
        whole(&slide).unwrap();
        let tiles = slide.suspect_tiles();
        assert_eq!(!tiles.is_empty(), doubted, "{photometric}: {tiles:?}");
    }
    let e = whole(&opened(6, &grey)).unwrap_err();
    assert!(matches!(e, SlideError::Tile { .. }), "{e}");
    assert!(e.to_string().contains("1 components where the directory states 3"), "{e}");
}

/// A tile is left out where all its planes are.
#[test]
fn a_tile_without_one_of_its_planes_is_an_error_and_not_white() {
    let drawn = Drawn::new();
    let read = |counts: [u32; 3]| {
        let longs = |v: [u32; 3]| v.map(u32::to_le_bytes).concat();
        let page = Page::tissue((64, 64), 30, Some(64)).with(284, SHORT, &[2, 0]);
        let places = page.with(324, LONG, &longs([8, 4104, 8200]));
        let path = drawn.tiff("planes.tif", &[places.with(325, LONG, &longs(counts))]);
        let slide = open(&path).unwrap();
        let absent = slide.absent_tiles(0).len();
        slide.read_level(0, Rect::new(0, 0, 64, 64)).map(|_| absent).map_err(|e| e.to_string())
    };
    assert_eq!((read([4096; 3]), read([0; 3])), (Ok(0), Ok(1)));
    for plane in 0..3 {
        let mut counts = [4096; 3];
        counts[plane] = 0;
        let e = read(counts).unwrap_err();
        assert!(e.contains("without data"), "{plane}: {e}");
    }
}

/// A copy at a coarser level has the um/px of the slide times the step between them; a second scene has its own.
#[test]
fn a_smaller_scene_of_the_same_shape_is_not_a_level() {
    let drawn = Drawn::new();
    let scan = |side, factor, um| Page::tissue((side, side), factor, Some(256)).um(um);
    let path = drawn.tiff("one_um.tif", &[scan(2048, 1, 0.25), scan(1024, 2, 0.25)]);
    refused(&path, &["several scenes", "2048 x 2048", "1024 x 1024"]);
    // Declared to be reduced, with the density of the slide, as several writers leave it.
    let level = scan(1024, 2, 0.25).subfile(1);
    let slide = open(&drawn.tiff("reduced.tif", &[scan(2048, 1, 0.25), level])).unwrap();
    assert_eq!(slide.levels().len(), 2);
    let path = drawn.tiff("level.tif", &[scan(2048, 1, 0.25), scan(1024, 2, 0.5)]);
    let slide = open(&path).unwrap();
    assert_eq!((slide.levels().len(), slide.level_notes().len()), (2, 0));
    // A scan at 20x next to one at 40x.
    let path = drawn.tiff("20x.tif", &[scan(2048, 1, 0.25), scan(512, 4, 0.5)]);
    let slide = open(&path).unwrap();
    assert_eq!((slide.levels().len(), names(&slide)), (1, vec!["image-1"]));
    let notes = slide.level_notes();
    assert!(notes.len() == 1 && notes[0].contains("another scene"), "{notes:?}");
    assert!(notes[0].contains("image-1 (512 x 512 px, 0.5000 um/px)"), "{notes:?}");
    // The density of a screen on every page is not a resolution.
    let path = drawn.tiff("screen.tif", &[scan(2048, 1, 352.8), scan(1024, 2, 352.8)]);
    assert_eq!(open(&path).unwrap().levels().len(), 2);
    let photograph = Page::tissue((256, 200), 1, Some(256)).um(16.0);
    let slide = open(&drawn.tiff("photo.tif", &[scan(2048, 1, 0.25), photograph])).unwrap();
    assert_eq!((names(&slide), slide.level_notes().len()), (vec!["image-1"], 0));
}

/// Two values that a file states of one size: both are named.
#[test]
fn sizes_that_a_file_states_twice_are_compared() {
    let drawn = Drawn::new();
    let contradicts = |path: &Path, words: [&str; 2]| {
        let e = open(path).unwrap_err();
        let SlideError::ContradictingSize { stated, found, .. } = &e else { panic!("{e:?}") };
        assert!(stated.contains(words[0]) && found.contains(words[1]), "{stated}; {found}");
        assert!(e.to_string().contains("export it again"), "{e}");
    };
    let base = || Page::tissue((1024, 1024), 2, Some(256));
    let path = drawn.tiff("size.svs", &[base().text(270, SVS)]);
    contradicts(&path, ["2048 x 2048 px", "1024 x 1024 px"]);
    let out = drawn.dir.path().join("copy.svs");
    assert!(deidentify(&path, &out, &options()).is_err() && !out.exists());
    for line in [
        "1024x1024 (256x256) J2K/KDU Q=70",
        "46000x32914 [42673,5576 1024x1024] (240x240) JPEG/RGB Q=30;Aperio Image Library v10\r\n\
         46920x33014 [0,100 46000x32914] (256x256) JPEG/RGB Q=30",
        "4096x4096 [0,0,4096x4096] (256x256) -> 1024x1024 JPEG/YCC Q=91",
        "no size at all",
    ] {
        let text = format!("Aperio Image Library v11\r\n{line}|MPP = 0.25");
        open(&drawn.tiff("fits.svs", &[base().text(270, &text)])).unwrap();
    }
    let text = ome(&[("scan", 512, 400, r#"SizeZ="1""#)]);
    let page = Page::tissue((512, 512), 4, Some(256)).text(270, &text);
    contradicts(&drawn.tiff("size.ome.tif", &[page]), ["512 x 400", "512 x 512"]);
    let scan = || Page::tissue((2048, 2048), 1, Some(256)).um(0.25);
    let level = |um| Page::tissue((512, 512), 4, Some(256)).um(um).subfile(1);
    let path = drawn.tiff("density.tif", &[scan(), level(0.5)]);
    contradicts(&path, ["0.5000 um/px", "1.0000 um/px"]);
    for um in [0.25, 0.98, 1.0] {
        let slide = open(&drawn.tiff("density_fits.tif", &[scan(), level(um)])).unwrap();
        assert_eq!(slide.levels().len(), 2, "{um}");
    }
}

/// A label may be the second directory without a word about it: only an image of the slide's shape is its thumbnail.
#[test]
fn a_bare_second_directory_is_not_taken_for_the_thumbnail() {
    let drawn = Drawn::new();
    let svs = |second: Page| [Page::tissue((2048, 2048), 1, Some(256)).text(270, SVS), second];
    let path = drawn.tiff("bare.svs", &svs(Page::tissue((70, 60), 1, None)));
    let slide = open(&path).unwrap();
    assert_eq!(names(&slide), ["image-1"]);
    let found = kinds(&path);
    assert!(found.contains(&("image image-1".into(), Personal::Picture)), "{found:?}");
    let out = drawn.dir.path().join("copy.svs");
    let done = deidentify(&path, &out, &options()).unwrap();
    assert!(done.removed.iter().any(|r| r == "image image-1"), "{:?}", done.removed);
    assert_eq!(names(&open(&out).unwrap()), [""; 0]);
    let path = drawn.tiff("thumbnail.svs", &svs(Page::tissue((128, 128), 16, None)));
    assert_eq!(names(&open(&path).unwrap()), ["thumbnail"]);
}

/// A label of the slide's shape: by its shape it would be the thumbnail, or in tiles a level.
#[test]
fn a_label_of_the_slides_shape_is_neither_its_thumbnail_nor_a_level() {
    let drawn = Drawn::new();
    let label = |tile| Page {
        pixel: Box::new(|x, y| if (x / 24 + y / 24) % 4 == 0 { [30; 4] } else { [250; 4] }),
        ..Page::tissue((256, 256), 1, tile)
    };
    let blank = |tile| Page::tissue((256, 256), 1, tile).painted([243; 4]);
    let base = || Page::tissue((2048, 2048), 1, Some(256)).um(0.25);
    for (i, second) in [label(None), blank(None), label(Some(256))].into_iter().enumerate() {
        let is_tiled = second.tile.is_some();
        let name = if is_tiled { "level 2" } else { "image image-1" };
        let level = Page::tissue((512, 512), 4, Some(256));
        let coded = (second.tiles().concat(), second.tile);
        for kind in ["svs", "tif"] {
            let base = if kind == "svs" { base().text(270, SVS) } else { base() };
            let own = Page { coded: Some(coded.0.clone()), ..Page::tissue((256, 256), 1, coded.1) };
            let level = Page::tissue(level.size, 4, level.tile);
            let path = drawn.tiff(&format!("{i}.{kind}"), &[base, own, level]);
            let found = kinds(&path);
            assert!(found.contains(&(name.into(), Personal::Picture)), "{i}.{kind}: {found:?}");
            let out = drawn.dir.path().join(format!("copy-{i}.{kind}"));
            let done = deidentify(&path, &out, &options()).unwrap();
            assert!(done.removed.iter().any(|r| r == name), "{:?}", done.removed);
            let copy = open(&out).unwrap();
            assert_eq!((names(&copy).len(), copy.levels().len()), (0, 2), "{i}.{kind}");
            let held = std::fs::read(&out).unwrap();
            assert!(!held.windows(3000).any(|w| *w == coded.0[..3000]), "{i}.{kind}");
        }
    }
    for (factor, side) in [(16, 128), (8, 256), (3, 682)] {
        let thumbnail = Page::tissue((side, side), factor, None);
        let path = drawn.tiff("thumbnail.tif", &[base(), thumbnail]);
        assert_eq!(names(&open(&path).unwrap()), ["thumbnail"], "{side}");
    }
}

#[test]
fn focal_planes_and_channels_are_refused_in_every_format() {
    let drawn = Drawn::new();
    let plane = || Page::tissue((512, 512), 4, Some(256));
    let deep = |z: &str| plane().text(270, &format!("{SVS}|OffsetZ = {z}"));
    let path = drawn.tiff("planes.svs", &[deep("0"), deep("0.5"), deep("1")]);
    refused(&path, &["3 images of 512 x 512 px", "focal planes", "OffsetZ"]);
    refused(&drawn.tiff("planes.tif", &[plane(), plane()]), &["2 images", "focal planes"]);
    let text = ome(&[("scan", 512, 512, r#"SizeZ="3""#)]);
    let path = drawn.tiff("planes.ome.tif", &[plane().text(270, &text), plane(), plane()]);
    refused(&path, &["3 focal planes", "SizeZ"]);
    let text = ome(&[("one", 512, 512, r#"SizeZ="1""#), ("two", 512, 512, r#"SizeZ="1""#)]);
    let path = drawn.tiff("alike.ome.tif", &[plane().text(270, &text), plane()]);
    refused(&path, &["2 images of 512 x 512 px (scenes)"]);
    let grey = || Page { samples: 1, ..Page::tissue((512, 512), 4, None) };
    let path = drawn.tiff("composite.tif", &[grey(), grey(), grey()]);
    refused(&path, &["3 grey images", "channels"]);
    let stack = grey().text(270, "ImageJ=1.53\nimages=3\nchannels=3\nmode=composite\n");
    refused(&drawn.tiff("stack.tif", &[stack]), &["3 images of ImageJ"]);
}

/// One channel is read in every format, but never without a word: what stains in colour is not seen in it.
#[test]
fn a_slide_without_colour_is_named() {
    let drawn = Drawn::new();
    let page = |samples: u16| Page { samples, ..Page::tissue((512, 512), 4, Some(256)) };
    let mut files = vec![
        (drawn.tiff("grey.tif", &[page(1).um(0.25)]), true),
        (drawn.tiff("grey.svs", &[page(1).text(270, &described(512))]), true),
        (drawn.tiff("colour.tif", &[page(3).um(0.25)]), false),
    ];
    for name in ["flat.png", "flat.jpg"] {
        let (grey, colour) = (drawn.file(&format!("grey-{name}"), b""), drawn.file(name, b""));
        image::GrayImage::from_pixel(40, 30, image::Luma([90])).save(&grey).unwrap();
        image::RgbImage::from_pixel(40, 30, image::Rgb([90; 3])).save(&colour).unwrap();
        files.extend([(grey, true), (colour, false)]);
    }
    for (path, grey) in files {
        let note = Slide::open(&path).unwrap().colour_note();
        assert_eq!(note.is_some_and(|n| n.contains("one channel of grey")), grey, "{path:?}");
    }
}

#[test]
fn masks_and_damaged_images_next_to_a_slide_do_not_refuse_it() {
    let drawn = Drawn::new();
    let [base, level] = levels();
    let mask = || Page { bits: 1, samples: 1, ..Page::tissue((2048, 2048), 1, None) };
    let mask = mask().subfile(4).with(262, SHORT, &[4, 0]);
    let path = drawn.tiff("mask.tif", &[base, mask, level.subfile(1)]);
    let slide = open(&path).unwrap();
    assert_eq!((slide.levels().len(), names(&slide)), (2, vec!["mask"]));
    let [base, _] = levels();
    let wide = Page { bits: 16, ..Page::tissue((70, 60), 1, None) };
    let label = wide.text(270, "Aperio Image Library\nlabel 70x60");
    let path = drawn.tiff("label16.svs", &[base.text(270, SVS), label]);
    let slide = open(&path).unwrap();
    let about = &slide.associated_images()[0];
    assert_eq!(about.name, "label");
    assert!(about.unreadable.as_ref().unwrap().contains("16 bits"), "{about:?}");
    assert!(slide.associated_image("label").unwrap_err().to_string().contains("16 bits"));
    for file in ["s32_mask.tif", "s05e_macro16.svs"] {
        let Some(path) = testkit::data(&format!("hostile/reports/{file}")) else { continue };
        assert_eq!(open(&path).unwrap().dimensions(), (1024, 1024), "{file}");
    }
}

/// A label or macro that asks for too much or points out of the file refuses no slide; what may be a level does.
#[test]
fn pictures_next_to_a_slide_that_cannot_be_read_are_named() {
    let drawn = Drawn::new();
    let huge = |page: Page| {
        let page = page.with(259, SHORT, &[7, 0]).with(278, LONG, &[0xFF; 4]);
        page.with(257, LONG, &(1_u32 << 30).to_le_bytes())
    };
    let lost = |page: Page| page.with(330, LONG, &(1_u32 << 30).to_le_bytes());
    let named = |name: &str| {
        Page::tissue((70, 60), 1, None).text(270, &format!("Aperio Image Library\n{name} 70x60"))
    };
    let [base, level] = levels();
    let pages = [base.text(270, SVS), level.text(270, SVS), huge(named("macro"))];
    let slide = open(&drawn.tiff("huge.svs", &pages)).unwrap();
    assert_eq!((names(&slide), slide.levels().len()), (vec!["macro"], 2));
    let unreadable = slide.associated_images()[0].unreadable.as_ref().unwrap();
    assert!(unreadable.contains("limit `memory`"), "{unreadable}");
    assert!(matches!(slide.associated_image("macro"), Err(SlideError::Limit { .. })));
    let [base, _] = levels();
    let path = drawn.tiff("lost.svs", &[base.text(270, SVS), lost(named("label"))]);
    let notes = open(&path).unwrap().level_notes();
    assert!(notes.len() == 1 && notes[0].starts_with("label: SubIFDs: "), "{notes:?}");

    let [base, level] = levels();
    let e = open(&drawn.tiff("level.tif", &[base, lost(level.subfile(1))])).unwrap_err();
    assert!(e.to_string().contains("image 1: SubIFDs: "), "{e}");
    let [base, _] = levels();
    let e = open(&drawn.tiff("slide.tif", &[lost(base)])).unwrap_err();
    assert!(e.to_string().contains("image 0: SubIFDs: "), "{e}");
    let [base, _] = levels();
    let level = Page::tissue((512, 512), 4, None).subfile(1);
    let e = open(&drawn.tiff("limit.tif", &[base, huge(level)])).unwrap_err();
    assert!(matches!(e, SlideError::Limit { .. }), "{e}");
    // The slide is called after a label and cannot be read: its level does not take its place.
    let [base, level] = levels();
    let base = base.text(270, "macro metastasis").with(259, SHORT, &[99, 0]);
    let e = open(&drawn.tiff("named.tif", &[base, level.subfile(1)])).unwrap_err();
    assert!(e.to_string().contains("image 0: "), "{e}");
}

#[test]
fn what_an_ome_tiff_states_twice_is_compared() {
    let drawn = Drawn::new();
    let text = ome(&[("scan", 512, 400, r#"SizeZ="1""#)]);
    let path =
        drawn.tiff("size.ome.tif", &[Page::tissue((512, 512), 4, Some(256)).text(270, &text)]);
    let text = open(&path).unwrap_err().to_string();
    assert!(text.contains("512 x 400") && text.contains("512 x 512"), "{text}");
    // The magnification of the objective that the image names, or of the only one.
    let resolution = |um: &str, objectives: &str, settings: &str| {
        let text = ome(&[("scan", 512, 512, &format!(r#"SizeZ="1" PhysicalSizeX="{um}""#))]);
        let text = text.replace("<OME>", &format!("<OME><Instrument>{objectives}</Instrument>"));
        let text = text.replace("<Pixels", &format!("{settings}<Pixels"));
        let page = Page::tissue((512, 512), 4, Some(256)).text(270, &text);
        let slide = Slide::open(drawn.tiff("objective.ome.tif", &[page])).unwrap();
        slide.resolution().map(|r| r.x.get()).map_err(|e| e.to_string())
    };
    let x40 = r#"<Objective ID="Objective:0" NominalMagnification="40"/>"#;
    let both = format!(r#"{x40}<Objective ID="Objective:1" NominalMagnification="20.0"/>"#);
    let names = |i: u32| format!(r#"<ObjectiveSettings ID="Objective:{i}"/>"#);
    assert_eq!(resolution("0.25", x40, ""), Ok(0.25));
    assert_eq!(resolution("0.5", &both, &names(1)), Ok(0.5));
    assert_eq!(resolution("0.5", &both, ""), Ok(0.5));
    for (objectives, settings) in [(x40, ""), (x40, &*names(0)), (&*both, &*names(0))] {
        let e = resolution("0.5", objectives, settings).unwrap_err();
        let is_named = e.contains("ome.PhysicalSizeX = 0.5") && e.contains("objective power 40x");
        assert!(e.contains("contradicting") && is_named, "{e}");
    }
}

/// An Aperio description repeats its fields in every level; one that states two um/px is not believed.
#[test]
fn two_resolutions_in_descriptions_contradict_each_other() {
    let drawn = Drawn::new();
    let svs = |base: &str, level: &str| {
        let page = |side: u32, shrunk, text: &str| {
            let text = described(512).replace("512", &side.to_string()).replace("MPP = 0.25", text);
            Page::tissue((side, side), shrunk, Some(256)).text(270, &text)
        };
        let path = drawn.tiff("two.svs", &[page(512, 4, base), page(256, 8, level)]);
        let slide = Slide::open(path).unwrap();
        slide.resolution().map(|r| r.x.get()).map_err(|e| e.to_string())
    };
    for level in ["MPP = 0.25", "MPP = 0.5", "AppMag = 40"] {
        assert_eq!(svs("MPP = 0.25", level), Ok(0.25), "{level}");
    }
    for (base, level, other) in [
        ("MPP = 0.25|MPP = 0.5", "MPP = 0.25", "0.5"),
        ("MPP = 0.5|MPP = 0.25", "AppMag = 40", "0.25"),
        ("MPP = 0.25", "MPP = 0.7", "aperio.MPP of image 1 = 0.7"),
    ] {
        let text = svs(base, level).unwrap_err();
        assert!(text.contains("contradicting") && text.contains(other), "{text}");
    }
}

#[test]
fn decimal_commas_are_read_and_words_are_quoted() {
    let drawn = Drawn::new();
    let svs = |mpp: &str| {
        let text = described(512).replace("0.25", mpp);
        drawn.tiff("comma.svs", &[Page::tissue((512, 512), 4, Some(256)).text(270, &text)])
    };
    assert_eq!(Slide::open(svs("0,2500")).unwrap().resolution().unwrap().x.get(), 0.25);
    let text = Slide::open(svs("fine")).unwrap().resolution().unwrap_err().to_string();
    assert!(text.contains("aperio.MPP = `fine`") && !text.contains("NaN"), "{text}");
    for (x, y, words) in
        [("0.25", "abc", "ome.PhysicalSizeY = `abc`"), ("abc", "0.25", "ome.PhysicalSizeX = `abc`")]
    {
        let stated = format!(r#"SizeZ="1" PhysicalSizeX="{x}" PhysicalSizeY="{y}""#);
        let text = ome(&[("scan", 512, 512, &stated)]);
        let page = Page::tissue((512, 512), 4, Some(256)).text(270, &text);
        let slide = Slide::open(drawn.tiff("word.ome.tif", &[page])).unwrap();
        let e = slide.resolution().unwrap_err().to_string();
        assert!(e.contains(words) && !e.contains("0.25,") && !e.contains("NaN"), "{e}");
    }
    let Some(path) = testkit::data("hostile/reports/s04_comma.svs") else { return };
    assert_eq!(Slide::open(path).unwrap().resolution().unwrap().x.get(), 0.25);
}

#[test]
fn files_that_are_not_slides_are_named_with_what_helps() {
    let drawn = Drawn::new();
    for (bytes, words) in [
        (
            &b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"[..],
            ["Git-LFS", "git lfs pull"],
        ),
        (b"\n<!DOCTYPE html><html><body>Sign in</body></html>", ["HTML", "download"]),
        (b"PK\x03\x04and more of an archive", ["ZIP", "unpack"]),
        (b"\x1f\x8b\x08\0 packed", ["gzip", "unpack"]),
        (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", ["XML", "slide"]),
        (b"%PDF-1.7 a report", ["PDF", "slide"]),
        (&[0; 4096], ["zeros", "copy it again"]),
        (b"{\"message\": \"Not Found\"}", ["JSON", "download"]),
        (b"Access denied\n", ["a text file", "name the slide file itself"]),
        (b"<!-- nginx --><html>", ["HTML", "download"]),
        (b"\n\n  <HTML><BODY>", ["HTML", "download"]),
        (&[&[b'a'; 257][..], b"ustar"].concat(), ["tar", "unpack"]),
        (b"\0\0\0\x18ftypheic\0\0\0\0", ["HEIC", "PNG or TIFF"]),
        (b"\0\0\0\x20ftypavif\0\0\0\0", ["AVIF", "PNG or TIFF"]),
        (b"\0\0\0\x0cjP  \r\n\x87\n", ["JPEG 2000", "PNG or TIFF"]),
        (b"\0\x05\x16\x07\0\x02\0\0Mac OS X", ["AppleDouble", "name the slide file itself"]),
        (b"\x07\x99\xff\xfe nothing known", ["not a TIFF, PNG, JPEG or DICOM", "name a slide"]),
    ] {
        let path = drawn.file("case.svs", bytes);
        refused(&path, &words);
        assert!(!open(&path).unwrap_err().to_string().contains("OpenSlide"), "{words:?}");
    }
    // By what OpenSlide knows its files, or by their names.
    for (name, bytes) in [
        ("case.ndpi", &b"\x07\x99\xff\xfe nothing known"[..]),
        ("case.czi", b"\x07\x99\xff\xfe nothing known"),
        ("case", b"ZISRAWFILE\0\0\0\0"),
        ("case.svslide", b"SQLite format 3\0"),
        ("case.vms", b"[Virtual Microscope Specimen]\r\nNoLayers=1\r\n"),
    ] {
        refused(&drawn.file(name, bytes), &["which needs OpenSlide 4", "install OpenSlide"]);
    }
    if let Some(path) = testkit::data("hostile/reports/s13_cmyk.jpg") {
        refused(&path, &["four components", "RGB"]);
    }
}

/// An EXIF block with one field: the orientation.
fn exif(orientation: u8) -> Vec<u8> {
    let mut b = b"II*\0\x08\0\0\0\x01\0".to_vec();
    b.extend([0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0, 0, 0, 0, 0]);
    b
}

/// An EXIF block with one field of single bytes.
fn exif_text(tag: u16, kind: u16, text: &[u8]) -> Vec<u8> {
    let entry = [tag.to_le_bytes(), kind.to_le_bytes()].concat();
    let place = [text.len() as u32, 26].map(u32::to_le_bytes).concat();
    [&b"II*\0\x08\0\0\0\x01\0"[..], &entry, &place, &[0; 4], text].concat()
}

/// The segment of Adobe, for YCbCr, and that of JFIF up to the size of its thumbnail.
const ADOBE: &[u8] = b"Adobe\0\x64\0\0\0\0\x01";
const JFIF: &[u8] = b"JFIF\0\x01\x01\0\0\x01\0\x01";

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/slides").join(name)
}

/// The drawn JPEG with a segment behind its start.
fn jpeg_with(marker: u8, body: &[u8]) -> Vec<u8> {
    let plain = std::fs::read(golden("flat_444.jpg")).unwrap();
    let len = (body.len() as u16 + 2).to_be_bytes();
    [&plain[..2], &[0xFF, marker], &len, body, &plain[2..]].concat()
}

/// The drawn PNG with a chunk behind its header, or before its end.
fn png_with(kind: &[u8; 4], body: &[u8], last: bool) -> Vec<u8> {
    let plain = std::fs::read(golden("flat.png")).unwrap();
    let at = if last { plain.len() - 12 } else { 33 };
    let mut crc = flate2::Crc::new();
    crc.update(kind);
    crc.update(body);
    let (len, sum) = ((body.len() as u32).to_be_bytes(), crc.sum().to_be_bytes());
    [&plain[..at], &len, kind, body, &sum, &plain[at..]].concat()
}

#[test]
fn turned_images_are_refused_everywhere_and_0_means_upright() {
    let drawn = Drawn::new();
    let page = |o: u8| Page::tissue((64, 64), 30, None).with(274, SHORT, &[o, 0]);
    let turned = |o: u8| {
        [
            drawn.tiff("turned.tif", &[page(o)]),
            drawn.file("turned.jpg", &jpeg_with(0xE1, &[b"Exif\0\0", &exif(o)[..]].concat())),
            drawn.file("turned.png", &png_with(b"eXIf", &exif(o), false)),
            drawn.file("late.png", &png_with(b"eXIf", &exif(o), true)),
        ]
    };
    for o in [3, 6, 8] {
        let words = [&format!("orientation {o}"), "turned", "save it upright, with orientation 1"];
        turned(o).iter().for_each(|p| refused(p, &words));
    }
    for o in [9, 200] {
        let words = [&format!("orientation {o}"), "TIFF and EXIF know 1 to 8"];
        for path in turned(o) {
            refused(&path, &words);
            assert!(
                matches!(open(&path), Err(SlideError::Unsupported { .. })),
                "{}",
                path.display()
            );
        }
    }
    // Behind more pixels than a start of the file has: what follows them is read all the same.
    let mut large = png_with(b"eXIf", &exif(6), true);
    let at = large.len() - 12 - 12 - exif(6).len();
    let empty = [&(1_u32 << 20).to_be_bytes()[..], b"IDAT", &vec![0; 1 << 20], &[0; 4]].concat();
    large.splice(at..at, empty.repeat(33));
    refused(&drawn.file("large.png", &large), &["orientation 6", "turned"]);
    for o in [0, 1] {
        for path in turned(o) {
            let slide = open(&path).unwrap();
            let (w, h) = slide.dimensions();
            slide.read_level(0, Rect::new(0, 0, w as usize, h as usize)).unwrap();
        }
    }
}

/// EXIF alone, or next to the density of a screen, is not a resolution; flat.png states 0.5 um/px.
#[test]
fn exif_that_states_another_resolution_than_the_picture_is_refused_with_both() {
    let drawn = Drawn::new();
    let block = |mpp: f64, unit: u8| {
        let per_unit = if unit == 3 { 1e4 } else { 25_400.0 } / mpp;
        let mut b = b"II*\0\x08\0\0\0\x03\0".to_vec();
        for (tag, at) in [(0x1A, 50), (0x1B, 58)] {
            b.extend([tag, 1, 5, 0, 1, 0, 0, 0, at, 0, 0, 0]);
        }
        b.extend([0x28, 1, 3, 0, 1, 0, 0, 0, unit, 0, 0, 0, 0, 0, 0, 0]);
        let number = [(per_unit * 100.0).round() as u32, 100].map(u32::to_le_bytes).concat();
        [b, number.repeat(2)].concat()
    };
    // With a unit, 2 for a centimetre, and the pixels in it each way.
    let jpeg = |block: &[u8], density: [u8; 5]| {
        let mut all = jpeg_with(0xE1, &[&b"Exif\0\0"[..], block].concat());
        let at = all.windows(5).position(|w| w == b"JFIF\0").unwrap() + 7;
        all[at..at + 5].copy_from_slice(&density);
        drawn.file("a.jpg", &all)
    };
    let resolution = |path: PathBuf| Slide::open(path).unwrap().resolution().map(|r| r.x.get());
    let open = |mpp: f64, unit: u8| {
        let block = block(mpp, unit);
        let png = drawn.file("a.png", &png_with(b"eXIf", &block, true));
        [jpeg(&block, [2, 0x4E, 0x20, 0x4E, 0x20]), png].map(resolution)
    };
    for (mpp, unit) in [(0.5, 2), (0.5, 3), (0.515, 2), (352.8, 2), (2.0, 1)] {
        for read in open(mpp, unit) {
            assert!((read.unwrap() - 0.5).abs() < 1e-6, "{mpp}, unit {unit}");
        }
    }
    for unit in [2, 3] {
        for refused in open(2.0, unit).map(Result::unwrap_err) {
            assert!(matches!(refused, SlideError::ContradictingResolution { .. }), "{refused}");
            let refused = refused.to_string();
            for words in ["exif.XResolution = 2", "= 0.5 um/px"] {
                assert!(refused.contains(words), "{words}: {refused}");
            }
        }
    }
    for density in [[0, 0, 1, 0, 1], [1, 0, 72, 0, 72]] {
        let alone = resolution(jpeg(&block(0.5, 2), density)).unwrap_err();
        assert!(matches!(alone, SlideError::MissingResolution { .. }), "{alone}");
    }
}

/// A JPEG with a list of pictures (CIPA DC-007) and the second of them behind it.
fn jpeg_of_two(kind: u32, second: &[u8]) -> Vec<u8> {
    let list = |at: u32| {
        let mut b = b"MPF\0II*\0\x08\0\0\0\x01\0".to_vec();
        b.extend([0x02, 0xB0, 7, 0, 32, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0]);
        for (kind, at) in [(0x03_0000, 0), (kind, at)] {
            b.extend([kind, 1000, at, 0].map(u32::to_le_bytes).concat());
        }
        b
    };
    let length = jpeg_with(0xE2, &list(0)).len() as u32;
    // Places count from behind `MPF`.
    [jpeg_with(0xE2, &list(length - 10)), second.to_vec()].concat()
}

/// flat.png states 0.25 um/px as pixels per metre.
#[test]
fn a_png_with_two_resolutions_is_refused_with_both() {
    let drawn = Drawn::new();
    let open = |scale: &[u8], last: bool| {
        let slide = Slide::open(drawn.file("scale.png", &png_with(b"sCAL", scale, last))).unwrap();
        slide.resolution().map(|r| r.x.get()).map_err(|e| e.to_string())
    };
    let stated = Slide::open(golden("flat.png")).unwrap().resolution().unwrap().x.get();
    for last in [false, true] {
        let same = format!("\u{1}{:e}\0{:e}", stated / 1e6, stated / 1e6);
        assert!(open(same.as_bytes(), last).is_ok_and(|mpp| (mpp - stated).abs() < 1e-3));
        let refused = open(b"\x011e-6\x001e-6", last).unwrap_err();
        assert!(refused.contains("png.sCAL = 1 um/px"), "{refused}");
        assert!(refused.contains(&format!("png.pHYs = {stated} um/px")), "{refused}");
    }
    assert!(open(b"\x021e-6\x001e-6", false).is_ok(), "radians");
    // A copy without names keeps the resolution, and a number of anything else is not one.
    let copied = |scale: &[u8]| {
        let named = drawn.file("named.png", &png_with(b"sCAL", scale, true));
        let copy = drawn.dir.path().join(format!("copy-{}.png", scale.len()));
        deidentify(&named, &copy, &options()).unwrap();
        let all = std::fs::read(copy).unwrap();
        all.windows(4).any(|kind| kind == b"sCAL")
    };
    let number = format!("{:e}", stated / 1e6);
    assert!(copied(format!("\u{1}{number}\0{number}").as_bytes()));
    assert!(!copied(b"\x0120240131\x001234567"), "a date, a case");
}

#[test]
fn further_pictures_of_png_and_jpeg_are_refused_or_named() {
    let drawn = Drawn::new();
    let animated = |frames: u32, first: bool| {
        let control = [frames.to_be_bytes(), [0; 4]].concat();
        let mut b = png_with(b"acTL", &control, false);
        if first {
            let frame = [&[0; 4][..], &[0; 22]].concat();
            let at = 33 + 12 + control.len();
            let chunk = [&26u32.to_be_bytes()[..], b"fcTL", &frame, &[0; 4]].concat();
            b.splice(at..at, chunk);
        }
        b
    };
    for (frames, first, all) in [(3, true, 3), (1, false, 2)] {
        let path = drawn.file("animated.png", &animated(frames, first));
        refused(&path, &[&format!("animation of {all} pictures"), "file of its own"]);
        assert!(slide::picture_fault(&animated(frames, first)).is_some());
    }
    assert_eq!(slide::picture_fault(&animated(1, true)), None);
    let whole = std::fs::read(golden("flat_444.jpg")).unwrap();
    let views = drawn.file("views.jpg", &jpeg_of_two(0x02_0003, &whole));
    let alike = drawn.file("alike.jpg", &jpeg_of_two(0, &whole));
    for path in [&views, &alike] {
        refused(path, &["2 pictures of", "save the picture that is meant in a file of its own"]);
    }
    open(&drawn.file("own.jpg", &whole)).unwrap();
    let mut small = whole.clone();
    let frame = small.windows(2).position(|w| w == [0xFF, 0xC0]).unwrap();
    small[frame + 5..frame + 9].copy_from_slice(&[0, 32, 0, 40]);
    let other = open(&drawn.file("gain.jpg", &jpeg_of_two(0, &small))).unwrap();
    assert_eq!(other.level_notes(), ["picture 2 of the file (40 x 32 px) is not read"]);
    let preview = open(&drawn.file("preview.jpg", &jpeg_of_two(0x01_0001, &whole))).unwrap();
    assert_eq!(preview.level_notes(), [""; 0]);
    let page = || Page::tissue((64, 64), 30, None);
    let pages = std::fs::read(drawn.tiff("pages.tif", &[page(), page()])).unwrap();
    assert!(slide::picture_fault(&pages).unwrap().contains("several pages"));
    let shrunk = std::fs::read(drawn.tiff("shrunk.tif", &[page(), page().subfile(1)])).unwrap();
    assert_eq!(slide::picture_fault(&shrunk), None);
}

#[test]
fn a_transparent_ground_of_undeclared_opacity_is_white() {
    let drawn = Drawn::new();
    let mut page = Page { samples: 4, ..Page::tissue((64, 64), 30, Some(64)) };
    page.pixel = Box::new(|x, _| match x {
        0..32 => [0, 0, 0, 0],
        32..48 => [0, 0, 0, 255],
        _ => [90, 40, 120, 0],
    });
    let page = page.with(338, SHORT, &[0, 0]);
    let slide = open(&drawn.tiff("rgba.tif", &[page])).unwrap();
    let row = slide.read_level(0, Rect::new(0, 0, 64, 1)).unwrap().data;
    let pixel = |x: usize| [row[3 * x], row[3 * x + 1], row[3 * x + 2]];
    assert_eq!((pixel(3), pixel(40), pixel(60)), ([255; 3], [0; 3], [90, 40, 120]));
}

/// The file is cut behind the open slide, as a share that goes away: the coarse level is last.
#[test]
fn a_failed_read_is_an_error_and_not_another_level() {
    let drawn = Drawn::new();
    let pages = levels().map(|p| p.text(270, SVS));
    let path = drawn.tiff("cut.svs", &pages);
    let slide = open(&path).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(3 * 2048 * 2048 + 4096).unwrap();
    for e in [
        TissueMask::find(&slide).unwrap_err(),
        slide.thumbnail_partial(300).unwrap_err(),
        slide.read_level(1, Rect::new(300, 300, 9, 9)).unwrap_err(),
    ] {
        assert!(matches!(e, SlideError::Io { .. }) && !e.is_tile(), "{e:?}");
        assert!(e.to_string().contains("read error"), "{e}");
    }
    assert!(slide.read_level(0, Rect::new(5, 5, 9, 9)).is_ok());
}

/// 8,192 x 8,192 px in four tiles of 4,096 px, which are the same packed bytes.
fn large_tiles() -> Vec<u8> {
    const TILE: u32 = 4096;
    let row = |y: u32| (0..TILE).flat_map(move |x| tissue(x % 1800, y)[..3].to_vec());
    let rows: Vec<Vec<u8>> = (0..1800).step_by(96).map(|y| row(y).collect()).collect();
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    for y in 0..TILE as usize {
        packed.write_all(&rows[y / 96 % rows.len()]).unwrap();
    }
    let packed = packed.finish().unwrap();
    let longs = |v: [u32; 4]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let mut out = b"II*\0\0\0\0\0".to_vec();
    let size = packed.len() as u32;
    out.extend(packed);
    out.resize(out.len().next_multiple_of(2), 0);
    let offsets = out.len() as u32;
    out.extend(longs([8; 4]));
    out.extend(longs([size; 4]));
    let bits = out.len() as u32;
    out.extend([8u16; 3].iter().flat_map(|v| v.to_le_bytes()));
    // Tag, type, count, value or its place; 8 is Deflate.
    let entries = [
        (256, LONG, 1, 2 * TILE),
        (257, LONG, 1, 2 * TILE),
        (258, SHORT, 3, bits),
        (259, SHORT, 1, 8),
        (262, SHORT, 1, 2),
        (277, SHORT, 1, 3),
        (322, LONG, 1, TILE),
        (323, LONG, 1, TILE),
        (324, LONG, 4, offsets),
        (325, LONG, 4, offsets + 16),
    ];
    let at = out.len() as u32;
    out[4..8].copy_from_slice(&at.to_le_bytes());
    out.extend((entries.len() as u16).to_le_bytes());
    for (tag, kind, count, value) in entries {
        out.extend([tag, kind].iter().flat_map(|v: &u16| v.to_le_bytes()));
        out.extend([count, value].iter().flat_map(|v: &u32| v.to_le_bytes()));
    }
    out.extend([0; 4]);
    out
}

#[test]
fn tiles_of_4096_px_are_decoded_once_not_for_every_window() {
    let drawn = Drawn::new();
    let bytes = large_tiles();
    for memory in ["memory=4G", "memory=512M", "memory=128M"] {
        let mut options = options();
        options.limits.set_all(memory).unwrap();
        let path = drawn.file("large.tif", &bytes);
        let slide = Slide::open_with(&path, &options).unwrap();
        let read = |x: i64, y: i64| slide.read_level(0, Rect::new(x, y, 64, 64));
        for top in [0, 4096] {
            std::fs::write(&path, &bytes).unwrap();
            for left in [0, 4096] {
                read(left, top).unwrap();
            }
            // Both tiles were decoded once; from here on a tile that is decoded again is an error.
            std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8).unwrap();
            for i in 0..500i64 {
                let (x, y) = (i % 40 * 200, top + i / 40 * 300);
                read(x, y).unwrap_or_else(|e| panic!("{memory}: {x}, {y}: {e}"));
            }
        }
    }
}

/// Of a slide none of whose tiles can be decoded, all was tissue without a word.
#[test]
fn tissue_that_could_not_be_read_is_named() {
    let drawn = Drawn::new();
    let page = || Page::tissue((512, 512), 4, Some(64)).um(0.25);
    let damaged = Page { coded: Some(vec![1; 10]), ..page() };
    let find = |path: &Path| {
        let slide = open(path).unwrap();
        write_tissue(&slide, &path.with_extension("out")).unwrap()
    };
    let whole = find(&drawn.tiff("whole.tif", &[page()]));
    assert!(whole.unread_mm2.is_none() && !whole.to_string().contains("could not be read"));
    let none = find(&drawn.tiff("none.tif", &[damaged]));
    let all = 0.128 * 0.128;
    assert!((none.unread_mm2.unwrap() - all).abs() < 1e-6, "{:?}", none.unread_mm2);
    let note = "note: 0.016 mm2 could not be read, and count as tissue";
    assert!(none.to_string().contains(note), "{none}");
}

/// With the width of a column less, every row of tiles would begin with one of the row above.
#[test]
fn more_tiles_than_the_sizes_have_are_refused() {
    let drawn = Drawn::new();
    let mut bytes = tiff(&[Page::tissue((128, 128), 15, Some(64))]);
    let stated = |side: u32| {
        let head = [256u16, LONG].map(u16::to_le_bytes).concat();
        [head, [1u32, side].map(u32::to_le_bytes).concat()].concat()
    };
    assert!(open(&drawn.file("whole.tif", &bytes)).is_ok());
    let at = bytes.windows(12).position(|w| w == stated(128)).unwrap();
    bytes[at..at + 12].copy_from_slice(&stated(64));
    let e = open(&drawn.file("narrow.tif", &bytes)).err().unwrap().to_string();
    assert!(e.contains("2 tiles are needed, 4 offsets and 4 sizes are there"), "{e}");
}

fn kinds(path: &Path) -> Vec<(String, Personal)> {
    let all = open(path).unwrap().inventory().unwrap().findings;
    all.into_iter().map(|f| (f.name, f.kind)).collect()
}

/// Behind the numbers that a tag has, and in those of colours, anybody can have written; such numbers as TIFF has stay.
#[test]
fn words_in_numbers_of_a_tiff_are_found_and_not_in_the_copy() {
    let drawn = Drawn::new();
    let jane = |bytes: usize| [b"Jane Doe".to_vec(), vec![b' '; bytes - 8]].concat();
    let range = [0u32, 1, 255, 1, 128, 1, 255, 1, 128, 1, 255, 1].map(u32::to_le_bytes).concat();
    let page = Page::tissue((64, 64), 30, Some(64));
    let written = page
        .with(280, SHORT, &[&[0; 6][..], b"Jane Doe"].concat())
        .with(301, SHORT, &jane(1536))
        .with(318, RATIONAL, &jane(16))
        .with(319, RATIONAL, &jane(48))
        .with(529, RATIONAL, &jane(24))
        .with(532, RATIONAL, &jane(48))
        .with(33723, SHORT, b"Jane Doe");
    let path = drawn.tiff("in.tif", &[written]);
    let tags = ["MinSampleValue", "WhitePoint", "PrimaryChromaticities", "YCbCrCoefficients"];
    let found = kinds(&path);
    for name in tags.iter().chain(&["ReferenceBlackWhite"]) {
        assert!(found.contains(&(format!("tiff.{name}"), Personal::Text)), "{name}: {found:?}");
    }
    let out = drawn.file("gone.tif", b"").with_file_name("out.tif");
    deidentify(&path, &out, &options()).unwrap();
    let copy = std::fs::read(&out).unwrap();
    assert!(!copy.windows(8).any(|w| w == b"Jane Doe"));
    assert_eq!(kinds(&out), []);
    let whole = Rect::new(0, 0, 64, 64);
    let pixels = |path: &Path| open(path).unwrap().read_level(0, whole).unwrap().data;
    assert!(pixels(&path) == pixels(&out));
    // Numbers of the standard.
    let plain = Page::tissue((64, 64), 30, Some(64)).with(280, SHORT, &[0; 6]);
    let path = drawn.tiff("plain.tif", &[plain.with(532, RATIONAL, &range)]);
    assert_eq!(kinds(&path), []);
    let out = out.with_file_name("plain-out.tif");
    deidentify(&path, &out, &options()).unwrap();
    let copy = std::fs::read(&out).unwrap();
    assert!(copy.windows(48).any(|w| w == range));
}

#[test]
fn texts_are_found_in_every_place_of_a_file() {
    let drawn = Drawn::new();
    let page = || Page::tissue((64, 64), 30, Some(64));
    let number = std::cell::Cell::new(0);
    let one = |page: Page| {
        number.set(number.get() + 1);
        drawn.tiff(&format!("{}.tif", number.get()), &[page])
    };
    for (path, name, kind) in [
        (one(page().text(285, "S21-1234")), "tiff.PageName", Personal::Identifier),
        (one(page().text(42032, "Dr. Doe")), "tiff.CameraOwnerName", Personal::Person),
        (one(page().text(65000, "Jane Doe")), "tiff.(65000)", Personal::Text),
        (one(page().with(65001, 7, b"\0\0Jane Doe")), "tiff.(65001)", Personal::Text),
        (one(page().with(33723, 7, b"\x1c\x02\x50\0\x08Jane Doe")), "tiff.IPTC", Personal::Text),
        (
            one(page().text(270, &format!("{}|Note = for Jane", described(64)))),
            "tiff.ImageDescription: Note",
            Personal::Text,
        ),
        (drawn.file("c.jpg", &jpeg_with(0xFE, b"Jane Doe")), "jpeg.Comment", Personal::Text),
        (
            drawn.file("x.jpg", &jpeg_with(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>")),
            "jpeg.XMP",
            Personal::Text,
        ),
        (
            drawn.file("t.png", &png_with(b"tEXt", b"Author\0Jane Doe", false)),
            "png.Author",
            Personal::Person,
        ),
        (
            drawn.file("l.png", &png_with(b"tEXt", b"Remark\0Jane Doe", true)),
            "png.Remark",
            Personal::Text,
        ),
    ] {
        let found = kinds(&path);
        assert!(found.contains(&(name.to_owned(), kind)), "{name}: {found:?}");
    }
    let product = drawn.file("p.png", &png_with(b"tEXt", b"Software\0Adobe Photoshop 24.1", false));
    let marked = drawn.file("m.jpg", &jpeg_with(0xEE, ADOBE));
    let clean = ["flat.png", "flat_444.jpg", "lzw.tif"].map(golden);
    for clean in clean.iter().chain([&product, &marked]) {
        let found = kinds(clean);
        assert!(found.is_empty(), "{clean:?}: {found:?}");
    }
    // Of this one the scanner is known.
    let found = kinds(&golden("svs_jpeg_rgb.svs"));
    let device = |(name, kind): &(String, Personal)| {
        *kind == Personal::Device && name.ends_with("ScanScope ID")
    };
    assert!(!found.is_empty() && found.iter().all(device), "{found:?}");
    let about = open(&golden("lzw.tif")).unwrap().inventory().unwrap();
    assert!(about.looked_at.iter().any(|l| l.contains("text fields")), "{about:?}");
    assert!(about.not_looked_at.iter().any(|l| l.contains("pixels")), "{about:?}");
    for (file, tag) in [
        ("camera.tif", "CameraOwnerName"),
        ("iptc.tif", "IPTC"),
        ("pagename.tif", "PageName"),
        ("private.tif", "(65000)"),
        ("comment.jpg", "Comment"),
        ("exif.jpg", "ImageDescription"),
        ("text.png", "Title"),
    ] {
        let Some(path) = testkit::data(&format!("hostile/reports/private/{file}")) else {
            continue;
        };
        let found = kinds(&path);
        assert!(found.iter().any(|(n, _)| n.contains(tag)), "{file}: {found:?}");
    }
}

/// A TIFF whose first placeholder `DEADBEEF` points to a further directory behind all others.
fn pointing(mut bytes: Vec<u8>, fields: &[(u16, u16, &[u8])]) -> Vec<u8> {
    let place = 0xDEAD_BEEF_u32.to_le_bytes();
    let at = bytes.windows(4).position(|w| w == place).unwrap();
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    let mut entries = Vec::new();
    for (tag, kind, value) in fields {
        let mut own = value.to_vec();
        if own.len() > 4 {
            own = (bytes.len() as u32).to_le_bytes().to_vec();
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(2), 0);
        }
        own.resize(4, 0);
        let size = if *kind == SHORT { 2 } else { 1 };
        entries.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
        entries.extend(((value.len() / size) as u32).to_le_bytes());
        entries.extend(own);
    }
    let start = (bytes.len() as u32).to_le_bytes();
    bytes[at..at + 4].copy_from_slice(&start);
    bytes.extend((fields.len() as u16).to_le_bytes());
    bytes.extend(entries);
    bytes.extend([0; 4]);
    bytes
}

/// A colour profile with one text.
fn profile(text: &str) -> Vec<u8> {
    let value = [b"text\0\0\0\0", text.as_bytes()].concat();
    let (one, at, len) = (1_u32, 144_u32, value.len() as u32);
    let head = [&one.to_be_bytes()[..], b"desc", &at.to_be_bytes(), &len.to_be_bytes()].concat();
    [vec![0; 128], head, value].concat()
}

fn deflated(text: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

/// A text by itself in a file: it is found, and a copy is without it.
fn found_and_gone(drawn: &Drawn, file: &str, bytes: &[u8], name: &str, kind: Personal) {
    let path = drawn.file(file, bytes);
    let found = kinds(&path);
    assert!(found.contains(&(name.to_owned(), kind)), "{file}, {name}: {found:?}");
    let out = drawn.dir.path().join(format!("copy-of-{file}"));
    deidentify(&path, &out, &OpenOptions { mpp: None, ..options() })
        .unwrap_or_else(|e| panic!("{file}: {e}"));
    assert_eq!(kinds(&out), [], "{file}");
    let copy = std::fs::read(&out).unwrap();
    assert!(!copy.windows(4).any(|w| w == b"Jane"), "{file}");
}

/// Each kind of place of a TIFF that holds a text.
#[test]
fn every_kind_of_text_is_found_in_a_file_and_gone_from_its_copy() {
    let drawn = Drawn::new();
    let page = || Page::tissue((64, 64), 30, Some(64));
    let below = |tag, fields: &[(u16, u16, &[u8])]| {
        let place = 0xDEAD_BEEF_u32.to_le_bytes();
        pointing(tiff(&[page().with(tag, LONG, &place)]), fields)
    };
    let jane = b"Jane Doe\0";
    let experimenter = ome(&[("scan", 64, 64, r#"SizeZ="1" PhysicalSizeX="0.25""#)])
        .replace("<OME>", r#"<OME><Experimenter ID="E:0" FirstName="Jane" LastName="Doe"/>"#);
    let sub: [(u16, u16, &[u8]); 3] =
        [(256, SHORT, &[64, 0]), (257, SHORT, &[8, 0]), (270, ASCII, jane)];
    let icc = profile("scanned for Jane Doe");
    for (file, bytes, name, kind) in [
        (
            "e.tif",
            below(34665, &[(42032, ASCII, jane)]),
            "tiff.exif.CameraOwnerName",
            Personal::Person,
        ),
        (
            "n.tif",
            below(34665, &[(42033, ASCII, jane)]),
            "tiff.exif.BodySerialNumber",
            Personal::Device,
        ),
        ("l.tif", below(34665, &[(42036, ASCII, jane)]), "tiff.exif.LensModel", Personal::Text),
        ("w.tif", tiff(&[page().text(305, "for Jane Doe")]), "tiff.Software", Personal::Text),
        ("r.tif", tiff(&[page().text(18246, "for Jane Doe")]), "tiff.Rating", Personal::Text),
        (
            "u.tif",
            below(34665, &[(37510, 7, b"ASCII\0\0\0Jane Doe")]),
            "tiff.exif.UserComment",
            Personal::Text,
        ),
        (
            "g.tif",
            below(34853, &[(1, ASCII, b"N\0"), (27, 7, jane)]),
            "tiff.gps.(1)",
            Personal::Place,
        ),
        ("s.tif", below(330, &sub), "tiff.sub[0].ImageDescription", Personal::Text),
        ("i.tif", tiff(&[page().with(34675, 7, &icc)]), "tiff.ICCProfile.desc", Personal::Text),
        (
            "o.ome.tif",
            tiff(&[page().text(270, &experimenter)]),
            "tiff.ImageDescription",
            Personal::Text,
        ),
        ("8.tif", tiff(&[page().with(42032, 129, jane)]), "tiff.CameraOwnerName", Personal::Person),
        ("6.tif", tiff(&[page().with(65001, 6, jane)]), "tiff.(65001)", Personal::Text),
    ] {
        found_and_gone(&drawn, file, &bytes, name, kind);
    }
}

/// Each kind of place of a JPEG or PNG that holds a text.
#[test]
fn every_kind_of_text_is_found_in_a_picture_and_gone_from_its_copy() {
    let drawn = Drawn::new();
    let jane = b"Jane Doe\0";
    let icc = profile("scanned for Jane Doe");
    let jpeg_icc = [&b"ICC_PROFILE\0\x01\x01"[..], &icc].concat();
    let zipped = |key: &[u8], text: &[u8]| [key, b"\0\0", &deflated(text)].concat();
    let itxt = [&b"Remark\0\x01\0en\0\0"[..], &deflated(b"for Jane Doe")].concat();
    let behind = |name: &str| [&std::fs::read(golden(name)).unwrap()[..], b"for Jane Doe"].concat();
    for (file, bytes, name, kind) in [
        ("i.jpg", jpeg_with(0xE2, &jpeg_icc), "jpeg.ICCProfile.desc", Personal::Text),
        ("b.jpg", behind("flat_444.jpg"), "jpeg.after the end", Personal::Text),
        (
            "a.jpg",
            jpeg_with(0xEE, &[ADOBE, b"for Jane Doe"].concat()),
            "jpeg.APP14",
            Personal::Text,
        ),
        (
            "j.jpg",
            jpeg_with(0xE0, &[JFIF, b"\0\0for Jane Doe"].concat()),
            "jpeg.APP0",
            Personal::Text,
        ),
        (
            "p.jpg",
            jpeg_with(0xE0, &[JFIF, b"\x01\x01Jan"].concat()),
            "jpeg.JFIF",
            Personal::Picture,
        ),
        (
            "8.jpg",
            jpeg_with(0xE1, &[b"Exif\0\0", &exif_text(42032, 129, jane)[..]].concat()),
            "jpeg.exif.CameraOwnerName",
            Personal::Person,
        ),
        (
            "6.png",
            png_with(b"eXIf", &exif_text(65001, 6, jane), false),
            "png.exif.(65001)",
            Personal::Text,
        ),
        (
            "w.png",
            png_with(b"tEXt", b"Software\0for Jane Doe", false),
            "png.Software",
            Personal::Text,
        ),
        (
            "i.png",
            png_with(b"iCCP", &zipped(b"icc", &icc), false),
            "png.ICCProfile.desc",
            Personal::Text,
        ),
        (
            "z.png",
            png_with(b"zTXt", &zipped(b"Remark", b"for Jane Doe"), false),
            "png.Remark",
            Personal::Text,
        ),
        ("t.png", png_with(b"iTXt", &itxt, true), "png.Remark", Personal::Text),
        ("b.png", behind("flat.png"), "png.after the end", Personal::Text),
    ] {
        found_and_gone(&drawn, file, &bytes, name, kind);
    }
}

/// Segments that no decoder reads, keywords that are not registered, and a comment without the code of its characters.
#[test]
fn texts_in_unknown_segments_keywords_and_codes_are_found_and_gone_from_the_copy() {
    let drawn = Drawn::new();
    let comment = pointing(
        tiff(&[Page::tissue((64, 64), 30, Some(64)).with(
            34665,
            LONG,
            &0xDEAD_BEEF_u32.to_le_bytes(),
        )]),
        &[(37510, 7, b"Jane Doe")],
    );
    for (file, bytes, name) in [
        ("u.tif", comment, "tiff.exif.UserComment"),
        ("02.jpg", jpeg_with(0x02, b"for Jane Doe"), "jpeg.segment 02"),
        ("c8.jpg", jpeg_with(0xC8, b"for Jane Doe"), "jpeg.segment C8"),
        ("cc.jpg", jpeg_with(0xCC, b"for Jane Doe"), "jpeg.segment CC"),
        ("f0.jpg", jpeg_with(0xF0, b"for Jane Doe"), "jpeg.segment F0"),
        ("k.png", png_with(b"tEXt", b"Jane Doe\0x", false), "png.Jane Doe"),
        ("e.png", png_with(b"tEXt", b"Jane Doe\0", false), "png.Jane Doe"),
    ] {
        found_and_gone(&drawn, file, &bytes, name, Personal::Text);
    }
    // What a copy keeps without a look is named.
    for picture in ["flat_444.jpg", "flat.png"] {
        let about = open(&golden(picture)).unwrap().inventory().unwrap();
        assert_eq!(about.findings, [], "{picture}");
        for words in ["among the coded pixels", "the name of the file"] {
            assert!(about.not_looked_at.iter().any(|l| l.contains(words)), "{picture}: {about:?}");
        }
    }
}

/// Names in letters that are not Latin, in places for bytes of any kind.
#[test]
fn names_in_any_script_are_found_and_gone_from_the_copy() {
    let drawn = Drawn::new();
    for (i, text) in ["Иванов Иван", "李小龙", "Παππάς"].into_iter().enumerate()
    {
        let utf16 = |order: fn(u16) -> [u8; 2]| {
            text.encode_utf16().chain([0]).flat_map(order).collect::<Vec<u8>>()
        };
        let all = [text.as_bytes().to_vec(), utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)];
        for (k, bytes) in all.iter().enumerate() {
            let page = |kind| Page::tissue((64, 64), 30, Some(64)).with(65001, kind, bytes);
            let file = |end: &str| format!("{i}-{k}{end}");
            for (file, whole, name) in [
                (file("7.tif"), tiff(&[page(7)]), "tiff.(65001)"),
                (file("1.tif"), tiff(&[page(1)]), "tiff.(65001)"),
                (file(".png"), png_with(b"prVt", bytes, false), "png.prVt"),
                (file("c.png"), png_with(b"cICP", bytes, false), "png.cICP"),
                (file(".jpg"), jpeg_with(0xE5, bytes), "jpeg.APP5"),
            ] {
                let held = |b: &[u8]| b.windows(bytes.len()).any(|w| w == bytes);
                assert!(held(&whole), "{file}");
                found_and_gone(&drawn, &file, &whole, name, Personal::Text);
                let copy = drawn.dir.path().join(format!("copy-of-{file}"));
                assert!(!held(&std::fs::read(copy).unwrap()), "{file}");
            }
        }
    }
    // A code page: as nobody knows which, such a text is neither blank nor a product.
    let name = b"\xC8\xE2\xE0\xED\xEE\xE2 \xC8.\0";
    let page = |tag| tiff(&[Page::tissue((64, 64), 30, Some(64)).with(tag, ASCII, name)]);
    found_and_gone(&drawn, "artist.tif", &page(315), "tiff.Artist", Personal::Person);
    for tag in [305, 65000] {
        let name = if tag == 305 { "tiff.Software" } else { "tiff.(65000)" };
        let file = format!("{tag}.tif");
        found_and_gone(&drawn, &file, &page(tag), name, Personal::UnknownCodePage);
    }
}

/// The same in fields for bytes of any kind: KOI8-R, Shift-JIS, GBK and Latin-1.
#[test]
fn names_in_code_pages_are_found_and_gone_from_the_copy() {
    let drawn = Drawn::new();
    for (i, text) in [
        &b"\xE9\xD7\xC1\xCE\xCF\xD7"[..],
        b"\x8ER\x93c \x91\xBE\x98Y",
        b"\xC0\xEE\xD0\xA1\xC1\xFA",
        b"Jos\xE9",
    ]
    .into_iter()
    .enumerate()
    {
        let page = |tag, kind| tiff(&[Page::tissue((64, 64), 30, Some(64)).with(tag, kind, text)]);
        let file = |end: &str| format!("{i}{end}");
        for (file, whole, name) in [
            (file("7.tif"), page(65001, 7), "tiff.(65001)"),
            (file("c.tif"), page(301, 1), "tiff.TransferFunction"),
            (file(".png"), png_with(b"prVt", text, false), "png.prVt"),
            (file("c.png"), png_with(b"cICP", text, false), "png.cICP"),
            (file(".jpg"), jpeg_with(0xE5, text), "jpeg.APP5"),
        ] {
            found_and_gone(&drawn, &file, &whole, name, Personal::UnknownCodePage);
            let copy = std::fs::read(drawn.dir.path().join(format!("copy-of-{file}"))).unwrap();
            assert!(!copy.windows(text.len()).any(|w| w == text), "{file}");
        }
    }
}

/// Directories behind one of `SubIFDs`, and a tag that a directory has twice.
#[test]
fn chains_of_sub_directories_and_repeated_tags_are_looked_at() {
    let drawn = Drawn::new();
    let page = || Page::tissue((64, 64), 30, Some(64));
    let place = 0xDEAD_BEEF_u32.to_le_bytes();
    let clean: [(u16, u16, &[u8]); 2] = [(256, SHORT, &[64, 0]), (257, SHORT, &[8, 0])];
    let named = [clean[0], clean[1], (270, ASCII, &b"Jane Doe\0"[..])];
    let image = [clean[0], clean[1], (273, SHORT, &[8, 0]), (279, SHORT, &[8, 0])];
    let last = |b: &[u8]| b.len() - 4;
    let chain = |all: &[&[(u16, u16, &[u8])]]| {
        let first = tiff(&[page().with(330, LONG, &place)]);
        all.iter().fold(first, |mut b, fields| {
            let end = last(&b);
            if !b.windows(4).any(|w| w == place) {
                b[end..].copy_from_slice(&place);
            }
            pointing(b, fields)
        })
    };
    let of_another_page = |fields: &[(u16, u16, &[u8])]| {
        let thumbnail = Page::tissue((16, 16), 120, None).subfile(1).with(330, LONG, &place);
        pointing(tiff(&[page(), thumbnail]), fields)
    };
    let jane = b"Jane Doe\0";
    let icc = [profile("sRGB IEC61966-2.1"), profile("sRGB, Jane Doe")];
    let aperio = page().text(270, &described(64)).text(270, "for Jane Doe");
    for (file, bytes, name, kind) in [
        ("2.tif", chain(&[&clean, &named]), "tiff.sub[0].next.ImageDescription", Personal::Text),
        (
            "3.tif",
            chain(&[&clean, &clean, &named]),
            "tiff.sub[0].next.next.ImageDescription",
            Personal::Text,
        ),
        ("i.tif", chain(&[&clean, &image]), "tiff.sub[0].next", Personal::Picture),
        ("o.tif", of_another_page(&image), "tiff[1].sub[0]", Personal::Picture),
        (
            "t.tif",
            tiff(&[page().text(270, "Aperio Image Library v11").with(270, ASCII, jane)]),
            "tiff.ImageDescription",
            Personal::Text,
        ),
        ("t.svs", tiff(&[aperio]), "tiff.ImageDescription", Personal::Text),
        (
            "r.tif",
            pointing(
                pointing(tiff(&[page().with(330, LONG, &place).with(330, LONG, &place)]), &clean),
                &named,
            ),
            "tiff.sub[1].ImageDescription",
            Personal::Text,
        ),
        (
            "p.tif",
            tiff(&[page().with(34675, 7, &icc[0]).with(34675, 7, &icc[1])]),
            "tiff.ICCProfile.desc",
            Personal::Text,
        ),
        ("j.tif", tiff(&[page().with(347, 7, jane)]), "tiff.JPEGTables", Personal::Text),
    ] {
        found_and_gone(&drawn, file, &bytes, name, kind);
    }
    // A chain that returns to its start ends there; one that leads out of the file cannot be searched.
    let mut circle = chain(&[&clean, &named]);
    let end = last(&circle);
    let (first, out) = (circle.len() as u32 - 6 - 36, u32::MAX - 1);
    circle[end..].copy_from_slice(&first.to_le_bytes());
    found_and_gone(
        &drawn,
        "circle.tif",
        &circle,
        "tiff.sub[0].next.ImageDescription",
        Personal::Text,
    );
    circle[end..].copy_from_slice(&out.to_le_bytes());
    let path = drawn.file("out.tif", &circle);
    let e = open(&path).unwrap().inventory().unwrap_err();
    assert!(e.to_string().contains("beyond the end of the file"), "{e}");
}

/// A PNG may be followed by more than any memory holds; its chunks are copied in pieces.
#[test]
fn a_png_with_a_sparse_tail_is_copied_and_one_that_is_cut_is_refused() {
    let drawn = Drawn::new();
    let plain = std::fs::read(golden("flat.png")).unwrap();
    let path = drawn.file("sparse.png", &plain);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    if file.set_len(1 << 40).is_err() {
        eprintln!("skipped: the system makes no sparse file of 1 TiB");
        return;
    }
    assert_eq!(kinds(&path), [("png.after the end".to_owned(), Personal::Text)]);
    let out = drawn.dir.path().join("copy.png");
    deidentify(&path, &out, &options()).unwrap();
    assert_eq!(std::fs::metadata(&out).unwrap().len(), plain.len() as u64);
    same_pixels(&open(&golden("flat.png")).unwrap(), &open(&out).unwrap());
    // A chunk that claims more than there is.
    let mut long = png_with(b"tRNS", &[0; 6], true);
    let at = long.windows(4).position(|w| w == b"tRNS").unwrap();
    long[at - 4..at].copy_from_slice(&[0x7F, 0, 0, 0]);
    let path = drawn.file("cut.png", &long);
    let e = deidentify(&path, &drawn.dir.path().join("cut-copy.png"), &options()).unwrap_err();
    assert!(matches!(e, DeidentifyError::Slide(SlideError::Malformed { .. })), "{e}");
    assert!(e.to_string().contains("claims 2130706432 bytes"), "{e}");
}

/// Bytes are text where somebody wrote in them, in a field of numbers, too.
#[test]
fn text_in_a_field_of_numbers_is_found_and_left_out() {
    let drawn = Drawn::new();
    for (tag, kind) in [(301, 1), (301, 6), (301, 129), (332, 7), (532, 7)] {
        let page = Page::tissue((256, 256), 4, Some(256)).with(tag, kind, b"Jane Doe S21-1234");
        let path = drawn.tiff("bytes.tif", &[page]);
        assert!(matches!(&kinds(&path)[..], [(_, Personal::Text)]), "{tag}: {:?}", kinds(&path));
        let out = drawn.dir.path().join(format!("copy-{tag}-{kind}.tif"));
        deidentify(&path, &out, &options()).unwrap();
        assert!(!std::fs::read(&out).unwrap().windows(4).any(|w| w == b"Jane"), "{tag}");
        same_pixels(&open(&path).unwrap(), &open(&out).unwrap());
    }
}

/// Tiles of JPEG 2000 have comments of their own: that of each tile is looked at, and a copy has none of them.
#[test]
fn comments_of_jpeg_2000_tiles_are_found_named_and_removed() {
    let drawn = Drawn::new();
    let encoder = b"Created by OpenJPEG version 2.5.4";
    let person = b"scanned for Jane Doe, S21-1234   ";
    let plain = std::fs::read(golden("svs_jp2k_33005.svs")).unwrap();
    let places: Vec<usize> =
        (0..plain.len()).filter(|i| plain[*i..].starts_with(encoder)).collect();
    assert!(places.len() > 2, "{places:?}");
    let with = |at: &[usize]| {
        let mut bytes = plain.clone();
        at.iter().for_each(|at| bytes[*at..at + person.len()].copy_from_slice(person));
        drawn.file("jp2k.svs", &bytes)
    };
    let about = open(&with(&[])).unwrap().inventory().unwrap();
    let all = slide::Inventory {
        findings: about.findings.clone(),
        looked_at: vec![
            "2 text fields of 2 directories, private tags, EXIF, GPS, XMP, IPTC and ICC among them"
                .into(),
            format!(
                "JPEG and JPEG 2000 comments in the tables and in the headers of all {} tiles",
                places.len()
            ),
            "7 properties".into(),
            "names of 0 associated images".into(),
        ],
        not_looked_at: vec![
            "what follows the header of a tile".into(),
            "numbers in tags that a copy leaves out, and bytes no directory points to".into(),
            "the pixels of the slide and of its associated images".into(),
            "the name of the file".into(),
        ],
    };
    assert_eq!(about, all);
    // The scanner is known of the file as it is.
    assert!(about.findings.iter().all(|f| f.kind == Personal::Device), "{about:?}");
    let before = kinds(&golden("svs_jp2k_33005.svs"));
    for one in [0, places.len() / 2, places.len() - 1] {
        let mut found = kinds(&with(&places[one..=one]));
        found.retain(|f| !before.contains(f));
        let [(name, Personal::Text)] = &found[..] else { panic!("{one}: {found:?}") };
        assert!(name.ends_with(".jpeg2000.Comment"), "{name}");
    }
    // The data of a tile are in parts with headers of their own.
    for which in [0, 2] {
        let change = |tile: &[u8]| with_comment_of_a_part(tile, &person[..]);
        let path = drawn.file("part.svs", &with_tile(&plain, which, change));
        let mut found = kinds(&path);
        found.retain(|f| !before.contains(f));
        assert!(matches!(&found[..], [(_, Personal::Text)]), "{which}: {found:?}");
        let out = drawn.dir.path().join(format!("part-{which}.svs"));
        deidentify(&path, &out, &options()).unwrap();
        assert!(!std::fs::read(&out).unwrap().windows(4).any(|w| w == b"Jane"), "{which}");
        same_pixels(&open(&golden("svs_jp2k_33005.svs")).unwrap(), &open(&out).unwrap());
    }
    for (i, at) in [&places[..1], &places[places.len() - 1..], &places[..]].into_iter().enumerate()
    {
        let path = with(at);
        let out = drawn.dir.path().join(format!("copy-{i}.svs"));
        let done = deidentify(&path, &out, &options()).unwrap();
        let copy = std::fs::read(&out).unwrap();
        assert!(!copy.windows(4).any(|w| w == b"Jane"), "{i}");
        same_pixels(&open(&golden("svs_jp2k_33005.svs")).unwrap(), &open(&out).unwrap());
        assert_eq!(done.not_looked_at, all.not_looked_at, "{i}");
    }
}

/// A TIFF whose tile `which` of the first directory is replaced by another one, which follows the file.
fn with_tile(plain: &[u8], which: usize, change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut b = plain.to_vec();
    let word = |b: &[u8], at: usize, n: usize| {
        b[at..at + n].iter().rev().fold(0_usize, |v, x| v << 8 | usize::from(*x))
    };
    let ifd = word(&b, 4, 4);
    let value = |b: &[u8], tag: usize| {
        let entries = (0..word(b, ifd, 2)).map(|i| ifd + 2 + 12 * i);
        let at = entries.into_iter().find(|at| word(b, *at, 2) == tag).unwrap();
        assert_eq!(word(b, at + 2, 2), usize::from(LONG));
        if word(b, at + 4, 4) > 1 { word(b, at + 8, 4) + 4 * which } else { at + 8 }
    };
    let (place, count) = (value(&b, 324), value(&b, 325));
    let (at, n) = (word(&b, place, 4), word(&b, count, 4));
    let tile = change(&plain[at..at + n]);
    b[place..place + 4].copy_from_slice(&(plain.len() as u32).to_le_bytes());
    b[count..count + 4].copy_from_slice(&(tile.len() as u32).to_le_bytes());
    b[at..at + n].fill(0);
    b.extend(tile);
    b
}

/// A comment or application data in the header of any tile, and what is hidden behind a tile's end.
#[test]
fn texts_in_the_jpeg_of_any_tile_are_found_and_gone_from_the_copy() {
    let drawn = Drawn::new();
    let whole = golden("svs_jpeg_420.svs");
    let plain = std::fs::read(&whole).unwrap();
    let segment = |marker: u8, body: &[u8], tile: &[u8]| {
        let len = (body.len() as u16 + 2).to_be_bytes();
        [&tile[..2], &[0xFF, marker], &len, body, &tile[2..]].concat()
    };
    let long = [&[b'.'; 3000][..], b"for Jane Doe"].concat();
    let before = kinds(&whole);
    for (i, (which, marker, body, name)) in [
        (1, 0xFE, &b"for Jane Doe"[..], Some("tiff.jpeg.Comment")),
        (2, 0xE5, b"for Jane Doe", Some("tiff.jpeg.APP5")),
        (3, 0xFE, &long, Some("tiff.jpeg.Comment")),
        (3, 0, b"for Jane Doe", None),
    ]
    .into_iter()
    .enumerate()
    {
        let bytes = with_tile(&plain, which, |tile| match name {
            Some(_) => segment(marker, body, tile),
            None => [tile, body].concat(),
        });
        let path = drawn.file(&format!("tile-{i}.svs"), &bytes);
        let mut expected = before.clone();
        expected.extend(name.map(|name| (name.to_owned(), Personal::Text)));
        let mut found = kinds(&path);
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        found.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(found, expected, "{i}");
        let out = drawn.dir.path().join(format!("copy-of-tile-{i}.svs"));
        deidentify(&path, &out, &options()).unwrap();
        assert!(!std::fs::read(&out).unwrap().windows(4).any(|w| w == b"Jane"), "{i}");
        same_pixels(&open(&whole).unwrap(), &open(&out).unwrap());
    }
    // Behind 120 kB of other segments.
    let bytes = with_tile(&plain, 2, |tile| {
        let named = segment(0xFE, b"for Jane Doe", tile);
        let filled = segment(0xE5, &[0; 60_000], &named);
        segment(0xE5, &[0; 60_000], &filled)
    });
    let found = kinds(&drawn.file("far.svs", &bytes));
    assert!(found.contains(&("tiff.jpeg.Comment".to_owned(), Personal::Text)), "{found:?}");
}

fn same_pixels(a: &Slide, b: &Slide) {
    assert_eq!(a.levels().len(), b.levels().len());
    for (i, l) in a.levels().iter().enumerate() {
        let (w, h) = (l.width as usize, l.height as usize);
        let whole = |s: &Slide| s.read_level(i, Rect::new(0, 0, w, h)).unwrap();
        assert!(whole(a) == whole(b), "level {i}");
    }
}

#[test]
fn a_copy_has_the_pixels_and_not_the_persons() {
    let drawn = Drawn::new();
    let [base, level] = levels();
    let text = format!("{SVS}|User = Jane|Date = 01/02/03|Filename = S21-1234|Barcode = 17");
    let path = drawn.tiff(
        "case.svs",
        &[
            base.text(270, &text).text(315, "Dr. Doe").text(65000, "private"),
            Page::tissue((128, 128), 16, None)
                .text(270, "Aperio Image Library v1\r\n2048x2048 -> 128x128"),
            level.text(270, &text),
            Page::tissue((70, 60), 1, None).text(270, "Aperio Image Library\nlabel 70x60"),
            Page::tissue((120, 60), 1, None).text(270, "Aperio Image Library\nmacro 120x60"),
        ],
    );
    let mut files = vec![path];
    files.extend(
        [
            "svs_jpeg_420.svs",
            "svs_jp2k_33003.svs",
            "jpeg_420_big.tif",
            "none_big_endian.tif",
            "planar.tif",
            "strips_jpeg_tables.tif",
            "pyramid.ome.tif",
            "grey.tif",
        ]
        .map(golden),
    );
    files.push(drawn.file("exif.jpg", &jpeg_with(0xE1, &[b"Exif\0\0", &exif(1)[..]].concat())));
    files.push(drawn.file("text.png", &png_with(b"tEXt", b"Author\0Jane Doe", false)));
    files.extend(testkit::data("slides/CMU-1-Small-Region.svs"));
    files.extend(testkit::data("hostile/reports/gt450.svs"));
    for (i, path) in files.iter().enumerate() {
        let out = drawn.dir.path().join(format!("copy-{i}"));
        let options = OpenOptions { mpp: None, ..options() };
        let slide = Slide::open_with(path, &options).unwrap();
        if slide.vendor() == "flat" && slide.format() == "generic-tiff" {
            assert_eq!(slide.levels().len(), 1);
        }
        let done =
            deidentify(path, &out, &options).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let copy = Slide::open_with(&out, &options).unwrap();
        same_pixels(&slide, &copy);
        assert_eq!(copy.inventory().unwrap().findings, [], "{}", path.display());
        assert!(done.tiles > 0 && done.sha256.len() == 64);
        let bytes = std::fs::read(&out).unwrap();
        for word in [&b"Jane"[..], b"Dr. Doe", b"S21-1234"] {
            assert!(!bytes.windows(word.len()).any(|w| w == word), "{}", path.display());
        }
        if i == 0 {
            assert_eq!(names(&copy), ["thumbnail"]);
            assert_eq!(copy.resolution().unwrap().x.get(), 0.25);
            for name in ["aperio.User", "image label", "image macro", "tiff.Artist"] {
                assert!(done.removed.iter().any(|r| r == name), "{name}: {:?}", done.removed);
            }
        }
        let again = deidentify(path, &out, &options).unwrap_err();
        assert!(matches!(again, DeidentifyError::Exists { .. }), "{again}");
    }
    if slide::openslide_version().is_ok() {
        let options = OpenOptions { force_openslide: true, ..OpenOptions::default() };
        let theirs = Slide::open_with(drawn.dir.path().join("copy-0"), &options).unwrap();
        assert_eq!((theirs.vendor(), theirs.dimensions()), ("aperio", (2048, 2048)));
        assert_eq!(names(&theirs), ["thumbnail"]);
    }
}

/// A DICOM file of `make_dicom.py` whose first frame is changed; the table of frames is left empty.
fn dicom_with(case: &str, change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dicom");
    let b = std::fs::read(folder.join(case).join("a.dcm")).unwrap();
    let pixels = b.windows(4).position(|w| w == [0xE0, 0x7F, 0x10, 0x00]).unwrap() + 12;
    let long = |at: usize| u32::from_le_bytes(b[at..at + 4].try_into().unwrap()) as usize;
    let first = pixels + 8 + long(pixels + 4);
    let (frame, n) = (first + 8, long(first + 4));
    let mut changed = change(&b[frame..frame + n]);
    changed.resize(changed.len().next_multiple_of(2), 0);
    let item = [0xFE, 0xFF, 0x00, 0xE0];
    let length = (changed.len() as u32).to_le_bytes();
    [&b[..pixels], &item, &[0; 4], &item, &length, &changed, &b[frame + n..]].concat()
}

/// A frame with a comment in its header.
fn with_comment(frame: &[u8], text: &[u8]) -> Vec<u8> {
    let length = |n: usize| (n as u16).to_be_bytes();
    let (at, comment) = match frame[1] {
        0xD8 => (2, [&[0xFF, 0xFE][..], &length(text.len() + 2), text].concat()),
        _ => {
            let size = usize::from(u16::from_be_bytes([frame[4], frame[5]]));
            (4 + size, [&[0xFF, 0x64][..], &length(text.len() + 4), &[0, 1], text].concat())
        }
    };
    [&frame[..at], &comment, &frame[at..]].concat()
}

/// A codestream of JPEG 2000 with a comment in the header of its first part, whose length counts it.
fn with_comment_of_a_part(stream: &[u8], text: &[u8]) -> Vec<u8> {
    let part = stream.windows(2).position(|w| w == [0xFF, 0x90]).unwrap();
    let length = ((text.len() + 4) as u16).to_be_bytes();
    let comment = [&[0xFF, 0x64][..], &length, &[0, 1], text].concat();
    let (head, rest) = stream.split_at(part + 12);
    let mut head = head.to_vec();
    let stated = u32::from_be_bytes([6, 7, 8, 9].map(|i| head[part + i]));
    if stated > 0 {
        let new = (stated + comment.len() as u32).to_be_bytes();
        head[part + 6..part + 10].copy_from_slice(&new);
    }
    [&head[..], &comment, rest].concat()
}

/// A codestream of JPEG 2000 as the file that JP2 is, with a text in a box of XML and in one of its own kind.
fn with_boxes(stream: &[u8], text: &[u8]) -> Vec<u8> {
    let boxed = |kind: &[u8], body: &[u8]| {
        [&(8 + body.len() as u32).to_be_bytes()[..], kind, body].concat()
    };
    // The image's size is that of the grid, whose corner is the origin.
    let size = [&stream[12..16], &stream[8..12]].concat();
    let header = [
        boxed(b"ihdr", &[&size[..], &[0, 3, 7, 7, 0, 0]].concat()),
        boxed(b"colr", &[1, 0, 0, 0, 0, 0, 16]),
    ];
    [
        b"\0\0\0\x0CjP  \r\n\x87\n".to_vec(),
        boxed(b"ftyp", b"jp2 \0\0\0\0jp2 "),
        boxed(b"jp2h", &header.concat()),
        boxed(b"xml ", text),
        boxed(b"jp2c", &with_comment(stream, text)),
        boxed(b"uuid", &[&[7; 16], text].concat()),
    ]
    .concat()
}

/// A name in a code page is one, though none of its letters can be read; the preamble holds any bytes.
#[test]
fn names_in_other_scripts_are_found_in_dicom_and_gone_from_the_copy() {
    let drawn = Drawn::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dicom/jpeg_rgb");
    let mut b = std::fs::read(folder.join("a.dcm")).unwrap();
    let name = b"\xC8\xE2\xE0\xED\xEE\xE2^\xC8";
    let at = b.windows(8).position(|w| w == b"Doe^Jane").unwrap();
    b[at..at + 8].copy_from_slice(name);
    let utf16: Vec<u8> = "Иванов Иван".encode_utf16().flat_map(u16::to_le_bytes).collect();
    b[..utf16.len()].copy_from_slice(&utf16);
    let path = drawn.file("a.dcm", &b);
    let found = kinds(&path);
    for (name, kind) in
        [("dicom.PatientName", Personal::Person), ("dicom.preamble", Personal::Text)]
    {
        assert!(found.contains(&(name.to_owned(), kind)), "{name}: {found:?}");
    }
    let out = drawn.dir.path().join("copy");
    let done = deidentify(&path, &out, &options()).unwrap();
    let copy = std::fs::read(&done.output[0]).unwrap();
    for text in [&name[..], &utf16] {
        assert!(!copy.windows(text.len()).any(|w| w == text), "{text:?}");
    }
}

#[test]
fn comments_in_frames_of_dicom_are_found_and_blanked() {
    let drawn = Drawn::new();
    let text = b"Jane Doe, S21-1234";
    type Change = fn(&[u8], &[u8]) -> Vec<u8>;
    let cases: [(&str, &str, Change, &[&str]); 4] = [
        ("jpeg", "jpeg_rgb", with_comment, &["dicom.jpeg.Comment"]),
        ("jpeg2000", "jp2k_rgb", with_comment, &["dicom.jpeg2000.Comment"]),
        ("part", "jp2k_rgb", with_comment_of_a_part, &["dicom.jpeg2000.Comment"]),
        (
            "jp2",
            "jp2k_rgb",
            with_boxes,
            &["dicom.jpeg2000.Comment", "dicom.jpeg2000.xml", "dicom.jpeg2000.uuid"],
        ),
    ];
    for (case, golden, change, names) in cases {
        let folder = drawn.dir.path().join(case);
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("a.dcm");
        std::fs::write(&path, dicom_with(golden, |frame| change(frame, text))).unwrap();
        let slide = open(&path).unwrap();
        let found = slide.inventory().unwrap();
        for name in names {
            assert!(found.findings.iter().any(|f| f.name == *name), "{case}: {:?}", found.findings);
        }
        assert!(found.looked_at.iter().any(|l| l.contains("comments")), "{:?}", found.looked_at);
        let out = drawn.dir.path().join(format!("{case}-copy"));
        let done = deidentify(&path, &out, &options()).unwrap_or_else(|e| panic!("{case}: {e}"));
        for name in names {
            assert!(done.removed.iter().any(|r| r == name), "{case}: {:?}", done.removed);
        }
        let copy = open(&done.output[0]).unwrap();
        same_pixels(&slide, &copy);
        assert_eq!(copy.inventory().unwrap().findings, [], "{case}");
        let bytes = std::fs::read(&done.output[0]).unwrap();
        assert!(!bytes.windows(4).any(|w| w == b"Jane" || w == b"S21-"), "{case}");
    }
}

/// People, places, times and specimens in the files of `make_dicom.py`.
const PERSONS: [&str; 7] =
    ["Doe^Jane", "19500607", "Roe^Richard", "Nowhere General", "A-99", "S20-17", "20200102"];

#[test]
fn a_copy_of_a_dicom_slide_has_new_identifiers_and_no_label() {
    let drawn = Drawn::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dicom");
    for (case, file) in [("series", "a.dcm"), ("implicit", "a.dcm"), ("parts", "")] {
        let folder = folder.join(case);
        let first = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).min().unwrap();
        let path = if file.is_empty() { first } else { folder.join(file) };
        let out = drawn.dir.path().join(case);
        let slide = open(&path).unwrap();
        let done = deidentify(&path, &out, &options())
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let copy = open(&done.output[0]).unwrap();
        same_pixels(&slide, &copy);
        assert_eq!(copy.inventory().unwrap().findings, [], "{case}");
        // Not one of the files has the words of the persons that its original has.
        let words = |path: &Path| {
            let bytes = std::fs::read(path).unwrap();
            let held = |w: &&str| bytes.windows(w.len()).any(|b| b == w.as_bytes());
            PERSONS.into_iter().filter(held).collect::<Vec<_>>()
        };
        let files = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path());
        let before: std::collections::BTreeSet<&str> = files.flat_map(|p| words(&p)).collect();
        assert!(case != "series" || before.len() == PERSONS.len(), "{case}: {before:?}");
        let copies: Vec<PathBuf> =
            std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(copies.len(), done.output.len(), "{case}");
        for path in &copies {
            assert_eq!(words(path), [""; 0], "{}", path.display());
        }
        let uid = |s: &Slide, name: &str| s.properties()[&format!("dicom.{name}")].clone();
        assert_ne!(uid(&slide, "SeriesInstanceUID"), uid(&copy, "SeriesInstanceUID"));
        assert_eq!(uid(&slide, "SOPClassUID"), uid(&copy, "SOPClassUID"));
        assert_eq!(uid(&copy, "PatientIdentityRemoved"), "YES");
        assert!(copy.associated_images().iter().all(|a| a.name == "thumbnail"), "{case}");
    }
}
