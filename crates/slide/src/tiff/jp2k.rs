//! JPEG 2000 tiles, Aperio's 33003 (YCbCr, perhaps subsampled) and 33005 (RGB) among them.

use crate::jpeg::ycc;
use hayro_jpeg2000::{DecodeSettings, DecoderContext, Image};
use mitosis::RgbTile;

/// Decodes a codestream or JP2 of at most `most` pixels per side.
pub(crate) fn decode(raw: &[u8], ycbcr: bool, most: (usize, usize)) -> Result<RgbTile, String> {
    let settings = DecodeSettings { strict: true, ..DecodeSettings::default() };
    let image = Image::new(raw, &settings).map_err(|e| format!("JPEG 2000: {e}"))?;
    let (w, h) = (image.width() as usize, image.height() as usize);
    if w > most.0 || h > most.1 || w == 0 || h == 0 {
        return Err(format!(
            "JPEG 2000: {w} x {h} pixels inside a tile of {} x {}",
            most.0, most.1
        ));
    }
    // hayro converts YCbCr itself when it sees subsampled chroma.
    let ycbcr = ycbcr && !subsampled(raw);
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
            let (a, b, c) = (byte(a), byte(b), byte(c));
            *pixel = if ycbcr { ycc(a, b, c) } else { [a, b, c] };
        }
    }
    Ok(RgbTile { width: w, height: h, data })
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
