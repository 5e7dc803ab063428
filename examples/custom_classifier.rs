//! Replaces the second stage of a detector by a classifier of your own.
//!
//!     cargo run --release -p mithras --example custom_classifier -- slide.svs
//!
//! A second stage is anything that turns crops (8-bit RGB) into class probabilities: a network of another
//! framework, a remote service, or, as here, a rule of thumb. Classes keep the order of `class_names`; the
//! detector reads the positive one of the package's card, here the second.

#![expect(clippy::print_stdout, reason = "an example prints")]

use mithras::{Detector, SlideRecord};
use mitosis::{ClassProbs, Classifier, PortError, RgbTile};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Scores a crop by how dark its centre is: a rule that finds pyknotic nuclei as well as figures.
pub struct Darkness {
    classes: Vec<String>,
}

impl Default for Darkness {
    fn default() -> Self {
        Self { classes: vec!["other".into(), "mitotic_figure".into()] }
    }
}

impl Darkness {
    /// The share of darkness, 0 (white) to 1 (black), in the middle quarter of a crop.
    #[must_use]
    pub fn score(crop: &RgbTile) -> f32 {
        let (w, h) = (crop.width, crop.height);
        let (xs, ys) = (3 * w / 8..(5 * w).div_ceil(8), 3 * h / 8..(5 * h).div_ceil(8));
        let (mut sum, mut count) = (0_u32, 0_u32);
        for y in ys {
            for x in xs.clone() {
                sum += crop.pixel(x, y).iter().map(|&v| u32::from(v)).sum::<u32>();
                count += 3;
            }
        }
        1.0 - sum as f32 / (255 * count) as f32
    }
}

impl Classifier for Darkness {
    fn class_names(&self) -> &[String] {
        &self.classes
    }

    fn classes(&mut self, crops: &[RgbTile]) -> Result<Vec<ClassProbs>, PortError> {
        let both = |crop| {
            let p = Self::score(crop);
            ClassProbs(vec![1.0 - p, p])
        };
        Ok(crops.iter().map(both).collect())
    }
}

/// Detects with the bundled first stage and [`Darkness`].
pub fn detect(slide: &Path) -> Result<SlideRecord, Box<dyn Error>> {
    let mut detector = Detector::bundled()?;
    detector.models.classifier = Some(Box::new(Darkness::default()));
    Ok(detector.run_file(slide)?)
}

/// Takes the slide from the command line.
pub fn main() -> Result<(), Box<dyn Error>> {
    let slide =
        std::env::args().nth(1).map(PathBuf::from).ok_or("usage: custom_classifier SLIDE")?;
    for row in detect(&slide)?.rows {
        println!("{} {} px, s_seg {}, darkness {:?}", row.x_px, row.y_px, row.s_seg, row.s_cls);
    }
    Ok(())
}
