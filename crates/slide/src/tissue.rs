//! Where tissue is: Otsu on a grey overview, cleaned of specks and pinholes. Black and dark frames are neither tissue
//! nor glass.

use crate::outline::{self, Outlines, Polygon};
use crate::{Rect, Slide, SlideError, otsu};
use mitosis::{Level0, Mpp, Point};
use serde::Serialize;
use std::collections::VecDeque;

/// Greys up to here are where nothing was scanned: frames, and parts that a conversion filled. Stained tissue is
/// brighter at the resolution of an overview.
const BLACK: u8 = 12;
/// Pixels of a frame that is dark grey have no channel from here on,
const FRAME_BELOW: u8 = 75;
/// and channels that are less than this apart; no stain is as dark with so little colour, but for pigment and ink.
const FRAME_CHROMA: u8 = 25;
/// Share of the overview from which on a dark corner is a frame.
const FRAME_SHARE: f64 = 0.01;

/// Parameters of the mask; each is written out with the result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TissueOptions {
    /// Resolution of the overview, um/px. Small images use a finer one, so that their longer side
    /// has at least [`TissueOptions::min_side`] pixels where the image itself has them.
    pub mpp: Mpp,
    /// Pixels that the longer side of the overview shall have.
    pub min_side: u64,
    /// Tissue pieces below this area are dropped, mm2 (at most 1 % of the slide).
    pub min_object_mm2: f64,
    /// Holes below this area are filled, mm2 (at most 1 % of the slide).
    pub max_hole_mm2: f64,
    /// A bright class whose mean grey is below this is not a glass: the image is all tissue.
    pub glass_grey: f64,
    /// Two classes whose mean greys differ by less are one: a blank slide, or an image of tissue.
    pub min_contrast: f64,
}

impl Default for TissueOptions {
    fn default() -> Self {
        Self {
            mpp: match Mpp::new(8.0) {
                Ok(v) => v,
                Err(_) => Mpp::PAPER,
            },
            min_side: 512,
            min_object_mm2: 0.02,
            max_hole_mm2: 0.05,
            glass_grey: 205.0,
            min_contrast: 12.0,
        }
    }
}

/// How the mask was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TissueRule {
    /// Grey at or below Otsu's threshold is tissue.
    Otsu,
    /// The image has no glass: all of it is tissue.
    NoGlass,
    /// One bright class: no tissue at all.
    Blank,
}

/// A mask over the slide: mask pixel (i, j) covers `[i, i+1) x [j, j+1)` pixels of `mpp` from the
/// level-0 origin.
#[derive(Clone, Debug)]
pub struct TissueMask {
    /// Resolution of a mask pixel.
    pub mpp: Mpp,
    /// Mask pixels per row.
    pub width: usize,
    /// Mask rows.
    pub height: usize,
    /// Row-major; true is tissue.
    pub mask: Vec<bool>,
    /// Otsu's threshold on the overview, if there were two greys.
    pub threshold: Option<u8>,
    /// How the mask was decided.
    pub rule: TissueRule,
    /// Mask pixels that are black or of a dark frame, with those next to them.
    pub not_scanned: usize,
    /// Mask pixels of tiles that cannot be decoded; they count as tissue.
    pub unread: usize,
    /// Level-0 pixels per mask pixel.
    scale: (f64, f64),
    /// Level-0 size.
    extent: (u64, u64),
    /// `sums[(y, x)]`: tissue pixels above and left, one row and column more than the mask.
    sums: Vec<u32>,
}

/// A slide in grey at a low resolution.
struct Overview<'a> {
    grey: &'a [u8],
    /// Pixels of a dark frame; empty where colours are not known.
    frame: &'a [bool],
    /// Pixels that nobody could read; empty where all were.
    unseen: &'a [bool],
    /// Width and height, px.
    size: (usize, usize),
    mpp: Mpp,
    /// Level-0 pixels per pixel.
    scale: (f64, f64),
    /// Level-0 size.
    extent: (u64, u64),
}

