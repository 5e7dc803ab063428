//! Windows and the cells between their strides.
//!
//! Window (row, col) covers the working pixels `[col * stride, col * stride + window)` across and
//! likewise down, whatever is cut out of the slide. Cell (row, col) is its first `stride` pixels each
//! way; cells tile the frame, and only the windows (row - 1 | row, col - 1 | col) reach into a cell.

use crate::error::DetectError;
use serde::{Deserialize, Serialize};

/// Window side and stride in working pixels (512 and 400).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    window: u32,
    stride: u32,
}

impl Grid {
    /// A grid whose windows overlap at most their direct neighbours.
    ///
    /// # Errors
    /// [`DetectError::Recipe`] unless `1 <= stride <= window <= 2 * stride`.
    pub fn new(window: u32, stride: u32) -> Result<Self, DetectError> {
        if stride == 0 || window < stride || window > stride.saturating_mul(2) {
            return Err(DetectError::Recipe(format!(
                "windows of {window} px at stride {stride} px: the stride must be between half the \
                 window and the window"
            )));
        }
        Ok(Self { window, stride })
    }

    /// Side of a window, px.
    #[must_use]
    pub const fn window(&self) -> u32 {
        self.window
    }

    /// Distance of neighbouring windows, px.
    #[must_use]
    pub const fn stride(&self) -> u32 {
        self.stride
    }

    /// Pixels that neighbouring windows share.
    #[must_use]
    pub const fn overlap(&self) -> u32 {
        self.window - self.stride
    }

    /// Every window needed to cover a frame, in row-major order: the last of a row or column is the
    /// first that reaches the edge.
    #[must_use]
    pub fn cover(&self, frame: Frame) -> Vec<WindowAt> {
        let along = |n: u32| match n {
            0 => 0,
            n => n.saturating_sub(self.window).div_ceil(self.stride) + 1,
        };
        let (rows, cols) = (along(frame.height), along(frame.width));
        (0..rows).flat_map(|row| (0..cols).map(move |col| WindowAt { row, col })).collect()
    }
}

/// Size of the working frame in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Pixels per row, at the resolution of the windows.
    pub width: u32,
    /// Rows, at the resolution of the windows.
    pub height: u32,
}

/// A window by its place in the grid; orders row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WindowAt {
    /// Number of the row, from the top, 0 the first.
    pub row: u32,
    /// Number in its row, from the left, 0 the first.
    pub col: u32,
}
