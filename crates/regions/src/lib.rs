//! Images with exhaustive labels, and what is drawn from them.
//!
//! | module | does |
//! |---|---|
//! | [`annotations`] | annotations of other tools |
//! | [`dataset`] | images and slides with exhaustive labels |
//! | [`cut`] | crops from annotations and images |
//! | [`folds`] | the one manifest of folds, for regions and for crops |
//! | [`overlap`] | what two datasets share |
//! | [`export`], [`yolo`], [`sheets`] | a dataset in other forms |
//! | [`scene`], [`augment`] | a labelled image in memory, and what is drawn from it |
//! | [`task`] | labelled crops of a classification task, training and test as two types, folds |
//! | [`labelled`] | a corpus of the labelled figures |
//! | [`rows`] | rows of a table that are not one object each |
//! | [`units`] | what a table states both in px and in um |
//! | [`shortcuts`] | whether a source or scanner betrays the class |

#![forbid(unsafe_code)]

pub mod annotations;
pub mod augment;
pub mod cut;
pub mod dataset;
pub mod export;
pub mod fold;
pub mod folds;
mod image_index;
pub mod labelled;
pub mod overlap;
pub mod rows;
pub mod scene;
pub mod sheets;
pub mod shortcuts;
pub mod task;
pub mod units;
pub mod yolo;

pub use crops::slide_name;
pub use dataset::*;