impl TissueMask {
    /// Finds the tissue of a slide with the default options.
    ///
    /// # Errors
    /// When the slide has no resolution or cannot be read at all.
    pub fn find(slide: &Slide) -> Result<Self, SlideError> {
        Self::find_with(slide, &TissueOptions::default())
    }

    /// Finds the tissue of a slide. Where a tile cannot be decoded nobody can show: that part counts
    /// as tissue, so that it is asked for again, and missed, when the tissue is read.
    ///
    /// # Errors
    /// When the slide has no resolution or cannot be read at all.
    pub fn find_with(slide: &Slide, options: &TissueOptions) -> Result<Self, SlideError> {
        let own = slide.resolution()?.mean().get();
        let (w, h) = slide.dimensions();
        let enough = own * w.max(h) as f64 / options.min_side.max(1) as f64;
        let mpp = options.mpp.get().min(enough).max(own);
        let mpp = Mpp::new(mpp).unwrap_or(options.mpp);
        let (image, unread) = slide.overview(mpp)?;
        let (width, height) = (image.width, image.height);
        let pixels = image.data.as_chunks::<3>().0;
        let grey: Vec<u8> = pixels.iter().map(|p| otsu::grey(*p)).collect();
        let frame = frame(pixels, width);
        drop(image);
        let scale = slide.working_scale(mpp)?;
        let (size, extent) = ((width, height), (w, h));
        let mut unseen = vec![false; if unread.is_empty() { 0 } else { grey.len() }];
        for rect in unread.into_iter().map(|at| slide.tile_rect(at)) {
            let span = |a: i64, n: u64, scale: f64, most: usize| {
                let end = ((a as f64 + n as f64) / scale).ceil() as usize;
                (a as f64 / scale).floor() as usize..end.min(most)
            };
            for y in span(rect.y, rect.height, scale.1, height) {
                unseen[y * width..][span(rect.x, rect.width, scale.0, width)].fill(true);
            }
        }
        let (grey, frame, unseen) = (&grey, &frame, &unseen);
        let overview = Overview { grey, frame, unseen, size, mpp, scale, extent };
        Ok(Self::of_overview(overview, options))
    }

    /// The mask of a grey overview. `scale`: level-0 pixels per overview pixel; `extent`: level-0 size.
    ///
    /// # Panics
    /// When `grey` has not `size.0 * size.1` values.
    #[must_use]
    pub fn from_grey(
        grey: &[u8],
        size: (usize, usize),
        mpp: Mpp,
        scale: (f64, f64),
        extent: (u64, u64),
        options: &TissueOptions,
    ) -> Self {
        let (frame, unseen) = (&[], &[]);
        Self::of_overview(Overview { grey, frame, unseen, size, mpp, scale, extent }, options)
    }

    /// The mask of an overview parts of which were not seen: they are not a grey, and count as tissue.
    fn of_overview(overview: Overview<'_>, options: &TissueOptions) -> Self {
        let Overview { grey, frame, unseen, size: (width, height), mpp, scale, extent } = overview;
        assert_eq!(
            grey.len(),
            width * height,
            "a {width} x {height} overview needs {} greys",
            width * height
        );
        let mut histogram = [0u64; 256];
        let empty = not_scanned(grey, frame, width);
        let hidden = |i: usize| empty[i] || unseen.get(i).is_some_and(|u| *u);
        for (_, g) in grey.iter().enumerate().filter(|(i, _)| !hidden(*i)) {
            histogram[usize::from(*g)] += 1;
        }
        let threshold = otsu::threshold(&histogram);
        let rule = decide(&histogram, threshold, options);
        let mut mask: Vec<bool> = match (rule, threshold) {
            (TissueRule::Otsu, Some(t)) => {
                grey.iter().zip(&empty).map(|(g, empty)| *g <= t && !empty).collect()
            }
            (TissueRule::NoGlass, _) => empty.iter().map(|empty| !empty).collect(),
            _ => vec![false; grey.len()],
        };
        if rule != TissueRule::Blank {
            let pixel = mpp.get() * mpp.get() * 1e-6;
            let most = grey.len() as f64 * 0.01;
            let limit = |mm2: f64| (mm2 / pixel).min(most).ceil() as usize;
            // Holes first: a ring of tissue is then judged by its whole area.
            flip_small(&mut mask, width, false, limit(options.max_hole_mm2));
            flip_small(&mut mask, width, true, limit(options.min_object_mm2));
        }
        for (tissue, unseen) in mask.iter_mut().zip(unseen) {
            *tissue |= unseen;
        }
        let sums = summed(&mask, width, height);
        let count = |all: &[bool]| all.iter().filter(|is| **is).count();
        let (not_scanned, unread) = (count(&empty), count(unseen));
        Self { mpp, width, height, mask, threshold, rule, not_scanned, unread, scale, extent, sums }
    }

