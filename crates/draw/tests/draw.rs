//! Drawn slides: the same from every side, and readable as a slide.

use base::progress::{Listener, Silent};
use draw::{Container, Kind, Layout, Spec, SpecError, draw, write};
use mitosis::{Mpp, Rect};
use slide::Slide;

fn layout(w: u32, h: u32, seed: u64, figures: usize) -> Layout {
    Layout::new(Spec::new(w, h, seed, figures).unwrap()).unwrap()
}

/// The progress that was reported.
#[derive(Debug, Default)]
struct Steps(Vec<(u64, u64)>);

impl Listener for Steps {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, done: u64, total: u64) {
        self.0.push((done, total));
    }
    fn finish(&mut self) {}
    fn report(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
}

#[test]
fn any_rectangle_is_the_same_pixels() {
    let layout = layout(1200, 900, 11, 3);
    let whole = draw(&layout, Rect::new(300, 200, 400, 300));
    for (x, y, w, h) in [(300, 200, 64, 64), (431, 299, 113, 77), (690, 490, 10, 10)] {
        let part = draw(&layout, Rect::new(x, y, w, h));
        for j in 0..h {
            for i in 0..w {
                let at = ((x - 300) as usize + i, (y - 200) as usize + j);
                assert_eq!(part.pixel(i, j), whole.pixel(at.0, at.1), "({x}, {y}) + ({i}, {j})");
            }
        }
    }
}

#[test]
fn figures_are_dark_where_the_truth_has_them() {
    let layout = layout(2600, 2000, 3, 12);
    let darkest = |x: f64, y: f64, reach: i64| {
        let side = 2 * reach as usize;
        let tile = draw(&layout, Rect::new(x as i64 - reach, y as i64 - reach, side, side));
        tile.data
            .chunks_exact(3)
            .map(|p| p.iter().map(|&v| u32::from(v)).sum::<u32>())
            .min()
            .unwrap()
    };
    let figures: Vec<_> = layout.truth().iter().filter(|t| t.kind == Kind::Mitotic).collect();
    assert_eq!((figures.len(), layout.truth().len()), (12, 30));
    for t in figures {
        assert!(t.x_px >= 64.0 && t.y_px >= 64.0 && t.x_px <= 2536.0 && t.y_px <= 1936.0);
        let d = darkest(t.x_px, t.y_px, 30);
        assert!(d < 300, "{:?} at {}, {}: {d}", t.phase, t.x_px, t.y_px);
    }
    // Glass is bright.
    assert!(darkest(8.0, 8.0, 8) > 690);
}

#[test]
fn a_slide_reads_back_as_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(1500, 1100, 9, 4);
    let mut bytes = Vec::new();
    for container in [Container::Auto, Container::BigTiff] {
        let path = dir.path().join(format!("{container:?}.tiff"));
        let mut steps = Steps::default();
        write(&layout, &path, container, &mut steps).unwrap();
        assert!(steps.0.last().is_some_and(|(d, t)| d == t && *t > 0), "{steps:?}");
        let slide = Slide::open(&path).unwrap();
        assert_eq!(slide.dimensions(), (1500, 1100));
        assert_eq!(slide.levels().len(), 2);
        assert_eq!((slide.levels()[1].width, slide.levels()[1].height), (375, 275));
        assert_eq!(slide.resolution().unwrap().x.get(), 0.25);
        let (x, y, w, h) = (230, 240, 300, 280);
        let read = slide.read_at(Mpp::PAPER, Rect::new(x, y, w, h)).unwrap();
        let drawn = draw(&layout, Rect::new(x, y, w, h));
        let off: f64 =
            read.data.iter().zip(&drawn.data).map(|(a, b)| f64::from(a.abs_diff(*b))).sum::<f64>()
                / read.data.len() as f64;
        assert!(off < 3.5, "JPEG moved the pixels by {off} on average");
        // The coarser level is the same picture, smaller.
        let small = slide.read_region(1, Rect::new(0, 0, 375, 275)).unwrap();
        let big = slide.read_region(0, Rect::new(0, 0, 1500, 1100)).unwrap();
        let mean = |t: &mitosis::RgbTile| {
            t.data.iter().map(|&v| f64::from(v)).sum::<f64>() / t.data.len() as f64
        };
        assert!((mean(&small) - mean(&big)).abs() < 1.0);
        bytes.push(big.data);
    }
    assert!(bytes[0] == bytes[1], "BigTIFF holds the same pixels");
}

#[test]
fn a_huge_slide_costs_its_tissue_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("huge.tiff");
    let mut spec = Spec::new(100_000, 100_000, 1, 2).unwrap();
    spec.tissue_mm2 = 0.15;
    let layout = Layout::new(spec).unwrap();
    write(&layout, &path, Container::Auto, &mut Silent).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 6 << 20);
    let slide = Slide::open(&path).unwrap();
    assert_eq!(slide.dimensions(), (100_000, 100_000));
    let t = layout.truth()[0];
    let at = |v: f64| v as i64 - 64;
    let read = slide.read_at(Mpp::PAPER, Rect::new(at(t.x_px), at(t.y_px), 128, 128)).unwrap();
    let drawn = draw(&layout, Rect::new(at(t.x_px), at(t.y_px), 128, 128));
    let off =
        read.data.iter().zip(&drawn.data).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>();
    assert!(off < 4 * 3 * 128 * 128, "{off}");
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    assert_eq!(Spec::new(100, 4000, 1, 1), Err(SpecError::Side(100)));
    assert_eq!(Spec::new(4000, 300_000, 1, 1), Err(SpecError::Side(300_000)));
    let crowded = Layout::new(Spec::new(512, 512, 1, 5000).unwrap());
    let crowded = crowded.unwrap_err();
    assert!(matches!(crowded, SpecError::Crowded { wanted: 12_500, .. }));
    assert!(crowded.to_string().contains("draw fewer, or a larger slide"), "{crowded}");
    Layout::new(Spec::new(512, 512, 1, 1).unwrap()).unwrap();
    let layout = layout(600, 600, 1, 1);
    let nowhere = std::path::Path::new("/dev/null/slide.tiff");
    assert!(write(&layout, nowhere, Container::Auto, &mut Silent).is_err());
}

#[test]
fn tissue_that_does_not_fit_is_refused() {
    let spec = Spec::new(4000, 4000, 1, 2).unwrap();
    assert_eq!(spec.tissue_mm2, 0.5);
    let refused = Spec { tissue_mm2: 0.76, ..spec }.fits().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "only 0.48 of 0.76 mm2 of tissue fit on the slide: draw less, or a larger slide"
    );
    Spec { tissue_mm2: 0.47, ..spec }.fits().unwrap();
    Spec { tissue_mm2: 0.76, ..Spec::new(6000, 6000, 1, 2).unwrap() }.fits().unwrap();
    // What is drawn where nothing is asked for always fits.
    for seed in 0..8 {
        for (w, h) in
            [(512, 512), (600, 600), (512, 30_000), (4096, 3072), (26_000, 26_000), (100_000, 512)]
        {
            let fits = Spec::new(w, h, seed, 0).unwrap().fits();
            assert!(fits.is_ok(), "{w} x {h}, seed {seed}: {fits:?}");
        }
    }
}
