//! The report folder: HTML with embedded pictures, JSON, cohort tables, SVG and PNG.

use super::super::cohort::PatientRule;
use super::super::output::{show, show_p};
use super::super::table::Table;
use super::plot::Figure;
use super::protocol::{CResult, Model, Study};
use super::{Args, Method};
use anyhow::{Context, Result};
use artifact::file::write as write_file;
use askama::Template;
use std::path::Path;

struct Picture {
    name: String,
    caption: String,
    svg: String,
}

#[derive(Template)]
#[template(path = "survival_study.html")]
struct Page<'a> {
    name: &'a str,
    study: &'a Study,
    warnings: &'a [String],
    notes: &'a [String],
    pictures: Vec<Picture>,
    c_rows: Vec<[String; 6]>,
    cox_rows: Vec<[String; 8]>,
    logrank_rows: Vec<[String; 6]>,
    lrt_rows: Vec<[String; 5]>,
    patient_rows: Vec<[String; 7]>,
    p_rows: Vec<[String; 3]>,
    replicates: usize,
    seed: u64,
    ties: &'a str,
    version: &'static str,
}

/// Writes everything; each file appears whole or not at all.
pub fn write(
    args: &Args,
    clinical: &Table,
    main: &Method,
    study: &Study,
    figures: &[Figure],
) -> Result<()> {
    let mut pictures = Vec::new();
    for figure in figures {
        let svg = figure.canvas.svg();
        write_file(&args.out.join(format!("{}.svg", figure.name)), svg.as_bytes())?;
        write_file(&args.out.join(format!("{}.png", figure.name)), &figure.canvas.png()?)?;
        pictures.push(Picture { name: figure.name.clone(), caption: figure.caption.clone(), svg });
    }
    let results = serde_json::to_vec_pretty(&study.json(args))?;
    write_file(&args.out.join("results.json"), &results)?;
    write_table(&args.out.join("cohort_slides.csv"), &main.slides)?;
    let patients = main.cohort.per_patient(clinical, args.patient_rule)?;
    write_table(&args.out.join("cohort_patients.csv"), &patients)?;
    write_counts(args, main)?;
    let page = Page {
        name: &args.name,
        study,
        warnings: &study.warnings,
        notes: &study.notes,
        pictures,
        c_rows: c_rows(study),
        cox_rows: cox_rows(study),
        logrank_rows: logrank_rows(study),
        lrt_rows: lrt_rows(study),
        patient_rows: patient_rows(study),
        p_rows: study
            .p_values
            .iter()
            .map(|(name, p, holm)| [name.clone(), show_p(*p), show_p(*holm)])
            .collect(),
        replicates: args.replicates,
        seed: args.seed,
        ties: args.ties.name(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let html = page.render().context("report template")?;
    write_file(&args.out.join("report.html"), html.as_bytes())?;
    Ok(())
}

fn range(lower: f64, upper: f64) -> String {
    format!("{lower:.3} \u{2013} {upper:.3}")
}

fn c_rows(study: &Study) -> Vec<[String; 6]> {
    let row = |label: &str, risk: &str, r: &CResult| {
        let (s, c) = (&r.slides.interval, &r.c);
        [
            label.to_owned(),
            risk.to_owned(),
            format!("{:.3}", c.c_index),
            range(s.lower, s.upper),
            r.patients
                .as_ref()
                .map_or_else(|| "-".into(), |b| range(b.interval.lower, b.interval.upper)),
            format!("{} / {} / {}", c.concordant, c.discordant, c.tied_risk),
        ]
    };
    let mut rows = Vec::new();
    for f in &study.features {
        rows.extend(f.c_fitted.as_ref().map(|r| row(f.label, "fitted", r)));
        rows.extend(f.c_count.as_ref().map(|r| row(f.label, "the count itself", r)));
    }
    rows
}

fn cox_rows(study: &Study) -> Vec<[String; 8]> {
    let mut rows = Vec::new();
    let mut add = |title: String, m: &Model| {
        for (j, name) in m.names.iter().enumerate() {
            let cells = match m.fit.coefficient(j) {
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
        if let Some(m) = &f.univariable {
            add(format!("{}, alone", f.label), m);
        }
        if let Some(a) = &f.adjusted {
            add(format!("{}, adjusted", f.label), &a.full);
        }
    }
    rows
}

fn logrank_rows(study: &Study) -> Vec<[String; 6]> {
    let mut rows = Vec::new();
    for f in &study.features {
        let Some(s) = &f.split else { continue };
        let mut add = |what: &str, t: &std::result::Result<_, String>| {
            let tail = match t {
                Ok(stats::survival::logrank::LogRank { test, groups, .. }) => {
                    let sizes = groups.iter().map(|g| format!("{}/{}", g.observed, g.n));
                    [sizes.collect::<Vec<_>>().join(", "), show(test.chi2), show_p(test.p)]
                }
                Err(why) => [why.clone(), "-".into(), "-".into()],
            };
            let [a, b, c] = tail;
            rows.push([
                f.label.to_owned(),
                what.to_owned(),
                format!("{} ({})", (s.cut * 1e4).round() / 1e4, s.origin),
                a,
                b,
                c,
            ]);
        };
        add("all slides", &s.test);
        if let Some(t) = &s.held_out {
            add("outside the training subset", t);
        }
    }
    rows
}

fn lrt_rows(study: &Study) -> Vec<[String; 5]> {
    let row = |f: &super::protocol::Feature| {
        let a = f.adjusted.as_ref()?;
        let base = a.base.names.join(" + ");
        Some([
            format!("{base} against {base} + {}", f.key),
            format!("{} / {}", a.full.fit.n, a.full.fit.events),
            show(a.test.chi2),
            a.test.df.to_string(),
            show_p(a.test.p),
        ])
    };
    study.features.iter().filter_map(row).collect()
}

fn patient_rows(study: &Study) -> Vec<[String; 7]> {
    study
        .patient_level
        .iter()
        .map(|p| {
            let head = [p.label.to_owned(), p.rule.name().to_owned()];
            let size = format!("{} / {}", p.n, p.events);
            let [a, b] = head;
            match &p.result {
                Ok((m, c)) => {
                    let i = &c.slides.interval;
                    let (hr, wald) = m
                        .fit
                        .coefficient(0)
                        .filter(|_| m.fit.settled(0))
                        .map_or(("-".into(), "-".into()), |k| (show(k.beta.exp()), show_p(k.p)));
                    [a, b, size, format!("{:.3}", i.estimate), range(i.lower, i.upper), hr, wald]
                }
                Err(why) => [a, b, size, why.clone(), "-".into(), "-".into(), "-".into()],
            }
        })
        .collect()
}

fn write_table(path: &Path, table: &Table) -> Result<()> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(table.names())?;
    for row in 0..table.len() {
        out.write_record((0..table.names().len()).map(|j| table.raw(row, j)))?;
    }
    write_file(path, &out.into_inner().context("CSV")?)?;
    Ok(())
}

/// Counts per patient under every rule.
fn write_counts(args: &Args, main: &Method) -> Result<()> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let mut header = vec!["patient".to_owned(), "slides".to_owned()];
    for key in ["hotspot", "density"] {
        header.extend(PatientRule::ALL.map(|r| format!("{key}_{}", r.name())));
    }
    out.write_record(&header)?;
    let mut patients: std::collections::BTreeMap<&str, Vec<(f64, f64)>> =
        std::collections::BTreeMap::new();
    for s in &main.cohort.slides {
        patients.entry(&s.patient).or_default().push((s.hotspot, s.density));
    }
    for (patient, counts) in patients {
        let (hotspots, densities): (Vec<f64>, Vec<f64>) = counts.into_iter().unzip();
        let mut record = vec![patient.to_owned(), hotspots.len().to_string()];
        for values in [&hotspots, &densities] {
            record.extend(PatientRule::ALL.map(|r| r.of(values).to_string()));
        }
        out.write_record(&record)?;
    }
    write_file(&args.out.join("counts_patients.csv"), &out.into_inner().context("CSV")?)?;
    Ok(())
}
