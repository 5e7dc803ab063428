//! What a study is asked.

use crate::cohort::{DENSITY, HOTSPOT, PatientRule};
use crate::error::{Error, Result};
use crate::table::Table;
use base::remedy::Setting;
use stats::survival::cox::Ties;

/// The two counts with their names for people.
pub(crate) const FEATURES: [(&str, &str); 2] =
    [(HOTSPOT, "Hotspot count (2 mm\u{b2})"), (DENSITY, "Density (per 20 mm\u{b2})")];

/// The counts of one method.
#[derive(Clone, Debug)]
pub struct Counts {
    /// The method's name.
    pub name: String,
    /// One row per slide, as a detection run writes it.
    pub table: Table,
}

impl Counts {
    /// The counts of a method.
    #[must_use]
    pub fn new(name: impl Into<String>, table: Table) -> Self {
        Self { name: name.into(), table }
    }
}

/// Where the log-rank test cuts the counts in two: at most, and above.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CutPoints {
    /// The whole cohort's medians, which departs from the protocol.
    #[default]
    Cohort,
    /// The medians of the slides that hold this value in this column.
    Training {
        /// The column.
        column: String,
        /// The value.
        value: String,
    },
    /// Fixed elsewhere, for `hotspot` and `density`.
    Fixed(Vec<(String, f64)>),
}

/// `A=B` as its two parts.
///
/// # Errors
/// Text without `=`, or with nothing on a side.
pub fn pair(text: &str) -> Result<(String, String), NoPair> {
    match text.split_once('=') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() => Ok((a.to_owned(), b.to_owned())),
        _ => Err(NoPair(text.to_owned())),
    }
}

/// Text that is not two parts, or whose second part is not a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not of the form A=B, or its B is not a number where one is needed")]
pub struct NoPair(String);

impl CutPoints {
    /// The medians of the subset `COLUMN=VALUE`, else the cut-points `FEATURE=NUMBER`, else the whole
    /// cohort's medians.
    ///
    /// # Errors
    /// [`NoPair`].
    pub fn from_options(training: Option<&str>, fixed: &[String]) -> Result<Self, NoPair> {
        if let Some(training) = training {
            let (column, value) = pair(training)?;
            return Ok(Self::Training { column, value });
        }
        let one = |text: &String| {
            let (name, value) = pair(text)?;
            let number = value.parse().ok().filter(|v: &f64| v.is_finite());
            Ok((name, number.ok_or_else(|| NoPair(text.clone()))?))
        };
        let fixed = fixed.iter().map(one).collect::<Result<Vec<_>, NoPair>>()?;
        Ok(if fixed.is_empty() { Self::Cohort } else { Self::Fixed(fixed) })
    }
}

/// Which study.
#[derive(Clone, Debug)]
pub struct StudyPlan {
    /// The method under study, then those that its C-index is compared with.
    pub methods: Vec<Counts>,
    /// Columns that join counts and clinical table. A slide matches the key it equals, or else the
    /// longest one that it begins with.
    pub join: (String, String),
    /// Clinical column of times.
    pub time: String,
    /// Clinical column of events.
    pub event: String,
    /// The value that means the event.
    pub event_value: Option<String>,
    /// Adjustment covariates.
    pub covariates: Vec<String>,
    /// Columns whose numbers are categories.
    pub categorical: Vec<String>,
    /// Clinical columns that box plots are drawn by.
    pub boxes: Vec<String>,
    /// Clinical column of the patient; the join column if absent.
    pub patient: Option<String>,
    /// Cut-points.
    pub cut: CutPoints,
    /// Column of hotspot counts, if not a usual one.
    pub hotspot_column: Option<String>,
    /// Column of densities, if not a usual one.
    pub density_column: Option<String>,
    /// How the slides of a patient become one count in the cohort's table of patients.
    pub patient_rule: PatientRule,
    /// Tied events.
    pub ties: Ties,
    /// Bootstrap replicates; the paper has 1,000.
    pub replicates: usize,
    /// Seed of the bootstraps.
    pub seed: u64,
    /// Time at which calibration is judged; the median event time if absent.
    pub horizon: Option<f64>,
    /// Name of the time unit.
    pub time_unit: String,
    /// Times are divided by this first.
    pub time_scale: f64,
}

impl Default for StudyPlan {
    fn default() -> Self {
        Self {
            methods: Vec::new(),
            join: ("slide".into(), "slide".into()),
            time: String::new(),
            event: String::new(),
            event_value: None,
            covariates: Vec::new(),
            categorical: Vec::new(),
            boxes: Vec::new(),
            patient: None,
            cut: CutPoints::Cohort,
            hotspot_column: None,
            density_column: None,
            patient_rule: PatientRule::Max,
            ties: Ties::Efron,
            replicates: 1000,
            seed: 0,
            horizon: None,
            time_unit: "months".into(),
            time_scale: 1.0,
        }
    }
}

impl StudyPlan {
    pub(super) fn check(&self, clinical: &Table) -> Result<()> {
        if !(self.time_scale.is_finite() && self.time_scale > 0.0) {
            let reason = format!("the time scale {} is not a positive number", self.time_scale);
            return Err(Error::plan(Setting::TimeScale, reason));
        }
        if self.replicates == 0 {
            let reason = "0 replicates: the protocol needs resamples (1000 in the paper)";
            return Err(Error::plan(Setting::Replicates, reason));
        }
        for name in &self.boxes {
            clinical.column(name)?;
        }
        if self.methods.is_empty() {
            return Err(Error::plan(Setting::Methods, "no counts were given"));
        }
        for (i, m) in self.methods.iter().enumerate() {
            if self.methods[..i].iter().any(|other| other.name == m.name) {
                let reason = format!("two methods are called '{}'; rename one", m.name);
                return Err(Error::plan(Setting::Methods, reason));
            }
        }
        if let CutPoints::Fixed(cuts) = &self.cut {
            for (name, value) in cuts {
                if !FEATURES.iter().any(|(key, _)| key == name) {
                    let reason =
                        format!("no feature '{name}': the features are hotspot and density");
                    return Err(Error::plan(Setting::Cut, reason));
                }
                if !value.is_finite() {
                    let reason = format!("the cut-point of {name} is {value}, not a number");
                    return Err(Error::plan(Setting::Cut, reason));
                }
            }
        }
        Ok(())
    }
}
