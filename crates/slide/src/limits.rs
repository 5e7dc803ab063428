//! What a file may ask of this machine, and what happens beyond it.

use crate::memory::Memory;
use std::sync::OnceLock;

/// Limits on one slide. Each breach is a [`SlideError::Limit`](crate::SlideError::Limit) with the
/// number asked for; the table in `docs/reliability.md` is [`Limits::TABLE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Pixels of the finest level.
    pub pixels: u64,
    /// Bytes of RGB that strips and flat images, which are decoded whole, come to.
    pub decoded: u64,
    /// Image directories of a TIFF, sub-directories included.
    pub directories: u64,
    /// Bytes of directory data (tile positions, descriptions) read from a TIFF.
    pub fields: u64,
    /// Memory for decoded pixels, shared by all slides opened with clones of these limits: caches,
    /// whole images, decoding and windows that wait. What does not fit goes to a temporary file where
    /// the format can be decoded in rows.
    pub memory: Memory,
    /// Bytes of RGB that one byte of the file may represent.
    pub expansion: u64,
    /// Candidates that detection holds of one slide.
    pub candidates: u64,
}

/// One row of the table of limits.
#[derive(Clone, Copy, Debug)]
pub struct LimitAbout {
    /// Its name in settings and errors.
    pub name: &'static str,
    /// What it counts, with the unit.
    pub about: &'static str,
    /// What holds when nothing is set; `None`: it depends on the machine.
    pub default: Option<u64>,
}

const PIXELS: u64 = 100_000_000_000;
const DECODED: u64 = 32 << 30;
const DIRECTORIES: u64 = 4096;
const FIELDS: u64 = 256 << 20;
const EXPANSION: u64 = 16_384;
const CANDIDATES: u64 = 1_000_000;
/// Below this an image is small, however much it was shrunk.
pub(crate) const SMALL: u64 = 256 << 20;
/// Memory that is always allowed.
const LEAST_MEMORY: u64 = 64 << 20;

/// What `Limits::default` gives from [`Limits::for_all`] on.
static FOR_ALL: OnceLock<Limits> = OnceLock::new();

/// Why a limit cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum LimitError {
    /// The text is not `NAME=VALUE`.
    #[error("`{0}` is not NAME=VALUE")]
    Form(String),
    /// The value is not a whole number above 0.
    #[error("limit `{name}`: `{value}` is not a number above 0")]
    Number { name: String, value: String },
    /// The limit is unknown.
    #[error("no limit `{0}`; there are {names}", names = names())]
    Unknown(String),
}

fn names() -> String {
    Limits::TABLE.iter().map(|l| l.name).collect::<Vec<_>>().join(", ")
}

impl Limits {
    /// Every limit, with its default.
    pub const TABLE: &[LimitAbout] = &[
        LimitAbout { name: "pixels", about: "pixels of the finest level", default: Some(PIXELS) },
        LimitAbout {
            name: "decoded",
            about: "bytes of RGB in strips and flat images, which are decoded whole",
            default: Some(DECODED),
        },
        LimitAbout {
            name: "directories",
            about: "image directories of a TIFF",
            default: Some(DIRECTORIES),
        },
        LimitAbout {
            name: "fields",
            about: "bytes of directories, headers and tables of frames (TIFF, DICOM)",
            default: Some(FIELDS),
        },
        LimitAbout {
            name: "memory",
            about: "bytes of memory for decoded pixels (default: half of what is free)",
            default: None,
        },
        LimitAbout {
            name: "expansion",
            about: "bytes of RGB per byte of the file, from 256 MiB of RGB on",
            default: Some(EXPANSION),
        },
        LimitAbout {
            name: "candidates",
            about: "candidates that detection holds of one slide",
            default: Some(CANDIDATES),
        },
    ];

    /// Takes a setting such as `pixels=2e10` or `memory=4G`; `K`, `M`, `G` and `T` are powers of
    /// 1024.
    ///
    /// # Errors
    /// [`LimitError`].
    pub fn set(&mut self, setting: &str) -> Result<(), LimitError> {
        let (name, value) =
            setting.split_once('=').ok_or_else(|| LimitError::Form(setting.to_owned()))?;
        let number = parse(value.trim()).ok_or_else(|| LimitError::Number {
            name: name.trim().to_owned(),
            value: value.to_owned(),
        })?;
        let place = match name.trim() {
            "pixels" => &mut self.pixels,
            "decoded" => &mut self.decoded,
            "directories" => &mut self.directories,
            "fields" => &mut self.fields,
            "memory" => {
                self.memory = Memory::new(number.max(LEAST_MEMORY));
                return Ok(());
            }
            "expansion" => &mut self.expansion,
            "candidates" => &mut self.candidates,
            other => return Err(LimitError::Unknown(other.to_owned())),
        };
        *place = number;
        Ok(())
    }

    /// Takes several settings separated by commas, as an environment variable holds them.
    ///
    /// # Errors
    /// As [`Limits::set`].
    pub fn set_all(&mut self, settings: &str) -> Result<(), LimitError> {
        settings.split(',').map(str::trim).filter(|s| !s.is_empty()).try_for_each(|s| self.set(s))
    }

