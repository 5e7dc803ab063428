//! Everything else through OpenSlide 4, opened at run time. Nothing is linked.

use super::{Format, Probe};
use crate::limits::Fault;
use crate::resolution::Claim;
use crate::source::{AssociatedImage, Decoded, Level, Opened, Source, TileState};
use crate::{OpenOptions, SlideError};
use base::signature::{self, Kind, Signature, signature};
use library::Library;
use mitosis::{Rect, RgbTile};
use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, RwLock};

#[path = "openslide_library.rs"]
mod library;

pub(super) const FORMAT: Format = Format {
    name: "openslide",
    about: "NDPI, MRXS, SCN, BIF, Philips, ... when an OpenSlide 4 library is found",
    knows: |_| true,
    open,
};

/// How to get the library, for messages.
const REMEDY: &str = "install OpenSlide 4 (`pip install openslide-bin`, or the system's libopenslide1), \
                      which may read it, or name the library in MITHRAS_OPENSLIDE";
const MAIN_FILE: &str =
    "name a slide or an image file; a multi-file slide is named by its main file";
const UNKNOWN: &str = "not a TIFF, PNG, JPEG or DICOM file";
/// Side of the tiles that are asked of OpenSlide.
const TILE: u32 = 512;
const POISONED: &str = "another thread failed while opening the slide";

/// A handle; closed on drop. OpenSlide's functions may be called from any thread.
struct Handle {
    raw: NonNull<c_void>,
    library: &'static Library,
}

// SAFETY: OpenSlide documents its handle as usable from several threads at once, except for close,
// which needs `&mut` (drop).
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle came from `openslide_open` and nobody else holds it.
        unsafe { (self.library.close)(self.raw.as_ptr()) }
    }
}

impl Handle {
    fn open(library: &'static Library, path: &CString) -> Result<Option<Self>, String> {
        // SAFETY: a NUL-terminated path; null means "not recognised".
        let raw = unsafe { (library.open)(path.as_ptr()) };
        let Some(raw) = NonNull::new(raw) else { return Ok(None) };
        let handle = Self { raw, library };
        handle.check()?;
        Ok(Some(handle))
    }

    /// OpenSlide's sticky error.
    fn check(&self) -> Result<(), String> {
        // SAFETY: a live handle; the string lives as long as it does.
        unsafe { library::text((self.library.get_error)(self.raw.as_ptr())) }.map_or(Ok(()), Err)
    }

    /// Width and height of an associated image as this handle knows it; -1 where absent.
    fn associated_size(&self, name: &CString) -> Result<(i64, i64), String> {
        let (mut w, mut h) = (-1, -1);
        // SAFETY: a live handle, a NUL-terminated name, two places to write to.
        unsafe {
            (self.library.associated_dimensions)(self.raw.as_ptr(), name.as_ptr(), &mut w, &mut h);
        }
        self.check()?;
        Ok((w, h))
    }

    fn read(&self, level: i32, rect: Rect) -> Result<RgbTile, String> {
        let (x, y, w, h) = rect.parts();
        let mut argb = vec![0u32; w * h];
        // SAFETY: the buffer holds w * h pixels.
        unsafe {
            (self.library.read_region)(
                self.raw.as_ptr(),
                argb.as_mut_ptr(),
                x,
                y,
                level,
                w as i64,
                h as i64,
            );
        }
        self.check()?;
        Ok(over_white(&argb, w, h))
    }
}

/// Premultiplied ARGB onto white.
fn over_white(argb: &[u32], width: usize, height: usize) -> RgbTile {
    let mut data = Vec::with_capacity(3 * argb.len());
    for p in argb {
        let [b, g, r, a] = p.to_le_bytes();
        let rest = 255 - a;
        data.extend([r, g, b].map(|c| c.saturating_add(rest)));
    }
    RgbTile { width, height, data }
}

struct OpenSlide {
    library: &'static Library,
    path: CString,
    handle: RwLock<Option<Handle>>,
    levels: Vec<Level>,
    /// OpenSlide's own downsample factors, to name tile corners in level-0 pixels.
    factors: Vec<f64>,
    associated: Vec<AssociatedImage>,
}

