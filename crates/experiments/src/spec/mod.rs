//! An experiment as it is written down: steps, tables, figures, comparisons.
//!
//! One file per table or figure of the paper in `experiments/`, contained in the program; nothing of a
//! table is in code. The form is described in `docs/experiments.md`.

mod template;

pub use template::{Env, Reference, expand, references};

use crate::embedded;
use crate::error::{ExperimentError, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// One table or figure of the paper, or the same on other data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Version of this form, 1.
    pub schema: u32,
    /// Its name on the command line.
    pub id: String,
    /// One line.
    pub title: String,
    /// What it shows, and what the reader should know.
    pub about: String,
    /// Whose data it runs on.
    #[serde(default)]
    pub data: DataKind,
    /// What of the paper it repeats.
    #[serde(default)]
    pub paper: Vec<PaperItem>,
    /// Files with further steps, of which those that are needed are taken.
    #[serde(default)]
    pub include: Vec<String>,
    /// Lists that steps, tables and figures run over.
    #[serde(default)]
    pub dims: BTreeMap<String, Dim>,
    /// Steps and families of steps.
    #[serde(default, rename = "step")]
    pub steps: Vec<StepSpec>,
    /// Tables of the report.
    #[serde(default, rename = "table")]
    pub tables: Vec<TableSpec>,
    /// Figures of the report.
    #[serde(default, rename = "figure")]
    pub figures: Vec<FigureSpec>,
    /// Paired tests.
    #[serde(default, rename = "compare")]
    pub compares: Vec<CompareSpec>,
    /// What is smaller in the shrink.
    #[serde(default)]
    pub shrink: ShrinkSpec,
}

/// Whose data an experiment runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataKind {
    /// The paper's.
    #[default]
    Paper,
    /// Public data in their place, at a size for a processor.
    Public,
}

/// A table or figure of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperItem {
    /// The label as the report prints it.
    pub label: String,
    /// First and last line of its source.
    pub lines: [u32; 2],
}

/// A list.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Dim {
    /// Rows of the table of encoders, by name.
    Encoders {
        /// Their names.
        encoders: Vec<String>,
    },
    /// The entries of other lists of the same file, one list after the other.
    Lists {
        /// Their names.
        lists: Vec<String>,
    },
    /// Plain words, or words with properties.
    List(Vec<Entry>),
}

/// An entry of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    /// A word.
    Word(String),
    /// A word with properties; `id` is the word.
    Table(BTreeMap<String, String>),
}

/// A step, or a family of steps: one for each combination of the lists that its name runs over.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Name, with `{list}` for every list it runs over.
    pub name: String,
    /// One line.
    #[serde(default)]
    pub about: String,
    /// Words of a `mithras` command.
    #[serde(default)]
    pub run: Vec<Word>,
    /// What somebody has to do instead, where another program does it; the files of `makes` are then
    /// put into the step's folder.
    #[serde(default)]
    pub outside: Option<String>,
    /// Files and folders that it makes, which are its result.
    pub makes: Vec<String>,
    /// File in its folder for what the command prints.
    #[serde(default)]
    pub stdout: Option<String>,
    /// Steps with a common word never run at the same time.
    #[serde(default)]
    pub lock: Vec<String>,
    /// Whether the command continues what a killed one left.
    #[serde(default)]
    pub resumes: bool,
    /// Whether it trains or runs networks, so that it asks for the device.
    #[serde(default)]
    pub gpu: bool,
    /// GiB of memory.
    #[serde(default = "two")]
    pub memory: f64,
    /// Forward passes of the row's network, a training step counting as three; for the estimate of hours. An entry's
    /// property `passes` comes first.
    #[serde(default)]
    pub passes: f64,
    /// `always`, `shrink` (in the shrink alone) or `full` (never in the shrink).
    #[serde(default)]
    pub when: When,
}

impl StepSpec {
    /// A step that reads a data set: little memory, no network.
    pub(crate) fn import(makes: Vec<String>) -> Self {
        Self {
            name: String::new(),
            about: String::new(),
            run: vec![],
            outside: None,
            makes,
            stdout: None,
            lock: vec![],
            resumes: false,
            gpu: false,
            memory: two(),
            passes: 0.0,
            when: When::Always,
        }
    }
}

fn two() -> f64 {
    2.0
}

/// When a step is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Always.
    #[default]
    Always,
    /// In the shrink alone.
    Shrink,
    /// Never in the shrink.
    Full,
}

