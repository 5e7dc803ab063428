//! Libraries name the fact; here it meets the flag that a user can change.

use crate::progress::print_message;
use construct::ConstructError;
use crops::CorpusError;
use evaluation::evaluate::EvaluateError;
use evaluation::evaluate::classification::{ClassificationError, Setting as Classes};
use infer::EngineError;
use mithras::batch::{Failure, InputError};
use mithras::demo::SpecError;
use mithras::embed::FeatureError;
use mithras::job::{SlideFailure, StartError};
use mithras::regions::RegionError;
use mithras::report::{PointError, ReportError};
use mithras::subtypes::SubtypeError;
use mithras::{DetectorError, RunError};
use outcome::Setting;
use regions::RegionsError;
use regions::annotations::ImportError;
use remote::AddressError;
use review::audit::{AuditError, SampleError};
use slide::SlideError;
use slurm::SlurmError;
use start::PageError;
use std::collections::BTreeSet;
use std::error::Error;

/// What to try, where a flag could help.
pub fn hint(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|e| {
        #[cfg(feature = "train")]
        if let Some(hint) = crate::command::train::hint(e) {
            return Some(hint);
        }
        if let Some(e) = e.downcast_ref::<outcome::Error>() {
            return of_outcome(e.setting()?);
        }
        if let Some(EvaluateError::Word { .. }) = e.downcast_ref() {
            return Some(
                "--figures for the words that mean a figure, --label-column for another column",
            );
        }
        e.downcast_ref::<ClassificationError>().and_then(of_classes).or_else(|| for_error(e))
    })
}

/// Prints what to try for slides that failed, each hint once.
pub fn print_slide_hints<'a, E: Error + 'static>(failures: impl Iterator<Item = &'a Failure<E>>) {
    let work = failures.filter_map(|f| match f {
        Failure::Work(e) => for_error(e),
        Failure::Stopped => Some(
            "--resume, which keeps finished slides and continues the interrupted one from its last stored part",
        ),
        _ => None,
    });
    print_hints(&work.collect::<BTreeSet<_>>());
}

/// Prints hints.
pub fn print_hints<'a>(flags: impl IntoIterator<Item = &'a &'a str>) {
    flags.into_iter().for_each(|flags| print_message("hint", &format!("see {flags}")));
}

/// The hint for an error, or for the error that it wraps.
fn for_error(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(e) = error.downcast_ref::<SlideFailure>() {
        match e {
            SlideFailure::Slide(e) => for_error(e),
            SlideFailure::Run(e) => for_error(e),
            SlideFailure::Regions(_) | SlideFailure::Export(_) => None,
        }
    } else if let Some(e) = error.downcast_ref::<RunError>() {
        match e {
            RunError::Slide(e) => for_error(e),
            RunError::Detect(e) => for_error(e),
            RunError::Resolution { .. } => Some("--any-mpp"),
            _ => None,
        }
    } else if let Some(e) = error.downcast_ref::<ConstructError>() {
        match e {
            ConstructError::Slide(e) => for_error(e),
            ConstructError::Detect(e) => for_error(e),
            ConstructError::Detector(e) => for_error(e),
            ConstructError::Engine(e) => for_error(e),
            ConstructError::NoCohort { .. } => {
                Some("--table for the cohorts of slides, --cohort for that of all others")
            }
            ConstructError::FilterClass { .. } => Some("--tumour-class"),
            ConstructError::UnknownCohort { .. } => {
                Some("--any-cohort, if it is not one of the excluded ones")
            }
            ConstructError::FilterMpp { .. } => Some("`encoders convert --mpp`"),
            _ => None,
        }
    } else if let Some(e) = error.downcast_ref::<DetectorError>() {
        match e {
            DetectorError::Engine(e) | DetectorError::Subtypes(SubtypeError::Engine(e)) => {
                for_error(e)
            }
            DetectorError::OneStage(_) => Some("--stages 1"),
            DetectorError::NoFirstStagePoint(_) | DetectorError::PairForOneStage { .. } => Some(
                "--operating-point SEG,0 with a threshold from 0 to 1, as `train calibrate` or `evaluate \
                 operating-point` choose it",
            ),
            DetectorError::Share(_) => Some("--max-unread"),
            _ => None,
        }
    } else if let Some(e) = error.downcast_ref::<FeatureError>() {
        match e {
            FeatureError::Slide(e) => for_error(e),
            FeatureError::Engine(e) => for_error(e),
            FeatureError::Resolution(_) => Some("--tile-mpp"),
            FeatureError::Exists(_) => Some("--out"),
            FeatureError::Mixed { own: true, .. } => {
                Some("--out for another folder, or --overwrite")
            }
            FeatureError::Mixed { own: false, .. } => Some("--out for another folder"),
            _ => None,
        }
    } else if let Some(e) = error.downcast_ref::<StartError>() {
        match e {
            StartError::Exists { .. } => {
                Some("--resume, which keeps finished slides and continues, and --overwrite")
            }
            StartError::Engine { .. } => Some(
                "--accept-engine, which keeps them and continues, and --engine, --provider and \
                 --precision for the engine as it was",
            ),
            StartError::Config { .. } => Some("--out for another folder, or --overwrite"),
            StartError::Mixed { .. } => Some("--out for another folder"),
            StartError::State { .. } => Some("--overwrite, which does the slide again"),
            StartError::Input { .. } => Some("--overwrite"),
            StartError::Out { .. } => None,
        }
    } else {
        for_cause(error)
    }
}

