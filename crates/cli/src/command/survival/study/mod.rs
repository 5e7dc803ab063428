//! `mithras survival study`: from the counts of a detection run to the paper's whole analysis.

mod figures;
mod plot;
mod protocol;
mod report;

use super::cohort::{Cohort, Columns, PatientRule};
use super::table::Table;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// The paper's survival analysis of a detection run, as a report
#[derive(clap::Args)]
pub struct Args {
    /// counts.csv of `mithras detect`
    #[arg(long, value_name = "FILE")]
    counts: PathBuf,
    /// Clinical table: CSV, TSV or Parquet, one row per patient (or per slide)
    #[arg(long, value_name = "FILE")]
    clinical: PathBuf,
    /// Columns that join the two: COUNTS_COLUMN=CLINICAL_COLUMN, or one name for both. A slide
    /// matches the key it equals, or else the longest one it begins with (TCGA barcodes)
    #[arg(long, value_name = "COLUMN=COLUMN")]
    join: String,
    /// Clinical column of times
    #[arg(long, value_name = "COLUMN")]
    time: String,
    /// Clinical column of events: 1/0, true/false, or 2/1 as R has it
    #[arg(long, value_name = "COLUMN")]
    event: String,
    /// The value of the event column that means the event
    #[arg(long, value_name = "VALUE")]
    event_value: Option<String>,
    /// Adjustment covariates, e.g. age,sex
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    covariates: Vec<String>,
    /// Clinical columns to draw box plots by, e.g. grade,diagnosis
    #[arg(long, visible_alias = "grade", value_name = "COLUMNS", value_delimiter = ',')]
    boxes: Vec<String>,
    /// Clinical column of the patient (default: the join column)
    #[arg(long, value_name = "COLUMN")]
    patient: Option<String>,
    /// Rows of the training subset, on whose medians the cut-points are fixed
    #[arg(long, value_name = "COLUMN=VALUE", conflicts_with = "cut")]
    train: Option<String>,
    /// Cut-points fixed elsewhere, e.g. hotspot=5,density=10 (at most against above)
    #[arg(long, value_name = "FEATURE=NUMBER", value_delimiter = ',')]
    cut: Vec<String>,
    /// Further methods for the C-index comparison: NAME=counts.csv
    #[arg(long, value_name = "NAME=FILE")]
    method: Vec<String>,
    /// Name of the method behind --counts
    #[arg(long, default_value = "MiTHras")]
    name: String,
    /// Column of hotspot counts (default: hotspot_count)
    #[arg(long, value_name = "COLUMN")]
    hotspot_column: Option<String>,
    /// Column of densities (default: density_per_20mm2)
    #[arg(long, value_name = "COLUMN")]
    density_column: Option<String>,
    /// How the slides of a patient become one count in patient-level results
    #[arg(long, value_enum, default_value = "max")]
    patient_rule: PatientRule,
    /// Tied events
    #[arg(long, value_enum, default_value = "efron")]
    ties: super::Ties,
    /// Bootstrap replicates
    #[arg(long, default_value_t = 1000)]
    replicates: usize,
    /// Seed of the bootstraps
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Time at which calibration is judged (default: the median event time)
    #[arg(long)]
    horizon: Option<f64>,
    /// Name of the time unit, for axes
    #[arg(long, default_value = "months")]
    time_unit: String,
    /// Times are divided by this first (30.44: days to months)
    #[arg(long, default_value_t = 1.0)]
    time_scale: f64,
    /// Columns whose numbers are categories
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    categorical: Vec<String>,
    /// Further cell texts that mean "missing"
    #[arg(long, value_name = "TEXTS", value_delimiter = ',')]
    missing: Vec<String>,
    /// Folder of the report: report.html, results.json, cohort tables, pictures
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

/// A method's counts, joined.
struct Method {
    name: String,
    slides: Table,
    cohort: Cohort,
}

/// `A=B`.
fn pair(text: &str, what: &str) -> Result<(String, String)> {
    let (a, b) = text.split_once('=').with_context(|| format!("{what} {text}: expected A=B"))?;
    if a.is_empty() || b.is_empty() {
        bail!("{what} {text}: expected A=B");
    }
    Ok((a.to_owned(), b.to_owned()))
}

pub fn run(args: &Args) -> Result<()> {
    if !(args.time_scale.is_finite() && args.time_scale > 0.0) {
        bail!("--time-scale {} is not a positive number", args.time_scale);
    }
    if args.replicates == 0 {
        bail!("--replicates 0: the protocol needs resamples (1000 in the paper)");
    }
    let (left, right) = match args.join.split_once('=') {
        Some(_) => pair(&args.join, "--join")?,
        None => (args.join.clone(), args.join.clone()),
    };
    let clinical = Table::read(&args.clinical, &args.missing)?;
    for name in &args.boxes {
        clinical.column(name)?;
    }
    let columns = Columns {
        join_counts: &left,
        join_clinical: &right,
        patient: args.patient.as_deref(),
        hotspot: args.hotspot_column.as_deref(),
        density: args.density_column.as_deref(),
    };
    let mut sources = vec![(args.name.clone(), args.counts.clone())];
    for m in &args.method {
        let (name, file) = pair(m, "--method")?;
        if sources.iter().any(|(n, _)| *n == name) {
            bail!("--method {name}: this name is taken; rename it, or the main one with --name");
        }
        sources.push((name, file.into()));
    }
    let methods = sources
        .into_iter()
        .map(|(name, file)| {
            let cohort = Cohort::join(&file, &clinical, &columns)?;
            Ok(Method { name, slides: cohort.per_slide(&clinical)?, cohort })
        })
        .collect::<Result<Vec<_>>>()?;
    let study = protocol::analyse(args, &clinical, &methods)?;
    super::output::say("note", &study.notes);
    super::output::say("warning", &study.warnings);
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("{}: cannot be made", args.out.display()))?;
    let figures = figures::draw(args, &methods[0], &study)?;
    report::write(args, &clinical, &methods[0], &study, &figures)?;
    println!("{}", args.out.join("report.html").display());
    Ok(())
}
