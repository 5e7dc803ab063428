//! TIFF without a vendor: tiled pyramids, single tiled or stripped images, classic or BigTIFF.

use super::pyramid;
use super::roles::{Arranged, Rule, arrange, entries, named};
use super::{Format, Probe};
use crate::source::Opened;
use crate::tiff::tag;
use crate::{OpenOptions, SlideError};

pub(super) const FORMAT: Format = Format {
    name: "generic-tiff",
    about: "TIFF and BigTIFF, tiled or stripped, pyramidal or flat (JPEG, JPEG 2000, deflate, LZW, PackBits, none)",
    knows,
    open,
};

const RULE: Rule = Rule {
    twins: None,
    tiles_only: false,
    remedy: "export one focal plane of one scene as an RGB file of its own if its program can",
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

/// `ImageDescription` of ImageJ: several images behind one directory.
fn imagej_images(text: &str) -> Option<u64> {
    text.strip_prefix("ImageJ=")?;
    text.lines().find_map(|l| l.strip_prefix("images=")?.trim().parse().ok())
}

/// The images of the file by what they are.
pub(super) fn arranged(probe: &Probe, options: &OpenOptions) -> Result<Arranged, SlideError> {
    let tiff = probe.tiff()?;
    let mut all = entries(probe, tiff, &options.limits)?;
    let text = tiff.ifds[0].text(tag::DESCRIPTION).unwrap_or_default();
    if let Some(n) = imagej_images(&text).filter(|n| *n > 1 && tiff.ifds.len() == 1) {
        let what = format!("{n} images of ImageJ behind one directory, and one is read");
        return Err(probe.unsupported(what, RULE.remedy));
    }
    for e in &mut all {
        // Only short texts are names: a description may speak of anything.
        let texts = [tag::PAGE_NAME, tag::DESCRIPTION].map(|t| e.ifd.text(t).unwrap_or_default());
        let name =
            texts.iter().filter(|t| t.split_whitespace().count() <= 3).find_map(|t| named(t));
        e.name = name.map(str::to_owned);
    }
    arrange(probe, all, &RULE)
}

fn open(probe: &Probe, options: &OpenOptions) -> Result<Opened, SlideError> {
    let tiff = probe.tiff()?;
    let Arranged { pyramid: source, base, index } = arranged(probe, options)?;
    Ok(Opened {
        vendor: if source.images[0].tiled { "generic-tiff" } else { "flat" }.into(),
        levels: source.levels(),
        properties: pyramid::text_properties(&tiff.ifds, index),
        claims: pyramid::density(&base, false).into_iter().collect(),
        bounds: None,
        associated: source.associated_list(),
        source: Box::new(source),
    })
}