fn open(probe: &Probe, options: &OpenOptions) -> Result<Opened, SlideError> {
    if let (Some((what, remedy)), false) = (not_a_slide(probe), options.force_openslide) {
        return Err(probe.unsupported(what.into(), remedy));
    }
    let what = by_openslide(probe);
    if probe.file.is_remote() {
        // A TIFF that cannot be read here may be damaged.
        if let (true, false, Err(e)) = (probe.is_tiff(), probe.is_named("ndpi"), probe.tiff()) {
            return Err(e);
        }
        let Some(what) = what else { return Err(probe.unsupported(UNKNOWN.into(), MAIN_FILE)) };
        let reason = format!("{what}, which OpenSlide reads, and only from this machine");
        return Err(probe.unsupported(reason, "download the slide first if the server allows it"));
    }
    let library = library::find(options.openslide.as_deref()).map_err(|tried| {
        // NDPI beyond 4 GB is not a valid TIFF, and not damaged for all that.
        if let Err(e) = probe.tiff()
            && probe.is_tiff()
            && !probe.is_named("ndpi")
        {
            return e;
        }
        let asked = options.force_openslide.then_some("a file");
        let Some(what) = what.or(asked) else {
            return probe.unsupported(UNKNOWN.into(), MAIN_FILE);
        };
        let reason = format!("{what}, which needs OpenSlide 4, and that was not found ({tried})");
        probe.unsupported(reason, REMEDY)
    })?;
    let fail = |reason: String| {
        probe.unsupported(
            format!("OpenSlide {}: {reason}", library.version),
            "check the file, which may be incomplete",
        )
    };
    let path = c_path(&probe.path).ok_or_else(|| fail("a NUL byte in the path".into()))?;
    let handle = Handle::open(library, &path).map_err(fail)?.ok_or_else(|| {
        if let Err(e) = probe.tiff()
            && probe.is_tiff()
        {
            return e;
        }
        probe.unsupported(
            format!(
                "{}, and OpenSlide {} does not know it",
                what.unwrap_or(UNKNOWN),
                library.version
            ),
            MAIN_FILE,
        )
    })?;
    describe(library, path, handle).map_err(fail)
}

const ZEROS: &str = "zeros where a slide begins, as a copy leaves them that was interrupted";
const DOWNLOAD: &str = "download the slide again if you have the permissions that it needs";
const ITSELF: &str = "name the slide file itself";
/// How the text files begin that name a Hamamatsu slide.
const VIRTUAL: [&[u8]; 2] =
    [b"[Virtual Microscope Specimen]", b"[Uncompressed Virtual Microscope Specimen]"];

/// What a file is that no slide format begins like, and what helps.
fn not_a_slide(probe: &Probe) -> Option<(&'static str, &'static str)> {
    let start = probe.start(signature::START).ok()?;
    // DICOM begins with 128 of them.
    if start.get(..132).is_some_and(|s| s.iter().all(|b| *b == 0)) {
        return Some((ZEROS, "copy it again from its source"));
    }
    if let Some(Signature { what, kind }) = signature(&start) {
        let remedy = match kind {
            Kind::LfsPointer => "fetch the file with `git lfs pull`",
            Kind::Page => DOWNLOAD,
            Kind::Archive | Kind::Gzip | Kind::Zstandard | Kind::Bzip2 | Kind::Xz => {
                "unpack it and name the slide inside"
            }
            Kind::Picture => "save it as PNG or TIFF",
            // Sakura keeps slides in one.
            Kind::Database => return None,
            Kind::Workbook | Kind::Parquet | Kind::Other => ITSELF,
        };
        return Some((what, remedy));
    }
    let is_main_file = ["vms", "vmu", "mrxs"].iter().any(|suffix| probe.is_named(suffix))
        || VIRTUAL.iter().any(|head| start.starts_with(head));
    (is_text(&start) && !is_main_file)
        .then_some(("a text file, such as an error message of a server", ITSELF))
}

/// Whether the first bytes of a file are text: UTF-8 without control characters, cut anywhere.
fn is_text(start: &[u8]) -> bool {
    let Some(chunk) = start.utf8_chunks().next() else { return false };
    // The last character may be cut.
    let is_whole = start.len() - chunk.valid().len() < 4;
    is_whole
        && !chunk.valid().is_empty()
        && chunk.valid().chars().all(|c| c.is_ascii_whitespace() || !c.is_control())
}

