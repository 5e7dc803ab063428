//! `mithras survival`: outcome statistics of a table, and the whole study from counts to report.

mod cindex;
mod cox;
mod grade;
mod km;
mod logrank;
mod lrt;
mod study;

use super::columns::{Columns, all};
use super::engine::words;
use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};
use outcome::{PatientRule, Roles, Table, column_name};
use std::path::PathBuf;

/// Survival statistics equal to R's package survival
#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Cox's proportional-hazards model
    Cox(cox::Args),
    /// Kaplan-Meier curves, one per group
    Km(km::Args),
    /// Log-rank test between groups
    Logrank(logrank::Args),
    /// Harrell's C-index of a risk, with its pair counts
    Cindex(cindex::Args),
    /// Likelihood-ratio test between nested Cox models
    Lrt(lrt::Args),
    /// Counts of a detection run + clinical table -> the whole analysis as a report
    Study(study::Args),
    /// Mitotic scores of a grading scheme for the counts of a detection run
    Grade(grade::Args),
}

/// Runs one of the subcommands.
pub fn run(args: Args) -> Result<()> {
    match args.command {
        Command::Cox(a) => cox::run(&a),
        Command::Km(a) => km::run(&a),
        Command::Logrank(a) => logrank::run(&a),
        Command::Cindex(a) => cindex::run(&a),
        Command::Lrt(a) => lrt::run(&a),
        Command::Study(a) => study::run(&a),
        Command::Grade(a) => grade::run(&a),
    }
}

/// Where the data are and which columns play which part.
#[derive(ClapArgs, Debug, Clone)]
struct Input {
    /// CSV, TSV or Parquet file with a header
    #[arg(long, value_name = "FILE")]
    table: PathBuf,
    /// Column of times, >= 0, any unit
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    time: String,
    /// Column of events: 1/0, true/false, 2/1 as R has it, or words such as Dead and Alive
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    event: String,
    /// The value of the event column that means the event; every other value is censored
    #[arg(long, value_name = "VALUE")]
    event_value: Option<String>,
    /// Columns whose numbers are categories; texts always are, coded against the first sorted level.
    /// In every option put a name that contains a comma in quotation marks: '"Age, years",sex'
    #[arg(long, value_name = "COLUMNS")]
    categorical: Vec<Columns>,
    /// Further cell texts that mean "missing". Empty cells and the usual marks of R, Excel, GDC,
    /// cBioPortal and REDCap already do
    #[arg(long, value_name = "TEXTS", allow_negative_numbers = true)]
    missing: Vec<Columns>,
    /// Columns whose combinations are strata
    #[arg(long, value_name = "COLUMNS")]
    strata: Vec<Columns>,
    /// Column of patients: each becomes one row. Time and event must agree within a patient, numbers are combined by
    /// --patient-rule. Rows of one patient are refused unless this or --cluster names its column
    #[arg(long, value_name = "COLUMN", value_parser = column_name, conflicts_with = "cluster")]
    patient: Option<String>,
    /// How numbers of a patient's rows become one: max or mean
    #[arg(long, default_value = "max", requires = "patient", value_parser = words::<PatientRule>(&["max", "mean"]))]
    patient_rule: PatientRule,
    /// Column of independent units (patients with several rows): the rows stay, with robust errors
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    cluster: Option<String>,
    /// Column of case weights, > 0
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    weights: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

impl Input {
    fn table(&self) -> Result<Table, outcome::Error> {
        Table::read(&self.table, &all(&self.missing))
    }

    fn roles(&self, covariates: &[String]) -> Roles {
        Roles {
            time: self.time.clone(),
            event: self.event.clone(),
            event_value: self.event_value.clone(),
            categorical: all(&self.categorical),
            strata: all(&self.strata),
            cluster: self.cluster.clone(),
            patient: self.patient.clone(),
            patient_rule: self.patient_rule,
            weights: self.weights.clone(),
            covariates: covariates.to_vec(),
            groups: Vec::new(),
        }
    }
}
