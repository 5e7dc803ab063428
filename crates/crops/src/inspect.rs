//! What a corpus holds, as figures and as a montage.

use crate::error::{CorpusError, Result};
use crate::reader::{Corpus, StreamOptions};
use crate::schema::Label;
use crate::shard::Columns;
use mitosis::RgbTile;
use serde::Serialize;
use std::collections::BTreeMap;

/// Bins of a score histogram: [0, 0.05), ..., [0.95, 1].
pub const BINS: usize = 20;

/// Histograms of both scores, per label.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Histograms {
    /// First-stage scores per label.
    pub s_seg: BTreeMap<&'static str, [u64; BINS]>,
    /// Second-stage scores per label.
    pub s_cls: BTreeMap<&'static str, [u64; BINS]>,
}

/// Score histograms of a corpus; empty maps when no crop has scores.
///
/// # Errors
/// When a shard cannot be read.
pub fn histograms(corpus: &Corpus) -> Result<Histograms> {
    let mut h = Histograms::default();
    for crop in corpus.crops(Columns::Meta)? {
        let m = crop?.meta;
        for (score, table) in [(m.s_seg, &mut h.s_seg), (m.s_cls, &mut h.s_cls)] {
            if let Some(s) = score {
                table.entry(m.label.name()).or_default()[bin(s.get())] += 1;
            }
        }
    }
    Ok(h)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "scores are in [0, 1]")]
fn bin(score: f32) -> usize {
    ((f64::from(score) * BINS as f64) as usize).min(BINS - 1)
}

/// Draws up to `columns` crops of each label, chosen by the seed, into one picture: a row per
/// label (figures, mimickers, unlabelled; empty rows left out), every crop scaled to `cell` pixels.
///
/// # Errors
/// When a crop cannot be decoded, or the corpus is empty.
pub fn montage(corpus: &Corpus, columns: usize, cell: u32, seed: u64) -> Result<RgbTile> {
    let mut rows: BTreeMap<Label, Vec<RgbTile>> = BTreeMap::new();
    let wanted = |l: Label| corpus.manifest().counts.labels.get(l.name()).copied().unwrap_or(0) > 0;
    let labels: Vec<Label> = Label::ALL.into_iter().filter(|&l| wanted(l)).collect();
    let options = StreamOptions { buffer: 2048, ..StreamOptions::shuffled(seed, 0) };
    for crop in corpus.stream(options)? {
        let crop = crop?;
        let row = rows.entry(crop.meta.label).or_default();
        if row.len() < columns {
            row.push(scaled(&crop.decode()?, cell)?);
        }
        if labels.iter().all(|l| rows.get(l).is_some_and(|r| r.len() >= columns)) {
            break;
        }
    }
    if rows.is_empty() || columns == 0 || cell == 0 {
        return Err(CorpusError::Invalid("nothing to show in a montage".into()));
    }
    let (gap, side) = (4usize, cell as usize);
    let (w, h) = (columns * (side + gap) + gap, labels.len() * (side + gap) + gap);
    let mut out = RgbTile::filled(w, h, [255, 255, 255]);
    for (r, label) in labels.iter().enumerate() {
        for (c, tile) in rows.get(label).into_iter().flatten().enumerate() {
            for y in 0..side {
                let to = 3 * ((gap + r * (side + gap) + y) * w + gap + c * (side + gap));
                out.data[to..to + 3 * side].copy_from_slice(&tile.data[3 * y * side..][..3 * side]);
            }
        }
    }
    Ok(out)
}

fn scaled(tile: &RgbTile, side: u32) -> Result<RgbTile> {
    let size = |n: usize| u32::try_from(n).unwrap_or(0);
    let image = image::RgbImage::from_raw(size(tile.width), size(tile.height), tile.data.clone())
        .ok_or_else(|| CorpusError::Invalid("a crop of no size".into()))?;
    let small = image::imageops::resize(&image, side, side, image::imageops::FilterType::Triangle);
    Ok(RgbTile::new(side as usize, side as usize, small.into_raw()))
}