    /// Why versions 1 and 2 of the numbers may have found other tissue; none where they found the same.
    #[must_use]
    pub fn found_otherwise(&self) -> Option<String> {
        (self.not_scanned > 0)
            .then(|| "parts are black or a dark frame, which were taken for tissue".to_owned())
    }

    /// Whether there is any tissue.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sums.last().is_none_or(|n| *n == 0)
    }

    /// Tissue area in mm2. Mask pixels that reach over the slide's edge count with their part inside.
    #[must_use]
    pub fn area_mm2(&self) -> f64 {
        self.area_mm2_where(|_| true)
    }

    /// Tissue area in mm2 over the mask pixels whose centre (level-0) is wanted, e.g. those outside
    /// all unread windows.
    #[must_use]
    pub fn area_mm2_where(&self, mut wanted: impl FnMut(Point<Level0>) -> bool) -> f64 {
        self.area_mm2_weighted(|_, p| if wanted(p) { 1.0 } else { 0.0 })
    }

    /// Tissue area in mm2, each mask pixel counting with its weight, 0 to 1. `weight` is asked with the pixel's
    /// column and row and with its centre (level-0).
    #[must_use]
    pub fn area_mm2_weighted(
        &self,
        mut weight: impl FnMut((usize, usize), Point<Level0>) -> f64,
    ) -> f64 {
        let part =
            |i: usize, scale: f64, extent: u64| (extent as f64 / scale - i as f64).clamp(0.0, 1.0);
        let columns: Vec<f64> =
            (0..self.width).map(|i| part(i, self.scale.0, self.extent.0)).collect();
        let mut pixels = 0.0;
        for (j, line) in self.mask.chunks_exact(self.width.max(1)).enumerate() {
            let y = (j as f64 + 0.5) * self.scale.1;
            let tissue = line.iter().enumerate().filter(|(_, t)| **t);
            let share = |(i, _): (usize, &bool)| {
                columns[i] * weight((i, j), Point::new((i as f64 + 0.5) * self.scale.0, y))
            };
            let row: f64 = tissue.map(share).sum();
            pixels += row * part(j, self.scale.1, self.extent.1);
        }
        pixels * self.mpp.get() * self.mpp.get() * 1e-6
    }

    /// Level-0 pixels per mask pixel, across and down.
    #[must_use]
    pub fn scale(&self) -> (f64, f64) {
        self.scale
    }

    /// The same mask with the pixels alone that are kept, asked by column and row.
    #[must_use]
    pub fn restricted(&self, mut keep: impl FnMut(usize, usize) -> bool) -> Self {
        let at = |(i, t): (usize, &bool)| *t && keep(i % self.width.max(1), i / self.width.max(1));
        let mask: Vec<bool> = self.mask.iter().enumerate().map(at).collect();
        let sums = summed(&mask, self.width, self.height);
        Self { mask, sums, ..self.clone() }
    }

    /// Whether a level-0 rectangle touches tissue.
    #[must_use]
    pub fn covers(&self, r: Rect) -> bool {
        let span = |a: i64, n: u64, scale: f64, most: usize| {
            let lo = (a as f64 / scale).floor().clamp(0.0, most as f64) as usize;
            let hi = ((a as f64 + n as f64) / scale).ceil().clamp(0.0, most as f64) as usize;
            (lo, hi.max(lo))
        };
        let (x0, x1) = span(r.x, r.width, self.scale.0, self.width);
        let (y0, y1) = span(r.y, r.height, self.scale.1, self.height);
        let at = |y: usize, x: usize| self.sums[y * (self.width + 1) + x];
        at(y1, x1) + at(y0, x0) > at(y0, x1) + at(y1, x0)
    }

    /// Whether a level-0 point is on tissue.
    #[must_use]
    pub fn contains(&self, p: Point<Level0>) -> bool {
        let (x, y) = ((p.x / self.scale.0).floor(), (p.y / self.scale.1).floor());
        x >= 0.0
            && y >= 0.0
            && (x as usize) < self.width
            && (y as usize) < self.height
            && self.mask[y as usize * self.width + x as usize]
    }

    /// Whether a level-0 point is on tissue or at most `um` micrometres next to it.
    #[must_use]
    pub fn near(&self, p: Point<Level0>, um: f64) -> bool {
        if self.contains(p) {
            return true;
        }
        // In mask pixels, which are square in micrometres.
        let (x, y, reach) = (p.x / self.scale.0, p.y / self.scale.1, um / self.mpp.get());
        let span = |v: f64, most: usize| {
            let low = (v - reach).floor().clamp(0.0, most as f64) as usize;
            (low, ((v + reach).floor() + 1.0).clamp(low as f64, most as f64) as usize)
        };
        let ((x0, x1), (y0, y1)) = (span(x, self.width), span(y, self.height));
        // How far a coordinate is outside the pixel `i`.
        let off = |v: f64, i: usize| (i as f64 - v).max(v - i as f64 - 1.0).max(0.0);
        let close = |i: usize, j: usize| off(x, i).hypot(off(y, j)) <= reach;
        (y0..y1).any(|j| {
            let line = &self.mask[j * self.width..];
            (x0..x1).any(|i| line[i] && close(i, j))
        })
    }

    /// Outlines in level-0 pixels: per connected piece an outer ring and its holes.
    #[must_use]
    pub fn polygons(&self) -> Vec<Polygon> {
        let (w, h) = (self.extent.0 as f64, self.extent.1 as f64);
        outline::trace(&self.mask, self.width, |x, y| {
            [(x * self.scale.0).min(w), (y * self.scale.1).min(h)]
        })
    }

    /// The outlines as a GeoJSON FeatureCollection of annotations, as QuPath reads it; `offset`
    /// (level-0 px) is taken off every coordinate (QuPath counts from the slide's bounds).
    #[must_use]
    pub fn geojson(&self, offset: (i64, i64)) -> Outlines {
        Outlines::new(&self.polygons(), offset)
    }

    /// The mask as an 8-bit grey PNG, 255 is tissue.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn png(&self) -> Result<Vec<u8>, image::ImageError> {
        let data: Vec<u8> = self.mask.iter().map(|t| if *t { 255 } else { 0 }).collect();
        let mut out = std::io::Cursor::new(Vec::new());
        image::write_buffer_with_format(
            &mut out,
            &data,
            self.width as u32,
            self.height as u32,
            image::ExtendedColorType::L8,
            image::ImageFormat::Png,
        )?;
        Ok(out.into_inner())
    }
}

