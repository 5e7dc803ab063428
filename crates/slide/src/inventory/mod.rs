//! Everything in a slide's file that may identify a person, a time or a place, by name and kind, never by value; with
//! what was looked at to find it, and what was not.

mod dicom;
mod jp2k;
mod jpeg;
mod png;
mod search;
pub(crate) mod tags;
mod tiff;

pub(crate) use self::dicom::removable as dicom_texts;
pub(crate) use self::jp2k::{blankable as jp2k_texts, removable as jp2k_comments};
pub(crate) use self::jpeg::without_texts;
pub(crate) use self::png::PIXELS as PNG_PIXELS;
pub(crate) use self::tiff::JPEG_2000;
pub(crate) use search::{CODED, FileText, Search};

use crate::limits::Fault;
use crate::privacy::{self, Personal, holds_words};
use crate::{Limits, Slide, SlideError};
use serde::Serialize;
use std::collections::BTreeSet;

/// What may be personal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the property, tag, field or image.
    pub name: String,
    /// What it may state about people.
    pub kind: Personal,
}

/// What was found in a file, and where it was looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inventory {
    /// What may identify a person, a time or a place, each name once.
    pub findings: Vec<Finding>,
    /// What was looked at.
    pub looked_at: Vec<String>,
    /// What the search does not cover, e.g. pixels.
    pub not_looked_at: Vec<String>,
}

impl Slide {
    /// Looks for everything in the file that may identify a person, a time or a place: texts of every directory of a
    /// TIFF with EXIF, GPS, XMP, IPTC, ICC and private tags, comments and application data of JPEG, text
    /// of PNG, attributes of every file of a DICOM slide, and associated images by what they are.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn inventory(&self) -> Result<Inventory, SlideError> {
        let search = self.search().map_err(|fault| match fault {
            Fault::Limit(breach) => SlideError::limit(&self.path, breach),
            Fault::Read(reason) => {
                self.file.or_failure(&self.path, SlideError::read(&self.path, reason))
            }
            Fault::Damaged(reason) | Fault::Unsupported(reason) => self
                .file
                .or_failure(&self.path, SlideError::Malformed { path: self.path.clone(), reason }),
        })?;
        let mut names = BTreeSet::new();
        let mut findings = Vec::new();
        let properties =
            self.properties().iter().flat_map(|(name, v)| privacy::personal_parts(name, v));
        let texts_found = search.texts_found.iter().flat_map(FileText::findings);
        let images = self.associated_images().iter().filter(|i| privacy::may_show_label(&i.name));
        let images = images.map(|i| (format!("image {}", i.name), Personal::Picture));
        // A level that shows something else than the finer ones may show the label.
        let levels = self.disagreements()?.into_iter();
        let levels = levels.map(|d| (format!("level {}", d.level), Personal::Picture));
        for (name, kind) in properties.chain(texts_found).chain(images).chain(levels) {
            if names.insert(name.clone()) {
                findings.push(Finding { name, kind });
            }
        }
        let mut looked_at = search.looked_at;
        looked_at.push(format!("{} properties", self.properties().len()));
        looked_at.push(format!("names of {} associated images", self.associated_images().len()));
        let mut not_looked_at = search.not_looked_at;
        not_looked_at.push("the pixels of the slide and of its associated images".into());
        not_looked_at.push("the name of the file".into());
        Ok(Inventory { findings, looked_at, not_looked_at })
    }

    fn search(&self) -> Result<Search, Fault> {
        let limits = Limits::default();
        match self.format() {
            "png" => png::search(&self.file),
            "jpeg" => jpeg::search(&self.file),
            "dicom" => self.search_dicom(),
            _ => {
                let mut head = [0; 4];
                self.file.read_at(&mut head, 0).map_err(|e| Fault::read(0, &e))?;
                if crate::tiff::is_tiff(&head) && self.format() != "openslide" {
                    return tiff::search(&self.file, &self.opened.source.directories(), &limits);
                }
                Ok(Search {
                    not_looked_at: vec![
                        "what OpenSlide does not hand out of this format, and other files of the slide"
                            .into(),
                    ],
                    ..Search::default()
                })
            }
        }
    }

    /// The attributes of DICOM files are properties already; before them are 128 bytes of anything.
    fn search_dicom(&self) -> Result<Search, Fault> {
        let mut preamble = [0; 128];
        self.file.read_at(&mut preamble, 0).map_err(|e| Fault::read(0, &e))?;
        let reached = tiff::reached(&self.file);
        let limits = Limits::default();
        let frames = dicom::texts(&self.path, &self.file, &limits, reached as u64)?;
        let hidden = crate::format::dicom_files::hidden(&self.path, &self.file, &limits)?;
        let is_whole = reached == usize::MAX;
        let behind = if is_whole { " and behind them" } else { "" };
        let mut search = Search {
            texts_found: frames.texts,
            looked_at: vec![
                "attributes of every file of the series, those in sequences and private ones among them"
                    .into(),
                format!(
                    "the bytes of {} lookup tables, colour profiles, tables of places and values of an unexpected kind",
                    hidden.looked_into
                ),
                "the preamble of the named file".into(),
                format!(
                    "comments and application data of {} JPEG and JPEG 2000 frames, before the coded pixels{behind}, \
                     and boxes around those of JPEG 2000",
                    frames.frames
                ),
            ],
            not_looked_at: vec![
                "what follows the pixel data".into(),
                "the table of places before the frames, and bytes among coded pixels".into(),
                "binary numbers outside of tables, parts of tables whose numbers rise or fall alone, and the words of codes \
                 of public lists"
                    .into(),
            ],
        };
        let (others, lost) = (frames.others, frames.lost);
        let more = [
            (!is_whole).then(|| "what follows the header of a frame".to_owned()),
            (!is_whole).then(|| format!("headers behind the first {reached} frames of a file")),
            (others > 0).then(|| format!("{others} frames that are neither JPEG nor JPEG 2000")),
            (lost > 0).then(|| format!("{lost} frames that cannot be read")),
        ];
        search.not_looked_at.extend(more.into_iter().flatten());
        let text = |kind: Personal, value: &str| {
            let value = value.to_owned();
            move |name| FileText { name, value: value.clone(), kind: Some(kind) }
        };
        let writing = hidden.writing.into_iter().map(text(Personal::Picture, "writing"));
        search.texts_found.extend(writing);
        search.texts_found.extend(hidden.texts.into_iter().map(text(Personal::Text, "words")));
        let unread = frames.unread.into_iter().map(|name| format!("frames of {name}"));
        search.not_looked_at.extend(unread);
        if holds_words(&preamble) {
            search.texts_found.push(FileText::text("dicom.preamble", &preamble));
        }
        Ok(search)
    }
}

