//! Counts what a folder contains of a data set against what it should contain.

use super::{DataSet, Expected, Kind, Piece, Rows, Stated};
use base::table::{Format, Table, Unmatched};
use base::walk;
use regions::annotations::{Annotations, Class, ImportOptions, importer};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// How much of a data set there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Every piece with the right counts.
    Complete,
    /// Some pieces, or other counts.
    Partial,
    /// Nothing.
    Missing,
}

/// A number that was counted.
#[derive(Clone, Debug, Serialize)]
pub struct Count {
    /// What was counted.
    pub name: String,
    /// As found.
    pub found: u64,
    /// As distributed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// As the paper states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<u64>,
}

impl Count {
    /// Whether it is as distributed.
    #[must_use]
    pub fn right(&self) -> bool {
        self.expected.is_none_or(|e| e == self.found)
    }
}

/// What was found of a piece.
#[derive(Clone, Debug, Serialize)]
pub struct PieceCheck {
    /// Name of the piece.
    pub id: String,
    /// The piece's description, from the file of the data set.
    pub what: String,
    /// The first of its places that exists; none where it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "base::json::lossy")]
    pub at: Option<PathBuf>,
    /// What was counted in it, each with the number that is expected.
    pub counts: Vec<Count>,
    /// Why it cannot be used, or what is missing of it.
    pub problems: Vec<String>,
    /// Not needed for a complete data set.
    pub optional: bool,
}

impl PieceCheck {
    fn complete(&self) -> bool {
        self.at.is_some() && self.problems.is_empty() && self.counts.iter().all(Count::right)
    }
}

/// What was found of a data set.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Name of the data set in experiments and on the command line.
    pub name: String,
    /// How much of it.
    pub state: State,
    /// In the order of the file of the data set.
    pub pieces: Vec<PieceCheck>,
    /// Where the rest is to be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// What was found of several data sets, and what can be run with it.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// Folder of the data sets.
    #[serde(serialize_with = "base::json::lossy")]
    pub root: PathBuf,
    /// One per data set that was asked for.
    pub sets: Vec<Checked>,
    /// Experiments that have all data they name.
    pub can_run: Vec<String>,
    /// Experiments that do not, with the data sets they lack.
    pub cannot_run: Vec<Lacking>,
}

/// An experiment and the data sets that it lacks.
#[derive(Clone, Debug, Serialize)]
pub struct Lacking {
    /// Its id.
    pub experiment: String,
    /// Names of the data sets that are missing or incomplete.
    pub data: Vec<String>,
}

/// Checks one data set below a data root.
#[must_use]
pub fn check(set: &DataSet, root: &Path) -> Checked {
    let mut labels: Vec<Labels> = vec![];
    let mut pieces = vec![];
    for piece in &set.pieces {
        let mut found = PieceCheck {
            id: piece.id.clone(),
            what: piece.what.clone(),
            at: piece.find(root),
            counts: vec![],
            problems: vec![],
            optional: piece.optional,
        };
        match found.at.clone() {
            Some(at) => count(piece, &at, &mut labels, &mut found),
            None => found.problems.push(format!("not found; looked for {}", piece.at.join(", "))),
        }
        pieces.push(found);
    }
    let needed = || pieces.iter().filter(|p| !p.optional);
    let state = if needed().all(PieceCheck::complete) {
        State::Complete
    } else if needed().all(|p| p.at.is_none()) {
        State::Missing
    } else {
        State::Partial
    };
    let remedy = (state != State::Complete)
        .then(|| format!("{} ({}; {})", set.page, set.access, set.licence));
    Checked { name: set.name.clone(), state, pieces, remedy }
}

/// The annotations of a piece of a data set, which name the images that are needed.
struct Labels {
    piece: String,
    all: Annotations,
}

fn count(piece: &Piece, at: &Path, labels: &mut Vec<Labels>, found: &mut PieceCheck) {
    match &piece.kind {
        Kind::Annotations { format, types, expect, paper } => {
            let Some(importer) = importer(format) else {
                found.problems.push(format!("no importer `{format}`"));
                return;
            };
            match (importer.read)(at, &ImportOptions::default()) {
                Ok(mut all) => {
                    restrict(&mut all, types);
                    found.counts = annotation_counts(&all, expect, paper.as_ref());
                    labels.push(Labels { piece: piece.id.clone(), all });
                }
                Err(e) => found.problems.push(e.to_string()),
            }
        }
        Kind::Images { named_by } => images(at, named_by, labels, found),
        Kind::Files { extensions, count } => {
            let files = files(at).into_iter().filter(|f| has_extension(f, extensions)).count();
            found.counts.push(number("files", files as u64, Some(*count)));
        }
        Kind::Table { rows } => {
            match Table::read(at, &Format { ragged: true, ..Format::default() }) {
                Ok(table) => rows.iter().for_each(|r| row_count(&table, r, found)),
                Err(e) => found.problems.push(e.to_string()),
            }
        }
        Kind::Folder => {}
    }
}

/// Keeps the annotations of images of these tumour types.
fn restrict(all: &mut Annotations, types: &[String]) {
    if types.is_empty() {
        return;
    }
    let keep: Vec<bool> =
        all.images.iter().map(|i| i.cohort.as_ref().is_some_and(|c| types.contains(c))).collect();
    all.annotations.retain(|a| keep[a.image]);
}

