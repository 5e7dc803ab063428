//! Which files make a slide.

use super::header::{HEAD, Header, is_dicom};
use super::image::Member;
use crate::Limits;
use crate::file::SlideFile;
use crate::limits::Fault;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of pixel data that are compared at the beginning, in the middle and at the end.
const PIECE: u64 = 1 << 16;

/// What a DICOM file is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DicomPart {
    /// A slide, with all files next to it that name the same series.
    Slide {
        /// The series that they name.
        series: String,
        /// Whether it is one of the slide's levels, or a part of one, and no label or overview.
        level: bool,
        /// Pixels per row.
        width: u64,
        /// Of an image in several files: how many frames are before.
        first_frame: u64,
    },
    /// Something else, such as annotations.
    Other,
}

/// What a DICOM file is a part of; `None` for other files, and where its header cannot be read.
#[must_use]
pub fn dicom_part(path: &Path) -> Option<DicomPart> {
    let limits = Limits::default();
    let file = SlideFile::open(path, &limits).ok().filter(is_dicom)?;
    let header = Header::read(&file, &limits).ok()?;
    if !header.is_slide() {
        return (!header.class.is_empty()).then_some(DicomPart::Other);
    }
    Some(DicomPart::Slide {
        level: header.flavour == "VOLUME",
        width: header.size.0,
        first_frame: header.first_frame,
        series: header.series,
    })
}

/// The other files of a DICOM slide, which are next to the named one; none for other files.
#[must_use]
pub fn dicom_series_files(path: &Path) -> Vec<PathBuf> {
    let limits = Limits::default();
    let open = || SlideFile::open(path, &limits).ok().filter(is_dicom);
    let Some(file) = path.is_file().then(open).flatten() else { return Vec::new() };
    let all = members(path, &Arc::new(file), &limits).map_or_else(|_| Vec::new(), |m| m.files);
    all.into_iter().skip(1).map(|m| m.path).collect()
}

/// The files of a slide.
pub(super) struct Members {
    /// The named one first; each instance once.
    pub(super) files: Vec<Member>,
    /// Files that are damaged before they name their series, where they may belong to another slide, and files that are
    /// left out because another one has their identifier.
    pub(super) notes: Vec<String>,
}

