//! Aperio SVS: tiled levels, stripped label, macro and thumbnail, `|key = value` description.

use super::pyramid;
use super::roles::{Arranged, Entry, Rule, arrange, entries, named};
use super::{Format, Probe};
use crate::resolution::{Claim, decimal};
use crate::source::Opened;
use crate::tiff::tag;
use crate::{OpenOptions, SlideError};

pub(super) const FORMAT: Format =
    Format { name: "aperio", about: "Aperio SVS (JPEG, JPEG 2000, LZW, none)", knows, open };

/// Directories whose description is looked at.
const LOOKED_AT: usize = 16;
const RULE: Rule =
    Rule { tiles_only: true, remedy: "export one focal plane of one scene as a file of its own" };

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
    arrange(probe, all, &RULE)
}

fn open(probe: &Probe, options: &OpenOptions) -> Result<Opened, SlideError> {
    let tiff = probe.tiff()?;
    let Arranged { pyramid: source, base, index } = arranged(probe, options)?;
    let mut properties = pyramid::text_properties(&tiff.ifds, index);
    let text = base.text(tag::DESCRIPTION).unwrap_or_default();
    for (key, value) in fields(&text) {
        properties.insert(format!("aperio.{key}"), value);
    }
    let mut claims = Vec::new();
    if let Some(v) = properties.get("aperio.MPP") {
        let mpp = decimal(v);
        claims.push(Claim::vendor("aperio.MPP", mpp, mpp).written(v));
    }
    claims.extend(pyramid::density(&base, true));
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

/// The name that Aperio's scanners give a directory: from the second line of its description; without a
/// description (GT 450) from `NewSubfileType`, 1 for the label and 9 for the macro photograph. Otherwise the
/// second directory is the thumbnail, and so is one whose description has a `->` (it was shrunk).
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
    let thumbnail = || (e.index == 1 || second.contains("->")).then(|| "thumbnail".to_owned());
    let letters = || word.starts_with(char::is_alphabetic).then(|| word.to_owned());
    known.or_else(by_type).or_else(thumbnail).or_else(letters)
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
    fn description_fields() {
        let t = "Aperio Image Library v11\r\n2220x2967|AppMag = 20|MPP = 0.4990|User = a=b";
        let f: Vec<_> = super::fields(t).collect();
        assert_eq!(f[1], ("MPP".into(), "0.4990".into()));
        assert_eq!(f[2], ("User".into(), "a=b".into()));
    }
}
