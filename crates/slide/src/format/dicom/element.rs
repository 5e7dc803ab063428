//! The data elements of a DICOM file, one after the other, in little memory.
//!
//! Nested sequences are on a stack of bounded height, lengths are held against what contains them before
//! they are believed, and a value is read only when somebody asks for it.

use crate::file::{SlideFile, Stream};
use crate::limits::{Fault, check};
use crate::privacy::holds_words;
use dicom_core::dictionary::{DataDictionary, DataDictionaryEntry};
use dicom_core::{Tag, VR};
use dicom_dictionary_std::{StandardDataDictionary, tags};
use std::io::{BufReader, Read};

/// Bytes read ahead of a header's elements.
const AHEAD: usize = 16 << 10;
/// Sequences within sequences; a slide's header has five or six.
const DEEPEST: usize = 32;
const UNDEFINED: u32 = u32::MAX;
/// Longest value that is shown or looked at.
pub(super) const LONGEST: u64 = 4096;
const ITEM: Tag = Tag(0xFFFE, 0xE000);
const ITEM_END: Tag = Tag(0xFFFE, 0xE00D);
const SEQUENCE_END: Tag = Tag(0xFFFE, 0xE0DD);

/// An element with a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) tag: Tag,
    pub(super) vr: VR,
    /// Where its value is; `None` for the length of pixel data in fragments.
    pub(super) at: u64,
    pub(super) len: Option<u64>,
}

/// A place within sequences: each with the number of its item.
pub(super) type Place = [(Tag, u32)];

#[derive(Clone, Copy)]
enum Within {
    /// `opaque`: its items hold bytes, as those of a picture within the header do.
    Sequence {
        end: Option<u64>,
        opaque: bool,
        implicit: bool,
    },
    Item {
        end: Option<u64>,
        implicit: bool,
    },
}

/// Goes through the elements from some place on.
pub(super) struct Walker<'a> {
    bytes: BufReader<Stream<'a>>,
    at: u64,
    len: u64,
    implicit: bool,
    within: Vec<Within>,
    place: Vec<(Tag, u32)>,
    /// The value of the element given last.
    pending: u64,
    spent: u64,
    most: u64,
}

impl<'a> Walker<'a> {
    /// `most` bytes of elements and values are read.
    pub(super) fn new(file: &'a SlideFile, at: u64, implicit: bool, most: u64) -> Self {
        Self {
            bytes: BufReader::with_capacity(AHEAD, file.part(at.min(file.len), file.len)),
            at,
            len: file.len,
            implicit,
            within: Vec::new(),
            place: Vec::new(),
            pending: 0,
            spent: 0,
            most,
        }
    }

    /// Where the element given last is.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Counts bytes that the header makes us hold.
    pub(super) fn spend(&mut self, n: u64) -> Result<(), Fault> {
        self.spent = self.spent.saturating_add(n);
        let all = self.spent.into();
        check("fields", self.most, all, || "a DICOM header".into()).map_err(Fault::from)
    }

