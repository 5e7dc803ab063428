//! What is left without the feature `client`: addresses are refused.

use crate::traffic::Traffic;
use crate::{Address, RemoteError};

/// An opened object; this build has none.
#[derive(Debug)]
pub enum Object {}

/// None.
#[must_use]
pub fn traffic() -> Traffic {
    Traffic::default()
}

/// Nothing is kept in this build.
pub fn allow_memory(_: u64) {}

impl Object {
    /// Returns an error: this build cannot.
    ///
    /// # Errors
    /// [`RemoteError::NotBuilt`].
    pub fn open(_: &Address) -> Result<Self, RemoteError> {
        Err(RemoteError::NotBuilt)
    }

    /// Bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match *self {}
    }

    /// The server's word for its content.
    #[must_use]
    pub fn etag(&self) -> Option<&str> {
        match *self {}
    }

    /// Seconds since 1970 of the last change.
    #[must_use]
    pub fn modified(&self) -> Option<u64> {
        match *self {}
    }

    /// Why reading failed for good.
    #[must_use]
    pub fn failure(&self) -> Option<RemoteError> {
        match *self {}
    }

    /// Reads.
    ///
    /// # Errors
    /// None.
    pub fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), RemoteError> {
        match *self {}
    }
}
