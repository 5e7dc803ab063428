//! Names of a file against those of a model.

use std::collections::BTreeSet;

use crate::weights::Outline;

/// What became of the names of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Taken from the file.
    pub taken: Vec<String>,
    /// In the model, not in the file.
    pub missing: Vec<String>,
    /// In the file, not in the model.
    pub unexpected: Vec<String>,
    /// In both, with different shapes (`name: file, model`); not taken.
    pub reshaped: Vec<String>,
    /// What was done to the position table, as text.
    pub resized: Option<String>,
}

impl LoadReport {
    /// Nothing missing, unexpected or misshapen.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty() && self.reshaped.is_empty()
    }
}

impl std::fmt::Display for LoadReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let some = |names: &[String]| {
            let shown = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            if names.len() > 5 { format!("{shown}, ...") } else { shown }
        };
        write!(f, "{} tensors taken", self.taken.len())?;
        if let Some(resized) = &self.resized {
            write!(f, "; {resized}")?;
        }
        for (what, names) in [
            ("missing in the file", &self.missing),
            ("unexpected in the file", &self.unexpected),
            ("of another shape", &self.reshaped),
        ] {
            if !names.is_empty() {
                write!(f, "; {} {what}: {}", names.len(), some(names))?;
            }
        }
        Ok(())
    }
}

/// What fits, and what does not.
#[derive(Clone, Debug)]
pub struct Matched {
    /// Name by name.
    pub report: LoadReport,
    /// What fits: the model's name and the file's.
    pub pairs: Vec<(String, String)>,
}

/// Matches a file's tensors to a model's. `rename` maps a name of the file to one of the model, or to
/// `None` to pass it over. `num_batches_tracked` is always passed over.
pub fn match_names<'a>(
    file: impl Iterator<Item = (&'a str, &'a [i64])>,
    model: &Outline,
    rename: impl Fn(&str) -> Option<String>,
) -> Matched {
    let (mut report, mut pairs) = (LoadReport::default(), Vec::new());
    let mut seen = BTreeSet::new();
    for (name, dims) in file {
        if name.ends_with("num_batches_tracked") {
            continue;
        }
        let Some(target) = rename(name) else { continue };
        let Some(own) = model.get(&target) else {
            report.unexpected.push(name.to_owned());
            continue;
        };
        seen.insert(target.clone());
        if own == dims {
            pairs.push((target.clone(), name.to_owned()));
            report.taken.push(target);
        } else {
            report.reshaped.push(format!("{target}: {dims:?}, {own:?}"));
        }
    }
    report.missing = model.keys().filter(|k| !seen.contains(*k)).cloned().collect();
    Matched { report, pairs }
}
