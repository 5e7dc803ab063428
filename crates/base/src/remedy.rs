//! What could be changed about an error, as a fact that a face turns into a flag or a button.
//!
//! An error type that knows a remedy implements [`Remedied`]; one that wraps it transparently hands it on. A face
//! lists these types once and asks a whole chain of errors with [`first`].
//!
//! ```
//! use base::remedy::{Remedied, Remedy, first, known};
//!
//! #[derive(Debug, thiserror::Error)]
//! #[error("a.svs: no micrometres per pixel")]
//! struct NoResolution;
//!
//! impl Remedied for NoResolution {
//!     fn remedy(&self) -> Option<Remedy> {
//!         Some(Remedy::GiveResolution)
//!     }
//! }
//!
//! #[derive(Debug, thiserror::Error)]
//! #[error("slide 3: {0}")]
//! struct Wrapped(#[source] NoResolution);
//!
//! let error = Wrapped(NoResolution);
//! let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
//! assert_eq!(first(chain, &[known::<NoResolution>]), Some(Remedy::GiveResolution));
//! ```

use std::error::Error;

/// What a user could change so that the work succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Change a part of the plan of an analysis.
    Change(Setting),
    /// State the um/px of a slide.
    GiveResolution,
    /// State the um/px of a slide although it states another.
    ForceResolution,
    /// State the um/px of images, of all or of some.
    GiveResolutions,
    /// Run on resolutions that the model is not made for.
    AnyResolution,
    /// State the um/px of tiles.
    TileResolution,
    /// Name the output of a network that has several.
    NetworkOutput,
    /// Store weights in half the bytes.
    HalfPrecision,
    /// Name the encoder that weights are of.
    EncoderName,
    /// State the um/px of a mask of regions.
    RegionResolution,
    /// Make the package of a filter again, for the um/px that it is used at.
    FilterResolution,
    /// Choose other classes of regions.
    RegionClasses,
    /// State the cohorts of slides.
    Cohorts,
    /// Take a cohort that is not listed.
    AnyCohort,
    /// Name the class of tumour.
    TumourClass,
    /// Run the first stage alone.
    FirstStage,
    /// Give the first stage a threshold of its own.
    FirstStagePoint,
    /// Name a model package.
    Package,
    /// Name another operating point.
    OperatingPoint,
    /// Name the package of the run, or two thresholds.
    PackageOrThresholds,
    /// Raise a limit on what one slide may ask for.
    Limit,
    /// Allow a larger share of unreadable windows.
    UnreadShare,
    /// Choose another engine, provider or precision, or name its library.
    Engine,
    /// See what each engine lacks, or choose another.
    Engines,
    /// Keep what another engine did, or take the engine as it was.
    KeepEngine,
    /// Write into another folder.
    Folder,
    /// Write into another folder, because this one cannot be used.
    OtherFolder,
    /// Write into another folder, or replace what is in this one.
    OtherFolderOrReplace,
    /// Run slides of one name into folders of their own.
    FolderPerRun,
    /// Continue, or replace what is there.
    ContinueOrReplace,
    /// Continue what was interrupted.
    Continue,
    /// Do a slide again.
    RedoSlide,
    /// Replace what is there.
    Replace,
    /// Continue the detection, which writes what is missing.
    ContinueDetection,
    /// List the slides, because an address cannot be searched.
    ListSlides,
    /// Name the folder of the slides.
    SlideFolder,
    /// Name the folder in which the slides are now.
    MovedSlides,
    /// Cut pictures from the slides.
    CutFromSlides,
    /// Write the job file alone.
    WithoutScheduler,
    /// Judge the pictures of the audit first.
    ReviewAudit,
    /// Ask for other counts of a sample.
    SampleCounts,
    /// Take fewer than asked for.
    AllowShort,
    /// Another size of a drawn slide.
    DrawnSize,
    /// Fewer figures or another size of a drawn slide.
    DrawnFigures,
    /// State what categories mean.
    Categories,
    /// Leave out and count what cannot be used.
    Lenient,
    /// State the order of a box's numbers.
    BoxOrder,
    /// State the class of all records.
    AssumeClass,
    /// State which words mean a figure.
    FigureWords,
    /// Load the starting weights that match.
    PartialWeights,
    /// Name the starting weights.
    StartingWeights,
    /// Name the positive class of a preset.
    PositiveClass,
    /// Continue the training, or write into another folder.
    ContinueTraining,
    /// Score a test set once more.
    ScoreAgain,
    /// Calibrate on slides that were trained on, and record it.
    AllowSeen,
}

/// A part of the plan of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Confidence of the intervals.
    Level,
    /// Times at which curves are read.
    Times,
    /// The value that means the event.
    EventValue,
    /// Texts that mean "missing", or columns that are categories.
    Coding,
    /// Columns taken as categories.
    Categorical,
    /// The covariates.
    Covariates,
    /// Case weights.
    Weights,
    /// The column of patients, whose rows are not independent.
    Patient,
    /// How the rows of a patient become one.
    PatientRule,
    /// Weight of early against late events.
    Rho,
    /// Cut-points.
    Cut,
    /// The direction of a risk.
    Protective,
    /// Whether a Cox model makes the risk.
    Fit,
    /// What times are divided by.
    TimeScale,
    /// Time at which calibration is judged.
    Horizon,
    /// Resamples.
    Replicates,
    /// Further methods.
    Methods,
    /// The training subset.
    Training,
    /// The grading scheme.
    Scheme,
    /// Field diameter.
    FieldDiameter,
    /// The area that counts refer to.
    Area,
    /// The folder of results.
    Out,
    /// The true classes.
    Truth,
    /// The predicted classes.
    Predicted,
    /// The positive class.
    Positive,
    /// The threshold.
    Threshold,
    /// What joins two tables.
    Key,
}

/// An error that may know a remedy.
pub trait Remedied: Error + 'static {
    /// What could be changed; none where nothing is known to help.
    fn remedy(&self) -> Option<Remedy>;
}

/// Asks one link of a chain: [`known`] of a type.
pub type Known = fn(&(dyn Error + 'static)) -> Option<Remedy>;

/// The remedy of an error if it is an `E`.
pub fn known<E: Remedied>(error: &(dyn Error + 'static)) -> Option<Remedy> {
    error.downcast_ref::<E>()?.remedy()
}

/// The first remedy in a chain of errors, outermost first.
pub fn first<'a>(
    chain: impl IntoIterator<Item = &'a (dyn Error + 'static)>,
    types: &[Known],
) -> Option<Remedy> {
    chain.into_iter().find_map(|error| types.iter().find_map(|of_type| of_type(error)))
}
