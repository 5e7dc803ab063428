//! AMi-Br in small, drawn.

use image::{Rgb, RgbImage};
use std::fs;
use std::path::Path;

/// Each of eight morphologies on six slides, and one of each to test.
///
/// # Panics
/// When the folder cannot be written.
pub fn drawn(dir: &Path) {
    let mut table = String::from(
        "slide,dataset,uid,expert1_label,expert2_label,expert1_atypical,expert2_atypical,\
         expert3_atypical,majority_atypical\n",
    );
    let labels = [
        "NMF prometaphase",
        "NMF metaphase",
        "NMF ring shape",
        "NMF anaphase-telophase",
        "AMF bipolar assymetric",
        "AMF multipolar",
        "AMF segregation",
        "AMF other",
    ];
    for (c, label) in labels.iter().enumerate() {
        for s in 0..7 {
            let (part, slide) = if s < 6 { ("MIDOG21", s + 1) } else { ("TUPAC16", 1) };
            let atypical = if c < 4 { "False" } else { "True" };
            let folder = if c < 4 { "Normal" } else { "Atypical" };
            let uid = 10 * c + s;
            table += &format!(
                "{slide:03}.tiff,{part},{uid},{label},{label},{atypical},{atypical},True,{atypical}\n"
            );
            let folder = dir.join("ami_br").join(folder);
            fs::create_dir_all(&folder).expect("written");
            let grey = |x: u32, y: u32| ((x * (c as u32 + 1) + y + uid as u32) % 251) as u8;
            RgbImage::from_fn(128, 128, |x, y| Rgb([grey(x, y), grey(y, x), 90]))
                .save(folder.join(format!("{part}_{uid}.png")))
                .expect("written");
        }
    }
    fs::write(dir.join("ami_br/labels.csv"), table).expect("written");
}
