//! Delimited text with a header: comma, semicolon or tab, columns by name in any order and under any
//! of their names, and every complaint with its place.

mod cell;
mod decode;
mod join;
mod quoting;
mod scan;
mod unread;
mod vocabulary;
mod write;

pub use cell::{cell, uncell};
pub use join::{LoneKeys, MatchingRule, Unmatched, file_name, without_ending};
pub use unread::{Lookups, Unread, UnreadColumn};
pub use vocabulary::{
    EventCell, MISSING, bare, event, is_missing, may_be_code, may_mean_missing, normal, same_event,
    yes_no,
};
pub use write::Writer;

use crate::file::{self, ReadError};
use decode::{NotText, decode};
use quoting::{Quoting, Suspect};
use scan::{Bad, Scanner};
use std::path::{Path, PathBuf};
use vocabulary::digits;

/// Largest file that is read as a table, bytes.
pub const LARGEST: u64 = 512 << 20;
/// Most cells of a table.
pub const MOST_CELLS: usize = 50_000_000;
/// Most columns of a table.
pub const MOST_COLUMNS: usize = 100_000;

/// Why a table cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum TableError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file is not delimited text.
    #[error("{}: line {line}: {reason}", path.display())]
    Text {
        /// Path of the table.
        path: PathBuf,
        /// Line in the file, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// More cells than a table may have.
    #[error("{}: line {line}: more than {most} {of}; divide the table if it is meant to be so large", path.display())]
    Large {
        /// Path of the table.
        path: PathBuf,
        /// Line in the file, from 1, where there are too many.
        line: u64,
        most: usize,
        /// Of what: cells or columns.
        of: &'static str,
    },
    /// No header.
    #[error("{}: is empty; a header line with column names is needed", path.display())]
    Empty {
        /// Path of the table.
        path: PathBuf,
    },
    /// No rows.
    #[error(
        "{}: has {}no rows; give a table with at least one row",
        path.display(),
        if *headless { "" } else { "a header but " }
    )]
    NoRows {
        /// Path of the table.
        path: PathBuf,
        /// Whether such a table has no header: then nothing or comments alone are in it.
        headless: bool,
    },
    /// Rows that a quotation mark takes for the text of one cell.
    #[error(
        "{}: line {line}: a cell in quotation marks takes the {} for its own text, though each looks like a \
         row; close the mark where the cell ends, or write its text in one line",
        path.display(),
        match lines { 1 => "next line".to_owned(), n => format!("next {n} lines") }
    )]
    Swallowed {
        /// Path of the table.
        path: PathBuf,
        /// Line in the file, from 1, on which the row begins.
        line: u64,
        /// Lines that the cell takes besides.
        lines: usize,
    },
    /// A row of another width.
    #[error(
        "{}: line {line}: {cells} cells, where the {first} has {columns}; put cells that hold the \
         delimiter into quotation marks", path.display()
    )]
    Width {
        /// Path of the table.
        path: PathBuf,
        /// Line in the file, from 1.
        line: u64,
        /// Cells of the row.
        cells: usize,
        /// What the others are compared with: the header, or the first row without one.
        first: &'static str,
        columns: usize,
    },
    /// Columns that are not there.
    #[error("{}: no column {wanted}{near}. It has: {}", path.display(), found.join(", "))]
    Missing {
        /// Path of the table.
        path: PathBuf,
        /// The names looked for.
        wanted: String,
        /// " (did you mean ...?)", or nothing.
        near: String,
        found: Vec<String>,
    },
    /// A name that two columns have.
    #[error("{}: two columns are called '{name}'", path.display())]
    Twice {
        /// Path of the table.
        path: PathBuf,
        name: String,
    },
    /// A cell.
    #[error("{place}: {reason}")]
    Cell {
        /// File, column, row and line.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl TableError {
    /// Of a table with a header alone.
    #[must_use]
    pub fn no_rows(path: &Path) -> Self {
        Self::NoRows { path: path.to_owned(), headless: false }
    }
}

/// How a table is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Rows may be shorter than the header, or longer by empty cells.
    pub ragged: bool,
    /// Lines that begin with this byte are left out. Lines above the header that begin with `#` always
    /// are.
    pub comment: Option<u8>,
    /// The header may lack the name of the first column, as R's `write.table` leaves it.
    pub row_names: bool,
    /// A header without rows is a table.
    pub no_rows: bool,
    /// The file has no header: columns are called 1, 2, ..., as many as the first row has.
    pub headless: bool,
}

/// Cells of text with the names of their columns.
#[derive(Clone, Debug)]
pub struct Table {
    path: PathBuf,
    names: Vec<String>,
    keys: Vec<String>,
    /// All cells, one after the other.
    text: String,
    /// Where each cell ends in `text`, row by row.
    ends: Vec<u32>,
    lines: Vec<u64>,
    delimiter: u8,
    /// Columns whose commas or points may part thousands.
    two_points: Vec<bool>,
    /// Comments above the header.
    comments: Vec<String>,
    lookups: Lookups,
}

/// Comments above the header that are kept to explain a missing column.
const MOST_COMMENTS: usize = 100;

impl Table {
    /// Reads a file of at most [`LARGEST`] bytes.
    ///
    /// # Errors
    /// [`TableError`] when the file cannot be read or is not a table of this format.
    pub fn read(path: &Path, format: &Format) -> Result<Self, TableError> {
        Self::parse(path, &file::read(path, LARGEST)?, format)
    }

