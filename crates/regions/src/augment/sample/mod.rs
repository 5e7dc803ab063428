//! Drawing training samples from labelled scenes.

use mitosis::RgbTile;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::augment::sample_rng;
use crate::folds::Frames;
use crate::scene::{MarkKind, SampledPlace, Scene, dark_places};
use pixels::resize::resize;

pub(super) mod canvas;
pub use canvas::Spatial;
use canvas::{View, any, mosaic, turned, window};

/// Target value of pixels that must not teach anything.
pub const IGNORE: u8 = 255;

/// Side of a cell of the segmenter's mosaics, pixels.
const CELL: usize = 80;

/// Shares of the kinds of segmenter patches; only their ratios count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentShares {
    /// Around a figure of a frame.
    pub figure: f32,
    /// Mosaics of patches around figures whose surroundings are labelled, too.
    pub mosaic: f32,
    /// Around a mined negative or a dark nucleus.
    pub hard: f32,
    /// Anywhere in a frame.
    pub random: f32,
    /// Mosaics of look-alikes that are patches of their own.
    pub negative: f32,
    /// Anywhere in images of other tissue, which have no marks.
    #[serde(default)]
    pub foreign: f32,
}

/// Shares of the cells of the first kind of mosaics; only their ratios count. With few patches among them
/// neither a seam nor a change of stain predicts a figure: slides have no seams.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellShares {
    /// Of a patch around a figure.
    pub patch: f32,
    /// Around a mined negative or a dark nucleus of a frame.
    pub place: f32,
    /// Anywhere in images of other tissue.
    pub foreign: f32,
}

/// A patch with its target.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentSample {
    /// `side` x `side` pixels.
    pub image: RgbTile,
    /// Per pixel 0 (no figure), 1 (figure) or [`IGNORE`].
    pub target: Vec<u8>,
}

impl SegmentSample {
    /// The patch at a `factor` times coarser resolution, as a slide is read there. A coarse pixel is
    /// a figure's where half of it is, and otherwise ignored where any of it is.
    #[must_use]
    pub fn reduced(self, factor: usize) -> Self {
        if factor == 1 {
            return self;
        }
        let (fine, side) = (self.image.width, self.image.width / factor);
        let value = |i: usize| {
            let (x, y) = (i % side * factor, i / side * factor);
            let block = (y..y + factor)
                .flat_map(|row| &self.target[row * fine + x..row * fine + x + factor]);
            let (figure, ignored) = block.fold((0, false), |(n, ignored), &t| {
                (n + usize::from(t == 1), ignored || t == IGNORE)
            });
            match (2 * figure >= factor * factor, ignored) {
                (true, _) => 1,
                (false, true) => IGNORE,
                (false, false) => 0,
            }
        };
        let target = (0..side * side).map(value).collect();
        Self { image: resize(&self.image, side, side), target }
    }
}

pub(super) fn pick<'a, T>(rng: &mut impl Rng, from: &'a [T]) -> &'a T {
    &from[rng.random_range(0..from.len())]
}

pub(super) fn choose(rng: &mut impl Rng, shares: &[f32]) -> usize {
    let mut left = rng.random::<f32>() * shares.iter().sum::<f32>();
    for (i, share) in shares.iter().enumerate() {
        left -= share;
        if left < 0.0 {
            return i;
        }
    }
    shares.iter().rposition(|&s| s > 0.0).unwrap_or(0)
}

pub(super) fn figures(scenes: &[Scene]) -> Vec<SampledPlace> {
    let figure_places = |(scene, s): (usize, &Scene)| {
        let marks = s.marks.iter().filter(|m| m.kind == MarkKind::Figure);
        marks.map(|m| SampledPlace { scene, x: m.x, y: m.y }).collect::<Vec<_>>()
    };
    scenes.iter().enumerate().flat_map(figure_places).collect()
}

fn zero_if(empty: bool, share: f32) -> f32 {
    if empty { 0.0 } else { share }
}

