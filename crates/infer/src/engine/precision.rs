//! f32; bf16 where it keeps scores within 5e-3, and of encoders on demand.

use super::loader::Backend;
use super::{EngineError, Precision};

/// Whether the segmenter's decoder computes in bf16, a classifier whose card allows it, and the whole of a package that
/// is an encoder.
///
/// The segmenter's encoder stays in f32: in bf16 it alone moves `s_seg` of real regions by up to 0.6; the decoder,
/// about half of the time, by 0.006 on the steepest of 134 regions and 0.0007 in the median. Classifiers differ: one
/// moved `s_cls` by up to 0.11, another by 0.007, so a card declares it. Features keep a cosine of 0.997 and more to
/// those in f32 (`docs/notes/bf16.md`).
///
/// # Errors
/// [`EngineError::Options`] where engine or processor have no bf16.
pub(super) fn bf16(asked: Precision, backend: Backend) -> Result<bool, EngineError> {
    let refuse =
        |reason: &str| Err(EngineError::Options(format!("{reason}; take the precision f32")));
    match (asked, backend) {
        (Precision::F32 | Precision::Auto, _) => Ok(false),
        (Precision::Bf16, Backend::Torch) => Ok(true),
        (Precision::Bf16, Backend::OpenVino) if bf16_cpu() => Ok(true),
        (Precision::Bf16, Backend::OpenVino) => refuse("this processor has no bf16 instructions"),
        (Precision::Bf16, Backend::Native) if kernels::bf16() => Ok(true),
        (Precision::Bf16, Backend::Native) => refuse(
            "native multiplies bf16 with AMX or AVX-512 BF16 on Linux, which this machine lacks",
        ),
        (Precision::Bf16, other) => {
            refuse(&format!("{other} computes in f32 only, bf16 is for native, openvino and torch"))
        }
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
