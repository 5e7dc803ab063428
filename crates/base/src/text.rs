//! Text from outside: the encoding of a file, and a name before it is shown to somebody.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

/// Why bytes are not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// Another encoding, which some editors and shells write.
    #[error("is UTF-16 text; save it as UTF-8")]
    Utf16,
    /// An older encoding, or no text.
    #[error("is not UTF-8 text; save it as UTF-8 if it is text")]
    Other,
}

impl EncodingError {
    /// Of bytes that are not UTF-8.
    pub(crate) const fn of_bytes(bytes: &[u8]) -> Self {
        // With its mark, or a first character of two bytes.
        match bytes {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => Self::Utf16,
            _ => Self::Other,
        }
    }
}

/// The text of a file of UTF-8, without its byte-order mark.
///
/// # Errors
/// [`EncodingError`].
pub fn utf8(bytes: &[u8]) -> Result<&str, EncodingError> {
    // In UTF-16 without its mark, letters of ASCII are UTF-8 with zeros.
    let wide = matches!(bytes, [0, _, ..] | [_, 0, ..]);
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(text) {
        Ok(text) if !wide => Ok(text),
        _ => Err(EncodingError::of_bytes(bytes)),
    }
}

/// Whether a terminal acts on a character instead of showing it: control characters, and those that
/// turn the direction of writing.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The text with everything that a terminal would act on written out, e.g. `\n` or `\u{1b}`.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if acts(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.into()
}

/// The same for text of several lines, which keeps its line breaks.
#[must_use]
pub fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// JSON whose texts have everything that a terminal would act on as JSON writes it, e.g. `\u202e`; serde escapes those
/// below U+0020 alone.
#[must_use]
pub fn plain_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // Outside of texts, JSON has no other character of these than the line break.
        match acts(c) && c != '\n' {
            true => out += &format!("\\u{:04x}", c as u32),
            false => out.push(c),
        }
    }
    out
}

/// Text of a page or an SVG picture: control characters but tab and line break, which neither may contain, and those
/// that turn the direction of writing are written out.
#[must_use]
pub fn plain_page(page: String) -> String {
    let bad = |c: char| acts(c) && !matches!(c, '\n' | '\t' | '\r');
    if !page.contains(bad) {
        return page;
    }
    let mut out = String::with_capacity(page.len() + 8);
    for c in page.chars() {
        if bad(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// A number of things as text, e.g. `1 slide` or `2 slides`: `Many(n, "slide")`.
#[derive(Clone, Copy, Debug)]
pub struct Many<N>(pub N, pub &'static str);

impl<N: fmt::Display> fmt::Display for Many<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, one) = (self.0.to_string(), self.1);
        let end = match &*n {
            "1" => "",
            _ if one.ends_with("ch") || one.ends_with("ss") => "es",
            _ => "s",
        };
        write!(f, "{n} {one}{end}")
    }
}

/// An error and its causes, outermost first, without those that it already ends with: many errors contain their cause.
pub fn joined_once(causes: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let mut text = String::new();
    for cause in causes.into_iter().map(|c| c.to_string()) {
        if !text.ends_with(&cause) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
        }
    }
    text
}

/// A path as it is shown: see [`plain`].
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&self.0.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_another_encoding_is_named_with_the_remedy() {
        assert_eq!(utf8("\u{feff}a\u{e9}".as_bytes()), Ok("a\u{e9}"));
        assert_eq!((utf8(b""), utf8(b"a")), (Ok(""), Ok("a")));
        assert_eq!(utf8(b"k\xf6"), Err(EncodingError::Other));
        for wide in [&b"\xff\xfe{\0"[..], b"\xfe\xff\0{", b"{\0}\0", b"\0{\0}"] {
            assert_eq!(utf8(wide), Err(EncodingError::Utf16), "{wide:?}");
        }
    }

    #[test]
    fn nothing_acts_on_a_terminal() {
        assert_eq!(plain("a b µ"), "a b µ");
        assert_eq!(plain("a\x1b[2J\nb\u{202e}"), "a\\u{1b}[2J\\nb\\u{202e}");
        assert_eq!(plain_lines("a\nb\x07"), "a\nb\\u{7}");
        assert_eq!(Shown(Path::new("x\ry")).to_string(), "x\\ry");
    }

    #[test]
    fn json_and_pages_have_no_control_characters() {
        let json = plain_json(&serde_json::to_string("a\u{9b}2J\u{202e}\u{1b}\n").unwrap());
        assert_eq!(json, r#""a\u009b2J\u202e\u001b\n""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "a\u{9b}2J\u{202e}\u{1b}\n");
        assert_eq!(
            plain_page("<p>\ta\x1b[2J\u{202e}</p>\n".into()),
            "<p>\ta\\u{1b}[2J\\u{202e}</p>\n"
        );
    }

    #[test]
    fn a_reason_is_given_once() {
        let causes = ["a.csv: cannot be read: no such file", "no such file"];
        assert_eq!(joined_once(causes), "a.csv: cannot be read: no such file");
        assert_eq!(joined_once(["a.csv", "no such file"]), "a.csv: no such file");
    }

    #[test]
    fn one_is_singular() {
        let text = |n| format!("{}, {}", Many(n, "slide"), Many(n, "patch"));
        assert_eq!(text(0), "0 slides, 0 patches");
        assert_eq!(text(1), "1 slide, 1 patch");
        assert_eq!(text(2), "2 slides, 2 patches");
    }
}