    /// Makes these the defaults of every slide that this process opens from now on. Only the first
    /// call counts: a program makes it at its start.
    pub fn for_all(self) {
        let _ = FOR_ALL.set(self);
    }

    /// Whether decoding may take so many bytes at once.
    pub(crate) fn working(
        &self,
        what: impl FnOnce() -> String,
        needed: u128,
    ) -> Result<(), Breach> {
        check("memory", self.memory.most_working(), needed, what)
    }
}

impl Default for Limits {
    fn default() -> Self {
        FOR_ALL.get().cloned().unwrap_or_else(|| Self {
            pixels: PIXELS,
            decoded: DECODED,
            directories: DIRECTORIES,
            fields: FIELDS,
            memory: half_of_free().clone(),
            expansion: EXPANSION,
            candidates: CANDIDATES,
        })
    }
}

/// A number with an optional suffix.
fn parse(text: &str) -> Option<u64> {
    let (digits, unit) = match text.chars().last()?.to_ascii_uppercase() {
        'K' => (&text[..text.len() - 1], 1u64 << 10),
        'M' => (&text[..text.len() - 1], 1 << 20),
        'G' => (&text[..text.len() - 1], 1 << 30),
        'T' => (&text[..text.len() - 1], 1 << 40),
        _ => (text, 1),
    };
    let value = digits.parse::<f64>().ok().filter(|v| v.is_finite())? * unit as f64;
    (value >= 1.0 && value < u64::MAX as f64).then_some(value as u64)
}

/// Half of the memory that was free when it was first asked for.
fn half_of_free() -> &'static Memory {
    static HALF: OnceLock<Memory> = OnceLock::new();
    HALF.get_or_init(|| Memory::new((free().unwrap_or(4 << 30) / 2).max(LEAST_MEMORY)))
}

/// Memory that new work can have, where the system states it.
fn free() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let available = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10;
    let number = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    // A container may have less than the machine.
    let group = "/sys/fs/cgroup";
    let left = number(&format!("{group}/memory.max"))
        .zip(number(&format!("{group}/memory.current")))
        .map(|(most, now)| most.saturating_sub(now));
    Some(left.map_or(available, |left| left.min(available)))
}

/// A file asked for more than a limit allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    pub(crate) name: &'static str,
    pub(crate) what: String,
    pub(crate) needed: u128,
    pub(crate) allowed: u64,
}

/// `needed` within `allowed`, or the breach of the limit `name`.
pub(crate) fn check(
    name: &'static str,
    allowed: u64,
    needed: u128,
    what: impl FnOnce() -> String,
) -> Result<(), Breach> {
    if needed <= u128::from(allowed) {
        return Ok(());
    }
    Err(Breach { name, what: what(), needed, allowed })
}

/// Why a part of a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It contradicts itself or is cut short.
    Damaged(String),
    /// It is sound, as far as can be reported, but nothing here reads it.
    Unsupported(String),
    /// It asks for too much.
    Limit(Breach),
    /// The operating system could not read it: nothing is known of it, and it may be readable later.
    Read(String),
}

impl Fault {
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported(what.into())
    }

    /// A failed read at a byte of the file.
    pub(crate) fn read(at: u64, e: &std::io::Error) -> Self {
        Self::Read(format!("read error at byte {at}: {e}"))
    }

    /// What is wrong, as a sentence without the file.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Damaged(e) | Self::Unsupported(e) | Self::Read(e) => e.clone(),
            Self::Limit(b) => format!(
                "{}: {}, more than the limit `{}` of {}",
                b.what, b.needed, b.name, b.allowed
            ),
        }
    }

    /// Text in front of the reason.
    pub(crate) fn within(self, place: &str) -> Self {
        match self {
            Self::Damaged(e) => Self::Damaged(format!("{place}: {e}")),
            Self::Unsupported(e) => Self::Unsupported(format!("{place}: {e}")),
            Self::Limit(b) => Self::Limit(Breach { what: format!("{place}: {}", b.what), ..b }),
            Self::Read(e) => Self::Read(format!("{place}: {e}")),
        }
    }
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Damaged(reason)
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Self::Damaged(reason.into())
    }
}

impl From<Breach> for Fault {
    fn from(breach: Breach) -> Self {
        Self::Limit(breach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_their_errors() {
        let mut l = Limits::default();
        l.set_all("pixels=2e10, memory=4G,expansion=77").unwrap();
        assert_eq!((l.pixels, l.memory.total(), l.expansion), (20_000_000_000, 4 << 30, 77));
        l.set("decoded=0.5k").unwrap();
        assert_eq!(l.decoded, 512);
        for (bad, word) in [
            ("pixel=1", "directories"),
            ("pixels", "NAME=VALUE"),
            ("pixels=no", "not a number"),
            ("fields=0", "above 0"),
        ] {
            assert!(l.set(bad).unwrap_err().to_string().contains(word), "{bad}");
        }
        // Every name of the table can be set.
        for about in Limits::TABLE {
            l.set(&format!("{}=123456789", about.name)).unwrap();
        }
        let all = 123_456_789;
        let want = Limits {
            pixels: all,
            decoded: all,
            directories: all,
            fields: all,
            memory: Memory::new(all),
            expansion: all,
            candidates: all,
        };
        assert_eq!(l, want);
    }
}
