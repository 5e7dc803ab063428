//! What may be asked of an engine, what runs, and why none does.

use super::Plug;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Which engine runs the networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// The fastest that is found.
    #[default]
    Auto,
    /// The embedded engine.
    Rten,
    /// ONNX Runtime, opened at run time.
    OnnxRuntime,
    /// The OpenVINO runtime itself, opened at run time.
    OpenVino,
    /// libtorch, in the training build: CPU and GPU.
    Torch,
}

/// Which kernels run the networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// CUDA where it is found, then OpenVINO, then the engine's own CPU kernels.
    #[default]
    Auto,
    /// ONNX Runtime's own CPU kernels.
    Cpu,
    /// OpenVINO's CPU kernels: its own runtime, or ONNX Runtime's plug-in (Intel processors only).
    OpenVino,
    /// NVIDIA GPUs.
    Cuda,
    /// NVIDIA GPUs through TensorRT (minutes of compilation at the start).
    TensorRt,
    /// Apple devices.
    CoreMl,
}

/// Arithmetic of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f32.
    #[default]
    Auto,
    /// f32.
    F32,
    /// bf16 in the segmenter's decoder, f32 in its encoder and in the classifier, which bf16
    /// would move too far; an error where engine or processor have no bf16.
    Bf16,
}

macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// Every choice, as written on the command line.
            pub const WORDS: &[&str] = &[$($word),+];

            /// The word on the command line.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;
            fn from_str(s: &str) -> Result<Self, String> {
                match s {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("`{s}` is none of {}", Self::WORDS.join(", "))),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words!(EngineChoice {
    Auto = "auto",
    Rten = "rten",
    OnnxRuntime = "onnxruntime",
    OpenVino = "openvino",
    Torch = "torch",
});
words!(Provider {
    Auto = "auto",
    Cpu = "cpu",
    OpenVino = "openvino",
    Cuda = "cuda",
    TensorRt = "tensorrt",
    CoreMl = "coreml",
});
words!(Precision { Auto = "auto", F32 = "f32", Bf16 = "bf16" });

/// How to run the networks. The default is the fastest engine found on all cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineOptions {
    /// Engine.
    pub engine: EngineChoice,
    /// Provider of ONNX Runtime.
    pub provider: Provider,
    /// Arithmetic.
    pub precision: Precision,
    /// Threads inside one session; 0 means every core.
    pub threads: usize,
    /// Windows per run of the segmenter; 0 means 1 on a processor, 8 on a GPU.
    pub segmenter_batch: usize,
    /// Crops per run of the classifier, 0 being 1 on a processor and 32 on a GPU; images per run of
    /// an encoder, 0 being 8 and 64.
    pub classifier_batch: usize,
    /// `libonnxruntime` to open instead of the one found.
    pub library: Option<PathBuf>,
    /// The engine behind [`EngineChoice::Torch`], which only the training build has.
    pub torch: Option<Plug>,
}

/// What runs, for `run.json` and the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineReport {
    /// `rten`, `onnxruntime`, `openvino` or `torch`.
    pub engine: String,
    /// `cpu`, `openvino`, `cuda`, `tensorrt` or `coreml`.
    pub provider: String,
    /// Shared library, when one was opened.
    pub library: Option<PathBuf>,
    /// Provider plug-in, when one was opened.
    pub plugin: Option<PathBuf>,
    /// Version of the engine.
    pub version: String,
    /// `f32`, or `bf16` for a segmenter whose decoder computes in bf16.
    pub segmenter_precision: String,
    /// `f32`.
    pub classifier_precision: String,
    /// Threads inside one session.
    pub threads: usize,
    /// Windows per run of the segmenter.
    pub segmenter_batch: usize,
    /// Crops per run of the classifier, or images per run of an encoder.
    pub classifier_batch: usize,
    /// Why a faster engine does not run; `None` when the first choice runs.
    pub fallback_reason: Option<String>,
}

impl fmt::Display for EngineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, version, provider, segmenter_precision: s, threads, .. } = self;
        let c = &self.classifier_precision;
        write!(f, "{engine} {version}, {provider}, ")?;
        match s == c {
            true => write!(f, "{s}")?,
            false => write!(f, "{s} and {c}")?,
        }
        write!(f, ", {threads} threads")?;
        match &self.fallback_reason {
            Some(reason) => write!(f, " (not faster because: {reason})"),
            None => Ok(()),
        }
    }
}

/// Why no engine runs.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A library that was asked for is not there or does not open.
    #[error("{what}: {reason}\n  remedy: {remedy}")]
    Unavailable {
        /// Engine or provider.
        what: String,
        /// What was tried.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// A network does not fit its card.
    #[error("{origin}, {network}: {reason}")]
    Model {
        /// Package.
        origin: String,
        /// `segmenter`, `classifier` or `encoder`.
        network: &'static str,
        /// What differs.
        reason: String,
    },
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
}
