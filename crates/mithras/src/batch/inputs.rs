//! From the arguments of the command line to slides: files, folders, patterns, resolutions.

use super::series;
use super::state::has_state;
use crate::input::{Input, file_name, stem};
use crate::regions::RegionSource;
use base::remedy::{Remedied, Remedy};
use base::table::{Format, Table, TableError, Unmatched, Unread, uncell};
use base::text::{Many, Shown};
use mitosis::Mpp;
use remote::{Address, AddressError};
use roi::{Classes, RegionError};
use slide::SlideError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the inputs came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// Slides, sorted by path within each argument, each once.
    pub slides: Vec<Input>,
    /// Files inside folders that are not slides; skipped.
    pub skipped: Vec<PathBuf>,
    /// Hidden files inside folders that have the suffix of a slide; skipped, too.
    pub hidden: Vec<PathBuf>,
    /// Files of a format that cannot be read, of the same name as a slide; skipped, too.
    pub unread: Vec<PathBuf>,
    /// Names of files that are a slide under another name, with the one that is taken.
    pub doubled: Vec<(PathBuf, PathBuf)>,
    /// Columns of a list that may be meant for its um/px.
    pub misspelt: Option<Unread>,
}

impl Inputs {
    /// Restricts every slide to the regions of a file, or of a folder with one per slide, which may hold those of
    /// `listed` slides that are left to other runs. `mpp` is the um/px of masks that state none.
    ///
    /// # Errors
    /// [`RegionError`]: a slide without regions, regions without a slide, a class that no file has, or a file that
    /// cannot be read.
    pub fn restrict(
        &mut self,
        regions: &Path,
        listed: &[String],
        classes: &Classes,
        mpp: Option<Mpp>,
    ) -> Result<(), RegionError> {
        let names: Vec<&str> = self.slides.iter().map(|s| s.name.as_str()).collect();
        let others: Vec<&str> =
            listed.iter().map(String::as_str).filter(|n| !names.contains(n)).collect();
        let files = roi::assign(regions, &names, &others, mpp.map(Mpp::get))?;
        classes.check(files.values().map(|f| &**f))?;
        for slide in &mut self.slides {
            slide.regions = files
                .get(&slide.name)
                .map(|file| RegionSource { file: Arc::clone(file), classes: classes.clone() });
        }
        Ok(())
    }

