//! The column `status` of a run's table of counts: a count in a row that is not done is not the slide's.

use crate::table::Table;
use base::table::event;

/// Words for a slide that is done; without tissue there is nothing to count on.
const DONE: &str = "finished";
const NO_TISSUE: &str = "no-tissue";
/// Words for a slide that is not, of this program and of its tables in other hands.
const UNDONE: [&str; 8] =
    ["failed", "running", "interrupted", "elsewhere", "unfinished", "waiting", "error", "pending"];

/// The statuses of a table's rows.
pub(crate) struct Statuses<'a> {
    table: &'a Table,
    /// None where it is of patients, and not of slides.
    column: Option<usize>,
    /// Whether the column is one of a run, where any other word than [`DONE`] is a slide that is not done.
    is_of_run: bool,
}

impl<'a> Statuses<'a> {
    pub(crate) fn find(table: &'a Table) -> Self {
        let named = table.first_column(&["status"]);
        let any = |test: &dyn Fn(&str) -> bool| {
            (0..table.len()).filter_map(|row| table.cell(row, named?)).any(test)
        };
        let is_of_run = any(&|word| [DONE, NO_TISSUE].iter().any(|w| w.eq_ignore_ascii_case(word)));
        // A treatment fails, too.
        let is_of_patients =
            !is_of_run && any(&|word| event(word).is_some() || word.parse::<f64>().is_ok());
        let column = named.filter(|_| !is_of_patients);
        Self { table, column, is_of_run }
    }

    /// The status of a row without a count of its own: its slide is not done, or has no tissue.
    pub(crate) fn uncounted(&self, row: usize) -> Option<&'a str> {
        let word = self.table.cell(row, self.column?)?;
        let is_undone = UNDONE.iter().any(|w| w.eq_ignore_ascii_case(word));
        (is_undone || self.is_of_run && !DONE.eq_ignore_ascii_case(word)).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn only_a_slide_that_is_done_has_a_count() {
        let uncounted = |words: &str| {
            let text = format!("status,n\n{}", words.replace(' ', ",1\n"));
            let table = Table::parse(Path::new("c.csv"), text.as_bytes()).unwrap();
            let statuses = Statuses::find(&table);
            (0..table.len()).map(|row| statuses.uncounted(row).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(uncounted("finished failed Running no-tissue "), [false, true, true, true]);
        assert_eq!(uncounted("Finished stopped NA "), [false, true, false], "any other word");
        assert_eq!(uncounted("done FAILED "), [false, true]);
        for of_patients in ["censored failed ", "0 failed "] {
            assert_eq!(uncounted(of_patients), [false, false], "{of_patients}");
        }
    }
}
