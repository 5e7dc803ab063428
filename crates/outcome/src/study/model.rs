//! One Cox model of a study, and C of a risk.

use super::plan::StudyPlan;
use super::results::{CStudy, Model};
use crate::error::Result;
use crate::frame::Frame;
use crate::result::{add_profiles, adjust, coefficients};
use stats::survival::concordance::Pairs;
use stats::survival::cox::{Options, TimeTransform, fit};

fn draws(plan: &StudyPlan) -> stats::bootstrap::Plan {
    stats::bootstrap::Plan { replicates: plan.replicates, seed: plan.seed, level: 0.95 }
}

pub(crate) fn model(plan: &StudyPlan, frame: &Frame, columns: &[usize]) -> Result<Model> {
    let mut buffer = Vec::new();
    let data = frame.cox(columns, &mut buffer)?;
    let fitted = fit(&data, &Options { ties: plan.ties, ..Options::default() })?;
    let terms: Vec<usize> = columns.iter().map(|&j| frame.terms[j]).collect();
    let zph = fitted.proportional_hazards(&data, TimeTransform::Km, &terms).ok();
    let sd = columns
        .iter()
        .map(|&j| {
            let values = frame.values(j);
            let indicator = values.iter().all(|v| *v == 0.0 || *v == 1.0);
            let sd = stats::metrics::summarize(&values).ok().and_then(|s| s.sd);
            if indicator { 1.0 } else { sd.unwrap_or(1.0) }
        })
        .collect();
    let names: Vec<String> = columns.iter().map(|&j| frame.names[j].clone()).collect();
    let mut found = coefficients(&fitted, &names, 0.95);
    add_profiles(&mut found, &fitted, &data, 0.95, false)?;
    adjust(&mut found, frame.repeated.is_none());
    let is_infinite = found.iter().any(|c| c.infinite.is_some());
    Ok(Model {
        n: fitted.n,
        events: fitted.events,
        coefficients: found,
        loglik_null: fitted.loglik_null,
        loglik: fitted.loglik,
        lrt: fitted.likelihood_ratio().into(),
        converged: fitted.converged(),
        wald: fitted.wald.filter(|_| !is_infinite).map(Into::into),
        proportional_hazards: zph.map(|z| z.global.into()),
        not_valid: None,
        names,
        labels: columns.iter().map(|&j| frame.label(j)).collect(),
        sd,
        fit: fitted,
    })
}

pub(super) fn c_result(
    plan: &StudyPlan,
    frame: &Frame,
    risk: &[f64],
    clusters: bool,
) -> Result<CStudy> {
    let pairs = Pairs::new(&frame.survival, risk, None, None)?;
    let cluster = frame.cluster.as_deref();
    let c = pairs.concordance(cluster)?;
    let patients = match cluster {
        Some(of) if clusters => Some(pairs.bootstrap_clusters(of, draws(plan))?),
        _ => None,
    };
    Ok(CStudy::new(&c, &pairs.bootstrap(draws(plan))?, patients.as_ref()))
}
