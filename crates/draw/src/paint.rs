//! Draws any rectangle of a slide: stain amounts first, then light, blur and sensor noise.

use super::layout::{CELL, Cell, Layout, Tenant};
use super::noise::{Dice, hash, smoothstep, unit, value};
use super::shape::Chromatin;
use super::truth::{Kind, Phase};
use mitosis::{Rect, RgbTile};

/// Optical density of one unit of haematoxylin and of eosin, in R, G, B.
const HAEMATOXYLIN: [f32; 3] = [0.58, 0.70, 0.40];
const EOSIN: [f32; 3] = [0.17, 0.80, 0.46];
/// The empty glass.
const GLASS: [f32; 3] = [244.0, 242.0, 244.0];
/// Optical blur, level-0 px.
const BLUR: [f32; 7] = [0.0, 0.018, 0.222, 0.520, 0.222, 0.018, 0.0];
const BLUR_REACH: usize = 3;
/// The sensor's noise repeats after this many px, so that one empty tile serves for all.
pub(crate) const NOISE_PERIOD: i64 = 256;
/// Slow fields are computed on a lattice of this pitch and interpolated, px.
const PITCH: i64 = 8;

/// Draws a rectangle of level-0 pixels. Each pixel depends on its place and the layout alone, never on the rectangle.
#[must_use]
pub fn draw(layout: &Layout, rect: Rect) -> RgbTile {
    let (x, y, w, h) = rect.parts();
    let (rw, rh) = (w + 2 * BLUR_REACH, h + 2 * BLUR_REACH);
    let (rx, ry) = (x - BLUR_REACH as i64, y - BLUR_REACH as i64);
    let reached = Rect::new(rx, ry, rw, rh);
    let light = if layout.is_empty(reached) {
        vec![GLASS; rw * rh]
    } else {
        let mut stain = Stain::ground(layout, reached);
        stain.cells(layout);
        stain.light()
    };
    let mut data = Vec::with_capacity(3 * w * h);
    let rows = blur(&light, rw, rh, w);
    for j in 0..h {
        for i in 0..w {
            let (nx, ny) =
                ((x + i as i64).rem_euclid(NOISE_PERIOD), (y + j as i64).rem_euclid(NOISE_PERIOD));
            let bits = hash(layout.spec().seed ^ 0x5E45, nx, ny);
            for c in 0..3_usize {
                let column = rows[j * w + i..].iter().step_by(w);
                let v: f32 = BLUR.iter().zip(column).map(|(g, px)| g * px[c]).sum();
                let noise = (unit(bits << (13 * c)) + unit(bits << (13 * c + 6)) - 1.0) * 3.2;
                data.push((v + noise).round().clamp(0.0, 255.0) as u8);
            }
        }
    }
    RgbTile::new(w, h, data)
}

/// The horizontal half of the blur: `rh` rows of `w` px.
fn blur(light: &[[f32; 3]], rw: usize, rh: usize, w: usize) -> Vec<[f32; 3]> {
    let mut rows = vec![[0.0; 3]; w * rh];
    for j in 0..rh {
        for i in 0..w {
            let line = &light[j * rw + i..j * rw + i + BLUR.len()];
            let mut sum = [0.0; 3];
            for (g, p) in BLUR.iter().zip(line) {
                for c in 0..3 {
                    sum[c] += g * p[c];
                }
            }
            rows[j * w + i] = sum;
        }
    }
    rows
}

/// Amounts of both stains over a rectangle.
struct Stain {
    x: i64,
    y: i64,
    w: usize,
    h: usize,
    haematoxylin: Vec<f32>,
    eosin: Vec<f32>,
    /// 1 on tissue, 0 on glass.
    tissue: Vec<f32>,
}

