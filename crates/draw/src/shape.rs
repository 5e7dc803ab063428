//! Shapes of condensed chromatin: capsules with a ragged border.

use super::noise::{Dice, smoothstep, value};
use super::truth::Phase;
use std::f32::consts::{PI, TAU};

/// A thick line from `a` to `b` (a disc when they coincide), px around the figure's centre.
#[derive(Clone, Copy, Debug)]
struct Capsule {
    a: [f32; 2],
    b: [f32; 2],
    r: f32,
}

impl Capsule {
    fn distance(&self, p: [f32; 2]) -> f32 {
        let (dx, dy) = (self.b[0] - self.a[0], self.b[1] - self.a[1]);
        let (px, py) = (p[0] - self.a[0], p[1] - self.a[1]);
        let along = dx * dx + dy * dy;
        let t = if along > 0.0 { ((px * dx + py * dy) / along).clamp(0.0, 1.0) } else { 0.0 };
        (px - t * dx).hypot(py - t * dy) - self.r
    }
}

/// A body of chromatin.
#[derive(Clone, Debug)]
pub(crate) struct Chromatin {
    parts: Vec<Capsule>,
    /// Amplitude of the ragged border, px; 0 is smooth.
    ragged: f32,
    /// Width of the border, px.
    soft: f32,
    /// Haematoxylin inside.
    pub(crate) haematoxylin: f32,
    /// Farthest reach from the centre, px.
    pub(crate) reach: f32,
    seed: u64,
}

impl Chromatin {
    /// How much of the place is covered, in [0, 1].
    pub(crate) fn cover(&self, p: [f32; 2]) -> f32 {
        if p[0].hypot(p[1]) > self.reach + 4.0 {
            return 0.0;
        }
        let near = self.parts.iter().map(|c| c.distance(p)).fold(f32::MAX, f32::min);
        if near > self.soft + self.ragged + 1.0 {
            return 0.0;
        }
        let rough = if self.ragged > 0.0 {
            self.ragged * value(self.seed, f64::from(p[0]) / 3.1, f64::from(p[1]) / 3.1)
        } else {
            0.0
        };
        smoothstep(self.soft, -self.soft, near + rough)
    }

    fn new(parts: Vec<Capsule>, ragged: f32, soft: f32, haematoxylin: f32, seed: u64) -> Self {
        let reach = parts
            .iter()
            .map(|c| c.a[0].hypot(c.a[1]).max(c.b[0].hypot(c.b[1])) + c.r)
            .fold(0.0, f32::max)
            + ragged
            + soft;
        Self { parts, ragged, soft, haematoxylin, reach, seed }
    }

