//! Numbers of TIFF and EXIF tags, their names, and their kinds.
//!
//! Sources: TIFF 6.0 (sections 8, 12 to 23), TIFF/EP (ISO 12234-2), Exif 2.32 (tables 4 to 9 and 15),
//! Adobe's XMP and Photoshop notes, IPTC-NAA record 2, DNG 1.6, libtiff's `tiff.h` for private tags of
//! GDAL, ImageJ, Micro-Manager, FEI and Hamamatsu.

use crate::privacy::{Personal, holds_words};

/// What a tag's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Nothing about people: sizes, places of tiles, colours, names of products; a text in it may be any.
    Technical,
    /// Something about people.
    Kind(Personal),
    /// A colour profile, which has texts of its own.
    Profile,
    /// A directory of its own.
    Directory(&'static str),
}

use Holds::{Directory, Kind, Profile, Technical};
use Personal::{Date, Device, Identifier, Person, Picture, Place, Text};

/// Whether TIFF's number of a type is one of text: `ASCII`, and `UTF-8` of Exif 3.0.
pub(crate) fn is_text(kind: u16) -> bool {
    matches!(kind, 2 | 129)
}

/// Whether it is one of single bytes: `BYTE`, `SBYTE`, `UNDEFINED`.
pub(crate) fn is_bytes(kind: u16) -> bool {
    matches!(kind, 1 | 6 | 7)
}

