//! What the cells of an event column mean.

use crate::error::{Error, Result};
use crate::table::{Table, same_value as same};
use base::remedy::Setting;
use base::table::{EventCell, bare as spelt, event as known, normal, same_event};
use std::collections::{BTreeMap, BTreeSet};

/// An event column and how it is read. All its rows decide, not only the complete ones, so that the
/// meaning of a cell does not depend on gaps elsewhere.
pub(super) struct Events {
    column: usize,
    coding: Coding,
}

enum Coding {
    /// This text or number means the event, every other one censoring.
    Value(String),
    /// This number means the event, one less censoring; true and false do, too.
    Number(f64),
    /// Words of the one list there is: see [`base::table::event`].
    Words,
}

/// Other values of an event column that are listed.
const LISTED: usize = 12;

impl Events {
    /// Decides how a column is read, with a note if it is not simply 0 and 1.
    pub fn read(
        table: &Table,
        column: usize,
        value: Option<&str>,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in 0..table.len() {
            if let Some(cell) = table.cell(row, column) {
                *counts.entry(cell).or_default() += 1;
            }
        }
        let name = &table.names()[column];
        notes.extend(value.is_none().then(|| named_after_censoring(name, &counts)).flatten());
        let coding = if let Some(value) = value {
            check_spelling(table, column, value)?;
            check_synonyms(table, column, value)?;
            let events: usize =
                counts.iter().filter(|(cell, _)| same(cell, value)).map(|(_, n)| n).sum();
            if events == 0 {
                notes.push(format!("no row of column '{name}' holds the event value '{value}'"));
            }
            let open = |c: &str| !same(c, value) && known(c) == Some(EventCell::Open);
            let rest = counts.iter().filter(|(c, _)| !same(c, value));
            let censored: Vec<_> = rest.clone().filter(|(c, _)| !open(c)).collect();
            if censored.iter().any(|(c, _)| known(c) != Some(EventCell::Censored) && **c != "0") {
                notes.push(format!(
                    "column '{name}': '{value}' is the event ({events} rows); every other value is \
                     taken as censored: {}",
                    listed(&censored)
                ));
            }
            note_open(name, rest.filter(|(c, _)| open(c)).collect(), notes);
            Coding::Value(value.to_owned())
        } else if counts.keys().all(|c| c.parse::<f64>().is_ok_and(|v| v == 1.0 || v == 2.0))
            && counts.keys().any(|c| c.parse() == Ok(2.0))
        {
            notes.push(format!(
                "column '{name}' holds 1 and 2: read as R does, 1 censored and 2 the event"
            ));
            Coding::Number(2.0)
        } else if counts.keys().all(|c| known(c).is_some()) {
            let cells = |wanted| -> Vec<_> {
                counts.iter().filter(|(c, _)| known(c) == Some(wanted)).collect()
            };
            let plain =
                |c: &&str| c.eq_ignore_ascii_case("true") || c.eq_ignore_ascii_case("false");
            if !counts.keys().all(plain) {
                let none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
                notes.push(format!(
                    "column '{name}' holds words: read as the event {}; as censored {}",
                    none(listed(&cells(EventCell::Happened))),
                    none(listed(&cells(EventCell::Censored)))
                ));
            }
            note_open(name, cells(EventCell::Open), notes);
            Coding::Words
        } else {
            Coding::Number(1.0)
        };
        Ok(Self { column, coding })
    }

    /// Whether a cell leaves open what happened, as good as a missing one.
    pub fn is_open(&self, table: &Table, row: usize) -> bool {
        let Some(cell) = table.cell(row, self.column) else { return true };
        match &self.coding {
            Coding::Value(value) => !same(cell, value) && known(cell) == Some(EventCell::Open),
            Coding::Words => known(cell) == Some(EventCell::Open),
            Coding::Number(_) => false,
        }
    }

    /// Whether the event happened, in a row whose cell is not open.
    pub fn happened(&self, table: &Table, row: usize) -> Result<bool> {
        let cell = table.cell(row, self.column).unwrap_or_default();
        let event = match &self.coding {
            Coding::Value(value) => return Ok(same(cell, value)),
            Coding::Words => return Ok(known(cell) == Some(EventCell::Happened)),
            Coding::Number(event) => *event,
        };
        match (cell.to_ascii_lowercase().as_str(), cell.parse::<f64>()) {
            ("true", _) => Ok(true),
            ("false", _) => Ok(false),
            (_, Ok(v)) if v == event => Ok(true),
            (_, Ok(v)) if v == event - 1.0 => Ok(false),
            _ => Err(Error::Cell {
                place: table.place(row, self.column),
                reason: format!(
                    "'{cell}' is neither 0/1 nor true/false, the column is not 1/2 throughout, nor \
                     are all its words known ones such as Dead and Alive; name the value that means \
                     the event"
                ),
                setting: Some(Setting::EventValue),
            }),
        }
    }
}

/// A note on a column of 0 and 1, or of false and true, whose name states what a 1 may mean: that a row is censored.
fn named_after_censoring(name: &str, counts: &BTreeMap<&str, usize>) -> Option<String> {
    let bare = normal(name);
    let is_opposite =
        ["un", "non", "not", "no"].iter().any(|no| bare.contains(&format!("{no}censor")));
    let is_plain = |cell: &&str| {
        let word = cell.to_ascii_lowercase();
        matches!(word.as_str(), "true" | "false") || matches!(cell.parse(), Ok(0.0 | 1.0))
    };
    let is_doubtful = bare.contains("censor") && !is_opposite && counts.keys().all(is_plain);
    is_doubtful.then(|| {
        format!(
            "column '{name}': 1 and true are read as the event; by its name they may mean censored"
        )
    })
}

