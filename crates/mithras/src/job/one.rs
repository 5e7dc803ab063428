//! One slide: open, find tissue, detect, write.

use super::inputs::Input;
use super::setup::Setup;
use super::state::{StageTime, Stamp, State, Status};
use crate::export::{self, Condition, ExportError, SlideEntry, SlideRecord};
use crate::file::WriteError;
use crate::progress::Listener;
use crate::report::assets;
use crate::subtypes::SubtypeError;
use detect::{
    CancelToken, Checkpoint, DetectError, Job, Observer, Progress, SlideResult, WindowAt,
};
use infer::card::ResolutionCard;
use mitosis::text::{Shown, plain_lines};
use mitosis::{Mm2, Resolution};
use slide::{MppRule, OpenOptions, Slide, SlideError, TissueMask, WindowPlan};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// State of an interrupted slide; gone once it is finished.
const CHECKPOINT: &str = "checkpoint.state";
/// The same while it is written; a killed run may leave it.
const CHECKPOINT_PART: &str = "checkpoint.part";
/// The tissue's outline, for QuPath and for the summary.
pub const TISSUE: &str = "tissue.geojson";

/// Why one slide failed.
#[derive(Debug, thiserror::Error)]
pub enum SlideFailure {
    /// It cannot be opened or read.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// The model is not made for its resolution.
    #[error(
        "{}: {found} um/px lies outside what the model is made for, {min} to {max} um/px: what it \
         finds there means nothing, unless it is forced to",
        Shown(path)
    )]
    Resolution {
        /// The slide.
        path: PathBuf,
        /// Its resolution, um/px.
        found: f64,
        /// The finest of the model's card, um/px.
        min: f64,
        /// The coarsest, um/px.
        max: f64,
    },
    /// The file was written to while it was read.
    #[error(
        "{}: {what} changed while it was read, so the results would be of two files; copy it whole \
         first, then run it again",
        Shown(path)
    )]
    Changed {
        /// The slide.
        path: PathBuf,
        /// What is another than before.
        what: &'static str,
    },
    /// The file system said no.
    #[error("{}: {source}", Shown(path))]
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

/// What decides whether a slide can be used, without the networks.
pub(super) struct Rules {
    force_mpp: bool,
    any_mpp: bool,
    range: Option<ResolutionCard>,
    options: OpenOptions,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        let options = OpenOptions {
            openslide: setup.openslide.clone(),
            limits: setup.limits.clone(),
            ..OpenOptions::default()
        };
        let Setup { force_mpp, any_mpp, config, .. } = setup;
        Self { force_mpp: *force_mpp, any_mpp: *any_mpp, range: config.resolution, options }
    }

    pub(super) fn open(&self, input: &Input) -> Result<Slide, SlideError> {
        let mpp_rule = match (self.force_mpp, input.own_mpp) {
            (true, _) => MppRule::Force,
            (false, true) => MppRule::Agree,
            (false, false) => MppRule::Fill,
        };
        let options = OpenOptions { mpp: input.mpp, mpp_rule, ..self.options.clone() };
        Slide::open_with(&input.path, &options)
    }

    /// The resolution of a slide that the model is made for, and what is to be said of it.
    pub(super) fn fitting(
        &self,
        slide: &Slide,
    ) -> Result<(Resolution, Option<String>), SlideFailure> {
        let resolution = slide.resolution()?.clone();
        let Some(range) = self.range else { return Ok((resolution, None)) };
        let (x, y) = (resolution.x.get(), resolution.y.get());
        let (fine, coarse) = (x.min(y), x.max(y));
        let (min, max) = (range.min.get(), range.max.get());
        if fine < min || coarse > max {
            let found = if coarse > max { coarse } else { fine };
            if !self.any_mpp {
                return Err(SlideFailure::Resolution {
                    path: slide.path().into(),
                    found,
                    min,
                    max,
                });
            }
            let note = format!(
                "{found} um/px lies outside what the model is made for ({min} to {max} um/px): the \
                 counts mean nothing"
            );
            return Ok((resolution, Some(note)));
        }
        let warn = range.warn_above.filter(|w| coarse > w.get()).map(|w| {
            format!(
                "{coarse} um/px is coarser than {} um/px, beyond which the model misses figures",
                w.get()
            )
        });
        Ok((resolution, warn))
    }
}

/// Opens a slide as this run reads it.
///
/// # Errors
/// [`SlideError`].
pub fn open(input: &Input, setup: &Setup) -> Result<Slide, SlideError> {
    Rules::of(setup).open(input)
}

/// What is known of the pixels of the level that windows are read from.
fn condition(
    slide: &Slide,
    setup: &Setup,
    resolution_note: Option<String>,
) -> Result<Condition, SlideError> {
    let level = slide.level_for(setup.config.recipe.mpp)?;
    let suspect: Vec<_> =
        slide.suspect_tiles().into_iter().filter(|(at, _)| at.level == level).collect();
    let reasons: BTreeSet<String> = suspect.iter().map(|(_, why)| why.clone()).collect();
    Ok(Condition {
        absent_mm2: slide.tiles_area(slide.absent_tiles(level))?.0,
        suspect_mm2: slide.tiles_area(suspect.into_iter().map(|(at, _)| at))?.0,
        suspect_reasons: reasons.into_iter().collect(),
        resolution_note,
    })
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
    let before = Stamp::of(&input.path).map_err(io(&input.path))?;
    let mut state = State::running(config, before.digest().clone());
    state.settings = super::settings(setup, input);
    state.save(folder)?;

    let slide = open(input, setup)?;
    let (resolution, note) = Rules::of(setup).fitting(&slide)?;
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
    record.condition = condition(&slide, setup, note)?;
    export::write_all(&record, folder)?;
    assets::write(&slide, &mask, &record, &setup.config.recipe, folder)?;
    let now = Stamp::of(&input.path).map_err(io(&input.path))?;
    if let Some(what) = before.differs(&now) {
        // Nothing of this may stay, the stored state least of all.
        clear(folder)?;
        return Err(SlideFailure::Changed { path: input.path.clone(), what });
    }
    let seconds = start.elapsed().as_secs_f64();
    if let Some(result) = &result {
        state.resumed_windows = result.resumed_windows;
        state.stages = stage_times(result);
    }
    state.status = if result.is_some() { Status::Finished } else { Status::NoTissue };
    state.seconds = seconds;
    state.save(folder)?;
    remove(&folder.join(CHECKPOINT));
    remove(&folder.join(CHECKPOINT_PART));
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
        meter.note(&format!("{}; this slide starts anew", plain_lines(&e.to_string())));
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
            meter.note(&format!("{}; this slide starts anew", plain_lines(&reason)));
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
    let ours = export::EXPORTS.iter().map(|e| e.file).chain(assets::FILES.iter().copied()).chain([
        CHECKPOINT,
        CHECKPOINT_PART,
        super::state::FILE,
    ]);
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
