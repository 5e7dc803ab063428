//! The properties of a slide's file, and its tissue.

use crate::privacy::is_technical;
use crate::{
    AssociatedImage, Inventory, Level, Rect, Slide, SlideError, TissueMask, TissueOptions,
    TissueRule,
};
use base::text::{Many, Shown, plain};
use mitosis::Mpp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The properties of a slide's file, without personal data.
#[derive(Clone, Debug, Serialize)]
pub struct SlideInfo {
    /// Path or address of the slide.
    #[serde(serialize_with = "base::json::lossy")]
    pub file: PathBuf,
    /// Name of the format that opened it ([`crate::Format`]).
    pub reader: &'static str,
    /// Vendor by that reader, e.g. `aperio`.
    pub vendor: String,
    /// Level-0 width, px.
    pub width: u64,
    /// Level-0 height, px.
    pub height: u64,
    /// um/px of level 0.
    pub resolution: ResolutionInfo,
    /// The pyramid, finest first.
    pub levels: Vec<Level>,
    /// The part that was scanned, if the file records it.
    pub bounds: Option<Rect>,
    /// Label, macro photograph and the like.
    pub associated_images: Vec<AssociatedImage>,
    /// The file's own words, the technical ones.
    pub properties: BTreeMap<String, String>,
    /// Names of the others, which do or may identify a person, a time or a place.
    pub not_shown: Vec<String>,
    /// What is known of the levels: contradictions, tiles that are left out.
    pub level_notes: Vec<String>,
}

/// um/px of level 0, or why it is unknown.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ResolutionInfo {
    /// The file states it, or it was given.
    Known {
        /// um/px, horizontally.
        x_um: Mpp,
        /// um/px, vertically.
        y_um: Mpp,
        /// The field it was read from.
        source: String,
    },
    /// Nothing states it, or fields contradict each other.
    Unknown {
        /// Message of the error, with what to do.
        error: String,
    },
}

impl SlideInfo {
    /// Asks an opened slide.
    #[must_use]
    pub fn read(slide: &Slide) -> Self {
        let (width, height) = slide.dimensions();
        let all = slide.properties().clone();
        let (properties, hidden): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.into_iter().partition(|(key, value)| is_technical(key, value));
        Self {
            file: slide.path().to_owned(),
            reader: slide.format(),
            vendor: slide.vendor().to_owned(),
            width,
            height,
            resolution: match slide.resolution() {
                Ok(r) => {
                    ResolutionInfo::Known { x_um: r.x, y_um: r.y, source: r.source.to_string() }
                }
                Err(e) => ResolutionInfo::Unknown { error: e.to_string() },
            },
            levels: slide.levels().to_vec(),
            bounds: slide.bounds(),
            associated_images: slide.associated_images().to_vec(),
            properties,
            not_shown: hidden.into_keys().collect(),
            level_notes: level_notes(slide),
        }
    }
}

/// Largest coarse level that is read for its notes, px: about a second.
const MOST_READ: u64 = 1 << 25;

/// Reads the coarse levels of a file on this machine that pictures of the whole slide are made of, for their notes.
fn look_through(slide: &Slide) -> Result<(), SlideError> {
    let others = slide.disagreements()?;
    if slide.file.is_remote() {
        return Ok(());
    }
    slide.look_through(|level, l| {
        let is_used = others.iter().all(|d| d.level != level);
        is_used && l.width.saturating_mul(l.height) <= MOST_READ
    })
}

/// Contradictions between levels, and tiles that are left out or damaged, in sentences.
fn level_notes(slide: &Slide) -> Vec<String> {
    let read = look_through(slide);
    let mut notes = slide.level_notes();
    notes.extend(read.err().map(|e| format!("the levels cannot be read: {e}")));
    notes.extend(slide.colour_note());
    for level in 0..slide.levels().len() {
        let (lost, filled) = (slide.absent_tiles(level).len(), slide.filled_tiles(level));
        if filled > 0 {
            notes.push(format!(
                "level {level}: {} left out, read from the next finer level",
                Many(filled, "tile")
            ));
        }
        if lost > 0 {
            notes.push(format!("level {level}: {} left out, read as white", Many(lost, "tile")));
        }
    }
    notes
}

