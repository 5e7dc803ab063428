//! Regions that share area: a figure there counts in each of them.

use crate::region::Region;
use std::fmt;

/// Most pairs that are named; more are counted.
const NAMED: usize = 10;
/// Smaller ones are borders that were drawn to touch, mm2.
const LEAST_MM2: f64 = 0.000_05;
/// Share of the smaller region from which on it is inside the other.
const INSIDE: f64 = 0.999;

/// Two regions that share area.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    /// The one that is inside the other, where one is; else the earlier one. With its class, if it has one.
    pub first: String,
    /// The other one.
    pub second: String,
    /// What both have, mm2.
    pub mm2: f64,
    /// Whether the first is inside the second.
    pub is_inside: bool,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, mm2, is_inside } = self;
        match is_inside {
            true => write!(f, "region {first} is inside {second} ({mm2:.4} mm2)")?,
            false => write!(f, "regions {first} and {second} overlap in {mm2:.4} mm2")?,
        }
        write!(f, ": figures there count in both, and once in all together")
    }
}

/// The regions that share area on a slide of so many um/px, across and down.
#[must_use]
pub fn overlaps(list: &[Region], mpp: [f64; 2]) -> Vec<Overlap> {
    let named = |r: &Region| match r.class.trim() {
        "" => format!("`{}`", r.name),
        class if class == r.name => format!("`{}`", r.name),
        class => format!("`{}` ({class})", r.name),
    };
    let sized: Vec<_> =
        list.iter().filter_map(|r| Some((r, r.area.bounds()?, r.area.mm2(mpp)))).collect();
    let mut all = Vec::new();
    for (i, (a, (a_low, a_high), a_mm2)) in sized.iter().enumerate() {
        for (b, (b_low, b_high), b_mm2) in &sized[i + 1..] {
            let apart =
                (0..2).any(|axis| a_high[axis] <= b_low[axis] || b_high[axis] <= a_low[axis]);
            let mm2 = if apart { 0.0 } else { a.area.and(&b.area).mm2(mpp) };
            if mm2 < LEAST_MM2 {
                continue;
            }
            let (first, second) = if b_mm2 < a_mm2 { (b, a) } else { (a, b) };
            let is_inside = mm2 >= INSIDE * a_mm2.min(*b_mm2);
            let (first, second) = if is_inside { (first, second) } else { (a, b) };
            all.push(Overlap { first: named(first), second: named(second), mm2, is_inside });
        }
    }
    all
}

/// They as notes, the largest first; of many, the rest is counted.
#[must_use]
pub fn overlap_notes(list: &[Region], mpp: [f64; 2]) -> Vec<String> {
    let mut all = overlaps(list, mpp);
    all.sort_by(|a, b| b.mm2.total_cmp(&a.mm2));
    let mut notes: Vec<String> = all.iter().take(NAMED).map(ToString::to_string).collect();
    if all.len() > NAMED {
        let more: f64 = all[NAMED..].iter().map(|o| o.mm2).sum();
        let n = all.len() - NAMED;
        notes.push(format!("{n} more pairs of regions overlap, {more:.4} mm2 in all"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::Area;

    fn region(name: &str, class: &str, [x0, y0, x1, y1]: [f64; 4]) -> Region {
        Region { name: name.into(), class: class.into(), area: Area::rectangle([x0, y0], [x1, y1]) }
    }

    #[test]
    fn what_is_inside_or_crosses_another_is_named_with_its_size() {
        let list = [
            region("tumour", "Tumour", [0.0, 0.0, 4000.0, 4000.0]),
            region("hot", "Hotspot", [1000.0, 1000.0, 2000.0, 2000.0]),
            region("edge", "", [3600.0, 0.0, 5000.0, 1000.0]),
            // They touch, and a border is drawn by hand.
            region("next", "Stroma", [3999.9, 2000.0, 6000.0, 4000.0]),
            region("far", "Stroma", [9000.0, 9000.0, 9100.0, 9100.0]),
        ];
        let words = "figures there count in both, and once in all together";
        assert_eq!(
            overlap_notes(&list, [0.25, 0.5]),
            [
                format!("region `hot` (Hotspot) is inside `tumour` (Tumour) (0.1250 mm2): {words}"),
                format!("regions `tumour` (Tumour) and `edge` overlap in 0.0500 mm2: {words}"),
            ]
        );
        let mut all = overlaps(&list, [0.25, 0.5]);
        assert!((all.remove(0).mm2 - 0.125).abs() < 1e-9 && all.len() == 1);
    }

    #[test]
    fn of_many_pairs_the_largest_are_named() {
        let at = |k: usize| region(&format!("r{k}"), "", [0.0, 0.0, 1000.0 + k as f64, 1000.0]);
        let list: Vec<Region> = (0..6).map(at).collect();
        let notes = overlap_notes(&list, [0.5, 0.5]);
        assert_eq!(notes.len(), 11);
        assert!(notes[0].starts_with("region `r4` is inside `r5` (0.2510 mm2)"), "{notes:?}");
        assert!(notes[10].starts_with("5 more pairs of regions overlap, 1.2"), "{notes:?}");
    }
}
