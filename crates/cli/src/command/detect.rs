//! `mithras detect`: from slides to figures, hotspot and density.

use super::engine::{RunArgs, choice};
use crate::hint;
use crate::progress::{LogArgs, print_message};
use crate::show::print_messages;
use anyhow::Result;
use base::text::Shown;
use clap::Args as ClapArgs;
use detect::CancelToken;
use infer::{EngineOptions, ModelPackage, Precision};
use mithras::batch::{self, Existing, OutFolder, Shard, read_list};
use mithras::progress::Listener;
use mithras::regions::Classes;
use mithras::report::{self, RunFile};
use mithras::run::{FinishedRun, RunPlan};
use mithras::{Builder, Detector, DetectorError, Stages, Thresholds};
use mitosis::Mpp;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Find mitotic figures on slides, and count them
///
/// Reads every slide at the model's resolution, finds candidates (first stage) and scores them (second
/// stage). Each slide gets a folder, named after its file, with detections as CSV, Parquet, QuPath
/// GeoJSON and Grand Challenge JSON. It also has the count: hotspot of 2 mm2, density per 20 mm2 of
/// analysed tissue. Over the run: counts.csv, run.json, summary.html. See docs/artifacts.md.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// Slide files, folders of slides, patterns such as 'slides/*.svs', or addresses (https://, s3://)
    #[arg(required_unless_present = "list", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// List of slides instead: CSV with the columns slide, mpp (optional) and any further ones (patient,
    /// cohort ...), which counts.csv then has too; see docs/scale.md
    #[arg(long, value_name = "CSV", conflicts_with_all = ["inputs", "mpp_table"])]
    list: Option<PathBuf>,
    /// Only those of the slides that this table names in a column `slide` or `image`, as a dataset's annotations.csv
    #[arg(long, value_name = "CSV")]
    only: Option<PathBuf>,
    /// Only part K of N of the slides; parts are disjoint, whatever the order of the slides
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Slides at once; they share threads and memory
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// Folder for the results; made if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Resolution in um/px of every slide that states none
    #[arg(long, value_name = "X", value_parser = mpp, allow_negative_numbers = true)]
    mpp: Option<Mpp>,
    /// Resolutions of single slides: CSV with the columns slide, mpp
    #[arg(long, value_name = "CSV")]
    mpp_table: Option<PathBuf>,
    /// Take --mpp or --mpp-table even where a slide states another resolution
    #[arg(long, alias = "override-mpp")]
    force_mpp: bool,
    /// Run on slides of any resolution, even those that the model is not made for
    #[arg(long)]
    any_mpp: bool,
    #[command(flatten)]
    limits: super::limits::LimitArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// 2: segmentation and classification; 1: segmentation alone (s_cls stays empty)
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    stages: u8,
    /// Thresholds other than the package's own: a name in its card (balanced, sensitive, specific), or
    /// two numbers, first and second stage
    #[arg(long, value_name = "NAME|SEG,CLS")]
    operating_point: Option<Thresholds>,
    /// Also classify the subtype of every accepted figure: p_atypical and eight morphologies
    #[arg(long)]
    subtypes: bool,
    /// Largest share of windows that may be unreadable before a slide fails, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = detect::Recipe::MAX_UNREAD_SHARE)]
    max_unread: f64,
    /// Keep the candidates of the first stage in this folder, and begin there where they are kept. With another second
    /// stage, or with one stage, the same slides are then not segmented again
    #[arg(long, value_name = "DIR")]
    keep_candidates: Option<PathBuf>,
    #[command(flatten)]
    regions: RegionArgs,
    /// An OpenSlide 4 library to use instead of the one found
    #[arg(long, value_name = "FILE")]
    openslide: Option<PathBuf>,
    /// Keep finished slides, continue interrupted ones, try failed ones again
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// With --resume: keep also what another engine did; scores may differ in the last digits
    #[arg(long, requires = "resume", conflicts_with = "overwrite")]
    accept_engine: bool,
    /// Run every slide again, even where results exist
    #[arg(long)]
    overwrite: bool,
    /// Print the run as JSON on standard output (the content of run.json); progress stays on standard error
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogArgs,
}

/// Where slides are searched.
#[derive(ClapArgs, Debug)]
pub struct RegionArgs {
    /// Search only these regions: QuPath GeoJSON, ASAP or ImageScope XML, or a mask (PNG, TIFF). Of several slides a
    /// folder with one file per slide, named as it. Windows outside are not read
    #[arg(long, value_name = "FILE|FOLDER")]
    regions: Option<PathBuf>,
    /// Search only regions of this class (repeat for several) [default: all that are not excluded]
    #[arg(long, value_name = "CLASS", requires = "regions")]
    region_class: Vec<String>,
    /// Leave out what is in regions of this class (repeat for several). Classes called Exclude or Ignore* and
    /// ImageScope's negative regions are always left out
    #[arg(long, value_name = "CLASS", requires = "regions")]
    exclude_class: Vec<String>,
    /// um/px of masks
    #[arg(long, value_name = "X", requires = "regions", value_parser = mpp)]
    regions_mpp: Option<Mpp>,
}

