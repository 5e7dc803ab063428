//! Folds belong to slides and patients: one manifest serves every dataset, of regions or of crops,
//! that was cut from the slides it names.

use super::{FoldManifest, FoldsError, Place, Result};
use crops::slide_name::bare;
use std::collections::{BTreeSet, HashMap};

/// How many names an error lists.
const SHOWN: usize = 5;

/// Groups of a manifest by the names of their slides and patients. Slide 7 need not be of patient 7.
pub(super) struct Names<'a> {
    manifest: &'a FoldManifest,
    slides: HashMap<&'a str, usize>,
    patients: HashMap<&'a str, usize>,
    /// Slides without suffixes; `None` where two groups have slides of that name.
    bare: HashMap<&'a str, Option<usize>>,
}

impl<'a> Names<'a> {
    pub fn new(manifest: &'a FoldManifest) -> Self {
        let [mut slides, mut patients] = [HashMap::new(), HashMap::new()];
        let mut without = HashMap::new();
        for (number, group) in manifest.groups.iter().enumerate() {
            patients.extend(group.patients.iter().map(|name| (name.as_str(), number)));
            for name in &group.slides {
                slides.insert(name.as_str(), number);
                let entry = without.entry(bare(name)).or_insert(Some(number));
                if *entry != Some(number) {
                    *entry = None;
                }
            }
        }
        Self { manifest, slides, patients, bare: without }
    }

    fn slide(&self, name: &str) -> Option<usize> {
        self.slides.get(name).copied().or_else(|| self.bare.get(bare(name)).copied().flatten())
    }

    fn patient(&self, name: &str) -> Option<usize> {
        self.patients.get(name).copied()
    }

    /// The group of an image or crop.
    ///
    /// # Errors
    /// [`FoldsError::Leak`]: its slide and its patient are in two groups.
    pub fn group(&self, slide: &str, patient: Option<&str>) -> Result<Option<usize>> {
        let (by_slide, by_patient) = (self.slide(slide), patient.and_then(|p| self.patient(p)));
        if let (Some(a), Some(b)) = (by_slide, by_patient)
            && a != b
        {
            let name = |g: usize| self.manifest.groups[g].name.clone();
            let (what, first, second) = ("slide", name(a), name(b));
            return Err(FoldsError::Leak { what, name: slide.to_owned(), first, second });
        }
        // A manifest without patients may list patients as slides.
        let as_slide = || patient.filter(|_| self.patients.is_empty()).and_then(|p| self.slide(p));
        Ok(by_slide.or(by_patient).or_else(as_slide))
    }
}

/// An image or crop that is looked for in a manifest.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'a> {
    /// Its slide.
    pub slide: &'a str,
    /// Its patient, where known.
    pub patient: Option<&'a str>,
    /// Digests of its file and of its pixels.
    pub content: [Option<&'a str>; 2],
}

impl FoldManifest {
    /// The place of each of these, by the names of their slides and patients. The manifest may have been
    /// made for another dataset.
    ///
    /// # Errors
    /// Slides that are in no group, with their number; a slide and its patient, or two images of the same
    /// content, in two groups.
    pub fn find_places<'a>(&self, items: impl Iterator<Item = Sought<'a>>) -> Result<Vec<Place>> {
        let names = Names::new(self);
        let mut contents: HashMap<&str, (usize, &str)> = HashMap::new();
        let (mut places, mut unknown, mut slides) = (vec![], BTreeSet::new(), BTreeSet::new());
        for item in items {
            slides.insert(item.slide);
            let Some(group) = names.group(item.slide, item.patient)? else {
                unknown.insert(item.slide);
                continue;
            };
            for content in item.content.into_iter().flatten() {
                let (first, slide) = *contents.entry(content).or_insert((group, item.slide));
                if first != group {
                    return Err(FoldsError::Invalid(format!(
                        "slides `{slide}` and `{}` hold the same image but belong to the groups `{}` \
                         and `{}`, which folds over both datasets prevent (`corpus split` takes several)",
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
            "{} of {} slides are in no fold: {}{more}; the folds were made for other slides \
             (`corpus split` takes several datasets)",
            unknown.len(),
            slides.len(),
            shown.join(", ")
        )))
    }

    /// Which of these slides and patients fold `k` must not have seen: it holds them out, or they are test data.
    #[must_use]
    pub fn leaked<'a>(
        &self,
        k: usize,
        slides: impl Iterator<Item = &'a str>,
        patients: impl Iterator<Item = &'a str>,
    ) -> Vec<&'a str> {
        let held = |g: &&super::Group| g.place == Place::Fold(k) || g.place == Place::Test;
        let held = || self.groups.iter().filter(held);
        let own: BTreeSet<&str> = held().flat_map(|g| &g.slides).map(|s| bare(s)).collect();
        let people: BTreeSet<&str> = held().flat_map(|g| &g.patients).map(String::as_str).collect();
        let slides = slides.filter(|name| own.contains(bare(name)));
        slides.chain(patients.filter(|name| people.contains(name))).collect()
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
