//! One job of a challenge on Grand Challenge: one image in, one file out, in the folders and shapes that
//! the platform and the organisers of MIDOG 2025 prescribe (`docs/challenge.md`).

mod error;
mod folders;

pub use error::ChallengeError;

use base::file::write;
use features::classify::{NoCrop, fit};
use infer::{EngineOptions, EngineReport, ModelPackage};
use mithras::detector::Builder;
use mithras::export;
use mithras::input::Input;
use mitosis::{ClassProbs, Mpp};
use serde::Serialize;
use slide::Limits;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where the platform mounts the input.
pub const INPUT: &str = "/input";
/// Where the platform looks for the output.
pub const OUTPUT: &str = "/output";
/// Where the platform unpacks the model.
pub const MODEL: &str = "/opt/ml/model";

/// A task of MIDOG 2025.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Track {
    /// Track 1: mitotic figures in a region.
    #[serde(rename = "midog25-t1")]
    Midog25T1,
    /// Track 2: normal and atypical figures in a stack of crops.
    #[serde(rename = "midog25-t2")]
    Midog25T2,
}

impl Track {
    /// Every task, as written on the command line.
    pub const WORDS: &[&str] = &["midog25-t1", "midog25-t2"];

    /// The input's name on the platform, and its folder.
    const fn socket(self) -> (&'static str, &'static str) {
        match self {
            Self::Midog25T1 => {
                ("histopathology-region-of-interest-cropout", "images/histopathology-roi-cropout")
            }
            Self::Midog25T2 => (
                "stacked-histopathology-roi-cropouts",
                "images/stacked-histopathology-roi-cropouts",
            ),
        }
    }

    /// The file that is written into the output folder.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Midog25T1 => "mitotic-figures.json",
            Self::Midog25T2 => "multiple-mitotic-figure-classification.json",
        }
    }
}

impl std::str::FromStr for Track {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "midog25-t1" => Ok(Self::Midog25T1),
            "midog25-t2" => Ok(Self::Midog25T2),
            _ => Err(format!("`{word}` is not one of {}", Self::WORDS.join(", "))),
        }
    }
}

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    /// The task.
    pub track: Track,
    /// The input folder, with `inputs.json` or without.
    pub input: PathBuf,
    /// The output folder; made if missing.
    pub output: PathBuf,
    /// The package: a folder, or a bundled one by name. Without it the package in [`MODEL`], if
    /// there is one, else the bundled one of the task.
    pub model: Option<PathBuf>,
    /// um/px of an image that states none. Crops of Track 2 state none; without this they are taken
    /// to have the model's own.
    pub mpp: Option<Mpp>,
    /// What runs the networks.
    pub engine: EngineOptions,
}

/// A job of the challenge that was answered.
#[derive(Clone, Debug, Serialize)]
pub struct Done {
    /// Version of this format.
    pub schema: &'static str,
    /// The task.
    pub track: Track,
    /// Path of the image.
    #[serde(serialize_with = "base::json::lossy")]
    pub image: PathBuf,
    /// Name of the package.
    pub model: String,
    /// What ran it.
    pub engine: EngineReport,
    /// Candidates of Track 1, crops of Track 2.
    pub items: usize,
    /// Of them mitotic figures, or atypical ones.
    pub positive: usize,
    /// The file written.
    #[serde(serialize_with = "base::json::lossy")]
    pub out: PathBuf,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (items, called) = match self.track {
            Track::Midog25T1 => ("candidates", "mitotic figures"),
            Track::Midog25T2 => ("crops", "atypical"),
        };
        writeln!(
            f,
            "{}: {} {items}, {} {called}",
            self.image.display(),
            self.items,
            self.positive
        )?;
        writeln!(f, "model {}, {}", self.model, self.engine)?;
        writeln!(f, "written to {}", self.out.display())
    }
}

/// One crop of Track 2.
#[derive(Serialize)]
struct Crop {
    class: &'static str,
    /// Probability of `atypical`, whichever class was called.
    confidence: f64,
}

