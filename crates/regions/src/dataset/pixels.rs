//! A digest of decoded pixels: copies of an image in files of other formats, codings or metadata have the same.

use base::digest::hex;
use mitosis::RgbTile;
use sha2::{Digest, Sha256};
use slide::{Rect, Slide};

/// Most pixels of an image that is read whole.
const WHOLE: u64 = 1 << 22;
/// Most pixels of an image that is decoded in one piece, as PNG and JPEG are; larger ones have no digest.
const MOST_FLAT: u64 = 1 << 25;
/// Side of the parts that are read of a larger image.
const SIDE: usize = 256;

/// Digest of the size and pixels of an image, of a large one of five parts. `None` where they are of one colour, as
/// those of many images may be, where reading them takes long, or where they cannot be read, which a reader of the
/// dataset reports.
pub(crate) fn pixel_digest(slide: &Slide) -> Option<String> {
    let (w, h) = slide.dimensions();
    let is_flat = ["png", "jpeg"].contains(&slide.format());
    let area = w.checked_mul(h)?;
    if is_flat && area > MOST_FLAT {
        return None;
    }
    let all = Rect::new(0, 0, usize::try_from(w).ok()?, usize::try_from(h).ok()?);
    // What is decoded in one piece anyway is decoded once.
    let whole = match is_flat || area <= WHOLE {
        true => Some(slide.read_level(0, all).ok()?),
        false => None,
    };
    let parts = if area <= WHOLE { vec![all] } else { parts((w, h))? };
    let mut hash = Sha256::new();
    hash.update(w.to_le_bytes());
    hash.update(h.to_le_bytes());
    let (mut first, mut is_one_colour) = (None, true);
    for rect in parts {
        let part = match &whole {
            Some(tile) => cut(tile, rect)?,
            None => slide.read_level(0, rect).ok()?.data,
        };
        let colour = *first.get_or_insert([part[0], part[1], part[2]]);
        is_one_colour &= part.chunks_exact(3).all(|pixel| pixel == colour);
        hash.update(&part);
    }
    (!is_one_colour).then(|| hex(&hash.finalize()))
}

/// The pixels of a part of a tile.
fn cut(tile: &RgbTile, rect: Rect) -> Option<Vec<u8>> {
    let (x, y) = (usize::try_from(rect.x).ok()?, usize::try_from(rect.y).ok()?);
    let [width, height] = [rect.width, rect.height].map(|side| usize::try_from(side).ok());
    let (width, height) = (width?, height?);
    let rows = tile.data.chunks_exact(3 * tile.width).skip(y).take(height);
    Some(rows.flat_map(|row| &row[3 * x..3 * (x + width)]).copied().collect())
}

/// Squares in the middle of an image and of each of its quarters.
fn parts((w, h): (u64, u64)) -> Option<Vec<Rect>> {
    // A strip may be narrower than a square.
    let side = |n: u64| SIDE.min(usize::try_from(n / 4).unwrap_or(SIDE)).max(1);
    let (width, height) = (side(w), side(h));
    let corner =
        |v: u64, side: usize| i64::try_from(v).ok()?.checked_sub(i64::try_from(side / 2).ok()?);
    let around = |(x, y): (u64, u64)| {
        let (x, y) = (corner(x, width)?, corner(y, height)?);
        Some(Rect::new(x.max(0), y.max(0), width, height))
    };
    let places = [(4, 4), (2, 2), (6, 2), (2, 6), (6, 6)];
    places.into_iter().map(|(x, y)| around((w / 8 * x, h / 8 * y))).collect()
}
