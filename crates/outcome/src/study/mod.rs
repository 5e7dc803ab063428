//! The paper's analysis of counts against outcomes: slides as units, together with
//! patient-level results.

mod compare;
mod model;
mod patients;
mod plan;
mod results;

pub(crate) use model::model;
pub(crate) use plan::FEATURES;
pub use plan::{Counts, CutPoints, NoName, NoPair, StudyPlan, column_name, joined_columns, pair};
pub use results::{
    Adjusted, CStudy, Compared, ComparedResult, Feature, LogRankStudy, Model, PValue, PatientLevel,
    PatientResult, Protocol, ProtocolBootstrap, Study, Tested,
};

use crate::cohort::{Cohort, Columns, DENSITY, NO_SUM, PATIENT, PatientRule};
use crate::error::{Error, Result};
use crate::frame::{Frame, Roles};
use crate::result::{diagnoses, few_events};
use crate::table::{Table, same_value};
use base::remedy::Setting;
use base::table::bare;
use model::c_result;
pub(crate) use results::{Cases, Joined};
use results::{SLIDES, Split};
use stats::interval::{holm, median};
use stats::survival::Survival;
use stats::survival::cox::likelihood_ratio;
use stats::survival::logrank::logrank;

/// Joins the counts with the clinical table and runs the whole protocol.
///
/// # Errors
/// When the tables do not join, a column or cell is wrong, or the plan is. A model without an
/// estimate is not an error: the result gives the reason in its place.
pub fn study(clinical: &Table, plan: &StudyPlan) -> Result<Study> {
    plan.check(clinical)?;
    let columns = Columns {
        join_counts: &plan.join.0,
        join_clinical: &plan.join.1,
        patient: plan.patient.as_deref(),
        hotspot: plan.hotspot_column.as_deref(),
        density: plan.density_column.as_deref(),
    };
    let joined = plan
        .methods
        .iter()
        .map(|m| {
            let cohort = Cohort::join(&m.table, clinical, &columns)?;
            let slides = cohort.per_slide(clinical)?;
            Ok((cohort, slides))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut apart = joined.iter().zip(&plan.methods).filter_map(|((cohort, _), m)| {
        let (path, reason) = (m.table.path().to_owned(), cohort.apart.clone()?);
        Some(Error::Content { path, reason, setting: None })
    });
    let apart = apart.next();
    analyse(clinical, plan, joined).map_err(|e| apart.unwrap_or(e))
}

/// The parts of columns in models of `covariates` and both counts.
fn roles(plan: &StudyPlan, covariates: &[String]) -> Roles {
    let counts = FEATURES.map(|(key, _)| key.to_owned());
    Roles {
        time: plan.time.clone(),
        event: plan.event.clone(),
        event_value: plan.event_value.clone(),
        categorical: plan.categorical.clone(),
        cluster: Some(PATIENT.into()),
        covariates: [covariates, &counts].concat(),
        ..Roles::default()
    }
}

/// A frame of these covariates and both counts, with times in the reported unit.
fn frame(plan: &StudyPlan, table: &Table, covariates: &[String]) -> Result<Frame> {
    reported(plan, table, Frame::read(table, &roles(plan, covariates))?)
}

/// A frame with times in the reported unit, and with columns in its notes as the user calls them.
fn reported(plan: &StudyPlan, table: &Table, mut frame: Frame) -> Result<Frame> {
    // A model has one of the counts.
    frame.allows(table, frame.names.len() - 1)?;
    let patient = plan.patient.as_deref().unwrap_or(&plan.join.1);
    frame.notes.iter_mut().for_each(|n| *n = n.replace(PATIENT, patient));
    if plan.time_scale != 1.0 {
        let time: Vec<f64> = frame.survival.time().iter().map(|t| t / plan.time_scale).collect();
        frame.survival = Survival::new(&time, frame.survival.event())?;
    }
    Ok(frame)
}

impl Cases {
    /// Every number is read once: models with covariates have the outcomes and counts of those without.
    fn of_slides(plan: &StudyPlan, table: Table) -> Result<Self> {
        let counts = frame(plan, &table, &[])?;
        let adjusted = match plan.covariates.as_slice() {
            [] => None,
            covariates => {
                let all = counts.with_covariates(&table, &roles(plan, &[]), covariates)?;
                Some(reported(plan, &table, all)?)
            }
        };
        Ok(Self { unit: SLIDES, table, counts, adjusted })
    }

    /// One row per patient, each of the complete rows of its slides, and the slides of the counts.
    fn of_patients(
        plan: &StudyPlan,
        clinical: &Table,
        cohort: &Cohort,
        slides: &Self,
    ) -> Result<(Self, Cohort)> {
        let complete = slides.adjusted.as_ref().map_or(&[][..], |f| &f.rows);
        let combined =
            patients::agreed(plan, cohort, &slides.table, &slides.counts, &[], complete)?;
        let table = combined.per_patient(clinical, plan.patient_rule)?;
        let adjusted = match &slides.adjusted {
            None => None,
            Some(f) => {
                let same = &plan.covariates;
                let part = patients::agreed(plan, cohort, &slides.table, f, same, complete)?;
                let table = part.per_patient(clinical, plan.patient_rule)?;
                Some(frame(plan, &table, same)?)
            }
        };
        let counts = frame(plan, &table, &[])?;
        Ok((Self { unit: "patients", table, counts, adjusted }, combined))
    }
}

#[expect(clippy::too_many_lines, reason = "the steps of the analysis in the order of the report")]
fn analyse(clinical: &Table, plan: &StudyPlan, methods: Vec<(Cohort, Table)>) -> Result<Study> {
    let mut methods = methods.into_iter();
    let Some((cohort, slides)) = methods.next() else {
        return Err(Error::plan(Setting::Methods, "no counts were given"));
    };
    let slides = Cases::of_slides(plan, slides)?;
    let (patients, combined) = Cases::of_patients(plan, clinical, &cohort, &slides)?;
    let main = Joined { slides, patients, cohort, combined };
    let others: Vec<(Cohort, Result<Frame>)> =
        methods.map(|(cohort, slides)| (cohort, frame(plan, &slides, &[]))).collect();
    let mut notes = main.cohort.notes.clone();
    let mut warnings: Vec<String> = main.cohort.incomplete().into_iter().collect();
    let outcome = &main.slides.counts;
    plan.check_horizon(outcome.survival.time())?;
    outcome.allows(&main.slides.table, outcome.names.len())?;
    notes.extend(outcome.notes.clone());
    let mut features = Vec::new();
    for (key, label) in FEATURES {
        features.push(feature(plan, &main.slides, key, label, &mut notes, &mut warnings)?);
    }
    let of_patients = main.cohort.slides.len() > main.cohort.patients();
    if of_patients {
        let rule = plan.patient_rule;
        // A warning about the model of patients that also applies to that of slides is given once.
        let (mut added, mut warned) = (Vec::new(), Vec::new());
        for f in &mut features {
            let (key, label) = (f.feature, f.label);
            let patients = feature(plan, &main.patients, key, label, &mut added, &mut warned)?;
            f.take_tests(patients, rule);
            if let Some(m) = &mut f.cox {
                m.not_valid = Some(format!(
                    "likelihood-ratio test, test of proportional hazards, and profile limits and tests: not valid, {} slides of {} \
                     patients are not independent; the Wald tests are robust to it, and `cox_patients` is of patients",
                    main.cohort.slides.len(),
                    main.cohort.patients()
                ));
            }
        }
        added.retain(|n| !notes.contains(n));
        notes.extend(added.into_iter().map(|n| format!("patients: {n}")));
    }
    for f in &features {
        for (what, model) in f.tested_models() {
            if let Some(t) = model.proportional_hazards.as_ref().filter(|t| t.p < 0.05) {
                warnings.push(format!(
                    "{}, {what}: the hazards are not proportional (test of Schoenfeld residuals, p = {}); the hazard ratio is an \
                     average over time",
                    f.label,
                    crate::numbers::show_p(t.p)
                ));
            }
        }
    }
    let comparison =
        compare::compare(plan, &compare::methods(plan, &main, &others), &mut notes, &mut warnings);
    let mut patient_level = Vec::new();
    let followed = &main.patients.counts;
    // Those with an outcome, as the slides are counted.
    let (patients, events_patients) = (followed.survival.len(), followed.survival.events());
    for rule in PatientRule::ALL {
        // The patients are the same, their counts others.
        let hotspots = main.combined.hotspots_of_patients(rule);
        let densities = main.combined.densities_of_patients(rule);
        let mut f = followed.clone();
        let density = |r: usize| densities.as_ref().map_or(0.0, |d| d[r]);
        f.x = f.rows.iter().flat_map(|&r| [hotspots[r], density(r)]).collect();
        if densities.is_none() {
            notes.push(format!("patients, {}: no density: {NO_SUM}", rule.name()));
        }
        for (key, label) in FEATURES {
            if key == DENSITY && densities.is_none() {
                continue;
            }
            let fitted = f.column(key).and_then(|j| model(plan, &f, &[j])).and_then(|cox| {
                let c_index = c_result(plan, &f, &cox.fit.linear_predictor, false)?;
                Ok(PatientResult::Found { cox: Box::new(cox), c_index })
            });
            let result = fitted.unwrap_or_else(|e| PatientResult::Failed { failed: e.to_string() });
            patient_level.push(PatientLevel {
                rule: rule.name(),
                feature: label,
                n: patients,
                events: events_patients,
                result,
            });
        }
    }
    if patients < main.cohort.patients() {
        let n = main.cohort.patients() - patients;
        notes.push(format!(
            "{n} of {} patients have no outcome and are left out",
            main.cohort.patients()
        ));
    }
    if let Some(line) = few_events(events_patients, 1 + plan.covariates.len()) {
        warnings.insert(0, format!("{line} ({events_patients} events among {patients} patients)"));
    }
    if of_patients {
        notes.push(format!(
            "{} slides of {} patients: tests, curves and p-values are of patients ({} of their slides); models over slides \
             have errors that are robust to clusters of patients",
            main.cohort.slides.len(),
            main.cohort.patients(),
            plan.patient_rule.name()
        ));
    }
    let raw: Vec<(String, f64)> = features.iter().flat_map(tests).collect();
    let p: Vec<f64> = raw.iter().map(|(_, p)| *p).collect();
    let adjusted = holm(&p)?;
    let p_values = raw
        .into_iter()
        .zip(adjusted)
        .map(|((test, p), p_holm)| PValue { test, p, p_holm })
        .collect();
    warnings.dedup();
    Ok(Study {
        schema: 1,
        protocol: Protocol::from_plan(plan),
        slides: outcome.survival.len(),
        patients,
        events_slides: outcome.survival.events(),
        events_patients,
        not_counted: main.cohort.incomplete,
        features,
        comparison,
        patient_level,
        p_values,
        notes,
        warnings,
        joined: main,
    })
}

/// The tests of the protocol, each with its p-value.
fn tests(f: &Feature) -> Vec<(String, f64)> {
    let mut out = Vec::new();
    let unit = f.other_unit();
    // Never the model over slides in place of one over patients that has no estimate.
    if let Some((_, m)) = f.tested_models().find(|(what, _)| *what == "alone") {
        out.push((format!("{}: Cox, count alone (likelihood ratio{unit})", f.label), m.lrt.p));
    }
    if let Some(Tested::Done { p, .. }) = f.logrank.as_ref().map(|s| &s.all) {
        out.push((format!("{}: log-rank at the cut-point{unit}", f.label), *p));
    }
    if let Some(a) = &f.adjusted {
        out.push((
            format!(
                "{}: likelihood ratio, covariates against covariates + count{unit}{}",
                f.label,
                if a.settled() { "" } else { " (fit not converged)" }
            ),
            a.lrt.p,
        ));
    }
    out.retain(|(_, p)| p.is_finite());
    out
}

fn feature(
    plan: &StudyPlan,
    cases: &Cases,
    key: &'static str,
    label: &'static str,
    notes: &mut Vec<String>,
    warnings: &mut Vec<String>,
) -> Result<Feature> {
    let f = &cases.counts;
    let column = f.column(key)?;
    let count = f.values(column);
    let mut out = Feature {
        feature: key,
        label,
        unit: SLIDES.to_owned(),
        cox_patients: None,
        n: f.survival.len(),
        events: f.survival.events(),
        failed: None,
        cox: None,
        c_index_fitted_risk: None,
        c_index_count_as_risk: c_result(plan, f, &count, true).ok(),
        logrank: None,
        adjusted: None,
    };
    match model(plan, f, &[column]) {
        Ok(m) => {
            warnings
                .extend(diagnoses(&m.fit, &m.names).into_iter().map(|d| format!("{label}: {d}")));
            out.c_index_fitted_risk = c_result(plan, f, &m.fit.linear_predictor, true).ok();
            out.cox = Some(m);
        }
        Err(error) => {
            warnings.push(format!("{label}: no Cox model: {error}"));
            out.failed = Some(format!("{error}"));
        }
    }
    let groups = split(plan, cases, key, &count, notes)?;
    if let Tested::Failed { failed } = &groups.all {
        warnings.push(format!("{label}: no log-rank test: {failed}"));
    }
    out.logrank = Some(groups);
    if let Some(f) = &cases.adjusted {
        for line in adjusted_notes(&cases.counts, f) {
            if !notes.contains(&line) {
                notes.push(line);
            }
        }
        let covariate = |c: &str| plan.covariates.iter().any(|name| name == c);
        let adjusted = model(plan, f, &f.columns_where(covariate)).and_then(|base| {
            let full = model(plan, f, &f.columns_where(|c| covariate(c) || c == key))?;
            let lrt = likelihood_ratio(&base.fit, &full.fit)?.into();
            Ok(Adjusted { base, full, lrt })
        });
        match adjusted {
            Ok(a) => {
                let lines = diagnoses(&a.full.fit, &a.full.names);
                warnings.extend(lines.into_iter().map(|d| format!("{label}, adjusted: {d}")));
                out.adjusted = Some(a);
            }
            Err(error) => warnings.push(format!("{label}: no adjusted model: {error}")),
        }
    }
    Ok(out)
}

/// What is to be known of the rows and covariates of adjusted models, where `counts` has the rows of the others.
fn adjusted_notes(counts: &Frame, adjusted: &Frame) -> Vec<String> {
    let (n, all) = (adjusted.survival.len(), counts.survival.len());
    let own = adjusted.notes.iter().filter(|n| !counts.notes.contains(n));
    if n < all {
        let own: String = own.map(|n| format!(" ({n})")).collect();
        return vec![format!(
            "adjusted models: {n} of {all} rows; the others lack a covariate{own}"
        )];
    }
    own.map(|n| format!("adjusted models: {n}")).collect()
}

fn split(
    plan: &StudyPlan,
    cases: &Cases,
    key: &str,
    count: &[f64],
    notes: &mut Vec<String>,
) -> Result<LogRankStudy> {
    let f = &cases.counts;
    let given = match &plan.cut {
        CutPoints::Fixed(cuts) => cuts.iter().find(|(name, _)| name == key).map(|(_, v)| *v),
        _ => None,
    };
    let mut held_out_rows = None;
    let (cut, cut_origin) = if let Some(v) = given {
        (v, "given".to_owned())
    } else if let CutPoints::Training { column, value } = &plan.cut {
        let (inside, outside) = training(cases, column, value, notes)?;
        let values: Vec<f64> = inside.iter().map(|&i| count[i]).collect();
        let (n, unit) = (inside.len(), cases.unit);
        let origin = format!("median of the {n} training {unit} ({column}={value})");
        held_out_rows = Some(outside);
        (median(&values)?, origin)
    } else {
        let line = "no training subset was named and no cut-point given: the cut-points are the \
                    whole cohort's medians, which departs from the protocol";
        if !notes.iter().any(|n| n == line) {
            notes.push(line.to_owned());
        }
        (median(count)?, "median of the whole cohort".to_owned())
    };
    let group: Vec<usize> = count.iter().map(|&v| usize::from(v > cut)).collect();
    let shown = (cut * 100.0).round() / 100.0;
    let all = Tested::from(logrank(&f.survival, &group, 2, None, 0.0));
    let held_out = held_out_rows.map(|rows| {
        let group: Vec<usize> = rows.iter().map(|&i| group[i]).collect();
        let part = f.survival.select(&rows);
        Tested::from(part.and_then(|part| logrank(&part, &group, 2, None, 0.0)))
    });
    let groups = [format!("{key} \u{2264} {shown}"), format!("{key} > {shown}")];
    let split = Split { group, survival: f.survival.clone() };
    Ok(LogRankStudy { cut, cut_origin, groups, all, held_out, split })
}

/// The rows of the training subset, and those outside; a row whose cell is missing is in neither.
fn training(
    cases: &Cases,
    column: &str,
    value: &str,
    notes: &mut Vec<String>,
) -> Result<(Vec<usize>, Vec<usize>)> {
    let (table, rows) = (&cases.table, &cases.counts.rows);
    let j = table.column(column)?;
    let cell = |i: &usize| table.cell(rows[*i], j);
    let (known, open): (Vec<usize>, Vec<usize>) = (0..rows.len()).partition(|i| cell(i).is_some());
    let is = |i: &usize| cell(i).is_some_and(|c| same_value(c, value));
    let (inside, outside): (Vec<usize>, Vec<usize>) = known.into_iter().partition(is);
    if inside.is_empty() {
        let reason = format!("no slide with an outcome has '{value}' in column '{column}'");
        return Err(Error::plan(Setting::Training, reason));
    }
    let wanted = bare(value);
    if let Some(&i) = outside.iter().find(|i| cell(i).is_some_and(|c| bare(c) == wanted)) {
        let reason = format!(
            "the training value '{value}' is spelt in several ways in this column ('{}', '{value}'); make them one",
            cell(&i).unwrap_or_default()
        );
        return Err(table.wrong(rows[i], j, reason));
    }
    if !open.is_empty() {
        let line = format!(
            "{} without a value in '{column}' are neither training nor held out",
            base::text::Many(open.len(), cases.unit.trim_end_matches('s'))
        );
        if !notes.contains(&line) {
            notes.push(line);
        }
    }
    Ok((inside, outside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const PATIENTS: usize = 24;

    fn table(name: &str, text: &str) -> Table {
        Table::parse(Path::new(name), text.as_bytes()).unwrap()
    }

    /// A study of 24 patients, each with so many slides, whose counts `count` gives.
    fn studied(slides: usize, count: impl Fn(usize, usize) -> f64) -> Study {
        studied_without(&[], slides, count)
    }

    /// The same, where the time of some patients is not known.
    fn studied_without(
        lost: &[usize],
        slides: usize,
        count: impl Fn(usize, usize) -> f64,
    ) -> Study {
        let mut clinical = String::from("id,months,died,age,part\n");
        let mut counts = String::from("slide,hotspot_count,density\n");
        for p in 0..PATIENTS {
            let (months, died) = (3 + (p * 17) % 61, u8::from(p % 3 != 1));
            let part = ["train", "test"][p % 2];
            let months = if lost.contains(&p) { "NA".to_owned() } else { months.to_string() };
            clinical += &format!("p{p:02},{months},{died},{},{part}\n", 40 + (p * 7) % 31);
            for s in 0..slides {
                let n = count(p, s);
                counts += &format!("p{p:02}-{s},{n},{}\n", 3.0 * n + (p % 5) as f64);
            }
        }
        let plan = StudyPlan::of_tests(table("counts.csv", &counts));
        study(&table("clinical.csv", &clinical), &plan).unwrap()
    }

    fn p_value_pairs(s: &Study) -> Vec<(f64, f64)> {
        s.p_values.iter().map(|t| (t.p, t.p_holm)).collect()
    }

    fn done(t: &Tested) -> (f64, f64, &[f64]) {
        match t {
            Tested::Done { chi2, p, observed, .. } => (*chi2, *p, observed),
            Tested::Failed { failed } => panic!("{failed}"),
        }
    }

    /// The same slides three times over add no knowledge: every test, curve and p-value is that of one slide per
    /// patient, and what is computed over slides is marked as not valid.
    #[test]
    fn several_slides_of_a_patient_change_no_test() {
        let count = |p: usize, _: usize| ((p * p * 5 + 3 * p) % 23) as f64;
        let (one, three) = (studied(1, count), studied(3, count));
        assert_eq!((one.slides, three.slides, three.patients), (PATIENTS, 3 * PATIENTS, PATIENTS));
        assert_eq!(
            p_value_pairs(&one).len(),
            6,
            "Cox, log-rank and likelihood ratio of two counts"
        );
        assert_eq!(p_value_pairs(&one), p_value_pairs(&three));
        assert!(three.p_values.iter().all(|t| t.test.contains("patients (max)")));
        for (a, b) in one.features.iter().zip(&three.features) {
            let (la, lb) = (a.logrank.as_ref().unwrap(), b.logrank.as_ref().unwrap());
            assert_eq!((la.cut, &la.split.group), (lb.cut, &lb.split.group));
            assert_eq!(la.split.survival.time(), lb.split.survival.time(), "the curves' rows");
            assert_eq!(done(&la.all), done(&lb.all));
            let held_out = |l: &LogRankStudy| done(l.held_out.as_ref().unwrap()).1;
            assert_eq!(held_out(la), held_out(lb));
            assert!(lb.cut_origin.contains("12 training patients"), "{}", lb.cut_origin);
            let hazards = |f: &Feature| {
                let tested = f.tested_models().map(|(_, m)| m.proportional_hazards.as_ref());
                tested.map(|t| t.unwrap().p).collect::<Vec<_>>()
            };
            assert_eq!(hazards(a), hazards(b));
            // The model over slides takes each patient for three: it stays for C, marked.
            let (slides, patients) = (b.cox.as_ref().unwrap(), b.cox_patients.as_ref().unwrap());
            assert!((slides.lrt.chi2 - patients.lrt.chi2).abs() > 1e-3 * patients.lrt.chi2);
            let why = slides.not_valid.as_ref().unwrap();
            assert!(why.contains("not valid, 72 slides of 24 patients"), "{why}");
            assert!(patients.not_valid.is_none() && a.cox.as_ref().unwrap().not_valid.is_none());
        }
        let json = serde_json::to_string(&three).unwrap();
        assert!(json.contains("\"not_valid\":\"likelihood-ratio test"), "{json}");
    }

    #[test]
    fn a_patient_without_a_time_is_left_out_and_noted() {
        let count = |p: usize, s: usize| ((p * p * 5 + 3 * p + s) % 23) as f64;
        let note = |s: &Study| s.notes.iter().find(|n| n.contains("have no outcome")).cloned();
        let all = studied(2, count);
        assert_eq!((all.patients, note(&all)), (PATIENTS, None));
        let some = studied_without(&[3, 7], 2, count);
        assert_eq!((some.patients, some.slides), (PATIENTS - 2, 2 * (PATIENTS - 2)));
        assert_eq!(
            note(&some).as_deref(),
            Some("2 of 24 patients have no outcome and are left out")
        );
        assert_ne!(p_value_pairs(&all), p_value_pairs(&some));
    }

    /// As for the counts under study, both resamples: slides, and patients.
    #[test]
    fn a_comparison_has_patients_resampled_too() {
        let s = studied(2, |p, s| ((p * p * 5 + 3 * p + s) % 23) as f64);
        for (compared, feature) in s.comparison.iter().zip(&s.features) {
            let ComparedResult::Found { c_index, .. } = &compared.result else { panic!("no C") };
            assert_eq!(Some(c_index), feature.c_index_fitted_risk.as_ref());
            assert!(c_index.patients.is_some());
            assert_eq!(compared.c_index_count_as_risk, feature.c_index_count_as_risk);
        }
    }

    #[test]
    fn without_areas_there_is_no_sum_of_densities_and_cases_with_lost_slides_are_lower_bounds() {
        let count = |p: usize, s: usize| ((p * p * 5 + 3 * p + s) % 23) as f64;
        let rules = |s: &Study| -> Vec<(&str, bool)> {
            let each = s.patient_level.iter().filter(|l| l.rule == "sum");
            each.map(|l| (l.feature, matches!(l.result, PatientResult::Found { .. }))).collect()
        };
        let no_areas = studied(2, count);
        assert_eq!(rules(&no_areas), [(FEATURES[0].1, true)]);
        assert!(
            no_areas.notes.iter().any(|n| n.contains("sum: no density")),
            "{:?}",
            no_areas.notes
        );
        assert_eq!(rules(&studied(1, count)), [(FEATURES[0].1, true), (FEATURES[1].1, true)]);
        let change = |plan: &mut StudyPlan| {
            let rows =
                (0..PATIENTS).map(|p| format!("p{p:02},{},{},{}\n", p * 5 % 23, p % 11, p % 2));
            let text =
                format!("slide,hotspot_count,density,not_counted\n{}", rows.collect::<String>());
            plan.methods[0].table = table("cases.csv", &text);
        };
        let lost = try_study(|p| ["train", "test"][p % 2], some_age, change, &[]).unwrap();
        let warning = "12 cases with slides that were not counted (not_counted): their counts are lower bounds";
        assert!(lost.warnings.iter().any(|w| w == warning), "{:?}", lost.warnings);
        assert_eq!((lost.not_counted, no_areas.not_counted), (12, 0));
        // Sums that the user asked for are refused.
        let sum = |plan: &mut StudyPlan| {
            let rows = (0..2 * PATIENTS).map(|k| format!("p{:02}-{k},{k},{}\n", k / 2, k % 11));
            let text = format!("slide,hotspot_count,density\n{}", rows.collect::<String>());
            plan.methods[0].table = table("counts.csv", &text);
            plan.patient_rule = PatientRule::Sum;
        };
        let refused = try_study(|p| ["train", "test"][p % 2], some_age, sum, &[]).unwrap_err();
        assert!(refused.to_string().contains("do not add up"), "{refused}");
    }

    /// Patients whose highest counts are all one: nothing to test, and no test of slides in its place.
    #[test]
    fn no_test_of_slides_replaces_one_of_patients() {
        let s = studied(2, |p, s| if s == 0 { 9.0 } else { ((p * 5) % 8) as f64 });
        let hotspot = &s.features[0];
        let slides = hotspot.cox.as_ref().unwrap().lrt.p;
        assert!(slides.is_finite());
        let same = |t: &&PValue| (t.p - slides).abs() < 1e-12;
        let found = s.p_values.iter().find(same);
        assert!(found.is_none(), "{:?}", found.map(|t| &t.test));
    }

    /// A study of 24 patients with one slide each, whose part and age may be changed.
    fn try_study(
        part: impl Fn(usize) -> &'static str,
        age: impl Fn(usize) -> String,
        change: impl Fn(&mut StudyPlan),
        missing: &[&str],
    ) -> Result<Study> {
        let mut clinical = String::from("id,months,died,age,part\n");
        let mut counts = String::from("slide,hotspot_count,density\n");
        for p in 0..PATIENTS {
            let (months, died) = (3 + (p * 17) % 61, u8::from(p % 3 != 1));
            clinical += &format!("p{p:02},{months},{died},{},{}\n", age(p), part(p));
            counts += &format!("p{p:02},{},{}\n", p * 5 % 23, p % 11);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clinical.csv");
        std::fs::write(&path, clinical).unwrap();
        let mut plan = StudyPlan::of_tests(table("counts.csv", &counts));
        change(&mut plan);
        let missing: Vec<String> = missing.iter().map(|&m| m.to_owned()).collect();
        study(&Table::read(&path, &missing)?, &plan)
    }

    fn some_age(p: usize) -> String {
        (40 + (p * 7) % 31).to_string()
    }

    #[test]
    fn the_training_subset_has_one_spelling_and_no_empty_cells() {
        let parts = |all: [&'static str; 3]| try_study(move |p| all[p % 3], some_age, |_| (), &[]);
        let refused = parts(["train", "Train", "test"]).unwrap_err().to_string();
        for words in ["column 'part', row 2", "('Train', 'train'); make them one"] {
            assert!(refused.contains(words), "{words}: {refused}");
        }
        let open = parts(["train", "", "test"]).unwrap();
        let line = "8 slides without a value in 'part' are neither training nor held out";
        assert_eq!(open.notes.iter().filter(|n| *n == line).count(), 1, "{:?}", open.notes);
        let (_, _, held_out) =
            done(open.features[0].logrank.as_ref().unwrap().held_out.as_ref().unwrap());
        // The events of the third of the patients that is of the test part.
        assert_eq!(held_out.iter().sum::<f64>(), 8.0);
        assert!(
            parts(["train", "test", "test"]).unwrap().notes.iter().all(|n| !n.contains("neither"))
        );
    }

    #[test]
    fn codes_of_the_clinical_table_are_not_those_of_the_counts() {
        let age = |p: usize| if p.is_multiple_of(6) { "15.0".to_owned() } else { some_age(p) };
        let part = |p: usize| ["train", "test"][p % 2];
        let coded = try_study(part, age, |_| (), &["15"]).unwrap();
        // An age of 15.0 is the code; a hotspot of 15 figures is a count.
        assert_eq!(coded.slides, PATIENTS);
        assert_eq!(coded.features[0].adjusted.as_ref().unwrap().full.n, PATIENTS - 4);
    }

    #[test]
    fn a_horizon_is_within_the_follow_up() {
        let part = |p: usize| ["train", "test"][p % 2];
        let at = |h: f64| try_study(part, some_age, |plan| plan.horizon = Some(h), &[]);
        for (horizon, words) in [
            (0.0, "the horizon 0 is not a positive number"),
            (-3.0, "not a positive number"),
            (99.0, "the horizon, 99 months, is after the last follow-up time, 61 months"),
        ] {
            let refused = at(horizon).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
        assert!(at(30.0).is_ok());
    }
}
