//! The image of annotations, found in a folder of slides.

use dicom::{Source, SourceError};
use std::path::{Path, PathBuf};

/// A folder with drawn files of slides of 100 x 70 px.
fn folder(name: &str, files: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let drawn = Path::new(env!("CARGO_MANIFEST_DIR")).join("../slide/tests/golden/dicom");
    for (i, file) in files.iter().enumerate() {
        std::fs::copy(drawn.join(file), folder.join(format!("{i}.dcm"))).unwrap();
    }
    folder
}

#[test]
fn a_second_series_of_the_slides_size_is_refused() {
    let size = (100, 70);
    // Both levels and the label of one series, and an image in two files.
    let one =
        folder("one-series", &["series/a.dcm", "series/b.dcm", "series/c.dcm", "series/b.dcm"]);
    let found = Source::find(&one, size).unwrap();
    assert_eq!((found.width, found.height), size);
    let parts = folder("parts", &["parts/a.dcm", "parts/b.dcm"]);
    assert!(Source::find(&parts, size).is_ok());
    let two = folder("two-series", &["series/a.dcm", "rle/a.dcm", "series/b.dcm"]);
    let e = Source::find(&two, size).unwrap_err();
    assert!(matches!(e, SourceError::Several { width: 100, height: 70, .. }), "{e}");
    let text = e.to_string();
    assert!(text.contains("1.dcm") && text.contains("2.dcm"), "{text}");
    // A named file is of one series.
    let named = Source::find(&two.join("0.dcm"), size).unwrap();
    assert_eq!(named.series, found.series);
}
