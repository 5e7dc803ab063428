//! Delimited text with a header: comma, semicolon or tab, columns by name in any order and under any
//! of their names, and every complaint with its place.

mod cell;
mod write;

pub use cell::{cell, uncell};
pub use write::Writer;

use std::path::{Path, PathBuf};

/// Why a table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The text is not delimited text in UTF-8.
    #[error("{}: not a table: {source}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: csv::Error,
    },
    /// No header.
    #[error("{}: is empty; a header line with column names is needed", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// No rows.
    #[error("{}: has a header but no rows", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
    },
    /// A row of another width.
    #[error("{}: line {line}: {cells} cells, where the header has {columns}", path.display())]
    Width {
        /// The file.
        path: PathBuf,
        /// Line in the file, from 1.
        line: u64,
        /// Cells of the row.
        cells: usize,
        /// Columns of the header.
        columns: usize,
    },
    /// Columns that are not there.
    #[error("{}: no column {wanted}{near}. It has: {}", path.display(), found.join(", "))]
    Missing {
        /// The file.
        path: PathBuf,
        /// The names looked for.
        wanted: String,
        /// " (did you mean ...?)", or nothing.
        near: String,
        /// The columns.
        found: Vec<String>,
    },
    /// A name that two columns have.
    #[error("{}: two columns are called '{name}'", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The name.
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

/// How a table is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Rows may be shorter than the header, or longer by empty cells.
    pub ragged: bool,
    /// Lines that begin with this byte are left out.
    pub comment: Option<u8>,
    /// The header may lack the name of the first column, as R's `write.table` leaves it.
    pub row_names: bool,
    /// A header without rows is a table.
    pub no_rows: bool,
}

/// Cells of text with the names of their columns.
#[derive(Clone, Debug)]
pub struct Table {
    path: PathBuf,
    names: Vec<String>,
    keys: Vec<String>,
    rows: Vec<Vec<String>>,
    lines: Vec<u64>,
    delimiter: u8,
}

impl Table {
    /// Reads a file.
    ///
    /// # Errors
    /// [`TableError`] when the file cannot be read or is not a table of this format.
    pub fn read(path: &Path, format: &Format) -> Result<Self, TableError> {
        let bytes = std::fs::read(path)
            .map_err(|source| TableError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &bytes, format)
    }

    /// Parses the text of a file; the delimiter is whichever of `,`, `;` and tab the header holds
    /// most of.
    ///
    /// # Errors
    /// [`TableError`] when it is not a table of this format.
    pub fn parse(path: &Path, bytes: &[u8], format: &Format) -> Result<Self, TableError> {
        let path = path.to_owned();
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let delimiter = delimiter(bytes, format.comment);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .trim(csv::Trim::All)
            .comment(format.comment)
            .flexible(true)
            .from_reader(bytes);
        let mut names: Vec<String> = match reader.headers() {
            Ok(names) => names.iter().map(str::to_owned).collect(),
            Err(source) => return Err(TableError::Text { path, source }),
        };
        if names.iter().all(String::is_empty) {
            return Err(TableError::Empty { path });
        }
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        for record in reader.records() {
            let record = match record {
                Ok(record) => record,
                Err(source) => return Err(TableError::Text { path, source }),
            };
            let line = record.position().map_or(0, csv::Position::line);
            if format.row_names && rows.is_empty() && record.len() == names.len() + 1 {
                names.insert(0, String::new());
            }
            let mut row: Vec<String> = record.iter().map(str::to_owned).collect();
            if format.ragged && row.iter().skip(names.len()).all(String::is_empty) {
                row.resize(names.len(), String::new());
            }
            if row.len() != names.len() {
                let (cells, columns) = (row.len(), names.len());
                return Err(TableError::Width { path, line, cells, columns });
            }
            rows.push(row);
            lines.push(line);
        }
        if rows.is_empty() && !format.no_rows {
            return Err(TableError::NoRows { path });
        }
        let keys = names.iter().map(|n| normal(n)).collect();
        Ok(Self { path, names, keys, rows, lines, delimiter })
    }

    /// The file.
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
        self.rows.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Line of the file that a row starts on, from 1.
    #[must_use]
    pub fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    /// The cells, row by row.
    #[must_use]
    pub fn into_rows(self) -> Vec<Vec<String>> {
        self.rows
    }

    /// The first of these columns that is there; names are compared without case, blanks, underscores
    /// and hyphens.
    #[must_use]
    pub fn find(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|n| self.keys.iter().position(|k| *k == normal(n)))
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
        TableError::Missing {
            path: self.path.clone(),
            wanted: names.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(" or "),
            near: names
                .iter()
                .find_map(near)
                .map_or_else(String::new, |(n, _)| format!(" (did you mean '{n}'?)")),
            found: self.names.clone(),
        }
    }

    /// A cell, without blanks around it.
    ///
    /// # Panics
    /// When the table has no such row or column.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> &str {
        &self.rows[row][column]
    }

    /// A cell, or `None` when the column is not there or the cell holds nothing: empty, or one of
    /// NA, NaN, None and null.
    #[must_use]
    pub fn filled(&self, row: usize, column: Option<usize>) -> Option<&str> {
        let text = self.cell(row, column?);
        (!matches!(text, "" | "nan" | "NaN" | "NA" | "None" | "null")).then_some(text)
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

    /// A finite number. Where semicolons part the cells, a comma may stand for the decimal point, as
    /// spreadsheets of many languages write it.
    ///
    /// # Errors
    /// [`TableError::Cell`].
    pub fn number(&self, row: usize, column: usize) -> Result<f64, TableError> {
        let cell = self.cell(row, column);
        let parsed = match cell.split_once(',') {
            Some((whole, part))
                if self.delimiter == b';'
                    && digits(whole.trim_start_matches('-'))
                    && digits(part) =>
            {
                format!("{whole}.{part}").parse::<f64>()
            }
            _ => cell.parse(),
        };
        match parsed {
            Ok(v) if v.is_finite() => Ok(v),
            _ if cell.is_empty() => Err(self.wrong(row, column, "is empty")),
            _ => Err(self.wrong(row, column, format!("'{cell}' is not a finite number"))),
        }
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

fn delimiter(bytes: &[u8], comment: Option<u8>) -> u8 {
    let header = bytes
        .split(|&b| b == b'\n' || b == b'\r')
        .find(|l| !l.is_empty() && (comment.is_none() || l.first() != comment.as_ref()))
        .unwrap_or_default();
    let count = |d: u8| header.iter().filter(|&&b| b == d).count();
    [b',', b'\t', b';'].into_iter().rev().max_by_key(|&d| count(d)).unwrap_or(b',')
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn normal(name: &str) -> String {
    name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
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
        assert!(t.number(0, 0).is_err(), "a comma between commas is no decimal point");
    }

    #[test]
    fn widths() {
        let strict = |text| parse(text, Format::default()).map(|t| t.len());
        let error = strict("a,b\n1,2\n1,2,3\n").unwrap_err().to_string();
        assert_eq!(error, "t.csv: line 3: 3 cells, where the header has 2");
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
            let t = Table::parse(Path::new("f.csv"), &out.into_bytes(), &Format::default()).unwrap();
            for (row, c) in cells.iter().enumerate() {
                prop_assert_eq!(t.cell(row, 0), c.trim());
            }
        }
    }
}
