//! Formats: one file each, one line each in [`FORMATS`].

mod aperio;
mod dicom;
mod flat;
mod further;
mod generic_tiff;
mod likeness;
mod ome;
mod openslide;
mod probe;
mod pyramid;
mod roles;

pub(crate) use self::dicom::files as dicom_files;
pub use self::dicom::{DicomPart, dicom_part};
pub(crate) use self::flat::orientation as flat_orientation;
pub use self::further::further_files;
pub use self::openslide::{NoOpenSlide, openslide_version};
pub use probe::Format;
pub(crate) use probe::Probe;

use crate::file::{self, SlideFile};
use crate::limits::{Fault, Limits, check};
use crate::privacy;
use crate::source::Opened;
use crate::tiff::{Ifd, TiffImage, tag};
use crate::{OpenOptions, SlideError};
use mitosis::RgbTile;
use std::path::Path;
use std::sync::Arc;

/// All readers, in the order in which they are asked. The last one takes what no other knows.
pub static FORMATS: &[Format] = &[
    aperio::FORMAT,
    ome::FORMAT,
    generic_tiff::FORMAT,
    flat::PNG,
    flat::JPEG,
    dicom::FORMAT,
    openslide::FORMAT,
];

/// Every page of a TIFF as a picture of its own, in the order of the file: for stacks of small pictures,
/// which are not a pyramid.
///
/// # Errors
/// [`SlideError`] when the file is not a TIFF, a page cannot be decoded, or all together are more than the
/// limit `memory` allows.
pub fn read_pages(path: &Path, limits: &Limits) -> Result<Vec<RgbTile>, SlideError> {
    let probe = Probe::new(&file::shown(path)?, limits)?;
    if !probe.is_tiff() {
        let remedy = "write the pictures as pages of one TIFF";
        return Err(probe.unsupported("no TIFF".into(), remedy));
    }
    let mut left = limits.memory.total();
    let mut pages = Vec::new();
    for (i, ifd) in probe.tiff()?.ifds.iter().enumerate() {
        let page = TiffImage::new(ifd, limits).and_then(|image| image.whole(left));
        let page = page.map_err(|fault| {
            let error = probe.fault(fault.within(&format!("page {}", i + 1)));
            probe.file.or_failure(path, error)
        })?;
        left = left.saturating_sub(page.data.len() as u64);
        pages.push(page);
    }
    Ok(pages)
}

/// What a copy of a TIFF slide is made of.
pub(crate) struct Layout {
    /// The directories of the levels, finest first.
    pub(crate) levels: Vec<Ifd>,
    /// The directory of the thumbnail.
    pub(crate) thumbnail: Option<Ifd>,
    /// The other images, by name.
    pub(crate) removed: Vec<String>,
    /// Whether the description is Aperio's, which states um/px.
    pub(crate) aperio: bool,
}

/// The directories of a TIFF slide by what they are.
pub(crate) fn tiff_layout(path: &Path, options: &OpenOptions) -> Result<Layout, SlideError> {
    let probe = Probe::new(path, &options.limits)?;
    let format = FORMATS.iter().find(|f| (f.knows)(&probe)).map(|f| f.name);
    let arranged = match format {
        Some("aperio") => aperio::arranged(&probe, options)?,
        Some("ome-tiff") => ome::arranged(&probe, options)?,
        _ => generic_tiff::arranged(&probe, options)?,
    };
    let images = &arranged.pyramid.images;
    let levels = images.iter().map(|i| i.ifd().clone()).collect();
    let aperio = format == Some("aperio");
    let (mut thumbnail, mut removed) = (None, Vec::new());
    for extra in arranged.pyramid.associated {
        match extra.image {
            Ok(image)
                if extra.name == "thumbnail"
                    && thumbnail.is_none()
                    && is_known_in_copy(&image, images, aperio).map_err(|e| probe.fault(e))? =>
            {
                thumbnail = Some(image.ifd().clone());
            }
            _ => removed.push(format!("image {}", extra.name)),
        }
    }
    Ok(Layout { levels, thumbnail, removed, aperio })
}

/// Whether a thumbnail is one without its name, which a copy leaves out: by what is left of Aperio's description, or by
/// what it shows.
fn is_known_in_copy(
    thumbnail: &TiffImage,
    levels: &[TiffImage],
    aperio: bool,
) -> Result<bool, Fault> {
    let text = thumbnail.ifd().text(tag::DESCRIPTION).unwrap_or_default();
    let is_named = aperio && aperio::is_shrunk(&privacy::without_persons(&text));
    Ok(is_named || likeness::is_thumbnail(thumbnail, levels)?)
}

/// A slide in the format that opened it.
pub(crate) struct OpenedFormat {
    /// The format's name.
    pub(crate) name: &'static str,
    pub(crate) opened: Opened,
    /// The slide's bytes.
    pub(crate) file: Arc<SlideFile>,
}

pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<OpenedFormat, SlideError> {
    let probe = Probe::new(path, &options.limits)?;
    // A reader may have passed over what could not be read, or taken it for damage.
    let found = known(&probe, options).map_err(|e| probe.file.or_failure(path, e));
    // A field that could not be read looks like one that is not there.
    match probe.file.first_failure() {
        Some(reason) => Err(SlideError::read(path, reason)),
        None => found,
    }
}

fn known(probe: &Probe, options: &OpenOptions) -> Result<OpenedFormat, SlideError> {
    let found = FORMATS
        .iter()
        .filter(|f| !options.force_openslide || f.name == openslide::FORMAT.name)
        .find(|f| (f.knows)(probe));
    // The last format knows everything.
    let format = found.unwrap_or(&openslide::FORMAT);
    let opened = (format.open)(probe, options)?;
    if opened.levels.is_empty() {
        return Err(probe.malformed("no image inside".into()));
    }
    let base = &opened.levels[0];
    let pixels = u128::from(base.width) * u128::from(base.height);
    let what = || format!("a picture of {} x {} pixels", base.width, base.height);
    check("pixels", options.limits.pixels, pixels, what)
        .map_err(|breach| SlideError::limit(&probe.path, breach))?;
    Ok(OpenedFormat { name: format.name, opened, file: Arc::clone(&probe.file) })
}
