//! Scores: detections and classes against the truth, and under changes that must not matter.
//!
//! | module | does |
//! |---|---|
//! | [`mod@evaluate`] | detections and classes against ground truth |
//! | [`robustness`] | detections under changes that must not matter, and the operating points |
//! | [`challenge`] | one job of a challenge on Grand Challenge, in its folders and shapes |
//! | [`times`] | seconds of the second stage in detection runs |
//! | [`boxes`], [`combine`] | packages from detectors of boxes, one package from several |

#![forbid(unsafe_code)]

pub mod boxes;
pub mod calibrate;
pub mod challenge;
pub mod combine;
pub mod evaluate;
pub mod robustness;
pub mod times;
pub mod too_few;
