//! What one forward pass sees.

use tch::Tensor;

/// Samples of one forward pass, on the device; views of a sample follow each other.
#[derive(Debug)]
pub struct Micro {
    /// `[2n, 3, S, S]`, normalised.
    pub views: Tensor,
    /// `[n]`: 1 figure, 0 mimicker, -1 no label.
    pub labels: Tensor,
    /// `[2n, T]`, i64: 1 where the cell is mitotic.
    pub cells: Tensor,
    /// `[2n, T]`: masking noise.
    pub noise: Tensor,
}

impl Micro {
    /// Samples, n.
    #[must_use]
    pub fn samples(&self) -> i64 {
        self.labels.size()[0]
    }

    /// The label of each view, `[2n]`.
    pub fn view_labels(&self) -> Tensor {
        self.labels.repeat_interleave_self_int(2, 0, None)
    }
}
