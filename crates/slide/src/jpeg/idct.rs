//! libjpeg's accurate integer inverse DCT ("islow", Loeffler-Ligtenberg-Moschytz, 13-bit constants),
//! written over rows of eight so that the compiler vectorises it.

type Row = [i32; 8];

const F_0_298: i32 = 2446;
const F_0_390: i32 = 3196;
const F_0_541: i32 = 4433;
const F_0_765: i32 = 6270;
const F_0_899: i32 = 7373;
const F_1_175: i32 = 9633;
const F_1_501: i32 = 12299;
const F_1_847: i32 = 15137;
const F_1_961: i32 = 16069;
const F_2_053: i32 = 16819;
const F_2_562: i32 = 20995;
const F_3_072: i32 = 25172;

/// One pass over eight columns at once; wrapping, as hostile coefficients may exceed every range.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "one column of every row at a time")]
fn pass<const SHIFT: u32>(m: &mut [Row; 8]) {
    for c in 0..8 {
        let mul = i32::wrapping_mul;
        let (a, b) = (m[2][c], m[6][c]);
        let z1 = mul(a.wrapping_add(b), F_0_541);
        let t2 = z1.wrapping_sub(mul(b, F_1_847));
        let t3 = z1.wrapping_add(mul(a, F_0_765));
        let (a, b) = (m[0][c], m[4][c]);
        let t0 = a.wrapping_add(b) << 13;
        let t1 = a.wrapping_sub(b) << 13;
        let (e0, e3) = (t0.wrapping_add(t3), t0.wrapping_sub(t3));
        let (e1, e2) = (t1.wrapping_add(t2), t1.wrapping_sub(t2));

        let (o0, o1, o2, o3) = (m[7][c], m[5][c], m[3][c], m[1][c]);
        let z1 = mul(o0.wrapping_add(o3), -F_0_899);
        let z2 = mul(o1.wrapping_add(o2), -F_2_562);
        let z3 = o0.wrapping_add(o2);
        let z4 = o1.wrapping_add(o3);
        let z5 = mul(z3.wrapping_add(z4), F_1_175);
        let z3 = mul(z3, -F_1_961).wrapping_add(z5);
        let z4 = mul(z4, -F_0_390).wrapping_add(z5);
        let o0 = mul(o0, F_0_298).wrapping_add(z1).wrapping_add(z3);
        let o1 = mul(o1, F_2_053).wrapping_add(z2).wrapping_add(z4);
        let o2 = mul(o2, F_3_072).wrapping_add(z2).wrapping_add(z3);
        let o3 = mul(o3, F_1_501).wrapping_add(z1).wrapping_add(z4);

        let half = 1 << (SHIFT - 1);
        let down = |v: i32| v.wrapping_add(half) >> SHIFT;
        m[0][c] = down(e0.wrapping_add(o3));
        m[7][c] = down(e0.wrapping_sub(o3));
        m[1][c] = down(e1.wrapping_add(o2));
        m[6][c] = down(e1.wrapping_sub(o2));
        m[2][c] = down(e2.wrapping_add(o1));
        m[5][c] = down(e2.wrapping_sub(o1));
        m[3][c] = down(e3.wrapping_add(o0));
        m[4][c] = down(e3.wrapping_sub(o0));
    }
}

#[inline(always)]
fn transposed(m: &[Row; 8]) -> [Row; 8] {
    let mut t = [[0; 8]; 8];
    for r in 0..8 {
        for c in 0..8 {
            t[c][r] = m[r][c];
        }
    }
    t
}

#[inline(always)]
fn body(coefficients: &[i32; 64], out: &mut [u8], stride: usize) {
    let mut m = [[0; 8]; 8];
    for (row, c) in m.iter_mut().zip(coefficients.as_chunks::<8>().0) {
        *row = *c;
    }
    pass::<11>(&mut m);
    let mut m = transposed(&m);
    pass::<18>(&mut m);
    let m = transposed(&m);
    for (r, row) in m.iter().enumerate() {
        let line = &mut out[r * stride..r * stride + 8];
        for (o, v) in line.iter_mut().zip(row) {
            *o = v.wrapping_add(128).clamp(0, 255) as u8;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn body_avx2(coefficients: &[i32; 64], out: &mut [u8], stride: usize) {
    body(coefficients, out, stride);
}

/// Writes one block of 8 x 8 samples.
pub(super) fn block(coefficients: &[i32; 64], out: &mut [u8], stride: usize) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { body_avx2(coefficients, out, stride) };
    }
    body(coefficients, out, stride);
}

/// The same for a block with a DC coefficient alone.
pub(super) fn flat(dc: i32, out: &mut [u8], stride: usize) {
    let v = (dc.wrapping_mul(4).wrapping_add(16) >> 5).wrapping_add(128).clamp(0, 255) as u8;
    for r in 0..8 {
        out[r * stride..r * stride + 8].fill(v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn near_the_real_transform_and_equal_on_flat_blocks() {
        let mut seed = 1u32;
        for _ in 0..200 {
            let mut c = [0i32; 64];
            for v in &mut c {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *v = (seed >> 24) as i32 - 128;
            }
            let mut got = [0u8; 64];
            block(&c, &mut got, 8);
            for y in 0..8 {
                for x in 0..8 {
                    let mut sum = 0.0;
                    for v in 0..8 {
                        for u in 0..8 {
                            let s = |k: usize| if k == 0 { 0.5f64.sqrt() } else { 1.0 };
                            let w = |p: usize, k: usize| {
                                ((2 * p + 1) as f64 * k as f64 * PI / 16.0).cos()
                            };
                            sum += s(u) * s(v) * f64::from(c[8 * v + u]) * w(x, u) * w(y, v) / 4.0;
                        }
                    }
                    let want = (sum + 128.0).clamp(0.0, 255.0);
                    assert!(
                        (f64::from(got[8 * y + x]) - want).abs() < 0.6,
                        "{want} {}",
                        got[8 * y + x]
                    );
                }
            }
        }
        for dc in -1100..1100 {
            let mut c = [0; 64];
            c[0] = dc;
            let (mut a, mut b) = ([0; 64], [1; 64]);
            block(&c, &mut a, 8);
            flat(dc, &mut b, 8);
            assert_eq!(a, b);
        }
    }
}
