//! Corpora on disk: format, hostile files.
//!
//! One binary for all files here: linking each by itself takes minutes.

mod format;
mod hostile;