    /// Parses the text of a file.
    ///
    /// - Encoding: UTF-8 or UTF-16, with or without a byte order mark.
    /// - Lines above the header that begin with `#` are comments (cBioPortal writes such).
    /// - The delimiter is the one that a first line `sep=;` names (Excel), or else whichever of `,`,
    ///   `;` and tab the header holds most of outside quotation marks.
    /// - A quotation mark that is not closed is an error; where tabs part the cells, one that is not
    ///   closed before the next tab is text.
    /// - A cell in quotation marks whose lines look like rows is an error, because two lost marks leave the same.
    ///   Where another column is in marks in every row, it is read: a row within the cell would have ended it.
    ///
    /// # Errors
    /// [`TableError`] when it is not a table of this format.
    pub fn parse(path: &Path, bytes: &[u8], format: &Format) -> Result<Self, TableError> {
        let text = decode(bytes).map_err(|NotText { line, reason }| TableError::Text {
            path: path.to_owned(),
            line,
            reason,
        })?;
        let (stated, text, first) = match stated_delimiter(&text) {
            Some((delimiter, rest)) => (Some(delimiter), rest, 2),
            None => (None, &*text, 1),
        };
        let mut scanner = Scanner::new(text, first, stated.unwrap_or(b','));
        let mut comments = Vec::new();
        loop {
            scanner.skip_empty();
            let marks = [Some(b'#'), format.comment];
            let Some(comment) = marks.into_iter().flatten().find_map(|m| scanner.comment(m)) else {
                break;
            };
            if comments.len() < MOST_COMMENTS {
                comments.push(comment.to_owned());
            }
        }
        scanner.set_delimiter(stated.unwrap_or_else(|| delimiter(scanner.rest())));
        let mut rows = Rows {
            path,
            format,
            names: Vec::new(),
            text: String::with_capacity(text.len()),
            ends: Vec::new(),
            lines: Vec::new(),
            spaced: false,
            quoted: Vec::new(),
            quoting: Quoting::default(),
        };
        rows.header(&mut scanner)?;
        while rows.row(&mut scanner)? {}
        if let Some(Suspect { line, lines, .. }) = rows.quoting.first_suspect() {
            return Err(TableError::Swallowed { path: path.to_owned(), line, lines });
        }
        let Rows { names, text, ends, lines, .. } = rows;
        if lines.is_empty() && !format.no_rows {
            return Err(TableError::no_rows(path));
        }
        let keys = names.iter().map(|n| normal(n)).collect();
        let (path, delimiter) = (path.to_owned(), scanner.delimiter());
        let two_points = Vec::new();
        let lookups = Lookups::default();
        let mut table =
            Self { path, names, keys, text, ends, lines, delimiter, two_points, comments, lookups };
        // Where commas part the cells, one within a number is refused as it is.
        if table.delimiter != b',' {
            let has_comma = (0..table.names.len()).any(|c| table.has_decimal_comma(c));
            // A point that parts no thousands, in any column, is a decimal point, and so are the others.
            let is_settled = table.delimiter != b';'
                || (0..table.names.len()).any(|c| table.has_decimal_point(c));
            let is_two = |c| {
                table.finds_two_points(c)
                    || has_comma && table.may_part_by_points(c)
                    || !is_settled && table.parts_every_number(c)
            };
            table.two_points = (0..table.names.len()).map(is_two).collect();
        }
        Ok(table)
    }

    /// Whether some numbers of a column have a decimal comma and others a point, or all that have one have three digits
    /// behind it, and the others are whole ones below 1,000: the commas or points may part thousands.
    fn finds_two_points(&self, column: usize) -> bool {
        let cells = || (0..self.len()).map(|row| self.cell(row, column));
        let parts_thousands = |mark: char| {
            let is_parted = |c: &str| is_parted(c, mark);
            let numbers = || cells().filter(|c| !is_missing(c));
            numbers().all(|c| is_parted(c) || is_short(c.trim_start_matches('-')))
                && numbers().filter(|c| is_parted(c)).count() > 1
                && numbers().any(|c| !is_parted(c))
        };
        let both = cells().any(decimal_comma) && cells().any(has_point);
        both || parts_thousands('.') || parts_thousands(',')
    }

    /// Whether a column has a number whose comma is a decimal point for certain.
    fn has_decimal_comma(&self, column: usize) -> bool {
        let cells = (0..self.len()).map(|row| self.cell(row, column));
        let mut commas = cells.filter(|c| decimal_comma(c));
        commas.any(|c| !is_parted(c, ','))
    }

    /// Whether a column has a number whose point is a decimal point for certain.
    fn has_decimal_point(&self, column: usize) -> bool {
        let cells = (0..self.len()).map(|row| self.cell(row, column));
        cells.into_iter().any(|c| has_point(c) && !is_parted(c, '.'))
    }

    /// Whether all that a column has are numbers with one point and three digits behind it.
    fn parts_every_number(&self, column: usize) -> bool {
        let cells = (0..self.len()).map(|row| self.cell(row, column));
        let mut numbers = cells.filter(|c| !is_missing(c)).peekable();
        numbers.peek().is_some() && numbers.all(|c| is_parted(c, '.'))
    }

    /// Whether every point in the numbers of a column has three digits behind it: in a table with decimal commas it
    /// parts thousands.
    fn may_part_by_points(&self, column: usize) -> bool {
        let cells = (0..self.len()).map(|row| self.cell(row, column));
        let mut points = cells.filter(|c| has_point(c)).peekable();
        points.peek().is_some() && points.all(|c| is_parted(c, '.'))
    }

