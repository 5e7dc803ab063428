//! A header without what identifies a person, a time or a place: private and free-text attributes go, other personal
//! ones keep their place with a dummy value (DICOM PS3.15, annex E, actions X, Z and D), and unique
//! identifiers are replaced consistently (action U).

use super::content;
use super::element::{Kind, is_long, is_overlay, keyword, kind, known_vr, may_hold_words};
use super::header::numbers;
use crate::icc;
use crate::limits::Fault;
use crate::privacy;
use dicom_core::{Tag, VR};
use dicom_dictionary_std::tags;
use std::collections::HashMap;

const ITEM: Tag = Tag(0xFFFE, 0xE000);
const ITEM_END: Tag = Tag(0xFFFE, 0xE00D);
const SEQUENCE_END: Tag = Tag(0xFFFE, 0xE0DD);
const UNDEFINED: u32 = u32::MAX;
/// Sequences within sequences.
const DEEPEST: usize = 32;
/// Root of the standard's own identifiers: classes, transfer syntaxes, coding schemes.
const STANDARD_ROOT: &str = "1.2.840.10008.";
/// Of this program, for the file's meta information.
const IMPLEMENTATION: &str = "2.25.139841170914307131863094834201374021376";
const IMPLEMENTATION_NAME: &str = "MITHRAS";

/// New identifiers for those of a slide, each the same wherever it occurs. They are drawn, so that the
/// copy does not lead back to the slide.
#[derive(Default)]
pub(crate) struct Identifiers(HashMap<String, String>);

impl Identifiers {
    /// The identifier that replaces `uid`; those of the standard stay.
    pub(crate) fn replace(&mut self, uid: &str) -> String {
        if uid.is_empty() || uid.starts_with(STANDARD_ROOT) {
            return uid.to_owned();
        }
        let new = || format!("2.25.{}", uuid::Uuid::new_v4().as_u128());
        self.0.entry(uid.to_owned()).or_insert_with(new).clone()
    }
}

/// Bytes of a header as they are read.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    implicit: bool,
}

/// An element unchanged.
struct Head {
    tag: Tag,
    vr: VR,
    len: u32,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Fault> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or("an attribute reaches beyond the header")?;
        let part = &self.bytes[self.at..end];
        self.at = end;
        Ok(part)
    }

    fn short(&mut self) -> Result<u16, Fault> {
        self.take(2).map(|b| u16::from_le_bytes([b[0], b[1]]))
    }

    fn long(&mut self) -> Result<u32, Fault> {
        self.take(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    fn tag(&mut self) -> Result<Tag, Fault> {
        Ok(Tag(self.short()?, self.short()?))
    }

    fn head(&mut self) -> Result<Head, Fault> {
        let tag = self.tag()?;
        if tag.0 == ITEM.0 {
            return Ok(Head { tag, vr: VR::UN, len: self.long()? });
        }
        if self.implicit {
            return Ok(Head { tag, vr: known_vr(tag), len: self.long()? });
        }
        let b = self.take(2)?;
        let vr = VR::from_binary([b[0], b[1]]).ok_or("an attribute of an unknown kind")?;
        let short = self.short()?;
        let len = if is_long(vr) { self.long()? } else { short.into() };
        Ok(Head { tag, vr, len })
    }
}

/// Writes headers without persons.
pub(crate) struct Cleaner<'a> {
    identifiers: &'a mut Identifiers,
    /// What was removed or replaced, by name.
    pub(crate) removed: Vec<String>,
    /// Whether the codes of the current item are of a list that is not public: their words may name a person.
    own_codes: bool,
}

/// The attributes of a code that state something.
const CODE: [Tag; 5] = [
    tags::CODE_VALUE,
    tags::CODING_SCHEME_DESIGNATOR,
    tags::CODING_SCHEME_VERSION,
    tags::CODE_MEANING,
    tags::LONG_CODE_VALUE,
];

