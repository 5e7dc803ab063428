//! The paper's analysis (S1, S2, S5) with patient-level figures beside the slide-level ones.

use super::super::cohort::{DENSITY, HOTSPOT, PATIENT, PatientRule};
use super::super::frame::{Frame, Roles};
use super::super::output::{chi2, coefficients, diagnoses, few_events};
use super::super::table::Table;
use super::{Args, Method, pair};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use stats::bootstrap::{Bootstrap, Plan};
use stats::interval::{holm, median};
use stats::survival::concordance::{Concordance, Pairs};
use stats::survival::cox::{
    Coefficient, CoxFit, Diagnosis, Options, TimeTransform, fit, likelihood_ratio,
};
use stats::survival::logrank::{LogRank, logrank};
use stats::survival::{ChiSquared, Survival};

/// The two count features with their names for people.
pub const FEATURES: [(&str, &str); 2] =
    [(HOTSPOT, "Hotspot count (2 mm\u{b2})"), (DENSITY, "Density (per 20 mm\u{b2})")];

/// A C-index with its bootstraps.
pub struct CResult {
    pub c: Concordance,
    /// Slides resampled, fitted risks fixed: the paper's interval.
    pub slides: Bootstrap,
    /// Patients resampled.
    pub patients: Option<Bootstrap>,
}

/// Groups at a cut-point.
pub struct Split {
    pub cut: f64,
    pub origin: String,
    pub names: [String; 2],
    /// 0 or 1 per row of `survival`.
    pub group: Vec<usize>,
    pub survival: Survival,
    pub test: std::result::Result<LogRank, String>,
    /// The test on rows outside the training subset.
    pub held_out: Option<std::result::Result<LogRank, String>>,
}

/// Everything about one feature.
pub struct Feature {
    pub key: &'static str,
    pub label: &'static str,
    pub n: usize,
    pub events: usize,
    /// Why there is no model, if there is none.
    pub failed: Option<String>,
    pub univariable: Option<Model>,
    pub c_fitted: Option<CResult>,
    pub c_count: Option<CResult>,
    pub split: Option<Split>,
    pub adjusted: Option<Adjusted>,
}

/// A fit with its names.
pub struct Model {
    pub fit: CoxFit,
    pub names: Vec<String>,
    /// Names for people: a factor's column and level apart.
    pub labels: Vec<String>,
    /// Standard deviation of each covariate; 1 for indicators.
    pub sd: Vec<f64>,
    pub zph: Option<ChiSquared>,
}

impl Model {
    /// Hazard ratio per standard deviation with its 95 % limits.
    pub fn ratio_per_sd(&self, j: usize) -> Option<(f64, f64, f64, Coefficient)> {
        let c = self.fit.coefficient(j)?;
        let sd = self.sd[j];
        let scaled = Coefficient { beta: c.beta * sd, se: c.se * sd, ..c };
        let (estimate, lower, upper) = scaled.hazard_ratio(0.95);
        Some((estimate, lower, upper, c))
    }
}

/// Base against base + count.
pub struct Adjusted {
    pub base: Model,
    pub full: Model,
    pub test: ChiSquared,
}

impl Adjusted {
    /// Whether both likelihoods reached their maximum (an infinite coefficient does not prevent
    /// that), so that the test means something.
    fn settled(&self) -> bool {
        let open = |d: &Diagnosis| matches!(d, Diagnosis::NotConverged { .. });
        ![&self.base, &self.full].iter().any(|m| m.fit.diagnoses.iter().any(open))
    }
}

/// One row of the comparison over methods.
pub struct Compared {
    pub method: String,
    pub label: &'static str,
    pub feature: usize,
    pub result: std::result::Result<CResult, String>,
}

/// One patient-level result.
pub struct PatientLevel {
    pub rule: PatientRule,
    pub label: &'static str,
    pub n: usize,
    pub events: usize,
    pub result: std::result::Result<(Model, CResult), String>,
}

