//! What a row of a table states of its place in more columns than those that are read: compared, never chosen.

use super::collect::{Collector, Place, Raw};
use super::columns::{H, W};
use crate::units::{Columns, step};
use base::table::{Table, TableError};

/// Columns of centres in level-0 px. Rows and columns may be those of a grid.
const CENTRES: [[&str; 2]; 8] = [
    ["cx", "cy"],
    ["center_x", "center_y"],
    ["centre_x", "centre_y"],
    ["centroid_x", "centroid_y"],
    ["centroid_x_px", "centroid_y_px"],
    ["coordinateX", "coordinateY"],
    ["x_px", "y_px"],
    ["x", "y"],
];
/// px by which programs differ over the sides of one box: whether its last pixel is a part of it.
const LAST_PIXEL: f64 = 1.0;

/// The columns that may state a place once more.
pub(super) struct Twice {
    own: Vec<usize>,
    centres: Vec<[usize; 2]>,
    sides: Option<[usize; 2]>,
    units: Columns,
}

impl Twice {
    /// Those of a table, except for its `own` columns, from which places are read.
    pub fn find(table: &Table, own: &[usize]) -> Self {
        let pair = |x: &[&str], y: &[&str]| {
            let both = [table.find(x)?, table.find(y)?];
            both.iter().all(|column| !own.contains(column)).then_some(both)
        };
        let centres = CENTRES.iter().filter_map(|[x, y]| pair(&[x], &[y])).collect();
        let (sides, units) = (pair(W, H), Columns::find(table));
        Self { own: own.to_vec(), centres, sides, units }
    }

    /// Without the sides, which are those of images.
    pub fn of_images(self) -> Self {
        Self { sides: None, ..self }
    }

    /// Takes the record of a row unless the row contradicts itself; its units are compared once those of the image are
    /// known.
    pub fn take(&self, c: &mut Collector<'_>, table: &Table, row: usize, raw: Raw) {
        let px = self.units.check_px(table, row).map_err(|e| e.to_string());
        match px.and_then(|()| self.compare(table, row, raw.place)) {
            Err(e) => return c.problem(raw.record, e),
            Ok(Some(why)) => return c.problem(raw.record, why),
            Ok(None) => {}
        }
        let corners = raw.place.corners();
        let stated = self.units.mpp(table, row);
        let both = self.units.in_both(table, row, corners, self.step(table, row, &self.own));
        match (stated, both) {
            (Err(e), _) | (_, Err(e)) => c.problem(raw.record, e.to_string()),
            (Ok(stated), Ok(both)) => {
                let units = c.units(raw.image);
                stated.into_iter().for_each(|stated| units.push_mpp(stated));
                both.into_iter().for_each(|both| units.push(both));
                c.take(raw);
            }
        }
    }

    fn step(&self, table: &Table, row: usize, columns: &[usize]) -> f64 {
        columns.iter().map(|column| step(table.cell(row, *column))).fold(0.0, f64::max)
    }

    /// Why the px of a row contradict each other.
    fn compare(&self, table: &Table, row: usize, place: Place) -> Result<Option<String>, String> {
        let number =
            |column: usize| table.number(row, column).map_err(|e: TableError| e.to_string());
        let filled = |pair: &[usize; 2]| pair.iter().all(|c| table.filled(row, Some(*c)).is_some());
        let name = |column: usize| &table.names()[column];
        let corners @ [x0, y0, x1, y1] = place.corners();
        let own = self.step(table, row, &self.own);
        let sides = self.sides.filter(filled);
        let sides = sides.map(|pair| Ok::<_, String>((pair, [number(pair[0])?, number(pair[1])?])));
        let sides = sides.transpose()?;
        if let (Some(([w, h], stated)), Place::Box(_)) = (sides, place) {
            let drawn = [x1 - x0, y1 - y0];
            let most = LAST_PIXEL + own + self.step(table, row, &[w, h]);
            if (0..2).any(|axis| (drawn[axis] - stated[axis]).abs() > most) {
                return Ok(Some(format!(
                    "the box is {} x {} px by its corners and {} x {} px by the columns `{}` and `{}`; correct one of \
                     them",
                    drawn[0],
                    drawn[1],
                    stated[0],
                    stated[1],
                    name(w),
                    name(h)
                )));
            }
        }
        for pair @ [x, y] in self.centres.iter().filter(|pair| filled(pair)) {
            let at = [number(*x)?, number(*y)?];
            let most = own + self.step(table, row, pair);
            let is_within = |axis: usize, shift: f64| {
                let at = at[axis] + shift;
                at >= corners[axis] - most && at <= corners[axis + 2] + most
            };
            // Next to a centre, `x` and `y` with the sides of a box are its corner.
            let is_corner = || {
                let half = |axis: usize| sides.map_or(0.0, |(_, sides)| sides[axis] / 2.0);
                name(*x).eq_ignore_ascii_case("x") && (0..2).all(|axis| is_within(axis, half(axis)))
            };
            if !(0..2).all(|axis| is_within(axis, 0.0)) && !is_corner() {
                let read = match place {
                    Place::Point(x, y) => format!("the centre is {x}, {y} px"),
                    Place::Box(_) => format!("the box reaches from {x0}, {y0} to {x1}, {y1} px"),
                };
                return Ok(Some(format!(
                    "{read}, and the columns `{}` and `{}` have {}, {}; correct one of them",
                    name(*x),
                    name(*y),
                    at[0],
                    at[1]
                )));
            }
        }
        Ok(None)
    }
}