impl<'a> Cleaner<'a> {
    pub(crate) fn new(identifiers: &'a mut Identifiers) -> Self {
        Self { identifiers, removed: Vec::new(), own_codes: false }
    }

    /// The attributes between the meta information and the pixel data.
    pub(crate) fn header(&mut self, bytes: &[u8], implicit: bool) -> Result<Vec<u8>, Fault> {
        let mut reader = Reader { bytes, at: 0, implicit };
        let mut all: Vec<(Tag, Vec<u8>)> = Vec::new();
        while reader.at < bytes.len() {
            let head = reader.head()?;
            let tag = head.tag;
            if let Some(element) = self.element(&mut reader, &head, "dicom", 0)? {
                all.push((tag, element));
            }
        }
        for (tag, vr, value) in [
            (tags::PATIENT_IDENTITY_REMOVED, VR::CS, "YES"),
            (tags::DEIDENTIFICATION_METHOD, VR::LO, "mithras slide deidentify"),
        ] {
            all.retain(|(t, _)| *t != tag);
            all.push((tag, written(tag, vr, value.as_bytes(), implicit)));
        }
        all.sort_by_key(|(tag, _)| *tag);
        Ok(all.into_iter().flat_map(|(_, b)| b).collect())
    }

    fn element(
        &mut self,
        reader: &mut Reader<'_>,
        head: &Head,
        place: &str,
        depth: usize,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let Head { tag, vr, len } = *head;
        if depth > DEEPEST {
            return Err(format!("sequences within sequences, {DEEPEST} deep").into());
        }
        let own =
            keyword(tag).map_or_else(|| format!("({:04X},{:04X})", tag.0, tag.1), str::to_owned);
        let name = format!("{place}.{own}");
        let is_private = tag.0 % 2 == 1;
        if vr == VR::SQ || len == UNDEFINED {
            // What is unknown is a sequence written without kinds.
            let implicit = reader.implicit;
            reader.implicit |= vr == VR::UN;
            let items = self.sequence(reader, len, &name, depth);
            reader.implicit = implicit;
            let items = items?;
            if is_private || vr != VR::SQ || is_overlay(tag) {
                self.removed.push(name);
                return Ok(None);
            }
            return Ok(Some(written(tag, vr, &items, implicit)));
        }
        let value = reader.take(len as usize)?;
        if is_private || tag.1 == 0 || matches!(vr, VR::UN) || is_overlay(tag) {
            if len > 0 && tag.1 != 0 {
                self.removed.push(name);
            }
            return Ok(None);
        }
        let implicit = reader.implicit;
        if tag == tags::ICC_PROFILE {
            return Ok(Some(written(tag, vr, &icc::blanked(value), implicit)));
        }
        if vr == VR::UI {
            let all = String::from_utf8_lossy(value);
            let new: Vec<String> = all
                .split('\\')
                .map(|uid| self.identifiers.replace(uid.trim_matches(['\0', ' '])))
                .collect();
            return Ok(Some(written(tag, vr, new.join("\\").as_bytes(), implicit)));
        }
        let text = match kind(vr) {
            Kind::Number => numbers(value, vr).join("\\"),
            _ => String::from_utf8_lossy(value).into_owned(),
        };
        let text = text.trim_matches(['\0', ' ']);
        let is_content = content::is_looked_into(tag, vr);
        let holds_text = is_content && !content::texts(&name, tag, value).is_empty();
        let holds_none = privacy::is_of_bytes(&name) && !may_hold_words(value, len.into());
        // Outside of a sequence the standard has no codes.
        let may_be_own = self.own_codes || depth == 0;
        let is_own_code = may_be_own && CODE.contains(&tag) && !privacy::is_blank(text);
        let is_technical = match is_content && privacy::personal(&name).is_none() {
            true => !holds_text,
            false => privacy::personal_parts(&name, text).is_empty(),
        };
        if holds_none || !is_own_code && is_technical {
            return Ok(Some(written(tag, vr, value, implicit)));
        }
        let codes = match privacy::personal(&name) {
            None => privacy::known_codes(text),
            Some(_) => String::new(),
        };
        self.removed.push(name);
        let dummy: Option<&str> = match vr {
            VR::PN => Some("Anonymous"),
            VR::DA => Some("19000101"),
            VR::TM => Some("000000"),
            VR::DT => Some("19000101000000"),
            VR::LO | VR::SH | VR::UC | VR::AE => Some("removed"),
            VR::CS => Some(&codes),
            VR::AS | VR::DS | VR::IS => Some(""),
            VR::US | VR::SS | VR::UL | VR::SL | VR::FL | VR::FD | VR::UV | VR::SV => Some(""),
            _ => None,
        };
        Ok(dummy.map(|dummy| written(tag, vr, dummy.as_bytes(), implicit)))
    }

