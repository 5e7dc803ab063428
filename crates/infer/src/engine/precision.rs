//! f32 or bf16.

use super::{EngineError, Precision};

/// Resolves what was asked for. `openvino` is the one family of kernels with a bf16 hint.
pub(crate) fn choose(asked: Precision, openvino: bool) -> Result<Precision, EngineError> {
    match asked {
        Precision::F32 => Ok(Precision::F32),
        Precision::Auto if openvino && bf16_cpu() => Ok(Precision::Bf16),
        Precision::Auto => Ok(Precision::F32),
        Precision::Bf16 if !openvino => Err(EngineError::Options(
            "bf16 is offered with OpenVINO alone; use --precision f32".into(),
        )),
        Precision::Bf16 if bf16_cpu() => Ok(Precision::Bf16),
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
