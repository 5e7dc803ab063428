//! Areas bounded by polygons, in level-0 pixels.

use i_overlay::core::fill_rule::FillRule;
use i_overlay::core::overlay_rule::OverlayRule;
use i_overlay::float::overlay::FloatOverlay;
use mitosis::{Level0, Point};

/// A ring of corners in level-0 px; the first is not repeated.
pub type Ring = Vec<[f64; 2]>;

/// A set of disjoint polygons with holes, in level-0 pixels.
///
/// Every area is valid by construction: rings neither cross themselves nor each other, outer rings wind
/// one way and holes the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Area {
    /// Per polygon its outer ring and then its holes.
    shapes: Vec<Vec<Ring>>,
}

fn overlay(subject: &[Vec<Ring>], clip: &[Vec<Ring>], rule: OverlayRule) -> Area {
    let (subject, clip) = (subject.to_vec(), clip.to_vec());
    // Sixty-four bits: with thirty-two a slide of 100,000 px is known to 0.0001 px only.
    let mut both = FloatOverlay::<[f64; 2], i64>::from_subj_and_clip(&subject, &clip);
    Area { shapes: both.overlay(rule, FillRule::EvenOdd) }
}

/// The inside of rings that may cross themselves and each other: whatever any of them encloses.
fn enclosed(rings: &[Ring]) -> Area {
    // All wound the same way, so that two rings never cancel each other out.
    let turned = |ring: &Ring| {
        let mut ring = ring.clone();
        if signed(&ring) < 0.0 {
            ring.reverse();
        }
        ring
    };
    let rings: Vec<Ring> = rings.iter().filter(|r| r.len() > 2).map(turned).collect();
    if rings.is_empty() {
        return Area::default();
    }
    let mut all = FloatOverlay::<[f64; 2], i64>::from_subj(&rings);
    Area { shapes: all.overlay(OverlayRule::Subject, FillRule::NonZero) }
}

/// Signed area of a ring, px2.
fn signed(ring: &[[f64; 2]]) -> f64 {
    // From the first corner, so that a small ring far from the origin keeps its digits.
    let Some([x, y]) = ring.first() else { return 0.0 };
    let at = |i: usize| [ring[i % ring.len()][0] - x, ring[i % ring.len()][1] - y];
    let cross = |i: usize| at(i)[0] * at(i + 1)[1] - at(i + 1)[0] * at(i)[1];
    (0..ring.len()).map(cross).sum::<f64>() / 2.0
}

impl Area {
    /// A polygon as it was drawn: what its outer ring encloses, without what its holes enclose.
    #[must_use]
    pub fn polygon(outer: &Ring, holes: &[Ring]) -> Self {
        let whole = enclosed(std::slice::from_ref(outer));
        if holes.is_empty() { whole } else { whole.minus(&enclosed(holes)) }
    }

    /// What any of these rings encloses: they may cross themselves and each other, and wind either way.
    #[must_use]
    pub fn enclosed(rings: &[Ring]) -> Self {
        enclosed(rings)
    }

    /// An upright rectangle.
    #[must_use]
    pub fn rectangle([x0, y0]: [f64; 2], [x1, y1]: [f64; 2]) -> Self {
        enclosed(&[vec![[x0, y0], [x1, y0], [x1, y1], [x0, y1]]])
    }

    /// The union of these axis-parallel rectangles.
    #[must_use]
    pub fn rectangles(all: &[[f64; 4]]) -> Self {
        let ring =
            |[x0, y0, x1, y1]: &[f64; 4]| vec![[*x0, *y0], [*x1, *y0], [*x1, *y1], [*x0, *y1]];
        enclosed(&all.iter().map(ring).collect::<Vec<_>>())
    }

