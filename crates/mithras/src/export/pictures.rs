//! Pictures and outlines of one slide, which the summary shows: thumbnail, tissue, top figures.

use super::kind::ExportError;
use crate::record::{DetectionRow, SlideRecord};
use crate::regions;
use detect::Flaw;
use image::codecs::jpeg::JpegEncoder;
use mitosis::{Mpp, RgbTile};
use slide::outline::Layer;
use slide::{Outlines, Rect, Slide, TissueMask};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

/// The slide, longer side at most 1200 px.
pub const THUMBNAIL: &str = "thumbnail.jpg";
/// The best-scored candidates side by side, best first, [`COLUMNS`] to a row.
pub const FIGURES: &str = "figures.jpg";
/// The tissue's outline, for QuPath and for the summary.
pub const TISSUE: &str = "tissue.geojson";
/// Outlines of what cannot be trusted, for QuPath and for the summary.
pub const FLAWS: &str = "flaws.geojson";
/// Files written here.
pub const FILES: &[&str] = &[THUMBNAIL, FIGURES, TISSUE, FLAWS, regions::FILE];

/// Longer side of the thumbnail, px.
const THUMBNAIL_SIDE: usize = 1200;
/// Figures shown at most.
pub const MOST: usize = 24;
/// Figures in a row of the picture.
pub const COLUMNS: usize = 8;
/// Side of one figure in the picture, px.
pub const SIDE: usize = 96;
/// What it shows, um: 96 px at 0.25 um/px.
const SIDE_UM: f64 = 24.0;

/// The accepted rows with the highest scores, best first; ties in reading order.
#[must_use]
pub fn top(rows: &[DetectionRow]) -> Vec<&DetectionRow> {
    let mut best: Vec<_> = rows.iter().filter(|r| r.accepted).collect();
    best.sort_by(|a, b| b.score().total_cmp(&a.score()));
    best.truncate(MOST);
    best
}

/// Writes thumbnail, outline and figures of a slide.
///
/// # Errors
/// [`ExportError`] when a picture cannot be read, encoded or written.
pub fn write(
    slide: &Slide,
    record: &SlideRecord,
    tissue: &TissueMask,
    thumbnail: &[u8],
    folder: &Path,
) -> Result<(), ExportError> {
    thread::scope(|scope| {
        // The others wait for the disk meanwhile.
        let figures = scope.spawn(|| write_figures(slide, record, folder));
        let offset = record.slide.bounds_offset;
        base::json::write(&folder.join(TISSUE), &tissue.geojson((offset[0], offset[1])))?;
        base::json::write(&folder.join(FLAWS), &flaws(record))?;
        if let Some(searched) = &record.regions {
            let file = searched.geojson(&record.slide.digest, offset);
            base::json::write(&folder.join(regions::FILE), &file)?;
        }
        crate::file::write(&folder.join(THUMBNAIL), thumbnail)?;
        figures.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// A JPEG of the slide, its longer side at most 1200 px; tiles that cannot be decoded are white.
///
/// # Errors
/// [`ExportError`] when it cannot be read or encoded.
pub fn thumbnail(slide: &Slide) -> Result<Vec<u8>, ExportError> {
    jpeg(THUMBNAIL, &slide.thumbnail_partial(THUMBNAIL_SIDE)?, 82)
}

/// Writes the pictures of a slide's figures alone.
///
/// # Errors
/// [`ExportError`] when a picture cannot be read, encoded or written.
pub fn write_figures(
    slide: &Slide,
    record: &SlideRecord,
    folder: &Path,
) -> Result<(), ExportError> {
    let figures = jpeg(FIGURES, &figures(slide, record)?, 88)?;
    Ok(crate::file::write(&folder.join(FIGURES), &figures)?)
}

/// Whole squares, also where one was read in part.
fn flaws(record: &SlideRecord) -> Outlines {
    let (w, h) = (record.slide.width as f64, record.slide.height as f64);
    let side = record.flawed.side_px;
    let layer = |flaw: Flaw, color| {
        let of = record.flawed.squares.iter().filter(|s| s.flaw == flaw);
        let places: Vec<_> = of.map(|s| s.place).collect();
        let at = |x: f64, y: f64| [(x * side.0).min(w), (y * side.1).min(h)];
        (flaw.label(), color, slide::outline::squares(&places, at))
    };
    let layers = [
        layer(Flaw::OutOfFocus, [230, 159, 0]),
        layer(Flaw::Pen, [0, 114, 178]),
        layer(Flaw::Dirt, [60, 60, 60]),
    ];
    let offset = record.slide.bounds_offset;
    let layers = layers.iter().map(|&(name, color, ref polygons)| Layer { name, color, polygons });
    Outlines::from_layers(layers, (offset[0], offset[1]))
}

fn figures(slide: &Slide, record: &SlideRecord) -> Result<RgbTile, ExportError> {
    let best = top(&record.rows);
    let rows = best.len().div_ceil(COLUMNS).max(1);
    let mut sheet = RgbTile::filled(COLUMNS * SIDE, rows * SIDE, [255; 3]);
    let mpp = Mpp::new(SIDE_UM / SIDE as f64).unwrap_or(Mpp::PAPER);
    let (sx, sy) = slide.working_scale(mpp)?;
    for (k, row) in best.into_iter().enumerate() {
        let corner = |v: f64, scale: f64| (v / scale).round() as i64 - SIDE as i64 / 2;
        // A figure was read before; if its surroundings cannot be decoded, its place stays empty.
        let (x, y) = (corner(row.x_px, sx), corner(row.y_px, sy));
        let Some(tile) = slide.read_whole_at(mpp, Rect::new(x, y, SIDE, SIDE))? else { continue };
        let (left, top) = (k % COLUMNS * SIDE, k / COLUMNS * SIDE);
        for (j, line) in tile.data.chunks_exact(3 * SIDE).enumerate() {
            let at = 3 * ((top + j) * sheet.width + left);
            sheet.data[at..at + 3 * SIDE].copy_from_slice(line);
        }
    }
    Ok(sheet)
}

fn jpeg(file: &'static str, tile: &RgbTile, quality: u8) -> Result<Vec<u8>, ExportError> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, quality)
        .encode(&tile.data, tile.width as u32, tile.height as u32, image::ExtendedColorType::Rgb8)
        .map_err(|e| ExportError::Encode { file, reason: e.to_string() })?;
    Ok(bytes)
}
