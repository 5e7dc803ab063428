//! Typed coordinates: spaces never mix, one frame converts.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// Level-0 pixels of a slide. Pixel (0, 0) covers [0, 1) x [0, 1); centres are at .5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level0 {}

/// Pixels of a working frame at a model's resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {}

/// Micrometres from the level-0 origin, along both axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Physical {}

/// A length in micrometres.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Microns(pub f64);

/// A rectangle of pixels. Which frame they are of (level 0, a level, a resolution) is what its user states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rect {
    /// Left edge, px; may be negative.
    pub x: i64,
    /// Top edge, px; may be negative.
    pub y: i64,
    /// Columns, px.
    pub width: u64,
    /// Rows, px.
    pub height: u64,
}

impl Rect {
    /// `width x height` pixels whose top left corner is (`x`, `y`).
    #[must_use]
    pub const fn new(x: i64, y: i64, width: usize, height: usize) -> Self {
        Self { x, y, width: width as u64, height: height as u64 }
    }

    /// Left and top edge, width and height, as buffers count.
    #[must_use]
    pub const fn parts(self) -> (i64, i64, usize, usize) {
        (self.x, self.y, self.width as usize, self.height as usize)
    }
}

/// A point in the pixel space `S`.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Point<S> {
    /// Horizontal, rightwards.
    pub x: f64,
    /// Vertical, downwards.
    pub y: f64,
    #[serde(skip)]
    space: PhantomData<S>,
}

impl<S> Point<S> {
    /// A point at (`x`, `y`).
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, space: PhantomData }
    }

    /// Scales both coordinates into another space.
    #[must_use]
    pub fn scaled<T>(self, sx: f64, sy: f64) -> Point<T> {
        Point::new(self.x * sx, self.y * sy)
    }
}

impl<S> Clone for Point<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Point<S> {}

impl<S> PartialEq for Point<S> {
    fn eq(&self, other: &Self) -> bool {
        self.x == other.x && self.y == other.y
    }
}

impl<S> fmt::Debug for Point<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.x, self.y)
    }
}