fn decide(histogram: &[u64; 256], threshold: Option<u8>, options: &TissueOptions) -> TissueRule {
    let mean = |range: std::ops::RangeInclusive<usize>| {
        let n: u64 = histogram[range.clone()].iter().sum();
        let s: u64 = range.map(|v| v as u64 * histogram[v]).sum();
        s as f64 / n.max(1) as f64
    };
    let uniform = || {
        if mean(0..=255) >= options.glass_grey { TissueRule::Blank } else { TissueRule::NoGlass }
    };
    let Some(t) = threshold.map(usize::from) else { return uniform() };
    let (dark, bright) = (mean(0..=t), mean(t + 1..=255));
    if bright - dark < options.min_contrast {
        uniform()
    } else if bright < options.glass_grey {
        TissueRule::NoGlass
    } else {
        TissueRule::Otsu
    }
}

/// Pixels that are black or of a dark frame, and their neighbours, in which an overview mixes them with what is next to
/// them.
fn not_scanned(grey: &[u8], frame: &[bool], width: usize) -> Vec<bool> {
    let height = grey.len().checked_div(width).unwrap_or(0);
    let mut all = vec![false; grey.len()];
    let seed = |i: &usize| grey[*i] <= BLACK || frame.get(*i).is_some_and(|f| *f);
    for i in (0..grey.len()).filter(seed) {
        let (x, y) = (i % width, i / width);
        for row in y.saturating_sub(1)..(y + 2).min(height) {
            all[row * width + x.saturating_sub(1)..row * width + (x + 2).min(width)].fill(true);
        }
    }
    all
}

