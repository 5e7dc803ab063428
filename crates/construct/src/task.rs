//! Construction as work on one slide among many.

use super::error::ConstructError;
use super::exclude::Origin;
use super::funnel::{Funnel, Seconds};
use super::preset::Preset;
use super::slide::{self, Source, Worker};
use ::slide::{OpenOptions, Slide};
use base::digest::sha256;
use base::text::Many;
use crops::Corpus;
use mithras::batch::state::{self, RELEASES_OF_VERSION_1, RESULTS_VERSION, State, Status};
use mithras::batch::{Key, Task};
use mithras::input::Input;
use mithras::progress::Piece;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A slide's part of the corpus.
pub(super) const PART: &str = "crops";
/// State of an interrupted detection.
const CHECKPOINTS: [&str; 2] = ["crops.checkpoint", "crops.part"];

/// What construction adds to a slide's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// What came through.
    pub funnel: Funnel,
    /// Seconds per stage.
    pub stage_seconds: Seconds,
}

/// Models at work on one slide after the other.
pub(super) struct Construction<'a> {
    pub(super) worker: Worker,
    pub(super) preset: &'a Preset,
    /// Digest of preset, detector and filter.
    pub(super) config: &'a str,
    /// By slide.
    pub(super) origins: &'a BTreeMap<String, Origin>,
    /// By slide: how many tiles it gives of those that its cohort gives.
    pub(super) shares: &'a BTreeMap<String, usize>,
}

impl Construction<'_> {
    fn origin(&self, input: &Input) -> Origin {
        self.origins.get(&input.name).cloned().unwrap_or_default()
    }
}

impl Task for Construction<'_> {
    type Work = Work;
    type Error = ConstructError;

    fn key(&self, input: &Input) -> Key {
        let (config, origin) = (self.config, self.origin(input));
        // With more slides in its cohort a slide gives fewer.
        let share = self.shares.get(&input.name).map(|s| format!(" {s}")).unwrap_or_default();
        let text =
            |version: &str| sha256(format!("{config} {:?} {origin:?} {version}{share}", input.mpp));
        let releases = RELEASES_OF_VERSION_1.iter().map(|v| (*v).to_owned());
        let former = releases.chain((1..RESULTS_VERSION).map(|v| v.to_string()));
        let former = former.map(|v| text(&v)).collect();
        Key { digest: text(&RESULTS_VERSION.to_string()), former, ..Key::default() }
    }

    /// A slide of this very construction whose part is whole.
    fn keeps(&self, input: &Input, folder: &Path, state: &State<Work>) -> bool {
        let key = self.key(input);
        (key.fits(state) || key.is_former(state))
            && Corpus::open(folder.join(PART)).and_then(|part| part.verify()).is_ok()
    }

    fn outdated(&self, input: &Input, _: &Path, state: &State<Work>) -> Option<String> {
        let options = OpenOptions { mpp: input.mpp, ..OpenOptions::default() };
        let is_last = self.key(input).former.last() == Some(&state.config);
        let version = if is_last { RESULTS_VERSION - 1 } else { 1 };
        ::slide::outdated(Slide::open_with(&input.path, &options), version)
    }

    fn work(
        &mut self,
        input: &Input,
        folder: &Path,
        state: &mut State<Work>,
        _: &mut Piece<'_>,
    ) -> Result<Status, ConstructError> {
        let options = OpenOptions { mpp: input.mpp, ..OpenOptions::default() };
        let opened = Slide::open_with(&input.path, &options)?;
        opened.resolution()?;
        let origin = self.origin(input);
        let share = self.shares.get(&input.name).copied();
        let source = Source { slide: &opened, name: &input.name, origin: &origin, share };
        let identity = format!("{} {}", state.config, state.input.sha256);
        let part = folder.join(PART);
        let (funnel, stage_seconds) = slide::build(
            source,
            self.preset,
            &mut self.worker,
            slide::Part { folder: &part, identity: &identity },
        )?;
        // What a refused read left out is not in the part.
        opened.read_failure().map_or(Ok(()), Err)?;
        state.work = Work { funnel, stage_seconds };
        Ok(Status::Finished)
    }

    fn clear(&self, folder: &Path) -> Result<(), (PathBuf, std::io::Error)> {
        let there = |e: &std::io::Error| e.kind() != std::io::ErrorKind::NotFound;
        let part = folder.join(PART);
        if let Err(e) = std::fs::remove_dir_all(&part)
            && there(&e)
        {
            return Err((part, e));
        }
        for name in CHECKPOINTS.into_iter().chain([state::FILE]) {
            let path = folder.join(name);
            if let Err(e) = std::fs::remove_file(&path)
                && there(&e)
            {
                return Err((path, e));
            }
        }
        Ok(())
    }

    fn unit(&self) -> &'static str {
        "slides"
    }

    fn line(&self, name: &str, state: &State<Work>) -> String {
        let f = &state.work.funnel;
        match state.status {
            Status::Finished | Status::NoTissue => format!(
                "{name}: {}, {}, {}, {}",
                Many(f.tumour_tiles, "tile"),
                Many(f.figures, "figure"),
                Many(f.mimickers, "mimicker"),
                Many(f.patches, "patch")
            ),
            _ => format!("{name}: FAILED: {}", state.reason.as_deref().unwrap_or("")),
        }
    }
}
