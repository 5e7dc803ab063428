//! Drawn data and options of runs.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod ranks;

use std::fs;
use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use train::run::RunOptions;

/// Two classes that differ in the colour of a disc, six sources each; a test part of one source.
pub fn drawn(dir: &Path) {
    for (part, sources) in [("train", 6_u32), ("test", 1)] {
        for (c, class) in ["plain", "marked"].iter().enumerate() {
            for s in 0..sources {
                let folder = dir.join(part).join(class).join(format!("{part}{s}"));
                fs::create_dir_all(&folder).unwrap();
                for k in 0..3_u32 {
                    let image = RgbImage::from_fn(40, 40, |x, y| {
                        let near = (f64::from(x) - 20.0).hypot(f64::from(y) - 20.0) < 9.0;
                        let v = ((x * 7 + y * 13 + s * 31 + k * 3) % 40) as u8;
                        match (near, c) {
                            (true, 0) => Rgb([60 + v, 30, 90]),
                            (true, _) => Rgb([30, 90 + v, 60]),
                            _ => Rgb([200 + v, 150 + v, 190]),
                        }
                    });
                    image.save(folder.join(format!("{k}.png"))).unwrap();
                }
            }
        }
    }
}

pub fn options(out: PathBuf, resume: bool, stop_after: usize) -> RunOptions {
    RunOptions {
        out,
        resume,
        device: "cpu".into(),
        init: None,
        allow_partial: false,
        stop_after,
        reporter: Default::default(),
    }
}
