//! A run at another operating point, from its own files: all scores are stored, so nothing is detected again.

use super::error::ReportError;
use super::gather::{check_alike, gather};
use super::record::{records, write_record};
use super::run_file::RunFile;
use super::slide_folder::{OWN, counts, run_settings};
use crate::batch::{self, DetectionState, Results, ResultsError, finished_results as results};
use crate::batch::{RECORDS, lists, state::Status, state::alike};
use crate::detector::{Thresholds, settings};
use crate::export::{self, CountsFile, ExportError, pictures, read_detections};
use crate::file::{self, Lock, LockError, MOST_BYTES, ReadError, Unfinished, WriteError};
use crate::input::InputDigest;
use crate::record::{GIVEN_POINT, NamedPoint, OWN_POINT, SlideRecord};
use crate::regions;
use base::digest::{Digest, Sha256, hex};
use base::json::JsonError;
use base::remedy::{Remedied, Remedy};
use base::renamed::json_digest;
use base::sealed::Sealed;
use base::table::TableError;
use base::text::Shown;
use infer::{CardError, ModelPackage, PackageError};
use mitosis::MppError;
use serde_json::Value;
use slide::{MppRule, OpenOptions, Slide};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why a run is not written at another operating point.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum PointError {
    /// A file of the run or the tables over the new one.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A slide's candidates.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A slide's regions.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// An export.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A file.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The new folder.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// No such operating point.
    #[error(transparent)]
    Card(#[from] CardError),
    /// A threshold of the second stage, of a run with one.
    #[error(
        "the run has one stage, whose candidates have no second score; its second threshold is 0, not {0}"
    )]
    SecondThreshold(f32),
    /// The package that names the operating point.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// A file or folder of the run.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The package is another one than the run's.
    #[error(
        "the run was made with other weights, or on another scale of scores, than package `{package}` has; its operating points do not hold for the run"
    )]
    OtherWeights { package: String },
    /// Results are there already.
    #[error("{}: already holds results; choose an empty folder", Shown(path))]
    Exists {
        /// Folder for the results.
        path: PathBuf,
    },
    /// Candidates without known subtypes would become figures.
    #[error(
        "slide `{slide}`: {figures} candidates become figures whose subtypes are not known; detect again at this operating point if you have the slide"
    )]
    Subtypes {
        /// Name of the slide.
        slide: String,
        figures: usize,
    },
    /// A slide's resolution.
    #[error("slide `{slide}`: {source}")]
    Resolution {
        /// Name of the slide.
        slide: String,
        /// What is wrong with it.
        source: MppError,
    },
    /// The slide is needed for the pictures of its figures, and is not there.
    #[error(
        "slide `{slide}`: its file is not at {} or has changed, but the pictures of its figures are cut from it; name the folder of the slides",
        Shown(path)
    )]
    Slide {
        /// Name of the slide.
        slide: String,
        /// Where it was looked for.
        path: PathBuf,
    },
}

/// What is written, and from what.
pub struct AtPoint<'a> {
    /// The folder of the run.
    pub run: &'a Path,
    /// The folder to write.
    pub into: &'a Path,
    /// The operating point.
    pub thresholds: &'a Thresholds,
    /// The run's package, where it is not a bundled one; it names operating points.
    pub package: Option<&'a Path>,
    /// Where the slides are now, if not where the run read them.
    pub slides: Option<&'a Path>,
    /// The command line to note.
    pub command: &'a [String],
}

/// Writes a finished run at another operating point into a folder of its own: every file is what detection at that
/// point would write.
///
/// # Errors
/// [`PointError`].
pub fn at_point(of: &AtPoint<'_>) -> Result<RunFile, PointError> {
    let folders = slide_folders(of.run)?;
    let done = folders.iter().find(|(_, s)| s.is_done());
    let (first, _) = done.ok_or_else(|| ReportError::Nothing { outs: vec![of.run.to_owned()] })?;
    let point = chosen(of, &counts(first)?)?;
    {
        let _alone = Lock::take(of.into)?;
        let holds = |file: &str| of.into.join(file).exists();
        if !slide_folders(of.into)?.is_empty() || [RECORDS, "counts.csv"].into_iter().any(holds) {
            return Err(PointError::Exists { path: of.into.to_owned() });
        }
        // All slides appear at once: whatever ends this before leaves no run that looks complete, and can be repeated.
        let unfinished = Unfinished::new(of.into)?;
        let whole = unfinished.path().join("run");
        write(&AtPoint { into: &whole, ..*of }, &folders, &point)?;
        let mut made = base::walk::entries(&whole)?;
        // The records come first: they name what is missing if the system fails now.
        made.sort_by_key(|path| !path.ends_with(RECORDS));
        for from in made {
            let path = of.into.join(from.file_name().unwrap_or_default());
            std::fs::rename(&from, &path).map_err(|source| WriteError { path, source })?;
        }
    }
    Ok(gather(&[of.into.to_owned()], None)?)
}

