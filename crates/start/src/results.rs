//! What a run gave, from its `run.json`: of this session or of an earlier one.

use crate::error::PageError;
use mithras::export::CountsFile;
use mithras::report::{Reviewed, Unfinished};
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(Deserialize)]
struct Run {
    version: String,
    #[serde(default)]
    unfinished: Vec<String>,
    #[serde(default)]
    without_result: Vec<Unfinished>,
    slides: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    name: String,
    status: String,
    reason: Option<String>,
    counts: Option<CountsFile>,
    reviewed: Option<Reviewed>,
}

/// What a run gave.
#[derive(Debug, Serialize)]
pub struct Results {
    out: String,
    version: String,
    /// Whether any slide has a count: only then there are a viewer and a report.
    counted: bool,
    /// Slides that were interrupted or not begun.
    unfinished: Vec<String>,
    /// Who reviewed slides of it in the viewer; of several, all of them together as `anna+bert`, too.
    reviewers: Vec<String>,
    slides: Vec<Slide>,
}

#[derive(Debug, Serialize)]
struct Slide {
    name: String,
    status: String,
    reason: Option<String>,
    #[serde(flatten)]
    count: Option<Count>,
    /// The count with a reviewer's verdicts, once it was asked for.
    reviewed: Option<Reviewed>,
}

#[derive(Debug, Serialize)]
struct Count {
    figures: usize,
    /// Exact 95 % Poisson interval of the count.
    figures_95: Option<[f64; 2]>,
    hotspot_count: usize,
    /// The same of the count in the hotspot, as if its place had been chosen beforehand.
    hotspot_95: Option<[f64; 2]>,
    analysed_mm2: f64,
    density_per_20_mm2: Option<f64>,
    density_95: Option<[f64; 2]>,
    model: String,
    operating_point: String,
    /// Whether the slide's resolution is outside the model's range, so that its counts mean nothing.
    meaningless: bool,
    notes: Vec<String>,
}

impl Count {
    fn new(c: &CountsFile) -> Self {
        let interval = |count: usize| {
            stats::interval::poisson(count as u64, 0.95).ok().map(|i| [i.lower, i.upper])
        };
        let figures_95 = interval(c.figures);
        let per = |n| mitosis::count::density_per_20_mm2(n, mitosis::Mm2(c.analysed_mm2));
        let density_95 = figures_95.and_then(|[low, high]| Some([per(low)?, per(high)?]));
        Self {
            figures: c.figures,
            figures_95,
            hotspot_count: c.hotspot_count,
            hotspot_95: interval(c.hotspot_count),
            analysed_mm2: c.analysed_mm2,
            density_per_20_mm2: c.density_per_20_mm2,
            density_95,
            model: c.model.name.clone(),
            operating_point: c.operating_point.clone(),
            meaningless: c.is_outside_range(),
            notes: c.notes(),
        }
    }
}

/// Reads a run's results.
///
/// # Errors
/// [`PageError::Results`].
pub fn results(run: &Path) -> Result<Results, PageError> {
    let file: Run = base::json::read_schema(&run.join("run.json"), "mithras.run/1")?;
    let slide = |line: Line| Slide {
        name: line.name,
        status: line.status,
        reason: line.reason,
        count: line.counts.as_ref().map(Count::new),
        reviewed: line.reviewed,
    };
    let slides: Vec<Slide> = file.slides.into_iter().map(slide).collect();
    let mut unfinished: Vec<String> = file.without_result.into_iter().map(|s| s.name).collect();
    // Runs of earlier versions name those that were interrupted alone.
    unfinished.extend(file.unfinished);
    unfinished.sort_unstable();
    unfinished.dedup();
    Ok(Results {
        out: run.display().to_string(),
        version: file.version,
        counted: slides.iter().any(|s| s.count.is_some()),
        unfinished,
        reviewers: reviewers(run),
        slides,
    })
}

/// The names of the logs of a run; none where nobody has reviewed.
fn reviewers(run: &Path) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(run.join("reviews")) else { return Vec::new() };
    let logs = files.filter_map(|f| Some(f.ok()?.path()));
    let logs = logs.filter(|p| p.extension().is_some_and(|e| e == "jsonl"));
    let mut names: Vec<String> =
        logs.filter_map(|p| Some(p.file_stem()?.to_str()?.to_owned())).collect();
    names.sort_unstable();
    if names.len() > 1 {
        names.push(names.join(&review::view::TOGETHER.to_string()));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slides_that_are_not_begun_are_not_finished() {
        let run = tempfile::tempdir().unwrap();
        let file = |more: &str| {
            let text = format!(r#"{{"schema":"mithras.run/1","version":"1","slides":[]{more}}}"#);
            std::fs::write(run.path().join("run.json"), text).unwrap();
            results(run.path()).unwrap().unfinished
        };
        let open = r#","without_result":[{"name":"b","columns":[]},{"name":"a","columns":[]}]"#;
        assert_eq!(file(&format!(r#","unfinished":["b"]{open}"#)), ["a", "b"]);
        assert_eq!(file(r#","unfinished":["b"]"#), ["b"]);
        assert_eq!(file(""), [""; 0]);
    }
}
