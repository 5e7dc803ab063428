//! Attributes that are judged by their bytes: tables of numbers, colour profiles, and values of bytes where the
//! standard has another kind. Anybody may have written words there, and their names state nothing of it.

use super::element::{Kind, is_overlay_data, keyword, kind};
use crate::icc;
use crate::privacy::{self, holds_words, kind_in_the_standard};
use dicom_core::{Tag, VR};
use dicom_dictionary_std::tags;

/// Longest value that is looked into, bytes; a longer one may hold anything. Tables have 128 KiB at most, profiles of
/// scanners less than 1 MiB, tables of places 8 bytes a frame.
pub(super) const MOST: u64 = 16 << 20;
/// A place in a file, or a length, is below it; eight letters as a number are not.
const PLACE: u64 = 1 << 48;

/// Whether the bytes of an attribute are looked into, whatever its name is.
pub(super) fn is_looked_into(tag: Tag, vr: VR) -> bool {
    let is_other = tag.0 % 2 == 1 || tag.1 == 0 || tag == tags::PIXEL_DATA || is_overlay_data(tag);
    if is_other || vr == VR::SQ {
        return false;
    }
    let is_of_bytes = matches!(kind(vr), Kind::Bytes);
    let may_be = is_of_bytes || matches!(vr, VR::US | VR::SS);
    may_be
        && keyword(tag).is_some_and(|own| {
            let is_table = tag == tags::ICC_PROFILE || privacy::is_table(own);
            let known = kind_in_the_standard(own);
            is_table || is_of_bytes && known.is_some_and(|k| !matches!(kind(k), Kind::Bytes))
        })
}

/// The names under which the bytes of such an attribute hold words.
pub(super) fn texts(name: &str, tag: Tag, value: &[u8]) -> Vec<String> {
    let is_place = |b: &[u8; 8]| u64::from_le_bytes(*b) < PLACE;
    let holds = match tag {
        tags::ICC_PROFILE => {
            return icc::texts(value).into_iter().map(|(own, _)| format!("{name}.{own}")).collect();
        }
        tags::EXTENDED_OFFSET_TABLE | tags::EXTENDED_OFFSET_TABLE_LENGTHS => {
            let (places, rest) = value.as_chunks::<8>();
            !(rest.is_empty() && places.iter().all(is_place)) && holds_words(value)
        }
        _ if keyword(tag).is_some_and(privacy::is_table) => privacy::table_holds_words(value),
        _ => holds_words(value),
    };
    if holds { vec![name.to_owned()] } else { Vec::new() }
}