/// The whole analysis.
pub struct Study {
    pub slides: usize,
    pub patients: usize,
    pub events_slides: usize,
    pub events_patients: usize,
    pub features: Vec<Feature>,
    pub comparison: Vec<Compared>,
    pub patient_level: Vec<PatientLevel>,
    /// Test, p, Holm-adjusted p.
    pub p_values: Vec<(String, f64, f64)>,
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
}

fn roles(args: &Args, covariates: Vec<String>) -> Roles {
    Roles {
        time: args.time.clone(),
        event: args.event.clone(),
        event_value: args.event_value.clone(),
        categorical: args.categorical.clone(),
        cluster: Some(PATIENT.into()),
        covariates,
        ..Roles::default()
    }
}

/// A frame with times in the reported unit.
pub fn frame(args: &Args, table: &Table, covariates: Vec<String>) -> Result<Frame> {
    let mut frame = Frame::new(table, &roles(args, covariates))?;
    if args.time_scale != 1.0 {
        let time: Vec<f64> = frame.survival.time().iter().map(|t| t / args.time_scale).collect();
        frame.survival = Survival::new(&time, frame.survival.event())?;
    }
    Ok(frame)
}

fn plan(args: &Args) -> Plan {
    Plan { replicates: args.replicates, seed: args.seed, level: 0.95 }
}

pub fn model(args: &Args, frame: &Frame, columns: &[usize]) -> Result<Model> {
    let mut buffer = Vec::new();
    let data = frame.cox(columns, &mut buffer)?;
    let fitted = fit(&data, &Options { ties: args.ties.into(), ..Options::default() })?;
    let terms: Vec<usize> = columns.iter().map(|&j| frame.terms[j]).collect();
    let zph = fitted.proportional_hazards(&data, TimeTransform::Km, &terms).ok();
    let sd = columns
        .iter()
        .map(|&j| {
            let p = frame.names.len();
            let values: Vec<f64> = frame.x.iter().skip(j).step_by(p).copied().collect();
            let indicator = values.iter().all(|v| *v == 0.0 || *v == 1.0);
            let sd = stats::metrics::summarize(&values).ok().and_then(|s| s.sd);
            if indicator { 1.0 } else { sd.unwrap_or(1.0) }
        })
        .collect();
    Ok(Model {
        names: columns.iter().map(|&j| frame.names[j].clone()).collect(),
        labels: columns.iter().map(|&j| frame.label(j)).collect(),
        sd,
        zph: zph.map(|z| z.global),
        fit: fitted,
    })
}

fn c_result(args: &Args, frame: &Frame, risk: &[f64], clusters: bool) -> Result<CResult> {
    let pairs = Pairs::new(&frame.survival, risk, None, None)?;
    let cluster = frame.cluster.as_deref();
    Ok(CResult {
        c: pairs.concordance(cluster)?,
        slides: pairs.bootstrap(plan(args))?,
        patients: match cluster {
            Some(c) if clusters => Some(pairs.bootstrap_clusters(c, plan(args))?),
            _ => None,
        },
    })
}

