//! A delimited text file with a header, columns found by name in any order.

use super::columns::SLIDE;
use super::error::ImportError;
use super::files::{broken, read_bytes};
use base::table::{Format, TWO_POINTS, Table, TableError, decimal_comma, is_missing, readings};
use std::path::{Path, PathBuf};

pub(super) struct Sheet {
    file: PathBuf,
    table: Table,
    /// Headers as written.
    pub headers: Vec<String>,
    /// Line number and cells.
    pub rows: Vec<(u64, Vec<String>)>,
}

/// What to name instead of a folder, of whose tables the first are listed.
fn of_folder(folder: &Path) -> String {
    let table = |p: &PathBuf| {
        p.extension()
            .is_some_and(|e| ["csv", "tsv", "txt"].iter().any(|t| e.eq_ignore_ascii_case(t)))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut tables: Vec<PathBuf> = entries.map(|e| e.path()).filter(table).collect();
    tables.sort();
    let named: Vec<String> = tables.iter().take(3).map(|p| p.display().to_string()).collect();
    match named.is_empty() {
        true => "this is a folder without a table; name the table of the labels".into(),
        false => format!("this is a folder; name the table in it: {}", named.join(", ")),
    }
}

impl Sheet {
    /// Reads the file as every table is read; rows may be shorter than the header.
    pub fn read(file: &Path) -> Result<Self, ImportError> {
        Self::read_as(file, &Format { ragged: true, ..Format::default() })
    }

    /// Reads the file in another format.
    pub fn read_as(file: &Path, format: &Format) -> Result<Self, ImportError> {
        if file.is_dir() {
            return Err(broken(file, of_folder(file)));
        }
        let bytes = read_bytes(file)?;
        let table = Table::parse(file, &bytes, format).map_err(|e| match e {
            TableError::Empty { .. } => broken(file, "the file is empty"),
            e => ImportError::Table(e),
        })?;
        table.names_once().map_err(ImportError::Table)?;
        // Spreadsheets that separate cells by semicolons write decimal commas.
        let plain = |c: &str| match table.decimal_commas() && decimal_comma(c) {
            true => c.replacen(',', ".", 1),
            false => c.to_owned(),
        };
        let cells = |row| (0..table.names().len()).map(|i| plain(table.cell(row, i))).collect();
        let rows = (0..table.len()).map(|row| (table.line(row), cells(row))).collect();
        let headers = table.names().to_vec();
        Ok(Self { file: file.into(), table, headers, rows })
    }

    /// The table itself, row by row as in `rows`.
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// A refusal of the whole table.
    pub fn broken(&self, reason: &str) -> ImportError {
        broken(&self.file, reason)
    }

    /// What is uncertain about its boxes.
    pub fn boxes(&self, reason: &str) -> ImportError {
        ImportError::Boxes { file: self.file.clone(), reason: reason.into() }
    }

    /// The first of these columns that is there; names are compared without case, blanks,
    /// underscores and hyphens.
    pub fn find(&self, names: &[&str]) -> Option<usize> {
        self.table.find(names)
    }

    /// Whether any row has a value in a column.
    pub fn has_values(&self, column: usize) -> bool {
        self.rows.iter().any(|(_, cells)| cells.get(column).is_some_and(|c| !c.trim().is_empty()))
    }

    /// The column of the slides that images were cut from; `None` where the slide is the image.
    pub fn slide(&self, image: usize) -> Option<usize> {
        let own = SLIDE.iter().any(|name| self.find(&[name]) == Some(image));
        self.find(SLIDE).filter(|_| !own)
    }

    /// Like [`Self::find`] for several columns that must all be there.
    pub fn need<const N: usize>(
        &self,
        wanted: [(&str, &[&str]); N],
    ) -> Result<[usize; N], ImportError> {
        let found = wanted.map(|(_, names)| self.find(names));
        if let Some(all) = found.iter().copied().collect::<Option<Vec<_>>>() {
            return Ok(std::array::from_fn(|i| all[i]));
        }
        let missing = wanted
            .iter()
            .zip(found)
            .filter(|(_, f)| f.is_none())
            .map(|((what, names), _)| format!("{what} (a column named {})", names.join(" or ")))
            .collect();
        Err(ImportError::Missing { file: self.file.clone(), missing, found: self.headers.clone() })
    }

    /// A finite number, or what is there instead.
    pub(crate) fn number(&self, row: &[String], column: usize, what: &str) -> Result<f64, String> {
        let text = cell(row, column);
        if self.table.has_two_points(column) && text.contains(['.', ',']) {
            let readings = readings(text);
            return Err(format!("{what} is `{text}`{readings}, which {TWO_POINTS}"));
        }
        match text.parse::<f64>() {
            Ok(v) if v.is_finite() => Ok(v),
            Ok(v) => Err(format!("{what} is {v}")),
            Err(_) if text.is_empty() => Err(format!("{what} is empty")),
            Err(_) if decimal_comma(text) => Err(format!(
                "{what} is `{text}`; its comma may part thousands or be a decimal point: write it \
                 without, or with a point"
            )),
            Err(_) => Err(format!("{what} is `{text}`, not a number")),
        }
    }

    /// Columns whose normalised name begins and ends so, in order, e.g. `expert` .. `atypical`.
    pub fn family(&self, starts: &str, ends: &str) -> Vec<usize> {
        self.table.family(starts, ends)
    }

    /// The columns of single experts; of those that are usual one that is missing may be misspelt.
    pub fn experts(&self, usual: &[&str]) -> Vec<usize> {
        for name in usual {
            self.find(&[name]);
        }
        self.family("expert", "")
    }
}

/// The cell, or "" when the row is too short.
pub(super) fn cell(row: &[String], column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

/// The cell, unless empty or a word for "nothing".
pub(super) fn filled(row: &[String], column: Option<usize>) -> Option<String> {
    let text = cell(row, column?);
    (!is_missing(text)).then(|| text.to_owned())
}

/// A side of an image, pixels: a whole number above 0; otherwise what the text is.
pub(super) fn pixels(text: &str) -> Result<u32, String> {
    let side = text.trim().parse::<f64>().ok();
    let side = side.filter(|v| v.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(v));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    side.map(|v| v as u32).ok_or_else(|| format!("`{text}`, not a whole number of pixels above 0"))
}
