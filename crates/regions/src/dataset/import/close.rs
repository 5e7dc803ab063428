//! Labels of collections that may be of one cell; their records are not known.

use crate::annotations::{CloseLabels, ClosePair, Mark};
use crate::dataset::{Builder, Image};

/// Figures and mimickers of images that may be of one cell, named by their places; none without such a pair.
pub(super) fn close_labels(images: &[Image], figure: &str) -> Option<CloseLabels> {
    let all = images.iter().enumerate().flat_map(|(i, image)| {
        let counts = |class: &str| class == figure || class == Builder::MIMICKER;
        image.labels.iter().filter(move |l| counts(&l.class)).map(move |label| (i, label))
    });
    let all: Vec<_> = all.collect();
    let marks: Vec<Mark> = all
        .iter()
        .map(|(image, label)| {
            let mpp = &images[*image].mpp;
            let at = [label.x * mpp.x.get(), label.y * mpp.y.get()];
            Mark { image: *image, at, is_figure: label.class == figure }
        })
        .collect();
    CloseLabels::among(&marks, |pair| ClosePair {
        image: images[all[pair[0]].0].name.clone(),
        records: pair.map(|i| format!("({}, {}) px", all[i].1.x, all[i].1.y)),
        categories: pair.map(|i| all[i].1.class.clone()),
        um: 0.0,
    })
}
