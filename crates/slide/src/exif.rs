//! EXIF blocks of JPEG and PNG files: a TIFF structure in a few kilobytes, every offset checked.

/// Tag of the orientation (Exif 2.32, section 4.6.4; TIFF 6.0 has the same number).
const ORIENTATION: u16 = 0x0112;
/// Tags of the resolution, and of its unit: 2 is an inch, 3 a centimetre.
const X_RESOLUTION: u16 = 0x011A;
const Y_RESOLUTION: u16 = 0x011B;
const UNIT: u16 = 0x0128;
/// TIFF's numbers of the types of two bytes, of four, and of two numbers of four.
const SHORT: u16 = 3;
const LONG: u16 = 4;
const RATIONAL: u16 = 5;
/// Directories that tags point to, with their names.
const BELOW: [(u16, &str); 3] = [(0x8769, "exif"), (0x8825, "gps"), (0xA005, "interoperability")];
/// Fields of one directory, and directories of one block; writers need far fewer.
const MOST_FIELDS: usize = 512;
const MOST_DIRECTORIES: usize = 16;

/// A field of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    /// `image`, `thumbnail`, `exif`, `gps` or `interoperability`.
    pub(crate) directory: &'static str,
    pub(crate) tag: u16,
    /// TIFF's number of the type.
    pub(crate) kind: u16,
    pub(crate) value: &'a [u8],
    pub(crate) big_endian: bool,
}

/// The orientation that a block states; 0, which some writers leave, means 1.
pub(crate) fn orientation(block: &[u8]) -> Option<u64> {
    let all = fields(block);
    let field = all.iter().find(|f| f.directory == "image" && f.tag == ORIENTATION)?;
    let mut value = field.value.get(..if field.kind == LONG { 4 } else { 2 })?.to_vec();
    if !field.big_endian {
        value.reverse();
    }
    let value = value.iter().fold(0, |v, b| v << 8 | u64::from(*b));
    Some(value.max(1))
}

/// What a block states of its resolution (Exif 2.32, section 4.6.4, numbers as in TIFF), um/px. At most 1 px per unit
/// is what some writers put where it is not known.
pub(crate) fn resolution(block: &[u8]) -> Option<[f64; 2]> {
    let all = fields(block);
    let value = |tag: u16| {
        let field = all.iter().find(|f| f.directory == "image" && f.tag == tag)?;
        let uint = |bytes: &[u8]| {
            let push = |v: f64, b: &u8| v * 256.0 + f64::from(*b);
            match field.big_endian {
                true => bytes.iter().fold(0.0, push),
                false => bytes.iter().rev().fold(0.0, push),
            }
        };
        match (field.kind, field.value.as_chunks::<4>().0) {
            (RATIONAL, [above, below]) => Some(uint(above) / uint(below)),
            (SHORT, _) => Some(uint(field.value.get(..2)?)),
            _ => None,
        }
    };
    let um = match value(UNIT) {
        None | Some(2.0) => 25_400.0,
        Some(3.0) => 10_000.0,
        _ => return None,
    };
    let stated = [value(X_RESOLUTION)?, value(Y_RESOLUTION)?];
    stated.iter().all(|v| v.is_finite() && *v > 1.0).then(|| stated.map(|v| um / v))
}

/// The orientation that an XMP packet states, as an attribute or an element (XMP, part 2, TIFF namespace).
pub(crate) fn orientation_of_xmp(packet: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"tiff:Orientation";
    let at = packet.windows(NAME.len()).position(|w| w == NAME)? + NAME.len();
    let mut value = packet[at..].iter().skip_while(|b| b"=\"'> \t\r\n".contains(b));
    value.next().filter(|b| b.is_ascii_digit()).map(|b| u64::from(b - b'0').max(1))
}

/// What a JPEG's segment of EXIF begins with; some write it before the block of a PNG, too.
pub(crate) const SEGMENT: &[u8] = b"Exif\0\0";

/// What to do about an image that [`refused`] names.
pub(crate) const UPRIGHT: &str = "save it upright, with orientation 1";

/// Why an image of this orientation is not read: labels drawn in a turned view would land elsewhere. Writers that
/// leave it unset write 0.
pub(crate) fn refused(orientation: u64) -> Option<String> {
    match orientation {
        0 | 1 => None,
        o @ 2..=8 => Some(format!("orientation {o}: the image is stored turned or mirrored")),
        o => Some(format!("orientation {o}, where TIFF and EXIF know 1 to 8")),
    }
}

