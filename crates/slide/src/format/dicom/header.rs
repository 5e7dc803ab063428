//! What the header of a slide image states, as far as it is needed or may be shown.

use super::content;
use super::element::{
    Element, Kind, LONGEST, Place, Walker, is_overlay_data, keyword, kind, may_hold_words,
};
use super::syntax;
use crate::file::SlideFile;
use crate::limits::{Fault, Limits};
use crate::privacy;
use dicom_core::{Tag, VR};
use dicom_dictionary_std::tags;
use std::collections::{BTreeMap, HashMap};

/// VL Whole Slide Microscopy Image Storage.
const WHOLE_SLIDE: &str = "1.2.840.10008.5.1.4.1.1.77.1.6";
/// Where the first element is: behind 128 bytes and `DICM`.
pub(super) const HEAD: u64 = 132;

/// Where pixel data are; without a length they are in fragments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pixels {
    pub(super) at: u64,
    pub(super) len: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) syntax: String,
    pub(super) class: String,
    pub(super) series: String,
    pub(super) instance: String,
    /// Third value of the image type: `VOLUME`, `LABEL`, `OVERVIEW`, `THUMBNAIL`.
    pub(super) flavour: String,
    /// Whether the fourth value of the image type states that it is a reduced copy of another image.
    pub(super) reduced: bool,
    /// Width and height of the whole.
    pub(super) size: (u64, u64),
    /// Width and height of a frame.
    pub(super) frame: (u64, u64),
    pub(super) frames: u64,
    pub(super) samples: u64,
    pub(super) bits: [u64; 3],
    pub(super) signed: bool,
    pub(super) planar: bool,
    pub(super) photometric: String,
    pub(super) organization: String,
    pub(super) focal_planes: u64,
    pub(super) optical_paths: u64,
    /// Millimetres per pixel, across and down.
    pub(super) spacing: Option<(f64, f64)>,
    /// The same as the file has it: down, then across.
    pub(super) spacing_written: String,
    /// A spacing that another place of the file states, where it differs: which place, and as the file has it.
    pub(super) other_spacing: Option<(&'static str, String)>,
    /// Millimetres that the whole covers, across and down; 0 where that is not stated.
    pub(super) volume: (f64, f64),
    pub(super) power: Option<String>,
    /// Attributes by which the file states that its pixels show the label or other writing.
    pub(super) writing: Vec<&'static str>,
    /// Of an image in several files.
    pub(super) concatenation: Option<String>,
    pub(super) first_frame: u64,
    /// In how many files it is, where that is stated.
    pub(super) concatenated: Option<u64>,
    /// Left and top edge of each frame, from 1 on, where the frames state it.
    pub(super) positions: Vec<(Option<i64>, Option<i64>)>,
    /// Where frames start, of a table that is wider than the usual one.
    pub(super) offsets: Option<(u64, u64)>,
    pub(super) pixels: Option<Pixels>,
    /// Place of the first element after the meta information.
    pub(super) data_set: u64,
    pub(super) properties: BTreeMap<String, String>,
    /// Attributes whose bytes are to be looked into.
    pub(super) contents: Vec<Content>,
    /// Attributes of single frames, by the tags of their place: whether a personal value is still looked for.
    watched: HashMap<Vec<Tag>, bool>,
}

/// An attribute whose bytes are to be looked into, and where they are.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) name: String,
    pub(super) tag: Tag,
    pub(super) at: u64,
    pub(super) len: u64,
}

/// Whether a file is one of DICOM.
pub(super) fn is_dicom(file: &SlideFile) -> bool {
    let mut magic = [0; 4];
    file.len >= HEAD && file.read_at(&mut magic, HEAD - 4).is_ok() && magic == *b"DICM"
}

/// The group of the element that starts here.
fn group(file: &SlideFile, at: u64) -> Option<u16> {
    let mut tag = [0; 2];
    let there = at.checked_add(2).is_some_and(|end| end <= file.len);
    (there && file.read_at(&mut tag, at).is_ok()).then(|| u16::from_le_bytes(tag))
}

