//! A run as a folder for QuPath, and what was corrected there, read back.

use super::open::{OpenError, check_free, every_folder};
use super::places::Nearby;
use super::review::{Entry, SlideKey, SlideVerdicts, Verdict};
use base::file::{self, WriteError};
use base::json::JsonError;
use base::remedy::{Remedied, Remedy};
use base::table::TableError;
use base::text::{Many, Shown};
use mithras::export::qupath::{candidate_id, features};
use mithras::export::{CountsFile, ExportError};
use mithras::record::DetectionRow;
use mithras::regions::outlines;
use mithras::report::{ReportError, results};
use mitosis::matching::PAPER_RADIUS;
use regions::annotations::{
    Annotation, Class, ImportError, ImportOptions, Mapping, NOT_A_LABEL, Problem, importer,
};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

/// Folder of what was corrected in QuPath, in that of an export.
const CORRECTED: &str = "corrected";
/// Scripts that are written next to the slides; `@FOLDER@` is replaced by the folder of the files.
const SCRIPTS: [(&str, &str, &str); 2] = [
    ("import.groovy", ".", include_str!("import.groovy")),
    ("export.groovy", CORRECTED, include_str!("export.groovy")),
];

/// Classes of QuPath in addition to those that candidates are written with: areas of a new project, and what is plainly
/// not a figure.
const CLASSES: [&str; 16] = [
    "Apoptosis=mimicker",
    "Apoptotic=mimicker",
    "Apoptotic body=mimicker",
    "Apoptotic bodies=mimicker",
    "Apoptotic cell=mimicker",
    "Pyknosis=mimicker",
    "Pyknotic=mimicker",
    "Pyknotic cell=mimicker",
    "Pyknotic nucleus=mimicker",
    "Artifact=mimicker",
    "Region=ignore",
    "Tumor=ignore",
    "Stroma=ignore",
    "Immune cells=ignore",
    "Necrosis=ignore",
    "Ignore*=ignore",
];
/// Classes of objects that nobody decided about, lower case.
const UNSURE: [&str; 4] = ["unsure", "uncertain", "undecided", "unclear"];

/// Why a run is not written for QuPath, or not read back.
#[derive(Debug, thiserror::Error)]
pub enum QupathError {
    /// The run's folder.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A slide's count.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A slide's candidates.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A slide's regions.
    #[error(transparent)]
    Regions(#[from] JsonError),
    /// A file that cannot be made.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The disk.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The folder cannot be made or read.
    #[error("{}: {source}", Shown(path))]
    Folder {
        /// Folder for the project.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

/// Why objects of QuPath are not read back.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// Objects that cannot be read.
    #[error(transparent)]
    Import(ImportError),
    /// Classes without a meaning here.
    #[error(
        "{}: unknown classes {}; in QuPath, rename each to one of `Mitotic figure`, `Mitotic figure: Atypical`, \
         `Non-mitotic figure`, `Unsure` or `Ignore*`, and export again", Shown(file),
        classes.iter().map(|(n, c)| format!("`{n}` ({})", Many(*c, "object"))).collect::<Vec<_>>().join(", ")
    )]
    Classes {
        /// The file, or the folder.
        file: PathBuf,
        /// Their names, and how many objects have each.
        classes: Vec<(String, u64)>,
    },
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Project {
    /// Folder of the project.
    #[serde(serialize_with = "base::json::lossy")]
    pub folder: PathBuf,
    /// Slides with a file, by name, and their candidates.
    pub slides: BTreeMap<String, usize>,
    /// Slides whose results cannot be used, by name, with the reason. They have no file.
    pub failed: BTreeMap<String, String>,
}

/// Writes a run for QuPath: `NAME.geojson` per slide as it is in the run's folder, `import.groovy` that
/// puts all of them into a project, and `export.groovy` that writes them to the folder `corrected`.
///
/// # Errors
/// [`QupathError`].
pub fn write_project(run: &Path, out: &Path) -> Result<Project, QupathError> {
    let folders = every_folder(run)?;
    check_free(out)?;
    check_free(&out.join(CORRECTED))?;
    let io = |source| QupathError::Folder { path: out.to_owned(), source };
    std::fs::create_dir_all(out).map_err(io)?;
    let (mut slides, mut failed) = (BTreeMap::new(), BTreeMap::new());
    for folder in &folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match results(folder) {
            Ok(found) => {
                let regions = outlines(folder, found.counts.slide.bounds_offset)?;
                let features = features(&found.counts, &found.rows, &regions)?;
                file::write(&out.join(format!("{}.geojson", file_name(&name))), &features)?;
                slides.insert(name, found.rows.len());
            }
            Err(e) => drop(failed.insert(name, e.to_string())),
        }
    }
    let root = out.canonicalize().map_err(io)?;
    for (name, at, script) in SCRIPTS {
        let at = if at == "." { root.clone() } else { root.join(at) };
        let quoted = at.to_string_lossy().replace('\\', "\\\\").replace('\'', "\\'");
        file::write(&out.join(name), script.replace("@FOLDER@", &quoted).as_bytes())?;
    }
    Ok(Project { folder: out.to_owned(), slides, failed })
}

