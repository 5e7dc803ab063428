//! Where the things that steps refer to are on this machine.

use super::digest;
use super::state::{Record, StepState};
use crate::dataset::{self, DataSet};
use crate::embedded;
use crate::error::{ExperimentError, Result};
use crate::graph::Step;
use crate::spec::{self, EncoderRow, Reference, references};
use base::digest::sha256;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Tumour filters below the folder of encoders: packages that `encoders convert` makes of published files.
const FILTERS: [(&str, &str); 2] = [
    ("filters/impash", "https://github.com/trinhvg/IMPash, made a package (docs/corpus.md)"),
    ("filters/conch", "https://huggingface.co/MahmoodLab/CONCH, made a package (docs/corpus.md)"),
];

/// Whether a command is given the whole data folder.
fn reads_all_data(step: &Step) -> bool {
    step.words.iter().any(|w| w.contains("{data}"))
}

/// Places of a run.
pub struct Places {
    out: PathBuf,
    data: Option<PathBuf>,
    encoders: Option<PathBuf>,
    sets: Vec<DataSet>,
    rows: Vec<EncoderRow>,
    settings: BTreeMap<&'static str, String>,
    /// Digests of what somebody brought; it does not change while a run lasts.
    inputs: Mutex<BTreeMap<PathBuf, String>>,
}

impl Places {
    /// The places that options name. Folders are made absolute, because steps may run elsewhere.
    ///
    /// # Errors
    /// A file of this program that does not follow its form.
    pub fn new(options: &super::Options) -> Result<Self> {
        let mut places =
            Self::at(&options.out, options.data.as_deref(), options.encoders.as_deref())?;
        places.settings.insert("threads", options.threads.to_string());
        places.settings.insert("device", options.device.clone());
        Ok(places)
    }

