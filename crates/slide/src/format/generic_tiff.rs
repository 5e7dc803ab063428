//! TIFF without a vendor: tiled pyramids, single tiled or stripped images, classic or BigTIFF.

use super::aperio::image_error;
use super::pyramid::{self, Pyramid};
use super::{Format, Probe};
use crate::limits::Fault;
use crate::source::Opened;
use crate::tiff::{TiffImage, tag};
use crate::{OpenOptions, SlideError};

pub(super) const FORMAT: Format = Format {
    name: "generic-tiff",
    about: "TIFF and BigTIFF, tiled or stripped, pyramidal or flat (JPEG, JPEG 2000, deflate, LZW, PackBits, none)",
    knows,
    open,
};

/// Every TIFF that no vendor has marked as its own.
fn knows(probe: &Probe) -> bool {
    // NDPI beyond 4 GB is not a valid TIFF, so that nothing in it states whose it is.
    probe.is_tiff() && vendor(probe).is_none() && !probe.is_named("ndpi")
}

/// The vendor of a TIFF whose layout needs that vendor's own rules.
pub(super) fn vendor(probe: &Probe) -> Option<&'static str> {
    let first = probe.first()?;
    if first.has_any(tag::NDPI_FIRST..=tag::NDPI_LAST) {
        return Some("hamamatsu");
    }
    let has = |t: u16, needle: &str| first.text(t).is_some_and(|s| s.contains(needle));
    if has(tag::DESCRIPTION, "leica-microsystems.com/scn") {
        Some("leica")
    } else if has(tag::XMP, "iScan") || has(tag::XMP, "EncodeInfo") {
        Some("ventana")
    } else if has(tag::SOFTWARE, "Philips") {
        Some("philips")
    } else if has(tag::SOFTWARE, "MedScan") {
        Some("trestle")
    } else if has(tag::DESCRIPTION, "I3DGenericSVS") || has(tag::MAKE, "Huron") {
        Some("other")
    } else {
        None
    }
}

fn open(probe: &Probe, options: &OpenOptions) -> Result<Opened, SlideError> {
    let tiff = probe.tiff()?;
    let first = &tiff.ifds[0];
    let base = TiffImage::new(first, &options.limits).map_err(|e| image_error(probe, 0, e))?;
    let mut others = Vec::new();
    let mut more = tiff.sub_ifds(first).map_err(|e| probe.fault(e))?;
    more.extend(tiff.ifds[1..].iter().cloned());
    for (i, ifd) in more.iter().enumerate() {
        // A damaged or foreign directory next to the first must not be mistaken for a level; a
        // reduced copy of the base must be readable.
        match TiffImage::new(ifd, &options.limits) {
            Ok(image) => others.push(image),
            Err(e) if ifd.uint_or(tag::SUBFILE_TYPE, 0).unwrap_or(0) & 1 == 1 => {
                return Err(image_error(probe, i + 1, e));
            }
            // More than a limit allows is reported, whatever asks for it.
            Err(e @ Fault::Limit(_)) => return Err(image_error(probe, i + 1, e)),
            Err(_) => {}
        }
    }
    let (levels, rest): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|i| i.reduced || i.tiled == base.tiled);
    let (images, extra) = pyramid::order(base, levels);
    let associated = extra.into_iter().chain(rest).enumerate();
    let associated = associated.map(|(i, image)| (format!("image-{}", i + 1), image)).collect();
    let source = Pyramid { images, associated };
    Ok(Opened {
        vendor: if source.images[0].tiled { "generic-tiff" } else { "flat" }.into(),
        levels: source.levels(),
        properties: pyramid::text_properties(&tiff.ifds),
        claims: pyramid::density(first, false).into_iter().collect(),
        bounds: None,
        associated: source.associated_list(),
        source: Box::new(source),
    })
}