/// Which networks run, and on what.
#[derive(ClapArgs, Debug, Default)]
pub struct EngineArgs {
    /// Model package: a folder with a card.toml, or a bundled one: `standard`, the default, or `fast`, whose
    /// first stage looks at 0.5 um/px
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    /// Arithmetic; auto is f32, bf16 (native, OpenVINO, libtorch) takes bf16 for the segmenter's decoder, and for a
    /// classifier whose card allows it
    #[arg(long, value_name = "P", default_value = "auto", value_parser = choice::<Precision>(Precision::WORDS))]
    precision: Precision,
    /// Windows per run of the first stage [default: what suits the engine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    batch: Option<u16>,
}

pub(super) fn mpp(text: &str) -> Result<Mpp, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    Mpp::new(value).map_err(|e| e.to_string())
}

impl EngineArgs {
    /// The value of `--model`.
    pub fn model(&self) -> Option<&Path> {
        self.model.as_deref()
    }

    /// How the networks run.
    pub fn options(&self) -> EngineOptions {
        EngineOptions {
            precision: self.precision,
            segmenter_batch: self.batch.map_or(0, usize::from),
            ..self.run.options()
        }
    }

    /// Package and settings of a detector.
    pub fn builder(&self) -> Result<(ModelPackage, Builder), DetectorError> {
        let package = ModelPackage::find(self.model.as_deref())?;
        Ok((package, Builder::default().run_with(self.options())))
    }

    /// A detector with the package's own settings.
    pub fn detector(&self) -> Result<Detector, DetectorError> {
        let (package, builder) = self.builder()?;
        builder.open(&package)
    }
}

/// The slides of a list, or else those named one by one.
pub fn slides(
    list: Option<&Path>,
    named: &[PathBuf],
    mpp: Option<Mpp>,
    mpps: &BTreeMap<String, Mpp>,
) -> Result<batch::Inputs> {
    Ok(match list {
        Some(list) => read_list(list, mpp, &[])?,
        None => batch::find(named, mpp, mpps)?,
    })
}

pub fn run(args: Args) -> Result<ExitCode> {
    let table = match &args.mpp_table {
        None => BTreeMap::new(),
        Some(path) => batch::read_mpp_table(path)?,
    };
    let mut inputs = match &args.list {
        None => batch::find(&args.inputs, args.mpp, &table)?,
        Some(list) => read_list(list, args.mpp, &report::written_columns())?,
    };
    if let Some(join) = inputs.unmatched("--mpp-table", table.keys())? {
        print_message("note", &join.to_string());
    }
    print_messages("note", &inputs.notes());
    let listed: Vec<String> = inputs.slides.iter().map(|s| s.name.clone()).collect();
    if let Some(table) = &args.only
        && let Some(join) = inputs.retain_named(table)?
    {
        print_message("note", &join.to_string());
    }
    if let Some(shard) = args.shard {
        inputs.slides.retain(|s| shard.holds(&s.name));
    }
    if let Some(regions) = &args.regions.regions {
        let RegionArgs { region_class, exclude_class, regions_mpp, .. } = &args.regions;
        let classes = Classes { include: region_class.clone(), exclude: exclude_class.clone() };
        inputs.restrict(regions, &listed, &classes, *regions_mpp)?;
    }
    let stages = if args.stages == 1 { Stages::One } else { Stages::Two };
    let (package, builder) = args.engine.builder()?;
    let mut detectors = builder
        .stages(stages)
        .thresholds(args.operating_point.unwrap_or_default())
        .max_unread_share(args.max_unread)
        .limits(args.limits.limits()?)
        .openslide(args.openslide.clone())
        .force_mpp(args.force_mpp)
        .any_mpp(args.any_mpp)
        .accept_engine(args.accept_engine)
        .keep_candidates(args.keep_candidates.clone())
        .subtypes(args.subtypes)
        .open_several(&package, args.workers.into())?;
    let existing = Existing::from_flags(args.resume, args.overwrite);
    let out = OutFolder { path: &args.out, existing };
    let listener = &mut *args.log.listener(detectors.len() == 1);
    let FinishedRun { slides: outcomes, file } =
        work(inputs.slides, &mut detectors, out, listener)?;
    print_result(&args.out, &file, args.json)?;
    hint::print_slide_hints(outcomes.iter().filter_map(|o| o.failure.as_ref()));
    let ours: Vec<_> = outcomes.iter().filter(|o| !o.is_elsewhere()).collect();
    let failed = ours.iter().filter(|o| !o.is_done()).count();
    Ok(super::exit(failed, ours.len()))
}

/// Does all slides, until Ctrl-C.
pub fn work(
    slides: Vec<batch::Input>,
    detectors: &mut [Detector],
    out: OutFolder<'_>,
    listener: &mut dyn Listener,
) -> Result<FinishedRun> {
    let (command, cancel) = (crate::progress::typed_words(), CancelToken::new());
    crate::interrupt::cancels(&cancel)?;
    let plan = RunPlan { slides, detectors, out, command: &command };
    Ok(mithras::run::run(plan, listener, &cancel)?)
}

/// Prints the result as text or as JSON.
pub fn print_result(out: &Path, run: &RunFile, json: bool) -> Result<()> {
    crate::show::result(json, run)?;
    if !json {
        outln!("written to {}; see {}", Shown(out), Shown(&out.join("summary.html")));
    }
    Ok(())
}
