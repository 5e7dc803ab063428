//! The kernels, written once for every register.

use super::vector::Vector;
use super::{
    Clamp, Depthwise, Dots, Finish, InputTiles, OutputTiles, Rows, Scale, Start, Strided, Tile,
    limit,
};

/// `MR` outputs of a row from `x` on, by `NV` registers of columns, of which the last is a half where `HALF`.
///
/// # Safety
/// The extensions of `V` are there, and `r` went through [`Rows::check`]; `x + MR <= r.pixels`; a half has room for the
/// columns of the last register where `HALF`.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, const MR: usize, const NV: usize, const HALF: bool>(
    r: &mut Rows<'_>,
    x: usize,
) {
    // SAFETY: `Rows::check` bounds every address below: bias to `NV * LANES`, outputs and residuals to `columns` of
    // each pixel.
    unsafe {
        let lanes = V::LANES;
        // The last register, and what it holds.
        let (end, tail) = ((NV - 1) * lanes, r.columns - (NV - 1) * lanes);
        let place = |m: usize| match r.places {
            None => (x + m) * r.out_step,
            Some(places) => *places.get_unchecked(x + m) as usize,
        };
        let out = r.out.as_mut_ptr().add(r.out_at);
        let mut acc = [[V::splat(0.0); NV]; MR];
        let mut halves = [V::Half::splat(0.0); MR];
        match r.start {
            Start::Bias(bias) => {
                for j in 0..NV {
                    let v = V::load(bias.as_ptr().add(j * lanes));
                    for row in &mut acc {
                        row[j] = v;
                    }
                }
                let v = V::Half::load(bias.as_ptr().add(end));
                halves.fill(v);
            }
            Start::Sums => {
                for (m, row) in acc.iter_mut().enumerate() {
                    let from = out.add(place(m));
                    for (j, v) in row.iter_mut().enumerate() {
                        if j + 1 < NV {
                            *v = V::load(from.add(j * lanes));
                        } else if HALF {
                            halves[m] = V::Half::load_part(from.add(end), tail);
                        } else {
                            *v = V::load_part(from.add(end), tail);
                        }
                    }
                }
            }
        }
        products::<V, MR, NV, HALF>(r, x, &mut acc, &mut halves);
        if let Some(Strided { data, at, step }) = r.residual {
            for (m, row) in acc.iter_mut().enumerate() {
                let far = match r.residual_places {
                    None => (x + m) * step,
                    Some(places) => *places.get_unchecked(x + m) as usize,
                };
                let from = data.as_ptr().add(at + far);
                for (j, v) in row.iter_mut().enumerate() {
                    if j + 1 < NV {
                        *v = v.add(V::load(from.add(j * lanes)));
                    } else if HALF {
                        halves[m] = halves[m].add(V::Half::load_part(from.add(end), tail));
                    } else {
                        *v = v.add(V::load_part(from.add(end), tail));
                    }
                }
            }
        }
        let (low, high) = (V::splat(r.clamp.low), V::splat(r.clamp.high));
        for (m, row) in acc.iter().enumerate() {
            let to = out.add(place(m));
            for (j, v) in row.iter().enumerate() {
                if j + 1 < NV {
                    v.clamp(low, high).store(to.add(j * lanes));
                } else if HALF {
                    store(halves[m].clamp(low.lower(), high.lower()), to.add(end), tail);
                } else {
                    store(v.clamp(low, high), to.add(end), tail);
                }
            }
        }
    }
}

