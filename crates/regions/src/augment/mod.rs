//! What is drawn from labelled images: which place of which image, with flips, rotation and scale.
//! Changes of the pixels themselves are in [`pixels`].

pub mod crop;
pub mod domain;
pub mod sample;

pub use crate::scene::SampledPlace;
pub use crop::{CropPool, CropRecipe, CropSample, PoolShare};
pub use domain::{Domain, DomainPlace, NamedPlace, PlaceKind};
pub use pixels::{Photometric, geometry, photometric, rand_augment, sample_rng, view};
pub use sample::{CellShares, SegmentPool, SegmentRules, SegmentSample, SegmentShares, Spatial};
