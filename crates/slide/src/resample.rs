//! Area-correct resampling whose result does not depend on how a rectangle is cut.
//!
//! Output pixel `i` of an axis covers the source interval `[i r, (i + 1) r)`, with
//! `r = target um/px / source um/px`. For `r >= 1` its value is the exact area mean over that
//! interval (box filter, weights by overlap); for `r < 1` it is linear interpolation at the
//! interval's centre (triangle of one source pixel half width). Both are the identity at `r = 1`.
//!
//! Weights depend on `i` and `r` alone, are fixed-point integers that sum to exactly one, and every
//! output pixel is computed alone: adjacent rectangles therefore equal their union bit for bit.
//! The mean is over what is inside the slide, linear interpolation repeats the edge pixel; pixels
//! wholly outside are background.

/// Fixed-point one.
const ONE: i32 = 1 << 14;
/// Bits kept between the vertical and the horizontal pass (255 << 7 fits in 15 bits).
const MID_BITS: u32 = 7;

/// How two resolutions count as equal (relative).
pub(crate) const SAME: f64 = 1e-6;

/// One axis of a resampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    /// Source pixels per output pixel; exactly 1 when both are equal within [`SAME`].
    pub(crate) ratio: f64,
    /// Source extent in pixels.
    pub(crate) extent: u64,
}

/// A source pixel and its share of an output pixel.
struct Tap {
    at: i64,
    weight: f64,
}

/// Taps of a run of output pixels.
pub(crate) struct Taps {
    /// First source pixel any tap needs.
    pub(crate) start: i64,
    /// Source pixels needed from `start`.
    pub(crate) len: usize,
    /// Per output pixel: first tap relative to `start`, first weight, number of taps (0: outside).
    spans: Vec<(u32, u32, u32)>,
    weights: Vec<i32>,
}

impl Axis {
    pub(crate) fn new(source_mpp: f64, target_mpp: f64, extent: u64) -> Self {
        let r = target_mpp / source_mpp;
        Self { ratio: if (r - 1.0).abs() <= SAME { 1.0 } else { r }, extent }
    }

    /// Number of output pixels that touch the source extent.
    pub(crate) fn outputs(&self) -> u64 {
        let n = self.extent as f64 / self.ratio;
        ((n - SAME).ceil().max(0.0)) as u64
    }

    /// The taps for output pixels `first .. first + n`.
    pub(crate) fn taps(&self, first: i64, n: usize) -> Taps {
        let (mut lo, mut hi) = (i64::MAX, i64::MIN);
        let mut spans = Vec::with_capacity(n);
        let mut weights = Vec::new();
        let mut starts = Vec::with_capacity(n);
        let outputs = self.outputs() as i64;
        let mut real: Vec<Tap> = Vec::new();
        for k in 0..n {
            let i = first.saturating_add(k as i64);
            if i < 0 || i >= outputs {
                spans.push((0, 0, 0));
                starts.push(0);
                continue;
            }
            self.weigh(i, &mut real);
            let first_weight = weights.len() as u32;
            quantise(&real, &mut weights);
            let (a, b) = (real[0].at, real[real.len() - 1].at);
            lo = lo.min(a);
            hi = hi.max(b);
            spans.push((0, first_weight, real.len() as u32));
            starts.push(a);
        }
        if hi < lo {
            return Taps { start: 0, len: 0, spans, weights };
        }
        for (span, start) in spans.iter_mut().zip(starts) {
            if span.2 > 0 {
                span.0 = (start - lo) as u32;
            }
        }
        Taps { start: lo, len: (hi - lo + 1) as usize, spans, weights }
    }

    /// Real weights of output pixel `i` over contiguous source pixels, clamped to the extent.
    fn weigh(&self, i: i64, out: &mut Vec<Tap>) {
        out.clear();
        let last = self.extent as i64 - 1;
        let r = self.ratio;
        let (a, b) = (i as f64 * r, (i + 1) as f64 * r);
        let mut add = |s: i64, w: f64| {
            let s = s.clamp(0, last);
            match out.last_mut() {
                Some(tap) if tap.at == s => tap.weight += w,
                _ => out.push(Tap { at: s, weight: w }),
            }
        };
        if r >= 1.0 {
            let mut s = a.floor() as i64;
            while (s as f64) < b {
                let w = b.min((s + 1) as f64) - a.max(s as f64);
                // A sliver of rounding error is not an overlap; beyond the edge there is nothing.
                if w > SAME && (0..=last).contains(&s) {
                    add(s, w);
                }
                s += 1;
            }
        } else {
            let c = f64::midpoint(a, b) - 0.5;
            let s = c.floor();
            let f = c - s;
            add(s as i64, 1.0 - f);
            if f > SAME {
                add(s as i64 + 1, f);
            }
        }
    }

