//! f32 or bf16.

use super::{EngineError, Precision};

/// Arithmetic of each network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub segmenter: Precision,
    pub classifier: Precision,
}

impl Chosen {
    pub(crate) const F32: Self = Self::both(Precision::F32);

    const fn both(p: Precision) -> Self {
        Self { segmenter: p, classifier: p }
    }
}

/// Resolves what was asked for. `openvino` is the one family of kernels with a bf16 hint.
///
/// Left to itself everything runs in f32. On a trained U-Net bf16 was twice as fast but moved
/// `s_seg` by 0.01 in the median and up to 0.26, and lost regions near the threshold
/// (`docs/results/speed.md`): a choice for the user, never for the machine.
pub(crate) fn choose(asked: Precision, openvino: bool) -> Result<Chosen, EngineError> {
    match asked {
        Precision::F32 | Precision::Auto => Ok(Chosen::F32),
        Precision::Bf16 if !openvino => Err(EngineError::Options(
            "bf16 is offered with OpenVINO alone; use --precision f32".into(),
        )),
        Precision::Bf16 if bf16_cpu() => Ok(Chosen::both(Precision::Bf16)),
        Precision::Bf16 => Err(EngineError::Options(
            "this processor has no bf16 instructions; use --precision f32".into(),
        )),
    }
}

/// Whether the processor multiplies bf16 in hardware (AVX-512 BF16, which AMX implies).
pub fn bf16_cpu() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}
