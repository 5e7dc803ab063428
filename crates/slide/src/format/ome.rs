//! OME-TIFF: OME-XML in the first description, pyramid in SubIFDs.

use super::pyramid;
use super::roles::{Arranged, Entry, Rule, arrange, entries, named};
use super::{Format, Probe};
use crate::resolution::{Claim, decimal};
use crate::source::Opened;
use crate::tiff::tag;
use crate::{OpenOptions, SlideError};

pub(super) const FORMAT: Format =
    Format { name: "ome-tiff", about: "OME-TIFF with RGB pixels, SubIFD pyramids", knows, open };

const RULE: Rule = Rule {
    tiles_only: false,
    twins: None,
    remedy: "export one focal plane of one scene as an RGB OME-TIFF of its own",
};

fn xml(probe: &Probe) -> Option<String> {
    let text = probe.first()?.text(tag::DESCRIPTION)?;
    let head: String = text.chars().take(2000).collect();
    (head.contains("<OME") || head.contains(":OME")).then_some(text)
}

fn knows(probe: &Probe) -> bool {
    xml(probe).is_some()
}

/// An `Image` element with its `Pixels`.
#[derive(Debug, Default, PartialEq)]
struct OmeImage<'a> {
    name: &'a str,
    /// Attributes of `Pixels`.
    pixels: &'a str,
    /// Directory of the first plane.
    first: Option<usize>,
    /// Directories from there on that belong to it.
    planes: usize,
}

impl OmeImage<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        attribute(self.pixels, name).map(decimal)
    }

    fn count(&self, name: &str) -> usize {
        self.number(name).filter(|n| *n >= 1.0 && *n < 1e9).map_or(1, |n| n as usize)
    }

    /// um per px, across and down; the text of the first for errors, with its unit.
    fn mpp(&self) -> Option<(f64, f64, String)> {
        let um = |axis: &str| {
            let text = attribute(self.pixels, &format!("PhysicalSize{axis}"))?;
            let unit = attribute(self.pixels, &format!("PhysicalSize{axis}Unit"));
            let shown = unit.map_or_else(|| text.to_owned(), |u| format!("{text} {u}"));
            Some((decimal(text) * micrometres(unit.unwrap_or("µm")), shown))
        };
        let (x, text) = um("X")?;
        Some((x, um("Y").map_or(x, |y| y.0), text))
    }
}

/// The images of a text, each with the directory of its first plane: from `TiffData`, otherwise
/// in the order of the images.
fn images(xml: &str, samples: usize) -> Vec<OmeImage<'_>> {
    let mut all: Vec<OmeImage<'_>> = Vec::new();
    for (local, attributes) in elements(xml) {
        match (local, all.last_mut()) {
            ("Image", _) => {
                let name = attribute(attributes, "Name").unwrap_or("");
                all.push(OmeImage { name, ..OmeImage::default() });
            }
            ("Pixels", Some(image)) if image.pixels.is_empty() => image.pixels = attributes,
            ("TiffData", Some(image)) if image.first.is_none() => {
                image.first = attribute(attributes, "IFD").and_then(|v| v.trim().parse().ok());
            }
            _ => {}
        }
    }
    let mut next = 0;
    for image in &mut all {
        let first = *image.first.get_or_insert(next);
        let channels = image.count("SizeC").div_ceil(samples.max(1));
        image.planes =
            image.count("SizeZ").saturating_mul(image.count("SizeT")).saturating_mul(channels);
        next = first.saturating_add(image.planes);
    }
    all
}

/// The images of the file by what they are, held against what the XML states.
pub(super) fn arranged(probe: &Probe, options: &OpenOptions) -> Result<Arranged, SlideError> {
    let tiff = probe.tiff()?;
    let text = xml(probe).unwrap_or_default();
    let samples = tiff.ifds[0].uint_or(tag::SAMPLES, 1).unwrap_or(1);
    let stated = images(&text, samples as usize);
    let mut all = entries(probe, tiff, &options.limits)?;
    for e in all.iter_mut().filter(|e| !e.sub) {
        let Some(image) = stated.iter().find(|i| i.first == Some(e.index)) else { continue };
        e.name = named(image.name).map(str::to_owned);
        e.mpp = image.mpp().map(|m| m.0).or(e.mpp);
    }
    // Planes after the first of an image belong to it; their presence is checked below.
    let behind = |i: &OmeImage<'_>, index: usize| {
        i.first.is_some_and(|f| f < index && index < f.saturating_add(i.planes))
    };
    all.retain(|e| stated.iter().all(|i| !behind(i, e.index)));
    // The planes of one image are gone: others of its size are images of their own.
    let own = |e: &&Entry| !e.sub && stated.iter().any(|i| i.first == Some(e.index));
    let twins = (all.iter().filter(own).count() > 1).then_some("scenes");
    let arranged = arrange(probe, all, &Rule { twins, ..RULE })?;
    if let Some(image) = stated.iter().find(|i| i.first == Some(arranged.index)) {
        let samples = arranged.base.uint(tag::SAMPLES).ok().flatten().unwrap_or(1).max(1);
        let channels = image.count("SizeC").div_ceil(samples as usize);
        agreed(probe, image, &arranged.pyramid.images[0], channels)?;
    }
    Ok(arranged)
}

