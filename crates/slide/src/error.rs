//! What can go wrong with a slide. Every message names the file and, where there is one, the remedy.

use crate::limits::Breach;
use base::remedy::{Remedied, Remedy};
use base::text::Shown;
use std::io;
use std::path::{Path, PathBuf};

/// An error about one slide.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum SlideError {
    /// The operating system refused: missing file, no permission, read error.
    #[error("{}: cannot be read: {source}", Shown(path))]
    Io {
        /// Path or address of the slide.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A slide on a server cannot be read, now or any more.
    #[error("{}: {source}", Shown(path))]
    Remote {
        /// Its address, without a query.
        path: PathBuf,
        #[source]
        source: remote::RemoteError,
    },
    /// A folder, pipe or device where a file was expected.
    #[error("{}: is not a file; name the slide file itself", Shown(path))]
    NotAFile { path: PathBuf },
    /// A file of zero bytes.
    #[error("{}: the file is empty (0 bytes); copy it again from its source", Shown(path))]
    Empty {
        /// Path or address of the slide.
        path: PathBuf,
    },
    /// A known or unknown format that cannot be read here.
    #[error("{}: {reason}; {remedy}", Shown(path))]
    Unsupported {
        /// Path or address of the slide.
        path: PathBuf,
        reason: String,
        remedy: String,
    },
    /// The structure of the file contradicts itself.
    #[error(
        "{}: damaged file: {reason}; copy it again from its source or export it again",
        Shown(path)
    )]
    Malformed {
        /// Path or address of the slide.
        path: PathBuf,
        reason: String,
    },
    /// No field states micrometres per pixel.
    #[error(
        "{}: no micrometres per pixel in the file{hint}; they have to be given, e.g. 0.25",
        Shown(path)
    )]
    MissingResolution {
        /// Path or address of the slide.
        path: PathBuf,
        /// What was found instead, starting with `" ("`, or nothing.
        hint: String,
    },
    /// Two fields state different resolutions.
    #[error(
        "{}: contradicting resolutions: {first} against {second}; the one that holds has to be given, and forced where it contradicts the slide",
        Shown(path)
    )]
    ContradictingResolution {
        /// Path or address of the slide.
        path: PathBuf,
        /// One field with its value.
        first: String,
        /// The other field with its value.
        second: String,
    },
    /// Two fields state different sizes, or a size and a resolution that cannot both hold.
    #[error(
        "{}: contradicting sizes: {stated}, but {found}, so one of them is of another image; copy \
         the file again if it was damaged, or export it again if its program wrote it so",
        Shown(path)
    )]
    ContradictingSize {
        path: PathBuf,
        /// What one field states.
        stated: String,
        /// What the other states.
        found: String,
    },
    /// The stated resolution cannot be that of a microscope slide.
    #[error("{}: implausible resolution: {found}; the true one has to be given", Shown(path))]
    ImplausibleResolution {
        /// Path or address of the slide.
        path: PathBuf,
        found: String,
    },
    /// One tile cannot be decoded. The rest of the slide stays readable.
    #[error(
        "{}: tile (column {column}, row {row}) of level {level} cannot be decoded: {reason}",
        Shown(path)
    )]
    Tile {
        /// Path or address of the slide.
        path: PathBuf,
        level: usize,
        column: u64,
        row: u64,
        reason: String,
    },
    /// An associated image cannot be decoded.
    #[error("{}: associated image `{name}`: {reason}", Shown(path))]
    Associated {
        /// Path or address of the slide.
        path: PathBuf,
        name: String,
        reason: String,
    },
    /// A request or an image needs more memory than allowed.
    #[error("{}: {what} would need {bytes} bytes, more than the limit of {limit}", Shown(path))]
    TooLarge {
        /// Path or address of the slide.
        path: PathBuf,
        what: String,
        bytes: u128,
        limit: u64,
    },
    /// The file asks for more than a limit of [`Limits`](crate::Limits) allows.
    #[error(
        "{}: {what}: {needed}, more than the limit `{limit}` of {allowed}; raise that limit if the \
         file can be trusted",
        Shown(path)
    )]
    Limit {
        /// Path or address of the slide.
        path: PathBuf,
        /// The limit's name in [`Limits::TABLE`](crate::Limits::TABLE).
        limit: &'static str,
        /// What asks for it.
        what: String,
        /// What is needed, in the unit of the limit.
        needed: u128,
        allowed: u64,
    },
    /// A level that the slide has not.
    #[error("{}: has {levels} levels and no level {level}", Shown(path))]
    NoSuchLevel {
        /// Path or address of the slide.
        path: PathBuf,
        level: usize,
        levels: usize,
    },
}

impl SlideError {
    pub(crate) fn limit(path: &Path, breach: Breach) -> Self {
        let Breach { name, what, needed, allowed } = breach;
        Self::Limit { path: path.to_path_buf(), limit: name, what, needed, allowed }
    }

    /// The operating system's refusal to read a part of the file.
    pub(crate) fn read(path: &Path, reason: String) -> Self {
        Self::Io { path: path.to_path_buf(), source: io::Error::other(reason) }
    }

    /// Whether only one tile is at fault, so that a caller may leave it out and continue.
    #[must_use]
    pub const fn is_tile(&self) -> bool {
        matches!(self, Self::Tile { .. })
    }

    /// Whether the system or the server refused to read the file: then nothing of the slide may be left
    /// out, because what is missing may be there at the next try.
    #[must_use]
    pub const fn is_file(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Remote { .. })
    }
}

impl Remedied for SlideError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::MissingResolution { .. } | Self::ImplausibleResolution { .. } => {
                Some(Remedy::GiveResolution)
            }
            Self::ContradictingResolution { .. } => Some(Remedy::ForceResolution),
            Self::Limit { .. } => Some(Remedy::Limit),
            Self::Remote { source, .. } => source.remedy(),
            _ => None,
        }
    }
}
