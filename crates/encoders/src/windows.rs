//! Where attention looks: windows of tokens, shifted in every second block.

use tch::Tensor;

/// Added to the score of two tokens that the cyclic shift alone brought together.
const APART: f32 = -100.0;

/// Where a block's windows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Tokens per side.
    pub side: i64,
    /// Window side.
    pub window: i64,
    /// Cyclic shift up and to the left.
    pub shift: i64,
}

impl Windows {
    pub fn new(side: i64, window: i64, shifted: bool) -> Self {
        let shift = if shifted && side > window { window / 2 } else { 0 };
        Self { side, window: window.min(side), shift }
    }

    /// Side after padding to whole windows.
    pub fn padded(self) -> i64 {
        (self.side + self.window - 1) / self.window * self.window
    }

    /// Windows per image.
    pub fn count(self) -> i64 {
        let n = self.padded() / self.window;
        n * n
    }

    /// Tokens of a window.
    pub fn area(self) -> i64 {
        self.window * self.window
    }

    /// `[area, area]`, flat: the row of the table of relative positions for each pair.
    pub fn index(self) -> Tensor {
        let w = self.window;
        let tokens = || (0..w).flat_map(|y| (0..w).map(move |x| (y, x)));
        let rows: Vec<i64> = tokens()
            .flat_map(|(y, x)| {
                tokens().map(move |(v, u)| (y - v + w - 1) * (2 * w - 1) + x - u + w - 1)
            })
            .collect();
        Tensor::from_slice(&rows)
    }

    /// `[count, area, area]`: [`APART`] where two tokens are not neighbours before the shift.
    pub fn mask(self) -> Option<Tensor> {
        if self.shift == 0 {
            return None;
        }
        let (side, window, area) = (self.padded(), self.window, self.area() as usize);
        let part = |i: i64| i64::from(i >= side - window) + i64::from(i >= side - self.shift);
        let starts = || (0..side / window).map(|i| i * window);
        let mut values = Vec::with_capacity(self.count() as usize * area * area);
        for (top, left) in starts().flat_map(|y| starts().map(move |x| (y, x))) {
            let parts: Vec<i64> = (top..top + window)
                .flat_map(|y| (left..left + window).map(move |x| 3 * part(y) + part(x)))
                .collect();
            for a in &parts {
                values.extend(parts.iter().map(|b| if a == b { 0.0 } else { APART }));
            }
        }
        Some(Tensor::from_slice(&values).reshape([self.count(), area as i64, area as i64]))
    }
}
