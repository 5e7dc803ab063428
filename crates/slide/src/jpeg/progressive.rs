//! Progressive scans: every coefficient comes in its first bits, then bit by bit (ITU-T T.81, annex G).

use super::huffman::ZIGZAG;
use super::huffman::{Bits, Table, extend};
use super::parse::{Frame, Scan, ScanPart};
use super::scan::{Decode, Plane, empty, quant, table, walk};
use std::sync::Arc;

/// Encoders write about ten scans. More than this is made to waste time.
const MOST_SCANS: usize = 200;
/// Not sent yet.
const UNSENT: u8 = 255;

type Block = [i16; 64];

/// The coefficients of one component, in natural order.
struct Coefficients {
    blocks: Vec<Block>,
    /// Blocks per row, padded to whole MCUs.
    across: usize,
    /// The table at its first scan, which is the one that counts.
    quant: Option<[i32; 64]>,
    /// The lowest bit sent of each coefficient, in zigzag order.
    sent: [u8; 64],
}

/// Decodes all scans of a progressive image. One that ends before its coefficients are whole is refused.
pub(super) fn planes(
    frame: &mut Frame,
    b: &[u8],
    first: Scan,
) -> Result<(Vec<Plane>, usize), String> {
    let (mut planes, mcus) = empty(frame)?;
    let blocks: Vec<_> = planes.iter().map(|p| p.blocks).collect();
    let coefficients = |p: &Plane| Coefficients {
        blocks: vec![[0; 64]; p.data.len() / 64],
        across: p.stride / 8,
        quant: None,
        sent: [UNSENT; 64],
    };
    let mut components: Vec<_> = planes.iter().map(coefficients).collect();
    let mut next = Some(first);
    let mut end = 0;
    for _ in 0..MOST_SCANS {
        let Some(scan) = next else { break };
        let mut decode = Progressive::new(frame, &scan, &mut components)?;
        end = walk(frame, b, &scan, mcus, &blocks, &mut decode)?;
        next = frame.markers(b, end)?;
    }
    let whole = |c: &Coefficients| c.sent[0] == 0 && c.sent.iter().all(|s| [0, UNSENT].contains(s));
    let ended = b[end.min(b.len())..].windows(2).any(|m| m == [0xFF, 0xD9]);
    if next.is_some() || !ended || !components.iter().all(whole) {
        return Err("JPEG: the image data are cut short".into());
    }
    for (plane, c) in planes.iter_mut().zip(&components) {
        let quant = c.quant.ok_or("JPEG: a quantisation table is missing")?;
        for (i, block) in c.blocks.iter().enumerate() {
            let mut values = [0; 64];
            for ((v, c), q) in values.iter_mut().zip(block).zip(&quant) {
                *v = i32::from(*c).wrapping_mul(*q);
            }
            let any = block[1..].iter().any(|c| *c != 0);
            plane.paint(&values, any, (i % c.across, i / c.across));
        }
    }
    Ok((planes, end))
}

/// One scan.
struct Progressive<'a> {
    components: &'a mut [Coefficients],
    parts: Vec<Part>,
    kind: Kind,
    /// First and last coefficient in zigzag order.
    from: usize,
    to: usize,
    /// The bit that is sent.
    low: u8,
    /// Blocks without further coefficients that follow.
    empty: u32,
}

struct Part {
    component: usize,
    /// Absent where a scan of DC bits needs none.
    table: Option<Arc<Table>>,
    predictor: i32,
}

#[derive(Clone, Copy)]
enum Kind {
    Dc,
    DcBit,
    Ac,
    AcBit,
}

impl<'a> Progressive<'a> {
    fn new(frame: &Frame, scan: &Scan, components: &'a mut [Coefficients]) -> Result<Self, String> {
        let ((from, to), (high, low)) = (scan.spectrum, scan.bits);
        let fits = from <= to && to < 64 && (from > 0 || to == 0);
        if !fits || low > 13 || (from > 0 && scan.parts.len() > 1) {
            return Err(format!("JPEG: a scan of coefficients {from} to {to}, bit {low}"));
        }
        let kind = match (from, high) {
            (0, 0) => Kind::Dc,
            (0, _) => Kind::DcBit,
            (_, 0) => Kind::Ac,
            _ => Kind::AcBit,
        };
        let before = if high == 0 { UNSENT } else { high };
        let mut parts = vec![];
        for &ScanPart { component, dc, ac } in &scan.parts {
            let c = &mut components[component];
            if c.sent[from..=to].iter().any(|s| *s != before) || (high > 0 && low + 1 != high) {
                return Err("JPEG: a scan out of its order".into());
            }
            c.sent[from..=to].fill(low);
            if c.quant.is_none() {
                c.quant = Some(quant(frame, component)?);
            }
            let table = match kind {
                Kind::Dc => Some(table(&frame.dc, dc)?),
                Kind::DcBit => None,
                Kind::Ac | Kind::AcBit => Some(table(&frame.ac, ac)?),
            };
            parts.push(Part { component, table, predictor: 0 });
        }
        Ok(Self { components, parts, kind, from, to, low, empty: 0 })
    }
}

