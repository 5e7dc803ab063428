//! Products in bf16 with sums in f32: on AMX tiles, or with the dot products of AVX-512 BF16.
//!
//! Both read the same weights: for each 32 values of depth and 16 columns a tile of 16 pairs by 16 columns, a cache
//! line per pair. Runs of depth that are not a multiple of 32 are filled up with weights of zero, so what is behind a
//! run is multiplied by zero; [`Products::check`] counts those reads, too.

/// Values of depth in a tile.
pub(crate) const DEPTH: usize = 32;
/// Columns of a tile, and pixels.
pub(crate) const SIDE: usize = 16;
/// Values of weights in a tile.
pub(crate) const TILE: usize = DEPTH * SIDE;

/// How bf16 is multiplied.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// Tiles of AMX.
    Amx,
    /// Dot products of AVX-512 BF16.
    Dots,
}

/// How bf16 is multiplied: in no way here.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl Half {
    /// Whether a 3 x 3 convolution as it is, in bf16, is faster than one in f32 that is transformed. Dot products take
    /// half the time of f32, and of the products F(4 x 4) leaves a quarter, F(3 x 3) a third.
    pub(crate) fn outruns(self, tile: super::Tile) -> bool {
        self == Self::Amx || tile == super::Tile::Two
    }
}

/// As [`super::Source`], of bf16.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub at: usize,
    pub pixel: usize,
    pub tap: usize,
    pub taps: usize,
    pub len: usize,
}

/// `sums[x][n] = sum over depth of source[x][k] * weights[k][n]` for 16 or 32 columns; pixels are filled up to whole
/// tiles.
#[derive(Debug)]
pub(crate) struct Products<'a> {
    pub values: &'a [u16],
    pub sources: &'a [Source],
    pub pixels: usize,
    /// `[run][tap][32 values of depth][tile][pair][column][2]`.
    pub weights: &'a [u16],
    /// 1 or 2 tiles of columns.
    pub tiles: usize,
    /// `[pixel][tiles * 16]`.
    pub sums: &'a mut [f32],
}

