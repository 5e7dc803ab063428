//! Pixels as the networks meet them: the one way a crop becomes an input, and the changes a crop
//! may meet on its way. Pure: nothing here reads or writes a file.
//!
//! | module | does |
//! |---|---|
//! | [`input`] | normalisation, and at which resolution a crop is read |
//! | [`mod@resize`] | the one filter of training, pretraining and inference |
//! | [`photometric`] | random stain, colour, blur, JPEG, erasing: the image alone |
//! | [`scanner`] | strong random changes of stain, optics, sensor and coding |
//! | [`change`] | the single changes both are made of |
//! | [`perturb`] | named, fixed changes that a detector must withstand |
//! | [`view`] | two views of a crop and their token labels, as torchvision draws them |
//! | [`geometry`], [`rand_augment`] | placement and flips, erased rectangles, timm's RandAugment |
//!
//! Everything random is deterministic given the generator it is handed ([`sample_rng`]).

#![forbid(unsafe_code)]

mod boxed;
pub mod change;
pub mod geometry;
pub mod input;
pub mod perturb;
pub mod photometric;
pub mod rand_augment;
pub mod resize;
pub mod scanner;
pub mod view;

pub use boxed::CropBox;
pub use photometric::Photometric;
pub use scanner::Scanner;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The generator of sample `index` under `seed`: the same whatever thread draws it.
#[must_use]
pub fn sample_rng(seed: u64, index: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    rng
}

/// Reflects an index into `0..n` without repeating the edge (as numpy's `reflect`).
#[must_use]
pub fn mirror(i: i64, n: usize) -> usize {
    let n = n as i64;
    if n == 1 {
        return 0;
    }
    let period = 2 * (n - 1);
    let r = i.rem_euclid(period);
    (if r < n { r } else { period - r }) as usize
}

#[cfg(test)]
mod tests {
    use super::mirror;

    #[test]
    fn indices_are_reflected() {
        assert_eq!((mirror(-1, 5), mirror(5, 5), mirror(9, 5), mirror(0, 1)), (1, 3, 1, 0));
    }
}
