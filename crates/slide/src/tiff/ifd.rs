//! Directories and their fields, with every size checked against the file before it is believed.

use crate::file::SlideFile;
use crate::limits::{Fault, Limits, check};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Cursor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tag numbers.
pub(crate) mod tag {
    pub(crate) const SUBFILE_TYPE: u16 = 254;
    /// The older word for the same.
    pub(crate) const OLD_SUBFILE_TYPE: u16 = 255;
    pub(crate) const WIDTH: u16 = 256;
    pub(crate) const HEIGHT: u16 = 257;
    pub(crate) const BITS: u16 = 258;
    pub(crate) const COMPRESSION: u16 = 259;
    pub(crate) const PHOTOMETRIC: u16 = 262;
    pub(crate) const FILL_ORDER: u16 = 266;
    pub(crate) const DOCUMENT_NAME: u16 = 269;
    pub(crate) const DESCRIPTION: u16 = 270;
    pub(crate) const MAKE: u16 = 271;
    pub(crate) const STRIP_OFFSETS: u16 = 273;
    pub(crate) const ORIENTATION: u16 = 274;
    pub(crate) const SAMPLES: u16 = 277;
    pub(crate) const ROWS_PER_STRIP: u16 = 278;
    pub(crate) const STRIP_COUNTS: u16 = 279;
    pub(crate) const PAGE_NAME: u16 = 285;
    pub(crate) const X_RESOLUTION: u16 = 282;
    pub(crate) const Y_RESOLUTION: u16 = 283;
    pub(crate) const PLANAR: u16 = 284;
    pub(crate) const RESOLUTION_UNIT: u16 = 296;
    pub(crate) const SOFTWARE: u16 = 305;
    pub(crate) const DATE_TIME: u16 = 306;
    pub(crate) const ARTIST: u16 = 315;
    pub(crate) const HOST_COMPUTER: u16 = 316;
    pub(crate) const PREDICTOR: u16 = 317;
    pub(crate) const COLOR_MAP: u16 = 320;
    pub(crate) const TILE_WIDTH: u16 = 322;
    pub(crate) const TILE_HEIGHT: u16 = 323;
    pub(crate) const TILE_OFFSETS: u16 = 324;
    pub(crate) const TILE_COUNTS: u16 = 325;
    pub(crate) const SUB_IFDS: u16 = 330;
    pub(crate) const EXTRA_SAMPLES: u16 = 338;
    pub(crate) const SAMPLE_FORMAT: u16 = 339;
    pub(crate) const JPEG_TABLES: u16 = 347;
    pub(crate) const YCBCR_COEFFICIENTS: u16 = 529;
    pub(crate) const YCBCR_SUBSAMPLING: u16 = 530;
    pub(crate) const REFERENCE_BLACK_WHITE: u16 = 532;
    pub(crate) const XMP: u16 = 700;
    pub(crate) const COPYRIGHT: u16 = 33432;
    pub(crate) const ICC: u16 = 34675;
    /// Hamamatsu NDPI's "source lens" and neighbours.
    pub(crate) const NDPI_FIRST: u16 = 65420;
    pub(crate) const NDPI_LAST: u16 = 65458;
}

const MAX_ENTRIES: u64 = 4096;
/// Image data up to this length are read at once.
const AT_ONCE: u64 = 1 << 20;

/// One entry of a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) tag: u16,
    /// TIFF's number of its type.
    pub(crate) kind: u16,
    /// How many values of that type it has.
    pub(crate) count: u64,
    value: [u8; 8],
}

/// One image file directory.
#[derive(Clone, Debug)]
pub(crate) struct Ifd {
    /// Its place in the file, and that of the directory behind it in its chain; 0: none.
    pub(crate) at: u64,
    pub(crate) next: u64,
    fields: Vec<Field>,
    file: Arc<Bytes>,
}

