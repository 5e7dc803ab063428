//! `mithras corpus build`.

use crate::command::detect::{EngineArgs, slides};
use crate::hint;
use crate::progress::{LogArgs, print_message};
use crate::show;
use anyhow::{Context, bail};
use construct::{self, Exclusions, FilterPlan, Kind, Origins, Plan, Preset};
use mithras::batch;
use mitosis::Mpp;
use std::path::PathBuf;
use std::process::ExitCode;

/// Builds a corpus from slides: tissue tiles, tumour filter, detector, pseudo-labels, crops.
///
/// The preset tumour-tiles takes two filters and no detector. Its corpus is the tissue tiles that
/// one of them keeps, and `audit sample --question tumour --by subtype` draws from it.
///
/// Run the same command again to continue after an interruption or a failure, or to add slides.
#[derive(clap::Args)]
pub struct Args {
    /// Slides, folders or patterns.
    #[arg(required_unless_present = "list")]
    slides: Vec<PathBuf>,
    /// List of slides instead: CSV with the columns slide (path or address) and mpp (optional), as detect reads it.
    #[arg(long, value_name = "CSV", conflicts_with_all = ["slides", "mpp_table"])]
    list: Option<PathBuf>,
    /// Bundled preset (tcga-mf-pseudo, tcga-unlabeled, tumour-tiles) or a preset file.
    #[arg(long)]
    preset: String,
    /// Corpus folder.
    #[arg(long)]
    out: PathBuf,
    /// CSV with the columns slide, cohort, patient.
    #[arg(long, value_name = "CSV")]
    table: Option<PathBuf>,
    /// Cohort of slides that the table does not name.
    #[arg(long)]
    cohort: Option<String>,
    /// Takes slides of cohorts that the preset does not list, too; excluded cohorts stay excluded.
    #[arg(long)]
    any_cohort: bool,
    /// List of `cohort|patient|slide,NAME` lines to keep out. Repeat for several.
    #[arg(long, value_name = "FILE")]
    exclude: Vec<PathBuf>,
    /// Evaluation corpus whose slides and patients are kept out. Repeat for several.
    #[arg(long, value_name = "DIR")]
    evaluation: Vec<PathBuf>,
    /// Model package of the tumour filter: its folder, or its name in --filters (impash, conch).
    #[arg(long, value_name = "PKG", conflicts_with = "no_tumour_filter")]
    tumour_filter: Option<PathBuf>,
    /// The filter's class that counts as tumour, against the preset.
    #[arg(long, value_name = "CLASS", requires = "tumour_filter")]
    tumour_class: Option<String>,
    /// Model package of a second filter, for the preset tumour-tiles.
    #[arg(long, value_name = "PKG", requires = "tumour_filter")]
    second_filter: Option<PathBuf>,
    /// The second filter's class that counts as tumour, against the preset.
    #[arg(long, value_name = "CLASS", requires = "second_filter")]
    second_class: Option<String>,
    /// Folder of the filters that are given by name.
    #[arg(long, value_name = "DIR", default_value = "filters")]
    filters: PathBuf,
    /// Keeps every tissue tile; the manifest records it.
    #[arg(long)]
    no_tumour_filter: bool,
    /// um/px of slides that do not state theirs.
    #[arg(long, value_name = "UM_PER_PX")]
    mpp: Option<f64>,
    /// CSV with the columns slide, mpp.
    #[arg(long, value_name = "CSV")]
    mpp_table: Option<PathBuf>,
    /// Slides at once; each worker loads the models.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    #[command(flatten)]
    engine: EngineArgs,
    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub fn run(a: &Args) -> anyhow::Result<ExitCode> {
    let preset = Preset::find(&a.preset)?;
    if preset.kind == Kind::PseudoLabels && a.tumour_filter.is_none() && !a.no_tumour_filter {
        bail!(
            "name the tumour filter with --tumour-filter DIR, or keep all tissue with --no-tumour-filter"
        );
    }
    if preset.kind == Kind::TumourTiles && a.second_filter.is_none() {
        bail!("name two filters with --tumour-filter DIR and --second-filter DIR");
    }
    let filter = |package: &Option<PathBuf>, class: &Option<String>| {
        package.as_ref().map(|package| FilterPlan::find(package, &a.filters, class.clone()))
    };
    let filters =
        [filter(&a.tumour_filter, &a.tumour_class), filter(&a.second_filter, &a.second_class)];
    let mpp = a.mpp.map(Mpp::new).transpose().context("--mpp")?;
    let mpps = a.mpp_table.as_deref().map(batch::read_mpp_table).transpose()?.unwrap_or_default();
    let inputs = slides(a.list.as_deref(), &a.slides, mpp, &mpps)?;
    if let Some(join) = inputs.unmatched("--mpp-table", mpps.keys())? {
        print_message("note", &join.to_string());
    }
    let plan = Plan {
        slides: inputs.slides,
        origins: a.table.as_deref().map(Origins::read).transpose()?.unwrap_or_default(),
        cohort: a.cohort.clone(),
        exclusions: Exclusions::new(&preset.exclude_cohorts, &a.exclude, &a.evaluation)?
            .with_cohorts(if a.any_cohort { &[] } else { &preset.cohorts }),
        preset,
        filters: filters.into_iter().flatten().collect(),
        workers: a.workers,
        out: a.out.clone(),
    };
    if plan.preset.kind == Kind::PseudoLabels && a.engine.model().is_none() {
        print_message(
            "note",
            "the bundled detector labels the crops; the paper's was trained on MIDOG22: name it with --model if you have it",
        );
    }
    show::print_messages("note", &plan.notes()?);
    let report = construct::construct(&plan, &|| a.engine.detector(), &mut *a.log.listener(false))?;
    show::result(a.json, &report)?;
    hint::print_slide_hints(report.failures.iter());
    Ok(crate::command::exit(report.failed.len(), report.slides - report.excluded))
}
