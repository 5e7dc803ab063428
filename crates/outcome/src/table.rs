//! A table of text cells from CSV, TSV or Parquet, and errors that name file, column and row.

use crate::error::{Error, Result};
use base::panics::{Stopped, catch_panic};
use base::table::{
    COMMA, Format, LARGEST, Lookups, TWO_POINTS, Table as Text, TableError, Unread, decimal_comma,
    is_missing, readings,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most cells of a table.
const MOST_CELLS: usize = 20_000_000;

/// Columns of text with their names.
#[derive(Clone, Debug)]
pub struct Table {
    path: PathBuf,
    names: Vec<String>,
    columns: Vec<Vec<String>>,
    /// The values of columns that were computed, not read, by column.
    computed: BTreeMap<usize, Vec<f64>>,
    /// The line each row starts on; empty for Parquet.
    lines: Vec<u64>,
    /// The row of the file that each row came from.
    origin: Vec<usize>,
    missing: Vec<String>,
    /// Those of `missing` that are numbers.
    missing_numbers: Vec<f64>,
    /// Names of columns whose numbers have both a decimal comma and a point.
    two_points: Vec<String>,
    lookups: Lookups,
}

impl Table {
    /// Reads `path` by its extension (`.parquet`) or as delimited text: comma, tab or semicolon,
    /// whichever the header has most of. `missing` are further texts that mean "missing".
    ///
    /// # Errors
    /// When it cannot be read, is not a table, or has no rows.
    pub fn read(path: &Path, missing: &[String]) -> Result<Self> {
        let parquet = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"));
        let table = if parquet {
            // The reader of others takes some damaged files for a fault of its own.
            catch_panic(|| Ok(Self::read_parquet(path))).map_err(|stopped: Stopped| {
                Error::Parquet { path: path.to_owned(), what: "damaged", source: Box::new(stopped) }
            })?
        } else {
            Self::parse(path, &base::file::read(path, LARGEST)?)
        }?;
        Ok(table.with_missing(missing))
    }

    /// The same table, in which further texts mean "missing".
    #[must_use]
    pub fn with_missing(self, codes: &[String]) -> Self {
        let missing_numbers = codes.iter().filter_map(|code| code.parse().ok()).collect();
        Self { missing: codes.to_vec(), missing_numbers, ..self }
    }

    /// Parses delimited text; `path` names it in errors.
    ///
    /// # Errors
    /// When it is not a table or has no rows.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let text = Text::parse(path, bytes, &Format { row_names: true, ..Format::default() })?;
        let names = text.names().to_vec();
        check_cells(path, text.len(), names.len())?;
        let lines = (0..text.len()).map(|row| text.line(row)).collect();
        let columns = (0..names.len())
            .map(|column| {
                let cells = (0..text.len()).map(|row| text.cell(row, column));
                let commas = text.decimal_commas()
                    && !text.has_two_points(column)
                    && has_decimal_commas(cells.clone());
                cells.map(|c| if commas { c.replacen(',', ".", 1) } else { c.to_owned() }).collect()
            })
            .collect();
        let two_points = (0..names.len()).filter(|c| text.has_two_points(*c));
        let two_points = two_points.map(|c| names[c].clone()).collect();
        Ok(Self { two_points, ..Self::checked(path, names, columns, lines)? })
    }

    fn read_parquet(path: &Path) -> Result<Self> {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        use parquet::record::Field;
        fn fail<E: std::error::Error + Send + Sync + 'static>(
            path: &Path,
            what: &'static str,
        ) -> impl FnOnce(E) -> Error {
            let path = path.to_owned();
            move |source| Error::Parquet { path, what, source: Box::new(source) }
        }
        let file = base::file::open(path)?;
        let reader = SerializedFileReader::new(file).map_err(fail(path, "not a Parquet file"))?;
        let fields = reader.metadata().file_metadata().schema().get_fields();
        let names: Vec<String> = fields.iter().map(|f| f.name().to_owned()).collect();
        let rows = reader.metadata().file_metadata().num_rows();
        check_cells(path, rows.try_into().unwrap_or(0), names.len())?;
        for chunk in reader.metadata().row_groups().iter().flat_map(|g| g.columns()) {
            use parquet::basic::Compression;
            let codec = chunk.compression();
            let known = matches!(
                codec,
                Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_)
            );
            if !known {
                let codec = codec.to_string();
                return Err(Error::ParquetCodec { path: path.to_owned(), codec });
            }
        }
        let mut columns = vec![Vec::new(); names.len()];
        // A few bytes of a file can be many cells, and what it states of their number can be wrong.
        let mut bytes = 0;
        for row in reader.get_row_iter(None).map_err(fail(path, "cannot be read"))? {
            let row = row.map_err(fail(path, "damaged"))?;
            let rows = columns.first().map_or(0, Vec::len) + 1;
            check_cells(path, rows, names.len())?;
            if bytes > LARGEST {
                let mib = LARGEST >> 20;
                let reason = format!(
                    "its cells are more than {mib} MiB of text; keep the columns and rows of \
                     the analysis if there are others"
                );
                return Err(Error::Content { path: path.to_owned(), reason, setting: None });
            }
            for (column, (name, field)) in columns.iter_mut().zip(row.get_column_iter()) {
                column.push(match field {
                    Field::Null => String::new(),
                    Field::Str(text) => text.clone(),
                    // With a point, as every reader of tables writes floating-point numbers.
                    Field::Float(v) => format!("{v:?}"),
                    Field::Double(v) => format!("{v:?}"),
                    Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => {
                        return Err(Error::ParquetColumn {
                            path: path.to_owned(),
                            column: name.clone(),
                        });
                    }
                    other => other.to_string(),
                });
                bytes += column.last().map_or(0, |cell| cell.len() as u64);
            }
        }
        Self::checked(path, names, columns, Vec::new())
    }

    fn checked(
        path: &Path,
        names: Vec<String>,
        columns: Vec<Vec<String>>,
        lines: Vec<u64>,
    ) -> Result<Self> {
        if columns.first().is_none_or(Vec::is_empty) {
            return Err(TableError::no_rows(path).into());
        }
        let origin = (0..columns[0].len()).collect();
        Ok(Self {
            path: path.to_owned(),
            names,
            columns,
            computed: BTreeMap::new(),
            lines,
            origin,
            missing: Vec::new(),
            missing_numbers: Vec::new(),
            two_points: Vec::new(),
            lookups: Lookups::default(),
        })
    }

    /// Where it came from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Column names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Rows; there is always one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a table without rows is refused")]
    pub fn len(&self) -> usize {
        self.columns[0].len()
    }

    /// The first of `names` that exists.
    #[must_use]
    pub fn first_column(&self, names: &[&str]) -> Option<usize> {
        let found = names.iter().find_map(|n| self.names.iter().position(|have| have == n));
        self.lookups.note(names, found);
        found
    }

    /// The columns whose name is nearly one that was looked for and not found; a table of patients or slides may have
    /// any others.
    #[must_use]
    pub fn misspelt(&self) -> Option<Unread> {
        self.lookups.unread(&self.path, &self.names, true)
    }

    /// The column of exactly this name.
    ///
    /// # Errors
    /// When no column has it, or two have.
    pub fn column(&self, name: &str) -> Result<usize> {
        let mut found = (0..self.names.len()).filter(|&j| self.names[j] == name);
        let path = || self.path.clone();
        let Some(j) = found.next() else {
            let near = self.names.iter().find(|have| have.eq_ignore_ascii_case(name));
            let part = |have: &&String| have.split(',').any(|part| part.trim() == name.trim());
            let near = match (near, self.names.iter().find(part)) {
                (Some(have), _) => format!(" (did you mean '{have}'?)"),
                (None, Some(have)) => {
                    format!(" (did you mean '\"{have}\"'? A name with a comma needs the marks)")
                }
                (None, None) => String::new(),
            };
            let missing = TableError::Missing {
                path: path(),
                wanted: format!("'{name}'"),
                near,
                found: self.names.clone(),
            };
            return Err(missing.into());
        };
        if found.next().is_some() {
            return Err(TableError::Twice { path: path(), name: name.to_owned() }.into());
        }
        self.lookups.note(&[name], Some(j));
        Ok(j)
    }

    /// The cell, or `None` if it is missing. A code for missing that is a number means every form of it: 999 and
    /// 999.0. What was computed is never a code.
    #[must_use]
    pub fn cell(&self, row: usize, column: usize) -> Option<&str> {
        let cell = self.columns[column][row].as_str();
        let missing = is_missing(cell) || self.is_code(cell);
        (self.is_computed(column) || !missing).then_some(cell)
    }

    fn is_code(&self, cell: &str) -> bool {
        if self.missing.iter().any(|code| code == cell) {
            return true;
        }
        // 0999 is a name, and not the number 999.
        let padded = cell.starts_with('0') && cell[1..].starts_with(|c: char| c.is_ascii_digit());
        let number = || cell.parse::<f64>().is_ok_and(|v| self.missing_numbers.contains(&v));
        !self.missing_numbers.is_empty() && !padded && number()
    }

    /// Whether two rows have one value in a column: the same text, or forms of one number.
    pub(crate) fn agree(&self, row: usize, other: usize, column: usize) -> bool {
        match (self.cell(row, column), self.cell(other, column)) {
            (Some(a), Some(b)) => same_value(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    /// The refusal of a row that contradicts the `first` of the same patient; `more` ends the sentence.
    pub(crate) fn contradiction(
        &self,
        row: usize,
        column: usize,
        first: usize,
        patient: &str,
        more: &str,
    ) -> Error {
        let reason = format!(
            "'{}', but '{}' of the same patient '{patient}' in row {}{more}",
            self.raw(row, column),
            self.raw(first, column),
            self.row_in_file(first) + 1,
        );
        self.wrong(row, column, reason)
    }

    /// The same table without codes for missing beyond the usual words.
    pub(crate) fn without_codes(self) -> Self {
        Self { missing: Vec::new(), missing_numbers: Vec::new(), ..self }
    }

    /// Whether a column was computed, not read: all its cells are numbers.
    pub(crate) fn is_computed(&self, column: usize) -> bool {
        self.computed.contains_key(&column)
    }

    /// The cell as it was written.
    #[must_use]
    pub fn raw(&self, row: usize, column: usize) -> &str {
        &self.columns[column][row]
    }

    /// The texts of a column that mean "missing", other than an empty cell, with how often each occurs.
    #[must_use]
    pub fn missing_words(&self, column: usize) -> BTreeMap<&str, usize> {
        let mut words = BTreeMap::new();
        for row in 0..self.len() {
            let raw = self.raw(row, column);
            if !raw.is_empty() && self.cell(row, column).is_none() {
                *words.entry(raw).or_insert(0) += 1;
            }
        }
        words
    }

    /// A table made from this one: its path and missing codes, other columns, the last of which are the `computed`
    /// ones. Row i was made from row `origin[i]` of this one.
    pub(crate) fn derived(
        &self,
        names: Vec<String>,
        mut columns: Vec<Vec<String>>,
        computed: Vec<Vec<f64>>,
        origin: &[usize],
    ) -> Result<Self> {
        let first = columns.len();
        columns.extend(computed.iter().map(|c| c.iter().map(f64::to_string).collect()));
        let lines = origin.iter().filter_map(|&r| self.lines.get(r).copied()).collect();
        let mut table = Self::checked(&self.path, names, columns, lines)?;
        table.origin = origin.iter().map(|&r| self.origin[r]).collect();
        table.missing.clone_from(&self.missing);
        table.missing_numbers.clone_from(&self.missing_numbers);
        table.two_points.clone_from(&self.two_points);
        table.computed = (first..).zip(computed).collect();
        Ok(table)
    }

    /// The row, from 0, of the file that a row came from.
    pub(crate) fn row_in_file(&self, row: usize) -> usize {
        self.origin[row]
    }

    /// "file, column 'x', row 3 (line 4)".
    #[must_use]
    pub fn place(&self, row: usize, column: usize) -> String {
        let line = self.lines.get(row).map(|l| format!(" (line {l})")).unwrap_or_default();
        let (path, name) = (self.path.display(), &self.names[column]);
        format!("{path}, column '{name}', row {}{line}", self.origin[row] + 1)
    }

    pub(crate) fn wrong(&self, row: usize, column: usize, reason: impl Into<String>) -> Error {
        let (place, reason) = (self.place(row, column), reason.into());
        Error::Cell { place, reason, setting: None }
    }

    /// Refuses a number whose comma or point may part thousands, as the column has numbers of both kinds.
    pub(crate) fn check_point(&self, row: usize, column: usize) -> Result<()> {
        let cell = &self.columns[column][row];
        let number = decimal_comma(cell) || cell.contains('.') && cell.parse::<f64>().is_ok();
        if number && !self.is_computed(column) && self.two_points.contains(&self.names[column]) {
            let readings = readings(cell);
            return Err(self.wrong(row, column, format!("'{cell}'{readings} {TWO_POINTS}")));
        }
        Ok(())
    }

    /// A finite number.
    ///
    /// # Errors
    /// [`Error::Cell`] with the place.
    pub fn number(&self, row: usize, column: usize) -> Result<f64> {
        self.check_point(row, column)?;
        let cell = &self.columns[column][row];
        let value = match self.computed.get(&column) {
            Some(values) => Some(values[row]),
            None => cell.parse::<f64>().ok(),
        };
        match value {
            Some(v) if v.is_finite() => Ok(v),
            _ => {
                let comma = if decimal_comma(cell) { COMMA } else { "" };
                Err(self.wrong(row, column, format!("'{cell}' is not a finite number{comma}")))
            }
        }
    }

    /// The number of a column that the table may lack, in a cell that may be empty.
    ///
    /// # Errors
    /// [`Error::Cell`] with the place.
    pub fn number_if_any(&self, row: usize, column: Option<usize>) -> Result<Option<f64>> {
        match column {
            Some(c) if self.cell(row, c).is_some() => self.number(row, c).map(Some),
            _ => Ok(None),
        }
    }
}

/// Refuses a table of more cells than fit into memory with room for the analysis.
fn check_cells(path: &Path, rows: usize, columns: usize) -> Result<()> {
    if rows.saturating_mul(columns) <= MOST_CELLS {
        return Ok(());
    }
    let reason = format!(
        "{rows} rows of {columns} columns are more than {MOST_CELLS} cells; keep the columns and rows \
         of the analysis if there are others"
    );
    Err(Error::Content { path: path.to_owned(), reason, setting: None })
}

/// Whether two cells have the same text, or are forms of one number.
pub(crate) fn same_value(a: &str, b: &str) -> bool {
    a == b || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

/// Whether a column's numbers have decimal commas: all filled cells are numbers then.
fn has_decimal_commas<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    let mut commas = false;
    for cell in cells.filter(|c| !is_missing(c)) {
        if decimal_comma(cell) {
            commas = true;
        } else if cell.parse::<f64>().is_err() {
            return false;
        }
    }
    commas
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Table> {
        Table::parse(Path::new("t.csv"), text.as_bytes())
    }

    #[test]
    fn delimiters_quotes_and_missing() {
        for text in
            ["a,b\n1,\"x,y\"\nNA,2\n", "\u{feff}a\tb\r\n1\tx,y\r\n#N/A\t2\r\n", "a;b\n1;x,y\n;2"]
        {
            let t = parse(text).unwrap();
            assert_eq!(t.names(), ["a", "b"]);
            assert_eq!(t.cell(0, 1), Some("x,y"));
            assert_eq!(t.cell(1, 0), None);
            assert_eq!(t.number(1, 1).unwrap(), 2.0);
        }
    }

    #[test]
    fn row_names_of_r_have_no_header() {
        let t = parse("\"x\"\t\"y\"\n\"1\"\t5\t7\n\"2\"\t6\t8\n").unwrap();
        assert_eq!(t.names(), ["", "x", "y"]);
        assert_eq!(t.number(1, t.column("y").unwrap()).unwrap(), 8.0);
        // Rows that end with a delimiter have no names: every cell would move to the next column.
        let error = parse("time,event,male\n325,1,0,\n200,0,1,\n").unwrap_err().to_string();
        assert!(error.contains("line 2: 4 cells, where the header has 3"), "{error}");
    }

    #[test]
    fn decimal_commas_of_a_column_are_read() {
        let t = parse("a;b;c\n1,5;1,5;x\nNA;x;y\n2;3;z\n").unwrap();
        assert_eq!((t.number(0, 0).unwrap(), t.number(2, 0).unwrap()), (1.5, 2.0));
        assert_eq!(t.cell(0, 1), Some("1,5"), "not all of the column are numbers");
    }

    #[test]
    fn a_point_that_may_part_thousands_is_not_guessed() {
        for text in ["a;b\n0,5;1,5\n1.200;2\n7;3\n", "a\tb\n0,5\t1.5\n1.200\t2\n7\t3\n"] {
            let t = parse(text).unwrap();
            let error = t.number(1, 0).unwrap_err().to_string();
            assert!(
                error
                    .contains("column 'a', row 2 (line 3): '1.200' (1200 or 1.200) is in a column"),
                "{error}"
            );
            assert_eq!((t.number(2, 0).unwrap(), t.number(1, 1).unwrap()), (7.0, 2.0));
            let part = t.derived(vec!["a".into()], vec![vec!["1.200".into()]], vec![], &[1]);
            assert!(part.unwrap().number(0, 0).is_err(), "of a part of its rows neither");
        }
    }

    #[test]
    fn words_of_other_programs_mean_missing() {
        let t = parse("stage\tage\n'--\t[Not Available]\nI\tUNK\n").unwrap();
        assert_eq!((t.cell(0, 0), t.cell(0, 1), t.cell(1, 1)), (None, None, None));
        assert_eq!(t.missing_words(0), BTreeMap::from([("'--", 1)]));
        // Errors of spreadsheets sort before every level of a factor.
        let t = parse("stage\n#CALC!\nErr:502\n[Completed]\nStage I\n").unwrap();
        assert_eq!(t.missing_words(0).len(), 3);
    }

    #[test]
    fn a_code_that_is_a_number_means_every_form_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, "a\n999\n999.0\n0999\n99\nlost\n").unwrap();
        let t = Table::read(&path, &["999".into(), "lost".into()]).unwrap();
        let cells: Vec<_> = (0..t.len()).map(|r| t.cell(r, 0)).collect();
        assert_eq!(cells, [None, None, Some("0999"), Some("99"), None]);
        let mean = t.derived(vec!["m".into()], Vec::new(), vec![vec![999.0]], &[0]).unwrap();
        assert_eq!(mean.cell(0, 0), Some("999"), "what was computed is not a code");
    }

    #[test]
    fn too_many_cells_are_refused() {
        assert!(
            check_cells(Path::new("t"), 60_000_000, 2).unwrap_err().to_string().contains("cells")
        );
    }

    #[test]
    fn bad_tables_are_named() {
        let error = |text: &str| parse(text).map(|_| ()).unwrap_err().to_string();
        assert!(error("").contains("t.csv"));
        assert!(error("a,b\n").contains("no rows"));
        assert!(error("a,b\n1,2\n1,2,3\n").contains("line 3: 3 cells, where the header has 2"));
        assert!(error("a,b\n1\n").contains("line 2: 1 cells"));
        assert!(error("a,b\n1,2,3,4\n").contains("line 2: 4 cells"));
        let t = parse("a,a,c\n1,2,inf\n").unwrap();
        assert!(t.column("a").unwrap_err().to_string().contains("two columns"));
        assert!(t.column("C").unwrap_err().to_string().contains("did you mean 'c'"));
        assert!(t.number(0, 2).unwrap_err().to_string().contains("row 1 (line 2)"));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_table_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(t) = Table::parse(Path::new("f.csv"), &bytes) {
                for row in 0..t.len() {
                    for column in 0..t.names().len() {
                        let _ = (t.cell(row, column), t.number(row, column).is_ok());
                    }
                }
            }
        }

        #[test]
        fn cells_come_back(cells in prop::collection::vec("[a-zA-Z0-9 ,;\"\n]{0,6}", 1..20)) {
            let mut out = base::table::Writer::new(["x", "y"]);
            cells.iter().for_each(|c| out.push([c.as_str(), "1"]));
            let t = match Table::parse(Path::new("f.csv"), &out.into_bytes()) {
                // A cell whose lines look like rows is refused.
                Err(Error::Table(TableError::Swallowed { .. })) => {
                    prop_assert!(cells.iter().any(|c| c.contains('\n') && c.contains([',', ';'])));
                    return Ok(());
                }
                read => read.unwrap(),
            };
            for (row, c) in cells.iter().enumerate() {
                prop_assert_eq!(&t.columns[0][row], c.trim());
            }
        }
    }
}
