//! The graph as a Snakemake workflow whose rules call this program.

use crate::error::Result;
use crate::front::Chosen;
use crate::graph::Graph;
use crate::spec;
use std::fmt::Write as _;
use std::path::Path;

/// Settings of a workflow.
#[derive(Clone, Debug)]
pub struct Workflow<'a> {
    /// The words of a command that runs one step, up to the step's name.
    pub command: &'a [String],
    /// The words of the command that writes the report.
    pub report: &'a [String],
    /// The run folder.
    pub out: &'a Path,
    /// Threads of a step.
    pub threads: usize,
}

/// The text of a workflow: a rule per step, after the rules of what it needs.
///
/// # Errors
/// As the graph.
pub fn workflow(chosen: &Chosen, w: &Workflow<'_>) -> Result<String> {
    let experiments =
        chosen.experiments.iter().map(|id| spec::find(id)).collect::<Result<Vec<_>>>()?;
    let graph = Graph::build(&experiments, chosen.shrink)?;
    let mark = |name: &str| {
        quoted(&w.out.join("snakemake").join(format!("{name}.done")).display().to_string())
    };
    let mut out = format!(
        "# Written by `mithras experiment export`. A rule per step; each calls mithras, which does nothing twice.\n\
         # Run it by Snakemake with a number of cores, or with an executor plug-in for Slurm.\n\n\
         rule all:\n    input:\n        {},\n\n",
        quoted(&w.out.join("snakemake/report.done").display().to_string())
    );
    let rule = |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let mut all = String::new();
    for step in graph.steps() {
        let inputs: Vec<String> =
            step.needs.iter().map(|n| format!("        {},\n", mark(n))).collect();
        let _ = writeln!(all, "        {},", mark(&step.name));
        let input = if inputs.is_empty() {
            String::new()
        } else {
            format!("    input:\n{}", inputs.concat())
        };
        let mut words = w.command.to_vec();
        words.push(step.name.clone());
        let gpu = if step.gpu { "        gpu=1,\n" } else { "" };
        let _ = writeln!(
            out,
            "rule step_{}:\n{input}    output:\n        touch({}),\n    threads: {}\n    resources:\n        mem_mb={},\n{gpu}    shell:\n        {}\n",
            rule(&step.name),
            mark(&step.name),
            w.threads,
            (step.memory * 1024.0) as u64,
            quoted(&shell(&words)),
        );
    }
    let _ = writeln!(
        out,
        "rule report:\n    input:\n{all}    output:\n        touch({}),\n    shell:\n        {}",
        quoted(&w.out.join("snakemake/report.done").display().to_string()),
        quoted(&shell(w.report)),
    );
    Ok(out)
}

/// A word as a Python string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// Words as a line for a shell; braces doubled, because Snakemake fills them.
fn shell(words: &[String]) -> String {
    let plain = |w: &str| {
        !w.is_empty() && w.chars().all(|c| c.is_ascii_alphanumeric() || "-_./,=:".contains(c))
    };
    let quoted =
        |w: &String| if plain(w) { w.clone() } else { format!("'{}'", w.replace('\'', "'\\''")) };
    words
        .iter()
        .map(quoted)
        .collect::<Vec<_>>()
        .join(" ")
        .replace('{', "{{")
        .replace('}', "}}")
        .replace("'{{threads}}'", "{threads}")
}