/// What a file is that no reader of this crate takes and OpenSlide may; `None` for one that it does not know, either.
fn by_openslide(probe: &Probe) -> Option<&'static str> {
    let start = probe.start(132).unwrap_or_default();
    let named = |suffix: &str| probe.is_named(suffix);
    match super::generic_tiff::vendor(probe) {
        Some("hamamatsu") => Some("a Hamamatsu NDPI"),
        Some("leica") => Some("a Leica SCN"),
        Some("ventana") => Some("a Ventana slide"),
        Some("philips") => Some("a Philips TIFF"),
        _ if named("mrxs") => Some("a MIRAX slide (MRXS)"),
        _ if named("ndpi") => Some("a Hamamatsu NDPI"),
        _ if probe.is_tiff() => Some("a TIFF of another vendor"),
        _ if start.get(128..) == Some(b"DICM") => Some("a DICOM file"),
        _ if start.starts_with(b"ZISRAWFILE") => Some("a Zeiss CZI"),
        _ if start.starts_with(b"SQLite format 3\0") => Some("a Sakura slide or another database"),
        _ if named("vms") || named("vmu") || VIRTUAL.iter().any(|head| start.starts_with(head)) => {
            Some("a Hamamatsu VMS or VMU")
        }
        _ if ["bif", "czi", "scn", "svslide"].iter().any(|suffix| named(suffix)) => {
            Some("a slide by its name")
        }
        _ => None,
    }
}

#[cfg(unix)]
fn c_path(path: &Path) -> Option<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).ok()
}

#[cfg(not(unix))]
fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.to_str()?).ok()
}

fn describe(library: &'static Library, path: CString, handle: Handle) -> Result<Opened, String> {
    let raw = handle.raw.as_ptr();
    // SAFETY: a live handle; name arrays are NULL-terminated and live as long as it does.
    let properties: BTreeMap<String, String> = unsafe {
        library::names((library.property_names)(raw))
            .into_iter()
            .filter_map(|n| {
                let value = library::text((library.property_value)(
                    raw,
                    CString::new(n.as_str()).ok()?.as_ptr(),
                ))?;
                Some((n, value))
            })
            .collect()
    };
    // SAFETY: a live handle.
    let count = unsafe { (library.level_count)(raw) };
    let (mut levels, mut factors): (Vec<Level>, Vec<f64>) = (Vec::new(), Vec::new());
    for i in 0..count {
        let (mut w, mut h) = (0i64, 0i64);
        // SAFETY: a live handle and two numbers to write to.
        let factor = unsafe {
            (library.level_dimensions)(raw, i, &mut w, &mut h);
            (library.level_downsample)(raw, i)
        };
        if w <= 0 || h <= 0 || !factor.is_finite() || factor < 0.99 {
            return Err(format!("level {i} has {w} x {h} pixels at downsample {factor}"));
        }
        factors.push(factor);
        levels.push(Level {
            width: w as u64,
            height: h as u64,
            downsample_x: factor,
            downsample_y: factor,
            tile_width: TILE,
            tile_height: TILE,
        });
    }
    let mut associated = Vec::new();
    // SAFETY: as for the properties.
    for name in unsafe { library::names((library.associated_names)(raw)) } {
        let Ok(c) = CString::new(name.as_str()) else { continue };
        let (w, h) = handle.associated_size(&c)?;
        if w > 0 && h > 0 {
            let (width, height) = (w as u64, h as u64);
            associated.push(AssociatedImage { name, width, height, unreadable: None });
        }
    }
    handle.check()?;
    let number = |k: &str| properties.get(k).map(|v| v.trim().parse::<f64>().unwrap_or(f64::NAN));
    let mut claims = Vec::new();
    if let Some(x) = number("openslide.mpp-x") {
        claims.push(Claim::vendor("openslide.mpp-x", x, number("openslide.mpp-y").unwrap_or(x)));
    }
    let whole = |k: &str| properties.get(k).and_then(|v| v.parse::<i64>().ok());
    let bounds = whole("openslide.bounds-x").zip(whole("openslide.bounds-y")).and_then(|(x, y)| {
        let width = u64::try_from(whole("openslide.bounds-width")?).ok()?;
        let height = u64::try_from(whole("openslide.bounds-height")?).ok()?;
        Some(Rect { x, y, width, height })
    });
    let vendor = properties.get("openslide.vendor").cloned().unwrap_or_else(|| "openslide".into());
    let source = OpenSlide {
        library,
        path,
        handle: RwLock::new(Some(handle)),
        levels: levels.clone(),
        factors,
        associated: associated.clone(),
    };
    Ok(Opened { vendor, levels, properties, claims, bounds, associated, source: Box::new(source) })
}

