//! A crop sampled from the slide at the network's resolution is the crop at 0.25 um/px enlarged.

use infer::preprocess::{resize, sampling};
use mitosis::Mpp;
use slide::{OpenOptions, Rect, Slide};

#[test]
fn sampling_at_the_networks_resolution_equals_enlarging() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("region.png");
    image::RgbImage::from_fn(200, 200, |x, y| {
        image::Rgb([x * 7 + y * 3, x * x / 5 + y, x ^ y].map(|v| (v % 256) as u8))
    })
    .save(&path)
    .unwrap();
    let options = OpenOptions { mpp: Some(Mpp::PAPER), ..OpenOptions::default() };
    let slide = Slide::open_with(&path, &options).unwrap();
    let (mpp, side) = sampling(Mpp::PAPER, 64, 128);
    let fine = slide.read_at(mpp, Rect::new(2 * 50, 2 * 60, side, side)).unwrap();
    let coarse = slide.read_at(Mpp::PAPER, Rect::new(50, 60, 64, 64)).unwrap();
    let enlarged = resize(&coarse, 128, 128);
    for y in 1..127 {
        for x in 1..127 {
            for (c, got) in fine.pixel(x, y).into_iter().enumerate() {
                let want = enlarged.pixel(x, y)[c];
                assert!(got.abs_diff(want) <= 1, "({x}, {y}, {c}): {got} {want}");
            }
        }
    }
}
