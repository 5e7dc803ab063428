//! Which image of a file is the slide, which are its levels, and what the others are.
//!
//! One rule for every TIFF: all directories are looked at before any is believed. The slide is the
//! largest image that is not a mask and not named label, macro or thumbnail, unless the others are
//! shrunk copies of one that is so named. Shrunk copies of the slide are its levels. A second image
//! that may be a slide as well (another scene, focal plane or channel) refuses the file, because a count
//! of one of them would look like a count of all. Everything else is an associated image, whether it
//! can be decoded or not. An image that is not declared to be reduced is a
//! level only where its own um/px, if it states one, is that of the slide times the step between them.

use super::Probe;
use super::likeness::is_thumbnail;
use super::pyramid::{Extra, Pyramid, density};
use crate::SlideError;
use crate::limits::{Fault, Limits};
use crate::resolution::MAX_DENSITY_MPP;
use crate::several::shrunk;
use crate::tiff::{Ifd, TiffFile, TiffImage, tag};

/// `NewSubfileType` (TIFF 6.0, section 8): a reduced copy of another image.
const REDUCED: u64 = 1;
/// `NewSubfileType`: a transparency mask of another image.
const MASK: u64 = 4;
/// `NewSubfileType` that Aperio's scanners give to the macro photograph.
const APERIO_MACRO: u64 = 9;
/// `PhotometricInterpretation` of a mask.
const PHOTOMETRIC_MASK: u64 = 4;
/// An unnamed image of at least this share of the slide's pixels is a second scene.
const SCENE_SHARE: u128 = 4;
/// Resolutions within this share of each other are those of one scan.
const SAME_SCAN: f64 = 0.05;
/// Smallest step between levels that no directory declares to be reduced.
const STEP: f64 = 1.5;
/// Smallest second scene, px, where its resolution equals the slide's.
const SCENE_PIXELS: u128 = 1 << 20;
/// Scans of tissue are finer than this, um/px; photographs of the whole glass are coarser.
const SCAN_UM: f64 = 2.0;

/// Words that programs use for images next to the slide, as whole words of a name: Aperio's
/// `ImageDescription`, the image names that Bio-Formats and QuPath write into OME-XML, DICOM's flavours.
const NAMES: [(&str, &str); 8] = [
    ("label", "label"),
    ("barcode", "label"),
    ("macro", "macro"),
    ("overview", "macro"),
    ("localizer", "macro"),
    ("thumbnail", "thumbnail"),
    ("thumb", "thumbnail"),
    ("preview", "thumbnail"),
];

/// The associated image that a name means.
pub(super) fn named(text: &str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.find_map(|w| NAMES.iter().find(|(name, _)| *name == w).map(|(_, role)| *role))
}

/// One directory of a file.
pub(super) struct Entry {
    /// Its number in the file's chain, or that of the directory that points to it.
    pub(super) index: usize,
    /// Whether `SubIFDs` of the directory `index` point to it.
    pub(super) sub: bool,
    /// Width and height, px.
    pub(super) size: Option<(u64, u64)>,
    /// What the file calls it, if that is a word of [`NAMES`].
    pub(super) name: Option<String>,
    /// um/px, where the file states it for this image.
    pub(super) mpp: Option<f64>,
    pub(super) ifd: Ifd,
    /// What is wrong with the directories that its `SubIFDs` point to.
    below: Option<Fault>,
    subfile: u64,
    tiled: bool,
    colours: u64,
    mask: bool,
    image: Result<TiffImage, Fault>,
}

impl Entry {
    fn new(index: usize, sub: bool, ifd: &Ifd, limits: &Limits) -> Self {
        let uint = |t: u16| ifd.uint(t).ok().flatten();
        let size = uint(tag::WIDTH).zip(uint(tag::HEIGHT)).filter(|(w, h)| *w > 0 && *h > 0);
        let old = match uint(tag::OLD_SUBFILE_TYPE) {
            Some(2) => REDUCED,
            _ => 0,
        };
        let subfile = uint(tag::SUBFILE_TYPE).unwrap_or(old);
        Self {
            index,
            sub,
            size,
            name: None,
            mpp: density(ifd, true).map(|c| c.x),
            below: None,
            subfile,
            tiled: ifd.has(tag::TILE_WIDTH),
            colours: uint(tag::SAMPLES).unwrap_or(1).min(3),
            mask: subfile & MASK != 0 || uint(tag::PHOTOMETRIC) == Some(PHOTOMETRIC_MASK),
            image: TiffImage::new(ifd, limits),
            ifd: ifd.clone(),
        }
    }

