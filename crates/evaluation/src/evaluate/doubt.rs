//! Signs that a truth is of other units, axes, orientation or origin than it is read in, or names cells twice.

use base::text::Many;
use mitosis::matching::{Rule, match_points};
use mitosis::{Microns, Physical, Point};
use regions::rows::ONE_CELL_UM;
use std::collections::BTreeMap;

/// Share of the truth below which other readings of its places are tried, and by which one of them has to be better.
const POOR: usize = 4;
/// Fewest figures that another reading has to hit.
const FEWEST: usize = 3;
/// Fewest figures that a shift has to hit.
const FEWEST_SHIFTED: usize = 5;
/// Largest probability of a note on places that have nothing to do with each other.
const CHANCE: f64 = 1e-6;
/// Most pairs of a figure and a detection that are compared for a shift; of more, some figures are taken.
const MOST_PAIRS: usize = 1 << 18;
/// Smallest area that detections are taken to be scattered over, um2.
const LEAST_UM2: f64 = 250_000.0;
/// Most slides that are named; more are counted.
const NAMED: usize = 3;
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
    /// Its width and height, um.
    pub(super) size_um: [f64; 2],
}

impl Marks<'_> {
    fn borrowed(&self) -> Marks<'_> {
        Marks { found: self.found.clone(), ..*self }
    }

    /// Hits to be expected of places that have nothing to do with what was found: each hits as much of the rectangle
    /// around the detections as is within the radius of one.
    fn expected_hits(&self, radius: Microns) -> f64 {
        let side = |pick: fn(&Point<Physical>) -> f64| {
            let all = || self.found.iter().map(pick);
            all().fold(f64::NEG_INFINITY, f64::max) - all().fold(f64::INFINITY, f64::min)
        };
        let around = |side: f64| side + 2.0 * radius.0;
        let pairs = (self.truth.len() * self.found.len()) as f64;
        if pairs == 0.0 {
            return 0.0;
        }
        let disc = std::f64::consts::PI * radius.0 * radius.0;
        // Around few detections the rectangle is smaller than where they could be.
        let least = LEAST_UM2.min(self.size_um[0] * self.size_um[1]);
        pairs * disc / (around(side(|p| p.x)) * around(side(|p| p.y))).max(least)
    }
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
    LeftRight,
    TopBottom,
    HalfTurn,
    /// Of a picture that was turned to the right.
    RightTurn,
    LeftTurn,
}

impl Reading {
    const ALL: [Self; 8] = [
        Self::Exchanged,
        Self::Microns,
        Self::Pixels,
        Self::LeftRight,
        Self::TopBottom,
        Self::HalfTurn,
        Self::RightTurn,
        Self::LeftTurn,
    ];

    fn place(self, p: &Point<Physical>, on: &Marks<'_>) -> Point<Physical> {
        let times = |factor: f64| Point::new(p.x * factor, p.y * factor);
        let [w, h] = on.size_um;
        match self {
            Self::AsWritten => *p,
            Self::Exchanged => Point::new(p.y, p.x),
            Self::Times(factor) => times(factor),
            Self::Microns => times(1.0 / on.mpp),
            Self::Pixels => times(on.mpp),
            Self::LeftRight => Point::new(w - p.x, p.y),
            Self::TopBottom => Point::new(p.x, h - p.y),
            Self::HalfTurn => Point::new(w - p.x, h - p.y),
            Self::RightTurn => Point::new(p.y, h - p.x),
            Self::LeftTurn => Point::new(w - p.y, p.x),
        }
    }

    fn describe(self) -> String {
        match self {
            Self::AsWritten => "as they are written".into(),
            Self::Exchanged => "with x and y exchanged".into(),
            Self::Times(factor) => format!("if they were px of a level {factor} times coarser"),
            Self::Microns => "if they were in um, or in px of a coarser level".into(),
            Self::Pixels => "if they were in px, and not in um".into(),
            Self::LeftRight => "if the slide were mirrored, left to right".into(),
            Self::TopBottom => "if the slide were mirrored, top to bottom".into(),
            Self::HalfTurn => "if the slide were turned by 180 degrees".into(),
            Self::RightTurn => "if the slide were turned by 90 degrees to the right".into(),
            Self::LeftTurn => "if the slide were turned by 90 degrees to the left".into(),
        }
    }

