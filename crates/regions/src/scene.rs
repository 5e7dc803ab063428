//! Labelled images for training, and the places in them worth showing to a model.

use std::path::{Path, PathBuf};

use mitosis::RgbTile;

/// Errors of reading training images and labels.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum CropError {
    /// A file or folder could not be read.
    #[error("{path}: {reason}")]
    Read {
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
}

impl CropError {
    pub(crate) fn read(path: &Path, reason: impl ToString) -> Self {
        Self::Read { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

/// A place in one of several images, pixels at the working resolution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledPlace {
    /// Index of the image.
    pub scene: usize,
    /// Rightwards.
    pub x: f32,
    /// Downwards.
    pub y: f32,
}

/// What is at a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A mitotic figure.
    Figure,
    /// Something whose pixels must not teach anything (an MF hidden by paint, a doubtful one).
    Ignore,
}

/// A labelled place, in pixels of its image (pixel centres are at .5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Centre, rightwards.
    pub x: f32,
    /// Centre, downwards.
    pub y: f32,
    /// Half of the larger side of its box.
    pub half: f32,
    /// What it is.
    pub kind: MarkKind,
}

/// An image with all of its figures marked. Pixels away from every mark are negative.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Name of the image, for messages and provenance.
    pub name: String,
    /// The source it was cut from (slide): the unit of folds.
    pub source: String,
    /// Pixels at the working resolution.
    pub image: RgbTile,
    /// Every figure in it.
    pub marks: Vec<Mark>,
    /// Some figures of this image are known to be hidden, so it cannot be evaluated on.
    pub partial: bool,
}

impl Scene {
    /// Squared distance to the nearest mark, pixels^2; infinite without marks.
    #[must_use]
    pub fn nearest_mark(&self, x: f32, y: f32) -> f32 {
        self.marks
            .iter()
            .map(|m| (m.x - x).powi(2) + (m.y - y).powi(2))
            .fold(f32::INFINITY, f32::min)
    }

    /// The `size` x `size` square centred at (x, y), mirrored at the image's edge.
    #[must_use]
    pub fn cut(&self, x: f32, y: f32, size: usize) -> RgbTile {
        let corner = |c: f32| (c - size as f32 / 2.0).round() as i64;
        let (x0, y0) = (corner(x), corner(y));
        let mut data = Vec::with_capacity(3 * size * size);
        for j in 0..size as i64 {
            let sy = mirror(y0 + j, self.image.height);
            for i in 0..size as i64 {
                data.extend(self.image.pixel(mirror(x0 + i, self.image.width), sy));
            }
        }
        RgbTile::new(size, size, data)
    }
}

pub(crate) use pixels::mirror;

/// Replaces all-black strips at the edge (outside the scanned region) by the mirror image of
/// the adjacent pixels: they would reveal the source. Returns their widths in pixels.
pub(crate) fn fill_black_edges(tile: &mut RgbTile) -> [usize; 4] {
    let (w, h) = (tile.width, tile.height);
    let black = |t: &RgbTile, x: usize, y: usize| t.pixel(x, y).iter().all(|&v| v <= 3);
    let row = |t: &RgbTile, y: usize| (0..w).all(|x| black(t, x, y));
    let col = |t: &RgbTile, x: usize| (0..h).all(|y| black(t, x, y));
    let half = |n: usize, edge: usize| edge.min(n / 2 - 1);
    let left = half(w, (0..w).take_while(|&x| col(tile, x)).count());
    let right = half(w, (0..w).take_while(|&x| col(tile, w - 1 - x)).count());
    let top = half(h, (0..h).take_while(|&y| row(tile, y)).count());
    let bottom = half(h, (0..h).take_while(|&y| row(tile, h - 1 - y)).count());
    if left + right + top + bottom > 0 {
        let reflect = |i: usize, lo: usize, n: usize| lo + mirror(i as i64 - lo as i64, n);
        let source = tile.clone();
        for y in 0..h {
            let sy = reflect(y, top, h - top - bottom);
            for x in 0..w {
                let sx = reflect(x, left, w - left - right);
                let at = 3 * (y * w + x);
                tile.data[at..at + 3].copy_from_slice(&source.pixel(sx, sy));
            }
        }
    }
    [left, top, right, bottom]
}

/// Decodes a flat image file to RGB, transparency onto white.
///
/// # Errors
/// [`CropError::Read`] when the file is missing, and what [`slide::read_picture`] refuses.
pub fn read_rgb(path: &Path) -> Result<RgbTile, CropError> {
    let bytes = base::file::read_whole(path).map_err(|e| CropError::read(path, e))?;
    slide::read_picture(&bytes).map_err(|e| CropError::read(path, e))
}

