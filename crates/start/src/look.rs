//! What a slide is, before anything runs on it.

use crate::error::{PageError, full_message};
use jpeg_encoder::{ColorType, Encoder};
use mithras::detector::Opener;
use mithras::input::Input;
use serde::Serialize;
use slide::info::{ResolutionInfo, SlideInfo};

/// Longer side of a picture, px.
const SIDE: usize = 320;
const QUALITY: u8 = 85;

/// What a slide is; where it cannot be used, why.
#[derive(Debug, Serialize)]
pub struct Look {
    /// Whether detection will take it.
    usable: bool,
    /// Why not.
    error: Option<String>,
    #[serde(flatten)]
    about: Option<About>,
}

#[derive(Debug, Serialize)]
struct About {
    width: u64,
    height: u64,
    /// um/px of level 0; none where the file states none.
    mpp: Option<[f64; 2]>,
    /// Where that was read.
    mpp_source: Option<String>,
    /// The scanner's maker; none where the file states none.
    scanner: Option<&'static str>,
    /// What reads the file.
    reader: &'static str,
    levels: usize,
    /// What a reader of its counts must know.
    warnings: Vec<String>,
}

/// Opens a slide as detection would.
pub fn look(input: &Input, opener: &Opener) -> Look {
    let slide = match opener.open(input) {
        Ok(slide) => slide,
        Err(e) => return Look { usable: false, error: Some(full_message(&e)), about: None },
    };
    let info = SlideInfo::read(&slide);
    let (mpp, mpp_source) = match info.resolution {
        ResolutionInfo::Known { x_um, y_um, source } => {
            (Some([x_um.get(), y_um.get()]), Some(source))
        }
        ResolutionInfo::Unknown { .. } => (None, None),
    };
    let fit = opener.fitting(&slide);
    let mut warnings = info.level_notes;
    warnings.extend(fit.as_ref().ok().and_then(|(_, note)| note.clone()));
    warnings.extend(opener.scanner_note(&slide));
    let error = fit.err().map(|e| full_message(&e));
    Look {
        usable: error.is_none(),
        error,
        about: Some(About {
            width: info.width,
            height: info.height,
            mpp,
            mpp_source,
            scanner: slide.scanner(),
            reader: info.reader,
            levels: info.levels.len(),
            warnings,
        }),
    }
}

/// A small picture of the whole slide, as JPEG; tiles that cannot be decoded are white.
///
/// # Errors
/// [`PageError::Slide`] or [`PageError::Picture`].
pub fn picture(input: &Input, opener: &Opener) -> Result<Vec<u8>, PageError> {
    let small = opener.open(input)?.thumbnail_partial(SIDE)?;
    let mut bytes = Vec::new();
    let (width, height) = (small.width as u16, small.height as u16);
    Encoder::new(&mut bytes, QUALITY)
        .encode(&small.data, width, height, ColorType::Rgb)
        .map_err(|source| PageError::Picture { path: input.path.clone(), source })?;
    Ok(bytes)
}
