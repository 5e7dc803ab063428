//! Texts of a category that may not be what they seem: two spellings of one level, and words for "missing".

use crate::error::Error;
use crate::table::Table;
use base::remedy::Setting;
use base::table::{bare, may_mean_missing};
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

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
