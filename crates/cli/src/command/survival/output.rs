//! JSON pieces and terminal tables that the survival commands share.

use serde_json::{Map, Value, json};
use stats::survival::ChiSquared;
use stats::survival::concordance::Concordance;
use stats::survival::cox::{CoxFit, Diagnosis};

/// `{chi2, df, p}`.
pub fn chi2(test: &ChiSquared) -> Value {
    json!({ "chi2": test.chi2, "df": test.df, "p": test.p })
}

/// Pair counts and C.
pub fn concordance(c: &Concordance) -> Value {
    json!({
        "c_index": c.c_index,
        "se": c.std_error,
        "concordant": c.concordant,
        "discordant": c.discordant,
        "tied_risk": c.tied_risk,
        "tied_time": c.tied_time,
        "tied_both": c.tied_both,
        "comparable": c.concordant + c.discordant + c.tied_risk,
        "rule": "tied risks count half; pairs of events tied in time are left out",
    })
}

/// What a fit's diagnoses say, with column names.
pub fn diagnoses(fit: &CoxFit, names: &[String]) -> Vec<String> {
    fit.diagnoses
        .iter()
        .map(|d| match *d {
            Diagnosis::Constant { column } => format!(
                "'{}' has one value in all rows (constant covariate); it was left out",
                names[column]
            ),
            Diagnosis::Collinear { column } => format!(
                "'{}' is a linear combination of the other covariates (collinear), or constant \
                 within strata; it was left out",
                names[column]
            ),
            Diagnosis::Infinite { column } => format!(
                "the likelihood keeps rising as the coefficient of '{}' grows (separation, \
                 monotone likelihood): the estimate is infinite; its value, error and Wald test \
                 mean nothing, the likelihood-ratio test holds",
                names[column]
            ),
            Diagnosis::NotConverged { iterations } => {
                format!("the fit did not converge in {iterations} iterations; do not use it")
            }
            _ => format!("{d:?}"),
        })
        .collect()
}

/// S5: few events, said aloud.
pub fn few_events(events: usize, coefficients: usize) -> Option<String> {
    (events < 10 * coefficients).then(|| {
        format!(
            "few events: {events} for {coefficients} coefficient{} (fewer than 10 each); estimates \
             and p-values are unstable, report them descriptively",
            if coefficients == 1 { "" } else { "s" }
        )
    })
}

/// The coefficients of a fit. `p_holm` adjusts over the model's coefficients.
pub fn coefficients(fit: &CoxFit, names: &[String], level: f64) -> Value {
    let found: Vec<_> = (0..names.len()).map(|j| fit.coefficient(j)).collect();
    let p: Vec<f64> = found.iter().flatten().map(|c| c.p).filter(|p| p.is_finite()).collect();
    let mut adjusted = stats::interval::holm(&p).unwrap_or_default().into_iter();
    let mut one = |name: &String, c: &Option<stats::survival::cox::Coefficient>| {
        let Some(c) = c else {
            return json!({ "name": name, "beta": null, "se": null, "z": null, "p": null,
                "left_out": true });
        };
        let (ratio, lower, upper) = c.hazard_ratio(level);
        let mut map = Map::new();
        for (key, value) in [
            ("name", json!(name)),
            ("beta", json!(c.beta)),
            ("se", json!(c.se)),
            ("z", json!(c.z)),
            ("p", json!(c.p)),
            ("hazard_ratio", json!(ratio)),
            ("hazard_ratio_lower", json!(lower)),
            ("hazard_ratio_upper", json!(upper)),
            ("se_naive", json!(c.se_naive)),
        ] {
            map.insert(key.into(), value);
        }
        if fit.robust {
            map.insert("se_robust".into(), json!(c.se));
            map.insert("robust_se".into(), json!(c.se));
        }
        let holm = if c.p.is_finite() { adjusted.next() } else { None };
        map.insert("p_holm".into(), json!(holm));
        Value::Object(map)
    };
    Value::Array(names.iter().zip(&found).map(|(n, c)| one(n, c)).collect())
}

/// Prints lines with columns padded to equal width: the first left, the others right.
pub fn print_columns(rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width: Vec<usize> = (0..columns)
        .map(|j| rows.iter().filter_map(|r| r.get(j)).map(|c| c.chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let mut line = String::new();
        for (j, cell) in row.iter().enumerate() {
            let pad = " ".repeat(width[j] - cell.chars().count());
            if j == 0 {
                line += &format!("{cell}{pad}");
            } else {
                line += &format!("  {pad}{cell}");
            }
        }
        println!("{}", line.trim_end());
    }
}

/// A number for people: five significant digits.
pub fn show(v: f64) -> String {
    if v == 0.0 {
        return "0".into();
    }
    if !v.is_finite() {
        return "-".into();
    }
    let digits = 4 - v.abs().log10().floor() as i32;
    if (-3..=9).contains(&digits) {
        format!("{v:.*}", digits.max(0) as usize)
    } else {
        format!("{v:.3e}")
    }
}

/// A p-value for people.
pub fn show_p(p: f64) -> String {
    if p.is_nan() {
        "-".into()
    } else if p < 1e-4 {
        format!("{p:.1e}")
    } else {
        format!("{p:.4}")
    }
}

/// A p-value as print has it: powers of ten with superscripts.
pub fn plain_p(p: f64) -> String {
    let text = show_p(p);
    let Some((digits, power)) = text.split_once('e') else { return text };
    let power: String = power
        .chars()
        .map(|c| match c {
            '-' => '\u{207b}',
            '1' => '\u{b9}',
            '2' => '\u{b2}',
            '3' => '\u{b3}',
            d => char::from_u32(0x2070 + d.to_digit(10).unwrap_or(0)).unwrap_or(d),
        })
        .collect();
    format!("{digits} \u{d7} 10{power}")
}

/// A number or a dash.
pub fn show_option(v: Option<f64>) -> String {
    v.map_or_else(|| "-".into(), show)
}

/// "chi2 on df, p".
pub fn show_test(name: &str, t: &ChiSquared) -> Vec<String> {
    vec![
        name.into(),
        format!("chi2 = {}", show(t.chi2)),
        format!("df = {}", t.df),
        format!("p = {}", show_p(t.p)),
    ]
}

/// Notes and warnings on stderr, so that JSON on stdout stays clean.
pub fn say(kind: &str, lines: &[String]) {
    for line in lines {
        eprintln!("{kind}: {line}");
    }
}

/// Prints a JSON object.
pub fn print_json(map: Map<String, Value>) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(&Value::Object(map))?);
    Ok(())
}
