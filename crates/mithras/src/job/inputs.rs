//! From what stands on the command line to slides: files, folders, patterns, resolutions.

use super::state::State;
use artifact::table::{Format, Table, TableError, uncell};
use mitosis::Mpp;
use mitosis::text::{Shown, plain};
use slide::SlideError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One slide to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its file.
    pub path: PathBuf,
    /// Name of its folder in the results: the file name without its suffix.
    pub name: String,
    /// The user's um/px, if given.
    pub mpp: Option<Mpp>,
    /// Whether `mpp` was given for this slide alone: then the slide must not contradict it. One for
    /// all slides serves those that state none.
    pub own_mpp: bool,
}

/// What the inputs came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// Slides, sorted by path within each argument, each once.
    pub slides: Vec<Input>,
    /// Files inside folders that are no slides, left aside.
    pub skipped: Vec<PathBuf>,
}

/// Why the inputs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Nothing matches.
    #[error("{0}: no such file, folder or pattern match")]
    Missing(String),
    /// The pattern is wrong.
    #[error("{pattern}: {reason}")]
    Pattern {
        /// The argument.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder cannot be listed.
    #[error("{}: cannot be listed: {source}", Shown(path))]
    List {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A folder without slides.
    #[error("{}: no slide in this folder ({others} other files)", Shown(path))]
    NoSlides {
        /// The folder.
        path: PathBuf,
        /// Files that are no slides.
        others: usize,
    },
    /// Two slides would share a folder.
    #[error(
        "{} and {} would both be written to the folder `{name}`; rename one or run them into \
         different --out folders",
        Shown(first),
        Shown(second)
    )]
    SameName {
        /// The folder's name.
        name: String,
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// The resolution table is wrong.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Finds the slides that `arguments` name. Files are taken as they are; folders are searched through
/// and a file in them counts when its content or its suffix is that of a slide, so that one which
/// cannot be read fails by name; `*`, `?` and `[..]` are patterns where no file of that very name
/// exists. Folders below that hold the results of a slide are passed over.
///
/// # Errors
/// [`InputError`].
pub fn find(
    arguments: &[PathBuf],
    mpp: Option<Mpp>,
    table: &BTreeMap<String, Mpp>,
) -> Result<Inputs, InputError> {
    let mut found = Inputs::default();
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    let mut paths: Vec<PathBuf> = Vec::new();
    for argument in arguments {
        for path in expand(argument)? {
            if !path.is_dir() {
                paths.push(path);
                continue;
            }
            let mut files = Vec::new();
            walk(&path, &mut files)?;
            let (slides, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|f| is_slide(f));
            if slides.is_empty() {
                return Err(InputError::NoSlides { path, others: others.len() });
            }
            paths.extend(slides);
            found.skipped.extend(others);
        }
    }
    let mut names: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in paths {
        let same = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !seen.insert(same) {
            continue;
        }
        let name = stem(&path);
        if let Some(first) = names.insert(name.clone(), path.clone()) {
            return Err(InputError::SameName { name, first, second: path });
        }
        let own = table.get(&name).or_else(|| table.get(&file_name(&path))).copied();
        found.slides.push(Input { path, name, mpp: own.or(mpp), own_mpp: own.is_some() });
    }
    Ok(found)
}

/// Longest folder name in bytes; file systems take 255.
const LONGEST: usize = 200;

/// The name of a slide's folder: the file name without its last suffix (`.ome.tif` counts as one
/// suffix), made safe so that it is always one folder below the one it is joined to. Control
/// characters, `/ \ : * ? " < > |` and dots at either end become `_`; an empty name becomes `_`,
/// and a very long one is cut. A table's apostrophe in front of `=`, `+`, `-` or `@` is taken off
/// ([`artifact::table::cell`]).
#[must_use]
pub fn stem(path: &Path) -> String {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let lower = name.to_ascii_lowercase();
    let short = match lower.strip_suffix(".ome") {
        Some(short) if !short.is_empty() => &name[..short.len()],
        _ => &name,
    };
    folder_name(uncell(short))
}

fn folder_name(name: &str) -> String {
    let strange = |c: char| c.is_control() || r#"/\:*?"<>|"#.contains(c) || plain_differs(c);
    let mut safe: String = name.chars().map(|c| if strange(c) { '_' } else { c }).collect();
    while safe.len() > LONGEST {
        safe.pop();
    }
    let dots = |s: &str, from_end: bool| {
        let dot = |c: &char| matches!(c, '.' | ' ');
        if from_end {
            s.chars().rev().take_while(dot).count()
        } else {
            s.chars().take_while(|c| *c == '.').count()
        }
    };
    let (head, tail) = (dots(&safe, false), dots(&safe, true));
    let all = safe.chars().count();
    if all == 0 {
        return "_".into();
    }
    let keep = |(i, c): (usize, char)| if i < head || i + tail >= all { '_' } else { c };
    safe.chars().enumerate().map(keep).collect()
}

/// Whether a character is written out when it is shown.
fn plain_differs(c: char) -> bool {
    let mut buffer = [0; 4];
    let text: &str = c.encode_utf8(&mut buffer);
    plain(text) != text
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn expand(argument: &Path) -> Result<Vec<PathBuf>, InputError> {
    let text = argument.to_string_lossy().into_owned();
    if argument.exists() || !text.contains(['*', '?', '[']) {
        // A missing file is reported with the others that cannot be opened.
        return Ok(vec![argument.to_owned()]);
    }
    let wrong = |reason: String| InputError::Pattern { pattern: text.clone(), reason };
    let mut matched = Vec::new();
    for path in glob::glob(&text).map_err(|e| wrong(e.to_string()))? {
        matched.push(path.map_err(|e| wrong(e.to_string()))?);
    }
    if matched.is_empty() { Err(InputError::Missing(text)) } else { Ok(matched) }
}

/// Every file below a folder, sorted; links to folders and hidden entries are not followed.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), InputError> {
    let fail = |source| InputError::List { path: folder.to_owned(), source };
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).map_err(fail)?.collect::<Result<_, _>>().map_err(fail)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() {
            if !holds_results(&path) {
                walk(&path, files)?;
            }
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a folder is one that this program made for a slide: its pictures are no slides.
fn holds_results(folder: &Path) -> bool {
    State::load(folder).is_some()
}

/// A damaged or unknown slide is one too: it shall fail aloud, not be passed over.
fn is_slide(path: &Path) -> bool {
    named_as_slide(path)
        || starts_as_slide(path)
        || !matches!(
            slide::Slide::open(path),
            Err(SlideError::Unsupported { .. } | SlideError::Empty { .. })
        )
}

/// Suffixes of slides and of pictures that can be slides.
const SUFFIXES: &[&str] = &[
    "afi", "bif", "btf", "czi", "dcm", "i2syntax", "isyntax", "jpeg", "jpg", "lif", "mrxs", "ndpi",
    "png", "qptiff", "scn", "svs", "svslide", "tif", "tiff", "tron", "vmic", "vms", "vmu", "vsi",
    "zvi",
];

fn named_as_slide(path: &Path) -> bool {
    let suffix = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    suffix.is_some_and(|s| SUFFIXES.contains(&s.as_str()))
}

/// Whether a file starts as those formats do that need a library to be read.
fn starts_as_slide(path: &Path) -> bool {
    let mut head = [0; 132];
    let Ok(mut file) = std::fs::File::open(path) else { return true };
    let n = std::io::Read::read(&mut file, &mut head).unwrap_or(0);
    let head = &head[..n];
    head.get(128..132) == Some(b"DICM") || head.starts_with(b"ZISRAWFILE")
}

/// Reads a resolution table: CSV with the columns `slide` (file name or stem) and `mpp` (um/px).
///
/// # Errors
/// [`InputError::Table`] for a missing file or column, a slide named twice, or a number that is no
/// resolution.
pub fn read_mpp_table(path: &Path) -> Result<BTreeMap<String, Mpp>, InputError> {
    let rows = Table::read(path, &Format { no_rows: true, ..Format::default() })?;
    let (slide, column) = (rows.need(&["slide"])?, rows.need(&["mpp"])?);
    let mut table = BTreeMap::new();
    for row in 0..rows.len() {
        let mpp = Mpp::new(rows.number(row, column)?)
            .map_err(|e| rows.wrong(row, column, e.to_string()))?;
        if table.insert(rows.cell(row, slide).to_owned(), mpp).is_some() {
            return Err(rows.wrong(row, slide, "the slide stands twice").into());
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems() {
        for (path, name) in
            [("a/b.svs", "b"), ("x.ome.tif", "x"), ("c.1.tiff", "c.1"), (".ome.tif", "_ome")]
        {
            assert_eq!(stem(Path::new(path)), name);
        }
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for (file, name) in [
            ("...svs", "__"),
            ("..svs", "_"),
            ("....svs", "___"),
            ("..", "__"),
            ("a..svs", "a_"),
            ("a\nb.svs", "a_b"),
            ("\u{1b}[2Jx.svs", "_[2Jx"),
            ("a\\..\\b.svs", "a_.._b"),
            ("<img src=x>.svs", "_img src=x_"),
            ("=1+1.svs", "=1+1"),
            ("'=1+1.svs", "=1+1"),
            ("Fall 12 (HE).svs", "Fall 12 (HE)"),
        ] {
            assert_eq!(stem(Path::new(file)), name, "{file}");
        }
        let long = stem(Path::new(&format!("{}.svs", "ü".repeat(300))));
        assert!(long.len() <= LONGEST && long.len() > LONGEST - 4, "{}", long.len());
    }

    #[test]
    fn the_same_stem_twice_is_refused_and_the_same_file_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = |n: &str| {
            let path = dir.path().join(n);
            std::fs::write(&path, b"x").unwrap();
            path
        };
        let (a, b) = (file("a.svs"), file("a.tiff"));
        let none = BTreeMap::new();
        assert!(matches!(
            find(&[a.clone(), b], None, &none),
            Err(InputError::SameName { name, .. }) if name == "a"
        ));
        assert_eq!(find(&[a.clone(), a], None, &none).unwrap().slides.len(), 1);
    }

    #[test]
    fn the_table_wins_over_the_flag() {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("mpp.csv");
        std::fs::write(&table, "slide,mpp\na,0.5\nb.tiff, 0.23\n").unwrap();
        let table = read_mpp_table(&table).unwrap();
        let mpp = |name: &str| {
            find(&[PathBuf::from(name)], Some(Mpp::PAPER), &table).unwrap().slides[0].mpp
        };
        assert_eq!(mpp("a.svs").unwrap().get(), 0.5);
        assert_eq!(mpp("b.tiff").unwrap().get(), 0.23);
        assert_eq!(mpp("c.tiff").unwrap().get(), 0.25);
        for bad in ["slide,mpp\na,NaN\n", "slide,mpp\na,0.2\na,0.3\n", "file,mpp\na,0.2\n"] {
            let path = dir.path().join("bad.csv");
            std::fs::write(&path, bad).unwrap();
            assert!(read_mpp_table(&path).is_err(), "{bad}");
        }
    }
}
