//! Tables: our numbers next to the paper's.

use super::StepOutputs;
use crate::error::Result;
use crate::graph::{Dims, envs, has_row};
use crate::spec::{ColumnSpec, Env, Source, TableSpec, expand};
use crate::value::{Value, remedy, select};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A table with the numbers of the run next to those of the paper.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Name of its files.
    pub id: String,
    /// Caption.
    pub title: String,
    /// Lines of the paper's source that its published numbers are from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<[u32; 2]>,
    /// Titles of the leading columns.
    pub head: Vec<String>,
    /// Columns of numbers.
    pub columns: Vec<Column>,
    /// From top to bottom.
    pub rows: Vec<Row>,
}

/// A column of numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Shown in the head of the table.
    pub title: String,
    /// Decimals.
    pub digits: usize,
    /// The list over whose entries its numbers are averaged, where it is not folds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
}

/// A row: what it is about, then one cell per column of numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name in the list.
    pub id: String,
    /// Heading of its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Texts before the numbers, one per entry of [`Table::head`].
    pub lead: Vec<String>,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// A number of the run and that of the paper, where there are such.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// Our number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours: Option<Value>,
    /// The paper's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<Value>,
    /// Ours less the paper's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// Items that it was measured on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// Why ours is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

pub(super) fn compute(spec: &TableSpec, dims: &Dims, found: &StepOutputs<'_>) -> Result<Table> {
    let mut files = Files::default();
    let mut rows = vec![];
    for env in envs(&[&spec.rows], dims)? {
        let id = env[&spec.rows].clone();
        let published = spec.published.get(&id);
        let mut cells = vec![];
        for (k, column) in spec.columns.iter().enumerate() {
            let mut cell = match &column.from {
                Some(source) if has_row(source, &id, dims) => {
                    read(source, &env, dims, found, &mut files)?
                }
                _ => Cell::default(),
            };
            // An entry without numbers of its own states why, in place of the path that has none.
            if let (Some(reason), Some(known)) =
                (&mut cell.missing, env.get(&format!("{}.absent", spec.rows)))
            {
                reason.clone_from(known);
            }
            cell.paper = published.and_then(|p| p.get(k)).and_then(|t| Value::of_paper(t));
            cells.push(cell);
        }
        let lead = spec.cells.iter().map(|c| expand(c, &env)).collect::<Result<_>>()?;
        let group = spec.group.as_ref().map(|g| expand(g, &env)).transpose()?;
        rows.push(Row { id, group, lead, cells });
    }
    derive(spec, &mut rows);
    for cell in rows.iter_mut().flat_map(|r| &mut r.cells) {
        cell.difference = cell.ours.zip(cell.paper).map(|(a, b)| a.less(&b));
    }
    let column = |c: &ColumnSpec| Column {
        title: c.title.clone(),
        digits: c.digits.unwrap_or(spec.digits),
        over: c.from.as_ref().and_then(|from| from.over.clone()),
    };
    Ok(Table {
        id: spec.id.clone(),
        title: spec.title.clone(),
        lines: spec.lines,
        head: spec.head.clone(),
        columns: spec.columns.iter().map(column).collect(),
        rows,
    })
}

/// JSON files that were read before.
#[derive(Default)]
struct Files(BTreeMap<std::path::PathBuf, std::result::Result<Json, String>>);

impl Files {
    fn read(&mut self, path: std::path::PathBuf) -> std::result::Result<&Json, String> {
        let entry = self.0.entry(path);
        let path = entry.key().clone();
        entry
            .or_insert_with(|| {
                let text = base::file::read_string(&path)
                    .map_err(|e| format!("{}: {e}", path.display()))?;
                serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
            })
            .as_ref()
            .map_err(Clone::clone)
    }
}

fn read(
    source: &Source,
    env: &Env,
    dims: &Dims,
    found: &StepOutputs<'_>,
    files: &mut Files,
) -> Result<Cell> {
    let overs: Vec<&str> = source.over.as_deref().into_iter().collect();
    let (mut values, mut items) = (vec![], 0);
    for more in envs(&overs, dims)? {
        let env: Env = env.clone().into_iter().chain(more).collect();
        let step = expand(&source.step, &env)?;
        let path = expand(&source.value, &env)?;
        if path == "-" {
            return Ok(Cell::default());
        }
        let json = found.folder(&step).and_then(|folder| files.read(folder.join(&source.file)));
        let json = match json {
            Ok(json) => json,
            Err(reason) => return Ok(Cell { missing: Some(reason), ..Cell::default() }),
        };
        let Some(value) = select(json, &path).and_then(Value::of_json) else {
            let reason = match remedy(json, &path) {
                Some(remedy) => format!("not among the data: {remedy}"),
                None => format!("{} of step {step} has no number at {path}", source.file),
            };
            return Ok(Cell { missing: Some(reason), ..Cell::default() });
        };
        if let Some(at) = &source.items {
            let at = expand(at, &env)?;
            items = items.max(select(json, &at).and_then(Json::as_u64).unwrap_or(0));
        }
        values.push(value.scaled(source.scale.unwrap_or(1.0)));
    }
    let ours = match (values.as_slice(), overs.is_empty()) {
        ([one], true) => Some(*one),
        (many, _) => Value::mean_and_sd(&many.iter().map(|v| v.estimate).collect::<Vec<_>>()),
    };
    Ok(Cell { ours, items: (items > 0).then_some(items), ..Cell::default() })
}

/// Columns that are computed from others.
fn derive(spec: &TableSpec, rows: &mut [Row]) {
    for (k, column) in spec.columns.iter().enumerate() {
        if !column.mean_of.is_empty() {
            for row in rows.iter_mut() {
                let of: Option<Vec<f64>> =
                    column.mean_of.iter().map(|&c| Some(row.cells[c].ours?.estimate)).collect();
                let missing = column.mean_of.iter().find_map(|&c| row.cells[c].missing.clone());
                row.cells[k].ours =
                    of.map(|v| Value::plain(v.iter().sum::<f64>() / v.len() as f64));
                row.cells[k].missing = missing;
            }
        }
        if let Some(relative) = &column.relative {
            let number = |row: &Row| row.cells[relative.column].ours.map(|v| v.estimate);
            let one = rows.iter().find(|r| r.id == relative.row).and_then(number);
            for row in rows.iter_mut() {
                let ratio = number(row).zip(one).map(|(a, b)| Value::plain(a / b));
                row.cells[k].missing = row.cells[relative.column].missing.clone();
                row.cells[k].ours = ratio;
            }
        }
    }
}
