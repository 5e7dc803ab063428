//! OME-TIFF: OME-XML in the first description, pyramid in SubIFDs.

use super::aperio::image_error;
use super::pyramid::{self, Pyramid};
use super::{Format, Probe};
use crate::resolution::Claim;
use crate::source::Opened;
use crate::tiff::{TiffImage, tag};
use crate::{OpenOptions, SlideError};

pub(super) const FORMAT: Format =
    Format { name: "ome-tiff", about: "OME-TIFF with RGB pixels, SubIFD pyramids", knows, open };

fn xml(probe: &Probe) -> Option<String> {
    let text = probe.first()?.text(tag::DESCRIPTION)?;
    let head: String = text.chars().take(2000).collect();
    (head.contains("<OME") || head.contains(":OME")).then_some(text)
}

fn knows(probe: &Probe) -> bool {
    xml(probe).is_some()
}

fn open(probe: &Probe, options: &OpenOptions) -> Result<Opened, SlideError> {
    let tiff = probe.tiff()?;
    let text = xml(probe).unwrap_or_default();
    let first = &tiff.ifds[0];
    let base = TiffImage::new(first, &options.limits).map_err(|e| image_error(probe, 0, e))?;
    let pixels = element(&text, "Pixels").unwrap_or_default();
    let number = |name: &str| attribute(pixels, name).and_then(|v| v.trim().parse::<f64>().ok());
    let samples = first.uint_or(tag::SAMPLES, 1).unwrap_or(1);
    if samples == 1 && number("SizeC").is_some_and(|c| c > 1.0) {
        return Err(probe.unsupported(
            "OME-TIFF with one plane per channel (fluorescence), no RGB".into(),
            "export it as RGB",
        ));
    }
    let mut shrunk = Vec::new();
    for (i, ifd) in tiff.sub_ifds(first).map_err(|e| probe.fault(e))?.iter().enumerate() {
        shrunk
            .push(TiffImage::new(ifd, &options.limits).map_err(|e| image_error(probe, i + 1, e))?);
    }
    // Further images: label and macro, named in the XML in the order of the directories.
    let names = image_names(&text);
    let mut associated = Vec::new();
    for (i, ifd) in tiff.ifds.iter().enumerate().skip(1) {
        let Ok(image) = TiffImage::new(ifd, &options.limits) else { continue };
        if image.reduced && associated.is_empty() {
            shrunk.push(image);
        } else {
            let name = names.get(i).filter(|n| !n.is_empty()).cloned();
            associated.push((name.unwrap_or_else(|| format!("image-{i}")), image));
        }
    }
    let (images, _) = pyramid::order(base, shrunk);

    let mut properties = pyramid::text_properties(&tiff.ifds);
    let mut claims = Vec::new();
    let unit = |name: &str| attribute(pixels, name).unwrap_or("µm");
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
    if attribute(pixels, "PhysicalSizeX").is_some() {
        let um = |name: &str, unit_name: &str| {
            number(name).map_or(f64::NAN, |v| v * micrometres(unit(unit_name)))
        };
        let x = um("PhysicalSizeX", "PhysicalSizeXUnit");
        let y = if attribute(pixels, "PhysicalSizeY").is_some() {
            um("PhysicalSizeY", "PhysicalSizeYUnit")
        } else {
            x
        };
        claims.push(Claim::vendor("ome.PhysicalSizeX", x, y));
    }
    claims.extend(pyramid::density(first, !claims.is_empty()));
    let source = Pyramid { images, associated };
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

fn image_names(xml: &str) -> Vec<String> {
    let images = elements(xml).filter(|(local, _)| *local == "Image");
    images.map(|(_, a)| attribute(a, "Name").unwrap_or("").to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_attributes() {
        let x = r#"<?xml version="1.0"?><ome:OME a="b"><ome:Image ID="0" Name='x'/><ome:Pixels SizeX="3" PhysicalSizeX = "0.25" PhysicalSizeXUnit="µm"></ome:Pixels></ome:OME>"#;
        let p = element(x, "Pixels").unwrap();
        assert_eq!(attribute(p, "PhysicalSizeX"), Some("0.25"));
        assert_eq!(attribute(p, "PhysicalSizeXUnit"), Some("µm"));
        assert_eq!(attribute(p, "SizeY"), None);
        assert_eq!(image_names(x), ["x"]);
        assert_eq!(micrometres("nm"), 1e-3);
        assert!(micrometres("pixel").is_nan());
    }
}
