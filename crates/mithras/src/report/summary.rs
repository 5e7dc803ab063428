//! `summary.html`: one file, nothing loaded from elsewhere.

use super::error::ReportError;
use super::run_file::{RunFile, SlideLine};
use super::view::{SlideView, seconds};
use crate::detector::Detector;
use crate::export::pictures as assets;
use crate::job::Outcome;
use askama::Template;
use infer::EngineReport;

#[derive(Template)]
#[template(path = "summary.html")]
struct Summary<'a> {
    run: &'a RunFile,
    failed: Vec<&'a SlideLine>,
    slides: Vec<SlideView>,
    engine: String,
    provenance: &'a str,
    two_stages: bool,
    drawn: bool,
    total_seconds: String,
    sheet_width: usize,
    side: usize,
}

pub(super) fn render(
    run: &RunFile,
    outcomes: &[Outcome],
    detector: &Detector,
) -> Result<String, ReportError> {
    let slides: Vec<SlideView> =
        outcomes.iter().filter(|o| o.is_done()).map(SlideView::new).collect::<Result<_, _>>()?;
    let total: f64 = run.slides.iter().map(|s| s.seconds).sum();
    // The reason why nothing faster runs has a line of its own.
    let engine = EngineReport { fallback_reason: None, ..run.engine.clone() }.to_string();
    let summary = Summary {
        run,
        failed: run.slides.iter().filter(|s| s.status == "failed").collect(),
        engine,
        provenance: &detector.config.thresholds.provenance,
        two_stages: detector.config.recipe.crops.is_some(),
        drawn: run.command.get(1).is_some_and(|c| c == "demo"),
        total_seconds: seconds(total),
        sheet_width: assets::COLUMNS * assets::SIDE,
        side: assets::SIDE,
        slides,
    };
    Ok(summary.render()?)
}
