//! A table of counts of a review, which must not contradict itself.

use base::table::{Format, Table, TableError, Unread};
use crops::audit::{ReviewCounts, Row};
use std::collections::BTreeMap;
use std::path::Path;

/// Largest count: sums stay whole numbers.
const MOST: u64 = 1_000_000_000_000;
const BOXES: [&str; 4] = ["box25", "box50", "box75", "box_larger"];

struct Columns {
    cohort: usize,
    stratum: usize,
    /// Confirmed, not confirmed, unsure.
    verdicts: [usize; 3],
    reviewed: Option<usize>,
    pool: Option<usize>,
    boxes: Option<[usize; 4]>,
    /// Elsewhere, and asked about it.
    elsewhere: Option<[usize; 2]>,
}

/// Columns that belong together: all of them, or none.
fn together<const N: usize>(
    table: &Table,
    names: [&str; N],
) -> Result<Option<[usize; N]>, TableError> {
    if names.iter().all(|n| table.find(&[n]).is_none()) {
        return Ok(None);
    }
    let mut found = [0; N];
    for (column, name) in found.iter_mut().zip(names) {
        *column = table.need(&[name])?;
    }
    Ok(Some(found))
}

fn count(table: &Table, row: usize, column: usize) -> Result<u64, TableError> {
    if table.cell(row, column).is_empty() {
        return Err(table.wrong(row, column, "is empty; write 0 where nothing was counted"));
    }
    match table.count(row, column)? {
        n if n > MOST => Err(table.wrong(row, column, format!("{n} is more than {MOST}"))),
        n => Ok(n),
    }
}

/// Counts of columns that a row has all of, or none.
fn counts<const N: usize>(
    table: &Table,
    row: usize,
    columns: Option<[usize; N]>,
) -> Result<Option<[u64; N]>, TableError> {
    let Some(columns) = columns else { return Ok(None) };
    if columns.iter().all(|&c| table.cell(row, c).is_empty()) {
        return Ok(None);
    }
    let mut found = [0; N];
    for (n, column) in found.iter_mut().zip(columns) {
        *n = count(table, row, column)?;
    }
    Ok(Some(found))
}

/// One name for each cohort of TCGA, as the paper's tables have it: `TCGA-BRCA` is `BRCA`, and colon, `COAD` elsewhere,
/// is `COLON_DX`.
fn cohort_name(name: &str) -> &str {
    match name.strip_prefix("TCGA-").unwrap_or(name) {
        "COAD" => "COLON_DX",
        other => other,
    }
}

impl Columns {
    fn find(table: &Table) -> Result<Self, TableError> {
        let need = |name: &str| table.need(&[name]);
        let maybe = |name: &str| table.find(&[name]).map(|_| table.need(&[name])).transpose();
        Ok(Self {
            cohort: need("cohort")?,
            stratum: need("stratum")?,
            verdicts: [need("confirmed")?, need("not_confirmed")?, need("unsure")?],
            reviewed: maybe("reviewed")?,
            pool: maybe("pool")?,
            boxes: together(table, BOXES)?,
            elsewhere: together(table, ["elsewhere", "elsewhere_asked"])?,
        })
    }

