//! A detector of two packages: the first stage of one, and a classifier as its second.

use crate::boxes::ImportError;
use base::file;
use base::remedy::{Remedied, Remedy};
use infer::ModelPackage;
use infer::card::{ClassifierCard, Interpolation, ScreenCard};
use mitosis::{OperatingPoint, Score};
use std::path::{Path, PathBuf};

/// Why two packages cannot be combined.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum CombineError {
    /// A package lacks the stage.
    #[error("{}: its package has no {part}", path.display())]
    Part {
        /// Folder of the package.
        path: PathBuf,
        part: &'static str,
    },
    /// A screen that is not shown what the second stage is shown, or does not answer as it does.
    #[error(
        "{}: its classifier differs from the second stage in its {what}; a screen is shown the same crops and knows the \
         same classes, each with one output",
        path.display()
    )]
    Screen {
        /// The package of the screen.
        path: PathBuf,
        /// Key of the card.
        what: &'static str,
    },
    /// Classifiers that are not one.
    #[error(transparent)]
    Ensemble(#[from] infer::ensemble::EnsembleError),
    /// Reading, writing, a folder that is taken.
    #[error(transparent)]
    Package(#[from] ImportError),
}

impl Remedied for CombineError {
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Package(e) => e.remedy(),
            _ => None,
        }
    }
}

/// What a detector is made of.
#[derive(Clone, Debug)]
pub struct Stages {
    /// Package with the first stage: a folder, or a bundled name.
    pub first: PathBuf,
    /// Packages with the classifier; of several the mean, as of the models of folds.
    pub second: Vec<PathBuf>,
    /// Package with a small classifier, and the probability from which on it passes a crop on to the second stage.
    /// Without it a single second stage keeps the screen of its own package.
    pub screen: Option<(PathBuf, f32)>,
    /// Name of the detector.
    pub name: String,
    /// Its thresholds on `s_seg` and `s_cls`. Without them the first stage keeps its own, and the
    /// classifier accepts from its own threshold, else from even odds; the card marks them as not calibrated.
    pub point: Option<(Score, Score)>,
}

