//! Pictures that are read whole, as crops and masks are. They follow the rules of slides: upright, one picture in a
//! file, all of it there, transparency onto white.

use crate::exif;
use crate::file::SlideFile;
use crate::format::flat_orientation;
use crate::limits::{Fault, Limits, SMALL, check};
use crate::several::other_pictures;
use crate::tiff::{TiffFile, is_tiff, over_white, tag};
use crate::whole::missing_of_jpeg;
use image::{DynamicImage, ImageReader};
use mitosis::RgbTile;
use std::io::Cursor;
use std::sync::Arc;

/// Why a picture is not read.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// It cannot be decoded.
    #[error(transparent)]
    Decode(#[from] image::ImageError),
    /// It can, but would not be what a person sees.
    #[error("{0}")]
    Refused(String),
}

/// Decodes a PNG, JPEG or TIFF file to RGB of 8 bits; what is not opaque is on white.
///
/// # Errors
/// [`PictureError`]: other bytes, a JPEG of which a part is missing (it would be grey), what [`picture_fault`] names.
pub fn read_picture(bytes: &[u8]) -> Result<RgbTile, PictureError> {
    within_limits(bytes, &Limits::default())
        .map_err(|fault| PictureError::Refused(fault.reason()))?;
    let image = image::load_from_memory(bytes)?;
    if let Some(what) = missing_of_jpeg(bytes) {
        return Err(PictureError::Refused(format!("{what}; copy the file again")));
    }
    if let Some(what) = picture_fault(bytes) {
        return Err(PictureError::Refused(what));
    }
    let (width, height) = (image.width() as usize, image.height() as usize);
    let data = match image.color().has_alpha() {
        true => on_white(&image, opacity(bytes)),
        false => image.into_rgb8().into_raw(),
    };
    Ok(RgbTile::new(width, height, data))
}

/// Whether a picture may be decoded, by the size that it states: the limits of slides that are decoded whole. One whose
/// size is not known is not decoded either.
fn within_limits(bytes: &[u8], limits: &Limits) -> Result<(), Fault> {
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let Ok(Ok((w, h))) = reader.map(ImageReader::into_dimensions) else { return Ok(()) };
    let (pixels, what) =
        (u128::from(w) * u128::from(h), || format!("a picture of {w} x {h} pixels"));
    let rgb = 3 * pixels;
    check("pixels", limits.pixels, pixels, what)?;
    check("decoded", limits.decoded, rgb, what)?;
    if rgb > u128::from(SMALL) {
        check("expansion", limits.expansion, rgb / (bytes.len() as u128).max(1), what)?;
    }
    Ok(limits.working(what, rgb)?)
}

/// Why the file of a crop or a mask is not one upright picture within the limits, with the remedy; none of one that is.
/// Labels are drawn on what a viewer shows, and pixels are read as they are stored.
#[must_use]
pub fn picture_fault(bytes: &[u8]) -> Option<String> {
    if let Err(fault) = within_limits(bytes, &Limits::default()) {
        return Some(fault.reason());
    }
    let stored = match first_directory(bytes) {
        Some(tiff) => tiff.ifds.first()?.uint(tag::ORIENTATION).ok().flatten(),
        None => flat_orientation(bytes),
    };
    let turned = stored.and_then(exif::refused).map(|what| format!("{what}; {}", exif::UPRIGHT));
    turned.or_else(|| other_pictures(bytes))
}

fn first_directory(bytes: &[u8]) -> Option<TiffFile> {
    let file = || Arc::new(SlideFile::from(bytes.to_vec()));
    is_tiff(bytes).then(|| TiffFile::read(&file(), &Limits::default()).ok())?
}

/// What the last sample of a pixel means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opacity {
    /// Its opacity.
    Plain,
    /// Its opacity, with which the colours are multiplied.
    Multiplied,
    /// Not stated: only black of none is not a part of the picture.
    Unstated,
}

/// What the file states of the opacity: a PNG has plain one, a TIFF names its kind (`ExtraSamples`).
fn opacity(bytes: &[u8]) -> Opacity {
    let Some(tiff) = first_directory(bytes) else { return Opacity::Plain };
    let kind = tiff.ifds.first().and_then(|ifd| ifd.uint(tag::EXTRA_SAMPLES).ok().flatten());
    match kind {
        Some(1) => Opacity::Multiplied,
        Some(2) => Opacity::Plain,
        _ => Opacity::Unstated,
    }
}

