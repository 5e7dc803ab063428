//! Candidates of the first stage, kept for runs with another second stage.

use crate::candidates::Region;
use crate::checkpoint::{Scored, signed, verified};
use crate::error::StoreError;
use crate::flaw::{FLAW_LIMITS, FlawedWindow};
use crate::grid::WindowAt;
use crate::recipe::Recipe;
use crate::source::{TileSource, WorkingFrame};
use base::digest::sha256;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Changes with the form of the file, and with what the first stage gives.
const VERSION: u32 = 1;

/// Where the candidates of the first stage are kept: a file for each slide and first stage, which runs with another
/// second stage begin with. It is used for the same windows, resolution, candidate rule and identity alone, and written
/// only where every window was read and no tile is in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCandidates {
    /// The folder; made if missing.
    pub folder: PathBuf,
    /// Names all that the first stage depends on and a recipe does not contain: slide, weights, engine and its
    /// arithmetic.
    pub identity: String,
}

/// What the first stage gave on a whole slide.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FirstStage {
    version: u32,
    key: String,
    /// In reading order.
    pub(crate) regions: Vec<Region>,
    pub(crate) flawed: Vec<FlawedWindow>,
}

/// The file of one slide and first stage.
pub(crate) struct FirstStageFile {
    key: String,
    path: PathBuf,
}

impl FirstStageFile {
    pub(crate) fn new(
        kept: &KeptCandidates,
        recipe: &Recipe,
        windows: &[WindowAt],
        source: &dyn TileSource,
        frame: &WorkingFrame,
    ) -> Self {
        let scale = (frame.scale.0.to_bits(), frame.scale.1.to_bits());
        let whole = (
            (VERSION, &kept.identity, source.dimensions(), scale),
            (recipe.mpp, recipe.grid, recipe.overlap, &recipe.candidates, FLAW_LIMITS),
            windows,
        );
        let key = sha256(serde_json::to_vec(&whole).expect("plain data becomes JSON"));
        let path = kept.folder.join(format!("{key}.candidates"));
        Self { key, path }
    }

    /// What is kept, or why it cannot be used; `Ok(None)` without a file.
    pub(crate) fn load(&self) -> Result<Option<FirstStage>, String> {
        let fail = |reason: &str| format!("{}: {reason}", self.path.display());
        let text = match base::file::read_whole(&self.path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(fail(&e.to_string())),
        };
        let body = verified(&text).ok_or_else(|| fail("damaged, its checksum does not match"))?;
        let first: FirstStage = serde_json::from_slice(body).map_err(|e| fail(&e.to_string()))?;
        if first.version != VERSION || first.key != self.key {
            return Err(fail("of another slide or first stage than its name"));
        }
        Ok(Some(first))
    }

    /// Keeps what the first stage gave, under a temporary name first.
    pub(crate) fn save(
        &self,
        scored: &[Scored],
        flawed: &[FlawedWindow],
    ) -> Result<(), StoreError> {
        let mut regions: Vec<Region> = scored.iter().map(|s| s.region).collect();
        regions.sort_by_key(|r| r.first);
        let first = FirstStage {
            version: VERSION,
            key: self.key.clone(),
            regions,
            flawed: flawed.to_vec(),
        };
        let fail = |source| StoreError { path: self.path.clone(), source };
        let folder = self.path.parent().expect("a file in a folder");
        std::fs::create_dir_all(folder).map_err(fail)?;
        let text = signed(&first).map_err(|e| fail(e.into()))?;
        base::file::write(&self.path, &text).map_err(|e| fail(e.source))
    }
}
