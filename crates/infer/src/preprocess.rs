//! Pixels to network input: [`pixels`] does it, for training and inference alike.

pub use pixels::input::{Normalisation, sampling};
pub use pixels::resize::resize;
