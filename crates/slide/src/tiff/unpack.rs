//! Plain compression schemes as streams of samples.

use crate::limits::Fault;
use flate2::bufread::ZlibDecoder;
use std::io::{self, BufRead, Read};
use weezl::{BitOrder, LzwStatus, decode::Decoder};

/// Compression schemes read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Lzw,
    Deflate,
    PackBits,
    Jpeg,
    /// Aperio 33003 (YCbCr inside) and 33005 (RGB inside), and plain 34712 (RGB).
    Jpeg2000 {
        ycbcr: bool,
    },
}

/// The decompressed bytes.
pub(crate) fn reader<'a>(scheme: Compression, bytes: Box<dyn BufRead + 'a>) -> Box<dyn Read + 'a> {
    match scheme {
        Compression::Lzw => {
            Box::new(Lzw { bytes, decoder: Decoder::with_tiff_size_switch(BitOrder::Msb, 8) })
        }
        Compression::Deflate => Box::new(ZlibDecoder::new(bytes)),
        Compression::PackBits => Box::new(PackBits { bytes, left: 0, repeat: None }),
        _ => Box::new(bytes),
    }
}

/// Checks the sum at the end of a stream that has one, `left` bytes behind what was read: of damaged data it is often
/// the only sign. A stream that is cut before its sum, or that has more samples, is taken, as libtiff takes it.
pub(crate) fn check_sum(
    scheme: Compression,
    reader: Box<dyn Read + '_>,
    left: u64,
) -> Result<(), Fault> {
    if scheme != Compression::Deflate {
        return Ok(());
    }
    match io::copy(&mut reader.take(left + 1), &mut io::sink()) {
        Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => Err(fault(scheme, &e)),
        _ => Ok(()),
    }
}

/// Fills `out` with the bytes that runs represent.
pub(crate) fn packbits(bytes: &[u8], out: &mut [u8]) -> Result<(), String> {
    let mut runs = PackBits { bytes, left: 0, repeat: None };
    runs.read_exact(out).map_err(|e| describe(Compression::PackBits, &e))
}

/// Why a stream of samples ends: a failed read, or damage.
pub(crate) fn fault(scheme: Compression, e: &io::Error) -> Fault {
    match e.raw_os_error() {
        Some(_) => Fault::Read(format!("read error: {e}")),
        None => Fault::Damaged(describe(scheme, e)),
    }
}

/// What went wrong, with the scheme in front.
pub(crate) fn describe(scheme: Compression, e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::UnexpectedEof => format!("{scheme:?}: the data are cut short"),
        _ => format!("{scheme:?}: {e}"),
    }
}

struct Lzw<R> {
    bytes: R,
    decoder: Decoder,
}

impl<R: BufRead> Read for Lzw<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let input = self.bytes.fill_buf()?;
            let ended = input.is_empty();
            let step = self.decoder.decode_bytes(input, out);
            self.bytes.consume(step.consumed_in);
            match step.status {
                Err(e) => return Err(io::Error::other(e)),
                Ok(_) if step.consumed_out > 0 => return Ok(step.consumed_out),
                Ok(LzwStatus::Ok) if step.consumed_in > 0 && !ended => {}
                Ok(_) => return Ok(0),
            }
        }
    }
}

struct PackBits<R> {
    bytes: R,
    /// Bytes that the last code still represents.
    left: usize,
    /// What is repeated; otherwise bytes are taken as they are.
    repeat: Option<u8>,
}

impl<R: BufRead> PackBits<R> {
    fn byte(&mut self) -> io::Result<Option<u8>> {
        let first = self.bytes.fill_buf()?.first().copied();
        self.bytes.consume(usize::from(first.is_some()));
        Ok(first)
    }
}

impl<R: BufRead> Read for PackBits<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            let Some(code) = self.byte()? else { return Ok(0) };
            match code as i8 {
                n @ 0.. => (self.left, self.repeat) = (n as usize + 1, None),
                -128 => {}
                n => {
                    let value = self.byte()?.ok_or(io::ErrorKind::UnexpectedEof)?;
                    (self.left, self.repeat) = (1 + usize::from(n.unsigned_abs()), Some(value));
                }
            }
        }
        let n = self.left.min(out.len());
        match self.repeat {
            Some(value) => out[..n].fill(value),
            None => self.bytes.read_exact(&mut out[..n])?,
        }
        self.left -= n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor, Write};

    #[test]
    fn every_scheme_gives_its_bytes_through_small_buffers() {
        let plain: Vec<u8> = (0..40_000u32).map(|i| (i / 300 * 7 + i % 3) as u8).collect();
        let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        deflate.write_all(&plain).unwrap();
        let mut lzw = weezl::encode::Encoder::with_tiff_size_switch(BitOrder::Msb, 8);
        let packed: Vec<u8> = plain
            .chunks(100)
            .flat_map(|c| std::iter::once(c.len() as u8 - 1).chain(c.iter().copied()))
            .collect();
        for (scheme, bytes) in [
            (Compression::None, plain.clone()),
            (Compression::Deflate, deflate.finish().unwrap()),
            (Compression::Lzw, lzw.encode(&plain).unwrap()),
            (Compression::PackBits, packed),
        ] {
            let buffered = Box::new(BufReader::with_capacity(7, Cursor::new(&bytes)));
            let mut out = vec![0; plain.len()];
            let mut r = reader(scheme, buffered);
            out.chunks_mut(333).for_each(|c| r.read_exact(c).unwrap());
            assert!(out == plain, "{scheme:?}");
            let half = Box::new(Cursor::new(&bytes[..bytes.len() / 2]));
            let e = reader(scheme, half).read_exact(&mut out).unwrap_err();
            assert!(describe(scheme, &e).contains("cut short"), "{scheme:?}: {e}");
        }
        // A changed byte of zlib's sum, a sum that is cut off, and one row more than are read.
        let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        deflate.write_all(&plain).unwrap();
        let sound = deflate.finish().unwrap();
        let mut changed = sound.clone();
        *changed.last_mut().unwrap() ^= 1;
        let cut = sound[..sound.len() - 4].to_vec();
        for (bytes, read, holds) in [
            (&sound, plain.len(), true),
            (&sound, plain.len() - 100, true),
            (&changed, plain.len(), false),
            (&changed, plain.len() - 100, false),
            (&cut, plain.len(), true),
        ] {
            let mut r = reader(Compression::Deflate, Box::new(Cursor::new(bytes)));
            // Where the samples end with the stream they are read with their sum.
            let sound = r.read_exact(&mut vec![0; read]).is_ok()
                && check_sum(Compression::Deflate, r, (plain.len() - read) as u64).is_ok();
            assert_eq!(sound, holds, "{read}");
        }
        let mut run = reader(Compression::PackBits, Box::new(Cursor::new([128u8, 254, 9])));
        let mut out = [0; 3];
        run.read_exact(&mut out).unwrap();
        assert_eq!(out, [9; 3]);
    }
}