impl Job {
    /// Does it.
    ///
    /// # Errors
    /// [`ChallengeError`]; nothing is written then.
    pub fn run(&self) -> Result<Done, ChallengeError> {
        let image = folders::image(&self.input, self.track.socket())?;
        let package = self.package(Path::new(MODEL))?;
        let answer = match self.track {
            Track::Midog25T1 => self.detect(&image, &package)?,
            Track::Midog25T2 => self.classify(&image, &package)?,
        };
        let folder = |source| ChallengeError::Output { path: self.output.clone(), source };
        std::fs::create_dir_all(&self.output).map_err(folder)?;
        let out = self.output.join(self.track.file());
        write(&out, &answer.file)?;
        Ok(Done {
            schema: "mithras.challenge/1",
            track: self.track,
            image,
            model: package.card.name.clone(),
            engine: answer.engine,
            items: answer.items,
            positive: answer.positive,
            out,
        })
    }

    /// The requested package, or the one in `mounted`, or the bundled one.
    fn package(&self, mounted: &Path) -> Result<ModelPackage, ChallengeError> {
        if let Some(model) = &self.model {
            return Ok(ModelPackage::find(Some(model))?);
        }
        match folders::package(mounted)? {
            Some(folder) => Ok(ModelPackage::open(&folder)?),
            None if self.track == Track::Midog25T2 => Ok(ModelPackage::bundled_named("atypical")?),
            None => Ok(ModelPackage::bundled()?),
        }
    }

    fn detect(&self, image: &Path, package: &ModelPackage) -> Result<Answer, ChallengeError> {
        let mut detector = Builder::default().run_with(self.engine.clone()).open(package)?;
        let input = Input { mpp: self.mpp, ..Input::new(image) };
        let slide = detector.opener.open(&input)?;
        let record = detector.run(&slide)?;
        let file = export::grand_challenge(&record)?;
        let positive = record.rows.iter().filter(|r| r.accepted).count();
        Ok(Answer { file, engine: detector.models.engine, items: record.rows.len(), positive })
    }

    fn classify(&self, image: &Path, package: &ModelPackage) -> Result<Answer, ChallengeError> {
        let wrong =
            |reason: String| ChallengeError::Model { name: package.card.name.clone(), reason };
        let card = package.card.classifier.as_ref().ok_or_else(|| wrong("no classifier".into()))?;
        if card.positive != "atypical" || card.classes.len() != 2 {
            let classes = card.classes.join(", ");
            return Err(wrong(format!(
                "the classes {classes} with `{}` as the positive one",
                card.positive
            )));
        }
        let mpp = self.mpp.unwrap_or(card.mpp);
        let mut crops = Vec::new();
        for (i, page) in slide::read_pages(image, &Limits::default())?.iter().enumerate() {
            let unfit = |e: NoCrop| {
                let reason = e.to_string();
                ChallengeError::Page { path: image.into(), page: i + 1, reason }
            };
            crops.push(fit(page, mpp, card).map_err(unfit)?);
        }
        let models = infer::open(package, &self.engine)?;
        let mut network = models.classifier.ok_or_else(|| wrong("no classifier".into()))?;
        let atypical = card.positive_index();
        let called = network.classes(&crops)?.into_iter().map(|ClassProbs(p)| Crop {
            class: if card.called(&p) == atypical { "atypical" } else { "normal" },
            confidence: f64::from(p[atypical]),
        });
        let called: Vec<Crop> = called.collect();
        let positive = called.iter().filter(|c| c.class == "atypical").count();
        let file = base::json::pretty(&called);
        Ok(Answer { file, engine: models.report, items: called.len(), positive })
    }
}

/// What a track asks for.
struct Answer {
    /// Bytes of the file.
    file: Vec<u8>,
    engine: EngineReport,
    items: usize,
    /// Of the items, those of the positive class.
    positive: usize,
}
