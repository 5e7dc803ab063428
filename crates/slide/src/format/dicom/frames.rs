//! Where the frames of a file are, and their bytes.

use super::header::{Header, Pixels};
use super::syntax;
use crate::file::SlideFile;
use crate::limits::{Fault, Limits, check};
use std::ops::Range;
use std::sync::Arc;

const ITEM: [u8; 4] = [0xFE, 0xFF, 0x00, 0xE0];
const SEQUENCE_END: [u8; 4] = [0xFE, 0xFF, 0xDD, 0xE0];
/// What a frame holds next to its pixels: headers, profiles.
const OVERHEAD: u64 = 4 << 20;

/// The frames of one file.
pub(crate) struct Frames {
    file: Arc<SlideFile>,
    /// Bytes of one frame as it is when nothing compresses it.
    plain: u64,
    places: Places,
    pub(crate) count: u64,
}

enum Places {
    /// One behind the other from here on.
    Native(u64),
    /// In fragments; where the first one of each frame starts.
    Fragments(Vec<u64>),
}

impl Frames {
    pub(super) fn find(
        file: &Arc<SlideFile>,
        header: &Header,
        limits: &Limits,
    ) -> Result<Self, Fault> {
        let plain = header.frame.0 * header.frame.1 * header.samples;
        let Pixels { at, len } = header.pixels.ok_or("no pixel data")?;
        let count = header.frames;
        let native = matches!(header.syntax.as_str(), syntax::IMPLICIT | syntax::EXPLICIT);
        let places = match (native, len) {
            (true, Some(len)) => {
                let needed = u128::from(plain) * u128::from(count);
                if needed > u128::from(len) {
                    return Err(
                        format!("{count} frames need {needed} bytes, {len} are there").into()
                    );
                }
                let held = u128::from(len) / u128::from(plain.max(1));
                if held > u128::from(count) {
                    return Err(more_frames(count, held));
                }
                Places::Native(at)
            }
            (false, None) => Places::Fragments(starts(file, header, at, limits)?),
            (true, None) => return Err("plain pixels in fragments".into()),
            (false, Some(_)) => return Err("compressed pixels that are in no fragments".into()),
        };
        Ok(Self { file: Arc::clone(file), plain, places, count })
    }

    /// The bytes of one frame.
    pub(crate) fn read(&self, frame: u64) -> Result<Vec<u8>, Fault> {
        let mut data = Vec::new();
        for piece in self.pieces(frame)? {
            let bytes = part(&self.file, piece.start, piece.end - piece.start)?;
            if data.is_empty() {
                data = bytes;
            } else {
                data.extend(bytes);
            }
        }
        Ok(data)
    }

    /// Where the bytes of one frame are in the file, in order.
    pub(crate) fn pieces(&self, frame: u64) -> Result<Vec<Range<u64>>, Fault> {
        let starts = match &self.places {
            Places::Native(at) => {
                let at = at + frame * self.plain;
                return Ok(std::iter::once(at..at + self.plain).collect());
            }
            Places::Fragments(starts) => starts,
        };
        let i = frame as usize;
        let mut at = *starts.get(i).ok_or("no such frame")?;
        let until = starts.get(i + 1).copied();
        let most = 2 * self.plain + OVERHEAD;
        let (mut pieces, mut total) = (Vec::new(), 0);
        while until.is_none_or(|until| at < until) {
            let Some(n) = fragment(&self.file, at)? else { break };
            total += n;
            if total > most {
                return Err(format!("frame {frame} is of more than {most} bytes").into());
            }
            pieces.push(at + 8..at + 8 + n);
            at += 8 + n;
        }
        if until.is_some_and(|until| at != until) {
            return Err(format!("the fragments of frame {frame} do not end where it ends").into());
        }
        Ok(pieces)
    }

    /// The first bytes of one frame, at most so many.
    pub(crate) fn start(&self, frame: u64, most: u64) -> Result<Vec<u8>, Fault> {
        let mut data = Vec::new();
        for piece in self.pieces(frame)? {
            let n = (piece.end - piece.start).min(most - data.len() as u64);
            data.extend(part(&self.file, piece.start, n)?);
        }
        Ok(data)
    }

    /// The last bytes of one frame, at most so many.
    pub(crate) fn end(&self, frame: u64, most: u64) -> Result<Vec<u8>, Fault> {
        let mut data = Vec::new();
        for piece in self.pieces(frame)?.into_iter().rev() {
            let n = (piece.end - piece.start).min(most - data.len() as u64);
            data.splice(..0, part(&self.file, piece.end - n, n)?);
        }
        Ok(data)
    }
}

