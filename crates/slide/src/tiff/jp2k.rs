//! JPEG 2000 tiles, Aperio's 33003 (YCbCr, perhaps subsampled) and 33005 (RGB) among them.

use crate::jp2;
use hayro_jpeg2000::{DecodeSettings, DecoderContext, Image};
use mitosis::RgbTile;

/// Decodes a codestream or JP2 of at most `most` pixels per side.
pub(crate) fn decode(raw: &[u8], ycbcr: bool, most: (usize, usize)) -> Result<RgbTile, String> {
    let settings = DecodeSettings { strict: true, ..DecodeSettings::default() };
    let open = |raw| Image::new(raw, &settings).map_err(|e| format!("JPEG 2000: {e}"));
    // A frame of DICOM has an even number of bytes; the last is not a box of the file in it.
    let image = open(raw).or_else(|e| match raw.split_last() {
        Some((0, whole)) if whole.starts_with(b"\0\0\0\x0CjP  ") => open(whole),
        _ => Err(e),
    })?;
    let (w, h) = (image.width() as usize, image.height() as usize);
    if w > most.0 || h > most.1 || w == 0 || h == 0 {
        return Err(format!(
            "JPEG 2000: {w} x {h} pixels inside a tile of {} x {}",
            most.0, most.1
        ));
    }
    let ycbcr = ycbcr && !is_converted(raw)?;
    let mut context = DecoderContext::default();
    let decoded = image.decode(&mut context).map_err(|e| format!("JPEG 2000: {e}"))?;
    let planes = decoded.components();
    if planes.len() != 3 && planes.len() != 1 {
        return Err(format!("JPEG 2000: {} components", planes.len()));
    }
    if let Some(p) = planes.iter().find(|p| p.samples().len() < w * h || p.bit_depth() != 8) {
        return Err(format!(
            "JPEG 2000: a component of {} samples of {} bits",
            p.samples().len(),
            p.bit_depth()
        ));
    }
    let byte = |v: f32| (v + 0.5).clamp(0.0, 255.0) as u8;
    let row = |p: usize, y: usize| &planes[p.min(planes.len() - 1)].samples()[y * w..][..w];
    let mut data = vec![0u8; 3 * w * h];
    for (y, line) in data.chunks_exact_mut(3 * w).enumerate() {
        let rows = row(0, y).iter().zip(row(1, y)).zip(row(2, y));
        for (pixel, ((&a, &b), &c)) in line.as_chunks_mut::<3>().0.iter_mut().zip(rows) {
            *pixel = if ycbcr { ycc(byte(a), b, c) } else { [byte(a), byte(b), byte(c)] };
        }
    }
    Ok(RgbTile { width: w, height: h, data })
}

/// Whether hayro makes RGB of luminance and chroma itself: of subsampled chroma, and where a JP2 file names sYCC.
///
/// # Errors
/// A stream whose own transform makes RGB of what is stated to be YCbCr.
fn is_converted(raw: &[u8]) -> Result<bool, String> {
    if jp2::is_transformed(raw) {
        return Err("JPEG 2000: YCbCr is stated, and the stream holds transformed RGB".into());
    }
    Ok(jp2::is_sycc(raw) || subsampled(raw))
}

/// Whether the SIZ marker of a raw codestream gives any component a coarser grid.
fn subsampled(raw: &[u8]) -> bool {
    // SOC (2), SIZ (2), length (2), capabilities (2), eight sizes (32), component count (2).
    let Some(n) = raw.get(40..42).map(|b| usize::from(b[0]) << 8 | usize::from(b[1])) else {
        return false;
    };
    raw.starts_with(&[0xFF, 0x4F, 0xFF, 0x51])
        && raw[42..].chunks_exact(3).take(n).any(|c| c[1] != 1 || c[2] != 1)
}

/// YCbCr to RGB with chroma that is not yet whole. Chroma is rounded as every decoder does, but where
/// it is on a rounding tie, decoders (whose floating-point order differs) fall to either side and
/// blue would differ by two levels: there the tie itself is taken, one level from both.
fn ycc(y: u8, cb: f32, cr: f32) -> [u8; 3] {
    const TIE: f32 = 0.005;
    let halves = |c: f32| {
        let c = (c - 128.0).clamp(-128.0, 127.0);
        let down = c.floor();
        let rest = c - down;
        2 * down as i32 + if (rest - 0.5).abs() < TIE { 1 } else { 2 * i32::from(rest > 0.5) }
    };
    let (y, cb, cr) = (i32::from(y), halves(cb), halves(cr));
    const HALF: i32 = 1 << 16;
    let r = y + ((91_881 * cr + HALF) >> 17);
    let g = y + ((-22_554 * cb - 46_802 * cr + HALF) >> 17);
    let b = y + ((116_130 * cb + HALF) >> 17);
    [r, g, b].map(|v| v.clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    #[test]
    fn whole_chroma_is_converted_as_jpeg_does() {
        for (y, cb, cr) in
            [(0, 0, 0), (255, 255, 255), (120, 3, 250), (77, 128, 128), (200, 130, 90)]
        {
            assert_eq!(super::ycc(y, f32::from(cb), f32::from(cr)), crate::jpeg::ycc(y, cb, cr));
        }
    }

    #[test]
    fn a_tie_is_one_level_from_both_sides() {
        for cb in 0..255u8 {
            let tie = super::ycc(100, f32::from(cb) + 0.5, 128.0);
            for side in [cb, cb + 1] {
                let whole = crate::jpeg::ycc(100, side, 128);
                assert!(tie.iter().zip(whole).all(|(a, b)| a.abs_diff(b) <= 1), "{cb}");
            }
        }
    }
}
