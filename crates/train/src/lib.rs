//! One flat, readable training loop per stage (libtorch).
