//! The state of a run between two units, from which a killed run continues to the same bytes.

use crate::candidates::{Extractor, Region};
use crate::error::{DetectError, StoreError};
use crate::flaw::{FlawedWindow, Squares};
use crate::grid::WindowAt;
use crate::recipe::{Job, Recipe};
use base::digest::sha256;
use base::renamed;
use mitosis::Score;
use serde::{Deserialize, Serialize};
use slide::SuspectTile;
use std::fs;
use std::io::Write as _;
use std::path::Path;

pub(crate) const VERSION: u32 = 3;

/// Finished candidates, unread windows, and the half-grown regions at the border of the unit.
///
/// No probabilities of the unit's last row of windows are stored: that row is segmented again to
/// rebuild its overlap with the next, which keeps the state small (kilobytes).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// [`VERSION`] when it is written.
    pub(crate) version: u32,
    /// Digest of recipe, windows and identity.
    pub(crate) run: String,
    /// First row of windows that is not done.
    pub(crate) next_row: u32,
    pub(crate) extractor: Extractor,
    pub(crate) done: Vec<Scored>,
    pub(crate) unread: Vec<Unread>,
    /// Windows with flaws.
    pub(crate) flawed: Vec<FlawedWindow>,
    /// Tiles in doubt among those read so far.
    pub(crate) suspect: Vec<SuspectTile>,
}

/// A window that was not read; as JSON a list of the two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(WindowAt, String)", into = "(WindowAt, String)")]
pub(crate) struct Unread {
    pub(crate) at: WindowAt,
    pub(crate) reason: String,
}

impl From<(WindowAt, String)> for Unread {
    fn from((at, reason): (WindowAt, String)) -> Self {
        Self { at, reason }
    }
}

impl From<Unread> for (WindowAt, String) {
    fn from(unread: Unread) -> Self {
        (unread.at, unread.reason)
    }
}

/// A finished candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scored {
    pub(crate) region: Region,
    pub(crate) second: Second,
}

/// What the second stage stated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Second {
    /// Segmentation only.
    None,
    /// `s_cls`, stored as the bits of its `f32`: decimals would have to be parsed back exactly.
    #[serde(rename = "Bits", with = "score_bits")]
    Score(Score),
    /// The crop could not be read.
    Unread(String),
}

/// A score as the bits of its `f32`.
mod score_bits {
    use mitosis::Score;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(score: &Score, s: S) -> Result<S::Ok, S::Error> {
        score.get().to_bits().serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Score, D::Error> {
        Score::new(f32::from_bits(u32::deserialize(d)?)).map_err(D::Error::custom)
    }
}

/// JSON, a line break, its SHA-256 in 64 hexadecimal digits, a line break.
pub(crate) fn signed(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = serde_json::to_vec(value)?;
    let digest = sha256(&text);
    text.extend_from_slice(format!("\n{digest}\n").as_bytes());
    Ok(text)
}

/// The JSON of a [`signed`] text, if it is whole.
pub(crate) fn verified(text: &[u8]) -> Option<&[u8]> {
    let (body, end) = text.split_at(text.len().saturating_sub(66));
    (end == format!("\n{}\n", sha256(body)).as_bytes()).then_some(body)
}

impl Checkpoint {
    /// Writes the state under a temporary name next to `path`, then renames it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn save(&self, path: &Path) -> Result<(), StoreError> {
        let part = path.with_extension("part");
        let write = || {
            let text = signed(self)?;
            let mut file = fs::File::create(&part)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&part, path)
        };
        write().map_err(|source| {
            let _ = fs::remove_file(&part);
            StoreError { path: path.to_owned(), source }
        })
    }

    /// Reads a state; `None` without a file.
    ///
    /// # Errors
    /// [`DetectError::Checkpoint`] when it cannot be read or is not a state of this version.
    pub fn load(path: &Path) -> Result<Option<Self>, DetectError> {
        let fail = |e: String| DetectError::Checkpoint(format!("{}: {e}", path.display()));
        let text = match base::file::read_whole(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(fail(e.to_string())),
        };
        let body =
            verified(&text).ok_or_else(|| fail("damaged, its checksum does not match".into()))?;
        let state: Self = serde_json::from_slice(body).map_err(|e| fail(e.to_string()))?;
        if state.version != VERSION {
            return Err(fail(format!("version {}, expected {VERSION}", state.version)));
        }
        Ok(Some(state))
    }

    /// Refuses a state of another slide, model, recipe or plan.
    pub(crate) fn check(&self, run: &str, recipe: &Recipe) -> Result<(), DetectError> {
        let mismatch = |e: &str| Err(DetectError::Checkpoint(e.to_owned()));
        if self.run != run {
            return mismatch("it was made with another slide, model, recipe or window plan");
        }
        if self.version != VERSION {
            return mismatch("it is of another version");
        }
        if !self.extractor.fits(&recipe.candidates) {
            return mismatch("its candidate rule is another one");
        }
        let squares = Squares::new(recipe.grid, recipe.mpp);
        if !self.flawed.iter().all(|f| f.verdicts.fits(&squares)) {
            return mismatch("its squares are others");
        }
        let one_stage = |d: &Scored| d.second == Second::None;
        if self.done.iter().any(|d| one_stage(d) != recipe.crops.is_none()) {
            return mismatch("its candidates have other scores than this run gives");
        }
        Ok(())
    }
}

