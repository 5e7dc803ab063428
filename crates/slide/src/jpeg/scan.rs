//! Scans: entropy-coded segments into planes of samples.

use super::huffman::{Bits, Table};
use super::idct;
use super::parse::{Frame, Scan, ScanPart};
use std::sync::Arc;

/// The samples of one component.
pub(super) struct Plane {
    /// Real samples per row and rows; the buffer is padded to whole MCUs.
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) stride: usize,
    pub(super) data: Vec<u8>,
    /// Sampling factors relative to the finest component.
    pub(super) fx: usize,
    pub(super) fy: usize,
    /// Blocks across and down, without the padding.
    pub(super) blocks: (usize, usize),
}

/// Empty planes of an image, and its number of MCUs across and down.
pub(super) fn empty(frame: &Frame) -> Result<(Vec<Plane>, (usize, usize)), String> {
    let h_max = frame.components.iter().map(|c| c.h).max().unwrap_or(1);
    let v_max = frame.components.iter().map(|c| c.v).max().unwrap_or(1);
    let mcus = (frame.width.div_ceil(8 * h_max), frame.height.div_ceil(8 * v_max));
    let mut planes = Vec::new();
    for c in &frame.components {
        if h_max % c.h != 0 || v_max % c.v != 0 {
            return Err("JPEG: fractional subsampling is not read".into());
        }
        let stride = mcus.0 * c.h * 8;
        let width = (frame.width * c.h).div_ceil(h_max);
        let height = (frame.height * c.v).div_ceil(v_max);
        planes.push(Plane {
            width,
            height,
            stride,
            data: vec![0; stride * mcus.1 * c.v * 8],
            fx: h_max / c.h,
            fy: v_max / c.v,
            blocks: (width.div_ceil(8), height.div_ceil(8)),
        });
    }
    Ok((planes, mcus))
}

/// What is done with the bits of a scan.
pub(super) trait Decode {
    /// A segment begins: predictions start again.
    fn restart(&mut self);

    /// Reads the block at `at` (column, row) of the `part`-th component of the scan.
    fn block(&mut self, bits: &mut Bits, part: usize, at: (usize, usize)) -> Result<(), String>;
}

/// Goes through one scan in the order of its blocks; gives the position after its data. `blocks` is
/// the size of each component of the frame in blocks, without padding to whole MCUs.
pub(super) fn walk(
    frame: &mut Frame,
    b: &[u8],
    scan: &Scan,
    mcus: (usize, usize),
    blocks: &[(usize, usize)],
    decode: &mut impl Decode,
) -> Result<usize, String> {
    let components =
        scan.parts.iter().map(|p| (frame.components[p.component], blocks[p.component]));
    let components: Vec<_> = components.collect();
    // A scan of one component counts its own blocks, without the padding to whole MCUs.
    let lone = components.len() == 1;
    let (columns, rows) = if lone { components[0].1 } else { mcus };
    let total = columns * rows;
    let every = if frame.restart == 0 { total } else { frame.restart };
    let (mut at, mut done, mut segments) = (scan.at, 0, 0u8);
    let mut clean = Vec::new();
    while done < total {
        if done > 0 {
            // Markers count from 0 to 7: where one is out of turn, data are missing or doubled.
            let number = restart_marker(b, at)?;
            if number != segments % 8 {
                frame.doubt.get_or_insert("restart markers of the JPEG stream out of turn");
            }
            segments = segments.wrapping_add(1);
            at += 2;
        }
        at = unstuff(b, at, &mut clean);
        let mut bits = Bits::new(&clean);
        decode.restart();
        let end = (done + every).min(total);
        for mcu in done..end {
            let (x, y) = (mcu % columns, mcu / columns);
            if lone {
                decode.block(&mut bits, 0, (x, y))?;
                continue;
            }
            for (part, (c, _)) in components.iter().enumerate() {
                for v in 0..c.v {
                    for h in 0..c.h {
                        decode.block(&mut bits, part, (x * c.h + h, y * c.v + v))?;
                    }
                }
            }
        }
        if bits.overrun() {
            return Err("JPEG: the image data are cut short".into());
        }
        if bits.left() >= 8 {
            frame.doubt.get_or_insert("surplus data in the JPEG stream");
        }
        done = end;
    }
    Ok(at)
}

