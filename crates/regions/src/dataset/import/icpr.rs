//! The folder of the ICPR 2012 contest: Aperio frames with every figure labelled, frames of which
//! some figures are hidden by paint, and dark nuclei mined by rule.

use super::{Imported, Options, Wanted, probe_all, some};
use crate::annotations::Problem;
use crate::dataset::{Area, Builder, GivenMpp, Image, Label, MppSource, RegionsError, Result};
use base::table::{Format, Table};
use mitosis::Mpp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Resolution of the Aperio frames, um/px.
const APERIO_MPP: f64 = 0.2456;
const SOURCE: &str = "icpr2012";

#[derive(Deserialize)]
struct Mark {
    file: String,
    cx: f64,
    cy: f64,
    xmin: f64,
    ymin: f64,
    xmax: f64,
    ymax: f64,
    status: Option<String>,
}

#[derive(Deserialize)]
struct Negative {
    patch: String,
    frame: String,
    scanner: String,
    x: f64,
    y: f64,
}

fn rows<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let format = Format { no_rows: true, ..Format::default() };
    let rows = Table::read(path, &format).and_then(|table| table.rows());
    rows.map_err(|e| RegionsError::file(path, e))
}

/// The glass slide of a frame: `H00` and `A00` are one under two scanners.
fn glass_slide(frame: &str) -> String {
    format!("A{}", frame.get(1..3).unwrap_or_default())
}

enum What {
    Frame(String),
    Negative { name: String, frame: String, scanner: String },
}

impl What {
    fn frame(&self) -> &str {
        match self {
            Self::Frame(name) | Self::Negative { frame: name, .. } => name,
        }
    }
}

/// Reads the folder.
///
/// Frames are labelled exhaustively, and so are partial frames outside the figures still under paint,
/// which are ignore areas. A negative is a `mimicker` on its frame, or, where the frame is not there, a
/// small image of its own with one in the middle. The Hamamatsu negatives state no um/px: they need one
/// in the table, under `Hamamatsu`, and are left out and counted without it.
///
/// # Errors
/// [`RegionsError`] naming the file that is missing or malformed.
pub fn icpr(dir: &Path, o: &Options) -> Result<Imported> {
    let aperio = Mpp::new(APERIO_MPP).map_err(|e| RegionsError::file(dir, e))?;
    let source = MppSource::Publisher("ICPR 2012 contest, Aperio".into());
    let published = Some(GivenMpp { mpp: aperio, source });
    let mut marks = marks(dir)?;
    let mut left_out = vec![];
    let mut wanted = vec![];
    for folder in ["frames", "partial"] {
        for file in jpegs(&dir.join(folder))? {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            wanted.push(Wanted { file, given: published.clone(), what: What::Frame(name) });
        }
    }
    let mut without = 0;
    let mut placed: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let frames: BTreeSet<String> = wanted.iter().map(|w| w.what.frame().to_owned()).collect();
    for n in rows::<Negative>(&dir.join("negatives.csv"))? {
        let given = match n.scanner.as_str() {
            "Aperio" if frames.contains(&n.frame) => {
                placed.entry(n.frame).or_default().push((n.x + 0.5, n.y + 0.5));
                continue;
            }
            "Aperio" => published.clone(),
            // What is given for all images is not meant for another scanner's.
            other => o.given.lookup(&[other]).filter(|g| g.source == MppSource::Table),
        };
        without += usize::from(given.is_none());
        if given.is_some() {
            wanted.push(Wanted {
                file: dir.join("negatives").join(&n.patch),
                given,
                what: What::Negative { name: n.patch, frame: n.frame, scanner: n.scanner },
            });
        }
    }
    if without > 0 {
        left_out.push(Problem {
            record: format!("{without} Hamamatsu negatives"),
            reason: "their um/px is not stated; a table with `Hamamatsu` gives it".into(),
        });
    }
    let mut dataset = o.builder();
    for (probe, what) in probe_all(wanted, o.lenient, &mut left_out)? {
        let (w, h) = (f64::from(probe.size.0), f64::from(probe.size.1));
        let image = match what {
            What::Frame(name) => {
                let mut image = probe.image(&name, glass_slide(&name), SOURCE);
                image.scanner = Some("Aperio".into());
                image.exhaustive = o.is_exhaustive(true);
                for (x, y) in placed.remove(&name).unwrap_or_default() {
                    image.labels.push(Label::at(Builder::MIMICKER, x, y));
                }
                for (mark, hidden) in marks.remove(&name).unwrap_or_default() {
                    place(&mut image, &mark, hidden, o.figure());
                }
                image
            }
            What::Negative { name, frame, scanner } => {
                let slide = glass_slide(&frame);
                let mut image = probe.image(format!("negatives/{name}"), slide, SOURCE);
                image.scanner = Some(scanner);
                image.labels.push(Label::at(Builder::MIMICKER, w / 2.0, h / 2.0));
                image
            }
        };
        dataset.push(Image { part: o.part, ..image });
    }
    if let Some(frame) = marks.keys().next() {
        return Err(RegionsError::file(dir, format!("frame {frame} has marks but no image")));
    }
    some(dataset.images(), dir)?;
    dataset.note("format", "icpr");
    Ok(Imported { dataset, left_out, unread_columns: None })
}

/// Marks by frame; `true` for those still under paint.
fn marks(dir: &Path) -> Result<BTreeMap<String, Vec<(Mark, bool)>>> {
    let mut marks: BTreeMap<String, Vec<(Mark, bool)>> = BTreeMap::new();
    for (file, partial) in [("mitoses.csv", false), ("partial_mitoses.csv", true)] {
        let path = dir.join(file);
        for row in rows::<Mark>(&path)? {
            let hidden = match (partial, row.status.as_deref()) {
                (false, None) | (_, Some("recovered")) => false,
                (_, Some("ignore")) => true,
                (_, other) => {
                    let reason = format!("unknown status {other:?} of {}", row.file);
                    return Err(RegionsError::file(&path, reason));
                }
            };
            let frame = row.file.trim_end_matches(".jpg").to_owned();
            marks.entry(frame).or_default().push((row, hidden));
        }
    }
    Ok(marks)
}

/// The table counts pixels: pixel n covers `[n, n + 1)`.
fn place(image: &mut Image, m: &Mark, hidden: bool, class: &str) {
    let area = Area { x0: m.xmin, y0: m.ymin, x1: m.xmax + 1.0, y1: m.ymax + 1.0 };
    if hidden {
        image.ignore.push(area);
        return;
    }
    image.labels.push(Label { bbox: Some(area), ..Label::at(class, m.cx + 0.5, m.cy + 0.5) });
}

fn jpegs(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = base::walk::entries(folder).map_err(|e| RegionsError::io(folder)(e.source))?;
    files.retain(|p| p.extension().is_some_and(|x| x == "jpg"));
    Ok(files)
}