/// Digest of everything that must agree between a stored state and the run that takes it up.
pub(crate) fn run_digest(
    recipe: &Recipe,
    job: &Job<'_>,
    windows: &[WindowAt],
    size: (u64, u64),
) -> String {
    renamed::json_digest(&(recipe, &job.identity, windows, size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::CandidateRule;
    use crate::grid::Grid;
    use crate::recipe::Overlap;
    use mitosis::Mpp;

    /// States of earlier versions are read, and this one's have the same bytes.
    #[test]
    fn a_score_is_stored_as_bits_that_are_those_of_a_probability() {
        // The next number above 0.1, which a short decimal would lose.
        let score = Score::literal(f32::from_bits(0x3dcc_ccce));
        let text = r#"{"Bits":1036831950}"#;
        assert_eq!(serde_json::to_string(&Second::Score(score)).unwrap(), text);
        let second: Second = serde_json::from_str(text).unwrap();
        assert_eq!(second, Second::Score(score));
        assert_eq!(serde_json::to_string(&Second::None).unwrap(), r#""None""#);
        for bits in [f32::NAN, -0.5, 1.5].map(f32::to_bits) {
            let error =
                serde_json::from_str::<Second>(&format!(r#"{{"Bits":{bits}}}"#)).unwrap_err();
            assert!(error.to_string().contains("is not a probability in [0, 1]"), "{error}");
        }
    }

    /// Runs that were interrupted before the separation of candidates had its name continue.
    #[test]
    fn the_digest_of_a_run_is_that_of_the_recipe_with_the_earlier_name() {
        let recipe = Recipe {
            mpp: Mpp::PAPER,
            grid: Grid::new(64, 48).unwrap(),
            overlap: Overlap::Mean,
            candidates: CandidateRule::Regions {
                threshold: Score::literal(0.5),
                opening_radius: 1,
                min_area_px: 20,
            },
            min_separation_um: Some(12.0),
            crops: None,
            max_unread_share: 0.0,
        };
        let job = Job { windows: Vec::new(), tissue: None, identity: "a".into() };
        let text = serde_json::to_string(&(&recipe, &job.identity, [0; 0], (9, 9))).unwrap();
        let earlier = text.replace("min_separation_um", "apart_um");
        assert_eq!(run_digest(&recipe, &job, &[], (9, 9)), sha256(earlier));
    }
}