impl Products<'_> {
    /// Pixels that are computed: pairs of tiles.
    pub(crate) fn computed(pixels: usize) -> usize {
        pixels.next_multiple_of(2 * SIDE)
    }

    fn check(&self) {
        assert!(matches!(self.tiles, 1 | 2));
        let pixels = Self::computed(self.pixels);
        let mut chunks = 0;
        for s in self.sources {
            let deep = s.len.next_multiple_of(DEPTH);
            let end = s.at + pixels.saturating_sub(1) * s.pixel + (s.taps - 1) * s.tap + deep;
            assert!(end <= self.values.len(), "a source ends at {end} of {}", self.values.len());
            chunks += s.taps * deep / DEPTH;
        }
        assert!(self.weights.len() >= chunks * self.tiles * TILE, "weights of a panel");
        assert!(self.sums.len() >= pixels * self.tiles * SIDE, "sums of a panel");
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86 {
    use super::{DEPTH, Half, Products, SIDE, TILE};
    use std::arch::asm;
    use std::arch::x86_64::*;
    use std::sync::OnceLock;

    /// The form of the tiles: palette 1, eight of 16 rows of 64 bytes.
    #[repr(C, align(64))]
    struct Form([u8; 64]);

    static FORM: Form = {
        let mut form = [0; 64];
        form[0] = 1;
        let mut i = 0;
        while i < 8 {
            form[16 + 2 * i] = 64;
            form[48 + i] = 16;
            i += 1;
        }
        Form(form)
    };

    /// Asks the system, once, for the tiles' state: without its leave their instructions end the process.
    fn tiles() -> bool {
        static ALLOWED: OnceLock<bool> = OnceLock::new();
        *ALLOWED.get_or_init(|| {
            // The leaf exists where AVX-512 does.
            let found = __cpuid_count(7, 0).edx;
            let (bf16, tile) = (found >> 22 & 1 == 1, found >> 24 & 1 == 1);
            if !(bf16 && tile) {
                return false;
            }
            let mut result: i64 = 158;
            // SAFETY: arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA) reads and writes no memory of ours; it fails where the
            // system does not know it. Registers that a system call overwrites are named.
            unsafe {
                asm!("syscall", inlateout("rax") result, in("rdi") 0x1023_u64, in("rsi") 18_u64,
                     out("rcx") _, out("r11") _, options(nostack));
            }
            result == 0
        })
    }

    impl Half {
        /// The fastest that this processor has.
        pub(crate) fn best() -> Option<Self> {
            let dots = std::arch::is_x86_feature_detected!("avx512f")
                && std::arch::is_x86_feature_detected!("avx512bw")
                && std::arch::is_x86_feature_detected!("avx512vl")
                && std::arch::is_x86_feature_detected!("avx512bf16");
            match dots {
                true if tiles() => Some(Self::Amx),
                true => Some(Self::Dots),
                false => None,
            }
        }

        /// The products; `self` comes from [`Self::best`].
        pub(crate) fn products(self, mut p: Products<'_>) {
            p.check();
            // SAFETY: a `Half` comes from `best` (or, in tests, `available`) alone, which has found the extensions;
            // `check` has bounded every address.
            unsafe {
                match (self, p.tiles) {
                    (Self::Amx, 1) => amx::<1>(&mut p),
                    (Self::Amx, _) => amx::<2>(&mut p),
                    (Self::Dots, 1) => dots::<1>(&mut p),
                    (Self::Dots, _) => dots::<2>(&mut p),
                }
            }
        }

        /// `to[i] = from[i]`, rounded to the nearest.
        pub(crate) fn round(self, from: &[f32], to: &mut [u16]) {
            assert_eq!(from.len(), to.len());
            // SAFETY: as for `products`; the lengths are equal.
            unsafe { round(from, to) }
        }

        /// Every way that this processor has.
        #[cfg(test)]
        pub(crate) fn available() -> Vec<Self> {
            match Self::best() {
                None => vec![],
                Some(Self::Dots) => vec![Self::Dots],
                Some(Self::Amx) => vec![Self::Amx, Self::Dots],
            }
        }
    }

    /// # Safety
    /// AVX-512 F and BF16 are there, and `to` is as long as `from`.
    #[target_feature(enable = "avx512f,avx512bf16,avx512bw,avx512vl")]
    unsafe fn round(from: &[f32], to: &mut [u16]) {
        let whole = from.len() / 16 * 16;
        let mut i = 0;
        while i < whole {
            // SAFETY: sixteen values are left in both.
            unsafe {
                let v = _mm512_cvtneps_pbh(_mm512_loadu_ps(from.as_ptr().add(i)));
                _mm256_storeu_si256(
                    to.as_mut_ptr().add(i).cast(),
                    std::mem::transmute::<__m256bh, __m256i>(v),
                );
            }
            i += 16;
        }
        for (f, t) in from[whole..].iter().zip(&mut to[whole..]) {
            *t = half::bf16::from_f32(*f).to_bits();
        }
    }

    /// # Safety
    /// The tiles are there and allowed, and `p` went through [`Products::check`].
    unsafe fn amx<const NB: usize>(p: &mut Products<'_>) {
        // SAFETY: `check` bounds rows of 64 bytes from every pixel and tap, weights to whole tiles, and sums to whole
        // pairs of tiles. No code but this uses the tiles, between the two instructions that open and close them.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const FORM, options(nostack, readonly));
            let wide = NB * SIDE;
            for x in (0..p.pixels).step_by(2 * SIDE) {
                asm!(
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    options(nostack, nomem)
                );
                let mut b = p.weights.as_ptr();
                for s in p.sources {
                    let first = p.values.as_ptr().add(s.at + x * s.pixel);
                    let (row, next) = (2 * s.pixel, SIDE * s.pixel);
                    for t in 0..s.taps {
                        let tap = first.add(t * s.tap);
                        for k in (0..s.len).step_by(DEPTH) {
                            let (a, c) = (tap.add(k), tap.add(k + next));
                            if NB == 2 {
                                asm!(
                                    "tileloadd tmm4, [{a} + {row}*1]",
                                    "tileloadd tmm6, [{b} + {line}*1]",
                                    "tdpbf16ps tmm0, tmm4, tmm6",
                                    "tileloadd tmm7, [{b} + {line}*1 + 1024]",
                                    "tdpbf16ps tmm1, tmm4, tmm7",
                                    "tileloadd tmm5, [{c} + {row}*1]",
                                    "tdpbf16ps tmm2, tmm5, tmm6",
                                    "tdpbf16ps tmm3, tmm5, tmm7",
                                    a = in(reg) a, c = in(reg) c, b = in(reg) b, row = in(reg) row,
                                    line = in(reg) 64_usize, options(nostack, readonly),
                                );
                            } else {
                                asm!(
                                    "tileloadd tmm4, [{a} + {row}*1]",
                                    "tileloadd tmm6, [{b} + {line}*1]",
                                    "tdpbf16ps tmm0, tmm4, tmm6",
                                    "tileloadd tmm5, [{c} + {row}*1]",
                                    "tdpbf16ps tmm2, tmm5, tmm6",
                                    a = in(reg) a, c = in(reg) c, b = in(reg) b, row = in(reg) row,
                                    line = in(reg) 64_usize, options(nostack, readonly),
                                );
                            }
                            b = b.add(NB * TILE);
                        }
                    }
                }
                let to = p.sums.as_mut_ptr().add(x * wide);
                let below = to.add(SIDE * wide);
                asm!(
                    "tilestored [{to} + {step}*1], tmm0",
                    "tilestored [{below} + {step}*1], tmm2",
                    to = in(reg) to, below = in(reg) below, step = in(reg) 4 * wide, options(nostack),
                );
                if NB == 2 {
                    asm!(
                        "tilestored [{to} + {step}*1 + 64], tmm1",
                        "tilestored [{below} + {step}*1 + 64], tmm3",
                        to = in(reg) to, below = in(reg) below, step = in(reg) 4 * wide, options(nostack),
                    );
                }
            }
            asm!("tilerelease", options(nostack, nomem));
        }
    }

    /// # Safety
    /// AVX-512 F and BF16 are there, and `p` went through [`Products::check`].
    #[target_feature(enable = "avx512f,avx512bf16")]
    unsafe fn dots<const NB: usize>(p: &mut Products<'_>) {
        const M: usize = 8;
        let wide = NB * SIDE;
        for x in (0..p.pixels).step_by(M) {
            // SAFETY: `check` bounds 32 values from every pixel and tap, weights to whole tiles, and sums to whole
            // tiles.
            unsafe {
                let mut sums = [[_mm512_setzero_ps(); NB]; M];
                let mut b = p.weights.as_ptr();
                for s in p.sources {
                    let first = p.values.as_ptr().add(s.at + x * s.pixel);
                    for t in 0..s.taps {
                        for k in (0..s.len).step_by(DEPTH) {
                            let a = first.add(t * s.tap + k);
                            for pair in 0..DEPTH / 2 {
                                let mut columns = [_mm512_setzero_si512(); NB];
                                for (j, c) in columns.iter_mut().enumerate() {
                                    *c = _mm512_loadu_si512(
                                        b.add(j * TILE + pair * 2 * SIDE).cast(),
                                    );
                                }
                                for (m, row) in sums.iter_mut().enumerate() {
                                    let v = a
                                        .add(m * s.pixel + 2 * pair)
                                        .cast::<i32>()
                                        .read_unaligned();
                                    let v = std::mem::transmute::<__m512i, __m512bh>(
                                        _mm512_set1_epi32(v),
                                    );
                                    for (sum, c) in row.iter_mut().zip(columns) {
                                        let c = std::mem::transmute::<__m512i, __m512bh>(c);
                                        *sum = _mm512_dpbf16_ps(*sum, v, c);
                                    }
                                }
                            }
                            b = b.add(NB * TILE);
                        }
                    }
                }
                for (m, row) in sums.iter().enumerate() {
                    for (j, sum) in row.iter().enumerate() {
                        _mm512_storeu_ps(p.sums.as_mut_ptr().add((x + m) * wide + j * SIDE), *sum);
                    }
                }
            }
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
impl Half {
    pub(crate) fn best() -> Option<Self> {
        None
    }

    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        vec![]
    }

    pub(crate) fn outruns(self, _: super::Tile) -> bool {
        match self {}
    }

    pub(crate) fn products(self, p: Products<'_>) {
        p.check();
        match self {}
    }

    pub(crate) fn round(self, _: &[f32], _: &mut [u16]) {
        match self {}
    }
}
