//! Aperio SVS: tiled levels, stripped label, macro and thumbnail, `|key = value` description.

use super::pyramid;
use super::roles::{Arranged, Entry, Rule, arrange, entries, named};
use super::{Format, Probe};
use crate::resolution::{CONTRADICTION, Claim, decimal, differ};
use crate::source::Opened;
use crate::tiff::tag;
use crate::{OpenOptions, SlideError};

pub(super) const FORMAT: Format =
    Format { name: "aperio", about: "Aperio SVS (JPEG, JPEG 2000, LZW, none)", knows, open };

/// Directories whose description is looked at.
const LOOKED_AT: usize = 16;
const RULE: Rule = Rule {
    tiles_only: true,
    twins: None,
    remedy: "export one focal plane of one scene as a file of its own if its program can",
};

fn knows(probe: &Probe) -> bool {
    let Ok(tiff) = probe.tiff() else { return false };
    tiff.ifds.iter().take(LOOKED_AT).any(|i| {
        i.has(tag::TILE_WIDTH) && i.text(tag::DESCRIPTION).is_some_and(|t| t.starts_with("Aperio"))
    })
}

/// The images of the file by what they are.
pub(super) fn arranged(probe: &Probe, options: &OpenOptions) -> Result<Arranged, SlideError> {
    let mut all = entries(probe, probe.tiff()?, &options.limits)?;
    all.iter_mut().for_each(|e| e.name = name(e));
    let arranged = arrange(probe, all, &RULE)?;
    let text = arranged.base.text(tag::DESCRIPTION).unwrap_or_default();
    let base = &arranged.pyramid.images[0];
    match stated_size(&text) {
        Some((w, h)) if (w, h) != (base.width, base.height) => Err(SlideError::ContradictingSize {
            path: probe.path.clone(),
            stated: format!("Aperio's description states {w} x {h} px"),
            found: format!("the image has {} x {} px", base.width, base.height),
        }),
        _ => Ok(arranged),
    }
}

/// The size of an image by its description. `46920x33014 [0,100 46000x32914] (256x256) -> 1024x768`: the scanned area,
/// the part of it that is stored, the tiles, and what that part was shrunk to. The last of them is the image's;
/// without brackets and arrow it is the scanned area.
fn stated_size(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().nth(1)?;
    // Behind these come the fields, and the description of the slide that a region was cut from.
    let line = line.split(['|', ';']).next()?;
    let size = |text: &str| {
        let (w, h) = text.split_once('x')?;
        Some((w.parse::<u64>().ok()?, h.parse::<u64>().ok()?))
    };
    if let Some((_, target)) = line.split_once("->") {
        return size(target.split_whitespace().next()?);
    }
    let stored = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    match stored {
        Some((part, _)) => size(part.rsplit([' ', ',']).next()?),
        None => size(line.split_whitespace().next()?),
    }
}

fn open(probe: &Probe, options: &OpenOptions) -> Result<Opened, SlideError> {
    let tiff = probe.tiff()?;
    let Arranged { pyramid: source, base, index } = arranged(probe, options)?;
    let mut properties = pyramid::text_properties(&tiff.ifds, index);
    let text = base.text(tag::DESCRIPTION).unwrap_or_default();
    for (key, value) in fields(&text) {
        properties.insert(format!("aperio.{key}"), value);
    }
    let levels = source.levels();
    let mut claims = stated_mpp(&text, "aperio.MPP");
    let sizes: Vec<_> = levels.iter().skip(1).map(|l| (l.width, l.height)).collect();
    if let [Claim { x: mpp, .. }, ..] = claims[..] {
        for (i, ifd) in tiff.ifds.iter().enumerate().filter(|(_, i)| i.has(tag::TILE_WIDTH)) {
            let side = |tag: u16| ifd.uint(tag).ok().flatten();
            let size = side(tag::WIDTH).zip(side(tag::HEIGHT));
            let Some(at) = sizes.iter().position(|s| size == Some(*s)) else { continue };
            let own = stated_mpp(&ifd.text(tag::DESCRIPTION).unwrap_or_default(), "");
            let shrunk = mpp * levels[at + 1].downsample_x;
            // Scanners repeat the slide's own; a level's size allows one more.
            claims.extend(own.into_iter().filter(|c| differ(c.x, mpp, CONTRADICTION)).filter_map(
                |c| {
                    let field = format!("aperio.MPP of image {i}");
                    differ(c.x, shrunk, CONTRADICTION).then(|| Claim::vendor(&field, c.x, c.y))
                },
            ));
        }
    }
    claims.extend(pyramid::density(&base, true));
    Ok(Opened {
        vendor: "aperio".into(),
        levels,
        properties,
        claims,
        bounds: None,
        associated: source.associated_list(),
        source: Box::new(source),
    })
}

