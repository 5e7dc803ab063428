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

/// `A=B` as its two parts, each of which may be in quotation marks.
///
/// # Errors
/// Text without `=`, or with nothing on a side.
pub fn pair(text: &str) -> Result<(String, String), NoPair> {
    // Of a name in quotation marks the = is a part.
    let behind = text.strip_prefix('"').and_then(|t| t.find("\"=")).map_or(0, |at| at + 2);
    match text[behind..].split_once('=') {
        Some((a, b)) if behind + a.len() > 0 && !b.is_empty() => {
            let name = |text: &str| column_name(text).map_err(|_| NoPair(text.to_owned()));
            Ok((name(&text[..behind + a.len()])?, name(b)?))
        }
        _ => Err(NoPair(text.to_owned())),
    }
}

/// The columns that join two tables: `A=B`, or one name for both.
///
/// # Errors
/// [`NoPair`].
pub fn joined_columns(text: &str) -> Result<(String, String), NoPair> {
    if text.contains('=') {
        return pair(text);
    }
    let name = column_name(text).map_err(|_| NoPair(text.to_owned()))?;
    Ok((name.clone(), name))
}

/// A name of a column, without the quotation marks that a name with a comma has in a list of names.
///
/// # Errors
/// [`NoName`].
pub fn column_name(text: &str) -> Result<String, NoName> {
    let Some(inner) = text.strip_prefix('"') else { return Ok(text.to_owned()) };
    let inner = inner.strip_suffix('"').ok_or(NoName::Open)?;
    if inner.replace("\"\"", "").contains('"') {
        return Err(NoName::Behind);
    }
    Ok(inner.replace("\"\"", "\""))
}

/// Text in quotation marks that is not one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoName {
    /// The mark is not closed.
    #[error("a quotation mark is not closed")]
    Open,
    /// Text after the mark.
    #[error("text follows a closing quotation mark")]
    Behind,
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
        let cut_point = |text: &String| {
            let (name, value) = pair(text)?;
            let number = value.parse().ok().filter(|v: &f64| v.is_finite());
            Ok((name, number.ok_or_else(|| NoPair(text.clone()))?))
        };
        let fixed = fixed.iter().map(cut_point).collect::<Result<Vec<_>, NoPair>>()?;
        Ok(if fixed.is_empty() { Self::Cohort } else { Self::Fixed(fixed) })
    }
}

/// Which counts are tested against which outcome, and how.
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
    /// Where counts are cut into low and high.
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
    /// Refuses a horizon after the last of the follow-up times.
    pub(super) fn check_horizon(&self, times: &[f64]) -> Result<()> {
        let last = times.iter().copied().fold(0.0, f64::max);
        match self.horizon {
            Some(horizon) if horizon > last => {
                let unit = &self.time_unit;
                let reason = format!(
                    "the horizon, {horizon} {unit}, is after the last follow-up time, {last} {unit}"
                );
                Err(Error::plan(Setting::Horizon, reason))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check(&self, clinical: &Table) -> Result<()> {
        if !(self.time_scale.is_finite() && self.time_scale > 0.0) {
            let reason = format!("the time scale {} is not a positive number", self.time_scale);
            return Err(Error::plan(Setting::TimeScale, reason));
        }
        if let Some(horizon) = self.horizon.filter(|h| !(h.is_finite() && *h > 0.0)) {
            let reason = format!("the horizon {horizon} is not a positive number");
            return Err(Error::plan(Setting::Horizon, reason));
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

#[cfg(test)]
impl StudyPlan {
    /// Of made-up patients, in the columns of the tests' clinical tables.
    pub(super) fn of_tests(counts: Table) -> Self {
        Self {
            methods: vec![Counts::new("M", counts)],
            join: ("slide".into(), "id".into()),
            time: "months".into(),
            event: "died".into(),
            covariates: vec!["age".into()],
            cut: CutPoints::Training { column: "part".into(), value: "train".into() },
            replicates: 20,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_quotation_marks() {
        let name = |text: &str| column_name(text);
        assert_eq!(name("age").unwrap(), "age");
        assert_eq!(name("start,stop").unwrap(), "start,stop");
        assert_eq!(name("\"Age, years\"").unwrap(), "Age, years");
        assert_eq!(name("\"a \"\"b\"\"\"").unwrap(), "a \"b\"");
        assert!(name("\"Age").is_err() && name("\"a\"b\"").is_err() && name("\"").is_err());
        let two = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(pair("\"Part, all\"=train"), two("Part, all", "train"));
        assert_eq!(pair("\"a=b\"=\"c, d\""), two("a=b", "c, d"));
        assert_eq!(joined_columns("slide=\"Id, new\""), two("slide", "Id, new"));
        assert_eq!(joined_columns("\"Id, new\""), two("Id, new", "Id, new"));
        assert!(pair("=b").is_err() && pair("a=").is_err() && pair("ab").is_err());
    }
}
