//! What people look at and decide: the viewer, reviews, audits, agreement of readers.
//!
//! | module | does |
//! |---|---|
//! | [`view`] | slides, results and reviews as a page on this machine |
//! | [`audit`] | blinded samples of candidates, judged on a page, scored |
//! | [`agreement`] | how far reviewers agree: kappa |

#![forbid(unsafe_code)]

pub mod agreement;
pub mod audit;
pub mod view;

/// Reviewers' logs that a server holds open at once.
const OPEN_LOGS: usize = 16;
