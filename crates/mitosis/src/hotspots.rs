//! Hotspots by other rules than the paper's: circles, other areas, fields that are adjacent or apart.

use crate::count::{CountError, HALF_SIDE_UM, micrometres};
use crate::{Level0, Point, Resolution, neighbours};
use serde::{Deserialize, Serialize};

/// Shape of a hotspot or of a field of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// An upright square, its border included.
    #[default]
    Square,
    /// A circle, its border included.
    Circle,
}

/// How a hotspot is counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotspotRule {
    /// Shape of each field.
    pub shape: Shape,
    /// Number of fields.
    pub fields: u32,
    /// Area of a field, mm2.
    pub field_mm2: f64,
    /// Whether the fields may be apart; otherwise they are one area of `fields * field_mm2`.
    pub apart: bool,
}

/// A hotspot by some rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Spot {
    /// Figures in it.
    pub count: usize,
    /// Its centre, or those of its fields if they are apart, level-0 px.
    pub centres: Vec<Point<Level0>>,
}

/// Strips by which circles that overlap or are cut are measured: to a millionth.
const STRIPS: usize = 16_384;

impl HotspotRule {
    /// The paper's: one square of 2 mm2.
    pub const PAPER: Self = Self { shape: Shape::Square, fields: 1, field_mm2: 2.0, apart: false };

