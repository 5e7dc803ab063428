//! Places of one slide: which of them mean one cell. Keys are exact to 0.01 px, a hand is not.

use super::review::{Entry, Verdict};
use mithras::export::CountsFile;
use mithras::record::DetectionRow;
use mitosis::matching::PAPER_RADIUS;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Places on a slide, to look up those within [`PAPER_RADIUS`] of another.
pub(super) struct Nearby {
    /// Level-0 px.
    at: Vec<[f64; 2]>,
    /// um/px across and down.
    mpp: [f64; 2],
    /// Indices by square of the radius.
    cells: HashMap<[i64; 2], Vec<usize>>,
}

impl Nearby {
    pub(super) fn new(at: Vec<[f64; 2]>, mpp: [f64; 2]) -> Self {
        let mut all = Self { at, mpp, cells: HashMap::new() };
        for (i, place) in all.at.iter().enumerate() {
            all.cells.entry(cell(*place, mpp)).or_default().push(i);
        }
        all
    }

    /// The candidates of a slide, by row.
    pub(super) fn candidates(counts: &CountsFile, rows: &[DetectionRow]) -> Self {
        let at = rows.iter().map(|r| [r.x_px, r.y_px]).collect();
        Self::new(at, [counts.resolution.x, counts.resolution.y])
    }

    /// um between a place of these and another.
    pub(super) fn distance(&self, i: usize, at: [f64; 2]) -> f64 {
        let [x, y] = self.at[i];
        ((x - at[0]) * self.mpp[0]).hypot((y - at[1]) * self.mpp[1])
    }

    /// Those within the radius of a place.
    fn within(&self, at: [f64; 2]) -> impl Iterator<Item = usize> {
        let [x, y] = cell(at, self.mpp);
        let square = move |(dx, dy)| [x.saturating_add(dx), y.saturating_add(dy)];
        let around = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy))).map(square);
        let all = around.filter_map(|c| self.cells.get(&c)).flatten().copied();
        all.filter(move |&i| self.distance(i, at) <= PAPER_RADIUS.0)
    }

    /// The nearest within the radius of a place.
    pub(super) fn nearest(&self, at: [f64; 2]) -> Option<usize> {
        let by = |i: &usize| self.distance(*i, at);
        self.within(at).min_by(|a, b| by(a).total_cmp(&by(b)).then(a.cmp(b)))
    }

    /// For each of these the first that means the same cell: nearest pairs are joined first, and every two of a group
    /// are within the radius of each other.
    fn groups(&self) -> Vec<usize> {
        let pairs_from =
            |i: usize| self.within(self.at[i]).filter(move |&j| i < j).map(move |j| (i, j));
        let mut pairs: Vec<(usize, usize)> = (0..self.at.len()).flat_map(pairs_from).collect();
        let apart = |(i, j): &(usize, usize)| self.distance(*i, self.at[*j]);
        pairs.sort_by(|a, b| apart(a).total_cmp(&apart(b)).then(a.cmp(b)));
        let mut first: Vec<usize> = (0..self.at.len()).collect();
        let mut members: Vec<Vec<usize>> = first.iter().map(|&i| vec![i]).collect();
        for (i, j) in pairs {
            let (a, b) = (first[i].min(first[j]), first[i].max(first[j]));
            let near = |p: usize, q: usize| self.distance(p, self.at[q]) <= PAPER_RADIUS.0;
            if a == b || !members[a].iter().all(|&p| members[b].iter().all(|&q| near(p, q))) {
                continue;
            }
            let moved = std::mem::take(&mut members[b]);
            moved.iter().for_each(|&q| first[q] = a);
            members[a].extend(moved);
        }
        first
    }
}

/// The square of a place; squares are as wide as the radius.
fn cell(at: [f64; 2], mpp: [f64; 2]) -> [i64; 2] {
    let side = |v: f64, mpp: f64| (v * mpp / PAPER_RADIUS.0).floor() as i64;
    [side(at[0], mpp[0]), side(at[1], mpp[1])]
}

/// Verdicts of reviewers on a slide, with one key for each place.
#[derive(Clone, Debug, Default)]
pub(super) struct Joined {
    /// The verdict of each on each place, by reviewer and key of the place.
    pub by: BTreeMap<String, BTreeMap<String, Entry>>,
    /// The key of the place, by key of an entry.
    pub keys: BTreeMap<String, String>,
    /// Added figures that are at another place than their own: a candidate, or another added figure.
    pub joined: usize,
}

impl Joined {
    /// All verdicts on each place, by reviewer.
    pub(super) fn places(&self) -> BTreeMap<&str, BTreeMap<&str, &Entry>> {
        let mut all: BTreeMap<&str, BTreeMap<&str, &Entry>> = BTreeMap::new();
        for (name, own) in &self.by {
            for (key, entry) in own {
                all.entry(key).or_default().insert(name, entry);
            }
        }
        all
    }
}