/// Everything the segmenter of one fold may be shown.
#[derive(Debug)]
pub struct SegmentPool {
    frames: Vec<Scene>,
    patches: Vec<Scene>,
    negatives: Vec<Scene>,
    foreign: Vec<Scene>,
    figures: Vec<SampledPlace>,
    /// Weight of every figure, where slides are capped.
    figure_weights: Option<Vec<f32>>,
    hard: Vec<SampledPlace>,
    /// Shares with the kinds that have no material set to zero.
    shares: [f32; 6],
    /// The same of cells.
    cells: [f32; 3],
    spatial: Spatial,
    /// Side of a patch, pixels.
    pub side: usize,
    /// Radius of the disc that marks a figure, pixels.
    pub radius: f32,
    /// Pixels between `radius` and this are ignored.
    pub ring: f32,
}

/// Dark places of every scene, at most `most` each and `clear` px from its figures.
pub(super) fn sample_dark_places(scenes: &[Scene], clear: f32, most: usize) -> Vec<SampledPlace> {
    use rayon::prelude::*;
    let dark = |(scene, s): (usize, &Scene)| -> Vec<_> {
        let found = dark_places(s, clear, most).into_iter();
        found.map(|(x, y)| SampledPlace { scene, x, y }).collect()
    };
    let each: Vec<Vec<_>> = scenes.par_iter().enumerate().map(dark).collect();
    each.into_iter().flatten().collect()
}

fn as_scene(patch: &RgbTile) -> Scene {
    Scene {
        name: "negative".into(),
        source: String::new(),
        image: patch.clone(),
        marks: vec![],
        partial: false,
    }
}

/// How patches are drawn from a pool.
pub struct SegmentRules<'a> {
    /// How often each kind of place is drawn.
    pub shares: &'a SegmentShares,
    /// What the cells of a mosaic are made of.
    pub cells: &'a CellShares,
    /// Turns, flips and scales.
    pub spatial: Spatial,
    /// Side of a patch, pixels.
    pub side: usize,
    /// Radius of the disc that marks a figure, pixels.
    pub radius: f32,
    /// Pixels between `radius` and this are ignored.
    pub ring: f32,
}

impl SegmentPool {
    /// Gathers the pool. `foreign` are images of other tissue, taken to hold no figure.
    ///
    /// # Panics
    /// When there is neither a frame nor a patch.
    #[must_use]
    pub fn new(
        frames: &Frames,
        patches: &[Scene],
        foreign: Vec<Scene>,
        rules: SegmentRules<'_>,
    ) -> Self {
        let SegmentRules { shares, cells, spatial, side, radius, ring } = rules;
        let mut hard = frames.lookalikes.clone();
        let negatives: Vec<Scene> = frames.other_lookalikes.iter().map(as_scene).collect();
        let (frames, patches) = (frames.scenes.clone(), patches.to_vec());
        assert!(!frames.is_empty(), "a segmenter pool needs frames");
        hard.extend(sample_dark_places(&frames, 40.0, 60));
        let figures = figures(&frames);
        let shares = [
            zero_if(figures.is_empty(), shares.figure),
            zero_if(patches.is_empty(), shares.mosaic),
            zero_if(hard.is_empty(), shares.hard),
            shares.random,
            zero_if(negatives.is_empty(), shares.negative),
            zero_if(foreign.is_empty(), shares.foreign),
        ];
        let cells = [
            cells.patch,
            zero_if(hard.is_empty(), cells.place),
            zero_if(foreign.is_empty(), cells.foreign),
        ];
        Self {
            frames,
            patches,
            negatives,
            foreign,
            figures,
            figure_weights: None,
            hard,
            shares,
            cells,
            spatial,
            side,
            radius,
            ring,
        }
    }

    /// From now on at most this share of the figures drawn from frames comes from one slide
    /// (`capped_weights`).
    pub fn cap_slides(&mut self, most: f32) {
        let slide = |p: &SampledPlace| self.frames[p.scene].source.as_str();
        let slides: Vec<&str> = self.figures.iter().map(slide).collect();
        self.figure_weights = Some(capped_weights(&slides, most));
    }

