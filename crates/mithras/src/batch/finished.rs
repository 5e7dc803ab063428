//! A finished slide's results, checked against each other before anything is made of them.

use super::state::{AGAIN, FILE, State, StateError};
use crate::export::{CountsFile, pictures, read_detections};
use crate::record::DetectionRow;
use base::file::read_step;
use base::text::Shown;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Why a finished slide's results cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}{step}", Shown(folder))]
pub struct ResultsError {
    /// The slide's folder.
    pub folder: PathBuf,
    /// What is wrong with them.
    pub reason: String,
    /// What to do about it.
    step: &'static str,
}

impl ResultsError {
    /// Of results that doing the slide again mends.
    #[must_use]
    pub fn new(folder: &Path, reason: String) -> Self {
        Self { folder: folder.to_owned(), reason, step: AGAIN }
    }

    /// Of results of which a file is not sound, or cannot be read, which doing the slide again does not mend.
    #[must_use]
    pub fn because(folder: &Path, e: &(dyn Error + 'static)) -> Self {
        Self { step: read_step(e).unwrap_or(AGAIN), ..Self::new(folder, e.to_string()) }
    }

    /// Of results whose state cannot be used.
    #[must_use]
    pub fn with_state(folder: &Path, e: &StateError) -> Self {
        Self { step: e.step(), ..Self::new(folder, e.cause()) }
    }
}

/// A state of whatever work: what is asked of it here is the same for all.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Any {}

/// Largest `counts.json`, bytes.
const LARGEST: u64 = 64 << 20;

/// Reads a slide's `counts.json`, alone.
pub(crate) fn counts(folder: &Path) -> Result<CountsFile, Box<dyn Error>> {
    let text = base::file::read_text(&folder.join(READ[0]), LARGEST);
    Ok(CountsFile::parse(&text.map_err(|e| e.source)?)?)
}

/// What was found on a slide, read back.
#[derive(Clone, Debug)]
pub struct Results {
    /// Its `counts.json`.
    pub counts: CountsFile,
    /// Its `detections.csv`.
    pub rows: Vec<DetectionRow>,
}

/// The files that numbers are read of.
const READ: [&str; 2] = ["counts.json", "detections.csv"];

/// Whether a file of a slide's results must be there as it was written: numbers, outlines and pictures. Its other files
/// are for other programs.
#[must_use]
pub fn is_bound(name: &str) -> bool {
    READ.contains(&name) || pictures::FILES.contains(&name)
}

/// Reads a slide's results. They are those that were written when the slide was finished: their digests
/// are the state's, they are of the file that the state names, and the counts are those of the rows.
/// Folders without a state, and those of early versions, are checked by what they record.
///
/// # Errors
/// [`ResultsError`].
pub fn results(folder: &Path) -> Result<Results, ResultsError> {
    let unsound = |reason: String| ResultsError::new(folder, reason);
    let because = |e: &(dyn Error + 'static)| ResultsError::because(folder, e);
    let state = State::<Any>::read(folder).map_err(|e| ResultsError::with_state(folder, &e))?;
    if let Some(state) = &state {
        state.undone().map_or(Ok(()), |reason| Err(unsound(reason)))?;
        state.check(folder, is_bound).map_err(|e| because(&e))?;
    } else if !folder.exists() {
        return Err(unsound("detection has not begun".into()));
    }
    let named =
        |e: ResultsError| ResultsError { reason: format!("{}: {}", READ[0], e.reason), ..e };
    let counts = counts(folder).map_err(|e| named(because(&*e)))?;
    if let Some(state) = state.filter(|s| !s.input.sha256.is_empty())
        && state.input.sha256 != counts.slide.digest
    {
        let reason = format!("{} is of another file than {}", READ[0], FILE);
        return Err(unsound(reason));
    }
    let rows = read_detections(&folder.join(READ[1])).map_err(|e| because(&e))?;
    one_place_each(&counts, &rows).map_err(unsound)?;
    let figures = rows.iter().filter(|r| r.accepted).count();
    if (rows.len(), figures) != (counts.candidates, counts.figures) {
        return Err(unsound(format!(
            "{} has {} candidates, {figures} of them figures, and {} counts {} and {}; they are not of \
             one slide and run",
            READ[1],
            rows.len(),
            READ[0],
            counts.candidates,
            counts.figures
        )));
    }
    Ok(Results { counts, rows })
}

/// Checks that px and um of every row are one place at the resolution of the counts.
fn one_place_each(counts: &CountsFile, rows: &[DetectionRow]) -> Result<(), String> {
    // A resolution that is not valid is reported where it is needed.
    let Ok(resolution) = counts.resolution() else { return Ok(()) };
    let Some(i) = rows.iter().position(|r| !r.is_one_place(&resolution)) else { return Ok(()) };
    let (r, x, y) = (&rows[i], resolution.x.get(), resolution.y.get());
    Err(format!(
        "{}, row {} (line {}): {}, {} px is {:.3}, {:.3} um at {x} x {y} um/px, but the row has {}, {} um",
        READ[1],
        i + 1,
        i + 2,
        r.x_px,
        r.y_px,
        r.x_px * x,
        r.y_px * y,
        r.x_um,
        r.y_um
    ))
}
