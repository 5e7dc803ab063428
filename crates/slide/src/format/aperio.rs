//! Aperio SVS: tiled levels, stripped label, macro and thumbnail, `|key = value` description.

use super::pyramid::{self, Pyramid};
use super::{Format, Probe};
use crate::limits::Fault;
use crate::resolution::Claim;
use crate::source::Opened;
use crate::tiff::{TiffImage, tag};
use crate::{OpenOptions, SlideError};

pub(super) const FORMAT: Format =
    Format { name: "aperio", about: "Aperio SVS (JPEG, JPEG 2000, LZW, none)", knows, open };

fn knows(probe: &Probe) -> bool {
    let text = probe.first().and_then(|i| i.text(tag::DESCRIPTION));
    text.is_some_and(|t| t.starts_with("Aperio"))
        && probe.first().is_some_and(|i| i.has(tag::TILE_WIDTH))
}

fn open(probe: &Probe, options: &OpenOptions) -> Result<Opened, SlideError> {
    let tiff = probe.tiff()?;
    let (mut levels, mut associated) = (Vec::new(), Vec::new());
    for (i, ifd) in tiff.ifds.iter().enumerate() {
        let image = TiffImage::new(ifd, &options.limits).map_err(|e| image_error(probe, i, e))?;
        if image.tiled {
            levels.push(image);
        } else {
            let text = ifd.text(tag::DESCRIPTION).unwrap_or_default();
            let name = if i == 1 { "thumbnail".to_string() } else { second_line_word(&text, i) };
            associated.push((name, image));
        }
    }
    let base = levels.remove(0);
    let (images, _) = pyramid::order(base, levels);
    let first = &tiff.ifds[0];
    let mut properties = pyramid::text_properties(&tiff.ifds);
    let text = first.text(tag::DESCRIPTION).unwrap_or_default();
    for (key, value) in fields(&text) {
        properties.insert(format!("aperio.{key}"), value);
    }
    let mut claims = Vec::new();
    if let Some(v) = properties.get("aperio.MPP") {
        let mpp = v.trim().parse().unwrap_or(f64::NAN);
        claims.push(Claim::vendor("aperio.MPP", mpp, mpp));
    }
    claims.extend(pyramid::density(first, true));
    let source = Pyramid { images, associated };
    Ok(Opened {
        vendor: "aperio".into(),
        levels: source.levels(),
        properties,
        claims,
        bounds: None,
        associated: source.associated_list(),
        source: Box::new(source),
    })
}

/// A directory that cannot be used.
pub(super) fn image_error(probe: &Probe, index: usize, fault: Fault) -> SlideError {
    probe.fault(fault.within(&format!("image {index}")))
}

fn second_line_word(text: &str, index: usize) -> String {
    let word = text.lines().nth(1).and_then(|l| l.split_whitespace().next());
    word.map_or_else(|| format!("image-{index}"), str::to_string)
}

fn fields(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    text.split('|').skip(1).filter_map(|part| {
        let (key, value) = part.split_once('=')?;
        Some((key.trim().to_string(), value.trim().to_string()))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn description_fields() {
        let t = "Aperio Image Library v11\r\n2220x2967|AppMag = 20|MPP = 0.4990|User = a=b";
        let f: Vec<_> = super::fields(t).collect();
        assert_eq!(f[1], ("MPP".into(), "0.4990".into()));
        assert_eq!(f[2], ("User".into(), "a=b".into()));
        assert_eq!(super::second_line_word("x\nlabel 387x463", 2), "label");
        assert_eq!(super::second_line_word("x", 2), "image-2");
    }
}
