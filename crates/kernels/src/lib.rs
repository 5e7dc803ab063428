//! A small executor for convolutional networks on processors: ONNX files in, f32 out.
//!
//! It exists because the networks of this project spend their time in layouts, not in products: inverted residuals that
//! widen sixfold, decoders that concatenate and enlarge. Here pixels are stored channel after channel (NHWC), what
//! widens never reaches memory, what is concatenated or enlarged is read in place, and every image is the work of
//! one thread, so that a result has the same bits for any batch, thread count and order. Bits differ between
//! instruction sets.
//!
//! ```no_run
//! use kernels::{Network, PlanOptions};
//!
//! let file = std::fs::read("segmenter.onnx")?;
//! let network = Network::plan(file.as_slice(), &PlanOptions::new("image", [3, 512, 512], "probability"))?;
//! let mut workspaces = Vec::new();
//! let input = vec![0.0; 2 * network.input_len()];
//! let mut output = vec![0.0; 2 * network.output_len()];
//! network.run(&mut workspaces, &input, &mut output, 2)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | `lower` | nodes to steps: shapes, constants, settings; what is not supported is refused by name |
//! | `fuse` | steps joined |
//! | `network` | buffers, packed weights, the run |
//! | `run` | the steps |
//! | `aligned` | memory that begins with a line of the cache |
//! | `peak` | what the processor can do at best |
//! | `isa` | register kernels for AVX-512, AVX2, NEON and none of them; all `unsafe` is there |

mod aligned;
mod error;
mod fuse;
mod ir;
mod isa;
mod layout;
mod lower;
mod network;
mod pack;
mod peak;
mod run;
mod tensor;
#[cfg(test)]
mod tests;

pub use error::{PlanError, RunError};
pub use isa::Isa;
pub use lower::MOST_VALUES;
pub use network::{Network, PlanOptions, Workspace, bf16};
pub use peak::Peaks;
