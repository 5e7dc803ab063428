//! JSON files: pretty, whole, and with a schema that is checked before the content.

mod unique;

use crate::file::{self, WriteError};
use crate::text::{EncodingError, utf8};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use std::path::{Path, PathBuf};
use unique::{OpenKeys, Unique};

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
/// keeps the last. What is wrong with the text as JSON comes before what is wrong with its form, wherever it is.
///
/// # Errors
/// [`ValueError`].
pub fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, ValueError> {
    let text = utf8(text)?;
    unique(text).map_err(|content| match unique::<IgnoredAny>(text) {
        Err(e) if e.is_data() => ValueError::Doubled(e),
        Err(e) => ValueError::Syntax(e),
        Ok(_) => ValueError::Content(content),
    })
}

/// Parses JSON whose objects have each key once, in one pass.
fn unique<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    let mut from = serde_json::Deserializer::from_str(text);
    let keys = OpenKeys::default();
    let value = T::deserialize(Unique { inner: &mut from, keys: &keys })?;
    from.end()?;
    Ok(value)
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
    fn a_key_twice_is_found_whatever_is_made_of_its_object() {
        #[derive(Deserialize, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[serde(rename_all = "snake_case")]
        enum Name {
            A,
            B,
        }
        #[derive(Deserialize, Debug)]
        enum Kind {
            Plain,
            Of(BTreeMap<String, u32>),
            With { inner: Option<BTreeMap<Name, u32>> },
        }
        #[derive(Deserialize, Debug)]
        #[serde(untagged)]
        enum Either {
            Number(#[expect(dead_code, reason = "read, not used")] u32),
            Map(#[expect(dead_code, reason = "read, not used")] BTreeMap<String, Value>),
        }
        fn refused<T: DeserializeOwned + std::fmt::Debug>(text: &str) {
            let e = parse::<T>(text.as_bytes()).unwrap_err();
            assert!(matches!(e, ValueError::Doubled(_)), "{text}: {e:?}");
        }
        fn read<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> T {
            parse(text.as_bytes()).unwrap()
        }
        refused::<BTreeMap<Name, u32>>(r#"{"a": 1, "b": 2, "a": 1}"#);
        refused::<BTreeMap<u8, u32>>(r#"{"1": 1, "2": 2, "1": 1}"#);
        refused::<BTreeMap<i64, u32>>(r#"{"-1": 1, "2": 2, "-1": 1}"#);
        refused::<BTreeMap<bool, u32>>(r#"{"true": 1, "true": 1}"#);
        refused::<BTreeMap<char, u32>>(r#"{"c": 1, "\u0063": 1}"#);
        refused::<Kind>(r#"{"Of": {"a": 1, "a": 2}}"#);
        refused::<Kind>(r#"{"With": {"inner": {"a": 1, "a": 2}}}"#);
        refused::<Either>(r#"{"a": {"b": 1, "b": 2}}"#);
        refused::<Count>(r#"{"schema": "s", "n": 3, "more": [{"x": {"a": 1, "a": 2}}]}"#);
        refused::<Count>(r#"{"schema": "s", "n": "three", "m": {"a": 1, "a": 2}}"#);
        refused::<IgnoredAny>(r#"[[{"a": 1, "b": {"a": 1}, "a": 2}]]"#);
        assert!(matches!(read(r#""Plain""#), Kind::Plain));
        assert!(matches!(read(r#"{"Of": {"a": 1, "b": 2}}"#), Kind::Of(of) if of.len() == 2));
        let both = r#"{"With": {"inner": {"a": 1, "b": 2}}}"#;
        assert!(matches!(read(both), Kind::With { inner: Some(i) } if i[&Name::A] == 1));
        assert!(matches!(read("7"), Either::Number(_)));
        assert!(matches!(read(r#"{"a": 1, "b": {"a": 1}}"#), Either::Map(_)));
        assert_eq!(read::<BTreeMap<u8, u32>>(r#"{"1": 1, "2": 2}"#)[&2], 2);
        // The one that is wrong as JSON counts, also behind one that is of another form.
        let behind = parse::<Count>(br#"{"schema": 7, "n": 3"#).unwrap_err();
        assert!(matches!(behind, ValueError::Syntax(_)), "{behind:?}");
        let more = parse::<Count>(br#"{"schema": "s", "n": 3} 4"#).unwrap_err();
        assert!(matches!(more, ValueError::Syntax(_)), "{more:?}");
        let form = parse::<Count>(br#"{"schema": 7, "n": 3}"#).unwrap_err();
        assert!(matches!(form, ValueError::Content(_)), "{form:?}");
        assert_eq!(
            form.to_string(),
            "invalid type: integer `7`, expected a string at line 1 column 12"
        );
    }

    #[test]
    fn objects_of_many_keys_are_compared_as_those_of_few() {
        for n in [1, 2, 16, 17, 18, 40] {
            let object = |twice: Option<usize>| {
                let keys = (0..n).chain(twice).map(|k| format!("\"{k}\": {{\"{k}\": 0}}"));
                format!("{{{}}}", keys.collect::<Vec<_>>().join(", "))
            };
            assert_eq!(value(object(None).as_bytes()).unwrap().as_object().unwrap().len(), n);
            for key in [0, n / 2, n - 1] {
                let e = value(object(Some(key)).as_bytes()).unwrap_err().to_string();
                assert!(
                    e.starts_with(&format!("an object has the key `{key}` twice at line 1 ")),
                    "{e}"
                );
            }
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