    /// The chromatin of a figure or mimicker.
    #[expect(clippy::too_many_lines, reason = "one arm for each phase")]
    pub(crate) fn for_phase(phase: Phase, seed: u64) -> Self {
        let mut d = Dice::new(seed ^ 0x5A5A);
        let dark = d.range(1.9, 2.6);
        let turn = d.range(0.0, PI);
        let size = d.range(0.88, 1.12);
        let mut parts = Vec::new();
        let (ragged, soft, dark) = match phase {
            Phase::Prophase => {
                // Threads: short chords inside a disc.
                for _ in 0..26 {
                    let a = disc(&mut d, 14.5 * size);
                    let bend = disc(&mut d, 7.0);
                    let r = d.range(1.4, 2.4);
                    parts.push(Capsule { a, b: [a[0] + bend[0], a[1] + bend[1]], r });
                }
                (1.0, 1.0, dark * 0.86)
            }
            Phase::Prometaphase => {
                for _ in 0..9 {
                    let a = disc(&mut d, 7.5 * size);
                    let r = d.range(3.2, 5.2);
                    parts.push(Capsule { a, b: a, r });
                }
                for _ in 0..6 {
                    let angle = d.range(0.0, TAU);
                    let far = d.range(8.0, 13.0) * size;
                    let r = d.range(1.1, 1.9);
                    parts.push(Capsule { a: [0.0, 0.0], b: polar(far, angle), r });
                }
                (1.6, 1.0, dark)
            }
            Phase::Metaphase => {
                let half = 13.5 * size;
                Plate { at: [0.0, 0.0], turn, half, thick: 4.7, bow: 0.04 }
                    .draw(&mut parts, &mut d);
                (1.7, 1.0, dark)
            }
            Phase::Ring => {
                let radius = 9.0 * size;
                for i in 0..14 {
                    let angle = TAU * i as f32 / 14.0 + d.range(-0.1, 0.1);
                    let a = polar(radius + d.range(-0.8, 0.8), angle);
                    let r = d.range(2.7, 3.9);
                    parts.push(Capsule { a, b: a, r });
                }
                (1.5, 1.0, dark * 0.95)
            }
            Phase::Anaphase => {
                let apart = d.range(7.5, 10.5) * size;
                for side in [-1.0, 1.0] {
                    let at = polar(apart * side, turn + PI / 2.0);
                    let (half, bow) = (11.0 * size, 0.35 * side);
                    Plate { at, turn, half, thick: 3.6, bow }.draw(&mut parts, &mut d);
                }
                (1.4, 1.0, dark)
            }
            Phase::Telophase => {
                let apart = d.range(15.0, 19.0) * size;
                for side in [-1.0, 1.0] {
                    let at = polar(apart * side, turn + PI / 2.0);
                    let (half, bow) = (9.0 * size, 0.2 * side);
                    Plate { at, turn, half, thick: 3.7, bow }.draw(&mut parts, &mut d);
                }
                (0.9, 1.0, dark * 0.95)
            }
            Phase::Multipolar => {
                for arm in 0..3 {
                    let angle = turn + TAU * arm as f32 / 3.0 + d.range(-0.2, 0.2);
                    let b = polar(d.range(12.0, 16.0) * size, angle);
                    let r = d.range(2.9, 3.7);
                    parts.push(Capsule { a: [0.0, 0.0], b, r });
                }
                let a = disc(&mut d, 14.0);
                parts.push(Capsule { a, b: a, r: 1.4 });
                (1.8, 1.0, dark)
            }
            Phase::Pyknotic => {
                let r = d.range(6.0, 8.5);
                parts.push(Capsule { a: [0.0, 0.0], b: disc(&mut d, 3.0), r });
                (0.0, 1.3, dark * 0.95)
            }
            Phase::Apoptotic => {
                for i in 0..5 {
                    let a = disc(&mut d, 10.0);
                    let r = if i == 0 { d.range(4.5, 6.0) } else { d.range(1.4, 3.2) };
                    parts.push(Capsule { a, b: a, r });
                }
                (0.0, 1.0, dark)
            }
            Phase::DarkLymphocyte => {
                let r = d.range(9.0, 11.0);
                parts.push(Capsule { a: [0.0, 0.0], b: disc(&mut d, 3.0), r });
                (0.5, 1.2, dark * 0.76)
            }
            Phase::Smudged => {
                let b = polar(d.range(5.0, 11.0), turn);
                let r = d.range(9.0, 12.0);
                parts.push(Capsule { a: [-b[0], -b[1]], b, r });
                (1.5, 4.5, dark * 0.68)
            }
        };
        Self::new(parts, ragged, soft, dark, seed)
    }
}

fn polar(r: f32, angle: f32) -> [f32; 2] {
    [r * angle.cos(), r * angle.sin()]
}

fn disc(d: &mut Dice, radius: f32) -> [f32; 2] {
    let angle = d.range(0.0, TAU);
    polar(radius * d.unit().sqrt(), angle)
}

/// A bar of small discs.
struct Plate {
    /// Its centre.
    at: [f32; 2],
    /// Radians.
    turn: f32,
    /// Half of its length.
    half: f32,
    /// Half of its thickness.
    thick: f32,
    /// How far it bows across its length, as a share of `half`.
    bow: f32,
}

impl Plate {
    fn draw(&self, parts: &mut Vec<Capsule>, d: &mut Dice) {
        let n = 11;
        for i in 0..n {
            let t = i as f32 / (n - 1) as f32 * 2.0 - 1.0;
            let u = t * self.half + d.range(-0.6, 0.6);
            let v = self.bow * self.half * (0.5 - t * t) + d.range(-1.0, 1.0);
            let (sin, cos) = self.turn.sin_cos();
            let a = [self.at[0] + u * cos - v * sin, self.at[1] + u * sin + v * cos];
            let r = self.thick * (1.0 - 0.25 * t * t) * d.range(0.8, 1.15);
            parts.push(Capsule { a, b: a, r });
        }
    }
}