/// Every tag that is known. What is not listed is private.
#[rustfmt::skip]
pub(crate) const TAGS: &[(u16, &str, Holds)] = &[
    // TIFF 6.0, baseline and extensions.
    (254, "NewSubfileType", Technical), (255, "SubfileType", Technical),
    (256, "ImageWidth", Technical), (257, "ImageLength", Technical),
    (258, "BitsPerSample", Technical), (259, "Compression", Technical),
    (262, "PhotometricInterpretation", Technical), (263, "Threshholding", Technical),
    (264, "CellWidth", Technical), (265, "CellLength", Technical), (266, "FillOrder", Technical),
    (269, "DocumentName", Kind(Identifier)), (270, "ImageDescription", Kind(Text)),
    (271, "Make", Technical), (272, "Model", Technical), (273, "StripOffsets", Technical),
    (274, "Orientation", Technical), (277, "SamplesPerPixel", Technical),
    (278, "RowsPerStrip", Technical), (279, "StripByteCounts", Technical),
    (280, "MinSampleValue", Technical), (281, "MaxSampleValue", Technical),
    (282, "XResolution", Technical), (283, "YResolution", Technical),
    (284, "PlanarConfiguration", Technical), (285, "PageName", Kind(Identifier)),
    (286, "XPosition", Technical), (287, "YPosition", Technical),
    (288, "FreeOffsets", Technical), (289, "FreeByteCounts", Technical),
    (290, "GrayResponseUnit", Technical), (291, "GrayResponseCurve", Technical),
    (292, "T4Options", Technical), (293, "T6Options", Technical),
    (296, "ResolutionUnit", Technical), (297, "PageNumber", Technical),
    (301, "TransferFunction", Technical), (305, "Software", Technical),
    (306, "DateTime", Kind(Date)), (315, "Artist", Kind(Person)),
    (316, "HostComputer", Kind(Place)), (317, "Predictor", Technical),
    (318, "WhitePoint", Technical), (319, "PrimaryChromaticities", Technical),
    (320, "ColorMap", Technical), (321, "HalftoneHints", Technical),
    (322, "TileWidth", Technical), (323, "TileLength", Technical),
    (324, "TileOffsets", Technical), (325, "TileByteCounts", Technical),
    (330, "SubIFDs", Technical), (332, "InkSet", Technical), (333, "InkNames", Kind(Text)),
    (334, "NumberOfInks", Technical), (336, "DotRange", Technical),
    (337, "TargetPrinter", Kind(Text)), (338, "ExtraSamples", Technical),
    (339, "SampleFormat", Technical), (340, "SMinSampleValue", Technical),
    (341, "SMaxSampleValue", Technical), (342, "TransferRange", Technical),
    (346, "Indexed", Technical), (347, "JPEGTables", Technical),
    (512, "JPEGProc", Technical), (513, "JPEGInterchangeFormat", Kind(Picture)),
    (514, "JPEGInterchangeFormatLength", Technical), (515, "JPEGRestartInterval", Technical),
    (519, "JPEGQTables", Technical), (520, "JPEGDCTables", Technical),
    (521, "JPEGACTables", Technical), (529, "YCbCrCoefficients", Technical),
    (530, "YCbCrSubSampling", Technical), (531, "YCbCrPositioning", Technical),
    (532, "ReferenceBlackWhite", Technical), (700, "XMP", Kind(Text)),
    (18246, "Rating", Technical), (32781, "ImageID", Kind(Identifier)),
    // Private, in use: libtiff, Aperio, TIFF/EP.
    (32995, "Matteing", Technical), (32996, "DataType", Technical),
    (32997, "ImageDepth", Technical), (32998, "TileDepth", Technical),
    (33432, "Copyright", Kind(Person)), (33550, "ModelPixelScale", Technical),
    (33723, "IPTC", Kind(Text)), (34377, "Photoshop", Kind(Text)),
    (34118, "ZeissSEM", Kind(Text)), (34361, "MMHeader", Kind(Text)),
    (34412, "ZeissLSM", Kind(Text)), (34675, "ICCProfile", Profile),
    (34665, "Exif", Directory("exif")), (34853, "GPS", Directory("gps")),
    (40965, "Interoperability", Directory("interoperability")),
    (34680, "FEI_SFEG", Kind(Text)), (34682, "FEI_HELIOS", Kind(Text)),
    (34737, "GeoAsciiParams", Kind(Text)), (37394, "SecurityClassification", Kind(Text)),
    (37395, "ImageHistory", Kind(Text)), (42112, "GDAL_METADATA", Kind(Text)),
    (42113, "GDAL_NODATA", Technical), (50838, "IJMetadataByteCounts", Technical),
    (50839, "IJMetadata", Kind(Text)), (51123, "MicroManagerMetadata", Kind(Text)),
    (33628, "UIC1", Kind(Text)),
    // Windows Explorer.
    (40091, "XPTitle", Kind(Identifier)), (40092, "XPComment", Kind(Text)),
    (40093, "XPAuthor", Kind(Person)), (40094, "XPKeywords", Kind(Text)),
    (40095, "XPSubject", Kind(Text)),
    // Exif 2.32.
    (33434, "ExposureTime", Technical), (33437, "FNumber", Technical),
    (34850, "ExposureProgram", Technical), (34852, "SpectralSensitivity", Technical),
    (34855, "PhotographicSensitivity", Technical), (34864, "SensitivityType", Technical),
    (36864, "ExifVersion", Technical), (36867, "DateTimeOriginal", Kind(Date)),
    (36868, "DateTimeDigitized", Kind(Date)), (36880, "OffsetTime", Kind(Date)),
    (36881, "OffsetTimeOriginal", Kind(Date)), (36882, "OffsetTimeDigitized", Kind(Date)),
    (37121, "ComponentsConfiguration", Technical), (37122, "CompressedBitsPerPixel", Technical),
    (37377, "ShutterSpeedValue", Technical), (37378, "ApertureValue", Technical),
    (37379, "BrightnessValue", Technical), (37380, "ExposureBiasValue", Technical),
    (37381, "MaxApertureValue", Technical), (37382, "SubjectDistance", Technical),
    (37383, "MeteringMode", Technical), (37384, "LightSource", Technical),
    (37385, "Flash", Technical), (37386, "FocalLength", Technical),
    (37396, "SubjectArea", Technical), (37500, "MakerNote", Kind(Text)),
    (37510, "UserComment", Kind(Text)), (37520, "SubSecTime", Kind(Date)),
    (37521, "SubSecTimeOriginal", Kind(Date)), (37522, "SubSecTimeDigitized", Kind(Date)),
    (40960, "FlashpixVersion", Technical), (40961, "ColorSpace", Technical),
    (40962, "PixelXDimension", Technical), (40963, "PixelYDimension", Technical),
    (40964, "RelatedSoundFile", Kind(Identifier)), (41486, "FocalPlaneXResolution", Technical),
    (41487, "FocalPlaneYResolution", Technical), (41488, "FocalPlaneResolutionUnit", Technical),
    (41495, "SensingMethod", Technical), (41728, "FileSource", Technical),
    (41729, "SceneType", Technical), (41730, "CFAPattern", Technical),
    (41985, "CustomRendered", Technical), (41986, "ExposureMode", Technical),
    (41987, "WhiteBalance", Technical), (41988, "DigitalZoomRatio", Technical),
    (41989, "FocalLengthIn35mmFilm", Technical), (41990, "SceneCaptureType", Technical),
    (41991, "GainControl", Technical), (41992, "Contrast", Technical),
    (41993, "Saturation", Technical), (41994, "Sharpness", Technical),
    (42016, "ImageUniqueID", Kind(Identifier)), (42032, "CameraOwnerName", Kind(Person)),
    (42033, "BodySerialNumber", Kind(Device)), (42034, "LensSpecification", Technical),
    (42035, "LensMake", Technical), (42036, "LensModel", Technical),
    (42037, "LensSerialNumber", Kind(Device)), (42240, "Gamma", Technical),
    // DNG.
    (50706, "DNGVersion", Technical), (50707, "DNGBackwardVersion", Technical),
    (50708, "UniqueCameraModel", Technical), (50735, "CameraSerialNumber", Kind(Device)),
    (50827, "OriginalRawFileName", Kind(Identifier)), (50971, "PreviewDateTime", Kind(Date)),
];