    /// Path of the table, as it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Column names as written.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Line of the file that a row starts on, from 1.
    #[must_use]
    pub fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    /// The first of these columns that is there; names are compared without case, blanks, underscores
    /// and hyphens.
    #[must_use]
    pub fn find(&self, names: &[&str]) -> Option<usize> {
        let found = names.iter().find_map(|n| self.keys.iter().position(|k| *k == normal(n)));
        self.lookups.note(names, found);
        found
    }

    /// Notes that a column is read that was not found by its name.
    pub fn mark_read(&self, column: usize) {
        self.lookups.note(&[], Some(column));
    }

    /// Notes columns that may be there and are known to be of no use here; none is needed.
    pub fn pass_over(&self, names: &[&str]) {
        let is_named = |&i: &usize| names.iter().any(|name| self.keys[i] == normal(name));
        (0..self.keys.len()).filter(is_named).for_each(|column| self.mark_read(column));
    }

    /// The columns that nothing has looked for until now: for tables whose columns are all the program's. A name that
    /// is nearly one that was looked for and not found comes first.
    #[must_use]
    pub fn unread(&self) -> Option<Unread> {
        self.lookups.unread(&self.path, &self.names, false)
    }

    /// Of [`Self::unread`] those whose name is nearly one that was looked for and not found: for tables that may have
    /// any further columns.
    #[must_use]
    pub fn misspelt(&self) -> Option<Unread> {
        self.lookups.unread(&self.path, &self.names, true)
    }

    /// Like [`Self::find`] for a column that must be there.
    ///
    /// # Errors
    /// [`TableError::Missing`], and [`TableError::Twice`] when two columns have the name.
    pub fn need(&self, names: &[&str]) -> Result<usize, TableError> {
        let Some(found) = self.find(names) else {
            return Err(self.missing(names));
        };
        if self.keys[found + 1..].contains(&self.keys[found]) {
            let name = self.names[found].clone();
            return Err(TableError::Twice { path: self.path.clone(), name });
        }
        Ok(found)
    }

    /// The complaint that none of these columns is there.
    #[must_use]
    pub fn missing(&self, names: &[&str]) -> TableError {
        let near = |n: &&str| {
            let wanted = normal(n);
            self.names.iter().zip(&self.keys).find(|(_, k)| {
                wanted.len() > 2 && (k.contains(&wanted) || (k.len() > 2 && wanted.contains(*k)))
            })
        };
        let commented = |n: &&str| {
            let wanted = normal(n);
            self.comments.iter().any(|c| {
                c.trim_start_matches('#').split([',', ';', '\t']).any(|part| normal(part) == wanted)
            })
        };
        let near = match names.iter().find_map(near) {
            Some((n, _)) => format!(" (did you mean '{n}'?)"),
            None => match names.iter().find(|n| commented(n)) {
                Some(n) => format!(
                    " (a line that begins with # names '{n}', but such lines are comments; take the # \
                     off the header)"
                ),
                None => String::new(),
            },
        };
        TableError::Missing {
            path: self.path.clone(),
            wanted: names.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(" or "),
            near,
            found: self.names.clone(),
        }
    }

