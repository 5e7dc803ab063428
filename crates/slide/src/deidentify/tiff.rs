//! A TIFF with the levels and the thumbnail of another one, and of its fields those that are needed.

use super::DeidentifyError;
use super::error::disk;
use super::written::Written;
use crate::format::{Layout, tiff_layout};
use crate::icc;
use crate::inventory::tags::{hides_words, is_bytes, is_text, most_numbers};
use crate::inventory::{JPEG_2000, jp2k_comments, jp2k_texts, without_texts};
use crate::limits::Fault;
use crate::privacy;
use crate::tiff::{Field, Ifd, TiffFile, tag};
use crate::{OpenOptions, Slide, SlideError};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Fields that are copied as they are: those that decode pixels and place them.
const KEPT: [u16; 34] = [
    254, 255, 256, 257, 258, 259, 262, 266, 274, 277, 278, 280, 281, 282, 283, 284, 296, 317, 318,
    319, 320, 322, 323, 332, 334, 336, 338, 339, 529, 530, 531, 532, 32996, 32997,
];
/// TIFF's numbers of types.
const SHORT: u16 = 3;
const LONG: u16 = 4;
const RATIONAL: u16 = 5;
const UNDEFINED: u16 = 7;
const LONG8: u16 = 16;
/// `Compression` of JPEG.
const JPEG: u64 = 7;
/// Resolution of images without a field of their own: pixels per 10,000 centimetres.
const PER_CM: f64 = 10_000.0;

/// A field to be written.
struct NewField {
    tag: u16,
    kind: u16,
    count: u64,
    value: Vec<u8>,
}

/// Writes numbers as the file has them.
#[derive(Clone, Copy)]
struct Form {
    big_endian: bool,
    big_tiff: bool,
}

impl Form {
    /// The header, without the place of the first directory.
    fn head(self) -> &'static [u8] {
        match (self.big_endian, self.big_tiff) {
            (false, false) => b"II*\0\0\0\0\0",
            (true, false) => b"MM\0*\0\0\0\0",
            (false, true) => b"II+\0\x08\0\0\0\0\0\0\0\0\0\0\0",
            (true, true) => b"MM\0+\0\x08\0\0\0\0\0\0\0\0\0\0",
        }
    }

    fn uint(self, value: u64, bytes: usize) -> Vec<u8> {
        let all = value.to_be_bytes();
        let mut own = all[8 - bytes..].to_vec();
        if !self.big_endian {
            own.reverse();
        }
        own
    }

    fn offsets(self, tag: u16, values: &[u64]) -> NewField {
        let (kind, n) = if self.big_tiff { (LONG8, 8) } else { (LONG, 4) };
        let value = values.iter().flat_map(|v| self.uint(*v, n)).collect();
        NewField { tag, kind, count: values.len() as u64, value }
    }
}

pub(super) fn write(
    slide: &Slide,
    output: &Path,
    options: &OpenOptions,
) -> Result<Written, DeidentifyError> {
    let layout = tiff_layout(&slide.path, options)?;
    let Layout { levels, thumbnail, removed, aperio } = layout;
    let levels = used(slide, levels)?;
    let form = Form { big_endian: levels[0].big_endian(), big_tiff: levels[0].big_tiff() };
    let fault = |fault: Fault| DeidentifyError::Slide(slide_error(slide, fault));
    // Aperio's second directory is the thumbnail.
    let mut order: Vec<(&Ifd, bool)> = vec![(&levels[0], false)];
    order.extend(thumbnail.iter().map(|t| (t, true)));
    order.extend(levels[1..].iter().map(|l| (l, false)));
    let file = File::create_new(output).map_err(disk(output))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let head = form.head();
    out.write_all(head).map_err(disk(output))?;
    let mut at = head.len() as u64;
    let (mut tiles, mut digest) = (0, Sha256::new());
    let mut directories = Vec::new();
    for (i, (ifd, is_thumbnail)) in order.iter().enumerate() {
        let mut fields = fields(ifd, aperio).map_err(fault)?;
        if !is_thumbnail && i > 0 && !aperio && !ifd.has(tag::SUBFILE_TYPE) {
            let value = form.uint(1, 4);
            fields.push(NewField { tag: tag::SUBFILE_TYPE, kind: LONG, count: 1, value });
        }
        // The description that is left out may be what states the um/px, as OME-XML does.
        if i == 0 && !fields.iter().any(|f| f.tag == tag::DESCRIPTION) {
            let own = resolution(slide, form);
            fields.retain(|f| own.iter().all(|o| o.tag != f.tag));
            fields.extend(own);
        }
        let (places, sizes) = places(ifd).map_err(fault)?;
        let compression = ifd.uint(tag::COMPRESSION).map_err(fault)?;
        let jpeg_2000 = compression.is_some_and(|c| JPEG_2000.contains(&c));
        let (mut new, mut lengths) = (Vec::new(), Vec::new());
        for (from, n) in places.into_iter().zip(sizes) {
            if n == 0 {
                new.push(0);
                lengths.push(0);
                continue;
            }
            let raw = ifd.data(from, n).map_err(fault)?;
            let own = match compression {
                Some(JPEG) => without_texts(&raw),
                _ if jpeg_2000 => without_comments(&raw),
                _ => Cow::Borrowed(&raw[..]),
            };
            digest.update(&own);
            tiles += 1;
            out.write_all(&own).map_err(disk(output))?;
            new.push(at);
            lengths.push(own.len() as u64);
            at += own.len() as u64;
        }
        let (to, tc) = data_tags(ifd);
        fields.push(form.offsets(to, &new));
        fields.push(form.offsets(tc, &lengths));
        fields.sort_by_key(|f| f.tag);
        directories.push(fields);
    }
    directories_behind(&mut out, form, at, directories).map_err(disk(output))?;
    let file = out.into_inner().map_err(|e| disk(output)(e.into_error()))?;
    file.sync_all().map_err(disk(output))?;
    let copied = digest_data(output, options)?;
    let output = vec![output.to_path_buf()];
    let main = output[0].clone();
    Ok(Written {
        output,
        main,
        removed,
        tiles,
        sha256: base::digest::hex(&digest.finalize()),
        copied,
    })
}

