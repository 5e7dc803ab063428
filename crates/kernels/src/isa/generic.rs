//! The kernels, written once for every register.

use super::vector::Vector;
use super::{Clamp, Depthwise, Dots, Finish, Rows, Start};

/// `MR` outputs of a row from `x` on, by `NV` registers of columns.
///
/// # Safety
/// The extensions of `V` are there, and `r` went through [`Rows::check`]; `x + MR <= r.pixels`.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, const MR: usize, const NV: usize>(r: &mut Rows<'_>, x: usize) {
    // SAFETY: `Rows::check` bounds every address below: sources to their last tap of the last pixel, weights
    // to `depth * NV * LANES`, bias to `NV * LANES`, outputs and residuals to `columns` of each pixel.
    unsafe {
        let lanes = V::LANES;
        let tail = r.columns - (NV - 1) * lanes;
        let place = |m: usize| match r.places {
            None => (x + m) * r.out_step,
            Some(places) => *places.get_unchecked(x + m) as usize,
        };
        let out = r.out.as_mut_ptr().add(r.out_at);
        let mut acc = [[V::splat(0.0); NV]; MR];
        match r.start {
            Start::Bias(bias) => {
                for j in 0..NV {
                    let v = V::load(bias.as_ptr().add(j * lanes));
                    for row in &mut acc {
                        row[j] = v;
                    }
                }
            }
            Start::Sums => {
                for (m, row) in acc.iter_mut().enumerate() {
                    let from = out.add(place(m));
                    for (j, v) in row.iter_mut().enumerate() {
                        let p = from.add(j * lanes);
                        *v = if j + 1 == NV { V::load_part(p, tail) } else { V::load(p) };
                    }
                }
            }
        }
        let mut b = r.weights.as_ptr();
        for s in r.sources {
            let first = s.data.as_ptr().add(s.at + x * s.pixel);
            for t in 0..s.taps {
                let mut a = first.add(t * s.tap);
                for _ in 0..s.len {
                    let mut columns = [V::splat(0.0); NV];
                    for (j, v) in columns.iter_mut().enumerate() {
                        *v = V::load(b.add(j * lanes));
                    }
                    for (m, row) in acc.iter_mut().enumerate() {
                        let v = V::splat(*a.add(m * s.pixel));
                        for (sum, column) in row.iter_mut().zip(columns) {
                            *sum = sum.fma(v, column);
                        }
                    }
                    a = a.add(1);
                    b = b.add(NV * lanes);
                }
            }
        }
        if let Some((data, at, step)) = r.residual {
            for (m, row) in acc.iter_mut().enumerate() {
                let far = match r.residual_places {
                    None => (x + m) * step,
                    Some(places) => *places.get_unchecked(x + m) as usize,
                };
                let from = data.as_ptr().add(at + far);
                for (j, v) in row.iter_mut().enumerate() {
                    let p = from.add(j * lanes);
                    *v = v.add(if j + 1 == NV { V::load_part(p, tail) } else { V::load(p) });
                }
            }
        }
        let (low, high) = (V::splat(r.clamp.low), V::splat(r.clamp.high));
        for (m, row) in acc.iter().enumerate() {
            let to = out.add(place(m));
            for (j, v) in row.iter().enumerate() {
                let v = v.clamp(low, high);
                let p = to.add(j * lanes);
                if j + 1 == NV && tail < lanes { v.store_part(p, tail) } else { v.store(p) }
            }
        }
    }
}

/// One filter per channel along a row, `X` outputs at once.
///
/// # Safety
/// The extensions of `V` are there, and `d` went through [`Depthwise::check`].
#[inline(always)]
pub(super) unsafe fn depthwise<V: Vector, const K: usize, const S: usize, const X: usize>(
    d: &mut Depthwise<'_>,
) {
    let c = d.channels;
    let (low, high);
    // SAFETY: the extension is the caller's promise.
    unsafe { (low, high) = (V::splat(d.clamp.low), V::splat(d.clamp.high)) };
    let mut o = 0;
    while o < c {
        let part = (c - o).min(V::LANES);
        let mut x = 0;
        while x < d.pixels {
            // SAFETY: `Depthwise::check` bounds rows to `((pixels - 1) * S + K) * c` values, the output to
            // `pixels * c`, weights to `K * K * c` and bias to `c`; `part` lanes from `o` on are inside a pixel.
            unsafe {
                if x + X <= d.pixels {
                    if part == V::LANES {
                        block::<V, K, S, X, true>(d, x, (o, part), (low, high));
                    } else {
                        block::<V, K, S, X, false>(d, x, (o, part), (low, high));
                    }
                    x += X;
                } else {
                    block::<V, K, S, 1, false>(d, x, (o, part), (low, high));
                    x += 1;
                }
            }
        }
        o += part;
    }
}

