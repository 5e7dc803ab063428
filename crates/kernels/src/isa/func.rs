//! Functions of single values, written so that the compiler puts them into registers: no branches, no calls.

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Func {
    Sigmoid,
    Silu,
    /// `clamp(alpha * x + beta, 0, 1)`.
    HardSigmoid(f32, f32),
    HardSwish,
    Tanh,
    /// Exact: `x * (1 + erf(x / sqrt 2)) / 2`.
    Gelu,
    /// `x` where positive, else `x` times the slope.
    Leaky(f32),
}

/// e^x within 2 units of the last place; 0 below -87.3 and infinity above 88.7 as f32 has them, NaN stays.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to a whole number.
    let limited = if x < -87.5 { -87.5 } else { x };
    let limited = if limited > 88.8 { 88.8 } else { limited };
    let shifted = limited * std::f32::consts::LOG2_E + MAGIC;
    let n = shifted - MAGIC;
    // ln 2 in two parts: the first has few digits, so that `n` times it is exact.
    let r = limited - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let p = p * r * r + r + 1.0;
    // 2^n in two factors, as n + 127 may be outside an exponent.
    // Whole numbers follow one another in the bits, too; a conversion would not be put into registers.
    let whole = (shifted.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32);
    let half = whole >> 1;
    let power = |e: i32| f32::from_bits(((e + 127) as u32) << 23);
    p * power(half) * power(whole - half)
}

#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The error function: a series in x^2 for small arguments, and Abramowitz and Stegun 7.1.26 beyond. Tests hold GELU
/// within 2e-6.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    let a = x.abs();
    let s = a * a;
    // Below 0.9: a series in x^2.
    let t = -6.0e-6_f32;
    let t = t * s + 1.1e-4;
    let t = t * s - 8.4e-4;
    let t = t * s + 5.2229e-3;
    let t = t * s - 2.686_61e-2;
    let t = t * s + 1.128_379_2e-1;
    let t = t * s - 3.761_263_9e-1;
    // The first coefficient is 2 over the root of pi.
    let small = a * (t * s + std::f32::consts::FRAC_2_SQRT_PI);
    // Beyond.
    let u = 1.0 / (1.0 + 0.327_591_1 * a);
    let q = ((((1.061_405_4 * u - 1.453_152) * u + 1.421_413_7) * u - 0.284_496_74) * u
        + 0.254_829_6)
        * u;
    let large = 1.0 - q * exp(-s);
    let v = if a < 0.9 { small } else { large };
    v.copysign(x)
}

/// Applies `f` to every value.
#[inline(always)]
pub(super) fn map(f: Func, values: &mut [f32]) {
    match f {
        Func::Sigmoid => values.iter_mut().for_each(|v| *v = sigmoid(*v)),
        Func::Silu => values.iter_mut().for_each(|v| *v *= sigmoid(*v)),
        Func::HardSigmoid(a, b) => {
            values.iter_mut().for_each(|v| *v = limit(a * *v + b, 0.0, 1.0));
        }
        Func::HardSwish => {
            values.iter_mut().for_each(|v| *v *= limit(*v * (1.0 / 6.0) + 0.5, 0.0, 1.0));
        }
        Func::Tanh => values.iter_mut().for_each(|v| {
            // tanh of small values by its series: the difference below would lose their digits.
            let s = *v * *v;
            let series = *v * (1.0 - s * (1.0 / 3.0 - s * (2.0 / 15.0)));
            let far = 1.0 - 2.0 / (1.0 + exp(2.0 * *v));
            *v = if v.abs() < 0.05 { series } else { far };
        }),
        Func::Gelu => {
            values
                .iter_mut()
                .for_each(|v| *v *= 0.5 + 0.5 * erf(*v * std::f32::consts::FRAC_1_SQRT_2));
        }
        Func::Leaky(slope) => {
            values.iter_mut().for_each(|v| *v = if *v < 0.0 { *v * slope } else { *v });
        }
    }
}

/// Between two limits; NaN stays NaN.
#[inline(always)]
pub(crate) fn limit(v: f32, low: f32, high: f32) -> f32 {
    let v = if v < low { low } else { v };
    if v > high { high } else { v }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exp() {
        for i in -8_800..8_870 {
            let x = i as f32 / 100.0;
            let (got, want) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got - want).abs() <= 3e-7 * want + 1e-37, "{x}: {got} {want}");
        }
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn values_that_are_no_number_stay_so_and_others_do_not_overflow() {
        for bits in (0x7f80_0001..=0x7fff_ffff_u32).step_by(4099) {
            assert!(exp(f32::from_bits(bits)).is_nan(), "{bits:x}");
            assert!(exp(-f32::from_bits(bits)).is_nan(), "{bits:x}");
        }
        for bits in (0..=0x7f80_0000_u32).step_by(4099) {
            let x = f32::from_bits(bits);
            assert!(exp(x) >= 1.0 && exp(-x) <= 1.0 && exp(-x) >= 0.0, "{x}");
        }
    }

    #[test]
    fn functions_equal_their_definitions() {
        // erf by its series in f64.
        let erf64 = |x: f64| {
            let (mut term, mut sum) = (x, x);
            for n in 1..120 {
                term *= -x * x / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            sum * std::f64::consts::FRAC_2_SQRT_PI
        };
        for i in -500..=500 {
            let x = i as f32 / 100.0;
            let wide = f64::from(x);
            let one = |f| {
                let mut v = [x];
                map(f, &mut v);
                f64::from(v[0])
            };
            let s = 1.0 / (1.0 + (-wide).exp());
            assert!((one(Func::Sigmoid) - s).abs() < 2e-7, "{x}");
            assert!((one(Func::Silu) - wide * s).abs() < 1e-6, "{x}");
            assert!((one(Func::Tanh) - wide.tanh()).abs() < 3e-7, "{x}");
            let gelu = wide * 0.5 * (1.0 + erf64(wide * std::f64::consts::FRAC_1_SQRT_2));
            assert!((one(Func::Gelu) - gelu).abs() < 2e-6, "{x}: {} {gelu}", one(Func::Gelu));
            let hard = (wide / 6.0 + 0.5).clamp(0.0, 1.0);
            assert!((one(Func::HardSwish) - wide * hard).abs() < 1e-6, "{x}");
        }
        let mut v = [f32::NAN];
        map(Func::HardSwish, &mut v);
        assert!(v[0].is_nan());
    }
}