    fn pixels(&self) -> u128 {
        self.size.map_or(0, |(w, h)| u128::from(w) * u128::from(h))
    }

    /// um/px, if that is one of a microscope: image libraries write the density of a screen or a printer.
    fn um(&self) -> Option<f64> {
        self.mpp.filter(|um| *um > 0.0 && *um <= MAX_DENSITY_MPP)
    }

    fn as_scaled(&self) -> Option<Scaled> {
        Some(Scaled { size: self.size?, um: self.um()? })
    }

    /// Whether it is declared to be a reduced copy of the slide. The flag means nothing where the slide has it, too.
    fn is_declared_copy(&self, base: &Self) -> bool {
        self.sub || (self.reduced() && !base.reduced())
    }

    /// Whether it is a mask, named as a picture next to the slide, or stored as no level is.
    fn is_associated(&self, rule: &Rule) -> bool {
        self.mask || self.name.is_some() || (rule.tiles_only && !self.tiled)
    }

    /// Whether it may be a level of the slide for all that is known of it.
    fn may_be_level(&self, base: &Self, rule: &Rule) -> bool {
        let is_photograph = self.subfile == APERIO_MACRO || self.is_associated(rule);
        !is_photograph && (self.reduced() || is_alike(self, base))
    }

    /// What refuses the file, unless it is that of a picture next to the slide: what is damaged or asks for too much
    /// may be the larger part of it.
    fn grave_fault(&self) -> Option<&Fault> {
        let limit = self.image.as_ref().err().filter(|fault| matches!(fault, Fault::Limit(_)));
        self.below.as_ref().or(limit)
    }

    fn error(&self, probe: &Probe, fault: &Fault) -> SlideError {
        probe.fault(fault.clone().within(&format!("image {}", self.index)))
    }

    fn reduced(&self) -> bool {
        self.subfile & REDUCED != 0 || self.sub
    }

    /// Whether both directories point at the same pixels.
    fn is_same_data(&self, other: &Self) -> bool {
        match (&self.image, &other.image) {
            (Ok(a), Ok(b)) => a.is_same_data(b),
            _ => false,
        }
    }

    fn extra(self, name: String) -> Extra {
        Extra { name, size: self.size.unwrap_or_default(), image: self.image }
    }
}

/// Every directory of a file, those below `SubIFDs` among them.
pub(super) fn entries(
    probe: &Probe,
    tiff: &TiffFile,
    limits: &Limits,
) -> Result<Vec<Entry>, SlideError> {
    let mut all = Vec::new();
    for (i, ifd) in tiff.ifds.iter().enumerate() {
        let mut entry = Entry::new(i, false, ifd, limits);
        let below = match tiff.sub_ifds(ifd) {
            // Below a label it refuses no slide.
            Err(fault @ Fault::Damaged(_)) => {
                entry.below = Some(fault.within("SubIFDs"));
                Vec::new()
            }
            below => below.map_err(|e| probe.fault(e))?,
        };
        all.push(entry);
        all.extend(below.iter().map(|ifd| Entry::new(i, true, ifd, limits)));
    }
    Ok(all)
}

/// How a format differs from the rule.
pub(super) struct Rule {
    /// Images in strips are never the slide nor a level of it (Aperio).
    pub(super) tiles_only: bool,
    /// What images of one size are where the file states it; otherwise they may be focal planes.
    pub(super) twins: Option<&'static str>,
    /// What a file with several focal planes, channels or scenes is to be exported as.
    pub(super) remedy: &'static str,
}

/// The images of a file by what they are.
pub(super) struct Arranged {
    pub(super) pyramid: Pyramid,
    /// The directory of the slide itself.
    pub(super) base: Ifd,
    /// Its number in the chain.
    pub(super) index: usize,
}

