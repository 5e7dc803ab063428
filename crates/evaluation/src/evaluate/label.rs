//! Labels in a table of truth: which column has them, and what their words mean.

use super::EvaluateError;
use base::table::{Table, yes_no};
use regions::annotations::columns::{FLAG, LABEL};
use std::collections::BTreeSet;

/// Words for a mitotic figure; compared without case, blanks, hyphens and underscores.
const FIGURE: [&str; 5] = ["mf", "mitotic", "mitoticfigure", "mitosis", "figure"];
/// Words for everything else that annotators label; never counted.
const OTHER: [&str; 10] = [
    "mimicker",
    "imposter",
    "notmitotic",
    "notmitoticfigure",
    "nonmitotic",
    "nonmitoticfigure",
    "nonmitosis",
    "hardnegative",
    "hardnegativelookalike",
    "other",
];
/// Word for what is neither: nothing that is found there counts.
const IGNORE: &str = "ignore";
/// Words that columns of other meanings have as well.
const COMMON: [&str; 2] = ["figure", "other"];
/// Columns whose numbers are classes.
const CODES: [&str; 4] = ["class", "category", "class_id", "category_id"];

/// What a row's label means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Figure,
    Other,
    Ignored,
}

/// The column with the labels, if any, and the words that mean a figure.
pub(super) struct Labels<'a> {
    column: Option<usize>,
    /// The words that alone mean a figure, if any.
    figures: &'a [String],
    /// The same in plain letters.
    own: Vec<String>,
}

/// Whether a column has numbers or yes and no alone.
fn is_coded(table: &Table, column: usize) -> bool {
    let mut cells = (0..table.len()).map(|row| table.cell(row, column)).filter(|c| !c.is_empty());
    cells.all(|c| c.parse::<u64>().is_ok() || yes_no(c).is_some())
}

/// Whether a class is a mitotic figure by its name.
pub(super) fn is_figure(class: &str) -> bool {
    FIGURE.contains(&plain(class).as_str())
}

/// A word in lower case, without blanks, hyphens and underscores.
pub(super) fn plain(word: &str) -> String {
    word.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
}

impl<'a> Labels<'a> {
    /// Finds the column: the stated one, `label`, `kind`, or the only one with a usual name for labels whose words are
    /// all known.
    pub(super) fn find(
        table: &Table,
        stated: Option<&str>,
        figures: &'a [String],
    ) -> Result<Self, EvaluateError> {
        let own = figures.iter().map(|w| plain(w)).collect();
        let mut labels = Self { column: None, figures, own };
        labels.column = match stated {
            Some(name) => Some(table.need(&[name])?),
            None if table.find(&["label", "kind"]).is_some() => {
                Some(table.need(&["label", "kind"])?)
            }
            None => labels.guess(table)?,
        };
        if labels.column.is_none() && !figures.is_empty() {
            return Err(table.missing(&["label", "kind"]).into());
        }
        Ok(labels)
    }

    /// The meaning of a row's label.
    pub(super) fn meaning(&self, table: &Table, row: usize) -> Result<Meaning, EvaluateError> {
        let Some(column) = self.column else { return Ok(Meaning::Figure) };
        let cell = table.cell(row, column);
        match plain(cell) {
            word if word.is_empty() => Ok(Meaning::Other),
            word => self.word(&word).ok_or_else(|| {
                let (words, help) = match self.own.is_empty() {
                    true => (
                        "mf, mitotic, mitotic figure, mitosis, figure".into(),
                        "state the words that mean a figure",
                    ),
                    false => (
                        self.figures.join(", "),
                        "state it as well if it means a figure, or else write `other` in its place",
                    ),
                };
                let reason = format!(
                    "'{cell}' is neither a word for a mitotic figure ({words}) nor for something else \
                     (mimicker, imposter, non-mitotic, hard negative, other, ignore); {help}"
                );
                EvaluateError::Word { place: table.place(row, column), reason }
            }),
        }
    }

    /// The meaning of a word in plain letters; `None` where it is not known.
    fn word(&self, word: &str) -> Option<Meaning> {
        let usual = FIGURE.contains(&word);
        if self.own.iter().any(|own| own == word) || (self.own.is_empty() && usual) {
            return Some(Meaning::Figure);
        }
        if word == IGNORE {
            return Some(Meaning::Ignored);
        }
        (usual || OTHER.contains(&word)).then_some(Meaning::Other)
    }

    /// The column with labels of a table without `label` and `kind`.
    fn guess(&self, table: &Table) -> Result<Option<usize>, EvaluateError> {
        let names = LABEL.iter().chain(FLAG).chain(&CODES);
        let columns: BTreeSet<usize> = names.filter_map(|name| table.find(&[name])).collect();
        let (mut found, mut coded) = (Vec::new(), None);
        for c in columns {
            match self.look(table, c) {
                Ok(seen) => found.extend(seen.map(|row| (c, row))),
                // Next to a column of words it is another form of the same.
                Err(e) if is_coded(table, c) => coded = coded.or(Some(e)),
                Err(e) => return Err(e),
            }
        }
        match found[..] {
            [] => coded.map_or(Ok(None), Err),
            [(column, _)] => Ok(Some(column)),
            [(first, row), (second, _), ..] => Err(EvaluateError::Word {
                place: table.place(row, first),
                reason: format!(
                    "the truth has no column `label` or `kind`, and this one and '{}' both have words for labels; \
                     rename the column of labels to `label`",
                    table.names()[second]
                ),
            }),
        }
    }

    /// The first row with a word of a column whose words are all known, at least one of them as a label alone.
    ///
    /// # Errors
    /// For a column that may have labels, and has words that are not known.
    fn look(&self, table: &Table, column: usize) -> Result<Option<usize>, EvaluateError> {
        let name = &table.names()[column];
        let (mut words, mut first, mut unknown) = (BTreeSet::new(), None, None);
        for row in 0..table.len() {
            let word = plain(table.cell(row, column));
            if word.is_empty() {
                continue;
            }
            match self.word(&word) {
                Some(_) => first = first.or(Some(row)),
                None => unknown = unknown.or(Some(row)),
            }
            words.insert(word);
        }
        let is_label = |w: &String| self.word(w).is_some() && !COMMON.contains(&w.as_str());
        let certain = words.iter().any(is_label) || COMMON.iter().all(|w| words.contains(*w));
        let named = |names: &[&str]| names.iter().any(|n| plain(n) == plain(name));
        let numbers = words.len() > 1 && words.iter().all(|w| w.parse::<u64>().is_ok());
        let codes = (named(&CODES) && numbers)
            || (named(FLAG) && words.iter().any(|w| yes_no(w) == Some(false)));
        match unknown {
            None => Ok(first.filter(|_| certain)),
            Some(row) if certain || codes => {
                let cell = table.cell(row, column);
                let figures = match self.figures {
                    [] => "mitotic figure".to_owned(),
                    own => own.join(", "),
                };
                let reason = format!(
                    "the truth has no column `label` or `kind`, and this one may have its labels, but '{cell}' is not \
                     a known word ({figures}, mimicker, non-mitotic, hard negative, other, ignore); write such \
                     words and rename the column to `label`, or give it another name if it has no labels"
                );
                Err(EvaluateError::Word { place: table.place(row, column), reason })
            }
            Some(_) => Ok(None),
        }
    }
}