impl Header {
    /// Reads a header up to the pixels.
    pub(super) fn read(file: &SlideFile, limits: &Limits) -> Result<Self, Fault> {
        let mut header = Self::default();
        let end = header.fill(file, limits, None);
        end.map(|_| header)
    }

    /// Reads the header of a file that may belong to a series, and what keeps it from being read; of another series,
    /// and of anything but a slide: `None`. A file that is damaged before it names its series may be a missing level.
    pub(super) fn of_series(
        file: &SlideFile,
        limits: &Limits,
        series: &str,
    ) -> Option<(Self, Option<Fault>)> {
        let mut header = Self::default();
        let fault = match header.fill(file, limits, Some(series)) {
            Ok(true) => None,
            // A damaged label or overview is named as one; the slide is sound without it.
            Err(Fault::Damaged(_)) if header.is_associated() && header.series == series => None,
            Err(fault) if header.series == series => Some(fault),
            Err(fault @ Fault::Damaged(_)) if header.may_be_of_any_series() => Some(fault),
            Ok(false) if header.pixels.is_none() && header.may_be_of_any_series() => {
                Some("it ends before it names its series".into())
            }
            _ => return None,
        };
        Some((header, fault))
    }

    fn may_be_of_any_series(&self) -> bool {
        self.series.is_empty() && (self.class.is_empty() || self.is_slide())
    }

    /// Whether it is a picture next to the slide: label, overview or thumbnail.
    fn is_associated(&self) -> bool {
        self.is_slide() && !matches!(self.flavour.as_str(), "" | "VOLUME")
    }

    /// Whether it is one of a slide's pictures.
    pub(super) fn is_slide(&self) -> bool {
        self.class == WHOLE_SLIDE
    }

    /// Whether the file is one of the wanted series.
    fn fill(
        &mut self,
        file: &SlideFile,
        limits: &Limits,
        wanted: Option<&str>,
    ) -> Result<bool, Fault> {
        (self.frames, self.samples) = (1, 1);
        let mut at = HEAD;
        let mut walker = Walker::new(file, at, false, limits.fields);
        // The first group is always written with kinds, what follows it perhaps not.
        while matches!(group(file, at), Some(2)) {
            let Some(element) = walker.next()? else { break };
            self.take(&mut walker, element)?;
            at = element.at + element.len.unwrap_or(0);
        }
        let implicit = match self.syntax.as_str() {
            "" => return Err("no transfer syntax".into()),
            syntax::IMPLICIT => true,
            uid @ (syntax::BIG_ENDIAN | syntax::DEFLATED) => {
                let what = format!("transfer syntax {uid} ({})", syntax::name(uid));
                return Err(Fault::Unsupported(what));
            }
            _ => false,
        };
        self.data_set = at;
        let mut walker = Walker::new(file, at, implicit, limits.fields);
        while let Some(element) = walker.next()? {
            if element.tag == tags::PIXEL_DATA && walker.place().is_empty() {
                self.pixels = Some(Pixels { at: element.at, len: element.len });
                break;
            }
            self.take(&mut walker, element)?;
            if element.tag == tags::SERIES_INSTANCE_UID
                && walker.place().is_empty()
                && wanted.is_some_and(|w| w != self.series)
            {
                return Ok(false);
            }
        }
        Ok(wanted.is_none_or(|w| w == self.series))
    }

