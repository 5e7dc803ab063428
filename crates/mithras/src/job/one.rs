//! One slide: open, find tissue, detect, write.

use super::inputs::Input;
use super::setup::Setup;
use super::state::{InputDigest, StageTime, State, Status};
use crate::export::{self, ExportError, SlideEntry, SlideRecord};
use crate::file::WriteError;
use crate::progress::Listener;
use crate::report::assets;
use crate::subtypes::SubtypeError;
use detect::{
    CancelToken, Checkpoint, DetectError, Job, Observer, Progress, SlideResult, WindowAt,
};
use mitosis::Mm2;
use slide::{OpenOptions, Slide, SlideError, TissueMask, WindowPlan};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// State of an interrupted slide; gone once it is finished.
const CHECKPOINT: &str = "checkpoint.state";
/// The tissue's outline, for QuPath and for the summary.
pub const TISSUE: &str = "tissue.geojson";

/// Why one slide failed.
#[derive(Debug, thiserror::Error)]
pub enum SlideFailure {
    /// It cannot be opened or read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// The file system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Detection ended.
    #[error(transparent)]
    Detect(#[from] DetectError),
    /// The subtypes' network stopped.
    #[error(transparent)]
    Subtypes(#[from] SubtypeError),
    /// A result was not written.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A result was not written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

struct Watch<'a> {
    meter: &'a mut dyn Listener,
    checkpoint: PathBuf,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, p: Progress) {
        self.meter.update(p.windows_done as u64, p.windows_total as u64);
    }

    fn stores(&self) -> bool {
        true
    }

    fn store(&mut self, checkpoint: &Checkpoint) -> Result<(), String> {
        checkpoint.save(&self.checkpoint)
    }
}

/// Opens a slide as this run reads it.
///
/// # Errors
/// [`SlideError`].
pub fn open(input: &Input, setup: &Setup) -> Result<Slide, SlideError> {
    let options = OpenOptions {
        mpp: input.mpp,
        cache_bytes: setup.cache_bytes,
        openslide: setup.openslide.clone(),
        override_mpp: setup.override_mpp,
        ..OpenOptions::default()
    };
    Slide::open_with(&input.path, &options)
}

/// Does one slide into `folder` (made if missing) and leaves its final `state.json` there. A stored
/// state of an interrupted run is taken up; the files are the same bytes either way.
///
/// # Errors
/// [`SlideFailure`]; `state.json` is then the caller's to write.
pub fn detect(
    input: &Input,
    setup: &mut Setup,
    config: &str,
    folder: &Path,
    meter: &mut dyn Listener,
    cancel: &CancelToken,
) -> Result<State, SlideFailure> {
    let start = Instant::now();
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| SlideFailure::Io { path, source }
    };
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    let digest = InputDigest::of(&input.path).map_err(io(&input.path))?;
    let mut state = State::running(config, digest);
    state.save(folder)?;

    let slide = open(input, setup)?;
    let resolution = slide.resolution()?.clone();
    let mask = TissueMask::find_with(&slide, &setup.config.tissue)?;
    let entry = SlideEntry {
        name: input.name.clone(),
        file: input.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        vendor: slide.vendor().to_owned(),
        width: slide.dimensions().0,
        height: slide.dimensions().1,
        bounds_offset: slide.bounds().map_or([0, 0], |b| [b.x, b.y]),
        digest: state.input.sha256.clone(),
    };
    let (model, point) = (setup.config.model.clone(), setup.config.thresholds.clone());
    let result = if mask.is_empty() {
        None
    } else {
        let job = Job {
            windows: windows(&slide, &mask, setup)?,
            tissue: Some(&mask),
            identity: format!("{config} {}", state.input.sha256),
        };
        Some(run(&slide, &job, setup, folder, meter, cancel)?)
    };
    let mut record = match &result {
        None => SlideRecord::blank(entry, resolution, model, point),
        Some(r) => SlideRecord::new(entry, resolution, model, point, Mm2(mask.area_mm2()), r),
    };
    if let Some(network) = &mut setup.subtypes {
        network.fill(&slide, &mut record.rows)?;
        record.subtypes = Some(vec![network.model.clone()]);
    }
    export::write_all(&record, folder)?;
    assets::write(&slide, &mask, &record, &setup.config.recipe, folder)?;
    let seconds = start.elapsed().as_secs_f64();
    if let Some(result) = &result {
        state.resumed_windows = result.resumed_windows;
        state.stages = stage_times(result);
    }
    state.status = if result.is_some() { Status::Finished } else { Status::NoTissue };
    state.seconds = seconds;
    state.save(folder)?;
    remove(&folder.join(CHECKPOINT));
    Ok(state)
}

fn run(
    source: &Slide,
    job: &Job<'_>,
    setup: &mut Setup,
    folder: &Path,
    meter: &mut dyn Listener,
    cancel: &CancelToken,
) -> Result<SlideResult, DetectError> {
    let path = folder.join(CHECKPOINT);
    let stored = Checkpoint::load(&path).unwrap_or_else(|e| {
        meter.note(&format!("{e}; this slide starts anew"));
        None
    });
    let mut attempt = |stored: Option<Checkpoint>, meter: &mut dyn Listener| {
        let mut watch = Watch { meter, checkpoint: path.clone() };
        detect::run(
            source,
            job,
            setup.segmenter.as_mut(),
            setup.classifier.as_deref_mut().map(|c| c as &mut dyn mitosis::Classifier),
            &setup.config.recipe,
            &setup.workers,
            stored,
            &mut watch,
            cancel,
        )
    };
    let resumed = stored.is_some();
    match attempt(stored, meter) {
        Err(DetectError::Checkpoint(reason)) if resumed => {
            meter.note(&format!("{reason}; this slide starts anew"));
            remove(&path);
            attempt(None, meter)
        }
        other => other,
    }
}

fn windows(slide: &Slide, mask: &TissueMask, setup: &Setup) -> Result<Vec<WindowAt>, SlideError> {
    let (grid, mpp) = (setup.config.recipe.grid, setup.config.recipe.mpp);
    let (window, stride) = (grid.window() as usize, grid.stride() as usize);
    let plan = WindowPlan::new(slide, mpp, window, stride, Some(mask))?;
    let stride = stride as i64;
    let at = |v: i64| u32::try_from(v / stride).unwrap_or(u32::MAX);
    Ok(plan.iter().map(|w| WindowAt { row: at(w.y), col: at(w.x) }).collect())
}

fn stage_times(result: &SlideResult) -> Vec<StageTime> {
    let round = |v: f64| (v * 1000.0).round() / 1000.0;
    result
        .stages
        .iter()
        .map(|s| StageTime {
            stage: s.stage.to_owned(),
            items: s.items,
            threads: s.threads,
            busy_seconds: round(s.busy.as_secs_f64()),
            busy_share: round(s.busy_share(result.wall)),
        })
        .collect()
}

/// Removes everything this program writes into a slide's folder, and nothing else.
///
/// # Errors
/// The file that would not go.
pub fn clear(folder: &Path) -> Result<(), SlideFailure> {
    let ours = export::EXPORTS
        .iter()
        .map(|e| e.file)
        .chain(assets::FILES.iter().copied())
        .chain([CHECKPOINT, super::state::FILE]);
    for name in ours {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(SlideFailure::Io { path, source: e });
            }
            _ => {}
        }
    }
    Ok(())
}

fn remove(path: &Path) {
    // A leftover state does no harm: it is checked before it is used.
    let _ = std::fs::remove_file(path);
}
