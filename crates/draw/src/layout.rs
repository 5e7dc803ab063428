//! The layout of a drawn slide: tissue, nests of tumour, and every cell.

use super::noise::{Dice, fbm, hash, smoothstep, value};
use super::truth::{Kind, Phase, TruthPoint};
use base::remedy::{Remedied, Remedy};
use mitosis::Rect;
use std::collections::HashMap;
use std::fmt;

/// Side of the grid that holds one nucleus each, level-0 px (11 um).
pub(crate) const CELL: i64 = 44;

/// What to draw. Everything follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Level-0 width, px at 0.25 um/px.
    pub width: u32,
    /// Level-0 height, px.
    pub height: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// Mitotic figures drawn.
    pub figures: usize,
    /// Mimickers drawn.
    pub mimickers: usize,
    /// Tissue to aim for, mm2; capped at what fits the slide ([`Spec::fits`]).
    pub tissue_mm2: f64,
}

impl Spec {
    /// Resolution of every drawn slide, um/px.
    pub const MPP: f64 = 0.25;
    /// Smallest side, px.
    pub const MIN_SIDE: u32 = 512;
    /// Largest side, px.
    pub const MAX_SIDE: u32 = 200_000;

    /// A slide of the given size with the usual share of tissue (half of it, at most 8 mm2) and
    /// half as many mimickers again as figures.
    ///
    /// # Errors
    /// [`SpecError`] when a side is outside [`Self::MIN_SIDE`]..=[`Self::MAX_SIDE`].
    pub fn new(width: u32, height: u32, seed: u64, figures: usize) -> Result<Self, SpecError> {
        for side in [width, height] {
            if !(Self::MIN_SIDE..=Self::MAX_SIDE).contains(&side) {
                return Err(SpecError::Side(side));
            }
        }
        let mm2 = f64::from(width) * f64::from(height) * (Self::MPP * 1e-3).powi(2);
        let spec = Self {
            width,
            height,
            seed,
            figures,
            mimickers: figures + figures / 2,
            tissue_mm2: (0.5 * mm2).min(8.0),
        };
        Ok(spec)
    }

    /// Whether the slide has room for the tissue, about half of it at most.
    ///
    /// # Errors
    /// [`SpecError::NoRoom`] when less than 0.8 of it would be drawn.
    pub fn fits(&self) -> Result<(), SpecError> {
        let px2: f64 =
            blobs(self).iter().map(|b| std::f64::consts::PI * b.radius[0] * b.radius[1]).sum();
        let (wanted, placed) = (self.tissue_mm2, px2 * (Self::MPP * 1e-3).powi(2));
        if placed < ENOUGH * wanted { Err(SpecError::NoRoom { wanted, placed }) } else { Ok(()) }
    }
}

/// Why a slide cannot be drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum SpecError {
    /// A side too short or too long.
    #[error(
        "a drawn slide has sides of {min} to {max} px, not {0}",
        min = Spec::MIN_SIDE,
        max = Spec::MAX_SIDE
    )]
    Side(u32),
    /// The tissue has no room for so many.
    #[error(
        "only {placed} of {wanted} figures and mimickers fit on the tissue: \
         draw fewer, or a larger slide"
    )]
    Crowded { wanted: usize, placed: usize },
    /// The slide has no room for so much tissue.
    #[error(
        "only {placed:.2} of {wanted:.2} mm2 of tissue fit on the slide: draw less, or a larger slide"
    )]
    NoRoom {
        wanted: f64,
        /// Found room for, mm2.
        placed: f64,
    },
}

/// An ellipse of tissue with a wavy border.
#[derive(Clone, Copy, Debug)]
struct Blob {
    centre: [f64; 2],
    radius: [f64; 2],
}

/// Share of the tissue asked for that has to fit.
const ENOUGH: f64 = 0.8;
/// How far the border waves, in units of the radius.
const WAVE: f64 = 0.22;

/// A cell of the grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) centre: [f64; 2],
    pub(crate) seed: u64,
    pub(crate) tenant: Tenant,
}

/// Who lives in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tenant {
    Tumour,
    Spindle,
    Lymphocyte,
    Special(Kind, Phase),
}

