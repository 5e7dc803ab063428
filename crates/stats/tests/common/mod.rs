//! Tables for the golden tests: CSV, TSV and ARFF, read as R read them for `golden/survival.R`.

use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What R was asked; see `golden/survival.R`.
#[derive(Deserialize, Debug)]
pub struct Spec {
    pub table: String,
    pub time: String,
    pub event: String,
    pub event_value: Option<String>,
    #[serde(default)]
    pub covariates: Vec<String>,
    pub strata: Option<String>,
    pub cluster: Option<String>,
    pub weights: Option<String>,
    pub group: Option<String>,
    pub ties: Option<String>,
    pub rho: Option<f64>,
}

/// The rows that R used, as columns.
pub struct Prepared {
    pub time: Vec<f64>,
    pub event: Vec<bool>,
    pub x: Vec<f64>,
    pub names: Vec<String>,
    /// Term of each column of `x`.
    pub terms: Vec<usize>,
    pub strata: Option<Vec<usize>>,
    pub cluster: Option<Vec<usize>>,
    pub weights: Option<Vec<f64>>,
    pub group: Option<Vec<usize>>,
}

fn load(table: &str) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    let path = match table.strip_prefix("golden/") {
        Some(name) => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name),
        None => testkit::data(&format!("survival/{table}"))?,
    };
    let text = std::fs::read_to_string(&path).expect("readable table");
    let mut names = Vec::new();
    let mut body = text.clone();
    if table.ends_with(".arff") {
        let mut lines = text.lines();
        for line in lines.by_ref() {
            let lower = line.to_lowercase();
            if lower.starts_with("@attribute") {
                let name = line.split_whitespace().nth(1).expect("attribute name");
                names.push(name.trim_matches('\'').to_owned());
            }
            if lower.starts_with("@data") {
                break;
            }
        }
        body = lines.collect::<Vec<_>>().join("\n").replace('\'', "");
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(names.is_empty())
        .delimiter(if table.ends_with(".tsv") { b'\t' } else { b',' })
        .trim(csv::Trim::All)
        .from_reader(body.as_bytes());
    if names.is_empty() {
        names = reader.headers().expect("header").iter().map(str::to_owned).collect();
    }
    let rows = reader
        .records()
        .map(|r| r.expect("record").iter().map(str::to_owned).collect::<Vec<_>>())
        .filter(|r: &Vec<String>| r.iter().any(|c| !c.is_empty()))
        .collect();
    Some((names, rows))
}

fn codes(values: &[&str]) -> Vec<usize> {
    let levels: Vec<&str> = values.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    values.iter().map(|v| levels.binary_search(v).expect("level")).collect()
}

/// Reads the table of `spec` and prepares it; `None` if the real data are not here.
pub fn prepare(spec: &Spec) -> Option<Prepared> {
    let (names, mut rows) = load(&spec.table)?;
    let column = |name: &str| names.iter().position(|n| n == name).expect(name);
    let own_weights = spec.weights.clone().filter(|w| !w.starts_with("rule"));
    let mut used = vec![column(&spec.time), column(&spec.event)];
    used.extend(spec.covariates.iter().map(|c| column(c)));
    let others = spec.strata.iter().chain(&spec.cluster).chain(&own_weights).chain(&spec.group);
    used.extend(others.map(|c| column(c)));
    let missing = ["", "NA", "#N/A", "?"];
    // A factor's levels are taken before rows are dropped, as R does.
    let numeric = |name: &str| {
        let j = column(name);
        rows.iter().all(|r| missing.contains(&r[j].as_str()) || r[j].parse::<f64>().is_ok())
    };
    let is_numeric: Vec<bool> = spec.covariates.iter().map(|c| numeric(c)).collect();
    rows.retain(|r| used.iter().all(|&j| !missing.contains(&r[j].as_str())));
    let text = |name: &str| rows.iter().map(|r| r[column(name)].as_str()).collect::<Vec<_>>();
    let number = |name: &str| {
        text(name).iter().map(|v| v.parse::<f64>().expect("number")).collect::<Vec<_>>()
    };
    let event = match &spec.event_value {
        Some(value) => text(&spec.event).iter().map(|v| v == value).collect(),
        None => number(&spec.event).iter().map(|&v| v == 1.0).collect(),
    };
    let (mut columns, mut labels, mut terms) = (Vec::new(), Vec::new(), Vec::new());
    for (term, (name, numeric)) in spec.covariates.iter().zip(is_numeric).enumerate() {
        if numeric {
            columns.push(number(name));
            labels.push(name.clone());
            terms.push(term);
            continue;
        }
        let values = text(name);
        let levels: BTreeSet<&str> = values.iter().copied().collect();
        for level in levels.iter().skip(1) {
            columns.push(values.iter().map(|v| f64::from(u8::from(v == level))).collect());
            labels.push(format!("{name}{level}"));
            terms.push(term);
        }
    }
    let n = rows.len();
    let x = (0..n).flat_map(|i| columns.iter().map(move |c: &Vec<f64>| c[i])).collect();
    let weights = spec.weights.as_deref().map(|w| match w {
        "rule3" => (0..n).map(|i| (1 + i % 3) as f64).collect(),
        "rule4" => (0..n).map(|i| 0.5 + (i % 4) as f64 / 3.0).collect(),
        name => number(name),
    });
    // Numbers used as groups are ordered as numbers by R; only the order of groups depends on it.
    let group = spec.group.as_deref().map(|name| {
        let values = text(name);
        if values.iter().all(|v| v.parse::<f64>().is_ok()) {
            let padded: Vec<String> = number(name).iter().map(|v| format!("{v:020.6}")).collect();
            return codes(&padded.iter().map(String::as_str).collect::<Vec<_>>());
        }
        codes(&values)
    });
    let prepared = Prepared {
        time: number(&spec.time),
        event,
        x,
        names: labels,
        terms,
        strata: spec.strata.as_deref().map(|c| codes(&text(c))),
        cluster: spec.cluster.as_deref().map(|c| codes(&text(c))),
        weights,
        group,
    };
    Some(prepared)
}

/// Relative agreement, with an absolute floor for values that are zero in exact arithmetic.
#[track_caller]
pub fn close(what: &str, got: f64, want: f64, relative: f64) {
    let error = (got - want).abs();
    assert!(error <= relative * want.abs() + 1e-12, "{what}: {got} against R's {want}");
}
