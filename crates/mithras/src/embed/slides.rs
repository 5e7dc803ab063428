//! Many slides, one file of features each.

use super::report::{EmbedReport, EmbedStatus, Line};
use crate::batch::state::{self, RESULTS_SETTING, RESULTS_VERSION, State, Status};
use crate::batch::{self, Checked, Existing, Key, Outcome, Task};
use crate::input::Input;
use crate::progress::{Listener, Piece};
use base::digest::sha256;
use base::text::Many;
use features::{FeatureError, Form, Frozen, Grid, tiles};
use mitosis::Mpp;
use serde::{Deserialize, Serialize};
use slide::{MppRule, OpenOptions, Slide, SlideError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Folder of the slides' states, below that of their files.
const STATES: &str = ".embed";

/// Which slides, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The slides.
    pub slides: Vec<Input>,
    /// um/px of the tiles; `None` takes the encoder's.
    pub mpp: Option<Mpp>,
    /// Side of a tile, px; `None` takes the encoder's input.
    pub side: Option<usize>,
    /// Tiles read at once.
    pub batch: usize,
    /// What is written for each slide.
    pub form: Form,
    /// Folder of the files.
    pub out: PathBuf,
    /// Whether finished slides are processed again.
    pub overwrite: bool,
}

/// What embedding adds to a slide's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmbedWork {
    /// Tiles.
    pub tiles: u64,
    /// SHA-256 of the file of features.
    pub features: String,
}

struct Embedding<'a> {
    encoder: &'a mut Frozen,
    plan: &'a Plan,
    grid: Grid,
}

/// Embeds the tissue of every slide of `plan` into `out/NAME.h5` (or `.parquet`), whole or not at all.
/// What an earlier run did with this encoder, grid and slide is kept; a failing slide stops no other. A file
/// that no earlier run wrote there is refused. As many slides are worked on at once as there are `encoders`, which
/// are one encoder, opened several times.
///
/// # Errors
/// [`FeatureError`], before any slide is opened.
///
/// # Panics
/// Without an encoder.
pub fn slides(
    encoders: &mut [Frozen],
    plan: &Plan,
    listener: &mut dyn Listener,
) -> Result<EmbedReport, FeatureError> {
    let start = Instant::now();
    let grid = Grid::choose(&encoders[0], plan.mpp, plan.side)?;
    std::fs::create_dir_all(&plan.out)
        .map_err(|source| FeatureError::Io { path: plan.out.clone(), source })?;
    let states = plan.out.join(STATES);
    // The folder may contain features of other runs; they are not ours to replace.
    let ours = |s: &&Input| states.join(&s.name).join(state::FILE).is_file();
    let others = plan.slides.iter().filter(|s| !plan.overwrite && !ours(s));
    if let Some(file) = others.map(|s| plan.file(&s.name)).find(|f| f.exists()) {
        return Err(FeatureError::Others(file));
    }
    mixed(&encoders[0], plan, grid, &states)?;
    let todo = plan.slides.iter().map(|s| Checked { input: s.clone(), check: Ok(()) }).collect();
    let existing = if plan.overwrite { Existing::Overwrite } else { Existing::Resume };
    let worker = |encoder| Embedding { encoder, plan, grid };
    let mut workers: Vec<_> = encoders.iter_mut().map(worker).collect();
    let outcomes = batch::run(todo, &mut workers, &states, existing, listener);
    drop(workers);
    let items = outcomes.iter().map(|o| line(o, plan)).collect();
    let mut report = EmbedReport::new(&encoders[0], &plan.out, items, start.elapsed());
    report.failures = outcomes.into_iter().filter_map(|o| o.failure).collect();
    Ok(report)
}

/// Refuses a folder with features of another encoder, grid or form: those of slides to do unless they
/// shall be replaced, those of other slides in any case.
fn mixed(encoder: &Frozen, plan: &Plan, grid: Grid, states: &Path) -> Result<(), FeatureError> {
    let Ok(entries) = std::fs::read_dir(states) else { return Ok(()) };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort_unstable();
    for slide in names {
        let input = plan.slides.iter().find(|s| s.name == slide);
        if input.is_some() && plan.overwrite {
            continue;
        }
        let state = State::<EmbedWork>::load(&states.join(&slide));
        let Some(state) = state.filter(|s| s.is_done() && !s.settings.is_empty()) else {
            continue;
        };
        let mut before = state::upgraded(&state.settings);
        let mut now = comparable(settings(encoder, plan, grid, input), &before);
        if input.is_none() {
            now.remove(GIVEN);
            before.remove(GIVEN);
        }
        let former = input.is_some() && state::raised(&before).as_ref() == Some(&now);
        if before != now && !former {
            let differs = state::differences(&before, &now);
            let (path, own) = (plan.out.clone(), input.is_some());
            return Err(FeatureError::Mixed { path, slide, differs, own });
        }
    }
    Ok(())
}

/// The um/px that was given for a slide, among the settings.
const GIVEN: &str = "slide_mpp";
/// How images become the encoder's input, among the settings.
const FED: &str = "input";

/// Settings to compare with those of a state. States of earlier versions do not record how images were fed; they are
/// kept if all else is equal: a card is seldom changed under its network, and to embed a study again takes days.
fn comparable(
    mut now: BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    if !before.contains_key(FED) {
        now.remove(FED);
    }
    now
}