    pub(crate) fn is_identity(&self) -> bool {
        self.ratio == 1.0
    }
}

/// Rounds the cumulated weights to fixed point, so that they sum to exactly [`ONE`] and no tap
/// carries the rounding of all others.
fn quantise(real: &[Tap], out: &mut Vec<i32>) {
    let total: f64 = real.iter().map(|t| t.weight).sum();
    let (mut sum, mut before) = (0.0, 0);
    for (k, tap) in real.iter().enumerate() {
        sum += tap.weight;
        let here =
            if k + 1 == real.len() { ONE } else { (sum / total * f64::from(ONE)).round() as i32 };
        out.push(here - before);
        before = here;
    }
}

/// Taps of an output pixel that are computed together; a reduction by less than three has no more.
const FEW: usize = 4;

/// An output pixel of at most [`FEW`] taps.
#[cfg(target_arch = "x86_64")]
struct Few {
    /// The first of [`FEW`] source pixels, relative to the start.
    at: usize,
    /// Their weights; those that are not taps have zero.
    weights: [i32; FEW],
    outside: bool,
}

#[cfg(target_arch = "x86_64")]
impl Taps {
    /// All pixels, where each has few taps.
    fn few(&self) -> Option<Vec<Few>> {
        let last = self.len.checked_sub(FEW)?;
        let pixel = |&(start, first, n): &(u32, u32, u32)| {
            let (start, first, n) = (start as usize, first as usize, n as usize);
            let at = start.min(last);
            let mut weights = [0; FEW];
            let taps = weights.get_mut(start - at..)?.get_mut(..n)?;
            taps.copy_from_slice(&self.weights[first..][..n]);
            Some(Few { at, weights, outside: n == 0 })
        };
        self.spans.iter().map(pixel).collect()
    }
}

/// Applies the taps to an interleaved RGB source of `tx.len x ty.len` pixels that starts at
/// (`tx.start`, `ty.start`); gives `tx.spans.len() x ty.spans.len()` pixels.
pub(crate) fn apply(source: &[u8], tx: &Taps, ty: &Taps, background: u8) -> Vec<u8> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe {
            match (tx.few(), ty.few()) {
                (Some(x), Some(y)) => few_avx2(source, &x, &y, tx.len, background),
                _ => apply_avx2(source, tx, ty, background),
            }
        };
    }
    body(source, tx, ty, background)
}

/// The same integer arithmetic, compiled for wider registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn apply_avx2(source: &[u8], tx: &Taps, ty: &Taps, background: u8) -> Vec<u8> {
    body(source, tx, ty, background)
}

/// The same, faster, for few taps a pixel. `width`: source pixels of a row.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn few_avx2(source: &[u8], tx: &[Few], ty: &[Few], width: usize, background: u8) -> Vec<u8> {
    let stride = 3 * width;
    let mut out = vec![background; 3 * tx.len() * ty.len()];
    let mut mid = vec![0i16; stride];
    let lines = out.chunks_exact_mut((3 * tx.len()).max(1)).zip(ty);
    for (line, y) in lines.filter(|(_, y)| !y.outside) {
        let rows = std::array::from_fn(|k| &source[(y.at + k) * stride..][..stride]);
        vertical_avx2(rows, y.weights, &mut mid);
        horizontal_avx2(&mid, tx, line);
    }
    out
}

/// Two weights for an instruction that adds the products of neighbouring words.
#[cfg(target_arch = "x86_64")]
fn pair(low: i32, high: i32) -> i32 {
    high << 16 | low
}

