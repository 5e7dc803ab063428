//! Results as text tables.

use crate::cindex::CIndex;
use crate::cox::{CoxModel, Limits};
use crate::grade::Grades;
use crate::km::Curves;
use crate::logrank::LogRank;
use crate::lrt::LikelihoodRatio;
use crate::numbers::{columns, show, show_p};
use crate::result::Test;
use base::text::Many;
use std::fmt;

/// A number or a dash.
fn show_option(v: Option<f64>) -> String {
    v.map_or_else(|| "-".into(), show)
}

/// "chi2 on df, p".
fn show_test(name: &str, t: &Test) -> Vec<String> {
    vec![
        name.into(),
        format!("chi2 = {}", show(t.chi2)),
        format!("df = {}", t.df),
        format!("p = {}", show_p(t.p)),
    ]
}

/// The same, marked where rows are not independent.
fn show_naive(name: &str, t: &Test, not_valid: bool) -> Vec<String> {
    let mut row = show_test(name, t);
    if not_valid {
        row.push("not valid".into());
    }
    row
}

fn label(name: &str) -> String {
    if name.is_empty() { "all".into() } else { name.to_owned() }
}

impl fmt::Display for CIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = self;
        let se = c.se.unwrap_or(f64::NAN);
        writeln!(
            f,
            "C-index {} ({} to {}, se {})",
            show(c.c_index),
            show(c.lower),
            show(c.upper),
            show(se)
        )?;
        for (unit, b) in [("rows", &c.bootstrap.rows), ("clusters", &c.bootstrap.clusters)] {
            let Some(b) = b else { continue };
            let end = if unit == "rows" && c.not_valid.is_some() { " (not valid)" } else { "" };
            let (lower, upper) = (show(b.lower), show(b.upper));
            writeln!(
                f,
                "bootstrap of {unit}, {} replicates, risks fixed: {lower} to {upper}{end}",
                b.defined
            )?;
        }
        let p = &c.pairs;
        writeln!(
            f,
            "{} concordant, {} discordant, {} tied risk (count half); left out: {} pairs of events \
             tied in time, {} tied in both",
            p.concordant, p.discordant, p.tied_risk, p.tied_time, p.tied_both
        )?;
        Ok(())
    }
}

impl fmt::Display for CoxModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self;
        let (n, events) = (model.summary.count(), Many(model.summary.events, "event"));
        let is_not_valid = |name| model.not_valid.as_ref().is_some_and(|all| all.contains(&name));
        let dependent = is_not_valid("lrt");
        writeln!(f, "Cox model, {n}, {events}, {} ties", model.ties)?;
        writeln!(f)?;
        let se = if model.robust { "robust se" } else { "se" };
        let head = ["covariate", "beta", "HR", "lower", "upper", se, "z", "p"];
        let mut rows = vec![head.map(String::from).to_vec()];
        for c in &model.coefficients {
            let (Some(r), Some(beta), Some(se), Some(z), Some(p)) =
                (c.ratio(), c.beta, c.se, c.z, c.p)
            else {
                rows.push(vec![c.name.clone(), "left out".into()]);
                continue;
            };
            let mut row = vec![c.name.clone()];
            let limits = match c.profile {
                Some(l) => [l.hazard_ratio_lower, l.hazard_ratio_upper.unwrap_or(f64::INFINITY)],
                None => [r.hazard_ratio_lower, r.hazard_ratio_upper],
            };
            // Where the fit stopped on its way to infinity is of no use.
            let ends = match c.infinite {
                Some("-") => ["-inf", "0"].map(String::from),
                Some(_) => ["inf", "inf"].map(String::from),
                None => [beta, r.hazard_ratio].map(show),
            };
            let limit = |v: f64| if v == f64::INFINITY { "inf".into() } else { show(v) };
            row.extend(ends.into_iter().chain(limits.map(limit)));
            if c.infinite.is_some() {
                row.extend(["-".into(), "-".into()]);
                let p = |p| if dependent { "not valid".into() } else { show_p(p) };
                row.push(c.profile.map_or_else(|| "-".into(), |l| p(l.lrt.p)));
            } else {
                row.extend([se, z].map(show));
                row.push(show_p(p));
            }
            rows.push(row);
        }
        f.write_str(&columns(&rows))?;
        if model.limits == Limits::Profile {
            writeln!(f, "limits by the profile likelihood")?;
        } else if model.coefficients.iter().any(|c| c.infinite.is_some()) {
            writeln!(f, "inf: limits and p of these by the profile likelihood")?;
        }
        writeln!(f)?;
        writeln!(f, "log-likelihood {} -> {}", show(model.loglik_null), show(model.loglik))?;
        let naive = |name: &str, t: &Test| show_naive(name, t, dependent);
        let mut tests = vec![naive("likelihood ratio", &model.lrt), naive("score", &model.score)];
        tests.extend(model.wald.as_ref().map(|t| show_naive("Wald", t, is_not_valid("wald"))));
        tests.extend(model.robust_score.as_ref().map(|t| show_test("robust score", t)));
        if let Some(z) = &model.proportional_hazards {
            let named = |name: &str| format!("proportional: {name}");
            tests.extend(z.terms.iter().map(|t| naive(&named(&t.name), &t.test)));
            tests.push(naive(&named("all"), &z.global));
        }
        f.write_str(&columns(&tests))?;
        if let Some(c) = &model.concordance {
            writeln!(
                f,
                "C-index {} (se {}): {} concordant, {} discordant, {} tied risk (half), {} tied time",
                show(c.c_index),
                show(c.se.unwrap_or(f64::NAN)),
                c.pairs.concordant,
                c.pairs.discordant,
                c.pairs.tied_risk,
                c.pairs.tied_time + c.pairs.tied_both
            )?;
        }
        if let Some(why) = &model.no_concordance {
            writeln!(f, "C-index: {why}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Grades {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grades = self;
        let mut lines =
            vec![["slide", "count", "in scheme's area", "grade"].map(String::from).to_vec()];
        for g in &grades.slides {
            let (count, scaled) = (show(g.count), show(g.count_in_scheme_area));
            lines.push(vec![g.slide.clone(), count, scaled, g.grade.clone()]);
        }
        f.write_str(&columns(&lines))?;
        writeln!(f, "\n{}", grades.source)?;
        Ok(())
    }
}

