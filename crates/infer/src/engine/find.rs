//! Where ONNX Runtime and its provider plug-ins are looked for. Nothing is executed and nothing
//! is downloaded; only folders are listed.
//!
//! A virtual environment counts where it is active, not where it merely is at or above the working
//! folder: what runs, and with it the last digits of a score, must not depend on where one is, and
//! a folder that came with data must not bring code. [`find_inactive`] shows of such.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Names ONNX Runtime itself.
pub(crate) const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";
/// Names the OpenVINO plug-in.
pub(crate) const PLUGIN_VARIABLE: &str = "MITHRAS_OPENVINO_PLUGIN";
/// What installs ONNX Runtime.
pub(crate) const INSTALL_RUNTIME: &str =
    "pip install onnxruntime, or name the library itself (ORT_DYLIB_PATH)";
/// What installs the OpenVINO provider.
pub(crate) const INSTALL_OPENVINO: &str = "pip install onnxruntime onnxruntime-ep-openvino, or name the plug-in with MITHRAS_OPENVINO_PLUGIN";
/// What installs OpenVINO itself.
pub(crate) const INSTALL_OPENVINO_RUNTIME: &str =
    "pip install openvino, or name libopenvino_c with OPENVINO_C_PATH";
/// Names OpenVINO's C library.
pub(crate) const OPENVINO_VARIABLE: &str = "OPENVINO_C_PATH";
/// What installs ONNX Runtime for NVIDIA GPUs.
pub(crate) const INSTALL_CUDA: &str =
    "pip install onnxruntime-gpu if this machine has an NVIDIA GPU";

/// Below `site-packages`.
const RUNTIME_FOLDER: &str = "onnxruntime/capi";
/// Below `site-packages`.
const OPENVINO_FOLDER: &str = "openvino/libs";

/// A shared library that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its file, as found (not resolved).
    pub path: PathBuf,
    /// Why this place was searched, e.g. `VIRTUAL_ENV`.
    pub found_by: String,
}

/// Every ONNX Runtime in the usual places, the preferred first.
#[must_use]
pub fn find_onnxruntime() -> Vec<Library> {
    let mut found = LibrarySearch::default();
    if let Some(path) = env::var_os(LIBRARY_VARIABLE).map(PathBuf::from) {
        found.file_or_folder(&path, LIBRARY_VARIABLE, is_runtime);
    }
    for (dir, by) in site_packages() {
        found.folder(&dir.join(RUNTIME_FOLDER), &by, is_runtime);
    }
    for (dir, by) in system_folders() {
        found.folder(&dir, &by, is_runtime);
    }
    found.libraries
}

/// Every OpenVINO provider plug-in in the usual places, the preferred first. `near` is the ONNX
/// Runtime in use: a plug-in in its own Python environment goes first.
#[must_use]
pub fn find_openvino_plugin(near: Option<&Path>) -> Vec<Library> {
    let mut found = LibrarySearch::default();
    if let Some(path) = env::var_os(PLUGIN_VARIABLE).map(PathBuf::from) {
        found.file_or_folder(&path, PLUGIN_VARIABLE, is_plugin);
    }
    // <site-packages>/onnxruntime/capi/libonnxruntime.so
    let adjacent =
        near.and_then(|p| p.ancestors().nth(3)).map(|d| (d.to_path_buf(), "nearby".into()));
    for (dir, by) in adjacent.into_iter().chain(site_packages()) {
        found.folder(&dir.join("onnxruntime_ep_openvino"), &by, is_plugin);
    }
    for (dir, by) in system_folders() {
        found.folder(&dir, &by, is_plugin);
    }
    found.libraries
}

