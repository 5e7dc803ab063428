//! Gathers records while a file is read, so that every problem is reported, not only the first.

use super::category::Meaning;
use super::error::{ImportError, Problem};
use super::files::{broken, count_below};
use super::{Annotation, Annotations, Class, ImageEntry, ImportOptions, LabelSource};
use crate::units::Units;
use base::table::Unread;
use crops::slide_name::bare;
use mitosis::Point;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Problems quoted in full; the rest is counted.
const QUOTED: usize = 20;

/// The position of an annotation, in level-0 pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// A bare point.
    Point(f64, f64),
    /// Corners `[x0, y0, x1, y1]`.
    Box([f64; 4]),
}

impl Place {
    /// The box around points.
    pub fn around(points: &[(f64, f64)]) -> Self {
        let fold = |pick: fn(&(f64, f64)) -> f64, f: fn(f64, f64) -> f64, from: f64| {
            points.iter().map(pick).fold(from, f)
        };
        Self::Box([
            fold(|p| p.0, f64::min, f64::INFINITY),
            fold(|p| p.1, f64::min, f64::INFINITY),
            fold(|p| p.0, f64::max, f64::NEG_INFINITY),
            fold(|p| p.1, f64::max, f64::NEG_INFINITY),
        ])
    }

    /// `[x0, y0, x1, y1]`; of a point, it twice.
    pub fn corners(self) -> [f64; 4] {
        match self {
            Self::Point(x, y) => [x, y, x, y],
            Self::Box(b) => b,
        }
    }
}

/// A record as read, before its category is understood.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub image: usize,
    pub record: String,
    pub category: Category,
    pub place: Place,
    pub subtype: Option<String>,
    pub votes: BTreeMap<String, String>,
    pub patch: Option<String>,
    pub split: Option<crops::Split>,
}

impl Raw {
    pub fn new(image: usize, record: impl Into<String>, category: Category, place: Place) -> Self {
        Self {
            image,
            record: record.into(),
            category,
            place,
            subtype: None,
            votes: BTreeMap::new(),
            patch: None,
            split: None,
        }
    }
}

/// A category by name, or already understood.
#[derive(Clone, Debug)]
pub(super) enum Category {
    /// A name to look up.
    Named(String),
    /// The format itself fixes the class.
    Fixed(Class, String),
}

pub(super) struct Collector<'a> {
    file: PathBuf,
    options: &'a ImportOptions,
    out: Annotations,
    /// Records as read: which are outlines is known once all are.
    raws: Vec<Raw>,
    by_name: HashMap<String, usize>,
    meanings: HashMap<String, Option<Meaning>>,
    unknown: BTreeMap<String, u64>,
    problems: Vec<Problem>,
    total: usize,
    /// Whether records of this file are of the class that is assumed.
    assumes: bool,
}

impl<'a> Collector<'a> {
    pub fn new(format: &'static str, file: &Path, options: &'a ImportOptions) -> Self {
        Self {
            file: file.into(),
            options,
            out: Annotations { format, file: file.into(), ..Annotations::default() },
            raws: Vec::new(),
            by_name: HashMap::new(),
            meanings: HashMap::new(),
            unknown: BTreeMap::new(),
            problems: Vec::new(),
            total: 0,
            assumes: false,
        }
    }

    /// Adds an image entry and returns its number.
    pub fn image(&mut self, mut entry: ImageEntry) -> usize {
        if entry.cohort.is_none() {
            entry.cohort.clone_from(&self.options.cohort);
        }
        let number = self.out.images.len();
        self.by_name.entry(entry.name.clone()).or_insert(number);
        self.out.images.push(entry);
        number
    }

    /// The number of the image of that name, added when new.
    pub fn image_named(&mut self, name: &str, make: impl FnOnce() -> ImageEntry) -> usize {
        match self.by_name.get(name) {
            Some(&n) => n,
            None => self.image(make()),
        }
    }

