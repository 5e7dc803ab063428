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
    spelled(table, rows, column, bare)
}

/// The same, of texts that `plain` makes equal.
fn spelled(
    table: &Table,
    rows: &[usize],
    column: usize,
    plain: fn(&str) -> String,
) -> Option<String> {
    let mut of: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for (text, n) in counts(table, rows, column) {
        of.entry(plain(text)).or_default().push((text, n));
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

/// A note on patients whose names are one but for case, blanks or leading zeros: they count as different ones.
pub(super) fn patients_apart(table: &Table, rows: &[usize], column: usize) -> Option<String> {
    Some(apart(table, column, &spelled(table, rows, column, identifier)?))
}

/// Most digits of a number that a float holds exactly.
const EXACT_DIGITS: usize = 15;

/// A name of a patient without what spellings of one differ by: as of a category, and zeros before a number.
fn identifier(name: &str) -> String {
    let digits = name.chars().filter(char::is_ascii_digit).count();
    // 12e400 is a name, and so are more digits than a float holds.
    let number = name.trim().parse::<f64>().is_ok();
    let inexact = number && (digits > EXACT_DIGITS || name.contains(char::is_alphabetic));
    let text = if inexact { name.trim().to_lowercase() } else { bare(name) };
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let inside = out.ends_with(|b: char| b.is_ascii_digit() || b == '.' || b == ',');
        let zero = c == '0' && !inside && letters.peek().is_some_and(char::is_ascii_digit);
        if !zero {
            out.push(c);
        }
    }
    out
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

    #[test]
    fn patients_spelt_in_two_ways_are_named() {
        for (one, other) in
            [("P00", "p00"), ("007", "7"), ("P007", "P7"), ("12", "12.0"), ("p 1", "P_1")]
        {
            let t = Table::parse(Path::new("t.csv"), format!("p\n{one}\n{other}\nx\n").as_bytes());
            let note = patients_apart(&t.unwrap(), &[0, 1, 2], 0).unwrap();
            assert!(note.contains(&format!("'{one}' (1)")), "{note}");
            assert!(note.contains(&format!("'{other}' (1)")), "{note}");
        }
        for other in ["P10", "1.05", "1e999", "12345678901234567890", "A100"] {
            let text = "p\nP1\n1.5\n2e999\n12345678901234567891\nA10\n".to_owned() + other + "\n";
            let t = Table::parse(Path::new("t.csv"), text.as_bytes()).unwrap();
            assert_eq!(patients_apart(&t, &[0, 1, 2, 3, 4, 5], 0), None);
        }
    }
}