    /// What was not taken for a slide of its own, one line each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.misspelt.iter().map(ToString::to_string).collect();
        for other in &self.unread {
            let other = Shown(other);
            notes.push(format!(
                "skipped, as there is a slide of the same name: {other}, which cannot be read"
            ));
        }
        for (other, taken) in &self.doubled {
            let (other, taken) = (Shown(other), Shown(taken));
            notes.push(format!("skipped, as it is the same file as {taken}: {other}"));
        }
        if let Some(first) = self.hidden.first() {
            let (n, first) = (Many(self.hidden.len(), "hidden file"), Shown(first));
            notes.push(format!("skipped, though named as slides: {n} ({first}); name them"));
        }
        if !self.skipped.is_empty() {
            let n = Many(self.skipped.len(), "file");
            notes.push(format!("not slides and skipped: {n} in the folders"));
        }
        notes
    }

    /// Leaves the slides that a table names in its column `slide` or `image`, with or without suffix or folder and any
    /// number of times; gives the names that no slide has.
    ///
    /// # Errors
    /// [`InputError::Table`]; [`InputError::NoneNamed`] where no name is a slide's.
    pub fn retain_named(&mut self, path: &Path) -> Result<Option<Unmatched>, InputError> {
        let table = Table::read(path, &Format::default())?;
        let column = table.need(&["slide", "image"])?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let of: BTreeMap<String, &Input> =
            self.slides.iter().map(|i| (file_name(&i.path), i)).collect();
        // A path is that of a slide, as a list of slides names it, or a part of it.
        let cell = |row| {
            let cell = remote::without_query(uncell(table.cell(row, column)));
            let slide = of.get(&file_name(Path::new(&cell)));
            let same = |i: &&&Input| i.path.ends_with(&cell) || i.path == folder.join(&cell);
            slide.filter(same).map_or(cell.clone(), |i| i.name.clone())
        };
        let names: BTreeSet<String> = (0..table.len()).map(cell).collect();
        let source = path.display().to_string();
        let unmatched = self.unmatched(&source, names.iter())?;
        self.slides.retain(|i| names.contains(&i.name) || names.contains(&file_name(&i.path)));
        // The slides that were left out on purpose are not missing from their cases.
        if let Some(list) = self.slides.iter().find_map(|i| i.list.clone()) {
            self.share_list(format!("{} {source}", list.source));
        }
        Ok(unmatched)
    }

    /// The keys of a table by slides' names, with or without suffix, that no slide has, with the slides
    /// that the table lacks; `None` where every key is a slide's. `table` names the table.
    ///
    /// # Errors
    /// [`InputError::NoneNamed`] where the table has keys and none is a slide's: it would do nothing.
    pub fn unmatched<'a>(
        &self,
        table: &str,
        keys: impl Iterator<Item = &'a String>,
    ) -> Result<Option<Unmatched>, InputError> {
        let keys: BTreeSet<&str> = keys.map(String::as_str).collect();
        let names = |i: &Input| [i.name.clone(), file_name(&i.path)];
        let known: BTreeSet<String> = self.slides.iter().flat_map(names).collect();
        let alone: Vec<&str> = keys.iter().copied().filter(|k| !known.contains(*k)).collect();
        if alone.is_empty() {
            return Ok(None);
        }
        let idle = self.slides.iter().filter(|i| !names(i).iter().any(|n| keys.contains(&**n)));
        let idle: Vec<&str> = idle.map(|i| i.name.as_str()).collect();
        let join = Unmatched::from_keys((table, "the slides"), &alone, &idle);
        match join {
            Some(join) if alone.len() == keys.len() => {
                Err(InputError::NoneNamed { table: table.to_owned(), join: Box::new(join) })
            }
            join => Ok(join),
        }
    }
}

/// Why the inputs cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum InputError {
    /// Nothing matches.
    #[error("{0}: no such file, folder or pattern match")]
    Missing(String),
    /// The pattern is wrong.
    #[error("{pattern}: {reason}")]
    Pattern {
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder cannot be listed.
    #[error("{}: cannot be listed: {}", Shown(&.0.path), .0.source)]
    List(#[from] base::file::ReadError),
    /// A folder without slides.
    #[error("{}: no slide in this folder ({others} other files)", Shown(path))]
    NoSlides {
        path: PathBuf,
        /// Files that are not slides.
        others: usize,
    },
    /// Two slides would share a folder.
    #[error(
        "{} and {} would both be written to the folder `{name}`; rename one or run them into \
         different folders",
        Shown(first),
        Shown(second)
    )]
    SameName { name: String, first: PathBuf, second: PathBuf },
    /// A table about slides that names none of them.
    #[error("no row of {table} names one of the slides: {join}")]
    NoneNamed {
        table: String,
        /// What either side has.
        join: Box<Unmatched>,
    },
    /// A table states two um/px for one slide.
    #[error(
        "the um/px of {file} are stated twice: {own} for `{name}`, {with} for `{file}`; remove one"
    )]
    TwoMpp {
        /// Name of the slide.
        name: String,
        /// Name of its file.
        file: String,
        /// What is stated for the name.
        own: Mpp,
        /// What is stated for the file.
        with: Mpp,
    },
    /// Something like an address that cannot be read.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A table of resolutions or a list of slides is wrong.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Finds the slides that `arguments` name. Files are taken as they are; folders are searched through and a file in them
