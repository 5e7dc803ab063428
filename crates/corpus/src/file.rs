//! Files that are there whole or not at all, and folders with one writer.

pub use artifact::file::{Lock, LockError, WriteError, beside, persist, write};
