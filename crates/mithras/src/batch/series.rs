//! DICOM slides consist of several files: each slide is read once, under the name of its finest level.

use slide::{DicomPart, dicom_part};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Whether a file is DICOM but not a slide, such as annotations.
pub(super) fn is_other(path: &Path) -> bool {
    dicom_part(path) == Some(DicomPart::Other)
}

/// Of the files of a series in one folder, keeps only the one with the finest level, or its
/// first part; other files stay, in their order.
pub(super) fn once(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut best = BTreeMap::new();
    let mut of = Vec::with_capacity(paths.len());
    for (i, path) in paths.iter().enumerate() {
        // The folder of an address cannot be listed.
        let part = if path.is_file() { dicom_part(path) } else { None };
        let Some(DicomPart::Slide { series, level, width, first_frame }) = part else {
            of.push(None);
            continue;
        };
        let key = (path.parent().map(Path::to_owned), series);
        let rank = (level, width, Reverse(first_frame), Reverse(i));
        best.entry(key.clone()).and_modify(|b| *b = rank.max(*b)).or_insert(rank);
        of.push(Some((key, rank)));
    }
    let mut of = of.into_iter();
    paths.retain(|_| match of.next().flatten() {
        Some((key, rank)) => best.get(&key) == Some(&rank),
        None => true,
    });
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_counts_once_by_its_finest_level() {
        let drawn = testkit::workspace().join("crates/slide/tests/golden/dicom");
        let of = |names: &[&str]| -> Vec<String> {
            let kept = once(names.iter().map(|n| drawn.join(n)).collect());
            let name = |p: &PathBuf| p.strip_prefix(&drawn).unwrap().display().to_string();
            kept.iter().map(name).collect()
        };
        let series = ["series/a.dcm", "series/b.dcm", "series/c.dcm"];
        assert_eq!(of(&series), ["series/b.dcm"]);
        assert_eq!(of(&series[2..]), ["series/c.dcm"], "what is named alone stays");
        // The file that begins an image, whatever it is called.
        assert_eq!(of(&["parts/a.dcm", "parts/b.dcm"]), ["parts/b.dcm"]);
        assert_eq!(of(&["rle/a.dcm", "series/a.dcm", "none"]).len(), 3);
    }
}
