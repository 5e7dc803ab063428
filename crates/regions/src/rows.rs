//! Rows of a table of places that are not one object each: those that are marked as left out, and those in which
//! another person has labelled the same object.

use base::table::{Table, yes_no};
use std::collections::HashMap;

/// Columns that mark a row as left out by a yes, alone or behind `is_`, and words of a status that do.
const LEFT_OUT: [&str; 10] = [
    "deleted",
    "ignore",
    "ignored",
    "exclude",
    "excluded",
    "reject",
    "rejected",
    "removed",
    "discarded",
    "invalid",
];
/// Columns that do so by a no.
const KEPT: [&str; 2] = ["valid", "is_valid"];
/// Columns that have a status.
const STATUS: [&str; 3] = ["status", "state", "review_status"];
/// Columns that name the person of a row.
const PERSON: &[&str] =
    &["annotator", "annotator_id", "annotator_name", "rater", "reader", "reviewer"];
/// Distance of centres below which two people mean one cell, level-0 px: 6 um at 0.25 um/px.
pub const ONE_CELL_PX: f64 = 25.0;
/// The same in um.
pub const ONE_CELL_UM: f64 = 6.25;

/// A place, the row that has it, and its person.
type Labelled = ([f64; 2], usize, String);

/// What a table states of its rows, and the places of those above.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    left_out: Vec<usize>,
    kept: Vec<usize>,
    status: Vec<usize>,
    person: Option<usize>,
    /// By image, and by square of the size of a cell.
    places: HashMap<String, HashMap<[i64; 2], Vec<Labelled>>>,
}

impl Rows {
    /// Finds the columns of a table; none is needed.
    #[must_use]
    pub fn find(table: &Table) -> Self {
        let all = |names: &[&str]| names.iter().filter_map(|name| table.find(&[name])).collect();
        let is = LEFT_OUT.map(|name| format!("is_{name}"));
        let left_out = LEFT_OUT.into_iter().chain(is.iter().map(String::as_str));
        Self {
            left_out: all(&left_out.collect::<Vec<_>>()),
            kept: all(&KEPT),
            status: all(&STATUS),
            person: table.find(PERSON),
            places: HashMap::new(),
        }
    }

    /// What marks a row as left out: the name of a column, or the word of a status.
    #[must_use]
    pub fn left_out<'t>(&self, table: &'t Table, row: usize) -> Option<&'t str> {
        let cell = |column: &usize| table.cell(row, *column);
        let is_set = |column: &&usize| yes_no(cell(column)) == Some(true);
        let flag = self.left_out.iter().find(is_set).map(|c| table.names()[*c].as_str());
        let not_valid = || {
            let is_no = |column| yes_no(cell(column)) == Some(false);
            self.kept.iter().any(is_no).then_some("not valid")
        };
        let mut words = self.status.iter().map(|column| cell(column).trim());
        let is_known = |word: &&str| LEFT_OUT.iter().any(|known| word.eq_ignore_ascii_case(known));
        flag.or_else(not_valid).or_else(|| words.find(is_known))
    }

    /// Why a row is of the same object as one of another person above, of whom each would count. `at` is its centre,
    /// and `near` the size of a cell in the same unit, level-0 px or um.
    pub fn same_object(
        &mut self,
        table: &Table,
        row: usize,
        image: &str,
        at: [f64; 2],
        near: f64,
    ) -> Option<String> {
        let who = table.filled(row, self.person)?;
        let places = self.places.entry(image.to_owned()).or_default();
        #[expect(clippy::cast_possible_truncation, reason = "squares of an image")]
        let [column, line] = at.map(|v| (v / near) as i64);
        let around = (-1..=1).flat_map(|i| (-1..=1).map(move |k| [i, k]));
        let is_same = |(other, _, person): &&Labelled| {
            person != who && (at[0] - other[0]).hypot(at[1] - other[1]) < near
        };
        let squares = around.map(|[i, k]| [column.saturating_add(i), line.saturating_add(k)]);
        let above = squares.filter_map(|square| places.get(&square)).flatten().find(is_same);
        let why = above.map(|(_, first, person)| {
            format!(
                "`{who}` has labelled the same place as `{person}` in line {}, and each would count: a table needs \
                 the rows of one person, or of their agreement",
                table.line(*first)
            )
        });
        places.entry([column, line]).or_default().push((at, row, who.to_owned()));
        why
    }
}
