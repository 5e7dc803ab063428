//! Libraries name the remedy; here it meets the flag that a user can change.

use crate::progress::print_message;
use base::remedy::{Known, Remedied, Remedy, Setting, first, known};
use clap::{Arg, ArgMatches, Command};
use mithras::batch::Failure;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Every error type that knows a remedy. A test of the walls compares this list with the libraries.
const TYPES: &[Known] = &[
    known::<clinic::ReportError>,
    known::<clinic::case::CaseError>,
    known::<construct::ConstructError>,
    known::<crops::CorpusError>,
    known::<detect::DetectError>,
    known::<evaluation::boxes::ImportError>,
    known::<evaluation::calibrate::CalibrateError>,
    known::<evaluation::combine::CombineError>,
    known::<evaluation::evaluate::EvaluateError>,
    known::<evaluation::evaluate::classification::ClassificationError>,
    known::<evaluation::robustness::RobustnessError>,
    known::<features::EncoderError>,
    known::<infer::CardError>,
    known::<infer::EngineError>,
    known::<infer::convert::ConvertError>,
    known::<infer::timing::TimingError>,
    known::<mithras::DetectorError>,
    known::<mithras::RunError>,
    known::<mithras::batch::InputError>,
    known::<features::classify::ClassifyError>,
    known::<mithras::demo::SpecError>,
    known::<mithras::embed::FeatureError>,
    known::<mithras::export::ExportError>,
    known::<construct::inspect::VerifyError>,
    known::<mithras::batch::SlideFailure>,
    known::<mithras::batch::StartError>,
    known::<mithras::regions::RegionError>,
    known::<mithras::regions::SlideRegionError>,
    known::<mithras::report::AssignError>,
    known::<mithras::report::PointError>,
    known::<mithras::report::ReportError>,
    known::<mithras::subtypes::SubtypeError>,
    known::<outcome::Error>,
    known::<remote::AddressError>,
    known::<remote::RemoteError>,
    known::<regions::RegionsError>,
    known::<regions::overlap::OverlapError>,
    known::<regions::annotations::ImportError>,
    known::<regions::export::ExportError>,
    known::<regions::labelled::LabelledError>,
    known::<regions::shortcuts::ShortcutError>,
    known::<review::audit::AuditError>,
    known::<review::audit::SampleError>,
    known::<review::view::DatasetError>,
    known::<review::view::DicomError>,
    known::<review::view::JudgedError>,
    known::<review::view::ObjectError>,
    known::<review::view::OpenError>,
    known::<review::view::QupathError>,
    known::<review::view::RecountError>,
    known::<review::view::TileError>,
    known::<slide::SlideError>,
    known::<slide::deidentify::DeidentifyError>,
    known::<slurm::SlurmError>,
    known::<start::PageError>,
    #[cfg(feature = "train")]
    known::<net::NetError>,
    #[cfg(feature = "train")]
    known::<train::TrainError>,
    #[cfg(feature = "train")]
    known::<training::TrainingError>,
    #[cfg(feature = "train")]
    known::<training::encoders::weights::WeightsError>,
];

/// What to try, where a flag could help.
pub fn hint(error: &anyhow::Error) -> Option<&'static str> {
    first(error.chain(), TYPES).map(flag)
}

/// Prints what to try for slides that failed, each hint once.
pub fn print_slide_hints<'a, E: Remedied>(failures: impl Iterator<Item = &'a Failure<E>>) {
    let flags: BTreeSet<&str> = failures.filter_map(|f| f.remedy().map(flag)).collect();
    print_hints(&flags);
}

/// The flags of the verb that was typed.
static FLAGS: OnceLock<Vec<String>> = OnceLock::new();

/// Notes the verb that was typed: a hint names no flag that it lacks.
pub fn begin(mut command: &Command, mut typed: &ArgMatches) {
    while let Some((name, below)) = typed.subcommand() {
        let Some(verb) = command.find_subcommand(name) else { return };
        (command, typed) = (verb, below);
    }
    let long = |a: &Arg| a.get_long().map(str::to_owned);
    FLAGS.get_or_init(|| command.get_arguments().filter_map(long).collect());
}

