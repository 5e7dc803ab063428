//! DICOM whole-slide images (VL Whole Slide Microscopy): the files of a series, read here.
//!
//! A file names its series; the other files of its folder that belong to it are levels, parts of levels,
//! label, overview and thumbnail. Only headers and tables of frames are read before pixels are asked for.

mod clean;
mod coding;
mod content;
mod element;
pub(crate) mod files;
mod frames;
mod header;
mod image;
mod series;
mod syntax;

pub(super) use series::dicom_series_files;
pub use series::{DicomPart, dicom_part};

use self::header::Header;
use self::image::{Image, Member};
use super::roles::{Scaled, agree, is_step, stale};
use super::{Format, Probe};
use crate::limits::Fault;
use crate::privacy;
use crate::resolution::Claim;
use crate::several::shrunk;
use crate::source::{AssociatedImage, Decoded, Opened, Source};
use crate::{OpenOptions, SlideError};
use mitosis::RgbTile;
use std::collections::BTreeMap;

pub(super) const FORMAT: Format = Format {
    name: "dicom",
    about: "DICOM whole-slide images (JPEG, JPEG 2000, RLE, none; tiled full and sparse)",
    knows: |p| header::is_dicom(&p.file),
    open,
};

const REMEDY: &str = "convert it to one 8-bit RGB picture in JPEG, JPEG 2000 or without compression if you have a converter";

/// Cosines of two images that are turned alike differ by less.
const TURNED: f64 = 0.1;

struct Series {
    levels: Vec<Image>,
    associated: Vec<(AssociatedImage, Result<Image, Fault>)>,
    notes: Vec<String>,
}

fn open(probe: &Probe, options: &OpenOptions) -> Result<Opened, SlideError> {
    let fail = |fault: Fault| match fault {
        Fault::Unsupported(reason) => probe.unsupported(reason, REMEDY),
        other => probe.fault(other),
    };
    let found = series::members(&probe.path, &probe.file, &options.limits).map_err(fail)?;
    let (members, notes) = (found.files, found.notes);
    let mut groups = series::group(&members);
    let mut levels = Vec::new();
    let mut associated: Vec<(AssociatedImage, Result<Image, Fault>)> = Vec::new();
    groups.sort_by_key(|g| std::cmp::Reverse(g[0].header.size.0));
    for group in &groups {
        let header = &group[0].header;
        if header.flavour == "VOLUME" {
            let named = group.iter().any(|m| m.path == probe.path);
            let image = Image::new(group, &options.limits).map_err(|fault| match named {
                true => fail(fault),
                false => fail(fault.within(&group[0].name())),
            })?;
            levels.push((group[0], image));
        } else {
            let taken: Vec<&str> = associated.iter().map(|(a, _)| a.name.as_str()).collect();
            let named = name(&header.flavour, &taken);
            let (width, height) = header.size;
            let image = Image::new(group, &options.limits);
            let unreadable = image.as_ref().err().map(Fault::reason);
            associated.push((AssociatedImage { name: named, width, height, unreadable }, image));
        }
    }
    let Some((first, base)) = levels.first() else {
        let own = &members[0].header.flavour;
        let what = format!("no picture of the slide itself (VOLUME) next to this one ({own})");
        return Err(probe.unsupported(what, "name a file of the slide's levels if there is one"));
    };
    if let Some(pair) = levels.windows(2).find(|p| p[0].1.size == p[1].1.size) {
        let (one, other) = (pair[0].0.name(), pair[1].0.name());
        let (w, h) = pair[0].1.size;
        let what = format!("two pictures of {w} x {h} pixels, {one} and {other}");
        return Err(probe.unsupported(what, "leave one of them in the folder"));
    }
    let size = base.size;
    let mut claims = Vec::new();
    if let Some((x, y)) = first.header.spacing {
        let claim = Claim::vendor("dicom.PixelSpacing", 1000.0 * x, 1000.0 * y);
        claims.push(claim.written(&first.header.spacing_written));
        if let Some((place, written)) = &first.header.other_spacing {
            let (x, y) = header::spacing(&written.split('\\').collect::<Vec<_>>());
            let claim = Claim::vendor(&format!("dicom.{place}"), 1000.0 * x, 1000.0 * y);
            claims.push(claim.written(written));
        }
        claims.extend(covered(first.header.volume, size, (1000.0 * x, 1000.0 * y)));
    }
    let properties = properties(first, &members);
    agreeing(probe, &levels)?;
    let images: Vec<Image> = levels.into_iter().map(|(_, image)| image).collect();
    let levels = images.iter().map(|i| i.level(size)).collect();
    let source = Series { levels: images, associated, notes };
    Ok(Opened {
        vendor: "dicom".into(),
        levels,
        properties,
        claims,
        bounds: None,
        associated: source.associated.iter().map(|(about, _)| about.clone()).collect(),
        source: Box::new(source),
    })
}

