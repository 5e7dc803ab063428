//! ONNX models behind the plain-buffer ports of `mitosis`.
//!
//! ```no_run
//! use infer::{EngineOptions, ModelPackage};
//!
//! let package = ModelPackage::bundled()?;
//! let mut models = infer::open(&package, &EngineOptions::default())?;
//! println!("{}", models.report);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`card`] | the model card, strict |
//! | [`package`] | card and networks with their SHA-256, bundled or in a folder |
//! | [`convert`] | an encoder of anyone's to a package |
//! | [`ensemble`] | classifiers of several folds as one |
//! | [`engine`] | `rten` embedded, OpenVINO and ONNX Runtime opened at run time |
//! | [`preprocess`] | pixels to network input, the same for training |
//! | [`timing`] | seconds per window and per crop |
//! | [`budget`] | operations, bytes and seconds per mm2, and the share of the peak |

pub mod boxes;
pub mod budget;
pub mod card;
pub mod convert;
pub mod engine;
pub mod ensemble;
mod network;
mod onnx;
pub mod package;
mod session;
pub mod timing;

/// Pixels to network input: [`pixels`] does it, for training and inference alike.
pub mod preprocess {
    pub use pixels::input::{Normalisation, sampling};
    pub use pixels::resize::resize;
}

pub use card::{CardError, ModelCard};
pub use engine::{
    Bytes, EngineChoice, EngineError, EngineOptions, EngineReport, Models, Network, Plug, Plugin,
    Precision, Provider, Session, Started, Symbol, open,
};
pub use package::{DEFAULT, ModelPackage, PackageError};
