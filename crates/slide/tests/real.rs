//! Real slides: what is read and what is refused.

use mitosis::Mpp;
use slide::{MppRule, OpenOptions, Rect, Slide, SlideError};

#[test]
fn aperio_jpeg_opens_with_its_resolution() {
    let Some(path) = testkit::data("slides/CMU-1-Small-Region.svs") else { return };
    let s = Slide::open(path).unwrap();
    assert_eq!((s.vendor(), s.dimensions()), ("aperio", (2220, 2967)));
    assert_eq!(s.resolution().unwrap().x.get(), 0.499);
    let names: Vec<_> =
        s.associated_images().iter().map(|a| (a.name.as_str(), a.width, a.height)).collect();
    assert_eq!(names, [("thumbnail", 574, 768), ("label", 387, 463), ("macro", 1280, 431)]);
    for (name, w, h) in names {
        let image = s.associated_image(name).unwrap();
        assert_eq!((image.width as u64, image.height as u64), (w, h));
    }
}

#[test]
fn missing_resolution_is_refused_until_given() {
    let Some(path) = testkit::data("slides/tcga-cr-7395-01a-01-ts1.svs") else { return };
    let s = Slide::open(&path).unwrap();
    assert_eq!(s.levels().len(), 2);
    assert_eq!(s.levels()[1].downsample_x, 2.0);
    let error = s.read_at(Mpp::PAPER, Rect::new(0, 0, 8, 8)).unwrap_err();
    assert!(matches!(error, SlideError::MissingResolution { .. }));
    assert!(error.to_string().contains("they have to be given"), "{error}");
    let given = OpenOptions { mpp: Some(Mpp::PAPER), ..OpenOptions::default() };
    let s = Slide::open_with(&path, &given).unwrap();
    assert_eq!(s.read_at(Mpp::PAPER, Rect::new(1000, 1000, 64, 64)).unwrap().width, 64);
}

#[test]
fn adjacent_rectangles_equal_their_union() {
    let Some(path) = testkit::data("slides/CMU-1-Small-Region.svs") else { return };
    for own in [0.2456, 0.499, 0.25, 0.125] {
        let mpp = Some(Mpp::new(own).unwrap());
        let options = OpenOptions { mpp, mpp_rule: MppRule::Force, ..OpenOptions::default() };
        let s = Slide::open_with(&path, &options).unwrap();
        for target in [Mpp::PAPER, Mpp::new(2.0).unwrap()] {
            let (x, y, w, h) = (-7i64, 411i64, 301usize, 205usize);
            let union = s.read_at(target, Rect::new(x, y, w, h)).unwrap();
            for cut in [1usize, 100, 187, 300] {
                let left = s.read_at(target, Rect::new(x, y, cut, h)).unwrap();
                let right = s.read_at(target, Rect::new(x + cut as i64, y, w - cut, h)).unwrap();
                for r in 0..h {
                    let line = &union.data[3 * w * r..3 * w * (r + 1)];
                    let (a, b) = line.split_at(3 * cut);
                    assert!(a == &left.data[3 * cut * r..3 * cut * (r + 1)], "{own} row {r}");
                    assert!(
                        b == &right.data[3 * (w - cut) * r..3 * (w - cut) * (r + 1)],
                        "{own} row {r}"
                    );
                }
            }
            let cut = 77;
            let top = s.read_at(target, Rect::new(x, y, w, cut)).unwrap();
            let bottom = s.read_at(target, Rect::new(x, y + cut as i64, w, h - cut)).unwrap();
            assert!([top.data, bottom.data].concat() == union.data);
        }
    }
}