/// What [`tile`] adds up over the depth.
///
/// # Safety
/// See [`tile`].
#[inline(always)]
unsafe fn products<V: Vector, const MR: usize, const NV: usize, const HALF: bool>(
    r: &Rows<'_>,
    x: usize,
    acc: &mut [[V; NV]; MR],
    halves: &mut [V::Half; MR],
) {
    let (lanes, end) = (V::LANES, (NV - 1) * V::LANES);
    // SAFETY: `Rows::check` bounds sources to their last tap of the last pixel, and weights to `depth * NV * LANES`.
    unsafe {
        let mut b = r.weights.as_ptr();
        for s in r.sources {
            let first = s.data.as_ptr().add(s.at + x * s.pixel);
            for t in 0..s.taps {
                let mut a = first.add(t * s.tap);
                for _ in 0..s.len {
                    let mut columns = [V::splat(0.0); NV];
                    for (j, v) in columns.iter_mut().enumerate() {
                        if j + 1 < NV || !HALF {
                            *v = V::load(b.add(j * lanes));
                        }
                    }
                    let half = V::Half::load(b.add(end));
                    for (m, row) in acc.iter_mut().enumerate() {
                        let v = V::splat(*a.add(m * s.pixel));
                        for (j, (sum, column)) in row.iter_mut().zip(columns).enumerate() {
                            if j + 1 < NV || !HALF {
                                *sum = sum.fma(v, column);
                            } else {
                                halves[m] = halves[m].fma(v.lower(), half);
                            }
                        }
                    }
                    a = a.add(1);
                    b = b.add(NV * lanes);
                }
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
            if let Some(Strided { data, at, step }) = d.residual {
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
            Some(Strided { data, at, step }) => {
                let other = &data[at + far(f.residual_places, x, step)..][..n];
                for (((o, s), b), r) in out.iter_mut().zip(sums).zip(f.bias).zip(other) {
                    *o = limit(s + b + r);
                }
            }
        }
    }
}

/// As [`finish`]: plain Rust.
#[inline(always)]
pub(super) fn scale(s: &mut Scale<'_>) {
    let (c, Clamp { low, high }) = (s.scale.len(), s.clamp);
    for (to, from) in s.out.chunks_exact_mut(c).zip(s.from.chunks_exact(c)) {
        for (((to, x), s), t) in to.iter_mut().zip(from).zip(s.scale).zip(s.shift) {
            *to = limit(x * s + t, low, high);
        }
    }
}

/// Part of a register, or all of it.
///
/// # Safety
/// The extensions of `V` are there, and `n` values are behind `p`.
#[inline(always)]
unsafe fn load<V: Vector>(p: *const f32, n: usize) -> V {
    // SAFETY: the caller's promise.
    unsafe { if n < V::LANES { V::load_part(p, n) } else { V::load(p) } }
}

/// Part of a register, or all of it.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
unsafe fn store<V: Vector>(v: V, p: *mut f32, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { if n < V::LANES { v.store_part(p, n) } else { v.store(p) } }
}

/// `B' d` of one column, or of one row: of 4 pixels at the points 0, 1, -1 and infinity, of 5 at 2, too, of 6 at 3/2
/// and -3/2. Where they are 3 of 4 (4 of 6), all but the outer two are there twice: the value at -1 is zero and left
/// out, and some others lack a factor (`run::winograd`).
///
/// # Safety
/// The extensions of `V` are there.
#[inline(always)]
unsafe fn transform<V: Vector, const N: usize, const K: usize>(d: [V; N]) -> [V; K] {
    let mut all = [d[0]; K];
    // SAFETY: the caller's promise.
    unsafe {
        let outer = V::splat(-2.25);
        match (N, K) {
            (4, 4) => {
                all[0] = d[0].sub(d[2]);
                all[1] = d[1].add(d[2]);
                all[2] = d[2].sub(d[1]);
                all[3] = d[1].sub(d[3]);
            }
            (3, 3) => {
                all[0] = d[0].sub(d[1]);
                all[1] = d[1];
                all[2] = d[1].sub(d[2]);
            }
            (5, 5) => {
                let (step, minus) = (d[3].sub(d[1]), V::splat(-2.0));
                all[0] = step.fma(minus, d[2].sub(d[0]));
                all[1] = d[3].sub(d[2]).fma(minus, d[1]);
                all[2] = d[3].fma(V::splat(-3.0), d[2]).fma(V::splat(2.0), d[1]);
                all[3] = step;
                all[4] = d[4].sub(d[2]).fma(minus, step);
            }
            (6, 6) => {
                let (even, odd) = (d[4].fma(outer, d[2]), d[3].fma(outer, d[1]));
                let (next, step) = (d[4].sub(d[2]), d[3].sub(d[1]));
                all[0] = next.fma(outer, d[2].sub(d[0]));
                all[1] = even.add(odd);
                all[2] = even.sub(odd);
                all[3] = next.fma(V::splat(1.5), step);
                all[4] = next.fma(V::splat(-1.5), step);
                all[5] = d[5].sub(d[3]).fma(outer, step);
            }
            _ => {
                let step = d[2].sub(d[1]);
                all[0] = step.fma(outer, d[1].sub(d[0]));
                all[1] = d[2].fma(outer, d[1]);
                all[2] = step;
                all[3] = step;
                all[4] = d[3].sub(d[2]).fma(outer, step);
            }
        }
    }
    all
}

/// `A' m` of one column, or of one row.
///
/// # Safety
/// The extensions of `V` are there.
#[inline(always)]
unsafe fn sums<V: Vector, const N: usize, const M: usize>(m: [V; N]) -> [V; M] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut all = [m[0]; M];
        let (even, odd) = (m[1].add(m[2]), m[1].sub(m[2]));
        match N {
            4 => {
                all[0] = m[0].add(even);
                all[1] = odd.sub(m[3]);
            }
            5 => {
                all[0] = m[0].add(even).add(m[3]);
                all[1] = odd.fma(V::splat(2.0), m[3]);
                all[2] = even.fma(V::splat(4.0), m[3]).add(m[4]);
            }
            _ => {
                let (outer, far) = (m[3].add(m[4]), m[3].sub(m[4]));
                all[0] = m[0].add(even).add(outer);
                all[1] = odd.fma(V::splat(1.5), far);
                all[2] = even.fma(V::splat(2.25), outer);
                all[3] = odd.fma(V::splat(3.375), far).add(m[5]);
            }
        }
        all
    }
}