fn write(
    of: &AtPoint<'_>,
    folders: &[(PathBuf, DetectionState)],
    point: &NamedPoint,
) -> Result<(), PointError> {
    let mut configs = Vec::new();
    for mut record in records(of.run)? {
        let before = record.settings();
        moved(&mut record.config, point);
        record.config_sha256 = json_digest(&record.config);
        record.command = of.command.to_vec();
        write_record(of.into, &record)?;
        configs.push(MovedConfig { before, after: record.config });
    }
    for (from, list) in lists(&[of.run.to_owned()]).map_err(ReportError::List)? {
        let name = from.file_name().unwrap_or_default();
        base::json::write(&of.into.join(RECORDS).join(name), &list)?;
    }
    for (folder, state) in folders {
        slide(of, folder, state, point)?;
        let into = of.into.join(folder.file_name().unwrap_or_default());
        let mut moved = moved_state(state, &configs, point);
        if moved.status != Status::Running {
            let slide = into.file_name().unwrap_or_default().to_string_lossy().into_owned();
            moved.results = Some(Sealed::new(&into, &slide, &batch::result_files())?);
        }
        moved.save(&into)?;
    }
    Ok(())
}

/// The slides' folders of a run with their states, by name.
fn slide_folders(run: &Path) -> Result<Vec<(PathBuf, DetectionState)>, PointError> {
    let mut all = Vec::new();
    for folder in base::walk::entries(run)? {
        let state = DetectionState::read(&folder)
            .map_err(|e| ReportError::from(ResultsError::with_state(&folder, &e)))?;
        all.extend(state.map(|state| (folder, state)));
    }
    let folders: Vec<PathBuf> = all.iter().map(|(folder, _)| folder.clone()).collect();
    check_alike(run, &folders)?;
    Ok(all)
}

/// The pair with its name, as detection would note it.
fn chosen(of: &AtPoint<'_>, counts: &CountsFile) -> Result<NamedPoint, PointError> {
    let package = || {
        let package = match of.package {
            Some(_) => ModelPackage::find(of.package)?,
            None => ModelPackage::bundled_named(&counts.model.name)?,
        };
        if !counts.model.matches_card(&package.card) {
            return Err(PointError::OtherWeights { package: package.card.name.clone() });
        }
        Ok(package)
    };
    let (name, point) = match of.thresholds {
        Thresholds::Given(p) if counts.model.classifier_sha256.is_none() && p.cls.get() > 0.0 => {
            return Err(PointError::SecondThreshold(p.cls.get()));
        }
        Thresholds::Given(point) => (GIVEN_POINT.to_owned(), point.clone()),
        Thresholds::Named(name) => (name.clone(), package()?.card.point(name)?),
        Thresholds::Package => {
            let package = package()?;
            let own = package.card.detector()?.operating_point.clone();
            let same = package
                .card
                .operating_points
                .iter()
                .find(|(_, p)| (p.seg, p.cls) == (own.seg, own.cls));
            (same.map_or(OWN_POINT, |(name, _)| name.as_str()).to_owned(), own)
        }
    };
    Ok(NamedPoint { name, point })
}

/// Puts the pair into a configuration that was written down.
fn moved(config: &mut Value, NamedPoint { name, point }: &NamedPoint) {
    // By way of its text, so that thresholds, which are f32, keep the digits that they are written in.
    let text = serde_json::to_vec(point).expect("plain data becomes JSON");
    let Some(config) = config.as_object_mut() else { return };
    let point = serde_json::from_slice(&text).expect("JSON as it was just written");
    config.insert("thresholds".into(), point);
    config.insert("operating_point".into(), name.clone().into());
}

