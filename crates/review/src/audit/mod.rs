//! Blinded review of labels: samples of corpora and runs, the reviewer's page, the score of the
//! verdicts. What a sample is on disk is [`crops::audit`]'s.

mod counts;
mod sample;
mod score;
mod server;

pub use crate::agreement::Agreement;
pub use sample::{SampleError, SampleRequest, Sampled, sample};
pub use score::{
    AuditError, AuditScores, Boxes, CohortShare, Estimate, NotWeighted, Part, PoolWeighted, Ratio,
    Reviewer, Scored, Share, score_counts, score_reviews,
};
pub use server::Desk;
