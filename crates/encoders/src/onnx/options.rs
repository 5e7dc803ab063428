//! Settings of an export.

/// How weights are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightKind {
    /// f32.
    #[default]
    F32,
    /// Large tensors as f16 followed by a Cast to f32: half the file, arithmetic still in f32.
    F16,
    /// As f16, rounded to four bits of mantissa: an archive takes the file in two thirds of the bytes.
    Rounded,
}

/// Bits of f16's ten that [`WeightKind::Rounded`] leaves off.
const OFF: u32 = 6;

impl WeightKind {
    /// A large tensor's value as it is stored; f32 does not come here.
    pub(super) fn stored(self, value: f32) -> half::f16 {
        let whole = half::f16::from_f32(value);
        // What is not finite must stay so, to be seen.
        if self != Self::Rounded || !whole.is_finite() {
            return whole;
        }
        // To the nearest, halves to even; a carry continues into the exponent.
        let bits = whole.to_bits();
        let up = (1 << (OFF - 1)) - 1 + (bits >> OFF & 1);
        half::f16::from_bits((bits + up) & !((1 << OFF) - 1))
    }

    /// f16 or f32.
    #[must_use]
    pub fn halved(half: bool) -> Self {
        if half { Self::F16 } else { Self::F32 }
    }
}

/// Settings of an export.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// How weights are stored.
    pub weights: WeightKind,
    /// Text pairs written into the file's metadata.
    pub metadata: Vec<(String, String)>,
}

impl ExportOptions {
    pub(super) fn pairs(&self) -> Vec<(&str, &str)> {
        self.metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nearest number of five significant bits, in f64.
    fn nearest(value: f64) -> f64 {
        let unit = 2f64.powf(value.abs().log2().floor() - 4.0);
        (value / unit).round_ties_even() * unit
    }

    #[test]
    fn rounded_weights_are_the_nearest_of_four_bits() {
        for k in 1..4000_u16 {
            // From 0.001 to 30, of both signs, as f16 has them.
            let v = half::f16::from_f32(1.0026_f32.powi(i32::from(k)) * 1e-3);
            for v in [v, -v] {
                let found = WeightKind::Rounded.stored(v.to_f32());
                assert_eq!(f64::from(found), nearest(f64::from(v)), "{v}");
                assert_eq!(WeightKind::F16.stored(v.to_f32()), v);
            }
        }
        assert_eq!(WeightKind::Rounded.stored(0.0), half::f16::ZERO);
        // A broken weight is not made whole, and what rounds beyond f16 is not finite.
        for v in [f32::NAN, -f32::NAN, f32::INFINITY, 65_504.0, -65_504.0, 1e9] {
            assert!(!WeightKind::Rounded.stored(v).is_finite(), "{v}");
        }
    }
}