fn counts(entry: &Entry) -> Option<bool> {
    entry.verdict.and_then(Verdict::counts)
}

/// Puts verdicts on one place together. An added figure near a candidate is a verdict on the candidate, unless its
/// reviewer decided that candidate, too; added figures near each other are one. `logs` are in the order of their
/// lines; without `candidates` only what has the same key is one place.
pub(super) fn join(logs: &BTreeMap<String, Vec<Entry>>, candidates: Option<&Nearby>) -> Joined {
    let entries = || logs.values().flatten();
    let added: BTreeMap<&str, &Entry> =
        entries().filter(|e| e.added).map(|e| (e.key.as_str(), e)).collect();
    let places = match candidates {
        Some(candidates) => places_of(logs, &added, candidates),
        None => added.iter().map(|(key, e)| (*key, (*e).clone())).collect(),
    };
    let mut all = Joined::default();
    for (name, own) in logs {
        let here = all.by.entry(name.clone()).or_default();
        for e in own.iter().filter(|e| !e.added) {
            here.insert(e.key.clone(), e.clone());
        }
        let decided = own.iter().filter(|e| !e.added && counts(e).is_some());
        let decided: BTreeSet<&str> = decided.map(|e| e.key.as_str()).collect();
        for (e, place) in own.iter().filter_map(|e| Some((e, places.get(e.key.as_str())?))) {
            let takes = match (place.added, counts(e)) {
                // She deleted a figure of her own: the candidate, or her other one, is as it was.
                (false, Some(false) | None) => false,
                (true, Some(false) | None) => !here.contains_key(&place.key),
                (false, Some(true)) => !decided.contains(place.key.as_str()),
                (true, Some(true)) => true,
            };
            if takes {
                let (key, added) = (place.key.clone(), place.added);
                here.insert(key.clone(), Entry { key, added, x: place.x, y: place.y, ..e.clone() });
            }
        }
    }
    let moved = |e: &&Entry| places.get(e.key.as_str()).is_some_and(|p| p.key != e.key);
    let figures = entries().filter(|e| e.added && counts(e) == Some(true)).filter(moved);
    all.joined = figures.map(|e| e.key.as_str()).collect::<BTreeSet<_>>().len();
    let place = |e: &Entry| places.get(e.key.as_str()).map_or(&e.key, |p| &p.key).clone();
    all.keys = entries().map(|e| (e.key.clone(), place(e))).collect();
    all
}

/// The place of each added figure: a candidate, or the first of the added figures that are one.
fn places_of<'a>(
    logs: &BTreeMap<String, Vec<Entry>>,
    added: &BTreeMap<&'a str, &Entry>,
    candidates: &Nearby,
) -> BTreeMap<&'a str, Entry> {
    let near: BTreeMap<&str, usize> =
        added.iter().filter_map(|(k, e)| Some((*k, candidates.nearest([e.x, e.y])?))).collect();
    let key = |i: usize| Entry::place_key(candidates.at[i][0], candidates.at[i][1]);
    // Who rejects a candidate and adds a figure near it means two cells.
    let mut two: BTreeSet<usize> = BTreeSet::new();
    for own in logs.values() {
        let is_no = |e: &&Entry| !e.added && counts(e) == Some(false);
        let rejected: BTreeSet<&str> = own.iter().filter(is_no).map(|e| e.key.as_str()).collect();
        let figures = own.iter().filter(|e| e.added && counts(e) == Some(true));
        let at = figures.filter_map(|e| near.get(e.key.as_str()));
        two.extend(at.filter(|i| rejected.contains(key(**i).as_str())));
    }
    let candidate = |k: &str| near.get(k).filter(|i| !two.contains(*i));
    let free: Vec<(&str, &Entry)> =
        added.iter().filter(|(k, _)| candidate(k).is_none()).map(|(k, e)| (*k, *e)).collect();
    let groups =
        Nearby::new(free.iter().map(|(_, e)| [e.x, e.y]).collect(), candidates.mpp).groups();
    let mut all: BTreeMap<&'a str, Entry> = BTreeMap::new();
    for (k, e) in added {
        if let Some(&i) = candidate(k) {
            let [x, y] = candidates.at[i];
            all.insert(k, Entry { key: key(i), x, y, added: false, ..(*e).clone() });
        }
    }
    for (own, first) in groups.into_iter().enumerate() {
        if let Some((k, _)) = added.get_key_value(free[own].0) {
            all.insert(k, free[first].1.clone());
        }
    }
    all
}