/// Every um/px of a description, more than one where it states several.
fn stated_mpp(text: &str, field: &str) -> Vec<Claim> {
    let stated = fields(text).filter(|(key, _)| key == "MPP");
    let claim = |(_, v): (String, String)| {
        let mpp = decimal(&v);
        Claim::vendor(field, mpp, mpp).written(&v)
    };
    stated.map(claim).collect()
}

/// The name that Aperio's scanners give a directory: from the second line of its description; without a
/// description (GT 450) from `NewSubfileType`, 1 for the label and 9 for the macro photograph. Otherwise one whose
/// description has a `->` (it was shrunk) is the thumbnail.
fn name(e: &Entry) -> Option<String> {
    if e.ifd.has(tag::TILE_WIDTH) {
        return None;
    }
    let text = e.ifd.text(tag::DESCRIPTION).unwrap_or_default();
    let second = text.lines().nth(1).unwrap_or_default();
    let word = second.split_whitespace().next().unwrap_or_default();
    let known = named(word).map(str::to_owned);
    let by_type = || match (text.trim().is_empty(), e.ifd.uint(tag::SUBFILE_TYPE).ok().flatten()) {
        (true, Some(1)) => Some("label".to_owned()),
        (true, Some(9)) => Some("macro".to_owned()),
        _ => None,
    };
    let thumbnail = || is_shrunk(&text).then(|| "thumbnail".to_owned());
    let letters = || word.starts_with(char::is_alphabetic).then(|| word.to_owned());
    known.or_else(by_type).or_else(thumbnail).or_else(letters)
}

/// Whether a description states that its image was shrunk.
pub(super) fn is_shrunk(text: &str) -> bool {
    text.lines().nth(1).is_some_and(|second| second.contains("->"))
}

/// The fields of a description: `key = value` between bars.
pub(crate) fn fields(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    text.split('|').skip(1).filter_map(|part| {
        let (key, value) = part.split_once('=')?;
        Some((key.trim().to_string(), value.trim().to_string()))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_size_that_a_description_states() {
        let aperio = |line: &str| super::stated_size(&format!("Aperio Image Library v1\r\n{line}"));
        for (line, size) in [
            (
                "46920x33014 [0,100 46000x32914] (256x256) JPEG/RGB Q=30|AppMag = 20",
                Some((46000, 32914)),
            ),
            (
                "46000x32914 [42673,5576 2220x2967] (240x240) JPEG/RGB Q=30;Aperio Image Library v10",
                Some((2220, 2967)),
            ),
            (
                "152640x128256 [0,0,152640x128256] (256x256) JPEG/YCC Q=91|",
                Some((152_640, 128_256)),
            ),
            ("4443x3567 (256x256) J2K/KDU Q=70|ICC Profile = sRGB", Some((4443, 3567))),
            (
                "46920x33014 [0,100 46000x32914] (256x256) -> 11500x8228 JPEG/RGB Q=65",
                Some((11500, 8228)),
            ),
            ("label 387x463", None),
            ("", None),
        ] {
            assert_eq!(aperio(line), size, "{line}");
        }
        assert_eq!(super::stated_size("Aperio Image Library v1"), None);
    }

    #[test]
    fn description_fields() {
        let t = "Aperio Image Library v11\r\n2220x2967|AppMag = 20|MPP = 0.4990|User = a=b";
        let f: Vec<_> = super::fields(t).collect();
        assert_eq!(f[1], ("MPP".into(), "0.4990".into()));
        assert_eq!(f[2], ("User".into(), "a=b".into()));
    }
}