    /// A cell, without blanks around it.
    ///
    /// # Panics
    /// When the table has no such row or column.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> &str {
        let width = self.names.len();
        assert!(column < width, "column {column} of {width}");
        let i = row * width + column;
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.text[start..self.ends[i] as usize]
    }

    /// A cell, or `None` when the column is not there or the cell is one of [`MISSING`].
    #[must_use]
    pub fn filled(&self, row: usize, column: Option<usize>) -> Option<&str> {
        let text = self.cell(row, column?);
        (!is_missing(text)).then_some(text)
    }

    /// Every row as a value whose fields are named as the columns are, exactly.
    ///
    /// # Errors
    /// [`TableError::Text`] with the line of a row that cannot be read as such a value.
    pub fn rows<T: serde::de::DeserializeOwned>(&self) -> Result<Vec<T>, TableError> {
        let header = csv::StringRecord::from(self.names.clone());
        let row_line = |row: usize| {
            let cells: Vec<&str> = (0..self.names.len()).map(|c| self.cell(row, c)).collect();
            csv::StringRecord::from(cells).deserialize(Some(&header)).map_err(|e| {
                let reason = match e.kind() {
                    csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
                    _ => e.to_string(),
                };
                TableError::Text { path: self.path.clone(), line: self.lines[row], reason }
            })
        };
        (0..self.len()).map(row_line).collect()
    }

    /// Checks that no two columns have one name.
    ///
    /// # Errors
    /// [`TableError::Twice`] for the first name (empty ones aside) that two columns have.
    pub fn names_once(&self) -> Result<(), TableError> {
        for (i, key) in self.keys.iter().enumerate() {
            if !key.is_empty() && self.keys[..i].contains(key) {
                let (path, name) = (self.path.clone(), self.names[i].clone());
                return Err(TableError::Twice { path, name });
            }
        }
        Ok(())
    }

    /// Columns whose name, compared as [`Self::find`] does, begins and ends so, in order.
    #[must_use]
    pub fn family(&self, starts: &str, ends: &str) -> Vec<usize> {
        let fits = |&i: &usize| self.keys[i].starts_with(starts) && self.keys[i].ends_with(ends);
        (0..self.keys.len()).filter(fits).inspect(|i| self.mark_read(*i)).collect()
    }

    /// "file, column 'x', row 3 (line 4)".
    #[must_use]
    pub fn place(&self, row: usize, column: usize) -> String {
        let (path, name) = (self.path.display(), &self.names[column]);
        format!("{path}, column '{name}', row {} (line {})", row + 1, self.lines[row])
    }

    /// A complaint about a cell.
    #[must_use]
    pub fn wrong(&self, row: usize, column: usize, reason: impl Into<String>) -> TableError {
        TableError::Cell { place: self.place(row, column), reason: reason.into() }
    }

    /// A finite number. Where semicolons separate the cells, a comma may be the decimal point, as
    /// spreadsheets of many languages write it.
    ///
    /// # Errors
    /// [`TableError::Cell`].
    pub fn number(&self, row: usize, column: usize) -> Result<f64, TableError> {
        let cell = self.cell(row, column);
        if self.has_two_points(column) && cell.contains(['.', ',']) {
            let readings = readings(cell);
            return Err(self.wrong(row, column, format!("'{cell}'{readings} {TWO_POINTS}")));
        }
        let parsed = match cell.split_once(',') {
            Some((whole, part)) if self.decimal_commas() && decimal_comma(cell) => {
                format!("{whole}.{part}").parse::<f64>()
            }
            _ => cell.parse(),
        };
        match parsed {
            Ok(v) if v.is_finite() => Ok(v),
            _ if cell.is_empty() => Err(self.wrong(row, column, "is empty")),
            _ => {
                let comma = if decimal_comma(cell) { COMMA } else { "" };
                let reason = format!("'{cell}' is not a finite number{comma}");
                Err(self.wrong(row, column, reason))
            }
        }
    }

    /// Whether a comma in a number is a decimal point: semicolons part the cells, as in the languages
    /// that write decimal commas. With tabs it could as well part thousands.
    #[must_use]
    pub fn decimal_commas(&self) -> bool {
        self.delimiter == b';'
    }

    /// Whether commas or points in the numbers of a column may part thousands, so that they cannot be read.
    #[must_use]
    pub fn has_two_points(&self, column: usize) -> bool {
        self.two_points.get(column) == Some(&true)
    }

    /// A whole number, 0 or more.
    ///
    /// # Errors
    /// [`TableError::Cell`].
    pub fn count(&self, row: usize, column: usize) -> Result<u64, TableError> {
        let cell = self.cell(row, column);
        cell.parse().map_err(|_| self.wrong(row, column, format!("'{cell}' is not a count")))
    }
}

/// A table under way.
struct Rows<'a> {
    path: &'a Path,
    format: &'a Format,
    names: Vec<String>,
    text: String,
    ends: Vec<u32>,
    lines: Vec<u64>,
    /// Whether a blank follows a delimiter of the header.
    spaced: bool,
    /// Whether each cell of the last row is in quotation marks.
    quoted: Vec<bool>,
    quoting: Quoting,
}

impl Rows<'_> {
    /// The cell of the last row whose text may be rows, which begins on this line.
    fn suspect(&self, before: usize, line: u64, scanner: &Scanner<'_>) -> Option<Suspect> {
        let spaced = self.spaced || scanner.is_spaced();
        let look = Look { delimiter: scanner.delimiter(), spaced };
        let mut start = before.checked_sub(1).map_or(0, |i| self.ends[i] as usize);
        self.ends[before..].iter().enumerate().find_map(|(column, &end)| {
            let cell = &self.text[start..end as usize];
            start = end as usize;
            let columns = self.names.len();
            let lines = (cell.contains(['\n', '\r']) && column < columns)
                .then(|| look.rows_in_cell(cell, column, columns))??;
            Some(Suspect { line, column, lines })
        })
    }

    fn bad(&self, Bad { line, reason }: Bad) -> TableError {
        TableError::Text { path: self.path.to_owned(), line, reason }
    }

    fn large(&self, most: usize, of: &'static str) -> TableError {
        let line = self.lines.last().copied().unwrap_or(1);
        TableError::Large { path: self.path.to_owned(), line, most, of }
    }

    fn header(&mut self, scanner: &mut Scanner<'_>) -> Result<(), TableError> {
        let mut names = Vec::new();
        let mut ahead = scanner.clone();
        let at = if self.format.headless { &mut ahead } else { scanner };
        let mut quoted = Vec::new();
        let read = at.record(|c, q| {
            names.push(c.to_owned());
            quoted.push(q);
        });
        let read = read.map_err(|b| self.bad(b))?;
        let spaced = at.is_spaced();
        if read.is_none() || names.iter().all(String::is_empty) {
            let path = self.path.to_owned();
            return Err(match self.format.headless {
                true => TableError::NoRows { path, headless: true },
                false => TableError::Empty { path },
            });
        }
        if names.len() > MOST_COLUMNS {
            return Err(self.large(MOST_COLUMNS, "columns"));
        }
        if self.format.headless {
            names = (1..=names.len()).map(|n| n.to_string()).collect();
        } else {
            self.quoting.header(&quoted);
        }
        (self.names, self.spaced) = (names, spaced);
        Ok(())
    }

    /// Reads a row; `false` at the end of the file.
    fn row(&mut self, scanner: &mut Scanner<'_>) -> Result<bool, TableError> {
        if let Some(mark) = self.format.comment {
            scanner.skip_empty();
            while scanner.comment(mark).is_some() {
                scanner.skip_empty();
            }
        }
        let before = self.ends.len();
        let (text, ends, quoted) = (&mut self.text, &mut self.ends, &mut self.quoted);
        quoted.clear();
        let read = scanner.record(|cell, is_quoted| {
            text.push_str(cell);
            quoted.push(is_quoted);
            // The text is no longer than the file, which is below 4 GiB.
            ends.push(text.len() as u32);
        });
        let Some(line) = read.map_err(|b| self.bad(b))? else { return Ok(false) };
        self.lines.push(line);
        let mut cells = self.ends.len() - before;
        // A delimiter at the end of each row leaves an empty last cell instead.
        let named = self.ends.len() > 1 && self.ends[self.ends.len() - 2] < self.text.len() as u32;
        let first = self.lines.len() == 1 && cells == self.names.len() + 1;
        if self.format.row_names && first && named {
            self.names.insert(0, String::new());
            self.quoting.row_names();
        }
        let columns = self.names.len();
        if self.format.ragged {
            let last = |ends: &[u32]| ends.last().copied().unwrap_or_default();
            while cells < columns {
                self.ends.push(last(&self.ends));
                cells += 1;
            }
            // Further empty cells end where the row's last column does.
            let kept = self.ends[before + columns - 1];
            if last(&self.ends) == kept {
                self.ends.truncate(before + columns);
                cells = columns;
            }
        }
        let suspect = self.suspect(before, line, scanner);
        if cells != columns {
            if let Some(Suspect { line, lines, .. }) = suspect {
                return Err(TableError::Swallowed { path: self.path.to_owned(), line, lines });
            }
            let first = if self.format.headless { "first row" } else { "header" };
            let path = self.path.to_owned();
            return Err(TableError::Width { path, line, cells, first, columns });
        }
        if self.ends.len() > MOST_CELLS {
            return Err(self.large(MOST_CELLS, "cells"));
        }
        let start = before.checked_sub(1).map_or(0, |i| self.ends[i] as usize);
        let starts = std::iter::once(start).chain(self.ends[before..].iter().map(|e| *e as usize));
        let cells = starts.zip(&self.ends[before..]).map(|(s, e)| &self.text[s..*e as usize]);
        self.quoting.row(cells.zip(self.quoted.iter().copied()), suspect);
        Ok(true)
    }
}