fn on_white(image: &DynamicImage, opacity: Opacity) -> Vec<u8> {
    let on_white = |pixel: &image::Rgba<u8>| {
        let [r, g, b, a] = pixel.0;
        let rgb = [r, g, b];
        match opacity {
            Opacity::Plain => rgb.map(|c| over_white(c, a)),
            Opacity::Multiplied => rgb.map(|c| c.saturating_add(255 - a)),
            Opacity::Unstated if a == 0 && rgb == [0; 3] => [255; 3],
            Opacity::Unstated => rgb,
        }
    };
    image.to_rgba8().pixels().flat_map(on_white).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::png::SIGNATURE;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use image::{ImageFormat, Rgba, RgbaImage};
    use std::io::Write;

    fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        image.into().write_to(&mut out, format).unwrap();
        out.into_inner()
    }

    /// A block of EXIF that states an orientation alone.
    fn exif_block(orientation: u8) -> Vec<u8> {
        let head = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
        [&head[..], &[orientation, 0, 0, 0], &[0; 4]].concat()
    }

    /// The same picture with an orientation.
    fn turned(picture: &[u8], orientation: u8) -> Vec<u8> {
        let block = exif_block(orientation);
        if picture.starts_with(SIGNATURE) {
            let length = (block.len() as u32).to_be_bytes();
            let mut body = [&b"eXIf"[..], &block].concat();
            let mut crc = flate2::Crc::new();
            crc.update(&body);
            body.extend(crc.sum().to_be_bytes());
            return [&picture[..33], &length, &body, &picture[33..]].concat();
        }
        let body = [&b"Exif\0\0"[..], &block].concat();
        let length = (body.len() as u16 + 2).to_be_bytes();
        [&picture[..2], &[0xFF, 0xE1], &length, &body, &picture[2..]].concat()
    }

    #[test]
    fn a_turned_picture_is_refused() {
        let picture = image::RgbImage::from_fn(4, 4, |x, y| image::Rgb([x as u8, y as u8, 9]));
        for format in [ImageFormat::Png, ImageFormat::Jpeg] {
            let upright = encoded(picture.clone(), format);
            assert!(read_picture(&upright).is_ok(), "{format:?}");
            assert!(read_picture(&turned(&upright, 1)).is_ok(), "{format:?}");
            for orientation in [3, 6] {
                let refused = read_picture(&turned(&upright, orientation)).unwrap_err().to_string();
                let stated = format!("orientation {orientation}");
                assert!(refused.contains(&stated) && refused.contains("upright"), "{refused}");
            }
        }
    }

    /// Behind the size of a JPEG, with the mark of a JPEG in a PNG, and in XMP alone.
    #[test]
    fn an_orientation_counts_wherever_it_is_stated() {
        let picture = image::RgbImage::from_pixel(4, 4, image::Rgb([9, 8, 7]));
        let jpeg = encoded(picture.clone(), ImageFormat::Jpeg);
        let scan = jpeg.windows(2).position(|w| w == [0xFF, 0xDA]).unwrap();
        let segment = |body: &[u8]| {
            let length = (body.len() as u16 + 2).to_be_bytes();
            [&jpeg[..scan], &[0xFF, 0xE1], &length, body, &jpeg[scan..]].concat()
        };
        let xmp = b"http://ns.adobe.com/xap/1.0/\0<a tiff:Orientation=\"6\"/>";
        let png = encoded(picture, ImageFormat::Png);
        let chunk = |kind: &[u8], body: &[u8]| {
            let length = (body.len() as u32).to_be_bytes();
            let mut crc = flate2::Crc::new();
            crc.update(&[kind, body].concat());
            [&png[..33], &length, kind, body, &crc.sum().to_be_bytes(), &png[33..]].concat()
        };
        let marked = [&b"Exif\0\0"[..], &exif_block(6)].concat();
        let packet = b"XML:com.adobe.xmp\0\0\0\0\0<tiff:Orientation>6</tiff:Orientation>";
        // As ImageMagick writes a block: digits, packed or not.
        let digits: String = exif_block(6).iter().map(|b| format!("{b:02x}")).collect();
        let raw =
            format!("\nexif\n{:8}\n{}\n{}\n", exif_block(6).len(), &digits[..36], &digits[36..]);
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        packed.write_all(raw.as_bytes()).unwrap();
        let packed = [&b"Raw profile type APP1\0\0"[..], &packed.finish().unwrap()].concat();
        let plain = [&b"Raw profile type exif\0"[..], raw.as_bytes()].concat();
        for turned in [
            segment(&marked),
            segment(xmp),
            chunk(b"eXIf", &marked),
            chunk(b"iTXt", packet),
            chunk(b"zTXt", &packed),
            chunk(b"tEXt", &plain),
        ] {
            let refused = read_picture(&turned).unwrap_err().to_string();
            assert!(refused.contains("orientation 6"), "{refused}");
        }
    }

    #[test]
    fn the_limits_of_slides_hold_before_a_picture_is_decoded() {
        let picture = image::RgbImage::from_pixel(40, 30, image::Rgb([9, 8, 7]));
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Tiff] {
            let bytes = encoded(picture.clone(), format);
            for (setting, name) in [("pixels=1199", "pixels"), ("decoded=3599", "decoded")] {
                let mut limits = Limits::default();
                limits.set(setting).unwrap();
                let reason = within_limits(&bytes, &limits).unwrap_err().reason();
                assert!(reason.contains("40 x 30") && reason.contains(name), "{reason}");
            }
            let mut limits = Limits::default();
            limits.set_all("pixels=1200,decoded=3600").unwrap();
            assert_eq!(within_limits(&bytes, &limits), Ok(()), "{format:?}");
        }
    }

    #[test]
    fn what_is_not_opaque_is_on_white() {
        let picture =
            RgbaImage::from_fn(2, 1, |x, _| Rgba([40, 0, 0, if x == 0 { 0 } else { 255 }]));
        let png = encoded(picture.clone(), ImageFormat::Png);
        assert_eq!(read_picture(&png).unwrap().data, [255, 255, 255, 40, 0, 0]);
        let tiff = encoded(picture, ImageFormat::Tiff);
        assert_eq!(read_picture(&tiff).unwrap().data[3..], [40, 0, 0]);
        let grey = image::GrayAlphaImage::from_pixel(1, 1, image::LumaA([0, 0]));
        assert_eq!(read_picture(&encoded(grey, ImageFormat::Png)).unwrap().data, [255; 3]);
    }
}
