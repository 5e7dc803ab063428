//! Small regions laid out in sheets: a detector is measured on whole images, and crops of a few
//! thousand square micrometres are too small to be run one by one.
//!
//! ```text
//! OUT/NAME-000.png   regions of one size side by side, full rows only, without a gap
//! OUT/truth.csv      slide, x_px, y_px: the figures, as `evaluate` reads them
//! OUT/regions.csv    which region lies where
//! ```
//! Neighbours are of one scanner and slide where they can be, so that seams are as slight as they can be.

use crate::FileError;
use crate::cut::Encoding;
use crate::export::{ExportError, Unfinished};
use crate::regions::{Dataset, Image, Region};
use artifact::file;
use artifact::table::Writer;
use mitosis::{Mpp, RgbTile};
use rayon::prelude::*;
use serde::Serialize;
use std::path::Path;

/// Largest side of a region, px; what is larger is an image of its own.
const LARGEST: usize = 1024;

/// How sheets are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Their resolution.
    pub mpp: Mpp,
    /// Regions side by side, and below each other; 1 to 32.
    pub across: usize,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Written {
    /// Version of this record.
    pub schema: &'static str,
    /// Images.
    pub sheets: usize,
    /// Regions on them.
    pub regions: usize,
    /// Figures.
    pub figures: usize,
    /// Area, mm2.
    pub mm2: f64,
    /// Regions in which figures may lie unlabelled, or with areas that are not scored.
    pub left_out: usize,
}

/// Writes `images` of a dataset as sheets `PREFIX-000.png`. The folder appears when it is complete.
///
/// # Errors
/// [`ExportError`]: regions of different sizes, or too large to need this.
pub fn write(
    set: &Dataset,
    images: &[&Image],
    prefix: &str,
    out: &Path,
    options: &Options,
) -> Result<Written, ExportError> {
    let across = options.across;
    if !(1..=32).contains(&across) {
        return Err(ExportError::Options(format!("{across} regions side by side; 1 to 32 can be")));
    }
    let (mut whole, partly): (Vec<&Image>, Vec<&Image>) =
        images.iter().copied().partition(|i| i.exhaustive && i.ignore.is_empty());
    if whole.is_empty() {
        let what = "no region is labelled throughout, so nothing could be called false";
        return Err(ExportError::Options(what.into()));
    }
    whole.sort_by_key(|i| (&i.scanner, &i.slide, &i.name));
    let unfinished = Unfinished::new(out)?;
    let mut written = Written {
        schema: "mithras.sheets/1",
        regions: whole.len(),
        left_out: partly.len(),
        ..Written::default()
    };
    let mut truth = Writer::new(["slide", "x_px", "y_px"]);
    let mut places = Writer::new(["slide", "x_px", "y_px", "region", "region_slide", "scanner"]);
    let mut cell = None;
    // Whole sheets, then one of the full rows that remain, then one of a part of a row.
    let mut rest = whole.as_slice();
    while !rest.is_empty() {
        let rows = (rest.len() / across).clamp(1, across);
        let columns = across.min(rest.len());
        let (now, later) = rest.split_at(rows * columns);
        rest = later;
        let loaded: Vec<Region> = now
            .par_iter()
            .map(|i| Ok(set.load(i, options.mpp)?))
            .collect::<Result<_, ExportError>>()?;
        let name = format!("{prefix}-{:03}.png", written.sheets);
        let (w, h) = *cell.get_or_insert((loaded[0].tile.width, loaded[0].tile.height));
        let mut data = vec![0; 3 * rows * h * columns * w];
        for (k, (image, region)) in now.iter().zip(&loaded).enumerate() {
            fits(image, &region.tile, (w, h))?;
            let (left, top) = (k % columns * w, k / columns * h);
            for (y, row) in region.tile.data.chunks_exact(3 * w).enumerate() {
                let at = 3 * ((top + y) * columns * w + left);
                data[at..at + 3 * w].copy_from_slice(row);
            }
            for i in region.labels.iter().filter(|l| l.kind == crate::regions::Kind::Figure) {
                let (x, y) = (left as f64 + i.x, top as f64 + i.y);
                truth.push([name.clone(), format!("{x:.2}"), format!("{y:.2}")]);
                written.figures += 1;
            }
            places.push([
                name.clone(),
                left.to_string(),
                top.to_string(),
                image.name.clone(),
                image.slide.clone(),
                image.scanner.clone().unwrap_or_default(),
            ]);
        }
        let path = unfinished.path().join(&name);
        let png = Encoding::Png.encode(&RgbTile::new(columns * w, rows * h, data));
        let png =
            png.map_err(|e| ExportError::Image { path: path.clone(), reason: e.to_string() })?;
        file::write(&path, &png).map_err(FileError::from)?;
        written.sheets += 1;
        written.mm2 += (now.len() * w * h) as f64 * options.mpp.get().powi(2) / 1e6;
    }
    truth.write(&unfinished.path().join("truth.csv")).map_err(FileError::from)?;
    places.write(&unfinished.path().join("regions.csv")).map_err(FileError::from)?;
    unfinished.finish()?;
    Ok(written)
}

/// Refuses a region of another size than the first, or one that is an image of its own.
fn fits(image: &Image, tile: &RgbTile, (w, h): (usize, usize)) -> Result<(), ExportError> {
    let name = &image.name;
    if tile.width.max(tile.height) > LARGEST {
        return Err(ExportError::Options(format!(
            "{name} is {} x {} px: sheets are for regions of up to {LARGEST} px; evaluate larger ones as they are",
            tile.width, tile.height
        )));
    }
    if (tile.width, tile.height) != (w, h) {
        return Err(ExportError::Options(format!(
            "{name} is {} x {} px, others are {w} x {h} px: regions of a sheet are of one size; \
             export them from datasets of their own",
            tile.width, tile.height
        )));
    }
    Ok(())
}