/// The plan of one slide.
#[derive(Clone, Debug)]
pub struct Layout {
    spec: Spec,
    blobs: Vec<Blob>,
    special: HashMap<(i64, i64), (Kind, Phase, [f64; 2])>,
    truth: Vec<TruthPoint>,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spec { width, height, seed, figures, .. } = self.spec;
        let mimickers = self.truth.len() - figures;
        write!(f, "{width} x {height} px at {} um/px, {figures} mitotic figures, ", Spec::MPP)?;
        write!(f, "{mimickers} mimickers, seed {seed}")
    }
}

impl Layout {
    /// Lays a slide out: tissue first, then figures and mimickers on it.
    ///
    /// # Errors
    /// [`SpecError::Crowded`] when the tissue is too small for what was asked.
    pub fn new(spec: Spec) -> Result<Self, SpecError> {
        let blobs = blobs(&spec);
        let mut layout = Self { spec, blobs, special: HashMap::new(), truth: Vec::new() };
        layout.place()?;
        Ok(layout)
    }

    /// What was asked for.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Every drawn figure and mimicker, in reading order.
    #[must_use]
    pub fn truth(&self) -> &[TruthPoint] {
        &self.truth
    }

    /// Whether a rectangle (level-0 px, half-open) surely holds no tissue.
    #[must_use]
    pub fn is_empty(&self, rect: Rect) -> bool {
        let (x, y, w, h) = (rect.x, rect.y, rect.width as i64, rect.height as i64);
        // Nuclei and blur reach a little over the border.
        let pad = 80.0;
        let reach = 1.0 + WAVE + 0.02;
        !self.blobs.iter().any(|b| {
            let gap = |low: i64, len: i64, axis: usize| {
                let (a, z) = (low as f64 - pad, (low + len) as f64 + pad);
                (a - b.centre[axis]).max(b.centre[axis] - z).max(0.0) / (b.radius[axis] * reach)
            };
            gap(x, w, 0).powi(2) + gap(y, h, 1).powi(2) <= 1.0
        })
    }

    /// Signed depth inside tissue: positive inside, in px near the border.
    pub(crate) fn depth(&self, x: f64, y: f64) -> f32 {
        let mut best = f64::NEG_INFINITY;
        for b in &self.blobs {
            let (dx, dy) = ((x - b.centre[0]) / b.radius[0], (y - b.centre[1]) / b.radius[1]);
            let r = (dx * dx + dy * dy).sqrt();
            let short = b.radius[0].min(b.radius[1]);
            if (r - 1.0) * short < WAVE * short + 40.0 {
                best = best.max((1.0 - r) * short);
            }
        }
        if best == f64::NEG_INFINITY {
            return -1e6;
        }
        let short =
            self.blobs.iter().map(|b| b.radius[0].min(b.radius[1])).fold(f64::MAX, f64::min);
        let s = self.spec.seed;
        let wave = WAVE * short;
        let broad = value(s ^ 11, x / (0.7 * short), y / (0.7 * short));
        let fine = fbm(s ^ 12, x / 170.0, y / 170.0);
        let border = best as f32
            + (0.75 * wave) as f32 * broad
            + (0.2 * wave).min(28.0) as f32 * fine
            + 7.0 * fbm(s ^ 14, x / 31.0, y / 31.0);
        // Clefts and empty glands inside.
        let hole = (fbm(s ^ 13, x / 260.0, y / 230.0) - 0.60) * 260.0
            + 6.0 * value(s ^ 15, x / 23.0, y / 23.0);
        border.min(-hole)
    }

    /// 1 in a nest of tumour, 0 in stroma.
    pub(crate) fn tumour(&self, x: f64, y: f64) -> f32 {
        let s = self.spec.seed;
        let wx = x + 60.0 * f64::from(value(s ^ 21, x / 190.0, y / 190.0));
        let wy = y + 60.0 * f64::from(value(s ^ 22, x / 190.0, y / 190.0));
        smoothstep(-0.22, -0.12, fbm(s ^ 23, wx / 520.0, wy / 420.0))
    }