    /// Whether the area is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// The union with another area.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other.clone(),
            (_, true) => self.clone(),
            _ => overlay(&self.shapes, &other.shapes, OverlayRule::Union),
        }
    }

    /// The intersection with another area.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return Self::default();
        }
        overlay(&self.shapes, &other.shapes, OverlayRule::Intersect)
    }

    /// This area without the other.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return self.clone();
        }
        overlay(&self.shapes, &other.shapes, OverlayRule::Difference)
    }

    /// Its size in square level-0 pixels.
    #[must_use]
    pub fn px2(&self) -> f64 {
        let shape = |rings: &Vec<Ring>| rings.iter().map(|r| signed(r)).sum::<f64>().abs();
        // From 0: the sum of nothing is -0.
        self.shapes.iter().map(shape).fold(0.0, |sum, area| sum + area)
    }

    /// Its size in mm2 on a slide of this many um/px, across and down.
    #[must_use]
    pub fn mm2(&self, [x, y]: [f64; 2]) -> f64 {
        self.px2() * x * y * 1e-6
    }

    /// Per polygon its outer ring and then its holes, closed: the first corner is repeated.
    #[must_use]
    pub fn closed(&self) -> Vec<Vec<Ring>> {
        let close = |ring: &Ring| ring.iter().chain(ring.first()).copied().collect();
        self.shapes.iter().map(|s| s.iter().map(close).collect()).collect()
    }

    /// Smallest and largest coordinates; none of an empty area.
    #[must_use]
    pub fn bounds(&self) -> Option<([f64; 2], [f64; 2])> {
        let mut points = self.shapes.iter().flatten().flatten();
        let first = *points.next()?;
        Some(points.fold((first, first), |(low, high), p| {
            ([low[0].min(p[0]), low[1].min(p[1])], [high[0].max(p[0]), high[1].max(p[1])])
        }))
    }

    /// The same, moved.
    #[must_use]
    pub fn moved(&self, [dx, dy]: [f64; 2]) -> Self {
        let ring = |r: &Ring| r.iter().map(|[x, y]| [x + dx, y + dy]).collect();
        Self { shapes: self.shapes.iter().map(|s| s.iter().map(ring).collect()).collect() }
    }

    /// The same with both coordinates multiplied.
    #[must_use]
    pub fn scaled(&self, [sx, sy]: [f64; 2]) -> Self {
        let ring = |r: &Ring| r.iter().map(|[x, y]| [x * sx, y * sy]).collect();
        Self { shapes: self.shapes.iter().map(|s| s.iter().map(ring).collect()).collect() }
    }

    /// Edges from corner to corner.
    pub(crate) fn edges(&self) -> impl Iterator<Item = [[f64; 2]; 2]> + '_ {
        let of_ring =
            |r: &Ring| (0..r.len()).map(|i| [r[i], r[(i + 1) % r.len()]]).collect::<Vec<_>>();
        self.shapes.iter().flatten().flat_map(of_ring)
    }

    /// An index for fast point-in-area queries.
    #[must_use]
    pub fn index(&self) -> Inside {
        Inside::new(self)
    }
}

/// An index for point-in-area queries.
#[derive(Clone, Debug)]
pub struct Inside {
    top: f64,
    /// Rows of equal height in which edges are looked up.
    height: f64,
    rows: Vec<Vec<[[f64; 2]; 2]>>,
}

impl Inside {
    /// Rows that edges are sorted into.
    const ROWS: usize = 1024;

    fn new(area: &Area) -> Self {
        let Some((low, high)) = area.bounds() else {
            return Self { top: 0.0, height: 1.0, rows: Vec::new() };
        };
        let height = ((high[1] - low[1]) / Self::ROWS as f64).max(f64::MIN_POSITIVE);
        let mut index = Self { top: low[1], height, rows: vec![Vec::new(); Self::ROWS] };
        for edge in area.edges() {
            let [y0, y1] = [edge[0][1].min(edge[1][1]), edge[0][1].max(edge[1][1])];
            for row in index.row(y0)..=index.row(y1) {
                index.rows[row].push(edge);
            }
        }
        index
    }

    fn row(&self, y: f64) -> usize {
        (((y - self.top) / self.height).max(0.0) as usize).min(Self::ROWS - 1)
    }

    /// Whether a point is inside. A point on the border is always assigned to the same side.
    #[must_use]
    pub fn contains(&self, p: Point<Level0>) -> bool {
        if self.rows.is_empty() || p.y < self.top {
            return false;
        }
        let crosses = |[[ax, ay], [bx, by]]: &[[f64; 2]; 2]| {
            (*ay > p.y) != (*by > p.y) && p.x < ax + (p.y - ay) / (by - ay) * (bx - ax)
        };
        self.rows[self.row(p.y)].iter().filter(|e| crosses(e)).count() % 2 == 1
    }
}

/// The share of each cell of a grid that an area covers, 0 to 1.
#[derive(Clone, Debug)]
pub struct Coverage {
    left: usize,
    top: usize,
    width: usize,
    part: Vec<f32>,
}

