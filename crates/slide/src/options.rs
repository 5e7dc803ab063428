//! How a slide is opened.

use crate::limits::Limits;
use mitosis::Mpp;
use std::path::PathBuf;

/// What a resolution given by the user means next to one that the file states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MppRule {
    /// It must agree with the file's.
    #[default]
    Agree,
    /// It serves a file that states none, or contradicts itself; the file's own goes first.
    Fill,
    /// It holds, whatever the file states.
    Force,
}

/// How to open a slide.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenOptions {
    /// The user's um/px: for a file that states none, or contradicts itself.
    pub mpp: Option<Mpp>,
    /// What [`OpenOptions::mpp`] means next to what the file states.
    pub mpp_rule: MppRule,
    /// Memory for decoded tiles, bytes; at most its part of a quarter of [`Limits::memory`].
    pub cache_bytes: usize,
    /// What the file may ask for.
    pub limits: Limits,
    /// Path of an OpenSlide 4 library; without it the usual places are searched.
    pub openslide: Option<PathBuf>,
    /// Read through OpenSlide even what the built-in readers know (for comparison).
    pub force_openslide: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            mpp: None,
            mpp_rule: MppRule::Agree,
            cache_bytes: 128 << 20,
            limits: Limits::default(),
            openslide: None,
            force_openslide: false,
        }
    }
}
