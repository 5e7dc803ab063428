//! Augmentation of 8-bit RGB images: deterministic given the generator it is handed.
//!
//! | module | changes |
//! |---|---|
//! | [`photometric`] | stain, colour, blur, JPEG, erasing: the image alone |
//! | [`view`] | two views of a crop and their token labels, as torchvision draws them |
//! | [`geometry`], [`rand_augment`] | placement and flips, erased rectangles, timm's RandAugment |
//! | [`sample`] | which place of which image, flips, rotation, scale: image and target together |

pub mod geometry;
pub mod photometric;
pub mod rand_augment;
pub mod sample;
pub mod view;

pub use photometric::Photometric;
pub use sample::{
    ClassifierPool, ClassifierShares, CropSample, SegmentPool, SegmentSample, SegmentShares,
    Spatial,
};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The generator of sample `index` under `seed`: the same whatever thread draws it.
#[must_use]
pub fn rng_of(seed: u64, index: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    rng
}
