//! The parts of a dataset.

/// Which part is read; the one place that names both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Training,
    Test,
}
