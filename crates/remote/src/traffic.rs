//! How much was asked for.

/// Requests and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests sent.
    pub requests: u64,
    /// Bytes of objects received.
    pub bytes: u64,
}
