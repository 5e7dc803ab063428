//! Encoders, heads, losses, optimisers, checkpoints, ONNX export (libtorch).

pub mod checkpoint;
pub mod device;
pub mod efficientnet;
pub mod ema;
pub mod encoder;
mod error;
pub mod layer;
pub mod loss;
pub mod onnx;
pub mod optim;
pub mod schedule;
mod shim;
pub mod unet;
pub mod vit;

pub use error::{NetError, Result};