fn part(file: &SlideFile, at: u64, n: u64) -> Result<Vec<u8>, Fault> {
    if at.checked_add(n).is_none_or(|end| end > file.len) {
        let len = file.len;
        return Err(format!("{n} bytes at {at} are beyond the end of the file ({len})").into());
    }
    let mut buf = vec![0; n as usize];
    file.read_at(&mut buf, at).map_err(|e| Fault::read(at, &e))?;
    Ok(buf)
}

/// Length of the fragment that starts here; `None` behind the last one.
fn fragment(file: &SlideFile, at: u64) -> Result<Option<u64>, Fault> {
    // Some writers leave the end mark out.
    if at == file.len {
        return Ok(None);
    }
    let head = part(file, at, 8)?;
    let len = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    if head[..4] == SEQUENCE_END {
        return Ok(None);
    }
    if head[..4] != ITEM || len == u32::MAX {
        return Err(format!("no fragment at byte {at}").into());
    }
    Ok(Some(len.into()))
}

/// Where the frames of pixel data in fragments start: as a table states, else by looking for them.
fn starts(file: &SlideFile, header: &Header, at: u64, limits: &Limits) -> Result<Vec<u64>, Fault> {
    let table = fragment(file, at)?.ok_or("pixel data without fragments")?;
    let base = at + 8 + table;
    let count = header.frames;
    let what = || format!("the places of {count} frames");
    check("fields", limits.fields, 8 * u128::from(count), what)?;
    // From the first fragment's start on, rising.
    let sound = |offsets: Vec<u64>| {
        let rising = offsets.windows(2).all(|w| w[0] < w[1]) && offsets.first() == Some(&0);
        let inside = offsets.last().is_some_and(|o| *o < file.len.saturating_sub(base));
        (rising && inside).then(|| offsets.iter().map(|o| base + o).collect::<Vec<_>>())
    };
    let wide = header.offsets.filter(|(_, len)| *len == 8 * count);
    if let Some((at, len)) = wide {
        let offsets = part(file, at, len)?;
        let offsets = offsets.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b));
        if let Some(starts) = sound(offsets.collect()) {
            return ended(file, header, starts);
        }
    }
    if table > 0 && table == 4 * count {
        let offsets = part(file, at + 8, table)?;
        let offsets = offsets.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b).into());
        // In a file of more than 4 GiB they may have turned over.
        if let Some(starts) = sound(offsets.collect()) {
            return ended(file, header, starts);
        }
    }
    walk(file, base, count, limits)
}

/// A file that has more frames than it states: which are meant, nobody here can know.
fn more_frames(stated: u64, held: u128) -> Fault {
    format!("NumberOfFrames is {stated}, and the pixels are those of {held} frames").into()
}

/// Whether the last frame of a table is the last image. On a server that would take requests of their own.
fn ended(file: &SlideFile, header: &Header, starts: Vec<u64>) -> Result<Vec<u64>, Fault> {
    let Some(&last) = starts.last().filter(|_| !file.is_remote()) else { return Ok(starts) };
    // A frame of RLE is one fragment.
    let is_rle = header.syntax == syntax::RLE;
    let (mut at, mut images) = (last, 0);
    while let Some(n) = fragment(file, at)? {
        if is_rle || starts_image(&part(file, at + 8, n.min(4))?) {
            images += 1;
        }
        at += 8 + n;
    }
    match images {
        0 | 1 => Ok(starts),
        _ => Err(more_frames(header.frames, starts.len() as u128 + images - 1)),
    }
}

/// Goes from fragment to fragment.
fn walk(file: &SlideFile, base: u64, count: u64, limits: &Limits) -> Result<Vec<u64>, Fault> {
    let mut at = base;
    let (mut all, mut first) = (Vec::new(), Vec::new());
    while let Some(n) = fragment(file, at)? {
        let end = at + 8 + n;
        if end > file.len {
            return Err(format!("no whole fragment at byte {at}").into());
        }
        let held = 16 * (all.len() as u128 + 1);
        check("fields", limits.fields, held, || "the places of fragments".into())?;
        all.push(at);
        if starts_image(&part(file, at + 8, n.min(4))?) {
            first.push(at);
        }
        at = end;
    }
    if all.len() as u64 == count {
        return Ok(all);
    }
    if count == 1 && !all.is_empty() {
        if first.len() > 1 {
            return Err(more_frames(count, first.len() as u128));
        }
        return Ok(vec![base]);
    }
    if first.len() as u64 == count && first.first() == Some(&base) {
        return Ok(first);
    }
    Err(format!("{count} frames in {} fragments, and nothing states which are whose", all.len())
        .into())
}

/// Whether a stream of JPEG or JPEG 2000 begins so.
fn starts_image(head: &[u8]) -> bool {
    head.starts_with(&[0xFF, 0xD8, 0xFF])
        || head.starts_with(&[0xFF, 0x4F, 0xFF, 0x51])
        || head.starts_with(&[0, 0, 0, 12])
}