    fn take(&mut self, walker: &mut Walker, element: Element) -> Result<(), Fault> {
        let Element { tag, at, len, .. } = element;
        let len = len.unwrap_or(0);
        let frames = tags::PER_FRAME_FUNCTIONAL_GROUPS_SEQUENCE;
        if len > 0 && content::is_looked_into(tag, element.vr) {
            let name = name(walker.place(), tag);
            walker.spend(128 + name.len() as u64)?;
            self.contents.push(Content { name, tag, at, len });
        }
        match walker.place() {
            [] if tag == tags::EXTENDED_OFFSET_TABLE => self.offsets = Some((at, len)),
            [(t, frame), (tags::PLANE_POSITION_SLIDE_SEQUENCE, 0)] if *t == frames => {
                let frame = *frame as usize;
                let column = match tag {
                    tags::COLUMN_POSITION_IN_TOTAL_IMAGE_PIXEL_MATRIX => true,
                    tags::ROW_POSITION_IN_TOTAL_IMAGE_PIXEL_MATRIX => false,
                    _ => return self.watch(walker, element),
                };
                if len != 4 {
                    return Err(format!("{tag} of {len} bytes").into());
                }
                let value = walker.value(4)?;
                let value = i32::from_le_bytes([value[0], value[1], value[2], value[3]]).into();
                // Items come one after the other: each costs bytes of the file.
                if frame >= self.positions.len() {
                    let new = (frame + 1 - self.positions.len()) as u64;
                    walker.spend(32 * new)?;
                    self.positions.resize(frame + 1, (None, None));
                }
                let place = &mut self.positions[frame];
                *(if column { &mut place.0 } else { &mut place.1 }) = Some(value);
                return Ok(());
            }
            [(t, _), (tags::PIXEL_MEASURES_SEQUENCE, 0)]
                if *t == frames && tag == tags::PIXEL_SPACING =>
            {
                return self.compare_spacing(walker, element);
            }
            // What the first frame states represents all, but for persons.
            [(t, frame), ..] if *t == frames && *frame > 0 => return self.watch(walker, element),
            _ => {}
        }
        let Some((values, are_whole)) = stated(walker, element)? else { return Ok(()) };
        if are_whole {
            if walker.place().is_empty() {
                self.field(tag, &values);
            } else {
                self.nested(walker.place(), tag, &values);
            }
        }
        self.note(walker, tag, &values)
    }

    /// Reads the spacing that one frame states, which is that of all frames.
    fn compare_spacing(&mut self, walker: &mut Walker, element: Element) -> Result<(), Fault> {
        let is_first = matches!(walker.place(), [(_, 0), ..]);
        let Some((values, are_whole)) = stated(walker, element)? else { return Ok(()) };
        if are_whole {
            self.space("PixelSpacing of a frame", &values);
        }
        let own = name(walker.place(), element.tag);
        let is_personal = |v: &String| !privacy::personal_parts(&own, v).is_empty();
        match is_first || values.iter().any(is_personal) {
            true => self.note(walker, element.tag, &values),
            false => Ok(()),
        }
    }

    /// Keeps the first spacing, and of the others one that differs.
    fn space(&mut self, place: &'static str, values: &[String]) {
        let (spacing, written) = (spacing(values), values.join("\\"));
        match self.spacing {
            None => (self.spacing, self.spacing_written) = (Some(spacing), written),
            Some(first) if self.other_spacing.is_none() && first != spacing => {
                // Two that are not numbers are compared as text.
                if written != self.spacing_written {
                    self.other_spacing = Some((place, written));
                }
            }
            Some(_) => {}
        }
    }

    /// Notes what an attribute of a frame states about people: of all frames one value, as there may be 100,000.
    fn watch(&mut self, walker: &mut Walker, element: Element) -> Result<(), Fault> {
        let path: Vec<Tag> = walker.place().iter().map(|(t, _)| *t).chain([element.tag]).collect();
        if self.watched.get(&path) == Some(&false) {
            return Ok(());
        }
        let own = name(walker.place(), element.tag);
        let is_personal = |name: &str, v: &str| !privacy::personal_parts(name, v).is_empty();
        if !self.watched.contains_key(&path) {
            walker.spend(128 + size_of_val(&path[..]) as u64)?;
            let frame = walker.place().first().map_or(0, |(_, frame)| *frame);
            let of_first = own.replacen(&format!("[{frame}]"), "[0]", 1);
            let known = self.properties.get(&of_first).is_some_and(|v| is_personal(&of_first, v));
            let watched = !known && privacy::may_be_personal(&own);
            self.watched.insert(path.clone(), watched);
            if !watched {
                return Ok(());
            }
        }
        let Some((values, _)) = stated(walker, element)? else { return Ok(()) };
        if !values.iter().any(|v| is_personal(&own, v)) {
            return Ok(());
        }
        self.watched.insert(path, false);
        self.note(walker, element.tag, &values)
    }

