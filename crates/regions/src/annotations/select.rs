//! A part of what a file lists: tumour types, named images, a published split.

use super::files::{broken, read_bytes};
use super::sheet::{Sheet, cell};
use super::{Annotations, ImportError};
use base::table::{Format, Table, TableError, Unmatched};
use crops::Split;
use crops::slide_name::bare;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Columns that name an image.
const IMAGE: &[&str] = &["image", "slide", "file", "filename", "name", "image_id", "case"];
/// Columns with its split.
const SPLIT: &[&str] = &["split", "part", "dataset", "set", "fold", "side"];
/// How many names an error lists.
const SHOWN: usize = 5;

/// Which of a file's images are taken, and where they go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Tumour types (cohorts), as the file names them, compared without case; all where empty.
    pub types: Vec<String>,
    /// File that lists the images to take: one name a line, or a table with a column `image`.
    pub images: Option<PathBuf>,
    /// Table of the images for training, validation and test ([`SplitTable`]).
    pub splits: Option<PathBuf>,
}

impl Selection {
    /// Whether all images are taken as they are.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// The split of each image, by name.
#[derive(Clone, Debug)]
pub struct SplitTable {
    file: PathBuf,
    /// Line, name and word.
    rows: Vec<(u64, String, String)>,
    cases: bool,
}

/// A name as it is compared: without an image's suffix; numbers without leading zeros, as published
/// tables write `1` for `001.tiff`.
fn key(name: &str) -> &str {
    let bare = bare(name);
    let number = !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_digit());
    let short = if number { bare.trim_start_matches('0') } else { bare };
    if short.is_empty() { bare } else { short }
}

impl SplitTable {
    /// Reads a table with a column that names images (`image`, `slide`, `file`) and one with
    /// its split (`split`, `part`, `dataset`, `fold`).
    ///
    /// # Errors
    /// A file that cannot be read, or without these columns; an empty cell.
    pub fn read(file: &Path) -> Result<Self, ImportError> {
        let sheet = Sheet::read(file)?;
        let [image, split] = sheet.need([("the image", IMAGE), ("where it goes", SPLIT)])?;
        let mut rows = vec![];
        for (line, row) in &sheet.rows {
            let (name, word) = (cell(row, image), cell(row, split));
            if name.is_empty() && word.is_empty() {
                continue;
            }
            if name.is_empty() || word.is_empty() {
                return Err(broken(
                    file,
                    format!("line {line}: an empty cell where a name or a split is needed"),
                ));
            }
            rows.push((*line, name.to_owned(), word.to_owned()));
        }
        if rows.is_empty() {
            return Err(broken(file, "the table has no rows"));
        }
        let cases = sheet.find(&["case"]) == Some(image);
        Ok(Self { file: file.into(), rows, cases })
    }

    /// Whether its column of names is `case`.
    pub(crate) const fn lists_cases(&self) -> bool {
        self.cases
    }

    /// A list of names alone: a table, or one name a line.
    fn list(file: &Path) -> Result<Self, ImportError> {
        // One name is a header without rows to a table.
        let format = Format { ragged: true, no_rows: true, ..Format::default() };
        let sheet = Sheet::read_as(file, &format)?;
        let rows: Vec<_> = match sheet.find(IMAGE) {
            Some(image) => sheet
                .rows
                .iter()
                .map(|(line, row)| (*line, cell(row, image).to_owned(), String::new()))
                .filter(|r| !r.1.is_empty())
                .collect(),
            None if sheet.headers.len() == 1 => {
                let format = Format { headless: true, ..Format::default() };
                let table = Table::parse(file, &read_bytes(file)?, &format);
                let table = table.map_err(ImportError::Table)?;
                let names = (0..table.len()).map(|row| (table.line(row), table.cell(row, 0)));
                let names = names.filter(|(_, name)| !name.is_empty());
                names.map(|(line, name)| (line, name.to_owned(), String::new())).collect()
            }
            None => {
                let reason = "no column names images: call it `image`, or list one name a line";
                return Err(broken(file, reason));
            }
        };
        if rows.is_empty() {
            return Err(ImportError::Table(TableError::no_rows(file)));
        }
        Ok(Self { file: file.into(), rows, cases: false })
    }

