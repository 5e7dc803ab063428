//! Features of a slide's tissue, tile by tile.

use crate::encoder::{Frozen, Grid};
use crate::error::FeatureError;
use crate::pipe::{self, Batch};
use crate::row::{Row, Tiles};
use crate::table::Table;
use base::progress::Listener;
use rayon::prelude::*;
use slide::{PlannedWindow, Rect, Slide, TissueMask, WindowPlan};

/// Features of every tile that touches tissue, in raster order, `batch` at a time; tiles are side by
/// side from the level-0 origin, and are white beyond the slide's edge. A slide without tissue gives
/// a table without rows. `listener` gets the tiles done and their total.
///
/// # Errors
/// [`FeatureError`]: the slide has no resolution, a tile cannot be decoded, the network stops.
pub fn embed(
    encoder: &mut Frozen,
    slide: &Slide,
    grid: Grid,
    batch: usize,
    listener: &mut dyn Listener,
) -> Result<Table, FeatureError> {
    let Grid { mpp, side } = grid;
    let mask = TissueMask::find(slide)?;
    let plan = WindowPlan::new(slide, mpp, side, side, Some(&mask))?;
    let name = slide.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let windows: Vec<PlannedWindow> = plan.iter().collect();
    let read = |w: &PlannedWindow| {
        let at = plan.level0(*w);
        let tile = slide.read_at(mpp, Rect::new(w.x, w.y, side, side))?;
        let row = Row::plain(format!("{name}_{}_{}", at.x, at.y), &name);
        Ok((Row { x: at.x as f64, y: at.y as f64, ..row }, tile))
    };
    let batches = windows
        .chunks(batch.max(1))
        .map(|part| part.par_iter().map(read).collect::<Result<Batch, FeatureError>>());
    let mut table = Table::new(&encoder.about);
    let total = windows.len() as u64;
    pipe::run(encoder, &mut table, batches, total, listener)?;
    let (scale, _) = slide.working_scale(mpp)?;
    let (width, height) = slide.dimensions();
    table.tiles = Some(Tiles {
        slide: name,
        side: side as i64,
        level0: (side as f64 * scale).round() as i64,
        mpp: mpp.get(),
        level0_mpp: slide.resolution()?.mean().get(),
        extent: (width as i64, height as i64),
    });
    Ok(table)
}
