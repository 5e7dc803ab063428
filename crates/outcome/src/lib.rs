//! Counts joined to clinical tables: what `mithras survival` computes, as a library.
//!
//! Every analysis takes a [`Table`] and a plan and gives a result that serialises: numbers stay
//! numbers, and nothing is printed.
//!
//! ```
//! use outcome::{Counts, StudyPlan, Table, study};
//! use std::path::Path;
//!
//! let clinical = "patient,months,died,age\np1,5,1,61\np2,9,1,70\np3,12,0,55\np4,20,1,48\n\
//!                 p5,24,0,66\np6,30,1,59\np7,33,0,52\np8,40,0,63\n";
//! let counts = "slide,hotspot_count,density_per_20_mm2\np1,14,40\np2,3,9\np3,6,21\np4,11,35\n\
//!               p5,2,4\np6,5,12\np7,1,3\np8,4,8\n";
//! let clinical = Table::parse(Path::new("clinical.csv"), clinical.as_bytes())?;
//! let plan = StudyPlan {
//!     methods: vec![Counts::new("MiTHras", Table::parse(Path::new("counts.csv"), counts.as_bytes())?)],
//!     join: ("slide".into(), "patient".into()),
//!     time: "months".into(),
//!     event: "died".into(),
//!     covariates: vec!["age".into()],
//!     replicates: 200,
//!     ..StudyPlan::default()
//! };
//! let study = study(&clinical, &plan)?;
//! assert_eq!((study.slides, study.events_slides), (8, 4));
//! let hotspot = &study.features[0];
//! let ratio = hotspot.cox.as_ref().unwrap().coefficients[0].ratio().unwrap();
//! assert!(ratio.hazard_ratio > 1.0, "more figures, an earlier event");
//! assert!(hotspot.c_index_fitted_risk.as_ref().unwrap().c > 0.5);
//! # Ok::<(), outcome::Error>(())
//! ```

#![forbid(unsafe_code)]

mod cindex;
mod cohort;
mod counts;
mod cox;
mod display;
mod error;
mod frame;
mod grade;
mod km;
mod logrank;
mod lrt;
pub mod numbers;
#[cfg(feature = "report")]
mod report;
mod result;
mod status;
mod study;
mod table;

pub use base::remedy::Setting;
pub use cindex::{Bootstraps, CIndex, CIndexPlan, RiskSource, c_index};
pub use cohort::PatientRule;
pub use cox::{
    Baseline, BaselinePoint, CoxModel, CoxPlan, Limits, ProportionalHazards, TermTest, cox,
};
pub use error::{Error, Result};
pub use frame::Roles;
pub use grade::{GradePlan, Graded, Grades, Rule, Scheme, grade};
pub use km::{Curve, CurveAt, CurvePoint, Curves, CurvesPlan, kaplan_meier};
pub use logrank::{Cut, GroupLine, LogRank, LogRankPlan, log_rank};
pub use lrt::{LikelihoodRatio, LrtPlan, NestedModel, likelihood_ratio};
#[cfg(feature = "report")]
pub use report::{check_folder, write as write_report};
pub use result::{Agreement, Coefficient, PairCounts, Ratio, Resampled, Rest, Summary, Test};
pub use stats::survival::cox::{Ties, TimeTransform};
pub use stats::survival::km::IntervalType;
pub use study::{
    Adjusted, CStudy, Compared, ComparedResult, Counts, CutPoints, Feature, LogRankStudy, Model,
    NoName, NoPair, PValue, PatientLevel, PatientResult, Protocol, ProtocolBootstrap, Study,
    StudyPlan, Tested, column_name, joined_columns, pair, study,
};
pub use table::Table;

pub(crate) fn ties_name(ties: Ties) -> &'static str {
    match ties {
        Ties::Efron => "efron",
        Ties::Breslow => "breslow",
    }
}

/// A level in (0, 1).
pub(crate) fn check_level(level: f64) -> Result<()> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    let reason = format!("the level {level} is outside (0, 1); 0.95 means 95 %");
    Err(Error::plan(Setting::Level, reason))
}