impl fmt::Display for SlideInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = (self.width, self.height);
        writeln!(f, "file        {}", Shown(&self.file))?;
        writeln!(f, "reader      {} (vendor {})", self.reader, self.vendor)?;
        writeln!(f, "size        {width} x {height} px")?;
        match &self.resolution {
            ResolutionInfo::Known { x_um, y_um, source } => {
                let mm = |n: u64, mpp: Mpp| n as f64 * mpp.get() / 1000.0;
                writeln!(f, "resolution  {} x {} um/px ({source})", x_um.get(), y_um.get())?;
                writeln!(f, "            {:.3} x {:.3} mm", mm(width, *x_um), mm(height, *y_um))?;
            }
            ResolutionInfo::Unknown { error } => writeln!(f, "resolution  {error}")?,
        }
        for (i, l) in self.levels.iter().enumerate() {
            writeln!(
                f,
                "level {i:<5} {} x {} px, 1/{:.4}, tiles {} x {}",
                l.width, l.height, l.downsample_x, l.tile_width, l.tile_height
            )?;
        }
        if let Some(b) = self.bounds {
            writeln!(f, "bounds      {} x {} px at ({}, {})", b.width, b.height, b.x, b.y)?;
        }
        for a in &self.associated_images {
            write!(f, "image       {} {} x {} px", plain(&a.name), a.width, a.height)?;
            match &a.unreadable {
                Some(why) => writeln!(f, ", cannot be read: {}", plain(why))?,
                None => writeln!(f)?,
            }
        }
        for note in &self.level_notes {
            writeln!(f, "note        {}", plain(note))?;
        }
        for (key, value) in &self.properties {
            let line = plain(value);
            let short: String = line.chars().take(120).collect();
            let more = if short.len() < line.len() { " ..." } else { "" };
            writeln!(f, "            {} = {short}{more}", plain(key))?;
        }
        if !self.not_shown.is_empty() {
            let names: Vec<_> = self.not_shown.iter().map(|n| plain(n)).collect();
            writeln!(f, "not shown   {}", names.join(", "))?;
        }
        Ok(())
    }
}

/// What in a slide's file does or may identify a person, a time or a place.
#[derive(Clone, Debug, Serialize)]
pub struct Deidentified {
    /// Version of this format.
    pub schema: &'static str,
    /// Path or address of the slide.
    #[serde(serialize_with = "base::json::lossy")]
    pub file: PathBuf,
    /// Name of the format that opened it ([`crate::Format`]).
    pub reader: &'static str,
    /// What was found, without values, and where it was looked for.
    #[serde(flatten)]
    pub inventory: Inventory,
}

impl Deidentified {
    /// Looks through an opened slide.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn check(slide: &Slide) -> Result<Self, SlideError> {
        Ok(Self {
            schema: "mithras.deidentified/2",
            file: slide.path().to_owned(),
            reader: slide.format(),
            inventory: slide.inventory()?,
        })
    }
}

impl fmt::Display for Deidentified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inventory { findings, looked_at, not_looked_at } = &self.inventory;
        for finding in findings {
            writeln!(f, "{}: {}", plain(&finding.name), finding.kind)?;
        }
        writeln!(f, "looked at      {}", looked_at.join("; "))?;
        writeln!(f, "not looked at  {}", not_looked_at.join("; "))?;
        match findings.len() {
            0 => {
                writeln!(
                    f,
                    "{}: nothing that may identify a person, a time or a place was found",
                    Shown(&self.file)
                )
            }
            n => writeln!(
                f,
                "{}: {n} of these may identify a person, a time or a place",
                Shown(&self.file)
            ),
        }
    }
}

