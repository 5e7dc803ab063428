//! Labels of one image that are so close together that they may be of one cell, which then counts twice.

use super::{Annotation, Annotations, Class};
use crate::rows::ONE_CELL_UM;
use mitosis::Mpp;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Pairs that are listed; the rest is counted.
const LISTED: usize = 20;
/// Pairs that are printed.
const PRINTED: usize = 10;
/// Labels of one square that another label is compared with, so that a crowd at one place costs no more than others.
/// Of a larger crowd in a neighbouring square, one that is close to a later label alone is missed.
const COMPARED: usize = 64;

/// Two labels that may be of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClosePair {
    /// Image.
    pub image: String,
    /// The records, the earlier one first.
    pub records: [String; 2],
    /// Their categories.
    pub categories: [String; 2],
    /// Distance of their centres, um.
    pub um: f64,
}

impl fmt::Display for ClosePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { image, records: [a, b], categories: [first, second], um } = self;
        write!(f, "{image}: {a} (`{first}`) and {b} (`{second}`), {um:.2} um apart")
    }
}

/// Pairs of figures or mimickers of one image whose centres are closer than a distance. Of more than two at one place
/// every further one makes one pair. Labels that are left out as repeats, or named as one place with two labels, are
/// not among them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CloseLabels {
    /// The distance, um.
    pub closer_than_um: f64,
    /// um/px of images for which none is known; absent where all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_mpp: Option<f64>,
    /// How many pairs there are.
    pub pairs: usize,
    /// The first of them.
    pub first: Vec<ClosePair>,
    /// File of the labels.
    #[serde(skip)]
    file: Option<String>,
}

impl fmt::Display for CloseLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, um) = (self.pairs, self.closer_than_um);
        let are = if n == 1 { "pair of labels is" } else { "pairs of labels are" };
        write!(f, "{n:>9} {are} closer than {um} um (kept)")?;
        if let Some(mpp) = self.assumed_mpp {
            write!(f, ", at {mpp} um/px where none is known")?;
        }
        let file = self.file.as_ref().map_or_else(String::new, |file| format!("{file}, "));
        for (i, pair) in self.first.iter().take(PRINTED).enumerate() {
            match i {
                0 => writeln!(f, ": first at {file}{pair}")?,
                _ => writeln!(f, "          {pair}")?,
            }
        }
        Ok(())
    }
}

/// A label, in um.
pub(crate) struct Mark {
    pub image: usize,
    pub at: [f64; 2],
    pub is_figure: bool,
}

/// The earlier mark that each one is close to, if any.
fn close_pairs(marks: &[Mark]) -> Vec<[usize; 2]> {
    // Two of one square are closer than the distance, and those two squares away may be.
    const SIDE_UM: f64 = ONE_CELL_UM / 1.5;
    let distance = |a: &Mark, b: &Mark| (a.at[0] - b.at[0]).hypot(a.at[1] - b.at[1]);
    let mut squares: HashMap<(usize, [i64; 2]), Vec<usize>> = HashMap::new();
    let mut pairs = Vec::new();
    for (number, mark) in marks.iter().enumerate() {
        #[expect(clippy::cast_possible_truncation, reason = "squares of an image")]
        let square = mark.at.map(|v| (v / SIDE_UM).floor() as i64);
        let is_close = |other: &&usize| {
            let (other, um) = (&marks[**other], distance(&marks[**other], mark));
            let is_contradiction = um == 0.0 && other.is_figure != mark.is_figure;
            um < ONE_CELL_UM && !is_contradiction
        };
        let within = |[x, y]: [i64; 2]| {
            let [x, y] = [square[0].saturating_add(x), square[1].saturating_add(y)];
            squares.get(&(mark.image, [x, y]))?.iter().take(COMPARED).find(is_close)
        };
        let around = || (-2..=2).flat_map(|x| (-2..=2).map(move |y| [x, y])).filter_map(within);
        if let Some(first) = within([0, 0]).or_else(|| around().min()) {
            pairs.push([*first, number]);
        }
        squares.entry((mark.image, square)).or_default().push(number);
    }
    pairs
}

