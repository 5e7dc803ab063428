//! What each step does when an image comes.

pub(crate) mod conv;
pub(crate) mod inverted;
pub(crate) mod simple;
pub(crate) mod winograd;