#[derive(Debug)]
struct Bytes {
    file: Arc<SlideFile>,
    len: u64,
    big_endian: bool,
    big_tiff: bool,
    directories: u64,
    /// Bytes of directory data that may be read, and were.
    most: u64,
    spent: AtomicU64,
}

/// An opened TIFF: its main chain of directories.
#[derive(Debug)]
pub(crate) struct TiffFile {
    pub(crate) ifds: Vec<Ifd>,
    bytes: Arc<Bytes>,
}

impl Bytes {
    fn inside(&self, offset: u64, n: u64) -> Result<(), String> {
        if offset.checked_add(n).is_some_and(|end| end <= self.len) {
            return Ok(());
        }
        Err(format!("{n} bytes at {offset} are beyond the end of the file ({} bytes)", self.len))
    }

    fn read(&self, offset: u64, n: u64) -> Result<Vec<u8>, Fault> {
        self.inside(offset, n)?;
        let mut buf = vec![0; n as usize];
        self.file.read_at(&mut buf, offset).map_err(|e| Fault::read(offset, &e))?;
        Ok(buf)
    }

    /// Counts bytes that a directory holds in memory.
    fn spend(&self, n: u64) -> Result<(), Fault> {
        let all = self.spent.fetch_add(n, Ordering::Relaxed).saturating_add(n);
        check("fields", self.most, all.into(), || "directory data".into()).map_err(Fault::from)
    }

    fn uint(&self, b: &[u8]) -> u64 {
        let push = |v: u64, x: &u8| v << 8 | u64::from(*x);
        if self.big_endian { b.iter().fold(0, push) } else { b.iter().rev().fold(0, push) }
    }
}

fn kind_size(kind: u16) -> Option<u64> {
    Some(match kind {
        // The last is the text in UTF-8 of Exif 3.0.
        1 | 2 | 6 | 7 | 129 => 1,
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16 | 17 | 18 => 8,
        _ => return None,
    })
}

/// Whether the first bytes of a file are those of a TIFF.
pub(crate) fn is_tiff(head: &[u8]) -> bool {
    matches!(head.get(..4), Some(b"II*\0" | b"MM\0*" | b"II+\0" | b"MM\0+"))
}

impl TiffFile {
    /// Reads the chain of directories. A chain that runs in a circle or out of the file is an error.
    pub(crate) fn read(file: &Arc<SlideFile>, limits: &Limits) -> Result<Self, Fault> {
        let mut bytes = Bytes {
            file: Arc::clone(file),
            len: file.len,
            big_endian: false,
            big_tiff: false,
            directories: limits.directories,
            most: limits.fields,
            spent: AtomicU64::new(0),
        };
        let head = bytes.read(0, 8)?;
        bytes.big_endian = head[0] == b'M';
        bytes.big_tiff = bytes.uint(&head[2..4]) == 43;
        let mut next = bytes.uint(&head[4..8]);
        if bytes.big_tiff {
            let more = bytes.read(4, 12)?;
            if bytes.uint(&more[..2]) != 8 {
                return Err("BigTIFF with an offset size other than 8".into());
            }
            next = bytes.uint(&more[4..12]);
        }
        let bytes = Arc::new(bytes);
        let mut this = Self { ifds: Vec::new(), bytes };
        let mut seen = HashSet::new();
        while next != 0 {
            if !seen.insert(next) {
                return Err(format!("the directory at {next} follows itself").into());
            }
            this.countable(seen.len())?;
            let ifd = this.directory(next)?;
            next = ifd.next;
            this.ifds.push(ifd);
        }
        if this.ifds.is_empty() {
            return Err("no image directory".into());
        }
        Ok(this)
    }

    /// Whether so many directories may be in a file.
    pub(crate) fn countable(&self, directories: usize) -> Result<(), Fault> {
        let most = self.bytes.directories;
        check("directories", most, directories as u128, || "image directories".into())
            .map_err(Fault::from)
    }