/// Shares below this are what the rounding of sums leaves in a cell that the area does not touch.
const ROUNDING: f64 = 1e-9;

impl Coverage {
    /// Of a grid of `size` cells from the origin, each of `cell` level-0 px across and down.
    ///
    /// Exact but for the last digits: each edge adds the signed area between it and the right border of the grid.
    #[must_use]
    pub fn new(area: &Area, cell: (f64, f64), size: (usize, usize)) -> Self {
        let none = Self { left: 0, top: 0, width: 0, part: Vec::new() };
        let Some((low, high)) = area.bounds() else { return none };
        let first = |v: f64, side: f64| (v / side).floor().max(0.0) as usize;
        let last = |v: f64, side: f64, most: usize| ((v / side).ceil().max(0.0) as usize).min(most);
        let (left, top) = (first(low[0], cell.0), first(low[1], cell.1));
        let (right, bottom) = (last(high[0], cell.0, size.0), last(high[1], cell.1, size.1));
        if right <= left || bottom <= top {
            return none;
        }
        let (width, height) = (right - left, bottom - top);
        // One extra column, for the area to the right of the grid.
        let mut sums = vec![0.0f64; (width + 1) * height];
        let scaled = |p: [f64; 2]| [p[0] / cell.0 - left as f64, p[1] / cell.1 - top as f64];
        for [a, b] in area.edges() {
            add_edge(&mut sums, (width, height), scaled(a), scaled(b));
        }
        let mut part = Vec::with_capacity(width * height);
        for row in sums.chunks_exact(width + 1) {
            let mut sum = 0.0;
            part.extend(row[..width].iter().map(|v| {
                sum += v;
                let share: f64 = sum.abs();
                if share < ROUNDING { 0.0 } else { (share as f32).min(1.0) }
            }));
        }
        Self { left, top, width, part }
    }

    /// The covered share of the cell in this column and row.
    #[must_use]
    pub fn at(&self, column: usize, row: usize) -> f64 {
        let Some(x) = column.checked_sub(self.left).filter(|x| *x < self.width) else { return 0.0 };
        let Some(y) = row.checked_sub(self.top) else { return 0.0 };
        self.part.get(y * self.width + x).map_or(0.0, |v| f64::from(*v))
    }
}

/// Adds the signed area right of an edge, as differences along each row of cells.
fn add_edge(sums: &mut [f64], (width, height): (usize, usize), a: [f64; 2], b: [f64; 2]) {
    let (top, bottom, sign) = if a[1] <= b[1] { (a, b, 1.0) } else { (b, a, -1.0) };
    let at = |y: f64| {
        let share = (y - top[1]) / (bottom[1] - top[1]);
        top[0] + share * (bottom[0] - top[0])
    };
    let (from, to) = (top[1].max(0.0), bottom[1].min(height as f64));
    if from >= to {
        return;
    }
    for row in from as usize..(to.ceil() as usize).min(height) {
        let (y0, y1) = (from.max(row as f64), to.min(row as f64 + 1.0));
        if y1 <= y0 {
            continue;
        }
        let line = &mut sums[row * (width + 1)..][..=width];
        let (x0, x1) = (at(y0), at(y1));
        let (low, high) = if x0 <= x1 { (x0, x1) } else { (x1, x0) };
        // The part of the edge between two places across, as a share of its height in this row.
        let dy = |l: f64, h: f64| match high > low {
            true => (h - l).max(0.0) / (high - low) * (y1 - y0),
            false => y1 - y0,
        };
        if low < 0.0 {
            // Left of the grid: the whole row is to the right of the edge.
            line[0] += sign * dy(low, high.min(0.0));
        }
        if high < 0.0 || (high <= low && low < 0.0) {
            continue;
        }
        let first = low.max(0.0).floor();
        let end = high.ceil().max(first + 1.0).min(width as f64);
        let mut column = first;
        while column < end {
            let (l, h) = (low.max(column), high.min(column + 1.0));
            let share = column + 1.0 - f64::midpoint(l, h);
            let cell = column as usize;
            line[cell] += sign * dy(l, h) * share;
            line[cell + 1] += sign * dy(l, h) * (1.0 - share);
            column += 1.0;
        }
    }
}

#[cfg(test)]
mod tests;
