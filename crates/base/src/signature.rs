//! What a file is by its first bytes, where it is not what was expected: archives, web pages, other kinds of data.

/// Bytes of a file that are enough to know it: that of tar is behind 257 bytes, and comments may precede a page.
pub const START: u64 = 4096;

/// What to do with such a file depends on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A pointer of Git LFS in place of the file.
    LfsPointer,
    /// What servers send in place of a file: a web page or an error.
    Page,
    /// One file, compressed with gzip.
    Gzip,
    /// One file, compressed with Zstandard.
    Zstandard,
    /// One file, compressed with bzip2.
    Bzip2,
    /// One file, compressed with xz.
    Xz,
    /// Several files in one; Excel workbooks are such a file.
    Archive,
    /// An old Excel workbook, and whatever else is kept in OLE.
    Workbook,
    /// A picture.
    Picture,
    /// A table in Parquet.
    Parquet,
    /// A database in SQLite.
    Database,
    /// Anything else.
    Other,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// With an article: "a web page (HTML), ...".
    pub what: &'static str,
    /// What to do with it.
    pub kind: Kind,
}

/// Bytes that all files of one sort have.
struct Magic {
    /// Places, and the bytes there.
    parts: &'static [(usize, &'static [u8])],
    found: Signature,
}

const fn magic(parts: &'static [(usize, &'static [u8])], what: &'static str, kind: Kind) -> Magic {
    Magic { parts, found: Signature { what, kind } }
}

const SIGNATURES: &[Magic] = &[
    magic(
        &[(0, b"version https://git-lfs")],
        "a Git-LFS pointer, not the file itself",
        Kind::LfsPointer,
    ),
    magic(&[(0, b"PAR1")], "a Parquet file", Kind::Parquet),
    magic(&[(0, b"PK\x03\x04")], "a ZIP archive or an Excel workbook", Kind::Archive),
    magic(&[(0, b"7z\xbc\xaf\x27\x1c")], "a 7-Zip archive", Kind::Archive),
    magic(&[(0, b"Rar!\x1a\x07")], "a RAR archive", Kind::Archive),
    magic(&[(257, b"ustar")], "a tar archive", Kind::Archive),
    magic(
        &[(0, b"\xd0\xcf\x11\xe0")],
        "an OLE file such as an old Excel workbook (.xls)",
        Kind::Workbook,
    ),
    magic(&[(0, b"\x1f\x8b")], "a gzip file", Kind::Gzip),
    magic(&[(0, b"\x28\xb5\x2f\xfd")], "a Zstandard file", Kind::Zstandard),
    magic(&[(0, b"BZh"), (4, b"1AY&SY")], "a bzip2 file", Kind::Bzip2),
    magic(&[(0, b"\xfd7zXZ\0")], "an xz file", Kind::Xz),
    magic(&[(0, b"SQLite format 3\0")], "an SQLite database", Kind::Database),
    magic(&[(0, b"%PDF-")], "a PDF document", Kind::Other),
    magic(&[(0, b"\x89HDF")], "an HDF5 file", Kind::Other),
    magic(&[(0, b"GIF8")], "a GIF image", Kind::Picture),
    magic(&[(0, b"RIFF"), (8, b"WEBP")], "a WebP image", Kind::Picture),
    magic(&[(0, b"RIFF")], "a RIFF file", Kind::Other),
    magic(&[(0, b"BM"), (6, &[0; 4])], "a Windows bitmap", Kind::Picture),
    magic(&[(0, b"\0\0\0\x0cjP  ")], "a JPEG 2000 image (JP2)", Kind::Picture),
    magic(&[(0, b"\xff\x4f\xff\x51")], "a JPEG 2000 codestream", Kind::Picture),
    magic(&[(4, b"ftypavi")], "an AVIF image", Kind::Picture),
    magic(&[(4, b"ftyphei")], "a HEIC image", Kind::Picture),
    magic(&[(4, b"ftyphev")], "a HEIC image", Kind::Picture),
    magic(&[(4, b"ftypmif1")], "a HEIC or AVIF image", Kind::Picture),
    magic(&[(4, b"ftyp")], "a video or another file of MPEG-4", Kind::Other),
    magic(
        &[(0, b"\0\x05\x16\x07")],
        "what macOS notes about another file (AppleDouble), without its content",
        Kind::Other,
    ),
    magic(&[(0, b"\0\x05\x16\0")], "an AppleSingle file of macOS", Kind::Other),
];

