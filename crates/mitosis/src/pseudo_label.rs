//! Pseudo-labels from the two scores of a detection.

use crate::Score;
use serde::{Deserialize, Serialize};

/// What a candidate may teach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PseudoLabel {
    /// Taken for a mitotic figure.
    Mitotic,
    /// Taken for a mimicker: the first stage is sure, the second disagrees.
    Mimicker,
}

/// The three limits of the rule; a preset field, never a hidden constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PseudoLabelRule {
    /// A mitotic figure needs `s_seg >=` this.
    pub mitotic_seg_min: Score,
    /// A mimicker needs `s_seg >=` this.
    pub mimicker_seg_min: Score,
    /// A mitotic figure needs `s_cls >` this, a mimicker `s_cls <` this.
    pub cls_boundary: Score,
}

impl PseudoLabelRule {
    /// The paper's limits: 0.1, 0.5, 0.5.
    pub const PAPER: Self = Self {
        mitotic_seg_min: Score::literal(0.1),
        mimicker_seg_min: Score::literal(0.5),
        cls_boundary: Score::literal(0.5),
    };

    /// Whether a detector that takes candidates from this probability on can meet the limits: `s_seg` is a
    /// mean (or a peak) of probabilities above it, so a limit below it would keep nothing more.
    ///
    /// # Errors
    /// [`Unreachable`].
    pub fn reachable(&self, candidates_from: Score) -> Result<(), Unreachable> {
        let lowest = self.mitotic_seg_min.min(self.mimicker_seg_min);
        if candidates_from <= lowest {
            return Ok(());
        }
        Err(Unreachable { candidates_from: candidates_from.get(), limit: lowest.get() })
    }
}

/// A rule asks for candidates that the detector never gives.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "the rule takes s_seg from {limit} on, but the detector takes candidates from a probability of \
     {candidates_from} on, so nothing between the two can be found"
)]
pub struct Unreachable {
    /// Probability that the detector takes candidates from.
    pub candidates_from: f32,
    /// Lowest limit of the rule.
    pub limit: f32,
}

impl Default for PseudoLabelRule {
    fn default() -> Self {
        Self::PAPER
    }
}

/// The paper's pseudo-label rule. With [`PseudoLabelRule::PAPER`]:
///
/// | label | `s_seg` | `s_cls` |
/// |---|---|---|
/// | [`PseudoLabel::Mitotic`] | `>= 0.1` | `> 0.5` |
/// | [`PseudoLabel::Mimicker`] | `>= 0.5` | `< 0.5` |
/// | excluded (`None`) | anything else | `= 0.5` excludes whatever `s_seg` is |
///
/// ```
/// use mitosis::pseudo_label::{PseudoLabel, PseudoLabelRule, assign};
/// use mitosis::Score;
/// let s = |p| Score::new(p).unwrap();
/// assert_eq!(assign(s(0.1), s(0.51), &PseudoLabelRule::PAPER), Some(PseudoLabel::Mitotic));
/// assert_eq!(assign(s(0.49), s(0.1), &PseudoLabelRule::PAPER), None);
/// ```
#[must_use]
pub fn assign(s_seg: Score, s_cls: Score, rule: &PseudoLabelRule) -> Option<PseudoLabel> {
    if s_seg >= rule.mitotic_seg_min && s_cls > rule.cls_boundary {
        Some(PseudoLabel::Mitotic)
    } else if s_seg >= rule.mimicker_seg_min && s_cls < rule.cls_boundary {
        Some(PseudoLabel::Mimicker)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_below_the_candidates_is_refused() {
        let from = |t| PseudoLabelRule::PAPER.reachable(Score::new(t).unwrap());
        assert_eq!((from(0.05), from(0.1)), (Ok(()), Ok(())));
        let refused = from(0.3).unwrap_err();
        assert_eq!((refused.limit, refused.candidates_from), (0.1, 0.3));
        assert!(refused.to_string().contains("from 0.1 on"), "{refused}");
    }

    #[test]
    fn the_papers_table_to_the_last_bit() {
        use PseudoLabel::{Mimicker, Mitotic};
        let (above, below) = (0.5f32.next_up(), 0.5f32.next_down());
        let table = [
            (0.1, above, Some(Mitotic)),
            (0.1f32.next_down(), 1.0, None),
            (0.1, 0.5, None),
            (0.1, below, None),
            (0.3, 0.0, None),
            (below, below, None),
            (0.5, below, Some(Mimicker)),
            (0.5, 0.5, None),
            (0.5, above, Some(Mitotic)),
            (1.0, 0.0, Some(Mimicker)),
            (1.0, 0.5, None),
            (1.0, 1.0, Some(Mitotic)),
            (0.0, 1.0, None),
            (0.0, 0.0, None),
        ];
        for (seg, cls, expected) in table {
            let got =
                assign(Score::new(seg).unwrap(), Score::new(cls).unwrap(), &Default::default());
            assert_eq!(got, expected, "s_seg {seg}, s_cls {cls}");
        }
    }
}