/// # Safety
/// See [`depthwise`]; `part` is `V::LANES` where `WHOLE`.
#[inline(always)]
unsafe fn block<V: Vector, const K: usize, const S: usize, const X: usize, const WHOLE: bool>(
    d: &mut Depthwise<'_>,
    x: usize,
    (o, part): (usize, usize),
    (low, high): (V, V),
) {
    let c = d.channels;
    // SAFETY: see `depthwise`.
    unsafe {
        let load = |p: *const f32| if WHOLE { V::load(p) } else { V::load_part(p, part) };
        let mut acc = [load(d.bias.as_ptr().add(o)); X];
        for (ky, row) in d.rows.iter().enumerate().take(K) {
            let from = row.as_ptr().add(x * S * c + o);
            let mut filter = [V::splat(0.0); K];
            for (kx, v) in filter.iter_mut().enumerate() {
                *v = load(d.weights.as_ptr().add((ky * K + kx) * c + o));
            }
            for i in 0..(X - 1) * S + K {
                let v = load(from.add(i * c));
                for (q, sum) in acc.iter_mut().enumerate() {
                    if i >= q * S && i - q * S < K {
                        *sum = sum.fma(v, filter[i - q * S]);
                    }
                }
            }
        }
        let to = d.out.as_mut_ptr().add(x * c + o);
        for (q, sum) in acc.iter().enumerate() {
            let v = sum.clamp(low, high);
            if WHOLE { v.store(to.add(q * c)) } else { v.store_part(to.add(q * c), part) }
        }
    }
}

/// Few columns: a scalar product per output, with the depth across the lanes.
///
/// # Safety
/// The extensions of `V` are there, and `d` went through [`Dots::check`].
#[inline(always)]
pub(super) unsafe fn dots<V: Vector>(d: &mut Dots<'_>) {
    for n in 0..d.columns {
        let mut x = 0;
        while x < d.pixels {
            // SAFETY: `Dots::check` bounds sources, weights and outputs for every pixel below `pixels`.
            unsafe {
                if x + 4 <= d.pixels {
                    dot::<V, 4>(d, x, n);
                    x += 4;
                } else {
                    dot::<V, 1>(d, x, n);
                    x += 1;
                }
            }
        }
    }
}

/// # Safety
/// See [`dots`]; `x + X <= d.pixels`.
#[inline(always)]
unsafe fn dot<V: Vector, const X: usize>(d: &mut Dots<'_>, x: usize, n: usize) {
    // SAFETY: see `dots`.
    unsafe {
        let mut acc = [V::splat(0.0); X];
        let mut b = d.weights.as_ptr().add(n * d.depth);
        for s in d.sources {
            let first = s.data.as_ptr().add(s.at + x * s.pixel);
            for t in 0..s.taps {
                let a = first.add(t * s.tap);
                let mut k = 0;
                while k + V::LANES <= s.len {
                    let w = V::load(b.add(k));
                    for (m, sum) in acc.iter_mut().enumerate() {
                        *sum = sum.fma(V::load(a.add(m * s.pixel + k)), w);
                    }
                    k += V::LANES;
                }
                let part = s.len - k;
                if part > 0 {
                    let w = V::load_part(b.add(k), part);
                    for (m, sum) in acc.iter_mut().enumerate() {
                        *sum = sum.fma(V::load_part(a.add(m * s.pixel + k), part), w);
                    }
                }
                b = b.add(s.len);
            }
        }
        let Clamp { low, high } = d.clamp;
        for (m, sum) in acc.iter().enumerate() {
            let mut v = sum.sum() + d.bias[n];
            if let Some((data, at, step)) = d.residual {
                v += data[at + (x + m) * step + n];
            }
            let v = if v < low { low } else { v };
            let v = if v > high { high } else { v };
            let out = d.out.as_mut_ptr();
            *out.add(d.out_at + (x + m) * d.out_step + n) = v;
        }
    }
}

/// Plain Rust, which the compiler makes of registers where the caller has them.
#[inline(always)]
pub(super) fn finish(f: &mut Finish<'_>) {
    let Clamp { low, high } = f.clamp;
    let n = f.bias.len();
    // NaN stays NaN.
    let limit = |v: f32| {
        let v = if v < low { low } else { v };
        if v > high { high } else { v }
    };
    let far = |places: Option<&[u32]>, x: usize, step: usize| match places {
        Some(p) => p[x] as usize,
        None => x * step,
    };
    for x in 0..f.pixels {
        let sums = &f.sums[x * f.wide..x * f.wide + n];
        let out = &mut f.out[f.out_at + far(f.places, x, f.out_step)..][..n];
        match f.residual {
            None => {
                for ((o, s), b) in out.iter_mut().zip(sums).zip(f.bias) {
                    *o = limit(s + b);
                }
            }
            Some((data, at, step)) => {
                let other = &data[at + far(f.residual_places, x, step)..][..n];
                for (((o, s), b), r) in out.iter_mut().zip(sums).zip(f.bias).zip(other) {
                    *o = limit(s + b + r);
                }
            }
        }
    }
}
