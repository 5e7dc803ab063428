//! Why no engine runs.

use base::remedy::{Remedied, Remedy};

/// Why no engine runs.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum EngineError {
    /// A library that was asked for is not there or does not open.
    #[error("{what}: {reason}\n  remedy: {remedy}")]
    Unavailable { what: String, reason: String, remedy: String },
    /// None of several runs.
    #[error("no engine runs: {reason}\n  remedy: {remedy}")]
    None { reason: String, remedy: &'static str },
    /// A network does not fit its card.
    #[error("{origin}, {network}: {reason}")]
    Model {
        origin: String,
        /// `segmenter`, `classifier`, `encoder` or `text tower`.
        network: &'static str,
        reason: String,
    },
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
}

impl Remedied for EngineError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Unavailable { .. } | Self::Options(_) => Some(Remedy::Engine),
            Self::None { .. } => Some(Remedy::Engines),
            Self::Model { .. } => None,
        }
    }
}