/// Every OpenVINO C library in the usual places, the preferred first.
#[must_use]
pub fn find_openvino() -> Vec<Library> {
    let mut found = LibrarySearch::default();
    if let Some(path) = env::var_os(OPENVINO_VARIABLE).map(PathBuf::from) {
        found.file_or_folder(&path, OPENVINO_VARIABLE, is_openvino);
    }
    if let Some(dir) = env::var_os("INTEL_OPENVINO_DIR").map(PathBuf::from) {
        found.folder(&dir.join("runtime/lib/intel64"), "INTEL_OPENVINO_DIR", is_openvino);
    }
    for (dir, by) in site_packages() {
        found.folder(&dir.join(OPENVINO_FOLDER), &by, is_openvino);
    }
    for (dir, by) in system_folders() {
        found.folder(&dir, &by, is_openvino);
    }
    found.libraries
}

/// Engines in virtual environments at or above the working folder that nobody activated: none of
/// them is ever taken, but a user may want to know.
#[must_use]
pub fn find_inactive() -> Vec<Library> {
    let mut found = LibrarySearch::default();
    let here = env::current_dir().unwrap_or_default();
    let venvs = here.ancestors().flat_map(|d| [d.join(".venv"), d.join("venv")]);
    // pyvenv.cfg marks a real environment, so that a folder merely called `venv` is passed by.
    for venv in venvs.filter(|d| d.join("pyvenv.cfg").is_file()) {
        let by = venv.display().to_string();
        for dir in find_site_packages(&venv) {
            found.folder(&dir.join(RUNTIME_FOLDER), &by, is_runtime);
            found.folder(&dir.join(OPENVINO_FOLDER), &by, is_openvino);
        }
    }
    let active = [find_onnxruntime(), find_openvino()].concat();
    let resolved = |l: &Library| l.path.canonicalize().ok();
    found.libraries.retain(|l| !active.iter().any(|a| resolved(a) == resolved(l)));
    found.libraries
}

/// Whether the machine shows an NVIDIA device to this process.
pub(crate) fn nvidia_gpu() -> bool {
    Path::new("/dev/nvidia0").exists() || Path::new("/proc/driver/nvidia/version").exists()
}

/// `libonnxruntime.so`, `libonnxruntime.so.1.31.1`, `libonnxruntime.1.31.1.dylib`, `onnxruntime.dll`.
fn is_runtime(name: &str) -> bool {
    versioned(name, "onnxruntime")
}

fn is_plugin(name: &str) -> bool {
    versioned(name, "onnxruntime_providers_openvino_plugin")
}

fn is_openvino(name: &str) -> bool {
    versioned(name, "openvino_c")
}

fn versioned(name: &str, stem: &str) -> bool {
    if cfg!(windows) {
        return name.eq_ignore_ascii_case(&format!("{stem}.dll"));
    }
    let Some(rest) = name.strip_prefix("lib").and_then(|n| n.strip_prefix(stem)) else {
        return false;
    };
    let version = if cfg!(target_os = "macos") {
        rest.strip_suffix(".dylib")
    } else {
        rest.strip_prefix(".so")
    };
    version.is_some_and(|v| v.bytes().all(|b| b == b'.' || b.is_ascii_digit()))
}

#[derive(Default)]
struct LibrarySearch {
    libraries: Vec<Library>,
    resolved: HashSet<PathBuf>,
}

impl LibrarySearch {
    fn add(&mut self, path: PathBuf, by: &str) {
        if let Ok(resolved) = path.canonicalize()
            && resolved.is_file()
            && self.resolved.insert(resolved)
        {
            self.libraries.push(Library { path, found_by: by.into() });
        }
    }

    fn folder(&mut self, dir: &Path, by: &str, matches: fn(&str) -> bool) {
        let mut names = list(dir);
        names.retain(|n| matches(n));
        // The plain name first, else the highest version.
        names.sort_by_key(|n| (n.len() != n.find(".so").map_or(n.len(), |i| i + 3), n.clone()));
        if let Some(first) = names.first().filter(|n| names.len() == 1 || n.ends_with(".so")) {
            self.add(dir.join(first), by);
        } else if let Some(last) = names.last() {
            self.add(dir.join(last), by);
        }
    }

