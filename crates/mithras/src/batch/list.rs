//! A list of slides with what is known of them: CSV, one line per slide.

use super::inputs::{InputError, Inputs};
use super::state::has_state;
use crate::file::WriteError;
use crate::input::{Input, Listed, ListedSlide, stem};
use base::digest::sha256;
use base::json::JsonError;
use base::table::{Format, Table, TableError, Unmatched, uncell};
use mitosis::Mpp;
use remote::Address;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads a list: the column `slide` (path, absolute or from the list's folder, or address), optionally `mpp` (um/px of
/// a slide; empty: its own, or the `mpp` given here for all that state none), and any further ones, which are carried
/// into the tables over a run, where `taken` are the columns already there. Slides are in the list's order.
///
/// # Errors
/// [`InputError::Table`] with file, column and row: a missing file or column, no rows, an empty or
/// doubled slide, two slides that would share a folder, a number that is not a resolution, and a column
/// without a name or with one that is taken.
pub fn read_list(path: &Path, mpp: Option<Mpp>, taken: &[&str]) -> Result<Inputs, InputError> {
    let rows = Table::read(path, &Format::default())?;
    let slide = rows.need(&["slide"])?;
    let resolution = rows.find(&["mpp"]).map(|_| rows.need(&["mpp"])).transpose()?;
    let misspelt = rows.misspelt();
    let further: Vec<usize> =
        (0..rows.names().len()).filter(|c| *c != slide && Some(*c) != resolution).collect();
    for &column in &further {
        let name = uncell(&rows.names()[column]);
        let named = |name: &str| rows.find(&[name]);
        match named(name).filter(|_| !name.is_empty()) {
            None => return Err(header(path, column, "has no name").into()),
            Some(found) if found == column => {}
            _ => return Err(TableError::Twice { path: path.into(), name: name.into() }.into()),
        }
        if taken.iter().any(|t| named(t) == Some(column)) {
            let of = "counts.csv or cases.csv";
            let why = format!("is called '{name}', as one of {of}; give it another name");
            return Err(header(path, column, &why).into());
        }
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut rows_of: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Inputs { misspelt, ..Inputs::default() };
    for row in 0..rows.len() {
        let cell = uncell(rows.cell(row, slide));
        if cell.is_empty() {
            return Err(rows.wrong(row, slide, "is empty; a slide's path is needed").into());
        }
        let address = Address::parse(cell).map_err(|e| rows.wrong(row, slide, e.to_string()))?;
        let path = address.map_or_else(|| folder.join(cell), |a| a.path());
        let name = stem(&path);
        if let Some(&first) = rows_of.get(&name) {
            let (line, cell) = (rows.line(first), remote::without_query(cell));
            let reason = if found.slides[first].path == path {
                format!("'{cell}' is already in line {line}; remove one of them")
            } else {
                format!(
                    "'{cell}' and the slide of line {line} would both be written to the folder \
                     `{name}`; rename one or put it into another list"
                )
            };
            return Err(rows.wrong(row, slide, reason).into());
        }
        rows_of.insert(name.clone(), row);
        let own = resolution
            .filter(|&c| rows.filled(row, Some(c)).is_some())
            .map(|c| Mpp::new(rows.number(row, c)?).map_err(|e| rows.wrong(row, c, e.to_string())));
        let own = own.transpose()?;
        let cells = further
            .iter()
            .map(|&c| (uncell(&rows.names()[c]).to_owned(), uncell(rows.cell(row, c)).to_owned()));
        let columns = cells.collect();
        let (mpp, own_mpp) = (own.or(mpp), own.is_some());
        found.slides.push(Input { path, name, mpp, own_mpp, columns, regions: None, list: None });
    }
    found.enlist(&[path.to_owned()]);
    Ok(found)
}

impl Inputs {
    /// Gives slides the columns of a list of [`read_list`], and its um/px to those for which it states one; slides
    /// are found by the names of their files. A note on what does not meet.
    ///
    /// # Errors
    /// Those of [`read_list`]; [`InputError::NoneNamed`] where no row is one of the slides.
    pub fn take_columns(
        &mut self,
        list: &Path,
        taken: &[&str],
    ) -> Result<Option<Unmatched>, InputError> {
        let listed = read_list(list, None, taken)?.slides;
        let names: Vec<String> = listed.iter().map(|i| i.name.clone()).collect();
        let note = self.unmatched(&list.display().to_string(), names.iter())?;
        let rows: BTreeMap<String, Input> =
            listed.into_iter().map(|i| (i.name.clone(), i)).collect();
        for slide in &mut self.slides {
            let Some(row) = rows.get(&slide.name) else { continue };
            slide.columns.clone_from(&row.columns);
            if row.own_mpp {
                (slide.mpp, slide.own_mpp) = (row.mpp, true);
            }
        }
        self.enlist(&[list.to_owned()]);
        Ok(note)
    }

    /// Makes these slides those of a list, or of the arguments of a command, for the records of a run.
    pub(super) fn enlist(&mut self, sources: &[PathBuf]) {
        let whole = |source: &PathBuf| std::path::absolute(source).unwrap_or(source.clone());
        let sources = sources.iter().map(|s| whole(s).to_string_lossy().into_owned());
        self.share_list(sources.collect::<Vec<_>>().join("\n"));
    }

    /// The same, of a list by a text that names it.
    pub(super) fn share_list(&mut self, source: String) {
        let list = Arc::new(listed(&Vec::from_iter(&self.slides), source));
        self.slides.iter_mut().for_each(|s| s.list = Some(Arc::clone(&list)));
    }
}

fn listed(slides: &[&Input], source: String) -> Listed {
    let slide = |s: &&Input| ListedSlide { name: s.name.clone(), columns: s.columns.clone() };
    let slides = slides.iter().map(slide).collect();
    Listed { schema: SCHEMA.to_owned(), slides, source }
}

/// The schema of a list in the records of a run.
const SCHEMA: &str = "mithras.list/1";
/// Folder of what a run's processes write down before they begin, in that of the run.
pub(crate) const RECORDS: &str = ".runs";

/// Writes down which slides a run is to search, and those of its lists that others search, before its first slide:
/// a run and its cases are known to lack those that are not begun.
///
/// # Errors
/// [`WriteError`].
pub(crate) fn record_lists(out: &Path, inputs: &[Input]) -> Result<(), WriteError> {
    let single: Vec<&Input> = inputs.iter().filter(|i| i.list.is_none()).collect();
    let names: Vec<&str> = single.iter().map(|i| i.name.as_str()).collect();
    let own = (!single.is_empty()).then(|| listed(&single, names.join("\n")));
    let lists = inputs.iter().filter_map(|i| i.list.as_deref()).chain(&own);
    for (source, list) in lists.map(|l| (&l.source, l)).collect::<BTreeMap<_, _>>() {
        let path = out.join(RECORDS).join(format!("list-{}.json", &sha256(source)[..16]));
        base::json::write(&path, list)?;
    }
    Ok(())
}

/// The lists that name slides of runs, each with the file of its record.
///
/// # Errors
/// [`JsonError`] for a record that is damaged: without it a case in part could look whole.
pub(crate) fn lists(outs: &[PathBuf]) -> Result<Vec<(PathBuf, Listed)>, JsonError> {
    let records = outs.iter().map(|out| base::walk::entries_if_any(&out.join(RECORDS)));
    let mut files = records.collect::<Result<Vec<_>, _>>()?.concat();
    files.retain(|f| f.file_name().unwrap_or_default().to_string_lossy().starts_with("list-"));
    let read = |f: PathBuf| match base::json::read_schema(&f, SCHEMA) {
        // Another process has removed it, as all its slides are begun.
        Err(_) if f.try_exists().is_ok_and(|there| !there) => None,
        read => Some(read.map(|list| (f, list))),
    };
    files.into_iter().filter_map(read).collect()
}

/// The folders of those slides of a run that its records name and that nobody has begun, by name.
///
/// # Errors
/// [`JsonError`] for a record that is damaged.
pub fn folders_to_begin(run: &Path) -> Result<Vec<PathBuf>, JsonError> {
    let slides = lists(&[run.to_owned()])?.into_iter().flat_map(|(_, list)| list.slides);
    let folders: BTreeSet<PathBuf> = slides.map(|s| run.join(s.name)).collect();
    Ok(folders.into_iter().filter(|folder| !has_state(folder)).collect())
}

/// A complaint about a column's name.
fn header(path: &Path, column: usize, reason: &str) -> TableError {
    let place = format!("{}, header, column {}", path.display(), column + 1);
    TableError::Cell { place, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Inputs, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("slides.csv");
        std::fs::write(&path, text).unwrap();
        let given = Mpp::new(0.5).unwrap();
        let mut found = read_list(&path, Some(given), &["slide", "figures", "mpp_x"])
            .map_err(|e| e.to_string())?;
        for slide in &mut found.slides {
            slide.path = slide.path.strip_prefix(dir.path()).unwrap_or(&slide.path).to_owned();
        }
        Ok(found)
    }

    #[test]
    fn paths_resolutions_and_further_columns() {
        let found = read(
            "patient,slide,MPP,cohort,p-T\nP1,a/one.svs,0.25,TCGA,\"1,2\"\nP1,/b/two.svs,,,'=1+1\n",
        )
        .unwrap();
        let [one, two] = &found.slides[..] else { panic!("{found:?}") };
        assert_eq!((one.path.to_str().unwrap(), &*one.name), ("a/one.svs", "one"));
        assert_eq!((one.mpp.unwrap().get(), one.own_mpp), (0.25, true));
        let of = |cells: [(&str, &str); 3]| cells.map(|(n, c)| (n.to_owned(), c.to_owned()));
        assert_eq!(one.columns, of([("patient", "P1"), ("cohort", "TCGA"), ("p-T", "1,2")]));
        assert_eq!(two.path.to_str().unwrap(), "/b/two.svs");
        assert_eq!((two.mpp.unwrap().get(), two.own_mpp), (0.5, false));
        assert_eq!(two.columns, of([("patient", "P1"), ("cohort", ""), ("p-T", "=1+1")]));
    }

    #[test]
    fn slides_that_were_found_take_the_columns_of_a_list() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("cases.csv");
        let given = Some(Mpp::new(0.5).unwrap());
        let mut found = Inputs::default();
        for name in ["x/001.svs", "x/002.svs", "x/003.svs"] {
            found.slides.push(Input { mpp: given, ..Input::new(Path::new(name)) });
        }
        let take = |found: &mut Inputs, text: &str| {
            std::fs::write(&list, text).unwrap();
            found.take_columns(&list, &["slide", "figures"]).map_err(|e| e.to_string())
        };
        // The folder in the list is of another computer; the slides are found by name.
        let text = "slide,case,mpp\nZ/002.svs,K1,0.25\n001.svs,K2,\n009.svs,K9,\n";
        let note = take(&mut found, text).unwrap().unwrap().to_string();
        assert!(note.contains("'009'") && note.contains("'003'"), "{note}");
        let of = |k: usize| {
            let s = &found.slides[k];
            (s.columns.iter().map(|c| c.1.as_str()).collect::<String>(), s.mpp.unwrap().get())
        };
        assert_eq!(
            [of(0), of(1), of(2)].map(|(c, m)| format!("{c} {m}")),
            ["K2 0.5", "K1 0.25", " 0.5"]
        );
        for (text, words) in [
            ("slide,case\n1.svs,K1\n", "leading zeros"),
            ("file,case\n001.svs,K1\n", "no column 'slide'"),
            ("slide,figures\n001.svs,3\n", "is called 'figures'"),
        ] {
            let error = take(&mut found, text).unwrap_err();
            assert!(error.contains(words) && error.contains("cases.csv"), "{error}");
        }
        assert_eq!(found.slides[1].columns[0].1, "K1", "a list that is refused changes nothing");
    }

    #[test]
    fn rows_may_be_addresses() {
        let found = read("slide,mpp\ns3://b/c/one.svs,\nhttps://h/two.svs?sig=hush,0.3\n3.svs,\n");
        let found = found.unwrap().slides;
        let paths: Vec<_> = found.iter().map(|s| s.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["s3://b/c/one.svs", "https://h/two.svs", "3.svs"]);
        let e = read("slide\nhttps://h/a.svs?x=hush\nhttps://h/a.svs?x=hush\n").unwrap_err();
        assert!(e.contains("already in line 2") && !e.contains("hush"), "{e}");
    }

    #[test]
    fn a_wrong_list_is_refused_with_its_place() {
        for (text, words) in [
            ("file,mpp\na.svs,0.25\n", &["no column 'slide'"][..]),
            ("slide\n", &["no rows"]),
            ("slide,x\n,1\n", &["row 1 (line 2)", "is empty"]),
            ("slide\na.svs\nb.svs\na.svs\n", &["row 3 (line 4)", "already in line 2"]),
            ("slide\nx/a.svs\ny/a.tiff\n", &["row 2 (line 3)", "the folder `a`", "rename"]),
            ("slide,mpp\na.svs,0.25\nb.svs,wide\n", &["column 'mpp', row 2", "'wide'"]),
            ("slide,mpp\na.svs,-1\n", &["column 'mpp', row 1", "implausible"]),
            ("slide,\na.svs,1\n", &["header, column 2: has no name"]),
            ("slide,age,Age\na.svs,1,2\n", &["two columns are called"]),
            ("slide,mpp,m_pp\na.svs,1,2\n", &["two columns are called 'mpp'"]),
            ("slide,Figures\na.svs,1\n", &["column 2: is called 'Figures'", "another name"]),
            ("slide,a\na.svs\n", &["line 2: 1 cells"]),
        ] {
            let error = read(text).unwrap_err();
            assert!(words.iter().all(|w| error.contains(w)), "{text}: {error}");
            assert!(error.contains("slides.csv"), "{error}");
        }
    }
}
