//! Engines, providers and arithmetic by their words.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which engine runs the networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// The first of these that runs every network of the package: CUDA, `native` (on x86-64 with AVX-512 or AVX2, in
    /// f32), OpenVINO, ONNX Runtime, `rten`. Where `native` refuses one network, it runs the others in f32, and the
    /// next engine runs that one. Why the earlier ones do not run is in [`crate::EngineReport::fallback_reason`].
    #[default]
    Auto,
    /// `rten`, part of the binary: runs ONNX files on a CPU.
    Rten,
    /// The project's own executor for convolutional networks, part of the binary.
    Native,
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
    /// NVIDIA GPUs through CUDA.
    Cuda,
    /// NVIDIA GPUs through TensorRT (minutes of compilation at the start).
    TensorRt,
    /// Apple devices through CoreML.
    CoreMl,
}

/// Arithmetic of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f32; chosen where nothing else is asked for.
    #[default]
    Auto,
    /// f32.
    F32,
    /// bf16 in the segmenter's decoder, in a classifier whose card allows it, and in all of a package's encoder; f32
    /// elsewhere, where bf16 would move scores too far. An error where engine or processor have no bf16.
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
                    _ => Err(format!("`{s}` is not one of {}", Self::WORDS.join(", "))),
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
    Native = "native",
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