    fn field(&mut self, tag: Tag, values: &[String]) {
        let first = || values.first().cloned().unwrap_or_default();
        let number = || values.first().and_then(|v| v.parse().ok()).unwrap_or(0);
        let length = || values.first().and_then(|v| v.parse().ok()).unwrap_or(0.0);
        match tag {
            tags::IMAGED_VOLUME_WIDTH => self.volume.0 = length(),
            tags::IMAGED_VOLUME_HEIGHT => self.volume.1 = length(),
            tags::PIXEL_SPACING => self.space("PixelSpacing of the data set", values),
            tags::TRANSFER_SYNTAX_UID => self.syntax = first(),
            tags::SOP_CLASS_UID => self.class = first(),
            tags::SERIES_INSTANCE_UID => self.series = first(),
            tags::SOP_INSTANCE_UID => self.instance = first(),
            tags::IMAGE_TYPE => {
                self.flavour = values.get(2).cloned().unwrap_or_default();
                let kind = values.get(3).map(String::as_str);
                self.reduced = matches!(kind, Some("RESAMPLED" | "THUMBNAIL"));
            }
            tags::TOTAL_PIXEL_MATRIX_COLUMNS => self.size.0 = number(),
            tags::TOTAL_PIXEL_MATRIX_ROWS => self.size.1 = number(),
            tags::COLUMNS => self.frame.0 = number(),
            tags::ROWS => self.frame.1 = number(),
            tags::NUMBER_OF_FRAMES => self.frames = number(),
            tags::SAMPLES_PER_PIXEL => self.samples = number(),
            tags::BITS_ALLOCATED => self.bits[0] = number(),
            tags::BITS_STORED => self.bits[1] = number(),
            tags::HIGH_BIT => self.bits[2] = number(),
            tags::PIXEL_REPRESENTATION => self.signed = number() != 0,
            tags::PLANAR_CONFIGURATION => self.planar = number() != 0,
            tags::PHOTOMETRIC_INTERPRETATION => self.photometric = first(),
            tags::DIMENSION_ORGANIZATION_TYPE => self.organization = first(),
            tags::TOTAL_PIXEL_MATRIX_FOCAL_PLANES => self.focal_planes = number(),
            tags::NUMBER_OF_OPTICAL_PATHS => self.optical_paths = number(),
            tags::BURNED_IN_ANNOTATION if first() == "YES" => {
                self.writing.push("BurnedInAnnotation")
            }
            tags::SPECIMEN_LABEL_IN_IMAGE if first() == "YES" => {
                self.writing.push("SpecimenLabelInImage")
            }
            tags::CONCATENATION_UID => self.concatenation = values.first().cloned(),
            tags::CONCATENATION_FRAME_OFFSET_NUMBER => self.first_frame = number(),
            tags::IN_CONCATENATION_TOTAL_NUMBER => self.concatenated = Some(number()),
            _ => {}
        }
    }

    fn nested(&mut self, place: &Place, tag: Tag, values: &[String]) {
        match (place, tag) {
            (
                [(tags::SHARED_FUNCTIONAL_GROUPS_SEQUENCE, _), (tags::PIXEL_MEASURES_SEQUENCE, 0)],
                tags::PIXEL_SPACING,
            ) => self.space("PixelSpacing of all frames", values),
            ([(tags::OPTICAL_PATH_SEQUENCE, 0)], tags::OBJECTIVE_LENS_POWER) => {
                self.power = values.first().cloned();
            }
            _ => {}
        }
    }

    /// Keeps what an attribute states, under the name that OpenSlide gives it.
    fn note(&mut self, walker: &mut Walker, tag: Tag, values: &[String]) -> Result<(), Fault> {
        let name = name(walker.place(), tag);
        for (i, value) in values.iter().enumerate() {
            let name = if values.len() > 1 { format!("{name}[{i}]") } else { name.clone() };
            walker.spend(128 + (name.len() + value.len()) as u64)?;
            self.properties.insert(name, value.clone());
        }
        Ok(())
    }
}

