//! The report folder: HTML with embedded pictures, JSON, cohort tables, SVG and PNG.

mod pictures;
mod plot;

use crate::cohort::PatientRule;
use crate::error::{Error, Result};
use crate::numbers::{show, show_p};
use crate::result::Coefficient;
use crate::study::{CStudy, Feature, Model, PatientResult, Protocol, Study, StudyPlan, Tested};
use crate::table::Table;
use crate::ties_name;
use askama::Template;
use base::file::{self, WriteError};
use base::remedy::Setting;
use base::table::Writer;
use pages::{Page, Script};
use std::path::Path;

struct Embedded {
    name: String,
    caption: String,
    svg: String,
}

/// A table of the page; columns are as many as names in `head`.
struct Shown {
    title: &'static str,
    about: String,
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Shown {
    fn new<const N: usize>(
        title: &'static str,
        about: impl Into<String>,
        head: [&'static str; N],
        rows: Vec<[String; N]>,
    ) -> Self {
        let rows = rows.into_iter().map(Vec::from).collect();
        Self { title, about: about.into(), head: head.into(), rows }
    }
}

/// Whether a cell is a number, an interval or a p-value, which is never broken across lines.
fn is_number(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || "-\u{2013}<".contains(c))
}

#[derive(Template)]
#[template(path = "survival_study.html")]
struct Body<'a> {
    name: &'a str,
    study: &'a Study,
    warnings: &'a [String],
    notes: &'a [String],
    pictures: Vec<Embedded>,
    tables: Vec<Shown>,
    version: &'static str,
}

/// Refuses a folder whose results were asked for in another way: another event, unit of time, seed.
/// Results of the same question, of older tables, may be replaced.
///
/// # Errors
/// [`Error::Content`] with the first setting that differs and both its values.
pub fn check_folder(out: &Path, plan: &StudyPlan) -> Result<()> {
    let path = out.join("results.json");
    let Ok(bytes) = file::read(&path, LARGEST_RESULTS) else { return Ok(()) };
    let former = serde_json::from_slice::<serde_json::Value>(&bytes).unwrap_or_default();
    let Ok(now) = serde_json::to_value(Protocol::from_plan(plan)) else { return Ok(()) };
    let (Some(former), Some(now)) = (former["protocol"].as_object(), now.as_object()) else {
        return Ok(());
    };
    // A setting that an earlier version did not write does not count.
    let differs = now.iter().find(|(name, v)| former.get(*name).is_some_and(|f| f != *v));
    let Some((name, value)) = differs else { return Ok(()) };
    let reason = format!(
        "{} holds a study of another question: {name} was {} and is {value}; its report would be lost",
        out.display(),
        former[name]
    );
    Err(Error::Content { path, reason, setting: Some(Setting::Out) })
}

/// Largest `results.json` that is read, bytes.
const LARGEST_RESULTS: u64 = 64 << 20;

