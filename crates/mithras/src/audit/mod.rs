//! Blinded review of labels: the reviewer's page, and the score of the verdicts. Samples are drawn by
//! [`corpus::audit`].

mod desk;
mod score;

pub use desk::Desk;
pub use score::{
    Agreement, AuditError, Boxes, Line, Part, PoolWeighted, Ratio, Reviewer, Reviews, Scored,
    Share, score_counts, score_reviews,
};