fn for_cause(error: &(dyn Error + 'static)) -> Option<&'static str> {
    match error.downcast_ref::<SlideError>() {
        Some(SlideError::MissingResolution { .. } | SlideError::ImplausibleResolution { .. }) => {
            return Some("--mpp, e.g. --mpp 0.25");
        }
        Some(SlideError::ContradictingResolution { .. }) => {
            return Some("--mpp, and --force-mpp where that contradicts the slide");
        }
        _ => {}
    }
    match error.downcast_ref::<RegionsError>() {
        Some(RegionsError::MissingMpp { .. } | RegionsError::ContradictingMpp { .. }) => {
            return Some("--mpp, which gives um/px for all images, and --mpp-table, for some");
        }
        Some(RegionsError::Import(e)) => return of_import(e),
        _ => {}
    }
    if let Some(e) = error.downcast_ref::<ImportError>() {
        return of_import(e);
    }
    if let Some(CorpusError::TooFew(_)) = error.downcast_ref() {
        return Some("--allow-short, which takes what there is");
    }
    if let Some(detect::DetectError::Unread { .. }) = error.downcast_ref() {
        return Some("--max-unread");
    }
    if let Some(EngineError::Unavailable { .. } | EngineError::Options(_)) = error.downcast_ref() {
        return Some("--engine, --provider, --precision and --engine-library");
    }
    if let Some(InputError::Address(AddressError::NoObject(_) | AddressError::Pattern(_))) =
        error.downcast_ref()
    {
        return Some("--list");
    }
    if let Some(InputError::SameName { .. }) = error.downcast_ref() {
        return Some("--out, for runs into different folders");
    }
    match error.downcast_ref() {
        Some(RegionError::NoMpp { .. }) => return Some("--regions-mpp, e.g. --regions-mpp 8"),
        Some(RegionError::Class { .. }) => return Some("--region-class and --exclude-class"),
        _ => {}
    }
    if let Some(PointError::OtherWeights { .. }) = error.downcast_ref() {
        return Some(
            "--model for the run's package, or two thresholds as --operating-point 0.5,0.6",
        );
    }
    if let Some(PointError::Slide { .. }) = error.downcast_ref() {
        return Some("--slides");
    }
    if let Some(ReportError::NoRecord { .. }) = error.downcast_ref() {
        return Some("mithras detect --resume");
    }
    if let Some(PageError::NoPackage) = error.downcast_ref() {
        return Some("--model");
    }
    if let Some(SlurmError::Program { .. }) = error.downcast_ref() {
        return Some("--dry-run");
    }
    if let Some(CorpusError::SmallPicture { .. }) = error.downcast_ref() {
        return Some("--slides, to cut the pictures from the slides");
    }
    match error.downcast_ref() {
        Some(SampleError::Corpus(e)) => return for_error(e),
        Some(SampleError::Gone { .. }) => {
            return Some("--slides, for the folder in which the slides are");
        }
        Some(SampleError::Counts(_)) => return Some("--per"),
        _ => {}
    }
    if let Some(AuditError::NoReview { .. }) = error.downcast_ref() {
        return Some("mithras audit serve");
    }
    error.downcast_ref::<SpecError>().map(|e| match e {
        SpecError::Side(_) => "--size",
        SpecError::Crowded { .. } => "--figures and --size",
    })
}

fn of_import(error: &ImportError) -> Option<&'static str> {
    Some(match error {
        ImportError::Categories { .. } => {
            "--map \"NAME=mf\" (or mimicker, other, ignore), which gives the meaning of a category"
        }
        ImportError::Records { .. } => {
            "--lenient, which leaves out and counts what cannot be used, and --mpp and --mpp-table for um/px"
        }
        ImportError::Boxes { .. } => "--boxes xyxy or --boxes xywh for the order of a box",
        ImportError::Missing { missing, .. } if missing.iter().any(|m| m.contains("label")) => {
            "--assume mf (or mimicker, other) for a table without labels"
        }
        _ => return None,
    })
}

fn of_classes(error: &ClassificationError) -> Option<&'static str> {
    let setting = match error {
        ClassificationError::Content { setting, .. } => (*setting)?,
        ClassificationError::Plan { setting, .. } => *setting,
        ClassificationError::Table(e) => return of_outcome(e.setting()?),
        _ => return None,
    };
    Some(match setting {
        Classes::Truth => "--truth for the column of true classes, --labels for another table",
        Classes::Predicted => "--predicted",
        Classes::Positive => "--positive",
        Classes::Threshold => "--threshold",
        Classes::Key => "--key",
        _ => return None,
    })
}

fn of_outcome(setting: Setting) -> Option<&'static str> {
    Some(match setting {
        Setting::Level => "--level",
        Setting::Out => "--out for another folder, or --overwrite",
        Setting::Times => "--at",
        Setting::EventValue => "--event-value",
        Setting::Coding => "--missing for codes that mean missing, --categorical for categories",
        Setting::Categorical => "--categorical",
        Setting::Covariates => "--covariates, and --base or --add for nested models",
        Setting::Weights => "--weights",
        Setting::Cluster => "--cluster",
        Setting::Rho => "--rho",
        Setting::Cut => "--cut",
        Setting::Protective => "--protective",
        Setting::Fit => "--fit",
        Setting::TimeScale => "--time-scale",
        Setting::Replicates => "--replicates",
        Setting::Methods => "--name for the main method, --method for the others",
        Setting::Training => "--train",
        Setting::Scheme => "--scheme",
        Setting::FieldDiameter => "--field-diameter",
        Setting::Area => "--area",
        _ => return None,
    })
}