fn slide(
    of: &AtPoint<'_>,
    folder: &Path,
    state: &DetectionState,
    point: &NamedPoint,
) -> Result<(), PointError> {
    let slide = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let into = of.into.join(&slide);
    std::fs::create_dir_all(&into).map_err(|source| WriteError { path: into.clone(), source })?;
    if state.is_done() {
        let record = record(folder, &slide)?.at(point.clone());
        if let Some(models) = &record.subtypes {
            let lacking = record.figures().filter(|r| r.subtypes.is_none()).count();
            let known = counts(folder)?.subtypes.map_or(0, |s| s.unclassified);
            if !models.is_empty() && lacking > known {
                return Err(PointError::Subtypes { slide, figures: lacking - known });
            }
        }
        export::write_all(&record, &into)?;
        for file in [pictures::TISSUE, pictures::FLAWS, pictures::THUMBNAIL, regions::FILE] {
            let from = folder.join(file);
            if from.is_file() {
                file::write(&into.join(file), &file::read(&from, MOST_BYTES)?)?;
            }
        }
        figures(of, folder, state, &record, &slide, &into)?;
    }
    Ok(())
}

/// A slide's record, read back from its folder.
///
/// # Errors
/// [`PointError`].
pub(crate) fn record(folder: &Path, slide: &str) -> Result<SlideRecord, PointError> {
    let Results { counts, rows } = results(folder).map_err(ReportError::from)?;
    let searched = counts.regions.as_ref().map(|r| r.searched(folder, counts.slide.bounds_offset));
    export::restored(&counts, rows, searched.transpose()?)
        .map_err(|source| PointError::Resolution { slide: slide.to_owned(), source })
}

/// A configuration of the run at another point.
struct MovedConfig {
    /// Its settings as they were.
    before: BTreeMap<String, String>,
    after: Value,
}

/// The state that detection at the point would have left, but for its times.
fn moved_state(
    state: &DetectionState,
    configs: &[MovedConfig],
    point: &NamedPoint,
) -> DetectionState {
    let mut state = state.clone();
    let value = |k: &&str| Some(((*k).to_owned(), state.settings.get(*k)?.clone()));
    let own: Vec<(String, String)> = OWN.iter().filter_map(value).collect();
    let run = run_settings(&state);
    let mut hash = Sha256::new();
    if let Some(moved) = configs.iter().find(|c| alike(&c.before, &run)) {
        hash.update(json_digest(&moved.after));
        state.settings = settings(&moved.after);
    } else {
        let mut config = Value::Object(serde_json::Map::new());
        moved(&mut config, point);
        hash.update(json_digest(&config));
        state.settings.extend(settings(&config));
    }
    own.iter().for_each(|(_, value)| hash.update(value));
    state.settings.extend(own);
    state.config = hex(&hash.finalize());
    state
}

/// The pictures of the figures: those of the run where they are the same, else cut from the slide.
fn figures(
    of: &AtPoint<'_>,
    folder: &Path,
    state: &DetectionState,
    record: &SlideRecord,
    slide: &str,
    into: &Path,
) -> Result<(), PointError> {
    let before = read_detections(&folder.join("detections.csv"))?;
    let places = |rows: &[crate::record::DetectionRow]| -> Vec<(u64, u64)> {
        pictures::top(rows).iter().map(|r| (r.x_px.to_bits(), r.y_px.to_bits())).collect()
    };
    let from = folder.join(pictures::FIGURES);
    if places(&before) == places(&record.rows) && from.is_file() {
        return Ok(file::write(&into.join(pictures::FIGURES), &file::read(&from, MOST_BYTES)?)?);
    }
    let recorded = PathBuf::from(&state.input.path);
    let path = of.slides.map_or_else(|| recorded.clone(), |d| d.join(&record.slide.file));
    let lost = || PointError::Slide { slide: slide.to_owned(), path: path.clone() };
    let digest = InputDigest::from_file(&path).map_err(|_| lost())?;
    if digest.sha256 != record.slide.digest || !digest.same_slide(&state.input) {
        return Err(lost());
    }
    let r = &record.resolution;
    let own = Slide::open(&path).map_err(ExportError::from)?;
    let same = own.resolution().is_ok_and(|o| (o.x, o.y) == (r.x, r.y));
    let opened = if same {
        own
    } else {
        // Given to the run, where the file states none or another one.
        let given = OpenOptions { mpp: Some(r.x), ..OpenOptions::default() };
        let options = OpenOptions { mpp_rule: MppRule::Force, ..given };
        Slide::open_with(&path, &options).map_err(ExportError::from)?
    };
    Ok(pictures::write_figures(&opened, record, into)?)
}

impl Remedied for PointError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Report(e) => e.remedy(),
            Self::Export(e) => e.remedy(),
            Self::Card(e) => e.remedy(),
            Self::OtherWeights { .. } => Some(Remedy::PackageOrThresholds),
            Self::Slide { .. } => Some(Remedy::SlideFolder),
            _ => None,
        }
    }
}
