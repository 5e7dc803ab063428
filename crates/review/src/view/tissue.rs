//! The tissue and the flawed areas of a run's slide, as outlines and as windows to resample.

use base::json::JsonError;
use mitosis::count::DENSITY_REFERENCE_MM2;
use mitosis::{Level0, Point, Resolution};
use serde::{Deserialize, Serialize};
use stats::bootstrap::{Plan, bootstrap_counts};
use std::path::Path;

/// Side of a window, um: an eighth of a hotspot's area.
const SIDE_UM: f64 = 500.0;
/// Smallest number of windows with tissue for a meaningful resampling.
const FEWEST: usize = 10;

/// As much of a `tissue.geojson` or `flaws.geojson` as is used.
#[derive(Deserialize)]
struct Outlines {
    features: Vec<Feature>,
}

#[derive(Deserialize)]
struct Feature {
    geometry: Geometry,
    #[serde(default)]
    properties: Properties,
}

#[derive(Default, Deserialize)]
struct Properties {
    #[serde(default)]
    classification: Class,
}

#[derive(Default, Deserialize)]
struct Class {
    name: String,
    color: [u8; 3],
}

#[derive(Deserialize)]
struct Geometry {
    coordinates: Vec<Vec<[f64; 2]>>,
}

/// Closed rings.
pub(super) type Rings = Vec<Vec<[f64; 2]>>;

/// An area with a name and a colour.
#[derive(Serialize)]
pub(super) struct Area {
    name: String,
    /// R, G, B.
    colour: [u8; 3],
    rings: Rings,
}

/// Every area of a file, its rings in level-0 px.
pub(super) fn areas(file: &Path, offset: [i64; 2]) -> Result<Vec<Area>, JsonError> {
    let outlines: Outlines = base::json::read(file)?;
    let shift = |[x, y]: [f64; 2]| [x + offset[0] as f64, y + offset[1] as f64];
    let area = |f: Feature| {
        let Class { name, color: colour } = f.properties.classification;
        let rings = f.geometry.coordinates.into_iter();
        Area { name, colour, rings: rings.map(|r| r.into_iter().map(shift).collect()).collect() }
    };
    Ok(outlines.features.into_iter().map(area).collect())
}

/// Closed rings around tissue and, wound the other way, its holes, in level-0 px.
pub(super) fn rings(file: &Path, offset: [i64; 2]) -> Result<Rings, JsonError> {
    Ok(areas(file, offset)?.into_iter().flat_map(|a| a.rings).collect())
}

/// Squares of 500 um over a slide with the tissue in each, mm2.
pub(super) struct Windows {
    side_px: [f64; 2],
    columns: usize,
    mm2: Vec<f64>,
}

impl Windows {
    /// The windows of a slide of `width x height` level-0 px. Rings follow the edges of a mask's
    /// pixels, so their areas are exact.
    pub(super) fn new(
        rings: &[Vec<[f64; 2]>],
        [width, height]: [f64; 2],
        resolution: &Resolution,
    ) -> Self {
        let (mx, my) = (resolution.x.get(), resolution.y.get());
        let side_px = [SIDE_UM / mx, SIDE_UM / my];
        let count = |extent: f64, side: f64| (extent / side).ceil().max(1.0) as usize;
        let (columns, rows) = (count(width, side_px[0]), count(height, side_px[1]));
        let mut px2 = vec![0.0; columns * rows];
        // Every edge adds the area between it and the right border, with the sign of its
        // direction; areas outside the rings cancel.
        for edge in rings.iter().flat_map(|ring| ring.windows(2)) {
            let ([x, y0], [_, y1]) = (edge[0], edge[1]);
            let (top, bottom) = (y0.min(y1), y0.max(y1));
            let first = (top / side_px[1]).max(0.0) as usize;
            let last = ((bottom / side_px[1]).max(0.0) as usize).min(rows - 1);
            for row in first..=last {
                let from = row as f64 * side_px[1];
                let overlap = (bottom.min(from + side_px[1]) - top.max(from)).max(0.0);
                for column in (x / side_px[0]).max(0.0) as usize..columns {
                    let left = column as f64 * side_px[0];
                    let wide = left + side_px[0] - x.clamp(left, left + side_px[0]);
                    px2[row * columns + column] += (y1 - y0).signum() * overlap * wide;
                }
            }
        }
        let sign = px2.iter().sum::<f64>().signum();
        let mm2 = px2.iter().map(|a| (a * sign * mx * my * 1e-6).max(0.0)).collect();
        Self { side_px, columns, mm2 }
    }

