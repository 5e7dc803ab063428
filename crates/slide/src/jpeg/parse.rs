//! Markers: frame, tables, scan headers.

use super::huffman::{Table, ZIGZAG};
use std::sync::Arc;

/// One colour component of the frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Component {
    pub(super) id: u8,
    pub(super) h: usize,
    pub(super) v: usize,
    pub(super) quant: usize,
}

/// One component of a scan.
pub(super) struct ScanPart {
    /// Its index in the frame.
    pub(super) component: usize,
    /// Number of its table of DC values.
    pub(super) dc: usize,
    /// The same of AC values.
    pub(super) ac: usize,
}

/// A scan header; its entropy-coded data start at `at`.
pub(super) struct Scan {
    pub(super) parts: Vec<ScanPart>,
    pub(super) at: usize,
    /// Progressive files: first and last coefficient, in zigzag order.
    pub(super) spectrum: (usize, usize),
    /// Progressive files: the bit before (0: this is the first scan of these) and the bit of this scan.
    pub(super) bits: (u8, u8),
}

/// All that markers have stated so far.
#[derive(Default)]
pub(super) struct Frame {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) sequential: bool,
    pub(super) components: Vec<Component>,
    pub(super) quant: [Option<[i32; 64]>; 4],
    pub(super) dc: [Option<Arc<Table>>; 4],
    pub(super) ac: [Option<Arc<Table>>; 4],
    pub(super) restart: usize,
    /// What casts doubt on the data read so far.
    pub(super) doubt: Option<&'static str>,
    jfif: bool,
    adobe: Option<u8>,
}

fn word(b: &[u8], at: usize) -> Result<usize, String> {
    b.get(at..at + 2).map(|w| usize::from(w[0]) << 8 | usize::from(w[1])).ok_or_else(cut)
}

fn cut() -> String {
    "JPEG: cut short within its headers".into()
}

impl Frame {
    /// Reads a stream's markers up to its first scan, or to the end of a stream of tables.
    pub(super) fn headers(&mut self, b: &[u8]) -> Result<Option<Scan>, String> {
        if !b.starts_with(&[0xFF, 0xD8]) {
            return Err("JPEG: no start of image".into());
        }
        self.markers(b, 2)
    }

