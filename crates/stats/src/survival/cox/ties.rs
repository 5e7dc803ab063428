//! Tied events.

/// How tied events enter the likelihood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// Efron's approximation (R's default).
    #[default]
    Efron,
    /// Breslow's approximation.
    Breslow,
}

crate::spelling::spelled!(Ties { Efron = "efron", Breslow = "breslow" });
