//! What the TIFF formats share: a pyramid of [`TiffImage`]s as a [`Source`].

use crate::limits::Fault;
use crate::privacy;
use crate::resolution::Claim;
use crate::several::shrunk;
use crate::source::{AssociatedImage, Decoded, Level, Source, TileState};
use crate::tiff::{Ifd, TiffImage, tag};
use mitosis::RgbTile;
use std::collections::BTreeMap;

/// Largest associated image, bytes of RGB.
const MAX_ASSOCIATED: u64 = 256 << 20;

pub(crate) struct Pyramid {
    /// Number of the slide's directory in the chain.
    pub(crate) index: usize,
    pub(crate) images: Vec<TiffImage>,
    pub(crate) associated: Vec<Extra>,
    /// What a reader of the numbers must know of images that are not read.
    pub(crate) notes: Vec<String>,
}

/// An image next to the pyramid.
pub(crate) struct Extra {
    pub(crate) name: String,
    /// Width and height, px.
    pub(crate) size: (u64, u64),
    /// Its pixels, or why they cannot be read.
    pub(crate) image: Result<TiffImage, Fault>,
}

impl Pyramid {
    /// Levels, finest first; `images` must already be in that order.
    pub(crate) fn levels(&self) -> Vec<Level> {
        let Some(base) = self.images.first() else { return Vec::new() };
        self.images.iter().map(|i| i.level(base.width, base.height)).collect()
    }

    pub(crate) fn associated_list(&self) -> Vec<AssociatedImage> {
        let associated = |e: &Extra| AssociatedImage {
            name: e.name.clone(),
            width: e.size.0,
            height: e.size.1,
            unreadable: e.image.as_ref().err().map(Fault::reason),
        };
        self.associated.iter().map(associated).collect()
    }
}

impl Source for Pyramid {
    fn tile(&self, level: usize, column: u64, row: u64) -> Result<Decoded, Fault> {
        self.images[level].tile(column, row)
    }

    fn rows(
        &self,
        level: usize,
        column: u64,
        row: u64,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<TileState, Fault> {
        self.images[level].rows(column, row, sink)
    }

    fn stripped(&self, level: usize) -> bool {
        !self.images[level].tiled
    }

    fn absent(&self, level: usize, column: u64, row: u64) -> bool {
        self.images[level].absent(column, row)
    }

    fn stored_bytes(&self, level: usize, column: u64, row: u64) -> Option<u64> {
        self.images[level].stored_bytes(column, row)
    }

    fn left_out(&self, level: usize) -> Vec<(u64, u64)> {
        self.images[level].left_out()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn directories(&self) -> Vec<u64> {
        let extras = self.associated.iter().filter_map(|extra| extra.image.as_ref().ok());
        self.images.iter().chain(extras).map(|image| image.ifd().at).collect()
    }

    fn is_grey(&self) -> bool {
        self.images.first().is_some_and(TiffImage::is_grey)
    }

    fn later_rules(&self) -> Vec<String> {
        let mut rules = Vec::new();
        if self.index != 0 {
            rules.push(format!("the slide is image {} of the file, not its first", self.index));
        }
        if self.images.iter().any(TiffImage::has_undeclared_opacity) {
            rules.push("its pixels have an opacity that the file does not declare".into());
        }
        rules
    }

    fn working_bytes(&self, level: usize) -> u64 {
        self.images[level].working_bytes()
    }

    fn associated(&self, index: usize) -> Result<RgbTile, Fault> {
        self.associated[index].image.as_ref().map_err(Clone::clone)?.whole(MAX_ASSOCIATED)
    }
}

/// Puts the levels in order: `base` first, then every candidate that is a shrunk copy of it.
pub(crate) fn order(
    base: TiffImage,
    candidates: Vec<TiffImage>,
) -> (Vec<TiffImage>, Vec<TiffImage>) {
    let size = (base.width, base.height);
    let (mut levels, rest): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|i| shrunk(size, (i.width, i.height)));
    levels.sort_by_key(|i| std::cmp::Reverse(i.width));
    levels.dedup_by_key(|i| i.width);
    levels.insert(0, base);
    (levels, rest)
}

/// The claim of `XResolution`, `YResolution` and `ResolutionUnit`. Unit 1 ("none") claims nothing.
pub(crate) fn density(ifd: &Ifd, only_if_plausible: bool) -> Option<Claim> {
    let um = match ifd.uint_or(tag::RESOLUTION_UNIT, 2).ok()? {
        2 => 25_400.0,
        3 => 10_000.0,
        _ => return None,
    };
    let x = ifd.real(tag::X_RESOLUTION)?;
    let y = ifd.real(tag::Y_RESOLUTION).unwrap_or(x);
    // 0 and 0/0 mean "not set"; 1 px per unit is what some writers put for the same.
    if x <= 1.0 || y <= 1.0 || x.is_nan() || y.is_nan() {
        return None;
    }
    Some(Claim { only_if_plausible, ..Claim::image("tiff.XResolution", um / x, um / y) })
}

/// The plain text tags of the slide's directory, as OpenSlide names them, and what the others have next to
/// it: a name in the directory of the label is one, too.
///
/// `base` is the directory of the slide.
pub(crate) fn text_properties(ifds: &[Ifd], base: usize) -> BTreeMap<String, String> {
    let names = [
        (tag::DESCRIPTION, "ImageDescription"),
        (tag::MAKE, "Make"),
        (tag::SOFTWARE, "Software"),
        (tag::DOCUMENT_NAME, "DocumentName"),
        (tag::DATE_TIME, "DateTime"),
        (tag::ARTIST, "Artist"),
        (tag::HOST_COMPUTER, "HostComputer"),
        (tag::COPYRIGHT, "Copyright"),
        (tag::XMP, "XMP"),
    ];
    let Some(ifd) = ifds.get(base) else { return BTreeMap::new() };
    let own = |name: &str| format!("tiff.{name}");
    let mut all: BTreeMap<_, _> =
        names.into_iter().filter_map(|(t, n)| Some((own(n), ifd.text(t)?))).collect();
    for (i, other) in ifds.iter().enumerate().filter(|(i, _)| *i != base) {
        for (t, n) in names {
            let (name, text) = (format!("tiff[{i}].{n}"), other.text(t).unwrap_or_default());
            if all.get(&own(n)) != Some(&text) && !privacy::personal_parts(&name, &text).is_empty()
            {
                all.insert(name, text);
            }
        }
    }
    for (t, n) in [(tag::X_RESOLUTION, "tiff.XResolution"), (tag::Y_RESOLUTION, "tiff.YResolution")]
    {
        if let Some(v) = ifd.real(t) {
            all.insert(n.into(), v.to_string());
        }
    }
    all
}