/// Writes the report of a study into a folder that exists: `report.html`, `results.json`, the cohort's
/// tables and every picture as SVG and PNG. Each file appears whole or not at all; pictures of an older
/// report there that this one lacks are taken away.
///
/// # Errors
/// When a picture cannot be drawn or a file cannot be written.
pub fn write(out: &Path, plan: &StudyPlan, study: &Study) -> Result<()> {
    let (main, name) = (&study.joined, plan.methods[0].name.as_str());
    let older = shown_before(&out.join("report.html"));
    let mut pictures = Vec::new();
    for picture in pictures::draw(plan, main, study)? {
        let svg = picture.canvas.svg();
        file::write(&out.join(format!("{}.svg", picture.name)), svg.as_bytes())?;
        file::write(&out.join(format!("{}.png", picture.name)), &picture.canvas.png()?)?;
        pictures.push(Embedded { name: picture.name, caption: picture.caption, svg });
    }
    let gone = |name: &&String| pictures.iter().all(|p| p.name != **name);
    for name in older.iter().filter(gone) {
        for kind in ["svg", "png"] {
            // One that is not there any more is what is wanted.
            let _ = std::fs::remove_file(out.join(format!("{name}.{kind}")));
        }
    }
    let mut results = base::json::pretty(study);
    results.pop();
    file::write(&out.join("results.json"), &results)?;
    write_table(&out.join("cohort_slides.csv"), &main.slides.table)?;
    write_table(&out.join("cohort_patients.csv"), &main.patients.table)?;
    write_counts(&out.join("counts_patients.csv"), study)?;
    let body = Body {
        name,
        study,
        warnings: &study.warnings,
        notes: &study.notes,
        pictures,
        tables: tables(plan, study),
        version: env!("CARGO_PKG_VERSION"),
    };
    let page = Page {
        title: &format!("Survival study: {name}"),
        style: ".whole { white-space: nowrap; }\n",
        body: &body.render()?,
        script: Script::None,
    };
    file::write(&out.join("report.html"), page.html().as_bytes())?;
    Ok(())
}

/// Names of the pictures of an older report, which must not remain next to those of a new one.
fn shown_before(page: &Path) -> Vec<String> {
    let text = file::read_string(page).unwrap_or_default();
    let names = text.split("<figure id=\"").skip(1).filter_map(|part| part.split('"').next());
    let plain = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    names.filter(plain).map(str::to_owned).collect()
}

/// The page's tables, in their order.
fn tables(plan: &StudyPlan, study: &Study) -> Vec<Shown> {
    let replicates = plan.replicates;
    let c_about = format!(
        "Harrell's C; tied risks count half. Slides are the unit; intervals are 95 % percentiles of \
         {replicates} resamples (seed {}) with risks held fixed, of slides and, in addition, of \
         patients. \"Fitted\": the risk of the Cox model on the count, fitted to these same slides \
         (apparent C).",
        plan.seed
    );
    let cox_about = format!(
        "Per unit of the covariate; {} ties. p from the cluster-robust error (patients).",
        ties_name(plan.ties)
    );
    let c_head = [
        "Feature",
        "Risk",
        "C",
        "Slides resampled",
        "Patients resampled",
        "Concordant / discordant / tied",
    ];
    let cox_head = ["Model", "Covariate", "beta", "HR", "95 % CI", "SE", "robust SE", "p"];
    let logrank_head =
        ["Feature", "Of", "Cut-point", "Events/n, at most and above", "chi\u{b2}", "p"];
    let lrt_head = ["Likelihood-ratio test", "n / events", "chi\u{b2}", "df", "p"];
    let patient_head = ["Feature", "Rule", "n / events", "C", "95 % CI", "HR", "p"];
    let patient_about = "One row per patient; the rule combines the counts of a patient's slides. The sum of densities is all \
                         figures over all analysed tissue.";
    let hazards_head = ["Model", "chi\u{b2}", "df", "p"];
    let hazards_about = "Whether a hazard ratio holds at all times: scaled Schoenfeld residuals against Kaplan-Meier time, all \
                         covariates together. A small p speaks against it.";
    let p_rows = study.p_values.iter();
    let p_rows = p_rows.map(|t| [t.test.clone(), show_p(t.p), show_p(t.p_holm)]).collect();
    let p_about = "Unadjusted, as in the protocol, and Holm's over this table.";
    let mut all = vec![
        Shown::new("C-index", c_about, c_head, c_rows(study)),
        Shown::new("Cox models", cox_about, cox_head, cox_rows(study)),
        Shown::new("Proportional hazards", hazards_about, hazards_head, hazards_rows(study)),
        Shown::new("Log-rank at fixed cut-points", "", logrank_head, logrank_rows(study)),
        Shown::new("What the count adds", "", lrt_head, lrt_rows(study)),
        Shown::new("Patients as units", patient_about, patient_head, patient_rows(study)),
        Shown::new("All p-values", p_about, ["Test", "p", "Holm"], p_rows),
    ];
    all.retain(|t| !t.rows.is_empty());
    all
}

