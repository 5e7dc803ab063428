//! JSON files: pretty, whole, and with a schema that is checked before the content.

use crate::file::{self, WriteError};
use crate::text::{EncodingError, utf8};
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a JSON file cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum JsonError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] file::ReadError),
    /// Its text.
    #[error("{}: {source}", path.display())]
    Parse {
        /// Path of the JSON file.
        path: PathBuf,
        /// Line, column and reason.
        source: ValueError,
    },
    /// Another format, or another version of it.
    #[error("{}: the schema is {found}, this version reads \"{wanted}\"", path.display())]
    Schema {
        /// Path of the JSON file.
        path: PathBuf,
        /// The value of its `schema`, as JSON.
        found: String,
        wanted: &'static str,
    },
}

/// Largest JSON file that is read, bytes.
pub const LARGEST: u64 = 512 << 20;

/// Paths that JSON can state.
pub trait Paths {
    /// What is written.
    fn written(&self) -> impl Serialize + '_;
}

impl Paths for PathBuf {
    fn written(&self) -> impl Serialize + '_ {
        self.to_string_lossy()
    }
}

impl Paths for Option<PathBuf> {
    fn written(&self) -> impl Serialize + '_ {
        self.as_deref().map(Path::to_string_lossy)
    }
}

impl Paths for Vec<PathBuf> {
    fn written(&self) -> impl Serialize + '_ {
        self.iter().map(|p| p.to_string_lossy()).collect::<Vec<_>>()
    }
}

/// Writes paths of reports (`serialize_with`): JSON has no bytes outside of UTF-8, so U+FFFD takes their place. What is
/// read back to open a file keeps serde's own way, which is an error.
///
/// # Errors
/// The serializer's own.
pub fn lossy<S: serde::Serializer>(paths: &impl Paths, to: S) -> Result<S::Ok, S::Error> {
    paths.written().serialize(to)
}

/// Pretty JSON with a final line break.
///
/// # Panics
/// When `value` has no JSON: a map whose keys are not texts. Plain data always has one; numbers that
/// are not finite become `null`.
#[must_use]
pub fn pretty(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("plain data becomes JSON");
    bytes.push(b'\n');
    bytes
}

/// Writes [`pretty`] JSON, whole or not at all.
///
/// # Errors
/// [`WriteError`]; for a value without JSON, too.
pub fn write(path: &Path, value: &impl Serialize) -> Result<(), WriteError> {
    let none = |e| WriteError { path: path.to_owned(), source: std::io::Error::other(e) };
    let mut bytes = serde_json::to_vec_pretty(value).map_err(none)?;
    bytes.push(b'\n');
    file::write(path, &bytes)
}

/// Reads a JSON file.
///
/// # Errors
/// [`JsonError::Read`], [`JsonError::Parse`].
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, JsonError> {
    let bytes = file::read(path, LARGEST)?;
    parse(&bytes).map_err(|source| JsonError::Parse { path: path.to_owned(), source })
}

/// Parses JSON of a known form. Objects with a key twice are refused also where the form is a map, of which serde
/// keeps the last.
///
/// # Errors
/// [`ValueError`].
pub fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, ValueError> {
    let text = utf8(text)?;
    serde_json::from_str::<Unique>(text).map_err(|e| match e.is_data() {
        true => ValueError::Doubled(e),
        false => ValueError::Syntax(e),
    })?;
    serde_json::from_str(text).map_err(ValueError::Content)
}

/// Most memory of the values of one text, bytes, as [`value`] estimates it.
const MOST_MEMORY: u64 = 8 << 30;

/// Why text does not become a value.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// It is not JSON.
    #[error("is not valid JSON: {0}")]
    Syntax(serde_json::Error),
    /// It is JSON of another form.
    #[error("{0}")]
    Content(serde_json::Error),
    /// An object has a key twice: readers of JSON take the first, the last, or refuse.
    #[error("{0}: which of the two counts is not defined")]
    Doubled(serde_json::Error),
    /// Its text is encoded otherwise than JSON is.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// It has too many values.
    #[error("its values take more than {} GiB of memory", MOST_MEMORY >> 30)]
    Large,
}

/// Parses JSON whose form is not known. Two bytes of text can be a hundred in memory, so their number is bounded
/// before.
///
/// # Errors
/// [`ValueError`].
pub fn value(text: &[u8]) -> Result<Value, ValueError> {
    if memory(text) > MOST_MEMORY {
        return Err(ValueError::Large);
    }
    parse(text)
}

/// A value of which nothing is kept, but whose objects have each key once; serde's own keeps the last of two without a
/// trace.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self, A::Error> {
        while all.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = all.next_key::<String>()? {
            if let Some(first) = keys.replace(key) {
                return Err(A::Error::custom(format!("an object has the key `{first}` twice")));
            }
            all.next_value::<Self>()?;
        }
        Ok(self)
    }
}

