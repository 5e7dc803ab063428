//! OME-TIFF: OME-XML in the first description, pyramid in SubIFDs.

use super::pyramid;
use super::roles::{Arranged, Entry, Rule, arrange, entries, named};
use super::{Format, Probe};
use crate::resolution::{Claim, decimal};
use crate::source::Opened;
use crate::tiff::{Ifd, tag};
use crate::{OpenOptions, SlideError};
use roxmltree::{Document, Node};
use std::collections::BTreeMap;

pub(super) const FORMAT: Format =
    Format { name: "ome-tiff", about: "OME-TIFF with RGB pixels, SubIFD pyramids", knows, open };

const RULE: Rule = Rule {
    tiles_only: false,
    twins: None,
    remedy: "export one focal plane of one scene as an RGB OME-TIFF of its own if its program can",
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
struct OmeImage {
    name: String,
    /// Attributes of `Pixels`.
    pixels: BTreeMap<String, String>,
    /// Directory of the first plane.
    first: Option<usize>,
    /// Directories from there on that belong to it.
    planes: usize,
    /// Samples per pixel of its channels, as the XML states them.
    samples: usize,
    /// Nominal magnification of its objective.
    power: Option<String>,
}

impl OmeImage {
    /// `None` for an image whose planes are in other files: those of another UUID than `file`, that of the file read.
    fn from_node(node: Node<'_, '_>, file: Option<&str>) -> Option<Self> {
        let parts = |name| parts(node, name);
        let all = parts("Pixels").next().into_iter().flat_map(|n| n.attributes());
        let is_elsewhere = |data: &Node| {
            let uuid = data.children().find(|n| n.tag_name().name() == "UUID");
            let uuid = uuid.and_then(|n| n.text()).map(str::trim);
            uuid.zip(file).is_some_and(|(uuid, file)| !uuid.eq_ignore_ascii_case(file.trim()))
        };
        let data = parts("TiffData").find(|data| !is_elsewhere(data));
        if data.is_none() && parts("TiffData").next().is_some() {
            return None;
        }
        let first = data.and_then(|n| n.attribute("IFD"));
        let samples =
            parts("Channel").filter_map(|n| n.attribute("SamplesPerPixel")?.trim().parse().ok());
        Some(Self {
            name: node.attribute("Name").unwrap_or_default().to_owned(),
            pixels: all.map(|a| (a.name().to_owned(), a.value().to_owned())).collect(),
            first: first.and_then(|v| v.trim().parse().ok()),
            planes: 0,
            samples: samples.max().unwrap_or(1),
            power: magnification(node),
        })
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        self.pixels.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.attribute(name).map(decimal)
    }

    fn count(&self, name: &str) -> usize {
        self.number(name).filter(|n| *n >= 1.0 && *n < 1e9).map_or(1, |n| n as usize)
    }

    /// um per px of an axis, and how the file has it, with its unit.
    fn physical_size(&self, axis: &str) -> Option<(f64, String)> {
        let text = self.attribute(&format!("PhysicalSize{axis}"))?;
        let unit = self.attribute(&format!("PhysicalSize{axis}Unit"));
        let shown = unit.map_or_else(|| text.to_owned(), |u| format!("{text} {u}"));
        Some((decimal(text) * micrometres(unit.unwrap_or("µm")), shown))
    }

    /// um per px; an error quotes the side that is not a number.
    fn mpp(&self) -> Option<Claim> {
        let (x, text) = self.physical_size("X")?;
        let claim = |axis, y, text: &str| {
            Some(Claim::vendor(&format!("ome.PhysicalSize{axis}"), x, y).written(text))
        };
        match self.physical_size("Y") {
            Some((y, text)) if y.is_nan() && !x.is_nan() => claim("Y", y, &text),
            down => claim("X", down.map_or(x, |(y, _)| y), &text),
        }
    }
}

/// The elements of a name in another one.
fn parts<'a, 'b>(node: Node<'a, 'b>, name: &str) -> impl Iterator<Item = Node<'a, 'b>> {
    node.descendants().filter(move |n| n.tag_name().name() == name)
}

/// Nominal magnification of the objective that an image names; of one that names none, that of the only objective of
/// the text.
fn magnification(image: Node<'_, '_>) -> Option<String> {
    let settings = ["ObjectiveSettings", "ObjectiveRef"];
    let id = settings.iter().find_map(|name| parts(image, name).next()?.attribute("ID"));
    let mut objectives = parts(image.document().root(), "Objective");
    let objective = match id {
        Some(id) => objectives.find(|o| o.attribute("ID") == Some(id)),
        None => objectives.next().filter(|_| objectives.next().is_none()),
    };
    objective?.attribute("NominalMagnification").map(str::to_owned)
}

/// The images that the file's OME-XML states.
fn stated(probe: &Probe) -> Result<Vec<OmeImage>, SlideError> {
    let all = &probe.tiff()?.ifds;
    let samples = |index: usize| all.get(index).map_or(1, samples);
    let text = xml(probe).unwrap_or_default();
    images(&text, samples).map_err(|e| probe.malformed(format!("OME-XML: {e}")))
}

/// Samples per pixel of a directory.
fn samples(ifd: &Ifd) -> usize {
    ifd.uint(tag::SAMPLES).ok().flatten().unwrap_or(1).max(1) as usize
}

/// The images of a text, each with the directory of its first plane: from `TiffData`, otherwise
/// in the order of the images. `samples` gives the samples per pixel of a directory.
fn images(xml: &str, samples: impl Fn(usize) -> usize) -> Result<Vec<OmeImage>, roxmltree::Error> {
    let document = Document::parse(xml.trim())?;
    let file = document.root_element().attribute("UUID");
    let nodes = document.descendants().filter(|n| n.tag_name().name() == "Image");
    let mut all: Vec<OmeImage> = nodes.filter_map(|node| OmeImage::from_node(node, file)).collect();
    let mut next = 0;
    for image in &mut all {
        let first = *image.first.get_or_insert(next);
        // One of the two may be left at 1.
        let channels = image.count("SizeC").div_ceil(image.samples.max(samples(first)));
        image.planes =
            image.count("SizeZ").saturating_mul(image.count("SizeT")).saturating_mul(channels);
        next = first.saturating_add(image.planes);
    }
    Ok(all)
}

/// The images of the file by what they are, held against what the XML states.
pub(super) fn arranged(probe: &Probe, options: &OpenOptions) -> Result<Arranged, SlideError> {
    let tiff = probe.tiff()?;
    let stated = stated(probe)?;
    let mut all = entries(probe, tiff, &options.limits)?;
    for e in all.iter_mut().filter(|e| !e.sub) {
        let Some(image) = stated.iter().find(|i| i.first == Some(e.index)) else { continue };
        e.name = named(&image.name).map(str::to_owned);
        e.mpp = image.mpp().map(|claim| claim.x).or(e.mpp);
    }
    // Planes after the first of an image belong to it; their presence is checked below.
    let behind = |i: &OmeImage, index: usize| {
        i.first.is_some_and(|f| f < index && index < f.saturating_add(i.planes))
    };
    all.retain(|e| stated.iter().all(|i| !behind(i, e.index)));
    // The planes of one image are gone: others of its size are images of their own.
    let own = |e: &&Entry| !e.sub && stated.iter().any(|i| i.first == Some(e.index));
    let twins = (all.iter().filter(own).count() > 1).then_some("scenes");
    let arranged = arrange(probe, all, &Rule { twins, ..RULE })?;
    if let Some(image) = stated.iter().find(|i| i.first == Some(arranged.index)) {
        let channels = image.count("SizeC").div_ceil(samples(&arranged.base));
        agreed(probe, image, &arranged.pyramid.images[0], channels)?;
    }
    Ok(arranged)
}

fn open(probe: &Probe, options: &OpenOptions) -> Result<Opened, SlideError> {
    let tiff = probe.tiff()?;
    let Arranged { pyramid: source, base, index } = arranged(probe, options)?;
    let stated = stated(probe)?;
    let slide = stated.iter().find(|i| i.first == Some(index));

    let mut properties = pyramid::text_properties(&tiff.ifds, index);
    let mut claims = Vec::new();
    for key in [
        "PhysicalSizeX",
        "PhysicalSizeXUnit",
        "PhysicalSizeY",
        "PhysicalSizeYUnit",
        "SizeX",
        "SizeY",
    ] {
        if let Some(v) = slide.and_then(|i| i.attribute(key)) {
            properties.insert(format!("ome.{key}"), v.into());
        }
    }
    claims.extend(slide.and_then(OmeImage::mpp));
    if let Some(power) = slide.and_then(|i| i.power.as_ref()) {
        properties.insert("openslide.objective-power".into(), power.clone());
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
    image: &OmeImage,
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
        return Err(probe.unsupported(reason, "export it as RGB if its program can"));
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
        "µm" | "μm" | "um" | "\u{FFFD}m" | "\u{FFFD}\u{FFFD}m" => 1.0,
        "fm" => 1e-9,
        "pm" => 1e-6,
        "nm" => 1e-3,
        "mm" => 1e3,
        "cm" => 1e4,
        "dm" => 1e5,
        "m" => 1e6,
        "km" => 1e9,
        "Å" => 1e-4,
        "thou" => 25.4,
        "pt" => 25_400.0 / 72.0,
        "li" => 25_400.0 / 12.0,
        "in" => 25_400.0,
        "ft" => 304_800.0,
        _ => f64::NAN,
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
        let first = |text: &str| -> Vec<_> {
            images(text, |_| 3).unwrap().into_iter().map(|i| (i.name, i.first)).collect()
        };
        let want = [("macro image", Some(0)), ("scan", Some(1)), ("label", Some(3))];
        assert_eq!(first(&text), want.map(|(name, at)| (name.to_owned(), at)));
        let moved = image("scan", &pixels(7, 1), r#"<TiffData IFD="4"/>"#);
        let text = format!("<OME>{moved}{three}</OME>");
        let places: Vec<_> = first(&text).into_iter().map(|i| i.1).collect();
        assert_eq!(places, [Some(4), Some(5)]);
    }

    #[test]
    fn attributes_are_those_of_the_elements_that_hold() {
        let x = r#"<?xml version="1.0"?><!-- <Image><Pixels PhysicalSizeX="0.5"/></Image> -->
            <ome:OME xmlns:ome="o" a="b"><ome:Image ID="0" Name='x &amp; y'><ome:Pixels SizeX="3"
            PhysicalSizeX = "0.25" PhysicalSizeXUnit="&#181;m"/></ome:Image></ome:OME>"#;
        let all = images(x, |_| 3).unwrap();
        assert_eq!((all.len(), &*all[0].name, all[0].first), (1, "x & y", Some(0)));
        assert_eq!(all[0].attribute("PhysicalSizeXUnit"), Some("µm"));
        assert_eq!(all[0].attribute("SizeY"), None);
        assert_eq!(all[0].mpp().unwrap().x, 0.25);
        assert!(images("<OME><Image></OME>", |_| 3).is_err());
        assert_eq!(
            (micrometres("nm"), micrometres("pm"), micrometres("ft")),
            (1e-3, 1e-6, 304_800.0)
        );
        assert!(micrometres("pixel").is_nan());
    }
}