fn open(probe: &Probe, options: &OpenOptions) -> Result<Opened, SlideError> {
    let tiff = probe.tiff()?;
    let Arranged { pyramid: source, base, index } = arranged(probe, options)?;
    let text = xml(probe).unwrap_or_default();
    let samples = tiff.ifds[0].uint_or(tag::SAMPLES, 1).unwrap_or(1);
    let stated = images(&text, samples as usize);
    let slide = stated.iter().find(|i| i.first == Some(index));

    let mut properties = pyramid::text_properties(&tiff.ifds, index);
    let mut claims = Vec::new();
    let pixels = slide.map_or("", |i| i.pixels);
    for key in [
        "PhysicalSizeX",
        "PhysicalSizeXUnit",
        "PhysicalSizeY",
        "PhysicalSizeYUnit",
        "SizeX",
        "SizeY",
    ] {
        if let Some(v) = attribute(pixels, key) {
            properties.insert(format!("ome.{key}"), v.into());
        }
    }
    if let Some((x, y, text)) = slide.and_then(OmeImage::mpp) {
        claims.push(Claim::vendor("ome.PhysicalSizeX", x, y).written(&text));
    }
    claims.extend(pyramid::density(&base, !claims.is_empty()));
    Ok(Opened {
        vendor: "ome-tiff".into(),
        levels: source.levels(),
        properties,
        claims,
        bounds: None,
        associated: source.associated_list(),
        source: Box::new(source),
    })
}

/// Whether what the XML states of the slide is what its directory holds: one plane, of one size.
fn agreed(
    probe: &Probe,
    image: &OmeImage<'_>,
    base: &crate::tiff::TiffImage,
    channels: usize,
) -> Result<(), SlideError> {
    for (key, what) in [("SizeZ", "focal planes"), ("SizeT", "points in time")] {
        let n = image.count(key);
        if n > 1 {
            let reason = format!("{n} {what} (OME {key} = {n}), and one is read");
            return Err(probe.unsupported(reason, RULE.remedy));
        }
    }
    if channels > 1 {
        let reason =
            format!("OME-TIFF with {channels} planes, one per channel (fluorescence), not RGB");
        return Err(probe.unsupported(reason, "export it as RGB"));
    }
    let size = |key: &str| image.number(key).filter(|n| *n > 0.0);
    if let (Some(w), Some(h)) = (size("SizeX"), size("SizeY"))
        && (w, h) != (base.width as f64, base.height as f64)
    {
        return Err(SlideError::ContradictingSize {
            path: probe.path.clone(),
            stated: format!("OME-XML states {w} x {h} px"),
            found: format!("the image has {} x {} px", base.width, base.height),
        });
    }
    Ok(())
}

/// Micrometres in one OME unit; NaN for a unit that is not a length.
fn micrometres(unit: &str) -> f64 {
    match unit.trim() {
        "µm" | "μm" | "um" | "&#181;m" | "&#xB5;m" | "&#956;m" | "\u{FFFD}m"
        | "\u{FFFD}\u{FFFD}m" => 1.0,
        "nm" => 1e-3,
        "mm" => 1e3,
        "cm" => 1e4,
        "m" => 1e6,
        "Å" => 1e-4,
        "in" => 25_400.0,
        _ => f64::NAN,
    }
}

/// The elements of a text as (local name, attributes). An attribute holds no bare `<`.
fn elements(xml: &str) -> impl Iterator<Item = (&str, &str)> {
    xml.split('<').skip(1).filter_map(|piece| {
        let tag = &piece[..piece.find('>')?];
        let word = tag.split(|c: char| c.is_whitespace() || c == '/').next()?;
        Some((word.rsplit(':').next()?, &tag[word.len()..]))
    })
}

#[cfg(test)]
/// The attributes of the first `name` element, whatever its namespace prefix.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    elements(xml).find(|(local, _)| *local == name).map(|(_, attributes)| attributes)
}

/// Value of an attribute in an element's text.
fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = element;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, next) = after[1..].split_once(quote)?;
        if key.trim() == name {
            return Some(value);
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_has_its_first_directory() {
        let pixels = |x: u32, z: u32| {
            format!(r#"<Pixels SizeX="{x}" SizeY="9" SizeC="3" SizeZ="{z}" SizeT="1">"#)
        };
        let image = |name: &str, pixels: &str, data: &str| {
            format!(r#"<Image Name="{name}">{pixels}{data}</Pixels></Image>"#)
        };
        let one = image("macro image", &pixels(5, 1), "<TiffData/>");
        let two = image("scan", &pixels(7, 2), "");
        let three = image("label", &pixels(3, 1), "");
        let text = format!("<OME>{one}{two}{three}</OME>");
        let first: Vec<_> = images(&text, 3).iter().map(|i| (i.name, i.first)).collect();
        let want = [("macro image", Some(0)), ("scan", Some(1)), ("label", Some(3))];
        assert_eq!(first, want);
        let moved = image("scan", &pixels(7, 1), r#"<TiffData IFD="4"/>"#);
        let text = format!("<OME>{moved}{three}</OME>");
        let first: Vec<_> = images(&text, 3).iter().map(|i| i.first).collect();
        assert_eq!(first, [Some(4), Some(5)]);
    }

    #[test]
    fn xml_attributes() {
        let x = r#"<?xml version="1.0"?><ome:OME a="b"><ome:Image ID="0" Name='x'/><ome:Pixels SizeX="3" PhysicalSizeX = "0.25" PhysicalSizeXUnit="µm"></ome:Pixels></ome:OME>"#;
        let p = element(x, "Pixels").unwrap();
        assert_eq!(attribute(p, "PhysicalSizeX"), Some("0.25"));
        assert_eq!(attribute(p, "PhysicalSizeXUnit"), Some("µm"));
        assert_eq!(attribute(p, "SizeY"), None);
        let all = images(x, 3);
        assert_eq!((all.len(), all[0].name, all[0].first), (1, "x", Some(0)));
        assert_eq!(all[0].mpp().unwrap().0, 0.25);
        assert_eq!(micrometres("nm"), 1e-3);
        assert!(micrometres("pixel").is_nan());
    }
}