/// Places that look like dark nuclei and are at least `clear_px` from every mark: local minima of
/// the brightness averaged over 9 x 9 px, at least 12 px apart, darkest first.
///
/// They are non-mitotic by the scene's exhaustive labels, and harder than random tissue.
#[must_use]
pub fn dark_places(scene: &Scene, clear_px: f32, most: usize) -> Vec<(f32, f32)> {
    const HALF: usize = 4;
    let (w, h) = (scene.image.width, scene.image.height);
    if w < 32 || h < 32 {
        return vec![];
    }
    // Integral image of Rec. 601 luma.
    let mut sums = vec![0_u64; (w + 1) * (h + 1)];
    for y in 0..h {
        let mut row = 0_u64;
        for x in 0..w {
            let [r, g, b] = scene.image.pixel(x, y).map(u64::from);
            row += (299 * r + 587 * g + 114 * b) / 1000;
            sums[(y + 1) * (w + 1) + x + 1] = sums[y * (w + 1) + x + 1] + row;
        }
    }
    let mean = |x: usize, y: usize| {
        let (x0, x1, y0, y1) = (x - HALF, x + HALF + 1, y - HALF, y + HALF + 1);
        let at = |x: usize, y: usize| sums[y * (w + 1) + x];
        (at(x1, y1) + at(x0, y0) - at(x0, y1) - at(x1, y0)) as f32
            / ((2 * HALF + 1) * (2 * HALF + 1)) as f32
    };
    let mut found: Vec<(f32, usize, usize)> = vec![];
    // Coarse grid of 8 px, then the darkest 2-px step around each node.
    for gy in (12..h - 12).step_by(8) {
        for gx in (12..w - 12).step_by(8) {
            let (mut best, mut bx, mut by) = (f32::INFINITY, gx, gy);
            for y in (gy - 6..=gy + 6).step_by(2) {
                for x in (gx - 6..=gx + 6).step_by(2) {
                    let v = mean(x, y);
                    if v < best {
                        (best, bx, by) = (v, x, y);
                    }
                }
            }
            if best < 150.0 {
                found.push((best, bx, by));
            }
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.2, a.1).cmp(&(b.2, b.1))));
    let mut kept: Vec<(f32, f32)> = vec![];
    let mut taken = std::collections::HashSet::new();
    for (_, x, y) in found {
        if kept.len() == most {
            break;
        }
        let (fx, fy) = (x as f32 + 0.5, y as f32 + 0.5);
        let (cx, cy) = ((x / 12) as i64, (y / 12) as i64);
        let crowded = (-1..=1).any(|dy| (-1..=1).any(|dx| taken.contains(&(cx + dx, cy + dy))));
        if !crowded && scene.nearest_mark(fx, fy) >= clear_px * clear_px {
            taken.insert((cx, cy));
            kept.push((fx, fy));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene_with(dark: &[(usize, usize)], marks: Vec<Mark>) -> Scene {
        let mut image = RgbTile::filled(200, 160, [220, 180, 200]);
        for &(cx, cy) in dark {
            for y in cy - 6..cy + 6 {
                for x in cx - 6..cx + 6 {
                    let i = 3 * (y * 200 + x);
                    image.data[i..i + 3].fill(40);
                }
            }
        }
        Scene { name: "t".into(), source: "t".into(), image, marks, partial: false }
    }

    #[test]
    fn finds_dark_nuclei_away_from_marks() {
        let mark = Mark { x: 50.0, y: 50.0, half: 12.0, kind: MarkKind::Figure };
        let scene = scene_with(&[(50, 50), (150, 100)], vec![mark]);
        let found = dark_places(&scene, 30.0, 10);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((found[0].0 - 150.0).abs() < 6.0 && (found[0].1 - 100.0).abs() < 6.0);
    }

    #[test]
    fn black_edges_become_mirrors() {
        let mut t = RgbTile::filled(16, 16, [9, 9, 9]);
        for y in 0..16 {
            for x in 0..4 {
                t.data[3 * (y * 16 + x)..][..3].fill(0);
            }
            t.data[3 * (y * 16 + 6)..][..3].fill(99);
        }
        assert_eq!(fill_black_edges(&mut t), [4, 0, 0, 0]);
        assert_eq!(t.pixel(2, 5), [99; 3]);
    }

    #[test]
    fn cuts_are_centred_and_mirrored() {
        let scene = scene_with(&[(50, 50)], vec![]);
        let crop = scene.cut(50.0, 50.0, 20);
        assert_eq!(crop.pixel(10, 10), [40; 3]);
        assert_eq!(crop.pixel(0, 0), [220, 180, 200]);
        assert_eq!(scene.cut(0.0, 0.0, 128).width, 128);
    }

    #[test]
    fn images_are_read_by_the_rules_of_slides() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("crop.png");
        let clear = |x, _| image::Rgba([0, 0, 0, if x == 0 { 0 } else { 255 }]);
        image::RgbaImage::from_fn(2, 1, clear).save(&path).unwrap();
        assert_eq!(read_rgb(&path).unwrap().data, [255, 255, 255, 0, 0, 0]);
        image::RgbImage::new(2, 1).save(&path).unwrap();
        let png = std::fs::read(&path).unwrap();
        let exif = b"\0\0\0\x1AeXIfII*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0\0\0\0\0";
        std::fs::write(&path, [&png[..33], exif, &png[33..]].concat()).unwrap();
        let refused = read_rgb(&path).unwrap_err().to_string();
        assert!(refused.contains("crop.png") && refused.contains("orientation 6"), "{refused}");
    }
}