    /// The items of a sequence, each with its length.
    fn sequence(
        &mut self,
        reader: &mut Reader<'_>,
        len: u32,
        name: &str,
        depth: usize,
    ) -> Result<Vec<u8>, Fault> {
        let end = (len != UNDEFINED).then(|| reader.at + len as usize);
        let mut out = Vec::new();
        let mut number = 0;
        while end.is_none_or(|end| reader.at < end) {
            let head = reader.head()?;
            match head.tag {
                SEQUENCE_END => break,
                ITEM => {}
                other => return Err(format!("{other} where an item is expected").into()),
            }
            let item = self.item(reader, head.len, &format!("{name}[{number}]"), depth)?;
            out.extend([0xFE, 0xFF, 0x00, 0xE0]);
            out.extend((item.len() as u32).to_le_bytes());
            out.extend(item);
            number += 1;
        }
        Ok(out)
    }

    fn item(
        &mut self,
        reader: &mut Reader<'_>,
        len: u32,
        place: &str,
        depth: usize,
    ) -> Result<Vec<u8>, Fault> {
        let end = (len != UNDEFINED).then(|| reader.at + len as usize);
        let mut out = Vec::new();
        let of_all = std::mem::replace(&mut self.own_codes, has_own_codes(reader, end));
        while end.is_none_or(|end| reader.at < end) {
            let head = reader.head()?;
            if head.tag == ITEM_END {
                break;
            }
            if let Some(element) = self.element(reader, &head, place, depth + 1)? {
                out.extend(element);
            }
        }
        self.own_codes = of_all;
        Ok(out)
    }
}

/// Whether an item has a code of a list that is not public. Attributes of a code are the first of their item.
fn has_own_codes(reader: &Reader<'_>, end: Option<usize>) -> bool {
    let mut ahead = Reader { ..*reader };
    let (mut is_code, mut scheme) = (false, None);
    while end.is_none_or(|end| ahead.at < end) {
        let Ok(head) = ahead.head() else { break };
        if head.tag.0 > tags::CODE_VALUE.0 || head.vr == VR::SQ || head.len == UNDEFINED {
            break;
        }
        let Ok(value) = ahead.take(head.len as usize) else { break };
        is_code |= CODE.contains(&head.tag);
        if head.tag == tags::CODING_SCHEME_DESIGNATOR {
            scheme = Some(String::from_utf8_lossy(value).into_owned());
        }
    }
    let is_public = |s: String| privacy::is_public_scheme(s.trim_matches(['\0', ' ']));
    is_code && !scheme.is_some_and(is_public)
}

/// An element with its value, padded to an even length.
fn written(tag: Tag, vr: VR, value: &[u8], implicit: bool) -> Vec<u8> {
    let mut value = value.to_vec();
    if value.len() % 2 == 1 {
        let text = !matches!(vr, VR::UI | VR::OB | VR::OW | VR::UN);
        value.push(if text { b' ' } else { 0 });
    }
    let mut out = [tag.0.to_le_bytes(), tag.1.to_le_bytes()].concat();
    if implicit {
        out.extend((value.len() as u32).to_le_bytes());
    } else {
        out.extend(vr.to_bytes());
        if is_long(vr) {
            out.extend([0, 0]);
            out.extend((value.len() as u32).to_le_bytes());
        } else {
            out.extend((value.len() as u16).to_le_bytes());
        }
    }
    out.extend(value);
    out
}

