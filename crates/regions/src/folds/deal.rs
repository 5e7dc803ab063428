//! From items to groups, and from groups to folds.

use super::{FoldsError, Group, Place, Result, Scheme};
use base::table::Unmatched;
use crops::slide_name::bare;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What a unit adds to a stratum.
#[derive(Clone, Debug)]
pub struct Stratum {
    /// Name of the stratum.
    pub name: String,
    /// Objects or items.
    pub count: u64,
}

/// One image or crop, as folds see it.
#[derive(Clone, Debug)]
pub struct Unit<'a> {
    /// The slide it was cut from.
    pub slide: &'a str,
    /// The patient, when known.
    pub patient: Option<&'a str>,
    /// Digest of its content: items of one digest stay together.
    pub copy: Option<&'a str>,
    /// Digest of its pixels, where that is another one: as above.
    pub pixels: Option<&'a str>,
    /// What it adds to which strata; every fold gets its share of each.
    pub strata: Vec<Stratum>,
    /// Objects of the positive class in it.
    pub figures: u64,
    /// Whether it is test data.
    pub test: bool,
    /// Whether a model can be validated on it.
    pub validates: bool,
}

/// Which of the folds that are equally far below their share gets a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Equal {
    /// The one with the fewest groups.
    Fewest,
    /// The first version: keeps the folds of tasks, and results based on them, unchanged.
    First,
}

type Table = BTreeMap<String, f64>;

#[derive(Default)]
struct Pile {
    slides: BTreeSet<String>,
    patients: BTreeSet<String>,
    strata: Table,
    items: u64,
    figures: u64,
    tests: u64,
    validates: bool,
}