/// um/px of the millimetres that an image covers, across and down. Some writers exchange the two where the slide is
/// turned: that is how they are read where it makes the pixels that are stated.
fn covered(mm: (f64, f64), size: (u64, u64), um: (f64, f64)) -> Option<Claim> {
    let (wide, high) = mm;
    if !(wide >= 0.0 && high >= 0.0) {
        return None;
    }
    let per = |mm: f64, px: u64| 1000.0 * mm / px as f64;
    // A side that is not stated is 0, and nothing to compare with.
    let read = |wide: f64, high: f64| match (per(wide, size.0), per(high, size.1)) {
        (x, 0.0) => (x, x),
        (0.0, y) => (y, y),
        both => both,
    };
    let ways = [read(wide, high), read(high, wide)];
    let fits = |(x, y): &&(f64, f64)| agree(*x, um.0) && agree(*y, um.1);
    let (x, y) = *ways.iter().find(fits).unwrap_or(&ways[0]);
    let short = |um: f64| (um * 1e6).round() / 1e6;
    Some(Claim::density("dicom.ImagedVolumeWidth", short(x), short(y)))
}

/// The numbers of an attribute, by its name without `dicom.`; none where it is not stated as numbers.
fn numbers(m: &Member, attribute: &str) -> Vec<f64> {
    let get = |name: String| m.header.properties.get(&name)?.parse().ok();
    let several = (0..).map_while(|i| get(format!("dicom.{attribute}[{i}]")));
    let alone = get(format!("dicom.{attribute}"));
    alone.map_or_else(|| several.collect(), |n| vec![n])
}

/// Refuses levels that are turned against each other or are of other places on the glass.
fn same_place(probe: &Probe, finest: &Member, level: &Member) -> Result<(), SlideError> {
    let differing = |attribute: &str, allowed: f64| {
        let (a, b) = (numbers(finest, attribute), numbers(level, attribute));
        let is_far = a.len() == b.len() && a.iter().zip(&b).any(|(a, b)| (a - b).abs() > allowed);
        is_far.then(|| {
            let shown = |n: &[f64]| n.iter().map(f64::to_string).collect::<Vec<_>>().join("\\");
            let own = attribute.rsplit('.').next().unwrap_or(attribute);
            let (one, other) = (finest.name(), level.name());
            let (a, b) = (shown(&a), shown(&b));
            format!("{one} and {other} are of one series, but differ in {own}: {a} and {b}")
        })
    };
    // Of half of the image's shorter side; an origin may be that of the first pixel's middle.
    let ((w, h), spacing) = (finest.header.size, finest.header.spacing);
    let far = spacing.map_or(f64::NAN, |(x, y)| (x * w as f64).min(y * h as f64) / 2.0);
    let origin =
        |axis| format!("TotalPixelMatrixOriginSequence[0].{axis}OffsetInSlideCoordinateSystem");
    let found = differing("ImageOrientationSlide", TURNED)
        .or_else(|| differing(&origin("X"), far))
        .or_else(|| differing(&origin("Y"), far));
    found.map_or(Ok(()), |what| {
        Err(probe.unsupported(what, "leave the files of one scene in the folder"))
    })
}

/// Refuses a level that covers other millimetres than the finest, by what that states or by its pixels and spacing, or
/// else than its own pixels. That the finest contradicts itself is found where its um/px are settled.
fn same_extent(probe: &Probe, finest: &Member, level: &Member) -> Result<(), SlideError> {
    let by_pixels = |h: &Header| {
        let (x, y) = h.spacing.filter(|(x, y)| *x > 0.0 && *y > 0.0)?;
        Some((x * h.size.0 as f64, y * h.size.1 as f64))
    };
    let (wide, high) = level.header.volume;
    let is_stated = wide >= 0.0 && high >= 0.0 && wide + high > 0.0;
    let known = by_pixels(&finest.header).map(|mm| (finest, mm));
    let Some((of, mm)) = known.or_else(|| Some((level, by_pixels(&level.header)?))) else {
        return Ok(());
    };
    // A side that is not stated is 0. Some writers exchange the two where the slide is turned.
    let side = |own: f64, other: f64| own == 0.0 || agree(own, other);
    let fits =
        |(w, h): (f64, f64)| side(wide, w) && side(high, h) || side(wide, h) && side(high, w);
    let whole = finest.header.volume;
    if !is_stated || fits(mm) || (whole.0 > 0.0 && whole.1 > 0.0 && fits(whole)) {
        return Ok(());
    }
    let short = |mm: f64| (mm * 1e6).round() / 1e6;
    let shown = |(w, h): (f64, f64)| format!("{} x {} mm", short(w), short(h));
    Err(SlideError::ContradictingSize {
        path: probe.path.clone(),
        stated: format!(
            "{}: ImagedVolumeWidth and -Height are {}",
            level.name(),
            shown((wide, high))
        ),
        found: format!("{} by the pixels and PixelSpacing of {}", shown(mm), of.name()),
    })
}