impl Stain {
    /// Cytoplasm and stroma, before any nucleus.
    fn ground(layout: &Layout, rect: Rect) -> Self {
        let (x, y, w, h) = rect.parts();
        let seed = layout.spec().seed;
        let depth = Lattice::new(rect, |px, py| layout.depth(px, py));
        let tumour = Lattice::new(rect, |px, py| layout.tumour(px, py));
        let warp = [41, 42].map(|s| {
            Lattice::new(rect, |px, py| {
                48.0 * value(seed ^ s, px / 210.0, py / 210.0)
                    + 7.0 * value(seed ^ (s + 10), px / 41.0, py / 41.0)
            })
        });
        let tint =
            Lattice::new(rect, |px, py| 1.0 + 0.12 * value(seed ^ 43, px / 900.0, py / 900.0));
        let territory = Territory::new(layout, rect);
        let n = w * h;
        let mut out = Self {
            x,
            y,
            w,
            h,
            haematoxylin: vec![0.0; n],
            eosin: vec![0.0; n],
            tissue: vec![0.0; n],
        };
        let slant = f64::from(unit(hash(seed, 4, 4))) * std::f64::consts::PI;
        let (sin, cos) = slant.sin_cos();
        for j in 0..h {
            for i in 0..w {
                let at = j * w + i;
                let on = smoothstep(-2.0, 2.5, depth.at(i, j));
                if on == 0.0 {
                    continue;
                }
                let (px, py) = ((x + i as i64) as f64, (y + j as i64) as f64);
                let (qx, qy) = (px + f64::from(warp[0].at(i, j)), py + f64::from(warp[1].at(i, j)));
                let grain = value(seed ^ 44, px / 4.3, py / 4.3);
                let t = tumour.at(i, j);
                let (mut he, mut eo) = (0.0, 0.0);
                if t > 0.0 {
                    let (edge, cell) = territory.at(px, py);
                    let own = unit(cell) - 0.5;
                    let web = value(seed ^ 45, qx / 9.5, qy / 9.5).abs();
                    let speck = value(seed ^ 49, px / 2.3, py / 2.3);
                    let foam = smoothstep(0.25, 0.75, value(seed ^ 50, qx / 13.0, qy / 13.0));
                    let seen = 0.5 + 0.5 * value(seed ^ 51, px / 37.0, py / 37.0);
                    let membrane = smoothstep(3.4, 0.6, edge) * 0.24 * seen;
                    he += t * (0.15 + 0.10 * own + 0.07 * grain + 0.05 * speck + 0.4 * membrane);
                    eo += t
                        * (0.60 + 0.20 * own + 0.15 * grain + 0.10 * speck
                            - 0.24 * web
                            - 0.20 * foam
                            + membrane);
                }
                if t < 1.0 {
                    let (u, v) = (qx * cos + qy * sin, qy * cos - qx * sin);
                    let strand = value(seed ^ 46, u / 105.0, v / 6.5);
                    let thin = value(seed ^ 47, u / 62.0, v / 2.9);
                    let gap = smoothstep(0.35, 0.9, value(seed ^ 48, u / 75.0, v / 11.0));
                    let fibre = 0.74 + 0.24 * strand + 0.13 * thin + 0.05 * grain;
                    he += (1.0 - t) * (0.07 + 0.03 * strand + 0.02 * grain);
                    eo += (1.0 - t) * fibre * (1.0 - 0.72 * gap);
                }
                let tint = tint.at(i, j);
                out.tissue[at] = on;
                out.haematoxylin[at] = he.max(0.0) * tint;
                out.eosin[at] = eo.max(0.0) * tint;
            }
        }
        out
    }