fn range(lower: f64, upper: f64) -> String {
    format!("{lower:.3} \u{2013} {upper:.3}")
}

fn c_rows(study: &Study) -> Vec<[String; 6]> {
    let row = |label: &str, risk: &str, c: &CStudy| {
        [
            label.to_owned(),
            risk.to_owned(),
            format!("{:.3}", c.c),
            range(c.rows.lower, c.rows.upper),
            c.patients.as_ref().map_or_else(|| "-".into(), |b| range(b.lower, b.upper)),
            format!("{} / {} / {}", c.concordant, c.discordant, c.tied_risk),
        ]
    };
    let mut rows = Vec::new();
    for f in &study.features {
        rows.extend(f.c_index_fitted_risk.as_ref().map(|r| row(f.label, "fitted", r)));
        let count = f.c_index_count_as_risk.as_ref();
        rows.extend(count.map(|r| row(f.label, "the count itself", r)));
    }
    rows
}

/// The cells of a coefficient that may be infinite: limits and test of its profile likelihood.
fn without_estimate(c: &Coefficient, not_valid: bool) -> [String; 6] {
    let dash = || "-".to_owned();
    let (limits, p) = c.profile.map_or((dash(), dash()), |l| {
        let upper = l.hazard_ratio_upper.map_or_else(|| "\u{221e}".into(), show);
        let limits = format!("{} \u{2013} {upper} (profile)", show(l.hazard_ratio_lower));
        let p = if not_valid { "not valid".into() } else { show_p(l.lrt.p) };
        (limits, format!("{p} (profile)"))
    });
    let sign = if c.infinite == Some("-") { "-" } else { "" };
    let ratio = if sign.is_empty() { "\u{221e}" } else { "0" };
    [format!("no finite estimate ({sign}\u{221e})"), ratio.into(), limits, dash(), dash(), p]
}

fn cox_rows(study: &Study) -> Vec<[String; 8]> {
    let mut rows = Vec::new();
    let mut add = |title: String, m: &Model| {
        for (j, name) in m.names.iter().enumerate() {
            let cells = match m.fit.coefficient(j) {
                Some(_) if m.coefficients[j].profile.is_some() => {
                    without_estimate(&m.coefficients[j], m.not_valid.is_some())
                }
                Some(_) if !m.fit.settled(j) => {
                    ["no finite estimate", "-", "-", "-", "-", "-"].map(String::from)
                }
                Some(c) => {
                    let (hr, lower, upper) = c.hazard_ratio(0.95);
                    let limits = format!("{} \u{2013} {}", show(lower), show(upper));
                    [show(c.beta), show(hr), limits, show(c.se_naive), show(c.se), show_p(c.p)]
                }
                None => ["left out", "-", "-", "-", "-", "-"].map(String::from),
            };
            let [a, b, c, d, e, f] = cells;
            rows.push([title.clone(), name.clone(), a, b, c, d, e, f]);
        }
    };
    for f in &study.features {
        if let Some(m) = &f.cox {
            add(format!("{}, alone", f.label), m);
        }
        if let Some(m) = &f.cox_patients {
            add(format!("{}, alone, {}", f.label, f.unit), m);
        }
        if let Some(a) = &f.adjusted {
            let unit = f.other_unit();
            add(format!("{}, adjusted{unit}", f.label), &a.full);
        }
    }
    rows
}

/// Tests of proportional hazards, of every model that has one.
fn hazards_rows(study: &Study) -> Vec<[String; 4]> {
    let mut rows = Vec::new();
    for f in &study.features {
        for (what, model) in f.tested_models() {
            let Some(t) = &model.proportional_hazards else { continue };
            let unit = f.other_unit();
            rows.push([
                format!("{}, {what}{unit}", f.label),
                show(t.chi2),
                t.df.to_string(),
                show_p(t.p),
            ]);
        }
    }
    rows
}

