//! Values that begin at an address that is whole of a register, and of a line of the cache.
//!
//! Large memory of the allocator begins 16 bytes behind such an address, so that every load and store of a 64-byte
//! register there would touch two lines.

use std::ops::{Deref, DerefMut};

/// Bytes of the widest register.
const BYTES: usize = 64;
/// Values that are left before the first one, at most.
const SLACK: usize = BYTES / size_of::<f32>() - 1;

/// A buffer of f32. It has no `Clone`, whose memory would begin elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    values: Vec<f32>,
    first: usize,
    len: usize,
}

impl Aligned {
    pub(crate) fn zeros(len: usize) -> Self {
        let values = vec![0.0; len + SLACK];
        let first = values.as_ptr().align_offset(BYTES).min(SLACK);
        Self { values, first, len }
    }

    pub(crate) fn copied(values: &[f32]) -> Self {
        let mut copy = Self::zeros(values.len());
        copy.copy_from_slice(values);
        copy
    }

    /// At least so long; what is in it does not matter.
    pub(crate) fn grow(&mut self, len: usize) {
        if self.len < len {
            // The old memory goes before the new one comes.
            *self = Self::default();
            *self = Self::zeros(len);
        }
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[self.first..self.first + self.len]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.first..self.first + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_begin_with_a_line_and_stay_there() {
        for n in [0, 1, 15, 16, 1000, 100_000] {
            let mut a = Aligned::copied(&vec![1.5; n]);
            assert_eq!(a.len(), n);
            assert!(a.iter().all(|v| *v == 1.5));
            assert!(n == 0 || a.as_ptr().addr().is_multiple_of(BYTES), "{n}");
            a.grow(n / 2);
            assert_eq!(a.len(), n);
            a.grow(2 * n + 1);
            let moved = a;
            assert_eq!(moved.len(), 2 * n + 1);
            assert!(moved.as_ptr().addr().is_multiple_of(BYTES), "{n}");
        }
    }
}
