//! Pseudo-labels for self-training: a detector's labels of a fold's unlabelled training images.

use super::folds::WORKING;
use super::{Result, TrainingError};
use ::detect::{Control, Job};
use base::file;
use base::progress::{Listener, Piece};
use base::table::{Format, Table, Writer};
use mithras::detector::Detector;
use mitosis::pseudo_label::{PseudoLabel, PseudoLabelRule, assign};
use regions::folds::RegionFold;
use std::path::Path;
use train::data::{Pseudo, Source};

/// The words of the column `label`.
const WORDS: [(&str, PseudoLabel); 2] =
    [("mf", PseudoLabel::Mitotic), ("mimicker", PseudoLabel::Mimicker)];

/// What was labelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Images without labels on the fold's training side.
    pub images: usize,
    /// Mitotic figures.
    pub figures: usize,
    /// Pseudo-labels of that class.
    pub mimickers: usize,
    /// Candidates that are neither.
    pub excluded: usize,
}

/// Runs `detector` over the images of the fold's training side that have no labels, and writes
/// `frame,x,y,label,s_seg,s_cls` (pixels at 0.25 um/px; `mf` or `mimicker`) of what the rule makes of its candidates
/// (paper: Pseudo-label dataset construction). Images that the fold holds out are not touched.
///
/// # Errors
/// A detector without a second stage, or whose candidates begin above the rule's limits; images that cannot be read,
/// a full disk.
pub fn label(
    source: &Source,
    fold: &RegionFold<'_>,
    detector: &mut Detector,
    rule: &PseudoLabelRule,
    out: &Path,
    listener: &mut dyn Listener,
) -> Result<Counts> {
    let lowest = detector.config.recipe.candidates.lowest();
    rule.reachable(lowest).map_err(|e| TrainingError::Invalid(e.to_string()))?;
    let unlabelled = fold.train.iter().filter(|i| !i.exhaustive && i.labels.is_empty());
    let images: Vec<_> = unlabelled.collect();
    let mut table = Writer::new(["frame", "x", "y", "label", "s_seg", "s_cls"]);
    let mut counts = Counts { images: images.len(), ..Counts::default() };
    let mut piece = Piece::begin(listener, "pseudo-label", "pseudo-label", "images");
    for (done, image) in images.iter().enumerate() {
        piece.update(done as u64, images.len() as u64);
        let slide = source.set.open_image(image)?;
        let fail = |e: ::detect::DetectError| TrainingError::file(slide.path(), e);
        let job = Job::whole(&slide, &detector.config.recipe).map_err(fail)?;
        let found = detector.windows(&slide, &job, Control::default()).map_err(fail)?;
        let (fx, fy) = image.scale(WORKING);
        for d in found.detections() {
            let (c, s_seg) = (d.candidate.centroid, d.candidate.s_seg);
            let s_cls = d.s_cls.ok_or_else(|| {
                TrainingError::Invalid(
                    "pseudo-labels need a second stage, and the model has none".into(),
                )
            })?;
            if image.ignore.iter().any(|a| a.contains(c.x, c.y)) {
                continue;
            }
            let Some(label) = assign(s_seg, s_cls, rule) else {
                counts.excluded += 1;
                continue;
            };
            match label {
                PseudoLabel::Mitotic => counts.figures += 1,
                PseudoLabel::Mimicker => counts.mimickers += 1,
            }
            let word = WORDS.iter().find(|w| w.1 == label).map_or("", |w| w.0);
            table.push([
                image.name.clone(),
                format!("{:.1}", c.x * fx),
                format!("{:.1}", c.y * fy),
                word.to_owned(),
                s_seg.get().to_string(),
                s_cls.get().to_string(),
            ]);
        }
    }
    piece.update(images.len() as u64, images.len() as u64);
    piece.finish();
    file::write(out, &table.into_bytes())?;
    Ok(counts)
}

/// Reads what [`label`] wrote.
///
/// # Errors
/// A table that is missing or malformed, or an unknown label.
pub fn read(path: &Path) -> Result<Vec<Pseudo>> {
    let fail = |e: base::table::TableError| TrainingError::file(path, e);
    let table = Table::read(path, &Format { no_rows: true, ..Format::default() }).map_err(fail)?;
    let column = |name: &str| table.need(&[name]).map_err(fail);
    let (frame, x, y, label) = (column("frame")?, column("x")?, column("y")?, column("label")?);
    let pseudo = |row: usize| {
        let word = table.cell(row, label);
        let known = WORDS.iter().find(|w| w.0 == word);
        let known =
            known.ok_or_else(|| fail(table.wrong(row, label, "is neither mf nor mimicker")))?;
        Ok(Pseudo {
            frame: table.cell(row, frame).to_owned(),
            x: table.number(row, x).map_err(fail)? as f32,
            y: table.number(row, y).map_err(fail)? as f32,
            mitotic: known.1 == PseudoLabel::Mitotic,
        })
    };
    (0..table.len()).map(pseudo).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_by_their_words() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pseudo.csv");
        let head = "frame,x,y,label,s_seg,s_cls\n";
        std::fs::write(&path, format!("{head}a,1.5,2.0,mf,0.6,0.9\na,9.0,8.0,mimicker,0.7,0.1\n"))
            .unwrap();
        let read_in = read(&path).unwrap();
        assert_eq!(read_in.iter().map(|p| p.mitotic).collect::<Vec<_>>(), [true, false]);
        assert_eq!((read_in[0].x, read_in[1].frame.as_str()), (1.5, "a"));
        std::fs::write(&path, format!("{head}a,1,2,maybe,0.6,0.9\n")).unwrap();
        let e = read(&path).unwrap_err().to_string();
        assert!(e.contains("neither mf nor mimicker") && e.contains("pseudo.csv"), "{e}");
    }
}
