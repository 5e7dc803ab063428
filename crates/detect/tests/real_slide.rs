//! The pipeline over `slide::Slide`: the same as over the same pixels in memory.

use crate::common::{Bits, Mean, Shade, bits, in_memory, mpp, recipe, run, workers};
use detect::{Control, Job, ReadError, Recipe, SlideResult, TileSource};
use mitosis::{Mpp, Rect, Resolution, RgbTile};

/// A whole image in memory, at its own resolution only.
struct Image(RgbTile, Mpp);

impl TileSource for Image {
    fn dimensions(&self) -> (u64, u64) {
        (self.0.width as u64, self.0.height as u64)
    }
    fn resolution(&self) -> Result<Resolution, ReadError> {
        Ok(Resolution::user(self.1))
    }
    fn read_at(&self, at: Mpp, rect: Rect) -> Result<RgbTile, ReadError> {
        let (x, y, w, h) = rect.parts();
        assert_eq!(at, self.1);
        let mut tile = RgbTile::filled(w, h, [255; 3]);
        for j in 0..h {
            for i in 0..w {
                let (sx, sy) = (x + i as i64, y + j as i64);
                if (0..self.0.width as i64).contains(&sx) && (0..self.0.height as i64).contains(&sy)
                {
                    let p = self.0.pixel(sx as usize, sy as usize);
                    tile.data[3 * (j * w + i)..][..3].copy_from_slice(&p);
                }
            }
        }
        Ok(tile)
    }
}

fn detect(source: &dyn TileSource, job: &Job<'_>, recipe: &Recipe) -> SlideResult {
    let (mut shade, mut mean) = (Shade::default(), Mean::default());
    run(source, job, (&mut shade, Some(&mut mean)), recipe, workers(), Control::default()).unwrap()
}

/// Equal bits, with a readable word where not.
fn same(streamed: &[Bits], expected: &[Bits]) {
    assert_eq!(streamed.len(), expected.len());
    for (i, (a, b)) in streamed.iter().zip(expected).enumerate() {
        let at = (f64::from_bits(b.0), f64::from_bits(b.1));
        assert_eq!(a, b, "candidate {i} of {} at {at:?}", expected.len());
    }
}

#[test]
fn a_frame_read_as_a_slide_equals_the_frame_in_memory() {
    let Some(frames) = testkit::data("icpr2012/frames") else { return };
    let mut paths: Vec<_> = std::fs::read_dir(frames).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let at = mpp(0.2456);
    let options = slide::OpenOptions { mpp: Some(at), ..Default::default() };
    let slide = slide::Slide::open_with(&paths[0], &options).unwrap();
    let (w, h) = slide.dimensions();
    let image = Image(slide.read_at(at, Rect::new(0, 0, w as usize, h as usize)).unwrap(), at);
    let mut recipe = recipe(512, 400, 1);
    recipe.mpp = at;
    let crops = recipe.crops.as_mut().unwrap();
    (crops.mpp, crops.side) = (at, 128);
    let job = Job::whole(&slide, &recipe).unwrap();
    let result = detect(&slide, &job, &recipe);
    assert!(result.candidates.len() > 100, "{}", result.candidates.len());
    same(&bits(&result), &in_memory(&image, &job, &recipe));
    let mm2 = w as f64 * h as f64 * 0.2456e-3 * 0.2456e-3;
    assert!((result.analysed.0 - mm2).abs() < 1e-9, "{:?} {mm2}", result.analysed);
}

#[test]
fn a_slide_is_read_on_its_tissue() {
    let Some(path) = testkit::data("slides/CMU-1-Small-Region.svs") else { return };
    let slide = slide::Slide::open(&path).unwrap();
    let tissue = slide::TissueMask::find(&slide).unwrap();
    let recipe = recipe(512, 400, 1);
    let mut with_crops = recipe.clone();
    with_crops.crops.as_mut().unwrap().side = 64;
    let job = Job::on_tissue(&slide, &tissue, &with_crops).unwrap();
    assert!(!job.windows.is_empty());
    let result = detect(&slide, &job, &with_crops);
    same(&bits(&result), &in_memory(&slide, &job, &with_crops));
    // Every piece of tissue is in a window, so all of it was analysed.
    assert!((result.analysed.0 - tissue.area_mm2()).abs() < 1e-9);
    assert_eq!(result.unread_area.0, 0.0);
}