    /// Every nucleus whose drawing may reach into the rectangle, in the grid's order.
    fn cells(&mut self, layout: &Layout) {
        let reach = 48;
        let (cx0, cx1) = (
            (self.x - reach).div_euclid(CELL) - 1,
            (self.x + self.w as i64 + reach).div_euclid(CELL),
        );
        let (cy0, cy1) =
            ((self.y - reach).div_euclid(CELL), (self.y + self.h as i64 + reach).div_euclid(CELL));
        for cy in cy0..=cy1 {
            for cx in cx0..=cx1 {
                match layout.cell(cx, cy) {
                    None => {}
                    Some(cell) => match cell.tenant {
                        Tenant::Special(kind, phase) => self.special(&cell, kind, phase),
                        Tenant::Tumour | Tenant::Spindle | Tenant::Lymphocyte => {
                            self.nucleus(&cell)
                        }
                    },
                }
            }
        }
    }

    /// Calls `f(offset from the centre, pixel index)` over the pixels within `reach`.
    fn around(
        &mut self,
        centre: [f64; 2],
        reach: f32,
        mut f: impl FnMut(&mut Self, [f32; 2], usize),
    ) {
        let span = |c: f64, low: i64, len: usize| {
            let from = (c - f64::from(reach)).floor() as i64 - low;
            let to = (c + f64::from(reach)).ceil() as i64 - low + 1;
            (from.clamp(0, len as i64) as usize, to.clamp(0, len as i64) as usize)
        };
        let (i0, i1) = span(centre[0], self.x, self.w);
        let (j0, j1) = span(centre[1], self.y, self.h);
        for j in j0..j1 {
            for i in i0..i1 {
                // Pixel centres are at .5.
                let p = [
                    ((self.x + i as i64) as f64 + 0.5 - centre[0]) as f32,
                    ((self.y + j as i64) as f64 + 0.5 - centre[1]) as f32,
                ];
                f(self, p, j * self.w + i);
            }
        }
    }

    fn mix(&mut self, at: usize, cover: f32, haematoxylin: f32, eosin: f32) {
        self.haematoxylin[at] += (haematoxylin - self.haematoxylin[at]) * cover;
        self.eosin[at] += (eosin - self.eosin[at]) * cover;
    }

    /// An interphase nucleus with its own size, chromatin and nucleoli.
    fn nucleus(&mut self, cell: &Cell) {
        let mut d = Dice::new(cell.seed);
        let turn = d.range(0.0, std::f32::consts::PI);
        let (a, b, base, rim, coarse, spots) = match cell.tenant {
            Tenant::Tumour => {
                let a = d.range(13.5, 20.5);
                let open = d.unit();
                let b = a * d.range(0.66, 0.98);
                // From vesicular (pale, sharp rim) to hyperchromatic.
                (
                    a,
                    b,
                    0.45 + 0.55 * open * open,
                    0.60 - 0.25 * open,
                    0.30 + 0.2 * open,
                    1 + d.index(3),
                )
            }
            Tenant::Spindle => {
                (d.range(14.0, 21.0), d.range(3.8, 6.5), d.range(0.75, 1.15), 0.2, 0.3, 0)
            }
            _ => (d.range(8.0, 10.0), d.range(7.5, 9.5), d.range(1.05, 1.4), 0.25, 0.5, 0),
        };
        let (sin, cos) = turn.sin_cos();
        let nucleoli: Vec<[f32; 3]> = (0..spots)
            .map(|_| [d.range(-0.5, 0.5) * a, d.range(-0.5, 0.5) * b, d.range(1.6, 3.1)])
            .collect();
        let seed = cell.seed;
        let texture = f64::from(d.range(3.6, 6.2));
        let eosin = d.range(0.12, 0.30);
        let focus = d.range(0.9, 2.2);
        self.around(cell.centre, a + 5.0, |s, p, at| {
            let (u, v) = (p[0] * cos + p[1] * sin, p[1] * cos - p[0] * sin);
            let wobble =
                0.16 * value(seed ^ 1, f64::from(u / a) * 1.6 + 9.0, f64::from(v / a) * 1.6 + 3.0);
            let r = (u / a).hypot(v / b) + wobble;
            // Depth under the nuclear border, px.
            let under = (1.0 - r) * b;
            let cover = smoothstep(-focus, focus, under);
            if cover == 0.0 {
                return;
            }
            let edge = smoothstep(4.2, 0.8, under);
            let clump = value(seed ^ 2, f64::from(p[0]) / texture, f64::from(p[1]) / texture);
            let fine = value(seed ^ 3, f64::from(p[0]) / 2.6, f64::from(p[1]) / 2.6);
            let spot = nucleoli
                .iter()
                .map(|n| smoothstep(n[2] + 1.0, n[2] - 1.0, (u - n[0]).hypot(v - n[1])))
                .fold(0.0, f32::max);
            let knots = smoothstep(0.15, 0.75, clump);
            let he = base * (0.72 + 0.30 * fine) + coarse * knots + rim * edge + 0.75 * spot;
            s.mix(at, cover, he, eosin + 0.35 * spot);
        });
    }

