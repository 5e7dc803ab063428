//! How frames are compressed and coloured, and their decoding.

use super::header::Header;
use crate::jpeg::{self, Space};
use crate::limits::Fault;
use crate::tiff::{cut_rgb, jp2k, packbits};

/// How the frames of a file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coding {
    scheme: Scheme,
    /// Luminance and chroma, where the stream itself does not say.
    ycbcr: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Plain { planar: bool },
    Rle,
    Jpeg,
    Jpeg2000,
}

/// What a transfer syntax is called.
pub(super) fn syntax_name(uid: &str) -> &'static str {
    match uid.strip_prefix("1.2.840.10008.1.2.").unwrap_or_default() {
        "1.99" => "deflated",
        "2" => "big endian",
        "4.51" => "JPEG extended",
        "4.57" | "4.70" => "lossless JPEG",
        "4.80" | "4.81" => "JPEG-LS",
        "4.92" | "4.93" => "JPEG 2000 in several components",
        "4.100" | "4.101" => "MPEG-2",
        "4.102" | "4.103" | "4.104" | "4.105" | "4.106" => "MPEG-4",
        "4.107" | "4.108" => "HEVC",
        "4.110" | "4.111" | "4.112" => "JPEG XL",
        "4.201" | "4.202" | "4.203" => "high-throughput JPEG 2000",
        _ => "unknown here",
    }
}

impl Coding {
    pub(super) fn of(header: &Header) -> Result<Self, Fault> {
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
        let syntax = header.syntax.as_str();
        let scheme = match syntax {
            "1.2.840.10008.1.2" | "1.2.840.10008.1.2.1" => Scheme::Plain { planar: header.planar },
            "1.2.840.10008.1.2.5" => Scheme::Rle,
            "1.2.840.10008.1.2.4.50" => Scheme::Jpeg,
            "1.2.840.10008.1.2.4.90" | "1.2.840.10008.1.2.4.91" => Scheme::Jpeg2000,
            _ => return no(format!("transfer syntax {syntax} ({})", syntax_name(syntax))),
        };
        let ycbcr = match (photometric, scheme) {
            ("RGB", _) | ("YBR_ICT" | "YBR_RCT", Scheme::Jpeg2000) => false,
            ("YBR_FULL", _) | ("YBR_FULL_422", Scheme::Jpeg | Scheme::Jpeg2000) => true,
            _ => {
                return no(format!(
                    "photometric interpretation {photometric} in this transfer syntax ({syntax})"
                ));
            }
        };
        Ok(Self { scheme, ycbcr })
    }

    /// Bytes of memory per pixel that decoding takes.
    pub(super) fn bytes_per_pixel(self) -> u64 {
        match self.scheme {
            Scheme::Plain { .. } | Scheme::Rle => 9,
            // As in a TIFF.
            Scheme::Jpeg => 12,
            Scheme::Jpeg2000 => 36,
        }
    }

    /// Decodes a frame of `stored` pixels and cuts it to `size`. With it comes what casts doubt on the
    /// pixels, if anything.
    pub(super) fn decode(
        self,
        raw: &[u8],
        stored: (usize, usize),
        size: (usize, usize),
    ) -> Result<(Vec<u8>, Option<&'static str>), Fault> {
        let pixels = stored.0 * stored.1;
        match self.scheme {
            Scheme::Plain { planar: false } => {
                Ok((cut_rgb(&self.coloured(raw.to_vec()), stored, size)?, None))
            }
            Scheme::Plain { planar: true } => {
                let rgb = self.coloured(chunky(raw, pixels));
                Ok((cut_rgb(&rgb, stored, size)?, None))
            }
            Scheme::Rle => {
                let rgb = self.coloured(chunky(&planes(raw, pixels)?, pixels));
                Ok((cut_rgb(&rgb, stored, size)?, None))
            }
            Scheme::Jpeg => {
                let space = Space::Said { ycbcr: self.ycbcr };
                let (image, doubt) = jpeg::decode(None, raw, space, stored)?;
                Ok((cut_rgb(&image.data, (image.width, image.height), size)?, doubt))
            }
            Scheme::Jpeg2000 => {
                let image = jp2k::decode(raw, self.ycbcr, stored)?;
                Ok((cut_rgb(&image.data, (image.width, image.height), size)?, None))
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
    let of = |plane: usize, i: usize| planes[plane * pixels + i];
    (0..pixels).flat_map(|i| [of(0, i), of(1, i), of(2, i)]).collect()
}

/// Three planes from run-length segments, whose places stand in front.
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