/// Prints what of hints holds for the verb that was typed.
pub fn print_hints<'a>(hints: impl IntoIterator<Item = &'a &'a str>) {
    let has = |flag: &str| FLAGS.get().is_none_or(|all| all.iter().any(|f| f == flag));
    for hint in hints.into_iter().filter_map(|hint| fitting(hint, has)) {
        print_message("hint", &format!("see {hint}"));
    }
}

/// A hint up to the first flag that the verb lacks; none where it begins with that.
fn fitting(hint: &str, has: impl Fn(&str) -> bool) -> Option<&str> {
    let name = |at: usize| hint[at..].split([' ', ',', ')']).next().unwrap_or_default();
    let mut flags = hint.match_indices("--").filter(|_| hint.starts_with("--"));
    let Some((at, _)) = flags.find(|(at, _)| !has(name(at + 2))) else { return Some(hint) };
    let kept = hint[..at].trim_end().trim_end_matches(" and").trim_end_matches(" or");
    Some(kept.trim_end_matches(',')).filter(|kept| !kept.is_empty())
}

/// The flag that a remedy is on the command line.
fn flag(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::Change(setting) => setting_flag(setting),
        Remedy::GiveResolution => "--mpp, e.g. --mpp 0.25",
        Remedy::ForceResolution => "--mpp, and --force-mpp where that contradicts the slide",
        Remedy::GiveResolutions => "--mpp for the um/px of all images, and --mpp-table for some",
        Remedy::AnyResolution => "--any-mpp",
        Remedy::TileResolution => "--tile-mpp",
        Remedy::NetworkOutput => "--output",
        Remedy::HalfPrecision => "--precision f16",
        Remedy::EncoderName => "--encoder (`mithras encoders list` prints the names)",
        Remedy::RegionResolution => "--regions-mpp, e.g. --regions-mpp 8",
        Remedy::FilterResolution => "`encoders convert --mpp`",
        Remedy::RegionClasses => "--region-class and --exclude-class",
        Remedy::Cohorts => "--table for the cohorts of slides, --cohort for that of all others",
        Remedy::AnyCohort => "--any-cohort, if it is not one of the excluded ones",
        Remedy::TumourClass => "--tumour-class",
        Remedy::FirstStage => "--stages 1",
        Remedy::FirstStagePoint => "--operating-point SEG,0, as `train calibrate` chooses it",
        Remedy::Package => "--model",
        Remedy::OperatingPoint => "--operating-point",
        Remedy::PackageOrThresholds => "--model of the run, or --operating-point 0.5,0.6",
        Remedy::Limit => "--limit NAME=VALUE, e.g. --limit pixels=2e11",
        Remedy::UnreadShare => "--max-unread",
        Remedy::Engine => "--engine, --provider, --precision and --engine-library",
        Remedy::Engines => "`mithras doctor`, which shows what each engine lacks, and --engine",
        Remedy::KeepEngine => {
            "--accept-engine, which keeps them and continues, and --engine, --provider and \
             --precision for the engine as it was"
        }
        Remedy::Folder => "--out",
        Remedy::OtherFolder => "--out for another folder",
        Remedy::OtherFolderOrReplace => "--out for another folder, or --overwrite",
        Remedy::FolderPerRun => "--out, for runs into different folders",
        Remedy::ContinueOrReplace => {
            "--resume, which keeps finished slides and continues, and --overwrite"
        }
        Remedy::Continue => "--resume, which keeps finished slides and continues this one",
        Remedy::RedoSlide => "--overwrite, which does the slide again",
        Remedy::Replace => "--overwrite",
        Remedy::ContinueDetection => "mithras detect --resume",
        Remedy::ListSlides => "--list",
        Remedy::SlideFolder => "--slides",
        Remedy::MovedSlides => "--slides, for the folder in which the slides are",
        Remedy::CutFromSlides => "--slides, to cut the pictures from the slides",
        Remedy::WithoutScheduler => "--dry-run",
        Remedy::ReviewAudit => "mithras audit serve",
        Remedy::SampleCounts => "--per",
        Remedy::AllowShort => "--allow-short, which takes what there is",
        Remedy::DrawnSize => "--size",
        Remedy::DrawnFigures => "--figures and --size",
        Remedy::Categories => "--map \"NAME=mf\" (or mimicker, other, ignore) for a category",
        Remedy::Lenient => {
            "--lenient, which leaves out and counts what cannot be used, and --mpp and --mpp-table for um/px"
        }
        Remedy::BoxOrder => "--boxes xyxy or --boxes xywh for the order of a box",
        Remedy::AssumeClass => "--assume mf (or mimicker, other) for a table without labels",
        Remedy::FigureWords => "--figures for words of a figure, --label-column for another column",
        Remedy::PartialWeights => "--allow-partial, which records what is initialised at random",
        Remedy::StartingWeights => "--init FILE",
        Remedy::PositiveClass => "--set positive=CLASS, or `positive` in the preset",
        Remedy::ContinueTraining => "--resume to continue, or another --out",
        Remedy::ScoreAgain => "--again, which scores it anyway",
        Remedy::AllowSeen => "--allow-seen, which continues and records it in the results",
    }
}