/// A word of a command, or words for every entry of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Word {
    /// One word.
    One(String),
    /// Words that are repeated.
    Each {
        /// The list.
        each: String,
        /// The words.
        words: Vec<String>,
    },
}

/// Where a number comes from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A list of whose entries alone there is a number, where the table has others, too.
    #[serde(default)]
    pub rows: Option<String>,
    /// Name of the step whose folder has the file.
    pub step: String,
    /// A JSON file of its folder.
    pub file: String,
    /// Path to the number, an object with `mean` and `sd`, or a pair.
    pub value: String,
    /// A list over whose steps the numbers are averaged.
    #[serde(default)]
    pub over: Option<String>,
    /// Path to the number of items.
    #[serde(default)]
    pub items: Option<String>,
    /// The number is multiplied by it.
    #[serde(default)]
    pub scale: Option<f64>,
}

/// A table of the report, one row per entry of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Name of its files.
    pub id: String,
    /// Caption.
    pub title: String,
    /// The list of its rows.
    pub rows: String,
    /// Titles of the leading columns.
    pub head: Vec<String>,
    /// Their cells, with the properties of the row.
    pub cells: Vec<String>,
    /// Property of the row that groups rows.
    #[serde(default)]
    pub group: Option<String>,
    /// Decimals.
    #[serde(default = "three")]
    pub digits: usize,
    /// From left to right.
    #[serde(rename = "column")]
    pub columns: Vec<ColumnSpec>,
    /// The paper's cells by row, one for each column; `-` where it has none.
    #[serde(default)]
    pub published: BTreeMap<String, Vec<String>>,
    /// Lines of the published values, first and last.
    #[serde(default)]
    pub lines: Option<[u32; 2]>,
}

fn three() -> usize {
    3
}

/// A column of numbers: read from a file, or computed from other columns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    /// Shown in the head of the table.
    pub title: String,
    /// Where its numbers come from.
    #[serde(default)]
    pub from: Option<Source>,
    /// Numbers (from 0) of the columns whose mean it is.
    #[serde(default)]
    pub mean_of: Vec<usize>,
    /// The row by whose number of another column the row's own is divided.
    #[serde(default)]
    pub relative: Option<Relative>,
    /// Decimals, if not the table's.
    #[serde(default)]
    pub digits: Option<usize>,
}

/// A number relative to that of another row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relative {
    /// The column (from 0).
    pub column: usize,
    /// The row that counts as 1.
    pub row: String,
}

/// A figure of the report.
#[derive(Clone, Debug, Deserialize)]
pub struct FigureSpec {
    /// Name of its files.
    pub id: String,
    /// Caption.
    pub title: String,
    /// What is drawn, from which numbers.
    #[serde(flatten)]
    pub kind: FigureKind,
}

/// Kinds of figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FigureKind {
    /// A picture that a step drew.
    Copy {
        /// The step.
        step: String,
        /// Its files, e.g. the SVG and the PNG.
        files: Vec<String>,
    },
    /// A bar for every row of a table's column, the paper's value as a mark.
    Bars {
        /// The table.
        table: String,
        /// Its column, from 0.
        column: usize,
    },
    /// Points of one or several tables: time across, score up; one model's points are joined.
    Scatter(ScatterSpec),
    /// A circle for every row, its area by a number; domains across.
    Bubble {
        /// The table.
        table: String,
        /// Column of the numbers.
        size: usize,
        /// Column of the domains.
        domains: usize,
    },
}

/// Points of one or several tables.
#[derive(Clone, Debug, Deserialize)]
pub struct ScatterSpec {
    /// Below the axis.
    pub x_label: String,
    /// At the side.
    pub y_label: String,
    /// Series of points.
    pub series: Vec<ScatterSeries>,
    /// How many series, the first ones, are enlarged at the right.
    #[serde(default)]
    pub inset: usize,
}

/// Points of one scale.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScatterSeries {
    /// In the legend.
    pub name: String,
    /// Table and column of the horizontal positions.
    pub x: (String, usize),
    /// Table and column of the vertical positions.
    pub y: (String, usize),
}

/// Paired tests of every row against one of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompareSpec {
    /// Name of its table.
    pub id: String,
    /// Caption.
    pub title: String,
    /// The list of rows.
    pub rows: String,
    /// The row that the others are compared with.
    pub reference: String,
    /// The step with the predictions.
    pub step: String,
    /// Its table: columns file, source, fold, truth, class.
    pub file: String,
    /// `f1`, of `positive`, or `macro_f1`.
    pub metric: String,
    /// The positive class.
    #[serde(default)]
    pub positive: Option<String>,
}

