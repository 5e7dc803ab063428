//! Scans: entropy-coded segments into planes of samples.

use super::huffman::{Bits, Table};
use super::idct;
use super::parse::{Frame, Scan};
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
    blocks: (usize, usize),
}

/// A component as one scan needs it.
struct Part {
    plane: usize,
    dc: Arc<Table>,
    ac: Arc<Table>,
    quant: [i32; 64],
    h: usize,
    v: usize,
    predictor: i32,
}

/// Decodes all scans of a sequential image.
pub(super) fn planes(frame: &mut Frame, b: &[u8], first: Scan) -> Result<Vec<Plane>, String> {
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
    let mut missing: Vec<usize> = (0..planes.len()).collect();
    let mut next = Some(first);
    while let Some(scan) = next {
        let end = one(frame, b, &scan, mcus, &mut planes)?;
        missing.retain(|i| scan.parts.iter().all(|(p, _, _)| p != i));
        if missing.is_empty() {
            return Ok(planes);
        }
        next = frame.markers(b, end)?;
    }
    Err("JPEG: a component has no data".into())
}

fn one(
    frame: &Frame,
    b: &[u8],
    scan: &Scan,
    mcus: (usize, usize),
    planes: &mut [Plane],
) -> Result<usize, String> {
    let lone = scan.parts.len() == 1;
    let mut parts = Vec::with_capacity(scan.parts.len());
    for &(index, dc, ac) in &scan.parts {
        let c = &frame.components[index];
        let table = |set: &[Option<Arc<Table>>; 4], i: usize| {
            set.get(i).cloned().flatten().ok_or("JPEG: a Huffman table is missing")
        };
        parts.push(Part {
            plane: index,
            dc: table(&frame.dc, dc)?,
            ac: table(&frame.ac, ac)?,
            quant: frame.quant[c.quant].ok_or("JPEG: a quantisation table is missing")?,
            h: if lone { 1 } else { c.h },
            v: if lone { 1 } else { c.v },
            predictor: 0,
        });
    }
    // A scan of one component counts its own blocks, without the padding to whole MCUs.
    let (columns, rows) = if lone { planes[parts[0].plane].blocks } else { mcus };
    let total = columns * rows;
    let every = if frame.restart == 0 { total } else { frame.restart };
    let (mut at, mut done) = (scan.at, 0);
    let mut clean = Vec::new();
    while done < total {
        if done > 0 {
            at = restart_marker(b, at)?;
        }
        at = unstuff(b, at, &mut clean);
        let mut bits = Bits::new(&clean);
        for p in &mut parts {
            p.predictor = 0;
        }
        let end = (done + every).min(total);
        for mcu in done..end {
            decode_mcu(&mut bits, &mut parts, planes, (mcu % columns, mcu / columns))?;
        }
        if bits.overrun() {
            return Err("JPEG: the image data are cut short".into());
        }
        done = end;
    }
    Ok(at)
}

fn decode_mcu(
    bits: &mut Bits,
    parts: &mut [Part],
    planes: &mut [Plane],
    (mx, my): (usize, usize),
) -> Result<(), String> {
    for part in parts {
        let plane = &mut planes[part.plane];
        for v in 0..part.v {
            for h in 0..part.h {
                let mut block = [0; 64];
                let any =
                    bits.block((&part.dc, &part.ac), &mut part.predictor, &part.quant, &mut block)?;
                let at = (my * part.v + v) * 8 * plane.stride + (mx * part.h + h) * 8;
                let out = &mut plane.data[at..];
                if any {
                    idct::block(&block, out, plane.stride)
                } else {
                    idct::flat(block[0], out, plane.stride)
                }
            }
        }
    }
    Ok(())
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

fn restart_marker(b: &[u8], at: usize) -> Result<usize, String> {
    match b.get(at..at + 2) {
        Some([0xFF, 0xD0..=0xD7]) => Ok(at + 2),
        _ => Err("JPEG: a restart marker is missing".into()),
    }
}
