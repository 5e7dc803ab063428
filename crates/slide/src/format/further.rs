//! The other files of a slide whose pixels are in several.

use super::dicom::{dicom_part, dicom_series_files};
use std::path::{Path, PathBuf};

/// Largest list of files that is read, bytes.
const LARGEST: u64 = 1 << 20;
/// What keys that name files begin with in Hamamatsu's lists, lower case.
const KEYS: [&str; 3] = ["imagefile", "mapfile", "optimisationfile"];

/// The other files of a slide on this machine, sorted, where its format keeps pixels in several: those of a DICOM
/// series, the folder of a MIRAX slide, and what Hamamatsu's VMS and VMU name. Those that are missing are left out.
/// `None` of a slide in one file.
#[must_use]
pub fn further_files(path: &Path) -> Option<Vec<PathBuf>> {
    if !path.is_file() {
        return None;
    }
    let suffix = path.extension().unwrap_or_default().to_ascii_lowercase();
    let mut files = match suffix.to_str() {
        Some("mrxs") => of_mirax(path),
        Some("vms" | "vmu") => of_hamamatsu(path),
        _ => return dicom_part(path).map(|_| dicom_series_files(path)),
    };
    files.retain(|f| f.is_file());
    files.sort();
    files.dedup();
    Some(files)
}

/// What OpenSlide reads of the folder next to a MIRAX slide; systems put files of their own into folders.
fn of_mirax(path: &Path) -> Vec<PathBuf> {
    let mut files = base::walk::entries(&path.with_extension("")).unwrap_or_default();
    files.retain(|f| {
        let name = f.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        name.ends_with(".dat") || name == "slidedat.ini"
    });
    files
}

fn of_hamamatsu(path: &Path) -> Vec<PathBuf> {
    let bytes = base::file::read(path, LARGEST).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let file = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let key = key.trim().to_lowercase();
        let name = Some(value.trim()).filter(|v| !v.is_empty());
        KEYS.iter().any(|k| key.starts_with(k)).then(|| Some(path.with_file_name(name?)))?
    };
    text.lines().filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_hold_pixels_belong_to_their_slide_and_those_of_the_system_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let of = |slide: &str| {
            let name = |f: PathBuf| f.strip_prefix(dir.path()).unwrap().display().to_string();
            let files = further_files(&dir.path().join(slide))?;
            Some(files.into_iter().map(name).collect::<Vec<_>>().join(" "))
        };
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for name in ["a.b.MRXS", "a.b/Slidedat.ini", "a.b/Data0001.dat", "a.b/Index.dat"] {
            put(name, "x");
        }
        put("a.b/Thumbs.db", "x");
        put("a.b/desktop.ini", "x");
        put("alone.mrxs", "x");
        put("one.svs", "x");
        put("m.opt", "x");
        put("0.jpg", "x");
        put("1.jpg", "x");
        let list = "[Virtual Microscope Specimen]\r\nImageFile=0.jpg\r\nImageFile(1,0)= 1.jpg\r\n\
                    ImageFile(0,1)=gone.jpg\r\nMapFile=\r\nOptimisationFile=m.opt\r\nCaption=0.jpg\r\n";
        put("h.vms", list);
        assert_eq!(of("a.b.MRXS").unwrap(), "a.b/Data0001.dat a.b/Index.dat a.b/Slidedat.ini");
        assert_eq!(of("alone.mrxs").unwrap(), "");
        assert_eq!(of("h.vms").unwrap(), "0.jpg 1.jpg m.opt");
        assert_eq!((of("one.svs"), of("none.mrxs")), (None, None));
    }
}