/// Tiles of pixels, transformed.
///
/// # Safety
/// The extensions of `V` are there, and `t` went through [`InputTiles::check`].
#[inline(always)]
pub(super) unsafe fn input_tiles<V: Vector>(t: &mut InputTiles<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match (t.tile, t.enlarged) {
            (Tile::Two, false) => spread::<V, 4, 4>(t, [0, 1, 2, 3]),
            (Tile::Two, true) => spread::<V, 3, 3>(t, [0, 1, 3]),
            (Tile::Three, _) => spread::<V, 5, 5>(t, [0, 1, 2, 3, 4]),
            (Tile::Four, false) => spread::<V, 6, 6>(t, [0, 1, 2, 3, 4, 5]),
            (Tile::Four, true) => spread::<V, 4, 5>(t, [0, 1, 3, 4, 5]),
        }
    }
}

/// Tiles of `N` x `N` pixels, and the `positions` of a side that come of them.
///
/// # Safety
/// See [`input_tiles`]; `N` is the tile's reach, or what is enlarged to it, and `positions` are below that reach.
#[inline(always)]
unsafe fn spread<V: Vector, const N: usize, const K: usize>(
    t: &mut InputTiles<'_>,
    positions: [usize; K],
) {
    for tile in 0..t.tiles {
        for o in (0..t.channels).step_by(V::LANES) {
            let n = (t.channels - o).min(V::LANES);
            // SAFETY: the caller's promise; `n` channels from `o` on are inside a pixel.
            unsafe {
                if n <= V::Half::LANES {
                    spread_some::<V::Half, N, K>(t, positions, tile, [o, n]);
                } else {
                    spread_some::<V, N, K>(t, positions, tile, [o, n]);
                }
            }
        }
    }
}

