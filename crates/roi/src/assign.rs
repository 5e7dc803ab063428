//! Which file of regions belongs to which slide.

use crate::error::RegionError;
use crate::read::{DrawnFile, SUFFIXES, stem};
use base::table::Unmatched;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files by the names of their slides.
pub type Assigned = BTreeMap<String, Arc<DrawnFile>>;

/// Reads a file of regions, or a folder with one per slide, named as it (`case.geojson`, `case.svs.xml`), for slides of
/// these names. `others` are slides that are left to other runs: regions may name them, and need not. `mpp` is the
/// um/px of masks that state none.
///
/// # Errors
/// [`RegionError`]: above all [`RegionError::Match`] for a slide without a file, a file without a slide, and a single
/// file for several slides in which not every region names its slide.
pub fn assign(
    path: &Path,
    slides: &[&str],
    others: &[&str],
    mpp: Option<f64>,
) -> Result<Assigned, RegionError> {
    if path.is_dir() { folder(path, slides, others, mpp) } else { file(path, slides, others, mpp) }
}

fn file(
    path: &Path,
    slides: &[&str],
    others: &[&str],
    mpp: Option<f64>,
) -> Result<Assigned, RegionError> {
    let file = Arc::new(DrawnFile::read(path, mpp)?);
    if let ([one], []) = (slides, others) {
        return Ok(BTreeMap::from([((*one).to_owned(), file)]));
    }
    let unnamed = file.regions.iter().filter(|r| r.image.is_none()).count();
    if unnamed > 0 {
        let reason = format!(
            "{unnamed} of {} regions name no slide, and there are {} slides; use a folder with one file per slide",
            file.regions.len(),
            slides.len() + others.len()
        );
        return Err(RegionError::Match { path: path.to_owned(), reason });
    }
    let lacking: Vec<&str> =
        slides.iter().copied().filter(|s| !file.regions.iter().any(|r| r.fits_slide(s))).collect();
    let strange: Vec<&str> = file
        .regions
        .iter()
        .filter(|r| !slides.iter().chain(others).any(|s| r.fits_slide(s)))
        .filter_map(|r| r.image.as_deref())
        .collect();
    met(path, &lacking, &strange)?;
    Ok(slides.iter().map(|s| ((*s).to_owned(), Arc::clone(&file))).collect())
}

fn folder(
    path: &Path,
    slides: &[&str],
    others: &[&str],
    mpp: Option<f64>,
) -> Result<Assigned, RegionError> {
    let io = |source| RegionError::Read { path: path.to_owned(), source };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io)? {
        let file = entry.map_err(io)?.path();
        let suffix =
            file.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        if file.is_file() && SUFFIXES.contains(&suffix.as_str()) {
            files.push(file);
        }
    }
    files.sort();
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut strange = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let first = stem(&name);
        // `case.svs.geojson` is of the slide `case`, unless one is called `case.svs`.
        let is_listed = |n: &&str| slides.contains(n) || others.contains(n);
        let Some(slide) = [first, stem(first)].into_iter().find(is_listed) else {
            strange.push(name);
            continue;
        };
        if others.contains(&slide) {
            continue;
        }
        if let Some(other) = found.insert(slide.to_owned(), file) {
            let reason = format!("{name} and {} are both of slide `{slide}`", other.display());
            return Err(RegionError::Match { path: path.to_owned(), reason });
        }
    }
    let lacking: Vec<&str> = slides.iter().copied().filter(|s| !found.contains_key(*s)).collect();
    let strange: Vec<&str> = strange.iter().map(String::as_str).collect();
    met(path, &lacking, &strange)?;
    found
        .into_iter()
        .map(|(slide, file)| Ok((slide, Arc::new(DrawnFile::read(&file, mpp)?))))
        .collect()
}

/// Refuses slides without regions and regions without a slide, with the rule by which they would meet.
fn met(path: &Path, slides: &[&str], regions: &[&str]) -> Result<(), RegionError> {
    let join = Unmatched::from_keys(("the slides", "the regions"), slides, regions);
    join.map_or(Ok(()), |join| {
        Err(RegionError::Match { path: path.to_owned(), reason: join.to_string() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(image: Option<&str>) -> String {
        let image = image.map_or_else(String::new, |i| format!("\"image\": \"{i}\""));
        format!(
            "{{\"type\": \"Feature\", \"properties\": {{{image}}}, \"geometry\": {{\"type\": \"Polygon\", \
             \"coordinates\": [[[0, 0], [9, 0], [9, 9], [0, 0]]]}}}}"
        )
    }

    #[test]
    fn one_file_per_slide_named_as_it() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(dir.path().join(name), feature(None)).unwrap();
        write("a.geojson");
        write("b.svs.json");
        std::fs::write(dir.path().join("notes.txt"), "x").unwrap();
        let found = assign(dir.path(), &["a", "b"], &[], None).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a", "b"]);
        // A part of the slides: another one's file is left out, and a third need not have one.
        let part = assign(dir.path(), &["a"], &["b", "c"], None).unwrap();
        assert_eq!(part.keys().collect::<Vec<_>>(), ["a"]);
        let refused =
            |slides: &[&str]| assign(dir.path(), slides, &[], None).unwrap_err().to_string();
        assert!(refused(&["a", "b", "c"]).contains("only in the slides, not in the regions ('c')"));
        assert!(refused(&["a"]).contains("only in the regions, not in the slides ('b.svs.json')"));
        let join = refused(&["A", "b"]);
        assert!(join.contains("'A'") && join.contains("'a.geojson'"), "{join}");
        assert!(join.contains("1 would match ignoring case, the file's ending"), "{join}");
        write("a.json");
        assert!(refused(&["a", "b"]).contains("both of slide `a`"));
    }

    #[test]
    fn one_file_for_several_slides_names_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("all.geojson");
        let write = |features: &[String]| {
            std::fs::write(&path, format!("[{}]", features.join(","))).unwrap()
        };
        write(&[feature(None)]);
        assert!(assign(&path, &["x"], &[], None).is_ok());
        let refused = |slides: &[&str]| assign(&path, slides, &[], None).unwrap_err().to_string();
        assert!(
            refused(&["a", "b"]).contains("1 of 1 regions name no slide, and there are 2 slides")
        );
        write(&[feature(Some("a.svs")), feature(Some("b"))]);
        assert_eq!(assign(&path, &["a", "b"], &[], None).unwrap().len(), 2);
        assert_eq!(assign(&path, &["b"], &["a", "c"], None).unwrap().len(), 1);
        assert!(refused(&["a", "c"]).contains("only in the slides, not in the regions ('c')"));
        write(&[feature(Some("a.svs")), feature(Some("b")), feature(Some("z.svs"))]);
        assert!(refused(&["a", "b"]).contains("only in the regions, not in the slides ('z.svs')"));
    }
}