    /// The table's word for each of these names, where it has one.
    ///
    /// # Errors
    /// A row that names none of them, or several; two words for one name.
    pub fn words_by_name<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<HashMap<&'n str, &str>, ImportError> {
        let mut exact = HashMap::new();
        let mut keys: HashMap<&str, BTreeSet<&'n str>> = HashMap::new();
        for name in names {
            exact.insert(name, name);
            keys.entry(key(name)).or_default().insert(name);
        }
        let mut found: HashMap<&'n str, (u64, &str)> = HashMap::new();
        let mut unknown = vec![];
        for (line, name, word) in &self.rows {
            let near = keys.get(key(name));
            let own = match (exact.get(name.as_str()), near) {
                (Some(own), _) => *own,
                (None, Some(near)) if near.len() == 1 => *near.first().expect("one"),
                (None, Some(near)) => {
                    let all = near.iter().copied().collect::<Vec<_>>().join(", ");
                    let reason =
                        format!("line {line}: `{name}` may be {all}; write the whole name");
                    return Err(broken(&self.file, reason));
                }
                (None, None) => {
                    unknown.push(name.as_str());
                    continue;
                }
            };
            if let Some((first, other)) = found.insert(own, (*line, word.as_str()))
                && other != word
            {
                let reason =
                    format!("`{own}` is `{other}` in line {first} and `{word}` in line {line}");
                return Err(broken(&self.file, reason));
            }
        }
        if !unknown.is_empty() {
            let shown = unknown.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
            let more = if unknown.len() > SHOWN { ", ..." } else { "" };
            let mut idle: Vec<&str> =
                exact.keys().copied().filter(|name| !found.contains_key(name)).collect();
            idle.sort_unstable();
            let join = Unmatched::from_keys(("the table", "the images"), &unknown, &idle)
                .map_or_else(String::new, |j| format!("; {j}"));
            let reason = format!(
                "{} of {} names are not among the images: {shown}{more}{join}",
                unknown.len(),
                self.rows.len()
            );
            return Err(broken(&self.file, reason));
        }
        Ok(found.into_iter().map(|(name, (_, word))| (name, word)).collect())
    }

    /// Path of the table.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// Which side a word means.
fn side(word: &str) -> Option<Split> {
    match word.to_lowercase().as_str() {
        "train" | "training" => Some(Split::Train),
        "val" | "valid" | "validation" => Some(Split::Validation),
        "test" | "testing" => Some(Split::Test),
        _ => None,
    }
}

/// What each image is kept as: nothing where it is left out, with the reason.
type Kept = Vec<Result<Option<Split>, &'static str>>;

const UNLISTED: &str = "not in the list of images";
const OTHER_TYPE: &str = "of another tumour type";
const WITHOUT_SPLIT: &str = "unlabelled, not in the table of splits";

impl Annotations {
    /// The part that a selection takes; [`Annotations::not_selected`] counts the rest.
    ///
    /// # Errors
    /// A list or table that cannot be read or names other images, a tumour type that no image has, a
    /// labelled image that the table of splits does not list, or nothing left.
    pub fn select(self, what: &Selection) -> Result<Self, ImportError> {
        if what.is_all() {
            return Ok(self);
        }
        let mut kept: Kept = vec![Ok(None); self.images.len()];
        if let Some(file) = &what.splits {
            self.by_split(file, &mut kept)?;
        }
        if let Some(file) = &what.images {
            let list = SplitTable::list(file)?;
            let found = list.words_by_name(self.images.iter().map(|i| i.name.as_str()))?;
            for (image, kept) in self.images.iter().zip(&mut kept) {
                if !found.contains_key(image.name.as_str()) {
                    *kept = Err(UNLISTED);
                }
            }
        }
        if !what.types.is_empty() {
            self.by_type(&what.types, &mut kept)?;
        }
        self.filter(&kept)
    }