    /// The directory at a place of the file.
    pub(crate) fn directory(&self, at: u64) -> Result<Ifd, Fault> {
        let b = &self.bytes;
        let (head, entry, word) = if b.big_tiff { (8, 20, 8) } else { (2, 12, 4) };
        let n = b.uint(&b.read(at, head)?);
        if n > MAX_ENTRIES {
            return Err(format!("directory at {at} claims {n} fields").into());
        }
        let body = b.read(at.saturating_add(head), n * entry + word)?;
        b.spend(n * size_of::<Field>() as u64)?;
        let fields = body[..(n * entry) as usize]
            .chunks_exact(entry as usize)
            .map(|e| {
                let mut value = [0; 8];
                value[..word as usize].copy_from_slice(&e[(entry - word) as usize..]);
                Field {
                    tag: b.uint(&e[..2]) as u16,
                    kind: b.uint(&e[2..4]) as u16,
                    count: b.uint(&e[4..(entry - word) as usize]),
                    value,
                }
            })
            .collect();
        let next = b.uint(&body[(n * entry) as usize..]);
        Ok(Ifd { at, next, fields, file: Arc::clone(b) })
    }

    /// The directories that `ifd` points to with SubIFDs.
    pub(crate) fn sub_ifds(&self, ifd: &Ifd) -> Result<Vec<Ifd>, Fault> {
        ifd.find(tag::SUB_IFDS).map_or(Ok(Vec::new()), |field| self.pointed(ifd, field))
    }

    /// The directories that a field of `ifd` points to.
    pub(crate) fn pointed(&self, ifd: &Ifd, field: &Field) -> Result<Vec<Ifd>, Fault> {
        let offsets = ifd.numbers(field)?;
        self.countable(offsets.len())?;
        let mut seen = HashSet::new();
        offsets
            .into_iter()
            .map(|at| {
                if !seen.insert(at) {
                    return Err(format!("the sub-directory at {at} is listed twice").into());
                }
                self.directory(at)
            })
            .collect()
    }
}