/// Preamble, magic and meta information of a file.
pub(crate) fn meta(class: &str, instance: &str, syntax: &str) -> Vec<u8> {
    let text = |tag: Tag, vr: VR, value: &str| written(tag, vr, value.as_bytes(), false);
    let mut group = written(tags::FILE_META_INFORMATION_VERSION, VR::OB, &[0, 1], false);
    group.extend(text(tags::MEDIA_STORAGE_SOP_CLASS_UID, VR::UI, class));
    group.extend(text(tags::MEDIA_STORAGE_SOP_INSTANCE_UID, VR::UI, instance));
    group.extend(text(tags::TRANSFER_SYNTAX_UID, VR::UI, syntax));
    group.extend(text(tags::IMPLEMENTATION_CLASS_UID, VR::UI, IMPLEMENTATION));
    group.extend(text(tags::IMPLEMENTATION_VERSION_NAME, VR::SH, IMPLEMENTATION_NAME));
    let mut out = vec![0; 128];
    out.extend(b"DICM");
    let len = (group.len() as u32).to_le_bytes();
    out.extend(written(tags::FILE_META_INFORMATION_GROUP_LENGTH, VR::UL, &len, false));
    out.extend(group);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: Tag, vr: VR, value: &str) -> Vec<u8> {
        written(tag, vr, value.as_bytes(), false)
    }

    #[test]
    fn persons_go_and_identifiers_change_together() {
        let mut bytes = element(tags::SOP_INSTANCE_UID, VR::UI, "1.2.3");
        bytes.extend(element(Tag(9, 0x10), VR::LO, "MAKER"));
        bytes.extend(element(tags::PATIENT_NAME, VR::PN, "Doe^Jane"));
        let nested = element(tags::REFERENCED_SOP_INSTANCE_UID, VR::UI, "1.2.3");
        let mut item = vec![0xFE, 0xFF, 0x00, 0xE0];
        item.extend(UNDEFINED.to_le_bytes());
        item.extend(&nested);
        item.extend([0xFE, 0xFF, 0x0D, 0xE0, 0, 0, 0, 0]);
        let mut sequence = [0x08, 0x00, 0x40, 0x11, b'S', b'Q', 0, 0].to_vec();
        sequence.extend(UNDEFINED.to_le_bytes());
        sequence.extend(item);
        sequence.extend([0xFE, 0xFF, 0xDD, 0xE0, 0, 0, 0, 0]);
        bytes.extend(sequence);
        // A picture to be laid over the pixels may show writing.
        bytes.extend(written(Tag(0x6000, 0x0010), VR::US, &[8, 0], false));
        bytes.extend(written(Tag(0x6000, 0x3000), VR::OW, b"WRITING!", false));
        let mut identifiers = Identifiers::default();
        let new = identifiers.replace("1.2.3");
        assert_ne!(new, "1.2.3");
        assert_eq!(identifiers.replace("1.2.840.10008.1.2.1"), "1.2.840.10008.1.2.1");
        let mut cleaner = Cleaner::new(&mut identifiers);
        let out = cleaner.header(&bytes, false).unwrap();
        let text = String::from_utf8_lossy(&out).into_owned();
        assert_eq!(text.matches(&new).count(), 2, "{text}");
        assert!(!text.contains("Doe") && !text.contains("MAKER") && text.contains("YES"), "{text}");
        assert!(!text.contains("WRITING"), "{text}");
        let [rows, data] = ["dicom.OverlayRows", "dicom.OverlayData"];
        assert_eq!(cleaner.removed, ["dicom.(0009,0010)", "dicom.PatientName", rows, data]);
        for cut in 0..bytes.len() {
            let _ = cleaner.header(&bytes[..cut], false);
        }
    }
}
