//! Why a file is not run here.

/// Why a network cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The bytes are not an ONNX file, or contradict themselves.
    #[error("not a usable ONNX file: {0}")]
    File(String),
    /// An operator, or one of its settings, that this executor does not have.
    #[error("operator {operator} (node `{node}`) is not supported: {reason}")]
    Unsupported {
        /// The operator's ONNX name, e.g. `ConvTranspose`.
        operator: String,
        /// The node's name, or its first output's.
        node: String,
        /// Which setting, or that the operator is unknown.
        reason: String,
    },
    /// Shapes that do not fit one another.
    #[error("operator {operator} (node `{node}`): {reason}")]
    Shape {
        /// The operator's ONNX name.
        operator: String,
        /// The node's name, or its first output's.
        node: String,
        /// What does not fit.
        reason: String,
    },
    /// bf16 was asked for, and the processor or the system lacks it.
    #[error("this processor multiplies no bf16 (AMX or AVX-512 BF16 on Linux)")]
    NoBf16,
    /// The network needs more memory than [`crate::MOST_VALUES`] per tensor.
    #[error("a tensor of {0} values is too large")]
    TooLarge(usize),
}

/// Why a run was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum RunError {
    /// A buffer whose length is not a whole number of images.
    #[error("{what} holds {found} values, expected {expected}")]
    Length {
        what: &'static str,
        found: usize,
        /// Values it should have.
        expected: usize,
    },
    /// A thread of the run panicked: a fault of this crate.
    #[error("a thread of the executor panicked: {0}")]
    Panicked(String),
}
