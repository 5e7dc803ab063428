//! The candidates of a run with what a reviewer decided about each.

use super::decisions::SlideFile;
use super::open::{OpenError, counted_folders};
use super::places::Nearby;
use super::qupath::is_objects;
use super::review::{Entry, ReviewError, Verdict, VerdictLog};
use super::reviews::Reviews;
use base::remedy::{Remedied, Remedy};
use base::text::Many;
use mithras::export::CountsFile;
use mithras::record::DetectionRow;
use mithras::report::{Results, ResultsError, results};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Why no judged candidates can be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum JudgedError {
    /// The run's folder.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log.
    #[error(transparent)]
    Review(#[from] ReviewError),
    /// A slide's results.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// Objects of QuPath.
    #[error(
        "{}: corrected objects name what was wrong and not what was judged right; review the run in `mithras view`",
        path.display()
    )]
    Objects {
        /// The file or folder.
        path: PathBuf,
    },
    /// Several reviewers, and none was named.
    #[error("{}: reviewed by {}; name one of them", path.display(), names.join(", "))]
    Reviewers {
        /// Folder of the logs.
        path: PathBuf,
        names: Vec<String>,
    },
    /// Nobody judged a candidate of this run.
    #[error("{}: no candidate of this run was judged; review it in `mithras view` first", path.display())]
    Nothing {
        /// Folder of the run.
        path: PathBuf,
    },
}

/// A run with the verdicts of one reviewer.
#[derive(Clone, Debug)]
pub struct JudgedRun {
    /// Its slides with results.
    pub slides: Vec<JudgedSlide>,
    /// What is to be known of the verdicts, and the slides that are left out with the reason.
    pub notes: Vec<String>,
}

/// A candidate of a run.
#[derive(Clone, Debug)]
pub struct JudgedCandidate {
    /// Its row in the table of detections.
    pub row: DetectionRow,
    /// Whether it is a figure, where the reviewer decided that.
    pub figure: Option<bool>,
}

/// A slide of a run.
#[derive(Clone, Debug)]
pub struct JudgedSlide {
    /// Name of its folder.
    pub name: String,
    /// As the run wrote them.
    pub counts: CountsFile,
    /// Every candidate.
    pub candidates: Vec<JudgedCandidate>,
}

/// Every slide of a run with the verdicts of one reviewer: a name in `RUN/reviews`, a log, or none where there is
/// one log alone. Verdicts about another file of the same name are left out. A figure that a reviewer added is a
/// verdict on the nearest candidate within 7.5 um; elsewhere it is not a candidate. Slides that failed or are not
/// finished are left out, and named.
///
/// # Errors
/// [`JudgedError`].
pub fn judged_slides(run: &Path, reviewer: Option<&str>) -> Result<JudgedRun, JudgedError> {
    let (folders, without) = counted_folders(run)?;
    if folders.iter().any(|f| f == run) {
        return Err(OpenError::NoRun { path: run.to_owned() }.into());
    }
    let logs = run.join("reviews");
    let own = |name: &str| VerdictLog::path(&logs, name);
    let log = match reviewer {
        // A reviewer goes before a file or folder of that name.
        Some(name) if own(name).is_ok_and(|log| log.is_file()) => own(name)?,
        Some(name) if Path::new(name).exists() => PathBuf::from(name),
        Some(name) => own(name)?,
        None => {
            let names: Vec<String> = VerdictLog::read_all(&logs)?.into_keys().collect();
            match names.as_slice() {
                [] => return Err(JudgedError::Nothing { path: run.to_owned() }),
                [one] => own(one)?,
                _ => return Err(JudgedError::Reviewers { path: logs, names }),
            }
        }
    };
    if is_objects(&log) {
        return Err(JudgedError::Objects { path: log });
    }
    let reviews = Reviews::single("", VerdictLog::read(&log)?);
    let left_out = without.iter().filter_map(|f| results(f).err());
    let mut notes: Vec<String> = left_out.map(|e| format!("left out: {e}")).collect();
    let mut slides = Vec::new();
    for folder in &folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Results { counts, rows } = results(folder)?;
        let slide = SlideFile { name: &name, digest: &counts.slide.digest };
        let on_slide =
            reviews.slide_reviews(slide, Some(&Nearby::candidates(&counts, &rows)), |_| true);
        let verdicts = on_slide.verdicts();
        let key = |r: &DetectionRow| Entry::place_key(r.x_px, r.y_px);
        let keys: BTreeSet<String> = rows.iter().map(key).collect();
        notes.extend(on_slide.notes());
        let (others, gone) = reviews.left_out(slide, |e| e.added || keys.contains(&e.key));
        for (n, what) in
            [(others, "another file of this name"), (gone, "candidates that this run lacks")]
        {
            notes.extend(
                (n > 0).then(|| format!("{name}: {} about {what}, left out", Many(n, "verdict"))),
            );
        }
        notes.extend(reviews.model_note(slide, &counts.model, |k| keys.contains(k)));
        let verdict = |r: &DetectionRow| verdicts.get(&key(r))?.verdict.and_then(Verdict::counts);
        let candidates =
            rows.into_iter().map(|row| JudgedCandidate { figure: verdict(&row), row }).collect();
        slides.push(JudgedSlide { name, counts, candidates });
    }
    if slides.iter().all(|s| s.candidates.iter().all(|c| c.figure.is_none())) {
        return Err(JudgedError::Nothing { path: run.to_owned() });
    }
    Ok(JudgedRun { slides, notes })
}

impl Remedied for JudgedError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Open(e) => e.remedy(),
            _ => None,
        }
    }
}