fn annotation_counts(all: &Annotations, expect: &Expected, paper: Option<&Stated>) -> Vec<Count> {
    let class = |c| all.annotations.iter().filter(|a| a.class == c).count() as u64;
    let subtype = |name: &str| {
        all.annotations.iter().filter(|a| a.subtype.as_deref() == Some(name)).count() as u64
    };
    let images: BTreeSet<usize> = all.annotations.iter().map(|a| a.image).collect();
    let stated = paper.map(|p| p.counts).unwrap_or_default();
    expect
        .named()
        .into_iter()
        .zip(stated.named())
        .filter(|((_, e), (_, p))| e.is_some() || p.is_some())
        .map(|((name, expected), (_, paper))| {
            let found = match name {
                "images" => images.len() as u64,
                "figures" => class(Class::MitoticFigure),
                "mimickers" => class(Class::Mimicker),
                other => subtype(other),
            };
            Count { name: name.into(), found, expected, paper }
        })
        .collect()
}

fn images(at: &Path, named_by: &str, labels: &[Labels], found: &mut PieceCheck) {
    let Some(Labels { all, .. }) = labels.iter().find(|l| l.piece == named_by) else {
        let files = files(at).len() as u64;
        found.counts.push(number("files", files, None));
        found
            .problems
            .push(format!("which images are needed is in `{named_by}`, which is missing"));
        return;
    };
    let labelled: BTreeSet<usize> = all.annotations.iter().map(|a| a.image).collect();
    let there: BTreeSet<String> =
        files(at).iter().filter_map(|f| Some(f.file_name()?.to_str()?.to_owned())).collect();
    let base = |i: &usize| {
        let name = all.images[*i].name.as_str();
        name.rsplit(['/', '\\']).next().unwrap_or(name).to_owned()
    };
    let missing: Vec<String> = labelled.iter().map(base).filter(|n| !there.contains(n)).collect();
    let found_count = (labelled.len() - missing.len()) as u64;
    found.counts.push(number("images", found_count, Some(labelled.len() as u64)));
    if !missing.is_empty() {
        let first = missing.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        let more = if missing.len() > 3 { ", ..." } else { "" };
        let needed: BTreeSet<String> = labelled.iter().map(base).collect();
        let idle: Vec<&str> = there.difference(&needed).map(String::as_str).collect();
        let alone: Vec<&str> = missing.iter().map(String::as_str).collect();
        let join = Unmatched::from_keys(("the labels", "the folder"), &alone, &idle)
            .map_or_else(String::new, |j| format!("; {j}"));
        let n = missing.len();
        found.problems.push(format!("{n} images are missing: {first}{more}{join}"));
    }
}

fn row_count(table: &Table, rows: &Rows, found: &mut PieceCheck) {
    let mut columns = vec![];
    for (name, value) in &rows.filter {
        match table.need(&[name]) {
            Ok(column) => columns.push((column, value)),
            Err(e) => {
                found.problems.push(e.to_string());
                return;
            }
        }
    }
    let matches = |row: &usize| columns.iter().all(|(c, v)| table.cell(*row, *c) == v.as_str());
    let n = (0..table.len()).filter(matches).count() as u64;
    let paper = rows.paper.map(|p| p.count);
    found.counts.push(Count {
        name: rows.name.clone(),
        found: n,
        expected: Some(rows.count),
        paper,
    });
}

fn number(name: &str, found: u64, expected: Option<u64>) -> Count {
    Count { name: name.into(), found, expected, paper: None }
}

fn has_extension(file: &Path, extensions: &[String]) -> bool {
    let own = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
    extensions.iter().any(|e| e.eq_ignore_ascii_case(own))
}

/// All files below a folder; what cannot be listed holds none, and is missed by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let listed = |p: &Path| !p.is_dir() || std::fs::read_dir(p).is_ok();
    let mut all = walk::files(folder, &listed).unwrap_or_default();
    all.retain(|p| p.is_file());
    all
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.found, self.name)?;
        match self.expected {
            Some(e) if e != self.found => write!(f, " (should be {e})")?,
            _ => {}
        }
        match self.paper {
            Some(p) if p != self.found => write!(f, " (paper: {p})"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Complete => "complete",
            State::Partial => "in part",
            State::Missing => "missing",
        };
        writeln!(f, "{}: {state}", self.name)?;
        if self.state != State::Missing {
            for p in &self.pieces {
                let counts: Vec<String> = p.counts.iter().map(ToString::to_string).collect();
                let place =
                    p.at.as_ref().map(|a| format!(" [{}]", a.display())).unwrap_or_default();
                let text = [counts, p.problems.clone()].concat().join("; ");
                let optional = if p.optional { " (optional)" } else { "" };
                let sep = if text.is_empty() { "" } else { ": " };
                writeln!(f, "  {}{optional}{sep}{text}{place}", p.what)?;
            }
        }
        match &self.remedy {
            Some(remedy) => writeln!(f, "  get it from {remedy}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sets.iter().try_for_each(|s| write!(f, "{s}"))?;
        let all = if self.can_run.is_empty() { "none".into() } else { self.can_run.join(", ") };
        writeln!(f, "\nexperiments that have all their data: {all}")?;
        for lacking in &self.cannot_run {
            writeln!(f, "  {} lacks {}", lacking.experiment, lacking.data.join(", "))?;
        }
        Ok(())
    }
}
