//! A folder of H&E images without labels: stain variety and tissue without figures, in which an
//! unlabelled figure may occur.

use super::{Imported, Options, Wanted, probe_all, some};
use crate::annotations::Problem;
use crate::dataset::{Part, RegionsError, Result};
use crate::image_index::files_below;
use std::path::Path;

const IMAGES: [&str; 6] = ["png", "jpg", "jpeg", "tif", "tiff", "svs"];

/// Reads every image below the folder, in name order. Folders whose names speak of masks are passed
/// over and counted. Of files named by a TCGA barcode, patient and slide are known; otherwise every
/// image is a slide of its own.
///
/// # Errors
/// [`RegionsError`]: no image, an unreadable one, or one without um/px.
pub fn he_folder(dir: &Path, o: &Options) -> Result<Imported> {
    let files = files_below(dir)?;
    let mut left_out = vec![];
    let mut masks = 0;
    let mut wanted = vec![];
    for file in files {
        let kind = file.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if !IMAGES.contains(&kind.as_str()) {
            continue;
        }
        let below = file.strip_prefix(dir).unwrap_or(&file);
        let folder = below.parent().unwrap_or(Path::new("")).to_string_lossy().to_lowercase();
        if folder.contains("mask") {
            masks += 1;
            continue;
        }
        let name = below.to_string_lossy().replace('\\', "/");
        let given = o.given.lookup(&[&name]);
        wanted.push(Wanted { file: file.clone(), given, what: name });
    }
    if masks > 0 {
        left_out.push(Problem {
            record: format!("{masks} images"),
            reason: "they are in a folder of masks".into(),
        });
    }
    let source = match (&o.source, dir.file_name()) {
        (Some(s), _) => s.clone(),
        (None, Some(name)) => name.to_string_lossy().into_owned(),
        (None, None) => return Err(RegionsError::file(dir, "the folder has no name")),
    };
    let mut dataset = o.builder();
    for (probe, name) in probe_all(wanted, o.lenient, &mut left_out)? {
        let stem = Path::new(&name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (patient, slide) = tcga(&stem).unwrap_or((None, format!("{source}/{name}")));
        let mut image = probe.image(&name, slide, &source);
        image.patient = patient;
        let kept = o.calibration.iter().any(|c| stem.starts_with(c.as_str()));
        image.part = if kept { Part::Calibration } else { o.part };
        image.exhaustive = o.is_exhaustive(false);
        dataset.push(image);
    }
    some(dataset.images(), dir)?;
    if !o.calibration.is_empty() && dataset.images().iter().all(|i| i.part != Part::Calibration) {
        return Err(RegionsError::file(dir, "holds no image of a name that is for calibration"));
    }
    dataset.note("format", "he-folder");
    Ok(Imported { dataset, left_out, unread_columns: None })
}

/// Patient (`TCGA-XX-XXXX`) and slide of a file named by a TCGA barcode.
fn tcga(stem: &str) -> Option<(Option<String>, String)> {
    let upper = stem.to_uppercase();
    let mut parts = upper.split('-');
    let barcode = parts.next() == Some("TCGA")
        && parts.next().is_some_and(|p| p.len() == 2)
        && parts.next().is_some_and(|p| p.len() >= 4);
    let patient = barcode.then(|| upper.get(..12)).flatten()?;
    // The slide is the barcode up to the first dot or underscore.
    let slide = upper.split(['.', '_']).next().unwrap_or(&upper);
    Some((Some(patient.to_owned()), slide.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::tcga;

    #[test]
    fn barcodes_name_patient_and_slide() {
        let (patient, slide) = tcga("TCGA-21-5784-01Z-00-DX1").unwrap();
        assert_eq!(patient.as_deref(), Some("TCGA-21-5784"));
        assert_eq!(slide, "TCGA-21-5784-01Z-00-DX1");
        assert_eq!(
            tcga("tcga-06-0174-01z-00-dx3.23b6e12e_1").unwrap().1,
            "TCGA-06-0174-01Z-00-DX3"
        );
        assert!(tcga("train_1_2").is_none() && tcga("TCGA").is_none());
    }
}