/// A row of sums from as many rows of source pixels: the products of two taps are added by one instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn vertical_avx2(rows: [&[u8]; FEW], weights: [i32; FEW], mid: &mut [i16]) {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm_unpackhi_epi8, _mm_unpacklo_epi8, _mm256_add_epi32,
        _mm256_cvtepu8_epi16, _mm256_madd_epi16, _mm256_packs_epi32, _mm256_permute4x64_epi64,
        _mm256_set1_epi32, _mm256_srai_epi32, _mm256_storeu_si256,
    };
    const SHIFT: u32 = 14 - MID_BITS;
    let half = 1 << (SHIFT - 1);
    let (first, second) = (pair(weights[0], weights[1]), pair(weights[2], weights[3]));
    let (first, second) = (_mm256_set1_epi32(first), _mm256_set1_epi32(second));
    // SAFETY: the load reads these sixteen bytes, and needs no alignment.
    let load = |bytes: &[u8; 16]| unsafe { _mm_loadu_si128(bytes.as_ptr().cast::<__m128i>()) };
    let sums = |ab, cd| {
        let ab = _mm256_madd_epi16(_mm256_cvtepu8_epi16(ab), first);
        let cd = _mm256_madd_epi16(_mm256_cvtepu8_epi16(cd), second);
        let sum = _mm256_add_epi32(_mm256_add_epi32(ab, cd), _mm256_set1_epi32(half));
        _mm256_srai_epi32::<{ SHIFT as i32 }>(sum)
    };
    let [a, b, c, d] = rows.map(|row| row.as_chunks::<16>());
    let (whole, rest) = mid.as_chunks_mut::<16>();
    for ((((m, a), b), c), d) in whole.iter_mut().zip(a.0).zip(b.0).zip(c.0).zip(d.0) {
        let (a, b, c, d) = (load(a), load(b), load(c), load(d));
        let low = sums(_mm_unpacklo_epi8(a, b), _mm_unpacklo_epi8(c, d));
        let high = sums(_mm_unpackhi_epi8(a, b), _mm_unpackhi_epi8(c, d));
        // The packed words come in fours, of which the two in the middle change places.
        let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low, high));
        // SAFETY: the store writes these sixteen words, and needs no alignment.
        unsafe { _mm256_storeu_si256(m.as_mut_ptr().cast::<__m256i>(), words) };
    }
    for (k, m) in rest.iter_mut().enumerate() {
        let taps = [a.1[k], b.1[k], c.1[k], d.1[k]];
        let sum: i32 = weights.iter().zip(taps).map(|(w, p)| w * i32::from(p)).sum();
        *m = ((sum + half) >> SHIFT) as i16;
    }
}

/// A row of output pixels from a row of sums.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn horizontal_avx2(mid: &[i16], tx: &[Few], line: &mut [u8]) {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_madd_epi16, _mm_set1_epi32,
        _mm_setr_epi8, _mm_shuffle_epi8, _mm_srli_epi32,
    };
    let half = _mm_set1_epi32(1 << (13 + MID_BITS));
    // Of the words from a tap on: 0 and 3, 1 and 4, 2 and 5, the colours of two taps. Of the words from its fifth on:
    // 2 and 5, 3 and 6, 4 and 7, the colours of the two others.
    let former = _mm_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1);
    let latter = _mm_setr_epi8(4, 5, 10, 11, 6, 7, 12, 13, 8, 9, 14, 15, -1, -1, -1, -1);
    let bytes = _mm_setr_epi8(0, 4, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    // SAFETY: eight words are sixteen bytes, and the load needs no alignment.
    let load = |words: &[i16; 8]| unsafe { _mm_loadu_si128(words.as_ptr().cast::<__m128i>()) };
    for (pixel, x) in line.as_chunks_mut::<3>().0.iter_mut().zip(tx) {
        let from = &mid[3 * x.at..];
        let (Some(first), Some(last)) = (from.first_chunk(), from[4..].first_chunk()) else {
            unreachable!("four pixels of a row are twelve words")
        };
        let [a, b, c, d] = x.weights;
        let sum = _mm_add_epi32(
            _mm_madd_epi16(_mm_shuffle_epi8(load(first), former), _mm_set1_epi32(pair(a, b))),
            _mm_madd_epi16(_mm_shuffle_epi8(load(last), latter), _mm_set1_epi32(pair(c, d))),
        );
        // No colour is above 255: weights are not negative and sum to one.
        let sum = _mm_srli_epi32::<{ 14 + MID_BITS as i32 }>(_mm_add_epi32(sum, half));
        if !x.outside {
            let [r, g, b, _] = _mm_cvtsi128_si32(_mm_shuffle_epi8(sum, bytes)).to_le_bytes();
            *pixel = [r, g, b];
        }
    }
}

#[inline(always)]
fn body(source: &[u8], tx: &Taps, ty: &Taps, background: u8) -> Vec<u8> {
    let (w, h) = (tx.spans.len(), ty.spans.len());
    let stride = 3 * tx.len;
    let mut out = vec![background; 3 * w * h];
    if tx.len == 0 || ty.len == 0 {
        return out;
    }
    let half = 1 << (13 - MID_BITS);
    let mut acc = vec![0i32; stride];
    let mut mid = vec![0u16; stride];
    for (j, &(y0, wy, ny)) in ty.spans.iter().enumerate() {
        if ny == 0 {
            continue;
        }
        acc.fill(half);
        for k in 0..ny as usize {
            let weight = ty.weights[wy as usize + k];
            let row = &source[(y0 as usize + k) * stride..][..stride];
            for (a, &s) in acc.iter_mut().zip(row) {
                *a += weight * i32::from(s);
            }
        }
        for (m, &a) in mid.iter_mut().zip(&acc) {
            *m = (a >> (14 - MID_BITS)) as u16;
        }
        let line = &mut out[3 * w * j..][..3 * w];
        horizontal(&mid, tx, line);
    }
    out
}

