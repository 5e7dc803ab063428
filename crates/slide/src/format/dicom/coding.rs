//! How frames are compressed and coloured, and their decoding.

use super::header::Header;
use super::syntax;
use crate::jpeg::{self, Space};
use crate::limits::Fault;
use crate::tiff::{cut_rgb, jp2k, packbits};

/// How the frames of a file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coding {
    scheme: Scheme,
    /// Luminance and chroma, that no transform within the stream undoes.
    ycbcr: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Plain { planar: bool },
    Rle,
    Jpeg,
    Jpeg2000,
}

impl Coding {
    pub(super) fn from_header(header: &Header) -> Result<Self, Fault> {
        let no = |what: String| Err(Fault::Unsupported(what));
        if header.bits != [8, 8, 7] || header.signed {
            let [allocated, stored, high] = header.bits;
            let sign = if header.signed { "signed " } else { "" };
            return no(format!(
                "{sign}samples of {stored} bits in {allocated} up to bit {high}, where plain 8 bits are read"
            ));
        }
        let photometric = header.photometric.as_str();
        if header.samples != 3 {
            return no(format!(
                "{} samples per pixel ({photometric}), where colour is read",
                header.samples
            ));
        }
        let uid = header.syntax.as_str();
        let scheme = match uid {
            syntax::IMPLICIT | syntax::EXPLICIT => Scheme::Plain { planar: header.planar },
            syntax::RLE => Scheme::Rle,
            syntax::JPEG => Scheme::Jpeg,
            syntax::JPEG_2000_LOSSLESS | syntax::JPEG_2000 => Scheme::Jpeg2000,
            _ => return no(format!("transfer syntax {uid} ({})", syntax::name(uid))),
        };
        let ycbcr = match (photometric, scheme) {
            ("RGB", _) | ("YBR_ICT" | "YBR_RCT", Scheme::Jpeg2000) => false,
            ("YBR_FULL", _) | ("YBR_FULL_422", Scheme::Jpeg | Scheme::Jpeg2000) => true,
            _ => {
                return no(format!(
                    "photometric interpretation {photometric} in transfer syntax {uid}"
                ));
            }
        };
        Ok(Self { scheme, ycbcr })
    }

    /// Bytes of memory per pixel that decoding takes.
    pub(super) fn bytes_per_pixel(self) -> u64 {
        match self.scheme {
            Scheme::Plain { .. } => 9,
            Scheme::Rle => 15,
            // As in a TIFF.
            Scheme::Jpeg => 12,
            Scheme::Jpeg2000 => 36,
        }
    }

    /// Decodes a frame of `stored` pixels and cuts it to `size`. With it comes what casts doubt on the
    /// pixels, if anything.
    pub(super) fn decode(
        self,
        raw: Vec<u8>,
        stored: (usize, usize),
        size: (usize, usize),
    ) -> Result<(Vec<u8>, Option<&'static str>), Fault> {
        let pixels = stored.0 * stored.1;
        match self.scheme {
            Scheme::Plain { planar: false } => {
                Ok((cut_rgb(self.coloured(raw), stored, size)?, None))
            }
            Scheme::Plain { planar: true } => {
                let rgb = self.coloured(chunky(&raw, pixels));
                Ok((cut_rgb(rgb, stored, size)?, None))
            }
            Scheme::Rle => {
                let rgb = self.coloured(chunky(&planes(&raw, pixels)?, pixels));
                Ok((cut_rgb(rgb, stored, size)?, None))
            }
            Scheme::Jpeg => {
                // The header's word holds, whatever markers state: so does OpenSlide read it.
                let space = if self.ycbcr { Space::YCbCr } else { Space::AsStored };
                let (image, doubt) = jpeg::decode(None, &raw, space, stored)?;
                let other = jpeg::marked_ycbcr(&raw).is_some_and(|marked| marked != self.ycbcr);
                let doubt = doubt.or(other.then_some(jpeg::OTHER_COLOURS));
                Ok((cut_rgb(image.data, (image.width, image.height), size)?, doubt))
            }
            Scheme::Jpeg2000 => {
                let image = jp2k::decode(&raw, self.ycbcr, stored)?;
                Ok((cut_rgb(image.data, (image.width, image.height), size)?, None))
            }
        }
    }

    fn coloured(self, mut data: Vec<u8>) -> Vec<u8> {
        if self.ycbcr {
            for p in data.as_chunks_mut::<3>().0 {
                *p = jpeg::ycc(p[0], p[1], p[2]);
            }
        }
        data
    }
}

/// Three planes as pixels.
fn chunky(planes: &[u8], pixels: usize) -> Vec<u8> {
    let value = |plane: usize, i: usize| planes[plane * pixels + i];
    (0..pixels).flat_map(|i| [value(0, i), value(1, i), value(2, i)]).collect()
}

/// Three planes from run-length segments, whose places are in front.
fn planes(raw: &[u8], pixels: usize) -> Result<Vec<u8>, String> {
    let (head, _) = raw.as_chunks::<4>();
    let word = |i: usize| head.get(i).map(|b| u32::from_le_bytes(*b) as usize);
    match word(0) {
        Some(3) => {}
        Some(n) => return Err(format!("RLE: {n} segments where 3 are expected")),
        None => return Err("RLE: cut short".into()),
    }
    let mut out = vec![0; 3 * pixels];
    for (i, plane) in out.chunks_exact_mut(pixels).enumerate() {
        let end = if i < 2 { word(i + 2) } else { None }.unwrap_or(raw.len());
        let segment = word(i + 1).and_then(|at| raw.get(at..end));
        packbits(segment.ok_or("RLE: a segment outside its frame")?, plane)?;
    }
    Ok(out)
}