/// Name of a tag, and what it holds.
pub(crate) fn known(tag: u16) -> Option<(&'static str, Holds)> {
    TAGS.iter().find(|(t, ..)| *t == tag).map(|(_, name, holds)| (*name, *holds))
}

/// Tags that state colours by few numbers, of which none is letters.
const COLOURS: [u16; 5] = [318, 319, 336, 529, 532];

/// How many numbers a tag that a copy keeps has at most, for pixels of so many samples (TIFF 6.0). `None`: as many as
/// there are colours, or the tag is left out.
pub(crate) fn most_numbers(tag: u16, samples: u64) -> Option<u64> {
    Some(match tag {
        254..=257 | 259 | 262 | 266 | 274 | 277 | 278 | 282..=284 | 296 => 1,
        317 | 322 | 323 | 332 | 334 | 531 | 32996 | 32997 => 1,
        258 | 280 | 281 | 338 | 339 => samples,
        318 | 530 => 2,
        529 => 3,
        319 => 6,
        336 | 532 => samples.max(3) * 2,
        _ => return None,
    })
}

/// Whether somebody wrote words in the numbers of a tag that a copy keeps: behind those that it has, or as colours.
pub(crate) fn hides_words(tag: u16, numbers: &[u8], size: u64, samples: u64) -> bool {
    let own = most_numbers(tag, samples).unwrap_or(u64::MAX).saturating_mul(size);
    let behind = usize::try_from(own).ok().and_then(|own| numbers.get(own..));
    behind.is_some_and(holds_words) || COLOURS.contains(&tag) && holds_words(numbers)
}

/// The text of a `UserComment` without the code of its characters, where it begins with one (Exif 2.32, table 9).
pub(super) fn without_code(value: &[u8]) -> &[u8] {
    const CODES: [&[u8; 8]; 4] = [b"ASCII\0\0\0", b"JIS\0\0\0\0\0", b"UNICODE\0", &[0; 8]];
    match value.split_first_chunk::<8>() {
        Some((code, text)) if CODES.iter().any(|c| c.eq_ignore_ascii_case(code)) => text,
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::TAGS;

    #[test]
    fn every_tag_is_listed_once() {
        let mut all: Vec<u16> = TAGS.iter().map(|t| t.0).collect();
        all.sort_unstable();
        let before = all.len();
        all.dedup();
        assert_eq!(all.len(), before);
    }
}
