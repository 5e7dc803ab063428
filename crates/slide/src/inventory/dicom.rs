//! Comments and application data within the compressed frames of a series: JPEG's and JPEG 2000's.

use super::{FileText, jp2k, jpeg};
use crate::file::SlideFile;
use crate::format::dicom_files::{self, FileFrames, Frames};
use crate::jpeg::{has_one_scan, has_scan};
use crate::limits::{Fault, Limits};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes in which the header of most frames ends.
const SHORT_HEADER: u64 = 1 << 10;
/// Bytes at the end of a frame in which its end mark is, where nothing is behind it.
const TAIL: u64 = 1 << 10;
/// Longest header of a frame that is read.
const LONGEST_HEADER: u64 = 16 << 20;

/// What the frames of a slide hold next to their pixels.
#[derive(Default)]
pub(super) struct FrameTexts {
    /// Each kind of text once, however many frames have it.
    pub(super) texts: Vec<FileText>,
    /// How many frames of JPEG or JPEG 2000 were looked at.
    pub(super) frames: u64,
    /// How many frames are of another coding, which has no place for texts, or of none.
    pub(super) others: u64,
    /// How many frames are not where they are to be.
    pub(super) lost: u64,
    /// Names of the files whose frames cannot be found.
    pub(super) unread: Vec<String>,
}

/// The texts in the headers of the frames of every file of a slide, of at most `most` frames a file.
pub(super) fn texts(
    path: &Path,
    file: &Arc<SlideFile>,
    limits: &Limits,
    most: u64,
) -> Result<FrameTexts, Fault> {
    let mut found = FrameTexts::default();
    let mut seen = BTreeSet::new();
    for FileFrames { name, frames } in dicom_files::frames(path, file, limits)? {
        let frames = match frames {
            Ok(frames) => frames,
            Err(e @ Fault::Read(_)) => return Err(e),
            Err(_) => {
                found.unread.push(name);
                continue;
            }
        };
        for frame in 0..frames.count.min(most) {
            let all = match within(&frames, frame, !file.is_remote()) {
                Ok(all) => all,
                Err(e @ Fault::Read(_)) => return Err(e),
                Err(_) => {
                    found.lost += 1;
                    continue;
                }
            };
            let Some(all) = all else {
                found.others += 1;
                continue;
            };
            found.frames += 1;
            let all = all.into_iter().filter(|t| !t.findings().is_empty());
            found.texts.extend(all.filter(|t| seen.insert(t.name.clone())));
        }
    }
    Ok(found)
}

/// The texts of one frame, `whole` also those behind its header; `None` for one of another coding.
fn within(frames: &Frames, frame: u64, whole: bool) -> Result<Option<Vec<FileText>>, Fault> {
    let head = header(frames, frame)?;
    if jp2k::is_start(&head) {
        return Ok(Some(jp2k::texts("dicom.jpeg2000", &head)));
    }
    if !head.starts_with(&[0xFF, 0xD8]) {
        return Ok(None);
    }
    let name = "dicom.jpeg";
    if !whole {
        return Ok(Some(jpeg::texts(name, &head)));
    }
    // Data of one scan have nothing within them: what is behind their end is in the last bytes.
    let end = frames.end(frame, TAIL)?;
    let mark = end.windows(2).rposition(|w| w == [0xFF, 0xD9]).filter(|_| has_one_scan(&head));
    let Some(mark) = mark else {
        return Ok(Some(jpeg::all_texts(name, &frames.read(frame)?)));
    };
    let mut all = jpeg::texts(name, &head);
    all.extend(jpeg::text_behind(name, &end[mark + 2..]));
    Ok(Some(all))
}

/// The start of a frame with its header, of at most [`LONGEST_HEADER`]: of JPEG 2000 all, where every part of the data
/// may have a header of its own, and boxes may be behind them.
fn header(frames: &Frames, frame: u64) -> Result<Vec<u8>, Fault> {
    let mut length = SHORT_HEADER;
    loop {
        let start = frames.start(frame, length)?;
        let whole =
            has_scan(&start) || !(jp2k::is_start(&start) || start.starts_with(&[0xFF, 0xD8]));
        if whole || (start.len() as u64) < length || length >= LONGEST_HEADER {
            return Ok(start);
        }
        length = if jp2k::is_start(&start) { LONGEST_HEADER } else { 64 * length };
    }
}

/// The places in the file of all bytes of its frames that may identify somebody, in order. They can be blanked where
/// they are: no decoder needs them, and every frame keeps its length.
pub(crate) fn removable(frames: &Frames) -> Result<Vec<Range<u64>>, Fault> {
    let mut all = Vec::new();
    for frame in 0..frames.count {
        let pieces = frames.pieces(frame)?;
        let bytes = frames.read(frame)?;
        for place in in_stream(&bytes) {
            all.extend(in_file(&pieces, place));
        }
    }
    all.sort_by_key(|r| r.start);
    Ok(all)
}

/// The same within one stream.
fn in_stream(b: &[u8]) -> Vec<Range<usize>> {
    if !b.starts_with(&[0xFF, 0xD8]) {
        return jp2k::blankable(b);
    }
    jpeg::blankable(b)
}

/// A place of a frame as places of the file that holds it in pieces.
fn in_file(pieces: &[Range<u64>], place: Range<usize>) -> Vec<Range<u64>> {
    let (start, end) = (place.start as u64, place.end as u64);
    let mut before = 0;
    let mut all = Vec::new();
    for piece in pieces {
        let n = piece.end - piece.start;
        let (from, to) = (start.max(before), end.min(before + n));
        if from < to {
            all.push(piece.start + from - before..piece.start + to - before);
        }
        before += n;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_over_two_fragments_is_two_places() {
        assert_eq!(in_file(&[100..110, 120..130], 8..13), [108..110, 120..123]);
        assert_eq!(in_file(&[100..110, 120..130], 10..12), [Range { start: 120, end: 122 }]);
    }

    #[test]
    fn all_but_the_pixels_coding_is_blanked() {
        let b = [
            &[0xFF, 0xD8, 0xFF, 0xFE, 0, 6][..],
            b"Jane",
            &[0xFF, 0xDB, 0, 3, 9, 0xFF, 0xDA, 0, 2, 1, 2, 0xFF, 0xD9],
            b"Doe",
        ]
        .concat();
        assert_eq!(in_stream(&b), [6..10, b.len() - 3..b.len()]);
        // A text behind Adobe's segment; the size and the pixels of a thumbnail within JFIF's.
        let adobe = [&[0xFF, 0xD8, 0xFF, 0xEE, 0, 18][..], b"Adobe\0\x64\0\0\0\0\x01Jane"].concat();
        assert_eq!(in_stream(&adobe), [Range { start: 18, end: 22 }]);
        let jfif =
            [&[0xFF, 0xD8, 0xFF, 0xE0, 0, 19][..], b"JFIF\0\x01\x01\0\0\x01\0\x01\x01\x01Jan"];
        assert_eq!(in_stream(&jfif.concat()), [Range { start: 18, end: 23 }]);
    }
}
