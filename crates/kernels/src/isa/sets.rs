//! The kernels compiled for each instruction set.

/// One module per set: the register, the extensions, and for each number of registers side by side the rows of a tile.
macro_rules! set {
    ($(#[$cfg:meta])* $name:ident, $vector:ident, $features:literal, $x:literal, { $($nv:literal: [$($mr:literal),+]),+ }) => {
        $(#[$cfg])*
        pub(super) mod $name {
            use super::even;
            use super::super::func::{self, Func};
            use super::super::vector::{$vector, Vector};
            use super::super::{Depthwise, Dots, Finish, InputTiles, OutputTiles, Rows, Scale, generic};

            pub(in super::super) const LANES: usize = <$vector as Vector>::LANES;
            pub(in super::super) const WIDEST: usize = { let all = [$($nv),+]; all[0] };

            /// # Safety
            /// The extensions are there; `r` went through [`Rows::check`]; `x + MR <= r.pixels`.
            #[target_feature(enable = $features)]
            unsafe fn tile<const MR: usize, const NV: usize>(r: &mut Rows<'_>, x: usize) {
                const HALF: usize = <<$vector as Vector>::Half as Vector>::LANES;
                // SAFETY: the caller's promise.
                unsafe {
                    if NV > 1 && HALF < LANES && r.columns <= (NV - 1) * LANES + HALF {
                        generic::tile::<$vector, MR, NV, true>(r, x)
                    } else {
                        generic::tile::<$vector, MR, NV, false>(r, x)
                    }
                }
            }

            /// # Safety
            /// The extensions are there, and `r` went through [`Rows::check`].
            #[target_feature(enable = $features)]
            pub(in super::super) unsafe fn rows(r: &mut Rows<'_>) {
                let mut x = 0;
                match r.registers {
                    $($nv => {
                        const SIZES: &[usize] = &[$($mr),+];
                        let most = even(r.pixels, SIZES);
                        while x < r.pixels {
                            let left = (r.pixels - x).min(most);
                            $(if left >= $mr {
                                // SAFETY: the caller's promise; `left` pixels are left.
                                unsafe { tile::<$mr, $nv>(r, x) };
                                x += $mr;
                                continue;
                            })+
                        }
                    })+
                    _ => unreachable!("panels are packed for this set"),
                }
            }

            /// # Safety
            /// The extensions are there, and `d` went through [`Depthwise::check`].
            #[target_feature(enable = $features)]
            pub(in super::super) unsafe fn depthwise(d: &mut Depthwise<'_>) {
                // SAFETY: the caller's promise.
                unsafe {
                    match (d.kernel, d.stride) {
                        (3, 1) => generic::depthwise::<$vector, 3, 1, $x>(d),
                        (3, 2) => generic::depthwise::<$vector, 3, 2, 4>(d),
                        (5, 1) => generic::depthwise::<$vector, 5, 1, $x>(d),
                        (5, 2) => generic::depthwise::<$vector, 5, 2, 4>(d),
                        (7, 1) => generic::depthwise::<$vector, 7, 1, 4>(d),
                        (7, 2) => generic::depthwise::<$vector, 7, 2, 4>(d),
                        _ => unreachable!("checked"),
                    }
                }
            }

            /// # Safety
            /// The extensions are there, and `d` went through [`Dots::check`].
            #[target_feature(enable = $features)]
            pub(in super::super) unsafe fn dots(d: &mut Dots<'_>) {
                // SAFETY: the caller's promise.
                unsafe { generic::dots::<$vector>(d) }
            }

            /// # Safety
            /// The extensions are there, and `t` went through [`InputTiles::check`].
            #[target_feature(enable = $features)]
            pub(in super::super) unsafe fn input_tiles(t: &mut InputTiles<'_>) {
                // SAFETY: the caller's promise.
                unsafe { generic::input_tiles::<$vector>(t) }
            }

            /// # Safety
            /// The extensions are there, and `t` went through [`OutputTiles::check`].
            #[target_feature(enable = $features)]
            pub(in super::super) unsafe fn output_tiles(t: &mut OutputTiles<'_>) {
                // SAFETY: the caller's promise.
                unsafe { generic::output_tiles::<$vector>(t) }
            }

            /// # Safety
            /// The extensions are there.
            #[target_feature(enable = $features)]
            pub(in super::super) unsafe fn finish(f: &mut Finish<'_>) {
                generic::finish(f);
            }

            /// # Safety
            /// The extensions are there.
            #[target_feature(enable = $features)]
            pub(in super::super) unsafe fn scale(s: &mut Scale<'_>) {
                generic::scale(s);
            }

            /// # Safety
            /// The extensions are there.
            #[target_feature(enable = $features)]
            pub(in super::super) unsafe fn map(f: Func, values: &mut [f32]) {
                func::map(f, values);
            }
        }
    };
}

/// Most rows of a tile so that all tiles of a row are nearly equal.
fn even(pixels: usize, sizes: &[usize]) -> usize {
    let tiles = pixels.div_ceil(sizes[0]).max(1);
    let each = pixels.div_ceil(tiles);
    sizes.iter().copied().filter(|s| *s >= each).min().unwrap_or(sizes[0])
}

set!(#[cfg(target_arch = "x86_64")] avx512, Avx512, "avx512f,avx512vl,avx2,fma", 8,
    { 3: [8, 6, 4, 3, 2, 1], 2: [12, 8, 6, 4, 2, 1], 1: [16, 12, 8, 4, 2, 1] });
set!(#[cfg(target_arch = "x86_64")] avx2, Avx2, "avx2,fma", 8,
    { 2: [6, 4, 3, 2, 1], 1: [12, 8, 6, 4, 2, 1] });
set!(#[cfg(target_arch = "aarch64")] neon, Neon, "neon", 8,
    { 3: [8, 6, 4, 3, 2, 1], 2: [12, 8, 6, 4, 2, 1], 1: [16, 12, 8, 4, 2, 1] });

pub(super) mod plain {
    use super::super::func::{self, Func};
    use super::super::vector::{Plain, Vector};
    use super::super::{Depthwise, Dots, Finish, InputTiles, OutputTiles, Rows, Scale, generic};

    pub(in super::super) const LANES: usize = <Plain as Vector>::LANES;
    pub(in super::super) const WIDEST: usize = 1;

    /// # Safety
    /// `r` went through [`Rows::check`].
    pub(in super::super) unsafe fn rows(r: &mut Rows<'_>) {
        let mut x = 0;
        while x < r.pixels {
            // SAFETY: the caller's promise.
            unsafe {
                if r.pixels - x >= 4 {
                    generic::tile::<Plain, 4, 1, false>(r, x);
                    x += 4;
                } else {
                    generic::tile::<Plain, 1, 1, false>(r, x);
                    x += 1;
                }
            }
        }
    }

    /// # Safety
    /// `d` went through [`Depthwise::check`].
    pub(in super::super) unsafe fn depthwise(d: &mut Depthwise<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            match (d.kernel, d.stride) {
                (3, 1) => generic::depthwise::<Plain, 3, 1, 2>(d),
                (3, 2) => generic::depthwise::<Plain, 3, 2, 2>(d),
                (5, 1) => generic::depthwise::<Plain, 5, 1, 2>(d),
                (5, 2) => generic::depthwise::<Plain, 5, 2, 2>(d),
                (7, 1) => generic::depthwise::<Plain, 7, 1, 2>(d),
                (7, 2) => generic::depthwise::<Plain, 7, 2, 2>(d),
                _ => unreachable!("checked"),
            }
        }
    }

    /// # Safety
    /// `d` went through [`Dots::check`].
    pub(in super::super) unsafe fn dots(d: &mut Dots<'_>) {
        // SAFETY: the caller's promise.
        unsafe { generic::dots::<Plain>(d) }
    }

    /// # Safety
    /// `t` went through [`InputTiles::check`].
    pub(in super::super) unsafe fn input_tiles(t: &mut InputTiles<'_>) {
        // SAFETY: the caller's promise.
        unsafe { generic::input_tiles::<Plain>(t) }
    }

    /// # Safety
    /// `t` went through [`OutputTiles::check`].
    pub(in super::super) unsafe fn output_tiles(t: &mut OutputTiles<'_>) {
        // SAFETY: the caller's promise.
        unsafe { generic::output_tiles::<Plain>(t) }
    }

    pub(in super::super) fn finish(f: &mut Finish<'_>) {
        generic::finish(f);
    }

    pub(in super::super) fn scale(s: &mut Scale<'_>) {
        generic::scale(s);
    }

    pub(in super::super) fn map(f: Func, values: &mut [f32]) {
        func::map(f, values);
    }
}