    /// Adds what a later record states about where an image comes from.
    ///
    /// # Errors
    /// Another slide, patient, scanner, cohort or size than an earlier record states.
    pub(super) fn origin(&mut self, image: usize, stated: ImageEntry) -> Result<(), String> {
        let ImageEntry { name, width, height, cohort, slide, patient, scanner, .. } =
            &mut self.out.images[image];
        // That of the options is of images without one.
        if stated.cohort.is_some() && *cohort == self.options.cohort {
            *cohort = None;
        }
        for (what, known, stated) in
            [("width", width, stated.width), ("height", height, stated.height)]
        {
            if let Some((first, other)) = known.zip(stated).filter(|(first, other)| first != other)
            {
                return Err(format!(
                    "image `{name}` has a {what} of {first} px in an earlier record and of {other} px here; correct \
                     one of them"
                ));
            }
            *known = known.or(stated);
        }
        for (what, known, stated) in [
            ("slide", slide, stated.slide),
            ("patient", patient, stated.patient),
            ("scanner", scanner, stated.scanner),
            ("cohort", cohort, stated.cohort),
        ] {
            match (known.as_deref(), stated) {
                (Some(first), Some(other)) if bare(first) != bare(&other) => {
                    return Err(format!(
                        "image `{name}` is of the {what} `{first}` in an earlier record and of `{other}` here; \
                         correct one of them"
                    ));
                }
                (None, stated) => *known = stated,
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes columns that are not read.
    pub fn unread_columns(&mut self, unread: Option<Unread>) {
        self.out.unread_columns = unread;
    }

    /// Notes that image sizes in the file are known to be wrong at times.
    pub fn distrust_sizes(&mut self) {
        self.out.sizes_are_hearsay = true;
    }

    pub fn image_entry(&self, number: usize) -> &ImageEntry {
        &self.out.images[number]
    }

    /// What the records of an image state of um/px and in um.
    pub fn units(&mut self, number: usize) -> &mut Units {
        &mut self.out.images[number].units
    }

    /// Leaves a record out by its kind, and counts it.
    pub fn ignore(&mut self, name: impl Into<String>) {
        *self.out.ignored.entry(name.into()).or_default() += 1;
    }

    /// Counts the files of a format in the folders below one, which are not read.
    pub fn ignore_below(&mut self, folder: &Path, extensions: &[&str]) -> Result<(), ImportError> {
        let below = count_below(folder, extensions)?;
        (0..below).for_each(|_| self.ignore("files in folders below"));
        Ok(())
    }

    /// What a name means to the user and to the field, if anything.
    pub fn meaning(&mut self, name: &str) -> Option<Meaning> {
        let mapping = &self.options.mapping;
        *self.meanings.entry(name.to_owned()).or_insert_with(|| mapping.meaning(name))
    }

    /// Whether a word means a figure or what resembles one: the two exclude each other, other classes do not.
    pub fn is_figure(&mut self, word: &str) -> Option<bool> {
        match self.meaning(word)?.class {
            Class::MitoticFigure => Some(true),
            Class::Mimicker => Some(false),
            _ => None,
        }
    }

    /// The first of these words that contradicts another one, and that.
    pub fn opposed<'w>(&mut self, words: &[&'w str]) -> Option<[&'w str; 2]> {
        let known: Vec<(&str, bool)> =
            words.iter().filter_map(|word| Some((*word, self.is_figure(word)?))).collect();
        let (first, is_figure) = *known.first()?;
        known.iter().find(|(_, other)| *other != is_figure).map(|(word, _)| [first, *word])
    }

    /// Notes a category of the file, whether or not a record is of it.
    pub fn category(&mut self, name: &str) {
        self.meaning(name);
    }

    /// The class that is assumed for every record of this file, which states none.
    pub fn assume(&mut self) -> Option<Class> {
        self.assumes = true;
        self.options.assume
    }

    pub fn deleted(&mut self) {
        self.out.deleted += 1;
    }

    /// Notes a record that cannot be used.
    pub fn problem(&mut self, record: impl Into<String>, reason: impl Into<String>) {
        let problem = Problem { record: record.into(), reason: reason.into() };
        self.total += 1;
        if self.options.lenient {
            self.out.skipped.push(problem);
        } else if self.problems.len() < QUOTED {
            self.problems.push(problem);
        }
    }

    /// Takes a record.
    pub fn take(&mut self, raw: Raw) {
        self.raws.push(raw);
    }

    /// Makes an annotation of a record, or notes why not.
    fn settle(&mut self, raw: Raw) {
        let (centre, bbox, clipped) = match self.place(raw.image, raw.place) {
            Ok(p) => p,
            Err(reason) => {
                let record = format!("{}, {}", self.out.images[raw.image].name, raw.record);
                return self.problem(record, reason);
            }
        };
        let (class, category, named) = match raw.category {
            Category::Fixed(class, name) => (class, name, None),
            Category::Named(name) => {
                let Some(m) = self.meaning(&name) else {
                    *self.unknown.entry(name).or_default() += 1;
                    return;
                };
                (m.class, name, m.subtype)
            }
        };
        if class == Class::Ignored {
            return self.ignore(category);
        }
        let side = bbox.map_or(0.0, |[x0, y0, x1, y1]| (x1 - x0).max(y1 - y0));
        if matches!(class, Class::MitoticFigure | Class::Mimicker) && side > LARGEST_OBJECT_PX {
            let name = &self.out.images[raw.image].name;
            let record = format!("{name}, {}", raw.record);
            let reason = format!("`{category}` is {side} px long, larger than any cell: a region?");
            return self.problem(record, reason);
        }
        // Evaluation data of the paper, whatever file it comes from: nobody trains on it by accident.
        let cohort = self.out.images[raw.image].cohort.as_deref().unwrap_or_default();
        let test = cohort.to_uppercase().starts_with("TUPAC").then_some(crops::Split::Test);
        self.out.annotations.push(Annotation {
            image: raw.image,
            record: raw.record,
            class,
            category,
            subtype: raw.subtype.or_else(|| named.map(str::to_owned)),
            centre,
            bbox,
            clipped,
            votes: raw.votes,
            patch: raw.patch,
            split: raw.split.or(test),
        });
    }

    #[expect(clippy::type_complexity, reason = "one private caller")]
    fn place(
        &self,
        image: usize,
        place: Place,
    ) -> Result<(Point<mitosis::Level0>, Option<[f64; 4]>, bool), String> {
        let half = self.options.box_px / 2.0;
        let [x0, y0, x1, y1] = match place {
            Place::Point(x, y) => [x - half, y - half, x + half, y + half],
            Place::Box(b) => b,
        };
        let shown = match place {
            Place::Point(x, y) => format!("point ({x}, {y})"),
            Place::Box(_) => format!("box ({x0}, {y0}, {x1}, {y1})"),
        };
        if ![x0, y0, x1, y1].iter().all(|v| v.is_finite()) {
            return Err(format!("{shown} is not finite"));
        }
        if x1 <= x0 || y1 <= y0 {
            return Err(format!("{shown} is empty"));
        }
        if (x1 - x0).max(y1 - y0) < 1.0 {
            return Err(format!(
                "{shown} is smaller than a pixel, as boxes in parts of an image are"
            ));
        }
        if x1 <= 0.0 || y1 <= 0.0 {
            return Err(format!("{shown} has negative coordinates: it is outside the image"));
        }
        let entry = &self.out.images[image];
        let mut clipped = x0 < 0.0 || y0 < 0.0;
        if let (Some(w), Some(h)) = (entry.width, entry.height) {
            let (w, h) = (f64::from(w), f64::from(h));
            if (x0 >= w || y0 >= h) && !self.out.sizes_are_hearsay {
                return Err(format!("{shown} is outside the image ({w} x {h} px)"));
            }
            clipped |= x1 > w || y1 > h;
        }
        let bbox = matches!(place, Place::Box(_)).then_some([x0, y0, x1, y1]);
        Ok((Point::new((x0 + x1) / 2.0, (y0 + y1) / 2.0), bbox, clipped))
    }

    /// The annotations, unless an error must be reported first.
    pub fn finish(mut self) -> Result<Annotations, ImportError> {
        let is_part = |r: &Raw| r.place.corners().iter().all(|v| (0.0..=1.0).contains(v));
        if self.raws.len() > 1 && self.raws.iter().all(is_part) {
            return Err(broken(&self.file, FRACTIONS));
        }
        let own = |image: &ImageEntry| Some((image.name.clone(), image.units.check_own().err()?));
        let conflicts: Vec<_> = self.out.images.iter().filter_map(own).collect();
        for (image, conflict) in conflicts {
            self.problem(image, conflict.to_string());
        }
        let raws = std::mem::take(&mut self.raws);
        for (outline, raw) in outlines(&raws).into_iter().zip(raws) {
            match outline {
                true => self.ignore(OUTLINE),
                false => self.settle(raw),
            }
        }
        if self.options.assume.is_some() && !self.assumes {
            let states = format!("the format `{}` states", self.out.format);
            return Err(ImportError::Assumed { file: self.file, states });
        }
        if let LabelSource::Annotator(who) = &self.options.labels {
            let people: BTreeSet<&str> = self
                .out
                .annotations
                .iter()
                .flat_map(|a| a.votes.keys().map(String::as_str))
                .collect();
            if !people.contains(who.as_str()) {
                let people = people.into_iter().collect::<Vec<_>>().join(", ");
                let known = if people.is_empty() { "the file names nobody" } else { &people };
                let reason = format!("no labels of `{who}`; the annotators are: {known}");
                return Err(broken(&self.file, reason));
            }
        }
        if !self.unknown.is_empty() {
            let categories = self.unknown.into_iter().collect();
            return Err(ImportError::Categories { file: self.file, categories });
        }
        if !self.problems.is_empty() {
            let (file, problems, total) = (self.file, self.problems, self.total);
            return Err(ImportError::Records { file, problems, total });
        }
        self.out.categories = self.meanings.into_keys().collect();
        Ok(self.out)
    }
}

/// Why places that are all between 0 and 1 are not read.
const FRACTIONS: &str = "every position is between 0 and 1: parts of the image, not pixels; multiply them by \
                         the image's width and height";
/// What an outline without a label is counted as.
const OUTLINE: &str = "(unclassified outline)";
/// Longest side of an unlabelled object that may still be a cell, level-0 px: 64 um at 0.25 um/px.
pub(super) const LARGEST_CELL_PX: f64 = 256.0;

/// Longest side of a labelled cell, level-0 px: 100 um at 0.1 um/px.
const LARGEST_OBJECT_PX: f64 = 1024.0;

/// Which unlabelled shapes are outlines of regions and not cells: those larger than any cell, and those that contain
/// the centre of a smaller, labelled object.
fn outlines(all: &[Raw]) -> Vec<bool> {
    let area = |[x0, y0, x1, y1]: [f64; 4]| (x1 - x0) * (y1 - y0);
    let is_open = |r: &Raw| matches!(r.category, Category::Fixed(Class::Unresolved, _));
    let mut centres: Vec<(usize, [f64; 2], f64)> = all
        .iter()
        .filter(|r| !is_open(r))
        .map(|r| {
            let b = r.place.corners();
            (r.image, [f64::midpoint(b[0], b[2]), f64::midpoint(b[1], b[3])], area(b))
        })
        .collect();
    centres.sort_by(|a, b| a.0.cmp(&b.0).then(a.1[0].total_cmp(&b.1[0])));
    let is_outline = |r: &Raw| {
        let (true, Place::Box(b)) = (is_open(r), r.place) else { return false };
        let [x0, y0, x1, y1] = b;
        let from = centres.partition_point(|c| (c.0, c.1[0]) <= (r.image, x0));
        let mut within = centres[from..].iter().take_while(|c| c.0 == r.image && c.1[0] < x1);
        (x1 - x0).max(y1 - y0) > LARGEST_CELL_PX
            || within.any(|&(_, [_, y], own)| y > y0 && y < y1 && own < area(b))
    };
    all.iter().map(is_outline).collect()
}