/// The files of a slide: of those in its folder the ones of its series. One that is damaged before it names its series
/// may be a missing level: a fault, unless slides of other series are in the folder, too.
pub(super) fn members(
    path: &Path,
    file: &Arc<SlideFile>,
    limits: &Limits,
) -> Result<Members, Fault> {
    let header = Header::read(file, limits)?;
    if !header.is_slide() {
        let class = &header.class;
        return Err(Fault::Unsupported(format!(
            "a DICOM file of class `{class}`, which is not a whole-slide image"
        )));
    }
    let series = header.series.clone();
    let mut files = vec![Member { path: path.to_owned(), file: Arc::clone(file), header }];
    if file.is_remote() || series.is_empty() {
        return Ok(Members { files, notes: Vec::new() });
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A file in a folder that cannot be listed is alone.
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let others = entries.filter(|e| Some(e.file_name().as_os_str()) != path.file_name());
    let mut others: Vec<_> = others.map(|e| e.path()).collect();
    others.sort();
    let (mut doubtful, mut notes) = (Vec::new(), Vec::new());
    for path in &others {
        match member(path, limits, &series) {
            Part::Member(m) if m.header.is_slide() => {
                match files.iter().find(|k| k.header.instance == m.header.instance) {
                    None => files.push(*m),
                    Some(k) if is_copy(k, &m) => {}
                    Some(k) => notes.push(claimed_twice(k, &m)?),
                }
            }
            Part::Member(_) | Part::Other => {}
            Part::Broken(fault) => return Err(fault),
            Part::Unknown(fault) => doubtful.push(fault),
        }
    }
    let is_of_another = |path: &PathBuf| match dicom_part(path) {
        Some(DicomPart::Slide { series: own, .. }) => !own.is_empty() && own != series,
        _ => false,
    };
    match doubtful.first() {
        Some(fault) if !others.iter().any(is_of_another) => Err(fault.clone()),
        _ => {
            let note = |f: &Fault| format!("{}; a level may be missing", f.reason());
            notes.extend(doubtful.iter().map(note));
            Ok(Members { files, notes })
        }
    }
}

/// Whether two files of one instance have the same pixels: copies may differ in what they state about persons.
fn is_copy(one: &Member, other: &Member) -> bool {
    let (a, b) = (&one.header, &other.header);
    let pixels = |m: &Member| {
        let pixels = m.header.pixels.as_ref()?;
        let len = pixels.len.unwrap_or(m.file.len.saturating_sub(pixels.at));
        Some((pixels.at, len))
    };
    let (Some((at, len)), Some((other_at, other_len))) = (pixels(one), pixels(other)) else {
        return false;
    };
    let piece = |m: &Member, at: u64| {
        let mut bytes = vec![0; PIECE.min(len) as usize];
        m.file.read_at(&mut bytes, at).is_ok().then_some(bytes)
    };
    let last = len.saturating_sub(PIECE);
    (a.size, a.frame, a.frames, len) == (b.size, b.frame, b.frames, other_len)
        && [0, last / 2, last].iter().all(|n| {
            let own = piece(one, at + n);
            own.is_some() && own == piece(other, other_at + n)
        })
}

/// What is noted of two files with one SOP instance UID and other pixels. The named one is read where they are of one
/// size; else one of them is a level that nobody would miss.
fn claimed_twice(one: &Member, other: &Member) -> Result<String, Fault> {
    let shown = |m: &Member| {
        let (w, h) = m.header.size;
        format!("{} ({w} x {h} px)", m.name())
    };
    let (a, b) = (shown(one), shown(other));
    let what = format!("{a} and {b} have one SOPInstanceUID and other pixels");
    match one.header.size == other.header.size {
        true => Ok(format!("{what}; {} is read", one.name())),
        false => Err(what.into()),
    }
}

/// What a file next to a slide is to it.
enum Part {
    Member(Box<Member>),
    Other,
    /// Of the series, and damaged.
    Broken(Fault),
    /// Damaged before it names its series.
    Unknown(Fault),
}

fn member(path: &Path, limits: &Limits, series: &str) -> Part {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_named_so = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("dcm"));
    let file = match SlideFile::open(path, limits) {
        Ok(file) if is_dicom(&file) => file,
        Ok(file) if is_named_so && file.len < HEAD => {
            let what = format!("{name}, next to it: {} bytes are left of it", file.len);
            return Part::Unknown(Fault::Damaged(what));
        }
        Err(e) if is_named_so && path.is_file() => {
            return Part::Unknown(Fault::Read(format!("next to it: {e}")));
        }
        _ => return Part::Other,
    };
    let Some((header, fault)) = Header::of_series(&file, limits, series) else {
        return Part::Other;
    };
    match fault {
        None => {
            let (path, file) = (path.to_owned(), Arc::new(file));
            Part::Member(Box::new(Member { path, file, header }))
        }
        Some(fault) if header.series.is_empty() => {
            Part::Unknown(fault.within(&format!("{name}, next to it")))
        }
        Some(fault) => Part::Broken(fault.within(&format!("{name}, of the same series"))),
    }
}

/// The files of each image, in the order of their frames.
pub(super) fn group(members: &[Member]) -> Vec<Vec<&Member>> {
    let mut groups: BTreeMap<String, Vec<&Member>> = BTreeMap::new();
    for m in members {
        let h = &m.header;
        let (w, height) = h.size;
        let sparse = h.organization != "TILED_FULL" && !h.positions.is_empty();
        let key = match &h.concatenation {
            Some(uid) => format!("{} of {uid}", h.flavour),
            // Frames that state where they are may be spread over files.
            None if sparse && h.flavour == "VOLUME" => format!("VOLUME {w} x {height}"),
            None => h.instance.clone(),
        };
        groups.entry(key).or_default().push(m);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    for group in &mut groups {
        group.sort_by_key(|m| m.header.first_frame);
    }
    groups
}