/// Every field inside the block.
pub(crate) fn fields(block: &[u8]) -> Vec<Field<'_>> {
    let big_endian = match block.get(..4) {
        Some(b"MM\0*") => true,
        Some(b"II*\0") => false,
        _ => return Vec::new(),
    };
    let uint = |at: usize, n: usize| -> Option<usize> {
        let bytes = block.get(at..at.checked_add(n)?)?;
        let push = |v: usize, b: &u8| v << 8 | usize::from(*b);
        Some(match big_endian {
            true => bytes.iter().fold(0, push),
            false => bytes.iter().rev().fold(0, push),
        })
    };
    let mut out = Vec::new();
    let mut seen = Vec::new();
    let mut left: Vec<(usize, &'static str)> =
        uint(4, 4).map(|at| (at, "image")).into_iter().collect();
    while let Some((at, directory)) = left.pop() {
        if at == 0 || seen.contains(&at) || seen.len() >= MOST_DIRECTORIES {
            continue;
        }
        seen.push(at);
        let Some(n) = uint(at, 2) else { continue };
        for e in (0..n.min(MOST_FIELDS)).map(|i| at + 2 + 12 * i) {
            let entry = (uint(e, 2), uint(e + 2, 2), uint(e + 4, 4));
            let (Some(tag), Some(kind), Some(count)) = entry else { break };
            let size = match kind {
                1 | 2 | 6 | 7 | 129 => 1,
                3 | 8 => 2,
                4 | 9 | 11 | 13 => 4,
                5 | 10 | 12 => 8,
                _ => continue,
            };
            let len = count.saturating_mul(size);
            let from = if len <= 4 { Some(e + 8) } else { uint(e + 8, 4) };
            let place = from.and_then(|f| Some(f..f.checked_add(len)?));
            let Some(value) = place.and_then(|p| block.get(p)) else { continue };
            let below = BELOW.iter().find(|(t, _)| usize::from(*t) == tag);
            if let (Some((_, name)), Some(at)) = (below, uint(e + 8, 4)) {
                left.push((at, name));
                continue;
            }
            let (tag, kind) = (tag as u16, kind as u16);
            out.push(Field { directory, tag, kind, value, big_endian });
        }
        if directory == "image"
            && let Some(next) = uint(at + 2 + 12 * n, 4)
        {
            left.push((next, "thumbnail"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block with an orientation, and a directory below with a name stored after it.
    fn block(big: bool, orientation: u16) -> Vec<u8> {
        let short = |v: u16| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        let long = |v: u32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        let mut b = if big { b"MM\0*".to_vec() } else { b"II*\0".to_vec() };
        b.extend(long(8));
        b.extend(short(2));
        b.extend([short(0x0112), short(3)].concat());
        b.extend(long(1));
        b.extend([short(orientation), [0; 2]].concat());
        b.extend([short(0x8769), short(4)].concat());
        b.extend([long(1), long(38)].concat());
        b.extend(long(0));
        b.extend(short(1));
        b.extend([short(42032), short(2)].concat());
        b.extend([long(9), long(56)].concat());
        b.extend(long(0));
        b.extend(b"Jane Doe\0");
        b
    }

    #[test]
    fn fields_of_both_byte_orders_are_found() {
        for big in [false, true] {
            let b = block(big, 6);
            assert_eq!(orientation(&b), Some(6));
            let all = fields(&b);
            let name = all.iter().find(|f| f.tag == 42032).unwrap();
            assert_eq!((name.directory, name.value), ("exif", &b"Jane Doe\0"[..]));
            assert_eq!(orientation(&block(big, 0)), Some(1));
            let mut long = block(big, 0);
            let value = if big { 6u32.to_be_bytes() } else { 6u32.to_le_bytes() };
            long[18..22].copy_from_slice(&value);
            long[if big { 13 } else { 12 }] = 4;
            assert_eq!(orientation(&long), Some(6));
        }
        assert_eq!(orientation(b"nothing"), None);
        for (packet, stated) in [
            ("<rdf:Description tiff:Orientation=\"6\"/>", Some(6)),
            ("<tiff:Orientation>3</tiff:Orientation>", Some(3)),
            ("<tiff:Orientation/>", None),
            ("<tiff:ImageWidth>3</tiff:ImageWidth>", None),
        ] {
            assert_eq!(orientation_of_xmp(packet.as_bytes()), stated, "{packet}");
        }
    }

    #[test]
    fn damaged_blocks_end() {
        let b = block(false, 1);
        for cut in 0..b.len() {
            fields(&b[..cut]);
        }
        for i in 0..b.len() {
            for bit in 0..8 {
                let mut c = b.clone();
                c[i] ^= 1 << bit;
                fields(&c);
            }
        }
    }
}