    /// Sample `index` under `seed`; photometric changes are the caller's.
    #[must_use]
    pub fn sample(&self, seed: u64, index: u64) -> SegmentSample {
        let mut rng = sample_rng(seed, index);
        let half = self.side as f32 / 2.0;
        let mut off = |room: f32| rng.random_range(-room..=room);
        let (dx, dy) = (off(0.8 * half), off(0.8 * half));
        let owned;
        let (scene, x, y) = match choose(&mut rng, &self.shares) {
            0 => {
                let &SampledPlace { scene: i, x, y } = match &self.figure_weights {
                    Some(weights) => &self.figures[choose(&mut rng, weights)],
                    None => pick(&mut rng, &self.figures),
                };
                (&self.frames[i], x + dx, y + dy)
            }
            2 => {
                let &SampledPlace { scene: i, x, y } = pick(&mut rng, &self.hard);
                (&self.frames[i], x + dx, y + dy)
            }
            kind @ (1 | 4) => {
                let tile = if kind == 1 { CELL } else { self.negatives[0].image.width };
                let across = (self.side as f32 * 1.6 / tile as f32).ceil() as usize;
                let cell = |_| match kind {
                    1 => self.cell(&mut rng),
                    _ => any(&self.negatives, &mut rng),
                };
                owned = mosaic(&(0..across * across).map(cell).collect::<Vec<_>>());
                let middle = owned.image.width as f32 / 2.0;
                let room = tile as f32 / 2.0;
                (&owned, middle + dx / half * room, middle + dy / half * room)
            }
            kind => {
                let from = if kind == 5 { &self.foreign } else { &self.frames };
                let scene = pick(&mut rng, from);
                let (w, h) = (scene.image.width as f32, scene.image.height as f32);
                let x = rng.random_range(half.min(w / 2.0)..=(w - half).max(w / 2.0));
                let y = rng.random_range(half.min(h / 2.0)..=(h - half).max(h / 2.0));
                (scene, x, y)
            }
        };
        let view = View::random((x, y), self.side, 1.0, &self.spatial, &mut rng);
        self.render(scene, &view)
    }

    /// A cell of a mosaic, cut anywhere. The patches hold a figure in their middle; neither that place nor
    /// a seam may reveal where one is.
    fn cell(&self, rng: &mut impl Rng) -> Scene {
        let (scene, x, y) = match choose(rng, &self.cells) {
            1 => {
                let &SampledPlace { scene: i, x, y } = pick(rng, &self.hard);
                let mut off = || rng.random_range(-0.5..=0.5_f32) * CELL as f32;
                (&self.frames[i], x + off(), y + off())
            }
            kind => {
                let from = if kind == 2 { &self.foreign } else { &self.patches };
                let scene = pick(rng, from);
                let half = CELL as f32 / 2.0;
                let mut at = |side: usize| {
                    let n = side as f32;
                    rng.random_range(half.min(n / 2.0)..=(n - half).max(n / 2.0))
                };
                (scene, at(scene.image.width), at(scene.image.height))
            }
        };
        turned(&window(scene, x, y, CELL), rng.random_range(0..8_u8))
    }

    fn render(&self, scene: &Scene, view: &View) -> SegmentSample {
        let (image, outside) = view.render(&scene.image);
        let mut target: Vec<u8> = outside.iter().map(|&out| if out { IGNORE } else { 0 }).collect();
        let mut disc = |(x, y): (f32, f32), r: f32, value: u8| {
            let span = |c: f32| {
                let at = |v: f32| (v.max(0.0) as usize).min(self.side);
                at((c - r).floor())..at((c + r).ceil())
            };
            for j in span(y) {
                for i in span(x) {
                    let (u, v) = (i as f32 + 0.5 - x, j as f32 + 0.5 - y);
                    let at = j * self.side + i;
                    // Mirrored pixels stay ignored.
                    if u * u + v * v <= r * r && !outside[at] {
                        target[at] = value;
                    }
                }
            }
        };
        let zoom = view.zoom();
        for m in &scene.marks {
            let r = if m.kind == MarkKind::Ignore { m.half + 8.0 } else { self.ring };
            disc(view.to_output(m.x, m.y), r * zoom, IGNORE);
        }
        for m in scene.marks.iter().filter(|m| m.kind == MarkKind::Figure) {
            disc(view.to_output(m.x, m.y), self.radius * zoom, 1);
        }
        SegmentSample { image, target }
    }