/// Runs everything.
pub fn analyse(args: &Args, clinical: &Table, methods: &[Method]) -> Result<Study> {
    let main = &methods[0];
    let mut notes = main.cohort.notes.clone();
    let mut warnings = Vec::new();
    let outcome = frame(args, &main.slides, vec![HOTSPOT.into(), DENSITY.into()])?;
    notes.extend(outcome.notes.clone());
    let mut features = Vec::new();
    for (key, label) in FEATURES {
        features.push(feature(args, main, key, label, &mut notes, &mut warnings)?);
    }
    let mut comparison = Vec::new();
    for (index, (key, label)) in FEATURES.into_iter().enumerate() {
        for m in methods {
            let result = frame(args, &m.slides, vec![key.into()])
                .and_then(|f| {
                    let fitted = model(args, &f, &[0])?;
                    c_result(args, &f, &fitted.fit.linear_predictor, false)
                })
                .map_err(|e| format!("{e:#}"));
            comparison.push(Compared { method: m.name.clone(), label, feature: index, result });
        }
    }
    let mut patient_level = Vec::new();
    let mut events_patients = 0;
    for rule in PatientRule::ALL {
        let table = main.cohort.per_patient(clinical, rule)?;
        for (key, label) in FEATURES {
            let f = frame(args, &table, vec![key.into()])?;
            let (n, events) = (f.survival.len(), f.survival.events());
            events_patients = events;
            let result = model(args, &f, &[0])
                .and_then(|m| {
                    let c = c_result(args, &f, &m.fit.linear_predictor, false)?;
                    Ok((m, c))
                })
                .map_err(|e| format!("{e:#}"));
            patient_level.push(PatientLevel { rule, label, n, events, result });
        }
    }
    let patients = main.cohort.patients();
    if let Some(line) = few_events(events_patients, 1 + args.covariates.len()) {
        warnings.insert(0, format!("{line} ({events_patients} events among {patients} patients)"));
    }
    if main.cohort.slides.len() > patients {
        notes.push(format!(
            "{} slides of {patients} patients: slide-level results count a patient as often as \
             there are slides; patient-level resampling and cluster-robust errors stand beside them",
            main.cohort.slides.len()
        ));
    }
    let raw: Vec<(String, f64)> = features.iter().flat_map(tests).collect();
    let p: Vec<f64> = raw.iter().map(|(_, p)| *p).collect();
    let adjusted = holm(&p)?;
    let p_values = raw.into_iter().zip(adjusted).map(|((name, p), a)| (name, p, a)).collect();
    warnings.dedup();
    Ok(Study {
        slides: outcome.survival.len(),
        patients,
        events_slides: outcome.survival.events(),
        events_patients,
        features,
        comparison,
        patient_level,
        p_values,
        notes,
        warnings,
    })
}

/// The tests of the protocol, each with its p-value.
fn tests(f: &Feature) -> Vec<(String, f64)> {
    let mut out = Vec::new();
    if let Some(m) = &f.univariable {
        out.push((
            format!("{}: Cox, count alone (likelihood ratio)", f.label),
            m.fit.likelihood_ratio().p,
        ));
    }
    if let Some(Ok(t)) = f.split.as_ref().map(|s| &s.test) {
        out.push((format!("{}: log-rank at the cut-point", f.label), t.test.p));
    }
    if let Some(a) = &f.adjusted {
        out.push((
            format!(
                "{}: likelihood ratio, covariates against covariates + count{}",
                f.label,
                if a.settled() { "" } else { " (fit not converged)" }
            ),
            a.test.p,
        ));
    }
    out.retain(|(_, p)| p.is_finite());
    out
}

fn feature(
    args: &Args,
    main: &Method,
    key: &'static str,
    label: &'static str,
    notes: &mut Vec<String>,
    warnings: &mut Vec<String>,
) -> Result<Feature> {
    let f = frame(args, &main.slides, vec![key.into()])?;
    let mut out = Feature {
        key,
        label,
        n: f.survival.len(),
        events: f.survival.events(),
        failed: None,
        univariable: None,
        c_fitted: None,
        c_count: c_result(args, &f, &f.x, true).ok(),
        split: None,
        adjusted: None,
    };
    match model(args, &f, &[0]) {
        Ok(m) => {
            warnings
                .extend(diagnoses(&m.fit, &m.names).into_iter().map(|d| format!("{label}: {d}")));
            out.c_fitted = c_result(args, &f, &m.fit.linear_predictor, true).ok();
            out.univariable = Some(m);
        }
        Err(error) => {
            warnings.push(format!("{label}: no Cox model: {error:#}"));
            out.failed = Some(format!("{error:#}"));
        }
    }
    out.split = Some(split(args, main, &f, key, notes)?);
    if let Some(Err(why)) = out.split.as_ref().map(|s| &s.test) {
        warnings.push(format!("{label}: no log-rank test: {why}"));
    }
    if !args.covariates.is_empty() {
        let mut all = args.covariates.clone();
        all.push(key.into());
        let f = frame(args, &main.slides, all)?;
        let base_columns = f.columns_where(|c| c != key);
        let columns: Vec<usize> = (0..f.names.len()).collect();
        let adjusted = model(args, &f, &base_columns).and_then(|base| {
            let full = model(args, &f, &columns)?;
            let test = likelihood_ratio(&base.fit, &full.fit)?;
            Ok(Adjusted { base, full, test })
        });
        match adjusted {
            Ok(a) => {
                let lines = diagnoses(&a.full.fit, &a.full.names);
                warnings.extend(lines.into_iter().map(|d| format!("{label}, adjusted: {d}")));
                out.adjusted = Some(a);
            }
            Err(error) => warnings.push(format!("{label}: no adjusted model: {error:#}")),
        }
    }
    Ok(out)
}

