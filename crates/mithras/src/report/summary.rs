//! `summary.html`: a few slides with their pictures inside, many with those in their folders.

use super::error::ReportError;
use super::record::RunRecord;
use super::run_file::RunFile;
use super::slide_folder::SlideFolder;
use super::slide_line::SlideLine;
use super::view::{Row, SlideView, seconds};
use crate::export::pictures as assets;
use askama::Template;
use base::text::Many;
use infer::EngineReport;
use pages::{Page, Script};
use std::path::Path;

/// Up to so many slides are shown with their pictures, about 0.6 MB each; of more every slide is a row
/// that opens at a click.
const PICTURED: usize = 12;

#[derive(Template)]
#[template(path = "summary.html")]
struct Summary<'a> {
    run: &'a RunFile,
    failed: Vec<&'a SlideLine>,
    rows: &'a [Row<'a>],
    /// Whether a reviewer's counts are shown with the network's for some slide.
    recounted: bool,
    slides: Vec<SlideView<'a>>,
    engine: String,
    model: &'a str,
    license: &'a str,
    provenance: &'a str,
    two_stages: bool,
    drawn: bool,
    total_seconds: String,
    sheet_width: usize,
    side: usize,
}

pub(super) fn render(
    run: &RunFile,
    found: &[&SlideFolder],
    into: &Path,
    record: &RunRecord,
) -> Result<String, ReportError> {
    let rows: Vec<Row> = found.iter().filter_map(|f| Row::new(f, into)).collect();
    let slides = if rows.len() > PICTURED {
        Vec::new()
    } else {
        rows.iter().map(SlideView::new).collect::<Result<_, _>>()?
    };
    let total: f64 = run.slides.iter().map(|s| s.seconds).sum();
    // The reason why nothing faster runs has a line of its own.
    let engine = EngineReport { fallback_reason: None, ..run.engine.clone() }.to_string();
    let summary = Summary {
        run,
        failed: run.slides.iter().filter(|s| s.status == "failed").collect(),
        rows: &rows,
        recounted: rows.iter().any(|r| r.slide.reviewed.is_some()),
        slides,
        engine,
        model: record.text("/model/name"),
        license: record.text("/model/license"),
        provenance: record.text("/thresholds/provenance"),
        two_stages: record.config.pointer("/recipe/crops").is_some_and(|c| !c.is_null()),
        drawn: run.command.get(1).is_some_and(|c| c == "demo"),
        total_seconds: seconds(total),
        sheet_width: assets::COLUMNS * assets::SIDE,
        side: assets::SIDE,
    };
    let body = summary.render()?;
    let page = Page {
        title: &format!("mithras · {}", Many(run.slides.len(), "slide")),
        style: include_str!("../../templates/summary.css"),
        body: &body,
        script: match rows.len() {
            0 | 1 => Script::None,
            _ => Script::Inline(include_str!("../../templates/summary.js")),
        },
    };
    Ok(page.html())
}