/// The tissue of a slide.
#[derive(Clone, Debug, Serialize)]
pub struct TissueInfo {
    /// Path of the slide.
    #[serde(serialize_with = "base::json::lossy")]
    pub file: PathBuf,
    /// Area of the tissue.
    pub area_mm2: f64,
    /// Whether the slide has no tissue.
    pub empty: bool,
    /// Area of the part of it that could not be read, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_mm2: Option<f64>,
    /// How it was found.
    pub rule: TissueRule,
    /// Otsu's threshold on saturation, if it was asked.
    pub otsu_threshold: Option<u8>,
    /// Resolution of the mask.
    pub mask_um_per_px: Mpp,
    /// Columns of the mask.
    pub mask_width: usize,
    /// Rows of the mask.
    pub mask_height: usize,
    /// What is taken off the outlines' coordinates, level-0 px.
    pub level0_offset: [i64; 2],
    /// Settings that the tissue was found by.
    pub parameters: TissueOptions,
    /// Path of the mask as a PNG.
    #[serde(serialize_with = "base::json::lossy")]
    pub mask: PathBuf,
    /// Path of the outlines as GeoJSON.
    #[serde(serialize_with = "base::json::lossy")]
    pub geojson: PathBuf,
    /// What is known of the levels that the mask was made of: contradictions, damaged tiles.
    pub level_notes: Vec<String>,
}

/// Why the tissue's files are not written.
#[derive(Debug, thiserror::Error)]
pub enum TissueError {
    /// The slide cannot be read.
    #[error("{0}")]
    Slide(#[from] SlideError),
    /// The folder cannot be made.
    #[error("cannot make the folder {}: {source}", Shown(path))]
    Folder {
        /// Folder that cannot be made.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The picture cannot be encoded.
    #[error(transparent)]
    Image(#[from] image::ImageError),
    /// The outlines cannot be encoded.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] base::file::WriteError),
}

/// Finds a slide's tissue and writes `tissue.png` and `tissue.geojson` into a folder.
///
/// # Errors
/// [`TissueError`].
pub fn write_tissue(slide: &Slide, out: &Path) -> Result<TissueInfo, TissueError> {
    let parameters = TissueOptions::default();
    let mask = TissueMask::find_with(slide, &parameters)?;
    let folder = |source| TissueError::Folder { path: out.to_owned(), source };
    std::fs::create_dir_all(out).map_err(folder)?;
    let (png, geojson) = (out.join("tissue.png"), out.join("tissue.geojson"));
    base::file::write(&png, &mask.png()?)?;
    let offset = slide.bounds().map_or((0, 0), |b| (b.x, b.y));
    base::file::write(&geojson, &serde_json::to_vec_pretty(&mask.geojson(offset))?)?;
    Ok(TissueInfo {
        file: slide.path().to_owned(),
        area_mm2: mask.area_mm2(),
        empty: mask.is_empty(),
        unread_mm2: (mask.unread > 0)
            .then(|| mask.unread as f64 * mask.mpp.get() * mask.mpp.get() * 1e-6),
        rule: mask.rule,
        otsu_threshold: mask.threshold,
        mask_um_per_px: mask.mpp,
        mask_width: mask.width,
        mask_height: mask.height,
        level0_offset: [offset.0, offset.1],
        parameters,
        mask: png,
        geojson,
        level_notes: slide.level_notes(),
    })
}

impl fmt::Display for TissueInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.empty {
            writeln!(f, "{}: no tissue found", Shown(&self.file))?;
        } else {
            writeln!(f, "{}: {:.3} mm2 of tissue", Shown(&self.file), self.area_mm2)?;
        }
        if let Some(mm2) = self.unread_mm2 {
            writeln!(f, "note: {mm2:.3} mm2 could not be read, and count as tissue")?;
        }
        let threshold = self.otsu_threshold.map_or("none".into(), |t| t.to_string());
        let (rule, mpp) = (self.rule, self.mask_um_per_px);
        writeln!(f, "rule {rule:?}, Otsu threshold {threshold}, at {mpp}")?;
        for note in &self.level_notes {
            writeln!(f, "note: {}", plain(note))?;
        }
        writeln!(f, "{}\n{}", Shown(&self.mask), Shown(&self.geojson))
    }
}
