//! Pictures of any size become an encoder's input as its makers have it.

use encoders::encoder::fit;
use mitosis::RgbTile;
use net::encoder::ENCODERS;
use pixels::resize::Interpolation;

/// What `golden/fit.py` draws.
fn picture() -> RgbTile {
    let (width, height) = (300, 260);
    let pixel = |i: usize| {
        let (x, y) = (i % width, i / width);
        [x * 7 + y * 3, x * x / 5 + y, x ^ y].map(|v| (60 + v % 128) as u8)
    };
    RgbTile::new(width, height, (0..width * height).flat_map(pixel).collect())
}

#[test]
fn a_picture_is_resized_and_cut_as_timm_does() {
    let golden: serde_json::Value = serde_json::from_str(include_str!("golden/fit.json")).unwrap();
    for (name, resize) in
        [("augreg-vits16", 248), ("gigapath", 256), ("conch_v1", 448), ("kaiko-vits16", 224)]
    {
        let of = &golden[name];
        let number = |key: &str| of[key].as_u64().unwrap() as usize;
        let (side, step) = (number("side"), number("step"));
        let fit = fit(name, side);
        assert_eq!((fit.input, fit.resize), (side, resize), "{name}");
        let (picture, wanted) = (picture(), of["pixels"].as_array().unwrap());
        let made = fit.apply(&picture);
        assert_eq!((made.width, made.height, wanted.len()), (side, side, 32 * 32 * 3));
        let mut off = [0; 3];
        for (i, want) in wanted.chunks(3).enumerate() {
            let got = made.pixel(i % 32 * step, i / 32 * step);
            for (got, want) in got.iter().zip(want) {
                let by = u64::from(*got).abs_diff(want.as_u64().unwrap());
                assert!(by <= 2, "{name}, pixel {i}: {got}, timm {want}");
                off[by as usize] += 1;
            }
        }
        // Each of the two passes rounds.
        assert!(off[1] * 10 < off[0] && off[2] * 100 < off[0], "{name}: {off:?}");
    }
}

#[test]
fn every_row_fits_and_its_own_size_goes_in_as_it_is() {
    for row in ENCODERS {
        let side = row.published.map_or(224, |p| p.image as usize);
        let fit = fit(row.name, side);
        assert!(fit.resize >= side && fit.input == side, "{}: {fit:?}", row.name);
        let alone = row.published.is_none();
        assert!(!alone || (fit.resize, fit.by) == (side, Interpolation::Bilinear), "{}", row.name);
        let tile = RgbTile::filled(side, side, [9, 8, 7]);
        assert!(matches!(fit.apply(&tile), std::borrow::Cow::Borrowed(_)), "{}", row.name);
    }
    // At another side the same share of a picture is seen.
    assert_eq!(fit("gigapath", 448).resize, 512);
}