    /// A mitotic figure in its cleared, rounded cell, or a mimicker in its own.
    fn special(&mut self, cell: &Cell, kind: Kind, phase: Phase) {
        let mut d = Dice::new(cell.seed ^ 0xCE11);
        let chromatin = Chromatin::for_phase(phase, cell.seed);
        let (radius, cyto_h, cyto_e, strength) = match (kind, phase) {
            (Kind::Mitotic, _) => {
                let room = if phase.is_wide() { 7.0 } else { 0.0 };
                (
                    d.range(20.0, 27.0) + room,
                    d.range(0.08, 0.18),
                    d.range(0.24, 0.50),
                    d.range(0.5, 0.9),
                )
            }
            (_, Phase::Pyknotic | Phase::Apoptotic) => {
                (d.range(15.0, 19.0), 0.16, d.range(1.05, 1.35), 0.95)
            }
            (_, Phase::DarkLymphocyte) => (13.0, 0.12, 0.35, 0.7),
            _ => (24.0, 0.18, 0.5, 0.4),
        };
        // A cell that shrank from its neighbours leaves a pale rim.
        let halo: f32 = match kind {
            Kind::Mitotic if d.unit() < 0.4 => d.range(0.3, 0.8),
            Kind::Mimicker if matches!(phase, Phase::Pyknotic | Phase::Apoptotic) => 0.8,
            _ => 0.0,
        };
        let seed = cell.seed;
        let squeeze = if phase.is_wide() { 1.0 } else { d.range(0.88, 1.14) };
        let dark = chromatin.haematoxylin;
        self.around(cell.centre, radius.max(chromatin.reach) + 7.0, |s, p, at| {
            let wobble = 4.2 * value(seed ^ 5, f64::from(p[0]) / 15.0, f64::from(p[1]) / 15.0);
            let r = (p[0] * squeeze).hypot(p[1] / squeeze) + wobble;
            let cyto = smoothstep(radius + 1.5, radius - 1.5, r) * strength;
            let grain = value(seed ^ 6, f64::from(p[0]) / 4.0, f64::from(p[1]) / 4.0)
                + 0.7 * value(seed ^ 8, f64::from(p[0]) / 2.2, f64::from(p[1]) / 2.2);
            let rim =
                if halo > 0.0 { 0.0 } else { 0.10 * smoothstep(3.0, 0.5, (r - radius).abs()) };
            s.mix(at, cyto, cyto_h + 0.06 * grain, cyto_e + 0.13 * grain);
            s.eosin[at] += rim * strength;
            if halo > 0.0 {
                let pale = smoothstep(radius - 1.0, radius + 1.0, r)
                    * smoothstep(radius + 5.5, radius + 3.0, r)
                    * halo;
                s.mix(at, pale, 0.03, 0.06);
            }
            let cover = chromatin.cover(p);
            if cover > 0.0 {
                let lump = value(seed ^ 7, f64::from(p[0]) / 2.7, f64::from(p[1]) / 2.7);
                s.mix(at, cover, dark * (0.93 + 0.13 * lump), 0.25);
            }
        });
    }

