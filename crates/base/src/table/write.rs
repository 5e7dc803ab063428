//! Writing comma-separated tables.

#![expect(clippy::disallowed_types, reason = "the one writer of tables")]

use super::cell::{cell, shown};
use crate::file::{self, Access, WriteError};
use std::path::Path;

/// A table under way: comma-separated, quoted where needed, lines ended by `\n`. Cells that a
/// spreadsheet would compute are written as text ([`super::cell`]); characters that a terminal acts on
/// are written out, e.g. `\u{1b}`.
#[derive(Debug)]
pub struct Writer {
    columns: usize,
    out: csv::Writer<Vec<u8>>,
}

impl Writer {
    /// A table with this header.
    #[must_use]
    pub fn new<C: AsRef<str>>(header: impl IntoIterator<Item = C>) -> Self {
        let header: Vec<C> = header.into_iter().collect();
        let mut table = Self { columns: header.len(), out: csv::Writer::from_writer(Vec::new()) };
        table.push(header);
        table
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it has another number of cells than the header.
    pub fn push<C: AsRef<str>>(&mut self, row: impl IntoIterator<Item = C>) {
        let mut cells = 0;
        for text in row {
            self.out
                .write_field(cell(&shown(text.as_ref())).as_bytes())
                .expect("memory takes a cell");
            cells += 1;
        }
        assert_eq!(cells, self.columns, "a row of {cells} cells under {} columns", self.columns);
        self.out.write_record(None::<&[u8]>).expect("memory takes the end of a row");
    }

    /// The text.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.out.into_inner().unwrap_or_else(|e| panic!("memory takes a table: {}", e.error()))
    }

    /// Writes the text, whole or not at all.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn write(self, path: &Path) -> Result<(), WriteError> {
        file::write(path, &self.into_bytes())
    }

    /// The same for the file's owner alone.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn write_private(self, path: &Path) -> Result<(), WriteError> {
        file::write_with(path, &self.into_bytes(), Access::Private)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed() {
        let mut t = Writer::new(["a", "b"]);
        t.push(["1", "x,y"]);
        t.push([String::new(), "\"".into()]);
        assert_eq!(t.into_bytes(), b"a,b\n1,\"x,y\"\n,\"\"\"\"\n");
    }

    #[test]
    fn nothing_acts_on_a_terminal() {
        let mut t = Writer::new(["a"]);
        t.push(["\x1b]0;title\x07red"]);
        assert_eq!(t.into_bytes(), b"a\n\\u{1b}]0;title\\u{7}red\n");
    }

    #[test]
    #[should_panic(expected = "a row of 1 cells under 2 columns")]
    fn a_row_of_another_width_is_a_mistake_of_the_program() {
        Writer::new(["a", "b"]).push(["1"]);
    }
}