/// The dark frame of a picture: pixels that are dark and without colour, connected with a corner of the picture through
/// such pixels, where together they are a part of it that is worth the name.
fn frame(pixels: &[[u8; 3]], width: usize) -> Vec<bool> {
    let height = pixels.len().checked_div(width).unwrap_or(0);
    let dark = |i: usize| {
        let [r, g, b] = pixels[i];
        let most = r.max(g).max(b);
        most < FRAME_BELOW && most - r.min(g).min(b) < FRAME_CHROMA
    };
    let mut all = vec![false; pixels.len()];
    if height == 0 {
        return all;
    }
    let last = pixels.len() - 1;
    for corner in [0, width - 1, last + 1 - width, last] {
        if all[corner] || !dark(corner) {
            continue;
        }
        let (mut piece, mut next) = (vec![corner], 0);
        all[corner] = true;
        while let Some(&i) = piece.get(next) {
            next += 1;
            for n in neighbours(i, width, height) {
                if !all[n] && dark(n) {
                    all[n] = true;
                    piece.push(n);
                }
            }
        }
        if (piece.len() as f64) < FRAME_SHARE * pixels.len() as f64 {
            piece.iter().for_each(|i| all[*i] = false);
        }
    }
    all
}

/// The pixels that share a side with one.
fn neighbours(i: usize, width: usize, height: usize) -> impl Iterator<Item = usize> {
    let (x, y) = (i % width, i / width);
    let all = [
        (x > 0).then(|| i - 1),
        (x + 1 < width).then_some(i + 1),
        (y > 0).then(|| i - width),
        (y + 1 < height).then_some(i + width),
    ];
    all.into_iter().flatten()
}

/// Flips the 4-connected pieces of `value` that have fewer than `limit` pixels. A hole at the
/// border of the image is not a hole.
fn flip_small(mask: &mut [bool], width: usize, value: bool, limit: usize) {
    let height = mask.len().checked_div(width).unwrap_or(0);
    let mut seen = vec![false; mask.len()];
    let (mut queue, mut piece) = (VecDeque::new(), Vec::new());
    for start in 0..mask.len() {
        if seen[start] || mask[start] != value {
            continue;
        }
        piece.clear();
        let (mut border, mut pixels) = (false, 0);
        seen[start] = true;
        queue.push_back(start);
        while let Some(i) = queue.pop_front() {
            pixels += 1;
            // One that is large enough stays: its pixels are counted alone.
            if pixels < limit {
                piece.push(i);
            }
            let (x, y) = (i % width, i / width);
            border |= x == 0 || y == 0 || x + 1 == width || y + 1 == height;
            for n in neighbours(i, width, height) {
                if !seen[n] && mask[n] == value {
                    seen[n] = true;
                    queue.push_back(n);
                }
            }
        }
        if pixels < limit && (value || !border) {
            for i in &piece {
                mask[*i] = !value;
                // A flipped hole is judged no more.
                seen[*i] = true;
            }
        }
    }
}

