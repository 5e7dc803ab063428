//! Physical resolution: micrometres per pixel, and where the figure came from.

use crate::{Level0, Physical, Point};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Micrometres per pixel. Finite, positive and plausible for light microscopy
/// (0.02 to 200 um/px); it has no default.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Mpp(f64);

/// Why a number is not a resolution.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum MppError {
    /// NaN or infinite.
    #[error("resolution {0} um/px is not a finite number")]
    NotFinite(f64),
    /// Zero, negative, or far outside light microscopy.
    #[error(
        "resolution {0} um/px is implausible (expected {min} to {max})",
        min = Mpp::MIN,
        max = Mpp::MAX
    )]
    Implausible(f64),
}

impl Mpp {
    /// Smallest plausible value, um/px.
    pub const MIN: f64 = 0.02;
    /// Largest plausible value, um/px (a thumbnail of a whole slide).
    pub const MAX: f64 = 200.0;
    /// The paper's "40x": 0.25 um/px.
    pub const PAPER: Mpp = Mpp(0.25);

    /// Checks and wraps a value in um/px.
    ///
    /// # Errors
    /// [`MppError`] when the value is not finite or not plausible.
    pub fn new(um_per_px: f64) -> Result<Self, MppError> {
        if !um_per_px.is_finite() {
            Err(MppError::NotFinite(um_per_px))
        } else if !(Self::MIN..=Self::MAX).contains(&um_per_px) {
            Err(MppError::Implausible(um_per_px))
        } else {
            Ok(Self(um_per_px))
        }
    }

    /// The value in um/px.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// How many pixels of `self` one pixel of `other` covers (linear).
    #[must_use]
    pub fn ratio(self, other: Mpp) -> f64 {
        other.0 / self.0
    }
}

impl TryFrom<f64> for Mpp {
    type Error = MppError;
    fn try_from(v: f64) -> Result<Self, MppError> {
        Self::new(v)
    }
}

impl From<Mpp> for f64 {
    fn from(v: Mpp) -> f64 {
        v.0
    }
}

impl fmt::Display for Mpp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} um/px", self.0)
    }
}

/// Where a resolution was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "field")]
pub enum ResolutionSource {
    /// A vendor's own field, e.g. `aperio.MPP`, `ome.PhysicalSizeX`, `openslide.mpp-x`.
    Vendor(String),
    /// TIFF `XResolution`/`YResolution` with a physical `ResolutionUnit`, or PNG `pHYs`.
    Image(String),
    /// Given by the user (`--mpp` or a per-slide table).
    User,
}

impl fmt::Display for ResolutionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vendor(field) | Self::Image(field) => f.write_str(field),
            Self::User => f.write_str("given by the user"),
        }
    }
}

/// Level-0 resolution with its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// Horizontal um/px.
    pub x: Mpp,
    /// Vertical um/px.
    pub y: Mpp,
    /// Where it was read.
    pub source: ResolutionSource,
}

impl Resolution {
    /// The same resolution in both directions, as given by the user.
    #[must_use]
    pub const fn user(mpp: Mpp) -> Self {
        Self { x: mpp, y: mpp, source: ResolutionSource::User }
    }

    /// Geometric mean of both directions: the side of the square pixel of equal area.
    #[must_use]
    pub fn mean(&self) -> Mpp {
        Mpp((self.x.0 * self.y.0).sqrt())
    }

    /// A level-0 point in micrometres, axis by axis.
    #[must_use]
    pub fn to_physical(&self, p: Point<Level0>) -> Point<Physical> {
        p.scaled(self.x.0, self.y.0)
    }

    /// A point in micrometres back in level-0 pixels, axis by axis.
    #[must_use]
    pub fn to_level0(&self, p: Point<Physical>) -> Point<Level0> {
        Point::new(p.x / self.x.0, p.y / self.y.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_not_a_resolution() {
        for bad in [f64::NAN, f64::INFINITY, 0.0, -0.25, 1e-9, 25_400.0] {
            assert!(Mpp::new(bad).is_err(), "{bad} was accepted");
        }
        assert_eq!(Mpp::new(0.499).unwrap().get(), 0.499);
    }

    #[test]
    fn ratio_counts_pixels() {
        let fine = Mpp::new(0.25).unwrap();
        let coarse = Mpp::new(1.0).unwrap();
        assert_eq!(fine.ratio(coarse), 4.0);
    }
}
