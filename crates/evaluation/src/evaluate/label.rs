//! Labels in a table of truth: which column has them, and what their words mean.

use super::EvaluateError;
use base::table::{Table, yes_no};
use regions::annotations::columns::{FLAG, LABEL};
use regions::annotations::{COUNTED, Class, Meaning as ClassMeaning};
use std::collections::BTreeSet;

/// Words that columns of other meanings have as well, besides those for other cells.
const COMMON: [&str; 2] = [COUNTED, "other"];
/// Columns whose numbers are classes.
const CODES: [&str; 9] = [
    "class",
    "category",
    "class_id",
    "category_id",
    "ground_truth",
    "gt",
    "truth",
    "target",
    "y_true",
];

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
pub(super) fn is_figure(name: &str) -> bool {
    class(name) == Some(Class::MitoticFigure)
}

/// What a name of a class means.
fn class(name: &str) -> Option<Class> {
    ClassMeaning::in_table(name).map(|m| m.class)
}

/// `typical` or `atypical`, if a name of a class contains it.
pub(super) fn subtype(name: &str) -> Option<&'static str> {
    ClassMeaning::in_table(name).and_then(|m| m.subtype)
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
            _ => self.word(cell).ok_or_else(|| {
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

    /// The meaning of a word; `None` where it is not known.
    fn word(&self, cell: &str) -> Option<Meaning> {
        let word = plain(cell);
        match class(cell) {
            _ if self.own.contains(&word) => Some(Meaning::Figure),
            Some(Class::MitoticFigure) if self.own.is_empty() => Some(Meaning::Figure),
            Some(Class::MitoticFigure | Class::Mimicker | Class::Other) => Some(Meaning::Other),
            Some(Class::Ignored) => Some(Meaning::Ignored),
            Some(Class::Unresolved) | None => None,
        }
    }

    /// Whether a word is of labels alone: columns of other meanings have words for other cells, too.
    fn is_certain(&self, cell: &str) -> bool {
        let common = COMMON.contains(&plain(cell).as_str()) || class(cell) == Some(Class::Other);
        self.word(cell).is_some() && !common
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
        if found.is_empty() {
            for c in (0..table.names().len()).filter(|&c| self.has_both(table, c)) {
                found.extend(self.look(table, c)?.map(|row| (c, row)));
            }
        }
        match found[..] {
            [] => coded.map_or(Ok(None), Err),
            [(column, _)] => {
                table.mark_read(column);
                Ok(Some(column))
            }
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

    /// Whether a column has words for figures and for what only resembles them: it has labels, whatever its name.
    fn has_both(&self, table: &Table, column: usize) -> bool {
        let cells = || (0..table.len()).map(|row| table.cell(row, column));
        let known = |cell: &str| self.is_certain(cell).then(|| self.word(cell)).flatten();
        cells().any(|cell| known(cell) == Some(Meaning::Figure))
            && cells().any(|cell| class(cell) == Some(Class::Mimicker))
    }

    /// The first row with a word of a column whose words are all known, at least one of them as a label alone.
    ///
    /// # Errors
    /// For a column that may have labels, and has words that are not known.
    fn look(&self, table: &Table, column: usize) -> Result<Option<usize>, EvaluateError> {
        let name = &table.names()[column];
        let (mut words, mut first, mut unknown, mut certain) = (BTreeSet::new(), None, None, false);
        for row in 0..table.len() {
            let cell = table.cell(row, column);
            let word = plain(cell);
            if word.is_empty() {
                continue;
            }
            match self.word(cell) {
                Some(_) => first = first.or(Some(row)),
                None => unknown = unknown.or(Some(row)),
            }
            certain |= self.is_certain(cell);
            words.insert(word);
        }
        let certain = certain || COMMON.iter().all(|w| words.contains(*w));
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