/// A table of a scan.
pub(super) fn table(set: &[Option<Arc<Table>>; 4], i: usize) -> Result<Arc<Table>, String> {
    set.get(i).cloned().flatten().ok_or_else(|| "JPEG: a Huffman table is missing".into())
}

/// The quantisation table of a component.
pub(super) fn quant(frame: &Frame, index: usize) -> Result<[i32; 64], String> {
    frame.quant[frame.components[index].quant]
        .ok_or_else(|| "JPEG: a quantisation table is missing".into())
}

/// Decodes all scans of a sequential image; with the planes comes the position after the last.
pub(super) fn planes(
    frame: &mut Frame,
    b: &[u8],
    first: Scan,
) -> Result<(Vec<Plane>, usize), String> {
    let (mut planes, mcus) = empty(frame)?;
    let blocks: Vec<_> = planes.iter().map(|p| p.blocks).collect();
    let mut missing: Vec<usize> = (0..planes.len()).collect();
    let mut next = Some(first);
    while let Some(scan) = next {
        let mut parts = Vec::with_capacity(scan.parts.len());
        for &ScanPart { component, dc, ac } in &scan.parts {
            parts.push(Part {
                plane: component,
                dc: table(&frame.dc, dc)?,
                ac: table(&frame.ac, ac)?,
                quant: quant(frame, component)?,
                predictor: 0,
            });
        }
        let mut decode = Sequential { parts, planes: &mut planes };
        let end = walk(frame, b, &scan, mcus, &blocks, &mut decode)?;
        missing.retain(|i| scan.parts.iter().all(|p| p.component != *i));
        if missing.is_empty() {
            return Ok((planes, end));
        }
        next = frame.markers(b, end)?;
    }
    Err("JPEG: a component has no data".into())
}

/// A component as one scan needs it.
struct Part {
    plane: usize,
    dc: Arc<Table>,
    ac: Arc<Table>,
    quant: [i32; 64],
    predictor: i32,
}

struct Sequential<'a> {
    parts: Vec<Part>,
    planes: &'a mut [Plane],
}

impl Decode for Sequential<'_> {
    fn restart(&mut self) {
        self.parts.iter_mut().for_each(|p| p.predictor = 0);
    }

    #[inline(always)]
    fn block(
        &mut self,
        bits: &mut Bits,
        part: usize,
        (x, y): (usize, usize),
    ) -> Result<(), String> {
        let part = &mut self.parts[part];
        let plane = &mut self.planes[part.plane];
        let mut block = [0; 64];
        let any = bits.block((&part.dc, &part.ac), &mut part.predictor, &part.quant, &mut block)?;
        plane.paint(&block, any, (x, y));
        Ok(())
    }
}

impl Plane {
    /// Puts a block of dequantised coefficients in its place; `any`: not its DC coefficient alone.
    #[inline(always)]
    pub(super) fn paint(&mut self, block: &[i32; 64], any: bool, (x, y): (usize, usize)) {
        let out = &mut self.data[y * 8 * self.stride + x * 8..];
        if any {
            idct::block(block, out, self.stride)
        } else {
            idct::flat(block[0], out, self.stride)
        }
    }
}

/// Copies entropy-coded bytes up to the next marker without their stuffing; gives its position.
fn unstuff(b: &[u8], mut at: usize, clean: &mut Vec<u8>) -> usize {
    clean.clear();
    loop {
        let rest = b.get(at..).unwrap_or_default();
        let Some(i) = memchr::memchr(0xFF, rest) else {
            clean.extend_from_slice(rest);
            return b.len();
        };
        clean.extend_from_slice(&rest[..i]);
        match rest.get(i + 1) {
            Some(0) => {
                clean.push(0xFF);
                at += i + 2;
            }
            // Fill bytes before a marker.
            Some(0xFF) => at += i + 1,
            _ => return at + i,
        }
    }
}

fn restart_marker(b: &[u8], at: usize) -> Result<u8, String> {
    match b.get(at..at + 2) {
        Some([0xFF, n @ 0xD0..=0xD7]) => Ok(n - 0xD0),
        _ => Err("JPEG: a restart marker is missing".into()),
    }
}
