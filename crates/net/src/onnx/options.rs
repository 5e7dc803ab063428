//! Settings of an export.

/// How weights are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightKind {
    /// f32.
    #[default]
    F32,
    /// Large tensors as f16 followed by a Cast to f32: half the file, arithmetic still in f32.
    F16,
}

impl WeightKind {
    /// f16 or f32.
    #[must_use]
    pub fn halved(half: bool) -> Self {
        if half { Self::F16 } else { Self::F32 }
    }
}

/// Settings of an export.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// How weights are stored.
    pub weights: WeightKind,
    /// Text pairs written into the file's metadata.
    pub metadata: Vec<(String, String)>,
}

impl ExportOptions {
    pub(super) fn pairs(&self) -> Vec<(&str, &str)> {
        self.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect()
    }
}
