//! TUPAC16 / AMIDA ground truth: headerless `row,column` lines (y first), one file per image,
//! `mitoses_ground_truth/<case>/<image>.csv` and `nonmitoses_ground_truth/...`.

use super::collect::{Category, Collector, Place, Raw, broken, read_text, stem};
use super::{Annotations, Class, ImageEntry, ImportError, ImportOptions};
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
        let class = class_of(path, file);
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
        for (i, line) in read_text(file)?.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let record = format!("{shown}, line {}", i + 1);
            let mut cells = line.split([',', ';']).map(|v| v.trim().parse::<f64>());
            let (Some(Ok(row)), Some(Ok(column)), None) =
                (cells.next(), cells.next(), cells.next())
            else {
                c.problem(record, format!("`{line}` is not `row,column`"));
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
fn class_of(root: &Path, file: &Path) -> Class {
    let below = file.strip_prefix(root.parent().unwrap_or(root)).unwrap_or(file);
    let non = below.components().any(|c| {
        let c = c.as_os_str().to_string_lossy().to_lowercase();
        c.contains("nonmitos") || c.contains("non_mitos") || c.contains("non-mitos")
    });
    if non { Class::Mimicker } else { Class::MitoticFigure }
}