fn split(
    args: &Args,
    main: &Method,
    f: &Frame,
    key: &str,
    notes: &mut Vec<String>,
) -> Result<Split> {
    let mut given = None;
    for text in &args.cut {
        let (name, value) = pair(text, "--cut")?;
        if !FEATURES.iter().any(|(k, _)| *k == name) {
            bail!("--cut {text}: the features are hotspot and density");
        }
        if name == key {
            let v: f64 = value
                .parse()
                .ok()
                .filter(|v: &f64| v.is_finite())
                .with_context(|| format!("--cut {text}: '{value}' is not a number"))?;
            given = Some(v);
        }
    }
    let mut held_out_rows = None;
    let (cut, origin) = if let Some(v) = given {
        (v, "given".to_owned())
    } else if let Some(train) = &args.train {
        let (column, value) = pair(train, "--train")?;
        let j = main.slides.column(&column)?;
        let is = |i: &usize| main.slides.cell(f.rows[*i], j) == Some(value.as_str());
        let (inside, outside): (Vec<usize>, Vec<usize>) = (0..f.rows.len()).partition(is);
        if inside.is_empty() {
            bail!("--train {train}: no slide with an outcome has '{value}' in column '{column}'");
        }
        let values: Vec<f64> = inside.iter().map(|&i| f.x[i]).collect();
        let origin = format!("median of the {} training slides ({train})", inside.len());
        held_out_rows = Some(outside);
        (median(&values)?, origin)
    } else {
        let line = "no training subset was named (--train, --cut): the cut-points are the whole \
                    cohort's medians, which departs from the protocol";
        if !notes.iter().any(|n| n == line) {
            notes.push(line.to_owned());
        }
        (median(&f.x)?, "median of the whole cohort".to_owned())
    };
    let group: Vec<usize> = f.x.iter().map(|&v| usize::from(v > cut)).collect();
    let shown = (cut * 100.0).round() / 100.0;
    let test = logrank(&f.survival, &group, 2, None, 0.0).map_err(|e| e.to_string());
    let held_out = held_out_rows.map(|rows| {
        let part = f.survival.select(&rows).map_err(|e| e.to_string())?;
        let group: Vec<usize> = rows.iter().map(|&i| group[i]).collect();
        logrank(&part, &group, 2, None, 0.0).map_err(|e| e.to_string())
    });
    Ok(Split {
        cut,
        origin,
        names: [format!("{key} \u{2264} {shown}"), format!("{key} > {shown}")],
        group,
        survival: f.survival.clone(),
        test,
        held_out,
    })
}