/// Writes the detector into a folder. The resolutions of slides are the first package's, the licence is
/// both's.
///
/// # Errors
/// [`CombineError`]; nothing is written then.
pub fn combine(stages: &Stages, out: &Path) -> Result<ModelPackage, CombineError> {
    let at = out.join("card.toml");
    if at.exists() {
        return Err(ImportError::Exists(out.to_owned()).into());
    }
    let open = |path: &Path| ModelPackage::find(Some(path)).map_err(ImportError::from);
    let first = open(&stages.first)?;
    let second: Vec<ModelPackage> =
        stages.second.iter().map(|p| open(p)).collect::<Result<_, _>>()?;
    let lacks = |path: &Path, part| CombineError::Part { path: path.to_owned(), part };
    let no_first = || lacks(&stages.first, "first stage");
    let segmenter = first.segmenter().ok_or_else(no_first)?;
    let (mut of_second, classifier) = match second.as_slice() {
        [one] => {
            let no_second = || lacks(&stages.second[0], "classifier");
            let onnx = one.classifier().ok_or_else(no_second)?;
            (one.card.classifier.clone().ok_or_else(no_second)?, onnx.to_vec())
        }
        several => infer::ensemble::classifier(several)?,
    };
    let screen = match (&stages.screen, second.as_slice()) {
        (Some((path, from)), _) => Some(Screen::open(path, *from, &of_second)?),
        (None, [one]) => Screen::of_package(one),
        (None, _) => None,
    };
    let mut card = first.card.clone();
    let mut of_first = card.segmenter.take().ok_or_else(no_first)?;
    (of_first.file, of_second.file) = ("segmenter.onnx".into(), "classifier.onnx".into());
    let threshold = of_second.threshold.unwrap_or(0.5);
    let (seg, cls, provenance) = match (stages.point, &first.card.operating_point) {
        (Some((seg, cls)), _) => (seg, cls, "as given".to_owned()),
        (None, own) => {
            let seg = own.as_ref().map_or(Score::literal(0.5), |p| p.seg);
            let cls = Score::new(threshold).unwrap_or(Score::literal(0.5));
            (seg, cls, "not chosen: the first stage's own, and the classifier's".to_owned())
        }
    };
    let mut training = toml::Table::new();
    let training_of = |of: &infer::ModelCard| {
        let mut part = of.training.clone().unwrap_or_default();
        part.insert("package".into(), of.name.clone().into());
        toml::Value::Table(part)
    };
    training.insert("first_stage".into(), training_of(&first.card));
    let of_members: Vec<toml::Value> = second.iter().map(|p| training_of(&p.card)).collect();
    let of_second_stage = match of_members.as_slice() {
        [one] => one.clone(),
        _ => toml::Value::Array(of_members),
    };
    training.insert("second_stage".into(), of_second_stage);
    let own_package = screen.as_ref().and_then(|s| s.package.as_ref());
    if let Some(package) = own_package {
        training.insert("screen".into(), training_of(&package.card));
    }
    card.name.clone_from(&stages.name);
    let later = second.iter().chain(own_package);
    let mut licences: Vec<&str> = later.map(|p| p.card.license.as_str()).collect();
    licences.dedup();
    if licences != [card.license.as_str()] {
        card.license = format!("{}; second stage: {}", card.license, licences.join("; "));
    }
    (card.segmenter, card.classifier) = (Some(of_first), Some(of_second));
    card.screen = screen.as_ref().map(|s| s.card.clone());
    card.operating_point = Some(OperatingPoint { seg, cls, provenance });
    card.operating_points.clear();
    card.segmentation_point = first.card.first_stage_point().cloned();
    (card.training, card.results) = (Some(training), None);
    card.check().map_err(ImportError::from)?;
    let failed = |source| file::WriteError { path: out.to_owned(), source };
    std::fs::create_dir_all(out).map_err(failed).map_err(ImportError::from)?;
    let put = |name: &str, bytes: &[u8]| file::write(&out.join(name), bytes);
    put("segmenter.onnx", segmenter).map_err(ImportError::from)?;
    put("classifier.onnx", &classifier).map_err(ImportError::from)?;
    if let Some(screen) = &screen {
        put(SCREEN, &screen.onnx).map_err(ImportError::from)?;
    }
    let text = card.to_toml().map_err(ImportError::from)?;
    // Last: a folder without a card is not a package.
    file::write(&at, text.as_bytes()).map_err(ImportError::from)?;
    open(out).map_err(Into::into)
}

/// File of the screen in a combined package.
const SCREEN: &str = "screen.onnx";

/// A small classifier in front of the second stage.
struct Screen {
    card: ScreenCard,
    onnx: Vec<u8>,
    /// Where it is not that of the second stage's own package.
    package: Option<ModelPackage>,
}

impl Screen {
    /// The screen that a package has in front of its second stage: its scale and points were fitted with it.
    fn of_package(second: &ModelPackage) -> Option<Self> {
        let (card, onnx) = second.card.screen.clone().zip(second.screen())?;
        let card = ScreenCard { file: SCREEN.into(), ..card };
        Some(Self { card, onnx: onnx.to_vec(), package: None })
    }

    fn open(path: &Path, passes_from: f32, second: &ClassifierCard) -> Result<Self, CombineError> {
        let package = ModelPackage::find(Some(path)).map_err(ImportError::from)?;
        let part = "classifier";
        let lacks = || CombineError::Part { path: path.to_owned(), part };
        let own = package.card.classifier.as_ref().ok_or_else(lacks)?;
        let onnx = package.classifier().ok_or_else(lacks)?.to_vec();
        let alike = [
            ("crop", own.crop as f64 * own.mpp.get() == second.crop as f64 * second.mpp.get()),
            ("classes", own.classes == second.classes),
            ("positive class", own.positive == second.positive),
            ("outputs", own.outputs.is_empty()),
            ("scale", own.scale.is_none()),
            ("interpolation", own.interpolation == Interpolation::Bilinear),
        ];
        if let Some((what, _)) = alike.into_iter().find(|a| !a.1) {
            return Err(CombineError::Screen { path: path.to_owned(), what });
        }
        let card = ScreenCard {
            file: SCREEN.into(),
            sha256: own.sha256.clone(),
            architecture: own.architecture.clone(),
            input: own.input,
            mean: own.mean,
            std: own.std,
            passes_from,
        };
        Ok(Self { card, onnx, package: Some(package) })
    }
}
