//! From a mask to polygons along pixel edges.

use serde::Serialize;
use std::collections::HashMap;
use uuid::Uuid;

/// One connected piece: a closed outer ring (first point repeated) and its holes.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    /// Outer ring; counterclockwise in a frame whose y points up, i.e. as GeoJSON wants it when the
    /// image's y is read as it is.
    pub outer: Vec<[f64; 2]>,
    /// Holes, wound the other way.
    pub holes: Vec<Vec<[f64; 2]>>,
}

/// Polygons as a GeoJSON FeatureCollection of annotations, as QuPath reads it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlines {
    r#type: &'static str,
    features: Vec<Feature>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Feature {
    r#type: &'static str,
    id: String,
    geometry: Geometry,
    properties: Properties,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Geometry {
    r#type: &'static str,
    coordinates: Vec<Vec<[f64; 2]>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    object_type: &'static str,
    is_locked: bool,
    classification: Class,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Class {
    name: &'static str,
    color: [u8; 3],
}

/// Polygons of one class, in level-0 px.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// Class of the polygons.
    pub name: &'static str,
    /// Colour of the class: red, green, blue.
    pub color: [u8; 3],
    /// Outlines with their holes, level-0 px.
    pub polygons: &'a [Polygon],
}

impl Outlines {
    /// The tissue; `offset` (level-0 px) is taken off every coordinate.
    pub(crate) fn new(polygons: &[Polygon], offset: (i64, i64)) -> Self {
        Self::from_layers([Layer { name: "Tissue", color: [0, 128, 0], polygons }], offset)
    }

    /// Polygons by class; `offset` (level-0 px) is taken off every coordinate.
    #[must_use]
    pub fn from_layers<'a>(
        layers: impl IntoIterator<Item = Layer<'a>>,
        offset: (i64, i64),
    ) -> Self {
        let shift = |ring: &Vec<[f64; 2]>| -> Vec<[f64; 2]> {
            ring.iter().map(|[x, y]| [x - offset.0 as f64, y - offset.1 as f64]).collect()
        };
        let feature = |name: &'static str, color, p: &Polygon| {
            let rings: Vec<_> = std::iter::once(&p.outer).chain(&p.holes).map(shift).collect();
            let id = serde_json::to_vec(&rings).unwrap_or_default();
            Feature {
                r#type: "Feature",
                id: Uuid::new_v5(&Uuid::NAMESPACE_OID, &id).to_string(),
                geometry: Geometry { r#type: "Polygon", coordinates: rings },
                properties: Properties {
                    object_type: "annotation",
                    is_locked: true,
                    classification: Class { name, color },
                },
            }
        };
        let layer = |Layer { name, color, polygons }: Layer<'a>| {
            polygons.iter().map(move |p| feature(name, color, p))
        };
        let features = layers.into_iter().flat_map(layer).collect();
        Self { r#type: "FeatureCollection", features }
    }
}

/// The outlines of squares on a lattice, given by column and row; corners of the lattice are mapped by
/// `place`.
#[must_use]
pub fn squares(places: &[(u32, u32)], place: impl Fn(f64, f64) -> [f64; 2]) -> Vec<Polygon> {
    let (columns, rows) = (|| places.iter().map(|p| p.0), || places.iter().map(|p| p.1));
    let (Some(left), Some(right)) = (columns().min(), columns().max()) else { return Vec::new() };
    let (top, bottom) = (rows().min().unwrap_or(0), rows().max().unwrap_or(0));
    let width = (right - left) as usize + 1;
    let mut mask = vec![false; width * ((bottom - top) as usize + 1)];
    for (x, y) in places {
        mask[(y - top) as usize * width + (x - left) as usize] = true;
    }
    trace(&mask, width, |x, y| place(x + f64::from(left), y + f64::from(top)))
}

/// Twice the signed area by the shoelace rule.
fn signed(ring: &[[f64; 2]]) -> f64 {
    ring.windows(2).map(|w| w[0][0] * w[1][1] - w[1][0] * w[0][1]).sum()
}

/// Traces the 4-connected pieces of a mask. Corners are pixel corners, mapped by `place`.
pub(crate) fn trace(
    mask: &[bool],
    width: usize,
    place: impl Fn(f64, f64) -> [f64; 2],
) -> Vec<Polygon> {
    let height = mask.len().checked_div(width).unwrap_or(0);
    let set = |x: i64, y: i64| {
        x >= 0
            && y >= 0
            && x < width as i64
            && y < height as i64
            && mask[(y * width as i64 + x) as usize]
    };
    // Directed edges with tissue on the right-hand side (y down), by start corner and direction
    // (0 right, 1 down, 2 left, 3 up).
    let mut edges: HashMap<(i64, i64), [bool; 4]> = HashMap::new();
    for y in 0..height as i64 {
        for x in 0..width as i64 {
            if !set(x, y) {
                continue;
            }
            let mut add = |at: (i64, i64), d: usize| edges.entry(at).or_default()[d] = true;
            if !set(x, y - 1) {
                add((x, y), 0);
            }
            if !set(x + 1, y) {
                add((x + 1, y), 1);
            }
            if !set(x, y + 1) {
                add((x + 1, y + 1), 2);
            }
            if !set(x - 1, y) {
                add((x, y + 1), 3);
            }
        }
    }
    let mut starts: Vec<(i64, i64)> = edges.keys().copied().collect();
    starts.sort_unstable_by_key(|(x, y)| (*y, *x));
    let (mut outers, mut holes) = (Vec::new(), Vec::new());
    for start in starts {
        while let Some(d) = edges.get(&start).and_then(|e| e.iter().position(|used| *used)) {
            let ring = follow(&mut edges, start, d);
            let real: Vec<[f64; 2]> = ring.iter().map(|(x, y)| [*x as f64, *y as f64]).collect();
            if signed(&real) > 0.0 { outers.push(real) } else { holes.push(real) }
        }
    }
    let mut polygons: Vec<Piece> = outers.into_iter().map(Piece::new).collect();
    for hole in holes {
        // The hole's piece is the smallest outer ring around it.
        let inside = inner_point(&hole);
        let around = polygons.iter_mut().filter(|p| p.holds(inside));
        if let Some(owner) = around.min_by(|a, b| a.area.total_cmp(&b.area)) {
            owner.holes.push(hole);
        }
    }
    let map = |ring: &Vec<[f64; 2]>| ring.iter().map(|[x, y]| place(*x, *y)).collect();
    polygons
        .iter()
        .map(|p| Polygon { outer: map(&p.outer), holes: p.holes.iter().map(map).collect() })
        .collect()
}

