//! Scores: detections and classes against the truth, and under changes that must not matter.
//!
//! | module | does |
//! |---|---|
//! | [`mod@evaluate`] | detections and classes against ground truth |
//! | [`robustness`] | detections under changes that must not matter, and the operating points |
//! | [`boxes`], [`combine`] | packages from detectors of boxes, one package from several |

#![forbid(unsafe_code)]

pub mod boxes;
pub mod calibrate;
pub mod combine;
pub mod evaluate;
pub mod robustness;
