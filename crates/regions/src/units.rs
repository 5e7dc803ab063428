//! What a table states twice, in px and in um, or of an image that states it, too: compared at the image's um/px.

use base::table::{Table, TableError};
use mitosis::Mpp;
use slide::CONTRADICTION;

/// Columns of um/px, the same across and down.
pub const MPP: &[&str] = &["mpp", "um_per_px", "um/px"];
const MPP_X: &[&str] = &["mpp_x", "mppx"];
const MPP_Y: &[&str] = &["mpp_y", "mppy"];
/// Columns of a centre in um, across and down.
const UM: [&[&str]; 2] = [
    &[
        "x_um",
        "centroid_x_um",
        "center_x_um",
        "centre_x_um",
        "cx_um",
        "x µm",
        "x μm",
        "Centroid X µm",
        "Centroid X μm",
    ],
    &[
        "y_um",
        "centroid_y_um",
        "center_y_um",
        "centre_y_um",
        "cy_um",
        "y µm",
        "y μm",
        "Centroid Y µm",
        "Centroid Y μm",
    ],
];
/// Columns of the sides of a box in um.
const SIDES_UM: [&[&str]; 2] =
    [&["width_um", "w_um", "box_width_um"], &["height_um", "h_um", "box_height_um"]];

/// Columns of the unit of places, and the words for lengths in them: places are read as level-0 px.
const UNIT: &[&str] = &["unit", "units"];
const LENGTHS: [&str; 13] = [
    "um",
    "µm",
    "μm",
    "micron",
    "microns",
    "micrometer",
    "micrometers",
    "micrometre",
    "micrometres",
    "mm",
    "millimeter",
    "millimetre",
    "nm",
];

/// Digits of um/px by which the programs that wrote px and um may differ, as a share, and what that may
/// amount to, um.
const RESOLUTION_SHARE: f64 = 1e-4;
const RESOLUTION_UM: f64 = 1.0;

/// A place, or the sides of a box, both in px and in um.
#[derive(Clone, Debug, PartialEq)]
pub struct InBoth {
    /// Lowest and highest px by axis: one value of a point, and the edges of a box whose centre is in um.
    pub px: [[f64; 2]; 2],
    /// um by axis.
    pub um: [f64; 2],
    /// Steps in which the row writes px and um: the last decimal place of its cells.
    pub steps: [f64; 2],
    /// File, column, row and line.
    pub row: String,
}

impl InBoth {
    /// Whether both are one at these um/px, rounding aside.
    fn agrees(&self, mpp: [f64; 2]) -> bool {
        let near = |axis: usize| {
            let rounding = self.steps[0] * mpp[axis] + self.steps[1];
            let digits = (self.um[axis].abs() * RESOLUTION_SHARE).min(RESOLUTION_UM);
            let [low, high] = self.px[axis].map(|px| px * mpp[axis]);
            (self.um[axis] - self.um[axis].max(low).min(high)).abs() <= rounding + digits
        };
        near(0) && near(1)
    }
}

/// um/px that a row states.
#[derive(Clone, Debug, PartialEq)]
pub struct StatedMpp {
    /// Across and down.
    pub mpp: [f64; 2],
    /// File, column, row and line.
    pub row: String,
}

/// A row that contradicts itself, or the image that it is of.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Conflict {
    /// Its px and um are two places, or two sizes.
    #[error(
        "{row}: {}, {} px is {:.2}, {:.2} um at the slide's {} x {} um/px, but the row has {}, {} um; one pair of \
         columns is of another file, level or um/px: correct it or remove it",
        px[0], px[1], px[0] * mpp[0], px[1] * mpp[1], mpp[0], mpp[1], um[0], um[1]
    )]
    Place {
        /// File, column, row and line.
        row: String,
        /// In level-0 px.
        px: [f64; 2],
        /// In um.
        um: [f64; 2],
        /// um/px of the slide.
        mpp: [f64; 2],
    },
    /// Its um/px are not those of its image.
    #[error("{row}: {} x {} um/px, but {} x {} um/px hold for the image", stated[0], stated[1], mpp[0], mpp[1])]
    Resolution {
        /// File, column, row and line.
        row: String,
        /// um/px of the row.
        stated: [f64; 2],
        /// um/px of the slide, or of another row of it.
        mpp: [f64; 2],
    },
}