/// Joins what shares a slide, a patient, all bytes or all pixels; sorted by name, whatever the order of the data.
fn piles(units: &[Unit<'_>]) -> Vec<Pile> {
    let mut parent: Vec<usize> = (0..units.len()).collect();
    fn root(parent: &mut [usize], mut i: usize) -> usize {
        while parent[i] != i {
            parent[i] = parent[parent[i]];
            i = parent[i];
        }
        i
    }
    let mut seen: HashMap<(u8, &str), usize> = HashMap::new();
    for (i, u) in units.iter().enumerate() {
        let keys = [
            Some((0, bare(u.slide))),
            u.patient.map(|p| (1, p)),
            u.copy.map(|c| (2, c)),
            u.pixels.map(|c| (3, c)),
        ];
        for key in keys.into_iter().flatten() {
            let first = *seen.entry(key).or_insert(i);
            let (a, b) = (root(&mut parent, first), root(&mut parent, i));
            parent[a.max(b)] = a.min(b);
        }
    }
    let mut out: BTreeMap<usize, Pile> = BTreeMap::new();
    for (i, u) in units.iter().enumerate() {
        let pile = out.entry(root(&mut parent, i)).or_default();
        pile.slides.insert(u.slide.to_owned());
        pile.patients.extend(u.patient.map(str::to_owned));
        pile.items += 1;
        pile.figures += u.figures;
        pile.tests += u64::from(u.test);
        pile.validates |= u.validates;
        for Stratum { name, count } in &u.strata {
            #[expect(clippy::cast_precision_loss, reason = "counts")]
            let n = *count as f64;
            *pile.strata.entry(name.clone()).or_default() += n;
        }
    }
    let mut piles: Vec<Pile> = out.into_values().collect();
    piles.sort_by_key(Pile::name);
    piles
}

impl Pile {
    fn name(&self) -> String {
        self.patients.first().or(self.slides.first()).cloned().unwrap_or_default()
    }

    fn group(self, place: Place) -> Group {
        Group {
            name: self.name(),
            slides: self.slides.into_iter().collect(),
            patients: self.patients.into_iter().collect(),
            place,
            items: self.items,
            figures: self.figures,
        }
    }
}

/// Names of the folds, and every group with its place.
pub(super) fn deal(
    units: Vec<Unit<'_>>,
    scheme: Scheme,
    equal: Equal,
    seed: u64,
) -> Result<(Vec<String>, Vec<Group>)> {
    let piles = piles(&units);
    for p in &piles {
        if p.tests != 0 && p.tests != p.items {
            return Err(FoldsError::Invalid(format!(
                "group `{}` is partly test or calibration data ({} of {}); no fold can keep it whole",
                p.name(),
                p.tests,
                p.items
            )));
        }
    }
    let able: Vec<usize> =
        (0..piles.len()).filter(|&i| piles[i].tests == 0 && piles[i].validates).collect();
    let wanted = match scheme {
        Scheme::Stratified(k) => k,
        Scheme::LeaveOneOut => able.len(),
        Scheme::Whole => 0,
        Scheme::Given => {
            return Err(FoldsError::Invalid("folds by a table are not dealt".into()));
        }
    };
    if scheme != Scheme::Whole && (wanted < 2 || able.len() < wanted) {
        return Err(FoldsError::Invalid(format!(
            "{wanted} folds of {} groups that can validate: at least 2 folds and one group each \
             are needed",
            able.len()
        )));
    }
    let (names, of): (Vec<String>, BTreeMap<usize, usize>) = match scheme {
        Scheme::Stratified(k) => {
            // What cannot validate is dealt after the rest: a fold holds out its share of that, too.
            let rest = (0..piles.len()).filter(|&i| piles[i].tests == 0 && !piles[i].validates);
            let names = (0..k).map(|i| i.to_string()).collect();
            (names, stratified(&piles, [able, rest.collect()], k, equal, seed))
        }
        Scheme::LeaveOneOut => (
            able.iter().map(|&i| piles[i].name()).collect(),
            able.iter().enumerate().map(|(k, &i)| (i, k)).collect(),
        ),
        Scheme::Whole | Scheme::Given => (vec![], BTreeMap::new()),
    };
    let place = |(i, p): (usize, Pile)| {
        let place = match of.get(&i) {
            Some(&k) => Place::Fold(k),
            None if p.tests > 0 => Place::Test,
            None => Place::Train,
        };
        p.group(place)
    };
    Ok((names, piles.into_iter().enumerate().map(place).collect()))
}

/// Words of a table that do not name a fold.
const TRAIN: [&str; 2] = ["train", "training"];
const TEST: [&str; 2] = ["test", "testing"];

/// A table's words for slides and for patients.
pub(super) type Words<'a> = [HashMap<&'a str, &'a str>; 2];

/// Names of the folds, in order, and every group where a table puts its slides or patients.
pub(super) fn by_table(
    units: &[Unit<'_>],
    words: &Words<'_>,
) -> std::result::Result<(Vec<String>, Vec<Group>), String> {
    let mut names: Vec<&str> = words
        .iter()
        .flat_map(HashMap::values)
        .copied()
        .collect::<HashSet<_>>()
        .into_iter()
        .collect();
    names.retain(|n| !TRAIN.contains(n) && !TEST.contains(n));
    // Numbers in their order, then words.
    names.sort_by_key(|n| (n.parse::<u64>().unwrap_or(u64::MAX), *n));
    if names.len() < 2 {
        return Err(format!(
            "{} folds; at least two names besides `train` and `test` are needed",
            names.len()
        ));
    }
    let (mut groups, mut missing) = (vec![], vec![]);
    for pile in piles(units) {
        let [slides, patients] = words;
        let by_slide = pile.slides.iter().filter_map(|n| slides.get(n.as_str()));
        let by_patient = pile.patients.iter().filter_map(|n| patients.get(n.as_str()));
        let mut own: Vec<&str> = by_slide.chain(by_patient).copied().collect();
        own.sort_unstable();
        own.dedup();
        let place = match own[..] {
            [] => {
                missing.push(pile.name());
                continue;
            }
            [word] if TEST.contains(&word) => Place::Test,
            [word] if TRAIN.contains(&word) => Place::Train,
            [word] => Place::Fold(names.iter().position(|n| *n == word).unwrap_or_default()),
            _ => {
                return Err(format!(
                    "group `{}` (slides that share a patient or an image) is in {}; it has to stay whole",
                    pile.name(),
                    own.join(" and ")
                ));
            }
        };
        if pile.tests > 0 && place != Place::Test {
            return Err(format!(
                "group `{}` is test data and cannot be in `{}`",
                pile.name(),
                own[0]
            ));
        }
        groups.push(pile.group(place));
    }
    if let Some(first) = missing.first() {
        // A name of the table that the data lack was refused before.
        let alone: Vec<&str> = missing.iter().map(String::as_str).collect();
        let join = Unmatched::from_keys(("the data", "the table"), &alone, &[])
            .map_or_else(String::new, |j| format!("; {j}"));
        return Err(format!("{} groups are not in the table, e.g. `{first}`{join}", missing.len()));
    }
    Ok((names.into_iter().map(str::to_owned).collect(), groups))
}

/// Deals the groups that can validate and then the others, those that bring most first, each to the fold furthest
/// below its share of what the group brings; equal ones in an order drawn from the seed.
fn stratified(
    piles: &[Pile],
    groups: [Vec<usize>; 2],
    k: usize,
    equal: Equal,
    seed: u64,
) -> BTreeMap<usize, usize> {
    let per_group = if equal == Equal::Fewest { 1e-9 } else { 0.0 };
    let mut total = Table::new();
    for &i in groups.iter().flatten() {
        for (key, n) in &piles[i].strata {
            *total.entry(key.clone()).or_default() += n;
        }
    }
    let share = |key: &str| total.get(key).copied().filter(|t| *t > 0.0).unwrap_or(1.0);
    let weight = |i: usize| piles[i].strata.iter().map(|(key, n)| n / share(key)).sum::<f64>();
    let last = groups[0].len();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let order = groups.map(|mut part| {
        part.shuffle(&mut rng);
        part.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
        part
    });
    let mut have: Vec<(Table, usize)> = vec![(Table::new(), 0); k];
    let mut of = BTreeMap::new();
    for (n, i) in order.into_iter().flatten().enumerate() {
        // The rise of the squared excess over each stratum's share.
        let cost = |(table, groups): &(Table, usize)| -> f64 {
            let rise = |(key, n): (&String, &f64)| {
                let now = table.get(key).copied().unwrap_or(0.0);
                ((now + n).powi(2) - now.powi(2)) / share(key)
            };
            #[expect(clippy::cast_precision_loss, reason = "counts")]
            let groups = *groups as f64;
            piles[i].strata.iter().map(rise).sum::<f64>() + per_group * groups
        };
        // As many folds empty as groups left that can validate: no fold may stay without one.
        let empty = have.iter().filter(|h| h.1 == 0).count();
        let must = n < last && empty == last - n;
        let best = (0..k)
            .filter(|&f| !must || have[f].1 == 0)
            .min_by(|&a, &b| cost(&have[a]).total_cmp(&cost(&have[b])))
            .unwrap_or_default();
        of.insert(i, best);
        have[best].1 += 1;
        for (key, n) in &piles[i].strata {
            *have[best].0.entry(key.clone()).or_default() += n;
        }
    }
    of
}
