//! Otsu's threshold, equal to `skimage.filters.threshold_otsu` on the same 8-bit image.

/// The grey value `t` that separates best: pixels `<= t` are the dark class. `None` when the image
/// has fewer than two values.
///
/// With `p(i)` the histogram, the maximised variance between classes is
/// `w0(t) w1(t) (m0(t) - m1(t))^2`; the first maximum wins. Integer sums up to the last step, so
/// that equal histograms give equal thresholds everywhere.
#[must_use]
pub fn threshold(histogram: &[u64; 256]) -> Option<u8> {
    let total: u64 = histogram.iter().sum();
    let sum: u64 = histogram.iter().zip(0u64..).map(|(n, v)| n * v).sum();
    let used = histogram.iter().filter(|n| **n > 0).count();
    if used < 2 {
        return None;
    }
    let (mut w0, mut s0) = (0u64, 0u64);
    let (mut best, mut at) = (-1.0, 0u8);
    for t in 0..255u8 {
        w0 += histogram[usize::from(t)];
        s0 += histogram[usize::from(t)] * u64::from(t);
        let w1 = total - w0;
        if w0 == 0 || w1 == 0 {
            continue;
        }
        let (a, b) = (w0 as f64, w1 as f64);
        let distance = s0 as f64 / a - (sum - s0) as f64 / b;
        let between = a * b * distance * distance;
        if between > best {
            (best, at) = (between, t);
        }
    }
    Some(at)
}

/// Rec. 601 luma, rounded, as Pillow, OpenCV and scikit-image's 8-bit conversion agree on it:
/// `(299 R + 587 G + 114 B + 500) / 1000`.
#[must_use]
pub const fn grey(rgb: [u8; 3]) -> u8 {
    let [r, g, b] = rgb;
    ((299 * r as u32 + 587 * g as u32 + 114 * b as u32 + 500) / 1000) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_values_split_at_the_lower() {
        let mut h = [0; 256];
        h[10] = 5;
        h[200] = 7;
        assert_eq!(threshold(&h), Some(10));
    }

    #[test]
    fn one_value_has_no_threshold() {
        let mut h = [0; 256];
        assert_eq!(threshold(&h), None);
        h[255] = 9;
        assert_eq!(threshold(&h), None);
    }
}
