//! Rows of a table of places that are not one object each: those that are marked as left out, and those in which
//! another person has labelled the same object.

use base::table::{Table, yes_no};
use std::collections::HashMap;

/// Columns that mark a row as left out.
const LEFT_OUT: [&str; 5] = ["deleted", "is_deleted", "ignore", "ignored", "excluded"];
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
    person: Option<usize>,
    /// By image, and by square of the size of a cell.
    places: HashMap<String, HashMap<[i64; 2], Vec<Labelled>>>,
}

impl Rows {
    /// Finds the columns of a table; none is needed.
    #[must_use]
    pub fn find(table: &Table) -> Self {
        let left_out = LEFT_OUT.iter().filter_map(|name| table.find(&[name])).collect();
        Self { left_out, person: table.find(PERSON), places: HashMap::new() }
    }

    /// The name of the column that marks a row as left out.
    #[must_use]
    pub fn left_out<'t>(&self, table: &'t Table, row: usize) -> Option<&'t str> {
        let is_set = |column: &&usize| yes_no(table.cell(row, **column)) == Some(true);
        self.left_out.iter().find(is_set).map(|column| table.names()[*column].as_str())
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