impl fmt::Display for Curves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let curves = self;
        let (n, events) = (curves.summary.count(), Many(curves.summary.events, "event"));
        let end = if curves.not_valid.is_some() { "; not valid as curves of patients" } else { "" };
        writeln!(f, "Kaplan-Meier, {n}, {events}{end}")?;
        writeln!(f)?;
        let head = ["group", curves.summary.heading(), "events", "median", "lower", "upper"];
        let mut rows = vec![head.map(String::from).to_vec()];
        for c in &curves.groups {
            let (n, events) = (c.n.to_string(), c.events.to_string());
            let mut row = vec![label(&c.name), n, events];
            row.extend([c.median, c.median_lower, c.median_upper].map(show_option));
            rows.push(row);
        }
        f.write_str(&columns(&rows))?;
        for c in &curves.groups {
            writeln!(f, "\n{}", label(&c.name))?;
            let head = ["time", "at risk", "events", "S", "se", "lower", "upper"];
            let mut rows = vec![head.map(String::from).to_vec()];
            if c.at.is_empty() {
                for p in c.points.iter().filter(|p| p.events > 0.0) {
                    let limits = [p.se, p.lower, p.upper].map(show_option);
                    let mut row = [p.time, p.at_risk, p.events, p.survival].map(show).to_vec();
                    row.extend(limits);
                    rows.push(row);
                }
            }
            for p in &c.at {
                let mut row = [p.time, p.at_risk, p.events].map(show).to_vec();
                row.extend([p.survival, p.se, p.lower, p.upper].map(show_option));
                rows.push(row);
            }
            f.write_str(&columns(&rows))?;
        }
        Ok(())
    }
}

impl fmt::Display for LogRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let test = self;
        let (n, events) = (test.summary.count(), Many(test.summary.events, "event"));
        writeln!(f, "Log-rank test, {n}, {events}")?;
        writeln!(f)?;
        let head = ["group", test.summary.heading(), "observed", "expected"];
        let mut rows = vec![head.map(String::from).to_vec()];
        for g in &test.groups {
            rows.push(vec![g.name.clone(), g.n.to_string(), show(g.observed), show(g.expected)]);
        }
        f.write_str(&columns(&rows))?;
        writeln!(f)?;
        f.write_str(&columns(&[show_test("log-rank", &test.logrank)]))?;
        Ok(())
    }
}

impl fmt::Display for LikelihoodRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let test = self;
        let list = |c: &[String]| if c.is_empty() { "nothing".into() } else { c.join(" + ") };
        let (n, events) = (test.summary.count(), Many(test.summary.events, "event"));
        writeln!(f, "{n}, {events}, {} ties", test.ties)?;
        let (small, full) = (list(&test.reduced_covariates), list(&test.full_covariates));
        writeln!(f, "reduced: {small}, log-likelihood {}", show(test.loglik_reduced))?;
        writeln!(f, "full:    {full}, log-likelihood {}", show(test.loglik))?;
        let not_valid = test.not_valid.is_some();
        f.write_str(&columns(&[show_naive("likelihood ratio", &test.lrt, not_valid)]))?;
        Ok(())
    }
}
