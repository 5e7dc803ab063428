//! Files of annotations as bytes, text and JSON.

use super::error::ImportError;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Reads a whole file as text.
pub(super) fn read_text(file: &Path) -> Result<String, ImportError> {
    let bytes = read_bytes(file)?;
    let text = base::text::utf8(&bytes).map_err(|e| broken(file, e.to_string()))?;
    Ok(text.to_owned())
}

/// Largest annotation file, bytes.
const LARGEST: u64 = 2 << 30;

/// Largest content of a gzipped one, bytes: as of tables. A few of its bytes can be thousands.
const LARGEST_UNPACKED: u64 = base::table::LARGEST;

/// Reads a whole file, unpacked where it is gzipped.
pub(super) fn read_bytes(file: &Path) -> Result<Vec<u8>, ImportError> {
    let read = base::file::read(file, LARGEST);
    let mut bytes = read.map_err(|e| ImportError::Io { file: file.into(), reason: e.source })?;
    if bytes.starts_with(b"PK\x03\x04") {
        return Err(broken(file, "a ZIP archive; unpack it and name the file inside"));
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        flate2::read::MultiGzDecoder::new(&bytes[..])
            .take(LARGEST_UNPACKED + 1)
            .read_to_end(&mut plain)
            .map_err(|e| broken(file, format!("a broken gzip file ({e})")))?;
        if plain.len() as u64 > LARGEST_UNPACKED {
            let mib = LARGEST_UNPACKED >> 20;
            return Err(broken(file, format!("more than {mib} MiB when unpacked")));
        }
        bytes = plain;
    }
    Ok(bytes)
}

/// Parses JSON. `NaN` and `Infinity`, which Python writes although JSON does not allow them, become
/// null: the error then names the record instead of the whole file.
pub(super) fn read_json(file: &Path) -> Result<serde_json::Value, ImportError> {
    let bytes = read_bytes(file)?;
    base::json::value(&bytes)
        .or_else(|e| match without_nan(&bytes) {
            Some(repaired) => base::json::value(&repaired),
            None => Err(e),
        })
        .map_err(|e| broken(file, e.to_string()))
}

fn without_nan(bytes: &[u8]) -> Option<Vec<u8>> {
    const WORDS: [&[u8]; 3] = [b"NaN", b"-Infinity", b"Infinity"];
    let (mut out, mut i, mut text, mut found) = (Vec::with_capacity(bytes.len()), 0, false, false);
    while i < bytes.len() {
        match bytes[i] {
            b'"' => text = !text,
            b'\\' if text && i + 1 < bytes.len() => {
                out.push(bytes[i]);
                i += 1;
            }
            _ if !text => {
                if let Some(word) = WORDS.iter().find(|w| bytes[i..].starts_with(w)) {
                    out.extend_from_slice(b"null");
                    (i, found) = (i + word.len(), true);
                    continue;
                }
            }
            _ => {}
        }
        out.push(bytes[i]);
        i += 1;
    }
    found.then_some(out)
}

/// A format error.
pub(super) fn broken(file: &Path, reason: impl Into<String>) -> ImportError {
    ImportError::Format { file: file.into(), reason: reason.into() }
}

/// The files of one extension in a folder, sorted; or the file itself.
///
/// # Errors
/// When the folder cannot be read or holds none.
pub(super) fn list_files(path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, ImportError> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let entries = base::walk::entries(path)
        .map_err(|e| ImportError::Io { file: e.path, reason: e.source })?;
    let files = entries.into_iter().filter(|p| has_extension(p, extensions));
    let files: Vec<PathBuf> = files.collect();
    if files.is_empty() {
        return Err(broken(
            path,
            format!("the folder holds no .{} file", extensions.join(" or .")),
        ));
    }
    Ok(files)
}

/// How many files of one extension the folders below a folder have, which are not read; results of a slide, which
/// `detect` wrote, are not annotations.
///
/// # Errors
/// When a folder cannot be listed.
pub(super) fn count_below(path: &Path, extensions: &[&str]) -> Result<usize, ImportError> {
    if !path.is_dir() {
        return Ok(0);
    }
    let is_wanted = |p: &Path| {
        let is_hidden = p.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        !is_hidden && !p.join("qupath.geojson").is_file()
    };
    let all = base::walk::files(path, &is_wanted)
        .map_err(|e| ImportError::Io { file: e.path, reason: e.source })?;
    let is_below = |p: &&PathBuf| p.parent() != Some(path) && has_extension(p, extensions);
    Ok(all.iter().filter(is_below).count())
}

/// Whether a file has one of these extensions, `.gz` behind it aside.
fn has_extension(file: &Path, extensions: &[&str]) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    extensions.iter().any(|e| name.ends_with(&format!(".{e}")))
}

/// The image that an annotation file belongs to: its name without the last extension (and without
/// `.gz` behind it). `detect` writes `<slide>/qupath.geojson`, which belongs to the slide.
pub(super) fn annotated_image(file: &Path) -> String {
    let folder = || Some(file.canonicalize().ok()?.parent()?.file_name()?.to_str()?.to_owned());
    let own = stem(file);
    if own == "qupath" { folder().unwrap_or(own) } else { own }
}

/// A file's name without its last extension (and without `.gz` behind it).
pub(super) fn stem(file: &Path) -> String {
    let packed = file.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    let plain = if packed { file.with_extension("") } else { file.to_path_buf() };
    plain.file_stem().map_or_else(|| "image".into(), |s| s.to_string_lossy().into_owned())
}