    /// 95 % percentile interval of the figures per 20 mm2 of tissue over 1,000 resamplings of the
    /// windows with tissue or figures; none with fewer than ten of them.
    pub(super) fn density_95(&self, figures: &[Point<Level0>]) -> Option<[f64; 2]> {
        let mut counts = vec![0.0; self.mm2.len()];
        for p in figures {
            let at = |v: f64, side: f64| (v / side).max(0.0) as usize;
            let column = at(p.x, self.side_px[0]).min(self.columns - 1);
            let row = at(p.y, self.side_px[1]).min(self.mm2.len() / self.columns - 1);
            counts[row * self.columns + column] += 1.0;
        }
        // A sliver of a pixel's rounding is not tissue.
        let both = self.mm2.iter().zip(&counts).filter(|(a, n)| **a > 1e-6 || **n > 0.0);
        let (areas, counts): (Vec<f64>, Vec<f64>) = both.unzip();
        if areas.len() < FEWEST {
            return None;
        }
        let density = |drawn: &[u32]| {
            let sum =
                |v: &[f64]| -> f64 { v.iter().zip(drawn).map(|(v, n)| v * f64::from(*n)).sum() };
            let area = sum(&areas);
            (area > 0.0).then(|| sum(&counts) / area * DENSITY_REFERENCE_MM2)
        };
        let estimate = density(&vec![1; areas.len()])?;
        let drawn =
            bootstrap_counts(areas.len(), Plan::default(), estimate, || (), |(), d| density(d));
        drawn.ok().map(|b| [b.interval.lower, b.interval.upper])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mitosis::Mpp;

    /// A rectangle, wound one way or the other.
    fn ring([x0, y0, x1, y1]: [f64; 4], hole: bool) -> Vec<[f64; 2]> {
        let mut ring = vec![[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]];
        if hole {
            ring.reverse();
        }
        ring
    }

    fn resolution() -> Resolution {
        Resolution::user(Mpp::new(0.5).unwrap())
    }

    #[test]
    fn areas_are_exact_whatever_the_winding() {
        // Windows of 1,000 px; a piece over four of them with a hole, and one in a corner.
        let rings = vec![
            ring([500.0, 250.0, 1500.0, 1750.0], false),
            ring([900.0, 900.0, 1100.0, 1100.0], true),
            ring([2500.0, 100.0, 2600.0, 300.0], false),
        ];
        let other: Vec<_> = rings.iter().map(|r| r.iter().rev().copied().collect()).collect();
        for rings in [rings, other] {
            let w = Windows::new(&rings, [2600.0, 2000.0], &resolution());
            let want = [365_000.0, 365_000.0, 20_000.0, 365_000.0, 365_000.0, 0.0];
            for (got, want) in w.mm2.iter().zip(want) {
                assert!((got - want * 0.25e-6).abs() < 1e-12, "{got} is not {want} px2");
            }
            assert_eq!((w.columns, w.mm2.len()), (3, 6));
        }
    }

    #[test]
    fn clustered_figures_have_a_wider_interval_than_scattered_ones() {
        let rings = [ring([0.0, 0.0, 6000.0, 6000.0], false)];
        let w = Windows::new(&rings, [6000.0, 6000.0], &resolution());
        let scattered: Vec<Point<Level0>> = (0..36)
            .map(|i| {
                Point::new(500.0 + f64::from(i % 6) * 1000.0, 500.0 + f64::from(i / 6) * 1000.0)
            })
            .collect();
        let clustered = vec![Point::new(100.0, 100.0); 36];
        // 36 figures on 9 mm2.
        let [low, high] = w.density_95(&scattered).unwrap();
        assert!((low - 80.0).abs() < 1e-9 && (high - 80.0).abs() < 1e-9, "{low} {high}");
        let [low, high] = w.density_95(&clustered).unwrap();
        assert!(low == 0.0 && high >= 160.0, "{low} {high}");
        assert_eq!(w.density_95(&[]), Some([0.0, 0.0]));
    }

    #[test]
    fn a_few_windows_give_no_interval() {
        let w = Windows::new(
            &[ring([0.0, 0.0, 900.0, 9000.0], false)],
            [1000.0, 9000.0],
            &resolution(),
        );
        assert_eq!((w.mm2.len(), w.density_95(&[Point::new(1.0, 1.0)])), (9, None));
    }
}