/// Follows edges from a corner until it is met again, turning right first so that pieces that touch
/// at a corner stay apart; corners on a straight line are left out.
fn follow(
    edges: &mut HashMap<(i64, i64), [bool; 4]>,
    start: (i64, i64),
    first: usize,
) -> Vec<(i64, i64)> {
    const STEP: [(i64, i64); 4] = [(1, 0), (0, 1), (-1, 0), (0, -1)];
    let mut ring = vec![start];
    let (mut at, mut d) = (start, first);
    loop {
        if let Some(e) = edges.get_mut(&at) {
            e[d] = false;
        }
        at = (at.0 + STEP[d].0, at.1 + STEP[d].1);
        if at == start {
            break;
        }
        let open = edges.get(&at).copied().unwrap_or_default();
        let turn = [(d + 1) % 4, d, (d + 3) % 4].into_iter().find(|t| open[*t]);
        let Some(next) = turn else { break };
        if next != d {
            ring.push(at);
        }
        d = next;
    }
    ring.push(start);
    ring
}

/// A point just inside the hole's first corner (a hole's ring winds around glass).
fn inner_point(hole: &[[f64; 2]]) -> [f64; 2] {
    // The topmost, leftmost corner of the ring: glass is right below it.
    let top = hole.iter().copied().min_by(|a, b| a[1].total_cmp(&b[1]).then(a[0].total_cmp(&b[0])));
    let [x, y] = top.unwrap_or_default();
    [x + 0.5, y + 0.5]
}

/// A ring with what makes the search for a hole's owner quick.
struct Piece {
    outer: Vec<[f64; 2]>,
    holes: Vec<Vec<[f64; 2]>>,
    area: f64,
    low: [f64; 2],
    high: [f64; 2],
}

impl Piece {
    fn new(outer: Vec<[f64; 2]>) -> Self {
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        for p in &outer {
            for k in 0..2 {
                low[k] = low[k].min(p[k]);
                high[k] = high[k].max(p[k]);
            }
        }
        Self { area: signed(&outer), outer, holes: Vec::new(), low, high }
    }

    fn holds(&self, [x, y]: [f64; 2]) -> bool {
        if x < self.low[0] || y < self.low[1] || x > self.high[0] || y > self.high[1] {
            return false;
        }
        let crosses = |w: &[[f64; 2]]| {
            let ([ax, ay], [bx, by]) = (w[0], w[1]);
            (ay > y) != (by > y) && x < ax + (y - ay) / (by - ay) * (bx - ax)
        };
        self.outer.windows(2).filter(|w| crosses(w)).count() % 2 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(rows: &[&str]) -> (Vec<bool>, usize) {
        (rows.concat().bytes().map(|b| b == b'#').collect(), rows[0].len())
    }

    fn area(p: &Polygon) -> f64 {
        (signed(&p.outer) + p.holes.iter().map(|h| signed(h)).sum::<f64>()) / 2.0
    }

    #[test]
    fn rings_and_holes() {
        let (m, w) = mask(&["#####..", "#...#.#", "#.#.#..", "#...#..", "#####.."]);
        let p = trace(&m, w, |x, y| [x, y]);
        assert_eq!(p.len(), 3);
        let areas: Vec<_> = p.iter().map(area).collect();
        assert_eq!(areas, [16.0, 1.0, 1.0]);
        assert_eq!(p[0].outer, [[0., 0.], [5., 0.], [5., 5.], [0., 5.], [0., 0.]]);
        assert_eq!(p[0].holes.len(), 1);
    }

    #[test]
    fn pieces_that_touch_at_a_corner_stay_apart() {
        let (m, w) = mask(&["#.", ".#"]);
        let p = trace(&m, w, |x, y| [x, y]);
        assert_eq!(p.len(), 2);
        assert!(p.iter().all(|p| area(p) == 1.0 && p.holes.is_empty()));
    }

    #[test]
    fn area_equals_the_pixel_count_on_noise() {
        let mut s = 7u64;
        let m: Vec<bool> = std::iter::repeat_with(|| {
            s = s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (s >> 40) % 5 < 3
        })
        .take(61 * 47)
        .collect();
        let p = trace(&m, 61, |x, y| [x, y]);
        let total: f64 = p.iter().map(area).sum();
        assert_eq!(total, m.iter().filter(|t| **t).count() as f64);
        for ring in p.iter().flat_map(|p| std::iter::once(&p.outer).chain(&p.holes)) {
            assert_eq!(ring.first(), ring.last());
        }
    }
}