/// counts when its content or its suffix is that of a slide, so that one which cannot be read fails by name; `*`, `?`
/// and `[..]` are patterns where no file of that very name exists. Of the files of a DICOM slide in one folder that of
/// its finest level counts. Addresses (`https://`, `s3://`) name one slide each. Folders below that hold the results of
/// a slide are passed over.
///
/// # Errors
/// [`InputError`].
pub fn find(
    arguments: &[PathBuf],
    mpp: Option<Mpp>,
    table: &BTreeMap<String, Mpp>,
) -> Result<Inputs, InputError> {
    let mut found = named(arguments)?;
    let mut paths: BTreeMap<String, PathBuf> = BTreeMap::new();
    for slide in &mut found.slides {
        let (name, file) = (slide.name.clone(), slide.file_name());
        if let Some(first) = paths.insert(name.clone(), slide.path.clone()) {
            return Err(InputError::SameName { name, first, second: slide.path.clone() });
        }
        let (own, with) = (table.get(&name).copied(), table.get(&file).copied());
        if let (Some(own), Some(with)) = (own, with)
            && own != with
        {
            return Err(InputError::TwoMpp { name, file, own, with });
        }
        let own = own.or(with);
        (slide.mpp, slide.own_mpp) = (own.or(mpp), own.is_some());
    }
    found.enlist(arguments);
    Ok(found)
}

/// The same, for work that writes no folder for each slide: slides whose files have one name are called by their paths.
///
/// # Errors
/// [`InputError`].
pub fn find_files(arguments: &[PathBuf]) -> Result<Inputs, InputError> {
    let mut found = named(arguments)?;
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    found.slides.iter().for_each(|s| *times.entry(s.name.clone()).or_default() += 1);
    for slide in found.slides.iter_mut().filter(|s| times.get(&s.name) > Some(&1)) {
        slide.name = slide.path.display().to_string();
    }
    Ok(found)
}

/// The slides of `arguments`; several may have one name.
fn named(arguments: &[PathBuf]) -> Result<Inputs, InputError> {
    let mut found = Inputs::default();
    let mut names: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in list_files(arguments, &mut found)? {
        let name = stem(&path);
        if let Some(first) = names.get(&name) {
            // One that nothing here reads must not keep a whole folder from being read.
            if is_foreign(&path) {
                found.unread.push(path);
                continue;
            }
            if is_foreign(first) {
                found.slides.retain(|s| s.path != *first);
                found.unread.push(first.clone());
            }
        }
        found.slides.push(Input::new(&path));
        names.insert(name, path);
    }
    Ok(found)
}

/// The files that may be slides, each once.
fn list_files(arguments: &[PathBuf], found: &mut Inputs) -> Result<Vec<PathBuf>, InputError> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for argument in arguments {
        for path in expand(argument)? {
            if !path.is_dir() {
                paths.push(path);
                continue;
            }
            let (files, hidden) = files_below(&path)?;
            found.hidden.extend(hidden);
            let (slides, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|f| is_slide(f));
            if slides.is_empty() {
                return Err(InputError::NoSlides { path, others: others.len() });
            }
            paths.extend(slides);
            found.skipped.extend(others);
        }
    }
    let mut seen: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    let mut once = Vec::new();
    for path in series::once(paths) {
        let same = path.canonicalize().unwrap_or_else(|_| path.clone());
        match seen.get(&same) {
            None => {
                seen.insert(same, path.clone());
                once.push(path);
            }
            // The same file named twice is meant once.
            Some(first) if *first == path => {}
            Some(first) => found.doubled.push((path, first.clone())),
        }
    }
    Ok(once)
}