/// Refuses levels of two slides or patients: a series is of one. Who they are is not printed.
fn same_slide(probe: &Probe, finest: &Member, level: &Member) -> Result<(), SlideError> {
    for own in ["ContainerIdentifier", "PatientID"] {
        let stated = |m: &Member| {
            let value = m.header.properties.get(&format!("dicom.{own}")).cloned();
            value.filter(|v| !privacy::is_blank(v))
        };
        if let (Some(a), Some(b)) = (stated(finest), stated(level))
            && a != b
        {
            let (one, other) = (finest.name(), level.name());
            let what = format!("{one} and {other} are of one series, but differ in {own}");
            return Err(probe.unsupported(what, "leave the files of one scene in the folder"));
        }
    }
    Ok(())
}

/// Refuses a level whose um/px is not what its size makes of that of the finest. As in a TIFF, what is not a shrunk
/// copy of the finest is another scene; so is one of its um/px, unless it is declared to be a reduced copy.
fn agreeing(probe: &Probe, levels: &[(&Member, Image)]) -> Result<(), SlideError> {
    let scaled = |(m, image): &(&Member, Image)| {
        let known = m.header.spacing.filter(|(x, _)| *x > 0.0);
        known.map(|(x, _)| Scaled { size: image.size, um: 1000.0 * x })
    };
    let Some((finest, others)) = levels.split_first() else { return Ok(()) };
    for level in others {
        same_slide(probe, finest.0, level.0)?;
        same_place(probe, finest.0, level.0)?;
        let both = scaled(finest).zip(scaled(level));
        let is_declared = level.0.header.reduced && !finest.0.header.reduced;
        let is_of_one_um = match &both {
            Some((slide, copy)) => agree(slide.um, copy.um),
            None => !is_step(finest.1.size, level.1.size),
        };
        let is_copy = is_declared || !is_of_one_um;
        if !is_copy || !shrunk(finest.1.size, level.1.size) {
            let ((w, h), (ow, oh)) = (finest.1.size, level.1.size);
            let what = format!(
                "several scenes: {} of {w} x {h} px and {} of {ow} x {oh} px, and one slide is read",
                finest.0.name(),
                level.0.name()
            );
            return Err(probe.unsupported(what, "leave the files of one scene in the folder"));
        }
        both.map_or(Ok(()), |(slide, copy)| stale(probe, &level.0.name(), &slide, &copy))?;
        same_extent(probe, finest.0, level.0)?;
    }
    Ok(())
}

impl Source for Series {
    fn tile(&self, level: usize, column: u64, row: u64) -> Result<Decoded, Fault> {
        self.levels[level].tile(column, row)
    }

    fn absent(&self, level: usize, column: u64, row: u64) -> bool {
        self.levels[level].absent(column, row)
    }

    fn stored_bytes(&self, level: usize, column: u64, row: u64) -> Option<u64> {
        self.levels[level].stored_bytes(column, row)
    }

    fn left_out(&self, level: usize) -> Vec<(u64, u64)> {
        self.levels[level].left_out()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn working_bytes(&self, level: usize) -> u64 {
        self.levels[level].working_bytes()
    }

    fn associated(&self, index: usize) -> Result<RgbTile, Fault> {
        match &self.associated[index].1 {
            Ok(image) => image.whole(),
            Err(fault) => Err(fault.clone()),
        }
    }
}

/// What an image next to the pyramid is called, as OpenSlide calls it; each name once.
fn name(flavour: &str, taken: &[&str]) -> String {
    let word = match flavour {
        // The second is the older word.
        "OVERVIEW" | "LOCALIZER" => "macro".to_owned(),
        "" => "image".to_owned(),
        other => other.to_ascii_lowercase(),
    };
    let free = |n: &String| !taken.contains(&n.as_str());
    let more = (2..).map(|i| format!("{word}-{i}"));
    std::iter::once(word.clone()).chain(more).find(free).unwrap_or(word)
}

/// What the file of the finest level states, and what the others state about people next to it.
fn properties(first: &Member, members: &[Member]) -> BTreeMap<String, String> {
    let mut all = first.header.properties.clone();
    for (i, other) in members.iter().enumerate().filter(|(_, m)| m.path != first.path) {
        for (name, value) in &other.header.properties {
            if all.get(name) != Some(value) && !privacy::personal_parts(name, value).is_empty() {
                all.insert(name.replacen("dicom", &format!("dicom[{i}]"), 1), value.clone());
            }
        }
    }
    if let Some(power) = &first.header.power {
        all.insert("openslide.objective-power".into(), power.clone());
    }
    all
}
