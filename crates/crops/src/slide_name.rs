//! Names of slides, as datasets write them.

/// Suffixes of slide files. Some datasets keep them in a slide's name and others do not.
const SUFFIXES: [&str; 13] = [
    ".tiff", ".tif", ".svs", ".ndpi", ".mrxs", ".scn", ".bif", ".czi", ".png", ".jpeg", ".jpg",
    ".dcm", ".vsi",
];

/// A slide's name without the suffix of an image file.
#[must_use]
pub fn bare(name: &str) -> &str {
    let end = |s: &&&str| name.len().checked_sub(s.len()).filter(|&at| name.is_char_boundary(at));
    let found = SUFFIXES
        .iter()
        .find(|s| end(s).is_some_and(|at| at > 0 && name[at..].eq_ignore_ascii_case(s)));
    found.map_or(name, |s| &name[..name.len() - s.len()])
}