/// Sorts the directories of a file into slide, levels and associated images.
pub(super) fn arrange(
    probe: &Probe,
    mut all: Vec<Entry>,
    rule: &Rule,
) -> Result<Arranged, SlideError> {
    // A part of the file that the system does not read is an error even if nobody needs it.
    for e in &all {
        if let Err(fault @ Fault::Read(_)) = &e.image {
            return Err(e.error(probe, fault));
        }
    }
    let base =
        all.remove(slide(&all, rule).ok_or_else(|| probe.malformed("no image inside".into()))?);
    let image = match (&base.image, &base.below) {
        (Err(fault), _) | (_, Some(fault)) => return Err(base.error(probe, fault)),
        (Ok(image), None) => image.clone(),
    };
    let size = base.size.unwrap_or((image.width, image.height));
    let (mut levels, mut others): (Vec<TiffImage>, Vec<Entry>) = (Vec::new(), Vec::new());
    let mut twins = Vec::new();
    for e in all {
        match part(probe, rule, &base, &e)? {
            Part::Level(level) if levels.iter().all(|l| l.width != level.width) => {
                levels.push(level);
            }
            Part::Level(_) | Part::Other => others.push(e),
            Part::Twin => twins.push(e.index),
            Part::Elsewhere => {}
        }
    }
    if !twins.is_empty() {
        return Err(several(probe, rule, &base, size, &twins));
    }
    let (images, _) = super::pyramid::order(image, levels);
    let found = associated_images(others, &base, &images);
    let (extras, notes) = found.map_err(|fault| probe.fault(fault))?;
    let pyramid = Pyramid { index: base.index, images, associated: extras, notes };
    Ok(Arranged { pyramid, base: base.ifd, index: base.index })
}

/// What an image is to the slide.
enum Part {
    Level(TiffImage),
    /// Of the slide's own size.
    Twin,
    Other,
    /// A part of another image, or the slide itself once more.
    Elsewhere,
}

fn part(probe: &Probe, rule: &Rule, base: &Entry, e: &Entry) -> Result<Part, SlideError> {
    // Levels of other images belong to those.
    if e.sub && e.index != base.index {
        return Ok(Part::Elsewhere);
    }
    if let Some(fault) = e.grave_fault().filter(|_| e.may_be_level(base, rule)) {
        return Err(e.error(probe, fault));
    }
    if e.is_associated(rule) {
        return Ok(Part::Other);
    }
    if e.is_same_data(base) {
        return Ok(Part::Elsewhere);
    }
    let (size, own) = (base.size.unwrap_or_default(), e.size.unwrap_or_default());
    // In tiles or strips: an image of the slide's own size is not a thumbnail.
    if own == size && e.image.is_ok() && e.colours == base.colours {
        return Ok(Part::Twin);
    }
    let both = base.as_scaled().zip(e.as_scaled());
    let scaled = both.as_ref().is_none_or(|(slide, copy)| slide.fits(copy));
    let step = e.tiled == base.tiled && is_step(size, own);
    let declared = e.is_declared_copy(base);
    if !(declared || (step && scaled)) || own.0 == 0 || !shrunk(size, own) {
        return match is_scene(e, base) {
            true => Err(second_scene(probe, rule, base, e)),
            false => Ok(Part::Other),
        };
    }
    if let Some((slide, copy)) = both.filter(|_| declared) {
        stale(probe, &format!("image {}", e.index), &slide, &copy)?;
    }
    match &e.image {
        Ok(level) => Ok(Part::Level(level.clone())),
        Err(fault) if e.reduced() || rule.tiles_only => Err(e.error(probe, fault)),
        Err(_) => Ok(Part::Other),
    }
}

