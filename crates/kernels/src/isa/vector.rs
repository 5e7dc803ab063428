//! What a kernel needs of a register.

/// A register of f32.
///
/// # Safety
/// Every method needs the processor extensions of its implementation; callers are the `#[target_feature]`
/// functions of [`super::sets`], which [`super::Isa`] runs only where the extensions were detected. Loads and
/// stores need [`Self::LANES`] valid values behind the pointer, those of a part as many as they name.
pub(super) trait Vector: Copy {
    const LANES: usize;
    /// A register of half as many lanes, where that halves the work of some processors; otherwise the same.
    type Half: Vector;
    /// Its first lanes.
    unsafe fn lower(self) -> Self::Half;
    unsafe fn splat(v: f32) -> Self;
    unsafe fn load(p: *const f32) -> Self;
    /// The first `n` values, 0 behind them.
    unsafe fn load_part(p: *const f32, n: usize) -> Self;
    unsafe fn store(self, p: *mut f32);
    unsafe fn store_part(self, p: *mut f32, n: usize);
    /// `self + a * b`.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    /// Between two limits; NaN stays NaN.
    unsafe fn clamp(self, low: Self, high: Self) -> Self;
    /// Sum of all lanes, in a fixed order.
    unsafe fn sum(self) -> f32;
}

/// Eight f32 without any extension; what the compiler makes of arrays.
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; 8]);

impl Vector for Plain {
    const LANES: usize = 8;
    type Half = Self;

    #[inline(always)]
    unsafe fn lower(self) -> Self {
        self
    }

    #[inline(always)]
    unsafe fn splat(v: f32) -> Self {
        Self([v; 8])
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: eight values are valid by the trait's contract; arrays of f32 align as f32.
        Self(unsafe { p.cast::<[f32; 8]>().read() })
    }

    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        let mut v = [0.0; 8];
        for (i, v) in v.iter_mut().enumerate().take(n) {
            // SAFETY: `i < n` values are valid by the trait's contract.
            *v = unsafe { *p.add(i) };
        }
        Self(v)
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: as for `load`.
        unsafe { p.cast::<[f32; 8]>().write(self.0) }
    }

    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        for (i, v) in self.0.iter().enumerate().take(n) {
            // SAFETY: `i < n` values are valid by the trait's contract.
            unsafe { *p.add(i) = *v };
        }
    }

    #[inline(always)]
    unsafe fn fma(self, a: Self, b: Self) -> Self {
        // Not `mul_add`: without the extension that is a call per value.
        Self(std::array::from_fn(|i| self.0[i] + a.0[i] * b.0[i]))
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - other.0[i]))
    }

    #[inline(always)]
    unsafe fn clamp(self, low: Self, high: Self) -> Self {
        let clamped = |i: usize| {
            let v = if self.0[i] < low.0[i] { low.0[i] } else { self.0[i] };
            if v > high.0[i] { high.0[i] } else { v }
        };
        Self(std::array::from_fn(clamped))
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        tree(self.0)
    }
}

