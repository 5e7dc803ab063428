//! A table of cases, and which columns play which part.

pub(super) use crate::command::columns::{Columns, all};
pub(super) use crate::command::engine::choice;
use outcome::{PatientRule, Roles, Table, column_name};

/// Where the data are and which columns play which part.
#[derive(clap::Args, Debug, Clone)]
pub(super) struct Input {
    /// CSV, TSV or Parquet file with a header
    #[arg(long, value_name = "FILE")]
    pub(super) table: std::path::PathBuf,
    /// Column of times, >= 0, any unit
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    pub(super) time: String,
    /// Column of events: 1/0, true/false, 2/1 as R has it, or words such as Dead and Alive
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    pub(super) event: String,
    /// The value of the event column that means the event; every other value is censored
    #[arg(long, value_name = "VALUE")]
    pub(super) event_value: Option<String>,
    /// Columns whose numbers are categories; texts always are, coded against the first sorted level.
    /// In every option put a name that contains a comma in quotation marks: '"Age, years",sex'
    #[arg(long, value_name = "COLUMNS")]
    pub(super) categorical: Vec<Columns>,
    /// Further cell texts that mean "missing". Empty cells and the usual marks of R, Excel, GDC,
    /// cBioPortal and REDCap already do
    #[arg(long, value_name = "TEXTS", allow_negative_numbers = true)]
    pub(super) missing: Vec<Columns>,
    /// Columns whose combinations are strata
    #[arg(long, value_name = "COLUMNS")]
    pub(super) strata: Vec<Columns>,
    /// Column of patients: each becomes one row. Time and event must agree within a patient, numbers are combined by
    /// --patient-rule. Rows of one patient are refused unless this or --cluster names its column
    #[arg(long, value_name = "COLUMN", value_parser = column_name, conflicts_with = "cluster")]
    pub(super) patient: Option<String>,
    /// How numbers of a patient's rows become one: max or mean
    #[arg(long, default_value = "max", requires = "patient", value_parser = choice::<PatientRule>(&["max", "mean"]))]
    pub(super) patient_rule: PatientRule,
    /// Column of independent units (patients with several rows): the rows stay, with robust errors
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    cluster: Option<String>,
    /// Column of case weights, > 0
    #[arg(long, value_name = "COLUMN", value_parser = column_name)]
    weights: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

impl Input {
    pub(super) fn table(&self) -> Result<Table, outcome::Error> {
        Table::read(&self.table, &all(&self.missing))
    }

    pub(super) fn roles(&self, covariates: &[String]) -> Roles {
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