    /// Whether its numbers make sense: 1 to 100 fields of 0.01 to 20 mm2.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        (1..=100).contains(&self.fields) && (0.01..=20.0).contains(&self.field_mm2)
    }

    /// All of it, mm2.
    #[must_use]
    pub fn area_mm2(&self) -> f64 {
        f64::from(self.fields) * self.field_mm2
    }

    /// What a reader is shown, e.g. `circle of 10 fields of 0.237 mm²`.
    fn description(&self) -> String {
        let Self { fields, field_mm2, .. } = *self;
        let shape = match self.shape {
            Shape::Square => "square",
            Shape::Circle => "circle",
        };
        match (fields, self.apart) {
            (1, _) => format!("{shape} of {field_mm2} mm\u{b2}"),
            (_, true) => format!("{fields} {shape}s of {field_mm2} mm\u{b2} each"),
            (_, false) => format!("{shape} of {fields} fields of {field_mm2} mm\u{b2}"),
        }
    }

    /// The name of a preset, as it is shown: what the reviewer set has no other name than its words.
    #[must_use]
    pub fn named(&self, preset: &str) -> String {
        match preset {
            "own" => self.description(),
            name => name.to_owned(),
        }
    }

    /// Half a side, or the radius, of one part of it, um.
    #[must_use]
    pub fn reach_um(&self) -> f64 {
        let mm2 = if self.apart { self.field_mm2 } else { self.area_mm2() };
        match self.shape {
            // The same digits as those of the paper's own square.
            Shape::Square if !self.apart && mm2 == 2.0 => HALF_SIDE_UM,
            Shape::Square => mm2.sqrt() / 2.0 * 1000.0,
            Shape::Circle => (mm2 / std::f64::consts::PI).sqrt() * 1000.0,
        }
    }

    /// The part of it on a slide of this level-0 size in px, mm2: what hangs over the edge was not looked at, and what
    /// two of its fields share counts once.
    #[must_use]
    pub fn on_slide_mm2(
        &self,
        centres: &[Point<Level0>],
        [width, height]: [f64; 2],
        resolution: &Resolution,
    ) -> f64 {
        let far = self.reach_um();
        let (w, h) = (width * resolution.x.get(), height * resolution.y.get());
        let um: Vec<[f64; 2]> =
            centres.iter().map(|p| resolution.to_physical(*p)).map(|p| [p.x, p.y]).collect();
        let clipped = |at: f64, most: f64| ((at + far).min(most) - (at - far).max(0.0)).max(0.0);
        match um[..] {
            [] => return 0.0,
            // The usual one, to the last digit.
            [[x, y]] if self.shape == Shape::Square => return clipped(x, w) * clipped(y, h) * 1e-6,
            _ => {}
        }
        let whole = |[x, y]: &[f64; 2]| *x >= far && *y >= far && *x + far <= w && *y + far <= h;
        let meet = |a: &[f64; 2], b: &[f64; 2]| match self.shape {
            Shape::Square => (a[0] - b[0]).abs().max((a[1] - b[1]).abs()) < 2.0 * far,
            Shape::Circle => (a[0] - b[0]).hypot(a[1] - b[1]) < 2.0 * far,
        };
        let met = um.iter().enumerate().any(|(i, a)| um[i + 1..].iter().any(|b| meet(a, b)));
        if !met && um.iter().all(whole) {
            return self.area_mm2() * um.len() as f64
                / if self.apart { f64::from(self.fields) } else { 1.0 };
        }
        self.scanned_mm2(&um, [w, h])
    }

    /// All of it as it was placed, mm2: what two of its fields share counts once.
    #[must_use]
    pub fn placed_mm2(&self, centres: &[Point<Level0>], resolution: &Resolution) -> f64 {
        let reach = [resolution.x, resolution.y].map(|mpp| self.reach_um() / mpp.get());
        let low = |axis: fn(&Point<Level0>) -> f64| {
            centres.iter().map(axis).fold(f64::INFINITY, f64::min)
        };
        let (x, y) = (low(|p| p.x), low(|p| p.y));
        let moved: Vec<Point<Level0>> =
            centres.iter().map(|p| Point::new(p.x - x + reach[0], p.y - y + reach[1])).collect();
        self.on_slide_mm2(&moved, [f64::MAX; 2], resolution)
    }

    /// The area that parts around these places, um, cover of a slide of this size: strip by strip.
    fn scanned_mm2(&self, um: &[[f64; 2]], [w, h]: [f64; 2]) -> f64 {
        let far = self.reach_um();
        let top = um.iter().map(|p| p[1] - far).fold(f64::INFINITY, f64::min).max(0.0);
        let below = um.iter().map(|p| p[1] + far).fold(0.0, f64::max).min(h);
        let high = (below - top).max(0.0);
        let mut edges: Vec<f64> = match self.shape {
            // Between the edges of squares all lines are alike.
            Shape::Square => um.iter().flat_map(|p| [p[1] - far, p[1] + far]).collect(),
            Shape::Circle => (0..=STRIPS).map(|k| top + high * k as f64 / STRIPS as f64).collect(),
        };
        edges.iter_mut().for_each(|y| *y = y.clamp(top, top + high));
        edges.sort_by(f64::total_cmp);
        let covered = |y: f64| {
            let half = |p: &[f64; 2]| match self.shape {
                _ if (y - p[1]).abs() > far => None,
                Shape::Square => Some(far),
                Shape::Circle => Some((far * far - (y - p[1]).powi(2)).sqrt()),
            };
            let mut spans: Vec<[f64; 2]> = um
                .iter()
                .filter_map(|p| half(p).map(|r| [(p[0] - r).max(0.0), (p[0] + r).min(w)]))
                .collect();
            spans.sort_by(|a, b| a[0].total_cmp(&b[0]));
            let (mut covered, mut end) = (0.0, 0.0);
            for [from, to] in spans {
                covered += (to - from.max(end)).max(0.0);
                end = to.max(end);
            }
            covered
        };
        let strip = |e: &[f64]| (e[1] - e[0]) * covered(f64::midpoint(e[0], e[1]));
        edges.windows(2).filter(|e| e[1] > e[0]).map(strip).sum::<f64>() * 1e-6
    }

    fn holds(&self, [dx, dy]: [f64; 2]) -> bool {
        let far = self.reach_um();
        match self.shape {
            Shape::Square => dx.abs() <= far && dy.abs() <= far,
            Shape::Circle => dx.hypot(dy) <= far,
        }
    }

    /// Figures in a hotspot with these centres, each counted once.
    #[must_use]
    pub fn count(
        &self,
        figures: &[Point<Level0>],
        centres: &[Point<Level0>],
        resolution: &Resolution,
    ) -> usize {
        let um = |p: &Point<Level0>| {
            let p = resolution.to_physical(*p);
            [p.x, p.y]
        };
        let centres: Vec<[f64; 2]> = centres.iter().map(um).collect();
        let inside = |p: &&Point<Level0>| {
            let [x, y] = um(p);
            centres.iter().any(|c| self.holds([x - c[0], y - c[1]]))
        };
        figures.iter().filter(inside).count()
    }

    /// The densest places: `most` hotspots, each centred on a figure, that do not overlap, densest first; of equal
    /// ones the topmost, then the leftmost. If the fields may be apart there is one hotspot.
    ///
    /// # Errors
    /// [`CountError::NotFinite`] for a coordinate that is not a number.
    pub fn densest(
        &self,
        figures: &[Point<Level0>],
        resolution: &Resolution,
        most: usize,
    ) -> Result<Vec<Spot>, CountError> {
        let um = micrometres(figures, resolution)?;
        let far = self.reach_um();
        let counts = match self.shape {
            Shape::Square => neighbours::counts(&um, far, &mut 0),
            Shape::Circle => neighbours::counts_in_circle(&um, far, &mut 0),
        };
        let mut order: Vec<usize> = (0..figures.len()).collect();
        order.sort_by(|&a, &b| {
            let (p, q) = (figures[a], figures[b]);
            counts[b].cmp(&counts[a]).then(p.y.total_cmp(&q.y)).then(p.x.total_cmp(&q.x))
        });
        let apart = |a: [f64; 2], b: [f64; 2]| match self.shape {
            Shape::Square => (a[0] - b[0]).abs().max((a[1] - b[1]).abs()) > 2.0 * far,
            Shape::Circle => (a[0] - b[0]).hypot(a[1] - b[1]) > 2.0 * far,
        };
        let wanted = if self.apart { self.fields as usize } else { most };
        let mut chosen: Vec<usize> = Vec::new();
        for i in order {
            if chosen.len() == wanted {
                break;
            }
            if chosen.iter().all(|&j| apart(um[i], um[j])) {
                chosen.push(i);
            }
        }
        if self.apart && !chosen.is_empty() {
            let count = chosen.iter().map(|&i| counts[i]).sum();
            return Ok(vec![Spot {
                count,
                centres: chosen.into_iter().map(|i| figures[i]).collect(),
            }]);
        }
        let spot = |i: usize| Spot { count: counts[i], centres: vec![figures[i]] };
        Ok(chosen.into_iter().map(spot).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mpp;
    use crate::count::hotspot;

    fn scattered(n: usize) -> Vec<Point<Level0>> {
        let at = |i: usize, k: usize| ((i * k) % 9973) as f64 * 4.0;
        (0..n).map(|i| Point::new(at(i, 7919), at(i, 4409))).collect()
    }

    #[test]
    fn the_papers_rule_gives_the_papers_hotspot() {
        let resolution = Resolution::user(Mpp::new(0.25).unwrap());
        for n in [0, 1, 40, 700] {
            let figures = scattered(n);
            let best = HotspotRule::PAPER.densest(&figures, &resolution, 1).unwrap();
            let own = hotspot(&figures, &resolution).unwrap();
            assert_eq!(
                best.first().map(|s| (s.count, s.centres[0])),
                own.map(|h| (h.count, h.centre))
            );
        }
    }

    #[test]
    fn hotspots_do_not_overlap_and_are_counted_by_hand() {
        let resolution = Resolution::user(Mpp::new(0.25).unwrap());
        let figures = scattered(300);
        for rule in [
            HotspotRule::PAPER,
            HotspotRule { shape: Shape::Circle, fields: 10, field_mm2: 0.237, apart: false },
            HotspotRule { shape: Shape::Square, fields: 1, field_mm2: 5.0, apart: false },
        ] {
            let spots = rule.densest(&figures, &resolution, 3).unwrap();
            assert_eq!(spots.len(), 3);
            assert!(spots.windows(2).all(|w| w[0].count >= w[1].count));
            for spot in &spots {
                assert_eq!(rule.count(&figures, &spot.centres, &resolution), spot.count);
            }
            let all: Vec<_> = spots.iter().flat_map(|s| s.centres.clone()).collect();
            let sum: usize = spots.iter().map(|s| s.count).sum();
            assert_eq!(rule.count(&figures, &all, &resolution), sum, "no figure is in two");
        }
        let apart = HotspotRule { shape: Shape::Circle, fields: 10, field_mm2: 0.2, apart: true };
        let [spot] = &apart.densest(&figures, &resolution, 3).unwrap()[..] else { panic!("one") };
        assert_eq!(spot.centres.len(), 10);
        assert_eq!(apart.count(&figures, &spot.centres, &resolution), spot.count);
        let together = HotspotRule { apart: false, ..apart };
        assert!(spot.count >= together.densest(&figures, &resolution, 1).unwrap()[0].count);
    }

    #[test]
    fn what_hangs_over_the_edge_is_not_part_of_the_area() {
        let resolution = Resolution {
            x: Mpp::new(0.25).unwrap(),
            y: Mpp::new(0.5).unwrap(),
            source: crate::ResolutionSource::User,
        };
        // 20 x 20 mm.
        let slide = [80_000.0, 40_000.0];
        let at = |mm: [f64; 2]| Point::new(mm[0] * 4000.0, mm[1] * 2000.0);
        let of = |rule: HotspotRule, all: &[[f64; 2]]| {
            let centres: Vec<_> = all.iter().map(|p| at(*p)).collect();
            rule.on_slide_mm2(&centres, slide, &resolution)
        };
        let near = |got: f64, expected: f64| {
            assert!((got - expected).abs() < 1e-5, "{got}, not {expected}")
        };
        let half = HALF_SIDE_UM / 1000.0;
        for (centre, mm2) in [
            ([10.0, 10.0], 2.0),
            ([0.0, 10.0], 1.0),
            ([20.0, 20.0], 0.5),
            ([10.0, 0.2], 2.0 * half * (half + 0.2)),
        ] {
            near(of(HotspotRule::PAPER, &[centre]), mm2);
        }
        let circle = HotspotRule { shape: Shape::Circle, fields: 1, field_mm2: 3.0, apart: false };
        for (centre, mm2) in [([10.0, 10.0], 3.0), ([0.0, 10.0], 1.5), ([20.0, 0.0], 0.75)] {
            near(of(circle, &[centre]), mm2);
        }
        // Fields that are apart, that share a half, and that hang over the edge.
        let fields = HotspotRule { shape: Shape::Square, fields: 3, field_mm2: 1.0, apart: true };
        for (all, mm2) in [
            ([[5.0, 5.0], [7.0, 5.0], [9.0, 9.0]], 3.0),
            ([[5.0, 5.0], [5.5, 5.0], [9.0, 9.0]], 2.5),
            ([[5.0, 5.0], [5.0, 5.0], [0.0, 9.0]], 1.5),
        ] {
            near(of(fields, &all), mm2);
        }
        near(of(fields, &[[5.0, 5.0]]), 1.0);
        let edge = [at([5.0, 5.0]), at([5.0, 5.0]), at([0.0, 9.0])];
        near(fields.placed_mm2(&edge, &resolution), 2.0);
        near(circle.placed_mm2(&edge[2..], &resolution), 3.0);
        near(of(fields, &[]), 0.0);
    }

    #[test]
    fn areas_are_as_large_as_stated() {
        let circle =
            HotspotRule { shape: Shape::Circle, fields: 10, field_mm2: 0.237, apart: false };
        let r = circle.reach_um() / 1000.0;
        assert!((std::f64::consts::PI * r * r - 2.37).abs() < 1e-12);
        assert_eq!(HotspotRule::PAPER.reach_um(), HALF_SIDE_UM);
        assert!(!HotspotRule { fields: 0, ..circle }.is_sound() && circle.is_sound());
    }
}