fn logrank_rows(study: &Study) -> Vec<[String; 6]> {
    let mut rows = Vec::new();
    for f in &study.features {
        let Some(s) = &f.logrank else { continue };
        let mut add = |what: &str, t: &Tested| {
            let [a, b, c] = match t {
                Tested::Done { chi2, p, observed, sizes, .. } => {
                    let sizes = observed.iter().zip(sizes).map(|(o, n)| format!("{o}/{n}"));
                    [sizes.collect::<Vec<_>>().join(", "), show(*chi2), show_p(*p)]
                }
                Tested::Failed { failed } => [failed.clone(), "-".into(), "-".into()],
            };
            let cut = format!("{} ({})", (s.cut * 1e4).round() / 1e4, s.cut_origin);
            rows.push([f.label.to_owned(), what.to_owned(), cut, a, b, c]);
        };
        add(&format!("all {}", f.unit), &s.all);
        if let Some(t) = &s.held_out {
            add(&format!("{} outside the training subset", f.unit), t);
        }
    }
    rows
}

fn lrt_rows(study: &Study) -> Vec<[String; 5]> {
    let row = |f: &Feature| {
        let a = f.adjusted.as_ref()?;
        let base = a.base.names.join(" + ");
        Some([
            format!("{base} against {base} + {}", f.feature),
            format!("{} / {}", a.full.n, a.full.events),
            show(a.lrt.chi2),
            a.lrt.df.to_string(),
            show_p(a.lrt.p),
        ])
    };
    study.features.iter().filter_map(row).collect()
}

fn patient_rows(study: &Study) -> Vec<[String; 7]> {
    let dash = || "-".to_owned();
    study
        .patient_level
        .iter()
        .map(|p| {
            let (label, rule) = (p.feature.to_owned(), p.rule.to_owned());
            let size = format!("{} / {}", p.n, p.events);
            match &p.result {
                PatientResult::Found { cox, c_index } => {
                    let i = &c_index.rows;
                    let (hr, wald) = cox
                        .fit
                        .coefficient(0)
                        .filter(|_| cox.fit.settled(0))
                        .map_or((dash(), dash()), |k| (show(k.beta.exp()), show_p(k.p)));
                    let c = format!("{:.3}", i.estimate);
                    [label, rule, size, c, range(i.lower, i.upper), hr, wald]
                }
                PatientResult::Failed { failed } => {
                    [label, rule, size, failed.clone(), dash(), dash(), dash()]
                }
            }
        })
        .collect()
}

fn write_table(path: &Path, table: &Table) -> Result<(), WriteError> {
    let mut out = Writer::new(table.names());
    for row in 0..table.len() {
        out.push((0..table.names().len()).map(|j| table.raw(row, j)));
    }
    out.write(path)
}

/// Counts per patient under every rule.
fn write_counts(path: &Path, study: &Study) -> Result<(), WriteError> {
    let cohort = &study.joined.combined;
    let hotspots = PatientRule::ALL.map(|r| ("hotspot", r, Some(cohort.hotspots_of_patients(r))));
    let densities = PatientRule::ALL.map(|r| ("density", r, cohort.densities_of_patients(r)));
    let mut header = vec!["patient".to_owned(), "slides".to_owned()];
    let mut columns = Vec::new();
    for (key, rule, values) in hotspots.into_iter().chain(densities) {
        let Some(values) = values else { continue };
        header.push(format!("{key}_{}", rule.name()));
        columns.push(values);
    }
    let mut out = Writer::new(&header);
    for (row, (patient, slides)) in cohort.slides_of_patients().into_iter().enumerate() {
        let mut record = vec![patient.to_owned(), slides.to_string()];
        record.extend(columns.iter().map(|c| c[row].to_string()));
        out.push(record);
    }
    out.write(path)
}