    fn read<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        let end = self.end();
        if end - self.at < N as u64 {
            return Err(format!("cut short within its header at byte {}", self.at).into());
        }
        self.bytes.read_exact(&mut bytes).map_err(|e| Fault::read(self.at, &e))?;
        self.at += N as u64;
        Ok(bytes)
    }

    /// Where that ends which contains what comes next; never before the place reached.
    fn end(&self) -> u64 {
        let known = self.within.iter().rev().find_map(|w| match w {
            Within::Sequence { end, .. } | Within::Item { end, .. } => *end,
        });
        known.unwrap_or(self.len).max(self.at)
    }

    fn skip(&mut self, n: u64) -> Result<(), Fault> {
        let step = i64::try_from(n).map_err(|_| "a value longer than any file")?;
        self.bytes.seek_relative(step).map_err(|e| Fault::read(self.at, &e))?;
        self.at += n;
        Ok(())
    }

    fn tag(&mut self) -> Result<Tag, Fault> {
        let b = self.read::<4>()?;
        Ok(Tag(u16::from_le_bytes([b[0], b[1]]), u16::from_le_bytes([b[2], b[3]])))
    }

    fn long(&mut self) -> Result<u32, Fault> {
        self.read::<4>().map(u32::from_le_bytes)
    }

    /// Where something of this length ends; it is within what contains it.
    fn inside(&self, len: u64, what: &dyn Fn() -> String) -> Result<u64, Fault> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.end());
        end.ok_or_else(|| {
            format!("{} of {len} bytes reaches beyond what contains it", what()).into()
        })
    }

    /// The next element that has a value; sequences are gone into. `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Element>, Fault> {
        let pending = std::mem::take(&mut self.pending);
        self.skip(pending)?;
        loop {
            match self.within.last().copied() {
                Some(
                    Within::Sequence { end: Some(end), .. } | Within::Item { end: Some(end), .. },
                ) if end <= self.at => {
                    self.leave();
                }
                Some(Within::Sequence { opaque, implicit, .. }) => self.item(opaque, implicit)?,
                None if self.at == self.len => return Ok(None),
                within => {
                    let (end, implicit) = match within {
                        Some(Within::Item { end, implicit }) => (Some(end), implicit),
                        _ => (None, self.implicit),
                    };
                    let tag = self.tag()?;
                    self.spend(8)?;
                    // An item that does not state its length ends by a mark.
                    if tag == ITEM_END && end == Some(None) {
                        self.long()?;
                        self.leave();
                    } else if let Some(element) = self.element(tag, implicit)? {
                        return Ok(Some(element));
                    }
                }
            }
        }
    }

    fn leave(&mut self) {
        if let Some(Within::Sequence { .. }) = self.within.pop() {
            self.place.pop();
        }
    }

    /// The next item of a sequence, or its end.
    fn item(&mut self, opaque: bool, implicit: bool) -> Result<(), Fault> {
        let (tag, len) = (self.tag()?, self.long()?);
        self.spend(8)?;
        match tag {
            SEQUENCE_END => self.leave(),
            ITEM => {
                if let Some((_, number)) = self.place.last_mut() {
                    *number = number.wrapping_add(1);
                }
                let end = match len {
                    UNDEFINED => None,
                    len => Some(self.inside(len.into(), &|| "an item".into())?),
                };
                match (opaque, end) {
                    (true, Some(end)) => self.skip(end - self.at)?,
                    (true, None) => return Err("a fragment without a length".into()),
                    _ => self.within.push(Within::Item { end, implicit }),
                }
            }
            other => return Err(format!("{other} where an item is expected").into()),
        }
        Ok(())
    }

    /// The element of this tag, unless it is a sequence.
    fn element(&mut self, tag: Tag, implicit: bool) -> Result<Option<Element>, Fault> {
        if tag.0 == 0xFFFE {
            return Err(format!("{tag} where an element is expected").into());
        }
        let (vr, len) = if implicit {
            (known_vr(tag), self.long()?)
        } else {
            let b = self.read::<4>()?;
            let vr = VR::from_binary([b[0], b[1]]).ok_or_else(|| {
                format!("{tag} at byte {} is of no kind that DICOM knows", self.at - 8)
            })?;
            let short = u16::from_le_bytes([b[2], b[3]]);
            (vr, if is_long(vr) { self.long()? } else { short.into() })
        };
        let pixels = tag == tags::PIXEL_DATA;
        let sequence = vr == VR::SQ || (len == UNDEFINED && !(pixels && self.place.is_empty()));
        if sequence {
            let end = match len {
                UNDEFINED => None,
                len => Some(self.inside(len.into(), &|| format!("the sequence {tag}"))?),
            };
            if self.within.len() >= 2 * DEEPEST {
                return Err(format!("sequences within sequences, {DEEPEST} deep").into());
            }
            self.place.push((tag, u32::MAX));
            // What is unknown is a sequence written without kinds.
            let implicit = implicit || vr == VR::UN;
            let opaque = pixels || (vr != VR::SQ && vr != VR::UN);
            self.within.push(Within::Sequence { end, opaque, implicit });
            return Ok(None);
        }
        let len = (len != UNDEFINED).then_some(u64::from(len));
        if let Some(len) = len {
            self.inside(len, &|| format!("{tag}"))?;
            self.pending = len;
        }
        Ok(Some(Element { tag, vr, at: self.at, len }))
    }

    /// The value of the element given last, or its first `most` bytes.
    pub(super) fn value(&mut self, most: u64) -> Result<Vec<u8>, Fault> {
        let n = self.pending.min(most);
        self.spend(n)?;
        let mut value = vec![0; n as usize];
        self.bytes.read_exact(&mut value).map_err(|e| Fault::read(self.at, &e))?;
        self.at += n;
        self.pending -= n;
        Ok(value)
    }
}

/// Whether the length of such values is written with four bytes.
pub(super) fn is_long(vr: VR) -> bool {
    use VR::{OB, OD, OF, OL, OV, OW, SQ, SV, UC, UN, UR, UT, UV};
    matches!(vr, OB | OD | OF | OL | OV | OW | SQ | SV | UC | UN | UR | UT | UV)
}

/// Whether bytes may hold words; those longer than [`LONGEST`], of which `value` is the start, may hold anything.
pub(super) fn may_hold_words(value: &[u8], len: u64) -> bool {
    len > LONGEST || holds_words(value)
}

pub(super) fn known_vr(tag: Tag) -> VR {
    StandardDataDictionary.by_tag(tag).map_or(VR::UN, |e| e.vr().relaxed())
}

/// Whether an attribute belongs to a picture or a curve to be laid over the pixels (groups 60xx and 50xx).
pub(super) fn is_overlay(tag: Tag) -> bool {
    matches!(tag.0 >> 8, 0x50 | 0x60)
}

/// The bits of such a picture, or the points of such a curve.
pub(super) fn is_overlay_data(tag: Tag) -> bool {
    is_overlay(tag) && tag.1 == 0x3000
}

/// The name of an attribute in the standard.
pub(super) fn keyword(tag: Tag) -> Option<&'static str> {
    let private = tag.0 % 2 == 1;
    StandardDataDictionary.by_tag(tag).filter(|_| !private).map(|e| e.alias)
}

/// How the value of an attribute is read.
pub(super) enum Kind {
    Text { several: bool },
    Number,
    Bytes,
}

pub(super) fn kind(vr: VR) -> Kind {
    match vr {
        VR::LT | VR::ST | VR::UT | VR::UR => Kind::Text { several: false },
        VR::AE | VR::AS | VR::CS | VR::DA | VR::DS | VR::DT | VR::IS | VR::LO => {
            Kind::Text { several: true }
        }
        VR::PN | VR::SH | VR::TM | VR::UC | VR::UI => Kind::Text { several: true },
        VR::US | VR::SS | VR::UL | VR::SL | VR::UV | VR::SV | VR::FL | VR::FD => Kind::Number,
        _ => Kind::Bytes,
    }
}
