//! Folds belong to slides and patients: one manifest serves every dataset, of regions or of crops,
//! that was cut from the slides it names.

use super::{FoldManifest, FoldsError, Place, Result};
use crops::slide_name::bare;
use std::collections::{BTreeSet, HashMap};

/// How many names an error lists.
const SHOWN: usize = 5;

/// Groups of a manifest by the names of their slides and patients.
pub(super) struct Names<'a> {
    manifest: &'a FoldManifest,
    exact: HashMap<&'a str, usize>,
    /// Without suffixes; `None` where two groups have slides of that name.
    bare: HashMap<&'a str, Option<usize>>,
}

impl<'a> Names<'a> {
    pub fn new(manifest: &'a FoldManifest) -> Self {
        let (mut exact, mut without) = (HashMap::new(), HashMap::new());
        for (number, group) in manifest.groups.iter().enumerate() {
            for name in group.patients.iter().chain(&group.slides) {
                exact.insert(name.as_str(), number);
            }
            for name in &group.slides {
                let entry = without.entry(bare(name)).or_insert(Some(number));
                if *entry != Some(number) {
                    *entry = None;
                }
            }
        }
        Self { manifest, exact, bare: without }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.exact.get(name).copied().or_else(|| self.bare.get(bare(name)).copied().flatten())
    }

    /// The group of an image or crop.
    ///
    /// # Errors
    /// [`FoldsError::Leak`]: its slide and its patient are in two groups.
    pub fn group(&self, slide: &str, patient: Option<&str>) -> Result<Option<usize>> {
        let (by_slide, by_patient) = (self.find(slide), patient.and_then(|p| self.find(p)));
        if let (Some(a), Some(b)) = (by_slide, by_patient)
            && a != b
        {
            let name = |g: usize| self.manifest.groups[g].name.clone();
            let (what, first, second) = ("slide", name(a), name(b));
            return Err(FoldsError::Leak { what, name: slide.to_owned(), first, second });
        }
        Ok(by_slide.or(by_patient))
    }
}

/// An image or crop that is looked for in a manifest.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'a> {
    /// Its slide.
    pub slide: &'a str,
    /// Its patient, where known.
    pub patient: Option<&'a str>,
    /// Digest of its content.
    pub content: Option<&'a str>,
}

impl FoldManifest {
    /// The place of each of these, by the names of their slides and patients. The manifest may have been
    /// made for another dataset.
    ///
    /// # Errors
    /// Slides that are in no group, with their number; a slide and its patient, or two images of the same
    /// content, in two groups.
    pub fn places_of<'a>(&self, items: impl Iterator<Item = Sought<'a>>) -> Result<Vec<Place>> {
        let names = Names::new(self);
        let mut contents: HashMap<&str, (usize, &str)> = HashMap::new();
        let (mut places, mut unknown, mut slides) = (vec![], BTreeSet::new(), BTreeSet::new());
        for item in items {
            slides.insert(item.slide);
            let Some(group) = names.group(item.slide, item.patient)? else {
                unknown.insert(item.slide);
                continue;
            };
            if let Some(content) = item.content {
                let (first, slide) = *contents.entry(content).or_insert((group, item.slide));
                if first != group {
                    return Err(FoldsError::Invalid(format!(
                        "slides `{slide}` and `{}` hold the same image but belong to the groups `{}` \
                         and `{}`; make the folds over this dataset too (`corpus split` takes several)",
                        item.slide, self.groups[first].name, self.groups[group].name
                    )));
                }
            }
            places.push(self.groups[group].place);
        }
        if unknown.is_empty() {
            return Ok(places);
        }
        let shown: Vec<&str> = unknown.iter().copied().take(SHOWN).collect();
        let more = if unknown.len() > SHOWN { ", ..." } else { "" };
        Err(FoldsError::Invalid(format!(
            "{} of {} slides are in no fold: {}{more}; the folds were made for other slides, make them over \
             all datasets that use them (`corpus split` takes several)",
            unknown.len(),
            slides.len(),
            shown.join(", ")
        )))
    }

    /// Names of the slides and patients that fold `k` holds out and of those that are test data.
    #[must_use]
    pub fn held_out(&self, k: usize) -> BTreeSet<&str> {
        let of = |g: &&super::Group| g.place == Place::Fold(k) || g.place == Place::Test;
        let groups = self.groups.iter().filter(of);
        groups.flat_map(|g| g.slides.iter().chain(&g.patients)).map(String::as_str).collect()
    }

    /// Which of these names fold `k` must not have seen.
    #[must_use]
    pub fn leaked<'a>(&self, k: usize, seen: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let held: BTreeSet<&str> = self.held_out(k).into_iter().map(bare).collect();
        seen.filter(|name| held.contains(bare(name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_the_suffix_of_an_image_and_no_other() {
        assert_eq!(
            ["001.tiff", "a.SVS", "S1.2", ".png", "é"].map(bare),
            ["001", "a", "S1.2", ".png", "é"]
        );
    }
}
