//! Folders that hold the tables of other runs alone.

use base::text::Shown;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The runs that the tables in a folder were gathered from, as the end of a message about a folder without slides of
/// its own; empty where nothing was gathered into it.
#[must_use]
pub fn gathered_runs(folder: &Path) -> String {
    let file: Value = base::json::read(&folder.join("run.json")).unwrap_or_default();
    let slides = file["slides"].as_array().map_or(&[][..], Vec::as_slice);
    let run = |s: &Value| Some(Shown(folder.join(s["folder"].as_str()?).parent()?).to_string());
    let runs = Vec::from_iter(slides.iter().filter_map(run).collect::<BTreeSet<_>>()).join(", ");
    let names = "; its tables are of other folders; name one: ";
    if runs.is_empty() { runs } else { format!("{names}{runs}") }
}