impl Ifd {
    /// Every field in the order of the file. A tag may be there twice: all but these read its first field.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Field> + '_ {
        self.fields.iter()
    }

    /// Whether a field is the one of its tag that is read.
    pub(crate) fn is_first(&self, field: &Field) -> bool {
        self.find(field.tag).is_some_and(|first| std::ptr::eq(first, field))
    }

    /// The bytes of a field.
    pub(crate) fn value(&self, field: &Field) -> Result<Vec<u8>, Fault> {
        self.raw(field, 1)
    }

    /// Whether numbers are stored with the most significant byte first.
    pub(crate) fn big_endian(&self) -> bool {
        self.file.big_endian
    }

    /// Whether offsets have eight bytes.
    pub(crate) fn big_tiff(&self) -> bool {
        self.file.big_tiff
    }

    fn find(&self, tag: u16) -> Option<&Field> {
        self.fields.iter().find(|f| f.tag == tag)
    }

    pub(crate) fn has(&self, tag: u16) -> bool {
        self.find(tag).is_some()
    }

    pub(crate) fn has_any(&self, tags: std::ops::RangeInclusive<u16>) -> bool {
        self.fields.iter().any(|f| tags.contains(&f.tag))
    }

    /// The bytes of a field; `held` bytes of memory represent each of its values.
    fn raw(&self, f: &Field, held: u64) -> Result<Vec<u8>, Fault> {
        let size = kind_size(f.kind)
            .ok_or_else(|| format!("tag {} has unknown type {}", f.tag, f.kind))?;
        let n = f.count.checked_mul(size).filter(|n| *n <= self.file.len);
        let n = n.ok_or_else(|| format!("tag {} claims {} values", f.tag, f.count))?;
        let inline = if self.file.big_tiff { 8 } else { 4 };
        if n <= inline {
            return Ok(f.value[..n as usize].to_vec());
        }
        self.file.spend(f.count.saturating_mul(held.max(size)))?;
        let at = self.file.uint(&f.value[..inline as usize]);
        self.file.read(at, n).map_err(|e| e.within(&format!("tag {}", f.tag)))
    }

    /// All values of an unsigned tag.
    pub(crate) fn uints(&self, tag: u16) -> Result<Option<Vec<u64>>, Fault> {
        self.find(tag).map(|f| self.numbers(f)).transpose()
    }

    /// All values of an unsigned field.
    fn numbers(&self, f: &Field) -> Result<Vec<u64>, Fault> {
        if !matches!(f.kind, 1 | 3 | 4 | 7 | 13 | 16 | 18) {
            let reason = format!("tag {} has type {}, expected unsigned numbers", f.tag, f.kind);
            return Err(reason.into());
        }
        let raw = self.raw(f, size_of::<u64>() as u64)?;
        let size = kind_size(f.kind).unwrap_or(1) as usize;
        Ok(raw.chunks_exact(size).map(|c| self.file.uint(c)).collect())
    }

    /// The first value of an unsigned tag.
    pub(crate) fn uint(&self, tag: u16) -> Result<Option<u64>, Fault> {
        Ok(self.uints(tag)?.and_then(|v| v.first().copied()))
    }

    pub(crate) fn uint_or(&self, tag: u16, default: u64) -> Result<u64, Fault> {
        Ok(self.uint(tag)?.unwrap_or(default))
    }

    /// Text, up to the first NUL; bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self, tag: u16) -> Option<String> {
        let raw = self.raw(self.find(tag)?, 1).ok()?;
        let end = raw.iter().position(|b| *b == 0).unwrap_or(raw.len());
        Some(String::from_utf8_lossy(&raw[..end]).into_owned())
    }

    pub(crate) fn bytes(&self, tag: u16) -> Result<Option<Vec<u8>>, Fault> {
        self.find(tag).map(|f| self.value(f)).transpose()
    }

    /// A rational or floating-point number; NaN for 0/0.
    pub(crate) fn real(&self, tag: u16) -> Option<f64> {
        self.reals(tag).ok()??.first().copied()
    }

    /// All values of a field of rational, floating-point or whole numbers.
    pub(crate) fn reals(&self, tag: u16) -> Result<Option<Vec<f64>>, Fault> {
        let Some(f) = self.find(tag) else { return Ok(None) };
        let u = |b: &[u8]| self.file.uint(b);
        let value = |b: &[u8]| match f.kind {
            5 => u(&b[..4]) as f64 / u(&b[4..]) as f64,
            11 => f64::from(f32::from_bits(u(b) as u32)),
            12 => f64::from_bits(u(b)),
            _ => u(b) as f64,
        };
        if !matches!(f.kind, 3 | 4 | 5 | 11 | 12) {
            return Err(format!("tag {tag} has type {}, expected numbers", f.kind).into());
        }
        let raw = self.raw(f, size_of::<f64>() as u64)?;
        Ok(Some(raw.chunks_exact(kind_size(f.kind).unwrap_or(8) as usize).map(value).collect()))
    }

    /// Bytes of the file.
    pub(crate) fn file_len(&self) -> u64 {
        self.file.len
    }

    /// Reads `n` bytes of image data at `offset`.
    pub(crate) fn data(&self, offset: u64, n: u64) -> Result<Vec<u8>, Fault> {
        self.file.read(offset, n)
    }

    /// The same bytes as a stream, so that many of them need little memory.
    pub(crate) fn stream(&self, offset: u64, n: u64) -> Result<Box<dyn BufRead + '_>, Fault> {
        if n <= AT_ONCE {
            return Ok(Box::new(Cursor::new(self.data(offset, n)?)));
        }
        self.file.inside(offset, n)?;
        let part = self.file.file.part(offset, offset + n);
        Ok(Box::new(BufReader::with_capacity(AT_ONCE as usize, part)))
    }
}
