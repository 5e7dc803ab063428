//! Cutting a rotated, flipped, scaled square out of a scene, and mosaics of small scenes.

use mitosis::RgbTile;
use rand::Rng;

use crate::scene::{Mark, MarkKind, Scene, mirror};
use serde::{Deserialize, Serialize};

/// Geometric changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spatial {
    /// Largest free rotation on top of quarter turns and flips, degrees.
    pub rotation: f32,
    /// Scale in 1 +- this.
    pub scale: f32,
    /// Largest offset of the subject from the centre, pixels at the working resolution.
    pub jitter: f32,
}

/// A square view: output pixel -> scene pixel is one similarity map.
#[derive(Clone, Debug)]
pub(in crate::augment) struct View {
    side: usize,
    centre: (f32, f32),
    /// Columns are where the output's x and y axes point in the scene.
    map: [[f32; 2]; 2],
}

impl View {
    /// Upright, at scale one.
    pub fn plain(x: f32, y: f32, side: usize) -> Self {
        Self { side, centre: (x.round(), y.round()), map: [[1.0, 0.0], [0.0, 1.0]] }
    }

    /// `base` scene pixels to an output pixel, upright.
    pub fn upright(centre: (f32, f32), side: usize, base: f32) -> Self {
        Self { side, centre, map: [[base, 0.0], [0.0, base]] }
    }

    /// A random flip, quarter turn, free rotation and scale around `base` scene pixels to an output
    /// pixel.
    pub fn random(
        centre: (f32, f32),
        side: usize,
        base: f32,
        how: &Spatial,
        rng: &mut impl Rng,
    ) -> Self {
        let quarter = rng.random_range(0..4_u8);
        let free = how.rotation * rng.random_range(-1.0..=1.0_f32);
        let scale = base * (1.0 + how.scale * rng.random_range(-1.0..=1.0_f32));
        let flip = if rng.random::<bool>() { -1.0 } else { 1.0 };
        let angle = (f32::from(quarter) * 90.0 + free).to_radians();
        let (s, c) = (angle.sin() * scale, angle.cos() * scale);
        Self { side, centre, map: [[flip * c, -s], [flip * s, c]] }
    }

    /// Output pixels per scene pixel.
    pub fn zoom(&self) -> f32 {
        1.0 / self.det().abs().sqrt()
    }

    fn det(&self) -> f32 {
        self.map[0][0] * self.map[1][1] - self.map[0][1] * self.map[1][0]
    }

    /// The output position of a scene position.
    pub fn to_output(&self, x: f32, y: f32) -> (f32, f32) {
        let (u, v) = (x - self.centre.0, y - self.centre.1);
        let m = &self.map;
        let half = self.side as f32 / 2.0;
        (
            (m[1][1] * u - m[0][1] * v) / self.det() + half,
            (m[0][0] * v - m[1][0] * u) / self.det() + half,
        )
    }