#[cfg(test)]
mod tests {
    use super::holds_words;

    #[test]
    fn words_are_found_in_one_byte_or_two() {
        assert!(holds_words(b"\0\0Jane Doe\0"));
        let wide: Vec<u8> = "Jane Doe".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(holds_words(&wide));
        let wide: Vec<u8> = "Jane Doe".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert!(holds_words(&wide));
        assert!(!holds_words(&[0, 1, 2, 3, 250, 251, 65, 66, 67, 0]));
        assert!(!holds_words(b"1234567 89"));
    }

    /// Names in KOI8-R, Windows-1251, ISO 8859-5, Shift-JIS, GBK, EUC-KR, TIS-620 and Latin-1, alone and between zeros.
    #[test]
    fn words_are_found_in_code_pages() {
        for name in [
            &b"\xE9\xD7\xC1\xCE\xCF\xD7"[..],
            b"\xCC\xE0\xF0\xE8\xFF",
            b"\xB0\xB4\xB8\xBB",
            b"\x8ER\x93c \x91\xBE\x98Y",
            b"\xC0\xEE\xD0\xA1\xC1\xFA",
            b"\xB1\xE8\xB9\xCE\xC1\xD8",
            b"\xCA\xC1\xAA\xD2\xC2",
            b"Jos\xE9",
            b"Bj\xF6rn",
        ] {
            assert!(holds_words(name), "{name:x?}");
            assert!(holds_words(&[&[0, 0][..], name, &[0]].concat()), "{name:x?}");
            assert!(!holds_words(&name.iter().flat_map(|b| [*b, 1, 7]).collect::<Vec<u8>>()));
        }
        let wide: Vec<u8> = "José".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(holds_words(&wide));
    }

    #[test]
    fn words_are_found_in_every_script() {
        for text in
            ["Иванов Иван", "Цой", "Παππάς", "כהן", "محمد", "สมชาย", "李小龙", "김민준", "José"]
        {
            let utf16 = |order: fn(u16) -> [u8; 2]| {
                let units = [7].into_iter().chain(text.encode_utf16()).chain([0]);
                units.flat_map(order).collect::<Vec<u8>>()
            };
            let utf8 = [&[0xFF, 1, 0, 0xC3][..], text.as_bytes(), &[0, 0x80]].concat();
            assert!(holds_words(&utf8), "{text}");
            let in_latin = text == "José";
            assert!(in_latin || holds_words(&utf16(u16::to_le_bytes)), "{text}");
            assert!(in_latin || holds_words(&utf16(u16::to_be_bytes)), "{text}");
        }
    }

    /// Tables of numbers, and bytes at random, of which the rule for ASCII takes every tenth of 24 for words.
    #[test]
    fn numbers_are_not_words_of_any_script() {
        let two = |all: &[u16]| all.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        for table in [
            (0..=31).collect::<Vec<u8>>(),
            vec![0x10; 64],
            (128..=255).collect(),
            two(&[300, 310, 305, 322, 512, 700]),
            two(&[20_000, 31_000, 50_000]),
            two(&[1, 2, 4, 8, 16, 64, 128]),
            [1.0_f32, 2.5, 0.1, 100.0].iter().flat_map(|v| v.to_le_bytes()).collect(),
            [1.25_f64, 0.1, 3e7].iter().flat_map(|v| v.to_le_bytes()).collect(),
        ] {
            assert!(!holds_words(&table), "{table:?}");
        }
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let fields: Vec<Vec<u8>> = (0..2000).map(|_| (0..24).map(|_| random()).collect()).collect();
        let ascii = |b: &[u8]| {
            b.split(|c| !c.is_ascii_alphanumeric() && !b" ^-_.".contains(c))
                .any(|run| run.len() > 3 && run.iter().any(u8::is_ascii_alphabetic))
        };
        let by_ascii = fields.iter().filter(|f| ascii(f)).count();
        let all = fields.iter().filter(|f| holds_words(f)).count();
        assert!(all < 2 * by_ascii, "{all} of 2000, {by_ascii} by ASCII alone");
    }
}
