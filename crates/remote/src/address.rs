//! Addresses: recognised, parsed, and never shown with what may be secret in them.

use base::remedy::{Remedied, Remedy};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How an object is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Http,
    Https,
    S3,
}

/// Where an object is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address {
    pub(crate) scheme: Scheme,
    /// Host with port, or bucket.
    pub(crate) host: String,
    /// From the first `/` on, as it was given; an S3 key follows that slash.
    pub(crate) path: String,
    /// What followed `?`: it may sign the request, so nothing shows it.
    pub(crate) query: Option<String>,
}

/// What looks like an address and cannot be read as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// `ftp://` and the like.
    #[error(
        "{0}://: slides are read from https://, http:// and s3:// only; download it first if you can"
    )]
    Scheme(String),
    /// No host, no bucket.
    #[error("{0}: an address without a host or bucket")]
    Host(String),
    /// A folder, a bucket.
    #[error("{0}: names no object; give the slides one by one, or in a list")]
    NoObject(String),
    /// `user:password@host`.
    #[error("{0}: a name or password in an address would be stored with the results; take it out")]
    User(String),
    /// `s3://b/k?versionId=..`.
    #[error("{0}: an s3:// address takes no query")]
    Query(String),
    /// The same address with another query: results could not be distinguished.
    #[error("{0}: is given with two different queries, whose results could not be distinguished")]
    TwoQueries(String),
    /// `s3://bucket/*.svs`.
    #[error(
        "{0}: patterns are for files on this machine; give the slides one by one, or in a list"
    )]
    Pattern(String),
    /// Bytes that are not text.
    #[error("an address that is not UTF-8")]
    NotText,
}

impl Remedied for AddressError {
    fn remedy(&self) -> Option<Remedy> {
        matches!(self, Self::NoObject(_) | Self::Pattern(_)).then_some(Remedy::ListSlides)
    }
}

/// Queries by address without one. They stay in this process.
static QUERIES: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);

fn split(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    // One letter is a drive of Windows.
    (scheme.len() > 1 && scheme.chars().all(letters)).then_some((scheme, rest))
}

/// The word without the query of an address and without the name in it; others as they are. For command
/// lines that go into logs and results.
#[must_use]
pub fn without_query(word: &str) -> String {
    let (flag, text) = match word.split_once('=') {
        Some((flag, text)) if flag.starts_with('-') => (&word[..=flag.len()], text),
        _ => ("", word),
    };
    let Some((scheme, rest)) = split(text) else { return word.to_owned() };
    let rest = if scheme.eq_ignore_ascii_case("s3") {
        rest
    } else {
        rest.split(['?', '#']).next().unwrap_or_default()
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit('@').next().unwrap_or_default();
    let slash = if rest.contains('/') { "/" } else { "" };
    format!("{flag}{scheme}://{host}{slash}{path}")
}

impl Address {
    /// The address that a path is; `None` for a path of this machine. A query is kept in this process'
    /// memory, so that the address without it serves from then on.
    ///
    /// # Errors
    /// [`AddressError`]; no message holds a query or a password.
    pub fn parse(path: impl AsRef<OsStr>) -> Result<Option<Self>, AddressError> {
        let path = path.as_ref();
        let Some(text) = path.to_str() else {
            let lossy = path.to_string_lossy();
            return if split(&lossy).is_some() { Err(AddressError::NotText) } else { Ok(None) };
        };
        let Some((scheme, rest)) = split(text) else { return Ok(None) };
        let shown = without_query(text);
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            "s3" => Scheme::S3,
            other => return Err(AddressError::Scheme(other.to_owned())),
        };
        let (rest, query) = match scheme {
            Scheme::S3 => (rest, None),
            _ => {
                let rest = rest.split('#').next().unwrap_or_default();
                rest.split_once('?').map_or((rest, None), |(r, q)| (r, Some(q)))
            }
        };
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        if host.contains('@') {
            return Err(AddressError::User(shown));
        }
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(AddressError::Host(shown));
        }
        if key.is_empty() || key.ends_with('/') {
            return Err(AddressError::NoObject(shown));
        }
        if scheme == Scheme::S3 && key.contains('?') {
            let shown = shown.split('?').next().unwrap_or_default();
            return Err(AddressError::Query(shown.to_owned()));
        }
        if key.contains('*') {
            return Err(AddressError::Pattern(shown));
        }
        let mut address =
            Self { scheme, host: host.to_owned(), path: format!("/{key}"), query: None };
        let mut queries = QUERIES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = queries.get_or_insert_default();
        let plain = address.to_string();
        match (known.get(&plain), query.filter(|q| !q.is_empty())) {
            (Some(known), Some(given)) if known != given => {
                return Err(AddressError::TwoQueries(shown));
            }
            (None, Some(given)) => {
                known.insert(plain, given.to_owned());
                address.query = Some(given.to_owned());
            }
            (known, _) => address.query = known.cloned(),
        }
        Ok(Some(address))
    }

    /// It as a path, without its query.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(self.to_string())
    }

    /// The last part of its path, `%20` and the like decoded where the scheme encodes them.
    #[must_use]
    pub fn file_name(&self) -> PathBuf {
        let last = self.path.rsplit('/').next().unwrap_or_default();
        // What was encoded must not become a part of a path.
        let decoded =
            if self.scheme == Scheme::S3 { last.to_owned() } else { percent_decoded(last) };
        PathBuf::from(decoded.replace('/', "_"))
    }

    /// Whether a path is an address, one that can be read or not.
    #[must_use]
    pub fn is(path: &Path) -> bool {
        split(&path.to_string_lossy()).is_some()
    }
}