    /// Reads markers from `at` up to the next scan or the end of the image.
    pub(super) fn markers(&mut self, b: &[u8], mut at: usize) -> Result<Option<Scan>, String> {
        loop {
            match b.get(at..at + 2) {
                // Nothing more: tables without an end marker.
                None => return Ok(None),
                Some([0xFF, 0xFF]) => {
                    at += 1;
                    continue;
                }
                Some([0xFF, 0xD9]) => return Ok(None),
                Some([0xFF, 0x01 | 0xD0..=0xD8]) => {
                    at += 2;
                    continue;
                }
                Some([0xFF, _]) => {}
                Some(_) => return Err(format!("JPEG: no marker at byte {at}")),
            }
            let kind = b[at + 1];
            let len = word(b, at + 2)?;
            let body = b.get(at + 4..at + 2 + len.max(2)).ok_or_else(cut)?;
            at += 2 + len.max(2);
            match kind {
                0xC0 | 0xC1 => self.frame(body, true)?,
                0xC2 => self.frame(body, false)?,
                0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                    return Err(format!("JPEG: coding process {:#x} is not read", kind));
                }
                0xC4 => self.huffman(body)?,
                0xDB => self.quantisation(body)?,
                0xDD => self.restart = word(body, 0)?,
                0xDA => return self.scan(body, at).map(Some),
                0xE0 => self.jfif |= body.starts_with(b"JFIF\0"),
                0xEE if body.starts_with(b"Adobe") => self.adobe = body.get(11).copied(),
                _ => {}
            }
        }
    }

    fn frame(&mut self, b: &[u8], sequential: bool) -> Result<(), String> {
        let n = usize::from(*b.get(5).ok_or_else(cut)?);
        if b[0] != 8 {
            return Err(format!("JPEG: {} bits per sample are not read", b[0]));
        }
        if !self.components.is_empty() {
            return Err("JPEG: two frame headers".into());
        }
        if n != 1 && n != 3 {
            return Err(format!("JPEG: {n} components are not read"));
        }
        (self.height, self.width) = (word(b, 1)?, word(b, 3)?);
        self.sequential = sequential;
        for c in b.get(6..6 + 3 * n).ok_or_else(cut)?.chunks_exact(3) {
            let (h, v) = (usize::from(c[1] >> 4), usize::from(c[1] & 15));
            if !(1..=4).contains(&h) || !(1..=4).contains(&v) || c[2] > 3 {
                return Err(format!("JPEG: sampling {h} x {v}, quantisation table {}", c[2]));
            }
            self.components.push(Component { id: c[0], h, v, quant: usize::from(c[2]) });
        }
        if n == 1 {
            // A single component is never interleaved; its factors state nothing.
            (self.components[0].h, self.components[0].v) = (1, 1);
        }
        Ok(())
    }

    fn quantisation(&mut self, mut b: &[u8]) -> Result<(), String> {
        while let Some(&head) = b.first() {
            let (wide, slot) = (head >> 4 != 0, usize::from(head & 15));
            let size = if wide { 128 } else { 64 };
            let values = b.get(1..1 + size).ok_or_else(cut)?;
            let mut table = [0; 64];
            for (k, natural) in ZIGZAG.iter().enumerate() {
                table[usize::from(*natural)] =
                    if wide { word(values, 2 * k)? as i32 } else { i32::from(values[k]) };
            }
            *self.quant.get_mut(slot).ok_or("JPEG: quantisation table number")? = Some(table);
            b = &b[1 + size..];
        }
        Ok(())
    }

    fn huffman(&mut self, mut b: &[u8]) -> Result<(), String> {
        while let Some(&head) = b.first() {
            let counts: &[u8; 16] = b.get(1..17).and_then(|c| c.try_into().ok()).ok_or_else(cut)?;
            let n: usize = counts.iter().map(|c| usize::from(*c)).sum();
            let values = b.get(17..17 + n).ok_or_else(cut)?;
            let ac = head >> 4 != 0;
            let table = Arc::new(Table::new(counts, values, ac)?);
            let set = if ac { &mut self.ac } else { &mut self.dc };
            *set.get_mut(usize::from(head & 15)).ok_or("JPEG: Huffman table number")? = Some(table);
            b = &b[17 + n..];
        }
        Ok(())
    }

    fn scan(&self, b: &[u8], at: usize) -> Result<Scan, String> {
        let n = usize::from(*b.first().ok_or_else(cut)?);
        let list = b.get(1..1 + 2 * n).ok_or_else(cut)?;
        let mut parts: Vec<ScanPart> = Vec::with_capacity(n);
        for p in list.chunks_exact(2) {
            let component = self.components.iter().position(|c| c.id == p[0]);
            let component = component.ok_or("JPEG: a scan of an unknown component")?;
            if parts.iter().any(|part| part.component == component) {
                return Err("JPEG: a component twice in one scan".into());
            }
            let (dc, ac) = (usize::from(p[1] >> 4), usize::from(p[1] & 15));
            parts.push(ScanPart { component, dc, ac });
        }
        if parts.is_empty() {
            return Err("JPEG: an empty scan".into());
        }
        let rest = b.get(1 + 2 * n..4 + 2 * n).ok_or_else(cut)?;
        let spectrum = (usize::from(rest[0]), usize::from(rest[1]));
        Ok(Scan { parts, at, spectrum, bits: (rest[2] >> 4, rest[2] & 15) })
    }

    /// libjpeg's guess from the markers of a three-component stream.
    pub(super) fn marked_ycbcr(&self) -> bool {
        match (self.jfif, self.adobe) {
            (true, _) => true,
            (_, Some(transform)) => transform != 0,
            _ => !self.components.iter().map(|c| c.id).eq(*b"RGB"),
        }
    }
}