    fn row(&self, table: &Table, row: usize) -> Result<Row, TableError> {
        for (column, what) in [(self.cohort, "cohort"), (self.stratum, "stratum")] {
            if table.cell(row, column).is_empty() {
                return Err(table.wrong(row, column, format!("names no {what}")));
            }
        }
        let single = |column: Option<usize>| -> Result<Option<u64>, TableError> {
            Ok(counts(table, row, column.map(|c| [c]))?.map(|[n]| n))
        };
        let [confirmed, not_confirmed, unsure] = {
            let [a, b, c] = self.verdicts;
            [count(table, row, a)?, count(table, row, b)?, count(table, row, c)?]
        };
        let sum = confirmed + not_confirmed + unsure;
        if let (Some(column), Some(stated)) = (self.reviewed, single(self.reviewed)?)
            && stated != sum
        {
            let reason = format!(
                "{stated} crops reviewed, but {confirmed} confirmed, {not_confirmed} not confirmed and {unsure} unsure \
                 are {sum}"
            );
            return Err(table.wrong(row, column, reason));
        }
        let pool = single(self.pool)?;
        if let (Some(column), Some(pool)) = (self.pool, pool.filter(|&p| p < sum)) {
            let reason = format!("a pool of {pool} crops, but {sum} drawn from it were reviewed");
            return Err(table.wrong(row, column, reason));
        }
        let [elsewhere, elsewhere_asked] = counts(table, row, self.elsewhere)?.unwrap_or_default();
        if let Some([column, asked]) = self.elsewhere {
            if elsewhere > elsewhere_asked {
                let reason = format!("{elsewhere} crops, but {elsewhere_asked} were asked about");
                return Err(table.wrong(row, column, reason));
            }
            let unconfirmed = not_confirmed + unsure;
            if elsewhere_asked > unconfirmed {
                let reason = format!(
                    "{elsewhere_asked} crops asked about, but {unconfirmed} were not confirmed or unsure"
                );
                return Err(table.wrong(row, asked, reason));
            }
        }
        Ok(Row {
            cohort: cohort_name(table.cell(row, self.cohort)).into(),
            stratum: table.cell(row, self.stratum).into(),
            pool,
            counts: ReviewCounts {
                confirmed,
                not_confirmed,
                unsure,
                boxes: counts(table, row, self.boxes)?.unwrap_or_default(),
                elsewhere,
                elsewhere_asked,
            },
        })
    }

    /// Boxes are of confirmed figures: of those of the row, or where one row alone has boxes, of all rows.
    fn check_boxes(&self, table: &Table, rows: &[Row]) -> Result<(), TableError> {
        let Some(columns) = self.boxes else { return Ok(()) };
        let with: Vec<usize> =
            (0..rows.len()).filter(|&r| !table.cell(r, columns[0]).is_empty()).collect();
        let all: u64 = rows.iter().map(|r| r.counts.confirmed).sum();
        for &row in &with {
            let boxes: u64 = rows[row].counts.boxes.iter().sum();
            let confirmed = if with.len() == 1 { all } else { rows[row].counts.confirmed };
            if boxes > confirmed {
                let reason = format!("boxes of {boxes} figures, but {confirmed} confirmed");
                return Err(table.wrong(row, columns[0], reason));
            }
        }
        Ok(())
    }
}

/// Reads a table of counts; with the columns that are not read.
///
/// # Errors
/// For a column that is missing, a cell that is empty or not a count, a cohort whose stratum has two rows, and
/// counts that contradict each other.
pub(super) fn read_counts(file: &Path) -> Result<(Vec<Row>, Option<Unread>), TableError> {
    let table = Table::read(file, &Format { comment: Some(b'#'), ..Format::default() })?;
    let columns = Columns::find(&table)?;
    let mut rows: Vec<Row> = Vec::with_capacity(table.len());
    let mut seen = BTreeMap::new();
    for row in 0..table.len() {
        let read = columns.row(&table, row)?;
        if let Some(first) = seen.insert((read.cohort.clone(), read.stratum.clone()), row) {
            let reason = format!(
                "the stratum '{}' of '{}' has a row above, row {} (line {}); keep one of the two",
                read.stratum,
                read.cohort,
                first + 1,
                table.line(first)
            );
            return Err(table.wrong(row, columns.cohort, reason));
        }
        rows.push(read);
    }
    columns.check_boxes(&table, &rows)?;
    Ok((rows, table.unread()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_is_not_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.csv");
        let unread = |more: &str| {
            let head = "cohort,stratum,confirmed,not_confirmed,unsure";
            std::fs::write(&file, format!("{head},{more}\na,b,1,2,0,9\n")).unwrap();
            read_counts(&file).unwrap().1.map(|u| u.to_string()).unwrap_or_default()
        };
        assert!(unread("pools").ends_with("1 column is not read: `pools` (is `pool` meant?)"));
        assert!(unread("reader").ends_with("1 column is not read: `reader`"));
        assert_eq!(unread("pool"), "");
    }
}
