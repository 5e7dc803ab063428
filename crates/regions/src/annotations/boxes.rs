//! How four numbers make a box, decided on evidence from the whole file, never guessed.
//!
//! MIDOG's JSON calls itself COCO and writes `[x1, y1, x2, y2]`; COCO is `[x, y, width, height]`.

use std::path::Path;
use std::str::FromStr;

use super::error::ImportError;

/// The two ways of writing a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoxOrder {
    /// `[x1, y1, x2, y2]`.
    Xyxy,
    /// `[x, y, width, height]`.
    Xywh,
}

impl FromStr for BoxOrder {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "xyxy" => Ok(Self::Xyxy),
            "xywh" => Ok(Self::Xywh),
            _ => Err(format!("`{s}` is neither xyxy nor xywh")),
        }
    }
}

impl BoxOrder {
    /// The corners `[x0, y0, x1, y1]` of four numbers.
    #[must_use]
    pub fn corners(self, b: [f64; 4]) -> [f64; 4] {
        match self {
            Self::Xyxy => b,
            Self::Xywh => [b[0], b[1], b[0] + b[2], b[1] + b[3]],
        }
    }
}

/// How far a figure's box may reach over the image's edge: half of the largest box in use.
const OVERHANG_PX: f64 = 64.0;

/// A box as a file has it.
#[derive(Clone, Copy, Debug)]
pub struct StatedBox {
    /// Finite.
    pub numbers: [f64; 4],
    /// Width and height of its image, px, where known.
    pub image: Option<(f64, f64)>,
}

/// Checks that the boxes of a file are written in the order of its format.
///
/// A box supports an order if its sides are positive in that order and its far corner is at most half
/// a side (at most 64 px) outside the image. If every box allows both orders, equal sizes decide:
/// annotation tools of this field write one size per file.
///
/// # Errors
/// [`ImportError::Boxes`] when the evidence is against `expected`, contradictory, or missing.
pub fn check_order(
    file: &Path,
    expected: BoxOrder,
    format: &str,
    boxes: &[StatedBox],
) -> Result<(), ImportError> {
    let refuse = |reason: String| Err(ImportError::Boxes { file: file.into(), reason });
    let (mut only, mut only_other, mut both) = (0usize, 0usize, 0usize);
    let other = match expected {
        BoxOrder::Xyxy => BoxOrder::Xywh,
        BoxOrder::Xywh => BoxOrder::Xyxy,
    };
    for e in boxes {
        match (fits(expected, e), fits(other, e)) {
            (true, false) => only += 1,
            (false, true) => only_other += 1,
            (true, true) => both += 1,
            (false, false) => {}
        }
    }
    let (name, other_name) = match expected {
        BoxOrder::Xyxy => ("[x1, y1, x2, y2]", "[x, y, width, height]"),
        BoxOrder::Xywh => ("[x, y, width, height]", "[x1, y1, x2, y2]"),
    };
    if only_other > 0 && only == 0 {
        let remedy = match (format, expected) {
            // A table states its order by itself.
            ("csv", _) => "name its columns x, y, width, height, or state that they are xywh",
            (_, BoxOrder::Xyxy) => "import it as `coco`",
            (_, BoxOrder::Xywh) => "import it as `midog-json`",
        };
        return refuse(format!(
            "the boxes are {other_name}, not {name} as `{format}` has them \
             ({only_other} of {} can only be read that way); {remedy}",
            boxes.len()
        ));
    }
    if only_other > 0 && only_other * 20 > only {
        return refuse(format!(
            "the boxes are mixed: {only} can only be {name}, {only_other} only {other_name}; \
             separate them, or state the order"
        ));
    }
    if only > 0 || both == 0 {
        return Ok(());
    }
    match (one_size(expected, boxes), one_size(other, boxes)) {
        (true, false) => Ok(()),
        (false, false) if expected == BoxOrder::Xywh => Ok(()),
        _ => refuse(format!(
            "ambiguous boxes: all {both} could be {name} or {other_name}; \
             state the order"
        )),
    }
}