    /// Bilinear image, mirrored beyond the edge, and per pixel whether it must be ignored (beyond
    /// the edge).
    pub fn render(&self, image: &RgbTile) -> (RgbTile, Vec<bool>) {
        let (w, h) = (image.width, image.height);
        let src = &image.data;
        let mut data = Vec::with_capacity(3 * self.side * self.side);
        let mut outside = Vec::with_capacity(self.side * self.side);
        let half = self.side as f32 / 2.0;
        for j in 0..self.side {
            let v = j as f32 + 0.5 - half;
            for i in 0..self.side {
                let u = i as f32 + 0.5 - half;
                let x = self.centre.0 + self.map[0][0] * u + self.map[0][1] * v - 0.5;
                let y = self.centre.1 + self.map[1][0] * u + self.map[1][1] * v - 0.5;
                let (fx, fy) = (x.floor(), y.floor());
                let (ax, ay) = (x - fx, y - fy);
                let (ix, iy) = (fx as i64, fy as i64);
                let inner = ix >= 0 && iy >= 0 && ix + 1 < w as i64 && iy + 1 < h as i64;
                let (x0, x1, y0, y1) = if inner {
                    (ix as usize, ix as usize + 1, iy as usize, iy as usize + 1)
                } else {
                    (mirror(ix, w), mirror(ix + 1, w), mirror(iy, h), mirror(iy + 1, h))
                };
                let at = |x: usize, y: usize| 3 * (y * w + x);
                let (p, q, r, s) = (at(x0, y0), at(x1, y0), at(x0, y1), at(x1, y1));
                for c in 0..3 {
                    let f = |k: usize| f32::from(src[k + c]);
                    let top = f(p) + ax * (f(q) - f(p));
                    let bottom = f(r) + ax * (f(s) - f(r));
                    data.push((top + ay * (bottom - top) + 0.5) as u8);
                }
                outside.push(!(x >= -0.5 && y >= -0.5 && x < w as f32 && y < h as f32));
            }
        }
        (RgbTile::new(self.side, self.side, data), outside)
    }
}

/// One of the eight flips and quarter turns of a square scene.
pub(super) fn turned(scene: &Scene, which: u8) -> Scene {
    let n = scene.image.width;
    let side = n as f32;
    let place = |x: f32, y: f32| {
        let (x, y) = if which & 1 == 1 { (side - x, y) } else { (x, y) };
        let (x, y) = if which & 2 == 2 { (x, side - y) } else { (x, y) };
        if which & 4 == 4 { (y, x) } else { (x, y) }
    };
    let mut data = vec![0; scene.image.data.len()];
    for y in 0..n {
        for x in 0..n {
            let (tx, ty) = place(x as f32 + 0.5, y as f32 + 0.5);
            let to = 3 * (ty as usize * n + tx as usize);
            data[to..to + 3].copy_from_slice(&scene.image.pixel(x, y));
        }
    }
    let marks = scene
        .marks
        .iter()
        .map(|m| {
            let (x, y) = place(m.x, m.y);
            Mark { x, y, ..*m }
        })
        .collect();
    Scene { image: RgbTile::new(n, n, data), marks, ..scene.clone() }
}

/// The `n` x `n` part of a scene centred at (`x`, `y`), mirrored beyond the edge. The marks come
/// along, also those outside.
pub(super) fn window(scene: &Scene, x: f32, y: f32, n: usize) -> Scene {
    let corner = |c: f32| (c - n as f32 / 2.0).round();
    let moved = |m: &Mark| Mark { x: m.x - corner(x), y: m.y - corner(y), ..*m };
    Scene {
        name: scene.name.clone(),
        source: scene.source.clone(),
        image: scene.cut(x, y, n),
        marks: scene.marks.iter().map(moved).collect(),
        partial: scene.partial,
    }
}

/// Any of `scenes`, turned at random.
pub(super) fn any(scenes: &[Scene], rng: &mut impl Rng) -> Scene {
    let drawn = rng.random_range(0..scenes.len());
    turned(&scenes[drawn], rng.random_range(0..8_u8))
}