    /// Beer and Lambert: transmitted light from stain amounts.
    fn light(&self) -> Vec<[f32; 3]> {
        (0..self.w * self.h)
            .map(|at| {
                let on = self.tissue[at];
                let (he, eo) = (self.haematoxylin[at] * on, self.eosin[at] * on);
                std::array::from_fn(|c| GLASS[c] * (-(he * HAEMATOXYLIN[c] + eo * EOSIN[c])).exp())
            })
            .collect()
    }
}

/// A slow field, computed on a fixed lattice and interpolated.
struct Lattice {
    x: i64,
    y: i64,
    cols: usize,
    left: i64,
    top: i64,
    nodes: Vec<f32>,
}

impl Lattice {
    fn new(rect: Rect, f: impl Fn(f64, f64) -> f32) -> Self {
        let (x, y, w, h) = rect.parts();
        let (left, top) = (x.div_euclid(PITCH), y.div_euclid(PITCH));
        let cols = ((x + w as i64).div_euclid(PITCH) - left + 2) as usize;
        let rows = ((y + h as i64).div_euclid(PITCH) - top + 2) as usize;
        let nodes = (0..rows * cols)
            .map(|k| {
                let (i, j) = ((k % cols) as i64, (k / cols) as i64);
                f(((left + i) * PITCH) as f64, ((top + j) * PITCH) as f64)
            })
            .collect();
        Self { x, y, cols, left, top, nodes }
    }

    fn at(&self, i: usize, j: usize) -> f32 {
        let (px, py) = (self.x + i as i64, self.y + j as i64);
        let (ci, cj) = (px.div_euclid(PITCH), py.div_euclid(PITCH));
        let (u, v) =
            ((px - ci * PITCH) as f32 / PITCH as f32, (py - cj * PITCH) as f32 / PITCH as f32);
        let k = (cj - self.top) as usize * self.cols + (ci - self.left) as usize;
        let top = self.nodes[k] + (self.nodes[k + 1] - self.nodes[k]) * u;
        let k = k + self.cols;
        let bottom = self.nodes[k] + (self.nodes[k + 1] - self.nodes[k]) * u;
        top + (bottom - top) * v
    }
}

/// Which cell owns a place, and how far its border is.
struct Territory {
    left: i64,
    top: i64,
    cols: usize,
    homes: Vec<([f64; 2], u64)>,
}

impl Territory {
    fn new(layout: &Layout, rect: Rect) -> Self {
        let (x, y, w, h) = rect.parts();
        let (left, top) = (x.div_euclid(CELL) - 2, y.div_euclid(CELL) - 1);
        let cols = ((x + w as i64).div_euclid(CELL) + 2 - left) as usize;
        let rows = ((y + h as i64).div_euclid(CELL) + 2 - top) as usize;
        let homes = (0..rows * cols)
            .map(|k| layout.home(left + (k % cols) as i64, top + (k / cols) as i64))
            .collect();
        Self { left, top, cols, homes }
    }

    /// Distance to the border with the next cell, px, and the owner's random bits.
    fn at(&self, px: f64, py: f64) -> (f32, u64) {
        let (ci, cj) = ((px as i64).div_euclid(CELL), (py as i64).div_euclid(CELL));
        let (mut first, mut second, mut owner) = (f64::MAX, f64::MAX, 0);
        for dj in -1..=1 {
            for di in -2..=1 {
                let k = (cj + dj - self.top) as usize * self.cols + (ci + di - self.left) as usize;
                let (home, bits) = self.homes[k];
                let d = (home[0] - px).powi(2) + (home[1] - py).powi(2);
                if d < first {
                    second = first;
                    first = d;
                    owner = bits;
                } else if d < second {
                    second = d;
                }
            }
        }
        ((second.sqrt() - first.sqrt()) as f32, owner)
    }
}
