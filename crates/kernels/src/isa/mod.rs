//! Register kernels behind checked calls: the only place of this crate with `unsafe`.
//!
//! A call is a struct of slices and distances. [`Isa`] checks every address that it leads to against its slice, then
//! runs the kernel of its instruction set. The kernels are in [`generic`], written once over [`vector::Vector`].

mod calls;
mod func;
mod generic;
pub(crate) mod half;
mod sets;
mod vector;

pub(crate) use calls::{
    Clamp, Depthwise, Dots, Finish, InputTiles, OutputTiles, Rows, Scale, Source, Start, Strided,
    Tile,
};
pub(crate) use func::{Func, exp, limit};

use std::fmt;
use std::str::FromStr;

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// Nothing but what the compiler takes for granted.
    Plain,
    /// ARM's 128-bit registers.
    Neon,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512 F and VL.
    Avx512,
}

/// The kernel of an instruction set.
macro_rules! on_set {
    ($isa:expr, $kernel:ident($($argument:expr),+)) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => sets::avx512::$kernel($($argument),+),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => sets::avx2::$kernel($($argument),+),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => sets::neon::$kernel($($argument),+),
            _ => sets::plain::$kernel($($argument),+),
        }
    };
}

impl Isa {
    /// The sets that this processor has, the widest first; [`Isa::Plain`] is always among them.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("fma");
            // Every server processor with the first has the second.
            let avx512 = std::arch::is_x86_feature_detected!("avx512f")
                && std::arch::is_x86_feature_detected!("avx512vl");
            if avx2 && avx512 {
                all.push(Self::Avx512);
            }
            if avx2 {
                all.push(Self::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        all.push(Self::Neon);
        all.push(Self::Plain);
        all
    }

    /// The widest that this processor has.
    #[must_use]
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// f32 per register.
    pub(crate) fn lanes(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => sets::avx512::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => sets::avx2::LANES,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => sets::neon::LANES,
            _ => sets::plain::LANES,
        }
    }

    /// Most registers of columns in a tile.
    pub(crate) fn widest(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => sets::avx512::WIDEST,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => sets::avx2::WIDEST,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => sets::neon::WIDEST,
            _ => sets::plain::WIDEST,
        }
    }

    fn assert_available(self) {
        debug_assert!(Self::available().contains(&self));
    }

    /// Products of a row of pixels.
    pub(crate) fn rows(self, mut r: Rows<'_>) {
        self.assert_available();
        r.check(self.lanes(), self.widest());
        // SAFETY: an `Isa` other than `Plain` comes from `available` alone (`Network::plan` refuses others), and
        // `check` has bounded every address.
        unsafe { on_set!(self, rows(&mut r)) }
    }

    /// One filter per channel along a row.
    pub(crate) fn depthwise(self, mut d: Depthwise<'_>) {
        self.assert_available();
        d.check();
        // SAFETY: as for `rows`.
        unsafe { on_set!(self, depthwise(&mut d)) }
    }

    /// Scalar products of a row of pixels, for few columns.
    pub(crate) fn dots(self, mut d: Dots<'_>) {
        self.assert_available();
        d.check();
        // SAFETY: as for `rows`.
        unsafe { on_set!(self, dots(&mut d)) }
    }

    /// Tiles of pixels, transformed.
    pub(crate) fn input_tiles(self, mut t: InputTiles<'_>) {
        self.assert_available();
        t.check();
        // SAFETY: as for `rows`.
        unsafe { on_set!(self, input_tiles(&mut t)) }
    }

    /// Tiles of outputs, transformed back.
    pub(crate) fn output_tiles(self, mut t: OutputTiles<'_>) {
        self.assert_available();
        t.check();
        // SAFETY: as for `rows`.
        unsafe { on_set!(self, output_tiles(&mut t)) }
    }

    /// Sums to outputs: bias, residual, limits.
    pub(crate) fn finish(self, mut f: Finish<'_>) {
        self.assert_available();
        // SAFETY: the extensions are there, as for `rows`; the function itself is safe.
        unsafe { on_set!(self, finish(&mut f)) }
    }

    /// A factor and a summand per channel.
    pub(crate) fn scale(self, mut s: Scale<'_>) {
        self.assert_available();
        // SAFETY: the extensions are there, as for `rows`; the function itself is safe.
        unsafe { on_set!(self, scale(&mut s)) }
    }

    /// A function of every value.
    pub(crate) fn map(self, f: Func, values: &mut [f32]) {
        self.assert_available();
        // SAFETY: the extensions are there, as for `rows`; the functions themselves are safe.
        unsafe { on_set!(self, map(f, values)) }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        })
    }
}

impl FromStr for Isa {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        [Self::Plain, Self::Neon, Self::Avx2, Self::Avx512]
            .into_iter()
            .find(|isa| isa.to_string() == s)
            .ok_or_else(|| format!("`{s}` is not an instruction set: plain, neon, avx2, avx512"))
    }
}