/// The levels without those that show something else than the slide, which may be the label.
fn used(slide: &Slide, levels: Vec<Ifd>) -> Result<Vec<Ifd>, SlideError> {
    let others = slide.disagreements()?;
    let is_used = |(i, _): &(usize, Ifd)| others.iter().all(|d| d.level != *i);
    Ok(levels.into_iter().enumerate().filter(is_used).map(|(_, level)| level).collect())
}

/// The tags of the tiles' places and sizes.
fn data_tags(ifd: &Ifd) -> (u16, u16) {
    if ifd.has(tag::TILE_OFFSETS) {
        (tag::TILE_OFFSETS, tag::TILE_COUNTS)
    } else {
        (tag::STRIP_OFFSETS, tag::STRIP_COUNTS)
    }
}

fn places(ifd: &Ifd) -> Result<(Vec<u64>, Vec<u64>), Fault> {
    let (to, tc) = data_tags(ifd);
    let offsets = ifd.uints(to)?.ok_or("no tile offsets")?;
    Ok((offsets, ifd.uints(tc)?.ok_or("no tile byte counts")?))
}

/// Fields of a directory that are written, without the places of its data.
fn fields(ifd: &Ifd, aperio: bool) -> Result<Vec<NewField>, Fault> {
    let mut all = Vec::new();
    let is_jpeg = ifd.uint(tag::COMPRESSION)? == Some(JPEG);
    let samples = ifd.uint_or(tag::SAMPLES, 1).unwrap_or(1);
    // The first field of a tag is the one that is read.
    for field in ifd.entries().filter(|field| ifd.is_first(field)) {
        let Field { tag: t, kind, count, .. } = *field;
        let value = match t {
            _ if KEPT.contains(&t) && !is_text(kind) => {
                let mut value = ifd.value(field)?;
                let size = value.len() as u64 / count.max(1);
                // Numbers, unless somebody wrote in them.
                let own = most_numbers(t, samples).unwrap_or(count).min(count);
                value.truncate(usize::try_from(own * size).unwrap_or(value.len()));
                if hides_words(t, &value, size, samples)
                    || is_bytes(kind) && privacy::holds_words(&value)
                {
                    continue;
                }
                value
            }
            tag::JPEG_TABLES if is_jpeg => without_texts(&ifd.value(field)?).into_owned(),
            tag::ICC => icc::blanked(&ifd.value(field)?),
            tag::DESCRIPTION if aperio => {
                let text = privacy::without_persons(&ifd.text(t).unwrap_or_default());
                [text.as_bytes(), b"\0"].concat()
            }
            _ => continue,
        };
        let count = match t {
            tag::JPEG_TABLES | tag::ICC | tag::DESCRIPTION => value.len() as u64,
            _ => most_numbers(t, samples).unwrap_or(count).min(count),
        };
        let kind = if t == tag::ICC { UNDEFINED } else { kind };
        all.push(NewField { tag: t, kind, count, value });
    }
    Ok(all)
}

/// The slide's um/px as pixels per centimetre, for a file that loses the field that states it.
fn resolution(slide: &Slide, form: Form) -> Vec<NewField> {
    let Ok(r) = slide.resolution() else { return Vec::new() };
    let rational = |um: f64| {
        let per_cm = (PER_CM / um * PER_CM).round() as u64;
        [form.uint(per_cm, 4), form.uint(PER_CM as u64, 4)].concat()
    };
    let field = |tag, kind, value| NewField { tag, kind, count: 1, value };
    vec![
        field(tag::X_RESOLUTION, RATIONAL, rational(r.x.get())),
        field(tag::Y_RESOLUTION, RATIONAL, rational(r.y.get())),
        field(tag::RESOLUTION_UNIT, SHORT, form.uint(3, 2)),
    ]
}

