//! How a crop's pixels are stored.

use image::ImageEncoder;
use mitosis::RgbTile;
use std::path::Path;

/// How a crop's pixels are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Lossless.
    Png,
    /// JPEG of this quality, 1 to 100.
    Jpeg(u8),
}

impl Encoding {
    /// The file extension.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg(_) => "jpg",
        }
    }

    /// What a file's name asks for by its suffix: PNG, or JPEG of quality 90.
    ///
    /// # Errors
    /// [`EncodeError`] for another suffix, or none.
    pub fn of_name(file: &Path) -> Result<Self, EncodeError> {
        let suffix = file.extension().map(|e| e.to_string_lossy().to_lowercase());
        match suffix.as_deref() {
            Some("png") => Ok(Self::Png),
            Some("jpg" | "jpeg") => Ok(Self::Jpeg(90)),
            _ => Err(EncodeError::Suffix(file.to_path_buf())),
        }
    }

    /// Encodes a tile.
    ///
    /// # Errors
    /// When the encoder refuses, e.g. an empty tile.
    pub fn encode(self, tile: &RgbTile) -> Result<Vec<u8>, EncodeError> {
        let size = |n: usize| u32::try_from(n).map_err(|e| EncodeError::Tile(e.to_string()));
        let (w, h) = (size(tile.width)?, size(tile.height)?);
        let mut out = Vec::new();
        let rgb = image::ExtendedColorType::Rgb8;
        match self {
            Self::Png => {
                image::codecs::png::PngEncoder::new(&mut out).write_image(&tile.data, w, h, rgb)
            }
            Self::Jpeg(q) => image::codecs::jpeg::JpegEncoder::new_with_quality(&mut out, q)
                .write_image(&tile.data, w, h, rgb),
        }?;
        Ok(out)
    }
}

/// Why a picture cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A tile that no encoder takes.
    #[error("cannot be encoded: {0}")]
    Tile(String),
    /// A file name whose suffix names no encoding.
    #[error("{}: a picture is written as .png or .jpg", .0.display())]
    Suffix(std::path::PathBuf),
}

impl From<image::ImageError> for EncodeError {
    fn from(e: image::ImageError) -> Self {
        Self::Tile(e.to_string())
    }
}