#[inline(always)]
fn horizontal(mid: &[u16], tx: &Taps, line: &mut [u8]) {
    let half = 1i32 << (13 + MID_BITS);
    for (pixel, &(x0, wx, nx)) in line.as_chunks_mut::<3>().0.iter_mut().zip(&tx.spans) {
        if nx == 0 {
            continue;
        }
        let weights = &tx.weights[wx as usize..][..nx as usize];
        let (taps, _) = mid[3 * x0 as usize..][..3 * nx as usize].as_chunks::<3>();
        let mut sum = [half; 3];
        for (&weight, tap) in weights.iter().zip(taps) {
            for c in 0..3 {
                sum[c] += weight * i32::from(tap[c]);
            }
        }
        for c in 0..3 {
            pixel[c] = (sum[c] >> (14 + MID_BITS)).clamp(0, 255) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracle(source: &[u8], extent: (usize, usize), r: f64, x: usize, y: usize, c: usize) -> f64 {
        // Plain double loop over the overlap of intervals.
        let (mut sum, mut area) = (0.0, 0.0);
        for sy in 0..extent.1 {
            for sx in 0..extent.0 {
                let ox = ((x + 1) as f64 * r).min(sx as f64 + 1.0) - (x as f64 * r).max(sx as f64);
                let oy = ((y + 1) as f64 * r).min(sy as f64 + 1.0) - (y as f64 * r).max(sy as f64);
                if ox > 0.0 && oy > 0.0 {
                    sum += ox * oy * f64::from(source[3 * (sy * extent.0 + sx) + c]);
                    area += ox * oy;
                }
            }
        }
        sum / area
    }

    fn noise(n: usize) -> Vec<u8> {
        let mut s = 0x2545_F491u32;
        std::iter::repeat_with(|| {
            s ^= s << 13;
            s ^= s >> 17;
            s ^= s << 5;
            s as u8
        })
        .take(n)
        .collect()
    }

    #[test]
    fn shrinking_is_the_area_mean() {
        let (w, h) = (23usize, 17usize);
        let source = noise(3 * w * h);
        for r in [1.018, 1.5, 2.0, 3.7] {
            let (ax, ay) =
                (Axis { ratio: r, extent: w as u64 }, Axis { ratio: r, extent: h as u64 });
            let (ow, oh) = (ax.outputs() as usize, ay.outputs() as usize);
            let (tx, ty) = (ax.taps(0, ow), ay.taps(0, oh));
            let out = apply(&source, &tx, &ty, 255);
            for y in 0..oh {
                for x in 0..ow {
                    for c in 0..3 {
                        let want = oracle(&source, (w, h), r, x, y, c);
                        let got = f64::from(out[3 * (y * ow + x) + c]);
                        assert!((got - want).abs() <= 0.56, "r {r} ({x},{y}) {got} {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn wide_registers_give_the_same_bytes() {
        let cases = [(0.5, -3, 40), (0.501, 0, 60), (1.0, 0, 30), (1.0179, -2, 125), (1.9, 5, 60)];
        for (ratio, first, n) in
            cases.into_iter().chain([(2.0, 0, 60), (2.036, -1, 61), (2.9, 0, 42), (7.3, 0, 17)])
        {
            let axis = Axis { ratio, extent: 120 };
            let (tx, ty) = (axis.taps(first, n), axis.taps(first + 1, n));
            let source = noise(3 * tx.len * ty.len);
            for source in [source.clone(), vec![255; source.len()]] {
                assert!(apply(&source, &tx, &ty, 9) == body(&source, &tx, &ty, 9), "{ratio}");
            }
        }
        for len in 1..6 {
            let taps = Axis { ratio: 1.0179, extent: len }.taps(0, 3);
            let source = noise(3 * taps.len * taps.len);
            assert!(apply(&source, &taps, &taps, 9) == body(&source, &taps, &taps, 9), "{len}");
        }
    }

    #[test]
    fn weights_sum_to_one() {
        for r in [0.5, 0.501, 1.0179, 4.0, 33.3] {
            let t = Axis { ratio: r, extent: 5000 }.taps(0, 100);
            for &(_, w, n) in &t.spans {
                assert_eq!(t.weights[w as usize..][..n as usize].iter().sum::<i32>(), ONE);
            }
        }
    }

    #[test]
    fn a_constant_stays_constant() {
        for r in [0.5, 0.501, 1.0, 1.0179, 2.0, 7.3] {
            let a = Axis { ratio: r, extent: 64 };
            let t = a.taps(0, a.outputs() as usize);
            for v in [0u8, 1, 127, 254, 255] {
                let source = vec![v; 3 * t.len * t.len];
                assert!(apply(&source, &t, &t, 9).iter().all(|&p| p == v), "r {r} v {v}");
            }
        }
    }
}
