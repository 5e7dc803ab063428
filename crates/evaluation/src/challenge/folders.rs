//! The platform's folders and files.

use super::error::ChallengeError;
use base::file::ReadError;
use serde::Deserialize;
use std::path::{Component, Path, PathBuf};

/// One entry of `inputs.json`, as far as it is needed.
#[derive(Deserialize)]
struct Entry {
    interface: Interface,
}

#[derive(Deserialize)]
struct Interface {
    slug: String,
    relative_path: PathBuf,
}

/// The one image of a job: in the folder that `inputs.json` names for this input, or, without that
/// list, where the platform puts it.
pub(super) fn image(input: &Path, (slug, usual): (&str, &str)) -> Result<PathBuf, ChallengeError> {
    let list = input.join("inputs.json");
    let folder = match base::file::read_whole(&list) {
        Ok(text) => input.join(named(&text, slug).map_err(|reason| {
            let path = list.clone();
            ChallengeError::Inputs { path, reason }
        })?),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => input.join(usual),
        Err(source) => return Err(ChallengeError::Folder { path: list, source }),
    };
    let mut images = entries(&folder)?;
    images.retain(|path| {
        let suffix = path.extension().map(|e| e.to_ascii_lowercase());
        path.is_file() && suffix.is_some_and(|s| s == "tif" || s == "tiff")
    });
    match images.len() {
        1 => Ok(images.remove(0)),
        found => Err(ChallengeError::Images { path: folder, found }),
    }
}

/// The folder of an input in the list.
fn named(text: &[u8], slug: &str) -> Result<PathBuf, String> {
    let all: Vec<Entry> = base::json::parse(text)
        .map_err(|e| format!("no list of inputs as the platform writes it: {e}"))?;
    let found = all.iter().find(|e| e.interface.slug == slug).ok_or_else(|| {
        let there: Vec<_> = all.iter().map(|e| e.interface.slug.as_str()).collect();
        format!("no input `{slug}`, only [{}]; is this the other track?", there.join(", "))
    })?;
    let path = &found.interface.relative_path;
    if path.components().all(|c| matches!(c, Component::Normal(_))) {
        Ok(path.clone())
    } else {
        Err(format!("the path `{}` leads out of the input folder", path.display()))
    }
}

/// The package in the folder where the platform unpacks a model: the folder itself, or the only folder
/// in it, as an archive of a package gives it. `None` if the folder is empty.
pub(super) fn package(mounted: &Path) -> Result<Option<PathBuf>, ChallengeError> {
    let is_package = |folder: &Path| folder.join("card.toml").is_file();
    if is_package(mounted) {
        return Ok(Some(mounted.into()));
    }
    if !mounted.is_dir() {
        return Ok(None);
    }
    let inside = entries(mounted)?;
    match inside.as_slice() {
        [] => Ok(None),
        [one] if is_package(one) => Ok(Some(one.clone())),
        _ => Err(ChallengeError::NoPackage { path: mounted.into() }),
    }
}

/// The entries of a folder, sorted, without hidden files.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ChallengeError> {
    let fail = |e: ReadError| ChallengeError::Folder { path: e.path, source: e.source };
    let mut all = base::walk::entries(folder).map_err(fail)?;
    let hidden = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
    all.retain(|p| !hidden(p));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_there_or_in_the_only_folder_or_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("model");
        assert_eq!(package(&at).unwrap(), None, "absent");
        std::fs::create_dir(&at).unwrap();
        std::fs::write(at.join(".keep"), "").unwrap();
        assert_eq!(package(&at).unwrap(), None, "empty");
        let inside = at.join("mine");
        std::fs::create_dir(&inside).unwrap();
        assert!(matches!(package(&at), Err(ChallengeError::NoPackage { .. })));
        std::fs::write(inside.join("card.toml"), "").unwrap();
        assert_eq!(package(&at).unwrap(), Some(inside));
        std::fs::write(at.join("card.toml"), "").unwrap();
        assert_eq!(package(&at).unwrap(), Some(at));
    }

    #[test]
    fn the_list_of_inputs_leads_nowhere_else() {
        let list = |path: &str| {
            format!(
                r#"[{{"image":{{"name":"a"}},"interface":{{"slug":"s","relative_path":"{path}"}}}}]"#
            )
        };
        assert_eq!(named(list("images/x").as_bytes(), "s").unwrap(), Path::new("images/x"));
        for outside in ["../x", "/etc", "images/../../x"] {
            assert!(named(list(outside).as_bytes(), "s").unwrap_err().contains("leads out"));
        }
        assert!(named(list("x").as_bytes(), "t").unwrap_err().contains("only [s]"));
        assert!(named(b"{}", "s").unwrap_err().contains("no list of inputs"));
    }
}