/// How the rows of a table look.
struct Look {
    delimiter: u8,
    /// Whether a blank follows their delimiters.
    spaced: bool,
}

impl Look {
    /// Lines that a cell takes although each is a row by its delimiters: what two quotation marks in different rows
    /// leave, neither of which is closed. A blank behind every delimiter makes it prose, unless rows have it, too.
    fn rows_in_cell(&self, cell: &str, column: usize, columns: usize) -> Option<usize> {
        let text = cell.replace("\r\n", "\n").replace('\r', "\n");
        let delimiters = |line: &str| line.bytes().filter(|b| *b == self.delimiter).count();
        let lines: Vec<usize> = text.split('\n').map(delimiters).collect();
        let (first, rest) = lines.split_first()?;
        let (last, between) = rest.split_last()?;
        let rows = *first == columns - 1 - column
            && *last == column
            && between.iter().all(|n| *n == columns - 1);
        let prose = text
            .match_indices(char::from(self.delimiter))
            .all(|(i, _)| text[i + 1..].starts_with([' ', '\n']) || text.len() == i + 1);
        (rows && columns > 1 && (self.spaced || !prose)).then_some(rest.len())
    }
}

/// The delimiter that a first line `sep=;` names, and the text behind that line.
fn stated_delimiter(text: &str) -> Option<(u8, &str)> {
    let end = text.find(['\n', '\r'])?;
    let line = text[..end].trim_matches([' ', '"']);
    let head = line.get(..4)?;
    let delimiter = match line.as_bytes().get(4..)? {
        [d] if !d.is_ascii_alphanumeric() && d.is_ascii() && *d != b'"' => *d,
        _ => return None,
    };
    let rest = &text[end..];
    let rest = rest.strip_prefix("\r\n").unwrap_or_else(|| &rest[1..]);
    head.eq_ignore_ascii_case("sep=").then_some((delimiter, rest))
}

/// Whichever of `,`, `;` and tab the first line of a text holds most of outside quotation marks.
fn delimiter(text: &str) -> u8 {
    let (mut counts, mut quoted) = ([0_usize; 3], false);
    const DELIMITERS: [u8; 3] = [b',', b'\t', b';'];
    for b in text.bytes().take_while(|b| *b != b'\n' && *b != b'\r') {
        quoted ^= b == b'"';
        if !quoted && let Some(i) = DELIMITERS.iter().position(|d| *d == b) {
            counts[i] += 1;
        }
    }
    let best = (0..3).rev().max_by_key(|&i| counts[i]).unwrap_or_default();
    DELIMITERS[best]
}

/// Why a number is not read whose column has numbers with a decimal comma and others with a point.
pub const TWO_POINTS: &str = "is in a column whose commas or points may part thousands \
                          (write none for those): write all decimals in one way";
/// Why a number with a comma is not read where commas part the cells.
pub const COMMA: &str = "; its comma may part thousands or be a decimal point: write it without, or with a \
                     point";

