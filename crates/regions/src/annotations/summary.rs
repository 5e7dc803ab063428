//! What an import found, as figures for people and machines.

use super::error::Problem;
use super::{Annotations, Class, CloseLabels};
use base::table::Unread;
use serde::Serialize;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Counts of one import; `--json` prints exactly this.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Importer.
    pub format: &'static str,
    /// Name of the file of annotations.
    pub file: String,
    /// Images the source lists.
    pub images: usize,
    /// Images with at least one annotation.
    pub labelled_images: usize,
    /// Mitotic figures, typical and atypical.
    pub figures: usize,
    /// Mimickers (hard negatives, imposters, look-alikes).
    pub mimickers: usize,
    /// Mitotic figures called atypical; absent when the source has no subtypes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atypical: Option<usize>,
    /// Mitotic figures called typical.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical: Option<usize>,
    /// Other labelled cells.
    pub other: usize,
    /// Annotations without an agreed label.
    pub unresolved: usize,
    /// All annotations kept.
    pub annotations: usize,
    /// Annotations per category, in the source's words.
    pub categories: BTreeMap<String, usize>,
    /// Annotations and figures per cohort.
    pub cohorts: BTreeMap<String, BTreeMap<&'static str, usize>>,
    /// Annotations per split, where the source fixes one.
    pub splits: BTreeMap<&'static str, usize>,
    /// Each annotator's verdicts, in the source's words.
    pub votes: BTreeMap<String, BTreeMap<String, usize>>,
    /// Boxes that reach over an image's edge; kept.
    pub clipped: usize,
    /// Annotations that repeat another's image, centre and class; kept.
    pub duplicates: usize,
    /// Places with two different labels.
    pub contradictions: Vec<Contradiction>,
    /// Labels that may be of one cell; kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close_labels: Option<CloseLabels>,
    /// Left out by category, by name.
    pub ignored: BTreeMap<String, u64>,
    /// Marked as deleted by the source.
    pub deleted: u64,
    /// Records left out because the import was lenient.
    pub skipped: usize,
    /// The first of them.
    pub skipped_records: Vec<Problem>,
    /// Images that were not selected, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub not_selected: BTreeMap<String, u64>,
    /// Columns of a table of any form that are not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_columns: Option<Unread>,
}

/// One place, two labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// Name of the image that has the place.
    pub image: String,
    /// The records.
    pub records: [String; 2],
    /// Their categories.
    pub categories: [String; 2],
}

impl std::fmt::Display for Contradiction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { image, records: [a, b], categories: [first, second] } = self;
        write!(f, "{image}: {a} is `{first}`, {b} is `{second}`")
    }
}

impl Annotations {
    /// What to add to coordinates on an image whose bounds begin there, level-0 px.
    #[must_use]
    pub fn offset(&self, bounds: [i64; 2]) -> [f64; 2] {
        #[expect(clippy::cast_precision_loss, reason = "pixel coordinates of a slide")]
        let offset = bounds.map(|o| o as f64);
        if self.from_bounds { offset } else { [0.0; 2] }
    }

    /// Annotations that repeat one before them, by number, with the first: one image, place,
    /// box, category and split.
    pub(crate) fn repeats(&self) -> BTreeMap<usize, usize> {
        let mut first = HashMap::new();
        let mut repeats = BTreeMap::new();
        for (number, a) in self.annotations.iter().enumerate() {
            let place = [a.centre.x, a.centre.y].map(f64::to_bits);
            let bbox = a.bbox.map(|b| b.map(f64::to_bits));
            let key = (a.image, place, bbox, (a.class, &a.category, &a.subtype, a.split));
            match first.entry(key) {
                Entry::Vacant(e) => drop(e.insert(number)),
                Entry::Occupied(e) => drop(repeats.insert(number, *e.get())),
            }
        }
        repeats
    }

    /// Counts everything.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count = |class| self.annotations.iter().filter(|a| a.class == class).count();
        let labelled: HashSet<usize> = self.annotations.iter().map(|a| a.image).collect();
        let subtype = |name: &str| {
            let n = self.annotations.iter().filter(|a| a.subtype.as_deref() == Some(name)).count();
            self.annotations.iter().any(|a| a.subtype.is_some()).then_some(n)
        };
        let mut s = Summary {
            format: self.format,
            file: self.file.display().to_string(),
            images: self.images.len(),
            labelled_images: labelled.len(),
            figures: count(Class::MitoticFigure),
            mimickers: count(Class::Mimicker),
            atypical: subtype("atypical"),
            typical: subtype("typical"),
            other: count(Class::Other),
            unresolved: count(Class::Unresolved),
            annotations: self.annotations.len(),
            categories: BTreeMap::new(),
            cohorts: BTreeMap::new(),
            splits: BTreeMap::new(),
            votes: BTreeMap::new(),
            clipped: self.annotations.iter().filter(|a| a.clipped).count(),
            duplicates: 0,
            contradictions: Vec::new(),
            close_labels: self.close_labels(|image| self.images[image].units.stated_mpp()),
            ignored: self.ignored.clone(),
            deleted: self.deleted,
            skipped: self.skipped.len(),
            skipped_records: self.skipped.iter().take(20).cloned().collect(),
            not_selected: self.not_selected.clone(),
            unread_columns: self.unread_columns.clone(),
        };
        let mut seen: HashMap<(usize, u64, u64), usize> = HashMap::new();
        for (i, a) in self.annotations.iter().enumerate() {
            *s.categories.entry(a.category.clone()).or_default() += 1;
            if let Some(c) = &self.images[a.image].cohort {
                let row = s.cohorts.entry(c.clone()).or_default();
                let key = match a.class {
                    Class::MitoticFigure => "figures",
                    Class::Mimicker => "mimickers",
                    _ => "rest",
                };
                *row.entry(key).or_default() += 1;
            }
            if let Some(split) = a.split {
                *s.splits.entry(split.name()).or_default() += 1;
            }
            for (who, what) in &a.votes {
                *s.votes.entry(who.clone()).or_default().entry(what.clone()).or_default() += 1;
            }
            let place = (a.image, a.centre.x.to_bits(), a.centre.y.to_bits());
            match seen.get(&place).map(|&j| &self.annotations[j]) {
                None => {
                    seen.insert(place, i);
                }
                Some(b) if b.class == a.class && b.subtype == a.subtype => s.duplicates += 1,
                Some(b) => s.contradictions.push(Contradiction {
                    image: self.images[a.image].name.clone(),
                    records: [b.record.clone(), a.record.clone()],
                    categories: [b.category.clone(), a.category.clone()],
                }),
            }
        }
        s
    }
}
