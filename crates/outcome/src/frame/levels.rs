//! Texts of a category that may not be what they seem: two spellings of one level, and words for "missing"; numbers
//! that may be codes for it.

use crate::error::Error;
use crate::table::Table;
use base::remedy::Setting;
use base::table::{bare, may_be_code, may_mean_missing};
use std::collections::BTreeMap;

/// How often each text of a column occurs.
fn counts<'a>(table: &'a Table, rows: &[usize], column: usize) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for cell in rows.iter().filter_map(|&r| table.cell(r, column)) {
        *counts.entry(cell).or_insert(0) += 1;
    }
    counts
}

fn listed<'a>(counts: impl Iterator<Item = (&'a str, usize)>) -> String {
    counts.map(|(text, n)| format!("'{text}' ({n})")).collect::<Vec<_>>().join(", ")
}

/// The first texts of a column that differ by no more than case, blanks or the form of a number, with their counts.
pub(super) fn spellings(table: &Table, rows: &[usize], column: usize) -> Option<String> {
    let mut of: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for (text, n) in counts(table, rows, column) {
        of.entry(bare(text)).or_default().push((text, n));
    }
    let several = of.into_values().find(|texts| texts.len() > 1)?;
    Some(listed(several.into_iter()))
}

/// A note that they count as different values.
pub(super) fn apart(table: &Table, column: usize, all: &str) -> String {
    format!(
        "values of '{}' that are one but for their spelling count apart: {all}",
        table.names()[column]
    )
}

/// The refusal to take them for different levels of a covariate.
pub(super) fn several(table: &Table, column: usize, all: &str) -> Error {
    let reason = format!(
        "column '{}' spells one value in several ways ({all}); make them one; taken as categorical, they count apart",
        table.names()[column]
    );
    Error::Content { path: table.path().to_owned(), reason, setting: Some(Setting::Categorical) }
}

/// A note on values that may have been meant as missing.
pub(super) fn doubtful(table: &Table, rows: &[usize], column: usize) -> Option<String> {
    let words = counts(table, rows, column).into_iter().filter(|(text, _)| may_mean_missing(text));
    let all = listed(words);
    (!all.is_empty()).then(|| {
        format!(
            "values of '{}' that may mean missing count as values: {all}; what means missing has to be named",
            table.names()[column]
        )
    })
}

/// A number that may be a code for "missing", and how often it occurs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Code {
    value: f64,
    count: usize,
}

/// The numbers of a column that may be codes for "missing": formed as one ([`may_be_code`]) and outside of the range of
/// the others. One that occurs once is further away than the others are wide; no other number is negative next to a
/// negative one.
fn codes(numbers: &[f64]) -> Vec<Code> {
    let (suspects, others): (Vec<f64>, Vec<f64>) = numbers.iter().partition(|v| may_be_code(**v));
    let (low, high) = others
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    let mut found: Vec<Code> = Vec::new();
    for value in suspects {
        match found.iter_mut().find(|c| c.value == value) {
            Some(code) => code.count += 1,
            None => found.push(Code { value, count: 1 }),
        }
    }
    found.retain(|Code { value, count }| {
        let far = (low - value).max(value - high) > high - low;
        match *value {
            // Few values around zero are a scale of their own: -1, 0, 1.
            v if v < 0.0 => low >= 0.0 && high - low > 2.0 && (far || *count > 1 || v < -1.0),
            v => v > high && high > low && (far || *count > 1),
        }
    });
    found.sort_by(|a, b| a.value.total_cmp(&b.value));
    found
}

/// A note on numbers of a column that may have been meant as missing.
pub(super) fn coded(table: &Table, column: usize, numbers: &[f64]) -> Option<String> {
    let found = codes(numbers);
    let all: Vec<String> = found.iter().map(|c| format!("{} ({})", c.value, c.count)).collect();
    (!all.is_empty()).then(|| {
        format!(
            "numbers of '{}' that may be codes for missing count as values: {}; what means missing has to be named",
            table.names()[column],
            all.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn numbers_far_from_the_others_may_be_codes() {
        let of = |numbers: &[f64]| -> Vec<(f64, usize)> {
            codes(numbers).iter().map(|c| (c.value, c.count)).collect()
        };
        let ages: Vec<f64> = (41..80).map(f64::from).collect();
        let with = |more: &[f64]| [&ages[..], more].concat();
        assert_eq!(of(&with(&[999.0, 999.0, -99.0])), [(-99.0, 1), (999.0, 2)]);
        assert_eq!(of(&with(&[999.0])), [(999.0, 1)]);
        assert_eq!(of(&with(&[99.0, 99.0])), [(99.0, 2)]);
        // A person of 88 or 99 years, days of follow-up, scores around zero.
        assert_eq!(of(&with(&[88.0, 99.0])), []);
        assert_eq!(of(&[100.0, 999.0, 999.0, 3000.0]), []);
        assert_eq!(of(&[-1.0, 0.0, 1.0, -1.0]), []);
        assert_eq!(of(&[-3.5, -1.0, 0.2, -1.0, 9.0]), []);
        assert_eq!(of(&[99.0, 99.0]), []);
    }

    #[test]
    fn one_value_in_several_spellings_and_words_for_missing_are_named() {
        let table = |text: &str| Table::parse(Path::new("t.csv"), text.as_bytes()).unwrap();
        let t = table("g\nMale\nmale\nmale\nI-II\nIII\nunknown\nNA\n");
        let rows: Vec<usize> = (0..t.len()).collect();
        assert_eq!(spellings(&t, &rows, 0).unwrap(), "'Male' (1), 'male' (2)");
        assert!(several(&t, 0, "x").to_string().contains("make them one"));
        let note = doubtful(&t, &rows, 0).unwrap();
        assert!(note.contains("'unknown' (1)") && !note.contains("NA"), "{note}");
        let t = table("g\n1\n1.0\n2\n");
        assert_eq!(spellings(&t, &[0, 1, 2], 0).unwrap(), "'1' (1), '1.0' (1)");
        assert_eq!(spellings(&t, &[0, 2], 0), None);
        assert_eq!(doubtful(&t, &[0, 1, 2], 0), None);
    }
}