impl CloseLabels {
    /// The pairs, if there are some; `pair` describes one.
    pub(crate) fn among(marks: &[Mark], pair: impl Fn([usize; 2]) -> ClosePair) -> Option<Self> {
        let pairs = close_pairs(marks);
        let first = pairs.iter().take(LISTED).map(|[a, b]| {
            let um = [0, 1].map(|axis| marks[*a].at[axis] - marks[*b].at[axis]);
            ClosePair { um: um[0].hypot(um[1]), ..pair([*a, *b]) }
        });
        let first: Vec<_> = first.collect();
        let (closer_than_um, pairs) = (ONE_CELL_UM, pairs.len());
        (pairs > 0).then_some(Self { closer_than_um, assumed_mpp: None, pairs, first, file: None })
    }
}

impl Annotations {
    /// Figures and mimickers that may be of one cell, by the um/px of their image.
    #[must_use]
    pub fn close_labels(&self, mpp: impl Fn(usize) -> Option<[f64; 2]>) -> Option<CloseLabels> {
        let repeats = self.repeats();
        let counts = |a: &Annotation| matches!(a.class, Class::MitoticFigure | Class::Mimicker);
        let numbered = self.annotations.iter().enumerate();
        let all = numbered.filter(|(i, a)| counts(a) && !repeats.contains_key(i));
        let all: Vec<&Annotation> = all.map(|(_, a)| a).collect();
        let mut known: BTreeMap<usize, Option<[f64; 2]>> = BTreeMap::new();
        let marks: Vec<Mark> = all
            .iter()
            .map(|a| {
                let own = *known.entry(a.image).or_insert_with(|| mpp(a.image));
                let [x, y] = own.unwrap_or([Mpp::PAPER.get(); 2]);
                let at = [a.centre.x * x, a.centre.y * y];
                Mark { image: a.image, at, is_figure: a.class == Class::MitoticFigure }
            })
            .collect();
        let close = CloseLabels::among(&marks, |pair| {
            let [a, b] = pair.map(|i| all[i]);
            ClosePair {
                image: self.images[a.image].name.clone(),
                records: [a.record.clone(), b.record.clone()],
                categories: [a.category.clone(), b.category.clone()],
                um: 0.0,
            }
        })?;
        let assumed = known.values().any(Option::is_none).then_some(Mpp::PAPER.get());
        let file = self.file.file_name().map(|name| name.to_string_lossy().into_owned());
        Some(CloseLabels { assumed_mpp: assumed, file, ..close })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(at: &[[f64; 2]]) -> Vec<Mark> {
        at.iter().map(|at| Mark { image: 0, at: *at, is_figure: true }).collect()
    }

    #[test]
    fn every_further_label_of_one_place_is_one_pair() {
        let pairs = |at: &[[f64; 2]]| close_pairs(&marks(at));
        assert_eq!(pairs(&[[10.0, 10.0], [10.25, 10.0]]), [[0, 1]]);
        assert_eq!(
            pairs(&[[10.0, 10.0], [30.0, 10.0], [10.0, 10.0], [10.5, 10.0]]),
            [[0, 2], [0, 3]]
        );
        // The distance itself is apart, in every direction and across the squares.
        for angle in 0..24 {
            let (sin, cos) = (f64::from(angle) * std::f64::consts::TAU / 24.0).sin_cos();
            for start in [[100.0, 50.0], [3.9, 4.2], [0.0, 0.0]] {
                let at = |um: f64| [start, [start[0] + um * cos, start[1] + um * sin]];
                assert_eq!(pairs(&at(6.24)).len(), 1, "{angle}, {start:?}");
                assert_eq!(pairs(&at(6.26)).len(), 0, "{angle}, {start:?}");
            }
        }
        let mut two = marks(&[[1.0, 1.0], [1.0, 1.0]]);
        two[1].image = 1;
        assert!(close_pairs(&two).is_empty(), "two images");
        let mut two = marks(&[[1.0, 1.0], [1.0, 1.0]]);
        two[1].is_figure = false;
        assert!(close_pairs(&two).is_empty(), "named as one place with two labels");
        two[1].at[0] = 1.25;
        assert_eq!(close_pairs(&two).len(), 1);
    }

    #[test]
    fn all_of_a_crowd_are_close() {
        let crowd: Vec<[f64; 2]> = (0..200_000).map(|i| [f64::from(i % 997) * 1e-4, 1.0]).collect();
        assert_eq!(close_pairs(&marks(&crowd)).len(), crowd.len() - 1);
    }
}
