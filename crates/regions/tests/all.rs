//! Datasets on disk: import, layouts, other forms.
//!
//! One binary for all files here: linking each by itself takes minutes.

mod import;
mod layouts;
mod reports;
mod reshape;
mod sheets;
mod yolo;
