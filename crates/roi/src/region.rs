//! One region of a slide.

use crate::area::Area;

/// One region of a slide.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Its name; no two regions of a slide have the same.
    pub name: String,
    /// Its class; empty without one.
    pub class: String,
    /// What of it is searched: on the slide, without what is excluded.
    pub area: Area,
}