impl OpenSlide {
    /// Runs a read. One bad tile poisons OpenSlide's handle for good, and with it the reads of other
    /// threads: after an error the handle is opened again and the read tried once more, alone.
    fn with<T>(&self, read: impl Fn(&Handle) -> Result<T, String>) -> Result<T, String> {
        if let Some(handle) = &*self.handle.read().map_err(|_| POISONED)?
            && let Ok(done) = read(handle)
        {
            return Ok(done);
        }
        let mut guard = self.handle.write().map_err(|_| POISONED)?;
        self.renew(&mut guard)?;
        let result = guard.as_ref().ok_or_else(|| "no handle".to_string()).and_then(&read);
        if result.is_err() {
            self.renew(&mut guard)?;
        }
        result
    }

    fn renew(&self, slot: &mut Option<Handle>) -> Result<(), String> {
        if slot.as_ref().is_some_and(|h| h.check().is_ok()) {
            return Ok(());
        }
        *slot = None;
        *slot = Handle::open(self.library, &self.path)?;
        slot.as_ref().map(|_| ()).ok_or_else(|| "the file is no longer a slide".to_string())
    }
}

impl Source for OpenSlide {
    fn tile(&self, level: usize, column: u64, row: u64) -> Result<Decoded, Fault> {
        let l = &self.levels[level];
        let (x, y) = (column * u64::from(TILE), row * u64::from(TILE));
        let w = u64::from(TILE).min(l.width - x) as usize;
        let h = u64::from(TILE).min(l.height - y) as usize;
        // The level-0 corner whose position on this level OpenSlide takes as x / factor: rounding
        // leaves a fraction of a level pixel at most.
        let corner = |v: u64| (v as f64 * self.factors[level]).round() as i64;
        let rect = Rect::new(corner(x), corner(y), w, h);
        let tile = self.with(|handle| handle.read(level as i32, rect))?;
        Ok(Decoded { tile: Arc::new(tile), state: TileState::Sound })
    }

    fn working_bytes(&self, _: usize) -> u64 {
        12 * u64::from(TILE) * u64::from(TILE)
    }

    fn associated(&self, index: usize) -> Result<RgbTile, Fault> {
        let a = &self.associated[index];
        let name = CString::new(a.name.as_str()).map_err(|e| e.to_string())?;
        let (w, h) = (a.width as usize, a.height as usize);
        if 4 * w * h > 1 << 30 {
            return Err(format!("{w} x {h} pixels are too many").into());
        }
        let tile = self.with(|handle| {
            // The handle may be newer than the sizes, and the file another one.
            let now = handle.associated_size(&name)?;
            if now != (a.width as i64, a.height as i64) {
                return Err(format!(
                    "it was {w} x {h} pixels and is {} x {} now: the file was replaced",
                    now.0, now.1
                ));
            }
            let mut argb = vec![0u32; w * h];
            // SAFETY: the buffer holds as many pixels as this handle announces for the image.
            unsafe {
                (self.library.read_associated)(
                    handle.raw.as_ptr(),
                    name.as_ptr(),
                    argb.as_mut_ptr(),
                )
            };
            handle.check()?;
            Ok(over_white(&argb, w, h))
        })?;
        Ok(tile)
    }
}

/// No OpenSlide library opens: every place that was looked at, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoOpenSlide(String);

/// Version of the OpenSlide library found at run time.
///
/// # Errors
/// [`NoOpenSlide`].
pub fn openslide_version() -> Result<String, NoOpenSlide> {
    library::find(None).map(|l| l.version.clone()).map_err(NoOpenSlide)
}