    /// Fixed validation patches of the left-out frames: around every figure, and as many around
    /// the darkest nuclei.
    #[must_use]
    pub fn validation(&self, scenes: &[Scene], most: usize) -> Vec<SegmentSample> {
        let plain =
            |scene: &Scene, x: f32, y: f32| self.render(scene, &View::plain(x, y, self.side));
        let mut out = vec![];
        for SampledPlace { scene: i, x, y } in figures(scenes).into_iter().take(most / 2) {
            out.push(plain(&scenes[i], x + 20.0, y - 15.0));
        }
        let wanted = out.len().max(1).div_ceil(scenes.len().max(1));
        for scene in scenes {
            for (x, y) in dark_places(scene, 60.0, wanted) {
                out.push(plain(scene, x, y));
            }
        }
        out
    }
}

/// Weights of items by the slide of each, so that no slide has more than `most` of the sum, and the
/// items of one slide weigh alike. Where there are fewer slides than `1 / most`, all slides weigh alike.
#[must_use]
pub(super) fn capped_weights(slides: &[&str], most: f32) -> Vec<f32> {
    let mut counts: BTreeMap<&str, f32> = BTreeMap::new();
    for slide in slides {
        *counts.entry(slide).or_default() += 1.0;
    }
    let cap = most.max(1.0 / counts.len().max(1) as f32);
    // Slides above the cap get it; what is left is shared by the others in proportion.
    let mut capped: BTreeMap<&str, bool> = counts.keys().map(|s| (*s, false)).collect();
    let shares = loop {
        let full = capped.values().filter(|c| **c).count() as f32 * cap;
        let rest: f32 = counts.iter().filter(|(s, _)| !capped[*s]).map(|(_, n)| n).sum();
        let share = |s: &str| match capped[s] {
            true => cap,
            false => counts[s] / rest * (1.0 - full).max(0.0),
        };
        let shares: BTreeMap<&str, f32> = counts.keys().map(|s| (*s, share(s))).collect();
        let over = |(s, v): (&&'_ str, &f32)| !capped[*s] && *v > cap * 1.000_01;
        let above: Vec<&str> = shares.iter().filter(|e| over(*e)).map(|(s, _)| *s).collect();
        if above.is_empty() {
            break shares;
        }
        capped.extend(above.into_iter().map(|s| (s, true)));
    };
    slides.iter().map(|s| shares[s] / counts[s]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Mark;

    /// A scene of one colour, a figure in its middle or none.
    fn scene(side: usize, grey: u8, figure: bool) -> Scene {
        let middle = side as f32 / 2.0;
        let mark = Mark { x: middle, y: middle, half: 12.0, kind: MarkKind::Figure };
        let image = RgbTile::filled(side, side, [grey; 3]);
        let marks = if figure { vec![mark] } else { vec![] };
        Scene { name: String::new(), source: String::new(), image, marks, partial: false }
    }

    /// Every kind of cell comes as often as asked for, and patches alone bring figures into a mosaic.
    #[test]
    fn cells_are_drawn_by_their_shares() {
        let frames = Frames {
            scenes: vec![scene(400, 90, false)],
            lookalikes: vec![SampledPlace { scene: 0, x: 200.0, y: 200.0 }],
            other_lookalikes: vec![],
        };
        let shares = SegmentShares {
            figure: 0.0,
            mosaic: 1.0,
            hard: 0.0,
            random: 0.0,
            negative: 0.0,
            foreign: 0.0,
        };
        let cells = CellShares { patch: 0.25, place: 0.35, foreign: 0.4 };
        let spatial = Spatial { rotation: 0.0, scale: 0.0, jitter: 0.0 };
        let pool = SegmentPool::new(
            &frames,
            &[scene(128, 30, true)],
            vec![scene(300, 180, false)],
            SegmentRules {
                shares: &shares,
                cells: &cells,
                spatial,
                side: 256,
                radius: 12.0,
                ring: 17.0,
            },
        );
        let mut rng = sample_rng(1, 0);
        let mut seen = [0.0_f64; 3];
        for _ in 0..2000 {
            let cell = pool.cell(&mut rng);
            let kind = match cell.image.data[0] {
                30 => 0,
                90 => 1,
                _ => 2,
            };
            assert_eq!(cell.image.width, CELL);
            assert_eq!(kind == 0, !cell.marks.is_empty());
            seen[kind] += 1.0 / 2000.0;
        }
        for (seen, asked) in seen.into_iter().zip([0.25, 0.35, 0.4]) {
            assert!((seen - asked).abs() < 0.04, "{seen} for {asked}");
        }
    }
}
