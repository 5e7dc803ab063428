//! The segments of a JPEG stream (ITU-T T.81, annex B): where each begins and ends, whatever it holds.

use std::ops::Range;

/// Start of a scan: entropy-coded data follow its body.
const SCAN: u8 = 0xDA;
const IMAGE: [u8; 2] = [0xFF, 0xD8];
const END: u8 = 0xD9;

/// A segment before, between or after scans: its marker, and the place of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) marker: u8,
    /// Of the marker and its length.
    pub(crate) start: usize,
    pub(crate) body: Range<usize>,
}

/// Goes from segment to segment; the data of a scan are passed over when the segment behind it is asked for.
pub(crate) struct Segments<'a> {
    b: &'a [u8],
    at: usize,
    in_scan: bool,
    end: Option<usize>,
}

impl<'a> Segments<'a> {
    /// Those of a stream; none of what is not one.
    pub(crate) fn new(b: &'a [u8]) -> Self {
        let end = (!b.starts_with(&IMAGE)).then_some(b.len());
        Self { b, at: IMAGE.len(), in_scan: false, end }
    }

    /// Those before the first scan.
    pub(crate) fn before_scans(b: &'a [u8]) -> impl Iterator<Item = Segment> + 'a {
        Self::new(b).take_while(|s| s.marker != SCAN)
    }

    /// Entropy-coded data end at a marker that is neither stuffed nor a restart.
    fn pass_scan(&mut self) {
        while let Some(w) = self.b.get(self.at..self.at + 2) {
            if w[0] == 0xFF && !matches!(w[1], 0 | 0xD0..=0xD7 | 0xFF) {
                break;
            }
            self.at += 1;
        }
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        if self.end.is_some() {
            return None;
        }
        if std::mem::take(&mut self.in_scan) {
            self.pass_scan();
        }
        while let Some(&[0xFF, marker]) = self.b.get(self.at..self.at + 2) {
            match marker {
                0xFF => self.at += 1,
                END => {
                    self.end = Some(self.at + 2);
                    return None;
                }
                0x01 | 0xD0..=0xD8 => self.at += 2,
                _ => {
                    let start = self.at;
                    let Some(length) = self.b.get(start + 2..start + 4) else { break };
                    let length = usize::from(length[0]) << 8 | usize::from(length[1]);
                    let end = start + 2 + length.max(2);
                    if end > self.b.len() {
                        break;
                    }
                    (self.at, self.in_scan) = (end, marker == SCAN);
                    return Some(Segment { marker, start, body: start + 4..end });
                }
            }
        }
        self.end = Some(self.b.len());
        None
    }
}

/// All segments of a stream, and where it ends (behind the end marker, or where it is cut).
pub(crate) fn segments(b: &[u8]) -> (Vec<Segment>, usize) {
    let mut walk = Segments::new(b);
    let all = walk.by_ref().collect();
    (all, walk.end.unwrap_or(b.len()))
}

/// Whether the start of a stream reaches its first scan: all headers before it are there.
pub(crate) fn has_scan(start: &[u8]) -> bool {
    Segments::new(start).any(|s| s.marker == SCAN)
}

/// Whether a marker starts a frame: its body states the size.
pub(crate) fn is_frame(marker: u8) -> bool {
    // Not DHT, JPG and DAC.
    matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC)
}

/// Width and height that the frame header of a stream states.
pub(crate) fn stated_size(b: &[u8]) -> Option<(u64, u64)> {
    let frame = Segments::before_scans(b).find(|s| is_frame(s.marker))?;
    let side = |at: usize| b[frame.body.clone()].get(at..at + 2);
    let side = |at: usize| side(at).map(|s| u64::from(s[0]) << 8 | u64::from(s[1]));
    Some((side(3)?, side(1)?))
}

/// How many components the frame header of a stream states.
pub(crate) fn components(b: &[u8]) -> Option<usize> {
    let frame = Segments::before_scans(b).find(|s| is_frame(s.marker))?;
    b[frame.body].get(5).map(|n| usize::from(*n))
}

/// Whether all coded data of a stream are in one scan: nothing is between scans.
pub(crate) fn has_one_scan(b: &[u8]) -> bool {
    let scan = Segments::new(b).find(|s| s.marker == SCAN);
    let first = scan.and_then(|s| b[s.body].first().map(|n| usize::from(*n)));
    // Those are progressive.
    let frame = Segments::before_scans(b).find(|s| is_frame(s.marker));
    let is_progressive = frame.is_some_and(|f| matches!(f.marker, 0xC2 | 0xC6 | 0xCA | 0xCE));
    !is_progressive && first.is_some() && first == components(b)
}

/// Whether markers state three components to be YCbCr: JFIF, or Adobe's transform (libjpeg's order).
pub(crate) fn marked_ycbcr(b: &[u8]) -> Option<bool> {
    let body = |marker: u8, word: &[u8]| {
        let mut all = Segments::before_scans(b).filter(|s| s.marker == marker);
        all.find_map(|s| b[s.body].strip_prefix(word))
    };
    let adobe = || body(0xEE, b"Adobe").and_then(|rest| rest.get(6)).map(|t| *t != 0);
    body(0xE0, b"JFIF\0").map(|_| true).or_else(adobe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_on_both_sides_of_a_scan() {
        let mut b = vec![0xFF, 0xD8, 0xFF, 0xFE, 0, 6];
        b.extend(b"Jane");
        b.extend([0xFF, 0xDA, 0, 2, 1, 2, 0xFF, 0, 3, 0xFF, 0xD0, 4]);
        b.extend([0xFF, 0xFE, 0, 5]);
        b.extend(b"Doe");
        b.extend([0xFF, 0xD9, 7]);
        let (all, end) = segments(&b);
        assert_eq!(all.iter().map(|s| s.marker).collect::<Vec<_>>(), [0xFE, 0xDA, 0xFE]);
        assert_eq!(&b[all[2].body.clone()], b"Doe");
        assert_eq!(end, b.len() - 1);
        assert_eq!(Segments::before_scans(&b).count(), 1);
        for cut in 0..b.len() {
            segments(&b[..cut]);
        }
    }
}