/// The name of a slide's file without its suffix. A file `qupath.geojson` is the run's own, read as that of the slide
/// whose folder it is in.
fn file_name(slide: &str) -> String {
    if slide == "qupath" { format!("{slide}_") } else { slide.to_owned() }
}

impl fmt::Display for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let candidates: usize = self.slides.values().sum();
        let (slides, found) = (Many(self.slides.len(), "slide"), Many(candidates, "candidate"));
        writeln!(f, "{slides}, {found}")?;
        writeln!(f, "{}: import.groovy reads them in a QuPath project", Shown(&self.folder))
    }
}

/// Whether a file or folder holds objects of QuPath rather than a log of verdicts.
pub(super) fn is_objects(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.trim_end_matches(".gz");
    path.is_dir() || name.ends_with(".geojson") || name.ends_with(".json")
}

/// Objects of slides, by the slides' names.
pub(super) struct Objects {
    of: BTreeMap<String, Vec<Annotation>>,
    /// Records that cannot be used, each with its reason.
    skipped: Vec<Problem>,
}

impl Objects {
    /// Reads a file or a folder of them.
    pub(super) fn read(path: &Path) -> Result<Self, ObjectError> {
        let importer = importer("geojson").expect("a known format");
        let unsure = UNSURE.map(|name| format!("{name}=other"));
        let classes = CLASSES.iter().map(|c| (*c).to_owned()).chain(unsure);
        let mapping = Mapping::parse(classes).expect("pairs");
        // A candidate left of or above the bounds has a place that no image has: it is left as it was.
        let options = ImportOptions {
            mapping,
            lenient: true,
            own_detections: true,
            ..ImportOptions::default()
        };
        let all = (importer.read)(path, &options).map_err(|e| match e {
            ImportError::Categories { file, categories } => {
                ObjectError::Classes { file, classes: categories }
            }
            e => ObjectError::Import(e),
        })?;
        let mut of: BTreeMap<String, Vec<Annotation>> =
            all.images.iter().map(|i| (i.name.clone(), Vec::new())).collect();
        for a in all.annotations {
            of.entry(all.images[a.image].name.clone()).or_default().push(a);
        }
        Ok(Self { of, skipped: all.skipped })
    }

    /// The slides that there are objects of.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.of.keys().map(|name| if *name == file_name("qupath") { "qupath" } else { name })
    }

    /// The verdicts on a slide: where its objects differ from what was written for it. None for a slide
    /// without a file. The notes list what was left out.
    pub(super) fn verdicts(
        &self,
        slide: &str,
        counts: &CountsFile,
        rows: &[DetectionRow],
    ) -> Option<(SlideVerdicts, Vec<String>)> {
        let names = [slide, &file_name(slide), &counts.slide.file];
        let name = names.into_iter().find(|n| self.of.contains_key(*n))?;
        let objects = &self.of[name];
        let mut verdicts: Vec<Option<Verdict>> = vec![None; rows.len()];
        let mut there = vec![false; rows.len()];
        let mut added = Vec::new();
        let ids: HashMap<String, usize> = rows
            .iter()
            .enumerate()
            .map(|(i, r)| (format!("feature {}", candidate_id(&counts.slide.digest, r)), i))
            .collect();
        let candidates = Nearby::candidates(counts, rows);
        let mut unclassified = 0;
        for object in objects {
            let Some(verdict) = verdict(object) else { continue };
            let at = place(counts, object);
            let near = |i: &usize| candidates.distance(*i, at) <= PAPER_RADIUS.0;
            let known = ids.get(&object.record).copied().filter(near);
            let Some(i) = known.or_else(|| candidates.nearest(at)) else {
                unclassified += usize::from(object.class == Class::Unresolved);
                if verdict.counts() == Some(true) {
                    added.push(entry(at, true, verdict));
                }
                continue;
            };
            there[i] = true;
            // Of two objects at a candidate, the one with a new verdict.
            if verdict != Verdict::Unsure && verdict == unchanged(&rows[i]) {
                continue;
            }
            verdicts[i] = Some(verdict);
        }
        let found = there.iter().filter(|t| **t).count();
        let accepted = rows.iter().filter(|r| r.accepted).count();
        let mut notes = Vec::new();
        if found == 0 && accepted > 0 {
            let what = "no object is at a candidate of this slide: are they of another one?";
            notes.push(what.to_owned());
        }
        if unclassified > 0 {
            let what = "without a class at no candidate, left out: if they are figures, give them a class in QuPath";
            notes.push(format!("{} {what}", Many(unclassified, "object")));
        }
        notes.extend(self.left_out(name));
        let gone = |i: usize| {
            let lost = rows[i].accepted && !there[i] && !is_before_bounds(counts, &rows[i]);
            lost.then_some(Verdict::Removed)
        };
        let changed = (0..rows.len()).filter_map(|i| {
            let verdict = verdicts[i].or_else(|| gone(i))?;
            Some(entry([rows[i].x_px, rows[i].y_px], false, verdict))
        });
        Some((SlideVerdicts::from_entries(changed.chain(added)), notes))
    }
}

