//! Places in a table of truth: in px, in um, or in both, which are compared.

use super::boxes::Boxes;
use base::table::{Table, TableError};
use mitosis::{Level0, Physical, Point, Resolution};
use regions::rows::{ONE_CELL_PX, ONE_CELL_UM, Rows};
use regions::units::{self, InBoth, StatedMpp, step};

/// A coordinate as the truth gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    Level0(f64, f64),
    Physical(f64, f64),
}

impl Place {
    /// Why a row with this place is of the same object as one of another person above.
    pub(super) fn same_object(
        self,
        rows: &mut Rows,
        table: &Table,
        row: usize,
        slide: &str,
    ) -> Option<String> {
        let (at, near) = match self {
            Self::Level0(x, y) => ([x, y], ONE_CELL_PX),
            Self::Physical(x, y) => ([x, y], ONE_CELL_UM),
        };
        rows.same_object(table, row, slide, at, near)
    }

    pub(super) fn physical(self, resolution: &Resolution) -> Point<Physical> {
        match self {
            Self::Level0(x, y) => resolution.to_physical(Point::<Level0>::new(x, y)),
            Self::Physical(x, y) => Point::new(x, y),
        }
    }
}

/// The pairs of columns with a place that a truth has: level-0 px by any of their names, and um.
pub(super) struct Columns {
    px: Vec<[usize; 2]>,
    um: Option<[usize; 2]>,
    /// `cx`, `cy`: the only ones that cannot be the corner of a box.
    centre: Option<[usize; 2]>,
    boxes: Option<Boxes>,
    units: units::Columns,
}

impl Columns {
    pub(super) fn find(table: &Table) -> Result<Self, TableError> {
        // Both of one pair: a table may have others besides.
        let pair = |[x, y]: [&str; 2]| match (table.find(&[x]), table.find(&[y])) {
            (Some(_), Some(_)) => Ok(Some([table.need(&[x])?, table.need(&[y])?])),
            _ => Ok::<_, TableError>(None),
        };
        let mut px = Vec::new();
        for names in [["x_px", "y_px"], ["x", "y"]] {
            px.extend(pair(names)?);
        }
        let centre = pair(["cx", "cy"])?;
        px.extend(centre);
        let um = pair(["x_um", "y_um"])?;
        if px.is_empty() && um.is_none() {
            return Err(table.missing(&["x_px", "x", "cx", "x_um"]));
        }
        let first = px.first().copied();
        let of_images = |b: &Boxes| first.is_some_and(|at| b.are_of_images(table, at));
        let boxes = Boxes::find(table).filter(|b| !of_images(b));
        Ok(Self { px, um, centre, boxes, units: units::Columns::find(table) })
    }

    /// The pairs that have a cell in a row, those in px first.
    pub(super) fn filled<'a>(
        &'a self,
        table: &'a Table,
        row: usize,
    ) -> impl Iterator<Item = [usize; 2]> + 'a {
        let all = self.px.iter().chain(&self.um).copied();
        all.filter(move |pair| pair.iter().any(|c| !table.cell(row, *c).is_empty()))
    }

    /// um/px that a row states.
    pub(super) fn mpp(&self, table: &Table, row: usize) -> Result<Option<StatedMpp>, TableError> {
        self.units.mpp(table, row)
    }

    /// The first column, to name in an error.
    pub(super) fn first(&self) -> usize {
        self.px.first().or(self.um.as_ref()).map_or(0, |pair| pair[0])
    }

    /// The place of a row that has one; and to compare as well, where it has one in px and one in um.
    pub(super) fn read(
        &self,
        table: &Table,
        row: usize,
    ) -> Result<(Place, Option<InBoth>), TableError> {
        let step = |pair: [usize; 2]| {
            pair.map(|c| step(table.cell(row, c))).into_iter().fold(0.0, f64::max)
        };
        let (mut px, mut um): (Option<([usize; 2], [f64; 2])>, _) = (None, None);
        for pair in self.filled(table, row) {
            let at = [table.number(row, pair[0])?, table.number(row, pair[1])?];
            if Some(pair) == self.um {
                um = Some((pair, at));
                continue;
            }
            let Some((first, known)) = px else {
                px = Some((pair, at));
                continue;
            };
            let near = step(first) + step(pair);
            if (0..2).any(|axis| (at[axis] - known[axis]).abs() > near) {
                let name = |c: usize| &table.names()[c];
                let reason = format!(
                    "{}, {} px, but {}, {} px by the columns '{}' and '{}'; one pair is not the centre in level-0 px: \
                     correct it or remove it",
                    known[0],
                    known[1],
                    at[0],
                    at[1],
                    name(pair[0]),
                    name(pair[1])
                );
                return Err(table.wrong(row, first[0], reason));
            }
        }
        if px.is_some() {
            self.units.check_px(table, row)?;
        }
        self.check_boxes(table, row)?;
        let place = match (px, um) {
            (Some((_, [x, y])), _) => Place::Level0(x, y),
            (None, Some((_, [x, y]))) => Place::Physical(x, y),
            (None, None) => return Err(table.wrong(row, self.first(), "is empty")),
        };
        let both = px.zip(um).map(|((in_px, px), (in_um, um))| InBoth {
            px: px.map(|v| [v; 2]),
            um,
            steps: [step(in_px), step(in_um)],
            row: table.place(row, in_um[0]),
        });
        Ok((place, both))
    }

    /// Refuses the place of a row that is the corner of a box, or may be.
    fn check_boxes(&self, table: &Table, row: usize) -> Result<(), TableError> {
        let Some(boxes) = &self.boxes else { return Ok(()) };
        let mut filled = self.filled(table, row);
        match filled.next() {
            Some(first)
                if self.centre != Some(first) && !filled.any(|p| self.centre == Some(p)) =>
            {
                boxes.check(table, row, first, self.um == Some(first))
            }
            _ => Ok(()),
        }
    }
}