/// Refuses a cell that is the event value but for its spelling: whether it means the event, too, nobody can know.
fn check_spelling(table: &Table, column: usize, value: &str) -> Result<()> {
    let bare = |text: &str| -> String { spelt(text).split_whitespace().collect() };
    let wanted = bare(value);
    let close = (0..table.len()).find(|&row| {
        table.cell(row, column).is_some_and(|cell| !same(cell, value) && bare(cell) == wanted)
    });
    let Some(row) = close else { return Ok(()) };
    let cells: BTreeSet<&str> = (0..table.len())
        .filter_map(|r| table.cell(r, column))
        .filter(|c| bare(c) == wanted)
        .collect();
    let spellings: Vec<String> = cells.iter().map(|c| format!("'{c}'")).collect();
    Err(Error::Cell {
        place: table.place(row, column),
        reason: format!(
            "the event value '{value}' is spelt in several ways in this column ({}); make them one",
            spellings.join(", ")
        ),
        setting: Some(Setting::EventValue),
    })
}

/// Refuses another word for the event than the event value: it would be censored.
fn check_synonyms(table: &Table, column: usize, value: &str) -> Result<()> {
    let other = |cell: &&str| !same(cell, value) && same_event(cell, value);
    let cell = |row| table.cell(row, column).filter(other).map(|cell| (row, cell));
    let Some((row, cell)) = (0..table.len()).find_map(cell) else { return Ok(()) };
    Err(Error::Cell {
        place: table.place(row, column),
        reason: format!(
            "'{cell}' means the event as the event value '{value}' does, but it would be censored; make them one"
        ),
        setting: Some(Setting::EventValue),
    })
}

fn note_open(name: &str, open: Vec<(&&str, &usize)>, notes: &mut Vec<String>) {
    if !open.is_empty() {
        notes.push(format!(
            "column '{name}' leaves the outcome open, taken as missing: {}",
            listed(&open)
        ));
    }
}

fn listed(counts: &[(&&str, &usize)]) -> String {
    let mut parts: Vec<String> =
        counts.iter().take(LISTED).map(|(c, n)| format!("'{c}' ({n})")).collect();
    if counts.len() > LISTED {
        parts.push(format!("and {} others", counts.len() - LISTED));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(cells: &[&str], value: Option<&str>) -> (Result<Vec<bool>>, Vec<String>) {
        let text: String = cells.iter().fold("e,x\n".into(), |t, c| format!("{t}{c},1\n"));
        let table = Table::parse(Path::new("t.csv"), text.as_bytes()).unwrap();
        let mut notes = Vec::new();
        let read = Events::read(&table, 0, value, &mut notes).and_then(|events| {
            let rows = (0..table.len()).filter(|&r| !events.is_open(&table, r));
            rows.map(|r| events.happened(&table, r)).collect()
        });
        (read, notes)
    }

    #[test]
    fn codings() {
        for (cells, expected) in [
            (&["1", "0", "1.0"][..], &[true, false, true][..]),
            (&["TRUE", "false"], &[true, false]),
            (&["1", "2"], &[false, true]),
            (&["Dead", "Alive", "Unknown"], &[true, false]),
            (&["1:DECEASED", "0:LIVING"], &[true, false]),
        ] {
            assert_eq!(read(cells, None).0.unwrap(), expected, "{cells:?}");
        }
        assert!(read(&["Dead", "perhaps"], None).0.is_err());
        assert!(read(&["0", "1", "2"], None).0.is_err());
    }

    #[test]
    fn other_values_are_listed_and_near_ones_refused() {
        let (read_as, notes) = read(&["Dead", "Alive", "moved", "moved", "Unknown"], Some("Dead"));
        assert_eq!(read_as.unwrap(), [true, false, false, false]);
        assert!(notes[0].contains("'Alive' (1), 'moved' (2)"), "{notes:?}");
        assert!(notes[1].contains("taken as missing: 'Unknown' (1)"), "{notes:?}");
        for cells in [
            ["Dead", "dead"],
            ["Dead", "De ad"],
            // A letter of Cyrillic, and a blank of no width.
            ["Dead", "D\u{435}ad"],
            ["Dead", "Dead\u{200B}"],
        ] {
            let refused = read(&cells, Some("Dead")).0.unwrap_err().to_string();
            assert!(refused.contains("row 2") && refused.contains("several ways"), "{refused}");
        }
        assert!(read(&["Dead", "Alive"], Some("Dead")).1.is_empty(), "nothing is in doubt");
    }

    #[test]
    fn another_word_for_the_event_is_not_censored() {
        for (cells, value) in [
            (["Alive", "Dead", "Deceased"], "Dead"),
            (["0:LIVING", "1:DECEASED", "dead"], "1:DECEASED"),
            (["Relapse", "none", "Progression"], "Relapse"),
        ] {
            let refused = read(&cells, Some(value)).0.unwrap_err().to_string();
            for word in ["row 3", cells[2], value, "make them one"] {
                assert!(refused.contains(word), "{refused}");
            }
        }
        // A death without the event that is asked for is censored, and listed.
        let (read_as, notes) = read(&["Relapse", "Dead", "Alive"], Some("Relapse"));
        assert_eq!(read_as.unwrap(), [true, false, false]);
        assert!(notes[0].contains("'Dead' (1)"), "{notes:?}");
    }
}