fn setting_flag(setting: Setting) -> &'static str {
    match setting {
        Setting::Level => "--level",
        Setting::Out => flag(Remedy::OtherFolderOrReplace),
        Setting::Times => "--at",
        Setting::EventValue => "--event-value",
        Setting::Coding => "--missing for codes that mean missing, --categorical for categories",
        Setting::Categorical => "--categorical",
        Setting::Covariates => "--covariates, and --base or --add for nested models",
        Setting::Weights => "--weights",
        Setting::Patient => {
            "--patient COLUMN for one row per patient, or --cluster COLUMN for robust errors of cox, km and cindex"
        }
        Setting::PatientRule => "--patient-rule",
        Setting::Rho => "--rho",
        Setting::Cut => "--cut",
        Setting::Protective => "--protective",
        Setting::Fit => "--fit",
        Setting::TimeScale => "--time-scale",
        Setting::Horizon => "--horizon",
        Setting::Replicates => "--replicates",
        Setting::Methods => "--name for the main method, --method for the others",
        Setting::Training => "--train",
        Setting::Scheme => "--scheme",
        Setting::FieldDiameter => "--field-diameter",
        Setting::Area => "--area",
        Setting::Truth => "--truth for the column of true classes, --labels for another table",
        Setting::Predicted => "--predicted",
        Setting::Positive => "--positive",
        Setting::Threshold => "--threshold",
        Setting::Key => "--key",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_no_flag_that_the_verb_lacks() {
        let force = flag(Remedy::ForceResolution);
        for (hint, flags, kept) in [
            (force, &["mpp", "force-mpp"][..], Some(force)),
            (force, &["mpp"], Some("--mpp")),
            (force, &["out"], None),
            (flag(Remedy::Engine), &["engine"], Some("--engine")),
            (flag(Remedy::Engine), &["engine", "provider"], Some("--engine, --provider")),
            (flag(Remedy::DrawnFigures), &["figures"], Some("--figures")),
            (flag(Remedy::OtherFolderOrReplace), &["out"], Some("--out for another folder")),
            (flag(Remedy::GiveResolution), &["mpp"], Some("--mpp, e.g. --mpp 0.25")),
            // Of another verb, which is named.
            (flag(Remedy::FilterResolution), &[], Some("`encoders convert --mpp`")),
            (flag(Remedy::ContinueDetection), &[], Some("mithras detect --resume")),
        ] {
            assert_eq!(fitting(hint, |f| flags.contains(&f)), kept, "{hint}");
        }
    }
}