impl Study {
    /// `results.json`.
    pub fn json(&self, args: &Args) -> Value {
        let features: Vec<Value> = self.features.iter().map(feature_json).collect();
        let comparison: Vec<Value> = self
            .comparison
            .iter()
            .map(|c| match &c.result {
                Ok(r) => json!({ "method": c.method, "feature": FEATURES[c.feature].0,
                    "label": c.label, "c_index": c_json(r) }),
                Err(e) => json!({ "method": c.method, "feature": FEATURES[c.feature].0,
                    "failed": e }),
            })
            .collect();
        let patient_level: Vec<Value> = self
            .patient_level
            .iter()
            .map(|p| match &p.result {
                Ok((m, c)) => json!({ "rule": p.rule.name(), "feature": p.label, "n": p.n,
                    "events": p.events, "cox": model_json(m), "c_index": c_json(c) }),
                Err(e) => json!({ "rule": p.rule.name(), "feature": p.label, "n": p.n,
                    "events": p.events, "failed": e }),
            })
            .collect();
        let p_values: Vec<Value> = self
            .p_values
            .iter()
            .map(|(name, p, holm)| json!({ "test": name, "p": p, "p_holm": holm }))
            .collect();
        json!({
            "schema": 1,
            "protocol": {
                "unit": "slide; patient-level results beside it",
                "ties": args.ties.name(),
                "bootstrap": { "replicates": args.replicates, "seed": args.seed,
                    "risks": "fitted once, held fixed", "interval": "percentile, 95 %" },
                "errors": "cluster-robust by patient",
                "covariates": args.covariates,
                "time": args.time, "event": args.event, "time_unit": args.time_unit,
                "time_scale": args.time_scale,
            },
            "slides": self.slides, "patients": self.patients,
            "events_slides": self.events_slides, "events_patients": self.events_patients,
            "features": features, "comparison": comparison, "patient_level": patient_level,
            "p_values": p_values, "notes": self.notes, "warnings": self.warnings,
        })
    }
}

fn c_json(r: &CResult) -> Value {
    let boot = |b: &Bootstrap| json!({ "lower": b.interval.lower, "upper": b.interval.upper, "defined": b.defined });
    json!({ "c": r.c.c_index, "se": r.c.std_error, "rows": boot(&r.slides),
        "patients": r.patients.as_ref().map(boot), "concordant": r.c.concordant,
        "discordant": r.c.discordant, "tied_risk": r.c.tied_risk, "tied_time": r.c.tied_time,
        "tied_both": r.c.tied_both })
}

fn model_json(m: &Model) -> Value {
    json!({ "n": m.fit.n, "events": m.fit.events,
        "coefficients": coefficients(&m.fit, &m.names, 0.95),
        "loglik_null": m.fit.loglik_null, "loglik": m.fit.loglik,
        "lrt": chi2(&m.fit.likelihood_ratio()), "converged": m.fit.converged(),
        "wald": m.fit.wald.as_ref().map(chi2),
        "proportional_hazards": m.zph.as_ref().map(chi2) })
}

fn feature_json(f: &Feature) -> Value {
    let test = |t: &std::result::Result<LogRank, String>| match t {
        Ok(t) => json!({ "chi2": t.test.chi2, "df": t.test.df, "p": t.test.p,
            "observed": t.groups.iter().map(|g| g.observed).collect::<Vec<_>>(),
            "expected": t.groups.iter().map(|g| g.expected).collect::<Vec<_>>() }),
        Err(why) => json!({ "failed": why }),
    };
    json!({
        "feature": f.key, "label": f.label, "n": f.n, "events": f.events, "failed": f.failed,
        "cox": f.univariable.as_ref().map(model_json),
        "c_index_fitted_risk": f.c_fitted.as_ref().map(c_json),
        "c_index_count_as_risk": f.c_count.as_ref().map(c_json),
        "logrank": f.split.as_ref().map(|s| json!({ "cut": s.cut, "cut_origin": s.origin,
            "groups": s.names, "all": test(&s.test), "held_out": s.held_out.as_ref().map(test) })),
        "adjusted": f.adjusted.as_ref().map(|a| json!({ "base": model_json(&a.base),
            "full": model_json(&a.full), "lrt": chi2(&a.test) })),
    })
}