/// Everything that changes a number, for a slide.
fn settings(
    encoder: &Frozen,
    plan: &Plan,
    grid: Grid,
    input: Option<&Input>,
) -> BTreeMap<String, String> {
    let Grid { mpp, side } = grid;
    let given = input.and_then(|i| i.mpp).map_or_else(|| "none".into(), |m| m.get().to_string());
    let mut settings = BTreeMap::from([
        ("encoder".to_owned(), encoder.about.sha256.clone()),
        ("mpp".into(), mpp.get().to_string()),
        ("side".into(), side.to_string()),
        ("form".into(), plan.form.suffix().into()),
        (GIVEN.into(), given),
        (FED.into(), encoder.about.input.clone()),
        (RESULTS_SETTING.into(), RESULTS_VERSION.to_string()),
    ]);
    let Frozen { about, fit, by_weights, .. } = encoder;
    if about.bf16 {
        settings.insert("precision".into(), about.precision().into());
    }
    // One file of weights may be several encoders, at several sides; a package is one network.
    if *by_weights || side != fit.input {
        let name = if *by_weights { &*about.encoder } else { "" };
        settings.insert("fed".into(), format!("{name} {fit:?}"));
    }
    settings
}

fn line(outcome: &Outcome<EmbedWork, FeatureError>, plan: &Plan) -> Line {
    let (name, state) = (outcome.input.name.clone(), &outcome.state);
    let took = Duration::try_from_secs_f64(state.seconds).unwrap_or_default();
    let done = Line::done(name.clone(), &plan.file(&name), state.work.tiles, took);
    match (state.status, outcome.kept) {
        (Status::Finished | Status::NoTissue, true) => Line { status: EmbedStatus::Kept, ..done },
        (Status::Finished, false) => done,
        (Status::NoTissue, false) => Line { status: EmbedStatus::NoTissue, ..done },
        _ => Line { name, ..Line::failed(state.reason.clone().unwrap_or_default()) },
    }
}

fn open(input: &Input) -> Result<Slide, SlideError> {
    let mpp_rule = if input.own_mpp { MppRule::Agree } else { MppRule::Fill };
    let options = OpenOptions { mpp: input.mpp, mpp_rule, ..OpenOptions::default() };
    Slide::open_with(&input.path, &options)
}

impl Plan {
    fn file(&self, name: &str) -> PathBuf {
        self.out.join(format!("{name}.{}", self.form.suffix()))
    }
}

impl Task for Embedding<'_> {
    type Work = EmbedWork;
    type Error = FeatureError;

    fn key(&self, input: &Input) -> Key {
        let mut settings = settings(self.encoder, self.plan, self.grid, Some(input));
        let states = self.plan.out.join(STATES).join(&input.name);
        if let Some(before) = State::<EmbedWork>::load(&states).filter(State::is_done) {
            settings = comparable(settings, &before.settings);
        }
        Key { digest: sha256(format!("{settings:?}")), settings, ..Key::default() }
    }

    fn keeps(&self, input: &Input, _: &Path, state: &State<EmbedWork>) -> bool {
        let file = self.plan.file(&input.name);
        let key = self.key(input);
        (key.fits(state) || key.is_former(state))
            && features::package::digest(&file).is_ok_and(|d| d == state.work.features)
    }

    fn outdated(&self, input: &Input, _: &Path, state: &State<EmbedWork>) -> Option<String> {
        slide::outdated(open(input), state::former_version(&state.settings).unwrap_or(1))
    }

    fn work(
        &mut self,
        input: &Input,
        _: &Path,
        state: &mut State<EmbedWork>,
        piece: &mut Piece<'_>,
    ) -> Result<Status, FeatureError> {
        state.settings = settings(self.encoder, self.plan, self.grid, Some(input));
        let file = self.plan.file(&input.name);
        // The existing file is damaged, or of another encoder, grid or slide.
        match std::fs::remove_file(&file) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(FeatureError::Io { path: file, source });
            }
            _ => {}
        }
        let opened = open(input)?;
        let batch = self.plan.batch;
        let table = tiles::embed(self.encoder, &opened, self.grid, batch, piece)?;
        opened.read_failure().map_or(Ok(()), Err)?;
        table.write(&file)?;
        let features = features::package::digest(&file)?;
        state.work = EmbedWork { tiles: table.len() as u64, features };
        Ok(if table.is_empty() { Status::NoTissue } else { Status::Finished })
    }

    fn clear(&self, folder: &Path) -> Result<(), (PathBuf, std::io::Error)> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for path in [folder.join(state::FILE), self.plan.file(&name)] {
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err((path, e)),
                _ => {}
            }
        }
        Ok(())
    }

    fn withdraw(&self, folder: &Path) {
        // Its state has that the slide failed, even where the file stays.
        let _ = self.clear(folder);
    }

    fn unit(&self) -> &'static str {
        "tiles"
    }

    fn line(&self, name: &str, state: &State<EmbedWork>) -> String {
        let (tiles, seconds) = (state.work.tiles, state.seconds);
        match state.status {
            Status::Finished | Status::NoTissue => {
                let per_second = tiles as f64 / seconds.max(1e-9);
                format!("{name}: {}, {per_second:.1}/s", Many(tiles, "tile"))
            }
            _ => format!("{name}: FAILED: {}", state.reason.as_deref().unwrap_or("")),
        }
    }
}
