//! `mithras survival study`: from the counts of a detection run to the paper's whole analysis.

use super::input::{Columns, all, choice};
use anyhow::{Context, Result};
use outcome::{
    Counts, CutPoints, PatientRule, StudyPlan, Table, Ties, column_name, joined_columns, pair,
};
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
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    time: String,
    /// Clinical column of events: 1/0, true/false, or 2/1 as R has it
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    event: String,
    /// The value of the event column that means the event
    #[arg(long, value_name = "VALUE")]
    event_value: Option<String>,
    /// Adjustment covariates, e.g. age,sex
    #[arg(long, value_name = "COLUMNS")]
    covariates: Vec<Columns>,
    /// Clinical columns to draw box plots by, e.g. grade,diagnosis
    #[arg(long, visible_alias = "grade", value_name = "COLUMNS")]
    boxes: Vec<Columns>,
    /// Clinical column of the patient (default: the join column)
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
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
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    hotspot_column: Option<String>,
    /// Column of densities (default: density_per_20_mm2)
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    density_column: Option<String>,
    /// How the slides of a patient become one count in patient-level results
    #[arg(long, default_value = "max", value_parser = choice::<PatientRule>(PatientRule::WORDS))]
    patient_rule: PatientRule,
    /// Tied events
    #[arg(long, default_value = "efron", value_parser = choice::<Ties>(Ties::WORDS))]
    ties: Ties,
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
    #[arg(long, value_name = "COLUMNS")]
    categorical: Vec<Columns>,
    /// Further cell texts that mean "missing"
    #[arg(long, value_name = "TEXTS", allow_negative_numbers = true)]
    missing: Vec<Columns>,
    /// Folder of the report: report.html, results.json, cohort tables, pictures
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Replace a report of another question (other columns, unit of time, seed) in the folder
    #[arg(long)]
    overwrite: bool,
}

impl Args {
    fn plan(&self) -> Result<StudyPlan> {
        let mut methods = vec![Counts::new(&self.name, Table::read(&self.counts, &[])?)];
        for m in &self.method {
            let (name, file) = pair(m).context("--method")?;
            methods.push(Counts::new(name, Table::read(file.as_ref(), &[])?));
        }
        Ok(StudyPlan {
            methods,
            join: joined_columns(&self.join).context("--join")?,
            time: self.time.clone(),
            event: self.event.clone(),
            event_value: self.event_value.clone(),
            covariates: all(&self.covariates),
            categorical: all(&self.categorical),
            boxes: all(&self.boxes),
            patient: self.patient.clone(),
            cut: CutPoints::from_options(self.train.as_deref(), &self.cut)
                .context("--train, --cut")?,
            hotspot_column: self.hotspot_column.clone(),
            density_column: self.density_column.clone(),
            patient_rule: self.patient_rule,
            ties: self.ties,
            replicates: self.replicates,
            seed: self.seed,
            horizon: self.horizon,
            time_unit: self.time_unit.clone(),
            time_scale: self.time_scale,
        })
    }
}

pub fn run(args: &Args) -> Result<()> {
    let clinical = Table::read(&args.clinical, &all(&args.missing))?;
    let plan = args.plan()?;
    if !args.overwrite {
        outcome::check_folder(&args.out, &plan)?;
    }
    let study = outcome::study(&clinical, &plan)?;
    crate::show::print_messages("note", &study.notes);
    crate::show::print_messages("warning", &study.warnings);
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("{}: cannot be made", args.out.display()))?;
    outcome::write_report(&args.out, &plan, &study)?;
    outln!("{}", args.out.join("report.html").display());
    Ok(())
}