fn expand(argument: &Path) -> Result<Vec<PathBuf>, InputError> {
    if let Some(address) = Address::parse(argument)? {
        return Ok(vec![address.path()]);
    }
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

/// Every file below a folder, sorted, and the hidden ones with the suffix of a slide; links to folders and
/// hidden folders are not followed.
fn files_below(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), InputError> {
    let hidden = |p: &Path| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
    let hidden_folder = |p: &Path| hidden(p) && p.is_dir();
    // The pictures in a folder of results are not slides.
    let wanted = |p: &Path| !hidden_folder(p) && !has_state(p);
    let mut files = base::walk::files(folder, &wanted)?;
    files.retain(|f| f.is_file() || is_dangling(f));
    let (mut others, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|f| hidden(f));
    others.retain(|f| named_as_slide(f));
    Ok((files, others))
}

/// Whether a path is a link to what is not there.
fn is_dangling(path: &Path) -> bool {
    path.is_symlink() && path.metadata().is_err()
}

/// A damaged or unknown slide is one too: it must fail with an error, not be passed over. Of a dangling link only the
/// name is known.
fn is_slide(path: &Path) -> bool {
    let unknown = || {
        starts_as_slide(path)
            || !matches!(
                slide::Slide::open(path),
                Err(SlideError::Unsupported { .. } | SlideError::Empty { .. })
            )
    };
    !series::is_other(path) && (named_as_slide(path) || !is_dangling(path) && unknown())
}

/// Whether nothing here reads a file, whatever its suffix.
fn is_foreign(path: &Path) -> bool {
    path.is_file() && matches!(slide::Slide::open(path), Err(SlideError::Unsupported { .. }))
}

/// Suffixes of slides and of pictures that can be slides.
const SUFFIXES: &[&str] = &[
    "afi", "bif", "btf", "czi", "dcm", "i2syntax", "isyntax", "jpeg", "jpg", "lif", "mrxs", "ndpi",
    "png", "qptiff", "scn", "svs", "svslide", "tif", "tiff", "tron", "vmic", "vms", "vmu", "vsi",
    "zvi",
];

/// Whether a file has the suffix of a slide, or of a picture that can be one; nothing is opened.
#[must_use]
pub fn named_as_slide(path: &Path) -> bool {
    let suffix = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    suffix.is_some_and(|s| SUFFIXES.contains(&s.as_str()))
}

/// Whether a file starts as those formats do that need a library to be read.
fn starts_as_slide(path: &Path) -> bool {
    let mut head = [0; 132];
    let Ok(mut file) = base::file::open_regular(path) else { return true };
    let n = std::io::Read::read(&mut file, &mut head).unwrap_or(0);
    let head = &head[..n];
    head.get(128..132) == Some(b"DICM") || head.starts_with(b"ZISRAWFILE")
}

/// Reads a resolution table: CSV with the columns `slide` (file name or stem) and `mpp` (um/px).
///
/// # Errors
/// [`InputError::Table`] for a missing file or column, a slide named twice, or a number that is not a
/// resolution.
pub fn read_mpp_table(path: &Path) -> Result<BTreeMap<String, Mpp>, InputError> {
    // A header behind a # has no columns, which is the better reason.
    let rows = Table::read(path, &Format { no_rows: true, ..Format::default() })?;
    let (slide, column) = (rows.need(&["slide"])?, rows.need(&["mpp"])?);
    if rows.is_empty() {
        return Err(TableError::no_rows(path).into());
    }
    let mut table = BTreeMap::new();
    for row in 0..rows.len() {
        let mpp = Mpp::new(rows.number(row, column)?)
            .map_err(|e| rows.wrong(row, column, e.to_string()))?;
        if table.insert(rows.cell(row, slide).to_owned(), mpp).is_some() {
            return Err(rows.wrong(row, slide, "the slide is listed twice").into());
        }
    }
    Ok(table)
}

impl Remedied for InputError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Address(e) => e.remedy(),
            Self::SameName { .. } => Some(Remedy::FolderPerRun),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_slides_by_their_last_part() {
        let find = |names: &[&str]| {
            let paths: Vec<_> = names.iter().map(PathBuf::from).collect();
            find(&paths, None, &BTreeMap::new()).map_err(|e| e.to_string())
        };
        let same = "https://host/x/Case%201.svs?sig=hush[1]*";
        let found = find(&[same, "s3://bucket/y/2.ome.tif", same]).unwrap().slides;
        let (names, paths): (Vec<_>, Vec<_>) =
            found.iter().map(|i| (&*i.name, i.path.to_str().unwrap())).unzip();
        assert_eq!(names, ["Case 1", "2"]);
        assert_eq!(paths, ["https://host/x/Case%201.svs", "s3://bucket/y/2.ome.tif"]);
        assert!(find(&["s3://bucket/a.svs", "s3://other/a.svs"]).unwrap_err().contains("`a`"));
        assert!(find(&["s3://bucket/cohort/"]).unwrap_err().contains("list"));
    }

    #[test]
    fn the_same_stem_twice_is_refused_and_the_same_file_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = |n: &str| {
            let path = dir.path().join(n);
            std::fs::write(&path, b"x").unwrap();
            path
        };
        let drawn = testkit::workspace().join("crates/slide/tests/golden/slides/svs_jpeg_420.svs");
        let (a, b) = (file("a.svs"), file("a.tiff"));
        std::fs::copy(&drawn, &a).unwrap();
        std::fs::copy(&drawn, &b).unwrap();
        let none = BTreeMap::new();
        assert!(matches!(
            find(&[a.clone(), b], None, &none),
            Err(InputError::SameName { name, .. }) if name == "a"
        ));
        // Formats that are not read do not stop the others, whichever comes first.
        let (other, last) = (file("a.isyntax"), file("a.zzz"));
        for order in [[&a, &other, &last], [&other, &a, &last], [&other, &last, &a]] {
            let order: Vec<PathBuf> = order.into_iter().cloned().collect();
            let found = find(&order, None, &none).unwrap();
            assert_eq!(found.slides.iter().map(|s| &s.path).collect::<Vec<_>>(), [&a]);
            assert_eq!(found.unread.len(), 2);
        }
        // One of them fails by its name.
        assert_eq!(find(&[other, last], None, &none).unwrap().slides.len(), 1);
        assert_eq!(find(&[a.clone(), a], None, &none).unwrap().slides.len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn no_link_in_a_folder_is_lost_without_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let at = |n: &str| dir.path().join(n);
        let link = |to: &str, n: &str| std::os::unix::fs::symlink(at(to), at(n)).unwrap();
        std::fs::create_dir(at("s")).unwrap();
        std::fs::write(at("scan.svs"), b"x").unwrap();
        link("scan.svs", "s/a.svs");
        link("scan.svs", "s/b.svs");
        link("gone.svs", "s/c.svs");
        link("gone.txt", "s/d.txt");
        let found = find(&[at("s"), at("s/a.svs")], None, &BTreeMap::new()).unwrap();
        let names: Vec<_> = found.slides.iter().map(|s| &*s.name).collect();
        assert_eq!(names, ["a", "c"], "what a link does not lead to fails by its name");
        assert_eq!((&found.skipped, found.doubled.len()), (&vec![at("s/d.txt")], 1));
        let notes = found.notes().join("\n");
        assert!(notes.contains("s/a.svs") && notes.contains("s/b.svs"), "{notes}");
    }

    #[test]
    fn slides_of_one_name_are_called_by_their_paths_where_they_need_no_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |n: &str| dir.path().join(n);
        let drawn = testkit::workspace().join("crates/slide/tests/golden/slides/svs_jpeg_420.svs");
        for (folder, name) in [("a", "x.svs"), ("b", "x.svs"), ("b", "y.svs")] {
            std::fs::create_dir_all(at(folder)).unwrap();
            std::fs::copy(&drawn, at(folder).join(name)).unwrap();
        }
        let folders = [at("a"), at("b")];
        assert!(matches!(
            find(&folders, None, &BTreeMap::new()),
            Err(InputError::SameName { name, .. }) if name == "x"
        ));
        let names = find_files(&folders).unwrap().slides.into_iter().map(|s| s.name);
        let path = |n: &str| at(n).display().to_string();
        assert_eq!(names.collect::<Vec<_>>(), [path("a/x.svs"), path("b/x.svs"), "y".into()]);
    }

    #[test]
    fn a_table_names_slides_by_their_paths_too() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("s.csv");
        let text = "slide,case\nsub/a.tiff,K1\n/x/b.tiff,K2\nc.tiff,K3\nsub/d.tiff,K4\n";
        std::fs::write(&list, text).unwrap();
        let read = || super::super::list::read_list(&list, None, &[]).unwrap();
        let named = |text: &str| {
            let only = dir.path().join("only.csv");
            std::fs::write(&only, text).unwrap();
            let mut found = read();
            let note = found.retain_named(&only).map_err(|e| e.to_string())?;
            let names: Vec<String> = found.slides.iter().map(|s| s.name.clone()).collect();
            let kept = found.slides[0].list.as_ref().map(|l| l.slides.len());
            assert_eq!(kept, Some(names.len()), "those left out are not missing");
            Ok::<_, String>((names.join(" "), note.map(|n| n.to_string())))
        };
        let mut all = read();
        assert_eq!(all.retain_named(&list).unwrap(), None, "a list names its own slides");
        assert_eq!(all.slides.len(), 4);
        for row in ["sub/a.tiff", "./sub/a.tiff", "a", "a.tiff"] {
            assert_eq!(named(&format!("slide\n{row}\n")), Ok(("a".into(), None)), "{row}");
        }
        let (names, note) = named("slide\nother/a.tiff\nc\n").unwrap();
        assert!(names == "c" && note.unwrap().contains("'other/a.tiff'"));
    }

    #[test]
    fn a_dicom_slide_counts_once_and_other_objects_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let drawn = testkit::workspace().join("crates/slide/tests/golden/dicom");
        for (from, to) in [("series/a", "a"), ("series/b", "b"), ("series/c", "c"), ("rle/a", "d")]
        {
            let (from, to) = (format!("{from}.dcm"), format!("{to}.dcm"));
            std::fs::copy(drawn.join(from), dir.path().join(to)).unwrap();
        }
        // Annotations of a slide are of another class.
        let mut bytes = std::fs::read(drawn.join("planar/a.dcm")).unwrap();
        while let Some(at) = bytes.windows(8).position(|w| w == b"1.77.1.6") {
            bytes[at..at + 8].copy_from_slice(b"1.91.1\0\0");
        }
        std::fs::write(dir.path().join("e.dcm"), bytes).unwrap();
        let found = |paths: &[PathBuf]| {
            let found = find(paths, None, &BTreeMap::new()).unwrap();
            let names: Vec<String> = found.slides.iter().map(|s| s.name.clone()).collect();
            (names.join(" "), found.skipped.len())
        };
        assert_eq!(found(&[dir.path().to_owned()]), ("b d".into(), 1));
        assert_eq!(found(&[dir.path().join("[a-d].dcm")]), ("b d".into(), 0));
        assert_eq!(found(&[dir.path().join("a.dcm")]), ("a".into(), 0));
    }

    #[test]
    fn a_table_that_names_no_slide_is_refused_with_the_rule_that_would_match() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["001.svs", "002.svs", ".003.svs", ".notes"] {
            std::fs::write(dir.path().join(name), b"x").unwrap();
        }
        let found = find(&[dir.path().to_owned()], None, &BTreeMap::new()).unwrap();
        assert_eq!(found.hidden, [dir.path().join(".003.svs")]);
        let unmatched = |keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(|k| (*k).to_owned()).collect();
            found.unmatched("mpp.csv", keys.iter())
        };
        assert_eq!(unmatched(&["001", "002.svs"]).unwrap(), None);
        assert_eq!(unmatched(&["001"]).unwrap(), None, "a table may be of some slides");
        let some = unmatched(&["001", "2"]).unwrap().unwrap().to_string();
        assert!(some.contains("'2'") && some.contains("'002'"), "{some}");
        let none = unmatched(&["1", "2"]).unwrap_err().to_string();
        assert!(none.contains("mpp.csv") && none.contains("without leading zeros"), "{none}");
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
        let two = dir.path().join("two.csv");
        std::fs::write(&two, "slide,mpp\na,0.5\na.svs,0.25\n").unwrap();
        let two = read_mpp_table(&two).unwrap();
        let error = find(&["a.svs".into()], None, &two).unwrap_err().to_string();
        assert!(
            error.contains("0.5") && error.contains("0.25") && error.contains("`a.svs`"),
            "{error}"
        );
        assert!(find(&["a.tif".into()], None, &two).is_ok(), "another file of the name");
        for bad in ["slide,mpp\na,NaN\n", "slide,mpp\na,0.2\na,0.3\n", "file,mpp\na,0.2\n"] {
            let path = dir.path().join("bad.csv");
            std::fs::write(&path, bad).unwrap();
            assert!(read_mpp_table(&path).is_err(), "{bad}");
        }
    }
}
