//! Small regions laid out in sheets: a detector is measured on whole images, and crops of a few
//! thousand square micrometres are too small to be run one by one.
//!
//! ```text
//! OUT/NAME-000.png   regions of one size side by side, full rows only, without a gap
//! OUT/truth.csv      slide, x_px, y_px: the figures, as `evaluate` reads them
//! OUT/regions.csv    where each region is, and how much of it counts
//! ```
//! Neighbours are of one scanner and slide where they can be, so that seams are as slight as they can be. Where
//! regions meet is a seam all the same, which no slide has. With [`SheetOptions::mirror`] each region is surrounded
//! by its own mirror image instead, and `evaluate robustness --within OUT/regions.csv` counts only the regions,
//! without the [`RIM`] where a nucleus that the edge cuts meets its mirror image.

use crate::dataset::{Dataset, Image, Region};
use crate::export::{ExportError, Unfinished};
use base::file;
use base::file::FileError;
use base::table::Writer;
use base::text::Many;
use crops::Encoding;
use mitosis::{Mpp, RgbTile};
use rayon::prelude::*;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// Largest side of a region, px; what is larger is an image of its own.
const LARGEST: usize = 1024;

/// Width along a mirrored region's edge that does not count, px: a nucleus that the edge cuts becomes a symmetrical
/// object there, like a metaphase plate. Of 20 false positives in 191 regions of 128 px, 18 were in it.
pub const RIM: usize = 8;

/// How sheets are laid out.
#[derive(Clone, Copy, Debug)]
pub struct SheetOptions {
    /// Their resolution.
    pub mpp: Mpp,
    /// Regions side by side, and below each other; 1 to 32.
    pub across: usize,
    /// Width of the margin in which a region is mirrored, px; less than its sides.
    pub mirror: usize,
}

/// How much was written, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WrittenSheets {
    /// Version of this record.
    pub schema: &'static str,
    /// Images.
    pub sheets: usize,
    /// Regions on them.
    pub regions: usize,
    /// Labelled figures on the images.
    pub figures: usize,
    /// Area, mm2.
    pub mm2: f64,
    /// Regions that may contain unlabelled figures, or with areas that are not scored.
    pub left_out: usize,
}

impl fmt::Display for WrittenSheets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sheets, regions) = (Many(self.sheets, "sheet"), Many(self.regions, "region"));
        let (figures, mm2) = (Many(self.figures, "figure"), self.mm2);
        writeln!(f, "{sheets} of {regions}: {figures}, {mm2:.3} mm2")?;
        if self.left_out > 0 {
            writeln!(f, "left out: {}, not labelled throughout", Many(self.left_out, "region"))?;
        }
        Ok(())
    }
}

/// Writes `images` of a dataset as sheets `PREFIX-000.png`. The folder appears when it is complete.
///
/// # Errors
/// [`ExportError`]: regions of different sizes, or too large to need this.
#[expect(clippy::too_many_lines, reason = "one page from top to bottom")]
pub fn write(
    set: &Dataset,
    images: &[&Image],
    prefix: &str,
    out: &Path,
    options: &SheetOptions,
) -> Result<WrittenSheets, ExportError> {
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
    let mut written = WrittenSheets {
        schema: "mithras.sheets/1",
        regions: whole.len(),
        left_out: partly.len(),
        ..WrittenSheets::default()
    };
    let mut truth = Writer::new(["slide", "x_px", "y_px"]);
    let mut places = Writer::new([
        "slide",
        "x_px",
        "y_px",
        "width_px",
        "height_px",
        "region",
        "region_slide",
        "scanner",
    ]);
    let mirror = options.mirror;
    let rim = if mirror == 0 { 0 } else { RIM };
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
        now.iter().zip(&loaded).try_for_each(|(i, region)| fits(i, &region.tile, (w, h)))?;
        if mirror >= w.min(h) || 2 * rim >= w.min(h) {
            let what = format!("a margin of {mirror} px around regions of {w} x {h} px");
            return Err(ExportError::Options(what + "; it has to be narrower than they are"));
        }
        let (outer_w, outer_h) = (w + 2 * mirror, h + 2 * mirror);
        let mut data = Vec::with_capacity(3 * rows * outer_h * columns * outer_w);
        for y in 0..rows * outer_h {
            for region in &loaded[y / outer_h * columns..][..columns] {
                let row = &region.tile.data[3 * w * reflected(y % outer_h, mirror, h)..];
                for x in 0..outer_w {
                    let at = 3 * reflected(x, mirror, w);
                    data.extend_from_slice(&row[at..at + 3]);
                }
            }
        }
        for (k, (image, region)) in now.iter().zip(&loaded).enumerate() {
            let left = k % columns * outer_w + mirror;
            let top = k / columns * outer_h + mirror;
            for i in region.labels.iter().filter(|l| l.kind == crate::dataset::Kind::Figure) {
                let (x, y) = (left as f64 + i.x, top as f64 + i.y);
                truth.push([name.clone(), format!("{x:.2}"), format!("{y:.2}")]);
                written.figures += 1;
            }
            places.push([
                name.clone(),
                (left + rim).to_string(),
                (top + rim).to_string(),
                (w - 2 * rim).to_string(),
                (h - 2 * rim).to_string(),
                image.name.clone(),
                image.slide.clone(),
                image.scanner.clone().unwrap_or_default(),
            ]);
        }
        let path = unfinished.path().join(&name);
        let png = Encoding::Png.encode(&RgbTile::new(columns * outer_w, rows * outer_h, data));
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

/// Where in a row of `side` px the pixel `at` of its mirrored row comes from, `margin` px wider on
/// both ends. The outermost pixel is not repeated.
fn reflected(at: usize, margin: usize, side: usize) -> usize {
    let inside = at.abs_diff(margin);
    if inside < side { inside } else { 2 * (side - 1) - inside }
}

/// Refuses a region of another size than the first, or one that is an image of its own.
fn fits(image: &Image, tile: &RgbTile, (w, h): (usize, usize)) -> Result<(), ExportError> {
    let name = &image.name;
    if tile.width.max(tile.height) > LARGEST {
        return Err(ExportError::Options(format!(
            "{name} is {} x {} px: sheets are for regions of up to {LARGEST} px; evaluate larger ones as \
             they are if memory allows",
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
