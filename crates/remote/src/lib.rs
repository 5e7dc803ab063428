//! Bytes of objects on a server: `https://`, `http://` and `s3://`, in ranges, read-only.
//!
//! ```no_run
//! let address = remote::Address::parse("https://host/a.svs")?.expect("an address, no path");
//! let object = remote::Object::open(&address)?;
//! let mut head = [0; 64];
//! object.read_at(&mut head, 0)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without the feature `client` nothing here talks to the network: [`Object::open`] returns an error.

#![forbid(unsafe_code)]

mod address;
mod error;

#[cfg(feature = "client")]
mod blocks;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod credentials;
#[cfg(feature = "client")]
mod http;
#[cfg(feature = "client")]
mod object;
#[cfg(not(feature = "client"))]
#[path = "without.rs"]
mod object;
#[cfg(feature = "client")]
mod sign;
#[cfg(feature = "client")]
mod time;
mod traffic;

pub use address::{Address, AddressError, percent_decoded, without_query};
pub use error::RemoteError;
pub use object::{Object, allow_memory, traffic};
pub use traffic::Traffic;

#[cfg(feature = "client")]
pub use client::{Client, Options};
#[cfg(feature = "client")]
pub use credentials::{Keys, S3};