/// Bytes that the values of JSON take once parsed, about: a list begins with room for four values, an object with that
/// for four names and values and a table of them.
fn memory(text: &[u8]) -> u64 {
    const VALUE: u64 = size_of::<Value>() as u64;
    let (mut bytes, mut quoted, mut escaped) = (0, false, false);
    for b in text {
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => bytes += VALUE,
            b'[' if !quoted => bytes += 4 * VALUE,
            b'{' if !quoted => bytes += 8 * VALUE,
            _ => {}
        }
    }
    bytes
}

/// Reads a JSON file whose field `schema` must be `wanted`, so that a file of another version is
/// named as such and not as one with missing fields.
///
/// # Errors
/// [`JsonError`].
pub fn read_schema<T: DeserializeOwned>(path: &Path, wanted: &'static str) -> Result<T, JsonError> {
    let bytes = file::read(path, LARGEST)?;
    let wrong = |source| JsonError::Parse { path: path.to_owned(), source };
    let value = value(&bytes).map_err(wrong)?;
    if value["schema"] != wanted {
        let found = value.get("schema").map_or_else(|| "missing".into(), ToString::to_string);
        return Err(JsonError::Schema { path: path.to_owned(), found, wanted });
    }
    serde_json::from_value(value).map_err(|e| wrong(ValueError::Content(e)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    struct Count {
        schema: String,
        n: u32,
    }

    #[test]
    fn the_schema_is_checked_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("count.json");
        let count = Count { schema: "count/1".into(), n: 3 };
        write(&path, &count).unwrap();
        assert_eq!(read_schema::<Count>(&path, "count/1").unwrap(), count);
        let other = read_schema::<Count>(&path, "count/2").unwrap_err().to_string();
        assert!(other.contains("count.json") && other.contains("\"count/1\""), "{other}");
        std::fs::write(&path, "{\"m\": 1}").unwrap();
        let other = read_schema::<Count>(&path, "count/1").unwrap_err().to_string();
        assert!(other.contains("missing"), "{other}");
        std::fs::write(&path, r#"{"schema": "count/1", "n": 3, "n": 4}"#).unwrap();
        assert!(matches!(read_schema::<Count>(&path, "count/1"), Err(JsonError::Parse { .. })));
        // Of a map serde keeps the last.
        std::fs::write(&path, r#"{"a": 1, "b": 2, "a": 3}"#).unwrap();
        let twice = read::<BTreeMap<String, u32>>(&path).unwrap_err().to_string();
        assert!(twice.contains("count.json: an object has the key `a` twice"), "{twice}");
        let wide: Vec<u8> = "{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        std::fs::write(&path, wide).unwrap();
        let wide = read::<BTreeMap<String, u32>>(&path).unwrap_err().to_string();
        assert!(wide.ends_with("count.json: is UTF-16 text; save it as UTF-8"), "{wide}");
        std::fs::write(&path, "{").unwrap();
        assert!(matches!(read::<Count>(&path), Err(JsonError::Parse { .. })));
        assert!(matches!(read::<Count>(&dir.path().join("none")), Err(JsonError::Read { .. })));
    }

    #[test]
    fn numbers_that_are_not_finite_become_null() {
        assert_eq!(pretty(&f64::NAN), b"null\n");
    }

    #[test]
    fn an_object_with_a_key_twice_is_not_read() {
        let same =
            r#"{"a": [null, true, -1, 2, 0.5, "x"], "b": {"a": 1}, "c": [{"a": 1}, {"a": 2}]}"#;
        let known: Value = serde_json::from_str(same).unwrap();
        assert_eq!(value(same.as_bytes()).unwrap(), known, "one key in two objects");
        for text in [r#"{"a": 1, "a": 1}"#, "[0,\n {\"b\": {\"a\": [], \"\\u0061\": 2}}]"] {
            let e = value(text.as_bytes()).unwrap_err();
            assert!(matches!(e, ValueError::Doubled(_)), "{e}");
            assert!(e.to_string().contains("the key `a` twice at line "), "{e}");
        }
    }

    #[test]
    fn values_are_counted_before_they_are_made() {
        let text = br#"{"a,[{\"": [1, 2, {"b": "\\"}], "c": []}"#;
        let one = size_of::<Value>() as u64;
        assert_eq!(memory(text), one * (2 * 8 + 2 * 4 + 3));
        assert_eq!(value(text).unwrap()["c"], serde_json::json!([]));
        assert!(matches!(value(b"{"), Err(ValueError::Syntax(_))));
        // What 42 MiB of text would become.
        let objects = [b"[", &b"{},".repeat(14 << 20)[..], b"0]"].concat();
        let refused = value(&objects).unwrap_err().to_string();
        assert!(refused.contains("8 GiB"), "{refused}");
    }
}