/// Without the query.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::S3 => "s3",
        };
        write!(f, "{scheme}://{}{}", self.host, self.path)
    }
}

/// Without the query.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// A part of an address with `%20` as a blank and the like; other triples, and a text that would not be UTF-8, stay.
#[must_use]
pub fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = |b: u8| char::from(b).to_digit(16);
        match after {
            [a, b, tail @ ..] if first == b'%' => match (hex(*a), hex(*b)) {
                (Some(a), Some(b)) => {
                    out.push((16 * a + b) as u8);
                    rest = tail;
                    continue;
                }
                _ => out.push(first),
            },
            _ => out.push(first),
        }
        rest = after;
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<Address>, AddressError> {
        Address::parse(text)
    }

    #[test]
    fn paths_are_not_addresses() {
        for path in ["a.svs", "/b/a.svs", "C://a.svs", "a:b", "", "http:/a.svs"] {
            assert_eq!(parsed(path), Ok(None), "{path}");
        }
    }

    #[test]
    fn a_query_serves_and_is_not_shown() {
        let a = parsed("https://h:1/d/My%20slide.svs?X-Amz-Signature=hush#f").unwrap().unwrap();
        assert_eq!(a.query.as_deref(), Some("X-Amz-Signature=hush"));
        assert_eq!(a.to_string(), "https://h:1/d/My%20slide.svs");
        assert_eq!(a.file_name(), Path::new("My slide.svs"));
        assert!(!format!("{a:?}").contains("hush"));
        // The address without it serves as well from now on.
        assert_eq!(parsed("https://h:1/d/My%20slide.svs"), Ok(Some(a)));
        let other = parsed("https://h:1/d/My%20slide.svs?X-Amz-Signature=hush2").unwrap_err();
        assert!(!other.to_string().contains("hush2"), "{other}");
    }

    #[test]
    fn a_list_of_slides_is_the_remedy_of_what_cannot_be_searched() {
        for (text, remedy) in [
            ("s3://bucket/", Some(Remedy::ListSlides)),
            ("s3://bucket/*.svs", Some(Remedy::ListSlides)),
            ("s3://bucket/a?versionId=1", None),
        ] {
            let e = parsed(text).unwrap_err();
            assert_eq!((e.remedy(), crate::RemoteError::from(e).remedy()), (remedy, remedy));
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_its_secrets() {
        for (text, word) in [
            ("ftp://h/a.svs", "https://"),
            ("https://h", "no object"),
            ("s3://bucket/", "no object"),
            ("s3://bucket/folder/", "in a list"),
            ("s3://bucket/*.svs", "patterns"),
            ("s3://bucket/a?versionId=hush", "query"),
            ("https:///a.svs", "host"),
            ("https://me:hush@h/a.svs?hush", "take it out"),
        ] {
            let e = parsed(text).unwrap_err().to_string();
            assert!(e.contains(word) && !e.contains("hush"), "{text}: {e}");
        }
        for without in ["https://h/a.svs?hush", "https://h/a.svs"] {
            assert_eq!(parsed(without).unwrap().unwrap().file_name(), Path::new("a.svs"));
        }
    }

    #[test]
    fn command_lines_lose_queries() {
        for (word, want) in [
            ("https://h/a.svs?sig=hush", "https://h/a.svs"),
            ("--limit=memory=4G", "--limit=memory=4G"),
            ("--input=https://u:hush@h/a?b", "--input=https://h/a"),
            ("s3://b/k", "s3://b/k"),
            ("a?b.svs", "a?b.svs"),
        ] {
            assert_eq!(without_query(word), want);
        }
    }

    #[test]
    fn an_encoded_slash_leads_nowhere() {
        let a = parsed("https://h/..%2F..%2Fetc").unwrap().unwrap();
        assert_eq!(a.file_name(), Path::new(".._.._etc"));
        assert_eq!(parsed("https://h/a%zz%C3").unwrap().unwrap().file_name(), Path::new("a%zz%C3"));
    }
}