impl Decode for Progressive<'_> {
    fn restart(&mut self) {
        self.parts.iter_mut().for_each(|p| p.predictor = 0);
        self.empty = 0;
    }

    fn block(
        &mut self,
        bits: &mut Bits,
        part: usize,
        (x, y): (usize, usize),
    ) -> Result<(), String> {
        let part = &mut self.parts[part];
        let c = &mut self.components[part.component];
        let block = &mut c.blocks[y * c.across + x];
        let spectrum = (self.from, self.to);
        match (self.kind, &part.table) {
            (Kind::Dc, Some(table)) => {
                let size = u32::from(bits.code(table)?);
                if size > 15 {
                    return Err("JPEG: a DC difference of more than 15 bits".into());
                }
                part.predictor = part.predictor.wrapping_add(extend(bits.take(size), size));
                block[0] = (part.predictor << self.low) as i16;
                Ok(())
            }
            (Kind::Ac, Some(table)) => ac(bits, table, block, spectrum, self.low, &mut self.empty),
            (Kind::AcBit, Some(table)) => {
                ac_bit(bits, table, block, spectrum, 1 << self.low, &mut self.empty)
            }
            _ => {
                block[0] |= (bits.take(1) as i16) << self.low;
                Ok(())
            }
        }
    }
}

/// The length of a run of empty blocks, this one among them.
fn run_of_blocks(bits: &mut Bits, size: u32) -> u32 {
    (1 << size) + bits.take(size)
}

/// First bits of AC coefficients (G.1.2.2).
fn ac(
    bits: &mut Bits,
    table: &Table,
    block: &mut Block,
    (from, to): (usize, usize),
    low: u8,
    empty: &mut u32,
) -> Result<(), String> {
    if *empty > 0 {
        *empty -= 1;
        return Ok(());
    }
    let mut k = from;
    while k <= to {
        let symbol = bits.code(table)?;
        let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        if size > 0 {
            k += run as usize;
            if k > to {
                return Err("JPEG: more coefficients in a block than its scan has".into());
            }
            block[usize::from(ZIGZAG[k])] = (extend(bits.take(size), size) << low) as i16;
            k += 1;
        } else if run == 15 {
            k += 16;
        } else {
            *empty = run_of_blocks(bits, run) - 1;
            break;
        }
    }
    Ok(())
}

/// One more bit of AC coefficients (G.1.2.3).
fn ac_bit(
    bits: &mut Bits,
    table: &Table,
    block: &mut Block,
    (from, to): (usize, usize),
    bit: i16,
    empty: &mut u32,
) -> Result<(), String> {
    let mut k = from;
    if *empty == 0 {
        while k <= to {
            let symbol = bits.code(table)?;
            let (mut zeros, size) = (symbol >> 4, symbol & 15);
            let mut new = 0;
            if size > 0 {
                new = if bits.take(1) == 1 { bit } else { -bit };
            } else if zeros < 15 {
                *empty = run_of_blocks(bits, u32::from(zeros));
                break;
            }
            // Those known already get their bit on the way; the new one comes after `zeros` others.
            while k <= to {
                let c = &mut block[usize::from(ZIGZAG[k])];
                if *c != 0 {
                    refine(bits, c, bit);
                } else if zeros == 0 {
                    *c = new;
                    k += 1;
                    break;
                } else {
                    zeros -= 1;
                }
                k += 1;
            }
        }
    }
    if *empty > 0 {
        for k in k..=to {
            let c = &mut block[usize::from(ZIGZAG[k])];
            if *c != 0 {
                refine(bits, c, bit);
            }
        }
        *empty -= 1;
    }
    Ok(())
}

fn refine(bits: &mut Bits, c: &mut i16, bit: i16) {
    if bits.take(1) == 1 && *c & bit == 0 {
        *c = c.wrapping_add(if *c >= 0 { bit } else { -bit });
    }
}

#[cfg(test)]
mod tests {
    use crate::jpeg::{Space, decode};

    #[test]
    fn a_file_that_lacks_its_last_bits_is_refused() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/slides/flat_progressive_444.jpg");
        let whole = std::fs::read(path).unwrap();
        let read = |b: &[u8]| decode(None, b, Space::ByMarkers, (100, 100));
        assert_eq!(read(&whole).unwrap().0.width, 83);
        assert_eq!(read(&whole).unwrap().1, None);
        let scans: Vec<_> =
            (0..whole.len() - 1).filter(|&i| whole[i..i + 2] == [0xFF, 0xDA]).collect();
        assert!(scans.len() > 5, "{scans:?}");
        for at in scans {
            for end in [&[][..], &[0xFF, 0xD9]] {
                assert!(read(&[&whole[..at], end].concat()).is_err(), "cut at {at}");
            }
        }
        assert!(read(&whole[..whole.len() - 2]).is_err(), "no end of image");
    }
}