/// A JPEG 2000 codestream without the comments of its main header, which no other part of it counts; other texts, and
/// those of JP2 boxes, are blanked where they are.
fn without_comments(b: &[u8]) -> Cow<'_, [u8]> {
    let (cut, all) = (jp2k_comments(b), jp2k_texts(b));
    if cut.len() == all.len() {
        return without(b, cut);
    }
    let mut out = b.to_vec();
    all.into_iter().for_each(|place| out[place].fill(0));
    Cow::Owned(out)
}

/// Bytes without some parts, which are in order.
fn without(b: &[u8], parts: Vec<Range<usize>>) -> Cow<'_, [u8]> {
    if parts.is_empty() {
        return Cow::Borrowed(b);
    }
    let mut out = Vec::with_capacity(b.len());
    let mut from = 0;
    for part in parts {
        out.extend_from_slice(&b[from..part.start]);
        from = part.end;
    }
    out.extend_from_slice(&b[from..]);
    Cow::Owned(out)
}

/// Writes the directories behind the data, and the place of the first into the header.
fn directories_behind(
    out: &mut BufWriter<File>,
    form: Form,
    mut at: u64,
    directories: Vec<Vec<NewField>>,
) -> std::io::Result<()> {
    let word = if form.big_tiff { 8 } else { 4 };
    let (count, entry) = if form.big_tiff { (8, 20) } else { (2, 12) };
    let n = directories.len();
    let mut next_at = if form.big_tiff { 8 } else { 4 };
    for fields in directories.into_iter().take(n) {
        // Values that do not fit are stored before their directory.
        let mut entries = Vec::new();
        for f in &fields {
            let mut place = f.value.clone();
            if f.value.len() > word {
                let pad = usize::from(at % 2 == 1);
                out.write_all(&vec![0; pad])?;
                at += pad as u64;
                place = form.uint(at, word);
                out.write_all(&f.value)?;
                at += f.value.len() as u64;
            }
            place.resize(word, 0);
            entries.push([form.uint(f.tag.into(), 2), form.uint(f.kind.into(), 2)].concat());
            entries.push([form.uint(f.count, word), place].concat());
        }
        let pad = usize::from(at % 2 == 1);
        out.write_all(&vec![0; pad])?;
        at += pad as u64;
        let start = at;
        out.write_all(&form.uint(fields.len() as u64, count))?;
        out.write_all(&entries.concat())?;
        out.write_all(&vec![0; word])?;
        at += (count + fields.len() * entry + word) as u64;
        out.seek(SeekFrom::Start(next_at))?;
        out.write_all(&form.uint(start, word))?;
        out.seek(SeekFrom::Start(at))?;
        next_at = at - word as u64;
    }
    out.flush()
}

/// SHA-256 over the data of every directory of a file, in its order.
fn digest_data(path: &Path, options: &OpenOptions) -> Result<String, DeidentifyError> {
    let file = Arc::new(crate::file::SlideFile::open(path, &options.limits)?);
    let wrong = |fault: Fault| {
        DeidentifyError::Slide(SlideError::Malformed {
            path: path.to_path_buf(),
            reason: fault.reason(),
        })
    };
    let tiff = TiffFile::read(&file, &options.limits).map_err(wrong)?;
    let mut digest = Sha256::new();
    for ifd in &tiff.ifds {
        let (offsets, counts) = places(ifd).map_err(wrong)?;
        for (at, n) in offsets.into_iter().zip(counts).filter(|(_, n)| *n > 0) {
            digest.update(ifd.data(at, n).map_err(wrong)?);
        }
    }
    Ok(base::digest::hex(&digest.finalize()))
}

/// What an unusable part makes of the slide.
fn slide_error(slide: &Slide, fault: Fault) -> SlideError {
    match fault {
        Fault::Limit(breach) => SlideError::limit(&slide.path, breach),
        Fault::Read(reason) => SlideError::read(&slide.path, reason),
        other => SlideError::Malformed { path: slide.path.clone(), reason: other.reason() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_leave_a_stream() {
        let b = [
            &[0xFF, 0xD8, 0xFF, 0xFE, 0, 6][..],
            b"Jane",
            &[0xFF, 0xDB, 0, 3, 9, 0xFF, 0xDA, 0, 2, 1, 2, 0xFF, 0xD9],
        ]
        .concat();
        let clean = without_texts(&b);
        assert_eq!(&clean[..], [&b[..2], &b[10..]].concat());
        assert!(matches!(without_texts(&clean), Cow::Borrowed(_)));
        assert_eq!(without_texts(&[&b[..], b"Jane Doe"].concat()), clean);
    }
}