    pub(crate) fn home(&self, cx: i64, cy: i64) -> ([f64; 2], u64) {
        let seed = hash(self.spec.seed ^ 31, cx, cy);
        let mut dice = Dice::new(seed);
        let half = CELL as f64 / 2.0;
        let jitter = |d: &mut Dice| f64::from(d.range(-0.27, 0.27)) * CELL as f64;
        // Odd rows are shifted, so that no grid shows.
        let shift = if cy & 1 == 0 { 0.0 } else { half };
        let x = (cx * CELL) as f64 + half + shift + jitter(&mut dice);
        let y = (cy * CELL) as f64 + half + jitter(&mut dice);
        ([x, y], dice.bits())
    }

    /// The cell at a place of the grid; `None` where nobody lives.
    pub(crate) fn cell(&self, cx: i64, cy: i64) -> Option<Cell> {
        let (centre, seed) = self.home(cx, cy);
        if let Some(&(kind, phase, centre)) = self.special.get(&(cx, cy)) {
            return Some(Cell { centre, seed, tenant: Tenant::Special(kind, phase) });
        }
        if self.crowded(cx, cy, centre) || self.depth(centre[0], centre[1]) < 12.0 {
            return None;
        }
        let mut dice = Dice::new(seed ^ 0x77);
        let roll = dice.unit();
        let tenant = if self.tumour(centre[0], centre[1]) > 0.5 {
            match roll {
                r if r < 0.06 => Tenant::Lymphocyte,
                r if r < 0.84 => Tenant::Tumour,
                _ => return None,
            }
        } else {
            // Lymphocytes gather in patches.
            let gather =
                value(self.spec.seed ^ 32, centre[0] / 330.0, centre[1] / 330.0).max(0.0) * 0.7;
            match roll {
                r if r < 0.05 + gather => Tenant::Lymphocyte,
                r if r < 0.38 + gather => Tenant::Spindle,
                _ => return None,
            }
        };
        Some(Cell { centre, seed, tenant })
    }

    /// Whether a figure or mimicker close by leaves no room.
    fn crowded(&self, cx: i64, cy: i64, at: [f64; 2]) -> bool {
        (-2..=2).any(|dy| {
            (-2..=2).any(|dx| {
                self.special.get(&(cx + dx, cy + dy)).is_some_and(|(_, phase, c)| {
                    let room = if phase.is_wide() { 56.0 } else { 44.0 };
                    (c[0] - at[0]).hypot(c[1] - at[1]) < room
                })
            })
        })
    }

    fn place(&mut self) -> Result<(), SpecError> {
        let spec = self.spec.clone();
        let mut dice = Dice::new(spec.seed ^ 0xF16);
        let wanted = spec.figures + spec.mimickers;
        // Most figures gather around one place, so that there is a hotspot to find.
        let hot = self.hot_place(&mut dice);
        let spread = 0.16 * f64::from(spec.width.min(spec.height)).min(9000.0);
        let mut placed = 0;
        let mut tries = 0usize;
        let most = 4000 + 2000 * wanted;
        while placed < wanted {
            tries += 1;
            if tries > most {
                return Err(SpecError::Crowded { wanted, placed });
            }
            // On a small slide the wish for tumour and room gives way, bit by bit, to the figures asked for.
            let haste = tries as f32 / most as f32;
            let mitotic = placed < spec.figures;
            let gather = mitotic && placed % 5 < 3 && tries.is_multiple_of(2);
            let at = match (gather, hot) {
                (true, Some(hot)) => [
                    hot[0] + spread * f64::from(dice.normal()),
                    hot[1] + spread * f64::from(dice.normal()),
                ],
                _ => self.somewhere(&mut dice),
            };
            let (cx, cy) =
                ((at[0] / CELL as f64).floor() as i64, (at[1] / CELL as f64).floor() as i64);
            let (centre, _) = self.home(cx, cy);
            // A whole 128 px crop around each is on the slide.
            let inside = |v: f64, side: u32| v >= 64.0 && v <= f64::from(side) - 64.0;
            if !inside(centre[0], spec.width)
                || !inside(centre[1], spec.height)
                || self.depth(centre[0], centre[1]) < 36.0
                || (mitotic && self.tumour(centre[0], centre[1]) < 0.9 - haste)
                || self.neighbours(cx, cy, if haste < 0.25 { 3 } else { 2 })
            {
                continue;
            }
            let (kind, phase) = if mitotic {
                (Kind::Mitotic, Phase::MITOTIC[placed % Phase::MITOTIC.len()])
            } else {
                (Kind::Mimicker, Phase::MIMICKER[(placed - spec.figures) % Phase::MIMICKER.len()])
            };
            self.special.insert((cx, cy), (kind, phase, centre));
            placed += 1;
        }
        self.truth = self
            .special
            .values()
            .map(|&(kind, phase, [x, y])| TruthPoint { x_px: x, y_px: y, kind, phase })
            .collect();
        self.truth.sort_by(|a, b| a.y_px.total_cmp(&b.y_px).then(a.x_px.total_cmp(&b.x_px)));
        Ok(())
    }