/// What is smaller in the shrink.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShrinkSpec {
    /// Entries that are kept, by list.
    #[serde(default)]
    pub dims: BTreeMap<String, Vec<String>>,
}

/// Steps that several experiments share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// Lists of these steps.
    #[serde(default)]
    pub dims: BTreeMap<String, Dim>,
    /// Steps and families of steps.
    #[serde(rename = "step")]
    pub steps: Vec<StepSpec>,
    /// What is smaller in the shrink.
    #[serde(default)]
    pub shrink: ShrinkSpec,
}

/// A row of the table of encoders.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderRow {
    /// Name in experiments.
    pub id: String,
    /// As the paper's tables call it.
    pub name: String,
    /// The network, in the paper's words.
    pub network: String,
    /// Heading of the group of rows.
    pub group: String,
    /// Name in `mithras encoders list`.
    pub encoder: String,
    /// Side of its input, px.
    pub image: u32,
    /// 10^9 multiply-accumulate operations of one crop of `image` px.
    pub gmacs: f64,
    /// Pooling, where not the encoder's own: `cls`, `mean`, `cls_mean`.
    #[serde(default)]
    pub pool: Option<String>,
    /// Keys of a preset of fine-tuning that it changes, `KEY=VALUE`.
    #[serde(default)]
    pub set: Vec<String>,
    /// File of its weights, below the folder of encoders.
    #[serde(default)]
    pub weights: Option<String>,
    /// Or the step that pretrains it.
    #[serde(default)]
    pub step: Option<String>,
    /// Where the weights are to be had.
    #[serde(default)]
    pub page: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EncoderRows {
    row: Vec<EncoderRow>,
}

/// Words that the shrink adds to commands.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShrinkWords {
    /// By the words that a command begins with; the longest match counts.
    pub words: Vec<VerbWords>,
    /// The encoder that represents all others.
    pub encoder: String,
    /// Its side, px.
    pub image: u32,
    /// The step that makes the weights of encoders whose files are missing in the shrink.
    pub weights: String,
}

/// Words for one verb.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerbWords {
    /// The words after `mithras` that a command begins with.
    pub verb: Vec<String>,
    /// With this preset alone; it comes before words for any preset.
    #[serde(default)]
    pub preset: Option<String>,
    /// Words that are put behind such a command.
    pub add: Vec<String>,
}

fn parse<T: serde::de::DeserializeOwned>(file: &str) -> Result<T> {
    let name = format!("experiments/{file}");
    let text = embedded::experiment_file(file)
        .ok_or_else(|| ExperimentError::form(&name, "is not contained in this program"))?;
    toml::from_str(text).map_err(|e| ExperimentError::form(name, e))
}

/// The table of encoders.
///
/// # Errors
/// A file that does not follow the form.
pub fn encoders() -> Result<Vec<EncoderRow>> {
    Ok(parse::<EncoderRows>("tables/encoders.toml")?.row)
}

/// What the shrink changes.
///
/// # Errors
/// As [`encoders`].
pub fn shrink_words() -> Result<ShrinkWords> {
    parse("tables/shrink.toml")
}

/// Shared steps.
///
/// # Errors
/// As [`encoders`].
pub fn chain(file: &str) -> Result<Chain> {
    parse(file)
}

/// All experiments, by name.
///
/// # Errors
/// As [`encoders`].
pub fn all() -> Result<Vec<Experiment>> {
    embedded::EXPERIMENTS
        .iter()
        .filter(|(file, _)| !file.contains('/') && file.ends_with(".toml"))
        .map(|(file, _)| {
            let found: Experiment = parse(file)?;
            if found.schema != 1 || format!("{}.toml", found.id) != *file {
                let reason = format!("schema {} and id `{}`", found.schema, found.id);
                return Err(ExperimentError::form(format!("experiments/{file}"), reason));
            }
            Ok(found)
        })
        .collect()
}

/// The experiment of this name.
///
/// # Errors
/// [`ExperimentError::Unknown`] with the names that there are.
pub fn find(id: &str) -> Result<Experiment> {
    let all = all()?;
    let known = all.iter().map(|e| e.id.as_str()).collect::<Vec<_>>().join(", ");
    all.into_iter().find(|e| e.id == id).ok_or_else(|| ExperimentError::Unknown {
        what: "experiment",
        name: id.into(),
        known,
    })
}