    fn file_or_folder(&mut self, path: &Path, by: &str, matches: fn(&str) -> bool) {
        if path.is_dir() { self.folder(path, by, matches) } else { self.add(path.into(), by) }
    }
}

fn list(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// `site-packages` folders: the active environment, the Python on `PATH`, the user's own and the
/// system's.
fn site_packages() -> Vec<(PathBuf, String)> {
    let mut prefixes: Vec<(PathBuf, String)> = Vec::new();
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if let Some(dir) = env::var_os(variable).filter(|dir| !dir.is_empty()) {
            prefixes.push((dir.into(), variable.into()));
        }
    }
    for dir in env::var_os("PATH").iter().flat_map(env::split_paths) {
        if dir.file_name().is_some_and(|n| n == "bin")
            && dir.join("python3").exists()
            && let Some(prefix) = dir.parent()
        {
            prefixes.push((prefix.into(), "python3 on PATH".into()));
        }
    }
    if let Some(home) = env::var_os("HOME") {
        prefixes.push((PathBuf::from(home).join(".local"), "user packages".into()));
    }
    prefixes.push(("/usr/local".into(), "system Python".into()));
    prefixes.push(("/usr".into(), "system Python".into()));
    let folders = |(prefix, by): (PathBuf, String)| {
        find_site_packages(&prefix).into_iter().map(move |dir| (dir, by.clone()))
    };
    prefixes.into_iter().flat_map(folders).collect()
}

/// The `site-packages` of a Python installation or environment, that of the newest version first.
fn find_site_packages(prefix: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for lib in [prefix.join("lib"), prefix.join("lib64")] {
        for python in list(&lib).iter().rev().filter(|n| n.starts_with("python3")) {
            for packages in ["site-packages", "dist-packages"] {
                all.push(lib.join(python).join(packages));
            }
        }
    }
    all.push(prefix.join("Lib").join("site-packages"));
    all.retain(|dir| dir.is_dir());
    all
}

fn system_folders() -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    if let Some(dir) = env::current_exe().ok().as_deref().and_then(Path::parent) {
        all.push((dir.to_path_buf(), "next to the program".to_string()));
        all.push((dir.join("../lib"), "next to the program".to_string()));
    }
    for variable in ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"] {
        for dir in env::var_os(variable).iter().flat_map(env::split_paths) {
            all.push((dir, variable.into()));
        }
    }
    let system = [
        "/usr/local/lib",
        "/usr/lib",
        "/usr/lib64",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/opt/onnxruntime/lib",
        "/opt/homebrew/lib",
    ];
    all.extend(system.map(|d| (d.into(), "system".into())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn only_the_library_itself() {
        for good in ["libonnxruntime.so", "libonnxruntime.so.1", "libonnxruntime.so.1.31.1"] {
            assert!(is_runtime(good), "{good}");
        }
        for bad in [
            "libonnxruntime_providers_shared.so",
            "libonnxruntime.so.1.31.1.bak",
            "libonnxruntime.sox",
            "onnxruntime.so",
        ] {
            assert!(!is_runtime(bad), "{bad}");
        }
        assert!(is_plugin("libonnxruntime_providers_openvino_plugin.so.1"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn plain_name_then_highest_version() {
        let dir = tempfile::tempdir().unwrap();
        let touch = |n: &str| fs::write(dir.path().join(n), n).unwrap();
        let pick = || {
            let mut found = LibrarySearch::default();
            found.folder(dir.path(), "test", is_runtime);
            found
                .libraries
                .into_iter()
                .map(|l| l.path.file_name().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert!(pick().is_empty());
        touch("libonnxruntime.so.1.24.0");
        touch("libonnxruntime.so.1.31.1");
        assert_eq!(pick(), ["libonnxruntime.so.1.31.1"]);
        touch("libonnxruntime.so");
        assert_eq!(pick(), ["libonnxruntime.so"]);
    }
}