/// What the rows of one image state of units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Units {
    mpp: Vec<StatedMpp>,
    both: Vec<InBoth>,
}

impl Units {
    /// Adds what a row states of um/px; the first of equal ones is kept.
    pub fn push_mpp(&mut self, stated: StatedMpp) {
        if self.mpp.iter().all(|known| known.mpp != stated.mpp) {
            self.mpp.push(stated);
        }
    }

    /// The um/px that the first row with some states.
    #[must_use]
    pub fn stated_mpp(&self) -> Option<[f64; 2]> {
        self.mpp.first().map(|stated| stated.mpp)
    }

    /// Adds what a row states in both units.
    pub fn push(&mut self, both: InBoth) {
        self.both.push(both);
    }

    /// Checks that all rows agree with the um/px of their image.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self, mpp: [f64; 2]) -> Result<(), Conflict> {
        let differs = |a: f64, b: f64| (a - b).abs() > CONTRADICTION * a.max(b);
        let other = |s: &&StatedMpp| (0..2).any(|axis| differs(s.mpp[axis], mpp[axis]));
        if let Some(StatedMpp { mpp: stated, row }) = self.mpp.iter().find(other) {
            return Err(Conflict::Resolution { row: row.clone(), stated: *stated, mpp });
        }
        match self.both.iter().find(|both| !both.agrees(mpp)) {
            None => Ok(()),
            Some(InBoth { px, um, row, .. }) => {
                let px = px.map(|[low, high]| f64::midpoint(low, high));
                Err(Conflict::Place { row: row.clone(), px, um: *um, mpp })
            }
        }
    }

    /// Checks that the rows agree with each other, as far as they state um/px.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check_own(&self) -> Result<(), Conflict> {
        self.mpp.first().map_or(Ok(()), |first| self.check(first.mpp))
    }
}

/// Columns of a table that may repeat in another unit what others state in px.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns {
    mpp: Option<[usize; 2]>,
    um: Option<[usize; 2]>,
    sides: Option<[usize; 2]>,
    unit: Option<usize>,
}

impl Columns {
    /// Those of a table; none is needed.
    #[must_use]
    pub fn find(table: &Table) -> Self {
        let pair = |[x, y]: [&[&str]; 2]| Some([table.find(x)?, table.find(y)?]);
        let mpp = table.find(MPP).map(|column| [column; 2]).or_else(|| pair([MPP_X, MPP_Y]));
        Self { mpp, um: pair(UM), sides: pair(SIDES_UM), unit: table.find(UNIT) }
    }

    /// Checks that a row whose place is read in px states no other unit for it.
    ///
    /// # Errors
    /// [`TableError::Cell`] for a unit of length.
    pub fn check_px(&self, table: &Table, row: usize) -> Result<(), TableError> {
        let Some(column) = self.unit else { return Ok(()) };
        let unit = table.cell(row, column).trim().to_lowercase();
        if !LENGTHS.contains(&unit.as_str()) {
            return Ok(());
        }
        let reason = format!("places are in `{unit}`, but their columns are those of level-0 px");
        Err(table.wrong(row, column, reason))
    }

    /// um/px of a row, where it states some.
    ///
    /// # Errors
    /// [`TableError::Cell`] for a cell that is not a number.
    pub fn mpp(&self, table: &Table, row: usize) -> Result<Option<StatedMpp>, TableError> {
        let numbers = self.numbers(table, row, self.mpp)?;
        // Programs write 0 or -1 where they do not know it.
        let known = numbers.filter(|(mpp, ..)| mpp.iter().all(|v| Mpp::new(*v).is_ok()));
        Ok(known.map(|(mpp, _, row)| StatedMpp { mpp, row }))
    }