/// What a number may mean whose point or comma may part thousands, as an insertion; nothing for others.
#[must_use]
pub fn readings(text: &str) -> String {
    let mark = ['.', ','].into_iter().find(|mark| is_parted(text, *mark));
    mark.map_or_else(String::new, |mark| {
        format!(" ({} or {})", text.replace(mark, ""), text.replace(mark, "."))
    })
}

/// Whether text is a number with a point in it.
fn has_point(text: &str) -> bool {
    text.contains('.') && text.parse::<f64>().is_ok()
}

/// Whether text is a whole number of at most three digits.
fn is_short(text: &str) -> bool {
    text.len() <= 3 && digits(text)
}

/// Whether text is a number in which a mark may part thousands.
fn is_parted(text: &str, mark: char) -> bool {
    let parts = text.trim_start_matches('-').split_once(mark);
    parts.is_some_and(|(a, b)| is_short(a) && !a.starts_with('0') && b.len() == 3 && digits(b))
}

/// Whether text is a number with one comma in it.
#[must_use]
pub fn decimal_comma(text: &str) -> bool {
    text.split_once(',').is_some_and(|(a, b)| digits(a.trim_start_matches('-')) && digits(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str, format: Format) -> Result<Table, TableError> {
        Table::parse(Path::new("t.csv"), text.as_bytes(), &format)
    }

    #[test]
    fn delimiters_quotes_and_names() {
        for text in ["Image File,x_um\n1,\"x,y\"\n", "\u{feff}Image File\tx_um\r\n1\tx,y\r\n"] {
            let t = parse(text, Format::default()).unwrap();
            assert_eq!(t.find(&["slide", "image_file"]), Some(0));
            assert_eq!(t.need(&["X-um"]).unwrap(), 1);
            assert_eq!((t.len(), t.cell(0, 1)), (1, "x,y"));
        }
    }

    #[test]
    fn decimal_commas_where_semicolons_part_the_cells() {
        let t = parse("a;b\n-1,5;1,2,3\n", Format::default()).unwrap();
        assert_eq!(t.number(0, 0).unwrap(), -1.5);
        assert!(t.number(0, 1).unwrap_err().to_string().contains("'1,2,3' is not a finite number"));
        let t = parse("a,b\n\"1,5\",2\n", Format::default()).unwrap();
        let error = t.number(0, 0).unwrap_err().to_string();
        assert!(error.contains("'1,5' is not") && error.contains("thousands"), "{error}");
    }

    #[test]
    fn a_column_with_decimal_commas_and_points_is_not_guessed() {
        let t = parse("days;um\n3,5;1.5\n1.200;2.25\n7;3\n", Format::default()).unwrap();
        for row in [0, 1] {
            let error = t.number(row, 0).unwrap_err().to_string();
            assert!(error.contains("thousands") && error.contains("one way"), "{error}");
        }
        assert_eq!((t.number(2, 0).unwrap(), t.number(1, 1).unwrap()), (7.0, 2.25));
    }

    #[test]
    fn points_and_commas_that_may_part_thousands_are_not_decimals() {
        for text in ["x;n\n860;1\n1.058;2\n1.774;3\n", "x\tn\n1.058\t2\n\t3\n12\t1\n-1.774\t2\n"] {
            let t = parse(text, Format::default()).unwrap();
            let row = if text.contains(';') { 1 } else { 0 };
            let error = t.number(row, 0).unwrap_err().to_string();
            assert!(error.contains("part thousands") && error.contains("'1.058'"), "{error}");
        }
        let t = parse("x;n\n860;1\n1,058;2\n1,774;3\n", Format::default()).unwrap();
        assert!(t.number(1, 0).unwrap_err().to_string().contains("part thousands"));
        // Decimals: of other lengths, below 1, next to whole numbers of more digits, or all written alike.
        for text in [
            "x;n\n8.5;1\n1.058;2\n1.774;3\n7;1\n",
            "x;n\n7;1\n0.058;2\n1.774;3\n1.058;3\n",
            "x;n\n1058;1\n1.058;2\n1.774;3\n",
            "x;n\n1.058;1\n2.000;2.5\n1.774;3\n",
            "x\tn\n1.058\t1\n2.000\t2\n1.774\t3\n",
            "x,n\n7,1\n1.058,2\n1.774,3\n",
        ] {
            let t = parse(text, Format::default()).unwrap();
            assert!((0..3).all(|row| t.number(row, 0).is_ok()), "{text}");
        }
    }

    /// Where semicolons part the cells, a language with decimal commas may have written them.
    #[test]
    fn points_that_all_have_three_digits_behind_them_are_not_guessed() {
        for text in ["x;n\n1.058;1\n2.000;2\n1.774;3\n", "x;n\n1.058;a\n;b\n"] {
            let t = parse(text, Format::default()).unwrap();
            let error = t.number(0, 0).unwrap_err().to_string();
            assert!(error.contains("'1.058' (1058 or 1.058) is in a column whose"), "{error}");
        }
        // Another column, or another number, has a point that parts no thousands.
        for text in
            ["x;n\n1.058;0.5\n2.000;2\n", "x;n\n1.058;1\n12.25;2\n", "x;n\n0.058;1\n2.000;2\n"]
        {
            let t = parse(text, Format::default()).unwrap();
            assert!((0..2).all(|row| t.number(row, 0).is_ok()), "{text}");
        }
    }

    #[test]
    fn points_next_to_decimal_commas_of_another_column_part_thousands() {
        for text in ["days;um\n1.200;0,5\n2.500;1,5\n", "days;um\n1.200;0,5\n2500;3\n"] {
            let t = parse(text, Format::default()).unwrap();
            let error = t.number(0, 0).unwrap_err().to_string();
            assert!(error.contains("part thousands") && error.contains("'1.200'"), "{error}");
            assert_eq!(t.number(0, 1).unwrap(), 0.5);
        }
        // A point that parts no thousands; and one that may, next to a comma that may do so.
        let t = parse("a;b\n0.250;0,5\n1.250;1,5\n", Format::default()).unwrap();
        assert!(t.number(1, 0).is_ok());
        let t = parse("a;b\n1.200;2,500\n2.500;3,500\n", Format::default()).unwrap();
        assert!(t.number(1, 0).is_err());
    }

    #[test]
    fn two_open_quotation_marks_take_no_rows_between_them() {
        for text in [
            "a,b,c\n1,\"5 cm,x\n2,y,z\n3,w\",v\n",
            "a;b;c\r\n1;2;\"x\r\n2;3;y\"\r\n",
            "slide,note\na.svs,\"near edge\nb.svs,ok\nc.svs,edge\"\n",
            // In rows that follow each other, and where a blank follows each comma.
            "slide,note\nA,\"12\nB,5\"\nC,1\n",
            "a, b, c\nA, 1, \"near\nB, 2, 5\"\nC, 3, ok\n",
            "a,b,c\nA, 1, \"near\nB, 2, 5\"\nC, 3, ok\n",
            // Only the column with the two marks has others in marks, or too few have.
            "a,b\n0,\"x\"\nA,\"12\nB,5\"\nC,\"1\"\nD,\"2\"\n",
            "a,b\n\"A\",\"12\nB,5\"\n\"C\",1\n",
            "a,b\n\"A\",\"12\nB,5\"\nC,1\nD,1\n",
        ] {
            let error = parse(text, Format::default()).unwrap_err().to_string();
            let line = if text.contains("0,\"x\"") { "line 3" } else { "line 2" };
            assert!(error.contains(line) && error.contains("looks like a row"), "{error}");
        }
        for (text, rows) in [
            ("a,b,c\n1,\"HER2, ER\nPR, Ki67\",x\n", 1),
            ("a,b\n1,\"Main Street\nLyon, France\"\n2,y\n", 2),
            ("a,b,c\n1,\"x\ny\",z\n", 1),
            // Rows begin with a mark, which would have ended the cell.
            ("\"a\",\"b\"\n\"1\",\"Main Street\nLyon,France\"\n\"2\",\"y\"\n", 2),
            ("\"a\",\"b\"\n\"1\",\"Main Street\nLyon,France\"\n", 1),
            ("a;b\n\"1\";\"x\nLyon;y\"\n\"2\";y\n\"3\";NA\n", 3),
            ("\"a\",\"b\",\"n\"\n\"1\",\"x,3\n5,Lyon,y\n6,z\",2\n\"2\",NA,3\n", 2),
            // Prose of other lines than the rows are.
            ("slide, note\nA, \"near\nedge\"\nB, \"ER, PR\nKi67\"\n", 2),
        ] {
            assert_eq!(parse(text, Format::default()).unwrap().len(), rows, "{text}");
        }
    }

    #[test]
    fn widths() {
        let strict = |text| parse(text, Format::default()).map(|t| t.len());
        let error = strict("a,b\n1,2\n1,2,3\n").unwrap_err().to_string();
        assert!(error.starts_with("t.csv: line 3: 3 cells, where the header has 2;"), "{error}");
        assert!(strict("a,b\n1\n").is_err());
        let ragged = Format { ragged: true, ..Format::default() };
        let t = parse("a,b\n1\n1,2,,\n", ragged).unwrap();
        assert_eq!((t.cell(0, 1), t.cell(1, 1)), ("", "2"));
        assert!(parse("a,b\n1,2,3\n", ragged).is_err(), "a surplus cell would shift columns");
    }

    #[test]
    fn row_names_comments_and_no_rows() {
        let r = Format { row_names: true, ..Format::default() };
        let t = parse("\"x\"\t\"y\"\n\"1\"\t5\t7\n\"2\"\t6\t8\n", r).unwrap();
        assert_eq!((t.names().len(), t.number(1, t.need(&["y"]).unwrap()).unwrap()), (3, 8.0));
        let comment = Format { comment: Some(b'#'), ..Format::default() };
        let t = parse("# a,b,c\nx;y\n# z\n1;2\n", comment).unwrap();
        assert_eq!((t.names(), t.len(), t.cell(0, 1)), (&["x".into(), "y".into()][..], 1, "2"));
        assert!(matches!(parse("a\n", Format::default()), Err(TableError::NoRows { .. })));
        let none = Format { no_rows: true, ..Format::default() };
        assert!(parse("a\n", none).unwrap().is_empty());
        assert!(matches!(parse("", none), Err(TableError::Empty { .. })));
    }

    #[test]
    fn a_list_without_a_header_is_read_as_every_table() {
        let list = Format { headless: true, comment: Some(b'#'), ..Format::default() };
        let utf16: Vec<u8> =
            "\u{feff}slide,a b.svs\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [
            b"# list\nslide,a b.svs\n".to_vec(),
            b"\xef\xbb\xbf\"slide\";\"a b.svs\"\n".to_vec(),
            b"slide\ta b.svs\r\n# end\r\n".to_vec(),
            utf16,
        ] {
            let t = Table::parse(Path::new("t.csv"), &bytes, &list).unwrap();
            assert_eq!((t.len(), t.cell(0, 0), t.cell(0, 1)), (1, "slide", "a b.svs"));
        }
        let error = parse("a,b\n1,2,3\n", list).unwrap_err().to_string();
        assert!(error.contains("line 2: 3 cells, where the first row has 2;"), "{error}");
        for text in ["", "# none\n", "\u{feff}# none\r\n\r\n"] {
            let error = parse(text, list).unwrap_err().to_string();
            assert!(error.contains("t.csv: has no rows; give"), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_programs_write_above_the_header() {
        let text = "#Patient\tMonths\n#1\t1\nPATIENT_ID\tOS_MONTHS\nP1\t9.4\n#P2\t1\n";
        let t = parse(text, Format::default()).unwrap();
        assert_eq!((t.names()[1].as_str(), t.len(), t.line(0)), ("OS_MONTHS", 2, 4));
        for (sep, by) in [("sep=;", ";"), ("\"sep=|\"", "|"), ("SEP=,", ","), ("sep=\t", "\t")] {
            let t = parse(&format!("{sep}\r\na{by}b\r\n1{by}2\r\n"), Format::default()).unwrap();
            assert_eq!((t.len(), t.cell(0, 1), t.line(0)), (1, "2", 3), "{sep}");
        }
        let t = parse("\"Age, years\";b\n1;2\n", Format::default()).unwrap();
        assert_eq!(t.need(&["Age, years"]).unwrap(), 0);
        let hash = parse("#slide,x\na,1\nb,2\n", Format::default()).unwrap();
        let missing = hash.need(&["slide"]).unwrap_err().to_string();
        assert!(missing.contains("take the # off the header"), "{missing}");
    }

    #[test]
    fn a_quotation_mark_that_is_not_closed_never_takes_rows() {
        let error = parse("a,b\n1,\"x\n2,y\n", Format::default()).unwrap_err().to_string();
        assert!(error.contains("t.csv: line 2: the quotation mark of the cell `\"x`"), "{error}");
        let t = parse("a\tb\n1\t\"x\n2\ty\n", Format::default()).unwrap();
        assert_eq!((t.len(), t.cell(0, 1)), (2, "\"x"));
    }

    #[test]
    fn rows_become_values() {
        #[derive(serde::Deserialize, Debug, PartialEq)]
        struct Row {
            x: f64,
            name: String,
            more: Option<String>,
        }
        let rows = |text: &str| parse(text, Format::default()).unwrap().rows::<Row>();
        let of = rows("name,y,x\n\"a,b\",1,2.5\n").unwrap();
        assert_eq!(of, [Row { x: 2.5, name: "a,b".into(), more: None }]);
        let error = rows("name,x\r\na,1\r\nb,wide\r\n").unwrap_err().to_string();
        assert!(error.contains("t.csv: line 3") && error.contains("float"), "{error}");
    }

    #[test]
    fn lines_of_windows_are_counted_as_others() {
        let error = parse("a,b\r\n1,2\r\n1\r\n", Format::default()).unwrap_err().to_string();
        assert!(error.contains("line 3: 1 cells"), "{error}");
    }

    #[test]
    fn special_files_and_large_ones_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        std::fs::write(&path, "a,b\n1,2\n").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(2 << 30).unwrap();
        let error = Table::read(&path, &Format::default()).unwrap_err().to_string();
        assert!(error.contains("larger than"), "{error}");
        #[cfg(unix)]
        {
            let error = Table::read(Path::new("/dev/zero"), &Format::default()).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
    }

    #[test]
    fn complaints_name_the_place() {
        let t = parse("slide,Count\na,x\n", Format::default()).unwrap();
        let missing = t.need(&["slides"]).unwrap_err().to_string();
        assert!(missing.contains("did you mean 'slide'?"), "{missing}");
        let count = t.count(0, 1).unwrap_err().to_string();
        assert_eq!(count, "t.csv, column 'Count', row 1 (line 2): 'x' is not a count");
        assert_eq!((t.filled(0, Some(1)), t.filled(0, None)), (Some("x"), None));
        let t = parse("x,X\n1,2\n", Format::default()).unwrap();
        assert!(matches!(t.need(&["x"]), Err(TableError::Twice { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_table_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..300), ragged in any::<bool>(),
        ) {
            let format = Format { ragged, ..Format::default() };
            if let Ok(t) = Table::parse(Path::new("f.csv"), &bytes, &format) {
                for row in 0..t.len() {
                    for column in 0..t.names().len() {
                        let _ = (t.number(row, column).is_ok(), t.filled(row, Some(column)));
                    }
                }
            }
        }

        #[test]
        fn what_is_written_is_read(cells in prop::collection::vec("[a-zA-Z0-9 ,;\"\n]{0,6}", 1..20)) {
            let mut out = Writer::new(["x", "y"]);
            for c in &cells {
                out.push([c.as_str(), "1"]);
            }
            let t = match Table::parse(Path::new("f.csv"), &out.into_bytes(), &Format::default()) {
                // A cell whose lines look like rows is refused.
                Err(TableError::Swallowed { .. }) => {
                    prop_assert!(cells.iter().any(|c| c.contains('\n') && c.contains([',', ';'])));
                    return Ok(());
                }
                read => read.unwrap(),
            };
            for (row, c) in cells.iter().enumerate() {
                prop_assert_eq!(t.cell(row, 0), c.trim());
            }
        }
    }
}
