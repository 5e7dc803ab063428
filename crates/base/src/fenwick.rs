//! Prefix sums that change: a Fenwick tree.

use std::ops::AddAssign;

/// Values by place, with the sum over the places in front of any of them in O(log n).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fenwick<T> {
    tree: Vec<T>,
}

impl<T: Copy + Default + AddAssign> Fenwick<T> {
    /// Zeros at `places` places.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self { tree: vec![T::default(); places + 1] }
    }

    /// Back to zeros, at `places` places; keeps its memory.
    pub fn reset(&mut self, places: usize) {
        self.tree.clear();
        self.tree.resize(places + 1, T::default());
    }

    /// Adds to the value of a place. Returns how many sums it visited, at most log2 of the places,
    /// rounded up, plus one.
    pub fn add(&mut self, place: usize, value: T) -> usize {
        let (mut i, mut visited) = (place + 1, 0);
        while i < self.tree.len() {
            self.tree[i] += value;
            i += i & i.wrapping_neg();
            visited += 1;
        }
        visited
    }

    /// The sum over the places in front of `place`, from `place.count_ones()` sums.
    ///
    /// # Panics
    /// When there are fewer places than `place`.
    #[must_use]
    pub fn below(&self, place: usize) -> T {
        let (mut i, mut sum) = (place, T::default());
        while i > 0 {
            sum += self.tree[i];
            i &= i - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::Fenwick;

    #[test]
    fn sums_are_those_of_a_plain_list() {
        let (mut tree, mut plain) = (Fenwick::new(23), [0_u64; 23]);
        for k in 0..200_usize {
            let (place, value) = (k * 7 % 23, k as u64);
            tree.add(place, value);
            plain[place] += value;
            let below: u64 = plain[..k % 24].iter().sum();
            assert_eq!(tree.below(k % 24), below);
        }
        tree.reset(3);
        assert_eq!(tree.below(3), 0);
    }
}