fn summed(mask: &[bool], width: usize, height: usize) -> Vec<u32> {
    let mut sums = vec![0u32; (width + 1) * (height + 1)];
    for y in 0..height {
        let mut row = 0;
        for x in 0..width {
            row += u32::from(mask[y * width + x]);
            sums[(y + 1) * (width + 1) + x + 1] = sums[y * (width + 1) + x + 1] + row;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(grey: &[u8], w: usize) -> TissueMask {
        let h = grey.len() / w;
        let mpp = Mpp::new(8.0).unwrap();
        let options = TissueOptions {
            min_object_mm2: 10.0 * 64e-6,
            max_hole_mm2: 10.0 * 64e-6,
            ..Default::default()
        };
        TissueMask::from_grey(
            grey,
            (w, h),
            mpp,
            (32.0, 32.0),
            (w as u64 * 32, h as u64 * 32),
            &options,
        )
    }

    /// 40 x 40, glass 240, a 20 x 20 square of 120 with one pinhole, and one speck.
    fn square() -> Vec<u8> {
        let mut g = vec![240u8; 1600];
        for y in 10..30 {
            for x in 10..30 {
                g[y * 40 + x] = 120;
            }
        }
        g[20 * 40 + 20] = 240;
        g[2 * 40 + 2] = 100;
        g
    }

    #[test]
    fn specks_go_and_pinholes_close() {
        let m = find(&square(), 40);
        assert_eq!(m.rule, TissueRule::Otsu);
        assert_eq!(m.mask.iter().filter(|t| **t).count(), 400);
        assert!((m.area_mm2() - 400.0 * 64e-6).abs() < 1e-12);
        assert!(m.contains(Point::new(20.5 * 32.0, 20.5 * 32.0)));
        assert!(!m.contains(Point::new(2.5 * 32.0, 2.5 * 32.0)));
    }

    #[test]
    fn near_tissue_is_measured_from_its_border() {
        // Tissue from 320 to 960 px of 0.25 um.
        let m = find(&square(), 40);
        let near = |x: f64, y: f64| m.near(Point::new(x, y), 20.0);
        assert!(near(500.0, 500.0) && near(320.0 - 79.0, 500.0) && near(500.0, 960.0 + 79.0));
        assert!(!near(320.0 - 81.0, 500.0) && !near(500.0, 960.0 + 81.0));
        // Across the corner it is the distance that counts, not the two axes.
        assert!(near(320.0 - 55.0, 320.0 - 55.0) && !near(320.0 - 60.0, 320.0 - 60.0));
        assert!(!near(-1e9, 1e9));
    }

    #[test]
    fn what_was_not_seen_counts_as_tissue_and_moves_no_threshold() {
        let mut grey = square();
        let seen = find(&grey, 40);
        let unseen: Vec<bool> = (0..1600).map(|i| i < 5 * 40 && i % 40 < 5).collect();
        for (g, u) in grey.iter_mut().zip(&unseen) {
            *g = if *u { 0 } else { *g };
        }
        let mpp = Mpp::new(8.0).unwrap();
        let area = 10.0 * 64e-6;
        let options =
            TissueOptions { min_object_mm2: area, max_hole_mm2: area, ..Default::default() };
        let all = (1280, 1280);
        let (size, scale) = ((40, 40), (32.0, 32.0));
        let (frame, unseen) = (&[], &unseen);
        let overview = Overview { grey: &grey, frame, unseen, size, mpp, scale, extent: all };
        let m = TissueMask::of_overview(overview, &options);
        assert_eq!(m.threshold, seen.threshold);
        assert!(m.contains(Point::new(40.0, 40.0)) && !seen.contains(Point::new(40.0, 40.0)));
        assert_eq!(m.mask.iter().filter(|t| **t).count(), 400 + 25);
    }

    #[test]
    fn rectangles_touch_tissue_or_not() {
        let m = find(&square(), 40);
        let r = |x, y, width, height| Rect { x, y, width, height };
        assert!(m.covers(r(0, 0, 10_000, 10_000)));
        assert!(m.covers(r(320, 320, 1, 1)));
        assert!(!m.covers(r(0, 0, 320, 320)));
        assert!(m.covers(r(0, 0, 321, 321)));
        assert!(!m.covers(r(-500, -500, 100, 100)));
        assert!(!m.covers(r(960, 0, 100, 10_000)));
    }

    #[test]
    fn black_is_neither_tissue_nor_glass() {
        // A frame of black, as wide as a third of the picture.
        let framed = |inner: &[u8]| {
            let mut all = vec![0_u8; 60 * 40];
            for (to, from) in all.chunks_exact_mut(60).zip(inner.chunks_exact(40)) {
                to[20..].copy_from_slice(from);
            }
            all
        };
        let (plain, black) = (find(&square(), 40), find(&framed(&square()), 60));
        assert_eq!((black.threshold, black.rule), (plain.threshold, TissueRule::Otsu));
        assert!((black.area_mm2() - plain.area_mm2()).abs() < 1e-12);
        let tissue: Vec<u8> = (0..1600).map(|i| if i % 3 == 0 { 80 } else { 170 }).collect();
        let m = find(&framed(&tissue), 60);
        assert_eq!(m.rule, TissueRule::NoGlass);
        // But for one column next to the black.
        assert_eq!(m.mask.iter().filter(|t| **t).count(), 39 * 40);
        let m = find(&framed(&[240; 1600]), 60);
        assert!(m.rule == TissueRule::Blank && m.is_empty());
        // A grain of pigment is a part of its tissue.
        let mut pigment = square();
        pigment[15 * 40 + 15] = 0;
        assert_eq!(find(&pigment, 40).mask, plain.mask);
        assert!(find(&[0; 1600], 40).is_empty());
    }

    #[test]
    fn a_dark_frame_is_neither_and_dark_tissue_is_not_a_frame() {
        // Frames of a camera are seldom quite black.
        let dark = |x: usize, y: usize, grey: u8| vec![[grey, grey, grey]; x * y];
        let picture = |inner: [u8; 3], corner: usize| {
            let mut all = vec![inner; 40 * 40];
            (0..corner).for_each(|y| all[40 * y..40 * y + corner].fill([35, 33, 38]));
            all
        };
        let n = |pixels: &[[u8; 3]]| frame(pixels, 40).iter().filter(|f| **f).count();
        assert_eq!(n(&picture([230, 225, 232], 10)), 100);
        assert_eq!(n(&picture([230, 225, 232], 3)), 0, "a speck in a corner");
        assert_eq!(n(&picture([72, 40, 74], 10)), 100, "dark, but with the colour of a stain");
        assert_eq!(n(&dark(40, 40, 30)), 1600);
        assert_eq!(n(&dark(40, 40, 75)), 0);
        // In the middle it may be ink or pigment on tissue.
        let mut inside = picture([230, 225, 232], 0);
        (10..30).for_each(|y| inside[40 * y + 10..40 * y + 30].fill([35, 33, 38]));
        assert_eq!(n(&inside), 0);
        assert!(frame(&[], 0).is_empty());
    }

    #[test]
    fn glass_alone_is_blank_and_tissue_alone_is_tissue() {
        let blank: Vec<u8> = (0..1600).map(|i| 238 + (i % 5) as u8).collect();
        assert_eq!(find(&blank, 40).rule, TissueRule::Blank);
        assert!(find(&blank, 40).is_empty());
        assert_eq!(find(&[255; 1600], 40).rule, TissueRule::Blank);
        let tissue: Vec<u8> = (0..1600).map(|i| if i % 3 == 0 { 80 } else { 170 }).collect();
        let m = find(&tissue, 40);
        assert_eq!(m.rule, TissueRule::NoGlass);
        assert!((m.area_mm2() - 1600.0 * 64e-6).abs() < 1e-12);
    }
}
