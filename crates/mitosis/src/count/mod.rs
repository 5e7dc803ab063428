//! From figures to a mitotic count: the 2 mm2 hotspot and the density.

use crate::{Level0, Physical, Point, Resolution, neighbours};
use serde::{Deserialize, Serialize};

/// An area in square millimetres.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mm2(pub f64);

/// Half the side of the 2 mm2 square, in micrometres: sqrt(2)/2 mm.
pub const HALF_SIDE_UM: f64 = std::f64::consts::SQRT_2 / 2.0 * 1000.0;

/// The area the density refers to, mm2.
pub const DENSITY_REFERENCE_MM2: f64 = 20.0;

/// An area as files state it, to 1e-6 mm2.
#[must_use]
pub fn stated(area: Mm2) -> Mm2 {
    Mm2((area.0 * 1e6).round() / 1e6)
}

/// Figures (or a bound of their interval) per 20 mm2 of analysed tissue, to six decimals; `None` without
/// any. The one division of the product: the area is the [`stated`] one, so that dividing the
/// numbers of a file gives the same.
#[must_use]
pub fn density_per_20_mm2(figures: f64, analysed: Mm2) -> Option<f64> {
    let area = stated(analysed).0;
    (area > 0.0).then(|| (figures / area * DENSITY_REFERENCE_MM2 * 1e6).round() / 1e6)
}

/// Why a count is impossible.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum CountError {
    /// A coordinate is NaN or infinite.
    #[error("figure {0} has a coordinate that is not a finite number")]
    NotFinite(usize),
    /// Nothing was analysed, so a density has no meaning.
    #[error("the analysed area is {0} mm2: no tissue was read, so no density is defined")]
    NoArea(f64),
    /// A negative or non-finite area.
    #[error("the unread area is {0} mm2, not a valid area")]
    UnreadArea(f64),
}

/// The 2 mm2 square with the most figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hotspot {
    /// Figures inside, the central one and those on the border included.
    pub count: usize,
    /// The figure the square is centred on: its place in the slice given.
    pub index: usize,
    /// The centre in level-0 pixels.
    pub centre: Point<Level0>,
    /// Upper left corner in level-0 pixels; may be outside the slide.
    pub min: Point<Level0>,
    /// Lower right corner in level-0 pixels; may be outside the slide.
    pub max: Point<Level0>,
}

/// Places in micrometres, each axis at its own resolution.
pub(crate) fn micrometres(
    figures: &[Point<Level0>],
    resolution: &Resolution,
) -> Result<Vec<[f64; 2]>, CountError> {
    if let Some(bad) = figures.iter().position(|p| !(p.x.is_finite() && p.y.is_finite())) {
        return Err(CountError::NotFinite(bad));
    }
    let places = figures.iter().map(|p| resolution.to_physical(*p));
    Ok(places.map(|p| [p.x, p.y]).collect())
}

/// Local Max ROI Counting: the largest number of figures inside a 2 mm2 square centred on a
/// figure.
///
/// A figure counts when its Chebyshev distance from the centre, in micrometres and each axis at
/// its own resolution, is `<= sqrt(2)/2 mm`: the border belongs to the square. Among equal counts
/// the centre with the smallest y wins, then the smallest x, then the first in the slice, so the
/// order of the slice never moves the square. The square is neither shifted nor clipped at the edge
/// of the slide or tissue: the outside has no figures. No figures: `None`.
///
/// # Errors
/// [`CountError::NotFinite`] for a coordinate that is not a number.
#[doc(alias = "LMRC")]
pub fn hotspot(
    figures: &[Point<Level0>],
    resolution: &Resolution,
) -> Result<Option<Hotspot>, CountError> {
    let um = micrometres(figures, resolution)?;
    let mut best: Option<(usize, usize)> = None;
    for (i, count) in neighbours::counts(&um, HALF_SIDE_UM, &mut 0).into_iter().enumerate() {
        let better = best.is_none_or(|(most, j)| {
            let (a, b) = (figures[i], figures[j]);
            count > most || (count == most && (a.y, a.x) < (b.y, b.x))
        });
        if better {
            best = Some((count, i));
        }
    }
    Ok(best.map(|(count, i)| {
        let corner = |sign: f64| {
            let [x, y] = um[i];
            let at = Point::<Physical>::new(x + sign * HALF_SIDE_UM, y + sign * HALF_SIDE_UM);
            resolution.to_level0(at)
        };
        Hotspot { count, index: i, centre: figures[i], min: corner(-1.0), max: corner(1.0) }
    }))
}

/// The mitotic count of one slide.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Accepted figures on the analysed tissue.
    pub figures: usize,
    /// The densest 2 mm2; `None` without figures, which is a count of zero.
    pub hotspot: Option<Hotspot>,
    /// Figures per 20 mm2 of analysed tissue: [`density_per_20_mm2`].
    pub density_per_20_mm2: f64,
    /// Tissue that was read, more than 0.
    pub analysed: Mm2,
    /// Tissue that was planned but could not be read; left out of the density.
    pub unread: Mm2,
}

impl Count {
    /// Hotspot and density of the accepted figures.
    ///
    /// # Errors
    /// [`CountError`] when the analysed area is not positive, the unread area is negative, or a
    /// number is not finite.
    pub fn new(
        figures: &[Point<Level0>],
        resolution: &Resolution,
        analysed: Mm2,
        unread: Mm2,
    ) -> Result<Self, CountError> {
        if !(analysed.0.is_finite() && analysed.0 > 0.0) {
            return Err(CountError::NoArea(analysed.0));
        }
        if !(unread.0.is_finite() && unread.0 >= 0.0) {
            return Err(CountError::UnreadArea(unread.0));
        }
        Ok(Self {
            figures: figures.len(),
            hotspot: hotspot(figures, resolution)?,
            density_per_20_mm2: density_per_20_mm2(figures.len() as f64, analysed)
                .ok_or(CountError::NoArea(analysed.0))?,
            analysed,
            unread,
        })
    }

    /// Figures in the hotspot; zero without figures.
    #[must_use]
    pub fn hotspot_count(&self) -> usize {
        self.hotspot.map_or(0, |h| h.count)
    }
}

#[cfg(test)]
mod tests;
