//! Encoders by name: how their networks are built, what their files of weights are called inside, and the
//! networks as ONNX files. No training framework: `net` builds the same networks on libtorch.
//!
//! | module | what |
//! |---|---|
//! | [`encoder`] | the table of encoders, a row each |
//! | [`vit`], [`efficientnet`], [`resnet`], [`swin`], [`unet`] | shapes of the networks, in timm's words |
//! | [`weights`] | tensors of safetensors files and of `torch.save` |
//! | [`foreign`] | other names of the same tensors |
//! | [`text`] | the text tower next to an encoder of images |
//! | [`onnx`] | ONNX opset 17 |
//!
//! From a file of weights to a network that an engine runs:
//!
//! ```no_run
//! use encoders::encoder::EncoderConfig;
//! use encoders::{foreign, onnx, weights};
//!
//! # fn main() -> encoders::Result<()> {
//! let network = EncoderConfig::new("uni_v1", 0).network()?;
//! let path = "pytorch_model.bin".as_ref();
//! let tensors = weights::read(path, None)?;
//! let tensors = foreign::whole(path, &tensors, &network)?; // timm's names, or refused with every difference
//! let files = onnx::embedding(&network, 224, &tensors, &onnx::ExportOptions::default(), onnx::MOST_BYTES)?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod array;
pub mod efficientnet;
pub mod encoder;
mod error;
pub mod foreign;
pub mod layer;
pub mod onnx;
pub mod resnet;
pub mod swin;
pub mod text;
mod tower;
pub mod unet;
pub mod vit;
pub mod weights;

pub use array::{Array, Kind};
pub use error::{EncoderError, Result};