/// Millimetres per pixel, across and down, of values that state them down, then across. What is not a number is not a
/// resolution.
pub(super) fn spacing<S: AsRef<str>>(values: &[S]) -> (f64, f64) {
    let number =
        |i: usize| values.get(i).map_or(f64::NAN, |v| v.as_ref().parse().unwrap_or(f64::NAN));
    (number(1), number(0))
}

/// The name of an attribute with its place.
fn name(place: &Place, tag: Tag) -> String {
    let own = |tag: Tag| {
        keyword(tag).map_or_else(|| format!("({:04X},{:04X})", tag.0, tag.1), str::to_owned)
    };
    let mut name = String::from("dicom");
    for (sequence, item) in place {
        name.push_str(&format!(".{}[{item}]", own(*sequence)));
    }
    name.push_str(&format!(".{}", own(tag)));
    name
}

/// What an attribute states, and whether these are its values and not the length alone; `None` where nothing is to be
/// shown or looked at.
fn stated(walker: &mut Walker, element: Element) -> Result<Option<(Vec<String>, bool)>, Fault> {
    let Element { tag, vr, len, .. } = element;
    let len = len.unwrap_or(0);
    let length = || Ok(Some((vec![format!("{len} bytes")], false)));
    // Lengths of groups state nothing of the slide.
    if tag.1 == 0 {
        return Ok(None);
    }
    // Of a picture within the header, such as an icon, or one to be laid over the pixels.
    if tag == tags::PIXEL_DATA
        || is_overlay_data(tag)
        || (vr == VR::UN && tag.0 % 2 == 0 && len > 0)
        || tag == tags::ICC_PROFILE
    {
        return length();
    }
    if tag.0 % 2 == 1 {
        // Private: nobody but its maker knows what it states. Names of makers are not secret.
        let has_value = len > 0 && !matches!(tag.1, 0x10..=0xFF);
        return if has_value { length() } else { Ok(None) };
    }
    let values = match kind(vr) {
        Kind::Bytes => {
            let name = name(walker.place(), tag);
            let is_text = len > 0
                && privacy::may_be_personal(&name)
                && (!privacy::is_of_bytes(&name) || may_hold_words(&walker.value(LONGEST)?, len));
            return if is_text { length() } else { Ok(None) };
        }
        Kind::Text { several } => text(&walker.value(LONGEST)?, several),
        Kind::Number => numbers(&walker.value(LONGEST)?, vr),
    };
    Ok(Some((values, true)))
}

fn text(value: &[u8], several: bool) -> Vec<String> {
    // Of another character set the letters are not known, and not a concern here.
    let all = String::from_utf8_lossy(value);
    let trimmed = |s: &str| s.trim_matches(['\0', ' ']).to_owned();
    if several { all.split('\\').map(trimmed).collect() } else { vec![trimmed(&all)] }
}

pub(super) fn numbers(value: &[u8], vr: VR) -> Vec<String> {
    fn each<const N: usize>(value: &[u8], render: impl Fn([u8; N]) -> String) -> Vec<String> {
        value.as_chunks::<N>().0.iter().take(16).map(|b| render(*b)).collect()
    }
    match vr {
        VR::US => each(value, |b| u16::from_le_bytes(b).to_string()),
        VR::SS => each(value, |b| i16::from_le_bytes(b).to_string()),
        VR::UL => each(value, |b| u32::from_le_bytes(b).to_string()),
        VR::SL => each(value, |b| i32::from_le_bytes(b).to_string()),
        VR::UV => each(value, |b| u64::from_le_bytes(b).to_string()),
        VR::SV => each(value, |b| i64::from_le_bytes(b).to_string()),
        VR::FL => each(value, |b| f32::from_le_bytes(b).to_string()),
        _ => each(value, |b| f64::from_le_bytes(b).to_string()),
    }
}
