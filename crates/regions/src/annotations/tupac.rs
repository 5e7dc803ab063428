//! TUPAC16 / AMIDA ground truth: headerless `row,column` lines (y first), one file per image,
//! `mitoses_ground_truth/<case>/<image>.csv` and `nonmitoses_ground_truth/...`.

use super::collect::{Category, Collector, Place, Raw};
use super::files::{broken, read_bytes, stem};
use super::{Annotations, Class, ImageEntry, ImportError, ImportOptions};
use base::table::{Format, Table, TableError};
use crops::schema::Split;
use std::path::Path;

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Annotations, ImportError> {
    let files = if path.is_dir() {
        let files = base::walk::files(path, &|_| true);
        let mut files = files.map_err(|e| ImportError::Io { file: e.path, reason: e.source })?;
        files.retain(|f| f.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")));
        if files.is_empty() {
            return Err(broken(path, "the folder holds no .csv file"));
        }
        files
    } else {
        vec![path.to_path_buf()]
    };
    let mut c = Collector::new("tupac-csv", path, options);
    for file in &files {
        let class = folder_class(path, file);
        let case = file
            .parent()
            .filter(|_| path.is_dir())
            .and_then(Path::file_name)
            .map(|n| n.to_string_lossy().into_owned())
            .filter(|n| !n.to_lowercase().contains("mitos"));
        let image = match &case {
            Some(case) => format!("{case}/{}", stem(file)),
            None => stem(file),
        };
        let entry = || ImageEntry {
            name: image.clone(),
            cohort: Some("TUPAC16".into()),
            patient: case.clone(),
            ..ImageEntry::default()
        };
        let number = c.image_named(&image, entry);
        let shown = file.strip_prefix(path).ok().filter(|p| !p.as_os_str().is_empty());
        let shown = shown.unwrap_or(file).display().to_string();
        // An image without figures has an empty file.
        let format = Format { ragged: true, headless: true, ..Format::default() };
        let table = match Table::parse(file, &read_bytes(file)?, &format) {
            Err(TableError::NoRows { .. }) => continue,
            table => table.map_err(ImportError::Table)?,
        };
        for line in 0..table.len() {
            let record = format!("{shown}, line {}", table.line(line));
            let two =
                (table.names().len() == 2).then(|| (table.number(line, 0), table.number(line, 1)));
            let Some((Ok(row), Ok(column))) = two else {
                let cells: Vec<&str> =
                    (0..table.names().len()).map(|c| table.cell(line, c)).collect();
                c.problem(record, format!("`{}` is not `row,column`", cells.join(",")));
                continue;
            };
            let name = if class == Class::MitoticFigure { "mitosis" } else { "non-mitosis" };
            let category = Category::Fixed(class, name.into());
            let raw = Raw::new(number, record, category, Place::Point(column, row));
            c.take(Raw { split: Some(Split::Test), ..raw });
        }
    }
    c.finish()
}

/// Folder names decide; the original release has mitoses only.
fn folder_class(root: &Path, file: &Path) -> Class {
    let below = file.strip_prefix(root.parent().unwrap_or(root)).unwrap_or(file);
    let non = below.components().any(|c| {
        let c = c.as_os_str().to_string_lossy().to_lowercase();
        c.contains("nonmitos") || c.contains("non_mitos") || c.contains("non-mitos")
    });
    if non { Class::Mimicker } else { Class::MitoticFigure }
}