/// The images next to the slide by name, and what a reader of the numbers must know of them. `levels` are the slide's,
/// finest first.
fn associated_images(
    others: Vec<Entry>,
    base: &Entry,
    levels: &[TiffImage],
) -> Result<(Vec<Extra>, Vec<String>), Fault> {
    let mut notes = Vec::new();
    let mut extras: Vec<Extra> = Vec::new();
    let is_in_small = |image: &Result<TiffImage, Fault>| match image {
        Ok(image) => is_thumbnail(image, levels),
        Err(_) => Ok(false),
    };
    for (i, e) in others.into_iter().enumerate() {
        let word = match &e.name {
            Some(name) => name.clone(),
            None if e.mask => "mask".into(),
            None if e.subfile == APERIO_MACRO => "macro".into(),
            None if is_in_small(&e.image)? => "thumbnail".into(),
            None => format!("image-{}", i + 1),
        };
        let free = |n: &String| extras.iter().all(|o| o.name != *n);
        let more = (2..).map(|k| format!("{word}-{k}"));
        let name = std::iter::once(word.clone()).chain(more).find(free).unwrap_or(word);
        notes.extend(scene_note(&e, base, &name));
        if let Some(fault) = &e.below {
            notes.push(format!("{name}: {}; what they point to is not read", fault.reason()));
        }
        extras.push(e.extra(name));
    }
    Ok((extras, notes))
}

/// Place of the slide among all images.
fn slide(all: &[Entry], rule: &Rule) -> Option<usize> {
    let may = |e: &Entry| !e.mask && e.size.is_some() && (e.tiled || !rule.tiles_only);
    // Of images of one size, one with pixels that can be read, a colour image, the first.
    let key = |&i: &usize| {
        let e = &all[i];
        (e.pixels(), e.image.is_ok(), e.colours, std::cmp::Reverse(i))
    };
    let (named, free): (Vec<usize>, Vec<usize>) =
        (0..all.len()).filter(|&i| may(&all[i])).partition(|&i| all[i].name.is_some());
    let whole = free.iter().copied().filter(|&i| !all[i].reduced());
    let best = whole.max_by_key(key).or_else(|| free.iter().copied().max_by_key(key));
    // Some writers flag the slide itself as reduced: the largest image is the slide all the same.
    let larger = |&i: &usize| {
        let (e, than) = (&all[i], best.map(|b| &all[b]));
        e.image.is_ok() && than.is_some_and(|b| e.pixels() > b.pixels() && is_alike(e, b))
    };
    let best = free.iter().copied().filter(larger).max_by_key(key).or(best);
    let Some(best) = best else {
        // Nothing but a label: that is what was asked for.
        return (0..all.len()).filter(|&i| !all[i].mask).max_by_key(key);
    };
    // A case may be called after a label: what the rest are reduced copies of is the slide all the same.
    let largest = named.into_iter().filter(|&i| !all[i].reduced()).max_by_key(key);
    largest.filter(|&i| is_copy(&all[best], &all[i])).or(Some(best))
}

/// Whether an image may be a level of a larger one by its size, and is declared or stored as one.
fn is_copy(e: &Entry, whole: &Entry) -> bool {
    let by_size = whole.size.zip(e.size).is_some_and(|(all, own)| shrunk(all, own));
    let in_tiles = e.tiled && whole.tiled && e.colours == whole.colours;
    by_size && (e.reduced() || in_tiles)
}

/// Whether an image is stored as a scan next to another one: next to tiles, strips are a photograph or a thumbnail.
fn is_alike(e: &Entry, base: &Entry) -> bool {
    (e.tiled || !base.tiled) && e.colours == base.colours
}

/// Whether an image that is not a level may be another slide.
fn is_scene(e: &Entry, base: &Entry) -> bool {
    if e.image.is_err() || e.is_declared_copy(base) || !is_alike(e, base) {
        return false;
    }
    match e.um().zip(base.um()).map(|(a, b)| agree(a, b)) {
        Some(true) => e.pixels() >= SCENE_PIXELS || e.pixels() * SCENE_SHARE >= base.pixels(),
        Some(false) => false,
        None => e.pixels() * SCENE_SHARE >= base.pixels(),
    }
}

/// Whether an image is smaller than the slide by as much as levels are.
pub(super) fn is_step((w, _): (u64, u64), (own, _): (u64, u64)) -> bool {
    w as f64 >= STEP * own as f64
}

/// Whether two resolutions, um/px, are those of one scan.
pub(super) fn agree(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() <= SAME_SCAN
}

/// A picture's size, px, and the um/px that is stated of it.
pub(super) struct Scaled {
    pub(super) size: (u64, u64),
    pub(super) um: f64,
}