/// Beginnings of texts, in small letters, behind blank lines, comments and the declaration of XML.
const TEXTS: &[(&str, &str, Kind)] = &[
    ("<!doctype html", PAGE, Kind::Page),
    ("<html", PAGE, Kind::Page),
    ("<head>", PAGE, Kind::Page),
    ("<body", PAGE, Kind::Page),
    ("<error>", "an error message of a server (XML)", Kind::Page),
];
const PAGE: &str = "a web page (HTML), as servers send instead of a file";

/// What a file is by its first bytes ([`START`] of them are enough); `None` for tables, slides and everything unknown.
#[must_use]
pub fn signature(start: &[u8]) -> Option<Signature> {
    let has = |at: usize, magic: &[u8]| start.get(at..).is_some_and(|s| s.starts_with(magic));
    let magic = SIGNATURES.iter().find(|m| m.parts.iter().all(|(at, bytes)| has(*at, bytes)));
    if let Some(magic) = magic {
        return Some(magic.found);
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let root = behind_prolog(text);
    let starts = |with: &str| {
        root.get(..with.len()).is_some_and(|own| own.eq_ignore_ascii_case(with.as_bytes()))
    };
    if let Some((_, what, kind)) = TEXTS.iter().find(|(with, ..)| starts(with)) {
        return Some(Signature { what, kind: *kind });
    }
    if text.trim_ascii_start().starts_with(b"<?xml") || starts("<!doctype") {
        return Some(Signature { what: "an XML text", kind: Kind::Other });
    }
    let what = "a JSON text, such as an error message of a server";
    is_json(root).then_some(Signature { what, kind: Kind::Page })
}

/// A text without blank lines, comments and the declaration of XML in front.
fn behind_prolog(text: &[u8]) -> &[u8] {
    let mut rest = text.trim_ascii_start();
    loop {
        let end: &[u8] = match rest {
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            [b'<', b'?', ..] => b"?>",
            _ => return rest,
        };
        let Some(at) = rest.windows(end.len()).position(|w| w == end) else { return rest };
        rest = rest.get(at + end.len()..).unwrap_or_default().trim_ascii_start();
    }
}

/// Whether a text begins as an object of JSON, or as a list of objects.
fn is_json(text: &[u8]) -> bool {
    fn inner(text: &[u8], open: u8) -> Option<&[u8]> {
        text.strip_prefix(&[open]).map(<[u8]>::trim_ascii_start)
    }
    let is_object = |text: &[u8]| {
        inner(text, b'{').is_some_and(|rest| matches!(rest.first(), Some(b'"' | b'}')))
    };
    is_object(text) || inner(text, b'[').is_some_and(is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        let tar = [&[b'a'; 257][..], b"ustar\x0000"].concat();
        for (start, words, kind) in [
            (&b"PK\x03\x04 and more"[..], "ZIP", Kind::Archive),
            (&tar, "tar", Kind::Archive),
            (b"\x1f\x8b\x08", "gzip", Kind::Gzip),
            (b"\0\0\0\x18ftypheic", "HEIC", Kind::Picture),
            (b"\0\0\0\x20ftypavif", "AVIF", Kind::Picture),
            (b"\0\0\0\x0cjP  \r\n\x87\n", "JP2", Kind::Picture),
            (b"\0\x05\x16\x07\0\x02", "AppleDouble", Kind::Other),
            (b"BM\x36\x10\0\0\0\0\0\0\x36", "bitmap", Kind::Picture),
            (b"\xef\xbb\xbf\r\n\n <HTML><body>", "HTML", Kind::Page),
            (b"<!-- a --> <!-- b -->\n<html>", "HTML", Kind::Page),
            (b"<?xml version=\"1.0\"?>\n<!DOCTYPE HTML PUBLIC>", "HTML", Kind::Page),
            (b"<?xml version=\"1.0\"?><Error><Code/></Error>", "server (XML)", Kind::Page),
            (b"<?xml version=\"1.0\"?><OME/>", "XML", Kind::Other),
            (b"{\"message\": \"Not Found\"}", "JSON", Kind::Page),
            (b" [ {\"id\": 1}]", "JSON", Kind::Page),
        ] {
            let known = signature(start).unwrap();
            assert!(known.what.contains(words) && known.kind == kind, "{words}: {known:?}");
        }
    }

    #[test]
    fn tables_and_pictures_that_are_read_are_nothing_else() {
        for start in [
            &b"BMI,age\n27,60\n"[..],
            b"BZh,x\n1,2\n",
            b"[note],{x}\n",
            b"a;b\n<html>;1\n",
            b"<5,>5\n1,2\n",
            b"\x89PNG\r\n\x1a\n",
            b"II*\0\x08\0\0\0",
            b"\xff\xd8\xff\xe0",
            b"<!-- without an end",
            b"",
        ] {
            assert_eq!(signature(start), None, "{}", start.escape_ascii());
        }
    }
}