/// A square mosaic of equal square scenes, row by row; `cells` holds a square number of them.
///
/// A figure cut by a seam is marked as ignored on the side that does not hold its centre.
pub(super) fn mosaic(cells: &[Scene]) -> Scene {
    let across = cells.len().isqrt();
    let tile = cells[0].image.width;
    let side = across * tile;
    let mut data = vec![0_u8; 3 * side * side];
    let mut marks = vec![];
    for (at, scene) in cells.iter().enumerate() {
        let (x0, y0) = (at % across * tile, at / across * tile);
        for y in 0..tile.min(scene.image.height) {
            let from = 3 * y * scene.image.width;
            let to = 3 * ((y0 + y) * side + x0);
            let len = 3 * tile.min(scene.image.width);
            data[to..to + len].copy_from_slice(&scene.image.data[from..from + len]);
        }
        for m in &scene.marks {
            let n = tile as f32;
            // Further figures near the border: ignored, since a seam may cut them.
            let inside = m.x > 16.0 && m.y > 16.0 && m.x < n - 16.0 && m.y < n - 16.0;
            let near = m.x > -16.0 && m.y > -16.0 && m.x < n + 16.0 && m.y < n + 16.0;
            if inside || near {
                marks.push(Mark {
                    x: m.x + x0 as f32,
                    y: m.y + y0 as f32,
                    half: m.half,
                    kind: if inside { m.kind } else { MarkKind::Ignore },
                });
            }
        }
    }
    Scene {
        name: "mosaic".into(),
        source: String::new(),
        image: RgbTile::new(side, side, data),
        marks,
        partial: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::augment::sample_rng;

    #[test]
    fn marks_follow_the_pixels() {
        // One bright pixel block: after any view it must be at the mark.
        let mut image = RgbTile::filled(300, 300, [10; 3]);
        for y in 118..123 {
            for x in 168..173 {
                image.data[3 * (y * 300 + x)..][..3].fill(250);
            }
        }
        let scene = Scene {
            name: String::new(),
            source: String::new(),
            image,
            marks: vec![],
            partial: false,
        };
        let how = Spatial { rotation: 45.0, scale: 0.2, jitter: 0.0 };
        for i in 0..40 {
            let view = View::random((160.0, 130.0), 128, 1.0, &how, &mut sample_rng(7, i));
            let (out, _) = view.render(&scene.image);
            let (x, y) = view.to_output(170.5, 120.5);
            assert!(out.pixel(x as usize, y as usize)[0] > 200, "view {i}: ({x}, {y})");
        }
    }

    #[test]
    fn turned_marks_follow_the_pixels() {
        let mut image = RgbTile::filled(32, 32, [10; 3]);
        image.data[3 * (5 * 32 + 20)..][..3].fill(250);
        let mark = Mark { x: 20.5, y: 5.5, half: 1.0, kind: MarkKind::Figure };
        let scene = Scene {
            name: String::new(),
            source: String::new(),
            image,
            marks: vec![mark],
            partial: false,
        };
        for which in 0..8 {
            let t = turned(&scene, which);
            let m = t.marks[0];
            assert_eq!(t.image.pixel(m.x as usize, m.y as usize), [250; 3], "turn {which}");
        }
    }

    #[test]
    fn a_mosaic_keeps_its_figures_and_ignores_the_cut_ones() {
        let mut image = RgbTile::filled(128, 128, [10; 3]);
        image.data[3 * (64 * 128 + 64)..][..3].fill(250);
        let mark = Mark { x: 64.5, y: 64.5, half: 1.0, kind: MarkKind::Figure };
        let tile = Scene {
            name: String::new(),
            source: String::new(),
            image,
            marks: vec![mark],
            partial: false,
        };
        let centres = [(40.0, 40.0), (84.0, 40.0), (100.0, 84.0), (60.0, 130.0)];
        let cells: Vec<Scene> = centres.iter().map(|&(x, y)| window(&tile, x, y, 80)).collect();
        let whole = mosaic(&cells);
        assert_eq!(whole.image.width, 160);
        let kinds: Vec<MarkKind> = whole.marks.iter().map(|m| m.kind).collect();
        // At (64, 64), (20, 64) and (4, 20) of 80, each within 16 px of a seam, and 25 px outside.
        assert_eq!(kinds, [MarkKind::Ignore, MarkKind::Ignore, MarkKind::Ignore]);
        let inner = mosaic(&[window(&tile, 50.0, 74.0, 80)]);
        assert_eq!(inner.marks[0].kind, MarkKind::Figure);
        let m = inner.marks[0];
        assert_eq!(inner.image.pixel(m.x as usize, m.y as usize), [250; 3]);
    }
}
