//! What every crate may use: files as this project reads and writes them, text for people, loops, the panic border.
//!
//! | module | what |
//! |---|---|
//! | [`mod@file`] | files that are there whole or not at all, folders with one writer |
//! | [`digest`] | SHA-256 and the one way to hexadecimal digits |
//! | [`chain`] | logs whose lines name the one before, so that a change is noticed |
//! | [`walk`] | what folders hold, in the order of names |
//! | [`log`] | lines that are only ever appended, on disk before they are acknowledged |
//! | [`json`] | JSON with a schema that is checked before anything else |
//! | [`table`] | delimited text: columns by name, cells with their place |
//! | [`progress`] | how far work is, for people and for scripts |
//! | [`preset`] | what every preset file has in common |
//! | [`prefetch`] | a loop whose next steps are drawn while this one works |
//! | [`remedy`] | what a user could change about an error |
//! | [`renamed`] | keys of presets and recipes that had another name |
//! | [`text`] | text from outside as it is shown, numbers of things |
//! | [`fenwick`] | prefix sums that change |
//! | [`name`] | names of folders, made of text from outside |
//! | [`sealed`] | digests of the files of a result |
//! | [`shard`] | parts of a list by the names in it, for several processes |
//! | [`signature`] | what a file is by its first bytes, where it is not what was expected |
//! | [`panics`] | a panic of other people's code becomes an error |
//!
//! ```
//! use base::table::{Format, Table};
//! use std::path::Path;
//!
//! let text = "Slide Name;mpp\na.svs;0,25\n";
//! let table = Table::parse(Path::new("mpp.csv"), text.as_bytes(), &Format::default())?;
//! let (slide, mpp) = (table.need(&["slide", "slide_name"])?, table.need(&["mpp"])?);
//! assert_eq!((table.cell(0, slide), table.number(0, mpp)?), ("a.svs", 0.25));
//! # Ok::<(), base::table::TableError>(())
//! ```

#![forbid(unsafe_code)]

pub mod chain;
pub mod digest;
pub mod fenwick;
pub mod file;
pub mod json;
pub mod log;
pub mod name;
pub mod panics;
pub mod prefetch;
pub mod preset;
pub mod progress;
pub mod remedy;
pub mod renamed;
pub mod sealed;
pub mod shard;
pub mod signature;
pub mod table;
pub mod text;
pub mod walk;