    /// Places of a run in `out` for which no step is to run.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn at(out: &Path, data: Option<&Path>, encoders: Option<&Path>) -> Result<Self> {
        let whole = |p: &Path| std::path::absolute(p).unwrap_or_else(|_| p.to_owned());
        Ok(Self {
            out: whole(out),
            data: data.map(whole),
            encoders: encoders.map(whole),
            sets: dataset::all()?,
            rows: spec::encoders()?,
            settings: BTreeMap::new(),
            inputs: Mutex::default(),
        })
    }

    /// The result of a step that is done, and whose command, files and all that it reads are as they were; `results`
    /// has those of earlier steps.
    #[must_use]
    pub fn current(&self, step: &Step, results: &BTreeMap<String, String>) -> Option<String> {
        let record = Record::read(&self.out, &step.name)?;
        let StepState::Done { result } = record.state else { return None };
        let same = step.needs.iter().all(|n| results.contains_key(n))
            && self.key(step, results).is_ok_and(|k| k == record.key)
            && digest::of_result(&self.step(&step.name), &step.makes).is_ok_and(|d| d == result);
        same.then_some(result)
    }

    /// Whether the folders that a step reads from are known and exist, so that a change in them can be seen.
    #[must_use]
    pub fn has_folders(&self, step: &Step) -> bool {
        let reads_data = !step.data.is_empty() || !step.files.is_empty() || reads_all_data(step);
        let is_there = |folder: &Option<PathBuf>| folder.as_ref().is_some_and(|f| f.is_dir());
        (!reads_data || is_there(&self.data))
            && (step.weights.is_empty() || is_there(&self.encoders))
    }

    /// Folder of a step.
    #[must_use]
    pub fn step(&self, name: &str) -> PathBuf {
        self.out.join("steps").join(name)
    }

    /// The log of a step's process.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.out.join("logs").join(format!("{name}.log"))
    }

    /// The run folder.
    #[must_use]
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// Why a step cannot begin, whatever else is done: data or weights that are missing.
    #[must_use]
    pub fn lacks(&self, step: &Step) -> Vec<String> {
        let mut reasons = vec![];
        for (set, piece) in &step.data {
            if self.piece(set, piece).is_none() {
                let page = self.sets.iter().find(|s| s.name == *set);
                let (page, at) = page.map_or((String::new(), String::new()), |s| {
                    let at = s.piece(piece).map(|p| p.at.join(" or ")).unwrap_or_default();
                    (format!("{} ({})", s.page, s.access), at)
                });
                reasons.push(format!(
                    "data set {set} is missing: put its {piece} at {at} below the data folder if you have it; {page}"
                ));
            }
        }
        for file in &step.weights {
            if self.weights(file).is_none() {
                let row = self.rows.iter().find(|r| r.weights.as_deref() == Some(file));
                let filter = FILTERS.iter().find(|(name, _)| name == file);
                let page = row.map(|r| r.page.as_str()).or(filter.map(|(_, page)| *page));
                let page = page.unwrap_or("docs/encoders.md lists sources");
                reasons.push(format!(
                    "weights {file} are missing: put the file into the folder of encoders if you have it; {page}"
                ));
            }
        }
        reasons
    }

    fn piece(&self, set: &str, piece: &str) -> Option<PathBuf> {
        let set = self.sets.iter().find(|s| s.name == set)?;
        set.piece(piece)?.find(self.data.as_deref()?)
    }

    fn weights(&self, file: &str) -> Option<PathBuf> {
        let path = self.encoders.as_ref()?.join(file);
        path.exists().then_some(path)
    }

    fn input(&self, path: &Path) -> Result<String> {
        let mut known = self.inputs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(digest) = known.get(path) {
            return Ok(digest.clone());
        }
        let digest = digest::of_input(path)?;
        known.insert(path.to_owned(), digest.clone());
        Ok(digest)
    }

    /// A file of an experiment: the user's below the data folder, else the one of this program.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let own = self.data.as_ref().map(|d| d.join(name)).filter(|p| p.is_file());
        own.or_else(|| embedded::experiment_file(name).map(|_| self.out.join("files").join(name)))
    }

    /// Writes the presets and files that a step refers to.
    ///
    /// # Errors
    /// A preset that is not contained in this program, a full disk.
    pub fn write_files(&self, step: &Step) -> Result<()> {
        let put = |folder: &str, name: &str, text: Option<&str>| -> Result<()> {
            let text = text
                .ok_or_else(|| ExperimentError::form(name, "is not contained in this program"))?;
            let path = self.out.join(folder).join(name);
            if base::file::read_string(&path).is_ok_and(|t| t == text) {
                return Ok(());
            }
            let parent = path.parent().unwrap_or(&self.out);
            std::fs::create_dir_all(parent).map_err(|e| ExperimentError::path(parent, e))?;
            Ok(base::file::write(&path, text.as_bytes())?)
        };
        for name in &step.presets {
            put("presets", name, embedded::preset(name))?;
        }
        for name in &step.files {
            if self.file(name).is_none_or(|p| p.starts_with(&self.out)) {
                put("files", name, embedded::experiment_file(name))?;
            }
        }
        Ok(())
    }

    /// Words of a command with every reference filled.
    ///
    /// # Errors
    /// A reference to what is missing.
    pub fn command(&self, step: &Step) -> Result<Vec<String>> {
        let text = |p: PathBuf| p.display().to_string();
        let gone = |what: &str| ExperimentError::form(&step.name, format!("{what} is missing"));
        step.words
            .iter()
            .map(|word| {
                references(word, |r| match r {
                    Reference::Step(name) => Ok(text(self.step(&name))),
                    Reference::Data(set, piece) => {
                        self.piece(&set, &piece).map(text).ok_or_else(|| gone(&set))
                    }
                    Reference::Preset(file) => Ok(text(self.out.join("presets").join(file))),
                    Reference::File(file) => self.file(&file).map(text).ok_or_else(|| gone(&file)),
                    Reference::Encoder(file) => {
                        self.weights(&file).map(text).ok_or_else(|| gone(&file))
                    }
                    Reference::Setting(name) if name == "out" => Ok(text(self.step(&step.name))),
                    Reference::Setting(name) if name == "candidates" => {
                        Ok(text(self.out.join("candidates")))
                    }
                    Reference::Setting(name) if name == "data" => {
                        self.data.clone().map(text).ok_or_else(|| gone("the data folder"))
                    }
                    Reference::Setting(name) => Ok(self.settings[name.as_str()].clone()),
                })
            })
            .collect()
    }

    /// The digest of a step's command and of all it reads; `results` has those of earlier steps.
    /// Threads and device are not part of it.
    ///
    /// # Errors
    /// Something that cannot be read.
    pub fn key(&self, step: &Step, results: &BTreeMap<String, String>) -> Result<String> {
        let mut lines = vec![step.words.join("\n"), step.makes.join("\n")];
        lines.extend(step.outside.clone());
        for need in &step.needs {
            lines.push(format!("step {need} {}", results.get(need).map_or("", String::as_str)));
        }
        for (set, piece) in &step.data {
            let path = self.piece(set, piece);
            let digest = path.map(|p| self.input(&p)).transpose()?.unwrap_or_default();
            lines.push(format!("data {set}.{piece} {digest}"));
        }
        for name in &step.presets {
            lines.push(format!(
                "preset {name} {}",
                sha256(embedded::preset(name).unwrap_or_default())
            ));
        }
        for name in &step.files {
            let digest = match self.file(name).filter(|p| !p.starts_with(&self.out)) {
                Some(own) => self.input(&own)?,
                None => sha256(embedded::experiment_file(name).unwrap_or_default()),
            };
            lines.push(format!("file {name} {digest}"));
        }
        for file in &step.weights {
            let path = self.weights(file);
            let digest = path.map(|p| self.input(&p)).transpose()?.unwrap_or_default();
            lines.push(format!("weights {file} {digest}"));
        }
        if reads_all_data(step) {
            lines
                .push(self.data.as_deref().map(|d| self.input(d)).transpose()?.unwrap_or_default());
        }
        Ok(sha256(lines.join("\n--\n").as_bytes()))
    }
}
