//! What an experiment needs and does, read off the graph of its steps.

use crate::error::Result;
use crate::graph::Graph;
use crate::spec::Experiment;
use std::collections::BTreeSet;

impl Experiment {
    /// Names of the data sets that its steps name, shared steps included where they are needed.
    ///
    /// # Errors
    /// A file that does not follow the form.
    pub fn data_sets(&self) -> Result<Vec<String>> {
        let graph = Graph::build(std::slice::from_ref(self), false)?;
        let mut sets: Vec<String> = graph.data_sets().into_iter().collect();
        sets.sort();
        Ok(sets)
    }

    /// What it repeats, the data sets and weights that it names, and its steps.
    ///
    /// # Errors
    /// A file that does not follow the form.
    pub fn described(&self) -> Result<String> {
        let graph = Graph::build(std::slice::from_ref(self), false)?;
        let mut out = format!("{}: {}\n{}\n\n", self.id, self.title, self.about.trim());
        for p in &self.paper {
            out += &format!("paper    {}, lines {}-{}\n", p.label, p.lines[0], p.lines[1]);
        }
        for t in &self.tables {
            let (rows, columns) = (t.published.len(), t.columns.len());
            out += &format!(
                "table    {}: {} ({columns} columns, {rows} published rows)\n",
                t.id, t.title
            );
        }
        for f in &self.figures {
            out += &format!("figure   {}: {}\n", f.id, f.title);
        }
        for set in self.data_sets()? {
            out += &format!("data     {set}\n");
        }
        let weights: BTreeSet<&String> = graph.steps().iter().flat_map(|s| &s.weights).collect();
        for file in weights {
            out += &format!("weights  {file}\n");
        }
        for step in graph.steps() {
            let what = step
                .outside
                .as_ref()
                .map_or_else(|| step.words.join(" "), |o| format!("outside: {o}"));
            out += &format!("step     {}: {what}\n", step.name);
        }
        Ok(out)
    }
}