    /// What a row has in both units: its box, or the point `[x, y, x, y]`, and its centre and sides in um. `step` is
    /// that of the px.
    ///
    /// # Errors
    /// [`TableError::Cell`] for a cell that is not a number.
    pub fn in_both(
        &self,
        table: &Table,
        row: usize,
        [x0, y0, x1, y1]: [f64; 4],
        step: f64,
    ) -> Result<Vec<InBoth>, TableError> {
        let is_point = x0 == x1 && y0 == y1;
        let sides = self.sides.filter(|_| !is_point);
        let all = [(self.um, [[x0, x1], [y0, y1]]), (sides, [[x1 - x0; 2], [y1 - y0; 2]])];
        let mut both = Vec::new();
        for (columns, px) in all {
            if let Some((um, own, row)) = self.numbers(table, row, columns)? {
                both.push(InBoth { px, um, steps: [step, own], row });
            }
        }
        Ok(both)
    }

    /// The numbers of two columns, the larger step of their cells, and the place of the first.
    fn numbers(
        &self,
        table: &Table,
        row: usize,
        columns: Option<[usize; 2]>,
    ) -> Result<Option<([f64; 2], f64, String)>, TableError> {
        let Some([x, y]) = columns else { return Ok(None) };
        if [x, y].iter().any(|column| table.filled(row, Some(*column)).is_none()) {
            return Ok(None);
        }
        let numbers = [table.number(row, x)?, table.number(row, y)?];
        let steps = step(table.cell(row, x)).max(step(table.cell(row, y)));
        Ok(Some((numbers, steps, table.place(row, x))))
    }
}

/// The unit of a number's last written decimal place.
#[must_use]
pub fn step(cell: &str) -> f64 {
    let decimals = cell.rsplit_once(['.', ',']).map_or(0, |(_, part)| part.len());
    0.1_f64.powi(i32::try_from(decimals).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::table::Format;
    use std::path::Path;

    #[test]
    fn px_in_a_row_of_another_unit_are_refused() {
        let text = "x,y,unit\n1,2,px\n1,2,\n1,2,patients\n1,2,µm\n1,2,Micron\n";
        let table = Table::parse(Path::new("t.csv"), text.as_bytes(), &Format::default()).unwrap();
        let check = |row| Columns::find(&table).check_px(&table, row).map_err(|e| e.to_string());
        assert!((0..3).all(|row| check(row) == Ok(())));
        for row in [3, 4] {
            let refused = check(row).unwrap_err();
            assert!(refused.contains("but their columns are those of level-0 px"), "{refused}");
        }
    }

    #[test]
    fn a_row_in_two_units_is_compared_at_the_um_per_px_of_its_image() {
        let text = "mpp,Centroid X µm,Centroid Y µm,width_um,height_um\n\
                    0.25,30.0,40.0,10,5\n0.26,33.1,42.5,10.4,5.2\n,30,61,,\n,,,12,5\n0,,,,\n0.5,,,,\n";
        let table = Table::parse(Path::new("t.csv"), text.as_bytes(), &Format::default()).unwrap();
        let columns = Columns::find(&table);
        let check = |row: usize, at: [f64; 4]| {
            let mut units = Units::default();
            columns.mpp(&table, row).unwrap().into_iter().for_each(|m| units.push_mpp(m));
            let both = columns.in_both(&table, row, at, 1.0).unwrap();
            both.into_iter().for_each(|b| units.push(b));
            units.check([0.25; 2]).map_err(|e| e.to_string())
        };
        let bbox = [100.0, 150.0, 140.0, 170.0];
        assert_eq!(check(0, bbox), Ok(()));
        assert_eq!(check(0, [120.0, 160.0, 120.0, 160.0]), Ok(()));
        // Digits of um/px, and any place within the box.
        assert_eq!(check(1, [100.0, 150.0, 141.0, 170.5]), Ok(()));
        assert_eq!(check(4, bbox), Ok(()), "a place without um, an unknown um/px");
        for (row, words) in [
            (2, "column 'Centroid X µm', row 3 (line 4): 120, 160 px is 30.00, 40.00 um"),
            (
                3,
                "row 4 (line 5): 40, 20 px is 10.00, 5.00 um at the slide's 0.25 x 0.25 um/px, but the row has 12, 5 um",
            ),
            (5, "column 'mpp', row 6 (line 7): 0.5 x 0.5 um/px, but 0.25 x 0.25 um/px hold"),
        ] {
            let refused = check(row, bbox).unwrap_err();
            assert!(refused.contains(words), "{words}: {refused}");
        }
    }
}
