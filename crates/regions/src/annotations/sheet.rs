//! A delimited text file with a header, columns found by name in any order.

use super::collect::{broken, read_text};
use super::error::ImportError;
use std::path::{Path, PathBuf};

pub(super) struct Sheet {
    file: PathBuf,
    /// Headers as written.
    pub headers: Vec<String>,
    keys: Vec<String>,
    /// Line number and cells.
    pub rows: Vec<(u64, Vec<String>)>,
}

impl Sheet {
    /// Reads the file; the delimiter is whichever of `,`, `;` and tab the header holds most.
    pub fn read(file: &Path) -> Result<Self, ImportError> {
        let text = read_text(file)?;
        let header = text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default();
        let count = |d: u8| header.bytes().filter(|&b| b == d).count();
        let delimiter = [b',', b';', b'\t'].into_iter().rev().max_by_key(|&d| count(d));
        let delimiter = delimiter.unwrap_or(b',');
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let bad = |e: csv::Error| broken(file, format!("not a table ({e})"));
        let headers: Vec<String> =
            reader.headers().map_err(bad)?.iter().map(str::to_owned).collect();
        if headers.iter().all(String::is_empty) {
            return Err(broken(file, "the file is empty"));
        }
        let keys: Vec<String> = headers.iter().map(|h| normal(h)).collect();
        for (i, k) in keys.iter().enumerate() {
            if !k.is_empty() && keys[..i].contains(k) {
                let reason =
                    format!("the column `{}` stands twice; rename or remove one", headers[i]);
                return Err(broken(file, reason));
            }
        }
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(bad)?;
            let line = record.position().map_or(0, csv::Position::line);
            // A delimiter inside a cell would shift every column behind it.
            if record.iter().skip(headers.len()).any(|c| !c.is_empty()) {
                return Err(broken(
                    file,
                    format!(
                        "line {line} has {} cells, the header {}; quote cells that hold `{}`",
                        record.len(),
                        headers.len(),
                        char::from(delimiter)
                    ),
                ));
            }
            // Spreadsheets that separate cells by semicolons write decimal commas.
            let plain = |c: &str| match c.split_once(',') {
                Some((a, b))
                    if delimiter == b';' && digits(a.trim_start_matches('-')) && digits(b) =>
                {
                    format!("{a}.{b}")
                }
                _ => c.to_owned(),
            };
            rows.push((line, record.iter().map(plain).collect()));
        }
        Ok(Self { file: file.into(), headers, keys, rows })
    }

    /// A refusal of the whole table.
    pub fn broken(&self, reason: &str) -> ImportError {
        broken(&self.file, reason)
    }

    /// The first of these columns that is there; names are compared without case, blanks,
    /// underscores and hyphens.
    pub fn find(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|n| self.keys.iter().position(|k| *k == normal(n)))
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

    /// Columns whose normalised name begins and ends so, in order, e.g. `expert` .. `atypical`.
    pub fn family(&self, starts: &str, ends: &str) -> Vec<usize> {
        (0..self.keys.len())
            .filter(|&i| self.keys[i].starts_with(starts) && self.keys[i].ends_with(ends))
            .collect()
    }
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn normal(name: &str) -> String {
    name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The cell, or "" when the row is too short.
pub(super) fn cell(row: &[String], column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

/// The cell, unless empty or a word for "nothing".
pub(super) fn filled(row: &[String], column: Option<usize>) -> Option<String> {
    let text = cell(row, column?);
    (!matches!(text, "" | "nan" | "NaN" | "NA" | "None" | "null")).then(|| text.to_owned())
}

/// A finite number, or what is there instead.
pub(super) fn number(row: &[String], column: usize, what: &str) -> Result<f64, String> {
    let text = cell(row, column);
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() => Ok(v),
        Ok(v) => Err(format!("{what} is {v}")),
        Err(_) if text.is_empty() => Err(format!("{what} is empty")),
        Err(_) => Err(format!("{what} is `{text}`, not a number")),
    }
}

/// `true`, `1`, `yes` and their opposites.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "1" | "1.0" | "yes" => Some(true),
        "false" | "0" | "0.0" | "no" => Some(false),
        _ => None,
    }
}
