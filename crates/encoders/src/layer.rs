//! Layers, as the networks are made of them.

use crate::error::{EncoderError, Result};

/// Activation of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// `x sigmoid(x)`.
    Silu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `max(x, 0)`.
    Relu,
}

/// Shape of a convolution. Zeros around the image keep its size at stride 1, unless stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Input channels.
    pub input: i64,
    /// Output channels.
    pub output: i64,
    /// Kernel side.
    pub kernel: i64,
    /// In px, both ways.
    pub stride: i64,
    /// Channels are divided into so many.
    pub groups: i64,
    /// Whether it adds one per output channel.
    pub bias: bool,
}

impl ConvShape {
    /// A convolution without bias, stride 1, one group.
    #[must_use]
    pub fn new(input: i64, output: i64, kernel: i64) -> Self {
        Self { input, output, kernel, stride: 1, groups: 1, bias: false }
    }

    /// With this stride.
    #[must_use]
    pub fn stride(self, stride: i64) -> Self {
        Self { stride, ..self }
    }

    /// With this many groups.
    #[must_use]
    pub fn groups(self, groups: i64) -> Self {
        Self { groups, ..self }
    }

    /// With a bias.
    #[must_use]
    pub fn bias(self) -> Self {
        Self { bias: true, ..self }
    }

    /// Of its weight: `[out, in / groups, k, k]`.
    #[must_use]
    pub fn dims(&self) -> [i64; 4] {
        [self.output, self.input / self.groups, self.kernel, self.kernel]
    }
}

/// A convolution, the batch norm after it and an activation, by the names of their tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvNormShape {
    /// Name of the convolution's tensors, below the block.
    pub conv: &'static str,
    /// Name of the norm's tensors, below the block.
    pub norm: &'static str,
    /// Channels, kernel, stride and groups of the convolution.
    pub shape: ConvShape,
    /// After the norm.
    pub act: Option<Act>,
    /// Added to the variance.
    pub eps: f64,
    /// Zeros are put around the input as TensorFlow's `SAME` does, which depends on its size.
    pub same: bool,
}

impl ConvNormShape {
    /// With torch's epsilon of 1e-5.
    #[must_use]
    pub fn new(
        (conv, norm): (&'static str, &'static str),
        shape: ConvShape,
        act: impl Into<Option<Act>>,
    ) -> Self {
        Self { conv, norm, shape, act: act.into(), eps: 1e-5, same: false }
    }
}

/// Checks what convolutional networks are trained with: rates in [0, 1), and classes.
pub(crate) fn check_training(dropout: f64, drop_path: f64, classes: i64) -> Result<()> {
    for (key, p) in [("dropout", dropout), ("drop_path", drop_path)] {
        if !(0.0..1.0).contains(&p) {
            return Err(EncoderError::config(key, format!("{p} is not in [0, 1)")));
        }
    }
    if classes < 0 {
        return Err(EncoderError::config("classes", "must not be negative"));
    }
    Ok(())
}
