//! Writing files: whole or not at all.

pub use corpus::file::{Lock, LockError, WriteError, beside, persist, write};
use mitosis::text::cell;
use std::io;
use std::path::Path;

/// Writes a CSV file with a header. Cells that a spreadsheet would compute are written as text:
/// [`mitosis::text::cell`].
///
/// # Errors
/// [`WriteError`] as for [`write()`].
pub fn write_csv<const N: usize>(
    path: &Path,
    header: &[&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), WriteError> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let fail = |e: csv::Error| WriteError { path: path.to_owned(), source: io::Error::other(e) };
    out.write_record(header).map_err(fail)?;
    for row in rows {
        out.write_record(row.iter().map(|c| cell(c).into_owned())).map_err(fail)?;
    }
    let bytes =
        out.into_inner().map_err(|e| fail(csv::Error::from(io::Error::other(e.to_string()))))?;
    write(path, &bytes)
}
