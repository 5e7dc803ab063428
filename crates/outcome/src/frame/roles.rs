//! Which columns of a table play which part.

use crate::cohort::PatientRule;

/// Which columns play which part.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// Times, 0 or more, in any unit.
    pub time: String,
    /// Events: 1/0, true/false, 2/1 as R has it, or words such as Dead and Alive.
    pub event: String,
    /// The value that means the event; every other one is censored.
    pub event_value: Option<String>,
    /// Covariates: numbers as they are, texts coded against their first level.
    pub covariates: Vec<String>,
    /// Columns whose numbers are categories.
    pub categorical: Vec<String>,
    /// Columns whose combinations are groups.
    pub groups: Vec<String>,
    /// Columns whose combinations are strata.
    pub strata: Vec<String>,
    /// Independent units (patients with several rows), for robust errors; the rows stay.
    pub cluster: Option<String>,
    /// Patients: each becomes one row. Time, event, strata and weight must agree within a patient; covariates and
    /// groups that are numbers are combined by `patient_rule`, others must agree.
    pub patient: Option<String>,
    /// How numbers of a patient's rows become one: their maximum or mean.
    pub patient_rule: PatientRule,
    /// Case weights, above 0.
    pub weights: Option<String>,
}
