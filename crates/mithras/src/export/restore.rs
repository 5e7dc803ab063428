//! A slide's record, read back from its files.

use super::counts::CountsFile;
use crate::record::{Condition, DetectionRow, SlideRecord};
use crate::regions::Searched;
use detect::{Flaw, Flawed, FlawedSquare, UnreadWindow, WindowAt};
use mitosis::{Mm2, MppError, Point};

/// Reads a slide back from its files: `counts.json`, the rows of `detections.csv`, and its regions.
///
/// # Errors
/// When the resolution in `counts` is not one.
pub fn restored(
    counts: &CountsFile,
    rows: Vec<DetectionRow>,
    regions: Option<Searched>,
) -> Result<SlideRecord, MppError> {
    let nowhere = Point::new(0.0, 0.0);
    let square = |flaw, mm2| FlawedSquare { flaw, place: (0, 0), min: nowhere, max: nowhere, mm2 };
    let at = |[x, y]: [f64; 2]| Point::new(x, y);
    let mut record = SlideRecord {
        slide: counts.slide.clone(),
        resolution: counts.resolution()?,
        model: counts.model.clone(),
        point: counts.thresholds.clone(),
        point_name: counts.operating_point.clone(),
        rows,
        count: None,
        tissue: Mm2(counts.tissue_mm2),
        windows: counts.windows,
        unread: counts
            .unread_windows
            .iter()
            .map(|u| UnreadWindow {
                at: WindowAt { row: 0, col: 0 },
                min: at(u.min_px),
                max: at(u.max_px),
                reason: u.reason.clone(),
            })
            .collect(),
        unclassified: counts.unclassified,
        flawed: Flawed {
            squares: vec![square(Flaw::Pen, counts.pen_mm2), square(Flaw::Dirt, counts.dirt_mm2)],
            out_of_focus: Mm2(counts.out_of_focus_mm2),
            ..Flawed::default()
        },
        condition: Condition {
            absent_mm2: counts.absent_mm2,
            suspect_mm2: counts.suspect_mm2,
            suspect_reasons: counts.suspect_reasons.clone(),
            resolution_note: counts.resolution_note.clone(),
            scanner: counts.scanner.clone(),
            scanner_note: counts.scanner_note.clone(),
            colour_note: counts.colour_note.clone(),
            level_notes: counts.level_notes.clone(),
        },
        subtypes: counts.subtypes.as_ref().map(|s| s.models.clone()),
        regions,
    };
    record.recount(Mm2(counts.analysed_mm2), Mm2(counts.unread_mm2));
    Ok(record)
}
