//! Signs that a truth is of other units or axes than it is read in, or names cells twice.

use mitosis::matching::{Rule, match_points};
use mitosis::{Microns, Physical, Point};
use regions::rows::ONE_CELL_UM;

/// Share of the truth below which other readings of its places are tried, and by which one of them has to be better.
const POOR: usize = 4;
/// Fewest figures that another reading has to hit.
const FEWEST: usize = 3;
/// Steps from level 0 to coarser levels.
const STEPS: [f64; 6] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// The figures of a slide and what was found on it.
pub(super) struct Marks<'a> {
    pub(super) name: &'a str,
    pub(super) truth: &'a [Point<Physical>],
    /// Detections that count as figures.
    pub(super) found: Vec<Point<Physical>>,
    /// um/px of the slide.
    pub(super) mpp: f64,
}

/// Another way to read the places of a truth.
#[derive(Clone, Copy)]
enum Reading {
    AsWritten,
    Exchanged,
    Times(f64),
    /// Micrometres that were read as pixels.
    Microns,
    /// Pixels that were read as micrometres.
    Pixels,
}

impl Reading {
    fn place(self, p: &Point<Physical>, mpp: f64) -> Point<Physical> {
        let times = |factor: f64| Point::new(p.x * factor, p.y * factor);
        match self {
            Self::AsWritten => *p,
            Self::Exchanged => Point::new(p.y, p.x),
            Self::Times(factor) => times(factor),
            Self::Microns => times(1.0 / mpp),
            Self::Pixels => times(mpp),
        }
    }

    fn describe(self) -> String {
        match self {
            Self::AsWritten => "as they are written".into(),
            Self::Exchanged => "with x and y exchanged".into(),
            Self::Times(factor) => format!("if they were px of a level {factor} times coarser"),
            Self::Microns => "if they were in um, or in px of a coarser level".into(),
            Self::Pixels => "if they were in px, and not in um".into(),
        }
    }

    fn hits(self, all: &[Marks<'_>], radius: Microns) -> usize {
        let of = |m: &Marks<'_>| {
            let truth: Vec<_> = m.truth.iter().map(|p| self.place(p, m.mpp)).collect();
            let matched = match_points(&truth, &m.found, radius, Rule::Midog);
            matched.map_or(0, |found| found.tally.tp)
        };
        all.iter().map(of).sum()
    }
}

/// A note where hardly a figure is hit, and most would be if the places were read in another way.
pub(super) fn misread(all: &[Marks<'_>], radius: Microns) -> Option<String> {
    let n: usize = all.iter().map(|m| m.truth.len()).sum();
    let own = Reading::AsWritten.hits(all, radius);
    if own * POOR > n {
        return None;
    }
    let others = [Reading::Exchanged, Reading::Microns, Reading::Pixels];
    let others = others.into_iter().chain(STEPS.map(Reading::Times));
    let mut best = (Reading::AsWritten, own);
    for reading in others {
        let hits = reading.hits(all, radius);
        if hits > best.1 {
            best = (reading, hits);
        }
    }
    let (reading, hits) = best;
    let is_better = hits >= FEWEST && 2 * hits >= n && hits >= POOR * own;
    is_better.then(|| {
        format!(
            "{own} of {n} figures of the truth are hit, and {hits} would be {}: its places may be read wrongly",
            reading.describe()
        )
    })
}

/// A note for each slide with figures that are so close together that they may be one.
pub(super) fn doubled(all: &[Marks<'_>]) -> Vec<String> {
    all.iter().filter_map(doubled_on).collect()
}

fn doubled_on(marks: &Marks<'_>) -> Option<String> {
    let mut points: Vec<&Point<Physical>> = marks.truth.iter().collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    let mut close = Vec::new();
    for (i, a) in points.iter().enumerate() {
        let next = points[i + 1..].iter().take_while(|b| b.x - a.x < ONE_CELL_UM);
        close.extend(next.filter(|b| (b.x - a.x).hypot(b.y - a.y) < ONE_CELL_UM).map(|b| (*a, *b)));
    }
    let (a, b) = close.first()?;
    let are = if close.len() == 1 { "pair of figures is" } else { "pairs of figures are" };
    Some(format!(
        "{}: {} {are} closer than {ONE_CELL_UM} um in the truth, the first at {:.1}, {:.1} and {:.1}, {:.1} um; two \
         labels of one cell count twice",
        marks.name,
        close.len(),
        a.x,
        a.y,
        b.x,
        b.y
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MPP: f64 = 0.25;

    fn found() -> Vec<Point<Physical>> {
        (0..8_u8)
            .map(|i| Point::new(40.0 + 37.0 * f64::from(i), 400.0 - 21.0 * f64::from(i)))
            .collect()
    }

    fn note(change: impl Fn(&Point<Physical>) -> Point<Physical>) -> Option<String> {
        let truth: Vec<_> = found().iter().map(change).collect();
        let marks = Marks { name: "a", truth: &truth, found: found(), mpp: MPP };
        misread(&[marks], Microns(7.5))
    }

    #[test]
    fn a_truth_in_other_units_or_axes_is_noted() {
        for (note, words) in [
            (note(|p| Point::new(p.y, p.x)), "with x and y exchanged"),
            (
                note(|p| Point::new(p.x * MPP, p.y * MPP)),
                "if they were in um, or in px of a coarser",
            ),
            (note(|p| Point::new(p.x / MPP, p.y / MPP)), "if they were in px, and not in um"),
            (note(|p| Point::new(p.x / 16.0, p.y / 16.0)), "of a level 16 times coarser"),
        ] {
            let note = note.unwrap();
            assert!(note.starts_with("0 of 8 figures") && note.contains(words), "{note}");
            assert!(note.contains("and 8 would be"), "{note}");
        }
        assert_eq!(note(|p| *p), None);
        // What was not found at all, and a truth of which half is found.
        assert_eq!(note(|p| Point::new(p.x + 999.0, p.y)), None);
        assert_eq!(note(|p| Point::new(p.x + if p.x < 180.0 { 0.0 } else { 99.0 }, p.y)), None);
    }

    #[test]
    fn figures_that_may_be_one_cell_are_noted() {
        let truth = [(90.0, 9.0), (10.0, 10.0), (13.0, 14.0), (10.0, 90.0)];
        let truth = truth.map(|(x, y)| Point::new(x, y));
        let of = |truth: &[Point<Physical>]| {
            doubled(&[Marks { name: "a", truth, found: Vec::new(), mpp: MPP }])
        };
        let words = "a: 1 pair of figures is closer than 6.25 um in the truth, the first at 10.0, 10.0 and 13.0, \
                     14.0 um";
        let notes = of(&truth);
        assert!(notes.len() == 1 && notes[0].starts_with(words), "{notes:?}");
        assert!(of(&truth[..2]).is_empty());
    }
}
