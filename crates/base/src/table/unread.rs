//! Columns that nobody looked for, so that a name that is spelled otherwise is not passed over in silence.

use super::vocabulary::normal;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What has been looked for in a table by the names of its columns.
#[derive(Debug, Default)]
pub struct Lookups(Mutex<Lookup>);

#[derive(Clone, Debug, Default)]
struct Lookup {
    /// Columns that were found.
    read: BTreeSet<usize>,
    /// Names of which no column was found.
    absent: BTreeSet<String>,
}

impl Clone for Lookups {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }
}

impl Lookups {
    fn lock(&self) -> MutexGuard<'_, Lookup> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the column that was found by one of these names, or that none was.
    pub fn note(&self, names: &[&str], found: Option<usize>) {
        let mut known = self.lock();
        match found {
            Some(column) => drop(known.read.insert(column)),
            None => {
                let new = names.iter().filter(|name| !known.absent.contains(**name));
                let new: Vec<String> = new.map(|name| (*name).to_owned()).collect();
                known.absent.extend(new);
            }
        }
    }

    /// The columns of a table that were not looked for, or of these only those whose names are nearly one that was
    /// looked for and not found.
    #[must_use]
    pub fn unread(&self, path: &Path, names: &[String], only_near: bool) -> Option<Unread> {
        let known = self.lock();
        let named = names.iter().enumerate().filter(|(_, name)| !normal(name).is_empty());
        let idle = named.filter(|(column, _)| !known.read.contains(column));
        let meant = |name: &str| {
            let near = known.absent.iter().filter_map(|w| Some((nearness(name, w)?, w)));
            near.min().map(|(_, wanted)| wanted.clone())
        };
        let all = idle.map(|(_, name)| UnreadColumn { name: name.clone(), meant: meant(name) });
        let mut columns: Vec<_> = all.filter(|c| !only_near || c.meant.is_some()).collect();
        columns.sort_by_key(|c| c.meant.is_none());
        let count = columns.len();
        columns.truncate(NAMED);
        (count > 0).then(|| Unread { path: path.to_owned(), count, columns })
    }
}

/// Columns that are named; the rest is counted.
const NAMED: usize = 5;

/// A column that is not read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct UnreadColumn {
    /// Its name.
    pub name: String,
    /// The name that may be meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meant: Option<String>,
}

/// Columns of a table that are not read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unread {
    #[serde(skip)]
    path: PathBuf,
    /// How many there are.
    pub count: usize,
    /// The first of them; those that may be misspelt come first.
    pub columns: Vec<UnreadColumn>,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.columns.iter().map(|c| match &c.meant {
            Some(meant) => format!("`{}` (is `{meant}` meant?)", c.name),
            None => format!("`{}`", c.name),
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        write!(f, "{}: ", self.path.display())?;
        match self.count {
            1 => write!(f, "1 column is not read: {shown}"),
            n if n > self.columns.len() => write!(f, "{n} columns are not read: {shown}, ..."),
            n => write!(f, "{n} columns are not read: {shown}"),
        }
    }
}

/// By how many letters a name differs from another one that may be meant: the same but for a letter or two, or with a
/// short ending, as `patient_id` for `patient`. Of short names a letter makes another word.
fn nearness(name: &str, wanted: &str) -> Option<usize> {
    let (name, wanted) = (normal(name), normal(wanted));
    let (a, b): (Vec<char>, Vec<char>) = (name.chars().collect(), wanted.chars().collect());
    let (short, long) = if a.len() < b.len() { (&a, &b) } else { (&b, &a) };
    let edits = match short.len() {
        0..=3 => 0,
        4..=6 => 1,
        _ => 2,
    };
    let more = long.len() - short.len();
    if more <= 2 && short.len() > 2 && long.starts_with(short) {
        return Some(more);
    }
    // Who misspells a word knows how it begins, and `include` is not `exclude`.
    let compared = a.first() == b.first() && more <= edits;
    compared.then(|| distance(&a, &b)).filter(|letters| *letters <= edits)
}

/// Letters to change, add, leave out or swap with the next one to make one word of another.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows: [Vec<usize>; 3] = [vec![], (0..=b.len()).collect(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        rows[2] = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            rows[2][j] = change.min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                rows[2][j] = rows[2][j].min(rows[0][j - 2] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Table};
    use super::*;

    #[test]
    fn names_that_are_nearly_one_are_near() {
        for (name, wanted) in [
            ("patient_id", "patient"),
            ("mpp_um", "mpp"),
            ("Um per px", "um_per_px"),
            ("um_per_xp", "um_per_px"),
            ("subtpye", "subtype"),
            ("tumor_typ", "tumor_type"),
            ("cohorts", "cohort"),
            ("Status", "status"),
        ] {
            let both = [nearness(name, wanted), nearness(wanted, name)];
            assert!(both.iter().all(Option::is_some), "{name}, {wanted}: {both:?}");
        }
        for (name, wanted) in [
            ("age", "case"),
            ("include", "exclude"),
            ("x", "y"),
            ("id", "uid"),
            ("grade", "gender"),
            ("state", "site"),
            ("os", "os_months"),
            ("t", "e"),
        ] {
            let both = [nearness(name, wanted), nearness(wanted, name)];
            assert_eq!(both, [None; 2], "{name}, {wanted}");
        }
    }

    #[test]
    fn columns_that_nobody_looked_for_are_named_once() {
        let text = "slide,x_px,Patient ID,a,b,c,d,e,mpp\n1,2,3,4,5,6,7,8,9\n";
        let table = Table::parse(Path::new("t.csv"), text.as_bytes(), &Format::default()).unwrap();
        table.need(&["slide"]).unwrap();
        assert_eq!(table.find(&["x", "x_px"]), Some(1));
        assert_eq!(table.find(&["patient"]), None);
        assert_eq!(table.family("mp", "").len(), 1);
        let unread = table.unread().unwrap();
        assert_eq!(
            unread.to_string(),
            "t.csv: 6 columns are not read: `Patient ID` (is `patient` meant?), `a`, `b`, `c`, `d`, ..."
        );
        let only = table.misspelt().unwrap().to_string();
        assert_eq!(only, "t.csv: 1 column is not read: `Patient ID` (is `patient` meant?)");
        let json = serde_json::to_string(&table.clone().misspelt()).unwrap();
        let columns = r#"[{"name":"Patient ID","meant":"patient"}]"#;
        assert_eq!(json, format!(r#"{{"count":1,"columns":{columns}}}"#));
        (3..8).for_each(|column| table.mark_read(column));
        assert_eq!(table.find(&["patient", "patient_id"]), Some(2));
        assert_eq!((table.unread(), table.misspelt()), (None, None));
        // Of two, the nearer one.
        let text = "slide,tumour_typ\n1,2\n";
        let table = Table::parse(Path::new("t.csv"), text.as_bytes(), &Format::default()).unwrap();
        assert_eq!(table.find(&["tumor_type", "tumour_type"]), None);
        assert_eq!(table.misspelt().unwrap().columns[0].meant.as_deref(), Some("tumour_type"));
    }
}
