//! Features of crops or slide tiles, by any encoder.

mod error;
mod table;

pub use error::EmbedError;
pub use table::{Row, Table, Tiles};

use corpus::{Columns, Corpus};
use mitosis::{Mpp, RgbTile};
use rayon::prelude::*;
use slide::{Slide, TissueMask, WindowPlan};
use std::path::{Path, PathBuf};
use train::embed::Embedder;

/// What is embedded.
#[derive(Clone, Debug)]
pub enum Source {
    /// The crops of a corpus.
    Crops(PathBuf),
    /// The tissue tiles of a slide.
    Tiles {
        /// The slide.
        slide: PathBuf,
        /// um/px of its level 0, for a file that states none.
        level0: Option<Mpp>,
        /// um/px of the tiles.
        mpp: Mpp,
        /// Side of a tile, px.
        side: u32,
    },
}

/// Checks that features of `source` can be written to `out`: whether it is HDF5.
///
/// # Errors
/// [`EmbedError::Form`] or [`EmbedError::Crops`].
pub fn is_hdf5(out: &Path, source: &Source) -> Result<bool, EmbedError> {
    match (out.extension().and_then(|e| e.to_str()).unwrap_or_default(), source) {
        ("parquet", _) => Ok(false),
        ("h5" | "hdf5", Source::Tiles { .. }) => Ok(true),
        ("h5" | "hdf5", Source::Crops(_)) => Err(EmbedError::Crops(out.to_owned())),
        _ => Err(EmbedError::Form(out.to_owned())),
    }
}

/// Features of every crop or tile of `source`, `batch` at a time.
///
/// # Errors
/// [`EmbedError`].
pub fn embed(net: &Embedder, source: &Source, batch: usize) -> Result<Table, EmbedError> {
    let mut table = Table::new(net.architecture(), net.dim());
    table.random = net.random().join(",");
    match source {
        Source::Crops(dir) => crops(net, dir, batch, &mut table)?,
        Source::Tiles { slide, level0, mpp, side } => {
            let options = slide::OpenOptions { mpp: *level0, ..slide::OpenOptions::default() };
            let opened = Slide::open_with(slide, &options)?;
            tiles(net, &opened, (*mpp, *side), batch, &mut table)?;
        }
    }
    Ok(table)
}

fn crops(net: &Embedder, dir: &Path, batch: usize, table: &mut Table) -> Result<(), EmbedError> {
    let corpus = Corpus::open(dir)?;
    let mut waiting: Vec<(Row, RgbTile)> = vec![];
    let mut flush = |waiting: &mut Vec<(Row, RgbTile)>| {
        let (rows, tiles): (Vec<_>, Vec<_>) = waiting.drain(..).unzip();
        table.extend(rows, &net.embed(&tiles));
    };
    for crop in corpus.crops(Columns::All)? {
        let crop = crop?;
        let tile = crop.decode()?;
        let m = crop.meta;
        let (x, y) = m.centroid.map_or((f64::NAN, f64::NAN), |p| (p.x, p.y));
        let row = Row {
            name: m.path,
            slide: m.slide,
            label: m.label.name().into(),
            subtype: m.subtype.unwrap_or_default(),
            split: m.split.name().into(),
            x,
            y,
        };
        waiting.push((row, tile));
        if waiting.len() == batch {
            flush(&mut waiting);
        }
    }
    flush(&mut waiting);
    Ok(())
}

fn tiles(
    net: &Embedder,
    slide: &Slide,
    (mpp, side): (Mpp, u32),
    batch: usize,
    table: &mut Table,
) -> Result<(), EmbedError> {
    let mask = TissueMask::find(slide)?;
    let pixels = side as usize;
    let plan = WindowPlan::new(slide, mpp, pixels, pixels, Some(&mask))?;
    let name = slide.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let windows: Vec<_> = plan.iter().collect();
    for part in windows.chunks(batch) {
        let read = |w: &slide::PlannedWindow| slide.read_at(mpp, w.x, w.y, pixels, pixels);
        let read = part.par_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let rows = part.iter().map(|w| {
            let at = plan.level0(*w);
            Row {
                name: format!("{name}_{}_{}", at.x, at.y),
                slide: name.clone(),
                label: "unlabeled".into(),
                subtype: String::new(),
                split: "unassigned".into(),
                x: at.x as f64,
                y: at.y as f64,
            }
        });
        table.extend(rows.collect(), &net.embed(&read));
    }
    let (scale, _) = slide.working_scale(mpp)?;
    let level0 = (f64::from(side) * scale).round() as i64;
    table.tiles = Some(Tiles { side: i64::from(side), level0, mpp: mpp.get() });
    Ok(())
}