impl Objects {
    /// Notes on objects of a slide that do not count.
    fn left_out(&self, name: &str) -> Vec<String> {
        let of_slide = |p: &&Problem| {
            p.record.strip_prefix(name).is_some_and(|record| record.starts_with(','))
        };
        let (found, unplaced): (Vec<_>, Vec<_>) =
            self.skipped.iter().filter(of_slide).partition(|p| p.reason == NOT_A_LABEL);
        let mut notes = Vec::new();
        if !unplaced.is_empty() {
            notes.push(format!("{} objects cannot be placed and do not count", unplaced.len()));
        }
        if !found.is_empty() {
            let what = "of another program left out: if a person has reviewed them, make them annotations in QuPath";
            notes.push(format!("{} {what}", Many(found.len(), "detection")));
        }
        notes
    }
}

/// What a candidate is written as.
fn unchanged(row: &DetectionRow) -> Verdict {
    if row.accepted { Verdict::Figure } else { Verdict::Mimicker }
}

fn verdict(object: &Annotation) -> Option<Verdict> {
    let atypical = object.subtype.as_deref() == Some("atypical");
    match object.class {
        Class::Other if UNSURE.contains(&object.category.trim().to_lowercase().as_str()) => {
            Some(Verdict::Unsure)
        }
        Class::MitoticFigure if atypical => Some(Verdict::Atypical),
        Class::MitoticFigure => Some(Verdict::Figure),
        Class::Mimicker | Class::Other => Some(Verdict::Mimicker),
        Class::Unresolved => Some(Verdict::Unsure),
        Class::Ignored => None,
    }
}

/// Level-0 px of an object, which QuPath counts from the slide's bounds.
fn place(counts: &CountsFile, object: &Annotation) -> [f64; 2] {
    let offset = counts.slide.bounds_offset.map(|o| o as f64);
    let round = |v: f64| (v * 100.0).round() / 100.0;
    [round(object.centre.x + offset[0]), round(object.centre.y + offset[1])]
}

/// Whether a candidate, as it is written, has no corner in QuPath's frame.
fn is_before_bounds(counts: &CountsFile, row: &DetectionRow) -> bool {
    let [x0, y0] = counts.slide.bounds_offset.map(|o| o as f64);
    let end = |v: f64, mpp: f64| v + PAPER_RADIUS.0 / mpp;
    end(row.x_px - x0, counts.resolution.x) <= 0.0 || end(row.y_px - y0, counts.resolution.y) <= 0.0
}

fn entry([x, y]: [f64; 2], added: bool, verdict: Verdict) -> Entry {
    let plus = if added { "+" } else { "" };
    let key = format!("{plus}{}", Entry::place_key(x, y));
    Entry { key, x, y, verdict: Some(verdict), added, morphology: None, comment: None }
}

/// The key of a slide as the run has it; without a model, because objects name none.
pub(super) fn slide_key(slide: &str, counts: &CountsFile) -> SlideKey {
    SlideKey {
        slide: slide.to_owned(),
        slide_digest: counts.slide.digest.clone(),
        model_digest: String::new(),
    }
}

impl Remedied for QupathError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Open(e) => e.remedy(),
            Self::Report(e) => e.remedy(),
            Self::Export(e) => e.remedy(),
            _ => None,
        }
    }
}

impl Remedied for ObjectError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Import(e) => e.remedy(),
            Self::Classes { .. } => None,
        }
    }
}
