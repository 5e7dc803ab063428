//! Which cells of a table are in quotation marks, and whether text of a cell could be rows that a lost mark took.

use super::vocabulary::is_missing;
use std::collections::BTreeMap;

/// Rows without a header in marks that show how a column is written.
const ENOUGH: usize = 2;

/// The rows that a cell may have taken for its own text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suspect {
    /// Line in the file on which the row begins, from 1.
    pub line: u64,
    /// Column of the cell.
    pub column: usize,
    /// Lines that the cell takes besides.
    pub lines: usize,
}

/// How the rows of a table are written.
#[derive(Debug, Default)]
pub(super) struct Quoting {
    header: Vec<bool>,
    /// Columns that are not in marks in every row so far.
    plain: Vec<bool>,
    rows: usize,
    /// The first suspect of each column.
    suspects: BTreeMap<usize, Suspect>,
}

impl Quoting {
    pub fn header(&mut self, quoted: &[bool]) {
        self.header = quoted.to_vec();
    }

    /// The name of a first column that the header lacks.
    pub fn row_names(&mut self) {
        self.header.insert(0, false);
    }

    /// A row: its cells, each with whether it is in marks. Missing values are often written without.
    pub fn row<'a>(
        &mut self,
        cells: impl Iterator<Item = (&'a str, bool)>,
        suspect: Option<Suspect>,
    ) {
        for (column, (cell, quoted)) in cells.enumerate() {
            if column >= self.plain.len() {
                self.plain.push(false);
            }
            self.plain[column] |= !quoted && !is_missing(cell);
        }
        match suspect {
            Some(suspect) => drop(self.suspects.entry(suspect.column).or_insert(suspect)),
            None => self.rows += 1,
        }
    }

    /// Whether every row has marks around a column, and enough of them to count on it.
    fn is_always_quoted(&self, column: usize) -> bool {
        let named = self.header.get(column) == Some(&true);
        !self.plain[column] && (named || self.rows >= ENOUGH)
    }

    /// The first cell that may have taken rows. Where another column is in marks in every row, rows within the cell
    /// would be, too, and its first mark would have ended the cell.
    pub fn first_suspect(&self) -> Option<Suspect> {
        let always: Vec<usize> =
            (0..self.plain.len()).filter(|&column| self.is_always_quoted(column)).collect();
        let is_lost = |s: &&Suspect| always.iter().all(|column| *column == s.column);
        self.suspects.values().filter(is_lost).min_by_key(|s| s.line).copied()
    }
}
