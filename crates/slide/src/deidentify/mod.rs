//! A copy of a slide without what identifies a person, a time or a place. Only what is known to be technical is
//! written; pixels of the slide keep their stored bytes.

mod dicom;
mod error;
mod flat;
mod tiff;
mod written;

pub use error::DeidentifyError;

use crate::inventory::Finding;
use crate::{OpenOptions, Slide};
use base::file::Unfinished;
use base::text::{Shown, plain};
use error::disk;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// A copy that passed its check.
#[derive(Clone, Debug, Serialize)]
pub struct Deidentification {
    /// Path of the slide.
    #[serde(serialize_with = "base::json::lossy")]
    pub input: PathBuf,
    /// The files that were written.
    #[serde(serialize_with = "base::json::lossy")]
    pub output: Vec<PathBuf>,
    /// What was left out, by name; no values.
    pub removed: Vec<String>,
    /// Tiles, strips or frames whose bytes were copied.
    pub tiles: u64,
    /// SHA-256 over them, equal in slide and copy. Comments within JPEG and JPEG 2000 tiles are not part of it.
    pub sha256: String,
    /// What was looked at in the copy.
    pub looked_at: Vec<String>,
    /// What the check does not cover, e.g. pixels.
    pub not_looked_at: Vec<String>,
}

impl fmt::Display for Deidentification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for path in &self.output {
            writeln!(f, "written        {}", Shown(path))?;
        }
        for name in &self.removed {
            writeln!(f, "removed        {}", plain(name))?;
        }
        writeln!(f, "pixels         {} tiles as stored, SHA-256 {}", self.tiles, self.sha256)?;
        writeln!(f, "looked at      {}", self.looked_at.join("; "))?;
        writeln!(f, "not looked at  {}", self.not_looked_at.join("; "))
    }
}

/// Writes a copy of a slide without what identifies a person, a time or a place: of a TIFF one file, of a DICOM slide a
/// folder. Label and macro photograph are left out, and levels of a TIFF that show something else than the slide; the
/// thumbnail is kept. The copy is opened, its tiles are compared with those of the slide and its
/// [`Inventory`](crate::Inventory) has to be empty.
///
/// # Errors
/// [`DeidentifyError`]; then no copy is left behind.
pub fn deidentify(
    input: &Path,
    output: &Path,
    options: &OpenOptions,
) -> Result<Deidentification, DeidentifyError> {
    if output.symlink_metadata().is_ok() {
        return Err(DeidentifyError::Exists { path: output.to_path_buf() });
    }
    let slide = Slide::open_with(input, options)?;
    let before = slide.inventory()?.findings;
    let format = slide.format();
    // Nothing bears the copy's name before it has passed its check.
    let parent = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let staged = Unfinished::new(parent)?;
    let place = staged.path().join(output.file_name().unwrap_or("copy".as_ref()));
    let written = match format {
        "aperio" | "ome-tiff" | "generic-tiff" => tiff::write(&slide, &place, options)?,
        "dicom" => dicom::write(&slide, &place, options)?,
        "png" | "jpeg" => flat::write(&slide, &place)?,
        reader => return Err(DeidentifyError::Format { path: input.to_path_buf(), reader }),
    };
    let wrong = |reason: String| DeidentifyError::Check { path: input.to_path_buf(), reason };
    if written.sha256 != written.copied {
        return Err(wrong("the stored pixels of the copy are not those of the slide".into()));
    }
    let copy = Slide::open_with(&written.main, options)
        .map_err(|e| wrong(format!("the copy cannot be opened: {e}")))?;
    let levels = slide.levels().len();
    let used = levels - slide.disagreements()?.len();
    if copy.dimensions() != slide.dimensions() || !(used..=levels).contains(&copy.levels().len()) {
        return Err(wrong("the copy has other levels than the slide".into()));
    }
    same_resolution(&slide, &copy).map_err(wrong)?;
    let after = copy.inventory()?;
    if !after.findings.is_empty() {
        let names: Vec<&str> = after.findings.iter().map(|f| f.name.as_str()).collect();
        return Err(wrong(format!("the copy would still hold {}", names.join(", "))));
    }
    let mut removed = written.removed;
    removed.extend(before.into_iter().map(|Finding { name, .. }| name));
    removed.sort();
    removed.dedup();
    drop(copy);
    if output.symlink_metadata().is_ok() {
        return Err(DeidentifyError::Exists { path: output.to_path_buf() });
    }
    std::fs::rename(&place, output).map_err(disk(output))?;
    let named = |path: PathBuf| match path.strip_prefix(&place) {
        Ok(rest) if rest.as_os_str().is_empty() => output.to_path_buf(),
        Ok(rest) => output.join(rest),
        Err(_) => path,
    };
    Ok(Deidentification {
        input: input.to_path_buf(),
        output: written.output.into_iter().map(named).collect(),
        removed,
        tiles: written.tiles,
        sha256: written.sha256,
        looked_at: after.looked_at,
        not_looked_at: after.not_looked_at,
    })
}

/// Whether both state the same um/px, or neither does.
fn same_resolution(slide: &Slide, copy: &Slide) -> Result<(), String> {
    match (slide.resolution(), copy.resolution()) {
        (Ok(a), Ok(b)) if (a.x.get() / b.x.get() - 1.0).abs() < 1e-3 => Ok(()),
        (Err(_), Err(_)) => Ok(()),
        (Ok(a), Ok(b)) => Err(format!("the copy states {}, the slide {}", b.x, a.x)),
        (Ok(a), Err(_)) => Err(format!("the copy states no um/px, the slide {}", a.x)),
        (Err(_), Ok(b)) => Err(format!("the copy states {}, the slide none", b.x)),
    }
}
