//! Detection as work on one slide among many.

use super::finished;
use super::run::{Checked, Key, OutFolder, Outcome, Task, run};
use super::state::{self, OWN_SETTING, State, Status, former_version};
use crate::detector::{Detector, ENGINE_SETTING, RunError, Subject};
use crate::export::{self, ExportError, pictures};
use crate::input::Input;
use crate::progress::{Listener, Piece};
use crate::regions::SlideRegionError;
use base::digest::{Digest, Sha256, hex};
use base::remedy::{Remedied, Remedy};
use base::text::Many;
use detect::{CancelToken, Control, SlideResult, StateFile};
use serde::{Deserialize, Serialize};
use slide::SlideError;
use std::path::{Path, PathBuf};

/// A slide's state.
pub type DetectionState = State<Work>;
/// How one slide ended.
pub type DetectionOutcome = Outcome<Work, SlideFailure>;

/// State of an interrupted slide; gone once it is finished.
const CHECKPOINT: &str = "checkpoint.state";
/// The same while it is written; a killed run may leave it.
const CHECKPOINT_PART: &str = "checkpoint.part";

/// Why one slide failed.
#[derive(Debug, thiserror::Error)]
pub enum SlideFailure {
    /// It cannot be opened.
    #[error(transparent)]
    Slide(#[from] SlideError),
    /// Its regions cannot be used.
    #[error(transparent)]
    Regions(#[from] SlideRegionError),
    /// Detection gave no result.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A result was not written.
    #[error(transparent)]
    Export(#[from] ExportError),
}

/// What detection adds to a slide's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Busy time per stage.
    pub stages: Vec<StageTime>,
    /// Windows taken over from an interrupted run.
    pub resumed_windows: usize,
}

/// How long one stage of the pipeline worked on a slide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// `decode`, `segment`, `stitch`, `crop`, `classify`.
    pub stage: String,
    /// Windows or candidates handled.
    pub items: u64,
    /// Threads that the stage had.
    pub threads: usize,
    /// Seconds at work, summed over threads.
    pub busy_seconds: f64,
    /// Share of the wall time at work, 0 to 1.
    pub busy_share: f64,
}

/// Does every slide into `out`, as many at once as there are detectors, which must be alike; a failing slide stops no
/// other. `checked` comes from [`preflight`](super::preflight). Once `cancel` is set, the current slides are
/// interrupted and can be resumed later, and no other is started: [`Outcome::is_stopped`].
///
/// # Panics
/// Without a detector.
pub fn detect(
    inputs: Vec<Input>,
    checked: Vec<Result<(), SlideFailure>>,
    detectors: &mut [Detector],
    out: OutFolder<'_>,
    listener: &mut dyn Listener,
    cancel: &CancelToken,
) -> Vec<DetectionOutcome> {
    let inputs = inputs.into_iter().zip(checked);
    let inputs = inputs.map(|(input, check)| Checked { input, check }).collect();
    let worker = |detector| Detection { detector, cancel: cancel.clone() };
    let mut workers: Vec<_> = detectors.iter_mut().map(worker).collect();
    run(inputs, &mut workers, out.path, out.existing, listener)
}

/// Digest of what changes a number on this slide, and its settings by name.
pub(super) fn key(detector: &Detector, input: &Input) -> Key {
    let mut hash = Sha256::new();
    hash.update(detector.config.digest());
    hash.update(input.mpp.map_or_else(String::new, |m| m.get().to_string()));
    let mut settings = detector.config.settings();
    settings.extend(input.mpp.map(|m| (OWN_SETTING.to_owned(), m.get().to_string())));
    if let Some(regions) = &input.regions {
        let regions = regions.setting();
        hash.update(&regions);
        settings.insert("regions".to_owned(), regions);
    }
    let may_differ = detector.models.accept_engine.then_some(ENGINE_SETTING);
    Key { digest: hex(&hash.finalize()), settings, former: Vec::new(), may_differ }
}

/// A detector at work on one slide after the other.
struct Detection<'a> {
    detector: &'a mut Detector,
    cancel: CancelToken,
}

