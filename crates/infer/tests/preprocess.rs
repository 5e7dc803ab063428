//! The network's input equals PyTorch's and Pillow's.

use crate::common::{golden, picture};
use infer::preprocess::{Normalisation, resize, sampling};
use mitosis::Mpp;

#[test]
fn planes_follow_the_formula() {
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    let tile = picture(24);
    let mut planes = vec![0.0; tile.data.len()];
    Normalisation::new(mean, std).planes(&tile.data, &mut planes);
    for y in 0..24 {
        for x in 0..24 {
            for c in 0..3 {
                let v = f64::from(tile.pixel(x, y)[c]) / 255.0;
                let want = (v - f64::from(mean[c])) / f64::from(std[c]);
                let got = f64::from(planes[c * 576 + y * 24 + x]);
                assert!((got - want).abs() < 1e-6, "({x}, {y}, {c}): {got} {want}");
            }
        }
    }
}

#[test]
fn resizing_equals_pillow_within_one_grey_level() {
    let golden = golden();
    let source = picture(16);
    for side in [28, 9] {
        let want = golden["resize"][side.to_string()].as_array().unwrap();
        let got = resize(&source, side, side).data;
        assert_eq!(got.len(), want.len());
        for (g, w) in got.iter().zip(want) {
            assert!(i64::from(*g).abs_diff(w.as_i64().unwrap()) <= 1, "side {side}: {g} {w}");
        }
    }
    assert_eq!(resize(&source, 16, 16), source);
}

#[test]
fn crops_are_sampled_once_where_the_network_is_finer() {
    let mpp = |v| Mpp::new(v).unwrap();
    assert_eq!(sampling(mpp(0.25), 64, 128), (mpp(0.125), 128));
    // Shrinking stays with the filter that training had.
    assert_eq!(sampling(mpp(0.25), 128, 112), (mpp(0.25), 128));
    assert_eq!(sampling(mpp(0.25), 128, 128), (mpp(0.25), 128));
}
