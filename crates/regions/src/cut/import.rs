//! Crops from a file of annotations: what was found and, where images are given, what was cut.

use super::{CutOptions, CutReport, cut};
use crate::annotations::{ImportError, ImportOptions, Importer, LabelSource, Summary};
use base::digest::sha256_file;
use base::file::ReadError;
use base::text::Many;
use crops::error::CorpusError;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

/// What is read, and where it goes.
#[derive(Clone, Copy)]
pub struct CropsPlan<'a> {
    /// How the file is read.
    pub format: &'static Importer,
    /// Annotations.
    pub file: &'a Path,
    /// What the user decided.
    pub options: &'a ImportOptions,
    /// The mapping as it was typed, for the corpus's notes.
    pub map: &'a [String],
    /// Folder for `import.json`, `annotations.csv` and the crops; nothing is written without it.
    pub out: Option<&'a Path>,
    /// Folder of images to cut from; the annotations are counted without it.
    pub images: Option<&'a Path>,
}

/// What came of it; `import.json`.
#[derive(Clone, Debug, Serialize)]
pub struct ImportedCrops {
    /// What the file holds.
    #[serde(flatten)]
    pub summary: Summary,
    /// The crops, where they were cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corpus: Option<CutReport>,
}

impl fmt::Display for ImportedCrops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.summary)?;
        self.corpus.iter().try_for_each(|r| write!(f, "{r}"))
    }
}

/// The entry `import` of the corpus's notes.
#[derive(Serialize)]
struct Note<'a> {
    format: &'a str,
    file: Option<Cow<'a, str>>,
    sha256: Option<String>,
    map: &'a [String],
    annotator: Option<&'a str>,
}

impl CropsPlan<'_> {
    /// Reads, cuts and writes.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn run(&self, mut cuts: CutOptions) -> Result<ImportedCrops, ImportError> {
        let annotations = self.format.annotations(self.file, self.options)?;
        let mut done = ImportedCrops { summary: annotations.summary(), corpus: None };
        let Some(out) = self.out else { return Ok(done) };
        let refused = |reason| ImportError::Io { file: out.into(), reason };
        std::fs::create_dir_all(out).map_err(refused)?;
        if let Some(images) = self.images {
            cuts.header.notes.insert("import".into(), self.note()?);
            if done.summary.duplicates > 0 {
                let repeats = Many(done.summary.duplicates, "repeated annotation");
                cuts.header.notes.insert("repeats".into(), format!("{repeats} kept").into());
            }
            let made = cut(&annotations, images, out, &cuts)?;
            let stated = |i: usize| annotations.images[i].units.stated_mpp();
            let mpp = |i: usize| made.mpp.get(&i).copied().or_else(|| stated(i));
            done.summary.close_labels = annotations.close_labels(mpp);
            done.corpus = Some(made);
        }
        let write = |name, bytes: &[u8]| {
            base::file::write(&out.join(name), bytes).map_err(CorpusError::from)
        };
        write("annotations.csv", &annotations.table())?;
        write("import.json", &base::json::pretty(&done))?;
        Ok(done)
    }

    fn note(&self) -> Result<serde_json::Value, ImportError> {
        let digest = || {
            let refused = |e: ReadError| ImportError::Io { file: e.path, reason: e.source };
            sha256_file(self.file).map_err(refused)
        };
        let sha256 = self.file.is_file().then(digest).transpose()?;
        let annotator = match &self.options.labels {
            LabelSource::Agreed => None,
            LabelSource::Annotator(name) => Some(name.as_str()),
        };
        let note = Note {
            format: self.format.name,
            file: self.file.file_name().map(|n| n.to_string_lossy()),
            sha256: sha256.map(|(_, digest)| digest),
            map: self.map,
            annotator,
        };
        let plain = |reason: serde_json::Error| ImportError::Io {
            file: self.file.into(),
            reason: reason.into(),
        };
        serde_json::to_value(note).map_err(plain)
    }
}