/// `n` channels of one tile, from `o` on.
///
/// # Safety
/// See [`spread`]; `n` is at most `V::LANES`, and the channels are inside a pixel.
#[inline(always)]
unsafe fn spread_some<V: Vector, const N: usize, const K: usize>(
    t: &mut InputTiles<'_>,
    positions: [usize; K],
    tile: usize,
    [o, n]: [usize; 2],
) {
    let (c, reach) = (t.channels, t.tile.reach());
    // SAFETY: `InputTiles::check` bounds the pixels of every tile, and every position that is written.
    unsafe {
        let out = t.out.as_mut_ptr();
        let from = t.data.as_ptr().add(t.at + tile * (N - 2) * c + o);
        let mut d = [[V::splat(0.0); N]; K];
        for x in 0..N {
            let mut pixels = [V::splat(0.0); N];
            for (y, v) in pixels.iter_mut().enumerate() {
                *v = load(from.add(y * t.row + x * c), n);
            }
            let column: [V; K] = transform(pixels);
            for (row, v) in d.iter_mut().zip(column) {
                row[x] = v;
            }
        }
        for (row, i) in d.into_iter().zip(positions) {
            let row: [V; K] = transform(row);
            for (v, j) in row.into_iter().zip(positions) {
                let p = i * reach + j;
                let to = t.places.get_unchecked(p) + tile * t.steps.get_unchecked(p) + o;
                store(v, out.add(to), n);
            }
        }
    }
}

/// Tiles of outputs, transformed back.
///
/// # Safety
/// The extensions of `V` are there, and `t` went through [`OutputTiles::check`].
#[inline(always)]
pub(super) unsafe fn output_tiles<V: Vector>(t: &mut OutputTiles<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match t.tile {
            Tile::Two => collect::<V, 4, 2>(t),
            Tile::Three => collect::<V, 5, 3>(t),
            Tile::Four => collect::<V, 6, 4>(t),
        }
    }
}

/// Tiles of `M` x `M` outputs, of `N` x `N` positions.
///
/// # Safety
/// See [`output_tiles`]; `N` and `M` are those of the tile.
#[inline(always)]
unsafe fn collect<V: Vector, const N: usize, const M: usize>(t: &mut OutputTiles<'_>) {
    let c = t.bias.len();
    for tile in 0..t.tiles {
        for o in (0..c).step_by(V::LANES) {
            let n = (c - o).min(V::LANES);
            // SAFETY: the caller's promise; `n` outputs from `o` on are inside a pixel.
            unsafe {
                if n <= V::Half::LANES {
                    collect_some::<V::Half, N, M>(t, tile, [o, n]);
                } else {
                    collect_some::<V, N, M>(t, tile, [o, n]);
                }
            }
        }
    }
}

/// `n` outputs of one tile, from `o` on.
///
/// # Safety
/// See [`collect`]; `n` is at most `V::LANES`, and the outputs are inside a pixel.
#[inline(always)]
unsafe fn collect_some<V: Vector, const N: usize, const M: usize>(
    t: &mut OutputTiles<'_>,
    tile: usize,
    [o, n]: [usize; 2],
) {
    let c = t.bias.len();
    // SAFETY: `OutputTiles::check` bounds the sums of every position, outputs and residuals.
    unsafe {
        let from = t.sums.as_ptr().add(t.at + tile * c + o);
        let mut rows = [[V::splat(0.0); N]; M];
        for x in 0..N {
            let mut m = [V::splat(0.0); N];
            for (y, v) in m.iter_mut().enumerate() {
                *v = load(from.add((N * y + x) * t.position), n);
            }
            let column: [V; M] = sums(m);
            for (row, v) in rows.iter_mut().zip(column) {
                row[x] = v;
            }
        }
        let bias = load::<V>(t.bias.as_ptr().add(o), n);
        let (low, high) = (V::splat(t.clamp.low), V::splat(t.clamp.high));
        for (y, row) in rows.into_iter().enumerate() {
            let outputs: [V; M] = sums(row);
            for (x, v) in outputs.into_iter().enumerate() {
                let mut v = v.add(bias);
                let far = (M * tile + x) * c + o;
                if let Some(Strided { data, at, step: row }) = t.residual {
                    v = v.add(load(data.as_ptr().add(at + y * row + far), n));
                }
                let to = t.out.as_mut_ptr().add(t.out_at + y * t.out_row + far);
                store(v.clamp(low, high), to, n);
            }
        }
    }
}
