//! Texts of a PNG: keywords, EXIF, time, colour profile, and chunks that the standard does not know.

use super::{CODED, FileText, Search, jpeg};
use crate::file::SlideFile;
use crate::icc;
use crate::limits::Fault;
use crate::png::{self, LONGEST};
use crate::privacy::holds_words;
use crate::privacy::{self, Personal};

/// Chunks of PNG (third edition) of pixels and of tables of colours. Other known ones are a few numbers, which never
/// look like words, or texts.
pub(crate) const PIXELS: [&[u8; 4]; 7] =
    [b"IHDR", b"PLTE", b"IDAT", b"tRNS", b"hIST", b"fcTL", b"fdAT"];
/// Keywords of texts that PNG (third edition, 11.3.3.1) and XMP register.
const KEYWORDS: [&str; 12] = [
    "Title",
    "Author",
    "Description",
    "Copyright",
    "Creation Time",
    "Software",
    "Disclaimer",
    "Warning",
    "Source",
    "Comment",
    "Collection",
    "XML:com.adobe.xmp",
];
/// Chunks of one file.
const MOST: usize = 1 << 22;

pub(super) fn search(file: &SlideFile) -> Result<Search, Fault> {
    let mut texts_found = Vec::new();
    let mut at = 8;
    for _ in 0..MOST {
        if at + 8 > file.len {
            break;
        }
        let head = part(file, at, 8)?;
        let len = u64::from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
        let kind = [head[4], head[5], head[6], head[7]];
        let next = at + 12 + len;
        if !PIXELS.contains(&&kind) {
            let body = part(file, at + 8, len.min(LONGEST).min(file.len - at - 8))?;
            texts_found.extend(texts(&kind, &body));
            if len > LONGEST {
                texts_found.push(unread(&format!("png.{}", String::from_utf8_lossy(&kind))));
            }
        }
        at = next;
        if kind == *b"IEND" {
            break;
        }
    }
    if at < file.len {
        let rest = part(file, at, (file.len - at).min(LONGEST))?;
        if holds_words(&rest) {
            texts_found.push(FileText::text("png.after the end", &rest));
        } else if file.len - at > LONGEST {
            texts_found.push(unread("png.after the end"));
        }
    }
    let looked_at =
        vec!["text chunks, EXIF, GPS, XMP, time, ICC, unknown chunks, what follows the end".into()];
    Ok(Search { texts_found, looked_at, not_looked_at: vec![CODED.into()] })
}

fn unread(name: &str) -> FileText {
    FileText::text(name, b"unread")
}

fn part(file: &SlideFile, at: u64, n: u64) -> Result<Vec<u8>, Fault> {
    let mut b = vec![0; n as usize];
    file.read_at(&mut b, at).map_err(|e| Fault::read(at, &e))?;
    Ok(b)
}

fn texts(kind: &[u8; 4], body: &[u8]) -> Vec<FileText> {
    if let Some((key, value)) = png::text(kind, body) {
        return keyword(&key, &value);
    }
    match kind {
        b"eXIf" => jpeg::exif_texts("png", body),
        b"tIME" => {
            vec![FileText {
                name: "png.tIME".into(),
                value: "time".into(),
                kind: Some(Personal::Date),
            }]
        }
        b"iCCP" => {
            let (key, value) = png::keyword(body);
            let profile = png::inflated(value.get(1..).unwrap_or_default());
            let mut all = FileText::of_profile("png.ICCProfile", &profile);
            if !icc::is_technical(&key) {
                all.push(FileText::text("png.ICCProfile", key.as_bytes()));
            }
            all
        }
        b"sCAL" if png::is_scale(body) => Vec::new(),
        _ if holds_words(body) => {
            vec![FileText::text(format!("png.{}", String::from_utf8_lossy(kind)), body)]
        }
        _ => Vec::new(),
    }
}

/// A text under its keyword; none where it names the program that wrote the file.
fn keyword(key: &str, value: &[u8]) -> Vec<FileText> {
    let name = format!("png.{}", key.replace('.', " "));
    if key.eq_ignore_ascii_case("Software") && privacy::is_product(&String::from_utf8_lossy(value))
    {
        return Vec::new();
    }
    // A keyword that is not registered may itself be a name.
    let is_known = KEYWORDS.iter().any(|known| key.eq_ignore_ascii_case(known));
    let whole = [key.as_bytes(), b" ", value].concat();
    vec![FileText::named(name, if is_known { value } else { &whole })]
}
