//! Which predictions are within reach of which figures.

use crate::index::Index;
use crate::{Microns, Physical, Point};
use serde::{Deserialize, Serialize};

/// Why nothing was matched.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MatchError {
    /// A radius must be a finite number, zero or more.
    #[error("matching radius {0} um is not a finite number >= 0")]
    Radius(f64),
    /// A coordinate is NaN or infinite.
    #[error("{list} point {index} has a coordinate that is not a finite number")]
    NotFinite {
        /// `ground truth` or `prediction`.
        list: &'static str,
        /// Its place in the list.
        index: usize,
    },
    /// No rule of this name.
    #[error("unknown matching rule `{0}` (known: midog, optimal)")]
    UnknownRule(String),
}

/// One true positive: a figure and its prediction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Index of the figure in the ground truth.
    pub truth: usize,
    /// Index of the prediction.
    pub prediction: usize,
    /// Distance of the two, um.
    pub distance: Microns,
}

/// For every ground-truth point the predictions within the radius, nearest first, equal distances
/// in order of the predictions.
pub(crate) struct Reach {
    pub(crate) near: Vec<Vec<(f64, usize)>>,
}

impl Reach {
    pub(crate) fn new(
        truth: &[Point<Physical>],
        predictions: &[Point<Physical>],
        radius: Microns,
    ) -> Result<Self, MatchError> {
        let r = radius.0;
        if !(r.is_finite() && r >= 0.0) {
            return Err(MatchError::Radius(r));
        }
        let finite = |list, points: &[Point<Physical>]| match points
            .iter()
            .position(|p| !(p.x.is_finite() && p.y.is_finite()))
        {
            Some(index) => Err(MatchError::NotFinite { list, index }),
            None => Ok(()),
        };
        finite("ground truth", truth)?;
        finite("prediction", predictions)?;
        let xy: Vec<[f64; 2]> = predictions.iter().map(|p| [p.x, p.y]).collect();
        let index = Index::new(&xy);
        let near = truth.iter().map(|t| {
            let mut near = Vec::new();
            index.square([t.x, t.y], r, |i| {
                let distance = (xy[i][0] - t.x).hypot(xy[i][1] - t.y);
                if distance <= r {
                    near.push((distance, i));
                }
            });
            near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            near
        });
        Ok(Self { near: near.collect() })
    }

    /// Of these predictions alone; the others keep their places.
    pub(super) fn among(&self, kept: &[bool]) -> Self {
        let near = self.near.iter().map(|n| n.iter().filter(|p| kept[p.1]).copied().collect());
        Self { near: near.collect() }
    }
}
