//! Columns of boxes in a table of truth: a position next to them may be a corner of the box.

use base::table::{Table, TableError};
use regions::annotations::columns::{H, W, X0, X1, Y0, Y1};
use regions::units::step;

/// Smallest side of an image, px: boxes around figures are far smaller.
const IMAGE: f64 = 256.0;

/// The columns that give each row a box.
pub(super) enum Boxes {
    /// Left and upper edge, right and lower edge.
    Corners([usize; 4]),
    /// Left and upper edge, width and height.
    Sized([usize; 4]),
    /// Right and lower edge alone: the box begins at the position.
    End([usize; 2]),
    /// Width and height alone: the box begins at the position, or is around it.
    Size([usize; 2]),
}

impl Boxes {
    pub(super) fn find(table: &Table) -> Option<Self> {
        let pair = |x: &[&str], y: &[&str]| Some([table.find(x)?, table.find(y)?]);
        let start = pair(X0, Y0);
        let size = || {
            let (w, h) = ([W, &["width_px", "width_um"]], [H, &["height_px", "height_um"]]);
            pair(&w.concat(), &h.concat())
        };
        match (start, pair(X1, Y1), size()) {
            (Some([a, b]), Some([c, d]), _) => Some(Self::Corners([a, b, c, d])),
            (Some([a, b]), None, Some([c, d])) => Some(Self::Sized([a, b, c, d])),
            (None, Some(end), _) => Some(Self::End(end)),
            (None, None, Some(size)) => Some(Self::Size(size)),
            (_, None, None) => None,
        }
    }

    fn columns(&self) -> &[usize] {
        match self {
            Self::Corners(all) | Self::Sized(all) => all,
            Self::End(pair) | Self::Size(pair) => pair,
        }
    }

    /// Refuses a position, in the columns `at`, that is not near the centre of the row's box, or may not be.
    pub(super) fn check(
        &self,
        table: &Table,
        row: usize,
        at: [usize; 2],
        in_um: bool,
    ) -> Result<(), TableError> {
        let columns = self.columns();
        if columns.iter().any(|&c| table.cell(row, c).is_empty()) {
            return Ok(());
        }
        let sides = columns.iter().map(|&c| table.number(row, c)).collect::<Result<Vec<_>, _>>()?;
        let names = |of: &[usize]| {
            let all: Vec<String> = of.iter().map(|&c| format!("'{}'", table.names()[c])).collect();
            all.join(", ")
        };
        let (place, own) = (names(&at), names(columns));
        let reason = match self {
            Self::Corners(_) | Self::Sized(_) => {
                // Corners are in px.
                let Some(centre) =
                    self.centre_unless_near(table, row, at, &sides).filter(|_| !in_um)
                else {
                    return Ok(());
                };
                let [x, y] = [table.number(row, at[0])?, table.number(row, at[1])?];
                format!(
                    "{x}, {y}, but the box of the columns {own} has its centre at {}, {}; rename {place} to cx and cy if \
                     they are the figure's centre",
                    centre[0], centre[1]
                )
            }
            Self::End(_) => format!(
                "{place} are the corner of a box that ends at {own}; write its centre as {place}, and remove {own}"
            ),
            // `x_px` and `x_um` are the names of centres everywhere else.
            Self::Size(_) if !names_no_unit(table, at) || sides == [0.0, 0.0] => return Ok(()),
            Self::Size(_) => format!(
                "{place} may be the corner of a box with the sides {own}, or its centre; write its centre as {place}, \
                 and remove {own}"
            ),
        };
        Err(table.wrong(row, at[0], reason))
    }

    /// Whether width and height are those of images: of at least so many px, and larger than any position.
    pub(super) fn are_of_images(&self, table: &Table, at: [usize; 2]) -> bool {
        let Self::Size(sides) = self else { return false };
        let larger = |row: usize, axis: usize| {
            let side = table.number(row, sides[axis]).unwrap_or(0.0);
            side >= IMAGE && table.number(row, at[axis]).is_ok_and(|v| v <= side)
        };
        let placed = |row: &usize| at.iter().all(|&c| !table.cell(*row, c).is_empty());
        let mut rows = (0..table.len()).filter(placed).peekable();
        rows.peek().is_some() && rows.all(|row| larger(row, 0) && larger(row, 1))
    }

    /// The centre of a box, unless the row's position is in its middle half: annotators mark a figure's own centre.
    fn centre_unless_near(
        &self,
        table: &Table,
        row: usize,
        at: [usize; 2],
        sides: &[f64],
    ) -> Option<[f64; 2]> {
        let &[x, y, c, d] = sides else { return None };
        let centre = match self {
            Self::Sized(_) => [x + c / 2.0, y + d / 2.0],
            _ => [f64::midpoint(x, c), f64::midpoint(y, d)],
        };
        let columns = self.columns();
        let near = |axis: usize| {
            let cells = [at[axis], columns[axis], columns[axis + 2]];
            let rounding: f64 =
                cells.map(|c| step(table.cell(row, c))).into_iter().fold(0.0, f64::max);
            let quarter = (centre[axis] - sides[axis]).abs() / 2.0;
            let most = rounding.max(quarter);
            table.number(row, at[axis]).is_ok_and(|v| (v - centre[axis]).abs() <= most)
        };
        (!(near(0) && near(1))).then_some(centre)
    }
}

/// Whether a position is in columns called `x` and `y` alone.
fn names_no_unit(table: &Table, at: [usize; 2]) -> bool {
    at.iter().all(|&c| matches!(table.names()[c].to_lowercase().as_str(), "x" | "y"))
}
