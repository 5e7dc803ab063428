//! Every encoder by name: one table.
//!
//! A row is an architecture alone (timm's own names), or an encoder that others published: then it
//! also states how its images are made and how its file is named ([`published`]).

mod config;
mod layout;
mod network;
mod row;
mod table;

pub use self::config::{EncoderConfig, entry, fit, published};
pub use self::layout::Layout;
pub use self::network::{NetworkConfig, NetworkShape};
pub use self::row::{Architecture, EncoderEntry, Published};
pub use self::table::ENCODERS;