impl Task for Detection<'_> {
    type Work = Work;
    type Error = SlideFailure;

    fn key(&self, input: &Input) -> Key {
        key(self.detector, input)
    }

    /// The check before the run has refused results of another configuration or file. States of
    /// earlier versions contain no digests: their files are compared with each other.
    fn keeps(&self, _: &Input, folder: &Path, state: &State<Work>) -> bool {
        let shown = [pictures::THUMBNAIL, pictures::FIGURES, pictures::TISSUE];
        let pictured = || shown.iter().all(|name| folder.join(name).is_file());
        state.results.is_some() || finished::results(folder).is_ok() && pictured()
    }

    fn outdated(&self, input: &Input, folder: &Path, state: &State<Work>) -> Option<String> {
        let version = former_version(&state.settings).unwrap_or(1);
        let why = super::former::changes(self.detector, input, folder, version);
        let sentence = |all: Vec<String>| (!all.is_empty()).then(|| all.join("; "));
        why.map_or_else(|e| Some(e.to_string()), sentence)
    }

    fn work(
        &mut self,
        input: &Input,
        folder: &Path,
        state: &mut State<Work>,
        piece: &mut Piece<'_>,
    ) -> Result<Status, SlideFailure> {
        let slide = self.detector.opener.open(input)?;
        let mut store = StateFile(folder.join(CHECKPOINT));
        let control = Control::reporting(piece).stored(&mut store).until(&self.cancel);
        let digest = &state.input.sha256;
        let regions = match &input.regions {
            None => None,
            Some(source) => Some(source.read_slide_regions(&slide, &input.name, digest)?),
        };
        let subject = Subject {
            name: &input.name,
            digest,
            identity: &state.config,
            regions: regions.as_ref(),
        };
        let found = self.detector.examine_within(&slide, subject, control)?;
        pictures::write(&slide, &found.record, &found.tissue, &found.thumbnail, folder)?;
        // A slide of which a read was refused is not finished, whatever part that read was for, and has no results.
        slide.read_failure().map_or(Ok(()), Err)?;
        export::write_all(&found.record, folder)?;
        let Some(result) = &found.result else { return Ok(Status::NoTissue) };
        state.work = Work { stages: stage_times(result), resumed_windows: result.resumed_windows };
        Ok(Status::Finished)
    }

    fn files(&self) -> Vec<&'static str> {
        result_files()
    }

    fn clear(&self, folder: &Path) -> Result<(), (PathBuf, std::io::Error)> {
        clear(folder)
    }

    fn tidy(&self, folder: &Path) {
        // A leftover state does no harm: it is checked before it is used.
        for name in [CHECKPOINT, CHECKPOINT_PART] {
            let _ = std::fs::remove_file(folder.join(name));
        }
    }

    fn stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn unit(&self) -> &'static str {
        "windows"
    }

    fn line(&self, name: &str, state: &State<Work>) -> String {
        match state.status {
            Status::Failed => {
                format!("{name}: FAILED: {}", state.reason.as_deref().unwrap_or("unknown"))
            }
            Status::NoTissue => format!("{name}: no tissue found"),
            _ => {
                let windows = Many(state.work.stages.first().map_or(0, |s| s.items), "window");
                let kept = match state.work.resumed_windows {
                    0 => String::new(),
                    n => format!(", {} kept from an earlier run", Many(n, "window")),
                };
                format!("{name}: {windows}{kept} in {:.1} s", state.seconds)
            }
        }
    }
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

/// Names of the files that make up a slide's results.
pub(crate) fn result_files() -> Vec<&'static str> {
    let exports = export::EXPORTS.iter().map(|e| e.file);
    exports.chain(pictures::FILES.iter().copied()).collect()
}

/// Removes everything that detection writes into a slide's folder, and nothing else.
///
/// # Errors
/// The file that would not go, and why.
pub fn clear(folder: &Path) -> Result<(), (PathBuf, std::io::Error)> {
    for name in result_files().into_iter().chain([CHECKPOINT, CHECKPOINT_PART, state::FILE]) {
        let path = folder.join(name);
        // An empty folder in the place of a file would stop the file from being written.
        match std::fs::remove_file(&path).or_else(|e| std::fs::remove_dir(&path).map_err(|_| e)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err((path, e)),
            _ => {}
        }
    }
    Ok(())
}

impl Remedied for SlideFailure {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Slide(e) => e.remedy(),
            Self::Run(e) => e.remedy(),
            Self::Regions(e) => e.remedy(),
            Self::Export(e) => e.remedy(),
        }
    }
}
