//! `regions.json` on disk: read, checked, written (`docs/artifacts.md`).

use super::{ClassInfo, Image, Kind, RegionsError, Result};
use base::digest::hex;
use base::file;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Name of the manifest in a dataset's folder.
pub const FILE: &str = "regions.json";
/// The value of its `format`.
pub const FORMAT: &str = "mithras-regions";
/// Version of the manifest. A reader refuses any other.
pub const SCHEMA: u32 = 1;

/// Everything but the images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub format: String,
    pub schema: u32,
    pub name: String,
    pub builder: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
    pub classes: Vec<ClassInfo>,
    pub digest: String,
}

/// A regions dataset: opened, checked, immutable.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    pub(super) folder: PathBuf,
    pub(super) head: Head,
    pub(super) images: Vec<Image>,
}

#[derive(Serialize, Deserialize)]
struct Disk {
    #[serde(flatten)]
    head: Head,
    images: Vec<Image>,
}

impl Head {
    pub fn positive(&self) -> &str {
        let positive = self.classes.iter().find(|c| c.kind == Kind::Figure);
        positive.map_or("", |c| c.name.as_str())
    }

    /// SHA-256 over classes and images. Names, notes and the places of the files do not enter, so a
    /// moved or renamed dataset stays the same one.
    pub fn content_digest(&self, images: &[Image]) -> String {
        let mut hash = Sha256::new();
        let mut put = |bytes: Vec<u8>| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(&bytes);
        };
        put(serde_json::to_vec(&self.classes).unwrap_or_default());
        for image in images {
            // The digest of the file covers its pixels, which earlier versions did not look at.
            let placeless = Image { file: PathBuf::new(), pixels: None, ..image.clone() };
            put(serde_json::to_vec(&placeless).unwrap_or_default());
        }
        hex(&hash.finalize())
    }
}

/// Sets every label's kind and checks all that can be checked without opening an image.
pub(super) fn check(head: &Head, images: &mut [Image]) -> Result<()> {
    let invalid = |reason: String| Err(RegionsError::Invalid(reason));
    let kinds: HashMap<&str, Kind> =
        head.classes.iter().map(|c| (c.name.as_str(), c.kind)).collect();
    if kinds.len() != head.classes.len() || kinds.contains_key("") {
        return invalid("the classes need names, each its own".into());
    }
    let positive = head.classes.iter().filter(|c| c.kind == Kind::Figure).count();
    if positive != 1 {
        return invalid(format!("{positive} classes are of kind `figure`; exactly one must be"));
    }
    let mut names = HashSet::new();
    for (i, image) in images.iter_mut().enumerate() {
        if image.name.is_empty() {
            return invalid(format!("image {} (`{}`) has no name", i + 1, image.source));
        }
        if !names.insert(image.name.clone()) {
            return invalid(format!("two images are named `{}`", image.name));
        }
        check_image(&kinds, image)?;
    }
    Ok(())
}

fn check_image(kinds: &HashMap<&str, Kind>, image: &mut Image) -> Result<()> {
    let name = image.name.clone();
    let fail = |reason: String| Err(RegionsError::image(&name, reason));
    let digest = image.sha256.len() == 64 && image.sha256.bytes().all(|b| b.is_ascii_hexdigit());
    if !digest {
        return fail(format!("`{}` is not a SHA-256 digest", image.sha256));
    }
    if image.slide.is_empty() || image.source.is_empty() {
        return fail("it names no slide or no source".into());
    }
    let (w, h) = (f64::from(image.width), f64::from(image.height));
    if w < 1.0 || h < 1.0 {
        return fail("it has no pixels".into());
    }
    if image.mpp.x != image.mpp.y && !matches!(image.mpp.source, super::MppSource::File(_)) {
        return fail("um/px that is not the file's own must be equal in both directions".into());
    }
    let inside = |a: &super::Area| {
        let finite = [a.x0, a.y0, a.x1, a.y1].iter().all(|v| v.is_finite());
        finite && a.x0 < a.x1 && a.y0 < a.y1 && a.x1 > 0.0 && a.y1 > 0.0 && a.x0 < w && a.y0 < h
    };
    for area in &image.ignore {
        if !inside(area) {
            return fail(format!("ignore area {area:?} is empty or outside the {w} x {h} px"));
        }
    }
    for (i, label) in image.labels.iter_mut().enumerate() {
        let Some(&kind) = kinds.get(label.class.as_str()) else {
            return fail(format!("label {i} has the unknown class `{}`", label.class));
        };
        label.kind = kind;
        if let Some(area) = &label.bbox
            && !inside(area)
        {
            return fail(format!("label {i}: box {area:?} is empty or outside the {w} x {h} px"));
        }
        let half = |lo: f64, hi: f64, v: f64| v.is_finite() && v >= lo && v <= hi;
        // A box cut by the edge may have its centre outside by up to half of its side.
        let slack = label.bbox.map_or((0.0, 0.0), |b| ((b.x1 - b.x0) / 2.0, (b.y1 - b.y0) / 2.0));
        if !half(-slack.0, w + slack.0, label.x) || !half(-slack.1, h + slack.1, label.y) {
            return fail(format!(
                "label {i} at ({}, {}) is outside the {w} x {h} px",
                label.x, label.y
            ));
        }
    }
    Ok(())
}