    fn hits(self, all: &[Marks<'_>], radius: Microns) -> usize {
        hits(all, radius, |p, on| self.place(p, on))
    }
}

/// Figures that are hit if their places are moved so.
fn hits(
    all: &[Marks<'_>],
    radius: Microns,
    moved: impl Fn(&Point<Physical>, &Marks<'_>) -> Point<Physical>,
) -> usize {
    let of = |m: &Marks<'_>| {
        let truth: Vec<_> = m.truth.iter().map(|p| moved(p, m)).collect();
        let matched = match_points(&truth, &m.found, radius, Rule::Midog);
        matched.map_or(0, |found| found.tally.tp)
    };
    all.iter().map(of).sum()
}

/// A note where hardly a figure is hit, and most would be if the places were read in another way: on all slides, or
/// else on single ones.
pub(super) fn misread(all: &[Marks<'_>], radius: Microns) -> Vec<String> {
    if let Some(note) = misread_together(all, radius) {
        return vec![note];
    }
    if all.len() < 2 {
        return Vec::new();
    }
    let of =
        |m: &Marks<'_>| Some(format!("{}: {}", m.name, misread_together(&[m.borrowed()], radius)?));
    let notes: Vec<String> = all.iter().filter_map(of).collect();
    match notes.len().checked_sub(NAMED) {
        Some(more @ 1..) => {
            let more = Many(more, "more slide");
            let others = format!("the places of the truth may be read wrongly on {more}");
            notes.into_iter().take(NAMED).chain([others]).collect()
        }
        _ => notes,
    }
}

fn misread_together(all: &[Marks<'_>], radius: Microns) -> Option<String> {
    let n: usize = all.iter().map(|m| m.truth.len()).sum();
    let own = Reading::AsWritten.hits(all, radius);
    if own * POOR > n {
        return None;
    }
    let mut best = (Reading::AsWritten, own);
    for reading in Reading::ALL.into_iter().chain(STEPS.map(Reading::Times)) {
        let hits = reading.hits(all, radius);
        if hits > best.1 {
            best = (reading, hits);
        }
    }
    let is_better =
        |hits: usize, fewest: usize| hits >= fewest && 2 * hits >= n && hits >= POOR * own;
    let words = |hits: usize, how: &str| {
        format!(
            "{own} of {n} figures of the truth are hit, and {hits} would be {how}: its places may be read wrongly"
        )
    };
    let (reading, hits) = best;
    let tries = Reading::ALL.len() + STEPS.len();
    if is_better(hits, FEWEST) && !may_be_chance(all, radius, hits, tries as f64) {
        return Some(words(hits, &reading.describe()));
    }
    let shift = Shift::find(all, radius)?;
    // The shift was chosen to hit a pair: one hit is certain, and there are as many shifts as pairs.
    let is_certain = !may_be_chance(all, radius, shift.hits.saturating_sub(1), shift.pairs);
    (is_better(shift.hits, FEWEST_SHIFTED) && is_certain)
        .then(|| words(shift.hits, &shift.describe(all)))
}

/// Whether so many hits are to be expected in one of so many tries if the places have nothing to do with each other.
fn may_be_chance(all: &[Marks<'_>], radius: Microns, hits: usize, tries: f64) -> bool {
    let expected: f64 = all.iter().map(|m| m.expected_hits(radius)).sum();
    // The tail of a Poisson distribution is below its first term without the factor for no hits at all.
    let log_tail: f64 = (1..=hits).map(|k| (expected / k as f64).ln()).sum();
    tries.ln() + log_tail.min(0.0) > CHANCE.ln()
}

/// The same distance between every place of the truth and where it should be.
struct Shift {
    x: f64,
    y: f64,
    hits: usize,
    /// Pairs of a figure and a detection.
    pairs: f64,
}

impl Shift {
    /// The shift that most pairs of a figure and a detection of one slide share.
    fn find(all: &[Marks<'_>], radius: Microns) -> Option<Self> {
        let pairs: usize = all.iter().map(|m| m.truth.len() * m.found.len()).sum();
        let every = pairs.div_ceil(MOST_PAIRS).max(1);
        let apart = |m: &Marks<'_>| -> Vec<[f64; 2]> {
            let truth = m.truth.iter().step_by(every);
            truth.flat_map(|t| m.found.iter().map(move |f| [f.x - t.x, f.y - t.y])).collect()
        };
        let differences: Vec<[f64; 2]> = all.iter().flat_map(apart).collect();
        let bin = |v: f64| (v / radius.0).floor() as i64;
        let mut bins: BTreeMap<[i64; 2], usize> = BTreeMap::new();
        for d in &differences {
            *bins.entry(d.map(bin)).or_default() += 1;
        }
        let square = |[x, y]: [i64; 2]| [[x, y], [x + 1, y], [x, y + 1], [x + 1, y + 1]];
        let in_square = |at: [i64; 2]| square(at).iter().filter_map(|b| bins.get(b)).sum::<usize>();
        // Of the four parts of a square with enough pairs, one has two.
        let full = bins.iter().filter(|(_, n)| **n > 1);
        let corners = full.flat_map(|(&[x, y], _)| square([x - 1, y - 1]));
        let at = corners.max_by_key(|at| (in_square(*at), std::cmp::Reverse(*at)))?;
        let centre = mean(differences.iter().filter(|d| square(at).contains(&d.map(bin))))?;
        let near = |d: &&[f64; 2]| (d[0] - centre[0]).hypot(d[1] - centre[1]) <= radius.0;
        let [x, y] = mean(differences.iter().filter(near)).unwrap_or(centre);
        let hits = hits(all, radius, |p, _| Point::new(p.x + x, p.y + y));
        Some(Self { x, y, hits, pairs: pairs as f64 })
    }

    fn describe(&self, all: &[Marks<'_>]) -> String {
        let mpp = all.first().map_or(1.0, |m| m.mpp);
        format!(
            "if all were moved by {:.0}, {:.0} px ({:.1}, {:.1} um), as places of a region or corners of boxes are",
            self.x / mpp,
            self.y / mpp,
            self.x,
            self.y
        )
    }
}

fn mean<'a>(all: impl Iterator<Item = &'a [f64; 2]>) -> Option<[f64; 2]> {
    let (mut sum, mut n) = ([0.0; 2], 0.0);
    for d in all {
        sum = [sum[0] + d[0], sum[1] + d[1]];
        n += 1.0;
    }
    (n > 0.0).then(|| sum.map(|s| s / n))
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
    const SIZE: [f64; 2] = [1000.0, 700.0];

    fn found() -> Vec<Point<Physical>> {
        (0..8_u8)
            .map(|i| Point::new(40.0 + 37.0 * f64::from(i), 400.0 - 21.0 * f64::from(i)))
            .collect()
    }

    fn note(change: impl Fn(&Point<Physical>) -> Point<Physical>) -> Option<String> {
        let truth: Vec<_> = found().iter().map(change).collect();
        let marks = Marks { name: "a", truth: &truth, found: found(), mpp: MPP, size_um: SIZE };
        misread(&[marks], Microns(7.5)).pop()
    }

    /// Pseudo-random numbers in [0, 1).
    fn random(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1_u32 << 24)
        }
    }

    fn scattered(seed: u64, n: usize) -> Vec<Point<Physical>> {
        let mut next = random(seed);
        (0..n).map(|_| Point::new(SIZE[0] * next(), SIZE[1] * next())).collect()
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
        // A truth of which half is found.
        assert_eq!(note(|p| Point::new(p.x + if p.x < 180.0 { 0.0 } else { 99.0 }, p.y)), None);
    }

    #[test]
    fn a_truth_of_a_mirrored_or_turned_slide_is_noted() {
        let [w, h] = SIZE;
        for (note, words) in [
            (note(|p| Point::new(w - p.x, p.y)), "mirrored, left to right"),
            (note(|p| Point::new(p.x, h - p.y)), "mirrored, top to bottom"),
            (note(|p| Point::new(w - p.x, h - p.y)), "turned by 180 degrees"),
            // The picture has the slide's height as its width.
            (note(|p| Point::new(h - p.y, p.x)), "turned by 90 degrees to the right"),
            (note(|p| Point::new(p.y, w - p.x)), "turned by 90 degrees to the left"),
        ] {
            let note = note.unwrap();
            assert!(
                note.contains("and 8 would be if the slide were") && note.contains(words),
                "{note}"
            );
        }
    }

    #[test]
    fn a_truth_from_another_origin_is_noted_with_the_distance() {
        let moved = note(|p| Point::new(p.x - 30.0, p.y - 90.0)).unwrap();
        let words = "0 of 8 figures of the truth are hit, and 8 would be if all were moved by 120, 360 px (30.0, 90.0 um)";
        assert!(moved.starts_with(words), "{moved}");
        // A detector that finds most, with as many false positives and some um of error.
        let mut next = random(7);
        let truth = scattered(1, 40);
        let mut found = scattered(2, 40);
        found.extend(truth[..30].iter().map(|p| {
            let [a, b] = [next(), next()].map(|v| 6.0 * v - 3.0);
            Point::new(p.x + 500.0 + a, p.y + 200.0 + b)
        }));
        let of = |name, truth, found| Marks { name, truth, found, mpp: MPP, size_um: SIZE };
        let note = misread(&[of("a", &truth, found.clone())], Microns(7.5)).pop().unwrap();
        let px = note.split("moved by ").nth(1).and_then(|rest| rest.split(" px").next()).unwrap();
        let px: Vec<f64> = px.split(", ").map(|v| v.parse().unwrap()).collect();
        assert!((px[0] - 2000.0).hypot(px[1] - 800.0) < 8.0, "{note}");
        // One slide of several.
        let right = scattered(3, 60);
        let slides = [of("a", &truth, found), of("b", &right, right.clone())];
        let notes = misread(&slides, Microns(7.5));
        assert!(notes.len() == 1 && notes[0].starts_with("a: "), "{notes:?}");
    }

    /// Neither of a poor detector, at any density, nor of few figures, nor of slides with one each.
    #[test]
    fn places_that_have_nothing_to_do_with_each_other_are_not_noted() {
        for seed in 0..12 {
            for (figures, detections) in
                [(1, 1), (3, 3), (3, 300), (5, 20), (12, 200), (40, 40), (60, 400)]
            {
                let truth = scattered(seed, figures);
                let of = |found| Marks { name: "a", truth: &truth, found, mpp: MPP, size_um: SIZE };
                let notes = misread(&[of(scattered(seed + 1000, detections))], Microns(7.5));
                assert!(notes.is_empty(), "{seed}, {figures}, {detections}: {notes:?}");
                // A fifth is found.
                let mut found = scattered(seed + 2000, detections);
                found.extend(&truth[..figures / 5]);
                let notes = misread(&[of(found)], Microns(7.5));
                assert!(notes.is_empty(), "{seed}, {figures}, {detections}: {notes:?}");
            }
            let single: Vec<_> = (0..30).map(|i| scattered(100 * seed + i, 2)).collect();
            let slides: Vec<_> = single
                .iter()
                .map(|both| Marks {
                    name: "a",
                    truth: &both[..1],
                    found: both[1..].to_vec(),
                    mpp: MPP,
                    size_um: SIZE,
                })
                .collect();
            assert!(misread(&slides, Microns(7.5)).is_empty(), "{seed}");
        }
    }

    #[test]
    fn figures_that_may_be_one_cell_are_noted() {
        let truth = [(90.0, 9.0), (10.0, 10.0), (13.0, 14.0), (10.0, 90.0)];
        let truth = truth.map(|(x, y)| Point::new(x, y));
        let of = |truth: &[Point<Physical>]| {
            doubled(&[Marks { name: "a", truth, found: Vec::new(), mpp: MPP, size_um: SIZE }])
        };
        let words = "a: 1 pair of figures is closer than 6.25 um in the truth, the first at 10.0, 10.0 and 13.0, \
                     14.0 um";
        let notes = of(&truth);
        assert!(notes.len() == 1 && notes[0].starts_with(words), "{notes:?}");
        assert!(of(&truth[..2]).is_empty());
    }
}
