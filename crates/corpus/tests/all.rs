//! Datasets on disk: import, format, layouts, hostile files.
//!
//! One binary for all files here: linking each by itself takes minutes.

mod format;
mod hostile;
mod import;
mod layouts;
mod reshape;
mod sheets;
mod yolo;