/// Reads and checks a manifest, and that every image is there with its recorded size.
pub(super) fn open(path: &Path) -> Result<Dataset> {
    let manifest = if path.is_dir() { path.join(FILE) } else { path.to_path_buf() };
    let bad = |reason: String| RegionsError::file(&manifest, reason);
    let text = file::read_whole(&manifest).map_err(RegionsError::io(&manifest))?;
    #[derive(Deserialize)]
    struct Kind {
        format: Option<String>,
        schema: Option<u32>,
    }
    let kind: Kind =
        base::json::parse(&text).map_err(|e| bad(format!("no regions dataset ({e})")))?;
    if kind.format.as_deref() != Some(FORMAT) {
        return Err(bad(format!("no regions dataset (`format` is not `{FORMAT}`)")));
    }
    if kind.schema != Some(SCHEMA) {
        let found = kind.schema.map_or_else(|| "missing".into(), |s| s.to_string());
        return Err(bad(format!("schema is {found}, this program reads {SCHEMA}")));
    }
    let Disk { head, mut images } = base::json::parse(&text).map_err(|e| bad(e.to_string()))?;
    check(&head, &mut images).map_err(|e| bad(e.to_string()))?;
    let digest = head.content_digest(&images);
    if digest != head.digest {
        return Err(bad("classes, images or labels were changed after it was written".into()));
    }
    let folder = manifest.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let set = Dataset { folder: folder.to_path_buf(), head, images };
    for image in &set.images {
        let file = set.path(image);
        let found = std::fs::metadata(&file).map_err(RegionsError::io(&file))?;
        if !found.is_file() {
            return Err(RegionsError::image(&image.name, format!("no file: {}", file.display())));
        }
        if found.len() != image.bytes {
            return Err(RegionsError::Changed {
                path: file,
                what: "its size",
                found: found.len().to_string(),
                expected: image.bytes.to_string(),
            });
        }
    }
    Ok(set)
}

/// Rounds to what a manifest holds: a thousandth of a pixel, 1e-9 um/px. Such decimals survive being
/// printed and read, so that the digest does.
fn rounded(image: &mut Image) -> Result<()> {
    let fail = |e: mitosis::MppError| RegionsError::image(&image.name, e);
    let mpp = |m: mitosis::Mpp| mitosis::Mpp::new((m.get() * 1e9).round() / 1e9);
    (image.mpp.x, image.mpp.y) = (mpp(image.mpp.x).map_err(fail)?, mpp(image.mpp.y).map_err(fail)?);
    let px = |v: f64| (v * 1e3).round() / 1e3;
    let area = |a: &mut super::Area| {
        let [x0, y0, x1, y1] = <[f64; 4]>::from(*a).map(px);
        *a = super::Area { x0, y0, x1, y1 };
    };
    image.ignore.iter_mut().for_each(area);
    for label in &mut image.labels {
        (label.x, label.y) = (px(label.x), px(label.y));
        label.bbox.iter_mut().for_each(area);
    }
    Ok(())
}

/// Writes a new dataset into a folder that holds none.
pub(super) fn write(folder: &Path, mut head: Head, mut images: Vec<Image>) -> Result<Dataset> {
    images.iter_mut().try_for_each(rounded)?;
    check(&head, &mut images)?;
    head.digest = head.content_digest(&images);
    std::fs::create_dir_all(folder).map_err(RegionsError::io(folder))?;
    let path = folder.join(FILE);
    if path.exists() {
        return Err(RegionsError::file(
            &path,
            "is a dataset already; name another folder, or remove it first",
        ));
    }
    let disk = Disk { head, images };
    let mut text = serde_json::to_string_pretty(&disk).map_err(|e| RegionsError::file(&path, e))?;
    text.push('\n');
    file::write(&path, text.as_bytes())?;
    Ok(Dataset { folder: folder.to_path_buf(), head: disk.head, images: disk.images })
}