impl Scaled {
    /// um/px of a reduced copy, by its size.
    fn um_of_copy(&self, copy: &Self) -> f64 {
        self.um * self.size.0 as f64 / copy.size.0 as f64
    }

    /// Whether a copy states the um/px that its size makes of that of the slide.
    pub(super) fn fits(&self, copy: &Self) -> bool {
        agree(self.um_of_copy(copy), copy.um)
    }
}

/// Refuses a reduced copy whose um/px is neither what its size makes of the slide's um/px nor, as some writers leave
/// it, that of the slide itself.
///
/// # Errors
/// [`SlideError::ContradictingSize`].
pub(super) fn stale(
    probe: &Probe,
    name: &str,
    slide: &Scaled,
    copy: &Scaled,
) -> Result<(), SlideError> {
    let ((w, h), (ow, oh)) = (copy.size, slide.size);
    let by_size = slide.um_of_copy(copy);
    if slide.fits(copy) || agree(slide.um, copy.um) {
        return Ok(());
    }
    Err(SlideError::ContradictingSize {
        path: probe.path.clone(),
        stated: format!("{name}: {:.4} um/px as it states", copy.um),
        found: format!("{by_size:.4} um/px by its size, {w} x {h} px of {ow} x {oh} px"),
    })
}

/// What a reader of the numbers must know of an image that is not read and may show tissue of its own.
fn scene_note(e: &Entry, base: &Entry, name: &str) -> Option<String> {
    let (w, h) = e.size?;
    let declared = e.is_declared_copy(base);
    let is_passed_over = e.name.is_some() || declared;
    if is_passed_over && e.image.is_ok() && e.pixels() > base.pixels() {
        let by = if e.name.is_some() { "by its name" } else { "as a reduced copy" };
        return Some(format!(
            "{name} ({w} x {h} px) is larger than the slide; {by} it is not read"
        ));
    }
    let unnamed = e.name.is_none() && name.starts_with("image-");
    let one_scan = e.um().zip(base.um()).is_some_and(|(a, b)| agree(a, b));
    let layout = e.tiled || !base.tiled || one_scan;
    let alike = e.image.is_ok() && !declared && layout;
    let scan = e.um().is_none_or(|um| um < SCAN_UM);
    if !(unnamed && alike && scan && e.colours == base.colours) {
        return None;
    }
    let um = e.um().map_or_else(String::new, |um| format!(", {um:.4} um/px"));
    Some(format!("{name} ({w} x {h} px{um}) may be another scene of the slide; it is not read"))
}

fn second_scene(probe: &Probe, rule: &Rule, base: &Entry, e: &Entry) -> SlideError {
    let ((w, h), (ow, oh)) = (base.size.unwrap_or_default(), e.size.unwrap_or_default());
    let reason = format!(
        "several scenes: image {} of {w} x {h} px and image {} of {ow} x {oh} px, and one slide is read",
        base.index, e.index
    );
    probe.unsupported(reason, rule.remedy)
}

fn several(
    probe: &Probe,
    rule: &Rule,
    base: &Entry,
    (w, h): (u64, u64),
    twins: &[usize],
) -> SlideError {
    let n = twins.len() + 1;
    let guess = if base.colours == 1 { "channels or focal planes" } else { "focal planes" };
    let what = rule.twins.unwrap_or(guess);
    let offset = base.ifd.text(tag::DESCRIPTION).is_some_and(|t| t.contains("OffsetZ"));
    let stated = if offset { ", OffsetZ" } else { "" };
    let kind = if base.colours == 1 { "grey images" } else { "images" };
    let reason = format!("{n} {kind} of {w} x {h} px ({what}{stated}), and one is read");
    probe.unsupported(reason, rule.remedy)
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn words_of_programs_name_what_is_next_to_a_slide() {
        for (text, role) in [
            ("label", Some("label")),
            ("label image", Some("label")),
            ("Macro image", Some("macro")),
            ("OVERVIEW", Some("macro")),
            ("slide_thumbnail", Some("thumbnail")),
            ("labelled tissue", None),
            ("case-17", None),
            ("", None),
        ] {
            assert_eq!(named(text), role, "{text}");
        }
    }
}
