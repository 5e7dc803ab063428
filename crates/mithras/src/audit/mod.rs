//! Blinded review of labels: the reviewer's page, and the score of the verdicts. Samples are drawn by
//! [`corpus::audit`].

mod desk;
mod score;

pub use crate::agreement::Agreement;
pub use desk::Desk;
pub use score::{
    AuditError, Boxes, Line, Part, PoolWeighted, Ratio, Reviewer, Reviews, Scored, Share,
    score_counts, score_reviews,
};