fn fits(order: BoxOrder, &StatedBox { numbers, image }: &StatedBox) -> bool {
    let [x0, y0, x1, y1] = order.corners(numbers);
    let (w, h) = (x1 - x0, y1 - y0);
    if w <= 0.0 || h <= 0.0 {
        return false;
    }
    let over = |side: f64| (side / 2.0).min(OVERHANG_PX) + 1.0;
    image.is_none_or(|(iw, ih)| x1 <= iw + over(w) && y1 <= ih + over(h))
}

/// Whether two or more boxes all share one size.
fn one_size(order: BoxOrder, boxes: &[StatedBox]) -> bool {
    let size = |b: &StatedBox| {
        let [x0, y0, x1, y1] = order.corners(b.numbers);
        (x1 - x0, y1 - y0)
    };
    let Some(first) = boxes.first().map(size) else { return false };
    boxes.len() > 1
        && boxes
            .iter()
            .map(size)
            .all(|s| (s.0 - first.0).abs() < 1.5 && (s.1 - first.1).abs() < 1.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        expected: BoxOrder,
        boxes: &[[f64; 4]],
        size: Option<(f64, f64)>,
    ) -> Result<(), String> {
        let boxes: Vec<StatedBox> =
            boxes.iter().map(|&numbers| StatedBox { numbers, image: size }).collect();
        check_order(Path::new("f"), expected, "f", &boxes).map_err(|e| e.to_string())
    }

    #[test]
    fn evidence_decides() {
        use BoxOrder::{Xywh, Xyxy};
        let big = Some((7215.0, 5412.0));
        assert!(check(Xyxy, &[[4336.0, 346.0, 4386.0, 396.0]], big).is_ok());
        assert!(check(Xyxy, &[[-27.0, 2391.0, 23.0, 2441.0]], big).is_err());
        let coco = [[4336.0, 346.0, 50.0, 50.0], [20.0, 10.0, 50.0, 50.0]];
        assert!(check(Xywh, &coco, big).is_ok());
        let e = check(Xyxy, &coco, big).unwrap_err();
        assert!(e.contains("as `coco`"), "{e}");
        let midog = [[4336.0, 346.0, 4386.0, 396.0], [20.0, 10.0, 70.0, 60.0]];
        assert!(check(Xyxy, &midog, big).is_ok());
        let e = check(Xywh, &midog, big).unwrap_err();
        assert!(e.contains("as `midog-json`"), "{e}");
    }

    #[test]
    fn what_could_be_both_is_refused() {
        use BoxOrder::{Xywh, Xyxy};
        let e = check(Xyxy, &[[100.0, 100.0, 150.0, 150.0]], Some((7000.0, 5000.0))).unwrap_err();
        assert!(e.contains("ambiguous"), "{e}");
        assert!(
            check(Xyxy, &[[100.0, 100.0, 150.0, 180.0], [10.0, 20.0, 30.0, 90.0]], None).is_err()
        );
        let near = [[100.0, 100.0, 150.0, 150.0], [200.0, 120.0, 250.0, 170.0]];
        assert!(check(Xyxy, &near, Some((7000.0, 5000.0))).is_ok());
        assert!(check(Xywh, &near, Some((7000.0, 5000.0))).is_err());
        assert!(check(Xyxy, &[], None).is_ok());
        assert!(check(Xywh, &[[10.0, 10.0, 40.0, 60.0], [5.0, 5.0, 20.0, 30.0]], None).is_ok());
        let mixed = [[4336.0, 346.0, 4386.0, 396.0], [4336.0, 346.0, 50.0, 50.0]];
        assert!(check(Xyxy, &mixed, Some((7215.0, 5412.0))).unwrap_err().contains("mixed"));
    }
}
