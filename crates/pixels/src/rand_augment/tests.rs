//! Each operation against timm on Pillow (`tests/golden/rand_augment.py`), and the draws.

use serde::Deserialize;

use super::*;
use crate::sample_rng;

#[derive(Deserialize)]
struct Case {
    kind: usize,
    level: f64,
    negate: bool,
    pixels: String,
}

fn picture(w: usize, h: usize) -> RgbTile {
    let mut state = 12345_u32;
    let mut data = Vec::with_capacity(3 * w * h);
    for y in 0..h {
        for x in 0..w {
            for c in 0..3 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let noise = (state >> 24) as usize % 64;
                data.push(((x * (5 + c) + y * (9 - 2 * c) + 40 * c + noise) % 230) as u8);
            }
        }
    }
    RgbTile::new(w, h, data)
}

#[test]
fn every_operation_equals_timm() {
    let text = include_str!("../../tests/golden/rand_augment.json");
    let cases: Vec<Case> = serde_json::from_str(text).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for case in &cases {
        let op = RandAugment::op(case.kind, case.level, case.negate);
        let out = op.apply(&picture(20, 16));
        let far = out.data.iter().enumerate().map(|(i, v)| {
            let want = u8::from_str_radix(&case.pixels[2 * i..2 * i + 2], 16).unwrap();
            v.abs_diff(want)
        });
        assert_eq!(far.max(), Some(0), "{op:?}");
        seen.insert(case.kind);
    }
    assert_eq!(seen.len(), KINDS);
}

#[test]
fn the_policy_is_read_as_timm_writes_it() {
    let read = |s: &str| RandAugment::try_from(s.to_string());
    let policy = read("rand-m9-mstd0.5-inc1").unwrap();
    assert_eq!(
        (policy.magnitude, policy.std, policy.layers, policy.probability),
        (9.0, 0.5, 2, 0.5)
    );
    assert_eq!(String::from(policy), "rand-m9-mstd0.5-inc1");
    assert_eq!(read("rand-m5-n3-p0.7-inc1").unwrap().layers, 3);
    for bad in ["augmix-m3", "rand-m9", "rand-m11-inc1", "rand-z3-inc1", "rand-m-inc1"] {
        let e = read(bad).unwrap_err();
        let (_, example) = e.split_once("; write e.g. ").unwrap();
        assert!(read(example).is_ok(), "{e}");
    }
}

#[test]
fn draws_are_even_and_seeded() {
    let policy = RandAugment::try_from("rand-m9-mstd0.5-inc1".to_string()).unwrap();
    let tile = picture(12, 12);
    let draw = |i| policy.apply(&tile, &mut sample_rng(3, i));
    assert_eq!(draw(5), draw(5));
    // Both operations are left out a quarter of the time.
    let same = (0..800).filter(|&i| draw(i) == tile).count();
    assert!((150..280).contains(&same), "{same}");
}
