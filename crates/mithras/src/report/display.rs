//! A run as text.

use super::run_file::RunFile;
use super::slide_line::SAME_FILE;
use crate::export::labels;
use base::text::{Many, plain};
use std::fmt;

impl fmt::Display for RunFile {
    #[expect(clippy::too_many_lines, reason = "one page from top to bottom")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = self;
        let width =
            run.slides.iter().map(|s| s.name.chars().count()).max().unwrap_or(5).clamp(5, 48);
        writeln!(
            f,
            "{:<width$}  {:>7}  {:>7}  {:>10}  {:>12}  {:>8}",
            "slide", "figures", "hotspot", "per 20 mm2", "analysed mm2", "um/px"
        )?;
        for slide in &run.slides {
            let name = &slide.name;
            match &slide.counts {
                None => writeln!(
                    f,
                    "{name:<width$}  FAILED  {}",
                    plain(slide.reason.as_deref().unwrap_or(""))
                )?,
                Some(c) => {
                    let density = c.density_per_20_mm2.map_or("-".into(), |d| format!("{d:.1}"));
                    writeln!(
                        f,
                        "{name:<width$}  {:>7}  {:>7}  {density:>10}  {:>12.2}  {:>8}{}",
                        c.figures,
                        c.hotspot_count,
                        c.analysed_mm2,
                        c.resolution.x,
                        // The caveats in full are below the table.
                        [if slide.kept { "kept" } else { "" }, &labels(&c.caveats())]
                            .iter()
                            .filter(|word| !word.is_empty())
                            .map(|word| format!("  {word}"))
                            .collect::<String>()
                    )?;
                }
            }
        }
        for slide in &run.slides {
            for note in slide.counts.iter().flat_map(|c| c.notes()) {
                writeln!(f, "{}: {}", slide.name, plain(&note))?;
            }
        }
        for names in &run.same_files {
            let names = plain(&names.join(", ")).into_owned();
            writeln!(f, "{names}: {SAME_FILE}")?;
        }
        for slide in &run.slides {
            let Some(regions) = slide.counts.as_ref().and_then(|c| c.regions.as_ref()) else {
                continue;
            };
            writeln!(f, "{}: regions of {}", slide.name, plain(&regions.source.file))?;
            for r in &regions.list {
                let density = r.density_per_20_mm2.map_or("-".into(), |d| format!("{d:.1}"));
                writeln!(
                    f,
                    "  {}: {}, hotspot {}, {density} per 20 mm2 of {:.2} mm2 analysed",
                    plain(&r.name),
                    Many(r.figures, "figure"),
                    r.hotspot_count,
                    r.analysed_mm2
                )?;
            }
        }
        for case in &run.cases {
            if case.slides.is_empty() {
                let n = Many(case.without_result.len(), "slide");
                writeln!(f, "case {}: not counted, {n} without a result", plain(&case.case))?;
                continue;
            }
            let density = case.model.density_per_20_mm2.map_or("-".into(), |d| format!("{d:.1}"));
            writeln!(
                f,
                "case {}: {}{}, {}, hotspot {}, {density} per 20 mm2 of {:.2} mm2 analysed",
                plain(&case.case),
                Many(case.slides.len(), "slide"),
                match case.without_result.len() {
                    0 => String::new(),
                    n => format!(" ({n} not counted)"),
                },
                Many(case.model.figures, "figure"),
                case.model.hotspot_count,
                case.analysed_mm2
            )?;
        }
        if !run.without_case.is_empty() {
            writeln!(f, "without a case: {}", plain(&run.without_case.join(", ")))?;
        }
        let all = Many(run.slides.len(), "slide");
        if run.without_tissue > 0 {
            writeln!(f, "{} of {all} without tissue", run.without_tissue)?;
        }
        if run.failed > 0 {
            writeln!(f, "{} of {all} failed", run.failed)?;
        }
        if !run.unfinished.is_empty() {
            let n = Many(run.unfinished.len(), "slide");
            writeln!(f, "under way or interrupted: {n}")?;
        }
        let begun = run.unfinished.len() + run.left_out.len();
        if run.without_result.len() > begun {
            writeln!(f, "not begun here: {}", Many(run.without_result.len() - begun, "slide"))?;
        }
        if !run.engines.is_empty() {
            let each = run.engines.iter().map(|(engine, n)| format!("{n} by {engine}"));
            let each = each.collect::<Vec<_>>().join(", ");
            writeln!(f, "slides were done by several engines: {each}")?;
        }
        if !run.left_out.is_empty() {
            let n = Many(run.left_out.len(), "slide");
            writeln!(f, "left out, of another configuration: {n}")?;
        }
        Ok(())
    }
}
