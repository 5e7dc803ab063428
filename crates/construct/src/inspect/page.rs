//! The HTML page of a dataset: one file, no script, nothing from outside.

use super::report::CropsReport;
use askama::Template;
use base::text::Many;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crops::manifest::Counts;
use crops::{Label, Manifest};
use pages::{Page, Script, charts};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Template)]
#[template(path = "corpus.html")]
struct Body<'a> {
    r: &'a CropsReport,
    m: &'a Manifest,
    c: &'a Counts,
    /// Per cohort: figures, mimickers, unlabelled ones, all.
    cohorts: Vec<(&'a str, [u64; 4])>,
    /// Subtypes and splits, as text.
    parts: Vec<(&'static str, String)>,
    funnel: Vec<(String, String)>,
    /// Histograms of the scores, SVG.
    charts: Vec<String>,
    filter: Option<String>,
    /// Slides that were kept out and that failed, with reasons.
    lists: Vec<(&'static str, Vec<(&'a str, &'a str)>)>,
    /// PNG as base64, or nothing; a row per label.
    montage: String,
    shown: Vec<String>,
}

/// The page of a dataset of crops; `png` is a montage of some of them, or empty.
///
/// # Errors
/// When the template cannot be filled.
pub fn page(r: &CropsReport, png: &[u8]) -> Result<String, askama::Error> {
    let m = &r.manifest;
    let scores = [("s_seg", &r.histograms.s_seg), ("s_cls", &r.histograms.s_cls)];
    let charts = scores.into_iter().flat_map(|(score, table)| {
        let title = move |label: &str| format!("{score}, {}", spaced(label));
        table.iter().map(move |(label, bins)| charts::histogram(&title(label), bins).svg())
    });
    let occurs = |l: &Label| m.counts.labels.get(l.name()).is_some_and(|&n| n > 0);
    let body = Body {
        r,
        m,
        c: &m.counts,
        cohorts: m.counts.cohorts.iter().map(|(name, row)| (name.as_str(), cells(row))).collect(),
        parts: parts(r),
        funnel: funnel(&m.header.notes),
        charts: charts.collect(),
        filter: m.header.notes.get("build").and_then(filter),
        lists: lists(&m.header.notes),
        montage: if png.is_empty() { String::new() } else { STANDARD.encode(png) },
        shown: Label::ALL.iter().filter(|l| occurs(l)).map(|l| spaced(l.name())).collect(),
    };
    let page = Page {
        title: &m.header.name,
        style: include_str!("../../templates/corpus.css"),
        body: &body.render()?,
        script: Script::None,
    };
    Ok(page.html())
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

fn cells(row: &BTreeMap<String, u64>) -> [u64; 4] {
    let [figures, mimickers, unlabelled] =
        Label::ALL.map(|l| row.get(l.name()).copied().unwrap_or_default());
    [figures, mimickers, unlabelled, row.values().sum()]
}

fn parts(r: &CropsReport) -> Vec<(&'static str, String)> {
    let c = &r.manifest.counts;
    let text = |table: &BTreeMap<String, u64>| {
        table.iter().map(|(k, n)| format!("{k} {n}")).collect::<Vec<_>>().join(", ")
    };
    let all = [
        ("um/px", &r.resolutions),
        ("Organ sites", &r.organ_sites),
        ("Subtypes", &c.subtypes),
        ("Splits", &c.splits),
    ];
    all.into_iter().filter(|(_, t)| !t.is_empty()).map(|(name, t)| (name, text(t))).collect()
}

/// How many candidates every stage of a build left.
fn funnel(notes: &Map<String, Value>) -> Vec<(String, String)> {
    let stages = notes.get("funnel").and_then(Value::as_object);
    stages.into_iter().flatten().map(|(stage, n)| (spaced(stage), n.to_string())).collect()
}

/// The tumour filter of a built corpus, as text.
fn filter(build: &Value) -> Option<String> {
    match build.get("tumour_filter")? {
        Value::String(none) => Some(none.clone()),
        f => {
            let field = |k: &str| f[k].as_str().unwrap_or_default();
            let (name, class, hash) = (field("name"), field("tumour_class"), field("sha256"));
            Some(format!("{name}, class {class}, SHA-256 {hash}"))
        }
    }
}

/// What a built corpus kept out and what failed.
fn lists(notes: &Map<String, Value>) -> Vec<(&'static str, Vec<(&str, &str)>)> {
    let rows = |key: &str| {
        let list = notes.get(key).and_then(Value::as_array)?;
        let row = |item| (text(item, "slide"), text(item, "reason"));
        Some(list.iter().map(row).collect::<Vec<_>>()).filter(|l| !l.is_empty())
    };
    let titled = [("excluded", "Kept out"), ("failed", "Failed")];
    titled.into_iter().filter_map(|(key, title)| Some((title, rows(key)?))).collect()
}

fn text<'v>(item: &'v Value, key: &str) -> &'v str {
    item[key].as_str().unwrap_or_default()
}