/// Sum of eight values by halves.
#[inline(always)]
pub(super) fn tree(v: [f32; 8]) -> f32 {
    ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Vector, tree};
    use std::arch::x86_64::*;

    /// Sixteen f32; needs AVX-512 F.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512(__m512);

    // SAFETY of every block below: the extension and the pointers are the caller's promise, see the trait.
    impl Vector for Avx512 {
        const LANES: usize = 16;
        type Half = Avx2;

        #[inline(always)]
        unsafe fn lower(self) -> Avx2 {
            // SAFETY: see above.
            Avx2(unsafe { _mm512_castps512_ps256(self.0) })
        }

        #[inline(always)]
        unsafe fn splat(v: f32) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_set1_ps(v) })
        }

        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_loadu_ps(p) })
        }

        #[inline(always)]
        unsafe fn load_part(p: *const f32, n: usize) -> Self {
            // SAFETY: see above; lanes that the mask leaves out are not read.
            Self(unsafe { _mm512_maskz_loadu_ps(mask16(n), p) })
        }

        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            // SAFETY: see above.
            unsafe { _mm512_storeu_ps(p, self.0) }
        }

        #[inline(always)]
        unsafe fn store_part(self, p: *mut f32, n: usize) {
            // SAFETY: see above; lanes that the mask leaves out are not written.
            unsafe { _mm512_mask_storeu_ps(p, mask16(n), self.0) }
        }

        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_fmadd_ps(a.0, b.0, self.0) })
        }

        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_add_ps(self.0, other.0) })
        }

        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm512_sub_ps(self.0, other.0) })
        }

        #[inline(always)]
        unsafe fn clamp(self, low: Self, high: Self) -> Self {
            // Of a NaN and a number, these return the second operand.
            // SAFETY: see above.
            Self(unsafe { _mm512_min_ps(high.0, _mm512_max_ps(low.0, self.0)) })
        }

        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            let mut v = [0.0; 16];
            // SAFETY: sixteen values have room; see above.
            unsafe { _mm512_storeu_ps(v.as_mut_ptr(), self.0) };
            tree(std::array::from_fn(|i| v[i] + v[i + 8]))
        }
    }

    #[inline(always)]
    fn mask16(n: usize) -> __mmask16 {
        ((1_u32 << n.min(16)) - 1) as __mmask16
    }

    /// Eight f32; needs AVX2 and FMA.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(__m256);

    static ONES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    #[inline(always)]
    unsafe fn mask8(n: usize) -> __m256i {
        // SAFETY: eight values from `8 - n` on are inside `ONES`; the extension is the caller's promise.
        unsafe { _mm256_loadu_si256(ONES.as_ptr().add(8 - n.min(8)).cast()) }
    }

    // SAFETY of every block below: as above.
    impl Vector for Avx2 {
        const LANES: usize = 8;
        type Half = Self;

        #[inline(always)]
        unsafe fn lower(self) -> Self {
            self
        }

        #[inline(always)]
        unsafe fn splat(v: f32) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_set1_ps(v) })
        }

        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_loadu_ps(p) })
        }

        #[inline(always)]
        unsafe fn load_part(p: *const f32, n: usize) -> Self {
            // SAFETY: see above; lanes that the mask leaves out are not read.
            Self(unsafe { _mm256_maskload_ps(p, mask8(n)) })
        }

        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            // SAFETY: see above.
            unsafe { _mm256_storeu_ps(p, self.0) }
        }

        #[inline(always)]
        unsafe fn store_part(self, p: *mut f32, n: usize) {
            // SAFETY: see above; lanes that the mask leaves out are not written.
            unsafe { _mm256_maskstore_ps(p, mask8(n), self.0) }
        }

        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_fmadd_ps(a.0, b.0, self.0) })
        }

        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_add_ps(self.0, other.0) })
        }

        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_sub_ps(self.0, other.0) })
        }

        #[inline(always)]
        unsafe fn clamp(self, low: Self, high: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { _mm256_min_ps(high.0, _mm256_max_ps(low.0, self.0)) })
        }

        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            let mut v = [0.0; 8];
            // SAFETY: eight values have room; see above.
            unsafe { _mm256_storeu_ps(v.as_mut_ptr(), self.0) };
            tree(v)
        }
    }
}
#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Vector;
    use std::arch::aarch64::*;

    /// Four f32; NEON, which every 64-bit ARM processor has.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Neon(float32x4_t);

    // SAFETY of every block below: the pointers are the caller's promise, see the trait.
    impl Vector for Neon {
        const LANES: usize = 4;
        type Half = Self;

        #[inline(always)]
        unsafe fn lower(self) -> Self {
            self
        }

        #[inline(always)]
        unsafe fn splat(v: f32) -> Self {
            // SAFETY: see above.
            Self(unsafe { vdupq_n_f32(v) })
        }

        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            // SAFETY: see above.
            Self(unsafe { vld1q_f32(p) })
        }

        #[inline(always)]
        unsafe fn load_part(p: *const f32, n: usize) -> Self {
            let mut v = [0.0_f32; 4];
            for (i, v) in v.iter_mut().enumerate().take(n) {
                // SAFETY: `i < n` values are valid by the trait's contract.
                *v = unsafe { *p.add(i) };
            }
            // SAFETY: four values of `v`.
            Self(unsafe { vld1q_f32(v.as_ptr()) })
        }

        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            // SAFETY: see above.
            unsafe { vst1q_f32(p, self.0) }
        }

        #[inline(always)]
        unsafe fn store_part(self, p: *mut f32, n: usize) {
            let mut v = [0.0_f32; 4];
            // SAFETY: four values have room.
            unsafe { vst1q_f32(v.as_mut_ptr(), self.0) };
            for (i, v) in v.iter().enumerate().take(n) {
                // SAFETY: `i < n` values are valid by the trait's contract.
                unsafe { *p.add(i) = *v };
            }
        }

        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { vfmaq_f32(self.0, a.0, b.0) })
        }

        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { vaddq_f32(self.0, other.0) })
        }

        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            // SAFETY: see above.
            Self(unsafe { vsubq_f32(self.0, other.0) })
        }

        #[inline(always)]
        unsafe fn clamp(self, low: Self, high: Self) -> Self {
            // These two keep NaN.
            // SAFETY: see above.
            Self(unsafe { vminq_f32(high.0, vmaxq_f32(low.0, self.0)) })
        }

        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            let mut v = [0.0_f32; 4];
            // SAFETY: four values have room.
            unsafe { vst1q_f32(v.as_mut_ptr(), self.0) };
            (v[0] + v[2]) + (v[1] + v[3])
        }
    }
}
#[cfg(target_arch = "aarch64")]
pub(super) use arm::Neon;
