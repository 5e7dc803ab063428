//! Finding and binding `libopenslide`.

use libloading::Library as Dynamic;
use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

type Slide = *mut c_void;

/// The functions used, and the library that holds them.
pub(super) struct Library {
    pub(super) version: String,
    pub(super) open: unsafe extern "C" fn(*const c_char) -> Slide,
    pub(super) close: unsafe extern "C" fn(Slide),
    pub(super) get_error: unsafe extern "C" fn(Slide) -> *const c_char,
    pub(super) level_count: unsafe extern "C" fn(Slide) -> i32,
    pub(super) level_dimensions: unsafe extern "C" fn(Slide, i32, *mut i64, *mut i64),
    pub(super) level_downsample: unsafe extern "C" fn(Slide, i32) -> f64,
    pub(super) read_region: unsafe extern "C" fn(Slide, *mut u32, i64, i64, i32, i64, i64),
    pub(super) property_names: unsafe extern "C" fn(Slide) -> *const *const c_char,
    pub(super) property_value: unsafe extern "C" fn(Slide, *const c_char) -> *const c_char,
    pub(super) associated_names: unsafe extern "C" fn(Slide) -> *const *const c_char,
    pub(super) associated_dimensions:
        unsafe extern "C" fn(Slide, *const c_char, *mut i64, *mut i64),
    pub(super) read_associated: unsafe extern "C" fn(Slide, *const c_char, *mut u32),
    _dynamic: Dynamic,
}

/// A C string, unless null.
///
/// # Safety
/// `p` is null or a NUL-terminated string that lives during the call.
pub(super) unsafe fn text(p: *const c_char) -> Option<String> {
    // SAFETY: by contract.
    (!p.is_null()).then(|| unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned())
}

/// The strings of a NULL-terminated array.
///
/// # Safety
/// `p` is null or such an array, alive during the call.
pub(super) unsafe fn names(mut p: *const *const c_char) -> Vec<String> {
    let mut all = Vec::new();
    if p.is_null() {
        return all;
    }
    // SAFETY: by contract; stops at the NULL.
    unsafe {
        while let Some(s) = text(*p) {
            all.push(s);
            p = p.add(1);
        }
    }
    all
}

/// The library at `given`, or the first one that opens of the usual places. Opened once per path and
/// kept for the life of the process. The error lists what was tried.
pub(super) fn find(given: Option<&Path>) -> Result<&'static Library, String> {
    static OPENED: Mutex<Vec<(PathBuf, &'static Library)>> = Mutex::new(Vec::new());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let candidates = given.map_or_else(places, |p| vec![p.to_path_buf()]);
    let mut tried = Vec::new();
    for path in candidates {
        if let Some((_, library)) = opened.iter().find(|(p, _)| *p == path) {
            return Ok(library);
        }
        // A bare name is for the loader to search; a path must exist.
        if path.components().count() > 1 && !path.is_file() {
            if given.is_some() {
                return Err(format!("{} is not a file", path.display()));
            }
            continue;
        }
        match bind(&path) {
            Ok(library) => {
                let library: &'static Library = Box::leak(Box::new(library));
                opened.push((path, library));
                return Ok(library);
            }
            Err(e) => tried.push(format!("{}: {e}", path.display())),
        }
    }
    Err(if tried.is_empty() { "no library found".into() } else { tried.join("; ") })
}

const FILE: &str = if cfg!(target_os = "macos") {
    "libopenslide.1.dylib"
} else if cfg!(windows) {
    "libopenslide-1.dll"
} else {
    "libopenslide.so.1"
};

/// Where to look: `MITHRAS_OPENSLIDE`, the loader's own search, the active virtual environment (never
/// one that merely is at or above the working folder), system-wide Python.
fn places() -> Vec<PathBuf> {
    let mut all = Vec::new();
    if let Some(p) = std::env::var_os("MITHRAS_OPENSLIDE").filter(|p| !p.is_empty()) {
        let p = PathBuf::from(p);
        // The user's choice is alone.
        return vec![if p.is_dir() { p.join(FILE) } else { p }];
    }
    all.push(PathBuf::from(FILE));
    let mut roots: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .filter_map(|k| std::env::var_os(k).filter(|v| !v.is_empty()).map(PathBuf::from))
        .collect();
    if let Some(home) = std::env::var_os("HOME") {
        roots.push(Path::new(&home).join(".local"));
    }
    roots.extend(["/usr/local", "/usr", "/opt/homebrew"].map(PathBuf::from));
    for root in roots {
        all.push(root.join("lib").join(FILE));
        all.push(root.join("Lib/site-packages/openslide_bin").join(FILE));
        let Ok(entries) = std::fs::read_dir(root.join("lib")) else { continue };
        let mut pythons: Vec<PathBuf> = entries
            .filter_map(|e| Some(e.ok()?.path()))
            .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python3")))
            .collect();
        pythons.sort();
        for python in pythons.into_iter().rev() {
            for packages in ["site-packages", "dist-packages"] {
                all.push(python.join(packages).join("openslide_bin").join(FILE));
            }
        }
    }
    all
}

fn bind(path: &Path) -> Result<Library, String> {
    // SAFETY: OpenSlide's initialisers have no preconditions; the user chose the search path.
    let dynamic = unsafe { Dynamic::new(path) }.map_err(|e| e.to_string())?;
    macro_rules! function {
        ($name:literal) => {
            // SAFETY: the types are those of openslide.h of version 4 (unchanged since 3.4).
            *unsafe { dynamic.get(concat!($name, "\0").as_bytes()) }.map_err(|e| e.to_string())?
        };
    }
    let version: unsafe extern "C" fn() -> *const c_char = function!("openslide_get_version");
    // SAFETY: returns a static string.
    let version = unsafe { text(version()) }.unwrap_or_default();
    if version.split('.').next().and_then(|v| v.parse::<u32>().ok()).is_none_or(|v| v < 4) {
        return Err(format!("version {version}; 4 or newer is needed"));
    }
    Ok(Library {
        version,
        open: function!("openslide_open"),
        close: function!("openslide_close"),
        get_error: function!("openslide_get_error"),
        level_count: function!("openslide_get_level_count"),
        level_dimensions: function!("openslide_get_level_dimensions"),
        level_downsample: function!("openslide_get_level_downsample"),
        read_region: function!("openslide_read_region"),
        property_names: function!("openslide_get_property_names"),
        property_value: function!("openslide_get_property_value"),
        associated_names: function!("openslide_get_associated_image_names"),
        associated_dimensions: function!("openslide_get_associated_image_dimensions"),
        read_associated: function!("openslide_read_associated_image"),
        _dynamic: dynamic,
    })
}
