//! Files as this project reads and writes them.
//!
//! | module | what |
//! |---|---|
//! | [`mod@file`] | files that are there whole or not at all, folders with one writer |
//! | [`digest`] | SHA-256 and the one way to hexadecimal digits |
//! | [`chain`] | logs whose lines name the one before, so that a change is noticed |
//! | [`log`] | lines that are only ever appended, on disk before they are acknowledged |
//! | [`json`] | JSON with a schema that is checked before anything else |
//! | [`table`] | delimited text: columns by name, cells with their place |
//!
//! ```
//! use artifact::table::{Format, Table};
//! use std::path::Path;
//!
//! let text = "Slide Name;mpp\na.svs;0,25\n";
//! let table = Table::parse(Path::new("mpp.csv"), text.as_bytes(), &Format::default())?;
//! let (slide, mpp) = (table.need(&["slide", "slide_name"])?, table.need(&["mpp"])?);
//! assert_eq!((table.cell(0, slide), table.number(0, mpp)?), ("a.svs", 0.25));
//! # Ok::<(), artifact::table::TableError>(())
//! ```

#![forbid(unsafe_code)]

pub mod chain;
pub mod digest;
pub mod file;
pub mod json;
pub mod log;
pub mod table;
