//! The files of a slide with headers without personal data.

use super::clean::{Cleaner, Identifiers, meta};
use super::content;
use super::header::{Content, Pixels};
use super::series;
use super::syntax;
use crate::file::SlideFile;
use crate::limits::{Fault, Limits};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub(crate) use super::frames::Frames;

/// A file to be written: a header, then bytes of the slide's own file.
pub(crate) struct Clean {
    pub(crate) header: Vec<u8>,
    pub(crate) file: Arc<SlideFile>,
    /// The pixel data, with the element's own head.
    pub(crate) pixels: Range<u64>,
    pub(crate) frames: Frames,
}

/// All files to be written, and what they lack.
pub(crate) struct CleanFiles {
    pub(crate) files: Vec<Clean>,
    pub(crate) removed: Vec<String>,
}

/// The levels and the thumbnail of a slide; label, overview and others are left out.
pub(crate) fn clean(
    path: &Path,
    file: &Arc<SlideFile>,
    limits: &Limits,
) -> Result<CleanFiles, Fault> {
    let mut identifiers = Identifiers::default();
    let mut out = CleanFiles { files: Vec::new(), removed: Vec::new() };
    let mut members = series::members(path, file, limits)?.files;
    // The file that opens the slide comes first: a level.
    members.sort_by_key(|m| (m.header.flavour != "VOLUME", std::cmp::Reverse(m.header.size.0)));
    for m in members {
        let h = &m.header;
        let shows_label = h.flavour == "THUMBNAIL" && !h.writing.is_empty();
        if shows_label || !matches!(h.flavour.as_str(), "VOLUME" | "THUMBNAIL") {
            out.removed.push(format!("image {}", h.flavour.to_lowercase()));
            continue;
        }
        let frames = match Frames::find(&m.file, h, limits) {
            // Comments in frames that cannot be found could not be blanked.
            Err(e) if h.flavour == "VOLUME" => return Err(e),
            Err(_) => {
                out.removed.push(format!("image {}", h.flavour.to_lowercase()));
                continue;
            }
            Ok(frames) => frames,
        };
        let Pixels { at, len } = h.pixels.ok_or("no pixel data")?;
        let implicit = h.syntax == syntax::IMPLICIT;
        let head = if implicit { 8 } else { 12 };
        let start = at - head;
        let end = match len {
            Some(len) => at + len,
            None => behind_fragments(&m.file, at)?,
        };
        let from = h.data_set;
        let mut bytes = vec![0; (start - from) as usize];
        m.file.read_at(&mut bytes, from).map_err(|e| Fault::read(from, &e))?;
        let mut cleaner = Cleaner::new(&mut identifiers);
        let body = cleaner.header(&bytes, implicit)?;
        out.removed.append(&mut cleaner.removed);
        let instance = identifiers.replace(&h.instance);
        let mut header = meta(&h.class, &instance, &h.syntax);
        header.extend(body);
        out.files.push(Clean { header, file: Arc::clone(&m.file), pixels: start..end, frames });
    }
    out.removed.sort();
    out.removed.dedup();
    Ok(out)
}

/// What the files of a slide hold that the names of its attributes do not state.
#[derive(Default)]
pub(crate) struct Hidden {
    /// The attributes by which files state that their pixels show the label or other writing.
    pub(crate) writing: Vec<String>,
    /// Attributes of bytes that hold words.
    pub(crate) texts: Vec<String>,
    /// How many attributes of bytes were looked into.
    pub(crate) looked_into: usize,
}

/// Looks for what the names of attributes do not state.
pub(crate) fn hidden(path: &Path, file: &Arc<SlideFile>, limits: &Limits) -> Result<Hidden, Fault> {
    let named = |i: usize, own: &str| match i {
        0 => format!("dicom.{own}"),
        i => format!("dicom[{i}].{own}"),
    };
    let mut found = Hidden::default();
    for (i, m) in series::members(path, file, limits)?.files.iter().enumerate() {
        found.writing.extend(m.header.writing.iter().map(|own| named(i, own)));
        for Content { name, tag, at, len } in &m.header.contents {
            let own = name.strip_prefix("dicom.").unwrap_or(name);
            // What is too long to be looked into may hold anything.
            let texts = if *len > content::MOST {
                vec![own.to_owned()]
            } else {
                let mut value = vec![0; *len as usize];
                m.file.read_at(&mut value, *at).map_err(|e| Fault::read(*at, &e))?;
                content::texts(own, *tag, &value)
            };
            found.texts.extend(texts.iter().map(|own| named(i, own)));
            found.looked_into += 1;
        }
    }
    Ok(found)
}

/// The frames of a file.
pub(crate) struct FileFrames {
    /// The file's name.
    pub(crate) name: String,
    /// The frames, or why they cannot be found.
    pub(crate) frames: Result<Frames, Fault>,
}

/// The frames of every file of a slide.
pub(crate) fn frames(
    path: &Path,
    file: &Arc<SlideFile>,
    limits: &Limits,
) -> Result<Vec<FileFrames>, Fault> {
    let members = series::members(path, file, limits)?.files;
    let found = members
        .iter()
        .map(|m| FileFrames { name: m.name(), frames: Frames::find(&m.file, &m.header, limits) });
    Ok(found.collect())
}

/// Where pixel data in fragments end, their end mark included.
fn behind_fragments(file: &SlideFile, mut at: u64) -> Result<u64, Fault> {
    loop {
        if at == file.len {
            return Ok(at);
        }
        if at + 8 > file.len {
            return Err("pixel data are cut short".into());
        }
        let mut head = [0; 8];
        file.read_at(&mut head, at).map_err(|e| Fault::read(at, &e))?;
        let len = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        at += 8;
        match head[..4] {
            [0xFE, 0xFF, 0xDD, 0xE0] => return Ok(at),
            [0xFE, 0xFF, 0x00, 0xE0] if len != u32::MAX => at += u64::from(len),
            _ => return Err(format!("no fragment at byte {}", at - 8).into()),
        }
    }
}