    /// Whether another special is within `reach` cells: two never touch.
    fn neighbours(&self, cx: i64, cy: i64, reach: i64) -> bool {
        (-reach..=reach)
            .any(|dy| (-reach..=reach).any(|dx| self.special.contains_key(&(cx + dx, cy + dy))))
    }

    fn somewhere(&self, dice: &mut Dice) -> [f64; 2] {
        let b = self.blobs[dice.index(self.blobs.len())];
        let span = 1.0 + WAVE as f32;
        [
            b.centre[0] + b.radius[0] * f64::from(dice.range(-span, span)),
            b.centre[1] + b.radius[1] * f64::from(dice.range(-span, span)),
        ]
    }

    fn hot_place(&self, dice: &mut Dice) -> Option<[f64; 2]> {
        (0..2000)
            .map(|_| self.somewhere(dice))
            .find(|p| self.depth(p[0], p[1]) > 150.0 && self.tumour(p[0], p[1]) > 0.9)
    }
}

/// Pieces of tissue that fit the slide and do not touch.
fn blobs(spec: &Spec) -> Vec<Blob> {
    let (w, h) = (f64::from(spec.width), f64::from(spec.height));
    let px2 = (spec.tissue_mm2.max(0.001) / (Spec::MPP * 1e-3).powi(2)).min(0.6 * w * h);
    let share = px2 / (w * h);
    let mut dice = Dice::new(spec.seed ^ 0xB10B);
    if share > 0.2 {
        // One large piece and, next to it along the longer side, a small one.
        let main = 0.86 * px2;
        let long = w.max(h);
        let short = w.min(h);
        let across = 0.40 * short;
        let along = (main / (std::f64::consts::PI * across)).min(0.38 * long);
        let centre_along = along * (1.0 + 0.6 * WAVE) + 0.03 * long;
        let rest = long - centre_along - along;
        let mut out = vec![(centre_along, 0.5 * short, along, across)];
        if rest > 0.2 * long {
            let r = 0.30 * rest;
            out.push((long - r * 1.45, 0.33 * short, r, 1.5 * r.min(0.2 * short)));
        }
        return out
            .into_iter()
            .map(|(a, c, ra, rc)| {
                if w >= h {
                    Blob { centre: [a, c], radius: [ra, rc] }
                } else {
                    Blob { centre: [c, a], radius: [rc, ra] }
                }
            })
            .collect();
    }
    let n = 4;
    let r = (px2 / (n as f64 * std::f64::consts::PI)).sqrt();
    let mut out: Vec<Blob> = Vec::new();
    let mut tries = 0;
    while out.len() < n && tries < 10_000 {
        tries += 1;
        let stretch = f64::from(dice.range(0.8, 1.25));
        let radius = [r * stretch, r / stretch];
        let fit = |side: f64, r: f64, d: &mut Dice| {
            let margin = (r * (1.0 + WAVE) + 100.0).min(side / 2.0);
            margin + (side - 2.0 * margin) * f64::from(d.unit())
        };
        let centre = [fit(w, radius[0], &mut dice), fit(h, radius[1], &mut dice)];
        let apart =
            out.iter().all(|b| (b.centre[0] - centre[0]).hypot(b.centre[1] - centre[1]) > 2.9 * r);
        if apart {
            out.push(Blob { centre, radius });
        }
    }
    out
}

impl Remedied for SpecError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Side(_) | Self::NoRoom { .. } => Some(Remedy::DrawnSize),
            Self::Crowded { .. } => Some(Remedy::DrawnFigures),
        }
    }
}