    fn by_split(&self, file: &Path, kept: &mut Kept) -> Result<(), ImportError> {
        let table = SplitTable::read(file)?;
        let words = table.words_by_name(self.images.iter().map(|i| i.name.as_str()))?;
        let mut labelled = vec![false; self.images.len()];
        self.annotations.iter().for_each(|a| labelled[a.image] = true);
        let mut missing = vec![];
        for (number, image) in self.images.iter().enumerate() {
            let name = image.name.as_str();
            kept[number] = match words.get(name) {
                Some(word) => Ok(Some(side(word).ok_or_else(|| {
                    broken(
                        file,
                        format!(
                            "`{name}` goes to `{word}`, which is not train, validation or test; numbers of folds \
                             belong to `corpus split`"
                        ),
                    )
                })?)),
                None if labelled[number] => {
                    missing.push(name);
                    continue;
                }
                None => Err(WITHOUT_SPLIT),
            };
        }
        if missing.is_empty() {
            return Ok(());
        }
        let shown = missing.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        let idle: Vec<&str> = (table.rows.iter().map(|r| r.1.as_str()))
            .filter(|name| !words.keys().any(|own| key(own) == key(name)))
            .collect();
        let join = Unmatched::from_keys(("the labels", "the table"), &missing, &idle)
            .map_or_else(String::new, |j| format!("; {j}"));
        let reason =
            format!("{} labelled images are not in the table, e.g. {shown}{join}", missing.len());
        Err(broken(file, reason))
    }

    fn by_type(&self, types: &[String], kept: &mut Kept) -> Result<(), ImportError> {
        let mut there: BTreeMap<&str, usize> = BTreeMap::new();
        for image in &self.images {
            *there.entry(image.cohort.as_deref().unwrap_or("(none)")).or_default() += 1;
        }
        let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
        if let Some(unknown) = types.iter().find(|t| !there.keys().any(|k| same(k, t))) {
            let known: Vec<String> =
                there.iter().map(|(k, n)| format!("{k} ({n} images)")).collect();
            let reason =
                format!("no image is of the type `{unknown}`; there are {}", known.join(", "));
            return Err(broken(&self.file, reason));
        }
        for (image, kept) in self.images.iter().zip(kept) {
            let own = image.cohort.as_deref().unwrap_or("(none)");
            if !types.iter().any(|t| same(t, own)) {
                *kept = Err(OTHER_TYPE);
            }
        }
        Ok(())
    }

