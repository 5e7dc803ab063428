//! Why an object cannot be read. No message holds an address' query, a key, or what a server wrote at length.

use crate::AddressError;
use base::remedy::{Remedied, Remedy};

/// Why an object cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum RemoteError {
    /// Not a valid address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// 404, or a server's word for it.
    #[error("the server has no such object (404{}); the address may be wrong", in_brackets(code))]
    NotFound { code: String },
    /// 401 or 403.
    #[error("the server refuses access ({status}{}); {remedy}", in_brackets(code))]
    Denied { status: u16, code: String, remedy: &'static str },
    /// The whole file was sent where a part was asked for.
    #[error(
        "the server does not send parts of files (no answer to Range, status {status}); download the \
         slide first if the server allows it"
    )]
    NoRanges { status: u16 },
    /// The answer is packed, so that places in it are not those of the file.
    #[error(
        "the server sends the file packed ({encoding}), although it was asked for it as it is; download the \
         slide first if the server allows it, or have the server leave out slides from compression"
    )]
    Packed {
        /// As the server names it.
        encoding: String,
    },
    /// It is not the object any more that was opened.
    #[error(
        "{what} changed on the server while it was read; run it again once it is written whole"
    )]
    Changed {
        /// What is another than before.
        what: &'static str,
    },
    /// Any other answer.
    #[error("the server answered {status}{}", in_brackets(code))]
    Status { status: u16, code: String },
    /// No answer, or not a whole one, after several attempts.
    #[error("no whole answer in {attempts} attempts: {reason}")]
    Unreachable {
        /// How often it was tried.
        attempts: u32,
        reason: String,
    },
    /// Credentials are named but cannot be used.
    #[error("AWS credentials: {0}")]
    Credentials(String),
    /// A read beyond its end.
    #[error("{wanted} bytes at {offset} are beyond the end ({len} bytes)")]
    Beyond {
        offset: u64,
        wanted: u64,
        /// Bytes of the object.
        len: u64,
    },
    /// This build has no network client.
    #[error(
        "this build of mithras reads no addresses (feature `remote`); download the slide first if the server allows it"
    )]
    NotBuilt,
}

impl Remedied for RemoteError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Address(e) => e.remedy(),
            _ => None,
        }
    }
}

fn in_brackets(code: &str) -> String {
    if code.is_empty() { String::new() } else { format!(" {code}") }
}