    fn filter(mut self, kept: &Kept) -> Result<Self, ImportError> {
        let mut number_of = vec![None; kept.len()];
        let mut images = vec![];
        for ((image, kept), at) in self.images.into_iter().zip(kept).zip(&mut number_of) {
            match kept {
                Ok(split) => {
                    *at = Some(images.len());
                    images.push(super::ImageEntry { split: split.or(image.split), ..image });
                }
                Err(why) => *self.not_selected.entry((*why).to_owned()).or_default() += 1,
            }
        }
        if images.is_empty() {
            return Err(broken(&self.file, "no image is left of the selection"));
        }
        self.annotations.retain_mut(|a| {
            let Some(number) = number_of[a.image] else { return false };
            a.image = number;
            a.split = images[number].split.or(a.split);
            true
        });
        self.images = images;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotations::{ImageEntry, ImportOptions, importer};
    use std::fs;

    fn midog(selection: &Selection) -> Option<Result<Annotations, String>> {
        let dir = testkit::data("annotations")?;
        let options = ImportOptions { select: selection.clone(), ..ImportOptions::default() };
        let json = importer("midog-json").unwrap();
        Some(json.annotations(&dir.join("MIDOG++.json"), &options).map_err(|e| e.to_string()))
    }

    fn of(types: &[&str]) -> Selection {
        Selection { types: types.iter().map(|t| (*t).to_owned()).collect(), ..Selection::default() }
    }

    #[test]
    fn one_file_gives_two_disjoint_benchmarks() {
        let five = [
            "human breast cancer",
            "canine lung cancer",
            "canine lymphosarcoma",
            "canine cutaneous mast cell tumor",
            "Human Neuroendocrine Tumor",
        ];
        let Some(midog22) = midog(&of(&five)) else { return };
        let two = of(&["canine soft tissue sarcoma", "human melanoma"]);
        let (midog22, midogpp) = (midog22.unwrap(), midog(&two).unwrap().unwrap());
        let counts = |a: &Annotations| {
            let s = a.summary();
            (s.labelled_images, s.figures, s.mimickers)
        };
        // The paper's counts; two of MIDOG22's 11,051 mimickers are not in the file of MIDOG++.
        assert_eq!(counts(&midog22), (354, 9_501, 11_049));
        assert_eq!(counts(&midogpp), (149, 2_436, 3_300));
        assert_eq!(midog22.images.len(), 404, "50 images of breast have no label");
        let names =
            |a: &Annotations| a.images.iter().map(|i| i.name.clone()).collect::<BTreeSet<_>>();
        assert!(names(&midog22).is_disjoint(&names(&midogpp)));
        assert_eq!(midogpp.not_selected[OTHER_TYPE], 404);
        let unknown = midog(&of(&["sarcoma"])).unwrap().unwrap_err();
        assert!(unknown.contains("canine soft tissue sarcoma (100 images)"), "{unknown}");
    }

    #[test]
    fn the_published_split_divides_the_labelled_images() {
        let Some(dir) = testkit::data("annotations") else { return };
        let splits = Some(dir.join("MIDOGpp_datasets_xvalidation.csv"));
        let all = midog(&Selection { splits, ..Selection::default() }).unwrap().unwrap();
        let count = |side| all.images.iter().filter(|i| i.split == Some(side)).count();
        assert_eq!((count(Split::Train), count(Split::Test)), (392, 111));
        assert_eq!(all.not_selected[WITHOUT_SPLIT], 50);
        let of = |name: &str| all.images.iter().find(|i| i.name == name).unwrap().split;
        assert_eq!((of("001.tiff"), of("006.tiff")), (Some(Split::Train), Some(Split::Test)));
        assert!(all.annotations.iter().all(|a| a.split == all.images[a.image].split));
    }

    fn small() -> Annotations {
        let image = |name: &str, cohort: &str| ImageEntry {
            name: name.into(),
            cohort: Some(cohort.into()),
            ..ImageEntry::default()
        };
        let images = vec![image("001.tiff", "a"), image("002.tiff", "b"), image("x/7.png", "b")];
        Annotations { images, ..Annotations::default() }
    }

    #[test]
    fn lists_name_images_and_wrong_names_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("list.txt");
        let run = |text: &str| {
            fs::write(&file, text).unwrap();
            let what = Selection { images: Some(file.clone()), ..Selection::default() };
            let names = |a: Annotations| a.images.into_iter().map(|i| i.name).collect::<Vec<_>>();
            small().select(&what).map(names).map_err(|e| e.to_string())
        };
        assert_eq!(run("1\nx/7.png\n").unwrap(), ["001.tiff", "x/7.png"]);
        assert_eq!(run("slide;tumour\n2;b\n").unwrap(), ["002.tiff"]);
        let wrong = run("1\n003\nabc\n").unwrap_err();
        assert!(wrong.contains("2 of 3 names are not among the images: 003, abc"), "{wrong}");
        let unnamed = run("a,b\n1,2\n").unwrap_err();
        assert!(unnamed.contains("call it `image`, or list one name a line"), "{unnamed}");
        assert_eq!(run("image,b\n1,2\n").unwrap(), ["001.tiff"]);
        assert_eq!(run("1\n2\n").unwrap(), ["001.tiff", "002.tiff"]);
    }

    #[test]
    fn tables_of_splits_are_checked() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("split.csv");
        let run = |text: &str| {
            fs::write(&file, text).unwrap();
            let what = Selection { splits: Some(file.clone()), ..Selection::default() };
            small().select(&what).map_err(|e| e.to_string())
        };
        let two = run("image,split\n1,train\n001.tiff,test\n").unwrap_err();
        assert!(two.contains("`train` in line 2 and `test` in line 3"), "{two}");
        let fold = run("image,fold\n1,0\n").unwrap_err();
        assert!(fold.contains("goes to `0`") && fold.contains("corpus split"), "{fold}");
        assert!(run("image\n1\n").unwrap_err().contains("where it goes"));
        let some = run("image,split\n1,validation\n").unwrap();
        assert_eq!(some.images.len(), 1);
        assert_eq!(some.images[0].split, Some(Split::Validation));
    }
}
